//! A policy against itself in other replicas: how often the rule of responses sees a difference where there is none.
//!
//! On common random numbers a policy never differs from itself. Here the second run has other phases, seeds and draws.

use crate::error::CompareError;
use crate::judge::{Judge, Sample};
use crate::result::Responses;
use crate::rule::Rule;
use crate::runs::Runs;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;
use wattwise_responses::{Against, Waits};

/// The responses of a policy in replicas from number `first[0]` on, held against those of the same policy in as many replicas
/// from number `first[1]` on.
///
/// # Errors
/// As [`compare`](crate::compare::compare()).
pub fn itself(
    job: &ReplayJob<'_>,
    rule: Rule,
    policy: &PolicySpec,
    first: [u64; 2],
    replicas: u64,
) -> Result<Responses, CompareError> {
    let runs = Runs::new(job, (policy, rule), &|| {})?;
    let kind = runs.kind()?;
    let one = |number| {
        let replica = runs.draw(number)?;
        let ran = runs.run(&replica.circumstances(), policy, None, false)?;
        let judge = Judge { runs: &runs, with: replica.circumstances(), reference: &ran, kind, idle_w: 0.0 };
        Ok(judge.sample(&ran))
    };
    let side = |first: u64| -> Result<Vec<Sample>, CompareError> {
        wattwise_threads::map(first..first + replicas, one)
    };
    let (own, reference) = (side(first[0])?, side(first[1])?);
    let own: Vec<&Waits> = own.iter().map(|s| &s.waits).collect();
    let reference: Vec<&Waits> = reference.iter().map(|s| &s.waits).collect();
    Ok(Against::new(&own, &reference, &runs.names, rule.max_slowdown).verdict().responses)
}
