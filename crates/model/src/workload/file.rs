//! The workload file format: tasks as lists of steps.
//!
//! ```toml
//! name = "ping-pong"
//! summary = "two tasks that wake each other"
//! reference_khz = 3_000_000       # run times are at this clock
//!
//! [[task]]
//! name = "client"
//! rounds = 1000
//! steps = [{ run_us = [5, 20] }, { wake = "server" }, { block = true }]
//!
//! [[task]]
//! name = "server"
//! rounds = 1000
//! steps = [{ block = true }, { run_us = 10 }, { wake = "client" }]
//! ```
//!
//! **Steps** are taken in order, once a round:
//!
//! | step | what the task does |
//! |---|---|
//! | `run_us = LENGTH` | computes, for so long at `reference_khz` |
//! | `sleep_us = LENGTH` | sleeps on a timer |
//! | `period_us = 10000` | sleeps until the next multiple of this since its start; if that has passed, it goes on at once |
//! | `io_us = LENGTH` | waits for a device |
//! | `block = true` | waits until another task wakes it; a wake-up that came before is not lost |
//! | `wake = "NAME"` | wakes a task: of several copies the one of its own number |
//! | `wake_all = "NAME"` | wakes every copy |
//! | `lock = 0`, `unlock = 0` | takes a lock, gives it back |
//! | `take = "JOB"` | takes one of `[jobs] JOB = 1000`, and ends when there is none left |
//!
//! A `LENGTH` is a number, `[least, greatest]` (even), or `{ log = [least, greatest] }` (even in the logarithm).
//!
//! **A task** has a `name` and `steps`, and as it needs them:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `count` | 1 | copies of it |
//! | `rounds` | no end | it ends after so many rounds |
//! | `rounds_within_s` | | it has as many rounds as it would begin before that time with a CPU of `reference_khz` to itself. So the work is the same under every policy, and takes longer where CPUs are slower or shared; `compare` warns of that |
//! | `role` | `"foreground"` | its completion is the work; `"background"`: it goes on for as long as anybody looks |
//! | `deadline_us` | | the longest response time that it tolerates |
//! | `start_us` | 0 | a `LENGTH` before its first round |
//! | `forked` | false | it is not there before its first wake-up, which starts it as a shell starts a program; its first step is `block` |
//! | `nice`, `realtime` | 0, false | its priority |
//! | `cpus` | any | the CPUs that it may use, as by `taskset`: `cpus = [0, 2]` |
//! | `core` | any | it may use the CPUs of this core alone, and each further copy those of the next |
//! | `package` | any | it may use the CPUs of this package alone |
//! | `seed` | by its place | of the lengths that it draws |
//!
//! Cores and packages are counted from 0, and on a machine with fewer again from the first.
//!
//! **The file** has a `name`, a `summary` and one or more `[[task]]`. `span_s` is how long it is at least followed where tasks never end.
//!
//! `memory_share` is the share of run time at the reference clock that waits for memory, which no clock shortens: a number is a
//! guess, `[least, greatest]` an interval, and without it the share is drawn as that of a recording without counters.
//! `ipc_factor = [least, greatest]` says by what the machine's instructions per cycle may differ from those that the run times
//! are for; without it that is a guess, too. What is not certain is drawn anew in each replica of a comparison.

use super::{Affinity, Dist, Known, Pattern, Program, Role, Scripted, Step, Task, TaskId, Workload};
use serde::Deserialize;
use std::collections::BTreeMap;
use wattwise_figure::mistake::at_line;

/// A workload file that cannot be used: one line, naming the file, the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct WorkloadError {
    origin: String,
    problem: String,
}

impl WorkloadError {
    pub(super) fn new(origin: &str, problem: String) -> WorkloadError {
        WorkloadError { origin: origin.into(), problem }
    }
}

/// Tasks that a workload may have: more are a slip of the pen.
pub(super) const MAX_TASKS: u64 = 100_000;
/// Locks that it may have.
pub(super) const MAX_LOCKS: usize = 65_536;
/// The clock of run times in a file that does not say it.
pub(super) const DEFAULT_KHZ: u32 = 3_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    summary: String,
    #[serde(default = "default_khz")]
    reference_khz: u32,
    memory_share: Option<MemoryShare>,
    ipc_factor: Option<[f64; 2]>,
    #[serde(default)]
    jobs: BTreeMap<String, u64>,
    #[serde(default)]
    span_s: f64,
    task: Vec<TaskTable>,
}

