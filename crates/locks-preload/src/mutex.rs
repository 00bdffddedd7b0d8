//! `pthread_mutex_*`.
//!
//! A `pthread_mutex_t` of ours, 40 bytes. `kind` is where glibc keeps it, and all else begins as zeros, so that
//! glibc's static initialisers make a mutex of ours.
//!
//! | offset | ours | glibc's |
//! |---|---|---|
//! | 0 | `token`: what the acquisition left for the release, its lowest bit inverted: 0 is that of the quick way | `__lock`, `__count` |
//! | 8 | `owner`: number of the thread that holds a recursive or error-checking mutex | `__owner` |
//! | 12 | `users`: in the low 24 bits how often a recursive or error-checking mutex is locked, 0 when nobody holds it; above them how many wait on a condition variable with it (modulo 256). Its holder's | `__nusers` |
//! | 16 | `kind` | `__kind` |
//! | 20 | `generation`: see `process` | `__spins`, `__elision` |
//! | 24 | `lock`: 16 bytes of the chosen lock | `__list` |
//!
//! | `kind` | meaning | whose |
//! |---|---|---|
//! | 0, 3 | normal, adaptive | ours |
//! | 1 | recursive | ours |
//! | 2 | error-checking | ours |
//! | + 0x10, 0x20, 0x40, 0x80 | robust, inheriting, with ceiling, shared | glibc's |
//! | + 0x100, 0x200 | lock elision wanted, refused | of no interest |
//! | -1 | destroyed | nobody's |
//!
//! A mutex that nobody else wants is locked and unlocked by one compare-and-swap each ([`Quick`]), of a recursive or
//! error-checking one with its owner noted; everything else goes through the lock's functions.

use crate::futex::Until;
use crate::page::PAGE;
use crate::priority::{self, WaitOutcome};
use crate::process::{self, FOREIGN_MUTEX};
use crate::real;
use crate::watch::{self, WatchRow};
use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t, timespec};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use wattwise_locks::dynamic::LockKind;
use wattwise_locks::wait::Spin;
use wattwise_locks::{Clock, Deadline, Quick, Ticket, Token};

const NORMAL: i32 = 0;
const RECURSIVE: i32 = 1;
const ERRORCHECK: i32 = 2;
const ADAPTIVE: i32 = 3;
const DESTROYED: i32 = -1;
const TYPE: i32 = 3;
const ROBUST: i32 = 0x10;
const FOREIGN: i32 = 0x10 | 0x20 | 0x40 | 0x80;
const ELISION: i32 = 0x100 | 0x200;

const WORD32: u32 = Quick::Word32 as u32;
const WORD64: u32 = Quick::Word64 as u32;
const NUMBERS: u32 = Quick::Numbers as u32;

/// The token of a lock that was taken the quick way.
const QUICK_TOKEN: usize = 1;

/// See `users` in the table.
const DEPTH: u32 = (1 << 24) - 1;
const ONE_WAITER: u32 = DEPTH + 1;

/// Where glibc counts users.
const NUSERS: usize = 12;

/// See the [module](self)'s table.
#[repr(C)]
struct Mutex {
    token: AtomicUsize,
    /// `owner` in the low half, `users` in the high one: both are seen, and change, in one access.
    holder: AtomicU64,
    kind: AtomicI32,
    generation: AtomicU32,
    lock: [AtomicU32; process::ROOM / 4],
}

const _: () = assert!(size_of::<Mutex>() == size_of::<pthread_mutex_t>());
const _: () = assert!(std::mem::offset_of!(Mutex, kind) == 16);
const _: () = assert!(std::mem::offset_of!(Mutex, lock).is_multiple_of(align_of::<AtomicU64>()));

/// Whose a mutex is.
enum Whose<'a> {
    Ours(&'a Mutex, i32),
    Glibc,
    /// Not a mutex, or not any more.
    Nobody,
}

/// # Safety
/// `mutex` points to a mutex, static, initialised or destroyed.
#[inline]
unsafe fn whose<'a>(mutex: *mut pthread_mutex_t) -> Whose<'a> {
    // SAFETY: by contract; all fields are atomics, so that the shared reference is no promise.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    let kind = ours.kind.load(Ordering::Relaxed);
    if kind & !(TYPE | ELISION) == 0 {
        Whose::Ours(ours, kind & TYPE)
    } else if kind & FOREIGN != 0 && kind & !(TYPE | ELISION | FOREIGN) == 0 {
        FOREIGN_MUTEX.fetch_add(1, Ordering::Relaxed);
        Whose::Glibc
    } else {
        Whose::Nobody
    }
}

