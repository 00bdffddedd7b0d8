//! The report of `compare`.
//!
//! What is in words, tables or bars is laid out here and works without script and in print; what
//! has to be drawn to the width of a screen or zoomed is left to `assets/compare.js`.

use askama::Template;

use crate::{COMPARE_JS, data};
use wattwise_advice::compare::PolicyDetail;
use wattwise_advice::result::{Comparison, InputFigure, PolicyResult};
use wattwise_page::number::{NONE, decimals, fixed, percent, si, speed, time};
use wattwise_page::{REPORT_CSS, REPORT_JS, UPLOT_CSS, UPLOT_JS};

/// One self-contained HTML file.
///
/// `details` may lack policies, or be empty: their timelines and latencies are then left out.
/// `command` is what the reader types to get the same report again.
pub fn compare_html(comparison: &Comparison, details: &[PolicyDetail], command: &str) -> String {
    let c = comparison;
    let states = idle_states(c);
    let page = ComparePage {
        c,
        command,
        provenance: provenance(c),
        tiles: tiles(c),
        columns: COLUMNS.map(|col| col.head),
        rows: rows(c),
        energy: energy_bars(c, &states),
        time: time_bars(c, &states),
        duration: time(c.workload.duration_s),
        window: time(c.window_s),
        events: fixed(c.workload.events as f64, 0),
        figures: &c.inputs.machine_figures,
        confidence: confidence(&c.inputs.machine_figures),
        timeline: details.iter().any(|d| !d.timeline.power_w.is_empty()),
        wake: details.iter().any(|d| !d.wake_histogram.is_empty()),
        data: data::json(c, details),
        css: [UPLOT_CSS, REPORT_CSS],
        js: [UPLOT_JS, REPORT_JS, COMPARE_JS],
    };
    page.render().expect("writing to a string cannot fail")
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage<'a> {
    c: &'a Comparison,
    command: &'a str,
    provenance: String,
    tiles: Vec<Tile>,
    columns: [Head; COLUMNS.len()],
    rows: Vec<PolicyRow<'a>>,
    energy: Stacks<'a>,
    time: Stacks<'a>,
    duration: String,
    window: String,
    events: String,
    figures: &'a [InputFigure],
    confidence: Vec<(String, usize, bool)>,
    timeline: bool,
    wake: bool,
    data: String,
    css: [&'static str; 2],
    js: [&'static str; 3],
}

/// One figure of the best policy, set large.
struct Tile {
    label: &'static str,
    value: String,
    note: String,
}

fn tiles(c: &Comparison) -> Vec<Tile> {
    let Some(best) = c.results.iter().find(|r| r.policy == c.best.policy) else { return Vec::new() };
    let alone = c.results.len() < 2;
    let first_by = |key: fn(&PolicyResult) -> f64, sign: f64| {
        c.results.iter().min_by(|a, b| (sign * key(a)).total_cmp(&(sign * key(b)))).unwrap_or(best)
    };
    let against = |other: &PolicyResult, key: fn(&PolicyResult) -> f64, less: &str, more: &str| {
        let change = key(best) / key(other) - 1.0;
        match change {
            _ if alone => "the only policy".to_owned(),
            _ if other.policy == best.policy || change == 0.0 => String::new(),
            _ if !change.is_finite() => String::new(),
            _ if change < 0.0 => format!("{} {less} {}", percent(-change), other.policy),
            _ => format!("{} {more} {}", percent(change), other.policy),
        }
    };
    let or = |note: String, otherwise: &str| if note.is_empty() { otherwise.to_owned() } else { note };
    let costliest = first_by(|r| r.window_energy_j, -1.0);
    let fastest = first_by(|r| r.elapsed_s, 1.0);
    let hungriest = first_by(|r| r.mean_w, -1.0);
    let promptest = first_by(|r| r.wake_latency_us.p99, 1.0);
    vec![
        Tile {
            label: "Energy in the window",
            value: si(best.window_energy_j, "J"),
            note: or(
                against(costliest, |r| r.window_energy_j, "less than", "more than"),
                "no policy needs more",
            ),
        },
        Tile {
            label: "Time for the work",
            value: time(best.elapsed_s),
            note: or(against(fastest, |r| r.elapsed_s, "shorter than", "longer than"), "no policy is faster"),
        },
        Tile {
            label: "Mean power",
            value: si(best.mean_w, "W"),
            note: or(against(hungriest, |r| r.mean_w, "less than", "more than"), "no policy draws more"),
        },
        Tile {
            label: "Wake-up, 99th percentile",
            value: si(best.wake_latency_us.p99 * 1e-6, "s"),
            note: or(
                against(promptest, |r| r.wake_latency_us.p99, "shorter than", "longer than"),
                "no policy wakes sooner",
            ),
        },
    ]
}

#[derive(Clone, Copy)]
struct Head {
    name: &'static str,
    unit: &'static str,
    /// What the column means, for who rests on its head.
    help: &'static str,
}

struct Column {
    head: Head,
    value: fn(&PolicyResult) -> f64,
    /// Decimals where the column does not choose them by its greatest value.
    decimals: Option<usize>,
}

/// The table's columns after the policy's name. A new one is one line here.
const COLUMNS: [Column; 10] = {
    const fn column(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        decimals: Option<usize>,
        value: fn(&PolicyResult) -> f64,
    ) -> Column {
        Column { head: Head { name, unit, help }, value, decimals }
    }
    [
        column("Window energy", "J", "Energy over the longest run's time, with the idle tail", None, |r| {
            r.window_energy_j
        }),
        column("Energy", "J", "Energy over the run's own time", None, |r| r.energy_j),
        column("Elapsed", "s", "Until the last of the work was done", None, |r| r.elapsed_s),
        column("Slowdown", "×", "Elapsed time over the fastest policy's", Some(3), |r| r.slowdown),
        column("Mean power", "W", "Over the run's own time", None, |r| r.mean_w),
        column("EDP", "J·s", "Energy times delay, over the run's own time", None, |r| r.edp_js),
        column("Wake p50", "µs", "From runnable to running, median", None, |r| r.wake_latency_us.p50),
        column("Wake p99", "µs", "From runnable to running, 99th percentile", None, |r| {
            r.wake_latency_us.p99
        }),
        column("Wake max", "µs", "From runnable to running, greatest", None, |r| r.wake_latency_us.max),
        column("Speed changes", "", "Transitions carried out, over all domains", Some(0), |r| {
            r.transitions as f64
        }),
    ]
};

struct PolicyRow<'a> {
    policy: &'a str,
    best: bool,
    cells: Vec<Cell>,
}

struct Cell {
    text: String,
    /// What sorting compares.
    value: f64,
    /// The column's least.
    least: bool,
    /// Share of the column's greatest, in percent: the bar behind the figure.
    share: f64,
}

fn rows(c: &Comparison) -> Vec<PolicyRow<'_>> {
    let columns: Vec<_> = COLUMNS
        .iter()
        .map(|col| {
            let values = || c.results.iter().map(col.value).filter(|v| v.is_finite());
            let digits = col.decimals.unwrap_or_else(|| decimals(values()));
            (col.value, digits, values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
        })
        .collect();
    let row = |r| -> Vec<Cell> {
        let cell = |&(value, digits, least, most): &(fn(&PolicyResult) -> f64, usize, f64, f64)| {
            let v = value(r);
            Cell {
                text: fixed(v, digits),
                value: if v.is_finite() { v } else { f64::MAX },
                least: v == least && least < most,
                share: share(v, most),
            }
        };
        columns.iter().map(cell).collect()
    };
    c.results
        .iter()
        .map(|r| PolicyRow { policy: &r.policy, best: r.policy == c.best.policy, cells: row(r) })
        .collect()
}

/// `value` of `whole` in percent to two decimals, 0 where that means nothing.
fn share(value: f64, whole: f64) -> f64 {
    let percent = value / whole * 100.0;
    if percent.is_finite() { (percent.clamp(0.0, 100.0) * 100.0).round() / 100.0 } else { 0.0 }
}

/// Stacked bars, one a policy, with the same as a table.
struct Stacks<'a> {
    bars: Vec<Stack<'a>>,
    legend: Vec<(String, String)>,
    head: Vec<String>,
    rows: Vec<(&'a str, Vec<String>)>,
}

struct Stack<'a> {
    policy: &'a str,
    best: bool,
    total: String,
    parts: Vec<Part>,
}

