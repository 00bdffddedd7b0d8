//! Several pieces of work as one day: a policy is chosen once and stays in force through all of them.
//!
//! Each work has a weight, its share of the hours. A mix costs the weighted mean of the power that each work needs over its own
//! window. A policy must keep the limit of time in every work. Replica `n` of every work has the same draw of the machine's
//! uncertain figures, so the mix is drawn as a whole.

use crate::choice::{Choice, choose};
use crate::conclude::{Findings, LOOKS_BACK, Second, conclude};
use crate::describe::rebased_figure;
use crate::error::CompareError;
use crate::field::field;
use crate::judge::{Column, Sample, mean_power};
use crate::options::{CompareOptions, PolicyDetail};
use crate::result::{AgainstReference, Comparison, Interval};
use crate::runs::Runs;
use crate::say;
use crate::search::{self, Raced};
use crate::ties::{self, Candidate, Standing, share};
use crate::time::TimeKind;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// A work of a mix.
pub struct MixWork<'a, 'j> {
    /// The work, the machine and the policies; all works of a mix have the same machine and policies.
    pub job: &'a ReplayJob<'j>,
    /// Its share of the hours; any positive number, they need not sum to 1.
    pub weight: f64,
}

/// What a mix comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Each work's share of the hours, in the order asked; they sum to 1.
    pub weights: Vec<MixWeight>,
    /// The policies that ran in all works, the cheapest first.
    pub policies: Vec<MixPolicy>,
    /// What follows.
    pub answer: MixAnswer,
}

/// A work's share of the hours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixWeight {
    /// The work.
    pub workload: String,
    /// Its share.
    pub weight: f64,
}

/// One policy over the mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixPolicy {
    /// The policy.
    pub policy: String,
    /// Weighted mean power over the works' windows.
    pub mean_w: Interval,
    /// That, over the reference policy's of the same replica.
    pub power_ratio: Interval,
    /// Works in which it does not keep the limit of time; empty: it may be chosen.
    pub over_limit_in: Vec<String>,
    /// Of these, works in which nothing shows it over the limit: too few replicas were run to judge its responses there. Left out where
    /// it is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged_in: Vec<String>,
    /// After how many replicas it was left, as others were better or kept the limit of time; null: it ran in all. Its figures are
    /// from those replicas.
    #[serde(default)]
    pub raced_out_after: Option<u64>,
    /// Share of the replicas in which it was the best of those that may be chosen.
    pub best_share: f64,
    /// The work in which it does worst against the reference policy.
    pub worst: MixWorst,
}

impl MixPolicy {
    /// The works in which it was found over the limit of time.
    pub fn over_in(&self) -> impl Iterator<Item = &String> {
        self.over_limit_in.iter().filter(|work| !self.not_judged_in.contains(work))
    }

    /// Whether it may not be chosen only since too few replicas were run to judge its responses.
    pub fn is_not_judged(&self) -> bool {
        !self.not_judged_in.is_empty() && self.over_in().next().is_none()
    }
}

/// Where a policy does worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixWorst {
    /// The work.
    pub workload: String,
    /// Its energy there, over the reference policy's.
    pub energy_ratio: Interval,
}

/// What follows for the mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixAnswer {
    /// The winner, where one is named.
    pub winner: Option<String>,
    /// The policy to use; never one that needs more than the reference.
    pub recommended: String,
    /// How many policies were tried, where wattwise chose them; null where they were asked for.
    pub tried: Option<u64>,
    /// The recommended policy against the reference; null where that is the reference.
    pub against_reference: Option<AgainstReference>,
    /// Policies that cannot be told apart from the recommended one.
    pub tied: Vec<String>,
    /// The answer in a sentence or two.
    pub text: String,
    /// The command that puts the recommended policy in force, where there is one.
    pub apply: Option<String>,
    /// What the command lifts of the limits that are in force now, as parts of a policy; left out where nothing is lifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<String>,
    /// Why there is none.
    pub why_not: Option<String>,
}

