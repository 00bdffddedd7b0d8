//! What the policies that poll from user space share: their cost, and how many CPUs become one load.

use crate::{CpuSample, Param, ParamKind, PowerSource};

/// CPU time of one poll by a user-space process, in us.
///
/// Measured: reading /proc/stat, deciding, sleeping. Six rounds of 500 polls, each a 10 ms sleep, a
/// read and parse of /proc/stat and a read of /proc/loadavg, by getrusage, on a 2-CPU cloud VM with
/// Linux 6.18 that had other work: 30 to 46 us a poll, 38.6 us on average, rounded here. Over half of it is the sleep and the wake-up
/// (20 to 26 us alone), so it depends little on how much a daemon reads.
pub(super) const DAEMON_POLL_COST_US: f64 = 40.0;

/// The `cost` parameter, with a default in us.
pub(crate) const fn cost(default: f64) -> Param {
    Param {
        name: crate::params::COST,
        help: "CPU time of one decision at the highest speed",
        kind: ParamKind::Number { unit: "us", min: 0.0, max: 10_000.0, default },
    }
}

/// The `poll` parameter, with a default in ms.
pub(super) const fn poll(default: f64) -> Param {
    Param {
        name: "poll",
        help: "time between two looks at the load",
        kind: ParamKind::Number { unit: "ms", min: 1.0, max: 60_000.0, default },
    }
}

/// The `load` parameter: how the CPUs' loads become one number.
pub(super) const LOAD: Param = Param {
    name: "load",
    help: "one load from many CPUs: their sum (as FreeBSD does), the busiest, or the mean",
    kind: ParamKind::Choice(&["sum", "max", "mean"]),
};

/// A percentage from 0 to 100.
pub(super) const fn percent(name: &'static str, help: &'static str, default: f64) -> Param {
    Param { name, help, kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default } }
}

/// How the loads of several CPUs become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// Added up: 0 to 100 x CPUs. A uniform background grows with the machine.
    Sum,
    /// That of the busiest CPU.
    Max,
    /// The average, rounded down.
    Mean,
}

impl Fold {
    /// From the index of [`LOAD`]'s choice.
    pub(super) fn from_choice(index: u64) -> Fold {
        match index {
            0 => Fold::Sum,
            1 => Fold::Max,
            _ => Fold::Mean,
        }
    }

    /// One load in percent out of all CPUs' samples.
    pub(super) fn load(self, cpus: &[CpuSample]) -> u64 {
        let each = cpus.iter().map(cpu_percent);
        match self {
            Fold::Sum => each.sum(),
            Fold::Max => each.max().unwrap_or(0),
            Fold::Mean => each.sum::<u64>() / (cpus.len() as u64).max(1),
        }
    }
}

/// Load of one CPU as the daemons compute it, `100 - 100*idle/total`: the idle share is rounded
/// down and so the load up, which matters at the thresholds. A CPU without a sample has none.
pub(super) fn cpu_percent(sample: &CpuSample) -> u64 {
    match sample.total_ns() {
        0 => 0,
        total => 100 - share(sample.not_busy_ns(), 100, total),
    }
}

/// `scale * part / whole`, rounded down, without overflow; `part` is at most `whole`.
pub(super) fn share(part: u64, scale: u64, whole: u64) -> u64 {
    match part.checked_mul(scale) {
        // The usual case stays in 64 bits: a 128-bit division is a call of some 30 ns.
        Some(product) => product / whole.max(1),
        None => (u128::from(part) * u128::from(scale) / u128::from(whole.max(1))) as u64,
    }
}

/// True when a discharging battery pays. Unknown counts as mains, as in all of these daemons.
pub(super) fn on_battery(source: PowerSource) -> bool {
    source == PowerSource::Battery
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(busy_ns: u64, idle_ns: u64) -> CpuSample {
        CpuSample { busy_ns, idle_ns, ..CpuSample::default() }
    }

    #[test]
    fn folds_differ() {
        let cpus = [sample(5, 95), sample(80, 20), sample(0, 0)];
        assert_eq!(Fold::Sum.load(&cpus), 85);
        assert_eq!(Fold::Max.load(&cpus), 80);
        assert_eq!(Fold::Mean.load(&cpus), 28);
        assert_eq!(Fold::Mean.load(&[]), 0);
    }

    #[test]
    fn load_is_rounded_up_and_never_overflows() {
        assert_eq!(cpu_percent(&sample(1, 999)), 1, "idle 99.9 % is 99 %, so the load is 1 %");
        assert_eq!(cpu_percent(&sample(u64::MAX, u64::MAX)), 0, "clipped to all idle");
        assert_eq!(cpu_percent(&CpuSample { iowait_ns: 7, ..sample(0, 0) }), 0, "waiting for I/O is idle");
    }
}
