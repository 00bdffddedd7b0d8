//! Cancelling a thread that sleeps on a condition variable.
//!
//! A thread whose cancellation is deferred is not disturbed by glibc: it finds out when it looks. One that sleeps has to be woken.
//! glibc until 2.40 makes its cancellation asynchronous for the length of the sleep, and a handler of a signal that runs
//! meanwhile is then cancelled in the middle of what it does. Here it stays deferred:
//!
//! 1. Sleep: note the thread and its node among `Sleepers`, then look for a cancellation (`pthread_testcancel`), then sleep
//!    at the node while that is WAITING; awake and still WAITING, look and sleep again.
//! 2. `pthread_cancel`: glibc's marks the thread. Then its node, if there is one, becomes POKED and is woken.
//! 3. One that was poked becomes WAITING again before it looks. If it may not be cancelled now, it sleeps on.
//!
//! No cancellation is slept through: whoever notes itself after step 2 looked for it finds the mark, and whoever did before is
//! poked. A handler that runs delays the look until it is over.

use crate::page::PAGE;
use crate::real;
use crate::sleepers::Sleepers;
use libc::{c_int, pthread_t};
use std::ptr::null_mut;

/// PTHREAD_CANCEL_DISABLE.
const CANCEL_DISABLE: c_int = 1;

/// Where a thread is noted.
pub(crate) fn sleepers(thread: pthread_t) -> &'static Sleepers {
    // A thread's is an address, and their stacks are often as far apart; the odd factor spreads them.
    let spread = (thread as usize >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    &PAGE.sleepers[spread % PAGE.sleepers.len()]
}

/// POSIX `pthread_cancel`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    // SAFETY: by contract.
    let done = unsafe { real::cancel(thread) };
    if done == 0 {
        // A thread may be cancelled anywhere in this function, but not while it holds the list's lock.
        let mut before = 0;
        // SAFETY: `before` is valid for writes.
        unsafe { real::set_cancel_state(CANCEL_DISABLE, &raw mut before) };
        sleepers(thread).poke(thread as usize);
        // SAFETY: null is allowed.
        unsafe { real::set_cancel_state(before, null_mut()) };
    }
    done
}
