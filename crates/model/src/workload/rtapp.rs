//! rt-app's JSON: workloads of the Linux scheduler's own load generator.
//!
//! `compare` takes the files of [rt-app](https://github.com/scheduler-tools/rt-app) as they are (`*.json` with an object `tasks`), also those that
//! workgen is needed for: with comments, a comma behind the last member, one key several times in an object, `"suspend"` without a name.
//!
//! ```json
//! {
//!     "tasks": {
//!         "frame": { "run": 2000, "resume": "show", "timer": { "ref": "unique", "period": 16000 } },
//!         "show":  { "suspend": "show", "run": 500 }
//!     },
//!     "global": { "duration": 10, "reference_khz": 1800000 }
//! }
//! ```
//!
//! **Events** are known by how their keys begin, as rt-app knows them (`run0`, `run1`):
//!
//! | event | what the task does |
//! |---|---|
//! | `run`, `runtime` | computes, for so many us at the reference clock. rt-app lets `runtime` last as long at any clock; here it is work, too |
//! | `sleep` | sleeps so many us on a timer |
//! | `timer` | sleeps until its `period` (us) after it was last due, the first time after now. A task has one `ref`, for itself alone or beginning with `unique`. What is late catches up, as rt-app's does with `"mode": "absolute"` |
//! | `suspend`, `wait` | blocks until its name (`ref`) is resumed or signalled; `wait` gives its `mutex` back meanwhile |
//! | `resume`, `broad` | wakes all others that wait on the name |
//! | `signal`, `sync` | wakes one that waits on the name, the one that has waited longest; `sync` then waits on it |
//! | `barrier` | blocks until all tasks that have the barrier have come to it |
//! | `lock`, `unlock` | takes a mutex, gives it back |
//!
//! **A task** may have `instance` (copies), `loop`, `delay` (us), `phases` with a `loop` each, and, the same in all its phases, `cpus`,
//! `policy` and `priority`. `SCHED_FIFO` and `SCHED_RR` are real-time, whatever the priority; of the others it is the nice level, and
//! `SCHED_IDLE` has 19. `global` may have `duration` (s) and `default_policy`.
//!
//! Each other key of a task is refused by its name, for without it the task would be another; what `global` says of logs and
//! calibration is passed over. Three things are not as in rt-app:
//!
//! - *The clock.* rt-app's us are those of the calibrated CPU at its highest speed, which the file does not name: they are taken
//!   for us at 3 GHz, the default of workload files, or at `global`'s `reference_khz`, which rt-app passes over. The loop that rt-app
//!   runs waits for no memory, so none of its time does here (unless `--memory-bound` says so).
//! - *Who wakes whom* is the same under every policy, so that the work is. Where each task waits on one name and each wake-up has one
//!   meaning, a wake-up that comes before its block is kept; rt-app loses it. Of tasks that wait on several names, meet at barriers,
//!   signal one of several or wake each other for ever, and of all that share a name with them, a run settles it in which each task has a CPU of the
//!   reference clock to itself: a wake-up that nobody waits for in that run is lost, as in rt-app.
//! - *The end.* A task that goes on for ever and never blocks has as many rounds as it would begin within `duration` with a CPU of the
//!   reference clock to itself. One that blocks and goes on for ever serves the others until these are done, and one that blocks and has a
//!   `loop` does all of it. Tasks whose wake-ups that run has settled do what they began in it within `duration`. Tasks that wake each
//!   other for ever need a `duration`, or one of them a `loop`.

mod json;
mod reference;
mod steps;

use super::file::{DEFAULT_KHZ, MAX_LOCKS, MAX_TASKS, WorkloadError};
use super::{Affinity, Dist, Known, Pattern, Program, Scripted, Step, Task, TaskId, Workload};
use json::{Json, Members, get, strict, whole};
use reference::{ReferenceRun, related};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use steps::{Waiters, balanced, cut, endless, too_many, waiters};
use wattwise_figure::mistake::of_json;
use wattwise_figure::one_line;

