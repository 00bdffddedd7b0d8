//! The CPU on which it ran when recorded (same number of CPUs only), in the order in which the
//! recorded scheduler served the tasks: whoever is furthest behind the recording goes first. At the
//! recorded speed that repeats the recording's own decisions; at another, all fall back evenly. A
//! task that waits for 4 ms longer than it did while a CPU idles is moved all the same.

use super::{CoreUse, FAIR, Order, Placement, Waking};
use crate::sched::Scheduler;

/// A task that has waited for this much longer than it did, one tick of a 250 Hz kernel, is not where the recording
/// machine's balance would have left it.
const LATE_NS: u64 = 4_000_000;

/// `recorded`
pub static RECORDED: Placement = Placement {
    name: "recorded",
    summary: "the CPU of the recording; where it had as many CPUs",
    heeds_kept_cpus: false,
    choose,
    order: Order::Recorded,
    reads_recording: true,
    follows_recording: true,
    // The recording has their order, and its runs are the slices.
    realtime_first: false,
    slices: false,
    pull_delay_ns: LATE_NS,
    balance_delay_ns: LATE_NS,
    evens_out: false,
    // What distance costs is in the recorded runs.
    charges_distance: false,
    ..FAIR
};

fn choose(s: &mut Scheduler<'_>, w: &Waking, _: &dyn CoreUse) -> usize {
    if (w.hint as usize) < s.queues.len() { w.hint as usize } else { w.last }
}
