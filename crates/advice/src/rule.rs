//! What is to be small, and how much slower a policy may be.

use serde::{Deserialize, Serialize};

/// How the best is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// What is to be small.
    pub goal: Goal,
    /// Policies slower than the reference by more than this share are not admissible.
    pub max_slowdown: f64,
}

/// What is to be small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Energy over the window.
    #[default]
    Energy,
    /// Energy over the run's own time: the machine is switched off afterwards.
    OwnEnergy,
    /// Energy over the run's own time, times that time.
    Edp,
    /// What is judged as time.
    Time,
}

impl Goal {
    /// Whether it is the usual one.
    pub(crate) fn is_energy(&self) -> bool {
        *self == Goal::Energy
    }

    /// What it is called in an answer.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Energy => "energy",
            Goal::OwnEnergy => "energy over its own time",
            Goal::Edp => "energy-delay product",
            Goal::Time => "time",
        }
    }
}

impl Default for Rule {
    /// Least energy over the window, at most a tenth slower than the reference.
    fn default() -> Rule {
        Rule { goal: Goal::Energy, max_slowdown: 0.10 }
    }
}
