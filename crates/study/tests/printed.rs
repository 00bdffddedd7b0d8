//! The rows of the studies against the bare list of what they print, which a reading made that knew nothing of the model.

use std::collections::BTreeMap;
use wattwise_study::printed::{PrintedFigure, Standing};
use wattwise_study::{Study, bc10, coreidle, openbsd, powerctl, thomson};

const LIST: &str = include_str!("../../../studies/printed.csv");

/// Study, place, quantity, value, unit.
type Line = [String; 5];

fn lines(csv: &str) -> Vec<Line> {
    let cells = |r: csv::StringRecord| std::array::from_fn(|i| r.get(i).unwrap_or_default().to_owned());
    csv::Reader::from_reader(csv.as_bytes()).records().map(|r| cells(r.expect("a row"))).collect()
}

fn all() -> Vec<Study> {
    [thomson::run, openbsd::run, coreidle::run, bc10::run, powerctl::run]
        .iter()
        .map(|run| run().expect("bundled"))
        .collect()
}

fn line(f: &PrintedFigure) -> Line {
    [f.study, &f.location, &f.quantity, &f.printed, &f.unit].map(str::to_owned)
}

/// The files that the reruns read: 740 rows, those of the list in its order.
#[test]
fn the_files_of_the_studies_are_the_list() {
    let files = [
        ("000", include_str!("../../../studies/figures/thomson.csv")),
        ("001", include_str!("../../../studies/figures/openbsd.csv")),
        ("002", include_str!("../../../studies/figures/coreidle.csv")),
        ("003", include_str!("../../../studies/figures/bc10.csv")),
        ("004", include_str!("../../../studies/figures/powerctl.csv")),
    ];
    let list = lines(LIST);
    assert_eq!(list.len(), 740);
    for (study, csv) in files {
        let ours: Vec<Line> = lines(csv)
            .into_iter()
            .map(|[place, what, value, unit, _]| [study.to_owned(), place, what, value, unit])
            .collect();
        let theirs: Vec<&Line> = list.iter().filter(|l| l[0] == study).collect();
        assert_eq!(ours.len(), theirs.len(), "{study}");
        ours.iter().zip(theirs).for_each(|(a, b)| assert_eq!(a, b));
    }
}

/// What `reproduce all` shows: a row for each, one basis each, and a score that is the rows' own count.
#[test]
#[ignore = "long: make test runs it"]
fn every_printed_figure_has_its_row() {
    let studies = all();
    let shown: Vec<Line> = studies.iter().flat_map(|s| s.figures.iter().map(line)).collect();
    let mut list: BTreeMap<Line, usize> = BTreeMap::new();
    lines(LIST).into_iter().for_each(|l| *list.entry(l).or_default() += 1);
    for l in &shown {
        match list.get_mut(l) {
            Some(n) if *n > 0 => *n -= 1,
            _ => panic!("not printed, or shown twice: {l:?}"),
        }
    }
    let left: Vec<_> = list.iter().filter(|(_, n)| **n > 0).collect();
    assert!(left.is_empty(), "no row: {left:?}");
    for s in &studies {
        let of = |basis: Standing| s.figures.iter().filter(|f| f.basis == basis).count();
        let sum: usize =
            [Standing::Input, Standing::Fitted, Standing::Predicted, Standing::None].map(of).iter().sum();
        assert_eq!(s.score.printed, sum);
        let misses = s.figures.iter().filter(|f| f.basis == Standing::Predicted && f.within == Some(false));
        misses.for_each(|f| assert!(f.cause.is_some(), "a miss without a cause: {f:?}"));
        // What has no row says why.
        let none = s.figures.iter().filter(|f| f.ours.is_none());
        none.for_each(|f| assert!(f.cause.is_some(), "no reason: {f:?}"));
    }
}
