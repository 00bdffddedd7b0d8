//! Tables for people.

use crate::show::screen::Look;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use std::fmt::Write;
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_figure::one_line;

/// Time with a unit that suits it.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// Joules with four figures.
fn joules(j: f64) -> String {
    match j.abs() {
        a if a >= 1e5 => format!("{:.1} kJ", j * 1e-3),
        a if a >= 100.0 => format!("{j:.1} J"),
        a if a >= 1.0 => format!("{j:.3} J"),
        _ => format!("{:.2} mJ", j * 1e3),
    }
}

/// Width of a policy's name at most, so that a row keeps within 80 columns.
const NAME: usize = 28;
/// From so many columns on a row has two figures more.
pub(crate) const WIDE: usize = 110;
/// Width of a kind's name at most.
const KIND: usize = 12;
const ABOVE_IDLE: &str = "above idle";

/// A comparison: the answer first, then the table, then what it rests on.
pub(crate) fn comparison(c: &Comparison, look: Look, order: Order) -> String {
    let colour = look.colour;
    let mut out = String::new();
    let w = &c.workload;
    _ = writeln!(out, "{}", wrapped(&format!("{} ({})", w.name, w.source), "  "));
    _ = writeln!(out, "{}", wrapped(&format!("on {}: {}", c.machine, c.inputs.machine_summary), "  "));
    let bold = |text: &str| if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    _ = writeln!(out, "\n{}", wrapped(&c.answer.text, "").lines().map(bold).collect::<Vec<_>>().join("\n"));
    match (&c.answer.apply, &c.answer.why_not) {
        (Some(command), _) => _ = writeln!(out, "To apply it: {command}"),
        (None, Some(why)) => _ = writeln!(out, "It cannot be applied: {why}."),
        (None, None) => {}
    }
    _ = writeln!(out, "\n{}\n", rows(c, look, order));
    let more = (look.columns >= WIDE).then(|| format!("{ABOVE_IDLE}, {SLOWEST}: of the nominal model"));
    for note in notes(c).into_iter().chain(more) {
        _ = writeln!(out, "{}", wrapped(&note, "  "));
    }
    out
}

/// Lines of at most 80 columns; all but the first begin with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |l| l.chars().count());
        if line > indent.len() && line + 1 + word.chars().count() > 80 {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The order of the policies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The best and what ties with it, the other admissible ones, those that are too slow; each by energy.
    Best,
    /// As they were asked for: a scan in the order of its parameter.
    Asked,
}

/// The policies in that order.
pub(crate) fn order(c: &Comparison, order: Order) -> Vec<&PolicyResult> {
    let rank = |r: &PolicyResult| match () {
        () if r.policy == c.answer.recommended => 0,
        () if r.tied => 1,
        () if r.admissible => 2,
        () => 3,
    };
    let mut all: Vec<&PolicyResult> = c.results.iter().collect();
    if order == Order::Asked {
        return all;
    }
    let energy = |r: &PolicyResult| r.uncertain.energy_j.median;
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then(energy(a).total_cmp(&energy(b))));
    all
}

/// What is judged as time, as a column's head.
pub(crate) fn time_word(c: &Comparison) -> &'static str {
    match c.judged.kind {
        TimeKind::Makespan => "time",
        TimeKind::Response => "half within",
        TimeKind::Deadlines => "missed",
    }
}

/// How a policy stands, as a mark.
pub(crate) fn mark(c: &Comparison, r: &PolicyResult) -> &'static str {
    match () {
        () if r.policy == c.answer.recommended => "*",
        () if r.tied => "=",
        () if !r.admissible => "x",
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
        TimeKind::Response => response_cells(c, r),
        TimeKind::Deadlines => (format!("{:.2} %", u.time.median * 100.0), String::new()),
    };
    let best = if c.replicas == 0 { String::new() } else { format!("{:.0} %", r.best_share * 100.0) };
    [joules(u.energy_j.median), against(u.energy_ratio), shown, slower, best]
}

/// The median of a kind of response, and its 95th percentile with the kind's name, or what is missed where that decides.
fn response_cells(c: &Comparison, r: &PolicyResult) -> (String, String) {
    let kind = say::row_kind(c, r);
    let half = kind.map_or_else(String::new, |k| say::response(k.p50_s));
    let p95 =
        kind.map_or_else(String::new, |k| format!("{} {}", say::response(k.p95_s), shortened(&k.kind, KIND)));
    let missed = r.missed_by_task.iter().filter(|m| m.slower).map(|m| m.share).fold(0.0, f64::max);
    (half, if missed > 0.0 { format!("misses {:.1} %", missed * 100.0) } else { p95 })
}

/// What is next to the time, as a column's head.
pub(crate) fn beside_time(c: &Comparison) -> &'static str {
    match c.judged.kind {
        TimeKind::Makespan => "against ref.",
        TimeKind::Response => "95 % within",
        TimeKind::Deadlines => "",
    }
}

