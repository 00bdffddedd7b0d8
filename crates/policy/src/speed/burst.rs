//! `burst`: count consecutive busy and idle ticks; no polling at all.
//!
//! It follows B. J. Thomson, "Improved Power Management for FreeBSD" (2010), section 3 and appendix C. The
//! statistics clock ticks anyway, and at each tick the kernel knows whether it interrupted work or the idle
//! loop. Counting those costs next to nothing and wakes nobody, so the window can be as short
//! as a few ticks, where a daemon must make do with a quarter of a second.
//!
//! It observes one CPU at its own tick. It keeps, for each CPU, how many ticks in a row were busy and
//! how many idle, the level it wishes, and the last 32 ticks as bits.
//!
//! 1. A tick is busy when the CPU has something to run, idle otherwise. A CPU that slept with its tick
//!    stopped reports the sleep in one sample: as many idle ticks as whole periods fit into it.
//! 2. A busy tick resets the idle count. More than `busy` = 3 in a row: the highest level, and the
//!    count starts afresh. Straight to the top, since nobody knows how long the work is.
//! 3. An idle tick resets the busy count. More than `idle` = 3 in a row: one level down, and the
//!    count starts afresh.
//! 4. A domain runs at the highest level that any of its CPUs wishes.
//!
//! So the 4th tick acts: 40 ms at the study's hz = 100, and 3 + 1 ticks for each level on
//! the way down. 3 and 3 are the study's choice; it reports no other pair.
//!
//! Two items of the study's list of future work are here. Counters are per CPU and a domain per core is
//! enough to use them. And `down=proportional` goes down in one move to the level that the
//! work of the last 32 ticks would need, at least one level: 32 ticks are a third of a
//! second at hz = 100: about half of the longest ramp of single steps on the study's machine (17 times 4).
//!
//! Left out: nothing of the rule.

use super::poll::cost;
use super::{Cadence, Speed, SpeedPolicy};
use crate::{DomainInfo, Intent, Khz, Observation, Param, ParamKind, Platform, SampleScope, Settings};
use alloc::{boxed::Box, vec, vec::Vec};

/// CPU time of one decision in us: two counters at an interrupt that is taken anyway.
const COST_US: f64 = 0.2;

/// One CPU's counters.
#[derive(Clone, Copy, Debug, Default)]
struct BurstCount {
    /// Busy ticks in a row.
    busy: u32,
    /// Idle ticks in a row.
    idle: u32,
    /// The last 32 ticks, a bit each, 1 for busy, the newest lowest.
    history: u32,
    /// Index of the level wished, 0 the highest.
    wish: usize,
}

/// How a CPU comes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Down {
    Step,
    Proportional,
}

/// Step 3's move: the next level's index.
fn lower(domain: &DomainInfo, at: usize, history: u32, down: Down) -> usize {
    let last = domain.levels.len() - 1;
    let step = (at + 1).min(last);
    match down {
        Down::Step => step,
        Down::Proportional => {
            let used = u64::from(domain.levels[at].khz.0) * u64::from(history.count_ones()) / 32;
            let enough = domain.levels.iter().rposition(|l| u64::from(l.khz.0) >= used).unwrap_or(0);
            enough.max(step)
        }
    }
}

/// The governor.
struct Burst {
    /// Busy ticks in a row that are still ignored.
    busy: u32,
    /// Idle ticks in a row that are still ignored.
    idle: u32,
    down: Down,
    cost_ns: u64,
    tick_ns: u64,
    domains: Vec<DomainInfo>,
    domain_of: Vec<u16>,
    counts: Vec<BurstCount>,
}

impl Burst {
    fn busy_tick(&self, mut c: BurstCount) -> BurstCount {
        c.history = c.history << 1 | 1;
        c.idle = 0;
        c.busy += 1;
        if c.busy > self.busy {
            c.busy = 0;
            c.wish = 0;
        }
        c
    }

