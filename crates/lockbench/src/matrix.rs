//! Which locks are measured where, and in which order.

use crate::section::Section;
use std::time::Duration;
use wattwise_figure::Random;

/// What to run.
#[derive(Clone, Debug)]
pub struct LockMatrix {
    /// Locks, by name.
    pub locks: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Critical sections.
    pub cs: Vec<Section>,
    /// Non-critical sections.
    pub ncs: Vec<Section>,
    /// Of each measurement.
    pub time: Duration,
    /// Of the whole.
    pub repeats: usize,
    /// Of orders and lengths.
    pub seed: u64,
    /// Thread i on CPU i modulo CPUs.
    pub pin: bool,
}

/// One measurement of a repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockTurn {
    /// Threads that contend.
    pub threads: usize,
    /// Length of the critical section.
    pub cs: Section,
    /// Length of what is between two of them.
    pub ncs: Section,
    /// The lock, by its place in the matrix.
    pub lock: usize,
}

impl LockMatrix {
    /// Measurements in all.
    pub fn measurements(&self) -> usize {
        self.repeats * self.locks.len() * self.threads.len() * self.cs.len() * self.ncs.len()
    }

    /// The measurements of one repeat, in its order.
    pub fn order(&self, repeat: usize) -> Vec<LockTurn> {
        let mut random = Random::new(self.seed ^ (repeat as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut cells = Vec::new();
        for &threads in &self.threads {
            for &cs in &self.cs {
                cells.extend(self.ncs.iter().map(|&ncs| (threads, cs, ncs)));
            }
        }
        random.shuffle(&mut cells);
        let mut order = Vec::new();
        for (threads, cs, ncs) in cells {
            let mut locks: Vec<usize> = (0..self.locks.len()).collect();
            random.shuffle(&mut locks);
            order.extend(locks.into_iter().map(|lock| LockTurn { threads, cs, ncs, lock }));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locks_of_a_cell_run_side_by_side_in_changing_order() {
        let locks = ["std", "glibc", "adaptive"].map(String::from).to_vec();
        let plan = LockMatrix {
            locks,
            threads: vec![1, 2],
            cs: vec![Section::Fixed(0.0), Section::Fixed(1.0)],
            ncs: vec![Section::Fixed(0.0)],
            time: Duration::from_millis(1),
            repeats: 20,
            seed: 3,
            pin: false,
        };
        let mut firsts = [0; 3];
        for repeat in 0..plan.repeats {
            let order = plan.order(repeat);
            assert_eq!(order.len(), 12);
            for cell in order.chunks(3) {
                assert!(cell.iter().all(|c| (c.threads, c.cs) == (cell[0].threads, cell[0].cs)));
                let mut subjects: Vec<usize> = cell.iter().map(|c| c.lock).collect();
                firsts[subjects[0]] += 1;
                subjects.sort_unstable();
                assert_eq!(subjects, [0, 1, 2]);
            }
        }
        assert!(firsts.iter().all(|n| *n > 10), "{firsts:?}");
        assert_eq!(plan.order(4), plan.order(4));
    }
}
