//! How to compare, and what a report is given beside the result.

use crate::rule::Rule;
use std::sync::atomic::AtomicBool;
use wattwise_replay::apply::Apply;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::Timeline;

/// What a report draws of one policy beyond its figures.
#[derive(Clone, Debug, Default)]
pub struct PolicyDetail {
    /// Its [`policy`](crate::result::PolicyResult::policy).
    pub policy: String,
    /// Power, speeds and states over time.
    pub timeline: Timeline,
    /// Time from runnable to running: `(least ns of the slot, wake-ups)`, rising.
    pub wake_histogram: Vec<(u64, u64)>,
}

/// The default number of replicas, in addition to the nominal run: of `compare`, `tune`, `ab`, `machines check` and Python.
pub const REPLICAS: u64 = 64;

/// How to compare.
pub struct CompareOptions<'a> {
    /// What is to be small, and how much slower a policy may be.
    pub rule: Rule,
    /// Replicas beside the nominal run; 0 for that run alone.
    pub replicas: u64,
    /// The policy that the others are held against; it always runs.
    pub reference: &'a PolicySpec,
    /// What a search holds the limit of time against as well ([`Rule`]): the system's own default, and what wattwise has put
    /// another policy in the place of. Only a search asks: who names policies has them held against the reference alone.
    pub standards: &'a [PolicySpec],
    /// How a policy is put in force, or why it cannot be.
    pub apply: &'a Apply<'a>,
    /// Called with the number of runs done so far.
    pub done: &'a (dyn Fn(usize) + Sync),
    /// Set by a user who has seen enough: the nominal run and the replicas done by then are the answer, which says so.
    pub stop: &'a AtomicBool,
}

impl CompareOptions<'_> {
    /// How many runs there will be for so many policies.
    pub fn runs(&self, policies: usize) -> usize {
        (self.replicas as usize + 1) * policies
    }

    /// About how many runs a search from so many policies takes: what is left early is not known before.
    pub fn runs_of_search(&self, policies: usize) -> usize {
        const LIMITS: usize = 24;
        const RACE: usize = 17;
        const FINALISTS: usize = 10;
        (policies / 2 + LIMITS) * RACE + FINALISTS * self.replicas as usize
    }
}
