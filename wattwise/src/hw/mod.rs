//! The machine's power hardware: what it has, what is set, and how to change it safely.

pub mod root;

pub mod acpi;
pub mod cpuid;
pub mod msr;
