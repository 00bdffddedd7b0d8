//! `policies`, `machines`, `workloads`: what there is, and each thing in full.

use crate::exit::{Failure, Outcome, print, print_json};
use clap::Subcommand;
use serde::Serialize;
use std::fmt::Write;
use wattwise_figure::nearest;
use wattwise_model::machine::builtin;
use wattwise_policy::{Param, ParamKind, cores, essay, idle, speed};
use wattwise_replay::library;
use wattwise_replay::spec::placements;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Show one in full
    Show {
        /// Its name
        name: String,
    },
    /// List them (the default)
    List,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: String,
    summary: String,
}

/// Names, padded, and their summaries, by kind.
fn list(args: &Args, entries: &[Entry]) -> Outcome {
    if args.json {
        print_json(&entries)?;
        return Ok(0);
    }
    let width = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut kind = "";
    for e in entries {
        if e.kind != kind {
            kind = &e.kind;
            _ = writeln!(out, "{}{kind}", if out.is_empty() { "" } else { "\n" });
        }
        _ = writeln!(out, "  {:width$}  {}", e.name, e.summary);
    }
    print(&out)?;
    Ok(0)
}

fn unknown(what: &str, name: &str, entries: &[Entry]) -> Failure {
    let nearest = nearest(name, entries.iter().map(|e| e.name.as_str()));
    Failure::input(format!("{what} show {name}: no such name; did you mean '{nearest}'?"))
}

/// One policy's page.
fn page(name: &str, summary: &str, follows: &str, source: &'static str, params: &[Param]) -> String {
    let mut out = format!("{name}: {summary}\nFollows: {follows}\n\n");
    for line in essay(source) {
        _ = writeln!(out, "{line}");
    }
    if !params.is_empty() {
        _ = writeln!(out, "\nParameters (--policy {name}:key=value,...)");
    }
    for p in params {
        let values = match p.kind {
            ParamKind::Number { unit, min, max, default } => {
                format!("{min} to {max} {unit}, default {default}")
            }
            ParamKind::Choice(words) => format!("{}, default {}", words.join(" | "), words[0]),
        };
        _ = writeln!(out, "  {:14} {} [{}]", p.name, p.help, values);
    }
    out
}

pub(crate) fn policies(args: &Args) -> Outcome {
    let entry = |name: &str, kind: &str, summary: &str| Entry {
        name: name.into(),
        kind: kind.into(),
        summary: summary.into(),
    };
    let mut entries: Vec<Entry> =
        speed::ALL.iter().map(|p| entry(p.name, "speed (P-states)", p.summary)).collect();
    entries.extend(idle::ALL.iter().map(|p| entry(p.name, "idle (C-states)", p.summary)));
    entries
        .extend(cores::ALL.iter().map(|p| entry(p.name, "cores (which CPUs are kept for work)", p.summary)));
    entries.extend(
        placements().map(|(word, _, help)| entry(word, "placements (where a waking task goes)", help)),
    );
    let Some(What::Show { name }) = &args.what else { return list(args, &entries) };
    if let Some((word, _, help)) = placements().find(|(word, ..)| word == name) {
        print(&format!("{word}: {help}\n"))?;
        return Ok(0);
    }
    let page = match (speed::find(name), idle::find(name), cores::find(name)) {
        (Some(p), ..) => page(p.name, p.summary, p.follows, p.source, p.params),
        (None, Some(p), _) => page(p.name, p.summary, p.follows, p.source, p.params),
        (None, None, Some(p)) => page(p.name, p.summary, p.follows, p.source, p.params),
        (None, None, None) => return Err(unknown("policies", name, &entries)),
    };
    print(&page)?;
    Ok(0)
}

pub(crate) fn machines(args: &Args) -> Outcome {
    let entries: Vec<Entry> = builtin::names()
        .map(|name| {
            let machine = library::machine(name).map_err(Failure::work)?;
            Ok(Entry { name: name.into(), kind: "models".into(), summary: machine.summary })
        })
        .collect::<Result<_, Failure>>()?;
    let Some(What::Show { name }) = &args.what else { return list(args, &entries) };
    let text = builtin::text(name).ok_or_else(|| unknown("machines", name, &entries))?;
    print(text)?;
    Ok(0)
}

pub(crate) fn workloads(args: &Args) -> Outcome {
    let all = library::workloads();
    let kind = |recorded: bool| if recorded { "recorded here, from real programs" } else { "generated" };
    let entries: Vec<Entry> = all
        .iter()
        .map(|b| Entry { name: b.name.into(), kind: kind(b.recorded).into(), summary: b.summary.clone() })
        .collect();
    let Some(What::Show { name }) = &args.what else { return list(args, &entries) };
    let Some(b) = all.iter().find(|b| b.name == name) else {
        return Err(unknown("workloads", name, &entries));
    };
    if b.recorded {
        return crate::model::trace::show_bundled(b);
    }
    print(&String::from_utf8_lossy(b.bytes))?;
    Ok(0)
}
