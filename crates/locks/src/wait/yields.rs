//! `yield`: look a few times, then give the core away between looks.
//!
//! It keeps how often it looked.
//!
//! 1. `LOOKS` looks with a PAUSE each: a hand-over that is under way takes 100 to 300 ns.
//! 2. Then `sched_yield` before each look. A thread that is ready takes the core; when there is none the call
//!    returns at once (some 300 ns), so an idle machine sees a spinner that looks less often, at full power.
//!
//! The kernel's fair scheduler may hand the core straight back, and knows nothing of whom this thread waits
//! for: yielding softens the collapse of FIFO spinning under oversubscription but does not cure it.

use super::{Wait, WaitStep};
use crate::primitive::{AtomicU32, relax, yield_core};

/// 8 PAUSEs take 80 to 1100 cycles by CPU: about one hand-over.
const LOOKS: u32 = 8;

/// See the module's essay.
#[derive(Debug)]
pub struct Yield {
    looks: u32,
}

impl Wait for Yield {
    const NAME: &'static str = "yield";
    const SLEEPS: bool = false;

    #[inline]
    fn begin() -> Self {
        Yield { looks: 0 }
    }

    #[inline]
    fn step(&mut self, _: &AtomicU32, _: u32) -> WaitStep {
        if self.looks < LOOKS {
            self.looks += 1;
            relax();
        } else {
            yield_core();
        }
        WaitStep::Look
    }
}
