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

use super::times::Residency;
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

/// How long a core was in a state at one of its levels.
#[derive(Clone, Copy)]
pub(super) struct TimeSlot {
    pub(super) level: usize,
    pub(super) code: usize,
    pub(super) ns: u64,
}

/// The slots of a level.
fn slots_of((level, codes): (usize, &[u64])) -> impl Iterator<Item = TimeSlot> + '_ {
    codes.iter().enumerate().map(move |(code, &ns)| TimeSlot { level, code, ns })
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

    /// Every slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = TimeSlot> + '_ {
        let levels = self.residency.times.chunks(usize::from(self.codes)).enumerate();
        levels.flat_map(slots_of)
    }

    /// Its energy at one level.
    pub(super) fn level_joules(&self, kind: &CoreKind, level: usize) -> f64 {
        let codes = usize::from(self.codes);
        let slots = slots_of((level, &self.residency.times[level * codes..][..codes]));
        slots.map(|s| self.slot_joules(kind, s)).sum()
    }

    pub(super) fn slot_joules(&self, kind: &CoreKind, slot: TimeSlot) -> f64 {
        slot.ns as f64 * 1e-9 * self.watts(kind, slot.level, slot.code)
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
        let of = |code: usize| self.slots().filter(|s| s.code == code).map(|s| s.ns).sum();
        (0..usize::from(self.awake)).map(of).collect()
    }

    /// Speed times time so far, in kHz x ns: the domain's clock, whatever the core did.
    pub(super) fn khz_ns(&self, kind: &CoreKind) -> f64 {
        self.slots().map(|s| f64::from(kind.levels[s.level].khz) * s.ns as f64).sum()
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
