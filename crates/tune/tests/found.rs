//! What a search finds where the right answer is known: `examples/shows.rs` has the same with more seeds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod made;

use rayon::prelude::*;
use wattwise_tune::search::Method;

#[test]
fn a_planted_best_is_found_in_fewer_trials_than_by_chance() {
    let seeds = 20;
    let found = |method| -> Vec<usize> {
        let one = |seed| {
            let (first, best) = made::planted(seed, method, 500);
            assert!(
                first.is_none() || best,
                "seed {seed}: it was looked at, and another was taken for better"
            );
            first.unwrap_or(501)
        };
        let mut all: Vec<usize> = (0..seeds).into_par_iter().map(one).collect();
        all.sort_unstable();
        all
    };
    let (ours, chance) = (found(Method::Evolution), found(Method::Random));
    assert!(ours[seeds as usize * 95 / 100 - 1] <= 500, "trials: {ours:?}");
    assert!(2 * ours[seeds as usize / 2] < chance[seeds as usize / 2], "{ours:?}, by chance {chance:?}");
}

/// What a policy's table allows, it takes: no point of its space panics.
#[test]
fn every_policy_takes_what_its_table_allows() {
    let ran: usize = (0..6).into_par_iter().map(|seed| made::points_that_ran(seed, 20)).sum();
    assert!(ran > 6 * 20 * 15, "{ran}");
}

/// Settings without effect: what is claimed of the test set covers no gain.
#[test]
fn where_there_is_nothing_to_find_nothing_is_claimed() {
    let results: Vec<_> = (0..12).into_par_iter().filter_map(|seed| made::null(seed, 24)).collect();
    assert!(results.len() >= 11, "{} of 12 searches have a result", results.len());
    for r in &results {
        let test = r.winner.test.as_ref().unwrap();
        assert!(test.against_reference.covers_nothing(), "seed {}: {:?}", r.seed, test.against_reference);
        assert_eq!(r.verdict.worth_it, Some(false), "{}", r.verdict.text);
        // What is advised against comes without the line that puts it in force.
        assert_eq!(r.winner.apply, None, "{}", r.verdict.text);
        assert!(
            r.winner.why_not.as_ref().is_some_and(|why| why.contains("not worth it")),
            "{:?}",
            r.winner.why_not
        );
    }
    // It could fail: intervals are narrow, and the policies that are the same in the mean are not the same run by run.
    for r in &results {
        let (test, train) = (r.winner.test.as_ref().unwrap().against_reference, r.winner.train.unwrap());
        assert!(test.high - test.low < 0.05, "seed {}: {test:?}", r.seed);
        assert!(train.high > train.low, "seed {}: {train:?}", r.seed);
    }
    // The front and the winner's gain in the search are one number.
    for r in &results {
        let (own, train) = (r.front.iter().find(|p| p.policy == r.winner.policy), r.winner.train.unwrap());
        assert!(own.is_none_or(|p| p.cost_ratio == train.ratio), "seed {}: {own:?}, {train:?}", r.seed);
    }
    assert!(results.iter().any(|r| r.front.iter().any(|p| p.policy == r.winner.policy)));
    let promised = results.iter().filter(|r| r.winner.train.is_some_and(|g| g.ratio < 1.0)).count();
    assert!(2 * promised >= results.len(), "{promised} of {}", results.len());
}
