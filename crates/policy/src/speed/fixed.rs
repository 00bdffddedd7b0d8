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
//! They follow Linux 6.12, `drivers/cpufreq/cpufreq_performance.c`, `cpufreq_powersave.c` and
//! `cpufreq_userspace.c`. Left out: a new decision when the user moves the limits; the platform clamps.

use super::{Cadence, Speed, SpeedPolicy};
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, Platform, Settings};
use alloc::{boxed::Box, vec::Vec};

/// A held speed for each domain: for every policy that decides once.
pub(super) struct Fixed(Vec<Khz>);

impl Fixed {
    /// Holds what `speed` says for each domain.
    pub(super) fn boxed(p: &Platform, speed: impl Fn(&DomainInfo) -> Khz) -> Box<dyn SpeedPolicy> {
        Box::new(Fixed(p.domains.iter().map(speed).collect()))
    }
}

impl SpeedPolicy for Fixed {
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
    build: |p, _| Fixed::boxed(p, DomainInfo::fastest),
};

/// The lowest speed.
pub(super) static POWERSAVE: Speed = Speed {
    name: "powersave",
    summary: "always the lowest speed",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_powersave.c",
    source: include_str!("fixed.rs"),
    params: &[],
    build: |p, _| Fixed::boxed(p, DomainInfo::slowest),
};

/// The user's speed.
pub(super) static USERSPACE: Speed = Speed {
    name: "userspace",
    summary: "the speed that the user names",
    follows: "Linux 6.12, drivers/cpufreq/cpufreq_userspace.c",
    source: include_str!("fixed.rs"),
    params: &[Param {
        name: "khz",
        help: "speed to hold; the next level at or above it is taken, 0 for the highest",
        kind: ParamKind::Number { unit: "kHz", min: 0.0, max: 10_000_000.0, default: 0.0 },
    }],
    build: |p: &Platform, s: &Settings| {
        let khz = match s.number("khz") as u32 {
            0 => u32::MAX,
            k => k,
        };
        Fixed::boxed(p, |d| d.at_least(Khz(khz)))
    },
};
