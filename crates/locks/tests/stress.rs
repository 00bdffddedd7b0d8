//! Threads that come and go, on fewer cores: exclusion, and that everyone gets through.
#![cfg(all(feature = "std", not(loom)))]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wattwise_locks::Deadline;
use wattwise_locks::dynamic::LockKind;

/// A lock of some kind and what it protects: two counters that must stay equal.
#[repr(align(128))]
struct Protected {
    memory: UnsafeCell<[u8; 16 * 1024]>,
    kind: &'static LockKind,
    data: UnsafeCell<(u64, u64)>,
    inside: AtomicU32,
    timeouts: AtomicU64,
}

// SAFETY: `memory` is used as a lock, `data` under it.
unsafe impl Sync for Protected {}
// SAFETY: as above.
unsafe impl Send for Protected {}

impl Protected {
    fn new(kind: &'static LockKind) -> Self {
        Protected {
            memory: UnsafeCell::new([0; 16 * 1024]),
            kind,
            data: UnsafeCell::new((0, 0)),
            inside: AtomicU32::new(0),
            timeouts: AtomicU64::new(0),
        }
    }

    fn add(&self, how: u64) -> bool {
        let at = NonNull::new(self.memory.get().cast::<u8>()).expect("not null");
        // SAFETY: zeroed memory of enough size; each token is released below.
        let token = unsafe {
            match how % 8 {
                0 => (self.kind.try_acquire)(at),
                1 => (self.kind.acquire_until)(at, Deadline::after(how % 200_000)),
                _ => Some((self.kind.acquire)(at)),
            }
        };
        let Some(token) = token else {
            self.timeouts.fetch_add(1, Relaxed);
            return false;
        };
        assert_eq!(self.inside.fetch_add(1, Relaxed), 0, "{}: two inside", self.kind.name());
        // SAFETY: the lock is held.
        let data = unsafe { &mut *self.data.get() };
        data.0 += 1;
        if how % 64 == 9 {
            std::thread::yield_now();
        }
        data.1 += 1;
        assert_eq!(data.0, data.1);
        assert_eq!(self.inside.fetch_sub(1, Relaxed), 1);
        // SAFETY: acquired above.
        unsafe { (self.kind.release)(at, token) };
        true
    }
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// `threads` at a time, each of which starts its successor and ends, `generations` times.
fn storm(kind: &'static LockKind, threads: u64, generations: u64, rounds: u64) {
    let shared = Arc::new(Protected::new(kind));
    let (sender, ends) = std::sync::mpsc::channel();
    fn life(shared: Arc<Protected>, seed: u64, left: u64, rounds: u64, end: std::sync::mpsc::Sender<u64>) {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut done = 0;
        for _ in 0..rounds {
            done += u64::from(shared.add(xorshift(&mut random)));
        }
        end.send(done).expect("the test waits");
        if left > 0 {
            std::thread::spawn(move || life(shared, seed + 1000, left - 1, rounds, end));
        }
    }
    for seed in 1..=threads {
        let (shared, end) = (shared.clone(), sender.clone());
        std::thread::spawn(move || life(shared, seed, generations - 1, rounds, end));
    }
    let mut total = 0;
    for _ in 0..threads * generations {
        total +=
            ends.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| panic!("{}: stuck", kind.name()));
    }
    // SAFETY: every thread has said that it is done.
    let data = unsafe { *shared.data.get() };
    assert_eq!(data, (total, total), "{}", kind.name());
    let at = NonNull::new(shared.memory.get().cast::<u8>()).expect("not null");
    // SAFETY: the lock's memory.
    assert!(!unsafe { (kind.is_locked)(at) }, "{}: left locked", kind.name());
}

/// Locks that never sleep get 3 threads: with 64 on two cores a spinner burns the holder's time slice, and a run
/// takes half a minute each (docs/notes/locks.md). WATTWISE_STRESS multiplies the rounds.
#[test]
fn sixty_four_threads_come_and_go() {
    let factor: u64 = std::env::var("WATTWISE_STRESS").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    for kind in LockKind::all() {
        let gives_way = kind.wait.ends_with("park") || kind.wait == "yield" || kind.lock == "adaptive";
        let (threads, generations, rounds) = match gives_way {
            _ if cfg!(miri) => (3, 1, 3),
            true => (64, 2, 60),
            false => (3, 8, 10),
        };
        let began = std::time::Instant::now();
        storm(kind, threads, generations, rounds * factor);
        println!("{:32} {:6.0} ms", kind.name(), began.elapsed().as_secs_f64() * 1e3);
    }
}