/// Steps of all tasks once their phases are unrolled (48 MB), and events of the reference run, each of which is four steps at most.
/// More are a slip of the pen, or hostile. rt-app's ten minutes of video are 2.2 million steps of fewer events.
const MOST_STEPS: usize = 2_000_000;
/// The longest time that a file may tell, in us, as in workload files.
const MOST_US: i64 = 1_000_000_000_000;

/// Reads an rt-app file; `origin` names it in errors. `None`: it is no JSON with an object `tasks`.
///
/// # Errors
/// One line that names the task and the key, what was expected and what to do.
pub fn parse(text: &str, origin: &str) -> Option<Result<Workload, WorkloadError>> {
    let strict = strict(text)?;
    Some(read(&strict, origin).map_err(|problem| WorkloadError::new(origin, one_line(&problem))))
}

fn read(strict: &str, origin: &str) -> Result<Workload, String> {
    let root: Json = serde_json::from_str(strict).map_err(|e| {
        format!("{}; expected rt-app's JSON, as rt-app itself reads it", of_json(&e.to_string()))
    })?;
    let Json::Object(root) = root else { return Err("expected an object with tasks".into()) };
    let global = Global::read(get(&root, "global"))?;
    let Some(Json::Object(all)) = get(&root, "tasks") else {
        return Err("tasks: expected an object of tasks by their names".into());
    };
    let mut names = Names::default();
    let mut threads = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, value) in all {
        let here = |what: String| format!("task '{name}': {what}");
        if !seen.insert(name) {
            return Err(here("is there twice; expected a name of its own for each".into()));
        }
        threads.push(Thread::read(name, value, &global, &mut names).map_err(here)?);
    }
    let total: u64 = threads.iter().map(|t| t.count).fold(0, u64::saturating_add);
    if !(1..=MAX_TASKS).contains(&total) {
        return Err(format!("{total} tasks: expected 1 to {MAX_TASKS}"));
    }
    if names.locks.len() > MAX_LOCKS {
        return Err(format!("{} mutexes: expected at most {MAX_LOCKS}", names.locks.len()));
    }
    let (tasks, settled) = tasks(&threads, &global)?;
    let until = |t: &Task| match &t.program {
        Program::Pattern(p) if p.until_ns != u64::MAX => p.until_ns,
        _ => 0,
    };
    let goes_on = |t: &usize| threads[*t].rounds.is_none() && global.duration_ns != u64::MAX;
    let of_settled = if settled.iter().any(goes_on) { global.duration_ns } else { 0 };
    let span_ns = tasks.iter().map(until).max().unwrap_or(0).max(of_settled);
    let name = Path::new(origin).file_name().map_or(origin.into(), |name| name.to_string_lossy());
    Ok(Workload {
        locks: names.locks.len() as u32,
        scripted: Some(SCRIPTED),
        ..Workload::new(name, "generated: as rt-app would", tasks, span_ns)
    })
}

/// The tasks of all threads, in their order; and the threads of which a reference run told the steps.
fn tasks(threads: &[Thread], global: &Global) -> Result<(Vec<Task>, BTreeSet<usize>), String> {
    let waiters = waiters(threads);
    // The thread of each task, and which of its copies the task is.
    let copies = |(i, t): (usize, &Thread)| (0..t.count).map(move |copy| (i, copy));
    let thread_of: Vec<(usize, u64)> = threads.iter().enumerate().flat_map(copies).collect();
    let mut settled = related(threads, |t| threads[t].is_settled_by_a_run(&waiters));
    loop {
        let mut left = MOST_STEPS;
        let by_run = || thread_of.iter().enumerate().filter(|(_, (thread, _))| settled.contains(thread));
        let run = by_run().map(|(id, (thread, _))| (&threads[*thread], TaskId(id as u32)));
        let steps = ReferenceRun::new(run, global.reference_khz, global.duration_ns).steps(&mut left);
        let steps = steps.map_err(|(thread, what)| format!("task '{thread}': {what}"))?;
        let mut steps: BTreeMap<usize, Vec<Step>> = by_run().map(|(id, _)| id).zip(steps).collect();
        let mut tasks = Vec::new();
        for (id, &(thread, copy)) in thread_of.iter().enumerate() {
            let thread = &threads[thread];
            let task = match steps.remove(&id) {
                Some(steps) => Ok(thread.settled_task(steps, id as u32, global)),
                None => thread.task(id as u32, global, &waiters, &mut left),
            };
            let mut task = task.map_err(|what| format!("task '{}': {what}", thread.name))?;
            if thread.count > 1 {
                task.name = format!("{}/{copy}", thread.name);
            }
            tasks.push(task);
        }
        let endless = endless(&tasks);
        let Some(&first) = endless.first() else { return Ok((tasks, settled)) };
        if global.duration_ns == u64::MAX {
            return Err(format!(
                "task '{}': wakes and is woken for ever; expected a duration in global, or a loop of this task or of one that it wakes",
                tasks[first].name
            ));
        }
        // They end with the duration.
        let endless: BTreeSet<usize> = endless.into_iter().map(|task| thread_of[task].0).collect();
        settled.extend(related(threads, |t| endless.contains(&t)));
    }
}

