//! The engine on its own thread. The thread that asked waits without Python's lock, and wakes now and then: to see whether
//! Ctrl-C was pressed, to tell how far the work has come, and to look after policies that are written in Python.

use crate::errors::error;
use crate::governed::KeptClass;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often the waiting thread looks up.
const LOOK: Duration = Duration::from_millis(50);

/// How far some work has come, and whether anybody still wants it.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) done: AtomicU64,
    pub(crate) of: AtomicU64,
    /// What is counted, in words.
    pub(crate) unit: &'static str,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Watched {
    /// Nothing done so far, counted in these.
    pub(crate) fn counting(unit: &'static str) -> Arc<Watched> {
        Arc::new(Watched { unit, ..Watched::default() })
    }

    /// Ends the work for an exception; Ctrl-C then says how far it had come.
    fn end(&self, py: Python<'_>, e: PyErr) -> PyErr {
        self.stop.store(true, Ordering::Relaxed);
        let (done, of) = (self.done.load(Ordering::Relaxed), self.of.load(Ordering::Relaxed));
        match of > 0 && e.is_instance_of::<PyKeyboardInterrupt>(py) {
            true => PyKeyboardInterrupt::new_err(format!("stopped after {done} of {of} {}", self.unit)),
            false => e,
        }
    }
}

/// Does work that cannot be stopped, on a thread of its own: Ctrl-C leaves it behind.
pub(crate) fn alone<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    run(py, &Arc::default(), &[], None, |_| work())
}

/// Does `work` on a thread of its own. Ctrl-C, or an exception of `progress`, sets its `stop` and does not wait for it.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    watched: &Arc<Watched>,
    policies: &[KeptClass],
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> T + Send + 'static,
) -> PyResult<T> {
    let (send, mut receive) = channel();
    let own = watched.clone();
    std::thread::Builder::new()
        .name("wattwise".into())
        .spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&own)));
            // Nobody may wait any more.
            _ = send.send(result);
        })
        .map_err(error)?;
    let stopped = |e: PyErr| watched.end(py, e);
    let mut told = u64::MAX;
    loop {
        let (back, got) = py.detach(move || {
            let got = receive.recv_timeout(LOOK);
            (receive, got)
        });
        receive = back;
        match got {
            Ok(Ok(result)) => {
                return match policies.iter().find_map(|p| p.class.failure(py)) {
                    Some(failure) => Err(failure),
                    None => Ok(result),
                };
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(error("the engine failed; please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        py.check_signals().map_err(stopped)?;
        if let Some(late) = policies.iter().find_map(|p| p.class.watch(py)) {
            return Err(stopped(late));
        }
        let done = watched.done.load(Ordering::Relaxed);
        if let Some(progress) = progress
            && told != done
        {
            told = done;
            progress.call1((done, watched.of.load(Ordering::Relaxed))).map_err(stopped)?;
        }
    }
}
