//! Speed policies, requests, transitions, boost and heat.
//!
//! A policy's intent becomes a *request* for a level. A request takes effect after the hardware's
//! delay, then the domain's cores stand still for the stall of that pair of speeds. What is in force
//! is the slowest of the granted level, the boost limit of the package's awake cores, and the heat
//! limit; the last two act at once and cost nothing, as they do in hardware.

use super::accounts::ThreadState;
use super::{NEVER, Phase, Simulation, Source};
use wattwise_model::machine::{Domain, MAX_SMT, Machine, Overlap};
use wattwise_policy::{
    Cadence, CpuSample, DomainInfo, DomainSample, Intent, Khz, Level, Observation, Platform, PowerSource,
    Scope, SpeedPolicy, pelt,
};

/// Period of the thermal model, in ns: short against any heat sink's time constant.
pub(super) const HEAT_NS: u64 = 100_000_000;
/// Once too hot, a package stays slow until it is this many degrees below the critical temperature.
const HEAT_HYSTERESIS_C: f64 = 5.0;

/// `1 / (cycles per ns)` of one thread for each level and number of busy threads.
pub(super) fn inverse_speeds(m: &Machine) -> Vec<Vec<f64>> {
    m.kinds
        .iter()
        .map(|k| {
            let mut table = vec![0.0; k.levels.len() * MAX_SMT];
            for (l, level) in k.levels.iter().enumerate() {
                for busy in 0..MAX_SMT {
                    let share = k.smt_throughput[busy.min(k.smt_throughput.len() - 1)];
                    table[l * MAX_SMT + busy] = 1.0 / (level.cycles_per_ns * k.ipc * share);
                }
            }
            table
        })
        .collect()
}

/// What a policy may know of a machine.
pub(super) fn platform(m: &Machine) -> Platform {
    let uw = |w: f64| (w * 1e6).min(f64::from(u32::MAX)) as u32;
    let strength = |k: &wattwise_model::machine::CoreKind| k.levels[0].cycles_per_ns * k.ipc;
    let strongest = m.kinds.iter().map(strength).fold(f64::MIN, f64::max);
    let domain = |d: &Domain| {
        let kind = &m.kinds[usize::from(d.kind)];
        let mut cpus: Vec<u16> =
            d.cores.iter().flat_map(|&c| m.cores[usize::from(c)].cpus.iter().copied()).collect();
        cpus.sort_unstable();
        let longest = d.transition.stall_ns.iter().copied().max().unwrap_or(0);
        DomainInfo {
            cpus,
            levels: kind
                .levels
                .iter()
                .map(|l| Level { khz: Khz(l.khz), busy_uw: Some(uw(l.busy_w)) })
                .collect(),
            transition_ns: d.transition.delay_ns + longest,
            capacity: (1024.0 * strength(kind) / strongest) as u16,
        }
    };
    let deepest = m.kinds.first().and_then(|k| k.idle.last()).map(|s| s.watts[s.watts.len() - 1]);
    let awake: f64 =
        m.packages.iter().map(|p| p.uncore_w - p.idle.last().map_or(p.uncore_w, |s| s.watts)).sum();
    Platform {
        domains: m.domains.iter().map(domain).collect(),
        cpus: m.cpus.len() as u16,
        tick_ns: m.tick.period_ns,
        load_invariant: m.load_invariant,
        deepest_idle_uw: deepest.map(uw),
        awake_uw: Some(uw(awake)),
    }
}

/// What a domain's clock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// Asked for, old speed in force.
    Delay,
    /// Standing still until this time.
    Stall(u64),
}

/// A frequency domain.
pub(super) struct DomainState {
    level: usize,
    granted: usize,
    target: usize,
    pending: Option<usize>,
    change: Change,
    boost_cap: usize,
    hot: bool,
    slowest: usize,
    /// Time of a cycle at each level, of one at the fastest.
    slowness: Vec<f64>,
    pub(super) transitions: u64,
}

