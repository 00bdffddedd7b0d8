//! `intel_pstate`: the driver's own rule on Intel processors without HWP.
//!
//! It follows Linux 6.12, `drivers/cpufreq/intel_pstate.c`, get_target_pstate and intel_pstate_update_util: the driver
//! in active mode, which takes the place of a governor. There the word `powersave` means this rule, and
//! `performance` (`mode=performance` here) the highest speed, held. It was the default before HWP, until
//! Linux 5.8; since then a processor without HWP starts in passive mode and runs a governor such as `schedutil`.
//!
//! It observes one CPU at its own scheduler's calls, and the speed in force. It keeps each CPU's sample, I/O boost and
//! request. Speeds are counted in whole steps of 100 MHz, as in the hardware's register.
//!
//! One call:
//! 1. I/O boost. A wake-up from I/O starts it at 1/8 and each further one doubles it, up to 1; a call without
//!    such a wake-up halves it. After a whole tick without a call the CPU has idled, and it starts over.
//! 2. A sample spans at least 10 ms; until then nothing is decided. A sample in which nothing ran (MPERF stood
//!    still) is not taken either, and grows on.
//! 3. busy = the share of the sample in which the CPU ran (dMPERF / dTSC), in 1/256, and at least the boost.
//! 4. target = 1.25 x the highest speed x busy, at least the lowest. The highest is that of one busy core,
//!    or the base where boost is off. The quarter leaves room in which a rising load shows.
//! 5. Where the average speed while busy was above the target, half of the difference is added: the speed comes down
//!    by halves, which spares a task that moves between cores a fall and a climb.
//! 6. The request is the target within the user's limits. Where CPUs share a clock, it runs at the highest request of
//!    those that are awake: a CPU in a deep sleep has no vote.
//!
//! busy counts time, not work: at half the speed the same work keeps the CPU busy for twice as long. So the
//! rule climbs until the work takes up some 80 % of the time or the highest speed is reached.
//!
//! A model's levels are fewer than the hardware's steps. The average of step 5 is therefore the request's own, and the
//! level's only where the level is not that of the request: else the halving would stop at a level's edge.
//!
//! Left out: the first call's empty sample; what hardware takes off the requested speed when many cores are awake
//! (APERF would show it in step 5); that a CPU in C1, unlike one in a deeper state, keeps its vote.

use super::fixed::HeldSpeed;
use super::poll::cost;
use super::{Cadence, Speed, SpeedPolicy};
use crate::STEP_KHZ;
use crate::{CpuSample, DomainInfo, DomainSample, Intent, Khz, MS, Observation, Param, ParamKind};
use crate::{Platform, SampleScope, Settings};
use alloc::{boxed::Box, vec, vec::Vec};

/// CPU time of one decision in us: three register reads, two divisions and now and then a write.
const COST_US: f64 = 1.0;
/// Shortest sample (INTEL_PSTATE_SAMPLING_INTERVAL).
const SAMPLE_NS: u64 = 10 * MS;
/// A whole in the kernel's fixed-point numbers: 8 bits after the point.
const ONE: u64 = 256;
/// Where the I/O boost starts.
const BOOST_START: u64 = ONE / 8;

/// Step 1: the boost after a call.
fn boosted(boost: u64, io_wake: bool, idled: bool) -> u64 {
    match (io_wake, idled) {
        (true, false) if boost >= BOOST_START => (boost * 2).min(ONE),
        (true, _) => BOOST_START,
        (false, true) => 0,
        (false, false) => boost / 2,
    }
}

/// Steps 4 and 5: the target in steps, from shares of 256 and speeds in steps.
fn target(highest: u64, lowest: u64, busy: u64, average: u64) -> u64 {
    let target = (((highest + highest / 4) * busy) / ONE).max(lowest);
    target + average.saturating_sub(target) / 2
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default)]
struct PstateCpu {
    /// Time busy in the sample, in ns.
    busy_ns: u64,
    /// That time weighted by the speed in steps.
    work: u128,
    /// When the sample began, and the last call.
    began_ns: u64,
    called_ns: u64,
    boost: u64,
    /// What it asks for, in steps.
    request: u64,
    /// It has work.
    awake: bool,
}

