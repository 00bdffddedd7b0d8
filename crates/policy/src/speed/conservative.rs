//! `conservative`: small steps up and down, for power sources that dislike jumps.
//!
//! It follows Linux 6.12, `drivers/cpufreq/cpufreq_conservative.c`; the loop around it is in `governor.rs`.
//!
//! It observes the load of a domain's busiest CPU over one sampling period, and keeps the speed it has
//! requested so far, which moves more finely than the levels do, and how many looks were skipped.
//!
//! 1. A request outside the user's limits starts again from the speed in force: the limits moved.
//! 2. For each sampling period that the whole domain slept through, one step off: nobody looked then, but
//!    the steps down were due.
//! 3. Load over `up` (80 %): one step up, and the fastest level that is at most the request.
//! 4. Else, on every `down_factor`-th look: load under `down` (20 %) takes one step down, and the
//!    slowest level that is at least the request. Rounding down on the way up and up on the way down makes every
//!    level last for its full share of steps.
//! 5. Else nothing.
//!
//! A step is `step` = 5 % of the highest speed, so the whole range takes up to twenty looks. 80 and
//! 20 leave a wide range in which a speed is left alone.
//!
//! Left out: `ignore_nice_load`, since a sample does not say which work was nice.

use super::Speed;
use super::governor::{
    COST_US, DomainLoad, GovernorRule, GovernorVerdict, IO_IS_BUSY, RATE, SamplingGovernor, down_factor,
    sampling_ns,
};
use super::poll::{cost, percent};
use crate::{DomainInfo, DomainSample, Khz, Param, ParamKind};
use alloc::{boxed::Box, vec, vec::Vec};

/// The least step in kHz, when the share of a very slow clock comes to nothing; the kernel's figure.
const LEAST_STEP_KHZ: u32 = 5;

/// What a domain keeps.
#[derive(Clone, Copy, Debug, Default)]
struct ConservativeState {
    /// The request so far.
    wish: Khz,
    /// Looks since the last that could lower.
    skipped: u64,
}

/// The rule.
struct Conservative {
    up: u64,
    down: u64,
    /// A step, in percent of the highest speed.
    step: u64,
    down_factor: u64,
    states: Vec<ConservativeState>,
}

/// The range of speeds allowed: the user's limits where there are any, within the hardware's.
fn limits(domain: &DomainInfo, now: &DomainSample) -> (Khz, Khz) {
    let (slowest, fastest) = (domain.slowest(), domain.fastest());
    let max = if now.max.0 == 0 { fastest } else { now.max.clamp(slowest, fastest) };
    (now.min.clamp(slowest, max), max)
}

impl GovernorRule for Conservative {
    fn start(&mut self, d: usize, found: Khz) {
        self.states[d] = ConservativeState { wish: found, skipped: 0 };
    }

    fn decide(
        &mut self,
        d: usize,
        domain: &DomainInfo,
        now: &DomainSample,
        load: DomainLoad,
    ) -> GovernorVerdict {
        let (min, max) = limits(domain, now);
        let step = ((u64::from(max.0) * self.step / 100) as u32).max(LEAST_STEP_KHZ);
        let state = &mut self.states[d];

        // Steps are of the allowed maximum, so a lowered limit also makes them finer.
        let mut wish = state.wish;
        if wish < min || wish > max {
            wish = now.khz.clamp(min, max);
        }
        let off = load.slept.saturating_mul(u64::from(step)).min(u64::from(u32::MAX)) as u32;
        wish = Khz(wish.0.saturating_sub(off)).max(min);

        let mut speed = None;
        if load.percent > self.up {
            // A rise starts the count of skipped looks anew: falls need that many calm ones in a row.
            state.skipped = 0;
            if wish < max {
                wish = Khz(wish.0.saturating_add(step)).min(max);
                speed = Some(domain.at_most(wish));
            }
        } else {
            state.skipped += 1;
            if state.skipped >= self.down_factor {
                state.skipped = 0;
                if load.percent < self.down && wish > min {
                    wish = Khz(wish.0.saturating_sub(step)).max(min);
                }
                // At the minimum already it is still written: steps taken off for a sleep show only here.
                if load.percent < self.down {
                    speed = Some(domain.at_least(wish));
                }
            }
        }
        state.wish = wish;
        GovernorVerdict { speed, next_ns: None }
    }
}

