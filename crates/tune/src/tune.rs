//! Tuning from beginning to end.
//!
//! 1. The recordings are split, by name or by the seed: half of them are the test set, and nothing looks at them.
//! 2. The search ([`conduct`](mod@crate::conduct)) sees the others in [`SEARCH_REPLICAS`] draws of everything that is uncertain.
//! 3. The best of the front and the defaults are looked at once more on the same recordings, in [`CONFIRM_REPLICAS`] other
//!    draws: what was best by luck falls back. The one with the least is the winner.
//! 4. The test set is opened, once: the winner, its defaults and the reference policy in as many other draws as were asked for.
//! 5. The winner is worth it if on the test set it is within the limits and saves for certain, and at least
//!    1 %, against the reference policy and against its own defaults. Else the verdict says what to keep.
//!
//! The log has the winner before the test set is opened, and then what was seen there, so what was broken off anywhere goes on
//! to the same result. Who stops it ([`Hooks::stop`]) gets the best so far, as such, and opens no test set by that.

use crate::conduct::{Hooks, SearchOutcome, SearchProgress, Spend, Stage, search};
use crate::field::{Fate, Field, FieldJob, FieldLimits, Unusable};
use crate::gain::{Gain, gain};
use crate::log::{KnownTrials, Line, Log};
use crate::result::*;
use crate::search::{Method, Score};
use crate::space::Space;
use crate::verdict::{Words, of_stopped, verdict};
use std::ops::Range;
use wattwise_advice::compare::CompareError;
use wattwise_advice::paired::{Look, Ratios};
use wattwise_advice::ties::NOTICEABLE;
use wattwise_figure::Random;
use wattwise_replay::apply::Apply;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// Draws that the search sees.
pub const SEARCH_REPLICAS: u64 = 8;
/// Draws in which the best are looked at once more.
pub const CONFIRM_REPLICAS: u64 = 16;
/// The best that are looked at once more, at a time; how often the next best may be.
const FINALISTS: usize = 8;
const ROUNDS: usize = 8;
/// Looks at the test set between two lines of the log.
const TEST_PIECE: usize = 64;
/// Each seed has so many numbers for its draws.
const NUMBERS: u64 = 1 << 20;

/// One recording on one machine.
pub struct TuneInput<'a> {
    /// What is replayed. Its policies are not asked for.
    pub job: &'a ReplayJob<'a>,
    /// What others are held against there.
    pub reference: &'a PolicySpec,
    /// The recording's number: all of a number are in the same set.
    pub recording: usize,
}

/// What is to be tuned, and how.
pub struct Tuning<'a> {
    /// All recordings on all machines.
    pub inputs: &'a [TuneInput<'a>],
    /// By recording, whether it is of the test set.
    pub test: &'a [bool],
    /// What is searched.
    pub space: &'a Space,
    /// What a policy may come to.
    pub limits: FieldLimits,
    /// Replicas of the test.
    pub replicas: u64,
    /// Of the search and the draws.
    pub seed: u64,
    /// How a policy is put in force, or why it cannot be.
    pub apply: &'a Apply<'a>,
    /// How it is searched.
    pub method: Method,
    /// How much it may take.
    pub spend: Spend,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// No recording can be looked at.
    #[error("no recording of the search can be replayed; of the first: {why}")]
    NoCase {
        /// Why.
        why: String,
    },
    /// No policy was looked at in all cells.
    #[error("no policy of '{space}' ended its work in every case{why}")]
    NoTrial {
        /// The space.
        space: String,
        /// Why one did not.
        why: String,
    },
    /// No policy is within the limits.
    #[error(
        "no policy of '{space}' is within the limits; nearest is {nearest}, {by}: widen the space, or the limits (--max-slowdown, --max-p99)"
    )]
    NoneAdmissible {
        /// The space.
        space: String,
        /// The policy that misses them by least.
        nearest: String,
        /// What it comes to.
        by: String,
    },
    /// What the log says and what comes of its work, its machines and this program now are not the same.
    #[error(
        "the log's figures are not what they come to now: a recording, a machine or wattwise has changed since; start anew without --resume"
    )]
    Changed,
}

