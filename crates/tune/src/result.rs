//! The result of a search, as `--json` prints it (schema `docs/schema/tune-1.json`).

use crate::gain::Gain;
use crate::space::Free;
use serde::{Deserialize, Serialize};

/// The schema's name and number.
pub const SCHEMA: &str = "wattwise.tune/1";

/// What a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneResult {
    /// Names this schema.
    pub schema: String,
    /// Version of wattwise.
    pub version: String,
    /// What follows, in words.
    pub verdict: Verdict,
    /// The policy that was found, its gain, and how sure that is.
    pub winner: Winner,
    /// The same policy with all settings at their default.
    pub defaults: String,
    /// Policies that no other beats in everything, the one with the least of what was to be small first, as the search saw
    /// them.
    pub front: Vec<Point>,
    /// Where the search looked, and where the test.
    pub cases: Vec<CaseResult>,
    /// What was searched.
    pub space: String,
    /// The settings that were free.
    pub free: Vec<Free>,
    /// What was to be small.
    pub goal: String,
    /// How much slower than the reference a policy may be, as a share; null: any.
    pub max_slowdown: Option<f64>,
    /// How much more its 99th percentile of waits may be, as a share; null: any.
    pub max_p99: Option<f64>,
    /// How much was done.
    pub spent: Spent,
    /// Of the search, the split and the replicas.
    pub seed: u64,
    /// It was stopped before its end (Ctrl-C): the winner is the best of what the search had looked at by then, and was not
    /// tested. Left out where it was not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// What was under way when it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_in: Option<Part>,
    /// Of a search that was stopped: how many trials it might have had, where its budget is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_asked: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(b: &bool) -> bool {
    !b
}

/// A part of tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The search.
    Search,
    /// The best of it once more, in other draws.
    Confirm,
    /// The test.
    Test,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Whether the policy is worth using; null where there was no test.
    pub worth_it: Option<bool>,
    /// In a sentence or two.
    pub text: String,
}

/// How much was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// Policies that were looked at.
    pub trials: u64,
    /// Of these, out before they had been looked at everywhere.
    pub out: u64,
    /// Of these, policies under which some work did not end.
    pub failed: u64,
    /// Replays in the search, without the reference policy's.
    pub replays: u64,
    /// Replays that a policy has which is looked at everywhere.
    pub replays_a_trial: u64,
    /// Why the search ended.
    pub ended: Ended,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// As many trials as were asked for.
    Trials,
    /// The time was over.
    Time,
    /// Somebody stopped it.
    Stopped,
    /// Every policy of the space was looked at.
    Exhausted,
}

/// A policy against the reference: geometric means over all cells of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// The policy.
    pub policy: String,
    /// What was to be small, in the median of the draws, as a winner's gain is told.
    pub cost_ratio: f64,
    /// Time; of missed deadlines 1 and the share missed beyond the reference's.
    pub time_ratio: f64,
    /// The 99th percentile of the time from runnable to running.
    pub p99_ratio: f64,
}

/// The policy that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Winner {
    /// As `--policy` takes it.
    pub policy: String,
    /// As a policy file.
    pub file: String,
    /// The command that puts it in force, where there is one; null where the verdict is that it is not worth it.
    pub apply: Option<String>,
    /// Why there is none.
    pub why_not: Option<String>,
    /// Against the reference policy on the recordings of the search, as the search saw it: what is chosen looks better there than
    /// it is.
    pub train: Option<Gain>,
    /// On the recordings of the test; null where there are none.
    pub test: Option<Test>,
    /// How it stands when the machine's figures, the phases and the seeds are drawn anew.
    pub stability: Stability,
}

/// How a winner stands in other draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stability {
    /// Draws of everything that is uncertain, none of them seen by the search.
    pub draws: u64,
    /// Those in which no other of the best is better by more than 1 %.
    pub held: u64,
    /// The best that were looked at, the winner and the defaults among them.
    pub rivals: u64,
}

/// The test: recordings that the search did not see, looked at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Test {
    /// What was to be small, over the reference policy's.
    pub against_reference: Gain,
    /// Over the same policy's with its defaults.
    pub against_defaults: Gain,
    /// The defaults over the reference policy.
    pub defaults_against_reference: Gain,
    /// Time over the reference policy's: geometric mean.
    pub time_ratio: f64,
    /// The 99th percentile of waits over the reference policy's: geometric mean.
    pub p99_ratio: f64,
    /// Whether it was within the limits in enough of the replicas.
    pub admissible: bool,
    /// The ratio of the test over that of the search; above 1 the search promised too much. null where nothing was seen.
    pub gap: Option<f64>,
    /// Each case by itself.
    pub each: Vec<TestCase>,
}

/// One case of the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestCase {
    /// The recording.
    pub workload: String,
    /// The machine.
    pub machine: String,
    /// Over the reference policy's; its interval is of the machine alone.
    pub against_reference: Gain,
    /// Over the defaults'.
    pub against_defaults: Gain,
    /// Time over the reference policy's: geometric mean.
    pub time_ratio: f64,
}

/// A recording on a machine, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseResult {
    /// The recording.
    pub workload: String,
    /// The machine.
    pub machine: String,
    /// The policy that others are held against there.
    pub reference: String,
    /// What it was used for.
    pub used: Used,
    /// What went wrong there: why it could not be used, or under which policy its work did not end.
    pub problem: Option<String>,
}

/// What a case was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Used {
    /// The search.
    Train,
    /// The test.
    Test,
    /// Nothing: it could not be looked at.
    Nothing,
}
