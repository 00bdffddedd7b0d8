//! Where a comparison's results go, and in which shape. Files are opened before the work: one that cannot be written
//! is better known before than after it.

use crate::args::output;
use crate::args::output::{OpenOutput, OutputPath, written};
use crate::exit::{Failure, print, print_json};
use crate::model::cases::Case;
use crate::show::answer::{self, Shown};
use crate::show::screen::{Screen, note, tell};
use crate::show::table::Order;
use crate::show::{csv, markdown, mix, summary};
use std::path::Path;
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::mix::Mix;
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Goal;
use wattwise_advice::summary::ComparisonSet;
use wattwise_advice::watched::watch;
use wattwise_output::Output;
use wattwise_page::Section;
use wattwise_replay::export::{Ftrace, Perfetto};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write a report: one HTML file that needs no network ('-': standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<OutputPath>,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    shown: Shown,
    /// Write a trace for ui.perfetto.dev: under each policy what each CPU runs, its C-states, its speed, and the power
    /// ('-': standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    perfetto: Option<OutputPath>,
    /// Write what a Linux kernel would have recorded under the one policy that is named, as ftrace text ('-': standard
    /// output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    ftrace: Option<OutputPath>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct FormatArgs {
    /// Print the result as JSON (schema wattwise-compare-3; of several comparisons wattwise-compare-set-1)
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print the result as CSV, a row for each policy of each comparison; text that a spreadsheet would read as a formula begins with '
    #[arg(long, help_heading = "Output")]
    csv: bool,
    /// Print the result as Markdown tables
    #[arg(long, help_heading = "Output")]
    markdown: bool,
}

/// What is asked for, as far as it decides which outputs make sense.
pub(crate) struct Asked {
    /// More than one workload or machine.
    pub(crate) several: bool,
    /// They are a mix: one answer stands for all.
    pub(crate) mix: bool,
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

    /// The files that are asked for.
    fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.report, &self.perfetto, &self.ftrace].into_iter().flatten().map(OutputPath::path)
    }

    /// Opens all files.
    pub(crate) fn open(&self, asked: Asked) -> Result<Outputs, Failure> {
        if self.ftrace.is_some() && (asked.several || asked.policies != 1) {
            return Err(Failure::input("--ftrace: expected one workload, one machine and one --policy"));
        }
        let perfetto = output::open("--perfetto", self.perfetto.as_ref())?;
        let to_terminal = self.files().all(|path| path != Path::new("-"));
        Ok(Outputs {
            report: output::open("--report", self.report.as_ref())?,
            perfetto: perfetto.map(|t| (t.name, Perfetto::new(t.out))),
            ftrace: output::open("--ftrace", self.ftrace.as_ref())?,
            format: match &self.format {
                FormatArgs { json: true, .. } => Format::Json,
                FormatArgs { csv: true, .. } => Format::Csv,
                FormatArgs { markdown: true, .. } => Format::Markdown,
                _ if to_terminal => Format::Table,
                _ => Format::TableOnStderr,
            },
            asked,
            shown: self.shown,
        })
    }
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
    report: Option<OpenOutput>,
    perfetto: Option<(String, Perfetto<Output>)>,
    ftrace: Option<OpenOutput>,
    format: Format,
    asked: Asked,
    shown: Shown,
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
        if let Some(report) = self.report.take_if(|_| !self.asked.several) {
            let name = report.name.clone();
            report.write(wattwise_report::compare_html(comparison, details, command).as_bytes())?;
            note!("report written ({name})");
        }
        self.add_to_perfetto(case, job, comparison)?;
        self.write_ftrace(job, comparison)?;
        let order = if self.asked.scan { Order::Asked } else { Order::Best };
        if self.asked.mix && !self.shown.all {
            return Ok(());
        }
        match self.format {
            Format::Table => {
                let text = answer::comparison(comparison, Screen::Out.look(), order, self.shown);
                print(&if self.asked.several { text + "\n" } else { text })
            }
            Format::TableOnStderr => {
                tell(&answer::comparison(comparison, Screen::Err.look(), order, self.shown));
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
        let finished = trace.into_output().and_then(|(events, out)| out.finish().map(|()| events));
        let events = written(&target.name, finished)?;
        note!("ftrace text written ({}): {events} events", target.name);
        Ok(())
    }

    /// Ends all outputs, with what can only be told of all comparisons, of which so many were asked for.
    pub(crate) fn end(
        self,
        mut comparisons: Vec<Comparison>,
        mix: Option<Mix>,
        (asked, goal): (usize, Goal),
        command: &dyn Fn(usize, &str) -> Result<String, String>,
    ) -> Result<(), Failure> {
        if let Some((name, trace)) = self.perfetto {
            let finished = trace.into_output().and_then(|(n, out)| out.finish().map(|()| n));
            let n = written(&name, finished)?;
            note!(
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
        let mut set = ComparisonSet { mix, ..ComparisonSet::of(comparisons, asked, goal) };
        set.say_commands(command);
        if let Some(report) = self.report {
            let name = report.name.clone();
            report.write(report_of(&set).as_bytes())?;
            note!("report written ({name})");
        }
        let look = |screen: Screen| match &set.mix {
            Some(mix) => mix::text(mix, &set.comparisons, screen.look(), self.shown.all),
            None => summary::text(&set, screen.look()),
        };
        match self.format {
            Format::Json => print_json(&set),
            Format::Csv => print(&csv::comparisons(&set.comparisons)?),
            Format::Markdown => print(&markdown::set(&set)),
            Format::Table => print(&look(Screen::Out)),
            Format::TableOnStderr => {
                tell(&look(Screen::Err));
                Ok(())
            }
        }
    }
}

/// The page of several comparisons: what they come to, then each.
fn report_of(set: &ComparisonSet) -> String {
    let mut sections = match &set.mix {
        Some(mix) => wattwise_report::mix_sections(mix, &set.comparisons),
        None => vec![Section::Text { title: "In all".to_owned(), body: summary::answer(set) }],
    };
    sections.extend(set.comparisons.iter().flat_map(wattwise_report::compare_sections));
    let title = match &set.mix {
        Some(_) => format!("A mix of {} workloads", set.comparisons.len()),
        None => format!("{} comparisons", set.comparisons.len()),
    };
    wattwise_page::page("compare", &title, &sections)
}
