//! A lock with its data, and guards.

use crate::raw::{RawLock, Token};
use crate::stats::HoldStats;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// Data that one thread at a time may use, behind a lock of one's choice.
///
/// ```
/// use wattwise_locks::{Mcs, Mutex, wait::SpinThenPark};
///
/// static COUNT: Mutex<u64, Mcs<SpinThenPark>> = Mutex::new(0);
/// *COUNT.lock() += 1;
/// assert_eq!(*COUNT.lock(), 1);
/// assert!(COUNT.try_lock().is_some());
/// ```
///
/// A panic while the guard lives releases the lock and leaves the data as it is: there is no poisoning.
pub struct Mutex<T: ?Sized, L = crate::Adaptive> {
    lock: L,
    stats: HoldStats,
    data: UnsafeCell<T>,
}

// SAFETY: the lock gives the data to one thread at a time.
unsafe impl<T: ?Sized + Send, L: RawLock> Sync for Mutex<T, L> {}
// SAFETY: the mutex owns its data.
unsafe impl<T: ?Sized + Send, L: RawLock> Send for Mutex<T, L> {}

impl<T, L: RawLock> Mutex<T, L> {
    /// An unlocked mutex.
    #[cfg(not(loom))]
    pub const fn new(data: T) -> Self {
        Mutex { lock: L::INIT, stats: HoldStats::new(), data: UnsafeCell::new(data) }
    }

    /// An unlocked mutex.
    #[cfg(loom)]
    pub fn new(data: T) -> Self {
        Mutex { lock: L::default(), stats: HoldStats::new(), data: UnsafeCell::new(data) }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized, L: RawLock> Mutex<T, L> {
    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, L> {
        let asked = self.stats.asks();
        let token = self.lock.lock();
        self.stats.acquired(asked);
        MutexGuard { mutex: self, token, not_send: PhantomData }
    }

    /// The lock, if it can be had without waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, L>> {
        let asked = self.stats.asks();
        let token = self.lock.try_lock()?;
        self.stats.acquired(asked);
        Some(MutexGuard { mutex: self, token, not_send: PhantomData })
    }

    /// The lock, if it can be had in time.
    #[cfg(feature = "std")]
    pub fn try_lock_for(&self, time: core::time::Duration) -> Option<MutexGuard<'_, T, L>> {
        let asked = self.stats.asks();
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let token = self.lock.lock_until(crate::Deadline::after(nanos))?;
        self.stats.acquired(asked);
        Some(MutexGuard { mutex: self, token, not_send: PhantomData })
    }

    /// The data, without locking: there is no other reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Whether someone holds the lock, at some moment during the call.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// What was counted so far.
    #[cfg(feature = "stats")]
    pub fn stats(&self) -> crate::stats::LockStats {
        let _held = self.lock();
        // SAFETY: the lock is held.
        unsafe { self.stats.report() }
    }
}

impl<T: Default, L: RawLock> Default for Mutex<T, L> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug, L: RawLock> fmt::Debug for Mutex<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(data) => f.debug_struct("Mutex").field("data", &&*data).finish(),
            None => f.debug_struct("Mutex").field("data", &format_args!("<locked>")).finish(),
        }
    }
}

/// The data of a locked [`Mutex`]; dropping it releases the lock.
#[must_use = "the lock is released at once"]
pub struct MutexGuard<'a, T: ?Sized, L: RawLock = crate::Adaptive> {
    mutex: &'a Mutex<T, L>,
    token: Token,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the data, as `&T` does.
unsafe impl<T: ?Sized + Sync, L: RawLock> Sync for MutexGuard<'_, T, L> {}

impl<T: ?Sized, L: RawLock> Deref for MutexGuard<'_, T, L> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized, L: RawLock> DerefMut for MutexGuard<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed alone.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized, L: RawLock> Drop for MutexGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock.
        unsafe { self.mutex.stats.releases() };
        // SAFETY: the token is of the acquisition that made the guard, which is dropped once.
        unsafe { self.mutex.lock.unlock(self.token) }
    }
}

impl<T: ?Sized + fmt::Debug, L: RawLock> fmt::Debug for MutexGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
