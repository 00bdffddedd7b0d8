//! The rule that stands in for hardware which chooses its own speed; `hwp` and `amd-pstate-epp` give it their figures.
//!
//! No vendor publishes how its hardware chooses. What is published are the ends: how long a core that was idle takes to
//! its highest speed under full load, and that a preference (EPP, 0 to 255) leans the choice from
//! performance to power. This rule has just those two figures and the simplest form that carries them:
//!
//! 1. The load of a CPU is a sliding mean of its busy time: a piece of time that is a share of the window moves the mean
//!    by that share. Idle time counts as nothing, waiting for I/O as idle.
//! 2. The highest speed is asked for at a load of T, and in proportion below: speed = highest x load / T.
//! 3. T follows the preference in a straight line, 60 % at EPP 0 and 100 % at EPP 255, so that 128 (`balance_performance`)
//!    stands at 80 %: the quarter of head-room that Linux's own rules take for the same hardware without autonomy.
//! 4. The window is 5/8 of the published reaction time: a mean that starts at nothing passes 80 %
//!    after 1.61 windows.
//! 5. Where CPUs share a clock, the highest load counts. It costs no CPU time.
//!
//! The hardware looks by itself; a model's policy is asked when what runs changes and at busy ticks, so a rise
//! comes up to a tick late.

use super::poll::share;
use super::{Cadence, SpeedPolicy};
use crate::{CpuSample, DomainInfo, Intent, Khz, Observation, Param, ParamKind, Platform, Scope, Settings};
use alloc::{boxed::Box, vec, vec::Vec};

/// A load of all of the time. Fine enough that pieces of some ns still count in windows of some ms.
const FULL: u64 = 1 << 20;
/// T at EPP 0 and how much it grows to EPP 255, in percent.
const FULL_SPEED_AT: (u64, u64) = (60, 40);
/// The window's share of the reaction time.
const WINDOW_OF_REACTION: (u64, u64) = (5, 8);

/// Step 3, in thousandths.
fn full_speed_at(epp: u64) -> u64 {
    (FULL_SPEED_AT.0 * 1000 + FULL_SPEED_AT.1 * 1000 * epp.min(255) / 255) / 100
}

/// The load's window for a reaction time, both in ns.
fn window_ns(reaction_ns: u64) -> u64 {
    (reaction_ns * WINDOW_OF_REACTION.0 / WINDOW_OF_REACTION.1).max(1)
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    load: u64,
    told_ns: u64,
    running: bool,
}

impl Cpu {
    /// Step 1 for a piece of time that was one thing.
    fn piece(&mut self, ns: u64, busy: bool, window_ns: u64) {
        let now = if busy { FULL } else { 0 };
        let ns = ns.min(window_ns);
        self.load = share(self.load, window_ns - ns, window_ns) + share(now, ns, window_ns);
    }

    fn accrue(&mut self, sample: &CpuSample, window_ns: u64) {
        // The last piece counts most: it was busy where there is work now.
        self.running = sample.runnable > 0;
        if self.running {
            self.piece(sample.not_busy_ns(), false, window_ns);
        }
        self.piece(sample.busy_ns, true, window_ns);
        if !self.running {
            self.piece(sample.not_busy_ns(), false, window_ns);
        }
    }

    /// The load at `now_ns` of a CPU that has gone on as it was when it was last told of.
    fn load_at(mut self, now_ns: u64, window_ns: u64) -> u64 {
        self.piece(now_ns.saturating_sub(self.told_ns), self.running, window_ns);
        self.load
    }
}

/// The stand-in.
pub(super) struct Autonomous {
    window_ns: u64,
    /// T, in thousandths.
    full_at: u64,
    boost: bool,
    domains: Vec<DomainInfo>,
    domain_of: Vec<u16>,
    cpus: Vec<Cpu>,
}

/// The preference, with the words and the value of a vendor.
pub(super) const fn epp(words: &'static [(&'static str, u32)]) -> Param {
    Param {
        name: "epp",
        help: "energy-performance preference, from performance (0) to power (255)",
        kind: ParamKind::Scale { min: 0, max: 255, default: 128, words },
    }
}

/// The published reaction time, in ms.
pub(super) const fn reaction(default: f64) -> Param {
    Param {
        name: crate::params::REACTION,
        help: "time from idle to the highest speed under full load",
        kind: ParamKind::Number { unit: "ms", min: 0.1, max: 1000.0, default },
    }
}

/// The load that asks for the highest speed, instead of what the preference says.
pub(super) const FULL_AT: Param = Param {
    name: crate::params::FULL_AT,
    help: "load at which the highest speed is asked for; 0: 60 % at EPP 0 to 100 % at EPP 255",
    kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default: 0.0 },
};

