//! The library held against tables of what others measured.
//!
//! Every row is predicted from what it says of its machine alone, by a fit that has seen nothing of that machine's kind:
//! its family of processors ([`specpower`]), its SoC ([`freqbench`]). So the same command is a cross-validation on the
//! library's own data and a test on any other table.

pub mod freqbench;
pub mod specpower;

use serde::Serialize;
use std::collections::BTreeMap;
use wattwise_figure::ridge::quantile;
use wattwise_model::estimate::Watts;
use wattwise_model::estimate::table::TableError;

/// Why a table cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// It cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Without this kind nothing is left to fit to.
    #[error("{0}: too little is left in the library to predict it without what it is held against")]
    Fit(String),
}

/// How well predictions of watts hold.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// Predictions.
    pub predictions: usize,
    /// Half of the predictions are off by no more, as a share of the measured watts.
    pub median_abs_error: f64,
    /// 95 of 100 are off by no more.
    pub p95_abs_error: f64,
    /// Share of measured watts within the 90 % intervals.
    pub coverage_90: f64,
}

/// A part of a table.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// A load, a family of processors, a SoC.
    pub name: String,
    /// How well its predictions hold.
    #[serde(flatten)]
    pub held: Held,
}

/// Rows that could not be scored.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Why.
    pub why: &'static str,
    /// How many.
    pub rows: usize,
    /// The first of them; the header is row 1.
    pub first_row: u64,
}

impl LeftOut {
    /// Of rows, where there are any.
    fn of(why: &'static str, rows: &[u64]) -> Option<LeftOut> {
        rows.iter().min().map(|&first_row| LeftOut { why, rows: rows.len(), first_row })
    }
}

/// One power, predicted and measured.
struct PowerPair {
    predicted: Watts,
    measured: f64,
}

impl PowerPair {
    fn error(&self) -> f64 {
        (self.predicted.median / self.measured - 1.0).abs()
    }
}

impl Held {
    /// Of pairs; `None` of none.
    fn of<'a>(pairs: impl IntoIterator<Item = &'a PowerPair>) -> Option<Held> {
        let pairs: Vec<&PowerPair> = pairs.into_iter().collect();
        let at = |p: f64| quantile(pairs.iter().map(|x| (x.error(), 1.0)), p);
        let held = pairs.iter().filter(|x| x.predicted.holds(x.measured)).count();
        Some(Held {
            predictions: pairs.len(),
            median_abs_error: at(0.5)?,
            p95_abs_error: at(0.95)?,
            coverage_90: held as f64 / pairs.len() as f64,
        })
    }
}

/// The pairs by name, names in their order.
fn groups<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a PowerPair)>) -> Vec<Group> {
    let mut by_name: BTreeMap<&str, Vec<&PowerPair>> = BTreeMap::new();
    pairs.into_iter().for_each(|(name, pair)| by_name.entry(name).or_default().push(pair));
    let group = |(name, pairs): (&str, Vec<&PowerPair>)| {
        Some(Group { name: name.to_owned(), held: Held::of(pairs)? })
    };
    by_name.into_iter().filter_map(group).collect()
}
