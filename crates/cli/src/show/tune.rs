//! What a search found, for people.

use crate::show::names::{fitted, name_cell};
use crate::show::screen::COLUMNS;
use crate::show::screen::bold;
use crate::show::table::{cell, drawn, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;
use wattwise_tune::gain::Gain;
use wattwise_tune::result::{Ended, Test, TuneResult, Used};

/// Most points of the front that are shown; JSON has all.
const MOST: usize = 8;

/// A ratio as a change in per cent.
fn change(ratio: f64) -> String {
    format!("{} %", wattwise_figure::signed((ratio - 1.0) * 100.0, 1))
}

/// A gain with its interval: `-3.1 % (-5.0 to -1.2 %)`.
fn gain(g: Gain) -> String {
    let percent = |r: f64| wattwise_figure::signed((r - 1.0) * 100.0, 1);
    format!("{} % ({} to {} %)", percent(g.ratio), percent(g.low), percent(g.high))
}

/// The verdict, the front, what it rests on.
pub(crate) fn text(r: &TuneResult, colour: bool) -> String {
    let mut out = String::new();
    let in_bold = |text: &str| bold(text, colour);
    _ = writeln!(out, "{}", wrapped(&r.verdict.text, "").lines().map(in_bold).collect::<Vec<_>>().join("\n"));
    let kept = r.cases.iter().all(|c| c.reference == r.winner.policy);
    match (&r.winner.apply, &r.winner.why_not) {
        _ if kept => {}
        (Some(command), _) => {
            _ = writeln!(
                out,
                "To apply it on such a machine: sudo {command}    (undo: sudo wattwise restore)"
            )
        }
        (None, Some(why)) => _ = writeln!(out, "No command applies {}: {why}.", r.winner.policy),
        (None, None) => {}
    }
    if r.front.is_empty() && r.stopped {
        _ = writeln!(out);
    } else if r.front.is_empty() {
        _ = writeln!(
            out,
            "\nNo policy kept the limits in every replica of the search; this one did when the figures were drawn again.\n"
        );
    } else {
        _ = writeln!(out, "\n{}\n", front(r, colour));
    }
    for note in notes(r) {
        _ = writeln!(out, "{}", wrapped(&note, "  "));
    }
    out
}

fn front(r: &TuneResult, colour: bool) -> String {
    fitted(COLUMNS, r.front.iter().map(|p| p.policy.as_str()), &|name| front_with(r, colour, name))
}

/// The same with names of at most so many characters a line.
fn front_with(r: &TuneResult, colour: bool, name: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| cell(text).set_alignment(CellAlignment::Right);
    let head = ["", "policies that none beats in every column"].map(cell);
    table.set_header(head.into_iter().chain([r.goal.as_str(), "time", "p99 wait"].map(right)));
    // From end to end, the winner among them.
    let step = r.front.len().div_ceil(MOST).max(1);
    for (i, p) in r.front.iter().enumerate() {
        let wins = p.policy == r.winner.policy;
        if wins || i % step == 0 {
            let figures = [p.cost_ratio, p.time_ratio, p.p99_ratio].map(change);
            let row = [cell(if wins { "*" } else { "" }), name_cell(&p.policy, name)];
            table.add_row(row.into_iter().chain(figures.iter().map(|f| right(f))));
        }
    }
    drawn(table, colour)
}

fn notes(r: &TuneResult) -> Vec<String> {
    let mut notes = Vec::new();
    let shown = r.front.len().div_ceil(r.front.len().div_ceil(MOST).max(1));
    if shown < r.front.len() {
        notes.push(format!("{shown} of {} points of the front; --json has all", r.front.len()));
    }
    let mut references: Vec<&str> = r.cases.iter().map(|c| c.reference.as_str()).collect();
    references.sort_unstable();
    references.dedup();
    notes.push(format!("* chosen: {}; figures against {}", r.winner.policy, references.join(", ")));
    let of = |used: Used| {
        let all = r.cases.iter().filter(|c| c.used == used);
        all.map(|c| format!("{} on {}", c.workload, c.machine)).collect::<Vec<_>>().join(", ")
    };
    let train = r.winner.train.map_or_else(String::new, |g| format!(": {}", gain(g)));
    notes.push(format!("search ({}){train}", of(Used::Train)));
    if let Some(test) = &r.winner.test {
        notes.extend(of_test(test, &r.goal, &r.defaults));
    }
    let s = r.winner.stability;
    if s.draws > 0 {
        notes.push(format!(
            "stable: in {} of {} other draws of figures, phases and seeds none of the {} best was better by more than 1 %",
            s.held, s.draws, s.rivals
        ));
    }
    let ended = match r.spent.ended {
        Ended::Trials => "",
        Ended::Time => "; the time was up",
        Ended::Stopped => "; stopped",
        Ended::Exhausted => ", all that there are",
    };
    let failed = match r.spent.failed {
        0 => String::new(),
        n => format!(", {n} under which some work did not end"),
    };
    notes.push(format!(
        "{} trials{ended}: {} out early{failed}; {} replays of {}; seed {}",
        r.spent.trials,
        r.spent.out,
        r.spent.replays,
        r.spent.trials.saturating_mul(r.spent.replays_a_trial),
        r.seed
    ));
    for c in &r.cases {
        if let Some(problem) = &c.problem {
            notes.push(format!("warning: {} on {}: {problem}", c.workload, c.machine));
        }
    }
    notes
}

fn of_test(test: &Test, goal: &str, defaults: &str) -> Vec<String> {
    let mut notes: Vec<String> = test
        .each
        .iter()
        .map(|c| {
            format!(
                "test, {} on {}: {}, time {}",
                c.workload,
                c.machine,
                gain(c.against_reference),
                change(c.time_ratio)
            )
        })
        .collect();
    notes.push(format!(
        "test in all: {goal} {} against the reference, {} against {defaults} as it is; time {}, p99 wait {} (95 % intervals)",
        gain(test.against_reference),
        gain(test.against_defaults),
        change(test.time_ratio),
        change(test.p99_ratio)
    ));
    if test.against_reference.recordings == 1 {
        notes.push(
            "the interval covers the machine's figures only: one recording cannot show how recordings differ"
                .into(),
        );
    }
    if let Some(gap) = test.gap {
        notes.push(format!("gap between test and search: {} ({goal})", change(gap)));
    }
    notes
}
