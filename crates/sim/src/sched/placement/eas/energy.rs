//! The energy model, in the kernel's whole numbers, and what a task adds to it.

use crate::sched::cpuset::CpuSet;
use wattwise_model::machine::{Domain, MachineModel};

/// A level as the kernel's energy model has it (`struct em_perf_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PerfState {
    /// Work done a second, of 1024 of the strongest CPU's highest.
    performance: u64,
    /// Energy of a unit of utilisation: 10 x uW / performance.
    cost: u64,
}

/// A performance domain: CPUs of one clock.
#[derive(Clone, Debug)]
struct PerfDomain {
    cpus: Vec<usize>,
    /// Of each of them.
    capacity: u64,
    /// Slowest first; levels that cost no less than a faster one are left out.
    states: Vec<PerfState>,
}

/// What the kernel knows of a machine's energy.
#[derive(Clone, Debug)]
pub(super) struct EnergyModel {
    domains: Vec<PerfDomain>,
    /// By CPU.
    capacities: Vec<u64>,
}

/// A CPU's load, of 1024 of the strongest CPU's highest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuLoad {
    /// Its signal (`util_avg`), to which tasks that sleep still add.
    pub(super) util: u64,
    /// What is expected of the tasks that are there now (`util_est`).
    pub(super) expected: u64,
}

/// A woken task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Woken {
    /// The CPU of its last run.
    pub(super) prev: usize,
    /// Its signal, and what is expected of it.
    pub(super) util: u64,
    pub(super) expected: u64,
}

impl Woken {
    /// `task_util_est()`
    fn need(&self) -> u64 {
        self.util.max(self.expected)
    }
}

/// A CPU that might take the task.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cpu: usize,
    spare: u64,
}

