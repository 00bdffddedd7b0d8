//! What a proof's log says, judged: the same from one just ended and from a file of last year.

use crate::block::{BlockPair, pairs};
use crate::conduct::End;
use crate::guards::{Guarded, guarded};
use crate::hours::{self, Hours};
use crate::judge::{self, Outcome, RatioInterval, judged};
use crate::log::ProofRead;
use crate::result::{By, Headline, LeftOut, Proof, Proved, SCHEMA, Scope, Week};
use crate::say;
use wattwise_figure::verdict::{Answer, Verdict};

/// A week, s.
const WEEK_S: u64 = 7 * 24 * 3600;
/// Halves of intervals of which the hours are told.
const PRECISIONS: [f64; 3] = [0.02, 0.01, 0.005];

/// Judges what a file holds.
pub fn of(read: &ProofRead) -> Proof {
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
    let figure = proof.headline.map(|f| RatioInterval { ratio: f.ratio, low: f.low, high: f.high });
    proof.line = say::line(figure, proof.measured_h, &proof.left_out);
    proof.words = say::words(&proof);
    proof.notes = say::notes(read, &proof);
    proof
}

/// The figure that counts: which one was fixed with the plan, not by what the figures are.
fn headline(outcome: &Outcome, carried_out: bool) -> Option<Headline> {
    if !carried_out {
        let RatioInterval { ratio, low, high } = outcome.at_any_time?;
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

fn scopes(counted: &[BlockPair<'_>], confidence: f64) -> Vec<Scope> {
    let Some(first) = counted.first() else { return Vec::new() };
    let judge_one = |what: &String| {
        let both = |p: &BlockPair<'_>| Some((p.a.watts_of(what)?, p.b.watts_of(what)?));
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

fn busy(counted: &[BlockPair<'_>]) -> Option<(f64, f64)> {
    let both: Option<Vec<(f64, f64)>> =
        counted.iter().map(|p| Some((p.a.service.busy?, p.b.service.busy?))).collect();
    let both = both.filter(|b| !b.is_empty())?;
    let n = both.len() as f64;
    Some(both.iter().fold((0.0, 0.0), |(a, b), w| (a + w.0 / n, b + w.1 / n)))
}

/// What is left of a pair's spread says what narrower intervals take.
fn hours(read: &ProofRead, outcome: &Outcome, counted: &[BlockPair<'_>]) -> Vec<Hours> {
    let ln = |p: &BlockPair<'_>| Some((p.b.watts()? / p.a.watts()?).ln());
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
fn weeks(read: &ProofRead, proof: &Proof) -> Vec<Week> {
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
        let of = |p: &BlockPair<'_>| Some((p.a.watts()?, p.b.watts()?));
        let watts: Vec<(f64, f64)> = sorted.counted.iter().filter_map(of).collect();
        let verdict = judged(&watts, proof.confidence);
        let left: Vec<LeftOut> = sorted
            .left_out
            .iter()
            .map(|(reason, s)| LeftOut { reason: *reason, hours: s / 3600.0 })
            .collect();
        let figure = (!matches!(verdict.answer, Answer::NotMeasured(_))).then_some(RatioInterval {
            ratio: verdict.ratio,
            low: verdict.low,
            high: verdict.high,
        });
        let measured_h = watts.len() as f64 * 2.0 * read.header.block_s / 3600.0;
        Week { week: week + 1, line: say::line(figure, measured_h, &left), verdict }
    };
    numbers.into_iter().map(one).collect()
}
