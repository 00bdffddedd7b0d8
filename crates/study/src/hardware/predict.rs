//! What the engine says of a table's rows: each distinct setting run once in each replica, and ratios to the reference from them.
//!
//! A replica is one draw of everything that is uncertain of machine and work ([`wattwise_advice::metered`]). In each, the row
//! that calibrates a program tells two or three factors ([`Factors`]): by what that program's busy cores draw more or less than
//! the model's common work, and, where the table meters them apart, the same for the rest of the package and for the memory. No
//! other published value is used.

use super::Change;
use super::table::{Measured, Quantity, Row, Scope, Setting, Table, Unit};
use std::collections::{BTreeMap, BTreeSet};
use wattwise_advice::metered::{Metered, Metering};
use wattwise_figure::Budget;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::PowerSource;
use wattwise_replay::job::{ReplayJob, fits, machine_idle};
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;
use wattwise_trace::ImportOptions;

/// A program's busy watts may be so far from the model's common work before the rest of the package has to explain it.
const BUSY: (f64, f64) = (0.25, 4.0);
/// Standard deviation of the logarithm of what programs draw of common work's watts.
const PROGRAMS: f64 = 0.35;
/// The same of what the rest of the package or the board really draws of what a draw says.
const PARTS: f64 = 0.35;
/// A draw that explains a row by less is as good as one that does not at all.
const LEAST_WEIGHT: f64 = 1e-6;
/// The share of the replicas that count at least: chosen, not fitted to a score.
const ENOUGH: f64 = 0.25;
/// What has to explain the rest may be so far off.
const REST: (f64, f64) = (0.05, 20.0);

/// A setting's runs: the nominal one first, then the replicas; or why it cannot be run.
pub(super) type Runs = Result<Vec<Metered>, String>;

/// What was run: a setting, and for limits of power the program, since they act on what it draws.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) common: BTreeMap<Setting, Runs>,
    /// By table, program and setting.
    limited: BTreeMap<(usize, String, Setting), Runs>,
}

/// A program's watts in every draw, and what it is run under.
type Limited<'t> = (usize, &'t str, &'t Setting, Vec<Factors>);

impl Ran {
    /// A setting's runs with common work's watts.
    pub(super) fn common(&self, setting: &Setting) -> Option<&Runs> {
        self.common.get(setting)
    }

    /// A setting's runs with the program's own watts, where a limit of power asks for them.
    pub(super) fn limited(&self, table: usize, program: &str, setting: &Setting) -> Option<&Runs> {
        self.limited.get(&(table, program.to_owned(), setting.clone()))
    }
}

/// Whether a policy limits the power.
fn limits_power(setting: &Setting) -> bool {
    PolicySpec::parse(&setting.policy).is_ok_and(|p| p.limits.power_uw.is_some())
}

/// All these settings of the tables, run. `tell` is called for each.
pub(super) fn run_all(
    tables: &[Table],
    settings: &[BTreeSet<&Setting>],
    replicas: u64,
    change: Option<Change>,
    tell: &(dyn Fn() + Sync),
) -> Ran {
    let all: BTreeSet<&Setting> = settings.iter().flatten().copied().collect();
    let texts: BTreeSet<&str> = all.iter().map(|s| &*s.machine).collect();
    let machines: BTreeMap<&str, Result<MachineModel, String>> = texts
        .into_iter()
        .map(|text| (text, library::parsed(text, "machine").map_err(|e| e.to_string())))
        .collect();
    let one = |setting: &Setting, factors: Option<&[Factors]>| {
        let runs = match machines.get(&*setting.machine) {
            Some(Ok(machine)) => run(machine, setting, replicas, factors, change),
            Some(Err(e)) => Err(e.clone()),
            None => Err("no machine".into()),
        };
        tell();
        runs
    };
    let all: Vec<&Setting> = all.into_iter().collect();
    let common: Vec<(Setting, Runs)> = wattwise_threads::map(all, |s: &Setting| (s.clone(), one(s, None)));
    let common = common.into_iter().collect();
    let limited = limited(tables, settings, &common);
    let each = |(at, program, setting, factors): Limited<'_>| {
        ((at, program.to_owned(), setting.clone()), one(setting, Some(&factors)))
    };
    let limited: Vec<_> = wattwise_threads::map(limited, each);
    Ran { common, limited: limited.into_iter().collect() }
}

