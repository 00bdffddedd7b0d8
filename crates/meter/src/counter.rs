//! From what a counter shows to joules.
//!
//! Energy counters wrap (RAPL's 32 bits in 44 minutes at 100 W, in 11 at a finer unit), start anywhere,
//! go back to nothing in a suspend and vanish with their device. Every published figure of −250,769 J or
//! 64,826 W comes from subtracting two readings without asking which of these lay between. Here a step
//! between readings is a [`CounterStep`], and an interval in which the counter may have wrapped twice, or was
//! not there, is a *gap*: its seconds are counted, its energy is nobody's guess.

use serde::Serialize;
use wattwise_hw::clock::Moment;

/// What lies between two readings of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterStep {
    /// The first reading: nothing lies before it.
    First,
    /// The counter moved on by this much.
    Difference(u64),
    /// It passed its end once; this much in all.
    Wrapped(u64),
    /// More may lie between than the counter can show.
    Lost(Gap),
}

/// Why a stretch of time has no energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The interval was long enough for the counter to wrap more than once.
    TooLong,
    /// The machine was suspended: counters may have been reset.
    Suspend,
    /// The counter could not be read.
    Unreadable,
    /// The counter went back without a wrap to explain it (its device was reset).
    Reset,
}

/// Where a counter starts at 0 again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterEnd {
    /// After this value.
    After(u64),
    /// Nowhere: the kernel follows the hardware's wraps itself, or the counter is wide enough.
    Never,
    /// It does, and where is not told: a step back is a gap.
    Unknown,
}

/// A counter's shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterShape {
    /// Joules a unit.
    pub joules_per_unit: f64,
    /// Where it wraps.
    pub end: CounterEnd,
    /// The most power that can flow, W: bounds how often it may have wrapped.
    pub most_w: f64,
}

impl CounterShape {
    /// The longest interval within which it cannot wrap twice, s. Reading a little more often than this is
    /// all that wraps demand.
    pub fn longest_s(&self) -> f64 {
        /// The smallest range of RAPL counters: 32 bits of 2^-16 J.
        const LEAST_J: f64 = 65_536.0;
        match self.end {
            CounterEnd::Never => f64::INFINITY,
            CounterEnd::After(last) => (last as f64 + 1.0) * self.joules_per_unit / self.most_w,
            CounterEnd::Unknown => LEAST_J / self.most_w,
        }
    }
}

/// Follows one counter and adds up.
#[derive(Debug, Clone)]
pub struct Follower {
    shape: CounterShape,
    last: Option<(Moment, u64)>,
    /// The counter was there before and cannot be read since this moment.
    blind_since: Option<Moment>,
    total: Total,
}

/// What was seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Total {
    /// Energy, J, over `covered_s`.
    pub joules: f64,
    /// Time for which the energy is known, s.
    pub covered_s: f64,
    /// Time for which it is not, s.
    pub missing_s: f64,
    /// How often the counter wrapped.
    pub wraps: u32,
    /// Readings that moved the total.
    pub updates: u64,
}

impl Follower {
    /// A follower of a counter of that shape that has seen nothing.
    pub fn new(shape: CounterShape) -> Follower {
        Follower { shape, last: None, blind_since: None, total: Total::default() }
    }

    /// Takes a reading and says what lay between it and the last one.
    pub fn reading(&mut self, at: Moment, value: u64) -> CounterStep {
        let Some((then, before)) = self.last.replace((at, value)) else {
            if let Some(since) = self.blind_since.take() {
                self.total.missing_s += at.boot_s - since.boot_s;
                return CounterStep::Lost(Gap::Unreadable);
            }
            return CounterStep::First;
        };
        let awake_s = at.monotonic_s - then.monotonic_s;
        let asleep_s = (at.boot_s - then.boot_s) - awake_s;
        let step = self.step(before, value, awake_s, asleep_s);
        match step {
            CounterStep::Difference(units) | CounterStep::Wrapped(units) => {
                self.total.joules += units as f64 * self.shape.joules_per_unit;
                self.total.covered_s += awake_s;
                self.total.updates += u64::from(units > 0);
                self.total.wraps += u32::from(matches!(step, CounterStep::Wrapped(_)));
            }
            CounterStep::Lost(_) => self.total.missing_s += at.boot_s - then.boot_s,
            CounterStep::First => {}
        }
        step
    }

    fn step(&self, before: u64, value: u64, awake_s: f64, asleep_s: f64) -> CounterStep {
        // The two clocks are read one after the other: a few ms between them are no suspend.
        const NO_SUSPEND_S: f64 = 0.1;
        if asleep_s > NO_SUSPEND_S {
            return CounterStep::Lost(Gap::Suspend);
        }
        // At the most power, it must have moved by less than once around.
        if awake_s >= self.shape.longest_s() {
            return CounterStep::Lost(Gap::TooLong);
        }
        // Counters move in jumps (RAPL every ms or so): a short interval may hold a whole jump.
        const JUMP_S: f64 = 0.05;
        let allowed = (awake_s + JUMP_S) * self.shape.most_w / self.shape.joules_per_unit + 1.0;
        if value >= before {
            let units = value - before;
            return if units as f64 <= allowed {
                CounterStep::Difference(units)
            } else {
                CounterStep::Lost(Gap::Reset)
            };
        }
        let CounterEnd::After(last) = self.shape.end else { return CounterStep::Lost(Gap::Reset) };
        if before > last {
            return CounterStep::Lost(Gap::Reset);
        }
        let units = last - before + 1 + value;
        if units as f64 <= allowed { CounterStep::Wrapped(units) } else { CounterStep::Lost(Gap::Reset) }
    }

