//! `pthread_cond_*`.
//!
//! A `pthread_cond_t` of ours is a `Cond` (`waiters.rs` draws it). `flags` is where glibc keeps it and means the same; all
//! else begins as zeros, as glibc's static initialiser has it.
//!
//! The mutex may be glibc's (shared, robust, inheriting). A shared condition variable goes to glibc, which
//! then releases the mutex by its own rules: if that is not glibc's, by way of another (`shared.rs`).

use crate::cancel::sleepers;
use crate::futex::Until;
use crate::mutex::{is_glibcs, may_wait, pthread_mutex_lock, pthread_mutex_unlock, waits_with};
use crate::node::WaitNode;
use crate::priority;
use crate::process::{self, FOREIGN_COND};
use crate::real::{self, CleanupBuffer};
use crate::shared;
use crate::sleepers::{Sleeper, Sleepers};
use crate::waiters::Cond;
use libc::{c_int, c_void, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use std::sync::atomic::Ordering;

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

/// A waiter and what it waits with.
struct CondWaiter {
    node: WaitNode,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
}

/// # Safety
/// `cond` points to a condition variable.
unsafe fn of<'a>(cond: *mut pthread_cond_t) -> &'a Cond {
    // SAFETY: by contract; all fields in use are atomics.
    unsafe { &*cond.cast::<Cond>() }
}

/// Whether it is glibc's; counted if so.
fn is_shared(cond: &Cond) -> bool {
    let shared = cond.flags.load(Ordering::Relaxed) & SHARED != 0;
    if shared {
        FOREIGN_COND.fetch_add(1, Ordering::Relaxed);
    }
    shared
}

/// What the cleanup needs if a waiter is cancelled.
struct Asleep<'a> {
    waiter: &'a CondWaiter,
    sleeper: Sleeper,
    sleepers: &'static Sleepers,
}

/// Runs when a waiter is cancelled: with the mutex held, as POSIX wants it, the program's own handlers follow.
extern "C-unwind" fn cancelled(asleep: *mut c_void) {
    // SAFETY: of the frame that is being left.
    let asleep = unsafe { &*asleep.cast::<Asleep<'_>>() };
    asleep.sleepers.remove(&asleep.sleeper);
    let waiter = asleep.waiter;
    // SAFETY: the caller's condition variable and mutex.
    unsafe {
        of(waiter.cond).cancel(&waiter.node);
        pthread_mutex_lock(waiter.mutex);
        waits_with(waiter.mutex, false);
    }
}

/// Sleeps until signalled or the deadline. Cancelling the thread ends it here. Nothing in
/// this frame or below has a destructor, so that unwinding may leave it anywhere.
#[inline(never)]
extern "C-unwind" fn sleep(waiter: &CondWaiter, until: Option<&Until>) {
    // SAFETY: no arguments.
    let me = unsafe { libc::pthread_self() };
    let asleep = Asleep { waiter, sleeper: Sleeper::new(me as usize, &waiter.node), sleepers: sleepers(me) };
    let mut buffer = CleanupBuffer::new();
    // SAFETY: the buffer lives until popped below or until the handler has run.
    unsafe { real::cleanup_push(&raw mut buffer, cancelled, (&raw const asleep).cast_mut().cast()) };
    asleep.sleepers.add(&asleep.sleeper);
    waiter.node.sleep(until, || {
        // SAFETY: no arguments; all frames up to the handler's may be left here.
        unsafe { real::test_cancel() };
        false
    });
    asleep.sleepers.remove(&asleep.sleeper);
    // SAFETY: as pushed above.
    unsafe { real::cleanup_pop(&raw mut buffer, 0) };
}

/// # Safety
/// As POSIX has it for `pthread_cond_wait`.
unsafe extern "C-unwind" fn wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: Option<&Until>,
) -> c_int {
    // SAFETY: by contract.
    let ours = unsafe { of(cond) };
    // SAFETY: by contract.
    let refused = unsafe { may_wait(mutex) };
    if refused != 0 {
        return refused;
    }
    let waiter = CondWaiter { node: WaitNode::new(priority::mine()), cond, mutex };
    ours.enter(&waiter.node);
    // SAFETY: by contract.
    let refused = unsafe {
        waits_with(mutex, true);
        pthread_mutex_unlock(mutex)
    };
    if refused != 0 {
        ours.cancel(&waiter.node);
        // SAFETY: by contract.
        unsafe { waits_with(mutex, false) };
        return refused;
    }
    sleep(&waiter, until);
    let signalled = ours.finish(&waiter.node);
    // SAFETY: by contract; locked again unless that fails, which it does where it was not ours to wait with.
    let locked = unsafe {
        let locked = pthread_mutex_lock(mutex);
        if locked == 0 {
            waits_with(mutex, false);
        }
        locked
    };
    match (locked, signalled) {
        (0, true) => 0,
        (0, false) => libc::ETIMEDOUT,
        (error, _) => error,
    }
}

