//! Atomics, hints and sleeping: the real ones, or loom's.
//!
//! Nothing else in the crate names `core::sync`, `loom` or a system call, so that the models in
//! `tests/loom.rs` check the very code that runs.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(crate) use sleep::{wait, wake};

/// Every sleeper of a word, whatever it waits for.
pub(crate) const ANY: u32 = u32::MAX;

/// When a wait gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The clock that the time is of.
    pub clock: Clock,
    /// Seconds of that clock.
    pub secs: i64,
    /// And nanoseconds, under a thousand million.
    pub nanos: u32,
}

/// Clocks that a kernel can wake by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Steady since boot.
    Monotonic,
    /// The date, which can be set.
    Realtime,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Woken, disturbed, or never asleep because the word had changed: look again.
    Perhaps,
    /// The deadline is over.
    TimedOut,
}

/// A number that is likely to differ between threads and to stay the same within one: where its stack is.
#[inline]
pub(crate) fn thread_hint() -> usize {
    if cfg!(loom) {
        // Executions of a model must repeat.
        return 0;
    }
    let here = 0_u8;
    // Stacks are pages apart; the odd factor spreads them.
    (core::ptr::from_ref(&here).addr() >> 12).wrapping_mul(0x9E37_79B1) >> 8
}

/// One PAUSE: tells an SMT sibling and the power management that this thread only looks.
#[inline]
pub(crate) fn relax() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Gives the core to whoever is next in the kernel's queue.
#[inline]
pub(crate) fn yield_core() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(all(not(loom), feature = "std"))]
    std::thread::yield_now();
    #[cfg(all(not(loom), not(feature = "std")))]
    core::hint::spin_loop();
}

/// Runs something that may fail and leaves `errno` as it was. A program may lock between a call of its own that failed and
/// the use of `errno`, and the C library's locks do not change it: nor does anything here.
///
/// What runs may end by unwinding; `errno` is then of no interest.
#[inline]
pub fn keep_errno<T>(then: impl FnOnce() -> T) -> T {
    #[cfg(all(feature = "std", target_os = "linux"))]
    {
        // SAFETY: this thread's own.
        let before = unsafe { *libc::__errno_location() };
        let result = then();
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = before };
        result
    }
    #[cfg(not(all(feature = "std", target_os = "linux")))]
    then()
}

/// Linux futexes. Only addresses are kept by the kernel: waking a word that no longer exists is allowed and
/// at worst disturbs a stranger, who must look again anyway.
#[cfg(all(not(loom), not(miri), feature = "std", target_os = "linux"))]
mod sleep {
    use super::{AtomicU32, Clock, Deadline, Woken, keep_errno};

    /// Sleeps while `word` holds `expected`, until a [`wake`] whose bits meet `bits`.
    pub(crate) fn wait(word: &AtomicU32, expected: u32, bits: u32, until: Option<Deadline>) -> Woken {
        let mut op = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = match until {
            None => core::ptr::null(),
            Some(deadline) => {
                if deadline.clock == Clock::Realtime {
                    op |= libc::FUTEX_CLOCK_REALTIME;
                }
                // A time before the epoch is over; the kernel would call it invalid.
                if deadline.secs < 0 {
                    return Woken::TimedOut;
                }
                at.tv_sec = deadline.secs;
                at.tv_nsec = i64::from(deadline.nanos);
                &raw const at
            }
        };
        let none = core::ptr::null::<u32>();
        // SAFETY: `word` and `timeout` are valid for the call, or null where that means none.
        let timed_out = keep_errno(|| unsafe {
            let done = libc::syscall(libc::SYS_futex, word.as_ptr(), op, expected, timeout, none, bits);
            done == -1 && *libc::__errno_location() == libc::ETIMEDOUT
        });
        if timed_out { Woken::TimedOut } else { Woken::Perhaps }
    }

    /// Wakes up to `count` sleepers of the word at this address whose bits meet `bits`.
    pub(crate) fn wake(word: *const AtomicU32, count: i32, bits: u32) {
        let op = libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG;
        let none = core::ptr::null::<u32>();
        // SAFETY: FUTEX_WAKE does not read the address.
        keep_errno(|| unsafe { libc::syscall(libc::SYS_futex, word, op, count, none, none, bits) });
    }
}