    /// The counter could not be read: what follows is a gap until it can.
    pub fn unreadable(&mut self, at: Moment) {
        if let Some((then, _)) = self.last.take() {
            self.blind_since = Some(then);
        }
        if let Some(since) = self.blind_since {
            // Kept up to date, so that a counter that never returns is still a gap to the end.
            self.total.missing_s += at.boot_s - since.boot_s;
            self.blind_since = Some(at);
        }
    }

    /// What was seen so far.
    pub fn total(&self) -> Total {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: CounterShape = CounterShape {
        joules_per_unit: 1.0 / 16384.0,
        end: CounterEnd::After(u32::MAX as u64),
        most_w: 400.0,
    };

    fn at(s: f64) -> Moment {
        Moment { monotonic_s: s, boot_s: s }
    }

    #[test]
    fn each_kind_of_step() {
        let mut f = Follower::new(SHAPE);
        assert_eq!(f.reading(at(0.0), 4_294_967_000), CounterStep::First);
        assert_eq!(f.reading(at(1.0), 4_294_967_200), CounterStep::Difference(200));
        assert_eq!(f.reading(at(2.0), 104), CounterStep::Wrapped(200));
        assert_eq!(f.reading(Moment { monotonic_s: 3.0, boot_s: 603.0 }, 5), CounterStep::Lost(Gap::Suspend));
        assert_eq!(
            f.reading(Moment { monotonic_s: 1003.0, boot_s: 1603.0 }, 9),
            CounterStep::Lost(Gap::TooLong)
        );
        // More than 400 W could have moved it: no wrap, whatever it is.
        assert_eq!(
            f.reading(Moment { monotonic_s: 1004.0, boot_s: 1604.0 }, 4),
            CounterStep::Lost(Gap::Reset)
        );
        let total = f.total();
        assert_eq!((total.wraps, total.updates, total.covered_s, total.missing_s), (1, 2, 2.0, 1602.0));
        assert!((total.joules - 400.0 / 16384.0).abs() < 1e-12);
    }

    #[test]
    fn how_often_wraps_demand_a_reading() {
        assert!((SHAPE.longest_s() - 655.36).abs() < 0.01);
        assert_eq!(CounterShape { end: CounterEnd::Never, ..SHAPE }.longest_s(), f64::INFINITY);
    }

    /// codecarbon 1309: no max_energy_range_uj. Forwards it counts; a step back may be a wrap at any value, and an interval
    /// in which the smallest known range fits may hold one that is not seen.
    #[test]
    fn a_counter_of_unknown_range_is_not_counted_over_its_wrap() {
        let mut f = Follower::new(CounterShape { end: CounterEnd::Unknown, ..SHAPE });
        assert_eq!(f.reading(at(0.0), 4_294_967_000), CounterStep::First);
        assert_eq!(f.reading(at(1.0), 4_294_967_200), CounterStep::Difference(200));
        assert_eq!(f.reading(at(2.0), 104), CounterStep::Lost(Gap::Reset));
        assert_eq!(f.reading(at(3.0), 204), CounterStep::Difference(100));
        assert_eq!(f.reading(at(3.0 + 65_536.0 / 400.0), 304), CounterStep::Lost(Gap::TooLong));
        assert_eq!((f.total().wraps, f.total().covered_s), (0, 2.0));
    }

    /// A counter driven by a known power through every misfortune, a million times over.
    #[test]
    fn joules_are_right_wherever_they_are_claimed() {
        // SplitMix64: enough for choosing misfortunes.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (z ^ (z >> 27)) >> 16
        };
        let (mut claimed, mut truth, mut wraps, mut gaps) = (0.0, 0.0, 0, 0);
        for _ in 0..1_000_000 {
            let last_value = (1_u64 << (20 + next() % 13)) - 1;
            let shape = CounterShape { end: CounterEnd::After(last_value), ..SHAPE };
            let mut f = Follower::new(shape);
            let mut units = (next() % (last_value + 1)) as f64;
            let (mut now, mut known) = (Moment::default(), 0.0);
            f.reading(now, units as u64);
            for _ in 0..8 {
                let awake_s = (next() % 1000) as f64 / 1000.0 * shape.longest_s() * 1.2;
                let watts = (next() % 380) as f64 + 1.0;
                now.monotonic_s += awake_s;
                now.boot_s += awake_s;
                units += watts * awake_s / shape.joules_per_unit;
                let mut clean = awake_s < shape.longest_s();
                match next() % 12 {
                    0 => {
                        // A suspend that resets the counter.
                        now.boot_s += 30.0;
                        units = 0.0;
                        clean = false;
                    }
                    1 => {
                        f.unreadable(now);
                        continue;
                    }
                    _ => {}
                }
                let shown = (units as u64) & last_value;
                match f.reading(now, shown) {
                    CounterStep::Difference(_) | CounterStep::Wrapped(_) => {
                        assert!(clean, "energy claimed over an interval that cannot be known");
                        known += watts * awake_s;
                    }
                    CounterStep::Lost(_) => gaps += 1,
                    CounterStep::First => {}
                }
            }
            let total = f.total();
            // A unit a reading is lost to rounding.
            assert!(
                (total.joules - known).abs() <= known * 1e-3 + 8.0 * shape.joules_per_unit,
                "{total:?} {known}"
            );
            assert!(total.joules >= 0.0);
            claimed += total.joules;
            truth += known;
            wraps += total.wraps;
        }
        assert!((claimed / truth - 1.0).abs() < 1e-5, "{claimed} {truth}");
        assert!(
            wraps > 100_000 && gaps > 100_000,
            "the sequences must meet wraps ({wraps}) and gaps ({gaps})"
        );
    }
}
