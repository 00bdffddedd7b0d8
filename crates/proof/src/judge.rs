//! From pairs to a verdict: with and without what the covariates explain.

use crate::block::{Block, BlockPair};
use serde::{Deserialize, Serialize};
use wattwise_figure::linear::Triangle;
use wattwise_figure::sequence;
use wattwise_figure::verdict::{Aim, Verdict, student};

/// Fewer pairs bear no regression.
const LEAST_FOR_WORK: usize = 20;
/// A column of which the others leave no more than this share says nothing of its own.
const EXPLAINED: f64 = 1e-9;

/// What is known of the work, and how it enters: as the difference of B from A.
type Known = (&'static str, fn(&Block) -> Option<f64>);

/// Instructions by their logarithm, as energy; shares as they are.
const WORK: [Known; 3] = [
    ("instructions", |b| b.work.instructions.filter(|x| *x > 0.0).map(f64::ln)),
    ("brightness", |b| b.work.brightness),
    ("GPU", |b| b.work.gpu),
];

/// The outcome, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// As it was measured.
    pub unadjusted: Verdict,
    /// For the same work; none where nothing is known of the work, or too few pairs have it.
    pub adjusted: Option<Adjusted>,
    /// B over A with an interval that holds whenever it is looked at: (ratio, low, high); none for fewer than 30 pairs.
    #[cfg_attr(feature = "schema", schemars(with = "Option<(f64, f64, f64)>"))]
    pub at_any_time: Option<RatioInterval>,
}

/// B over A with its interval; in files an array of three.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64, f64)", into = "(f64, f64, f64)")]
pub struct RatioInterval {
    /// B over A.
    pub ratio: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
}

impl From<(f64, f64, f64)> for RatioInterval {
    fn from((ratio, low, high): (f64, f64, f64)) -> RatioInterval {
        RatioInterval { ratio, low, high }
    }
}

impl From<RatioInterval> for (f64, f64, f64) {
    fn from(of: RatioInterval) -> (f64, f64, f64) {
        (of.ratio, of.low, of.high)
    }
}

/// The outcome for the same work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Adjusted {
    /// The verdict.
    pub verdict: Verdict,
    /// What of the work was taken out.
    pub by: Vec<String>,
    /// Standard deviation of ln(B/A) of a pair, which is left.
    pub spread: f64,
}

