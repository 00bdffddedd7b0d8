//! Scores: means over tables, so that a table of thousands of rows says no more than one of ten.

use super::compare::{Compared, Comparison};
use super::table::{MECHANISMS, Table};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wattwise_figure::ridge::quantile;

/// How well predictions hold. A figure that nothing tells (no two rows that differ, no order of one row) is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Tables that have part in it.
    pub tables: usize,
    /// Rows against their references, quantity by quantity.
    pub comparisons: usize,
    /// Of these, published values that differ by more than their spread.
    pub differing: usize,
    /// Share of the differing in which the prediction is on the right side of 1.
    pub sign_right: Option<f64>,
    /// Kendall's tau of the order within a work: pairs in the right order less pairs in the wrong one, of all that differ.
    pub tau: Option<f64>,
    /// Half of the ratios are off by no more, as a share of the measured ratio.
    pub ratio_median_abs_error: Option<f64>,
    /// 95 of 100 are off by no more.
    pub ratio_p95_abs_error: Option<f64>,
    /// Share of measured ratios within the 90 % intervals.
    pub coverage_90: Option<f64>,
    /// The median error of one who says that nothing makes a difference.
    pub no_difference_median_abs_error: Option<f64>,
    /// The 95th percentile of that.
    pub no_difference_p95_abs_error: Option<f64>,
    /// The median error of one who says that power goes with the cube of the clock and time with its inverse.
    pub cube_median_abs_error: Option<f64>,
    /// The 95th percentile of that.
    pub cube_p95_abs_error: Option<f64>,
    /// The share of signs that this one has right; "no difference" has none.
    pub cube_sign_right: Option<f64>,
}

/// A part of all comparisons.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// A mechanism, a class of machine.
    pub name: String,
    /// How well its predictions hold.
    #[serde(flatten)]
    pub held: Held,
}

/// A table's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TablePart {
    /// Its folder.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Its licence, or that none was seen.
    pub licence: String,
    /// Class of machine.
    pub class: String,
    /// Rows in the file.
    pub rows: usize,
    /// Rows that were predicted and compared.
    pub predicted_rows: usize,
    /// Rows that others are compared with.
    pub reference_rows: usize,
    /// Rows whose published values calibrate their program.
    pub calibrating_rows: usize,
    /// What calibrates, in words.
    pub calibrated_by: Vec<String>,
    /// What is odd about the rows that calibrate: a sentence each.
    pub unexplained: Vec<String>,
    /// Rows of which nothing is said, by reason.
    pub unsaid: Vec<Unsaid>,
    /// Rows that `--quick` left out.
    pub left_out_rows: usize,
    /// How well its predictions hold.
    #[serde(flatten)]
    pub held: Held,
}

/// Rows of which nothing is said.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unsaid {
    /// Why.
    pub why: String,
    /// How many.
    pub rows: usize,
    /// The first of them; the header is row 1.
    pub first_row: u64,
}

/// The scores of some tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scores {
    /// Tables.
    pub tables: usize,
    /// Rows of all tables.
    pub rows: usize,
    /// Of these, rows that were predicted and compared.
    pub predicted_rows: usize,
    /// Rows that others are compared with.
    pub reference_rows: usize,
    /// Rows whose published values calibrate their program.
    pub calibrating_rows: usize,
    /// Rows of which nothing can be said.
    pub unsaid_rows: usize,
    /// Rows against their references, quantity by quantity.
    pub comparisons: usize,
    /// Of these, published values that differ by more than their spread.
    pub differing: usize,
    /// Mean over tables of the share of signs that are right.
    pub sign_right: Option<f64>,
    /// Mean over tables of Kendall's tau.
    pub tau: Option<f64>,
    /// Mean over tables of the median error of ratios.
    pub ratio_median_abs_error: Option<f64>,
    /// Mean over tables of the 95th percentile of errors.
    pub ratio_p95_abs_error: Option<f64>,
    /// Mean over tables of the share within the 90 % intervals.
    pub coverage_90: Option<f64>,
    /// The same two shares of all comparisons alike, whatever their table.
    pub all_sign_right: Option<f64>,
    /// As above.
    pub all_coverage_90: Option<f64>,
    /// What two who know nothing come to, over the same tables.
    pub know_nothing: Vec<KnowNothing>,
    /// Draws of each setting.
    pub replicas: u64,
    /// Whether large tables were looked at in part.
    pub quick: bool,
    /// One entry a table.
    pub by_table: Vec<TablePart>,
    /// By what decides between a row and its reference.
    pub by_mechanism: Vec<Part>,
    /// By class of machine.
    pub by_class: Vec<Part>,
}

