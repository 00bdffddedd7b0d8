//! `capture`: a machine in a file.

use crate::args::output::{OutputPath, written};
use crate::args::root as hardware;
use crate::exit::{Failure, Outcome, print, print_json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wattwise_hw::capture;
use wattwise_hw::capture::CaptureOptions;

#[derive(clap::Args)]
pub(crate) struct CaptureArgs {
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: OutputPath,
    /// Follow load, speeds, residencies, energy, temperature and mains for this long (30s, 10min)
    #[arg(long, alias = "for", value_name = "DURATION", value_parser = crate::args::recorded)]
    duration: Option<Duration>,
    /// How often
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = crate::args::duration)]
    every: Duration,
    /// Take the firmware's ACPI tables (DSDT, SSDT) too
    #[arg(long)]
    acpi: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// Print the capture's head as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CaptureArgs) -> Outcome {
    if args.every < Duration::from_millis(10) {
        return Err(Failure::input(format!("--every {:?}: expected 10ms or more", args.every)));
    }
    if let Some(time) = args.duration.filter(|time| *time < args.every) {
        return Err(Failure::input(format!(
            "--every {:?}: is longer than --duration {time:?}; expected a shorter time, to see what moves",
            args.every
        )));
    }
    let root = args.root.open()?;
    args.root.tell_left(&*root)?;
    let options = CaptureOptions {
        length: args.duration.unwrap_or_default(),
        every: args.every,
        acpi: args.acpi,
        registers: Vec::new(),
    };
    let file = args.output.open("--output")?;
    // A signal ends the series; what was seen until then is written.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::work)?;
    }
    let head = capture::capture(&*root, &options, file.out, &|| stop.load(Ordering::Relaxed));
    let head = written(&file.name, head)?;
    if args.json {
        print_json(&head)?;
        return Ok(0);
    }
    let mut out = format!("{}: written", args.output.display());
    if head.moments > 0 {
        out += &format!(", with {} moments", head.moments);
    }
    if !head.unreadable.is_empty() {
        out += &format!(
            "; {} files could not be read and are listed in its capture.json",
            head.unreadable.len()
        );
    }
    print(
        &(out
            + "\nIt holds no serial number, host name, process or command line; look at it with tar --zstd -xf.\n"),
    )?;
    Ok(0)
}
