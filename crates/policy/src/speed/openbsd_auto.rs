//! `openbsd-auto`: OpenBSD's `hw.perfpolicy=auto`, two levels and a hold.
//!
//! It follows OpenBSD `sys/kern/sched_bsd.c`, setperf_auto: revision 1.70, which the 2021 study of
//! battery life ran against, and revision 1.104 of 2025. The kernel measures itself by a timer of 100 ms; the first beat only
//! takes the counters, so the first decision falls at 200 ms.
//!
//! It observes each CPU's idle time over the beat. It keeps a count of beats to hold.
//!
//! 1. Hot: all CPUs together were idle for less than half of the beat, or any one for less than a third.
//!    The second rule is for the single thread on a large machine, which the mean does not see.
//! 2. Hot: the highest speed, now. Nothing between: OpenBSD's `auto` knows the levels 100 and 0.
//! 3. Not hot: one beat of hold is used up; with none left the lowest speed.
//! 4. How hold is gained differs. `version=2021`: any hot beat sets it to 5, so the speed stays
//!    for about 500 ms after the last hot beat. `version=new`: each hot beat adds one, up to 5, so a short
//!    burst is paid with a short hold.
//! 5. On mains the policy is `high`: the highest speed, no measuring (`mains=auto` changes it, as
//!    `hw.perfpolicy=auto,auto` does). No battery means mains, as in OpenBSD.
//!
//! Left out: `manual` (`userspace` is the same), CPUs that are offline, and drivers that know levels between 0
//! and 100, which `auto` never asks for.

use super::poll::{cost, on_battery};
use super::{Cadence, Speed, SpeedPolicy};
use crate::{CpuSample, Intent, Khz, MS, Observation, Param, ParamKind, Platform, PowerSource, Settings};
use alloc::{boxed::Box, vec::Vec};

/// The kernel's timer, in ns.
pub(super) const BEAT_NS: u64 = 100 * MS;
/// Beats of hold at most: about half a second.
const HOLD_BEATS: u32 = 5;
/// CPU time of one decision in us: a timer interrupt and a sum over the CPUs' counters.
pub(super) const COST_US: f64 = 2.0;

/// Step 1.
fn hot(cpus: &[CpuSample]) -> bool {
    // In idle time and with divisors, as in the kernel: busy over 2/3 is idle under 1/3.
    let (mut idle, mut total) = (0u64, 0u64);
    for cpu in cpus {
        if cpu.not_busy_ns() < cpu.total_ns() / 3 {
            return true;
        }
        idle = idle.saturating_add(cpu.not_busy_ns());
        total = total.saturating_add(cpu.total_ns());
    }
    idle < total / 2
}

/// How hot beats turn into hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Each hot beat adds one.
    New,
    /// Any hot beat sets it to the full hold.
    Of2021,
}

/// Steps 2 to 4, without the speeds: whether the machine should be fast after a beat.
#[derive(Clone, Copy, Debug)]
struct Hold {
    version: Version,
    beats: u32,
    fast: bool,
}

impl Hold {
    fn beat(&mut self, hot: bool) -> bool {
        if hot {
            self.beats = match self.version {
                Version::New => (self.beats + 1).min(HOLD_BEATS),
                Version::Of2021 => HOLD_BEATS,
            };
            self.fast = true;
        } else if self.fast {
            // The beat that uses up the last of the hold is the one that falls, not the one after it.
            self.beats = self.beats.saturating_sub(1);
            self.fast = self.beats > 0;
        }
        self.fast
    }
}

/// The kernel's policy between two speeds a domain; `powersaving` is this with a lower upper one.
pub(super) struct Auto {
    hold: Hold,
    /// True when mains means the highest speed without measuring.
    mains_high: bool,
    /// True when the bounds hold on mains as well.
    always_bounded: bool,
    cost_ns: u64,
    slow: Vec<Khz>,
    fast: Vec<Khz>,
    /// The highest speed while bounded.
    bounded: Vec<Khz>,
}

impl Auto {
    /// For a platform, with the highest speed while bounded of each domain.
    pub(super) fn new(p: &Platform, s: &Settings, version: Version, bounded: Vec<Khz>) -> Auto {
        Auto {
            hold: Hold { version, beats: 0, fast: false },
            mains_high: s.count("mains") == 0,
            always_bounded: false,
            cost_ns: s.us("cost"),
            slow: p.domains.iter().map(|d| d.slowest()).collect(),
            fast: p.domains.iter().map(|d| d.fastest()).collect(),
            bounded,
        }
    }

    /// The bound on mains as well.
    pub(super) fn always_bounded(self) -> Auto {
        Auto { always_bounded: true, ..self }
    }

