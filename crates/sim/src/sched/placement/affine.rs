//! Near whoever wakes it, as Linux 3.1 does: the waker's CPU when that idles, else an idle thread of its core, else
//! of its package. Timers wake tasks where they slept. A new task goes where most is free.
//!
//! A running task is not pulled to another core: of two that take turns one runs at a time, so that 3.1's balance finds no queue
//! of two. Study 002's table of tbench shows it: one core sleeps while the pair has the other.

use super::{CoreUse, FAIR, Placement, Waking, spread};
use crate::sched::Scheduler;

/// `affine`
pub static AFFINE: Placement = Placement {
    name: "affine",
    summary: "an idle thread of its waker's core, else of its package (Linux 3.1)",
    choose,
    ..FAIR
};

pub(super) fn choose(s: &mut Scheduler<'_>, w: &Waking, cores: &dyn CoreUse) -> usize {
    if w.fresh {
        return spread::choose(s, w, cores);
    }
    let ok = |c: usize| s.allowed.contains(c);
    let idle = |c: &usize| ok(*c) && s.idle_set.contains(*c);
    let target = match (ok(w.from), ok(w.last)) {
        (true, _) => w.from,
        (false, true) => w.last,
        (false, false) => s.least_queued().unwrap_or(w.last),
    };
    if idle(&target) {
        return target;
    }
    let order = &s.search[usize::from(s.machine.cpus[target].package)];
    let package = || order.iter().find_map(|set| s.idle_set.first_in(set, &s.allowed));
    s.siblings(target).find(idle).or_else(package).unwrap_or(target)
}
