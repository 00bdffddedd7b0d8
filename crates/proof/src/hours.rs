//! How many hours a wanted precision takes here, said beforehand.
//!
//! The half-width of the interval after n pairs is z·s/√n, with s the standard deviation of a pair's ln(B/A). That is the
//! machine's own: how far two blocks that follow each other differ, under one policy as under two. Watched for an hour, it is known
//! within a quarter; over a day, within a twentieth. So the answer has an interval of its own.

use crate::block::Block;
use serde::{Deserialize, Serialize};
use wattwise_figure::verdict::quantile;
use wattwise_figure::{mean_sd, normal};

/// Fewer differences say nothing of their spread.
const LEAST: usize = 10;

/// What a precision takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hours {
    /// Half of the interval that is wanted, of 1.
    pub precision: f64,
    /// Standard deviation of ln(B/A) of a pair.
    pub spread: f64,
    /// From so many differences.
    pub seen: usize,
    /// Pairs.
    pub pairs: usize,
    /// Hours, time left out included.
    pub hours: f64,
    /// Low end of a 95 % interval of the hours.
    pub low: f64,
    /// High end.
    pub high: f64,
}

/// What the differences of blocks that follow each other under one policy say; they overlap.
pub fn differences(blocks: &[Block]) -> Vec<f64> {
    let usable = |b: &Block| b.watts().filter(|_| b.left_out.is_none()).map(f64::ln);
    let pairs = blocks.windows(2).filter(|w| w[0].pair + 1 == w[1].pair);
    pairs.filter_map(|w| Some(usable(&w[1])? - usable(&w[0])?)).collect()
}

/// Hours until the interval is ± `precision` with that confidence. `lost` is the share of the time that is left out.
/// `overlapping` says that each block is in two of the differences. `None` for fewer than ten, or where nothing moves.
pub fn needed(
    differences: &[f64],
    overlapping: bool,
    (precision, confidence): (f64, f64),
    block_s: f64,
    lost: f64,
) -> Option<Hours> {
    // With turns in random order a pair's mean difference is the policies' and no drift: what is left is spread about it.
    // Blocks that follow each other have none: their own mean is chance.
    let spread = match overlapping {
        true => {
            let squares: f64 = differences.iter().map(|d| d * d).sum();
            (squares / differences.len() as f64).sqrt()
        }
        false => mean_sd(differences).1,
    };
    if differences.len() < LEAST || !(spread > 0.0 && spread.is_finite()) || !(0.0..1.0).contains(&lost) {
        return None;
    }
    let wanted = precision.ln_1p();
    let share = 0.5 + confidence / 2.0;
    let mut pairs = (normal::quantile(share) * spread / wanted).powi(2).ceil().max(2.0);
    // Few pairs have Student's wider quantile.
    for _ in 0..8 {
        pairs = (quantile(share, pairs - 1.0) * spread / wanted).powi(2).ceil().max(2.0);
    }
    let hours = pairs * 2.0 * block_s / 3600.0 / (1.0 - lost);
    // Noise that differs from block to block makes neighbours of overlapping differences alike, at most so that three say
    // what two would.
    let freedom = differences.len() as f64 / if overlapping { 1.5 } else { 1.0 } - 1.0;
    Some(Hours {
        precision,
        spread,
        seen: differences.len(),
        pairs: pairs as usize,
        hours,
        low: hours / chi_square_over_freedom(0.975, freedom),
        high: hours / chi_square_over_freedom(0.025, freedom),
    })
}

/// Quantile of χ²/f by Wilson and Hilferty (1931), within 1 % from 9 degrees of freedom on.
fn chi_square_over_freedom(p: f64, freedom: f64) -> f64 {
    let a = 2.0 / (9.0 * freedom);
    (1.0 - a + normal::quantile(p) * a.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_those_of_the_formula() {
        // s = 0.18, ± 1 %: (1.96 · 0.18 / 0.00995)² = 1257 pairs of two minutes: 41.9 h.
        let d: Vec<f64> = (0..1000).map(|i| if i % 2 == 0 { 0.18 } else { -0.18 }).collect();
        let h = needed(&d, false, (0.01, 0.95), 60.0, 0.0).expect("enough");
        assert!((h.hours - 41.9).abs() < 0.3, "{h:?}");
        let half = needed(&d, false, (0.01, 0.95), 60.0, 0.5).expect("enough");
        assert!((half.hours / h.hours - 2.0).abs() < 1e-9);
        assert!(h.low < h.hours && h.hours < h.high && h.high / h.low < 1.25, "{h:?}");
        assert_eq!(needed(&d[..9], false, (0.01, 0.95), 60.0, 0.0), None);
        assert_eq!(needed(&[0.0; 20], false, (0.01, 0.95), 60.0, 0.0), None);
    }

    #[test]
    fn chi_square_is_that_of_the_tables() {
        for (p, freedom, value) in [(0.975, 10.0, 20.483), (0.025, 10.0, 3.247), (0.95, 30.0, 43.773)] {
            let got = chi_square_over_freedom(p, freedom) * freedom;
            assert!((got / value - 1.0).abs() < 0.01, "{p} {freedom}: {got}");
        }
    }
}
