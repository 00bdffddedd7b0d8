//! Lists of threads that wait by priority (`priority.rs`), each for the mutexes whose address falls there.

use crate::futex::Small;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

pub(crate) const WAITING: u32 = 0;
pub(crate) const HANDED: u32 = 1;

/// Waiters of the mutexes whose address falls here, the highest priority first, oldest first among equals.
#[repr(C)]
pub(crate) struct Bucket {
    pub(crate) small: AtomicU32,
    first: AtomicPtr<BucketWaiter>,
}

/// On the waiter's own stack. Links are used under the bucket's `small` only.
pub(crate) struct BucketWaiter {
    pub(crate) state: AtomicU32,
    pub(crate) priority: u32,
    pub(crate) mutex: usize,
    pub(crate) next: AtomicPtr<BucketWaiter>,
}

impl Bucket {
    pub(crate) const fn new() -> Bucket {
        Bucket { small: AtomicU32::new(0), first: AtomicPtr::new(null_mut()) }
    }

    /// In the child of a fork, where those who waited do not exist.
    pub(crate) fn forget(&self) {
        self.small.store(0, Ordering::Relaxed);
        self.first.store(null_mut(), Ordering::Relaxed);
    }

    /// The link to the first waiter that `found` accepts, or the last link. The bucket's lock is held.
    pub(crate) fn find(&self, found: impl Fn(&BucketWaiter) -> bool) -> &AtomicPtr<BucketWaiter> {
        let mut link = &self.first;
        // SAFETY: waiters in the list are valid while its lock is held.
        while let Some(waiter) = unsafe { link.load(Ordering::Relaxed).as_ref() } {
            if found(waiter) {
                break;
            }
            link = &waiter.next;
        }
        link
    }

    pub(crate) fn join(&self, waiter: &BucketWaiter) {
        let small = Small::lock(&self.small);
        let link = self.find(|other| other.priority < waiter.priority);
        waiter.next.store(link.load(Ordering::Relaxed), Ordering::Relaxed);
        link.store(std::ptr::from_ref(waiter).cast_mut(), Ordering::Relaxed);
        small.unlock();
    }

    /// False: it had been handed the lock.
    pub(crate) fn leave(&self, waiter: &BucketWaiter) -> bool {
        let small = Small::lock(&self.small);
        let waiting = waiter.state.load(Ordering::Acquire) == WAITING;
        if waiting {
            let link = self.find(|other| std::ptr::eq(other, waiter));
            link.store(waiter.next.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        small.unlock();
        waiting
    }
}
