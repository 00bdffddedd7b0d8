//! The figures of a machine that are not certain, and how far each may be off.
//!
//! What is fact is not here: counts, topology, names, clocks, boost tables, and the latencies and thresholds that
//! policies read from the operating system's tables. What is here is drawn anew in each replica
//! ([`MachineModel::draw`]): powers, voltages, capacitance and leakage, what threads of a core share, times that the
//! hardware really takes, heat.
//!
//! How far a figure may be off follows from its confidence, unless the file gives a `range`:
//!
//! | confidence | the figure is |
//! |---|---|
//! | datasheet, device-tree | within 3 % |
//! | measured | within 5 % |
//! | fitted | within 10 % |
//! | guess | off by a log-normal factor whose logarithm has a standard deviation of 0.25 |
//! | kernel-table, device-tree: a latency | a worst case: evenly between 0.3 and 1 of it |
//! | kernel-table: a power | a guess: kernels list no powers |
//! | kernel-table: anything else | within 3 %, as it is the vendor's |
//! | guess: a voltage | within 10 %: processes leave no more room, and power goes with its square |
//!
//! "Within" means that 19 of 20 draws are. Every draw is a factor, and its median is 1, but that of a worst case,
//! which is never exceeded. A figure of several values (the watts of all C-states) has one factor: who guessed one
//! too high guessed the others too high. A value with a source of its own (`sources.C6`) has a figure of its own.
//! A figure that is 0 says "counted elsewhere" and is not drawn.

mod table;

pub use super::range::Range;
use super::tables::{DrawsTable, File};
use super::{Confidence, Figure, MachineModel};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::{FigureRow, Quantity, ROWS, spell_out};
use wattwise_figure::{Random, normal};

/// Standard deviations that hold 19 of 20 draws.
const MOST: f64 = 1.96;
/// Spread of a guess: standard deviation of the logarithm of its factor.
const GUESS_SD: f64 = 0.25;
/// What a latency really takes at least, of the worst case in a kernel's table.
const LEAST_OF_WORST: f64 = 0.3;
/// Factors that a range may span, up and down: beyond, it is a slip of the unit.
const WIDEST: f64 = 100.0;

/// How the factor of a figure is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Log-normal, as wide as a guess is.
    Guess,
    /// 19 of 20 factors lie between `low` (at most 1) and `high` (at least 1); half of them below 1.
    Within {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Evenly between `least` and 1.
    AtMost {
        /// The lower end.
        least: f64,
    },
}

impl Spread {
    fn percent(share: f64) -> Spread {
        Spread::Within { low: 1.0 - share, high: 1.0 + share }
    }

    fn by_confidence(confidence: Confidence, quantity: Quantity) -> Spread {
        use Confidence::*;
        match (confidence, quantity) {
            (KernelTable | DeviceTree, Quantity::Latency) => Spread::AtMost { least: LEAST_OF_WORST },
            (Guess, Quantity::Voltage) => Spread::percent(0.10),
            (Guess, _) | (KernelTable, Quantity::Power) => Spread::Guess,
            (Datasheet | DeviceTree | KernelTable, _) => Spread::percent(0.03),
            (Measured, _) => Spread::percent(0.05),
            (Fitted, _) => Spread::percent(0.10),
        }
    }

    /// The factor at a score: `z` standard deviations from the median of a normal variable that stands for it.
    /// Exactly 1 at 0. A worst case's scores are never above 0, and its factors are even for scores of a normal
    /// variable's lower half.
    pub fn factor(self, z: f64) -> f64 {
        match self {
            Spread::Guess => normal::exp(GUESS_SD * z),
            // Straight upwards, the reciprocal of straight downwards: never 0, the ends exact.
            Spread::Within { high, .. } if z >= 0.0 => 1.0 + (high - 1.0) * z / MOST,
            Spread::Within { low, .. } => 1.0 / (1.0 + (1.0 / low - 1.0) * -z / MOST),
            Spread::AtMost { least } => 1.0 - (1.0 - least) * (1.0 - 2.0 * normal::below(z.min(0.0))),
        }
    }

