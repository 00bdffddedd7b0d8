//! Policies written in Python, inside the engine.
//!
//! A class becomes a [`Speed`] whose one setting is the number under which the class is kept here; `build` makes an instance for
//! each run, and each decision of the engine becomes a call. A class that raises, answers nonsense or does not return is
//! called no more: what went wrong is kept, the comparison is stopped, and the run ends without opinions.
//!
//! A call may take [`Class::limit`]. Whoever waits for the comparison looks every now and then ([`Class::watch`]); a call that
//! takes longer has an exception set in its thread, as Ctrl-C has. Python sees it between two of its own instructions, so
//! a call that hangs in C cannot be ended: such a thread is left behind, and the comparison ends without it.

pub(crate) mod values;

use crate::errors::{Error, error};
use pyo3::exceptions::PyTimeoutError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use values::{Cadence as PyCadence, Platform as PyPlatform, apply, observation};
use wattwise_policy::speed::{self, Cadence};
use wattwise_policy::{Intent, MS, Observation, Param, ParamKind, Platform, Settings, Speed, SpeedPolicy};
use wattwise_replay::spec::PolicySpec;

/// The setting that says which class.
const SLOT: &str = "slot";
static PARAMS: &[Param] = &[Param {
    name: SLOT,
    help: "which class of this program",
    kind: ParamKind::Number { unit: "", min: 0.0, max: 9e15, default: 0.0 },
}];
/// After a call's limit and so much more it is left behind.
const PATIENCE: Duration = Duration::from_secs(2);
/// Beyond this a call's limit is no limit; more is no [`Duration`].
const LONGEST_S: f64 = 1e6;

/// The classes of comparisons that are under way.
static CLASSES: Mutex<BTreeMap<u64, Arc<Class>>> = Mutex::new(BTreeMap::new());
/// The item of each name: one is made for each name in a program's life.
static ITEMS: Mutex<BTreeMap<String, &'static Speed>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that is under way.
struct Call {
    method: &'static str,
    since: Instant,
    thread: std::ffi::c_ulong,
    /// An exception has been set in its thread.
    interrupted: bool,
}

/// A class of Python that is a policy.
pub(crate) struct Class {
    class: Py<PyType>,
    name: String,
    limit: Duration,
    call: Mutex<Option<Call>>,
    failure: Mutex<Option<PyErr>>,
    failed: AtomicBool,
    stop: Arc<AtomicBool>,
}

/// A class's place among those that run; given up when dropped.
pub(crate) struct KeptClass {
    slot: u64,
    pub(crate) class: Arc<Class>,
}

impl Drop for KeptClass {
    fn drop(&mut self) {
        locked(&CLASSES).remove(&self.slot);
    }
}

/// Makes a class a policy of a comparison that `stop` ends.
pub(crate) fn keep(
    class: &Bound<'_, PyType>,
    call_limit_s: f64,
    stop: &Arc<AtomicBool>,
) -> PyResult<(KeptClass, PolicySpec)> {
    let name: String = match class.getattr_opt("name")? {
        Some(name) => {
            name.extract().map_err(|_| error(format!("policies: {class}: its 'name' is no text")))?
        }
        None => class.name()?.extract()?,
    };
    if name.is_empty() || speed::find(&name).is_some() {
        return Err(error(format!(
            "policies: {name}: a policy of wattwise has this name; expected another as the class's 'name'"
        )));
    }
    for method in ["cadence", "start", "observe"] {
        if !class.hasattr(method)? {
            return Err(error(format!(
                "policies: {name}: has no method '{method}'; expected a class like wattwise.SpeedPolicy"
            )));
        }
    }
    if call_limit_s.is_nan() || call_limit_s <= 0.0 {
        return Err(error(format!("call_limit_s={call_limit_s}: expected seconds, more than 0")));
    }
    let slot = NEXT.fetch_add(1, Ordering::Relaxed);
    let kept = Class {
        class: class.clone().unbind(),
        name: name.clone(),
        limit: Duration::from_secs_f64(call_limit_s.min(LONGEST_S)),
        call: Mutex::new(None),
        failure: Mutex::new(None),
        failed: AtomicBool::new(false),
        stop: stop.clone(),
    };
    let kept = KeptClass { slot, class: Arc::new(kept) };
    locked(&CLASSES).insert(slot, kept.class.clone());
    let speed = item(&name);
    let mut speed_settings = Settings::defaults(speed.params);
    speed_settings.set(speed.params, SLOT, &slot.to_string()).map_err(error)?;
    let spec = PolicySpec { speed_settings, text: name, ..PolicySpec::alone(speed) };
    Ok((kept, spec))
}

fn item(name: &str) -> &'static Speed {
    let mut items = locked(&ITEMS);
    if let Some(item) = items.get(name) {
        return item;
    }
    let item: &'static Speed = Box::leak(Box::new(Speed {
        name: String::leak(name.to_owned()),
        summary: "a policy written in Python",
        follows: "this program",
        source: "",
        params: PARAMS,
        build,
    }));
    items.insert(name.to_owned(), item);
    item
}