/// A stand-in with the futex's rules: the value is compared and the sleeper enqueued in one step that no
/// wake can fall between; a wake takes the oldest whose bits meet. For loom, whose scheduler must see every
/// sleep, and for miri, which then needs no host system calls.
#[cfg(any(loom, miri))]
mod sleep {
    use super::{AtomicU32, Deadline, Ordering, Woken};
    #[cfg(loom)]
    use loom::sync::{Condvar, Mutex};
    #[cfg(not(loom))]
    use std::sync::{Condvar, Mutex};
    use std::vec::Vec;

    #[derive(Default)]
    struct LoomSleepers {
        next: u64,
        /// Address, bits and a number of its own for each sleeper, oldest first.
        queue: Vec<(usize, u32, u64)>,
    }

    #[cfg(loom)]
    loom::lazy_static! {
        static ref SLEEPERS: Mutex<LoomSleepers> = Mutex::new(LoomSleepers::default());
        static ref BELL: Condvar = Condvar::new();
    }
    #[cfg(not(loom))]
    static SLEEPERS: Mutex<LoomSleepers> = Mutex::new(LoomSleepers { next: 0, queue: Vec::new() });
    #[cfg(not(loom))]
    static BELL: Condvar = Condvar::new();

    pub(crate) fn wait(word: &AtomicU32, expected: u32, bits: u32, until: Option<Deadline>) -> Woken {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return Woken::Perhaps };
        if word.load(Ordering::SeqCst) != expected {
            return Woken::Perhaps;
        }
        if until.is_some() {
            // Time does not pass here: a deadline is always over.
            return Woken::TimedOut;
        }
        let mine = sleepers.next;
        sleepers.next += 1;
        sleepers.queue.push((core::ptr::from_ref(word).addr(), bits, mine));
        while sleepers.queue.iter().any(|s| s.2 == mine) {
            match BELL.wait(sleepers) {
                Ok(held) => sleepers = held,
                Err(_) => return Woken::Perhaps,
            }
        }
        Woken::Perhaps
    }

    pub(crate) fn wake(word: *const AtomicU32, count: i32, bits: u32) {
        let Ok(mut sleepers) = SLEEPERS.lock() else { return };
        let mut left = count;
        sleepers.queue.retain(|s| {
            let met = left > 0 && s.0 == word.addr() && s.1 & bits != 0;
            left -= i32::from(met);
            !met
        });
        drop(sleepers);
        BELL.notify_all();
    }
}

/// Without a kernel nobody sleeps: policies that could are not built, and a lock's own fallback looks again.
#[cfg(all(not(loom), not(miri), not(all(feature = "std", target_os = "linux"))))]
mod sleep {
    use super::{AtomicU32, Deadline, Woken};

    pub(crate) fn wait(_: &AtomicU32, _: u32, _: u32, until: Option<Deadline>) -> Woken {
        super::yield_core();
        if until.is_some() { Woken::TimedOut } else { Woken::Perhaps }
    }

    pub(crate) fn wake(_: *const AtomicU32, _: i32, _: u32) {}
}

#[cfg(feature = "std")]
impl Deadline {
    /// The deadline `nanos` from now.
    pub fn after(nanos: u64) -> Deadline {
        let now = now_ns(Clock::Monotonic).saturating_add(nanos);
        Deadline {
            clock: Clock::Monotonic,
            secs: (now / 1_000_000_000) as i64,
            nanos: (now % 1_000_000_000) as u32,
        }
    }

    /// Whether it is over; what is left in ns otherwise.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        if self.secs < 0 {
            return None;
        }
        let at = (self.secs as u64).saturating_mul(1_000_000_000).saturating_add(u64::from(self.nanos));
        at.checked_sub(now_ns(self.clock)).filter(|left| *left > 0)
    }
}

/// A clock's reading in ns.
#[cfg(feature = "std")]
fn now_ns(clock: Clock) -> u64 {
    let id = match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
    };
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps for about `nanos`; without a kernel, not at all. By a futex that nobody wakes, and not by nanosleep, which is a
/// point of cancellation in C: `pthread_mutex_lock` is none, and who is cancelled in it would leave its place for ever.
pub(crate) fn nap(nanos: u64) {
    #[cfg(all(not(loom), not(miri), feature = "std"))]
    wait(&AtomicU32::new(0), 0, ANY, Some(Deadline::after(nanos)));
    // Time does not pass there for who waits.
    #[cfg(all(not(loom), miri, feature = "std"))]
    std::thread::sleep(core::time::Duration::from_nanos(nanos));
    #[cfg(any(loom, not(feature = "std")))]
    {
        let _ = nanos;
        yield_core();
    }
}
