//! A race of policies over the same few replicas: those that cannot be the best are left early.
//!
//! A race is over one work or over several. Over several a policy must keep the limit of time in each, and costs the weighted
//! mean of its power.

use super::ladder::{Ladder, Rung, WHOLE};
use super::look::{self, RaceLook, RacedWork};
use super::{FinalSize, LadderChoice};
use crate::error::CompareError;
use crate::judge::{self, Column, Sample, TimeStanding, mean_power};
use crate::rule::Goal;
use crate::time::TimeKind;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use wattwise_policy::{DomainInfo, Khz};
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::platform;

/// Replicas after which the hopeless are left, and those of the whole race.
const FIRST_LOOK: u64 = 4;
pub(crate) const WHOLE_RACE: u64 = 16;
/// What is worse than the best by this share in every replica of the first look is hopeless.
const HOPELESS: f64 = 0.03;
/// Responses that are so many times the reference's in the first look are hopeless.
const HOPELESS_RESPONSES: f64 = 2.0;
/// Runs whose joules and times differ by no more than this share are one: sums of floating-point numbers in another order.
const SAME: f64 = 1e-9;
/// How near to the limit of time one comes at least that is in the final for it.
const NEAR: f64 = 0.5;

/// A policy that took part.
pub(crate) struct Entrant {
    pub(crate) rung: Rung,
    /// By work.
    pub(crate) columns: Vec<Column>,
    /// It does not keep the limit of time.
    pub(crate) slow: bool,
}

impl Entrant {
    /// Whether it ran in all of the race's replicas.
    pub(crate) fn ran_the_race(&self) -> bool {
        is_whole(&self.columns)
    }

    /// What it came to in a work. Too few replicas do not show that the limit of time is kept; but what was left for its cost
    /// was not found slow.
    pub(crate) fn column(&self, work: usize) -> Column {
        let column = &self.columns[work];
        let admissible = if self.ran_the_race() { column.kept.admissible } else { !self.slow };
        Column { kept: TimeStanding { admissible, ..column.kept.clone() }, ..column.clone() }
    }

    /// Whether it keeps the limit of time in each work, as far as it ran.
    fn keeps_time(&self) -> bool {
        self.columns.iter().all(|c| c.kept.admissible)
    }
}

/// A policy's samples, by work.
type WorkSamples = Vec<Vec<Sample>>;

/// One that runs in the final.
pub(crate) struct Finalist {
    pub(crate) entrant: usize,
    /// It is there in case this one does not keep the limit of time in more replicas.
    pub(crate) instead_of: Option<usize>,
}

/// A policy as somebody may put it in force, or why nobody can.
pub(crate) type Apply<'f> = &'f wattwise_replay::apply::Apply<'f>;

/// The race.
pub(crate) struct Race<'f, 'a, 'j> {
    works: Vec<RacedWork<'f, 'a, 'j>>,
    stopped: &'f (dyn Fn() -> bool + Sync),
    apply: Apply<'f>,
    domains: Vec<DomainInfo>,
    pub(super) entrants: Vec<Entrant>,
    /// Texts, and speeds that a ladder's limits come to on each domain: what was tried.
    seen: BTreeSet<String>,
    limits: BTreeSet<(String, Vec<Khz>)>,
}

impl<'f, 'a, 'j> Race<'f, 'a, 'j> {
    /// Over works that have the same machine and policies.
    pub(crate) fn new(
        works: Vec<RacedWork<'f, 'a, 'j>>,
        stopped: &'f (dyn Fn() -> bool + Sync),
        apply: Apply<'f>,
    ) -> Self {
        let domains = works.first().map_or_else(Vec::new, |w| platform(w.runs.job.machine).domains);
        let (entrants, seen, limits) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Race { works, stopped, apply, domains, entrants, seen, limits }
    }

    pub(crate) fn into_entrants(self) -> Vec<Entrant> {
        self.entrants
    }

