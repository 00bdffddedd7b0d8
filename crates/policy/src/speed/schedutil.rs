//! `schedutil`: the speed from the scheduler's own measure of how busy a CPU is.
//!
//! It follows Linux 6.12, `kernel/sched/cpufreq_schedutil.c` and, for the measure, `kernel/sched/pelt.c`
//! (here `pelt.rs`). The scheduler tells of each change of what runs and of busy ticks; there is no
//! sampling period, and what happened between two calls was one thing: the CPU ran or it idled. It asks for a
//! decision where the load has changed: where a period of the measure has ended since it last told.
//!
//! It observes one CPU's time since its last call, whether work woke there after waiting for I/O, and the speed
//! in force. It keeps each CPU's signal and I/O boost, and for each domain the level chosen and when.
//!
//! One call:
//! 1. The time since this CPU's last call goes into its signal: idle first and then busy when it has work
//!    now (a tick that follows a wake-up), busy first when it has none.
//! 2. I/O boost. A wake-up from I/O starts it at 128 of 1024 and each further one doubles it up to 1024, at most
//!    once a decision; a decision without such a wake-up halves it, and below 128 it is gone. More than a
//!    tick without a call means the CPU idled: the boost starts over. Waiting for a disk keeps a CPU's
//!    utilisation small though its speed decides how soon the next request goes out. A decision is the domain's: it
//!    halves the boosts of all the CPUs there, whoever called.
//! 3. No decision until the rate limit has passed since the last change of speed; Linux takes the transition
//!    delay, since a change asked for during a change is waste.
//! 4. util = the largest of signal, boost (scaled from 1024 to the CPU's capacity, as the signal is), and what the
//!    scheduler expects of the tasks that are here now (util_est: a task that worked hard before it slept will do so again,
//!    on whatever CPU it wakes); 1.25 x util / capacity x highest speed is the wish, and the slowest level that is at
//!    least that. The quarter of head-room lets utilisation be seen to grow: at 100 % busy nothing would tell 101 % from 200 %.
//! 5. A CPU alone in its domain that has not slept with its tick stopped since the last decision keeps its level when
//!    the wish is lower: a signal that falls although the CPU hardly paused is an artefact. (Linux looks whether its
//!    count of such sleeps has changed.)
//! 6. A shared domain takes the largest util of its CPUs. A rise needs only the caller's own, and the boosts. To lower,
//!    all are looked at, brought up to now; that is done at most once a rate limit, so that a
//!    call costs the same however many CPUs share the clock (while none of them has a boost).
//!
//! A busy CPU need not run at its highest speed to count as fully loaded. Linux cannot know how much boost there will be, and takes a
//! middle one for full: on Intel that of four cores, on AMD half of it (`load_full_cores` in a machine's file). At lower speeds the signal
//! is that much greater than the work alone would make it, and so is the wish.
//!
//! Where the load counts time and not work (no APERF and MPERF: most virtual machines), the signal is a
//! share of the speed in force: it runs at full pace, and the wish is 1.25 x util of *that* speed. A busy CPU
//! then climbs level by level, a quarter at a time, where it would else go to the top at once.
//!
//! The signal is the sum of its tasks' in Linux, so it jumps when one comes or goes: a new task brings half of
//! what is free as its credit, a migrated one its past, and one that ends takes its part along. Two more
//! signals, which only fade, keep what came in all, or what went. Without them a parent whose children do
//! the work would be taken for the worker long after they are gone.
//!
//! `scale=range` is a patch that Linux has not taken (J. Lawall, December 2021, for intel_pstate's passive mode): the wish is that
//! share of the range between the lowest and the highest speed and not of the highest, so that a light load runs faster.
//!
//! Left out, since a policy sees CPUs and not tasks: uclamp, deadline bandwidth, and the highest speed for real-time
//! tasks. Interrupt time is part of busy time. To lower a shared domain, the kernel looks at all CPUs at every
//! decision, here once a rate limit (step 6).

use super::poll::{cost, share};
use super::{Cadence, Speed, SpeedPolicy};
use crate::pelt::{FULL, Pelt};
use crate::{
    CpuSample, DomainInfo, Intent, Khz, Observation, Param, ParamKind, Platform, SampleScope, Settings,
};
use alloc::{boxed::Box, vec, vec::Vec};

