//! How much a search may take.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Trials without any other limit.
pub const USUAL_TRIALS: u64 = 400;

/// How much a search may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Trials.
    pub trials: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
}

impl Spend {
    /// The most trials that it allows; none where the time alone says.
    pub fn most_trials(&self) -> Option<u64> {
        match self {
            Spend { trials: None, time: None } => Some(USUAL_TRIALS),
            Spend { trials, .. } => *trials,
        }
    }
}
