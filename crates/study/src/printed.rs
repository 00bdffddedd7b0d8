//! Every figure that the studies print, each with what is to be said of it here.
//!
//! A study's file in `studies/figures/` has a row for each figure in the order of the text: where it stands, what it is, its
//! value and unit, and how ours is got (`key`, the name under which the study's rerun answers) or why there is none
//! (`note`). `studies/printed.csv` is the bare list of all 740, made by a reading that knew nothing of the model.
//!
//! What counts is decided here and nowhere else:
//!
//! 1. *Basis.* `input`: the program reads it. `fitted`: a number of the model was set, chosen or added after this value was
//!    seen, or the value follows from such. `predicted`: neither. `none`: there is nothing to set beside it.
//! 2. *Within.* Ours is off by at most a tenth, or by at most the published spread, or by no more than the last printed
//!    digit hides; a residency (a level in per cent) also by at most 2 points. "Over 20 s" is met by what is over.
//! 3. *Trivial*, and counted apart: a level in per cent printed as at most 2 or at least 98, a single run whose mean has a
//!    row, the mean of other rows, a value that is printed a second time, a count of nothing.
//! 4. *Sign.* Only a change has one; a level has none. A claim without a size ("not above the default") is met or not, and
//!    counts as a sign. *Order*: two published levels of which one is the greater.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How our figure for a printed one came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Standing {
    /// The program reads it.
    Input,
    /// The model was set to it, or it follows from what was.
    Fitted,
    /// It follows from what was not set to it.
    Predicted,
    /// There is nothing to set beside it.
    None,
}

/// A printed figure with ours beside it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrintedFigure {
    /// The study's number.
    pub study: &'static str,
    /// Where it stands in the study.
    pub location: String,
    /// What it is.
    pub quantity: String,
    /// As printed; a claim without a size as a bound (`<=0`).
    pub printed: String,
    /// The printed number; `None`: a claim without a size.
    pub published: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Ours; `None` where there is nothing to set beside it.
    pub ours: Option<f64>,
    /// Spread of ours over starts or seeds (one standard deviation).
    pub ours_sd: Option<f64>,
    /// How ours came about.
    pub basis: Standing,
    /// Counted apart: agreement says little.
    pub trivial: bool,
    /// Whether ours is near enough; `None` where sizes do not compare.
    pub within: Option<bool>,
    /// Whether ours has the published sign or meets the claim; `None` for a level.
    pub sign: Option<bool>,
    /// Of a prediction that misses: why, or "unknown". Else how ours was got, or why there is none, where that wants saying.
    pub cause: Option<String>,
}

/// What the figures of a study, or of all, come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// Figures printed.
    pub printed: usize,
    /// Rows beside which ours stands.
    pub rows: usize,
    /// Rows that the program reads.
    pub input: usize,
    /// Rows that the model was set to.
    pub fitted: usize,
    /// Rows that are predicted.
    pub predicted: usize,
    /// Predicted rows that count: not trivial, and with a size.
    pub counted: usize,
    /// Of those: near enough.
    pub within: usize,
    /// Predicted trivial rows with a size.
    pub trivial: usize,
    /// Of those: near enough.
    pub trivial_within: usize,
    /// Predicted changes and claims, and orders of which one side at least is predicted.
    pub signs: usize,
    /// Of those: as published.
    pub signs_right: usize,
}

impl Score {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Score) -> Score {
        Score {
            printed: self.printed + other.printed,
            rows: self.rows + other.rows,
            input: self.input + other.input,
            fitted: self.fitted + other.fitted,
            predicted: self.predicted + other.predicted,
            counted: self.counted + other.counted,
            within: self.within + other.within,
            trivial: self.trivial + other.trivial,
            trivial_within: self.trivial_within + other.trivial_within,
            signs: self.signs + other.signs,
            signs_right: self.signs_right + other.signs_right,
        }
    }

    /// In a sentence.
    pub fn verdict(&self) -> String {
        if self.counted == 0 && self.signs == 0 {
            return format!(
                "Nothing of the {} printed figures is predicted: {} were fitted, {} are inputs.",
                self.printed, self.fitted, self.input
            );
        }
        let mut told = format!(
            "Of {} predicted figures that are not trivial, {} come out within 10 % or the published spread",
            self.counted, self.within
        );
        if self.signs > 0 {
            told += &format!("; {} of {} signs and orders are as published", self.signs_right, self.signs);
        }
        told + "."
    }
}

