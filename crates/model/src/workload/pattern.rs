//! Generated programs: a short list of steps, gone through again and again with drawn lengths.
//!
//! A few step kinds are enough for every load that the studies used: bursts (`Run`, `Sleep`),
//! periodic wake-ups (`Period`, `Run`), ping-pong and streams (`Run`, `Wake`, `Block`), builds
//! (`Take` a job, `Run`, `Io`), lock benchmarks (`Lock`, `Run`, `Unlock`, `Run`).
//!
//! **The work is the same under every policy.** A task draws its lengths from its own generator; a
//! job taken from a shared counter re-seeds that generator with the job's number, so that the job
//! costs the same whoever takes it and whenever.
//!
//! Lengths are drawn with additions, multiplications and shifts only: the same bits on every platform.

use super::{Op, TaskId};
use std::sync::Arc;

/// A distribution of lengths; the unit is the user's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dist {
    /// Always the same.
    Fixed(u64),
    /// Evenly from the first to the second.
    Uniform(u64, u64),
    /// Evenly in the logarithm (base 2, linear inside an octave), from the first to the second: many short, few long.
    LogUniform(u64, u64),
}

/// One step of a generated task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Computes for so many cycles, of which this share of the time at the pattern's reference clock is memory-bound.
    Run(Dist),
    /// Sleeps on a timer, in ns.
    Sleep(Dist),
    /// Sleeps until the next multiple of a period, in ns, counted from the task's start: absolute time, no drift.
    Period(u64),
    /// Waits for a device, in ns.
    Io(Dist),
    /// Waits to be woken.
    Block,
    /// Wakes a task.
    Wake(TaskId),
    /// Takes a lock.
    Lock(u32),
    /// Gives it back.
    Unlock(u32),
    /// Takes a job from a shared counter of the workload; ends the task when none is left.
    Take(u32),
}

/// A generated task.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Gone through once a round.
    pub steps: Vec<Step>,
    /// Before the first round, in ns.
    pub start: Dist,
    /// Number of rounds.
    pub rounds: u64,
    /// No round begins at or after this time, in ns.
    pub until_ns: u64,
    /// Seeds the task's own generator; not 0.
    pub seed: u64,
    /// Clock at which memory-bound time is counted, in kHz.
    pub reference_khz: u32,
    /// Share of each run's time at the reference clock that does not scale with the clock, 0 to 1.
    pub memory_share: f64,
}

/// xorshift64*: small, fast, and the generator that `bursts-v1` prescribes.
///
/// The next draw is always made in advance: whoever asks for it is about to compute an event's time with it,
/// which the whole simulation then waits for; making the one after does not hold anything up.
#[derive(Clone, Copy, Debug)]
pub struct Rng {
    state: u64,
    next: f64,
}

impl Rng {
    /// A generator whose first eight draws, poor for small seeds, are thrown away.
    pub fn new(seed: u64) -> Rng {
        let mut r = Rng { state: seed.max(1), next: 0.0 };
        (0..9).for_each(|_| _ = r.unit());
        r
    }

    /// Evenly in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let next = (self.state.wrapping_mul(2685821657736338717) >> 11) as f64 / (1u64 << 53) as f64;
        std::mem::replace(&mut self.next, next)
    }
}

/// A distribution with everything reckoned that does not change from draw to draw.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Fixed(u64),
    Uniform { low: f64, width: f64 },
    LogUniform { low: f64, width: f64, bounds: (u64, u64) },
}

impl Draw {
    fn new(dist: Dist) -> Draw {
        match dist {
            Dist::Fixed(x) => Draw::Fixed(x),
            Dist::Uniform(a, b) => Draw::Uniform { low: a as f64, width: (b - a) as f64 },
            Dist::LogUniform(a, b) => {
                let (low, high) = (log2(a.max(1)), log2(b.max(1)));
                Draw::LogUniform { low, width: high - low, bounds: (a, b) }
            }
        }
    }

    #[inline(always)]
    fn draw(&self, rng: &mut Rng) -> u64 {
        match *self {
            Draw::Fixed(x) => x,
            // By way of `i64`: the processor has no unsigned conversion.
            Draw::Uniform { low, width } => (low + rng.unit() * width) as i64 as u64,
            Draw::LogUniform { low, width, bounds: (a, b) } => exp2(low + rng.unit() * width, a, b),
        }
    }
}

