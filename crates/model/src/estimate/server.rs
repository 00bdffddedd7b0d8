//! Watts of a whole server at the wall, from what its system says of itself.
//!
//! **Data**: results of SPECpower_ssj2008 (`machines/data/specpower.csv`). Each has the system's mean power while it does
//! 100, 90, ... 10 % of the operations per second of which it is capable, and in active idle.
//!
//! **Fit**: one line a load for the logarithm of watts, over
//! 1. how much there is: logarithms of chips, of cores a chip, of threads a core, of nominal MHz, of memory;
//! 2. when it was sold: the year and its square, and how much less each chip, core and MHz takes as years go by (products);
//! 3. what it is by its name: a low-power part, AMD, Intel since Sandy Bridge, AMD since Zen (see [`super::processor`]).
//!
//! The columns are scaled to unit variance and penalised ([`wattwise_figure::ridge`]); the penalty is that of [`PENALTIES`] which
//! predicts best when each processor family is left out in turn. Residuals far out weigh less. A family counts by the
//! square root of its results: 66 results with one family of processors are not 66 machines.
//!
//! **Interval**: the half width in logarithms that held nine of ten residuals of the families left out.
//!
//! **Newer servers** than all that was fitted to have a fit of their own, from the design power of their packages: [`ahead`].
//!
//! **Where it ends**: inputs beyond those seen are taken as the nearest that was; a tenth of the span is allowed. What it cannot know: disks, fans, the supply's size and the firmware's profile; two systems of the same description differ by
//! some 10 %. Results are tuned by their vendors: a server of the same make in service draws more.

pub mod ahead;

use super::Watts;
use super::processor::{self, ProcessorLine};
use super::table::{Expected, MeasurementTable, TableError};
use ahead::Ahead;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wattwise_figure::mistake::sentence;
use wattwise_figure::ridge::{self, ColumnScale, Points};

/// Loads of the benchmark, as shares of the greatest throughput; 0 is active idle.
pub const LOADS: [f64; 11] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0];
/// Columns with the watts at [`LOADS`].
const WATTS: [&str; 11] = ["w100", "w90", "w80", "w70", "w60", "w50", "w40", "w30", "w20", "w10", "w_idle"];
/// Columns that a table must have.
pub const COLUMNS: &[&str] = &[
    "cpu",
    "chips",
    "cores",
    "threads",
    "nominal_mhz",
    "mem_gb",
    "year",
    "w100",
    "w90",
    "w80",
    "w70",
    "w60",
    "w50",
    "w40",
    "w30",
    "w20",
    "w10",
    "w_idle",
];
/// What the penalty is chosen from, per unit of weight: from all but none to one that bends the fit.
pub const PENALTIES: [f64; 4] = [3e-4, 1e-3, 3e-3, 1e-2];
/// How far inputs may lie beyond those seen, as a share of their span.
const BEYOND: f64 = 0.1;
/// Share of residuals of families left out that an interval holds.
const HELD: f64 = 0.9;
/// Families below which nothing is left out in turn.
const LEAST_FAMILIES: usize = 3;
/// The year about which the square is taken.
const MIDDLE_YEAR: f64 = 2013.0;

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The processor's name.
    pub cpu: String,
    /// Packages.
    pub chips: f64,
    /// Cores of all packages.
    pub cores: f64,
    /// Hardware threads of all cores.
    pub threads: f64,
    /// Nominal clock.
    pub mhz: f64,
    /// Memory.
    pub memory_gb: f64,
    /// Year of sale.
    pub year: f64,
    /// Design power of a package in W as the machine itself tells it: for processors whose names no table has.
    pub design_w: Option<f64>,
}

/// A server with what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredServer {
    /// Its row in the table.
    pub row: u64,
    /// What it says of itself.
    pub server: Server,
    /// Watts at [`LOADS`]; nothing where a cell is empty or 0.
    pub watts: [Option<f64>; 11],
}

