//! The work's progress: when the foreground was released and done, how much of that was waiting for timers, and how long
//! each episode took.
//!
//! # Episodes
//!
//! An episode begins with an outside cause: a timer, a device, or a wake-up by a task of the other role. It spreads with
//! the wake-ups among tasks of its role, and is over when the last task that it let run waits again. A task's run belongs
//! to the wake-up that made it runnable; one that came before its block is kept and belongs to what follows that block.
//!
//! An episode's name is its first task and a number: the how-manieth outside cause of that task it is. Programs do not
//! depend on policies, so the name means the same work under each of them. Of a recorded background that is repeated, the
//! first pass has episodes.
//!
//! Two wake-ups of a task may come in another order than they were recorded in: a message overtakes another, and the task,
//! which goes through its recording, does the work of the one when the other comes. Neither of two readings is right by
//! itself then. Where runs keep the episode that they had when recorded ([`wattwise_model::workload::episodes`]), a
//! message that was answered at once waits for the one that it overtook. Where they go to the message that came, the short
//! one has the long one's work. An episode is over when it is over by the first, or by the second if that had no less work,
//! but for a factor of [`ONE_SIZE`]. Without a change of order they are one.
//!
//! # Critical path
//!
//! Each task carries the length of timer sleeps on the chain of wake-ups that led to where it is. A task that is woken
//! takes over its waker's, since it could not go on before. What the last foreground task has at its end is the timers'
//! part of the makespan.

use std::collections::VecDeque;
use std::sync::Arc;
use wattwise_model::workload::{EpisodeLabels, EpisodeName, Pattern, Program, Step, Workload};

/// Messages whose work differs by no more than this factor are of one size: it is that of the classes by which responses are judged.
const ONE_SIZE: f64 = 4.0;

/// From an episode's cause to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Episode {
    /// When its cause came, in ns since the start.
    pub began_ns: u64,
    /// The runs that it had when it was recorded.
    pub recorded: EpisodeRuns,
    /// The runs that its wake-ups led to here; none where the work is not of a recording.
    pub caused: EpisodeRuns,
}

/// How far an episode has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpisodeRuns {
    /// Cycles carried out in them.
    pub cycles: f64,
    /// When the last run of it so far ended, in ns since the start; 0 while none has.
    pub ended_ns: u64,
    /// Some task has still to run or to end its run in it.
    pub open: bool,
}

impl EpisodeRuns {
    /// When it was over, or `now_ns` if it is not; `None` where nothing of it has run.
    fn by(self, now_ns: u64) -> Option<u64> {
        let end = if self.open { now_ns.max(self.ended_ns) } else { self.ended_ns };
        (end > 0).then_some(end)
    }
}

impl Episode {
    /// How long it took, in ns; of one that is still open, how long it has taken by `now_ns`. `None` where its cause has not
    /// come by then.
    pub fn response_ns(&self, now_ns: u64) -> Option<u64> {
        let recorded = self.recorded.by(now_ns)?;
        let caused = self.caused.by(now_ns).filter(|_| self.is_work_of_its_size());
        let end = caused.map_or(recorded, |caused| caused.min(recorded));
        (self.began_ns <= now_ns).then(|| end.saturating_sub(self.began_ns))
    }

    /// Whether it is not over.
    pub fn is_open(&self) -> bool {
        let over = !self.caused.open && self.caused.ended_ns > 0 && self.is_work_of_its_size();
        self.recorded.open && !over
    }

    /// Whether what its wake-ups led to is no less work than it had when recorded, but for what tells two messages of one kind apart.
    fn is_work_of_its_size(&self) -> bool {
        self.caused.cycles >= self.recorded.cycles / ONE_SIZE
    }
}

/// A sleep to an absolute time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The time, in ns since the start.
    pub due_ns: u64,
    /// It had passed when the task came to sleep: the period before it was overrun.
    pub overrun: bool,
}

/// What the work has come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkOutcome {
    /// When it was released, in ns since the start.
    pub released_ns: u64,
    /// When the last task that ends had ended; `None` while one is left, or where none ends.
    pub ended_ns: Option<u64>,
    /// When all its programs had been carried out; `None` before.
    pub done_ns: Option<u64>,
    /// Cycles of foreground work carried out.
    pub cycles: f64,
    /// Cycles of background work carried out.
    pub background_cycles: f64,
    /// Part of the critical path that is timer sleep, in ns.
    pub timer_ns: u64,
    /// The sleeps of each foreground task to absolute times, in their order; empty for background tasks.
    pub periods: Vec<Vec<Period>>,
    /// The episodes of each task, in their order.
    pub episodes: Vec<Vec<Episode>>,
}

/// An episode's name.
type Name = EpisodeName;

/// What a wake-up hands on.
#[derive(Clone, Copy, Debug)]
struct WorkCause {
    /// The episode that the waker's run had when recorded, and the one whose wake-ups led to it here.
    recorded: Option<Name>,
    caused: Option<Name>,
    timer_ns: u64,
}

