//! `performance`, `powersave`, `userspace`: one speed, held.
//!
//! They observe nothing and decide once, when they take over: the highest speed, the lowest, or the
//! one that the user names. They are the ends between which every other policy lies, and the
//! baseline of any comparison: `performance` bounds the time from below, `powersave` bounds the
//! power while busy from below, though not the energy, since the machine around a slow CPU stays on
//! for longer.
//!
//! `userspace` takes `khz`, rounded up to the next level as cpufreq's `CPUFREQ_RELATION_L` does.
//!
//! A user who selects `userspace` and names no speed gets what the governor before left, and that one left each domain a
//! speed of its own: `held=uneven` has as many domains at the highest and the others at the lowest as make the mean `khz`.
//!
//! They follow Linux 6.12, `drivers/cpufreq/cpufreq_performance.c`, `cpufreq_powersave.c` and
//! `cpufreq_userspace.c`. Left out: a new decision when the user moves the limits; the platform clamps.

use super::{Cadence, Speed, SpeedPolicy};
use crate::params::HELD;
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, Platform, Settings};
use alloc::{boxed::Box, vec::Vec};

/// A held speed for each domain: for every policy that decides once.
pub(super) struct HeldSpeed(Vec<Khz>);

impl HeldSpeed {
    /// Holds what `speed` says for each domain.
    pub(super) fn boxed(p: &Platform, speed: impl Fn(&DomainInfo) -> Khz) -> Box<dyn SpeedPolicy> {
        Box::new(HeldSpeed(p.domains.iter().map(speed).collect()))
    }
}

impl SpeedPolicy for HeldSpeed {
    fn cadence(&self) -> Cadence {
        Cadence::Once
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        for (d, &khz) in self.0.iter().enumerate() {
            out.set_speed(d, khz);
        }
    }
    fn observe(&mut self, _: &Observation<'_>, _: &mut Intent) {}
}

/// The highest speed.
pub(super) static PERFORMANCE: Speed = Speed {
    name: "performance",
    summary: "always the highest speed",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_performance.c",
    source: include_str!("fixed.rs"),
    params: &[],
    build: |p, _| HeldSpeed::boxed(p, DomainInfo::fastest),
};

/// The lowest speed.
pub(super) static POWERSAVE: Speed = Speed {
    name: "powersave",
    summary: "always the lowest speed",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_powersave.c",
    source: include_str!("fixed.rs"),
    params: &[],
    build: |p, _| HeldSpeed::boxed(p, DomainInfo::slowest),
};

/// The user's speed.
pub(super) static USERSPACE: Speed = Speed {
    name: "userspace",
    summary: "the speed that the user names",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_userspace.c",
    source: include_str!("fixed.rs"),
    params: &[
        Param {
            name: "khz",
            help: "speed to hold; the next level at or above it is taken, 0 for the highest",
            kind: ParamKind::Number { unit: "kHz", min: 0.0, max: 10_000_000.0, default: 0.0 },
        },
        Param {
            name: HELD,
            help: "the same speed everywhere; or uneven, as a governor left it: khz is the mean of highest and lowest speeds",
            kind: ParamKind::Choice(&["same", "uneven"]),
        },
    ],
    build: |p: &Platform, s: &Settings| {
        let khz = match s.number("khz") as u32 {
            0 => u32::MAX,
            k => k,
        };
        if s.number(HELD) > 0.0 {
            left_behind(p, Khz(khz))
        } else {
            HeldSpeed::boxed(p, |d| d.at_least(Khz(khz)))
        }
    },
};

/// The highest or the lowest speed for each domain: their mean comes nearest to `mean`, and the fast ones lie evenly among the
/// slow ones.
fn left_behind(p: &Platform, mean: Khz) -> Box<dyn SpeedPolicy> {
    let mut due = 0.5;
    let speed = |d: &DomainInfo| {
        let (low, high) = (f64::from(d.slowest().0), f64::from(d.fastest().0));
        due += if high > low { ((f64::from(mean.0) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        if due >= 1.0 {
            due -= 1.0;
            d.fastest()
        } else {
            d.slowest()
        }
    };
    Box::new(HeldSpeed(p.domains.iter().map(speed).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, domain, platform};

    /// What each of eight domains of 800 to 2400 MHz holds under `userspace` with these parameters.
    fn held(parameters: &str) -> Vec<u32> {
        let domains = (0..8).map(|c| domain(c, 1, &[2400, 1600, 800])).collect();
        let p = Platform { domains, ..platform(8, &[2400]) };
        Rig::new(p, &USERSPACE, parameters, true).domains.iter().map(|d| d.khz.0 / 1000).collect()
    }

    #[test]
    fn what_a_governor_left_is_uneven_and_has_the_mean() {
        assert_eq!(held("khz=1200000"), [1600; 8]);
        assert_eq!(held("khz=1200000,held=uneven"), [800, 2400, 800, 800, 800, 2400, 800, 800]);
        assert_eq!(held("khz=800000,held=uneven"), [800; 8]);
        assert_eq!(held("khz=2400000,held=uneven"), [2400; 8]);
    }
}