impl MeasuredServer {
    /// The family of its processor.
    pub fn family(&self) -> String {
        processor::read(&self.server.cpu, self.server.year).family
    }
}

/// A table's servers, and the rows that do not say what a prediction needs.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// Those that can be predicted.
    pub measured: Vec<MeasuredServer>,
    /// Rows with an empty input.
    pub without_inputs: Vec<u64>,
}

/// Reads a table of SPECpower results; `file` names it in errors.
///
/// # Errors
/// One line: a column is missing, or a cell is no number that makes sense.
pub fn read(file: &str, bytes: &[u8]) -> Result<Servers, TableError> {
    let table = MeasurementTable::read(file, bytes, COLUMNS)?;
    let mut servers = Servers::default();
    for row in &table.rows {
        let number = |column: &str, low: f64, high: f64, unit: &'static str| {
            table.number(row, column, &Expected { range: low..=high, unit })
        };
        let inputs = [
            number("chips", 1.0, 1e4, "packages")?,
            number("cores", 1.0, 1e6, "cores")?,
            number("threads", 1.0, 1e7, "threads")?,
            number("nominal_mhz", 10.0, 1e5, "MHz")?,
            number("mem_gb", 0.001, 1e8, "GB")?,
            number("year", 1990.0, 2100.0, "(a year)")?,
        ];
        let mut watts = [None; 11];
        for (cell, column) in watts.iter_mut().zip(WATTS) {
            *cell = number(column, 0.0, 1e7, "W")?.filter(|w| *w > 0.0);
        }
        let cpu = table.text(row, "cpu").to_owned();
        match inputs {
            [Some(chips), Some(cores), Some(threads), Some(mhz), Some(memory_gb), Some(year)] => {
                let server = Server { cpu, chips, cores, threads, mhz, memory_gb, year, design_w: None };
                servers.measured.push(MeasuredServer { row: row.number, server, watts });
            }
            _ => servers.without_inputs.push(row.number),
        }
    }
    Ok(servers)
}

/// Inputs of the fit before they are combined.
const INPUTS: usize = 6;
/// The last of them.
const YEAR: usize = INPUTS - 1;
/// Their names.
pub const INPUT_NAMES: [&str; INPUTS] =
    ["ln chips", "ln cores/chips", "ln threads/cores", "ln MHz", "ln memory_gb", "year"];
/// Columns of the fit, the constant not counted.
pub const FEATURES: [&str; 14] = [
    "chips",
    "cores a chip",
    "threads a core",
    "MHz",
    "memory",
    "year",
    "year^2",
    "year x cores a chip",
    "year x MHz",
    "year x chips",
    "low-power part",
    "AMD",
    "Intel since Sandy Bridge",
    "AMD since Zen",
];

fn inputs(s: &Server) -> [f64; INPUTS] {
    // A table may count threads where cores are meant: a ratio below 1 is none.
    let ratio = |a: f64, b: f64| (a / b).max(1.0).ln();
    [s.chips.ln(), ratio(s.cores, s.chips), ratio(s.threads, s.cores), s.mhz.ln(), s.memory_gb.ln(), s.year]
}

/// The least and the greatest of each input.
type Span = [[f64; 2]; INPUTS];

fn features(s: &Server, span: &Span) -> [f64; FEATURES.len()] {
    let mut at = inputs(s);
    for (v, [low, high]) in at.iter_mut().zip(span) {
        let beyond = BEYOND * (high - low);
        *v = v.clamp(low - beyond, high + beyond);
    }
    let [chips, cores, threads, mhz, memory, year] = at;
    let told = processor::read(&s.cpu, s.year);
    let is = |yes: bool| f64::from(u8::from(yes));
    let amd = matches!(told.line, ProcessorLine::AmdEarly | ProcessorLine::AmdZen);
    // About the middle of what is seen, so that the products do not stand for their factors.
    let years = (year - MIDDLE_YEAR) / 5.0;
    let (cores_8, mhz_2500) = (cores - 8_f64.ln(), mhz - 2500_f64.ln());
    [
        chips,
        cores,
        threads,
        mhz,
        memory,
        years,
        years * years,
        years * cores_8,
        years * mhz_2500,
        years * chips,
        is(told.low_power),
        is(amd),
        is(told.line == ProcessorLine::IntelLate),
        is(told.line == ProcessorLine::AmdZen),
    ]
}

