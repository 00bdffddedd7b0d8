//! The guard: this program once more, to put back what we changed if we are killed.
//!
//! SIGKILL leaves a process no time to restore anything. So a command that holds settings for a while first starts
//! `wattwise restore --after PID` with its own PID. That process waits for the end of this one, in whichever way it comes, and puts
//! back what the journals of killed processes have. Where nothing was left it is ended unseen.
//!
//! ```text
//! run -p powersave -- make      holds settings ------> killed
//!   restore --after PID         waits ---------------> puts back, says so
//! ```
//!
//! Signals from the keyboard do not reach it, and one that asks it to end waits until we have ended. If both are killed, the next
//! command that changes or measures this machine puts back.

use crate::show::screen::note;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open, test_kill_process};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wattwise_child::Signals;

/// The guard of this process, from its start to [`dismiss`].
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// How often a process is looked for by a kernel before 5.3, which has no descriptor of one.
const LOOK: Duration = Duration::from_millis(200);

/// Has this process guarded from now on, once: over the machine at `root` with this folder of journals.
pub(super) fn start(root: Option<String>, journal: &Path) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_some() {
        return;
    }
    // This very program, also where its file was replaced since.
    let mut command = Command::new("/proc/self/exe");
    // Each value behind its flag's `=`: one that begins with `-` would be another flag.
    let mut journals = OsString::from("--journal=");
    journals.push(journal);
    command.arg0("wattwise").args(["restore", "--after", &getpid().to_string()]).arg(journals);
    command.args(root.map(|root| format!("--root={root}")));
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    match command.spawn() {
        Ok(child) => *guard = Some(child),
        Err(e) => note!("no guard against SIGKILL: {e}; what it would leave, 'wattwise restore' puts back"),
    }
}

/// Ends the guard: all is put back, or was said to have failed.
pub(crate) fn dismiss() {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut child) = guard {
        _ = child.kill().and_then(|()| child.wait());
    }
}

/// Waits for a process to end. If it is our parent, we are its guard: signals that ask us to end are ignored from here on, and
/// `ps` shows whose we are.
///
/// # Errors
/// What the system says; that there is no such process is an end.
pub(crate) fn wait_for(pid: Pid) -> std::io::Result<Option<Signals>> {
    let signals = (getppid() == Some(pid)).then(Signals::catch).transpose()?;
    if signals.is_some() {
        // After exec it is that of the link which was followed, `exe`.
        _ = rustix::thread::set_name(c"wattwise");
    }
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => while poll(&mut [PollFd::new(&process, PollFlags::IN)], None) == Err(Errno::INTR) {},
        Err(Errno::SRCH) => {}
        Err(_) => {
            while test_kill_process(pid) != Err(Errno::SRCH) {
                std::thread::sleep(LOOK);
            }
        }
    }
    Ok(signals)
}