/// Which programs have to be run under which limits of power, with their own watts.
fn limited<'t>(
    tables: &'t [Table],
    settings: &[BTreeSet<&Setting>],
    common: &BTreeMap<Setting, Runs>,
) -> Vec<Limited<'t>> {
    let mut out = Vec::new();
    for (at, (table, kept)) in tables.iter().zip(settings).enumerate() {
        let calibrations = calibrations(table, common);
        let mut seen = BTreeSet::new();
        for row in &table.rows {
            let Ok(setting) = &row.setting else { continue };
            let Some(factors) = calibrations.get(row.program.as_str()) else { continue };
            if kept.contains(setting) && limits_power(setting) && seen.insert((&row.program, setting)) {
                out.push((at, row.program.as_str(), setting, factors.clone()));
            }
        }
    }
    out
}

/// One setting in the nominal model and in each replica, with a program's factors in the engine where they are given.
fn run(
    machine: &MachineModel,
    setting: &Setting,
    replicas: u64,
    factors: Option<&[Factors]>,
    change: Option<Change>,
) -> Runs {
    let read = |work: &String| library::workload(work, &ImportOptions::default()).map_err(|e| e.to_string());
    let works = setting.works.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let policy = PolicySpec::parse(&setting.policy).map_err(|e| e.problem())?;
    fits(&policy, machine).map_err(|e| e.problem())?;
    let idle = machine_idle(machine).map_err(|e| e.to_string())?;
    let policies = std::slice::from_ref(&policy);
    let one = |workload: &Workload, n: u64| {
        let job = ReplayJob {
            machine,
            workload,
            policies,
            source: PowerSource::Mains,
            latency_limit_ns: u64::MAX,
            detail: false,
            budget: Budget::default(),
        };
        let drawn = Metering::draw(&job, n).map_err(|e| e.to_string())?;
        let drawn = change.into_iter().fold(drawn, Metering::changed);
        let drawn = match factors.and_then(|f| f.get(n as usize)) {
            Some(f) => drawn.scaled(f.busy, f.uncore, f.memory),
            None => drawn,
        };
        drawn.run(&job, &policy, &idle).map_err(|e| e.to_string())
    };
    let replica = |n: u64| Ok(mean(&works.iter().map(|w| one(w, n)).collect::<Result<Vec<_>, String>>()?));
    (0..=replicas).map(replica).collect()
}

/// What one figure of several runs is of: the geometric mean of their times, the mean of their watts.
fn mean(runs: &[Metered]) -> Metered {
    let [first, more @ ..] = runs else { return Metered::default() };
    if more.is_empty() {
        return *first;
    }
    let mean = |of: &dyn Fn(&Metered) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let elapsed_s = mean(&|r| r.elapsed_s.ln()).exp();
    let joules = |of: fn(&Metered) -> f64| mean(&|r| of(r) / r.elapsed_s) * elapsed_s;
    Metered {
        elapsed_s,
        busy_j: joules(|r| r.busy_j),
        idle_j: joules(|r| r.idle_j),
        uncore_j: joules(|r| r.uncore_j),
        memory_j: joules(|r| r.memory_j),
        platform_j: joules(|r| r.platform_j),
        mean_khz: mean(&|r| r.mean_khz),
    }
}

/// By what a program's watts differ from the model's, in one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factors {
    busy: f64,
    uncore: f64,
    memory: f64,
    platform: f64,
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

