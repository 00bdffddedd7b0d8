//! What MCS and CLH share: a word with one waiter, and where nodes come from.
//!
//! | value | name | meaning | set by |
//! |---|---|---|---|
//! | 0 | WAITING | not yet | whoever owns the word |
//! | 1 | GRANTED | the lock is the waiter's | who releases |
//! | 2 | PARKED | not yet, and the waiter may sleep on the word | the waiter |

use crate::primitive::{ANY, AtomicPtr, AtomicU32, Ordering, relax, wait, wake, yield_core};
use crate::wait::{Wait, WaitStep};

pub(crate) const WAITING: u32 = 0;
pub(crate) const GRANTED: u32 = 1;
const PARKED: u32 = 2;

/// Waits until the word is GRANTED.
#[inline]
pub(crate) fn await_grant<W: Wait>(word: &AtomicU32) {
    let mut policy = W::begin();
    loop {
        let seen = word.load(Ordering::Acquire);
        if seen == GRANTED {
            break;
        }
        if policy.step(word, seen) == WaitStep::Sleep {
            // Fails if PARKED already (woken for nothing: sleep again) or GRANTED (then the sleep returns at once).
            let _ = word.compare_exchange(WAITING, PARKED, Ordering::Relaxed, Ordering::Relaxed);
            wait(word, PARKED, ANY, None);
        }
    }
    policy.end();
}

/// Grants; the word may be gone as soon as its waiter has seen it, so only its address is used afterwards.
///
/// # Safety
/// `word` is valid until granted.
#[inline]
pub(crate) unsafe fn grant<W: Wait>(word: *const AtomicU32) {
    // SAFETY: by contract; a shared reference does not outlive the write.
    let before = unsafe {
        if W::SLEEPS {
            (*word).swap(GRANTED, Ordering::Release)
        } else {
            (*word).store(GRANTED, Ordering::Release);
            WAITING
        }
    };
    if before == PARKED {
        wake(word, 1, ANY);
    }
}

/// A pointer that someone is about to set: the few instructions between joining a queue and linking to it.
/// Longer only if that thread loses its core there, for which the core is offered.
#[inline]
pub(crate) fn await_link<T>(link: &AtomicPtr<T>) -> *mut T {
    /// More PAUSEs than any line transfer takes.
    const LOOKS: u32 = 64;
    let mut looks = 0;
    loop {
        let linked = link.load(Ordering::Acquire);
        if !linked.is_null() {
            return linked;
        }
        if looks < LOOKS {
            relax()
        } else {
            yield_core()
        }
        looks += 1;
    }
}

/// A place in a queue. Two lines, since the prefetcher fetches them in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct QueueNode {
    pub(crate) state: AtomicU32,
    pub(crate) next: AtomicPtr<QueueNode>,
}

impl QueueNode {
    pub(crate) fn new() -> QueueNode {
        QueueNode { state: AtomicU32::new(WAITING), next: AtomicPtr::new(core::ptr::null_mut()) }
    }
}

/// Models and miri get each node from the allocator, so that they see a use after the end.
#[cfg(any(loom, miri))]
pub(crate) mod pool {
    use super::QueueNode;
    use std::boxed::Box;

    pub(crate) fn take() -> Option<*mut QueueNode> {
        Some(Box::into_raw(Box::new(QueueNode::new())))
    }

    pub(crate) unsafe fn put(node: *mut QueueNode) {
        // SAFETY: by contract the node came from `take` and nobody uses it.
        drop(unsafe { Box::from_raw(node) });
    }
}

/// Free nodes, in stripes. Made for being called from inside a program's `malloc`, from threads that are
/// ending and in the child of a fork: no allocator, no thread-local data, and no waiting for another thread.
/// A stripe whose lock is taken is passed over, for ever if its holder was lost in a fork.
#[cfg(not(any(loom, miri)))]
pub(crate) mod pool {
    use super::{QueueNode, WAITING};
    use core::cell::Cell;
    use core::ptr::null_mut;
    use core::sync::atomic::{AtomicBool, Ordering};

    /// Enough that threads seldom meet at one, few enough to search.
    const STRIPES: usize = 16;

    /// Nodes got at once: a page pair of the allocator.
    const CHUNK: usize = 64;

    #[repr(align(128))]
    struct Stripe {
        taken: AtomicBool,
        first: Cell<*mut QueueNode>,
    }

    // SAFETY: `first` is used only by the thread that took the stripe.
    unsafe impl Sync for Stripe {}

    static FREE: [Stripe; STRIPES] =
        [const { Stripe { taken: AtomicBool::new(false), first: Cell::new(null_mut()) } }; STRIPES];

    fn with<R>(mut use_it: impl FnMut(&Cell<*mut QueueNode>) -> Option<R>) -> Option<R> {
        let start = crate::primitive::thread_hint();
        (0..STRIPES).find_map(|i| {
            let stripe = &FREE[start.wrapping_add(i) % STRIPES];
            if stripe.taken.swap(true, Ordering::Acquire) {
                return None;
            }
            let used = use_it(&stripe.first);
            stripe.taken.store(false, Ordering::Release);
            used
        })
    }

    /// A node that waits; none if there is no memory for more.
    pub(crate) fn take() -> Option<*mut QueueNode> {
        let free = with(|first| {
            let node = first.get();
            // SAFETY: nodes in a list are ours and valid for ever.
            let next = unsafe { node.as_ref()? }.next.load(Ordering::Relaxed);
            first.set(next);
            Some(node)
        });
        let node = match free {
            Some(node) => node,
            None => more()?,
        };
        // SAFETY: taken by this thread alone.
        unsafe { &*node }.state.store(WAITING, Ordering::Relaxed);
        Some(node)
    }

    /// Gives a node back.
    ///
    /// # Safety
    /// It came from [`take`] and nobody uses it.
    pub(crate) unsafe fn put(node: *mut QueueNode) {
        // If every stripe is busy at this moment, the node is lost: 128 bytes.
        with(|first| {
            // SAFETY: by contract.
            unsafe { &*node }.next.store(first.get(), Ordering::Relaxed);
            first.set(node);
            Some(())
        });
    }

    /// A chunk of nodes; one for the caller, the others into a stripe.
    #[cold]
    fn more() -> Option<*mut QueueNode> {
        let bytes = CHUNK * size_of::<QueueNode>();
        let chunk = pages(bytes)?.cast::<QueueNode>();
        for i in 0..CHUNK {
            // SAFETY: within the chunk, which is aligned to pages and not shared yet.
            unsafe { chunk.add(i).write(QueueNode::new()) };
        }
        for i in 1..CHUNK {
            // SAFETY: within the chunk; a node is new.
            unsafe { put(chunk.add(i)) };
        }
        Some(chunk)
    }

    #[cfg(all(feature = "std", unix))]
    fn pages(bytes: usize) -> Option<*mut u8> {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at no address in particular.
        let at = crate::keep_errno(|| unsafe { libc::mmap(null_mut(), bytes, prot, flags, -1, 0) });
        (at != libc::MAP_FAILED).then(|| at.cast())
    }

    #[cfg(not(all(feature = "std", unix)))]
    fn pages(bytes: usize) -> Option<*mut u8> {
        let Ok(layout) = core::alloc::Layout::from_size_align(bytes, 4096) else { unreachable!() };
        // SAFETY: the layout has a size.
        let at = unsafe { alloc::alloc::alloc(layout) };
        (!at.is_null()).then_some(at)
    }
}
