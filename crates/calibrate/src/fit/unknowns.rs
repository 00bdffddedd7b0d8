//! What is sought of a machine, what is thought of it before, and what it makes of an observation.

use crate::window::{Observation, Taken};
use wattwise_model::machine::{MachineModel, REFERENCE_C, SpeedLevel};

/// What a row of the fit is the power of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeteredPart {
    /// All cores.
    Cores,
    /// Packages without their cores.
    Rest,
    /// Packages with their cores.
    Package,
    /// The memory.
    Memory,
    /// What lies outside of the packages; without the memory, where that is metered.
    Platform,
    /// Everything.
    Machine,
}

impl MeteredPart {
    /// Each.
    pub const ALL: [MeteredPart; 6] = [
        MeteredPart::Cores,
        MeteredPart::Rest,
        MeteredPart::Package,
        MeteredPart::Memory,
        MeteredPart::Platform,
        MeteredPart::Machine,
    ];

    fn has_cores(self) -> bool {
        matches!(self, MeteredPart::Cores | MeteredPart::Package | MeteredPart::Machine)
    }

    fn has_rest(self) -> bool {
        matches!(self, MeteredPart::Rest | MeteredPart::Package | MeteredPart::Machine)
    }

    fn has_platform(self) -> bool {
        matches!(self, MeteredPart::Platform | MeteredPart::Machine)
    }
}

/// One figure that is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Watts of a core with one thread at work: kind, level.
    Busy(usize, usize),
    /// Watts of a core in a C-state: kind, state.
    Idle(usize, usize),
    /// Watts of a package awake, beside its cores.
    Uncore,
    /// Watts of a package asleep: state.
    Asleep(usize),
    /// Watts of a package's memory at rest; sought where a meter tells.
    MemoryRest,
    /// Watts that it draws more for each core at work.
    MemoryBusy,
    /// Watts outside of the packages.
    Platform,
    /// What a core of a kind draws with all threads at work, of what it draws with one.
    AllThreads(usize),
    /// How much that factor grows where the speed grows by a factor of e. A machine file has one factor for all speeds; with this
    /// the fit does not rely on it.
    ThreadsBySpeed(usize),
    /// By what share a core's watts grow with a degree.
    Leakage,
    /// By what share the power of the cores, of the rest of the packages or of the platform drifts over the calibration.
    Drift(MeteredPart),
}

/// All that is sought, in order.
#[derive(Clone, Debug)]
pub struct Unknowns {
    /// Which.
    pub all: Vec<Unknown>,
    /// What is thought of each before.
    pub prior: Vec<f64>,
    /// The logarithm of each busy level's speed, as a share of its kind's highest; of a C-state that of the lowest level; 0
    /// for all else.
    speed: Vec<f64>,
    /// Its square, as far as it is no straight line over the levels of its kind.
    bend: Vec<f64>,
    /// The logarithm of a busy level's speed less the mean of its kind's.
    faster: Vec<f64>,
    /// Cores of each kind, of all packages.
    cores: Vec<f64>,
    packages: f64,
    /// How long the calibration takes, in s.
    span_s: f64,
}

/// How far an estimate is off, as standard deviations of the logarithm of its watts: what its figures have in common, how
/// much steeper they rise with the speed, how much more they bend (by the square of the speed's logarithm), and each of its own.
struct Doubt {
    common: f64,
    steeper: f64,
    bent: f64,
    own: f64,
}

