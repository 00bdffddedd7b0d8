//! Sleeping for condition variables, and a small lock for their lists.

use libc::{c_int, c_long, timespec};
use std::sync::atomic::{AtomicU32, Ordering};

// Not `libc::syscall`: cancelling a thread unwinds through this call, which the declaration must allow.
unsafe extern "C-unwind" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
}

/// A deadline that the kernel accepts.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    pub(crate) clock: c_int,
    pub(crate) at: timespec,
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
    // SAFETY: `word` and `at` are valid for the call, or `at` is null, which means none.
    unsafe {
        let none = std::ptr::null::<u32>();
        let done = syscall(libc::SYS_futex, word.as_ptr(), op, expected, at, none, u32::MAX);
        done == -1 && *libc::__errno_location() == libc::ETIMEDOUT
    }
}

/// Wakes up to `count` sleepers. The address need not be valid any more.
pub(crate) fn wake(word: *const AtomicU32, count: c_int) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: FUTEX_WAKE does not read the address.
    unsafe { syscall(libc::SYS_futex, word, op, count) };
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
