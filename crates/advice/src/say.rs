//! Figures in words, the same in text, Markdown and HTML.

use crate::result::{
    Comparison, Interval, KindResponses, MissedTask, PolicyResult, Preferred, Responses, Split,
};
use crate::rule::Goal;
use crate::time::TimeKind;
use wattwise_responses::LEAST_REPLICAS;

/// A time with three figures and the unit that suits it: `974 ms`, `1.36 s`.
pub fn seconds(s: f64) -> String {
    let digits = |x: f64| {
        let decimals = match x {
            x if x >= 99.95 => 0,
            x if x >= 9.995 => 1,
            _ => 2,
        };
        format!("{x:.decimals$}")
    };
    match s {
        s if s >= 0.9995 => format!("{} s", digits(s)),
        s if s >= 0.9995e-3 => format!("{} ms", digits(s * 1e3)),
        s if s > 0.0 => format!("{} us", digits(s * 1e6)),
        _ => "0 s".into(),
    }
}

/// The energy that a comparison is about: over the window, or over each run's own time where that was asked for.
pub fn energy_j(c: &Comparison, r: &PolicyResult) -> Interval {
    if c.goal == Goal::OwnEnergy { r.uncertain.own_energy_j } else { r.uncertain.energy_j }
}

/// By this share of the window a run may be longer and still be said to be over it: no per cent that is shown hangs on it.
const SAME_TIME: f64 = 1e-3;

/// Whether a policy's energy is over a longer time than the reference policy's.
fn is_longer(c: &Comparison, r: &PolicyResult) -> bool {
    r.over_own_time && r.elapsed_s > c.window_s * (1.0 + SAME_TIME)
}

/// That, over the reference policy's; `None` for what is over another time than the reference policy's, which no share compares.
pub fn energy_ratio(c: &Comparison, r: &PolicyResult) -> Option<Interval> {
    match (c.goal == Goal::OwnEnergy, is_longer(c, r)) {
        (true, _) => Some(r.uncertain.own_energy_ratio),
        (false, true) => None,
        (false, false) => Some(r.uncertain.energy_ratio),
    }
}

/// Whose energy it is: that of all parts for which the model of the machine has watts.
pub fn energy_of(c: &Comparison) -> &'static str {
    let some = |of: fn(&Split) -> f64| c.results.iter().any(|r| of(&r.window_split_j) > 0.0);
    match () {
        () if some(|s| s.platform_j) => "the whole machine",
        () if some(|s| s.memory_j) => "the CPU and the memory",
        () => "the CPU",
    }
}

/// Whether a policy is not recommended only since too few replicas were run to judge its responses: nothing shows it over the limit.
pub fn not_judged(r: &PolicyResult) -> bool {
    // What a race dropped was found too slow by its own, looser rule.
    !r.admissible && r.raced_out_after.is_none() && unjudged(r.responses.as_ref(), &r.missed_by_task)
}

/// Whether too few replicas were run to judge these responses, and neither they nor what is missed shows the limit exceeded.
pub(crate) fn unjudged(responses: Option<&Responses>, missed: &[MissedTask]) -> bool {
    responses.is_some_and(|own| !own.judged && !own.slower) && !missed.iter().any(|m| m.slower)
}

/// What is said where that is why the reference is kept: a command that ends with it has no answer yet.
pub fn keep_unjudged(policy: &str) -> String {
    format!("Keep {policy}, the reference: responses are judged with at least {LEAST_REPLICAS} replicas")
}

/// Over what the energy is.
pub fn energy_over(c: &Comparison) -> String {
    let window = seconds(c.window_s);
    match () {
        () if c.goal == Goal::OwnEnergy => "over each run's own time".into(),
        () if c.results.iter().any(|r| is_longer(c, r)) => {
            format!("over {window}; rows with \"{OWN_TIME}\": over the whole of that run, which takes longer")
        }
        () => format!("over {window} for all"),
    }
}

/// Warnings about single events of a recording, of which every recording has some. The first number in each is how many there are;
/// what they do to an answer nobody has measured.
const SMALL: [&str; 5] = [
    "switches from idle were not recorded",
    "switches of tasks that write no events are missing",
    "switches contradict what their CPU was doing",
    "sleeps ended without a recorded wake-up",
    "wake-ups are guesses",
];

fn is_small(warning: &str) -> bool {
    SMALL.iter().any(|small| warning.contains(small))
}

/// The other warnings.
pub fn serious(c: &Comparison) -> impl Iterator<Item = &String> {
    c.inputs.warnings.iter().filter(|w| !is_small(w))
}