/// One task's part in it.
#[derive(Clone, Debug, Default)]
struct TaskPart {
    foreground: bool,
    /// It goes through its program once more: what it does now has no episode.
    again: bool,
    /// Its end is part of the makespan.
    ends: bool,
    /// Its program is finite: it counts until it has been carried out.
    finite: bool,
    /// A server: its program has no end.
    server: bool,
    /// A server that has something to do.
    serving: bool,
    /// The episode that its run had when recorded, and the one whose wake-ups led to it here.
    recorded: Option<Name>,
    caused: Option<Name>,
    /// Timer sleep on the chain that led here, in ns.
    timer_ns: u64,
    /// Causes of wake-ups that came before their block.
    early: VecDeque<WorkCause>,
    /// Blocks that it has passed.
    blocks: usize,
}

/// The foreground's progress.
pub(super) struct WorkProgress {
    parts: Vec<TaskPart>,
    /// Foreground tasks that count towards the makespan and have not ended.
    unended: usize,
    /// Foreground tasks whose finite programs have not been carried out, and servers that have something to do.
    unfinished: usize,
    /// Where blocks of a recording lead, whoever ends them here.
    labels: Option<Arc<EpisodeLabels>>,
    outcome: WorkOutcome,
}

fn episode_of(all: &mut [Vec<Episode>], name: Option<Name>) -> Option<&mut Episode> {
    let (first, nth) = name?;
    all[first as usize].get_mut(nth as usize)
}

/// Whether a pattern comes to an end.
fn finite(pattern: &Pattern) -> bool {
    pattern.rounds != u64::MAX
        || pattern.until_ns != u64::MAX
        || pattern.steps.iter().any(|s| matches!(s, Step::Take(_)))
}

impl WorkProgress {
    /// Everything is still to be done.
    pub(super) fn new(workload: &Workload) -> WorkProgress {
        let part = |t: &wattwise_model::workload::Task| {
            let foreground = t.is_foreground();
            let finite = match &t.program {
                Program::Recorded(_) => true,
                Program::Pattern(p) => finite(p),
            };
            let server = foreground && !finite;
            TaskPart {
                foreground,
                ends: foreground && t.ends,
                finite: foreground && finite,
                server,
                serving: server,
                ..TaskPart::default()
            }
        };
        let parts: Vec<TaskPart> = workload.tasks.iter().map(part).collect();
        let unended = parts.iter().filter(|p| p.ends).count();
        let unfinished = parts.iter().filter(|p| p.finite || p.server).count();
        let outcome = WorkOutcome {
            released_ns: workload.release_ns,
            periods: vec![Vec::new(); parts.len()],
            episodes: vec![Vec::new(); parts.len()],
            ..WorkOutcome::default()
        };
        WorkProgress { parts, unended, unfinished, labels: workload.episodes.clone(), outcome }
    }

    pub(super) fn outcome(&self) -> WorkOutcome {
        let mut outcome = self.outcome.clone();
        let mut opens = |name: Option<Name>, end: fn(&mut Episode) -> &mut EpisodeRuns| {
            if let Some(episode) = episode_of(&mut outcome.episodes, name) {
                end(episode).open = true;
            }
        };
        for part in &self.parts {
            let early = part.early.iter().map(|c| (c.recorded, c.caused));
            for (recorded, caused) in std::iter::once((part.recorded, part.caused)).chain(early) {
                opens(recorded, |e| &mut e.recorded);
                opens(caused, |e| &mut e.caused);
            }
        }
        outcome
    }

    /// Whether all finite foreground programs have been carried out.
    pub(super) fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Whether this task's program counts and has not been carried out, if it has not ended.
    pub(super) fn is_unfinished(&self, t: usize) -> bool {
        self.parts.get(t).is_some_and(|part| part.finite || part.serving)
    }

    /// Whether the makespan is over.
    pub(super) fn has_ended(&self) -> bool {
        self.unended == 0
    }

    /// A task's piece of work has been carried out.
    #[inline]
    pub(super) fn worked(&mut self, t: u32, cycles: f64) {
        let Some(part) = self.parts.get(t as usize) else { return };
        if part.foreground {
            self.outcome.cycles += cycles;
        } else {
            self.outcome.background_cycles += cycles;
        }
        if let Some(episode) = episode_of(&mut self.outcome.episodes, part.recorded) {
            episode.recorded.cycles += cycles;
        }
        if let Some(episode) = episode_of(&mut self.outcome.episodes, part.caused) {
            episode.caused.cycles += cycles;
        }
    }

    /// A task sleeps from now until `due`, which a late one finds past.
    pub(super) fn sleeps(&mut self, t: u32, now: u64, due: u64, timer: bool) {
        self.leaves(t, now);
        let released = self.outcome.released_ns;
        let Some(part) = self.parts.get_mut(t as usize) else { return };
        if timer {
            part.timer_ns += due.max(released).saturating_sub(now.max(released));
        }
        self.begins(t, due);
    }

