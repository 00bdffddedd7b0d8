//! What there is: machines, workloads, policies and their parameters.

use crate::errors::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wattwise_model::machine::builtin;
use wattwise_policy::{Param, ParamKind, cores, dram, essay, idle, speed};
use wattwise_replay::library;
use wattwise_replay::spec::{self, placements};

/// Name, kind and summary of each bundled machine.
#[pyfunction]
pub(crate) fn machine_list() -> PyResult<Vec<(String, String, String)>> {
    let entry = |name: &str, kind: &str| {
        let machine = library::machine(name).map_err(error)?;
        Ok((name.to_owned(), kind.to_owned(), machine.summary))
    };
    let models = builtin::written().map(|name| entry(name, "model"));
    models.chain(builtin::measured().map(|name| entry(name, "measured"))).collect()
}

/// Name, kind and summary of each bundled workload.
#[pyfunction]
pub(crate) fn workload_list() -> Vec<(String, String, String)> {
    let kind = |w: &library::Bundled| match (w.recorded, w.development) {
        (true, true) => "recorded, used in development",
        (true, false) => "recorded",
        (false, _) => "generated",
    };
    library::workloads().into_iter().map(|w| (w.name.to_owned(), kind(&w).to_owned(), w.summary)).collect()
}

/// Every policy, placements among them.
#[pyfunction]
pub(crate) fn policy_list(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let item =
        |kind: &str, name: &str, summary: &str, follows: &str, source: &'static str, params: &[Param]| {
            let out = PyDict::new(py);
            out.set_item("name", name)?;
            out.set_item("kind", kind)?;
            out.set_item("summary", summary)?;
            out.set_item("follows", follows)?;
            out.set_item("text", essay(source).collect::<Vec<_>>().join("\n"))?;
            let params: Vec<Bound<'_, PyDict>> =
                params.iter().map(|p| param(py, p)).collect::<PyResult<_>>()?;
            out.set_item("params", params)?;
            Ok(out)
        };
    let speeds = speed::ALL.iter().map(|p| item("speed", p.name, p.summary, p.follows, p.source, p.params));
    let idles = idle::ALL.iter().map(|p| item("idle", p.name, p.summary, p.follows, p.source, p.params));
    let kept = cores::ALL.iter().map(|p| item("cores", p.name, p.summary, p.follows, p.source, p.params));
    let memory = dram::ALL
        .iter()
        .map(|p| item("dram", &format!("dram={}", p.name), p.summary, p.follows, dram::SOURCE, p.params));
    let placed = placements().map(|p| item("placement", p.word, p.help, "", "", &[]));
    speeds.chain(idles).chain(kept).chain(memory).chain(placed).collect()
}

fn param<'py>(py: Python<'py>, p: &Param) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", p.name)?;
    out.set_item("help", p.help)?;
    out.set_item("expected", p.kind.expected())?;
    match p.kind {
        ParamKind::Number { unit, min, max, default } => {
            out.set_item("unit", unit)?;
            out.set_item("range", (min, max))?;
            out.set_item("default", default)?;
        }
        ParamKind::Choice(words) => {
            out.set_item("words", words.to_vec())?;
            out.set_item("default", words.first().copied().unwrap_or_default())?;
        }
        ParamKind::Scale { default, .. } => out.set_item("default", p.kind.show(f64::from(default)))?,
    }
    Ok(out)
}

/// Every policy that a text stands for, scans spread out, each as it can be given again.
#[pyfunction]
pub(crate) fn expand(text: &str) -> PyResult<Vec<String>> {
    Ok(spec::expand(text).map_err(error)?.into_iter().map(|p| p.text).collect())
}
