//! The best policies over several works: those of each work race in all of them.

use super::ladder::Rung;
use super::race::{Entrant, Race};
use super::{ONE_OF_SEVERAL, RACE, raced};
use crate::error::CompareError;
use crate::options::CompareOptions;
use crate::runs::Runs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use wattwise_replay::spec::PolicySpec;

/// Policies in the final at most, beside the reference and the highest speed.
const FINALISTS: usize = 6;
/// Of those that do not keep the limit of time in every work, so many.
const OVER: usize = 2;
/// Steps around the best over all works, in per cent of the highest speed.
const STEPS: [u32; 2] = [5, 2];

/// The policies of the final, the reference first.
pub(crate) struct OverAll {
    pub(crate) policies: Vec<PolicySpec>,
    /// Policies that ran in any of the works.
    pub(crate) tried: usize,
}

/// Races in each work, then of what came out of them over all works.
pub(crate) fn over_all(
    all: &[Runs<'_, '_>],
    weights: &[f64],
    options: &CompareOptions<'_>,
    first: u64,
) -> Result<OverAll, CompareError> {
    let stopped = || options.stop.load(Ordering::Relaxed);
    let mut races: Vec<Race<'_, '_, '_>> = Vec::new();
    for runs in all {
        let kind = runs.kind()?;
        let mut race = Race::new(runs, kind, first.wrapping_add(RACE), &stopped, options.apply);
        races.iter().flat_map(Race::lefts).for_each(|text| race.leave_out(text));
        raced(runs, &mut race, &ONE_OF_SEVERAL)?;
        races.push(race);
    }
    let mut rungs: BTreeMap<String, Rung> = BTreeMap::new();
    for race in &races {
        let chosen = race.finalists().into_iter().map(|f| race.rung(f.entrant).clone());
        let ladder = race.coarse().cloned();
        rungs.extend(chosen.chain(ladder).map(|rung| (rung.policy.text.clone(), rung)));
    }
    let rungs: Vec<Rung> = rungs.into_values().collect();
    enter(&mut races, &rungs)?;
    for step in STEPS {
        let best = ranked(&races, weights, true).into_iter().next();
        let Some((_, best)) = best else { break };
        let around: Vec<Rung> = races.iter().flat_map(|race| race.beside(&best, step)).collect();
        enter(&mut races, &around)?;
    }
    let kept = ranked(&races, weights, true).into_iter().take(FINALISTS);
    let over = ranked(&races, weights, false).into_iter().take(OVER);
    let ranked = kept.chain(over).map(|(_, rung)| rung.policy);
    let runs = &all[0];
    let reference = runs.policies[runs.reference].clone();
    let fastest = runs.policies.iter().find(|p| p.text == "performance").cloned();
    let mut policies = vec![reference];
    for policy in ranked.chain(fastest) {
        if policies.iter().all(|p| p.text != policy.text) {
            policies.push(policy);
        }
    }
    let tried: BTreeSet<&str> = races.iter().flat_map(Race::texts).collect();
    Ok(OverAll { policies, tried: tried.len() })
}

/// Runs policies in every work, but for those that left a race: only one that ran all races whole is ranked.
fn enter(races: &mut [Race<'_, '_, '_>], rungs: &[Rung]) -> Result<(), CompareError> {
    let mut rungs = rungs.to_vec();
    rungs.retain(|rung| !races.iter().any(|race| race.left(&rung.policy.text)));
    for race in races {
        race.enter(rungs.clone())?;
        rungs.retain(|rung| !race.left(&rung.policy.text));
    }
    Ok(())
}

/// The policies that ran the whole race in all works, by the weighted mean of their power: those that keep the limit of time
/// in each, or those that keep it in at least half of them, but not in all.
fn ranked(races: &[Race<'_, '_, '_>], weights: &[f64], all_kept: bool) -> Vec<(f64, Rung)> {
    let Some(one) = races.first() else { return Vec::new() };
    let power = |rung: &Rung| -> Option<(f64, Rung)> {
        let found: Vec<_> = races.iter().map(|r| r.whole(&rung.policy.text)).collect::<Option<_>>()?;
        let kept = found.iter().filter(|e| e.column.kept.admissible).count();
        let chosen =
            if all_kept { kept == races.len() } else { kept < races.len() && kept * 2 >= races.len() };
        let powers = found.iter().zip(weights).map(|(e, weight)| weight * mean_power(e));
        chosen.then(|| (powers.sum(), rung.clone()))
    };
    let mut all: Vec<(f64, Rung)> = one.rungs().filter_map(power).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// The mean power over the window, in W.
fn mean_power(entrant: &Entrant) -> f64 {
    let own = &entrant.column.own;
    let power = own.iter().map(|s| if s.window_s > 0.0 { s.energy_j / s.window_s } else { 0.0 });
    power.sum::<f64>() / own.len().max(1) as f64
}

impl Race<'_, '_, '_> {
    fn rung(&self, entrant: usize) -> &Rung {
        &self.entrants[entrant].rung
    }

    fn rungs(&self) -> impl Iterator<Item = &Rung> {
        self.entrants.iter().map(|e| &e.rung)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.rungs().map(|r| r.policy.text.as_str())
    }

    /// The limits at whole tens that keep the limit of time.
    fn coarse(&self) -> impl Iterator<Item = &Rung> {
        let kept = |e: &&Entrant| {
            e.rung.percent.is_multiple_of(10)
                && e.column.kept.admissible
                && e.rung.policy.limits.max.is_some()
        };
        self.entrants.iter().filter(kept).map(|e| &e.rung)
    }

    /// The limits a step below and above a policy's.
    fn beside(&self, rung: &Rung, step: u32) -> Vec<Rung> {
        let ladders = self.ladders(usize::MAX).into_iter().filter(|l| l.base.text == rung.ladder);
        let percents = [rung.percent.saturating_sub(step), rung.percent + step];
        ladders.flat_map(|l| percents.into_iter().filter_map(move |p| l.rung(p))).collect()
    }

    fn entrant(&self, text: &str) -> Option<&Entrant> {
        self.entrants.iter().find(|e| e.rung.policy.text == text)
    }

    /// A policy that ran the whole race.
    fn whole(&self, text: &str) -> Option<&Entrant> {
        self.entrant(text).filter(|e| e.ran_the_race())
    }

    /// The policies that took part and did not run to the end.
    fn lefts(&self) -> impl Iterator<Item = &str> {
        let left = self.entrants.iter().filter(|e| !e.ran_the_race());
        left.map(|e| e.rung.policy.text.as_str())
    }

    /// Whether a policy is one of them.
    fn left(&self, text: &str) -> bool {
        self.entrant(text).is_some_and(|e| !e.ran_the_race())
    }
}
