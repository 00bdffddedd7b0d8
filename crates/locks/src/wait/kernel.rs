//! `kernel-wait`: MONITOR and MWAIT by a kernel device, with a C-state of one's choice.
//!
//! It keeps how long it has waited.
//!
//! 1. PAUSE and look for `SPIN_US`: entering the kernel and leaving an idle state costs about as much.
//! 2. Then ask the device to arm the monitor on the word, read it again, and MWAIT while it holds what was
//!    seen. The device bounds each wait (`BOUND_US`) and returns early on a write, an interrupt or another
//!    thread that wants the core.
//!
//! MONITOR and MWAIT are privileged, which is why a device is needed; study 004 found them to save most where
//! critical sections are long. The device is behind [`MonitorDevice`]; until [`set_monitor_device`] gives one,
//! [`StandInMonitor`] keeps its rules with PAUSE in the place of MWAIT.

use super::{Wait, WaitStep};
use crate::primitive::{AtomicU32, Ordering, relax};
use crate::tsc;

/// System call and leaving C1: 1 to 2 us.
const SPIN_US: u64 = 2;

#[cfg_attr(loom, allow(dead_code))]
/// Longest wait in the device. A thread that stays in the kernel cannot be seen by its debugger or by signals.
const BOUND_US: u32 = 1000;

/// Who executes MONITOR and MWAIT for us.
pub trait MonitorDevice: Sync {
    /// Arms the monitor on `word`, reads it again, and waits while it holds `seen`: for a write, an interrupt or
    /// at most `bound_us`. May return at any time, and returns at once if the word holds something else.
    fn wait_while(&self, word: &core::sync::atomic::AtomicU32, seen: u32, bound_us: u32);
}

/// Obeys the device's rules without it: watches the word, returns on a write or at the bound.
#[derive(Debug)]
pub struct StandInMonitor;

impl MonitorDevice for StandInMonitor {
    fn wait_while(&self, word: &core::sync::atomic::AtomicU32, seen: u32, bound_us: u32) {
        let start = tsc::now();
        let ticks = u64::from(bound_us) * tsc::per_us();
        while word.load(core::sync::atomic::Ordering::Acquire) == seen {
            if tsc::now().wrapping_sub(start) >= ticks {
                return;
            }
            relax();
        }
    }
}

/// The device in use.
#[cfg(not(loom))]
mod device {
    use super::{MonitorDevice, StandInMonitor};
    use core::cell::UnsafeCell;
    use core::sync::atomic::{AtomicU8, Ordering};

    struct KernelSlot {
        /// 0 the stand-in, 1 being set, 2 set.
        state: AtomicU8,
        device: UnsafeCell<&'static dyn MonitorDevice>,
    }

    // SAFETY: `device` is written once, between states 1 and 2, and read only in state 2.
    unsafe impl Sync for KernelSlot {}

    static SLOT: KernelSlot =
        KernelSlot { state: AtomicU8::new(0), device: UnsafeCell::new(&StandInMonitor) };

    pub(super) fn set(device: &'static dyn MonitorDevice) -> bool {
        if SLOT.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // SAFETY: only the caller that took the state from 0 to 1 is here, and nobody reads before 2.
        unsafe { *SLOT.device.get() = device };
        SLOT.state.store(2, Ordering::Release);
        true
    }

    pub(super) fn get() -> &'static dyn MonitorDevice {
        if SLOT.state.load(Ordering::Acquire) == 2 {
            // SAFETY: never written again after state 2.
            unsafe { *SLOT.device.get() }
        } else {
            &StandInMonitor
        }
    }
}

/// Puts a device to use for all later waits; false if one is already in use.
#[cfg(not(loom))]
pub fn set_monitor_device(device: &'static dyn MonitorDevice) -> bool {
    device::set(device)
}

/// Models have no device.
#[cfg(loom)]
pub fn set_monitor_device(_: &'static dyn MonitorDevice) -> bool {
    false
}

/// See the module's essay.
#[derive(Debug)]
pub struct KernelWait {
    began: Option<u64>,
}

impl Wait for KernelWait {
    const NAME: &'static str = "kernel-wait";
    const SLEEPS: bool = false;

    #[inline]
    fn begin() -> Self {
        KernelWait { began: None }
    }

    #[inline]
    fn step(&mut self, word: &AtomicU32, seen: u32) -> WaitStep {
        let now = tsc::now();
        let began = *self.began.get_or_insert(now);
        if now.wrapping_sub(began) < SPIN_US * tsc::per_us() {
            relax();
        } else if word.load(Ordering::Acquire) == seen {
            #[cfg(not(loom))]
            device::get().wait_while(word, seen, BOUND_US);
            #[cfg(loom)]
            relax();
        }
        WaitStep::Look
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32 as Word;

    #[test]
    fn the_stand_in_returns_at_once_on_another_value_and_at_the_bound() {
        let start = tsc::now();
        StandInMonitor.wait_while(&Word::new(1), 0, 1_000_000);
        StandInMonitor.wait_while(&Word::new(1), 1, 50);
        assert!(tsc::now().wrapping_sub(start) >= 50 * tsc::per_us() / 2);
    }

    #[test]
    fn a_device_is_set_once_and_then_asked() {
        struct KernelCounts(Word);
        impl MonitorDevice for KernelCounts {
            fn wait_while(&self, _: &Word, _: u32, bound_us: u32) {
                assert_eq!(bound_us, BOUND_US);
                self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            }
        }
        static DEVICE: KernelCounts = KernelCounts(Word::new(0));
        assert!(set_monitor_device(&DEVICE));
        assert!(!set_monitor_device(&StandInMonitor));
        let mut wait = KernelWait::begin();
        let word = Word::new(0);
        while DEVICE.0.load(core::sync::atomic::Ordering::Relaxed) == 0 {
            assert_eq!(wait.step(&word, 0), WaitStep::Look);
        }
    }
}