/// A reason for misses, tied to figures by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissCause {
    /// Keys begin so, or are so.
    pub about: Vec<String>,
    /// The reason, from the figures.
    pub text: String,
}

/// What a study's rerun answers: by key, ours and its spread.
#[derive(Clone, Debug, Default)]
pub struct OurFigures(BTreeMap<String, (f64, Option<f64>)>);

impl OurFigures {
    /// Sets ours for a key.
    pub fn set(&mut self, key: impl Into<String>, value: f64) {
        self.0.insert(key.into(), (value, None));
    }

    /// Sets ours with its spread.
    pub fn set_spread(&mut self, key: impl Into<String>, (mean, sd): (f64, f64)) {
        self.0.insert(key.into(), (mean, Some(sd)));
    }

    /// Its spread.
    pub fn spread(&self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(|v| v.1)
    }

    /// Ours for a key.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).map(|v| v.0)
    }
}

/// What a row's size means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Kind {
    #[serde(rename = "level")]
    Level,
    #[serde(rename = "change")]
    Change,
    /// A claim without a size, on a change.
    #[serde(rename = "bound")]
    Bound,
    /// A level that is said to be above the printed one.
    #[serde(rename = "bound>")]
    Above,
    /// A level that is said to be below it.
    #[serde(rename = "bound<")]
    Below,
}

/// A row of a study's file.
#[derive(Clone, Debug, Deserialize)]
struct FileRow {
    location: String,
    quantity: String,
    value: String,
    unit: String,
    kind: Kind,
    key: String,
    basis: Standing,
    apart: String,
    spread: String,
    note: String,
}

/// Largest deviation that counts as near, as a share.
const NEAR: f64 = 0.1;
/// Of a residency, in points.
const NEAR_POINTS: f64 = 2.0;
/// A level in per cent is trivial up to here, and from 100 less this.
const TRIVIAL_PERCENT: f64 = 2.0;
/// Within half a per cent of nothing is "not effective" too.
const NOTHING_PERCENT: f64 = 0.5;

impl FileRow {
    fn number(&self) -> Option<f64> {
        self.value.parse().ok().filter(|_| self.kind != Kind::Bound)
    }

    fn trivial(&self) -> bool {
        let edge = |v: f64| v <= TRIVIAL_PERCENT || v >= 100.0 - TRIVIAL_PERCENT;
        !self.apart.is_empty()
            || (self.unit == "%" && self.kind == Kind::Level && self.number().is_some_and(edge))
    }

    /// Half a unit of the last printed digit.
    fn rounding(&self) -> f64 {
        let digits = self.value.split_once('.').map_or(0, |(_, d)| d.len());
        0.5 * 10f64.powi(-(digits as i32))
    }

    fn near(&self, ours: f64) -> Option<bool> {
        let printed = self.number()?;
        let off = (ours - printed).abs();
        Some(match self.kind {
            Kind::Above => ours >= printed,
            Kind::Below => ours <= printed,
            _ => {
                let spread = self.spread.parse().unwrap_or(0.0);
                // Sums of decimal fractions: a hair of slack.
                let slack = 1e-9;
                off <= NEAR * printed.abs() + slack
                    || off <= self.rounding() + slack
                    || off <= spread + slack
                    || (self.residency() && off <= NEAR_POINTS)
            }
        })
    }

    fn residency(&self) -> bool {
        self.kind == Kind::Level && self.unit == "%" && self.quantity.starts_with('c')
    }

    fn sign(&self, ours: f64) -> Option<bool> {
        match self.kind {
            Kind::Change => Some(ours * self.number()? > 0.0),
            Kind::Bound => Some(match self.value.as_str() {
                ">0" => ours > 0.0,
                "<0" => ours < 0.0,
                _ => ours <= NOTHING_PERCENT,
            }),
            _ => None,
        }
    }
}

/// A study's printed figures.
pub struct List {
    study: &'static str,
    rows: Vec<FileRow>,
}

