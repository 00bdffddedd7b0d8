//! What the process chose, and whether it was forked since.
//!
//! Both are on the page that a fork wipes (`page.rs`).
//!
//! Locks and condition variables carry the generation in which they were last seen. An older one tells of
//! waiters that the fork left behind: threads that do not exist here and can neither wake nor be woken. They
//! are forgotten ([`repair`]) before anything else happens to it.

use crate::page::{CHOSEN, PAGE, wipe_on_fork};
use crate::real;
use crate::say::{decimal, fail, say};
use crate::watch;
use libc::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wattwise_locks::dynamic::LockKind;
use wattwise_locks::{Quick, keep_errno};

/// The generation, outside the page: what a child counts on from.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Calls that were glibc's to answer, and condition variables among them.
pub(crate) static FOREIGN_MUTEX: AtomicU64 = AtomicU64::new(0);
pub(crate) static FOREIGN_COND: AtomicU64 = AtomicU64::new(0);

/// What a mutex has room for.
pub(crate) const ROOM: usize = 16;

/// The lock's functions and the generation.
#[inline]
pub(crate) fn now() -> (&'static LockKind, u32) {
    // SAFETY: null, or the choice, which is static.
    match unsafe { PAGE.kind.load(Ordering::Acquire).as_ref() } {
        Some(kind) => (kind, PAGE.generation.load(Ordering::Relaxed)),
        // It reads the environment, maps memory, and more.
        None => keep_errno(begin),
    }
}

/// The generation, where `quick` says that the first call was made.
#[inline]
pub(crate) fn generation() -> u32 {
    PAGE.generation.load(Ordering::Relaxed)
}

/// The first call in a process, or in the child of a fork.
#[cold]
fn begin() -> (&'static LockKind, u32) {
    let first = CHOSEN.load(Ordering::Relaxed).is_null();
    if first {
        // Before anything is written that a fork must wipe. Several threads may come here: each does the same.
        wipe_on_fork();
        WATCHED.store(watch::begin(), Ordering::Relaxed);
        CHOSEN.store(std::ptr::from_ref(choose()).cast_mut(), Ordering::Release);
    }
    // SAFETY: set above or before, to something static.
    let kind = unsafe { &*CHOSEN.load(Ordering::Acquire) };
    one_by_one(|| {
        if !PAGE.kind.load(Ordering::Relaxed).is_null() {
            return;
        }
        if STARTED.swap(true, Ordering::Relaxed) {
            // Wiped: a child.
            PAGE.generation.store(GENERATION.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        let watched = WATCHED.load(Ordering::Relaxed);
        PAGE.watched.store(u32::from(watched), Ordering::Relaxed);
        let quick = if watched { Quick::Never } else { kind.quick };
        // Release: who sees it sees the generation as well.
        PAGE.quick.store(quick as u32, Ordering::Release);
        PAGE.kind.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Release);
    });
    if first && !REPORTS.swap(true, Ordering::Relaxed) {
        // May allocate, and with it lock: the choice is made.
        if real::environment(c"WATTWISE_LOCK_STATS").is_some_and(|v| v.to_bytes() == b"1") {
            // SAFETY: a function that may run at any time.
            unsafe { libc::atexit(report) };
        }
        if WATCHED.load(Ordering::Relaxed) {
            // SAFETY: as above.
            unsafe { libc::atexit(watch::report) };
        }
    }
    (kind, generation())
}

/// The first call of all has been made, in this process or in the one that it was forked from.
static STARTED: AtomicBool = AtomicBool::new(false);
static REPORTS: AtomicBool = AtomicBool::new(false);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// One thread of the process at a time. The word is wiped in children, where its holder does not exist.
fn one_by_one(then: impl FnOnce()) {
    while PAGE.repairing.swap(1, Ordering::Acquire) != 0 {
        // SAFETY: no arguments.
        unsafe { libc::sched_yield() };
    }
    then();
    PAGE.repairing.store(0, Ordering::Release);
}

/// Has `forget` run once for something whose `seen` generation is not the current one.
#[cold]
pub(crate) fn repair(seen: &AtomicU32, forget: impl FnOnce()) {
    let (_, generation) = now();
    one_by_one(|| {
        if seen.load(Ordering::Relaxed) != generation {
            forget();
            seen.store(generation, Ordering::Release);
        }
    });
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
    let (kind, _) = now();
    let (mut a, mut b) = ([0; 20], [0; 20]);
    let mutexes = decimal(FOREIGN_MUTEX.load(Ordering::Relaxed), &mut a);
    let conditions = decimal(FOREIGN_COND.load(Ordering::Relaxed), &mut b);
    say(&[
        kind.lock.as_bytes(),
        b":",
        kind.wait.as_bytes(),
        b"; left to glibc: ",
        mutexes,
        b" calls on mutexes and ",
        conditions,
        b" on condition variables that are shared, robust or of a priority protocol",
    ]);
}

/// This thread's number, 0 until it needs one. Nothing to drop, so it can be used until the thread's very end.
///
/// A library that is loaded with the program has its place at a fixed distance from the thread pointer. The compiler does not
/// know that and would call `__tls_get_addr` each time, which takes longer than the rest of a recursive lock.
#[cfg(target_arch = "x86_64")]
mod number {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.wattwise_thread_number, \"awT\", @nobits",
        ".balign 4",
        ".hidden wattwise_thread_number",
        ".globl wattwise_thread_number",
        "wattwise_thread_number:",
        ".zero 4",
        ".popsection",
    );

    #[inline(always)]
    pub(super) fn get() -> u32 {
        let number;
        // SAFETY: reads this thread's four bytes.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + wattwise_thread_number@GOTTPOFF]",
                "mov {number:e}, dword ptr fs:[{at}]",
                at = out(reg) _, number = lateout(reg) number,
                options(nostack, preserves_flags, readonly, pure)
            );
        }
        number
    }

    pub(super) fn set(number: u32) {
        // SAFETY: writes this thread's four bytes, of which nobody has a reference.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + wattwise_thread_number@GOTTPOFF]",
                "mov dword ptr fs:[{at}], {number:e}",
                at = out(reg) _, number = in(reg) number,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// The same where the compiler's way is short.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    use std::cell::Cell;

    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }

    #[inline(always)]
    pub(super) fn get() -> u32 {
        NUMBER.get()
    }

    pub(super) fn set(number: u32) {
        NUMBER.set(number);
    }
}

/// A number that no other thread of this process has. Not the kernel's: a child of a fork goes on as the thread
/// that forked, and must be the owner of what that had locked.
#[inline(always)]
pub(crate) fn me() -> u32 {
    match number::get() {
        0 => first_number(),
        number => number,
    }
}

#[cold]
fn first_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // After 2^32 threads numbers come again; 0 means nobody.
    let mut next = NEXT.fetch_add(1, Ordering::Relaxed);
    if next == 0 {
        next = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    number::set(next);
    next
}

/// A deadline's nanoseconds are in range.
pub(crate) fn valid(at: &libc::timespec) -> bool {
    (0..1_000_000_000).contains(&at.tv_nsec)
}

/// The clocks that a wait may use.
pub(crate) fn known(clock: c_int) -> bool {
    clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC
}
