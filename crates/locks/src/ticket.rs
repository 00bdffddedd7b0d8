//! `ticket`: take a number, wait until it is called; back-off in proportion to the numbers before.
//!
//! It keeps two words.
//!
//! | word | bits | meaning | written by |
//! |---|---|---|---|
//! | `next` | 31..0 | the number that the next thread takes | who arrives |
//! | `serving` | 31..1 | the number that is called | who releases |
//! | | 0 SLEEPERS | a thread may sleep on this word | who goes to sleep; who releases, when nobody waits |
//!
//! 1. Take a number. If it is being called, the lock is held: one atomic addition in all.
//! 2. Else back off for `PER_TURN_NS` for each number in between but the last, and look again: whoever is
//!    far from its turn need not watch the line (Mellor-Crummey and Scott, 1991). The last turn waits by
//!    the policy.
//! 3. To sleep, mark SLEEPERS and sleep on `serving` with the bit `number mod 32`.
//! 4. Release: call the next number. If SLEEPERS is marked, wake the sleepers whose bit is that number's: one
//!    thread as long as fewer than 32 sleep, and never all of them.
//! 5. SLEEPERS stays marked while anyone waits, since nobody knows who still sleeps. A releaser that finds no
//!    number taken after its own clears the mark, *looks at `next` again*, and puts the mark back if someone
//!    came meanwhile: a waiter takes its number before it marks, so one of the two sees the other.
//!
//! FIFO. With more threads than CPUs the number that is called often belongs to a thread that does not run:
//! spinning collapses, parking pays a wake-up for each turn.

use crate::primitive::{AtomicU32, Ordering, wait, wake};
use crate::raw::{RawLock, Token};
use crate::tsc;
use crate::wait::{Step, Wait};
use core::marker::PhantomData;

const SLEEPERS: u32 = 1;
/// One number in `serving`.
const ONE: u32 = 2;

/// About a short section with its hand-over. Too long a guess leaves a called thread away from the line; with
/// the last turn left out that costs at most one turn.
const PER_TURN_NS: u64 = 200;

/// More turns than this are backed off as this many: a section may be over sooner than guessed.
const TURNS: u64 = 16;

/// See the module's essay.
#[repr(C)]
#[derive(Debug)]
pub struct Ticket<W> {
    next: AtomicU32,
    serving: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Ticket<W> {
    fn default() -> Self {
        Ticket { next: Default::default(), serving: Default::default(), policy: PhantomData }
    }
}

/// A taken number as `serving` will show it, without the mark. Numbers count modulo 2^31.
#[inline]
fn called(number: u32) -> u32 {
    number.wrapping_mul(ONE)
}

/// The sleepers' bit of a number.
#[inline]
fn bit_of(number: u32) -> u32 {
    1 << (number % 32)
}

impl<W: Wait> Ticket<W> {
    #[cold]
    fn contend(&self, number: u32) {
        let mut policy = W::begin();
        loop {
            let seen = self.serving.load(Ordering::Acquire);
            let before = called(number).wrapping_sub(seen & !SLEEPERS) / ONE;
            if before == 0 {
                break;
            }
            if !W::SLEEPS && before > 1 {
                let turns = u64::from(before - 1).min(TURNS);
                tsc::pause_for(turns * PER_TURN_NS * tsc::per_us() / 1000);
            }
            if policy.step(&self.serving, seen) == Step::Sleep {
                // Release: whoever clears this mark in step 5 sees that the number was taken before.
                let marked = self.serving.fetch_or(SLEEPERS, Ordering::AcqRel) | SLEEPERS;
                if marked & !SLEEPERS == called(number) {
                    break;
                }
                wait(&self.serving, marked, bit_of(number), None);
            }
        }
        policy.end();
    }
}

// SAFETY: numbers are handed out once each (modulo 2^31 waiters), and only the thread whose number is called
// returns a token; only unlock calls the next. Release and Acquire on `serving` pair. After the addition that
// calls the next number nothing is touched but for waking by address.
unsafe impl<W: Wait> RawLock for Ticket<W> {
    const NAME: &'static str = "ticket";
    const FIFO: bool = true;
    #[cfg(not(loom))]
    const INIT: Self = Ticket { next: AtomicU32::new(0), serving: AtomicU32::new(0), policy: PhantomData };

    #[inline]
    fn lock(&self) -> Token {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.serving.load(Ordering::Acquire) & !SLEEPERS != called(number) {
            self.contend(number);
        }
        Token(number as usize)
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        let number = self.next.load(Ordering::Relaxed);
        if self.serving.load(Ordering::Acquire) & !SLEEPERS != called(number) {
            return None;
        }
        // If the number is still to be had, it is still the one that is called.
        let following = number.wrapping_add(1);
        let took = self.next.compare_exchange(number, following, Ordering::Relaxed, Ordering::Relaxed);
        took.ok().map(|_| Token(number as usize))
    }

    #[inline]
    unsafe fn unlock(&self, token: Token) {
        let number = token.0 as u32;
        let following = number.wrapping_add(1);
        if !W::SLEEPS {
            // Only the holder writes `serving`.
            return self.serving.store(called(following), Ordering::Release);
        }
        if self.serving.load(Ordering::Relaxed) & SLEEPERS != 0
            && self.next.load(Ordering::Relaxed) == following
        {
            // Step 5. Acquire: a mark that this clears came after its number was taken.
            self.serving.fetch_and(!SLEEPERS, Ordering::Acquire);
            if self.next.load(Ordering::Relaxed) != following {
                self.serving.fetch_or(SLEEPERS, Ordering::Relaxed);
            }
        }
        let before = self.serving.fetch_add(ONE, Ordering::Release);
        if before & SLEEPERS != 0 {
            wake(&self.serving, i32::MAX, bit_of(following));
        }
    }

    fn is_locked(&self) -> bool {
        // `serving` first: it never passes `next`.
        let serving = self.serving.load(Ordering::Acquire) & !SLEEPERS;
        called(self.next.load(Ordering::Relaxed)) != serving
    }

    unsafe fn forget_waiters(&self, held: Option<Token>) {
        let serving = self.serving.load(Ordering::Relaxed) & !SLEEPERS;
        let next = match held {
            Some(token) => (token.0 as u32).wrapping_add(1),
            // Nobody here holds it; if a thread that is gone does, it stays held.
            None if called(self.next.load(Ordering::Relaxed)) == serving => return,
            None => (serving / ONE).wrapping_add(1),
        };
        self.next.store(next, Ordering::Relaxed);
        self.serving.store(serving, Ordering::Relaxed);
    }
}
