//! What an experiment's file says, judged: the same from a run just ended and from a file of last year.

use crate::ab::conduct::End;
use crate::ab::log::{AbRead, ArmText, Of, Run};
use serde::{Deserialize, Serialize};
use wattwise_figure::verdict::{Aim, Answer, Verdict, judge, quantile, words};
use wattwise_figure::{counted, mean_sd};

/// Version of the result.
pub const SCHEMA: &str = "wattwise.ab-result/1";

/// A judged experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// [`SCHEMA`].
    pub schema: String,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<ArmText>,
    /// What was to be compared.
    pub of: Of,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// How energy came about.
    pub energy: String,
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that the pilot asked for.
    pub wanted: Option<usize>,
    /// Pairs dropped: (block, why).
    pub dropped: Vec<(usize, String)>,
    /// Warm-up runs.
    pub warm_up: usize,
    /// Every run that counts is charged over so many seconds.
    pub window_s: Option<f64>,
    /// Idle power, W.
    pub floor_w: Option<f64>,
    /// The smallest difference that so many pairs of that spread find with the power asked for.
    pub smallest_effect: Option<f64>,
    /// Each other arm against the first.
    pub comparisons: Vec<Comparison>,
    /// What there is to know before one believes it.
    pub notes: Vec<String>,
}

/// One arm against the first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The other arm.
    pub arm: usize,
    /// What was asked for comes first.
    pub verdicts: Vec<Judged>,
}

/// A judged quantity.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// Of what.
    pub what: String,
    /// Which question that answers.
    pub question: String,
    /// (A, B), in order.
    #[serde(skip)]
    pub pairs: Vec<(f64, f64)>,
    /// The first arm's values; none where there is no run.
    pub first: Option<MeanSd>,
    /// The other arm's.
    pub other: Option<MeanSd>,
    /// Their unit; empty for a figure of the command's own.
    pub unit: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// In a sentence.
    pub words: String,
}

/// An arm's values over its runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeanSd {
    /// Their mean.
    pub mean: f64,
    /// Standard deviation; one run has none.
    pub sd: Option<f64>,
}

impl MeanSd {
    fn of(values: &[f64]) -> Option<MeanSd> {
        let (mean, sd) = mean_sd(values);
        let sd = (values.len() > 1 && sd.is_finite()).then_some(sd);
        mean.is_finite().then_some(MeanSd { mean, sd })
    }

    /// `79.93 ± 1.21`, with as many decimals as four figures of the mean need.
    pub fn text(&self) -> String {
        let digits = match self.mean.abs() {
            0.0 => 0,
            m => (3 - m.log10().floor() as i32).clamp(0, 6) as usize,
        };
        match self.sd {
            Some(sd) => format!("{:.digits$} ± {sd:.digits$}", self.mean),
            None => format!("{:.digits$}, one run", self.mean),
        }
    }
}

/// The unit of a quantity.
fn unit(what: &str) -> &'static str {
    match what {
        "time" | "CPU time" => "s",
        "of its figure" => "",
        _ => "J",
    }
}

/// A quantity of a run.
type Of1 = fn(&Run, f64) -> Option<f64>;

/// All that can be compared: (name, which question it answers, how it is read from a run and the idle floor).
const QUANTITIES: &[(&str, &str, Of, Of1)] = &[
    ("energy", "what the machine uses until the slower is done, idle tail included", Of::Energy, |r, _| {
        r.measured.machine.joules
    }),
    ("time", "how long it takes", Of::Time, |r, _| Some(r.measured.wall_s)),
    ("CPU time", "how much it computes", Of::Cpu, |r, _| Some(r.measured.cpu_s())),
    ("of its figure", "what the command itself reports", Of::Metric, |r, _| r.metric),
    (
        "energy until its own end",
        "what it uses if the machine is switched off afterwards",
        Of::Energy,
        |r, _| r.own_j,
    ),
    ("energy above idle", "what it adds to a machine that runs anyway", Of::Energy, |r, floor_w| {
        r.measured.machine.joules.map(|j| j - floor_w * r.measured.machine.window_s)
    }),
];

