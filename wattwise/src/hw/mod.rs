//! The machine's power hardware: what it has, what is set, and how to change it safely.

pub mod acpi;
pub mod capture;
pub mod cpufreq;
pub mod cpuid;
pub mod cpuidle;
pub mod cpus;
pub mod emulator;
pub mod found;
pub mod info;
pub mod journal;
pub mod msr;
pub mod plan;
pub mod power;
pub mod powerctl;
pub mod root;
pub mod rules;
pub mod select;
pub mod stat;
pub mod target;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod transaction;
pub mod tree;
pub mod writers;