    /// The score below which a share `p` of all draws lies.
    pub fn score(self, p: f64) -> f64 {
        match self {
            Spread::Guess | Spread::Within { .. } => normal::quantile(p),
            Spread::AtMost { .. } => normal::quantile(p / 2.0),
        }
    }

    /// The score at which the factor is this one; 0 where there is none.
    fn score_of(self, factor: f64) -> f64 {
        let z = match self {
            Spread::Guess => factor.ln() / GUESS_SD,
            Spread::Within { high, .. } if factor >= 1.0 => (factor - 1.0) / (high - 1.0) * MOST,
            Spread::Within { low, .. } => -(1.0 / factor - 1.0) / (1.0 / low - 1.0) * MOST,
            Spread::AtMost { .. } => 0.0,
        };
        if z.is_finite() { z } else { 0.0 }
    }

    /// Factors that hold 19 of 20 draws (of a worst case: all).
    fn ends(self) -> (f64, f64) {
        match self {
            Spread::AtMost { least } => (least, 1.0),
            _ => (self.factor(-MOST), self.factor(MOST)),
        }
    }
}

/// A figure that is not certain.
#[derive(Clone, Debug)]
pub struct Uncertain {
    /// Its path in the file (`kind.P.speeds.capacitance_nf`, `kind.P.idle.C6.watts`).
    pub what: String,
    /// What it is in; empty for a ratio.
    pub unit: &'static str,
    /// Its value in the file; of several the first that is not 0.
    pub nominal: f64,
    /// 19 of 20 draws are no lower.
    pub low: f64,
    /// 19 of 20 draws are no higher.
    pub high: f64,
    /// Its line in [`MachineModel::provenance`].
    pub origin: usize,
    /// How its factor is spread.
    pub spread: Spread,
    place: FigurePlace,
}

impl Uncertain {
    /// The file with this figure multiplied.
    pub(super) fn scale(&self, file: &mut File, factor: f64) {
        let row = &ROWS[self.place.row];
        for (entry, value) in (row.slots)(file, self.place.kind) {
            if self.place.entries & (1 << entry) != 0 {
                *value = row.part.scaled(*value, factor);
            }
        }
    }
}

/// Where a figure's values stand in the file.
#[derive(Clone, Copy, Debug)]
struct FigurePlace {
    row: usize,
    kind: usize,
    /// A bit for each speed or state that it covers: at most 128 of either.
    entries: u128,
}

/// A machine's file and the figures in it that are not certain.
#[derive(Clone, Debug, Default)]
pub struct Written(Option<Arc<(File, Vec<Uncertain>)>>);

impl Written {
    /// Of a sound file with its origins; a sentence where a range is none.
    pub(super) fn new(mut file: File, provenance: &[Figure]) -> Result<Written, String> {
        spell_out(&mut file);
        let mut search = FigureSearch { provenance, used: vec![0; provenance.len()], found: Vec::new() };
        for (at, row) in ROWS.iter().enumerate() {
            let kinds = if row.table.of_kind() { file.kind.len() } else { 1 };
            for kind in 0..kinds {
                // The kind that the others are compared with is 1 by definition.
                let reference = file.kind.iter().position(|k| k.ipc == 1.0) == Some(kind);
                if !(row.key == "ipc" && reference) {
                    search.row(&mut file, at, kind)?;
                }
            }
        }
        search.check_ranges()?;
        let FigureSearch { mut found, .. } = search;
        found.sort_by_key(|f: &Uncertain| f.origin);
        file.draws.iter().try_for_each(|draws| check_draws(draws, &found))?;
        Ok(Written(Some(Arc::new((file, found)))))
    }

    pub(super) fn file(&self) -> Option<&File> {
        self.0.as_deref().map(|(file, _)| file)
    }

