//! The machine's power hardware: what it has, what is set, and how to change it safely.

pub mod emulator;
pub mod root;
pub mod rules;