struct Part {
    /// A CSS colour.
    colour: String,
    /// Of the longest bar, in percent.
    share: f64,
    tip: String,
}

/// Names of all idle states, shallowest first, each with its colour.
fn idle_states(c: &Comparison) -> Vec<(String, String)> {
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

fn energy_bars<'a>(c: &'a Comparison, states: &[(String, String)]) -> Stacks<'a> {
    let mut legend = vec![
        ("executing".to_owned(), "var(--busy)".to_owned()),
        ("awake, not executing".to_owned(), "var(--stall)".to_owned()),
    ];
    legend.extend(states.iter().map(|(n, colour)| (format!("in {n}"), colour.clone())));
    legend.push(("uncore".to_owned(), "var(--uncore)".to_owned()));
    legend.push(("platform".to_owned(), "var(--platform)".to_owned()));

    let values = |r: &PolicyResult| {
        let s = &r.window_split_j;
        let of = |name: &str| s.idle_j.iter().filter(|(n, _)| n == name).map(|(_, j)| j).sum::<f64>();
        let mut v = vec![s.busy_j, s.stall_j];
        v.extend(states.iter().map(|(n, _)| of(n)));
        v.extend([s.uncore_j, s.platform_j]);
        v
    };
    let mut order: Vec<&PolicyResult> = c.results.iter().collect();
    order.sort_by(|a, b| a.window_energy_j.total_cmp(&b.window_energy_j));
    let rows = order.iter().map(|r| (*r, values(r))).collect();
    let (legend, rows) = without_empty(legend, rows);
    stacks(c, legend, rows, "J")
}

