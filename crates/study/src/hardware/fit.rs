//! Fits how rough the model is ([`Roughness`]) to comparisons with published tables.

use super::compare::Comparison;
use super::rough::Roughness;

/// The share of ratios that intervals are to hold.
const HELD: f64 = 0.9;
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
    let enough = pairs.filter(|&r| mean(&|t| held(r, t)) >= HELD);
    let widths = enough.map(|r| (mean(&|t| width(r, t)), r));
    let narrowest = widths.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, r)| r);
    let roughest = Roughness { floor: FLOORS[FLOORS.len() - 1], effect: EFFECTS[EFFECTS.len() - 1] };
    narrowest.unwrap_or(roughest)
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

/// The mean width of the intervals' logarithm.
fn width(r: Roughness, all: &[&Comparison]) -> f64 {
    let width = |c: &&Comparison| {
        let (low, high) = interval(r, c);
        (high / low).ln()
    };
    all.iter().map(width).sum::<f64>() / all.len().max(1) as f64
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
        assert_eq!(fit(&tables), Roughness { floor: 0.0, effect: 0.1 });
    }

    #[test]
    fn what_scatters_where_nothing_is_predicted_is_the_floor() {
        let all: Vec<Comparison> = [0.96, 1.0, 1.04].map(|measured| comparison(1.0, measured)).to_vec();
        let fitted = fit(&[all.iter().collect()]);
        assert_eq!(fitted.floor, 0.03);
    }
}
