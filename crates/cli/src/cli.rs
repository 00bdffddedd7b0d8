//! The command line: one line a command.

use crate::exit::{Failure, Outcome};
use crate::show::screen::{self, say};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Which power policy does this work on the least energy?
#[derive(Parser)]
#[command(name = "wattwise", version, about, max_term_width = 100)]
#[command(after_help = "Start with 'wattwise compare': it needs no rights and changes nothing.")]
struct Cli {
    /// Print only the result, warnings about it, and errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Also print what is read and how it is used
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

/// A line a command: its help, its name, its arguments, and what is done.
macro_rules! commands {
    ($($(#[$help:meta])+ $name:ident($args:ty) => $run:expr;)*) => {
        #[derive(Subcommand)]
        enum Command {
            $($(#[$help])+ $name($args),)*
        }

        fn run(command: Command) -> Outcome {
            match command {
                $(Command::$name(args) => ($run)(&args),)*
            }
        }
    };
}

commands! {
    /// Replay a workload under many policies: time, energy, latency, and the best policy
    Compare(crate::model::compare::CompareArgs) => compare;
    /// Search a policy's settings for your work and machine, and test them on recordings that the search did not see
    Tune(Box<crate::model::tune::TuneArgs>) => crate::model::tune::run;
    /// Record the scheduler while a command runs, for replaying it later
    Record(crate::machine::record::RecordArgs) => crate::machine::record::run;
    /// Summarise a recording: busy share, wake-ups, run and sleep lengths, top tasks
    Trace(crate::model::trace::TraceArgs) => crate::model::trace::run;
    /// Check a recording and say what replaying it would use
    Import(crate::model::trace::ImportArgs) => crate::model::trace::import;
    /// List the policies, or show one with its essay and parameters
    Policies(crate::model::list::ListArgs) => crate::model::list::policies;
    /// The machine models: list, show, compare, check, and hold the library against measurements
    Machines(crate::model::machines::MachinesArgs) => crate::model::machines::run;
    /// List the bundled workloads, or show one
    Workloads(crate::model::list::ListArgs) => crate::model::list::workloads;
    /// Mount an emulated machine, so that other programs can be run against it
    Emulate(crate::machine::emulate::EmulateArgs) => crate::machine::emulate::run;
    /// Benchmarks of wattwise itself and of this machine
    Bench(crate::bench::BenchArgs) => crate::bench::run;
    /// Run a command once and measure it: time, joules, residencies, under settings held meanwhile
    Run(crate::machine::run::RunArgs) => crate::machine::run::run;
    /// Compare policies, settings or commands soundly: pairs in random order, equal windows, an interval
    Ab(Box<crate::machine::ab::AbArgs>) => crate::machine::ab::run;
    /// Compare two policies over days of your own use: random turns, an interval, and whether the saving is bought with slowness
    Prove(Box<crate::machine::prove::ProveArgs>) => crate::machine::prove::run;
    /// A program's mutexes: which are contended, and which lock would serve them
    Locks(crate::machine::locks::LocksArgs) => crate::machine::locks::run;
    /// Show result files again, several side by side, on the terminal or as one HTML file
    Report(crate::show::report::ReportArgs) => crate::show::report::run;
    /// Show every power state of this machine, and why what is missing is missing
    Info(crate::machine::info::InfoArgs) => crate::machine::info::run;
    /// Watch the machine: speeds, C-states, watts, temperature, wake-ups by program, the policy in force
    Top(crate::machine::top::TopArgs) => crate::machine::top::run;
    /// Change power states: proved by reading back, put back by `restore`
    Set(Box<crate::machine::set::SetArgs>) => crate::machine::set::run;
    /// Put back what `set` changed, or what a killed wattwise left behind
    Restore(crate::machine::restore::RestoreArgs) => crate::machine::restore::run;
    /// Profiles that stay in force all day: what `wattwised` has, which it is to have, and new ones
    Profile(Box<crate::machine::profile::ProfileArgs>) => crate::machine::profile::run;
    /// Keep work on few CPUs so that the others sleep deeply; off unless asked for
    Coreidle(crate::machine::coreidle::CoreidleArgs) => crate::machine::coreidle::run;
    /// Make a model of this machine by its own meters, for `compare -m FILE`
    Calibrate(crate::machine::calibrate::CalibrateArgs) => crate::machine::calibrate::run;
    /// Save this machine's power states, and their movement over time, to a file
    Capture(crate::machine::capture::CaptureArgs) => crate::machine::capture::run;
    /// What cpufrequtils' cpufreq-info shows, with its options (also by a link of that name)
    CpufreqInfo(crate::machine::cpufrequtils::CpufreqInfoArgs) => crate::machine::cpufrequtils::info;
    /// cpufrequtils' cpufreq-set with its options, proved by reading back (also by a link of that name)
    CpufreqSet(crate::machine::cpufrequtils::CpufreqSetArgs) => crate::machine::cpufrequtils::set;
    /// Print completions for a shell
    Completions(crate::manual::CompletionsArgs) => |args| crate::manual::completions(args, Cli::command());
    /// Print a manual page, or write those of all commands
    Man(crate::manual::ManArgs) => |args| crate::manual::man(args, Cli::command());
    /// Rerun a published study on its machine's model and set the figures side by side
    Reproduce(crate::model::reproduce::ReproduceArgs) => crate::model::reproduce::run;
}

/// A comparison; to a mistake, the line that was probably meant.
fn compare(args: &crate::model::compare::CompareArgs) -> Outcome {
    crate::model::compare::run(args).map_err(|f| match f.code {
        2 => Failure { message: f.message + &without_dashes(), ..f },
        _ => f,
    })
}

/// The program.
pub(crate) fn main() -> ExitCode {
    let command = Cli::command();
    let (cli, matches) = match parsed(&command) {
        Ok(parsed) => parsed,
        // Help and version are answers, not mistakes.
        Err(e) if !e.use_stderr() => return ended(screen::written(e.print()).map(|()| 0)),
        Err(e) => {
            if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                _ = e.print();
            } else {
                let found = output_by_report(&command, &e).unwrap_or_else(|| e.to_string());
                let (mistake, meant) = (mistake(&found), without_dashes());
                // The parser's own tip is of no use to whoever meant a command.
                let told = mistake.split("; tip:").next().unwrap_or(&mistake).trim_end_matches(" (--help)");
                say!("{}{meant}", if meant.is_empty() { &mistake } else { told });
            }
            return ExitCode::from(2);
        }
    };
    screen::say_only(cli.quiet, cli.verbose);
    let outcome = crate::args::output::check(&command, &matches).and_then(|()| run(cli.command));
    crate::args::guard::dismiss();
    ended(outcome)
}

/// The arguments, read. A number below zero is the value of the flag before it, and that flag's to refuse.
fn parsed(command: &clap::Command) -> Result<(Cli, clap::ArgMatches), clap::Error> {
    let read = |words: Vec<OsString>| -> Result<_, clap::Error> {
        let matches = command.clone().try_get_matches_from(words)?;
        Ok((Cli::from_arg_matches(&matches)?, matches))
    };
    let words = arguments();
    let with_numbers = crate::dashes::numbers_joined(&words);
    match read(words) {
        Err(e) if e.kind() == ErrorKind::UnknownArgument => with_numbers.map_or(Err(e), read),
        parsed => parsed,
    }
}

/// How the program ends; a failure is said.
fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(f) => {
            say!("{}", f.message);
            ExitCode::from(f.code)
        }
    }
}

/// Where a command stands without `--` before it: the line that was meant, behind the mistake.
fn without_dashes() -> String {
    let meant = crate::dashes::meant(&Cli::command(), &arguments());
    meant.map_or_else(String::new, |line| format!("; a command stands after --: {line}"))
}

/// Where a command that has no `-o` is given one: the flag that writes its report.
fn output_by_report(program: &clap::Command, e: &clap::Error) -> Option<String> {
    let given = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) => given,
        _ => return None,
    };
    let command = arguments().iter().skip(1).find_map(|word| program.find_subcommand(word))?;
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let is_output = e.kind() == ErrorKind::UnknownArgument && ["-o", "--output"].contains(&given.as_str());
    (is_output && has("report")).then(|| {
        format!("unexpected argument '{given}' found\ntip: --report FILE writes a page; --json > FILE keeps the result")
    })
}

