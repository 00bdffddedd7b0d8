//! A sweep: all workloads on all machines under all policies in all draws. A case is its index, and the index alone says
//! which: `((pair * draws) + draw) * policies + policy`, where the pairs of workload and machine follow one another. So nobody
//! has to make a list of 10^9 cases, or to send one.
//!
//! What a case comes to depends on the case alone (`advice::each`), so blocks may be run in any order, anywhere, twice.

use crate::background::{self, Watched};
use crate::compare::{first, rule};
use crate::errors::error;
use crate::inputs::{Machine, Workload, budget};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wattwise_advice::each::{DrawFigures, Each, ReplicaDraw};
use wattwise_advice::rule::Rule;
use wattwise_advice::time::TimeKind;
use wattwise_figure::{Budget, one_line};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload as Work;
use wattwise_policy::{PowerSource, System};
use wattwise_replay::cases::Case;
use wattwise_replay::defaults::default_policies;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::library;
use wattwise_replay::spec::{PolicySpec, expand};

/// How often a waiting thread looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// A workload on a machine.
struct WorkPair {
    work: Arc<Work>,
    machine: Arc<MachineModel>,
    policies: Vec<PolicySpec>,
    reference: PolicySpec,
    /// Numbers of workload, machine and policies in the plan's lists of names.
    names: (i32, i32, Vec<i32>),
    /// Index of its first case.
    first: u64,
    /// What is judged as time, once it was found.
    kind: OnceLock<TimeKind>,
}

/// Everything that a sweep is made of.
struct Cases {
    pairs: Vec<WorkPair>,
    draws: u64,
    /// Number of the first draw.
    first_draw: u64,
    rule: Rule,
    budget: Budget,
    workloads: Arc<StringArray>,
    machines: Arc<StringArray>,
    policies: Arc<StringArray>,
}

/// One case's row; the figures are the reference policy's and its own, or why there are none.
struct CaseRow {
    case: u64,
    pair: usize,
    draw: u32,
    policy: usize,
    result: Result<(DrawFigures, DrawFigures), String>,
}

/// Names, each once, by number.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    number: HashMap<String, i32>,
}

impl Names {
    fn of(&mut self, name: &str) -> i32 {
        if let Some(number) = self.number.get(name) {
            return *number;
        }
        let number = self.all.len() as i32;
        self.all.push(name.to_owned());
        self.number.insert(name.to_owned(), number);
        number
    }

    fn array(self) -> Arc<StringArray> {
        Arc::new(StringArray::from(self.all))
    }
}

impl Cases {
    /// All cases.
    fn count(&self) -> u64 {
        self.pairs.last().map_or(0, |p| p.first + self.of(p))
    }

    /// A pair's cases.
    fn of(&self, pair: &WorkPair) -> u64 {
        self.draws * pair.policies.len() as u64
    }

    /// Runs the cases of a range, on this thread.
    fn run(&self, range: Range<u64>, watched: &Watched) -> Vec<CaseRow> {
        let mut rows = Vec::with_capacity((range.end - range.start) as usize);
        for (number, pair) in self.pairs.iter().enumerate() {
            let from = range.start.max(pair.first);
            let to = range.end.min(pair.first + self.of(pair));
            if from < to {
                self.run_pair(number, from - pair.first..to - pair.first, watched, &mut rows);
            }
        }
        rows
    }

