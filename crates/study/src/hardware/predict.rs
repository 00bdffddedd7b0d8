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
/// The share of its limit that a package may draw before the limit is looked at; of all their limits, where there are several.
const NEAR: f64 = 0.9;
const NEAR_OF_SEVERAL: f64 = 0.5;
/// Runs of a calibrating row with its program's watts, each of which corrects them: what a limit hides shows bit by bit.
const CORRECTIONS: usize = 6;
/// Watts that are corrected by less stay.
const CORRECT: f64 = 0.01;
/// What has to explain the rest may be so far off.
const REST: (f64, f64) = (0.05, 20.0);

/// A setting's runs: the nominal one first, then the replicas; or why it cannot be run.
pub(super) type Runs = Result<Vec<Metered>, String>;

/// What was run: a setting, and for limits of power the program, since they act on what it draws.
#[derive(Default)]
pub(super) struct Ran {
    common: BTreeMap<Setting, Runs>,
    /// By table, program and setting.
    limited: BTreeMap<(usize, String, Setting), Runs>,
    /// By table and program.
    factors: BTreeMap<(usize, String), Vec<Factors>>,
    /// Programs whose calibrating watts no draw explains, by table: a sentence each.
    unexplained: BTreeMap<usize, Vec<String>>,
}

/// Machines by their text, or why one cannot be read.
type Machines<'t> = BTreeMap<&'t str, Result<MachineModel, String>>;

/// A program's watts in every draw, and what it is run under.
type Limited<'t> = (usize, &'t str, &'t Setting, &'t [Factors]);

impl Ran {
    /// A setting's runs with common work's watts.
    pub(super) fn common(&self, setting: &Setting) -> Option<&Runs> {
        self.common.get(setting)
    }

    /// A setting's runs with the program's own watts, where a limit of power asks for them.
    pub(super) fn limited(&self, table: usize, program: &str, setting: &Setting) -> Option<&Runs> {
        self.limited.get(&(table, program.to_owned(), setting.clone()))
    }

    /// What is odd about a table's calibrating rows.
    pub(super) fn unexplained(&self, table: usize) -> Vec<String> {
        self.unexplained.get(&table).cloned().unwrap_or_default()
    }

    /// A program's factors by replica (0 is nominal), where a row calibrates it and could be run.
    pub(super) fn factors(&self, table: usize, program: &str) -> Option<&[Factors]> {
        self.factors.get(&(table, program.to_owned())).map(Vec::as_slice)
    }
}

/// Whether a policy limits the power.
fn limits_power(setting: &Setting) -> bool {
    PolicySpec::parse(&setting.policy).is_ok_and(|p| p.limits.power_uw.is_some())
}

/// Whether a machine's own limit of power may act on a program, by what its packages draw without it or under it: in some draw
/// as much as the limit, less a margin. Of several packages one may be at its limit alone.
fn nears_limit(machine: &MachineModel, ran: &[Metered], factors: &[Factors]) -> bool {
    let packages = machine.packages.len();
    let share = if packages > 1 { NEAR_OF_SEVERAL } else { NEAR };
    let Some(limit) = machine.packages.iter().find_map(|p| p.limit) else { return false };
    let near = share * limit.long_w * packages as f64;
    ran.iter().zip(factors).any(|(r, f)| f.package_w(r).max(Factors::default().package_w(r)) >= near)
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
    let machines: Machines<'_> = texts
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
    let common: BTreeMap<Setting, Runs> = common.into_iter().collect();
    let calibrated = tables.iter().enumerate().flat_map(|(at, table)| calibrations(at, table, &common));
    let calibrated: Vec<Calibration<'_>> = calibrated.collect();
    let unlimited = unlimited(&calibrated, &machines);
    let near = |at: usize, setting: &Setting, ran: &[Metered], factors: &[Factors]| {
        let machine =
            machines.get(&*setting.machine).filter(|_| !unlimited.contains(&(at, &*setting.machine)));
        matches!(machine, Some(Ok(machine)) if nears_limit(machine, ran, factors))
    };
    let corrected = |mut c: Calibration<'_>| {
        let ran = common.get(c.setting).and_then(|runs| runs.as_ref().ok());
        if ran.is_some_and(|ran| near(c.table, c.setting, ran, &c.factors)) {
            c.correct(|factors| one(c.setting, Some(factors)));
        }
        let drawn = usize::from(c.factors.len() > 1);
        temper(&mut c.factors[drawn..]);
        let odd = ran.and_then(|ran| c.unexplained(ran)).map(|why| (c.table, why));
        (((c.table, c.program.to_owned()), c.factors), odd)
    };
    let told: Vec<_> = wattwise_threads::map(calibrated, corrected);
    let (factors, odd): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let mut unexplained: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    odd.into_iter().flatten().for_each(|(at, why)| unexplained.entry(at).or_default().push(why));
    let factors: BTreeMap<(usize, String), Vec<Factors>> = factors.into_iter().collect();
    let mut ran = Ran { common, factors, unexplained, limited: BTreeMap::new() };
    let each = |(at, program, setting, factors): Limited<'_>| {
        ((at, program.to_owned(), setting.clone()), one(setting, Some(factors)))
    };
    let limited: Vec<_> = wattwise_threads::map(limited(tables, settings, &ran, near), each);
    ran.limited = limited.into_iter().collect();
    ran
}

