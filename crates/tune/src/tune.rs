//! Tuning from beginning to end.
//!
//! 1. The recordings are split, by name or by the seed: half of them are the test set, and nothing looks at them.
//! 2. The search ([`conduct`](mod@crate::conduct)) sees the others in [`SEARCH_REPLICAS`] draws of everything that is uncertain.
//! 3. The best of the front and the defaults are looked at once more on the same recordings, in [`CONFIRM_REPLICAS`] other
//!    draws: what was best by luck falls back. The one with the least is the winner.
//! 4. The test set is opened, once: the winner, its defaults and the reference policy in as many other draws as were asked for.
//! 5. The winner is worth it if on the test set it is within the limits and saves for certain, and at least
//!    1 %, against the reference policy and against its own defaults. Else the verdict says what to keep.

use crate::conduct::{Hooks, Progress, SearchOutcome, Spend, Stage, search};
use crate::field::{Fate, Field, Limits, Unusable};
use crate::gain::{Gain, gain};
use crate::log::{Line, Log, Trial};
use crate::result::*;
use crate::search::{Method, Score};
use crate::space::Space;
use wattwise_advice::answer::change;
use wattwise_advice::paired::{Look, Ratios};
use wattwise_advice::result::Interval;
use wattwise_advice::rule::Goal;
use wattwise_advice::ties::NOTICEABLE;
use wattwise_figure::Random;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// Draws that the search sees.
pub const SEARCH_REPLICAS: u64 = 8;
/// Draws in which the best are looked at once more.
pub const CONFIRM_REPLICAS: u64 = 16;
/// The best that are looked at once more, at a time; how often the next best may be.
const FINALISTS: usize = 8;
const ROUNDS: usize = 8;
/// Each seed has so many numbers for its draws.
const NUMBERS: u64 = 1 << 20;

/// One recording on one machine.
pub struct Input<'a> {
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
    pub inputs: &'a [Input<'a>],
    /// By recording, whether it is of the test set.
    pub test: &'a [bool],
    /// What is searched.
    pub space: &'a Space,
    /// What a policy may come to.
    pub limits: Limits,
    /// Replicas of the test.
    pub replicas: u64,
    /// Of the search and the draws.
    pub seed: u64,
    /// How a policy is put in force, or why it cannot be.
    pub apply: &'a (dyn Fn(&PolicySpec) -> Result<String, String> + Sync),
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
    /// The log is of other work, another machine or another program.
    #[error(
        "the log's figures of the reference policy are not what it comes to now: a recording, a machine or wattwise has changed since; start anew without --resume"
    )]
    Changed,
    /// The test set was opened before.
    #[error(
        "the log's test set has been opened: going on would choose by it; start anew with another --seed, or with other recordings for --test"
    )]
    Tested,
}

/// Tunes. `known` is what an earlier, interrupted search had seen; its log is gone on with.
///
/// # Errors
/// No recording can be replayed, no policy is within the limits, or the log is of something else.
pub fn tune(
    t: &Tuning<'_>,
    hooks: &Hooks<'_>,
    (log, known): (&mut Log, Option<&crate::log::Read>),
) -> Result<TuneResult, TuneError> {
    if known.is_some_and(|k| k.tested) {
        return Err(TuneError::Tested);
    }
    let mut cases: Vec<CaseResult> = t.inputs.iter().map(|i| case_result(i, t.test)).collect();
    let base = t.seed.wrapping_mul(NUMBERS).wrapping_add(1);
    say(hooks, Stage::Reference, 0);
    let (field, unusable) = t.field(false, (base, SEARCH_REPLICAS));
    mark(&mut cases, &unusable);
    if field.cells() == 0 {
        let why = unusable.first().map_or_else(|| "there is none".into(), |(_, why)| why.to_string());
        return Err(TuneError::NoCase { why });
    }
    let reference = field.reference();
    match known.and_then(|k| k.reference.as_ref()) {
        Some(before) if *before != reference => return Err(TuneError::Changed),
        Some(_) => {}
        None => log.line(&Line::Reference(reference)),
    }
    let trials: &[Trial] = known.map_or(&[], |k| &k.trials);
    let found = search((&field, t.space), (t.seed, t.method), t.spend, hooks, (log, trials));
    for tried in &found.trials {
        if let Fate::Failed { case, why } = &tried.race.fate {
            cases[*case].problem.get_or_insert_with(|| format!("under {}: {why}", tried.policy.text));
        }
    }
    say(hooks, Stage::Confirm, found.trials.len() as u64);
    let (again, _) = t.field(false, (base + SEARCH_REPLICAS, CONFIRM_REPLICAS));
    let confirmed = confirm(t, &found, &again)?;
    let winner = confirmed.winner.clone();
    let test = if t.test.contains(&true) {
        log.line(&Line::Test(winner.text.clone()));
        say(hooks, Stage::Test, found.trials.len() as u64);
        let (field, unusable) = t.field(true, (base + SEARCH_REPLICAS + CONFIRM_REPLICAS, t.replicas));
        mark(&mut cases, &unusable);
        tested(t, &field, (&winner, &mut cases))
    } else {
        None
    };
    Ok(t.result(&field, &found, confirmed, (test, cases)))
}