/// rt-app's loop computes in registers; how the machine's instructions per cycle compare with the calibrated one's is a guess.
const SCRIPTED: Scripted = Scripted { memory: Known::Between(0.0, 0.0), ipc: Known::Nothing };

/// What `global` says.
struct Global {
    /// [`u64::MAX`] where it has no end.
    duration_ns: u64,
    policy: String,
    reference_khz: u32,
}

impl Global {
    fn read(value: Option<&Json>) -> Result<Global, String> {
        let none = Vec::new();
        let members = match value {
            None => &none,
            Some(Json::Object(members)) => members,
            Some(_) => return Err("global: expected an object".into()),
        };
        let whole = |key, range| whole(members, key, range).map_err(|what| format!("global: {what}"));
        let duration_ns = match whole("duration", -1..=10_000_000)? {
            None | Some(-1) => u64::MAX,
            Some(s) => s as u64 * 1_000_000_000,
        };
        let policy = match get(members, "default_policy") {
            None => "SCHED_OTHER".to_owned(),
            Some(Json::Text(policy)) => policy.clone(),
            Some(_) => return Err("global: 'default_policy': expected one such as \"SCHED_OTHER\"".into()),
        };
        let reference_khz =
            whole("reference_khz", 1_000..=100_000_000)?.map_or(DEFAULT_KHZ, |khz| khz as u32);
        Ok(Global { duration_ns, policy, reference_khz })
    }
}

/// What tasks have in common by its name.
#[derive(Default)]
struct Names {
    locks: BTreeMap<String, u32>,
    /// Timers that are nobody's own by their name.
    timers: BTreeSet<String>,
}

impl Names {
    fn lock(&mut self, name: &str) -> u32 {
        let next = self.locks.len() as u32;
        *self.locks.entry(name.to_owned()).or_insert(next)
    }
}

/// A task of the file: as many threads as it has instances.
struct Thread {
    name: String,
    count: u64,
    start_ns: u64,
    /// `None`: for ever.
    rounds: Option<u64>,
    priority: Priority,
    phases: Vec<Phase>,
}

struct Phase {
    rounds: u64,
    events: Vec<Event>,
}

/// One event; times in us.
enum Event {
    Run(u64),
    Sleep(u64),
    Timer(u64),
    /// On a name; gives a mutex back meanwhile.
    Wait {
        name: String,
        mutex: Option<u32>,
    },
    /// Until all tasks that have it have come to it.
    Barrier(String),
    /// One or all that wait on the name.
    Wake {
        name: String,
        all: bool,
        key: String,
    },
    Lock(u32),
    Unlock(u32),
}

/// Where and how a task runs.
#[derive(Clone, PartialEq)]
struct Priority {
    nice: i8,
    realtime: bool,
    cpus: Option<Vec<u16>>,
    policy: String,
}

