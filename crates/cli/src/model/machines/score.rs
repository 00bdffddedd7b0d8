//! `machines score`: the library against what others measured.

use super::columns;
use crate::args::output::OutputPath;
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::show::screen::{Screen, note};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use wattwise_figure::{counted, one_line};
use wattwise_model::estimate::table::{MAX_BYTES, TableError};
use wattwise_study::external::freqbench::{self, FreqbenchScore};
use wattwise_study::external::specpower::{self, SpecpowerScore};
use wattwise_study::external::{Group, Held, LeftOut, ScoreError};
use wattwise_study::hardware::score::Scores;

mod policies;

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.score/1";

#[derive(clap::Args)]
pub(crate) struct ScoreArgs {
    /// What the table's columns mean
    data_set: DataSet,
    /// The table (CSV), with the columns of machines/data in wattwise's repository; of policies: folders with a table.toml,
    /// or folders of such folders [default: the bundled tables]
    files: Vec<PathBuf>,
    /// Of policies: fewer draws, and of large tables a part
    #[arg(long)]
    quick: bool,
    /// Of specpower: predict the results of this year and later by a fit to earlier ones alone
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(u16).range(1990..=2100))]
    since: Option<u16>,
    /// Of policies: write the page of predicted next to measured (Markdown)
    #[arg(long, value_name = "FILE")]
    page: Option<OutputPath>,
}

#[derive(Clone, Copy, ValueEnum)]
enum DataSet {
    /// SPECpower_ssj2008: watts of whole servers at eleven loads, from what a server says of itself
    Specpower,
    /// Published measurements of policies on hardware: time, power and energy, predicted by the engine
    Policies,
    /// freqbench: power and rate at every frequency of a cluster, from its lowest and its highest
    Freqbench,
}

/// How well the library predicts a table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "data_set", rename_all = "lowercase")]
pub(crate) enum Scored {
    /// Servers.
    Specpower(SpecpowerScore),
    /// Clusters of cores.
    Freqbench(FreqbenchScore),
    /// Policies on hardware.
    Policies(Scores),
}

/// The file, as far as a table may reach.
fn bytes(file: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let wrong = |problem: String| Failure::input(TableError::of_file(name, problem));
    let file =
        std::fs::File::open(file).map_err(|e| wrong(format!("{e}: expected a table that can be read")))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| wrong(format!("{e}: expected a table that can be read")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("larger than expected: at most {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

pub(crate) fn run(args: &ScoreArgs, json: bool) -> Outcome {
    if args.since.is_some() && !matches!(args.data_set, DataSet::Specpower) {
        return Err(Failure::input("machines score: --since is of 'machines score specpower'"));
    }
    if matches!(args.data_set, DataSet::Policies) {
        return policies::run(&args.files, args.quick, args.page.as_ref(), json);
    }
    let [file] = args.files.as_slice() else {
        return Err(Failure::input("machines score: expected one FILE (CSV) after specpower or freqbench"));
    };
    if args.quick || args.page.is_some() {
        return Err(Failure::input("machines score: --quick and --page are of 'machines score policies'"));
    }
    let name = file.display().to_string();
    let bytes = bytes(file, &name)?;
    if Screen::Err.is_terminal() {
        note!("fitting the library anew without each kind of the table's machines, some seconds");
    }
    let scored = match args.data_set {
        DataSet::Specpower => match args.since {
            Some(year) => specpower::score_since(&name, &bytes, year),
            None => specpower::score(&name, &bytes),
        }
        .map(Scored::Specpower),
        DataSet::Freqbench => freqbench::score(&name, &bytes).map(Scored::Freqbench),
        // Done above.
        DataSet::Policies => return Ok(0),
    };
    let scored = scored.map_err(|e| match e {
        ScoreError::Table(e) => Failure::input(e),
        e @ ScoreError::Fit(_) => Failure::work(e),
    })?;
    match (json, &scored) {
        (true, scored) => print_json_as(SCHEMA, scored)?,
        (false, Scored::Specpower(s)) => print(&specpower_text(s))?,
        (false, Scored::Freqbench(s)) => print(&freqbench_text(s))?,
        (false, Scored::Policies(s)) => print(&policies::text(s))?,
    }
    Ok(0)
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.2} %", share * 100.0) } else { format!("{:.1} %", share * 100.0) }
}

fn row(name: &str, held: &Held) -> Vec<String> {
    vec![
        name.to_owned(),
        held.predictions.to_string(),
        percent(held.median_abs_error),
        percent(held.p95_abs_error),
        percent(held.coverage_90),
    ]
}

/// The table of errors: all together, then the groups.
fn errors(title: &str, held: &Held, parts: &[&[Group]]) -> String {
    let head = [title, "predictions", "median error", "95 % below", "in the 90 % interval"];
    let mut rows = vec![head.map(str::to_owned).to_vec(), row("all", held)];
    for part in parts {
        rows.extend(part.iter().map(|g| row(&g.name, &g.held)));
    }
    columns(&rows)
}

fn left_out(rows: usize, left: &[LeftOut], file: &str) -> String {
    let mut out = format!("{}: {} predicted\n", one_line(file), counted(rows, "row"));
    for l in left {
        _ = writeln!(
            out,
            "  not predicted: {}, the first is row {}: {}",
            counted(l.rows, "row"),
            l.first_row,
            l.why
        );
    }
    out
}

fn specpower_text(s: &SpecpowerScore) -> String {
    format!(
        "{}Each {}.\n\n{}",
        left_out(s.rows, &s.left_out, &s.file),
        s.method,
        errors("watts", &s.held, &[&s.loads, &s.families])
    )
}

fn freqbench_text(s: &FreqbenchScore) -> String {
    let (t, l) = (&s.time_law, &s.lowest_energy);
    format!(
        "{}Each {}.\n\n\
         time law: off by at most {} in the median of {} clusters, {} in nine of ten; {} in the median row\n\
         least energy: within one level in {} of {} clusters, that very level in {}; the best constant level, {}, in {}\n  \
         at the level told, energy is {} over the least in the median cluster; {} clusters have no power at their ends\n\n{}",
        left_out(s.rows, &s.left_out, &s.file),
        s.method,
        percent(t.median_cluster_error),
        t.clusters,
        percent(t.p90_cluster_error),
        percent(t.median_row_error),
        percent(l.within_one_share),
        l.clusters,
        percent(l.exact_share),
        l.best_constant_level,
        percent(l.best_constant_share),
        percent(l.median_energy_ratio - 1.0),
        l.clusters_without_power,
        errors("watts", &s.held, &[&s.socs])
    )
}