/// Tunes. `known` is what an earlier part had come to that was broken off; its log is gone on with.
///
/// # Errors
/// No recording can be replayed, no policy is within the limits, or the log is of something else.
pub fn tune(
    t: &Tuning<'_>,
    hooks: &Hooks<'_>,
    (log, known): (&mut Log, &KnownTrials),
) -> Result<TuneResult, TuneError> {
    let mut cases: Vec<CaseResult> = t.inputs.iter().map(|i| case_result(i, t.test)).collect();
    let base = t.seed.wrapping_mul(NUMBERS).wrapping_add(1);
    say(hooks, Stage::Reference, 0);
    let (field, unusable) = t.field(false, (base, SEARCH_REPLICAS), hooks);
    mark(&mut cases, &unusable);
    if hooks.stopped() {
        return Ok(t.stopped(&field, &SearchOutcome::nothing(), (Part::Search, None), cases));
    }
    if field.cells() == 0 {
        let why = unusable.first().map_or_else(|| "there is none".into(), |(_, why)| why.to_string());
        return Err(TuneError::NoCase { why });
    }
    agrees(log, known.reference.as_ref(), field.reference(), Line::Reference)?;
    let found = search((&field, t.space), (t.seed, t.method), t.spend, hooks, (log, known));
    for tried in &found.trials {
        if let Fate::Failed { case, why } = &tried.race.fate {
            cases[*case].problem.get_or_insert_with(|| format!("under {}: {why}", tried.policy.text));
        }
    }
    if found.ended == Ended::Stopped {
        return Ok(t.stopped(&field, &found, (Part::Search, None), cases));
    }
    say(hooks, Stage::Confirm, found.trials.len() as u64);
    let (again, _) = t.field(false, (base + SEARCH_REPLICAS, CONFIRM_REPLICAS), hooks);
    let confirmed = confirm(t, &found, &again, hooks);
    if hooks.stopped() {
        return Ok(t.stopped(&field, &found, (Part::Confirm, None), cases));
    }
    let confirmed = confirmed.inspect_err(|_| done(log, known))?;
    if !t.test.contains(&true) {
        done(log, known);
        return Ok(t.result(&field, &found, confirmed, (None, cases)));
    }
    say(hooks, Stage::Test, found.trials.len() as u64);
    let winner = confirmed.winner.clone();
    agrees(log, known.test.as_ref(), winner.text.clone(), Line::Test)?;
    let first = base + SEARCH_REPLICAS + CONFIRM_REPLICAS;
    let (test_field, unusable) = t.field(true, (first, t.replicas), hooks);
    mark(&mut cases, &unusable);
    let seen = match hooks.stopped() {
        true => None,
        false => {
            agrees(log, known.test_reference.as_ref(), test_field.reference(), Line::TestReference)?;
            test_looks(t, &test_field, &winner, hooks, (log, &known.test_looks))
        }
    };
    hooks.warn_of(log);
    let Some(seen) = seen else {
        return Ok(t.stopped(&field, &found, (Part::Test, Some(confirmed)), cases));
    };
    done(log, known);
    let test = tested(t, &test_field, seen, (&winner, &mut cases));
    Ok(t.result(&field, &found, confirmed, (test, cases)))
}

/// All has been looked at: what remains follows from the log.
fn done(log: &mut Log, known: &KnownTrials) {
    if !known.done {
        log.line(&Line::Done);
    }
}

/// Holds what comes of a search against what its log says, or writes it there.
fn agrees<T: PartialEq>(
    log: &mut Log,
    before: Option<&T>,
    now: T,
    line: fn(T) -> Line,
) -> Result<(), TuneError> {
    match before {
        Some(before) if *before != now => return Err(TuneError::Changed),
        Some(_) => {}
        None => log.line(&line(now)),
    }
    Ok(())
}

fn say(hooks: &Hooks<'_>, stage: Stage, trials: u64) {
    (hooks.tell)(&SearchProgress { stage, trials, of: None, best: None });
}

fn case_result(input: &TuneInput<'_>, test: &[bool]) -> CaseResult {
    CaseResult {
        workload: input.job.workload.name.clone(),
        machine: input.job.machine.name.clone(),
        reference: input.reference.text.clone(),
        used: if test[input.recording] { Used::Test } else { Used::Train },
        problem: None,
    }
}

fn mark(cases: &mut [CaseResult], unusable: &[Unusable]) {
    for (case, why) in unusable.iter().filter(|(_, why)| !matches!(why, CompareError::Stopped)) {
        cases[*case].used = Used::Nothing;
        cases[*case].problem = Some(why.to_string());
    }
}

