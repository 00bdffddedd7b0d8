//! The C API: `include/wattwise_locks.h`, generated from this file.
//!
//! A `ww_mutex` is any lock of the crate, chosen by name when it is initialised. Build it with
//! `cargo rustc --release -p wattwise-locks --features capi --crate-type staticlib`.

use crate::dynamic::LockKind;
use crate::primitive::Deadline;
use crate::raw::Token;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::NonNull;
use std::boxed::Box;

/// A lock that was chosen by name. Made by `ww_mutex_new`, freed by `ww_mutex_free`.
pub struct WwMutex {
    kind: &'static LockKind,
    /// What the holder needs for the release; used by the holder only.
    token: core::cell::Cell<usize>,
    memory: NonNull<u8>,
}

fn layout(kind: &LockKind) -> std::alloc::Layout {
    // Sizes and alignments of real types.
    std::alloc::Layout::from_size_align(kind.size.max(1), kind.align).unwrap_or_else(|_| unreachable!())
}

/// Makes an unlocked lock of this name, `LOCK:POLICY` such as `"mcs:spin-then-park"`; a null name is the
/// default. Null if there is no such lock.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_new(name: *const c_char) -> *mut WwMutex {
    let name = if name.is_null() {
        "adaptive"
    } else {
        // SAFETY: by contract.
        match unsafe { CStr::from_ptr(name) }.to_str() {
            Ok(name) => name,
            Err(_) => return core::ptr::null_mut(),
        }
    };
    let Ok(kind) = LockKind::parse(name) else { return core::ptr::null_mut() };
    // SAFETY: the size is not 0.
    let Some(memory) = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(kind)) }) else {
        return core::ptr::null_mut();
    };
    Box::into_raw(Box::new(WwMutex { kind, token: core::cell::Cell::new(0), memory }))
}

/// Frees a lock that nobody holds or waits for. Null is allowed.
///
/// # Safety
/// `mutex` is null, or came from `ww_mutex_new` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_free(mutex: *mut WwMutex) {
    if !mutex.is_null() {
        // SAFETY: by contract.
        let mutex = unsafe { Box::from_raw(mutex) };
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(mutex.memory.as_ptr(), layout(mutex.kind)) };
    }
}

/// Acquires, however long it takes.
///
/// # Safety
/// `mutex` came from `ww_mutex_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_lock(mutex: *mut WwMutex) {
    // SAFETY: by contract; shared, and `token` is written by the holder only.
    let mutex = unsafe { &*mutex };
    // SAFETY: the kind's own memory.
    mutex.token.set(unsafe { (mutex.kind.acquire)(mutex.memory) }.into_raw());
}

/// Acquires if that needs no waiting: 1, else 0.
///
/// # Safety
/// `mutex` came from `ww_mutex_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_trylock(mutex: *mut WwMutex) -> c_int {
    // SAFETY: as for `ww_mutex_lock`.
    let mutex = unsafe { &*mutex };
    // SAFETY: the kind's own memory.
    match unsafe { (mutex.kind.try_acquire)(mutex.memory) } {
        Some(token) => {
            mutex.token.set(token.into_raw());
            1
        }
        None => 0,
    }
}

/// Acquires within so many nanoseconds: 1, else 0.
///
/// # Safety
/// `mutex` came from `ww_mutex_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_lock_for(mutex: *mut WwMutex, nanoseconds: u64) -> c_int {
    // SAFETY: as for `ww_mutex_lock`.
    let mutex = unsafe { &*mutex };
    // SAFETY: the kind's own memory.
    match unsafe { (mutex.kind.acquire_until)(mutex.memory, Deadline::after(nanoseconds)) } {
        Some(token) => {
            mutex.token.set(token.into_raw());
            1
        }
        None => 0,
    }
}

/// Releases.
///
/// # Safety
/// `mutex` came from `ww_mutex_new` and the caller holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_unlock(mutex: *mut WwMutex) {
    // SAFETY: as for `ww_mutex_lock`.
    let mutex = unsafe { &*mutex };
    // SAFETY: the caller holds the lock, so this is its token.
    unsafe { (mutex.kind.release)(mutex.memory, Token::from_raw(mutex.token.get())) };
}
