//! A memory controller whose clock the kernel sets: devfreq's `dmc` and `memory-controller`, on boards and phones.
//!
//! - *Waiting.* A part of each wait for memory follows the clock (transfers, queues, the controller's own pipeline); the rest is the memory
//!   array's, whose times are the same in ns at any clock (JEDEC's tRCD, tRP, tCL). At half the clock that part takes twice as long.
//! - *Load* is what the controller's counters tell the governor: the share of its cycles in which data goes over the wires. A core
//!   that waits for one address after another moves 64 bytes in each wait; one that streams keeps many on the way.
//! - *Power.* The controller and its wires draw more at a higher clock, busy or not: 0.64 W at the wall between 528 and 2112 MHz on an
//!   RK3588 (T. Kaiser, Quick Preview of ROCK 5B), 0.6 W between the lowest and the highest on an RK3399 (megi, PinePhone Pro's
//!   log, 25 May 2023), 0.08 W between 324 and 1056 MHz on an RK3566 with less memory (J. W. Pauling, March 2026).

use super::bounds::{watts, within};
use super::tables::File;

/// The memory's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryClock {
    /// Its clocks in kHz, fastest first; never empty.
    pub khz: Vec<u32>,
    /// More of the memory at the highest clock than at the lowest, in watts; between in proportion to the clock.
    pub top_w: f64,
    /// The share of a wait at the highest clock that follows the clock.
    pub follows: f64,
    /// The share of the highest clock's cycles in which data goes to a core that does nothing but wait.
    pub core_share: f64,
    /// Between two looks of the governor, in ns.
    pub poll_ns: u64,
    /// The governor in force unless told otherwise, as a policy's `+dram=` takes it.
    pub governor: String,
}

impl MemoryClock {
    /// How many times as long a wait takes at one of the clocks as at the highest.
    pub fn slowness(&self, clock: usize) -> f64 {
        1.0 - self.follows + self.follows * f64::from(self.khz[0]) / f64::from(self.khz[clock])
    }

    /// What the memory draws at one of the clocks more than at the lowest, in watts.
    pub fn watts(&self, clock: usize) -> f64 {
        let lowest = self.khz[self.khz.len() - 1];
        match self.khz[0] - lowest {
            0 => 0.0,
            range => self.top_w * f64::from(self.khz[clock] - lowest) / f64::from(range),
        }
    }

    /// The share of a clock's cycles that carried data in a period of so many ns, where cores waited for `waited_ns` in all, as
    /// long as the same waits take at the highest clock.
    pub fn load(&self, clock: usize, waited_ns: f64, period_ns: f64) -> f64 {
        let at_highest = waited_ns * self.core_share / period_ns;
        (at_highest * f64::from(self.khz[0]) / f64::from(self.khz[clock])).min(1.0)
    }
}

/// The file's.
pub(super) fn of(file: &File) -> Result<Option<MemoryClock>, String> {
    let Some(t) = &file.memory_clock else { return Ok(None) };
    let khz =
        |mhz: &f64| within("memory_clock.mhz", *mhz, 1.0, 100_000.0, "MHz").map(|m| (m * 1e3).round() as u32);
    let khz = t.mhz.iter().map(khz).collect::<Result<Vec<u32>, String>>()?;
    if khz.is_empty() || !khz.is_sorted_by(|a, b| a > b) {
        return Err("memory_clock.mhz: expected the memory's clocks, the fastest first".into());
    }
    Ok(Some(MemoryClock {
        khz,
        top_w: watts("memory_clock.watts", t.watts)?,
        follows: within("memory_clock.follows", t.follows, 0.0, 1.0, "")?,
        core_share: within("memory_clock.core_share", t.core_share, 0.0, 1.0, "")?,
        poll_ns: (within("memory_clock.poll_ms", t.poll_ms, 1.0, 1e4, "ms")? * 1e6).round() as u64,
        governor: t.governor.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> MemoryClock {
        MemoryClock {
            khz: vec![2_000_000, 1_000_000, 500_000],
            top_w: 0.6,
            follows: 0.75,
            core_share: 0.1,
            poll_ns: 50_000_000,
            governor: "simple_ondemand".into(),
        }
    }

    #[test]
    fn waits_are_longer_at_a_lower_clock() {
        let c = clock();
        assert_eq!([c.slowness(0), c.slowness(1), c.slowness(2)], [1.0, 1.75, 3.25]);
    }

    #[test]
    fn power_goes_with_the_clock() {
        let c = clock();
        let of = |i: usize| (c.watts(i) * 1e6).round() / 1e6;
        assert_eq!([of(0), of(1), of(2)], [0.6, 0.2, 0.0]);
        assert_eq!(MemoryClock { khz: vec![800_000], ..c }.watts(0), 0.0);
    }

    /// Four cores that wait all the time move 0.4 of what the highest clock can; at a quarter of it they are more than it can take.
    #[test]
    fn load_is_a_share_of_the_present_clock() {
        let c = clock();
        assert_eq!([c.load(0, 4e6, 1e6), c.load(1, 1e6, 1e6), c.load(2, 4e6, 1e6)], [0.4, 0.2, 1.0]);
    }
}
