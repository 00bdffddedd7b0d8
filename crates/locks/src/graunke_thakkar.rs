//! `graunke-thakkar`: a queue through one swapped word, on slots that stay where they are.
//!
//! It keeps N slots, each on a cache line of its own, and the queue's tail.
//!
//! | word | bits | meaning | written by |
//! |---|---|---|---|
//! | `tail` | 63..32 | slot of the last in the queue | who arrives |
//! | | 31..0 | that slot's count once its owner has released | |
//! | a slot | 31..2 | releases through this slot | its owner, on releasing |
//! | | 1 CLAIMED | a thread owns the slot | who arrives; its owner, on releasing |
//! | | 0 SLEEPERS | the successor may sleep on this word | the successor; the owner, on releasing |
//!
//! 1. Claim a slot. Search from a place that depends on the thread's stack, so that threads come back to
//!    their own line.
//! 2. Swap (slot, its count + 1) into the tail and get the predecessor's pair.
//! 3. Wait until the predecessor's slot has that count.
//! 4. Release: raise the own slot's count, which also gives up the claim and clears the mark, in one write;
//!    wake the successor if it was marked.
//!
//! Each waiter watches one line that one thread writes (Graunke and Thakkar, 1990). The original has a slot for
//! each processor and flips a bit; slots here are claimed, since threads outnumber processors, and count, so
//! that a slot may be used again while its successor has not looked yet. More than N at once wait for a slot,
//! in no order among themselves.

use crate::primitive::{ANY, AtomicU32, AtomicU64, Ordering, relax, wait, wake, yield_core};
use crate::raw::{RawLock, Token};
use crate::wait::{Wait, WaitStep};
use core::marker::PhantomData;

const SLEEPERS: u32 = 1;
const CLAIMED: u32 = 2;
/// One release.
const ONE: u32 = 4;

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct FlagSlot(AtomicU32);

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct GraunkeThakkar<W, const N: usize = 64> {
    slots: [FlagSlot; N],
    tail: Tail,
    policy: PhantomData<fn() -> W>,
}

#[repr(C, align(128))]
#[derive(Debug, Default)]
struct Tail(AtomicU64);

impl<W, const N: usize> Default for GraunkeThakkar<W, N> {
    fn default() -> Self {
        GraunkeThakkar {
            slots: core::array::from_fn(|_| FlagSlot::default()),
            tail: Tail::default(),
            policy: PhantomData,
        }
    }
}

/// A slot's count as it will be after the release that is due.
#[inline]
fn released(word: u32) -> u32 {
    (word & !(ONE - 1)).wrapping_add(ONE)
}

#[inline]
fn pair(slot: usize, count: u32) -> u64 {
    (slot as u64) << 32 | u64::from(count)
}

impl<W: Wait, const N: usize> GraunkeThakkar<W, N> {
    /// The slot and count of a tail.
    #[inline]
    fn of(&self, tail: u64) -> (&AtomicU32, u32) {
        (&self.slots[(tail >> 32) as usize % N].0, tail as u32)
    }

    /// Claims a slot if one is free within one round; gives it with its word.
    #[inline]
    fn claim(&self) -> Option<(usize, u32)> {
        let start = crate::primitive::thread_hint();
        (0..N).map(|i| start.wrapping_add(i) % N).find_map(|at| {
            let slot = &self.slots[at].0;
            let word = slot.load(Ordering::Relaxed);
            let free = word & CLAIMED == 0;
            let claims =
                || slot.compare_exchange(word, word | CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok();
            (free && claims()).then_some((at, word))
        })
    }

    #[cold]
    fn contend(&self, slot: &AtomicU32, count: u32) {
        let mut policy = W::begin();
        loop {
            let seen = slot.load(Ordering::Acquire);
            if seen & !(ONE - 1) == count {
                break;
            }
            if policy.step(slot, seen) == WaitStep::Sleep {
                let marked = slot.fetch_or(SLEEPERS, Ordering::Acquire) | SLEEPERS;
                if marked & !(ONE - 1) == count {
                    break;
                }
                wait(slot, marked, ANY, None);
            }
        }
        policy.end();
    }
}

// SAFETY: the swap puts arrivals in one order, each waits for the release of the one before it, and only unlock
// raises a slot's count. A slot that is used again is enqueued behind its successor, so the count that the
// successor waits for stays until it has seen it. All zero: the tail names slot 0 with the count that it has.
// The write that releases is the last touch but for waking by address.
unsafe impl<W: Wait, const N: usize> RawLock for GraunkeThakkar<W, N> {
    const NAME: &'static str = "graunke-thakkar";
    const FIFO: bool = true;
    #[cfg(not(loom))]
    const INIT: Self = GraunkeThakkar {
        slots: [const { FlagSlot(AtomicU32::new(0)) }; N],
        tail: Tail(AtomicU64::new(0)),
        policy: PhantomData,
    };

    #[inline]
    fn lock(&self) -> Token {
        let mut rounds = 0;
        let (at, word) = loop {
            if let Some(claimed) = self.claim() {
                break claimed;
            }
            // All slots are taken: those threads must run, and there are more of them than cores.
            if rounds < 2 {
                relax()
            } else {
                yield_core()
            }
            rounds += 1;
        };
        // AcqRel: the successor sees the claim's word; this thread the predecessor's.
        let before = self.tail.0.swap(pair(at, released(word)), Ordering::AcqRel);
        let (slot, count) = self.of(before);
        if slot.load(Ordering::Acquire) & !(ONE - 1) != count {
            self.contend(slot, count);
        }
        Token(at)
    }

    fn try_lock(&self) -> Option<Token> {
        let tail = self.tail.0.load(Ordering::Acquire);
        let (slot, count) = self.of(tail);
        if slot.load(Ordering::Acquire) & !(ONE - 1) != count {
            return None;
        }
        let (at, word) = self.claim()?;
        let mine = pair(at, released(word));
        if self.tail.0.compare_exchange(tail, mine, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Nobody waits on a slot that was never enqueued since.
            self.slots[at].0.fetch_and(!CLAIMED, Ordering::Release);
            return None;
        }
        Some(Token(at))
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        let slot = &self.slots[token.0 % N].0;
        let after = released(slot.load(Ordering::Relaxed));
        if !W::SLEEPS {
            slot.store(after, Ordering::Release);
        } else if slot.swap(after, Ordering::Release) & SLEEPERS != 0 {
            wake(slot, i32::MAX, ANY);
        }
    }

    fn is_locked(&self) -> bool {
        let (slot, count) = self.of(self.tail.0.load(Ordering::Acquire));
        slot.load(Ordering::Acquire) & !(ONE - 1) != count
    }

    unsafe fn forget_waiters(&self, held: Option<Token>) {
        let was_locked = self.is_locked();
        for (at, slot) in self.slots.iter().enumerate() {
            let keep = held.is_some_and(|token| token.0 == at) || (was_locked && held.is_none());
            let mask = if keep { !SLEEPERS } else { !(SLEEPERS | CLAIMED) };
            slot.0.fetch_and(mask, Ordering::Relaxed);
        }
        if let Some(token) = held {
            let word = self.slots[token.0 % N].0.load(Ordering::Relaxed);
            self.tail.0.store(pair(token.0, released(word)), Ordering::Relaxed);
        }
    }
}
