//! Time in states, and what it adds up to.
//!
//! Energy is never integrated along the way. A thread, a core and a package each have a row of integer
//! nanoseconds, one slot a state, and at any time one slot is running; changing state closes one
//! slot and opens another. Joules are `slot time x slot watts`, summed in a fixed order when asked
//! for: exact to the nanosecond, the same bits everywhere, and the sum of its parts by construction.
//!
//! What a thread or a core does is a *code*, the same for both:
//!
//! | code | meaning |
//! |---|---|
//! | 0 to n - 1 | in the C-state of that index, of n |
//! | n | awake, not executing |
//! | n + 1, n + 2, ... | executing; a core: with 1, 2, ... threads |
//!
//! A row has a slot for each code at each level. A core with one thread does what its thread does: they
//! share the core's row.
//!
//! A C-state's entry time is spent awake, not asleep: the first `entry_ns` of a stay are booked as
//! stall when the stay is closed.

use super::{NONE, Phase, Simulation};
use crate::outcome::{CpuTimes, Energy, Outcome};
use wattwise_model::machine::{CState, Core, CoreKind, MAX_IDLE_STATES, MAX_SMT, Machine, Package};

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
    fn new(slots: usize, slot: usize) -> Row {
        Row { times: vec![0; slots], slot, since: 0, entry_left: 0, entry_slot: slot }
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

    /// Goes on in the slot that is as far after `to` as the present one is after `from`.
    #[inline]
    fn shift(&mut self, now: u64, from: usize, to: usize) {
        self.settle(now);
        self.slot = self.slot - from + to;
        self.entry_slot = self.entry_slot - from + to;
    }

    /// Opens the slot of a code, of those from `first` on; `entry_ns` has the C-states' entry times.
    #[inline]
    fn open_code(&mut self, now: u64, first: usize, code: u8, entry_ns: &[u64]) {
        self.open(now, first + usize::from(code));
        if let Some(&ns) = entry_ns.get(usize::from(code)) {
            self.entry_slot = first + entry_ns.len();
            self.entry_left = ns;
        }
    }
}

/// A core's rows.
#[derive(Clone, Debug)]
pub(super) struct CoreAccount {
    row: Row,
    /// A row for each thread where there are several.
    threads: Vec<Row>,
    /// What each thread does, and the core.
    thread_codes: [u8; MAX_SMT],
    code: u8,
    /// The code for being awake without executing: the number of C-states.
    awake: u8,
    busy: u8,
    first_cpu: u16,
    count: u16,
    level: usize,
    /// Codes at each level of `row`.
    codes: usize,
    /// Time of a cycle for each of its busy threads, or for one that is about to be.
    pub(super) ns_per_cycle: f64,
    /// None of its C-states, nor of its package's, takes time to enter or to leave.
    pub(super) wakes_at_once: bool,
    /// How deep it sleeps matters to its package, which has idle states or boosts.
    counted: bool,
    /// Entry time of each C-state.
    entry_ns: [u64; MAX_IDLE_STATES],
    pub(super) package: u16,
    pub(super) kind: u8,
}

impl CoreAccount {
    /// Awake at its domain's level.
    pub(super) fn new(core: &Core, machine: &Machine, level: usize, inverse_speed: &[f64]) -> CoreAccount {
        let kind = &machine.kinds[usize::from(core.kind)];
        let (awake, threads) = (kind.idle.len(), core.cpus.len());
        let row = |threads: usize| {
            let codes = awake + 1 + threads;
            Row::new(codes * kind.levels.len(), level * codes + awake)
        };
        let mut entry_ns = [0; MAX_IDLE_STATES];
        entry_ns.iter_mut().zip(&kind.idle).for_each(|(ns, s)| *ns = s.entry_ns);
        let package = &machine.packages[usize::from(core.package)];
        let no_exit = |s: &CState| s.entry_ns == 0 && s.exit_ns.iter().all(|&ns| ns == 0);
        let mut account = CoreAccount {
            row: row(threads),
            threads: if threads > 1 { vec![row(1); threads] } else { Vec::new() },
            thread_codes: [awake as u8; MAX_SMT],
            code: awake as u8,
            awake: awake as u8,
            busy: 0,
            first_cpu: core.cpus[0],
            count: threads as u16,
            level,
            codes: awake + 1 + threads,
            ns_per_cycle: 0.0,
            counted: !package.idle.is_empty() || package.boosts,
            wakes_at_once: package.idle.is_empty() && kind.idle.iter().all(no_exit),
            entry_ns,
            package: core.package,
            kind: core.kind,
        };
        account.look_up_speed(inverse_speed);
        account
    }

    /// Looks its speed up in the table of [`super::speed::inverse_speeds`].
    #[inline]
    fn look_up_speed(&mut self, inverse_speed: &[f64]) {
        self.ns_per_cycle = inverse_speed[self.level * MAX_SMT + self.busy_threads().max(1) - 1];
    }

    #[inline]
    pub(super) fn busy_threads(&self) -> usize {
        usize::from(self.busy)
    }

