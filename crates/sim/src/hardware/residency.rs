//! Time in states, and what it adds up to.
//!
//! Energy is never integrated along the way. A thread, a core and a package each have a residency: a row of integer
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
//! A residency has a slot for each code at each level. A core with one thread does what its thread does: they
//! share the core's.
//!
//! A C-state's entry time is spent awake, not asleep: the first `entry_ns` of a stay are booked as
//! stall when the stay is closed.

use super::uncore::UncoreAccount;
use wattwise_model::machine::{CState, Core, CoreKind, MAX_IDLE_STATES, MAX_SMT, MachineModel, Package};

/// What a hardware thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// In this C-state.
    Idle(u8),
    /// Awake, not executing.
    Stall,
    /// Executing.
    Busy,
}

/// Time in states, of which one is running.
#[derive(Clone, Debug)]
pub(super) struct Residency {
    pub(super) times: Box<[u64]>,
    since: u64,
    /// What is left of a C-state's entry, and the slot it is booked on.
    entry_left: u64,
    entry_slot: u32,
    slot: u32,
}

impl Residency {
    pub(super) fn new(slots: usize, slot: usize) -> Residency {
        let slot = slot as u32;
        Residency { times: vec![0; slots].into(), slot, since: 0, entry_left: 0, entry_slot: slot }
    }

    /// The slot that is running.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Books the time since the last booking.
    #[inline]
    pub(super) fn settle(&mut self, now: u64) {
        let mut passed = now - self.since;
        self.since = now;
        if self.entry_left > 0 {
            let entry = passed.min(self.entry_left);
            self.entry_left -= entry;
            self.times[self.entry_slot as usize] += entry;
            passed -= entry;
        }
        self.times[self.slot()] += passed;
    }

    #[inline]
    pub(super) fn open(&mut self, now: u64, slot: usize) {
        self.settle(now);
        self.slot = slot as u32;
        self.entry_left = 0;
    }

    /// Goes on in the slot that is as far after `to` as the present one is after `from`.
    #[inline]
    fn shift(&mut self, now: u64, from: usize, to: usize) {
        self.settle(now);
        self.slot = self.slot - from as u32 + to as u32;
        self.entry_slot = self.entry_slot - from as u32 + to as u32;
    }

    /// Opens the slot of a code, of those from `first` on; `entry_ns` has the C-states' entry times.
    #[inline]
    fn open_code(&mut self, now: u64, first: usize, code: u8, entry_ns: &[u64]) {
        self.open(now, first + usize::from(code));
        if let Some(&ns) = entry_ns.get(usize::from(code)) {
            self.entry_slot = (first + entry_ns.len()) as u32;
            self.entry_left = ns;
        }
    }
}

/// A core's residency. With one thread all that a change of state needs is in one cache line, and the times in another: there
/// may be hundreds of cores.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct CoreAccount {
    pub(super) residency: Residency,
    /// Time of a cycle for each of its busy threads, or for one that is about to be.
    pub(super) ns_per_cycle: f64,
    pub(super) level: u16,
    /// Codes at each level of `residency`.
    codes: u16,
    pub(super) first_cpu: u16,
    pub(super) count: u8,
    pub(super) code: u8,
    /// The code for being awake without executing: the number of C-states.
    pub(super) awake: u8,
    pub(super) busy: u8,
    pub(super) kind: u8,
    /// None of its C-states, nor of its package's, takes time to enter or to leave.
    pub(super) wakes_at_once: bool,
    /// How deep it sleeps matters to its package, which has idle states or boosts.
    pub(super) counted: bool,
    pub(super) package: u16,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CoreAccount>() == 64);

/// The threads of a core that has several.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    /// What each does.
    pub(super) codes: [u8; MAX_SMT],
    /// A residency for each.
    residencies: Vec<Residency>,
}

impl Threads {
    /// Awake at a level; without residencies where the core has one thread.
    pub(super) fn new(core: &CoreAccount, machine: &MachineModel) -> Threads {
        let kind = &machine.kinds[usize::from(core.kind)];
        let codes = usize::from(core.awake) + 2;
        let slot = usize::from(core.level) * codes + usize::from(core.awake);
        let threads = if core.count > 1 { usize::from(core.count) } else { 0 };
        Threads {
            codes: [core.awake; MAX_SMT],
            residencies: vec![Residency::new(codes * kind.levels.len(), slot); threads],
        }
    }
}

/// Entry time of each C-state of a kind of core, in ns.
pub(super) type EntryTimes = [u64; MAX_IDLE_STATES];

/// Entry times for each kind of core.
pub(super) fn entry_times(machine: &MachineModel) -> Vec<EntryTimes> {
    let of = |kind: &CoreKind| {
        let mut entry_ns = [0; MAX_IDLE_STATES];
        entry_ns.iter_mut().zip(&kind.idle).for_each(|(ns, s)| *ns = s.entry_ns);
        entry_ns
    };
    machine.kinds.iter().map(of).collect()
}

