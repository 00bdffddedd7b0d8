//! The columns of a comparison, a row for each policy: CSV, Python's table, the report's table of the nominal run, and what the
//! terminal and Markdown show beside energy and time are made from this table. A new column is one entry.
//!
//! Energy and time of the first screen are not here: which figure they are, and what stands beside them, depends on what is
//! judged.

use crate::result::{Comparison, KindResponses, PolicyResult};
use crate::say::row_kind;
use serde::Serialize;

/// What a column holds for one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ColumnValue {
    /// A name or a word.
    Text(String),
    /// A figure in the column's unit.
    Number(f64),
    /// A number of things.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// Nothing, for this policy.
    Missing,
}

impl ColumnValue {
    /// As a number.
    pub fn number(&self) -> f64 {
        match self {
            ColumnValue::Number(x) => *x,
            ColumnValue::Count(n) => *n as f64,
            _ => f64::NAN,
        }
    }
}

impl From<Option<f64>> for ColumnValue {
    fn from(x: Option<f64>) -> ColumnValue {
        x.map_or(ColumnValue::Missing, ColumnValue::Number)
    }
}

/// A heading on a page.
#[derive(Clone, Copy, Debug)]
pub struct PageHead {
    /// In a word or two.
    pub name: &'static str,
    /// The unit of the figures; empty for none.
    pub unit: &'static str,
    /// Shown when hovering over the heading.
    pub help: &'static str,
    /// Decimals where the column does not choose them by its greatest value.
    pub decimals: Option<usize>,
}

/// In what a figure is shown on a screen: joules and seconds with the prefix that suits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownAs {
    /// Joules.
    Joules,
    /// Seconds, from microseconds.
    Micros,
    /// As it is, with so many decimals.
    Plain(usize),
}

/// A heading on a screen, in a word or two.
#[derive(Clone, Copy, Debug)]
pub struct ScreenHead {
    /// In a word or two.
    pub name: &'static str,
    /// How the figure is shown.
    pub shown: ShownAs,
    /// Whether Markdown has it too.
    pub in_markdown: bool,
}

/// A column, and where it is shown.
pub struct Column {
    /// Its name in CSV, with the unit at its end.
    pub csv: Option<&'static str>,
    /// Its name in Python's table.
    pub python: Option<&'static str>,
    /// Its heading in the report's table of the nominal run.
    pub page: Option<PageHead>,
    /// Its heading in a wide terminal's table.
    pub screen: Option<ScreenHead>,
    /// Its value for a policy.
    pub value: fn(&Comparison, &PolicyResult) -> ColumnValue,
}

const fn column(value: fn(&Comparison, &PolicyResult) -> ColumnValue) -> Column {
    Column { csv: None, python: None, page: None, screen: None, value }
}

impl Column {
    const fn csv(self, name: &'static str) -> Column {
        Column { csv: Some(name), ..self }
    }

    const fn python(self, name: &'static str) -> Column {
        Column { python: Some(name), ..self }
    }

    const fn page(self, name: &'static str, unit: &'static str, help: &'static str) -> Column {
        Column { page: Some(PageHead { name, unit, help, decimals: None }), ..self }
    }

    /// As `page`, always with so many decimals.
    const fn page_fixed(
        self,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        decimals: usize,
    ) -> Column {
        Column { page: Some(PageHead { name, unit, help, decimals: Some(decimals) }), ..self }
    }

    const fn screen(self, name: &'static str, shown: ShownAs) -> Column {
        Column { screen: Some(ScreenHead { name, shown, in_markdown: false }), ..self }
    }
}

fn kind_s(c: &Comparison, r: &PolicyResult, of: fn(&KindResponses) -> Option<f64>) -> ColumnValue {
    row_kind(c, r).and_then(of).into()
}

