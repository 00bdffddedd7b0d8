//! Which tasks are the work, and which only happened to run beside it.
//!
//! # The foreground
//!
//! | what is known | foreground | it ends |
//! |---|---|---|
//! | tasks that the user named | these and their descendants | where all of them exited |
//! | the recorded command | its process and its descendants, from its exec to its exit | where it exited |
//! | neither | every task of a program (no kernel threads) | never: response times are judged |
//!
//! A descendant that lives on when the foreground is over (a daemon that the command started) is background.
//!
//! The command is found by its process id, which our recorder notes in the file (see `notes`). Files
//! without it are asked for the first exec of a task that still has a recorder's name: `wattwise` (our
//! own older recordings), `perf-exec` (how perf calls its child) or `trace-cmd`. A command called
//! `sleep` marks nothing: `perf record -a sleep 10` is how one records a machine for ten seconds.
//!
//! # Repetition
//!
//! Background work goes on for as long as somebody looks, so it is gone through again and again. Tasks
//! that wake each other belong together: if one of them repeats, all must, or a block would have no
//! wake. Union-find over the wake-ups gives these components; one with a foreground task in it does not
//! repeat.

mod others;

use crate::error::TraceError;
use crate::events::{Comm, Comms};
use crate::notes::Notes;
use crate::options::ImportOptions;
use std::collections::{HashMap, HashSet};
use wattwise_figure::nearest;
use wattwise_model::workload::{ForegroundOrigin, Role, Strangers};

/// Names of a recorder's child before its exec. They are the recorders' own names too.
const RECORDERS: [&str; 4] = ["wattwise", "perf-exec", "trace-cmd", "perf"];

/// A command of this name only says how long to record.
const TIMER: &str = "sleep";

/// The father of all kernel threads.
const KTHREADD: (u32, &str) = (2, "kthreadd");

/// How kernel threads' names begin, for recordings that do not tell whose children they are.
const KERNEL_NAMES: [&str; 21] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu_",
    "rcuo",
    "rcub/",
    "rcuc/",
    "cpuhp/",
    "irq/",
    "idle_inject/",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "khungtaskd",
    "kauditd",
    "kthreadd",
    "kdamond",
    "watchdog",
    "jbd2/",
    "xfsaild/",
    "card0-crtc",
];

/// Who started a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskNode {
    /// One that the lifter keeps, by its number.
    Task(u32),
    /// One that is older than the recording, by its thread id.
    Tid(u32),
}

/// A task older than the recording, as the file lists them before all events.
#[derive(Clone, Copy, Debug, Default)]
struct Old {
    comm: Comm,
    pid: u32,
    parent: Option<u32>,
}

/// A task's relations.
#[derive(Clone, Copy, Debug)]
struct Kin {
    tid: u32,
    /// Its process; 0 where that is not known.
    pid: u32,
    parent: Option<TaskNode>,
    /// When it was forked; `None`: before the recording.
    born_at: Option<u64>,
    exited_at: Option<u64>,
    /// It had one of the names that the user gave.
    named: bool,
    busy_ns: u64,
    /// Union-find: another task of its component, or itself.
    joined: u32,
}

/// The recorded command.
#[derive(Clone, Copy, Debug)]
struct RecordedCommand {
    task: u32,
    comm: Comm,
    at: u64,
}

/// Collects relations while the events pass.
#[derive(Debug)]
pub(super) struct Roles<'o> {
    options: &'o ImportOptions,
    kin: Vec<Kin>,
    old: HashMap<u32, Old>,
    names: HashSet<Comm>,
    /// The command's process id, if the recorder noted it.
    noted: Option<u32>,
    /// The foreground's threads of a replay that was written down.
    replayed: Vec<u32>,
    /// The recorder stopped the command.
    stopped: bool,
    command: Option<RecordedCommand>,
}

