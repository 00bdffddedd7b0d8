//! `pthread_cond_*`.
//!
//! A `pthread_cond_t` of ours, 48 bytes. `flags` is where glibc keeps it and means the same; all else begins as
//! zeros, as glibc's static initialiser has it.
//!
//! | offset | ours | glibc's |
//! |---|---|---|
//! | 0 | `small`: lock of the list, held for a few instructions | `__wseq` |
//! | 4 | `generation`: see `process` | |
//! | 8, 16 | `first`, `last` of those who wait: the highest real-time priority first, oldest first among equals | groups |
//! | 36 | `flags`: bit 0 shared, bit 1 CLOCK_MONOTONIC | `__wrefs` |
//!
//! | node's state | meaning | set by |
//! |---|---|---|
//! | 0 WAITING | in the list | the waiter |
//! | 1 SIGNALLED | taken out of the list | a signal |
//! | 2 LEAVING | taking itself out: its deadline is over or it was cancelled | the waiter |
//!
//! 1. Wait: join the list, release the mutex, sleep at the own node until signalled, acquire the mutex. The
//!    list is joined while the mutex is held, so no signal after the release can be missed, and a signal goes
//!    to who waited when it was given, never to who comes later.
//! 2. Signal: take the first that is WAITING out of the list and wake it. Broadcast: all of them.
//! 3. A waiter that gives up goes from WAITING to LEAVING by compare-and-swap, so a signal is either its own or
//!    someone else's. A cancelled waiter that had been signalled passes the signal on.
//! 4. Destroy waits for those who are LEAVING.
//!
//! A waiter that was SIGNALLED touches the condition variable no more: whoever broadcasts may destroy it.
//! The mutex may be glibc's (shared, robust, inheriting). A shared condition variable goes to glibc, which
//! then releases the mutex by its own rules: if that is not glibc's, by way of another (`shared.rs`).

use crate::futex::{self, Small, Until};
use crate::mutex::{is_glibcs, may_wait, pthread_mutex_lock, pthread_mutex_unlock, waits_with};
use crate::priority;
use crate::process::{self, FOREIGN_COND};
use crate::real::{self, CleanupBuffer};
use crate::shared;
use libc::{c_int, c_void, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

/// PTHREAD_CANCEL_ASYNCHRONOUS.
const CANCEL_ASYNCHRONOUS: c_int = 1;

const WAITING: u32 = 0;
const SIGNALLED: u32 = 1;
const LEAVING: u32 = 2;

/// See the [module](self)'s table.
#[repr(C)]
struct Cond {
    small: AtomicU32,
    generation: AtomicU32,
    first: AtomicPtr<Node>,
    last: AtomicPtr<Node>,
    unused: [AtomicU32; 3],
    flags: AtomicU32,
    unused_too: [AtomicU32; 2],
}

const _: () = assert!(size_of::<Cond>() == size_of::<pthread_cond_t>());
const _: () = assert!(std::mem::offset_of!(Cond, flags) == 36);

/// A waiter, on its own stack. Links are used under `small` only.
#[repr(C)]
struct Node {
    state: AtomicU32,
    priority: u32,
    previous: AtomicPtr<Node>,
    next: AtomicPtr<Node>,
    /// For the cleanup of a cancelled waiter.
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
}

impl Cond {
    /// The list's lock, after forgetting what a fork left behind.
    fn lock(&self) -> Small<'_> {
        let (_, generation) = process::now();
        if self.generation.load(Ordering::Acquire) != generation {
            process::repair(&self.generation, || {
                self.small.store(0, Ordering::Relaxed);
                self.first.store(null_mut(), Ordering::Relaxed);
                self.last.store(null_mut(), Ordering::Relaxed);
            });
        }
        Small::lock(&self.small)
    }

    /// Appends, before those of a lower priority. The list's lock is held.
    fn join(&self, node: &Node) {
        let mine = std::ptr::from_ref(node).cast_mut();
        let (mut before, mut after) = (self.last.load(Ordering::Relaxed), null_mut());
        // SAFETY: nodes in the list are valid while its lock is held.
        while let Some(lower) = unsafe { before.as_ref() }.filter(|other| other.priority < node.priority) {
            after = before;
            before = lower.previous.load(Ordering::Relaxed);
        }
        node.previous.store(before, Ordering::Relaxed);
        node.next.store(after, Ordering::Relaxed);
        // SAFETY: as above.
        match unsafe { before.as_ref() } {
            Some(before) => before.next.store(mine, Ordering::Relaxed),
            None => self.first.store(mine, Ordering::Relaxed),
        }
        // SAFETY: as above.
        match unsafe { after.as_ref() } {
            Some(after) => after.previous.store(mine, Ordering::Relaxed),
            None => self.last.store(mine, Ordering::Relaxed),
        }
    }

    /// Takes out the node that was between these two. The list's lock is held.
    fn unlink(&self, previous: *mut Node, next: *mut Node) {
        // SAFETY: nodes in the list are valid while its lock is held.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.store(next, Ordering::Relaxed),
            None => self.first.store(next, Ordering::Relaxed),
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.previous.store(previous, Ordering::Relaxed),
            None => self.last.store(previous, Ordering::Relaxed),
        }
    }

    /// How many are in the list, whose lock is held.
    fn length(&self) -> usize {
        let mut at = self.first.load(Ordering::Relaxed);
        let mut length = 0;
        // SAFETY: in the list, whose lock is held.
        while let Some(node) = unsafe { at.as_ref() } {
            length += 1;
            at = node.next.load(Ordering::Relaxed);
        }
        length
    }

    /// Signals up to `count`.
    fn signal(&self, count: usize) {
        /// Woken in one go; more take another round.
        const ROUND: usize = 32;
        let mut left = count;
        let mut first = true;
        loop {
            let mut woken = [std::ptr::null::<AtomicU32>(); ROUND];
            let mut taken = 0;
            let small = self.lock();
            if first && count > ROUND {
                // A broadcast is for those who wait now, not for who comes between its rounds.
                first = false;
                left = self.length();
            }
            let mut at = self.first.load(Ordering::Relaxed);
            while taken < left.min(ROUND) {
                // SAFETY: in the list, whose lock is held.
                let Some(node) = (unsafe { at.as_ref() }) else { break };
                // All that is needed of the node: once SIGNALLED it may be gone.
                let (previous, next) =
                    (node.previous.load(Ordering::Relaxed), node.next.load(Ordering::Relaxed));
                let state = &raw const node.state;
                let signalled =
                    node.state.compare_exchange(WAITING, SIGNALLED, Ordering::Release, Ordering::Relaxed);
                if signalled.is_ok() {
                    self.unlink(previous, next);
                    woken[taken] = state;
                    taken += 1;
                }
                at = next;
            }
            small.unlock();
            for state in &woken[..taken] {
                futex::wake(*state, 1);
            }
            left -= taken;
            if taken < ROUND || left == 0 {
                return;
            }
        }
    }

    /// A waiter gives up. False: it had been signalled.
    fn leave(&self, node: &Node) -> bool {
        if node.state.compare_exchange(WAITING, LEAVING, Ordering::Acquire, Ordering::Acquire).is_err() {
            return false;
        }
        let small = self.lock();
        self.unlink(node.previous.load(Ordering::Relaxed), node.next.load(Ordering::Relaxed));
        small.unlock();
        true
    }
}

