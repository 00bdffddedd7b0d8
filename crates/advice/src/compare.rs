//! The same work under several policies.
//!
//! [`compare`] is the main job: runs (`runs`: from the job to what ran), samples and verdicts (`judge`), then the result
//! (`conclude`). One run of the nominal model gives the details; replicas (`replicas`) give the intervals, the ties and the chance
//! of being best. [`search_best`] tries limits beside the policies that it is given (`search`).

pub use crate::error::CompareError;
pub use crate::options::{CompareOptions, PolicyDetail, REPLICAS};

use crate::conclude::{Findings, Second, conclude};
use crate::field::field;
use crate::judge::{self, cost};
use crate::result::Comparison;
use crate::runs::Runs;
use crate::search;
use std::sync::atomic::{AtomicUsize, Ordering};
use wattwise_replay::job::ReplayJob;

/// Compares the policies of a job.
///
/// # Errors
/// When the machine's idle policy does not exist, the work has no foreground or no end, or is not the same.
pub fn compare(
    job: &ReplayJob<'_>,
    options: &CompareOptions<'_>,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    compare_from(job, options, 1)
}

/// [`compare`] with other draws of what is uncertain: replicas from number `first` on. 0 is the nominal model.
///
/// # Errors
/// As [`compare`].
pub fn compare_from(
    job: &ReplayJob<'_>,
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let counter = AtomicUsize::new(0);
    let tell = || (options.done)(counter.fetch_add(1, Ordering::Relaxed) + 1);
    let runs = Runs::new(job, (options.reference, options.rule), &tell)?.stopped_by(options.stop);
    let (runs, nominal, judged) = runs.nominal_by_stop()?;
    let stopped = || options.stop.load(Ordering::Relaxed);
    let numbers = first..first.saturating_add(options.replicas);
    let field = field(&runs, numbers, judged.kind, &stopped)?;
    conclude(Findings::all(&runs, (nominal, judged), field), options, &Second::NONE)
}

/// Compares the policies of a job, and beside them limits on their speed and on C-states: those of the limits that come near to
/// the best are tried closer by, and all that cannot be the best is left after few replicas (`search`). What is
/// recommended has its figures from replicas that did not choose it.
///
/// Without replicas it is [`compare_from`]: one run tells too little to choose by.
///
/// # Errors
/// As [`compare`].
pub fn search_best(
    job: &ReplayJob<'_>,
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    if options.replicas == 0 {
        return compare_from(job, options, first);
    }
    let counter = AtomicUsize::new(0);
    let tell = || (options.done)(counter.fetch_add(1, Ordering::Relaxed) + 1);
    let runs = Runs::new(job, (options.reference, options.rule), &tell)?
        .with_standards(options.standards)
        .stopped_by(options.stop);
    search::best(&runs, options, first)
}

/// One policy in one draw of what is uncertain.
#[derive(Clone, Debug)]
pub struct OneDraw {
    /// The policy.
    pub policy: String,
    /// What is to be small.
    pub cost: f64,
    /// Whether it was within the limit of time.
    pub within: bool,
}

/// All policies in each of `options.replicas` replicas, from number `first` on: how an answer would differ with one draw
/// of what is uncertain.
///
/// # Errors
/// As [`compare`].
pub fn draws(
    job: &ReplayJob<'_>,
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<Vec<Vec<OneDraw>>, CompareError> {
    let runs = Runs::new(job, (options.reference, options.rule), &|| {})?;
    let kind = runs.kind()?;
    let field = field(&runs, first..first + options.replicas, kind, &|| false)?;
    let columns = judge::columns(&runs, field.columns, kind);
    let drawn = |replica: usize| {
        let policies = columns.iter().zip(&runs.policies);
        policies.map(move |(column, policy)| OneDraw {
            policy: policy.text.clone(),
            cost: cost(&column.own[replica], options.rule.goal),
            within: column.own[replica].within,
        })
    };
    Ok((0..field.draws.len()).map(|replica| drawn(replica).collect()).collect())
}
