//! Placements: which CPU a waking task goes to, and what follows from that for queues and balance.
//!
//! To add one: write its file, add its line to [`ALL`]. Name, help and rules come from the item itself.

mod affine;
pub(super) mod eas;
mod fifo;
pub mod linux;
mod pack;
mod recorded;
mod sched_mc;
mod spread;

pub use affine::AFFINE;
pub use eas::EAS;
pub use fifo::FIFO;
pub use linux::LINUX;
pub use pack::PACK;
pub use recorded::RECORDED;
pub use sched_mc::SCHED_MC;
pub use spread::SPREAD;

use super::Scheduler;
pub use super::cpuset::CpuSet;

/// A task that has waited for less is still warm in its CPU's cache and stays (Linux's migration cost).
pub(super) const WARM_NS: u64 = 500_000;

/// In which order waiting tasks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// First come, first served.
    Arrival,
    /// Whoever is furthest behind the recording first.
    Recorded,
    /// Whoever has had least of its share first: virtual time.
    Fair,
}

/// What a placement is told of a task that wakes.
pub(super) struct Waking {
    /// Who.
    pub(super) task: u32,
    /// CPU of its last run.
    pub(super) last: usize,
    /// CPU of its next run as recorded; beyond all CPUs where nothing says.
    pub(super) hint: u32,
    /// Where the wake-up happens.
    pub(super) from: usize,
    /// Who runs there, or [`NONE`](crate::NONE); and whether it is that task that wakes, or an interrupt.
    pub(super) waker: u32,
    pub(super) by_task: bool,
    /// It has not been on any CPU.
    pub(super) fresh: bool,
    /// Time, in ns.
    pub(super) now: u64,
}

/// How cores are used, for who wants to know.
pub(crate) trait CoreUse {
    /// Threads of a core that execute.
    fn busy_threads(&self, core: usize) -> usize;
    /// Whether some thread of a core is in no C-state.
    fn is_awake(&self, core: usize) -> bool;
    /// The utilisation of a CPU now, of 1024 of the strongest CPU's highest, where the speed policy follows tasks.
    fn load(&self, _cpu: usize) -> Option<u64> {
        None
    }
    /// Who runs on a CPU.
    fn running(&self, _cpu: usize) -> Option<u32> {
        None
    }
}

/// A placement's name, help and rules: the line that the table holds.
pub struct Placement {
    /// The word on the command line.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Other words for it, with a line of help each; the name is the one that is written back.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether it heeds which CPUs are kept for work. One that does not cannot go with a core policy.
    pub heeds_kept_cpus: bool,
    /// Where the task goes.
    choose: fn(&mut Scheduler<'_>, &Waking, &dyn CoreUse) -> usize,
    /// In which order waiting tasks go.
    pub(crate) order: Order,
    /// Whether it is of interest where a task ran as recorded.
    pub(crate) reads_recording: bool,
    /// Whether tasks go where and when they did in the recording.
    pub(crate) follows_recording: bool,
    /// Whether the first CPU's queue is everybody's: nobody preempts, has a slice, or needs a balance.
    pub(crate) one_queue: bool,
    /// Whether real-time tasks come before all others.
    pub(crate) realtime_first: bool,
    /// Whether a running task has a slice while others wait.
    pub(crate) slices: bool,
    /// How long a task must have waited before a CPU that runs out of work steals it, in ns.
    pub(crate) pull_delay_ns: u64,
    /// How long it must have waited before the periodic balance moves it, in ns.
    pub(crate) balance_delay_ns: u64,
    /// Whether long queues shed to short ones while no CPU idles.
    pub(crate) evens_out: bool,
    /// Whether the balance moves running tasks to better cores.
    pub(crate) unshares: bool,
    /// Whether stealing goes by caches, as Linux's does: from near CPUs before far ones, no task that has just run there,
    /// and not by a CPU that expects to idle for no longer than the search takes.
    pub(crate) climbs: bool,
    /// A CPU that runs out of work takes a waiting task only if it idles for at least so long on average, in ns.
    pub(crate) idler_least_ns: u64,
    /// Whether it goes by energy where it can, and the balance moves tasks only where that fails.
    pub(crate) energy_aware: bool,
    /// Whether distance costs a task time: when it moves to another CPU, and when one on another CPU wakes it.
    pub(crate) charges_distance: bool,
}

impl Placement {
    #[inline]
    pub(super) fn choose(&self, sched: &mut Scheduler<'_>, waking: &Waking, cores: &dyn CoreUse) -> usize {
        (self.choose)(sched, waking, cores)
    }
}

impl PartialEq for Placement {
    fn eq(&self, other: &Placement) -> bool {
        self.name == other.name
    }
}

impl Eq for Placement {}

impl std::fmt::Debug for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every placement.
pub static ALL: &[&Placement] = &[&LINUX, &EAS, &SPREAD, &PACK, &AFFINE, &SCHED_MC, &RECORDED, &FIFO];

/// The placement of that name, or with that alias.
pub fn find(word: &str) -> Option<&'static Placement> {
    ALL.iter().copied().find(|p| p.words().any(|(w, _)| w == word))
}

impl Placement {
    /// Its name and its aliases, with a line of help each.
    pub fn words(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        std::iter::once((self.name, self.summary)).chain(self.aliases.iter().copied())
    }
}

/// What most have in common: fair shares, a balance, a price for moves.
const FAIR: Placement = Placement {
    name: "",
    summary: "",
    aliases: &[],
    heeds_kept_cpus: true,
    choose: spread::choose,
    order: Order::Fair,
    reads_recording: false,
    follows_recording: false,
    one_queue: false,
    realtime_first: true,
    slices: true,
    pull_delay_ns: 0,
    balance_delay_ns: WARM_NS,
    evens_out: true,
    unshares: false,
    climbs: false,
    idler_least_ns: 0,
    energy_aware: false,
    charges_distance: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_finds_one() {
        let words: Vec<&str> = ALL.iter().flat_map(|p| p.words()).map(|(word, _)| word).collect();
        for (i, word) in words.iter().enumerate() {
            assert!(!words[..i].contains(word), "{word} twice");
            assert!(find(word).is_some_and(|p| p.words().any(|(w, _)| w == *word)));
        }
        assert_eq!(find("sched_smt"), Some(&SCHED_MC));
        assert_eq!(find("nowhere"), None);
    }
}
