//! Core policies: how many CPUs are kept, and moving work off the others.
//!
//! The policy looks by a kernel timer on the first CPU that is kept. What a CPU that is given up was running or had
//! queued moves at once; timers follow their tasks. A CPU that is opened takes tasks that wait.

use super::sched::CpuSet;
use super::{NEVER, NONE, Phase, Placement, Simulation, Source};
use wattwise_figure::Histogram;
use wattwise_model::machine::{CState, Machine};
use wattwise_policy::cores::Place;
use wattwise_policy::{CoreObservation, CorePolicy, CorePower, CpuSample, Draw};

/// A core policy at work.
pub(super) struct Keeper {
    policy: Box<dyn CorePolicy>,
    /// CPUs in the order in which they are kept.
    order: Vec<u16>,
    kept: usize,
    /// Idle time and idle time with I/O outstanding when it last looked, and when that was.
    seen: Vec<(u64, u64)>,
    seen_at: u64,
    samples: Vec<CpuSample>,
    /// Waits and wake-ups since then.
    pub(super) waits: Histogram,
    wakeups: u64,
}

impl Keeper {
    pub(super) fn new(mut policy: Box<dyn CorePolicy>, machine: &Machine) -> Keeper {
        policy.learn(&powers(machine));
        let places: Vec<Place> =
            machine.cpus.iter().map(|c| Place { core: c.core, package: c.package }).collect();
        Keeper {
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
}

/// What a core policy is told of a machine.
pub(super) fn powers(machine: &Machine) -> Vec<CorePower> {
    let milli = |x: f64| (x * 1000.0) as u32;
    let power = |c: &wattwise_model::machine::Cpu| {
        let (kind, package) =
            (&machine.kinds[usize::from(c.kind)], &machine.packages[usize::from(c.package)]);
        let (top, threads) = (&kind.levels[0], machine.cores[usize::from(c.core)].cpus.len());
        let rate = top.cycles_per_ns * kind.ipc;
        let share = |table: &[f64]| table.get(threads - 1).or(table.last()).copied().unwrap_or(1.0);
        let watts = |s: &CState| s.watts.first().copied().unwrap_or(0.0);
        let ends = kind.idle.first().zip(kind.idle.last());
        // Within a tenth of what there is to save.
        let frugal = ends.map_or(0.0, |(shallow, deep)| watts(deep) + (watts(shallow) - watts(deep)) * 0.1);
        let idle = |s: Option<&CState>| s.map_or(0, |s| milli(watts(s)));
        CorePower {
            place: Place { core: c.core, package: c.package },
            deep_stay_ns: kind.idle.iter().find(|s| watts(s) <= frugal).map_or(0, |s| s.target_ns),
            draw: Some(Draw {
                rate: milli(rate),
                rate_all: milli(rate * threads as f64 * share(&kind.smt_throughput)),
                busy_mw: milli(top.busy_w),
                busy_all_mw: milli(top.busy_w * share(&kind.smt_power)),
                shallow_mw: idle(kind.idle.first()),
                deep_mw: idle(kind.idle.last()),
                package_saves_mw: package.idle.last().map_or(0, |s| milli(package.uncore_w - s.watts)),
            }),
        }
    };
    machine.cpus.iter().map(power).collect()
}

impl Simulation<'_> {
    /// The policy takes over, before the work begins.
    pub(super) fn start_keeper(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        debug_assert!(self.placement != Placement::Recorded, "a recorded placement knows no kept CPUs");
        let kept = keeper.policy.start();
        let first = keeper.policy.period_ns();
        self.keep(kept);
        self.calendar.set(self.source(Source::Cores), first + self.phase_ns);
    }

    /// The policy's timer: a look, a decision, and what follows from it.
    pub(super) fn keeper_timer(&mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        for c in 0..self.cpus.len() {
            let s = &self.cpus[c];
            let (idle, io) = s.idle.totals(s.phase, self.now);
            let (was_idle, was_io) = std::mem::replace(&mut keeper.seen[c], (idle, io));
            let (idle_ns, iowait_ns) = (idle - was_idle, io - was_io);
            let busy_ns = (self.now - keeper.seen_at).saturating_sub(idle_ns + iowait_ns);
            let runnable = s.queue.len() as u32 + u32::from(s.current != NONE);
            keeper.samples[c] = CpuSample { busy_ns, idle_ns, iowait_ns, runnable, ..CpuSample::default() };
        }
        keeper.seen_at = self.now;
        let waits = std::mem::take(&mut keeper.waits);
        let wakeups = self.wakeups - std::mem::replace(&mut keeper.wakeups, self.wakeups);
        let kept = keeper.policy.observe(&CoreObservation {
            now_ns: self.now,
            cpus: &keeper.samples,
            worst_wait_ns: waits.max(),
            wait_p99_ns: Some(waits.quantile(0.99)),
            wait_mean_ns: None,
            wakeups: Some(wakeups),
        });
        let (next, cost, first) = (
            self.now + keeper.policy.period_ns().max(1),
            keeper.policy.cost_ns(),
            usize::from(keeper.order[0]),
        );
        self.keeper = Some(keeper);
        self.keep(kept);
        self.calendar.set(self.source(Source::Cores), next);
        self.interrupt(first, cost);
    }

    /// Keeps the first so many CPUs.
    fn keep(&mut self, kept: usize) {
        let Some(keeper) = &mut self.keeper else { return };
        let kept = kept.clamp(1, keeper.order.len());
        let before = std::mem::replace(&mut keeper.kept, kept);
        if kept == before {
            return;
        }
        let given_up: Vec<usize> = keeper.order[kept..].iter().map(|&c| usize::from(c)).collect();
        let mut allowed = CpuSet::new(self.cpus.len());
        keeper.order[..kept].iter().for_each(|&c| allowed.insert(usize::from(c)));
        self.allowed = allowed;
        for c in given_up {
            while let Some(t) = self.take_waiting(c) {
                let target = self.choose_cpu(t, c);
                self.move_over(t, c, target);
            }
            if self.cpus[c].phase == Phase::Task
                && let Some(t) = self.stop_running(c)
            {
                let target = self.choose_cpu(t, c);
                self.move_over(t, c, target);
            }
        }
        if kept > before && self.calendar.at(self.source(Source::Balance)) != NEVER {
            self.balance();
        }
    }
}
