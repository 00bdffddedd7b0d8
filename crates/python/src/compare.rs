//! The same work under several policies, asked from Python.

use crate::background::{self, Watched};
use crate::errors::error;
use crate::governed::{self, KeptClass};
use crate::inputs::{Machine, Workload, budget};
use crate::table::{Table, of_comparison};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::atomic::Ordering;
use wattwise_advice::compare::{CompareOptions, compare_from, search_best};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::{Goal, Rule};
use wattwise_figure::{nearest, on_screen_json};
use wattwise_policy::{PowerSource, System};
use wattwise_replay::apply;
use wattwise_replay::cases::Case;
use wattwise_replay::defaults::{self, default_policies};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::{PolicySpec, expand};

/// Each seed has so many numbers for its replicas; that of seed 0 are the program's.
const NUMBERS: u64 = 1 << 20;

/// The number of the first replica of a seed.
pub(crate) fn first(seed: u64) -> u64 {
    seed.wrapping_mul(NUMBERS).wrapping_add(1)
}

/// What is to be small, by the program's words.
pub(crate) fn goal(word: &str) -> PyResult<Goal> {
    let words =
        [("energy", Goal::Energy), ("own-energy", Goal::OwnEnergy), ("edp", Goal::Edp), ("time", Goal::Time)];
    words.iter().find(|(w, _)| *w == word).map(|(_, goal)| *goal).ok_or_else(|| {
        let near = nearest(word, words.iter().map(|(w, _)| *w));
        error(format!("goal '{word}': expected energy, own-energy, edp or time; did you mean '{near}'?"))
    })
}

fn source(word: &str) -> PyResult<PowerSource> {
    match word {
        "unknown" => Ok(PowerSource::Unknown),
        "mains" => Ok(PowerSource::Mains),
        "battery" => Ok(PowerSource::Battery),
        _ => Err(error(format!("power '{word}': expected unknown, mains or battery"))),
    }
}

/// The limit of time, as a share; none: any.
pub(crate) fn rule(goal_word: &str, max_slowdown: Option<f64>) -> PyResult<Rule> {
    let max_slowdown = max_slowdown.unwrap_or(f64::INFINITY);
    if max_slowdown.is_nan() || max_slowdown < 0.0 {
        return Err(error(format!("max_slowdown={max_slowdown}: expected a share such as 0.03, or 'any'")));
    }
    Ok(Rule { goal: goal(goal_word)?, max_slowdown })
}

/// A comparison that is done.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Compared {
    comparison: Comparison,
}

#[pymethods]
impl Compared {
    /// What `wattwise compare --json` prints, without the last line break.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.comparison).map(|text| on_screen_json(&text)).map_err(error)
    }

    /// One row a policy.
    fn table(&self) -> PyResult<Table> {
        of_comparison(&self.comparison)
    }
}

