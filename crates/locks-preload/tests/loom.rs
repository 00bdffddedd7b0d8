//! The list of a condition variable's waiters under every order of its memory accesses: `make loom`.
//!
//! `src/waiters.rs`, `src/node.rs`, `src/sleepers.rs` and `src/futex.rs` are compiled here as they are, with loom's atomics and a stand-in for the kernel's
//! futexes. A model fails when a wake-up is lost (nobody can run any more), and when a waiter or a condition
//! variable is used where its end is not after that use. Checked once by breaking: see each model.
#![cfg(loom)]

#[path = "../src/futex.rs"]
mod futex;
#[path = "../src/node.rs"]
mod node;
#[path = "../src/sleepers.rs"]
mod sleepers;
#[path = "../src/waiters.rs"]
mod waiters;

/// `src/process.rs` where nobody forks.
mod process {
    use crate::futex::AtomicU32;

    pub(crate) fn now() -> ((), u32) {
        ((), 0)
    }

    pub(crate) fn repair(_: &AtomicU32, _: impl FnOnce()) {
        unreachable!("the generation is always 0");
    }
}

use futex::{AtomicU32, Ordering, Small, Until, time_passes};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use node::WaitNode;
use sleepers::{Sleeper, Sleepers};
use std::ops::Deref;
use waiters::Cond;

/// `preemptions`: how often a thread may be interrupted where it need not wait.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Memory that ends while others may still point to it. It is never given back, so that loom sees who uses it later.
struct Mortal<T: 'static>(*mut T);

impl<T> Mortal<T> {
    fn new(value: T) -> Mortal<T> {
        Mortal(Box::into_raw(Box::new(value)))
    }

    fn end(self) {
        // SAFETY: once, since that takes `self` and it has no copies but those of `of`.
        unsafe { self.0.drop_in_place() };
    }

    /// Another's view of it.
    fn seen(&self) -> Mortal<T> {
        Mortal(self.0)
    }
}

impl<T> Deref for Mortal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: allocated for ever; whether it has ended is what loom checks.
        unsafe { &*self.0 }
    }
}

// SAFETY: atomics, and plain fields under a lock.
unsafe impl<T> Send for Mortal<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mortal<T> {}

/// A deadline, which is over when `time_passes` says so.
const SOON: Until = Until { clock: libc::CLOCK_MONOTONIC, at: libc::timespec { tv_sec: 0, tv_nsec: 0 } };

/// What a waiter does between releasing the mutex and acquiring it; true: signalled.
fn rest_of_wait(cond: &Cond, node: Mortal<WaitNode>, until: Option<&Until>) -> bool {
    node.sleep(until, || false);
    let signalled = cond.finish(&node);
    node.end();
    signalled
}

/// As `pthread_cond_wait`.
fn wait(cond: &Cond, mutex: &Mutex<bool>) -> bool {
    let held = mutex.lock().expect("nobody panics with it");
    if *held {
        return true;
    }
    let node = Mortal::new(WaitNode::new(0));
    cond.enter(&node);
    drop(held);
    let signalled = rest_of_wait(cond, node, None);
    assert!(*mutex.lock().expect("nobody panics with it"));
    signalled
}

/// A condition variable with waiters of these priorities that have entered, and released their mutex.
fn with<const N: usize>(priorities: [u32; N]) -> (Mortal<Cond>, [Mortal<WaitNode>; N]) {
    let cond = Mortal::new(Cond::new());
    let nodes = priorities.map(|priority| Mortal::new(WaitNode::new(priority)));
    nodes.iter().for_each(|node| cond.enter(node));
    (cond, nodes)
}

/// The list's own lock.
#[test]
fn small_lock() {
    for others in [1, 2] {
        explore(if others == 1 { 6 } else { 4 }, move || {
            let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0)));
            let add = |shared: &(AtomicU32, UnsafeCell<u32>)| {
                let small = Small::lock(&shared.0);
                // SAFETY: loom checks it.
                shared.1.with_mut(|data| unsafe { *data += 1 });
                small.unlock();
            };
            let threads: Vec<_> = (0..others)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || add(&shared))
                })
                .collect();
            add(&shared);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            // SAFETY: the other threads are joined.
            shared.1.with(|data| assert_eq!(unsafe { *data }, others + 1));
        });
    }
}

/// A signal under the mutex and one after it reach who waits.
#[test]
fn no_signal_is_lost() {
    for under in [true, false] {
        explore(6, move || {
            let cond = Mortal::new(Cond::new());
            let mutex = Arc::new(Mutex::new(false));
            let (seen, other) = (cond.seen(), mutex.clone());
            let waiter = thread::spawn(move || wait(&seen, &other));
            let mut held = mutex.lock().expect("nobody panics with it");
            *held = true;
            if under {
                cond.signal(1);
                drop(held);
            } else {
                drop(held);
                cond.signal(1);
            }
            assert!(waiter.join().expect("no panic"));
            assert!(cond.destroy());
            cond.end();
        });
    }
}

