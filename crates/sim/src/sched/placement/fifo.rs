//! One first-come first-served queue for all CPUs, no preemption: the textbook station.

use super::{CoreUse, FAIR, Placement, Waking};
use crate::sched::balance::{Pulled, Runner, Steal, Thief};
use crate::sched::order::{Contest, QueueOrder};
use crate::sched::queue::{Entity, Queue};
use crate::sched::{Scheduler, balance};

/// `fifo`
pub static FIFO: Placement = Placement {
    name: "fifo",
    summary: "one queue for all CPUs, first come, first served",
    heeds_kept_cpus: false,
    choose,
    order: &Arrival,
    steal: &OneQueue,
    evens_out: balance::never,
    ..FAIR
};

/// An idle CPU; without one, the first CPU, which keeps the queue.
fn choose(s: &mut Scheduler<'_>, _: &Waking, _: &dyn CoreUse) -> usize {
    s.idle_set.first_common(&s.allowed).unwrap_or(0)
}

/// First come, first served: nobody preempts or has a slice, so that a CPU that works need not be told who waits.
struct Arrival;

impl QueueOrder for Arrival {
    fn next(&self, _: &Scheduler<'_>, _: &Queue) -> usize {
        0
    }

    fn contest(&self, _: &mut Scheduler<'_>, _: usize, _: u32, _: u32, _: u64) -> Contest {
        Contest::WaitsInLine
    }

    fn slice_end(&self, _: &Queue, _: &Entity, _: u64, _: u64) -> Option<u64> {
        None
    }
}

/// The first CPU's queue is everybody's: a CPU without work takes its next task there, which is no move.
struct OneQueue;

impl Steal for OneQueue {
    /// CPU 0 looks into its own queue again, in vain: that is cheaper than a branch which cannot be predicted.
    fn pull(&self, s: &mut Scheduler<'_>, _: usize, _: u64, _: Runner<'_>) -> Option<Pulled> {
        s.pick(0).map(Pulled::OwnQueue)
    }

    fn may_go(&self, _: &Scheduler<'_>, _: u32, _: usize, _: &Thief) -> bool {
        false
    }
}
