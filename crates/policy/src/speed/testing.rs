//! A machine for the tests of this folder: it feeds samples to a policy and obeys its intent.

use super::{Speed, SpeedPolicy};
use crate::{
    CpuSample, DomainInfo, DomainSample, Intent, Khz, Level, MS, Observation, Platform, PowerSource,
    SampleScope, Settings,
};
use alloc::{boxed::Box, vec, vec::Vec};

/// One domain of the CPUs `first..first + cpus` with these levels in MHz, highest first.
pub(crate) fn domain(first: u16, cpus: u16, mhz: &[u32]) -> DomainInfo {
    DomainInfo {
        cpus: (first..first + cpus).collect(),
        levels: mhz.iter().map(|&m| Level { khz: Khz(m * 1000), busy_uw: None }).collect(),
        transition_ns: 0,
        base: Khz(mhz[0] * 1000),
        boost_with: None,
        load_full: Khz(mhz[0] * 1000),
        capacity: 1024,
    }
}

/// A machine of one domain, tick 10 ms.
pub(crate) fn platform(cpus: u16, mhz: &[u32]) -> Platform {
    Platform {
        domains: vec![domain(0, cpus, mhz)],
        cpus,
        tick_ns: 10 * MS,
        load_invariant: true,
        boost: true,
        deepest_idle_uw: None,
        awake_uw: None,
        autonomy: crate::Autonomy::default(),
    }
}

/// A policy at work on a platform.
pub(crate) struct Rig {
    pub(crate) platform: Platform,
    pub(crate) policy: Box<dyn SpeedPolicy>,
    pub(crate) intent: Intent,
    pub(crate) cpus: Vec<CpuSample>,
    pub(crate) domains: Vec<DomainSample>,
    pub(crate) now_ns: u64,
    pub(crate) asks: bool,
    pub(crate) source: PowerSource,
    pub(crate) temperature_mc: Option<i32>,
}

impl Rig {
    /// Builds and starts `speed:spec` at the domains' slowest (`at_slowest`) or fastest level.
    pub(crate) fn new(platform: Platform, speed: &Speed, spec: &str, at_slowest: bool) -> Rig {
        let settings = Settings::parse(speed.params, spec).expect("a valid spec");
        let policy = (speed.build)(&platform, &settings);
        let domains = platform
            .domains
            .iter()
            .map(|d| DomainSample {
                khz: if at_slowest { d.slowest() } else { d.fastest() },
                min: d.slowest(),
                max: d.fastest(),
            })
            .collect();
        let mut rig = Rig {
            policy,
            intent: Intent::neutral(platform.domains.len()),
            cpus: vec![CpuSample::default(); usize::from(platform.cpus)],
            domains,
            now_ns: 0,
            asks: true,
            source: PowerSource::Unknown,
            temperature_mc: None,
            platform,
        };
        rig.restart();
        rig
    }

    /// The policy takes over.
    pub(crate) fn restart(&mut self) {
        let obs = Observation {
            now_ns: self.now_ns,
            asks: true,
            scope: SampleScope::All,
            cpus: &self.cpus,
            domains: &self.domains,
            source: self.source,
            temperature_mc: self.temperature_mc,
        };
        self.policy.start(&obs, &mut self.intent);
        self.obey();
    }

    /// The first domain's speed in MHz.
    pub(crate) fn mhz(&self) -> u32 {
        self.domains[0].khz.0 / 1000
    }

    /// Takes the slowest level that is at least what is wanted.
    fn obey(&mut self) {
        for ((d, now), want) in self.platform.domains.iter().zip(&mut self.domains).zip(&self.intent.domains)
        {
            if want.desired.0 > 0 {
                now.khz = d.at_least(want.desired).clamp(now.min, now.max);
            }
        }
    }

    /// One observation of the samples at hand, `ns` after the last; the first domain's speed in MHz.
    pub(crate) fn observe(&mut self, scope: SampleScope, ns: u64) -> u32 {
        self.now_ns += ns;
        self.intent.next_ns = None;
        let obs = Observation {
            now_ns: self.now_ns,
            asks: self.asks,
            scope,
            cpus: &self.cpus,
            domains: &self.domains,
            source: self.source,
            temperature_mc: self.temperature_mc,
        };
        self.policy.observe(&obs, &mut self.intent);
        self.obey();
        self.mhz()
    }

    /// A window in which every CPU was busy for its share, in thousandths (the last one repeats).
    pub(crate) fn window(&mut self, scope: SampleScope, ns: u64, busy: &[u64]) -> u32 {
        for (i, cpu) in self.cpus.iter_mut().enumerate() {
            let busy_ns = ns / 1000 * busy[i.min(busy.len() - 1)];
            *cpu = CpuSample {
                busy_ns,
                idle_ns: ns - busy_ns,
                runnable: u32::from(busy_ns > 0),
                ..CpuSample::default()
            };
        }
        self.observe(scope, ns)
    }

    /// A poll of all CPUs.
    pub(crate) fn poll(&mut self, ns: u64, busy: &[u64]) -> u32 {
        self.window(SampleScope::All, ns, busy)
    }

    /// One CPU's sample.
    pub(crate) fn cpu(&mut self, cpu: u16, sample: CpuSample) -> u32 {
        self.cpus[usize::from(cpu)] = sample;
        self.observe(SampleScope::Cpu(cpu), sample.total_ns())
    }

    /// Polls of `ns` until the first domain runs at `mhz`; how many it took.
    pub(crate) fn polls_until(&mut self, mhz: u32, ns: u64, busy: &[u64]) -> u32 {
        (1..=10_000).find(|_| self.poll(ns, busy) == mhz).expect("the speed is reached")
    }
}
