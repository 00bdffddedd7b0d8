//! From the runs of all policies to the result: ties, figures, and the answer.

use crate::answer::{self, Answered};
use crate::choice::{Choice, choose};
use crate::deciding::deciding;
use crate::describe::{Described, inputs, workload_info};
use crate::error::CompareError;
use crate::field::ReplicaField;
use crate::judge::{self, Column};
use crate::options::{CompareOptions, PolicyDetail};
use crate::result::{Comparison, Deciding, PolicyResult, SCHEMA};
use crate::runs::{PolicyRun, Replayed, Runs};
use crate::ties::{self, Candidate, Standing};
use crate::time::Judged;
use wattwise_model::machine::Drawn;
use wattwise_replay::defaults;
use wattwise_replay::spec::PolicySpec;

/// How often those that the race left are looked at again, and how many each time.
pub(crate) const LOOKS_BACK: usize = 3;
const BACK: usize = 3;

/// How often a choice that does not hold in other replicas is followed by the next.
const CHOICES: usize = 4;

/// All that is known of the policies when the answer is made.
pub(crate) struct Findings<'r, 'a, 'j> {
    /// All policies.
    pub(crate) runs: &'r Runs<'a, 'j>,
    /// All of them in the nominal model.
    pub(crate) nominal: Replayed,
    pub(crate) judged: Judged,
    /// By policy, its figures in the replicas.
    pub(crate) columns: Vec<Column>,
    /// What was drawn in the replicas of those that were not raced out.
    pub(crate) draws: Vec<Vec<Drawn>>,
    /// By policy, whether it was left after fewer replicas, as it could not be the best.
    pub(crate) raced_out: Vec<bool>,
    /// By policy, what it cost in the race, where it ran the whole of it and kept the limit of time.
    pub(crate) in_race: Vec<Option<Vec<f64>>>,
    /// By policy, another that is taken instead as long as it keeps the limit of time.
    pub(crate) instead_of: Vec<Option<usize>>,
    /// How many policies were tried, where they were searched for and not asked for.
    pub(crate) searched: Option<usize>,
    /// Policies whose figures are from replicas that did not choose them.
    pub(crate) confirmed: Vec<usize>,
}

impl<'r, 'a, 'j> Findings<'r, 'a, 'j> {
    /// Policies that all ran in the same replicas; without any, in the nominal model alone.
    pub(crate) fn all(
        runs: &'r Runs<'a, 'j>,
        (nominal, judged): (Replayed, Judged),
        mut field: ReplicaField,
    ) -> Findings<'r, 'a, 'j> {
        if field.draws.is_empty() {
            field.columns =
                judge::samples(runs, &nominal, judged.kind).into_iter().map(|s| vec![s]).collect();
        }
        let columns = judge::columns(runs, field.columns, judged.kind);
        let (raced_out, instead_of) = (vec![false; columns.len()], vec![None; columns.len()]);
        let in_race = vec![None; columns.len()];
        Findings {
            runs,
            nominal,
            judged,
            columns,
            draws: field.draws,
            raced_out,
            in_race,
            instead_of,
            searched: None,
            confirmed: Vec::new(),
        }
    }

    /// A policy in the race; an empty candidate where it is not in it.
    fn candidate(&self, policy: usize) -> Candidate {
        let preferred = self.instead_of[policy].is_some_and(|other| self.columns[other].kept.admissible);
        if self.raced_out[policy] || preferred {
            return Candidate::default();
        }
        let column = &self.columns[policy];
        Candidate {
            cost: column.cost(self.runs.rule.goal),
            admissible: column.kept.admissible,
            surely: column.kept.surely,
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        (0..self.columns.len()).map(|p| self.candidate(p)).collect()
    }

    /// What a policy costs over the reference, in the mean.
    fn mean_ratio(&self, policy: usize) -> f64 {
        let ratios = self.columns[policy].cost_ratios(self.runs.rule.goal);
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    }

    /// Policies that the race left although they cost clearly less than the best now, since what was cheaper in the final did not
    /// keep the limit of time there. The cheapest first. Costs are over the reference's.
    pub(crate) fn left_behind(&self, mean: impl Fn(usize) -> f64, best: f64) -> Vec<usize> {
        let left = |p: &usize| {
            self.raced_out[*p] && self.in_race[*p].is_some() && mean(*p) < best * (1.0 - ties::CLOSE)
        };
        let mut all: Vec<usize> = (0..self.columns.len()).filter(left).collect();
        all.sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        all.truncate(BACK);
        all
    }

    /// Policies that were left in the race, and that it could not tell from the leader: they tie with it, as what ran in all
    /// replicas does.
    fn ties_of_the_race(&self, leader: usize) -> Vec<usize> {
        ties::ties_in(&self.in_race, leader).into_iter().filter(|p| self.raced_out[*p]).collect()
    }

    fn results(&self, standing: &Standing) -> Vec<PolicyResult> {
        let nominal = judge::samples(self.runs, &self.nominal, self.judged.kind);
        let result = |policy: usize| {
            Described {
                policy: &self.runs.policies[policy],
                nominal: &self.nominal.ran[policy],
                nominal_samples: (&nominal[policy], &nominal[self.runs.reference]),
                column: &self.columns[policy],
                base: (self.raced_out[policy] || self.confirmed.contains(&policy))
                    .then_some(&self.columns[self.runs.reference]),
                raced_out: self.raced_out[policy],
                best_share: standing.best_share[policy],
                tied: standing.leader == Some(policy) || standing.ties.contains(&policy),
            }
            .result()
        };
        (0..self.columns.len()).map(result).collect()
    }

    fn choice<'s>(&'s self, standing: &'s Standing, options: &'s CompareOptions<'_>) -> Choice<'s> {
        Choice {
            policies: &self.runs.policies,
            columns: &self.columns,
            reference: self.runs.reference,
            standing,
            kind: self.judged.kind,
            apply: options.apply,
        }
    }

    fn details(&self) -> Vec<PolicyDetail> {
        let detail = |(p, ran): (&PolicySpec, &PolicyRun)| PolicyDetail {
            policy: p.text.clone(),
            timeline: ran.timeline.clone().unwrap_or_default(),
            wake_histogram: ran.own.wake_latency.iter().collect(),
        };
        self.runs.policies.iter().zip(&self.nominal.ran).map(detail).collect()
    }
}

