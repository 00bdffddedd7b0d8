//! The result of `compare`, as `--json` prints it (schema `docs/schema/compare-3.json`) and the report draws it.
//!
//! SI units, named in the fields. Additive changes keep the schema's number; anything else raises it.

use crate::rule::Goal;
use crate::time::Judged;
use serde::{Deserialize, Serialize};
use wattwise_figure::quantile;
pub use wattwise_responses::{KindResponses, Responses};

/// The schema's name and number.
pub const SCHEMA: &str = "wattwise-compare-3";

/// One workload on one machine under several policies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine's name.
    pub machine: String,
    /// The work.
    pub workload: WorkloadInfo,
    /// What is judged as time, and why.
    pub judged: Judged,
    /// The policy that the others are held against.
    pub reference: String,
    /// Replicas that the intervals rest on; 0: one run of the nominal model.
    pub replicas: u64,
    /// It was stopped (Ctrl-C) before all replicas were done: the answer rests on those that were. Left out where it was not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// Of a comparison that was stopped: the replicas that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_asked: Option<u64>,
    /// What was to be minimised (`--best`); left out where it was the energy over the window. With `own-energy` what is shown is
    /// the energy over each run's own time.
    #[serde(default, skip_serializing_if = "Goal::is_energy")]
    pub goal: Goal,
    /// How much slower than the reference a policy may be, as a share; null: any.
    pub max_slowdown: Option<f64>,
    /// Policies that the limit of time counts from as well ([`crate::rule`]): what is slower than the reference and beyond the limit
    /// against one of these is not chosen. Left out where it counts from the reference alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standards: Vec<String>,
    /// Which of the standards is what the system does unless told otherwise; the others were in force before wattwise changed
    /// something. Left out where it is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_standard: Option<String>,
    /// Length of the window over which energy is charged, from the release of the foreground, in the nominal run.
    pub window_s: f64,
    /// One entry a policy, in the order asked.
    pub results: Vec<PolicyResult>,
    /// What follows.
    pub answer: Answer,
    /// Which uncertain figures decide between the leader and its nearest rival; null where there is no rival.
    pub deciding: Option<Deciding>,
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
    /// Trace events, or wake-ups generated under the reference policy.
    pub events: u64,
    /// Whose completion is judged, in words.
    pub foreground: String,
    /// Share of the cycles under the reference policy that was not the foreground's.
    pub background_share: f64,
    /// How the recording's clock is known, in words; empty for generated work.
    pub clock: String,
    /// How the memory-bound share of run time is known, in words.
    pub memory: String,
    /// Share of the recorded CPU time that other programs had: neither the work, nor the kernel, nor the recorder; null for generated
    /// work.
    #[serde(default)]
    pub others_share: Option<f64>,
}

/// One policy's figures. Those without an interval are of the nominal run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyResult {
    /// The policy as it can be given again to `--policy`.
    pub policy: String,
    /// From the release of the foreground to its end.
    pub elapsed_s: f64,
    /// Energy over that time.
    pub energy_j: f64,
    /// Energy over the window: the rest of it spent under the same policy with the background alone.
    pub window_energy_j: f64,
    /// Of that, what is above the machine without any work.
    pub above_idle_j: f64,
    /// Mean power over the run's own time.
    pub mean_w: f64,
    /// Energy-delay product over the run's own time.
    pub edp_js: f64,
    /// `elapsed_s` over the reference policy's.
    pub slowdown: f64,
    /// Share of deadlines missed, or of periods overrun, of the judged task that misses most, over all replicas.
    pub missed: f64,
    /// From runnable to running, in microseconds.
    pub wake_latency_us: Latency,
    /// Its work was not done by the window's end: its energy is over its own time.
    pub over_own_time: bool,
    /// What the replicas say.
    pub uncertain: Uncertain,
    /// Share of the replicas in which it was within the limit of time.
    pub within_share: f64,
    /// Whether that is enough to be chosen.
    pub admissible: bool,
    /// It was left after so many replicas, on which its figures rest, since it could not be the best; left out where it was
    /// not: its figures rest on [`Comparison::replicas`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raced_out_after: Option<u64>,
    /// Share of the replicas in which it was the best of the admissible ones.
    pub best_share: f64,
    /// Whether it is the best, or cannot be told apart from it.
    pub tied: bool,
    /// Changes of speed.
    pub transitions: u64,
    /// CPU-seconds awake at each speed.
    pub speed_residency: Vec<SpeedResidency>,
    /// CPU-seconds in each idle state.
    pub idle_residency: Vec<IdleResidency>,
    /// Energy over the window by where it went.
    pub window_split_j: Split,
    /// `"modelled"`.
    pub provenance: String,
    /// Why the policy is but an approximation of what hardware does; null where its source is followed.
    pub approximation: Option<String>,
    /// Response times of the foreground that has no end, over all replicas; null where all of it ends.
    pub responses: Option<Responses>,
    /// Response times of the background, over all replicas: shown, not judged.
    pub other_responses: Responses,
    /// What each judged task misses of its deadlines or periods, over all replicas.
    pub missed_by_task: Vec<MissedTask>,
}

