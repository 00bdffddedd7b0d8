//! The machine as a mounted folder.

use super::EmulateArgs;
use crate::exit::{Failure, Outcome};
use crate::show::screen::note;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_emulator::{Emulator, fuse, namespace};

/// How finely the machine's time follows the clock.
const BEAT: Duration = Duration::from_millis(50);

/// Mounts the machine until a signal comes or the command ends.
pub(super) fn serve(args: &EmulateArgs, machine: &Emulator) -> Outcome {
    for cpu in machine.online() {
        machine.set_load(cpu, (args.load * 1000.0).round() as u32);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::work)?;
    }
    let mounted = fuse::mount(machine, &args.mountpoint).map_err(|e| {
        Failure::impossible(format!(
            "{}: cannot mount: {e}; this needs /dev/fuse, and root or fusermount3",
            args.mountpoint.display()
        ))
    })?;
    let mut child = match args.command.split_first() {
        None => None,
        Some((program, rest)) => Some(start(Command::new(program).args(rest), mounted.path(), program)?),
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

/// Starts the command, to which the machine is its own where this user may have a mount namespace.
fn start(command: &mut Command, root: &Path, program: &str) -> Result<Child, Failure> {
    command.env("WATTWISE_ROOT", root);
    let started = match namespace::spawn(command, root) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            note!("{program} sees this machine in /sys: that it sees {} there takes root", root.display());
            command.spawn()
        }
        started => started,
    };
    started.map_err(|e| Failure::input(format!("--for {program}: {e}")))
}
