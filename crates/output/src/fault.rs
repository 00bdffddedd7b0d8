//! Where tests kill the process: before each step that changes a folder or a file.

use std::io;

/// A step.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn step<T>(step: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    step()
}

#[cfg(test)]
pub(crate) use armed::{arm, step};

#[cfg(test)]
mod armed {
    use super::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Steps until the process is killed; 0: it is not.
    static LEFT: AtomicU32 = AtomicU32::new(0);

    /// Kills the process before the step with this number, counted from 1.
    pub(crate) fn arm(nth: u32) {
        LEFT.store(nth, Ordering::SeqCst);
    }

    pub(crate) fn step<T>(step: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) == Ok(1) {
            _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        step()
    }
}
