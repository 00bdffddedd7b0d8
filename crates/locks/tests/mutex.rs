//! The safe interfaces, and what the locks promise beside exclusion.
#![cfg(all(feature = "std", not(loom)))]

use std::ptr::NonNull;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wattwise_locks::dynamic::LockKind;
use wattwise_locks::wait::{Park, Spin, SpinThenPark};
use wattwise_locks::{Adaptive, Clh, Deadline, Mcs, Mutex, RawLock, Ticket};

#[test]
fn a_mutex_is_locked_tried_and_taken_apart() {
    let mut mutex = Mutex::<_, Clh<SpinThenPark>>::new(vec![1]);
    mutex.get_mut().push(2);
    {
        let mut data = mutex.lock();
        data.push(3);
        assert!(mutex.try_lock().is_none() && mutex.is_locked());
        assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
        assert_eq!(format!("{data:?}"), "[1, 2, 3]");
    }
    assert_eq!(format!("{mutex:?}"), "Mutex { data: [1, 2, 3] }");
    assert!(!mutex.is_locked());
    assert_eq!(mutex.into_inner(), [1, 2, 3]);
}

#[test]
fn a_panic_releases_and_does_not_poison() {
    let mutex = Mutex::<u32>::new(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *mutex.lock() = 2;
        let _held = mutex.lock();
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(*mutex.lock(), 2);
}

#[test]
#[cfg(not(miri))]
fn deadlines_are_kept() {
    fn check<L: RawLock + 'static>() {
        let mutex = Mutex::<u32, L>::new(0);
        let held = mutex.lock();
        std::thread::scope(|s| {
            s.spawn(|| {
                let began = Instant::now();
                assert!(mutex.try_lock_for(Duration::from_millis(30)).is_none());
                assert!(began.elapsed() >= Duration::from_millis(30));
            });
        });
        drop(held);
        assert!(mutex.try_lock_for(Duration::ZERO).is_some());
        let past = Deadline { secs: 0, ..Deadline::after(0) };
        let lock = L::default();
        assert!(lock.lock_until(past).is_some(), "a free lock needs no time");
        assert!(lock.lock_until(past).is_none());
    }
    check::<Adaptive>();
    check::<Mcs<Park>>();
    check::<Ticket<SpinThenPark>>();
    check::<wattwise_locks::Tas<Park>>();
    check::<wattwise_locks::Ttas<Spin>>();
}

