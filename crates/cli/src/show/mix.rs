//! Several works as one day, for people.

use crate::show::answer::{self, Item, applied, guesses, line_of, ratio_words};
use crate::show::names::{clauses, fitted, name_cell, shortened};
use crate::show::screen::{self, TextStyle, bold};
use crate::show::table::{self, cell, drawn, ratio_text, wrapped};
use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement, Table, presets};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattwise_advice::answer::change;
use wattwise_advice::mix::{Mix, MixPolicy};
use wattwise_advice::result::Comparison;
use wattwise_advice::say;
use wattwise_advice::words::in_words;
use wattwise_figure::fixed;
use wattwise_figure::units::trim;

/// Rows at most, unless all are asked for, and those that it has on the smallest terminal.
const ROWS: usize = 7;
const LEAST_ROWS: usize = 3;
/// Width of a work's name.
const WORK: usize = 16;

/// The verdict over the mix, the policies, and what the recommended one does in each work.
pub(crate) fn text(mix: &Mix, comparisons: &[Comparison], look: TextStyle, all: bool) -> String {
    let Some(one) = comparisons.first() else { return String::new() };
    let mut out = String::new();
    let works: Vec<String> =
        mix.weights.iter().map(|w| format!("{} ({} %)", w.workload, fixed(w.weight * 100.0, 0))).collect();
    _ = writeln!(out, "{}", wrapped(&format!("a mix of {}", works.join(", ")), "  "));
    let on = if one.inputs.own_machine { "on" } else { "on the model" };
    let machine = format!("{on} {}: {}", one.machine, one.inputs.machine_summary);
    _ = writeln!(out, "{}\n", if all { wrapped(&machine, "  ") } else { clauses(&machine, look.columns) });
    let (head, items) = answer(mix, one);
    for text in wrapped(&head, "  ").lines() {
        _ = writeln!(out, "{}", bold(text, look.colour));
    }
    items.iter().for_each(|item| line_of(item, &mut out));
    let table = |rows: &[&MixPolicy]| {
        let names = rows.iter().map(|p| p.policy.as_str());
        fitted(look.columns, names, &|name| policies(mix, &one.reference, rows, look.colour, name))
    };
    let names = comparisons.iter().map(|c| c.answer.recommended.as_str());
    let works = fitted(look.columns, names, &|name| each(mix, comparisons, look.colour, name));
    let with = |rows: Vec<&MixPolicy>, by_work: bool| {
        let works = if by_work { format!("\n{works}\n") } else { String::new() };
        format!("{out}\n{}\n{works}{}", table(&rows), foot(mix, comparisons, &rows, (all, by_work)))
    };
    if all {
        return with(best_rows(mix, &one.reference, usize::MAX), true);
    }
    let fewer = |by_work: bool| {
        let with = &with;
        let rows = |most| best_rows(mix, &one.reference, most);
        (LEAST_ROWS..=ROWS).rev().map(move |most| with(rows(most), by_work))
    };
    look.first_that_fits(fewer(true).chain(fewer(false)))
}

/// The recommended policy first, then the others in their order; so many at most, with the reference.
fn best_rows<'m>(mix: &'m Mix, reference: &str, most: usize) -> Vec<&'m MixPolicy> {
    let (best, others): (Vec<&MixPolicy>, Vec<&MixPolicy>) =
        mix.policies.iter().partition(|p| p.policy == mix.answer.recommended);
    let mut rows: Vec<&MixPolicy> = best.into_iter().chain(others).collect();
    let at = rows.iter().position(|p| p.policy == reference).filter(|at| *at >= most);
    if let Some(at) = at {
        rows.swap(at, most - 1);
    }
    rows.truncate(most);
    rows
}

