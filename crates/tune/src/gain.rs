//! What a policy gains on recordings, with an interval that holds what is uncertain of the machine and of the choice of
//! recordings.
//!
//! In each replica the gain is the mean over the recordings of the logarithm of a ratio. Its spread over the replicas is
//! what the machine's figures, the phases and the seeds leave open; it is taken as it is and not divided by their number,
//! since more draws make no guess better. How far another choice of recordings might lie is Student's interval of their
//! means. The two are independent, so the ends of the interval are the root of the sum of their squares away.

use serde::{Deserialize, Serialize};
use wattwise_figure::mean_sd;
use wattwise_figure::quantile;
use wattwise_figure::verdict;

/// How sure an interval is.
const SURE: f64 = 0.95;
/// Replicas from which on an interval can be so sure.
pub const LEAST_REPLICAS: u64 = 40;

/// A ratio over recordings, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// Of what is to be small, over the other policy's: geometric mean.
    pub ratio: f64,
    /// Low end of the 95 % interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Recordings; of one alone nothing tells how others would differ.
    pub recordings: u64,
}

impl Gain {
    /// Whether something is saved, and at least so large a share of it in the middle.
    pub fn saves(&self, least: f64) -> bool {
        self.high < 1.0 && self.ratio <= 1.0 - least
    }

    /// Whether the interval holds no gain and no loss.
    pub fn covers_nothing(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }
}

/// The gain of the logarithms of ratios, `[recording][replica]`, all with as many replicas; none of nothing.
pub fn gain(logs: &[Vec<f64>]) -> Option<Gain> {
    let replicas = logs.iter().map(Vec::len).min().filter(|n| *n > 0)?;
    let n = logs.len() as f64;
    let mut means: Vec<f64> = (0..replicas).map(|r| logs.iter().map(|l| l[r]).sum::<f64>() / n).collect();
    means.sort_by(f64::total_cmp);
    let middle = quantile(&means, 0.5);
    let of_recording: Vec<f64> = logs.iter().map(|l| mean_sd(&l[..replicas]).0).collect();
    let choice = match logs.len() {
        1 => 0.0,
        n => {
            verdict::quantile(0.5 + SURE / 2.0, n as f64 - 1.0) * mean_sd(&of_recording).1 / (n as f64).sqrt()
        }
    };
    let end = |q: f64| (next_draw(&means, q) - middle).hypot(choice);
    Some(Gain {
        ratio: middle.exp(),
        low: (middle - end(0.5 - SURE / 2.0)).exp(),
        high: (middle + end(0.5 + SURE / 2.0)).exp(),
        recordings: logs.len() as u64,
    })
}

/// The value below which the next draw lies with chance `q`, from a sorted sample: of n draws the k-th has k / (n + 1).
fn next_draw(sorted: &[f64], q: f64) -> f64 {
    let n = sorted.len() as f64;
    quantile(sorted, (q * (n + 1.0) - 1.0) / (n - 1.0).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_figure::Random;
    use wattwise_figure::normal::quantile as normal;

    /// Draws of a known gain: what each recording has of its own, what each machine has, and the noise of each run.
    fn covered(recordings: usize, own: f64, machine: f64, noise: f64) -> usize {
        let mut random = Random::new(1);
        let mut draw = |sd: f64| sd * normal(random.unit());
        let one = |draw: &mut dyn FnMut(f64) -> f64| {
            let truth = draw(machine);
            let machines: Vec<f64> = (0..64).map(|_| draw(machine)).collect();
            let logs: Vec<Vec<f64>> = (0..recordings)
                .map(|_| {
                    let own = draw(own);
                    machines.iter().map(|m| -0.05 + m + own + draw(noise)).collect()
                })
                .collect();
            let gain = gain(&logs).unwrap();
            let true_ratio = (-0.05 + truth).exp();
            (gain.low..=gain.high).contains(&true_ratio)
        };
        (0..400).filter(|_| one(&mut draw)).count()
    }

    /// The interval holds the gain on the machine that it really is in at least 95 of 100, whatever it is that is uncertain.
    #[test]
    fn the_interval_holds_the_truth() {
        for (recordings, own, machine, noise) in [
            (3, 0.02, 0.0, 0.001),
            (3, 0.0, 0.02, 0.001),
            (5, 0.02, 0.02, 0.02),
            (2, 0.05, 0.01, 0.01),
            (1, 0.0, 0.02, 0.0),
        ] {
            let n = covered(recordings, own, machine, noise);
            // Three standard deviations below 380 of 400.
            assert!(n >= 367, "{recordings} recordings, {own}, {machine}, {noise}: {n} of 400");
        }
    }

    #[test]
    fn the_middle_is_the_gain() {
        let g = gain(&[vec![-0.1, -0.1, -0.1], vec![-0.3, -0.3, -0.3]]).unwrap();
        assert!((g.ratio - (-0.2_f64).exp()).abs() < 1e-12);
        // Two recordings: Student's quantile for one degree of freedom is 12.7 standard errors, here 0.1 each.
        assert!((g.high.ln() + 0.2 - 1.2706).abs() < 1e-3 && !g.saves(0.01));
        let g = gain(&[vec![-0.1, -0.1, -0.1]]).unwrap();
        assert!(g.saves(0.09) && !g.saves(0.1) && g.low == g.high);
        assert_eq!((gain(&[]), gain(&[vec![]])), (None, None));
        assert!(gain(&[vec![-0.1, 0.1], vec![0.0, 0.0]]).unwrap().covers_nothing());
    }
}
