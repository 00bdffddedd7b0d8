//! Time in states, and what it adds up to.
//!
//! Energy is never integrated along the way. A CPU, a core and a package each have a row of integer
//! nanoseconds, one slot a state, and at any time one slot is running; changing state closes one
//! slot and opens another. Joules are `slot time x slot watts`, summed in a fixed order when asked
//! for: exact to the nanosecond, the same bits everywhere, and the sum of its parts by construction.
//!
//! A C-state's entry time is spent awake, not asleep: the first `entry_ns` of a stay are booked as
//! stall when the stay is closed.

use super::{NONE, Phase, Simulation};
use crate::machine::{Core, CoreKind, MAX_SMT, Machine, Package};
use crate::outcome::{CpuTimes, Energy, Outcome};

/// What a hardware thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// In this C-state.
    Idle(u8),
    /// Awake, not executing.
    Stall,
    /// Executing.
    Busy,
}

/// A row of times of which one is running.
#[derive(Clone, Debug)]
struct Row {
    times: Vec<u64>,
    slot: usize,
    since: u64,
    /// What is left of a C-state's entry, and the slot it is booked on.
    entry_left: u64,
    entry_slot: usize,
}

impl Row {
    fn new(slots: usize) -> Row {
        Row { times: vec![0; slots], slot: 0, since: 0, entry_left: 0, entry_slot: 0 }
    }

    /// Books the time since the last booking.
    #[inline]
    fn settle(&mut self, now: u64) {
        let mut passed = now - self.since;
        self.since = now;
        if self.entry_left > 0 {
            let entry = passed.min(self.entry_left);
            self.entry_left -= entry;
            self.times[self.entry_slot] += entry;
            passed -= entry;
        }
        self.times[self.slot] += passed;
    }

    #[inline]
    fn open(&mut self, now: u64, slot: usize) {
        self.settle(now);
        self.slot = slot;
        self.entry_left = 0;
    }
}

/// A CPU's row: C-states, then for each level busy and stalled.
#[derive(Clone, Debug)]
pub(super) struct CpuAccount {
    row: Row,
    idle_states: usize,
    pub(super) state: ThreadState,
}

impl CpuAccount {
    pub(super) fn new(kind: &CoreKind) -> CpuAccount {
        let idle_states = kind.idle.len();
        CpuAccount {
            row: Row::new(idle_states + 2 * kind.levels.len()),
            idle_states,
            state: ThreadState::Idle(0),
        }
    }

    #[inline]
    fn slot(&self, level: usize, state: ThreadState) -> usize {
        match state {
            ThreadState::Idle(s) => usize::from(s),
            ThreadState::Busy => self.idle_states + 2 * level,
            ThreadState::Stall => self.idle_states + 2 * level + 1,
        }
    }

    /// Time awake so far.
    pub(super) fn awake_ns(&self) -> u64 {
        self.row.times[self.idle_states..].iter().sum()
    }

    /// Time in each C-state so far.
    pub(super) fn idle_ns(&self) -> &[u64] {
        &self.row.times[..self.idle_states]
    }
}

/// A core's row: for each level its C-states, awake without executing, and 1, 2, ... busy threads.
#[derive(Clone, Debug)]
pub(super) struct CoreAccount {
    row: Row,
    threads: [ThreadState; MAX_SMT],
    first_cpu: u16,
    count: u8,
    busy: u8,
    level: usize,
    codes: usize,
    idle_states: usize,
    code: usize,
    pub(super) package: u16,
    pub(super) kind: u8,
}

impl CoreAccount {
    pub(super) fn new(core: &Core, machine: &Machine) -> CoreAccount {
        let kind = &machine.kinds[usize::from(core.kind)];
        let codes = kind.idle.len() + 1 + core.cpus.len();
        CoreAccount {
            row: Row::new(codes * kind.levels.len()),
            threads: [ThreadState::Idle(0); MAX_SMT],
            first_cpu: core.cpus[0],
            count: core.cpus.len() as u8,
            busy: 0,
            level: 0,
            codes,
            idle_states: kind.idle.len(),
            code: 0,
            package: core.package,
            kind: core.kind,
        }
    }