impl DomainState {
    pub(super) fn new(d: &Domain, m: &Machine, khz: u32) -> DomainState {
        let levels = &m.kinds[usize::from(d.kind)].levels;
        let level = match khz {
            0 => 0,
            _ => levels.iter().rposition(|l| l.khz >= khz).unwrap_or(0),
        };
        DomainState {
            level,
            granted: level,
            target: level,
            pending: None,
            change: Change::None,
            boost_cap: 0,
            hot: false,
            slowest: levels.len() - 1,
            slowness: levels.iter().map(|l| levels[0].cycles_per_ns / l.cycles_per_ns).collect(),
            transitions: 0,
        }
    }

    /// The level in force.
    #[inline]
    pub(super) fn level(&self) -> usize {
        self.level
    }

    #[inline]
    pub(super) fn stalled(&self) -> bool {
        matches!(self.change, Change::Stall(_))
    }

    #[inline]
    pub(super) fn stalled_until(&self) -> u64 {
        if let Change::Stall(until) = self.change { until } else { 0 }
    }

    #[inline]
    pub(super) fn slowness(&self) -> f64 {
        self.slowness[self.level]
    }

    /// Speed in force, of 1024 of the domain's highest.
    #[inline]
    pub(super) fn pace(&self) -> u64 {
        (1024.0 / self.slowness[self.level]) as u64
    }

    fn effective(&self) -> usize {
        if self.hot { self.slowest } else { self.granted.max(self.boost_cap) }
    }
}

/// Idle and I/O-wait totals at a CPU's last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: u64,
    idle: u64,
    io: u64,
}

/// The speed policy and what it needs between decisions.
pub(super) struct Governor {
    policy: Box<dyn SpeedPolicy>,
    cadence: Cadence,
    // Of the cadence, and asked at every event.
    follows_tasks: bool,
    is_told: bool,
    cost_ns: u64,
    source: PowerSource,
    intent: Intent,
    samples: Vec<CpuSample>,
    domain_samples: Vec<DomainSample>,
    seen: Vec<Seen>,
    /// Last request by domain: most decisions change nothing.
    last: Vec<Khz>,
    /// Before when a domain's sampling governor is not to be asked again.
    domain_rests: Vec<u64>,
    phase_ns: u64,
    load_phase_ns: u64,
    /// The task that stands for a user-space policy.
    pub(super) daemon: u32,
    /// The daemon has slept and is to work next.
    pub(super) daemon_woke: bool,
    pub(super) decisions: u64,
}

impl Governor {
    pub(super) fn new(
        policy: Box<dyn SpeedPolicy>,
        m: &Machine,
        source: PowerSource,
        daemon: u32,
    ) -> Governor {
        let limits = |d: &Domain| {
            let levels = &m.kinds[usize::from(d.kind)].levels;
            DomainSample { khz: Khz(0), min: Khz(levels[levels.len() - 1].khz), max: Khz(levels[0].khz) }
        };
        Governor {
            cadence: policy.cadence(),
            follows_tasks: policy.cadence() == Cadence::Scheduler { interval_ns: 0 },
            is_told: matches!(policy.cadence(), Cadence::Scheduler { .. }),
            cost_ns: policy.cost_ns(),
            policy,
            source,
            intent: Intent::neutral(m.domains.len()),
            samples: vec![CpuSample::default(); m.cpus.len()],
            domain_samples: m.domains.iter().map(limits).collect(),
            seen: vec![Seen::default(); m.cpus.len()],
            last: vec![Khz(0); m.domains.len()],
            domain_rests: vec![0; m.domains.len()],
            phase_ns: 0,
            load_phase_ns: 0,
            daemon,
            daemon_woke: true,
            decisions: 0,
        }
    }

