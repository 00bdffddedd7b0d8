//! Workloads: what tasks want of a machine, free of how fast any machine was.
//!
//! A task is a program of [`Op`]s. Work is counted in cycles plus time that does not scale with the
//! clock (memory); a block is a timer, an I/O or another task's wake-up. The last is an *edge*:
//! the replayed waiter cannot go on before the replayed waker has come as far as it had in life,
//! so slowness spreads from task to task as it would.

pub mod affinity;
pub mod episodes;
pub mod file;
pub mod generate;
pub mod pattern;
pub mod replica;
pub mod rtapp;
pub mod script;
pub mod scripted;

pub use affinity::Affinity;
pub use episodes::{EpisodeLabels, EpisodeName};
pub use pattern::{Dist, Pattern, Step};
pub use script::{Script, ScriptBuilder, ScriptPosition, ScriptReader};
pub use scripted::{Known, Scripted};
use std::sync::Arc;
use wattwise_figure::one_line;

/// A task's number in its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// One step of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Computes: `cycles` scale with the clock, `stall_ns` (memory) does not; both are spread evenly over the step.
    Run {
        /// Cycles of the machine's reference kind of core.
        cycles: u64,
        /// Time that no clock shortens, in ns.
        stall_ns: u64,
    },
    /// Sleeps on a timer for so long from now, in ns.
    SleepFor(u64),
    /// Sleeps on a timer until this time since the workload's start, in ns; a time gone by does not block.
    SleepUntil(u64),
    /// Waits for a device, for so long from now, in ns; as [`Op::SleepFor`], but counted as I/O and unknown to idle policies.
    Io(u64),
    /// Blocks until woken once by another task. A wake-up that came first is not lost: each wake ends exactly one block.
    Block,
    /// Wakes a task.
    Wake(TaskId),
    /// The recorded scheduler put the task on a CPU: where, and when.
    OnCpu {
        /// The CPU.
        cpu: u16,
        /// Time since the recording's start, in ns.
        at_ns: u64,
    },
    /// Takes a lock, and blocks while another task has it.
    Lock(u32),
    /// Gives a lock back and wakes whoever has waited longest, who must then win it against all comers.
    Unlock(u32),
}

/// Everything that runs.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name, for reports.
    pub name: String,
    /// Where it comes from, in words: a recording's file and origin, or a generator and its parameters.
    pub source: String,
    /// The tasks; a [`TaskId`] is an index here.
    pub tasks: Vec<Task>,
    /// Jobs in each shared counter of [`Step::Take`].
    pub jobs: Vec<u64>,
    /// Number of locks of [`Op::Lock`].
    pub locks: u32,
    /// What is known of the recording; `None` for generated work.
    pub recorded: Option<Recorded>,
    /// What a workload file says of how its work's time comes about; `None` where the programs hold all of it.
    pub scripted: Option<Scripted>,
    /// To which episode each run of a recording belongs, once it has been found ([`Workload::label_episodes`]).
    pub episodes: Option<Arc<EpisodeLabels>>,
    /// When the foreground is released, in ns since the start: a recorded command's exec, a generated task's first run.
    pub release_ns: u64,
    /// Least length of a run in ns: a recording's own length, idle tail included; generators: when they stop starting new work.
    pub span_ns: u64,
}

/// What is known of the machine on which a workload was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Number of CPUs.
    pub cpus: u16,
    /// Clock that its cycles were counted with, in kHz, where no cpu_frequency event says otherwise.
    pub khz: u32,
    /// Trace events read.
    pub events: u64,
    /// Events that the recording had lost.
    pub lost: u64,
    /// Busy time of each CPU as recorded, in ns.
    pub busy_ns: Vec<u64>,
    /// How [`Recorded::khz`] is known.
    pub clock: ClockOrigin,
    /// How the share of run time that no clock shortens is known.
    pub memory: MemoryShare,
    /// How the foreground is known.
    pub foreground: ForegroundOrigin,
    /// The processor's name, where the recording has it.
    pub cpu_name: Option<String>,
    /// How much of the recorded time other programs had.
    pub strangers: Strangers,
    /// Time that the machine was suspended, in ns: it is in no other figure here.
    pub suspended_ns: u64,
    /// What that time is to be charged with in a comparison, in W; `None`: with nothing.
    pub suspended_w: Option<f64>,
    /// Whatever could not be used, a sentence each.
    pub warnings: Vec<String>,
}

impl Recorded {
    /// A recording on so many CPUs at this clock, of which nothing else is known.
    pub fn new(cpus: u16, khz: u32) -> Recorded {
        Recorded {
            cpus,
            khz,
            events: 0,
            lost: 0,
            busy_ns: vec![0; usize::from(cpus)],
            clock: ClockOrigin::Unknown,
            memory: MemoryShare::Unknown,
            foreground: ForegroundOrigin::Unmarked,
            cpu_name: None,
            strangers: Strangers::default(),
            suspended_ns: 0,
            suspended_w: None,
            warnings: Vec::new(),
        }
    }

    /// Energy of the time that the machine was suspended, as far as it is to be charged.
    pub fn suspended_j(&self) -> f64 {
        self.suspended_w.unwrap_or(0.0) * self.suspended_ns as f64 * 1e-9
    }
}