/// The policies that were asked for: texts, and classes.
fn policies(
    asked: &[Bound<'_, PyAny>],
    call_limit_s: f64,
    watched: &Watched,
) -> PyResult<(Vec<PolicySpec>, Vec<KeptClass>)> {
    let (mut specs, mut kept) = (Vec::new(), Vec::new());
    for one in asked {
        if let Ok(text) = one.extract::<String>() {
            specs.extend(expand(&text).map_err(error)?);
        } else if let Ok(class) = one.cast::<PyType>() {
            let (one, spec) = governed::keep(class, call_limit_s, &watched.stop)?;
            kept.push(one);
            specs.push(spec);
        } else {
            let shown = one.repr().map_or_else(|_| "?".to_owned(), |r| r.to_string());
            return Err(error(format!(
                "policy {shown}: expected text, or a class like wattwise.SpeedPolicy"
            )));
        }
    }
    for (i, spec) in specs.iter().enumerate() {
        if !kept.is_empty() && specs[..i].iter().any(|s| s.text == spec.text) {
            return Err(error(format!("{}: two policies have this name", spec.text)));
        }
    }
    Ok((specs, kept))
}

/// Compares; `machine` is not guessed here.
#[pyfunction]
#[pyo3(signature = (workload, machine, policies_asked, *, system, reference, goal, max_slowdown, replicas, seed, power,
    latency_limit_us, budget_text, call_limit_s, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
pub(crate) fn compare(
    py: Python<'_>,
    workload: &Workload,
    machine: &Machine,
    policies_asked: Vec<Bound<'_, PyAny>>,
    system: Option<&str>,
    reference: Option<&str>,
    goal: &str,
    max_slowdown: Option<f64>,
    replicas: u64,
    seed: u64,
    power: &str,
    latency_limit_us: Option<f64>,
    budget_text: &str,
    call_limit_s: f64,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Compared> {
    if replicas != 0 && !(8..=4096).contains(&replicas) {
        return Err(error(format!("--replicas {replicas}: expected 8 to 4096")));
    }
    let rule = rule(goal, max_slowdown)?;
    let latency_limit_ns = match latency_limit_us {
        None => u64::MAX,
        // What is beyond the numbers of ns is no limit.
        Some(us) if us >= 1e-3 => (us * 1e3) as u64,
        Some(us) => return Err(error(format!("latency_limit_us={us}: expected more than 0, or None"))),
    };
    let (source, budget) = (source(power)?, budget(budget_text)?);
    library::rankable(&workload.work).map_err(error)?;
    let watched = Watched::counting("runs");
    let (mut specs, kept) = policies(&policies_asked, call_limit_s, &watched)?;
    // As on the command line: the policies of every system are for looking at what there is.
    let searched = specs.is_empty() && system != Some("any");
    if specs.is_empty() {
        specs = usual(machine, system)?;
    }
    // A class would be run by one thread at a time anyhow: Python has one lock.
    let threads = (!kept.is_empty()).then_some(1);
    let (work, model) = (workload.work.clone(), machine.model.clone());
    let case_work = work.clone();
    let case = Case::new(&case_work, (*model).clone(), specs, reference).map_err(error)?;
    let (policies, held) = (case.policies, case.reference);
    // Of a reference that nobody named the system's own default is one as well.
    let standards: Vec<PolicySpec> =
        if reference.is_none() { defaults::standards(&model) } else { Vec::new() };
    let reference = held;
    let work = move |watched: &Watched| {
        let job = ReplayJob {
            machine: &model,
            workload: &work,
            policies: &policies,
            source,
            latency_limit_ns,
            detail: false,
            budget,
        };
        let apply = apply::on(&model);
        let done = |n: usize| watched.done.store(n as u64, Ordering::Relaxed);
        let options = CompareOptions {
            rule,
            replicas,
            reference: &reference,
            standards: &standards,
            apply: &apply,
            done: &done,
            stop: &watched.stop,
        };
        let runs =
            if searched { options.runs_of_search(policies.len()) } else { options.runs(policies.len()) };
        watched.of.store(runs as u64, Ordering::Relaxed);
        let compare = if searched { search_best } else { compare_from };
        let answer = || compare(&job, &options, first(seed)).map_err(|e| e.to_string());
        match threads {
            None => answer(),
            Some(n) => match rayon::ThreadPoolBuilder::new().num_threads(n).build() {
                Ok(pool) => pool.install(answer),
                Err(e) => Err(e.to_string()),
            },
        }
    };
    let result = background::run(py, &watched, &kept, progress.as_ref(), work)?;
    let (comparison, _) = result.map_err(error)?;
    Ok(Compared { comparison })
}

/// The policies of a system on this machine; without a word its own system's.
fn usual(machine: &Machine, system: Option<&str>) -> PyResult<Vec<PolicySpec>> {
    let system = match system {
        None => System::find(&machine.model.system),
        Some("any") => None,
        Some(word) => Some(
            System::find(word)
                .ok_or_else(|| error(format!("system '{word}': expected linux, freebsd, openbsd or any")))?,
        ),
    };
    Ok(default_policies(&machine.model, system))
}
