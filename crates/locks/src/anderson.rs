//! `anderson`: a ticket lock whose numbers are called on a line each.
//!
//! It keeps a counter of numbers and N slots, each on a cache line of its own.
//!
//! | word | bits | meaning | written by |
//! |---|---|---|---|
//! | `next` | 31..0 | the number that the next thread takes | who arrives |
//! | `slots[n mod N]` | 31..1 | the last number called here | who releases |
//! | | 0 SLEEPERS | a thread may sleep on this slot | who goes to sleep; cleared by the next call here |
//!
//! 1. Take a number, and wait at the slot of that number until it is called there.
//! 2. Release: call the next number at *its* slot; wake that slot's sleepers if marked.
//!
//! So a release disturbs one waiter and not all (Anderson, 1990). The original stores a flag in a slot and so
//! breaks exclusion when more than N threads wait; here the slot names the number that it calls, and threads
//! beyond N share slots: slower, never wrong. The price is space: N lines a lock, 8 KiB for 64.

use crate::primitive::{ANY, AtomicU32, Ordering, wait, wake};
use crate::raw::{RawLock, Token};
use crate::wait::{Wait, WaitStep};
use core::marker::PhantomData;

const SLEEPERS: u32 = 1;
const ONE: u32 = 2;

/// Two lines, since the prefetcher fetches them in pairs.
#[repr(C, align(128))]
#[derive(Debug, Default)]
struct ArraySlot(AtomicU32);

/// See the module's essay. `N` is a power of two.
#[repr(C)]
#[derive(Debug)]
pub struct Anderson<W, const N: usize = 64> {
    slots: [ArraySlot; N],
    next: ArraySlot,
    policy: PhantomData<fn() -> W>,
}

impl<W, const N: usize> Default for Anderson<W, N> {
    fn default() -> Self {
        const { assert!(N.is_power_of_two()) };
        Anderson {
            slots: core::array::from_fn(|_| ArraySlot::default()),
            next: ArraySlot::default(),
            policy: PhantomData,
        }
    }
}

#[inline]
fn called(number: u32) -> u32 {
    number.wrapping_mul(ONE)
}

impl<W: Wait, const N: usize> Anderson<W, N> {
    #[inline]
    fn slot(&self, number: u32) -> &AtomicU32 {
        &self.slots[number as usize % N].0
    }

    #[cold]
    fn contend(&self, number: u32) {
        let slot = self.slot(number);
        let mut policy = W::begin();
        loop {
            let seen = slot.load(Ordering::Acquire);
            if seen & !SLEEPERS == called(number) {
                break;
            }
            if policy.step(slot, seen) == WaitStep::Sleep {
                let marked = slot.fetch_or(SLEEPERS, Ordering::Acquire) | SLEEPERS;
                if marked & !SLEEPERS == called(number) {
                    break;
                }
                wait(slot, marked, ANY, None);
            }
        }
        policy.end();
    }
}

// SAFETY: numbers are handed out once each (modulo 2^31 waiters), and only the thread whose number was called
// returns a token; only unlock calls the next. Release and Acquire on the slot pair. All zero: number 0 is
// called at slot 0. After the call nothing is touched but for waking by address.
unsafe impl<W: Wait, const N: usize> RawLock for Anderson<W, N> {
    const NAME: &'static str = "anderson";
    const FIFO: bool = true;
    #[cfg(not(loom))]
    const INIT: Self = {
        assert!(N.is_power_of_two());
        Anderson {
            slots: [const { ArraySlot(AtomicU32::new(0)) }; N],
            next: ArraySlot(AtomicU32::new(0)),
            policy: PhantomData,
        }
    };

    #[inline]
    fn lock(&self) -> Token {
        let number = self.next.0.fetch_add(1, Ordering::Relaxed);
        if self.slot(number).load(Ordering::Acquire) & !SLEEPERS != called(number) {
            self.contend(number);
        }
        Token(number as usize)
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        let number = self.next.0.load(Ordering::Relaxed);
        if self.slot(number).load(Ordering::Acquire) & !SLEEPERS != called(number) {
            return None;
        }
        let following = number.wrapping_add(1);
        let took = self.next.0.compare_exchange(number, following, Ordering::Relaxed, Ordering::Relaxed);
        took.ok().map(|_| Token(number as usize))
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        let following = (token.0 as u32).wrapping_add(1);
        let slot = self.slot(following);
        if !W::SLEEPS {
            slot.store(called(following), Ordering::Release);
        } else if slot.swap(called(following), Ordering::Release) & SLEEPERS != 0 {
            // All of this slot: with more than N waiting, who sleeps here may wait for a later number.
            wake(slot, i32::MAX, ANY);
        }
    }

    fn is_locked(&self) -> bool {
        let number = self.next.0.load(Ordering::Relaxed);
        self.slot(number).load(Ordering::Acquire) & !SLEEPERS != called(number)
    }

    unsafe fn forget_waiters(&self, held: Option<Token>) {
        if let Some(token) = held {
            self.next.0.store((token.0 as u32).wrapping_add(1), Ordering::Relaxed);
        }
        for slot in &self.slots {
            slot.0.fetch_and(!SLEEPERS, Ordering::Relaxed);
        }
    }
}