impl CoreAccount {
    /// Awake at its domain's level.
    pub(super) fn new(
        core: &Core,
        machine: &MachineModel,
        level: usize,
        inverse_speed: &[f64],
    ) -> CoreAccount {
        let kind = &machine.kinds[usize::from(core.kind)];
        let (awake, threads) = (kind.idle.len(), core.cpus.len());
        let codes = awake + 1 + threads;
        let package = &machine.packages[usize::from(core.package)];
        let no_exit = |s: &CState| s.entry_ns == 0 && s.exit_ns.iter().all(|&ns| ns == 0);
        let mut account = CoreAccount {
            residency: Residency::new(codes * kind.levels.len(), level * codes + awake),
            ns_per_cycle: 0.0,
            level: level as u16,
            codes: codes as u16,
            first_cpu: core.cpus[0],
            count: threads as u8,
            code: awake as u8,
            awake: awake as u8,
            busy: 0,
            kind: core.kind,
            wakes_at_once: package.idle.is_empty() && kind.idle.iter().all(no_exit),
            counted: !package.idle.is_empty() || package.boosts || package.uncore.is_some(),
            package: core.package,
        };
        account.look_up_speed(inverse_speed);
        account
    }

    /// Looks its speed up in the table of [`super::inverse_speeds`].
    #[inline]
    pub(super) fn look_up_speed(&mut self, inverse_speed: &[f64]) {
        self.ns_per_cycle = inverse_speed[usize::from(self.level) * MAX_SMT + self.busy_threads().max(1) - 1];
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
    pub(super) fn compute_code(&self, threads: &Threads) -> u8 {
        let codes = &threads.codes[..usize::from(self.count)];
        match self.busy {
            0 if codes.contains(&self.awake) => self.awake,
            0 => codes.iter().copied().min().unwrap_or(self.awake),
            busy => self.awake + busy,
        }
    }

    /// Opens the slot of a code.
    #[inline]
    pub(super) fn open(&mut self, now: u64, code: u8, entry_ns: &EntryTimes) {
        self.code = code;
        let first = usize::from(self.level) * usize::from(self.codes);
        self.residency.open_code(now, first, code, &entry_ns[..usize::from(self.awake)]);
    }

    /// Whether it has one thread and nothing else depends on what that does.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.count == 1 && !self.counted
    }

    /// Changes what the thread of a plain core does, and with it the core.
    #[inline(always)]
    pub(super) fn set_plain(&mut self, now: u64, state: ThreadState, entry_ns: &EntryTimes) {
        let code = self.code_of(state);
        if self.code != code {
            self.busy = u8::from(code > self.awake);
            self.open(now, code, entry_ns);
        }
    }

    #[inline(always)]
    pub(super) fn code_of(&self, state: ThreadState) -> u8 {
        match state {
            ThreadState::Idle(depth) => depth,
            ThreadState::Stall => self.awake,
            ThreadState::Busy => self.awake + 1,
        }
    }

    /// Opens the slot of a code in the residency of one of several threads.
    #[inline]
    pub(super) fn open_thread(
        &self,
        threads: &mut Threads,
        now: u64,
        thread: usize,
        code: u8,
        entry_ns: &EntryTimes,
    ) {
        let entry_ns = &entry_ns[..usize::from(self.awake)];
        let first = usize::from(self.level) * (entry_ns.len() + 2);
        threads.residencies[thread].open_code(now, first, code, entry_ns);
    }

    /// Books everything up to now.
    pub(super) fn settle(&mut self, threads: &mut Threads, now: u64) {
        self.residency.settle(now);
        threads.residencies.iter_mut().for_each(|r| r.settle(now));
    }

    /// Goes on at another level.
    pub(super) fn relevel(&mut self, threads: &mut Threads, now: u64, level: usize) {
        let was = usize::from(std::mem::replace(&mut self.level, level as u16));
        let codes = usize::from(self.codes);
        self.residency.shift(now, was * codes, level * codes);
        let codes = usize::from(self.awake) + 2;
        threads.residencies.iter_mut().for_each(|r| r.shift(now, was * codes, level * codes));
    }

