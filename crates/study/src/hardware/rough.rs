//! How rough the model is beside what it draws: how far measured ratios lie from predicted ones on real machines.
//!
//! Replicas draw what is uncertain of machine and work. What the model leaves out (a daemon that wakes, a firmware's rule, a
//! program's phases) is in no draw, so that their intervals alone are too narrow. A [`Roughness`] widens them: by a share of any
//! ratio, and by a share of the effect. Both are fitted to the published tables by [`fit`], kind by kind, as the narrowest pair
//! with which the 90 % intervals hold nine of ten, each table counting once. `cargo run --release -p wattwise-study --example
//! roughness` fits them again, also without each machine in turn, and docs/notes/hardware-intervals.md has what came of it.

use super::compare::Comparison;
use super::table::{Quantity, Scope, Unit};

/// Standard deviations of a normal variable that hold nine of ten.
const NINE_OF_TEN: f64 = 1.645;
/// The share of ratios that intervals are to hold.
const HELD: f64 = 0.9;

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
            Kind::Time => Roughness { floor: 0.08, effect: 0.4 },
            Kind::Energy => Roughness { floor: 0.13, effect: 0.2 },
            Kind::Memory => Roughness { floor: 0.1, effect: 0.2 },
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

    fn interval_of(self, c: &Comparison) -> (f64, f64) {
        self.interval(c.predicted, c.drawn, c.spread)
    }

    /// The share of some comparisons that the intervals hold.
    pub fn held(self, all: &[&Comparison]) -> f64 {
        let holds = |c: &&&Comparison| {
            let (low, high) = self.interval_of(c);
            (low..=high).contains(&c.measured)
        };
        all.iter().filter(holds).count() as f64 / all.len().max(1) as f64
    }

    /// The mean width of the intervals' logarithm.
    fn width(self, all: &[&Comparison]) -> f64 {
        let width = |c: &&Comparison| {
            let (low, high) = self.interval_of(c);
            (high / low).ln()
        };
        all.iter().map(width).sum::<f64>() / all.len().max(1) as f64
    }
}

/// Steps of the floor, and of the share of the effect.
const FLOORS: [f64; 14] =
    [0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22];
const EFFECTS: [f64; 13] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0];

/// The roughness that is fitted to comparisons, table by table: of those whose intervals hold nine of ten in the mean of the
/// tables, the one with the narrowest. Where none does, the roughest.
pub fn fit(tables: &[Vec<&Comparison>]) -> Roughness {
    let mean = |of: &dyn Fn(&[&Comparison]) -> f64| {
        tables.iter().map(|t| of(t)).sum::<f64>() / tables.len().max(1) as f64
    };
    let pairs = FLOORS.into_iter().flat_map(|floor| EFFECTS.map(|effect| Roughness { floor, effect }));
    let enough = pairs.filter(|r| mean(&|t| r.held(t)) >= HELD);
    let widths = enough.map(|r| (mean(&|t| r.width(t)), r));
    let narrowest = widths.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, r)| r);
    let roughest = Roughness { floor: FLOORS[FLOORS.len() - 1], effect: EFFECTS[EFFECTS.len() - 1] };
    narrowest.unwrap_or(roughest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(predicted: f64, measured: f64) -> Comparison {
        let drawn = (predicted, predicted);
        let (low, high, cube) = (predicted, predicted, 1.0);
        Comparison { row: 0, quantity: 0, measured, spread: 0.0, predicted, drawn, low, high, cube }
    }

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

    #[test]
    fn what_scatters_in_proportion_to_the_effect_is_fitted_as_that() {
        // Off by an eighth of the effect's logarithm, up and down: 1.645 x 0.08 would hold them, 0.1 is the next step.
        let of = |predicted: f64| {
            [0.875, 1.125].map(|share| comparison(predicted, (predicted.ln() * share).exp())).to_vec()
        };
        let all: Vec<Vec<Comparison>> = [0.5, 2.0, 4.0].map(of).to_vec();
        let tables: Vec<Vec<&Comparison>> = all.iter().map(|t| t.iter().collect()).collect();
        assert_eq!(fit(&tables), Roughness { floor: 0.0, effect: 0.1 });
    }

    #[test]
    fn what_scatters_where_nothing_is_predicted_is_the_floor() {
        let all: Vec<Comparison> = [0.96, 1.0, 1.04].map(|measured| comparison(1.0, measured)).to_vec();
        let fitted = fit(&[all.iter().collect()]);
        assert_eq!(fitted.floor, 0.03);
    }
}
