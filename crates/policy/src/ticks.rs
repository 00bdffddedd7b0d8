//! A policy as a program sees the machine that it runs on.
//!
//! The kernel keeps CPU time to the nanosecond and shows it to programs in whole ticks of 10 ms (`/proc/stat`; `USER_HZ` is 100
//! on every architecture). A policy that a program follows therefore sees less than one in the kernel:
//!
//! - Busy, idle and I/O-wait time are differences of *rounded* sums: 14 ms of work are one tick or two, and what is cut off
//!   now is seen later. A share of 250 ms of time is one of 25 ticks.
//! - Whether a task could run is not shown for each CPU: one ran where a busy tick was counted.
//! - The scheduler's load, wake-ups after I/O and stopped ticks are not shown at all.
//!
//! [`InTicks`] shows any policy just that. Both the daemon that follows a policy on a machine ([`sample`]) and a model of it
//! see the same, so that both decide alike.

use crate::speed::Cadence;
use crate::{CpuSample, Intent, MS, Observation, SampleScope, SpeedPolicy};
use alloc::{boxed::Box, vec::Vec};

/// A tick as programs see it, in ns.
pub const TICK_NS: u64 = 10 * MS;

/// What is seen of a CPU on which so many ticks of busy, idle and I/O-wait time were counted.
pub fn sample(busy: u64, idle: u64, iowait: u64, tick_ns: u64) -> CpuSample {
    CpuSample {
        busy_ns: busy.saturating_mul(tick_ns),
        idle_ns: idle.saturating_mul(tick_ns),
        iowait_ns: iowait.saturating_mul(tick_ns),
        runnable: u32::from(busy > 0),
        ..CpuSample::default()
    }
}

/// Time of a CPU since the start, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    busy: u64,
    idle: u64,
    iowait: u64,
}

/// A policy that sees CPU time in whole ticks.
pub struct InTicks {
    inner: Box<dyn SpeedPolicy>,
    sums: Vec<Sums>,
    seen: Vec<CpuSample>,
}

impl InTicks {
    /// Around a policy for so many CPUs.
    pub fn around(inner: Box<dyn SpeedPolicy>, cpus: u16) -> InTicks {
        let cpus = usize::from(cpus);
        InTicks {
            inner,
            sums: alloc::vec![Sums::default(); cpus],
            seen: alloc::vec![CpuSample::default(); cpus],
        }
    }

    /// Adds what passed on a CPU, and rounds.
    fn look(&mut self, cpu: usize, passed: &CpuSample) {
        let (Some(sums), Some(seen)) = (self.sums.get_mut(cpu), self.seen.get_mut(cpu)) else { return };
        let ticks = |sum: &mut u64, ns: u64| {
            let before = *sum / TICK_NS;
            *sum = sum.saturating_add(ns);
            *sum / TICK_NS - before
        };
        let busy = ticks(&mut sums.busy, passed.busy_ns);
        let idle = ticks(&mut sums.idle, passed.idle_ns);
        let iowait = ticks(&mut sums.iowait, passed.iowait_ns);
        *seen = sample(busy, idle, iowait, TICK_NS);
    }
}

impl SpeedPolicy for InTicks {
    fn cadence(&self) -> Cadence {
        self.inner.cadence()
    }
    fn cost_ns(&self) -> u64 {
        self.inner.cost_ns()
    }
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.inner.start(&Observation { cpus: &self.seen, ..*obs }, out);
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        match obs.scope {
            SampleScope::Cpu(cpu) => {
                let cpu = usize::from(cpu);
                obs.cpus.get(cpu).into_iter().for_each(|passed| self.look(cpu, passed));
            }
            SampleScope::All | SampleScope::Domain(_) => {
                obs.cpus.iter().enumerate().for_each(|(cpu, passed)| self.look(cpu, passed));
            }
        }
        self.inner.observe(&Observation { cpus: &self.seen, ..*obs }, out);
    }
    fn looks_at_ns(&self, cpu: usize) -> Option<u64> {
        self.inner.looks_at_ns(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_now_is_seen_later() {
        struct Nothing;
        impl SpeedPolicy for Nothing {
            fn cadence(&self) -> Cadence {
                Cadence::Once
            }
            fn cost_ns(&self) -> u64 {
                0
            }
            fn start(&mut self, _: &Observation<'_>, _: &mut Intent) {}
            fn observe(&mut self, _: &Observation<'_>, _: &mut Intent) {}
        }
        let mut policy = InTicks::around(Box::new(Nothing), 1);
        let seen: Vec<(u64, u64, u32)> = [(14, 1), (14, 1), (2, 8), (0, 10)]
            .into_iter()
            .map(|(busy, idle)| {
                let passed = CpuSample { busy_ns: busy * MS, idle_ns: idle * MS, ..CpuSample::default() };
                policy.look(0, &passed);
                let seen = policy.seen[0];
                (seen.busy_ns / MS, seen.idle_ns / MS, seen.runnable)
            })
            .collect();
        assert_eq!(seen, [(10, 0, 1), (10, 0, 1), (10, 10, 1), (0, 10, 0)]);
    }
}