/// What ran in one work.
struct MixRun<'f, 'r, 'a, 'j> {
    found: &'f Findings<'r, 'a, 'j>,
    weight: f64,
}

impl MixRun<'_, '_, '_, '_> {
    fn name(&self) -> String {
        self.found.runs.job.workload.name.clone()
    }

    fn column(&self, policy: usize) -> &Column {
        &self.found.columns[policy]
    }

    fn keeps_time(&self, policy: usize) -> bool {
        self.column(policy).kept.admissible
    }

    /// Whether it does not keep the limit of time only since too few replicas were run to judge its responses.
    fn is_not_judged(&self, policy: usize) -> bool {
        let kept = &self.column(policy).kept;
        let unjudged = || say::unjudged(kept.responses.as_ref(), &kept.missed);
        !kept.admissible && !self.found.raced_out[policy] && unjudged()
    }
}

fn mix_runs<'f, 'r, 'a, 'j>(
    found: &'f [Findings<'r, 'a, 'j>],
    weights: &[f64],
) -> Vec<MixRun<'f, 'r, 'a, 'j>> {
    found.iter().zip(weights).map(|(found, &weight)| MixRun { found, weight }).collect()
}

/// Each work's comparison, with what a report draws; and the mix.
pub type Mixed = (Vec<(Comparison, Vec<PolicyDetail>)>, Option<Mix>);

/// Compares the policies in every work, and over the mix. With `searched` they are where a search begins. Where it is stopped
/// before all works have run, the mix is none.
///
/// # Errors
/// As [`compare`](crate::compare::compare()).
pub fn compare_mix(
    works: &[MixWork<'_, '_>],
    options: &CompareOptions<'_>,
    searched: bool,
) -> Result<Mixed, CompareError> {
    if works.is_empty() {
        return Ok((Vec::new(), None));
    }
    let first = 1;
    let counter = AtomicUsize::new(0);
    let tell = || (options.done)(counter.fetch_add(1, Ordering::Relaxed) + 1);
    let stopped = || options.stop.load(Ordering::Relaxed);
    let all: Vec<Runs<'_, '_>> = works
        .iter()
        .map(|w| {
            let runs = Runs::new(w.job, (options.reference, options.rule), &tell)?.stopped_by(options.stop);
            Ok(if searched { runs.with_standards(options.standards) } else { runs })
        })
        .collect::<Result<_, CompareError>>()?;
    let total: f64 = works.iter().map(|w| w.weight).sum();
    let weights: Vec<f64> = works.iter().map(|w| w.weight / total).collect();
    let raced = match searched && options.replicas > 0 {
        true => search::over_all(&all, &weights, options, first)?,
        false => None,
    };
    let policies = raced
        .as_ref()
        .map_or_else(|| all.first().map_or_else(Vec::new, |r| r.policies.clone()), Raced::policies);
    let all: Vec<Runs<'_, '_>> = all.iter().map(|runs| runs.among(&policies)).collect();
    let numbers = first..first.saturating_add(options.replicas);
    let mut found: Vec<Findings<'_, '_, '_>> = Vec::new();
    for (work, runs) in all.iter().enumerate() {
        let as_asked = || {
            let (nominal, judged) = runs.nominal()?;
            let field = field(runs, numbers.clone(), judged.kind, &stopped)?;
            Ok(Findings::all(runs, (nominal, judged), field))
        };
        let of_work = raced.as_ref().map_or_else(as_asked, |raced| {
            raced.findings(work, runs, runs.nominal()?, numbers.clone(), &stopped)
        });
        match of_work {
            // Nothing of this one, but what is whole is the answer.
            Err(CompareError::Stopped) if !found.is_empty() => break,
            of_work => found.push(of_work?),
        }
        if stopped() {
            break;
        }
    }
    let complete = found.len() == works.len();
    if complete && raced.is_some() {
        look_back(&mut found, &weights, numbers, &stopped)?;
    }
    let mix = complete.then(|| mixed(&mix_runs(&found, &weights), raced.as_ref(), options));
    let comparisons: Result<_, CompareError> =
        found.into_iter().map(|found| conclude(found, options, &Second::NONE)).collect();
    Ok((comparisons?, mix))
}