    /// Cases of one pair, counted within it.
    fn run_pair(&self, number: usize, range: Range<u64>, watched: &Watched, rows: &mut Vec<CaseRow>) {
        let pair = &self.pairs[number];
        let policies = pair.policies.len() as u64;
        let job = ReplayJob {
            machine: &pair.machine,
            workload: &pair.work,
            policies: &[],
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: self.budget,
        };
        let each = guarded(|| {
            let each = Each::new(&job, self.rule, &pair.reference, pair.kind.get().copied());
            each.map_err(|e| e.to_string())
        });
        if let Ok(each) = &each {
            _ = pair.kind.set(each.kind());
        }
        for draw in range.start / policies..range.end.div_ceil(policies) {
            let cases = (draw * policies).max(range.start)..((draw + 1) * policies).min(range.end);
            let drawn: Result<ReplicaDraw, String> = match &each {
                Ok(each) => guarded(|| each.draw(self.first_draw + draw).map_err(|e| e.to_string())),
                Err(e) => Err(e.clone()),
            };
            for case in cases {
                if watched.stop.load(Ordering::Relaxed) {
                    return;
                }
                let policy = (case % policies) as usize;
                let result = match (&each, &drawn) {
                    (Ok(each), Ok(drawn)) => guarded(|| {
                        let own = each.run(drawn, &pair.policies[policy]).map_err(|e| e.to_string())?;
                        Ok((*drawn.reference(), own))
                    }),
                    (Err(e), _) | (_, Err(e)) => Err(e.clone()),
                };
                rows.push(CaseRow {
                    case: pair.first + case,
                    pair: number,
                    draw: draw as u32,
                    policy,
                    result,
                });
                watched.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Rows as the bytes of an Arrow file.
    fn file(&self, rows: &[CaseRow]) -> Result<Vec<u8>, String> {
        let batch = self.batch(rows).map_err(|e| e.to_string())?;
        let write = || {
            let mut writer = FileWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(&batch)?;
            writer.into_inner()
        };
        write().map_err(|e| e.to_string())
    }

    fn batch(&self, rows: &[CaseRow]) -> Result<RecordBatch, ArrowError> {
        let named =
            |of: &dyn Fn(&CaseRow) -> i32, names: &Arc<StringArray>| -> Result<ArrayRef, ArrowError> {
                let keys = Int32Array::from_iter_values(rows.iter().map(of));
                Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names.clone())?) as ArrayRef)
            };
        let figures = |name: &'static str,
                       of: &dyn Fn(&DrawFigures, &DrawFigures) -> f64|
         -> (&'static str, ArrayRef) {
            let value = |r: &CaseRow| r.result.as_ref().ok().map(|(reference, own)| of(reference, own));
            (name, Arc::new(rows.iter().map(value).collect::<Float64Array>()))
        };
        let own = |name: &'static str, of: fn(&DrawFigures) -> f64| figures(name, &|_, own| of(own));
        let names = |r: &CaseRow| &self.pairs[r.pair].names;
        let transitions = |r: &CaseRow| r.result.as_ref().ok().map(|(_, own)| own.transitions);
        let errors: StringArray = rows.iter().map(|r| r.result.as_ref().err().map(String::as_str)).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("case", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.case)))),
            ("workload", named(&|r| names(r).0, &self.workloads)?),
            ("machine", named(&|r| names(r).1, &self.machines)?),
            ("policy", named(&|r| names(r).2[r.policy], &self.policies)?),
            ("draw", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.draw)))),
            own("elapsed_s", |f| f.elapsed_s),
            own("energy_j", |f| f.energy_j),
            own("window_energy_j", |f| f.window_energy_j),
            own("time", |f| f.time),
            own("wake_p99_s", |f| f.wake_p99_s),
            figures("energy_ratio", &|reference, own| ratio(own.window_energy_j, reference.window_energy_j)),
            figures("elapsed_ratio", &|reference, own| ratio(own.elapsed_s, reference.elapsed_s)),
            ("transitions", Arc::new(rows.iter().map(transitions).collect::<UInt64Array>())),
            ("error", Arc::new(errors)),
        ];
        // A column may have values or not whatever these rows have: all blocks have one shape.
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
    }
}

fn ratio(own: f64, reference: f64) -> f64 {
    if reference > 0.0 { own / reference } else { 1.0 }
}

/// A case that fails is one line, and so is one by which the engine itself fails: a sweep goes on.
fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| one_line(&e)),
        Err(_) => Err("the engine failed; please report it".to_owned()),
    }
}

