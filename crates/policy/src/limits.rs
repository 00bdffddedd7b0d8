//! A user's limits around any speed policy: a highest speed, a lowest, no boost.
//!
//! The policy inside is asked as ever. It sees the limits as any user's limits ([`DomainSample`]), and what it wants
//! is clamped. So an `ondemand` that wants the highest speed gets the limit, and its proportional rule still counts
//! in shares of the hardware's range, as in Linux (`cpufreq.c`, cpufreq_set_policy and the governors).
//!
//! - A percentage is of the domain's highest speed, in whole steps of 100 MHz, rounded up, as intel_pstate takes
//!   `max_perf_pct` and `min_perf_pct` (Linux 6.12, intel_pstate_update_perf_limits). Each domain has its own highest
//!   speed, so one percentage fits cores of several kinds.
//! - A level above the highest speed allowed is not taken, nor one below the lowest: the limits go to the nearest
//!   level inside them. Where no level lies between, the highest speed allowed wins.
//! - Where the boost comes with a speed ([`DomainInfo::boost_with`]), no limit from there on keeps it away.
//! - Without boost the highest speed is [`DomainInfo::base`], and the policy is built for a platform that says so.

use crate::speed::Cadence;
use crate::{
    DomainInfo, DomainSample, Intent, Khz, Observation, Platform, STEP_KHZ, SampleScope, Settings, Speed,
    SpeedPolicy,
};
use alloc::{boxed::Box, vec::Vec};

/// One end of the range of speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A speed.
    Khz(Khz),
    /// A share of a domain's highest speed, in thousandths of a percent.
    Share(u32),
}

impl Bound {
    /// The speed in a domain.
    pub fn in_domain(self, domain: &DomainInfo) -> Khz {
        match self {
            Bound::Khz(khz) => khz,
            Bound::Share(thousandths) => {
                let steps = u64::from(domain.fastest().0 / STEP_KHZ);
                let wanted = (steps * u64::from(thousandths)).div_ceil(100_000);
                Khz(u32::try_from(wanted * u64::from(STEP_KHZ)).unwrap_or(u32::MAX))
            }
        }
    }
}

/// What a user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Never slower than this.
    pub min: Option<Bound>,
    /// Never faster than this.
    pub max: Option<Bound>,
    /// Never faster than without boost.
    pub no_boost: bool,
    /// The mean power of each package, in microwatts: the hardware's to hold, whatever the policy wants.
    pub power_uw: Option<u64>,
}

impl Limits {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// The slowest and the fastest level allowed in a domain.
    pub fn range(&self, domain: &DomainInfo) -> (Khz, Khz) {
        let limit = self.max.map_or(domain.fastest(), |b| b.in_domain(domain));
        let limit = if self.no_boost { limit.min(domain.base) } else { limit };
        let boosts = domain.boost_with.is_some_and(|khz| limit >= khz && !self.no_boost);
        let max = match boosts {
            true => domain.fastest(),
            false => domain.at_most(limit),
        };
        let min = self.min.map_or(domain.slowest(), |b| domain.at_least(b.in_domain(domain)));
        (min.min(max), max)
    }

    /// Builds a speed policy within these limits.
    pub fn build(&self, speed: &Speed, platform: &Platform, settings: &Settings) -> Box<dyn SpeedPolicy> {
        if (Limits { power_uw: None, ..*self }).is_none() {
            return (speed.build)(platform, settings);
        }
        let mut known = platform.clone();
        known.boost &= !self.no_boost;
        Box::new(Limited {
            inner: (speed.build)(&known, settings),
            ranges: platform.domains.iter().map(|d| self.range(d)).collect(),
            domain_of: platform.domain_of_cpu(),
            seen: alloc::vec![DomainSample::default(); platform.domains.len()],
        })
    }
}

/// A policy within limits.
struct Limited {
    inner: Box<dyn SpeedPolicy>,
    /// Slowest and fastest level of each domain.
    ranges: Vec<(Khz, Khz)>,
    domain_of: Vec<u16>,
    /// The domains as the policy inside sees them.
    seen: Vec<DomainSample>,
}