    fn goal(&self) -> Goal {
        self.works[0].runs.rule.goal
    }

    fn policies(&self) -> &[PolicySpec] {
        &self.works[0].runs.policies
    }

    fn reference(&self) -> &PolicySpec {
        self.works[0].reference()
    }

    /// Runs policies that have not run yet, and keeps what they came to.
    pub(crate) fn enter(&mut self, rungs: Vec<Rung>) -> Result<(), CompareError> {
        let rungs: Vec<Rung> = rungs.into_iter().filter(|r| self.is_new(r)).collect();
        if rungs.is_empty() || (self.stopped)() {
            return Ok(());
        }
        let mut first = self.look(&rungs, 0..FIRST_LOOK)?;
        if first.iter().any(|look| look.reference.is_empty()) {
            return Ok(());
        }
        let mut looked: Vec<(Rung, WorkSamples)> = Vec::new();
        for (rung, own) in rungs.into_iter().zip(by_policy(&mut first)) {
            if !self.is_of_the_search(&rung) || !self.ran_before(&own, &looked) {
                looked.push((rung, own));
            }
        }
        let columns = self.columns(looked.clone(), &first);
        let (mut go_on, mut left) = (Vec::new(), Vec::new());
        for ((rung, own), columns) in looked.into_iter().zip(columns) {
            let slow = self.is_too_slow(&columns);
            let out = rung.policy.text != self.reference().text && (slow || self.is_too_dear(&columns));
            if out { left.push(Entrant { rung, columns, slow }) } else { go_on.push((rung, own)) }
        }
        let rungs: Vec<Rung> = go_on.iter().map(|(rung, _)| rung.clone()).collect();
        let mut rest = self.look(&rungs, FIRST_LOOK..WHOLE_RACE)?;
        for ((_, own), more) in go_on.iter_mut().zip(by_policy(&mut rest)) {
            own.iter_mut().zip(more).for_each(|(own, more)| own.extend(more));
        }
        let whole: Vec<RaceLook> =
            first.into_iter().zip(rest).map(|(first, rest)| rest.after(first)).collect();
        for (rung, columns) in rungs.into_iter().zip(self.columns(go_on, &whole)) {
            // Where it was stopped meanwhile, too few replicas are no verdict.
            let slow = match is_whole(&columns) {
                true => columns.iter().any(|c| !c.kept.admissible),
                false => self.is_too_slow(&columns),
            };
            self.entrants.push(Entrant { rung, columns, slow });
        }
        self.entrants.extend(left);
        Ok(())
    }

    /// Whether another policy ran the same in all works.
    fn ran_before(&self, own: &WorkSamples, looked: &[(Rung, WorkSamples)]) -> bool {
        let raced = self.entrants.iter().map(|e| e.columns.iter().map(|c| &c.own).collect());
        let looked = looked.iter().map(|(_, other)| other.iter().collect());
        let mut before = raced.chain(looked);
        before.any(|other: Vec<&Vec<Sample>>| own.iter().zip(other).all(|(own, other)| ran_alike(own, other)))
    }

    /// Whether a policy can be put in force and has not run yet: limits between the same two levels are one.
    fn is_new(&mut self, rung: &Rung) -> bool {
        let is_reference = rung.policy.text == self.reference().text;
        let asked = self.policies().iter().any(|p| p.text == rung.policy.text);
        if !is_reference && !asked && (self.apply)(&rung.policy).is_err() {
            return false;
        }
        let limits = self.domains.iter().map(|d| rung.policy.limits.range(d).1).collect();
        let is_limit = rung.percent != WHOLE;
        let is_other = self.limits.insert((rung.ladder.clone(), limits));
        self.seen.insert(rung.policy.text.clone()) && (!is_limit || is_other)
    }

    /// Whether nobody asked for a policy by name.
    fn is_of_the_search(&self, rung: &Rung) -> bool {
        self.policies().iter().all(|p| p.text != rung.policy.text)
    }

