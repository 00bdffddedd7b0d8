//! Tables for people.

use crate::show::names::{fitted, name_cell, shortened};
use crate::show::screen::TextStyle;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use wattwise_advice::columns::{self, Column, ColumnValue, ScreenHead, ShownAs};
use wattwise_advice::result::{Comparison, Interval, KindResponses, PolicyResult};
use wattwise_advice::rule::Goal;
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_figure::units::trim;
use wattwise_figure::{fixed, one_line, signed};

/// Time with a unit that suits it.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s => format!("{} ms", fixed(s * 1e3, 2)),
    }
}

/// Joules with four figures.
pub(crate) fn joules(j: f64) -> String {
    match j.abs() {
        a if a >= 1e5 => format!("{:.1} kJ", j * 1e-3),
        a if a >= 100.0 => format!("{j:.1} J"),
        a if a >= 1.0 => format!("{j:.3} J"),
        _ => format!("{} mJ", fixed(j * 1e3, 2)),
    }
}

/// From so many columns on a row has two figures more.
pub(crate) const WIDE: usize = 110;
/// Width of a kind's name at most.
const KIND: usize = 8;

/// Lines of at most 80 columns; all but the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    wrapped_after("", text, indent)
}

/// The same with something before the text, which stays as it is.
pub(crate) fn wrapped_after(before: &str, text: &str, indent: &str) -> String {
    let mut lines = vec![before.to_owned()];
    for word in &unbroken(text) {
        let line = lines.last().map_or(0, |l| l.chars().count());
        if line > indent.len() && line + 1 + word.chars().count() > 80 {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The words between which a line may end: a number is not parted from its unit.
fn unbroken(text: &str) -> Vec<String> {
    const UNITS: [&str; 10] = ["%", "J", "kJ", "mJ", "W", "s", "ms", "us", "MHz", "GHz"];
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if is_unit(word) && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// With a capital and a full stop.
pub(crate) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map_or_else(String::new, |c| c.to_uppercase().to_string());
    first + letters.as_str() + if words.ends_with('.') { "" } else { "." }
}

/// The order of the policies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyOrder {
    /// The best and what ties with it, the other admissible ones, those that are too slow; each by energy.
    Best,
    /// As they were asked for: a scan in the order of its parameter.
    Asked,
}

/// The policies in that order.
pub(crate) fn order(c: &Comparison, order: PolicyOrder) -> Vec<&PolicyResult> {
    let rank = |r: &PolicyResult| match () {
        () if r.policy == c.answer.recommended => 0,
        () if r.tied => 1,
        () if r.admissible => 2,
        () => 3,
    };
    let mut all: Vec<&PolicyResult> = c.results.iter().collect();
    if order == PolicyOrder::Asked {
        return all;
    }
    // Joules of policies that were left early are of other replicas; their ratios are of the same ones.
    let energy = |r: &PolicyResult| say::energy_ratio(c, r).map_or(f64::INFINITY, |ratio| ratio.median);
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then(energy(a).total_cmp(&energy(b))));
    all
}

/// What is judged as time, as a column's head.
pub(crate) fn time_word(c: &Comparison) -> &'static str {
    match c.judged.kind {
        TimeKind::Makespan => "time",
        TimeKind::Response => HALF,
        TimeKind::Deadlines => "missed",
    }
}

/// Heads of the columns of response times.
const HALF: &str = "median";
const MOST: &str = "95 % within";

/// How a policy stands, as a mark.
pub(crate) fn mark(c: &Comparison, r: &PolicyResult) -> &'static str {
    match () {
        () if r.policy == c.answer.recommended => "*",
        () if !r.admissible && !say::not_judged(r) => "x",
        () if r.tied => "=",
        () => "",
    }
}

/// A policy's figures: energy, against the reference, time, against the reference, best in.
pub(crate) fn figures(c: &Comparison, r: &PolicyResult) -> [String; 5] {
    let u = &r.uncertain;
    let reference = r.policy == c.reference;
    let against = |ratio| if reference { "reference".to_owned() } else { ratio_text(ratio) };
    let (shown, slower) = match c.judged.kind {
        TimeKind::Makespan => (seconds(u.time.median), against(u.time_ratio)),
        TimeKind::Response => {
            let all: Vec<&PolicyResult> = c.results.iter().collect();
            response_cells(c, r, Some(&shown_kinds(c, &all)))
        }
        TimeKind::Deadlines => (format!("{:.2} %", u.time.median * 100.0), String::new()),
    };
    let best = best_in(c, r);
    let energy = match say::energy_ratio(c, r) {
        Some(ratio) => against(ratio),
        None => say::OWN_TIME.to_owned(),
    };
    [joules(say::energy_j(c, r).median), energy, shown, slower, best]
}

