//! `tstate+W` and `pstate+W`: wait as W does, on a core that was slowed down meanwhile.
//!
//! They keep whether the state is lowered, beside what W keeps.
//!
//! 1. When a wait begins, nothing: most waits are over in less time than a change of state takes.
//! 2. After `PATIENCE_US` of waiting, lower the state: a quarter of the clock (T-states) or the lowest speed
//!    (P-states).
//! 3. Before W sleeps, restore it: a sleeping thread has no core, and would leave a slow one to the next.
//! 4. When the lock is acquired, restore it: the critical section must run at full speed.
//!
//! Changing states needs the powerctl device, behind [`StateControl`]; until [`set_state_control`] gives one,
//! [`StandInStates`] counts the calls and does nothing.

use super::{Wait, WaitStep};
use crate::primitive::AtomicU32;
use crate::tsc;
use core::marker::PhantomData;

/// A change of duty cycle takes up to 43.5 us and one of speed 10 to 500 us: waits that are shorter than that
/// would only be lengthened (study 004: sections of 3.7 us lose, those of 366 us gain).
const PATIENCE_US: u64 = 50;

/// Which state to lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// The duty cycle of the clock.
    T,
    /// Clock and voltage.
    P,
}

/// Who lowers and restores states of the core that the calling thread runs on.
///
/// The device keeps the profile with the thread, not with the core: a thread that moves or is preempted takes
/// its profile along.
pub trait StateControl: Sync {
    /// Lowers the calling thread's core.
    fn lower(&self, kind: WaitKind);
    /// Undoes [`lower`](Self::lower).
    fn restore(&self, kind: WaitKind);
}

/// Counts and does nothing.
#[derive(Debug, Default)]
pub struct StandInStates {
    /// Calls to [`StateControl::lower`].
    pub lowered: core::sync::atomic::AtomicU64,
    /// Calls to [`StateControl::restore`].
    pub restored: core::sync::atomic::AtomicU64,
}

impl StateControl for StandInStates {
    fn lower(&self, _: WaitKind) {
        self.lowered.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }
    fn restore(&self, _: WaitKind) {
        self.restored.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }
}

mod control {
    use super::{StandInStates, StateControl};
    use core::cell::UnsafeCell;
    use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    struct StateSlot {
        /// 0 the stand-in, 1 being set, 2 set.
        state: AtomicU8,
        control: UnsafeCell<&'static dyn StateControl>,
    }

    // SAFETY: `control` is written once, between states 1 and 2, and read only in state 2.
    unsafe impl Sync for StateSlot {}

    static STAND_IN: StandInStates =
        StandInStates { lowered: AtomicU64::new(0), restored: AtomicU64::new(0) };
    static SLOT: StateSlot = StateSlot { state: AtomicU8::new(0), control: UnsafeCell::new(&STAND_IN) };

    pub(super) fn set(control: &'static dyn StateControl) -> bool {
        if SLOT.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // SAFETY: only the caller that took the state from 0 to 1 is here, and nobody reads before 2.
        unsafe { *SLOT.control.get() = control };
        SLOT.state.store(2, Ordering::Release);
        true
    }

    pub(super) fn get() -> &'static dyn StateControl {
        if SLOT.state.load(Ordering::Acquire) == 2 {
            // SAFETY: never written again after state 2.
            unsafe { *SLOT.control.get() }
        } else {
            &STAND_IN
        }
    }
}

/// Puts a control to use for all later waits; false if one is already in use.
pub fn set_state_control(control: &'static dyn StateControl) -> bool {
    control::set(control)
}

/// Which kind a wrapper lowers, as a type.
pub trait Lowers: 'static {
    /// The kind.
    const KIND: WaitKind;
}

/// T-states.
#[derive(Debug)]
pub struct DutyCycle;

/// P-states.
#[derive(Debug)]
pub struct SpeedRequest;

impl Lowers for DutyCycle {
    const KIND: WaitKind = WaitKind::T;
}

impl Lowers for SpeedRequest {
    const KIND: WaitKind = WaitKind::P;
}

/// W on a core that is slowed down while waiting; see the module's essay.
#[derive(Debug)]
pub struct Lowered<W, K: Lowers> {
    inner: W,
    began: Option<u64>,
    lowered: bool,
    kind: PhantomData<K>,
}

/// W with the duty cycle lowered while waiting.
pub type WithTState<W> = Lowered<W, DutyCycle>;

/// W with speed and voltage lowered while waiting.
pub type WithPState<W> = Lowered<W, SpeedRequest>;

impl<W: Wait, K: Lowers> Lowered<W, K> {
    fn restore(&mut self) {
        if self.lowered {
            self.lowered = false;
            control::get().restore(K::KIND);
        }
    }
}

impl<W: Wait, K: Lowers> Wait for Lowered<W, K> {
    const NAME: &'static str = match K::KIND {
        WaitKind::T => "tstate",
        WaitKind::P => "pstate",
    };
    const SLEEPS: bool = W::SLEEPS;

    fn begin() -> Self {
        Lowered { inner: W::begin(), began: None, lowered: false, kind: PhantomData }
    }

    fn step(&mut self, word: &AtomicU32, seen: u32) -> WaitStep {
        if !self.lowered {
            let now = tsc::now();
            let began = *self.began.get_or_insert(now);
            if now.wrapping_sub(began) >= PATIENCE_US * tsc::per_us() {
                self.lowered = true;
                control::get().lower(K::KIND);
            }
        }
        let step = self.inner.step(word, seen);
        if step == WaitStep::Sleep {
            self.restore();
            self.began = None;
        }
        step
    }

    fn end(mut self) {
        self.restore();
        self.inner.end();
    }
}

#[cfg(all(test, not(loom), feature = "std"))]
mod tests {
    use super::*;
    use crate::wait::{Park, Spin};
    use core::sync::atomic::Ordering::Relaxed;

    static STATES: StandInStates = StandInStates {
        lowered: core::sync::atomic::AtomicU64::new(0),
        restored: core::sync::atomic::AtomicU64::new(0),
    };

    /// One test: the control is the process's.
    #[test]
    fn lowers_after_patience_and_restores_on_acquiring_and_before_sleep() {
        set_state_control(&STATES);
        let word = AtomicU32::new(0);
        let mut short = WithTState::<Spin>::begin();
        short.step(&word, 0);
        short.end();
        assert_eq!(STATES.lowered.load(Relaxed), 0, "a short wait changes nothing");

        let mut long = WithPState::<Spin>::begin();
        while STATES.lowered.load(Relaxed) == 0 {
            long.step(&word, 0);
        }
        assert_eq!(STATES.restored.load(Relaxed), 0);
        long.end();
        assert_eq!(STATES.restored.load(Relaxed), 1);

        let mut sleeper = WithTState::<Park>::begin();
        sleeper.lowered = true;
        assert_eq!(sleeper.step(&word, 0), WaitStep::Sleep);
        assert_eq!(STATES.restored.load(Relaxed), 2);
        sleeper.end();
        assert_eq!(STATES.restored.load(Relaxed), 2, "nothing to restore twice");
    }
}
