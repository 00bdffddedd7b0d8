//! Several comparisons, workloads times machines, as one: how each policy does over all of them.
//!
//! Ratios are against each comparison's own reference policy, and their mean is geometric: half the energy here and
//! twice there is no gain. A policy counts where it takes part. What is below one comparison's notice may be a gain
//! over all, and the other way round: the single comparisons' answers stay as they are.

use crate::mix::Mix;
use crate::result::{Comparison, PolicyResult, is_false};
use crate::rule::Goal;
use crate::say;
use crate::ties::CLOSE;
use crate::time::TimeKind;
use serde::{Deserialize, Serialize};

/// The schema's name and number.
pub const SCHEMA: &str = "wattwise-compare-set-1";

/// Several comparisons, and what they come to together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparisonSet {
    /// [`SCHEMA`].
    pub schema: String,
    /// Each by itself, in the order asked: all machines of the first workload first.
    pub comparisons: Vec<Comparison>,
    /// All of them.
    pub summary: Summary,
    /// The works as one day, where they are several on one machine, judged by energy. Left out where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// It was stopped (Ctrl-C) before all comparisons were done: some are missing, or the last has fewer replicas than were asked
    /// for. Left out where it was not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// Of a set that was stopped: the comparisons that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparisons_asked: Option<u64>,
}

/// What several comparisons come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// One entry a policy, in the order in which they first appear.
    pub policies: Vec<PolicySummary>,
    /// The policy that is best over all: of those that are admissible in every comparison, the one with the least mean
    /// of what was to be small. null where none is.
    pub best: Option<String>,
    /// That mean, over the reference policy's: above 1 where each machine's own reference is better than any one policy.
    pub best_ratio: Option<f64>,
    /// One entry a comparison, in their order.
    pub answers: Vec<AnswerSummary>,
}

/// One policy over all comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySummary {
    /// The policy.
    pub policy: String,
    /// Comparisons that it takes part in.
    pub comparisons: u64,
    /// Those in which it is admissible.
    pub admissible: u64,
    /// Those in which it is recommended, or cannot be told apart from the recommended one.
    pub best: u64,
    /// Geometric mean of its energy over the reference policy's; null where it is over another time in one of them, or there is none.
    pub energy_ratio: Option<f64>,
    /// The comparison in which that ratio is greatest.
    pub worst: Option<Worst>,
    /// Geometric mean of its time over the reference policy's, over the comparisons that judge time or responses.
    pub time_ratio: Option<f64>,
}

/// Where a policy does worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Its energy over the reference policy's.
    pub energy_ratio: f64,
    /// On this work.
    pub workload: String,
    /// On this machine.
    pub machine: String,
}

/// One comparison's answer beside the others'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerSummary {
    /// The work.
    pub workload: String,
    /// The machine.
    pub machine: String,
    /// The winner, where one is named.
    pub winner: Option<String>,
    /// The policy that is recommended.
    pub recommended: String,
    /// The policy that is best over all is neither recommended here nor tied with what is.
    pub changes: bool,
    /// Energy of the policy that is best over all, over that of the one that is recommended here; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_costs: Option<f64>,
    /// The command that puts the policy that is best over all in force here; left out where the machine is the same in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_apply: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_why_not: Option<String>,
}

impl ComparisonSet {
    /// Puts comparisons together that all went by one goal.
    pub fn new(comparisons: Vec<Comparison>, goal: Goal) -> ComparisonSet {
        let asked = comparisons.len();
        ComparisonSet::of(comparisons, asked, goal)
    }

    /// [`ComparisonSet::new`], of so many that were asked for.
    pub fn of(comparisons: Vec<Comparison>, asked: usize, goal: Goal) -> ComparisonSet {
        let summary = summary(&comparisons, goal);
        let stopped = comparisons.len() < asked || comparisons.iter().any(|c| c.stopped);
        let comparisons_asked = stopped.then_some(asked as u64);
        ComparisonSet { schema: SCHEMA.into(), comparisons, summary, mix: None, stopped, comparisons_asked }
    }

    /// Says how the policy that is best over all is put in force on each machine, where they are several: `command` knows for
    /// the comparison of that number.
    pub fn say_commands(&mut self, command: impl Fn(usize, &str) -> Result<String, String>) {
        let Some(best) = &self.summary.best else { return };
        let first = self.comparisons.first().map(|c| &c.machine);
        if self.comparisons.iter().all(|c| Some(&c.machine) == first) {
            return;
        }
        for (number, answer) in self.summary.answers.iter_mut().enumerate() {
            match command(number, best) {
                Ok(line) => answer.best_apply = Some(line),
                Err(why) => answer.best_why_not = Some(why),
            }
        }
    }

    /// Whether each one's reference is to be kept: no policy that is within the limit of time in all saves by what counts, which is as
    /// on one machine. Where all have one reference, that is the policy that is best over all.
    pub fn keeps_references(&self) -> bool {
        let s = &self.summary;
        let is_of_all = |best: &String| self.comparisons.iter().all(|c| c.reference == *best);
        !s.best.as_ref().is_some_and(is_of_all) && s.best_ratio.is_some_and(|r| r * (1.0 + CLOSE) >= 1.0)
    }

    /// That it was stopped, and after how much; none where it was not.
    pub fn told_stopped(&self) -> Option<String> {
        let asked = self.comparisons_asked.filter(|_| self.stopped)?;
        let of_replicas = self.comparisons.iter().rev().find_map(|c| Some((c.replicas, c.replicas_asked?)));
        let done = self.comparisons.iter().filter(|c| !c.stopped).count();
        Some(match of_replicas {
            Some((replicas, of)) => format!(
                "Stopped after {done} of {asked} comparisons and {replicas} of {of} replicas of the next; the rest is missing."
            ),
            None => format!("Stopped after {done} of {asked} comparisons; the rest is missing."),
        })
    }
}

