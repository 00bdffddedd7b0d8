//! The answer in words.

use crate::result::{Answer, Interval, PolicyResult, Responses as PolicyResponses};
use crate::rule::Goal;
use crate::ties::Standing;
use crate::time::TimeKind;
use wattwise_model::workload::{ClockOrigin, ForegroundOrigin, MemoryShare, Workload};
use wattwise_replay::spec::PolicySpec;

/// What an answer is made of.
pub(crate) struct Answered<'a> {
    pub(crate) results: &'a [PolicyResult],
    pub(crate) policies: &'a [&'a PolicySpec],
    pub(crate) reference: usize,
    pub(crate) standing: &'a Standing,
    pub(crate) goal: Goal,
    pub(crate) kind: TimeKind,
    /// One run of the nominal model.
    pub(crate) exact: bool,
    pub(crate) apply: &'a (dyn Fn(&PolicySpec) -> Result<String, String> + Sync),
}

/// The answer.
pub(crate) fn answer(a: &Answered<'_>) -> Answer {
    let Some(leader) = a.standing.leader else {
        return Answer {
            winner: None,
            recommended: a.results[a.reference].policy.clone(),
            tied: Vec::new(),
            text: "No answer: no policy is within the limit of time.".into(),
            apply: None,
            why_not: Some("there is nothing to apply".into()),
        };
    };
    let mut group: Vec<usize> = a.standing.ties.clone();
    group.push(leader);
    group.sort_unstable();
    let chosen = recommended(a, leader);
    let tied: Vec<String> =
        group.iter().filter(|&&p| p != chosen).map(|&p| a.results[p].policy.clone()).collect();
    let (apply, why_not) = match (a.apply)(a.policies[chosen]) {
        Ok(command) => (Some(command), None),
        Err(why) => (None, Some(why)),
    };
    Answer {
        winner: a.standing.named.then(|| a.results[leader].policy.clone()),
        recommended: a.results[chosen].policy.clone(),
        text: text(a, chosen, &tied),
        tied,
        apply,
        why_not,
    }
}

/// Of the leader and its close ties the reference, else the simplest that can be applied, else the simplest.
fn recommended(a: &Answered<'_>, leader: usize) -> usize {
    let mut close = a.standing.close.clone();
    close.push(leader);
    if close.contains(&a.reference) {
        return a.reference;
    }
    let text = |p: usize| a.policies[p].text.as_str();
    let parts = |p: usize| text(p).matches(['+', ',']).count() + text(p).matches(':').count();
    let order = |p: &&usize| ((a.apply)(a.policies[**p]).is_err(), parts(**p), **p);
    close.iter().min_by_key(order).copied().unwrap_or(leader)
}

fn text(a: &Answered<'_>, chosen: usize, tied: &[String]) -> String {
    let (own, reference) = (&a.results[chosen], &a.results[a.reference]);
    let mut text = match (chosen == a.reference, a.results.len()) {
        (_, 1) => format!("{} is the only policy: there is nothing to choose.", own.policy),
        (true, _) if tied.is_empty() => {
            format!(
                "Best: keep {}, the reference. Every other policy needs more {} or is too slow",
                own.policy,
                a.goal.name()
            )
        }
        (true, _) => format!("Best: keep {}, the reference", own.policy),
        (false, _) => {
            format!("Best: {}. {}", own.policy, differences(a, own, &reference.policy))
        }
    };
    if a.results.len() == 1 {
        return text;
    }
    if let [last] = tied {
        text += &format!("; not told apart from {last}");
    } else if let [first, rest @ ..] = tied {
        let named: Vec<&str> = std::iter::once(first).chain(rest).take(3).map(String::as_str).collect();
        text += &format!("; not told apart from {}", named.join(", "));
        match tied.len() - named.len() {
            0 => {}
            1 => text += &format!(" and {}", tied[3]),
            n => text += &format!(" and {n} others"),
        }
    }
    if Some(chosen) == a.standing.leader && !a.standing.sure && !a.exact {
        text += "; whether it keeps the limit of time is not sure";
    }
    text += ".";
    if a.exact {
        text += " One run of the nominal model: how sure this is, is not known.";
    }
    text
}

