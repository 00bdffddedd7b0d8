//! Whether a search finds what is there, and claims nothing where nothing is (`docs/notes/tune.md` has the figures):
//!
//! ```text
//! cargo run --release --example shows -- planted [SEEDS]
//! cargo run --release --example shows -- null [SEEDS]
//! ```
//!
//! - `planted`: the best of 800 policies is known by a formula. Prints in how many seeds it was found within 500 trials, and
//!   after how many, beside a search that draws its points by chance.
//! - `null`: settings that are all the same in the mean. Prints in how many seeds the interval of the gain on the test set covers
//!   0, what the search itself had promised, and how often it was called worth it.

#[path = "../tests/made/mod.rs"]
mod made;

use rayon::prelude::*;
use wattwise_tune::search::Method;

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let seeds: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    match what.as_str() {
        "planted" => planted(seeds),
        "null" => null(seeds),
        _ => {
            eprintln!("shows: expected planted or null");
            std::process::exit(2);
        }
    }
}

fn planted(seeds: u64) {
    println!("best by the formula: {:?}", made::planted_best());
    for method in [Method::Evolution, Method::Random] {
        let mut all: Vec<(Option<usize>, bool)> =
            (0..seeds).into_par_iter().map(|seed| made::planted(seed, method, 500)).collect();
        let found = all.iter().filter(|(first, best)| first.is_some() && *best).count();
        all.sort_unstable_by_key(|(first, _)| first.unwrap_or(usize::MAX));
        let at = |share: f64| {
            let first = all[((share * all.len() as f64) as usize).min(all.len() - 1)].0;
            first.map_or("more than 500".into(), |n| n.to_string())
        };
        println!(
            "{method:?}: found within 500 trials in {found} of {seeds} seeds; trials: median {}, 95th of 100 {}, most {}",
            at(0.5),
            at(0.95),
            at(1.0)
        );
    }
}

fn null(seeds: u64) {
    let results: Vec<_> = (0..seeds).into_par_iter().filter_map(|seed| made::null(seed, 60)).collect();
    let tests = || results.iter().filter_map(|r| r.winner.test.as_ref());
    let covers = tests().filter(|t| t.against_reference.covers_nothing()).count();
    let worth = results.iter().filter(|r| r.verdict.worth_it == Some(true)).count();
    let mut promised: Vec<f64> =
        results.iter().filter_map(|r| r.winner.train).map(|g| (1.0 - g.ratio) * 100.0).collect();
    let mut tested: Vec<f64> = tests().map(|t| (1.0 - t.against_reference.ratio) * 100.0).collect();
    let middle = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!("{} of {seeds} searches have a result", results.len());
    println!("the interval on the test set covers 0 in {covers} of {}", tests().count());
    println!("called worth it: {worth}");
    println!("saving promised by the search, median: {:.3} %", middle(&mut promised));
    println!("saving on the test set, median: {:.3} %", middle(&mut tested));
}