    /// Policies in some of the race's replicas, by work.
    fn look(&self, rungs: &[Rung], numbers: Range<u64>) -> Result<Vec<RaceLook>, CompareError> {
        look::look(&self.works, rungs, numbers, self.stopped)
    }

    /// What policies and their samples come to: by policy, in the order given, its column in each work.
    fn columns(&self, policies: Vec<(Rung, WorkSamples)>, looks: &[RaceLook]) -> Vec<Vec<Column>> {
        let references: Vec<judge::Reference> =
            self.works.iter().zip(looks).map(|(work, look)| work.held_against(look)).collect();
        wattwise_threads::map(policies, |(rung, own): (Rung, WorkSamples)| {
            let is_reference = rung.policy.text == self.reference().text;
            let of = |((work, own), reference): ((&RacedWork<'_, '_, '_>, _), _)| {
                judge::column(work.runs, (own, reference), is_reference, work.kind)
            };
            self.works.iter().zip(own).zip(&references).map(of).collect()
        })
    }

    /// Whether the first look leaves no hope that a policy keeps the limit of time in each work: in one it is far over it, or its
    /// responses are over it in most of several. In one of them that may be chance.
    fn is_too_slow(&self, columns: &[Column]) -> bool {
        let works = || self.works.iter().zip(columns);
        let is_over = |work: &RacedWork<'_, '_, '_>, column: &Column, times: f64| {
            let most = times * (1.0 + work.runs.rule.max_slowdown);
            column.kept.responses.as_ref().is_some_and(|r| r.excess > most)
        };
        let is_late = |work: &RacedWork<'_, '_, '_>, column: &Column| {
            work.kind == TimeKind::Makespan && column.own.iter().all(|s| !s.within)
        };
        let over = works().filter(|(work, column)| is_over(work, column, 1.0)).count();
        works().any(|(work, column)| is_late(work, column) || is_over(work, column, HOPELESS_RESPONSES))
            || columns.len() > 1 && 2 * over > columns.len()
    }

    /// Whether it leaves no hope that it is the best.
    fn is_too_dear(&self, columns: &[Column]) -> bool {
        let best = self.least().min(1.0);
        self.cost_ratios(columns).iter().all(|r| *r > best * (1.0 + HOPELESS))
    }

    /// What a policy costs over the reference's, by replica.
    fn cost_ratios(&self, columns: &[Column]) -> Vec<f64> {
        if let [column] = columns {
            return column.cost_ratios(self.goal());
        }
        let own = self.mean_power(columns, |c| &c.own);
        let reference = self.mean_power(columns, |c| &c.reference);
        own.iter().zip(reference).map(|(own, base)| if base > 0.0 { own / base } else { 1.0 }).collect()
    }

    /// What each entrant cost that ran the whole race and kept the limit of time, by replica.
    pub(crate) fn costs(&self) -> Vec<Option<Vec<f64>>> {
        let cost = |e: &Entrant| match &e.columns[..] {
            [column] => column.cost(self.goal()),
            several => self.mean_power(several, |c| &c.own),
        };
        self.entrants.iter().map(|e| (e.ran_the_race() && !e.slow).then(|| cost(e))).collect()
    }

    fn mean_power(&self, columns: &[Column], of: fn(&Column) -> &[Sample]) -> Vec<f64> {
        mean_power(self.works.iter().map(|w| w.weight).zip(columns.iter().map(of)))
    }

    /// An entrant's mean cost over the reference's.
    fn mean(&self, entrant: usize) -> f64 {
        let ratios = self.cost_ratios(&self.entrants[entrant].columns);
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    }

    /// The mean cost of a policy over the reference's, where it ran.
    pub(crate) fn ratio(&self, rung: &Rung) -> Option<f64> {
        (0..self.entrants.len())
            .find(|&e| self.entrants[e].rung.policy.text == rung.policy.text)
            .map(|e| self.mean(e))
    }

    /// Those that ran the whole race and keep the limit of time, the cheapest first.
    fn admissible(&self) -> Vec<usize> {
        let ran = |e: &usize| !self.entrants[*e].slow && self.entrants[*e].ran_the_race();
        let mut all: Vec<usize> = (0..self.entrants.len()).filter(ran).collect();
        let words = |e: usize| self.entrants[e].rung.policy.text.len();
        all.sort_by(|&a, &b| self.mean(a).total_cmp(&self.mean(b)).then(words(a).cmp(&words(b))));
        all
    }

    fn least(&self) -> f64 {
        self.admissible().first().map_or(f64::INFINITY, |&e| self.mean(e))
    }

    /// The cheapest so far.
    pub(crate) fn best(&self) -> Option<Rung> {
        self.admissible().first().map(|&e| self.entrants[e].rung.clone())
    }

    /// The ladders of the reference, of the highest speed, and of the cheapest others.
    pub(crate) fn ladders(&self, choice: &LadderChoice) -> Vec<Ladder> {
        let whole = |e: &usize| self.entrants[*e].rung.percent == WHOLE && self.mean(*e) <= choice.cost;
        let cheapest = self.admissible().into_iter().filter(whole).map(|e| &self.entrants[e].rung.policy);
        let mut ladders: Vec<Ladder> = vec![Ladder { base: self.reference().clone() }];
        let is_new = |ladders: &[Ladder], p: &PolicySpec| ladders.iter().all(|l| l.base.text != p.text);
        let add = |ladders: &mut Vec<Ladder>, p: &PolicySpec| {
            if p.limits.is_none() {
                ladders.push(Ladder { base: p.clone() });
            }
        };
        let fastest = self.policies().iter().find(|p| p.text == "performance");
        fastest.filter(|p| is_new(&ladders, p)).into_iter().for_each(|p| add(&mut ladders, p));
        let (mut left, mut with_states) = (choice.most, choice.with_states);
        for policy in cheapest {
            let has_states = usize::from(policy.deepest.is_some());
            if left > 0 && with_states >= has_states && is_new(&ladders, policy) {
                add(&mut ladders, policy);
                (left, with_states) = (left - 1, with_states - has_states);
            }
        }
        ladders
    }

    /// The ladders that are not among these, of the policies that keep the limit of time as they are.
    pub(crate) fn unclimbed(&self, climbed: &[Ladder]) -> Vec<Ladder> {
        let policies = self.admissible().into_iter().map(|e| &self.entrants[e].rung.policy);
        let others = policies.filter(|p| p.limits.is_none() && climbed.iter().all(|l| l.base.text != p.text));
        others.map(|p| Ladder { base: p.clone() }).collect()
    }

    fn of(&self, ladder: &Ladder) -> impl Iterator<Item = usize> {
        (0..self.entrants.len()).filter(|&e| self.entrants[e].rung.ladder == ladder.base.text)
    }

    /// Whether the ladder's lowest limit so far leaves hope for a lower one: it keeps the limit of time, and costs no more
    /// than the one above it, or not much.
    pub(crate) fn goes_on(&self, ladder: &Ladder) -> bool {
        let mut rungs: Vec<usize> = self.of(ladder).collect();
        rungs.sort_by_key(|&e| self.entrants[e].rung.percent);
        match rungs[..] {
            [lowest, above, ..] => {
                !self.entrants[lowest].slow && self.mean(lowest) < self.mean(above) * (1.0 + HOPELESS)
            }
            _ => true,
        }
    }

    /// The ladder's cheapest rung that keeps the limit of time.
    fn best_of(&self, ladder: &Ladder) -> Option<usize> {
        self.admissible().into_iter().find(|&e| self.entrants[e].rung.ladder == ladder.base.text)
    }

    /// Whether the ladder's best is worse than the best of all by no more than a share.
    pub(crate) fn is_near(&self, ladder: &Ladder, worse: f64) -> bool {
        self.best_of(ladder).is_some_and(|e| self.mean(e) <= self.least() * (1.0 + worse))
    }

    /// Whether only the ladder's first step down was tried, and was too slow: how good a smaller one is, nothing tells yet.
    pub(crate) fn is_unclimbed(&self, ladder: &Ladder) -> bool {
        let rungs: Vec<&Entrant> = self.of(ladder).map(|e| &self.entrants[e]).collect();
        let tried = |e: &&&Entrant| e.rung.percent != WHOLE;
        rungs.iter().filter(tried).count() == 1 && rungs.iter().filter(tried).all(|e| e.slow)
    }

    /// The limits a step below and above the ladder's best; below its policy as it is where none keeps the limit of time so far.
    pub(crate) fn around(&self, ladder: &Ladder, step: u32) -> Vec<Rung> {
        let at = self.best_of(ladder).map_or(WHOLE, |best| self.entrants[best].rung.percent);
        [at.saturating_sub(step), at + step].into_iter().filter_map(|p| ladder.rung(p)).collect()
    }

    /// Those that would be better than the best but do not surely keep the limit of time, the surest first.
    fn nearly(&self) -> Vec<usize> {
        let (least, of) = (self.least(), |e: &usize| (self.nearness(*e), self.mean(*e)));
        let nearly = |e: &usize| {
            let entrant = &self.entrants[*e];
            entrant.ran_the_race() && entrant.slow && self.nearness(*e) >= NEAR && self.mean(*e) < least
        };
        let mut all: Vec<usize> = (0..self.entrants.len()).filter(nearly).collect();
        all.sort_by(|a, b| surest_first(of(a), of(b)));
        all
    }

    /// The surest of them.
    pub(crate) fn surest(&self) -> Option<Rung> {
        self.nearly().first().map(|&e| self.entrants[e].rung.clone())
    }

    /// How near an entrant comes to the limit of time in the work where it is worst: 1 keeps it.
    fn nearness(&self, entrant: usize) -> f64 {
        let of = |(work, column): (&RacedWork<'_, '_, '_>, &Column)| {
            nearness(&column.kept, column.within_share(), 1.0 + work.runs.rule.max_slowdown)
        };
        self.works.iter().zip(&self.entrants[entrant].columns).map(of).fold(1.0, f64::min)
    }

    /// The limit next above the cheapest of all, in its ladder.
    fn safer(&self, best: usize) -> Option<usize> {
        let rung = &self.entrants[best].rung;
        let above = |e: &usize| {
            let other = &self.entrants[*e];
            other.rung.ladder == rung.ladder && other.rung.percent > rung.percent && other.keeps_time()
        };
        (0..self.entrants.len()).filter(above).min_by_key(|&e| self.entrants[e].rung.percent)
    }

    /// The reference, the best of each ladder that is near the best of all, a safer limit beside that one, and those that
    /// would be better but do not surely keep the limit of time.
    pub(crate) fn finalists(&self, size: &FinalSize) -> Vec<Finalist> {
        let plain = |entrant| Finalist { entrant, instead_of: None };
        let is_reference = |e: &usize| self.entrants[*e].rung.policy.text == self.reference().text;
        let mut all: Vec<Finalist> = (0..self.entrants.len()).filter(is_reference).map(plain).collect();
        let (admissible, least) = (self.admissible(), self.least());
        let mut ladders: BTreeSet<&str> = BTreeSet::new();
        for &e in &admissible {
            let is_whole = self.entrants[e].rung.percent == WHOLE;
            let is_near = self.mean(e) <= least * (1.0 + size.worse);
            let is_first = ladders.insert(&self.entrants[e].rung.ladder);
            if is_near && (is_first || is_whole) && !is_reference(&e) && all.len() <= size.most {
                all.push(plain(e));
            }
        }
        if size.safer
            && let Some(&best) = admissible.first()
            && let Some(safer) = self.safer(best)
            && all.iter().all(|f| f.entrant != safer)
        {
            all.push(Finalist { entrant: safer, instead_of: Some(best) });
        }
        all.extend(self.nearly().into_iter().take(size.nearly).map(plain));
        all
    }
}

