//! `policies`, `workloads`: what there is, and each thing in full.

use crate::exit::{Failure, Outcome, print, print_json_as};
use clap::Subcommand;
use serde::Serialize;
use std::fmt::Write;
use wattwise_figure::nearest;
use wattwise_policy::{Param, ParamKind, Speed, cores, dram, essay, idle, speed};
use wattwise_replay::library::{self, Bundled};
use wattwise_replay::mixes::{self, MIXES};
use wattwise_replay::spec::{PlacementWord, placements};

#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    what: Option<ListCommand>,
    /// Print as JSON (schema wattwise.list/1, of one thing in full wattwise.show/1)
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum ListCommand {
    /// Show one in full
    Show {
        /// Its name
        name: String,
    },
    /// List them (the default)
    List,
}

/// Version of a list.
pub(crate) const SCHEMA: &str = "wattwise.list/1";
/// Version of one thing in full.
pub(crate) const SHOW_SCHEMA: &str = "wattwise.show/1";

/// What there is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct List<'a> {
    /// One entry a thing.
    entries: &'a [Entry],
}

/// A policy, a machine model or a workload.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Entry {
    /// As it is given to other commands.
    pub(crate) name: String,
    /// The heading under which it is listed.
    pub(crate) kind: String,
    /// In a sentence.
    pub(crate) summary: String,
}

/// One of them in full.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Shown<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// Its page or its file, as `show` prints it.
    text: &'a str,
}

/// Prints one thing in full.
fn shown(args: &ListArgs, name: &str, entries: &[Entry], text: &str) -> Outcome {
    match entries.iter().find(|e| e.name == name) {
        Some(entry) if args.json => print_json_as(SHOW_SCHEMA, &Shown { entry, text })?,
        _ => print(text)?,
    }
    Ok(0)
}

/// Names, padded, and their summaries, by kind.
pub(crate) fn list(json: bool, entries: &[Entry]) -> Outcome {
    if json {
        print_json_as(SCHEMA, &List { entries })?;
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

/// A name that is none; `what` is the command that was given it.
pub(crate) fn unknown(what: &str, name: &str, entries: &[Entry]) -> Failure {
    let nearest = nearest(name, entries.iter().map(|e| e.name.as_str()));
    Failure::input(format!("{what} {name}: no such name; did you mean '{nearest}'?"))
}

/// One policy's page; `before` is what stands before its name in a policy.
fn page(
    before: &str,
    (name, summary, follows): (&str, &str, &str),
    notes: &str,
    source: &'static str,
    params: &[Param],
) -> String {
    let mut out = format!("{name}: {summary}\nFollows: {follows}\n{notes}\n");
    for line in essay(source) {
        _ = writeln!(out, "{line}");
    }
    if !params.is_empty() {
        _ = writeln!(out, "\nParameters (--policy {before}{name}:key=value,...)");
    }
    for p in params {
        let values = match p.kind {
            ParamKind::Number { unit, min, max, default } => {
                format!("{min} to {max} {unit}, default {default}")
            }
            ParamKind::Choice(words) => format!("{}, default {}", words.join(" | "), words[0]),
            kind @ ParamKind::Scale { default, .. } => {
                format!("{}, default {}", kind.expected(), kind.show(f64::from(default)))
            }
        };
        _ = writeln!(out, "  {:14} {} [{}]", p.name, p.help, values);
    }
    out
}

/// What stands before a governor of the memory's clock.
const DRAM: &str = "dram=";

/// Where a speed policy can be had, and how true it is.
fn standing(policy: &Speed) -> String {
    let systems: Vec<&str> = policy.systems().iter().map(|s| s.title()).collect();
    let systems = if systems.is_empty() { "no system as it comes".into() } else { systems.join(", ") };
    let mut lines = format!("Can be applied on: {systems}\n");
    if let Some(why) = policy.approximation() {
        _ = writeln!(lines, "An approximation: {why}");
    }
    lines
}

pub(crate) fn policies(args: &ListArgs) -> Outcome {
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
    entries.extend(placements().map(|p| entry(p.word, "placements (where a waking task goes)", p.help)));
    let memory = dram::ALL
        .iter()
        .map(|p| entry(&format!("{DRAM}{}", p.name), "the memory's clock (a board's +dram=)", p.summary));
    entries.extend(memory);
    let Some(ListCommand::Show { name }) = &args.what else { return list(args.json, &entries) };
    if let Some(p) = name.strip_prefix(DRAM).and_then(dram::find) {
        let text = page("schedutil+", (name, p.summary, p.follows), "", dram::SOURCE, p.params);
        return shown(args, name, &entries, &text);
    }
    if let Some(PlacementWord { word, help, .. }) = placements().find(|p| p.word == name) {
        return shown(args, name, &entries, &format!("{word}: {help}\n"));
    }
    let page = match (speed::find(name), idle::find(name), cores::find(name)) {
        (Some(p), ..) => page("", (p.name, p.summary, p.follows), &standing(p), p.source, p.params),
        (None, Some(p), _) => page("schedutil+", (p.name, p.summary, p.follows), "", p.source, p.params),
        (None, None, Some(p)) => page("schedutil+", (p.name, p.summary, p.follows), "", p.source, p.params),
        (None, None, None) => return Err(unknown("policies show", name, &entries)),
    };
    shown(args, name, &entries, &page)
}

pub(crate) fn workloads(args: &ListArgs) -> Outcome {
    let all = library::workloads();
    let kind = |b: &Bundled| match (b.recorded, b.development) {
        (true, true) => "recorded here, from real programs, and used in the development of wattwise",
        (true, false) => "recorded here, from real programs",
        (false, _) => "generated",
    };
    let entries: Vec<Entry> = all
        .iter()
        .map(|b| Entry { name: b.name.into(), kind: kind(b).into(), summary: b.summary.clone() })
        .chain(MIXES.iter().map(|m| Entry {
            name: m.name.into(),
            kind: "mixes of these".into(),
            summary: m.summary.into(),
        }))
        .collect();
    let Some(ListCommand::Show { name }) = &args.what else { return list(args.json, &entries) };
    if let Some(mix) = mixes::find(name) {
        let works = mix.works.iter().map(|(work, weight)| format!("{work}={weight}")).collect::<Vec<_>>();
        return shown(args, name, &entries, &format!("{name}: {}\n{}\n", mix.summary, works.join(" ")));
    }
    let Some(b) = all.iter().find(|b| b.name == name) else {
        return Err(unknown("workloads show", name, &entries));
    };
    if b.recorded {
        return crate::model::trace::show_bundled(b, args.json);
    }
    shown(args, name, &entries, &String::from_utf8_lossy(b.bytes))
}
