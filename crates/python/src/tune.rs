//! A policy's settings searched, asked from Python: as `wattwise tune` does it.

use crate::background::{self, Watched};
use crate::compare::rule;
use crate::errors::error;
use crate::inputs::{Machine, Workload, budget};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wattwise_figure::on_screen_json;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload;
use wattwise_policy::PowerSource;
use wattwise_replay::apply;
use wattwise_replay::cases::Case;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_tune::conduct::{Hooks, SearchProgress, Spend, USUAL_TRIALS};
use wattwise_tune::field::FieldLimits;
use wattwise_tune::gain::LEAST_REPLICAS;
use wattwise_tune::log::{KnownTrials, Log};
use wattwise_tune::search::Method;
use wattwise_tune::space::Space;
use wattwise_tune::split::sides;
use wattwise_tune::tune::{TuneInput, Tuning};

/// Searches; `tests` of the workloads, the last ones, are kept for the test, or half of them where it is 0. The result is what
/// `wattwise tune --json` prints.
#[pyfunction]
#[pyo3(signature = (workloads, tests, machines, space, *, trials, time_s, reference, goal, max_slowdown, max_p99, replicas, seed,
    budget_text, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
pub(crate) fn tune(
    py: Python<'_>,
    workloads: Vec<PyRef<'_, Workload>>,
    tests: usize,
    machines: Vec<PyRef<'_, Machine>>,
    space: &str,
    trials: Option<u64>,
    time_s: Option<f64>,
    reference: Option<&str>,
    goal: &str,
    max_slowdown: Option<f64>,
    max_p99: Option<f64>,
    replicas: u64,
    seed: u64,
    budget_text: &str,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    if !(LEAST_REPLICAS..=4096).contains(&replicas) {
        return Err(error(format!("--replicas {replicas}: expected {LEAST_REPLICAS} to 4096")));
    }
    let limits = limits(goal, max_slowdown, max_p99)?;
    let spend = spend(trials, time_s)?;
    let budget = budget(budget_text)?;
    let works: Vec<_> = workloads.iter().map(|w| w.work.clone()).collect();
    let named: Vec<(&str, &workload::Workload)> =
        workloads.iter().map(|w| (w.given.as_str(), &*w.work)).collect();
    let test = sides(&named, tests, seed).map_err(error)?;
    let cases = cases(&works, &machines, reference)?;
    let space = Space::parse(space, &cases[0].2).map_err(error)?;
    let watched = Watched::counting("trials");
    watched.of.store(trials.unwrap_or(USUAL_TRIALS), Ordering::Relaxed);
    let work = move |watched: &Watched| {
        let jobs: Vec<ReplayJob<'_>> = cases
            .iter()
            .map(|(number, machine, _)| ReplayJob {
                machine,
                workload: &works[*number],
                policies: &[],
                source: PowerSource::Unknown,
                latency_limit_ns: u64::MAX,
                detail: false,
                budget,
            })
            .collect();
        let inputs: Vec<TuneInput<'_>> = cases
            .iter()
            .zip(&jobs)
            .map(|((recording, _, reference), job)| TuneInput { job, reference, recording: *recording })
            .collect();
        let apply = apply::on(&cases[0].1);
        let tuning = Tuning {
            inputs: &inputs,
            test: &test,
            space: &space,
            limits,
            replicas,
            seed,
            apply: &apply,
            method: Method::Evolution,
            spend,
        };
        let tell = |p: &SearchProgress| watched.done.store(p.trials, Ordering::Relaxed);
        let hooks = Hooks { tell: &tell, warn: &|_| {}, stop: &watched.stop };
        let result = wattwise_tune::tune::tune(&tuning, &hooks, (&mut Log::none(), &KnownTrials::default()));
        let result = result.map_err(|e| e.to_string())?;
        serde_json::to_string_pretty(&result).map_err(|e| e.to_string())
    };
    let json = background::run(py, &watched, &[], progress.as_ref(), work)?;
    json.map(|text| on_screen_json(&text)).map_err(error)
}

fn limits(goal: &str, max_slowdown: Option<f64>, max_p99: Option<f64>) -> PyResult<FieldLimits> {
    let rule = rule(goal, max_slowdown)?;
    let max_p99 = max_p99.unwrap_or(f64::INFINITY);
    if max_p99.is_nan() || max_p99 < 0.0 {
        return Err(error(format!("max_p99={max_p99}: expected a share such as 0.5, or 'any'")));
    }
    Ok(FieldLimits { rule, max_p99 })
}

fn spend(trials: Option<u64>, time_s: Option<f64>) -> PyResult<Spend> {
    let time = match time_s {
        Some(s) if s > 0.0 && s < 1e9 => Some(Duration::from_secs_f64(s)),
        Some(s) => return Err(error(format!("time_s={s}: expected seconds, more than 0"))),
        None => None,
    };
    if trials == Some(0) {
        return Err(error("trials=0: expected 1 or more, or None"));
    }
    Ok(Spend { trials, time })
}

/// Each recording by its number, on each machine or on the one that it was made on, with the reference policy there.
fn cases(
    works: &[Arc<workload::Workload>],
    machines: &[PyRef<'_, Machine>],
    reference: Option<&str>,
) -> PyResult<Vec<(usize, MachineModel, PolicySpec)>> {
    let mut cases = Vec::new();
    for (number, work) in works.iter().enumerate() {
        library::rankable(work).map_err(error)?;
        let mut models: Vec<_> = machines.iter().map(|m| (*m.model).clone()).collect();
        if models.is_empty() {
            models.push(library::machine_for(work).map_err(error)?);
        }
        for model in models {
            let case = Case::new(work, model, Vec::new(), reference).map_err(error)?;
            cases.push((number, case.machine, case.reference));
        }
    }
    Ok(cases)
}