/// Runs those policies in the final as well that the race left although they cost clearly less than the best that keeps the
/// limit of time there.
fn look_back(
    found: &mut [Findings<'_, '_, '_>],
    weights: &[f64],
    numbers: Range<u64>,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<(), CompareError> {
    for _ in 0..LOOKS_BACK {
        let left = left_behind(&mix_runs(found, weights));
        if left.is_empty() {
            break;
        }
        let columns: Vec<Vec<Column>> = found
            .iter()
            .map(|f| search::in_final(f.runs, &left, numbers.clone(), f.judged.kind, stopped))
            .collect::<Result<_, _>>()?;
        if stopped() {
            break;
        }
        for (found, columns) in found.iter_mut().zip(columns) {
            for (&policy, column) in left.iter().zip(columns) {
                (found.columns[policy], found.raced_out[policy]) = (column, false);
            }
        }
    }
    Ok(())
}

/// What the race left that costs clearly less than the best of the final that keeps the limit of time in every work.
fn left_behind(ran: &[MixRun<'_, '_, '_, '_>]) -> Vec<usize> {
    let Some(one) = ran.first().map(|r| r.found) else { return Vec::new() };
    let mean: Vec<f64> = (0..one.columns.len()).map(|p| MixCost::new(ran, p).mean_ratio()).collect();
    let in_final = |p: &usize| !one.raced_out[*p] && ran.iter().all(|r| r.keeps_time(*p));
    let best = (0..mean.len()).filter(in_final).map(|p| mean[p]).fold(1.0, f64::min);
    // The race was one: what it left is the same in all works.
    one.left_behind(|p| mean[p], best)
}

fn mixed(ran: &[MixRun<'_, '_, '_, '_>], raced: Option<&Raced>, options: &CompareOptions<'_>) -> Mix {
    let tried = raced.map(|r| r.tried);
    let Some(one) = ran.first().map(|r| r.found) else { unreachable!("a mix has works") };
    let (policies, reference) = (&one.runs.policies, one.runs.reference);
    let costs: Vec<MixCost> = (0..policies.len()).map(|p| MixCost::new(ran, p)).collect();
    let candidate = |p: usize| match one.raced_out[p] {
        true => Candidate::default(),
        false => Candidate {
            cost: costs[p].own.clone(),
            admissible: ran.iter().all(|r| r.keeps_time(p)),
            surely: ran.iter().all(|r| r.column(p).kept.surely),
        },
    };
    let candidates: Vec<Candidate> = (0..policies.len()).map(candidate).collect();
    let mut standing = ties::standing(&candidates);
    if let (Some(raced), Some(leader)) = (raced, standing.leader) {
        // Few replicas tell little apart: what costs no less than the reference does not tie where that does not.
        let as_the_reference = standing.ties.contains(&reference) || leader == reference;
        let more = ties::ties_in(&raced.costs, leader).into_iter();
        let more: Vec<usize> =
            more.filter(|&p| one.raced_out[p] && (as_the_reference || costs[p].mean_ratio() < 1.0)).collect();
        standing.ties.extend(more);
        standing.named &= standing.ties.is_empty();
    }
    // How fast each is over all works: the longest of its times beside the reference's.
    let columns: Vec<Column> = (0..policies.len()).map(|p| slowest(ran, p)).collect();
    let choice = Choice {
        policies,
        columns: &columns,
        reference,
        standing: &standing,
        kind: TimeKind::Makespan,
        apply: options.apply,
    };
    let chosen = choose(&choice).unwrap_or(reference);
    let rows: Vec<MixPolicy> =
        (0..policies.len()).map(|p| row(ran, &costs[p], &costs[reference], &standing, p)).collect();
    let answer =
        answer(&JudgedWork { ran, costs: &costs, standing: &standing, rows: &rows, chosen, tried }, options);
    let weight = |r: &MixRun<'_, '_, '_, '_>| MixWeight { workload: r.name(), weight: r.weight };
    let mut sorted = rows;
    sorted.sort_by(|a, b| {
        let over = |p: &MixPolicy| !p.over_limit_in.is_empty();
        over(a).cmp(&over(b)).then(a.power_ratio.median.total_cmp(&b.power_ratio.median))
    });
    Mix { weights: ran.iter().map(weight).collect(), policies: sorted, answer }
}

/// The policy's column in the work in which it takes longest against the reference, its time that ratio.
fn slowest(ran: &[MixRun<'_, '_, '_, '_>], policy: usize) -> Column {
    let median = |c: &Column| Interval::of(c.own.iter().map(|s| s.time_ratio)).median;
    let all = ran.iter().map(|r| r.column(policy));
    let worst = all.max_by(|a, b| median(a).total_cmp(&median(b)));
    let Some(worst) = worst else { unreachable!("a mix has works") };
    let mut column = worst.clone();
    column.own.iter_mut().for_each(|s| s.time = s.time_ratio);
    column
}

/// What a policy costs over the mix, by replica: the weighted mean of its power, in W.
struct MixCost {
    own: Vec<f64>,
    /// The reference's in the same replicas.
    reference: Vec<f64>,
}

impl MixCost {
    fn new(ran: &[MixRun<'_, '_, '_, '_>], policy: usize) -> MixCost {
        let power =
            |of: fn(&Column) -> &[Sample]| mean_power(ran.iter().map(|r| (r.weight, of(r.column(policy)))));
        MixCost { own: power(|c| &c.own), reference: power(|c| &c.reference) }
    }

    /// The mean of what it costs over the reference.
    fn mean_ratio(&self) -> f64 {
        let ratios = self.ratios();
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    }

    /// Its ratio to the reference's.
    fn ratio(&self) -> Interval {
        Interval::of(self.ratios().into_iter())
    }

    /// Its mean power, comparable with that of all other rows: if it ran in other replicas than the reference's row, its ratio times
    /// the mean power of that row.
    fn beside(&self, reference: &MixCost) -> Interval {
        let of = |watts: &[f64]| Interval::of(watts.iter().copied());
        match self.reference == reference.own {
            true => of(&self.own),
            false => rebased_figure(self.ratio(), of(&reference.own)),
        }
    }

    /// What it costs over the reference, by replica.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |(own, base): (&f64, &f64)| if *base > 0.0 { own / base } else { 1.0 };
        self.own.iter().zip(&self.reference).map(ratio).collect()
    }
}

fn row(
    ran: &[MixRun<'_, '_, '_, '_>],
    cost: &MixCost,
    reference: &MixCost,
    standing: &Standing,
    policy: usize,
) -> MixPolicy {
    let one = ran[0].found;
    let energy = |r: &MixRun<'_, '_, '_, '_>| {
        let column = r.column(policy);
        Interval::of(column.own.iter().zip(&column.reference).map(|(own, base)| own.energy_j / base.energy_j))
    };
    let worst = ran.iter().map(|r| (r.name(), energy(r))).max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let (workload, energy_ratio) = worst.unwrap_or_default();
    MixPolicy {
        policy: one.runs.policies[policy].text.clone(),
        mean_w: cost.beside(reference),
        power_ratio: cost.ratio(),
        over_limit_in: ran.iter().filter(|r| !r.keeps_time(policy)).map(MixRun::name).collect(),
        not_judged_in: ran.iter().filter(|r| r.is_not_judged(policy)).map(MixRun::name).collect(),
        raced_out_after: one.raced_out[policy].then_some(cost.own.len() as u64),
        best_share: standing.best_share[policy],
        worst: MixWorst { workload, energy_ratio },
    }
}

struct JudgedWork<'m> {
    ran: &'m [MixRun<'m, 'm, 'm, 'm>],
    costs: &'m [MixCost],
    standing: &'m Standing,
    rows: &'m [MixPolicy],
    chosen: usize,
    tried: Option<usize>,
}

