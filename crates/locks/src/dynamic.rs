//! Locks by name, at run time: `mcs:spin-then-park`.
//!
//! One row a lock and one a policy in the tables below; every pair becomes a [`LockKind`] of plain functions over
//! zeroed memory, for the C API, the pthread interposer and benchmarks.

use crate::primitive::Deadline;
use crate::raw::{Quick, RawLock, Token};
use crate::wait::{KernelWait, Park, Spin, SpinThenPark, UserWait, Wait, WithPState, WithTState, Yield};
use crate::{Adaptive, Anderson, Clh, GraunkeThakkar, Mcs, Tas, Ticket, Ttas};
use core::ptr::NonNull;
use std::string::String;
use std::vec::Vec;

/// The functions of one lock with one policy. All take a pointer to at least [`size`](Self::size) bytes,
/// aligned to [`align`](Self::align), that began as zeros.
#[derive(Clone, Copy, Debug)]
pub struct LockKind {
    /// The lock's name.
    pub lock: &'static str,
    /// The policy's name.
    pub wait: &'static str,
    /// Bytes.
    pub size: usize,
    /// Their alignment.
    pub align: usize,
    /// Whether threads acquire in the order in which they came.
    pub fifo: bool,
    /// Whether it can be taken without the functions below, in its first word.
    pub quick: Quick,
    /// [`RawLock::lock`].
    pub acquire: unsafe fn(NonNull<u8>) -> Token,
    /// [`RawLock::try_lock`].
    pub try_acquire: unsafe fn(NonNull<u8>) -> Option<Token>,
    /// [`RawLock::lock_until`].
    pub acquire_until: unsafe fn(NonNull<u8>, Deadline) -> Option<Token>,
    /// [`RawLock::unlock`].
    pub release: unsafe fn(NonNull<u8>, Token),
    /// [`RawLock::is_locked`].
    pub is_locked: unsafe fn(NonNull<u8>) -> bool,
    /// [`RawLock::forget_waiters`].
    pub forget_waiters: unsafe fn(NonNull<u8>, Option<Token>),
}

impl LockKind {
    const fn of<L: RawLock>(wait: &'static str) -> LockKind {
        LockKind {
            lock: L::NAME,
            wait,
            size: size_of::<L>(),
            align: align_of::<L>(),
            fifo: L::FIFO,
            quick: L::QUICK,
            // SAFETY: by contract `at` is such a lock, which all zeros are, and outlives the call.
            acquire: |at| unsafe { at.cast::<L>().as_ref() }.lock(),
            // SAFETY: as above.
            try_acquire: |at| unsafe { at.cast::<L>().as_ref() }.try_lock(),
            // SAFETY: as above.
            acquire_until: |at, deadline| unsafe { at.cast::<L>().as_ref() }.lock_until(deadline),
            // SAFETY: as above, and the token is by contract of this lock.
            release: |at, token| unsafe { at.cast::<L>().as_ref().unlock(token) },
            // SAFETY: as above.
            is_locked: |at| unsafe { at.cast::<L>().as_ref() }.is_locked(),
            // SAFETY: as above, and by contract nobody else uses the lock.
            forget_waiters: |at, held| unsafe { at.cast::<L>().as_ref().forget_waiters(held) },
        }
    }

    /// `lock:policy`.
    pub fn name(&self) -> String {
        std::format!("{}:{}", self.lock, self.wait)
    }

    /// The kind of a name: `LOCK:POLICY`, or `LOCK` for its usual policy (`adaptive:spin`, others
    /// `:spin-then-park`).
    pub fn parse(name: &str) -> Result<&'static LockKind, UnknownKind> {
        let (lock, wait) = name.split_once(':').unwrap_or((name, ""));
        let wait = match (lock, wait) {
            ("adaptive", "") => "spin",
            (_, "") => "spin-then-park",
            _ => wait,
        };
        KINDS
            .iter()
            .find(|kind| kind.lock == lock && kind.wait == wait)
            .ok_or_else(|| UnknownKind { name: name.into() })
    }

    /// Every lock with every policy.
    pub fn all() -> &'static [LockKind] {
        KINDS
    }
}

/// A name that is no lock's and policy's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    name: String,
}

