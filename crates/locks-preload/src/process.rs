//! What the process chose, and whether it was forked since.
//!
//! The choice lives on a page that the kernel wipes in the child of a fork (MADV_WIPEONFORK), so every call
//! finds out by the load that it makes anyway, whatever runs first in the child.
//!
//! | word | before | after the first call | in a child |
//! |---|---|---|---|
//! | `kind` | 0 | the lock's functions | wiped to 0, then as before |
//! | `generation` | 0 | 0 | 1 more than in the parent |
//! | `repairing` | 0 | 0 or 1 | wiped to 0 |
//!
//! Locks and condition variables carry the generation in which they were last seen. An older one tells of
//! waiters that the fork left behind: threads that do not exist here and can neither wake nor be woken. They
//! are forgotten ([`repair`]) before anything else happens to it.

use crate::real;
use crate::say::{fail, say};
use libc::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use wattwise_locks::dynamic::LockKind;

/// See the [module](self)'s table.
pub(crate) struct Page {
    kind: AtomicPtr<LockKind>,
    generation: AtomicU32,
    repairing: AtomicU32,
}

static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());

/// The generation, outside the page: what a child counts on from.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static CHOSEN: AtomicPtr<LockKind> = AtomicPtr::new(null_mut());

/// Calls that were glibc's to answer, and condition variables among them.
pub(crate) static FOREIGN_MUTEX: AtomicU64 = AtomicU64::new(0);
pub(crate) static FOREIGN_COND: AtomicU64 = AtomicU64::new(0);

/// What a mutex has room for.
pub(crate) const ROOM: usize = 16;

/// The lock's functions and the generation.
#[inline]
pub(crate) fn now() -> (&'static LockKind, u32) {
    let page = PAGE.load(Ordering::Acquire);
    if !page.is_null() {
        // SAFETY: never unmapped once set.
        let page = unsafe { &*page };
        // SAFETY: null, or the choice, which is static.
        if let Some(kind) = unsafe { page.kind.load(Ordering::Acquire).as_ref() } {
            return (kind, page.generation.load(Ordering::Relaxed));
        }
    }
    begin()
}

/// The first call in a process, or in the child of a fork.
#[cold]
fn begin() -> (&'static LockKind, u32) {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        let kind = choose();
        CHOSEN.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Relaxed);
        page = map();
        // SAFETY: mapped, zeroed and not shared yet.
        unsafe { &*page }.kind.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Relaxed);
        if let Err(first) = PAGE.compare_exchange(null_mut(), page, Ordering::AcqRel, Ordering::Acquire) {
            // Another thread was first; its page is as good, and this one is left alone.
            page = first;
        } else if real::environment(c"WATTWISE_LOCK_STATS").is_some_and(|v| v.to_bytes() == b"1") {
            // SAFETY: a function that may run at any time.
            unsafe { libc::atexit(report) };
        }
    }
    // SAFETY: never unmapped.
    let page = unsafe { &*page };
    one_by_one(page, || {
        if page.kind.load(Ordering::Relaxed).is_null() {
            // Wiped: a child.
            let generation = GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
            page.generation.store(generation, Ordering::Relaxed);
            page.kind.store(CHOSEN.load(Ordering::Relaxed), Ordering::Release);
        }
    });
    // SAFETY: set above, to something static.
    (unsafe { &*page.kind.load(Ordering::Acquire) }, page.generation.load(Ordering::Relaxed))
}

/// One thread of the process at a time. The word is wiped in children, where its holder does not exist.
fn one_by_one(page: &Page, then: impl FnOnce()) {
    while page.repairing.swap(1, Ordering::Acquire) != 0 {
        // SAFETY: no arguments.
        unsafe { libc::sched_yield() };
    }
    then();
    page.repairing.store(0, Ordering::Release);
}

/// Has `forget` run once for something whose `seen` generation is not the current one.
#[cold]
pub(crate) fn repair(seen: &AtomicU32, forget: impl FnOnce()) {
    let (_, generation) = now();
    // SAFETY: `now` has set it, and it is never unmapped.
    let page = unsafe { &*PAGE.load(Ordering::Acquire) };
    one_by_one(page, || {
        if seen.load(Ordering::Relaxed) != generation {
            forget();
            seen.store(generation, Ordering::Release);
        }
    });
}

