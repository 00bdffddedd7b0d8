//! `coreidle-ondemand` and `coreidle-userspace`: as many CPUs as the load needs, whole cores first.
//!
//! It follows the COREIDLE study (002). A mask tells the scheduler which CPUs to leave idle; a governor sets the mask.
//!
//! `coreidle-ondemand`, every `period` (250 ms in the study):
//!
//! 1. The load is the CPUs' busy shares together and one more for each task that waits behind another: a kept
//!    CPU that is full shows by its queue, not by its busy share, that another is needed.
//! 2. A moving average of it: `(memory · average + load) / (memory + 1)`. The study says that there is one and
//!    not its length; 2 is ours. A load above the average counts at once, so that work is not held back.
//! 3. CPUs kept: the average over `full` (80 %), rounded up (`round=nearest`: to the nearest), never none.
//!
//! `coreidle-userspace` keeps what the user says.
//!
//! Left out: groups of CPUs other than cores and packages. How long the average is, and what a full CPU is,
//! the study does not say. That rounding to the nearest keeps one CPU for a pair of tasks that alternate, as the study's table
//! of tbench has it, was found from that table.

use super::{COST, CoreObservation, CorePolicy, Cores};
use crate::{Param, ParamKind, Settings};
use alloc::boxed::Box;

struct Ondemand {
    cpus: usize,
    period_ns: u64,
    cost_ns: u64,
    memory: u64,
    full_percent: u64,
    nearest: bool,
    average_milli: u64,
}

impl CorePolicy for Ondemand {
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
        let load = obs.busy_milli() + obs.waiting() * 1000;
        self.average_milli = load.max((self.memory * self.average_milli + load) / (self.memory + 1));
        let (load, full) = (self.average_milli * 100, self.full_percent * 1000);
        let needed = if self.nearest { (load + full / 2) / full } else { load.div_ceil(full) };
        (needed as usize).clamp(1, self.cpus)
    }
}

pub(super) static ONDEMAND: Cores = Cores {
    name: "coreidle-ondemand",
    summary: "as many CPUs as the moving average of the load needs (COREIDLE)",
    follows: "the COREIDLE study",
    source: include_str!("coreidle.rs"),
    params: &[
        Param {
            name: "period",
            help: "time between two looks at the load",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 60_000.0, default: 250.0 },
        },
        Param {
            name: "memory",
            help: "weight of the average against the newest load",
            kind: ParamKind::Number { unit: "", min: 0.0, max: 1000.0, default: 2.0 },
        },
        Param {
            name: "full",
            help: "busy share at which a CPU counts as full",
            kind: ParamKind::Number { unit: "%", min: 10.0, max: 100.0, default: 80.0 },
        },
        Param {
            name: "round",
            help: "whether a started CPU is kept, or only a half-used one",
            kind: ParamKind::Choice(&["up", "nearest"]),
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Ondemand {
            cpus,
            period_ns: s.ms("period").max(1),
            cost_ns: s.us("cost"),
            memory: s.count("memory"),
            full_percent: s.count("full"),
            nearest: s.count("round") == 1,
            average_milli: 0,
        })
    },
};

struct Userspace {
    keep: usize,
}

impl CorePolicy for Userspace {
    fn period_ns(&self) -> u64 {
        // Nothing is ever decided.
        3_600_000 * crate::MS
    }

    fn cost_ns(&self) -> u64 {
        0
    }

    fn start(&mut self) -> usize {
        self.keep
    }

    fn observe(&mut self, _: &CoreObservation<'_>) -> usize {
        self.keep
    }
}

pub(super) static USERSPACE: Cores = Cores {
    name: "coreidle-userspace",
    summary: "keeps so many CPUs, as the user says",
    follows: "the COREIDLE study",
    source: include_str!("coreidle.rs"),
    params: &[Param {
        name: "keep",
        help: "CPUs kept, whole cores first",
        kind: ParamKind::Number { unit: "", min: 1.0, max: 4096.0, default: 1.0 },
    }],
    build: |cpus, s: &Settings| Box::new(Userspace { keep: (s.count("keep") as usize).clamp(1, cpus) }),
};

#[cfg(test)]
mod tests {
    use super::super::testing::see;
    use super::*;

    fn ondemand(spec: &str) -> Box<dyn CorePolicy> {
        let mut policy = (ONDEMAND.build)(4, &Settings::parse(ONDEMAND.params, spec).expect("parses"));
        policy.start();
        policy
    }

    #[test]
    fn light_load_is_gathered_and_work_opens_cpus_at_once() {
        let mut p = ondemand("");
        let kept: [usize; 8] =
            core::array::from_fn(|i| see(&mut *p, i as u64 * 250_000_000, &[8, 8, 7, 7], 0, 0));
        assert_eq!((kept[0], kept[7]), (4, 1), "{kept:?}");
        assert!(kept.is_sorted_by(|a, b| a >= b), "{kept:?}");
        // Full, with three tasks that wait behind: all CPUs in the next period.
        assert_eq!(see(&mut *p, 3_000_000_000, &[100, 0, 0, 0], 3, 0), 4);
    }

    #[test]
    fn a_cpu_above_its_full_share_calls_for_another() {
        let mut p = ondemand("memory=0");
        assert_eq!(see(&mut *p, 0, &[79, 0, 0, 0], 0, 0), 1);
        assert_eq!(see(&mut *p, 1, &[81, 0, 0, 0], 0, 0), 2);
        assert_eq!(see(&mut *p, 2, &[89, 25, 5, 1], 0, 0), 2);
        let mut p = ondemand("memory=0,full=100,round=nearest");
        assert_eq!(see(&mut *p, 0, &[74, 74, 0, 0], 0, 0), 1);
        assert_eq!(see(&mut *p, 1, &[76, 76, 0, 0], 0, 0), 2);
    }
}