/// What became of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) role: Role,
    pub(super) ends: bool,
    pub(super) repeats: bool,
    /// Another program's, not the recorder's: `--only-foreground` leaves it out.
    pub(super) stranger: bool,
}

/// The roles of all tasks.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) fates: Vec<Fate>,
    pub(super) origin: ForegroundOrigin,
    /// On the recording's clock; `None`: its start.
    pub(super) release: Option<u64>,
    pub(super) strangers: Strangers,
    pub(super) warnings: Vec<String>,
    /// Which tasks are the recorder's own.
    recorder: Vec<bool>,
}

impl<'o> Roles<'o> {
    pub(super) fn new(options: &'o ImportOptions) -> Roles<'o> {
        Roles {
            options,
            kin: Vec::new(),
            old: HashMap::new(),
            names: HashSet::new(),
            noted: None,
            replayed: Vec::new(),
            stopped: false,
            command: None,
        }
    }

    /// What the recorder noted of the command.
    pub(super) fn note(&mut self, notes: &Notes) {
        (self.noted, self.stopped) = (notes.command, notes.stopped);
        self.replayed.clone_from(&notes.foreground);
    }

    /// Whether a thread is the command's before its exec: still the recorder's own code.
    pub(super) fn is_held(&self, tid: u32) -> bool {
        self.noted == Some(tid) && self.command.is_none()
    }

    /// The name of a task that is older than the recording.
    pub(super) fn old_name(&mut self, tid: u32, pid: u32, comm: Comm) {
        let old = self.old.entry(tid).or_default();
        (old.pid, old.comm) = (pid, comm);
    }

    /// Who started a task that is older than the recording.
    pub(super) fn old_parent(&mut self, parent: u32, child: u32, pid: u32) {
        let old = self.old.entry(child).or_default();
        (old.pid, old.parent) = (pid, Some(parent));
    }

    /// The lifter's next task.
    pub(super) fn add(&mut self, tid: u32) {
        let old = self.old.get(&tid);
        self.kin.push(Kin {
            tid,
            pid: old.map_or(0, |o| o.pid),
            parent: old.and_then(|o| o.parent).map(TaskNode::Tid),
            born_at: None,
            exited_at: None,
            named: false,
            busy_ns: 0,
            joined: self.kin.len() as u32,
        });
    }

    /// The name that a task older than the recording had at its beginning.
    pub(super) fn first_name(&self, tid: u32) -> Option<Comm> {
        self.old.get(&tid).map(|o| o.comm)
    }

    /// Whether this fork has already been told by another record.
    pub(super) fn is_fork_of(&self, child: u32, parent: Option<u32>) -> bool {
        let kin = &self.kin[child as usize];
        kin.born_at.is_some() && kin.parent == parent.map(TaskNode::Task)
    }

    pub(super) fn forked(&mut self, parent: Option<u32>, child: u32, at: u64) {
        let kin = &mut self.kin[child as usize];
        kin.parent = parent.map(TaskNode::Task);
        kin.born_at = Some(at);
        // Until it is told that it is another's thread.
        kin.pid = kin.tid;
    }

    pub(super) fn process(&mut self, task: u32, pid: u32) {
        if pid > 0 {
            self.kin[task as usize].pid = pid;
        }
    }

    pub(super) fn named(&mut self, task: u32, comm: Comm, comms: &Comms) {
        let name = comms.name(comm);
        self.names.insert(comm);
        self.kin[task as usize].named |= self.options.foreground.iter().any(|f| f == name);
    }

    /// A task begins to run another program.
    pub(super) fn execs(&mut self, task: u32, before: Comm, comm: Comm, at: u64, comms: &Comms) {
        let is_command = match self.noted {
            Some(pid) => self.kin[task as usize].tid == pid,
            None => RECORDERS[..3].contains(&comms.name(before)) && !RECORDERS.contains(&comms.name(comm)),
        };
        if is_command && self.command.is_none() {
            self.command = Some(RecordedCommand { task, comm, at });
        }
    }

    pub(super) fn exited(&mut self, task: u32, at: u64) {
        self.kin[task as usize].exited_at.get_or_insert(at);
    }

    pub(super) fn has_exited(&self, task: u32) -> bool {
        self.kin[task as usize].exited_at.is_some()
    }

    pub(super) fn ran(&mut self, task: u32, ns: u64) {
        let kin = &mut self.kin[task as usize];
        kin.busy_ns = kin.busy_ns.saturating_add(ns);
    }

    /// One of the two wakes the other.
    pub(super) fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.component(a), self.component(b));
        self.kin[a as usize].joined = b;
    }

    fn component(&mut self, mut task: u32) -> u32 {
        loop {
            let next = self.kin[task as usize].joined;
            if next == task {
                return task;
            }
            // Halves the way for whoever comes next.
            let after = self.kin[next as usize].joined;
            self.kin[task as usize].joined = after;
            task = after;
        }
    }

    /// Everybody's role, at the end of all events. `names` are the tasks' last names; `file` is for errors.
    pub(super) fn cast(mut self, names: &[Comm], comms: &Comms, file: &str) -> Result<Cast, TraceError> {
        let kernel = self.kernel(names, comms);
        let mut cast = if !self.options.foreground.is_empty() {
            self.by_name(comms, file)?
        } else if !self.replayed.is_empty() {
            let roots: HashSet<u32> = self.replayed.iter().copied().collect();
            let is = |node: TaskNode| matches!(node, TaskNode::Task(t) if roots.contains(&self.kin[t as usize].tid));
            self.descended(is, ForegroundOrigin::Replayed)
        } else if let Some(command) = self.command.filter(|c| comms.name(c.comm) != TIMER) {
            self.by_command(command, comms)
        } else if let (Some(pid), None) = (self.noted, self.command) {
            let what = format!("the recorded command (process {pid}) was not seen to start");
            return Err(TraceError::NoForeground { name: file.into(), what });
        } else {
            self.unmarked(&kernel)
        };
        let is_work = |f: &Fate| f.role == Role::Foreground;
        if cast.origin != ForegroundOrigin::Unmarked
            && !self.kin.iter().zip(&cast.fates).any(|(k, f)| is_work(f) && k.busy_ns > 0)
        {
            let what = match &cast.origin {
                ForegroundOrigin::Named(given) => format!("--foreground {given}: these tasks never ran"),
                _ => "the recorded command never ran".into(),
            };
            return Err(TraceError::NoForeground { name: file.into(), what });
        }
        let recorder = self.recorder(names, comms);
        for (task, (kernel, recorder)) in kernel.iter().zip(recorder).enumerate() {
            cast.fates[task].stranger = !is_work(&cast.fates[task]) && !kernel;
            cast.recorder.push(recorder);
        }
        self.repetition(&mut cast.fates);
        cast.strangers = self.strangers(&cast, names, comms);
        if let Some(warning) = others::crowded(&cast.strangers) {
            cast.warnings.push(warning);
        }
        Ok(cast)
    }

    /// The tasks for which `is` holds, and all their descendants.
    fn with_descendants(&self, is: impl Fn(TaskNode) -> bool) -> Vec<bool> {
        // Tasks that are older than the recording are found by thread id, with a task of ours or without.
        let tasks = self.kin.len();
        let mut by_tid: HashMap<u32, usize> =
            self.old.keys().enumerate().map(|(i, tid)| (*tid, tasks + i)).collect();
        let olds: Vec<u32> = self.old.keys().copied().collect();
        by_tid.extend(
            self.kin.iter().enumerate().filter(|(_, k)| k.born_at.is_none()).map(|(i, k)| (k.tid, i)),
        );
        let node = |i: usize| match i.checked_sub(tasks) {
            None => TaskNode::Task(i as u32),
            Some(old) => TaskNode::Tid(olds[old]),
        };
        let up = |i: usize| {
            let parent = match node(i) {
                TaskNode::Task(t) => self.kin[t as usize].parent,
                TaskNode::Tid(t) => self.old.get(&t).and_then(|o| o.parent).map(TaskNode::Tid),
            };
            match parent? {
                TaskNode::Task(t) => Some(t as usize),
                TaskNode::Tid(t) => by_tid.get(&t).copied(),
            }
        };
        let mut known: Vec<Option<bool>> = vec![None; tasks + olds.len()];
        let mut way = Vec::new();
        for task in 0..tasks {
            let mut at = Some(task);
            let found = loop {
                let Some(i) = at else { break false };
                if let Some(found) = known[i] {
                    break found;
                }
                // For now: in a damaged file a task may descend from itself.
                known[i] = Some(false);
                way.push(i);
                if is(node(i)) {
                    break true;
                }
                at = up(i);
            };
            way.drain(..).for_each(|i| known[i] = Some(found));
        }
        known.into_iter().take(tasks).map(|k| k == Some(true)).collect()
    }

    fn kernel(&self, names: &[Comm], comms: &Comms) -> Vec<bool> {
        let is_father = |comm: Comm| comms.name(comm) == KTHREADD.1;
        let children = self.with_descendants(|node| match node {
            TaskNode::Task(t) => self.kin[t as usize].tid == KTHREADD.0 && is_father(names[t as usize]),
            TaskNode::Tid(t) => t == KTHREADD.0 && self.old.get(&t).is_some_and(|o| is_father(o.comm)),
        });
        let by_name = |comm: Comm| KERNEL_NAMES.iter().any(|n| comms.name(comm).starts_with(n));
        let unsure = |k: &Kin| k.parent.is_none();
        let all = self.kin.iter().zip(names).zip(children);
        all.map(|((kin, comm), child)| child || (unsure(kin) && by_name(*comm))).collect()
    }

    /// The tasks that `--foreground` names.
    fn by_name(&self, comms: &Comms, file: &str) -> Result<Cast, TraceError> {
        let given = &self.options.foreground;
        let ids: Vec<u32> = given.iter().filter_map(|g| g.parse().ok()).filter(|id| *id > 0).collect();
        let old_name = |o: &Old| given.iter().any(|g| g == comms.name(o.comm));
        let is = |node: TaskNode| match node {
            TaskNode::Task(t) => {
                let k = &self.kin[t as usize];
                let old = k.born_at.is_none() && self.old.get(&k.tid).is_some_and(old_name);
                k.named || old || ids.contains(&k.tid) || ids.contains(&k.pid)
            }
            TaskNode::Tid(t) => {
                ids.contains(&t) || self.old.get(&t).is_some_and(|o| old_name(o) || ids.contains(&o.pid))
            }
        };
        for g in given {
            let id: Option<u32> = g.parse().ok();
            let is_id = |tid: u32, pid: u32| id.is_some_and(|id| id == tid || id == pid);
            let found = self.names.iter().any(|n| comms.name(*n) == g)
                || self.kin.iter().any(|k| is_id(k.tid, k.pid))
                || self.old.iter().any(|(tid, o)| is_id(*tid, o.pid) || comms.name(o.comm) == g);
            if !found {
                let mut names: Vec<&str> = self.names.iter().map(|n| comms.name(*n)).collect();
                names.sort_unstable();
                return Err(TraceError::NoSuchTask {
                    name: file.into(),
                    given: g.clone(),
                    nearest: nearest(g, names),
                });
            }
        }
        Ok(self.descended(is, ForegroundOrigin::Named(given.join(", "))))
    }

    /// The tasks for which `is` holds, and all that they started.
    fn descended(&self, is: impl Fn(TaskNode) -> bool, origin: ForegroundOrigin) -> Cast {
        let inside = self.with_descendants(is);
        let roots: Vec<u32> = (0..self.kin.len() as u32)
            .filter(|&t| inside[t as usize])
            .filter(
                |&t| !matches!(self.kin[t as usize].parent, Some(TaskNode::Task(p)) if inside[p as usize]),
            )
            .collect();
        let (fates, _) = self.tree(&inside, &roots);
        let release = roots.iter().map(|&r| self.kin[r as usize].born_at).min().flatten();
        Cast { release, ..Cast::new(fates, origin) }
    }

    /// The recorded command's tree.
    fn by_command(&self, command: RecordedCommand, comms: &Comms) -> Cast {
        let inside = self.with_descendants(|node| node == TaskNode::Task(command.task));
        let (fates, over) = self.tree(&inside, &[command.task]);
        let name = comms.name(command.comm).to_owned();
        let mut warnings = Vec::new();
        if !over {
            warnings.push(format!(
                "The recording ended before the command ({name}) did: its tasks have no end, so no duration is known."
            ));
        }
        let origin = ForegroundOrigin::Command { name };
        Cast { release: Some(command.at), warnings, ..Cast::new(fates, origin) }
    }

    /// Roles in a tree, and whether all its roots have exited.
    fn tree(&self, inside: &[bool], roots: &[u32]) -> (Vec<Fate>, bool) {
        // A root's other threads are as much of it as the first.
        let processes: HashSet<u32> =
            roots.iter().map(|&r| self.kin[r as usize].pid).filter(|p| *p > 0).collect();
        let mut is_root: Vec<bool> =
            self.kin.iter().zip(inside).map(|(k, inside)| *inside && processes.contains(&k.pid)).collect();
        roots.iter().for_each(|&r| is_root[r as usize] = true);
        // What was stopped did not come to its end.
        let mut over_at = Some(0).filter(|_| !self.stopped || !self.options.foreground.is_empty());
        for (kin, _) in self.kin.iter().zip(is_root).filter(|(_, is)| *is) {
            over_at = over_at.zip(kin.exited_at).map(|(a, b)| a.max(b));
        }
        let fates = self.kin.iter().zip(inside).map(|(kin, inside)| {
            let work = *inside && over_at.is_none_or(|over| kin.exited_at.is_some_and(|at| at <= over));
            Fate {
                role: if work { Role::Foreground } else { Role::Background },
                ends: kin.exited_at.is_some() && (!work || over_at.is_some()),
                repeats: false,
                stranger: false,
            }
        });
        (fates.collect(), over_at.is_some())
    }

    /// All tasks of programs, of which none ends.
    fn unmarked(&self, kernel: &[bool]) -> Cast {
        let fates = self.kin.iter().zip(kernel).map(|(kin, kernel)| Fate {
            role: if *kernel { Role::Background } else { Role::Foreground },
            ends: *kernel && kin.exited_at.is_some(),
            repeats: false,
            stranger: false,
        });
        let mut cast = Cast::new(fates.collect(), ForegroundOrigin::Unmarked);
        if self.command.is_some() {
            cast.warnings.push(
                "The recorded command was `sleep`, so all programs count as the work; name others with --foreground."
                    .into(),
            );
        }
        cast
    }

    fn repetition(&mut self, fates: &mut [Fate]) {
        let components: Vec<u32> = (0..self.kin.len() as u32).map(|t| self.component(t)).collect();
        let mut work = vec![false; fates.len()];
        for (fate, c) in fates.iter().zip(&components) {
            work[*c as usize] |= fate.role == Role::Foreground;
        }
        for (fate, c) in fates.iter_mut().zip(components) {
            fate.repeats = fate.role == Role::Background && !work[c as usize];
        }
    }
}

impl Cast {
    fn new(fates: Vec<Fate>, origin: ForegroundOrigin) -> Cast {
        Cast {
            fates,
            origin,
            release: None,
            strangers: Strangers::default(),
            warnings: Vec::new(),
            recorder: Vec::new(),
        }
    }
}
