//! `ondemand`: the highest speed when busy, else a speed in proportion to the load.
//!
//! It follows Linux 6.12, `drivers/cpufreq/cpufreq_ondemand.c`; the loop around it is in `governor.rs`.
//!
//! It observes the load of a domain's busiest CPU over one sampling period, and keeps whether the last
//! look went to the top, and for `bias` the lower half of a divided period.
//!
//! 1. Load over `up` (95 %): the highest level. 95 where idle time is accounted finely, as
//!    with every tickless kernel; with tick-wise accounting Linux takes 80, since a period of a
//!    few ticks cannot show more.
//! 2. When that was a rise, the following periods are `down_factor` times as long for as long as the load stays
//!    high: being asked less often while busy costs less. 1 is the kernel's default: no effect.
//! 3. Else f = min + load*(max - min)/100, over the hardware's limits, and the nearest level to it. It is
//!    anchored at the lowest speed and not at zero, so that a small load does not sink to the bottom at once.
//! 4. `bias` (thousandths) aims below that, at f*(1 - bias/1000). Levels are coarse, so the period is
//!    divided between the levels on either side in such a way that the mean is right.
//!
//! The period is the longer of two ticks and the transition delay; `rate` sets it.
//!
//! Left out: `ignore_nice_load`, since a sample does not say which work was nice; and the driver's own table
//! of transition delays, since a platform states one figure.

use super::Speed;
use super::governor::{
    COST_US, DomainLoad, GovernorRule, GovernorVerdict, IO_IS_BUSY, RATE, SamplingGovernor, down_factor,
    sampling_ns,
};
use super::poll::{cost, percent};
use crate::{DomainInfo, DomainSample, Khz, Param, ParamKind};
use alloc::{boxed::Box, vec, vec::Vec};

/// Step 3, before the choice of a level.
fn proportional(slowest: Khz, fastest: Khz, load: u64) -> Khz {
    Khz(slowest.0 + (u64::from(fastest.0 - slowest.0) * load / 100) as u32)
}

/// A period divided between two levels: `high` for `high_ns`, then `low` for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divided {
    high: Khz,
    low: Khz,
    high_ns: u64,
}

/// Step 4.
fn biased(domain: &DomainInfo, level: Khz, bias: u64, period_ns: u64) -> Divided {
    let mean = Khz((u64::from(level.0) * (1000 - bias) / 1000) as u32);
    let (low, high) = (domain.at_most(mean), domain.at_least(mean));
    let span = u64::from(high.0 - low.0);
    let above = u64::from(mean.0.saturating_sub(low.0));
    // Rounded to the nearest ns; one level on both sides means the whole period.
    let high_ns = match span {
        0 => period_ns,
        _ => ((u128::from(above) * u128::from(period_ns) + u128::from(span / 2)) / u128::from(span)) as u64,
    };
    Divided { high, low, high_ns }
}

/// What a domain keeps.
#[derive(Clone, Copy, Debug, Default)]
struct OndemandState {
    /// The second part of a divided period: speed and duration.
    second: Option<(Khz, u64)>,
    /// The last look stretched the period.
    stretched: bool,
}

/// The rule.
struct Ondemand {
    up: u64,
    down_factor: u64,
    /// Thousandths to aim below.
    bias: u64,
    period_ns: u64,
    states: Vec<OndemandState>,
}

impl Ondemand {
    /// A level as it is, or a pair of levels when there is a bias.
    fn aim(&mut self, d: usize, domain: &DomainInfo, level: Khz) -> GovernorVerdict {
        if self.bias == 0 {
            return GovernorVerdict { speed: Some(level), next_ns: None };
        }
        // One level on both sides, or a mean at the lower one, leaves nothing to divide.
        let parts = biased(domain, level, self.bias, self.period_ns);
        if parts.high_ns == 0 || parts.high == parts.low {
            return GovernorVerdict { speed: Some(parts.low), next_ns: None };
        }
        if parts.high_ns < self.period_ns {
            self.states[d].second = Some((parts.low, self.period_ns - parts.high_ns));
        }
        GovernorVerdict { speed: Some(parts.high), next_ns: Some(parts.high_ns) }
    }
}

impl GovernorRule for Ondemand {
    fn start(&mut self, d: usize, _: Khz) {
        self.states[d] = OndemandState::default();
    }

    fn due(&mut self, d: usize) -> Option<GovernorVerdict> {
        let (khz, rest_ns) = self.states[d].second.take()?;
        Some(GovernorVerdict { speed: Some(khz), next_ns: Some(rest_ns) })
    }

