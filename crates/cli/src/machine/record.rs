//! `wattwise record`: record the scheduler while a command runs.

use crate::args::output::OutputPath;
use crate::exit::{Failure, Outcome, print_json_as};
use crate::show::screen::{self, note};
use std::time::Duration;
use wattwise_trace::record;
use wattwise_trace::record::RecordOptions;

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.record/1";

#[derive(clap::Args)]
pub(crate) struct RecordArgs {
    /// The recording to write: perf.data, packed when the name ends in .zst
    #[arg(long, short, value_name = "FILE")]
    output: OutputPath,
    /// Record for this long at most (30s, 2min); without a command it must be given
    #[arg(long, value_name = "DURATION", value_parser = crate::args::recorded)]
    duration: Option<Duration>,
    /// Record timer starts too, which tell absolute from relative sleeps (more events)
    #[arg(long)]
    timers: bool,
    /// Size of each CPU's ring
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    ring: u32,
    /// Print what was recorded as JSON (schema wattwise.record/1)
    #[arg(long)]
    json: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &RecordArgs) -> Outcome {
    if args.duration.is_none() && args.command.is_empty() {
        return Err(Failure::input("record: expected -- COMMAND or --duration DURATION"));
    }
    if !args.ring.is_power_of_two() || args.ring > 1024 {
        return Err(Failure::input(format!(
            "--ring {}: expected a power of two up to 1024 (MiB)",
            args.ring
        )));
    }
    let options = RecordOptions {
        duration: args.duration,
        timers: args.timers,
        ring_bytes: (args.ring as usize) << 20,
        ..RecordOptions::new(args.output.path(), args.command.clone())
    };
    args.output.keep_apart();
    let report = watched(&options).map_err(not_recorded)?;
    if args.json {
        print_json_as(SCHEMA, &report)?;
    } else {
        note!("{}; {}", text(&report).trim_end(), args.output.display());
        if report.lost > 0 {
            note!("a larger --ring loses less");
        }
    }
    Ok(report.exit_code().unwrap_or(0))
}

/// For people.
pub(crate) fn text(report: &record::RecordReport) -> String {
    format!(
        "{} events in {:.3} s on {} CPUs, {} lost ({} KiB)\n",
        report.events,
        report.duration_s,
        report.cpus,
        report.lost,
        report.bytes / 1024
    )
}

/// Records, with progress on a terminal: how long, and how many events so far.
pub(crate) fn watched(options: &RecordOptions) -> Result<record::RecordReport, record::RecordError> {
    if !screen::shows_progress() {
        return record::run(options);
    }
    let told = std::cell::Cell::new(Duration::ZERO);
    let tell = |p: record::RecordingProgress| {
        // Once a second: the recorder is to be seen as little as possible in what it records.
        if p.elapsed >= told.get() {
            told.set(p.elapsed + Duration::from_secs(1));
            screen::progress(&format!("recording: {:.0} s, {} events", p.elapsed.as_secs_f64(), p.events));
        }
    };
    let report = record::run_watched(options, Some(&tell));
    screen::progress("");
    report
}

/// Why there is no recording, with its exit code.
pub(crate) fn not_recorded(error: record::RecordError) -> Failure {
    match error {
        e if e.is_impossible() => Failure::impossible(e),
        record::RecordError::Command(e) => Failure { code: e.code(), message: e.to_string() },
        e @ record::RecordError::Create { .. } => Failure::input(e),
        e => Failure::work(e),
    }
}
