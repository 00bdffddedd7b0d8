//! Three small kinds of work, timed: chains of arithmetic, branches that nobody can foretell, a chase through a cache.

use super::Paced;
use crate::site::clock::{cycles, mean_khz, shown_khz};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wattwise_hw::root::Root;

/// Runs each kind of work for so long on all of these CPUs at once: what each CPU did.
pub(crate) fn run(root: &dyn Root, cpus: &[u32], each: Duration) -> Result<Vec<Paced>, String> {
    std::thread::scope(|scope| {
        // By the clock: a thread that cannot be started keeps no other waiting.
        let begin = Instant::now();
        let one = |cpu: u32| {
            wattwise_threads::named("timed").spawn_scoped(scope, move || {
                let mut set = rustix::thread::CpuSet::new();
                set.set(cpu as usize);
                rustix::thread::sched_setaffinity(None, &set)
                    .map_err(|e| format!("no work can be kept on CPU {cpu}: {e}"))?;
                let (mut own, mut end) = (ChaseWork::new(), begin);
                // From the CPU itself, which is awake: looking wakes nobody.
                let (before, begun) = (cycles(root, cpu), Instant::now());
                let work = [ChaseWork::chains, ChaseWork::branches, ChaseWork::chase].map(|kind| {
                    end += each;
                    timed(end, || kind(&mut own))
                });
                let seconds = begun.elapsed().as_secs_f64();
                let counted = before.zip(cycles(root, cpu)).and_then(|(b, a)| mean_khz(b, a, seconds));
                Ok(Paced { work, khz: counted.or_else(|| shown_khz(root, cpu)) })
            })
        };
        let threads: Vec<_> = cpus.iter().map(|cpu| one(*cpu)).collect();
        let done = threads.into_iter().map(|thread| {
            let thread = thread.map_err(|e| format!("no thread for a timed loop: {e}"))?;
            thread.join().unwrap_or_else(|_| Err("a timed loop ended".into()))
        });
        done.collect()
    })
}

/// How often a second something is done, until then.
fn timed(end: Instant, mut work: impl FnMut()) -> f64 {
    let (begun, mut done) = (Instant::now(), 0_u64);
    loop {
        work();
        done += 1;
        let now = Instant::now();
        if now >= end {
            return done as f64 / (now - begun).as_secs_f64();
        }
    }
}

/// Steps of a piece of work: some microseconds, so that looking at the clock is small beside it.
const STEPS: usize = 4096;
/// Numbers to search: within any first-level cache.
const SORTED: usize = 2048;
/// Places to chase through: within a second-level cache and beyond the first.
const CHASED: usize = 32 * 1024;

/// What the work is done on.
struct ChaseWork {
    state: [u64; 4],
    sorted: Vec<u32>,
    /// A single cycle through all places.
    next: Vec<u32>,
    at: u32,
}

impl ChaseWork {
    fn new() -> ChaseWork {
        let mut random = wattwise_figure::Random::new(7);
        // Sattolo's shuffle gives one cycle.
        let mut next: Vec<u32> = (0..CHASED as u32).collect();
        for i in (1..CHASED).rev() {
            next.swap(i, (random.bits() % i as u64) as usize);
        }
        ChaseWork { state: [1, 3, 5, 7], sorted: (0..SORTED as u32).map(|n| n * 3).collect(), next, at: 0 }
    }

    /// Four chains of arithmetic beside each other: what a core issues in a cycle.
    fn chains(&mut self) {
        for _ in 0..STEPS {
            for s in &mut self.state {
                *s = (*s ^ (*s >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(*s >> 7);
            }
        }
        black_box(&self.state);
    }

    /// Searches whose turns nobody can foretell.
    fn branches(&mut self) {
        let mut found = 0;
        for _ in 0..STEPS / 16 {
            self.state[0] =
                self.state[0].wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = ((self.state[0] >> 33) % (3 * SORTED as u64)) as u32;
            let (mut low, mut high) = (0, SORTED);
            while low < high {
                let middle = usize::midpoint(low, high);
                // Kept a branch: a conditional move would wait for memory instead.
                if black_box(self.sorted[middle]) < key { low = middle + 1 } else { high = middle }
            }
            found += low;
        }
        black_box(found);
    }

    /// Each step waits for the one before to come from the cache.
    fn chase(&mut self) {
        for _ in 0..STEPS {
            self.at = self.next[self.at as usize];
        }
        black_box(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_goes_through_all_places() {
        let mut work = ChaseWork::new();
        let mut seen = vec![false; CHASED];
        for _ in 0..CHASED {
            seen[work.at as usize] = true;
            work.at = work.next[work.at as usize];
        }
        assert!(seen.iter().all(|s| *s) && work.at == 0);
    }

    #[test]
    fn all_kinds_of_work_are_done_on_all_cpus() {
        let own = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..1024).filter(|c| own.is_set(*c as usize)).take(2).collect();
        let empty = tempfile::tempdir().unwrap();
        let root = wattwise_hw::root::DirRoot::new(empty.path());
        let done = run(&root, &cpus, Duration::from_millis(20)).unwrap();
        assert_eq!(done.len(), cpus.len());
        assert!(done.iter().all(|p| p.work.iter().all(|w| *w > 0.0) && p.khz.is_none()), "{done:?}");
        // A clock that the kernel shows, in kHz, is that of the work.
        let shown = empty.path().join(format!("sys/devices/system/cpu/cpu{}/cpufreq", cpus[0]));
        std::fs::create_dir_all(&shown).unwrap();
        std::fs::write(shown.join("scaling_cur_freq"), "2100000\n").unwrap();
        let done = run(&root, &cpus[..1], Duration::from_millis(5)).unwrap();
        assert_eq!(done[0].khz, Some(2_100_000.0));
        assert!(run(&root, &[1023], Duration::from_millis(1)).is_err_and(|e| e.contains("CPU 1023")));
    }
}
