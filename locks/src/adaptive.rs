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
    conflict: AtomicU32,
    rotated: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Adaptive<W> {
    fn default() -> Self {
        Adaptive {
            state: Default::default(),
            permits: Default::default(),
            conflict: Default::default(),
            rotated: Default::default(),
            policy: PhantomData,
        }
    }
}

const SPIN_US: u64 = 8;
const AGE_US: u64 = 2000;
const HOT_US: u64 = 150;
const REST_US: u64 = 20;
const LONG_REST_US: u64 = 50;
const LOOKS: u32 = if cfg!(loom) { 1 } else { 4 };

/// Fine time for `conflict`: units of 64 ticks, about 25 ns; wraps in 7 s, which at worst misleads one wait.
fn fine(ticks: u64) -> u32 {
    (ticks >> 6) as u32 & TIME
}

/// `conflict`: when the last thread that had waited acquired, whether its wait was brief, and the heat.
const TIME: u32 = u32::MAX >> 4;
const HEAT: u32 = 7;
const HOT: u32 = 4;
const QUICK_NS: u64 = 400;

/// Coarse time for `rotated`: units of 1024 ticks, about 0.4 us; wraps in half an hour.
fn coarse(ticks: u64) -> u32 {
    (ticks >> 10) as u32
}

impl<W: Wait> Adaptive<W> {
    /// Step 1. Sets the bit whatever the others are: a compare-and-swap would fail on every change of theirs.
    #[inline]
    fn attempt(&self) -> bool {
        self.state.fetch_or(LOCKED, Ordering::Acquire) & LOCKED == 0
    }

    #[inline]
    fn take(&self, seen: u32, after: u32) -> bool {
        self.state.compare_exchange(seen, after, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Steps 2 to 6. False: the deadline is over.
    #[cold]
    #[inline(never)]
    fn contend(&self, until: Option<Deadline>) -> bool {
        let rate = tsc::per_us();
        let began = tsc::now();
        let word = self.conflict.load(Ordering::Relaxed);
        let (last, brief, heat) = (word >> 4, word & 8 != 0, word & HEAT);
        let quick = fine(QUICK_NS * rate / 1000);
        let heat = if brief && fine(began).wrapping_sub(last) & TIME <= quick {
            (heat + 2).min(HEAT)
        } else {
            heat.saturating_sub(1)
        };
        let note = |from: u64| {
            let now = tsc::now();
            let brief = fine(now).wrapping_sub(fine(from)) & TIME <= quick;
            self.conflict.store(fine(now) << 4 | u32::from(brief) << 3 | heat, Ordering::Relaxed);
        };
        let age = AGE_US * rate;
        let due = |now: u64| coarse(now).wrapping_sub(self.rotated.load(Ordering::Relaxed)) >= coarse(age);
        let mut policy = W::begin();
        let mut spinner = false;
        let mut asked = false;
        let mut rested = heat < HOT;
        let mut looks = 0;
        let mut wait_from = began;
        let mut spin_from = began;
        let acquired = loop {
            let seen = self.state.load(Ordering::Relaxed);
            let role = if spinner { SPINNER | STARVING } else { 0 };
            if !rested {
                rested = true;
                let room = seen & SLEEPERS == 0 || !due(began);
                // The role keeps releasers from waking anyone meanwhile. Not by compare-and-swap, which would
                // hardly ever succeed on a word that changes every few ns.
                if room && (spinner || self.state.fetch_or(SPINNER, Ordering::Relaxed) & SPINNER == 0) {
                    spinner = true;
                    tsc::pause_for(if seen & SLEEPERS == 0 { REST_US } else { LONG_REST_US } * rate);
                    spin_from = tsc::now();
                    wait_from = spin_from;
                    continue;
                }
            }
            if seen & LOCKED == 0 {
                if self.attempt() {
                    if spinner {
                        self.state.fetch_and(!role, Ordering::Relaxed);
                    }
                    note(wait_from);
                    break true;
                }
                continue;
            }
            if spinner && seen & HANDED != 0 {
                if self.take(seen, seen & !(role | HANDED)) {
                    self.rotated.store(coarse(tsc::now()), Ordering::Relaxed);
                    break true;
                }
                continue;
            }
            if looks < LOOKS {
                looks += 1;
                relax();
                continue;
            }
            let now = tsc::now();
            if spinner {
                if !asked && now.wrapping_sub(began) >= age && due(now) {
                    asked = true;
                    self.state.fetch_or(STARVING, Ordering::Relaxed);
                    continue;
                }
                if now.wrapping_sub(spin_from) < SPIN_US * rate {
                    policy.step(&self.state, seen);
                    continue;
                }
            } else if seen & SPINNER == 0 && (seen & SLEEPERS == 0 || !due(now)) {
                if self.state.fetch_or(SPINNER, Ordering::Relaxed) & SPINNER == 0 {
                    spinner = true;
                    spin_from = now;
                }
                continue;
            }
            // STARVING stays for who is woken next.
            if !self.take(seen, (seen & !(role & SPINNER)) + ONE_SLEEPER) {
                continue;
            }
            if seen & SLEEPERS != 0 && !spinner {
                self.rotated.store(coarse(now), Ordering::Relaxed);
            }
            let woken = self.sleep(until);
            rested = heat < HOT;
            looks = 0;
            wait_from = tsc::now();
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
        conflict: AtomicU32::new(0),
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
        let seen = self.state.load(Ordering::Relaxed);
        // Nobody waits, or someone who is awake does and does not ask for more.
        let plain = seen == LOCKED || seen & (SPINNER | STARVING) == SPINNER;
        let after = seen & !LOCKED;
        if !plain || self.state.compare_exchange(seen, after, Ordering::Release, Ordering::Relaxed).is_err() {
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
