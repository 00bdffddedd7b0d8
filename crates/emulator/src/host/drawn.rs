//! What the machine really draws, with a truth behind it: its cores' speeds and states, its limits, the sleep of its packages.

use super::Host;
use super::parts::HostDomain;
use super::truth::{HOTTEST_C, PackageWatts, Truth, busy_w};
use std::collections::{BTreeMap, BTreeSet};
use wattwise_hw::msr::counters::PACKAGE_STATES;
use wattwise_model::machine::{Core, REFERENCE_C};

/// A core between its work and its sleep.
struct CoreNow {
    /// The speed that its hardware grants it before limits of power and heat, in kHz.
    khz: u32,
    /// Chance that so many of its threads are at work.
    at_work: Vec<f64>,
    /// The C-state of its idle time; none polls.
    state: Option<usize>,
}

/// Steps in which the speed at a limit is found: to a ten-thousandth of it.
const LIMIT_STEPS: usize = 13;
/// Idle time in which every usable state is worth it.
const LONG_NS: u64 = 1_000_000_000;

impl Host {
    /// What each of the model's cores does.
    fn cores_now(&self, truth: &Truth) -> Vec<CoreNow> {
        (0..truth.machine.cores.len()).map(|core| self.core_now(truth, core as u16)).collect()
    }

    fn core_now(&self, truth: &Truth, core: u16) -> CoreNow {
        let mut at_work = vec![1.0];
        let (mut state, mut khz) = (None, None);
        for (index, cpu) in self.cpus.iter().enumerate() {
            if truth.core_of.get(&cpu.id) != Some(&core) || !cpu.online {
                continue;
            }
            let busy = f64::from(cpu.load_permille) / 1000.0;
            let mut next = vec![0.0; at_work.len() + 1];
            for (n, p) in at_work.iter().enumerate() {
                next[n] += p * (1.0 - busy);
                next[n + 1] += p * busy;
            }
            at_work = next;
            let own = self
                .idle_choice(index, LONG_NS, 0)
                .deepest
                .and_then(|d| *truth.state_of.get(&cpu.id)?.get(d)?);
            // As deep as its shallowest thread.
            state = if khz.is_none() { own } else { own.zip(state).map(|(a, b): (usize, usize)| a.min(b)) };
            khz = khz.or(Some(self.hardware_khz(index)));
        }
        if khz.is_none() {
            // All of its threads are offline: as deep as it goes.
            let kind = &truth.machine.kinds[usize::from(truth.machine.cores[usize::from(core)].kind)];
            state = Some(kind.idle.len() - 1);
        }
        CoreNow { khz: khz.unwrap_or(0), at_work, state }
    }

    /// Cores of the package that a core belongs to, with work.
    fn awake_beside(&self, truth: &Truth, core: &Core) -> usize {
        let working = self.cpus.iter().filter(|cpu| cpu.online && cpu.load_permille > 0);
        let cores: BTreeSet<u16> = working.filter_map(|cpu| truth.core_of.get(&cpu.id).copied()).collect();
        cores.iter().filter(|c| truth.machine.cores[usize::from(**c)].package == core.package).count()
    }

    /// The speed that the hardware grants a CPU before limits of power and heat, in kHz.
    fn hardware_khz(&self, index: usize) -> u32 {
        let Some(cpu) = self.cpus.get(index) else { return 0 };
        let asked = cpu.policy.and_then(|i| self.policies.get(i)).map_or(1_000_000, |p| p.cur);
        let asked = self.ceiling_khz.map_or(asked, |most| asked.min(most));
        let Some(truth) = &self.truth else { return asked };
        let core = truth.core_of.get(&cpu.id).and_then(|c| truth.machine.cores.get(usize::from(*c)));
        core.map_or(asked, |core| truth.granted(core, self.awake_beside(truth, core), asked))
    }

    /// The speed at which a CPU really runs, in kHz.
    pub(super) fn granted_khz(&self, index: usize) -> u32 {
        let khz = self.hardware_khz(index);
        let package = self.truth.as_ref().zip(self.cpus.get(index)).and_then(|(truth, cpu)| {
            Some(usize::from(truth.machine.cores.get(usize::from(*truth.core_of.get(&cpu.id)?))?.package))
        });
        let slowed = package.and_then(|p| self.slowed.get(p)).copied().unwrap_or(1.0);
        if slowed < 1.0 { (f64::from(khz) * slowed) as u32 } else { khz }
    }

    /// What the packages draw over a step that begins at these temperatures and ends at those of now.
    pub(super) fn draw_truly(&mut self, cold: &BTreeMap<u32, i64>) {
        let Some(truth) = self.truth.clone() else { return };
        let cores = self.cores_now(&truth);
        let celsius: Vec<f64> = self
            .heat_mc
            .values()
            .zip(cold.values())
            .map(|(a, b)| i64::midpoint(*a, *b) as f64 * 1e-3)
            .collect();
        self.slowed.clear();
        self.true_now.clear();
        for p in 0..truth.machine.packages.len() {
            let at = celsius.get(p).copied().unwrap_or(REFERENCE_C);
            let draw = |slowed: f64| self.package_w(&truth, &cores, p, slowed, at);
            let limit_w = self.limit_w(p);
            let within = |w: PackageWatts| w.cores + w.rest <= limit_w;
            let mut slowed = 1.0;
            let mut watts = draw(slowed);
            if !within(watts) {
                // As fast as the limit lets it: between a twentieth of its speed and all of it.
                let (mut low, mut high) = (0.05, 1.0);
                for _ in 0..LIMIT_STEPS {
                    let middle = f64::midpoint(low, high);
                    if within(draw(middle)) { low = middle } else { high = middle }
                }
                slowed = low;
                watts = draw(slowed);
            }
            self.slowed.push(slowed);
            self.true_now.push(watts);
        }
    }