/// A kind of response in a table.
#[derive(Clone)]
struct ShownKind {
    name: String,
    /// Of its bursts, in millions of cycles.
    size: (f64, f64),
    /// Other sizes have the same name.
    of_several: bool,
}

impl ShownKind {
    fn of_row(c: &Comparison, r: &PolicyResult) -> Option<ShownKind> {
        let kind = say::row_kind(c, r)?;
        let kinds = &r.responses.as_ref()?.kinds;
        let of_several = say::is_one_of_several(kinds, kind);
        Some(ShownKind { name: shortened(&kind.kind, KIND), size: say::kind_size(kind), of_several })
    }

    fn is(&self, other: &ShownKind) -> bool {
        self.name == other.name && self.size == other.size
    }

    /// The name, and the size where another of these kinds has the same: `page 4-16M`.
    fn among(&self, kinds: &[ShownKind]) -> String {
        match self.size {
            _ if kinds.iter().filter(|k| k.name == self.name).count() < 2 => self.name.clone(),
            (0.0, to) => format!("{} <{to:.0}M", self.name),
            (from, to) => format!("{} {from:.0}-{to:.0}M", self.name),
        }
    }
}

/// The kinds of response that rows show, each once.
fn shown_kinds(c: &Comparison, shown: &[&PolicyResult]) -> Vec<ShownKind> {
    let mut kinds: Vec<ShownKind> = Vec::new();
    for kind in shown.iter().filter_map(|r| ShownKind::of_row(c, r)) {
        match kinds.iter_mut().find(|k| k.is(&kind)) {
            Some(known) => known.of_several |= kind.of_several,
            None => kinds.push(kind),
        }
    }
    kinds
}

/// Which of several kinds of one name are shown.
fn sizes(kinds: &[ShownKind]) -> Option<String> {
    match kinds {
        [kind] => kind.of_several.then(|| match kind.size {
            (0.0, to) => format!("{}: its bursts of under {to:.0} million cycles", kind.name),
            (from, to) => format!("{}: its bursts of {from:.0} to {to:.0} million cycles", kind.name),
        }),
        _ => {
            let sized = |kind: &ShownKind| kind.among(kinds) != kind.name;
            kinds.iter().any(sized).then(|| "4-16M: bursts of 4 to 16 million cycles".into())
        }
    }
}

/// The median of a kind of response, and its 95th percentile with the kind's name where the heading has none, or what is missed
/// where that decides.
fn response_cells(c: &Comparison, r: &PolicyResult, named_among: Option<&[ShownKind]>) -> (String, String) {
    let kind = say::row_kind(c, r);
    let half = kind.map_or_else(String::new, |k| say::response(k.p50_s));
    let p95 = kind.map_or_else(String::new, |k| {
        let figure = match waits_longer(c, r, k) {
            Some(ratio) => format!("{WAITS} x{}", trim(ratio, 1)),
            None => say::response(k.p95_s),
        };
        match named_among.and_then(|kinds| Some(ShownKind::of_row(c, r)?.among(kinds))) {
            Some(name) => format!("{figure} {name}"),
            None => figure,
        }
    });
    (half, misses(r).map_or(p95, |share| format!("{MISSES} {:.1} %", share * 100.0)))
}

/// The share of deadlines or periods that a row says is missed: where that alone puts the policy over the limit, or as well.
fn misses(r: &PolicyResult) -> Option<f64> {
    let most = r.missed_by_task.iter().filter(|m| m.slower).map(|m| m.share).fold(0.0, f64::max);
    (most > 0.0).then_some(most)
}

/// How much longer a kind waits in all, where that alone puts a policy over the limit: its 95th percentile would not show it.
fn waits_longer(c: &Comparison, r: &PolicyResult, kind: &KindResponses) -> Option<f64> {
    let limit = 1.0 + c.max_slowdown?;
    let shows = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio > limit);
    (!r.admissible && kind.slower && !shows(kind.p95_ratio)).then_some(kind.mean_ratio?)
}