/// Judges what a file holds.
pub fn of(read: &AbRead) -> Judgement {
    let h = &read.header;
    let counted = read.counted();
    let done = read.done();
    let aim = h.plan.aim.shared_by(h.arms.len() - 1);
    let comparisons: Vec<Comparison> = (1..h.arms.len()).map(|arm| compared(read, arm, &aim)).collect();
    let spread = comparisons.iter().filter_map(|c| pilot_spread(c, &aim)).fold(0.0, f64::max);
    let dropped: Vec<(usize, String)> = done
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(at, b)| Some((at, b.iter().find_map(|t| t.dropped.clone())?)))
        .collect();
    let mut result = Judgement {
        schema: SCHEMA.into(),
        arms: h.arms.clone(),
        of: h.of,
        machine: h.machine.clone(),
        energy: h.energy.to_string(),
        pairs: counted.len(),
        wanted: None,
        dropped,
        warm_up: done.warm_up,
        window_s: read.window_s,
        floor_w: read.floor_w,
        smallest_effect: (spread > 0.0)
            .then(|| smallest(&aim, spread, counted.len()))
            .filter(|e| e.is_finite()),
        comparisons,
        notes: Vec::new(),
    };
    result.notes = notes(read, &result);
    result
}

/// One arm against the first; what was asked for comes first.
fn compared(read: &AbRead, arm: usize, aim: &Aim) -> Comparison {
    let h = &read.header;
    let asked = QUANTITIES.iter().filter(|q| q.2 == h.of).take(1);
    let rest = QUANTITIES.iter().filter(|q| q.2 != h.of || q.0.starts_with("energy "));
    let floor_w = read.floor_w.unwrap_or(0.0);
    let counted = read.counted();
    let judged = |(name, question, of, value): &(&'static str, &'static str, Of, Of1)| {
        // Without a floor there is nothing above it, and without an equal window no tail.
        if name.ends_with("above idle") && read.floor_w.is_none() || *name == "energy" && h.of != Of::Energy {
            return None;
        }
        let pairs: Option<Vec<(f64, f64)>> = counted
            .iter()
            .map(|block| Some((value(block[0], floor_w)?, value(block[arm], floor_w)?)))
            .collect();
        // What was not seen is no row; what was asked for is one all the same.
        let pairs = pairs.filter(|p| *of == h.of || !p.is_empty())?;
        let verdict = judge(&pairs, aim);
        let words = words(&verdict, name, &h.arms[0].name, &h.arms[arm].name);
        let [first, other] = [|p: &(f64, f64)| p.0, |p: &(f64, f64)| p.1]
            .map(|of| MeanSd::of(&pairs.iter().map(of).collect::<Vec<_>>()));
        Some(Judged {
            what: (*name).to_owned(),
            question: (*question).to_owned(),
            pairs,
            first,
            other,
            unit: unit(name).to_owned(),
            verdict,
            words,
        })
    };
    Comparison { arm, verdicts: asked.chain(rest).filter_map(judged).collect() }
}

/// How the pilot's differences spread, of what was asked for.
fn pilot_spread(c: &Comparison, aim: &Aim) -> Option<f64> {
    let pairs = &c.verdicts.first()?.pairs;
    let pilot: Vec<f64> = pairs.iter().take(aim.pilot).map(|(a, b)| (b / a).ln()).collect();
    let (_, spread) = mean_sd(&pilot);
    (pairs.len() >= 2 && spread.is_finite()).then_some(spread)
}

/// The smallest difference that `pairs` pairs whose ln(B/A) spreads by `spread` find with the aim's power.
pub fn smallest(aim: &Aim, spread: f64, pairs: usize) -> f64 {
    let freedom = aim.pilot.min(pairs).saturating_sub(1).max(1) as f64;
    let half = quantile(0.5 + aim.confidence / 2.0, freedom) * spread / (pairs.max(1) as f64).sqrt();
    let more = quantile(aim.power, freedom) / quantile(0.5 + aim.confidence / 2.0, freedom);
    (half * (1.0 + more)).exp_m1()
}

