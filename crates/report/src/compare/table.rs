//! The tables of policies: what the replicas say, in groups, and the figures of the nominal run.

use super::bars::share;
use super::groups::{GroupStanding, PolicyGroup, change, time_not_judged, with_intervals};
use wattwise_advice::columns::{self, PageHead};
use wattwise_advice::result::{Comparison, Interval, PolicyResult};
use wattwise_advice::rule::Goal;
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_page::number::{NONE, decimals, fixed};

/// A column's heading.
pub(super) struct ColumnHead {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// Shown when hovering over the heading.
    pub(super) help: &'static str,
    /// What stands before the figure where there is no room for columns.
    pub(super) beside: String,
    /// Of a change against the reference: of what; empty for what is no change.
    pub(super) of: &'static str,
}

impl ColumnHead {
    fn new(name: &'static str, unit: &'static str, help: &'static str) -> ColumnHead {
        let beside = if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
        ColumnHead { name, unit, help, beside, of: "" }
    }

    /// A change of what is called so.
    fn change(of: &'static str, help: &'static str) -> ColumnHead {
        let new = ColumnHead::new("against reference", "", help);
        ColumnHead { beside: format!("{of} against reference"), of, ..new }
    }
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
    pub(super) cells: Vec<TableCell>,
}

pub(super) struct TableCell {
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
    pub(super) head: Vec<ColumnHead>,
    pub(super) groups: Vec<TableGroup<'a>>,
    /// A remark below: policies whose work was not done in the window.
    pub(super) over_own_time: Vec<&'a str>,
}

pub(super) fn main_table<'a>(c: &'a Comparison, groups: &[PolicyGroup<'a>]) -> Main<'a> {
    let (time, time_words) = match c.judged.kind {
        TimeKind::Makespan => {
            (ColumnHead::new("Time", "s", "From the release of the work to its end"), "Time")
        }
        TimeKind::Response => {
            let help = "Noticed waiting: the sum of the longest responses, as many as are noticed under this or the reference policy";
            (ColumnHead::new("Waiting", "s", help), "Waiting")
        }
        TimeKind::Deadlines => (ColumnHead::new("Missed", "%", "Share of deadlines missed"), "Missed"),
    };
    let energy = match c.goal {
        Goal::OwnEnergy => "Over each run’s own time; the median of the replicas",
        _ => "Over the window, the same for all that are done by its end; the median of the replicas",
    };
    let mut head = vec![
        ColumnHead::new("Energy", "J", energy),
        ColumnHead::change("Energy", "Energy over the reference policy’s of the same replica"),
        time,
    ];
    if c.judged.kind != TimeKind::Deadlines {
        head.push(ColumnHead::change(time_words, "Time over the reference policy’s of the same replica"));
    }
    if with_intervals(c) {
        head.push(ColumnHead::new(
            "Lowest energy in",
            "share of replicas",
            "Share of the replicas in which it has the lowest energy of all policies within the limit, be it by ever so little",
        ));
        head.push(match c.judged.kind {
            // Not called "within the limit": a policy may be within it and slower in some replicas.
            TimeKind::Response => ColumnHead::new(
                "No response slower in",
                "share of replicas",
                "Share of the replicas in which, seen by itself, no kind of response is slower than the limit allows, be it by ever so \
                 little. The limit is not decided by this share: it is decided over all replicas together, against what chance does",
            ),
            _ => ColumnHead::new(
                "Within limit in",
                "share of replicas",
                "Share of the replicas in which it is within the time limit; 95 % are asked for",
            ),
        });
    }
    let digits = |of: &dyn Fn(&PolicyResult) -> f64| decimals(c.results.iter().map(of)).min(4);
    let row = |r: &&'a PolicyResult| PolicyRow {
        policy: &r.policy,
        best: GroupStanding::of(c, r) == GroupStanding::Recommended,
        reference: r.policy == c.reference,
        left_after: r.raced_out_after,
        cells: cells(c, r, digits(&|r| say::energy_j(c, r).median), digits(&|r| r.uncertain.time.median)),
    };
    let groups = groups
        .iter()
        .map(|g| TableGroup {
            title: g.title.clone(),
            tied: g.standing == GroupStanding::Tied,
            rows: g.policies.iter().map(row).collect(),
        })
        .collect();
    let over =
        c.results.iter().filter(|r| say::energy_ratio(c, r).is_none()).map(|r| r.policy.as_str()).collect();
    Main { head, groups, over_own_time: over }
}

fn cells(c: &Comparison, r: &PolicyResult, energy_digits: usize, time_digits: usize) -> Vec<TableCell> {
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
        let best = if r.admissible && !time_not_judged(c, r) {
            whole(r.best_share)
        } else {
            plain(NONE.to_owned(), -1.0)
        };
        let within =
            if time_not_judged(c, r) { plain("not judged".to_owned(), -1.0) } else { whole(r.within_share) };
        cells.extend([best, within]);
    }
    cells
}

fn plain(text: String, value: f64) -> TableCell {
    TableCell { text, range: String::new(), value: sortable(value), least: false, share: 0.0 }
}

/// A median with its interval.
fn ranged(of: Interval, known: bool, digits: usize) -> TableCell {
    let known = known && of.low.is_finite() && of.high.is_finite();
    let range = match known && of.low != of.high {
        true => format!("{} to {}", fixed(of.low, digits), fixed(of.high, digits)),
        false => String::new(),
    };
    TableCell { range, ..plain(fixed(of.median, digits), of.median) }
}

/// Sorting wants a number; what is none goes last.
fn sortable(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::MAX }
}

/// Every figure of the nominal run.
pub(super) struct Nominal<'a> {
    pub(super) head: Vec<ColumnHead>,
    pub(super) rows: Vec<PolicyRow<'a>>,
}

/// A column's figures, a policy each.
struct ColumnFigures {
    values: Vec<f64>,
    digits: usize,
    least: f64,
    most: f64,
}

impl ColumnFigures {
    fn cell(&self, at: usize) -> TableCell {
        let v = self.values[at];
        let least = v == self.least && self.least < self.most;
        TableCell { least, share: share(v, self.most), ..plain(fixed(v, self.digits), v) }
    }
}

pub(super) fn nominal_table(c: &Comparison) -> Nominal<'_> {
    let shown = columns::of_page();
    let figures: Vec<ColumnFigures> = shown
        .iter()
        .map(|(head, column)| {
            let values: Vec<f64> = c.results.iter().map(|r| (column.value)(c, r).number()).collect();
            let finite = || values.iter().copied().filter(|v| v.is_finite());
            ColumnFigures {
                digits: head.decimals.unwrap_or_else(|| decimals(finite())),
                least: finite().fold(f64::INFINITY, f64::min),
                most: finite().fold(0.0, f64::max),
                values,
            }
        })
        .collect();
    let row = |at: usize| figures.iter().map(|column| column.cell(at)).collect();
    let rows = c
        .results
        .iter()
        .enumerate()
        .map(|(at, r)| PolicyRow {
            policy: &r.policy,
            best: r.policy == c.answer.recommended,
            reference: r.policy == c.reference,
            left_after: None,
            cells: row(at),
        })
        .collect();
    let head = |head: &PageHead| ColumnHead::new(head.name, head.unit, head.help);
    Nominal { head: shown.iter().map(|(h, _)| head(h)).collect(), rows }
}