/// What the argument parser found wrong, without its heading and the usage: one line, as everywhere.
fn mistake(found: &str) -> String {
    let told = found.split("\nUsage:").next().unwrap_or(found);
    let told = told.split("\nFor more information").next().unwrap_or(told);
    let told = told.strip_prefix("error: ").unwrap_or(told);
    let told = told.replace("invalid digit found in string", "expected a whole number, 0 or more");
    // A list of missing arguments stays with its heading; a tip follows what it belongs to.
    let mut line = String::new();
    for part in told.lines().map(str::trim).filter(|part| !part.is_empty()) {
        let joint = if line.is_empty() || line.ends_with(':') || part.starts_with('[') { " " } else { "; " };
        line += joint;
        line += part;
    }
    format!("{} (--help)", line.trim())
}

/// The arguments; a program called by the name of a command is that command.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let called =
        arguments.first().map(std::path::Path::new).and_then(|p| p.file_name()).and_then(|n| n.to_str());
    if let Some(command) = called.filter(|c| ["cpufreq-info", "cpufreq-set"].contains(c)) {
        let command = command.into();
        arguments.insert(1, command);
    }
    arguments
}

#[cfg(test)]
#[path = "../tests/support/outputs.rs"]
#[allow(dead_code, reason = "the calls are made by tests/outputs.rs")]
mod outputs;