const SLOWEST: &str = "p99 wake-up";

fn rows(c: &Comparison, look: Look, by: Order) -> String {
    let (colour, wide) = (look.colour, look.columns >= WIDE);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| cell(text).set_alignment(CellAlignment::Right);
    let mut header = vec![cell(""), cell("policy")];
    header.extend(["energy", "against ref.", time_word(c), beside_time(c), "best in"].map(right));
    if wide {
        header.extend([ABOVE_IDLE, SLOWEST].map(right));
    }
    if colour {
        header = header.into_iter().map(|c| c.add_attribute(Attribute::Bold)).collect();
    }
    table.set_header(header);
    for r in order(c, by) {
        let recommended = r.policy == c.answer.recommended;
        let mut row = vec![cell(mark(c, r)), cell(shortened(&r.policy, NAME))];
        row.extend(figures(c, r).iter().map(|figure| right(figure)));
        if wide {
            row.extend(
                [joules(r.above_idle_j), seconds(r.wake_latency_us.p99 * 1e-6)]
                    .iter()
                    .map(|figure| right(figure)),
            );
        }
        let paint = |cell: Cell| match (colour, recommended, r.admissible) {
            (true, true, _) => cell.fg(Color::Green).add_attribute(Attribute::Bold),
            (true, _, false) => cell.add_attribute(Attribute::Dim),
            _ => cell,
        };
        table.add_row(row.into_iter().map(paint).collect::<Vec<_>>());
    }
    drawn(table, colour)
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
fn ratio_text(ratio: Interval) -> String {
    let number = |x: f64| {
        let x = (x - 1.0) * 100.0;
        if x.abs() >= 9.95 { format!("{x:+.0}") } else { format!("{x:+.1}") }
    };
    let (low, high) = (number(ratio.low), number(ratio.high));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// A name of at most so many characters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let head: String = name.chars().take(most - 1).collect();
    head + "…"
}

/// What the figures rest on.
pub(crate) fn notes(c: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let mut marks = vec!["* recommended"];
    if c.results.iter().any(|r| r.tied && r.policy != c.answer.recommended) {
        marks.push("= not told apart from it");
    }
    if c.results.iter().any(|r| !r.admissible) {
        marks.push("x too slow");
    }
    notes.push(format!("{}; reference: {}", marks.join(", "), c.reference));
    let time = match c.judged.kind {
        TimeKind::Makespan => "from the release of the work to its end",
        TimeKind::Response => "response times of the kind that waits most, judged by all kinds",
        TimeKind::Deadlines => "the share of deadlines missed",
    };
    notes.push(format!("time: {time}, since {}", c.judged.why));
    notes.push(format!("energy: modelled, over {} for all", seconds(c.window_s)));
    if c.replicas > 0 {
        notes.push(format!("ranges: 90 % of {} replicas with other phases, seeds and figures", c.replicas));
    }
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for r in &c.results {
        let name = r.policy.split([':', '+']).next().unwrap_or_default();
        if let Some(why) = &r.approximation
            && !reasons.iter().any(|(n, _)| *n == name)
        {
            reasons.push((name, why));
        }
    }
    notes.extend(reasons.iter().map(|(name, why)| format!("{name} is an approximation: {why}")));
    if let Some(d) = &c.deciding
        && !d.figures.is_empty()
    {
        let figures: Vec<String> =
            d.figures.iter().map(|f| format!("{} ({:.0} %: {})", f.what, f.share * 100.0, f.by)).collect();
        notes.push(format!("between {} and {} decide: {}", d.between[0], d.between[1], figures.join("; ")));
    }
    // Of a recording the share that `trace` tells, too.
    notes.push(match c.workload.others_share {
        Some(share) => format!(
            "work: {}; other programs had {:.1} % of the recorded CPU time",
            c.workload.foreground,
            share * 100.0
        ),
        None => format!(
            "work: {}; {:.0} % of the cycles are background",
            c.workload.foreground,
            c.workload.background_share * 100.0
        ),
    });
    if !c.workload.clock.is_empty() {
        notes.push(format!("recorded clock: {}; memory-bound: {}", c.workload.clock, c.workload.memory));
    }
    notes.extend(c.inputs.warnings.iter().map(|w| format!("warning: {w}")));
    notes
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

    #[test]
    fn ratios_are_changes() {
        let of = |low, high| ratio_text(Interval { median: 1.0, low, high });
        assert_eq!(of(0.86, 0.91), "-14 to -9.0 %");
        assert_eq!(of(1.0, 1.0), "+0.0 %");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("schedutil", NAME), "schedutil");
        assert_eq!(shortened(&"x".repeat(40), NAME).chars().count(), NAME);
    }
}