/// What the marks mean, and what else there is to see.
fn foot(mix: &Mix, comparisons: &[Comparison], rows: &[&MixPolicy], (all, by_work): (bool, bool)) -> String {
    let Some(one) = comparisons.first() else { return String::new() };
    let mut legend = vec!["* recommended".to_owned()];
    if rows.iter().any(|p| mark(mix, p) == "=") {
        legend.push(table::TIED.into());
    }
    if rows.iter().any(|p| mark(mix, p) == "x") {
        let limit = one.max_slowdown.map_or_else(String::new, |l| format!("{} % ", trim(l * 100.0, 1)));
        legend.push(format!("x over the {limit}time limit in a workload"));
    }
    if rows.iter().any(|p| p.is_not_judged()) {
        legend.push(table::not_judged());
    }
    let left: Vec<&&MixPolicy> =
        rows.iter().filter(|p| p.over_limit_in.is_empty() && p.raced_out_after.is_some()).collect();
    let after: BTreeSet<u64> = left.iter().filter_map(|p| p.raced_out_after).collect();
    let tied = left.iter().any(|p| mark(mix, p) == "=");
    let after: Vec<u64> = after.into_iter().collect();
    legend.extend(table::left_early(&after, tied, comparisons.iter().any(|c| c.stopped)));
    legend.push(format!("power: of {}", say::energy_of(one)));
    let mut out = wrapped(&legend.join("; "), "  ") + "\n";
    let mut more = Vec::new();
    let hidden = mix.policies.len() - rows.len();
    if hidden > 0 {
        more.push(format!("{hidden} more row{}", if hidden == 1 { "" } else { "s" }));
    }
    if !all {
        more.push("a table for each workload".into());
    }
    let tried = mix.answer.tried.map_or(0, |tried| tried as usize);
    let early = tried.saturating_sub(mix.policies.len());
    let early = (early > 0).then(|| format!("{early} others were too slow or not better"));
    let more = (!more.is_empty()).then(|| format!("{}: --all", more.join(" and ")));
    let lines: Vec<String> = early.into_iter().chain(more).collect();
    if !lines.is_empty() {
        out += &(wrapped(&lines.join("; "), "  ") + "\n");
    }
    if screen::notes() && by_work {
        out += "For one workload alone 'wattwise compare WORKLOAD' may find a better policy\n";
    }
    if screen::notes() && !one.inputs.own_machine {
        out += "For your own machine: the same command with -m this\n";
    }
    out
}

/// How a policy stands, as a mark.
fn mark(mix: &Mix, p: &MixPolicy) -> &'static str {
    match p.over_in().next() {
        _ if p.policy == mix.answer.recommended => "*",
        Some(_) => "x",
        None if mix.answer.tied.contains(&p.policy) => "=",
        None => "",
    }
}

fn answer(mix: &Mix, one: &Comparison) -> (String, Vec<Item>) {
    let a = &mix.answer;
    // What others may equal is not called the best.
    let best = if a.tied.is_empty() { "Best" } else { "Recommended" };
    let of = a.tried.map_or_else(String::new, |n| format!(" of {n} tried"));
    let best = format!("{best}{of} over the mix");
    let kept = a.recommended == one.reference;
    let head = match in_words(&a.recommended, &one.reference) {
        _ if kept && mix.policies.iter().any(|p| p.is_not_judged()) => say::keep_unjudged(&a.recommended),
        _ if kept => format!("{best}: keep {}, the reference", a.recommended),
        Some(words) => format!("{best}: {words} ({})", a.recommended),
        None => format!("{best}: {}", a.recommended),
    };
    let mut items = Vec::new();
    let find = |name: &str| mix.policies.iter().find(|p| p.policy == name);
    if let (false, Some(own), Some(reference)) = (kept, find(&a.recommended), find(&one.reference)) {
        let base = reference.mean_w.median;
        let words = ratio_words(own.power_ratio, &one.reference);
        let to = base * own.power_ratio.median;
        items.push(Item("energy", format!("{words}: {base:.2} -> {to:.2} W on average")));
        items.push(Item("time", "within the limit in every workload".into()));
        let least = match change(own.worst.energy_ratio) {
            (text, -1) => format!("{text} less"),
            (text, 1) => format!("{text} more"),
            (text, _) => text,
        };
        items.push(Item("worst", format!("{}: {least}", own.worst.workload)));
    }
    let mut sure = Vec::new();
    if let Some(against) = &a.against_reference {
        let n = one.replicas as f64;
        sure.push(match one.replicas {
            0 => answer::ONE_RUN.to_owned(),
            _ => format!("better than the reference in {:.0} of {n} replicas", against.chance * n),
        });
    }
    let named: Vec<&str> = a.tied.iter().take(3).map(String::as_str).collect();
    if !named.is_empty() {
        let more = a.tied.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        sure.push(format!("no clear difference from {}{more}", named.join(", ")));
    }
    if !sure.is_empty() {
        items.push(Item("sure?", sure.join("; ")));
    }
    items.extend(guesses(one));
    items.extend(applied(&one.inputs, kept, (&a.apply, &a.why_not), &a.lifts).map(|c| Item("", c)));
    (head, items)
}