impl Mutex {
    /// The functions to use, after forgetting what a fork left behind.
    #[inline]
    fn functions(&self) -> &'static LockKind {
        let (kind, generation) = process::now();
        if self.generation.load(Ordering::Acquire) != generation {
            self.repair(kind);
        }
        kind
    }

    #[cold]
    fn repair(&self, kind: &LockKind) {
        process::repair(&self.generation, || {
            // SAFETY: the token of the acquisition that a thread brought along, or that of one that is gone, in
            // which case the mutex stays locked as POSIX has it. Nobody of this process has used it, and no other
            // thread gets here.
            unsafe {
                // Who waited with it is gone.
                self.note_holder(self.owner(), self.depth());
                let held = (kind.is_locked)(self.at()).then(|| self.kept());
                (kind.forget_waiters)(self.at(), held);
            }
        });
    }

    #[inline]
    fn at(&self) -> NonNull<u8> {
        NonNull::from(&self.lock).cast()
    }

    /// Notes an acquisition.
    #[inline]
    fn acquired(&self, kind: i32, token: Token) -> c_int {
        if let Some(row) = self.row() {
            row.acquired();
        }
        self.token.store(token.into_raw() ^ QUICK_TOKEN, Ordering::Relaxed);
        if kind == RECURSIVE || kind == ERRORCHECK {
            self.set_holder(process::me(), 1);
        }
        0
    }

    /// The token of the acquisition in force.
    ///
    /// # Safety
    /// The lock is held.
    #[inline]
    unsafe fn kept(&self) -> Token {
        // SAFETY: by contract; kept by `acquired`, or 0 by the quick way, whose token this is.
        unsafe { Token::from_raw(self.token.load(Ordering::Relaxed) ^ QUICK_TOKEN) }
    }

    fn owner(&self) -> u32 {
        self.holder.load(Ordering::Relaxed) as u32
    }

    fn users(&self) -> u32 {
        (self.holder.load(Ordering::Relaxed) >> 32) as u32
    }

    fn depth(&self) -> u32 {
        self.users() & DEPTH
    }

    fn note_holder(&self, owner: u32, users: u32) {
        self.holder.store(u64::from(users) << 32 | u64::from(owner), Ordering::Relaxed);
    }

    /// Of a mutex that the calling thread holds. Whoever waits with it is not forgotten.
    #[inline(always)]
    fn set_holder(&self, owner: u32, depth: u32) {
        self.note_holder(owner, self.users() & !DEPTH | depth);
    }

    /// How often the calling thread has locked this; 0 if it does not hold it. Of a type with an owner.
    #[inline]
    fn mine(&self) -> u32 {
        let holder = self.holder.load(Ordering::Relaxed);
        if holder as u32 == process::me() { (holder >> 32) as u32 & DEPTH } else { 0 }
    }

    /// What a thread that holds the mutex gets when it asks again; `None` if it does not hold it.
    #[inline]
    fn again(&self, kind: i32, otherwise: c_int) -> Option<c_int> {
        if kind != RECURSIVE && kind != ERRORCHECK {
            return None;
        }
        match self.mine() {
            0 => None,
            _ if kind == ERRORCHECK => Some(otherwise),
            DEPTH => Some(libc::EAGAIN),
            depth => {
                self.set_holder(process::me(), depth + 1);
                Some(0)
            }
        }
    }

    /// Whether it was used in this process, which chose `quick`.
    #[inline(always)]
    fn is_current(&self) -> bool {
        self.generation.load(Ordering::Relaxed) == process::generation()
    }

    /// The lock's first 8 bytes.
    #[inline(always)]
    fn wide(&self) -> &AtomicU64 {
        // SAFETY: aligned, and a lock with this quick way uses them as one word only.
        unsafe { &*(&raw const self.lock).cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn numbers(&self) -> &Ticket<Spin> {
        // SAFETY: a lock with this quick way is such a one, whatever its policy.
        unsafe { self.at().cast().as_ref() }
    }

    /// Locks what is free, in one compare-and-swap.
    #[inline(always)]
    fn quick_lock(&self) -> bool {
        let quick = PAGE.quick.load(Ordering::Acquire);
        if !self.is_current() {
            return false;
        }
        // Looking first leaves the line with its holder.
        match quick {
            WORD32 => {
                let word = &self.lock[0];
                word.load(Ordering::Relaxed) == 0
                    && word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }
            WORD64 => {
                let word = self.wide();
                word.load(Ordering::Relaxed) == 0
                    && word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }
            NUMBERS => self.numbers().acquire_free(),
            _ => false,
        }
    }

    /// Unlocks what nobody waits for.
    #[inline(always)]
    fn quick_unlock(&self) -> bool {
        let quick = PAGE.quick.load(Ordering::Acquire);
        if !self.is_current() || PAGE.waiting.load(Ordering::Relaxed) != 0 {
            return false;
        }
        match quick {
            WORD32 => self.lock[0].compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed).is_ok(),
            WORD64 => self.wide().compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed).is_ok(),
            NUMBERS => self.numbers().release_alone(),
            _ => false,
        }
    }

    /// Locks in one step what is of a type with an owner and free. False: nothing was done.
    #[inline(always)]
    fn quick_lock_owned(&self) -> bool {
        let done = self.quick_lock();
        if done {
            self.set_holder(process::me(), 1);
        }
        done
    }

    /// Unlocks in one step what is of a type with an owner, locked once, by this thread, and wanted by nobody else. False:
    /// nothing was done.
    #[inline(always)]
    fn quick_unlock_owned(&self) -> bool {
        let holder = self.holder.load(Ordering::Relaxed);
        let me = process::me();
        if holder as u32 != me || (holder >> 32) as u32 & DEPTH != 1 {
            return false;
        }
        self.holder.store(holder - (1 << 32 | u64::from(me)), Ordering::Relaxed);
        let done = self.quick_unlock();
        if !done {
            self.holder.store(holder, Ordering::Relaxed);
        }
        done
    }

    /// Of a type without an owner, as glibc's static initialisers and our `pthread_mutex_init` have them.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        let kind = self.kind.load(Ordering::Relaxed);
        kind == NORMAL || kind == ADAPTIVE
    }

    #[inline(always)]
    fn has_owner(&self) -> bool {
        let kind = self.kind.load(Ordering::Relaxed);
        kind == RECURSIVE || kind == ERRORCHECK
    }

    fn lock(&self, kind: i32) -> c_int {
        let functions = self.functions();
        if let Some(result) = self.again(kind, libc::EDEADLK) {
            return result;
        }
        // SAFETY: the lock's 16 bytes, which began as zeros.
        if let Some(token) = unsafe { (functions.try_acquire)(self.at()) } {
            return self.acquired(kind, token);
        }
        self.contend(functions, kind, None)
    }

    /// Where uses of this mutex are counted, if they are.
    #[inline]
    fn row(&self) -> Option<&'static WatchRow> {
        if PAGE.watched.load(Ordering::Relaxed) == 0 {
            return None;
        }
        watch::row(std::ptr::from_ref(self).addr())
    }

    /// Somebody else has it.
    #[cold]
    fn contend(&self, functions: &LockKind, kind: i32, until: Option<&Until>) -> c_int {
        let row = self.row();
        let since = row.map(WatchRow::waits);
        let priority = priority::mine();
        // SAFETY: the lock's 16 bytes, which began as zeros.
        let token = unsafe {
            match until {
                _ if priority != 0 => self.by_priority(functions, priority, until),
                None => Some((functions.acquire)(self.at())),
                Some(until) => (functions.acquire_until)(self.at(), deadline(until)),
            }
        };
        if let (Some(row), Some(since)) = (row, since) {
            row.waited(since);
        }
        token.map_or(libc::ETIMEDOUT, |token| self.acquired(kind, token))
    }

    /// What a thread of real-time priority does in the place of the lock's own waiting.
    fn by_priority(&self, functions: &LockKind, priority: u32, until: Option<&Until>) -> Option<Token> {
        let mutex = std::ptr::from_ref(self).addr();
        // SAFETY: the lock's 16 bytes, which began as zeros.
        let attempt = || unsafe { (functions.try_acquire)(self.at()) };
        match priority::wait(mutex, priority, until, attempt) {
            // SAFETY: the token of the acquisition that was handed over.
            WaitOutcome::Handed => Some(unsafe { self.kept() }),
            WaitOutcome::Took(token) => Some(token),
            WaitOutcome::TimedOut => None,
        }
    }

    fn trylock(&self, kind: i32) -> c_int {
        let functions = self.functions();
        if let Some(result) = self.again(kind, libc::EBUSY) {
            return result;
        }
        // SAFETY: as in `lock`.
        match unsafe { (functions.try_acquire)(self.at()) } {
            Some(token) => self.acquired(kind, token),
            None => libc::EBUSY,
        }
    }

    fn lock_until(&self, kind: i32, clock: c_int, at: &timespec) -> c_int {
        let functions = self.functions();
        if let Some(result) = self.again(kind, libc::EDEADLK) {
            return result;
        }
        // SAFETY: as in `lock`.
        if let Some(token) = unsafe { (functions.try_acquire)(self.at()) } {
            return self.acquired(kind, token);
        }
        // POSIX looks at the time only when it must wait.
        if !process::valid(at) {
            return libc::EINVAL;
        }
        self.contend(functions, kind, Some(&Until { clock, at: *at }))
    }

    fn unlock(&self, kind: i32) -> c_int {
        let functions = self.functions();
        if kind == RECURSIVE || kind == ERRORCHECK {
            match self.mine() {
                0 => return libc::EPERM,
                1 => {}
                depth => {
                    self.set_holder(process::me(), depth - 1);
                    return 0;
                }
            }
        // SAFETY: the lock's 16 bytes.
        } else if !unsafe { (functions.is_locked)(self.at()) } {
            // Undefined, and harmless with glibc: there are programs that do it.
            return 0;
        }
        self.release(functions);
        0
    }

    /// The last unlock.
    fn release(&self, functions: &LockKind) {
        if let Some(row) = self.row() {
            row.releases();
        }
        self.set_holder(0, 0);
        if PAGE.waiting.load(Ordering::Relaxed) != 0 && priority::hand_over(std::ptr::from_ref(self).addr()) {
            return;
        }
        // SAFETY: it is held, and its token is used here alone. For the next, which may come by the quick way, none is kept.
        unsafe {
            let token = self.kept();
            self.token.store(0, Ordering::Relaxed);
            (functions.release)(self.at(), token);
        }
    }

    /// Unlocks once in the place of the thread that holds it.
    fn unlock_for_its_owner(&self) {
        let functions = self.functions();
        let depth = self.depth();
        if depth > 1 {
            self.set_holder(self.owner(), depth - 1);
            return;
        }
        self.release(functions);
    }
}

