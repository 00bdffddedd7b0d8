//! What `wattwise locks advise` is told: how every mutex of ours is used.
//!
//! With `WATTWISE_LOCK_WATCH=FILE` every lock and unlock is counted in a table of its own memory, and written when the
//! process ends to `FILE.PID`, a line a mutex:
//!
//! ```text
//! wattwise-locks 1 KIND
//! ADDRESS OBJECT+OFFSET SYMBOL CALLER+OFFSET SYMBOL LOCKED CONTENDED WAITED_NS LONGEST_NS HELD_NS MOST_WAITING
//! ```
//!
//! OBJECT and SYMBOL say where a static mutex is (`-` for one on the heap or a stack), CALLER who first locked it. A
//! program that is killed, or ends by `_exit`, leaves no file. A forked child begins with nothing counted.
//!
//! | word of a row | written by |
//! |---|---|
//! | `mutex`, `caller` | who first locks it, once |
//! | `since`, `held`, `locked` | who holds it |
//! | the others | all |

use crate::page::chosen;
use crate::real;
use crate::say::say;
use libc::c_void;
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Mutexes that are told apart; the others are counted together in row 0.
const ROWS: usize = 1 << 16;

/// How far from its place a row is looked for.
const PROBES: usize = 64;

/// All zeros is an empty row.
#[repr(C)]
pub(crate) struct WatchRow {
    mutex: AtomicUsize,
    caller: AtomicUsize,
    locked: AtomicU64,
    contended: AtomicU64,
    waited_ns: AtomicU64,
    longest_ns: AtomicU64,
    held_ns: AtomicU64,
    since: AtomicU64,
    waiting: AtomicU32,
    most_waiting: AtomicU32,
}

static TABLE: AtomicPtr<WatchRow> = AtomicPtr::new(null_mut());

/// Whether there is anything to count: asked for by the environment, and memory for it is to be had.
pub(crate) fn begin() -> bool {
    if real::environment(c"WATTWISE_LOCK_WATCH").is_none_or(|file| file.is_empty()) {
        return false;
    }
    let bytes = ROWS * size_of::<WatchRow>();
    // SAFETY: an anonymous mapping at no address in particular; a child of a fork gets it empty.
    let at = unsafe {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let at = libc::mmap(null_mut(), bytes, prot, flags, -1, 0);
        if at != libc::MAP_FAILED {
            libc::madvise(at, bytes, libc::MADV_WIPEONFORK);
        }
        at
    };
    if at == libc::MAP_FAILED {
        say(&[b"WATTWISE_LOCK_WATCH: no memory to count in; nothing is counted"]);
        return false;
    }
    if TABLE.compare_exchange(null_mut(), at.cast(), Relaxed, Relaxed).is_err() {
        // Another thread was first.
        // SAFETY: mapped above, and known to nobody.
        unsafe { libc::munmap(at, bytes) };
    }
    true
}

fn rows() -> &'static [WatchRow] {
    let table = TABLE.load(Relaxed);
    if table.is_null() {
        return &[];
    }
    // SAFETY: mapped with that many rows of atomics, never unmapped once it is here; zeros are rows.
    unsafe { std::slice::from_raw_parts(table, ROWS) }
}

/// The row of a mutex; made at its first lock.
pub(crate) fn row(mutex: usize) -> Option<&'static WatchRow> {
    let rows = rows();
    let first = (mutex >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    for probe in 0..PROBES {
        let row = rows.get(1 + (first + probe) % (ROWS - 1))?;
        match row.mutex.compare_exchange(0, mutex, Relaxed, Relaxed) {
            Ok(_) => {
                row.caller.store(caller(), Relaxed);
                return Some(row);
            }
            Err(there) if there == mutex => return Some(row),
            Err(_) => {}
        }
    }
    rows.first()
}

impl WatchRow {
    /// Somebody else has it: from here on this thread waits.
    pub(crate) fn waits(&self) -> u64 {
        let now_waiting = self.waiting.fetch_add(1, Relaxed) + 1;
        self.most_waiting.fetch_max(now_waiting, Relaxed);
        self.contended.fetch_add(1, Relaxed);
        now_ns()
    }

    /// The wait is over.
    pub(crate) fn waited(&self, since: u64) {
        self.waiting.fetch_sub(1, Relaxed);
        let waited = now_ns().saturating_sub(since);
        self.waited_ns.fetch_add(waited, Relaxed);
        self.longest_ns.fetch_max(waited, Relaxed);
    }

    pub(crate) fn acquired(&self) {
        self.locked.fetch_add(1, Relaxed);
        self.since.store(now_ns(), Relaxed);
    }

    pub(crate) fn releases(&self) {
        let since = self.since.swap(0, Relaxed);
        // 0 in the child of a fork that brought the lock along.
        if since != 0 {
            self.held_ns.fetch_add(now_ns().saturating_sub(since), Relaxed);
        }
    }
}

fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

