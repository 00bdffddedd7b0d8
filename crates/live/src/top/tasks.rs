//! Wake-ups by program, without tracing: the kernel counts for each thread how often it slept of its own accord
//! (`voluntary_ctxt_switches` in `/proc/PID/task/TID/status`), and each sleep ends in a wake-up.
//!
//! Tracepoints would also say who woke it; they cost root's rights and a buffer that must be read. A program that began and
//! ended between two looks is in neither.

use crate::top::sample::TaskSample;
use std::collections::HashMap;
use std::fs;

/// Programs that are told.
const MOST: usize = 200;

/// What a thread has counted so far.
#[derive(Clone, Copy, Default)]
struct Counted {
    sleeps: u64,
    cpu_ns: u64,
}

/// A process: its name, and its threads by number. They are kept apart: what one that has ended had counted is gone.
#[derive(Clone, Default)]
struct Process {
    name: String,
    threads: HashMap<u32, Counted>,
}

impl Process {
    /// What its threads counted since `then`.
    fn since(&self, then: &Process) -> Counted {
        let mut sum = Counted::default();
        for (tid, now) in &self.threads {
            let before = then.threads.get(tid).copied().unwrap_or_default();
            sum.sleeps += now.sleeps.saturating_sub(before.sleeps);
            sum.cpu_ns += now.cpu_ns.saturating_sub(before.cpu_ns);
        }
        sum
    }
}

/// Follows the processes of this machine.
#[derive(Default)]
pub struct Tasks {
    last: HashMap<u32, Process>,
}

impl Tasks {
    /// What each program did since the last look, the most wake-ups first.
    pub fn look(&mut self, window_s: f64) -> Vec<TaskSample> {
        let now = read();
        let mut rows: Vec<TaskSample> = now
            .iter()
            .filter_map(|(pid, process)| {
                let counted = process.since(self.last.get(pid)?);
                let wakeups = counted.sleeps as f64 / window_s;
                let busy = counted.cpu_ns as f64 / 1e9 / window_s;
                (wakeups > 0.0 || busy > 0.0).then(|| TaskSample {
                    pid: *pid,
                    name: process.name.clone(),
                    wakeups,
                    busy,
                })
            })
            .collect();
        rows.sort_by(|a, b| b.wakeups.total_cmp(&a.wakeups).then(a.pid.cmp(&b.pid)));
        rows.truncate(MOST);
        self.last = now;
        rows
    }
}

fn read() -> HashMap<u32, Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, of(pid)?))).collect()
}

fn of(pid: u32) -> Option<Process> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
    let thread = |entry: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let sleeps = read("status").as_deref().and_then(sleeps)?;
        let cpu_ns = read("schedstat").as_deref().and_then(cpu_ns).unwrap_or(0);
        Some((entry.file_name().to_str()?.parse().ok()?, Counted { sleeps, cpu_ns }))
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().filter_map(thread).collect();
    Some(Process { name, threads })
}

fn sleeps(status: &str) -> Option<u64> {
    status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

/// The first number of `schedstat`: time on a CPU, ns.
fn cpu_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_those_of_the_kernels_count() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t57\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(sleeps(status), Some(57));
        assert_eq!(cpu_ns("123 4 5\n"), Some(123));
        assert_eq!((sleeps("Name: a\n"), cpu_ns("")), (None, None));
    }

    /// A thread that ends takes what it had counted along, and no other's.
    #[test]
    fn a_thread_that_ends_hides_no_other() {
        let process = |threads: &[(u32, u64)]| Process {
            name: "a".into(),
            threads: threads.iter().map(|&(tid, sleeps)| (tid, Counted { sleeps, cpu_ns: sleeps })).collect(),
        };
        let since = process(&[(1, 15), (3, 4)]).since(&process(&[(1, 10), (2, 1000)]));
        assert_eq!((since.sleeps, since.cpu_ns), (9, 9));
    }

    /// Held against a thread whose sleeps are known.
    #[test]
    fn a_program_that_sleeps_is_counted() {
        let mut tasks = Tasks::default();
        tasks.look(1.0);
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let own = tasks.look(1.0).into_iter().find(|t| t.pid == std::process::id());
        assert!(own.is_some_and(|t| t.wakeups >= 40.0));
    }
}
