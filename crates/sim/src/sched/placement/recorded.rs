//! The CPU on which it ran when recorded (same number of CPUs only), in the order in which the
//! recorded scheduler served the tasks: whoever is furthest behind the recording goes first. At the
//! recorded speed that repeats the recording's own decisions; at another, all fall back evenly. A
//! task that waits for 4 ms longer than it did while a CPU idles is moved all the same.

use super::{CoreUse, FAIR, Placement, Waking};
use crate::sched::balance::LongestWaiting;
use crate::sched::order::{Contest, QueueOrder, least};
use crate::sched::queue::{Entity, Queue};
use crate::sched::{Scheduler, balance};

/// A task that has waited for this much longer than it did, one tick of a 250 Hz kernel, is not where the recording
/// machine's balance would have left it.
const LATE_NS: u64 = 4_000_000;

/// `recorded`
pub static RECORDED: Placement = Placement {
    name: "recorded",
    summary: "the CPU of the recording; where it had as many CPUs",
    heeds_kept_cpus: false,
    choose,
    reads_recorded_runs: true,
    order: &AsRecorded,
    steal: &LongestWaiting { pull_ns: LATE_NS, balance_ns: LATE_NS },
    evens_out: balance::never,
    // What distance costs is in the recorded runs.
    distance_ns: |_, _| 0,
    ..FAIR
};

/// Whoever is furthest behind the recording goes first, real-time or not: the recording has their order, and its runs are the
/// slices.
struct AsRecorded;

impl QueueOrder for AsRecorded {
    fn realtime_first(&self) -> bool {
        false
    }

    fn next(&self, s: &Scheduler<'_>, queue: &Queue) -> usize {
        least(s, queue, |entity| entity.order)
    }

    fn contest(&self, s: &mut Scheduler<'_>, c: usize, t: u32, running: u32, now: u64) -> Contest {
        s.charge(c, running, now);
        if s.entity(t).order < s.entity(running).order { Contest::Preempts } else { Contest::Shares }
    }

    fn slice_end(&self, _: &Queue, _: &Entity, _: u64, slice_end: u64) -> Option<u64> {
        Some(slice_end)
    }

    /// Since when it waits longer than it did.
    fn waits_since(&self, entity: &Entity) -> u64 {
        entity.queued_at.max(entity.order)
    }

    /// It ran on elsewhere, or after another that waits here.
    fn yields(&self, s: &Scheduler<'_>, t: u32, c: usize) -> bool {
        let order = s.entity(t).order;
        s.hint(t).is_some_and(|hint| hint != c) || s.queues[c].fair.iter().any(|&q| s.entity(q).order < order)
    }

    /// One that has been put off comes from where it was.
    fn arrives(&self, entity: &Entity, c: usize) -> bool {
        entity.cpu as usize != c
    }
}

fn choose(s: &mut Scheduler<'_>, w: &Waking, _: &dyn CoreUse) -> usize {
    if (w.hint as usize) < s.queues.len() { w.hint as usize } else { w.last }
}