/// Nobody touches what was destroyed after a broadcast, however late those who waited return.
#[test]
fn destroyed_right_after_a_broadcast() {
    explore(4, || {
        let cond = Mortal::new(Cond::new());
        let mutex = Arc::new(Mutex::new(false));
        let waiters = [(); 2].map(|()| {
            let (seen, other) = (cond.seen(), mutex.clone());
            thread::spawn(move || wait(&seen, &other))
        });
        *mutex.lock().expect("nobody panics with it") = true;
        cond.signal(usize::MAX);
        assert!(cond.destroy());
        cond.end();
        for waiter in waiters {
            assert!(waiter.join().expect("no panic"));
        }
    });
}

/// A signal meets a deadline: afterwards nobody is in the list.
#[test]
fn a_deadline_and_a_signal() {
    explore(4, || {
        let (cond, [node]) = with([0]);
        let seen = cond.seen();
        let waiter = thread::spawn(move || rest_of_wait(&seen, node, Some(&SOON)));
        let alarm = thread::spawn(time_passes);
        cond.signal(1);
        // Signalled or given up: nobody waits.
        assert!(cond.destroy());
        cond.end();
        waiter.join().expect("no panic");
        alarm.join().expect("no panic");
    });
}

/// A signal that one gave up to take goes to the other.
#[test]
fn a_deadline_beside_another_waiter() {
    for timed_first in [true, false] {
        explore(2, move || {
            let (cond, [a, b]) = with([0, 0]);
            let (timed, other) = if timed_first { (a, b) } else { (b, a) };
            let seen = cond.seen();
            let timed = thread::spawn(move || rest_of_wait(&seen, timed, Some(&SOON)));
            let seen = cond.seen();
            let other = thread::spawn(move || rest_of_wait(&seen, other, None));
            let alarm = thread::spawn(time_passes);
            cond.signal(1);
            if timed.join().expect("no panic") {
                assert!(timed_first);
                cond.signal(1);
            }
            assert!(other.join().expect("no panic"));
            alarm.join().expect("no panic");
            assert!(cond.destroy());
            cond.end();
        });
    }
}

/// Who is cancelled passes on the signal that it had got.
#[test]
fn a_cancelled_waiter_keeps_no_signal() {
    for cancelled_first in [true, false] {
        explore(4, move || {
            let (cond, [a, b]) = with([0, 0]);
            let (cancelled, other) = if cancelled_first { (a, b) } else { (b, a) };
            let seen = cond.seen();
            let cancelled = thread::spawn(move || {
                seen.cancel(&cancelled);
                cancelled.end();
            });
            let seen = cond.seen();
            let other = thread::spawn(move || rest_of_wait(&seen, other, None));
            cond.signal(1);
            assert!(other.join().expect("no panic"));
            cancelled.join().expect("no panic");
            assert!(cond.destroy());
            cond.end();
        });
    }
}

/// Two neighbours leave; what they leave is destroyed once they are out.
#[test]
fn destroy_waits_for_those_who_leave() {
    explore(3, || {
        let (cond, nodes) = with([0, 0]);
        let waiters = nodes.map(|node| {
            let seen = cond.seen();
            thread::spawn(move || {
                assert_eq!(seen.finish(&node), node.is_signalled());
                node.end();
            })
        });
        cond.signal(usize::MAX);
        assert!(cond.destroy());
        cond.end();
        for waiter in waiters {
            waiter.join().expect("no panic");
        }
    });
}

/// While somebody waits, nothing is destroyed.
#[test]
fn destroy_refuses_while_somebody_waits() {
    explore(6, || {
        let (cond, [leaving, waiting]) = with([0, 0]);
        let seen = cond.seen();
        let waiter = thread::spawn(move || {
            assert!(!seen.finish(&leaving));
            leaving.end();
        });
        assert!(!cond.destroy());
        waiter.join().expect("no panic");
        assert!(!cond.finish(&waiting));
        assert!(cond.destroy());
    });
}

/// The highest priority first, whoever came first, and also around one that leaves.
#[test]
fn signalled_by_priority() {
    explore(4, || {
        let (cond, [middle]) = with([5]);
        let others = [9, 1].map(|priority| {
            let (seen, node) = (cond.seen(), Mortal::new(WaitNode::new(priority)));
            let entering = node.seen();
            (node, thread::spawn(move || seen.enter(&entering)))
        });
        assert!(!cond.finish(&middle));
        middle.end();
        let [high, low] = others.map(|(node, thread)| {
            thread.join().expect("no panic");
            node
        });
        let equal = Mortal::new(WaitNode::new(1));
        cond.enter(&equal);
        let order = [high, low, equal];
        for signalled in 1..=order.len() {
            cond.signal(1);
            for (at, node) in order.iter().enumerate() {
                assert_eq!(node.is_signalled(), at < signalled);
            }
        }
        assert!(order.iter().all(|node| cond.finish(node)));
        assert!(cond.destroy());
    });
}

