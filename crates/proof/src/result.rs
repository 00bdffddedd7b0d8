//! What a proof's log says, judged: the same from one just ended and from a file of last year.

use crate::block::{Pair, Reason, pairs};
use crate::conduct::End;
use crate::guards::{Guarded, guarded};
use crate::hours::{self, Hours};
use crate::judge::{self, Outcome, judged};
use crate::log::{Predicted, Read, Side};
use crate::say;
use serde::{Deserialize, Serialize};
use wattwise_figure::verdict::{Answer, Verdict};

/// Version of the result.
pub const SCHEMA: &str = "wattwise.prove-result/1";

/// A week, s.
const WEEK_S: u64 = 7 * 24 * 3600;
/// Halves of intervals of which the hours are told.
const PRECISIONS: [f64; 3] = [0.02, 0.01, 0.005];

/// What came out of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Proved {
    /// B needs less, and is not shown slower.
    Saves,
    /// B needs less, and is slower: the saving is bought.
    SavesBySlowness,
    /// B needs more.
    Costs,
    /// The interval holds 0.
    NoDifference,
    /// There is nothing to judge.
    NotMeasured,
}

/// How the figure in the first line came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// `ab`'s judge, for the same work: the plan was carried out.
    SameWork,
    /// `ab`'s judge: the plan was carried out, and nothing is known of the work.
    AsMeasured,
    /// The confidence sequence: the plan was not carried out to its end.
    AtAnyTime,
}

/// The figure in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// B over A.
    pub ratio: f64,
    /// Low end of its interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// How it came about.
    pub by: By,
}

/// Time left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// Hours, time asleep included.
    pub hours: f64,
}

/// One scope of energy, beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scope {
    /// Package, dram, psys, core, battery.
    pub what: String,
    /// Mean power under A, W.
    pub a_w: f64,
    /// Under B, W.
    pub b_w: f64,
    /// B against A, as measured.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// One week of a longer proof, judged by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Week {
    /// Its number, from 1.
    pub week: u64,
    /// In a line.
    pub line: String,
    /// B against A, as measured.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A judged proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// [`SCHEMA`].
    pub schema: String,
    /// A and B.
    pub sides: [Side; 2],
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// How energy came about.
    pub energy: String,
    /// What came out.
    pub proved: Proved,
    /// The figure; none where there is nothing to judge.
    pub headline: Option<Headline>,
    /// In a line.
    pub line: String,
    /// In a sentence.
    pub words: String,
    /// Why it ended; none while it goes on, or where it was killed.
    pub ended: Option<String>,
    /// Pairs planned.
    pub planned: usize,
    /// Pairs that count.
    pub pairs: usize,
    /// Hours that count.
    pub measured_h: f64,
    /// Hours that do not, the most first.
    pub left_out: Vec<LeftOut>,
    /// Of the interval.
    pub confidence: f64,
    /// How much slower B may be, as a share.
    pub limit: f64,
    /// The whole outcome.
    pub outcome: Outcome,
    /// Energy by scope.
    pub scopes: Vec<Scope>,
    /// Whether B is as fast; empty where nothing could be watched or too few pairs count.
    pub guards: Vec<Guarded>,
    /// CPU time in each second under A and B, s: no guard.
    pub busy: Option<(f64, f64)>,
    /// Week by week, where it took longer than one.
    pub weeks: Vec<Week>,
    /// What narrower intervals would take here.
    pub hours: Vec<Hours>,
    /// What a model had said.
    pub predicted: Option<Predicted>,
    /// What there is to know before one believes it.
    pub notes: Vec<String>,
}

/// Judges what a file holds.
pub fn of(read: &Read) -> Proof {
    let h = &read.header;
    let confidence = h.plan.aim.confidence;
    let sorted = pairs(&read.blocks, h.block_s);
    let counted = &sorted.counted;
    let outcome = judge::outcome(counted, confidence, h.pairs());
    let guards = guarded(counted, confidence, h.limit);
    let headline = headline(&outcome, read.end.as_ref() == Some(&End::Reached));
    let mut proof = Proof {
        schema: SCHEMA.into(),
        sides: h.sides.clone(),
        machine: h.machine.clone(),
        energy: h.energy.to_string(),
        proved: proved(headline.as_ref(), &guards),
        headline,
        line: String::new(),
        words: String::new(),
        ended: read.end.as_ref().map(say::ended),
        planned: h.pairs(),
        pairs: counted.len(),
        measured_h: counted.len() as f64 * 2.0 * h.block_s / 3600.0,
        left_out: sorted
            .left_out
            .iter()
            .map(|(reason, s)| LeftOut { reason: *reason, hours: s / 3600.0 })
            .collect(),
        confidence,
        limit: h.limit,
        scopes: scopes(counted, confidence),
        guards,
        busy: busy(counted),
        weeks: Vec::new(),
        hours: hours(read, &outcome, counted),
        outcome,
        predicted: h.predicted.clone(),
        notes: Vec::new(),
    };
    proof.weeks = weeks(read, &proof);
    proof.line =
        say::line(proof.headline.map(|f| (f.ratio, f.low, f.high)), proof.measured_h, &proof.left_out);
    proof.words = say::words(&proof);
    proof.notes = say::notes(read, &proof);
    proof
}

