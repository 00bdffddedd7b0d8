//! Comparisons on a page with other results.

use super::groups::{GroupStanding, PolicyGroup, change, groups, typeset, with_intervals};
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_page::number::NONE;
use wattwise_page::{Section, Table, Whisker, Whiskers};

/// One comparison: its answer, its intervals, its policies.
pub fn compare_sections(c: &Comparison) -> Vec<Section> {
    let known = with_intervals(c);
    let groups = groups(c);
    let all = || groups.iter().flat_map(|g| g.policies.iter().map(move |r| (g, *r)));
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let time = if c.judged.kind == TimeKind::Response { "Waiting" } else { "Time" };
    let whisker = |name: &str, of: Interval| Whisker {
        name: name.to_owned(),
        value: percent(of.median),
        ends: known.then(|| (percent(of.low), percent(of.high))),
        mark: None,
    };
    let row = |(g, r): (&PolicyGroup<'_>, &PolicyResult)| {
        vec![
            r.policy.clone(),
            energy(c, r, known),
            change(r.uncertain.time_ratio, known),
            if known && r.admissible && r.best_share.is_finite() {
                format!("{:.0} %", r.best_share * 100.0)
            } else {
                NONE.to_owned()
            },
            standing(c, g.standing, r),
        ]
    };
    vec![
        Section::Text {
            title: format!("{} on {}", c.workload.name, c.machine),
            body: typeset(&c.answer.text),
        },
        Section::Whiskers(Whiskers {
            title: format!("Energy against {}", c.reference),
            unit: "%".to_owned(),
            zero: Some(0.0),
            rows: all().filter_map(|(_, r)| Some(whisker(&r.policy, say::energy_ratio(c, r)?))).collect(),
            note: match known {
                true => format!("Median and 90 % of {} replicas.", c.replicas),
                false => "One run of the nominal model: no intervals.".to_owned(),
            },
        }),
        Section::Table(Table {
            title: "Policies".to_owned(),
            head: ["Policy", "Energy", time, "Lowest energy in (share of replicas)", "Status"]
                .map(str::to_owned)
                .to_vec(),
            rows: all().map(row).collect(),
            note: format!("Energy and {} against {}.", time.to_lowercase(), c.reference),
        }),
    ]
}

/// How a policy stands, in a word or two.
fn standing(c: &Comparison, group: GroupStanding, r: &PolicyResult) -> String {
    let word = match group {
        GroupStanding::Recommended => "recommended",
        GroupStanding::Tied => "no clear difference",
        GroupStanding::Admissible => "within the limit",
        GroupStanding::Dropped => "dropped early",
        GroupStanding::NotJudged => "not judged",
        GroupStanding::TooSlow if c.judged.kind == TimeKind::Deadlines => "misses more deadlines",
        GroupStanding::TooSlow => {
            let kinds = r.responses.as_ref().map_or(&[][..], |r| &r.kinds);
            let slower: Vec<&str> = kinds.iter().filter(|k| k.slower).map(|k| k.kind.as_str()).collect();
            return match &slower[..] {
                [] => "too slow".to_owned(),
                [one] => format!("too slow: {one}"),
                [one, more @ ..] => format!("too slow: {one} and {} more", more.len()),
            };
        }
    };
    match r.policy == c.reference && group != GroupStanding::Recommended {
        true => format!("reference, {word}"),
        false => word.to_owned(),
    }
}

/// A policy's energy against the reference's.
fn energy(c: &Comparison, r: &PolicyResult, known: bool) -> String {
    say::energy_ratio(c, r).map_or_else(|| say::OWN_TIME.to_owned(), |ratio| change(ratio, known))
}

/// Several comparisons: the energy of each policy against the reference in each.
pub fn compared_side_by_side(all: &[(String, &Comparison)]) -> Section {
    let mut policies: Vec<&str> = Vec::new();
    for (_, c) in all {
        for r in &c.results {
            if !policies.contains(&r.policy.as_str()) {
                policies.push(&r.policy);
            }
        }
    }
    let cell = |c: &Comparison, policy: &str| match c.results.iter().find(|r| r.policy == policy) {
        None => NONE.to_owned(),
        Some(r) if r.policy == c.reference => "reference".to_owned(),
        Some(r) => {
            let mark = if r.admissible { "" } else { ", over the limit" };
            let best = if r.policy == c.answer.recommended { " ★" } else { "" };
            format!("{}{mark}{best}", energy(c, r, with_intervals(c)))
        }
    };
    let mut head = vec!["Policy".to_owned()];
    head.extend(all.iter().map(|(name, _)| name.clone()));
    let row = |policy: &&str| {
        let mut row = vec![(*policy).to_owned()];
        row.extend(all.iter().map(|(_, c)| cell(c, policy)));
        row
    };
    Section::Table(Table {
        title: "Energy against the reference, side by side".to_owned(),
        head,
        rows: policies.iter().map(row).collect(),
        note: "90 % of the replicas; ★ recommended.".to_owned(),
    })
}
