//! Who wakes whom where the names alone do not tell: a run of the tasks with a CPU of the reference clock for each.
//!
//! Names are condition variables, as in rt-app: a wake-up reaches those that wait at that moment, and is lost where nobody does. When a task
//! waits depends on the clock, so that the work itself would be another under each policy. Here it is settled once: what each task
//! did in the run, and which task ended which of its waits, are the steps that every policy goes through.

use super::steps::{missing, nanoseconds, too_many};
use super::{Event, Thread};
use crate::workload::{Dist, Step, TaskId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// Runs tasks that share names.
pub(super) struct ReferenceRun<'a> {
    runners: Vec<Runner<'a>>,
    khz: u32,
    until_ns: u64,
    /// By name, in the order in which they began to wait.
    waiting: BTreeMap<&'a str, VecDeque<usize>>,
    /// All names on which some thread waits.
    waited_on: BTreeSet<&'a str>,
    /// By name, which no wait shares.
    barriers: BTreeMap<&'a str, Barrier>,
    mutexes: BTreeMap<u32, Mutex>,
    /// When a runner goes on; those of one time in the order in which they were put here.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    put: u64,
}

#[derive(Default)]
struct Barrier {
    /// How many meet there.
    members: usize,
    arrived: Vec<usize>,
}

#[derive(Default)]
struct Mutex {
    holder: Option<usize>,
    queue: VecDeque<usize>,
}

struct Runner<'a> {
    thread: &'a Thread,
    task: TaskId,
    round: u64,
    phase: usize,
    phase_round: u64,
    event: usize,
    /// When its timer is due.
    timer: Option<u64>,
    /// What it takes again when it has been woken.
    retakes: Option<u32>,
    held: BTreeSet<u32>,
    steps: Vec<Step>,
    /// Its last step is a mutex that it has not got.
    queues: bool,
    /// It went through all its rounds.
    over: bool,
}

impl<'a> Runner<'a> {
    /// The next event of its rounds and phases.
    fn next(&mut self) -> Option<&'a Event> {
        loop {
            if self.thread.rounds.is_some_and(|rounds| self.round >= rounds) {
                return None;
            }
            let Some(phase) = self.thread.phases.get(self.phase) else {
                (self.phase, self.round) = (0, self.round + 1);
                // Without any event it is over at once: nothing would ever come.
                if self.thread.phases.iter().all(|p| p.events.is_empty()) {
                    return None;
                }
                continue;
            };
            if let Some(event) = phase.events.get(self.event) {
                self.event += 1;
                return Some(event);
            }
            self.event = 0;
            self.phase_round += 1;
            if self.phase_round >= phase.rounds || phase.events.is_empty() {
                (self.phase, self.phase_round) = (self.phase + 1, 0);
            }
        }
    }
}

/// What a runner does after an event.
enum Then {
    GoesOn,
    Stops,
}

impl<'a> ReferenceRun<'a> {
    /// Of threads with the number of the task that each is.
    pub(super) fn new(
        threads: impl Iterator<Item = (&'a Thread, TaskId)>,
        khz: u32,
        until_ns: u64,
    ) -> ReferenceRun<'a> {
        let mut run = ReferenceRun {
            runners: Vec::new(),
            khz,
            until_ns,
            waiting: BTreeMap::new(),
            waited_on: BTreeSet::new(),
            barriers: BTreeMap::new(),
            mutexes: BTreeMap::new(),
            due: BinaryHeap::new(),
            put: 0,
        };
        for (thread, task) in threads {
            run.put(thread.start_ns, run.runners.len());
            run.waited_on.extend(thread.events().filter_map(Event::waits_on));
            let barriers: BTreeSet<&str> = thread.events().filter_map(Event::barrier).collect();
            barriers.into_iter().for_each(|name| run.barriers.entry(name).or_default().members += 1);
            run.runners.push(Runner {
                thread,
                task,
                round: 0,
                phase: 0,
                phase_round: 0,
                event: 0,
                timer: None,
                retakes: None,
                held: BTreeSet::new(),
                steps: Vec::new(),
                queues: false,
                over: false,
            });
        }
        run
    }

