//! How long a change of speed takes: from the request until it is in force, for pairs of speeds (000).
//!
//! "In force" is when the hardware's status shows the new speed (004). Where no status can be read, a short
//! loop of known length is timed again and again: it takes effect when the loop takes nearer to the new
//! speed's time than to the old one's. Both are told apart in the result. What is measured includes the
//! request itself: the path through sysfs and the driver.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use wattwise_figure::{Random, Spread};
use wattwise_hw::root::{Access, Node, Root};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// A machine whose speed is changed and watched.
pub trait Stage {
    /// The clock, ns.
    fn now_ns(&mut self) -> u64;
    /// Asks for a speed.
    fn request(&mut self, khz: u64) -> Result<(), String>;
    /// Whether the change from one speed to another is in force.
    fn in_force(&mut self, from_khz: u64, to_khz: u64) -> Result<bool, String>;
    /// Lets time pass.
    fn rest(&mut self, ns: u64);
}

/// The delays from one speed to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// From, kHz.
    pub from_khz: u64,
    /// To, kHz.
    pub to_khz: u64,
    /// Of the trials that took effect, us.
    pub us: Option<Spread>,
    /// Trials that did not within the patience.
    pub missed: usize,
}

/// Trials from one speed to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// From, kHz.
    pub from_khz: u64,
    /// To, kHz.
    pub to_khz: u64,
    /// What each took that came into force, us.
    pub us: Vec<f64>,
    /// Those that did not within the patience.
    pub missed: usize,
}

/// How long a change may take before it counts as missed.
const PATIENCE_NS: u64 = 100_000_000;
/// Time at a speed before it is left: the last change is over, and a governor's rate limit too.
const SETTLED_NS: u64 = 2_000_000;

/// Measures all ordered pairs, `trials` times each, in random order, so that a drift touches all alike.
/// `stop` is asked between trials.
pub fn measure(
    stage: &mut dyn Stage,
    levels_khz: &[u64],
    trials: usize,
    seed: u64,
    stop: &dyn Fn() -> Option<String>,
) -> Result<Vec<Pair>, String> {
    let seen = try_all(stage, levels_khz, trials, seed, stop)?;
    let pair =
        |t: Trials| Pair { from_khz: t.from_khz, to_khz: t.to_khz, us: Spread::of(&t.us), missed: t.missed };
    Ok(seen.into_iter().map(pair).collect())
}

/// The same, trial by trial.
pub fn try_all(
    stage: &mut dyn Stage,
    levels_khz: &[u64],
    trials: usize,
    seed: u64,
    stop: &dyn Fn() -> Option<String>,
) -> Result<Vec<Trials>, String> {
    let mut order: Vec<(u64, u64)> = Vec::new();
    for from in levels_khz {
        order.extend(levels_khz.iter().filter(|to| *to != from).map(|to| (*from, *to)));
    }
    let none = |pair: &(u64, u64)| Trials { from_khz: pair.0, to_khz: pair.1, us: Vec::new(), missed: 0 };
    let mut seen: Vec<Trials> = order.iter().map(none).collect();
    let mut random = Random::new(seed);
    for _ in 0..trials {
        random.shuffle(&mut order);
        for (from, to) in &order {
            if let Some(why) = stop() {
                return Err(why);
            }
            let took = one(stage, *from, *to)?;
            let Some(own) = seen.iter_mut().find(|t| (t.from_khz, t.to_khz) == (*from, *to)) else {
                continue;
            };
            match took {
                Some(ns) => own.us.push(ns as f64 / 1e3),
                None => own.missed += 1,
            }
        }
    }
    Ok(seen)
}

/// What a request takes for the speed that is in force already, us: the path through sysfs and the governor alone.
pub fn path_us(stage: &mut dyn Stage, khz: u64, times: usize) -> Result<Vec<f64>, String> {
    stage.request(khz)?;
    stage.rest(SETTLED_NS);
    let mut one = || {
        let asked = stage.now_ns();
        stage.request(khz)?;
        Ok(stage.now_ns().saturating_sub(asked) as f64 / 1e3)
    };
    (0..times).map(|_| one()).collect()
}

/// One change, ns; none where it did not come.
fn one(stage: &mut dyn Stage, from: u64, to: u64) -> Result<Option<u64>, String> {
    stage.request(from)?;
    if wait(stage, to, from)?.is_none() {
        return Ok(None);
    }
    stage.rest(SETTLED_NS);
    let asked = stage.now_ns();
    stage.request(to)?;
    Ok(wait(stage, from, to)?.map(|at| at - asked))
}

