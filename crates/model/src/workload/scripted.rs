//! What a workload file knows of how its work's time comes about, and one draw within it.
//!
//! A scripted run is so long at the reference clock. How long it is at another hangs on two things that the script's author
//! seldom measured: how much of it waits for memory, which no clock shortens, and how many instructions this machine gets done
//! in a cycle of the rest. Both are drawn once for a replica, for all policies alike, so that the cost of a lower clock has an
//! interval of its own.
//!
//! | known | memory-bound share | instructions per cycle, over the file's |
//! |---|---|---|
//! | nothing | evenly up to [`MOST_MEMORY`], each program [`PROGRAM_DEVIATION`] about it, as for recordings | a guess about 1 |
//! | a guess | a guess about it | |
//! | an interval | evenly within it | evenly within it |
//!
//! A guess is off by a log-normal factor, as in machine files ([`Spread::Guess`]). The nominal model has the middle of each.

use super::{Program, Task, Workload};
use crate::machine::figures::Spread;
use wattwise_figure::Random;

/// The memory-bound share that nobody knows is drawn up to here.
pub const MOST_MEMORY: f64 = 0.4;
/// How far a program's share may lie from the whole work's.
pub const PROGRAM_DEVIATION: f64 = 0.1;

/// What is known of a figure of scripted work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// A value that somebody guessed.
    Guess(f64),
    /// The ends between which it lies.
    Between(f64, f64),
}

/// What a workload file says of how its work's time comes about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scripted {
    /// The share of run time at the reference clock that no clock shortens, 0 to 1.
    pub memory: Known,
    /// This machine's instructions per cycle over those that the run times are for.
    pub ipc: Known,
}

/// A figure of the work that is not certain: 19 of 20 draws lie between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// In the nominal model.
    pub nominal: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
}

impl Scripted {
    /// The memory-bound share of the programs as the file has them, before any draw: none where nothing is known.
    pub fn written_share(&self) -> f64 {
        if self.memory == Known::Nothing { 0.0 } else { self.memory_at(0.5) }
    }

    /// The memory-bound share below which a share `p` of the draws lies.
    pub fn memory_at(&self, p: f64) -> f64 {
        match self.memory {
            Known::Nothing => MOST_MEMORY * p,
            Known::Guess(share) => (share * guess(p)).min(1.0),
            Known::Between(low, high) => low + (high - low) * p,
        }
    }

    /// The factor of the instructions per cycle below which a share `p` of the draws lies.
    pub fn ipc_at(&self, p: f64) -> f64 {
        match self.ipc {
            Known::Nothing => guess(p),
            Known::Guess(factor) => factor * guess(p),
            Known::Between(low, high) => low + (high - low) * p,
        }
    }

    /// How far the memory-bound share may be off; `None` where it is certain.
    pub fn memory_ends(&self) -> Option<Ends> {
        ends(|p| self.memory_at(p), self.memory)
    }

    /// How far the instructions per cycle may be off; `None` where they are certain.
    pub fn ipc_ends(&self) -> Option<Ends> {
        ends(|p| self.ipc_at(p), self.ipc)
    }
}

/// A guess's factor at a share of its draws.
fn guess(p: f64) -> f64 {
    Spread::Guess.factor(if p == 0.5 { 0.0 } else { Spread::Guess.score(p) })
}

fn ends(at: impl Fn(f64) -> f64, known: Known) -> Option<Ends> {
    // Of an even interval the ends themselves are what people know.
    let (low, high) =
        if matches!(known, Known::Between(..)) || at(0.0) == 0.0 { (0.0, 1.0) } else { (0.025, 0.975) };
    let ends = Ends { nominal: at(0.5), low: at(low), high: at(high) };
    (ends.low < ends.high).then_some(ends)
}

/// A memory-bound share for each task about that of the whole work, the same for all tasks of a program. At its middle,
/// `nominal`, no program deviates.
pub fn shares(workload: &Workload, all: f64, nominal: bool) -> Vec<f64> {
    let share = |task: &Task| {
        let name = match task.program {
            // Copies of a scripted task are one program.
            Program::Pattern(_) => task.name.split('/').next().unwrap_or_default(),
            Program::Recorded(_) => &task.name,
        };
        // A name's deviation hangs on the name and the draw, not on who comes first.
        let seed = name.bytes().fold(all.to_bits(), |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let deviation = if nominal { 0.0 } else { Random::new(seed).unit() * 2.0 - 1.0 };
        (all + PROGRAM_DEVIATION * deviation).clamp(0.0, 1.0)
    };
    workload.tasks.iter().map(share).collect()
}

impl Workload {
    /// Gives the tasks of scripted work the memory-bound share at which a share `p` of the draws is lower.
    pub fn share_memory(&mut self, p: f64) {
        let Some(scripted) = self.scripted else { return };
        let all = scripted.memory_at(p);
        let shares = match scripted.memory {
            Known::Nothing => shares(self, all, p == 0.5),
            _ => vec![all; self.tasks.len()],
        };
        for (task, share) in self.tasks.iter_mut().zip(shares) {
            if let Program::Pattern(pattern) = &mut task.program {
                pattern.memory_share = share;
            }
        }
    }
}
