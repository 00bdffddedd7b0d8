//! `consolidate`: few CPUs while that costs nobody anything, all at once when it does.
//!
//! What the others lack: they learn of a burst at their next look, up to a second later; they count a full CPU as
//! one CPU's worth of work however many tasks wait for it; and they never ask what gathering did to those tasks.
//!
//! 1. **Stay off** where nothing can be gained: one core, or C-states that all draw the same.
//! 2. **Open**, at the start and after each fault: all CPUs are kept. Over eight looks of `trial` (4 ms) the longest
//!    wait from runnable to running is noted: that is what the machine is like without us. It fades by 1/64 a look.
//! 3. **Needed** CPUs: the load is the CPUs' busy shares and one for each task that waits; its average rises at once
//!    and falls by an eighth a look. A CPU counts as full at `full` (60 %): the rest is head-room for bursts. With a
//!    load of half the machine, or a CPU that was busy for a whole `period`, all are needed: work that fills CPUs is
//!    never gathered.
//! 4. **Gather** by halves: from what is kept half-way to what is needed, a `trial` long; where that did no harm,
//!    further. At rest a look every `period` (20 ms).
//! 5. **Guard.** Harm is a wait of more than `ratio` (1.5) times what was noted while open, or of more than `bound`
//!    (2 ms). Then twice as many CPUs are kept, and never fewer for a hundred times as long as it may have lasted:
//!    harm stays under 1 % of the time, which is what a 99th percentile leaves. Each harm in a row doubles that.
//!
//! **Which CPUs.** Without knowledge of the machine, by package and core, siblings together. Told of its power
//! ([`CorePower`]): kinds of core that do a piece of work for the least energy first. The siblings of a core before
//! another core where the second thread's work costs no more than the same work on a core that would otherwise
//! sleep; else one thread of each core first. One package before the next where a package that sleeps saves power.

use super::{COST, CoreObservation, CorePolicy, CorePower, Cores, Place, order};
use crate::{CpuSample, MS, Param, ParamKind};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Looks that make up the note of what waits are like while open.
const NOTED: u32 = 8;
/// Harm may last this part of the time.
const REST_OF: u64 = 100;
/// A hold is doubled so many times at most.
const MOST_DOUBLINGS: u32 = 6;
/// The longest time between two looks while nothing can be decided.
const LONGEST_NS: u64 = 1000 * MS;
/// What waits are like while open is noted anew after so long.
const RENEWED_NS: u64 = 10_000 * MS;
/// The time between two looks where nothing can be gained: an hour.
const OFF_NS: u64 = 3_600_000 * MS;

struct Consolidate {
    cpus: usize,
    period_ns: u64,
    trial_ns: u64,
    cost_ns: u64,
    full_percent: u64,
    ratio_percent: u64,
    bound_ns: u64,
    /// False where the machine's power says that nothing can be gained.
    gains: bool,
    /// By [`cheapest_first`]; empty where the machine's power is not known.
    order: Vec<u16>,
    /// The last look, and how long after it the next comes.
    now_ns: u64,
    next_ns: u64,
    average_milli: u64,
    kept: usize,
    /// The longest wait while open, fading; 0: none seen.
    open_wait_ns: u64,
    /// Looks to take before the first step down from open, and when the last were done.
    to_note: u32,
    noted_at_ns: u64,
    /// Fewer CPUs are not kept before a time; that time after the last harm.
    floor: usize,
    floor_until_ns: u64,
    hold_ns: u64,
    doublings: u32,
}

impl Consolidate {
    /// CPUs that the load needs.
    fn needed(&self, obs: &CoreObservation<'_>) -> usize {
        // In a look that is shorter than a period a CPU may well be busy throughout by chance.
        let whole = |c: &CpuSample| c.busy_ns >= self.period_ns && c.not_busy_ns() == 0;
        if self.average_milli * 2 >= self.cpus as u64 * 1000 || obs.cpus.iter().any(whole) {
            return self.cpus;
        }
        let needed = (self.average_milli * 100).div_ceil(self.full_percent * 1000);
        (needed as usize).clamp(1, self.cpus)
    }

    /// The longest wait that is no harm.
    fn limit_ns(&self) -> u64 {
        match self.open_wait_ns {
            0 => self.bound_ns,
            open => (open * self.ratio_percent / 100).min(self.bound_ns).max(open),
        }
    }

    /// Tasks waited too long for CPUs that were kept for the length of a look: more are kept for a while.
    fn harmed(&mut self, look_ns: u64) {
        let calm = self.now_ns > self.floor_until_ns + self.hold_ns;
        self.doublings = if calm { 0 } else { (self.doublings + 1).min(MOST_DOUBLINGS) };
        self.hold_ns = (look_ns * REST_OF) << self.doublings;
        self.floor = (self.kept * 2).min(self.cpus);
        self.floor_until_ns = self.now_ns + self.hold_ns;
    }
}

impl CorePolicy for Consolidate {
    fn learn(&mut self, cpus: &[CorePower]) {
        self.gains = cpus.iter().any(|c| c.shallow_mw > c.deep_mw)
            && cpus.iter().any(|c| c.place.core != cpus[0].place.core);
        self.order = cheapest_first(cpus);
    }