impl Priority {
    /// What an object says of it, and where it says nothing as it was.
    fn read(&self, members: &Members) -> Result<Priority, String> {
        let mut own = self.clone();
        let bad =
            || "'policy': expected SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO or SCHED_RR".to_owned();
        match get(members, "policy") {
            None => {}
            Some(Json::Text(policy)) => (own.policy, own.nice) = (policy.clone(), 0),
            Some(_) => return Err(bad()),
        }
        own.realtime = match own.policy.as_str() {
            "SCHED_FIFO" | "SCHED_RR" => true,
            "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE" => false,
            _ => return Err(bad()),
        };
        let range = if own.realtime { 1..=99 } else { -20..=19 };
        let given = whole(members, "priority", range)?;
        own.nice = match own.policy.as_str() {
            _ if own.realtime => 0,
            "SCHED_IDLE" => 19,
            _ => given.map_or(own.nice, |nice| nice as i8),
        };
        match get(members, "cpus") {
            None => {}
            Some(Json::List(cpus)) if !cpus.is_empty() => {
                let number = |cpu: &Json| match cpu {
                    Json::Whole(n) => u16::try_from(*n).ok(),
                    _ => None,
                };
                let cpus: Option<Vec<u16>> = cpus.iter().map(number).collect();
                own.cpus = Some(cpus.ok_or("'cpus': expected CPUs by their numbers")?);
            }
            Some(_) => return Err("'cpus': expected a list such as [0, 2]".into()),
        }
        Ok(own)
    }
}

/// rt-app's events, in the order in which it looks for them, each with whether it is read.
const EVENTS: [(&str, bool); 17] = [
    ("lock", true),
    ("unlock", true),
    ("wait", true),
    ("signal", true),
    ("broad", true),
    ("sync", true),
    ("sleep", true),
    ("runtime", true),
    ("run", true),
    ("timer", true),
    ("suspend", true),
    ("resume", true),
    ("mem", false),
    ("iorun", false),
    ("yield", false),
    ("barrier", true),
    ("fork", false),
];

/// Keys of a task that are no events and are read.
const OF_TASK: [&str; 3] = ["instance", "delay", "phases"];
/// Keys of a task or a phase that are no events and are read.
const OF_PHASE: [&str; 4] = ["loop", "policy", "priority", "cpus"];

impl Thread {
    fn read(name: &str, value: &Json, global: &Global, names: &mut Names) -> Result<Thread, String> {
        let Json::Object(members) = value else { return Err("expected an object".into()) };
        let usual =
            Priority { nice: 0, realtime: false, cpus: None, policy: global.policy.clone() }.read(members)?;
        let count = whole(members, "instance", 0..=MAX_TASKS as i64)?.unwrap_or(1) as u64;
        let start_us = whole(members, "delay", 0..=MOST_US)?.unwrap_or(0) as u64;
        let rounds = rounds(members)?.unwrap_or(None);
        let mut thread = Thread {
            name: name.to_owned(),
            count,
            start_ns: start_us * 1000,
            rounds,
            priority: usual.clone(),
            phases: Vec::new(),
        };
        let mut reader = EventReader { thread: name, count, names, timer: None };
        let Some(phases) = get(members, "phases") else {
            let events = reader.events(members, &OF_TASK)?;
            thread.phases.push(Phase { rounds: 1, events });
            return Ok(thread);
        };
        let is_read = |key: &str| OF_TASK.contains(&key) || OF_PHASE.contains(&key);
        if let Some((key, _)) = members.iter().find(|(key, _)| !is_read(key)) {
            return Err(format!(
                "'{key}': not among what wattwise reads beside 'phases'; expected it within a phase"
            ));
        }
        let Json::Object(phases) = phases else {
            return Err("'phases': expected an object of phases".into());
        };
        for (i, (phase, value)) in phases.iter().enumerate() {
            let here = |what: String| format!("phase '{phase}': {what}");
            let Json::Object(members) = value else { return Err(here("expected an object".into())) };
            let own = usual.read(members).map_err(here)?;
            if i == 0 {
                thread.priority = own;
            } else if own != thread.priority {
                return Err(here("policy, priority and cpus: expected the same in all phases".into()));
            }
            let rounds = match self::rounds(members).map_err(here)? {
                None => 1,
                Some(Some(n)) => n,
                // What comes before or after it would never come again.
                Some(None) if phases.len() > 1 => {
                    return Err(here("'loop': expected 1 or more where there are other phases".into()));
                }
                Some(None) => {
                    thread.rounds = None;
                    1
                }
            };
            let events = reader.events(members, &[]).map_err(here)?;
            thread.phases.push(Phase { rounds, events });
        }
        // The rounds of a single phase need no unrolling.
        if let ([phase], Some(n)) = (&mut thread.phases[..], &mut thread.rounds) {
            *n = n.saturating_mul(std::mem::replace(&mut phase.rounds, 1)).min(u64::MAX - 1);
        }
        Ok(thread)
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.phases.iter().flat_map(|phase| &phase.events)
    }

