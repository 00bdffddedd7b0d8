//! `spin-then-park`: spin for as long as a sleep would cost, then sleep.
//!
//! It keeps when it began.
//!
//! 1. PAUSE and look until `SPIN_US` have passed by the time-stamp counter.
//! 2. Then sleep. After each wake-up the same again: whoever was woken for nothing was close to its turn.
//!
//! Spinning for the price of one sleep is at most twice as dear as the best choice made with knowledge of the
//! future (the ski rental argument; Karlin and others, 1991). The bound is in time because a PAUSE takes 10
//! cycles on one CPU and 140 on the next, so counted spins differ by that much.

use super::{Wait, WaitStep};
use crate::primitive::{AtomicU32, relax};
use crate::tsc;

/// Futex sleep and wake-up on a busy machine: two system calls and two context switches, 5 to 10 us.
const SPIN_US: u64 = 8;

/// See the module's essay.
#[derive(Debug)]
pub struct SpinThenPark {
    /// Ticks at the first look since the last sleep.
    began: Option<u64>,
}

impl Wait for SpinThenPark {
    const NAME: &'static str = "spin-then-park";
    const SLEEPS: bool = true;

    #[inline]
    fn begin() -> Self {
        SpinThenPark { began: None }
    }

    #[inline]
    fn step(&mut self, _: &AtomicU32, _: u32) -> WaitStep {
        let now = tsc::now();
        let began = *self.began.get_or_insert(now);
        if now.wrapping_sub(began) < SPIN_US * tsc::per_us() {
            relax();
            WaitStep::Look
        } else {
            self.began = None;
            WaitStep::Sleep
        }
    }
}
