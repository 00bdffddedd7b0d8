//! `lpmd`: intel-lpmd, a few CPUs while the system is nearly idle, else all.
//!
//! It follows intel/intel-lpmd, its mode by utilisation; which release was read was not noted.
//!
//! Low power is entered when the whole system's use is at most `enter` (10 %) and the busiest CPU's at most
//! `busiest` (95 %); all CPUs are opened when either is passed. It looks every 100 ms while busy and every
//! 1000 ms while idle; between them the pace follows the use.
//!
//! As published, the system's use was computed from the last CPU's line of `/proc/stat` alone. Here it is the mean
//! of all.
//!
//! Left out: the hints of the hardware (HFI, workload type), the choice of the CPUs that are kept by kind of
//! core, and the waits before it enters or leaves.

use super::{COST, CoreObservation, CorePolicy, Cores};
use crate::{Param, ParamKind};
use alloc::boxed::Box;

struct Lpmd {
    cpus: usize,
    low: usize,
    enter_milli: u64,
    busiest_milli: u64,
    period_ns: u64,
    cost_ns: u64,
}

impl CorePolicy for Lpmd {
    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self) -> usize {
        self.cpus
    }

    fn observe(&mut self, obs: &CoreObservation<'_>) -> usize {
        let system = obs.busy_milli() / self.cpus as u64;
        let busiest = obs.cpus.iter().map(|c| c.busy_of(1000)).max().unwrap_or(0);
        // From 1000 ms at rest down to 100 ms at full use.
        self.period_ns = (1000 - 900 * system.min(1000) / 1000) * crate::MS;
        if system <= self.enter_milli && busiest <= self.busiest_milli { self.low } else { self.cpus }
    }
}

pub(super) static LPMD: Cores = Cores {
    name: "lpmd",
    summary: "a few CPUs while the system is nearly idle, else all (intel-lpmd)",
    follows: "intel/intel-lpmd, utilisation mode (release not noted)",
    source: include_str!("lpmd.rs"),
    params: &[
        Param {
            name: "low",
            help: "CPUs kept while nearly idle",
            kind: ParamKind::Number { unit: "", min: 1.0, max: 4096.0, default: 2.0 },
        },
        Param {
            name: "enter",
            help: "greatest use of the whole system",
            kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default: 10.0 },
        },
        Param {
            name: "busiest",
            help: "greatest use of any one CPU",
            kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default: 95.0 },
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Lpmd {
            cpus,
            low: (s.count("low") as usize).clamp(1, cpus),
            enter_milli: s.count("enter") * 10,
            busiest_milli: s.count("busiest") * 10,
            period_ns: 1000 * crate::MS,
            cost_ns: s.us("cost"),
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::see;
    use super::*;
    use crate::{MS, Settings};

    #[test]
    fn each_cpu_alone_at_full_use_is_seen() {
        for cpu in 0..4 {
            let mut p = (LPMD.build)(4, &Settings::defaults(LPMD.params));
            p.start();
            let mut busy = [0; 4];
            assert_eq!(see(&mut *p, 0, &busy, 0, 0), 2);
            busy[cpu] = 100;
            assert_eq!(see(&mut *p, 1, &busy, 0, 0), 4, "CPU {cpu}");
            assert_eq!(p.period_ns(), 775 * MS);
        }
    }
}
