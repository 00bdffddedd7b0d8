//! The answer in words.

use crate::choice::{self, Choice};
use crate::result::{AgainstReference, Answer, Interval, Nearly, PolicyResult, Responses as PolicyResponses};
use crate::rule::Goal;
use crate::say;
use crate::ties::{NOTICEABLE, share};
use crate::time::TimeKind;
use wattwise_figure::signed;
use wattwise_model::workload::{ClockOrigin, ForegroundOrigin, MemoryShare, Workload};

/// At most so many policies are named of those that are better but not within the limit of time often enough.
const MOST_NEARLY: usize = 2;
/// They are within it in at least this share of the replicas.
const NEARLY: f64 = 0.5;
/// Medians of two of these that differ by no more than this share are the same.
const SAME: f64 = 0.001;

/// What an answer is made of.
pub(crate) struct Answered<'a> {
    pub(crate) results: &'a [PolicyResult],
    pub(crate) choice: Choice<'a>,
    /// The recommended policy; `None` where none keeps the limit of time.
    pub(crate) chosen: Option<usize>,
    /// How many were tried, where they were searched for.
    pub(crate) tried: Option<usize>,
    pub(crate) goal: Goal,
    /// One run of the nominal model.
    pub(crate) exact: bool,
    /// Stopped before all replicas were run.
    pub(crate) stopped: bool,
}

/// The answer.
pub(crate) fn answer(a: &Answered<'_>) -> Answer {
    let standing = a.choice.standing;
    let tried = a.tried.map(|n| n as u64);
    let (Some(leader), Some(chosen)) = (standing.leader, a.chosen) else {
        return Answer {
            winner: None,
            recommended: a.results[a.choice.reference].policy.clone(),
            tried,
            against_reference: None,
            nearly: Vec::new(),
            tied: Vec::new(),
            text: "No answer: every policy exceeds the time limit.".into(),
            apply: None,
            lifts: Vec::new(),
            why_not: Some("there is nothing to apply".into()),
            preferred: None,
        };
    };
    let mut group: Vec<usize> = standing.ties.clone();
    group.push(leader);
    group.sort_unstable();
    let tied: Vec<String> =
        group.iter().filter(|&&p| p != chosen).map(|&p| a.results[p].policy.clone()).collect();
    let made = (a.choice.apply)(&a.choice.policies[chosen]);
    let lifts = made.as_ref().map_or_else(|_| Vec::new(), |commands| commands.lifts().to_vec());
    let (apply, why_not) = match made {
        Ok(commands) => (Some(commands.to_string()), None),
        Err(why) => (None, Some(why)),
    };
    let nearly = nearly(a, chosen);
    Answer {
        // Nothing is the best of what was not judged.
        winner: (standing.named && !a.results.iter().any(say::not_judged))
            .then(|| a.results[leader].policy.clone()),
        recommended: a.results[chosen].policy.clone(),
        tried,
        against_reference: (chosen != a.choice.reference).then(|| against_reference(a, chosen)),
        text: text(a, chosen, &tied, &nearly),
        nearly,
        tied,
        apply,
        lifts,
        why_not,
        preferred: choice::preferred(&a.choice, chosen),
    }
}

fn against_reference(a: &Answered<'_>, chosen: usize) -> AgainstReference {
    let ratios = a.choice.columns[chosen].cost_ratios(a.goal);
    AgainstReference {
        ratio: Interval::of(ratios.iter().copied()),
        chance: share(ratios.iter().map(|r| *r < 1.0)),
    }
}

/// Policies that are better than the chosen one by a noticeable share, but within the limit of time in too few replicas.
fn nearly(a: &Answered<'_>, chosen: usize) -> Vec<Nearly> {
    let median = |p: usize| Interval::of(a.choice.columns[p].cost_ratios(a.goal).into_iter()).median;
    let own = median(chosen);
    let is_nearly = |p: &usize| {
        let r = &a.results[*p];
        !r.admissible
            && !say::not_judged(r)
            && r.within_share >= NEARLY
            && median(*p) < own * (1.0 - NOTICEABLE)
    };
    let mut found: Vec<usize> = (0..a.results.len()).filter(is_nearly).collect();
    found.sort_by(|&x, &y| median(x).total_cmp(&median(y)));
    // Two limits between the same levels of most cores are one suggestion.
    let same_share = |x: usize, y: usize| a.results[x].within_share == a.results[y].within_share;
    found.dedup_by(|y, x| same_share(*x, *y) && median(*y) < median(*x) * (1.0 + SAME));
    let named = |&p: &usize| Nearly {
        policy: a.results[p].policy.clone(),
        within_share: a.results[p].within_share,
        ratio: Interval::of(a.choice.columns[p].cost_ratios(a.goal).into_iter()),
    };
    found.iter().take(MOST_NEARLY).map(named).collect()
}

