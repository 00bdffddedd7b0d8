//! Each row against its work's reference row, in each published quantity: measured, predicted, and what two know-nothings say.
//!
//! - *No difference* says 1 of every ratio.
//! - *Cube*: power goes with the cube of the clock and time with its inverse. Its clock is the highest that the row's policy
//!   allows (`userspace`: the one named, `powersave`: the lowest); it knows of nothing else.

use super::factors::Factors;
use super::predict::Ran;
use super::rough::Kind;
use super::table::{Measured, Quantity, Row, Setting, Table, Unit};
use std::collections::BTreeMap;
use wattwise_figure::ridge::quantile;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::platform;

/// What differs by less differs by nothing, where no spread was published.
pub const SPREAD: f64 = 0.02;
/// A row against its work's reference in one quantity.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Index of the row in the table.
    pub row: usize,
    /// Index of the quantity in the table.
    pub quantity: usize,
    /// Published ratio to the reference.
    pub measured: f64,
    /// By how much two of the same may differ: the greater of both spreads, [`SPREAD`] for one that is not told.
    pub spread: f64,
    /// Predicted ratio: the middle of the replicas.
    pub predicted: f64,
    /// 5 of 100 and 95 of 100 replicas are lower.
    pub drawn: (f64, f64),
    /// 5 of 100 are lower, the measurement's own spread and the model's roughness included.
    pub low: f64,
    /// 5 of 100 are higher.
    pub high: f64,
    /// What the cube says.
    pub cube: f64,
}

impl Comparison {
    /// Whether the published values differ by more than their spread.
    pub fn differs(&self) -> bool {
        (self.measured - 1.0).abs() > self.spread
    }

    /// Whether a ratio is on the measured one's side.
    pub fn is_sign_right(&self, ratio: f64) -> bool {
        (ratio - 1.0) * (self.measured - 1.0) > 0.0
    }

    /// How far a ratio is from the measured one, as a share of it.
    pub fn error(&self, ratio: f64) -> f64 {
        (ratio / self.measured - 1.0).abs()
    }

    /// Whether the interval has the measured ratio.
    pub fn covers(&self) -> bool {
        (self.low..=self.high).contains(&self.measured)
    }
}

/// A table's comparisons.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// In the order of rows, then of quantities.
    pub comparisons: Vec<Comparison>,
    /// Rows by why nothing is said of them.
    pub unsaid: BTreeMap<String, Vec<u64>>,
    /// Rows of which something is said.
    pub predicted: usize,
    /// Rows that calibrate.
    pub calibrating: usize,
    /// Rows that others are compared with.
    pub references: usize,
    /// Rows that `--quick` left out.
    pub left_out: usize,
    /// What is odd about rows that calibrate.
    pub unexplained: Vec<String>,
}

/// A work's reference: its rows' mean values, and its runs.
struct Reference<'t> {
    values: Vec<Option<Measured>>,
    setting: &'t Setting,
}

fn mean(values: impl Iterator<Item = Measured>) -> Option<Measured> {
    let all: Vec<Measured> = values.collect();
    let n = all.len() as f64;
    let value = all.iter().map(|m| m.value).sum::<f64>() / n;
    let spread = all.iter().filter_map(|m| m.spread).reduce(f64::max);
    (!all.is_empty()).then_some(Measured { value, spread })
}

/// Rows that repeat a setting of a work tell a spread of their own where none is published: so many at least.
const REPEATS: usize = 3;

/// Spreads that repeated rows tell, by work, setting and quantity.
type Spreads<'t> = BTreeMap<(&'t str, &'t Setting, usize), f64>;

fn spreads(table: &Table) -> Spreads<'_> {
    let mut values: BTreeMap<(&str, &Setting, usize), Vec<f64>> = BTreeMap::new();
    for row in &table.rows {
        let Ok(setting) = &row.setting else { continue };
        for (q, measured) in row.values.iter().enumerate() {
            if let Some(m) = measured.filter(|m| m.spread.is_none()) {
                values.entry((&row.work, setting, q)).or_default().push(m.value);
            }
        }
    }
    let of = |all: &[f64]| {
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt() / mean
    };
    let repeated = values.into_iter().filter(|(_, all)| all.len() >= REPEATS);
    repeated.map(|(key, all)| (key, of(&all))).collect()
}

/// Each work's reference; a work without one, or with several settings of it, has none.
fn references(table: &Table) -> BTreeMap<&str, Reference<'_>> {
    let mut by_work: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in table.rows.iter().filter(|r| r.is_reference) {
        by_work.entry(&row.work).or_default().push(row);
    }
    fn of<'t>(table: &Table, rows: &[&'t Row]) -> Option<Reference<'t>> {
        let setting = rows[0].setting.as_ref().ok()?;
        if rows.iter().any(|r| r.setting.as_ref().ok() != Some(setting)) {
            return None;
        }
        let value = |q: usize| mean(rows.iter().filter_map(|r| r.values[q]));
        Some(Reference { values: (0..table.quantities.len()).map(value).collect(), setting })
    }
    by_work.into_iter().filter_map(|(work, rows)| Some((work, of(table, &rows)?))).collect()
}

