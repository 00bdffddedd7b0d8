//! `dragonfly`: DragonFly BSD's powerd, two averages and a hysteresis.
//!
//! It follows DragonFly BSD, `usr.sbin/powerd/powerd.c`; which release was read was not noted. Once a second it looks at q, the CPUs' worth of work done.
//!
//! 1. fast = (2·fast + q) / 3; slow = (8·slow + q) / 9, and never less than fast.
//! 2. Of each, a number of CPUs: the average over `up` = 0.25 of a CPU; where that is below the present number,
//!    the average over `down` = 0.225, a tenth less, so that a load at a boundary does not flap.
//! 3. CPUs kept: the greater of the two, at least 1.
//!
//! A quarter of a CPU's work calls for a CPU: much head-room, since the kept ones run at the highest speed and
//! the others at the lowest.
//!
//! Left out: its speeds (the kept CPUs at the highest, the others at the lowest: pair it with a speed policy),
//! the battery's rules and the backlight.

use super::{COST, CoreObservation, CorePolicy, Cores};
use crate::{Param, ParamKind};
use alloc::boxed::Box;

struct Dragonfly {
    cpus: usize,
    period_ns: u64,
    cost_ns: u64,
    up_milli: u64,
    fast: u64,
    slow: u64,
    kept: usize,
}

impl Dragonfly {
    fn needed(&self, average: u64) -> u64 {
        let up = average / self.up_milli;
        if up < self.kept as u64 { average * 10 / (self.up_milli * 9) } else { up }
    }
}

impl CorePolicy for Dragonfly {
    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self) -> usize {
        self.kept = self.cpus;
        self.cpus
    }

    fn observe(&mut self, obs: &CoreObservation<'_>) -> usize {
        let q = obs.busy_milli();
        self.fast = (2 * self.fast + q) / 3;
        self.slow = ((8 * self.slow + q) / 9).max(self.fast);
        let needed = self.needed(self.fast).max(self.needed(self.slow));
        self.kept = (needed as usize).clamp(1, self.cpus);
        self.kept
    }
}

pub(super) static DRAGONFLY: Cores = Cores {
    name: "dragonfly",
    summary: "two averages of the load, a CPU for each quarter of a CPU's work (DragonFly powerd)",
    follows: "DragonFly BSD, usr.sbin/powerd/powerd.c (release not noted)",
    source: include_str!("dragonfly.rs"),
    params: &[
        Param {
            name: "poll",
            help: "time between two looks at the load",
            kind: ParamKind::Number { unit: "ms", min: 10.0, max: 60_000.0, default: 1000.0 },
        },
        Param {
            name: "up",
            help: "work that calls for a CPU, of one CPU's",
            kind: ParamKind::Number { unit: "%", min: 1.0, max: 100.0, default: 25.0 },
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Dragonfly {
            cpus,
            period_ns: s.ms("poll"),
            cost_ns: s.us("cost"),
            up_milli: s.count("up") * 10,
            fast: 0,
            slow: 0,
            kept: cpus,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::see;
    use super::*;
    use crate::Settings;

    #[test]
    fn averages_by_hand() {
        let mut p = (DRAGONFLY.build)(4, &Settings::defaults(DRAGONFLY.params));
        p.start();
        // q = 1000: fast 333, slow max(111, 333) = 333: over 0.225 one CPU; then fast 555, slow 555 (2), 703 (2 up).
        let kept: [usize; 5] = core::array::from_fn(|i| see(&mut *p, i as u64, &[100, 0, 0, 0], 0, 0));
        assert_eq!(kept, [1, 2, 2, 3, 3]);
        // Idle again: the slow average lets go last.
        let kept: [usize; 24] = core::array::from_fn(|i| see(&mut *p, 5 + i as u64, &[0, 0, 0, 0], 0, 0));
        assert!(kept[0] == 3 && kept[23] == 1 && kept.is_sorted_by(|a, b| a >= b), "{kept:?}");
    }
}