impl List {
    /// Reads a study's file; one that cannot be read is a fault of this crate's build.
    pub(crate) fn read(study: &'static str, csv: &'static str) -> List {
        let rows = csv::Reader::from_reader(csv.as_bytes()).deserialize().filter_map(Result::ok).collect();
        List { study, rows }
    }

    /// The number that the study prints under a key: its mean where runs are printed too.
    pub(crate) fn published(&self, key: &str) -> Option<f64> {
        let once = |r: &&FileRow| r.key == key && !matches!(r.apart.as_str(), "run" | "repeat");
        self.rows.iter().find(once).and_then(FileRow::number)
    }

    /// The figures with ours beside them.
    pub(crate) fn beside(&self, ours: &OurFigures, causes: &[MissCause]) -> Vec<PrintedFigure> {
        let row = |r: &FileRow| {
            let value = ours.0.get(&r.key).copied().filter(|v| v.0.is_finite() && !r.key.is_empty());
            let (within, sign) = (value.and_then(|v| r.near(v.0)), value.and_then(|v| r.sign(v.0)));
            let basis = if value.is_none() { Standing::None } else { r.basis };
            let missed = within == Some(false) || sign == Some(false);
            let about = |c: &&MissCause| c.about.iter().any(|k| r.key.starts_with(k.as_str()));
            let cause = match basis {
                Standing::Predicted if missed => {
                    Some(causes.iter().find(about).map_or("unknown".to_owned(), |c| c.text.clone()))
                }
                _ => (!r.note.is_empty()).then(|| r.note.clone()),
            };
            PrintedFigure {
                study: self.study,
                location: r.location.clone(),
                quantity: r.quantity.clone(),
                printed: r.value.clone(),
                published: r.number(),
                unit: r.unit.clone(),
                ours: value.map(|v| v.0),
                ours_sd: value.and_then(|v| v.1),
                basis,
                trivial: r.trivial(),
                within,
                sign,
                cause,
            }
        };
        self.rows.iter().map(row).collect()
    }

    /// Pairs of keys of which the first is published as the lesser: those of which a side is predicted, and whether ours are so.
    fn orders(&self, ours: &OurFigures, pairs: &[(&str, &str)]) -> (usize, usize) {
        let predicted = |key: &str| self.rows.iter().any(|r| r.key == key && r.basis == Standing::Predicted);
        let counts = |p: &&(&str, &str)| predicted(p.0) || predicted(p.1);
        let right = |p: &&(&str, &str)| ours.get(p.0).zip(ours.get(p.1)).is_some_and(|(a, b)| a < b);
        let pairs: Vec<_> = pairs.iter().filter(counts).collect();
        (pairs.len(), pairs.iter().filter(|p| right(p)).count())
    }

    /// What the figures come to; `pairs` are keys in their published order.
    pub(crate) fn score(
        &self,
        figures: &[PrintedFigure],
        ours: &OurFigures,
        pairs: &[(&str, &str)],
    ) -> Score {
        let of = |basis: Standing| figures.iter().filter(|f| f.basis == basis).count();
        let predicted = || figures.iter().filter(|f| f.basis == Standing::Predicted);
        let sized = |trivial: bool| predicted().filter(move |f| f.trivial == trivial && f.within.is_some());
        let near = |trivial: bool| sized(trivial).filter(|f| f.within == Some(true)).count();
        let signs = || predicted().filter(|f| !f.trivial).filter_map(|f| f.sign);
        let (orders, orders_right) = self.orders(ours, pairs);
        Score {
            printed: figures.len(),
            rows: figures.iter().filter(|f| f.ours.is_some()).count(),
            input: of(Standing::Input),
            fitted: of(Standing::Fitted),
            predicted: of(Standing::Predicted),
            counted: sized(false).count(),
            within: near(false),
            trivial: sized(true).count(),
            trivial_within: near(true),
            signs: signs().count() + orders,
            signs_right: signs().filter(|s| *s).count() + orders_right,
        }
    }

