//! What a policy written in Python is shown and what it answers: the values of `wattwise_policy`, in its own units.

use crate::arguments::{self, whole};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use wattwise_policy::speed::Cadence as RustCadence;
use wattwise_policy::{
    CpuSample as RustCpu, DomainInfo, DomainIntent, Intent as RustIntent, Khz,
    Observation as RustObservation, Platform as RustPlatform, PowerSource, SampleScope,
};

/// When a policy wants to be asked.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Cadence(pub(crate) RustCadence);

#[pymethods]
impl Cadence {
    /// Once at the start, never again.
    #[staticmethod]
    fn once() -> Cadence {
        Cadence(RustCadence::Once)
    }
    /// By a process that sleeps in between: each poll wakes a CPU and is scheduled as a task.
    #[staticmethod]
    #[pyo3(signature = (period_ns, first_ns = None))]
    fn daemon(period_ns: &Bound<'_, PyAny>, first_ns: Option<Bound<'_, PyAny>>) -> PyResult<Cadence> {
        let (period_ns, first_ns) = period(period_ns, first_ns)?;
        Ok(Cadence(RustCadence::Daemon { first_ns, period_ns }))
    }
    /// By a timer of the kernel, which wakes a CPU.
    #[staticmethod]
    #[pyo3(signature = (period_ns, first_ns = None))]
    fn timer(period_ns: &Bound<'_, PyAny>, first_ns: Option<Bound<'_, PyAny>>) -> PyResult<Cadence> {
        let (period_ns, first_ns) = period(period_ns, first_ns)?;
        Ok(Cadence(RustCadence::KernelTimer { first_ns, period_ns }))
    }
    /// At every tick of every CPU that has one.
    #[staticmethod]
    fn tick() -> Cadence {
        Cadence(RustCadence::Tick)
    }
    /// From the scheduler's hook, with at least this time between two looks at a domain; 0: at every hook.
    #[staticmethod]
    #[pyo3(signature = (interval_ns = None), text_signature = "(interval_ns=0)")]
    fn scheduler(interval_ns: Option<Bound<'_, PyAny>>) -> PyResult<Cadence> {
        let interval_ns = interval_ns.map_or(Ok(0), |n| whole("interval_ns", &n))?;
        Ok(Cadence(RustCadence::Scheduler { interval_ns }))
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A period and the first time of it, in ns.
fn period(period_ns: &Bound<'_, PyAny>, first_ns: Option<Bound<'_, PyAny>>) -> PyResult<(u64, u64)> {
    let period_ns = whole("period_ns", period_ns)?.max(1);
    let first_ns = first_ns.map_or(Ok(period_ns), |n| whole("first_ns", &n))?;
    Ok((period_ns, first_ns))
}

/// CPUs that share one clock, and the speeds of that clock.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct Domain(DomainInfo);

#[pymethods]
impl Domain {
    #[getter]
    fn cpus(&self) -> Vec<u16> {
        self.0.cpus.clone()
    }
    /// Offered speeds in kHz, the highest first.
    #[getter]
    fn levels_khz(&self) -> Vec<u32> {
        self.0.levels.iter().map(|l| l.khz.0).collect()
    }
    /// What the driver states for one change of speed, in ns (0: unknown).
    #[getter]
    fn transition_ns(&self) -> u64 {
        self.0.transition_ns
    }
    /// Least time that a kernel governor leaves between two changes, in ns.
    #[getter]
    fn transition_delay_ns(&self) -> u64 {
        self.0.transition_delay_ns()
    }
    #[getter]
    fn base_khz(&self) -> u32 {
        self.0.base.0
    }
    /// The speed at which a busy CPU counts as fully loaded.
    #[getter]
    fn load_full_khz(&self) -> u32 {
        self.0.load_full.0
    }
    #[getter]
    fn fastest_khz(&self) -> u32 {
        self.0.fastest().0
    }
    #[getter]
    fn slowest_khz(&self) -> u32 {
        self.0.slowest().0
    }
    #[getter]
    fn capacity(&self) -> u16 {
        self.0.capacity
    }
    /// The slowest level that is at least `khz`; the highest where none is.
    fn at_least(&self, khz: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.0.at_least(arguments::khz("khz", khz, f64::ceil)?).0)
    }
    /// The fastest level that is at most `khz`; the lowest where none is.
    fn at_most(&self, khz: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.0.at_most(arguments::khz("khz", khz, f64::floor)?).0)
    }
    /// The level nearest to `khz`; of two equally near the faster.
    fn nearest(&self, khz: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.0.nearest(arguments::khz("khz", khz, f64::round)?).0)
    }
}

