//! `consolidate`: few CPUs while that costs nobody anything, all at once when it does.
//!
//! What the others lack: they learn of a burst at their next look, up to a second later; they count a full CPU as
//! one CPU's worth of work however many tasks wait for it; and they never ask what gathering did to those tasks.
//!
//! 1. **Stay off** where nothing can be gained: one core; C-states that all draw the same; tasks that wake so seldom
//!    that each core in use has sixteen times the stay that its deep C-states need; one core in use. How often they
//!    wake is a mean over a hundred wake-ups or four seconds: of the five that a look may have, it would be chance, and
//!    so would be what is done upon it. It looks 20 ms later, then twice as long later each time, up to four seconds.
//! 2. **Note** what waits are like without us: for `note` (20 ms) all CPUs are open, after as long to settle. The
//!    99th percentile of the time from runnable to running is kept, anew every 10 s; where no percentile is known, the
//!    mean, and where that is not, the longest.
//! 3. **Needed** CPUs: the load is the CPUs' busy shares and one for each task that waits; its average rises at once
//!    and falls by an eighth a look. A CPU counts as full at `full` (80 %): the rest is head-room for bursts. While a
//!    CPU is busy for a whole `period` all are needed: work that is CPU-bound is never gathered.
//! 4. **Gather** by halves: from what is kept half-way to what is needed, for a `trial` (4 ms); where that did no harm,
//!    further. At rest a look every `period` (20 ms).
//! 5. **Guard.** Harm is such a wait of more than `ratio` (150 %) of the note, or one of more than `bound` (2 ms)
//!    and more than the longest of the note. Then twice as many CPUs are kept, and never fewer for a hundred times as
//!    long as it may have lasted: harm stays under 1 % of the time, which is what a 99th percentile leaves. Each harm
//!    in a row doubles that.
//!
//! It follows nobody's source. What it does not see: work that shares a core and gets less done without waiting longer, such as tasks that hand
//! a lock on.
//!
//! **Which CPUs.** Without knowledge of the machine, by package and core, siblings together. Told of its power
//! ([`CorePower`]): kinds of core that do a piece of work for the least energy first. The siblings of a core before
//! another core where the second thread's work costs no more than the same work on a core that would otherwise
//! sleep; else one thread of each core first. One package before the next where a package that sleeps saves power.

use super::{COST, CoreObservation, CorePolicy, CorePower, Cores, CpuPlace, Draw, order};
use crate::{CpuSample, MS, Param, ParamKind};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A core gains nothing when tasks leave it this many times the stay that its deep C-states need.
const STAYS: u64 = 16;
/// Wake-ups whose mean distance is within a tenth.
const TELLING: u64 = 100;
/// Harm may last this part of the time.
const REST_OF: u64 = 100;
/// A hold is doubled so many times at most.
const MOST_DOUBLINGS: u32 = 6;
/// The longest time between two looks while nothing can be decided.
const LONGEST_NS: u64 = 4000 * MS;
/// What waits are like while open is noted anew after so long.
const RENEWED_NS: u64 = 10_000 * MS;
/// The time between two looks where nothing can be gained: an hour.
const OFF_NS: u64 = 3_600_000 * MS;

/// What a look at an open machine showed.
struct Note {
    usual_ns: u64,
    longest_ns: u64,
}

/// What stands for all waits: the same kind in every look of a machine.
fn usual_ns(obs: &CoreObservation<'_>) -> u64 {
    obs.wait_p99_ns.or(obs.wait_mean_ns).unwrap_or(obs.worst_wait_ns)
}

/// Wake-ups, and the time that the cores in use had for them.
#[derive(Default)]
struct WakeupsSeen {
    wakeups: u64,
    ns: u64,
    core_ns: u64,
    /// Cores in use, in the look that had most.
    most: u64,
}

