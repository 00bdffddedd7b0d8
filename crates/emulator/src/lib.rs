//! A machine that is not there: the same files, the kernel's rules, counters in virtual time.
//!
//! [`Emulator`] is a [`Root`](wattwise_hw::root::Root) like the real machine. It comes from a description
//! (`machines/emulated/*.toml`, [`named`]) or from any tree of files (a capture,
//! [`Emulator::from_files`]). What may be written and what then happens is decided by the one table
//! in [`wattwise_hw::rules`]; what follows from it (speeds, lists of CPUs, a governor's own files) is in
//! `host/`. Time moves only by [`Emulator::advance`]; the same seed and the same steps give the
//! same bytes.
//!
//! Faults are put in by [`Emulator::inject`]. Every write and every opening is counted.
//! With [`fuse`] other programs can be run against it.

pub mod console;
mod cpulist;
mod description;
mod emulated;
mod fault;
#[cfg(feature = "mount")]
pub mod fuse;
mod host;
#[cfg(feature = "mount")]
pub mod namespace;
mod registers;
#[cfg(test)]
mod tests;
mod tree;

pub use crate::description::{DescriptionError, from_text, named, names, text};
pub use crate::emulated::{Emulator, OnlineTimes, TreeEntry};
pub use crate::fault::{Fault, Op};
pub use crate::host::Truth;
pub use crate::registers::{RegisterDevice, Registers};
