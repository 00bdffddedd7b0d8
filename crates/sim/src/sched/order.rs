//! In which order the tasks that wait for a CPU go, and when a running one gives way.
//!
//! A placement names its order. [`FairShare`] is here since most have it; the others are with the placement that brings them.

use super::queue::{Entity, Queue};
use super::{MOST_AHEAD_NS, SLICE_NS, Scheduler, WAKE_GRANULARITY_NS};
use crate::calendar::NEVER;

/// What becomes of a task that was queued behind a running one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contest {
    /// It preempts the running one.
    Preempts,
    /// The running one may have to share its CPU from now on.
    Shares,
    /// It waits until the running one is done.
    WaitsInLine,
}

/// The order of waiting tasks.
pub(super) trait QueueOrder: Sync {
    /// Whether real-time tasks go before all others.
    fn realtime_first(&self) -> bool {
        true
    }

    /// A task that wakes or arrives is about to be queued.
    fn joins(&self, _queue: &Queue, _entity: &mut Entity) {}

    /// Which of several waiting tasks goes next: its place in the queue.
    fn next(&self, s: &Scheduler<'_>, queue: &Queue) -> usize;

    /// Task `t` has been queued on CPU `c`, where `running` runs.
    fn contest(&self, s: &mut Scheduler<'_>, c: usize, t: u32, running: u32, now: u64) -> Contest;

    /// When the running task's slice ends while others wait: it was to end at `slice_end`. `None`: nobody shares.
    fn slice_end(&self, queue: &Queue, running: &Entity, now: u64, slice_end: u64) -> Option<u64>;

    /// Charges task `t` for having run for `ran` ns on CPU `c`.
    fn charge(&self, _s: &mut Scheduler<'_>, _c: usize, _t: u32, _ran: u64, _now: u64) {}

    /// A task wakes on another CPU than it slept on.
    fn wakes_elsewhere(&self, _s: &mut Scheduler<'_>, _t: u32, _to: usize) {}

    /// Since when a queued task waits, for who wants to steal it.
    fn waits_since(&self, entity: &Entity) -> u64 {
        entity.queued_at
    }

    /// Whether a task whose run went on elsewhere or at another time, as recorded, has to leave CPU `c`.
    fn yields(&self, _s: &Scheduler<'_>, _t: u32, _c: usize) -> bool {
        false
    }

    /// Whether a task that CPU `c` has picked moves there only now; asked where the placement reads recorded runs.
    fn arrives(&self, _entity: &Entity, _c: usize) -> bool {
        false
    }
}

/// The place of the waiting task with the least of a figure, of equals the first.
pub(super) fn least(s: &Scheduler<'_>, queue: &Queue, of: impl Fn(&Entity) -> u64) -> usize {
    let all = queue.fair.iter().enumerate();
    all.min_by_key(|&(at, &t)| (of(s.entity(t)), at)).map_or(0, |(at, _)| at)
}

/// Whoever has had least of its share first: virtual time. Real-time tasks come before all others.
pub(super) struct FairShare;

impl QueueOrder for FairShare {
    fn joins(&self, queue: &Queue, entity: &mut Entity) {
        // Virtual times are the queue's own: bring the task to this one's clock, at most half a slice
        // behind, and not so far ahead as another queue's clock may have been.
        let clock = queue.clock;
        entity.vruntime = entity.vruntime.clamp(clock.saturating_sub(SLICE_NS / 2), clock + MOST_AHEAD_NS);
    }

    fn next(&self, s: &Scheduler<'_>, queue: &Queue) -> usize {
        least(s, queue, |entity| entity.vruntime)
    }

    fn contest(&self, s: &mut Scheduler<'_>, c: usize, t: u32, running: u32, now: u64) -> Contest {
        s.charge(c, running, now);
        let (new, old) = (s.entity(t), s.entity(running));
        let preempts = if new.realtime || old.realtime {
            new.realtime && !old.realtime
        } else {
            new.vruntime + WAKE_GRANULARITY_NS < old.vruntime
        };
        if preempts { Contest::Preempts } else { Contest::Shares }
    }

    fn slice_end(&self, queue: &Queue, running: &Entity, now: u64, slice_end: u64) -> Option<u64> {
        Some(if !queue.realtime.is_empty() && !running.realtime {
            now
        } else if slice_end == NEVER {
            now + SLICE_NS
        } else {
            slice_end
        })
    }

    /// The queue's clock follows whoever is furthest behind.
    fn charge(&self, s: &mut Scheduler<'_>, c: usize, t: u32, ran: u64, now: u64) {
        s.queues[c].busy_ns += ran;
        let entity = &mut s.entities[t as usize];
        entity.charge(ran, now);
        let mut least = entity.vruntime;
        let queue = &s.queues[c];
        if !queue.fair.is_empty() {
            let waiting = queue.fair.iter().map(|&t| s.entity(t).vruntime).min();
            least = least.min(waiting.unwrap_or(least));
        }
        let queue = &mut s.queues[c];
        queue.clock = queue.clock.max(least);
    }

    fn wakes_elsewhere(&self, s: &mut Scheduler<'_>, t: u32, to: usize) {
        s.carry_over(t, s.cpu_of(t), to);
    }
}