    #[inline]
    pub(super) fn busy_threads(&self) -> usize {
        usize::from(self.busy)
    }

    /// The C-state that the core as a whole is in: the shallowest of its threads'.
    #[inline]
    pub(super) fn depth(&self) -> Option<usize> {
        (self.code < self.idle_states).then_some(self.code)
    }

    fn compute_code(&self) -> usize {
        if self.busy > 0 {
            return self.idle_states + usize::from(self.busy);
        }
        let mut depth = self.idle_states;
        for t in &self.threads[..usize::from(self.count)] {
            match t {
                ThreadState::Idle(s) => depth = depth.min(usize::from(*s)),
                ThreadState::Stall | ThreadState::Busy => return self.idle_states,
            }
        }
        depth
    }

    /// `(level, code, ns)` of every slot.
    fn slots(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        self.row.times.iter().enumerate().map(|(i, &ns)| (i / self.codes, i % self.codes, ns))
    }

    /// Speed times time so far, in kHz x ns: the domain's clock, whatever the core did.
    pub(super) fn khz_ns(&self, kind: &CoreKind) -> f64 {
        self.slots().map(|(l, _, ns)| f64::from(kind.levels[l].khz) * ns as f64).sum()
    }

    /// Power in a slot.
    fn watts(&self, kind: &CoreKind, level: usize, code: usize) -> f64 {
        match code {
            c if c < self.idle_states => kind.idle[c].watts[level],
            c if c == self.idle_states => kind.levels[level].stall_w,
            c => kind.levels[level].busy_w * kind.smt_power[c - self.idle_states - 1],
        }
    }
}

/// A package's row: awake, then its idle states.
#[derive(Clone, Debug)]
pub(super) struct PackageAccount {
    row: Row,
    /// Cores awake, then in each C-state.
    cores: Vec<u16>,
    /// Degrees Celsius, and the energy at the last reading.
    pub(super) celsius: f64,
    pub(super) peak_c: f64,
    pub(super) joules: f64,
}

impl PackageAccount {
    pub(super) fn new(p: &Package) -> PackageAccount {
        let mut cores = vec![0; crate::machine::MAX_IDLE_STATES + 1];
        cores[0] = p.cores.len() as u16;
        let row = Row::new(1 + p.idle.len());
        PackageAccount { row, cores, celsius: p.thermal.ambient_c, peak_c: p.thermal.ambient_c, joules: 0.0 }
    }

    /// Cores awake.
    #[inline]
    pub(super) fn awake(&self) -> usize {
        usize::from(self.cores[0])
    }

    /// Cores that count against the boost limit: awake or in the first C-state, whose clock may run on at once.
    #[inline]
    pub(super) fn boosting(&self) -> usize {
        usize::from(self.cores[0] + self.cores[1])
    }

    /// The package idle state it is in.
    #[inline]
    pub(super) fn idle_state(&self) -> Option<usize> {
        self.row.slot.checked_sub(1)
    }

    /// The deepest package state that the cores' depths allow, as a slot.
    fn fitting(&self, p: &Package) -> usize {
        if self.cores[0] > 0 {
            return 0;
        }
        let shallowest = self.cores[1..].iter().position(|&n| n > 0).unwrap_or(0);
        p.idle.iter().rposition(|s| usize::from(s.needs) <= shallowest).map_or(0, |i| i + 1)
    }
}