/// For a thread that waits on a condition variable of glibc's: unlocks its mutex, which is not glibc's.
///
/// # Safety
/// `mutex` points to a mutex that is locked by a thread which does nothing with it meanwhile.
pub(crate) unsafe fn unlock_for_its_owner(mutex: *mut pthread_mutex_t) {
    // SAFETY: by contract.
    if let Whose::Ours(ours, _) = unsafe { whose(mutex) } {
        ours.unlock_for_its_owner();
    }
}

/// As the locks have it.
fn deadline(until: &Until) -> Deadline {
    let clock = if until.clock == libc::CLOCK_MONOTONIC { Clock::Monotonic } else { Clock::Realtime };
    Deadline { clock, secs: until.at.tv_sec, nanos: until.at.tv_nsec as u32 }
}

/// For condition variables: whether the calling thread may wait with this mutex; an error number otherwise.
///
/// # Safety
/// `mutex` points to a mutex.
pub(crate) unsafe fn may_wait(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(ours, ERRORCHECK) if ours.mine() == 0 => libc::EPERM,
        Whose::Ours(..) | Whose::Glibc => 0,
        Whose::Nobody => libc::EINVAL,
    }
}

/// A thread that holds the mutex is about to wait on a condition variable with it, or has waited: until then it is in use,
/// and cannot be destroyed. glibc's own wait leaves its count of users one higher.
///
/// # Safety
/// `mutex` points to a mutex that the calling thread holds.
pub(crate) unsafe fn waits_with(mutex: *mut pthread_mutex_t, begins: bool) {
    // SAFETY: by contract; all fields are atomics.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    let kind = ours.kind.load(Ordering::Relaxed);
    // A robust one whose owner has died counts anew.
    if kind & ROBUST != 0 {
        return;
    }
    let change =
        |users: u32, one: u32| if begins { users.wrapping_add(one) } else { users.wrapping_sub(one) };
    if kind & FOREIGN != 0 {
        // SAFETY: by contract; glibc's `__nusers`, which is its holder's.
        let users = unsafe { &*mutex.byte_add(NUSERS).cast::<AtomicU32>() };
        users.store(change(users.load(Ordering::Relaxed), 1), Ordering::Relaxed);
    } else {
        ours.note_holder(ours.owner(), change(ours.users(), ONE_WAITER));
    }
}

