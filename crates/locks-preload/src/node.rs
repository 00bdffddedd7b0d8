//! A waiter of a condition variable: its node, and how it sleeps there. The list that it is in is in `waiters.rs`.
//!
//! | node's state | meaning | set by |
//! |---|---|---|
//! | 0 WAITING | in the list | the waiter |
//! | 1 SIGNALLED | taken out of the list, as the last or by a broadcast | a signal |
//! | 2 LEAVING | taking itself out: its deadline is over or it was cancelled | the waiter |
//! | 3 OWING | taken out of the list by a signal while others were in it | a signal |
//! | 4 POKED | WAITING, and to look whether it is cancelled | `cancel` |

use crate::futex::{self, AtomicPtr, AtomicU32, Ordering, Until};
use std::cell::Cell;
use std::ptr::null_mut;

const WAITING: u32 = 0;
pub(crate) const SIGNALLED: u32 = 1;
pub(crate) const LEAVING: u32 = 2;
pub(crate) const OWING: u32 = 3;
const POKED: u32 = 4;

/// In the list, with nobody about to take it out.
pub(crate) fn waits(state: u32) -> bool {
    state == WAITING || state == POKED
}

/// A waiter, on its own stack. Its links and priority are used under `small` only.
pub(crate) struct WaitNode {
    pub(crate) state: AtomicU32,
    pub(crate) priority: Cell<u32>,
    pub(crate) previous: AtomicPtr<WaitNode>,
    pub(crate) next: AtomicPtr<WaitNode>,
}

impl WaitNode {
    pub(crate) fn new(priority: u32) -> WaitNode {
        WaitNode {
            state: AtomicU32::new(WAITING),
            priority: Cell::new(priority),
            previous: AtomicPtr::new(null_mut()),
            next: AtomicPtr::new(null_mut()),
        }
    }

    /// Sleeps until signalled or the deadline, or until `cancelled` says so or does not return. Without destructors, as
    /// `cond::sleep` needs it.
    #[inline(always)]
    pub(crate) fn sleep(&self, until: Option<&Until>, cancelled: impl Fn() -> bool) {
        let mut in_time = true;
        while in_time {
            // Acquire: the mark of who poked.
            let poked = self.state.compare_exchange(POKED, WAITING, Ordering::Acquire, Ordering::Acquire);
            if poked.is_err_and(|state| state != WAITING) || cancelled() {
                return;
            }
            in_time = !futex::wait(&self.state, WAITING, until);
        }
    }

    /// Has it look whether it is cancelled.
    pub(crate) fn poke(&self) {
        // Release: that it is.
        if self.state.compare_exchange(WAITING, POKED, Ordering::Release, Ordering::Relaxed).is_ok() {
            futex::wake(&self.state, 1);
        }
    }

    /// From one of those that wait to something else. False: it was something else already.
    pub(crate) fn turn(&self, to: u32, success: Ordering, failure: Ordering) -> bool {
        let mut from = WAITING;
        loop {
            match self.state.compare_exchange(from, to, success, failure) {
                Ok(_) => return true,
                Err(now) if waits(now) => from = now,
                Err(_) => return false,
            }
        }
    }
}

#[cfg(loom)]
impl WaitNode {
    pub(crate) fn is_signalled(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), SIGNALLED | OWING)
    }
}

/// For loom, the end of its memory: every use by another must be over, and none may follow.
#[cfg(loom)]
impl Drop for WaitNode {
    fn drop(&mut self) {
        self.state.with_mut(|_| ());
        self.previous.with_mut(|_| ());
        self.next.with_mut(|_| ());
    }
}