/// A fit: from a server to watts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimator {
    /// Results that it was fitted to.
    pub results: usize,
    /// Families of processors among them.
    pub families: usize,
    /// The penalty that was chosen.
    pub penalty: f64,
    /// Least and greatest of each of [`INPUT_NAMES`].
    span: Vec<[f64; 2]>,
    /// Mean of each of [`FEATURES`].
    mean: Vec<f64>,
    /// Standard deviation of each.
    sd: Vec<f64>,
    /// For each of [`LOADS`]: the constant and a coefficient for each of [`FEATURES`], in logarithms of watts.
    coefficients: Vec<Vec<f64>>,
    /// For each of [`LOADS`]: half of the 90 % interval's width, in logarithms.
    half_width: Vec<f64>,
    /// For servers newer than these results; `None` where they are of too few years to tell.
    ahead: Option<Ahead>,
}

/// Columns with the constant.
const WIDTH: usize = FEATURES.len() + 1;

/// Results as the fit sees them.
struct ServerDesign {
    x: Vec<f64>,
    /// A column of logarithms of watts for each load; 0 where there is none.
    y: [Vec<f64>; 11],
    /// By load, for the same reason.
    weight: [Vec<f64>; 11],
    /// By number.
    family: Vec<usize>,
    families: usize,
    span: Span,
    scales: Vec<ColumnScale>,
}

/// The number of each result's family, and how many families there are.
fn families_of(results: &[&MeasuredServer]) -> (Vec<usize>, usize) {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = |r: &&MeasuredServer| {
        let next = numbers.len();
        *numbers.entry(r.family()).or_insert(next)
    };
    let family = results.iter().map(&mut number).collect();
    (family, numbers.len())
}

/// A family counts by the square root of its results.
fn family_weights(family: &[usize], families: usize) -> Vec<f64> {
    let mut members = vec![0.0_f64; families];
    family.iter().for_each(|&f| members[f] += 1.0);
    family.iter().map(|&f| 1.0 / members[f].sqrt()).collect()
}

impl ServerDesign {
    fn new(results: &[&MeasuredServer]) -> ServerDesign {
        let (family, families) = families_of(results);
        let base = family_weights(&family, families);
        let mut span = [[f64::INFINITY, f64::NEG_INFINITY]; INPUTS];
        for r in results {
            for ([low, high], v) in span.iter_mut().zip(inputs(&r.server)) {
                (*low, *high) = (low.min(v), high.max(v));
            }
        }
        let rows: Vec<[f64; FEATURES.len()]> = results.iter().map(|r| features(&r.server, &span)).collect();
        let column = |c: usize| rows.iter().map(|r| r[c]).collect::<Vec<f64>>();
        let scales: Vec<ColumnScale> =
            (0..FEATURES.len()).map(|c| ColumnScale::of(&column(c), &base)).collect();
        let x = rows.iter().flat_map(|r| scaled(r, &scales)).collect();
        let y = std::array::from_fn(|l| results.iter().map(|r| r.watts[l].map_or(0.0, f64::ln)).collect());
        let weight = std::array::from_fn(|l| {
            results.iter().zip(&base).map(|(r, b)| if r.watts[l].is_some() { *b } else { 0.0 }).collect()
        });
        ServerDesign { x, y, weight, family, families, span, scales }
    }

