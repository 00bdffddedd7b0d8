//! How rough the model is beside what it draws: how far measured ratios lie from predicted ones on real machines.
//!
//! Replicas draw what is uncertain of machine and work. What the model leaves out (a daemon that wakes, a firmware's rule, a
//! program's phases) is in no draw, so that their intervals alone are too narrow. A [`Roughness`] widens them: by a share of any
//! ratio, and by a share of the effect. Where the setting does nothing in any draw (a cap that does not bind, an idle governor
//! that chooses the same states), both runs are the same one, and what the model leaves out is left out of both: there the ratio
//! has a share of its own. All three are fitted to the published tables by [`fit`](super::fit::fit), kind by kind: of those with
//! which the 90 % intervals hold nine of ten, the ones whose intervals score best, each table counting once. `cargo run --release
//! -p wattwise-study --example roughness` fits them again, also without each machine in turn, and docs/notes/hardware-intervals.md has what came of it.

use super::table::{Quantity, Scope, Unit};

/// Standard deviations of a normal variable that hold nine of ten.
const NINE_OF_TEN: f64 = 1.645;
/// Runs whose ratio is nearer to 1 than this, as a logarithm and in nine of ten draws, are the same.
const SAME: f64 = 1e-3;

/// What is published of a kind is rough in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Seconds, or work a second.
    Time,
    /// Joules and watts of cores, packages, boards.
    Energy,
    /// Joules and watts of the memory, which go with what is read and written, and here with the time of busy cores.
    Memory,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Time, Kind::Energy, Kind::Memory];

    /// A quantity's.
    pub fn of(quantity: &Quantity) -> Kind {
        match (quantity.unit, quantity.of) {
            (Unit::S | Unit::Rate, _) => Kind::Time,
            (Unit::J | Unit::W, Scope::Dram) => Kind::Memory,
            (Unit::J | Unit::W, _) => Kind::Energy,
        }
    }

    /// As fitted to all bundled tables.
    pub fn roughness(self) -> Roughness {
        match self {
            Kind::Time => Roughness { same: 0.0, floor: 0.03, effect: 0.4 },
            Kind::Energy => Roughness { same: 0.0, floor: 0.08, effect: 0.2 },
            Kind::Memory => Roughness { same: 0.01, floor: 0.05, effect: 0.15 },
        }
    }
}

/// Standard deviation of what the model leaves out of a ratio's logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roughness {
    /// Of a ratio of runs that are the same.
    pub same: f64,
    /// Of any other.
    pub floor: f64,
    /// More by this share of the logarithm itself: how well the size of an effect is known.
    pub effect: f64,
}

/// Whether a ratio, with its 5th and 95th percentile over the replicas, is of runs that are the same.
pub fn is_same(middle: f64, (low, high): (f64, f64)) -> bool {
    [low, middle, high].iter().all(|ratio| ratio.ln().abs() < SAME)
}

impl Roughness {
    /// The 90 % interval of a ratio: its middle, 5th and 95th percentile over the replicas, and the measurement's own spread.
    pub fn interval(self, middle: f64, (low, high): (f64, f64), spread: f64) -> (f64, f64) {
        let left_out = if is_same(middle, (low, high)) {
            self.same
        } else {
            self.floor.hypot(self.effect * middle.ln())
        };
        let own = NINE_OF_TEN * spread.hypot(left_out);
        let wide = |end: f64| (end / middle).ln().hypot(own);
        (middle * (-wide(low)).exp(), middle * wide(high).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_the_replicas_the_spread_and_the_roughness() {
        let close = |(low, high): (f64, f64), l: f64, h: f64| {
            assert!((low - l).abs() < 1e-3 && (high - h).abs() < 1e-3, "{low} {high}");
        };
        let none = Roughness { same: 0.0, floor: 0.0, effect: 0.0 };
        close(none.interval(1.0, (0.9, 1.2), 0.0), 0.9, 1.2);
        close(none.interval(1.0, (1.0, 1.0), 0.02), 0.9676, 1.0335);
        // The draws reach 0.2 % on either side: they add next to nothing.
        close(
            Roughness { floor: 0.02, effect: 9.0, ..none }.interval(1.0, (0.998, 1.002), 0.02),
            0.9544,
            1.0477,
        );
        close(Roughness { effect: 0.1, ..none }.interval(2.0, (2.0, 2.0), 0.0), 1.7845, 2.2415);
    }

    #[test]
    fn runs_that_are_the_same_have_a_roughness_of_their_own() {
        let r = Roughness { same: 0.02, floor: 0.1, effect: 0.2 };
        let width = |middle: f64, drawn| {
            let (low, high) = r.interval(middle, drawn, 0.0);
            (high / low).ln()
        };
        assert!((width(1.0, (1.0, 1.0)) - 2.0 * NINE_OF_TEN * 0.02).abs() < 1e-9);
        assert!((width(1.0, (1.0, 1.002)) - 2.0 * NINE_OF_TEN * 0.1).abs() < 1e-3, "one draw in ten differs");
        assert!(is_same(1.0004, (0.9995, 1.0009)) && !is_same(0.998, (0.998, 0.998)));
    }
}
