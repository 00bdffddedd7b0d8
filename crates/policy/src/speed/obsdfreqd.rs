//! `obsdfreqd`: the daemon with which the author of the 2021 OpenBSD study went on.
//!
//! It follows obsdfreqd, `main.c` and its manual; which release was read was not noted. It replaces the kernel's two-level
//! policy from user space by a gentle rise and an immediate fall, with separate limits on mains and
//! on battery.
//!
//! It observes the machine's mean load over 300 ms and the hottest sensor. It keeps a level of 0 to 100,
//! OpenBSD's `hw.setperf`, and a ceiling that heat has lowered.
//!
//! One poll, with the limits of the power source in force (no battery counts as mains):
//! 1. Heat: over the temperature limit the ceiling goes down by one step, else up by one, between
//!    the minimum and the maximum. 0 means no limit, the daemon's default.
//! 2. Load over the threshold (30 %): the level rises by one step (10), up to the ceiling.
//! 3. Else the level falls straight to the minimum. It was written for a person at a
//!    keyboard: ramps of 10 keep short work slow and cool, and what is idle should be cheap at once.
//! 4. The level chooses a speed as OpenBSD's drivers do: of n speeds, slowest first, the one with the index
//!    (level*n + 1)/101.
//!
//! 300 ms, 30 %, 10, 0 and 100 are the daemon's defaults. Left out: the inertia and the step down of the
//! published versions; their defaults (0 and 100) are what is built in here.
//! That the ceiling moves by whole steps is this program's choice.

use super::poll::{DAEMON_POLL_COST_US, Fold, cost, on_battery, percent, poll};
use super::{Cadence, Speed, SpeedPolicy};
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, Settings};
use alloc::{boxed::Box, vec::Vec};

/// The limits for one power source.
#[derive(Clone, Copy, Debug)]
struct SourceLimits {
    /// Lowest level, 0 to 100.
    min: u64,
    /// Highest level, 0 to 100.
    max: u64,
    /// Load in percent above which the level rises.
    threshold: u64,
    /// Temperature in thousandths of a degree above which the ceiling falls; 0: never.
    hot_mc: i64,
}

/// Level and heat ceiling, both 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObsdfreqdState {
    level: u64,
    ceiling: u64,
}

/// Steps 1 to 3.
fn next(
    state: ObsdfreqdState,
    l: SourceLimits,
    step: u64,
    load: u64,
    temperature_mc: Option<i32>,
) -> ObsdfreqdState {
    // A minimum over the maximum is the user's mistake; the maximum then wins, as for heat.
    let min = l.min.min(l.max);
    let hot = l.hot_mc > 0 && temperature_mc.is_some_and(|mc| i64::from(mc) > l.hot_mc);
    let moved = if hot { state.ceiling.saturating_sub(step) } else { state.ceiling + step };
    let ceiling = moved.clamp(min, l.max);
    let level = if load > l.threshold { (state.level + step).clamp(min, ceiling) } else { min };
    ObsdfreqdState { level, ceiling }
}

/// Step 4.
fn setperf(domain: &DomainInfo, level: u64) -> Khz {
    let n = domain.levels.len();
    let from_slowest = (level as usize * n + 1) / 101;
    domain.levels[n - 1 - from_slowest.min(n - 1)].khz
}

/// The daemon.
struct Obsdfreqd {
    mains: SourceLimits,
    battery: SourceLimits,
    step: u64,
    poll_ns: u64,
    cost_ns: u64,
    state: ObsdfreqdState,
    domains: Vec<DomainInfo>,
}

impl Obsdfreqd {
    fn write(&self, out: &mut Intent) {
        for (d, domain) in self.domains.iter().enumerate() {
            out.set_speed(d, setperf(domain, self.state.level));
        }
    }
}

impl SpeedPolicy for Obsdfreqd {
    fn cadence(&self) -> Cadence {
        Cadence::Daemon { first_ns: self.poll_ns, period_ns: self.poll_ns }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let limits = if on_battery(obs.source) { self.battery } else { self.mains };
        self.state = ObsdfreqdState { level: limits.min.min(limits.max), ceiling: limits.max };
        self.write(out);
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let limits = if on_battery(obs.source) { self.battery } else { self.mains };
        let load = Fold::Mean.load(obs.cpus);
        self.state = next(self.state, limits, self.step, load, obs.temperature_mc);
        self.write(out);
    }
}

/// A temperature limit, off by default.
const fn hot(name: &'static str, help: &'static str) -> Param {
    Param { name, help, kind: ParamKind::Number { unit: "C", min: 0.0, max: 150.0, default: 0.0 } }
}

