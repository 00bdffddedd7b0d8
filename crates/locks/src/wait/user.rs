//! `user-wait`: an instruction that stops the core until the word's cache line is written.
//!
//! It keeps nothing; which instruction there is, is found out once for the process.
//!
//! 1. **Find.** CPUID alone decides what may be executed: WAITPKG (leaf 7, ECX bit 5) means UMONITOR and
//!    UMWAIT, MONITORX (leaf 8000_0001h, ECX bit 29) means MONITORX and MWAITX. Never a model name: guests
//!    hide the bits, and an instruction that CPUID denies faults on some CPUs and does nothing on others.
//! 2. **Test.** A hypervisor may let the instruction through and make it return at once, which would be a
//!    spin loop in disguise. So each back end first waits `PROOF_US` on a line that no one writes, `PROOFS`
//!    times; it is used if the median took at least half of that. Otherwise: PAUSE.
//! 3. **Wait.** Arm the monitor on the word's line, *read the word again*, and wait only if it still holds
//!    what was seen: a write before the arming would not wake. At most `BOUND_US`, since either instruction
//!    may miss nothing but may also be interrupted, capped by the kernel (IA32_UMWAIT_CONTROL) or woken by a
//!    neighbour's write; then look again.
//!
//! The two families count time differently: UMWAIT takes an absolute time-stamp in EDX:EAX, MWAITX a relative
//! 32-bit number of ticks in EBX. [`Instruction::wait`] therefore takes a relative time in ticks, each back
//! end converts, and no other code knows.
//!
//! C0.2 saves more and wakes later (0.5 us more) than C0.1. The first wait of an acquisition asks for C0.1,
//! later ones for C0.2: who has waited one bound is likely to wait more.
//!
//! Without either instruction this is `spin`, and [`user_wait_backend`] says so. **The instructions have not
//! been run by this project:** its machines hide both. They are compiled, gated, and the sequence around them
//! is tested through a stand-in.

// Models have no instructions.
#![cfg_attr(any(loom, miri, not(target_arch = "x86_64")), allow(dead_code))]

use super::{Wait, WaitStep};
use crate::primitive::{AtomicU32, Ordering, relax};

/// Longest single wait: what Linux allows UMWAIT by default (100,000 cycles) is 30 to 50 us.
const BOUND_US: u32 = 30;

/// How long a test wait should take: ten times what an instruction that returns at once takes in a guest (1.2 us).
#[cfg(all(not(loom), not(miri), target_arch = "x86_64"))]
const PROOF_US: u32 = 12;

/// Test waits: an interrupt ends one early now and then, not three of five.
#[cfg(not(loom))]
const PROOFS: usize = 5;

/// How waiting is done on this CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserWaitBackend {
    /// UMONITOR and UMWAIT.
    Umwait,
    /// MONITORX and MWAITX.
    Mwaitx,
    /// Neither, or it did not wait: PAUSE.
    Pause,
}

/// How deeply to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// C0.1: quicker to leave.
    Light,
    /// C0.2: saves more.
    Deep,
}

/// A monitor and a wait on it.
pub(crate) trait Instruction {
    /// Watches the cache line of `word` for writes.
    fn arm(&self, word: &AtomicU32);
    /// Waits for a write to the armed line, an interrupt, or `ticks` of the time-stamp counter **from now**.
    fn wait(&self, ticks: u32, depth: Depth);
}

/// Step 3: arm, read again, wait.
fn arm_read_wait(by: &impl Instruction, word: &AtomicU32, seen: u32, ticks: u32, depth: Depth) {
    by.arm(word);
    // Acquire: the read stays between the arming and the wait.
    if word.load(Ordering::Acquire) == seen {
        by.wait(ticks, depth);
    }
}

/// Step 2: whether the median of the test waits took half of what was asked. `took` waits and says how long, in ticks.
#[cfg(not(loom))]
fn really_waits(asked: u64, mut took: impl FnMut() -> u64) -> bool {
    let mut times: [u64; PROOFS] = core::array::from_fn(|_| took());
    times.sort_unstable();
    times[PROOFS / 2] >= asked / 2
}

