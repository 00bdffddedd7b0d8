//! A machine as a model.
//!
//! ```text
//! gather       a root (this machine, a capture, an emulated one) -> what its kernel says of it
//! estimate     that, over the nearest bundled model             -> a machine file, with wide ranges
//! calibration  windows on a machine that can be put to work     -> a machine file, with fitted figures
//!
//! layout       where the model's cores sit in the machine    truth   machines whose watts are known, for tests
//! site         where windows take place                      window  what was done there, and what it drew
//! timed        delays and paces, on one core of each kind    fit     from observations to watts
//! ```
//!
//! An estimate knows what the kernel lists (CPUs, levels, C-states, the driver and the policy in force). Watts it takes
//! over from a bundled model, to scale, and says so: each such figure is a guess with a range that `compare` carries
//! through to its answer. A calibration puts fitted figures in their place, with the interval that the meters allow.
//!
//! It may use the machine wing and `model`. Only [`calibration`] changes a machine, by journalled transactions.

pub mod calibration;
pub mod estimate;
pub mod fit;
pub mod gather;
mod layout;
pub mod site;
pub mod timed;
pub mod truth;
pub mod window;

pub use fit::design::{Meters, mixes};
pub use layout::Layout;
