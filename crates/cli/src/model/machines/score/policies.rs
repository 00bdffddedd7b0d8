//! `machines score policies`: published measurements of policies on hardware, and what the engine says of the same.

use super::super::columns;
use super::{SCHEMA, Scored};
use crate::args::output::{self, OutputPath};
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::show::screen;
use indicatif::ProgressBar;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use wattwise_figure::{counted, one_line};
use wattwise_study::hardware::page::{page, percent};
use wattwise_study::hardware::score::{Held, Scores};
use wattwise_study::hardware::table::{Folder, Table};
use wattwise_study::hardware::{Effort, HardwareError, bundled, score};

/// Folders with a table that a path names: itself, its parent where it is a table.toml, or those within it.
fn folders(path: &Path) -> Result<Vec<PathBuf>, HardwareError> {
    let wrong = |problem: String| HardwareError::new(&path.display().to_string(), problem);
    if path.join("table.toml").is_file() {
        return Ok(vec![path.to_owned()]);
    }
    if path.file_name().is_some_and(|n| n == "table.toml") && path.is_file() {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Ok(vec![parent.to_owned()]);
    }
    let entries = std::fs::read_dir(path)
        .map_err(|e| wrong(format!("{e}: expected a table.toml, its folder, or a folder of such folders")))?;
    let mut found: Vec<PathBuf> =
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.join("table.toml").is_file()).collect();
    if found.is_empty() {
        return Err(wrong("no table.toml in it or in its folders: expected one".into()));
    }
    found.sort();
    Ok(found)
}

fn tables(files: &[PathBuf]) -> Result<Vec<Table>, HardwareError> {
    if files.is_empty() {
        return bundled::tables();
    }
    let mut all = Vec::new();
    for path in files {
        for folder in folders(path)? {
            let name = folder.canonicalize().unwrap_or(folder.clone());
            let name = name.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            all.push(Table::read(&name, &Folder(&folder))?);
        }
    }
    Ok(all)
}

/// Progress over the runs, on a terminal: so many more are to come, or one is done.
fn told(bar: &Mutex<Option<ProgressBar>>, more: Option<usize>) {
    let Ok(mut bar) = bar.lock() else { return };
    match (more, &*bar) {
        (Some(n), Some(bar)) => bar.inc_length(n as u64),
        (Some(n), None) if screen::shows_progress() => *bar = Some(ProgressBar::new(n as u64)),
        (None, Some(bar)) => bar.inc(1),
        _ => {}
    }
}

pub(super) fn run(files: &[PathBuf], quick: bool, to: Option<&OutputPath>, json: bool) -> Outcome {
    let tables = tables(files).map_err(Failure::input)?;
    let out = output::open("--page", to)?;
    let bar = Mutex::new(None);
    let scored = score(&tables, Effort { quick, ..Effort::default() }, &|n| told(&bar, n));
    if let Ok(Some(bar)) = bar.into_inner() {
        bar.finish_and_clear();
    }
    if let Some(out) = out {
        out.write(page(&tables, &scored).as_bytes())?;
    }
    let scores = Scored::Policies(scored.scores);
    match (json, &scores) {
        (false, Scored::Policies(s)) => print(&text(s))?,
        _ => print_json_as(SCHEMA, &scores)?,
    }
    Ok(0)
}

fn row(name: &str, rows: Option<usize>, h: &Held) -> Vec<String> {
    vec![
        name.to_owned(),
        rows.map_or(String::new(), |r| r.to_string()),
        h.differing.to_string(),
        percent(h.sign_right),
        h.tau.map_or("-".into(), |t| format!("{t:.2}")),
        percent(h.ratio_median_abs_error),
        percent(h.ratio_p95_abs_error),
        percent(h.coverage_90),
        percent(h.no_difference_median_abs_error),
        percent(h.cube_median_abs_error),
    ]
}

const HEAD: [&str; 10] =
    ["", "rows", "differ", "sign %", "tau", "median %", "p95 %", "in 90 %", "nothing %", "cube %"];

pub(super) fn text(s: &Scores) -> String {
    let mut out = format!(
        "{}, {}: {} predicted, {}, {} calibrating, {} of which nothing can be said\n",
        counted(s.tables, "table"),
        counted(s.rows, "row"),
        s.predicted_rows,
        counted(s.reference_rows, "reference"),
        s.calibrating_rows,
        s.unsaid_rows
    );
    for t in &s.by_table {
        for why in &t.unexplained {
            _ = writeln!(out, "  {}: {}", one_line(&t.name), one_line(why));
        }
        for u in &t.unsaid {
            _ = writeln!(
                out,
                "  {}: {} not said, the first is row {}: {}",
                one_line(&t.name),
                counted(u.rows, "row"),
                u.first_row,
                one_line(&u.why)
            );
        }
    }
    out.push_str(
        "\nEach row against its work's reference, as a ratio; means over tables. Errors in % of the measured ratio, beside those of\n\
         one who says that nothing makes a difference, and of one for whom power is the cube of the clock.\n\n",
    );
    let head = || HEAD.map(str::to_owned).to_vec();
    let mut rows = vec![head()];
    rows.extend(s.by_table.iter().map(|t| row(&t.name, Some(t.rows), &t.held)));
    out += &columns(&rows);
    for parts in [&s.by_mechanism, &s.by_class] {
        out.push('\n');
        let mut rows = vec![head()];
        rows.extend(parts.iter().map(|p| row(&p.name, None, &p.held)));
        out += &columns(&rows);
    }
    _ = writeln!(
        out,
        "\nall comparisons alike: sign right {} %, {} % within the 90 % intervals",
        percent(s.all_sign_right),
        percent(s.all_coverage_90)
    );
    _ = writeln!(
        out,
        "means over tables: sign right {} %, tau {}, ratio off by {} % in the median and {} % in 95 of 100, {} % within the 90 % intervals",
        percent(s.sign_right),
        s.tau.map_or("-".into(), |t| format!("{t:.2}")),
        percent(s.ratio_median_abs_error),
        percent(s.ratio_p95_abs_error),
        percent(s.coverage_90)
    );
    for k in &s.know_nothing {
        _ = writeln!(
            out,
            "{}: sign right {} %, off by {} % and {} %",
            k.name,
            percent(k.sign_right),
            percent(k.ratio_median_abs_error),
            percent(k.ratio_p95_abs_error)
        );
    }
    out
}
