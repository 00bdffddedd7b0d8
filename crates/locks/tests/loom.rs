//! Every lock under every order of its memory accesses that the language allows: `make loom`.
//!
//! A model fails when two threads are inside (loom's `UnsafeCell` sees overlapping accesses, or ones that no
//! acquire and release order), when a wake-up is lost (nobody can run any more), or when a queue's node is used
//! after its end. Checked once by breaking: each lock's releasing store made `Relaxed` is caught.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use wattwise_locks::wait::{KernelWait, Park, Spin, SpinThenPark, UserWait, WithTState, Yield};
use wattwise_locks::{Adaptive, Anderson, Clh, Deadline, GraunkeThakkar, Mcs, RawLock, Tas, Ticket, Ttas};

struct Counter<L> {
    lock: L,
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is used under the lock; that this is so is what is tested, by loom's `UnsafeCell`.
unsafe impl<L> Sync for Counter<L> {}
// SAFETY: as above.
unsafe impl<L> Send for Counter<L> {}

impl<L: RawLock> Counter<L> {
    fn new() -> Arc<Self> {
        Arc::new(Counter { lock: L::default(), data: UnsafeCell::new(0) })
    }

    fn add(&self) {
        let token = self.lock.lock();
        // SAFETY: loom checks it.
        self.data.with_mut(|data| unsafe { *data += 1 });
        // SAFETY: acquired above.
        unsafe { self.lock.unlock(token) };
    }

    fn try_add(&self) -> bool {
        let Some(token) = self.lock.try_lock() else { return false };
        // SAFETY: loom checks it.
        self.data.with_mut(|data| unsafe { *data += 1 });
        // SAFETY: acquired above.
        unsafe { self.lock.unlock(token) };
        true
    }

    /// The deadline is over at once, so this is: ask, go to sleep, give up, at every point.
    fn timed_add(&self) -> bool {
        let over = Deadline { clock: wattwise_locks::Clock::Monotonic, secs: 0, nanos: 0 };
        let Some(token) = self.lock.lock_until(over) else { return false };
        // SAFETY: loom checks it.
        self.data.with_mut(|data| unsafe { *data += 1 });
        // SAFETY: acquired above.
        unsafe { self.lock.unlock(token) };
        true
    }

    fn is(&self, count: u32) {
        assert!(!self.lock.is_locked());
        // SAFETY: the other threads are joined.
        self.data.with(|data| assert_eq!(unsafe { *data }, count));
    }
}

/// `preemptions`: how often a thread may be interrupted where it need not wait. loom's authors find that 2 to 3
/// show almost every bug; more than that takes hours for queue locks.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Two threads and a third acquisition after them: hand-over, reuse of nodes and slots.
fn two<L: RawLock + 'static>() {
    explore(3, || {
        let counter = Counter::<L>::new();
        let other = counter.clone();
        let thread = thread::spawn(move || other.add());
        counter.add();
        counter.add();
        thread.join().expect("no panic");
        counter.is(3);
    });
}

/// Three threads: a successor behind a waiter.
fn three<L: RawLock + 'static>() {
    among_two::<L>(3, 1);
}

/// Two others ask once, this thread several times.
fn among_two<L: RawLock + 'static>(preemptions: usize, times: u32) {
    explore(preemptions, move || {
        let counter = Counter::<L>::new();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let other = counter.clone();
                thread::spawn(move || other.add())
            })
            .collect();
        (0..times).for_each(|_| counter.add());
        for thread in threads {
            thread.join().expect("no panic");
        }
        counter.is(2 + times);
    });
}

/// A try and a deadline that meet a holder must leave the lock usable.
fn tries<L: RawLock + 'static>() {
    explore(3, || {
        let counter = Counter::<L>::new();
        let other = counter.clone();
        let thread = thread::spawn(move || u32::from(other.try_add()) + u32::from(other.timed_add()));
        counter.add();
        let tried = thread.join().expect("no panic");
        counter.add();
        counter.is(2 + tried);
    });
}