    fn decide(
        &mut self,
        d: usize,
        domain: &DomainInfo,
        now: &DomainSample,
        load: DomainLoad,
    ) -> GovernorVerdict {
        if load.percent > self.up {
            // A rise from below starts the stretch; staying at the top under load continues it.
            self.states[d].stretched |= now.khz < domain.fastest();
            let mut verdict = self.aim(d, domain, domain.fastest());
            if self.states[d].stretched && self.down_factor > 1 && verdict.next_ns.is_none() {
                verdict.next_ns = Some(self.period_ns.saturating_mul(self.down_factor));
            }
            return verdict;
        }
        // Load that no longer fills the highest speed is watched at the normal pace again.
        self.states[d].stretched = false;
        let wish = proportional(domain.slowest(), domain.fastest(), load.percent);
        self.aim(d, domain, domain.nearest(wish))
    }
}

/// Linux's ondemand.
pub(super) static ONDEMAND: Speed = Speed {
    name: "ondemand",
    summary: "Linux: the highest speed over 95 % load, else in proportion to the load",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_ondemand.c and cpufreq_governor.c",
    source: include_str!("ondemand.rs"),
    params: &[
        percent("up", "load above which the highest speed is taken", 95.0),
        RATE,
        down_factor("periods between two looks while at the highest speed under load"),
        Param {
            name: "bias",
            help: "how far to aim below the speed that the load asks for, in thousandths",
            kind: ParamKind::Number { unit: "", min: 0.0, max: 1000.0, default: 0.0 },
        },
        IO_IS_BUSY,
        cost(COST_US),
    ],
    build: |p, s| {
        let period_ns = sampling_ns(p, s.us("rate"));
        let rule = Ondemand {
            up: s.count("up"),
            down_factor: s.count("down_factor"),
            bias: s.count("bias"),
            period_ns,
            states: vec![OndemandState::default(); p.domains.len()],
        };
        Box::new(SamplingGovernor::new(p, rule, period_ns, s.count("io_is_busy") == 1, s.us("cost")))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::Cadence;
    use crate::speed::testing::{Rig, platform};
    use crate::{MS, SampleScope};

    const LEVELS: &[u32] = &[3000, 2500, 2000, 1500, 1000];
    const PERIOD: u64 = 20 * MS;

    fn rig(spec: &str) -> Rig {
        Rig::new(platform(2, LEVELS), &ONDEMAND, spec, true)
    }

    #[test]
    fn the_formula() {
        let mut r = rig("");
        assert_eq!(r.policy.cadence(), Cadence::Scheduler { interval_ns: PERIOD });
        // 1000 + load * 20 MHz, nearest level.
        for (busy, mhz) in [(960, 3000), (950, 3000), (850, 2500), (500, 2000), (240, 1500), (0, 1000)] {
            assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[busy, 0]), mhz, "{busy}");
        }
        assert_eq!(proportional(Khz(1_000_000), Khz(3_000_000), 33), Khz(1_660_000));
    }

    #[test]
    fn the_threshold_jumps() {
        let mut r = Rig::new(platform(1, &[3000, 1000]), &ONDEMAND, "up=40", true);
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[400]), 1000, "1800 is nearer to 1000");
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[410]), 3000);
    }

    #[test]
    fn down_factor_stretches_after_a_rise() {
        let mut r = rig("down_factor=5");
        r.window(SampleScope::Domain(0), PERIOD, &[1000]);
        assert_eq!(r.intent.next_ns, Some(5 * PERIOD));
        r.window(SampleScope::Domain(0), PERIOD, &[1000]);
        assert_eq!(r.intent.next_ns, Some(5 * PERIOD));
        r.window(SampleScope::Domain(0), PERIOD, &[500]);
        assert_eq!(r.intent.next_ns, None);
    }

    #[test]
    fn a_bias_divides_the_period() {
        let mut r = rig("bias=100");
        // 3000 * 0.9 = 2700: two fifths at 3000 and three fifths at 2500.
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[1000]), 3000);
        assert_eq!(r.intent.next_ns, Some(PERIOD * 2 / 5));
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD * 2 / 5, &[1000]), 2500);
        assert_eq!(r.intent.next_ns, Some(PERIOD * 3 / 5));
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD * 3 / 5, &[1000]), 3000);
    }

    #[test]
    fn the_extremes_of_bias_stay_within_the_levels() {
        let domain = &platform(1, LEVELS).domains[0];
        let all = biased(domain, Khz(3_000_000), 1000, PERIOD);
        assert_eq!((all.low, all.high), (Khz(1_000_000), Khz(1_000_000)));
    }
}
