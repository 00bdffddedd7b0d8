//! A comparison on one screen: what to do, what it brings and costs, how sure that is, and the best rows.

use crate::show::names::clauses;
use crate::show::notes;
use crate::show::screen::{self, TextStyle, bold};
use crate::show::table::{self, PolicyOrder, joules, seconds, wrapped, wrapped_after};
use std::fmt::Write;
use wattwise_advice::answer::change;
use wattwise_advice::result::{Comparison, Inputs, Interval, Nearly, PolicyResult};
use wattwise_advice::rule::Goal;
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_advice::words::in_words;
use wattwise_figure::shell;
use wattwise_figure::units::trim;

/// What of a comparison is shown.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct ShownParts {
    /// Show every policy that was tried
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// Show what the figures rest on, and all warnings
    #[arg(long, help_heading = "Output")]
    pub(crate) notes: bool,
}

#[cfg(test)]
impl ShownParts {
    /// All there is.
    pub(crate) const WHOLE: ShownParts = ShownParts { all: true, notes: true };
}

/// Rows of the short table at most, those that it has on a small terminal, and those without which it says nothing: what is recommended
/// and the reference.
const ROWS: usize = 7;
const LEAST_ROWS: usize = 3;
const TWO_ROWS: usize = 2;
/// Policies that are named as no different, at most; of more there is only the number: the table marks them, all with `--all`.
const NAMED: usize = 2;

/// A comparison: the answer first, then the table, then what was asked for beside.
pub(crate) fn comparison(c: &Comparison, look: TextStyle, order: PolicyOrder, shown: ShownParts) -> String {
    let w = &c.workload;
    let mut out = String::new();
    let on = if c.inputs.own_machine { "on" } else { "on the model" };
    let heading =
        [format!("{}: {}", w.name, w.source), format!("{on} {}: {}", c.machine, c.inputs.machine_summary)];
    // On the first screen a line each; the rest of them is no part of the answer.
    for text in heading {
        _ = writeln!(
            out,
            "{}",
            if shown.notes { wrapped(&text, "  ") } else { clauses(&text, look.columns) }
        );
    }
    _ = writeln!(out);
    let (head, rest) = answer(c);
    for text in wrapped(&head, "  ").lines() {
        _ = writeln!(out, "{}", bold(text, look.colour));
    }
    rest.iter().for_each(|item| line_of(item, &mut out));
    let all = table::order(c, order);
    let table = |rows: &[&PolicyResult], hints: bool| {
        let foot = foot(c, rows, hints.then(|| all.len() - rows.len()), shown);
        format!("{out}\n{}\n{foot}", table::rows(c, rows, look))
    };
    // What else there is to see is no result.
    if shown.all || order == PolicyOrder::Asked {
        return table(&all, screen::notes());
    }
    let with = |most: usize, hints: bool| table(&best_rows(c, &all, most), hints && screen::notes());
    let fewer = (LEAST_ROWS..=ROWS).rev().map(|most| with(most, true));
    let without_hints = [LEAST_ROWS, TWO_ROWS].into_iter().map(|most| with(most, false));
    look.first_that_fits(fewer.chain(without_hints))
}

