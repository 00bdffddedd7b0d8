//! Several workloads as one day: the verdict, the policies over the mix, what the recommended one does in each.

use crate::compare::groups::{change, typeset};
use wattwise_advice::mix::{Mix, MixPolicy};
use wattwise_advice::result::Comparison;
use wattwise_figure::fixed;
use wattwise_page::number::NONE;
use wattwise_page::{Section, Table, Whisker, Whiskers};

/// What stands above the workloads' own sections.
pub fn mix_sections(mix: &Mix, comparisons: &[Comparison]) -> Vec<Section> {
    let Some(one) = comparisons.first() else { return Vec::new() };
    let kept = mix.answer.recommended == one.reference;
    let body =
        format!("On {}: {}.\n\n{}", one.machine, one.inputs.machine_summary, typeset(&mix.answer.text));
    let mut sections = vec![Section::Text { title: title(mix, kept), body }];
    if let (false, Some(command)) = (kept, &mix.answer.apply) {
        let whose = if one.inputs.own_machine { "To apply it" } else { "To apply it on such a machine" };
        let sudo = if command.starts_with("wattwise ") { "sudo " } else { "" };
        sections.push(Section::Command {
            label: whose.to_owned(),
            command: format!("{sudo}{command}"),
            undo: "sudo wattwise restore".to_owned(),
        });
    }
    sections.extend([intervals(mix, one), policies(mix, one), works(mix, comparisons)]);
    sections
}

/// What others may equal is not called the best.
fn title(mix: &Mix, kept: bool) -> String {
    let best = if mix.answer.tied.is_empty() { "Best" } else { "Recommended" };
    let policy = &mix.answer.recommended;
    if kept { format!("{best}: keep {policy}, the reference") } else { format!("{best}: {policy}") }
}

/// The policies, the recommended one first.
fn rows(mix: &Mix) -> impl Iterator<Item = &MixPolicy> {
    let is_best = |p: &&MixPolicy| p.policy == mix.answer.recommended;
    mix.policies.iter().filter(is_best).chain(mix.policies.iter().filter(move |p| !is_best(p)))
}

fn intervals(mix: &Mix, one: &Comparison) -> Section {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let whisker = |p: &MixPolicy| Whisker {
        name: p.policy.clone(),
        value: percent(p.power_ratio.median),
        ends: (p.policy != one.reference).then(|| (percent(p.power_ratio.low), percent(p.power_ratio.high))),
        mark: None,
    };
    Section::Whiskers(Whiskers {
        title: format!("Mean power against {}", one.reference),
        unit: "%".to_owned(),
        zero: Some(0.0),
        rows: rows(mix).filter(|p| p.over_limit_in.is_empty()).map(whisker).collect(),
        note: format!(
            "Policies within the limit in every workload; median and 90 % of {} replicas{}.",
            one.replicas,
            fewer(mix)
        ),
    })
}

/// Of how many replicas the others are.
fn fewer(mix: &Mix) -> String {
    let left = mix.policies.iter().filter(|p| p.over_limit_in.is_empty()).filter_map(|p| p.raced_out_after);
    left.max().map_or_else(String::new, |n| format!(", of {n} where others were better in these"))
}

fn policies(mix: &Mix, one: &Comparison) -> Section {
    let row = |p: &MixPolicy| {
        let is_reference = p.policy == one.reference;
        let over: Vec<&str> = p.over_in().map(String::as_str).collect();
        let stands = match over.first() {
            _ if p.policy == mix.answer.recommended => "recommended".to_owned(),
            _ if is_reference => "the reference".to_owned(),
            Some(_) => format!("too slow: {}", over.join(", ")),
            None if p.is_not_judged() => format!("not judged: {}", p.not_judged_in.join(", ")),
            None if mix.answer.tied.contains(&p.policy) => "no clear difference".to_owned(),
            None => match p.raced_out_after {
                Some(replicas) => format!("others were better in {replicas} replicas"),
                None => "within the limit".to_owned(),
            },
        };
        vec![
            p.policy.clone(),
            format!("{} W", fixed(p.mean_w.median, 2)),
            change(p.power_ratio, true),
            if is_reference { NONE.to_owned() } else { p.worst.workload.clone() },
            if is_reference { NONE.to_owned() } else { change(p.worst.energy_ratio, true) },
            stands,
        ]
    };
    Section::Table(Table {
        title: "Policies over the mix".to_owned(),
        head: ["Policy", "Mean power", "Against the reference", "Worst in", "Change there", "Status"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows(mix).map(row).collect(),
        note: "The mean power of each workload over its window, weighted by its share of the hours."
            .to_owned(),
    })
}

fn works(mix: &Mix, comparisons: &[Comparison]) -> Section {
    // Against itself the reference changes nothing.
    let kept = comparisons.iter().all(|c| c.reference == mix.answer.recommended);
    let row = |(c, weight): (&Comparison, &wattwise_advice::mix::MixWeight)| {
        let own = c.results.iter().find(|r| r.policy == mix.answer.recommended);
        let energy = own.map_or_else(|| NONE.to_owned(), |r| change(r.uncertain.energy_ratio, true));
        let mut row = vec![c.workload.name.clone(), format!("{} %", fixed(weight.weight * 100.0, 0))];
        row.extend((!kept).then_some(energy));
        row.push(c.answer.recommended.clone());
        row
    };
    Section::Table(Table {
        title: format!("{} in each workload", mix.answer.recommended),
        head: ["Workload", "Share of the hours", "Change of energy", "Best there"]
            .into_iter()
            .filter(|head| !kept || *head != "Change of energy")
            .map(str::to_owned)
            .collect(),
        rows: comparisons.iter().zip(&mix.weights).map(row).collect(),
        note: format!(
            "{}Best there: of the policies that ran in all replicas; wattwise compare WORKLOAD may find a better one.",
            if kept { String::new() } else { format!("Against {}. ", one_reference(comparisons)) }
        ),
    })
}

fn one_reference(comparisons: &[Comparison]) -> &str {
    comparisons.first().map_or("the reference", |c| c.reference.as_str())
}
