//! A plan: writes in order, or why there is none.

use crate::problem::Problem;
use crate::set::mode::Then;
use crate::set::transaction::Change;
use wattwise_figure::nearest;
use wattwise_hw::rules::Refusal;

/// One write of a plan.
#[derive(Debug, Clone)]
pub struct PlannedWrite {
    /// What would be written where.
    pub change: Change,
    /// What is there now.
    pub old: String,
    /// What the kernel will show afterwards, or the rule that refuses.
    pub verdict: Result<String, Refusal>,
    /// Whether that can be judged only once the driver's mode, an earlier step, is in force.
    pub judged_later: bool,
}

/// Writes in order.
#[derive(Debug, Clone, Default)]
pub struct ChangePlan {
    /// The writes.
    pub steps: Vec<PlannedWrite>,
    /// Values that follow from them, to be put back with them.
    pub beside: Vec<Change>,
    /// What the user should know before.
    pub notes: Vec<String>,
    /// What is planned anew once a mode of the driver is in force; the steps for it are foreseen.
    pub then: Option<Then>,
}

impl ChangePlan {
    /// The first write that the kernel would refuse, and its rule.
    pub fn refused(&self) -> Option<(&PlannedWrite, &Refusal)> {
        self.steps.iter().find_map(|s| Some((s, s.verdict.as_ref().err()?)))
    }
}

/// A wish that cannot be fulfilled; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A mistake in the wish.
    #[error("{0}")]
    Input(String),
    /// Not on this machine.
    #[error("{0}")]
    Impossible(String),
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Problem {
        match error {
            PlanError::Input(m) => Problem::Input(m),
            PlanError::Impossible(m) => Problem::Impossible(m),
        }
    }
}

pub(super) fn input(message: impl Into<String>) -> PlanError {
    PlanError::Input(message.into())
}

pub(super) fn impossible(message: impl Into<String>) -> PlanError {
    PlanError::Impossible(message.into())
}

pub(super) fn unknown(flag: &str, given: &str, choices: &[String], whose: &str) -> PlanError {
    let near = nearest(given, choices.iter().map(String::as_str));
    input(format!(
        "{flag} '{given}' is unknown to {whose}; did you mean '{near}'? It takes {}",
        choices.join(", ")
    ))
}
