//! `ttas`: test, then test-and-set.
//!
//! It keeps one word (table in `bit.rs`).
//!
//! 1. Look; if the lock is free, set its bit. Whoever finds it clear before has the lock.
//! 2. Else wait by the policy until it looks free, and go to 1.
//! 3. Release: clear the word; wake a sleeper if one is marked.
//!
//! Looking keeps a shared copy of the line, so waiting makes no traffic; a release makes one burst of it, when
//! all who look see the lock free at once (Rudolph and Segall, 1984). No order, but whoever runs can have the
//! lock: of the plain spinning locks it is the one that suffers least from more threads than CPUs.

use crate::bit;
use crate::primitive::{AtomicU32, Deadline, Ordering};
use crate::raw::{Quick, RawLock, Token};
use crate::wait::Wait;
use core::marker::PhantomData;

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct Ttas<W> {
    word: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Ttas<W> {
    fn default() -> Self {
        Ttas { word: Default::default(), policy: PhantomData }
    }
}

impl<W: Wait> Ttas<W> {
    #[cold]
    fn contend(&self, until: Option<Deadline>) -> bool {
        bit::acquire::<W>(&self.word, until, |seen| seen & bit::LOCKED == 0, || {})
    }

    /// Step 1.
    #[inline]
    fn attempt(&self) -> bool {
        self.word.load(Ordering::Relaxed) & bit::LOCKED == 0 && bit::test_and_set(&self.word)
    }
}

// SAFETY: as for `Tas`: only the thread whose fetch_or found LOCKED clear returns a token.
unsafe impl<W: Wait> RawLock for Ttas<W> {
    const NAME: &'static str = "ttas";
    const FIFO: bool = false;
    const QUICK: Quick = Quick::Word32;
    #[cfg(not(loom))]
    const INIT: Self = Ttas { word: AtomicU32::new(0), policy: PhantomData };

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
        bit::release::<W>(&self.word);
    }

    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & bit::LOCKED != 0
    }

    #[cfg(feature = "std")]
    fn lock_until(&self, deadline: Deadline) -> Option<Token> {
        (self.attempt() || self.contend(Some(deadline))).then_some(Token::NONE)
    }

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        self.word.fetch_and(bit::LOCKED, Ordering::Relaxed);
    }
}
