//! How long a change of speed and the way out of a C-state take, timed on one core of each kind.
//!
//! A change of speed is watched from the request until the new speed is in force, as `bench transition` does. A request for
//! the speed that is there already shows what the path through sysfs takes, and that is taken off. What is left is the
//! model's delay and its stall together. Nothing tells them apart:
//!
//! | the estimate has | the delay is | the stall is |
//! |---|---|---|
//! | a stall alone | none | the time |
//! | both | the time without the estimate's stall | the estimate's |
//! | both, and the stall may fill the time | its share of the time | its share of the time, a guess |
//!
//! A wake-up is a timer's, as in `bench wake`: how much later a sleep ends in a C-state than with the CPU polling (where the
//! kernel cannot poll, than in the shallowest state). All deeper states are forbidden to the core meanwhile, and the
//! kernel's counts say whether the state was taken. Another core of the package is kept busy, so that the package's own
//! way out of its sleep is not in the figure.

use crate::gather::polls;
use crate::site::{Ask, Changes, Site};
use crate::window::spoiled::Spoiled;
use crate::window::{Observer, Wish};
use std::time::Duration;
use wattwise_control::set::transaction::Transaction;
use wattwise_figure::Spread;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::number;
use wattwise_hw::rules;
use wattwise_hw::states::cpufreq::CpufreqPolicy;
use wattwise_hw::states::cpuidle::{CpuStates, CpuidleState};
use wattwise_model::machine::CoreKind;

/// A time that was measured, and where nine of ten trials lie, in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The middle one.
    pub us: f64,
    /// One in twenty trials is shorter.
    pub low: f64,
    /// One in twenty is longer.
    pub high: f64,
}

impl Timed {
    /// Of trials, of which something else took `off_us`. None where there are too few, or where they do not differ from that.
    fn of(trials: &[f64], off_us: f64, within_us: f64) -> Option<Timed> {
        let all = Spread::of(trials).filter(|s| s.n >= LEAST_TRIALS)?;
        let opposite: Vec<f64> = trials.iter().map(|us| -us).collect();
        let low = -Spread::of(&opposite)?.p95 - off_us - within_us;
        let (us, high) = (all.p50 - off_us, all.p95 - off_us + within_us);
        (low > LEAST_US).then_some(Timed { us, low, high })
    }
}

/// What was timed of a kind of core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindDelays {
    /// From the request for another speed until it is in force, without the path to the driver.
    pub change: Option<Timed>,
    /// The way out of each C-state; none where it was not told.
    pub exits: Vec<Option<Timed>>,
}

/// What was timed, and what was not.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// By kind of core.
    pub kinds: Vec<KindDelays>,
    /// What its user should know, a sentence each.
    pub notes: Vec<String>,
}

/// Share of the budget that all of this may take, and its longest time, in s.
const SHARE: (f64, f64) = (0.05, 6.0);
/// Sleeps in a C-state: so many at most.
const SLEEPS: usize = 100;
/// What is shorter is no time, in us.
const LEAST_US: f64 = 0.01;
/// A figure of fewer trials is none.
const LEAST_TRIALS: usize = 20;
/// The longest sleep, and the shortest.
const SLEEP_US: (u64, u64) = (2_000, 20_000);
/// Levels that are nearer to each other cannot be told apart: a share.
const APART: f64 = 0.1;
/// A state was taken if it was entered in this share of the sleeps, and if this share of what was entered is it.
const TAKEN: (f64, f64) = (0.8, 0.5);
/// What a delay really takes at least, of the worst case in the kernel's table: as the model has it.
const LEAST_OF_WORST: f64 = 0.3;
/// A delay that is longer than the kernel's by this factor is told; so is one that is shorter than a worst case's least.
const LONGER: f64 = 1.5;

/// Times what can be timed, within a small share of the budget. Afterwards the machine is as it was before.
///
/// # Errors
/// A signal, or a setting that was not put back. What only cannot be timed is a note.
pub(crate) fn delays(observer: &Observer<'_>, site: &dyn Site, budget_s: f64) -> Result<Delays, Spoiled> {
    let kinds = observer.machine.kinds.len();
    let share_s = (SHARE.0 * budget_s).min(SHARE.1) / kinds as f64 / 2.0;
    let mut out = Delays::default();
    for k in 0..kinds {
        let mut own = KindDelays { change: None, exits: vec![None; observer.machine.kinds[k].idle.len()] };
        match change(observer, site, k, share_s)? {
            Ok(timed) => {
                out.notes.extend(disagreement(observer, k, timed));
                own.change = Some(timed);
            }
            Err(why) => out.notes.push(format!("Changes of speed were not timed{}: {why}.", of(observer, k))),
        }
        match exits(observer, site, k, share_s, &mut own.exits)? {
            Ok(notes) => out.notes.extend(notes),
            Err(why) => out.notes.push(format!("Wake-ups were not timed{}: {why}.", of(observer, k))),
        }
        out.kinds.push(own);
    }
    Ok(out)
}

