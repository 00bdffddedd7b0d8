//! Ctrl-C during long work on a model: the first ends it with what there is, a second ends the program. The exit status is a
//! shell's for a program that a signal ended, 128 + its number, since the answer is not the one that was asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Follows SIGINT and SIGTERM for as long as it lives.
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    ids: Vec<signal_hook::SigId>,
}

impl Stop {
    /// Begins to follow them.
    pub(crate) fn follow() -> Stop {
        let (flag, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut ids = Vec::new();
        for s in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A second signal ends the program: that is asked first, so that the first one finds the flag down.
            ids.push(signal_hook::flag::register_conditional_shutdown(s, 128 + s, Arc::clone(&flag)));
            ids.push(signal_hook::flag::register_usize(s, Arc::clone(&signal), s as usize));
            ids.push(signal_hook::flag::register(s, Arc::clone(&flag)));
        }
        Stop { flag, signal, ids: ids.into_iter().flatten().collect() }
    }

    /// Set by the first signal.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Whether one has come.
    pub(crate) fn came(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The exit status of a command that was stopped.
    pub(crate) fn code(&self) -> u8 {
        128 + self.signal.load(Ordering::Relaxed) as u8
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}
