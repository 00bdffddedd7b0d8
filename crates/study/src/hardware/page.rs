//! The page of the scores: `docs/notes/hardware.md`, made by `wattwise machines score policies --page FILE`.

use super::Scored;
use super::compare::{Compared, Comparison};
use super::score::{Held, Scores, TablePart};
use super::table::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use wattwise_figure::one_line;

/// About so many comparisons of a table are shown.
const SHOWN: usize = 30;

/// One comparison in so many is shown. Tables go through their settings and quantities in turn, and a step that has a divisor in
/// common with how many these are would show the same few again and again.
fn step(all: usize) -> usize {
    match all.div_ceil(SHOWN) {
        0..4 => 1,
        least => (least..).find(|n| [2, 3, 5, 7, 11, 13].iter().all(|p| n % p != 0)).unwrap_or(least),
    }
}

/// A share in per cent, or a dash.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |s| format!("{:.1}", s * 100.0))
}

/// Text from a table: nothing in it ends the line, begins a tag or a link, or ends a cell.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '[' | ']' | '`' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

const HEAD: &str = "| | rows | comparisons | differ | sign right | tau | median error | 95 % below | in 90 % | no difference | cube |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

fn line(name: &str, rows: Option<usize>, h: &Held) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        cell(name),
        rows.map_or(String::new(), |r| r.to_string()),
        h.comparisons,
        h.differing,
        percent(h.sign_right),
        h.tau.map_or("-".into(), |t| format!("{t:.2}")),
        percent(h.ratio_median_abs_error),
        percent(h.ratio_p95_abs_error),
        percent(h.coverage_90),
        percent(h.no_difference_median_abs_error),
        percent(h.cube_median_abs_error),
    )
}

fn summary(s: &Scores) -> String {
    let mut out = format!(
        "{} tables, {} rows: {} predicted, {} references, {} calibrating, {} of which nothing can be said. {} comparisons, of which {} \
         differ by more than their spread. Means over tables:\n\n\
         | | sign right, % | tau | median error, % | 95 % below, % | in the 90 % interval, % |\n|---|--:|--:|--:|--:|--:|\n",
        s.tables,
        s.rows,
        s.predicted_rows,
        s.reference_rows,
        s.calibrating_rows,
        s.unsaid_rows,
        s.comparisons,
        s.differing
    );
    _ = writeln!(
        out,
        "| wattwise | {} | {} | {} | {} | {} |",
        percent(s.sign_right),
        s.tau.map_or("-".into(), |t| format!("{t:.2}")),
        percent(s.ratio_median_abs_error),
        percent(s.ratio_p95_abs_error),
        percent(s.coverage_90)
    );
    _ = writeln!(
        out,
        "| wattwise, all comparisons alike | {} | - | - | - | {} |",
        percent(s.all_sign_right),
        percent(s.all_coverage_90)
    );
    for k in &s.know_nothing {
        _ = writeln!(
            out,
            "| {} | {} | - | {} | {} | - |",
            k.name,
            percent(k.sign_right),
            percent(k.ratio_median_abs_error),
            percent(k.ratio_p95_abs_error)
        );
    }
    out
}

/// Whether a prediction misses: its interval does not have the measured ratio, or it is on the wrong side.
fn is_miss(c: &Comparison) -> bool {
    !c.covers() || (c.differs() && !c.is_sign_right(c.predicted))
}

fn shown(table: &Table, c: &Comparison) -> String {
    let row = &table.rows[c.row];
    let verdict = match (is_miss(c), &row.cause) {
        (false, _) => "",
        (true, Some(cause)) => cause,
        (true, None) => "miss: unknown",
    };
    format!(
        "| {} | {} | {} | {:.3} | {:.3} | {:.3} to {:.3} | {} |\n",
        row.number,
        cell(&row.label),
        table.quantities[c.quantity].word(),
        c.measured,
        c.predicted,
        c.low,
        c.high,
        cell(verdict)
    )
}

