//! The answer, and the recommended policy's figures against the reference's.

use super::groups::{self, with_intervals};
use wattwise_advice::answer::change;
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::rule::Goal;
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_page::number::{percent, si, time};

/// One figure, set large.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

/// What kind of answer it is, above the policy's name.
pub(super) fn headline(c: &Comparison) -> String {
    let a = &c.answer;
    let admissible = c.results.iter().any(|r| r.policy == a.recommended && r.admissible);
    match (c.results.len(), &a.winner) {
        (1, _) if c.stopped => "No answer: stopped before another policy had run".to_owned(),
        (1, _) => "The only policy".to_owned(),
        _ if !admissible => "No answer: the reference stays".to_owned(),
        _ if c.replicas == 0 => "Best in one run of the nominal model".to_owned(),
        (_, Some(_)) => format!("The best, in 95 % or more of {} replicas", c.replicas),
        _ if a.tied.is_empty() => "Recommended; no winner can be named".to_owned(),
        _ if a.recommended == c.reference => {
            format!("No clear difference between {}: keep the reference", a.tied.len() + 1)
        }
        _ => {
            let why = say::preferred(c).map_or_else(String::new, |why| format!("; {why}"));
            format!("No clear difference between {}{why}", a.tied.len() + 1)
        }
    }
}

/// The recommended policy's figures.
pub(super) fn tiles(c: &Comparison) -> Vec<Tile> {
    let Some(best) = c.results.iter().find(|r| r.policy == c.answer.recommended) else { return Vec::new() };
    let Some(reference) = c.results.iter().find(|r| r.policy == c.reference) else { return Vec::new() };
    let u = &best.uncertain;
    let mut tiles = vec![Tile {
        label: if c.goal == Goal::OwnEnergy { "Energy over its own time" } else { "Energy in the window" },
        value: si(say::energy_j(c, best).median, "J"),
        note: match say::energy_ratio(c, best) {
            Some(ratio) => against(c, best, ratio, "less than", "more than"),
            None => "over its own time, which is longer".to_owned(),
        },
    }];
    tiles.push(match c.judged.kind {
        TimeKind::Makespan => Tile {
            label: "Time for the work",
            value: time(u.time.median),
            note: against(c, best, u.time_ratio, "shorter than", "longer than"),
        },
        TimeKind::Response => Tile {
            label: "Waiting for responses",
            value: time(u.time.median),
            note: against(c, best, u.time_ratio, "shorter than", "longer than"),
        },
        TimeKind::Deadlines => Tile {
            label: "Deadlines missed",
            value: percent(u.time.median),
            note: match best.policy == reference.policy {
                true => "the reference".to_owned(),
                false => format!("with {}: {}", reference.policy, percent(reference.uncertain.time.median)),
            },
        },
    });
    if let (true, Some(against)) = (with_intervals(c) && c.results.len() > 1, &c.answer.against_reference) {
        let others = match c.answer.tied.len() {
            0 => String::new(),
            1 => "; no clear difference from one other".to_owned(),
            n => format!("; no clear difference from {n} others"),
        };
        tiles.push(Tile {
            label: "Better than the reference in",
            value: format!("{:.0} of {}", against.chance * c.replicas as f64, c.replicas),
            note: format!("replicas of the model{others}"),
        });
    }
    let wake = |r: &PolicyResult| si(r.wake_latency_us.p99 * 1e-6, "s");
    let note = match (best.policy == reference.policy, wake(reference)) {
        (true, _) => "from runnable to running".to_owned(),
        (false, same) if same == wake(best) => {
            format!("from runnable to running, as with {}", reference.policy)
        }
        (false, other) => format!("from runnable to running; with {}: {other}", reference.policy),
    };
    tiles.push(Tile { label: "Wake-up, 99th percentile", value: wake(best), note });
    tiles
}

/// "9.0 to 14 % less than schedutil".
fn against(c: &Comparison, own: &PolicyResult, ratio: Interval, less: &str, more: &str) -> String {
    if c.results.len() < 2 {
        return if c.stopped { "no other had run" } else { "the only policy" }.to_owned();
    }
    if own.policy == c.reference {
        return "the reference".to_owned();
    }
    match change(ratio) {
        _ if ![ratio.low, ratio.high].iter().all(|x| x.is_finite()) => "not comparable".to_owned(),
        (text, -1) => format!("{text} {less} {}", c.reference),
        (text, 1) => format!("{text} {more} {}", c.reference),
        (text, _) if text.contains('%') => {
            format!("{} against {}", groups::change(ratio, with_intervals(c)), c.reference)
        }
        (_, _) => format!("the same as {}", c.reference),
    }
}
