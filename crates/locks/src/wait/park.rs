//! `park`: sleep in the kernel at once.
//!
//! It keeps nothing.
//!
//! 1. Sleep on the word by futex. The core is free for others, or for a sleep state of its own, and the waiter
//!    costs nothing until it is woken.
//!
//! A wake-up costs the releaser a system call (1 to 3 us) and the sleeper 5 us on a busy core to 50 us on one
//! that slept deeply. A FIFO lock pays that on every hand-over, since the lock is given to a thread that is
//! asleep: correct, and as slow as that (docs/notes/locks.md has the measurement).

use super::{Wait, WaitStep};
use crate::primitive::AtomicU32;

/// See the module's essay.
#[derive(Debug)]
pub struct Park;

impl Wait for Park {
    const NAME: &'static str = "park";
    const SLEEPS: bool = true;

    #[inline]
    fn begin() -> Self {
        Park
    }

    #[inline]
    fn step(&mut self, _: &AtomicU32, _: u32) -> WaitStep {
        WaitStep::Sleep
    }
}