    /// The weights of a load without a family.
    fn without(&self, load: usize, left_out: usize) -> Vec<f64> {
        let keep = |(w, f): (&f64, &usize)| if *f == left_out { 0.0 } else { *w };
        self.weight[load].iter().zip(&self.family).map(keep).collect()
    }

    fn points<'a>(&'a self, load: usize, weight: &'a [f64]) -> Points<'a> {
        Points { columns: WIDTH, x: &self.x, y: &self.y[load], weight }
    }

    /// Residuals of every family at a load when it is left out, with their weights.
    fn left_out(&self, load: usize, fit: impl Fn(Points<'_>) -> Option<Vec<f64>>) -> Vec<(f64, f64)> {
        let mut off = Vec::new();
        for left_out in 0..self.families {
            let weight = self.without(load, left_out);
            let Some(line) = fit(self.points(load, &weight)) else { continue };
            let rows =
                self.x.chunks_exact(WIDTH).zip(&self.y[load]).zip(&self.weight[load]).zip(&self.family);
            let own = rows.filter(|((_, w), f)| **f == left_out && **w > 0.0);
            off.extend(own.map(|(((x, y), w), _)| ((ridge::dot(x, &line) - y).abs(), *w)));
        }
        off
    }
}

/// A row of the design: the constant, then the scaled columns.
fn scaled<'a>(row: &'a [f64], scales: &'a [ColumnScale]) -> impl Iterator<Item = f64> + 'a {
    std::iter::once(1.0).chain(row.iter().zip(scales).map(|(v, s)| s.apply(*v)))
}

impl Estimator {
    /// Fits to results. `None` with fewer than three families, or where some load was never measured.
    pub fn of(results: &[&MeasuredServer]) -> Option<Estimator> {
        let design = ServerDesign::new(results);
        if design.families < LEAST_FAMILIES {
            return None;
        }
        let mean_miss = |penalty: f64| {
            let off: Vec<(f64, f64)> =
                (0..LOADS.len()).flat_map(|l| design.left_out(l, |p| ridge::fit(p, penalty))).collect();
            off.iter().map(|(o, w)| o * w).sum::<f64>() / off.iter().map(|(_, w)| w).sum::<f64>()
        };
        let penalty = PENALTIES.into_iter().map(|p| (mean_miss(p), p)).min_by(|a, b| a.0.total_cmp(&b.0))?.1;
        let (mut coefficients, mut half_width) = (Vec::new(), Vec::new());
        for load in 0..LOADS.len() {
            coefficients.push(ridge::robust(design.points(load, &design.weight[load]), penalty)?);
            half_width.push(ridge::quantile(design.left_out(load, |p| ridge::robust(p, penalty)), HELD)?);
        }
        Some(Estimator {
            results: results.len(),
            families: design.families,
            penalty,
            span: design.span.to_vec(),
            mean: design.scales.iter().map(|s| s.mean).collect(),
            sd: design.scales.iter().map(|s| s.sd).collect(),
            coefficients,
            half_width,
            ahead: Ahead::of(results),
        })
    }

    /// Reads what [`Estimator::to_toml`] wrote.
    ///
    /// # Errors
    /// A sentence where it is not of this shape.
    pub fn from_toml(text: &str) -> Result<Estimator, String> {
        let e: Estimator = toml::from_str(text).map_err(|e| sentence(e.message()))?;
        let columns = [e.span.len(), e.mean.len(), e.sd.len()] == [INPUTS, FEATURES.len(), FEATURES.len()];
        let loads = [e.coefficients.len(), e.half_width.len()] == [LOADS.len(); 2]
            && e.coefficients.iter().all(|c| c.len() == WIDTH);
        if !(columns && loads && e.ahead.as_ref().is_none_or(Ahead::is_whole)) {
            return Err("expected a coefficient for each column and load".into());
        }
        Ok(e)
    }

