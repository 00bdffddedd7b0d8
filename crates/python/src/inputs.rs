//! Machines and workloads: what a comparison or a sweep is made of.

use crate::background::alone;
use crate::errors::error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;
use wattwise_figure::{Budget, one_line};
use wattwise_model::machine::{MachineModel, builtin};
use wattwise_model::workload::{self as work, Workload as Work};
use wattwise_replay::library;
use wattwise_trace::{ImportOptions, Source};

/// A machine model.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Machine {
    pub(crate) model: Arc<MachineModel>,
    /// The model's file.
    text: String,
}

#[pymethods]
impl Machine {
    /// A bundled model by its name, or a model's file.
    #[staticmethod]
    fn find(given: &str) -> PyResult<Machine> {
        let text = library::machine_text(given).map_err(error)?;
        Machine::parse(&text, given)
    }

    /// A model from its file's text; `given` is for errors.
    #[staticmethod]
    fn parse(text: &str, given: &str) -> PyResult<Machine> {
        let model = library::parsed(text, given).map_err(error)?;
        Ok(Machine { model: Arc::new(model), text: text.to_owned() })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.model.name
    }

    #[getter]
    fn summary(&self) -> &str {
        &self.model.summary
    }

    /// Logical CPUs.
    #[getter]
    fn cpus(&self) -> usize {
        self.model.cpus.len()
    }

    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Speeds of each kind of core, in kHz, the highest first.
    #[getter]
    fn levels_khz(&self) -> Vec<Vec<u32>> {
        self.model.kinds.iter().map(|k| k.levels.iter().map(|l| l.khz).collect()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<wattwise.Machine {}: {} CPUs>", one_line(&self.model.name), self.model.cpus.len())
    }
}

/// Where a workload came from, so that another computer can have the same.
enum WorkloadOrigin {
    Bundled(String),
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

/// A workload: a recording or a generated one.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Workload {
    pub(crate) work: Arc<Work>,
    origin: WorkloadOrigin,
    /// Its name or file as it was given.
    pub(crate) given: String,
    asked: Asked,
}

/// How it was to be read: foreground, only that, clock in kHz, memory-bound share, budget.
type Asked = (Vec<String>, bool, Option<u32>, Option<f64>, String);

/// Whether a name is that of a workload file, and not of a recording.
fn is_file_of_text(name: &str) -> bool {
    name.ends_with(".toml")
}

#[pymethods]
impl Workload {
    /// A bundled workload by its name, or a file.
    #[staticmethod]
    #[pyo3(signature = (given, foreground, only_foreground, recorded_khz, memory_bound, budget))]
    fn find(
        py: Python<'_>,
        given: String,
        foreground: Vec<String>,
        only_foreground: bool,
        recorded_khz: Option<u32>,
        memory_bound: Option<f64>,
        budget: &str,
    ) -> PyResult<Workload> {
        let asked = (foreground, only_foreground, recorded_khz, memory_bound, budget.to_owned());
        let options = options(&asked)?;
        let name = given.clone();
        let work = alone(py, move || library::workload(&name, &options))?.map_err(error)?;
        let bundled = library::workloads().iter().any(|b| b.name == given);
        let origin = if bundled {
            WorkloadOrigin::Bundled(given.clone())
        } else {
            WorkloadOrigin::File(given.clone().into())
        };
        Ok(Workload { work: Arc::new(work), origin, given, asked })
    }

    /// A workload from a file's bytes; `name` is for results and errors.
    #[staticmethod]
    #[pyo3(signature = (name, data, foreground, only_foreground, recorded_khz, memory_bound, budget))]
    #[expect(clippy::too_many_arguments, reason = "Python names each")]
    fn from_bytes(
        py: Python<'_>,
        name: String,
        data: &[u8],
        foreground: Vec<String>,
        only_foreground: bool,
        recorded_khz: Option<u32>,
        memory_bound: Option<f64>,
        budget: &str,
    ) -> PyResult<Workload> {
        let asked = (foreground, only_foreground, recorded_khz, memory_bound, budget.to_owned());
        let options = options(&asked)?;
        let data: Arc<[u8]> = data.into();
        let work = if is_file_of_text(&name) {
            let text = String::from_utf8_lossy(&data);
            work::file::parse(&text, &name).map_err(error)?
        } else if name.ends_with(".json")
            && let Some(work) =
                std::str::from_utf8(&data).ok().and_then(|text| work::rtapp::parse(text, &name))
        {
            work.map_err(error)?
        } else {
            let source = Source::Bytes { name: name.clone(), data: data.clone() };
            alone(py, move || wattwise_trace::import(source, &options))?.map_err(error)?
        };
        Ok(Workload { work: Arc::new(work), origin: WorkloadOrigin::Bytes(data), given: name, asked })
    }

