//! The speed governor owns the speed policy, and what it has seen of CPUs and domains since it was last asked. It answers
//! which level each domain should have.

use crate::calendar::NEVER;
use wattwise_model::machine::{Domain, MachineModel};
use wattwise_policy::{
    Cadence, CpuSample, DomainSample, Intent, Khz, Observation, PowerSource, SampleScope, SpeedPolicy, pelt,
};

/// Idle and I/O-wait totals at a CPU's last sample.
#[derive(Clone, Copy, Debug, Default)]
struct IdleTotals {
    at: u64,
    idle: u64,
    io: u64,
}

/// What the scheduler has to tell of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Load that tasks brought here less what went with them, since the governor last looked, of 1024.
    moved_util: i32,
    /// A task came or went, or wakes from waiting for a device, since the scheduler last brought the load up to date.
    moved: bool,
    /// The load's period in which it last did.
    period: u64,
}

/// What is to be seen of a CPU now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReading {
    /// Time idle so far, without and with I/O outstanding, in ns.
    pub(crate) idle: (u64, u64),
    /// Tasks running or ready.
    pub(crate) runnable: u32,
    /// What is expected of them, of 1024.
    pub(crate) task_util: u32,
    /// A task that had waited for a device woke here.
    pub(crate) io_wake: bool,
    /// It has slept with its tick stopped, or has one that is never stopped.
    pub(crate) tickless: bool,
}

/// What the scheduler's telling of a CPU leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Nothing.
    Passes,
    /// The policy is told, and asked if `asks`.
    Tells {
        /// Whether it decides, which costs time.
        asks: bool,
    },
    /// The policy decides for the CPU's domain.
    AsksForDomain {
        /// Least time to the next such decision where the policy says none, in ns.
        interval_ns: u64,
    },
}

/// The speed policy at work.
pub(crate) struct SpeedGovernor {
    policy: Box<dyn SpeedPolicy>,
    cadence: Cadence,
    // Of the cadence, and asked at every event.
    follows_tasks: bool,
    is_told: bool,
    /// Its hardware looks by itself.
    looks: bool,
    cost_ns: u64,
    source: PowerSource,
    intent: Intent,
    samples: Vec<CpuSample>,
    domain_samples: Vec<DomainSample>,
    /// Speeds of each domain in kHz, fastest first.
    levels: Vec<Vec<u32>>,
    /// Of each domain the speed that brings the boost, where one does.
    boost_with: Vec<Option<u32>>,
    seen: Vec<IdleTotals>,
    news: Vec<News>,
    /// Last request by domain: most decisions change nothing.
    last: Vec<Khz>,
    /// Before when a domain's sampling governor is not to be asked again.
    domain_rests: Vec<u64>,
    phase_ns: u64,
    load_phase_ns: u64,
    /// The task that stands for a user-space policy.
    daemon: u32,
    /// The daemon has slept and is to work next.
    daemon_woke: bool,
    decisions: u64,
}

impl SpeedGovernor {
    /// `phase_ns`: delay of the policy's clock against the work's start; `load_phase_ns`: where that lies in a period of
    /// the load.
    pub(crate) fn new(
        policy: Box<dyn SpeedPolicy>,
        m: &MachineModel,
        source: PowerSource,
        daemon: u32,
        (phase_ns, load_phase_ns): (u64, u64),
    ) -> SpeedGovernor {
        let khz = |d: &Domain| m.kinds[usize::from(d.kind)].levels.iter().map(|l| l.khz).collect();
        let levels: Vec<Vec<u32>> = m.domains.iter().map(khz).collect();
        let kind = |d: &Domain| &m.kinds[usize::from(d.kind)];
        let boost_with = |d: &Domain| kind(d).boosting_khz();
        let limits = |l: &Vec<u32>| DomainSample { khz: Khz(0), min: Khz(l[l.len() - 1]), max: Khz(l[0]) };
        SpeedGovernor {
            cadence: policy.cadence(),
            follows_tasks: policy.cadence() == Cadence::Scheduler { interval_ns: 0 },
            is_told: matches!(policy.cadence(), Cadence::Scheduler { .. }),
            cost_ns: policy.cost_ns(),
            looks: policy.looks_at_ns(0).is_some(),
            policy,
            source,
            intent: Intent::neutral(m.domains.len()),
            samples: vec![CpuSample::default(); m.cpus.len()],
            domain_samples: levels.iter().map(limits).collect(),
            levels,
            boost_with: m.domains.iter().map(boost_with).collect(),
            seen: vec![IdleTotals::default(); m.cpus.len()],
            news: vec![News::default(); m.cpus.len()],
            last: vec![Khz(0); m.domains.len()],
            domain_rests: vec![0; m.domains.len()],
            phase_ns,
            load_phase_ns,
            daemon,
            daemon_woke: true,
            decisions: 0,
        }
    }