/// What the warnings about single events come to, beside the events that were recorded. `None` where there is none.
pub fn small_gaps(c: &Comparison) -> Option<String> {
    let small = || c.inputs.warnings.iter().filter(|w| is_small(w));
    let count = |warning: &String| warning.split(' ').find_map(|word| word.parse::<u64>().ok());
    let filled: u64 = small().filter_map(count).sum();
    small().next()?;
    Some(format!(
        "{filled} events are missing or contradict others ({} were recorded); assumptions replace them, the same in all replicas",
        c.workload.events
    ))
}

/// How many replicas a policy's figures are of.
pub fn replicas_of(c: &Comparison, r: &PolicyResult) -> u64 {
    r.raced_out_after.unwrap_or(c.replicas)
}

/// The other numbers of replicas, of policies that were left early: `[4, 16]`.
pub fn left_after(shown: &[&PolicyResult]) -> Vec<u64> {
    let mut all: Vec<u64> = shown.iter().filter_map(|r| r.raced_out_after).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Stands in the place of a share where the energy is over a longer time than the window.
pub const OWN_TIME: &str = "own time";

/// A quantile of response times; those below 1 ms are counted, not kept.
pub fn response(s: Option<f64>) -> String {
    s.map_or_else(|| "under 1 ms".into(), seconds)
}

/// The kind of response that stands for a policy: of those with enough responses to be judged, the one with the most extra
/// waiting, or where none has any the one with the most waiting under the reference policy.
pub fn shown_kind(responses: &Responses) -> Option<&KindResponses> {
    let extra = |k: &KindResponses| k.waiting_s - k.reference_waiting_s;
    let judged = responses.kinds.iter().any(|k| k.mean_ratio.is_some());
    let mut kinds = responses.kinds.iter().filter(|k| k.mean_ratio.is_some() == judged);
    if responses.kinds.iter().any(|k| extra(k) != 0.0) {
        return kinds.next();
    }
    kinds.max_by(|a, b| a.reference_waiting_s.total_cmp(&b.reference_waiting_s))
}

/// The kind of response that a policy's row shows: one that is slower than the limit allows, else of those with enough responses
/// to be judged the one that waits most under the reference policy, the same in all rows.
pub fn row_kind<'a>(c: &Comparison, r: &'a PolicyResult) -> Option<&'a KindResponses> {
    let own = r.responses.as_ref()?;
    if let Some(slower) = own.kinds.iter().find(|k| k.slower) {
        return Some(slower);
    }
    let reference = c.results.iter().find(|r| r.policy == c.reference)?.responses.as_ref()?;
    let most = |k: &&KindResponses| (k.mean_ratio.is_some(), k.waiting_s);
    let most = reference.kinds.iter().max_by(|a, b| {
        let (a, b) = (most(a), most(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    most.like(&own.kinds).or_else(|| shown_kind(own))
}

/// The size of a kind's episodes, from and to in millions of cycles.
pub fn kind_size(kind: &KindResponses) -> (f64, f64) {
    let to = 4f64.powi(i32::from(kind.size_class));
    (if kind.size_class == 0 { 0.0 } else { to / 4.0 }, to)
}

/// Whether several of these kinds have its name.
pub fn is_one_of_several(kinds: &[KindResponses], kind: &KindResponses) -> bool {
    kinds.iter().filter(|k| k.kind == kind.kind).count() > 1
}

/// A kind's name among others; of several kinds of one name with the size of its episodes, in millions of cycles.
pub fn kind_name(kinds: &[KindResponses], kind: &KindResponses) -> String {
    match kind_size(kind) {
        _ if !is_one_of_several(kinds, kind) => kind.kind.clone(),
        (0.0, to) => format!("{} (bursts of under {to:.0} million cycles)", kind.kind),
        (from, to) => format!("{} (bursts of {from:.0} to {to:.0} million cycles)", kind.kind),
    }
}

/// The kind that gains most, where one does whose median reads otherwise than the reference's.
fn best_gain(responses: &Responses) -> Option<&KindResponses> {
    let gain = |k: &KindResponses| k.reference_waiting_s - k.waiting_s;
    let shows = |k: &&KindResponses| gain(k) > 0.0 && response(k.p50_s) != response(k.reference_p50_s);
    responses.kinds.iter().filter(shows).max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

/// A change from the reference policy's figure: `442 -> 974 ms`, or one figure where both read the same.
fn change(reference: Option<f64>, own: Option<f64>) -> String {
    let (from, to) = (response(reference), response(own));
    if from == to {
        return to;
    }
    match (from.rsplit_once(' '), to.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other && reference.is_some() => {
            format!("{number} -> {to}")
        }
        _ => format!("{from} -> {to}"),
    }
}

/// What is said of the responses under a policy that is not the reference, a line each: of the kind that stands for it (`page, 6 responses a
/// minute: median 442 -> 974 ms, 95 % within 1.36 s`), of the kind that gains most, of all waiting. Empty where none is noticed.
pub fn responses(c: &Comparison, responses: &Responses) -> Vec<String> {
    let Some(kind) = shown_kind(responses) else { return Vec::new() };
    let each = if c.window_s > 0.0 { kind.episodes / c.window_s * 60.0 } else { 0.0 };
    let often = if each >= 9.5 { format!("{each:.0}") } else { format!("{each:.1}") };
    let name = |k: &KindResponses| kind_name(&responses.kinds, k);
    let mut lines = vec![format!(
        "{}, {often} responses a minute: median {}, 95 % within {}",
        name(kind),
        change(kind.reference_p50_s, kind.p50_s),
        change(kind.reference_p95_s, kind.p95_s),
    )];
    if let Some(gain) = best_gain(responses).filter(|g| g.kind != kind.kind) {
        lines.push(format!("{}: median {}", name(gain), change(gain.reference_p50_s, gain.p50_s)));
    }
    let waiting = change(Some(responses.reference_waiting_s), Some(responses.waiting_s));
    lines.push(format!("total waiting time in {}: {waiting}", response(Some(c.window_s))));
    lines
}

/// By how much less time another policy is worth a word: a share.
const FASTER: f64 = 0.02;

/// By how much a policy is faster than the recommended one, in the medians: `4 % faster`; `None` where it is not, or no time is
/// judged.
pub fn faster(c: &Comparison, policy: &str) -> Option<String> {
    let ratio = |name: &str| {
        let found = c.results.iter().find(|r| r.policy == name)?;
        Some(found.uncertain.time_ratio.median)
    };
    let less = 1.0 - ratio(policy)? / ratio(&c.answer.recommended)?;
    (c.judged.kind == TimeKind::Makespan && less >= FASTER).then(|| format!("{:.0} % faster", less * 100.0))
}

/// Why the recommended policy is preferred to those that show no clear difference from it; `None` where there are none, where it is
/// the reference, and in a result that was read again.
pub fn preferred(c: &Comparison) -> Option<&'static str> {
    let a = &c.answer;
    if a.tied.is_empty() {
        return None;
    }
    let lowest = match c.goal {
        Goal::Energy | Goal::OwnEnergy => "this one uses the least energy",
        Goal::Edp => "this one has the lowest energy times time",
        Goal::Time => "this one is the fastest",
    };
    Some(match a.preferred? {
        Preferred::Reference => return None,
        Preferred::Leads if leads_in_figures(c) => lowest,
        Preferred::Leads => "of them this one is least often more than 1 % worse than another",
        Preferred::Faster => "this one is as good as the best, and faster",
        Preferred::CanBeSet => "this one is as good as the best, and can be applied by a command",
        Preferred::ChangesLess => "this one is as good as the best, and changes fewer settings",
        Preferred::Simpler => "this one is as good as the best, and has the shorter name",
    })
}

/// Whether the recommended policy also has the least median of those that show no clear difference: its figures may be of other
/// replicas than those that chose it.
fn leads_in_figures(c: &Comparison) -> bool {
    let a = &c.answer;
    let cost = |r: &PolicyResult| {
        let u = &r.uncertain;
        match c.goal {
            Goal::Energy => u.energy_ratio.median,
            Goal::OwnEnergy => u.own_energy_ratio.median,
            Goal::Edp => u.own_energy_ratio.median * u.time_ratio.median,
            Goal::Time => u.time_ratio.median,
        }
    };
    let of = |name: &String| c.results.iter().find(|r| r.policy == *name).map_or(f64::INFINITY, cost);
    a.tied.iter().all(|tied| of(&a.recommended) <= of(tied))
}

/// The task whose missed share rises most, `missed 0.2 -> 13.5 %`; `None` where none is judged.
pub fn missed(r: &PolicyResult) -> Option<String> {
    let rise = |m: &crate::result::MissedTask| m.share - m.reference_share;
    let most = r.missed_by_task.iter().max_by(|a, b| rise(a).total_cmp(&rise(b)))?;
    let percent = |x: f64| format!("{:.1}", x * 100.0);
    let (from, to) = (percent(most.reference_share), percent(most.share));
    Some(if from == to { format!("missed {to} %") } else { format!("missed {from} -> {to} %") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_figures() {
        let of = [1.3649, 0.974, 0.0052, 12.34, 0.00038, 0.99999, 0.0];
        assert_eq!(of.map(seconds), ["1.36 s", "974 ms", "5.20 ms", "12.3 s", "380 us", "1.00 s", "0 s"]);
    }

    #[test]
    fn a_change_names_its_unit_once_where_it_can() {
        assert_eq!(change(Some(0.442), Some(0.974)), "442 -> 974 ms");
        assert_eq!(change(Some(0.442), Some(1.36)), "442 ms -> 1.36 s");
        assert_eq!(change(None, Some(0.0014)), "under 1 ms -> 1.40 ms");
        assert_eq!(change(Some(0.0052), Some(0.0052)), "5.20 ms");
    }
}
