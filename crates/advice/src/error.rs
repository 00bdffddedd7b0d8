//! Why there is no comparison.

use wattwise_model::machine::MachineModel;
use wattwise_model::workload::replica::TooManyRounds;
use wattwise_model::workload::{Task, Workload};
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
    /// A task is bound to CPUs that the machine does not have.
    #[error(
        "{workload}: task '{task}' is bound to CPUs that {machine} does not have; expected some of 0 to {last}"
    )]
    NoCpu {
        /// The workload.
        workload: String,
        /// The task.
        task: String,
        /// The machine.
        machine: String,
        /// The machine's last CPU.
        last: usize,
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
    /// Why this work cannot run on this machine, if it cannot.
    pub(crate) fn of_work(workload: &Workload, machine: &MachineModel) -> Result<(), CompareError> {
        if !workload.tasks.iter().any(|t| t.is_foreground()) {
            return Err(CompareError::NoForeground { workload: workload.name.clone() });
        }
        let lost = |t: &&Task| t.affinity.as_ref().is_some_and(|a| !a.fits(machine));
        match workload.tasks.iter().find(lost) {
            None => Ok(()),
            Some(task) => Err(CompareError::NoCpu {
                workload: workload.name.clone(),
                task: task.name.clone(),
                machine: machine.name.clone(),
                last: machine.cpus.len().saturating_sub(1),
            }),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::machine::{builtin, file};
    use wattwise_model::workload::{Affinity, Program, ScriptBuilder};

    #[test]
    fn work_that_is_bound_to_cpus_that_are_not_there_is_refused() {
        let machine = file::parse(builtin::text("i7-4510u").expect("bundled"), "i7-4510u").expect("sound");
        let bound = |cpus: &[u16]| {
            let task = Task {
                affinity: Some(Affinity::Cpus(cpus.to_vec())),
                ..Task::new("t", Program::Recorded(ScriptBuilder::new().finish()))
            };
            let refused = CompareError::of_work(&Workload::new("w", "made up", vec![task], 0), &machine);
            refused.map_err(|e| e.to_string())
        };
        assert_eq!(bound(&[3, 9]), Ok(()));
        let error = "w: task 't' is bound to CPUs that i7-4510u does not have; expected some of 0 to 3";
        assert_eq!(bound(&[9]), Err(error.into()));
    }
}
