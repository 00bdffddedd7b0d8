//! Groups of foreground tasks that wake each other or share locks and jobs: one piece of work each.
//!
//! A group in which some task ends has a makespan; each other is judged by its response times. So a server and the client
//! whose end is the work are one group, and a desktop that goes on next to a build is another.

use wattwise_model::workload::{Op, Program, Step, Workload};

/// Sets that are joined one by one (union-find).
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        if a < self.0.len() && b < self.0.len() {
            let (a, b) = (self.root(a), self.root(b));
            self.0[a] = b;
        }
    }
}

/// For each task, whether it is foreground of a group in which no task ends.
pub(crate) fn endless(workload: &Workload) -> Vec<bool> {
    let tasks = &workload.tasks;
    if tasks.iter().all(|t| !t.is_foreground() || t.ends) {
        return vec![false; tasks.len()];
    }
    // Tasks first, then locks and counters of jobs, which join those that use them.
    let (locks, jobs) = (tasks.len(), tasks.len() + workload.locks as usize);
    let mut sets = Sets((0..jobs + workload.jobs.len()).collect());
    for (t, task) in tasks.iter().enumerate().filter(|(_, t)| t.is_foreground()) {
        let mut with = |other: usize| {
            if other >= locks || tasks[other].is_foreground() {
                sets.join(t, other);
            }
        };
        match &task.program {
            Program::Recorded(script) => {
                for op in script.reader() {
                    match op {
                        Op::Wake(other) if (other.0 as usize) < locks => with(other.0 as usize),
                        Op::Lock(lock) => with(locks + lock as usize),
                        _ => {}
                    }
                }
            }
            Program::Pattern(pattern) => {
                for step in &pattern.steps {
                    match step {
                        Step::Wake(other) if (other.0 as usize) < locks => with(other.0 as usize),
                        Step::Lock(lock) => with(locks + *lock as usize),
                        Step::Take(counter) => with(jobs + *counter as usize),
                        _ => {}
                    }
                }
            }
        }
    }
    let mut ends = vec![false; sets.0.len()];
    for (t, _) in tasks.iter().enumerate().filter(|(_, t)| t.is_foreground() && t.ends) {
        ends[sets.root(t)] = true;
    }
    (0..tasks.len()).map(|t| tasks[t].is_foreground() && !ends[sets.root(t)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::workload::{Dist, Pattern, Role, ScriptBuilder, Task, TaskId};

    fn pattern(steps: Vec<Step>) -> Pattern {
        Pattern {
            steps,
            start: Dist::Fixed(0),
            rounds: 1,
            until_ns: u64::MAX,
            seed: 1,
            reference_khz: 1_000_000,
            memory_share: 0.0,
        }
    }

    fn task(ops: &[Op], ends: bool, role: Role) -> Task {
        let mut builder = ScriptBuilder::new();
        ops.iter().for_each(|&op| builder.push(op));
        Task { ends, role, ..Task::new("t", Program::Recorded(builder.finish())) }
    }

    #[test]
    fn a_server_belongs_to_the_client_that_ends() {
        let of = |tasks| endless(&Workload::new("w", "a test", tasks, 0));
        let fore = |ops: &[Op], ends| task(ops, ends, Role::Foreground);
        let client = fore(&[Op::Wake(TaskId(1))], true);
        let server = || fore(&[Op::Block], false);
        assert_eq!(of(vec![client, server(), server()]), [false, false, true]);
        // The background joins nothing.
        let link = task(&[Op::Wake(TaskId(0)), Op::Wake(TaskId(1))], false, Role::Background);
        assert_eq!(of(vec![fore(&[], true), server(), link]), [false, true, false]);
        // Recordings have no locks; those of a pattern join the tasks that use them.
        let locked = |ends| Task { ends, ..Task::new("t", Program::Pattern(pattern(vec![Step::Lock(0)]))) };
        let mut w = Workload::new("w", "a test", vec![locked(true), locked(false)], 0);
        w.locks = 1;
        assert_eq!(endless(&w), [false, false]);
    }
}