impl Dist {
    /// The greatest value.
    pub fn max(self) -> u64 {
        match self {
            Dist::Fixed(x) => x,
            Dist::Uniform(_, b) | Dist::LogUniform(_, b) => b,
        }
    }
}

/// Base-2 logarithm, linear inside each octave.
fn log2(x: u64) -> f64 {
    let octave = x.ilog2();
    f64::from(octave) + (x as f64 / (1u64 << octave) as f64 - 1.0)
}

/// Its inverse, within bounds.
// Out of line: inlined where the draw is, its constants would be loaded for every draw of any kind.
#[inline(never)]
fn exp2(y: f64, least: u64, greatest: u64) -> u64 {
    let octave = y as u32;
    let x = ((1.0 + (y - f64::from(octave))) * (1u64 << octave.min(62)) as f64) as u64;
    x.clamp(least, greatest)
}

/// Where a task is in its pattern. What every step needs is within a cache line: a machine of hundreds of CPUs has as
/// many tasks, and the simulation goes from one to another.
#[derive(Clone, Debug)]
pub struct PatternCursor {
    rng: Rng,
    /// The pattern's steps, each with the draw of its length; 0 for those without. Tasks of one kind share them.
    steps: Arc<[(Step, Draw)]>,
    rounds_left: u64,
    until_ns: u64,
    step: u32,
    /// It waits before the first round.
    starts: bool,
    /// Some of its runs' time is stall time.
    stalls: bool,
    seldom: Box<Seldom>,
}

/// What few steps need.
#[derive(Clone, Debug)]
struct Seldom {
    /// How runs divide into cycles and stall time.
    memory: MemoryShare,
    /// The last multiple of the period that was slept to; [`u64::MAX`] before the first.
    due: u64,
    /// What to wait for before the first round.
    start: Dist,
}

/// The share of each run's time at a clock that does not scale with the clock.
#[derive(Clone, Copy, Debug)]
struct MemoryShare {
    share: f64,
    reference_khz: u32,
}

impl MemoryShare {
    /// Cycles and stall time, in ns, of a run of so many cycles' length.
    #[inline(never)]
    fn split(&self, length: u64) -> (u64, u64) {
        let ns = length as f64 * 1e6 / f64::from(self.reference_khz);
        ((length as f64 * (1.0 - self.share)) as u64, (ns * self.share) as u64)
    }
}

impl PatternCursor {
    /// At the start of a pattern.
    pub fn new(p: &Pattern) -> PatternCursor {
        PatternCursor::with_steps(p, PatternCursor::draws(p))
    }

    /// At the start of a pattern whose steps are those of another's, `like`.
    pub fn sharing_steps(p: &Pattern, like: &PatternCursor) -> PatternCursor {
        debug_assert!(like.steps.iter().map(|(step, _)| step).eq(&p.steps), "other steps");
        PatternCursor::with_steps(p, Arc::clone(&like.steps))
    }

    fn draws(p: &Pattern) -> Arc<[(Step, Draw)]> {
        let length = |step: &Step| match *step {
            Step::Run(d) | Step::Sleep(d) | Step::Io(d) => Draw::new(d),
            _ => Draw::Fixed(0),
        };
        p.steps.iter().map(|step| (*step, length(step))).collect()
    }

    fn with_steps(p: &Pattern, steps: Arc<[(Step, Draw)]>) -> PatternCursor {
        let memory = MemoryShare { share: p.memory_share, reference_khz: p.reference_khz };
        PatternCursor {
            rng: Rng::new(p.seed),
            steps,
            rounds_left: p.rounds,
            until_ns: p.until_ns,
            step: 0,
            starts: p.start != Dist::Fixed(0),
            stalls: p.memory_share != 0.0,
            seldom: Box::new(Seldom { memory, due: u64::MAX, start: p.start }),
        }
    }

    /// Rounds that have not begun.
    pub(super) fn rounds_left(&self) -> u64 {
        self.rounds_left
    }

