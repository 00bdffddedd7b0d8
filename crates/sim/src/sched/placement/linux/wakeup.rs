//! A woken task's CPU: wake affinity chooses the target, `select_idle_sibling()` an idle CPU near it.

use super::memory::{IMBALANCE_PCT, PlacementMemory};
use super::{Choice, ChoiceRule, CpusSeen, SchedTopology, Wakeup};
use crate::sched::cpuset::CpuSet;

/// A choice, and what it leaves behind.
pub(super) struct Looks {
    pub(super) choice: Choice,
    /// It got as far as the CPU before its last: that becomes its last one.
    pub(super) passes_recent: bool,
    /// It looked for an idle core and found none.
    pub(super) finds_no_core: bool,
}

/// `select_task_rq_fair()` of a wake-up.
pub(super) fn select(
    topology: &SchedTopology,
    memory: &PlacementMemory,
    w: &Wakeup,
    wide: bool,
    seen: &CpusSeen<'_>,
) -> Looks {
    let affine = !wide && seen.allowed.contains(w.from) && w.from != w.prev;
    let target = if affine && pulls(topology, w, seen) { w.from } else { w.prev };
    idle_sibling(topology, memory, w, target, seen)
}

/// Whether the task goes to its waker's CPU (`wake_affine()`).
fn pulls(topology: &SchedTopology, w: &Wakeup, seen: &CpusSeen<'_>) -> bool {
    // wake_affine_idle(): an interrupt has no cache affinity to the woken task.
    if seen.idle.contains(w.from) && topology.share_cache(w.from, w.prev) {
        return !seen.idle.contains(w.prev);
    }
    if w.sync && seen.queues.runnable(w.from) == 1 {
        return true;
    }
    !seen.idle.contains(w.prev) && is_lighter(w, seen)
}

/// `wake_affine_weight()`: the task weighs less on its waker's CPU than what it leaves on its own.
fn is_lighter(w: &Wakeup, seen: &CpusSeen<'_>) -> bool {
    let mut here = seen.queues.load(w.from);
    if w.sync {
        // As if the waker had gone.
        here = here.saturating_sub(1024);
    }
    let here = (here + w.load) * 100;
    let there = seen.queues.load(w.prev) * (100 + (IMBALANCE_PCT - 100) / 2) + u64::from(w.sync);
    here < there
}

/// `select_idle_sibling()`: the first idle CPU in this order, else the target.
fn idle_sibling(
    topology: &SchedTopology,
    memory: &PlacementMemory,
    w: &Wakeup,
    target: usize,
    seen: &CpusSeen<'_>,
) -> Looks {
    let CpusSeen { idle, allowed, .. } = *seen;
    let found = |cpu, rule, passes_recent| Looks {
        choice: Choice { cpu, rule, target },
        passes_recent,
        finds_no_core: false,
    };
    if idle.contains(target) {
        return found(target, ChoiceRule::Target, false);
    }
    let near = topology.share_cache(w.prev, target);
    if near && w.prev != target && idle.contains(w.prev) {
        return found(w.prev, ChoiceRule::Previous, false);
    }
    let is_recent = |&c: &usize| {
        c != w.prev
            && c != target
            && topology.share_cache(c, target)
            && idle.contains(c)
            && allowed.contains(c)
    };
    if let Some(cpu) = memory.recent(w.task).filter(is_recent) {
        return found(cpu, ChoiceRule::Recent, true);
    }
    let llc = topology.llc_of(target);
    let idle_core = topology.smt && memory.has_idle_cores(llc);
    if topology.smt && !idle_core && near {
        // select_idle_smt()
        // The last CPU itself does not idle.
        if let Some(cpu) = CpuSet::first_from([topology.core(w.prev), idle, allowed], 0) {
            return found(cpu, ChoiceRule::Sibling, true);
        }
    }
    let (scanned, finds_no_core) = scan(topology, memory, target, idle_core, seen);
    let (cpu, rule) = scanned.unwrap_or((target, ChoiceRule::Busy));
    Looks { finds_no_core, ..found(cpu, rule, true) }
}

/// `select_idle_cpu()`: the next idle core of the target's cache, else the next idle CPU; and whether a core was
/// looked for in vain.
fn scan(
    topology: &SchedTopology,
    memory: &PlacementMemory,
    target: usize,
    idle_core: bool,
    seen: &CpusSeen<'_>,
) -> (Option<(usize, ChoiceRule)>, bool) {
    let CpusSeen { idle, idle_cores, allowed, .. } = *seen;
    let llc = topology.llc_of(target);
    let (cpus, most) = (&topology.llcs[llc], memory.scan(llc));
    if most == 0 {
        return (None, false);
    }
    if idle_core && let Some(cpu) = CpuSet::first_from([cpus, idle_cores, allowed], target + 1) {
        return (Some((cpu, ChoiceRule::Core)), false);
    }
    let first = CpuSet::first_from([cpus, idle, allowed], target + 1);
    if idle_core {
        // The whole cache has been looked at. Of the first core with an idle CPU it is the first such.
        let lowest = |c| CpuSet::first_from([topology.core(c), idle, allowed], 0).unwrap_or(c);
        return (first.map(|c| (lowest(c), ChoiceRule::Scan)), true);
    }
    let within = |&c: &usize| cpus.steps(allowed, target + 1, c) <= most;
    (first.filter(within).map(|c| (c, ChoiceRule::Scan)), false)
}