    fn write(&self, fast: bool, source: PowerSource, out: &mut Intent) {
        // For `openbsd-auto` itself both upper speeds are the same.
        let bounded = self.always_bounded || on_battery(source);
        let speeds = match (fast, bounded) {
            (false, _) => &self.slow,
            (true, true) => &self.bounded,
            (true, false) => &self.fast,
        };
        for (d, &khz) in speeds.iter().enumerate() {
            out.set_speed(d, khz);
        }
    }

    /// Step 5.
    fn measures(&self, source: PowerSource) -> bool {
        on_battery(source) || !self.mains_high
    }
}

impl SpeedPolicy for Auto {
    fn cadence(&self) -> Cadence {
        Cadence::KernelTimer { first_ns: 2 * BEAT_NS, period_ns: BEAT_NS }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// High on mains; elsewhere it starts slow and lets the first beats judge.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.hold.fast = false;
        self.hold.beats = 0;
        self.write(!self.measures(obs.source), obs.source, out);
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let fast = if self.measures(obs.source) {
            self.hold.beat(hot(obs.cpus))
        } else {
            // When the plug is pulled the measuring begins from fast, without hold.
            self.hold.fast = true;
            self.hold.beats = 0;
            true
        };
        self.write(fast, obs.source, out);
    }
}

/// The parameter of step 5.
pub(super) const MAINS: Param = Param {
    name: "mains",
    help: "on mains: always the highest speed, or by load as on battery",
    kind: ParamKind::Choice(&["high", "auto"]),
};

/// OpenBSD's auto.
pub(super) static OPENBSD_AUTO: Speed = Speed {
    name: "openbsd-auto",
    summary: "OpenBSD's kernel policy: highest or lowest speed, with a hold of up to half a second",
    follows: "OpenBSD, sys/kern/sched_bsd.c revisions 1.70 (version=2021) and 1.104 (version=new)",
    source: include_str!("openbsd_auto.rs"),
    params: &[
        Param {
            name: "version",
            help: "new: each hot beat earns one beat of hold; 2021: any hot beat earns five",
            kind: ParamKind::Choice(&["new", "2021"]),
        },
        MAINS,
        cost(COST_US),
    ],
    build: |p, s| {
        let version = if s.count("version") == 0 { Version::New } else { Version::Of2021 };
        Box::new(Auto::new(p, s, version, p.domains.iter().map(|d| d.fastest()).collect()))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};

    const LEVELS: &[u32] = &[2400, 1600, 800];

    fn rig(cpus: u16, spec: &str) -> Rig {
        let mut r = Rig::new(platform(cpus, LEVELS), &OPENBSD_AUTO, spec, true);
        r.source = PowerSource::Battery;
        assert_eq!(r.poll(BEAT_NS, &[0]), 2400.min(r.domains[0].khz.0 / 1000));
        r.polls_until(800, BEAT_NS, &[0]);
        r
    }

    /// Idle beats until the speed has fallen, after `hot` busy ones.
    fn hold_after(version: &str, hot: u32) -> u32 {
        let mut r = rig(1, version);
        for _ in 0..hot {
            assert_eq!(r.poll(BEAT_NS, &[1000]), 2400);
        }
        r.polls_until(800, BEAT_NS, &[0])
    }

    #[test]
    fn hold_times() {
        let after = |version| [1, 2, 4, 5, 9].map(|hot| hold_after(version, hot));
        assert_eq!(after("version=2021"), [5; 5], "always about 500 ms");
        assert_eq!(after("version=new"), [1, 2, 4, 5, 5], "as earned");
    }

    #[test]
    fn one_cpu_or_all_together() {
        let fast = |busy: &[u64]| rig(4, "").poll(BEAT_NS, busy) == 2400;
        assert!(fast(&[700, 0, 0, 0]), "one CPU over two thirds");
        assert!(!fast(&[660, 0, 0, 0]));
        assert!(fast(&[510]), "all over a half");
        assert!(!fast(&[490]));
    }

    #[test]
    fn mains_is_high() {
        let mut r = Rig::new(platform(1, LEVELS), &OPENBSD_AUTO, "", true);
        assert_eq!(r.domains[0].khz.0, 2_400_000, "at once");
        r.source = PowerSource::Mains;
        assert!((0..20).all(|_| r.poll(BEAT_NS, &[0]) == 2400));
        r.source = PowerSource::Battery;
        assert_eq!(r.poll(BEAT_NS, &[0]), 800, "no hold was earned on mains");
        let mut r = Rig::new(platform(1, LEVELS), &OPENBSD_AUTO, "mains=auto", true);
        assert_eq!(r.poll(BEAT_NS, &[0]), 800);
        assert_eq!(r.poll(BEAT_NS, &[1000]), 2400);
    }

    #[test]
    fn the_first_decision_is_at_200_ms() {
        let r = Rig::new(platform(1, LEVELS), &OPENBSD_AUTO, "", true);
        assert_eq!(r.policy.cadence(), Cadence::KernelTimer { first_ns: 200 * MS, period_ns: 100 * MS });
    }
}