/// Judges pairs by their mean power; `planned` is the number of them that was fixed beforehand.
pub fn outcome(pairs: &[BlockPair<'_>], confidence: f64, planned: usize) -> Outcome {
    let watts: Vec<(f64, f64)> = pairs.iter().filter_map(|p| Some((p.a.watts()?, p.b.watts()?))).collect();
    let d: Vec<f64> = watts.iter().map(|(a, b)| (b / a).ln()).collect();
    let mean = d.iter().sum::<f64>() / d.len() as f64;
    Outcome {
        unadjusted: judged(&watts, confidence),
        adjusted: adjusted(pairs, &watts, confidence),
        at_any_time: sequence::interval(&d, confidence, planned).map(|(low, high)| RatioInterval {
            ratio: mean.exp(),
            low: low.exp(),
            high: high.exp(),
        }),
    }
}

/// `ab`'s verdict with Student's interval over all pairs: their number was fixed before.
pub fn judged(pairs: &[(f64, f64)], confidence: f64) -> Verdict {
    student(pairs, &Aim { confidence, pilot: pairs.len().max(3), ..Aim::default() })
}

/// The regression of ln(B/A) on the differences of what is known of the work: its constant is the outcome at no difference.
fn adjusted(pairs: &[BlockPair<'_>], watts: &[(f64, f64)], confidence: f64) -> Option<Adjusted> {
    let n = pairs.len();
    if n < LEAST_FOR_WORK || watts.len() != n {
        return None;
    }
    let mut by = Vec::new();
    let mut x: Vec<Vec<f64>> = Vec::new();
    for (name, of) in WORK {
        let all: Option<Vec<f64>> = pairs.iter().map(|p| Some(of(p.b)? - of(p.a)?)).collect();
        let Some(all) = all else { continue };
        let mean = all.iter().sum::<f64>() / n as f64;
        // One that stands still explains nothing.
        if all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() > 1e-9 * n as f64 {
            by.push(name.to_owned());
            x.push(all);
        }
    }
    let d: Vec<f64> = watts.iter().map(|(a, b)| (b / a).ln()).collect();
    let (constant, left, leverage) = regression(&x, &d).filter(|_| !x.is_empty())?;
    // What is left, as pairs about the constant, widened by what the regression itself is unsure of.
    let freedom = n as f64 - 1.0;
    let wider = (freedom / (freedom - x.len() as f64) * leverage).sqrt();
    let about: Vec<(f64, f64)> = left.iter().map(|r| (1.0, (constant + r * wider).exp())).collect();
    let spread = wattwise_figure::mean_sd(&left).1;
    Some(Adjusted { verdict: judged(&about, confidence), by, spread })
}

/// Least squares of `y` on a constant and the columns of `x`: the constant, the residuals, and by how much the constant's variance
/// is larger than the mean's. `None` where the columns say the same.
fn regression(x: &[Vec<f64>], y: &[f64]) -> Option<(f64, Vec<f64>, f64)> {
    let n = y.len() as f64;
    let k = x.len();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (x_mean, y_mean): (Vec<f64>, f64) = (x.iter().map(|c| mean(c)).collect(), mean(y));
    let about = |a: &[f64], a_mean: f64, b: &[f64], b_mean: f64| {
        a.iter().zip(b).map(|(p, q)| (p - a_mean) * (q - b_mean)).sum::<f64>()
    };
    let products =
        (0..k * k).map(|at| about(&x[at / k], x_mean[at / k], &x[at % k], x_mean[at % k])).collect();
    let triangle = Triangle::of_clear(k, products, EXPLAINED)?;
    let against: Vec<f64> = (0..k).map(|i| about(&x[i], x_mean[i], y, y_mean)).collect();
    let slopes = triangle.solve(&against);
    let constants = triangle.solve(&x_mean);
    let leverage = 1.0 + n * x_mean.iter().zip(constants).map(|(m, c)| m * c).sum::<f64>();
    let constant = y_mean - slopes.iter().zip(&x_mean).map(|(s, m)| s * m).sum::<f64>();
    let left =
        (0..y.len()).map(|at| y[at] - constant - (0..k).map(|i| slopes[i] * x[i][at]).sum::<f64>()).collect();
    constant.is_finite().then_some((constant, left, leverage))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line without noise is found, and the variance of its constant is the text book's.
    #[test]
    fn least_squares_are_those_of_the_closed_form() {
        let x = vec![(1..=8).map(f64::from).collect::<Vec<_>>()];
        let y: Vec<f64> = x[0].iter().map(|x| 2.0 + 0.5 * x).collect();
        let (constant, left, leverage) = regression(&x, &y).expect("a line");
        assert!((constant - 2.0).abs() < 1e-12 && left.iter().all(|r| r.abs() < 1e-12));
        // Var(constant) / Var(mean) = 1 + n·x̄² / Sxx = 1 + 8·4.5² / 42.
        assert!((leverage - (1.0 + 8.0 * 20.25 / 42.0)).abs() < 1e-12, "{leverage}");
    }

    #[test]
    fn two_columns_are_told_apart_and_two_equal_ones_are_refused() {
        let a: Vec<f64> = (0..9).map(|i| f64::from(i % 3)).collect();
        let b: Vec<f64> = (0..9).map(|i| f64::from(i / 3)).collect();
        let y: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 1.0 + 2.0 * a - 3.0 * b).collect();
        let (constant, left, _) = regression(&[a.clone(), b], &y).expect("a plane");
        assert!((constant - 1.0).abs() < 1e-12 && left.iter().all(|r| r.abs() < 1e-12));
        assert!(regression(&[a.clone(), a], &y).is_none());
    }
}