// Of the unwinder that std has with it.
unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> i32, data: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Who called into this library: the first address on the stack that is not its own.
fn caller() -> usize {
    extern "C" fn step(context: *mut c_void, found: *mut c_void) -> i32 {
        /// _URC_END_OF_STACK; 0 is to go on.
        const STOP: i32 = 5;
        // SAFETY: the unwinder's own context, and the word of the call below.
        unsafe {
            let ip = _Unwind_GetIP(context);
            if object(ip).is_some_and(|o| o.base != own_base()) {
                *found.cast::<usize>() = ip;
                return STOP;
            }
        }
        0
    }
    thread_local! {
        /// The unwinder may lock as well. Nothing to drop.
        static INSIDE: Cell<bool> = const { Cell::new(false) };
    }
    let mut found = 0_usize;
    if !INSIDE.replace(true) {
        // SAFETY: `found` outlives the call.
        unsafe { _Unwind_Backtrace(step, (&raw mut found).cast()) };
        INSIDE.set(false);
    }
    found
}

/// Where an address is.
struct MappedObject {
    base: usize,
    name: &'static CStr,
    symbol: Option<&'static CStr>,
}

fn object(at: usize) -> Option<MappedObject> {
    // SAFETY: all zeros is such a structure; names belong to objects that stay loaded, or are gone by then.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(at as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let symbol = (!info.dli_sname.is_null()).then(|| CStr::from_ptr(info.dli_sname));
        Some(MappedObject { base: info.dli_fbase.addr(), name: CStr::from_ptr(info.dli_fname), symbol })
    }
}

fn own_base() -> usize {
    object((&raw const TABLE).addr()).map_or(0, |o| o.base)
}

/// Writes the table: at the process's end.
pub(crate) extern "C" fn report() {
    let Some(file) = real::environment(c"WATTWISE_LOCK_WATCH") else { return };
    let mut path = LineBuffer::new();
    path.text(file.to_bytes());
    path.text(b".");
    // SAFETY: no arguments.
    path.number(u64::from(unsafe { libc::getpid() }.unsigned_abs()));
    path.text(b"\0");
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: ends in zero.
    let fd = unsafe { libc::open(path.bytes.as_ptr().cast(), flags, 0o600) };
    if fd < 0 {
        return say(&[b"WATTWISE_LOCK_WATCH: ", file.to_bytes(), b": cannot be written"]);
    }
    let mut head = LineBuffer::new();
    let (lock, wait) = chosen().map_or(("none", "none"), |kind| (kind.lock, kind.wait));
    for part in [&b"wattwise-locks 1 "[..], lock.as_bytes(), b":", wait.as_bytes(), b"\n"] {
        head.text(part);
    }
    head.write(fd);
    for row in rows().iter().filter(|row| row.locked.load(Relaxed) != 0) {
        let mut line = LineBuffer::new();
        let mutex = row.mutex.load(Relaxed);
        line.hex(mutex);
        line.place(mutex);
        line.place(row.caller.load(Relaxed));
        for count in [&row.locked, &row.contended, &row.waited_ns, &row.longest_ns, &row.held_ns] {
            line.text(b" ");
            line.number(count.load(Relaxed));
        }
        line.text(b" ");
        line.number(u64::from(row.most_waiting.load(Relaxed)));
        line.text(b"\n");
        line.write(fd);
    }
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
}

/// A line without an allocator. What does not fit is cut off.
struct LineBuffer {
    bytes: [u8; 1024],
    used: usize,
}

impl LineBuffer {
    fn new() -> LineBuffer {
        LineBuffer { bytes: [0; 1024], used: 0 }
    }

    fn text(&mut self, text: &[u8]) {
        let fits = text.len().min(self.bytes.len() - 1 - self.used);
        self.bytes[self.used..self.used + fits].copy_from_slice(&text[..fits]);
        self.used += fits;
    }

    /// A name: the last part of a path, and nothing that would end the word or the line.
    fn name(&mut self, name: &[u8]) {
        let last = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
        for byte in last.iter().take(200) {
            self.text(&[if byte.is_ascii_graphic() { *byte } else { b'?' }]);
        }
    }

    fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        self.text(crate::say::decimal(number, &mut digits));
    }

    fn hex(&mut self, number: usize) {
        for shift in
            (0..16).rev().map(|digit| digit * 4).skip_while(|shift| *shift > 0 && number >> shift == 0)
        {
            self.text(&[b"0123456789abcdef"[number >> shift & 15]]);
        }
    }

    /// ` OBJECT+OFFSET SYMBOL`
    fn place(&mut self, at: usize) {
        let Some(object) = object(at) else { return self.text(b" - -") };
        self.text(b" ");
        self.name(object.name.to_bytes());
        self.text(b"+");
        self.hex(at.wrapping_sub(object.base));
        self.text(b" ");
        match object.symbol {
            Some(symbol) => self.name(symbol.to_bytes()),
            None => self.text(b"-"),
        }
    }

    fn write(&self, fd: i32) {
        // SAFETY: the bytes are valid.
        unsafe { libc::write(fd, self.bytes.as_ptr().cast(), self.used) };
    }
}
