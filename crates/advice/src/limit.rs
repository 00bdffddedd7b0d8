//! How sure it is that a policy keeps the limit of time.
//!
//! A policy just within the limit may be beyond it in other replicas. So the replicas are drawn again, with replacement,
//! and judged again (bootstrap): the limit is kept *surely* if it is kept in nearly all such resamples.

use crate::ties::{SURE, share};
use wattwise_figure::Random;

/// How often the replicas are drawn again.
const RESAMPLES: usize = 400;

/// Whether in nearly all resamples enough replicas are within the limit.
pub(crate) fn surely_within(within: &[bool]) -> bool {
    // The same resamples for every policy: what is said of one does not depend on which others are compared.
    let mut random = Random::new(1);
    let mut one = || {
        let drawn = (0..within.len()).map(|_| within[random.below(within.len())]);
        share(drawn) >= SURE
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
}
