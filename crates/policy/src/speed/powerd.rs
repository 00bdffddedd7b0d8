//! `powerd`: FreeBSD's daemon, as it is today.
//!
//! It follows FreeBSD 14, `usr.sbin/powerd/powerd.c`. It is a process that wakes every 250 ms,
//! and all of its arithmetic is on integers: percent and MHz. Both are kept here, since the roundings
//! decide how many polls a ramp takes.
//!
//! It observes the load since the last poll: for each CPU `100 - 100*idle/total`, and the *sum*
//! over CPUs. That was right when it was written, for one CPU; today a uniform background of 5 %
//! adds up to 40 on 8 CPUs, over half the running mark, and pins them at the highest speed for
//! ever. `load=max` or `load=mean` mend that; `sum` stays the default because it is what runs.
//!
//! It keeps `freq`, the speed it *wants* in MHz, which moves more finely than the levels do; the
//! speed it last read (`current`); and how many polls went by without a change.
//!
//! One poll:
//! 1. Mains or battery chooses the shape: `hiadaptive` on mains or unknown, `adaptive` on
//!    battery. The two are one rule. `split` says by how much hiadaptive divides both marks: 1
//!    for adaptive and 2 for hiadaptive, which so aims at half the load.
//! 2. Load over running mark / split: the wish grows in proportion to load over mark; where the load
//!    says nothing more (over 95 %, or over twice the divided mark) it is multiplied by
//!    2*split. The cap is `split` times the highest level: what hiadaptive gathers above the
//!    highest level takes time to shrink again, and that is its hold.
//! 3. Load under idle mark / split, and the present work would fit into the next lower level with the
//!    load still under the running mark: the wish shrinks to 7/8 (adaptive) or 31/32.
//! 4. The level is the slowest that is at least the wish; it is written only when it differs.
//! 5. adaptive polls half as often after 120 polls without a change (30 s), a quarter after 360.
//!
//! The marks are 75 % and 50 %: FreeBSD's defaults, far enough apart that one change of level
//! does not at once call for its opposite. One busy core takes 0.25 s (hiadaptive) or 0.5 s (adaptive)
//! from 800 to 3200 MHz, and 16.25 s or 2.75 s back: quick up, slow down, since load comes in bursts.
//!
//! FreeBSD sets one speed for the machine. So does this: the first domain's levels guide it,
//! and any other domain takes its own slowest level that is at least as fast.
//!
//! Left out: the modes `minimum` and `maximum` (`powersave` and `performance` are the same), limits given on
//! the command line, and the event by which a change of the power source ends a wait early.

use super::poll::{Fold, LOAD, cost, percent, poll};
use super::{Cadence, Speed, SpeedPolicy, poll as shared};
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, PowerSource, Settings};
use alloc::{boxed::Box, vec::Vec};

/// Load in percent above which the load does not tell how much more is wanted: jump.
const SATURATED: u64 = 95;
/// Polls without a change after which the real speed is read again: something else may have set it.
const REREAD: u32 = 32;
/// Polls without a change from which adaptive waits 2 and 4 periods (30 s and 90 s of calm at 250 ms).
const CALM: [(u32, u64); 2] = [(360, 4), (120, 2)];

/// What tells the two modes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PowerdShape {
    /// Divides both marks and multiplies the cap.
    split: u64,
    /// The wish shrinks to (this - 1) / this at a time.
    shrink: u64,
    /// Whether calm stretches the polls.
    backs_off: bool,
}

/// Battery: load up to the full mark, an eighth down at a time.
const ADAPTIVE: PowerdShape = PowerdShape { split: 1, shrink: 8, backs_off: true };
/// Mains: half the marks, a thirty-second down at a time.
const HIADAPTIVE: PowerdShape = PowerdShape { split: 2, shrink: 32, backs_off: false };

/// Which shape is in force.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// By the power source.
    Auto,
    /// Always this one.
    Always(PowerdShape),
}

