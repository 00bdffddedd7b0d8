//! The tables of policies: what the replicas say, in groups, and the figures of the nominal run.

use super::bars::share;
use super::groups::{Group, Standing, change, with_intervals};
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::rule::Goal;
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_page::number::{NONE, decimals, fixed};

/// A column's heading.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// Shown when hovering over the heading.
    pub(super) help: &'static str,
}

/// Policies that stand alike.
pub(super) struct TableGroup<'a> {
    pub(super) title: String,
    pub(super) tied: bool,
    pub(super) rows: Vec<PolicyRow<'a>>,
}

pub(super) struct PolicyRow<'a> {
    pub(super) policy: &'a str,
    pub(super) best: bool,
    pub(super) reference: bool,
    /// After how many replicas it was left.
    pub(super) left_after: Option<u64>,
    pub(super) cells: Vec<Cell>,
}

pub(super) struct Cell {
    pub(super) text: String,
    /// The interval, set smaller beside it; empty where there is none.
    pub(super) range: String,
    /// What sorting compares.
    pub(super) value: f64,
    /// The column's least.
    pub(super) least: bool,
    /// Share of the column's greatest, in percent: the bar behind the figure.
    pub(super) share: f64,
}

/// What the replicas say of each policy.
pub(super) struct Main<'a> {
    pub(super) head: Vec<Head>,
    pub(super) groups: Vec<TableGroup<'a>>,
    /// A remark below: policies whose work was not done in the window.
    pub(super) over_own_time: Vec<&'a str>,
}

pub(super) fn main_table<'a>(c: &'a Comparison, groups: &[Group<'a>]) -> Main<'a> {
    let time = match c.judged.kind {
        TimeKind::Makespan => {
            Head { name: "Time", unit: "s", help: "From the release of the work to its end" }
        }
        TimeKind::Response => Head {
            name: "Waiting",
            unit: "s",
            help: "Noticed waiting: the sum of the longest responses, as many as are noticed under this or the reference policy",
        },
        TimeKind::Deadlines => Head { name: "Missed", unit: "%", help: "Share of deadlines missed" },
    };
    let mut head = vec![
        Head {
            name: "Energy",
            unit: "J",
            help: if c.goal == Goal::OwnEnergy {
                "Over each run’s own time; the median of the replicas"
            } else {
                "Over the window, the same for all that are done by its end; the median of the replicas"
            },
        },
        Head {
            name: "against reference",
            unit: "",
            help: "Energy over the reference policy’s of the same replica",
        },
        time,
    ];
    if c.judged.kind != TimeKind::Deadlines {
        head.push(Head {
            name: "against reference",
            unit: "",
            help: "Time over the reference policy’s of the same replica",
        });
    }
    if with_intervals(c) {
        head.push(Head {
            name: "Lowest energy in",
            unit: "",
            help: "Share of the replicas in which it has the lowest energy of all policies within the limit, be it by ever so little",
        });
        head.push(Head {
            name: "Within limit",
            unit: "",
            help: "Share of the replicas in which it is within the time limit; 95 % are asked for",
        });
    }
    let digits = |of: &dyn Fn(&PolicyResult) -> f64| decimals(c.results.iter().map(of)).min(4);
    let row = |r: &&'a PolicyResult| PolicyRow {
        policy: &r.policy,
        best: Standing::of(c, r) == Standing::Recommended,
        reference: r.policy == c.reference,
        left_after: r.raced_out_after,
        cells: cells(c, r, digits(&|r| say::energy_j(c, r).median), digits(&|r| r.uncertain.time.median)),
    };
    let groups = groups
        .iter()
        .map(|g| TableGroup {
            title: g.title.clone(),
            tied: g.standing == Standing::Tied,
            rows: g.policies.iter().map(row).collect(),
        })
        .collect();
    let over = c.results.iter().filter(|r| r.over_own_time).map(|r| r.policy.as_str()).collect();
    Main { head, groups, over_own_time: over }
}