/// In the 41 clusters of `machines/measured` with five levels and more, busy watts rise with the 0.3rd to 2nd power of the speed,
/// with a standard deviation of 0.47. Around that line they bend by 0.6 of the logarithm's square, with a standard deviation of
/// 0.3; around the parabola they lie within 5 % (root of the mean square). An estimate's own curve is no surer than that: the
/// bend's doubt is larger by a third, and each level's twice as large.
const BUSY: Doubt = Doubt { common: 0.5, steeper: 0.5, bent: 0.4, own: 0.1 };
/// The watts of C-states beside the busy watts of the lowest level, and all others: assumptions. A state whose core is without
/// power says little of one whose clock alone stands still, and the estimate of that is often as much as may be: what a core at
/// work draws.
const IDLE: Doubt = Doubt { common: 0.5, steeper: 0.0, bent: 0.0, own: 0.7 };
const PACKAGE: Doubt = Doubt { common: 0.6, steeper: 0.0, bent: 0.0, own: 0.4 };
const PLATFORM: f64 = 0.6;
/// Of a package's memory: a share of the platform's watts at rest, a share of these for each core at work; and the doubt of each.
const MEMORY: (f64, f64, f64) = (0.2, 0.1, 1.0);
/// Prior lower bound on a power, in W: no estimate is sure enough to say that something draws nothing.
const LEAST_W: f64 = 0.005;
/// Of the factor for all threads, and of leakage, absolute.
const ALL_THREADS: f64 = 0.25;
/// How much that factor may change from one speed to e times it: an assumption.
const THREADS_BY_SPEED: f64 = 0.1;
const LEAKAGE: (f64, f64) = (0.005, 0.005);
/// Standard deviation of a drift, a share of the power an hour: an assumption, no measurement (2.5 % in ten minutes).
const DRIFT_PER_H: f64 = 0.15;
/// What drifts on its own, whichever meters there are.
const DRIFTING: [MeteredPart; 3] = [MeteredPart::Cores, MeteredPart::Rest, MeteredPart::Platform];

fn is_power(unknown: Unknown) -> bool {
    use Unknown::{AllThreads, Drift, Leakage, ThreadsBySpeed};
    !matches!(unknown, Drift(_) | Leakage | AllThreads(_) | ThreadsBySpeed(_))
}

/// How far the square of each is from the straight line through all squares (least squares).
fn beside_a_line(all: &[f64]) -> Vec<f64> {
    let n = all.len().max(1) as f64;
    let mean = |of: &dyn Fn(f64) -> f64| all.iter().map(|x| of(*x)).sum::<f64>() / n;
    let (x, square) = (mean(&|x| x), mean(&|x| x * x));
    let spread = mean(&|at| (at - x).powi(2));
    let slope = if spread > 0.0 { mean(&|at| (at - x) * (at * at - square)) / spread } else { 0.0 };
    all.iter().map(|at| at * at - square - slope * (at - x)).collect()
}