/// Small arrays: every slot is memory that loom tracks.
type Anderson2<W> = Anderson<W, 2>;
type GraunkeThakkar2<W> = GraunkeThakkar<W, 2>;

macro_rules! every_lock {
    ($($module:ident => $lock:ident),+ $(,)?) => {
        $(mod $module {
            use super::*;
            #[test] fn spin_two() { two::<$lock<Spin>>(); }
            #[test] fn park_two() { two::<$lock<Park>>(); }
            #[test] fn park_three() { three::<$lock<Park>>(); }
            #[test] fn spin_then_park_two() { two::<$lock<SpinThenPark>>(); }
            #[test] fn other_policies_two() { policies::<$lock<Yield>, $lock<UserWait>, $lock<KernelWait>, $lock<WithTState<Park>>>(); }
            #[test] fn tries_spin() { tries::<$lock<Spin>>(); }
            #[test] fn tries_park() { tries::<$lock<Park>>(); }
        })+
    };
}

fn policies<A: RawLock + 'static, B: RawLock + 'static, C: RawLock + 'static, D: RawLock + 'static>() {
    two::<A>();
    two::<B>();
    two::<C>();
    two::<D>();
}

every_lock! {
    tas => Tas,
    ttas => Ttas,
    ticket => Ticket,
    anderson => Anderson2,
    graunke_thakkar => GraunkeThakkar2,
    mcs => Mcs,
    clh => Clh,
    adaptive => Adaptive,
}

/// The way that the pthread interposer takes while nobody waits.
fn quick_add<W: wattwise_locks::wait::Wait>(counter: &Counter<Ticket<W>>) {
    if !counter.lock.acquire_free() {
        let _ = counter.lock.lock();
    }
    // SAFETY: loom checks it.
    counter.data.with_mut(|data| unsafe { *data += 1 });
    if !counter.lock.release_alone() {
        // SAFETY: acquired above; any token is this lock's.
        unsafe { counter.lock.unlock(wattwise_locks::Token::from_raw(1)) };
    }
}

/// Against threads that take the functions or the same way.
fn quick<W: wattwise_locks::wait::Wait + 'static>(others: &'static [fn(&Counter<Ticket<W>>)]) {
    explore(2, move || {
        let counter = Counter::<Ticket<W>>::new();
        let threads: Vec<_> = others
            .iter()
            .map(|add| {
                let other = counter.clone();
                thread::spawn(move || add(&other))
            })
            .collect();
        quick_add(&counter);
        for thread in threads {
            thread.join().expect("no panic");
        }
        counter.is(1 + others.len() as u32);
        assert!(counter.lock.acquire_free(), "no mark is left");
    });
}

#[test]
fn ticket_quick_spin() {
    quick::<Spin>(&[Counter::add]);
    quick::<Spin>(&[quick_add]);
}

#[test]
fn ticket_quick_park() {
    quick::<Park>(&[quick_add, Counter::add]);
}

/// One that is woken and does not come, while another sleeps: the holder releases twice. Time is slow, or the first
/// release would already be somebody's turn by age.
#[test]
fn adaptive_wakes_another_beside_one_that_is_late() {
    wattwise_locks::set_look_takes(50);
    among_two::<Adaptive<Park>>(2, 2);
}

/// One that is woken and finds the lock taken naps. Time is slow, or it would ask for its turn instead.
#[test]
fn adaptive_naps_beside_a_holder_that_comes_back_at_once() {
    wattwise_locks::set_look_takes(50);
    explore(4, || {
        let counter = Counter::<Adaptive<Park>>::new();
        let other = counter.clone();
        let thread = thread::spawn(move || other.add());
        (0..3).for_each(|_| counter.add());
        thread.join().expect("no panic");
        counter.is(4);
    });
}