/// What [`UserWait`] uses here; finds out on the first call.
pub fn user_wait_backend() -> UserWaitBackend {
    #[cfg(not(loom))]
    {
        use core::sync::atomic::{AtomicU8, Ordering};
        /// 0 unknown, else 1 + the back end's number.
        static FOUND: AtomicU8 = AtomicU8::new(0);
        match FOUND.load(Ordering::Relaxed) {
            1 => return UserWaitBackend::Umwait,
            2 => return UserWaitBackend::Mwaitx,
            3 => return UserWaitBackend::Pause,
            _ => {}
        }
        let found = find();
        // Two threads may both find out, and find the same.
        FOUND.store(1 + found as u8, Ordering::Relaxed);
        found
    }
    #[cfg(loom)]
    UserWaitBackend::Pause
}

#[cfg(all(not(loom), not(all(target_arch = "x86_64", not(miri)))))]
fn find() -> UserWaitBackend {
    UserWaitBackend::Pause
}

#[cfg(all(not(loom), target_arch = "x86_64", not(miri)))]
#[cold]
fn find() -> UserWaitBackend {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    // `unused_unsafe`: CPUID became safe to call in later toolchains; every x86-64 CPU has it.
    #[allow(unused_unsafe)]
    // SAFETY: as above.
    let (waitpkg, monitorx) = unsafe {
        let waitpkg = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx >> 5 & 1 == 1;
        let monitorx = __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).ecx >> 29 & 1 == 1;
        (waitpkg, monitorx)
    };
    if waitpkg && proves(&x86::Umwait) {
        UserWaitBackend::Umwait
    } else if monitorx && proves(&x86::Mwaitx) {
        UserWaitBackend::Mwaitx
    } else {
        UserWaitBackend::Pause
    }
}

#[cfg(all(not(loom), target_arch = "x86_64", not(miri)))]
fn proves(by: &impl Instruction) -> bool {
    /// A line of its own: no neighbour's write ends the test.
    #[repr(align(128))]
    struct Still(AtomicU32);
    let still = Still(AtomicU32::new(0));
    let ticks = PROOF_US * crate::tsc::per_us() as u32;
    really_waits(u64::from(ticks), || {
        let start = crate::tsc::now();
        arm_read_wait(by, &still.0, 0, ticks, Depth::Light);
        crate::tsc::now().wrapping_sub(start)
    })
}

/// The instructions. Each is reached only after CPUID has shown it.
#[cfg(all(not(loom), target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::{AtomicU32, Depth, Instruction};
    use core::arch::asm;

    pub(super) struct Umwait;

    impl Instruction for Umwait {
        #[inline]
        fn arm(&self, word: &AtomicU32) {
            // SAFETY: reached only where CPUID shows WAITPKG; UMONITOR reads the address, which is valid.
            unsafe { asm!("umonitor {}", in(reg) word.as_ptr(), options(nostack, preserves_flags)) }
        }

        #[inline]
        fn wait(&self, ticks: u32, depth: Depth) {
            let deadline = crate::tsc::now().wrapping_add(u64::from(ticks));
            // Bit 0 of the operand: 1 is C0.1, 0 is C0.2.
            let state: u32 = if depth == Depth::Light { 1 } else { 0 };
            // Carry would say that the kernel's cap ended the wait: all the same to a waiter that looks again.
            // SAFETY: reached only where CPUID shows WAITPKG; changes no memory and only the flags.
            unsafe {
                asm!("umwait {0:e}", in(reg) state, in("edx") (deadline >> 32) as u32, in("eax") deadline as u32, options(nostack));
            }
        }
    }

    pub(super) struct Mwaitx;

    impl Instruction for Mwaitx {
        #[inline]
        fn arm(&self, word: &AtomicU32) {
            // SAFETY: reached only where CPUID shows MONITORX; it reads the address, which is valid; no extensions, no hints.
            unsafe {
                asm!("monitorx", in("rax") word.as_ptr(), in("ecx") 0, in("edx") 0, options(nostack, preserves_flags));
            }
        }

        #[inline]
        fn wait(&self, ticks: u32, depth: Depth) {
            // EAX[7:4] is the C-state less 1: F is C0, 0 is C1. ECX bit 1: EBX is a timer.
            let hint: u32 = if depth == Depth::Light { 0xf0 } else { 0 };
            // SAFETY: reached only where CPUID shows MONITORX; RBX, which the compiler keeps for itself, is put back.
            unsafe {
                asm!(
                    "xchg {timer:r}, rbx",
                    "mwaitx",
                    "xchg {timer:r}, rbx",
                    timer = inout(reg) u64::from(ticks) => _,
                    in("eax") hint,
                    in("ecx") 2,
                    options(nostack, preserves_flags),
                );
            }
        }
    }
}

