//! `mcs`: a queue in which each waits at its own node and the holder knows its successor.
//!
//! It keeps two words, and a node on the stack of each thread that waits.
//!
//! | word | value | meaning |
//! |---|---|---|
//! | `tail` | null | free |
//! | | HELD (1) | held, nobody waits |
//! | | node | held, and this node is the last in the queue |
//! | `next` | null or node | the holder's successor, once it has linked itself; the holder's part of the lock |
//!
//! 1. Free: write HELD over null. One compare-and-swap.
//! 2. Else write a node of one's own over the tail, link it behind the one before (at `next` if that was HELD)
//!    and wait at it until granted.
//! 3. Granted: leave the queue, but keep the lock. Move the own successor to `next`; if there is none, write
//!    HELD over the own node, and if that fails someone has joined: wait for the link.
//! 4. Release: grant the successor. If there is none, write null over HELD; if that fails, wait for the link.
//!
//! Each waits at a line that only the predecessor writes, once (Mellor-Crummey and Scott, 1991). The original
//! keeps the node until the release; this is the K42 system's variant, which needs it only while waiting:
//! so acquiring and releasing need no place to keep it, threads hold any number of locks, and a thread can
//! release what another acquired. The price is one more compare-and-swap for an acquisition that waited.
//!
//! FIFO. With more threads than CPUs the successor often does not run: see the warning in `spin`.

use crate::primitive::{AtomicPtr, Ordering};
use crate::queue::{QueueNode, await_grant, await_link, grant};
use crate::raw::{Quick, RawLock, Token};
use crate::wait::Wait;
use core::marker::PhantomData;
use core::ptr::{null_mut, without_provenance_mut};

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct Mcs<W> {
    tail: AtomicPtr<QueueNode>,
    next: AtomicPtr<QueueNode>,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Mcs<W> {
    fn default() -> Self {
        Mcs { tail: Default::default(), next: Default::default(), policy: PhantomData }
    }
}

/// The tail while the holder has no successor. No node is at address 1.
#[inline]
fn held() -> *mut QueueNode {
    without_provenance_mut(1)
}

impl<W: Wait> Mcs<W> {
    /// Step 1.
    #[inline]
    fn attempt(&self) -> bool {
        self.tail.compare_exchange(null_mut(), held(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Steps 2 and 3.
    #[cold]
    fn contend(&self) {
        let node = QueueNode::new();
        let mine = core::ptr::from_ref(&node).cast_mut();
        let mut before = self.tail.load(Ordering::Relaxed);
        loop {
            let after = if before.is_null() { held() } else { mine };
            // Release: the node is initialised before others see it. Acquire: of the predecessor's node, or of
            // what the last holder wrote.
            match self.tail.compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if before.is_null() => return,
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        if before == held() {
            self.next.store(mine, Ordering::Release);
        } else {
            // SAFETY: the predecessor does not leave step 3 before this link is set, since the tail is no longer
            // its own node.
            unsafe { &*before }.next.store(mine, Ordering::Release);
        }
        await_grant::<W>(&node.state);

        let mut after = node.next.load(Ordering::Acquire);
        if after.is_null() {
            self.next.store(null_mut(), Ordering::Relaxed);
            // Release: whoever reads HELD from here writes `next` after the line above.
            if self.tail.compare_exchange(mine, held(), Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            after = await_link(&node.next);
        }
        self.next.store(after, Ordering::Relaxed);
    }
}

// SAFETY: the tail leaves null by one thread's compare-and-swap; after that the lock passes along the queue, each
// holder granting one successor. Granting (Release) and waiting (Acquire) pair, as do the tail's writes. The
// grant, or writing null, is the last touch of the lock: a granted node is its waiter's.
unsafe impl<W: Wait> RawLock for Mcs<W> {
    const NAME: &'static str = "mcs";
    const FIFO: bool = true;
    const QUICK: Quick = Quick::POINTER;
    #[cfg(not(loom))]
    const INIT: Self =
        Mcs { tail: AtomicPtr::new(null_mut()), next: AtomicPtr::new(null_mut()), policy: PhantomData };

    #[inline]
    fn lock(&self) -> Token {
        if !self.attempt() {
            self.contend();
        }
        Token::NONE
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        self.attempt().then_some(Token::NONE)
    }

    #[inline]
    unsafe fn unlock(&self, _: Token) {
        let mut after = self.next.load(Ordering::Acquire);
        if after.is_null() {
            if self.tail.compare_exchange(held(), null_mut(), Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            after = await_link(&self.next);
        }
        // SAFETY: the successor waits at its node until this grant.
        unsafe { grant::<W>(&raw const (*after).state) };
    }

    fn is_locked(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        if self.is_locked() {
            self.next.store(null_mut(), Ordering::Relaxed);
            self.tail.store(held(), Ordering::Relaxed);
        }
    }
}
