//! The same work under every policy: a workload made ready to be compared.
//!
//! A generated task that ends at a time would do more rounds under a policy that lets it go faster. Here each one's rounds
//! are fixed before any policy runs: as many as it would begin in that time alone, on a CPU at the reference clock.
//! Background goes on instead.
//!
//! A replica is the same work with other draws: replica 0 has the file's own seeds.

use super::pattern::PatternCursor;
use super::{Op, Pattern, Program, Role, Step, Workload};

/// Steps of all tasks whose work ends; more are a slip of the pen, or hostile.
const MOST_STEPS: u64 = 20_000_000;

/// Generated tasks have too many steps before their end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "task '{task}': more than {MOST_STEPS} steps in all with those before it; expected fewer tasks or rounds, a shorter time or longer steps"
)]
pub struct TooManyRounds {
    /// Its name.
    pub task: String,
}

/// A pattern gone through alone, at its reference clock.
struct Alone<'a> {
    pattern: &'a Pattern,
    cursor: PatternCursor,
    jobs: Vec<u64>,
    now: u64,
}

impl<'a> Alone<'a> {
    fn new(pattern: &'a Pattern, jobs: &[u64]) -> Alone<'a> {
        Alone { pattern, cursor: PatternCursor::new(pattern), jobs: jobs.to_vec(), now: 0 }
    }

    /// Takes a step, with its time; `None` at the end.
    fn step(&mut self) -> Option<Op> {
        let op = self.cursor.next(self.now, &mut self.jobs)?;
        let later = match op {
            Op::Run { cycles, stall_ns } => {
                let ns = u128::from(cycles) * 1_000_000 / u128::from(self.pattern.reference_khz.max(1));
                u64::try_from(ns).unwrap_or(u64::MAX).saturating_add(stall_ns)
            }
            Op::SleepFor(ns) | Op::Io(ns) => ns,
            Op::SleepUntil(at) => at.saturating_sub(self.now),
            _ => 0,
        };
        self.now = self.now.saturating_add(later);
        Some(op)
    }

    /// Rounds until the pattern's end, if there are no more steps than `left`, of which they are taken.
    fn rounds(mut self, left: &mut u64) -> Option<u64> {
        while *left > 0 {
            *left -= 1;
            if self.step().is_none() {
                return Some(self.pattern.rounds - self.cursor.rounds_left());
            }
        }
        None
    }

    /// When it first computes, if it does so before it waits for another task.
    fn first_run(mut self) -> Option<u64> {
        loop {
            let began = self.now;
            match self.step()? {
                Op::Run { .. } => return Some(began),
                Op::SleepFor(_) | Op::SleepUntil(_) | Op::Io(_) => {}
                _ => return None,
            }
        }
    }
}

impl Workload {
    /// Replica number `replica` of this work, the same under every policy.
    ///
    /// # Errors
    /// When a task's rounds are too many to be counted.
    pub fn replica(&self, replica: u64) -> Result<Workload, TooManyRounds> {
        let mut work = self.clone();
        let mut left = MOST_STEPS;
        for task in &mut work.tasks {
            let Program::Pattern(pattern) = &mut task.program else { continue };
            if replica > 0 {
                // Golden ratio: replicas' seeds lie far apart, and no two tasks meet.
                pattern.seed = (pattern.seed ^ replica.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
            }
            if task.role == Role::Background {
                (pattern.rounds, pattern.until_ns) = (u64::MAX, u64::MAX);
                continue;
            }
            let takes = pattern.steps.iter().any(|s| matches!(s, Step::Take(_)));
            let too_many = || TooManyRounds { task: task.name.clone() };
            if pattern.until_ns != u64::MAX {
                if !takes {
                    pattern.rounds =
                        Alone::new(pattern, &self.jobs).rounds(&mut left).ok_or_else(too_many)?;
                }
                pattern.until_ns = u64::MAX;
            } else if !takes && pattern.rounds != u64::MAX {
                let steps = pattern.rounds.saturating_mul(pattern.steps.len() as u64);
                left = left.checked_sub(steps).ok_or_else(too_many)?;
            }
        }
        work.release_ns = work.release();
        Ok(work)
    }

    /// When the foreground is first let go. Interactive work is looked at from the start.
    fn release(&self) -> u64 {
        if self.recorded.is_some() {
            return self.release_ns;
        }
        if self.is_interactive() {
            return 0;
        }
        let first = |t: &super::Task| match &t.program {
            Program::Pattern(p) if t.is_foreground() => Alone::new(p, &self.jobs).first_run(),
            _ => None,
        };
        self.tasks.iter().filter_map(first).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::{Program, file};

    fn rounds(text: &str) -> Vec<u64> {
        let work = file::parse(&format!("name = 'x'\nsummary = 'y'\n{text}"), "x.toml").expect("sound");
        let of = |t: &crate::workload::Task| match &t.program {
            Program::Pattern(p) => p.rounds,
            Program::Recorded(_) => 0,
        };
        work.replica(0).expect("finite").tasks.iter().map(of).collect()
    }

    #[test]
    fn rounds_are_those_begun_alone_at_the_reference_clock() {
        // 3 ms a round at 3 GHz: rounds begin at 0, 3, 6 and 9 ms.
        let text = "[[task]]\nname='a'\nuntil_s=0.01\nsteps=[{run_us=1000},{sleep_us=2000}]\n";
        assert_eq!(rounds(text), [4]);
        // Periods of 2 ms: the first round sleeps to 2 ms; the last begins at 8 ms and sleeps to 10 ms.
        let text = "[[task]]\nname='a'\nuntil_s=0.01\nsteps=[{period_us=2000},{run_us=100}]\n";
        assert_eq!(rounds(text), [5]);
        let text = "[[task]]\nname='a'\nuntil_s=0.01\nrole='background'\nsteps=[{period_us=2000},{run_us=100}]\n\
                    [[task]]\nname='b'\nrounds=1\nsteps=[{run_us=1}]\n";
        assert_eq!(rounds(text), [u64::MAX, 1]);
    }

    #[test]
    fn the_release_is_the_first_run_of_the_foreground() {
        let text = "name='x'\nsummary='y'\n[[task]]\nname='b'\nrole='background'\nsteps=[{run_us=1},{sleep_us=1}]\n\
                    [[task]]\nname='a'\nrounds=1\nstart_us=500\nsteps=[{sleep_us=200},{run_us=1}]\n";
        let work = file::parse(text, "x.toml").expect("sound").replica(0).expect("finite");
        assert_eq!(work.release_ns, 700_000);
    }

    #[test]
    fn a_hostile_number_of_rounds_is_refused() {
        let text = "name='x'\nsummary='y'\n[[task]]\nname='a'\nuntil_s=1e7\nsteps=[{run_us=0.001}]\n";
        let work = file::parse(text, "x.toml").expect("sound");
        assert!(work.replica(0).expect_err("endless").to_string().contains("task 'a'"));
    }
}
