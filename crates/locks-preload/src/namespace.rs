//! `dlmopen`: a namespace has a glibc of its own, whose functions would lock by glibc's rules what the program locks by ours.
//!
//! So that glibc is loaded before anything else, and its table of symbols changed, as `bind.rs` does it in the program's own:
//!
//! 1. Load `libc.so.6` into the namespace that is asked for, a new one if need be, and keep that handle.
//! 2. Change its table.
//! 3. Load what is wanted into that namespace, with RTLD_DEEPBIND: its own libraries are searched before the first of the
//!    namespace, which is glibc now. Otherwise it would be the first itself, and be searched first.
//! 4. When this thread calls again: if it wants a new namespace and nothing but glibc is in the one before, since that
//!    load failed or was undone, it gets that one. Otherwise the handle of step 1 is given back.
//!
//! Step 3 jumps to glibc's function, and does not call it, since that looks at its return address: the caller's RUNPATH is
//! searched.

use crate::bind::{self, Bound, NOT_BOUND};
use crate::real;
use crate::say::impossible;
use libc::{Lmid_t, c_char, c_int, c_long, c_void, dl_phdr_info, size_t};
use std::cell::Cell;
#[cfg(not(target_arch = "x86_64"))]
use std::ptr::null_mut;

/// What glibc's function is called with.
#[repr(C)]
struct LoadCall {
    namespace: Lmid_t,
    /// Below 0: it is not called, and null returned. `dlerror` has been told why.
    flags: c_long,
}

const NOT_AT_ALL: LoadCall = LoadCall { namespace: 0, flags: -1 };

/// The public part of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// A glibc in a namespace.
#[derive(Clone, Copy)]
struct Glibc {
    handle: *mut c_void,
    map: *const LinkMap,
    namespace: Lmid_t,
    /// How many objects were in its namespace when that was new; 0 if it was not.
    alone: usize,
}

thread_local! {
    /// That of step 1. Nothing to drop.
    static LAST: Cell<Option<Glibc>> = const { Cell::new(None) };
}

impl Glibc {
    /// Step 1. `None`: `dlerror` has been told.
    fn load(namespace: Lmid_t) -> Option<Glibc> {
        // SAFETY: the name ends in zero.
        let handle = unsafe { real::dlmopen(namespace, c"libc.so.6".as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            return None;
        }
        let mut glibc = Glibc { handle, map: std::ptr::null(), namespace: 0, alone: 0 };
        // SAFETY: an open handle; each request writes what its variable holds.
        let known = unsafe {
            libc::dlinfo(handle, libc::RTLD_DI_LMID, (&raw mut glibc.namespace).cast()) == 0
                && libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut glibc.map).cast()) == 0
        };
        // Step 2.
        // SAFETY: where it is loaded, for as long as the handle is open.
        if !known || glibc.map.is_null() || !unsafe { bind::there((*glibc.map).base) } {
            impossible(&[b"dlmopen: ", NOT_BOUND]);
        }
        glibc.alone = glibc.objects();
        Some(glibc)
    }

    /// How many objects are in its namespace.
    fn objects(&self) -> usize {
        extern "C" fn count(_: *mut dl_phdr_info, _: size_t, glibc: *mut c_void) -> c_int {
            // SAFETY: as given below.
            let glibc = unsafe { &*glibc.cast::<Glibc>() };
            let both = [|map: &LinkMap| map.previous, |map: &LinkMap| map.next];
            let mut others = 0;
            for step in both {
                // SAFETY: loaded objects, of which none comes or goes during this call.
                let mut map = unsafe { step(&*glibc.map).as_ref() };
                while let Some(there) = map {
                    others += 1;
                    // SAFETY: as above.
                    map = unsafe { step(there).as_ref() };
                }
            }
            1 + others
        }
        // While it calls, the lists of objects do not change.
        // SAFETY: the callback's type, and what it is given, which outlives the call. Not 0, so it is called once.
        unsafe { libc::dl_iterate_phdr(Some(count), std::ptr::from_ref(self).cast_mut().cast()) as usize }
    }

    /// That of the namespace that is asked for, and step 4.
    fn of(namespace: Lmid_t) -> Option<Glibc> {
        let new = namespace == libc::LM_ID_NEWLM;
        let last = LAST.replace(None);
        if let Some(last) = last.filter(|last| new && last.objects() <= last.alone) {
            LAST.set(Some(last));
            return Some(last);
        }
        let Some(mut glibc) = Glibc::load(namespace) else {
            // Nothing more is asked of the dynamic linker, so that `dlerror` says why.
            LAST.set(last);
            return None;
        };
        // What is there belongs to others.
        glibc.alone = if new { glibc.alone } else { 0 };
        LAST.set(Some(glibc));
        if let Some(last) = last {
            // SAFETY: opened in an earlier call, and closed once.
            unsafe { libc::dlclose(last.handle) };
        }
        Some(glibc)
    }
}

/// Before `dlmopen`: all steps but the third.
extern "C" fn prepare(namespace: Lmid_t, _: *const c_char, flags: c_int) -> LoadCall {
    // Where the jump goes to.
    real::found::dlmopen.get();
    if bind::everywhere() == Bound::Unused || namespace == libc::LM_ID_BASE {
        return LoadCall { namespace, flags: c_long::from(flags.cast_unsigned()) };
    }
    // What was loaded before into one that is not made here, as an auditor's (LD_AUDIT), is bound already.
    match Glibc::of(namespace) {
        Some(Glibc { namespace, .. }) => {
            LoadCall { namespace, flags: c_long::from((flags | libc::RTLD_DEEPBIND).cast_unsigned()) }
        }
        None => NOT_AT_ALL,
    }
}

/// `dlmopen`.
///
/// # Safety
/// As the C library has it.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dlmopen(namespace: Lmid_t, file: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "endbr64",
        "push rsi",
        "call {prepare}",
        "pop rsi",
        // A `LoadCall` comes in rax and rdx, where the flags are to be.
        "test rdx, rdx",
        "js 2f",
        "mov rdi, rax",
        "jmp qword ptr [rip + {real}]",
        "2:",
        "xor eax, eax",
        "ret",
        prepare = sym prepare,
        real = sym real::found::dlmopen,
    )
}

/// `dlmopen`, with this library as the caller: only its RUNPATH is searched.
///
/// # Safety
/// As the C library has it.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlmopen(namespace: Lmid_t, file: *const c_char, flags: c_int) -> *mut c_void {
    let load = prepare(namespace, file, flags);
    if load.flags < 0 {
        return null_mut();
    }
    // SAFETY: by contract.
    unsafe { real::dlmopen(load.namespace, file, load.flags as c_int) }
}
