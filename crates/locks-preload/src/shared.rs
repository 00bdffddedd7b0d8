//! A condition variable that is shared between processes, with a mutex that is ours.
//!
//! Other processes may signal it, with or without this library, so it stays glibc's to the bit. But glibc would
//! unlock our mutex by its own rules. So it is given another mutex, on the waiter's stack, and a helper unlocks ours:
//!
//! 1. Lock the stand-in, a plain mutex of glibc's; start the helper, which asks for it and sleeps.
//! 2. Wait with the stand-in. glibc counts the waiter in and then unlocks the stand-in.
//! 3. That wakes the helper, which unlocks our mutex. So whoever can lock that finds the waiter counted, and no signal
//!    is lost.
//! 4. Woken, cancelled or late: unlock the stand-in, join the helper, lock our mutex.
//!
//! A thread for a wait takes some 30 us; programs that do this are few.

use crate::mutex::{may_wait, pthread_mutex_lock, unlock_for_its_owner, waits_with};
use crate::real::{self, CleanupBuffer};
use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};
use std::ptr::null_mut;
use wattwise_locks::keep_errno;

/// In the place of a clock: the one that the condition variable was made with.
pub(crate) const OWN_CLOCK: c_int = -1;

/// PTHREAD_CANCEL_DISABLE.
const CANCEL_DISABLE: c_int = 1;

/// On the waiter's stack.
struct Wait {
    stand_in: pthread_mutex_t,
    mutex: *mut pthread_mutex_t,
    helper: pthread_t,
}

/// Steps 1 and 3.
extern "C" fn help(wait: *mut c_void) -> *mut c_void {
    let wait = wait.cast::<Wait>();
    // SAFETY: the waiter's, who joins this thread before it goes on. Its mutex is locked by it until now.
    unsafe {
        let stand_in = &raw mut (*wait).stand_in;
        real::mutex_lock(stand_in);
        real::mutex_unlock(stand_in);
        unlock_for_its_owner((*wait).mutex);
    }
    null_mut()
}

/// Step 4; also what a cancelled waiter does, with the mutex locked when the program's own handlers run.
extern "C-unwind" fn end(wait: *mut c_void) {
    let wait = wait.cast::<Wait>();
    // SAFETY: the frame that is being left; the stand-in is locked by this thread.
    unsafe {
        let mut before = 0;
        real::set_cancel_state(CANCEL_DISABLE, &raw mut before);
        real::mutex_unlock(&raw mut (*wait).stand_in);
        libc::pthread_join((*wait).helper, null_mut());
        real::set_cancel_state(before, null_mut());
        pthread_mutex_lock((*wait).mutex);
        waits_with((*wait).mutex, false);
    }
}

/// A thread that no signal reaches.
///
/// # Safety
/// `wait` outlives it.
unsafe fn start(wait: *mut Wait) -> c_int {
    // SAFETY: all zeros is a set of signals; the rest by contract.
    unsafe {
        let (mut all, mut before) =
            (std::mem::zeroed::<libc::sigset_t>(), std::mem::zeroed::<libc::sigset_t>());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let failed = libc::pthread_create(&raw mut (*wait).helper, std::ptr::null(), help, wait.cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        failed
    }
}

/// `pthread_cond_wait` and its like: until a time of a clock, or of `OWN_CLOCK`; null is no time. Nothing in this frame has a destructor,
/// so that unwinding may leave it.
///
/// # Safety
/// As POSIX has it; the condition variable is glibc's and shared, the mutex is not glibc's.
pub(crate) unsafe extern "C-unwind" fn wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: c_int,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    let refused = unsafe { may_wait(mutex) };
    if refused != 0 {
        return refused;
    }
    let mut wait = Wait { stand_in: libc::PTHREAD_MUTEX_INITIALIZER, mutex, helper: 0 };
    let at = &raw mut wait;
    let stand_in = &raw mut wait.stand_in;
    let mut buffer = CleanupBuffer::new();
    // SAFETY: all of them live until the helper was joined, in `end`, which runs here or when the thread is cancelled.
    unsafe {
        real::mutex_lock(stand_in);
        if keep_errno(|| start(at)) != 0 {
            // No thread is to be had: as one without a place to wait.
            return libc::EAGAIN;
        }
        waits_with(mutex, true);
        real::cleanup_push(&raw mut buffer, end, at.cast());
        let done = match clock {
            _ if until.is_null() => real::cond_wait(cond, stand_in),
            OWN_CLOCK => real::cond_timedwait(cond, stand_in, until),
            clock => real::cond_clockwait(cond, stand_in, clock, until),
        };
        real::cleanup_pop(&raw mut buffer, 0);
        end(at.cast());
        done
    }
}