impl core::fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let distinct = |of: fn(&LockKind) -> &'static str| {
            let mut names = Vec::new();
            for kind in KINDS {
                if !names.contains(&of(kind)) {
                    names.push(of(kind));
                }
            }
            names.join(", ")
        };
        let (locks, waits) = (distinct(|k| k.lock), distinct(|k| k.wait));
        write!(
            f,
            "{:?}: expected LOCK or LOCK:POLICY with LOCK one of {locks} and POLICY one of {waits}",
            self.name
        )
    }
}

impl std::error::Error for UnknownKind {}

/// A row for each lock...
macro_rules! locks {
    ($($policy:ty => $name:expr),+ $(,)?) => {
        &[$(
            LockKind::of::<Tas<$policy>>($name),
            LockKind::of::<Ttas<$policy>>($name),
            LockKind::of::<Ticket<$policy>>($name),
            LockKind::of::<Anderson<$policy>>($name),
            LockKind::of::<GraunkeThakkar<$policy>>($name),
            LockKind::of::<Mcs<$policy>>($name),
            LockKind::of::<Clh<$policy>>($name),
            LockKind::of::<Adaptive<$policy>>($name),
        )+]
    };
}

/// ...times a row for each policy.
static KINDS: &[LockKind] = locks! {
    Spin => Spin::NAME,
    Yield => Yield::NAME,
    Park => Park::NAME,
    SpinThenPark => SpinThenPark::NAME,
    UserWait => UserWait::NAME,
    KernelWait => KernelWait::NAME,
    WithTState<Spin> => "tstate+spin",
    WithPState<Spin> => "pstate+spin",
    WithTState<SpinThenPark> => "tstate+spin-then-park",
    WithPState<SpinThenPark> => "pstate+spin-then-park",
};

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

    #[test]
    fn the_quick_way_and_the_functions_are_of_one_lock() {
        let mut quick = 0;
        for kind in LockKind::all().iter().filter(|kind| kind.quick != Quick::Never) {
            quick += 1;
            let words = [const { AtomicU64::new(0) }; 2];
            assert!(kind.size <= size_of_val(&words) && kind.align <= 8, "{}", kind.name());
            let at = NonNull::from(&words).cast::<u8>();
            // SAFETY: the lock's words.
            let narrow = unsafe { at.cast::<AtomicU32>().as_ref() };
            // SAFETY: as above; two words, whatever the policy.
            let numbers = unsafe { at.cast::<Ticket<Spin>>().as_ref() };
            let swap = |from: u64, to: u64| match kind.quick {
                Quick::Numbers if from < to => numbers.acquire_free(),
                Quick::Numbers => numbers.release_alone(),
                Quick::Word64 => words[0].compare_exchange(from, to, SeqCst, SeqCst).is_ok(),
                _ => narrow.compare_exchange(from as u32, to as u32, SeqCst, SeqCst).is_ok(),
            };
            for _ in 0..3 {
                // SAFETY: a lock of this kind, and its own tokens.
                unsafe {
                    let name = kind.name();
                    assert!(swap(0, 1) && (kind.is_locked)(at) && (kind.try_acquire)(at).is_none(), "{name}");
                    (kind.release)(at, Token(1));
                    assert!(!(kind.is_locked)(at), "{name}");
                    let token = (kind.acquire)(at);
                    assert!(!swap(0, 1), "{name}");
                    assert!(swap(1, 0) && !swap(1, 0) && !(kind.is_locked)(at), "{name}: {token:?}");
                }
            }
        }
        assert_eq!(quick, 60, "six locks with ten policies");
    }

    #[test]
    fn names_are_found_and_mistakes_explained() {
        assert_eq!(LockKind::parse("mcs:park").expect("known").name(), "mcs:park");
        assert_eq!(LockKind::parse("mcs").expect("known").name(), "mcs:spin-then-park");
        assert_eq!(LockKind::parse("adaptive").expect("known").name(), "adaptive:spin");
        for kind in LockKind::all() {
            assert!(std::ptr::eq(LockKind::parse(&kind.name()).expect("known"), kind), "{}", kind.name());
        }
        let why = LockKind::parse("mutexee:park").expect_err("unknown").to_string();
        assert!(
            why.contains("mutexee:park") && why.contains("graunke-thakkar") && why.contains("user-wait"),
            "{why}"
        );
    }
}