fn cells(c: &Comparison, r: &PolicyResult, energy_digits: usize, time_digits: usize) -> Vec<Cell> {
    let u = &r.uncertain;
    let known = with_intervals(c);
    let own = say::energy_j(c, r);
    let most = c.results.iter().map(|r| say::energy_j(c, r).median).fold(0.0, f64::max);
    let ratio = |of: Interval| match r.policy == c.reference {
        true => plain("reference".to_owned(), 1.0),
        false => plain(change(of, known), of.median),
    };
    let mut energy = ranged(own, known, energy_digits);
    energy.share = share(own.median, most);
    let against = say::energy_ratio(c, r).map_or_else(|| plain("not comparable".to_owned(), f64::MAX), ratio);
    let mut cells = vec![energy, against];
    match c.judged.kind {
        TimeKind::Makespan => cells.extend([ranged(u.time, known, time_digits), ratio(u.time_ratio)]),
        TimeKind::Response => cells.extend([ranged(u.time, known, time_digits), ratio(u.time_ratio)]),
        TimeKind::Deadlines => {
            let percent = |x: f64| x * 100.0;
            let t = u.time;
            let t = Interval { median: percent(t.median), low: percent(t.low), high: percent(t.high) };
            cells.push(ranged(t, known, 2));
        }
    }
    if known {
        let whole = |x: f64| match x.is_finite() {
            true => plain(format!("{:.0}\u{a0}%", x * 100.0), x),
            false => plain(NONE.to_owned(), 0.0),
        };
        let best = if r.admissible { whole(r.best_share) } else { plain(NONE.to_owned(), -1.0) };
        cells.extend([best, whole(r.within_share)]);
    }
    cells
}

fn plain(text: String, value: f64) -> Cell {
    Cell { text, range: String::new(), value: sortable(value), least: false, share: 0.0 }
}

/// A median with its interval.
fn ranged(of: Interval, known: bool, digits: usize) -> Cell {
    let known = known && of.low.is_finite() && of.high.is_finite();
    let range = match known && of.low != of.high {
        true => format!("{} to {}", fixed(of.low, digits), fixed(of.high, digits)),
        false => String::new(),
    };
    Cell { range, ..plain(fixed(of.median, digits), of.median) }
}

/// Sorting wants a number; what is none goes last.
fn sortable(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::MAX }
}

struct Column {
    head: Head,
    value: fn(&PolicyResult) -> f64,
    /// Decimals where the column does not choose them by its greatest value.
    decimals: Option<usize>,
}

/// The nominal run's columns after the policy's name. A new one is one line here.
const COLUMNS: [Column; 11] = {
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
        column(
            "Window energy",
            "J",
            "Energy over the window, or over the run’s own time where that is longer",
            None,
            |r| r.window_energy_j,
        ),
        column("above idle", "J", "Of that, what is above the machine without any work", None, |r| {
            r.above_idle_j
        }),
        column("Energy", "J", "Energy over the run's own time", None, |r| r.energy_j),
        column("Elapsed", "s", "From the release of the work to its end", None, |r| r.elapsed_s),
        column("Slowdown", "×", "Elapsed time over the reference policy's", Some(3), |r| r.slowdown),
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

/// Every figure of the nominal run.
pub(super) struct Nominal<'a> {
    pub(super) head: Vec<Head>,
    pub(super) rows: Vec<PolicyRow<'a>>,
}

pub(super) fn nominal_table(c: &Comparison) -> Nominal<'_> {
    let columns: Vec<_> = COLUMNS
        .iter()
        .map(|col| {
            let values = || c.results.iter().map(col.value).filter(|v| v.is_finite());
            let digits = col.decimals.unwrap_or_else(|| decimals(values()));
            (col.value, digits, values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
        })
        .collect();
    let row = |r: &PolicyResult| -> Vec<Cell> {
        let cell = |&(value, digits, least, most): &(fn(&PolicyResult) -> f64, usize, f64, f64)| {
            let v = value(r);
            Cell { least: v == least && least < most, share: share(v, most), ..plain(fixed(v, digits), v) }
        };
        columns.iter().map(cell).collect()
    };
    let rows = c
        .results
        .iter()
        .map(|r| PolicyRow {
            policy: &r.policy,
            best: r.policy == c.answer.recommended,
            reference: r.policy == c.reference,
            left_after: None,
            cells: row(r),
        })
        .collect();
    Nominal { head: COLUMNS.iter().map(|col| col.head.clone()).collect(), rows }
}
