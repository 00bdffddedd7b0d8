//! One first-come first-served queue for all CPUs, no preemption: the textbook station.

use super::{CoreUse, FAIR, Order, Placement, Waking};
use crate::sched::Scheduler;

/// `fifo`
pub static FIFO: Placement = Placement {
    name: "fifo",
    summary: "one queue for all CPUs, first come, first served",
    heeds_kept_cpus: false,
    choose,
    order: Order::Arrival,
    one_queue: true,
    ..FAIR
};

/// An idle CPU; without one, the first CPU, which keeps the queue.
fn choose(s: &mut Scheduler<'_>, _: &Waking, _: &dyn CoreUse) -> usize {
    s.idle_set.first_common(&s.allowed).unwrap_or(0)
}
