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

/// What a process has counted so far.
#[derive(Clone, Default)]
struct Counted {
    name: String,
    sleeps: u64,
    cpu_ns: u64,
}

/// Follows the processes of this machine.
#[derive(Default)]
pub struct Tasks {
    last: HashMap<u32, Counted>,
}

impl Tasks {
    /// What each program did since the last look, the most wake-ups first.
    pub fn look(&mut self, window_s: f64) -> Vec<TaskSample> {
        let now = read();
        let mut rows: Vec<TaskSample> = now
            .iter()
            .filter_map(|(pid, c)| {
                let then = self.last.get(pid)?;
                let rate = |a: u64, b: u64| b.saturating_sub(a) as f64 / window_s;
                let (wakeups, busy) = (rate(then.sleeps, c.sleeps), rate(then.cpu_ns, c.cpu_ns) / 1e9);
                (wakeups > 0.0 || busy > 0.0).then(|| TaskSample {
                    pid: *pid,
                    name: c.name.clone(),
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

fn read() -> HashMap<u32, Counted> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, of(pid)?))).collect()
}

/// All threads of a process together.
fn of(pid: u32) -> Option<Counted> {
    let mut all = Counted {
        name: fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned(),
        ..Counted::default()
    };
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let path = thread.path();
        let read = |name: &str| fs::read_to_string(path.join(name)).ok();
        all.sleeps += read("status").as_deref().and_then(sleeps).unwrap_or(0);
        all.cpu_ns += read("schedstat").as_deref().and_then(cpu_ns).unwrap_or(0);
    }
    Some(all)
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