/// Whose it was, where there are several.
fn of(observer: &Observer<'_>, kind: usize) -> String {
    match &observer.machine.kinds[..] {
        [_] => String::new(),
        kinds => format!(" on cores of kind {}", kinds[kind].name),
    }
}

/// Puts settings back.
fn back(held: Option<Transaction<'_>>) -> Result<(), Spoiled> {
    match held.and_then(|mut h| h.undo().failed.into_iter().next()) {
        Some((what, why)) => Err(Spoiled::End(format!("{what} was not put back: {why}"))),
        None => Ok(()),
    }
}

/// Why something could not be timed; or why to end, if that is what it was.
fn or_ended<T>(site: &dyn Site, why: String) -> Result<Result<T, String>, Spoiled> {
    site.pass(Duration::ZERO).map_err(Spoiled::End)?;
    Ok(Err(why))
}

/// The time of a change of speed on the first core of a kind.
fn change(
    observer: &Observer<'_>,
    site: &dyn Site,
    k: usize,
    share_s: f64,
) -> Result<Result<Timed, String>, Spoiled> {
    let cpu = observer.layout.packages[0][k][0][0];
    let Some(policy) = observer.inventory.cpufreq.of(cpu) else {
        return Ok(Err("the kernel has no cpufreq".into()));
    };
    if policy.driver.as_deref().is_some_and(rules::is_active_driver) {
        return Ok(Err("the hardware chooses the speed, and there is no governor userspace".into()));
    }
    if !policy.governors.iter().any(|g| g == "userspace") {
        return Ok(Err("the kernel has no governor userspace".into()));
    }
    let levels = levels(&observer.machine.kinds[k], policy);
    if levels.len() < 2 {
        return Ok(Err("there is one speed that may be asked for".into()));
    }
    // Where the hardware gives all cores the highest speed that one asks for, the others are not to ask for more.
    let slowest = |k: usize| Wish {
        kind: k,
        cpus: observer.layout.cpus_of(k).collect(),
        levels: vec![observer.machine.kinds[k].levels.len() - 1],
        states: None,
    };
    let mut wishes: Vec<Wish> =
        (0..observer.machine.kinds.len()).filter(|k| observer.can_hold(*k)).map(slowest).collect();
    // Every level once: a speed that is found after a kill is then known to be ours.
    wishes.push(Wish { kind: k, cpus: CpuSet::from_iter([cpu]), levels: levels.clone(), states: None });
    let held = match observer.held(site.root(), &wishes) {
        Ok(held) => held,
        Err(why) => return or_ended(site, why.to_string()),
    };
    let all_khz = &observer.machine.kinds[k].levels;
    let levels_khz: Vec<u64> = levels.iter().map(|l| u64::from(all_khz[*l].khz)).collect();
    let stop = || site.pass(Duration::ZERO).err();
    let ask = Ask { levels_khz: &levels_khz, most: Duration::from_secs_f64(share_s), stop: &stop };
    let tried = site.changes(policy, cpu, &ask);
    back(held)?;
    match tried {
        Ok(Some(changes)) => Ok(timed(&changes)),
        Ok(None) => Ok(Err("nothing is known of its delays".into())),
        Err(why) => or_ended(site, why),
    }
}