/// The study's follow-up.
pub(super) static OBSDFREQD: Speed = Speed {
    name: "obsdfreqd",
    summary: "OpenBSD's other daemon: up in steps of 10 %, down at once",
    follows: "obsdfreqd, main.c and manual (release not noted)",
    source: include_str!("obsdfreqd.rs"),
    params: &[
        poll(300.0),
        percent("step", "how much the level rises at a time", 10.0),
        percent("min-mains", "lowest level on mains", 0.0),
        percent("min-battery", "lowest level on battery", 0.0),
        percent("max-mains", "highest level on mains", 100.0),
        percent("max-battery", "highest level on battery", 100.0),
        percent("threshold-mains", "load above which the level rises, on mains", 30.0),
        percent("threshold-battery", "load above which the level rises, on battery", 30.0),
        hot("hot-mains", "temperature above which the ceiling falls, on mains; 0: no limit"),
        hot("hot-battery", "temperature above which the ceiling falls, on battery; 0: no limit"),
        cost(DAEMON_POLL_COST_US),
    ],
    build: |p, s: &Settings| {
        Box::new(Obsdfreqd {
            mains: SourceLimits {
                min: s.count("min-mains"),
                max: s.count("max-mains"),
                threshold: s.count("threshold-mains"),
                hot_mc: s.count("hot-mains") as i64 * 1000,
            },
            battery: SourceLimits {
                min: s.count("min-battery"),
                max: s.count("max-battery"),
                threshold: s.count("threshold-battery"),
                hot_mc: s.count("hot-battery") as i64 * 1000,
            },
            step: s.count("step"),
            poll_ns: s.ms("poll"),
            cost_ns: s.us("cost"),
            state: ObsdfreqdState { level: 0, ceiling: 100 },
            domains: p.domains.clone(),
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{MS, PowerSource};

    const POLL: u64 = 300 * MS;
    /// Ten levels: one a step.
    const LEVELS: &[u32] = &[2000, 1800, 1600, 1400, 1200, 1000, 800, 600, 400, 200];

    #[test]
    fn a_ramp_of_ten_polls_and_one_down() {
        let mut r = Rig::new(platform(1, LEVELS), &OBSDFREQD, "", false);
        assert_eq!(r.domains[0].khz.0, 200_000, "starts at the minimum");
        let up: Vec<_> = (0..11).map(|_| r.poll(POLL, &[310])).collect();
        // (10*10 + 1)/101 is 1, and (20*10 + 1)/101 still is.
        assert_eq!(up, [400, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 2000]);
        assert_eq!(r.poll(POLL, &[300]), 200, "30 % is not over 30 %");
    }

    #[test]
    fn the_mean_of_all_cpus_decides() {
        let mut r = Rig::new(platform(4, LEVELS), &OBSDFREQD, "step=100", false);
        assert_eq!(r.poll(POLL, &[1000, 0, 0, 0]), 200);
        assert_eq!(r.poll(POLL, &[1000, 300, 0, 0]), 2000);
    }

    #[test]
    fn limits_belong_to_the_power_source() {
        let spec = "step=100,max-battery=50,min-mains=20,threshold-battery=60";
        let mut r = Rig::new(platform(1, LEVELS), &OBSDFREQD, spec, false);
        assert_eq!(r.poll(POLL, &[500]), 2000);
        assert_eq!(r.poll(POLL, &[0]), 400);
        r.source = PowerSource::Battery;
        assert_eq!(r.poll(POLL, &[500]), 200);
        assert_eq!(r.poll(POLL, &[700]), 1000);
    }

    #[test]
    fn heat_takes_a_step_at_a_time() {
        let l = SourceLimits { min: 0, max: 100, threshold: 30, hot_mc: 80_000 };
        let mut s = ObsdfreqdState { level: 100, ceiling: 100 };
        let levels = [81, 81, 80, 80].map(|c| {
            s = next(s, l, 10, 100, Some(c * 1000));
            s.level
        });
        assert_eq!(levels, [90, 80, 90, 100]);
        assert_eq!(next(s, SourceLimits { hot_mc: 0, ..l }, 10, 100, Some(i32::MAX)).level, 100, "no limit");
    }

    #[test]
    fn setperf_reaches_both_ends() {
        for n in 1..=LEVELS.len() {
            let domain = &platform(1, &LEVELS[..n]).domains[0];
            assert_eq!(setperf(domain, 100), domain.fastest());
            assert_eq!(setperf(domain, 0), domain.slowest());
        }
    }
}
