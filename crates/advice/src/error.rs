//! Why there is no comparison.

use wattwise_model::workload::replica::TooManyRounds;
use wattwise_replay::job::IdleError;
use wattwise_sim::RunError;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A machine model names an idle policy that does not exist.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// The work does not end.
    #[error("{policy}: {source} (--budget simulated=SECONDS,events=NUMBER)")]
    Run {
        /// The policy under which it did not.
        policy: String,
        /// The engine's word.
        source: RunError,
    },
    /// The work of a generated task cannot be fixed.
    #[error(transparent)]
    Work(#[from] TooManyRounds),
    /// Nothing in the workload is foreground.
    #[error(
        "{workload}: no task is foreground; expected one whose completion can be judged (--foreground NAME)"
    )]
    NoForeground {
        /// The workload.
        workload: String,
    },
    /// It was stopped before there was anything to show.
    #[error("stopped")]
    Stopped,
    /// Two policies did not do the same work: a fault of ours, and no answer.
    #[error(
        "{policy}: did {share:.4} % more or less work than {reference}; no comparison is possible (please report it)"
    )]
    DifferentWork {
        /// The policy.
        policy: String,
        /// The reference policy.
        reference: String,
        /// By how much, in per cent.
        share: f64,
    },
}
