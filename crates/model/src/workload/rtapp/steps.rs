//! What rt-app's events are as steps, and whether a round of them can be gone through.

use super::{Event, Thread};
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
        if let Some(name) = &thread.waits_on {
            waiters.entry(name).or_default().extend(copies);
        }
    }
    waiters
}

impl Event {
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
            Event::Run(us) => {
                let cycles = u128::from(*us) * u128::from(khz) / 1000;
                steps.push(Step::Run(Dist::Fixed(u64::try_from(cycles).unwrap_or(u64::MAX))));
            }
            Event::Sleep(us) => steps.push(Step::Sleep(Dist::Fixed(us * 1000))),
            Event::Timer(us) => steps.push(Step::Period(us * 1000)),
            Event::Wait(None) => steps.push(Step::Block),
            Event::Wait(Some(l)) => steps.extend([Step::Unlock(*l), Step::Block, Step::Lock(*l)]),
            Event::Lock(l) => steps.push(Step::Lock(*l)),
            Event::Unlock(l) => steps.push(Step::Unlock(*l)),
            Event::Wake { name, all, key } => {
                let waiters = waiters.get(name.as_str()).filter(|w| !w.is_empty());
                let waiters = waiters.ok_or_else(|| {
                    format!(
                        "'{key}': nobody waits on '{name}'; expected a task with suspend or wait of that name"
                    )
                })?;
                // Whoever wakes does not wait.
                let others = || waiters.iter().filter(|w| **w != id);
                if !all && others().count() > 1 {
                    return Err(format!(
                        "'{key}': several wait on '{name}'; expected broad, or one that waits"
                    ));
                }
                steps.extend(others().map(|w| Step::Wake(TaskId(*w))));
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

/// A task without an end that is woken, at first or last, by one that it wakes: both would go on for ever.
pub(super) fn endless(tasks: &[Task]) -> Option<&Task> {
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
    (0..tasks.len()).find(|&t| wakers[t] > 0 && !steps(t).is_empty()).map(|t| &tasks[t])
}
