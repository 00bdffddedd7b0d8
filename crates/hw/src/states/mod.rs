//! Power states as the kernel's interfaces show them.

pub mod cpufreq;
pub mod cpuidle;
pub mod devfreq;
pub mod platform;
pub mod power;
pub mod sensors;
pub mod supply;
pub mod writers;