/// Whether a policy ran in all of the race's replicas.
fn is_whole(columns: &[Column]) -> bool {
    columns.iter().all(|c| c.own.len() as u64 == WHOLE_RACE)
}

/// Takes the samples out of looks, by policy.
fn by_policy(looks: &mut [RaceLook]) -> Vec<WorkSamples> {
    let policies = looks.first().map_or(0, |look| look.own.len());
    let mut of_work: Vec<_> =
        looks.iter_mut().map(|look| std::mem::take(&mut look.own).into_iter()).collect();
    (0..policies).map(|_| of_work.iter_mut().filter_map(Iterator::next).collect()).collect()
}

/// How near a policy comes to the limit of time: 1 within it, 0 far over it. Of makespan it is the share of the replicas that
/// are within. Responses are judged over all replicas together: it is 1 less the share of the limit by which they exceed it. A
/// kind of responses that is rare may exceed it in a few replicas and not in many.
fn nearness(kept: &TimeStanding, within_share: f64, limit: f64) -> f64 {
    if kept.admissible {
        return 1.0;
    }
    if kept.missed.iter().any(|m| m.slower) {
        return 0.0;
    }
    match kept.responses.as_ref().filter(|r| r.slower) {
        Some(responses) => (2.0 - responses.excess / limit).clamp(0.0, 1.0),
        None => within_share,
    }
}

