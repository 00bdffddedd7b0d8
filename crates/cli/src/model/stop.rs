//! Ctrl-C during long work on a model: the first ends it with what there is, a second ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Follows SIGINT and SIGTERM for as long as it lives.
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    ids: Vec<signal_hook::SigId>,
}

impl Stop {
    /// Begins to follow them.
    pub(crate) fn follow() -> Stop {
        let flag = Arc::new(AtomicBool::new(false));
        let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
        // A second signal ends the program: that is asked first, so that the first one finds the flag down.
        let ends =
            |s: &i32| signal_hook::flag::register_conditional_shutdown(*s, 130, Arc::clone(&flag)).ok();
        let stops = |s: &i32| signal_hook::flag::register(*s, Arc::clone(&flag)).ok();
        let ids = signals.iter().flat_map(|s| [ends(s), stops(s)]).flatten().collect();
        Stop { flag, ids }
    }

    /// Set by the first signal.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}
