//! The loop that `ondemand` and `conservative` share; what tells them apart is their [`GovernorRule`].
//!
//! It follows Linux 6.12, `drivers/cpufreq/cpufreq_governor.c` (dbs_update), which became one loop
//! with callbacks in 2016. The scheduler's hook looks at a domain when its sampling period has run
//! out. A domain that sleeps is not looked at, so an observation may cover many periods.
//!
//! 1. The load of a CPU is `100*(total - idle)/total`. Waiting for I/O is idle, unless `io_is_busy` says so.
//! 2. A CPU that slept for over two periods has a long idle time in its sample although it has just
//!    begun to work: its load would look small just when work arrives. The load before the sleep is used
//!    instead, once; a second such sample in a row is believed.
//! 3. The domain's load is that of its busiest CPU, since they share the clock.
//! 4. How many whole periods the CPU that slept least slept through is kept for the rule.
//! 5. The rule decides.

use super::poll::share;
use super::{Cadence, SpeedPolicy};
use crate::{
    CpuSample, DomainInfo, DomainSample, Intent, Khz, Observation, Param, ParamKind, Platform, SampleScope,
};
use alloc::{vec, vec::Vec};

/// CPU time of one decision in us: one domain's counters and a division each, in the kernel.
pub(super) const COST_US: f64 = 2.0;

/// A sampling period is at least this many ticks: CPU time is accounted by the tick on some machines,
/// and a shorter window would see all or nothing.
const LEAST_TICKS: u64 = 2;

/// Sleeping longer than this many periods makes a sample stand for the sleep and not for the work.
const LONG_SLEEP_PERIODS: u64 = 2;

/// What a domain's CPUs did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DomainLoad {
    /// The busiest CPU's, in percent.
    pub(super) percent: u64,
    /// Whole sampling periods that every CPU slept through (0: fewer than two).
    pub(super) slept: u64,
}

/// What a rule wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GovernorVerdict {
    /// The new speed, or none to leave it.
    pub(super) speed: Option<Khz>,
    /// Time to the next look, where it is not one period.
    pub(super) next_ns: Option<u64>,
}

/// The part of a governor that differs.
pub(super) trait GovernorRule: Send {
    /// One decision for domain number `d`.
    fn decide(
        &mut self,
        d: usize,
        domain: &DomainInfo,
        now: &DomainSample,
        load: DomainLoad,
    ) -> GovernorVerdict;
    /// An answer that needs no new load, if one is due: the second part of a divided period.
    fn due(&mut self, _d: usize) -> Option<GovernorVerdict> {
        None
    }
    /// The speed with which it takes over, in force now.
    fn start(&mut self, d: usize, found: Khz);
}

/// The shared loop.
pub(super) struct SamplingGovernor<R> {
    rule: R,
    interval_ns: u64,
    io_is_busy: bool,
    cost_ns: u64,
    domains: Vec<DomainInfo>,
    /// The load of each CPU before its sleep, in percent; 0: used up.
    before_sleep: Vec<u8>,
}

/// The sampling period for a platform: the slowest domain's transition delay, and at least two ticks.
pub(super) fn sampling_ns(p: &Platform, wanted_ns: u64) -> u64 {
    if wanted_ns > 0 {
        return wanted_ns;
    }
    let delay = p.domains.iter().map(|d| d.transition_delay_ns()).max().unwrap_or(0);
    delay.max(p.tick_ns.saturating_mul(LEAST_TICKS)).max(1)
}

impl<R: GovernorRule> SamplingGovernor<R> {
    /// For a platform; `interval_ns` from [`sampling_ns`].
    pub(super) fn new(p: &Platform, rule: R, interval_ns: u64, io_is_busy: bool, cost_ns: u64) -> Self {
        SamplingGovernor {
            rule,
            interval_ns,
            io_is_busy,
            cost_ns,
            domains: p.domains.clone(),
            before_sleep: vec![0; usize::from(p.cpus)],
        }
    }

    /// Steps 1 to 4.
    fn load(&mut self, d: usize, cpus: &[CpuSample]) -> DomainLoad {
        let long_ns = self.interval_ns.saturating_mul(LONG_SLEEP_PERIODS);
        let mut busiest = 0;
        let mut least_idle_ns = u64::MAX;
        for &cpu in &self.domains[d].cpus {
            let cpu = usize::from(cpu);
            let Some(sample) = cpus.get(cpu) else { continue };
            let idle_ns = if self.io_is_busy { sample.idle_ns } else { sample.not_busy_ns() };
            let before = &mut self.before_sleep[cpu];
            let percent = match sample.total_ns() {
                // Two looks at one moment: the last is all that is known.
                0 => u64::from(*before),
                _ if idle_ns > long_ns && *before > 0 => u64::from(core::mem::take(before)),
                total => {
                    let percent = share(total - idle_ns, 100, total);
                    *before = percent as u8;
                    percent
                }
            };
            busiest = percent.max(busiest);
            least_idle_ns = least_idle_ns.min(idle_ns);
        }
        let slept = if least_idle_ns > long_ns && least_idle_ns < u64::MAX {
            least_idle_ns / self.interval_ns
        } else {
            0
        };
        DomainLoad { percent: busiest, slept }
    }