impl Mode {
    fn shape(self, source: PowerSource) -> PowerdShape {
        match self {
            Mode::Always(shape) => shape,
            Mode::Auto if shared::on_battery(source) => ADAPTIVE,
            Mode::Auto => HIADAPTIVE,
        }
    }
}

/// Load marks in percent.
#[derive(Clone, Copy, Debug)]
struct Marks {
    running: u64,
    idle: u64,
}

/// Index of the slowest level that is at least `mhz`; levels are highest first, so 0 when none is.
fn level_at(levels: &[u64], mhz: u64) -> usize {
    levels.iter().rposition(|&l| l >= mhz).unwrap_or(0)
}

/// Steps 2 and 3: the next wish in MHz.
fn next_mhz(shape: PowerdShape, marks: Marks, levels: &[u64], wish: u64, current: u64, load: u64) -> u64 {
    let split = shape.split;
    if load > marks.running / split {
        let raised = if load > SATURATED || load > marks.running * 2 / split {
            wish * 2 * split
        } else {
            wish * load * split / marks.running
        };
        return raised.min(levels[0] * split);
    }
    // The real speed times the load is the work; it must fit the level below with the mark to spare.
    let lower = wish * (shape.shrink - 1) / shape.shrink;
    let fits = current * load < levels[level_at(levels, lower)] * marks.running / split;
    if load < marks.idle / split && fits { lower.max(levels[levels.len() - 1]) } else { wish }
}

/// Step 5: how many periods to the next poll.
fn periods(shape: PowerdShape, unchanged: u32) -> u64 {
    if !shape.backs_off {
        return 1;
    }
    CALM.iter().find(|(polls, _)| unchanged >= *polls).map_or(1, |&(_, periods)| periods)
}

/// The daemon.
struct Powerd {
    mode: Mode,
    fold: Fold,
    marks: Marks,
    poll_ns: u64,
    cost_ns: u64,
    domains: Vec<DomainInfo>,
    /// The first domain's levels in MHz, highest first.
    mhz: Vec<u64>,
    /// The speed wanted, in MHz: finer than the levels, and above them while hiadaptive holds.
    wish: u64,
    /// The speed last read, in MHz.
    current: u64,
    /// Polls since the last change.
    unchanged: u32,
}

/// A speed in whole MHz, never 0: a wish of 0 could not grow again.
fn to_mhz(khz: Khz) -> u64 {
    u64::from(khz.0 / 1000).max(1)
}

impl Powerd {
    fn write(&self, level: usize, out: &mut Intent) {
        let khz = self.domains[0].levels[level].khz;
        for (d, domain) in self.domains.iter().enumerate() {
            out.set_speed(d, domain.at_least(khz));
        }
    }
}

impl SpeedPolicy for Powerd {
    fn cadence(&self) -> Cadence {
        Cadence::Daemon { first_ns: self.poll_ns, period_ns: self.poll_ns }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// It starts from the speed that it finds.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let found = obs.domains.first().map_or(Khz(0), |d| d.khz);
        self.wish = if found.0 == 0 { self.mhz[0] } else { to_mhz(found) };
        self.current = self.wish;
        self.unchanged = 0;
        self.write(level_at(&self.mhz, self.wish), out);
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let shape = self.mode.shape(obs.source);
        if self.unchanged.is_multiple_of(REREAD) {
            match obs.domains.first() {
                Some(d) if d.khz.0 > 0 => self.current = to_mhz(d.khz),
                // FreeBSD, too, lets a poll pass when the speed cannot be read.
                _ => return,
            }
        }
        self.unchanged = self.unchanged.saturating_add(1);

        let load = self.fold.load(obs.cpus);
        self.wish = next_mhz(shape, self.marks, &self.mhz, self.wish, self.current, load);
        let level = level_at(&self.mhz, self.wish);
        if level != level_at(&self.mhz, self.current) {
            self.write(level, out);
            // Zero makes the next poll read what became of it.
            self.unchanged = 0;
        }
        let periods = periods(shape, self.unchanged);
        if periods > 1 {
            out.next_ns = Some(self.poll_ns * periods);
        }
    }
}

