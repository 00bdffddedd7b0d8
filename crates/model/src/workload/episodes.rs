//! To which episode each run of a recording belongs.
//!
//! An episode begins with an outside cause and spreads with wake-ups among tasks of one role: the foreground is outside to
//! the background, and the other way round. In a replay two wake-ups of one task may come in another order than recorded,
//! and a long run would then count for another episode than under another policy. So episodes are found once, in the
//! recorded order, and a replay looks up which one a block leads into.

use super::{Op, Program, Role, ScriptPosition, Workload};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// An episode's name: the task whose outside cause began it, and the how-manieth of that task it is.
pub type EpisodeName = (u32, u32);

/// For each task, where each of its blocks leads: into another task's episode, or (`None`) into a new one of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpisodeLabels {
    tasks: Vec<Vec<Option<EpisodeName>>>,
}

impl EpisodeLabels {
    /// Where block number `block` of a task leads.
    pub fn after_block(&self, task: u32, block: usize) -> Option<EpisodeName> {
        self.tasks.get(task as usize)?.get(block).copied().flatten()
    }
}

/// A task on its way through the recording.
#[derive(Default)]
struct Walker {
    at: ScriptPosition,
    now: u64,
    blocked: bool,
    foreground: bool,
    /// Its present episode.
    episode: Option<EpisodeName>,
    /// Episodes that it began.
    own: u32,
    /// Episodes of wake-ups that came before their block.
    early: VecDeque<Option<EpisodeName>>,
    labels: Vec<Option<EpisodeName>>,
}

impl Walker {
    fn begins(&mut self, task: u32) {
        self.episode = Some((task, self.own));
        self.own += 1;
    }

    /// A block of it ends, by a wake-up in this episode; `None`: by one from outside.
    fn resumes(&mut self, task: u32, cause: Option<EpisodeName>) {
        self.labels.push(cause);
        match cause {
            Some(_) => self.episode = cause,
            None => self.begins(task),
        }
    }
}

impl Workload {
    /// Finds the episodes of a recording, in whose order its tasks go through their programs.
    pub fn label_episodes(&mut self) {
        let Some(recorded) = &self.recorded else { return };
        let ns_per_cycle = 1e6 / f64::from(recorded.khz.max(1));
        let walker = |t: &super::Task| Walker { foreground: t.role == Role::Foreground, ..Walker::default() };
        let mut walkers: Vec<Walker> = self.tasks.iter().map(walker).collect();
        let mut ready: BinaryHeap<Reverse<(u64, u32)>> =
            (0..walkers.len() as u32).map(|t| Reverse((0, t))).collect();
        while let Some(Reverse((_, t))) = ready.pop() {
            let Program::Recorded(script) = &self.tasks[t as usize].program else { continue };
            let w = &mut walkers[t as usize];
            let Some(op) = script.step(&mut w.at) else { continue };
            match op {
                Op::OnCpu { at_ns, .. } => w.now = w.now.max(at_ns),
                Op::Run { cycles, stall_ns } => {
                    w.now =
                        w.now.saturating_add((cycles as f64 * ns_per_cycle) as u64).saturating_add(stall_ns);
                }
                Op::SleepFor(ns) | Op::Io(ns) => {
                    w.now = w.now.saturating_add(ns);
                    w.begins(t);
                }
                Op::SleepUntil(at) => {
                    w.now = w.now.max(at);
                    w.begins(t);
                }
                Op::Block => match w.early.pop_front() {
                    Some(cause) => w.resumes(t, cause),
                    None => {
                        w.blocked = true;
                        continue;
                    }
                },
                Op::Wake(other) => {
                    let (cause, now, foreground) = (w.episode, w.now, w.foreground);
                    if let Some(woken) = walkers.get_mut(other.0 as usize) {
                        let cause = cause.filter(|_| woken.foreground == foreground);
                        if std::mem::take(&mut woken.blocked) {
                            woken.now = woken.now.max(now);
                            woken.resumes(other.0, cause);
                            ready.push(Reverse((woken.now, other.0)));
                        } else {
                            woken.early.push_back(cause);
                        }
                    }
                }
                Op::Lock(_) | Op::Unlock(_) => {}
            }
            ready.push(Reverse((walkers[t as usize].now, t)));
        }
        let tasks = walkers.into_iter().map(|w| w.labels).collect();
        self.episodes = Some(Arc::new(EpisodeLabels { tasks }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Recorded, ScriptBuilder, Task, TaskId};

    fn task(ops: &[Op]) -> Task {
        let mut builder = ScriptBuilder::new();
        ops.iter().for_each(|&op| builder.push(op));
        Task::new("t", Program::Recorded(builder.finish()))
    }

    /// Two timers wake one task, which has both wake-ups before its second block: in the recorded order.
    #[test]
    fn labels_follow_the_recorded_order() {
        let waker = |at| task(&[Op::SleepUntil(at), Op::SleepUntil(at + 1), Op::Wake(TaskId(2))]);
        let woken = task(&[Op::Block, Op::Run { cycles: 10, stall_ns: 0 }, Op::Block, Op::Io(5), Op::Block]);
        let background = Task { role: Role::Background, ..task(&[Op::SleepUntil(90), Op::Wake(TaskId(2))]) };
        let mut w = Workload::new("w", "a test", vec![waker(50), waker(40), woken, background], 0);
        w.recorded = Some(Recorded::new(2, 1_000_000));
        w.label_episodes();
        let labels = w.episodes.expect("a recording");
        assert_eq!(labels.after_block(2, 0), Some((1, 1)), "the second timer of the task that came first");
        assert_eq!(labels.after_block(2, 1), Some((0, 1)));
        assert_eq!(labels.after_block(2, 2), None, "the background is outside");
        assert_eq!(labels.after_block(9, 0), None);
    }
}