/// Whether glibc's functions are this mutex's.
///
/// # Safety
/// `mutex` points to a mutex.
pub(crate) unsafe fn is_glibcs(mutex: *mut pthread_mutex_t) -> bool {
    // SAFETY: by contract.
    matches!(unsafe { whose(mutex) }, Whose::Glibc)
}

/// POSIX `pthread_mutex_init`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    // glibc reads the attributes and writes the kind.
    // SAFETY: by contract.
    let done = unsafe { real::mutex_init(mutex, attributes) };
    if done != 0 {
        return done;
    }
    // SAFETY: initialised above.
    if let Whose::Ours(ours, kind) = unsafe { whose(mutex) } {
        // A type that was asked for carries glibc's mark against elision, and would not be seen to be plain.
        ours.kind.store(kind, Ordering::Relaxed);
        ours.token.store(0, Ordering::Relaxed);
        ours.note_holder(0, 0);
        for word in &ours.lock {
            word.store(0, Ordering::Relaxed);
        }
        ours.generation.store(process::now().1, Ordering::Release);
    }
    done
}

/// POSIX `pthread_mutex_destroy`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(ours, _) => {
            let functions = ours.functions();
            // SAFETY: the lock's 16 bytes.
            if unsafe { (functions.is_locked)(ours.at()) } || ours.users() & !DEPTH != 0 {
                return libc::EBUSY;
            }
            ours.kind.store(DESTROYED, Ordering::Relaxed);
            0
        }
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_destroy(mutex) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// POSIX `pthread_mutex_lock`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract; all fields are atomics.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    if ours.is_plain() && ours.quick_lock() {
        return 0;
    }
    // SAFETY: by contract.
    unsafe { lock_owned(mutex) }
}

