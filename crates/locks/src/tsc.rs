//! Short times: the time-stamp counter, and how many of its ticks make a microsecond.
//!
//! Waiting is bounded by time and never by iterations: one PAUSE takes about 10 cycles on CPUs before Skylake
//! and about 140 on it, so a count that waits 2 us on one machine waits 30 us on another.
//!
//! The counter's rate is learned on the way. The first caller notes counter and clock; a later one, at least
//! `LEARN_NS` after, divides. Until then `GUESS` stands in: being wrong by half for the first
//! milliseconds of a process costs less than stopping its first lock for a calibration.

use crate::primitive::relax;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};

/// Ticks in a microsecond until measured: middle of what is sold.
#[cfg(not(loom))]
const GUESS: u32 = 2500;

/// Clock reads differ by tens of ns: over 2 ms that is some 1 in 100,000.
#[cfg(all(not(loom), feature = "std"))]
const LEARN_NS: u64 = 2_000_000;

/// The counter now. Not serialising: instructions around it may move by tens of cycles.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        // SAFETY: every x86-64 CPU has RDTSC; a kernel that forbids it to users (PR_SET_TSC) breaks the C library too.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
    {
        let ticks: u64;
        // SAFETY: reads the virtual counter, which Linux lets users read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(any(loom, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        // No counter: time is the number of looks. Bounded waits stay bounded.
        LOOKS.fetch_add(look_takes(), core::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(loom)]
std::thread_local!(static LOOK_TAKES: core::cell::Cell<u64> = const { core::cell::Cell::new(1000) });

/// In models that this thread explores: by how much each look at the time moves it on, 1000 at first.
#[cfg(loom)]
pub fn set_look_takes(ticks: u64) {
    LOOK_TAKES.set(ticks);
}

#[cfg(any(loom, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn look_takes() -> u64 {
    #[cfg(loom)]
    return LOOK_TAKES.get();
    #[cfg(not(loom))]
    1000
}

// Made anew for each execution of a model, so that executions repeat.
#[cfg(loom)]
loom::lazy_static! {
    static ref LOOKS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
}
#[cfg(all(not(loom), any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64")))))]
static LOOKS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// Ticks in a microsecond, at least 1.
#[cfg(not(loom))]
pub(crate) fn per_us() -> u64 {
    /// 0 until learned.
    static RATE: AtomicU32 = AtomicU32::new(0);
    let rate = RATE.load(Ordering::Relaxed);
    if rate != 0 {
        return u64::from(rate);
    }
    u64::from(learn(&RATE).unwrap_or(GUESS))
}

#[cfg(loom)]
pub(crate) fn per_us() -> u64 {
    1
}

#[cfg(all(not(loom), feature = "std"))]
#[cold]
fn learn(rate: &AtomicU32) -> Option<u32> {
    use core::sync::atomic::AtomicU64;
    /// Counter and clock of the first call; the clock is written last and is 0 before.
    static FIRST_TICKS: AtomicU64 = AtomicU64::new(0);
    static FIRST_NS: AtomicU64 = AtomicU64::new(0);
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (ns, ticks) = (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, now());
    let first_ns = FIRST_NS.load(Ordering::Acquire);
    if first_ns == 0 {
        // Only one caller writes the pair.
        if FIRST_TICKS.compare_exchange(0, ticks.max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            FIRST_NS.store(ns.max(1), Ordering::Release);
        }
        return None;
    }
    let passed = ns.checked_sub(first_ns).filter(|passed| *passed >= LEARN_NS)?;
    let counted = ticks.wrapping_sub(FIRST_TICKS.load(Ordering::Relaxed));
    let found = (u128::from(counted) * 1000 / u128::from(passed)) as u32;
    // A counter that stands still or leaps is no clock; keep the guess.
    let found = if (10..=20_000).contains(&found) { found } else { GUESS };
    rate.store(found, Ordering::Relaxed);
    Some(found)
}

#[cfg(all(not(loom), not(feature = "std")))]
fn learn(_: &AtomicU32) -> Option<u32> {
    None
}

/// Pauses for at least `ticks`, looking at nothing.
#[inline]
pub(crate) fn pause_for(ticks: u64) {
    if cfg!(loom) {
        return relax();
    }
    let start = now();
    loop {
        relax();
        if now().wrapping_sub(start) >= ticks {
            return;
        }
    }
}
