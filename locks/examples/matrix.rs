//! Locks x threads x sections, in random order within one run: throughput, CPUs used, fairness, waits.
//!
//! ```text
//! cargo run --release -p wattwise-locks --example matrix -- [KEY=VALUE...]
//!   locks=glibc,std,parking_lot,adaptive   or any LOCK:POLICY of the crate, or `all`
//!   threads=1,2,4,8,32   cs=0,3.7,366   ncs=0,3.7,366   us
//!   ms=300               of each measurement
//!   repeats=3            of the whole, each in an order of its own
//!   seed=1
//!   pin=0                1: thread i on CPU i modulo CPUs, for machines that others use too
//! ```
//!
//! CSV on standard output, one line a measurement; a summary on standard error. Sections last as long as the
//! time-stamp counter says, not a number of loops, which drifts with the clock; time in which a thread was
//! preempted inside a section therefore counts as work done.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_locks::dynamic::Kind;
use wattwise_locks::{Adaptive, RawLock};

/// What a measurement needs of a lock.
trait Subject: Sync + Default {
    fn with<R>(&self, section: impl FnOnce() -> R) -> R;
}

#[derive(Default)]
struct Ours<L>(L);
impl<L: RawLock> Subject for Ours<L> {
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
impl Subject for Std {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock().unwrap_or_else(|e| e.into_inner());
        section()
    }
}

#[derive(Default)]
struct ParkingLot(parking_lot::Mutex<()>);
impl Subject for ParkingLot {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _held = self.0.lock();
        section()
    }
}

struct Glibc(std::cell::UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: it is a mutex.
unsafe impl Sync for Glibc {}
impl Default for Glibc {
    fn default() -> Self {
        Glibc(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}
impl Subject for Glibc {
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
    kind: &'static Kind,
    memory: Box<Memory>,
}
#[repr(align(128))]
struct Memory(std::cell::UnsafeCell<[u8; 16 * 1024]>);
// SAFETY: used through the kind's functions only.
unsafe impl Sync for Memory {}
thread_local!(static KIND: std::cell::Cell<Option<&'static Kind>> = const { std::cell::Cell::new(None) });
impl Default for Named {
    fn default() -> Self {
        let kind = KIND.get().expect("set before");
        assert!(kind.size <= size_of::<Memory>());
        Named { kind, memory: Box::new(Memory(std::cell::UnsafeCell::new([0; 16 * 1024]))) }
    }
}
impl Subject for Named {
    #[inline]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let at = std::ptr::NonNull::new(self.memory.0.get().cast()).expect("not null");
        // SAFETY: zeroed, large and aligned enough.
        let token = unsafe { (self.kind.acquire)(at) };
        let done = section();
        // SAFETY: just acquired.
        unsafe { (self.kind.release)(at, token) };
        done
    }
}

fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Instant::now().elapsed().as_nanos() as u64
    }
}

fn ticks_per_us() -> f64 {
    let (start, from) = (Instant::now(), ticks());
    std::thread::sleep(Duration::from_millis(50));
    (ticks() - from) as f64 / start.elapsed().as_nanos() as f64 * 1000.0
}

#[inline]
fn work(length: u64) {
    if length > 0 {
        let from = ticks();
        while ticks().wrapping_sub(from) < length {
            std::hint::spin_loop();
        }
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
    // SAFETY: zeros are a valid value, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let s = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    s(usage.ru_utime) + s(usage.ru_stime)
}

#[derive(Clone, Copy, Debug, Default)]
struct Result {
    per_s: f64,
    cpus: f64,
    jain: f64,
    p50_us: f64,
    p99_us: f64,
    longest_us: f64,
}

#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

fn measure<S: Subject>(threads: usize, cs: f64, ncs: f64, rate: f64, time: Duration, pin: bool) -> Result {
    let lock = Line(S::default());
    let (stop, gate) = (Line(AtomicBool::new(false)), Barrier::new(threads + 1));
    let (cs, ncs) = ((cs * rate) as u64, (ncs * rate) as u64);
    // Empty sections would be lengthened by reading the counter: then one wait in 64 is timed.
    let mask: u64 = if cs == 0 && ncs == 0 { 63 } else { 0 };
    let shared = Line(std::cell::UnsafeCell::new(0_u64));
    struct Shared<'a>(&'a std::cell::UnsafeCell<u64>);
    // SAFETY: counted under the lock only.
    unsafe impl Sync for Shared<'_> {}
    let shared_ref = &Shared(&shared.0);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|i| {
                let (lock, stop, shared, gate) = (&lock.0, &stop.0, shared_ref, &gate);
                scope.spawn(move || {
                    if pin {
                        pin_to(i);
                    }
                    let mut waits = vec![0_u32; 64 * 16];
                    let (mut done, mut longest) = (0_u64, 0);
                    gate.wait();
                    while !stop.load(Ordering::Relaxed) {
                        let timed = done & mask == 0;
                        let asked = if timed { ticks() } else { 0 };
                        let wait = lock.with(|| {
                            let wait = if timed { ticks().wrapping_sub(asked) } else { 0 };
                            // SAFETY: the lock is held.
                            unsafe { *shared.0.get() += 1 };
                            work(cs);
                            wait
                        });
                        done += 1;
                        if timed {
                            longest = longest.max(wait);
                            // A sixteenth of an octave.
                            let top = 63 - (wait | 16).leading_zeros() as usize;
                            waits[top * 16 + (wait >> (top - 4) & 15) as usize] += 1;
                        }
                        work(ncs);
                    }
                    (done, longest, waits)
                })
            })
            .collect();
        gate.wait();
        let (began, cpu) = (Instant::now(), cpu_seconds());
        std::thread::sleep(time);
        let (elapsed, used) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        stop.0.store(true, Ordering::Relaxed);
        let each: Vec<_> = handles.into_iter().map(|h| h.join().expect("worker")).collect();
        let total: u64 = each.iter().map(|e| e.0).sum();
        // SAFETY: the threads are gone.
        assert_eq!(total, unsafe { *shared.0.get() }, "exclusion broke");
        let squares: f64 = each.iter().map(|e| (e.0 as f64).powi(2)).sum();
        let mut waits = vec![0_u64; 64 * 16];
        for e in &each {
            for (sum, n) in waits.iter_mut().zip(&e.2) {
                *sum += u64::from(*n);
            }
        }
        let timed: u64 = waits.iter().sum();
        let quantile = |q: f64| {
            let mut left = (timed as f64 * q) as u64;
            let at = waits.iter().position(|n| {
                let here = left < *n;
                left = left.saturating_sub(*n);
                here
            });
            at.map_or(0.0, |i| (16 + i % 16) as f64 * 2_f64.powi(i as i32 / 16 - 4) / rate)
        };
        Result {
            per_s: total as f64 / elapsed,
            cpus: used / elapsed,
            jain: (total as f64).powi(2) / (threads as f64 * squares).max(1.0),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            longest_us: each.iter().map(|e| e.1).max().unwrap_or(0) as f64 / rate,
        }
    })
}