/// A line of the answer: what it is of, and what is said. Without the first it is a line of its own.
pub(crate) struct Item(pub(crate) &'static str, pub(crate) String);

/// Width of what an item is of, with the blanks around it.
const LABEL: usize = 10;
/// In the place of what an item is of: it goes on with the one before it.
const ON: &str = " ";

pub(crate) fn line_of(Item(label, text): &Item, out: &mut String) {
    // A command is copied as it is.
    if label.is_empty() {
        _ = writeln!(out, "{text}");
        return;
    }
    let label = format!("  {label:<width$}", width = LABEL - 2);
    _ = writeln!(out, "{}", wrapped_after(&label, text, &" ".repeat(LABEL)));
}

/// The answer's first line, and what it brings and costs.
fn answer(c: &Comparison) -> (String, Vec<Item>) {
    let a = &c.answer;
    let find = |name: &str| c.results.iter().find(|r| r.policy == name);
    let (Some(own), Some(reference)) = (find(&a.recommended), find(&c.reference)) else {
        return (a.text.clone(), Vec::new());
    };
    let stopped = match (c.stopped, c.replicas_asked) {
        (true, Some(asked)) => format!("Stopped after {} of {asked} replicas. ", c.replicas),
        _ => String::new(),
    };
    if !own.admissible || c.results.len() == 1 {
        return (a.text.clone(), Vec::new());
    }
    // What others may equal is not called the best.
    let alone = a.tied.is_empty() && !c.results.iter().any(say::not_judged);
    let of = a.tried.map_or_else(String::new, |n| format!(" of {n} tried"));
    let kept = a.recommended == c.reference;
    // What may as well cost more than the reference is not called the best.
    let surely = a.against_reference.is_none_or(|against| against.ratio.high < 1.0);
    let best = match (surely || kept, alone) {
        (true, true) => format!("Best{of}"),
        (true, false) => format!("Recommended{of}"),
        _ => format!("Likely best{of}, but not surely better than the reference"),
    };
    let head = match in_words(&own.policy, &c.reference) {
        _ if kept => format!("{stopped}{best}: keep {}, the reference", own.policy),
        Some(words) => format!("{stopped}{best}: {words} ({})", own.policy),
        None => format!("{stopped}{best}: {}", own.policy),
    };
    let mut rest = Vec::new();
    if !kept {
        rest.push(energy(c, own, reference));
        rest.extend(product(c));
        rest.extend(time(c, own, reference));
    }
    rest.push(Item("sure?", sure(c, kept)));
    rest.extend(guesses(c));
    rest.extend(a.nearly.iter().map(|n| Item("but", nearly(c, n))));
    rest.extend(apply(c, kept).map(|command| Item("", command)));
    (head, rest)
}

/// A ratio as "12 to 16 % less than hwp:epp=102 (the reference)".
pub(crate) fn ratio_words(ratio: Interval, reference: &str) -> String {
    match change(ratio) {
        (text, -1) => format!("{text} less than {reference} (the reference)"),
        (text, 1) => format!("{text} more than {reference} (the reference)"),
        (text, _) => format!("{text} against {reference} (the reference)"),
    }
}

fn less_or_more(ratio: Interval) -> String {
    match change(ratio) {
        (text, -1) => format!("{text} less"),
        (text, 1) => format!("{text} more"),
        (text, _) => text,
    }
}

/// Energy times time, where that was to be minimised.
fn product(c: &Comparison) -> Option<Item> {
    let against = c.answer.against_reference.filter(|_| c.goal == Goal::Edp)?;
    Some(Item(
        "edp",
        format!("{}: energy times time, which was to be minimised", less_or_more(against.ratio)),
    ))
}

fn energy(c: &Comparison, own: &PolicyResult, reference: &PolicyResult) -> Item {
    let base = say::energy_j(c, reference).median;
    let own_time = if c.goal == Goal::OwnEnergy { " over its own time" } else { "" };
    let Some(ratio) = say::energy_ratio(c, own) else {
        let own = joules(say::energy_j(c, own).median);
        return Item("energy", format!("{own} over the run's own time, which is longer than the window"));
    };
    // Both by the ratio of the same replicas.
    let (from, to) = (joules(base), joules(base * ratio.median));
    Item("energy", format!("{}{own_time}: {from} -> {to}", ratio_words(ratio, &c.reference)))
}

fn time(c: &Comparison, own: &PolicyResult, reference: &PolicyResult) -> Vec<Item> {
    if c.judged.kind == TimeKind::Makespan {
        let ratio = own.uncertain.time_ratio;
        let base = reference.uncertain.time.median;
        let words = match change(ratio) {
            (text, -1) => format!("{text} shorter"),
            (text, 1) => format!("{text} longer"),
            (text, _) => text,
        };
        let slower = match own.other_responses.slower {
            true => say::responses(c, &own.other_responses),
            false => Vec::new(),
        };
        let says =
            (!slower.is_empty()).then(|| "background programs wait longer (no limit for them):".to_owned());
        let others = items("others", says.into_iter().chain(slower).collect(), None);
        let own = Item("time", format!("{words}: {} -> {}", seconds(base), seconds(base * ratio.median)));
        return std::iter::once(own).chain(others).collect();
    }
    let waits = own.responses.as_ref().map_or_else(Vec::new, |r| match &r.why_not {
        Some(why) => items("waits", vec![why.clone()], None),
        None => items(
            "waits",
            say::responses(c, r),
            Some(&format!("no kind of response over the {}limit", limit_words(c))),
        ),
    });
    let missed = own
        .missed_by_task
        .iter()
        .any(|m| m.share.max(m.reference_share) > 0.0)
        .then(|| say::missed(own))
        .flatten();
    waits.into_iter().chain(missed.map(|m| Item("late", m))).collect()
}

/// Lines under one label, and what all of them come to.
fn items(label: &'static str, mut lines: Vec<String>, verdict: Option<&str>) -> Vec<Item> {
    if let (Some(last), Some(verdict)) = (lines.last_mut(), verdict) {
        *last += &format!("; {verdict}");
    }
    lines.into_iter().enumerate().map(|(n, line)| Item(if n == 0 { label } else { ON }, line)).collect()
}

/// "10 % ", where there is a limit of time.
fn limit_words(c: &Comparison) -> String {
    c.max_slowdown.map_or_else(String::new, |limit| format!("{} % ", trim(limit * 100.0, 1)))
}

/// How sure an answer without replicas is.
pub(crate) const ONE_RUN: &str = "one run of the nominal model: not known";

/// How sure the two statements are: better than the reference, best of all.
fn sure(c: &Comparison, kept: bool) -> String {
    if c.replicas == 0 {
        return ONE_RUN.into();
    }
    let (a, n) = (&c.answer, c.replicas);
    let mut parts = Vec::new();
    if let Some(against) = &a.against_reference {
        let better = (against.chance * n as f64).round();
        parts.push(format!("better than the reference in {better:.0} of {n} replicas"));
    }
    parts.push(match (&a.tied[..], &a.winner, kept) {
        ([], ..) if c.results.iter().any(say::not_judged) => {
            "the others were not judged, which needs 16 replicas".to_owned()
        }
        ([], Some(_), _) => "no other comes near".to_owned(),
        ([], None, true) => "no other surely needs less within the time limit".to_owned(),
        ([], None, _) => "whether it keeps the time limit in other variations is not sure".to_owned(),
        (tied, ..) => {
            let name = |policy: &String| match say::faster(c, policy) {
                Some(by) => format!("{policy} ({by})"),
                None => policy.clone(),
            };
            let named: Vec<String> = tied.iter().map(name).collect();
            let others =
                if named.len() > NAMED { format!("{} others", named.len()) } else { named.join(", ") };
            let why = say::preferred(c).map_or_else(String::new, |why| format!("; {why}"));
            format!("no clear difference from {others}{why}")
        }
    });
    parts.join("; ")
}

/// How many of the figures that the replicas vary are guesses; none where none is.
pub(crate) fn guesses(c: &Comparison) -> Option<Item> {
    let figures = c.inputs.machine_figures.iter().filter(|f| f.range.is_some() && c.replicas > 0);
    let (all, guesses) = figures.fold((0, 0), |(n, g), f| (n + 1, g + usize::from(f.confidence == "guess")));
    (guesses > 0)
        .then(|| Item("caution", format!("{guesses} of the model's {all} uncertain figures are guesses")))
}

fn nearly(c: &Comparison, n: &Nearly) -> String {
    let by = match change(n.ratio) {
        (text, -1) => format!("would use {text} less energy than the reference"),
        (text, _) => format!("would need {text} against the reference"),
    };
    let own = c.results.iter().find(|r| r.policy == n.policy);
    let all = own.map_or(c.replicas, |r| say::replicas_of(c, r));
    let over = ((1.0 - n.within_share) * all as f64).round();
    format!("{} {by}, and is over the {}time limit in {over:.0} of {all} replicas", n.policy, limit_words(c))
}

/// The command that puts it in force; none where what is there is kept.
fn apply(c: &Comparison, kept: bool) -> Option<String> {
    applied(&c.inputs, kept, (&c.answer.apply, &c.answer.why_not), &c.answer.lifts)
}

/// A command that puts a policy in force, or why there is none; nothing where what is there is kept.
pub(crate) fn applied(
    inputs: &Inputs,
    kept: bool,
    (command, why_not): (&Option<String>, &Option<String>),
    lifts: &[String],
) -> Option<String> {
    if kept {
        return None;
    }
    let whose = if inputs.own_machine { "To apply it" } else { "To apply it on such a machine" };
    match (command, why_not) {
        (Some(command), _) if command.contains("wattwise set") => {
            let root = inputs.root.as_ref().map(|root| format!(" --root {}", shell::word(root)));
            let root = root.unwrap_or_default();
            let as_root: Vec<String> = command.split(" && ").map(|c| format!("sudo {c}{root}")).collect();
            let lifted = match lifts {
                [] => String::new(),
                lifts => format!("\n  It lifts what is in force now: {}", lifts.join(", ")),
            };
            Some(format!("{whose}: {}{lifted}\n  undo: sudo wattwise restore{root}", as_root.join(" && ")))
        }
        (Some(command), _) => Some(format!("{whose}, as root: {command}")),
        (None, Some(why)) => Some(wrapped(&format!("It cannot be applied: {why}."), "  ")),
        (None, None) => None,
    }
}

/// The rows that matter most: what is recommended, the reference, and the best others. Where the terminal has room for more than the
/// fewest, what the answer names as nearly within the limit too; for all, `performance`, which many know.
fn best_rows<'c>(c: &Comparison, all: &[&'c PolicyResult], most: usize) -> Vec<&'c PolicyResult> {
    let must = |r: &PolicyResult| {
        r.policy == c.answer.recommended
            || r.policy == c.reference
            || (most > LEAST_ROWS && c.answer.nearly.iter().any(|n| n.policy == r.policy))
            || (r.policy == "performance" && most == ROWS)
    };
    let mut room = most.saturating_sub(all.iter().filter(|r| must(r)).count());
    let mut take = |r: &&&PolicyResult| {
        let others = r.admissible && !r.policy.contains("+cmax=");
        let taken = must(r) || room > 0 && (others || all.len() <= most);
        room -= usize::from(taken && !must(r));
        taken
    };
    let mut rows: Vec<&PolicyResult> = all.iter().filter(|r| take(r)).copied().collect();
    let ratio = |r: &PolicyResult| say::energy_ratio(c, r).map_or(f64::INFINITY, |ratio| ratio.median);
    rows.sort_by(|a, b| {
        (a.policy != c.answer.recommended)
            .cmp(&(b.policy != c.answer.recommended))
            .then(b.admissible.cmp(&a.admissible))
            .then(ratio(a).total_cmp(&ratio(b)))
    });
    rows
}