/// Every column, in the order of CSV.
pub static COLUMNS: &[Column] = &[
    column(|c, _| ColumnValue::Text(c.workload.name.clone())).csv("workload"),
    column(|c, _| ColumnValue::Text(c.machine.clone())).csv("machine"),
    column(|_, r| ColumnValue::Text(r.policy.clone())).csv("policy").python("policy"),
    column(|c, _| ColumnValue::Text(c.reference.clone())).csv("reference"),
    column(|c, r| ColumnValue::Flag(r.policy == c.answer.recommended)).csv("is_recommended"),
    column(|_, r| ColumnValue::Flag(r.tied)).csv("is_tied").python("tied"),
    column(|_, r| ColumnValue::Flag(r.admissible)).csv("is_admissible").python("admissible"),
    column(|c, _| ColumnValue::Text(c.judged.kind.word().to_owned())).csv("judged_by"),
    column(|c, _| ColumnValue::Count(c.replicas)).csv("replicas"),
    column(|c, _| ColumnValue::Number(c.window_s)).csv("window_s"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_j.median)).csv("window_energy_median_j"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_j.low)).csv("window_energy_low_j"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_j.high)).csv("window_energy_high_j"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_ratio.median))
        .csv("energy_ratio_median")
        .python("energy_ratio"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_ratio.low))
        .csv("energy_ratio_low")
        .python("energy_ratio_low"),
    column(|_, r| ColumnValue::Number(r.uncertain.energy_ratio.high))
        .csv("energy_ratio_high")
        .python("energy_ratio_high"),
    column(|_, r| ColumnValue::Number(r.uncertain.time_ratio.median))
        .csv("time_ratio_median")
        .python("time_ratio"),
    column(|_, r| ColumnValue::Number(r.uncertain.time_ratio.low))
        .csv("time_ratio_low")
        .python("time_ratio_low"),
    column(|_, r| ColumnValue::Number(r.uncertain.time_ratio.high))
        .csv("time_ratio_high")
        .python("time_ratio_high"),
    column(|_, r| ColumnValue::Number(r.best_share)).csv("best_share").python("best_share"),
    column(|_, r| ColumnValue::Number(r.within_share)).csv("within_share").python("within_share"),
    column(|_, r| ColumnValue::Number(r.elapsed_s)).csv("elapsed_s").python("elapsed_s").page(
        "Elapsed",
        "s",
        "From the release of the work to its end",
    ),
    column(|_, r| ColumnValue::Number(r.energy_j)).csv("energy_j").python("energy_j").page(
        "Energy",
        "J",
        "Energy over the run's own time",
    ),
    column(|_, r| ColumnValue::Number(r.window_energy_j)).python("window_energy_j").page(
        "Window energy",
        "J",
        "Energy over the window, or over the run’s own time where that is longer",
    ),
    column(|_, r| ColumnValue::Number(r.above_idle_j))
        .csv("above_idle_j")
        .python("above_idle_j")
        .page("above idle", "J", "Of that, what is above the machine without any work")
        .screen("above idle", ShownAs::Joules),
    column(|_, r| ColumnValue::Number(r.mean_w)).csv("mean_w").python("mean_w").page(
        "Mean power",
        "W",
        "Over the run's own time",
    ),
    column(|_, r| ColumnValue::Number(r.edp_js)).csv("edp_js").python("edp_js").page(
        "EDP",
        "J·s",
        "Energy times delay, over the run's own time",
    ),
    column(|_, r| ColumnValue::Number(r.slowdown)).python("slowdown").page_fixed(
        "Slowdown",
        "×",
        "Elapsed time over the reference policy's",
        3,
    ),
    column(|c, r| row_kind(c, r).map_or(ColumnValue::Missing, |k| ColumnValue::Text(k.kind.clone())))
        .csv("response_kind"),
    column(|c, r| kind_s(c, r, |k| k.p50_s)).csv("response_p50_s"),
    column(|c, r| kind_s(c, r, |k| k.p95_s)).csv("response_p95_s"),
    column(|_, r| r.responses.as_ref().map(|r| r.waiting_s).into()).csv("waiting_s"),
    column(|_, r| r.responses.as_ref().map(|r| r.reference_waiting_s).into()).csv("reference_waiting_s"),
    column(|_, r| match r.responses.as_ref().filter(|r| r.judged) {
        Some(responses) => ColumnValue::Flag(responses.slower),
        None => ColumnValue::Missing,
    })
    .csv("responses_slower"),
    column(|_, r| ColumnValue::Number(r.missed)).csv("missed_share").python("missed"),
    column(|_, r| ColumnValue::Number(r.wake_latency_us.p50))
        .csv("wake_latency_p50_us")
        .python("wake_p50_us")
        .page("Wake p50", "µs", "From runnable to running, median"),
    column(|_, r| ColumnValue::Number(r.wake_latency_us.p99))
        .csv("wake_latency_p99_us")
        .python("wake_p99_us")
        .page("Wake p99", "µs", "From runnable to running, 99th percentile")
        .screen("p99 wake-up", ShownAs::Micros),
    column(|_, r| ColumnValue::Number(r.wake_latency_us.max)).python("wake_max_us").page(
        "Wake max",
        "µs",
        "From runnable to running, greatest",
    ),
    column(|_, r| ColumnValue::Flag(r.over_own_time)).python("over_own_time"),
    column(|_, r| ColumnValue::Count(r.transitions)).csv("transitions").python("transitions").page_fixed(
        "Speed changes",
        "",
        "Transitions carried out, over all domains",
        0,
    ),
    column(|_, r| r.approximation.clone().map_or(ColumnValue::Missing, ColumnValue::Text))
        .csv("approximation"),
];