struct Consolidate {
    cpus: usize,
    rest_ns: u64,
    trial_ns: u64,
    note_ns: u64,
    cost_ns: u64,
    full_percent: u64,
    ratio_percent: u64,
    bound_ns: u64,
    /// False where the machine's power says that nothing can ever be gained.
    gains: bool,
    /// Cores, and the stay that they need to sleep deeply; 0 where the machine is not known.
    cores: u64,
    deep_stay_ns: u64,
    /// By [`cheapest_first`]; empty where the machine's power is not known.
    order: Vec<u16>,
    /// The last look, and how long after it the next comes.
    now_ns: u64,
    next_ns: u64,
    average_milli: u64,
    kept: usize,
    /// What the machine is like while all CPUs are open, and when that was noted; `None`: to be noted.
    note: Option<Note>,
    noted_at_ns: u64,
    /// Whether gathering was worth it when last asked, and what was seen since.
    worth_it: bool,
    seen: WakeupsSeen,
    /// All CPUs have been open for a look.
    settled: bool,
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
        let whole = |c: &CpuSample| c.busy_ns >= self.rest_ns && c.not_busy_ns() == 0;
        if obs.cpus.iter().any(whole) {
            return self.cpus;
        }
        let needed = (self.average_milli * 100).div_ceil(self.full_percent * 1000);
        (needed as usize).clamp(1, self.cpus)
    }

    /// Whether tasks wake so often that cores which are left alone sleep more deeply; none while too few woke to tell.
    fn is_worth_it(&mut self, obs: &CoreObservation<'_>, look_ns: u64) -> Option<bool> {
        let (Some(n), true) = (obs.wakeups, self.deep_stay_ns > 0) else { return Some(true) };
        let used = (obs.cpus.iter().filter(|c| c.busy_ns > 0).count() as u64).min(self.cores);
        self.seen.wakeups += n;
        self.seen.ns += look_ns;
        self.seen.core_ns += look_ns.saturating_mul(used);
        self.seen.most = self.seen.most.max(used);
        if self.seen.wakeups < TELLING && self.seen.ns < LONGEST_NS {
            return None;
        }
        let seen = core::mem::take(&mut self.seen);
        // While all are open: where one core does everything already, nothing is left to gather.
        let one = seen.most < 2 && self.kept == self.cpus;
        // Time of the cores in use / wake-ups is the mean time between two of them on one core.
        Some(!one && seen.core_ns < seen.wakeups.saturating_mul(STAYS * self.deep_stay_ns))
    }

    /// Whether tasks waited too long.
    fn harms(&self, obs: &CoreObservation<'_>) -> bool {
        let Some(note) = &self.note else { return obs.worst_wait_ns > self.bound_ns };
        obs.worst_wait_ns > self.bound_ns.max(note.longest_ns)
            || usual_ns(obs) > note.usual_ns * self.ratio_percent / 100
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
        // Where nobody knows what C-states draw, the deeper ones draw less.
        self.gains = cpus.iter().any(|c| c.draw.is_none_or(|d| d.shallow_mw > d.deep_mw))
            && cpus.iter().any(|c| c.place.core != cpus[0].place.core);
        self.cores = (0..cpus.len())
            .filter(|&c| cpus[..c].iter().all(|o| o.place.core != cpus[c].place.core))
            .count() as u64;
        self.deep_stay_ns = cpus.iter().map(|c| c.deep_stay_ns).max().unwrap_or(0);
        let draws: Option<Vec<Draw>> = cpus.iter().map(|c| c.draw).collect();
        self.order = draws.map_or(Vec::new(), |draws| cheapest_first(cpus, &draws));
    }

    fn order(&self, places: &[CpuPlace]) -> Vec<u16> {
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
        self.note = None;
        (self.worth_it, self.seen) = (false, WakeupsSeen::default());
        self.next_ns = if self.gains { self.note_ns } else { OFF_NS };
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
        // A trial's CPUs are still filling.
        if look_ns >= self.rest_ns {
            self.worth_it = self.is_worth_it(obs, look_ns).unwrap_or(self.worth_it);
        }
        let worth_it = self.worth_it;
        if open && worth_it && needed < self.cpus && look_ns <= self.note_ns.max(self.rest_ns) {
            if self.settled {
                self.note = Some(Note { usual_ns: usual_ns(obs), longest_ns: obs.worst_wait_ns });
                self.noted_at_ns = self.now_ns;
            }
            self.settled = true;
        }
        if !open && self.harms(obs) {
            self.harmed(look_ns);
        }
        let held_ns = self.floor_until_ns.saturating_sub(self.now_ns);
        if self.now_ns.saturating_sub(self.noted_at_ns) > RENEWED_NS {
            self.note = None;
        }
        let least = match () {
            () if !worth_it || self.note.is_none() => self.cpus,
            () if held_ns > 0 => self.floor,
            () => 1,
        };
        let (before, target) = (self.kept, needed.max(least));
        self.settled &= target == self.cpus;
        self.kept = if target < before { target + (before - target) / 2 } else { target };
        self.next_ns = match () {
            () if self.kept < before => self.trial_ns,
            () if self.kept < self.cpus => self.rest_ns,
            // What keeps all CPUs busy, or seldom wakes any, may go on for long.
            () if !worth_it || needed == self.cpus => {
                (self.next_ns * 2).clamp(self.rest_ns, LONGEST_NS.max(self.rest_ns))
            }
            () if held_ns > 0 && self.floor == self.cpus => {
                held_ns.clamp(self.note_ns, LONGEST_NS.max(self.note_ns))
            }
            () => self.note_ns,
        };
        self.kept
    }
}