fn answer(m: &JudgedWork<'_>, options: &CompareOptions<'_>) -> MixAnswer {
    let (policies, reference): (&[PolicySpec], usize) =
        (&m.ran[0].found.runs.policies, m.ran[0].found.runs.reference);
    let ratio = m.costs[m.chosen].ratios();
    let against = AgainstReference {
        ratio: Interval::of(ratio.iter().copied()),
        chance: share(ratio.iter().map(|r| *r < 1.0)),
    };
    let kept = m.chosen == reference;
    let tied = m.standing.ties.iter().chain(&m.standing.leader).filter(|&&p| p != m.chosen);
    let tied: Vec<String> = tied.map(|&p| policies[p].text.clone()).collect();
    let made = (options.apply)(&policies[m.chosen]);
    let lifts = made.as_ref().map_or_else(|_| Vec::new(), |commands| commands.lifts().to_vec());
    let (apply, why_not) = match made {
        Ok(commands) => (Some(commands.to_string()), None),
        Err(why) => (None, Some(why)),
    };
    MixAnswer {
        winner: m.standing.leader.filter(|_| m.standing.named).map(|p| policies[p].text.clone()),
        recommended: policies[m.chosen].text.clone(),
        tried: m.tried.map(|n| n as u64),
        against_reference: (!kept).then_some(against),
        text: text(m, policies, against, &tied),
        tied,
        apply,
        lifts,
        why_not,
    }
}

