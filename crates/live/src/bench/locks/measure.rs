//! One measurement: so many threads, one lock, sections of drawn lengths, for a while.
//!
//! 1. Threads start together; a tenth of the time passes before counting begins.
//! 2. Each thread: acquire, work for a drawn time, release, work for a drawn time. Lengths are drawn in advance.
//! 3. Counts, CPU time and joules are read at both ends of a window, while the threads go on.
//!
//! Work is timed by the time-stamp counter, which runs alike at every speed, and not by a number of loops. The
//! counter also runs while a thread is preempted, so a section adds up the small steps between its reads and
//! leaves out every step of more than `GAP_US`: time in which somebody else had the core is not work.

use std::cell::{Cell, UnsafeCell};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};
use wattwise_figure::Random;
use wattwise_lockbench::section::Section;
use wattwise_locks::dynamic::LockKind;
use wattwise_locks::{Adaptive, RawLock};

/// Reads are 10 to 60 ns apart; a context switch and back takes more than 2 us.
const GAP_US: f64 = 1.0;

/// Lengths drawn for each thread, then used in turn: a power of two.
const DRAWN: usize = 4096;
const _: () = assert!(DRAWN.is_power_of_two(), "a mask picks from them");

/// The locks of others, beside [`LockKind`]s.
pub const OTHERS: [&str; 3] = ["glibc", "std", "parking_lot"];

/// A lock that can be measured, by name.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    name: &'static str,
    run: fn(&LockJob) -> io::Result<LockCounts>,
    kind: Option<&'static LockKind>,
}

impl Subject {
    /// `glibc`, `std`, `parking_lot`, or a lock of wattwise-locks as `LOCK:POLICY`.
    pub fn parse(name: &str) -> Result<Subject, String> {
        let of = |name, run| Ok(Subject { name, run, kind: None });
        match name {
            "glibc" => of("glibc", measure::<Glibc>),
            "std" => of("std", measure::<Std>),
            "parking_lot" => of("parking_lot", measure::<ParkingLot>),
            // As a program would use it: without an indirect call.
            "adaptive" => of("adaptive", measure::<OurLocks<Adaptive>>),
            _ => {
                let kind = LockKind::parse(name)
                    .map_err(|why| format!("lock {why}; or one of {}", OTHERS.join(", ")))?;
                let name = Box::leak(kind.name().into_boxed_str());
                Ok(Subject { name, run: measure::<Named>, kind: Some(kind) })
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What of it is not what its name says, on this machine.
    pub fn caveat(&self) -> Option<String> {
        use wattwise_locks::wait::{UserWaitBackend, user_wait_backend};
        let wait = self.kind?.wait;
        if wait == "user-wait" && user_wait_backend() == UserWaitBackend::Pause {
            return Some(format!(
                "{}: this CPU shows neither UMWAIT nor MWAITX, or they do not wait: PAUSE in their place",
                self.name
            ));
        }
        if wait == "kernel-wait" {
            return Some(format!("{}: without the powerctl device PAUSE stands in for MWAIT", self.name));
        }
        (wait.starts_with("tstate+") || wait.starts_with("pstate+")).then(|| {
            format!("{}: without the powerctl device no state is changed; only its calls are made", self.name)
        })
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct LockJob {
    /// Threads.
    pub threads: usize,
    /// Inside the lock.
    pub cs: Section,
    /// Outside.
    pub ncs: Section,
    /// Of the window.
    pub time: Duration,
    /// Thread i on CPU i modulo CPUs.
    pub pin: bool,
    /// Of the drawn lengths.
    pub seed: u64,
}

/// What was counted in the window.
#[derive(Clone, Debug)]
pub struct LockCounts {
    /// Length of the window, s.
    pub seconds: f64,
    /// Acquisitions of each thread.
    pub acquired: Vec<u64>,
    /// CPU time of the process, s.
    pub cpu_s: f64,
    /// Waits.
    pub waits: WaitHistogram,
}

/// A histogram of waits by sixteenths of an octave, in ticks.
#[derive(Clone, Debug)]
pub struct WaitHistogram {
    slots: Vec<u64>,
    longest: u64,
    ticks_per_us: f64,
}

impl WaitHistogram {
    const SLOTS: usize = 64 * 16;

    fn new(ticks_per_us: f64) -> WaitHistogram {
        WaitHistogram { slots: vec![0; Self::SLOTS], longest: 0, ticks_per_us }
    }

    #[inline]
    fn put(&mut self, ticks: u64) {
        self.longest = self.longest.max(ticks);
        let top = 63 - (ticks | 16).leading_zeros() as usize;
        self.slots[top * 16 + (ticks >> (top - 4) & 15) as usize] += 1;
    }

    fn take_in(&mut self, other: &WaitHistogram) {
        self.longest = self.longest.max(other.longest);
        for (sum, n) in self.slots.iter_mut().zip(&other.slots) {
            *sum += n;
        }
    }

    /// The wait below which a share `q` of them is, us.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut left = (self.slots.iter().sum::<u64>() as f64 * q) as u64;
        let slot = self.slots.iter().position(|n| {
            let here = left < *n;
            left = left.saturating_sub(*n);
            here
        });
        slot.map_or(self.longest(), |i| {
            let ticks = (16 + i % 16) as f64 * 2_f64.powi(i as i32 / 16 - 4);
            (ticks / self.ticks_per_us).min(self.longest())
        })
    }

    /// The longest, us.
    pub fn longest(&self) -> f64 {
        self.longest as f64 / self.ticks_per_us
    }
}

/// Measures.
///
/// # Errors
/// Not all of its threads can be started.
pub fn run(subject: &Subject, job: &LockJob) -> io::Result<LockCounts> {
    KIND.set(subject.kind);
    (subject.run)(job)
}

/// What a measurement needs of a lock.
trait Lock: Sync + Default {
    fn with<R>(&self, section: impl FnOnce() -> R) -> R;
}

#[derive(Default)]
struct OurLocks<L>(L);
impl<L: RawLock> Lock for OurLocks<L> {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let token = self.0.lock();
        let done = section();
        // SAFETY: just acquired.
        unsafe { self.0.unlock(token) };
        done
    }
}

#[derive(Default)]
struct Std(std::sync::Mutex<()>);
impl Lock for Std {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock().unwrap_or_else(|e| e.into_inner());
        section()
    }
}

#[derive(Default)]
struct ParkingLot(parking_lot::Mutex<()>);
impl Lock for ParkingLot {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        section()
    }
}

struct Glibc(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: it is a mutex.
unsafe impl Sync for Glibc {}
impl Default for Glibc {
    fn default() -> Self {
        Glibc(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}
impl Lock for Glibc {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: initialised, and not moved while threads use it.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        let done = section();
        // SAFETY: locked above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        done
    }
}

/// A kind chosen at run time: one indirect call more.
struct Named {
    kind: &'static LockKind,
    memory: Box<SharedMemory>,
}
#[repr(align(128))]
struct SharedMemory(UnsafeCell<[u8; SharedMemory::SIZE]>);
impl SharedMemory {
    const SIZE: usize = 16 * 1024;
}
// SAFETY: used through the kind's functions only.
unsafe impl Sync for SharedMemory {}
thread_local!(static KIND: Cell<Option<&'static LockKind>> = const { Cell::new(None) });
impl Default for Named {
    fn default() -> Self {
        let kind = KIND.get().expect("run() sets it");
        assert!(
            kind.size <= SharedMemory::SIZE && kind.align <= align_of::<SharedMemory>(),
            "{} is large",
            kind.name()
        );
        Named { kind, memory: Box::new(SharedMemory(UnsafeCell::new([0; SharedMemory::SIZE]))) }
    }
}
impl Lock for Named {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let at = std::ptr::NonNull::new(self.memory.0.get().cast()).expect("a box is not null");
        // SAFETY: zeroed at first, large and aligned enough.
        let token = unsafe { (self.kind.acquire)(at) };
        let done = section();
        // SAFETY: just acquired.
        unsafe { (self.kind.release)(at, token) };
        done
    }
}

/// The time-stamp counter; where there is none that users may read, the clock in ns.
#[inline]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Ticks in a microsecond, measured once over 50 ms: the clock's reads differ by some 50 ns.
fn ticks_per_us() -> f64 {
    static RATE: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let (start, from) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(50));
        (ticks() - from) as f64 / start.elapsed().as_nanos() as f64 * 1000.0
    })
}

