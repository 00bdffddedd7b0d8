//! Where a comparison's results go, and in which shape: a file a sink, a line of the table each.
//!
//! A sink has its flag, is opened before the work (a file that cannot be written is better known before than after it), takes each
//! comparison as it is done, and ends with all of them.

mod csv;
mod ftrace;
mod json;
mod markdown;
mod perfetto;
mod report;
mod text;

use crate::args::output::{self, OpenOutput, OutputPath};
use crate::exit::Failure;
use crate::model::cases::Case;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::mix::Mix;
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Goal;
use wattwise_advice::summary::ComparisonSet;
use wattwise_replay::job::ReplayJob;

/// Every sink, in the order of the help.
static SINKS: &[&SinkFlag] = &[
    &report::REPORT,
    &json::JSON,
    &csv::CSV,
    &markdown::MARKDOWN,
    &text::TEXT,
    &perfetto::PERFETTO,
    &ftrace::FTRACE,
];

/// A sink, or why there is none.
type Opened = Result<Box<dyn ResultSink>, Failure>;

/// A sink's flag, and how it is opened.
struct SinkFlag {
    /// Its flag, without the dashes; of the text, which is the result where no other is printed, none.
    name: &'static str,
    takes: Takes,
    /// A line of help.
    help: &'static str,
    open: fn(&ArgMatches, &OutputsAsked) -> Opened,
}

#[derive(PartialEq, Eq)]
enum Takes {
    /// The file that it is written to.
    File,
    /// Nothing: it is printed, in the place of the text.
    Nothing,
    /// It is the text, with flags of its own.
    Text,
}

/// A comparison that is done, and what it was made of.
pub(crate) struct FinishedComparison<'a> {
    pub(crate) case: &'a Case<'a>,
    pub(crate) job: &'a ReplayJob<'a>,
    pub(crate) comparison: &'a Comparison,
    pub(crate) details: &'a [PolicyDetail],
    pub(crate) command: &'a str,
}

/// All that was done.
enum All<'a> {
    /// One workload on one machine.
    One(&'a Comparison),
    /// Several, with what they come to.
    Set(&'a ComparisonSet),
}

/// Where results go.
trait ResultSink {
    /// Takes one comparison: all output that needs no other comparison.
    fn one(&mut self, _: &FinishedComparison<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends; nothing was done where nothing is given.
    fn end(self: Box<Self>, all: Option<&All<'_>>) -> Result<(), Failure>;
}

/// What is asked for, as far as it decides which outputs make sense.
#[derive(Clone, Copy)]
pub(crate) struct OutputsAsked {
    /// More than one workload or machine.
    pub(crate) several: bool,
    /// They are a mix: one answer stands for all.
    pub(crate) mix: bool,
    /// Policies that are named, scans spread out.
    pub(crate) policies: usize,
    /// They are one scan: they are shown in its order.
    pub(crate) scan: bool,
}

/// The flags of all sinks, as they were given.
pub(crate) struct OutputArgs(ArgMatches);

impl clap::Args for OutputArgs {
    fn augment_args(command: Command) -> Command {
        let with = |command: Command, sink: &&SinkFlag| {
            let arg = Arg::new(sink.name).long(sink.name).help(sink.help).help_heading("Output");
            match sink.takes {
                Takes::File => {
                    let path = clap::value_parser!(OutputPath);
                    command.arg(arg.value_name("FILE").value_parser(path).action(ArgAction::Set))
                }
                Takes::Nothing => command.arg(arg.action(ArgAction::SetTrue)),
                Takes::Text => text::augment(command),
            }
        };
        let printed = SINKS.iter().filter(|s| s.takes == Takes::Nothing).map(|s| s.name);
        let group = ArgGroup::new("FormatArgs").args(printed).multiple(false);
        SINKS.iter().fold(command, with).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        OutputArgs::augment_args(command)
    }
}

impl clap::FromArgMatches for OutputArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OutputArgs, clap::Error> {
        Ok(OutputArgs(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

/// Opens the file that a sink's flag names.
fn opened(matches: &ArgMatches, name: &str) -> Result<OpenOutput, Failure> {
    let path = matches.get_one::<OutputPath>(name);
    let open = output::open(&format!("--{name}"), path)?;
    open.ok_or_else(|| Failure::input(format!("--{name}: expected a file")))
}

impl OutputArgs {
    /// Whether a report is asked for.
    pub(crate) fn has_report(&self) -> bool {
        self.0.contains_id(report::REPORT.name)
    }

    /// Opens all that is asked for.
    pub(crate) fn open(&self, asked: OutputsAsked) -> Result<Outputs, Failure> {
        let given = |sink: &SinkFlag| match sink.takes {
            Takes::File => self.0.contains_id(sink.name),
            Takes::Nothing => self.0.get_flag(sink.name),
            Takes::Text => false,
        };
        let open = |takes: Takes| {
            let all = SINKS.iter().filter(move |sink| sink.takes == takes && given(sink));
            all.map(|sink| (sink.open)(&self.0, &asked)).collect::<Result<Vec<_>, Failure>>()
        };
        let files = open(Takes::File)?;
        let printed = match open(Takes::Nothing)?.pop() {
            Some(sink) => sink,
            None => (text::TEXT.open)(&self.0, &asked)?,
        };
        Ok(Outputs { files, printed, asked })
    }
}

/// The outputs, opened.
pub(crate) struct Outputs {
    files: Vec<Box<dyn ResultSink>>,
    printed: Box<dyn ResultSink>,
    asked: OutputsAsked,
}

impl Outputs {
    /// Takes one comparison: all output that needs no other comparison.
    pub(crate) fn one(&mut self, compared: &FinishedComparison<'_>) -> Result<(), Failure> {
        self.files.iter_mut().try_for_each(|sink| sink.one(compared))?;
        self.printed.one(compared)
    }

    /// Ends all outputs, with the output that needs all comparisons; `asked` of them were asked for.
    pub(crate) fn end(
        self,
        mut comparisons: Vec<Comparison>,
        mix: Option<Mix>,
        (asked, goal): (usize, Goal),
        command: &dyn Fn(usize, &str) -> Result<String, String>,
    ) -> Result<(), Failure> {
        if !self.asked.several {
            let only = comparisons.pop();
            return self.end_all(only.as_ref().map(All::One).as_ref());
        }
        let mut set = ComparisonSet { mix, ..ComparisonSet::of(comparisons, asked, goal) };
        set.say_commands(command);
        self.end_all(Some(&All::Set(&set)))
    }

    fn end_all(self, all: Option<&All<'_>>) -> Result<(), Failure> {
        // Last opened, first ended: the messages keep their order.
        self.files.into_iter().rev().try_for_each(|sink| sink.end(all))?;
        self.printed.end(all)
    }
}
