//! Who is stolen from whom.
//!
//! A CPU takes a task that waits elsewhere when it runs out of work, and idle CPUs look again at each balance. Which task
//! may go is the placement's [`Steal`]: one that has waited for long enough ([`LongestWaiting`]), or as Linux has it
//! ([`CacheCold`]) one that is not *cache-hot*, near CPUs first, and only as far as the search is worth the wait.

use super::Scheduler;
use super::cpuset::CpuSet;
use crate::calendar::NEVER;
use std::cmp::Reverse;
use wattwise_model::machine::{Distance, MachineModel};

/// A task that has waited for less is still warm in its CPU's cache and stays (Linux's migration cost).
pub(super) const WARM_NS: u64 = 500_000;
/// What a look at a CPU's queue costs who looks for work, in ns: a guess, some cache lines from another core. Linux
/// measures it (`max_newidle_lb_cost`).
const LOOK_NS: u64 = 100;
/// The longest that a CPU is expected to idle: twice the migration cost (`update_rq_avg_idle()`).
const LONGEST_STAY_NS: u64 = 2 * WARM_NS;
/// Balances that find nothing but running tasks before one of those is moved: `nr_balance_failed` is above
/// `cache_nice_tries` + 2 (`imbalanced_active_balance()`).
pub(super) const TRIES: u64 = 3;

/// How long a CPU idles (`avg_idle`).
#[derive(Clone, Copy)]
pub(super) struct IdleStay {
    since: u64,
    mean: u64,
}

impl IdleStay {
    /// As a CPU is expected to idle of which nothing is known.
    pub(super) const LONG: IdleStay = IdleStay { since: 0, mean: LONGEST_STAY_NS };

    #[inline]
    pub(super) fn begins(&mut self, now: u64) {
        self.since = now;
    }

    /// `update_avg()`: an eighth of the difference.
    #[inline]
    pub(super) fn ends(&mut self, now: u64) {
        let stay = now - self.since;
        self.mean = (self.mean - self.mean / 8 + stay / 8).min(LONGEST_STAY_NS);
    }
}

/// A task that has been taken off another CPU's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stolen {
    pub(crate) task: u32,
    pub(crate) from: usize,
    /// Nobody waits there any more.
    pub(crate) emptied: bool,
}

/// A task for a CPU that has run out of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// From a queue that is its own too: the task does not move.
    OwnQueue(u32),
    /// From another CPU.
    Stolen(Stolen),
}

/// Which task runs on a CPU.
pub(super) type Runner<'a> = &'a dyn Fn(usize) -> Option<u32>;

/// Which waiting task a CPU may take from another.
pub(super) trait Steal: Sync {
    /// A task for CPU `c`, which would otherwise idle.
    fn pull(&self, s: &mut Scheduler<'_>, c: usize, now: u64, runner: Runner<'_>) -> Option<Pulled> {
        if s.crowded.is_empty() || !s.allowed.contains(c) || s.holds_balance() {
            return None;
        }
        let reach = self.reach(s, c)?;
        s.steal_by(&Thief { cpu: c, now, at_balance: false, reach }, runner).map(Pulled::Stolen)
    }

    /// How far CPU `c`, which has run out of work, looks for some.
    fn reach(&self, _s: &Scheduler<'_>, _c: usize) -> Option<Distance> {
        Some(Distance::Machine)
    }

    /// Whether it asks how long CPUs idle.
    fn follows_stays(&self) -> bool {
        false
    }

    /// How near `victim` is to `thief`: more is nearer.
    fn nearness(&self, s: &Scheduler<'_>, thief: usize, victim: usize) -> usize {
        usize::from(s.machine.cpus[victim].package == s.machine.cpus[thief].package)
    }

    /// Whether task `t`, which waits for CPU `from`, may be stolen.
    fn may_go(&self, s: &Scheduler<'_>, t: u32, from: usize, thief: &Thief) -> bool;

    /// Whether running tasks that share a core are to be pulled apart now, given whether some do while a core idles.
    fn pulls_apart(&self, _s: &mut Scheduler<'_>, _now: u64, shared: bool) -> bool {
        shared
    }

    /// Whether stronger cores of this machine pull only running tasks that do not fit a weaker one.
    fn pulls_only_misfits(&self, _machine: &MachineModel) -> bool {
        false
    }
}

/// Steals the task that has waited longest: at least so long, in ns, for a CPU that runs out of work, and for the balance.
pub(super) struct LongestWaiting {
    pub(super) pull_ns: u64,
    pub(super) balance_ns: u64,
}

impl Steal for LongestWaiting {
    fn may_go(&self, s: &Scheduler<'_>, t: u32, _: usize, thief: &Thief) -> bool {
        let least_ns = if thief.at_balance { self.balance_ns } else { self.pull_ns };
        thief.now.saturating_sub(s.waits_since(t)) >= least_ns
    }
}

/// Steals by caches, as Linux does: from near CPUs before far ones, no task that has just run there, and not for a CPU that
/// expects to idle for no longer than the search takes, or for less than `idler_least_ns`.
pub(super) struct CacheCold {
    pub(super) idler_least_ns: u64,
}

impl Steal for CacheCold {
    fn follows_stays(&self) -> bool {
        true
    }

