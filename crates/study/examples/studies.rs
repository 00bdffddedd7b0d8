//! Makes `docs/notes/studies.md`: every study, what it comes to, and each printed figure that is no single run.
//!
//! `cargo run --release -p wattwise-study --example studies` prints it; with `--check FILE` it only says whether FILE is still
//! what it would print.

use std::fmt::Write;
use wattwise_study::printed::{PrintedFigure, Standing};
use wattwise_study::table::scoreboard;
use wattwise_study::{Study, bc10, coreidle, openbsd, powerctl, thomson};

fn main() {
    let page = page();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print!("{page}"),
        ["--check", file] => {
            let kept = std::fs::read_to_string(file).unwrap_or_default();
            if kept != page {
                eprintln!(
                    "{file} is out of date: cargo run --release -p wattwise-study --example studies > {file}"
                );
                std::process::exit(1);
            }
        }
        _ => {
            eprintln!("expected nothing, or --check FILE");
            std::process::exit(2);
        }
    }
}

fn page() -> String {
    let all = [thomson::run, openbsd::run, coreidle::run, bc10::run, powerctl::run];
    let studies: Vec<Study> = all.iter().map(|run| run().expect("bundled")).collect();
    let mut out = String::from(
        "# The five studies, figure by figure\n\nMade by `cargo run --release -p wattwise-study --example studies`, and held \
         against it in CI. Every printed figure,\nsingle runs and package states too, is in `wattwise reproduce all --json`. \
         What counts, and as what, is said in\n`crates/study/src/printed.rs`. All figures of ours are modelled; nothing was \
         measured on the studies' machines.\n\n",
    );
    let board = scoreboard(&studies);
    table(&mut out, &board.head, &board.rows);
    _ = writeln!(out, "\n{}", board.note);
    for study in &studies {
        told(&mut out, study);
    }
    out
}

fn told(out: &mut String, study: &Study) {
    _ = writeln!(out, "\n## {}\n\n{}\n", study.title, study.verdict());
    let shown = |f: &&PrintedFigure| !f.trivial && f.basis != Standing::Input;
    let rows: Vec<Vec<String>> = study.figures.iter().filter(shown).map(row).collect();
    let head = ["figure", "printed", "ours", "basis", "agrees"].map(String::from);
    if !rows.is_empty() {
        table(out, &head, &rows);
    }
    list(out, "Fitted", &study.fitted);
    list(out, "What differs, and why", &study.differences);
    let open: Vec<String> =
        study.open.iter().map(|o| format!("{} {}. {}", o.question, o.told(), o.tried)).collect();
    list(out, "What the author left open", &open);
    let unknown =
        study.figures.iter().filter(|f| !f.trivial && f.cause.as_deref() == Some("unknown")).count();
    _ = writeln!(out, "\nMisses without a tested cause: {unknown}.");
}

fn row(f: &PrintedFigure) -> Vec<String> {
    let ours = f.ours.map_or(String::new(), |v| format!("{v:.3}"));
    let agrees = f.within.or(f.sign).map_or("", |b| if b { "yes" } else { "no" });
    vec![
        format!("{}: {}", f.location, f.quantity),
        format!("{} {}", f.printed, f.unit),
        ours,
        format!("{:?}", f.basis).to_lowercase(),
        agrees.to_owned(),
    ]
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        _ = writeln!(out, "\n{title}:\n");
        lines.iter().for_each(|l| _ = writeln!(out, "- {l}"));
    }
}

fn table(out: &mut String, head: &[String], rows: &[Vec<String>]) {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    _ = writeln!(out, "{}\n|{}", line(head), "---|".repeat(head.len()));
    rows.iter().for_each(|r| _ = writeln!(out, "{}", line(r)));
}
