//! Why there is no comparison.

use wattwise_model::workload::Workload;
use wattwise_model::workload::replica::TooManyRounds;
use wattwise_replay::job::IdleError;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::RunError;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A machine model names an idle policy that does not exist.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// The work does not end.
    #[error("{policy}: {source} (--budget simulated=172800,events=1e10)")]
    Run {
        /// The policy under which it did not.
        policy: String,
        /// The engine's word.
        source: RunError,
    },
    /// What is left of the work waits to be woken by a task that never does.
    #[error(
        "{workload}: {} for a wake-up that never comes, not in {limit_s} simulated seconds under {policy}; expected a \
         `wake` for each `block` (it wakes the copy of the same number alone)",
        wait(tasks)
    )]
    Waiting {
        /// The workload.
        workload: String,
        /// The tasks that wait.
        tasks: Vec<String>,
        /// The policy under which they do.
        policy: String,
        /// For how long the work was followed, in seconds.
        limit_s: u64,
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

impl CompareError {
    /// Why a policy's run came to no end.
    pub(crate) fn of_run(policy: &PolicySpec, workload: &Workload, source: RunError) -> CompareError {
        let policy = policy.text.clone();
        match source {
            RunError::Waiting { tasks, limit_s } => {
                let name = |t: usize| workload.tasks.get(t).map(|task| task.name.clone());
                let tasks = tasks.into_iter().filter_map(name).collect();
                CompareError::Waiting { workload: workload.name.clone(), tasks, policy, limit_s }
            }
            RunError::Stopped => CompareError::Stopped,
            source => CompareError::Run { policy, source },
        }
    }
}

/// What was run, or why it could not be; `None` where it was stopped: it is left out like what was not begun.
pub(crate) fn unless_stopped<T>(ran: Result<T, CompareError>) -> Option<Result<T, CompareError>> {
    match ran {
        Err(CompareError::Stopped) => None,
        ran => Some(ran),
    }
}

/// `the tasks a, b, c and 2 others wait`.
fn wait(tasks: &[String]) -> String {
    const NAMED: usize = 3;
    match tasks {
        [one] => format!("the task {one} waits"),
        [head @ .., last] if tasks.len() <= NAMED => format!("the tasks {} and {last} wait", head.join(", ")),
        _ => format!("the tasks {} and {} more wait", tasks[..NAMED].join(", "), tasks.len() - NAMED),
    }
}