    /// The policy takes over, before the work begins.
    pub(crate) fn start(&mut self, temperature_mc: i32) {
        let obs = Observation {
            now_ns: self.load_phase_ns,
            asks: true,
            scope: SampleScope::All,
            cpus: &self.samples,
            domains: &self.domain_samples,
            source: self.source,
            temperature_mc: Some(temperature_mc),
        };
        self.policy.start(&obs, &mut self.intent);
    }

    /// First event of the policy's kernel timer, where it has one.
    pub(crate) fn first_timer_ns(&self) -> Option<u64> {
        match self.cadence {
            Cadence::KernelTimer { first_ns, .. } => Some(first_ns + self.phase_ns),
            _ => None,
        }
    }

    /// First wake-up of a user-space policy's process, where it is one.
    pub(crate) fn daemon_first_ns(&self) -> Option<u64> {
        match self.cadence {
            Cadence::Daemon { first_ns, .. } => Some(first_ns + self.phase_ns),
            _ => None,
        }
    }

    /// The task that stands for a user-space policy.
    #[inline]
    pub(crate) fn daemon(&self) -> u32 {
        self.daemon
    }

    /// The daemon goes on: whether it has slept, and is to work next.
    pub(crate) fn daemon_goes_on(&mut self) -> bool {
        self.daemon_woke = !self.daemon_woke;
        !self.daemon_woke
    }

    /// CPU time of one decision at the machine's highest speed, in ns.
    #[inline]
    pub(crate) fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// Decisions so far.
    pub(crate) fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Whether the policy lives on ticks.
    #[inline]
    pub(crate) fn ticks(&self) -> bool {
        self.cadence == Cadence::Tick
    }

    /// Whether it reads what the scheduler expects of tasks.
    #[inline]
    pub(crate) fn follows_tasks(&self) -> bool {
        self.follows_tasks
    }

    /// Whether the scheduler tells it of changes.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether a running CPU's ticks matter to it.
    #[inline]
    pub(crate) fn busy_ticks(&self) -> bool {
        matches!(self.cadence, Cadence::Tick | Cadence::Scheduler { .. })
    }

    /// When hardware that chooses by itself looks next at a running CPU.
    #[inline]
    pub(crate) fn looks_at(&self, c: usize, now: u64) -> Option<u64> {
        match self.looks {
            false => None,
            true => self.policy.looks_at_ns(c).map(|at| at.saturating_sub(self.load_phase_ns).max(now + 1)),
        }
    }

    /// The clock at whose multiples periods of the load begin.
    #[inline]
    pub(crate) fn load_clock(&self, now: u64) -> u64 {
        now + self.load_phase_ns
    }

    /// A task came to a CPU or went, or wakes from waiting for a device.
    #[inline]
    pub(crate) fn task_moved(&mut self, c: usize) {
        self.news[c].moved = true;
    }

    /// A task brought load to a CPU, or took it along, of 1024.
    #[inline]
    pub(crate) fn load_moved(&mut self, c: usize, util: i32) {
        self.news[c].moved_util += util;
    }

    /// What is known of a CPU's load, with what has come since, of 1024.
    pub(crate) fn known_load(&self, c: usize) -> i64 {
        self.policy.followed_util(c).unwrap_or(0) as i64 + i64::from(self.news[c].moved_util)
    }

    /// [`SpeedGovernor::known_load`] brought up to now; none where the policy does not follow tasks.
    pub(crate) fn load_now(&self, c: usize, now: u64) -> Option<u64> {
        let told = self.policy.followed_util_at(c, self.load_clock(now))? as i64;
        Some((told + i64::from(self.news[c].moved_util)).clamp(0, pelt::FULL as i64) as u64)
    }

    /// Linux asks a governor only where the load has changed (`update_load_avg()`): one of its periods has ended since it was
    /// last brought up to date, a task came or went, or work wakes that waited for a device.
    #[inline]
    fn load_changed(&mut self, c: usize, now: u64) -> bool {
        let period = self.load_clock(now) / pelt::PERIOD_NS;
        let news = &mut self.news[c];
        let ended = std::mem::replace(&mut news.period, period) != period;
        ended | std::mem::take(&mut news.moved)
    }

