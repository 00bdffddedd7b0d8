//! How rough the model is beside what it draws: how far measured ratios lie from predicted ones on real machines.
//!
//! Replicas draw what is uncertain of machine and work. What the model leaves out (a daemon that wakes, a firmware's rule, a
//! program's phases) is in no draw, so that their intervals alone are too narrow. A [`Roughness`] widens them: by a share of any
//! ratio, and by a share of the effect. Both are fitted to the published tables by [`fit`](super::fit::fit), kind by kind, as the narrowest pair
//! with which the 90 % intervals hold nine of ten, each table counting once. `cargo run --release -p wattwise-study --example
//! roughness` fits them again, also without each machine in turn, and docs/notes/hardware-intervals.md has what came of it.

use super::table::{Quantity, Scope, Unit};

/// Standard deviations of a normal variable that hold nine of ten.
const NINE_OF_TEN: f64 = 1.645;

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
            Kind::Time => Roughness { floor: 0.08, effect: 0.25 },
            Kind::Energy => Roughness { floor: 0.1, effect: 0.0 },
            Kind::Memory => Roughness { floor: 0.08, effect: 0.1 },
        }
    }
}

/// Standard deviation of what the model leaves out of a ratio's logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roughness {
    /// Of any ratio.
    pub floor: f64,
    /// More by this share of the logarithm itself: how well the size of an effect is known.
    pub effect: f64,
}

impl Roughness {
    /// The 90 % interval of a ratio: its middle, 5th and 95th percentile over the replicas, and the measurement's own spread.
    pub fn interval(self, middle: f64, (low, high): (f64, f64), spread: f64) -> (f64, f64) {
        let own = NINE_OF_TEN * spread.hypot(self.floor).hypot(self.effect * middle.ln());
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
        let none = Roughness { floor: 0.0, effect: 0.0 };
        close(none.interval(1.0, (0.9, 1.2), 0.0), 0.9, 1.2);
        close(none.interval(1.0, (1.0, 1.0), 0.02), 0.9676, 1.0335);
        close(Roughness { floor: 0.02, effect: 9.0 }.interval(1.0, (1.0, 1.0), 0.02), 0.9545, 1.0476);
        close(Roughness { floor: 0.0, effect: 0.1 }.interval(2.0, (2.0, 2.0), 0.0), 1.7845, 2.2415);
    }
}