impl Simulation<'_> {
    /// Puts a CPU's first state in the books: awake at its domain's level.
    pub(super) fn start_account(&mut self, c: usize) {
        let (core, domain) = (usize::from(self.cpus[c].core), usize::from(self.cpus[c].domain));
        let level = self.domains[domain].level();
        let account = &mut self.cpus[c].account;
        account.state = ThreadState::Stall;
        account.row.slot = account.slot(level, ThreadState::Stall);
        let core = &mut self.cores[core];
        core.level = level;
        core.threads[c - usize::from(core.first_cpu)] = ThreadState::Stall;
        core.code = core.idle_states;
        core.row.slot = level * core.codes + core.code;
    }

    /// A CPU runs something: busy, or stalled with its domain.
    #[inline]
    pub(super) fn thread_busy(&mut self, c: usize) {
        let stalled = self.domains[usize::from(self.cpus[c].domain)].stalled();
        self.set_thread(c, if stalled { ThreadState::Stall } else { ThreadState::Busy });
    }

    /// Changes a CPU's state, and with it its core's and package's.
    #[inline]
    pub(super) fn set_thread(&mut self, c: usize, state: ThreadState) {
        let now = self.now;
        let s = &mut self.cpus[c];
        if s.account.state == state {
            return;
        }
        let core_index = usize::from(s.core);
        let core = &mut self.cores[core_index];
        let slot = s.account.slot(core.level, state);
        s.account.row.open(now, slot);
        if let ThreadState::Idle(depth) = state {
            s.account.row.entry_slot = s.account.slot(core.level, ThreadState::Stall);
            s.account.row.entry_left =
                self.machine.kinds[usize::from(s.kind)].idle[usize::from(depth)].entry_ns;
        }
        let was = s.account.state;
        s.account.state = state;
        core.threads[c - usize::from(core.first_cpu)] = state;
        let busy_before = core.busy;
        core.busy = core.busy + u8::from(state == ThreadState::Busy) - u8::from(was == ThreadState::Busy);
        self.shared_cores += usize::from(core.busy == 2 && busy_before == 1);
        self.shared_cores -= usize::from(core.busy == 1 && busy_before == 2);
        let code = core.compute_code();
        if code != core.code {
            self.set_core_code(core_index, code);
        }
        let core = &self.cores[core_index];
        if core.count > 1 && core.busy != busy_before {
            // The siblings share the core's throughput: theirs has changed.
            let (first, count) = (usize::from(core.first_cpu), usize::from(core.count));
            for sibling in (first..first + count).filter(|&s| s != c) {
                self.retime(sibling);
            }
        }
    }

    fn set_core_code(&mut self, core_index: usize, code: usize) {
        let now = self.now;
        let core = &mut self.cores[core_index];
        let before = core.depth();
        core.code = code;
        core.row.open(now, core.level * core.codes + code);
        let after = core.depth();
        if let Some(d) = after {
            core.row.entry_slot = core.level * core.codes + core.idle_states;
            core.row.entry_left = self.machine.kinds[usize::from(core.kind)].idle[d].entry_ns;
        }
        if before == after {
            return;
        }
        let p = usize::from(core.package);
        let package = &mut self.packages[p];
        package.cores[before.map_or(0, |d| d + 1)] -= 1;
        package.cores[after.map_or(0, |d| d + 1)] += 1;
        let model = &self.machine.packages[p];
        if !model.idle.is_empty() {
            let slot = package.fitting(model);
            if slot != package.row.slot {
                package.row.open(now, slot);
            }
        }
        if model.boosts {
            self.boost_changed(p);
        }
    }

    /// Books everything up to now.
    pub(super) fn settle(&mut self) {
        let now = self.now;
        self.cpus.iter_mut().for_each(|c| c.account.row.settle(now));
        self.cores.iter_mut().for_each(|c| c.row.settle(now));
        self.packages.iter_mut().for_each(|p| p.row.settle(now));
    }

    /// A domain's level has changed: close the books of its cores and open them at the new one.
    pub(super) fn relevel(&mut self, core_index: usize, level: usize) {
        let now = self.now;
        let core = &mut self.cores[core_index];
        core.row.settle(now);
        core.level = level;
        core.row.slot = level * core.codes + core.code;
        core.row.entry_slot = level * core.codes + core.idle_states;
        let (first, count) = (usize::from(core.first_cpu), usize::from(core.count));
        for c in first..first + count {
            let account = &mut self.cpus[c].account;
            account.row.settle(now);
            account.row.slot = account.slot(level, account.state);
            account.row.entry_slot = account.slot(level, ThreadState::Stall);
        }
    }

    /// CPUs of a core.
    pub(super) fn threads_of(&self, core: usize) -> std::ops::Range<usize> {
        let first = usize::from(self.cores[core].first_cpu);
        first..first + usize::from(self.cores[core].count)
    }

    /// A package's energy so far, its cores' included; call [`Simulation::settle`] first.
    pub(super) fn package_joules(&self, p: usize) -> f64 {
        let cores = self.machine.packages[p].cores.iter();
        cores.map(|&c| self.core_joules(usize::from(c))).sum::<f64>() + self.uncore_joules(p)
    }

    fn core_joules(&self, core: usize) -> f64 {
        let account = &self.cores[core];
        let kind = &self.machine.kinds[usize::from(account.kind)];
        account.slots().map(|(l, code, ns)| ns as f64 * 1e-9 * account.watts(kind, l, code)).sum()
    }

    fn uncore_joules(&self, p: usize) -> f64 {
        let model = &self.machine.packages[p];
        let watts = |slot: usize| if slot == 0 { model.uncore_w } else { model.idle[slot - 1].watts };
        self.packages[p].row.times.iter().enumerate().map(|(s, &ns)| ns as f64 * 1e-9 * watts(s)).sum()
    }

    /// The whole machine's energy so far; call [`Simulation::settle`] first.
    pub(super) fn total_joules(&self) -> f64 {
        let packages: f64 = (0..self.packages.len()).map(|p| self.package_joules(p)).sum();
        packages + self.machine.platform_w * self.now as f64 * 1e-9
    }

    /// Threads of `c`'s core all idle?
    pub(super) fn core_is_idle(&self, c: usize) -> bool {
        self.threads_of(usize::from(self.cpus[c].core)).all(|t| self.cpus[t].phase == Phase::Idle)
    }

    /// Tasks on a CPU, the running one included.
    #[inline]
    pub(super) fn runnable(&self, c: usize) -> u32 {
        self.cpus[c].queue.len() as u32 + u32::from(self.cpus[c].current != NONE)
    }
}