/// Linux's conservative.
pub(super) static CONSERVATIVE: Speed = Speed {
    name: "conservative",
    summary: "Linux: steps of 5 %, up over 80 % load and down under 20 %",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_conservative.c and cpufreq_governor.c",
    source: include_str!("conservative.rs"),
    params: &[
        percent("up", "load above which the speed rises by a step", 80.0),
        percent("down", "load below which the speed falls by a step", 20.0),
        Param {
            name: "step",
            help: "size of a step, of the highest speed",
            kind: ParamKind::Number { unit: "%", min: 1.0, max: 100.0, default: 5.0 },
        },
        RATE,
        down_factor("only every so many looks may lower the speed"),
        IO_IS_BUSY,
        cost(COST_US),
    ],
    build: |p, s| {
        let rule = Conservative {
            up: s.count("up"),
            down: s.count("down"),
            step: s.count("step"),
            down_factor: s.count("down_factor"),
            states: vec![ConservativeState::default(); p.domains.len()],
        };
        let period_ns = sampling_ns(p, s.us("rate"));
        Box::new(SamplingGovernor::new(p, rule, period_ns, s.count("io_is_busy") == 1, s.us("cost")))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{MS, SampleScope};

    const LEVELS: &[u32] = &[2000, 1800, 1600, 1400, 1200, 1000];
    const PERIOD: u64 = 20 * MS;

    fn rig(spec: &str, at_slowest: bool) -> Rig {
        Rig::new(platform(1, LEVELS), &CONSERVATIVE, spec, at_slowest)
    }

    #[test]
    fn steps_of_5_percent() {
        let mut r = rig("", true);
        // Requests 1100, 1200, 1300, ...: the level at most that.
        let up: Vec<_> = (0..11).map(|_| r.window(SampleScope::Domain(0), PERIOD, &[810])).collect();
        assert_eq!(up, [1000, 1200, 1200, 1400, 1400, 1600, 1600, 1800, 1800, 2000, 2000]);
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[800]), 2000, "80 % is not over 80 %");
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[200]), 2000, "nor 20 % under 20 %");
        // Requests 1900, 1800, ...: the level at least that.
        let down: Vec<_> = (0..10).map(|_| r.window(SampleScope::Domain(0), PERIOD, &[190])).collect();
        assert_eq!(down, [2000, 1800, 1800, 1600, 1600, 1400, 1400, 1200, 1200, 1000]);
    }

    #[test]
    fn down_factor_skips_looks() {
        let mut r = rig("step=10,down_factor=3", false);
        let down: Vec<_> = (0..6).map(|_| r.window(SampleScope::Domain(0), PERIOD, &[0])).collect();
        assert_eq!(down, [2000, 2000, 1800, 1800, 1800, 1600]);
    }

    #[test]
    fn a_sleep_costs_a_step_a_period() {
        let mut r = rig("step=10", false);
        r.window(SampleScope::Domain(0), PERIOD, &[500]);
        // Three periods slept: 600 MHz off, and the load before it (50 %) asks for nothing more.
        r.window(SampleScope::Domain(0), 3 * PERIOD + MS, &[0]);
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[1000]), 1600, "1400 and one step up");
    }

    #[test]
    fn limits_that_move_restart_from_the_speed_in_force() {
        let mut r = rig("step=10", false);
        r.domains[0].max = Khz(1_400_000);
        r.domains[0].khz = Khz(1_400_000);
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[0]), 1400, "1400 - 140 rounded up to a level");
        assert_eq!(r.window(SampleScope::Domain(0), PERIOD, &[0]), 1200);
    }
}
