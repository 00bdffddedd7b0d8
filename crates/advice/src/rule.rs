//! What is to be small, and how much slower a policy may be.
//!
//! The limit of time counts from the reference policy, which is what is in force. That alone would give time away round by round:
//! who applies a policy that is a tenth slower and asks again would be told of one that is another tenth slower. So a search has
//! *standards* beside the reference, which stay the same from round to round: what the system does unless told otherwise, and what
//! wattwise has replaced. It recommends nothing that exceeds the limit against one of them, unless that is no slower than what
//! is in force: a slow machine is never asked to become fast.
//!
//! A policy within the limit of a standard stays within it once it is in force, and all that could take its place then could have
//! been chosen before. So what is recommended stays recommended after it is applied.

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
