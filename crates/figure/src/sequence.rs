//! A confidence sequence: an interval that may be looked at as often as one likes.
//!
//! Student's interval holds at the end of an experiment whose length was fixed before. Looked at after each pair, it is off
//! the truth at some time in a quarter of the experiments. This one is off at *any* time in as few as it says, and so it is
//! what a figure that is shown while it grows must have. It is wider for it: by half at its best size.
//!
//! It is the asymptotic sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (arXiv 2103.06476, theorem 2.2): a
//! mixture of Robbins over the drift of a Brownian motion,
//!
//! ```text
//! mean ± s · sqrt( (nρ² + 1) / (n²ρ²) · ln( (nρ² + 1) / α² ) )
//! ```
//!
//! with the running standard deviation s. ρ decides at which size it is narrowest (section 2.3 there: w = nρ² + 1 solves
//! w − ln w = 1 − 2 ln α).

use crate::mean_sd;

/// With fewer values the normal distribution is no description of their mean, and nothing is said.
pub const LEAST: usize = 30;

/// The ends of the interval for the mean of `values`, in the order in which they came; narrowest at `best` of them.
/// `None` for fewer than [`LEAST`].
pub fn interval(values: &[f64], confidence: f64, best: usize) -> Option<(f64, f64)> {
    if values.len() < LEAST {
        return None;
    }
    let (mean, sd) = mean_sd(values);
    let half = sd * half_width(values.len() as f64, 1.0 - confidence, best.max(LEAST) as f64);
    (mean + half).is_finite().then_some((mean - half, mean + half))
}

/// Half of its width, in standard deviations of one value.
fn half_width(n: f64, alpha: f64, best: f64) -> f64 {
    let rho2 = (weight(alpha) - 1.0) / best;
    let w = n * rho2 + 1.0;
    (w / (n * n * rho2) * (w / (alpha * alpha)).ln()).sqrt()
}

/// w of w − ln w = 1 − 2 ln α, above 1: the fixed point of w = 1 − 2 ln α + ln w.
fn weight(alpha: f64) -> f64 {
    let c = 1.0 - 2.0 * alpha.ln();
    (0..60).fold(c, |w, _| c + w.ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Random, normal};

    #[test]
    fn it_is_narrowest_where_it_is_asked_to_be() {
        let at = |best: f64| half_width(1000.0, 0.05, best);
        assert!(
            at(1000.0) < at(900.0) && at(1000.0) < at(1100.0),
            "{} {} {}",
            at(900.0),
            at(1000.0),
            at(1100.0)
        );
        // Half as wide again as the interval of one look, which is 1.96 / √n.
        let ratio = at(1000.0) * 1000.0_f64.sqrt() / 1.96;
        assert!((1.4..1.6).contains(&ratio), "{ratio}");
    }

    /// Looked at after each of a thousand values: it is off the truth at any time in fewer than 5 of 100, where the interval
    /// of one look is in more than 25.
    #[test]
    fn it_may_be_looked_at_after_each_value() {
        let (mut off, mut peeked) = (0, 0);
        for seed in 0..600 {
            let mut random = Random::new(seed);
            let all: Vec<f64> = (0..1000).map(|_| normal::quantile(random.unit().max(1e-12))).collect();
            let (mut sum, mut squares) = (0.0, 0.0);
            let (mut missed, mut would) = (false, false);
            for (at, x) in all.iter().enumerate() {
                sum += x;
                squares += x * x;
                let n = at as f64 + 1.0;
                if n >= LEAST as f64 {
                    let (mean, sd) = (sum / n, ((squares - sum * sum / n) / (n - 1.0)).sqrt());
                    missed |= mean.abs() > sd * half_width(n, 0.05, 500.0);
                    would |= mean.abs() > 1.96 * sd / n.sqrt();
                }
            }
            let told = interval(&all, 0.95, 500).expect("a thousand");
            let (mean, sd) = mean_sd(&all);
            assert!((told.1 - mean - sd * half_width(1000.0, 0.05, 500.0)).abs() < 1e-12);
            off += usize::from(missed);
            peeked += usize::from(would);
        }
        assert!(off <= 30, "{off} of 600");
        assert!(peeked > 150, "{peeked} of 600");
    }

    #[test]
    fn few_values_say_nothing() {
        assert_eq!(interval(&[1.0; 29], 0.95, 100), None);
        assert_eq!(interval(&[1.0; 30], 0.95, 100), Some((1.0, 1.0)));
        assert_eq!(interval(&[f64::NAN; 30], 0.95, 100), None);
    }
}
