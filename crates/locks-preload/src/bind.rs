//! Has the dynamic linker find this library's functions, not glibc's, wherever it looks.
//!
//! LD_PRELOAD puts this library before glibc, so a program's references bind here. Some look-ups do not begin at the front:
//! those of a library that is loaded with RTLD_DEEPBIND, which has glibc among its own; `dlsym` and `dlvsym` with glibc's
//! handle; those in a namespace of `dlmopen`, which has a glibc of its own. What they found would lock the same mutexes by glibc's rules.
//!
//! 1. While glibc's functions can still be found, find those that this library needs.
//! 2. In glibc's table of symbols, in this process's memory, give the names that this library exports the addresses of its
//!    functions. The table is on pages of the file that are mapped privately; those with a changed entry become this process's own.
//! 3. The same for the glibc of each namespace that `dlmopen` makes, before anything is loaded there (`namespace.rs`).
//!
//! It is done before the constructors of all other libraries (the linker's `-z initfirst`), and at the first `dlmopen` if
//! that comes sooner. Where it cannot be done, the program ends with one line: it would be harmed later, and silently.
//! What glibc calls inside of itself is not looked up and stays: its own locks, and C11's `mtx_*` and `cnd_*`.
//!
//! It is not done where this library is not before glibc, as when a program loads it by `dlopen`: then nobody locks by
//! it, and nobody is to begin with that.

use crate::elf::ElfObject;
use crate::real;
use crate::say::impossible;
use libc::{c_int, c_void, dl_phdr_info, size_t};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};
use wattwise_locks::keep_errno;

const UNKNOWN: u32 = 0;
const BUSY: u32 = 1;

/// Whether look-ups that begin at glibc find this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Bound {
    /// They do.
    Yes = 2,
    /// Nor do others: this library is in nobody's place.
    Unused = 3,
}

/// Why a program cannot go on.
pub(crate) const NOT_BOUND: &[u8] =
    b"glibc's table of symbols cannot be changed here, so that libraries which \
    bind to it (RTLD_DEEPBIND, dlmopen, dlsym) would lock by other rules; run the program without LD_PRELOAD";

/// How it went; UNKNOWN before, BUSY meanwhile.
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Which objects define what this library replaces: glibc until 2.33 had two.
const GLIBC: [&CStr; 2] = [c"libc.so.6", c"libpthread.so.0"];

/// Room for what this library exports.
const MOST: usize = 32;

/// Names and addresses of what is to be found: every function that this library exports. From its own table: in this
/// code its names could be those of another definition before it, which may look for the next one at glibc.
struct OurFunctions<'a> {
    names: [(&'a CStr, usize); MOST],
    count: usize,
}

impl<'a> OurFunctions<'a> {
    const NONE: OurFunctions<'a> = OurFunctions { names: [(c"", 0); MOST], count: 0 };

    fn of(own: &ElfObject<'a>) -> OurFunctions<'a> {
        let mut ours = OurFunctions::NONE;
        own.exports(|name, address| {
            if ours.count < MOST {
                ours.names[ours.count] = (name, address);
                ours.count += 1;
            }
        });
        ours
    }

    fn replace(&self, glibc: &ElfObject) -> bool {
        glibc.redirect(&self.names[..self.count])
    }
}

/// Does it once, and says how that went.
pub(crate) fn everywhere() -> Bound {
    keep_errno(real::find_all);
    loop {
        match STATE.compare_exchange(UNKNOWN, BUSY, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(BUSY) => {
                // SAFETY: no arguments.
                unsafe { libc::sched_yield() };
            }
            Err(done) => return if done == Bound::Yes as u32 { Bound::Yes } else { Bound::Unused },
        }
    }
    let bound = keep_errno(|| {
        let mut search = SymbolSearch { own_base: own_base(), ours: OurFunctions::NONE, bound: None };
        // SAFETY: the callback's type, and what it is given, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.bound.unwrap_or_else(|| impossible(&[NOT_BOUND]))
    });
    STATE.store(bound as u32, Ordering::Release);
    bound
}

struct SymbolSearch {
    own_base: usize,
    /// None until this library was passed.
    ours: OurFunctions<'static>,
    bound: Option<Bound>,
}

/// An object of this namespace, in the order in which they are searched.
unsafe extern "C" fn look(info: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
    // SAFETY: glibc's, and `everywhere`'s.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<SymbolSearch>()) };
    let base = info.dlpi_addr as usize;
    // SAFETY: the object's headers; it is not unloaded during the call, nor is this library while it is in use.
    let object = unsafe {
        ElfObject::new(base, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let Some(object) = object else { return 0 };
    if base == search.own_base {
        search.ours = OurFunctions::of(&object);
    } else if GLIBC.contains(&object.soname()) {
        if search.ours.count == 0 {
            search.bound = Some(Bound::Unused);
            return 1;
        }
        if search.ours.replace(&object) {
            search.bound = Some(Bound::Yes);
        }
    }
    0
}

/// Where this library is.
fn own_base() -> usize {
    // SAFETY: all zeros is one; written below.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: `info` is valid for writes.
    if unsafe { libc::dladdr((&raw const STATE).cast(), &raw mut info) } == 0 {
        0
    } else {
        info.dli_fbase.addr()
    }
}

/// The same in the glibc of another namespace. False: it cannot be done.
///
/// # Safety
/// `base` is where that glibc is loaded.
pub(crate) unsafe fn there(base: usize) -> bool {
    // SAFETY: by contract; this library is loaded as others are, with its headers first.
    let (glibc, own) = unsafe { (ElfObject::at(base), ElfObject::at(own_base())) };
    matches!((glibc, own), (Some(glibc), Some(own)) if OurFunctions::of(&own).replace(&glibc))
}

/// Runs when this library is initialised.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn start() {
        everywhere();
    }
    start
};
