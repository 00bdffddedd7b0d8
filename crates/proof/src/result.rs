//! The result of an experiment: what is proved of B against A, by which figure, and what there is to know before one believes it.

use crate::block::Reason;
use crate::guards::Guarded;
use crate::hours::Hours;
use crate::judge::Outcome;
use crate::log::{Predicted, Side};
use serde::{Deserialize, Serialize};
use wattwise_figure::verdict::Verdict;

/// Version of the result.
pub const SCHEMA: &str = "wattwise.prove-result/1";

/// What came out of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Proved {
    /// B needs less, and is not shown slower.
    Saves,
    /// B needs less, and is slower: the saving is bought.
    SavesBySlowness,
    /// B needs more.
    Costs,
    /// The interval holds 0.
    NoDifference,
    /// There is nothing to judge.
    NotMeasured,
}

/// How the figure in the first line came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// `ab`'s judge, for the same work: the plan was carried out.
    SameWork,
    /// `ab`'s judge: the plan was carried out, and nothing is known of the work.
    AsMeasured,
    /// The confidence sequence: the plan was not carried out to its end.
    AtAnyTime,
}

/// The figure in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// B over A.
    pub ratio: f64,
    /// Low end of its interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// How it came about.
    pub by: By,
}

/// Time left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// Hours, time asleep included.
    pub hours: f64,
}

/// One scope of energy, beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scope {
    /// Package, dram, psys, core, battery.
    pub what: String,
    /// Mean power under A, W.
    pub a_w: f64,
    /// Under B, W.
    pub b_w: f64,
    /// B against A, as measured.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// One week of a longer proof, judged by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Week {
    /// Its number, from 1.
    pub week: u64,
    /// In a line.
    pub line: String,
    /// B against A, as measured.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A judged proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// [`SCHEMA`].
    pub schema: String,
    /// A and B.
    pub sides: [Side; 2],
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// How energy came about.
    pub energy: String,
    /// What came out.
    pub proved: Proved,
    /// The figure; none where there is nothing to judge.
    pub headline: Option<Headline>,
    /// In a line.
    pub line: String,
    /// In a sentence.
    pub words: String,
    /// Why it ended; none while it goes on, or where it was killed.
    pub ended: Option<String>,
    /// Pairs planned.
    pub planned: usize,
    /// Pairs that count.
    pub pairs: usize,
    /// Hours that count.
    pub measured_h: f64,
    /// Hours that do not, the most first.
    pub left_out: Vec<LeftOut>,
    /// Of the interval.
    pub confidence: f64,
    /// How much slower B may be, as a share.
    pub limit: f64,
    /// The whole outcome.
    pub outcome: Outcome,
    /// Energy by scope.
    pub scopes: Vec<Scope>,
    /// Whether B is as fast; empty where nothing could be watched or too few pairs count.
    pub guards: Vec<Guarded>,
    /// CPU time in each second under A and B, s: no guard.
    pub busy: Option<(f64, f64)>,
    /// Week by week, where it took longer than one.
    pub weeks: Vec<Week>,
    /// What narrower intervals would take here.
    pub hours: Vec<Hours>,
    /// What a model had said.
    pub predicted: Option<Predicted>,
    /// What there is to know before one believes it.
    pub notes: Vec<String>,
}
