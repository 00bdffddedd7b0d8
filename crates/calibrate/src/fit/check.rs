//! A fit held against mixes of work that it has not seen.

use crate::fit::Fit;
use crate::fit::design::Meters;
use crate::window::Observation;
use serde::{Deserialize, Serialize};

/// What the fit says of the mixes that it has not seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// By how much each prediction is off, as a share of the power of the largest metered part.
    pub off: Vec<f64>,
}

impl Check {
    /// What `fit` predicts of observations that it has not seen, against what was metered.
    pub(crate) fn of(fit: &Fit, held_out: &[Observation]) -> Check {
        let off = |o: &Observation| {
            let (mut predicted, mut watts) = (0.0, 0.0);
            for part in fit.predicted(o) {
                predicted += part.predicted_w;
                watts += part.metered_w;
            }
            (watts > 0.0).then(|| predicted / watts - 1.0)
        };
        Check { off: held_out.iter().filter_map(off).collect() }
    }

    /// The error that so many of the mixes do not pass; none without mixes.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let mut off: Vec<f64> = self.off.iter().map(|e| e.abs()).collect();
        off.sort_by(f64::total_cmp);
        off.get(((off.len() as f64 * p).ceil() as usize).clamp(1, off.len().max(1)) - 1).copied()
    }

    /// Largest error that a usable fit may have at nineteen of twenty mixes, by what there was to measure with.
    pub fn limit(meters: Meters) -> f64 {
        match (meters.cores, meters.package) {
            (true, _) => 0.05,
            (false, true) => 0.08,
            _ => 0.15,
        }
    }
}
