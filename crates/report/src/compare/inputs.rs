//! What went in, and which of it decides.

use super::groups::{whole_percent, with_intervals};
use wattwise_advice::result::{Comparison, DecidingFigure, FigureRange, InputFigure};
use wattwise_advice::time::TimeKind;
use wattwise_page::number::{NONE, fixed};

/// The figures that decide between the best and its nearest rival.
pub(super) struct Decides<'a> {
    pub(super) between: &'a [String; 2],
    pub(super) figures: Vec<DecidesRow<'a>>,
}

pub(super) struct DecidesRow<'a> {
    pub(super) what: &'a str,
    pub(super) by: &'a str,
    /// The bar's length, its interval's left end and length, in percent.
    pub(super) share: f64,
    pub(super) line: (f64, f64),
    pub(super) text: String,
}

pub(super) fn decides(c: &Comparison) -> Option<Decides<'_>> {
    let d = c.deciding.as_ref().filter(|_| with_intervals(c))?;
    let percent_of = |x: f64| if x.is_finite() { (x * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let row = |f: &'_ DecidingFigure| {
        let (low, high) = (percent_of(f.low), percent_of(f.high));
        (percent_of(f.share), (low, high - low), format!("{low:.0} to {high:.0}\u{a0}%"))
    };
    let figures = d
        .figures
        .iter()
        .map(|f| {
            let (share, line, text) = row(f);
            DecidesRow { what: &f.what, by: &f.by, share, line, text }
        })
        .collect();
    Some(Decides { between: &d.between, figures })
}

/// What is judged as time, in words.
pub(super) fn judged(c: &Comparison) -> String {
    let what = match c.judged.kind {
        TimeKind::Makespan => "from the release of the work to its end",
        TimeKind::Response => "noticed waiting: the sum of the long responses of each kind of task",
        TimeKind::Deadlines => "the share of deadlines missed",
    };
    format!("{what}, because {}", c.judged.why)
}

/// Why the window is as long as it is.
pub(super) fn window(c: &Comparison) -> &'static str {
    match (c.judged.kind, c.max_slowdown) {
        (TimeKind::Makespan, Some(_)) => "as long as a policy within the limit of time may take",
        (TimeKind::Makespan, None) => "several times what the reference takes",
        _ => "the time that was recorded or generated",
    }
}

/// How much slower than the reference a policy may be, in words.
pub(super) fn limit(c: &Comparison) -> String {
    match (c.judged.kind, c.max_slowdown) {
        (TimeKind::Deadlines, _) => "no more deadlines missed than under the reference policy".to_owned(),
        (_, None) => "none: a policy may be as slow as it is".to_owned(),
        (_, Some(limit)) => {
            let least = format!("at most {} slower than the reference policy", whole_percent(limit));
            let too = match &c.standards[..] {
                [] => String::new(),
                all => format!(", and than {} unless it is no slower than the reference", all.join(" and ")),
            };
            format!("{least}{too}, in 95 % of the replicas")
        }
    }
}

/// Where intervals come from, or why there are none.
pub(super) fn replicas(c: &Comparison) -> String {
    match c.replicas {
        0 => "none: one run of the nominal model, so how sure the answer is, is not known".to_owned(),
        n => format!(
            "{n} runs of the whole comparison, each with another phase of ticks and periodic work, another seed and another draw of each uncertain figure, the same for all policies"
        ),
    }
}

/// A figure's value and where 19 of 20 draws of it lie.
pub(super) fn range(range: &Option<FigureRange>) -> (String, String) {
    let Some(r) = range else { return (NONE.to_owned(), "not drawn".to_owned()) };
    let greatest = [r.nominal, r.low, r.high]
        .into_iter()
        .filter(|x| x.is_finite())
        .fold(0.0, |a: f64, x| a.max(x.abs()));
    let digits = if greatest > 0.0 { (2 - greatest.log10().floor() as i32).clamp(0, 6) as usize } else { 0 };
    let unit = if r.unit.is_empty() { String::new() } else { format!("\u{a0}{}", r.unit) };
    let ends = match r.low.is_finite() && r.high.is_finite() {
        true => format!("{} to {}{unit}", fixed(r.low, digits), fixed(r.high, digits)),
        false => "not known".to_owned(),
    };
    (format!("{}{unit}", fixed(r.nominal, digits)), ends)
}

/// How the results came about, in one word where they agree.
pub(super) fn provenance(c: &Comparison) -> String {
    let mut all: Vec<&str> = c.results.iter().map(|r| r.provenance.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { NONE.to_owned() } else { all.join(" and ") }
}

/// `true` for figures that nobody looked up or measured: a reader should know them before the result.
pub(super) fn shaky(confidence: &str) -> bool {
    let c = confidence.to_ascii_lowercase();
    ["fitted", "guess", "assum", "estimat"].iter().any(|word| c.contains(word))
}

/// `(confidence, figures, shaky)`, the most frequent first.
pub(super) fn confidence(figures: &[InputFigure]) -> Vec<(String, usize, bool)> {
    let mut counts: Vec<(String, usize, bool)> = Vec::new();
    for f in figures {
        match counts.iter_mut().find(|c| c.0 == f.confidence) {
            Some(count) => count.1 += 1,
            None => counts.push((f.confidence.clone(), 1, shaky(&f.confidence))),
        }
    }
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    counts
}
