//! Where Linux puts a task: the fair class of 6.12 (`kernel/sched/fair.c`), with what 6.1 and 7.1 have in common with it.
//!
//! A **wake-up** (`select_task_rq_fair`) looks at few CPUs, for it is on the path of everything:
//!
//! ```text
//!  waker's CPU --.   1. wake affinity: which of the two        2. select_idle_sibling: in the target's last-level
//!                 >------------- target ----------------->        cache, the first that idles of
//!  last CPU -----'                                                target, last CPU, the one before, its sibling,
//!                                                                 a core, one of the next n CPUs; else the target
//! ```
//!
//! 1. *Wake affinity.* A waker pulls whom it wakes to its own CPU's cache, unless both wake many others (`wake_wide`: a
//!    server and its workers would all end up in one cache). Its CPU becomes the target where it is about to be free or
//!    is the less loaded one.
//! 2. *An idle sibling of the target.* Caches count for more than idle CPUs do: no CPU outside of the target's
//!    last-level cache is looked at. How many CPUs are looked at falls with the square of the cache's load.
//!
//! A **new task** (`sched_balance_find_dst_cpu`) has nothing in any cache, and goes down the domains to the idlest
//! package, cache, core and CPU. It stays near its parent where that is as good.
//!
//! **Balance** repairs what wake-ups leave, from near to far: a CPU that runs out of work takes a task that waits and is
//! not cache-hot (`newidle`), if it expects to idle for longer than the search takes; at the tick, idle CPUs do so for
//! each other, and a preferred core that idles takes even a running task from a weaker one (ITMT). `sched/balance.rs`
//! and `simulation/balance.rs` hold it.
//!
//! | file | holds |
//! |---|---|
//! | `topology.rs` | who shares a core, a cache, a package |
//! | `memory.rs` | what is kept from one wake-up to the next |
//! | `wakeup.rs` | wake affinity, the idle sibling |
//! | `fork.rs` | the slow path |
//!
//! Left out: CPU capacities (`asym_capacity`: hybrids without SMT, phones; energy-aware placement is `eas`), shared-L2
//! clusters, SCHED_IDLE tasks, cgroups, the rule for per-CPU kernel threads, NUMA balancing of memory, and exec, which
//! takes the slow path too. A CPU's load is the weight of its tasks now, where the kernel has an average.

mod fork;
mod memory;
mod topology;
mod wakeup;

#[cfg(test)]
mod tests;

use super::{CoreUse, FAIR, Placement, Waking};
use crate::NONE;
use crate::sched::Scheduler;
use crate::sched::balance::{self, CacheCold};
use crate::sched::cpuset::CpuSet;
use memory::PlacementMemory;
pub use topology::SchedTopology;

/// `linux`
pub static LINUX: Placement = Placement {
    name: "linux",
    summary: "as Linux 6.12: wake affinity, then an idle CPU in that last-level cache; pulls between balances",
    ..LINUX_RULES
};

/// Its rules for queues and balance.
pub(super) const LINUX_RULES: Placement = Placement {
    choose,
    reads_recorded_runs: true,
    steal: &CacheCold { idler_least_ns: 0 },
    better_cores: balance::idle_cores,
    ..FAIR
};

/// A wake-up.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    /// Who is woken: a number below those that [`Chooser::add_task`] has made room for.
    pub task: u32,
    /// The CPU of its last run.
    pub prev: usize,
    /// The CPU on which the wake-up happens.
    pub from: usize,
    /// Who runs there, `None` for the idle task. In an interrupt that is whoever it interrupted.
    pub waker: Option<u32>,
    /// The waker says that it is about to block (`WF_SYNC`: pipes and sockets do, futexes and timers do not).
    pub sync: bool,
    /// Load of the woken task, of 1024.
    pub load: u64,
    /// Time, in ns.
    pub now: u64,
}

/// What a wake-up may know of the CPUs' queues.
pub trait Queues {
    /// Tasks that run or wait on a CPU.
    fn runnable(&self, cpu: usize) -> usize;
    /// Their weight, 1024 for one of nice level 0.
    fn load(&self, cpu: usize) -> u64;
    /// Time that a CPU has run tasks so far, in ns.
    fn busy_ns(&self, cpu: usize) -> u64;
    /// Of that, what tasks ran that ended there, in ns.
    fn ended_ns(&self, cpu: usize) -> u64;
    /// The task that ended there, if nothing has run there since.
    fn ended_last(&self, cpu: usize) -> Option<EndedTask>;
}