    /// Whether the list itself has the pairs in that order.
    #[cfg(test)]
    pub(crate) fn has_order(&self, pair: &(&str, &str)) -> bool {
        self.published(pair.0).zip(self.published(pair.1)).is_some_and(|(a, b)| a < b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, value: &str, unit: &str, spread: &str) -> FileRow {
        FileRow {
            location: "table".into(),
            quantity: if unit == "%" { "c1" } else { "time" }.into(),
            value: value.into(),
            unit: unit.into(),
            kind,
            key: "k".into(),
            basis: Standing::Predicted,
            apart: String::new(),
            spread: spread.into(),
            note: String::new(),
        }
    }

    #[test]
    fn near_is_a_tenth_the_spread_the_rounding_or_two_points() {
        let near = |r: &FileRow, ours: f64| r.near(ours).expect("a size");
        let time = row(Kind::Level, "100.0", "ms", "");
        assert!(near(&time, 110.0) && near(&time, 90.0) && !near(&time, 110.1) && !near(&time, 89.9));
        let spread = row(Kind::Level, "386.2", "ms", "60");
        assert!(near(&spread, 446.0) && !near(&spread, 446.3));
        // 1 may have been 1.5; 0.01 no more than 0.015.
        assert!(near(&row(Kind::Level, "1", "count", ""), 1.5));
        assert!(!near(&row(Kind::Level, "0.01", "W", ""), 0.016));
        let residency = row(Kind::Level, "5.2", "%", "");
        assert!(near(&residency, 7.1) && !near(&residency, 7.3));
        // Points are for levels: a change of 5 % is not near one of 7.
        assert!(!near(&row(Kind::Change, "5", "%", ""), 7.0));
        assert!(
            near(&row(Kind::Above, "20", "s", ""), 29.0) && !near(&row(Kind::Above, "20", "s", ""), 19.9)
        );
        assert_eq!(row(Kind::Bound, "<=0", "%", "").near(-1.0), None);
    }

    #[test]
    fn only_changes_and_claims_have_a_sign() {
        assert_eq!(row(Kind::Level, "70.6", "%", "").sign(50.0), None);
        assert_eq!(row(Kind::Change, "-40", "%", "").sign(-3.0), Some(true));
        assert_eq!(row(Kind::Change, "-40", "%", "").sign(3.0), Some(false));
        assert_eq!(row(Kind::Bound, "<=0", "%", "").sign(0.4), Some(true));
        assert_eq!(row(Kind::Bound, "<=0", "%", "").sign(0.6), Some(false));
        assert_eq!(row(Kind::Bound, ">0", "sign", "").sign(-0.1), Some(false));
    }

    #[test]
    fn edges_runs_and_means_are_trivial() {
        for (value, trivial) in [("2", true), ("2.1", false), ("97.9", false), ("98.0", true)] {
            assert_eq!(row(Kind::Level, value, "%", "").trivial(), trivial, "{value}");
        }
        assert!(!row(Kind::Change, "1", "%", "").trivial(), "a small change is none");
        assert!(!row(Kind::Level, "1", "ms", "").trivial(), "nor a short time");
        assert!(FileRow { apart: "run".into(), ..row(Kind::Level, "50", "Mb/s", "") }.trivial());
    }

    #[test]
    fn a_miss_has_its_cause_or_says_unknown_and_what_has_no_answer_is_none() {
        let list = List { study: "000", rows: vec![row(Kind::Level, "100", "ms", "")] };
        let beside = |value: Option<f64>, causes: &[MissCause]| {
            let mut ours = OurFigures::default();
            value.into_iter().for_each(|v| ours.set("k", v));
            let figures = list.beside(&ours, causes);
            (figures[0].clone(), list.score(&figures, &ours, &[]))
        };
        let (missed, score) = beside(Some(50.0), &[]);
        assert_eq!((missed.within, missed.cause.as_deref()), (Some(false), Some("unknown")));
        assert_eq!((score.counted, score.within, score.rows), (1, 0, 1));
        let why = MissCause { about: vec!["k".into()], text: "the clock".into() };
        assert_eq!(beside(Some(50.0), std::slice::from_ref(&why)).0.cause.as_deref(), Some("the clock"));
        assert_eq!(beside(Some(100.0), &[why]).0.cause, None, "what agrees wants no cause");
        let (nothing, score) = beside(None, &[]);
        assert_eq!((nothing.basis, score.predicted, score.rows), (Standing::None, 0, 0));
    }
}
