//! Where a comparison's results go, and in which shape. Files are opened before the work: one that cannot be written
//! is better known before than after it.

use crate::exit::{Failure, print, print_json};
use crate::model::cases::Case;
use crate::show::screen::{Screen, say, tell};
use crate::show::table::Order;
use crate::show::{csv, markdown, summary, table};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Goal;
use wattwise_advice::summary::ComparisonSet;
use wattwise_advice::watched::watch;
use wattwise_replay::export::{Ftrace, Perfetto};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write a report: one HTML file that needs no network ('-': standard output)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    /// Write a trace for ui.perfetto.dev: what each CPU runs, its C-states and speed, and the power, under each policy
    /// ('-': standard output)
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write what a Linux kernel would have recorded under the one policy that is named, as ftrace text ('-': standard
    /// output)
    #[arg(long, value_name = "FILE")]
    ftrace: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct FormatArgs {
    /// Print the result as JSON (schema wattwise-compare-2; of several comparisons wattwise-compare-set-1)
    #[arg(long)]
    json: bool,
    /// Print the result as CSV, a row for each policy of each comparison; a text that a spreadsheet would calculate has ' before it
    #[arg(long)]
    csv: bool,
    /// Print the result as Markdown tables
    #[arg(long)]
    markdown: bool,
}

/// What is asked for, as far as it decides which outputs make sense.
pub(crate) struct Asked {
    /// More than one workload or machine.
    pub(crate) several: bool,
    /// Policies that are named, scans spread out.
    pub(crate) policies: usize,
    /// They are one scan: they are shown in its order.
    pub(crate) scan: bool,
}

impl OutputArgs {
    /// Whether a report is asked for.
    pub(crate) fn has_report(&self) -> bool {
        self.report.is_some()
    }

    /// The files that are asked for, by flag.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [("--report", &self.report), ("--perfetto", &self.perfetto), ("--ftrace", &self.ftrace)];
        all.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?)))
    }

    /// Opens all files.
    pub(crate) fn open(&self, asked: Asked) -> Result<Outputs, Failure> {
        if self.report.is_some() && asked.several {
            return Err(Failure::input(
                "--report: expected one workload and one machine; --json, --csv and --markdown take several",
            ));
        }
        if self.ftrace.is_some() && (asked.several || asked.policies != 1) {
            return Err(Failure::input("--ftrace: expected one workload, one machine and one --policy"));
        }
        self.check_clashes()?;
        let open = |flag: &'static str, path: &Option<PathBuf>| {
            path.as_deref().map(|path| Target::open(flag, path)).transpose()
        };
        let perfetto = open("--perfetto", &self.perfetto)?;
        let to_terminal = self.files().all(|(_, path)| path != Path::new("-"));
        Ok(Outputs {
            report: open("--report", &self.report)?,
            perfetto: perfetto.map(|t| (t.name, Perfetto::new(t.out))),
            ftrace: open("--ftrace", &self.ftrace)?,
            format: match &self.format {
                FormatArgs { json: true, .. } => Format::Json,
                FormatArgs { csv: true, .. } => Format::Csv,
                FormatArgs { markdown: true, .. } => Format::Markdown,
                _ if to_terminal => Format::Table,
                _ => Format::TableOnStderr,
            },
            asked,
        })
    }

    /// Two outputs to one place.
    fn check_clashes(&self) -> Result<(), Failure> {
        let f = &self.format;
        let printed = [("--json", f.json), ("--csv", f.csv), ("--markdown", f.markdown)];
        let printed = printed.into_iter().filter(|(_, on)| *on).map(|(flag, _)| (flag, Path::new("-")));
        let all: Vec<(&str, &Path)> = printed.chain(self.files()).collect();
        for (i, (flag, path)) in all.iter().enumerate() {
            if let Some((other, _)) = all[..i].iter().find(|(_, p)| p == path) {
                let place = if *path == Path::new("-") {
                    "standard output".into()
                } else {
                    path.display().to_string()
                };
                return Err(Failure::input(format!(
                    "{flag} and {other}: both to {place}; expected different files"
                )));
            }
        }
        Ok(())
    }
}

/// A file or standard output, and how errors name it.
struct Target {
    name: String,
    out: Box<dyn Write>,
}

impl Target {
    fn open(flag: &str, path: &Path) -> Result<Target, Failure> {
        if path == Path::new("-") {
            let out = Box::new(BufWriter::new(std::io::stdout()));
            return Ok(Target { name: format!("{flag} -"), out });
        }
        let name = format!("{flag} {}", path.display());
        let file = File::create(path)
            .map_err(|e| Failure::input(format!("{name}: {e}; expected a file that can be written")))?;
        Ok(Target { name, out: Box::new(BufWriter::new(file)) })
    }
}

