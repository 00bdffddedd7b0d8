//! `wattwise trace` and `wattwise import`: what a recording holds, and what replaying it would use.

use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::model::recording::{ReadingLimits, RecordingArgs};
use crate::show::trace::Work;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use wattwise_figure::{fixed, shell};
use wattwise_model::workload::{ClockOrigin, Program, Workload};
use wattwise_replay::library;
use wattwise_replay::library::Bundled;
use wattwise_trace::{ImportOptions, Source, Summary, import as import_trace, summarise};

/// Version of what `trace --json` prints.
pub(crate) const SCHEMA: &str = "wattwise.trace/1";
/// Version of what `import --json` prints.
pub(crate) const IMPORT_SCHEMA: &str = "wattwise.import/1";

#[derive(clap::Args)]
pub(crate) struct TraceArgs {
    /// A recording (perf.data, trace.dat, ftrace text, Perfetto's, each also as .zst, .gz, .xz or .bz2), or the name of a bundled one
    file: PathBuf,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    limits: ReadingLimits,
    /// Print everything: events by kind, each CPU, distributions, tasks
    #[arg(long)]
    all: bool,
    /// Print as JSON (schema wattwise.trace/1)
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// A recording (perf.data, trace.dat, ftrace text, Perfetto's, each also as .zst, .gz, .xz or .bz2), or the name of a bundled one
    file: PathBuf,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    limits: ReadingLimits,
    /// Print as JSON (schema wattwise.import/1)
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

/// A summary, and what of it would be compared.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Shown {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    work: Work,
}

impl Shown {
    /// For people: one screen, or everything.
    pub(crate) fn text(&self, all: bool) -> String {
        match all {
            true => format!("{}{}", self.summary, self.work.lines()),
            false => crate::show::trace::text(&self.summary, &self.work),
        }
    }
}

/// How a recording is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Json,
    Screen,
    All,
}

fn show(source: Source, options: &ImportOptions, how: As) -> Outcome {
    let summary = summarise(source.clone(), options).map_err(Failure::input)?;
    let work = Work::new(&import_trace(source, options).map_err(Failure::input)?);
    let shown = Shown { summary, work };
    match how {
        As::Json => print_json_as(SCHEMA, &shown)?,
        As::Screen | As::All => print(&shown.text(how == As::All))?,
    }
    Ok(0)
}

pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let how = match (args.json, args.all) {
        (true, _) => As::Json,
        (false, true) => As::All,
        (false, false) => As::Screen,
    };
    show(source(&args.file), &args.recording.options(args.limits.budget), how)
}

/// `wattwise workloads show NAME` of a recording.
pub(crate) fn show_bundled(b: &Bundled, json: bool) -> Outcome {
    let source = Source::Static { name: b.name.to_owned(), data: b.bytes };
    if json {
        return show(source, &ImportOptions::default(), As::Json);
    }
    print(&format!("{}: {}\n\n", b.name, b.summary))?;
    show(source, &ImportOptions::default(), As::Screen)
}

/// What replaying a recording uses.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Imported {
    /// The recording.
    name: String,
    /// CPUs of the machine it was made on.
    cpus: u16,
    /// Clock at which its run times are taken to be recorded, in kHz.
    recorded_khz: u32,
    /// From its first event to its last, without the time that was taken out, in seconds.
    span_s: f64,
    /// Of the time taken out, that in which the machine was suspended, in seconds.
    suspended_s: f64,
    /// Its events.
    events: u64,
    /// Events that the recorder lost.
    lost: u64,
    /// Tasks to be replayed.
    tasks: usize,
    /// What they do, in steps.
    steps: u64,
    /// Size of the tasks' programs in memory.
    script_bytes: usize,
    /// Time with a task, each CPU, in seconds.
    busy_s: Vec<f64>,
    #[serde(flatten)]
    work: Work,
    /// What could not be used or had to be assumed, a sentence each.
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
            suspended_s: r.map_or(0.0, |r| r.suspended_ns as f64 * 1e-9),
            events: r.map_or(0, |r| r.events),
            lost: r.map_or(0, |r| r.lost),
            tasks: w.tasks.len(),
            steps: scripts().map(|s| s.ops()).sum(),
            script_bytes: scripts().map(|s| s.size()).sum(),
            busy_s: r.map_or_else(Vec::new, |r| r.busy_ns.iter().map(|&n| n as f64 * 1e-9).collect()),
            work: Work::new(w),
            warnings: r.map_or_else(Vec::new, |r| r.warnings.clone()),
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let busy: Vec<String> = self.busy_s.iter().map(|s| fixed(*s, 3)).collect();
        let mut out = format!(
            "{}: can be replayed\n{} events ({} lost) on {} CPUs over {} s\n{} tasks, {} steps in {} KiB\n\
             busy: {} s a CPU\n{}",
            self.name,
            self.events,
            self.lost,
            self.cpus,
            fixed(self.span_s, 3),
            self.tasks,
            self.steps,
            self.script_bytes / 1024,
            busy.join(", "),
            self.work.lines(),
        );
        for w in &self.warnings {
            out += &format!("warning: {w}\n");
        }
        out
    }
}

pub(crate) fn import(args: &ImportArgs) -> Outcome {
    let workload = import_trace(source(&args.file), &args.recording.options(args.limits.budget))
        .map_err(Failure::input)?;
    let i = Imported::new(&workload);
    if args.json {
        print_json_as(IMPORT_SCHEMA, &i)?;
        return Ok(0);
    }
    let unknown = workload.recorded.as_ref().is_some_and(|r| r.clock == ClockOrigin::Unknown);
    let clock = if unknown { " --recorded-khz 2.6GHz   # at the clock that it had" } else { "" };
    print(&format!("{}replay it: wattwise compare {}{clock}\n", i.text(), shell::file(&args.file)))?;
    Ok(0)
}
