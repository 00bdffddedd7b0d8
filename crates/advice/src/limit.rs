//! Whether a policy keeps the limit of time, and how sure that is.
//!
//! Makespans and missed deadlines are held against the reference policy's in the same replica. Response times are not: they
//! come from chance encounters, which another policy meets at another moment. Their 95th percentiles over all replicas are
//! held against what chance stretches by itself (`spread`, see [`crate::time`]), the least against the least and so on.
//!
//! A policy just within the limit may be beyond it in other replicas. So the replicas are drawn again, with replacement,
//! and judged again (bootstrap): the limit is kept *surely* if it is kept in nearly all such resamples.

use crate::ties::{SURE, share};
use crate::time::beyond;
use wattwise_figure::Random;

/// The share of the replicas by whose response times policies are told apart: beyond it are accidents.
const CHANCE: f64 = 0.9;
/// How often the replicas are drawn again.
const RESAMPLES: usize = 400;

/// By how much each replica's 95th percentile exceeds the spread of the same rank.
pub(crate) fn by_rank(own: &[f64], spread: &[f64]) -> Vec<f64> {
    let last = ((own.len() as f64 * CHANCE).ceil() as usize).clamp(1, own.len().max(1)) - 1;
    let mut spread = spread.to_vec();
    spread.sort_by(f64::total_cmp);
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_by(|&a, &b| own[a].total_cmp(&own[b]));
    let mut time = vec![1.0; own.len()];
    for (rank, &replica) in order.iter().enumerate() {
        let rank = rank.min(last);
        time[replica] = beyond(own[order[rank]], spread[rank]);
    }
    time
}

/// Whether the limit is surely kept, where each replica is judged on its own.
pub(crate) fn surely_within(within: &[bool]) -> bool {
    surely(within.len(), |drawn| share(drawn.iter().map(|&r| within[r])))
}

/// Whether response times at most `most` times the reference policy's are surely kept.
pub(crate) fn surely_responsive(own: &[f64], spread: &[f64], most: f64) -> bool {
    surely(own.len(), |drawn| {
        let of = |all: &[f64]| drawn.iter().map(|&r| all[r]).collect::<Vec<f64>>();
        share(by_rank(&of(own), &of(spread)).iter().map(|time| *time <= most))
    })
}

/// Whether in nearly all resamples the share of replicas that keep the limit, as `kept` counts them, is large enough.
fn surely(replicas: usize, kept: impl Fn(&[usize]) -> f64) -> bool {
    // The same resamples for every policy: what is said of one does not depend on which others are compared.
    let mut random = Random::new(1);
    let mut one = || {
        let drawn: Vec<usize> = (0..replicas).map(|_| random.below(replicas)).collect();
        kept(&drawn) >= SURE
    };
    share((0..RESAMPLES).map(|_| one())) >= SURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_kept_by_chance_is_not_surely_kept() {
        let within = |slow: usize| (0..64).map(|r| r >= slow).collect::<Vec<bool>>();
        assert!(surely_within(&within(0)) && surely_within(&within(1)));
        // 61 of 64 are the least that keep it. Of resamples of 62, one in seven has fewer.
        assert!(!surely_within(&within(2)) && !surely_within(&within(3)));
    }

    #[test]
    fn responses_at_the_limit_are_not_surely_within_it() {
        // A quarter by chance.
        let spread: Vec<f64> = (0..64).map(|r| 1.0 + f64::from(r * 37 % 64) / 256.0).collect();
        let slower = |by: f64| {
            let own: Vec<f64> = (0..64).map(|r| by * (1.0 + f64::from(r * 23 % 64) / 256.0)).collect();
            surely_responsive(&own, &spread, 1.1)
        };
        assert!(slower(1.0), "the reference in other words");
        assert!(slower(1.02) && !slower(1.095) && !slower(1.2));
        // Without chance it is what it is.
        let even = vec![1.0; 64];
        assert!(surely_responsive(&vec![1.099; 64], &even, 1.1));
        assert!(!surely_responsive(&vec![1.101; 64], &even, 1.1));
    }
}