/// See the module's essay.
#[derive(Debug)]
pub struct UserWait {
    backend: UserWaitBackend,
    ticks: u32,
    depth: Depth,
}

impl Wait for UserWait {
    const NAME: &'static str = "user-wait";
    const SLEEPS: bool = false;

    #[inline]
    fn begin() -> Self {
        let ticks = BOUND_US * crate::tsc::per_us() as u32;
        UserWait { backend: user_wait_backend(), ticks, depth: Depth::Light }
    }

    #[inline]
    fn step(&mut self, word: &AtomicU32, seen: u32) -> WaitStep {
        match self.backend {
            #[cfg(all(not(loom), target_arch = "x86_64", not(miri)))]
            UserWaitBackend::Umwait => arm_read_wait(&x86::Umwait, word, seen, self.ticks, self.depth),
            #[cfg(all(not(loom), target_arch = "x86_64", not(miri)))]
            UserWaitBackend::Mwaitx => arm_read_wait(&x86::Mwaitx, word, seen, self.ticks, self.depth),
            _ => relax(),
        }
        self.depth = Depth::Deep;
        let _ = (word, seen, self.ticks);
        WaitStep::Look
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use std::vec::Vec;

    /// Remembers what it was asked, and can write the word between the arming and the second look, or wake by it.
    #[derive(Default)]
    struct StandIn {
        asked: RefCell<Vec<&'static str>>,
        write_on_arm: bool,
        waited: RefCell<Option<(u32, Depth)>>,
    }

    impl Instruction for StandIn {
        fn arm(&self, word: &AtomicU32) {
            self.asked.borrow_mut().push("arm");
            if self.write_on_arm {
                word.store(7, Ordering::Release);
            }
        }
        fn wait(&self, ticks: u32, depth: Depth) {
            self.asked.borrow_mut().push("wait");
            *self.waited.borrow_mut() = Some((ticks, depth));
        }
    }

    #[test]
    fn arms_before_it_waits_and_passes_relative_ticks() {
        let by = StandIn::default();
        arm_read_wait(&by, &AtomicU32::new(3), 3, 1234, Depth::Deep);
        assert_eq!(*by.asked.borrow(), ["arm", "wait"]);
        assert_eq!(*by.waited.borrow(), Some((1234, Depth::Deep)));
    }

    #[test]
    fn does_not_wait_for_a_write_that_came_before_or_during_the_arming() {
        let by = StandIn { write_on_arm: true, ..StandIn::default() };
        arm_read_wait(&by, &AtomicU32::new(3), 3, 1, Depth::Light);
        assert_eq!(*by.asked.borrow(), ["arm"]);
        let by = StandIn::default();
        arm_read_wait(&by, &AtomicU32::new(4), 3, 1, Depth::Light);
        assert_eq!(*by.asked.borrow(), ["arm"]);
    }

    #[test]
    fn the_self_test_tells_waiting_from_returning_at_once() {
        // 1.2 us of 12: MONITORX in a guest that hides it.
        assert!(!really_waits(12_000, || 1_200));
        assert!(really_waits(12_000, || 12_100));
        // Two of five ended by interrupts.
        let mut times = [100, 12_000, 50, 12_000, 12_000].into_iter();
        assert!(really_waits(12_000, || times.next().expect("five")));
        let mut times = [100, 12_000, 50, 70, 12_000].into_iter();
        assert!(!really_waits(12_000, || times.next().expect("five")));
    }

    #[test]
    fn nothing_is_used_that_cpuid_denies() {
        let found = user_wait_backend();
        #[cfg(target_os = "linux")]
        if let Ok(flags) = std::fs::read_to_string("/proc/cpuinfo") {
            if !flags.contains("waitpkg") {
                assert_ne!(found, UserWaitBackend::Umwait);
            }
            if !flags.contains("mwaitx") {
                assert_ne!(found, UserWaitBackend::Mwaitx);
            }
        }
        let mut wait = UserWait::begin();
        assert_eq!(wait.step(&AtomicU32::new(0), 0), WaitStep::Look);
    }
}
