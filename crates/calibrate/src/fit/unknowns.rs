//! What is sought of a machine, what is thought of it before, and what it makes of an observation.

use super::linear::Triangle;
use crate::window::Observation;
use wattwise_model::machine::{MachineModel, REFERENCE_C};

/// What a row of the fit is the power of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeteredPart {
    /// All cores.
    Cores,
    /// Packages without their cores.
    Rest,
    /// Packages with their cores.
    Package,
    /// What lies outside of the packages.
    Platform,
    /// Everything.
    Machine,
}

impl MeteredPart {
    /// Each.
    pub const ALL: [MeteredPart; 5] = [
        MeteredPart::Cores,
        MeteredPart::Rest,
        MeteredPart::Package,
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
    /// Watts outside of the packages.
    Platform,
    /// What a core of a kind draws with all threads at work, of what it draws with one.
    AllThreads(usize),
    /// By what share a core's watts grow with a degree.
    Leakage,
    /// By what share a part's power drifts over the calibration.
    Drift(MeteredPart),
}

/// All that is sought, in order.
#[derive(Clone, Debug)]
pub struct Unknowns {
    /// Which.
    pub all: Vec<Unknown>,
    /// What is thought of each before.
    pub prior: Vec<f64>,
    /// Cores of each kind, of all packages.
    cores: Vec<f64>,
    packages: f64,
}

/// How far an estimate is off: what its figures have in common, and each of its own, as shares.
struct Doubt {
    common: f64,
    own: f64,
}

const BUSY: Doubt = Doubt { common: 0.5, own: 0.25 };
const IDLE: Doubt = Doubt { common: 0.7, own: 0.5 };
const PACKAGE: Doubt = Doubt { common: 0.6, own: 0.4 };
const PLATFORM: Doubt = Doubt { common: 0.0, own: 0.6 };
/// Of the factor for all threads, and of leakage, absolute.
const ALL_THREADS: f64 = 0.25;
const LEAKAGE: (f64, f64) = (0.005, 0.005);
/// Of a drift over the whole time.
const DRIFT: f64 = 0.03;

impl Unknowns {
    pub(crate) fn of(machine: &MachineModel) -> Unknowns {
        let (mut all, mut prior) = (Vec::new(), Vec::new());
        let mut add = |unknown, value: f64| {
            all.push(unknown);
            prior.push(value);
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
        add(Unknown::Platform, machine.platform_w);
        for (k, kind) in machine.kinds.iter().enumerate().filter(|(_, kind)| kind.smt_power.len() > 1) {
            add(Unknown::AllThreads(k), kind.smt_power[kind.smt_power.len() - 1]);
        }
        add(Unknown::Leakage, LEAKAGE.0);
        MeteredPart::ALL.into_iter().for_each(|part| add(Unknown::Drift(part), 0.0));
        let packages = machine.packages.len() as f64;
        Unknowns { all, prior, cores, packages }
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

    pub(super) fn is_power(&self, at: usize) -> bool {
        !matches!(self.all[at], Unknown::Drift(_) | Unknown::Leakage | Unknown::AllThreads(_))
    }

    /// Figures of which an estimate that has one too high has the others too high.
    fn group(unknown: Unknown) -> Option<(usize, Doubt)> {
        match unknown {
            Unknown::Busy(k, _) => Some((2 * k, BUSY)),
            Unknown::Idle(k, _) => Some((2 * k + 1, IDLE)),
            Unknown::Uncore | Unknown::Asleep(_) => Some((usize::MAX, PACKAGE)),
            Unknown::Platform => Some((usize::MAX - 1, PLATFORM)),
            _ => None,
        }
    }

    /// A power's scale: no estimate is so sure that something draws nothing.
    fn scale(&self, at: usize) -> f64 {
        self.prior[at].max(0.005)
    }

    /// The inverse of the covariance of what is thought before: a common factor for each group, and one of its own.
    pub(super) fn prior_precision(&self) -> Vec<f64> {
        let n = self.len();
        let mut p = vec![0.0; n * n];
        for i in 0..n {
            let own = match self.all[i] {
                Unknown::AllThreads(_) => ALL_THREADS,
                Unknown::Leakage => LEAKAGE.1,
                Unknown::Drift(_) => DRIFT,
                _ => continue,
            };
            p[i * n + i] = own.powi(-2);
        }
        let mut done = vec![false; n];
        for first in 0..n {
            let Some((group, doubt)) = Unknowns::group(self.all[first]).filter(|_| !done[first]) else {
                continue;
            };
            let members: Vec<usize> = (first..n)
                .filter(|i| Unknowns::group(self.all[*i]).is_some_and(|(g, _)| g == group))
                .collect();
            // By Sherman and Morrison, in units of each figure's own scale.
            let (own, common) = (doubt.own.powi(-2), doubt.common.powi(2));
            let shared = own * own * common / (1.0 + own * common * members.len() as f64);
            for &i in &members {
                done[i] = true;
                for &j in &members {
                    let cell = if i == j { own - shared } else { -shared };
                    p[i * n + j] = cell / (self.scale(i) * self.scale(j));
                }
            }
        }
        p
    }

    /// The covariance of what is thought before.
    pub(crate) fn prior_covariance(&self) -> Option<Vec<f64>> {
        Some(Triangle::of(self.len(), self.prior_precision())?.inverse())
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
        let factor: Vec<f64> = (0..self.cores.len())
            .map(|k| self.at(Unknown::AllThreads(k)).map_or(1.0, |i| value[i]))
            .collect();
        let mut watts = 0.0;
        for (i, unknown) in self.all.iter().enumerate() {
            slope[i] = match *unknown {
                Unknown::Busy(k, l) if part.has_cores() => {
                    (o.taken[k].one[l] + factor[k] * o.taken[k].all[l]) * hot
                }
                Unknown::Idle(k, s) if part.has_cores() => o.taken[k].idle[s] * hot,
                Unknown::Uncore if part.has_rest() => o.awake,
                Unknown::Asleep(s) if part.has_rest() => o.asleep[s],
                Unknown::Platform if part.has_platform() => 1.0,
                _ => 0.0,
            };
            watts += slope[i] * value[i];
        }
        if part.has_cores() {
            let of_cores = self.all.iter().zip(&slope).zip(value);
            let leaking: f64 = of_cores
                .filter(|((u, _), _)| matches!(u, Unknown::Busy(..) | Unknown::Idle(..)))
                .map(|((_, slope), value)| slope / hot * value)
                .sum();
            for (k, taken) in o.taken.iter().enumerate() {
                if let Some(at) = self.at(Unknown::AllThreads(k)) {
                    let busy = taken.all.iter().enumerate().map(|(l, n)| n * of(Unknown::Busy(k, l)));
                    slope[at] = hot * busy.sum::<f64>();
                }
            }
            if let Some(at) = self.at(Unknown::Leakage) {
                slope[at] = hotter * leaking;
            }
        }
        // All of it drifts together.
        let drifted = 1.0 + time * of(Unknown::Drift(part));
        slope.iter_mut().for_each(|s| *s *= drifted);
        if let Some(at) = self.at(Unknown::Drift(part)) {
            slope[at] = time * watts;
        }
        (watts * drifted, slope)
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
