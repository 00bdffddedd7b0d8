//! Stacked bars: where energy and CPU time went.

use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_page::number::{decimals, fixed, percent, si, speed};

/// `value` of `whole` in percent to two decimals, 0 where that means nothing.
pub(super) fn share(value: f64, whole: f64) -> f64 {
    let percent = value / whole * 100.0;
    if percent.is_finite() { (percent.clamp(0.0, 100.0) * 100.0).round() / 100.0 } else { 0.0 }
}

/// What a part is whose name does not tell.
pub(super) fn explained(part: &str) -> Option<&'static str> {
    Some(match part {
        STALL => {
            "Cores that are awake but execute nothing: on the way into or out of a C-state, or at a change of speed"
        }
        UNCORE => "The processor beside its cores: shared caches, interconnect, memory controller",
        PLATFORM => "The rest of the machine: everything but the processor and what is shown apart from it",
        _ => return None,
    })
}

const STALL: &str = "awake, not executing";
const UNCORE: &str = "uncore";
const PLATFORM: &str = "platform";

/// Stacked bars, one a policy, with the same as a table.
pub(super) struct Stacks<'a> {
    pub(super) bars: Vec<Stack<'a>>,
    pub(super) legend: Vec<(String, String)>,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<(&'a str, Vec<String>)>,
}

pub(super) struct Stack<'a> {
    pub(super) policy: &'a str,
    pub(super) best: bool,
    pub(super) total: String,
    pub(super) parts: Vec<BarPart>,
}

pub(super) struct BarPart {
    /// A CSS colour.
    pub(super) colour: String,
    /// Of the longest bar, in percent.
    pub(super) share: f64,
    pub(super) tip: String,
}

/// Names of all idle states, shallowest first, each with its colour.
pub(super) fn idle_states(c: &Comparison) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    for r in &c.results {
        let of_times = r.idle_residency.iter().map(|i| i.state.as_str());
        let of_energy = r.window_split_j.idle_j.iter().map(|i| i.0.as_str());
        for name in of_times.chain(of_energy) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    // Six shades are as many as one tells apart; fewer states spread over them. `compare.js` does the same.
    let shade = |i: usize| if names.len() < 2 { 3 } else { (i * 10 / (names.len() - 1)).div_ceil(2) };
    names.iter().enumerate().map(|(i, n)| ((*n).to_owned(), format!("var(--idle-{})", shade(i)))).collect()
}

pub(super) fn energy_bars<'a>(c: &'a Comparison, states: &[(String, String)]) -> Stacks<'a> {
    let mut legend = vec![
        ("executing".to_owned(), "var(--busy)".to_owned()),
        (STALL.to_owned(), "var(--stall)".to_owned()),
    ];
    legend.extend(states.iter().map(|(n, colour)| (format!("in {n}"), colour.clone())));
    legend.push((UNCORE.to_owned(), "var(--uncore)".to_owned()));
    legend.push(("memory".to_owned(), "var(--memory)".to_owned()));
    legend.push((PLATFORM.to_owned(), "var(--platform)".to_owned()));

    let values = |r: &PolicyResult| {
        let s = &r.window_split_j;
        let of = |name: &str| s.idle_j.iter().filter(|(n, _)| n == name).map(|(_, j)| j).sum::<f64>();
        // Leakage is the cores', mostly of those that execute.
        let mut v = vec![s.busy_j + s.leakage_j, s.stall_j];
        v.extend(states.iter().map(|(n, _)| of(n)));
        v.extend([s.uncore_j, s.memory_j, s.platform_j]);
        v
    };
    let rows = order(c).iter().map(|r| (*r, values(r))).collect();
    let (legend, rows) = without_empty(legend, rows);
    stacks(c, legend, rows, "J")
}

