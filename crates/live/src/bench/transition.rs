//! How long a change of speed takes, for every pair of speeds (000): the result. How it is measured:
//! [`wattwise_control::delays::transition`].

use serde::{Deserialize, Serialize};
pub use wattwise_control::delays::transition::Pair;

/// Version of the result.
pub const SCHEMA: &str = "wattwise.bench-transition/1";

/// All pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Matrix {
    /// [`SCHEMA`].
    pub schema: String,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// Which frequency domain.
    pub policy: String,
    /// How it was told that a change is in force.
    pub by: String,
    /// Trials a pair.
    pub trials: usize,
    /// The speeds, kHz, falling.
    pub levels_khz: Vec<u64>,
    /// Every ordered pair.
    pub pairs: Vec<Pair>,
}
