//! Straight lines through few points: weighted least squares with a penalty on the coefficients (ridge), made robust by
//! Huber's weights, and quantiles of weighted samples.

use crate::linear::Triangle;

/// Residuals beyond this many standard deviations weigh less, in proportion.
const HUBER: f64 = 1.0;
/// From the median of absolute residuals to a standard deviation, of normal ones.
const MAD: f64 = 1.4826;
/// Rounds of reweighting: the weights have settled by then.
const ROUNDS: usize = 6;

/// Points with a weight each: a row of `columns` values for every element of the others.
#[derive(Clone, Copy)]
pub struct Points<'a> {
    /// Columns of `x`; the first is the constant and bears no penalty.
    pub columns: usize,
    /// The rows, one after the other.
    pub x: &'a [f64],
    /// What is to be explained.
    pub y: &'a [f64],
    /// How much each counts; 0 leaves it out.
    pub weight: &'a [f64],
}

/// Coefficients that explain `y`, residuals squared; `penalty` is per unit of weight, on columns of unit variance.
/// `None` where the columns do not determine them.
pub fn fit(points: Points<'_>, penalty: f64) -> Option<Vec<f64>> {
    let n = points.columns;
    let mut a = vec![0.0; n * n];
    let mut b = vec![0.0; n];
    for ((row, &y), &w) in points.x.chunks_exact(n).zip(points.y).zip(points.weight) {
        if w == 0.0 {
            continue;
        }
        for i in 0..n {
            b[i] += w * row[i] * y;
            for j in 0..=i {
                a[i * n + j] += w * row[i] * row[j];
            }
        }
    }
    let total: f64 = points.weight.iter().sum();
    (1..n).for_each(|i| a[i * n + i] += penalty * total);
    // A column that the others make up has but rounding left.
    let solved = Triangle::of_clear(n, a, 1e-12)?.solve(&b);
    solved.iter().all(|x| x.is_finite()).then_some(solved)
}

/// [`fit`], with residuals far out weighing less.
pub fn robust(points: Points<'_>, penalty: f64) -> Option<Vec<f64>> {
    let mut weight = points.weight.to_vec();
    let mut coefficients = fit(points, penalty)?;
    for _ in 1..ROUNDS {
        let rows = points.x.chunks_exact(points.columns);
        let off: Vec<f64> = rows.zip(points.y).map(|(row, y)| (y - dot(row, &coefficients)).abs()).collect();
        let seen: Vec<f64> =
            off.iter().zip(points.weight).filter(|(_, w)| **w > 0.0).map(|(o, _)| *o).collect();
        let far = HUBER * MAD * quantile(seen.into_iter().map(|o| (o, 1.0)), 0.5)?;
        if far <= 0.0 {
            break;
        }
        for ((w, given), off) in weight.iter_mut().zip(points.weight).zip(&off) {
            *w = given * (far / off.max(far));
        }
        coefficients = fit(Points { weight: &weight, ..points }, penalty)?;
    }
    Some(coefficients)
}

/// The sum of products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The least value that has a share `p` of all weight at or below it; values of no number are left out.
pub fn quantile(values: impl IntoIterator<Item = (f64, f64)>, p: f64) -> Option<f64> {
    let mut values: Vec<(f64, f64)> = values.into_iter().filter(|(v, w)| v.is_finite() && *w > 0.0).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let target = p * values.iter().map(|(_, w)| w).sum::<f64>();
    let mut sum = 0.0;
    let reached = values.iter().find(|(_, w)| {
        sum += w;
        sum >= target * (1.0 - 1e-12)
    });
    reached.or(values.last()).map(|(v, _)| *v)
}

/// Mean and standard deviation of a column, by which it is brought to mean 0 and deviation 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnScale {
    /// Its weighted mean.
    pub mean: f64,
    /// Its weighted standard deviation; 1 where it does not vary.
    pub sd: f64,
}

impl ColumnScale {
    /// Of values with weights.
    pub fn of(values: &[f64], weight: &[f64]) -> ColumnScale {
        let total: f64 = weight.iter().sum();
        let mean = dot(values, weight) / total;
        let squares: f64 = values.iter().zip(weight).map(|(v, w)| w * (v - mean).powi(2)).sum();
        let sd = (squares / total).sqrt();
        ColumnScale { mean, sd: if sd > 1e-9 { sd } else { 1.0 } }
    }

    /// The value in standard deviations from the mean.
    pub fn apply(self, value: f64) -> f64 {
        (value - self.mean) / self.sd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y = 2 + 3 a - b on a small grid.
    fn grid() -> (Vec<f64>, Vec<f64>) {
        let points = (0..25).map(|i| (f64::from(i % 5), f64::from(i / 5)));
        points.map(|(a, b)| ([1.0, a, b], 2.0 + 3.0 * a - b)).fold((vec![], vec![]), |(mut x, mut y), p| {
            x.extend(p.0);
            y.push(p.1);
            (x, y)
        })
    }

    #[test]
    fn a_line_is_found_and_the_penalty_shrinks_it() {
        let (x, y) = grid();
        let weight = vec![1.0; 25];
        let points = Points { columns: 3, x: &x, y: &y, weight: &weight };
        let exact = fit(points, 0.0).unwrap();
        assert!(exact.iter().zip([2.0, 3.0, -1.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{exact:?}");
        let shrunk = fit(points, 1.0).unwrap();
        assert!(shrunk[1] < 2.5 && shrunk[1] > 0.0 && shrunk[2] > -1.0, "{shrunk:?}");
    }

    #[test]
    fn one_that_is_far_out_does_not_pull_the_line() {
        let (x, mut y) = grid();
        y[7] += 1000.0;
        let weight = vec![1.0; 25];
        let points = Points { columns: 3, x: &x, y: &y, weight: &weight };
        let (pulled, held) = (fit(points, 0.0).unwrap(), robust(points, 0.0).unwrap());
        assert!((pulled[0] - 2.0).abs() > 10.0 && (held[0] - 2.0).abs() < 1.0, "{pulled:?} {held:?}");
    }

    #[test]
    fn a_column_that_others_make_up_determines_nothing() {
        let x = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let points = Points { columns: 2, x: &x, y: &[1.0, 2.0, 3.0], weight: &[1.0; 3] };
        assert_eq!(fit(points, 0.0), None);
        assert!(fit(points, 0.1).is_some());
    }

    #[test]
    fn quantiles_go_by_weight() {
        let values = [(3.0, 1.0), (1.0, 1.0), (2.0, 8.0), (f64::NAN, 9.0)];
        assert_eq!(quantile(values, 0.1), Some(1.0));
        assert_eq!(quantile(values, 0.5), Some(2.0));
        assert_eq!(quantile(values, 1.0), Some(3.0));
        assert_eq!(quantile([], 0.5), None);
    }
}
