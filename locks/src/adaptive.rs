//! `adaptive`: the default.
//!
//! PLACEHOLDER

use crate::primitive::{ANY, AtomicU32, Deadline, Ordering, Woken, relax, wait, wake};
use crate::raw::{RawLock, Token};
use crate::tsc;
use crate::wait::{Spin, Wait};
use core::marker::PhantomData;

const LOCKED: u32 = 1;
const SPINNER: u32 = 2;
const HANDED: u32 = 4;
const STARVING: u32 = 8;
const ONE_SLEEPER: u32 = 16;
const SLEEPERS: u32 = !(ONE_SLEEPER - 1);

/// See the [module's essay](self).
#[repr(C)]
#[derive(Debug)]
pub struct Adaptive<W = Spin> {
    state: AtomicU32,
    permits: AtomicU32,
    learned: AtomicU32,
    rotated: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Adaptive<W> {
    fn default() -> Self {
        Adaptive {
            state: Default::default(),
            permits: Default::default(),
            learned: Default::default(),
            rotated: Default::default(),
            policy: PhantomData,
        }
    }
}

const SPIN_US: u64 = 8;
const AGE_US: u64 = 2000;

/// Coarse time for `rotated`: units of 1024 ticks, about 0.4 us; wraps in half an hour.
fn coarse(ticks: u64) -> u32 {
    (ticks >> 10) as u32
}

impl<W: Wait> Adaptive<W> {
    #[inline]
    fn attempt(&self) -> bool {
        match self.state.compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(seen) => seen & LOCKED == 0 && self.take(seen, seen | LOCKED),
        }
    }

    #[inline]
    fn take(&self, seen: u32, after: u32) -> bool {
        self.state.compare_exchange(seen, after, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn contend(&self, until: Option<Deadline>) -> bool {
        let rate = tsc::per_us();
        let began = tsc::now();
        let mut spinner = false;
        let mut spin_from = began;
        let mut aged = false;
        let age = AGE_US * rate;
        let mut policy = W::begin();
        let due =
            |now: u64| u64::from(coarse(now).wrapping_sub(self.rotated.load(Ordering::Relaxed))) << 10 >= age;
        let acquired = loop {
            let seen = self.state.load(Ordering::Relaxed);
            let role = if spinner { SPINNER } else { 0 };
            if seen & LOCKED == 0 {
                if self.take(seen, (seen & !(role | if spinner { STARVING } else { 0 })) | LOCKED) {
                    break true;
                }
                continue;
            }
            if spinner && seen & HANDED != 0 {
                if self.take(seen, seen & !(SPINNER | HANDED | STARVING)) {
                    self.rotated.store(coarse(tsc::now()), Ordering::Relaxed);
                    break true;
                }
                continue;
            }
            let now = tsc::now();
            if spinner {
                if !aged && now.wrapping_sub(began) >= age && due(now) {
                    aged = true;
                    if seen & STARVING == 0 {
                        self.state.fetch_or(STARVING, Ordering::Relaxed);
                        continue;
                    }
                }
                if now.wrapping_sub(spin_from) < SPIN_US * rate {
                    policy.step(&self.state, seen);
                    continue;
                }
            } else if seen & SPINNER == 0 && (seen & SLEEPERS == 0 || !due(now)) {
                if self.take(seen, seen | SPINNER) {
                    spinner = true;
                    spin_from = now;
                }
                continue;
            }
            // Sleep.
            let after = (seen & !role) + ONE_SLEEPER;
            if !self.take(seen, after) {
                continue;
            }
            if seen & SLEEPERS != 0 && !spinner {
                self.rotated.store(coarse(now), Ordering::Relaxed);
            }
            let woken = self.sleep(until);
            spinner = true;
            spin_from = tsc::now();
            if !woken {
                break self.leave();
            }
        };
        policy.end();
        acquired
    }

    fn sleep(&self, until: Option<Deadline>) -> bool {
        loop {
            if self.permitted() {
                return true;
            }
            if wait(&self.permits, 0, ANY, until) == Woken::TimedOut {
                return self.permitted();
            }
        }
    }

    fn permitted(&self) -> bool {
        let mut permits = self.permits.load(Ordering::Relaxed);
        while permits > 0 {
            let took =
                self.permits.compare_exchange(permits, permits - 1, Ordering::Acquire, Ordering::Relaxed);
            match took {
                Ok(_) => return true,
                Err(now) => permits = now,
            }
        }
        false
    }

    /// After a deadline: not asleep, without a permit. True: acquired after all.
    fn leave(&self) -> bool {
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen & SLEEPERS != 0 {
            match self.state.compare_exchange(seen, seen - ONE_SLEEPER, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return false,
                Err(now) => seen = now,
            }
        }
        // A permit is on its way to this thread.
        while !self.permitted() {
            relax();
        }
        self.resign()
    }

    /// Gives up being the spinner, unless the lock can be had.
    fn resign(&self) -> bool {
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            let (after, acquired) = if seen & LOCKED == 0 {
                ((seen & !(SPINNER | STARVING)) | LOCKED, true)
            } else if seen & HANDED != 0 {
                (seen & !(SPINNER | HANDED | STARVING), true)
            } else {
                (seen & !SPINNER, false)
            };
            if self.take(seen, after) {
                return acquired;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn release(&self) {
        let mut woke = false;
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if seen & SPINNER == 0 && seen & SLEEPERS != 0 {
                let hand = if seen & STARVING != 0 { HANDED } else { 0 };
                let after = (seen | SPINNER | hand) - ONE_SLEEPER;
                if self.state.compare_exchange(seen, after, Ordering::Release, Ordering::Relaxed).is_err() {
                    continue;
                }
                self.permits.fetch_add(1, Ordering::Relaxed);
                woke = true;
                if hand != 0 {
                    break;
                }
                continue;
            }
            let hand = seen & STARVING != 0 && seen & SPINNER != 0;
            let after = if hand { seen | HANDED } else { seen & !LOCKED };
            if self.state.compare_exchange(seen, after, Ordering::Release, Ordering::Relaxed).is_ok() {
                break;
            }
        }
        if woke {
            wake(&self.permits, 1, ANY);
        }
    }
}

// SAFETY: PLACEHOLDER
unsafe impl<W: Wait> RawLock for Adaptive<W> {
    const NAME: &'static str = "adaptive";
    const FIFO: bool = false;
    #[cfg(not(loom))]
    const INIT: Self = Adaptive {
        state: AtomicU32::new(0),
        permits: AtomicU32::new(0),
        learned: AtomicU32::new(0),
        rotated: AtomicU32::new(0),
        policy: PhantomData,
    };

    #[inline]
    fn lock(&self) -> Token {
        if !self.attempt() {
            self.contend(None);
        }
        Token::NONE
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        self.attempt().then_some(Token::NONE)
    }

    #[inline]
    unsafe fn unlock(&self, _: Token) {
        if self.state.compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.release();
        }
    }

    fn is_locked(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LOCKED != 0
    }

    #[cfg(feature = "std")]
    fn lock_until(&self, deadline: Deadline) -> Option<Token> {
        (self.attempt() || self.contend(Some(deadline))).then_some(Token::NONE)
    }

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        let handed = self.state.load(Ordering::Relaxed) & HANDED != 0;
        // A lock that was handed to a thread that is gone is free.
        let locked = self.is_locked() && !handed;
        self.state.store(u32::from(locked), Ordering::Relaxed);
        self.permits.store(0, Ordering::Relaxed);
    }
}
