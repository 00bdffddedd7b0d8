//! The word that test-and-set and test-and-test-and-set share, with its sleepers.
//!
//! | bit | name | meaning | set by | cleared by |
//! |---|---|---|---|---|
//! | 0 | LOCKED | someone holds the lock | who acquires | who releases |
//! | 1 | SLEEPERS | a thread may sleep on the word | who goes to sleep, and who acquires after having slept | who releases |
//!
//! Releasing clears both bits and wakes one sleeper if SLEEPERS was set. More may sleep, of whom the bit no
//! longer tells: so a thread that has slept acquires with SLEEPERS set, and its own release wakes the next.

use crate::primitive::{ANY, AtomicU32, Deadline, Ordering, Woken, wait, wake};
use crate::wait::{Wait, WaitStep};

pub(crate) const LOCKED: u32 = 1;
pub(crate) const SLEEPERS: u32 = 2;

/// Whether `fetch_or` with `LOCKED` acquired.
#[inline]
pub(crate) fn test_and_set(word: &AtomicU32) -> bool {
    word.fetch_or(LOCKED, Ordering::Acquire) & LOCKED == 0
}

/// Acquires after waiting by `W`. `look` says whether the word is worth a test-and-set, `failed` is called
/// after each one that lost. False: the deadline is over.
#[inline]
pub(crate) fn acquire<W: Wait>(
    word: &AtomicU32,
    until: Option<Deadline>,
    look: impl Fn(u32) -> bool,
    mut failed: impl FnMut(),
) -> bool {
    let mut policy = W::begin();
    let mut slept = false;
    let acquired = loop {
        let seen = word.load(Ordering::Relaxed);
        if look(seen) {
            let mark = if slept { LOCKED | SLEEPERS } else { LOCKED };
            if word.fetch_or(mark, Ordering::Acquire) & LOCKED == 0 {
                break true;
            }
            failed();
        }
        #[cfg(feature = "std")]
        if !W::SLEEPS && until.is_some_and(|deadline| deadline.left_ns().is_none()) {
            break false;
        }
        if policy.step(word, seen | LOCKED) == WaitStep::Sleep {
            // Marks and tries in one: the holder may have left meanwhile.
            if word.fetch_or(LOCKED | SLEEPERS, Ordering::Acquire) & LOCKED == 0 {
                break true;
            }
            slept = true;
            if wait(word, LOCKED | SLEEPERS, ANY, until) == Woken::TimedOut {
                break false;
            }
        }
    };
    policy.end();
    acquired
}

/// Releases.
#[inline]
pub(crate) fn release<W: Wait>(word: &AtomicU32) {
    if !W::SLEEPS && !cfg!(loom) {
        // Nobody marks: nothing to lose by a plain store. (loom does not see that a failing fetch_or comes before
        // this store or after it, and would show its old value for ever; it gets the swap.)
        word.store(0, Ordering::Release);
    } else if word.swap(0, Ordering::Release) & SLEEPERS != 0 {
        wake(word, 1, ANY);
    }
}