    fn idle_tick(&self, mut c: BurstCount, domain: &DomainInfo) -> BurstCount {
        c.history <<= 1;
        c.busy = 0;
        c.idle += 1;
        if c.idle > self.idle {
            c.idle = 0;
            c.wish = lower(domain, c.wish, c.history, self.down);
        }
        c
    }

    /// Step 4.
    fn speed(&self, d: usize) -> Khz {
        let domain = &self.domains[d];
        let wishes = domain.cpus.iter().map(|&c| self.counts[usize::from(c)].wish);
        domain.levels[wishes.min().unwrap_or(0)].khz
    }
}

impl SpeedPolicy for Burst {
    fn cadence(&self) -> Cadence {
        Cadence::Tick
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The study's kernel starts at the highest speed.
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        self.counts.fill(BurstCount::default());
        for (d, domain) in self.domains.iter().enumerate() {
            out.set_speed(d, domain.fastest());
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let SampleScope::Cpu(cpu) = obs.scope else { return };
        let cpu = usize::from(cpu);
        let (Some(sample), Some(&before)) = (obs.cpus.get(cpu), self.counts.get(cpu)) else { return };
        let d = usize::from(self.domain_of[cpu]);
        let domain = &self.domains[d];

        // Ticks that a sleep left out. After enough of them to reach the lowest level the rest change nothing.
        let enough = (domain.levels.len() as u64 + 1) * (u64::from(self.idle) + 1);
        let slept = (sample.not_busy_ns() / self.tick_ns).min(enough);
        let mut after = before;
        for _ in 0..slept {
            after = self.idle_tick(after, domain);
        }
        let found_work = sample.runnable > 0;
        // A sample that ends a sleep is a wake-up, not a tick, unless work was done since.
        if found_work && (slept == 0 || sample.busy_ns > 0) {
            after = self.busy_tick(after);
        } else if !found_work && slept == 0 {
            after = self.idle_tick(after, domain);
        }
        self.counts[cpu] = after;
        // The other CPUs of the domain matter only when this one changes its mind.
        if after.wish != before.wish {
            out.set_speed(d, self.speed(d));
        }
    }
}

/// The study's new governor.
pub(super) static BURST: Speed = Speed {
    name: "burst",
    summary: "counts busy and idle ticks: the highest speed after 4, one level down after 4",
    follows: "B. J. Thomson, Improved Power Management for FreeBSD (2010), section 3 and appendix C",
    source: include_str!("burst.rs"),
    params: &[
        Param {
            name: "busy",
            help: "busy ticks in a row that are tolerated before the highest speed",
            kind: ParamKind::Number { unit: "", min: 0.0, max: 10_000.0, default: 3.0 },
        },
        Param {
            name: "idle",
            help: "idle ticks in a row that are tolerated before a lower speed",
            kind: ParamKind::Number { unit: "", min: 0.0, max: 10_000.0, default: 3.0 },
        },
        Param {
            name: "down",
            help: "one level at a time, or at once to what the last 32 ticks needed",
            kind: ParamKind::Choice(&["step", "proportional"]),
        },
        cost(COST_US),
    ],
    build: |p: &Platform, s: &Settings| {
        Box::new(Burst {
            busy: s.count("busy") as u32,
            idle: s.count("idle") as u32,
            down: if s.count("down") == 0 { Down::Step } else { Down::Proportional },
            cost_ns: s.us("cost"),
            tick_ns: p.tick_ns.max(1),
            domain_of: p.domain_of_cpu(),
            domains: p.domains.clone(),
            counts: vec![BurstCount::default(); usize::from(p.cpus)],
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::testing::{Rig, platform};
    use crate::{CpuSample, MS};

    const LEVELS: &[u32] = &[1600, 1200, 800, 400];
    const BUSY: CpuSample = CpuSample {
        busy_ns: 10 * MS,
        idle_ns: 0,
        iowait_ns: 0,
        runnable: 1,
        io_wake: false,
        tickless: false,
        task_util: 0,
        moved_util: 0,
    };
    const IDLE: CpuSample = CpuSample {
        busy_ns: 0,
        idle_ns: 10 * MS,
        iowait_ns: 0,
        runnable: 0,
        io_wake: false,
        tickless: false,
        task_util: 0,
        moved_util: 0,
    };

    fn rig(cpus: u16, spec: &str) -> Rig {
        let mut r = Rig::new(platform(cpus, LEVELS), &BURST, spec, true);
        for cpu in 0..cpus {
            (0..12).for_each(|_| {
                r.cpu(cpu, IDLE);
            });
        }
        assert_eq!(r.domains[0].khz, Khz(400_000));
        r
    }

    #[test]
    fn the_4th_busy_tick_goes_to_the_top() {
        let mut r = rig(1, "");
        let speeds: Vec<_> = (0..5).map(|_| r.cpu(0, BUSY)).collect();
        assert_eq!(speeds, [400, 400, 400, 1600, 1600]);
    }

    #[test]
    fn every_4th_idle_tick_takes_one_level() {
        let mut r = Rig::new(platform(1, LEVELS), &BURST, "", false);
        let speeds: Vec<_> = (0..12).map(|_| r.cpu(0, IDLE)).collect();
        assert_eq!(speeds, [1600, 1600, 1600, 1200, 1200, 1200, 1200, 800, 800, 800, 800, 400]);
    }

    #[test]
    fn either_kind_resets_the_other() {
        let mut r = rig(1, "");
        for tick in [BUSY, BUSY, BUSY, IDLE, BUSY, BUSY, BUSY] {
            assert_eq!(r.cpu(0, tick), 400);
        }
        assert_eq!(r.cpu(0, BUSY), 1600);
        let mut r = Rig::new(platform(1, LEVELS), &BURST, "", false);
        for tick in [IDLE, IDLE, IDLE, BUSY, IDLE, IDLE, IDLE] {
            assert_eq!(r.cpu(0, tick), 1600);
        }
        assert_eq!(r.cpu(0, IDLE), 1200);
    }

    #[test]
    fn thresholds_are_settable() {
        let mut r = rig(1, "busy=0");
        assert_eq!(r.cpu(0, BUSY), 1600, "the first tick");
        let mut r = Rig::new(platform(1, LEVELS), &BURST, "idle=1", false);
        assert_eq!([r.cpu(0, IDLE), r.cpu(0, IDLE)], [1600, 1200]);
    }

    #[test]
    fn a_domain_runs_at_its_highest_wish() {
        let mut r = rig(2, "");
        (0..4).for_each(|_| {
            r.cpu(1, BUSY);
        });
        assert_eq!(r.cpu(0, IDLE), 1600, "CPU 1 still wants it");
        let speeds: Vec<_> = (0..4).map(|_| r.cpu(1, IDLE)).collect();
        assert_eq!(speeds, [1600, 1600, 1600, 1200]);
    }

    #[test]
    fn a_stopped_tick_counts_as_the_ticks_it_left_out() {
        let mut r = Rig::new(platform(1, LEVELS), &BURST, "", false);
        let slept = |ticks: u64| CpuSample { idle_ns: ticks * 10 * MS, runnable: 1, ..CpuSample::default() };
        assert_eq!(r.cpu(0, slept(4)), 1200);
        assert_eq!(r.cpu(0, slept(1_000_000)), 400);
        // The wake-ups were no busy ticks: it still takes four.
        let speeds: Vec<_> = (0..4).map(|_| r.cpu(0, BUSY)).collect();
        assert_eq!(speeds, [400, 400, 400, 1600]);
    }

    #[test]
    fn proportional_goes_where_the_work_was() {
        let domain = &platform(1, LEVELS).domains[0];
        assert_eq!(lower(domain, 0, 0, Down::Proportional), 3, "no work: the lowest");
        assert_eq!(lower(domain, 0, 0x0000_ffff, Down::Proportional), 2, "half of 1600 is 800");
        assert_eq!(lower(domain, 0, u32::MAX, Down::Proportional), 1, "at least one level");
        assert_eq!(lower(domain, 3, u32::MAX, Down::Proportional), 3);
        assert_eq!(lower(domain, 0, 0, Down::Step), 1);
    }
}
