//! What waking up costs, by C-state: a timer's (how late a sleep ends), and another CPU's (from the write that
//! wakes a thread to its first step).
//!
//! Each C-state is asked for by forbidding all deeper ones; which one the CPU really took is read from the
//! kernel's counts. A thread waits on a CPU of its own; the waker stays awake on another.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// CPUs that this process may use.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|c| set.is_set(*c)).collect()
}

/// Pins the calling thread.
pub fn pin(cpu: usize) -> Result<(), String> {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).map_err(|e| format!("CPU {cpu} cannot be used: {e}"))
}

/// How late sleeps of a length end on a CPU, us.
pub fn timer(cpu: usize, sleep: Duration, times: usize) -> Result<Vec<f64>, String> {
    let sleeps = || {
        pin(cpu)?;
        let mut late = Vec::with_capacity(times);
        for _ in 0..times {
            let due = Instant::now() + sleep;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            late.push(Instant::now().saturating_duration_since(due).as_nanos() as f64 / 1e3);
        }
        Ok(late)
    };
    std::thread::scope(|scope| {
        let thread = wattwise_threads::named("sleeper").spawn_scoped(scope, sleeps).map_err(no_thread)?;
        thread.join().unwrap_or_else(|_| Err("the sleeping thread panicked".to_owned()))
    })
}

/// From a write on one CPU until the reader that slept on another runs, us.
pub fn cross(sleeper: usize, waker: usize, sleep: Duration, times: usize) -> Result<Vec<f64>, String> {
    let start = Instant::now();
    // A time for each wake-up: on a busy host the next one may come before the reader has run.
    let woken_at: Vec<AtomicU64> = (0..times).map(|_| AtomicU64::new(0)).collect();
    let (mut read, mut write) = std::io::pipe().map_err(|e| e.to_string())?;
    std::thread::scope(|scope| {
        let woken_at = &woken_at;
        let reads = move || -> Result<Vec<f64>, String> {
            pin(sleeper)?;
            let mut late = Vec::with_capacity(times);
            let mut byte = [0];
            while read.read(&mut byte).map_err(|e| e.to_string())? > 0 {
                let now = start.elapsed().as_nanos() as u64;
                let at = woken_at.get(late.len()).map_or(now, |at| at.load(Ordering::Acquire));
                late.push(now.saturating_sub(at) as f64 / 1e3);
            }
            Ok(late)
        };
        let reader = wattwise_threads::named("sleeper").spawn_scoped(scope, reads).map_err(no_thread)?;
        pin_and_wake(waker, sleep, &mut write, woken_at, start)?;
        drop(write);
        reader.join().unwrap_or_else(|_| Err("the sleeping thread panicked".to_owned()))
    })
}

fn no_thread(e: std::io::Error) -> String {
    format!("no thread that sleeps can be started: {e}")
}

fn pin_and_wake(
    waker: usize,
    sleep: Duration,
    write: &mut std::io::PipeWriter,
    woken_at: &[AtomicU64],
    start: Instant,
) -> Result<(), String> {
    let before = sched_getaffinity(None).map_err(|e| e.to_string())?;
    pin(waker)?;
    let mut done = Ok(());
    for at in woken_at {
        // Awake all the while: only the sleeper's way out of its C-state is in the figure.
        let due = Instant::now() + sleep;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        at.store(start.elapsed().as_nanos() as u64, Ordering::Release);
        if let Err(e) = write.write_all(&[1]) {
            done = Err(e.to_string());
            break;
        }
    }
    sched_setaffinity(None, &before).map_err(|e| e.to_string())?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early_and_every_wake_up_is_counted() {
        let cpus = allowed();
        let late = timer(cpus[0], Duration::from_micros(200), 20).expect("sleeps");
        assert_eq!(late.len(), 20);
        assert!(late.iter().all(|us| *us >= 0.0));
        if let [sleeper, waker, ..] = cpus[..] {
            let late = cross(sleeper, waker, Duration::from_micros(200), 20).expect("wakes");
            assert_eq!(late.len(), 20);
            assert!(late.iter().all(|us| *us > 0.0 && *us < 1e6), "{late:?}");
        }
        assert_eq!(allowed(), cpus, "the caller's CPUs are as before");
    }
}