/// What a policy may know of a machine before it runs.
#[pyclass(frozen, get_all, module = "wattwise")]
pub(crate) struct Platform {
    domains: Py<PyTuple>,
    cpus: u16,
    tick_ns: u64,
    load_invariant: bool,
    boost: bool,
}

impl Platform {
    pub(crate) fn new(py: Python<'_>, p: &RustPlatform) -> PyResult<Platform> {
        let domains: Vec<Py<Domain>> =
            p.domains.iter().map(|d| Py::new(py, Domain(d.clone()))).collect::<PyResult<_>>()?;
        Ok(Platform {
            domains: PyTuple::new(py, domains)?.unbind(),
            cpus: p.cpus,
            tick_ns: p.tick_ns,
            load_invariant: p.load_invariant,
            boost: p.boost,
        })
    }
}

/// One CPU since it was last looked at.
#[pyclass(frozen, module = "wattwise")]
pub(crate) struct CpuSample(RustCpu);

#[pymethods]
impl CpuSample {
    #[getter]
    fn busy_ns(&self) -> u64 {
        self.0.busy_ns
    }
    #[getter]
    fn idle_ns(&self) -> u64 {
        self.0.idle_ns
    }
    #[getter]
    fn iowait_ns(&self) -> u64 {
        self.0.iowait_ns
    }
    #[getter]
    fn runnable(&self) -> u32 {
        self.0.runnable
    }
    #[getter]
    fn io_wake(&self) -> bool {
        self.0.io_wake
    }
    #[getter]
    fn tickless(&self) -> bool {
        self.0.tickless
    }
    #[getter]
    fn task_util(&self) -> u32 {
        self.0.task_util
    }
    #[getter]
    fn moved_util(&self) -> i32 {
        self.0.moved_util
    }
    /// Busy share of the sample, 0 to 1; 0 of an empty one.
    #[getter]
    fn load(&self) -> f64 {
        match self.0.total_ns() {
            0 => 0.0,
            total => self.0.busy_ns as f64 / total as f64,
        }
    }
}

/// A frequency domain as it stands.
#[pyclass(frozen, get_all, module = "wattwise")]
pub(crate) struct DomainSample {
    khz: u32,
    min_khz: u32,
    max_khz: u32,
}

/// What a policy sees.
#[pyclass(frozen, get_all, module = "wattwise")]
pub(crate) struct Observation {
    now_ns: u64,
    asks: bool,
    /// `"all"`, `"cpu"` or `"domain"`.
    scope: &'static str,
    /// Which CPU or domain; none of all.
    number: Option<u16>,
    cpus: Py<PyTuple>,
    domains: Py<PyTuple>,
    power: &'static str,
    temperature_c: Option<f64>,
}

pub(crate) fn observation(py: Python<'_>, o: &RustObservation<'_>) -> PyResult<Observation> {
    let cpus: Vec<Py<CpuSample>> =
        o.cpus.iter().map(|c| Py::new(py, CpuSample(*c))).collect::<PyResult<_>>()?;
    let domain = |d: &wattwise_policy::DomainSample| {
        Py::new(py, DomainSample { khz: d.khz.0, min_khz: d.min.0, max_khz: d.max.0 })
    };
    let domains: Vec<Py<DomainSample>> = o.domains.iter().map(domain).collect::<PyResult<_>>()?;
    let (scope, number) = match o.scope {
        SampleScope::All => ("all", None),
        SampleScope::Cpu(cpu) => ("cpu", Some(cpu)),
        SampleScope::Domain(domain) => ("domain", Some(domain)),
    };
    Ok(Observation {
        now_ns: o.now_ns,
        asks: o.asks,
        scope,
        number,
        cpus: PyTuple::new(py, cpus)?.unbind(),
        domains: PyTuple::new(py, domains)?.unbind(),
        power: match o.source {
            PowerSource::Unknown => "unknown",
            PowerSource::Mains => "mains",
            PowerSource::Battery => "battery",
        },
        temperature_c: o.temperature_mc.map(|mc| f64::from(mc) / 1e3),
    })
}