    /// `(level, code, ns)` of every slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let levels = self.residency.times.chunks(usize::from(self.codes)).enumerate();
        levels.flat_map(|(level, codes)| codes.iter().enumerate().map(move |(code, &ns)| (level, code, ns)))
    }

    /// The same without the levels that were never in force: a core uses few of many.
    pub(super) fn used_slots(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let levels = self.residency.times.chunks(usize::from(self.codes)).enumerate();
        let used = levels.filter(|(_, codes)| codes.iter().fold(0, |any, ns| any | ns) > 0);
        used.flat_map(|(level, codes)| codes.iter().enumerate().map(move |(code, &ns)| (level, code, ns)))
    }

    /// A thread's times so far, a slice of codes for each level.
    pub(super) fn thread_times<'t>(
        &'t self,
        threads: &'t Threads,
        thread: usize,
    ) -> impl Iterator<Item = &'t [u64]> {
        let residency = threads.residencies.get(thread).unwrap_or(&self.residency);
        residency.times.chunks(usize::from(self.awake) + 2)
    }

    /// A thread's time in each C-state so far.
    pub(super) fn thread_idle_ns(&self, threads: &Threads, thread: usize) -> impl Iterator<Item = u64> {
        let of = move |code: usize| self.thread_times(threads, thread).map(|codes| codes[code]).sum();
        (0..usize::from(self.awake)).map(of)
    }

    /// The core's time in each C-state so far.
    pub(super) fn core_idle_ns(&self) -> Vec<u64> {
        let of = |code: usize| self.slots().filter(|&(_, c, _)| c == code).map(|(.., ns)| ns).sum();
        (0..usize::from(self.awake)).map(of).collect()
    }

    /// Speed times time so far, in kHz x ns: the domain's clock, whatever the core did.
    pub(super) fn khz_ns(&self, kind: &CoreKind) -> f64 {
        self.slots().map(|(l, _, ns)| f64::from(kind.levels[l].khz) * ns as f64).sum()
    }

    /// Power in a slot.
    pub(super) fn watts(&self, kind: &CoreKind, level: usize, code: usize) -> f64 {
        let awake = usize::from(self.awake);
        match code {
            c if c < awake => kind.idle[c].watts[level],
            c if c == awake => kind.levels[level].stall_w,
            c => kind.levels[level].busy_w * kind.smt_power[c - awake - 1],
        }
    }
}

/// A package's residency: awake, then its idle states.
#[derive(Clone, Debug)]
pub(super) struct PackageAccount {
    pub(super) residency: Residency,
    /// Cores awake, then in each C-state.
    pub(super) cores: [u16; MAX_IDLE_STATES + 1],
    /// Degrees Celsius, and the energy at the last reading.
    pub(super) celsius: f64,
    pub(super) peak_c: f64,
    pub(super) joules: f64,
    /// Its cores' energy at the last reading, without leakage; and what leakage had added to it until then.
    pub(super) core_joules: f64,
    pub(super) leakage_joules: f64,
    /// The slot that its own cores allow; kept where some state takes every package.
    pub(super) fits: usize,
    /// What follows its fastest core.
    pub(super) uncore: Option<UncoreAccount>,
}

impl PackageAccount {
    pub(super) fn new(p: &Package) -> PackageAccount {
        let mut cores = [0; MAX_IDLE_STATES + 1];
        cores[0] = p.cores.len() as u16;
        let ambient_c = p.thermal.ambient_c;
        PackageAccount {
            residency: Residency::new(1 + p.idle.len() + usize::from(p.uncore.is_some()), 0),
            uncore: p.uncore.as_ref().map(|u| UncoreAccount::new(p, u)),
            cores,
            fits: 0,
            celsius: ambient_c,
            peak_c: ambient_c,
            joules: 0.0,
            core_joules: 0.0,
            leakage_joules: 0.0,
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
        let slot = self.residency.slot();
        match &self.uncore {
            Some(uncore) if uncore.is_high(slot) => None,
            _ => slot.checked_sub(1),
        }
    }

    /// Goes to a slot of [`PackageAccount::fitting`].
    #[inline]
    pub(super) fn enter(&mut self, now: u64, fitting: usize) {
        let slot = if fitting == 0 { self.awake_slot() } else { fitting };
        if slot != self.residency.slot() {
            self.residency.open(now, slot);
        }
    }

    /// The slot for being awake.
    #[inline]
    pub(super) fn awake_slot(&self) -> usize {
        self.uncore.as_ref().map_or(0, UncoreAccount::awake_slot)
    }

    /// Books what has followed the fastest core up to now; before anything else happens to the package then.
    #[inline]
    pub(super) fn advance(&mut self, now: u64) {
        if let Some(uncore) = &mut self.uncore {
            uncore.advance(now, &mut self.residency);
        }
    }

    /// Books everything up to now.
    pub(super) fn settle(&mut self, now: u64) {
        self.advance(now);
        self.residency.settle(now);
    }

    /// Time awake, then in each of its idle states.
    pub(super) fn times(&self) -> Vec<u64> {
        let mut times = self.residency.times.to_vec();
        if self.uncore.is_some() {
            let high = times.pop().unwrap_or(0);
            times[0] += high;
        }
        times
    }

    /// The deepest package state that the cores' depths allow, as a slot.
    pub(super) fn fitting(&self, p: &Package) -> usize {
        if self.cores[0] > 0 {
            return 0;
        }
        let shallowest = self.cores[1..].iter().position(|&n| n > 0).unwrap_or(0);
        p.idle.iter().rposition(|s| usize::from(s.needs) <= shallowest).map_or(0, |i| i + 1)
    }
}