fn say(hooks: &Hooks<'_>, stage: Stage, trials: u64) {
    (hooks.tell)(&Progress { stage, trials, of: None, best: None });
}

fn case_result(input: &Input<'_>, test: &[bool]) -> CaseResult {
    CaseResult {
        workload: input.job.workload.name.clone(),
        machine: input.job.machine.name.clone(),
        reference: input.reference.text.clone(),
        used: if test[input.recording] { Used::Test } else { Used::Train },
        problem: None,
    }
}

fn mark(cases: &mut [CaseResult], unusable: &[Unusable]) {
    for (case, why) in unusable {
        cases[*case].used = Used::Nothing;
        cases[*case].problem = Some(why.to_string());
    }
}

/// The best by the goal, after other draws.
struct Confirmed {
    winner: PolicySpec,
    /// Its number among the trials.
    trial: usize,
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
fn finalists(found: &SearchOutcome, field: &Field<'_>) -> Vec<Finalist> {
    let defaults = found.trials.first().and_then(|t| t.score).map(|_| 0);
    let rest: Vec<usize> = best_first(found).into_iter().filter(|&i| Some(i) != defaults).collect();
    let mut all: Vec<Finalist> = Vec::new();
    for (round, some) in rest.chunks(FINALISTS).take(ROUNDS).enumerate() {
        let with_defaults = defaults.filter(|_| round == 0);
        let trials: Vec<usize> = with_defaults.into_iter().chain(some.iter().copied()).collect();
        let policies: Vec<&PolicySpec> = trials.iter().map(|&i| &found.trials[i].policy).collect();
        let seen = looks(field, &policies).into_iter().map(|looks| {
            let ratios = field.ratios(&looks?);
            Some((field.score(&ratios), by_draw(field, &ratios)))
        });
        all.extend(trials.into_iter().zip(seen).map(|(trial, seen)| Finalist { trial, seen }));
        if all.iter().any(|f| Some(f.trial) != defaults && f.admissible().is_some()) {
            break;
        }
    }
    if let (true, Some(trial)) = (rest.is_empty(), defaults) {
        let looks = looks(field, &[&found.trials[trial].policy]).pop().flatten();
        let ratios = looks.map(|l| field.ratios(&l));
        all.push(Finalist { trial, seen: ratios.map(|r| (field.score(&r), by_draw(field, &r))) });
    }
    all
}

/// The winner: the finalist with the least that is within the limits.
fn confirm(t: &Tuning<'_>, found: &SearchOutcome, field: &Field<'_>) -> Result<Confirmed, TuneError> {
    let Some(&nearest) = found.best.first() else {
        let failed = found.trials.iter().find_map(|t| match &t.race.fate {
            Fate::Failed { why, .. } => Some(format!("; under {}: {why}", t.policy.text)),
            _ => None,
        });
        return Err(TuneError::NoTrial { space: t.space.text().into(), why: failed.unwrap_or_default() });
    };
    let all = finalists(found, field);
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
    Ok(Confirmed { winner: found.trials[*trial].policy.clone(), trial: *trial, stability })
}

/// What a policy comes to, for people.
fn come_to(score: Score) -> String {
    let change = |log: f64| format!("{:+.1} %", log.exp_m1() * 100.0);
    format!("time {}, waits {}", change(score.time), change(score.p99))
}

/// Policies in all cells, side by side; none for those that fail in one.
fn looks(field: &Field<'_>, policies: &[&PolicySpec]) -> Vec<Option<Vec<Look>>> {
    let cells = field.cells();
    if cells == 0 {
        return vec![None; policies.len()];
    }
    let look = |i: usize| field.look(i % cells, policies[i / cells]).ok();
    let all: Vec<Option<Look>> = wattwise_threads::map(0..policies.len() * cells, look);
    all.chunks(cells).map(|looks| looks.iter().cloned().collect()).collect()
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

/// The test.
fn tested(
    t: &Tuning<'_>,
    field: &Field<'_>,
    (winner, cases): (&PolicySpec, &mut [CaseResult]),
) -> Option<Test> {
    let defaults = t.space.defaults();
    let mut both = looks(field, &[winner, &defaults]).into_iter();
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
    fn field(&self, test: bool, replicas: (u64, u64)) -> (Field<'a>, Vec<Unusable>) {
        let mut jobs: Vec<(usize, &'a ReplayJob<'a>, &'a PolicySpec)> = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, i)| self.test[i.recording] == test)
            .map(|(number, i)| (number, i.job, i.reference))
            .collect();
        Random::new(self.seed ^ 0x006f_7264_6572).shuffle(&mut jobs);
        Field::new(&jobs, self.limits, replicas)
    }

    fn result(
        &self,
        field: &Field<'_>,
        found: &SearchOutcome,
        confirmed: Confirmed,
        (test, cases): (Option<Test>, Vec<CaseResult>),
    ) -> TuneResult {
        let train = gain(&by_recording(self, field, found.ratios(confirmed.trial), None));
        let gap = |test: &Test| train.map(|train| test.against_reference.ratio / train.ratio);
        let test = test.map(|t| Test { gap: gap(&t), ..t });
        let mut front: Vec<(usize, Score)> = found
            .front
            .iter()
            .filter_map(|&i| Some((i, found.trials[i].score.filter(|s| s.violation == 0.0)?)))
            .collect();
        front.sort_by(|a, b| a.1.order(&b.1));
        let point = |(i, s): (usize, Score)| Point {
            policy: found.trials[i].policy.text.clone(),
            cost_ratio: s.cost.exp(),
            time_ratio: s.time.exp(),
            p99_ratio: s.p99.exp(),
        };
        let rule = self.limits.rule;
        let first = &self.inputs[0].reference.text;
        let one = self.inputs.iter().all(|i| i.reference.text == *first);
        let reference = if one { first } else { "each machine's reference policy" };
        let defaults = self.space.defaults().text;
        let verdict = verdict(
            &Words { winner: &confirmed.winner.text, defaults: &defaults, reference, goal: rule.goal },
            train,
            test.as_ref(),
        );
        // What is not worth it is not to be put in force: its line would be taken for advice.
        let apply = match verdict.worth_it {
            Some(false) => Err("the test found it not worth it".to_owned()),
            _ => (self.apply)(&confirmed.winner),
        };
        let fates = |of: fn(&Fate) -> bool| found.trials.iter().filter(|t| of(&t.race.fate)).count() as u64;
        TuneResult {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            winner: Winner {
                policy: confirmed.winner.text.clone(),
                file: file(&confirmed.winner, &verdict, self),
                apply: apply.as_ref().ok().cloned(),
                why_not: apply.err(),
                train,
                test,
                stability: confirmed.stability,
            },
            verdict,
            defaults,
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
        }
    }
}

/// What a verdict speaks of.
struct Words<'a> {
    winner: &'a str,
    defaults: &'a str,
    reference: &'a str,
    goal: Goal,
}

fn verdict(w: &Words<'_>, train: Option<Gain>, test: Option<&Test>) -> Verdict {
    let Words { winner, defaults, reference, goal } = w;
    let Some(test) = test else {
        let seen = train.map_or_else(String::new, |g| format!(": {}", told(g, *goal, reference)));
        return Verdict {
            worth_it: None,
            text: format!(
                "Not tested, for there is no recording beside those of the search. {winner} came to this there{seen}; what is chosen looks \
                 better on what it was chosen by. Give more recordings, or record more of your work."
            ),
        };
    };
    let n = test.against_reference.recordings;
    let on = if n == 1 { "on 1 recording".into() } else { format!("on {n} recordings") };
    let on = format!("{on} that the search did not see");
    let over_reference = told(test.against_reference, *goal, reference);
    let no = |text: String| Verdict { worth_it: Some(false), text: format!("Not worth it. {text}") };
    if winner == defaults && defaults == reference {
        return no(format!("Nothing that was found is better than {reference}: keep it."));
    }
    if !test.admissible {
        return no(format!("{winner} is not within the limits {on}: keep {reference}."));
    }
    if !test.against_reference.saves(NOTICEABLE) {
        return no(format!("{winner}, {on}: {over_reference}. Keep {reference}."));
    }
    if winner == defaults {
        return Verdict {
            worth_it: Some(true),
            text: format!("Use {winner} as it is: no other settings were better. {over_reference}, {on}."),
        };
    }
    let over_defaults = told(test.against_defaults, *goal, &format!("{defaults} as it is"));
    if reference != defaults && !test.against_defaults.saves(NOTICEABLE) {
        return no(format!(
            "{winner}, {on}: {over_reference}, but {over_defaults}. {defaults} does as well."
        ));
    }
    let and = if reference == defaults { String::new() } else { format!(", and {over_defaults}") };
    Verdict { worth_it: Some(true), text: format!("Worth it. {winner}, {on}: {over_reference}{and}.") }
}

/// "saves 3.1 % energy against schedutil (1.2 to 5.0 %)".
fn told(g: Gain, goal: Goal, against: &str) -> String {
    let goal = goal.name();
    let interval = Interval { median: g.ratio, low: g.low, high: g.high };
    let (range, sign) = change(interval);
    let percent = ((g.ratio - 1.0) * 100.0).abs();
    match sign {
        -1 => format!("saves {percent:.1} % {goal} against {against} ({range})"),
        1 => format!("needs {percent:.1} % more {goal} than {against} ({range})"),
        _ if range == "the same" => format!("its {goal} is that of {against}"),
        _ => format!(
            "its {goal} against {against} cannot be told apart ({:+.1} %: {range})",
            (g.ratio - 1.0) * 100.0
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(ratio: f64, low: f64, high: f64) -> Gain {
        Gain { ratio, low, high, recordings: 3 }
    }

    fn test(against_reference: Gain, against_defaults: Gain) -> Test {
        Test {
            against_reference,
            against_defaults,
            defaults_against_reference: gain(1.0, 0.99, 1.01),
            time_ratio: 1.0,
            p99_ratio: 1.0,
            admissible: true,
            gap: None,
            each: Vec::new(),
        }
    }

    #[test]
    fn a_gain_that_may_be_chance_or_the_defaults_is_not_worth_it() {
        let words = |winner| Words { winner, defaults: "burst", reference: "schedutil", goal: Goal::Energy };
        let (sure, slight, chance) =
            (gain(0.95, 0.93, 0.97), gain(0.995, 0.99, 0.999), gain(0.95, 0.89, 1.01));
        let of = |w: &'static str, a, b| {
            let v = verdict(&words(w), None, Some(&test(a, b)));
            (v.worth_it, v.text)
        };
        let (worth, text) = of("burst:busy=1", sure, sure);
        assert_eq!(worth, Some(true), "{text}");
        assert!(text.contains("saves 5.0 % energy against schedutil (3.0 to 7.0 %)"), "{text}");
        for (a, b) in [(slight, sure), (chance, sure), (sure, slight), (sure, chance)] {
            let (worth, text) = of("burst:busy=1", a, b);
            assert!(worth == Some(false) && text.starts_with("Not worth it"), "{text}");
        }
        assert!(of("burst:busy=1", sure, chance).1.contains("burst does as well"));
        let (worth, text) = of("burst", sure, gain(1.0, 1.0, 1.0));
        assert!(worth == Some(true) && text.contains("as it is"), "{text}");
        let late = Test { admissible: false, ..test(sure, sure) };
        assert_eq!(verdict(&words("burst:busy=1"), None, Some(&late)).worth_it, Some(false));
        let untested = verdict(&words("burst:busy=1"), Some(sure), None);
        assert!(untested.worth_it.is_none() && untested.text.starts_with("Not tested"), "{}", untested.text);
    }
}
