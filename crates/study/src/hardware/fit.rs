//! Fits how rough the model is ([`Roughness`]) to comparisons with published tables.

use super::compare::Comparison;
use super::rough::{Roughness, is_same};

/// The share of ratios that intervals are to hold.
const HELD: f64 = 0.9;
/// Steps of the floors, and of the share of the effect.
const FLOORS: [f64; 14] =
    [0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22];
const EFFECTS: [f64; 13] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0];
/// The last of the steps.
const ROUGHEST: Roughness = Roughness { same: 0.22, floor: 0.22, effect: 1.0 };
/// What it costs an interval of nine in ten that it misses by as much as it would be wider by 1: 2 over the share outside. With
/// this score the true interval is the cheapest, whatever is predicted; the narrowest that hold nine of ten of all are too wide
/// where little is predicted to happen and too narrow where much is (Gneiting and Raftery, "Strictly Proper Scoring Rules,
/// Prediction, and Estimation", 2007, section 6.2).
const OUTSIDE: f64 = 2.0 / (1.0 - HELD);

/// The roughness that is fitted to comparisons, table by table: of runs that are the same and of the others each for itself.
pub fn fit(tables: &[Vec<&Comparison>]) -> Roughness {
    let part = |same: bool| {
        let of = |t: &Vec<_>| -> Vec<&Comparison> {
            let some = t.iter().filter(|c: &&&Comparison| is_same(c.predicted, c.drawn) == same);
            some.copied().collect()
        };
        let all: Vec<Vec<&Comparison>> = tables.iter().map(of).filter(|t| !t.is_empty()).collect();
        all
    };
    let same = best(&part(true), FLOORS.map(|same| Roughness { same, ..ROUGHEST }));
    let pairs = FLOORS.into_iter().flat_map(|floor| EFFECTS.map(|effect| (floor, effect)));
    let others = best(&part(false), pairs.map(|(floor, effect)| Roughness { floor, effect, ..ROUGHEST }));
    Roughness { same: same.same, ..others }
}

/// Of those whose intervals hold nine of ten in the mean of the tables, the one of the lowest score. Where none does, the roughest.
fn best(tables: &[Vec<&Comparison>], all: impl IntoIterator<Item = Roughness>) -> Roughness {
    let mean = |of: &dyn Fn(&[&Comparison]) -> f64| {
        tables.iter().map(|t| of(t)).sum::<f64>() / tables.len().max(1) as f64
    };
    let enough = all.into_iter().filter(|&r| mean(&|t| held(r, t)) >= HELD);
    let scored = enough.map(|r| (mean(&|t| score(r, t)), r));
    scored.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(ROUGHEST, |(_, r)| r)
}

/// A comparison's interval with that roughness.
fn interval(r: Roughness, c: &Comparison) -> (f64, f64) {
    r.interval(c.predicted, c.drawn, c.spread)
}

/// The share of some comparisons that the intervals hold.
pub fn held(r: Roughness, all: &[&Comparison]) -> f64 {
    let holds = |c: &&&Comparison| {
        let (low, high) = interval(r, c);
        (low..=high).contains(&c.measured)
    };
    all.iter().filter(holds).count() as f64 / all.len().max(1) as f64
}

/// The mean score of the intervals' logarithm: how wide each is, and by how far what was measured is outside.
fn score(r: Roughness, all: &[&Comparison]) -> f64 {
    let one = |c: &&Comparison| {
        let (low, high) = interval(r, c);
        let outside = (low / c.measured).max(c.measured / high).max(1.0);
        (high / low).ln() + OUTSIDE * outside.ln()
    };
    all.iter().map(one).sum::<f64>() / all.len().max(1) as f64
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
    fn what_scatters_in_proportion_to_the_effect_is_fitted_as_that() {
        // Off by an eighth of the effect's logarithm, up and down: 1.645 x 0.08 would hold them, 0.1 is the next step.
        let of = |predicted: f64| {
            [0.875, 1.125].map(|share| comparison(predicted, (predicted.ln() * share).exp())).to_vec()
        };
        let all: Vec<Vec<Comparison>> = [0.5, 2.0, 4.0].map(of).to_vec();
        let tables: Vec<Vec<&Comparison>> = all.iter().map(|t| t.iter().collect()).collect();
        // No run is the same: nothing tells how rough that is.
        assert_eq!(fit(&tables), Roughness { floor: 0.0, effect: 0.1, ..ROUGHEST });
    }

    /// By hand: 0.9 to 1.1 is 0.2007 wide; 1.21 is above by the logarithm of 1.1.
    #[test]
    fn a_miss_costs_twenty_times_its_size() {
        let r = Roughness { same: 0.0, floor: 0.0, effect: 0.0 };
        let with = |measured| Comparison { drawn: (0.9, 1.1), ..comparison(1.0, measured) };
        assert!((score(r, &[&with(1.05)]) - 0.2007).abs() < 1e-4);
        assert!((score(r, &[&with(1.21)]) - 0.2007 - 20.0 * 1.1_f64.ln()).abs() < 1e-4);
        assert!((score(r, &[&with(0.81)]) - 0.2007 + 20.0 * 0.9_f64.ln()).abs() < 1e-4);
    }

    /// Four in a hundred up and down where nothing is predicted: 1.645 x 0.03 holds them, whatever scatters elsewhere.
    #[test]
    fn what_scatters_where_nothing_is_predicted_is_fitted_apart() {
        let mut all: Vec<Comparison> = [0.96, 1.0, 1.04].map(|measured| comparison(1.0, measured)).to_vec();
        all.extend([0.45, 0.5, 0.55].map(|measured| comparison(0.5, measured)));
        let fitted = fit(&[all.iter().collect()]);
        assert_eq!(fitted.same, 0.03);
        assert!(fitted.floor.hypot(fitted.effect * 2_f64.ln()) > 0.06, "{fitted:?}");
    }
}