    /// What a package may draw: its long-term limit, and what its cooling takes away below [`HOTTEST_C`].
    fn limit_w(&self, package: usize) -> f64 {
        let rise = self.physics.rise_mc_per_w.max(1) as f64 * 1e-3;
        let cooled = (HOTTEST_C - self.physics.ambient_mc as f64 * 1e-3) / rise;
        let number = self.heat_mc.keys().nth(package).copied();
        let of_package = self.zones.iter().filter(|z| z.domain == HostDomain::Package);
        let limits = of_package.filter(|z| Some(z.package) == number).filter_map(|z| self.limit_uw(z));
        limits.min().map_or(cooled, |uw| cooled.min(uw as f64 * 1e-6))
    }

    /// The same of each package.
    pub(crate) fn limits_w(&self) -> Vec<f64> {
        (0..self.heat_mc.len()).map(|package| self.limit_w(package)).collect()
    }

    /// What a package draws now.
    pub(super) fn true_w(&self, truth: &Truth, package: usize) -> PackageWatts {
        self.true_now.get(package).copied().unwrap_or_else(|| {
            let celsius = self.heat_mc.values().nth(package).map_or(REFERENCE_C, |mc| *mc as f64 * 1e-3);
            let slowed = self.slowed.get(package).copied().unwrap_or(1.0);
            self.package_w(truth, &self.cores_now(truth), package, slowed, celsius)
        })
    }

    /// A package, by its place in the model, with its cores slowed to a share of their speed.
    fn package_w(
        &self,
        truth: &Truth,
        cores: &[CoreNow],
        package: usize,
        slowed: f64,
        celsius: f64,
    ) -> PackageWatts {
        let own = &truth.machine.packages[package];
        let (mut watts, mut busy, mut asleep, mut depth) = (0.0, 0.0, 1.0, usize::MAX);
        for &c in &own.cores {
            let kind = &truth.machine.kinds[usize::from(truth.machine.cores[usize::from(c)].kind)];
            let now = &cores[usize::from(c)];
            let khz = (f64::from(now.khz) * slowed) as u32;
            let full = busy_w(kind, khz);
            for (n, p) in now.at_work.iter().enumerate().skip(1) {
                watts += p * full * kind.smt_power[(n - 1).min(kind.smt_power.len() - 1)];
            }
            // A core that polls is at work for all that its watts know.
            let level = kind.levels.iter().rposition(|l| l.khz >= khz).unwrap_or(0);
            watts += now.at_work[0] * now.state.map_or(full, |s| kind.idle[s].watts[level]);
            busy += 1.0 - now.at_work[0];
            asleep *= if now.state.is_some() { now.at_work[0] } else { 0.0 };
            depth = depth.min(now.state.unwrap_or(0));
        }
        let sleep = own.idle.iter().rev().find(|s| usize::from(s.needs) <= depth);
        let rest = asleep * sleep.map_or(own.uncore_w, |s| s.watts) + (1.0 - asleep) * own.uncore_w;
        let hot = 1.0 + truth.leakage_per_c * (celsius - REFERENCE_C);
        let hours = self.now_ns as f64 / 3.6e12;
        PackageWatts {
            cores: truth.wavering(watts * hot, self.wavering.cores),
            rest: truth.wavering(rest * (1.0 + truth.drift_per_h * hours), self.wavering.rest),
            dram: truth.machine.memory.rest_w + truth.machine.memory.busy_w * busy,
        }
    }

    /// The time that a package sleeps, of all, and its state by its place in the model.
    pub(super) fn package_sleep(&self, truth: &Truth, package: usize) -> Option<(usize, f64)> {
        let own = &truth.machine.packages[package];
        let (mut asleep, mut depth) = (1.0, usize::MAX);
        for &c in &own.cores {
            let now = self.core_now(truth, c);
            asleep *= now.at_work[0];
            depth = depth.min(now.state?);
        }
        let state = own.idle.iter().rposition(|s| usize::from(s.needs) <= depth)?;
        Some((state, asleep))
    }

    /// Lets the packages sleep that can.
    pub(super) fn sleep_packages(&mut self, ns: u64) {
        let Some(truth) = self.truth.clone() else { return };
        for package in 0..truth.machine.packages.len() {
            if let Some((state, share)) = self.package_sleep(&truth, package) {
                *self.slept_ns.entry((package, state)).or_default() += (ns as f64 * share) as u64;
            }
        }
    }

    /// What the counter of a package state at that address shows to a CPU.
    pub(super) fn package_slept_ns(&self, cpu: u32, address: u32) -> Option<u64> {
        let truth = self.truth.as_ref()?;
        let name = PACKAGE_STATES.iter().find(|(a, _)| *a == address)?.1;
        let core = &truth.machine.cores[usize::from(*truth.core_of.get(&cpu)?)];
        let states = &truth.machine.packages[usize::from(core.package)].idle;
        let state = states.iter().position(|s| s.name == name)?;
        Some(self.slept_ns.get(&(usize::from(core.package), state)).copied().unwrap_or(0))
    }

    pub(super) fn true_platform_w(&self, truth: &Truth) -> f64 {
        truth.wavering(truth.machine.platform_w, self.wavering.platform)
    }
}
