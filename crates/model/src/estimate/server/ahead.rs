//! Watts of a server that is newer than all that were measured.
//!
//! **What outlasts the years** is that a server draws in proportion to the design power of its packages: the fit starts from there,
//! and a heavily penalised line a load says how far from it a server is, by how much there is of it, when it was sold and what
//! its name tells. Where no table has the design power, a line of its own estimates it from the same columns.
//!
//! **Trends** go on beyond the last year that was seen, but each year moves them by `DAMPING` of what the year before did, as
//! trends are damped in forecasting (Gardner and McKenzie, Management Science 31, 1985). Older results count less: by half for
//! each `HALF_LIFE` years.
//!
//! **Intervals** are those that would have held: for each year of the data a fit to what was known before it predicts the
//! `HORIZON` years that followed. An interval widens with the square root of the years ahead, as the error of a trend that
//! wanders does.
//!
//! `PENALTY`, `DAMPING` and `HALF_LIFE` were chosen with the predictions of four years in view (`docs/notes/machines.md`); values
//! near them predict about as well.

use super::super::design_power;
use super::super::processor::{self, ProcessorLine};
use super::{LEAST_FAMILIES, LOADS, MeasuredServer, Server, Watts, families_of, family_weights, lists, six};
use serde::{Deserialize, Serialize};
use wattwise_figure::ridge::{self, ColumnScale, Points};

/// Years ahead that a fit is tried on.
const HORIZON: f64 = 5.0;
/// Per unit of weight: a column that alone explains what the design power leaves keeps half of its coefficient.
const PENALTY: f64 = 1.0;
/// Of its design power, the line of which is to tell sizes of package apart.
const DESIGN_PENALTY: f64 = 0.01;
/// Of a year's trend the next one has this much.
const DAMPING: f64 = 0.9;
/// Years in which a result's weight halves.
const HALF_LIFE: f64 = 2.0;
/// Years ahead at which an interval is the square root of two times as wide.
const WIDENING: f64 = 3.0;
/// Fewer earlier results than this tell nothing of later ones.
const LEAST_EARLIER: usize = 30;
/// Share of later results that an interval held.
const HELD: f64 = 0.9;
/// A package where no line can be fitted for it.
const USUAL_DESIGN_W: f64 = 95.0;

/// Columns of the fit, the constant not counted.
pub const FEATURES: [&str; 11] = [
    "chips",
    "cores a chip",
    "threads a core",
    "MHz",
    "memory a chip",
    "year",
    "low-power part",
    "entry part",
    "AMD",
    "Intel since Sandy Bridge",
    "AMD since Zen",
];
const WIDTH: usize = FEATURES.len() + 1;
/// The columns that are numbers; the others are yes or no.
const NUMBERS: usize = 5;
const YEAR: usize = NUMBERS;
/// How far numbers may lie beyond those seen, as a share of their span: newer servers have more cores and memory than any before.
const BEYOND: f64 = 0.5;

fn columns(s: &Server) -> [f64; FEATURES.len()] {
    // A table may count threads where cores are meant: a ratio below 1 is none.
    let ratio = |a: f64, b: f64| (a / b).max(1.0).ln();
    let told = processor::read(&s.cpu, s.year);
    let is = |yes: bool| f64::from(u8::from(yes));
    [
        s.chips.ln(),
        ratio(s.cores, s.chips),
        ratio(s.threads, s.cores),
        s.mhz.ln(),
        (s.memory_gb / s.chips).ln(),
        s.year,
        is(told.low_power),
        is(told.is_entry()),
        is(matches!(told.line, ProcessorLine::AmdEarly | ProcessorLine::AmdZen)),
        is(told.line == ProcessorLine::IntelLate),
        is(told.line == ProcessorLine::AmdZen),
    ]
}

/// A year as trends have it: each after the last one that was seen counts less than the one before.
fn damped(year: f64, last: f64) -> f64 {
    let ahead = year - last;
    if ahead <= 0.0 { year } else { last + DAMPING * (1.0 - DAMPING.powf(ahead)) / (1.0 - DAMPING) }
}

/// How much wider an interval is at a year than at the last one that was seen.
fn widening(year: f64, last: f64) -> f64 {
    (1.0 + (year - last).max(0.0) / WIDENING).sqrt()
}

/// Columns brought to the scale of those that were seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenColumns {
    /// The newest.
    last_year: f64,
    /// Least and greatest of the columns that are numbers.
    span: Vec<[f64; 2]>,
    mean: Vec<f64>,
    sd: Vec<f64>,
}