/// "Saves 9 to 14 % energy against schedutil, 0.5 to 1.1 % slower".
fn differences(a: &Answered<'_>, own: &PolicyResult, reference: &str) -> String {
    let energy = match change(own.uncertain.energy_ratio) {
        (text, -1) => format!("Saves {text} energy against {reference}"),
        (text, 1) => format!("Needs {text} more energy than {reference}"),
        (text, _) => format!("Its energy against {reference}: {text}"),
    };
    let time = match (a.kind, change(own.uncertain.time_ratio)) {
        (TimeKind::Makespan, (text, 1)) => format!("{text} slower"),
        (TimeKind::Makespan, (text, -1)) => format!("{text} faster"),
        (TimeKind::Makespan, (text, _)) => format!("its time: {text}"),
        (TimeKind::Response | TimeKind::Deadlines, _) => responses(own),
    };
    format!("{energy}, {time}")
}

/// What the rule of responses says of a policy that is within the limit.
fn responses(own: &PolicyResult) -> String {
    let missed = if own.missed_by_task.is_empty() { "" } else { ", misses no more deadlines" };
    match &own.responses {
        Some(r) if r.judged => format!("its responses not shown slower{missed}"),
        Some(PolicyResponses { why_not: Some(why), .. }) => format!("{why}{missed}"),
        _ => "misses no more deadlines".into(),
    }
}

/// A ratio as a change in per cent, and its sign where all of it has one.
pub fn change(ratio: Interval) -> (String, i8) {
    let (low, high) = ((ratio.low - 1.0) * 100.0, (ratio.high - 1.0) * 100.0);
    let number = |x: f64| if x.abs() >= 9.95 { format!("{x:.0}") } else { format!("{x:.1}") };
    let range = |a: f64, b: f64| {
        let (a, b) = (number(a), number(b));
        if a == b { format!("{a} %") } else { format!("{a} to {b} %") }
    };
    match () {
        () if low >= 0.05 => (range(low, high), 1),
        () if high <= -0.05 => (range(-high, -low), -1),
        () if low.abs().max(high.abs()) < 0.05 => ("the same".into(), 0),
        () => (format!("{low:+.1} to {high:+.1} %"), 0),
    }
}

/// Whose completion is judged.
pub(crate) fn foreground(workload: &Workload) -> String {
    match workload.recorded.as_ref().map(|r| &r.foreground) {
        Some(ForegroundOrigin::Command { name }) => format!("the command {name} and what it started"),
        Some(ForegroundOrigin::Replayed) => "as the replay that was written down had it".into(),
        Some(ForegroundOrigin::Named(names)) => format!("{names}, as named"),
        Some(ForegroundOrigin::Unmarked) => "all tasks: the recording does not say whose work it is".into(),
        None => "as the workload's file says".into(),
    }
}

/// How the recording's clock is known.
pub(crate) fn clock(workload: &Workload) -> String {
    let Some(r) = &workload.recorded else { return String::new() };
    let mhz = |khz: u32| format!("{:.0} MHz", f64::from(khz) / 1e3);
    match r.clock {
        ClockOrigin::Stated => format!("{}, as stated", mhz(r.khz)),
        ClockOrigin::Measured => format!("{}, measured while recording", mhz(r.khz)),
        ClockOrigin::Events => "cpu_frequency events".into(),
        ClockOrigin::Described { base_khz, top_khz } => {
            format!("{} to {} by the processor's description, drawn", mhz(base_khz), mhz(top_khz))
        }
        ClockOrigin::Unknown => "unknown".into(),
    }
}

/// How the memory-bound share of run time is known.
pub(crate) fn memory(workload: &Workload) -> String {
    match workload.recorded.as_ref().map(|r| r.memory) {
        Some(MemoryShare::Stated(share)) => format!("{:.0} % of the run time, as stated", share * 100.0),
        Some(MemoryShare::Counted) => "from performance counters".into(),
        Some(MemoryShare::Unknown) => "unknown: 0 to 40 % of the run time, drawn".into(),
        None => match workload.scripted.and_then(|s| s.memory_ends()) {
            Some(e) => format!("{:.0} to {:.0} % of the run time, drawn", e.low * 100.0, e.high * 100.0),
            None => "as the workload's file says".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_with_their_direction() {
        let of = |low: f64, high: f64| change(Interval { median: 1.0, low, high });
        assert_eq!(of(0.86, 0.91), ("9.0 to 14 %".into(), -1));
        assert_eq!(of(1.005, 1.011), ("0.5 to 1.1 %".into(), 1));
        assert_eq!(of(0.99, 1.02), ("-1.0 to +2.0 %".into(), 0));
        assert_eq!(of(1.0, 1.0001), ("the same".into(), 0));
        assert_eq!(of(1.25, 1.25), ("25 %".into(), 1));
    }
}
