//! The machine's power hardware: what it has, what is set, and how to change it safely.

pub mod cpufreq;
pub mod cpuidle;
pub mod cpus;
pub mod found;
pub mod power;
pub mod root;
pub mod select;
pub mod topology;
pub mod units;
