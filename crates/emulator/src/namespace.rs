//! A program that takes a mounted machine for the one it runs on.
//!
//! It gets a mount namespace of its own (`unshare(2)`), in which the mounted folder's files lie over the system's: cpupower, lscpu
//! and whatever else knows nothing of us find the emulated machine in `/sys` and `/proc`. Nobody else sees that, and it is gone
//! with the program.
//!
//! What this machine has and the emulated one has not ([`PLACES`]) is empty there.

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

/// What of a system is the machine's: folders and files that an emulated one takes the place of.
pub const PLACES: &[&str] = &[
    "sys/devices/system/cpu",
    "sys/devices/system/node",
    "sys/class/powercap",
    "sys/class/power_supply",
    "sys/class/hwmon",
    "sys/class/thermal",
    "dev/cpu",
    "proc/cpuinfo",
    "proc/stat",
    "proc/loadavg",
    "proc/uptime",
    "proc/version",
];

/// Starts a command to which the machine mounted at `root` is its own.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] where the system lets this user have no mount namespace (it takes root), and what starting a
/// command and mounting give else.
pub fn spawn(command: &mut Command, root: &Path) -> io::Result<Child> {
    // A namespace is a thread's: this one ends with the call, and what it started stays in it.
    std::thread::scope(|scope| {
        let there = std::thread::Builder::new().spawn_scoped(scope, || {
            enter(root)?;
            command.spawn()
        })?;
        there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread into a namespace in which the machine lies over the system.
fn enter(root: &Path) -> io::Result<()> {
    // SAFETY: the thread gets a working directory of its own (FS) and a copy of the mounts (NEWNS); file descriptors stay shared, so
    // that nobody loses one.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)?;
    for place in PLACES {
        lay_over(&root.join(place), &Path::new("/").join(place))?;
    }
    Ok(())
}

/// Lays a file or folder of the machine over the system's; a folder that it has not is empty from then on.
fn lay_over(ours: &Path, theirs: &Path) -> io::Result<()> {
    let Ok(there) = std::fs::metadata(theirs) else { return Ok(()) };
    match rustix::fs::statat(CWD, ours, rustix::fs::AtFlags::empty()) {
        Ok(_) => Ok(rustix::mount::mount_bind(ours, theirs)?),
        Err(Errno::NOENT) if there.is_dir() => {
            Ok(rustix::mount::mount("none", theirs, "tmpfs", MountFlags::RDONLY, None)?)
        }
        Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
