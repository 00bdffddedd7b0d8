//! Policies followed on the live machine.

pub mod cores;
pub mod waits;