/// Everything that a run has to say; the books must be settled.
pub(super) fn outcome(sim: &Simulation<'_>) -> Outcome {
    let machine = sim.machine;
    let mut energy = Energy {
        busy_j: 0.0,
        stall_j: 0.0,
        idle_j: Vec::new(),
        uncore_j: (0..sim.packages.len()).map(|p| sim.uncore_joules(p)).sum(),
        platform_j: machine.platform_w * sim.now as f64 * 1e-9,
        package_j: (0..sim.packages.len()).map(|p| sim.package_joules(p)).collect(),
    };
    for account in &sim.cores {
        let kind = &machine.kinds[usize::from(account.kind)];
        for (level, code, ns) in account.slots() {
            let joules = ns as f64 * 1e-9 * account.watts(kind, level, code);
            match code {
                c if c < account.idle_states => {
                    let name = &kind.idle[c].name;
                    match energy.idle_j.iter_mut().find(|(n, _)| n == name) {
                        Some((_, j)) => *j += joules,
                        None => energy.idle_j.push((name.clone(), joules)),
                    }
                }
                c if c == account.idle_states => energy.stall_j += joules,
                _ => energy.busy_j += joules,
            }
        }
    }
    let cpus = sim
        .cpus
        .iter()
        .map(|c| {
            let kind = &machine.kinds[usize::from(c.kind)];
            let (idle, awake) = c.account.row.times.split_at(kind.idle.len());
            CpuTimes {
                speed: kind.levels.iter().zip(awake.chunks(2)).map(|(l, t)| (l.khz, t[0] + t[1])).collect(),
                idle: kind.idle.iter().map(|s| s.name.clone()).zip(idle.iter().copied()).collect(),
                busy_ns: awake.iter().step_by(2).sum(),
                stall_ns: awake.iter().skip(1).step_by(2).sum(),
            }
        })
        .collect();
    Outcome {
        elapsed_ns: sim.now,
        energy,
        cpus,
        packages: sim.packages.iter().map(|p| p.row.times.clone()).collect(),
        wake_latency: sim.wake_latency.clone(),
        transitions: sim.domains.iter().map(|d| d.transitions).sum(),
        wakeups: sim.wakeups,
        idle_exits: sim.idle_exits,
        migrations: sim.migrations,
        decisions: sim.governor.decisions,
        cycles: sim.cycles,
        peak_c: sim.packages.iter().map(|p| p.peak_c).fold(f64::MIN, f64::max),
        events: sim.events,
    }
}