    /// The steps of each thread; of them and of what else is gone through at most `left`, which they are taken from.
    ///
    /// # Errors
    /// The thread's name and what is wrong with it.
    pub(super) fn steps(mut self, left: &mut usize) -> Result<Vec<Vec<Step>>, (&'a str, String)> {
        while let Some(Reverse((now, _, r))) = self.due.pop() {
            while let Then::GoesOn =
                self.event(r, now, left).map_err(|why| (self.runners[r].thread.name.as_str(), why))?
            {
            }
        }
        let ended = |mut r: Runner<'a>| {
            if r.queues {
                r.steps.pop();
            }
            if r.over && !r.held.is_empty() {
                return Err((
                    r.thread.name.as_str(),
                    "keeps a mutex after its round; expected unlock".into(),
                ));
            }
            // It waits for ever, or the time is up: nobody else is to wait for what it holds.
            r.steps.extend(r.held.iter().map(|l| Step::Unlock(*l)));
            Ok(r.steps)
        };
        self.runners.into_iter().map(ended).collect()
    }

    fn put(&mut self, at: u64, r: usize) {
        self.due.push(Reverse((at, self.put, r)));
        self.put += 1;
    }

    fn event(&mut self, r: usize, now: u64, left: &mut usize) -> Result<Then, String> {
        let runner = &mut self.runners[r];
        if now >= self.until_ns && runner.held.is_empty() {
            return Ok(Then::Stops);
        }
        let Some(event) = runner.next() else {
            runner.over = true;
            return Ok(Then::Stops);
        };
        let endless = self.until_ns == u64::MAX && runner.thread.rounds.is_none();
        *left = left.checked_sub(1).ok_or_else(|| match endless {
            true => "goes on for ever; expected a duration in global, or a loop of each task".to_owned(),
            false => too_many(),
        })?;
        let (step, until) = match event {
            Event::Run(0) | Event::Sleep(0) => return Ok(Then::GoesOn),
            Event::Run(us) => (Event::run(*us, self.khz), now.saturating_add(nanoseconds(*us))),
            Event::Sleep(us) => {
                let ns = nanoseconds(*us);
                (Step::Sleep(Dist::Fixed(ns)), now.saturating_add(ns))
            }
            Event::Timer(us) => {
                let due = runner.timer.unwrap_or(now).saturating_add(nanoseconds(*us));
                runner.timer = Some(due);
                (Step::Period(nanoseconds(*us)), due.max(now))
            }
            Event::Lock(l) => return self.take(r, *l),
            Event::Unlock(l) => return self.give_back(r, *l, now).map(|()| Then::GoesOn),
            Event::Wait { name, mutex } => {
                runner.retakes = *mutex;
                self.waiting.entry(name).or_default().push_back(r);
                mutex.map_or(Ok(()), |l| self.give_back(r, l, now))?;
                return Ok(Then::Stops);
            }
            Event::Wake { name, all, key } => {
                if !self.waited_on.contains(name.as_str()) {
                    return Err(missing(key, name));
                }
                let queue = self.waiting.entry(name).or_default();
                let woken: Vec<usize> =
                    if *all { queue.drain(..).collect() } else { queue.pop_front().into_iter().collect() };
                return self.wake(r, woken, now).map(|()| Then::GoesOn);
            }
            Event::Barrier(name) => {
                let barrier = self.barriers.entry(name).or_default();
                if barrier.arrived.len() + 1 < barrier.members {
                    barrier.arrived.push(r);
                    return Ok(Then::Stops);
                }
                let woken = std::mem::take(&mut barrier.arrived);
                return self.wake(r, woken, now).map(|()| Then::GoesOn);
            }
        };
        runner.steps.push(step);
        self.put(until, r);
        Ok(Then::Stops)
    }

    /// Wakes those that waited; one that takes a mutex again goes on when it has got it.
    fn wake(&mut self, r: usize, woken: Vec<usize>, now: u64) -> Result<(), String> {
        for other in woken {
            let task = self.runners[other].task;
            self.runners[r].steps.push(Step::Wake(task));
            self.runners[other].steps.push(Step::Block);
            let goes_on = match self.runners[other].retakes.take() {
                None => true,
                Some(l) => matches!(self.take(other, l)?, Then::GoesOn),
            };
            if goes_on {
                self.put(now, other);
            }
        }
        Ok(())
    }

    fn take(&mut self, r: usize, l: u32) -> Result<Then, String> {
        let runner = &mut self.runners[r];
        if runner.held.contains(&l) {
            return Err("takes a mutex twice; expected unlock first".into());
        }
        runner.steps.push(Step::Lock(l));
        let mutex = self.mutexes.entry(l).or_default();
        if mutex.holder.is_some() {
            runner.queues = true;
            mutex.queue.push_back(r);
            return Ok(Then::Stops);
        }
        mutex.holder = Some(r);
        runner.held.insert(l);
        Ok(Then::GoesOn)
    }

    fn give_back(&mut self, r: usize, l: u32, now: u64) -> Result<(), String> {
        let runner = &mut self.runners[r];
        if !runner.held.remove(&l) {
            return Err(
                "gives back a mutex that it has not; expected lock before unlock, wait and sync".into()
            );
        }
        runner.steps.push(Step::Unlock(l));
        let mutex = self.mutexes.entry(l).or_default();
        mutex.holder = mutex.queue.pop_front();
        if let Some(next) = mutex.holder {
            let next_runner = &mut self.runners[next];
            next_runner.held.insert(l);
            next_runner.queues = false;
            self.put(now, next);
        }
        Ok(())
    }
}

/// The threads whose steps are settled by a run: all that share a name, at one or more removes, with one for which `asks` holds.
pub(super) fn related(threads: &[Thread], asks: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (t, thread) in threads.iter().enumerate() {
        thread.events().filter_map(Event::name).for_each(|name| by_name.entry(name).or_default().push(t));
    }
    let mut found: BTreeSet<usize> = (0..threads.len()).filter(|t| asks(*t)).collect();
    let mut open: Vec<usize> = found.iter().copied().collect();
    while let Some(t) = open.pop() {
        for name in threads[t].events().filter_map(Event::name) {
            for other in by_name.remove(name).into_iter().flatten() {
                if found.insert(other) {
                    open.push(other);
                }
            }
        }
    }
    found
}