/// The clock that the cube reckons with, in kHz, of each of these settings.
fn clocks(table: &Table) -> BTreeMap<&Setting, f64> {
    let mut platforms = BTreeMap::new();
    let mut out = BTreeMap::new();
    for setting in table.rows.iter().filter_map(|r| r.setting.as_ref().ok()) {
        if out.contains_key(setting) {
            continue;
        }
        let known = platforms
            .entry(&*setting.machine)
            .or_insert_with(|| library::parsed(&setting.machine, "machine").ok().map(|m| platform(&m)));
        let Some(domain) = known.as_ref().and_then(|p| p.domains.first()) else { continue };
        let Ok(policy) = PolicySpec::parse(&setting.policy) else { continue };
        let (low, high) = policy.limits.range(domain);
        let khz = match policy.speed.name {
            "powersave" => low,
            "userspace" => domain
                .at_least(wattwise_policy::Khz(match policy.speed_settings.number("khz") as u32 {
                    0 => u32::MAX,
                    khz => khz,
                }))
                .clamp(low, high),
            _ => high,
        };
        out.insert(setting, f64::from(khz.0));
    }
    out
}

/// What the cube says of a quantity at a clock so many times the reference's.
fn cube(unit: Unit, clock: f64) -> f64 {
    match unit {
        Unit::J => clock * clock,
        Unit::W => clock * clock * clock,
        Unit::S => 1.0 / clock,
        Unit::Rate => clock,
    }
}

/// Middle, 5th and 95th percentile of the ratios over the replicas, each with its weight; the first is nominal and stands for
/// nothing but itself.
fn drawn(mut ratios: Vec<(f64, f64)>) -> Option<(f64, (f64, f64))> {
    if ratios.len() > 1 {
        ratios.remove(0);
    }
    let at = |p: f64| quantile(ratios.iter().copied(), p).filter(|r| *r > 0.0);
    Some((at(0.5)?, (at(0.05)?, at(0.95)?)))
}

/// A table's rows against their references.
pub(super) fn compared(at_table: usize, table: &Table, runs: &Ran) -> Compared {
    let references = references(table);
    let clocks = clocks(table);
    let spreads = spreads(table);
    let mut out = Compared { unexplained: runs.unexplained(at_table), ..Compared::default() };
    for (at, row) in table.rows.iter().enumerate() {
        out.calibrating += usize::from(row.calibrates);
        out.references += usize::from(row.is_reference);
        if row.is_reference {
            continue;
        }
        let (reference, setting) = match (references.get(row.work.as_str()), &row.setting) {
            (_, Err(why)) => {
                out.unsaid.entry(why.clone()).or_default().push(row.number);
                continue;
            }
            (None, _) => {
                let why = "its work has no reference row that can be run".to_owned();
                out.unsaid.entry(why).or_default().push(row.number);
                continue;
            }
            (Some(reference), Ok(setting)) => (reference, setting),
        };
        let own = runs.limited(at_table, &row.program, setting);
        let own_base = runs.limited(at_table, &row.program, reference.setting);
        let common = |setting| runs.common(at_table, &row.program, setting);
        let base = own_base.or(common(reference.setting));
        let (ran, base) = match (own.or(common(setting)), base) {
            (Some(Ok(ran)), Some(Ok(base))) => (ran, base),
            (Some(Err(why)), _) | (_, Some(Err(why))) => {
                out.unsaid.entry(why.clone()).or_default().push(row.number);
                continue;
            }
            _ => {
                out.left_out += 1;
                continue;
            }
        };
        if row.calibrates {
            continue;
        }
        let none = vec![Factors::default(); ran.len()];
        let factors = runs.factors(at_table, &row.program).unwrap_or(&none);
        let clock = match (clocks.get(setting), clocks.get(reference.setting)) {
            (Some(a), Some(b)) if *b > 0.0 => a / b,
            _ => 1.0,
        };
        let one = |(q, quantity): (usize, &Quantity)| -> Option<Comparison> {
            let (m, r) = (row.values[q]?, reference.values[q]?);
            let of = |setting| spreads.get(&(row.work.as_str(), setting, q)).copied();
            let its = m.spread.or(of(setting)).unwrap_or(SPREAD);
            let spread = its.max(r.spread.or(of(reference.setting)).unwrap_or(SPREAD));
            let ratios = ran.iter().zip(base).zip(factors);
            let ratios = ratios.map(|((a, b), f)| {
                let left = |in_engine: bool| if in_engine { f.in_engine() } else { *f };
                let [its, bases] = [own.is_some(), own_base.is_some()].map(left);
                (its.value(quantity, a) / bases.value(quantity, b), f.weight)
            });
            let (predicted, drawn) = drawn(ratios.collect())?;
            let (low, high) = Kind::of(quantity).roughness().interval(predicted, drawn, spread);
            let measured = m.value / r.value;
            Some(Comparison {
                row: at,
                quantity: q,
                measured,
                spread,
                predicted,
                drawn,
                low,
                high,
                cube: cube(quantity.unit, clock),
            })
        };
        let made: Vec<Comparison> = table.quantities.iter().enumerate().filter_map(one).collect();
        match made.is_empty() {
            true => out
                .unsaid
                .entry("nothing published of it and of its reference".into())
                .or_default()
                .push(row.number),
            false => out.predicted += 1,
        }
        out.comparisons.extend(made);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nominal_run_is_no_replica() {
        let ratios = std::iter::once(9.0).chain((0..=100).map(|i| 1.0 + f64::from(i) * 0.002));
        let (middle, (low, high)) = drawn(ratios.map(|r| (r, 1.0)).collect()).unwrap();
        assert!((middle - 1.1).abs() < 0.01, "{middle}");
        assert!((low - 1.01).abs() < 0.01 && (high - 1.19).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn the_cube_knows_the_clock_alone() {
        assert_eq!([Unit::J, Unit::W, Unit::S, Unit::Rate].map(|u| cube(u, 0.5)), [0.25, 0.125, 2.0, 0.5]);
    }
}