fn wait(stage: &mut dyn Stage, from: u64, to: u64) -> Result<Option<u64>, String> {
    let until = stage.now_ns() + PATIENCE_NS;
    loop {
        // The status is as old as the moment before it was read.
        let looked = stage.now_ns();
        if stage.in_force(from, to)? {
            return Ok(Some(looked));
        }
        if looked > until {
            return Ok(None);
        }
    }
}

/// How the live stage tells that a change is in force.
enum SpeedStatus {
    /// `cpuinfo_cur_freq`: the driver reads the hardware.
    File(Box<dyn Node>),
    /// A loop, timed: its time at each speed, ns.
    Loop { steps: u64, ns: Vec<(u64, f64)> },
}

/// One frequency domain of a machine, under the userspace governor, which the caller has set.
pub struct LiveDomain {
    setspeed: Box<dyn Node>,
    status: SpeedStatus,
    start: Instant,
}

impl LiveDomain {
    /// Opens a domain. The calling thread must be pinned to one of its CPUs, for the loop.
    pub fn open(root: &dyn Root, policy: &CpufreqPolicy, levels_khz: &[u64]) -> Result<LiveDomain, String> {
        let path = format!("{}/scaling_setspeed", policy.path);
        let setspeed = root.open(&path, Access::Write).map_err(|e| format!("/{path}: {e}"))?;
        let shown = format!("{}/cpuinfo_cur_freq", policy.path);
        let mut live = LiveDomain {
            setspeed,
            status: SpeedStatus::Loop { steps: 0, ns: Vec::new() },
            start: Instant::now(),
        };
        match root.open(&shown, Access::Read) {
            Ok(node) => live.status = SpeedStatus::File(node),
            Err(_) if !root.is_this_machine() => {
                return Err(format!(
                    "{} cannot be timed from here: it shows no speed in force (cpuinfo_cur_freq), and a loop on this machine's CPU \
                     does not feel the speeds of another",
                    policy.name()
                ));
            }
            Err(_) => live.calibrate(levels_khz)?,
        }
        Ok(live)
    }

    /// In words.
    pub fn by(&self) -> String {
        match &self.status {
            SpeedStatus::File(_) => "the hardware's status (cpuinfo_cur_freq)".to_owned(),
            SpeedStatus::Loop { .. } => format!("a timed loop, to within {:.1} us", self.within_us()),
        }
    }

    /// How exactly it is told when a change is in force, us.
    pub fn within_us(&self) -> f64 {
        match &self.status {
            SpeedStatus::File(_) => 0.0,
            SpeedStatus::Loop { ns, .. } => ns.iter().map(|n| n.1).fold(0.0, f64::max) / 1e3,
        }
    }

    /// Times the loop at each speed. Speeds that cannot be told apart by it cannot be measured by it.
    fn calibrate(&mut self, levels_khz: &[u64]) -> Result<(), String> {
        const STEPS: u64 = 2_000;
        let mut ns = Vec::new();
        for khz in levels_khz {
            self.request(*khz)?;
            std::thread::sleep(Duration::from_millis(20));
            let mut times: Vec<f64> = (0..201).map(|_| spin(STEPS)).collect();
            times.sort_by(f64::total_cmp);
            ns.push((*khz, times[times.len() / 2]));
        }
        for pair in ns.windows(2) {
            let ratio = pair[0].1.max(pair[1].1) / pair[0].1.min(pair[1].1);
            if ratio < 1.02 {
                return Err(format!(
                    "{} and {} kHz cannot be told apart: a loop takes the same time at both, so that nothing here can time a change; perhaps a \
                     hypervisor or the firmware ignores the request",
                    pair[0].0, pair[1].0
                ));
            }
        }
        self.status = SpeedStatus::Loop { steps: STEPS, ns };
        Ok(())
    }
}

/// A loop whose steps wait for one another: its time is cycles over speed. In ns.
fn spin(steps: u64) -> f64 {
    let start = Instant::now();
    let mut x = steps;
    for _ in 0..steps {
        x = std::hint::black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
    }
    std::hint::black_box(x);
    start.elapsed().as_nanos() as f64
}

impl Stage for LiveDomain {
    fn now_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn request(&mut self, khz: u64) -> Result<(), String> {
        self.setspeed
            .write_at(0, khz.to_string().as_bytes())
            .map_err(|e| format!("scaling_setspeed: {e}; was the governor changed by another program?"))
    }

