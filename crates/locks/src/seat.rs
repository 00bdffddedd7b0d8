//! Where threads sleep that have a number: on a word for the number, not all on one.
//!
//! A futex tells sleepers of one word apart by 32 bits. With a thousand of them, a wake-up for one number would wake thirty,
//! each of which would look and sleep again, and the kernel would search the whole queue for them.
//!
//! The words are a table for all locks of the process; two numbers, or two locks, that meet in one disturb each other and
//! nothing more. Each counts the wake-ups given there.
//!
//! 1. Sleep: read the word, look whether the number is called, sleep while the word is as it was read.
//! 2. Call: call the number, count the word up, wake who sleeps there with the number's bit. Who reads the word after
//!    that finds the number called; who read it before does not fall asleep, or is woken.
//!
//! (A waiting array: Dice and Kogan, "TWA: ticket locks augmented with a waiting array", 2019.)

use crate::primitive::{AtomicU32, Ordering, wait, wake};

/// 1 KiB. With the 32 bits, 8192 threads that sleep at one lock are told apart.
#[cfg(not(loom))]
const SEATS: usize = 256;
#[cfg(not(loom))]
static TABLE: [AtomicU32; SEATS] = [const { AtomicU32::new(0) }; SEATS];

/// In models few, so that numbers meet.
#[cfg(loom)]
const SEATS: usize = 2;
#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: [AtomicU32; SEATS] = [AtomicU32::new(0), AtomicU32::new(0)];
}

/// The word of one number of one lock.
pub(crate) struct Seat {
    word: &'static AtomicU32,
    bit: u32,
}

impl Seat {
    /// `lock` is an address that is the lock's alone.
    pub(crate) fn of<T>(lock: *const T, number: u32) -> Seat {
        // Locks are often in arrays; the odd factor spreads them. In models addresses differ from run to run.
        let lock = if cfg!(loom) { 0 } else { (lock.addr() >> 3).wrapping_mul(0x9E37_79B1) >> 8 };
        let number = number as usize;
        Seat { word: &TABLE[lock.wrapping_add(number) % SEATS], bit: 1 << (number / SEATS % 32) }
    }

    /// Step 1, before looking whether the number is called.
    pub(crate) fn read(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    /// Step 1, since it is not.
    pub(crate) fn sleep(&self, read: u32) {
        wait(self.word, read, self.bit, None);
    }

    /// Step 2, after calling the number.
    #[cold]
    pub(crate) fn call(&self) {
        self.word.fetch_add(1, Ordering::Release);
        wake(self.word, i32::MAX, self.bit);
    }
}