    /// The same work under another name, with where it comes from in words.
    fn renamed(&self, name: String, source: String) -> PyResult<Workload> {
        let origin = match &self.origin {
            WorkloadOrigin::Bundled(name) => WorkloadOrigin::Bundled(name.clone()),
            WorkloadOrigin::File(path) => WorkloadOrigin::Bytes(read(path)?.into()),
            WorkloadOrigin::Bytes(data) => WorkloadOrigin::Bytes(data.clone()),
        };
        let work = Arc::new(Work { name, source, ..(*self.work).clone() });
        Ok(Workload { work, origin, given: self.given.clone(), asked: self.asked.clone() })
    }

    /// The name under which every wattwise of this version has it, where it is bundled.
    #[getter]
    fn bundled(&self) -> Option<&str> {
        match &self.origin {
            WorkloadOrigin::Bundled(name) => Some(name),
            _ => None,
        }
    }

    /// Its name or file as it was given.
    #[getter]
    fn given(&self) -> &str {
        &self.given
    }

    /// How it was to be read: the other arguments of `find`.
    #[getter]
    fn asked(&self) -> Asked {
        self.asked.clone()
    }

    /// The file's bytes; none of a bundled one.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(match &self.origin {
            WorkloadOrigin::Bundled(_) => None,
            WorkloadOrigin::File(path) => Some(PyBytes::new(py, &read(path)?)),
            WorkloadOrigin::Bytes(data) => Some(PyBytes::new(py, data)),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.work.name
    }

    /// Where it comes from, in words.
    #[getter]
    fn source(&self) -> &str {
        &self.work.source
    }

    /// CPUs of the machine it was recorded on; 0 for generated work.
    #[getter]
    fn cpus(&self) -> u16 {
        self.work.recorded.as_ref().map_or(0, |r| r.cpus)
    }

    /// Its recorded or generated length, in s.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.work.span_ns as f64 * 1e-9
    }

    /// Trace events; 0 for generated work.
    #[getter]
    fn events(&self) -> u64 {
        self.work.recorded.as_ref().map_or(0, |r| r.events)
    }

    #[getter]
    fn tasks(&self) -> usize {
        self.work.tasks.len()
    }

    /// What could not be used or had to be assumed, a sentence each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.work.recorded.as_ref().map_or_else(Vec::new, |r| r.warnings.clone())
    }

    fn __repr__(&self) -> String {
        format!("<wattwise.Workload {}: {:.3} s>", one_line(&self.work.name), self.duration_s())
    }
}

fn read(path: &PathBuf) -> PyResult<Vec<u8>> {
    std::fs::read(path).map_err(|e| error(format!("{}: {e}; expected a readable file", path.display())))
}

/// What a budget says, in the program's words.
pub(crate) fn budget(text: &str) -> PyResult<Budget> {
    if text.is_empty() {
        return Ok(Budget::default());
    }
    text.parse().map_err(|e| error(format!("--budget {e}")))
}

fn options((foreground, only_foreground, khz, memory_share, budget_text): &Asked) -> PyResult<ImportOptions> {
    if khz.is_some_and(|khz| !(1_000..=100_000_000).contains(&khz)) {
        return Err(error("--recorded-khz: expected a clock in kHz, 1000 to 100000000"));
    }
    if memory_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err(error("--memory-bound: expected a share from 0 to 1"));
    }
    Ok(ImportOptions {
        khz: *khz,
        memory_share: *memory_share,
        foreground: foreground.clone(),
        only_foreground: *only_foreground,
        budget: budget(budget_text)?,
        ..ImportOptions::default()
    })
}

/// The machine for a workload when none is named.
#[pyfunction]
pub(crate) fn default_machine(workload: &Workload) -> PyResult<Machine> {
    let model = library::machine_for(&workload.work).map_err(error)?;
    let text = builtin::text(&model.name).unwrap_or_default().to_owned();
    Ok(Machine { model: Arc::new(model), text })
}
