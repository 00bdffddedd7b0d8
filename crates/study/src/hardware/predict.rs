//! What the engine says of a table's rows: each distinct setting run once in each draw, and ratios to the reference from them.
//!
//! A draw is one value of everything that is uncertain of machine and work ([`wattwise_advice::metered`]). In each, the row
//! that calibrates a program tells two or three [`Factors`]: by what that program's busy cores draw more or less than
//! the model's common work, and, where the table meters them apart, the same for the rest of the package and for the memory. These
//! rows also choose the draws ([`resampled`]). No other published value is used.
//!
//! 1. The rows that calibrate are run in all candidates, near a limit of power again with what they told.
//! 2. By table and machine, the draws are chosen.
//! 3. All other settings are run in them, and what a limit of power may act on again with its program's watts.

use super::Change;
use super::calibration::{CANDIDATES, Calibration, Draws, Runs, calibrations, resampled};
use super::factors::Factors;
use super::table::{Setting, Table};
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

/// The share of its limit that a package may draw before the limit is looked at; of all their limits, where there are several.
const NEAR: f64 = 0.9;
const NEAR_OF_SEVERAL: f64 = 0.5;

/// The place in [`Ran::draws`] of the draws that no row chose.
const UNCHOSEN: usize = 0;

/// A program that rows tell something of.
struct Program {
    /// Its draws' place in [`Ran::draws`].
    draws: usize,
    factors: Vec<Factors>,
}

/// What was run: a setting, and for limits of power the program, since they act on what it draws.
pub(super) struct Ran {
    /// In which draws: those that no row chose, then by table and machine.
    draws: Vec<Draws>,
    /// By table and program, where a row calibrates it and could be run.
    programs: BTreeMap<(usize, String), Program>,
    /// By the draws' place and the setting.
    common: BTreeMap<(usize, Setting), Runs>,
    /// By table, program and setting.
    limited: BTreeMap<(usize, String, Setting), Runs>,
    /// Programs whose calibrating watts no draw explains, by table: a sentence each.
    unexplained: BTreeMap<usize, Vec<String>>,
}

/// Machines by their text, or why one cannot be read.
type Machines<'t> = BTreeMap<&'t str, Result<MachineModel, String>>;

/// By table, the machines on which no limit of power was in force.
type Unlimited<'t> = BTreeSet<(usize, &'t str)>;

/// A program's watts in its draws, and what it is run under.
type Limited<'t> = (usize, &'t str, &'t Setting, &'t Program);

impl Ran {
    fn place(&self, table: usize, program: &str) -> usize {
        self.programs.get(&(table, program.to_owned())).map_or(UNCHOSEN, |p| p.draws)
    }

    /// A setting's runs with common work's watts, in the draws of a table's program.
    pub(super) fn common(&self, table: usize, program: &str, setting: &Setting) -> Option<&Runs> {
        self.common.get(&(self.place(table, program), setting.clone()))
    }

    /// A setting's runs with the program's own watts, where a limit of power asks for them.
    pub(super) fn limited(&self, table: usize, program: &str, setting: &Setting) -> Option<&Runs> {
        self.limited.get(&(table, program.to_owned(), setting.clone()))
    }

    /// What is odd about a table's calibrating rows.
    pub(super) fn unexplained(&self, table: usize) -> Vec<String> {
        self.unexplained.get(&table).cloned().unwrap_or_default()
    }

    /// A program's factors by draw (the first is nominal), where a row calibrates it and could be run.
    pub(super) fn factors(&self, table: usize, program: &str) -> Option<&[Factors]> {
        self.programs.get(&(table, program.to_owned())).map(|p| p.factors.as_slice())
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

/// What runs settings.
struct Runner<'t> {
    machines: Machines<'t>,
    change: Option<Change>,
    /// Called with the number of runs that come in addition, and with nothing after each run.
    tell: &'t (dyn Fn(Option<usize>) + Sync),
}

impl<'t> Runner<'t> {
    /// A setting in these draws, with a program's factors in the engine where they are given, one a draw.
    fn run(&self, setting: &Setting, draws: &Draws, factors: Option<&[Factors]>) -> Runs {
        let runs = match self.machines.get(&*setting.machine) {
            Some(Ok(machine)) => run(machine, setting, &draws.numbers, factors, self.change),
            Some(Err(e)) => Err(e.clone()),
            None => Err("no machine".into()),
        };
        (self.tell)(None);
        runs
    }