/// The figure that counts: which one was fixed with the plan, not by what the figures are.
fn headline(outcome: &Outcome, carried_out: bool) -> Option<Headline> {
    if !carried_out {
        let (ratio, low, high) = outcome.at_any_time?;
        return Some(Headline { ratio, low, high, by: By::AtAnyTime });
    }
    let (verdict, by) = match &outcome.adjusted {
        Some(adjusted) => (&adjusted.verdict, By::SameWork),
        None => (&outcome.unadjusted, By::AsMeasured),
    };
    let Verdict { ratio, low, high, .. } = *verdict;
    (!matches!(verdict.answer, Answer::NotMeasured(_))).then_some(Headline { ratio, low, high, by })
}

fn proved(headline: Option<&Headline>, guards: &[Guarded]) -> Proved {
    match headline {
        None => Proved::NotMeasured,
        Some(f) if f.high < 1.0 && guards.iter().any(|g| g.slower) => Proved::SavesBySlowness,
        Some(f) if f.high < 1.0 => Proved::Saves,
        Some(f) if f.low > 1.0 => Proved::Costs,
        Some(_) => Proved::NoDifference,
    }
}

fn scopes(counted: &[Pair<'_>], confidence: f64) -> Vec<Scope> {
    let Some(first) = counted.first() else { return Vec::new() };
    let judge_one = |what: &String| {
        let both = |p: &Pair<'_>| Some((p.a.watts_of(what)?, p.b.watts_of(what)?));
        let watts: Vec<(f64, f64)> = counted.iter().filter_map(both).collect();
        if watts.is_empty() {
            return None;
        }
        let n = watts.len() as f64;
        let (a_w, b_w) = watts.iter().fold((0.0, 0.0), |(a, b), w| (a + w.0 / n, b + w.1 / n));
        Some(Scope { what: what.clone(), a_w, b_w, verdict: judged(&watts, confidence) })
    };
    let mut names: Vec<&String> = first.a.scopes.iter().map(|(name, _)| name).collect();
    for (name, _) in counted.iter().flat_map(|p| &p.a.scopes) {
        if !names.contains(&name) && names.len() < 16 {
            names.push(name);
        }
    }
    names.into_iter().filter_map(judge_one).collect()
}

fn busy(counted: &[Pair<'_>]) -> Option<(f64, f64)> {
    let both: Option<Vec<(f64, f64)>> =
        counted.iter().map(|p| Some((p.a.service.busy?, p.b.service.busy?))).collect();
    let both = both.filter(|b| !b.is_empty())?;
    let n = both.len() as f64;
    Some(both.iter().fold((0.0, 0.0), |(a, b), w| (a + w.0 / n, b + w.1 / n)))
}

/// What is left of a pair's spread says what narrower intervals take.
fn hours(read: &Read, outcome: &Outcome, counted: &[Pair<'_>]) -> Vec<Hours> {
    let ln = |p: &Pair<'_>| Some((p.b.watts()? / p.a.watts()?).ln());
    let mut d: Vec<f64> = counted.iter().filter_map(ln).collect();
    if let Some(adjusted) = &outcome.adjusted {
        let spread = wattwise_figure::mean_sd(&d).1;
        d.iter_mut().for_each(|d| *d *= adjusted.spread / spread);
    }
    let done = read.next_pair().max(1) as f64;
    let lost = (1.0 - counted.len() as f64 / done).clamp(0.0, 0.99);
    let confidence = read.header.plan.aim.confidence;
    let of = |precision| hours::needed(&d, false, (precision, confidence), read.header.block_s, lost);
    PRECISIONS.into_iter().filter_map(of).collect()
}

/// Week by week, each by itself: they share no pair.
fn weeks(read: &Read, proof: &Proof) -> Vec<Week> {
    let from = read.header.started;
    let week_of = |started: u64| started.saturating_sub(from) / WEEK_S;
    let last = read.blocks.iter().map(|b| week_of(b.started)).max().unwrap_or(0);
    if last == 0 {
        return Vec::new();
    }
    let mut numbers: Vec<u64> = read.blocks.iter().map(|b| week_of(b.started)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let one = |week: u64| {
        let blocks: Vec<_> = read.blocks.iter().filter(|b| week_of(b.started) == week).cloned().collect();
        let sorted = pairs(&blocks, read.header.block_s);
        let of = |p: &Pair<'_>| Some((p.a.watts()?, p.b.watts()?));
        let watts: Vec<(f64, f64)> = sorted.counted.iter().filter_map(of).collect();
        let verdict = judged(&watts, proof.confidence);
        let left: Vec<LeftOut> = sorted
            .left_out
            .iter()
            .map(|(reason, s)| LeftOut { reason: *reason, hours: s / 3600.0 })
            .collect();
        let figure = (!matches!(verdict.answer, Answer::NotMeasured(_))).then_some((
            verdict.ratio,
            verdict.low,
            verdict.high,
        ));
        let measured_h = watts.len() as f64 * 2.0 * read.header.block_s / 3600.0;
        Week { week: week + 1, line: say::line(figure, measured_h, &left), verdict }
    };
    numbers.into_iter().map(one).collect()
}
