//! `wattwise machines`: the models, each in full or beside another, what a model's file lacks, and how well the library
//! predicts what others measured.

mod check;
mod compare;
mod score;
mod show;

#[cfg(test)]
pub(crate) use check::{CheckedModels, SCHEMA as CHECK_SCHEMA};
#[cfg(test)]
pub(crate) use compare::{Compared, SCHEMA as COMPARE_SCHEMA};
#[cfg(test)]
pub(crate) use score::{SCHEMA as SCORE_SCHEMA, Scored};
#[cfg(test)]
pub(crate) use show::{SCHEMA as SHOW_SCHEMA, ShownMachine};

use crate::exit::{Failure, Outcome};
use crate::model::list::{self, Entry};
use crate::model::machine::THIS;
use clap::Subcommand;
use serde::Serialize;
use std::path::Path;
use wattwise_figure::one_line;
use wattwise_model::machine::figures::MachineInput;
use wattwise_model::machine::{MachineModel, builtin};
use wattwise_replay::library;

#[derive(clap::Args)]
pub(crate) struct MachinesArgs {
    #[command(subcommand)]
    what: Option<MachinesCommand>,
    /// Print as JSON: schema wattwise.list/1, or the one that a subcommand names
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum MachinesCommand {
    /// List the models (the default)
    List,
    /// Every figure of a model with its interval, its standing and its source (wattwise.machine/1)
    Show(show::ShowMachineArgs),
    /// Two models side by side (wattwise.machine-compare/1)
    Compare(compare::CompareMachinesArgs),
    /// What models' files lack, and what that costs the answer (wattwise.machine-check/2)
    Check(check::CheckMachineArgs),
    /// Hold the library against measurements: policies on hardware, SPECpower or freqbench results (wattwise.score/1)
    Score(score::ScoreArgs),
}

pub(crate) fn run(args: &MachinesArgs) -> Outcome {
    match &args.what {
        None | Some(MachinesCommand::List) => list::list(args.json, &entries()?),
        Some(MachinesCommand::Show(a)) => show::run(a, args.json),
        Some(MachinesCommand::Compare(a)) => compare::run(a, args.json),
        Some(MachinesCommand::Check(a)) => check::run(a, args.json),
        Some(MachinesCommand::Score(a)) => score::run(a, args.json),
    }
}

fn entries() -> Result<Vec<Entry>, Failure> {
    let entry = |name: &str, kind: &str| {
        let machine = library::machine(name).map_err(Failure::work)?;
        Ok(Entry { name: name.into(), kind: kind.into(), summary: machine.summary })
    };
    let models = builtin::written().map(|name| entry(name, "models"));
    let measured = builtin::measured().map(|name| entry(name, "measured by others, core by core"));
    models.chain(measured).collect()
}

/// A model by its name or its file, or an estimate, as `--machine` takes them.
fn machine(given: &str, command: &str) -> Result<MachineModel, Failure> {
    let is_bundled = builtin::text(given).is_some();
    if !is_bundled && !given.starts_with(EMULATED) && given != THIS && !Path::new(given).exists() {
        if given.contains(['/', '.']) {
            let expected = "expected a file, or a name that 'wattwise machines' lists";
            return Err(Failure::input(format!("machines {command}: {given}: no such file; {expected}")));
        }
        return Err(list::unknown(&format!("machines {command}"), given, &entries()?));
    }
    crate::model::machine::machine(given)
}

/// What names an emulated machine begin with.
const EMULATED: &str = "emulated:";

/// A figure of a model.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FigureLine {
    /// Its path in the file.
    what: String,
    /// Its value; null for a fact and for what stands for several figures.
    nominal: Option<f64>,
    /// 19 of 20 draws are no lower.
    low: Option<f64>,
    /// 19 of 20 draws are no higher.
    high: Option<f64>,
    /// What they are in; empty for a ratio.
    unit: String,
    /// `datasheet`, `device-tree`, `kernel-table`, `measured`, `fitted` or `guess`.
    standing: String,
    /// Where it comes from.
    source: String,
}