    #[cold]
    #[inline(never)]
    fn wait_to_start(&mut self) -> u64 {
        self.starts = false;
        Draw::new(self.seldom.start).draw(&mut self.rng)
    }

    /// Takes a job from a shared counter; `None` when none is left.
    #[inline(never)]
    fn take_job(&mut self, counter: u32, jobs: &mut [u64]) -> Option<()> {
        let left = &mut jobs[counter as usize];
        *left = left.checked_sub(1)?;
        // Spread the job's number over the seed's bits, whoever takes it.
        self.rng = Rng::new((*left + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(counter) + 1));
        Some(())
    }

    /// The next op at time `now`, or `None` when the task has ended. `jobs` are the workload's shared counters.
    #[inline(always)]
    pub fn next(&mut self, now: u64, jobs: &mut [u64]) -> Option<Op> {
        if self.starts {
            return Some(Op::SleepFor(self.wait_to_start()));
        }
        loop {
            if self.step == 0 && (self.rounds_left == 0 || now >= self.until_ns) {
                return None;
            }
            let (step, length) = &self.steps[self.step as usize];
            let length = length.draw(&mut self.rng);
            self.step += 1;
            if self.step as usize == self.steps.len() {
                self.step = 0;
                self.rounds_left -= 1;
            }
            return Some(match *step {
                Step::Run(_) => {
                    let (cycles, stall_ns) =
                        if self.stalls { self.seldom.memory.split(length) } else { (length, 0) };
                    Op::Run { cycles, stall_ns }
                }
                Step::Sleep(_) => Op::SleepFor(length),
                Step::Period(ns) => {
                    let due = &mut self.seldom.due;
                    *due = if *due == u64::MAX { now } else { *due } + ns;
                    Op::SleepUntil(*due)
                }
                Step::Io(_) => Op::Io(length),
                Step::Block => Op::Block,
                Step::Wake(t) => Op::Wake(t),
                Step::Lock(l) => Op::Lock(l),
                Step::Unlock(l) => Op::Unlock(l),
                Step::Take(counter) => {
                    self.take_job(counter, jobs)?;
                    continue;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(steps: Vec<Step>) -> Pattern {
        Pattern {
            steps,
            start: Dist::Fixed(0),
            rounds: u64::MAX,
            until_ns: u64::MAX,
            seed: 1,
            reference_khz: 1_000_000,
            memory_share: 0.0,
        }
    }

    #[test]
    fn a_job_costs_the_same_whoever_takes_it() {
        let p = pattern(vec![Step::Take(0), Step::Run(Dist::Uniform(0, 1 << 40))]);
        let q = Pattern { seed: 99, ..p.clone() };
        let mut one = vec![];
        let (mut jobs, mut c) = ([4], PatternCursor::new(&p));
        while let Some(op) = c.next(0, &mut jobs) {
            one.push(op);
        }
        let mut two = vec![];
        let (mut jobs, mut c, mut d) = ([4], PatternCursor::new(&p), PatternCursor::new(&q));
        for _ in 0..2 {
            two.extend(c.next(0, &mut jobs));
            two.extend(d.next(0, &mut jobs));
        }
        assert_eq!(one.len(), 4);
        assert_eq!(one, two);
    }

    #[test]
    fn periods_do_not_drift() {
        let p = pattern(vec![Step::Period(100), Step::Run(Dist::Fixed(1))]);
        let mut c = PatternCursor::new(&p);
        assert_eq!(c.next(30, &mut []), Some(Op::SleepUntil(130)));
        c.next(135, &mut []);
        assert_eq!(c.next(190, &mut []), Some(Op::SleepUntil(230)));
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = Rng::new(7);
        let (mut low, mut high) = (0, 0);
        for _ in 0..10_000 {
            let x = Draw::new(Dist::LogUniform(100, 100_000)).draw(&mut rng);
            assert!((100..=100_000).contains(&x));
            low += u32::from(x < 1000);
            high += u32::from(x > 10_000);
            assert!((5..=9).contains(&Draw::new(Dist::Uniform(5, 10)).draw(&mut rng)));
        }
        // A third of the draws in each decade, as the logarithm wants.
        assert!((2800..3900).contains(&low) && (2800..3900).contains(&high), "{low} {high}");
    }
}
