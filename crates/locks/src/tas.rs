//! `tas`: test-and-set with exponential back-off.
//!
//! It keeps one word (table in `bit.rs`).
//!
//! 1. Set the lock's bit; whoever finds it clear before has the lock.
//! 2. Else wait by the policy, then back off for a random part of a bound that starts at `FIRST_NS` and doubles with each
//!    failure up to `LONGEST_NS`, and set again, without looking first.
//! 3. Release: clear the word; wake a sleeper if one is marked.
//!
//! Each failed set takes the word's cache line from the holder, which is what the back-off is for (Anderson,
//! 1990). No order: a thread that has just released is close to the line and wins it again, and the longer one
//! has waited, the more rarely one asks. Kept as the baseline that the other locks are to beat.

use crate::bit;
use crate::primitive::{AtomicU32, Deadline, Ordering};
use crate::raw::{Quick, RawLock, Token};
use crate::tsc;
use crate::wait::Wait;
use core::cell::Cell;
use core::marker::PhantomData;

/// One transfer of a cache line between cores.
const FIRST_NS: u64 = 100;

/// Past some 16 us of blind waiting, short sections leave the lock idle longer than the traffic ever cost.
const LONGEST_NS: u64 = 16_000;

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct Tas<W> {
    word: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Tas<W> {
    fn default() -> Self {
        Tas { word: Default::default(), policy: PhantomData }
    }
}

impl<W: Wait> Tas<W> {
    #[cold]
    fn contend(&self, until: Option<Deadline>) -> bool {
        let bound = Cell::new(FIRST_NS);
        bit::acquire::<W>(
            &self.word,
            until,
            |_| true,
            || {
                // Low bits of the counter: threads that failed together part ways.
                let ns = bound.get() / 2 + tsc::now() % (bound.get() / 2);
                if !W::SLEEPS {
                    tsc::pause_for(ns * tsc::per_us() / 1000);
                }
                bound.set((bound.get() * 2).min(LONGEST_NS));
            },
        )
    }
}

// SAFETY: only the thread whose fetch_or found LOCKED clear returns a token, and only unlock clears it. Release
// stores and Acquire sets pair. The word is not touched after the release but for waking by address.
unsafe impl<W: Wait> RawLock for Tas<W> {
    const NAME: &'static str = "tas";
    const FIFO: bool = false;
    const QUICK: Quick = Quick::Word32;
    #[cfg(not(loom))]
    const INIT: Self = Tas { word: AtomicU32::new(0), policy: PhantomData };

    #[inline]
    fn lock(&self) -> Token {
        if !bit::test_and_set(&self.word) {
            self.contend(None);
        }
        Token::NONE
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        bit::test_and_set(&self.word).then_some(Token::NONE)
    }

    #[inline]
    unsafe fn unlock(&self, _: Token) {
        bit::release::<W>(&self.word);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & bit::LOCKED != 0
    }

    #[cfg(feature = "std")]
    fn lock_until(&self, deadline: Deadline) -> Option<Token> {
        (bit::test_and_set(&self.word) || self.contend(Some(deadline))).then_some(Token::NONE)
    }

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        self.word.fetch_and(bit::LOCKED, Ordering::Relaxed);
    }
}