/// # Safety
/// As [`pthread_mutex_lock`].
#[inline(never)]
unsafe extern "C-unwind" fn lock_owned(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract; all fields are atomics.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    if ours.has_owner() && ours.quick_lock_owned() {
        return 0;
    }
    // SAFETY: by contract.
    unsafe { lock_otherwise(mutex) }
}

/// # Safety
/// As [`pthread_mutex_lock`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn lock_otherwise(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(ours, kind) => ours.lock(kind),
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_lock(mutex) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// POSIX `pthread_mutex_trylock`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(ours, kind) => ours.trylock(kind),
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_trylock(mutex) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// POSIX `pthread_mutex_timedlock`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        // SAFETY: by contract.
        Whose::Ours(ours, kind) => ours.lock_until(kind, libc::CLOCK_REALTIME, unsafe { &*until }),
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_timedlock(mutex, until) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// POSIX (2024) `pthread_mutex_clocklock`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: c_int,
    until: *const timespec,
) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(..) if !process::known(clock) => libc::EINVAL,
        // SAFETY: by contract.
        Whose::Ours(ours, kind) => ours.lock_until(kind, clock, unsafe { &*until }),
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_clocklock(mutex, clock, until) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// POSIX `pthread_mutex_unlock`.
///
/// # Safety
/// As POSIX has it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract; all fields are atomics.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    if ours.is_plain() && ours.quick_unlock() {
        return 0;
    }
    // SAFETY: by contract.
    unsafe { unlock_owned(mutex) }
}

/// # Safety
/// As [`pthread_mutex_unlock`].
#[inline(never)]
unsafe extern "C-unwind" fn unlock_owned(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract; all fields are atomics.
    let ours = unsafe { &*mutex.cast::<Mutex>() };
    if ours.has_owner() && ours.quick_unlock_owned() {
        return 0;
    }
    // SAFETY: by contract.
    unsafe { unlock_otherwise(mutex) }
}

/// # Safety
/// As [`pthread_mutex_unlock`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn unlock_otherwise(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: by contract.
    match unsafe { whose(mutex) } {
        Whose::Ours(ours, kind) => ours.unlock(kind),
        // SAFETY: by contract.
        Whose::Glibc => unsafe { real::mutex_unlock(mutex) },
        Whose::Nobody => libc::EINVAL,
    }
}

/// glibc's other names for the same functions, which programs built before glibc 2.34 may use.
macro_rules! aliases {
    ($($alias:ident = $name:ident($($arg:ident: $type:ty),*);)+) => {$(
        #[doc = concat!("[`", stringify!($name), "`] by glibc's other name.")]
        ///
        /// # Safety
        /// As that function's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $alias($($arg: $type),*) -> c_int {
            // SAFETY: by contract.
            unsafe { $name($($arg),*) }
        }
    )+};
}

aliases! {
    __pthread_mutex_init = pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t);
    __pthread_mutex_destroy = pthread_mutex_destroy(mutex: *mut pthread_mutex_t);
    __pthread_mutex_lock = pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    __pthread_mutex_trylock = pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    __pthread_mutex_unlock = pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
}