/// The levels of a kind between which it is changed: without boost the highest, the lowest, one in the middle, and the highest of
/// all; of those that the policy takes.
fn levels(kind: &CoreKind, policy: &CpufreqPolicy) -> Vec<usize> {
    let khz = |l: usize| u64::from(kind.levels[l].khz);
    let listed = |khz: u64| {
        // A driver without a table takes any speed; one with a table no boost that is not in it.
        let mut all = policy.levels_khz.iter().chain(&policy.boost_levels_khz).peekable();
        all.peek().is_none() || all.any(|l| *l == khz)
    };
    let within = |khz: u64| policy.limits_khz.is_none_or(|(low, high)| (low..=high).contains(&khz));
    let all: Vec<usize> = (0..kind.levels.len()).filter(|l| listed(khz(*l)) && within(khz(*l))).collect();
    let Some(last) = all.len().checked_sub(1) else { return all };
    let base = all.iter().position(|l| khz(*l) <= u64::from(kind.base_khz)).unwrap_or(0);
    let mut out: Vec<usize> = Vec::new();
    for l in [base, last, usize::midpoint(base, last), 0].map(|at| all[at]) {
        let apart = |other: &usize| {
            let (a, b) = (khz(l) as f64, khz(*other) as f64);
            a.max(b) > a.min(b) * (1.0 + APART)
        };
        if out.iter().all(apart) {
            out.push(l);
        }
    }
    out.sort_unstable();
    out
}

/// The time of a change, whichever it is; or why there is none.
fn timed(changes: &Changes) -> Result<Timed, String> {
    let sound = changes.trials.iter().filter(|t| t.us.len() > t.missed);
    let all: Vec<f64> = sound.flat_map(|t| &t.us).copied().collect();
    if all.len() < LEAST_TRIALS {
        let missed: usize = changes.trials.iter().map(|t| t.missed).sum();
        return Err(format!("of {} trials {missed} did not come into force", all.len() + missed));
    }
    let path = Spread::of(&changes.path_us).map_or(0.0, |s| s.p50);
    Timed::of(&all, path, changes.within_us)
        .ok_or_else(|| "a change takes no longer than a request that changes nothing".into())
}

/// Where the kernel says something else of a change.
fn disagreement(observer: &Observer<'_>, k: usize, timed: Timed) -> Option<String> {
    let policy = observer.inventory.cpufreq.of(observer.layout.packages[0][k][0][0])?;
    let kernel = policy.transition_latency_ns.filter(|ns| *ns > 0)? as f64 * 1e-3;
    told(timed.us, kernel).then(|| {
        let (of, us) = (of(observer, k), timed.us);
        format!("A change of speed{of} takes {us:.1} us, and {kernel:.1} us by the kernel's table.")
    })
}

fn told(us: f64, kernel_us: f64) -> bool {
    kernel_us > 0.0 && (us < LEAST_OF_WORST * kernel_us || us > LONGER * kernel_us)
}

/// What a core did in sleeps of one kind.
struct Slept {
    late_us: Vec<f64>,
    /// Entries of each of the kernel's states.
    entered: Vec<u64>,
}

impl Slept {
    fn took(&self, state: usize) -> bool {
        let own = self.entered.get(state).copied().unwrap_or(0) as f64;
        let all = self.entered.iter().map(|n| *n as f64).sum::<f64>();
        own >= TAKEN.0 * self.late_us.len() as f64 && own >= TAKEN.1 * all
    }
}