    fn order(&self, places: &[Place]) -> Vec<u16> {
        if self.order.len() == places.len() { self.order.clone() } else { order(places) }
    }

    fn period_ns(&self) -> u64 {
        self.next_ns
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    fn start(&mut self) -> usize {
        self.kept = self.cpus;
        self.to_note = NOTED;
        self.next_ns = if self.gains { self.trial_ns } else { OFF_NS };
        self.cpus
    }

    fn observe(&mut self, obs: &CoreObservation<'_>) -> usize {
        let look_ns = obs.now_ns.saturating_sub(self.now_ns);
        self.now_ns = obs.now_ns;
        if !self.gains {
            return self.cpus;
        }
        let load = obs.busy_milli() + obs.waiting() * 1000;
        self.average_milli = load.max(self.average_milli - self.average_milli / 8);
        let needed = self.needed(obs);
        let open = self.kept == self.cpus;
        if open && needed < self.cpus && look_ns < 2 * self.trial_ns && obs.worst_wait_ns > 0 {
            self.open_wait_ns = obs.worst_wait_ns.max(self.open_wait_ns - self.open_wait_ns / 64);
            self.to_note = self.to_note.saturating_sub(1);
            self.noted_at_ns = self.now_ns;
        }
        if !open && obs.worst_wait_ns > self.limit_ns() {
            self.harmed(look_ns);
        }
        let held_ns = self.floor_until_ns.saturating_sub(self.now_ns);
        let stale = !open && self.now_ns - self.noted_at_ns > RENEWED_NS;
        let least = match () {
            () if stale || open && self.to_note > 0 => self.cpus,
            () if held_ns > 0 => self.floor,
            () => 1,
        };
        let target = needed.max(least);
        if target == self.cpus && !open {
            self.to_note = NOTED;
        }
        let before = self.kept;
        self.kept = if target < before { target + (before - target) / 2 } else { target };
        self.next_ns = match () {
            () if self.kept < before => self.trial_ns,
            () if self.kept < self.cpus || needed == self.cpus => self.period_ns,
            () if held_ns > 0 && self.floor == self.cpus => held_ns.clamp(self.trial_ns, LONGEST_NS),
            // Nothing woke: nothing was learnt, and nothing could be gained.
            () if obs.worst_wait_ns == 0 => self.period_ns,
            () => self.trial_ns,
        };
        self.kept
    }
}

/// CPUs in the order in which it is cheapest to keep them; see the module's head.
fn cheapest_first(cpus: &[CorePower]) -> Vec<u16> {
    let thread = |c: usize| cpus[..c].iter().filter(|o| o.place.core == cpus[c].place.core).count();
    let key = |&c: &u16| {
        let c = usize::from(c);
        let (p, at) = (&cpus[c], thread(c));
        let package = if p.package_saves_mw > 0 { p.place.package } else { 0 };
        let energy = u64::from(p.busy_mw) * 1_000_000 / u64::from(p.rate.max(1));
        // Power over work, of the second thread and of a core that would sleep otherwise, each times the other's work.
        let second = u64::from(p.busy_all_mw.saturating_sub(p.busy_mw)) * u64::from(p.rate);
        let sleeper =
            u64::from(p.busy_mw.saturating_sub(p.deep_mw)) * u64::from(p.rate_all.saturating_sub(p.rate));
        let core = usize::from(p.place.core);
        let (first, then) = if second <= sleeper { (core, at) } else { (at, core) };
        (package, energy, first, then)
    };
    let mut order: Vec<u16> = (0..cpus.len() as u16).collect();
    order.sort_by_cached_key(key);
    order
}

pub(super) static CONSOLIDATE: Cores = Cores {
    name: "consolidate",
    summary: "few CPUs with head-room, more at once when a task waits longer than it did on all",
    source: include_str!("consolidate.rs"),
    params: &[
        Param {
            name: "period",
            help: "time between two looks at rest",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 20.0 },
        },
        Param {
            name: "trial",
            help: "time between two looks while waits are noted and while CPUs are given up",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 4.0 },
        },
        Param {
            name: "full",
            help: "busy share at which a CPU counts as full",
            kind: ParamKind::Number { unit: "%", min: 10.0, max: 100.0, default: 60.0 },
        },
        Param {
            name: "ratio",
            help: "longest wait for a CPU that is tolerated, of the longest while all are open",
            kind: ParamKind::Number { unit: "%", min: 100.0, max: 10_000.0, default: 150.0 },
        },
        Param {
            name: "bound",
            help: "longest wait that is tolerated where it was shorter while all were open",
            kind: ParamKind::Number { unit: "us", min: 0.0, max: 1e6, default: 2000.0 },
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Consolidate {
            cpus,
            period_ns: s.ms("period"),
            trial_ns: s.ms("trial"),
            cost_ns: s.us("cost"),
            full_percent: s.count("full"),
            ratio_percent: s.count("ratio"),
            bound_ns: s.us("bound"),
            gains: true,
            order: Vec::new(),
            now_ns: 0,
            next_ns: s.ms("trial"),
            average_milli: 0,
            kept: cpus,
            open_wait_ns: 0,
            to_note: NOTED,
            noted_at_ns: 0,
            floor: 1,
            floor_until_ns: 0,
            hold_ns: 0,
            doublings: 0,
        })
    },
};