impl Autonomous {
    /// With the parameters [`epp`], [`reaction`] and [`FULL_AT`].
    pub(super) fn boxed(p: &Platform, s: &Settings) -> Box<dyn SpeedPolicy> {
        let full_at = (s.number("full_at") * 10.0) as u64;
        Box::new(Autonomous {
            window_ns: window_ns(s.ms("reaction")),
            full_at: if full_at == 0 { full_speed_at(s.count("epp")) } else { full_at },
            boost: p.boost,
            domains: p.domains.clone(),
            domain_of: p.domain_of_cpu(),
            cpus: vec![Cpu::default(); usize::from(p.cpus)],
        })
    }

    /// Step 2.
    fn wish(&self, domain: &DomainInfo, load: u64) -> Khz {
        let highest = if self.boost { domain.fastest() } else { domain.base };
        let khz = u64::from(highest.0) * load / FULL * 1000 / self.full_at;
        domain.at_least(Khz(khz.min(u64::from(highest.0)) as u32))
    }

    fn tell(&mut self, cpu: usize, obs: &Observation<'_>) {
        if let (Some(sample), Some(own)) = (obs.cpus.get(cpu), self.cpus.get_mut(cpu)) {
            own.accrue(sample, self.window_ns);
            own.told_ns = obs.now_ns;
        }
    }

    /// Step 5.
    fn choose(&self, d: usize, now_ns: u64, out: &mut Intent) {
        let domain = &self.domains[d];
        let load = |&c: &u16| self.cpus[usize::from(c)].load_at(now_ns, self.window_ns);
        let highest = domain.cpus.iter().map(load).max().unwrap_or(0);
        out.set_speed(d, self.wish(domain, highest));
    }
}

impl SpeedPolicy for Autonomous {
    fn cadence(&self) -> Cadence {
        Cadence::Scheduler { interval_ns: 0 }
    }

    fn cost_ns(&self) -> u64 {
        0
    }

    /// No load yet, so the lowest speed.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        self.cpus.fill(Cpu { told_ns: obs.now_ns, ..Cpu::default() });
        (0..self.domains.len()).for_each(|d| self.choose(d, obs.now_ns, out));
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        match obs.scope {
            Scope::Cpu(cpu) => {
                self.tell(usize::from(cpu), obs);
                if let Some(&d) = self.domain_of.get(usize::from(cpu)) {
                    self.choose(usize::from(d), obs.now_ns, out);
                }
            }
            Scope::All => {
                (0..self.cpus.len()).for_each(|cpu| self.tell(cpu, obs));
                (0..self.domains.len()).for_each(|d| self.choose(d, obs.now_ns, out));
            }
            Scope::Domain(d) if usize::from(d) < self.domains.len() => {
                for cpu in 0..self.cpus.len() {
                    if self.domain_of[cpu] == d {
                        self.tell(cpu, obs);
                    }
                }
                self.choose(usize::from(d), obs.now_ns, out);
            }
            Scope::Domain(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    #[test]
    fn the_preference_moves_the_load_of_full_speed() {
        assert_eq!([0, 128, 255, 999].map(full_speed_at), [600, 800, 1000, 1000]);
    }

    #[test]
    fn the_load_is_a_sliding_mean() {
        let mut cpu = Cpu::default();
        cpu.piece(4 * MS, true, 10 * MS);
        assert_eq!(cpu.load * 100 / FULL, 39, "0.4, rounded down");
        // 0.4 x 0.5 + 0.5.
        cpu.piece(5 * MS, true, 10 * MS);
        assert!((cpu.load * 1000 / FULL).abs_diff(700) <= 1, "{}", cpu.load);
        cpu.piece(5 * MS, false, 10 * MS);
        assert!((cpu.load * 1000 / FULL).abs_diff(350) <= 1, "{}", cpu.load);
        cpu.piece(u64::MAX, false, 10 * MS);
        assert_eq!(cpu.load, 0);
    }

    /// Step 4: looked at every 100 us, a busy CPU passes 80 % after its reaction time.
    #[test]
    fn the_window_meets_the_reaction_time() {
        let (mut cpu, window) = (Cpu::default(), window_ns(5 * MS));
        let looks = (1..).find(|_| {
            cpu.piece(MS / 10, true, window);
            cpu.load * 10 >= FULL * 8
        });
        assert!(looks.is_some_and(|n| (48..=52).contains(&n)), "{looks:?} tenths of a ms");
    }
}
