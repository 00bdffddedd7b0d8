//! Who waits on a condition variable: its list, and how a waiter sleeps and leaves.
//!
//! The `pthread_cond_*` functions around it are in `cond.rs`. This file names no system call and only the atomics of
//! `futex.rs`, where loom takes their place: `tests/loom.rs` has it checked in every order of its accesses.
//!
//! | offset | ours | glibc's |
//! |---|---|---|
//! | 0 | `small`: lock of the list, held for a few instructions | `__wseq` |
//! | 4 | `generation`: see `process` | |
//! | 8, 16 | `first`, `last` of those who wait: the highest real-time priority first, oldest first among equals | groups |
//! | 24 | `owing`: how many are OWING | |
//! | 36 | `flags`: bit 0 shared, bit 1 CLOCK_MONOTONIC | `__wrefs` |
//!
//! What the states of a waiter's node mean: `node.rs`.
//!
//! 1. Wait: join the list, release the mutex, sleep at the own node until signalled, acquire the mutex. The
//!    list is joined while the mutex is held, so no signal after the release can be missed, and a signal goes
//!    to who waited when it was given, never to who comes later.
//! 2. Signal: take the first that is WAITING out of the list and wake it. Broadcast: all of them.
//! 3. A waiter that gives up goes from WAITING to LEAVING by compare-and-swap, so a signal is either its own or
//!    someone else's.
//! 4. A cancelled waiter that had been signalled while others waited passes the signal on. Until it has done so, or can no
//!    longer be cancelled, it is OWING.
//! 5. Destroy waits for those who are LEAVING or OWING.
//!
//! A waiter that was SIGNALLED touches the condition variable no more: whoever broadcasts may destroy it. There is nobody
//! to pass its signal on to: who comes later has no right to it.

use crate::futex::{self, AtomicPtr, AtomicU32, Ordering, Small};
use crate::node::{LEAVING, OWING, SIGNALLED, WaitNode, waits};
use crate::process;
use std::ptr::null_mut;

/// See the [module](self)'s table. What the list has no use for is not shown to loom.
#[repr(C)]
pub(crate) struct Cond {
    small: AtomicU32,
    pub(crate) generation: AtomicU32,
    first: AtomicPtr<WaitNode>,
    last: AtomicPtr<WaitNode>,
    owing: AtomicU32,
    unused: [u32; 2],
    pub(crate) flags: std::sync::atomic::AtomicU32,
    unused_too: [u32; 2],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Cond>() == size_of::<libc::pthread_cond_t>());
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Cond, flags) == 36);