/// CPU time of one decision in us: some dozens of instructions and now and then a register write.
const COST_US: f64 = 1.0;
/// Where the I/O boost starts, of 1024 (`IOWAIT_BOOST_MIN`): an eighth of the most.
const BOOST_START: u64 = FULL / 8;

/// Step 2's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IoWaitBoost {
    /// Its size, of 1024.
    size: u64,
    /// It has grown since the last decision.
    grown: bool,
}

impl IoWaitBoost {
    /// At each call of its CPU: `idled` when more than a tick passed without one.
    fn call(&mut self, io_wake: bool, idled: bool) {
        if self.size > 0 && idled {
            *self = IoWaitBoost::default();
        }
        if io_wake && !self.grown {
            self.grown = true;
            self.size = if self.size == 0 { BOOST_START } else { (self.size * 2).min(FULL) };
        }
    }

    /// At each decision of its domain: the size that counts now.
    fn apply(&mut self, idled: bool) -> u64 {
        if idled {
            self.size = 0;
        } else if !self.grown {
            self.size /= 2;
            if self.size < BOOST_START {
                self.size = 0;
            }
        }
        self.grown = false;
        self.size
    }
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default)]
struct SchedutilCpu {
    pelt: Pelt,
    /// What tasks brought along, and what they took away.
    came: Pelt,
    went: Pelt,
    /// What its tasks are expected to need, of 1024.
    tasks: u64,
    boost: IoWaitBoost,
    /// Its last call, and the last at which a decision was asked for.
    told_ns: u64,
    asked_ns: u64,
    /// It had work when it last called.
    running: bool,
    /// It slept with its tick stopped since the last decision.
    idled: bool,
}

/// One frequency domain.
struct SchedutilDomain {
    cpus: Vec<u16>,
    /// The speed at which a busy CPU is fully loaded.
    load_full: Khz,
    capacity: u64,
    limit_ns: u64,
    /// Speed of each level, highest first.
    speeds: Vec<Khz>,
    /// The level for each util up to 1024: step 4 without a division.
    level_for: Vec<u16>,
    /// The speed for which `pace` was computed.
    paced: Khz,
    /// Whether the signal counts work.
    invariant: bool,
    /// Pace of work at the speed in force, of 1024 of the strongest CPU's highest.
    pace: u64,
    /// The level chosen; none at first.
    level: Option<u16>,
    /// The util behind it.
    util: u64,
    /// When the level last changed.
    changed_ns: Option<u64>,
    /// When all CPUs were last looked at.
    scanned_ns: u64,
    /// Whether any of the CPUs may have a boost.
    boosted: bool,
}

/// Step 4's wish: 1.25 x util of the capacity, of the speeds from `zero` to the highest.
fn wish(zero: Khz, fastest: Khz, util: u64, capacity: u64) -> Khz {
    let with_room = (util + util / 4).min(capacity);
    Khz(zero.0 + share(with_room, u64::from(fastest.0 - zero.0), capacity) as u32)
}

/// How the load of a busy CPU grows at `khz`, of 1024 of the strongest CPU's.
fn pace(load_full: Khz, khz: Khz, capacity: u64) -> u64 {
    // An unknown speed counts as the highest.
    if khz.0 == 0 || khz >= load_full {
        capacity
    } else {
        share(u64::from(khz.0), capacity, u64::from(load_full.0))
    }
}

impl SchedutilDomain {
    fn new(info: &DomainInfo, limit_ns: u64, invariant: bool, over_range: bool) -> SchedutilDomain {
        let capacity = u64::from(info.capacity).clamp(1, FULL);
        let lowest = info.levels.last().map_or(Khz(0), |level| level.khz);
        let zero = if over_range { lowest.min(info.fastest()) } else { Khz(0) };
        let level_for = (0..=FULL).map(|util| {
            let khz = wish(zero, info.fastest(), util, capacity);
            info.levels.iter().rposition(|l| l.khz >= khz).unwrap_or(0) as u16
        });
        SchedutilDomain {
            cpus: info.cpus.clone(),
            load_full: info.load_full,
            capacity,
            limit_ns,
            speeds: info.levels.iter().map(|l| l.khz).collect(),
            level_for: level_for.collect(),
            paced: Khz(0),
            invariant,
            pace: capacity,
            level: None,
            util: 0,
            changed_ns: None,
            scanned_ns: 0,
            boosted: false,
        }
    }