impl SeenColumns {
    fn of(results: &[&MeasuredServer], weight: &[f64]) -> SeenColumns {
        let rows: Vec<[f64; FEATURES.len()]> = results.iter().map(|r| columns(&r.server)).collect();
        let column = |c: usize| rows.iter().map(|r| r[c]).collect::<Vec<f64>>();
        let least = |c: usize| column(c).into_iter().fold(f64::INFINITY, f64::min);
        let most = |c: usize| column(c).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let scales: Vec<ColumnScale> =
            (0..FEATURES.len()).map(|c| ColumnScale::of(&column(c), weight)).collect();
        SeenColumns {
            last_year: most(YEAR),
            span: (0..NUMBERS).map(|c| [least(c), most(c)]).collect(),
            mean: scales.iter().map(|s| s.mean).collect(),
            sd: scales.iter().map(|s| s.sd).collect(),
        }
    }

    /// The constant, then a server's scaled columns.
    fn row(&self, s: &Server) -> [f64; WIDTH] {
        let mut at = columns(s);
        for (v, [low, high]) in at.iter_mut().zip(&self.span) {
            let beyond = BEYOND * (high - low);
            *v = v.clamp(low - beyond, high + beyond);
        }
        at[YEAR] = damped(s.year, self.last_year);
        let mut row = [1.0; WIDTH];
        for (to, ((v, mean), sd)) in row[1..].iter_mut().zip(at.iter().zip(&self.mean).zip(&self.sd)) {
            *to = (v - mean) / sd;
        }
        row
    }
}

/// Results as the fit sees them.
struct NewerDesign {
    seen: SeenColumns,
    x: Vec<f64>,
    weight: Vec<f64>,
    /// Logarithms of the design power of all packages.
    design: Vec<f64>,
    design_line: Vec<f64>,
}

impl NewerDesign {
    fn of(results: &[&MeasuredServer]) -> NewerDesign {
        let last = results.iter().map(|r| r.server.year).fold(f64::NEG_INFINITY, f64::max);
        let (family, families) = families_of(results);
        let mut weight = family_weights(&family, families);
        for (w, r) in weight.iter_mut().zip(results) {
            *w *= 0.5_f64.powf((last - r.server.year) / HALF_LIFE);
        }
        let seen = SeenColumns::of(results, &weight);
        let x: Vec<f64> = results.iter().flat_map(|r| seen.row(&r.server)).collect();
        let told: Vec<Option<f64>> = results.iter().map(|r| told_design_w(&r.server)).collect();
        let y: Vec<f64> = told.iter().map(|w| w.map_or(0.0, f64::ln)).collect();
        let known: Vec<f64> =
            told.iter().zip(&weight).map(|(w, weight)| if w.is_some() { *weight } else { 0.0 }).collect();
        let points = Points { columns: WIDTH, x: &x, y: &y, weight: &known };
        let usual = || {
            let mut line = vec![0.0; WIDTH];
            line[0] = USUAL_DESIGN_W.ln();
            line
        };
        let design_line = ridge::fit(points, DESIGN_PENALTY).unwrap_or_else(usual);
        let design = results.iter().map(|r| ln_design(&r.server, &seen, &design_line)).collect();
        NewerDesign { seen, x, weight, design, design_line }
    }

    /// The line of a load: of the logarithm of watts a watt of design power.
    fn line(&self, results: &[&MeasuredServer], load: usize) -> Option<Vec<f64>> {
        let y: Vec<f64> = results
            .iter()
            .zip(&self.design)
            .map(|(r, d)| r.watts[load].map_or(0.0, |w| w.ln() - d))
            .collect();
        let weight: Vec<f64> =
            results.iter().zip(&self.weight).map(|(r, w)| r.watts[load].map_or(0.0, |_| *w)).collect();
        ridge::robust(Points { columns: WIDTH, x: &self.x, y: &y, weight: &weight }, PENALTY)
    }

    /// The logarithm of a server's watts by a line.
    fn ln_watts(&self, s: &Server, line: &[f64]) -> f64 {
        ridge::dot(&self.seen.row(s), line) + ln_design(s, &self.seen, &self.design_line)
    }
}

/// Watts of a package by its maker's word: as its name has it, else as the machine says.
fn told_design_w(s: &Server) -> Option<f64> {
    design_power::of(&s.cpu).or(s.design_w.filter(|w| w.is_finite() && *w > 0.0))
}

/// The logarithm of the design power of all of a server's packages.
fn ln_design(s: &Server, seen: &SeenColumns, line: &[f64]) -> f64 {
    let package = told_design_w(s).map_or_else(|| ridge::dot(&seen.row(s), line), f64::ln);
    s.chips.ln() + package
}

