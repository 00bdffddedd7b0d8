//! glibc's own functions, found when first needed, or all at once before no look-up finds them any more (`bind.rs`).

use libc::{
    Lmid_t, c_char, c_int, c_void, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, pthread_mutexattr_t,
    pthread_t, timespec,
};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};
use wattwise_locks::keep_errno;

/// The next definition of a name after this library, or null. Condition variables have an old version with another
/// layout, which a search without version may find.
fn find(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    // SAFETY: both names end in zero.
    unsafe {
        if let Some(version) = version {
            let found = libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr());
            if !found.is_null() {
                return found;
            }
        }
        libc::dlsym(libc::RTLD_NEXT, name.as_ptr())
    }
}

/// Where a function of glibc's is; null until it was looked for.
#[repr(C)]
pub(crate) struct FoundFunction {
    /// First, for the jump in `namespace.rs`.
    at: AtomicPtr<c_void>,
    name: &'static CStr,
    version: Option<&'static CStr>,
}

const _: () = assert!(std::mem::offset_of!(FoundFunction, at) == 0);

impl FoundFunction {
    pub(crate) fn get(&self) -> *mut c_void {
        let found = self.at.load(Ordering::Relaxed);
        if found.is_null() { self.look() } else { found }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        let found = keep_errno(|| find(self.name, self.version));
        self.at.store(found, Ordering::Relaxed);
        if found.is_null() {
            crate::say::fail(&[b"glibc has no ", self.name.to_bytes()]);
        }
        found
    }

    /// Looks for it now, if nobody has. An old glibc may not have it, and the program may not need it.
    fn look_ahead(&self) {
        if self.at.load(Ordering::Relaxed).is_null() {
            self.at.store(find(self.name, self.version), Ordering::Relaxed);
        }
    }
}

macro_rules! version {
    () => {
        None
    };
    ($of:literal) => {
        Some($of)
    };
}

macro_rules! real {
    ($($name:ident: $symbol:literal $(@ $of:literal)? => fn($($arg:ident: $type:ty),*) -> $result:ty;)+) => {
        /// A place for each.
        #[allow(non_upper_case_globals)]
        pub(crate) mod found {
            use super::*;
            $(pub(crate) static $name: FoundFunction =
                FoundFunction { at: AtomicPtr::new(std::ptr::null_mut()), name: $symbol, version: version!($($of)?) };)+
        }

        /// Finds all of them.
        pub(crate) fn find_all() {
            $(found::$name.look_ahead();)+
        }

        $(
        /// glibc's function of this name.
        ///
        /// # Safety
        /// As that function's.
        pub(crate) unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Call = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: glibc's function of this name has this type.
            let call = unsafe { std::mem::transmute::<*mut c_void, Call>(found::$name.get()) };
            // SAFETY: by contract.
            unsafe { call($($arg),*) }
        })+
    };
}

/// A cleanup handler as glibc keeps it on the stack.
#[repr(C)]
pub(crate) struct CleanupBuffer {
    routine: usize,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut CleanupBuffer,
}

impl CleanupBuffer {
    pub(crate) const fn new() -> Self {
        CleanupBuffer {
            routine: 0,
            argument: std::ptr::null_mut(),
            cancel_type: 0,
            previous: std::ptr::null_mut(),
        }
    }
}

type Routine = extern "C-unwind" fn(*mut c_void);

real! {
    mutex_init: c"pthread_mutex_init" => fn(m: *mut pthread_mutex_t, a: *const pthread_mutexattr_t) -> c_int;
    mutex_destroy: c"pthread_mutex_destroy" => fn(m: *mut pthread_mutex_t) -> c_int;
    mutex_lock: c"pthread_mutex_lock" => fn(m: *mut pthread_mutex_t) -> c_int;
    mutex_trylock: c"pthread_mutex_trylock" => fn(m: *mut pthread_mutex_t) -> c_int;
    mutex_timedlock: c"pthread_mutex_timedlock" => fn(m: *mut pthread_mutex_t, t: *const timespec) -> c_int;
    mutex_clocklock: c"pthread_mutex_clocklock" => fn(m: *mut pthread_mutex_t, c: c_int, t: *const timespec) -> c_int;
    mutex_unlock: c"pthread_mutex_unlock" => fn(m: *mut pthread_mutex_t) -> c_int;
    cond_init: c"pthread_cond_init" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t, a: *const pthread_condattr_t) -> c_int;
    cond_destroy: c"pthread_cond_destroy" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t) -> c_int;
    cond_wait: c"pthread_cond_wait" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t, m: *mut pthread_mutex_t) -> c_int;
    cond_timedwait: c"pthread_cond_timedwait" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, t: *const timespec) -> c_int;
    cond_clockwait: c"pthread_cond_clockwait" => fn(c: *mut pthread_cond_t, m: *mut pthread_mutex_t, k: c_int, t: *const timespec) -> c_int;
    cond_signal: c"pthread_cond_signal" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t) -> c_int;
    cond_broadcast: c"pthread_cond_broadcast" @ c"GLIBC_2.3.2" => fn(c: *mut pthread_cond_t) -> c_int;
    cleanup_push: c"_pthread_cleanup_push" => fn(b: *mut CleanupBuffer, r: Routine, a: *mut c_void) -> ();
    cleanup_pop: c"_pthread_cleanup_pop" => fn(b: *mut CleanupBuffer, execute: c_int) -> ();
    set_cancel_state: c"pthread_setcancelstate" => fn(to: c_int, from: *mut c_int) -> c_int;
    cancel: c"pthread_cancel" => fn(t: pthread_t) -> c_int;
    test_cancel: c"pthread_testcancel" => fn() -> ();
    dlmopen: c"dlmopen" => fn(namespace: Lmid_t, file: *const c_char, flags: c_int) -> *mut c_void;
}

/// A variable of the environment, also before the C library has set `environ`.
pub(crate) fn environment(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends in zero; the program must not change its environment while this reads, which is
    // before the first lock.
    unsafe {
        let value: *const c_char = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}
