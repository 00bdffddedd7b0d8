//! What a replay gives back: times, energies, latencies, and a timeline of bounded size.

pub use crate::tasks::work::{Episode, EpisodeRuns, Period, WorkOutcome};
use wattwise_figure::Histogram;

/// The state of a replay's accounts at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Virtual time since the start, in ns.
    pub elapsed_ns: u64,
    /// Energy by part.
    pub energy: Energy,
    /// One entry a CPU.
    pub cpus: Vec<CpuTimes>,
    /// Time of each core as a whole in each of its kind's C-states, in ns, shallowest first: its shallowest thread's.
    pub cores: Vec<Vec<u64>>,
    /// Time in each package state, in ns: `packages[p][0]` awake, then the package's idle states.
    pub packages: Vec<Vec<u64>>,
    /// `(kHz, ns)` of the memory at each of its clocks, fastest first; empty where the kernel sets none.
    pub memory: Vec<(u32, u64)>,
    /// Time from a task's becoming runnable to its running, C-state exit included.
    pub wake_latency: Histogram,
    /// Changes of speed carried out, over all domains.
    pub transitions: u64,
    /// Wake-ups of tasks.
    pub wakeups: u64,
    /// C-state exits.
    pub idle_exits: u64,
    /// Tasks moved between CPUs.
    pub migrations: u64,
    /// Decisions of the speed policy.
    pub decisions: u64,
    /// Cycles of the workload's own work carried out (reference kind of core).
    pub cycles: f64,
    /// Hottest package temperature, in degrees Celsius.
    pub peak_c: f64,
    /// Events that the engine handled.
    pub events: u64,
    /// The work's progress; empty unless [`Setup::follow_work`](crate::Setup::follow_work) is set.
    pub work: WorkOutcome,
}

/// Joules, by where they went. The total is the sum of the parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    /// Cores while executing.
    pub busy_j: f64,
    /// Cores awake without executing: transitions and C-state entry and exit.
    pub stall_j: f64,
    /// Cores in each C-state, by name, over all kinds of core.
    pub idle_j: Vec<(String, f64)>,
    /// What cores draw more since they are hotter than the temperature that the model's watts are for; less than 0 where they
    /// are cooler. 0 on machines whose file has no coefficient.
    pub leakage_j: f64,
    /// Packages beside their cores.
    pub uncore_j: f64,
    /// The memory, where the machine's file knows its watts apart; else it is of the platform.
    pub memory_j: f64,
    /// Everything else outside the packages.
    pub platform_j: f64,
    /// Each package with its cores.
    pub package_j: Vec<f64>,
}

impl Energy {
    /// The sum of the parts.
    pub fn total_j(&self) -> f64 {
        self.busy_j
            + self.stall_j
            + self.idle_j.iter().map(|(_, j)| j).sum::<f64>()
            + self.leakage_j
            + self.uncore_j
            + self.memory_j
            + self.platform_j
    }
}

/// Where one CPU's time went; the sum is the elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTimes {
    /// `(kHz, ns)` awake (busy or stalled) at each level, fastest first.
    pub speed: Vec<(u32, u64)>,
    /// `(name, ns)` in each C-state, shallowest first.
    pub idle: Vec<(String, u64)>,
    /// Of the time awake, executing.
    pub busy_ns: u64,
    /// Of the time awake, not executing.
    pub stall_ns: u64,
}

/// Speed, state and power over time in at most [`Timeline::MAX_BINS`] bins of equal length; when a
/// run outgrows them, neighbours merge and the bins become twice as long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Length of a bin in ns.
    pub bin_ns: u64,
    /// Mean power of the whole machine in each bin, in watts.
    pub power_w: Vec<f32>,
    /// One lane a CPU.
    pub lanes: Vec<Lane>,
}

impl Timeline {
    /// Greatest number of bins.
    pub const MAX_BINS: usize = 4096;
}

/// One CPU over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Speed of the CPU's domain, mean over each bin, in kHz.
    pub khz: Vec<u32>,
    /// Share of each bin that the CPU was awake, 0 to 1.
    pub awake: Vec<f32>,
    /// Mean depth of the C-state (index, 0 the shallowest) over the idle part of each bin; NaN where it never idled.
    pub depth: Vec<f32>,
}
