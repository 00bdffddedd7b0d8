//! The traits of the `lock_api` crate, so that its `Mutex` and guards go over any lock of ours.
//!
//! ```
//! # #[cfg(feature = "lock_api_0_5")] {
//! use wattwise_locks::{Clh, wait::Park};
//! let count: lock_api_0_5::Mutex<Clh<Park>, u32> = lock_api_0_5::Mutex::new(0);
//! *count.lock() += 1;
//! # }
//! ```
//!
//! Version 0.5 keeps a lock's token in the guard, which is what queue locks need. Version 0.4 has no place for
//! it: `HeldLock` puts it beside the lock.

#[cfg(any(feature = "lock_api_0_4", feature = "lock_api_0_5"))]
use crate::raw::{RawLock, Token};

/// A lock with the token of its holder, for interfaces whose release takes none.
#[cfg(feature = "lock_api_0_4")]
#[derive(Debug)]
pub struct HeldLock<L> {
    lock: L,
    /// Used by the holder only.
    token: core::cell::Cell<Token>,
}

// SAFETY: the cell is used by the lock's holder only.
#[cfg(feature = "lock_api_0_4")]
unsafe impl<L: RawLock> Sync for HeldLock<L> {}

// SAFETY: as `RawLock` has it; the token that is stored by the holder is the one of its acquisition.
#[cfg(feature = "lock_api_0_4")]
unsafe impl<L: RawLock> lock_api_0_4::RawMutex for HeldLock<L> {
    const INIT: Self = HeldLock { lock: L::INIT, token: core::cell::Cell::new(Token::NONE) };
    type GuardMarker = lock_api_0_4::GuardNoSend;

    fn lock(&self) {
        let token = self.lock.lock();
        self.token.set(token);
    }

    fn try_lock(&self) -> bool {
        match self.lock.try_lock() {
            Some(token) => {
                self.token.set(token);
                true
            }
            None => false,
        }
    }

    unsafe fn unlock(&self) {
        let token = self.token.get();
        // SAFETY: by contract the caller holds the lock, so the token is its own.
        unsafe { self.lock.unlock(token) }
    }

    fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}

/// What a guard of `lock_api` 0.5 keeps. It stays on its thread.
#[cfg(feature = "lock_api_0_5")]
#[derive(Debug)]
pub struct GuardPlace(Token, core::marker::PhantomData<*const ()>);

// SAFETY: a shared place does nothing.
#[cfg(feature = "lock_api_0_5")]
unsafe impl Sync for GuardPlace {}

macro_rules! lock_api_0_5 {
    ($($lock:ident),+) => {$(
        // SAFETY: as `RawLock` has it; the guard keeps the token of its acquisition. No operation unwinds.
        #[cfg(feature = "lock_api_0_5")]
        unsafe impl<W: crate::wait::Wait> lock_api_0_5::RawMutex for crate::$lock<W> {
            const INIT: Self = <Self as RawLock>::INIT;
            type Guard = GuardPlace;

            fn lock(&self) -> GuardPlace {
                GuardPlace(RawLock::lock(self), core::marker::PhantomData)
            }

            fn try_lock(&self) -> Option<GuardPlace> {
                RawLock::try_lock(self).map(|token| GuardPlace(token, core::marker::PhantomData))
            }

            unsafe fn unlock(&self, place: GuardPlace) {
                // SAFETY: by contract the place is of an acquisition that is not released.
                unsafe { RawLock::unlock(self, place.0) }
            }

            fn is_locked(&self) -> bool {
                RawLock::is_locked(self)
            }
        }
    )+};
}

lock_api_0_5!(Tas, Ttas, Ticket, Anderson, GraunkeThakkar, Mcs, Clh, Adaptive);
