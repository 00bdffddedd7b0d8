//! An idle thread of the fullest package and core: few cores awake (`sched_mc_power_savings`).

use super::{CoreUse, FAIR, Placement, Waking};
use crate::sched::Scheduler;
use std::cmp::Reverse;

/// `pack`
pub static PACK: Placement = Placement {
    name: "pack",
    summary: "an idle thread of the fullest package and core, for every wake-up",
    choose,
    ..FAIR
};

/// The idle thread in the package with most cores awake, there in the core with most busy threads.
fn choose(s: &mut Scheduler<'_>, w: &Waking, cores: &dyn CoreUse) -> usize {
    let awake = |core: &&u16| cores.is_awake(usize::from(**core));
    // Once a package, not once a candidate.
    let fullness: Vec<usize> =
        s.machine.packages.iter().map(|p| p.cores.iter().filter(awake).count()).collect();
    let rank = |c: usize| {
        let cpu = &s.machine.cpus[c];
        (fullness[usize::from(cpu.package)], cores.busy_threads(usize::from(cpu.core)), Reverse(c))
    };
    let candidates = s.idle_set.iter().filter(|&c| s.allowed.contains(c));
    match candidates.max_by_key(|&c| rank(c)) {
        Some(c) => c,
        None if s.allowed.contains(w.last) => w.last,
        None => s.least_queued().unwrap_or(w.last),
    }
}