fn policies(mix: &Mix, reference: &str, rows: &[&MixPolicy], colour: bool, name: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| cell(text).set_alignment(CellAlignment::Right);
    table.set_header(vec![cell(""), cell("policy"), right("mean power"), right("saves least in"), cell("")]);
    for p in rows {
        let mark = mark(mix, p);
        let energy = match p.policy == reference {
            true => format!("{:.2} W", p.mean_w.median),
            false => ratio_text(p.power_ratio),
        };
        let worst = match p.policy == reference {
            true => String::new(),
            false => shortened(&p.worst.workload, WORK),
        };
        let remark = match p.over_in().next() {
            _ if p.policy == reference => "reference".to_owned(),
            _ if p.is_not_judged() => {
                format!("{}: {}", table::NOT_JUDGED, shortened(&p.not_judged_in[0], WORK))
            }
            Some(work) => format!("over limit: {}", shortened(work, WORK)),
            None => p.raced_out_after.map_or_else(String::new, |n| format!("{n} {}", table::REPLICAS)),
        };
        let row = [cell(mark), name_cell(&p.policy, name), right(&energy), right(&worst), cell(remark)];
        let paint = |c: comfy_table::Cell| match (colour, mark) {
            (true, "*") => c.fg(Color::Green).add_attribute(Attribute::Bold),
            (true, "x") => c.add_attribute(Attribute::Dim),
            _ => c,
        };
        table.add_row(row.into_iter().map(paint).collect::<Vec<_>>());
    }
    drawn(table, colour)
}