    /// First wake-up of a user-space policy's process.
    pub(super) fn daemon_first_ns(&self) -> Option<u64> {
        match self.cadence {
            Cadence::Daemon { first_ns, .. } => Some(first_ns + self.phase_ns),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// Whether the policy lives on ticks.
    #[inline]
    pub(super) fn ticks(&self) -> bool {
        self.cadence == Cadence::Tick
    }

    /// What it knows of a CPU's load, of 1024.
    pub(super) fn followed_util(&self, c: usize) -> u64 {
        self.policy.followed_util(c).unwrap_or(0)
    }

    /// Whether it reads what the scheduler expects of tasks.
    #[inline]
    pub(super) fn follows_tasks(&self) -> bool {
        self.follows_tasks
    }

    /// Whether the scheduler tells it of changes.
    #[inline]
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether a running CPU's ticks matter to it.
    #[inline]
    pub(super) fn busy_ticks(&self) -> bool {
        matches!(self.cadence, Cadence::Tick | Cadence::Scheduler { .. })
    }
}

impl Simulation<'_> {
    /// The policy takes over.
    pub(super) fn start_governor(&mut self, platform: &Platform, phase_ns: u64, load_phase_ns: u64) {
        (self.governor.phase_ns, self.governor.load_phase_ns) = (phase_ns, load_phase_ns);
        debug_assert_eq!(platform.domains.len(), self.domains.len());
        self.refresh_domains();
        let g = &mut self.governor;
        let obs = Observation {
            now_ns: load_phase_ns,
            asks: true,
            scope: Scope::All,
            cpus: &g.samples,
            domains: &g.domain_samples,
            source: g.source,
            temperature_mc: Some((self.packages[0].celsius * 1000.0) as i32),
        };
        g.policy.start(&obs, &mut g.intent);
        if let Cadence::KernelTimer { first_ns, .. } = g.cadence {
            let source = self.source(Source::Policy);
            self.calendar.set(source, first_ns + phase_ns);
        }
        // Whoever takes over finds its request granted: the work has not begun.
        for d in 0..self.domains.len() {
            if let Some(level) = self.requested_level(d) {
                let state = &mut self.domains[d];
                (state.granted, state.target) = (level, level);
            }
            self.settle_level(d);
        }
        for p in 0..self.packages.len() {
            self.boost_changed(p);
        }
    }

    /// The clock at whose multiples periods of the load begin.
    #[inline]
    pub(super) fn load_clock(&self) -> u64 {
        self.now + self.governor.load_phase_ns
    }

    /// The pace at which the scheduler's load of a CPU's task grows, of 1024.
    #[inline]
    pub(super) fn load_pace(&self, c: usize) -> u64 {
        if self.machine.load_invariant { self.domains[usize::from(self.cpus[c].domain)].pace() } else { 1024 }
    }

    /// The cost factor of a CPU's domain against its highest speed.
    #[inline]
    pub(super) fn slowest_factor(&self, c: usize) -> f64 {
        self.domains[usize::from(self.cpus[c].domain)].slowness()
    }

    /// From the scheduler, when what runs on `c` has changed and at its ticks: it brings the load up to date.
    #[inline(always)]
    pub(super) fn hook(&mut self, c: usize) {
        self.hook_from(c, true);
    }

    /// [`Simulation::hook`], on this CPU or on one that cannot set its clock: then its governor is not asked.
    #[inline(always)]
    pub(super) fn hook_from(&mut self, c: usize, here: bool) {
        if let Cadence::Scheduler { interval_ns } = self.governor.cadence {
            self.hook_every(c, interval_ns, here);
        }
    }

    /// Linux asks a governor only where the load has changed (`update_load_avg()`): one of its periods has ended since it was
    /// last brought up to date, a task came or went, or work wakes that waited for a device.
    #[inline]
    fn load_changed(&mut self, c: usize) -> bool {
        let period = self.load_clock() / pelt::PERIOD_NS;
        let s = &mut self.cpus[c];
        let ended = std::mem::replace(&mut s.load_period, period) != period;
        ended | std::mem::take(&mut s.moved)
    }

    fn hook_every(&mut self, c: usize, interval_ns: u64, here: bool) {
        let d = usize::from(self.cpus[c].domain);
        let asks = self.load_changed(c) && here;
        if interval_ns == 0 {
            self.observe(Scope::Cpu(c as u16), asks);
            if !asks {
                return;
            }
        } else if asks && self.now >= self.governor.domain_rests[d] {
            self.observe(Scope::Domain(d as u16), true);
            let rest = self.governor.intent.next_ns.unwrap_or(interval_ns);
            self.governor.domain_rests[d] = self.now + rest;
        } else {
            return;
        }
        let cost = self.governor.cost_ns;
        if cost > 0 {
            self.charge_hook(c, cost);
        }
    }

    /// The tick of a CPU, as the policy sees it.
    pub(super) fn observe_tick(&mut self, c: usize) {
        match self.governor.cadence {
            Cadence::Tick => {
                self.observe(Scope::Cpu(c as u16), true);
                let cost = self.governor.cost_ns;
                if cost > 0 {
                    self.charge_hook(c, cost);
                }
            }
            Cadence::Scheduler { .. } if self.cpus[c].phase != Phase::Idle => self.hook(c),
            _ => {}
        }
    }

    /// A CPU that slept without its tick tells how long it slept.
    pub(super) fn report_missed_ticks(&mut self, c: usize) {
        if self.now - self.governor.seen[c].at < self.machine.tick.period_ns {
            return;
        }
        // What it did before it slept saw no tick, so a policy of ticks does not see it either.
        let (idle, io) = self.cpus[c].idle.totals(self.cpus[c].phase, self.now);
        let seen = &mut self.governor.seen[c];
        seen.at = self.now - (idle - seen.idle) - (io - seen.io);
        self.observe(Scope::Cpu(c as u16), true);
    }

    /// The policy's kernel timer: an interrupt on the first CPU, and a decision.
    pub(super) fn policy_timer(&mut self) {
        let Cadence::KernelTimer { period_ns, .. } = self.governor.cadence else { return };
        self.observe(Scope::All, true);
        let again = self.governor.intent.next_ns.unwrap_or(period_ns).max(1);
        let source = self.source(Source::Policy);
        self.calendar.set(source, self.now + again);
        self.interrupt(0, self.governor.cost_ns);
    }

    /// The decision of a user-space policy; returns how long it sleeps.
    pub(super) fn poll_governor(&mut self) -> u64 {
        self.observe(Scope::All, true);
        match self.governor.cadence {
            Cadence::Daemon { period_ns, .. } => self.governor.intent.next_ns.unwrap_or(period_ns).max(1),
            _ => NEVER / 2,
        }
    }

    #[inline]
    fn sample(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let (idle, io) = s.idle.totals(s.phase, self.now);
        let seen = &mut self.governor.seen[c];
        let (d_idle, d_io) = (idle - seen.idle, io - seen.io);
        let busy_ns = self.now - seen.at - d_idle - d_io;
        *seen = Seen { at: self.now, idle, io };
        let io_wake = std::mem::take(&mut s.idle.io_wake);
        let tickless = std::mem::take(&mut s.idle.tickless) | !self.machine.tick.tickless;
        let moved_util = std::mem::take(&mut s.moved_util);
        let runnable = self.runnable(c);
        let task_util = if self.governor.follows_tasks() { self.expected_of(c) } else { 0 };
        self.governor.samples[c] = CpuSample {
            busy_ns,
            idle_ns: d_idle,
            iowait_ns: d_io,
            runnable,
            io_wake,
            tickless,
            task_util,
            moved_util,
        };
    }

    fn refresh_domains(&mut self) {
        for d in 0..self.domains.len() {
            let levels = &self.machine.kinds[usize::from(self.machine.domains[d].kind)].levels;
            self.governor.domain_samples[d].khz = Khz(levels[self.domains[d].target].khz);
        }
    }

    /// Asks the policy, and passes on what it wants.
    fn observe(&mut self, scope: Scope, asks: bool) {
        match scope {
            Scope::All => (0..self.cpus.len()).for_each(|c| self.sample(c)),
            Scope::Cpu(c) => self.sample(usize::from(c)),
            Scope::Domain(d) => {
                let domain = &self.machine.domains[usize::from(d)];
                for &core in &domain.cores {
                    self.threads_of(usize::from(core)).for_each(|c| self.sample(c));
                }
            }
        }
        let one = match scope {
            Scope::All => None,
            Scope::Cpu(c) => Some(usize::from(self.cpus[usize::from(c)].domain)),
            Scope::Domain(d) => Some(usize::from(d)),
        };
        let g = &mut self.governor;
        g.decisions += u64::from(asks);
        g.intent.next_ns = None;
        let hottest = self.packages.iter().map(|p| p.celsius).fold(f64::MIN, f64::max);
        let obs = Observation {
            now_ns: self.now + g.load_phase_ns,
            asks,
            scope,
            cpus: &g.samples,
            domains: &g.domain_samples,
            source: g.source,
            temperature_mc: Some((hottest * 1000.0) as i32),
        };
        g.policy.observe(&obs, &mut g.intent);
        match one {
            Some(d) => self.apply(d),
            None => (0..self.domains.len()).for_each(|d| self.apply(d)),
        }
    }

    /// The model's actuator: a request for the wanted level, if that is new.
    #[inline]
    fn apply(&mut self, d: usize) {
        let want = self.governor.intent.domains[d].desired;
        if want == self.governor.last[d] {
            return;
        }
        if let Some(level) = self.requested_level(d) {
            self.request(d, level);
        }
    }

    /// The slowest level that satisfies the intent; `None` without an opinion.
    fn requested_level(&mut self, d: usize) -> Option<usize> {
        let intent = self.governor.intent.domains[d];
        self.governor.last[d] = intent.desired;
        if intent.desired == Khz(0) {
            return None;
        }
        let levels = &self.machine.kinds[usize::from(self.machine.domains[d].kind)].levels;
        let at_least = |k: Khz| levels.iter().rposition(|l| l.khz >= k.0).unwrap_or(0);
        let mut level = at_least(intent.desired);
        if intent.min != Khz(0) {
            level = level.min(at_least(intent.min));
        }
        if intent.max != Khz(0) {
            let cap = levels.iter().position(|l| l.khz <= intent.max.0).unwrap_or(levels.len() - 1);
            level = level.max(cap);
        }
        Some(level)
    }

    fn request(&mut self, d: usize, level: usize) {
        let model = &self.machine.domains[d];
        let state = &mut self.domains[d];
        match state.change {
            Change::None if level == state.granted => {}
            Change::None => {
                state.target = level;
                if model.transition.delay_ns > 0 {
                    state.change = Change::Delay;
                    self.calendar.set(self.cpus.len() + d, self.now + model.transition.delay_ns);
                } else {
                    self.begin_stall(d);
                }
            }
            Change::Delay if model.transition.overlap == Overlap::Preempt => {
                state.target = level;
                self.calendar.set(self.cpus.len() + d, self.now + model.transition.delay_ns);
            }
            Change::Delay | Change::Stall(_) => {
                state.pending = (level != state.target).then_some(level);
            }
        }
        self.refresh_domain(d);
    }

    fn refresh_domain(&mut self, d: usize) {
        let levels = &self.machine.kinds[usize::from(self.machine.domains[d].kind)].levels;
        let state = &self.domains[d];
        self.governor.domain_samples[d].khz = Khz(levels[state.pending.unwrap_or(state.target)].khz);
    }

    /// The cores of a domain stand still while its clock changes.
    fn begin_stall(&mut self, d: usize) {
        let state = &mut self.domains[d];
        let model = &self.machine.domains[d];
        let levels = self.machine.kinds[usize::from(model.kind)].levels.len();
        let stall = model.transition.stall_ns[state.granted * levels + state.target];
        if stall == 0 || state.target == state.granted {
            return self.end_change(d);
        }
        let until = self.now + stall;
        state.change = Change::Stall(until);
        self.calendar.set(self.cpus.len() + d, until);
        for &core in &self.machine.domains[d].cores {
            for c in self.threads_of(usize::from(core)) {
                if matches!(self.cpus[c].phase, Phase::Task | Phase::Kernel) {
                    self.bank(c);
                    self.set_thread(c, ThreadState::Stall);
                    self.arm(c);
                }
            }
        }
    }

    /// A domain's delay or stall is over.
    pub(super) fn domain_event(&mut self, d: usize) {
        self.calendar.set(self.cpus.len() + d, NEVER);
        match self.domains[d].change {
            Change::None => {}
            Change::Delay => self.begin_stall(d),
            Change::Stall(_) => self.end_change(d),
        }
    }

    fn end_change(&mut self, d: usize) {
        let state = &mut self.domains[d];
        let was_stalled = state.stalled();
        state.change = Change::None;
        state.transitions += u64::from(state.granted != state.target);
        state.granted = state.target;
        self.settle_level(d);
        if was_stalled {
            for &core in &self.machine.domains[d].cores {
                for c in self.threads_of(usize::from(core)) {
                    if matches!(self.cpus[c].phase, Phase::Task | Phase::Kernel) {
                        self.bank(c);
                        self.begin_run(c);
                        self.arm(c);
                    }
                }
            }
        }
        if let Some(next) = self.domains[d].pending.take() {
            self.request(d, next);
        }
    }

    /// Brings the level in force in line with what is granted and allowed.
    fn settle_level(&mut self, d: usize) {
        let level = self.domains[d].effective();
        if level == self.domains[d].level {
            return;
        }
        self.domains[d].level = level;
        for &core in &self.machine.domains[d].cores {
            self.relevel(usize::from(core), level);
            for c in self.threads_of(usize::from(core)) {
                self.retime(c);
            }
        }
    }

    /// The number of awake cores of a package has changed, and with it perhaps what boost allows.
    #[inline]
    pub(super) fn boost_changed(&mut self, p: usize) {
        if !self.machine.packages[p].boosts {
            return;
        }
        let awake = self.packages[p].boosting();
        for i in 0..self.machine.packages[p].domains.len() {
            let d = usize::from(self.machine.packages[p].domains[i]);
            let boost = &self.machine.domains[d].boost;
            if boost.is_empty() {
                continue;
            }
            let cap = usize::from(boost[awake.min(boost.len() - 1)]);
            if cap != self.domains[d].boost_cap {
                self.domains[d].boost_cap = cap;
                self.settle_level(d);
            }
        }
    }

    /// Moves each package's temperature on, and slows it while it is too hot.
    pub(super) fn heat(&mut self) {
        self.settle();
        for p in 0..self.packages.len() {
            let thermal = self.machine.packages[p].thermal;
            let joules = self.package_joules(p);
            let package = &mut self.packages[p];
            let watts = (joules - package.joules) / (HEAT_NS as f64 * 1e-9);
            package.joules = joules;
            let towards = thermal.ambient_c + watts * thermal.c_per_w;
            package.celsius += (towards - package.celsius) * approach(HEAT_NS as f64 * 1e-9 / thermal.tau_s);
            package.peak_c = package.peak_c.max(package.celsius);
            let (hot, cool) = (
                package.celsius >= thermal.critical_c,
                package.celsius < thermal.critical_c - HEAT_HYSTERESIS_C,
            );
            for i in 0..self.machine.packages[p].domains.len() {
                let d = usize::from(self.machine.packages[p].domains[i]);
                if (hot && !self.domains[d].hot) || (cool && self.domains[d].hot) {
                    self.domains[d].hot = hot;
                    self.settle_level(d);
                }
            }
        }
        let source = self.source(Source::Heat);
        self.calendar.set(source, self.now + HEAT_NS);
    }
}

/// `1 - exp(-x)` for `x >= 0` by halving and its Taylor series: `libm` differs between platforms, this does not.
fn approach(x: f64) -> f64 {
    if x > 0.125 {
        let half = 1.0 - approach(x / 2.0);
        return 1.0 - half * half;
    }
    x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0))))
}

#[cfg(test)]
mod tests {
    use super::approach;

    #[test]
    fn approach_is_one_minus_exp() {
        for x in [0.0, 1e-6, 0.01, 0.1, 0.5, 1.0, 7.0, 40.0] {
            assert!((approach(x) - (1.0 - f64::exp(-x))).abs() < 1e-7, "{x}");
        }
    }
}