/// One frequency domain.
struct PstateDomain {
    info: DomainInfo,
    /// In steps.
    highest: u64,
    lowest: u64,
}

/// The driver's rule.
struct IntelPstate {
    cost_ns: u64,
    tick_ns: u64,
    domain_of: Vec<u16>,
    domains: Vec<PstateDomain>,
    cpus: Vec<PstateCpu>,
}

fn steps(khz: Khz) -> u64 {
    u64::from(khz.0 / STEP_KHZ)
}

impl PstateDomain {
    fn new(info: &DomainInfo, boost: bool) -> PstateDomain {
        let highest = if boost { info.fastest() } else { info.base };
        PstateDomain { highest: steps(highest), lowest: steps(info.slowest()), info: info.clone() }
    }

    /// The level for a request.
    fn level(&self, request: u64) -> Khz {
        let khz = request.saturating_mul(u64::from(STEP_KHZ));
        self.info.at_least(Khz(u32::try_from(khz).unwrap_or(u32::MAX)))
    }

    /// A request within the user's limits.
    fn within(&self, request: u64, now: &DomainSample) -> u64 {
        let max = if now.max.0 == 0 { self.highest } else { steps(now.max) };
        let min = self.lowest.max(steps(now.min));
        request.clamp(min, max.max(min))
    }
}

impl PstateCpu {
    fn accrue(&mut self, sample: &CpuSample, in_force: u64) {
        self.busy_ns = self.busy_ns.saturating_add(sample.busy_ns);
        self.work = self.work.saturating_add(u128::from(sample.busy_ns) * u128::from(in_force));
        self.awake = sample.runnable > 0;
    }

    /// Steps 1 to 5: a new target, if one is due.
    fn call(&mut self, sample: &CpuSample, now_ns: u64, tick_ns: u64, domain: &PstateDomain) -> Option<u64> {
        let idled = now_ns.saturating_sub(self.called_ns) > tick_ns;
        self.boost = boosted(self.boost, sample.io_wake, idled);
        self.called_ns = now_ns;
        let length_ns = now_ns.saturating_sub(self.began_ns);
        if length_ns < SAMPLE_NS || self.busy_ns == 0 {
            return None;
        }
        let ran = (u128::from(self.busy_ns) * u128::from(ONE) / u128::from(length_ns)).min(u128::from(ONE));
        let busy = (ran as u64).max(self.boost);
        let average = u64::try_from(self.work / u128::from(self.busy_ns)).unwrap_or(u64::MAX);
        (self.busy_ns, self.work, self.began_ns) = (0, 0, now_ns);
        Some(target(domain.highest, domain.lowest, busy, average))
    }
}

impl IntelPstate {
    fn one(&mut self, cpu: usize, obs: &Observation<'_>, out: &mut Intent) {
        let (Some(sample), Some(&d)) = (obs.cpus.get(cpu), self.domain_of.get(cpu)) else { return };
        let d = usize::from(d);
        let (Some(now), domain) = (obs.domains.get(d), &self.domains[d]) else { return };
        let own = &mut self.cpus[cpu];
        let in_force = if now.khz == domain.level(own.request) { own.request } else { steps(now.khz) };
        own.accrue(sample, in_force);
        if obs.asks
            && let Some(target) = own.call(sample, obs.now_ns, self.tick_ns, domain)
        {
            own.request = domain.within(target, now);
        }
        self.vote(d, cpu, out);
    }

    /// Step 6.
    fn vote(&self, d: usize, cpu: usize, out: &mut Intent) {
        let domain = &self.domains[d];
        let awake = domain.info.cpus.iter().map(|&c| &self.cpus[usize::from(c)]).filter(|c| c.awake);
        // With nobody awake the clock stands still anyway: the request of who slept last.
        let request = awake.map(|c| c.request).max().unwrap_or(self.cpus[cpu].request);
        out.set_speed(d, domain.level(request));
    }
}

