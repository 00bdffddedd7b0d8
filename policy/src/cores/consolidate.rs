//! `consolidate`: few CPUs while that costs nobody anything, all at once when it does.
//!
//! What the others lack: they learn of a burst at their next look, up to a second later, and count a full CPU as one
//! CPU's worth of work however many tasks wait for it.
//!
//! 1. Every `period` (20 ms), the load is the CPUs' busy shares and one for each task that waits. Its average rises
//!    at once and falls by an eighth a period.
//! 2. CPUs kept: the average over `full` (60 %), rounded up: a CPU's third is head-room for bursts.
//! 3. **Guard.** When a task has waited longer than `bound` (2 ms) for a CPU, or a kept CPU was busy for the whole
//!    period while others waited, all CPUs open and stay open for `hold` (200 ms).
//! 4. Work that fills CPUs is never gathered: with a load of half the machine all CPUs are kept.

use super::{COST, CoreObservation, CorePolicy, Cores};
use crate::{Param, ParamKind};
use alloc::boxed::Box;

struct Consolidate {
    cpus: usize,
    period_ns: u64,
    cost_ns: u64,
    full_percent: u64,
    bound_ns: u64,
    hold_ns: u64,
    average_milli: u64,
    open_until_ns: u64,
}

impl CorePolicy for Consolidate {
    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self) -> usize {
        self.average_milli = self.cpus as u64 * 1000;
        self.cpus
    }

    fn observe(&mut self, obs: &CoreObservation<'_>) -> usize {
        let waiting = obs.waiting();
        let load = obs.busy_milli() + waiting * 1000;
        self.average_milli = load.max(self.average_milli - self.average_milli / 8);
        let full = waiting > 0 && obs.cpus.iter().any(|c| c.not_busy_ns() == 0 && c.busy_ns > 0);
        if full || obs.worst_wait_ns > self.bound_ns {
            self.open_until_ns = obs.now_ns + self.hold_ns;
        }
        if obs.now_ns < self.open_until_ns || self.average_milli * 2 >= self.cpus as u64 * 1000 {
            return self.cpus;
        }
        let needed = (self.average_milli * 100).div_ceil(self.full_percent * 1000);
        (needed as usize).clamp(1, self.cpus)
    }
}

pub(super) static CONSOLIDATE: Cores = Cores {
    name: "consolidate",
    summary: "few CPUs with head-room, all at once when a task waits too long",
    source: include_str!("consolidate.rs"),
    params: &[
        Param {
            name: "period",
            help: "time between two looks",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 20.0 },
        },
        Param {
            name: "full",
            help: "busy share at which a CPU counts as full",
            kind: ParamKind::Number { unit: "%", min: 10.0, max: 100.0, default: 60.0 },
        },
        Param {
            name: "bound",
            help: "longest wait for a CPU that is tolerated",
            kind: ParamKind::Number { unit: "us", min: 0.0, max: 1e6, default: 2000.0 },
        },
        Param {
            name: "hold",
            help: "how long all CPUs stay open after that",
            kind: ParamKind::Number { unit: "ms", min: 0.0, max: 60_000.0, default: 200.0 },
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Consolidate {
            cpus,
            period_ns: s.ms("period"),
            cost_ns: s.us("cost"),
            full_percent: s.count("full"),
            bound_ns: s.us("bound"),
            hold_ns: s.ms("hold"),
            average_milli: 0,
            open_until_ns: 0,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::see;
    use super::*;
    use crate::{MS, Settings};

    fn settled() -> Box<dyn CorePolicy> {
        let mut p = (CONSOLIDATE.build)(4, &Settings::defaults(CONSOLIDATE.params));
        p.start();
        for i in 0..60 {
            see(&mut *p, i * 20 * MS, &[20, 0, 0, 0], 0, 0);
        }
        p
    }

    #[test]
    fn a_burst_opens_everything_in_one_period_and_it_closes_again() {
        let mut p = settled();
        assert_eq!(see(&mut *p, 2000 * MS, &[20, 0, 0, 0], 0, 0), 1);
        assert_eq!(see(&mut *p, 2020 * MS, &[100, 0, 0, 0], 3, 0), 4);
        // Held open although the load is gone, then let go.
        assert_eq!(see(&mut *p, 2100 * MS, &[5, 0, 0, 0], 0, 0), 4);
        let late = (0..40).map(|i| see(&mut *p, (2240 + i * 20) * MS, &[5, 0, 0, 0], 0, 0)).last();
        assert_eq!(late, Some(1));
    }

    #[test]
    fn a_long_wait_opens_everything_whatever_the_load() {
        let mut p = settled();
        assert_eq!(see(&mut *p, 2000 * MS, &[20, 0, 0, 0], 0, 2 * MS), 1);
        assert_eq!(see(&mut *p, 2020 * MS, &[20, 0, 0, 0], 0, 2 * MS + 1), 4);
    }

    #[test]
    fn work_that_fills_half_the_machine_is_never_gathered() {
        let mut p = settled();
        assert_eq!(see(&mut *p, 2000 * MS, &[90, 60, 40, 15], 0, 0), 4);
    }
}