    /// `sched_balance_newidle()`: it climbs the domains while the search takes less than it expects to idle.
    fn reach(&self, s: &Scheduler<'_>, c: usize) -> Option<Distance> {
        let (topology, stay) = (s.chooser.topology(), s.stays[c].mean);
        let spans = [Distance::Core, Distance::Llc, Distance::Package, Distance::Machine];
        let sizes = topology.sizes_around(c);
        if stay < self.idler_least_ns {
            return None;
        }
        let mut spent = 0;
        let mut reach = None;
        for (span, cpus) in spans.into_iter().zip(sizes) {
            // A domain that adds no CPU does not exist.
            if cpus > 0 {
                spent += cpus as u64 * LOOK_NS;
                if stay < spent {
                    break;
                }
            }
            reach = Some(span);
        }
        reach
    }

    fn nearness(&self, s: &Scheduler<'_>, thief: usize, victim: usize) -> usize {
        Distance::Machine as usize - s.machine.distance(thief, victim) as usize
    }

    /// `can_migrate_task()`: it has not just run, or shares its cache with the thief.
    fn may_go(&self, s: &Scheduler<'_>, t: u32, from: usize, thief: &Thief) -> bool {
        let ran = thief.now.saturating_sub(s.entity(t).ran_at);
        ran >= WARM_NS || s.machine.distance(from, thief.cpu) <= Distance::Core
    }

    /// Only when some balances have found nothing else to do.
    fn pulls_apart(&self, s: &mut Scheduler<'_>, now: u64, shared: bool) -> bool {
        if !shared {
            s.shared_since = NEVER;
            return false;
        }
        if s.shared_since == NEVER {
            s.shared_since = now;
        }
        let interval_ns = s.chooser.topology().largest_llc() as u64 * 1_000_000;
        let due = now - s.shared_since >= TRIES * interval_ns;
        if due {
            s.shared_since = NEVER;
        }
        due
    }

    /// Ranks (`SD_ASYM_PACKING`, ITMT) pull any running task to a stronger core. They are set by intel_pstate and amd-pstate; a
    /// machine whose driver is not known is taken to have them.
    fn pulls_only_misfits(&self, machine: &MachineModel) -> bool {
        let capacity = |kind| machine.scheduler_capacity(kind);
        let unequal = (1..machine.kinds.len()).any(|kind| capacity(kind) != capacity(0));
        unequal && ["cpufreq-dt", "scmi-cpufreq"].contains(&machine.driver.as_str())
    }
}

/// [`Placement::evens_out`](super::Placement): the CPU with fewest waiting of those that `runs` names, where some other has two
/// more.
pub(super) fn shortest_queue(s: &Scheduler<'_>, runs: &dyn Fn(usize) -> bool) -> Option<usize> {
    let usable = (0..s.queues.len()).filter(|&c| s.allowed.contains(c) && runs(c));
    let shortest = usable.min_by_key(|&c| s.queues[c].len())?;
    let longest = s.crowded.iter().map(|v| s.queues[v].len()).max()?;
    (longest >= s.queues[shortest].len() + 2).then_some(shortest)
}

/// [`Placement::evens_out`](super::Placement) of one whose long queues stay as they are.
pub(super) fn never(_: &Scheduler<'_>, _: &dyn Fn(usize) -> bool) -> Option<usize> {
    None
}

/// [`Placement::better_cores`](super::Placement): all that idle as a whole.
pub(super) fn idle_cores<'s>(s: &'s Scheduler<'_>) -> Option<&'s CpuSet> {
    Some(s.idle_cores())
}

/// [`Placement::better_cores`](super::Placement) of one whose balance leaves running tasks where they are.
pub(super) fn no_cores<'s>(_: &'s Scheduler<'_>) -> Option<&'s CpuSet> {
    None
}

/// Whom to steal from, by rank (nearness, tasks that wait, the lowest CPU), and which task: its place in the queue.
type Victim = ((usize, usize, Reverse<usize>), (usize, u32));

/// Who steals.
pub(super) struct Thief {
    pub(super) cpu: usize,
    pub(super) now: u64,
    /// For the balance, and not because it has run out of work.
    pub(super) at_balance: bool,
    /// How far it looks.
    pub(super) reach: Distance,
}

impl Scheduler<'_> {
    /// A task for a CPU that would otherwise idle. `runner` says which task runs on a CPU.
    #[inline]
    pub(crate) fn pull(
        &mut self,
        c: usize,
        now: u64,
        runner: impl Fn(usize) -> Option<u32>,
    ) -> Option<Pulled> {
        self.placement.steal.pull(self, c, now, &runner)
    }

