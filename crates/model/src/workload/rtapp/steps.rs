//! What rt-app's events are as steps, and whether a round of them can be gone through.

use super::{Event, MOST_STEPS, Thread};
use crate::workload::{Dist, Program, Step, Task, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// Who waits on each name: threads by their numbers.
pub(super) type Waiters<'a> = BTreeMap<&'a str, Vec<u32>>;

pub(super) fn waiters(threads: &[Thread]) -> Waiters<'_> {
    let mut waiters = Waiters::new();
    let mut next = 0;
    for thread in threads {
        let copies = next..next + thread.count as u32;
        next = copies.end;
        let names: BTreeSet<&str> = thread.events().filter_map(Event::waits_on).collect();
        names.into_iter().for_each(|name| waiters.entry(name).or_default().extend(copies.clone()));
    }
    waiters
}

/// A time of a file's, from us.
pub(super) fn nanoseconds(us: u64) -> u64 {
    us.saturating_mul(1000)
}

pub(super) fn missing(key: &str, name: &str) -> String {
    format!("'{key}': nobody waits on '{name}'; expected a task with suspend or wait of that name")
}

pub(super) fn too_many() -> String {
    format!(
        "its phases are more than {MOST_STEPS} steps in all, with those of the tasks before it; expected fewer loops or a shorter \
         duration"
    )
}

impl Event {
    /// The name that it shares with other tasks.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Event::Wait { name, .. } | Event::Wake { name, .. } | Event::Barrier(name) => Some(name),
            _ => None,
        }
    }

    /// The name on which it waits to be woken.
    pub(super) fn waits_on(&self) -> Option<&str> {
        match self {
            Event::Wait { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The name of the barrier at which it waits.
    pub(super) fn barrier(&self) -> Option<&str> {
        match self {
            Event::Barrier(name) => Some(name),
            _ => None,
        }
    }

    /// So many us at the reference clock.
    pub(super) fn run(us: u64, khz: u32) -> Step {
        let cycles = u128::from(us) * u128::from(khz) / 1000;
        Step::Run(Dist::Fixed(u64::try_from(cycles).unwrap_or(u64::MAX)))
    }

    /// What thread number `id` does for it.
    pub(super) fn steps(
        &self,
        id: u32,
        khz: u32,
        waiters: &Waiters<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        match self {
            // At once, as rt-app has it.
            Event::Run(0) | Event::Sleep(0) => {}
            Event::Run(us) => steps.push(Event::run(*us, khz)),
            Event::Sleep(us) => steps.push(Step::Sleep(Dist::Fixed(nanoseconds(*us)))),
            Event::Timer(us) => steps.push(Step::Period(nanoseconds(*us))),
            Event::Wait { mutex: None, .. } => steps.push(Step::Block),
            Event::Wait { mutex: Some(l), .. } => {
                steps.extend([Step::Unlock(*l), Step::Block, Step::Lock(*l)])
            }
            // Whoever meets at one has its steps by the reference run.
            Event::Barrier(_) => {}
            Event::Lock(l) => steps.push(Step::Lock(*l)),
            Event::Unlock(l) => steps.push(Step::Unlock(*l)),
            Event::Wake { name, key, .. } => {
                let waiters = waiters.get(name.as_str()).ok_or_else(|| missing(key, name))?;
                // A task does not wake itself.
                steps.extend(waiters.iter().filter(|w| **w != id).map(|w| Step::Wake(TaskId(*w))));
            }
        }
        Ok(())
    }
}

/// Whether a round takes and gives mutexes in turn.
pub(super) fn balanced(steps: &[Step]) -> Result<(), String> {
    let mut held = BTreeSet::new();
    for step in steps {
        match step {
            Step::Lock(l) if !held.insert(l) => {
                return Err("takes a mutex twice; expected unlock first".into());
            }
            Step::Unlock(l) if !held.remove(l) => {
                return Err(
                    "gives back a mutex that it has not; expected lock before unlock, wait and sync".into()
                );
            }
            _ => {}
        }
    }
    if held.is_empty() { Ok(()) } else { Err("keeps a mutex after its round; expected unlock".into()) }
}

/// Leaves of a round that goes on beyond the end what begins before it, once no mutex is held; whether that is less than all.
pub(super) fn cut(steps: &mut Vec<Step>, start_ns: u64, until_ns: u64, khz: u32) -> bool {
    let (mut now, mut due, mut held) = (start_ns, None, 0);
    let over = steps.iter().position(|step| {
        let over = now >= until_ns && held == 0;
        match step {
            Step::Run(cycles) => {
                let ns = u128::from(cycles.max()) * 1_000_000 / u128::from(khz);
                now = now.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX));
            }
            Step::Sleep(ns) => now = now.saturating_add(ns.max()),
            Step::Period(ns) => {
                let at = due.unwrap_or(now).saturating_add(*ns);
                due = Some(at);
                now = now.max(at);
            }
            Step::Lock(_) => held += 1,
            Step::Unlock(_) => held -= 1,
            _ => {}
        }
        over
    });
    // Where nothing begins before the end no round does.
    let over = over.filter(|&at| at > 0);
    over.into_iter().for_each(|at| steps.truncate(at));
    over.is_some()
}

/// Tasks without an end that are woken, at first or last, by one that they wake: all would go on for ever.
pub(super) fn endless(tasks: &[Task]) -> Vec<usize> {
    let steps = |t: usize| match &tasks[t].program {
        Program::Pattern(p) if p.rounds == u64::MAX && p.until_ns == u64::MAX => &p.steps[..],
        _ => &[],
    };
    let woken = |t: usize| {
        steps(t).iter().filter_map(|s| match s {
            Step::Wake(TaskId(other)) => Some(*other as usize),
            _ => None,
        })
    };
    // Whom nobody is left to wake comes to rest, and then wakes nobody.
    let mut wakers = vec![0u32; tasks.len()];
    (0..tasks.len()).flat_map(woken).for_each(|other| wakers[other] += 1);
    let mut rest: Vec<usize> = (0..tasks.len()).filter(|&t| wakers[t] == 0).collect();
    while let Some(t) = rest.pop() {
        for other in woken(t) {
            wakers[other] -= 1;
            rest.extend((wakers[other] == 0).then_some(other));
        }
    }
    (0..tasks.len()).filter(|&t| wakers[t] > 0 && !steps(t).is_empty()).collect()
}
