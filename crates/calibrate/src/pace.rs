//! How much a core does in a clock cycle, and how much a thread does beside the others of its core: small kinds of work, timed.
//!
//! What a core's design is worth depends on the work. So there are three kinds, and what they differ by is the interval.

use crate::look::{cycles, mean_khz, shown_khz};
use crate::site::Site;
use crate::window::{Observer, Part, Spoiled, Window};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wattwise_hw::root::Root;

/// Work a second, by kind of work: chains of arithmetic, branches that nobody can foretell, a chase through a cache.
pub type Pace = [f64; 3];

/// What a CPU did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// Work a second.
    pub work: Pace,
    /// Its mean clock meanwhile, in kHz; none where nothing tells of it.
    pub khz: Option<f64>,
}

impl Paced {
    /// Work a cycle; of a CPU whose clock nothing tells of, at that one, in kHz.
    fn cycle(&self, asked_khz: f64) -> Pace {
        self.work.map(|work| work / self.khz.unwrap_or(asked_khz))
    }
}

/// What was found of a kind of core, by kind of work.
#[derive(Clone, Debug, PartialEq)]
pub struct KindPace {
    /// Work a clock cycle, of what the first kind does.
    pub ipc: Pace,
    /// What a thread does with all threads of its core at work, of what it does alone; none without SMT.
    pub beside: Option<Pace>,
}

/// Each kind of work, at a time. Others only slow it down: the best of some tries counts.
const EACH: Duration = Duration::from_millis(100);
const TRIES: usize = 3;

/// The pace of each kind of core, held at its highest speed without boost, which one core alone reaches; none where the site does
/// no real work. Afterwards the machine is as it was before.
///
/// # Errors
/// As of a window.
pub(crate) fn paces(observer: &Observer<'_>, site: &dyn Site) -> Result<Option<Vec<KindPace>>, Spoiled> {
    let kinds = &observer.machine.kinds;
    if let [only] = &observer.layout.packages[0][..]
        && only[0].len() == 1
    {
        // One kind of core, without SMT: nothing to compare.
        return Ok(None);
    }
    let (mut out, mut first) = (Vec::new(), None);
    for (k, kind) in kinds.iter().enumerate() {
        let rest = |k: usize| Part {
            cores: 0,
            all_threads: false,
            share: 0.0,
            level: kinds[k].levels.iter().position(|l| l.khz <= kinds[k].base_khz).unwrap_or(0),
            deepest: kinds[k].idle.len() - 1,
        };
        let window = Window { parts: (0..kinds.len()).map(rest).collect() };
        let level = &kind.levels[window.parts[k].level];
        let core = &observer.layout.packages[0][k][0];
        let mut held = observer.settings(site.root(), &window)?;
        let done = one_kind(site, core, f64::from(level.khz));
        if let Some((what, why)) = held.as_mut().and_then(|h| h.undo().failed.into_iter().next()) {
            return Err(Spoiled::End(format!("{what} was not put back: {why}")));
        }
        let Some((cycle, beside)) = done? else { return Ok(None) };
        let first = *first.get_or_insert(cycle);
        let ipc = std::array::from_fn(|work| cycle[work] / first[work]);
        out.push(KindPace { ipc, beside });
    }
    Ok(Some(out))
}

/// Work a clock cycle of a core with one thread at work, and what each thread does beside all the others. Limits of power and heat
/// may hold the clock below what is asked for, and more so with all threads: everything is counted by the cycle.
fn one_kind(site: &dyn Site, core: &[u32], khz: f64) -> Result<Option<(Pace, Option<Pace>)>, Spoiled> {
    let (mut alone, mut beside) = ([0.0_f64; 3], [0.0_f64; 3]);
    for _ in 0..TRIES {
        let Some(one) = site.pace(&core[..1], EACH).map_err(Spoiled::End)? else { return Ok(None) };
        alone.iter_mut().zip(one[0].cycle(khz)).for_each(|(best, work)| *best = best.max(work));
        if core.len() > 1 {
            let Some(all) = site.pace(core, EACH).map_err(Spoiled::End)? else { return Ok(None) };
            let all: Vec<Pace> = all.iter().map(|p| p.cycle(khz)).collect();
            for (at, best) in beside.iter_mut().enumerate() {
                *best = best.max(all.iter().map(|p| p[at]).sum::<f64>() / all.len() as f64);
            }
        }
    }
    let beside = (core.len() > 1).then(|| std::array::from_fn(|at| (beside[at] / alone[at]).min(1.0)));
    Ok(Some((alone, beside)))
}

/// The middle of the kinds of work, by factors, and the lowest and the highest.
pub(crate) fn over_work(pace: Pace) -> (f64, [f64; 2]) {
    let middle = (pace.iter().map(|p| p.ln()).sum::<f64>() / pace.len() as f64).exp();
    let ends = pace.iter().fold([f64::INFINITY, 0.0], |[low, high], p| [p.min(low), p.max(high)]);
    (middle, ends)
}

/// Runs each kind of work for so long on all of these CPUs at once: what each CPU did.
pub(crate) fn run(root: &dyn Root, cpus: &[u32], each: Duration) -> Result<Vec<Paced>, String> {
    std::thread::scope(|scope| {
        // By the clock: a thread that cannot be started keeps no other waiting.
        let begin = Instant::now();
        let one = |cpu: u32| std::thread::Builder::new().spawn_scoped(scope, move || {
            let mut set = rustix::thread::CpuSet::new();
            set.set(cpu as usize);
            rustix::thread::sched_setaffinity(None, &set)
                .map_err(|e| format!("no work can be kept on CPU {cpu}: {e}"))?;
            let (mut own, mut end) = (Work::new(), begin);
            // From the CPU itself, which is awake: looking wakes nobody.
            let (before, begun) = (cycles(root, cpu), Instant::now());
            let work = [Work::chains, Work::branches, Work::chase].map(|kind| {
                end += each;
                timed(end, || kind(&mut own))
            });
            let seconds = begun.elapsed().as_secs_f64();
            let counted = before.zip(cycles(root, cpu)).and_then(|(b, a)| mean_khz(b, a, seconds));
            Ok(Paced { work, khz: counted.or_else(|| shown_khz(root, cpu)) })
        });
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
struct Work {
    state: [u64; 4],
    sorted: Vec<u32>,
    /// A single cycle through all places.
    next: Vec<u32>,
    at: u32,
}

impl Work {
    fn new() -> Work {
        let mut random = wattwise_figure::Random::new(7);
        // Sattolo's shuffle gives one cycle.
        let mut next: Vec<u32> = (0..CHASED as u32).collect();
        for i in (1..CHASED).rev() {
            next.swap(i, (random.bits() % i as u64) as usize);
        }
        Work { state: [1, 3, 5, 7], sorted: (0..SORTED as u32).map(|n| n * 3).collect(), next, at: 0 }
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
        let mut work = Work::new();
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
        assert!(run(&root, &[1023], Duration::from_millis(1)).is_err_and(|e| e.contains("CPU 1023")));
    }

    #[test]
    fn work_is_taken_together_by_factors() {
        let (middle, ends) = over_work([0.5, 1.0, 2.0]);
        assert!((middle - 1.0).abs() < 1e-12 && ends == [0.5, 2.0]);
    }
}
