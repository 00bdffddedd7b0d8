//! What the rules keep from one wake-up to the next: who wakes whom, where a task was before, and what is known of a
//! cache's CPUs.

use super::{EndedTask, Queues, SchedTopology, Wakeup};
use crate::NONE;
use crate::sched::cpuset::CpuSet;
use wattwise_policy::pelt::FULL;

/// Flips count for half after this long: `record_wakee()`, HZ jiffies.
const FLIPS_HALVE_NS: u64 = 1_000_000_000;

/// A cache's load is looked at again after so much for each CPU: the balance interval, 1 ms a CPU of the domain.
const LOOK_NS_A_CPU: u64 = 1_000_000;

/// Imbalance that a domain above cores bears, in %: `imbalance_pct` of `sd_init()`.
pub(super) const IMBALANCE_PCT: u64 = 117;

/// What is known of a task, or of a CPU's idle task.
#[derive(Clone, Copy)]
struct Past {
    /// Whom it woke last.
    wakee: u32,
    /// How often it woke another than the time before (`wakee_flips`).
    flips: u32,
    flips_halved_at: u64,
    /// Its CPU when it last looked for one beyond its last (`recent_used_cpu`).
    recent: u32,
    /// When it last woke, and how long it had run by then.
    woken_at: u64,
    ran_ns: u64,
}

const NO_PAST: Past =
    Past { wakee: NONE, flips: 0, flips_halved_at: 0, recent: NONE, woken_at: 0, ran_ns: 0 };

/// What is known of a last-level cache's CPUs (`sched_domain_shared`).
struct Cache {
    /// Perhaps some core of it idles as a whole (`has_idle_cores`). Set when one does, cleared by a search in vain.
    idle_cores: bool,
    /// How many CPUs are looked at for an idle one (`nr_idle_scan`).
    scan: usize,
    /// Share of time that its CPUs are busy, of 1024; time of 32 ms ago counts half.
    util: u64,
    /// When that was last brought up to date, with how much busy time, and when it will be.
    seen_at: u64,
    busy_ns: u64,
    due_at: u64,
}

/// What a CPU did lately for tasks that have not ended: what one did takes it along.
#[derive(Clone, Copy, Default)]
struct RecentBusy {
    /// Time, that of 32 ms ago counting half, in ns.
    ns: f64,
    /// When that was last brought up to date, with how much time in all.
    seen_at: u64,
    all_ns: u64,
}

/// After so long time counts half, as in [`wattwise_policy::pelt`]; and so often idle CPUs are looked after. The kernel has one
/// number for both (`LOAD_AVG_PERIOD`).
const HALF_NS: u64 = 32 << 20;
/// What a CPU comes to that is always busy.
const ALWAYS_BUSY_NS: f64 = HALF_NS as f64 * std::f64::consts::LOG2_E;
/// All of it.
pub(super) struct PlacementMemory {
    tasks: Vec<Past>,
    recent: Vec<RecentBusy>,
    idle_tasks: Vec<Past>,
    caches: Vec<Cache>,
}

impl RecentBusy {
    /// Brought up to now, when it has been `all_ns` in all. What came since the last look is taken to be spread evenly.
    fn brought_to(&mut self, now: u64, all_ns: u64) -> f64 {
        let span = now.saturating_sub(self.seen_at);
        if span > 0 {
            let stays = (-(span as f64) / HALF_NS as f64).exp2();
            let share = (all_ns as f64 - self.all_ns as f64) / span as f64;
            self.ns = (self.ns * stays + share * ALWAYS_BUSY_NS * (1.0 - stays)).max(0.0);
            (self.seen_at, self.all_ns) = (now, all_ns);
        }
        self.ns
    }
}

/// What an ended task leaves on an idle CPU until somebody looks after it (`cfs_rq->removed`), which is done every 32 ms
/// (`nohz.next_blocked`), of 1024: half, its credit as a new task, and more the longer it ran.
fn left_by(ended: EndedTask) -> u64 {
    let stays = (-(ended.ran_ns as f64) / HALF_NS as f64).exp2();
    (FULL as f64 * (1.0 - stays / 2.0)) as u64
}

impl PlacementMemory {
    pub(super) fn new(topology: &SchedTopology) -> PlacementMemory {
        let cache = |llc: usize| Cache {
            idle_cores: true,
            scan: topology.llcs[llc].len(),
            util: 0,
            seen_at: 0,
            busy_ns: 0,
            due_at: 0,
        };
        PlacementMemory {
            tasks: Vec::new(),
            recent: vec![RecentBusy::default(); topology.len()],
            idle_tasks: vec![NO_PAST; topology.len()],
            caches: (0..topology.llcs.len()).map(cache).collect(),
        }
    }