    /// The scores of figures that were drawn together, for one of the machines of the file.
    pub(super) fn together(&self, seed: u64) -> BTreeMap<&str, f64> {
        let Some((file, figures)) = self.0.as_deref() else { return BTreeMap::new() };
        let Some(draws) = file.draws.as_ref().filter(|d| !d.factors.is_empty()) else {
            return BTreeMap::new();
        };
        let one = &draws.factors[(Random::new(seed).bits() % draws.factors.len() as u64) as usize];
        let spread = |what: &str| figures.iter().find(|f| f.what == what).map(|f| f.spread);
        let pairs = draws.figures.iter().zip(one);
        pairs.filter_map(|(what, factor)| Some((what.as_str(), spread(what)?.score_of(*factor)))).collect()
    }

    fn figures(&self) -> &[Uncertain] {
        self.0.as_deref().map_or(&[], |(_, figures)| figures)
    }
}

fn check_draws(draws: &DrawsTable, found: &[Uncertain]) -> Result<(), String> {
    if let Some(unknown) = draws.figures.iter().find(|what| !found.iter().any(|f| f.what == **what)) {
        return Err(format!("draws.figures: no figure '{unknown}' is drawn"));
    }
    let sound = |one: &Vec<f64>| {
        one.len() == draws.figures.len() && one.iter().all(|f| (1.0 / WIDEST..=WIDEST).contains(f))
    };
    match draws.factors.iter().position(|one| !sound(one)) {
        Some(at) => Err(format!(
            "draws.factors[{at}]: expected {} factors from {} to {WIDEST}",
            draws.figures.len(),
            1.0 / WIDEST
        )),
        None => Ok(()),
    }
}

/// Values of a row that have one source: one figure.
struct FigureGroup {
    what: String,
    /// Its line of the provenance.
    origin: usize,
    /// By speed or state.
    values: Vec<(usize, f64)>,
}

/// The search for the figures of a file.
struct FigureSearch<'a> {
    provenance: &'a [Figure],
    /// Figures found under each line of the provenance.
    used: Vec<usize>,
    found: Vec<Uncertain>,
}