/// Python's table begins with these, and the report's with those: in the order of their first version. New columns follow.
const PYTHON_FIRST: &[&str] = &[
    "policy",
    "elapsed_s",
    "energy_j",
    "window_energy_j",
    "above_idle_j",
    "mean_w",
    "edp_js",
    "slowdown",
    "missed",
    "wake_p50_us",
    "wake_p99_us",
    "wake_max_us",
    "energy_ratio",
    "energy_ratio_low",
    "energy_ratio_high",
    "time_ratio",
    "time_ratio_low",
    "time_ratio_high",
    "within_share",
    "best_share",
    "admissible",
    "tied",
    "over_own_time",
    "transitions",
];
const PAGE_FIRST: &[&str] = &[
    "Window energy",
    "above idle",
    "Energy",
    "Elapsed",
    "Slowdown",
    "Mean power",
    "EDP",
    "Wake p50",
    "Wake p99",
    "Wake max",
    "Speed changes",
];

/// The columns that have a name in one form, those of `first` in its order before the others.
fn ordered<T: Copy>(
    first: &[&str],
    head: fn(&Column) -> Option<T>,
    name: fn(T) -> &'static str,
) -> Vec<(T, &'static Column)> {
    let mut all: Vec<(T, &Column)> = COLUMNS.iter().filter_map(|c| Some((head(c)?, c))).collect();
    all.sort_by_key(|(head, _)| first.iter().position(|f| *f == name(*head)).unwrap_or(first.len()));
    all
}

/// CSV's columns with their names.
pub fn of_csv() -> Vec<(&'static str, &'static Column)> {
    ordered(&[], |c| c.csv, |name| name)
}

/// The columns of Python's table with their names.
pub fn of_python() -> Vec<(&'static str, &'static Column)> {
    ordered(PYTHON_FIRST, |c| c.python, |name| name)
}

/// The columns of the report's table of the nominal run with their headings.
pub fn of_page() -> Vec<(PageHead, &'static Column)> {
    ordered(PAGE_FIRST, |c| c.page, |head| head.name)
}

/// The columns beside energy and time on a screen with their headings.
pub fn of_screen() -> Vec<(ScreenHead, &'static Column)> {
    ordered(&[], |c| c.screen, |head| head.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name used twice would hide a column from those who read it by name.
    #[test]
    fn every_name_stands_once_and_no_order_names_what_is_not_there() {
        let once = |names: Vec<&str>| {
            let twice = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n));
            assert_eq!(twice, None);
        };
        once(of_csv().iter().map(|c| c.0).collect());
        once(of_python().iter().map(|c| c.0).collect());
        once(of_page().iter().map(|c| c.0.name).collect());
        let begins = |names: Vec<&str>, first: &[&str]| assert_eq!(names[..first.len()], *first);
        begins(of_python().iter().map(|c| c.0).collect(), PYTHON_FIRST);
        begins(of_page().iter().map(|c| c.0.name).collect(), PAGE_FIRST);
    }
}
