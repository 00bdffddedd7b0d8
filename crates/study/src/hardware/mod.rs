//! Held against hardware: published measurements of policies on real machines, and what the engine says of the same.
//!
//! | module | what it knows |
//! |---|---|
//! | [`table`] | a published table and its description |
//! | `factors` | by what a program's watts differ from the model's |
//! | `calibration` | at most one setting a program, what it tells, and which draws it chooses |
//! | `predict` | the engine's runs of a table's settings in these draws |
//! | [`compare`] | each row against its work's reference: predicted, measured, and what two know-nothings say |
//! | [`rough`] | how far measured ratios lie from predicted ones, beside what replicas draw |
//! | [`fit`](mod@fit) | that, fitted to the tables |
//! | [`score`](mod@score) | signs, order, errors and coverage, by table, mechanism and class |
//! | [`page`] | the page of it |
//! | [`bundled`] | the tables that come with the program (`hardware/`) |
//!
//! A comparison is a row against its work's reference row in one published quantity, as a ratio: no unit, no meter's scale and no
//! length of the work is in it. What is published beside the calibrating rows is never used for what is
//! predicted; the widths of the intervals are fitted to it.

pub mod bundled;
mod calibration;
pub mod compare;
mod factors;
pub mod fit;
pub mod page;
mod predict;
pub mod rough;
pub mod score;
pub mod table;

use score::Scores;
use std::collections::BTreeSet;
use table::{Setting, Table};
use wattwise_figure::one_line;
use wattwise_model::machine::MachineModel;

/// Draws of a setting; with 24 the figures were those of a lucky set of them (`docs/notes/hardware-mechanisms.md`).
const REPLICAS: u64 = 48;
/// The same with `--quick`.
const QUICK_REPLICAS: u64 = 6;
/// Settings of a table that `--quick` looks at.
const QUICK_SETTINGS: usize = 40;

/// A table that cannot be used: one line, naming the file, the place and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct HardwareError {
    origin: String,
    problem: String,
}

impl HardwareError {
    /// What is wrong with a file.
    pub fn new(origin: &str, problem: String) -> HardwareError {
        HardwareError { origin: one_line(origin), problem: one_line(&problem) }
    }
}

/// A change of a machine's model.
pub type Change = fn(&mut MachineModel);

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// Fewer replicas, and of large tables a part.
    pub quick: bool,
    /// Done to each machine after its figures are drawn: how the score tells what a mechanism of the model earns.
    pub change: Option<Change>,
}

/// Tables, scored, and every comparison that was made.
pub struct Scored {
    /// The scores.
    pub scores: Scores,
    /// What each table came to, in the tables' order.
    pub compared: Vec<compare::Compared>,
}

/// Predicts these tables and holds the predictions against what was published. `tell` is called with so many runs that are to come, and
/// with nothing after each that is done.
pub fn score(tables: &[Table], effort: Effort, tell: &(dyn Fn(Option<usize>) + Sync)) -> Scored {
    let kept: Vec<BTreeSet<&Setting>> = tables.iter().map(|t| settings(t, effort)).collect();
    let replicas = if effort.quick { QUICK_REPLICAS } else { REPLICAS };
    let runs = predict::run_all(tables, &kept, replicas, effort.change, tell);
    let compared: Vec<_> = tables.iter().enumerate().map(|(at, t)| compare::compared(at, t, &runs)).collect();
    Scored { scores: score::scores(tables, &compared, replicas, effort.quick), compared }
}

/// The settings of a table that are run: with `--quick` those of the references, those that calibrate, and of the others so
/// many, evenly through the table.
fn settings(table: &Table, effort: Effort) -> BTreeSet<&Setting> {
    let of = |needed: bool| {
        let rows = table.rows.iter().filter(move |r| (r.is_reference || r.calibrates) == needed);
        rows.filter_map(|r| r.setting.as_ref().ok())
    };
    let mut all: BTreeSet<&Setting> = of(false).collect();
    if effort.quick && all.len() > QUICK_SETTINGS {
        let every = all.len().div_ceil(QUICK_SETTINGS);
        all = all.into_iter().step_by(every).collect();
    }
    all.extend(of(true));
    all
}