/// What the rows' marks mean, and what else there is to see or it; `hidden` rows are not shown, none where there is no room to say so.
fn foot(c: &Comparison, rows: &[&PolicyResult], hidden: Option<usize>, shown: ShownParts) -> String {
    let mut out = String::new();
    let legend = table::legend(c, rows);
    if !legend.is_empty() {
        _ = writeln!(out, "{}", wrapped(&legend.join("; "), "  "));
    }
    if shown.notes {
        for note in notes::notes(c) {
            _ = writeln!(out, "{}", wrapped(&note, "  "));
        }
    } else {
        for warning in say::serious(c) {
            _ = writeln!(out, "{}", wrapped(&format!("warning: {warning}"), "  "));
        }
    }
    let Some(hidden) = hidden else { return out };
    let rows = (hidden > 0).then(|| format!("{hidden} more rows: --all"));
    let count = c.inputs.warnings.len();
    let warnings = match count {
        0 => String::new(),
        1 => " and 1 warning".into(),
        n => format!(" and {n} warnings"),
    };
    let notes = (!shown.notes).then(|| format!("notes{warnings}: --notes"));
    let more: Vec<String> = rows.into_iter().chain(notes).collect();
    if !more.is_empty() {
        _ = writeln!(out, "{}", wrapped(&more.join("; "), "  "));
    }
    if !c.inputs.own_machine {
        out += "For your own machine: sudo wattwise compare -- COMMAND, or add -m this\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_advice::result::Preferred;

    fn comparison() -> Comparison {
        let bytes = include_bytes!("../../tests/results/compare.json");
        serde_json::from_slice(bytes).expect("as compare wrote it")
    }

    fn words(c: &Comparison) -> String {
        let shown = super::comparison(c, TextStyle::PLAIN, PolicyOrder::Best, ShownParts::default());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// A terminal of 24 lines shows the whole answer above the prompt, with the recommended policy and the reference; a pipe and a
    /// high terminal show more rows.
    #[test]
    fn an_answer_fits_a_small_terminal() {
        let mut c = comparison();
        let like = c.results.iter().find(|r| r.policy == "performance").expect("is there").clone();
        c.results
            .extend((0..9).map(|n| PolicyResult { policy: format!("schedutil+max={n}%"), ..like.clone() }));
        let rows = |lines: Option<usize>| {
            let look = TextStyle { lines, ..TextStyle::PLAIN };
            let text = super::comparison(&c, look, PolicyOrder::Best, ShownParts::default());
            let rows: Vec<String> =
                text.lines().skip_while(|l| !l.contains("policy  ")).skip(1).map(str::to_owned).collect();
            let end = rows.iter().position(|l| l.starts_with("* recommended")).expect("a legend");
            (text.lines().count(), rows[..end].to_vec())
        };
        let (all, most) = rows(None);
        assert_eq!(most.len(), ROWS);
        assert_eq!(rows(Some(all + 1)).1, most);
        let (count, fewer) = rows(Some(all - 2));
        assert!(count < all - 2 && fewer.len() < ROWS, "{count} of {all}: {fewer:?}");
        let (_, least) = rows(Some(3));
        assert_eq!(least.len(), TWO_ROWS);
        assert!(least[0].starts_with(&format!("* {}", c.answer.recommended)), "{least:?}");
        assert!(least.iter().any(|row| row.contains(&c.reference)), "{least:?}");
    }

    /// What is over the limit says which limit, and in how many replicas of how many.
    #[test]
    fn what_is_nearly_within_the_limit_names_it() {
        let mut c = comparison();
        c.max_slowdown = Some(0.025);
        let performance = c.results.iter_mut().find(|r| r.policy == "performance").expect("is there");
        performance.raced_out_after = Some(16);
        let ratio = Interval { median: 0.85, low: 0.83, high: 0.88 };
        c.answer.nearly = vec![Nearly { policy: "performance".into(), within_share: 0.5625, ratio }];
        let text = words(&c);
        let told = "but performance would use 12 to 17 % less energy than the reference, and is over the 2.5 % time limit in 7 of 16 replicas";
        assert!(text.contains(told), "{text}");
    }

    /// A tied policy that is faster says by how much, and the recommended one why it is preferred.
    #[test]
    fn a_faster_tie_and_the_reason_are_told() {
        let mut c = comparison();
        c.replicas = 64;
        (c.answer.tied, c.answer.preferred) = (vec!["performance".into()], Some(Preferred::Simpler));
        let mut told = |own: f64, other: f64| {
            for r in &mut c.results {
                let time = if r.policy == "performance" { other } else { own };
                r.uncertain.time_ratio = Interval { median: time, low: time, high: time };
            }
            words(&c)
        };
        let text = told(1.06, 1.02);
        assert!(
            text.contains(
                "no clear difference from performance (4 % faster); this one is as good as the best, \
                 and has the shorter name"
            ),
            "{text}"
        );
        assert!(!told(1.02, 1.01).contains("faster"));
    }
}