impl Unknowns {
    /// Of a machine whose calibration takes so many seconds; of its memory where that is metered.
    pub(crate) fn of(machine: &MachineModel, span_s: f64, memory: bool) -> Unknowns {
        let (mut all, mut prior, mut speed) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |unknown, value: f64| {
            let level = |k: usize| -> &[SpeedLevel] { &machine.kinds[k].levels };
            let share = match unknown {
                Unknown::Busy(k, l) => f64::from(level(k)[l].khz) / f64::from(level(k)[0].khz),
                Unknown::Idle(k, _) => {
                    f64::from(level(k)[level(k).len() - 1].khz) / f64::from(level(k)[0].khz)
                }
                _ => 1.0,
            };
            all.push(unknown);
            prior.push(if is_power(unknown) { value.max(LEAST_W) } else { value });
            speed.push(share.ln());
        };
        let mut cores = vec![0.0; machine.kinds.len()];
        machine.cores.iter().for_each(|c| cores[usize::from(c.kind)] += 1.0);
        for (k, kind) in machine.kinds.iter().enumerate() {
            let last = kind.levels.len() - 1;
            kind.levels.iter().enumerate().for_each(|(l, level)| add(Unknown::Busy(k, l), level.busy_w));
            kind.idle.iter().enumerate().for_each(|(s, state)| add(Unknown::Idle(k, s), state.watts[last]));
        }
        let package = &machine.packages[0];
        add(Unknown::Uncore, package.uncore_w);
        package.idle.iter().enumerate().for_each(|(s, state)| add(Unknown::Asleep(s), state.watts));
        // An estimate has the memory among the platform.
        let mut platform_w = machine.platform_w;
        if memory {
            let rest_w = platform_w * MEMORY.0 / machine.packages.len() as f64;
            add(Unknown::MemoryRest, rest_w);
            add(Unknown::MemoryBusy, rest_w * MEMORY.1);
            platform_w *= 1.0 - MEMORY.0;
        }
        add(Unknown::Platform, platform_w);
        for (k, kind) in machine.kinds.iter().enumerate().filter(|(_, kind)| kind.smt_power.len() > 1) {
            add(Unknown::AllThreads(k), kind.smt_power[kind.smt_power.len() - 1]);
            add(Unknown::ThreadsBySpeed(k), 0.0);
        }
        add(Unknown::Leakage, LEAKAGE.0);
        DRIFTING.into_iter().for_each(|part| add(Unknown::Drift(part), 0.0));
        let packages = machine.packages.len() as f64;
        let (mut bend, mut faster) = (vec![0.0; all.len()], vec![0.0; all.len()]);
        for k in 0..machine.kinds.len() {
            let own: Vec<usize> =
                (0..all.len()).filter(|at| matches!(all[*at], Unknown::Busy(kind, _) if kind == k)).collect();
            let of: Vec<f64> = own.iter().map(|at| speed[*at]).collect();
            let off = beside_a_line(&of);
            let lowest = off[off.len() - 1];
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            own.iter().zip(&of).for_each(|(at, of)| faster[*at] = of - mean);
            own.into_iter().zip(off).for_each(|(at, off)| bend[at] = off);
            let states = all.iter().zip(&mut bend);
            states
                .filter(|(u, _)| matches!(u, Unknown::Idle(kind, _) if *kind == k))
                .for_each(|(_, bend)| *bend = lowest);
        }
        Unknowns { all, prior, speed, bend, faster, cores, packages, span_s }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where one stands.
    pub fn at(&self, unknown: Unknown) -> Option<usize> {
        self.all.iter().position(|u| *u == unknown)
    }

    /// Whether one is a power, which is positive, and which an estimate misses by a factor.
    pub(super) fn is_power(&self, at: usize) -> bool {
        is_power(self.all[at])
    }

    /// How far a value is from what was thought of it before: the logarithm of a power's factor, a difference of any other.
    pub(super) fn off(&self, at: usize, value: f64) -> f64 {
        if self.is_power(at) { (value / self.prior[at]).ln() } else { value - self.prior[at] }
    }

    /// By how much a figure changes with that distance.
    pub(super) fn unit(&self, at: usize, value: f64) -> f64 {
        if self.is_power(at) { value } else { 1.0 }
    }

    /// How the estimates of two powers are off together: one that has the first too high has the other too high.
    fn together(&self, i: usize, j: usize) -> f64 {
        let cores = || {
            BUSY.common.powi(2)
                + BUSY.steeper.powi(2) * self.speed[i] * self.speed[j]
                + BUSY.bent.powi(2) * self.bend[i] * self.bend[j]
        };
        match (self.all[i], self.all[j]) {
            (Unknown::Idle(a, _), Unknown::Idle(b, _)) if a == b => cores() + IDLE.common.powi(2),
            (Unknown::Busy(a, _) | Unknown::Idle(a, _), Unknown::Busy(b, _) | Unknown::Idle(b, _))
                if a == b =>
            {
                cores()
            }
            (Unknown::Uncore | Unknown::Asleep(_), Unknown::Uncore | Unknown::Asleep(_)) => {
                PACKAGE.common.powi(2)
            }
            _ => 0.0,
        }
    }

    /// The covariance of the distances from what is thought before, as [`Unknowns::off`] has them.
    pub(super) fn prior_spread(&self) -> Vec<f64> {
        let n = self.len();
        let mut spread = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                spread[i * n + j] = self.together(i, j);
            }
            spread[i * n + i] += match self.all[i] {
                Unknown::Busy(..) => BUSY.own * BUSY.own,
                Unknown::Idle(..) => IDLE.own * IDLE.own,
                Unknown::Uncore | Unknown::Asleep(_) => PACKAGE.own * PACKAGE.own,
                Unknown::Platform => PLATFORM * PLATFORM,
                Unknown::MemoryRest | Unknown::MemoryBusy => MEMORY.2 * MEMORY.2,
                Unknown::AllThreads(_) => ALL_THREADS * ALL_THREADS,
                Unknown::ThreadsBySpeed(_) => THREADS_BY_SPEED * THREADS_BY_SPEED,
                Unknown::Leakage => LEAKAGE.1 * LEAKAGE.1,
                Unknown::Drift(_) => (DRIFT_PER_H * self.span_s / 3600.0).powi(2),
            };
        }
        spread
    }

    /// The covariance of what is thought before, of the figures themselves, where these are their values: a power is doubted by
    /// a factor.
    pub(crate) fn prior_covariance(&self, value: &[f64]) -> Vec<f64> {
        let n = self.len();
        let mut covariance = self.prior_spread();
        for i in 0..n {
            for j in 0..n {
                covariance[i * n + j] *= self.unit(i, value[i]) * self.unit(j, value[j]);
            }
        }
        covariance
    }

    /// A row's power by these values, and how it changes with each of them.
    pub(crate) fn predict(
        &self,
        o: &Observation,
        part: MeteredPart,
        time: f64,
        value: &[f64],
    ) -> (f64, Vec<f64>) {
        let mut slope = vec![0.0; self.len()];
        let of = |unknown| self.at(unknown).map_or(0.0, |i| value[i]);
        let hotter = o.celsius.map_or(0.0, |c| c - REFERENCE_C);
        let hot = 1.0 + of(Unknown::Leakage) * hotter;
        // The factor for all threads, and how it changes with the speed: where they stand.
        let threads: Vec<Option<(usize, usize)>> = (0..self.cores.len())
            .map(|k| self.at(Unknown::AllThreads(k)).zip(self.at(Unknown::ThreadsBySpeed(k))))
            .collect();
        // Each component drifts on its own: how much of what is metered each of them draws, and what it is now of what it is
        // in the middle of the time.
        let drifted = DRIFTING.map(|component| 1.0 + time * of(Unknown::Drift(component)));
        let mut drawn = [0.0; DRIFTING.len()];
        let mut memory = 0.0;
        let at_work = |taken: &Taken| taken.one.iter().chain(&taken.all).sum::<f64>();
        for (i, unknown) in self.all.iter().enumerate() {
            let (component, by) = match *unknown {
                Unknown::Busy(k, l) if part.has_cores() => {
                    let (one, all) = (o.taken[k].one[l], o.taken[k].all[l]);
                    let mut factor = 1.0;
                    if let Some((level, tilt)) = threads[k] {
                        factor = value[level] + value[tilt] * self.faster[i];
                        let busy = all * value[i] * hot * drifted[0];
                        slope[level] += busy;
                        slope[tilt] += busy * self.faster[i];
                    }
                    (0, (one + factor * all) * hot)
                }
                Unknown::Idle(k, s) if part.has_cores() => (0, o.taken[k].idle[s] * hot),
                Unknown::Uncore if part.has_rest() => (1, o.awake),
                Unknown::Asleep(s) if part.has_rest() => (1, o.asleep[s]),
                Unknown::MemoryRest | Unknown::MemoryBusy if part == MeteredPart::Memory => {
                    let busy = || o.taken.iter().map(at_work).sum();
                    slope[i] = if *unknown == Unknown::MemoryRest { self.packages } else { busy() };
                    memory += slope[i] * value[i];
                    continue;
                }
                Unknown::Platform if part.has_platform() => (2, 1.0),
                _ => continue,
            };
            slope[i] = by * drifted[component];
            drawn[component] += by * value[i];
        }
        if let Some(at) = self.at(Unknown::Leakage).filter(|_| part.has_cores()) {
            slope[at] = hotter * drawn[0] / hot * drifted[0];
        }
        for (component, drawn) in DRIFTING.into_iter().zip(drawn) {
            if let Some(at) = self.at(Unknown::Drift(component)) {
                slope[at] = time * drawn;
            }
        }
        let drifting: f64 = drawn.iter().zip(drifted).map(|(drawn, drifted)| drawn * drifted).sum();
        (drifting + memory, slope)
    }

    /// Every core draws 1 W more and its package as much less.
    pub(super) fn cores_against_package(&self) -> Vec<f64> {
        let all: f64 = self.cores.iter().sum::<f64>() / self.packages;
        let of = |u: &Unknown| match u {
            Unknown::Busy(..) | Unknown::Idle(..) => 1.0,
            Unknown::Uncore | Unknown::Asleep(_) => -all,
            _ => 0.0,
        };
        self.all.iter().map(of).collect()
    }

    /// Every package draws 1 W more and the platform as much less.
    pub(super) fn package_against_platform(&self) -> Vec<f64> {
        let of = |u: &Unknown| match u {
            Unknown::Uncore | Unknown::Asleep(_) => 1.0,
            Unknown::Platform => -self.packages,
            _ => 0.0,
        };
        self.all.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Taken, Window};

    /// Some of everything, warmer than the reference.
    fn observation(machine: &MachineModel) -> Observation {
        let some = |n: usize, by: f64| (0..n).map(|i| by + 0.1 * i as f64).collect::<Vec<_>>();
        let taken = machine.kinds.iter().map(|kind| Taken {
            one: some(kind.levels.len(), 0.1),
            all: some(kind.levels.len(), 0.05),
            idle: some(kind.idle.len(), 0.3),
        });
        Observation {
            window: Window { parts: Vec::new() },
            at_s: 0.0,
            seconds: 5.0,
            celsius: Some(REFERENCE_C + 20.0),
            taken: taken.collect(),
            awake: 0.6,
            asleep: some(machine.packages[0].idle.len(), 0.2),
            cores_w: None,
            package_w: None,
            memory_w: None,
            machine_w: None,
            reached: Vec::new(),
            own_s: 0.0,
        }
    }

    /// A parabola through three points at -2, -1 and 0: its line is 5/3 at the middle and falls by 2 (by hand).
    #[test]
    fn a_bend_is_what_no_line_explains() {
        let off = beside_a_line(&[0.0, -1.0, -2.0]);
        for (off, wanted) in off.iter().zip([1.0 / 3.0, -2.0 / 3.0, 1.0 / 3.0]) {
            assert!((off - wanted).abs() < 1e-12, "{off} {wanted}");
        }
        let two = beside_a_line(&[0.0, -0.7]);
        assert!(two.iter().all(|off| off.abs() < 1e-12), "{two:?}");
        assert_eq!(beside_a_line(&[-0.3]), [0.0]);
    }

    /// Slopes against differences; a drift moves what drifts and nothing else; parts add up.
    #[test]
    fn a_power_and_how_it_changes_with_each_figure() {
        // Two kinds of core, of which one has two threads.
        let machine = wattwise_replay::library::machine("alderlake-p-laptop").unwrap();
        let (unknowns, o) = (Unknowns::of(&machine, 600.0, true), observation(&machine));
        let mut value = unknowns.prior.clone();
        for at in (0..value.len()).filter(|at| matches!(unknowns.all[*at], Unknown::ThreadsBySpeed(_))) {
            value[at] = 0.07;
        }
        assert_eq!(unknowns.all.iter().filter(|u| matches!(u, Unknown::ThreadsBySpeed(_))).count(), 1);
        for (part, drift) in DRIFTING.into_iter().zip([0.02, 0.1, -0.05]) {
            value[unknowns.at(Unknown::Drift(part)).unwrap()] = drift;
        }
        let watts = |part, time, value: &[f64]| unknowns.predict(&o, part, time, value).0;
        for part in MeteredPart::ALL {
            let (_, slope) = unknowns.predict(&o, part, 0.4, &value);
            for (i, unknown) in unknowns.all.iter().enumerate() {
                let (mut up, mut down) = (value.clone(), value.clone());
                (up[i], down[i]) = (value[i] + 1e-5, value[i] - 1e-5);
                let difference = (watts(part, 0.4, &up) - watts(part, 0.4, &down)) / 2e-5;
                let off = (difference - slope[i]).abs();
                assert!(
                    off < 1e-6 * difference.abs().max(1.0),
                    "{part:?} {unknown:?}: {difference} {}",
                    slope[i]
                );
            }
        }
        let at = |part, time| watts(part, time, &value);
        let rest = at(MeteredPart::Rest, 0.0);
        assert!((at(MeteredPart::Rest, 0.5) - rest * 1.05).abs() < 1e-9);
        let parts = at(MeteredPart::Cores, 0.5) + at(MeteredPart::Rest, 0.5);
        assert!((at(MeteredPart::Package, 0.5) - parts).abs() < 1e-9);
        let busy: f64 = o.taken.iter().flat_map(|t| t.one.iter().chain(&t.all)).sum();
        let (rest_w, busy_w) = (unknowns.at(Unknown::MemoryRest), unknowns.at(Unknown::MemoryBusy));
        let memory = value[rest_w.unwrap()] * machine.packages.len() as f64 + value[busy_w.unwrap()] * busy;
        assert!((at(MeteredPart::Memory, 0.5) - memory).abs() < 1e-9);
        let all = parts + at(MeteredPart::Platform, 0.5);
        assert!((at(MeteredPart::Machine, 0.5) - all).abs() < 1e-9);
    }
}