/// Two policies near the limit of time, each by how near it comes and by its mean cost. One of 16 replicas over the limit is
/// what chance does to a policy that keeps it in 97 of 100.
fn surest_first(a: (f64, f64), b: (f64, f64)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1))
}

/// Whether two policies ran the same in the replicas that both have: a limit that never binds is no policy of its own.
fn ran_alike(a: &[Sample], b: &[Sample]) -> bool {
    let same = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs();
    a.iter().zip(b).all(|(a, b)| same(a.energy_j, b.energy_j) && same(a.elapsed_s, b.elapsed_s))
}

#[cfg(test)]
mod tests {
    use super::super::RACE;
    use super::*;
    use crate::result::{MissedTask, Responses};
    use crate::rule::Rule;
    use crate::runs::Runs;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use wattwise_policy::PowerSource;
    use wattwise_replay::{apply, job::ReplayJob, library};

    /// The dearest went first once, and a build on a model of an Apple M1 got 8 % too dear a policy.
    #[test]
    fn of_those_near_the_limit_the_surest_comes_first_and_then_the_cheapest() {
        let mut close = [(0.875, 0.79), (0.9375, 0.89), (0.625, 0.78), (0.9375, 0.81)];
        close.sort_by(|a, b| surest_first(*a, *b));
        assert_eq!(close, [(0.9375, 0.81), (0.9375, 0.89), (0.875, 0.79), (0.625, 0.78)]);
    }