    fn in_force(&mut self, from_khz: u64, to_khz: u64) -> Result<bool, String> {
        match &mut self.status {
            SpeedStatus::File(node) => {
                let mut page = [0; 32];
                let n = node.read_at(0, &mut page).map_err(|e| format!("cpuinfo_cur_freq: {e}"))?;
                let shown = std::str::from_utf8(&page[..n]).ok().and_then(|t| t.trim().parse::<u64>().ok());
                let shown = shown.ok_or("cpuinfo_cur_freq shows no number")?;
                // Hardware shows a multiple of its bus clock, not the table's word.
                Ok(shown.abs_diff(to_khz) <= to_khz / 50)
            }
            SpeedStatus::Loop { steps, ns } => {
                let of = |khz: u64| ns.iter().find(|n| n.0 == khz).map_or(0.0, |n| n.1);
                let took = spin(*steps);
                Ok((took - of(to_khz)).abs() < (took - of(from_khz)).abs())
            }
        }
    }

    fn rest(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual time; a change takes what its table says, plus some noise; every look costs 200 ns.
    struct Fake {
        now: u64,
        delays_ns: Vec<((u64, u64), u64)>,
        noise: Random,
        shown: u64,
        asked: (u64, u64),
        stuck: Option<u64>,
    }

    impl Stage for Fake {
        fn now_ns(&mut self) -> u64 {
            self.now
        }
        fn request(&mut self, khz: u64) -> Result<(), String> {
            let delay = self.delays_ns.iter().find(|d| d.0 == (self.shown, khz)).map_or(0, |d| d.1);
            self.asked = (khz, self.now + delay + self.noise.below(1_000) as u64);
            Ok(())
        }
        fn in_force(&mut self, _: u64, to: u64) -> Result<bool, String> {
            self.now += 200;
            if self.now >= self.asked.1 && self.stuck != Some(self.asked.0) {
                self.shown = self.asked.0;
            }
            Ok(self.shown == to)
        }
        fn rest(&mut self, ns: u64) {
            self.now += ns;
        }
    }

    /// The shape of 000's matrix: up is slow (voltage first), down is quick.
    fn fake(stuck: Option<u64>) -> Fake {
        let delays_ns = vec![
            ((600_000, 1_700_000), 90_000),
            ((1_700_000, 600_000), 20_000),
            ((600_000, 1_000_000), 50_000),
            ((1_000_000, 600_000), 15_000),
            ((1_000_000, 1_700_000), 70_000),
            ((1_700_000, 1_000_000), 25_000),
        ];
        Fake { now: 0, delays_ns, noise: Random::new(5), shown: 600_000, asked: (600_000, 0), stuck }
    }

    #[test]
    fn the_matrix_that_is_there_is_the_one_that_is_found() {
        let mut stage = fake(None);
        let levels = [1_700_000, 1_000_000, 600_000];
        let pairs = measure(&mut stage, &levels, 80, 1, &|| None).expect("measures");
        assert_eq!(pairs.len(), 6);
        for pair in &pairs {
            let truth =
                stage.delays_ns.iter().find(|d| d.0 == (pair.from_khz, pair.to_khz)).expect("a pair").1;
            let us = pair.us.expect("took effect");
            assert_eq!((us.n, pair.missed), (80, 0));
            // The noise adds 0 to 1 us, a look up to 0.2.
            assert!((us.mean - truth as f64 / 1e3 - 0.5).abs() < 0.35, "{pair:?}, truth {truth} ns");
            assert!(us.max < truth as f64 / 1e3 + 1.3, "{pair:?}");
        }
    }

    #[test]
    fn a_speed_that_never_comes_is_missed_and_not_measured() {
        let pairs = measure(&mut fake(Some(1_000_000)), &[1_700_000, 1_000_000, 600_000], 3, 1, &|| None)
            .expect("measures");
        for pair in &pairs {
            let with = pair.from_khz == 1_000_000 || pair.to_khz == 1_000_000;
            assert_eq!((pair.us.is_none(), pair.missed), (with, if with { 3 } else { 0 }), "{pair:?}");
        }
    }

    #[test]
    fn a_wish_to_stop_is_heard() {
        let stopped = measure(&mut fake(None), &[2, 1], 3, 1, &|| Some("signal 2 came".into()));
        assert_eq!(stopped, Err("signal 2 came".into()));
    }
}
