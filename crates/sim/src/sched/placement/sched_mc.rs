//! As `affine`, with `sched_mc_power_savings=1` or `sched_smt_power_savings=1`: a new task stays in its parent's core while the
//! package runs less than twice what it has cores.
//!
//! On one package that level leaves wake-ups and the balance as they are. (Linux would also pull together tasks that keep
//! running, but a core of two threads has the capacity of one task, 1178 / 1024 rounded, so that none qualifies.)

use super::{CoreUse, FAIR, Placement, Waking, affine};
use crate::sched::Scheduler;
use crate::sched::balance::{CacheCold, WARM_NS};

/// `sched_mc`
pub(super) static SCHED_MC: Placement = Placement {
    name: "sched_mc",
    summary: "as affine, but a new task stays in its parent's core while half is free (sched_mc_power_savings=1)",
    // Level 1 of either does the same to the balance.
    aliases: &[("sched_smt", "as sched_mc (sched_smt_power_savings=1)")],
    choose,
    steal: &CacheCold { idler_least_ns: WARM_NS },
    kicks_idle: true,
    ..FAIR
};

/// `select_task_rq_fair()` under SD_POWERSAVINGS_BALANCE: half of what runs is held against the capacity.
fn choose(s: &mut Scheduler<'_>, w: &Waking, cores: &dyn CoreUse) -> usize {
    if w.fresh && s.allowed.contains(w.from) {
        let package = s.machine.cpus[w.from].package;
        let in_package = |c: &usize| s.machine.cpus[*c].package == package;
        let running =
            (0..s.machine.cpus.len()).filter(in_package).filter(|c| !s.idle_set.contains(*c)).count();
        let cores_there = s.machine.cores.iter().filter(|c| in_package(&usize::from(c.cpus[0]))).count();
        let idle = |c: &usize| s.allowed.contains(*c) && s.idle_set.contains(*c);
        if running < 2 * cores_there {
            let here = std::iter::once(w.from).find(idle);
            if let Some(c) = here.or_else(|| s.siblings(w.from).find(idle)) {
                return c;
            }
        }
    }
    affine::choose(s, w, cores)
}
