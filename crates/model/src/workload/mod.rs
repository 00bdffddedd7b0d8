//! Workloads: what tasks want of a machine, free of how fast any machine was.
//!
//! A task is a program of [`Op`]s. Work is counted in cycles plus time that does not scale with the
//! clock (memory); a block is a timer, an I/O or another task's wake-up. The last is an *edge*:
//! the replayed waiter cannot go on before the replayed waker has come as far as it had in life,
//! so slowness spreads from task to task as it would.

pub mod file;
pub mod pattern;
pub mod script;

pub use pattern::{Dist, Pattern, Step};
pub use script::{Script, ScriptBuilder, ScriptPosition, ScriptReader};

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
    /// CPUs of the recording machine; `None` for generated work.
    pub recorded: Option<Recorded>,
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
    /// Whatever could not be used, a sentence each.
    pub warnings: Vec<String>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name (`comm`).
    pub name: String,
    /// Nice level, -20 to 19; real-time tasks are [`Task::realtime`].
    pub nice: i8,
    /// Runs before every other task.
    pub realtime: bool,
    /// Started within the run: the scheduler credits it with a new task's load. Otherwise it is older and
    /// has slept.
    pub born: bool,
    /// What it does.
    pub program: Program,
}

/// Where a task's steps come from.
#[derive(Clone, Debug)]
pub enum Program {
    /// A recorded list.
    Recorded(Script),
    /// A rule that makes them up as it goes.
    Pattern(Pattern),
}