/// Somebody who knows nothing of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnowNothing {
    /// `no difference`, or `cube`: power with the cube of the clock, time with its inverse.
    pub name: &'static str,
    /// Mean over tables of the share of signs that are right.
    pub sign_right: Option<f64>,
    /// Mean over tables of the median error of ratios.
    pub ratio_median_abs_error: Option<f64>,
    /// Mean over tables of the 95th percentile of errors.
    pub ratio_p95_abs_error: Option<f64>,
}

fn share<'a>(of: impl Iterator<Item = &'a Comparison>, is: impl Fn(&Comparison) -> bool) -> Option<f64> {
    let (mut all, mut right) = (0_usize, 0_usize);
    for c in of {
        all += 1;
        right += usize::from(is(c));
    }
    (all > 0).then(|| right as f64 / all as f64)
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all: Vec<f64> = values.flatten().collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// A row's ratios to its reference.
struct Ratios {
    measured: f64,
    predicted: f64,
    spread: f64,
}

/// Right pairs less wrong ones, of the pairs of a work and quantity whose measured ratios differ by more than their spread; the
/// reference, at 1, is one of them.
fn tau(table: &Table, comparisons: &[&Comparison]) -> Option<f64> {
    let mut works: BTreeMap<(&str, usize), Vec<Ratios>> = BTreeMap::new();
    for c in comparisons {
        let key = (table.rows[c.row].work.as_str(), c.quantity);
        let list = works
            .entry(key)
            .or_insert_with(|| vec![Ratios { measured: 1.0, predicted: 1.0, spread: c.spread }]);
        // Of rows that repeat one another the order is noise: enough to know it of some thousands of pairs.
        if list.len() < 100 {
            list.push(Ratios { measured: c.measured, predicted: c.predicted, spread: c.spread });
        }
    }
    let of = |list: &Vec<Ratios>| {
        let (mut pairs, mut sum) = (0.0, 0.0);
        for (i, a) in list.iter().enumerate() {
            for b in &list[i + 1..] {
                if (a.measured / b.measured - 1.0).abs() > a.spread.max(b.spread) {
                    pairs += 1.0;
                    let agree = (a.measured - b.measured) * (a.predicted - b.predicted);
                    sum += agree.partial_cmp(&0.0).map_or(0.0, |o| f64::from(o as i8));
                }
            }
        }
        (pairs > 0.0).then(|| sum / pairs)
    };
    mean(works.values().map(of))
}

impl Held {
    fn of_table(table: &Table, comparisons: &[&Comparison]) -> Held {
        let differing = || comparisons.iter().copied().filter(|c| c.differs());
        let error = |p: f64, ratio: &dyn Fn(&Comparison) -> f64| {
            quantile(comparisons.iter().map(|c| (c.error(ratio(c)), 1.0)), p)
        };
        Held {
            tables: 1,
            comparisons: comparisons.len(),
            differing: differing().count(),
            sign_right: share(differing(), |c| c.is_sign_right(c.predicted)),
            tau: tau(table, comparisons),
            ratio_median_abs_error: error(0.5, &|c| c.predicted),
            ratio_p95_abs_error: error(0.95, &|c| c.predicted),
            coverage_90: share(comparisons.iter().copied(), Comparison::covers),
            no_difference_median_abs_error: error(0.5, &|_| 1.0),
            no_difference_p95_abs_error: error(0.95, &|_| 1.0),
            cube_median_abs_error: error(0.5, &|c| c.cube),
            cube_p95_abs_error: error(0.95, &|c| c.cube),
            cube_sign_right: share(differing(), |c| c.is_sign_right(c.cube)),
        }
    }

    /// The mean over tables.
    fn mean(parts: &[Held]) -> Held {
        let of = |figure: fn(&Held) -> Option<f64>| mean(parts.iter().map(figure));
        Held {
            tables: parts.len(),
            comparisons: parts.iter().map(|p| p.comparisons).sum(),
            differing: parts.iter().map(|p| p.differing).sum(),
            sign_right: of(|p| p.sign_right),
            tau: of(|p| p.tau),
            ratio_median_abs_error: of(|p| p.ratio_median_abs_error),
            ratio_p95_abs_error: of(|p| p.ratio_p95_abs_error),
            coverage_90: of(|p| p.coverage_90),
            no_difference_median_abs_error: of(|p| p.no_difference_median_abs_error),
            no_difference_p95_abs_error: of(|p| p.no_difference_p95_abs_error),
            cube_median_abs_error: of(|p| p.cube_median_abs_error),
            cube_p95_abs_error: of(|p| p.cube_p95_abs_error),
            cube_sign_right: of(|p| p.cube_sign_right),
        }
    }
}

/// Means over tables of the part of each that has a name.
fn parts(
    tables: &[Table],
    compared: &[Compared],
    names: &[&str],
    is: impl Fn(&Table, &Comparison, &str) -> bool,
) -> Vec<Part> {
    let part = |name: &&str| {
        let of = |(table, all): (&Table, &Compared)| {
            let some: Vec<&Comparison> = all.comparisons.iter().filter(|c| is(table, c, name)).collect();
            (!some.is_empty()).then(|| Held::of_table(table, &some))
        };
        let held: Vec<Held> = tables.iter().zip(compared).filter_map(of).collect();
        (!held.is_empty()).then(|| Part { name: (*name).to_owned(), held: Held::mean(&held) })
    };
    names.iter().filter_map(part).collect()
}

fn table_part(table: &Table, all: &Compared) -> TablePart {
    let unsaid = all.unsaid.iter().map(|(why, rows)| Unsaid {
        why: why.clone(),
        rows: rows.len(),
        first_row: rows.first().copied().unwrap_or_default(),
    });
    let calibrated: BTreeSet<&str> =
        table.rows.iter().filter(|r| r.calibrates).map(|r| r.label.as_str()).collect();
    TablePart {
        name: table.name.clone(),
        title: table.title.clone(),
        source: table.source.clone(),
        licence: table.licence.clone(),
        class: table.class.clone(),
        rows: table.rows.len(),
        predicted_rows: all.predicted,
        reference_rows: all.references,
        calibrating_rows: all.calibrating,
        calibrated_by: calibrated.into_iter().map(str::to_owned).collect(),
        unexplained: all.unexplained.clone(),
        unsaid: unsaid.collect(),
        left_out_rows: all.left_out,
        held: Held::of_table(table, &all.comparisons.iter().collect::<Vec<_>>()),
    }
}

/// The scores of tables and their comparisons.
pub(super) fn scores(tables: &[Table], compared: &[Compared], replicas: u64, quick: bool) -> Scores {
    let by_table: Vec<TablePart> = tables.iter().zip(compared).map(|(t, c)| table_part(t, c)).collect();
    let with_comparisons: Vec<Held> =
        by_table.iter().filter(|t| t.held.comparisons > 0).map(|t| t.held.clone()).collect();
    let all = Held::mean(&with_comparisons);
    let classes: BTreeSet<&str> = tables.iter().map(|t| t.class.as_str()).collect();
    let classes: Vec<&str> = classes.into_iter().collect();
    let sum = |of: fn(&TablePart) -> usize| by_table.iter().map(of).sum();
    let every = || compared.iter().flat_map(|c| &c.comparisons);
    let know_nothing = vec![
        KnowNothing {
            name: "no difference",
            sign_right: all.sign_right.map(|_| 0.0),
            ratio_median_abs_error: all.no_difference_median_abs_error,
            ratio_p95_abs_error: all.no_difference_p95_abs_error,
        },
        KnowNothing {
            name: "cube",
            sign_right: all.cube_sign_right,
            ratio_median_abs_error: all.cube_median_abs_error,
            ratio_p95_abs_error: all.cube_p95_abs_error,
        },
    ];
    Scores {
        tables: tables.len(),
        rows: sum(|t| t.rows),
        predicted_rows: sum(|t| t.predicted_rows),
        reference_rows: sum(|t| t.reference_rows),
        calibrating_rows: sum(|t| t.calibrating_rows),
        unsaid_rows: sum(|t| t.unsaid.iter().map(|u| u.rows).sum()),
        comparisons: all.comparisons,
        differing: all.differing,
        sign_right: all.sign_right,
        tau: all.tau,
        ratio_median_abs_error: all.ratio_median_abs_error,
        ratio_p95_abs_error: all.ratio_p95_abs_error,
        coverage_90: all.coverage_90,
        all_sign_right: share(every().filter(|c| c.differs()), |c| c.is_sign_right(c.predicted)),
        all_coverage_90: share(every(), Comparison::covers),
        know_nothing,
        replicas,
        quick,
        by_mechanism: parts(tables, compared, MECHANISMS, |t, c, name| t.rows[c.row].mechanism == name),
        by_class: parts(tables, compared, &classes, |t, _, name| t.class == name),
        by_table,
    }
}