/// The published watts of calibrating rows, by scope: their mean.
fn published_watts(table: &Table, rows: &[&Row], scope: Scope) -> Option<f64> {
    let at = |wanted: &dyn Fn(&Quantity) -> bool| {
        let place = table.quantities.iter().position(wanted)?;
        let values: Vec<f64> =
            rows.iter().filter_map(|r| r.values[place].map(|m: Measured| m.value)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let watts = at(&|q| q.unit == Unit::W && q.of == scope);
    let joules = || Some(at(&|q| q.unit == Unit::J && q.of == scope)? / at(&|q| q.unit == Unit::S)?);
    watts.or_else(joules)
}

/// Each program's factors by replica (0 is nominal), where a row calibrates it and could be run.
pub(super) fn calibrations<'t>(
    table: &'t Table,
    runs: &BTreeMap<Setting, Runs>,
) -> BTreeMap<&'t str, Vec<Factors>> {
    let mut by_program: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in table.rows.iter().filter(|r| r.calibrates) {
        by_program.entry(&row.program).or_default().push(row);
    }
    let of = |(program, rows): (&'t str, Vec<&'t Row>)| {
        let setting = rows[0].setting.as_ref().ok()?;
        let ran = runs.get(setting)?.as_ref().ok()?;
        let watts = |scope| published_watts(table, &rows, scope);
        let mut factors: Vec<Factors> = ran.iter().map(|r| Factors::of(&watts, r)).collect();
        let drawn = usize::from(factors.len() > 1);
        temper(&mut factors[drawn..]);
        Some((program, factors))
    };
    by_program.into_iter().filter_map(of).collect()
}

/// Takes weights to a power below 1 where the greatest would decide alone: as many replicas as [`ENOUGH`] says count at least, by
/// Kish's effective number, (sum w)^2 / sum w^2. Without it a row far from all draws is predicted by the one replica nearest to it.
fn temper(factors: &mut [Factors]) {
    let effective = |power: f64| {
        let weights = || factors.iter().map(|f| f.weight.powf(power));
        weights().sum::<f64>().powi(2) / weights().map(|w| w * w).sum::<f64>()
    };
    let wanted = ENOUGH * factors.len() as f64;
    if factors.is_empty() || effective(1.0) >= wanted {
        return;
    }
    // The effective number falls as the power rises: from all of them at 0.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if effective(middle) >= wanted { low = middle } else { high = middle }
    }
    factors.iter_mut().for_each(|f| f.weight = f.weight.powf(low));
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAN: Metered = Metered {
        elapsed_s: 2.0,
        busy_j: 20.0,
        idle_j: 2.0,
        uncore_j: 8.0,
        memory_j: 4.0,
        platform_j: 40.0,
        mean_khz: 0.0,
    };

    fn value(f: &Factors, unit: Unit, of: Scope) -> f64 {
        f.value(&Quantity { column: String::new(), unit, of }, &RAN)
    }

    /// By hand: 2 and 8 s have the geometric mean 4 s, 10 and 5 W the mean 7.5 W.
    #[test]
    fn a_figure_of_several_works_is_their_mean() {
        let longer = Metered { elapsed_s: 8.0, busy_j: 40.0, ..RAN };
        let both = mean(&[RAN, longer]);
        assert!((both.elapsed_s - 4.0).abs() < 1e-12 && (both.busy_j - 30.0).abs() < 1e-12, "{both:?}");
        assert_eq!(mean(&[RAN]), RAN);
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

    /// Weights of 1, 1e-2, 1e-4 ... have 1.02 effective replicas of 12. By hand, to the power p they are a geometric series of ratio
    /// r = 100^-p: (1 + r) / (1 - r) = 3 effective ones at r = 1/2, but for the end of the series (0.5^12).
    #[test]
    fn no_replica_decides_alone() {
        let series = |ratio: f64| -> Vec<Factors> {
            (0..12).map(|n| Factors { weight: ratio.powi(n), ..Factors::default() }).collect()
        };
        let mut few = series(1e-2);
        temper(&mut few);
        let ratio = few[1].weight / few[0].weight;
        assert!((ratio - 0.5).abs() < 1e-3, "{ratio}");
        let mut enough = series(0.9);
        temper(&mut enough);
        assert_eq!(enough, series(0.9));
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
