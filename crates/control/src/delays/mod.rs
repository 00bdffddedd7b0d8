//! Delays of a machine's power states, timed: of a change of speed ([`transition`]), of a wake-up ([`wake`]).
//!
//! Benchmarks and calibrations use them. Who calls has put the governor `userspace` and the C-states in force, by a
//! transaction; only the speed within that governor is written here.

pub mod transition;
pub mod wake;
