//! Which CPUs there are, what they are and how busy.

pub mod cpuid;
pub mod proc_stat;
pub mod select;
pub mod set;
pub mod topology;
pub mod wake;
