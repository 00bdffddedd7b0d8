//! `report`: result files again.

use crate::args::output::OutputPath;
use crate::exit::{Failure, Outcome, print};
use crate::show::answer::ShownParts;
use crate::show::result_file::{ResultFile, run_name};
use crate::show::screen::Screen;
use crate::show::table::sentence;
use std::path::PathBuf;
use wattwise_page::{Section, Table};

#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Result files: of compare, tune, run, ab, record, trace, import, calibrate and bench, as --json, --output or ab's .jsonl gave them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write a report: one HTML file that needs no network, instead of printing
    #[arg(long, alias = "html", value_name = "FILE")]
    report: Option<OutputPath>,
    #[command(flatten)]
    shown: ShownParts,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let results: Vec<ResultFile> =
        args.files.iter().map(|f| ResultFile::read(f)).collect::<Result<_, _>>().map_err(Failure::input)?;
    let Some(path) = &args.report else {
        let look = Screen::Out.look();
        if results.len() > 1 {
            for (file, result) in args.files.iter().zip(&results) {
                print(&format!("{}: {}\n", file.display(), sentence(&result.verdict())))?;
            }
            print("\n")?;
        }
        for (file, result) in args.files.iter().zip(&results) {
            if results.len() > 1 {
                print(&format!("== {}\n", file.display()))?;
            }
            print(&result.text(look, args.shown))?;
        }
        return Ok(0);
    };
    let report = path.open("--report")?;
    let html = match &results[..] {
        // On its own, a comparison has a page that can be explored.
        [ResultFile::Compare(c)] => wattwise_report::compare_html(c, &[], &crate::args::command_line()),
        _ => wattwise_page::page("report", &title(args), &sections(args, &results)),
    };
    report.write(html.as_bytes())?;
    Ok(0)
}

fn title(args: &ReportArgs) -> String {
    let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
    names.join(", ")
}

/// Runs in one table, side by side; everything else one under the other.
fn sections(args: &ReportArgs, results: &[ResultFile]) -> Vec<Section> {
    let runs: Vec<_> = results
        .iter()
        .filter_map(|r| match r {
            ResultFile::Run(r) => Some((run_name(r), &r.measured)),
            _ => None,
        })
        .collect();
    let said = |(file, result): (&PathBuf, &ResultFile)| {
        vec![file.display().to_string(), sentence(&result.verdict())]
    };
    let mut sections = vec![Section::Table(Table {
        title: "Verdict".to_owned(),
        head: ["File", "What it says"].map(str::to_owned).to_vec(),
        rows: args.files.iter().zip(results).map(said).collect(),
        note: String::new(),
    })];
    let comparisons: Vec<_> = args
        .files
        .iter()
        .zip(results)
        .filter_map(|(f, r)| match r {
            ResultFile::Compare(c) => Some((f.display().to_string(), &**c)),
            _ => None,
        })
        .collect();
    if comparisons.len() > 1 {
        sections.push(wattwise_report::compared_side_by_side(&comparisons));
    }
    if !runs.is_empty() {
        sections.extend(wattwise_report::run_sections(&runs));
    }
    for (file, result) in args.files.iter().zip(results).filter(|(_, r)| !matches!(r, ResultFile::Run(_))) {
        if results.len() > 1 {
            sections.push(Section::Text { title: file.display().to_string(), body: String::new() });
        }
        sections.extend(result.sections());
    }
    sections
}