/// A fit for servers that are newer than all results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    #[serde(flatten)]
    seen: SeenColumns,
    /// The constant and a coefficient for each of [`FEATURES`], in logarithms of a package's design power.
    design_line: Vec<f64>,
    /// For each of [`LOADS`] the same, in logarithms of watts a watt of design power.
    coefficients: Vec<Vec<f64>>,
    /// From what later results were off by: half of the 90 % interval's width at the last year, in logarithms.
    half_width: Vec<f64>,
}

/// What was known before a year.
struct Earlier<'a> {
    year: f64,
    results: Vec<&'a MeasuredServer>,
    design: NewerDesign,
}

impl Ahead {
    /// Fits to results. `None` where they are of too few years to tell.
    pub(super) fn of(results: &[&MeasuredServer]) -> Option<Ahead> {
        let mut years: Vec<f64> = results.iter().map(|r| r.server.year).collect();
        years.sort_by(f64::total_cmp);
        years.dedup();
        let known = |year: f64| {
            let earlier: Vec<&MeasuredServer> =
                results.iter().copied().filter(|r| r.server.year < year).collect();
            let enough = earlier.len() >= LEAST_EARLIER && families_of(&earlier).1 >= LEAST_FAMILIES;
            enough.then(|| Earlier { year, design: NewerDesign::of(&earlier), results: earlier })
        };
        let known: Vec<Earlier<'_>> = years.into_iter().filter_map(known).collect();
        let (family, families) = families_of(results);
        let weight = family_weights(&family, families);
        let whole = NewerDesign::of(results);
        let (mut coefficients, mut half_width) = (Vec::new(), Vec::new());
        for load in 0..LOADS.len() {
            let off = known.iter().flat_map(|k| k.misses(results, &weight, load));
            half_width.push(ridge::quantile(off, HELD)?);
            coefficients.push(whole.line(results, load)?);
        }
        Some(Ahead { seen: whole.seen, design_line: whole.design_line, coefficients, half_width })
    }

    /// Whether it has a coefficient for each column and load.
    pub(super) fn is_whole(&self) -> bool {
        let SeenColumns { span, mean, sd, .. } = &self.seen;
        [span.len(), mean.len(), sd.len()] == [NUMBERS, FEATURES.len(), FEATURES.len()]
            && [self.coefficients.len(), self.half_width.len()] == [LOADS.len(); 2]
            && self.coefficients.iter().chain([&self.design_line]).all(|c| c.len() == WIDTH)
    }

    /// Watts at [`LOADS`].
    pub(super) fn watts(&self, s: &Server) -> [Watts; 11] {
        let row = self.seen.row(s);
        let design = ln_design(s, &self.seen, &self.design_line);
        let wider = widening(s.year, self.seen.last_year);
        std::array::from_fn(|l| {
            Watts::around(ridge::dot(&row, &self.coefficients[l]) + design, self.half_width[l] * wider)
        })
    }

    /// Its part of the estimator's file.
    pub(super) fn to_toml(&self) -> String {
        let span: String = self
            .seen
            .span
            .iter()
            .map(|[low, high]| format!("  [{}, {}],\n", six(*low), six(*high)))
            .collect();
        let list = |of: &[f64]| of.iter().map(|v| six(*v)).collect::<Vec<_>>().join(", ");
        format!(
            "\n# For servers newer than all of these.\n[ahead]\nlast_year = {}\n# Least and greatest of the first \
             {NUMBERS} of: {}.\nspan = [\n{span}]\nmean = [{}]\nsd = [{}]\n# ln W of a package's design power.\ndesign_line = [{}]\n{}",
            six(self.seen.last_year),
            FEATURES.join(", "),
            list(&self.seen.mean),
            list(&self.seen.sd),
            list(&self.design_line),
            lists("ln W a W of design power", &self.coefficients, &self.half_width),
        )
    }
}

impl Earlier<'_> {
    /// How far the years after what was known are predicted off from it, in logarithms and in the widths of their intervals, each with
    /// its weight.
    fn misses(&self, results: &[&MeasuredServer], weight: &[f64], load: usize) -> Vec<(f64, f64)> {
        let Some(line) = self.design.line(&self.results, load) else { return Vec::new() };
        let later = results.iter().zip(weight).filter_map(|(r, weight)| {
            let watts =
                r.watts[load].filter(|_| (self.year..self.year + HORIZON).contains(&r.server.year))?;
            let off = (self.design.ln_watts(&r.server, &line) - watts.ln()).abs();
            Some((off / widening(r.server.year, self.design.seen.last_year), *weight))
        });
        later.collect()
    }
}