/// Works for so many ticks.
#[inline]
fn work(length: u64, gap: u64) {
    let (mut last, mut done) = (ticks(), 0);
    while done < length {
        let now = ticks();
        let step = now.wrapping_sub(last);
        last = now;
        done += if step < gap { step } else { 0 };
    }
}

fn pin_to(thread: usize) {
    // SAFETY: zeros are an empty set; the calls fill and read it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let cpus = libc::sysconf(libc::_SC_NPROCESSORS_ONLN).max(1) as usize;
        libc::CPU_SET(thread % cpus, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// On lines of its own: two, since some CPUs fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

fn measure<L: Lock>(job: &LockJob) -> io::Result<LockCounts> {
    let rate = ticks_per_us();
    let gap = (GAP_US * rate) as u64;
    let lock = Apart(L::default());
    let (stop, gate) = (Apart(AtomicBool::new(false)), Barrier::new(job.threads + 1));
    let counts: Vec<Apart<AtomicU64>> = (0..job.threads).map(|_| Apart::default()).collect();
    // Empty sections would be lengthened by reading the counter: then one wait in 64 is timed.
    let mask: u64 = if job.cs.mean() + job.ncs.mean() == 0.0 { 63 } else { 0 };
    struct Guarded(UnsafeCell<u64>);
    // SAFETY: counted under the lock only.
    unsafe impl Sync for Guarded {}
    let guarded = Apart(Guarded(UnsafeCell::new(0)));
    // Whether all could be started: else nobody waits at the gate for those that could not.
    let all_there = OnceLock::new();
    std::thread::scope(|scope| {
        let handles: io::Result<Vec<_>> = (0..job.threads)
            .map(|i| {
                let (lock, stop, guarded, gate, count) = (&lock.0, &stop.0, &guarded.0, &gate, &counts[i].0);
                let all_there = &all_there;
                wattwise_threads::named(&format!("lock-{i}")).spawn_scoped(scope, move || {
                    if !all_there.wait() {
                        return (0, WaitHistogram::new(rate));
                    }
                    if job.pin {
                        pin_to(i);
                    }
                    let mut random =
                        Random::new(job.seed ^ (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let mut draw = |s: Section| -> Vec<u64> {
                        let n = if s.mean() == 0.0 { 1 } else { DRAWN };
                        s.draw(n, &mut random).into_iter().map(|us| (us * rate) as u64).collect()
                    };
                    let (cs, ncs) = (draw(job.cs), draw(job.ncs));
                    let mut waits = WaitHistogram::new(rate);
                    let mut done = 0_u64;
                    gate.wait();
                    while !stop.load(Ordering::Relaxed) {
                        let timed = done & mask == 0;
                        let asked = if timed { ticks() } else { 0 };
                        // A division would take longer than an uncontended acquisition.
                        let at = |lengths: &[u64]| lengths[done as usize & (lengths.len() - 1)];
                        let (inside, outside) = (at(&cs), at(&ncs));
                        let wait = lock.with(|| {
                            let wait = if timed { ticks().wrapping_sub(asked) } else { 0 };
                            // SAFETY: the lock is held.
                            unsafe { *guarded.0.get() += 1 };
                            if inside > 0 {
                                work(inside, gap);
                            }
                            wait
                        });
                        done += 1;
                        count.store(done, Ordering::Relaxed);
                        if timed {
                            waits.put(wait);
                        }
                        if outside > 0 {
                            work(outside, gap);
                        }
                    }
                    (done, waits)
                })
            })
            .collect();
        _ = all_there.set(handles.is_ok());
        let handles = handles?;
        let read = || counts.iter().map(|c| c.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        gate.wait();
        std::thread::sleep(job.time / 10);
        let (began, cpu, first) = (Instant::now(), cpu_seconds(), read());
        std::thread::sleep(job.time);
        let (last, cpu_s, seconds) = (read(), cpu_seconds() - cpu, began.elapsed().as_secs_f64());
        stop.0.store(true, Ordering::Relaxed);
        let mut waits = WaitHistogram::new(rate);
        let mut total = 0;
        for handle in handles {
            let (done, own) = handle.join().expect("a worker does not panic");
            total += done;
            waits.take_in(&own);
        }
        // SAFETY: the threads are gone.
        assert_eq!(total, unsafe { *guarded.0.0.get() }, "two threads were inside the lock at once");
        let acquired = last.iter().zip(&first).map(|(l, f)| l - f).collect();
        Ok(LockCounts { seconds, acquired, cpu_s, waits })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(threads: usize, cs: &str, ncs: &str) -> LockJob {
        let section = |s: &str| s.parse().expect("valid");
        LockJob {
            threads,
            cs: section(cs),
            ncs: section(ncs),
            time: Duration::from_millis(20),
            pin: false,
            seed: 1,
        }
    }

    #[test]
    #[ignore = "long: make test runs it"]
    fn every_lock_is_measured() {
        let kinds = LockKind::all().iter().map(LockKind::name);
        for name in OTHERS.map(String::from).into_iter().chain(["adaptive".to_owned()]).chain(kinds) {
            let subject = Subject::parse(&name).expect("known");
            // A crowded machine may give the threads no time in a short window.
            let windows = (0..10).map(|n| Duration::from_millis(10 << n));
            let mut runs = windows
                .map(|time| run(&subject, &LockJob { time, ..job(2, "0-3.7", "exp:3.7") }).expect("threads"));
            let counts = runs.find(|c| c.acquired.iter().sum::<u64>() > 0).expect(&name);
            assert_eq!(counts.acquired.len(), 2, "{name}");
            assert!(counts.cpu_s > 0.0, "{name}");
            assert!(counts.waits.quantile(0.5) <= counts.waits.quantile(0.99), "{name}");
            assert!(counts.waits.quantile(0.99) <= counts.waits.longest(), "{name}");
        }
        let why = Subject::parse("mutexee").expect_err("unknown");
        assert!(why.contains("mutexee") && why.contains("parking_lot") && why.contains("mcs"), "{why}");
    }

    /// A section cannot be shorter than asked for, however the machine is loaded.
    #[test]
    fn sections_last_at_least_as_long_as_drawn() {
        let subject = Subject::parse("std").expect("known");
        let counts = run(&subject, &job(1, "200", "300")).expect("threads");
        assert!(counts.acquired[0] as f64 <= counts.seconds / 490e-6 + 2.0, "{counts:?}");
    }

    #[test]
    fn waits_keep_a_sixteenth_of_an_octave() {
        let mut waits = WaitHistogram::new(1000.0);
        (1..=1000).for_each(|us| waits.put(us * 1000));
        for (q, us) in [(0.5, 500.0), (0.99, 990.0)] {
            let got = waits.quantile(q);
            assert!((got / us - 1.0).abs() < 0.07, "{q}: {got}");
        }
        assert_eq!(waits.longest(), 1000.0);
    }
}