/// A table's part of the page.
pub fn section(table: &Table, compared: &Compared, part: &TablePart) -> String {
    let mut out = format!("\n## {}\n\n{}.", cell(&table.name), cell(&table.title));
    for (what, text) in [
        ("Source", &table.source),
        ("Licence", &table.licence),
        ("Kernel", &table.kernel),
        ("Meter", &table.meter),
    ] {
        _ = write!(out, " {what}: {}.", cell(text));
    }
    for note in &table.notes {
        _ = write!(out, " Note: {}.", cell(note));
    }
    match part.calibrated_by.as_slice() {
        [] => out.push_str(" Nothing calibrates it."),
        few if few.len() <= 4 => _ = write!(out, " Calibrated by: {}.", cell(&few.join("; "))),
        many => {
            let first = cell(&many[0]);
            _ = write!(out, " Calibrated by {} settings, one a program; the first: {first}.", many.len());
        }
    }
    out.push('\n');
    for why in &part.unexplained {
        _ = writeln!(out, "\nOdd: {}.", cell(why));
    }
    for u in &part.unsaid {
        _ = writeln!(out, "\nNot said: {} rows, the first is row {}: {}.", u.rows, u.first_row, cell(&u.why));
    }
    let all = &compared.comparisons;
    if all.is_empty() {
        return out;
    }
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for c in all.iter().filter(|c| is_miss(c)) {
        *causes.entry(table.rows[c.row].cause.as_deref().unwrap_or("unknown")).or_default() += 1;
    }
    let misses: usize = causes.values().sum();
    _ = write!(out, "\n{misses} of {} comparisons miss", all.len());
    for (i, (cause, n)) in causes.iter().enumerate() {
        _ = write!(out, "{} {n}: {}", if i == 0 { ":" } else { ";" }, cell(cause));
    }
    out.push_str(".\n\n");
    let every = step(all.len());
    if every > 1 {
        _ = writeln!(out, "One comparison in {every}:\n");
    }
    out.push_str(
        "| row | setting | | measured | predicted | 90 % interval | |\n|--:|---|---|--:|--:|---|---|\n",
    );
    all.iter().step_by(every).for_each(|c| out.push_str(&shown(table, c)));
    out
}

/// The whole page.
pub fn page(tables: &[Table], scored: &Scored) -> String {
    let s = &scored.scores;
    let mut out = String::from(
        "# Held against hardware\n\n\
         Published measurements of time, power and energy under several policies on real machines, and what the engine says of the\n\
         same. Made by `wattwise machines score policies --page FILE`; `docs/hardware.md` tells what a table is and how\n\
         to add one. A comparison is a row against its work's reference row in one quantity, as a ratio. At most one setting of each\n\
         program calibrates (its published watts scale the model's busy cores, and where they are metered apart the rest of the package\n\
         and the memory; a machine's figures are drawn by how well they go with all of a table's programs on it); nothing else that was published is used for what is predicted. \
         Of the 90 % intervals one part, how rough the model is beside what it draws, is fitted to all tables of the repository \
         (hardware-intervals.md; there also how they hold of each machine without its part in the fit). Figures in the tables are \
         per cent, but tau.\n\n",
    );
    out += &summary(s);
    out += "\n## By table\n\n";
    out += HEAD;
    s.by_table.iter().for_each(|t| out += &line(&t.name, Some(t.rows), &t.held));
    for (title, parts) in [("By mechanism", &s.by_mechanism), ("By class of machine", &s.by_class)] {
        _ = write!(out, "\n## {title}\n\n{HEAD}");
        parts.iter().for_each(|p| out += &line(&p.name, None, &p.held));
    }
    for ((table, compared), part) in tables.iter().zip(&scored.compared).zip(&s.by_table) {
        out += &section(table, compared, part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::step;

    /// 13 speeds of two quantities each, and 2160 comparisons: one in 72 was always the same speed's seconds.
    #[test]
    fn what_is_shown_goes_through_all_settings() {
        assert_eq!([step(0), step(45), step(121), step(2160)], [1, 1, 17, 73]);
        let shown: std::collections::BTreeSet<usize> =
            (0..2160).step_by(step(2160)).map(|n| n % 26).collect();
        assert_eq!(shown.len(), 26);
    }
}