    /// The bundled fit to all of `machines/data/specpower.csv`.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn bundled() -> Estimator {
        let text = include_str!("../../../../machines/data/server-estimator.toml");
        Estimator::from_toml(text).expect("generated and tested")
    }

    /// Its file, figures to six digits: the same on every platform.
    pub fn to_toml(&self) -> String {
        let list = |of: &[f64]| of.iter().map(|v| six(*v)).collect::<Vec<_>>().join(", ");
        let mut out = format!(
            "results = {}\nfamilies = {}\npenalty = {}\n",
            self.results,
            self.families,
            six(self.penalty)
        );
        out += &format!("# Least and greatest of: {}.\nspan = [\n", INPUT_NAMES.join(", "));
        self.span.iter().for_each(|s| out += &format!("  [{}],\n", list(s)));
        out += &format!("]\n# Of: {}.\nmean = [{}]\n", FEATURES.join(", "), list(&self.mean));
        out += &format!("sd = [{}]\n", list(&self.sd));
        out += &lists("ln W", &self.coefficients, &self.half_width);
        out += &self.ahead.as_ref().map(Ahead::to_toml).unwrap_or_default();
        out
    }

    /// Watts at [`LOADS`].
    pub fn watts(&self, server: &Server) -> [Watts; 11] {
        let mut span = [[0.0; 2]; INPUTS];
        span.copy_from_slice(&self.span);
        if let Some(ahead) = self.ahead.as_ref().filter(|_| server.year > span[YEAR][1]) {
            return ahead.watts(server);
        }
        let scales: Vec<ColumnScale> =
            self.mean.iter().zip(&self.sd).map(|(&mean, &sd)| ColumnScale { mean, sd }).collect();
        let x: Vec<f64> = scaled(&features(server, &span), &scales).collect();
        std::array::from_fn(|l| Watts::around(ridge::dot(&x, &self.coefficients[l]), self.half_width[l]))
    }
}

/// Coefficients and half widths by load, as TOML has them.
fn lists(unit: &str, coefficients: &[Vec<f64>], half_width: &[f64]) -> String {
    let list = |of: &[f64]| of.iter().map(|v| six(*v)).collect::<Vec<_>>().join(", ");
    let rows: String = coefficients.iter().map(|c| format!("  [{}],\n", list(c))).collect();
    format!(
        "# A line a load, 100 % to 10 % and idle: the constant, then a coefficient for each of these, {unit}.\n\
         coefficients = [\n{rows}]\n# By load: half of the 90 % interval, in logarithms.\nhalf_width = [{}]\n",
        list(half_width)
    )
}

