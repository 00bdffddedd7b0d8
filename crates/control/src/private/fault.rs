//! Where tests have the system fail: every operation on a journal and on a machine, one after the other.
//!
//! Outside of tests each is nothing. A test arms a [`FaultPlan`] for its thread; the operations are counted, and the one whose
//! turn it is fails once, or is the last that the process does: what is done after it has no effect any more.

use std::fs::File;
use std::io::{self, Write};

/// Before an operation: whether it may happen.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn point() -> io::Result<()> {
    Ok(())
}

/// After an operation that happened: whether the process lives to see it.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn passed() -> io::Result<()> {
    Ok(())
}

/// An operation.
pub(crate) fn around<T>(operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    point()?;
    let done = operation()?;
    passed()?;
    Ok(done)
}

/// A write, of which a process that dies may leave the first half.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    #[cfg(test)]
    if armed::dies_now() {
        file.write_all(&bytes[..bytes.len() / 2])?;
    }
    around(|| file.write_all(bytes))
}

#[cfg(test)]
pub(crate) use armed::{FaultPlan, Mode, arm, disarm, passed, point};

#[cfg(test)]
mod armed {
    use super::io;
    use std::cell::Cell;

    /// How an operation fails.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Mode {
        /// It is refused, and the process goes on.
        Refused,
        /// The process dies before it, or in the middle of a write to a file.
        DiesBefore,
        /// The process dies after it.
        DiesAfter,
    }

    /// Which operation, counted from 1, and how.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct FaultPlan {
        pub(crate) nth: u32,
        pub(crate) mode: Mode,
    }

    #[derive(Clone, Copy)]
    struct FaultState {
        plan: Option<FaultPlan>,
        count: u32,
    }

    thread_local! {
        static STATE: Cell<FaultState> = const { Cell::new(FaultState { plan: None, count: 0 }) };
    }

    pub(crate) fn arm(plan: FaultPlan) {
        STATE.set(FaultState { plan: Some(plan), count: 0 });
    }

    /// How many operations there were.
    pub(crate) fn disarm() -> u32 {
        STATE.replace(FaultState { plan: None, count: 0 }).count
    }

    fn failed() -> io::Error {
        io::Error::from_raw_os_error(libc::EIO)
    }

    pub(crate) fn point() -> io::Result<()> {
        let mut state = STATE.get();
        state.count += 1;
        STATE.set(state);
        match state.plan {
            Some(FaultPlan { nth, mode: Mode::Refused }) if state.count == nth => Err(failed()),
            Some(FaultPlan { nth, mode: Mode::DiesBefore }) if state.count >= nth => Err(failed()),
            Some(FaultPlan { nth, mode: Mode::DiesAfter }) if state.count > nth => Err(failed()),
            _ => Ok(()),
        }
    }

    pub(crate) fn passed() -> io::Result<()> {
        let state = STATE.get();
        match state.plan {
            Some(FaultPlan { nth, mode: Mode::DiesAfter }) if state.count == nth => Err(failed()),
            _ => Ok(()),
        }
    }

    /// Whether the next operation is the one in the middle of which the process dies.
    pub(crate) fn dies_now() -> bool {
        let state = STATE.get();
        state.plan == Some(FaultPlan { nth: state.count + 1, mode: Mode::DiesBefore })
    }
}