    /// What a calibrating row tells in all candidates, corrected where the machine's own limit may have acted; and what is odd about it.
    fn corrected(
        &self,
        mut c: Calibration<'t>,
        (candidates, tried): (&Draws, &BTreeMap<&Setting, Runs>),
        unlimited: &Unlimited<'t>,
    ) -> (Calibration<'t>, Option<(usize, String)>) {
        let Some(Ok(ran)) = tried.get(c.setting) else { return (c, None) };
        if self.nears_limit(unlimited, c.table, c.setting, ran, &c.factors) {
            c.correct(|factors| {
                (self.tell)(Some(1));
                self.run(c.setting, candidates, Some(factors))
            });
        }
        let odd = c.unexplained(ran).map(|why| (c.table, why));
        (c, odd)
    }

    /// Whether the limit of a setting's machine may act on a program, where one is in force.
    fn nears_limit(
        &self,
        unlimited: &Unlimited<'t>,
        table: usize,
        setting: &Setting,
        ran: &[Metered],
        factors: &[Factors],
    ) -> bool {
        let machine =
            self.machines.get(&*setting.machine).filter(|_| !unlimited.contains(&(table, &*setting.machine)));
        matches!(machine, Some(Ok(machine)) if nears_limit(machine, ran, factors))
    }
}

/// All these settings of the tables, run. `tell` is called with the number of runs that come in addition, and with nothing after each run.
pub(super) fn run_all<'t>(
    tables: &'t [Table],
    settings: &[BTreeSet<&'t Setting>],
    replicas: u64,
    change: Option<Change>,
    tell: &'t (dyn Fn(Option<usize>) + Sync),
) -> Ran {
    let calibrating: BTreeSet<&Setting> = tables.iter().flat_map(calibrating).collect();
    let all: BTreeSet<&Setting> =
        settings.iter().flatten().copied().chain(calibrating.iter().copied()).collect();
    let later = all.len() - calibrating.len();
    tell(Some(all.len()));
    let parsed = |text: &'t str| (text, library::parsed(text, "machine").map_err(|e| e.to_string()));
    let runner = Runner { machines: all.iter().map(|s| parsed(&s.machine)).collect(), change, tell };

    let candidates = Draws::alike(CANDIDATES * replicas);
    let tried: Vec<(&Setting, Runs)> =
        wattwise_threads::map(calibrating, |s: &'t Setting| (s, runner.run(s, &candidates, None)));
    let tried: BTreeMap<&Setting, Runs> = tried.into_iter().collect();
    let calibrated: Vec<Calibration<'t>> =
        tables.iter().enumerate().flat_map(|(at, table)| calibrations(at, table, &tried)).collect();
    let unlimited = unlimited(&calibrated, &runner.machines);
    let told: Vec<_> =
        wattwise_threads::map(calibrated, |c| runner.corrected(c, (&candidates, &tried), &unlimited));
    let (calibrated, odd): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let mut ran = chosen(&calibrated, replicas);
    odd.into_iter().flatten().for_each(|(at, why)| ran.unexplained.entry(at).or_default().push(why));

    let wanted = wanted(tables, settings, &ran);
    let (again, new): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(_, s)| tried.contains_key(s));
    for (place, setting) in again {
        let runs = tried[setting].as_ref().map(|all| ran.draws[place].of(all)).map_err(String::clone);
        ran.common.insert((place, setting.clone()), runs);
    }
    // A setting may be run in several tables' draws.
    tell(Some(new.len().saturating_sub(later)));
    let new: Vec<_> = wattwise_threads::map(new, |(place, setting): (usize, &Setting)| {
        ((place, setting.clone()), runner.run(setting, &ran.draws[place], None))
    });
    ran.common.extend(new);
    let near = |at: usize, setting: &Setting, ran: &[Metered], factors: &[Factors]| {
        runner.nears_limit(&unlimited, at, setting, ran, factors)
    };
    let limited = limited(tables, settings, &ran, near);
    tell(Some(limited.len()));
    let each = |(at, program, setting, told): Limited<'_>| {
        let runs = runner.run(setting, &ran.draws[told.draws], Some(&told.factors));
        ((at, program.to_owned(), setting.clone()), runs)
    };
    let limited: Vec<_> = wattwise_threads::map(limited, each);
    ran.limited = limited.into_iter().collect();
    ran
}

/// The settings of a table that calibrate.
fn calibrating(table: &Table) -> impl Iterator<Item = &Setting> {
    table.rows.iter().filter(|r| r.calibrates).filter_map(|r| r.setting.as_ref().ok())
}