fn map() -> *mut Page {
    /// One page is the least that can be wiped.
    const BYTES: usize = 4096;
    // SAFETY: an anonymous mapping at no address in particular.
    let at = unsafe {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        libc::mmap(null_mut(), BYTES, prot, flags, -1, 0)
    };
    if at == libc::MAP_FAILED {
        fail(&[b"no memory"]);
    }
    // SAFETY: the mapping above.
    if unsafe { libc::madvise(at, BYTES, libc::MADV_WIPEONFORK) } != 0 {
        // Before Linux 4.14: a handler, which other handlers may run before.
        extern "C" fn wipe() {
            let page = PAGE.load(Ordering::Relaxed);
            // SAFETY: set before the handler can run, never unmapped.
            if let Some(page) = unsafe { page.as_ref() } {
                page.kind.store(null_mut(), Ordering::Relaxed);
                page.repairing.store(0, Ordering::Relaxed);
            }
        }
        // SAFETY: a function that may run in any child.
        unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
    }
    at.cast()
}

fn choose() -> &'static LockKind {
    let name = real::environment(c"WATTWISE_LOCK").map_or(&b"adaptive"[..], |value| value.to_bytes());
    let name = std::str::from_utf8(name).unwrap_or("?");
    let (lock, wait) = name.split_once(':').unwrap_or((name, ""));
    // Not `LockKind::parse`, whose complaint allocates: the program's `malloc` may be what is waiting for this lock.
    let usual = if lock == "adaptive" { "spin" } else { "spin-then-park" };
    let wait = if wait.is_empty() { usual } else { wait };
    match LockKind::all().iter().find(|kind| kind.lock == lock && kind.wait == wait) {
        Some(kind) if kind.size > ROOM => {
            fail(&[b"WATTWISE_LOCK=", name.as_bytes(), b": an array lock does not fit in a pthread_mutex_t; expected tas, ttas, ticket, mcs, clh or adaptive"])
        }
        Some(kind) => kind,
        None => fail(&[
            b"WATTWISE_LOCK=",
            name.as_bytes(),
            b": expected LOCK or LOCK:POLICY with LOCK one of tas, ttas, ticket, mcs, clh, adaptive and POLICY one of spin, yield, park, spin-then-park, user-wait, kernel-wait, tstate+spin, pstate+spin, tstate+spin-then-park, pstate+spin-then-park",
        ]),
    }
}

/// What WATTWISE_LOCK_STATS=1 prints.
extern "C" fn report() {
    let number = |of: &AtomicU64, into: &mut [u8; 20]| -> usize {
        let mut left = of.load(Ordering::Relaxed);
        let mut at = into.len();
        loop {
            at -= 1;
            into[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return at;
            }
        }
    };
    let (kind, _) = now();
    let (mut a, mut b) = ([0; 20], [0; 20]);
    let (i, j) = (number(&FOREIGN_MUTEX, &mut a), number(&FOREIGN_COND, &mut b));
    say(&[
        kind.lock.as_bytes(),
        b":",
        kind.wait.as_bytes(),
        b"; left to glibc: ",
        &a[i..],
        b" calls on mutexes and ",
        &b[j..],
        b" on condition variables that are shared, robust or of a priority protocol",
    ]);
}

thread_local! {
    /// This thread's number, 0 until it needs one. Nothing to drop, so it can be used until the thread's very end.
    static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A number that no other thread of this process has. Not the kernel's: a child of a fork goes on as the thread
/// that forked, and must be the owner of what that had locked.
pub(crate) fn me() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            // After 2^32 threads numbers come again; 0 means nobody.
            let mut next = NEXT.fetch_add(1, Ordering::Relaxed);
            if next == 0 {
                next = NEXT.fetch_add(1, Ordering::Relaxed);
            }
            number.set(next);
        }
        number.get()
    })
}

/// A deadline's nanoseconds are in range.
pub(crate) fn valid(at: &libc::timespec) -> bool {
    (0..1_000_000_000).contains(&at.tv_nsec)
}

/// The clocks that a wait may use.
pub(crate) fn known(clock: c_int) -> bool {
    clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC
}