/// What one task misses of its deadlines or periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedTask {
    /// The task's name.
    pub task: String,
    /// The share missed.
    pub share: f64,
    /// The share missed under the reference policy.
    pub reference_share: f64,
    /// Whether it misses more than chance explains.
    pub slower: bool,
}

/// A figure over the replicas: its median, and where 90 of 100 of them lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Half of the replicas have no more.
    pub median: f64,
    /// 5 of 100 have less.
    pub low: f64,
    /// 5 of 100 have more.
    pub high: f64,
}

impl Interval {
    /// Of figures by replica.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Interval {
        let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        Interval { median: quantile(&all, 0.5), low: quantile(&all, 0.05), high: quantile(&all, 0.95) }
    }
}

/// What the replicas say of one policy. Where they are other replicas than the reference's ([`PolicyResult::raced_out_after`], and the
/// recommended policy of a search), seconds and joules are the ratios times the reference's medians.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncertain {
    /// What is judged as time: seconds of makespan or of noticed waiting, or a share of deadlines.
    pub time: Interval,
    /// Energy over the window, in joules.
    pub energy_j: Interval,
    /// Energy over the run's own time, in joules.
    pub own_energy_j: Interval,
    /// Time over the reference policy's of the same replica.
    pub time_ratio: Interval,
    /// Energy over the window, over the reference policy's of the same replica.
    pub energy_ratio: Interval,
    /// Energy over the run's own time, over the reference policy's of the same replica.
    pub own_energy_ratio: Interval,
}

/// What follows from the figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The winner, where one is named.
    pub winner: Option<String>,
    /// The policy to use: the winner, or of those that cannot be told apart the reference if it is within 0.5 % of the best, else
    /// of those within 0.25 % one of the fastest, the one that changes least.
    pub recommended: String,
    /// How many policies were tried, where wattwise chose them; null where they were asked for.
    pub tried: Option<u64>,
    /// The recommended policy against the reference; null where that is the reference.
    pub against_reference: Option<AgainstReference>,
    /// Policies that would be better than the recommended one by at least 1 % but are over the limit of time in some of the
    /// replicas, within it in at least half: the best first.
    pub nearly: Vec<Nearly>,
    /// Policies that cannot be told apart from the recommended one.
    pub tied: Vec<String>,
    /// The answer in a sentence or two.
    pub text: String,
    /// The command that puts the recommended policy in force, where there is one.
    pub apply: Option<String>,
    /// What that command lifts of the limits that are in force now, as parts of a policy (`max=1400MHz`); left out where nothing is
    /// lifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<String>,
    /// Why there is none.
    pub why_not: Option<String>,
    /// Why the recommended policy is preferred to those that cannot be told apart from it; not in JSON, so that a result that was
    /// read again has none.
    #[serde(skip)]
    pub preferred: Option<Preferred>,
}

/// Why one policy is recommended before those that cannot be told apart from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preferred {
    /// It leads: no other has less of what is to be small in more of the replicas.
    Leads,
    /// The leader is as good, and slower.
    Faster,
    /// The leader is as good, and no command puts it in force.
    CanBeSet,
    /// The leader is as good, and changes more.
    ChangesLess,
    /// The leader is as good, and has a longer name: more settings, or the same later in the list.
    Simpler,
    /// It is the reference, and close to the leader.
    Reference,
}