/// The best by the goal, after other draws.
struct Confirmed {
    winner: PolicySpec,
    /// Its number among the trials; none where it is none of them.
    trial: Option<usize>,
    stability: Stability,
}

/// One of the best, in other draws.
struct Finalist {
    /// Its number among the trials.
    trial: usize,
    /// What it came to; none where some work did not end.
    seen: Option<(Score, Vec<f64>)>,
}

impl Finalist {
    /// What it came to, and by draw, where it is within the limits.
    fn admissible(&self) -> Option<&(Score, Vec<f64>)> {
        self.seen.as_ref().filter(|(score, _)| score.violation == 0.0)
    }
}

/// The best of the search, best first, without what misses the limits while something does not.
fn best_first(found: &SearchOutcome) -> Vec<usize> {
    let mut all: Vec<(usize, Score)> =
        found.front.iter().chain(&found.best).filter_map(|&i| Some((i, found.trials[i].score?))).collect();
    all.sort_by(|a, b| a.1.order(&b.1).then(a.0.cmp(&b.0)));
    all.dedup_by_key(|(i, _)| *i);
    all.into_iter().map(|(i, _)| i).collect()
}

/// Looks at the best and the defaults once more. Where all of the best turn out to miss the limits, at the next best.
fn finalists(found: &SearchOutcome, field: &Field<'_>, hooks: &Hooks<'_>) -> Vec<Finalist> {
    let defaults = found.trials.first().and_then(|t| t.score).map(|_| 0);
    let rest: Vec<usize> = best_first(found).into_iter().filter(|&i| Some(i) != defaults).collect();
    let mut all: Vec<Finalist> = Vec::new();
    for (round, some) in rest.chunks(FINALISTS).take(ROUNDS).enumerate() {
        let with_defaults = defaults.filter(|_| round == 0);
        let trials: Vec<usize> = with_defaults.into_iter().chain(some.iter().copied()).collect();
        let policies: Vec<&PolicySpec> = trials.iter().map(|&i| &found.trials[i].policy).collect();
        let seen = looks(field, &policies, hooks).into_iter().map(|looks| {
            let ratios = field.ratios(&looks?);
            Some((field.score(&ratios), by_draw(field, &ratios)))
        });
        all.extend(trials.into_iter().zip(seen).map(|(trial, seen)| Finalist { trial, seen }));
        if all.iter().any(|f| Some(f.trial) != defaults && f.admissible().is_some()) {
            break;
        }
    }
    if let (true, Some(trial)) = (rest.is_empty(), defaults) {
        let looks = looks(field, &[&found.trials[trial].policy], hooks).pop().flatten();
        let ratios = looks.map(|l| field.ratios(&l));
        all.push(Finalist { trial, seen: ratios.map(|r| (field.score(&r), by_draw(field, &r))) });
    }
    all
}

/// The winner: the finalist with the least that is within the limits.
fn confirm(
    t: &Tuning<'_>,
    found: &SearchOutcome,
    field: &Field<'_>,
    hooks: &Hooks<'_>,
) -> Result<Confirmed, TuneError> {
    let Some(&nearest) = found.best.first() else {
        let failed = found.trials.iter().find_map(|t| match &t.race.fate {
            Fate::Failed { why, .. } => Some(format!("; under {}: {why}", t.policy.text)),
            _ => None,
        });
        return Err(TuneError::NoTrial { space: t.space.text().into(), why: failed.unwrap_or_default() });
    };
    let all = finalists(found, field, hooks);
    let admissible: Vec<(usize, &(Score, Vec<f64>))> =
        all.iter().filter_map(|f| Some((f.trial, f.admissible()?))).collect();
    let Some((trial, (_, own))) = admissible.iter().min_by(|a, b| a.1.0.order(&b.1.0)) else {
        let tried = &found.trials[nearest];
        return Err(TuneError::NoneAdmissible {
            space: t.space.text().into(),
            nearest: tried.policy.text.clone(),
            by: tried.score.map_or_else(String::new, come_to),
        });
    };
    let holds = |d: usize| admissible.iter().all(|(_, (_, r))| r[d] >= own[d] + (1.0 - NOTICEABLE).ln());
    let stability = Stability {
        draws: own.len() as u64,
        held: (0..own.len()).filter(|&d| holds(d)).count() as u64,
        rivals: admissible.len() as u64,
    };
    Ok(Confirmed { winner: found.trials[*trial].policy.clone(), trial: Some(*trial), stability })
}