    /// Step 4's level.
    fn level_at(&self, util: u64) -> u16 {
        let Some(now) = self.level.filter(|_| !self.invariant) else { return self.level_for[util as usize] };
        // Not clamped to the speed in force: the quarter on top is what lets it rise.
        let khz = share(u64::from(self.speeds[usize::from(now)].0), util + util / 4, self.capacity);
        self.speeds.iter().rposition(|s| u64::from(s.0) >= khz).unwrap_or(0) as u16
    }

    /// The pace at `khz`; the division is done only when the speed has changed.
    fn pace_at(&mut self, khz: Khz) -> u64 {
        if self.invariant && khz != self.paced {
            self.paced = khz;
            self.pace = pace(self.load_full, khz, self.capacity);
        }
        self.pace
    }
}

/// The governor.
struct Schedutil {
    cost_ns: u64,
    tick_ns: u64,
    domain_of: Vec<u16>,
    domains: Vec<SchedutilDomain>,
    cpus: Vec<SchedutilCpu>,
}

impl SchedutilCpu {
    /// Step 1.
    fn accrue(&mut self, sample: &CpuSample, pace: u64) {
        let (busy_ns, idle_ns) = (sample.busy_ns, sample.not_busy_ns());
        // The order matters: what comes last counts most, and owed time is caught up at the idle part.
        let works = sample.runnable > 0;
        if works && idle_ns > 0 {
            self.idle(idle_ns);
        }
        if busy_ns > 0 {
            self.run(busy_ns, pace);
        }
        if !works && idle_ns > 0 {
            self.idle(idle_ns);
        }
        if sample.moved_util != 0 {
            // One of the two is nothing: both together would outgrow what a signal holds.
            let net = self.came.util() as i64 - self.went.util() as i64 + i64::from(sample.moved_util);
            // Linux takes no more away than there is (`sub_positive()`).
            let net = net.max(-(self.pelt.util() as i64));
            let beside = |util: i64| self.pelt.beside(util.max(0) as u64);
            (self.came, self.went) = (beside(net), beside(-net));
        }
        self.running = works;
        self.tasks = u64::from(sample.task_util).min(FULL);
        self.idled |= sample.tickless;
    }

    /// It worked; what came and went fades meanwhile by its clock, which runs at the pace of the work.
    fn run(&mut self, ns: u64, pace: u64) {
        self.pelt.run(ns, pace);
        if self.has_moved() {
            self.came.rest_beside(ns, pace);
            self.went.rest_beside(ns, pace);
        }
    }

    fn idle(&mut self, ns: u64) {
        self.pelt.idle(ns);
        if self.has_moved() {
            self.came.idle(ns);
            self.went.idle(ns);
        }
    }

    fn has_moved(&self) -> bool {
        !(self.came.is_gone() && self.went.is_gone())
    }

    /// The sum of the tasks' signals.
    fn util(&self) -> u64 {
        (self.pelt.util() + self.came.util()).saturating_sub(self.went.util()).min(FULL)
    }

    /// Util at `now_ns`, without its boost, of a CPU that has gone on as it was at its last call.
    fn util_at(&self, now_ns: u64, pace: u64) -> u64 {
        self.signal_at(now_ns, pace).max(self.tasks)
    }

    /// [`SchedutilCpu::util`] at `now_ns` of such a CPU.
    fn signal_at(&self, now_ns: u64, pace: u64) -> u64 {
        let gap_ns = now_ns.saturating_sub(self.told_ns);
        // A copy: the CPU will report this very time itself, and must not count it twice.
        let mut then = *self;
        if self.running {
            then.run(gap_ns, pace)
        } else {
            then.idle(gap_ns)
        }
        then.util()
    }

    /// Whether at `now_ns` it counts as idle: more than a tick since its last call.
    fn seems_idle(&self, now_ns: u64, tick_ns: u64) -> bool {
        now_ns.saturating_sub(self.asked_ns) > tick_ns
    }
}

impl Schedutil {
    /// Steps 1 and 2 for one CPU.
    fn call(&mut self, cpu: usize, obs: &Observation<'_>) -> Option<usize> {
        let (sample, state) = (obs.cpus.get(cpu)?, self.cpus.get_mut(cpu)?);
        let d = usize::from(self.domain_of[cpu]);
        let domain = &mut self.domains[d];
        let pace = domain.pace_at(obs.domains.get(d)?.khz);
        state.accrue(sample, pace);
        state.told_ns = obs.now_ns;
        if !obs.asks {
            return None;
        }
        state.boost.call(sample.io_wake, state.seems_idle(obs.now_ns, self.tick_ns));
        domain.boosted |= state.boost.size > 0;
        state.asked_ns = obs.now_ns;
        Some(d)
    }