/// A sweep's cases, by index.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Plan {
    cases: Arc<Cases>,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (workloads, machines, policies, *, reference, goal, max_slowdown, replicas, seed, budget_text))]
    #[expect(clippy::too_many_arguments, reason = "Python names each")]
    fn new(
        workloads: Vec<PyRef<'_, Workload>>,
        machines: Vec<PyRef<'_, Machine>>,
        policies: Vec<String>,
        reference: Option<&str>,
        goal: &str,
        max_slowdown: Option<f64>,
        replicas: u64,
        seed: u64,
        budget_text: &str,
    ) -> PyResult<Plan> {
        if workloads.is_empty() {
            return Err(error("sweep: no workload; expected one or more"));
        }
        if !(1..=u64::from(u32::MAX)).contains(&replicas) {
            return Err(error(format!("replicas={replicas}: expected 1 to {}", u32::MAX)));
        }
        let mut named = Vec::new();
        for text in &policies {
            named.extend(expand(text).map_err(error)?);
        }
        let (mut work_names, mut machine_names, mut policy_names) =
            (Names::default(), Names::default(), Names::default());
        let mut pairs = Vec::new();
        let mut first_case: u64 = 0;
        for workload in &workloads {
            library::rankable(&workload.work).map_err(error)?;
            let mut models: Vec<Arc<MachineModel>> = machines.iter().map(|m| m.model.clone()).collect();
            if models.is_empty() {
                models.push(Arc::new(library::machine_for(&workload.work).map_err(error)?));
            }
            for machine in models {
                let policies = match named.is_empty() {
                    true => default_policies(&machine, System::find(&machine.system)),
                    false => named.clone(),
                };
                let case =
                    Case::new(&workload.work, (*machine).clone(), policies, reference).map_err(error)?;
                let of = case.policies.iter().map(|p| policy_names.of(&p.text)).collect();
                let names = (work_names.of(&workload.work.name), machine_names.of(&machine.name), of);
                let (policies, reference) = (case.policies, case.reference);
                let all =
                    (policies.len() as u64).checked_mul(replicas).and_then(|n| n.checked_add(first_case));
                let work = workload.work.clone();
                pairs.push(WorkPair {
                    work,
                    machine,
                    policies,
                    reference,
                    names,
                    first: first_case,
                    kind: OnceLock::new(),
                });
                first_case = all.ok_or_else(|| error("sweep: more cases than can be counted"))?;
            }
        }
        let cases = Cases {
            pairs,
            draws: replicas,
            first_draw: first(seed),
            rule: rule(goal, max_slowdown)?,
            budget: budget(budget_text)?,
            workloads: work_names.array(),
            machines: machine_names.array(),
            policies: policy_names.array(),
        };
        Ok(Plan { cases: Arc::new(cases) })
    }

    fn __len__(&self) -> usize {
        self.cases.count() as usize
    }

    /// First case and number of cases of each pair of workload and machine, and how many policies it has.
    fn pairs(&self) -> Vec<(u64, u64, usize)> {
        self.cases.pairs.iter().map(|p| (p.first, self.cases.of(p), p.policies.len())).collect()
    }

    /// Policies of the whole sweep, as they can be given again.
    #[getter]
    fn policies(&self) -> Vec<String> {
        self.cases.policies.iter().flatten().map(str::to_owned).collect()
    }

    /// The cases of a block on one thread, as the bytes of an Arrow file.
    fn run<'py>(&self, py: Python<'py>, from: u64, to: u64) -> PyResult<Bound<'py, PyBytes>> {
        let (range, cases) = (self.range(from, to)?, self.cases.clone());
        let work = move |watched: &Watched| cases.file(&cases.run(range, watched));
        let bytes = background::run(py, &Arc::default(), &[], None, work)?.map_err(error)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Starts blocks on so many threads of this computer.
    fn start(&self, blocks: Vec<(u64, u64)>, threads: usize) -> PyResult<Running> {
        for (from, to) in &blocks {
            self.range(*from, *to)?;
        }
        if threads == 0 {
            return Err(error("threads=0: expected 1 or more"));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(error)?;
        // Whoever writes the results may be slower than who makes them: no more than this is kept.
        let (send, receive) = sync_channel(2 * threads);
        let (cases, watched) = (self.cases.clone(), Arc::new(Watched::default()));
        let own = watched.clone();
        let work = move || {
            pool.install(|| {
                blocks.into_iter().enumerate().par_bridge().for_each(|(number, (from, to))| {
                    if own.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let rows = cases.run(from..to, &own);
                    let bytes = cases.file(&rows);
                    // Nobody may wait any more.
                    if !own.stop.load(Ordering::Relaxed) && send.send((number, bytes)).is_err() {
                        own.stop.store(true, Ordering::Relaxed);
                    }
                });
            });
        };
        std::thread::Builder::new().name("wattwise-sweep".into()).spawn(work).map_err(error)?;
        Ok(Running { receive: Mutex::new(Some(receive)), watched })
    }
}

impl Plan {
    fn range(&self, from: u64, to: u64) -> PyResult<Range<u64>> {
        match from <= to && to <= self.cases.count() {
            true => Ok(from..to),
            false => {
                Err(error(format!("cases {from} to {to}: expected some of 0 to {}", self.cases.count())))
            }
        }
    }
}

/// A block that is done: its number, and its file's bytes.
type Done = (usize, Result<Vec<u8>, String>);

/// Blocks that are run on this computer.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Running {
    receive: Mutex<Option<Receiver<Done>>>,
    watched: Arc<Watched>,
}

#[pymethods]
impl Running {
    /// Number and bytes of a block that is done, or the number of cases that are done by now; none at the end.
    #[expect(clippy::type_complexity, reason = "what Python gets")]
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<(Option<(usize, Bound<'py, PyBytes>)>, u64)>> {
        let taken = self.receive.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(receive) = taken else { return Ok(None) };
        let (receive, got) = py.detach(move || {
            let got = receive.recv_timeout(LOOK);
            (receive, got)
        });
        let done = || self.watched.done.load(Ordering::Relaxed);
        let next = match got {
            Ok((number, bytes)) => Some((Some((number, PyBytes::new(py, &bytes.map_err(error)?))), done())),
            Err(RecvTimeoutError::Timeout) => Some((None, done())),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        };
        *self.receive.lock().unwrap_or_else(PoisonError::into_inner) = Some(receive);
        py.check_signals()?;
        Ok(next)
    }

    /// Stops; unfinished blocks are discarded.
    fn stop(&self) {
        self.watched.stop.store(true, Ordering::Relaxed);
        self.receive.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
