//! The workload's locks: whoever finds one taken waits to be handed it.

use std::collections::VecDeque;

/// A lock.
#[derive(Default)]
pub(super) struct LockState {
    held: bool,
    waiters: VecDeque<u32>,
}

impl LockState {
    /// Takes it for a task, or puts the task among those that wait.
    pub(super) fn take(&mut self, t: u32) -> bool {
        if self.held {
            self.waiters.push_back(t);
            return false;
        }
        self.held = true;
        true
    }

    /// Gives it back; the task that may try next.
    pub(super) fn give_back(&mut self) -> Option<u32> {
        self.held = false;
        self.waiters.pop_front()
    }
}
