//! Comparisons as CSV (RFC 4180): a row for each policy of each comparison, units in the names.
//!
//! Names come from strangers' files, and a spreadsheet calculates a cell that begins with `=`. So texts are cells by
//! `csv_cell`, which puts `'` before such a beginning; numbers stay numbers, negative ones too.

use crate::exit::Failure;
use serde::Serialize;
use wattwise_advice::result::{Comparison, PolicyResult};
use wattwise_advice::say::row_kind;
use wattwise_figure::csv_cell;

/// A row; figures that are not numbers are empty.
#[derive(Serialize)]
struct Row {
    workload: String,
    machine: String,
    policy: String,
    reference: String,
    is_recommended: bool,
    is_tied: bool,
    is_admissible: bool,
    /// `makespan`, `response` or `deadlines`.
    judged_by: String,
    replicas: u64,
    window_s: Option<f64>,
    window_energy_median_j: Option<f64>,
    window_energy_low_j: Option<f64>,
    window_energy_high_j: Option<f64>,
    energy_ratio_median: Option<f64>,
    energy_ratio_low: Option<f64>,
    energy_ratio_high: Option<f64>,
    time_ratio_median: Option<f64>,
    time_ratio_low: Option<f64>,
    time_ratio_high: Option<f64>,
    best_share: Option<f64>,
    within_share: Option<f64>,
    elapsed_s: Option<f64>,
    energy_j: Option<f64>,
    above_idle_j: Option<f64>,
    mean_w: Option<f64>,
    edp_js: Option<f64>,
    response_kind: Option<String>,
    response_p50_s: Option<f64>,
    response_p95_s: Option<f64>,
    waiting_s: Option<f64>,
    reference_waiting_s: Option<f64>,
    responses_slower: Option<bool>,
    missed_share: Option<f64>,
    wake_latency_p50_us: Option<f64>,
    wake_latency_p99_us: Option<f64>,
    transitions: u64,
    approximation: Option<String>,
}

fn row(c: &Comparison, r: &PolicyResult) -> Row {
    let number = |x: f64| Some(x).filter(|x| x.is_finite());
    let u = &r.uncertain;
    let kind = row_kind(c, r);
    Row {
        workload: csv_cell(&c.workload.name),
        machine: csv_cell(&c.machine),
        policy: csv_cell(&r.policy),
        reference: csv_cell(&c.reference),
        is_recommended: r.policy == c.answer.recommended,
        is_tied: r.tied,
        is_admissible: r.admissible,
        judged_by: format!("{:?}", c.judged.kind).to_lowercase(),
        replicas: c.replicas,
        window_s: number(c.window_s),
        window_energy_median_j: number(u.energy_j.median),
        window_energy_low_j: number(u.energy_j.low),
        window_energy_high_j: number(u.energy_j.high),
        energy_ratio_median: number(u.energy_ratio.median),
        energy_ratio_low: number(u.energy_ratio.low),
        energy_ratio_high: number(u.energy_ratio.high),
        time_ratio_median: number(u.time_ratio.median),
        time_ratio_low: number(u.time_ratio.low),
        time_ratio_high: number(u.time_ratio.high),
        best_share: number(r.best_share),
        within_share: number(r.within_share),
        elapsed_s: number(r.elapsed_s),
        energy_j: number(r.energy_j),
        above_idle_j: number(r.above_idle_j),
        mean_w: number(r.mean_w),
        edp_js: number(r.edp_js),
        response_kind: kind.map(|k| csv_cell(&k.kind)),
        response_p50_s: kind.and_then(|k| k.p50_s),
        response_p95_s: kind.and_then(|k| k.p95_s),
        waiting_s: r.responses.as_ref().map(|r| r.waiting_s),
        reference_waiting_s: r.responses.as_ref().map(|r| r.reference_waiting_s),
        responses_slower: r.responses.as_ref().filter(|r| r.judged).map(|r| r.slower),
        missed_share: number(r.missed),
        wake_latency_p50_us: number(r.wake_latency_us.p50),
        wake_latency_p99_us: number(r.wake_latency_us.p99),
        transitions: r.transitions,
        approximation: r.approximation.as_deref().map(csv_cell),
    }
}

/// The rows of comparisons, under a header.
pub(crate) fn comparisons(all: &[Comparison]) -> Result<String, Failure> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for c in all {
        for r in &c.results {
            writer.serialize(row(c, r)).map_err(Failure::work)?;
        }
    }
    let bytes = writer.into_inner().map_err(|e| Failure::work(e.error()))?;
    String::from_utf8(bytes).map_err(Failure::work)
}
