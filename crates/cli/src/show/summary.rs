//! What several comparisons come to, for people.

use crate::show::names::{fitted, name_cell, shortened};
use crate::show::screen::TextStyle;
use crate::show::table::{WIDE, cell, drawn, wrapped, wrapped_after};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;
use wattwise_advice::result::Comparison;
use wattwise_advice::summary::{AnswerSummary, ComparisonSet, PolicySummary};
use wattwise_figure::{counted, shell};

/// The columns.
pub(crate) const HEAD: [&str; 7] =
    ["", "policy", "energy", "time", "within limit", "best in", "worst energy"];
/// Width of a place's name in the terminal's table.
const PLACE: usize = 24;

/// A ratio as a change in per cent.
fn change(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |r| format!("{} %", wattwise_figure::signed((r - 1.0) * 100.0, 1)))
}

/// The answer in a sentence or two; of a part there is none.
pub(crate) fn answer(set: &ComparisonSet) -> String {
    match set.told_stopped() {
        Some(stopped) => format!("{stopped} There is no answer over all of them."),
        None => over_all(set),
    }
}

/// How many comparisons there are, and of how many where it was stopped: a heading.
pub(crate) fn title(set: &ComparisonSet) -> String {
    match set.comparisons_asked.filter(|_| set.stopped) {
        Some(asked) => format!("{} of {}", set.comparisons.len(), counted(asked as usize, "comparison")),
        None => counted(set.comparisons.len(), "comparison"),
    }
}

fn over_all(set: &ComparisonSet) -> String {
    let s = &set.summary;
    let all = match s.answers.len() {
        1 => "one comparison".to_owned(),
        n => format!("all {n} comparisons"),
    };
    let Some(best) = &s.best else {
        return format!("No policy is within the time limit in {all}.");
    };
    let changes: Vec<String> = s
        .answers
        .iter()
        .filter(|a| a.changes)
        .map(|a| format!("{} on {} ({})", a.workload, a.machine, a.recommended))
        .collect();
    if s.best_ratio.is_some_and(|r| r > 1.0) {
        return format!(
            "Best over {all}: keep each one's reference. No single policy is better on average; of those \
             within the time limit in all, {best} comes closest."
        );
    }
    let policy = s.policies.iter().find(|p| p.policy == *best);
    let energy = change(policy.and_then(|p| p.energy_ratio));
    if set.keeps_references() {
        return format!(
            "Best over {all}: keep each one's reference. {best} comes closest to a gain, with energy {energy} on average: too \
             little to count."
        );
    }
    let mut text = format!("Best over {all}: {best}, energy {energy} on average.");
    match changes.len() {
        0 => text += " In each it is the best, or shows no clear difference from the best.",
        n => _ = write!(text, " Another is better in {n}: {}.", changes.join(", ")),
    }
    text
}

/// The rows under [`HEAD`], by energy; places of at most so many characters.
pub(crate) fn rows(set: &ComparisonSet, most: usize) -> Vec<Vec<String>> {
    let s = &set.summary;
    let mut all: Vec<&PolicySummary> = s.policies.iter().collect();
    let energy = |p: &PolicySummary| p.energy_ratio.unwrap_or(f64::INFINITY);
    let leads = |p: &PolicySummary| !set.keeps_references() && s.best.as_ref() == Some(&p.policy);
    all.sort_by(|a, b| leads(b).cmp(&leads(a)).then(energy(a).total_cmp(&energy(b))));
    let row = |p: &&PolicySummary| {
        let worst = p.worst.as_ref().map_or_else(
            || "-".to_owned(),
            |w| {
                let place = format!("{} on {}", w.workload, w.machine);
                format!("{} ({})", change(Some(w.energy_ratio)), shortened(&place, most))
            },
        );
        vec![
            if leads(p) { "*" } else { "" }.to_owned(),
            p.policy.clone(),
            change(p.energy_ratio),
            change(p.time_ratio),
            format!("{} of {}", p.admissible, p.comparisons),
            format!("{} of {}", p.best, p.comparisons),
            worst,
        ]
    };
    all.iter().map(row).collect()
}

