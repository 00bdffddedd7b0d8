//! `emulate`: an emulated machine as a mounted folder, for other programs.

use crate::exit::{Failure, Outcome};
use crate::model::machine::is_capture;
use std::path::{Path, PathBuf};
use wattwise_calibrate::truth;
use wattwise_emulator::Emulator;
use wattwise_hw::capture;

#[cfg(feature = "mount")]
mod mount;
#[cfg(feature = "mount")]
use mount::serve;

#[derive(clap::Args)]
#[command(
    after_help = "To the command of --for the machine is its own: it finds it in /sys and /proc, in a mount namespace that is \
    gone with it (root; else it finds the folder's name in WATTWISE_ROOT). Examples:\n  \
    wattwise emulate bc10 /mnt --for cpupower frequency-info\n  \
    wattwise emulate bc10 /mnt --for wattwise info"
)]
pub(crate) struct EmulateArgs {
    /// A bundled machine's name (with or without emulated:), a description (.toml), a folder with sys and proc, or a capture
    machine: String,
    /// An empty folder to mount on
    mountpoint: PathBuf,
    /// Mount only while this command runs
    #[arg(long = "for", value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
    /// How busy every CPU is, such as 50%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = wattwise_figure::share)]
    load: f64,
    /// Put watts behind it that are known to its maker alone, to be found by 'calibrate --root DIR': those of 'calibrate --root
    /// emulated:NAME --seed SEED'
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1")]
    truth: Option<u64>,
    /// Keep the machine's time still instead of letting it run with the clock
    #[arg(long)]
    still: bool,
}

/// A machine by name, description, folder or capture.
fn machine(given: &str) -> Result<Emulator, Failure> {
    let path = Path::new(given);
    if let Some(name) = given.strip_prefix("emulated:") {
        return wattwise_emulator::named(name).map_err(Failure::input);
    }
    if is_capture(given) {
        let capture = capture::open(path).map_err(Failure::input)?;
        return Ok(Emulator::from_tree(given, capture.tree()));
    }
    if path.is_dir() {
        return Emulator::from_dir(path).map_err(|e| Failure::input(format!("{given}: {e}")));
    }
    if path.extension().is_some_and(|e| e == "toml") {
        let text =
            wattwise_figure::budget::read_text(path).map_err(|e| Failure::input(format!("{given}: {e}")))?;
        return wattwise_emulator::from_text(given, &text).map_err(Failure::input);
    }
    wattwise_emulator::named(given).map_err(Failure::input)
}

pub(crate) fn run(args: &EmulateArgs) -> Outcome {
    let machine = machine(&args.machine)?;
    if let Some(seed) = args.truth {
        truth::behind(&machine, truth::USUAL, seed).ok_or_else(|| {
            Failure::input(format!("--truth: {}: lists no CPU, or its packages differ", args.machine))
        })?;
    }
    if !args.mountpoint.is_dir() {
        let problem = "not a folder; make an empty one to mount on";
        return Err(Failure::input(format!("{}: {problem}", args.mountpoint.display())));
    }
    // A mount hides what is below it: no link of a stranger's says where.
    wattwise_hw::root::folder::open(&args.mountpoint)
        .map_err(|e| Failure::input(format!("{}: {e}", args.mountpoint.display())))?;
    if std::fs::read_dir(&args.mountpoint).is_ok_and(|mut found| found.next().is_some()) {
        let problem = "is not empty, and a mount would hide what is in it; expected an empty folder";
        return Err(Failure::input(format!("{}: {problem}", args.mountpoint.display())));
    }
    serve(args, &machine)
}

/// Without FUSE there is nothing to mount by.
#[cfg(not(feature = "mount"))]
fn serve(_: &EmulateArgs, _: &Emulator) -> Outcome {
    Err(Failure::impossible("emulate: this wattwise is built without FUSE; install it with --features mount"))
}