const WAITS: &str = "waits";
const MISSES: &str = "misses";

/// What is next to the time, as a column's head.
pub(crate) fn beside_time(c: &Comparison) -> &'static str {
    match c.judged.kind {
        TimeKind::Makespan => "against ref.",
        TimeKind::Response => MOST,
        TimeKind::Deadlines => "",
    }
}

/// A figure of a column as it is shown.
fn shown(head: &ScreenHead, value: &ColumnValue) -> String {
    let x = value.number();
    match head.shown {
        ShownAs::Joules => joules(x),
        ShownAs::Micros => seconds(x * 1e-6),
        ShownAs::Plain(decimals) => format!("{x:.decimals$}"),
    }
}

/// The columns beside energy and time that Markdown has: headings, and a policy's cells.
pub(crate) fn in_markdown() -> Vec<(ScreenHead, &'static Column)> {
    columns::of_screen().into_iter().filter(|(head, _)| head.in_markdown).collect()
}

/// A policy's cell in such a column.
pub(crate) fn screen_cell(
    (head, column): &(ScreenHead, &Column),
    c: &Comparison,
    r: &PolicyResult,
) -> String {
    shown(head, &(column.value)(c, r))
}

/// How a policy stands, in a word; what the words mean is told below the table ([`legend`]).
fn remark(c: &Comparison, r: &PolicyResult) -> String {
    match r.raced_out_after {
        _ if r.policy == c.reference => "reference".into(),
        _ if say::not_judged(r) => NOT_JUDGED.into(),
        _ if !r.admissible && c.judged.kind == TimeKind::Response => String::new(),
        _ if !r.admissible => OVER.into(),
        Some(n) => format!("{n} {REPLICAS}"),
        None => String::new(),
    }
}

const OVER: &str = "over limit";
pub(crate) const NOT_JUDGED: &str = "not judged";
pub(crate) const REPLICAS: &str = "replicas";

/// What the mark of a tie means.
pub(crate) const TIED: &str = "= no clear difference from *; no mark: needs more energy";

/// What is said of a policy whose responses were run in too few replicas.
pub(crate) fn not_judged() -> String {
    format!("{NOT_JUDGED}: its responses, in fewer than 16 replicas")
}

/// What the marks and words of these rows mean.
pub(crate) fn legend(c: &Comparison, shown: &[&PolicyResult]) -> Vec<String> {
    let some = |of: &dyn Fn(&PolicyResult) -> bool| shown.iter().any(|r| of(r));
    let mut words = Vec::new();
    if shown.len() > 1 && some(&|r| mark(c, r) == "*") {
        words.push("* recommended".to_owned());
    }
    if some(&|r| mark(c, r) == "=") {
        words.push(TIED.to_owned());
    }
    if some(&say::not_judged) {
        words.push(not_judged());
    }
    if some(&|r| !r.admissible && !say::not_judged(r)) {
        let limit =
            c.max_slowdown.map_or_else(|| "any".into(), |limit| format!("{} %", trim(limit * 100.0, 1)));
        let than = match &c.standards[..] {
            [] => String::new(),
            all => format!(" slower than the reference or {}", all.join(" or ")),
        };
        words.push(format!("x over the time limit ({limit}{than})"));
    }
    if c.judged.kind == TimeKind::Response {
        words.extend(of_responses(c, shown));
    }
    if c.goal != Goal::OwnEnergy && some(&|r| r.over_own_time) {
        words.push(format!("{}: did not finish in the window, not comparable", say::OWN_TIME));
    }
    let left: Vec<&PolicyResult> = shown.iter().filter(|r| r.admissible).copied().collect();
    let tied = left.iter().any(|r| r.tied && r.raced_out_after.is_some());
    words.extend(left_early(&say::left_after(&left), tied, c.stopped));
    words.push(format!("energy: of {}", say::energy_of(c)));
    words
}

/// What the words and names in the columns of responses mean.
fn of_responses(c: &Comparison, shown: &[&PolicyResult]) -> Vec<String> {
    let waits = |r: &&PolicyResult| match misses(r) {
        Some(_) => None,
        None => waits_longer(c, r, say::row_kind(c, r)?),
    };
    let mut words = Vec::new();
    if let Some(ratio) = shown.iter().find_map(waits) {
        let times = trim(ratio, 1);
        words.push(format!("{WAITS} x{times}: its noticed responses take {times} times as long in all"));
    }
    if shown.iter().any(|r| misses(r).is_some()) {
        words.push(format!("{MISSES}: of its deadlines or periods, more than the reference"));
    }
    words.extend(sizes(&shown_kinds(c, shown)));
    words
}