/// `fits_capacity()`: with a quarter on top it is less.
pub(in crate::sched) fn fits(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

/// A utilisation with the head-room that schedutil leaves (`map_util_perf()`).
fn with_room(util: u64) -> u64 {
    util + util / 4
}

impl PerfDomain {
    /// None where the energy model lacks a level's power: the kernel takes none such.
    fn of(machine: &MachineModel, domain: &Domain) -> Option<PerfDomain> {
        let kind = usize::from(domain.kind);
        let (levels, capacity) = (&machine.kinds[kind].levels, u64::from(machine.scheduler_capacity(kind)));
        let fastest = u64::from(levels[0].khz);
        let mut states: Vec<PerfState> = Vec::new();
        for level in levels.iter().filter(|l| !l.throttled) {
            let performance = (capacity * u64::from(level.khz) / fastest).max(1);
            if level.model_uw == 0 {
                return None;
            }
            let cost = u64::from(level.model_uw) * 10 / performance;
            if states.last().is_none_or(|faster| cost < faster.cost) {
                states.push(PerfState { performance, cost });
            }
        }
        states.reverse();
        let cpus = domain.cores.iter().flat_map(|&c| &machine.cores[usize::from(c)].cpus);
        let mut cpus: Vec<usize> = cpus.map(|&c| usize::from(c)).collect();
        cpus.sort_unstable();
        Some(PerfDomain { cpus, capacity, states })
    }

    /// Energy of so much utilisation in all, where the busiest CPU has `busiest`, with its head-room (`em_cpu_energy()`).
    fn energy(&self, busiest: u64, sum: u64) -> u64 {
        let wanted = busiest.min(self.capacity);
        let state = self.states.iter().find(|s| s.performance >= wanted).or(self.states.last());
        state.map_or(0, |s| s.cost * sum)
    }
}

impl EnergyModel {
    /// Of a machine whose cores differ in capacity to the scheduler (one thread each) and tell their real speed.
    pub(super) fn of(machine: &MachineModel) -> Option<EnergyModel> {
        let capacity = |kind: u8| u64::from(machine.scheduler_capacity(usize::from(kind)));
        let capacities: Vec<u64> = machine.cpus.iter().map(|c| capacity(c.kind)).collect();
        let differ = capacities.windows(2).any(|w| w[0] != w[1]);
        if !differ || !machine.load_invariant {
            return None;
        }
        let domains = machine.domains.iter().map(|d| PerfDomain::of(machine, d));
        let mut domains = domains.collect::<Option<Vec<PerfDomain>>>()?;
        // build_perf_domains() puts each new one before those that it has: of equals the last is taken.
        domains.sort_by_key(|d| std::cmp::Reverse(d.cpus.first().copied()));
        Some(EnergyModel { domains, capacities })
    }

    /// Whether some CPU has no head-room left (`cpu_overutilized()`).
    pub(super) fn is_overutilized(&self, loads: &[CpuLoad]) -> bool {
        loads.iter().zip(&self.capacities).any(|(load, &c)| !fits(load.util.max(load.expected).min(c), c))
    }

    /// A CPU's utilisation if the task goes to `to`, or nowhere (`cpu_util()`).
    fn cpu_util(&self, cpu: usize, w: &Woken, to: Option<usize>, loads: &[CpuLoad]) -> u64 {
        let CpuLoad { mut util, mut expected } = loads[cpu];
        match (w.prev == cpu, to == Some(cpu)) {
            (true, false) => util = util.saturating_sub(w.util),
            (false, true) => util += w.util,
            _ => {}
        }
        if to == Some(cpu) {
            expected += w.expected;
        }
        util.max(expected).min(self.capacities[cpu])
    }

    /// A domain's energy if the task goes to `to`, or nowhere (`compute_energy()`).
    fn energy(&self, d: &PerfDomain, w: &Woken, to: Option<usize>, loads: &[CpuLoad]) -> u64 {
        let busiest = d.cpus.iter().map(|&c| with_room(self.cpu_util(c, w, to, loads))).max().unwrap_or(0);
        let most = d.capacity * d.cpus.len() as u64;
        let others: u64 = d.cpus.iter().map(|&c| self.cpu_util(c, w, None, loads)).sum();
        let task = if to.is_some() { w.need() } else { 0 };
        d.energy(busiest, (others.min(most) + task).min(most))
    }

    /// Of the allowed CPUs of a domain that the task fits: its last CPU, and of the others the one with most to spare.
    fn candidates(
        &self,
        d: &PerfDomain,
        w: &Woken,
        loads: &[CpuLoad],
        allowed: &CpuSet,
    ) -> (Option<Candidate>, Option<Candidate>) {
        let (mut prev, mut best): (Option<Candidate>, Option<Candidate>) = (None, None);
        for &cpu in d.cpus.iter().filter(|&&c| allowed.contains(c)) {
            let util = self.cpu_util(cpu, w, Some(cpu), loads);
            if !fits(util, d.capacity) {
                continue;
            }
            let found = Candidate { cpu, spare: d.capacity - util };
            if cpu == w.prev {
                prev = Some(found);
            } else if best.is_none_or(|b| found.spare > b.spare) {
                best = Some(found);
            }
        }
        // Beside the last CPU another is of interest only if it has more to spare.
        let more = |b: &Candidate| prev.is_none_or(|p| b.spare > p.spare);
        (prev, best.filter(more))
    }

    /// The woken task's CPU (`find_energy_efficient_cpu()`).
    pub(super) fn choose(&self, w: &Woken, loads: &[CpuLoad], allowed: &CpuSet) -> usize {
        if w.need() == 0 {
            return w.prev;
        }
        let mut of_prev = u64::MAX;
        let mut best = (u64::MAX, w.prev);
        for d in &self.domains {
            let (prev, other) = self.candidates(d, w, loads, allowed);
            if prev.is_none() && other.is_none() {
                continue;
            }
            let without = self.energy(d, w, None, loads);
            let added = |c: Candidate| self.energy(d, w, Some(c.cpu), loads).checked_sub(without);
            if let Some(prev) = prev {
                // Signals that change meanwhile may make it negative: then nothing is moved.
                let Some(energy) = added(prev) else { return w.prev };
                of_prev = energy;
                if energy < best.0 {
                    best = (energy, w.prev);
                }
            }
            if let Some(other) = other {
                let Some(energy) = added(other) else { return w.prev };
                if energy < best.0 {
                    best = (energy, other.cpu);
                }
            }
        }
        // Another takes it from a last CPU that it fits only by adding less.
        if best.0 < of_prev { best.1 } else { w.prev }
    }
}