/// What is wanted, where one speed does not say it: limits too, and when to be asked again.
#[pyclass(frozen, get_all, module = "wattwise")]
pub(crate) struct Intent {
    khz: Option<Py<PyAny>>,
    min_khz: Option<Py<PyAny>>,
    max_khz: Option<Py<PyAny>>,
    next_ns: Option<u64>,
}

#[pymethods]
impl Intent {
    #[new]
    #[pyo3(signature = (khz = None, *, min_khz = None, max_khz = None, next_ns = None))]
    fn new(
        khz: Option<Py<PyAny>>,
        min_khz: Option<Py<PyAny>>,
        max_khz: Option<Py<PyAny>>,
        next_ns: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Intent> {
        let next_ns = next_ns.map(|n| whole("next_ns", &n)).transpose()?;
        Ok(Intent { khz, min_khz, max_khz, next_ns })
    }
}

/// Which speed of an intent.
type Field = fn(&mut DomainIntent) -> &mut Khz;

/// What an answer must be.
const EXPECTED: &str =
    "a speed in kHz (0 to 4294967295), a list with one for each frequency domain, a wattwise.Intent, or None";

/// Puts an answer into an intent. A single speed is for the domains that the observation is about.
pub(crate) fn apply(
    answer: &Bound<'_, PyAny>,
    obs: &RustObservation<'_>,
    domain_of_cpu: &[u16],
    out: &mut RustIntent,
) -> Result<(), String> {
    let about = match obs.scope {
        SampleScope::All => None,
        SampleScope::Domain(d) => Some(usize::from(d)),
        SampleScope::Cpu(cpu) => Some(domain_of_cpu.get(usize::from(cpu)).copied().map_or(0, usize::from)),
    };
    let domains = out.domains.len();
    let mut put = |value: &Bound<'_, PyAny>, at: Field| {
        for (d, khz) in speeds(value, domains, about)?.into_iter().enumerate() {
            if let Some(khz) = khz {
                *at(&mut out.domains[d]) = khz;
            }
        }
        Ok::<(), String>(())
    };
    let Ok(intent) = answer.cast::<Intent>() else { return put(answer, |d| &mut d.desired) };
    let (py, intent) = (answer.py(), intent.get());
    let parts: [(&Option<Py<PyAny>>, Field); 3] = [
        (&intent.khz, |d| &mut d.desired),
        (&intent.min_khz, |d| &mut d.min),
        (&intent.max_khz, |d| &mut d.max),
    ];
    for (value, at) in parts {
        if let Some(value) = value {
            put(value.bind(py), at)?;
        }
    }
    out.next_ns = intent.next_ns;
    Ok(())
}

/// A speed for each domain that has one.
fn speeds(
    value: &Bound<'_, PyAny>,
    domains: usize,
    about: Option<usize>,
) -> Result<Vec<Option<Khz>>, String> {
    // A list, a tuple, an array, a column: what has a length. Text has one too, and is no speed.
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    if let (false, Ok(length)) = (is_text, value.len()) {
        if length != domains {
            return Err(format!("{EXPECTED}; there are {domains} domains"));
        }
        let items = value.try_iter().and_then(|all| all.take(domains).collect::<PyResult<Vec<_>>>());
        let list = items.map_err(|_| EXPECTED.to_owned())?;
        if list.len() != domains {
            return Err(format!("{EXPECTED}; there are {domains} domains"));
        }
        return list.iter().map(|v| if v.is_none() { Ok(None) } else { speed(v).map(Some) }).collect();
    }
    if value.is_none() {
        return Ok(vec![None; domains]);
    }
    let khz = speed(value)?;
    Ok((0..domains).map(|d| about.is_none_or(|a| a == d).then_some(khz)).collect())
}

fn speed(value: &Bound<'_, PyAny>) -> Result<Khz, String> {
    arguments::khz("khz", value, f64::trunc).map_err(|_| EXPECTED.to_owned())
}
