//! Ctrl-C during long work on a model: the first ends it with what there is, a second ends the program. The exit status is a
//! shell's for a program that a signal ended, 128 + its number, since the answer is not the one that was asked for. The end of a
//! time that was given (`--budget 2min`) does the same, and is no failure.

use crate::show::screen::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Follows SIGINT and SIGTERM for as long as it lives.
pub(crate) struct Stop {
    /// The work is to end: a signal has come, or the time is over.
    flag: Arc<AtomicBool>,
    /// The signal that came; 0 before.
    signal: Arc<AtomicUsize>,
    ids: Vec<signal_hook::SigId>,
}

impl Stop {
    /// Begins to follow them.
    pub(crate) fn follow() -> Stop {
        let (flag, signal) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        // Apart from the flag: the end of the time is no first signal.
        let signalled = Arc::new(AtomicBool::new(false));
        let mut ids = Vec::new();
        for s in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A second signal ends the program: that is asked first, so that the first one finds the flag down.
            ids.push(signal_hook::flag::register_conditional_shutdown(s, 128 + s, Arc::clone(&signalled)));
            ids.push(signal_hook::flag::register(s, Arc::clone(&signalled)));
            ids.push(signal_hook::flag::register_usize(s, Arc::clone(&signal), s as usize));
            ids.push(signal_hook::flag::register(s, Arc::clone(&flag)));
        }
        Stop { flag, signal, ids: ids.into_iter().flatten().collect() }
    }

    /// Also ends the work when this time is over, counted from now.
    pub(crate) fn within(self, time: Option<Duration>) -> Stop {
        if let Some(time) = time {
            let flag = Arc::clone(&self.flag);
            // It ends with the program.
            let wait = move || {
                thread::sleep(time);
                flag.store(true, Ordering::Relaxed);
            };
            if let Err(e) = thread::Builder::new().spawn(wait) {
                note!("the time of --budget is not kept: {e}");
            }
        }
        self
    }

    /// Set by the first signal, or when the time is over.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Whether the work is to end.
    pub(crate) fn came(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Whether it is to end because its time is over.
    pub(crate) fn by_time(&self) -> bool {
        self.came() && self.signal.load(Ordering::Relaxed) == 0
    }

    /// The exit status of a command that was stopped by a signal.
    pub(crate) fn code(&self) -> u8 {
        128 + self.signal.load(Ordering::Relaxed) as u8
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}