    /// Step 2 at a decision: the largest boost in domain `d`, in the signal's measure.
    fn boost(&mut self, d: usize, now_ns: u64) -> u64 {
        let domain = &mut self.domains[d];
        if !domain.boosted {
            return 0;
        }
        let mut largest = 0;
        for &cpu in &domain.cpus {
            let cpu = &mut self.cpus[usize::from(cpu)];
            largest = largest.max(cpu.boost.apply(cpu.seems_idle(now_ns, self.tick_ns)));
        }
        domain.boosted = largest > 0;
        (largest * domain.capacity) >> 10
    }

    /// Steps 3 to 6: a new level for domain `d`, if `cpu`'s call changes it.
    fn decide(&mut self, d: usize, cpu: usize, now_ns: u64) -> Option<Khz> {
        let domain = &self.domains[d];
        if domain.changed_ns.is_some_and(|at| now_ns.saturating_sub(at) < domain.limit_ns) {
            return None;
        }
        let boost = self.boost(d, now_ns);
        let (domain, state) = (&mut self.domains[d], &mut self.cpus[cpu]);
        let own = state.util().max(state.tasks).max(boost);
        let alone = domain.cpus.len() == 1;
        let idled = core::mem::take(&mut state.idled);

        let mut util = own;
        if !alone && own < domain.util {
            // The level may be too high for as long as the rate limit, never too low.
            if now_ns.saturating_sub(domain.scanned_ns) < domain.limit_ns {
                return None;
            }
            domain.scanned_ns = now_ns;
            for &other in &domain.cpus {
                if usize::from(other) != cpu {
                    let other = &self.cpus[usize::from(other)];
                    util = util.max(other.util_at(now_ns, domain.pace));
                }
            }
        }
        domain.util = util;
        let level = domain.level_at(util.min(FULL));
        // Levels count from the highest: a greater index is slower.
        let falls = domain.level.is_some_and(|now| level > now);
        if domain.level == Some(level) || (falls && alone && !idled) {
            return None;
        }
        domain.level = Some(level);
        domain.changed_ns = Some(now_ns);
        Some(domain.speeds[usize::from(level)])
    }
}

impl SpeedPolicy for Schedutil {
    fn cadence(&self) -> Cadence {
        Cadence::Scheduler { interval_ns: 0 }
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn followed_util(&self, cpu: usize) -> Option<u64> {
        self.cpus.get(cpu).map(SchedutilCpu::util)
    }

    fn followed_util_at(&self, cpu: usize, at_ns: u64) -> Option<u64> {
        let pace = self.domains[usize::from(*self.domain_of.get(cpu)?)].pace;
        self.cpus.get(cpu).map(|c| c.signal_at(at_ns, pace))
    }

    /// Signals start at nothing; the speed found stays until the first call.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let fresh = SchedutilCpu {
            pelt: Pelt::since(obs.now_ns),
            told_ns: obs.now_ns,
            asked_ns: obs.now_ns,
            ..SchedutilCpu::default()
        };
        self.cpus.fill(fresh);
        for (d, domain) in self.domains.iter_mut().enumerate() {
            let found = obs.domains.get(d).map_or(Khz(0), |s| s.khz);
            let level = match found.0 {
                0 => 0,
                _ => domain.speeds.iter().rposition(|&s| s >= found).unwrap_or(0),
            };
            (domain.level, domain.util, domain.changed_ns) = (Some(level as u16), 0, None);
            (domain.scanned_ns, domain.boosted) = (obs.now_ns, false);
            out.set_speed(d, domain.speeds[level]);
        }
    }

    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let mut one = |policy: &mut Self, cpu: usize| {
            if let Some(d) = policy.call(cpu, obs)
                && let Some(khz) = policy.decide(d, cpu, obs.now_ns)
            {
                out.set_speed(d, khz);
            }
        };
        match obs.scope {
            SampleScope::Cpu(cpu) => one(self, usize::from(cpu)),
            SampleScope::All => (0..self.cpus.len()).for_each(|cpu| one(self, cpu)),
            SampleScope::Domain(d) => {
                for cpu in 0..self.cpus.len() {
                    if self.domain_of[cpu] == d {
                        one(self, cpu);
                    }
                }
            }
        }
    }
}