/// Threads that went to sleep one after the other get a FIFO lock in that order.
/// The C library's locks leave it alone, and programs look at it late.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_wait_leaves_errno_as_it_was() {
    const NO_SYSTEM_CALL_S: i32 = 7_654_321;
    for kind in LockKind::all() {
        let mut memory = vec![0_u8; kind.size + kind.align];
        let start = memory.as_mut_ptr();
        let at = NonNull::new(start.wrapping_add(start.align_offset(kind.align))).expect("memory");
        // SAFETY: an unlocked lock of this kind, released by its own token; `errno` is this thread's.
        unsafe {
            let token = (kind.acquire)(at);
            *libc::__errno_location() = NO_SYSTEM_CALL_S;
            assert!((kind.acquire_until)(at, Deadline::after(2_000_000)).is_none(), "{}", kind.name());
            (kind.release)(at, token);
            assert_eq!(*libc::__errno_location(), NO_SYSTEM_CALL_S, "{}", kind.name());
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn fifo_is_kept_also_by_sleepers() {
    for kind in LockKind::all().iter().filter(|kind| kind.fifo && kind.wait.ends_with("park")) {
        #[repr(align(128))]
        struct Memory(std::cell::UnsafeCell<[u8; 16 * 1024]>);
        // SAFETY: used as a lock.
        unsafe impl Sync for Memory {}
        static ORDER: std::sync::Mutex<Vec<u32>> = std::sync::Mutex::new(Vec::new());
        let memory = Memory(std::cell::UnsafeCell::new([0; 16 * 1024]));
        let memory = &memory;
        let at = move || NonNull::new(memory.0.get().cast::<u8>()).expect("not null");
        // SAFETY: zeroed and large enough; released below.
        let token = unsafe { (kind.acquire)(at()) };
        std::thread::scope(|s| {
            for i in 0..5 {
                let (id, ids) = mpsc::channel();
                s.spawn(move || {
                    // SAFETY: no arguments.
                    id.send(unsafe { libc::gettid() }).expect("the test waits");
                    // SAFETY: as above.
                    let token = unsafe { (kind.acquire)(at()) };
                    ORDER.lock().expect("not poisoned").push(i);
                    // SAFETY: acquired above.
                    unsafe { (kind.release)(at(), token) };
                });
                // The next one comes when this one sleeps: there is nothing for it to sleep on but the lock.
                let stat = format!("/proc/self/task/{}/stat", ids.recv().expect("it runs"));
                while !std::fs::read_to_string(&stat).expect("it lives").contains(") S ") {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            // SAFETY: acquired above.
            unsafe { (kind.release)(at(), token) };
        });
        let order = std::mem::take(&mut *ORDER.lock().expect("not poisoned"));
        assert_eq!(order, [0, 1, 2, 3, 4], "{}", kind.name());
    }
}

/// A thread that asks for an adaptive lock gets it in tens of ms, though another takes it back at once each time.
#[test]
#[cfg(not(miri))]
fn adaptive_does_not_starve() {
    let lock: &'static Adaptive = Box::leak(Box::default());
    let (stop, stopped) = mpsc::channel::<()>();
    let greedy = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            let token = lock.lock();
            let began = Instant::now();
            while began.elapsed() < Duration::from_micros(300) {}
            // SAFETY: acquired above.
            unsafe { lock.unlock(token) };
        }
    });
    let began = Instant::now();
    for _ in 0..20 {
        let token = lock.lock();
        // SAFETY: acquired above.
        unsafe { lock.unlock(token) };
    }
    // 20 x 2 ms on a quiet machine; without turns it never ends.
    assert!(began.elapsed() < Duration::from_secs(20));
    stop.send(()).expect("the other runs");
    greedy.join().expect("no panic");
}

#[test]
fn statistics_cost_nothing_when_off_and_count_when_on() {
    #[cfg(not(feature = "stats"))]
    assert_eq!(size_of::<Mutex<u64, Mcs<Spin>>>(), size_of::<Mcs<Spin>>() + size_of::<u64>());
    #[cfg(feature = "stats")]
    {
        let mutex = Mutex::<u32, Mcs<Spin>>::new(0);
        for _ in 0..10 {
            *mutex.lock() += 1;
        }
        std::thread::scope(|s| {
            let held = mutex.lock();
            s.spawn(|| drop(mutex.lock()));
            std::thread::sleep(Duration::from_millis(20));
            drop(held);
        });
        let report = mutex.stats();
        assert_eq!(report.acquisitions, 13, "10, 2 and the report's own");
        assert_eq!(report.hold_ns.len(), 12);
        assert!(report.wait_ns.max() >= 10_000_000, "{:?}", report.wait_ns.max());
        assert!(report.hold_ns.max() >= 10_000_000, "{:?}", report.hold_ns.max());
    }
}

#[test]
#[cfg(feature = "lock_api_0_4")]
fn lock_api_0_4_goes_over_a_queue_lock() {
    use wattwise_locks::interop::HeldLock;
    let mutex: lock_api_0_4::Mutex<HeldLock<Clh<SpinThenPark>>, u32> = lock_api_0_4::Mutex::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..50).for_each(|_| *mutex.lock() += 1));
        }
    });
    assert!(mutex.try_lock().is_some());
    assert_eq!(mutex.into_inner(), 200);
}

#[test]
#[cfg(feature = "lock_api_0_5")]
fn lock_api_0_5_keeps_the_place_in_its_guard() {
    let mutex: lock_api_0_5::Mutex<Clh<SpinThenPark>, u32> = lock_api_0_5::Mutex::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..50).for_each(|_| *mutex.lock() += 1));
        }
    });
    assert!(mutex.try_lock().is_some());
    assert_eq!(mutex.into_inner(), 200);
}

#[test]
#[cfg(feature = "capi")]
fn the_c_api_locks() {
    use wattwise_locks::capi::*;
    // SAFETY: names are C strings; each lock is released before it is freed.
    unsafe {
        assert!(ww_mutex_new(c"mutexee".as_ptr()).is_null());
        for name in [c"graunke-thakkar:park".as_ptr(), c"clh".as_ptr(), std::ptr::null()] {
            let mutex = ww_mutex_new(name);
            ww_mutex_lock(mutex);
            assert_eq!(ww_mutex_trylock(mutex), 0);
            assert_eq!(ww_mutex_lock_for(mutex, 1_000_000), 0);
            ww_mutex_unlock(mutex);
            assert_eq!(ww_mutex_trylock(mutex), 1);
            ww_mutex_unlock(mutex);
            assert_eq!(ww_mutex_lock_for(mutex, 1_000_000), 1);
            ww_mutex_unlock(mutex);
            ww_mutex_free(mutex);
        }
        ww_mutex_free(std::ptr::null_mut());
    }
}