/// The tables' machines on which no limit was in force, by what a calibrating row drew.
fn unlimited<'t>(calibrated: &[Calibration<'t>], machines: &Machines<'_>) -> BTreeSet<(usize, &'t str)> {
    let is_beyond = |c: &&Calibration<'t>| matches!(machines.get(&*c.setting.machine), Some(Ok(m)) if c.is_beyond_limit(m));
    calibrated.iter().filter(is_beyond).map(|c| (c.table, &*c.setting.machine)).collect()
}

/// Which programs have to be run with their own watts, and in which settings: where a limit of power may act on them.
fn limited<'t>(
    tables: &'t [Table],
    settings: &[BTreeSet<&Setting>],
    ran: &'t Ran,
    near: impl Fn(usize, &Setting, &[Metered], &[Factors]) -> bool,
) -> Vec<Limited<'t>> {
    let mut out = Vec::new();
    for (at, (table, kept)) in tables.iter().zip(settings).enumerate() {
        let mut seen = BTreeSet::new();
        for row in &table.rows {
            let Ok(setting) = &row.setting else { continue };
            let Some(factors) = ran.factors(at, &row.program) else { continue };
            let Some(Ok(runs)) = ran.common(setting) else { continue };
            let acts = || limits_power(setting) || near(at, setting, runs, factors);
            if kept.contains(setting) && !seen.contains(&(&row.program, setting)) && acts() {
                seen.insert((&row.program, setting));
                out.push((at, row.program.as_str(), setting, factors));
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

    /// What the packages draw of a run with common work's watts.
    fn package_w(&self, ran: &Metered) -> f64 {
        (self.busy * ran.busy_j + ran.idle_j + self.uncore * ran.uncore_j) / ran.elapsed_s.max(1e-9)
    }

    /// These with what a run with them tells in addition. The board's are no part of the engine's run: they are told anew.
    fn corrected(&self, step: &Factors) -> Factors {
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

/// A program that a row calibrates.
struct Calibration<'t> {
    table: usize,
    program: &'t str,
    setting: &'t Setting,
    /// The row's published watts, by scope.
    watts: BTreeMap<Scope, f64>,
    /// By replica; 0 is nominal.
    factors: Vec<Factors>,
}

impl Calibration<'_> {
    /// Whether the row's packages drew more than their limit allows even for a moment: then no such limit was in force on the
    /// machine that was measured. Boards for desktops often lift it.
    fn is_beyond_limit(&self, machine: &MachineModel) -> bool {
        let limit = machine.packages.iter().find_map(|p| p.limit);
        let most = limit.map_or(f64::INFINITY, |l| if l.tau_s > 0.0 { l.short_w } else { l.long_w });
        self.watts.get(&Scope::Package).is_some_and(|w| *w > most * machine.packages.len() as f64)
    }

    /// Why no draw explains the row: its watts are out of reach of all of them, as where the column is in another unit.
    fn unexplained(&self, ran: &[Metered]) -> Option<String> {
        let reached = self.factors.iter().any(|f| f.busy > BUSY.0 && f.busy < BUSY.1);
        let metered = [Scope::Package, Scope::PackageDram].into_iter().find_map(|s| self.watts.get(&s))?;
        let model = ran.iter().map(|r| Factors::default().package_w(r));
        let (low, high) = model.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), w| (l.min(w), h.max(w)));
        (!reached && !(low..=high).contains(metered)).then(|| {
            format!(
                "the row that calibrates {} has {metered:.3} W, the model {low:.1} to {high:.1}: expected watts, as by the quantity's key scale",
                if self.program.is_empty() { "it" } else { self.program }
            )
        })
    }

    /// Corrects the factors by running with them. Under a limit of power common work is slowed where the program may not be, and
    /// what the row tells of watts is told of another clock.
    fn correct(&mut self, run: impl Fn(&[Factors]) -> Runs) {
        for _ in 0..CORRECTIONS {
            let Ok(ran) = run(&self.factors) else { return };
            let steps: Vec<Factors> =
                ran.iter().map(|r| Factors::of(&|scope| self.watts.get(&scope).copied(), r)).collect();
            self.factors.iter_mut().zip(&steps).for_each(|(f, step)| *f = f.corrected(step));
            // One that still draws too little is held at the limit: it may ask for any more.
            if steps.iter().all(|step| step.busy.ln() > -CORRECT) {
                return;
            }
        }
    }
}