    /// The C-state that the core as a whole is in: the shallowest of its threads'.
    #[inline]
    pub(super) fn depth(&self) -> Option<usize> {
        (self.code < self.awake).then_some(usize::from(self.code))
    }

    /// Its own code from its threads'.
    #[inline]
    fn compute_code(&self) -> u8 {
        let codes = &self.thread_codes[..usize::from(self.count)];
        match self.busy {
            0 if codes.contains(&self.awake) => self.awake,
            0 => codes.iter().copied().min().unwrap_or(self.awake),
            busy => self.awake + busy,
        }
    }

    /// Opens the slot of a code.
    #[inline]
    fn open(&mut self, now: u64, code: u8) {
        self.code = code;
        self.row.open_code(now, self.level * self.codes, code, &self.entry_ns[..usize::from(self.awake)]);
    }

    /// Whether it has one thread and nothing else depends on what that does.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.count == 1 && !self.counted
    }

    /// Changes what the thread of a plain core does, and with it the core.
    #[inline(always)]
    pub(super) fn set_plain(&mut self, now: u64, state: ThreadState) {
        let code = self.code_of(state);
        if self.code != code {
            self.busy = u8::from(code > self.awake);
            self.open(now, code);
        }
    }

    #[inline(always)]
    fn code_of(&self, state: ThreadState) -> u8 {
        match state {
            ThreadState::Idle(depth) => depth,
            ThreadState::Stall => self.awake,
            ThreadState::Busy => self.awake + 1,
        }
    }

    /// Opens the slot of a code in the row of one of several threads.
    #[inline]
    fn open_thread(&mut self, now: u64, thread: usize, code: u8) {
        let entry_ns = &self.entry_ns[..usize::from(self.awake)];
        self.threads[thread].open_code(now, self.level * (entry_ns.len() + 2), code, entry_ns);
    }

    /// Books everything up to now.
    fn settle(&mut self, now: u64) {
        self.row.settle(now);
        self.threads.iter_mut().for_each(|row| row.settle(now));
    }

    /// Goes on at another level.
    fn relevel(&mut self, now: u64, level: usize) {
        let was = std::mem::replace(&mut self.level, level);
        self.row.shift(now, was * self.codes, level * self.codes);
        let codes = usize::from(self.awake) + 2;
        self.threads.iter_mut().for_each(|row| row.shift(now, was * codes, level * codes));
    }

    /// `(level, code, ns)` of every slot.
    fn slots(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let levels = self.row.times.chunks(self.codes).enumerate();
        levels.flat_map(|(level, codes)| codes.iter().enumerate().map(move |(code, &ns)| (level, code, ns)))
    }

    /// A thread's times so far, a slice of codes for each level.
    fn thread_times(&self, thread: usize) -> impl Iterator<Item = &[u64]> {
        self.threads.get(thread).unwrap_or(&self.row).times.chunks(usize::from(self.awake) + 2)
    }

    /// A thread's time in each C-state so far.
    fn thread_idle_ns(&self, thread: usize) -> impl Iterator<Item = u64> + '_ {
        (0..usize::from(self.awake)).map(move |code| self.thread_times(thread).map(|codes| codes[code]).sum())
    }

    /// The core's time in each C-state so far.
    fn core_idle_ns(&self) -> Vec<u64> {
        let of = |code: usize| self.slots().filter(|&(_, c, _)| c == code).map(|(.., ns)| ns).sum();
        (0..usize::from(self.awake)).map(of).collect()
    }

    /// Speed times time so far, in kHz x ns: the domain's clock, whatever the core did.
    pub(super) fn khz_ns(&self, kind: &CoreKind) -> f64 {
        self.slots().map(|(l, _, ns)| f64::from(kind.levels[l].khz) * ns as f64).sum()
    }

    /// Power in a slot.
    fn watts(&self, kind: &CoreKind, level: usize, code: usize) -> f64 {
        let awake = usize::from(self.awake);
        match code {
            c if c < awake => kind.idle[c].watts[level],
            c if c == awake => kind.levels[level].stall_w,
            c => kind.levels[level].busy_w * kind.smt_power[c - awake - 1],
        }
    }
}

/// A package's row: awake, then its idle states.
#[derive(Clone, Debug)]
pub(super) struct PackageAccount {
    row: Row,
    /// Cores awake, then in each C-state.
    cores: [u16; MAX_IDLE_STATES + 1],
    /// Degrees Celsius, and the energy at the last reading.
    pub(super) celsius: f64,
    pub(super) peak_c: f64,
    pub(super) joules: f64,
}