    fn look(&mut self, d: usize, obs: &Observation<'_>, out: &mut Intent) {
        let Some(now) = obs.domains.get(d) else { return };
        // A second half is due before any load: taking the load now would use up half a period's sample.
        let verdict = match self.rule.due(d) {
            Some(verdict) => verdict,
            None => {
                let load = self.load(d, obs.cpus);
                self.rule.decide(d, &self.domains[d], now, load)
            }
        };
        if let Some(khz) = verdict.speed {
            out.set_speed(d, khz);
        }
        // With several domains in one observation the most impatient decides.
        out.next_ns = match (out.next_ns, verdict.next_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

impl<R: GovernorRule> SpeedPolicy for SamplingGovernor<R> {
    fn cadence(&self) -> Cadence {
        Cadence::Scheduler { interval_ns: self.interval_ns }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The speed found stays until the first look.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        for (d, (domain, now)) in self.domains.iter().zip(obs.domains).enumerate() {
            let found = if now.khz.0 == 0 { domain.fastest() } else { domain.at_least(now.khz) };
            self.rule.start(d, found);
            out.set_speed(d, found);
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        match obs.scope {
            SampleScope::Domain(d) if usize::from(d) < self.domains.len() => {
                self.look(usize::from(d), obs, out)
            }
            SampleScope::All => (0..self.domains.len()).for_each(|d| self.look(d, obs, out)),
            // One CPU's sample says nothing about the others that share its clock.
            SampleScope::Domain(_) | SampleScope::Cpu(_) => {}
        }
    }
}

/// The parameter for the sampling period.
pub(super) const RATE: Param = Param {
    name: "rate",
    help: "sampling period; 0: the longer of two ticks and the transition delay",
    kind: ParamKind::Number { unit: "us", min: 0.0, max: 60_000_000.0, default: 0.0 },
};

/// The parameter for time spent waiting for I/O.
pub(super) const IO_IS_BUSY: Param = Param {
    name: "io_is_busy",
    help: "whether waiting for I/O is work (Linux: yes for ondemand on Intel CPUs)",
    kind: ParamKind::Choice(&["no", "yes"]),
};

/// A count of periods by which a fall is delayed.
pub(super) const fn down_factor(help: &'static str) -> Param {
    Param {
        name: "down_factor",
        help,
        kind: ParamKind::Number { unit: "", min: 1.0, max: 100_000.0, default: 1.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use crate::speed::testing::platform;

    struct Nothing;
    impl GovernorRule for Nothing {
        fn decide(&mut self, _: usize, _: &DomainInfo, _: &DomainSample, _: DomainLoad) -> GovernorVerdict {
            GovernorVerdict::default()
        }
        fn start(&mut self, _: usize, _: Khz) {}
    }

    fn sample(busy_ms: u64, idle_ms: u64, iowait_ms: u64) -> CpuSample {
        CpuSample {
            busy_ns: busy_ms * MS,
            idle_ns: idle_ms * MS,
            iowait_ns: iowait_ms * MS,
            ..CpuSample::default()
        }
    }

    fn governor(io_is_busy: bool) -> SamplingGovernor<Nothing> {
        SamplingGovernor::new(&platform(2, &[2000, 1000]), Nothing, 10 * MS, io_is_busy, 0)
    }

    #[test]
    fn the_busiest_cpu_is_the_load() {
        let mut g = governor(false);
        let load = g.load(0, &[sample(2, 8, 0), sample(7, 3, 0)]);
        assert_eq!(load, DomainLoad { percent: 70, slept: 0 });
    }

    #[test]
    fn io_wait_is_idle_unless_told() {
        assert_eq!(governor(false).load(0, &[sample(2, 2, 6), sample(0, 10, 0)]).percent, 20);
        assert_eq!(governor(true).load(0, &[sample(2, 2, 6), sample(0, 10, 0)]).percent, 80);
    }

    #[test]
    fn the_load_before_a_long_sleep_counts_once() {
        let mut g = governor(false);
        let both = |s: CpuSample| [s, s];
        assert_eq!(g.load(0, &both(sample(9, 1, 0))).percent, 90);
        assert_eq!(g.load(0, &both(sample(1, 99, 0))), DomainLoad { percent: 90, slept: 9 });
        assert_eq!(g.load(0, &both(sample(1, 99, 0))).percent, 1, "believed the second time");
        // Twenty ms are not over two periods.
        assert_eq!(g.load(0, &both(sample(0, 20, 0))), DomainLoad { percent: 0, slept: 0 });
    }

    #[test]
    fn the_period_is_two_ticks_or_the_transition_delay() {
        let mut p = platform(1, &[1000]);
        assert_eq!(sampling_ns(&p, 0), 20 * MS);
        p.domains[0].transition_ns = 40 * MS;
        assert_eq!(sampling_ns(&p, 0), 60 * MS);
        assert_eq!(sampling_ns(&p, MS), MS);
    }
}