fn text(a: &Answered<'_>, chosen: usize, tied: &[String], nearly: &[Nearly]) -> String {
    let reference = a.choice.reference;
    let (own, against) = (&a.results[chosen], &a.results[reference]);
    // What others may equal is not called the best.
    let best = if tied.is_empty() { "Best" } else { "Recommended" };
    let best = if a.stopped { format!("{best} so far") } else { best.to_owned() };
    let best = a.tried.map_or_else(|| best.clone(), |n| format!("{best} of {n} tried"));
    let mut text = match (chosen == reference, a.results.len()) {
        (_, 1) if a.stopped => return format!("Only {} was run by then: there is no answer.", own.policy),
        (_, 1) => return format!("{} is the only policy: there is nothing to choose.", own.policy),
        (true, _) if a.results.iter().any(say::not_judged) => say::keep_unjudged(&own.policy),
        (true, _) if tied.is_empty() && nearly.is_empty() => {
            format!(
                "{best}: keep {}, the reference. Every other policy needs more {} or is too slow",
                own.policy,
                a.goal.name()
            )
        }
        (true, _) => format!("{best}: keep {}, the reference", own.policy),
        (false, _) => format!("{best}: {}. {}", own.policy, differences(a, chosen, &against.policy)),
    };
    text += &no_clear_difference(tied);
    let standing = a.choice.standing;
    if Some(chosen) == standing.leader && !standing.sure && !a.exact {
        text += "; it may exceed the time limit";
    }
    text += ".";
    for near in nearly {
        let by = match change(near.ratio) {
            (text, -1) => format!("would use {text} less energy"),
            (text, _) => format!("has {text} for its {}", a.goal.name()),
        };
        text += &format!(
            " {} {by}, and is over the time limit in {:.0} % of the replicas.",
            near.policy,
            (1.0 - near.within_share) * 100.0
        );
    }
    if a.exact {
        text += " Only one run of the nominal model, so there is no confidence estimate.";
    }
    text
}

/// "; no clear difference from ondemand, hwp and 2 others".
pub(crate) fn no_clear_difference(tied: &[String]) -> String {
    match tied {
        [] => String::new(),
        [last] => format!("; no clear difference from {last}"),
        all => {
            let named = &all[..all.len().min(3)];
            let text = format!("; no clear difference from {}", named.join(", "));
            text + &match all.len() - named.len() {
                0 => String::new(),
                1 => format!(" and {}", all[3]),
                n => format!(" and {n} others"),
            }
        }
    }
}

/// "Uses 9 to 14 % less energy than schedutil (better in 64 of 64 replicas), takes 0.5 to 1.1 % longer".
fn differences(a: &Answered<'_>, chosen: usize, reference: &str) -> String {
    let own = &a.results[chosen];
    let AgainstReference { ratio, chance } = against_reference(a, chosen);
    let what = match a.goal {
        Goal::OwnEnergy => "energy over its own time",
        goal => goal.name(),
    };
    let cost = match change(ratio) {
        // Over other times no share says anything.
        _ if own.over_own_time && own.slowdown > 1.001 && a.goal == Goal::Energy => {
            format!("Its work takes longer than the window, so its energy is not set against {reference}'s")
        }
        (text, -1) => format!("Uses {text} less {what} than {reference}"),
        (text, 1) => format!("Uses {text} more {what} than {reference}"),
        (text, _) => format!("Its {what} against {reference}: {text}"),
    };
    let of = a.choice.columns[chosen].own.len();
    let sure = match a.exact {
        true => String::new(),
        false => format!(" (better in {:.0} of {of} replicas)", chance * of as f64),
    };
    let time = match (a.choice.kind, change(own.uncertain.time_ratio)) {
        (TimeKind::Makespan, (text, 1)) => format!("takes {text} longer"),
        (TimeKind::Makespan, (text, -1)) => format!("takes {text} less time"),
        (TimeKind::Makespan, (text, _)) => format!("its time changes by {text}"),
        (TimeKind::Response | TimeKind::Deadlines, _) => responses(own),
    };
    format!("{cost}{sure}, {time}")
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
        () => {
            let signed = |x: f64| signed(x, if x.abs() >= 9.95 { 0 } else { 1 });
            (format!("{} to {} %", signed(low), signed(high)), 0)
        }
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
            format!(
                "{} to {} by the processor's description, at random in each replica",
                mhz(base_khz),
                mhz(top_khz)
            )
        }
        ClockOrigin::Unknown => "unknown".into(),
    }
}

/// How the memory-bound share of run time is known.
pub(crate) fn memory(workload: &Workload) -> String {
    match workload.recorded.as_ref().map(|r| r.memory) {
        Some(MemoryShare::Stated(share)) => format!("{:.0} % of the run time, as stated", share * 100.0),
        Some(MemoryShare::Counted) => "from performance counters".into(),
        Some(MemoryShare::Unknown) => "unknown: 0 to 40 % of the run time, at random in each replica".into(),
        None => match workload.scripted.and_then(|s| s.memory_ends()) {
            Some(e) => format!(
                "{:.0} to {:.0} % of the run time, at random in each replica",
                e.low * 100.0,
                e.high * 100.0
            ),
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
        assert_eq!(of(0.842, 1.032), ("-16 to +3.2 %".into(), 0));
        assert_eq!(of(0.9997, 1.02), ("+0.0 to +2.0 %".into(), 0));
        assert_eq!(of(1.0, 1.0001), ("the same".into(), 0));
        assert_eq!(of(1.25, 1.25), ("25 %".into(), 1));
    }
}
