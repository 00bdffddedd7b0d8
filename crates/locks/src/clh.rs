//! `clh`: a queue in which each waits at the node of the one before.
//!
//! It keeps the tail, one node's word inside the lock, and a node of the pool for each thread that waited.
//!
//! | word | value | meaning |
//! |---|---|---|
//! | `tail` | null | free |
//! | | OWN (1) | the last in the queue, the holder, uses the word in the lock |
//! | | node | the node of the last in the queue |
//! | `own` | WAITING, GRANTED, PARKED | the word in the lock, as any node's (table in `queue.rs`) |
//!
//! 1. Free: write OWN over null. One compare-and-swap, no node.
//! 2. Else take a node, swap it into the tail, and wait at the predecessor's node until it is granted. Then that node is nobody's
//!    any more: back to the pool with it, or, if it was `own`, reset it for its next use.
//!    Without memory for a node: ask for the lock again and again, out of the order.
//! 3. Release: write null over the own node in the tail. If that fails there is a successor: grant the own node
//!    and leave it to the successor.
//!
//! Simpler than MCS, no links to wait for (Craig, 1993; Magnusson, Landin and Hagersten, 1994). The original
//! leaves the last node in the tail for ever; here a free lock holds none, so that a lock whose memory is
//! thrown away leaks nothing and one compare-and-swap can tell that it is free. The price is a
//! compare-and-swap in the release.
//!
//! FIFO. With more threads than CPUs the successor often does not run: see the warning in `spin`.

use crate::primitive::{AtomicPtr, AtomicU32, Ordering};
use crate::queue::{QueueNode, WAITING, await_grant, grant, pool};
use crate::raw::{Quick, RawLock, Token};
use crate::wait::Wait;
use core::marker::PhantomData;
use core::ptr::{null_mut, without_provenance_mut};

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct Clh<W> {
    tail: AtomicPtr<QueueNode>,
    own: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Clh<W> {
    fn default() -> Self {
        Clh { tail: Default::default(), own: Default::default(), policy: PhantomData }
    }
}

/// The token and the tail of a holder that uses the word in the lock.
const OWN: usize = 1;

impl<W: Wait> Clh<W> {
    /// Step 1.
    #[inline]
    fn attempt(&self) -> bool {
        let own = without_provenance_mut(OWN);
        self.tail.compare_exchange(null_mut(), own, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Step 2.
    #[cold]
    fn contend(&self) -> Token {
        let Some(mine) = pool::take() else { return self.without_a_place() };
        // AcqRel: as in `mcs`.
        let before = self.tail.swap(mine, Ordering::AcqRel);
        if before.addr() == OWN {
            await_grant::<W>(&self.own);
            // Nobody else looks at it until the tail is OWN again.
            self.own.store(WAITING, Ordering::Relaxed);
        } else if !before.is_null() {
            // SAFETY: the predecessor's node stays until its successor, this thread, gives it back.
            await_grant::<W>(unsafe { &(*before).state });
            // SAFETY: granted: its owner is gone, and only this thread knew it.
            unsafe { pool::put(before) };
        }
        Token(mine.expose_provenance())
    }

    /// There is no memory for a node, and a lock cannot fail: asks again and again, out of the order.
    #[cold]
    fn without_a_place(&self) -> Token {
        /// In ns: some wake-ups, and what a person does not notice.
        const FIRST_NAP: u64 = 20_000;
        const LONGEST_NAP: u64 = 1_000_000;
        let mut nap = FIRST_NAP;
        while !self.attempt() {
            crate::primitive::nap(nap);
            nap = (nap * 2).min(LONGEST_NAP);
        }
        Token(OWN)
    }
}

// SAFETY: the swap puts arrivals in one order and each waits for the grant of the one before; a grant is given
// only by unlock. Grants (Release) and waits (Acquire) pair. The grant, or writing null, is the last touch of
// the lock; afterwards only the pool's node, or an address, is used.
unsafe impl<W: Wait> RawLock for Clh<W> {
    const NAME: &'static str = "clh";
    const FIFO: bool = true;
    const QUICK: Quick = Quick::POINTER;
    #[cfg(not(loom))]
    const INIT: Self =
        Clh { tail: AtomicPtr::new(null_mut()), own: AtomicU32::new(WAITING), policy: PhantomData };

    #[inline]
    fn lock(&self) -> Token {
        if self.attempt() { Token(OWN) } else { self.contend() }
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        self.attempt().then_some(Token(OWN))
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        let mine: *mut QueueNode = core::ptr::with_exposed_provenance_mut(token.0);
        let alone =
            self.tail.compare_exchange(mine, null_mut(), Ordering::Release, Ordering::Relaxed).is_ok();
        if token.0 == OWN {
            if !alone {
                // SAFETY: the word is the lock's, and the lock stays while its successor waits.
                unsafe { grant::<W>(&raw const self.own) };
            }
        } else if alone {
            // SAFETY: this acquisition's node, in no queue any more.
            unsafe { pool::put(mine) };
        } else {
            // SAFETY: this acquisition's node; the successor gives it back after the grant.
            unsafe { grant::<W>(&raw const (*mine).state) };
        }
    }

    fn is_locked(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }

    unsafe fn forget_waiters(&self, held: Option<Token>) {
        if let Some(token) = held {
            if token.0 == OWN {
                self.own.store(WAITING, Ordering::Relaxed);
            }
            self.tail.store(core::ptr::with_exposed_provenance_mut(token.0), Ordering::Relaxed);
        }
    }
}
