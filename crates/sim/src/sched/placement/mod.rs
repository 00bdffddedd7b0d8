//! Placements: which CPU a waking task goes to, and what follows from that for queues and balance.
//!
//! To add one: write its file, add its `mod` line and its line in [`ALL`]. Name, help and rules come from the item itself.

pub(super) mod affine;
pub(super) mod eas;
mod fifo;
pub mod linux;
mod pack;
mod recorded;
mod sched_mc;
mod spread;

// Those that code asks for by name.
pub use eas::EAS;
pub use fifo::FIFO;
pub use linux::LINUX;
pub use pack::PACK;
pub use recorded::RECORDED;
pub use spread::SPREAD;

use super::Scheduler;
use super::balance::{self, LongestWaiting, Steal, WARM_NS};
pub use super::cpuset::CpuSet;
use super::order::{FairShare, QueueOrder};
use eas::Eas;
use wattwise_model::machine::MachineModel;

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
    pub(super) choose: fn(&mut Scheduler<'_>, &Waking, &dyn CoreUse) -> usize,
    /// In which order waiting tasks go, and when a running one gives way.
    pub(super) order: &'static dyn QueueOrder,
    /// Which waiting task a CPU may take from another.
    pub(super) steal: &'static dyn Steal,
    /// The CPU with few waiting tasks that takes one from a long queue while no CPU idles.
    pub(super) evens_out: fn(&Scheduler<'_>, &dyn Fn(usize) -> bool) -> Option<usize>,
    /// The idle cores to which the balance moves running tasks that share a core or run on a weaker one.
    pub(super) better_cores: for<'s> fn(&'s Scheduler<'_>) -> Option<&'s CpuSet>,
    /// Whether CPUs that idle without a tick balance when the tick of another kicks them, as in Linux 3.1
    /// ([`nohz`](super::nohz)); else they do so by themselves.
    pub(crate) kicks_idle: bool,
    /// What it goes by where it places tasks by energy; the balance moves tasks only where that fails.
    pub(super) energy: fn(&MachineModel) -> Option<Box<Eas>>,
    /// Whether it goes by where and when a task's coming run began as recorded.
    pub(super) reads_recorded_runs: bool,
    /// What a task pays for distance, when it moves to another CPU and when one on another CPU wakes it, in ns: of what that
    /// costs, and what its recorded run already holds.
    pub(super) distance_ns: fn(u64, u64) -> u64,
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
pub static ALL: &[&Placement] = &[
    &linux::LINUX,
    &eas::EAS,
    &spread::SPREAD,
    &pack::PACK,
    &affine::AFFINE,
    &sched_mc::SCHED_MC,
    &recorded::RECORDED,
    &fifo::FIFO,
];

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
    order: &FairShare,
    steal: &LongestWaiting { pull_ns: 0, balance_ns: WARM_NS },
    evens_out: balance::shortest_queue,
    better_cores: balance::no_cores,
    kicks_idle: false,
    energy: |_| None,
    reads_recorded_runs: false,
    distance_ns: u64::saturating_sub,
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
        assert_eq!(find("sched_smt"), Some(&sched_mc::SCHED_MC));
        assert_eq!(find("nowhere"), None);
    }
}