fn notes(read: &AbRead, r: &Judgement) -> Vec<String> {
    let mut notes = Vec::new();
    match &read.end {
        None => notes.push(
            "the log is incomplete: the experiment was interrupted, and this is a verdict of the pairs that it has \
             (--resume goes on)"
                .to_owned(),
        ),
        Some((End::Budget(what), _)) => {
            notes.push(format!("the budget came first ({what}): the interval is wider than was asked for"))
        }
        Some((End::Stopped(why), _)) => {
            notes.push(format!("it was stopped ({why}); --resume goes on with the same plan"));
        }
        Some((End::Reached, _)) => {}
    }
    if let Some((_, false)) = &read.end {
        notes.push(
            "the warm-up ended with a trend left: a longer one (--warm-up) may narrow the interval"
                .to_owned(),
        );
    }
    if !r.dropped.is_empty() {
        let all = r.pairs + r.dropped.len();
        let (were, first) = if r.dropped.len() == 1 { ("was", "") } else { ("were", "the first ") };
        notes.push(format!(
            "{} of {} {were} dropped, {first}because {}",
            r.dropped.len(),
            counted(all, "pair"),
            r.dropped[0].1
        ));
    }
    let short = r.window_s.is_some_and(|w| w < 10.0)
        && matches!(read.header.energy, wattwise_figure::Provenance::Measured { .. });
    for c in &r.comparisons {
        let Some(first) = c.verdicts.first() else { continue };
        if let Some(drift) = &first.verdict.drift {
            notes.push(format!(
                "not stationary: both arms changed by {} % a run [{}, {}]",
                wattwise_figure::signed(drift.per_run * 100.0, 3),
                wattwise_figure::signed(drift.low * 100.0, 3),
                wattwise_figure::signed(drift.high * 100.0, 3)
            ));
        }
        if short
            && (first.verdict.ratio - 1.0).abs() < 0.005
            && first.verdict.answer != Answer::NotMeasured(String::new())
        {
            notes.push("differences below 0.5 % want windows of 10 s (--window 10s)".to_owned());
        }
    }
    notes
}

/// For people: the verdict first, then the figures side by side.
pub fn text(r: &Judgement) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for c in &r.comparisons {
        if let Some(first) = c.verdicts.first() {
            _ = writeln!(out, "{}", first.words);
        }
    }
    for c in &r.comparisons {
        out += "\n";
        out += &side_by_side(r, c);
    }
    _ = writeln!(out, "\n  energy: {}", r.energy);
    if let (Some(w), true) = (r.window_s, r.of == Of::Energy) {
        _ = writeln!(out, "  every run is charged over the same {w:.2} s");
    }
    match r.smallest_effect {
        Some(e) if e <= 1.0 => {
            _ = writeln!(out, "  {} pairs like these find a difference of {:.2} %", r.pairs, e * 100.0);
        }
        Some(_) => _ = writeln!(out, "  {} pairs like these cannot tell even a difference of 100 %", r.pairs),
        None => {}
    }
    for note in &r.notes {
        _ = writeln!(out, "  note: {note}");
    }
    out
}

/// Means of two arms with their standard deviations, the change, and which question that answers.
fn side_by_side(r: &Judgement, c: &Comparison) -> String {
    let mean = |of: Option<MeanSd>, unit: &str| {
        of.map_or_else(|| "none".to_owned(), |m| format!("{} {unit}", m.text()).trim_end().to_owned())
    };
    let mut rows = vec![["", &r.arms[0].name, &r.arms[c.arm].name, "change", ""].map(shortened)];
    for v in &c.verdicts {
        rows.push([
            v.what.clone(),
            mean(v.first, &v.unit),
            mean(v.other, &v.unit),
            v.verdict.change(),
            v.question.clone(),
        ]);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let [what, first, other, change] = [0, 1, 2, 3].map(width);
    let line = |[w, a, b, c, q]: &[String; 5]| {
        format!("  {w:<what$}  {a:>first$}  {b:>other$}  {c:>change$}  {q}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A heading of at most 24 characters: arms can be whole commands.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(24) {
        None => name.to_owned(),
        Some(_) => name.chars().take(23).collect::<String>() + "…",
    }
}
