//! A machine as a model.
//!
//! ```text
//! gather       a root (this machine, a capture, an emulated one) -> what its kernel says of it
//! estimate     that, over the nearest bundled model             -> a machine file, with wide ranges
//! calibration  windows on a machine that can be put to work     -> a machine file, with fitted figures
//! ```
//!
//! An estimate knows what the kernel lists (CPUs, levels, C-states, the driver and the policy in force). Watts it takes
//! over from a bundled model, to scale, and says so: each such figure is a guess with a range that `compare` carries
//! through to its answer. A calibration puts fitted figures in their place, with the interval that the meters allow.
//!
//! It may use the machine wing and `model`. Only [`calibration`] changes a machine, by journalled transactions.

pub mod calibration;
pub mod check;
mod clock;
pub mod delays;
mod design;
pub mod estimate;
pub mod fit;
pub mod gather;
pub mod heat;
mod layout;
mod look;
mod made;
mod obeyed;
pub mod pace;
pub mod pages;
pub mod plan;
mod server;
pub mod site;
pub mod spoiled;
pub mod truth;
pub mod window;
mod write;

pub use design::{Meters, mixes};
pub use layout::Layout;