/// # Safety
/// `cond` points to a condition variable.
unsafe fn of<'a>(cond: *mut pthread_cond_t) -> &'a Cond {
    // SAFETY: by contract; all fields are atomics.
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

/// Runs when a waiter is cancelled: with the mutex held, as POSIX wants it, the program's own handlers follow.
extern "C-unwind" fn cancelled(node: *mut c_void) {
    // SAFETY: the node of the frame that is being left.
    let node = unsafe { &*node.cast::<Node>() };
    // SAFETY: the caller's condition variable and mutex.
    unsafe {
        let cond = of(node.cond);
        if !cond.leave(node) {
            cond.signal(1);
        }
        pthread_mutex_lock(node.mutex);
        waits_with(node.mutex, false);
    }
}

/// Sleeps until signalled or the deadline; true: signalled. Cancelling the thread ends it here. Nothing in
/// this frame or below has a destructor, so that unwinding may leave it anywhere.
#[inline(never)]
extern "C-unwind" fn sleep(node: &Node, until: Option<&Until>) -> bool {
    let mut buffer = CleanupBuffer::new();
    let argument: *mut c_void = std::ptr::from_ref(node).cast_mut().cast();
    let mut before = 0;
    // SAFETY: the buffer lives until popped below or until the handler has run.
    unsafe {
        real::cleanup_push(&raw mut buffer, cancelled, argument);
        real::set_cancel_type(CANCEL_ASYNCHRONOUS, &raw mut before);
    }
    let mut in_time = true;
    while in_time && node.state.load(Ordering::Acquire) == WAITING {
        in_time = !futex::wait(&node.state, WAITING, until);
    }
    // SAFETY: as pushed above.
    unsafe {
        real::set_cancel_type(before, null_mut());
        real::cleanup_pop(&raw mut buffer, 0);
    }
    node.state.load(Ordering::Acquire) == SIGNALLED
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
    let node = Node {
        state: AtomicU32::new(WAITING),
        priority: priority::mine(),
        previous: AtomicPtr::new(null_mut()),
        next: AtomicPtr::new(null_mut()),
        cond,
        mutex,
    };
    let small = ours.lock();
    ours.join(&node);
    small.unlock();
    // SAFETY: by contract.
    let refused = unsafe {
        waits_with(mutex, true);
        pthread_mutex_unlock(mutex)
    };
    if refused != 0 {
        ours.leave(&node);
        // SAFETY: by contract.
        unsafe { waits_with(mutex, false) };
        return refused;
    }
    let signalled = sleep(&node, until) || !ours.leave(&node);
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
    loop {
        let small = ours.lock();
        let mut at = ours.first.load(Ordering::Relaxed);
        let empty = at.is_null();
        let mut waiting = false;
        // SAFETY: in the list, whose lock is held.
        while let Some(node) = unsafe { at.as_ref() } {
            waiting |= node.state.load(Ordering::Relaxed) == WAITING;
            at = node.next.load(Ordering::Relaxed);
        }
        small.unlock();
        if empty {
            return 0;
        }
        if waiting {
            return libc::EBUSY;
        }
        // SAFETY: no arguments.
        unsafe { libc::sched_yield() };
    }
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