fn time_bars<'a>(c: &'a Comparison, states: &[(String, String)]) -> Stacks<'a> {
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
    let mut order: Vec<&PolicyResult> = c.results.iter().collect();
    order.sort_by(|a, b| a.window_energy_j.total_cmp(&b.window_energy_j));
    let rows = order.iter().map(|r| (*r, values(r))).collect();
    let (legend, rows) = without_empty(legend, rows);
    stacks(c, legend, rows, "s")
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
    let longest = rows.iter().map(|(_, v)| sum(v)).fold(0.0, f64::max);
    let digits = decimals(rows.iter().flat_map(|(_, v)| v.iter().copied()));
    let bars = rows
        .iter()
        .map(|(r, values)| Stack {
            policy: &r.policy,
            best: r.policy == c.best.policy,
            total: si(sum(values), unit),
            parts: legend
                .iter()
                .zip(values)
                .filter(|(_, v)| share(**v, longest) > 0.0)
                .map(|((name, colour), &v)| Part {
                    colour: colour.clone(),
                    share: share(v, longest),
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

/// How the results came about, in one word where they agree.
fn provenance(c: &Comparison) -> String {
    let mut all: Vec<&str> = c.results.iter().map(|r| r.provenance.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { NONE.to_owned() } else { all.join(" and ") }
}

/// `true` for figures that nobody looked up or measured: a reader should know them before the result.
fn shaky(confidence: &str) -> bool {
    let c = confidence.to_ascii_lowercase();
    ["fitted", "guess", "assum", "estimat"].iter().any(|word| c.contains(word))
}

/// `(confidence, figures, shaky)`, the most frequent first.
fn confidence(figures: &[InputFigure]) -> Vec<(String, usize, bool)> {
    let mut counts: Vec<(String, usize, bool)> = Vec::new();
    for f in figures {
        match counts.iter_mut().find(|c| c.0 == f.confidence) {
            Some(count) => count.1 += 1,
            None => counts.push((f.confidence.clone(), 1, shaky(&f.confidence))),
        }
    }
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    counts
}