    /// From the scheduler, when what runs on a CPU of a domain has changed and at its ticks: it brings the load up to
    /// date. `here`: on a CPU that can set that domain's clock; else its governor is not asked.
    #[inline]
    pub(crate) fn hook(&mut self, c: usize, domain: u16, now: u64, here: bool) -> Hook {
        let Cadence::Scheduler { interval_ns } = self.cadence else { return Hook::Passes };
        let asks = self.load_changed(c, now) && here;
        if interval_ns == 0 {
            Hook::Tells { asks }
        } else if asks && now >= self.domain_rests[usize::from(domain)] {
            Hook::AsksForDomain { interval_ns }
        } else {
            Hook::Passes
        }
    }

    /// A domain's governor has decided, and rests.
    pub(crate) fn rests(&mut self, domain: u16, now: u64, interval_ns: u64) {
        self.domain_rests[usize::from(domain)] = now + self.intent.next_ns.unwrap_or(interval_ns);
    }

    /// Time from a decision by a kernel timer to the next; none where it has no timer.
    pub(crate) fn timer_again_ns(&self) -> Option<u64> {
        match self.cadence {
            Cadence::KernelTimer { period_ns, .. } => Some(self.intent.next_ns.unwrap_or(period_ns).max(1)),
            _ => None,
        }
    }

    /// How long the daemon sleeps after a decision.
    pub(crate) fn daemon_again_ns(&self) -> u64 {
        match self.cadence {
            Cadence::Daemon { period_ns, .. } => self.intent.next_ns.unwrap_or(period_ns).max(1),
            _ => NEVER / 2,
        }
    }

    /// A CPU that slept without its tick for at least `period_ns` is to tell how long: true then. What it did before it
    /// slept saw no tick, so a policy of ticks does not see it either.
    pub(crate) fn missed_ticks(
        &mut self,
        c: usize,
        now: u64,
        (idle, io): (u64, u64),
        period_ns: u64,
    ) -> bool {
        let seen = &mut self.seen[c];
        let missed = now - seen.at >= period_ns;
        if missed {
            seen.at = now - (idle - seen.idle) - (io - seen.io);
        }
        missed
    }

    /// Looks at a CPU.
    #[inline]
    pub(crate) fn look_at(&mut self, c: usize, now: u64, reading: CpuReading) {
        let (idle, io) = reading.idle;
        let seen = std::mem::replace(&mut self.seen[c], IdleTotals { at: now, idle, io });
        let (idle_ns, iowait_ns) = (idle - seen.idle, io - seen.io);
        self.samples[c] = CpuSample {
            busy_ns: now - seen.at - idle_ns - iowait_ns,
            idle_ns,
            iowait_ns,
            runnable: reading.runnable,
            io_wake: reading.io_wake,
            tickless: reading.tickless,
            task_util: reading.task_util,
            moved_util: std::mem::take(&mut self.news[c].moved_util),
        };
    }

    /// A domain has, or changes to, a level.
    #[inline]
    pub(crate) fn look_at_domain(&mut self, d: usize, level: usize) {
        self.domain_samples[d].khz = Khz(self.levels[d][level]);
    }

    /// Having looked at the CPUs in scope, asks the policy.
    #[inline]
    pub(crate) fn observe(&mut self, now: u64, scope: SampleScope, asks: bool, temperature_mc: i32) {
        self.decisions += u64::from(asks);
        self.intent.next_ns = None;
        let obs = Observation {
            now_ns: now + self.load_phase_ns,
            asks,
            scope,
            cpus: &self.samples,
            domains: &self.domain_samples,
            source: self.source,
            temperature_mc: Some(temperature_mc),
        };
        self.policy.observe(&obs, &mut self.intent);
    }

    /// The level that a domain should have, where that is asked for anew.
    #[inline]
    pub(crate) fn new_level(&mut self, d: usize) -> Option<usize> {
        if self.intent.domains[d].desired == self.last[d] {
            return None;
        }
        self.level(d)
    }

    /// The slowest level that satisfies the intent; `None` without an opinion.
    pub(crate) fn level(&mut self, d: usize) -> Option<usize> {
        let intent = self.intent.domains[d];
        self.last[d] = intent.desired;
        if intent.desired == Khz(0) {
            return None;
        }
        let levels = &self.levels[d];
        let at_least = |k: Khz| levels.iter().rposition(|&l| l >= k.0).unwrap_or(0);
        let mut level = at_least(intent.desired);
        if intent.min != Khz(0) {
            level = level.min(at_least(intent.min));
        }
        if intent.max != Khz(0) {
            let cap = levels.iter().position(|&l| l <= intent.max.0).unwrap_or(levels.len() - 1);
            level = level.max(cap);
        }
        // What is asked for is the base speed; that the limits leave more says that boost is on.
        let unlimited = |base: u32| intent.max == Khz(0) || intent.max.0 > base;
        let boosts = self.boost_with[d].is_some_and(|base| levels[level] >= base && unlimited(base));
        Some(if boosts { 0 } else { level })
    }
}
