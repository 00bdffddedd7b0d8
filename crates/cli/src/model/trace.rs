//! `wattwise trace` and `wattwise import`: what a recording holds, and what replaying it would use.

use crate::exit::{Failure, Outcome, print, print_json};
use serde::Serialize;
use std::path::{Path, PathBuf};
use wattwise_model::workload::{Program, Workload};
use wattwise_replay::library;
use wattwise_replay::library::Bundled;
use wattwise_trace::{ImportOptions, Source, Summary, import as import_trace, summarise};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A recording (perf.data, trace.dat, ftrace text, each also as .zst), or the name of a bundled one
    file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// A recording (perf.data, trace.dat, ftrace text, each also as .zst), or the name of a bundled one
    file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A bundled recording by name, else a file.
fn source(file: &Path) -> Source {
    let name = file.display().to_string();
    match library::workloads().into_iter().find(|b| b.recorded && b.name == name) {
        Some(b) => Source::Static { name, data: b.bytes },
        None => Source::Path(file.to_owned()),
    }
}

fn show(summary: &Summary, json: bool) -> Outcome {
    if json {
        print_json(summary)?;
    } else {
        print(&summary.to_string())?;
    }
    Ok(0)
}

pub(crate) fn run(args: &Args) -> Outcome {
    let summary = summarise(source(&args.file), &ImportOptions::default()).map_err(Failure::input)?;
    show(&summary, args.json)
}

/// `wattwise workloads show NAME` of a recording.
pub(crate) fn show_bundled(b: &Bundled) -> Outcome {
    print(&format!("{}: {}\n\n", b.name, b.summary))?;
    let source = Source::Static { name: b.name.to_owned(), data: b.bytes };
    show(&summarise(source, &ImportOptions::default()).map_err(Failure::work)?, false)
}

/// What replaying a recording uses.
#[derive(Serialize)]
struct Imported {
    name: String,
    cpus: u16,
    recorded_khz: u32,
    span_s: f64,
    events: u64,
    lost: u64,
    tasks: usize,
    steps: u64,
    /// Size of the tasks' programs in memory.
    script_bytes: usize,
    busy_s: Vec<f64>,
    warnings: Vec<String>,
}

impl Imported {
    fn new(w: &Workload) -> Imported {
        let scripts = || {
            w.tasks.iter().filter_map(|t| match &t.program {
                Program::Recorded(s) => Some(s),
                Program::Pattern(_) => None,
            })
        };
        let r = w.recorded.as_ref();
        Imported {
            name: w.name.clone(),
            cpus: r.map_or(0, |r| r.cpus),
            recorded_khz: r.map_or(0, |r| r.khz),
            span_s: w.span_ns as f64 * 1e-9,
            events: r.map_or(0, |r| r.events),
            lost: r.map_or(0, |r| r.lost),
            tasks: w.tasks.len(),
            steps: scripts().map(|s| s.ops()).sum(),
            script_bytes: scripts().map(|s| s.size()).sum(),
            busy_s: r.map_or_else(Vec::new, |r| r.busy_ns.iter().map(|&n| n as f64 * 1e-9).collect()),
            warnings: r.map_or_else(Vec::new, |r| r.warnings.clone()),
        }
    }
}

pub(crate) fn import(args: &ImportArgs) -> Outcome {
    let workload = import_trace(source(&args.file), &ImportOptions::default()).map_err(Failure::input)?;
    let i = Imported::new(&workload);
    if args.json {
        print_json(&i)?;
        return Ok(0);
    }
    let busy: Vec<String> = i.busy_s.iter().map(|s| format!("{s:.3}")).collect();
    let mut out = format!(
        "{}: can be replayed\n{} events ({} lost) on {} CPUs over {:.3} s\n{} tasks, {} steps in {} KiB\n\
         busy: {} s a CPU, at {:.3} GHz\n",
        i.name,
        i.events,
        i.lost,
        i.cpus,
        i.span_s,
        i.tasks,
        i.steps,
        i.script_bytes / 1024,
        busy.join(", "),
        f64::from(i.recorded_khz) * 1e-6,
    );
    for w in &i.warnings {
        out += &format!("warning: {w}\n");
    }
    out += &format!("replay it: wattwise compare {}\n", args.file.display());
    print(&out)?;
    Ok(0)
}