/// An instance for one run.
fn build(platform: &Platform, settings: &Settings) -> Box<dyn SpeedPolicy> {
    let class = locked(&CLASSES).get(&settings.count(SLOT)).cloned();
    let made = class.and_then(|class| {
        let domain_of_cpu = platform.domain_of_cpu();
        let build = |py: Python<'_>| {
            let object = class.class.bind(py).call1((PyPlatform::new(py, platform)?,))?;
            let cadence: PyRef<'_, PyCadence> = object
                .call_method0("cadence")?
                .extract()
                .map_err(|_| error(format!("{}: cadence returned no wattwise.Cadence", class.name)))?;
            let cost_ns: u64 = match object.getattr_opt("cost_ns")? {
                Some(cost) => cost
                    .extract()
                    .map_err(|_| error(format!("{}: cost_ns is no whole number of ns", class.name)))?,
                None => 0,
            };
            let cadence = cadence.0;
            Ok((cadence, cost_ns, object.unbind()))
        };
        let (cadence, cost_ns, object) = class.call("__init__", build)?;
        Some(Governed { class, object, cadence, cost_ns, domain_of_cpu })
    });
    match made {
        Some(governed) => Box::new(governed),
        None => Box::new(Silent),
    }
}

/// What takes the place of a policy that failed: no opinion.
struct Silent;

impl SpeedPolicy for Silent {
    fn cadence(&self) -> Cadence {
        Cadence::Once
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, _: &mut Intent) {}
    fn observe(&mut self, _: &Observation<'_>, _: &mut Intent) {}
}

/// An instance that runs.
struct Governed {
    class: Arc<Class>,
    object: Py<PyAny>,
    cadence: Cadence,
    cost_ns: u64,
    domain_of_cpu: Vec<u16>,
}

impl Governed {
    fn ask(&mut self, method: &'static str, obs: &Observation<'_>, out: &mut Intent) {
        let class = &self.class;
        class.call(method, |py| {
            let answer = self.object.bind(py).call_method1(method, (observation(py, obs)?,))?;
            apply(&answer, obs, &self.domain_of_cpu, out).map_err(|expected| {
                let shown = answer.repr().map_or_else(|_| "?".to_owned(), |r| r.to_string());
                error(format!("{}: {method} returned {shown}; expected {expected}", class.name))
            })
        });
    }
}

impl SpeedPolicy for Governed {
    fn cadence(&self) -> Cadence {
        self.cadence
    }
    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.ask("start", obs, out);
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.ask("observe", obs, out);
        // A failed policy is asked no more than once a second, or the rest of the run would be spent on asking.
        if self.class.failed.load(Ordering::Relaxed) {
            out.next_ns = Some(1000 * MS);
        }
    }
}

impl Class {
    /// One call, within the limit; none once a call has failed.
    fn call<T>(&self, method: &'static str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        Python::try_attach(|py| {
            // SAFETY: the thread is attached, and so has an identity.
            let thread = unsafe { ffi::PyThread_get_thread_ident() };
            *locked(&self.call) = Some(Call { method, since: Instant::now(), thread, interrupted: false });
            let result = call(py);
            let interrupted = locked(&self.call).take().is_some_and(|c| c.interrupted);
            if interrupted {
                // SAFETY: the thread is attached, and the identity is its own; a null pointer takes back what is pending.
                unsafe { ffi::PyThreadState_SetAsyncExc(thread as _, std::ptr::null_mut()) };
            }
            let problem = match (result, interrupted) {
                (Ok(value), false) => return Some(value),
                (_, true) => self.late(method),
                (Err(e), false) => self.raised(py, method, e),
            };
            locked(&self.failure).get_or_insert(problem);
            self.failed.store(true, Ordering::Relaxed);
            self.stop.store(true, Ordering::Relaxed);
            None
        })
        .flatten()
    }

    fn late(&self, method: &str) -> PyErr {
        let limit = self.limit.as_secs_f64();
        error(format!(
            "{}: {method} had not returned after {limit} s, the limit of a call (call_limit_s)",
            self.name
        ))
    }

    /// A policy's exception, named with the policy; our own line as it is.
    fn raised(&self, py: Python<'_>, method: &str, e: PyErr) -> PyErr {
        if e.is_instance_of::<Error>(py) {
            return e;
        }
        let line = error(format!("{}: {method} raised {e}", self.name));
        line.set_cause(py, Some(e));
        line
    }

    /// What went wrong in it.
    pub(crate) fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        locked(&self.failure).as_ref().map(|e| e.clone_ref(py))
    }

    /// Interrupts a call that takes too long; the error, where even that does not help.
    pub(crate) fn watch(&self, py: Python<'_>) -> Option<PyErr> {
        let mut call = locked(&self.call);
        let call = call.as_mut()?;
        let taken = call.since.elapsed();
        if taken < self.limit {
            return None;
        }
        if taken > self.limit + PATIENCE {
            self.failed.store(true, Ordering::Relaxed);
            return Some(self.late(call.method));
        }
        // Again and again: a policy may catch it.
        call.interrupted = true;
        let exception = py.get_type::<PyTimeoutError>();
        // SAFETY: this thread is attached, and the exception a class that is alive.
        unsafe { ffi::PyThreadState_SetAsyncExc(call.thread as _, exception.as_ptr()) };
        None
    }
}
