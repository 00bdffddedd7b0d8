//! What went in, and which of it decides.

use super::groups::{whole_percent, with_intervals};
use wattwise_advice::figure_words::in_words;
use wattwise_advice::result::{Comparison, DecidingFigure, FigureRange, InputFigure};
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_advice::words;
use wattwise_page::number::{NONE, fixed};

/// The figures that decide between the best and its nearest rival.
pub(super) struct Decides<'a> {
    /// The recommended policy first, where it is one of the two.
    pub(super) between: [&'a str; 2],
    pub(super) figures: Vec<DecidesRow<'a>>,
}

pub(super) struct DecidesRow<'a> {
    pub(super) name: String,
    pub(super) what: &'a str,
    pub(super) by: &'a str,
    /// The bar's length, its interval's left end and length, in percent.
    pub(super) share: f64,
    pub(super) line: (f64, f64),
    pub(super) text: String,
}

/// `None` where no figure can be told apart from chance.
pub(super) fn decides(c: &Comparison) -> Option<Decides<'_>> {
    let d = c.deciding.as_ref().filter(|d| with_intervals(c) && !d.figures.is_empty())?;
    let [leader, rival] = [&d.between[0], &d.between[1]].map(String::as_str);
    let between = if rival == c.answer.recommended { [rival, leader] } else { [leader, rival] };
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
            let name = in_words(&f.what).unwrap_or_else(|| f.what.clone());
            DecidesRow { name, what: &f.what, by: &f.by, share, line, text }
        })
        .collect();
    Some(Decides { between, figures })
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
        (TimeKind::Makespan, Some(_)) => "the reference’s time in the nominal run plus the time limit",
        (TimeKind::Makespan, None) => "several times what the reference takes",
        _ => "the time that was recorded or generated",
    }
}

/// How much slower than the reference a policy may be, in words.
pub(super) fn limit(c: &Comparison) -> String {
    match (c.judged.kind, c.max_slowdown) {
        (TimeKind::Deadlines, _) => "No more deadlines missed than under the reference policy.".to_owned(),
        (_, None) => "None: a policy may be as slow as it is.".to_owned(),
        (_, Some(limit)) => {
            let sure = match (with_intervals(c), c.judged.kind) {
                (false, _) => "",
                (true, TimeKind::Response) => ", over all replicas together",
                (true, _) => ", in at least 95\u{a0}% of the replicas",
            };
            let limit = whole_percent(limit);
            let least = match c.judged.kind {
                TimeKind::Response => {
                    format!(
                        "No kind of response more than {limit} slower than under the reference policy{sure}."
                    )
                }
                _ => format!("At most {limit} slower than the reference policy{sure}."),
            };
            let standard = |name: &String| {
                let policy = with_preference(name, &c.reference);
                match &c.default_standard {
                    Some(default) if default == name => format!("{policy}, the system’s default"),
                    Some(_) => format!("{policy}, in force before the last change"),
                    None => format!("{policy}, in force before the last change or the system’s default"),
                }
            };
            let all: Vec<String> = c.standards.iter().map(standard).collect();
            let too = match &all[..] {
                [] => String::new(),
                all => format!(
                    " The same limit also holds against {}. A policy that is no slower than the reference is always within it.",
                    all.join(", and against ")
                ),
            };
            least + &too
        }
    }
}

/// A policy's name with the energy-performance preference that it has without naming one.
fn with_preference(name: &str, reference: &str) -> String {
    match words::in_words(name, reference) {
        Some(words) if words.starts_with("EPP ") && !name.contains("epp=") => format!("{name} ({words})"),
        _ => name.to_owned(),
    }
}

/// Where intervals come from, or why there are none.
pub(super) fn replicas(c: &Comparison) -> String {
    match c.replicas {
        0 => "None: one run of the nominal model, so it is not known how sure the answer is.".to_owned(),
        n => format!(
            "{n} runs of the whole comparison. Each has its own phase of ticks and periodic work, its own seed and its own random \
             value of each uncertain figure, the same for all policies.{}",
            left_early(c).map_or_else(String::new, |left| format!(" {left}"))
        ),
    }
}

/// Of how many replicas the figures of policies are that could not be the best; `None` where all ran in all.
pub(super) fn left_early(c: &Comparison) -> Option<String> {
    let after: Vec<String> =
        say::left_after(&c.results.iter().collect::<Vec<_>>()).iter().map(u64::to_string).collect();
    (!after.is_empty()).then(|| {
        format!(
            "A policy that could not be the best was dropped after {} replicas, as its row says.",
            after.join(" or ")
        )
    })
}

/// Of how many replicas a dot is the median.
pub(super) fn replicas_of_rows(c: &Comparison) -> String {
    let after: Vec<String> =
        say::left_after(&c.results.iter().collect::<Vec<_>>()).iter().rev().map(u64::to_string).collect();
    match &after[..] {
        [] => format!("{} replicas", c.replicas),
        left => format!("{} replicas ({} where a policy was dropped early)", c.replicas, left.join(" or ")),
    }
}

/// A word of how a figure is known, as people write it.
pub(super) fn basis(word: &str) -> String {
    match word {
        "datasheet" => "data sheet".to_owned(),
        "devicetree" => "device tree".to_owned(),
        "kerneltable" => "kernel table".to_owned(),
        other => other.replace('-', " "),
    }
}

/// A figure's value and where 19 of 20 draws of it lie.
pub(super) fn range(range: &Option<FigureRange>) -> (String, String) {
    let Some(r) = range else { return (NONE.to_owned(), "fixed".to_owned()) };
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

/// How many figures are known how well.
pub(super) struct ConfidenceCount {
    pub(super) confidence: String,
    pub(super) figures: usize,
    pub(super) shaky: bool,
}

/// The figures by how well they are known, the most frequent first.
pub(super) fn confidence(figures: &[InputFigure]) -> Vec<ConfidenceCount> {
    let mut counts: Vec<ConfidenceCount> = Vec::new();
    for f in figures {
        match counts.iter_mut().find(|c| c.confidence == f.confidence) {
            Some(count) => count.figures += 1,
            None => {
                let (confidence, shaky) = (f.confidence.clone(), shaky(&f.confidence));
                counts.push(ConfidenceCount { confidence, figures: 1, shaky });
            }
        }
    }
    counts.sort_by_key(|c| std::cmp::Reverse(c.figures));
    counts
}