impl SpeedPolicy for IntelPstate {
    fn cadence(&self) -> Cadence {
        Cadence::Scheduler { interval_ns: 0 }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The speed found stays until the first sample is full.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        for (d, domain) in self.domains.iter().enumerate() {
            let found = obs.domains.get(d).map_or(Khz(0), |s| s.khz);
            let request = if found.0 == 0 { domain.highest } else { steps(found) };
            for &cpu in &domain.info.cpus {
                let fresh = PstateCpu {
                    began_ns: obs.now_ns,
                    called_ns: obs.now_ns,
                    request,
                    ..PstateCpu::default()
                };
                self.cpus[usize::from(cpu)] = fresh;
            }
            out.set_speed(d, domain.level(request));
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        match obs.scope {
            SampleScope::Cpu(cpu) => self.one(usize::from(cpu), obs, out),
            SampleScope::All => (0..self.cpus.len()).for_each(|cpu| self.one(cpu, obs, out)),
            SampleScope::Domain(d) => {
                for cpu in 0..self.cpus.len() {
                    if self.domain_of[cpu] == d {
                        self.one(cpu, obs, out);
                    }
                }
            }
        }
    }
}

/// The driver's rule.
pub(super) static INTEL_PSTATE: Speed = Speed {
    name: "intel_pstate",
    summary: "Linux on Intel without HWP, active mode: 1.25 x busy share x highest speed, every 10 ms",
    follows: "Linux 6.12, drivers/cpufreq/intel_pstate.c, get_target_pstate",
    source: include_str!("intel_pstate.rs"),
    params: &[
        Param {
            name: "mode",
            help: "the driver's policy: its rule (powersave), or the highest speed held (performance)",
            kind: ParamKind::Choice(&["powersave", "performance"]),
        },
        cost(COST_US),
    ],
    build: |p: &Platform, s: &Settings| {
        if s.count("mode") == 1 {
            return HeldSpeed::boxed(p, |d| if p.boost { d.fastest() } else { d.at_most(d.base) });
        }
        Box::new(IntelPstate {
            cost_ns: s.us("cost"),
            tick_ns: p.tick_ns,
            domain_of: p.domain_of_cpu(),
            domains: p.domains.iter().map(|d| PstateDomain::new(d, p.boost)).collect(),
            cpus: vec![PstateCpu::default(); usize::from(p.cpus)],
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};

    /// 4000 MHz down to 800 MHz in the hardware's own steps.
    fn levels() -> Vec<u32> {
        (8..=40).rev().map(|s| s * 100).collect()
    }
    fn rig(cpus: u16, at_slowest: bool) -> Rig {
        Rig::new(platform(cpus, &levels()), &INTEL_PSTATE, "", at_slowest)
    }
    fn ran(busy_ms: u64, idle_ms: u64) -> CpuSample {
        CpuSample { busy_ns: busy_ms * MS, idle_ns: idle_ms * MS, runnable: 1, ..CpuSample::default() }
    }
    fn io(sample: CpuSample) -> CpuSample {
        CpuSample { io_wake: true, ..sample }
    }

    #[test]
    fn a_quarter_more_than_the_busy_share() {
        // (40 + 10) x 128/256 = 25 steps, over an average of 8.
        assert_eq!(rig(1, true).cpu(0, ran(5, 5)), 2500);
        // 50 x 76/256 = 14.8 and is cut: 3 of 10 ms are 76/256.
        assert_eq!(rig(1, true).cpu(0, ran(3, 7)), 1400);
        assert_eq!(rig(1, true).cpu(0, ran(9, 1)), 4000, "the highest from 80 % on");
    }

    #[test]
    fn the_speed_comes_down_by_halves() {
        let mut r = rig(1, false);
        // A tenth busy is 25/256: 4 steps, so the lowest, 8. 8 + (40-8)/2 = 24, 8 + 16/2 = 16, 12, 10, 9, 8.
        let speeds: Vec<u32> = (0..7).map(|_| r.cpu(0, ran(1, 9))).collect();
        assert_eq!(speeds, [2400, 1600, 1200, 1000, 900, 800, 800]);
    }

    #[test]
    fn coarse_levels_do_not_stop_the_halves() {
        let mut r = Rig::new(platform(1, &[4000, 2500, 1200, 800]), &INTEL_PSTATE, "", false);
        // Requests 24, 16, 12, 10, 9, 8: the levels at or above.
        let speeds: Vec<u32> = (0..6).map(|_| r.cpu(0, ran(1, 9))).collect();
        assert_eq!(speeds, [2500, 2500, 1200, 1200, 1200, 800]);
    }

    #[test]
    fn a_sample_takes_ten_ms_in_which_something_ran() {
        let mut r = rig(1, true);
        assert_eq!(r.cpu(0, ran(9, 0)), 800, "too short");
        assert_eq!(r.cpu(0, ran(1, 0)), 4000);
        let mut r = rig(1, true);
        assert_eq!(r.cpu(0, ran(0, 30)), 800, "nothing ran: the sample grows on");
        // 10 of 40 ms: 50 x 64/256 = 12.
        assert_eq!(r.cpu(0, ran(10, 0)), 1200);
    }

    #[test]
    fn what_is_only_told_decides_nothing() {
        let mut r = rig(1, true);
        r.asks = false;
        assert_eq!(r.cpu(0, ran(10, 0)), 800);
        r.asks = true;
        // 10 of 20 ms.
        assert_eq!(r.cpu(0, ran(0, 10)), 2500);
    }

    #[test]
    fn waiting_for_a_device_doubles_the_boost() {
        assert_eq!(boosted(0, true, false), 32);
        assert_eq!(boosted(32, true, false), 64);
        assert_eq!(boosted(256, true, false), 256);
        assert_eq!(boosted(64, false, false), 32);
        assert_eq!(boosted(64, true, true), 32, "starts over after a tick");
        assert_eq!(boosted(64, false, true), 0);
        let mut r = rig(1, true);
        // Three wake-ups, 5 ms apart (a tick is 10 ms): 32, 64, 128. Of 15 ms nearly nothing was busy: 50 x 128/256.
        r.cpu(0, io(ran(0, 5)));
        r.cpu(0, io(ran(0, 4)));
        assert_eq!(r.cpu(0, io(ran(1, 5))), 2500);
    }

    #[test]
    fn a_shared_clock_runs_at_the_highest_request_of_those_awake() {
        let mut r = rig(2, true);
        assert_eq!(r.cpu(0, ran(10, 0)), 4000);
        // The other joins at its old request, 800 MHz; then the first sleeps, and its vote goes.
        r.cpus[1] = ran(0, 0);
        assert_eq!(r.observe(SampleScope::Cpu(1), 0), 4000);
        r.cpus[0] = CpuSample::default();
        assert_eq!(r.observe(SampleScope::Cpu(0), 0), 800);
    }

    #[test]
    fn without_boost_the_base_is_the_highest() {
        let mut p = platform(1, &levels());
        (p.boost, p.domains[0].base) = (false, Khz(2_000_000));
        // (20 + 5) x 128/256 = 12.5.
        assert_eq!(Rig::new(p.clone(), &INTEL_PSTATE, "", true).cpu(0, ran(5, 5)), 1200);
        assert_eq!(Rig::new(p, &INTEL_PSTATE, "mode=performance", true).mhz(), 2000);
    }

    #[test]
    fn limits_bound_the_request() {
        let mut r = rig(1, true);
        (r.domains[0].min, r.domains[0].max) = (Khz(1_500_000), Khz(3_000_000));
        assert_eq!(r.cpu(0, ran(10, 0)), 3000);
        assert_eq!(r.intent.domains[0].desired, Khz(3_000_000), "it does not rely on the platform's clamp");
        let down: Vec<u32> = (0..5).map(|_| r.cpu(0, ran(1, 9))).collect();
        // 8 + 22/2 = 19, 8 + 11/2 = 13: at least 15.
        assert_eq!(down, [1900, 1500, 1500, 1500, 1500]);
    }
}