    /// At a balance: the task that has waited longest on the most crowded CPU within reach, near ones first.
    pub(crate) fn steal(
        &mut self,
        c: usize,
        now: u64,
        reach: Distance,
        runner: impl Fn(usize) -> Option<u32>,
    ) -> Option<Stolen> {
        self.steal_by(&Thief { cpu: c, now, at_balance: true, reach }, &runner)
    }

    fn steal_by(&mut self, thief: &Thief, runner: Runner<'_>) -> Option<Stolen> {
        let (c, own) = (thief.cpu, self.machine.cpus[thief.cpu].package);
        // Only who would be the best so far is looked at: there may be hundreds of crowded CPUs. Whoever is in the thief's package is
        // nearer than all others.
        let home = &self.packages[usize::from(own)];
        let better = |best: Option<Victim>, v: usize| {
            let near = self.placement.steal.nearness(self, c, v);
            let rank = (near, self.queues[v].len(), Reverse(v));
            if v == c || best.is_some_and(|(highest, _)| rank < highest) {
                return best;
            }
            let may = self.machine.distance(c, v) <= thief.reach && runner(v).is_some();
            let found = if may { self.longest_waiting(v, thief) } else { None };
            found.map(|found| (rank, found)).or(best)
        };
        let mut best = self.crowded.iter_masked(|i| home.word(i)).fold(None, better);
        if best.is_none() && thief.reach == Distance::Machine {
            best = self.crowded.iter_masked(|i| !home.word(i)).fold(None, better);
        }
        let ((.., Reverse(from)), (at, task)) = best?;
        self.queues[from].fair.remove(at);
        let emptied = self.queues[from].is_empty();
        if emptied {
            self.uncrowd(from);
            if let Some(running) = runner(from) {
                self.charge(from, running, thief.now);
            }
        }
        self.carry_over(task, from, c);
        Some(Stolen { task, from, emptied })
    }

    /// Since when a queued task waits.
    #[inline]
    fn waits_since(&self, t: u32) -> u64 {
        self.placement.order.waits_since(self.entity(t))
    }

    /// Of the tasks that wait for a CPU and may be stolen the one that has waited longest, and its place in the queue.
    fn longest_waiting(&self, from: usize, thief: &Thief) -> Option<(usize, u32)> {
        let may = |&(_, &t): &(usize, &u32)| {
            self.placement.steal.may_go(self, t, from, thief) && self.may_use(t, thief.cpu)
        };
        let queue = self.queues[from].fair.iter().enumerate().filter(may);
        queue.min_by_key(|&(i, &t)| (self.waits_since(t), i)).map(|(i, &t)| (i, t))
    }

    /// The CPU that takes a task from a long queue while no CPU idles, of those that `runs` names.
    pub(crate) fn uneven(&self, runs: impl Fn(usize) -> bool) -> Option<usize> {
        if self.idle_set.is_empty() { (self.placement.evens_out)(self, &runs) } else { None }
    }

    /// Whether the core of this CPU idles and running tasks may move there.
    #[inline]
    pub(crate) fn is_better_core(&self, c: usize) -> bool {
        (self.placement.better_cores)(self).is_some_and(|cores| cores.contains(c))
    }

    /// Of the idle cores to which running tasks may move the one that is best to use.
    pub(crate) fn best_better_core(&self) -> Option<usize> {
        let cores = (self.placement.better_cores)(self)?;
        self.search[0].iter().find_map(|s| cores.first_in(s, &self.allowed))
    }

    /// Whether running tasks that share a core are to be pulled apart now, given whether some do while a core idles.
    pub(crate) fn pulls_apart(&mut self, now: u64, shared: bool) -> bool {
        self.placement.steal.pulls_apart(self, now, shared)
    }

