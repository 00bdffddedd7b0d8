//! Waiting by priority: what threads of SCHED_FIFO, SCHED_RR and SCHED_DEADLINE do in the place of the lock's own way.
//!
//! POSIX has the scheduling policy decide who is next. A queue lock serves who came first, and `adaptive` who runs; so a
//! thread with a real-time priority does not join the lock's queue. It waits in a list of its own, and whoever
//! releases the mutex looks there first.
//!
//! 1. Wait: count up `Page::waiting`, join the mutex's bucket behind all of at least this priority, try the lock once
//!    more, sleep until handed the lock.
//! 2. Release: where `Page::waiting` is not 0, take the first that waits for this mutex out of the bucket and hand it the
//!    lock. The lock itself stays as it is, acquired, with the token that the mutex holds: a thread may release what
//!    another acquired.
//! 3. A release that read `Page::waiting` just before step 1 frees the lock without looking. So the waiter looks by
//!    itself after `FIRST_NAP_NS`, then after twice as long, and so on: at worst it waits twice as long as it had to.
//!
//! Nobody without such a priority is served while somebody with one waits for that mutex: as the scheduler has it.
//! The priority is the one that the thread has when it begins to wait. A thread asks the kernel for it at most once a
//! tick (1 to 4 ms), and only when it must wait.

use crate::bucket::{Bucket, BucketWaiter, HANDED, WAITING};
use crate::futex::{self, Small, Until};
use crate::page::PAGE;
use libc::{c_int, timespec};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use wattwise_locks::{Token, keep_errno};

/// Some hand-overs.
const FIRST_NAP_NS: i64 = 50_000;
/// An idle CPU may be woken ten times a second.
const LONGEST_NAP_NS: i64 = 100_000_000;

const SECOND_NS: i64 = 1_000_000_000;

/// SCHED_DEADLINE comes before the 99 priorities of the others.
const DEADLINE: u32 = 100;

/// How a wait ended.
pub(crate) enum WaitOutcome {
    /// The lock was handed over, with the token that the mutex holds.
    Handed,
    /// The lock was found free.
    Took(Token),
    /// The deadline is over.
    TimedOut,
}

fn bucket(mutex: usize) -> &'static Bucket {
    // Mutexes are 40 bytes and often in an array; the odd factor spreads them.
    let spread = (mutex >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    &PAGE.buckets[spread % PAGE.buckets.len()]
}

/// Step 2. True: the mutex now belongs to a thread that waited; the caller has noted before that it holds it no more.
#[cold]
pub(crate) fn hand_over(mutex: usize) -> bool {
    let bucket = bucket(mutex);
    let small = Small::lock(&bucket.small);
    let link = bucket.find(|waiter| waiter.mutex == mutex);
    let first = link.load(Ordering::Relaxed);
    // SAFETY: in the list, whose lock is held.
    let Some(waiter) = (unsafe { first.as_ref() }) else {
        small.unlock();
        return false;
    };
    link.store(waiter.next.load(Ordering::Relaxed), Ordering::Relaxed);
    let state = &raw const waiter.state;
    // Release: what was written under the lock. From here on the waiter may be gone.
    waiter.state.store(HANDED, Ordering::Release);
    small.unlock();
    futex::wake(state, 1);
    true
}

/// Steps 1 and 3, for a thread with this priority.
pub(crate) fn wait(
    mutex: usize,
    priority: u32,
    until: Option<&Until>,
    attempt: impl Fn() -> Option<Token>,
) -> WaitOutcome {
    let waiter =
        BucketWaiter { state: AtomicU32::new(WAITING), priority, mutex, next: AtomicPtr::new(null_mut()) };
    let bucket = bucket(mutex);
    PAGE.waiting.fetch_add(1, Ordering::SeqCst);
    bucket.join(&waiter);
    let outcome = doze(&waiter, bucket, until, attempt);
    PAGE.waiting.fetch_sub(1, Ordering::Relaxed);
    outcome
}

fn doze(
    waiter: &BucketWaiter,
    bucket: &Bucket,
    until: Option<&Until>,
    attempt: impl Fn() -> Option<Token>,
) -> WaitOutcome {
    let clock = until.map_or(libc::CLOCK_MONOTONIC, |until| until.clock);
    let mut nap = FIRST_NAP_NS;
    loop {
        if let Some(token) = attempt() {
            // Who holds the lock is the one who could have handed it: nobody has.
            bucket.leave(waiter);
            return WaitOutcome::Took(token);
        }
        let alarm = after(clock, nap);
        let last = until.filter(|until| before(&until.at, &alarm.at));
        let over = futex::wait(&waiter.state, WAITING, Some(last.unwrap_or(&alarm)));
        if waiter.state.load(Ordering::Acquire) == HANDED {
            return WaitOutcome::Handed;
        }
        if over && last.is_some() {
            return if bucket.leave(waiter) { WaitOutcome::TimedOut } else { WaitOutcome::Handed };
        }
        nap = (nap * 2).min(LONGEST_NAP_NS);
    }
}

fn after(clock: c_int, nanos: i64) -> Until {
    let mut at = time(clock);
    at.tv_nsec += nanos;
    at.tv_sec += at.tv_nsec / SECOND_NS;
    at.tv_nsec %= SECOND_NS;
    Until { clock, at }
}

fn before(a: &timespec, b: &timespec) -> bool {
    (a.tv_sec, a.tv_nsec) < (b.tv_sec, b.tv_nsec)
}

fn time(clock: c_int) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now
}

thread_local! {
    /// At which tick this thread last asked, and what it was told. Nothing to drop.
    static ASKED: Cell<(i64, i64, u32)> = const { Cell::new((-1, -1, 0)) };
}

/// The calling thread's real-time priority; 0 without.
pub(crate) fn mine() -> u32 {
    let now = time(libc::CLOCK_MONOTONIC_COARSE);
    ASKED.with(|asked| {
        let (secs, nanos, known) = asked.get();
        if (secs, nanos) == (now.tv_sec, now.tv_nsec) {
            return known;
        }
        let priority = keep_errno(ask);
        asked.set((now.tv_sec, now.tv_nsec, priority));
        priority
    })
}

#[cold]
fn ask() -> u32 {
    // SAFETY: no arguments but the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO | libc::SCHED_RR if policy >= 0 => {
            let mut param = libc::sched_param { sched_priority: 0 };
            // SAFETY: `param` is valid for writes.
            let failed = unsafe { libc::sched_getparam(0, &raw mut param) };
            if failed == 0 { param.sched_priority.clamp(1, 99) as u32 } else { 1 }
        }
        libc::SCHED_DEADLINE => DEADLINE,
        _ => 0,
    }
}
