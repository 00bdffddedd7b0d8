//! Tasks and where they may run.

use rustix::process::Pid;
use serde::Serialize;
use std::path::Path;
use wattwise_hw::cpus::set::CpuSet;

/// CPUs that an affinity can name here: rustix's set, the kernel's default.
const MOST_CPUS: usize = rustix::thread::CpuSet::MAX_CPU;

/// Where a task may run; none where it has ended or may not be asked.
pub fn affinity(tid: u32) -> Option<CpuSet> {
    let pid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    let set = rustix::thread::sched_getaffinity(Some(pid)).ok()?;
    Some((0..MOST_CPUS).filter(|&c| set.is_set(c)).map(|c| c as u32).collect())
}

/// Whether a task may run on all of these CPUs; none where it has ended or may not be asked.
pub fn may_run_on_all(tid: u32, cpus: &CpuSet) -> Option<bool> {
    let pid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    let set = rustix::thread::sched_getaffinity(Some(pid)).ok()?;
    Some(cpus.iter().all(|c| (c as usize) < MOST_CPUS && set.is_set(c as usize)))
}

/// A task that is not moved, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pinned {
    /// Its thread's number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Where it may run.
    pub cpus: String,
}

/// The name of a task.
pub fn name(proc: &Path, tid: u32) -> String {
    let name = std::fs::read_to_string(proc.join(tid.to_string()).join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// User tasks that may run on no kept CPU: they go on where they are pinned. Kernel threads are left out, which are
/// pinned because they serve their CPU.
pub fn pinned_outside(proc: &Path, kept: &CpuSet) -> Vec<Pinned> {
    let mut found = Vec::new();
    let numbers = |path: &Path| -> Vec<u32> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
    };
    for pid in numbers(proc) {
        let folder = proc.join(pid.to_string());
        // A kernel thread has no program.
        if folder.join("exe").read_link().is_err() {
            continue;
        }
        for tid in numbers(&folder.join("task")) {
            if let Some(cpus) = affinity(tid).filter(|a| a.and(kept).is_empty() && !a.is_empty()) {
                found.push(Pinned { tid, name: name(proc, tid), cpus: cpus.to_string() });
            }
        }
    }
    found.sort_unstable_by_key(|p| p.tid);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_pinned_elsewhere_is_found() {
        let all = affinity(std::process::id()).expect("ours");
        let (Some(first), Some(last)) = (all.first(), all.iter().last()) else { panic!("no CPU") };
        let nap = std::process::Command::new("sleep").arg("30").spawn();
        let mut nap = nap.expect("sleep");
        let mut only = rustix::thread::CpuSet::new();
        only.set(last as usize);
        rustix::thread::sched_setaffinity(Pid::from_raw(nap.id() as i32), &only).expect("pinned");
        let found = |kept: u32| {
            let kept = CpuSet::from_iter([kept]);
            pinned_outside(Path::new("/proc"), &kept).into_iter().any(|p| p.tid == nap.id())
        };
        let (outside, inside) = (found(first), found(last));
        nap.kill().and_then(|()| nap.wait()).expect("ended");
        assert_eq!((outside, inside), (first != last, false));
    }
}