    /// Responses that one rare kind takes to 1.26 times the reference's in 16 replicas may be within 1.1 in 64; twice the limit is
    /// hopeless, and so are missed deadlines.
    #[test]
    fn responses_are_near_the_limit_by_how_much_they_exceed_it() {
        let slower = |excess| Some(Responses { slower: true, excess, ..Responses::default() });
        let missed =
            |slower| vec![MissedTask { task: "video".into(), share: 0.1, reference_share: 0.0, slower }];
        let of = |responses, missed| {
            let kept = TimeStanding {
                admissible: false,
                surely: false,
                responses,
                others: Responses::default(),
                missed,
            };
            nearness(&kept, 0.125, 1.1)
        };
        assert!((of(slower(1.26), missed(false)) - (2.0 - 1.26 / 1.1)).abs() < 1e-12);
        assert!(of(slower(1.26), Vec::new()) > NEAR && of(slower(1.8), Vec::new()) < NEAR);
        assert_eq!(of(slower(2.4), Vec::new()), 0.0);
        assert_eq!(of(slower(1.26), missed(true)), 0.0);
        assert_eq!(of(None, Vec::new()), 0.125, "of makespan the share of the replicas");
    }

    /// A power limit that never binds in the light work and does in the heavy one is a policy of its own over both; one that
    /// binds in neither is the policy without it.
    #[test]
    fn a_limit_that_binds_in_one_work_is_a_policy_over_both() {
        let machine = library::machine("alderlake-p-laptop").expect("bundled");
        let policy = |text: &str| PolicySpec::parse(text).expect("a policy");
        let asked = [policy("performance")];
        let works = ["ping-pong", "parallel-build"]
            .map(|w| library::workload(w, &Default::default()).expect("bundled"));
        let jobs = works.each_ref().map(|workload| ReplayJob {
            machine: &machine,
            workload,
            policies: &asked,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: wattwise_figure::Budget::default(),
        });
        let tell = || {};
        let runs =
            jobs.each_ref().map(|job| Runs::new(job, (&asked[0], Rule::default()), &tell).expect("a job"));
        let (stopped, apply) = (|| false, apply::on(&machine));
        let rungs = ["performance", "performance+power=15W", "performance+power=500W"]
            .map(|text| Rung::base(&policy(text)));
        let entered = |all: &[&Runs<'_, '_>]| -> Vec<String> {
            let work = |runs| RacedWork::new(runs, 1.0, RACE).expect("a work");
            let mut race = Race::new(all.iter().copied().map(work).collect(), &stopped, &apply);
            race.enter(rungs.to_vec()).expect("a race");
            race.into_entrants().into_iter().map(|e| e.rung.policy.text).collect()
        };
        let [light, heavy] = &runs;
        assert_eq!(entered(&[light]), ["performance"]);
        assert_eq!(entered(&[light, heavy]), ["performance", "performance+power=15W"]);
    }
    /// Once a race that was to have 16 replicas was stopped in its tenth, all but the reference were over the limit of time "in 0 of
    /// 10 replicas": fewer than 16 show no response within it.
    #[test]
    fn a_race_that_is_stopped_finds_nothing_slow_by_the_number_of_its_replicas() {
        let machine = library::machine("alderlake-p-laptop").expect("bundled");
        let policy = |text: &str| PolicySpec::parse(text).expect("a policy");
        let asked = [policy("performance"), policy("performance+max=95%")];
        let workload = library::workload("desktop", &Default::default()).expect("bundled");
        let job = ReplayJob {
            machine: &machine,
            workload: &workload,
            policies: &asked,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: wattwise_figure::Budget::default(),
        };
        let tell = || {};
        let runs = Runs::new(&job, (&asked[0], Rule::default()), &tell).expect("a job");
        let looks = AtomicU64::new(0);
        // Once for the whole, then for each replica and each policy in it: the first look, and half of what follows it.
        let stopped = || looks.fetch_add(1, Relaxed) > 1 + 3 * FIRST_LOOK + WHOLE_RACE - FIRST_LOOK + 12;
        let apply = apply::on(&machine);
        let mut race = Race::new(vec![RacedWork::new(&runs, 1.0, RACE).expect("a work")], &stopped, &apply);
        race.enter(asked.iter().map(Rung::base).collect()).expect("a race");
        let [_, other] = &race.into_entrants()[..] else { panic!("two policies") };
        let ran = other.columns[0].own.len() as u64;
        assert!((FIRST_LOOK + 1..WHOLE_RACE).contains(&ran), "{ran}");
        assert!(!other.slow && other.column(0).kept.admissible);
    }
}