fn run(name: &str, threads: usize, cs: f64, ncs: f64, rate: f64, time: Duration, pin: bool) -> Result {
    match name {
        "glibc" => measure::<Glibc>(threads, cs, ncs, rate, time, pin),
        "std" => measure::<Std>(threads, cs, ncs, rate, time, pin),
        "parking_lot" => measure::<ParkingLot>(threads, cs, ncs, rate, time, pin),
        "adaptive" => measure::<Ours<Adaptive>>(threads, cs, ncs, rate, time, pin),
        name => {
            KIND.set(Some(Kind::parse(name).unwrap_or_else(|why| panic!("locks={why}"))));
            measure::<Named>(threads, cs, ncs, rate, time, pin)
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut args: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in [
        ("locks", "glibc,std,parking_lot,adaptive"),
        ("threads", "1,2,4,8,32"),
        ("cs", "0,3.7,366"),
        ("ncs", "0,3.7,366"),
        ("ms", "300"),
        ("repeats", "3"),
        ("seed", "1"),
        ("pin", "0"),
    ] {
        args.insert(key.into(), value.into());
    }
    for arg in std::env::args().skip(1) {
        let (key, value) = arg.split_once('=').expect("KEY=VALUE");
        assert!(args.insert(key.into(), value.into()).is_some(), "unknown key {key}");
    }
    let floats = |key: &str| args[key].split(',').map(|v| v.parse().expect("a number")).collect::<Vec<f64>>();
    let locks: Vec<String> = match args["locks"].as_str() {
        "all" => ["glibc", "std", "parking_lot"]
            .map(String::from)
            .into_iter()
            .chain(Kind::all().iter().map(Kind::name))
            .collect(),
        some => some.split(',').map(String::from).collect(),
    };
    let (time, repeats) = (Duration::from_millis(floats("ms")[0] as u64), floats("repeats")[0] as usize);
    let mut random = floats("seed")[0] as u64 | 1;
    let rate = ticks_per_us();
    let mut cells: BTreeMap<(usize, u64, u64, usize), Vec<Result>> = BTreeMap::new();
    println!(
        "repeat,lock,threads,cs_us,ncs_us,acquisitions_per_s,cpus,jain,wait_p50_us,wait_p99_us,longest_wait_us"
    );
    for repeat in 0..repeats {
        let mut order = Vec::new();
        for &threads in &floats("threads") {
            for &cs in &floats("cs") {
                for &ncs in &floats("ncs") {
                    for lock in 0..locks.len() {
                        order.push((threads as usize, cs, ncs, lock));
                    }
                }
            }
        }
        // Fisher and Yates, by a xorshift.
        for i in (1..order.len()).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(i, (random % (i as u64 + 1)) as usize);
        }
        for (threads, cs, ncs, lock) in order {
            let r = run(&locks[lock], threads, cs, ncs, rate, time, floats("pin")[0] != 0.0);
            println!(
                "{repeat},{},{threads},{cs},{ncs},{:.0},{:.3},{:.4},{:.2},{:.2},{:.1}",
                locks[lock], r.per_s, r.cpus, r.jain, r.p50_us, r.p99_us, r.longest_us
            );
            cells.entry((threads, cs.to_bits(), ncs.to_bits(), lock)).or_default().push(r);
        }
    }
    eprintln!("medians: acquisitions/s, CPUs, Jain, longest wait");
    let mut last = None;
    for ((threads, cs, ncs, lock), results) in &cells {
        if last != Some((threads, cs, ncs)) {
            eprintln!("-- {threads} threads, cs {}, ncs {}", f64::from_bits(*cs), f64::from_bits(*ncs));
            last = Some((threads, cs, ncs));
        }
        let of = |f: fn(&Result) -> f64| median(&mut results.iter().map(f).collect::<Vec<_>>());
        eprintln!(
            "{:>24} {:>12.0} {:>5.2} {:>6.3} {:>12.1} us",
            locks[*lock],
            of(|r| r.per_s),
            of(|r| r.cpus),
            of(|r| r.jain),
            of(|r| r.longest_us)
        );
    }
}