/// The policy that is best over all on each machine: its command there, and what it costs beside the machine's own best.
fn on_each(set: &ComparisonSet) -> String {
    let Some(best) = &set.summary.best else { return String::new() };
    let told = |a: &AnswerSummary| a.best_apply.is_some() || a.best_why_not.is_some();
    if set.keeps_references() || !set.summary.answers.iter().any(told) {
        return String::new();
    }
    let mut machines: Vec<(&str, Vec<(&Comparison, &AnswerSummary)>)> = Vec::new();
    for pair in set.comparisons.iter().zip(&set.summary.answers) {
        match machines.iter_mut().find(|(name, _)| *name == pair.1.machine) {
            Some((_, own)) => own.push(pair),
            None => machines.push((&pair.1.machine, vec![pair])),
        }
    }
    let costs = |(_, a): &(&Comparison, &AnswerSummary)| match a.best_costs {
        _ if a.recommended == *best => format!("{}: its own best", a.workload),
        Some(costs) => {
            format!("{}: {} against its own best, {}", a.workload, change(Some(costs)), a.recommended)
        }
        None => a.workload.clone(),
    };
    let mut out = format!("\n\n{best} on each machine:");
    for (name, all) in &machines {
        let told: Vec<String> = all.iter().map(costs).collect();
        _ = write!(out, "\n{}", wrapped_after("  ", &format!("{name}; {}", told.join("; ")), "    "));
        let Some((c, a)) = all.first() else { continue };
        let root = c.inputs.root.as_ref().map(|root| format!(" --root {}", shell::word(root)));
        match (&a.best_apply, &a.best_why_not) {
            _ if c.reference == *best => out += "\n    as it is now",
            (Some(line), _) => _ = write!(out, "\n    sudo {line}{}", root.unwrap_or_default()),
            (None, why) => {
                _ = write!(out, "\n    cannot be applied: {}", why.as_deref().unwrap_or("unknown"))
            }
        }
    }
    out
}

/// The answer, the table, what it means.
pub(crate) fn text(set: &ComparisonSet, look: TextStyle) -> String {
    let names = set.summary.policies.iter().map(|p| p.policy.as_str());
    let table = fitted(look.columns, names, &|name| table(set, look, name)) + &on_each(set);
    let note = "energy and time: geometric means of the ratios to each comparison's reference policy";
    format!("{}\n\n{}\n\n{}\n", wrapped(&answer(set), ""), table, wrapped(note, "  "))
}

/// The table, with names of at most so many characters a line. Where the worst energy was is told where there is room.
fn table(set: &ComparisonSet, look: TextStyle, name: usize) -> String {
    let (colour, narrow) = (look.colour, look.columns < WIDE);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let aligned = |(column, text): (usize, &str)| match column {
        1 => name_cell(text, name),
        2..=5 => cell(text).set_alignment(CellAlignment::Right),
        _ => cell(text),
    };
    let bold = |cell: Cell| if colour { cell.add_attribute(Attribute::Bold) } else { cell };
    table.set_header(HEAD.into_iter().enumerate().map(aligned).map(bold));
    for mut row in rows(set, PLACE) {
        if let Some(worst) = row.last_mut().filter(|_| narrow) {
            worst.truncate(worst.find(" (").unwrap_or(worst.len()));
        }
        table.add_row(row.iter().map(String::as_str).enumerate().map(aligned));
    }
    drawn(table, colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> ComparisonSet {
        let bytes = include_bytes!("../../tests/results/compare-set.json");
        let mut set: ComparisonSet = serde_json::from_slice(bytes).expect("as compare wrote it");
        // Two machines, each with its own default.
        set.comparisons[0].reference = "performance".into();
        set
    }

    /// What saves 0.05 % over a fleet is no better than what each machine has; what saves 5 % is.
    #[test]
    fn what_saves_too_little_to_count_is_not_the_best() {
        let mut set = fleet();
        let best = set.summary.best.clone().expect("one");
        set.summary.best_ratio = Some(0.9995);
        let told = text(&set, TextStyle::PLAIN);
        assert!(told.contains("keep each one's reference") && !told.contains("\n*"), "{told}");
        assert!(!told.contains(&format!(": {best}, energy")), "{told}");
        set.summary.best_ratio = Some(0.95);
        let told = text(&set, TextStyle::PLAIN);
        assert!(told.contains(&format!(": {best}, energy")) && told.contains("\n*"), "{told}");
    }

    /// Of one there are not "all 1 comparisons".
    #[test]
    fn a_number_and_its_noun_agree() {
        let mut set = fleet();
        set.comparisons.truncate(1);
        set.summary.answers.truncate(1);
        let told = answer(&set) + &crate::show::markdown::set(&set);
        assert!(!told.contains("1 comparisons"), "{told}");
    }
}