/// The programs of a table that a row calibrates and that could be run.
fn calibrations<'t>(at: usize, table: &'t Table, runs: &BTreeMap<Setting, Runs>) -> Vec<Calibration<'t>> {
    let mut by_program: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in table.rows.iter().filter(|r| r.calibrates) {
        by_program.entry(&row.program).or_default().push(row);
    }
    let of = |(program, rows): (&'t str, Vec<&'t Row>)| {
        let setting = rows[0].setting.as_ref().ok()?;
        let ran = runs.get(setting)?.as_ref().ok()?;
        let watts: BTreeMap<Scope, f64> =
            Scope::ALL.into_iter().filter_map(|s| Some((s, published_watts(table, &rows, s)?))).collect();
        let factors = ran.iter().map(|r| Factors::of(&|scope| watts.get(&scope).copied(), r)).collect();
        Some(Calibration { table: at, program, setting, watts, factors })
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

    fn calibration(package_w: f64) -> Calibration<'static> {
        static SETTING: std::sync::LazyLock<Setting> = std::sync::LazyLock::new(|| Setting {
            machine: "".into(),
            works: Vec::new(),
            policy: String::new(),
        });
        let watts = BTreeMap::from([(Scope::Package, package_w)]);
        let factors = vec![Factors::of(&|s| (s == Scope::Package).then_some(package_w), &RAN)];
        Calibration { table: 0, program: "p", setting: &SETTING, watts, factors }
    }

    /// A machine of 4 W beside a core that asks for `wants` W at its full clock, under a limit of 10 W: a run with factors.
    fn under_a_limit(wants: f64, factors: &[Factors]) -> Runs {
        let of = |f: &Factors| Metered { busy_j: 2.0 * (f.busy * wants).min(6.0), idle_j: 0.0, ..RAN };
        Ok(factors.iter().map(of).collect())
    }

    /// By hand: common work asks for 12 W and gets 6 of them. A row of 7 W has 3 W of the core: a quarter of what common work asks
    /// for, and not half of what it gets.
    #[test]
    fn a_program_below_the_limit_is_told_from_common_work_that_is_held_by_it() {
        let run = |factors: &[Factors]| under_a_limit(12.0, factors);
        let held = run(&[Factors::default()]).expect("runs");
        let mut c = calibration(7.0);
        c.factors = vec![Factors::of(&|s| c.watts.get(&s).copied(), &held[0])];
        assert!((c.factors[0].busy - 0.5).abs() < 1e-9, "{:?}", c.factors);
        c.correct(run);
        assert!((c.factors[0].busy - 0.25).abs() < 0.01, "{:?}", c.factors);
        // One that is at the limit may draw any more: it stays as it is.
        let mut c = calibration(10.0);
        c.factors = vec![Factors::of(&|s| c.watts.get(&s).copied(), &held[0])];
        c.correct(run);
        assert!((c.factors[0].busy - 1.0).abs() < 0.01, "{:?}", c.factors);
    }

    #[test]
    fn a_limit_that_the_row_is_beyond_was_not_in_force() {
        let text = "name = 'x'\nclass = 'desktop'\ncores = 6\nmhz = [800, 3200]\ntdp_w = 65\nidle = 'skylake'\nsource = 's'\n";
        let machine = library::parsed(&format!("[sheet]\n{text}"), "machine").expect("sound");
        // The sheet's short limit is 1.25 of the design power: 81.25 W.
        assert!(!calibration(81.0).is_beyond_limit(&machine) && calibration(82.0).is_beyond_limit(&machine));
        assert!(nears_limit(&machine, &[Metered { busy_j: 110.0, ..RAN }], &[Factors::default()]));
        assert!(!nears_limit(&machine, &[Metered { busy_j: 100.0, ..RAN }], &[Factors::default()]));
    }

    #[test]
    fn watts_in_another_unit_are_noticed() {
        assert_eq!(calibration(30.0).unexplained(&[RAN]), None);
        for joules in [3000.0, 0.0004] {
            let why = calibration(joules).unexplained(&[RAN]).expect("out of reach");
            assert!(why.contains("the model 15.0 to 15.0") && why.contains("scale"), "{why}");
        }
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
