//! The command line: parses, calls the library, prints. Exit codes: 0 done, 1 the work failed,
//! 2 bad usage or input, 3 not possible on this machine.

mod ab;
mod bench;
mod capture;
mod compare;
mod coreidle;
mod cpufrequtils;
mod emulate;
mod hardware;
mod info;
mod list;
mod record;
mod report;
mod reproduce;
mod restore;
mod result_file;
pub(crate) mod run;
mod set;
mod settings;
mod table;
mod trace;

use crate::problem::Problem;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Which power policy does this work on the least energy?
#[derive(Parser)]
#[command(name = "wattwise", version, about, max_term_width = 100)]
#[command(after_help = "Start with 'wattwise compare': it needs no rights and changes nothing.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay one piece of work under many policies: time, joules, latency, and which is best
    Compare(compare::Args),
    /// Record the scheduler while a command runs, for replaying it later
    Record(record::Args),
    /// Summarise a recording: busy share, wake-ups, run and sleep lengths, top tasks
    Trace(trace::Args),
    /// Check a recording and say what replaying it would use
    Import(trace::ImportArgs),
    /// List the policies, or show one with its essay and parameters
    Policies(list::Args),
    /// List the machine models, or show one with its figures and sources
    Machines(list::Args),
    /// List the bundled workloads, or show one
    Workloads(list::Args),
    /// Mount an emulated machine, so that other programs can be run against it
    Emulate(emulate::Args),
    /// Benchmarks of wattwise itself and of this machine
    Bench(bench::Args),
    /// Run a command once and measure it: time, joules, residencies, under settings held meanwhile
    Run(run::Args),
    /// Compare policies, settings or commands soundly: pairs in random order, equal windows, an interval
    Ab(Box<ab::Args>),
    /// Show result files again, several side by side, on the terminal or as one HTML file
    Report(report::Args),
    /// Show every power state of this machine, and why what is missing is missing
    Info(info::Args),
    /// Change power states: proved by reading back, put back by `restore`
    Set(Box<set::Args>),
    /// Put back what `set` changed, or what a killed wattwise left behind
    Restore(restore::Args),
    /// Keep work on few CPUs so that the others sleep deeply; off unless asked for
    Coreidle(coreidle::Args),
    /// Save this machine's power states, and their movement over time, to a file
    Capture(capture::Args),
    /// What cpufrequtils' cpufreq-info shows, with its options (also by a link of that name)
    CpufreqInfo(cpufrequtils::InfoArgs),
    /// cpufrequtils' cpufreq-set with its options, proved by reading back (also by a link of that name)
    CpufreqSet(cpufrequtils::SetArgs),
    /// Rerun a published study on its machine's model and set the figures side by side
    Reproduce(reproduce::Args),
}

/// Why a command did not do its work, and the exit code that says so.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The work itself failed.
    pub(crate) fn work(e: impl std::fmt::Display) -> Failure {
        Failure { code: 1, message: e.to_string() }
    }
    /// Bad usage or bad input.
    pub(crate) fn input(e: impl std::fmt::Display) -> Failure {
        Failure { code: 2, message: e.to_string() }
    }
    /// Not possible on this machine.
    pub(crate) fn impossible(e: impl std::fmt::Display) -> Failure {
        Failure { code: 3, message: e.to_string() }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Input(_) => Failure::input(problem),
            Problem::Impossible(_) => Failure::impossible(problem),
            Problem::Failed(_) => Failure::work(problem),
        }
    }
}

/// What a command returns: its exit code.
type Outcome = Result<u8, Failure>;

/// The program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(arguments()) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers, not mistakes.
            let code = if e.use_stderr() { 2 } else { 0 };
            _ = e.print();
            return ExitCode::from(code);
        }
    };
    let outcome = match cli.command {
        Command::Compare(args) => compare::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Import(args) => trace::import(&args),
        Command::Policies(args) => list::policies(&args),
        Command::Machines(args) => list::machines(&args),
        Command::Workloads(args) => list::workloads(&args),
        Command::Emulate(args) => emulate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Ab(args) => ab::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Coreidle(args) => coreidle::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::CpufreqInfo(args) => cpufrequtils::info(&args),
        Command::CpufreqSet(args) => cpufrequtils::set(&args),
        Command::Reproduce(args) => reproduce::run(&args),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(f) => {
            eprintln!("wattwise: {}", wattwise_figure::one_line(&f.message));
            ExitCode::from(f.code)
        }
    }
}

/// The arguments; a program called by the name of a command is that command.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let called =
        arguments.first().map(std::path::Path::new).and_then(|p| p.file_name()).and_then(|n| n.to_str());
    if let Some(command) = called.filter(|c| ["cpufreq-info", "cpufreq-set"].contains(c)) {
        let command = command.into();
        arguments.insert(1, command);
    }
    arguments
}

/// Prints to standard output; a reader who has gone away (`| head`) ends the program in peace.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        r => r.map_err(Failure::work),
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::work)?;
    text.push('\n');
    print(&text)
}