/// CPU time of programs that are neither the foreground nor the kernel nor the recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Their time, in ns.
    pub busy_ns: u64,
    /// Everybody's time, in ns.
    pub all_ns: u64,
    /// The name of those with the most time, and that time in ns.
    pub greatest: Option<(String, u64)>,
}

impl Strangers {
    /// Their share of all busy time, 0 to 1.
    pub fn share(&self) -> f64 {
        self.busy_ns as f64 / self.all_ns.max(1) as f64
    }
}

/// How the clock of a recording is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOrigin {
    /// The user said it (`--recorded-khz`).
    Stated,
    /// The recorder counted cycles, or measured the clock while it recorded.
    Measured,
    /// `cpu_frequency` events tell every change.
    Events,
    /// The processor's description gives a range, in kHz: from its base clock to its highest.
    Described {
        /// The base clock.
        base_khz: u32,
        /// The highest clock.
        top_khz: u32,
    },
    /// Nothing tells it: such work cannot be ranked.
    Unknown,
}

/// How the memory-bound share of a recording's run time is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryShare {
    /// The user said it; the programs hold it.
    Stated(f64),
    /// From performance counters; the programs hold it.
    Counted,
    /// Nothing tells it; the programs hold none, and a replay draws it.
    Unknown,
}

/// How a recording's foreground is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForegroundOrigin {
    /// It is the process tree of the recorded command.
    Command {
        /// The command's name.
        name: String,
    },
    /// The user named it (`--foreground`).
    Named(String),
    /// A replay that was written down names it.
    Replayed,
    /// Nothing tells it: all tasks count as foreground, and none as ending.
    Unmarked,
}

/// Whether a task's completion is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the work, or answers for it.
    Foreground,
    /// It goes on beside the work for as long as somebody looks.
    Background,
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name (`comm`).
    pub name: String,
    /// Nice level, -20 to 19; real-time tasks are [`Task::realtime`].
    pub nice: i8,
    /// Runs before every other task.
    pub realtime: bool,
    /// The CPUs that it may use; any where nothing says. The placement `fifo`, one queue for all CPUs, does not heed it.
    pub affinity: Option<Affinity>,
    /// Started within the run: the scheduler credits it with a new task's load. Otherwise it is older and
    /// has slept.
    pub born: bool,
    /// Not there before its first wake-up, which starts it, as a shell starts a program: its first step is to wait for it, and
    /// takes no CPU. (A recorded task whose first step is to wait is always so.)
    pub forked: bool,
    /// Whether it is the work.
    pub role: Role,
    /// Its program has an end of its own. A server that waits for the next request has none.
    pub ends: bool,
    /// A recorded task that goes through its program again when the recording's span is over.
    ///
    /// At the end of its program it waits until the next multiple of [`Workload::span_ns`], and goes
    /// through it again with each [`Op::SleepUntil`] that much later. Its program has no last
    /// [`Op::Block`] that nobody ends, and a task that ended in the recording starts over like the
    /// others. Whom it wakes, and who wakes it, repeats too: so each pass has a wake for every block.
    pub repeats: bool,
    /// Longest response time that it tolerates, in ns.
    pub deadline_ns: Option<u64>,
    /// What it does.
    pub program: Program,
}

impl Task {
    /// A foreground task that is started within the run, of nice level 0, and ends.
    pub fn new(name: impl Into<String>, program: Program) -> Task {
        Task {
            name: one_line(&name.into()),
            nice: 0,
            realtime: false,
            affinity: None,
            born: true,
            forked: false,
            role: Role::Foreground,
            ends: true,
            repeats: false,
            deadline_ns: None,
            program,
        }
    }

    /// Whether it is the work.
    pub fn is_foreground(&self) -> bool {
        self.role == Role::Foreground
    }
}

/// Where a task's steps come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// A recorded list.
    Recorded(Script),
    /// A rule that makes them up as it goes.
    Pattern(Pattern),
}

impl Workload {
    /// Generated tasks, without jobs, locks or a recording, released at once.
    pub fn new(
        name: impl Into<String>,
        source: impl Into<String>,
        tasks: Vec<Task>,
        span_ns: u64,
    ) -> Workload {
        Workload {
            name: one_line(&name.into()),
            source: one_line(&source.into()),
            tasks,
            jobs: Vec::new(),
            locks: 0,
            recorded: None,
            scripted: None,
            episodes: None,
            release_ns: 0,
            span_ns,
        }
    }

    /// Whether both are one piece of work, under whatever name and read with whatever options: the same recording, told by what
    /// reading counted in it, or the same tasks made by the same rules.
    pub fn is_same_work(&self, other: &Workload) -> bool {
        let counted = |r: &Recorded| (r.cpus, r.events, r.lost);
        match (&self.recorded, &other.recorded) {
            (Some(a), Some(b)) if a.events > 0 => {
                counted(a) == counted(b) && a.busy_ns == b.busy_ns && self.span_ns == other.span_ns
            }
            (Some(_), None) | (None, Some(_)) => false,
            _ => {
                self.tasks == other.tasks
                    && self.scripted == other.scripted
                    && (&self.jobs, self.locks, self.span_ns) == (&other.jobs, other.locks, other.span_ns)
            }
        }
    }

    /// Whether no foreground task has an end: then response times are judged, for there is no makespan.
    pub fn is_interactive(&self) -> bool {
        !self.tasks.iter().any(|t| t.is_foreground() && t.ends)
    }
}
