//! The files by which ways work, and what work on them costs.

use crate::problem::Problem;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::path::Path;
use std::time::Duration;
use wattwise_hw::cpus::set::CpuSet;

/// CPU time of this thread so far.
pub fn own_cpu() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap_or(0))
}

pub(super) fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|t| t.trim().to_owned())
}

/// One write call, as attributes want.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

pub(super) fn failed(path: &Path, e: &io::Error) -> Problem {
    let path = path.display();
    Problem::Failed(match e.kind() {
        io::ErrorKind::NotFound => format!("{path}: gone: another manager of cgroups has removed it"),
        io::ErrorKind::PermissionDenied => format!("{path}: no permission; run as root"),
        _ => format!("{path}: {e}"),
    })
}

pub(super) fn set(path: &Path, value: &str) -> Result<(), Problem> {
    write(path, value).map_err(|e| failed(path, &e))
}

pub(super) fn cpus_in(path: &Path) -> Result<CpuSet, Problem> {
    let text = read(path).map_err(|e| failed(path, &e))?;
    CpuSet::parse(&text).map_err(|e| Problem::Failed(format!("{}: {e}", path.display())))
}

pub(super) fn make(group: &Path) -> Result<(), Problem> {
    match std::fs::create_dir(group) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(failed(group, &e)),
        _ => Ok(()),
    }
}
