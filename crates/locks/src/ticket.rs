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
//! 3. To sleep, mark SLEEPERS and sleep at the number's seat (`seat.rs`).
//! 4. Release: call the next number. If SLEEPERS is marked, wake who sleeps at that number's seat: one thread as long as
//!    fewer than 8192 sleep.
//! 5. SLEEPERS stays marked while anyone waits, since nobody knows who still sleeps. A releaser that finds no
//!    number taken after its own clears the mark, *looks at `next` again*, and puts the mark back if someone
//!    came meanwhile: a waiter takes its number before it marks, so one of the two sees the other.
//!
//! The number of an acquisition is not kept: while the lock is held, it is the one that `serving` shows. While nobody else has
//! taken one, a compare-and-swap of `next` acquires and an addition to `serving` releases ([`Ticket::acquire_free`],
//! [`Ticket::release_alone`]); a SLEEPERS that is still marked leaves both to the other functions.
//!
//! FIFO. With more threads than CPUs the number that is called often belongs to a thread that does not run:
//! spinning collapses, parking pays a wake-up for each turn.

use crate::primitive::{AtomicU32, Ordering};
use crate::raw::{Quick, RawLock, Token};
use crate::seat::Seat;
use crate::tsc;
use crate::wait::{Wait, WaitStep};
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

impl<W> Ticket<W> {
    /// Acquires if the lock is free and no sleeper is marked. True: it is this thread's, with any token.
    #[inline(always)]
    pub fn acquire_free(&self) -> bool {
        let number = self.next.load(Ordering::Relaxed);
        if self.serving.load(Ordering::Acquire) != called(number) {
            return false;
        }
        // If the number is still to be had, it is still the one that is called.
        let following = number.wrapping_add(1);
        self.next.compare_exchange(number, following, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Releases if the lock is held and, as it seems, no number was taken since and no sleeper is marked. Only the holder may
    /// call it, or anyone while nobody holds the lock. False: nothing was done.
    #[inline(always)]
    pub fn release_alone(&self) -> bool {
        let serving = self.serving.load(Ordering::Relaxed);
        let following = serving.wrapping_add(ONE);
        // A mark differs in the lowest bit.
        if called(self.next.load(Ordering::Relaxed)) != following {
            return false;
        }
        self.call(following);
        true
    }

    /// Step 4. `following` is the next number as `serving` will show it.
    #[inline(always)]
    fn call(&self, following: u32) {
        // After the addition the lock may be gone: an address alone.
        let lock = &raw const self.serving;
        if self.serving.fetch_add(ONE, Ordering::Release) & SLEEPERS != 0 {
            call_sleeper(lock, following);
        }
    }
}

/// Where who waits for `serving` to be this, without the mark, sleeps.
fn seat(lock: *const AtomicU32, serving: u32) -> Seat {
    Seat::of(lock, serving / ONE)
}

#[cold]
#[inline(never)]
fn call_sleeper(lock: *const AtomicU32, serving: u32) {
    seat(lock, serving).call();
}

impl<W: Wait> Ticket<W> {
    #[cold]
    fn contend(&self, number: u32) {
        let mut policy = W::begin();
        let seat = seat(&raw const self.serving, called(number));
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
            if policy.step(&self.serving, seen) == WaitStep::Sleep {
                let read = seat.read();
                // Release: whoever clears this mark in step 5 sees that the number was taken before.
                let marked = self.serving.fetch_or(SLEEPERS, Ordering::AcqRel) | SLEEPERS;
                if marked & !SLEEPERS == called(number) {
                    break;
                }
                seat.sleep(read);
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
    const QUICK: Quick = Quick::Numbers;
    #[cfg(not(loom))]
    const INIT: Self = Ticket { next: AtomicU32::new(0), serving: AtomicU32::new(0), policy: PhantomData };

    #[inline]
    fn lock(&self) -> Token {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.serving.load(Ordering::Acquire) & !SLEEPERS != called(number) {
            self.contend(number);
        }
        Token::NONE
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
        took.ok().map(|_| Token::NONE)
    }

    #[inline]
    unsafe fn unlock(&self, _: Token) {
        let serving = self.serving.load(Ordering::Relaxed);
        let following = (serving & !SLEEPERS).wrapping_add(ONE);
        if !W::SLEEPS {
            // Only the holder writes `serving`.
            return self.serving.store(following, Ordering::Release);
        }
        if serving & SLEEPERS != 0 && called(self.next.load(Ordering::Relaxed)) == following {
            // Step 5. Acquire: a mark that this clears came after its number was taken.
            self.serving.fetch_and(!SLEEPERS, Ordering::Acquire);
            if called(self.next.load(Ordering::Relaxed)) != following {
                self.serving.fetch_or(SLEEPERS, Ordering::Relaxed);
            }
        }
        self.call(following);
    }

    fn is_locked(&self) -> bool {
        // `serving` first: it never passes `next`.
        let serving = self.serving.load(Ordering::Acquire) & !SLEEPERS;
        called(self.next.load(Ordering::Relaxed)) != serving
    }

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        let serving = self.serving.load(Ordering::Relaxed) & !SLEEPERS;
        if called(self.next.load(Ordering::Relaxed)) != serving {
            // Held by this thread, or by one that is gone and then for ever.
            self.next.store((serving / ONE).wrapping_add(1), Ordering::Relaxed);
        }
        self.serving.store(serving, Ordering::Relaxed);
    }
}