/// Why rows have fewer replicas than the others; none where none has. `tied`: some of them show no clear difference from what is
/// recommended.
pub(crate) fn left_early(after: &[u64], tied: bool, stopped: bool) -> Option<String> {
    let why = match (stopped, tied) {
        (true, _) => "no more: others were better or as good, or it was stopped",
        (false, true) => "run in no more, others were better or as good",
        (false, false) => "dropped then, others were better",
    };
    let after: Vec<String> = after.iter().map(u64::to_string).collect();
    (!after.is_empty()).then(|| format!("{} {REPLICAS}: {why}", after.join(" or ")))
}

/// Rows of the policies.
pub(crate) fn rows(c: &Comparison, shown: &[&PolicyResult], look: TextStyle) -> String {
    let names = shown.iter().map(|r| r.policy.as_str());
    fitted(look.columns, names, &|name| rows_with(c, shown, look, name))
}

/// The same with names of at most so many characters a line.
fn rows_with(c: &Comparison, shown: &[&PolicyResult], look: TextStyle, name: usize) -> String {
    let (colour, wide, beside) = (look.colour, look.columns >= WIDE, columns::of_screen());
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| cell(text).set_alignment(CellAlignment::Right);
    let kinds = shown_kinds(c, shown);
    let mut header = vec![cell(""), cell("policy"), right("energy")];
    header.extend(time_heads(c, &kinds).iter().map(|head| right(head)));
    if wide {
        header.push(right("best in"));
        header.extend(beside.iter().map(|(head, _)| right(head.name)));
    }
    header.push(cell(""));
    if colour {
        header = header.into_iter().map(|c| c.add_attribute(Attribute::Bold)).collect();
    }
    table.set_header(header);
    for r in shown {
        let recommended = r.policy == c.answer.recommended;
        let mut row = vec![cell(mark(c, r)), name_cell(&r.policy, name)];
        let energy = joules(say::energy_j(c, r).median);
        row.push(right(&match say::energy_ratio(c, r) {
            Some(ratio) => change_or(c, r, ratio, &energy),
            None => format!("{energy} {}", say::OWN_TIME),
        }));
        row.extend(time_cells(c, r, &kinds).iter().map(|figure| right(figure)));
        if wide {
            let best = if r.raced_out_after.is_some() { String::new() } else { best_in(c, r) };
            row.push(right(&best));
            row.extend(beside.iter().map(|column| right(&screen_cell(column, c, r))));
        }
        row.push(cell(remark(c, r)));
        let paint = |cell: Cell| match (colour, recommended, r.admissible) {
            (true, true, _) => cell.fg(Color::Green).add_attribute(Attribute::Bold),
            (true, _, false) => cell.add_attribute(Attribute::Dim),
            _ => cell,
        };
        table.add_row(row.into_iter().map(paint).collect::<Vec<_>>());
    }
    drawn(table, colour)
}

/// A change against the reference; of the reference its own figure.
fn change_or(c: &Comparison, r: &PolicyResult, ratio: Interval, own: &str) -> String {
    if r.policy == c.reference { own.to_owned() } else { ratio_text(ratio) }
}

/// Heads of the columns of time, with the kind of response where all rows show the same.
fn time_heads(c: &Comparison, kinds: &[ShownKind]) -> Vec<String> {
    match (c.judged.kind, kinds) {
        (TimeKind::Makespan, _) => vec!["time".into()],
        (TimeKind::Response, [kind]) => vec![format!("{}: {HALF}", kind.name), MOST.into()],
        (TimeKind::Response, _) => vec![HALF.into(), MOST.into()],
        (TimeKind::Deadlines, _) => vec!["missed".into()],
    }
}

fn time_cells(c: &Comparison, r: &PolicyResult, kinds: &[ShownKind]) -> Vec<String> {
    let u = &r.uncertain;
    match c.judged.kind {
        TimeKind::Makespan => vec![change_or(c, r, u.time_ratio, &seconds(u.time.median))],
        TimeKind::Response => {
            let (half, most) = response_cells(c, r, Some(kinds).filter(|kinds| kinds.len() > 1));
            vec![half, most]
        }
        TimeKind::Deadlines => vec![format!("{:.2} %", u.time.median * 100.0)],
    }
}

