//! Tables for people.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use std::fmt::Write;
use wattwise_advice::result::Comparison;

/// Width of the energy bar in characters.
const BAR: usize = 14;

/// Time with a unit that suits it.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// Microseconds with a unit that suits them.
fn latency(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us * 1e-6),
        us if us >= 1000.0 => format!("{:.1} ms", us * 1e-3),
        us if us >= 10.0 => format!("{us:.0} us"),
        us => format!("{us:.1} us"),
    }
}

/// Joules with four figures.
fn joules(j: f64) -> String {
    match j {
        j if j >= 1e5 => format!("{:.1} kJ", j * 1e-3),
        j if j >= 100.0 => format!("{j:.1} J"),
        j if j >= 1.0 => format!("{j:.3} J"),
        j => format!("{:.2} mJ", j * 1e3),
    }
}

/// A bar of eighths, of `full` characters where `value` is `most`.
fn bar(value: f64, most: f64, full: usize) -> String {
    let eighths = if most > 0.0 { (value / most * full as f64 * 8.0).round() as usize } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
    }
    bar
}

/// A comparison as a table, the best marked, and why.
pub(crate) fn comparison(c: &Comparison, colour: bool) -> String {
    let mut out = String::new();
    let w = &c.workload;
    _ = writeln!(out, "{} ({})", w.name, w.source);
    _ = writeln!(out, "on {}: {}", c.machine, c.inputs.machine_summary);
    for warning in &c.inputs.warnings {
        _ = writeln!(out, "warning: {warning}");
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut header = vec![
        Cell::new(""),
        Cell::new("policy"),
        right("time"),
        right("slower"),
        right("energy"),
        Cell::new(""),
    ];
    header.extend(["mean", "wake p99", "changes"].map(right));
    if colour {
        header = header.into_iter().map(|c| c.add_attribute(Attribute::Bold)).collect();
    }
    table.set_header(header);
    let most = c.results.iter().map(|r| r.window_energy_j).fold(0.0, f64::max);
    for r in &c.results {
        let best = r.policy == c.best.policy;
        let row = vec![
            Cell::new(if best { "*" } else { "" }),
            Cell::new(&r.policy),
            right(&seconds(r.elapsed_s)),
            right(&format!("{:.1} %", (r.slowdown - 1.0) * 100.0)),
            right(&joules(r.window_energy_j)),
            Cell::new(bar(r.window_energy_j, most, BAR)),
            right(&format!("{:.2} W", r.mean_w)),
            right(&latency(r.wake_latency_us.p99)),
            right(&r.transitions.to_string()),
        ];
        let paint = |cell: Cell| {
            if best && colour { cell.fg(Color::Green).add_attribute(Attribute::Bold) } else { cell }
        };
        table.add_row(row.into_iter().map(paint).collect::<Vec<_>>());
    }
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    _ = writeln!(out, "\n{}", table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n"));
    _ = writeln!(
        out,
        "\nenergy: modelled, over the same {} for all (the rest of it idle); mean: over each run's own time",
        seconds(c.window_s)
    );
    _ = writeln!(out, "best: {}: {}", c.best.policy, c.best.why);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(1.0, 1.0, 4), "████");
        assert_eq!(bar(0.5, 1.0, 4), "██");
        assert_eq!(bar(0.53, 1.0, 4), "██▏");
        assert_eq!(bar(1.0, 0.0, 4), "");
    }
}