#[cfg(test)]
#[path = "../tests/support/hostile_cases.rs"]
#[allow(dead_code, reason = "the calls are made by tests/hostile_commands.rs")]
mod hostile_cases;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    /// Each command with its words, and its own arguments.
    fn walk(command: &clap::Command, words: &str, look: &mut dyn FnMut(&str, &clap::Arg)) {
        command.get_arguments().for_each(|arg| look(words, arg));
        for below in command.get_subcommands() {
            walk(below, format!("{words} {}", below.get_name()).trim(), look);
        }
    }

    /// What a command prints of strangers' names is tried by `tests/hostile_commands.rs`, or its table says why nothing.
    #[test]
    fn every_command_is_in_the_table_of_hostile_names() {
        fn commands(command: &clap::Command, words: &str, into: &mut BTreeSet<String>) {
            if !command.has_subcommands() {
                into.insert(words.to_owned());
            }
            command.get_subcommands().for_each(|below| {
                commands(below, format!("{words} {}", below.get_name()).trim(), into);
            });
        }
        let mut found = BTreeSet::new();
        commands(&Cli::command(), "", &mut found);
        let table: BTreeSet<String> = hostile_cases::CASES.iter().map(|(c, _)| (*c).to_owned()).collect();
        assert_eq!(found, table);
        for (command, prints) in hostile_cases::CASES {
            let hostile_cases::Prints::Names(calls) = prints else { continue };
            for call in *calls {
                let call = call.split_once(": ").map_or(*call, |(_, call)| call);
                assert!(call.starts_with(command), "{call}");
                let words = std::iter::once("wattwise").chain(call.split(' '));
                let parsed = Cli::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{call}: {parsed:?}");
            }
        }
    }

    /// A flag that names an output is run with pipes, devices and kills by `tests/outputs.rs`.
    #[test]
    fn every_output_is_in_the_tests_table() {
        let mut found = BTreeSet::new();
        walk(&Cli::command(), "", &mut |words, arg| {
            if crate::args::output::is_output(arg) {
                found.insert((words.to_owned(), arg.get_id().to_string()));
            }
        });
        let table = outputs::OUTPUTS.iter().map(|c| (c.command.to_owned(), c.flag.to_owned()));
        assert_eq!(found, table.collect());
    }

    /// What is written goes through `OutputPath`; these paths are read, mounted on, journals', or the folder of `man`.
    #[test]
    fn no_other_path_is_an_output() {
        const READ: [&str; 7] = ["file", "files", "folder", "library", "mountpoint", "journal", "within"];
        walk(&Cli::command(), "", &mut |words, arg| {
            let is_path = arg.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>();
            let id = arg.get_id().as_str();
            assert!(!is_path || READ.contains(&id), "{words}: {id} is a path; an output is an OutputPath");
        });
    }

    #[test]
    fn two_outputs_to_one_place_and_an_output_over_an_input_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("a.json"), "{}").unwrap();
        std::os::unix::fs::symlink("a.json", at("link")).unwrap();
        let (a, link, new) = (at("a.json"), at("link"), at("new"));
        let dotted = format!("{}/./new", folder.path().display());
        let told = |call: &[&str]| {
            let words = std::iter::once("wattwise").chain(call.iter().copied());
            let matches = Cli::command().try_get_matches_from(words).unwrap();
            crate::args::output::check(&Cli::command(), &matches).err().map(|f| f.message)
        };
        for (call, words) in [
            (&["report", &a, "--report", &a][..], "FILES"),
            (&["report", &a, "--report", &link], "would replace"),
            (&["bench", "locks", "--csv", &new, "--report", &dotted], "both to"),
            (&["bench", "locks", "--csv", &a, "--report", &link], "both to"),
            (&["bench", "locks", "--json", "--csv", "-"], "standard output"),
            (&["compare", "--csv", "--report", "/dev/stdout"], "standard output"),
            (&["run", "-p", &a, "-o", &link, "--", "true"], "--policy"),
            (&["compare", "-m", &a, "--ftrace", &a], "--machine"),
            (&["tune", "--resume", &a, "-o", &a], "both to"),
        ] {
            let message = told(call).unwrap_or_default();
            assert!(message.contains(words) && !message.contains('\n'), "{call:?}: {message}");
        }
        for call in [
            &["bench", "locks", "--csv", "/dev/null", "--report", "/dev/null"][..],
            &["report", &a, "--report", &new],
            &["run", "-o", &a, "--", "cat", &a],
        ] {
            assert_eq!(told(call), None, "{call:?}");
        }
    }
}