/// The way out of each C-state of a kind, on its first core.
fn exits(
    observer: &Observer<'_>,
    site: &dyn Site,
    k: usize,
    share_s: f64,
    out: &mut [Option<Timed>],
) -> Result<Result<Vec<String>, String>, Spoiled> {
    let core = &observer.layout.packages[0][k][0];
    let cpuidle = &observer.inventory.cpuidle;
    let states: &[CpuidleState] = match cpuidle.cpus().iter().find(|c| c.cpu == core[0]) {
        Some(CpuStates { states, .. }) if !states.is_empty() => states,
        _ => return Ok(Err("the kernel has no cpuidle".into())),
    };
    let own: Vec<usize> = (0..states.len()).filter(|s| !polls(&states[*s])).collect();
    if own.len() != out.len() {
        return Ok(Err("its C-states are not the model's".into()));
    }
    let polling = states.iter().position(polls);
    if polling.is_none() && own.len() < 2 {
        return Ok(Err("there is one C-state, and nothing to hold it against".into()));
    }
    let longest_us = own.iter().map(|s| states[*s].residency_us * 2).max().unwrap_or(0);
    let sleep = Duration::from_micros(longest_us.clamp(SLEEP_US.0, SLEEP_US.1));
    let passes = own.len() + usize::from(polling.is_some());
    let times = (share_s / passes as f64 / sleep.as_secs_f64()) as usize;
    let times = times.clamp(LEAST_TRIALS + LEAST_TRIALS / 4, SLEEPS);
    let look = |allowed: usize| slept(observer, site, k, states, allowed, sleep, times);
    // What everything is held against: without it there is nothing.
    let (base, base_us) = match polling {
        Some(_) => (0, 0.0),
        None => (1, states[own[0]].latency_us as f64),
    };
    // Its own way out is in the figures, which is somewhere between its least and the worst case.
    let (base_us, within_us) =
        (base_us * (1.0 + LEAST_OF_WORST) / 2.0, base_us * (1.0 - LEAST_OF_WORST) / 2.0);
    let reference = match look(base)? {
        Ok(slept) => slept,
        Err(why) => return Ok(Err(why)),
    };
    let base_state = polling.unwrap_or(own[0]);
    let Some(off) = Spread::of(&reference.late_us).filter(|_| reference.took(base_state)) else {
        return Ok(Err(format!(
            "the CPU did not stay in {}, all deeper states forbidden",
            states[base_state].name
        )));
    };
    let (mut notes, mut not_taken, mut not_told) = (Vec::new(), Vec::new(), Vec::new());
    for (at, state) in own.iter().enumerate().skip(base) {
        let name = &states[*state].name;
        let slept = match look(at + 1)? {
            Ok(slept) => slept,
            Err(why) => return Ok(Err(why)),
        };
        if !slept.took(*state) {
            not_taken.push(name.clone());
            continue;
        }
        let Some(timed) = Timed::of(&slept.late_us, off.p50 - base_us, within_us) else {
            not_told.push(name.clone());
            continue;
        };
        let kernel = states[*state].latency_us as f64;
        if told(timed.us, kernel) {
            let (of, us) = (self::of(observer, k), timed.us);
            notes.push(format!(
                "{name}{of} takes {us:.1} us to leave, and {kernel:.0} us by the kernel's table."
            ));
        }
        out[at] = Some(timed);
    }
    if !not_taken.is_empty() {
        let (of, names) = (self::of(observer, k), not_taken.join(", "));
        notes.push(format!(
            "Wake-ups{of} were not timed from {names}: the kernel's counts say that the CPU did not take it."
        ));
    }
    if !not_told.is_empty() {
        let (of, names) = (self::of(observer, k), not_told.join(", "));
        notes.push(format!("Wake-ups{of} from {names} cannot be told from those of a CPU that is awake: the latency is the kernel's."));
    }
    Ok(Ok(notes))
}

/// Sleeps on the first CPU of a kind's first core, with so many of its C-states allowed; or why there were none.
fn slept(
    observer: &Observer<'_>,
    site: &dyn Site,
    k: usize,
    states: &[CpuidleState],
    allowed: usize,
    sleep: Duration,
    times: usize,
) -> Result<Result<Slept, String>, Spoiled> {
    let core = &observer.layout.packages[0][k][0];
    let kind = &observer.machine.kinds[k];
    let base = kind.levels.iter().position(|l| l.khz <= kind.base_khz).unwrap_or(0);
    let levels = if observer.can_hold(k) { vec![base] } else { Vec::new() };
    let wish = Wish { kind: k, cpus: core.iter().copied().collect(), levels, states: Some(allowed) };
    let held = match observer.held(site.root(), &[wish]) {
        Ok(held) => held,
        Err(why) => return or_ended(site, why.to_string()),
    };
    let done = sleeps(observer, site, core, states, sleep, times);
    let ended = site.load(&[]).map_err(Spoiled::End);
    back(held)?;
    ended?;
    match done {
        Ok(Some(slept)) => Ok(Ok(slept)),
        Ok(None) => Ok(Err("nothing sleeps there".into())),
        Err(why) => or_ended(site, why),
    }
}

fn sleeps(
    observer: &Observer<'_>,
    site: &dyn Site,
    core: &[u32],
    states: &[CpuidleState],
    sleep: Duration,
    times: usize,
) -> Result<Option<Slept>, String> {
    let others = observer.layout.packages[0].iter().flatten().find(|c| *c != core);
    site.load(&others.map(|other| (other[0], 1.0)).into_iter().collect::<Vec<_>>())?;
    // Once so that none sleeps on in a state that is forbidden now.
    site.wake(core);
    let before = entries(site, core[0], states)?;
    // A part at a time, so that a signal is heard.
    let mut late_us = Vec::with_capacity(times);
    while late_us.len() < times {
        site.pass(Duration::ZERO)?;
        let more = (times - late_us.len()).min(LEAST_TRIALS);
        let Some(more) = site.late(core[0], sleep, more)? else { return Ok(None) };
        late_us.extend(more);
    }
    let after = entries(site, core[0], states)?;
    let entered = before.iter().zip(&after).map(|(b, a)| a.wrapping_sub(*b)).collect();
    Ok(Some(Slept { late_us, entered }))
}