/// Linux's schedutil.
pub(super) static SCHEDUTIL: Speed = Speed {
    name: "schedutil",
    summary: "Linux: 1.25 x the scheduler's utilisation, at each change of what runs",
    follows: "Linux 6.12, kernel/sched/cpufreq_schedutil.c and pelt.c",
    source: include_str!("schedutil.rs"),
    params: &[
        Param {
            name: "rate_limit",
            help: "least time between two changes of speed; -1: the transition delay",
            kind: ParamKind::Number { unit: "us", min: -1.0, max: 1_000_000.0, default: -1.0 },
        },
        Param {
            name: crate::params::SCALE,
            help: "what a utilisation is a share of: the highest speed, as in Linux; or the range of speeds, as in a patch of 2021",
            kind: ParamKind::Choice(&["highest", "range"]),
        },
        cost(COST_US),
    ],
    build: |p: &Platform, s: &Settings| {
        let over_range = s.number(crate::params::SCALE) > 0.0;
        let limit = |d: &DomainInfo| {
            if s.number("rate_limit") < 0.0 { d.transition_delay_ns() } else { s.us("rate_limit") }
        };
        Box::new(Schedutil {
            cost_ns: s.us("cost"),
            tick_ns: p.tick_ns,
            domain_of: p.domain_of_cpu(),
            domains: p
                .domains
                .iter()
                .map(|d| SchedutilDomain::new(d, limit(d), p.load_invariant, over_range))
                .collect(),
            cpus: vec![SchedutilCpu::default(); usize::from(p.cpus)],
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;
    use crate::speed::testing::{Rig, platform};
    use crate::{DomainSample, PowerSource};

    /// Levels of 100 MHz: any util is visible.
    const LEVELS: &[u32] = &[
        2000, 1900, 1800, 1700, 1600, 1500, 1400, 1300, 1200, 1100, 1000, 900, 800, 700, 600, 500, 400, 300,
    ];

    fn busy(ns: u64) -> CpuSample {
        CpuSample { busy_ns: ns, runnable: 1, ..CpuSample::default() }
    }
    fn idle(ns: u64) -> CpuSample {
        CpuSample { idle_ns: ns, tickless: true, ..CpuSample::default() }
    }
    fn io(ns: u64) -> CpuSample {
        CpuSample { idle_ns: ns, runnable: 1, io_wake: true, tickless: true, ..CpuSample::default() }
    }

    fn rig(cpus: u16, spec: &str, at_slowest: bool) -> Rig {
        Rig::new(platform(cpus, LEVELS), &SCHEDUTIL, spec, at_slowest)
    }

    #[test]
    fn the_formula() {
        assert_eq!(wish(Khz(0), Khz(2_000_000), 512, 1024), Khz(1_250_000));
        assert_eq!(wish(Khz(0), Khz(2_000_000), 820, 1024), Khz(2_000_000));
        assert_eq!(wish(Khz(0), Khz(2_000_000), 1024, 1024), Khz(2_000_000));
        assert_eq!(wish(Khz(0), Khz(2_000_000), 0, 1024), Khz(0));
        assert_eq!(wish(Khz(0), Khz(2_000_000), 256, 512), Khz(1_250_000), "half of a small CPU");
        // Over the range: a CPU at rest wishes for the lowest speed, a busy one for the highest.
        let over_range = |util| wish(Khz(1_000_000), Khz(2_000_000), util, 1024);
        assert_eq!(
            [0, 512, 820, 1024].map(over_range).map(|khz| khz.0),
            [1_000_000, 1_625_000, 2_000_000, 2_000_000]
        );
        assert_eq!(pace(Khz(2_000_000), Khz(500_000), 512), 128);
        assert_eq!(pace(Khz(2_000_000), Khz(3_000_000), 1024), 1024);
    }

    /// At the highest speed 33.5 ms of work make util 512 and so 1250 MHz, but no fall while it never idles.
    #[test]
    fn never_lower_without_idle() {
        let mut r = rig(1, "", false);
        assert!((0..33).all(|_| r.cpu(0, busy(MS)) == 2000));
        let after_a_pause = r.cpu(0, idle(MS));
        assert!((1200..=1300).contains(&after_a_pause), "{after_a_pause}");
    }

    /// Where the load counts time, a busy CPU's signal says little at first, and each rise is a quarter.
    #[test]
    fn without_invariance_it_climbs_by_quarters() {
        let mut p = platform(1, LEVELS);
        p.load_invariant = false;
        let mut r = Rig::new(p, &SCHEDUTIL, "rate_limit=10000", true);
        let speeds: Vec<u32> = (0..400).map(|_| r.cpu(0, busy(MS))).collect();
        let mut steps = speeds.clone();
        steps.dedup();
        assert!(steps.len() > 6 && steps.last() == Some(&2000), "{steps:?}");
        assert!(steps.windows(2).all(|s| s[0] < s[1] && s[1] <= s[0] * 5 / 4 + 100), "{steps:?}");
        assert!(speeds[..60].iter().all(|&s| s == 300), "1.25 x util has to pass the speed in force first");
    }

    /// A CPU that is busy for 0.7 of its time at any speed, as one half of a pair that waits for its other half: each decision takes
    /// 1.25 x 0.7 x 2000 / `load_full` of the speed in force, until the load can grow no more at 1.25 x 0.7 x 2000 MHz.
    #[test]
    fn where_a_middle_boost_is_full_load_a_waiting_pair_is_sped_up() {
        let ends = |load_full: u32| {
            let mut p = platform(1, LEVELS);
            p.domains[0].load_full = Khz(load_full * 1000);
            let mut r = Rig::new(p, &SCHEDUTIL, "", true);
            r.cpu(0, busy(50 * MS));
            let turns = (0..4000).map(|_| r.cpu(0, busy(MS * 7 / 10)).min(r.cpu(0, idle(MS * 3 / 10))));
            turns.skip(3000).fold((u32::MAX, 0), |(low, high), mhz| (low.min(mhz), high.max(mhz)))
        };
        assert_eq!(ends(2000), (300, 300));
        let (low, high) = ends(1500);
        assert!(low >= 1700 && high <= 1900, "{low} to {high}");
    }

    /// What places tasks by a CPU's load asks while that sleeps: half is left after half a life.
    #[test]
    fn a_load_is_told_as_of_now() {
        let p = platform(1, LEVELS);
        let settings = Settings::defaults(SCHEDUTIL.params);
        let mut policy = (SCHEDUTIL.build)(&p, &settings);
        let domains = [DomainSample { khz: Khz(2_000_000), min: Khz(300_000), max: Khz(2_000_000) }];
        let mut out = Intent::neutral(1);
        let mut tell = |policy: &mut dyn SpeedPolicy, at: u64, cpu: CpuSample| {
            let obs = Observation {
                now_ns: at,
                asks: true,
                scope: SampleScope::Cpu(0),
                cpus: &[cpu],
                domains: &domains,
                source: PowerSource::Unknown,
                temperature_mc: None,
            };
            if at == 0 { policy.start(&obs, &mut out) } else { policy.observe(&obs, &mut out) }
        };
        let half_life = 32 * crate::pelt::PERIOD_NS;
        tell(&mut *policy, 0, CpuSample::default());
        tell(&mut *policy, half_life, CpuSample { runnable: 0, ..busy(half_life) });
        let at = |policy: &dyn SpeedPolicy, ns: u64| policy.followed_util_at(0, ns).unwrap();
        assert!(at(&*policy, half_life).abs_diff(512) <= 1);
        assert!(at(&*policy, 2 * half_life).abs_diff(256) <= 1);
        assert!(at(&*policy, 100 * half_life) == 0 && policy.followed_util(0).unwrap() > 500);
        // While it works on, it grows.
        tell(&mut *policy, 2 * half_life, busy(half_life));
        assert!(at(&*policy, 3 * half_life) > policy.followed_util(0).unwrap() + 100);
    }

    /// From 300 of 2000 MHz, where the signal's clock crawls, up to the top.
    #[test]
    fn a_busy_cpu_climbs_to_the_top() {
        let mut r = rig(1, "", true);
        let mut last = 300;
        let ms = (1..1000).find(|_| {
            let now = r.cpu(0, busy(MS));
            assert!(now >= last, "never down");
            last = now;
            now == 2000
        });
        assert!(ms.is_some_and(|ms| (70..250).contains(&ms)), "{ms:?}");
    }

    /// The signal falls all the same; the speed follows when the tick has been stopped for a sleep.
    #[test]
    fn never_lower_while_the_tick_goes_on() {
        let mut r = rig(1, "rate_limit=0us", false);
        r.cpu(0, busy(300 * MS));
        let nap = |ns| CpuSample { tickless: false, ..idle(ns) };
        assert!((0..100).all(|_| r.cpu(0, nap(3 * MS)) == 2000));
        assert_eq!(r.cpu(0, idle(MS)), 300);
    }

    #[test]
    fn what_is_only_told_is_learnt_and_changes_nothing() {
        let mut r = rig(1, "rate_limit=0us", true);
        r.asks = false;
        assert!((0..300).all(|_| r.cpu(0, busy(MS)) == 300));
        r.asks = true;
        let (told, mut asked) = (r.cpu(0, busy(MS)), rig(1, "rate_limit=0us", true));
        asked.cpu(0, busy(300 * MS));
        assert_eq!(told, asked.cpu(0, busy(MS)));
        assert!(told > 300);
    }

    #[test]
    fn idle_decays_to_the_lowest() {
        let mut r = rig(1, "", false);
        r.cpu(0, busy(300 * MS));
        assert_eq!(r.cpu(0, idle(300 * MS)), 300);
    }

    #[test]
    fn the_rate_limit_holds_after_a_change() {
        let mut r = rig(1, "rate_limit=10000us", false);
        assert_eq!(r.cpu(0, idle(20 * MS)), 300);
        assert_eq!(r.cpu(0, busy(9 * MS)), 300, "9 ms since the change");
        assert!(r.cpu(0, busy(MS)) >= 300);
        let mut r = rig(1, "rate_limit=10000us", false);
        r.cpu(0, idle(20 * MS));
        let quick = (0..5).map(|_| r.cpu(0, io(MS))).max();
        assert_eq!(quick, Some(300));
        let mut r = rig(1, "rate_limit=0us", false);
        r.cpu(0, idle(20 * MS));
        assert_eq!(r.cpu(0, io(MS)), 400, "a boost of 1/8 with head-room is 312 MHz");
    }

    /// With a quarter on top 128, 256, 512 and 1024 of 1024 are 160, 320, 640 and all: of 2000 MHz 312, 625, 1250, 2000.
    #[test]
    fn io_boost_doubles_and_halves() {
        let mut r = rig(1, "rate_limit=0us", true);
        r.cpu(0, idle(100 * MS));
        assert_eq!([MS; 5].map(|ns| r.cpu(0, io(ns))), [400, 700, 1300, 2000, 2000]);
        assert_eq!([MS; 4].map(|ns| r.cpu(0, idle(ns))), [1300, 700, 400, 300]);
        assert_eq!(r.cpu(0, io(MS)), 400, "below 128 it was gone");
    }

    /// The tick is 10 ms: after exactly one the boost doubles, and later it starts over, with or without a wake-up from I/O.
    #[test]
    fn more_than_a_tick_resets_the_boost() {
        let boosted = || {
            let mut r = rig(1, "rate_limit=0us", true);
            (0..3).for_each(|_| {
                r.cpu(0, io(MS));
            });
            r
        };
        assert_eq!(boosted().cpu(0, io(10 * MS)), 2000);
        assert_eq!(boosted().cpu(0, io(10 * MS + 1)), 400);
        assert_eq!(boosted().cpu(0, idle(10 * MS)), 700, "512 halved");
        assert_eq!(boosted().cpu(0, idle(10 * MS + 1)), 300);
    }

    #[test]
    fn a_boost_grows_once_a_decision() {
        let mut b = IoWaitBoost::default();
        b.call(true, false);
        b.call(true, false);
        assert_eq!(b.apply(false), 128);
        b.call(true, false);
        assert_eq!(b.apply(false), 256);
        assert_eq!([b.apply(false), b.apply(false)], [128, 0]);
    }

    /// A boost of 512 on a CPU of half the strength is 256 of its 512, so half of its highest speed and a quarter: 1250 MHz.
    #[test]
    fn a_boost_is_a_share_of_the_cpus_own_capacity() {
        for cpus in [1, 2] {
            let mut p = platform(cpus, LEVELS);
            p.domains[0].capacity = 512;
            let mut r = Rig::new(p, &SCHEDUTIL, "rate_limit=0us", true);
            assert_eq!([MS; 3].map(|ns| r.cpu(0, io(ns))), [400, 700, 1300]);
            r.cpus[0] = CpuSample::default();
            r.cpus[usize::from(cpus) - 1] = CpuSample { tickless: true, ..CpuSample::default() };
            // Whoever calls, the next decision halves it: 128 of 512 and a quarter, 625 MHz.
            assert_eq!(r.observe(SampleScope::Cpu(cpus - 1), MS), 700);
        }
    }

    /// CPU 0 has 1024, CPU 1 calls: 512, 256, 128, and gone, as for CPU 0 alone. More than a tick after CPU 0's own last
    /// call it is gone at once.
    #[test]
    fn a_neighbours_boost_is_halved_and_reset_too() {
        let boosted = || {
            let mut r = rig(2, "rate_limit=0us", true);
            (0..4).for_each(|_| {
                r.cpu(0, io(MS));
            });
            r.cpus[0] = CpuSample::default();
            r
        };
        let mut r = boosted();
        assert_eq!([MS; 4].map(|ns| r.cpu(1, idle(ns))), [1300, 700, 400, 300]);
        let mut r = rig(2, "rate_limit=0us", true);
        (0..4).for_each(|_| {
            r.cpu(1, io(MS));
        });
        assert_eq!([MS; 4].map(|ns| r.cpu(0, idle(ns))), [1300, 700, 400, 300], "and the other way round");
        assert_eq!(boosted().cpu(1, idle(10 * MS)), 1300, "a tick after CPU 0's last call");
        // What is left is that CPU 0 said it runs: after 10 ms, 1024 x (1 - 1/2^(10/33.5)) = 191, and a quarter: 466 MHz.
        assert_eq!(boosted().cpu(1, idle(10 * MS + 1)), 500);
        // A wake-up from I/O that CPU 0 told before the decision keeps the boost from being halved, once.
        let mut r = rig(2, "rate_limit=1000us", true);
        (0..4).for_each(|_| {
            r.cpu(0, io(MS));
        });
        r.cpus[0] = CpuSample::default();
        assert_eq!(r.cpu(1, idle(MS)), 1300);
        assert_eq!(r.cpu(0, io(MS / 2)), 1300, "too early for a decision");
        assert_eq!(r.cpu(1, idle(MS / 2)), 2000);
        assert_eq!(r.cpu(1, idle(MS)), 1300);
    }

    #[test]
    fn a_shared_domain_takes_the_busiest() {
        let mut r = rig(2, "", false);
        r.cpus = vec![CpuSample::default(); 2];
        // Both CPUs live through the same 300 ms.
        r.cpus[0] = busy(300 * MS);
        r.observe(SampleScope::Cpu(0), 300 * MS);
        r.cpus[1] = idle(300 * MS);
        assert_eq!(r.observe(SampleScope::Cpu(1), 0), 2000);
        // CPU 0 goes on without calling: an idle CPU's call must not lower the domain.
        r.cpus[1] = idle(5 * MS);
        assert_eq!(r.observe(SampleScope::Cpu(1), 5 * MS), 2000);
        // It stops, and what is left of it decays.
        r.cpus[0] = CpuSample { busy_ns: 5 * MS, ..CpuSample::default() };
        r.observe(SampleScope::Cpu(0), 0);
        r.cpus[1] = idle(300 * MS);
        assert_eq!(r.observe(SampleScope::Cpu(1), 300 * MS), 300);
    }

    /// A task of 20 ms that takes its part along when it ends leaves next to nothing behind, and one that does
    /// not would keep a third.
    #[test]
    fn what_ends_takes_its_load_along() {
        let mut cpu = SchedutilCpu::default();
        cpu.accrue(&CpuSample { moved_util: 512, ..idle(MS) }, FULL);
        assert_eq!(cpu.util(), 511, "the credit counts at once, less what rounding takes");
        cpu.accrue(&busy(20 * MS), FULL);
        let worked = cpu.util();
        assert!((640..700).contains(&worked), "{worked}");
        cpu.accrue(&CpuSample { moved_util: -(worked as i32), ..idle(MS) }, FULL);
        assert!(cpu.util() <= 20, "{}", cpu.util());
        // More than there is cannot go: what comes next counts whole.
        cpu.accrue(&CpuSample { moved_util: -300, ..idle(MS) }, FULL);
        assert!(cpu.util() <= 2, "{}", cpu.util());
        cpu.accrue(&CpuSample { moved_util: 512, ..idle(MS) }, FULL);
        assert!(cpu.util() >= 510, "{}", cpu.util());
    }
}