    /// Whether who wakes whom cannot be told by the names: it waits on several, or meets others at a barrier, or wakes one of several.
    fn is_settled_by_a_run(&self, waiters: &Waiters<'_>) -> bool {
        let names: BTreeSet<&str> = self.events().filter_map(Event::waits_on).collect();
        let one_of_several = |event: &Event| match event {
            Event::Wake { name, all: false, .. } => {
                let all = waiters.get(name.as_str()).map_or(0, Vec::len);
                // Its own copies may be none.
                all.saturating_sub(usize::from(names.contains(name.as_str()))) > 1
            }
            _ => false,
        };
        names.len() > 1 || self.events().any(|event| event.barrier().is_some() || one_of_several(event))
    }

    /// One of its copies, which is task number `id`, with the steps that it had in the reference run.
    fn settled_task(&self, steps: Vec<Step>, id: u32, global: &Global) -> Task {
        let rounds = u64::from(!steps.is_empty());
        self.task_of(steps, id, global, rounds, u64::MAX)
    }

    /// One of its copies, which is task number `id`.
    fn task(
        &self,
        id: u32,
        global: &Global,
        waiters: &Waiters<'_>,
        left: &mut usize,
    ) -> Result<Task, String> {
        let mut steps = Vec::new();
        for phase in &self.phases {
            let mut once = Vec::new();
            for event in &phase.events {
                event.steps(id, global.reference_khz, waiters, &mut once)?;
                // Before they are many: an event that wakes all may stand there often.
                if once.len() > *left {
                    return Err(too_many());
                }
            }
            // Events without a step are gone through, too.
            let length = once.len().max(phase.events.len()).max(1);
            let all = usize::try_from(phase.rounds).unwrap_or(usize::MAX).saturating_mul(length);
            *left = left.checked_sub(all).ok_or_else(too_many)?;
            (0..if once.is_empty() { 0 } else { phase.rounds }).for_each(|_| steps.extend_from_slice(&once));
        }
        balanced(&steps)?;
        let mut rounds = self.rounds.unwrap_or(u64::MAX);
        // A task that waits for others cannot tell how long a round takes.
        let waits = self.events().any(|event| event.waits_on().is_some());
        let until_ns = if waits { u64::MAX } else { global.duration_ns };
        if rounds == u64::MAX && until_ns == u64::MAX && !waits {
            return Err("never ends; expected a loop of the task or a duration in global".into());
        }
        if until_ns != u64::MAX && cut(&mut steps, self.start_ns, until_ns, global.reference_khz) {
            rounds = rounds.min(1);
        }
        let takes_time = |s: &Step| {
            matches!(s, Step::Run(d) | Step::Sleep(d) if d.max() > 0) || matches!(s, Step::Period(_))
        };
        if !steps.iter().any(takes_time) {
            return Err("a round takes no time; expected a run, a sleep or a timer".into());
        }
        Ok(self.task_of(steps, id, global, rounds, until_ns))
    }

    fn task_of(&self, steps: Vec<Step>, id: u32, global: &Global, rounds: u64, until_ns: u64) -> Task {
        let pattern = Pattern {
            steps,
            start: Dist::Fixed(self.start_ns),
            rounds,
            until_ns,
            seed: u64::from(id) + 1,
            reference_khz: global.reference_khz,
            memory_share: SCRIPTED.written_share(),
        };
        Task {
            nice: self.priority.nice,
            realtime: self.priority.realtime,
            affinity: self.priority.cpus.clone().map(Affinity::Cpus),
            ends: self.rounds.is_some(),
            ..Task::new(self.name.clone(), Program::Pattern(pattern))
        }
    }
}