/// How often a CPU has entered each of its states.
fn entries(site: &dyn Site, cpu: u32, states: &[CpuidleState]) -> Result<Vec<u64>, String> {
    let of = |s: &CpuidleState| {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/usage", s.index);
        number(site.root(), &file).ok_or_else(|| format!("{file}: expected how often the state was entered"))
    };
    states.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_control::delays::transition::Trials;

    /// The speeds between which an emulated machine is changed, in MHz, within all that its hardware has but for this.
    fn mhz(name: &str, but: impl Fn(&mut CoreKind, &mut CpufreqPolicy)) -> Vec<u32> {
        let emulated = wattwise_emulator::named(name).expect("an emulated machine");
        let seen = crate::gather::SeenMachine::read(&emulated).expect("CPUs");
        let text = crate::estimate::estimate(&seen, "this").text;
        let mut kind =
            wattwise_model::machine::file::parse(&text, "this").expect("a machine").kinds.remove(0);
        let cpufreq = wattwise_hw::states::cpufreq::Cpufreq::read(&emulated);
        let mut policy = cpufreq.policies()[0].clone();
        policy.limits_khz = policy.hardware_khz;
        but(&mut kind, &mut policy);
        levels(&kind, &policy).iter().map(|l| kind.levels[*l].khz / 1000).collect()
    }

    #[test]
    fn speeds_are_those_that_the_policy_takes() {
        assert_eq!(mhz("core-i5-2gen", |_, _| ()), [2501, 1800, 800]);
        // A boost that is no further from the base than its name.
        assert_eq!(mhz("core-i5-2gen", |kind, _| kind.base_khz = 2_500_000), [2500, 1600, 800]);
        // A driver without a table takes any: the boost, the base, the middle and the lowest.
        assert_eq!(mhz("skylake-server-passive", |_, _| ()).len(), 4);
        // The highest is the firmware's word, and no level.
        assert_eq!(mhz("amd-server", |_, _| ()), [3000, 1900, 1500]);
        assert_eq!(mhz("amd-server", |_, p| p.limits_khz = Some((1_500_000, 1_900_000))), [1900, 1500]);
        assert!(mhz("amd-server", |_, p| p.limits_khz = Some((1, 2))).is_empty());
    }

    #[test]
    fn a_time_has_the_spread_of_its_trials() {
        let trials: Vec<f64> = (1..=100).map(|n| 50.0 + f64::from(n)).collect();
        let timed = Timed::of(&trials, 40.0, 2.0).expect("enough trials");
        assert_eq!((timed.low, timed.us, timed.high), (14.0, 60.0, 107.0));
        // Too few, and what is no longer than something else.
        assert_eq!(Timed::of(&trials[..LEAST_TRIALS - 1], 40.0, 2.0), None);
        assert_eq!(Timed::of(&trials, 54.0, 2.0), None);
    }

    #[test]
    fn a_state_is_taken_if_the_kernel_counts_it() {
        let took = |entered: [u64; 3]| Slept { late_us: vec![1.0; 20], entered: entered.to_vec() }.took(1);
        assert!(took([0, 20, 0]) && took([15, 16, 0]));
        assert!(!took([20, 15, 0]), "some sleeps were in another");
        assert!(!took([40, 20, 0]), "most of what was entered was another");
        // A counter that passed its end in between tells nothing.
        assert!(!took([u64::MAX, 20, u64::MAX]));
    }

    fn changes(us: &[f64], missed: usize) -> Changes {
        let trials = vec![
            Trials { from_khz: 2, to_khz: 1, us: us.to_vec(), missed: 0 },
            Trials { from_khz: 1, to_khz: 2, us: vec![5000.0], missed },
        ];
        Changes { trials, path_us: vec![4.0; 20], within_us: 0.0 }
    }

    #[test]
    fn a_pair_that_is_mostly_missed_is_left_out() {
        assert_eq!(timed(&changes(&[104.0; 20], 19)).map(|t| t.us), Ok(100.0));
        let few = timed(&changes(&[104.0; 19], 19));
        assert_eq!(few, Err("of 38 trials 19 did not come into force".into()));
        assert!(timed(&changes(&[4.0; 20], 19)).is_err_and(|why| why.contains("changes nothing")));
    }
}
