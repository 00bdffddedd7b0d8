//! `wattwise reproduce`: published studies, rerun on models of their machines.

use crate::args::output;
use crate::args::output::OutputPath;
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::show::screen::{Screen, TextStyle, note};
use crate::show::table::{cell, drawn, wrapped};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Drawn, presets};
use std::fmt::Write;
use wattwise_page::{Section, Table};
use wattwise_study::table::scoreboard;
use wattwise_study::{Figure, Study, StudyError};

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.reproduce/2";

/// Studies, rerun.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Studies {
    /// One entry a study.
    studies: Vec<Study>,
}

#[derive(clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The study; all of them when none is named
    study: Option<Name>,
    /// Write a report: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    /// Print the figures as JSON (schema wattwise.reproduce/2)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// FreeBSD speed states (2010)
    Thomson,
    /// OpenBSD battery policies (2021)
    Openbsd,
    /// Locks whose waiters lower their cores (Powerctl)
    Powerctl,
    /// Few cores kept for light load (COREIDLE)
    Coreidle,
    /// Throughput of a router board at five speeds (2013)
    Bc10,
    /// All of them
    All,
}

pub(crate) fn run(args: &ReproduceArgs) -> Outcome {
    let one: &[fn() -> Result<Study, StudyError>] = match args.study {
        Some(Name::Thomson) => &[wattwise_study::thomson::run],
        Some(Name::Openbsd) => &[wattwise_study::openbsd::run],
        Some(Name::Powerctl) => &[wattwise_study::powerctl::run],
        Some(Name::Coreidle) => &[wattwise_study::coreidle::run],
        Some(Name::Bc10) => &[wattwise_study::bc10::run],
        Some(Name::All) | None => &[
            wattwise_study::thomson::run,
            wattwise_study::openbsd::run,
            wattwise_study::coreidle::run,
            wattwise_study::bc10::run,
            wattwise_study::powerctl::run,
        ],
    };
    let report = output::open("--report", args.report.as_ref())?;
    let studies: Vec<Study> = one.iter().map(|s| s()).collect::<Result<_, _>>().map_err(Failure::work)?;
    if let Some(report) = report {
        let mut sections = vec![Section::Table(scoreboard(&studies)), verdicts(&studies)];
        sections.extend(studies.iter().flat_map(|s| s.page.clone()));
        let title = studies.iter().map(|s| s.title).collect::<Vec<_>>().join("; ");
        let name = report.name.clone();
        report.write(wattwise_page::page("reproduce", &title, &sections).as_bytes())?;
        note!("report written ({name})");
    }
    if args.json {
        print_json_as(SCHEMA, &Studies { studies })?;
        return Ok(0);
    }
    let look = Screen::Out.look();
    for s in &studies {
        print(&format!("{}\n", text(s, look)))?;
    }
    if studies.len() > 1 {
        let board = scoreboard(&studies);
        print(&format!(
            "{}\n{}\n{}\n",
            board.title,
            table(&board.head, &board.rows, look),
            wrapped(&board.note, "")
        ))?;
    }
    Ok(0)
}

/// A study: how well the model does, its figures, what they rest on.
fn text(study: &Study, look: TextStyle) -> String {
    let mut out = format!("{}\n{}\n\n", study.title, wrapped(&study.verdict(), ""));
    let head = ["", "published", "modelled", "off by", "basis"].map(str::to_owned);
    let rows: Vec<Vec<String>> = study.results.iter().map(figure).collect();
    _ = writeln!(out, "{}", table(&head, &rows, look));
    _ = writeln!(
        out,
        "\n{}",
        wrapped(
            &format!(
                "The study prints {} figures; ours stands beside {} of them, each with its basis and the cause of a miss: \
                 --report FILE or --json.",
                study.score.printed, study.score.rows
            ),
            ""
        )
    );
    for t in &study.tables {
        _ = writeln!(out, "\n{}\n{}\n{}", t.title, table(&t.head, &t.rows, look), wrapped(&t.note, ""));
    }
    let open: Vec<String> =
        study.open.iter().map(|o| format!("{} {}. {}", o.question, o.told(), o.tried)).collect();
    let parts = [
        ("Fitted", &study.fitted),
        ("What differs, and why", &study.differences),
        ("What the author left open", &open),
    ];
    for (title, lines) in parts {
        _ = writeln!(out, "\n{title}");
        lines.iter().for_each(|l| _ = writeln!(out, "{}", wrapped(&format!("- {l}"), "  ")));
    }
    out
}

fn figure(f: &Figure) -> Vec<String> {
    let value = |v: f64, sd: Option<f64>| match sd {
        Some(sd) => format!("{v:.1} +- {sd:.1} {}", f.unit),
        None => format!("{v:.2} {}", f.unit),
    };
    vec![
        f.what.clone(),
        f.published.map_or("-".into(), |p| value(p, f.published_sd)),
        value(f.modelled, f.modelled_sd),
        f.off(),
        f.basis.word().to_owned(),
    ]
}

/// Figures beside their names, which take several lines where the terminal is narrow.
fn table(head: &[String], rows: &[Vec<String>], look: TextStyle) -> String {
    let mut table = Drawn::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(look.columns as u16);
    let right = |(at, text): (usize, &String)| {
        cell(text).set_alignment(if at == 0 { CellAlignment::Left } else { CellAlignment::Right })
    };
    table.set_header(head.iter().enumerate().map(right));
    for row in rows {
        table.add_row(row.iter().enumerate().map(right));
    }
    table.column_iter_mut().skip(1).for_each(|c| _ = c.set_constraint(ColumnConstraint::ContentWidth));
    drawn(table, look.colour)
}

/// How well the model does, study by study.
fn verdicts(studies: &[Study]) -> Section {
    match studies {
        [one] => Section::Text { title: "Verdict".to_owned(), body: one.verdict() },
        _ => Section::Table(Table {
            title: "Verdict".to_owned(),
            head: ["Study", "How the model does"].map(str::to_owned).to_vec(),
            rows: studies.iter().map(|s| vec![s.title.to_owned(), s.verdict()]).collect(),
            note: String::new(),
        }),
    }
}