impl Cond {
    /// The list's lock, after forgetting what a fork left behind.
    fn lock(&self) -> Small<'_> {
        let (_, generation) = process::now();
        if self.generation.load(Ordering::Acquire) != generation {
            process::repair(&self.generation, || {
                self.small.store(0, Ordering::Relaxed);
                self.first.store(null_mut(), Ordering::Relaxed);
                self.last.store(null_mut(), Ordering::Relaxed);
                self.owing.store(0, Ordering::Relaxed);
            });
        }
        Small::lock(&self.small)
    }

    /// Step 1.
    #[inline]
    pub(crate) fn enter(&self, node: &WaitNode) {
        let small = self.lock();
        self.join(node);
        small.unlock();
    }

    /// Appends, before those of a lower priority. The list's lock is held.
    fn join(&self, node: &WaitNode) {
        let mine = std::ptr::from_ref(node).cast_mut();
        let (mut before, mut after) = (self.last.load(Ordering::Relaxed), null_mut());
        let lower = |other: &&WaitNode| other.priority.get() < node.priority.get();
        // SAFETY: nodes in the list are valid while its lock is held.
        while let Some(other) = unsafe { before.as_ref() }.filter(lower) {
            after = before;
            before = other.previous.load(Ordering::Relaxed);
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
    fn unlink(&self, previous: *mut WaitNode, next: *mut WaitNode) {
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

    /// Counts those in the list, whose lock is held; from now on nobody comes before them.
    fn close_ranks(&self) -> usize {
        let mut at = self.first.load(Ordering::Relaxed);
        let mut length = 0;
        // SAFETY: in the list, whose lock is held.
        while let Some(node) = unsafe { at.as_ref() } {
            node.priority.set(u32::MAX);
            length += 1;
            at = node.next.load(Ordering::Relaxed);
        }
        length
    }

    /// Whether those who wait are of a process that was forked later. This one sees them only in memory that both share,
    /// and can neither follow their pointers nor wake them: they wait for a signal of their own process.
    fn is_a_childs(&self) -> bool {
        self.generation.load(Ordering::Acquire) > process::now().1
    }

    /// Signals up to `count`.
    pub(crate) fn signal(&self, count: usize) {
        /// Woken in one go; more take another round.
        const ROUND: usize = if cfg!(loom) { 1 } else { 32 };
        if self.is_a_childs() {
            return;
        }
        let mut left = count;
        let mut first = true;
        loop {
            let mut woken = [std::ptr::null::<AtomicU32>(); ROUND];
            let mut taken = 0;
            let small = self.lock();
            if first && count > ROUND {
                // A broadcast is for those who wait now, not for who comes between its rounds.
                first = false;
                left = self.close_ranks();
            }
            let mut at = self.first.load(Ordering::Relaxed);
            while taken < left.min(ROUND) {
                // SAFETY: in the list, whose lock is held.
                let Some(node) = (unsafe { at.as_ref() }) else { break };
                // All that is needed of the node: once signalled it may be gone.
                let (previous, next) =
                    (node.previous.load(Ordering::Relaxed), node.next.load(Ordering::Relaxed));
                let state = &raw const node.state;
                let alone = previous.is_null() && next.is_null();
                let to = if count == 1 && !alone { OWING } else { SIGNALLED };
                if node.turn(to, Ordering::Release, Ordering::Relaxed) {
                    self.unlink(previous, next);
                    if to == OWING {
                        // Maybe after its end already, which destroy cannot see meanwhile.
                        self.owing.fetch_add(1, Ordering::Relaxed);
                    }
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
    fn leave(&self, node: &WaitNode) -> bool {
        if !node.turn(LEAVING, Ordering::Acquire, Ordering::Acquire) {
            return false;
        }
        let small = self.lock();
        self.unlink(node.previous.load(Ordering::Relaxed), node.next.load(Ordering::Relaxed));
        small.unlock();
        true
    }

    /// After the last that one who was OWING does.
    fn settle(&self) {
        self.owing.fetch_sub(1, Ordering::Release);
    }

    /// A waiter has slept and can no longer be cancelled. False: it had not been signalled.
    #[inline]
    pub(crate) fn finish(&self, node: &WaitNode) -> bool {
        let mut state = node.state.load(Ordering::Acquire);
        if waits(state) {
            if self.leave(node) {
                return false;
            }
            state = node.state.load(Ordering::Relaxed);
        }
        if state == OWING {
            self.settle();
        }
        true
    }

    /// A waiter is cancelled: step 4.
    pub(crate) fn cancel(&self, node: &WaitNode) {
        if !self.leave(node) && node.state.load(Ordering::Relaxed) == OWING {
            self.signal(1);
            self.settle();
        }
    }

    /// Step 5. False: somebody waits.
    pub(crate) fn destroy(&self) -> bool {
        let mut round = 0_u32;
        loop {
            let small = self.lock();
            let mut at = self.first.load(Ordering::Relaxed);
            // Below 0 after a program that did not wait for those it signalled before it initialised this anew.
            let owing = self.owing.load(Ordering::Acquire).cast_signed();
            let over = at.is_null() && owing <= 0;
            let mut waiting = false;
            // SAFETY: in the list, whose lock is held.
            while let Some(node) = unsafe { at.as_ref() } {
                waiting |= waits(node.state.load(Ordering::Relaxed));
                at = node.next.load(Ordering::Relaxed);
            }
            small.unlock();
            if over || waiting {
                return over;
            }
            futex::give_way(round);
            round = round.saturating_add(1);
        }
    }
}

#[cfg(loom)]
impl Cond {
    pub(crate) fn new() -> Cond {
        Cond {
            small: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            first: AtomicPtr::new(null_mut()),
            last: AtomicPtr::new(null_mut()),
            owing: AtomicU32::new(0),
            unused: [0; 2],
            flags: std::sync::atomic::AtomicU32::new(0),
            unused_too: [0; 2],
        }
    }
}

/// For loom, the end of its memory: every use by another must be over, and none may follow.
#[cfg(loom)]
impl Drop for Cond {
    fn drop(&mut self) {
        self.small.with_mut(|_| ());
        self.generation.with_mut(|_| ());
        self.first.with_mut(|_| ());
        self.last.with_mut(|_| ());
        self.owing.with_mut(|_| ());
    }
}
