//! The threads that sleep on condition variables, for who cancels one: see `cancel.rs`.

use crate::futex::{AtomicPtr, AtomicU32, Ordering, Small};
use crate::node::WaitNode;
use std::ptr::null_mut;

/// The threads that sleep, of those whose number falls here. Zeros are none.
#[repr(C)]
pub(crate) struct Sleepers {
    small: AtomicU32,
    first: AtomicPtr<Sleeper>,
}

/// On its own stack. The link is used under `small` only.
pub(crate) struct Sleeper {
    thread: usize,
    node: *const WaitNode,
    next: AtomicPtr<Sleeper>,
}

impl Sleeper {
    pub(crate) fn new(thread: usize, node: &WaitNode) -> Sleeper {
        Sleeper { thread, node, next: AtomicPtr::new(null_mut()) }
    }
}

impl Sleepers {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Sleepers {
        Sleepers { small: AtomicU32::new(0), first: AtomicPtr::new(null_mut()) }
    }

    /// In the child of a fork, where nobody sleeps yet.
    #[cfg(not(loom))]
    pub(crate) fn forget(&self) {
        self.small.store(0, Ordering::Relaxed);
        self.first.store(null_mut(), Ordering::Relaxed);
    }

    /// Before the sleep.
    pub(crate) fn add(&self, sleeper: &Sleeper) {
        let small = Small::lock(&self.small);
        sleeper.next.store(self.first.load(Ordering::Relaxed), Ordering::Relaxed);
        self.first.store(std::ptr::from_ref(sleeper).cast_mut(), Ordering::Relaxed);
        small.unlock();
    }

    /// After it.
    pub(crate) fn remove(&self, sleeper: &Sleeper) {
        let small = Small::lock(&self.small);
        let mut link = &self.first;
        // SAFETY: sleepers in the list are valid while its lock is held.
        while let Some(there) = unsafe { link.load(Ordering::Relaxed).as_ref() } {
            if std::ptr::eq(there, sleeper) {
                link.store(sleeper.next.load(Ordering::Relaxed), Ordering::Relaxed);
                break;
            }
            link = &there.next;
        }
        small.unlock();
    }

    /// Wakes a thread, if it sleeps: it looks whether it is cancelled.
    pub(crate) fn poke(&self, thread: usize) {
        let small = Small::lock(&self.small);
        let mut at = self.first.load(Ordering::Relaxed);
        // SAFETY: as above; a sleeper's node lives as long.
        while let Some(there) = unsafe { at.as_ref() } {
            if there.thread == thread {
                // SAFETY: as above.
                unsafe { &*there.node }.poke();
            }
            at = there.next.load(Ordering::Relaxed);
        }
        small.unlock();
    }
}

#[cfg(loom)]
impl Sleepers {
    pub(crate) fn new() -> Sleepers {
        Sleepers { small: AtomicU32::new(0), first: AtomicPtr::new(null_mut()) }
    }
}

/// For loom, the end of its memory.
#[cfg(loom)]
impl Drop for Sleeper {
    fn drop(&mut self) {
        self.next.with_mut(|_| ());
    }
}
