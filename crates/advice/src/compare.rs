//! The same work under several policies.
//!
//! [`compare`] is the main job: runs (`runs`: from the job to what ran), samples and verdicts (`judge`), ties (`ties`), the
//! figures of the result (`describe`) and the answer (`answer`). One run of the nominal model gives the details; replicas
//! (`replicas`) give the intervals, the ties and the chance of being best.

pub use crate::error::CompareError;

use crate::answer::{self, Answered};
use crate::deciding::deciding;
use crate::describe::{Described, inputs, workload_info};
use crate::judge::{self, Kept, Sample, cost};
use crate::result::*;
use crate::rule::{Goal, Rule};
use crate::runs::{Replayed, Runs};
use crate::ties::{self, Candidate};
use crate::time::Judged;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wattwise_model::machine::Drawn;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::Timeline;

/// What a report draws of one policy beyond its figures.
#[derive(Clone, Debug, Default)]
pub struct PolicyDetail {
    /// Its [`PolicyResult::policy`].
    pub policy: String,
    /// Power, speeds and states over time.
    pub timeline: Timeline,
    /// Time from runnable to running: `(least ns of the slot, wake-ups)`, rising.
    pub wake_histogram: Vec<(u64, u64)>,
}

/// How to compare.
pub struct Options<'a> {
    /// What is to be small, and how much slower a policy may be.
    pub rule: Rule,
    /// Replicas beside the nominal run; 0 for that run alone.
    pub replicas: u64,
    /// The policy that the others are held against; it always runs.
    pub reference: &'a PolicySpec,
    /// How a policy is put in force, or why it cannot be.
    pub apply: &'a (dyn Fn(&PolicySpec) -> Result<String, String> + Sync),
    /// Called with the number of runs done so far.
    pub done: &'a (dyn Fn(usize) + Sync),
    /// Set by a user who has seen enough: the nominal run and the replicas done by then are the answer, which says so.
    pub stop: &'a AtomicBool,
}

impl Options<'_> {
    /// How many runs there will be for so many policies.
    pub fn runs(&self, policies: usize) -> usize {
        (self.replicas as usize + 1) * policies
    }
}

/// Compares the policies of a job.
///
/// # Errors
/// When the machine's idle policy does not exist, the work has no foreground or no end, or is not the same.
pub fn compare(
    job: &ReplayJob<'_>,
    options: &Options<'_>,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    compare_from(job, options, 1)
}

/// [`compare`] with other draws of what is uncertain: replicas from number `first` on. 0 is the nominal model.
///
/// # Errors
/// As [`compare`].
pub fn compare_from(
    job: &ReplayJob<'_>,
    options: &Options<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let counter = AtomicUsize::new(0);
    let tell = || (options.done)(counter.fetch_add(1, Ordering::Relaxed) + 1);
    let runs = Runs::new(job, (options.reference, options.rule), &tell)?;
    let (nominal, judged) = runs.nominal()?;
    let stopped = || options.stop.load(Ordering::Relaxed);
    let one = |number| {
        runs.replica(number).map(|r| (judge::samples(&runs, &r, judged.kind), r.replica.into_drawn()))
    };
    let all = first..first.saturating_add(options.replicas);
    let replicas: Vec<(Vec<Sample>, Vec<Drawn>)> =
        wattwise_threads::filter_map::<_, _, _, Result<_, _>>(all, |n| (!stopped()).then(|| one(n)))?;
    let (samples, draws): (Vec<_>, Vec<_>) = replicas.into_iter().unzip();
    Ok(conclude(&runs, (&nominal, judged), samples, &draws, options))
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
    options: &Options<'_>,
    first: u64,
) -> Result<Vec<Vec<OneDraw>>, CompareError> {
    let runs = Runs::new(job, (options.reference, options.rule), &|| {})?;
    let kind = runs.kind()?;
    let one = |number: u64| runs.replica(number).map(|r| judge::samples(&runs, &r, kind));
    let mut all: Vec<Vec<Sample>> =
        wattwise_threads::map::<_, _, _, Result<_, _>>(first..first + options.replicas, one)?;
    (0..runs.policies.len()).for_each(|p| _ = judge::keep(&runs, &mut all, p, kind));
    let drawn = |(s, p): (&Sample, &&PolicySpec)| OneDraw {
        policy: p.text.clone(),
        cost: cost(s, options.rule.goal),
        within: s.within,
    };
    Ok(all.iter().map(|samples| samples.iter().zip(&runs.policies).map(drawn).collect()).collect())
}

