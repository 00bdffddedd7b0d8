//! Its last CPU when that is idle, else an idle core, else an idle thread, else the last CPU. The balance *unshares*: a
//! task that shares its core with another, or runs on a weaker kind, moves to an idle better one, as Linux's active balance
//! does.

use super::{CoreUse, FAIR, Placement, Waking};
use crate::sched::{Scheduler, balance};

/// `spread`
pub static SPREAD: Placement = Placement {
    name: "spread",
    summary: "its last CPU when its core idles, else an idle core, else an idle thread",
    choose,
    better_cores: balance::idle_cores,
    ..FAIR
};

pub(super) fn choose(s: &mut Scheduler<'_>, w: &Waking, _: &dyn CoreUse) -> usize {
    let (last, from) = (w.last, w.from);
    let ok = |c: usize| s.allowed.contains(c);
    if ok(last) && s.idle_cores().contains(last) {
        return last;
    }
    let order = &s.search[usize::from(s.machine.cpus[last].package)];
    let idle_core = order.iter().find_map(|set| s.idle_cores().first_in(set, &s.allowed));
    if let Some(c) = idle_core {
        return c;
    }
    if ok(last) && s.idle_set.contains(last) {
        return last;
    }
    if let Some(c) = order.iter().find_map(|set| s.idle_set.first_in(set, &s.allowed)) {
        return c;
    }
    // Nobody idles: the shorter of two queues that are warm for this task.
    match (ok(last), ok(from)) {
        (true, true) if s.waiting(from) < s.waiting(last) => from,
        (true, _) => last,
        (false, true) => from,
        (false, false) => s.least_queued().unwrap_or(last),
    }
}
