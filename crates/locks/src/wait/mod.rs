//! What a waiting thread does with its core: one file a policy.
//!
//! A lock asks its policy again and again, between looks at the word that it waits for. The policy waits a
//! bounded while and says whether to look again or to sleep. Sleeping itself is the lock's part, since only
//! the lock knows how its sleepers are found and woken: a policy that never says [`WaitStep::Sleep`] sets
//! [`Wait::SLEEPS`] to false, and the lock leaves out the marks that a releaser would have to look for.
//!
//! ```text
//!           begin                         end
//! lock ----------> policy  ... step ... -------> acquired
//!                    |  Look: the word is read again
//!                    |  Sleep: the lock marks the word and sleeps in the kernel, then looks
//! ```
//!
//! To add one: write its file, add its line to [`table`](crate::dynamic).

mod kernel;
#[cfg(feature = "std")]
mod park;
mod spin;
#[cfg(feature = "std")]
mod spin_then_park;
mod state;
mod user;
mod yields;

pub use kernel::{KernelWait, MonitorDevice, StandInMonitor, set_monitor_device};
#[cfg(feature = "std")]
pub use park::Park;
pub use spin::Spin;
#[cfg(feature = "std")]
pub use spin_then_park::SpinThenPark;
pub use state::{StandInStates, StateControl, WaitKind, WithPState, WithTState, set_state_control};
pub use user::{UserWait, UserWaitBackend, user_wait_backend};
pub use yields::Yield;

use crate::primitive::AtomicU32;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStep {
    /// Read the word again.
    Look,
    /// Sleep until the word's releaser wakes this thread.
    Sleep,
}

/// A waiting policy; a value of it lives for one wait.
pub trait Wait: Sized + 'static {
    /// Its name in `lock:policy`.
    const NAME: &'static str;

    /// Whether [`step`](Self::step) ever says [`WaitStep::Sleep`].
    const SLEEPS: bool;

    /// A wait begins: the lock was not free.
    fn begin() -> Self;

    /// Waits for a bounded while, ideally until `word` holds something else than `seen`.
    fn step(&mut self, word: &AtomicU32, seen: u32) -> WaitStep;

    /// The lock was acquired, or the wait given up. Undoes what waiting changed.
    fn end(self) {}
}
