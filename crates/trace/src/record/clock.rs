//! The clock, measured by a timed loop: for machines without cycle counters, such as most guests.
//!
//! A chain of additions, each of which needs the one before, takes a cycle each on every processor of
//! the last decades. (Of registers: Golden Cove and its successors do additions of *constants* in no time
//! at all.) Interrupts and stolen time only ever make it slower, so the fastest of a few short pieces
//! counts. Each look takes some 20 us; one is taken in each round of the recorder (ten a second, 0.02 %
//! of one CPU), on the CPU where the recorder happens to be, so that the mean is of the clock in force
//! while the recorded work ran.

use std::time::Instant;

/// Additions in one pass of the loop.
const CHAIN: u64 = 64;
/// Passes in a piece: 12 800 cycles, 4 us at 3 GHz.
const PASSES: u64 = 200;
/// Pieces in a look.
const PIECES: usize = 5;
/// What no processor has; such a figure is an error of the measurement.
const SOUND_KHZ: std::ops::Range<f64> = 50_000.0..10_000_000.0;

/// A chain of `CHAIN * passes` dependent additions. `None`: not written for this processor.
#[cfg(target_arch = "x86_64")]
fn chain(passes: u64) -> Option<()> {
    // SAFETY: only registers that the compiler knows of are written; no memory, no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {step}",
            ".endr",
            "dec {left}",
            "jnz 2b",
            sum = inout(reg) 0u64 => _,
            step = in(reg) 1u64,
            left = inout(reg) passes.max(1) => _,
            options(nomem, nostack),
        );
    }
    Some(())
}

#[cfg(target_arch = "aarch64")]
fn chain(passes: u64) -> Option<()> {
    // SAFETY: only registers that the compiler knows of are written; no memory, no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            sum = inout(reg) 0u64 => _,
            step = in(reg) 1u64,
            left = inout(reg) passes.max(1) => _,
            options(nomem, nostack),
        );
    }
    Some(())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain(_: u64) -> Option<()> {
    None
}

/// Looks taken while a recording is made.
#[derive(Debug, Default)]
pub(super) struct ClockLooks {
    sum_khz: f64,
    looks: u32,
}

impl ClockLooks {
    /// Takes a look at the clock of the CPU that this thread is on.
    pub(super) fn look(&mut self) {
        let mut best = 0.0f64;
        for _ in 0..PIECES {
            let start = Instant::now();
            if chain(PASSES).is_none() {
                return;
            }
            let ns = start.elapsed().as_nanos() as f64;
            best = best.max((CHAIN * PASSES) as f64 * 1e6 / ns.max(1.0));
        }
        if SOUND_KHZ.contains(&best) {
            self.sum_khz += best;
            self.looks += 1;
        }
    }

    /// Their mean in kHz.
    pub(super) fn khz(&self) -> Option<u32> {
        (self.looks > 0).then(|| (self.sum_khz / f64::from(self.looks)).round() as u32)
    }
}

/// The clock of each of these CPUs right now, in kHz, as far as cpufreq tells it.
pub(super) fn scaling(cpus: &[u32]) -> Vec<(u16, u32)> {
    let khz = |cpu: &u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let khz = std::fs::read_to_string(path).ok()?.trim().parse().ok().filter(|khz| *khz > 0)?;
        Some((u16::try_from(*cpu).ok()?, khz))
    };
    cpus.iter().filter_map(khz).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_finds_the_clock_of_this_machine() {
        let mut looks = ClockLooks::default();
        (0..20).for_each(|_| looks.look());
        let Some(khz) = looks.khz() else {
            println!("skipped: no loop for this processor");
            return;
        };
        assert!((300_000..7_000_000).contains(&khz), "{khz}");
    }
}