/// A figure to six digits, as TOML has it.
fn six(v: f64) -> String {
    let rounded: f64 = format!("{v:.5e}").parse().unwrap_or(v);
    format!("{rounded:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> Vec<MeasuredServer> {
        read("specpower.csv", super::super::data::SPECPOWER.as_bytes()).expect("sound").measured
    }

    #[test]
    fn the_bundled_fit_is_of_the_bundled_data() {
        let given = given();
        let fresh = Estimator::of(&given.iter().collect::<Vec<_>>()).expect("enough");
        let bundled = Estimator::bundled();
        assert_eq!((fresh.results, fresh.families), (bundled.results, bundled.families));
        let server = &given[0].server;
        for (a, b) in fresh.watts(server).iter().zip(bundled.watts(server)) {
            assert!((a.median / b.median - 1.0).abs() < 1e-3, "{a:?} {b:?}: run `cargo xtask machines`");
        }
        assert_eq!(Estimator::from_toml(&bundled.to_toml()), Ok(bundled));
    }

    #[test]
    fn a_server_draws_more_at_more_load_and_with_more_chips() {
        let fit = Estimator::bundled();
        let mut server = Server {
            cpu: "Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz".into(),
            chips: 1.0,
            cores: 10.0,
            threads: 20.0,
            mhz: 2200.0,
            memory_gb: 64.0,
            year: 2019.0,
            design_w: None,
        };
        let one = fit.watts(&server);
        assert!(one.windows(2).all(|w| w[0].median > w[1].median), "{one:?}");
        assert!(one.iter().all(|w| w.low < w.median && w.median < w.high));
        (server.chips, server.cores, server.threads) = (2.0, 20.0, 40.0);
        let two = fit.watts(&server);
        assert!(one.iter().zip(&two).all(|(a, b)| a.median < b.median), "{two:?}");
        // What nobody has seen is taken as the nearest that was seen.
        server.cores = 1e6;
        assert!(fit.watts(&server)[0].median < 20_000.0);
    }

    /// A server of a year that was not seen has the fit for newer ones: the further ahead, the wider its interval, and less and less
    /// of the trend.
    #[test]
    fn newer_servers_have_wider_intervals() {
        let fit = Estimator::bundled();
        let at = |year: f64, cpu: &str, design_w: Option<f64>| {
            let [chips, cores, threads, mhz, memory_gb] = [2.0, 192.0, 384.0, 2400.0, 768.0];
            let cpu = cpu.to_owned();
            fit.watts(&Server { cpu, chips, cores, threads, mhz, memory_gb, year, design_w })[0]
        };
        let known = |year: f64| at(year, "AMD EPYC 9654 96-Core Processor", None);
        let width = |w: Watts| (w.high / w.low).ln();
        let [seen, next, later, last] = [2022.0, 2023.0, 2027.0, 2060.0].map(known);
        assert!(width(seen) < width(next) && width(next) < width(later), "{seen:?} {next:?} {later:?}");
        let trend = |a: Watts, b: Watts| (b.median / a.median).ln().abs();
        assert!(trend(later, last) < 2.0 * trend(next, later), "{later:?} {last:?}: the trend fades");
        // What it may draw by its maker's word goes by the name; where no table has that, by what the machine says.
        let told = |watts: f64| at(2023.0, "AMD EPYC 99Z4", Some(watts)).median;
        assert!((told(720.0) / told(360.0) - 2.0).abs() < 1e-9);
        assert_eq!(at(2023.0, "AMD EPYC 9654", Some(100.0)), at(2023.0, "AMD EPYC 9654", None));
        let guessed = at(2023.0, "AMD EPYC 99Z4", None).median / told(1.0);
        assert!((150.0..700.0).contains(&guessed), "{guessed} W a package by the other columns");
        for nonsense in [f64::NAN, -5.0, 0.0] {
            assert_eq!(at(2023.0, "AMD EPYC 99Z4", Some(nonsense)), at(2023.0, "AMD EPYC 99Z4", None));
        }
    }

    #[test]
    fn too_few_families_give_no_fit() {
        let given = given();
        let one: Vec<&MeasuredServer> = given.iter().filter(|m| m.family() == "Xeon 56xx").collect();
        assert!(one.len() > 30 && Estimator::of(&one).is_none());
    }

    #[test]
    fn rows_that_cannot_be_used_are_refused_or_named() {
        let head = COLUMNS.join(",");
        let row = |cpu: &str, chips: &str, w: &str| {
            format!("{head}\n{cpu},{chips},8,16,2000,16,2012,{w},9,9,9,9,9,9,9,9,9,0\n")
        };
        let told = read("s.csv", row("Xeon", "2", "200").as_bytes()).unwrap();
        assert_eq!((told.measured[0].watts[0], told.measured[0].watts[10]), (Some(200.0), None));
        assert_eq!(read("s.csv", row("Xeon", "", "200").as_bytes()).unwrap().without_inputs, [2]);
        for (chips, watts, part) in [
            ("0", "9", "row 2: chips '0'"),
            ("2", "-3", "row 2: w100 '-3': expected 0 to"),
            ("2", "NaN", "w100"),
        ] {
            let e = read("s.csv", row("Xeon", chips, watts).as_bytes()).unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
    }
}
