//! Commands killed with SIGKILL.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;

/// Kills a command and its guard, so that nobody is left to put anything back.
pub(crate) fn kill_with_guard(child: &mut Child) {
    let guards = guards_of(child.id());
    assert!(!guards.is_empty(), "it has a guard");
    for guard in guards {
        kill_process(guard, Signal::KILL).expect("the guard runs");
    }
    child.kill().and_then(|()| child.wait()).expect("killed");
}

/// The processes that wait for the end of this one.
pub(crate) fn guards_of(pid: u32) -> Vec<Pid> {
    let words = format!("\0restore\0--after\0{pid}\0");
    let processes = std::fs::read_dir("/proc").expect("is mounted").flatten();
    processes
        .filter(|p| std::fs::read_to_string(p.path().join("cmdline")).is_ok_and(|line| line.contains(&words)))
        .filter_map(|p| Pid::from_raw(p.file_name().to_str()?.parse().ok()?))
        .collect()
}