/// What became of writing to an output. A reader who has gone away ends the program in peace.
fn written<T>(name: &str, result: std::io::Result<T>) -> Result<T, Failure> {
    result.map_err(|e| match e.kind() {
        std::io::ErrorKind::BrokenPipe if name.ends_with(" -") => std::process::exit(0),
        _ => Failure::work(format!("{name}: {e}")),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    /// Standard output has something else.
    TableOnStderr,
    Json,
    Csv,
    Markdown,
}

/// The outputs, opened.
pub(crate) struct Outputs {
    report: Option<Target>,
    perfetto: Option<(String, Perfetto<Box<dyn Write>>)>,
    ftrace: Option<Target>,
    format: Format,
    asked: Asked,
}

impl Outputs {
    /// Takes one comparison: everything but what can only be told of all.
    pub(crate) fn one(
        &mut self,
        case: &Case<'_>,
        job: &ReplayJob<'_>,
        (comparison, details): (&Comparison, &[PolicyDetail]),
        command: &str,
    ) -> Result<(), Failure> {
        if let Some(mut report) = self.report.take() {
            let html = wattwise_report::compare_html(comparison, details, command);
            let out = report.out.write_all(html.as_bytes()).and_then(|()| report.out.flush());
            written(&report.name, out)?;
            say!("report written ({})", report.name);
        }
        self.add_to_perfetto(case, job, comparison)?;
        self.write_ftrace(job, comparison)?;
        let order = if self.asked.scan { Order::Asked } else { Order::Best };
        match self.format {
            Format::Table => {
                let text = table::comparison(comparison, Screen::Out.look(), order);
                print(&if self.asked.several { text + "\n" } else { text })
            }
            Format::TableOnStderr => {
                tell(&table::comparison(comparison, Screen::Err.look(), order));
                Ok(())
            }
            Format::Json | Format::Csv | Format::Markdown => Ok(()),
        }
    }

    fn add_to_perfetto(
        &mut self,
        case: &Case<'_>,
        job: &ReplayJob<'_>,
        comparison: &Comparison,
    ) -> Result<(), Failure> {
        let Some((_, trace)) = &mut self.perfetto else { return Ok(()) };
        let named = |policy: &PolicySpec| case.policies.iter().any(|p| p.text == policy.text);
        let reference = Some(&case.reference).filter(|r| !named(r));
        for policy in reference.into_iter().chain(&case.policies) {
            let name = match self.asked.several {
                true => format!("{} ({} on {})", policy.text, comparison.workload.name, comparison.machine),
                false => policy.text.clone(),
            };
            let mut replay = trace.replay(&name, job.machine, job.workload);
            let end = watch(job, policy, comparison.window_s, &mut replay).map_err(Failure::work)?;
            replay.end_at(end.elapsed_ns, end.energy.total_j());
        }
        Ok(())
    }

    fn write_ftrace(&mut self, job: &ReplayJob<'_>, comparison: &Comparison) -> Result<(), Failure> {
        let Some(target) = self.ftrace.take() else { return Ok(()) };
        let mut trace = Ftrace::new(target.out, job.machine, job.workload);
        watch(job, &job.policies[0], comparison.window_s, &mut trace).map_err(Failure::work)?;
        let events = written(&target.name, trace.finish())?;
        say!("ftrace text written ({}): {events} events", target.name);
        Ok(())
    }

    /// Ends all outputs, with what can only be told of all comparisons.
    pub(crate) fn end(self, mut comparisons: Vec<Comparison>, goal: Goal) -> Result<(), Failure> {
        if let Some((name, trace)) = self.perfetto {
            let n = written(&name, trace.finish())?;
            say!(
                "Perfetto trace written ({name}): {} replays, {} runs, {} stays in C-states, {} wake-ups, {} \
                 changes of speed, {} values of power",
                n.replays,
                n.runs,
                n.stays,
                n.wakeups,
                n.speeds,
                n.powers
            );
        }
        if !self.asked.several {
            let Some(only) = comparisons.pop() else { return Ok(()) };
            return match self.format {
                Format::Json => print_json(&only),
                Format::Csv => print(&csv::comparisons(&[only])?),
                Format::Markdown => print(&markdown::comparison(&only)),
                Format::Table | Format::TableOnStderr => Ok(()),
            };
        }
        let set = ComparisonSet::new(comparisons, goal);
        match self.format {
            Format::Json => print_json(&set),
            Format::Csv => print(&csv::comparisons(&set.comparisons)?),
            Format::Markdown => print(&markdown::set(&set)),
            Format::Table => print(&summary::text(&set.summary, Screen::Out.look())),
            Format::TableOnStderr => {
                tell(&summary::text(&set.summary, Screen::Err.look()));
                Ok(())
            }
        }
    }
}
