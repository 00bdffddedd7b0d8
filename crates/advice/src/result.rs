//! The result of `compare`, as `--json` prints it (schema `docs/schema/compare-1.json`) and the report draws it.
//!
//! SI units, named in the fields. Additive changes keep the schema's number; anything else raises it.

use serde::{Deserialize, Serialize};

/// One workload on one machine under several policies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// `"wattwise-compare-1"`.
    pub schema: String,
    /// The machine's name.
    pub machine: String,
    /// The work.
    pub workload: WorkloadInfo,
    /// The equal window over which [`PolicyResult::window_energy_j`] is charged: the longest run.
    pub window_s: f64,
    /// One entry a policy, in the order asked.
    pub results: Vec<PolicyResult>,
    /// The winner.
    pub best: Best,
    /// What went in, and how far each part is to be trusted.
    pub inputs: Inputs,
}

/// The work that was replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkloadInfo {
    /// Its name.
    pub name: String,
    /// Where it comes from, in words.
    pub source: String,
    /// CPUs of the machine it was recorded on; 0 for generated work.
    pub cpus: u16,
    /// Its recorded or generated length.
    pub duration_s: f64,
    /// Trace events, or steps generated under the first policy.
    pub events: u64,
}

/// One policy's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyResult {
    /// The policy as it can be given again to `--policy`.
    pub policy: String,
    /// Time until the last of the work was done.
    pub elapsed_s: f64,
    /// Energy over the run's own duration.
    pub energy_j: f64,
    /// Energy over the window: the rest of it spent idle under the same policy.
    pub window_energy_j: f64,
    /// Mean power over the run's own duration.
    pub mean_w: f64,
    /// Energy-delay product over the run's own duration.
    pub edp_js: f64,
    /// `elapsed_s` over the fastest policy's.
    pub slowdown: f64,
    /// From runnable to running, in microseconds.
    pub wake_latency_us: Latency,
    /// Changes of speed.
    pub transitions: u64,
    /// CPU-seconds awake at each speed.
    pub speed_residency: Vec<SpeedResidency>,
    /// CPU-seconds in each idle state.
    pub idle_residency: Vec<IdleResidency>,
    /// `window_energy_j` by where it went.
    pub window_split_j: Split,
    /// `"modelled"` (this schema's only value so far; `"measured"` will follow).
    pub provenance: String,
}

/// Quantiles of a latency, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// CPU-seconds awake at one speed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SpeedResidency {
    /// The speed.
    pub khz: u32,
    /// CPU-seconds.
    pub s: f64,
}

/// CPU-seconds in one idle state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdleResidency {
    /// The state's name.
    pub state: String,
    /// CPU-seconds.
    pub s: f64,
}

/// Energy by part; sums to the total.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Split {
    /// Cores executing.
    pub busy_j: f64,
    /// Cores awake without executing.
    pub stall_j: f64,
    /// Cores in each C-state.
    pub idle_j: Vec<(String, f64)>,
    /// Packages beside their cores.
    pub uncore_j: f64,
    /// The rest of the machine.
    pub platform_j: f64,
}

/// The winner and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Best {
    /// Its [`PolicyResult::policy`].
    pub policy: String,
    /// The rule and the figures that decided, in words.
    pub why: String,
}

/// What went in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inputs {
    /// The machine in one line.
    pub machine_summary: String,
    /// Each figure of the machine model: path, source, confidence (`datasheet`, `measured`, `fitted`, `guess`, ...).
    pub machine_figures: Vec<InputFigure>,
    /// Idle policy where a policy does not name its own.
    pub idle_policy: String,
    /// What could not be used or had to be assumed, a sentence each.
    pub warnings: Vec<String>,
    /// Version of wattwise.
    pub version: String,
}

/// One figure's origin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputFigure {
    /// Path in the machine file.
    pub what: String,
    /// Its source.
    pub source: String,
    /// How it was obtained.
    pub confidence: String,
}
