//! A machine as a model.
//!
//! ```text
//! gather    a root (this machine, a capture, an emulated one) -> what its kernel says of it
//! estimate  that, over the nearest bundled model             -> a machine file, with wide ranges
//! write     the machine file itself
//! ```
//!
//! An estimate knows what the kernel lists (CPUs, levels, C-states, the driver and the policy in force). Watts it takes
//! over from a bundled model, to scale, and says so: each such figure is a guess with a range that `compare` carries
//! through to its answer.
//!
//! It may use the machine wing and `model`. Nothing here changes a machine.

pub mod estimate;
pub mod gather;
mod write;