impl PackageAccount {
    pub(super) fn new(p: &Package) -> PackageAccount {
        let mut cores = [0; MAX_IDLE_STATES + 1];
        cores[0] = p.cores.len() as u16;
        let ambient_c = p.thermal.ambient_c;
        PackageAccount {
            row: Row::new(1 + p.idle.len(), 0),
            cores,
            celsius: ambient_c,
            peak_c: ambient_c,
            joules: 0.0,
        }
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
    /// Changes a CPU's state, and with it its core's and package's.
    // Inlined with all that a lone thread needs: the state is known where it is called, and so is half the work.
    #[inline(always)]
    pub(super) fn set_thread(&mut self, c: usize, state: ThreadState) {
        let index = usize::from(self.cpus[c].core);
        let core = &mut self.cores[index];
        let code = core.code_of(state);
        if core.count > 1 {
            self.set_one_of_several(index, c, code);
        } else if core.code != code {
            core.busy = u8::from(code > core.awake);
            self.set_core_code(index, code);
        }
    }

    /// [`Simulation::set_thread`] where the core has more of them.
    fn set_one_of_several(&mut self, index: usize, c: usize, code: u8) {
        let core = &mut self.cores[index];
        let (first, count) = (usize::from(core.first_cpu), usize::from(core.count));
        let thread = c - first;
        if core.thread_codes[thread] == code {
            return;
        }
        core.open_thread(self.now, thread, code);
        let was = std::mem::replace(&mut core.thread_codes[thread], code);
        let busy_before = core.busy;
        core.busy = busy_before + u8::from(code > core.awake) - u8::from(was > core.awake);
        self.shared_cores += usize::from(core.busy == 2 && busy_before == 1);
        self.shared_cores -= usize::from(core.busy == 1 && busy_before == 2);
        let busy_changed = core.busy != busy_before;
        core.look_up_speed(&self.inverse_speed[usize::from(core.kind)]);
        let code = core.compute_code();
        if code != core.code {
            self.set_core_code(index, code);
        }
        if busy_changed {
            // The siblings share the core's throughput: theirs has changed.
            for sibling in (first..first + count).filter(|&s| s != c) {
                self.retime(sibling);
            }
        }
    }

    #[inline(always)]
    fn set_core_code(&mut self, index: usize, code: u8) {
        let core = &mut self.cores[index];
        let before = core.code;
        core.open(self.now, code);
        if core.counted {
            // 0 is awake, then the C-states.
            let depth = |code: u8| if code < core.awake { usize::from(code) + 1 } else { 0 };
            let (package, before, after) = (usize::from(core.package), depth(before), depth(code));
            self.package_changed(package, before, after);
        }
    }

    /// A core of a package has gone from one depth to another.
    fn package_changed(&mut self, p: usize, before: usize, after: usize) {
        if before == after {
            return;
        }
        let model = &self.machine.packages[p];
        let package = &mut self.packages[p];
        package.cores[before] -= 1;
        package.cores[after] += 1;
        if !model.idle.is_empty() {
            let slot = package.fitting(model);
            if slot != package.row.slot {
                package.row.open(self.now, slot);
            }
        }
        if model.boosts {
            self.boost_changed(p);
        }
    }

    /// Books everything up to now.
    pub(super) fn settle(&mut self) {
        let now = self.now;
        self.cores.iter_mut().for_each(|c| c.settle(now));
        self.packages.iter_mut().for_each(|p| p.row.settle(now));
    }

    /// A domain's level has changed: close the books of its cores and open them at the new one.
    pub(super) fn relevel(&mut self, core: usize, level: usize) {
        let core = &mut self.cores[core];
        core.relevel(self.now, level);
        core.look_up_speed(&self.inverse_speed[usize::from(core.kind)]);
    }

    /// A CPU's time awake so far, and in each C-state.
    pub(super) fn cpu_times(&self, c: usize) -> (u64, Vec<u64>) {
        let core = &self.cores[usize::from(self.cpus[c].core)];
        let thread = c - usize::from(core.first_cpu);
        let awake = core.thread_times(thread).flat_map(|codes| &codes[usize::from(core.awake)..]).sum();
        (awake, core.thread_idle_ns(thread).collect())
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
                c if c < usize::from(account.awake) => {
                    let name = &kind.idle[c].name;
                    match energy.idle_j.iter_mut().find(|(n, _)| n == name) {
                        Some((_, j)) => *j += joules,
                        None => energy.idle_j.push((name.clone(), joules)),
                    }
                }
                c if c == usize::from(account.awake) => energy.stall_j += joules,
                _ => energy.busy_j += joules,
            }
        }
    }
    let cpus = (sim.cpus.iter().enumerate())
        .map(|(c, cpu)| {
            let kind = &machine.kinds[usize::from(cpu.kind)];
            let core = &sim.cores[usize::from(cpu.core)];
            let thread = c - usize::from(core.first_cpu);
            let (stall, busy) = (usize::from(core.awake), usize::from(core.awake) + 1);
            let levels = || core.thread_times(thread);
            CpuTimes {
                speed: kind.levels.iter().zip(levels()).map(|(l, t)| (l.khz, t[stall] + t[busy])).collect(),
                idle: kind.idle.iter().map(|s| s.name.clone()).zip(core.thread_idle_ns(thread)).collect(),
                busy_ns: levels().map(|t| t[busy]).sum(),
                stall_ns: levels().map(|t| t[stall]).sum(),
            }
        })
        .collect();
    Outcome {
        elapsed_ns: sim.now,
        energy,
        cpus,
        cores: sim.cores.iter().map(CoreAccount::core_idle_ns).collect(),
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
