//! The core governor owns the core policy, and what it has seen since it last looked. It answers which CPUs are kept.

use wattwise_figure::Histogram;
use wattwise_model::machine::MachineModel;
use wattwise_policy::cores::CpuPlace;
use wattwise_policy::{CoreObservation, CorePolicy, CorePower, CpuSample};

/// A core policy at work.
pub(crate) struct CoreGovernor {
    policy: Box<dyn CorePolicy>,
    /// CPUs in the order in which they are kept.
    order: Vec<u16>,
    kept: usize,
    /// Idle time and idle time with I/O outstanding when it last looked, and when that was.
    seen: Vec<(u64, u64)>,
    seen_at: u64,
    samples: Vec<CpuSample>,
    /// Waits and wake-ups since then.
    waits: Histogram,
    wakeups: u64,
}

/// When the policy looks next.
pub(crate) struct NextLook {
    /// In so many ns.
    pub(crate) in_ns: u64,
    /// What the look costs, in ns.
    pub(crate) cost_ns: u64,
    /// On which CPU it is done.
    pub(crate) cpu: usize,
}

/// What follows from another number of kept CPUs.
pub(crate) struct KeptCpus {
    /// The CPUs that are kept.
    pub(crate) kept: Vec<usize>,
    /// Those that are not.
    pub(crate) given_up: Vec<usize>,
    /// Whether they are more than before.
    pub(crate) more: bool,
}

fn numbers(cpus: &[u16]) -> Vec<usize> {
    cpus.iter().map(|&c| usize::from(c)).collect()
}

impl CoreGovernor {
    pub(crate) fn new(
        mut policy: Box<dyn CorePolicy>,
        machine: &MachineModel,
        powers: &[CorePower],
    ) -> CoreGovernor {
        policy.learn(powers);
        let places: Vec<CpuPlace> =
            machine.cpus.iter().map(|c| CpuPlace { core: c.core, package: c.package }).collect();
        CoreGovernor {
            order: policy.order(&places),
            policy,
            kept: machine.cpus.len(),
            seen: vec![(0, 0); machine.cpus.len()],
            seen_at: 0,
            samples: vec![CpuSample::default(); machine.cpus.len()],
            waits: Histogram::default(),
            wakeups: 0,
        }
    }

    /// The policy takes over, before the work begins: how many CPUs it keeps, and when it first looks.
    pub(crate) fn start(&mut self) -> (usize, u64) {
        (self.policy.start(), self.policy.period_ns())
    }

    /// A task waited for so long.
    #[inline]
    pub(crate) fn waited(&mut self, ns: u64) {
        self.waits.record(ns);
    }

    /// Looks at a CPU: how long it has idled so far, without and with I/O outstanding, and its tasks.
    pub(crate) fn look_at(&mut self, c: usize, now: u64, (idle, io): (u64, u64), runnable: u32) {
        let (was_idle, was_io) = std::mem::replace(&mut self.seen[c], (idle, io));
        let (idle_ns, iowait_ns) = (idle - was_idle, io - was_io);
        let busy_ns = (now - self.seen_at).saturating_sub(idle_ns + iowait_ns);
        self.samples[c] = CpuSample { busy_ns, idle_ns, iowait_ns, runnable, ..CpuSample::default() };
    }

    /// Having looked at all CPUs, decides how many are kept. `wakeups`: all so far.
    pub(crate) fn observe(&mut self, now: u64, wakeups: u64) -> usize {
        self.seen_at = now;
        let waits = std::mem::take(&mut self.waits);
        let wakeups = wakeups - std::mem::replace(&mut self.wakeups, wakeups);
        self.policy.observe(&CoreObservation {
            now_ns: now,
            cpus: &self.samples,
            worst_wait_ns: waits.max(),
            wait_p99_ns: Some(waits.quantile(0.99)),
            wait_mean_ns: None,
            wakeups: Some(wakeups),
        })
    }

    /// Its next look, on the first CPU that is kept.
    pub(crate) fn next_look(&self) -> NextLook {
        NextLook {
            in_ns: self.policy.period_ns().max(1),
            cost_ns: self.policy.cost_ns(),
            cpu: usize::from(self.order[0]),
        }
    }

    /// Keeps the first so many CPUs; none when that changes nothing.
    pub(crate) fn keep(&mut self, kept: usize) -> Option<KeptCpus> {
        let kept = kept.clamp(1, self.order.len());
        let before = std::mem::replace(&mut self.kept, kept);
        let (first, others) = self.order.split_at(kept);
        (kept != before).then(|| KeptCpus {
            kept: numbers(first),
            given_up: numbers(others),
            more: kept > before,
        })
    }
}