/// The policy by its number in replicas that did not choose it, beside the reference; `None` where its own are taken.
pub(crate) type Again<'f> = &'f dyn Fn(usize) -> Result<Option<Column>, CompareError>;
/// Policies that the race left, in the replicas of the others; none where there is no time for it.
pub(crate) type Back<'f> = &'f dyn Fn(&[usize]) -> Result<Vec<Column>, CompareError>;

/// What runs once more before an answer is given.
pub(crate) struct Second<'f> {
    pub(crate) again: Again<'f>,
    pub(crate) back: Back<'f>,
}

impl Second<'static> {
    /// Nothing: all ran alike.
    pub(crate) const NONE: Second<'static> = Second { again: &|_| Ok(None), back: &|_| Ok(Vec::new()) };
}

/// What all that ran comes to: the candidates, where they stand, and which is recommended.
type Settled = (Vec<Candidate>, Standing, Option<usize>);

/// Chooses, and runs the choice in other replicas, until one keeps the limit of time there.
fn settle(
    found: &mut Findings<'_, '_, '_>,
    options: &CompareOptions<'_>,
    second: &Second<'_>,
) -> Result<Settled, CompareError> {
    let (mut choices, mut looks) = (0..CHOICES, 0..LOOKS_BACK);
    loop {
        let candidates = found.candidates();
        let standing = ties::standing(&candidates);
        let chosen = choose(&found.choice(&standing, options));
        let mean = |p: usize| found.mean_ratio(p);
        let left = found.left_behind(mean, chosen.map_or(1.0, mean));
        if !left.is_empty() && looks.next().is_some() {
            let columns = (second.back)(&left)?;
            for (p, column) in left.into_iter().zip(columns) {
                (found.columns[p], found.raced_out[p]) = (column, false);
            }
            choices = 0..CHOICES;
            continue;
        }
        let fresh = match chosen.filter(|&c| c != found.runs.reference && choices.next().is_some()) {
            Some(chosen) => (second.again)(chosen)?.map(|column| (chosen, column)),
            None => None,
        };
        let Some((at, column)) = fresh else { return Ok((candidates, standing, chosen)) };
        let holds = column.kept.admissible;
        found.columns[at] = column;
        found.confirmed.push(at);
        // The race was run in other replicas. Its places stand, unless the limit of time is not kept in these.
        if holds {
            return Ok((candidates, standing, chosen));
        }
    }
}

/// The result.
pub(crate) fn conclude(
    mut found: Findings<'_, '_, '_>,
    options: &CompareOptions<'_>,
    second: &Second<'_>,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let (candidates, mut standing, chosen) = settle(&mut found, options, second)?;
    let more = standing.leader.map_or_else(Vec::new, |leader| found.ties_of_the_race(leader));
    standing.named &= more.is_empty();
    standing.ties.extend(more);
    let results = found.results(&standing);
    let stopped = (found.draws.len() as u64) < options.replicas;
    let mut answer = answer::answer(&Answered {
        results: &results,
        choice: found.choice(&standing, options),
        chosen,
        tried: found.searched,
        goal: found.runs.rule.goal,
        exact: found.draws.is_empty(),
        stopped,
    });
    let runs = found.runs;
    if stopped {
        let (done, asked) = (found.draws.len(), options.replicas);
        answer.text = format!("Stopped after {done} of {asked} replicas. {}", answer.text);
    }
    let deciding = deciding(&candidates, &standing, &found.draws).map(|(rival, figures)| Deciding {
        between: [standing.leader.unwrap_or(0), rival].map(|p| runs.policies[p].text.clone()),
        figures,
    });
    let reference = &found.nominal.ran[runs.reference];
    let standards: Vec<String> =
        runs.standards.iter().map(|&standard| runs.policies[standard].text.clone()).collect();
    let release_ns = found.nominal.replica.circumstances().workload.release_ns;
    let comparison = Comparison {
        schema: SCHEMA.into(),
        machine: runs.job.machine.name.clone(),
        workload: workload_info(runs.job.workload, &reference.own),
        judged: found.judged.clone(),
        reference: runs.policies[runs.reference].text.clone(),
        replicas: found.draws.len() as u64,
        stopped,
        replicas_asked: stopped.then_some(options.replicas),
        goal: runs.rule.goal,
        max_slowdown: runs.rule.max_slowdown.is_finite().then_some(runs.rule.max_slowdown),
        default_standard: defaults::untouched(runs.job.machine)
            .map(|untouched| untouched.text)
            .filter(|untouched| standards.contains(untouched)),
        standards,
        window_s: reference.window_ns.saturating_sub(release_ns) as f64 * 1e-9,
        deciding,
        results,
        answer,
        inputs: inputs(runs.job, &runs.idle, &reference.own),
    };
    let details = if runs.job.detail { found.details() } else { Vec::new() };
    Ok((comparison, details))
}
