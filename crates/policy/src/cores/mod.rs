//! Core policies: which CPUs are kept for work, so that the others may sleep deeply.
//!
//! A CPU that is not kept is never chosen for a task that wakes, forks or is balanced; what is pinned there stays.
//! Whole cores are kept before others are opened, and whole packages: a core sleeps only when all its threads do,
//! a package only when all its cores do.

mod consolidate;
mod coreidle;
mod dragonfly;
mod lpmd;

use crate::{CpuSample, Param, Settings};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Its core, numbered through over the machine.
    pub core: u16,
    /// Its package.
    pub package: u16,
}

/// What a core policy sees.
#[derive(Clone, Copy, Debug)]
pub struct CoreObservation<'a> {
    /// Time since the policy was started, in ns.
    pub now_ns: u64,
    /// Every CPU since the last observation.
    pub cpus: &'a [CpuSample],
    /// The longest that a task waited for a CPU since then, in ns.
    pub worst_wait_ns: u64,
    /// The wait that 99 of 100 did not exceed, in ns; `None` where nobody times each.
    pub wait_p99_ns: Option<u64>,
    /// The mean wait, in ns; `None` where nobody adds them up.
    pub wait_mean_ns: Option<u64>,
    /// Tasks that woke since then; `None` where nobody counts them.
    pub wakeups: Option<u64>,
}

impl CoreObservation<'_> {
    /// CPUs' worth of work done, in thousandths.
    fn busy_milli(&self) -> u64 {
        self.cpus.iter().map(|c| c.busy_of(1000)).sum()
    }

    /// Tasks that wait behind others now.
    fn waiting(&self) -> u64 {
        self.cpus.iter().map(|c| u64::from(c.runnable.saturating_sub(1))).sum()
    }
}

/// What is known of a CPU's core, for a policy that is told of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePower {
    /// Where the CPU is.
    pub place: CpuPlace,
    /// Shortest stay that pays for a C-state about as frugal as the deepest, in ns; 0 where that is not known.
    pub deep_stay_ns: u64,
    /// What the core draws; `None` on a machine that no model describes.
    pub draw: Option<Draw>,
}

/// What a core draws and does, as a whole and at its highest speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Work done in a time by one busy thread; any unit, the same for all CPUs.
    pub rate: u32,
    /// The same by all of the core's threads.
    pub rate_all: u32,
    /// Power with one thread busy, in mW.
    pub busy_mw: u32,
    /// Power with all threads busy, in mW.
    pub busy_all_mw: u32,
    /// Power in the shallowest C-state, in mW.
    pub shallow_mw: u32,
    /// Power in the deepest C-state, in mW.
    pub deep_mw: u32,
    /// What its package draws less, beside its cores, when all of them sleep deeply, in mW.
    pub package_saves_mw: u32,
}

/// Keeps few CPUs busy.
pub trait CorePolicy: Send {
    /// What the machine is and draws, one entry a CPU. Told before [`CorePolicy::start`] by whoever knows it.
    fn learn(&mut self, _: &[CorePower]) {}
    /// The order in which CPUs are kept; asked for after [`CorePolicy::learn`].
    fn order(&self, places: &[CpuPlace]) -> Vec<u16> {
        order(places)
    }
    /// Time between observations, in ns.
    fn period_ns(&self) -> u64;
    /// CPU time of one decision at the highest speed, in ns.
    fn cost_ns(&self) -> u64;
    /// How many CPUs to begin with.
    fn start(&mut self) -> usize;
    /// How many CPUs to keep from now on; at least 1.
    fn observe(&mut self, obs: &CoreObservation<'_>) -> usize;
}

/// A core policy's line in the table.
pub struct Cores {
    /// The word on the command line.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Whose rule it is: project, version and file, or a paper, or "this project".
    pub follows: &'static str,
    /// Source text; its opening comment is the documentation ([`crate::essay`]).
    pub source: &'static str,
    /// Parameters, in the order of [`Settings`].
    pub params: &'static [Param],
    /// Makes one for so many CPUs.
    pub build: fn(usize, &Settings) -> Box<dyn CorePolicy>,
}

/// Every core policy.
pub static ALL: &[&Cores] = &[
    &coreidle::ONDEMAND,
    &coreidle::USERSPACE,
    &dragonfly::DRAGONFLY,
    &lpmd::LPMD,
    &consolidate::CONSOLIDATE,
];

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Cores> {
    ALL.iter().copied().find(|p| p.name == name)
}

/// The order in which CPUs are kept: by package, by core, all threads of a core together.
pub fn order(places: &[CpuPlace]) -> Vec<u16> {
    let mut cpus: Vec<u16> = (0..places.len() as u16).collect();
    cpus.sort_by_key(|&c| (places[usize::from(c)].package, places[usize::from(c)].core, c));
    cpus
}

/// The `cost` parameter: a decision is a sum over the CPUs.
const COST: Param = crate::speed::cost(5.0);

#[cfg(test)]
mod testing {
    use super::*;

    /// Shows a policy CPUs that are busy by so many percent, and tasks that wait.
    pub(super) fn see(
        policy: &mut dyn CorePolicy,
        now_ns: u64,
        busy: &[u64],
        waiting: u32,
        worst_wait_ns: u64,
    ) -> usize {
        let period = policy.period_ns();
        let cpus: Vec<CpuSample> = busy
            .iter()
            .enumerate()
            .map(|(c, percent)| CpuSample {
                busy_ns: period * percent / 100,
                idle_ns: period - period * percent / 100,
                runnable: u32::from(*percent > 0) + if c == 0 { waiting } else { 0 },
                ..CpuSample::default()
            })
            .collect();
        policy.observe(&CoreObservation {
            now_ns,
            cpus: &cpus,
            worst_wait_ns,
            wait_p99_ns: None,
            wait_mean_ns: None,
            wakeups: None,
        })
    }

    #[test]
    fn whole_cores_and_packages_first() {
        // Linux numbers second threads after all first ones: CPU 4 is CPU 0's sibling.
        let place = |core, package| CpuPlace { core, package };
        let places = [
            place(0, 0),
            place(2, 1),
            place(1, 0),
            place(3, 1),
            place(0, 0),
            place(2, 1),
            place(1, 0),
            place(3, 1),
        ];
        assert_eq!(order(&places), [0, 4, 2, 6, 1, 5, 3, 7]);
    }

    #[test]
    fn every_policy_keeps_at_least_one_cpu_and_no_more_than_there_are() {
        for item in ALL {
            let mut policy = (item.build)(4, &Settings::defaults(item.params));
            assert!((1..=4).contains(&policy.start()), "{}", item.name);
            let mut seed = 7_u64;
            for step in 0..2000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let busy: Vec<u64> = (0..4).map(|c| (seed >> (c * 8 + 20)) % 101).collect();
                let keep = see(&mut *policy, step * 1_000_000, &busy, (seed >> 60) as u32, seed >> 38);
                assert!((1..=4).contains(&keep), "{} keeps {keep}", item.name);
            }
        }
    }
}