fn best_in(c: &Comparison, r: &PolicyResult) -> String {
    if c.replicas == 0 { String::new() } else { format!("{:.0} %", r.best_share * 100.0) }
}

/// A cell: one line, whatever a name has in it, for a second line would look like a row.
pub(crate) fn cell(text: impl AsRef<str>) -> Cell {
    Cell::new(one_line(text.as_ref()))
}

/// A table as text: flush left, no blanks at the ends of lines.
pub(crate) fn drawn(mut table: Table, colour: bool) -> String {
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 0));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A ratio as a change in per cent: `-14 to -9 %`.
pub(crate) fn ratio_text(ratio: Interval) -> String {
    let number = |x: f64| {
        let x = (x - 1.0) * 100.0;
        signed(x, if x.abs() >= 9.95 { 0 } else { 1 })
    };
    let (low, high) = (number(ratio.low), number(ratio.high));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_80_columns_and_lose_no_word() {
        let text = "word ".repeat(50) + &"long".repeat(30) + " end";
        let lines = wrapped(&text, "  ");
        assert!(lines.lines().all(|l| l.chars().count() <= 80 || !l.trim().contains(' ')), "{lines}");
        assert!(lines.lines().skip(1).all(|l| l.starts_with("  ")), "{lines}");
        assert_eq!(lines.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
    }

    /// The heading names the kind of response where all rows show the same; else each row does.
    #[test]
    fn a_kind_of_response_stands_once() {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let mut c: Comparison = serde_json::from_slice(bytes).expect("as compare wrote it");
        c.judged.kind = TimeKind::Response;
        let of = |kind: &str, slower: bool| {
            serde_json::from_value(serde_json::json!({
                "judged": true, "why_not": null, "slower": slower, "excess": 1.0, "floor_s": 0.001, "waiting_s": 1.0,
                "reference_waiting_s": 1.0, "unfinished_share": 0.0,
                "kinds": [{
                    "kind": kind, "episodes": 9.0, "p50_s": 0.1, "p95_s": 0.2, "reference_p50_s": 0.1, "reference_p95_s": 0.2,
                    "waiting_s": 1.0, "reference_waiting_s": 1.0, "mean_ratio": 1.0, "p95_ratio": 1.0, "slower": slower,
                }],
            }))
            .expect("responses")
        };
        let text = |c: &Comparison| rows(c, &order(c, PolicyOrder::Best), TextStyle::PLAIN);
        c.results.iter_mut().for_each(|r| r.responses = Some(of("page", false)));
        let same = text(&c);
        assert!(same.contains("page: median") && same.matches("page").count() == 1, "{same}");
        c.results[0].responses = Some(of("typing", true));
        let several = text(&c);
        assert!(several.contains(" median") && !several.contains(": median"), "{several}");
        assert!(several.contains("200 ms typing") && several.contains("200 ms page"), "{several}");
    }

    /// Two kinds of one name are two: the heading does not put them in one column, and the legend says which one it is.
    #[test]
    fn kinds_of_one_name_are_told_apart_by_their_size() {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let mut c: Comparison = serde_json::from_slice(bytes).expect("as compare wrote it");
        c.judged.kind = TimeKind::Response;
        let of = |slower_large: bool| {
            let kind = |class: u8, slower: bool| {
                serde_json::json!({
                    "kind": "page", "size_class": class, "episodes": 9.0, "p50_s": 0.1, "p95_s": 0.2, "reference_p50_s": 0.1,
                    "reference_p95_s": 0.2, "waiting_s": f64::from(9 - class), "reference_waiting_s": 1.0, "mean_ratio": 1.0,
                    "p95_ratio": 1.0, "slower": slower,
                })
            };
            serde_json::from_value(serde_json::json!({
                "judged": true, "why_not": null, "slower": slower_large, "excess": 1.0, "floor_s": 0.001, "waiting_s": 1.0,
                "reference_waiting_s": 1.0, "unfinished_share": 0.0, "kinds": [kind(2, false), kind(4, slower_large)],
            }))
            .expect("responses")
        };
        let text = |c: &Comparison| {
            let shown = order(c, PolicyOrder::Best);
            rows(c, &shown, TextStyle::PLAIN) + &legend(c, &shown).join("; ")
        };
        c.results.iter_mut().for_each(|r| r.responses = Some(of(false)));
        let same = text(&c);
        assert!(
            same.contains("page: median") && same.contains("page: its bursts of 4 to 16 million"),
            "{same}"
        );
        c.results[0].responses = Some(of(true));
        let several = text(&c);
        assert!(!several.contains(": median") && several.contains("page 64-256M"), "{several}");
        assert!(several.contains("page 4-16M") && several.contains("; 4-16M: bursts of"), "{several}");
    }

    #[test]
    fn ratios_are_changes() {
        let of = |low, high| ratio_text(Interval { median: 1.0, low, high });
        assert_eq!(of(0.86, 0.91), "-14 to -9.0 %");
        assert_eq!(of(1.0, 1.0), "+0.0 %");
        assert_eq!((of(0.9997, 0.9997), of(0.9997, 1.02)), ("+0.0 %".into(), "+0.0 to +2.0 %".into()));
    }

    /// A number and its unit stay on one line, wherever the line ends.
    #[test]
    fn no_line_begins_with_a_unit() {
        for before in 50..85 {
            let text =
                "x".repeat(before) + " over the limit in 44 % of them, 122.3 J, (10 %); 447 -> 467 ms.";
            let lines = wrapped(&text, "  ");
            for unit in ["%", "J", "ms"] {
                assert!(!lines.lines().any(|l| l.trim_start().starts_with(unit)), "{lines}");
            }
        }
    }

    /// The legend of rows with responses, each as JSON adds to what is usual.
    fn legend_of(change: impl Fn(&mut PolicyResult)) -> String {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let mut c: Comparison = serde_json::from_slice(bytes).expect("as compare wrote it");
        (c.judged.kind, c.max_slowdown) = (TimeKind::Response, Some(0.1));
        let kept = c.answer.recommended.clone();
        c.results.iter_mut().filter(|r| r.policy != kept).for_each(change);
        let shown = order(&c, PolicyOrder::Best);
        rows(&c, &shown, TextStyle::PLAIN) + "\n" + &legend(&c, &shown).join("; ")
    }

    /// A row shows its longer waiting or what it misses: the legend explains the one that is shown.
    #[test]
    fn the_legend_explains_what_rows_show() {
        let slower = |r: &mut PolicyResult, missed: f64| {
            r.admissible = false;
            r.responses = serde_json::from_value(serde_json::json!({
                "judged": true, "why_not": null, "slower": true, "excess": 3.1, "floor_s": 0.001, "waiting_s": 3.1,
                "reference_waiting_s": 1.0, "unfinished_share": 0.0,
                "kinds": [{
                    "kind": "page", "episodes": 9.0, "p50_s": 0.1, "p95_s": 0.2, "reference_p50_s": 0.1, "reference_p95_s": 0.2,
                    "waiting_s": 3.1, "reference_waiting_s": 1.0, "mean_ratio": 3.1, "p95_ratio": 1.0, "slower": true,
                }],
            }))
            .expect("responses");
            r.missed_by_task = serde_json::from_value(serde_json::json!([{
                "task": "video", "share": missed, "reference_share": 0.0, "slower": missed > 0.0,
            }]))
            .expect("a task");
        };
        let waits = legend_of(|r| slower(r, 0.0));
        assert!(waits.contains("waits x3.1 page") || waits.contains("waits x3.1\n"), "{waits}");
        assert!(waits.contains("; waits x3.1: ") && !waits.contains("misses"), "{waits}");
        let misses = legend_of(|r| slower(r, 0.05));
        assert!(misses.contains("misses 5.0 %") && misses.contains("; misses: "), "{misses}");
        assert!(!misses.contains("waits x"), "{misses}");
    }

    /// What ties with the recommended policy and ran in fewer replicas was not dropped for a better one.
    #[test]
    fn what_ties_is_not_called_dropped() {
        let left = |tied: bool| {
            legend_of(|r| {
                (r.admissible, r.tied, r.raced_out_after) = (true, tied, Some(16));
                r.responses = None;
            })
        };
        assert!(left(false).contains("16 replicas: dropped then, others were better"), "{}", left(false));
        let tied = left(true);
        assert!(tied.contains("\n= ") && tied.contains("; 16 replicas: "), "{tied}");
        assert!(!tied.contains("dropped") && !tied.contains("others were better;"), "{tied}");
    }
}
