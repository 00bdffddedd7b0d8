//! By what a program's watts differ from the model's, as one row of known watts tells.

use super::table::{Quantity, Scope, Unit};
use wattwise_advice::metered::Metered;

/// A program's busy watts may be so far from the model's common work before the rest of the package has to explain it.
pub(super) const BUSY: (f64, f64) = (0.25, 4.0);
/// Standard deviation of the logarithm of what programs draw of common work's watts.
const PROGRAMS: f64 = 0.35;
/// The same of what the rest of the package or the board really draws of what a draw says.
const PARTS: f64 = 0.35;
/// A draw that explains a row by less is as good as one that does not at all.
const LEAST_WEIGHT: f64 = 1e-6;
/// What has to explain the rest may be so far off.
const REST: (f64, f64) = (0.05, 20.0);

/// By what a program's watts differ from the model's, in one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) busy: f64,
    pub(super) uncore: f64,
    pub(super) memory: f64,
    pub(super) platform: f64,
    /// How well the draw goes with the calibrating row, from 0 to 1: a draw that can explain it only by a program of far more or
    /// far less than common watts counts for less.
    pub(super) weight: f64,
}

impl Default for Factors {
    fn default() -> Factors {
        Factors { busy: 1.0, uncore: 1.0, memory: 1.0, platform: 1.0, weight: 1.0 }
    }
}

impl Factors {
    /// From the published watts of one row, by scope, and what ran for it.
    pub(super) fn of(watts: &dyn Fn(Scope) -> Option<f64>, ran: &Metered) -> Factors {
        let t = ran.elapsed_s.max(1e-9);
        let (busy, idle) = (ran.busy_j / t, ran.idle_j / t);
        let (uncore, memory, platform) = (ran.uncore_j / t, ran.memory_j / t, ran.platform_j / t);
        let mut surprise = 0.0;
        let mut ratio = |wanted: f64, model: f64, (low, high): (f64, f64), sd: f64| {
            if model <= 0.0 {
                return 1.0;
            }
            surprise += ((wanted / model).max(1e-3).ln() / sd).powi(2);
            (wanted / model).clamp(low, high)
        };
        let mut f = Factors::default();
        if let Some(dram) = watts(Scope::Dram) {
            f.memory = ratio(dram, memory, REST, f64::INFINITY);
        }
        let package = watts(Scope::Package).or(watts(Scope::PackageDram).map(|w| w - f.memory * memory));
        match (watts(Scope::Cores), package, watts(Scope::Wall)) {
            (Some(cores), package, _) => {
                f.busy = ratio(cores - idle, busy, REST, PROGRAMS);
                if let Some(package) = package {
                    f.uncore = ratio(package - cores, uncore, REST, PARTS);
                }
            }
            (None, Some(package), _) => {
                f.busy = ratio(package - uncore - idle, busy, BUSY, PROGRAMS);
                f.uncore = ratio(package - f.busy * busy - idle, uncore, REST, PARTS);
            }
            (None, None, Some(wall)) => {
                f.busy = ratio(wall - platform - memory - uncore - idle, busy, BUSY, PROGRAMS);
                f.platform = ratio(wall - f.busy * busy - idle - uncore - memory, platform, REST, PARTS);
            }
            (None, None, None) => {}
        }
        f.weight = (-0.5 * surprise).exp().max(LEAST_WEIGHT);
        f
    }

    /// What the packages draw of a run with common work's watts.
    pub(super) fn package_w(&self, ran: &Metered) -> f64 {
        (self.busy * ran.busy_j + ran.idle_j + self.uncore * ran.uncore_j) / ran.elapsed_s.max(1e-9)
    }

    /// These with what a run with them tells in addition. The board's are no part of the engine's run: they are told anew.
    pub(super) fn corrected(&self, step: &Factors) -> Factors {
        let busy = (self.busy * step.busy).clamp(BUSY.0, BUSY.1);
        let uncore = (self.uncore * step.uncore).clamp(REST.0, REST.1);
        let parts = [(busy, PROGRAMS), (uncore, PARTS), (step.platform, PARTS)];
        let surprise: f64 = parts.iter().map(|(f, sd)| (f.ln() / sd).powi(2)).sum();
        Factors {
            busy,
            uncore,
            memory: (self.memory * step.memory).clamp(REST.0, REST.1),
            platform: step.platform,
            weight: (-0.5 * surprise).exp().max(LEAST_WEIGHT),
        }
    }

    /// What is left to multiply where the engine has run with the others already.
    pub(super) fn in_engine(&self) -> Factors {
        Factors { platform: self.platform, weight: self.weight, ..Factors::default() }
    }

    /// What a quantity comes to.
    pub(super) fn value(&self, quantity: &Quantity, ran: &Metered) -> f64 {
        let cores = self.busy * ran.busy_j + ran.idle_j;
        let package = cores + self.uncore * ran.uncore_j;
        let memory = self.memory * ran.memory_j;
        let joules = match quantity.of {
            Scope::Cores => cores,
            Scope::Package => package,
            Scope::Dram => memory,
            Scope::PackageDram => package + memory,
            Scope::Wall => package + memory + self.platform * ran.platform_j,
        };
        let t = ran.elapsed_s.max(1e-12);
        match quantity.unit {
            Unit::J => joules,
            Unit::W => joules / t,
            Unit::S => t,
            Unit::Rate => 1.0 / t,
        }
    }
}

/// A run for tests: two seconds at 10 + 1 + 4 W of a package, 2 W of memory and 20 W of the board.
#[cfg(test)]
pub(super) const RAN: Metered = Metered {
    elapsed_s: 2.0,
    busy_j: 20.0,
    idle_j: 2.0,
    uncore_j: 8.0,
    memory_j: 4.0,
    platform_j: 40.0,
    mean_khz: 0.0,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn value(f: &Factors, unit: Unit, of: Scope) -> f64 {
        f.value(&Quantity { column: String::new(), unit, of }, &RAN)
    }

    #[test]
    fn the_calibrating_row_comes_out_as_published() {
        // 30 W of the package: the model has 10 + 1 + 4 of them.
        let f = Factors::of(&|s| (s == Scope::Package).then_some(30.0), &RAN);
        assert!((value(&f, Unit::W, Scope::Package) - 30.0).abs() < 1e-9);
        assert!((f.busy - 2.5).abs() < 1e-9 && f.uncore == 1.0, "{f:?}");
        let planes = |s| match s {
            Scope::Cores => Some(12.0),
            Scope::Package => Some(20.0),
            Scope::Dram => Some(3.0),
            _ => None,
        };
        let f = Factors::of(&planes, &RAN);
        assert!((value(&f, Unit::J, Scope::Cores) - 24.0).abs() < 1e-9);
        assert!((value(&f, Unit::W, Scope::Package) - 20.0).abs() < 1e-9);
        assert!((value(&f, Unit::W, Scope::Dram) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_busy_cores_cannot_explain_is_the_packages() {
        // 3 W of the package are less than its own 4 W and the idle cores' 1 W.
        let f = Factors::of(&|s| (s == Scope::Package).then_some(4.0), &RAN);
        assert_eq!(f.busy, BUSY.0);
        let usual = Factors::of(&|s| (s == Scope::Package).then_some(15.0), &RAN);
        assert!(f.weight < 1e-3 && usual.weight == 1.0, "{} {}", f.weight, usual.weight);
        assert!((value(&f, Unit::W, Scope::Package) - 4.0).abs() < 1e-9);
    }
}