    /// A task sleeps until an absolute time.
    pub(super) fn period(&mut self, t: u32, now: u64, due_ns: u64) {
        if self.parts.get(t as usize).is_some_and(|p| p.foreground) {
            self.outcome.periods[t as usize].push(Period { due_ns, overrun: due_ns <= now });
        }
    }

    /// A recorded background task has come to the end of its program and will go through it once more.
    pub(super) fn repeats(&mut self, t: u32, now: u64) {
        self.leaves(t, now);
        if let Some(part) = self.parts.get_mut(t as usize) {
            part.again = true;
        }
    }

    /// A task blocks until somebody wakes it: its run is over.
    pub(super) fn blocks(&mut self, t: u32, now: u64) {
        self.leaves(t, now);
        if self.parts.get_mut(t as usize).is_some_and(|p| std::mem::take(&mut p.serving)) {
            self.finishes(now);
        }
    }

    /// One less has something to do.
    fn finishes(&mut self, now: u64) {
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.outcome.done_ns = Some(now);
        }
    }

    /// A task waits: its run is over.
    fn leaves(&mut self, t: u32, now: u64) {
        let Some(part) = self.parts.get_mut(t as usize) else { return };
        let episodes = &mut self.outcome.episodes;
        if let Some(episode) = episode_of(episodes, part.recorded.take()) {
            episode.recorded.ended_ns = episode.recorded.ended_ns.max(now);
        }
        if let Some(episode) = episode_of(episodes, part.caused.take()) {
            episode.caused.ended_ns = episode.caused.ended_ns.max(now);
        }
    }

    /// An outside cause lets a task run from `at` on.
    fn begins(&mut self, t: u32, at: u64) {
        let part = &mut self.parts[t as usize];
        if !part.again {
            let of = &mut self.outcome.episodes[t as usize];
            part.recorded = Some((t, of.len() as u32));
            // Without a recorded order nothing can differ from it.
            part.caused = part.recorded.filter(|_| self.labels.is_some());
            of.push(Episode { began_ns: at, ..Episode::default() });
        }
    }

    /// What `waker` hands on to `woken`: an episode spreads among tasks of one role.
    fn cause(&self, waker: u32, woken: u32) -> WorkCause {
        let role = |t: u32| self.parts.get(t as usize).map(|p| p.foreground);
        match self.parts.get(waker as usize) {
            None => WorkCause { recorded: None, caused: None, timer_ns: 0 },
            Some(p) => {
                let of_one_role = |name: Option<Name>| name.filter(|_| role(waker) == role(woken));
                WorkCause {
                    recorded: of_one_role(p.recorded),
                    caused: of_one_role(p.caused),
                    timer_ns: p.timer_ns,
                }
            }
        }
    }

    fn resumes(&mut self, t: u32, now: u64, cause: WorkCause) {
        let Some(part) = self.parts.get_mut(t as usize) else { return };
        part.timer_ns = cause.timer_ns;
        if part.server && !part.serving {
            part.serving = true;
            self.unfinished += 1;
        }
        let block = part.blocks;
        part.blocks += 1;
        let episode = match &self.labels {
            Some(labels) => labels.after_block(t, block),
            None => cause.recorded,
        };
        match episode {
            Some(_) if !part.again => (part.recorded, part.caused) = (episode, cause.caused),
            Some(_) => {}
            None => self.begins(t, now),
        }
    }

    /// A task wakes another that is blocked.
    pub(super) fn woken(&mut self, t: u32, waker: u32, now: u64) {
        let cause = self.cause(waker, t);
        self.resumes(t, now, cause);
    }

    /// A task wakes another that has not blocked yet.
    pub(super) fn woken_early(&mut self, t: u32, waker: u32) {
        let cause = self.cause(waker, t);
        if let Some(part) = self.parts.get_mut(t as usize) {
            part.early.push_back(cause);
        }
    }

    /// A task passes a block whose wake-up has come before.
    pub(super) fn passes(&mut self, t: u32, now: u64) {
        self.leaves(t, now);
        let cause = self.parts.get_mut(t as usize).and_then(|p| p.early.pop_front());
        if let Some(cause) = cause {
            self.resumes(t, now, cause);
        }
    }

    /// A task's program has been carried out.
    pub(super) fn ends(&mut self, t: u32, now: u64) {
        self.leaves(t, now);
        let Some(part) = self.parts.get_mut(t as usize) else { return };
        if std::mem::take(&mut part.ends) {
            self.unended -= 1;
            if self.unended == 0 {
                self.outcome.ended_ns = Some(now);
                self.outcome.timer_ns = part.timer_ns;
            }
        }
        if std::mem::take(&mut part.finite) {
            self.finishes(now);
        }
    }
}
