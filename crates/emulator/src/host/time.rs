//! Time that passes: counters of CPUs, policies and zones.

use super::parts::{HostIdleState, IdleChoice};
use super::{CPU, Host};
use wattwise_figure::Random;
use wattwise_hw::rules::AttributeView;

impl Host {
    /// Lets time pass with the loads as they are.
    pub(crate) fn advance(&mut self, ns: u64) {
        for i in 0..self.policies.len() {
            self.refresh_policy(i);
            let Some(policy) = self.policies.get(i) else { break };
            if policy.aside.is_some() || self.is_inactive(policy) {
                continue;
            }
            let cur = policy.cur;
            if let Some(p) = self.policies.get_mut(i)
                && let Some(at) = p.residency.iter_mut().find(|r| r.0 == cur)
            {
                at.1 = at.1.wrapping_add(ns);
            }
        }
        let cold = self.heat_mc.clone();
        self.heat(ns);
        self.draw_truly(&cold);
        let powers: Vec<u64> = self.zones.iter().map(|z| self.zone_uw(z)).collect();
        let platform = self.platform_uw();
        self.true_now.clear();
        self.sleep_packages(ns);
        let granted: Vec<u32> = (0..self.cpus.len()).map(|i| self.granted_khz(i)).collect();
        for (i, khz) in granted.into_iter().enumerate() {
            self.advance_cpu(i, ns, khz);
        }
        for (zone, uw) in self.zones.iter_mut().zip(powers) {
            let work = u128::from(uw) * u128::from(ns) + u128::from(zone.rest);
            // A microjoule is 10^9 microwatt-nanoseconds.
            let uj = work / 1_000_000_000;
            zone.rest = (work % 1_000_000_000) as u64;
            zone.total_uj += uj;
            let next = (u128::from(zone.energy_uj) + uj) % (u128::from(zone.range_uj) + 1);
            zone.energy_uj = next as u64;
        }
        self.drain(ns, platform);
        if let Some(truth) = &self.truth {
            let mut random = Random::new(self.seed);
            self.wavering.step(ns as f64 * 1e-9, truth.noise_tau_s, &mut random);
            self.random(1);
        }
        self.now_ns = self.now_ns.wrapping_add(ns);
    }

    pub(super) fn advance_cpu(&mut self, index: usize, ns: u64, khz: u32) {
        let jitter = self.random(8);
        let Some(cpu) = self.cpus.get(index) else { return };
        if !cpu.online {
            return;
        }
        let busy = (u128::from(ns) * u128::from(cpu.load_permille) / 1000) as u64;
        let idle = ns - busy;
        let choice = self.idle_choice(index, idle, jitter);
        let nominal = cpu.policy.and_then(|i| self.policies.get(i)).map_or(1_000_000, |p| p.nominal);
        let Some(cpu) = self.cpus.get_mut(index) else { return };
        cpu.busy_ns = cpu.busy_ns.wrapping_add(busy);
        cpu.idle_ns = cpu.idle_ns.wrapping_add(idle);
        cpu.aperf = cpu.aperf.wrapping_add((u128::from(busy) * u128::from(khz) / 1_000_000) as u64);
        cpu.mperf = cpu.mperf.wrapping_add((u128::from(busy) * u128::from(nominal) / 1_000_000) as u64);
        if idle > 0
            && let Some(state) = choice.deepest.and_then(|d| cpu.states.get_mut(d))
        {
            state.usage = state.usage.wrapping_add(choice.wakes);
            state.time_ns = state.time_ns.wrapping_add(idle);
            if choice.interval_us < state.residency_us {
                state.above = state.above.wrapping_add(choice.wakes);
            } else if choice.deeper {
                state.below = state.below.wrapping_add(choice.wakes / 8);
            }
        }
    }

    /// The state that a CPU's idle governor takes in so much idle time, by the load that the CPU has.
    pub(crate) fn idle_choice(&self, index: usize, idle_ns: u64, jitter: u64) -> IdleChoice {
        let Some(cpu) = self.cpus.get(index) else { return IdleChoice::default() };
        // 100 wake-ups a second when idle, 10 times as many at half load.
        let load = u64::from(cpu.load_permille.min(1000));
        let per_second = 100 + load.min(1000 - load) * 2 + jitter;
        let wakes = ((u128::from(idle_ns) * u128::from(per_second)) / 1_000_000_000).max(1) as u64;
        let interval_us = idle_ns / wakes / 1000;
        let limit = self.text(&format!("{CPU}/cpu{}/power/pm_qos_resume_latency_us", cpu.id));
        let limit = match limit.as_deref() {
            Some("n/a") => 0,
            Some(n) => n.parse().ok().filter(|&n| n > 0).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let usable =
            |s: &HostIdleState| s.latency_us <= limit && self.text(&s.disable).is_none_or(|d| d == "0");
        let open: Vec<usize> =
            cpu.states.iter().enumerate().filter(|(_, s)| usable(s)).map(|(i, _)| i).collect();
        let worth = |i: &usize| cpu.states.get(*i).is_some_and(|s| s.residency_us <= interval_us);
        let deepest = open.iter().copied().rev().find(worth).or(open.first().copied());
        let deeper = deepest.is_some_and(|d| open.iter().any(|&i| i > d));
        IdleChoice { deepest, deeper, interval_us, wakes }
    }

    /// Puts counters just before their wrap: energies at their range, idle times and usages at 64 bits.
    pub(crate) fn near_wrap(&mut self, fits: impl Fn(&str) -> bool) {
        for zone in &mut self.zones {
            if fits(&format!("{}/energy_uj", zone.folder)) {
                zone.energy_uj = zone.range_uj - 1;
            }
        }
        for cpu in &mut self.cpus {
            for (i, state) in cpu.states.iter_mut().enumerate() {
                let folder = format!("{CPU}/cpu{}/cpuidle/state{i}", cpu.id);
                if fits(&format!("{folder}/usage")) {
                    state.base[0] = u64::MAX.wrapping_sub(state.usage);
                }
                if fits(&format!("{folder}/time")) {
                    state.base[1] = u64::MAX.wrapping_sub(state.time_ns / 1000);
                }
            }
        }
    }
}