    pub(super) fn add_task(&mut self) {
        self.tasks.push(NO_PAST);
    }

    fn waker(&mut self, w: &Wakeup) -> &mut Past {
        match w.waker {
            Some(t) => &mut self.tasks[t as usize],
            None => &mut self.idle_tasks[w.from],
        }
    }

    /// `record_wakee()`
    pub(super) fn record_wakee(&mut self, w: &Wakeup) {
        let waker = self.waker(w);
        if w.now > waker.flips_halved_at + FLIPS_HALVE_NS {
            waker.flips /= 2;
            waker.flips_halved_at = w.now;
        }
        if waker.wakee != w.task {
            waker.wakee = w.task;
            waker.flips += 1;
        }
    }

    /// `wake_wide()`: both wake so many others that one cache would not hold them all.
    pub(super) fn is_wide(&mut self, w: &Wakeup, llc_cpus: usize) -> bool {
        let factor = llc_cpus as u32;
        let (a, b) = (self.waker(w).flips, self.tasks[w.task as usize].flips);
        let (less, more) = (a.min(b), a.max(b));
        less >= factor && more >= less.saturating_mul(factor)
    }

    pub(super) fn recent(&self, task: u32) -> Option<usize> {
        Some(self.tasks[task as usize].recent as usize).filter(|&c| c != NONE as usize)
    }

    pub(super) fn set_recent(&mut self, task: u32, cpu: usize) {
        self.tasks[task as usize].recent = cpu as u32;
    }

    #[inline]
    pub(super) fn has_idle_cores(&self, llc: usize) -> bool {
        self.caches[llc].idle_cores
    }

    #[inline]
    pub(super) fn set_idle_cores(&mut self, llc: usize, has: bool) {
        self.caches[llc].idle_cores = has;
    }

    pub(super) fn scan(&self, llc: usize) -> usize {
        self.caches[llc].scan
    }

    pub(super) fn load_of(&mut self, task: u32, ran_ns: u64, now: u64) -> u64 {
        let past = &mut self.tasks[task as usize];
        let ran = ran_ns - std::mem::replace(&mut past.ran_ns, ran_ns);
        let since = now - std::mem::replace(&mut past.woken_at, now);
        (FULL * ran).checked_div(since).unwrap_or(0).min(FULL)
    }

    /// How busy some CPUs were lately, each of 1024 (`cpu_util()`).
    pub(super) fn busy_lately(&mut self, cpus: &CpuSet, now: u64, queues: &dyn Queues) -> u64 {
        let looked_after = now - now % HALF_NS;
        let of = |c: usize| {
            let all_ns = queues.busy_ns(c).saturating_sub(queues.ended_ns(c));
            let left = queues.ended_last(c).filter(|e| e.at >= looked_after).map_or(0, left_by);
            let util = self.recent[c].brought_to(now, all_ns) / ALWAYS_BUSY_NS * FULL as f64;
            util as u64 + left
        };
        cpus.iter().map(of).sum()
    }

    /// `update_idle_cpu_scan()`: of a cache of n CPUs with utilization u, n (1 - (1.17 u)^2) are worth looking at.
    pub(super) fn refresh(&mut self, topology: &SchedTopology, cpu: usize, now: u64, queues: &dyn Queues) {
        let llc = topology.llc_of(cpu);
        let cache = &mut self.caches[llc];
        if now < cache.due_at {
            return;
        }
        let cpus = topology.llcs[llc].len() as u64;
        let busy_ns: u64 = topology.llcs[llc].iter().map(|c| queues.busy_ns(c)).sum();
        let (busy, span) = (busy_ns.saturating_sub(cache.busy_ns), now - cache.seen_at);
        let share = (FULL * busy).checked_div(span * cpus).unwrap_or(0).min(FULL);
        cache.util = faded(cache.util, share, span);
        (cache.busy_ns, cache.seen_at) = (busy_ns, now);
        cache.due_at = now + cpus * LOOK_NS_A_CPU;
        let square = cache.util * cache.util * IMBALANCE_PCT * IMBALANCE_PCT / (10_000 * FULL);
        cache.scan = (FULL.saturating_sub(square) * cpus / FULL) as usize;
    }
}

/// A share of time that was `old` and has been `new` for so long since.
fn faded(old: u64, new: u64, span_ns: u64) -> u64 {
    let mut apart = old as i64 - new as i64;
    let mut ms = span_ns / 1_000_000;
    while ms >= 32 && apart != 0 {
        apart /= 2;
        ms -= 32;
    }
    // 1002/1024 is the 32nd root of one half.
    for _ in 0..ms.min(32) {
        apart = apart * 1002 / 1024;
    }
    (new as i64 + apart) as u64
}