fn text(m: &JudgedWork<'_>, policies: &[PolicySpec], against: AgainstReference, tied: &[String]) -> String {
    // What others may equal is not called the best.
    let best = if tied.is_empty() { "Best" } else { "Recommended" };
    let of = m.tried.map_or_else(String::new, |n| format!(" of {n} tried"));
    let best = format!("{best}{of} over the mix of {} workloads", m.ran.len());
    let own = &m.rows[m.chosen];
    let equal = crate::answer::no_clear_difference(tied);
    if m.chosen == m.ran[0].found.runs.reference {
        if m.rows.iter().any(MixPolicy::is_not_judged) {
            return say::keep_unjudged(&own.policy) + ".";
        }
        return format!("{best}: keep {}, the reference{equal}.", own.policy);
    }
    let reference = &policies[m.ran[0].found.runs.reference].text;
    let saves = match crate::answer::change(against.ratio) {
        (text, -1) => format!("Uses {text} less energy than {reference}"),
        (text, 1) => format!("Uses {text} more energy than {reference}"),
        (text, _) => format!("Its energy against {reference}'s: {text}"),
    };
    let worst = &own.worst.workload;
    let least = match crate::answer::change(own.worst.energy_ratio) {
        (text, -1) => format!("it saves least in {worst}: {text}"),
        (text, 1) => format!("in {worst} it uses {text} more"),
        (text, _) => format!("its worst is {worst}: {text}"),
    };
    format!("{best}: {}. {saves}{equal}. It keeps the time limit in each workload; {least}.", own.policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: what needs half of the reference's power needs half of what stands in the reference's row, whatever the
    /// replicas that it ran in.
    #[test]
    fn mean_powers_of_all_rows_are_beside_one_reference() {
        let reference = MixCost { own: vec![6.0; 4], reference: vec![6.0; 4] };
        let elsewhere = MixCost { own: vec![2.0; 2], reference: vec![4.0; 2] };
        let there = MixCost { own: vec![2.0, 2.0, 2.5, 2.5], reference: vec![6.0; 4] };
        assert!((elsewhere.beside(&reference).median - 3.0).abs() < 1e-12);
        assert_eq!(there.beside(&reference), Interval::of([2.0, 2.0, 2.5, 2.5].into_iter()));
        assert_eq!(reference.beside(&reference).median, 6.0);
    }
}