/// What comparisons come to that all went by one goal.
pub fn summary(comparisons: &[Comparison], goal: Goal) -> Summary {
    let mut names: Vec<&str> = Vec::new();
    for result in comparisons.iter().flat_map(|c| &c.results) {
        if !names.contains(&result.policy.as_str()) {
            names.push(&result.policy);
        }
    }
    let policies: Vec<PolicySummary> = names.iter().map(|name| policy_summary(comparisons, name)).collect();
    let all = comparisons.len() as u64;
    let costs = policies
        .iter()
        .filter(|p| p.admissible == all)
        .filter_map(|p| Some((mean_cost(comparisons, &p.policy, goal)?, &p.policy)));
    let costs: Vec<(f64, &String)> = costs.collect();
    let least = costs.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    // What all machines have already is kept unless another is better by more than half a per cent, as on one machine.
    let has_it = |policy: &str| comparisons.iter().all(|c| c.reference == policy);
    let kept =
        costs.iter().find(|(cost, p)| has_it(p) && least.is_some_and(|l| *cost <= l.0 * (1.0 + CLOSE)));
    let (best_ratio, best) = kept.or(least).map(|(cost, p)| (*cost, (*p).clone())).unzip();
    let answers = comparisons.iter().map(|c| answer_summary(c, best.as_deref())).collect();
    Summary { policies, best, best_ratio, answers }
}

fn answer_summary(c: &Comparison, best: Option<&str>) -> AnswerSummary {
    let holds = best.is_some_and(|best| is_best(c, best));
    AnswerSummary {
        workload: c.workload.name.clone(),
        machine: c.machine.clone(),
        winner: c.answer.winner.clone(),
        recommended: c.answer.recommended.clone(),
        changes: best.is_some() && !holds,
        best_costs: best.and_then(|best| Some(energy_of(c, best)? / energy_of(c, &c.answer.recommended)?)),
        best_apply: None,
        best_why_not: None,
    }
}

/// A policy's energy over the reference's.
fn energy_of(c: &Comparison, policy: &str) -> Option<f64> {
    let result = c.results.iter().find(|r| r.policy == policy)?;
    usable(say::energy_ratio(c, result)?.median)
}

/// Whether a policy is recommended, or cannot be told apart from the recommended one.
fn is_best(c: &Comparison, policy: &str) -> bool {
    c.answer.recommended == policy || c.answer.tied.iter().any(|t| t == policy)
}

/// A policy's results, with the comparisons that they are of.
fn results<'a>(
    comparisons: &'a [Comparison],
    policy: &'a str,
) -> impl Iterator<Item = (&'a Comparison, &'a PolicyResult)> {
    comparisons.iter().filter_map(move |c| Some((c, c.results.iter().find(|r| r.policy == policy)?)))
}

fn policy_summary(comparisons: &[Comparison], policy: &str) -> PolicySummary {
    let of = || results(comparisons, policy);
    let count =
        |which: &dyn Fn(&Comparison, &PolicyResult) -> bool| of().filter(|(c, r)| which(c, r)).count() as u64;
    // Over its own, longer time in one of them, its energy is in no share of the reference's there.
    let energy = |c: &Comparison, r: &PolicyResult| usable(say::energy_ratio(c, r)?.median);
    let all: Option<Vec<f64>> = of().map(|(c, r)| energy(c, r)).collect();
    let worst = of().filter_map(|(c, r)| Some((energy(c, r)?, c))).max_by(|a, b| a.0.total_cmp(&b.0));
    PolicySummary {
        policy: policy.to_owned(),
        comparisons: count(&|_, _| true),
        admissible: count(&|_, r| r.admissible),
        best: count(&|c, _| is_best(c, policy)),
        energy_ratio: geometric_mean(all.into_iter().flatten()),
        worst: worst.map(|(energy_ratio, c)| Worst {
            energy_ratio,
            workload: c.workload.name.clone(),
            machine: c.machine.clone(),
        }),
        time_ratio: geometric_mean(of().filter_map(|(c, r)| time_ratio(c, r))),
    }
}

/// Time over the reference policy's; missed deadlines have no ratio.
fn time_ratio(c: &Comparison, r: &PolicyResult) -> Option<f64> {
    match c.judged.kind {
        TimeKind::Makespan | TimeKind::Response => usable(r.uncertain.time_ratio.median),
        TimeKind::Deadlines => None,
    }
}

/// Geometric mean of what is to be small, over the reference policy's.
fn mean_cost(comparisons: &[Comparison], policy: &str, goal: Goal) -> Option<f64> {
    let nominal = |c: &Comparison, of: fn(&PolicyResult) -> f64, r: &PolicyResult| {
        let reference = c.results.iter().find(|r| r.policy == c.reference)?;
        usable(of(r) / of(reference))
    };
    geometric_mean(results(comparisons, policy).filter_map(|(c, r)| match goal {
        Goal::Energy => usable(r.uncertain.energy_ratio.median),
        Goal::OwnEnergy => nominal(c, |r| r.energy_j, r),
        Goal::Edp => nominal(c, |r| r.edp_js, r),
        Goal::Time => time_ratio(c, r),
    }))
}

/// A ratio that has a logarithm.
fn usable(ratio: f64) -> Option<f64> {
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0u32);
    for ratio in ratios {
        sum += ratio.ln();
        n += 1;
    }
    (n > 0).then(|| (sum / f64::from(n)).exp())
}

#[cfg(test)]
mod tests;