/// The answer from all samples.
fn conclude(
    runs: &Runs<'_, '_>,
    (nominal, judged): (&Replayed, Judged),
    mut samples: Vec<Vec<Sample>>,
    draws: &[Vec<Drawn>],
    options: &Options<'_>,
) -> (Comparison, Vec<PolicyDetail>) {
    let kind = judged.kind;
    let nominal_samples = judge::samples(runs, nominal, kind);
    if samples.is_empty() {
        samples.push(nominal_samples.clone());
    }
    let kept: Vec<Kept> =
        (0..runs.policies.len()).map(|p| judge::keep(runs, &mut samples, p, kind)).collect();
    let candidate = |(p, kept): (usize, &Kept)| Candidate {
        cost: samples.iter().map(|s| cost(&s[p], runs.rule.goal)).collect(),
        admissible: kept.admissible,
        surely: kept.surely,
    };
    let candidates: Vec<Candidate> = kept.iter().enumerate().map(candidate).collect();
    let standing = ties::standing(&candidates);
    let describe = |(policy, kept): (usize, Kept)| {
        Described {
            runs,
            policy,
            nominal: &nominal.ran[policy],
            nominal_samples: &nominal_samples,
            samples: &samples,
            kept,
            standing: &standing,
        }
        .result()
    };
    let results: Vec<PolicyResult> = kept.into_iter().enumerate().map(describe).collect();
    let stopped = (draws.len() as u64) < options.replicas;
    let mut answer = answer::answer(&Answered {
        results: &results,
        policies: &runs.policies,
        reference: runs.reference,
        standing: &standing,
        goal: runs.rule.goal,
        kind,
        exact: draws.is_empty(),
        apply: options.apply,
    });
    if stopped {
        let (done, asked) = (draws.len(), options.replicas);
        answer.text = format!("Stopped after {done} of {asked} replicas. {}", answer.text);
    }
    let deciding = deciding(&candidates, &standing, draws).map(|(rival, figures)| Deciding {
        between: [standing.leader.unwrap_or(0), rival].map(|p| runs.policies[p].text.clone()),
        figures,
    });
    let reference = &nominal.ran[runs.reference];
    let release_ns = nominal.replica.circumstances().workload.release_ns;
    let comparison = Comparison {
        schema: SCHEMA.into(),
        machine: runs.job.machine.name.clone(),
        workload: workload_info(runs.job.workload, &reference.own),
        judged,
        reference: runs.policies[runs.reference].text.clone(),
        replicas: draws.len() as u64,
        stopped,
        replicas_asked: stopped.then_some(options.replicas),
        by_own_energy: runs.rule.goal == Goal::OwnEnergy,
        max_slowdown: runs.rule.max_slowdown.is_finite().then_some(runs.rule.max_slowdown),
        window_s: reference.window_ns.saturating_sub(release_ns) as f64 * 1e-9,
        deciding,
        results,
        answer,
        inputs: inputs(runs.job, &runs.idle, &reference.own),
    };
    (comparison, if runs.job.detail { details(runs, nominal) } else { Vec::new() })
}

fn details(runs: &Runs<'_, '_>, nominal: &Replayed) -> Vec<PolicyDetail> {
    let detail = |(p, ran): (&&PolicySpec, &crate::runs::Ran)| PolicyDetail {
        policy: p.text.clone(),
        timeline: ran.timeline.clone().unwrap_or_default(),
        wake_histogram: ran.own.wake_latency.iter().collect(),
    };
    runs.policies.iter().zip(&nominal.ran).map(detail).collect()
}