    /// Whether a balance is to look again at tasks that share a core.
    pub(crate) fn has_shared(&self) -> bool {
        self.shared_since != NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::placement::affine::AFFINE;
    use crate::sched::placement::{LINUX, Placement, SPREAD};
    use wattwise_model::machine::{builtin, file};

    const MS: u64 = 1_000_000;
    /// A CPU of another core, and the other thread of CPU 0's.
    const FAR: usize = 2;
    const SIBLING: usize = 1;

    fn laptop() -> MachineModel {
        let name = "alderlake-p-laptop";
        file::parse(builtin::text(name).expect("bundled"), name).expect("sound")
    }

    /// Task 0 runs on CPU 0, task 1 ran there until 10 ms and waits.
    fn crowded<'a>(m: &'a MachineModel, placement: &'static Placement) -> Scheduler<'a> {
        let mut s = Scheduler::new(m, placement, &[]);
        (0..2).for_each(|_| s.add(0, 0, false));
        s.starts(0, 7 * MS);
        s.charge(0, 1, 10 * MS);
        s.requeue(0, 1, 10 * MS);
        s.starts(0, 10 * MS);
        s.share(0, 0, 10 * MS, NEVER);
        s
    }

    fn stolen(s: &mut Scheduler<'_>, by: usize, now: u64) -> Option<u32> {
        match s.pull(by, now, |v| (v == 0).then_some(0))? {
            Pulled::Stolen(stolen) => Some(stolen.task),
            Pulled::OwnQueue(_) => None,
        }
    }

    #[test]
    fn a_hot_task_is_not_pulled() {
        let m = laptop();
        let soon = 10 * MS + WARM_NS - 1;
        assert_eq!(stolen(&mut crowded(&m, &LINUX), FAR, soon), None);
        assert_eq!(stolen(&mut crowded(&m, &LINUX), FAR, soon + 1), Some(1));
        assert_eq!(
            stolen(&mut crowded(&m, &LINUX), SIBLING, soon),
            Some(1),
            "its cache is the sibling's too"
        );
        assert_eq!(stolen(&mut crowded(&m, &SPREAD), FAR, soon), Some(1), "others know no heat");
    }

    #[test]
    fn who_idles_for_moments_does_not_look_far() {
        let m = laptop();
        let mut s = crowded(&m, &LINUX);
        let stays = |s: &mut Scheduler<'_>, by: usize, ns: u64| {
            for i in 0..100 {
                s.idles(by, i * MS);
                s.wakes(by, i * MS + ns);
            }
        };
        // 16 CPUs of the cache cost 1.6 us, two of the core 0.2 us.
        stays(&mut s, FAR, 1_000);
        assert_eq!(stolen(&mut s, FAR, 200 * MS), None);
        stays(&mut s, SIBLING, 100);
        assert_eq!(stolen(&mut s, SIBLING, 200 * MS), None);
        stays(&mut s, SIBLING, 1_000);
        assert_eq!(stolen(&mut s, SIBLING, 200 * MS), Some(1));
    }

    /// Linux 3.1's `idle_balance()`: `avg_idle` below the migration cost, 500 us.
    #[test]
    fn in_linux_3_1_who_idles_for_less_than_the_migration_cost_pulls_nothing() {
        let m = laptop();
        let after = |stay_ns: u64| {
            let mut s = crowded(&m, &AFFINE);
            for i in 0..100 {
                s.idles(FAR, i * MS);
                s.wakes(FAR, i * MS + stay_ns);
            }
            stolen(&mut s, FAR, 200 * MS)
        };
        assert_eq!(after(WARM_NS - 10_000), None);
        assert_eq!(after(WARM_NS + 10_000), Some(1));
    }

    #[test]
    fn running_tasks_are_pulled_apart_when_nothing_else_helped() {
        let m = laptop();
        let mut s = crowded(&m, &LINUX);
        // The cache's 16 CPUs balance every 16 ms.
        assert!(!s.pulls_apart(0, true) && !s.pulls_apart(47 * MS, true) && s.has_shared());
        assert!(s.pulls_apart(48 * MS, true) && !s.has_shared());
        assert!(!s.pulls_apart(52 * MS, true) && !s.pulls_apart(56 * MS, false));
        assert!(!s.pulls_apart(110 * MS, true), "counted anew");
        assert!(crowded(&m, &SPREAD).pulls_apart(0, true));
    }

    /// Queues' clocks have nothing to do with each other: who has run alone for a second is not a second ahead elsewhere.
    #[test]
    fn a_woken_task_is_as_far_ahead_elsewhere() {
        let m = laptop();
        let mut s = Scheduler::new(&m, &LINUX, &[]);
        s.add(0, 0, false);
        s.starts(0, 0);
        s.charge(0, 0, 1000 * MS);
        s.wakes_elsewhere(0, FAR);
        assert_eq!(s.entity(0).vruntime, s.queues[FAR].clock);
        s.add(0, 0, false);
        s.queues[FAR].clock = 50 * MS;
        s.entities[1].vruntime = s.queues[0].clock - MS;
        s.wakes_elsewhere(1, FAR);
        assert_eq!(s.entity(1).vruntime, 50 * MS, "without credit");
    }
}