pub(super) fn time_bars<'a>(c: &'a Comparison, states: &[(String, String)]) -> Stacks<'a> {
    let mut speeds: Vec<u32> = c.results.iter().flat_map(|r| &r.speed_residency).map(|s| s.khz).collect();
    speeds.sort_unstable_by(|a, b| b.cmp(a));
    speeds.dedup();
    let fastest = speeds.first().copied().unwrap_or(0);
    let slowest = speeds.last().copied().unwrap_or(0);
    let shade = |khz: u32| match fastest - slowest {
        0 => 100.0,
        span => share(f64::from(khz - slowest), f64::from(span)),
    };
    let mut legend: Vec<(String, String)> = speeds
        .iter()
        .map(|&k| (speed(k), format!("color-mix(in oklab, var(--fast) {}%, var(--slow))", shade(k))))
        .collect();
    legend.extend(states.iter().cloned());

    let values = |r: &PolicyResult| {
        let at = |khz: u32| r.speed_residency.iter().filter(|s| s.khz == khz).map(|s| s.s).sum::<f64>();
        let within =
            |name: &str| r.idle_residency.iter().filter(|i| i.state == name).map(|i| i.s).sum::<f64>();
        let mut v: Vec<f64> = speeds.iter().map(|&k| at(k)).collect();
        v.extend(states.iter().map(|(n, _)| within(n)));
        v
    };
    let rows = order(c).iter().map(|r| (*r, values(r))).collect();
    let (legend, rows) = without_empty(legend, rows);
    stacks(c, legend, rows, "s")
}

/// The lowest energy first; last what ran longer than the window.
fn order(c: &Comparison) -> Vec<&PolicyResult> {
    let mut order: Vec<&PolicyResult> = c.results.iter().collect();
    order.sort_by(|a, b| {
        a.over_own_time.cmp(&b.over_own_time).then(a.window_energy_j.total_cmp(&b.window_energy_j))
    });
    order
}

type Legend = Vec<(String, String)>;
type Values<'a> = Vec<(&'a PolicyResult, Vec<f64>)>;

/// Parts that no policy has only lengthen the legend and the table.
fn without_empty<'a>(legend: Legend, rows: Values<'a>) -> (Legend, Values<'a>) {
    let keep: Vec<bool> = (0..legend.len()).map(|i| rows.iter().any(|(_, v)| v[i] != 0.0)).collect();
    let mut at = keep.iter();
    let legend = legend.into_iter().filter(|_| *at.next().unwrap_or(&true)).collect();
    let rows = rows
        .into_iter()
        .map(|(r, v)| (r, v.into_iter().zip(&keep).filter(|(_, k)| **k).map(|(v, _)| v).collect()))
        .collect();
    (legend, rows)
}

fn stacks<'a>(c: &'a Comparison, legend: Legend, rows: Values<'a>, unit: &str) -> Stacks<'a> {
    let sum = |v: &[f64]| v.iter().filter(|x| x.is_finite()).sum::<f64>();
    // One that runs for much longer would press all others into dots: its own bar is full, and says so.
    let within = rows.iter().filter(|(r, _)| !r.over_own_time);
    let longest = within.map(|(_, v)| sum(v)).fold(0.0, f64::max);
    let whole = |r: &PolicyResult, v: &[f64]| if r.over_own_time { longest.max(sum(v)) } else { longest };
    let total = |r: &PolicyResult, v: &[f64]| match r.over_own_time && unit == "J" {
        true => format!("{} over a longer time", si(sum(v), unit)),
        false => si(sum(v), unit),
    };
    let digits = decimals(rows.iter().flat_map(|(_, v)| v.iter().copied()));
    let bars = rows
        .iter()
        .map(|(r, values)| Stack {
            policy: &r.policy,
            best: r.policy == c.answer.recommended,
            total: total(r, values),
            parts: legend
                .iter()
                .zip(values)
                .filter(|(_, v)| share(**v, whole(r, values)) > 0.0)
                .map(|((name, colour), &v)| BarPart {
                    colour: colour.clone(),
                    share: share(v, whole(r, values)),
                    tip: format!("{}\n{name}: {} ({})", r.policy, si(v, unit), percent(v / sum(values))),
                })
                .collect(),
        })
        .collect();
    let head = legend.iter().map(|(n, _)| format!("{n}, {unit}")).collect();
    let table = rows
        .iter()
        .map(|(r, values)| (r.policy.as_str(), values.iter().map(|v| fixed(*v, digits)).collect()))
        .collect();
    Stacks { bars, legend, head, rows: table }
}