/// CPUs in the order in which it is cheapest to keep them; see the module's head.
fn cheapest_first(cpus: &[CorePower], draws: &[Draw]) -> Vec<u16> {
    let thread = |c: usize| cpus[..c].iter().filter(|o| o.place.core == cpus[c].place.core).count();
    let key = |&c: &u16| {
        let c = usize::from(c);
        let (place, p, at) = (cpus[c].place, &draws[c], thread(c));
        let package = if p.package_saves_mw > 0 { place.package } else { 0 };
        let energy = u64::from(p.busy_mw) * 1_000_000 / u64::from(p.rate.max(1));
        // Power over work, of the second thread and of a core that would sleep otherwise, each times the other's work.
        let second = u64::from(p.busy_all_mw.saturating_sub(p.busy_mw)) * u64::from(p.rate);
        let sleeper =
            u64::from(p.busy_mw.saturating_sub(p.deep_mw)) * u64::from(p.rate_all.saturating_sub(p.rate));
        let core = usize::from(place.core);
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
    follows: "this project: no published rule",
    source: include_str!("consolidate.rs"),
    params: &[
        Param {
            name: "period",
            help: "time between two looks at rest",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 20.0 },
        },
        Param {
            name: "trial",
            help: "time between two looks while CPUs are given up",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 4.0 },
        },
        Param {
            name: "note",
            help: "how long all CPUs are open while it is noted how long tasks wait then",
            kind: ParamKind::Number { unit: "ms", min: 1.0, max: 10_000.0, default: 20.0 },
        },
        Param {
            name: "full",
            help: "busy share at which a CPU counts as full",
            kind: ParamKind::Number { unit: "%", min: 10.0, max: 100.0, default: 80.0 },
        },
        Param {
            name: "ratio",
            help: "99th percentile of waits that is tolerated, of that while all are open",
            kind: ParamKind::Number { unit: "%", min: 100.0, max: 10_000.0, default: 150.0 },
        },
        Param {
            name: "bound",
            help: "longest wait that is tolerated, where none was longer while all were open",
            kind: ParamKind::Number { unit: "us", min: 0.0, max: 1e6, default: 2000.0 },
        },
        COST,
    ],
    build: |cpus, s| {
        Box::new(Consolidate {
            cpus,
            rest_ns: s.ms("period"),
            trial_ns: s.ms("trial"),
            note_ns: s.ms("note"),
            cost_ns: s.us("cost"),
            full_percent: s.count("full"),
            ratio_percent: s.count("ratio"),
            bound_ns: s.us("bound"),
            gains: true,
            cores: 0,
            deep_stay_ns: 0,
            order: Vec::new(),
            now_ns: 0,
            next_ns: s.ms("note"),
            average_milli: 0,
            kept: cpus,
            note: None,
            worth_it: false,
            seen: WakeupsSeen::default(),
            settled: false,
            noted_at_ns: 0,
            floor: 1,
            floor_until_ns: 0,
            hold_ns: 0,
            doublings: 0,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::testing::see;
    use super::*;
    use crate::Settings;

    /// At rest on one of four CPUs, after waits of at most 100 us while open; and the time.
    fn settled() -> (Box<dyn CorePolicy>, u64) {
        let mut p = (CONSOLIDATE.build)(4, &Settings::defaults(CONSOLIDATE.params));
        p.start();
        let mut now = 0;
        let kept: Vec<usize> = (0..60).map(|_| step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 100_000)).collect();
        assert_eq!((kept[0], kept[59]), (4, 1), "{kept:?}");
        assert!(kept.is_sorted_by(|a, b| a >= b), "{kept:?}");
        (p, now)
    }

    fn step(p: &mut dyn CorePolicy, now: &mut u64, busy: &[u64], waiting: u32, wait_ns: u64) -> usize {
        *now += p.period_ns();
        see(p, *now, busy, waiting, wait_ns)
    }

    #[test]
    fn a_burst_opens_everything_in_one_look_and_it_closes_again() {
        let (mut p, mut now) = settled();
        assert_eq!(step(&mut *p, &mut now, &[100, 0, 0, 0], 3, 100_000), 4);
        let late = (0..60).map(|_| step(&mut *p, &mut now, &[5, 0, 0, 0], 0, 100_000)).last();
        assert_eq!(late, Some(1));
    }

    #[test]
    fn harm_opens_cpus_for_a_hundred_times_as_long_and_twice_that_when_it_comes_again() {
        let (mut p, mut now) = settled();
        assert_eq!(step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 150_000), 1, "half more is no harm");
        let mut held = Vec::new();
        for _ in 0..2 {
            let began = now;
            assert_eq!(step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 151_000), 2);
            while step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 100_000) > 1 {}
            held.push((now - began) / MS);
        }
        // The first came in a look of 20 ms, the second in the trial of 4 ms after it.
        assert!((2000..2100).contains(&held[0]) && (800..900).contains(&held[1]), "{held:?} ms");
        // Far over the bound with two kept: all of them.
        assert_eq!(step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 3 * MS), 2);
        assert_eq!(step(&mut *p, &mut now, &[20, 0, 0, 0], 0, 3 * MS), 4);
    }

    /// Where no percentile is known the mean is guarded, whatever the longest wait.
    #[test]
    fn a_mean_that_grows_is_harm() {
        let mut p = (CONSOLIDATE.build)(4, &Settings::defaults(CONSOLIDATE.params));
        p.start();
        let mut now = 0;
        let mut look = |mean_ns| {
            let period = p.period_ns();
            now += period;
            let cpu = CpuSample { busy_ns: period / 20, idle_ns: period, ..CpuSample::default() };
            p.observe(&CoreObservation {
                now_ns: now,
                cpus: &[cpu; 4],
                worst_wait_ns: 1_000_000,
                wait_p99_ns: None,
                wait_mean_ns: Some(mean_ns),
                wakeups: None,
            })
        };
        let kept = (0..60).map(|_| look(10_000)).last();
        assert_eq!(kept, Some(1));
        assert_eq!((look(15_000), look(15_001)), (1, 2));
    }

    #[test]
    fn a_cpu_that_never_rests_opens_everything() {
        let (mut p, mut now) = settled();
        assert_eq!(step(&mut *p, &mut now, &[99, 0, 0, 0], 0, 100_000), 2);
        assert_eq!(step(&mut *p, &mut now, &[100, 0, 0, 0], 0, 100_000), 4);
    }

    fn power(core: u16, package: u16) -> CorePower {
        CorePower {
            place: CpuPlace { core, package },
            deep_stay_ns: 400_000,
            draw: Some(Draw {
                rate: 3000,
                rate_all: 3700,
                busy_mw: 8000,
                busy_all_mw: 9000,
                shallow_mw: 1000,
                deep_mw: 50,
                package_saves_mw: 0,
            }),
        }
    }

    fn but(c: CorePower, change: impl Fn(&mut Draw)) -> CorePower {
        let mut draw = c.draw.expect("known");
        change(&mut draw);
        CorePower { draw: Some(draw), ..c }
    }

    /// Seldom woken, or with nothing to save, it keeps all CPUs and hardly looks.
    #[test]
    fn it_stays_off_where_nothing_can_be_gained() {
        let uneven = |machine: &[CorePower], wakeups: u64, more: u64| {
            let mut p = (CONSOLIDATE.build)(4, &Settings::defaults(CONSOLIDATE.params));
            p.learn(machine);
            p.start();
            let (mut now, mut looks, mut least) = (0, 0, 4);
            while now < 20_000 * MS {
                let look = p.period_ns();
                now += look;
                looks += 1;
                let busy =
                    CpuSample { busy_ns: look / 100, idle_ns: look - look / 100, ..CpuSample::default() };
                least = least.min(p.observe(&CoreObservation {
                    now_ns: now,
                    cpus: &[busy; 4],
                    worst_wait_ns: 100_000,
                    wait_p99_ns: Some(100_000),
                    wait_mean_ns: None,
                    wakeups: Some(
                        wakeups * look / 1_000_000_000 + more * u64::from((1..=2).contains(&(looks % 4))),
                    ),
                }));
            }
            (looks, least)
        };
        let looks = |machine: &[CorePower], wakeups: u64| uneven(machine, wakeups, 0);
        let two_cores = [power(0, 0), power(0, 0), power(1, 0), power(1, 0)];
        // Two cores, sixteen times 400 us: 312 wake-ups a second are worth it.
        assert_eq!(looks(&two_cores, 400).1, 1);
        let (seldom, least) = looks(&two_cores, 250);
        assert!(seldom < 20 && least == 4, "{seldom} looks, {least} kept");
        // Eight instead of three in two looks of 20 ms, one after the other, are chance.
        assert_eq!(uneven(&two_cores, 150, 5).1, 4);
        let flat = two_cores.map(|c| but(c, |d| d.deep_mw = d.shallow_mw));
        assert_eq!(looks(&flat, 10_000), (1, 4));
        assert_eq!(looks(&[power(0, 0); 4], 10_000), (1, 4));
        // Nobody says what it draws: the stay that its C-states need decides alone.
        let unknown = two_cores.map(|c| CorePower { draw: None, ..c });
        assert_eq!((looks(&unknown, 400).1, looks(&unknown, 250).1), (1, 4));
    }

    #[test]
    fn the_power_table_says_which_cpus_are_kept_first() {
        let order = |machine: &[CorePower]| {
            let mut p = (CONSOLIDATE.build)(machine.len(), &Settings::defaults(CONSOLIDATE.params));
            p.learn(machine);
            p.order(&machine.iter().map(|c| c.place).collect::<Vec<_>>())
        };
        // Linux numbers second threads after all first ones.
        let smt = [power(0, 0), power(1, 0), power(0, 0), power(1, 0)];
        assert_eq!(order(&smt), [0, 2, 1, 3]);
        // A second thread that costs nearly as much as a core and does a quarter of its work comes last.
        assert_eq!(order(&smt.map(|c| but(c, |d| d.busy_all_mw = 15_000))), [0, 1, 2, 3]);
        // Small cores that do a piece of work for half the energy.
        let small = |core| {
            but(power(core, 0), |d| {
                (d.rate, d.rate_all, d.busy_mw, d.busy_all_mw) = (2000, 2000, 2500, 2500);
            })
        };
        assert_eq!(order(&[power(0, 0), power(0, 0), small(1), small(2)]), [2, 3, 0, 1]);
        // A package that saves power asleep is kept from being woken.
        let sockets = [power(0, 0), power(1, 1), power(2, 0), power(3, 1)];
        assert_eq!(order(&sockets), [0, 1, 2, 3]);
        assert_eq!(order(&sockets.map(|c| but(c, |d| d.package_saves_mw = 9000))), [0, 2, 1, 3]);
        // Of which nothing is known: by package and core.
        assert_eq!(order(&sockets.map(|c| CorePower { draw: None, ..c })), [0, 2, 1, 3]);
    }
}