impl FigureSearch<'_> {
    fn origin(&self, path: &str) -> Option<usize> {
        self.provenance.iter().position(|f| f.what == path)
    }

    /// The figures of one row: one for all its entries without a source of their own, one for each of the others.
    fn row(&mut self, file: &mut File, at: usize, kind: usize) -> Result<(), String> {
        let row = &ROWS[at];
        let here = row.table.path(file, kind);
        let names = (row.names)(file, kind);
        let values: Vec<(usize, f64)> = (row.slots)(file, kind)
            .into_iter()
            .map(|(entry, value)| (entry, *value))
            .filter(|(_, value)| row.part.of(*value) != 0.0)
            .collect();
        let common = self.origin(&format!("{here}.{}", row.source_key())).or_else(|| self.origin(&here));
        let Some(common) = common else { return Ok(()) };
        let key = row.key.rsplit('.').next().unwrap_or(row.key);
        let own = |entry: usize| {
            let name = names.get(entry)?;
            self.origin(&format!("{here}.{name}.{key}")).or_else(|| self.origin(&format!("{here}.{name}")))
        };
        let mut groups: Vec<FigureGroup> = Vec::new();
        for (entry, value) in values {
            let (what, origin) = match own(entry) {
                Some(origin) => (format!("{here}.{}.{key}", names[entry]), origin),
                None => (format!("{here}.{}", row.key), common),
            };
            match groups.iter_mut().find(|g| g.what == what) {
                Some(group) => group.values.push((entry, value)),
                None => groups.push(FigureGroup { what, origin, values: vec![(entry, value)] }),
            }
        }
        groups.into_iter().try_for_each(|group| self.add(at, kind, group))
    }

    fn add(&mut self, row: usize, kind: usize, group: FigureGroup) -> Result<(), String> {
        let FigureGroup { what, origin, values } = group;
        let FigureRow { part, quantity, unit, .. } = ROWS[row];
        let Figure { confidence, range, .. } = self.provenance[origin];
        let nominal = values[0].1;
        self.used[origin] += 1;
        let spread = match range {
            None => Spread::by_confidence(confidence, quantity),
            Some(Range::Within(0.0)) => return Ok(()),
            Some(Range::Within(share)) => Spread::percent(share),
            Some(Range::Ends(..)) if values.len() > 1 => {
                return Err(format!(
                    "{what}: {} values have no common range: write it as \"+-10%\"",
                    values.len()
                ));
            }
            Some(Range::Ends(low, high)) => {
                let factor = |end: f64| part.of(end) / part.of(nominal);
                let (a, b) = (factor(low), factor(high));
                let (least, most) = (a.min(b), a.max(b));
                let around = low <= nominal && nominal <= high;
                if !around || !(1.0 / WIDEST..=1.0).contains(&least) || most > WIDEST {
                    return Err(format!(
                        "{what}: range = [{low}, {high}]: expected the ends around {nominal}"
                    ));
                }
                Spread::Within { low: least, high: most }
            }
        };
        let entries = values.iter().fold(0, |mask, (entry, _)| mask | 1_u128 << entry);
        let (a, b) = spread.ends();
        let (a, b) = (part.scaled(nominal, a), part.scaled(nominal, b));
        let place = FigurePlace { row, kind, entries };
        self.found.push(Uncertain {
            what,
            unit,
            nominal,
            low: a.min(b),
            high: a.max(b),
            origin,
            spread,
            place,
        });
        Ok(())
    }

    /// A range speaks of something that is drawn, and `[low, high]` of one figure alone.
    fn check_ranges(&self) -> Result<(), String> {
        for (figure, used) in self.provenance.iter().zip(&self.used) {
            match (figure.range, used) {
                (Some(_), 0) => {
                    return Err(format!(
                        "{}.range: it is a fact or 0 and never drawn: leave the range out",
                        figure.what
                    ));
                }
                (Some(Range::Ends(..)), 2..) => {
                    return Err(format!(
                        "{}.range: {used} figures have no common range: write it as \"+-10%\"",
                        figure.what
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A line of [`MachineModel::inputs`].
#[derive(Clone, Debug, PartialEq)]
pub struct MachineInput<'a> {
    /// Its path in the file.
    pub what: &'a str,
    /// Where it comes from.
    pub source: &'a str,
    /// How far to trust it.
    pub confidence: Confidence,
    /// Value and interval, where it is a figure that is drawn.
    pub value: Option<FigureValue>,
}

/// A figure's value and the interval that holds 19 of 20 draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureValue {
    /// In the file; of several the first that is not 0.
    pub nominal: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What they are in; empty for a ratio.
    pub unit: &'static str,
}

impl MachineModel {
    /// The figures that are not certain, in the order of their sources in the file. Empty for a machine made
    /// without a file.
    pub fn figures(&self) -> &[Uncertain] {
        self.written.figures()
    }

    /// Everything that went into the machine: each line of [`MachineModel::provenance`], followed by the figures that
    /// rest on it. A figure whose path is the line's own is one with it.
    pub fn inputs(&self) -> Vec<MachineInput<'_>> {
        let value =
            |f: &Uncertain| FigureValue { nominal: f.nominal, low: f.low, high: f.high, unit: f.unit };
        let mut lines = Vec::new();
        for (at, line) in self.provenance.iter().enumerate() {
            let input = |what, value| MachineInput {
                what,
                source: line.source.as_str(),
                confidence: line.confidence,
                value,
            };
            let mut figures: Vec<&Uncertain> = self.figures().iter().filter(|f| f.origin == at).collect();
            let own = figures.iter().position(|f| f.what == line.what).map(|i| figures.remove(i));
            lines.push(input(line.what.as_str(), own.map(value)));
            lines.extend(figures.iter().map(|f| input(f.what.as_str(), Some(value(f)))));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
