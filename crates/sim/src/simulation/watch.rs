//! What a watcher is told. Each of these is one test where nobody watches.

use super::Simulation;
use crate::record::{Waker, Why};
use crate::tasks::RunState;

impl Simulation<'_> {
    /// A task is being woken on CPU `from`.
    #[inline(always)]
    pub(super) fn tell_waking(&mut self, t: u32, by: Waker, from: usize) {
        if let Some(watched) = &mut self.record.watched {
            watched.waking(t, by, from);
        }
    }

    /// A task is put on the queue of CPU `c`.
    #[inline(always)]
    pub(super) fn tell_queued(&mut self, c: usize, t: u32) {
        if let Some(watched) = &mut self.record.watched {
            watched.queued(self.clock.now(), t, c);
        }
    }

    /// A task has CPU `c`.
    #[inline(always)]
    pub(super) fn tell_runs(&mut self, c: usize, t: u32) {
        if let Some(watched) = &mut self.record.watched {
            watched.runs(self.clock.now(), c, t);
        }
    }

    /// A task has CPU `c` no longer.
    #[inline(always)]
    pub(super) fn tell_stops(&mut self, c: usize, t: u32) {
        if let Some(watched) = &mut self.record.watched {
            let why = match self.tasks.state(t) {
                RunState::Runnable => Why::Preempted,
                RunState::Sleeping => Why::Sleeps,
                RunState::Device => Why::Device,
                RunState::Blocked => Why::Blocks,
                RunState::Ended => Why::Ends,
            };
            watched.stops(self.clock.now(), c, t, why);
        }
    }

    /// A task begins a piece of its work.
    #[inline(always)]
    pub(super) fn tell_works(&mut self, t: u32) {
        if let Some(watched) = &mut self.record.watched {
            watched.works(self.clock.now(), t, self.tasks.piece(t));
        }
    }

    #[inline(always)]
    pub(super) fn tell_enters(&mut self, c: usize, state: u8) {
        if let Some(watched) = &mut self.record.watched {
            watched.enters(self.clock.now(), c, state);
        }
    }

    #[inline(always)]
    pub(super) fn tell_leaves(&mut self, c: usize) {
        if let Some(watched) = &mut self.record.watched {
            watched.leaves(self.clock.now(), c);
        }
    }

    #[inline(always)]
    pub(super) fn tell_is_awake(&mut self, c: usize) {
        if let Some(watched) = &mut self.record.watched {
            watched.is_awake(self.clock.now(), c);
        }
    }

    /// The speeds of all domains, where they have changed.
    #[inline(always)]
    pub(super) fn tell_speeds(&mut self) {
        if let Some(watched) = &mut self.record.watched {
            for d in 0..self.hardware.machine().domains.len() {
                watched.speed(self.clock.now(), d, self.hardware.khz(d));
            }
        }
    }
}
