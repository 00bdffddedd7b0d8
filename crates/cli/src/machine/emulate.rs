//! `emulate`: an emulated machine as a mounted folder, for other programs.

use crate::exit::{Failure, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_emulator::{Emulator, fuse};

/// How finely the machine's time follows the clock.
const BEAT: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
#[command(after_help = "The command sees the folder's name in WATTWISE_ROOT. Example:\n  \
    wattwise emulate bc10 /mnt --for cat /mnt/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")]
pub(crate) struct Args {
    /// A bundled machine's name, a description (.toml), or a folder with sys and proc
    machine: String,
    /// An empty folder to mount on
    mountpoint: PathBuf,
    /// Mount only while this command runs
    #[arg(long = "for", value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    command: Vec<String>,
    /// How busy every CPU is, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    load: u32,
    /// Keep the machine's time still instead of letting it run with the clock
    #[arg(long)]
    still: bool,
}

/// A machine by name, description or folder.
fn machine(given: &str) -> Result<Emulator, Failure> {
    let path = Path::new(given);
    if path.is_dir() {
        return Emulator::from_dir(path).map_err(|e| Failure::input(format!("{given}: {e}")));
    }
    if path.extension().is_some_and(|e| e == "toml") {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::input(format!("{given}: {e}")))?;
        return wattwise_emulator::from_text(given, &text).map_err(Failure::input);
    }
    wattwise_emulator::named(given).map_err(Failure::input)
}

pub(crate) fn run(args: &Args) -> Outcome {
    let machine = machine(&args.machine)?;
    if !args.mountpoint.is_dir() {
        let problem = "not a folder; make an empty one to mount on";
        return Err(Failure::input(format!("{}: {problem}", args.mountpoint.display())));
    }
    for cpu in machine.online() {
        machine.set_load(cpu, args.load * 10);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::work)?;
    }
    let mounted = fuse::mount(&machine, &args.mountpoint).map_err(|e| {
        Failure::impossible(format!(
            "{}: cannot mount: {e}; this needs /dev/fuse, and root or fusermount3",
            args.mountpoint.display()
        ))
    })?;
    let mut child = match args.command.split_first() {
        None => None,
        Some((program, rest)) => {
            let child = Command::new(program).args(rest).env("WATTWISE_ROOT", mounted.path()).spawn();
            Some(child.map_err(|e| Failure::input(format!("--for {program}: {e}")))?)
        }
    };
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Some(child) = &mut child
            && let Some(status) = child.try_wait().map_err(Failure::work)?
        {
            return Ok(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1));
        }
        std::thread::sleep(if child.is_some() { BEAT / 5 } else { BEAT });
        if !args.still {
            let passed = last.elapsed();
            last = Instant::now();
            machine.advance(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    if let Some(child) = &mut child {
        _ = child.kill();
        _ = child.wait();
    }
    Ok(0)
}