/// What a policy comes to, for people.
fn come_to(score: Score) -> String {
    let change = |log: f64| format!("{} %", wattwise_figure::signed(log.exp_m1() * 100.0, 1));
    format!("time {}, waits {}", change(score.time), change(score.p99))
}

/// Policies in all cells, side by side; none for those that fail in one. Once it is stopped they are of no use.
fn looks(field: &Field<'_>, policies: &[&PolicySpec], hooks: &Hooks<'_>) -> Vec<Option<Vec<Look>>> {
    let all = look(field, policies, 0..policies.len() * field.cells(), hooks);
    by_policy(&all, policies.len(), field.cells())
}

/// Some looks: a number is a policy times all cells, plus a cell.
fn look(
    field: &Field<'_>,
    policies: &[&PolicySpec],
    numbers: Range<usize>,
    hooks: &Hooks<'_>,
) -> Vec<Option<Look>> {
    let cells = field.cells();
    let one = |i: usize| match hooks.stopped() {
        true => None,
        false => field.look(i % cells, policies[i / cells]).ok(),
    };
    wattwise_threads::map(numbers, one)
}

/// Looks by policy; none for those that fail in a cell.
fn by_policy(all: &[Option<Look>], policies: usize, cells: usize) -> Vec<Option<Vec<Look>>> {
    match cells {
        0 => vec![None; policies],
        _ => all.chunks(cells).map(|looks| looks.iter().cloned().collect()).collect(),
    }
}

/// What was to be small, the mean of its logarithm over the cases, by draw.
fn by_draw(field: &Field<'_>, ratios: &[Ratios]) -> Vec<f64> {
    let cases = field.cases().len();
    ratios.chunks(cases).map(|r| r.iter().map(|r| r.cost.ln()).sum::<f64>() / cases as f64).collect()
}

/// The logarithm of the cost of one policy over another's, `[recording][draw]`: the mean over the recording's machines.
fn by_recording(
    t: &Tuning<'_>,
    field: &Field<'_>,
    own: &[Ratios],
    other: Option<&[Ratios]>,
) -> Vec<Vec<f64>> {
    let recording = |cell: usize| t.inputs[field.cases()[field.cell(cell).0].number].recording;
    let log = |cell: usize| (own[cell].cost / other.map_or(1.0, |o| o[cell].cost)).ln();
    let mut recordings: Vec<usize> = (0..own.len()).map(recording).collect();
    recordings.sort_unstable();
    recordings.dedup();
    let of = |r: usize| {
        let cells: Vec<usize> = (0..own.len()).filter(|&c| recording(c) == r).collect();
        let draws = cells.iter().map(|&c| field.cell(c).1).max().map_or(0, |d| d + 1);
        let mut sums = vec![(0.0, 0.0); draws];
        for c in cells {
            let (sum, n) = &mut sums[field.cell(c).1];
            (*sum, *n) = (*sum + log(c), *n + 1.0);
        }
        sums.into_iter().map(|(sum, n)| sum / n).collect()
    };
    recordings.into_iter().map(of).collect()
}

/// The winner and its defaults in the test set: what the log has, and what is not there yet, which it is given piece by piece.
/// None where it was stopped.
fn test_looks(
    t: &Tuning<'_>,
    field: &Field<'_>,
    winner: &PolicySpec,
    hooks: &Hooks<'_>,
    (log, known): (&mut Log, &[Option<Look>]),
) -> Option<Vec<Option<Look>>> {
    let defaults = t.space.defaults();
    let all = 2 * field.cells();
    let mut seen = known[..known.len().min(all)].to_vec();
    while seen.len() < all {
        let numbers = seen.len()..all.min(seen.len() + TEST_PIECE);
        let more = look(field, &[winner, &defaults], numbers, hooks);
        if hooks.stopped() {
            return None;
        }
        log.line(&Line::TestLooks(more.clone()));
        seen.extend(more);
    }
    Some(seen)
}

