//! Sleeping for condition variables, and a small lock for their lists.
//!
//! Under loom its atomics and a stand-in for the kernel's futexes take their place (`tests/loom.rs`).

use libc::{c_int, timespec};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

#[cfg(not(loom))]
pub(crate) use kernel::{give_way, wait, wake};
#[cfg(loom)]
pub(crate) use stand_in::{give_way, time_passes, wait, wake};

/// A deadline that the kernel accepts.
#[derive(Clone, Copy)]
#[cfg_attr(loom, allow(dead_code))]
pub(crate) struct Until {
    pub(crate) clock: c_int,
    pub(crate) at: timespec,
}

#[cfg(not(loom))]
mod kernel {
    use super::{AtomicU32, Until};
    use libc::{c_int, c_long, timespec};
    use wattwise_locks::keep_errno;

    // Not `libc::syscall`: cancelling a thread unwinds through this call, which the declaration must allow.
    unsafe extern "C-unwind" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    /// Sleeps while `word` holds `expected`. True: the deadline is over.
    pub(crate) extern "C-unwind" fn wait(word: &AtomicU32, expected: u32, until: Option<&Until>) -> bool {
        let mut op = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        let at = match until {
            None => std::ptr::null(),
            Some(until) => {
                if until.clock == libc::CLOCK_REALTIME {
                    op |= libc::FUTEX_CLOCK_REALTIME;
                }
                if until.at.tv_sec < 0 {
                    return true;
                }
                &raw const until.at
            }
        };
        let none = std::ptr::null::<u32>();
        // SAFETY: `word` and `at` are valid for the call, or `at` is null, which means none.
        keep_errno(|| unsafe {
            let done = syscall(libc::SYS_futex, word.as_ptr(), op, expected, at, none, u32::MAX);
            done == -1 && *libc::__errno_location() == libc::ETIMEDOUT
        })
    }

    /// Wakes up to `count` sleepers. The address need not be valid any more.
    pub(crate) fn wake(word: *const AtomicU32, count: c_int) {
        let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: FUTEX_WAKE does not read the address.
        keep_errno(|| unsafe { syscall(libc::SYS_futex, word, op, count) });
    }

    /// Lets others run, after some rounds also those of a lower priority. No point of cancellation.
    pub(crate) fn give_way(round: u32) {
        const YIELDS: u32 = 4;
        const FIRST_NAP_NS: i64 = 50_000;
        let Some(nap) = round.checked_sub(YIELDS) else {
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
            return;
        };
        let nap = timespec { tv_sec: 0, tv_nsec: FIRST_NAP_NS << nap.min(8) };
        let nobody_wakes = 0_u32;
        let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the time are valid for the call.
        keep_errno(|| unsafe { syscall(libc::SYS_futex, &raw const nobody_wakes, op, 0, &raw const nap) });
    }
}

/// Has the futex's rules: the value is compared and the sleeper enqueued in one step that no wake can fall between; a
/// wake takes the oldest at its address, which need not exist any more.
#[cfg(loom)]
mod stand_in {
    use super::{AtomicU32, Ordering, Until};
    use libc::c_int;
    use loom::sync::{Condvar, Mutex};

    #[derive(Default)]
    struct LoomSleepers {
        next: u64,
        /// Address and a number of its own for each sleeper, oldest first.
        queue: Vec<(usize, u64)>,
        /// All deadlines are.
        over: bool,
    }

    loom::lazy_static! {
        static ref SLEEPERS: Mutex<LoomSleepers> = Mutex::new(LoomSleepers::default());
        static ref BELL: Condvar = Condvar::new();
    }

    pub(crate) fn wait(word: &AtomicU32, expected: u32, until: Option<&Until>) -> bool {
        let mut sleepers = SLEEPERS.lock().expect("nobody panics with it");
        if word.load(Ordering::SeqCst) != expected {
            return false;
        }
        let mine = sleepers.next;
        sleepers.next += 1;
        sleepers.queue.push((std::ptr::from_ref(word).addr(), mine));
        loop {
            if sleepers.queue.iter().all(|sleeper| sleeper.1 != mine) {
                return false;
            }
            if sleepers.over && until.is_some() {
                sleepers.queue.retain(|sleeper| sleeper.1 != mine);
                return true;
            }
            sleepers = BELL.wait(sleepers).expect("nobody panics with it");
        }
    }

    pub(crate) fn wake(word: *const AtomicU32, count: c_int) {
        let mut sleepers = SLEEPERS.lock().expect("nobody panics with it");
        let mut left = count;
        sleepers.queue.retain(|sleeper| {
            let met = left > 0 && sleeper.0 == word.addr();
            left -= c_int::from(met);
            !met
        });
        drop(sleepers);
        BELL.notify_all();
    }

    /// From here on every deadline is over. A thread of its own calls it, so that this falls anywhere.
    pub(crate) fn time_passes() {
        SLEEPERS.lock().expect("nobody panics with it").over = true;
        BELL.notify_all();
    }

    pub(crate) fn give_way(_: u32) {
        loom::thread::yield_now();
    }
}

/// A lock for a few instructions: 0 free, 1 held, 2 held and someone may sleep.
pub(crate) struct Small<'a>(&'a AtomicU32);

impl<'a> Small<'a> {
    pub(crate) fn lock(word: &'a AtomicU32) -> Small<'a> {
        if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while word.swap(2, Ordering::Acquire) != 0 {
                wait(word, 2, None);
            }
        }
        Small(word)
    }

    /// Not by drop: frames that a cancelled thread is unwound through must have nothing to drop.
    pub(crate) fn unlock(self) {
        if self.0.swap(0, Ordering::Release) == 2 {
            wake(self.0, 1);
        }
    }
}
