//! What the residencies add up to: joules, and times by CPU, core and package.

use super::Hardware;
use super::memory::MemoryAccount;
use super::residency::{CoreAccount, PackageAccount, Threads};
use crate::outcome::{CpuTimes, Energy};
use wattwise_model::machine::{Package, REFERENCE_C};

/// What a CPU has done so far.
pub(crate) struct CpuReading {
    /// Time awake.
    pub(crate) awake_ns: u64,
    /// In each C-state.
    pub(crate) idle_ns: Vec<u64>,
    /// Its clock's speed times time, in kHz x ns.
    pub(crate) khz_ns: f64,
}

impl Hardware<'_> {
    /// Books everything up to now.
    pub(crate) fn settle(&mut self, now: u64) {
        self.cores.iter_mut().zip(&mut self.threads).for_each(|(c, threads)| c.settle(threads, now));
        self.packages.iter_mut().for_each(|p| p.settle(now));
        if let Some(memory) = &mut self.memory {
            memory.settle(now);
        }
    }

    /// A package's energy so far, its cores' included; call [`Hardware::settle`] first.
    pub(super) fn package_joules(&self, p: usize) -> f64 {
        self.package_joules_with(p, self.cores_joules(p))
    }

    /// The same where its cores' energy is known.
    pub(super) fn package_joules_with(&self, p: usize, cores: f64) -> f64 {
        cores + self.leakage_joules(p, cores) + self.uncore_joules(p)
    }

    /// A package's cores, at the temperature that the model's watts are for.
    pub(super) fn cores_joules(&self, p: usize) -> f64 {
        self.machine.packages[p].cores.iter().map(|&c| self.core_joules(usize::from(c))).sum()
    }

    /// What a package's temperature adds to its cores' energy `cores`: up to its last reading, and since then at the present
    /// temperature.
    pub(super) fn leakage_joules(&self, p: usize, cores: f64) -> f64 {
        let per_c = self.machine.packages[p].thermal.leakage_per_c;
        if per_c == 0.0 {
            return 0.0;
        }
        let account = &self.packages[p];
        let since = cores - account.core_joules;
        account.leakage_joules + since * per_c * (account.celsius - REFERENCE_C)
    }

    fn core_joules(&self, core: usize) -> f64 {
        let account = &self.cores[core];
        let kind = &self.machine.kinds[usize::from(account.kind)];
        account.slots().map(|s| account.slot_joules(kind, s)).sum()
    }

    pub(super) fn uncore_joules(&self, p: usize) -> f64 {
        let model = &self.machine.packages[p];
        let watts = |slot: usize| match (slot, &model.uncore) {
            (0, _) => model.uncore_w,
            (high, Some(uncore)) if high > model.idle.len() => model.uncore_w + uncore.step_w,
            (idle, _) => model.idle[idle - 1].watts,
        };
        let account = &self.packages[p];
        let times = account.residency.times.iter();
        let states: f64 = times.enumerate().map(|(s, &ns)| ns as f64 * 1e-9 * watts(s)).sum();
        match (&account.uncore, &model.uncore) {
            (Some(account), Some(model)) => states + account.follow_joules(model),
            _ => states,
        }
    }

    /// What a package draws beside its cores at present, in watts.
    pub(super) fn uncore_watts(&self, p: usize) -> f64 {
        let (model, account) = (&self.machine.packages[p], &self.packages[p]);
        match account.idle_state() {
            Some(state) => model.idle[state].watts,
            None => {
                let follows = account.uncore.as_ref().zip(model.uncore.as_ref());
                model.uncore_w + follows.map_or(0.0, |(account, model)| account.watts(model))
            }
        }
    }

    /// What the memory of the packages draws beside its rest: more with the uncore, less while they sleep.
    fn memory_states_joules(&self) -> f64 {
        let memory = self.machine.memory;
        if memory.high_w == 0.0 && memory.asleep_less_w == 0.0 {
            return 0.0;
        }
        let of = |p: &PackageAccount, model: &Package| {
            let watts = |slot: usize| match slot {
                0 => 0.0,
                high if high > model.idle.len() => memory.high_w,
                _ => -memory.asleep_less_w,
            };
            let times = p.residency.times.iter().enumerate();
            times.map(|(slot, &ns)| ns as f64 * 1e-9 * watts(slot)).sum::<f64>()
        };
        self.packages.iter().zip(&self.machine.packages).map(|(p, model)| of(p, model)).sum()
    }

    fn memory_joules(&self, now: u64) -> f64 {
        let memory = self.machine.memory;
        let by_clock = self.memory.as_ref().map_or(0.0, MemoryAccount::joules);
        let rest = memory.rest_w * self.packages.len() as f64 * now as f64 * 1e-9
            + self.memory_states_joules()
            + by_clock;
        if memory.busy_w == 0.0 {
            return rest;
        }
        let at_work = |account: &CoreAccount| -> u64 {
            let busy = account.slots().filter(|s| s.code > usize::from(account.awake));
            busy.map(|s| s.ns).sum()
        };
        rest + memory.busy_w * self.cores.iter().map(at_work).sum::<u64>() as f64 * 1e-9
    }

    fn platform_joules(&self, now: u64) -> f64 {
        self.machine.platform_w * now as f64 * 1e-9
    }

    /// The whole machine's energy so far; call [`Hardware::settle`] first.
    pub(crate) fn total_joules(&self, now: u64) -> f64 {
        let packages: f64 = (0..self.packages.len()).map(|p| self.package_joules(p)).sum();
        packages + self.memory_joules(now) + self.platform_joules(now)
    }

    /// The same by part.
    pub(crate) fn energy(&self, now: u64) -> Energy {
        let packages = || 0..self.packages.len();
        let mut energy = Energy {
            busy_j: 0.0,
            stall_j: 0.0,
            idle_j: Vec::new(),
            leakage_j: packages().map(|p| self.leakage_joules(p, self.cores_joules(p))).sum(),
            uncore_j: packages().map(|p| self.uncore_joules(p)).sum(),
            memory_j: self.memory_joules(now),
            platform_j: self.platform_joules(now),
            package_j: packages().map(|p| self.package_joules(p)).collect(),
        };
        for account in &self.cores {
            let kind = &self.machine.kinds[usize::from(account.kind)];
            for slot in account.slots() {
                let joules = account.slot_joules(kind, slot);
                match slot.code {
                    c if c < usize::from(account.awake) => {
                        let name = &kind.idle[c].name;
                        match energy.idle_j.iter_mut().find(|(n, _)| n == name) {
                            Some((_, j)) => *j += joules,
                            None => energy.idle_j.push((name.clone(), joules)),
                        }
                    }
                    c if c == usize::from(account.awake) => energy.stall_j += joules,
                    _ => energy.busy_j += joules,
                }
            }
        }
        energy
    }

    /// Where each CPU's time went so far.
    pub(crate) fn cpu_times(&self) -> Vec<CpuTimes> {
        let of = |c: usize| {
            let (core, threads, thread) = self.thread_of(c);
            let kind = &self.machine.kinds[usize::from(core.kind)];
            let (stall, busy) = (usize::from(core.awake), usize::from(core.awake) + 1);
            let levels = || core.thread_times(threads, thread);
            CpuTimes {
                speed: kind.levels.iter().zip(levels()).map(|(l, t)| (l.khz, t[stall] + t[busy])).collect(),
                idle: kind
                    .idle
                    .iter()
                    .map(|s| s.name.clone())
                    .zip(core.thread_idle_ns(threads, thread))
                    .collect(),
                busy_ns: levels().map(|t| t[busy]).sum(),
                stall_ns: levels().map(|t| t[stall]).sum(),
            }
        };
        (0..self.machine.cpus.len()).map(of).collect()
    }

    /// A CPU's core, its threads, and which of them it is.
    fn thread_of(&self, c: usize) -> (&CoreAccount, &Threads, usize) {
        let index = usize::from(self.machine.cpus[c].core);
        let core = &self.cores[index];
        (core, &self.threads[index], c - usize::from(core.first_cpu))
    }

    /// What a CPU has done so far.
    pub(crate) fn reading(&self, c: usize) -> CpuReading {
        let (core, threads, thread) = self.thread_of(c);
        let awake = core.thread_times(threads, thread).flat_map(|codes| &codes[usize::from(core.awake)..]);
        let kind = &self.machine.kinds[usize::from(core.kind)];
        CpuReading {
            awake_ns: awake.sum(),
            idle_ns: core.thread_idle_ns(threads, thread).collect(),
            khz_ns: core.khz_ns(kind),
        }
    }

    /// Each core's time in each C-state so far.
    pub(crate) fn core_times(&self) -> Vec<Vec<u64>> {
        self.cores.iter().map(CoreAccount::core_idle_ns).collect()
    }

    /// The memory's time at each of its clocks, in kHz and ns, fastest first; nothing where the kernel sets none.
    pub(crate) fn memory_times(&self) -> Vec<(u32, u64)> {
        self.memory.as_ref().map(MemoryAccount::times).unwrap_or_default()
    }

    /// Each package's time awake, and in each of its idle states.
    pub(crate) fn package_times(&self) -> Vec<Vec<u64>> {
        self.packages.iter().map(PackageAccount::times).collect()
    }

    /// The highest temperature so far, in degrees Celsius.
    pub(crate) fn peak_c(&self) -> f64 {
        self.packages.iter().map(|p| p.peak_c).fold(f64::MIN, f64::max)
    }

    /// Changes of speed carried out.
    pub(crate) fn transitions(&self) -> u64 {
        self.domains.iter().map(|d| d.transitions).sum()
    }
}