/// FreeBSD's powerd.
pub(super) static POWERD: Speed = Speed {
    name: "powerd",
    summary: "FreeBSD's daemon: polls the load, quick up and slow down",
    follows: "FreeBSD 14, usr.sbin/powerd/powerd.c",
    source: include_str!("powerd.rs"),
    params: &[
        Param {
            name: "mode",
            help: "auto: hiadaptive on mains or unknown, adaptive on battery",
            kind: ParamKind::Choice(&["auto", "hiadaptive", "adaptive"]),
        },
        LOAD,
        poll(250.0),
        Param {
            name: "running",
            help: "load above which the speed rises",
            kind: ParamKind::Number { unit: "%", min: 1.0, max: 100.0, default: 75.0 },
        },
        percent("idle", "load below which the speed falls", 50.0),
        cost(shared::DAEMON_POLL_COST_US),
    ],
    build: |p, s: &Settings| {
        Box::new(Powerd {
            mode: match s.count("mode") {
                0 => Mode::Auto,
                1 => Mode::Always(HIADAPTIVE),
                _ => Mode::Always(ADAPTIVE),
            },
            fold: Fold::from_choice(s.count("load")),
            marks: Marks { running: s.count("running"), idle: s.count("idle") },
            poll_ns: s.ms("poll"),
            cost_ns: s.us("cost"),
            mhz: p.domains[0].levels.iter().map(|l| to_mhz(l.khz)).collect(),
            domains: p.domains.clone(),
            wish: 1,
            current: 1,
            unchanged: 0,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{MS, SpecError};

    const POLL: u64 = 250 * MS;
    const LEVELS: &[u32] = &[3200, 2800, 2400, 2000, 1600, 1200, 800];

    fn rig(cpus: u16, spec: &str, at_slowest: bool) -> Rig {
        Rig::new(platform(cpus, LEVELS), &POWERD, spec, at_slowest)
    }

    #[test]
    fn one_busy_core_takes_the_known_times() {
        for (mode, up, down) in [("mode=adaptive", 2, 11), ("mode=hiadaptive", 1, 65)] {
            let mut r = rig(1, mode, true);
            assert_eq!(r.polls_until(3200, POLL, &[1000]), up, "{mode} up");
            // Long enough for hiadaptive to gather its head-room.
            for _ in 0..4 {
                r.poll(POLL, &[1000]);
            }
            assert_eq!(r.polls_until(800, POLL, &[0]), down, "{mode} down");
        }
    }

    #[test]
    fn the_power_source_chooses_the_shape() {
        for (source, polls) in [(PowerSource::Battery, 2), (PowerSource::Mains, 1), (PowerSource::Unknown, 1)]
        {
            let mut r = rig(1, "", true);
            r.source = source;
            assert_eq!(r.polls_until(3200, POLL, &[1000]), polls, "{source:?}");
        }
    }

    /// 5 % everywhere: hiadaptive's mark is 37, adaptive's 75, and the sum passes them at 8 and 16 CPUs.
    #[test]
    fn a_uniform_background_pins_large_machines() {
        let settles = |cpus, spec| {
            let mut r = rig(cpus, spec, false);
            (0..400).map(|_| r.poll(POLL, &[50])).last()
        };
        assert_eq!(settles(4, "mode=hiadaptive"), Some(800));
        assert_eq!(settles(8, "mode=hiadaptive"), Some(3200));
        assert_eq!(settles(8, "mode=adaptive"), Some(800));
        assert_eq!(settles(16, "mode=adaptive"), Some(3200));
        assert_eq!(settles(16, "mode=hiadaptive,load=max"), Some(800));
        assert_eq!(settles(16, "mode=hiadaptive,load=mean"), Some(800));
    }

    /// 000, figure 4: a Pentium M that has been busy and is idle from now on.
    #[test]
    fn figure_4_takes_over_20_seconds() {
        let levels =
            [1700, 1487, 1400, 1225, 1200, 1050, 1000, 875, 800, 700, 600, 525, 450, 375, 300, 225, 150, 75];
        let mut r = Rig::new(platform(1, &levels), &POWERD, "mode=hiadaptive", false);
        let polls = r.polls_until(75, POLL, &[0]);
        let seconds = f64::from(polls) * 0.25;
        assert!((20.0..26.0).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn only_adaptive_backs_off() {
        let mut r = rig(1, "mode=adaptive", true);
        let waits: Vec<_> = (0..400)
            .map(|_| {
                r.poll(POLL, &[0]);
                r.intent.next_ns
            })
            .collect();
        assert_eq!(waits[118], None);
        assert_eq!(waits[119], Some(2 * POLL));
        assert_eq!(waits[358], Some(2 * POLL));
        assert_eq!(waits[359], Some(4 * POLL));
        r.poll(POLL, &[1000]);
        assert_eq!(r.intent.next_ns, None, "a change ends the calm");

        let mut r = rig(1, "mode=hiadaptive", true);
        assert!((0..400).all(|_| {
            r.poll(POLL, &[0]);
            r.intent.next_ns.is_none()
        }));
    }

    #[test]
    fn proportional_between_the_marks() {
        let marks = Marks { running: 75, idle: 50 };
        let next = |shape, load| next_mhz(shape, marks, &[3200, 800], 1000, 1000, load);
        assert_eq!(next(ADAPTIVE, 75), 1000, "at the mark nothing happens");
        assert_eq!(next(ADAPTIVE, 90), 1200);
        assert_eq!(next(ADAPTIVE, 96), 2000);
        assert_eq!(next(HIADAPTIVE, 37), 1000);
        assert_eq!(next(HIADAPTIVE, 60), 1600);
        assert_eq!(next(HIADAPTIVE, 76), 4000);
        // Low load, but too much for the slower level: 1600 MHz x 45 % would be 90 % of 800 MHz.
        assert_eq!(next_mhz(ADAPTIVE, marks, &[1600, 800], 900, 1600, 45), 900);
        assert_eq!(next_mhz(ADAPTIVE, marks, &[1600, 800], 900, 1600, 30), 800);
    }

    #[test]
    fn rereads_the_speed_that_something_else_set() {
        let mut r = rig(1, "mode=hiadaptive", true);
        r.poll(POLL, &[0]);
        // Firmware takes over, and the wish stays where it is: nothing is written until it is noticed.
        let polls = (1..100).find(|_| {
            r.domains[0].khz = Khz(3_200_000);
            r.intent.domains[0].desired = Khz(0);
            r.poll(POLL, &[0]);
            r.intent.domains[0].desired == Khz(800_000)
        });
        assert_eq!(polls, Some(32));
    }

    #[test]
    fn parameters_are_checked() {
        let parse = |spec| Settings::parse(POWERD.params, spec);
        assert_eq!(parse("poll=500ms").map(|s| s.ms("poll")), Ok(500 * MS));
        assert_eq!(parse("mode=adaptive,running=60 %").map(|s| s.count("running")), Ok(60));
        assert!(matches!(parse("running=0"), Err(SpecError::BadValue { param: "running", .. })));
        assert!(matches!(parse("mode=turbo"), Err(SpecError::BadValue { param: "mode", .. })));
        assert!(matches!(parse("marks=1"), Err(SpecError::UnknownParam { .. })));
        assert!(matches!(parse("adaptive"), Err(SpecError::NotAPair(_))));
        assert!(matches!(parse("poll=nan"), Err(SpecError::BadValue { .. })));
    }
}