/// A task that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedTask {
    /// When, in ns.
    pub at: u64,
    /// How long it had run, in ns.
    pub ran_ns: u64,
}

/// The CPUs as a wake-up finds them.
#[derive(Clone, Copy)]
pub struct CpusSeen<'a> {
    /// CPUs that idle, and for which nobody waits.
    pub idle: &'a CpuSet,
    /// Of those, the ones on cores that idle as a whole.
    pub idle_cores: &'a CpuSet,
    /// CPUs that the task may use.
    pub allowed: &'a CpuSet,
    /// Their queues.
    pub queues: &'a dyn Queues,
}

/// The rule that gave a woken task its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChoiceRule {
    /// The target idles.
    Target,
    /// The CPU of its last run idles, in the target's cache.
    Previous,
    /// The CPU of the run before idles, in the target's cache.
    Recent,
    /// A sibling of its last CPU idles.
    Sibling,
    /// A whole core of the cache idles.
    Core,
    /// Some CPU of the cache idles.
    Scan,
    /// None was found: it waits at the target.
    Busy,
}

/// A woken task's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The CPU.
    pub cpu: usize,
    /// By which rule.
    pub rule: ChoiceRule,
    /// The CPU near which it looked.
    pub target: usize,
}

/// The rules, and what they remember.
pub struct Chooser {
    topology: SchedTopology,
    memory: PlacementMemory,
}

impl Chooser {
    /// Of a machine that has just started.
    pub fn new(topology: SchedTopology) -> Chooser {
        Chooser { memory: PlacementMemory::new(&topology), topology }
    }

    /// One more task.
    pub fn add_task(&mut self) {
        self.memory.add_task();
    }

    /// Every CPU of this one's core idles now (`__update_idle_core`).
    #[inline]
    pub fn core_idles(&mut self, cpu: usize) {
        self.memory.set_idle_cores(self.topology.llc_of(cpu), true);
    }

    /// Who shares what.
    pub fn topology(&self) -> &SchedTopology {
        &self.topology
    }

    /// Load of a task that wakes now, having run for `ran_ns` so far, of 1024: its share of the time since its last
    /// wake-up.
    pub fn load_of(&mut self, task: u32, ran_ns: u64, now: u64) -> u64 {
        self.memory.load_of(task, ran_ns, now)
    }

    /// Who wakes whom, of a wake-up that somebody else places (`record_wakee`).
    pub(super) fn note_waker(&mut self, w: &Wakeup) {
        self.memory.record_wakee(w);
    }

    /// The CPU of a woken task (`select_task_rq_fair` with `WF_TTWU`).
    pub fn wake(&mut self, w: &Wakeup, seen: &CpusSeen<'_>) -> Choice {
        let (topology, memory) = (&self.topology, &mut self.memory);
        memory.record_wakee(w);
        let wide = memory.is_wide(w, topology.llc_cpus(w.from).1);
        memory.refresh(topology, w.from, w.now, seen.queues);
        memory.refresh(topology, w.prev, w.now, seen.queues);
        let looks = wakeup::select(topology, memory, w, wide, seen);
        if looks.passes_recent {
            memory.set_recent(w.task, w.prev);
        }
        if looks.finds_no_core {
            memory.set_idle_cores(topology.llc_of(looks.choice.target), false);
        }
        looks.choice
    }

    /// The CPU of a new task (`select_task_rq_fair` with `WF_FORK`).
    pub fn fork(&mut self, from: usize, now: u64, seen: &CpusSeen<'_>) -> usize {
        fork::Fork { topology: &self.topology, from, now, seen }.select(&mut self.memory)
    }
}

/// The engine's question.
///
/// A wake-up by a running task is taken as synchronous: a recording does not say, and pipes and sockets, over which
/// tasks talk most, say that they are. Where the last CPU idles in the same cache it makes no difference.
pub(super) fn choose(s: &mut Scheduler<'_>, w: &Waking, _: &dyn CoreUse) -> usize {
    let (task, prev, from, now) = (w.task, w.last, w.from, w.now);
    let cpu = s.with_linux(now, |chooser, seen, ran_ns| {
        if w.fresh {
            return chooser.fork(from, now, seen);
        }
        let load = chooser.load_of(task, ran_ns(task), now);
        let waker = Some(w.waker).filter(|&t| t != NONE);
        chooser.wake(&Wakeup { task, prev, from, waker, sync: w.by_task, load, now }, seen).cpu
    });
    // select_fallback_rq(): its CPU was taken from it while it slept.
    if s.allowed.contains(cpu) { cpu } else { s.least_queued().unwrap_or(cpu) }
}
