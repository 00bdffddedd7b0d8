//! What a sample looks like.

use serde::{Deserialize, Serialize};

/// Mean and standard deviation of a sample; 0 for the deviation of a single value, which shows none.
pub fn mean_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

/// The value that a share `q` of a sorted sample does not exceed, between neighbours in proportion; 0 of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at as usize], sorted[(at as usize + 1).min(last)]);
    low + (high - low) * at.fract()
}

/// A sample of durations or figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// How many.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation; 0 for one.
    pub sd: f64,
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95 of 100 are no greater.
    pub p95: f64,
    /// 99 of 100 are no greater.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

impl Spread {
    /// Of a sample; none of an empty one.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (mean, sd) = mean_sd(&sorted);
        // Nearest rank: a value that was seen.
        let at = |p: f64| sorted[((p * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1];
        Some(Spread { n: sorted.len(), mean, sd, min, p50: at(0.5), p95: at(0.95), p99: at(0.99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let s = Spread::of(&(1..=100).map(f64::from).collect::<Vec<_>>()).expect("a sample");
        assert_eq!((s.min, s.p50, s.p95, s.p99, s.max, s.mean), (1.0, 50.0, 95.0, 99.0, 100.0, 50.5));
        assert!((s.sd - 29.011_49).abs() < 1e-4);
        assert_eq!(Spread::of(&[3.0]).map(|s| (s.sd, s.p99)), Some((0.0, 3.0)));
        assert!(Spread::of(&[]).is_none());
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5), 3.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.05), 1.05);
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.9)), (0.0, 7.0));
    }
}