/// `loop`: `Some(None)` is for ever.
fn rounds(members: &Members) -> Result<Option<Option<u64>>, String> {
    match whole(members, "loop", -1..=i64::MAX)? {
        None => Ok(None),
        Some(-1) => Ok(Some(None)),
        Some(0) => Err("'loop': expected 1 or more, or -1 for ever".into()),
        Some(n) => Ok(Some(Some(n as u64))),
    }
}

/// Reads the events of a task, phase by phase.
struct EventReader<'a> {
    thread: &'a str,
    count: u64,
    names: &'a mut Names,
    timer: Option<String>,
}

impl EventReader<'_> {
    /// The events of an object; `more`: keys that it may have beside those of any phase.
    fn events(&mut self, members: &Members, more: &[&str]) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        for (key, value) in members {
            if more.contains(&key.as_str()) || OF_PHASE.contains(&key.as_str()) {
                continue;
            }
            let kind = EVENTS.iter().find(|(event, _)| key.starts_with(event));
            let Some((kind, _)) = kind.filter(|(_, is_read)| *is_read) else {
                let read: Vec<_> = EVENTS.iter().filter(|e| e.1).map(|e| e.0).collect();
                return Err(format!(
                    "'{key}': not among what wattwise can replay; expected {}",
                    read.join(", ")
                ));
            };
            self.event(kind, key, value, &mut events).map_err(|what| format!("'{key}': {what}"))?;
        }
        Ok(events)
    }

    fn event(&mut self, kind: &str, key: &str, value: &Json, events: &mut Vec<Event>) -> Result<(), String> {
        let us = || match value {
            Json::Whole(us) if (0..=MOST_US).contains(us) => Ok(*us as u64),
            _ => Err(format!("expected a whole number of us, 0 to {MOST_US}")),
        };
        let named = || match value {
            // workgen puts the task's name there.
            Json::Text(name) if name.is_empty() => Ok(self.thread.to_owned()),
            Json::Text(name) => Ok(name.clone()),
            _ => Err("expected a name".to_owned()),
        };
        let wake = |name: String, all| Event::Wake { name, all, key: key.to_owned() };
        let event = match kind {
            "run" | "runtime" => Event::Run(us()?),
            "sleep" => Event::Sleep(us()?),
            "timer" => self.timer(value)?,
            "lock" => Event::Lock(self.names.lock(&named()?)),
            "unlock" => Event::Unlock(self.names.lock(&named()?)),
            "resume" | "broad" => wake(named()?, true),
            "signal" => wake(named()?, false),
            "suspend" => Event::Wait { name: named()?, mutex: None },
            "barrier" => Event::Barrier(named()?),
            _ => {
                let text = |key| match value {
                    Json::Object(members) => match get(members, key) {
                        Some(Json::Text(text)) => Some(text.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let (Some(name), Some(mutex)) = (text("ref"), text("mutex")) else {
                    return Err("expected { \"ref\": NAME, \"mutex\": NAME }".into());
                };
                if kind == "sync" {
                    events.push(wake(name.clone(), false));
                }
                Event::Wait { name, mutex: Some(self.names.lock(&mutex)) }
            }
        };
        events.push(event);
        Ok(())
    }

    fn timer(&mut self, value: &Json) -> Result<Event, String> {
        let Json::Object(members) = value else {
            return Err("expected { \"ref\": NAME, \"period\": US }".into());
        };
        let name = match get(members, "ref") {
            Some(Json::Text(name)) => name.clone(),
            None => String::new(),
            Some(_) => return Err("ref: expected a name".into()),
        };
        match &self.timer {
            Some(other) if *other != name => {
                return Err(format!("ref '{name}', and elsewhere '{other}'; expected one timer a task"));
            }
            Some(_) => {}
            None => {
                let own = name.starts_with("unique");
                if !own && (self.count > 1 || !self.names.timers.insert(name.clone())) {
                    return Err(format!(
                        "ref '{name}' is shared with other threads; expected one that begins with \"unique\""
                    ));
                }
                self.timer = Some(name);
            }
        }
        let period = whole(members, "period", 1..=MOST_US)?.ok_or("expected a period in us")?;
        Ok(Event::Timer(period as u64))
    }
}

#[cfg(test)]
mod tests;