/// POSIX `pthread_cond_init`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_init(
    cond: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    let (mut shared, mut clock) = (libc::PTHREAD_PROCESS_PRIVATE, libc::CLOCK_REALTIME);
    if !attributes.is_null() {
        // SAFETY: by contract.
        unsafe {
            libc::pthread_condattr_getpshared(attributes, &raw mut shared);
            libc::pthread_condattr_getclock(attributes, &raw mut clock);
        }
    }
    if shared == libc::PTHREAD_PROCESS_SHARED {
        FOREIGN_COND.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by contract.
        return unsafe { real::cond_init(cond, attributes) };
    }
    // SAFETY: by contract; all zeros is a condition variable.
    let ours = unsafe {
        cond.write_bytes(0, 1);
        of(cond)
    };
    ours.flags.store(if clock == libc::CLOCK_MONOTONIC { MONOTONIC } else { 0 }, Ordering::Relaxed);
    ours.generation.store(process::now().1, Ordering::Release);
    0
}

/// POSIX `pthread_cond_destroy`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: by contract.
    let ours = unsafe { of(cond) };
    if is_shared(ours) {
        // SAFETY: by contract.
        return unsafe { real::cond_destroy(cond) };
    }
    if ours.destroy() { 0 } else { libc::EBUSY }
}

/// POSIX `pthread_cond_signal`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: by contract.
    let ours = unsafe { of(cond) };
    if is_shared(ours) {
        // SAFETY: by contract.
        return unsafe { real::cond_signal(cond) };
    }
    ours.signal(1);
    0
}

/// POSIX `pthread_cond_broadcast`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: by contract.
    let ours = unsafe { of(cond) };
    if is_shared(ours) {
        // SAFETY: by contract.
        return unsafe { real::cond_broadcast(cond) };
    }
    ours.signal(usize::MAX);
    0
}

/// POSIX `pthread_cond_wait`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        if is_shared(of(cond)) {
            if is_glibcs(mutex) {
                real::cond_wait(cond, mutex)
            } else {
                shared::wait(cond, mutex, shared::OWN_CLOCK, std::ptr::null())
            }
        } else {
            wait(cond, mutex, None)
        }
    }
}

/// POSIX `pthread_cond_timedwait`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        let ours = of(cond);
        if is_shared(ours) {
            return if is_glibcs(mutex) {
                real::cond_timedwait(cond, mutex, until)
            } else {
                shared::wait(cond, mutex, shared::OWN_CLOCK, until)
            };
        }
        if !process::valid(&*until) {
            return libc::EINVAL;
        }
        let monotonic = ours.flags.load(Ordering::Relaxed) & MONOTONIC != 0;
        let clock = if monotonic { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
        wait(cond, mutex, Some(&Until { clock, at: *until }))
    }
}

/// POSIX (2024) `pthread_cond_clockwait`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: c_int,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        if is_shared(of(cond)) {
            return if is_glibcs(mutex) {
                real::cond_clockwait(cond, mutex, clock, until)
            } else {
                shared::wait(cond, mutex, clock, until)
            };
        }
        if !process::known(clock) || !process::valid(&*until) {
            return libc::EINVAL;
        }
        wait(cond, mutex, Some(&Until { clock, at: *until }))
    }
}