impl Limited {
    /// Brings what the policy sees of domain `d` up to date.
    fn look(&mut self, d: usize, domains: &[DomainSample]) {
        if let (Some(now), Some(&(min, max))) = (domains.get(d), self.ranges.get(d)) {
            let high = if now.max.0 == 0 { max } else { now.max.min(max) };
            self.seen[d] = DomainSample { khz: now.khz, min: now.min.max(min).min(high), max: high };
        }
    }

    /// Clamps what is wanted of domain `d`.
    fn clamp(&self, d: usize, out: &mut Intent) {
        let (Some(want), Some(&(min, max))) = (out.domains.get_mut(d), self.ranges.get(d)) else { return };
        want.max = if want.max.0 == 0 { max } else { want.max.min(max) };
        want.min = want.min.max(min).min(max);
        if want.desired.0 > 0 {
            want.desired = want.desired.clamp(min, max);
        }
    }

    /// The one domain that an observation speaks of; none: all.
    fn domain(&self, scope: SampleScope) -> Option<usize> {
        match scope {
            SampleScope::All => None,
            SampleScope::Cpu(cpu) => self.domain_of.get(usize::from(cpu)).map(|&d| usize::from(d)),
            SampleScope::Domain(d) => Some(usize::from(d)),
        }
    }

    /// A policy may want something of any domain. The limits stand in the intent from the start on, so what it wants of others
    /// than the domain in question is held inside them too.
    fn ask(&mut self, obs: &Observation<'_>, out: &mut Intent, starts: bool) {
        // Only the domain in question: a machine may have hundreds, and is asked at every wake-up.
        match self.domain(obs.scope) {
            Some(d) => self.look(d, obs.domains),
            None => (0..self.seen.len()).for_each(|d| self.look(d, obs.domains)),
        }
        let inside = Observation { domains: &self.seen, ..*obs };
        match starts {
            true => self.inner.start(&inside, out),
            false => self.inner.observe(&inside, out),
        }
        match self.domain(obs.scope) {
            Some(d) => self.clamp(d, out),
            None => (0..self.seen.len()).for_each(|d| self.clamp(d, out)),
        }
    }
}