/// The draws that the calibrated programs choose, and what these rows told in them; nothing is run.
fn chosen(calibrated: &[Calibration<'_>], replicas: u64) -> Ran {
    let mut ran = Ran {
        draws: vec![Draws::alike(replicas)],
        programs: BTreeMap::new(),
        common: BTreeMap::new(),
        limited: BTreeMap::new(),
        unexplained: BTreeMap::new(),
    };
    for ((table, machine), draws) in resampled(calibrated, replicas) {
        let place = ran.draws.len();
        for c in calibrated.iter().filter(|c| c.table == table && c.machine() == machine) {
            let program = Program { draws: place, factors: draws.weighted(&c.factors) };
            ran.programs.insert((table, c.program.to_owned()), program);
        }
        ran.draws.push(draws);
    }
    ran
}

/// Which settings have to be run in which draws: each row's, and in the same draws its reference's.
fn wanted<'t>(
    tables: &'t [Table],
    settings: &[BTreeSet<&'t Setting>],
    ran: &Ran,
) -> BTreeSet<(usize, &'t Setting)> {
    let mut out = BTreeSet::new();
    for (at, (table, kept)) in tables.iter().zip(settings).enumerate() {
        let mut references: BTreeMap<&str, BTreeSet<&Setting>> = BTreeMap::new();
        for row in table.rows.iter().filter(|r| r.is_reference) {
            references.entry(&row.work).or_default().extend(&row.setting);
        }
        for row in &table.rows {
            let place = ran.place(at, &row.program);
            let its = row.setting.iter().filter(|s| kept.contains(s));
            let base = references.get(row.work.as_str()).into_iter().flatten().copied();
            out.extend(its.chain(base).map(|setting| (place, setting)));
        }
    }
    out
}

/// The tables' machines on which no limit was in force, by what a calibrating row drew.
fn unlimited<'t>(calibrated: &[Calibration<'t>], machines: &Machines<'_>) -> Unlimited<'t> {
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
            let Some(program) = ran.programs.get(&(at, row.program.clone())) else { continue };
            let Some(Ok(runs)) = ran.common(at, &row.program, setting) else { continue };
            let acts = || limits_power(setting) || near(at, setting, runs, &program.factors);
            if kept.contains(setting) && !seen.contains(&(&row.program, setting)) && acts() {
                seen.insert((&row.program, setting));
                out.push((at, row.program.as_str(), setting, program));
            }
        }
    }
    out
}

/// One setting in these draws, with a program's factors in the engine where they are given, one a draw.
fn run(
    machine: &MachineModel,
    setting: &Setting,
    numbers: &[u64],
    factors: Option<&[Factors]>,
    change: Option<Change>,
) -> Runs {
    let read = |work: &String| library::workload(work, &ImportOptions::default()).map_err(|e| e.to_string());
    let works = setting.works.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let policy = PolicySpec::parse(&setting.policy).map_err(|e| e.problem())?;
    fits(&policy, machine).map_err(|e| e.problem())?;
    let idle = machine_idle(machine).map_err(|e| e.to_string())?;
    let policies = std::slice::from_ref(&policy);
    let one = |workload: &Workload, (at, n): (usize, u64)| {
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
        let drawn = match factors.and_then(|f| f.get(at)) {
            Some(f) => drawn.scaled(f.busy, f.uncore, f.memory),
            None => drawn,
        };
        drawn.run(&job, &policy, &idle).map_err(|e| e.to_string())
    };
    let draw =
        |n: (usize, u64)| Ok(mean(&works.iter().map(|w| one(w, n)).collect::<Result<Vec<_>, String>>()?));
    numbers.iter().copied().enumerate().map(draw).collect()
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

#[cfg(test)]
mod tests {
    use super::super::factors::RAN;
    use super::*;

    /// By hand: 2 and 8 s have the geometric mean 4 s, 10 and 5 W the mean 7.5 W.
    #[test]
    fn a_figure_of_several_works_is_their_mean() {
        let longer = Metered { elapsed_s: 8.0, busy_j: 40.0, ..RAN };
        let both = mean(&[RAN, longer]);
        assert!((both.elapsed_s - 4.0).abs() < 1e-12 && (both.busy_j - 30.0).abs() < 1e-12, "{both:?}");
        assert_eq!(mean(&[RAN]), RAN);
    }

    #[test]
    fn a_package_near_its_limit_is_looked_at() {
        let text = "name = 'x'\nclass = 'desktop'\ncores = 6\nmhz = [800, 3200]\ntdp_w = 65\nidle = 'skylake'\nsource = 's'\n";
        let machine = library::parsed(&format!("[sheet]\n{text}"), "machine").expect("sound");
        assert!(nears_limit(&machine, &[Metered { busy_j: 110.0, ..RAN }], &[Factors::default()]));
        assert!(!nears_limit(&machine, &[Metered { busy_j: 100.0, ..RAN }], &[Factors::default()]));
    }
}
