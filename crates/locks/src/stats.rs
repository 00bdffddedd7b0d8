//! What a mutex counts with the feature `stats`: acquisitions, and histograms of waiting and holding.
//!
//! Without the feature, `HoldStats` is empty and its calls are nothing: no time, no space, no read of a clock.

#[cfg(not(feature = "stats"))]
#[derive(Debug, Default)]
pub(crate) struct HoldStats;

/// When the lock was asked for, were it counted.
#[cfg(not(feature = "stats"))]
pub(crate) struct Asked;

#[cfg(not(feature = "stats"))]
impl HoldStats {
    pub(crate) const fn new() -> Self {
        HoldStats
    }
    #[inline(always)]
    pub(crate) fn asks(&self) -> Asked {
        Asked
    }
    #[inline(always)]
    pub(crate) fn acquired(&self, _: Asked) {}
    /// # Safety
    /// The lock is held.
    #[inline(always)]
    pub(crate) unsafe fn releases(&self) {}
}

#[cfg(feature = "stats")]
pub(crate) use on::HoldStats;
#[cfg(feature = "stats")]
pub use on::LockStats;

#[cfg(feature = "stats")]
mod on {
    use crate::tsc;
    use core::cell::UnsafeCell;
    use hdrhistogram::Histogram;
    use std::boxed::Box;

    /// A minute; longer waits count as this.
    const LONGEST_NS: u64 = 60_000_000_000;

    /// Everything is used by the lock's holder only.
    #[derive(Debug, Default)]
    pub(crate) struct HoldStats(UnsafeCell<Option<Box<HoldCounts>>>);

    // SAFETY: only the holder of the lock uses the inside.
    unsafe impl Sync for HoldStats {}

    #[derive(Debug)]
    struct HoldCounts {
        acquisitions: u64,
        held_since: u64,
        wait_ns: Histogram<u64>,
        hold_ns: Histogram<u64>,
    }

    /// A mutex's counts so far.
    #[derive(Clone, Debug)]
    pub struct LockStats {
        /// How often the lock was acquired.
        pub acquisitions: u64,
        /// From asking to acquiring, in ns.
        pub wait_ns: Histogram<u64>,
        /// From acquiring to releasing, in ns.
        pub hold_ns: Histogram<u64>,
    }

    fn histogram() -> Histogram<u64> {
        // Two digits: 3 KiB each. The bounds are valid, so the other arm is never taken.
        Histogram::new_with_bounds(1, LONGEST_NS, 2).unwrap_or_else(|_| unreachable!())
    }

    fn ns(ticks: u64) -> u64 {
        // A counter that ran backwards (another socket) counts as no time.
        (ticks as i64).max(0) as u64 * 1000 / tsc::per_us()
    }

    impl HoldStats {
        pub(crate) const fn new() -> Self {
            HoldStats(UnsafeCell::new(None))
        }

        pub(crate) fn asks(&self) -> u64 {
            tsc::now()
        }

        pub(crate) fn acquired(&self, asked: u64) {
            let now = tsc::now();
            // SAFETY: called by the holder, right after acquiring.
            let counts = unsafe { &mut *self.0.get() }.get_or_insert_with(|| {
                Box::new(HoldCounts {
                    acquisitions: 0,
                    held_since: 0,
                    wait_ns: histogram(),
                    hold_ns: histogram(),
                })
            });
            counts.acquisitions += 1;
            counts.wait_ns.saturating_record(ns(now.wrapping_sub(asked)));
            counts.held_since = tsc::now();
        }

        /// # Safety
        /// The lock is held.
        pub(crate) unsafe fn releases(&self) {
            // SAFETY: by contract.
            if let Some(counts) = unsafe { &mut *self.0.get() } {
                counts.hold_ns.saturating_record(ns(tsc::now().wrapping_sub(counts.held_since)));
            }
        }

        /// # Safety
        /// The lock is held.
        pub(crate) unsafe fn report(&self) -> LockStats {
            // SAFETY: by contract.
            match unsafe { &*self.0.get() } {
                Some(c) => LockStats {
                    acquisitions: c.acquisitions,
                    wait_ns: c.wait_ns.clone(),
                    hold_ns: c.hold_ns.clone(),
                },
                None => LockStats { acquisitions: 0, wait_ns: histogram(), hold_ns: histogram() },
            }
        }
    }
}