impl SpeedPolicy for Limited {
    fn cadence(&self) -> Cadence {
        self.inner.cadence()
    }
    fn cost_ns(&self) -> u64 {
        self.inner.cost_ns()
    }
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.ask(obs, out, true);
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.ask(obs, out, false);
    }
    fn followed_util(&self, cpu: usize) -> Option<u64> {
        self.inner.followed_util(cpu)
    }
    fn followed_util_at(&self, cpu: usize, at_ns: u64) -> Option<u64> {
        self.inner.followed_util_at(cpu, at_ns)
    }
    fn looks_at_ns(&self, cpu: usize) -> Option<u64> {
        self.inner.looks_at_ns(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed;
    use crate::speed::testing::{Rig, domain, platform};
    use crate::{CpuSample, MS, SampleScope};

    const LEVELS: &[u32] = &[4400, 4000, 3600, 3200, 2800, 2400, 2000, 1700, 1300, 900, 400];

    fn share(percent: u32) -> Option<Bound> {
        Some(Bound::Share(percent * 1000))
    }
    fn mhz(mhz: u32) -> Option<Bound> {
        Some(Bound::Khz(Khz(mhz * 1000)))
    }
    fn range(limits: Limits) -> (u32, u32) {
        let mut info = domain(0, 1, LEVELS);
        info.base = Khz(1_700_000);
        let (min, max) = limits.range(&info);
        (min.0 / 1000, max.0 / 1000)
    }

    #[test]
    fn a_percentage_is_whole_steps_rounded_up() {
        let at =
            |percent: u32, top: u32| share(percent).map(|b| b.in_domain(&domain(0, 1, &[top, 100])).0 / 1000);
        assert_eq!(at(60, 4400), Some(2700), "44 steps x 60 % = 26.4");
        assert_eq!(at(50, 4400), Some(2200));
        assert_eq!(at(33, 3300), Some(1100), "10.89");
        assert_eq!(at(100, 4400), Some(4400));
        assert_eq!(at(0, 4400), Some(0));
    }

    #[test]
    fn limits_are_levels_inside_the_range() {
        let none = Limits::default();
        assert_eq!(range(none), (400, 4400));
        assert_eq!(range(Limits { max: share(60), ..none }), (400, 2400), "2700 is no level");
        assert_eq!(range(Limits { min: mhz(1200), ..none }), (1300, 4400));
        assert_eq!(range(Limits { no_boost: true, ..none }), (400, 1700));
        assert_eq!(range(Limits { no_boost: true, max: mhz(1000), ..none }), (400, 900));
        assert_eq!(range(Limits { min: mhz(3000), max: mhz(2000), ..none }), (2000, 2000));
        assert_eq!(range(Limits { max: mhz(100), ..none }), (400, 400), "below the lowest: the lowest");
    }

    #[test]
    fn no_limit_above_the_base_keeps_a_boost_away_that_comes_with_it() {
        let mut info = domain(0, 1, LEVELS);
        (info.base, info.boost_with) = (Khz(1_700_000), Some(Khz(1_700_000)));
        let max = |limits: Limits| limits.range(&info).1.0 / 1000;
        let none = Limits::default();
        assert_eq!(
            [max(Limits { max: share(60), ..none }), max(Limits { max: mhz(1700), ..none })],
            [4400, 4400]
        );
        assert_eq!(max(Limits { max: mhz(1600), ..none }), 1300);
        assert_eq!(max(Limits { no_boost: true, max: share(60), ..none }), 1700);
    }

    /// A policy within limits, on one CPU.
    fn rig(name: &str, limits: Limits) -> Rig {
        let speed = speed::find(name).expect("a policy");
        let mut r = Rig::new(platform(1, LEVELS), speed, "", false);
        r.platform.domains[0].base = Khz(1_700_000);
        r.policy = limits.build(speed, &r.platform, &Settings::defaults(speed.params));
        r.restart();
        r
    }

    #[test]
    fn what_a_policy_wants_is_clamped() {
        let capped = Limits { max: share(60), ..Limits::default() };
        assert_eq!(rig("performance", capped).mhz(), 2400);
        assert_eq!(rig("performance", Limits { no_boost: true, ..Limits::default() }).mhz(), 1700);
        assert_eq!(rig("powersave", Limits { min: mhz(1200), ..Limits::default() }).mhz(), 1300);
        let mut r = rig("ondemand", capped);
        assert_eq!(r.window(SampleScope::Domain(0), 20 * MS, &[1000]), 2400);
        // 400 + 30 % x 4000 = 1600: of the hardware's range, not of the limits.
        assert_eq!(r.window(SampleScope::Domain(0), 20 * MS, &[300]), 1700);
        assert_eq!(r.window(SampleScope::Domain(0), 20 * MS, &[0]), 400);
    }

    #[test]
    fn a_policy_knows_that_boost_is_off() {
        let mut r = rig("intel_pstate", Limits { no_boost: true, ..Limits::default() });
        let sample = CpuSample { busy_ns: 10 * MS, runnable: 1, ..CpuSample::default() };
        r.cpu(0, sample);
        assert_eq!(r.mhz(), 1700);
        // (17 + 4) x 51/256 = 4 steps, and half of the way from 17: 10. With 44 for the highest it were 10 + 3.
        assert_eq!(r.cpu(0, CpuSample { busy_ns: 2 * MS, idle_ns: 8 * MS, ..sample }), 1300);
        assert_eq!(r.cpu(0, CpuSample { busy_ns: 2 * MS, idle_ns: 8 * MS, ..sample }), 900);
    }

    #[test]
    fn a_policy_sees_its_limits() {
        // conservative steps by 5 % of the highest speed allowed, 120 MHz: wishes of 2280, 2160, ... 1320, 1200.
        let mut r = rig("conservative", Limits { max: share(60), min: mhz(1200), ..Limits::default() });
        assert_eq!(r.mhz(), 2400);
        let down: Vec<u32> = (0..10).map(|_| r.window(SampleScope::Domain(0), 20 * MS, &[0])).collect();
        assert_eq!(down, [2400, 2400, 2400, 2000, 2000, 1700, 1700, 1700, 1700, 1300]);
    }
}
