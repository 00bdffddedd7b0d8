//! Policies in the order in which a reader wants them: what to use, what is as good, what else may be used, what not.

use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::say;
use wattwise_advice::ties::SURE;
use wattwise_advice::time::TimeKind;
use wattwise_figure::units::trim;
use wattwise_page::number::NONE;

/// Where a policy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupStanding {
    /// The one to use.
    Recommended,
    /// Not told apart from it.
    Tied,
    /// Within the limit of time.
    Admissible,
    /// Left after too few replicas to judge its time, since it could not be the best.
    Dropped,
    /// Its responses were run in too few replicas to be judged.
    NotJudged,
    /// Not within it.
    TooSlow,
}

impl GroupStanding {
    pub(super) fn of(c: &Comparison, r: &PolicyResult) -> GroupStanding {
        match () {
            () if say::not_judged(r) => GroupStanding::NotJudged,
            () if !r.admissible => GroupStanding::TooSlow,
            () if r.policy == c.answer.recommended => GroupStanding::Recommended,
            () if r.tied => GroupStanding::Tied,
            () if time_not_judged(c, r) => GroupStanding::Dropped,
            () => GroupStanding::Admissible,
        }
    }

    /// Over the policies that stand so.
    fn title(self, c: &Comparison) -> String {
        match self {
            GroupStanding::Recommended => "Recommended".to_owned(),
            GroupStanding::Tied if with_intervals(c) => {
                "No clear difference: in at least 5\u{a0}% of the replicas it uses less than 1\u{a0}% more energy"
                    .to_owned()
            }
            GroupStanding::Tied => "No clear difference".to_owned(),
            GroupStanding::Admissible => "The others within the limit".to_owned(),
            GroupStanding::NotJudged => "Not judged: responses need at least 16 replicas".to_owned(),
            GroupStanding::Dropped => {
                "Dropped early: cannot be the best; the time limit was not judged".to_owned()
            }
            GroupStanding::TooSlow => match (c.judged.kind, c.max_slowdown) {
                (TimeKind::Deadlines, _) => "Misses more deadlines than the reference".to_owned(),
                (TimeKind::Response, Some(limit)) if with_intervals(c) => format!(
                    "Some response is slower by more than {}, or too few replicas finish within the window",
                    whole_percent(limit)
                ),
                (_, Some(limit)) if with_intervals(c) => {
                    format!(
                        "Not within the time limit ({}) in 95\u{a0}% of the replicas",
                        whole_percent(limit)
                    )
                }
                (_, Some(limit)) => format!("Over the time limit ({})", whole_percent(limit)),
                (_, None) => "Over the time limit".to_owned(),
            },
        }
    }
}

/// Whether a policy was left after so few replicas that they do not show whether it keeps the limit of time. Such a policy counts as
/// admissible as long as nothing shows the contrary.
pub(crate) fn time_not_judged(c: &Comparison, r: &PolicyResult) -> bool {
    // Responses that nobody notices need no judging.
    let noticed =
        r.responses.as_ref().is_some_and(|r| !r.judged && r.waiting_s + r.reference_waiting_s > 0.0);
    let late = c.judged.kind == TimeKind::Makespan && r.within_share < SURE;
    r.admissible && r.raced_out_after.is_some() && (noticed || late)
}

/// Policies that stand alike, the lowest energy first; last what is not compared by energy.
pub(super) struct PolicyGroup<'a> {
    pub(super) standing: GroupStanding,
    pub(super) title: String,
    pub(super) policies: Vec<&'a PolicyResult>,
}

/// All groups that have a policy.
pub(super) fn groups(c: &Comparison) -> Vec<PolicyGroup<'_>> {
    let energy = |r: &PolicyResult| match say::energy_ratio(c, r) {
        Some(ratio) => (false, ratio.median),
        None => (true, say::energy_j(c, r).median),
    };
    let order = |a: &&PolicyResult, b: &&PolicyResult| {
        let (a, b) = (energy(a), energy(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let group = |standing: GroupStanding| {
        let mut policies: Vec<&PolicyResult> =
            c.results.iter().filter(|r| GroupStanding::of(c, r) == standing).collect();
        policies.sort_by(order);
        (!policies.is_empty()).then(|| PolicyGroup { standing, title: standing.title(c), policies })
    };
    let all = [
        GroupStanding::Recommended,
        GroupStanding::Tied,
        GroupStanding::Admissible,
        GroupStanding::Dropped,
        GroupStanding::NotJudged,
        GroupStanding::TooSlow,
    ];
    all.into_iter().filter_map(group).collect()
}

/// Whether a comparison has intervals: one run of the nominal model has none.
pub(super) fn with_intervals(c: &Comparison) -> bool {
    c.replicas > 0
}

/// A share that a person chose: `10 %`, `2.5 %`.
pub(super) fn whole_percent(share: f64) -> String {
    format!("{}\u{a0}%", trim(share * 100.0, 1))
}

/// A ratio as a change: `−14 to −9.0 %`, or one figure where there is no interval.
pub(crate) fn change(ratio: Interval, with_interval: bool) -> String {
    let ends = [ratio.low, ratio.high];
    if !with_interval || ends.iter().any(|x| !x.is_finite()) {
        return match ratio.median.is_finite() {
            true => format!("{}\u{a0}%", signed(ratio.median)),
            false => NONE.to_owned(),
        };
    }
    let [low, high] = ends.map(signed);
    if low == high { format!("{low}\u{a0}%") } else { format!("{low} to {high}\u{a0}%") }
}

/// Words as the tables have them: minus signs, and no number parted from its per cent.
pub(crate) fn typeset(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" -") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let minus = if after.starts_with(|c: char| c.is_ascii_digit()) { " −" } else { " -" };
        (out, rest) = (out + before + minus, after);
    }
    (out + rest).replace(" %", "\u{a0}%")
}

/// A ratio as a change in per cent, with its sign and no unit.
fn signed(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let text = wattwise_figure::signed(change, if change.abs() >= 9.95 { 0 } else { 1 });
    match text.trim_start_matches(['+', '-']) {
        "0.0" => "0.0".to_owned(),
        _ => text.replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signs_become_minus_signs() {
        assert_eq!(
            typeset("x: -16 to +3.2 % - of c-6, --all -1"),
            "x: −16 to +3.2\u{a0}% - of c-6, --all −1"
        );
    }

    #[test]
    fn changes_have_a_sign_and_never_an_infinity() {
        let of = |low, median, high| change(Interval { median, low, high }, true);
        assert_eq!(of(0.86, 0.9, 0.91), "−14 to −9.0\u{a0}%");
        assert_eq!(of(1.0, 1.0, 1.0), "0.0\u{a0}%");
        assert_eq!(of(f64::NAN, 1.1, 1.2), "+10\u{a0}%");
        assert_eq!(of(0.0, f64::INFINITY, f64::INFINITY), NONE);
        assert_eq!(change(Interval { median: 1.2, low: 1.1, high: 1.3 }, false), "+20\u{a0}%");
    }
}
