//! The clock of a CPU: by its registers, else as the kernel shows it.

use wattwise_hw::msr::counters::{APERF, MPERF, TSC};
use wattwise_hw::root::{Access, Root, number};

/// The mean clock of a busy CPU, in kHz, by [`cycles`] before and after so many seconds; the TSC ticks as MPERF does.
pub(crate) fn mean_khz(before: [u64; 3], after: [u64; 3], seconds: f64) -> Option<f64> {
    let delta = |at: usize| after[at].wrapping_sub(before[at]) as f64;
    let (tsc, mperf, aperf) = (delta(0), delta(1), delta(2));
    (mperf > 0.0 && tsc > 0.0).then(|| aperf / mperf * tsc / seconds * 1e-3)
}

/// TSC, MPERF and APERF of a CPU, by its registers.
pub(crate) fn cycles(root: &dyn Root, cpu: u32) -> Option<[u64; 3]> {
    read_registers(root, cpu, &[TSC, MPERF, APERF].map(u64::from))?.try_into().ok()
}

/// The clock that the kernel shows of a CPU, in kHz.
pub(crate) fn shown_khz(root: &dyn Root, cpu: u32) -> Option<f64> {
    number(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
}

/// Registers of a CPU, by address; none where one of them cannot be read.
pub(crate) fn read_registers(root: &dyn Root, cpu: u32, addresses: &[u64]) -> Option<Vec<u64>> {
    let mut node = root.open(&format!("dev/cpu/{cpu}/msr"), Access::Read).ok()?;
    let mut value = [0; 8];
    let mut read = |address: &u64| {
        let n = node.read_at(*address, &mut value).ok()?;
        (n == 8).then(|| u64::from_le_bytes(value))
    };
    addresses.iter().map(&mut read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU that is busy half of the time, at 1.5 times the TSC's 2 GHz; a counter may pass its end in between.
    #[test]
    fn a_mean_clock_is_of_the_time_at_work() {
        let before: [u64; 3] = [u64::MAX - 10, 5, u64::MAX - 1_000_000_000];
        let passed = [2_000_000_000, 1_000_000_000, 1_500_000_000];
        let after = std::array::from_fn(|at| before[at].wrapping_add(passed[at]));
        let khz = mean_khz(before, after, 1.0);
        assert!(khz.is_some_and(|khz| (khz - 3_000_000.0).abs() < 1.0), "{khz:?}");
        assert_eq!(mean_khz(before, before, 1.0), None);
    }
}