/// What the recommended policy is better in than the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstReference {
    /// What was to be small (energy over the window unless asked otherwise), over the reference's.
    pub ratio: Interval,
    /// Share of the replicas in which it is smaller than the reference's.
    pub chance: f64,
}

/// A policy that is within the limit of time in some replicas, but not in enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearly {
    /// The policy.
    pub policy: String,
    /// Share of the replicas in which it is within the limit.
    pub within_share: f64,
    /// What was to be small, over the reference's.
    pub ratio: Interval,
}

/// Which uncertain figures decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deciding {
    /// The leader and its nearest rival.
    pub between: [String; 2],
    /// At most three figures that are told apart from chance, the strongest first.
    pub figures: Vec<DecidingFigure>,
}

/// A figure that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecidingFigure {
    /// Its path in the machine file, or what of the work it is.
    pub what: String,
    /// Its share of the variance of the difference over the replicas.
    pub share: f64,
    /// Low end of the share's 95 % interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// How it can be measured.
    pub by: String,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(crate) fn is_false(b: &bool) -> bool {
    !b
}

fn none(joules: &f64) -> bool {
    *joules == 0.0
}

/// Energy by part; sums to the total.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Split {
    /// Cores executing.
    pub busy_j: f64,
    /// Cores awake without executing.
    pub stall_j: f64,
    /// Cores in each C-state.
    pub idle_j: Vec<(String, f64)>,
    /// What cores draw more for being hotter than the temperature that the model's watts are for, less where they are cooler;
    /// left out where the machine file has no coefficient of leakage.
    #[serde(default, skip_serializing_if = "none")]
    pub leakage_j: f64,
    /// Packages beside their cores.
    pub uncore_j: f64,
    /// The memory; left out where the machine file does not know its watts apart from the rest of the machine's.
    #[serde(default, skip_serializing_if = "none")]
    pub memory_j: f64,
    /// The rest of the machine.
    pub platform_j: f64,
    /// What the background would take that this policy has left undone at the end of the window and the reference policy has
    /// not; below 0 where it has done more.
    #[serde(default, skip_serializing_if = "none")]
    pub undone_background_j: f64,
    /// The machine while it was suspended, where that was asked for.
    #[serde(default, skip_serializing_if = "none")]
    pub suspended_j: f64,
}

/// What went in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inputs {
    /// The machine in one line.
    pub machine_summary: String,
    /// Whether it is the machine of who asks: `this`, a capture of it, or one with its processor. Then the answer's command fits it.
    pub own_machine: bool,
    /// What the answer's command needs as `--root`: the tree or the emulated machine that was asked about; left out where that is
    /// this machine, or a capture or a model, which have nothing to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Each figure of the machine model: path, source, confidence (`datasheet`, `measured`, `fitted`, `guess`, ...).
    pub machine_figures: Vec<InputFigure>,
    /// What is not certain of the work, and drawn in each replica for all policies alike.
    #[serde(default)]
    pub uncertain: Vec<UncertainInput>,
    /// Idle policy where a policy does not name its own.
    pub idle_policy: String,
    /// What could not be used or had to be assumed, a sentence each.
    pub warnings: Vec<String>,
    /// Version of wattwise.
    pub version: String,
}

/// A figure of the work that is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UncertainInput {
    /// What of the work it is: `workload.memory_bound`, `workload.ipc`, `workload.recorded_khz`.
    pub what: String,
    /// Its unit; empty for a ratio.
    pub unit: String,
    /// In the nominal run.
    pub nominal: f64,
    /// Low end of what is drawn: of an even interval its end, else 19 of 20 draws lie between `low` and `high`.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// How it can be measured.
    pub by: String,
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
    /// Its value and how far it may be off; null for what is not drawn.
    pub range: Option<FigureRange>,
}

/// A figure's value and how far it may be off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRange {
    /// In the file.
    pub nominal: f64,
    /// Low end of the interval that holds 19 of 20 draws.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// What it is in; empty for a ratio.
    pub unit: String,
}