/// The test.
fn tested(
    t: &Tuning<'_>,
    field: &Field<'_>,
    seen: Vec<Option<Look>>,
    (winner, cases): (&PolicySpec, &mut [CaseResult]),
) -> Option<Test> {
    let defaults = t.space.defaults();
    let mut both = by_policy(&seen, 2, field.cells()).into_iter();
    let (Some(own), Some(plain)) = (both.next()?, both.next()?) else {
        // Which case and why is worth a look more: this is rare.
        for cell in 0..field.cells() {
            for policy in [winner, &defaults] {
                if let Err(e) = field.look(cell, policy) {
                    cases[field.cases()[field.cell(cell).0].number].problem = Some(e.to_string());
                    return None;
                }
            }
        }
        return None;
    };
    let (own, plain) = (field.ratios(&own), field.ratios(&plain));
    let score = field.score(&own);
    let gains = |a: &[Ratios], b: Option<&[Ratios]>| gain(&by_recording(t, field, a, b));
    let each = (0..field.cases().len()).filter_map(|c| {
        let of = |ratios: &[Ratios]| -> Vec<Ratios> {
            (0..ratios.len()).filter(|&i| field.cell(i).0 == c).map(|i| ratios[i]).collect()
        };
        let (own, plain) = (of(&own), of(&plain));
        let logs: Vec<f64> = own.iter().map(|r| r.cost.ln()).collect();
        let over: Vec<f64> = own.iter().zip(&plain).map(|(a, b)| (a.cost / b.cost).ln()).collect();
        let input = t.inputs[field.cases()[c].number].job;
        Some(TestCase {
            workload: input.workload.name.clone(),
            machine: input.machine.name.clone(),
            against_reference: gain(&[logs])?,
            against_defaults: gain(&[over])?,
            time_ratio: (own.iter().map(|r| r.time.ln()).sum::<f64>() / own.len() as f64).exp(),
        })
    });
    Some(Test {
        against_reference: gains(&own, None)?,
        against_defaults: gains(&own, Some(&plain))?,
        defaults_against_reference: gains(&plain, None)?,
        time_ratio: score.time.exp(),
        p99_ratio: score.p99.exp(),
        admissible: score.violation == 0.0,
        gap: None,
        each: each.collect(),
    })
}

impl<'a> Tuning<'a> {
    /// The cases of one of the two sets, in an order drawn by the seed.
    fn field(&self, test: bool, replicas: (u64, u64), hooks: &Hooks<'_>) -> (Field<'a>, Vec<Unusable>) {
        let mut jobs: Vec<FieldJob<'a>> = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, i)| self.test[i.recording] == test)
            .map(|(number, i)| FieldJob { number, job: i.job, reference: i.reference })
            .collect();
        Random::new(self.seed ^ 0x006f_7264_6572).shuffle(&mut jobs);
        Field::until(&jobs, self.limits, replicas, &|| hooks.stopped())
    }

    /// What is told when it was stopped: the best so far, as such.
    fn stopped(
        &self,
        field: &Field<'_>,
        found: &SearchOutcome,
        (part, confirmed): (Part, Option<Confirmed>),
        cases: Vec<CaseResult>,
    ) -> TuneResult {
        let nothing = Stability { draws: 0, held: 0, rivals: 0 };
        let within = |&i: &usize| found.trials[i].score.is_some_and(|s| s.violation == 0.0);
        let trial = found.best.first().copied().filter(within);
        let chosen = confirmed.unwrap_or_else(|| Confirmed {
            winner: trial.map_or_else(|| self.space.defaults(), |i| found.trials[i].policy.clone()),
            trial,
            stability: nothing,
        });
        let train = chosen.trial.and_then(|i| gain(&by_recording(self, field, found.ratios(i), None)));
        let asked = self.spend.most_trials();
        let of = asked.map_or_else(String::new, |n| format!(" of {n}"));
        let trials = format!("{}{of} trials", found.trials.len());
        let verdict = self.told(&chosen, |words| of_stopped(words, train, (part, &trials)));
        let apply = Err("it was stopped before its test".to_owned());
        let result = self.put_together((field, found), (chosen, train, None), (verdict, apply), cases);
        TuneResult { stopped: true, stopped_in: Some(part), trials_asked: asked, ..result }
    }

    fn result(
        &self,
        field: &Field<'_>,
        found: &SearchOutcome,
        confirmed: Confirmed,
        (test, cases): (Option<Test>, Vec<CaseResult>),
    ) -> TuneResult {
        let train = confirmed.trial.and_then(|i| self.gain_of(field, found, i));
        let gap = |test: &Test| train.map(|train| test.against_reference.ratio / train.ratio);
        let test = test.map(|t| Test { gap: gap(&t), ..t });
        let verdict = self.told(&confirmed, |words| verdict(words, train, test.as_ref()));
        // What is not worth it is not to be put in force: its line would be taken for advice.
        let apply = match verdict.worth_it {
            Some(false) => Err("the test found it not worth it".to_owned()),
            _ => (self.apply)(&confirmed.winner).map(|commands| commands.to_string()),
        };
        self.put_together((field, found), (confirmed, train, test), (verdict, apply), cases)
    }