impl FigureLine {
    fn of(input: &MachineInput<'_>) -> FigureLine {
        FigureLine {
            what: input.what.to_owned(),
            nominal: input.value.map(|v| v.nominal),
            low: input.value.map(|v| v.low),
            high: input.value.map(|v| v.high),
            unit: input.value.map_or("", |v| v.unit).to_owned(),
            standing: input.confidence.word().to_owned(),
            source: input.source.to_owned(),
        }
    }

    /// Makes it a figure that is known, as those behind an emulated machine are.
    fn is_known(&mut self) {
        (self.low, self.high) = (None, None);
        (self.standing, self.source) =
            ("known".to_owned(), "behind the emulated machine's meters".to_owned());
    }

    /// `8 W`, or a dash.
    fn value(&self) -> String {
        self.nominal.map_or("-".into(), |v| format!("{} {}", figure(v), self.unit).trim_end().to_owned())
    }

    /// `7.6 to 8.4`, or nothing.
    fn interval(&self) -> String {
        self.low.zip(self.high).map_or(String::new(), |(l, h)| format!("{} to {}", figure(l), figure(h)))
    }
}

/// A figure to three digits, without those that say nothing.
fn figure(v: f64) -> String {
    let digits = (2 - v.abs().max(1e-12).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{v:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Rows as columns, padded; the last one as long as it is. What comes from files cannot break a line.
fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(|c| one_line(c)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(c, w)| format!("{c:w$}")).collect();
        out += "  ";
        out += cells.join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// How many figures have each standing, the most certain first: `3 measured, 12 guess`.
fn standings(machine: &MachineModel) -> Vec<(&'static str, usize)> {
    let order = ["datasheet", "device-tree", "kernel-table", "measured", "fitted", "guess"];
    let of = |w: &&str| {
        machine.figures().iter().filter(|f| machine.provenance[f.origin].confidence.word() == *w).count()
    };
    order.iter().map(|w| (*w, of(w))).filter(|(_, n)| *n > 0).collect()
}

fn standings_text(machine: &MachineModel) -> String {
    standings(machine).iter().map(|(w, n)| format!("{n} {w}")).collect::<Vec<_>>().join(", ")
}

/// CPUs, speeds and the watts at both ends, in a line or two.
fn facts(machine: &MachineModel) -> String {
    let kinds = machine.kinds.iter().enumerate().map(|(k, kind)| {
        let cores = machine.cores.iter().filter(|c| usize::from(c.kind) == k).count();
        let (fastest, slowest) = (kind.levels[0].khz, kind.levels[kind.levels.len() - 1].khz);
        let mhz = |khz: u32| figure(f64::from(khz) / 1e3);
        format!("{cores} x {} at {} to {} MHz", kind.name, mhz(slowest), mhz(fastest))
    });
    let (rest, full) = machine.rest_and_full_w();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{} in {}; {}; {} W at rest, {} W with all busy",
        count(machine.cpus.len(), "CPU"),
        count(machine.packages.len(), "package"),
        kinds.collect::<Vec<_>>().join(", "),
        figure(rest),
        figure(full)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_no_idle_zeros() {
        for (v, text) in
            [(0.0, "0"), (8.0, "8"), (0.123_45, "0.123"), (1234.5, "1234"), (2.50, "2.5"), (-0.5, "-0.5")]
        {
            assert_eq!(figure(v), text);
        }
    }

    #[test]
    fn what_a_file_says_cannot_break_a_line() {
        let rows = [vec!["a\nb".to_owned(), "x".to_owned()], vec!["\u{1b}[2J".to_owned(), String::new()]];
        assert_eq!(columns(&rows), "  a b        x\n  \\u{1b}[2J\n");
    }
}
