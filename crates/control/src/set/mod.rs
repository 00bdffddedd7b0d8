//! Settings: from wishes to writes, and back.
//!
//! `plan` turns wishes into changes in the order that the kernel needs, `mode` foresees what a mode of the driver changes for
//! them; `transaction` makes them all or none; `journal`
//! keeps the originals on disk; `original` puts them back; `target` is the one place where a value is read or written;
//! `standing` keeps wishes that change in force for as long as a daemon lives; `left` is what a killed process left.

#[cfg(test)]
mod faults;
mod inventory;
pub mod journal;
pub mod left;
pub mod mode;
#[cfg(test)]
mod mode_faults;
pub mod original;
pub mod plan;
pub mod standing;
pub mod target;
pub mod transaction;