/// A broadcast of more than one round reaches all who waited before it, also when somebody of a higher priority comes
/// between its rounds.
#[test]
fn nobody_takes_the_place_of_another_in_a_broadcast() {
    explore(4, || {
        let (cond, early) = with([0, 0]);
        let late = Mortal::new(WaitNode::new(1));
        let (seen, entering) = (cond.seen(), late.seen());
        let thread = thread::spawn(move || seen.enter(&entering));
        cond.signal(usize::MAX);
        assert!(early.iter().all(|node| node.is_signalled()));
        thread.join().expect("no panic");
    });
}

/// A waiter that is cancelled, even after it was signalled, touches nothing that was destroyed; nor does one beside it
/// whose deadline is over.
#[test]
fn destroyed_while_a_signalled_waiter_is_cancelled() {
    for (broadcast, cancelled_first) in [(true, true), (true, false), (false, true), (false, false)] {
        explore(3, move || {
            let (cond, [a, b]) = with([0, 0]);
            let (cancelled, other) = if cancelled_first { (a, b) } else { (b, a) };
            let seen = cond.seen();
            let cancelled = thread::spawn(move || {
                seen.cancel(&cancelled);
                cancelled.end();
            });
            let seen = cond.seen();
            let other = thread::spawn(move || {
                seen.finish(&other);
                other.end();
            });
            if broadcast {
                cond.signal(usize::MAX);
            } else {
                cond.signal(1);
                cond.signal(1);
            }
            assert!(cond.destroy());
            cond.end();
            cancelled.join().expect("no panic");
            other.join().expect("no panic");
        });
    }
}

/// Threads that may be cancelled, and a mark for the one with number 1, as glibc has it.
struct Cancelling {
    sleepers: Sleepers,
    mark: AtomicU32,
}

impl Cancelling {
    fn new() -> Arc<Cancelling> {
        Arc::new(Cancelling { sleepers: Sleepers::new(), mark: AtomicU32::new(0) })
    }

    /// As `pthread_cancel`.
    fn cancel(&self) {
        self.mark.store(1, Ordering::Relaxed);
        self.sleepers.poke(1);
    }

    /// As `cond::sleep` and what follows it, of a thread with number 1; true: signalled. One that may be cancelled never
    /// sleeps through it.
    fn rest_of_wait(&self, cond: &Cond, node: Mortal<WaitNode>, may_be: bool, until: Option<&Until>) -> bool {
        let sleeper = Mortal::new(Sleeper::new(1, &node));
        self.sleepers.add(&sleeper);
        let cancelled = std::cell::Cell::new(false);
        node.sleep(until, || {
            cancelled.set(may_be && self.mark.load(Ordering::Relaxed) != 0);
            cancelled.get()
        });
        self.sleepers.remove(&sleeper);
        sleeper.end();
        let signalled = if cancelled.get() {
            cond.cancel(&node);
            false
        } else {
            cond.finish(&node)
        };
        node.end();
        signalled
    }
}

/// Who is cancelled wakes up, whenever that is.
#[test]
fn no_cancellation_is_slept_through() {
    explore(5, || {
        let (cond, [node]) = with([0]);
        let cancelling = Cancelling::new();
        let (seen, other) = (cond.seen(), cancelling.clone());
        let waiter = thread::spawn(move || other.rest_of_wait(&seen, node, true, None));
        cancelling.cancel();
        assert!(!waiter.join().expect("no panic"));
        assert!(cond.destroy());
        cond.end();
    });
}

/// Who may not be cancelled is poked for nothing, twice, and gets its signal all the same.
#[test]
fn no_signal_is_lost_by_a_poke() {
    explore(3, || {
        let (cond, [node]) = with([0]);
        let cancelling = Cancelling::new();
        let (seen, other) = (cond.seen(), cancelling.clone());
        let waiter = thread::spawn(move || other.rest_of_wait(&seen, node, false, None));
        let other = cancelling.clone();
        let canceller = thread::spawn(move || {
            other.cancel();
            other.cancel();
        });
        cond.signal(1);
        assert!(waiter.join().expect("no panic"));
        canceller.join().expect("no panic");
        assert!(cond.destroy());
        cond.end();
    });
}

/// A cancellation meets a signal: it reaches the other waiter, unless it was the cancelled one's before.
#[test]
fn a_poke_beside_a_signal_and_another_waiter() {
    for cancelled_first in [true, false] {
        explore(2, move || {
            let (cond, [a, b]) = with([0, 0]);
            let (cancelled, other) = if cancelled_first { (a, b) } else { (b, a) };
            let cancelling = Cancelling::new();
            let (seen, from) = (cond.seen(), cancelling.clone());
            let cancelled = thread::spawn(move || from.rest_of_wait(&seen, cancelled, true, None));
            let seen = cond.seen();
            let other = thread::spawn(move || rest_of_wait(&seen, other, None));
            cancelling.cancel();
            cond.signal(1);
            if cancelled.join().expect("no panic") {
                cond.signal(1);
            }
            assert!(other.join().expect("no panic"));
            assert!(cond.destroy());
            cond.end();
        });
    }
}
