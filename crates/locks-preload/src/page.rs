//! The page that the kernel wipes in the child of a fork.
//!
//! The choice lives on a page that the kernel wipes in the child of a fork (MADV_WIPEONFORK), so every call
//! finds out by the load that it makes anyway, whatever runs first in the child. The page is the library's own: a
//! program that has no memory left can take its first lock.
//!
//! | word | before | after the first call | in a child |
//! |---|---|---|---|
//! | `kind` | 0 | the lock's functions | wiped to 0, then as before |
//! | `generation` | 0 | 0 | 1 more than in the parent |
//! | `quick` | 0 | how the lock is taken without its functions | wiped to 0, then as before |
//! | `waiting` | 0 | how many threads wait by priority (`priority`) | wiped to 0 |
//! | `watched` | 0 | 1 if every lock is counted (`watch`); then there is no quick way | wiped to 0, then as before |
//! | `buckets` | empty | which | wiped |
//! | `sleepers` | none | who can be cancelled (`cancel`) | wiped |
//! | `repairing` | 0 | 0 or 1 | wiped to 0 |

use crate::bucket::Bucket;
use crate::sleepers::Sleepers;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use wattwise_locks::dynamic::LockKind;

/// What can be wiped at once.
const PAGE_BYTES: usize = 4096;

/// Threads of real-time priority that wait for different mutexes seldom meet in one.
const BUCKETS: usize = 64;

/// Threads that sleep at once seldom meet in one of these.
const SLEEPERS: usize = 128;

/// See the [module](self)'s table.
#[repr(C, align(4096))]
pub(crate) struct Page {
    pub(crate) kind: AtomicPtr<LockKind>,
    pub(crate) generation: AtomicU32,
    pub(crate) quick: AtomicU32,
    pub(crate) waiting: AtomicU32,
    pub(crate) watched: AtomicU32,
    pub(crate) repairing: AtomicU32,
    pub(crate) buckets: [Bucket; BUCKETS],
    pub(crate) sleepers: [Sleepers; SLEEPERS],
}

const _: () = assert!(size_of::<Page>() == PAGE_BYTES);

/// Zeros: in the part of the library's memory that no file is behind, which is what MADV_WIPEONFORK asks for.
pub(crate) static PAGE: Page = Page {
    kind: AtomicPtr::new(null_mut()),
    generation: AtomicU32::new(0),
    quick: AtomicU32::new(0),
    waiting: AtomicU32::new(0),
    watched: AtomicU32::new(0),
    repairing: AtomicU32::new(0),
    buckets: [const { Bucket::new() }; BUCKETS],
    sleepers: [const { Sleepers::new() }; SLEEPERS],
};

/// Has the kernel wipe it.
pub(crate) fn wipe_on_fork() {
    let at = (&raw const PAGE).cast_mut().cast();
    // SAFETY: a page of this library's own, of which only atomics are used.
    if unsafe { libc::madvise(at, PAGE_BYTES, libc::MADV_WIPEONFORK) } == 0 {
        return;
    }
    // Before Linux 4.14, or without memory in the kernel: a handler, which other handlers may run before.
    extern "C" fn wipe() {
        PAGE.kind.store(null_mut(), Ordering::Relaxed);
        PAGE.quick.store(0, Ordering::Relaxed);
        PAGE.waiting.store(0, Ordering::Relaxed);
        PAGE.watched.store(0, Ordering::Relaxed);
        PAGE.buckets.iter().for_each(Bucket::forget);
        PAGE.sleepers.iter().for_each(Sleepers::forget);
        PAGE.repairing.store(0, Ordering::Relaxed);
    }
    // SAFETY: a function that may run in any child.
    unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
}

/// The lock that was chosen, outside the page: a child has its parent's.
pub(crate) static CHOSEN: AtomicPtr<LockKind> = AtomicPtr::new(null_mut());

/// That lock; none before the first call of all.
pub(crate) fn chosen() -> Option<&'static LockKind> {
    // SAFETY: null, or the choice, which is static.
    unsafe { CHOSEN.load(Ordering::Acquire).as_ref() }
}