/// What the recommended policy does in each workload, and which of those that ran in all would be the best there.
fn each(mix: &Mix, comparisons: &[Comparison], colour: bool, name: usize) -> String {
    // Against itself the reference changes nothing.
    let kept = comparisons.iter().all(|c| c.reference == mix.answer.recommended);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| cell(text).set_alignment(CellAlignment::Right);
    let mut head = vec![cell("workload"), right("share")];
    head.extend((!kept).then(|| right("energy with *")));
    head.push(cell("best there"));
    table.set_header(head);
    for (c, weight) in comparisons.iter().zip(&mix.weights) {
        let own = c.results.iter().find(|r| r.policy == mix.answer.recommended);
        let mut row = vec![
            cell(shortened(&c.workload.name, WORK)),
            right(&format!("{} %", fixed(weight.weight * 100.0, 0))),
        ];
        let energy = own.map_or_else(String::new, |r| ratio_text(r.uncertain.energy_ratio));
        row.extend((!kept).then(|| right(&energy)));
        row.push(name_cell(&c.answer.recommended, name));
        table.add_row(row);
    }
    drawn(table, colour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_advice::summary::ComparisonSet;

    fn day() -> ComparisonSet {
        let bytes = include_bytes!("../../tests/results/compare-mix.json");
        serde_json::from_slice(bytes).expect("as compare wrote it")
    }

    fn shown(set: &ComparisonSet) -> String {
        text(set.mix.as_ref().expect("a mix"), &set.comparisons, TextStyle::PLAIN, false)
    }

    /// The recommended policy is the first row, whatever needs less; the columns and marks say what they are.
    #[test]
    fn a_day_begins_with_what_is_recommended() {
        let mut set = day();
        let mix = set.mix.as_mut().expect("a mix");
        mix.policies.rotate_left(1);
        mix.answer.tied = vec!["performance".into()];
        mix.answer.tried = Some(9);
        mix.policies
            .iter_mut()
            .filter(|p| p.policy == "performance")
            .for_each(|p| p.raced_out_after = Some(16));
        let text = shown(&set);
        let marks: Vec<&str> = text
            .lines()
            .skip_while(|l| !l.contains("mean power"))
            .take_while(|l| !l.is_empty())
            .map(|l| &l[..1])
            .collect();
        assert_eq!(marks, [" ", "*", "=", "x"], "{text}");
        assert!(text.contains("mean power") && text.contains("saves least in"), "{text}");
        let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(folded.contains(
            "* recommended; = no clear difference from *; no mark: needs more energy; x over the 10 % time limit in a workload; \
             16 replicas: run in no more, others were better or as good; power: of the whole machine 6 others were too slow"
        ), "{text}");
    }

    /// A row that ties was not dropped for a better one.
    #[test]
    fn what_ties_over_a_mix_is_not_called_dropped() {
        let mut set = day();
        let mix = set.mix.as_mut().expect("a mix");
        let other = mix.policies.iter().position(|p| p.policy != mix.answer.recommended).expect("another");
        mix.policies[other].over_limit_in.clear();
        mix.policies[other].raced_out_after = Some(16);
        mix.answer.tied = vec![mix.policies[other].policy.clone()];
        let text = shown(&set);
        assert!(text.contains("16 replicas: ") && !text.contains("dropped"), "{text}");
    }

    /// A small terminal has fewer rows, then no table of the workloads; the reference stays. A pipe has all of it.
    #[test]
    fn a_day_fits_a_small_terminal() {
        let mut set = day();
        let mix = set.mix.as_mut().expect("a mix");
        let like = mix.policies.iter().find(|p| p.policy != mix.answer.recommended).expect("another").clone();
        let others = (0..9).map(|n| MixPolicy { policy: format!("schedutil+max={n}%"), ..like.clone() });
        mix.policies.splice(0..0, others);
        let with = |lines| {
            let look = TextStyle { lines, ..TextStyle::PLAIN };
            text(set.mix.as_ref().expect("a mix"), &set.comparisons, look, false)
        };
        let whole = with(None);
        let (all, works) = (whole.lines().count(), set.comparisons.len());
        assert!(whole.contains("\nworkload "));
        let (fewer, without) = (with(Some(all - 3)), with(Some(all - ROWS + LEAST_ROWS - works)));
        assert!(fewer.lines().count() < all - 3 && fewer.contains("\nworkload "), "{fewer}");
        assert!(!without.contains("\nworkload "), "{without}");
        for text in [whole, fewer, without, with(Some(3))] {
            assert!(text.contains(" W  ") && text.contains("  reference"), "{text}");
        }
    }

    /// Where the reference is kept, nothing is said of its energy against itself.
    #[test]
    fn the_reference_is_not_held_against_itself() {
        let mut set = day();
        let heads = |set: &ComparisonSet| {
            let text = shown(set);
            text.lines().find(|l| l.starts_with("workload ")).expect("a table of works").to_owned()
        };
        assert!(!heads(&set).contains("energy"));
        let mix = set.mix.as_mut().expect("a mix");
        mix.answer.recommended = "performance".into();
        assert!(heads(&set).contains("energy"));
    }
}