fn default_khz() -> u32 {
    DEFAULT_KHZ
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "expected a share such as 0.2, or [least, greatest]")]
enum MemoryShare {
    Guess(f64),
    Between([f64; 2]),
}

impl File {
    /// What is known of how the work's time comes about.
    fn scripted(&self) -> Result<Scripted, String> {
        let memory = match self.memory_share {
            None => Known::Nothing,
            Some(MemoryShare::Guess(share)) if (0.0..=1.0).contains(&share) => Known::Guess(share),
            Some(MemoryShare::Between([a, b])) if 0.0 <= a && a <= b && b <= 1.0 => Known::Between(a, b),
            Some(MemoryShare::Guess(share)) => {
                return Err(format!("memory_share = {share}: expected 0 to 1, such as 0.2 for 20 %"));
            }
            Some(MemoryShare::Between([a, b])) => {
                return Err(format!("memory_share = [{a}, {b}]: expected 0 <= least <= greatest <= 1"));
            }
        };
        let ipc = match self.ipc_factor {
            None => Known::Nothing,
            Some([a, b]) if 0.01 <= a && a <= b && b <= 100.0 => Known::Between(a, b),
            Some([a, b]) => {
                return Err(format!("ipc_factor = [{a}, {b}]: expected 0.01 <= least <= greatest <= 100"));
            }
        };
        Ok(Scripted { memory, ipc })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    name: String,
    #[serde(default = "one")]
    count: u64,
    #[serde(default)]
    nice: i8,
    #[serde(default)]
    realtime: bool,
    cpus: Option<Vec<u16>>,
    core: Option<u32>,
    package: Option<u32>,
    /// Not there before its first wake-up.
    #[serde(default)]
    forked: bool,
    #[serde(default)]
    role: RoleWord,
    deadline_us: Option<f64>,
    rounds: Option<u64>,
    #[serde(alias = "until_s")]
    rounds_within_s: Option<f64>,
    #[serde(default)]
    start_us: Option<Length>,
    #[serde(default)]
    seed: u64,
    steps: Vec<StepTable>,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleWord {
    #[default]
    Foreground,
    Background,
}

impl TaskTable {
    /// Whether its end is the end of some work, and not only of our looking.
    fn ends(&self) -> bool {
        let takes = self.steps.iter().any(|s| matches!(s, StepTable::Take(_)));
        self.rounds.is_some() || takes
    }

    /// Whether somebody may let it go on.
    fn waits(&self) -> bool {
        self.steps.iter().any(|s| matches!(s, StepTable::Block(_)))
    }

    /// The CPUs that a copy may use.
    fn affinity(&self, copy: u64) -> Result<Option<Affinity>, String> {
        Ok(match (&self.cpus, self.core, self.package) {
            (None, None, None) => None,
            (Some(cpus), None, None) if cpus.is_empty() => return Err("cpus: expected at least one".into()),
            (Some(cpus), None, None) => Some(Affinity::Cpus(cpus.clone())),
            (None, Some(first), None) => Some(Affinity::Core(first.wrapping_add(copy as u32))),
            (None, None, Some(package)) => Some(Affinity::Package(package)),
            _ => return Err("expected one of cpus, core and package".into()),
        })
    }

    fn role(&self) -> Role {
        match self.role {
            RoleWord::Foreground => Role::Foreground,
            RoleWord::Background => Role::Background,
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "expected microseconds, [least, greatest] or { log = [least, greatest] }")]
enum Length {
    Fixed(f64),
    Even([f64; 2]),
    Log { log: [f64; 2] },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum StepTable {
    RunUs(Length),
    SleepUs(Length),
    IoUs(Length),
    PeriodUs(f64),
    Block(bool),
    Wake(String),
    WakeAll(String),
    Lock(u32),
    Unlock(u32),
    Take(String),
}

impl Length {
    /// In units of `scale` a microsecond.
    fn dist(&self, scale: f64) -> Option<Dist> {
        let fit = |x: f64| (x.is_finite() && (0.0..=1e12).contains(&x)).then_some((x * scale) as u64);
        Some(match *self {
            Length::Fixed(x) => Dist::Fixed(fit(x)?),
            Length::Even([a, b]) if a <= b => Dist::Uniform(fit(a)?, fit(b)?),
            Length::Log { log: [a, b] } if a <= b => Dist::LogUniform(fit(a)?, fit(b)?),
            _ => return None,
        })
    }
}

/// Figures within their ranges.
fn check(file: &File) -> Result<(), String> {
    if !(1_000..=100_000_000).contains(&file.reference_khz) {
        return Err(format!("reference_khz = {}: expected 1000 to 100000000", file.reference_khz));
    }
    if !(0.0..=1e7).contains(&file.span_s) {
        return Err(format!("span_s = {}: expected 0 to 1e7", file.span_s));
    }
    let total: u64 = file.task.iter().fold(0, |n, t| n.saturating_add(t.count));
    if !(1..=MAX_TASKS).contains(&total) {
        return Err(format!("{total} tasks: expected 1 to {MAX_TASKS}"));
    }
    Ok(())
}

/// One round of one copy of a task.
fn steps(
    table: &TaskTable,
    file: &File,
    first: &[u32],
    job_names: &[&String],
    copy: u64,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut takes_time = false;
    for s in &table.steps {
        if let StepTable::WakeAll(name) = s {
            steps.extend(wake_all(name, file, first)?);
            continue;
        }
        let step = step(s, file, first, job_names, copy)?;
        takes_time |= match step {
            Step::Run(d) | Step::Sleep(d) | Step::Io(d) => d.max() > 0,
            Step::Period(ns) => ns > 0,
            // Two tasks that only wake each other would do so for ever within one instant.
            Step::Block | Step::Wake(_) | Step::Lock(_) | Step::Unlock(_) => false,
            Step::Take(_) => true,
        };
        steps.push(step);
    }
    if !takes_time {
        return Err("a round takes no time: give it a run, a sleep or a period".into());
    }
    Ok(steps)
}

/// A wake-up for each copy of a task.
fn wake_all(name: &str, file: &File, first: &[u32]) -> Result<Vec<Step>, String> {
    let at = file.task.iter().position(|t| t.name == name);
    let at = at.ok_or_else(|| format!("wake_all = '{name}': no such task"))?;
    let copies = u32::try_from(file.task[at].count).unwrap_or_default();
    Ok((0..copies).map(|copy| Step::Wake(TaskId(first[at] + copy))).collect())
}

/// Reads a workload file; `origin` names it in errors.
///
/// # Errors
/// One line that names the place, what was expected and what to do.
pub fn parse(text: &str, origin: &str) -> Result<Workload, WorkloadError> {
    let fail = |problem: String| WorkloadError::new(origin, problem);
    let file: File =
        toml::from_str(text).map_err(|e| fail(at_line(text, e.span().map(|s| s.start), e.message())))?;
    check(&file).map_err(fail)?;
    let scripted = file.scripted().map_err(fail)?;
    let mut first = Vec::new();
    let mut at = 0u32;
    for t in &file.task {
        first.push(at);
        at += t.count as u32;
    }
    let job_names: Vec<&String> = file.jobs.keys().collect();
    let mut tasks = Vec::new();
    let mut locks = 0;
    let mut span_ns = (file.span_s * 1e9) as u64;
    for (i, table) in file.task.iter().enumerate() {
        let here = |what: String| fail(format!("task '{}': {what}", table.name));
        let until_ns = match table.rounds_within_s {
            None => u64::MAX,
            Some(s) if (0.0..=1e7).contains(&s) => (s * 1e9) as u64,
            Some(s) => return Err(here(format!("rounds_within_s = {s}: expected 0 to 1e7 seconds"))),
        };
        if !table.ends()
            && table.rounds_within_s.is_none()
            && !table.waits()
            && table.role == RoleWord::Foreground
        {
            return Err(here(
                "never ends: give it rounds, rounds_within_s, a job to take, or role = \"background\"".into(),
            ));
        }
        let waits_first = matches!(table.steps.first(), Some(StepTable::Block(true)));
        if table.forked && (!waits_first || table.start_us.is_some()) {
            return Err(here("forked: expected { block = true } as its first step, and no start_us".into()));
        }
        let deadline_ns = match table.deadline_us {
            None => None,
            Some(us) if (0.001..=1e12).contains(&us) => Some((us * 1e3) as u64),
            Some(us) => return Err(here(format!("deadline_us = {us}: expected 0.001 to 1e12 microseconds"))),
        };
        if until_ns != u64::MAX {
            span_ns = span_ns.max(until_ns);
        }
        for copy in 0..table.count {
            let steps = steps(table, &file, &first, &job_names, copy).map_err(&here)?;
            for step in &steps {
                if let Step::Lock(l) | Step::Unlock(l) = step {
                    locks = locks.max(l + 1);
                }
            }
            let start = match &table.start_us {
                None => Dist::Fixed(0),
                Some(l) => {
                    l.dist(1e3).ok_or_else(|| here("start_us: expected 0 <= least <= greatest".into()))?
                }
            };
            let name = if table.count == 1 { table.name.clone() } else { format!("{}/{copy}", table.name) };
            let pattern = Pattern {
                steps,
                start,
                rounds: table.rounds.unwrap_or(u64::MAX),
                until_ns,
                // Seeds differ by task and copy: `seed` counts on, so that copy 0 of seed 1 is seed 1.
                seed: if table.seed == 0 { (i as u64 + 1) * 1_000_003 + copy } else { table.seed + copy },
                reference_khz: file.reference_khz,
                memory_share: scripted.written_share(),
            };
            tasks.push(Task {
                nice: table.nice,
                realtime: table.realtime,
                affinity: table.affinity(copy).map_err(&here)?,
                forked: table.forked,
                role: table.role(),
                ends: table.ends(),
                deadline_ns,
                ..Task::new(name, Program::Pattern(pattern))
            });
        }
    }
    Ok(Workload {
        jobs: file.jobs.values().copied().collect(),
        locks,
        scripted: Some(scripted),
        ..Workload::new(file.name.clone(), format!("generated: {}", file.summary), tasks, span_ns)
    })
}

/// One step of copy number `copy`.
fn step(table: &StepTable, file: &File, first: &[u32], jobs: &[&String], copy: u64) -> Result<Step, String> {
    let cycles_per_us = f64::from(file.reference_khz) / 1e3;
    let bad = |key: &str| format!("{key}: expected a number of at most 1e12 or [least, greatest]");
    Ok(match table {
        StepTable::RunUs(l) => Step::Run(l.dist(cycles_per_us).ok_or_else(|| bad("run_us"))?),
        StepTable::SleepUs(l) => Step::Sleep(l.dist(1e3).ok_or_else(|| bad("sleep_us"))?),
        StepTable::IoUs(l) => Step::Io(l.dist(1e3).ok_or_else(|| bad("io_us"))?),
        StepTable::PeriodUs(us) if (0.001..=1e12).contains(us) => Step::Period((us * 1e3) as u64),
        StepTable::PeriodUs(_) => return Err("period_us: expected 0.001 to 1e12".into()),
        StepTable::Block(true) => Step::Block,
        StepTable::Block(false) => return Err("block: only true has a meaning; leave the step out".into()),
        StepTable::Wake(name) => {
            let at = file.task.iter().position(|t| t.name == *name);
            let at = at.ok_or_else(|| format!("wake = '{name}': no such task"))?;
            Step::Wake(TaskId(first[at] + (copy % file.task[at].count.max(1)) as u32))
        }
        // Several steps; made where the list is.
        StepTable::WakeAll(name) => return Err(format!("wake_all = '{name}': not within a step")),
        StepTable::Lock(l) | StepTable::Unlock(l) if *l as usize >= MAX_LOCKS => {
            return Err(format!("lock {l}: expected 0 to {}", MAX_LOCKS - 1));
        }
        StepTable::Lock(l) => Step::Lock(*l),
        StepTable::Unlock(l) => Step::Unlock(*l),
        StepTable::Take(name) => {
            let at = jobs.iter().position(|j| *j == name);
            Step::Take(at.ok_or_else(|| format!("take = '{name}': no such entry in [jobs]"))? as u32)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = 'x'\nsummary = 'y'\n";

    fn error(body: &str) -> String {
        parse(&format!("{HEAD}{body}"), "f.toml").unwrap_err().to_string()
    }

    #[test]
    fn copies_wake_their_own_partner() {
        let w = parse(
            &format!(
                "{HEAD}[[task]]\nname='a'\ncount=2\nrounds=1\nsteps=[{{run_us=1}},{{wake='b'}}]\n\
                 [[task]]\nname='b'\ncount=2\nrounds=1\nsteps=[{{block=true}},{{run_us=[1,2]}}]"
            ),
            "f.toml",
        )
        .unwrap();
        let wakes: Vec<_> = w
            .tasks
            .iter()
            .filter_map(|t| match &t.program {
                Program::Pattern(p) => p.steps.iter().find(|s| matches!(s, Step::Wake(_))).copied(),
                Program::Recorded(_) => None,
            })
            .collect();
        assert_eq!(wakes, [Step::Wake(TaskId(2)), Step::Wake(TaskId(3))]);
        assert_eq!(w.tasks[1].name, "a/1");
    }

    #[test]
    fn a_task_is_bound_to_cpus_and_copies_to_cores() {
        let task = |keys: &str| {
            let body = format!("{HEAD}[[task]]\nname='a'\ncount=2\nrounds=1\n{keys}\nsteps=[{{run_us=1}}]");
            let tasks = parse(&body, "f.toml").map_err(|e| e.to_string())?.tasks;
            Ok::<_, String>(tasks.into_iter().map(|t| t.affinity).collect::<Vec<_>>())
        };
        let both = |affinity: Affinity| Ok(vec![Some(affinity.clone()), Some(affinity)]);
        assert_eq!(task(""), Ok(vec![None, None]));
        assert_eq!(task("cpus=[0, 2]"), both(Affinity::Cpus(vec![0, 2])));
        assert_eq!(task("core=1"), Ok(vec![Some(Affinity::Core(1)), Some(Affinity::Core(2))]));
        assert_eq!(task("package=1"), both(Affinity::Package(1)));
        assert_eq!(task("cpus=[]"), Err("f.toml: task 'a': cpus: expected at least one".into()));
        let two = "f.toml: task 'a': expected one of cpus, core and package";
        assert_eq!(task("core=1\npackage=0"), Err(two.into()));
    }

    #[test]
    fn one_task_wakes_all_copies_of_another() {
        let w = parse(
            &format!(
                "{HEAD}[[task]]\nname='a'\nrounds=1\nsteps=[{{run_us=1}},{{wake_all='b'}}]\n\
                 [[task]]\nname='b'\ncount=3\nrounds=1\nsteps=[{{block=true}},{{run_us=1}}]"
            ),
            "f.toml",
        )
        .unwrap();
        let Program::Pattern(p) = &w.tasks[0].program else { panic!("a pattern") };
        assert_eq!(p.steps[1..], [1, 2, 3].map(|t| Step::Wake(TaskId(t))));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (body, part) in [
            ("[[task]]\nname='a'\nsteps=[{run_us=1}]", "never ends"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{wake='a'}]", "takes no time"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{wake='a'},{block=true}]", "takes no time"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=[2,1]}]", "run_us"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=-1}]", "run_us"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=1},{wake='b'}]", "no such task"),
            ("[[task]]\nname='a'\nsteps=[{take='b'}]", "no such entry"),
            ("[[task]]\nname='a'\nrounds=1\nsteps=[{jump=1}]", "line 6"),
            ("[[task]]\nname='a'\ncount=1000000\nrounds=1\nsteps=[{run_us=1}]", "tasks"),
            ("ipc_factor=[2,1]\n[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=1}]", "ipc_factor"),
            ("memory_share=[0.4,1.2]\n[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=1}]", "memory_share"),
            ("memory_share='x'\n[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=1}]", "such as 0.2"),
            ("memory_share=2\n[[task]]\nname='a'\nrounds=1\nsteps=[{run_us=1}]", "memory_share"),
            ("[[task]]\nname='a'\nrounds=1\nuntil_s=-1\nsteps=[{run_us=1}]", "rounds_within_s"),
            ("", "line"),
        ] {
            let message = error(body);
            assert!(message.starts_with("f.toml: ") && message.contains(part), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
