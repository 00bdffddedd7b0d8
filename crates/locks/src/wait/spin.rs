//! `spin`: PAUSE and look, for as long as it takes.
//!
//! It keeps nothing.
//!
//! 1. One PAUSE between two looks. The word stays in this core's cache until the releaser writes it, so looking
//!    costs no traffic; PAUSE keeps the loop from filling the memory-order buffer and gives an SMT sibling the
//!    core's units meanwhile.
//!
//! Right where every waiter has a core of its own and sections are short. **Wrong with more threads than
//! CPUs:** a spinner burns the time slice that the holder needs, and behind a queue lock the throughput falls
//! a hundred to a thousand times (docs/notes/locks.md).

use super::{Wait, WaitStep};
use crate::primitive::{AtomicU32, relax};

/// See the module's essay.
#[derive(Debug)]
pub struct Spin;

impl Wait for Spin {
    const NAME: &'static str = "spin";
    const SLEEPS: bool = false;

    #[inline]
    fn begin() -> Self {
        Spin
    }

    #[inline]
    fn step(&mut self, _: &AtomicU32, _: u32) -> WaitStep {
        relax();
        WaitStep::Look
    }
}