    /// What a trial came to in the search.
    fn gain_of(&self, field: &Field<'_>, found: &SearchOutcome, trial: usize) -> Option<Gain> {
        gain(&by_recording(self, field, found.ratios(trial), None))
    }

    /// What is said of a winner.
    fn told(&self, chosen: &Confirmed, say: impl Fn(&Words<'_>) -> Verdict) -> Verdict {
        let first = &self.inputs[0].reference.text;
        let one = self.inputs.iter().all(|i| i.reference.text == *first);
        let reference = if one { first } else { "each machine's reference policy" };
        let (winner, defaults) = (&chosen.winner.text, self.space.defaults().text);
        say(&Words { winner, defaults: &defaults, reference, goal: self.limits.rule.goal })
    }

    fn put_together(
        &self,
        (field, found): (&Field<'_>, &SearchOutcome),
        (chosen, train, test): (Confirmed, Option<Gain>, Option<Test>),
        (verdict, apply): (Verdict, Result<String, String>),
        cases: Vec<CaseResult>,
    ) -> TuneResult {
        let mut front: Vec<(usize, Score)> = found
            .front
            .iter()
            .filter_map(|&i| Some((i, found.trials[i].score.filter(|s| s.violation == 0.0)?)))
            .collect();
        front.sort_by(|a, b| a.1.order(&b.1));
        let point = |(i, s): (usize, Score)| Point {
            policy: found.trials[i].policy.text.clone(),
            // As the winner's gain is told: one number is not told as a mean here and a median there.
            cost_ratio: self.gain_of(field, found, i).map_or_else(|| s.cost.exp(), |gain| gain.ratio),
            time_ratio: s.time.exp(),
            p99_ratio: s.p99.exp(),
        };
        let rule = self.limits.rule;
        let fates = |of: fn(&Fate) -> bool| found.trials.iter().filter(|t| of(&t.race.fate)).count() as u64;
        TuneResult {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            winner: Winner {
                policy: chosen.winner.text.clone(),
                file: file(&chosen.winner, &verdict, self),
                apply: apply.as_ref().ok().cloned(),
                why_not: apply.err(),
                train,
                test,
                stability: chosen.stability,
            },
            verdict,
            defaults: self.space.defaults().text,
            front: front.into_iter().map(point).collect(),
            cases,
            space: self.space.text().into(),
            free: self.space.free(),
            goal: rule.goal.name().into(),
            max_slowdown: rule.max_slowdown.is_finite().then_some(rule.max_slowdown),
            max_p99: self.limits.max_p99.is_finite().then_some(self.limits.max_p99),
            spent: Spent {
                trials: found.trials.len() as u64,
                out: fates(|f| matches!(f, Fate::Out)),
                failed: fates(|f| matches!(f, Fate::Failed { .. })),
                replays: found.trials.iter().map(|t| t.race.looks.len() as u64).sum(),
                replays_a_trial: field.cells() as u64,
                ended: found.ended,
            },
            seed: self.seed,
            stopped: false,
            stopped_in: None,
            trials_asked: None,
        }
    }
}

/// The policy file, with where it comes from.
fn file(policy: &PolicySpec, verdict: &Verdict, t: &Tuning<'_>) -> String {
    let mut works: Vec<&str> = t.inputs.iter().map(|i| i.job.workload.name.as_str()).collect();
    works.dedup();
    let mut machines: Vec<&str> = t.inputs.iter().map(|i| i.job.machine.name.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    let note = |text: &str| wattwise_figure::one_line(text);
    let mut out = format!(
        "# Made by wattwise tune {}: space {}, seed {}, on {}, with {}.\n# {}\n",
        env!("CARGO_PKG_VERSION"),
        note(t.space.text()),
        t.seed,
        note(&machines.join(", ")),
        note(&works.join(", ")),
        note(&verdict.text),
    );
    for f in t.space.free() {
        let unit = if f.unit.is_empty() { String::new() } else { format!(" {}", f.unit) };
        out += &format!("# {}.{}: {}{unit}, default {}\n", f.policy, f.name, f.range, f.default);
    }
    out + &policy.to_toml()
}
