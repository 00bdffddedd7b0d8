//! From wishes (`--governor powersave --max 60%`) to the writes that fulfil them.
//!
//! A [`Setting`] is a wish in the one vocabulary of all machines. [`plan`] finds for each the files or
//! registers of this machine, resolves words and percentages per CPU, puts the writes into the order in
//! which the kernel takes them, and judges each by the table of the kernel's [rules](wattwise_hw::rules) as if
//! those before it were already made. Nothing is written here: a plan can be shown, refused or applied.
//!
//! Order: a CPU comes online before anything else, the driver's [mode](crate::set::mode) before what it offers, governors
//! before what they permit, boost before limits, limits before the speed within them; a CPU goes offline
//! last.

mod beside;
mod cpus;
mod idle;
mod leanings;
mod overlay;
mod planner;
mod power;
mod speeds;
mod step;

pub use crate::set::inventory::Inventory;
pub use step::{ChangePlan, PlanError, PlannedWrite};
pub use wattwise_figure::setting::Setting;

use crate::set::mode::{Coming, Then};
use crate::set::transaction::{Change, Transaction, TransactionError};
use overlay::Overlay;
use planner::Planner;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use step::input;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::Root;

impl ChangePlan {
    /// Makes all changes or none, as [`Transaction::apply`] does; none where nothing would change.
    ///
    /// A mode of the driver is put in force first. The settings that came with it are then planned again, for what is really
    /// there, and made under the same journal, which has held the originals of all from the beginning.
    pub fn apply<'r>(
        &self,
        root: &'r dyn Root,
        journal: &Path,
        command: &str,
        stop: &dyn Fn() -> Option<String>,
    ) -> Result<Option<Transaction<'r>>, TransactionError> {
        let mut changes: Vec<Change> = self.steps.iter().map(|s| s.change.clone()).collect();
        if changes.is_empty() {
            return Ok(None);
        }
        let Some(then) = &self.then else {
            return Transaction::apply(root, journal, command, &changes, &self.beside, stop).map(Some);
        };
        let foreseen = changes.split_off(then.first);
        let beside = [&foreseen[..], &self.beside].concat();
        let mut transaction = Transaction::begin(root, journal, command, &changes, &beside)?;
        transaction.make_all(&changes, stop)?;
        let planned = planned(then, root).and_then(|plan| {
            let changes: Vec<Change> = plan.steps.into_iter().map(|s| s.change).collect();
            transaction.admit(&plan.beside)?;
            transaction.admit(&changes)?;
            Ok(changes)
        });
        let changes = planned.map_err(|why| transaction.failed(&format!("with {}", then.flag), why))?;
        transaction.make_all(&changes, stop)?;
        transaction.settle();
        transaction.tell(&foreseen);
        Ok(Some(transaction))
    }
}

/// The writes for settings that waited, on the machine as it is now, in the new mode.
fn planned(then: &Then, root: &dyn Root) -> Result<ChangePlan, String> {
    let plan = plan(root, &Inventory::read(root), &then.cpus, &then.settings).map_err(|e| e.to_string())?;
    match plan.refused() {
        Some((step, refusal)) => {
            Err(format!("{} cannot become '{}': {}", step.change.what, step.change.value, refusal.rule))
        }
        None => Ok(plan),
    }
}

/// Finds the writes for some settings of some CPUs.
pub fn plan(
    root: &dyn Root,
    inventory: &Inventory,
    cpus: &CpuSet,
    settings: &[Setting],
) -> Result<ChangePlan, PlanError> {
    let overlay = Overlay { root, made: BTreeMap::new(), coming: BTreeSet::new(), hidden: BTreeSet::new() };
    let mode =
        settings.iter().find_map(|s| if let Setting::DriverMode(mode) = s { Some(mode) } else { None });
    let with_boost = Coming::with_boost(inventory, settings).filter(|_| mode.is_none());
    let is_boost = with_boost.is_some();
    let coming = mode.and_then(|mode| Coming::of(root, inventory, mode)).or(with_boost);
    let mut planner = Planner { overlay, inventory, cpus, plan: ChangePlan::default(), coming: None };
    let mut ordered: Vec<&Setting> = settings.iter().collect();
    ordered.sort_by_key(|s| phase(s));
    let is_first = |s: &&Setting| match is_boost {
        true => phase(s) <= phase(&Setting::Boost(true)),
        false => matches!(s, Setting::DriverMode(_)),
    };
    let of_mode = ordered.iter().rposition(is_first).map_or(0, |at| at + 1);
    let (first, rest) = ordered.split_at(of_mode);
    for setting in first {
        planner.setting(setting)?;
    }
    let flag = mode.map_or("--boost on".to_owned(), |mode| format!("--driver-mode {mode}"));
    match &coming {
        Some(coming) => planner.foresee(&flag, coming, rest)?,
        None => rest.iter().try_for_each(|setting| planner.setting(setting))?,
    }
    planner.inventory = inventory;
    planner.beside();
    Ok(planner.plan)
}

/// The order of the module's head.
fn phase(setting: &Setting) -> u32 {
    match setting {
        Setting::Online(true) => 0,
        Setting::DriverMode(_) => 1,
        Setting::Governor(_) | Setting::Plain(..) => 2,
        Setting::Boost(_) => 3,
        Setting::Limits(..) => 4,
        Setting::Freq(_) => 5,
        Setting::Online(false) => 9,
        _ => 6,
    }
}

impl<'r> Planner<'r> {
    /// Plans settings for a mode of the driver that is not in force yet. Where the mode itself is refused there is nothing to
    /// plan them for.
    fn foresee(&mut self, flag: &str, coming: &'r Coming, settings: &[&Setting]) -> Result<(), PlanError> {
        if settings.is_empty() || self.plan.refused().is_some() {
            return Ok(());
        }
        // What an offline CPU's domain is set to cannot be read, so not be put back either once the mode has reset it.
        if self.plan.steps.iter().any(|s| s.change.target.path().ends_with("/online")) {
            return Err(input(
                "--online on with --driver-mode and others: bring the CPUs online first, alone",
            ));
        }
        self.plan.then = Some(Then {
            flag: flag.to_owned(),
            first: self.plan.steps.len(),
            cpus: self.cpus.clone(),
            settings: settings.iter().map(|s| (*s).clone()).collect(),
        });
        self.inventory = &coming.inventory;
        self.coming = Some(coming);
        self.overlay.made.extend(coming.made.clone());
        self.overlay.hidden.extend(coming.hidden.iter().cloned());
        for setting in settings {
            match needs_policies(setting).filter(|_| coming.unseen) {
                Some(flag) => self.plan.notes.push(format!(
                    "{flag} is judged when the mode is in force: the driver is off now and shows no frequency domains"
                )),
                None => self.setting(setting)?,
            }
        }
        Ok(())
    }

    fn setting(&mut self, setting: &Setting) -> Result<(), PlanError> {
        match setting {
            Setting::Online(on) => self.online(*on),
            Setting::DriverMode(mode) => self.driver_mode(mode),
            Setting::Governor(name) => self.governor(name),
            Setting::Limits(min, max) => self.limits(*min, *max),
            Setting::Freq(speed) => self.held_speed(*speed),
            Setting::Epp(value) => self.preference(value),
            Setting::Epb(value) => self.bias(value),
            Setting::Boost(on) => self.boost(*on),
            Setting::CState(name, on) => self.cstate(name, *on),
            Setting::Latency(limit_ns) => self.latency(*limit_ns),
            Setting::TState(percent) => self.tstate(*percent),
            Setting::PowerLimit { zone, constraint, power_uw } => {
                self.power_limit(zone.as_deref(), constraint.as_deref(), *power_uw)
            }
            Setting::Uncore(min, max) => self.uncore(*min, *max),
            Setting::Dram { governor, up, down } => self.dram(governor, *up, *down),
            Setting::Tunable(name, value) => self.tunable(name, value),
            Setting::Plain(of, value) => self.plain(of, value),
        }
    }
}

/// The flag of a setting that is of frequency domains.
fn needs_policies(setting: &Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::Governor(_) => "--governor",
        Setting::Limits(None, _) => "--max",
        Setting::Limits(..) => "--min",
        Setting::Freq(_) => "--freq",
        Setting::Epp(_) => "--epp",
        Setting::Boost(_) => "--boost",
        Setting::Tunable(..) => "--tunable",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::CPUS;
    use wattwise_figure::setting::Plain;
    use wattwise_figure::units::Speed;
    use wattwise_hw::root::DirRoot;

    /// A machine of one policy under ondemand.
    fn machine(hardware_khz: [&str; 2]) -> std::io::Result<(tempfile::TempDir, DirRoot)> {
        let folder = tempfile::tempdir()?;
        let policy = folder.path().join(CPUS).join("cpufreq/policy0");
        std::fs::create_dir_all(policy.join("ondemand"))?;
        for (file, value) in [
            ("affected_cpus", "0"),
            ("related_cpus", "0"),
            ("cpuinfo_min_freq", hardware_khz[0]),
            ("cpuinfo_max_freq", hardware_khz[1]),
            ("scaling_min_freq", "1000000"),
            ("scaling_max_freq", "2000000"),
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "ondemand"),
            ("ondemand/up_threshold", "95"),
        ] {
            std::fs::write(policy.join(file), value)?;
        }
        std::fs::write(folder.path().join(CPUS).join("present"), "0")?;
        let root = DirRoot::new(folder.path());
        Ok((folder, root))
    }

    fn planned_alone(root: &DirRoot, setting: Setting) -> Result<ChangePlan, PlanError> {
        plan(root, &Inventory::read(root), &CpuSet::from_iter([0]), &[setting])
    }

    /// Firmware that gives a lowest speed above the highest is out there; the kernel shows both as they are.
    #[test]
    fn a_share_of_a_range_that_is_upside_down() -> Result<(), Box<dyn std::error::Error>> {
        let (_folder, root) = machine(["2000000", "1000000"])?;
        let plan = planned_alone(&root, Setting::Limits(None, Some(Speed::Percent(50.0))))?;
        assert_eq!(plan.steps[0].change.value, "1000000");
        Ok(())
    }

    /// The memory controller of a Rockchip kernel, which shows its thresholds, and one of mainline's, which does not.
    fn with_memory(name: &str, thresholds: bool) -> std::io::Result<(tempfile::TempDir, DirRoot)> {
        let (folder, root) = machine(["1000000", "2000000"])?;
        let at = folder.path().join("sys/class/devfreq").join(name);
        std::fs::create_dir_all(&at)?;
        std::fs::write(at.join("governor"), "dmc_ondemand")?;
        std::fs::write(at.join("available_governors"), "dmc_ondemand performance powersave")?;
        if thresholds {
            std::fs::write(at.join("upthreshold"), "40")?;
            std::fs::write(at.join("downdifferential"), "20")?;
        }
        Ok((folder, root))
    }

    #[test]
    fn the_memory_s_clock_has_a_governor_and_thresholds() -> Result<(), Box<dyn std::error::Error>> {
        let dram = |governor: &str, up, down| Setting::Dram { governor: governor.into(), up, down };
        let (_folder, root) = with_memory("dmc", true)?;
        let writes = |setting| -> Result<Vec<(String, String)>, PlanError> {
            let steps = planned_alone(&root, setting)?.steps;
            Ok(steps.into_iter().map(|s| (s.change.target.path().to_owned(), s.change.value)).collect())
        };
        let at = |file: &str| format!("sys/class/devfreq/dmc/{file}");
        assert_eq!(writes(dram("performance", None, None))?, [(at("governor"), "performance".into())]);
        assert_eq!(
            writes(dram("dmc_ondemand", Some(20), Some(5)))?,
            [(at("upthreshold"), "20".into()), (at("downdifferential"), "5".into())]
        );
        let why = |setting| planned_alone(&root, setting).expect_err("refused").to_string();
        assert!(why(dram("schedutil", None, None)).contains("dmc_ondemand, performance, powersave"));
        assert!(why(dram("dmc_ondemand", Some(10), None)).contains("down=20 is above up=10"));
        let (_folder, root) = with_memory("10c20000.memory-controller", false)?;
        let error = planned_alone(&root, dram("dmc_ondemand", Some(20), None)).expect_err("no thresholds");
        assert!(error.to_string().contains("shows no thresholds"), "{error}");
        let (_folder, root) = machine(["1000000", "2000000"])?;
        let error = planned_alone(&root, dram("performance", None, None)).expect_err("no controller");
        assert!(error.to_string().contains("/sys/class/devfreq"), "{error}");
        Ok(())
    }

    /// One that nobody lists the values of is left to the kernel's rules; where the attribute is not there, it cannot be had.
    #[test]
    fn a_setting_that_is_one_attribute_of_the_machine() -> Result<(), Box<dyn std::error::Error>> {
        static SMT: Plain = Plain {
            name: "smt",
            what: "sibling threads",
            path: "sys/devices/system/cpu/smt/control",
            choices: None,
            whose: "the kernel",
            missing: "--smt: the kernel has no such switch",
        };
        let (folder, root) = machine(["1000000", "2000000"])?;
        let of = |value: &str| planned_alone(&root, Setting::Plain(&SMT, value.into()));
        assert!(matches!(of("off"), Err(PlanError::Impossible(why)) if why == SMT.missing));
        std::fs::create_dir_all(folder.path().join(CPUS).join("smt"))?;
        std::fs::write(folder.path().join(SMT.path), "on\n")?;
        let plan = of("off")?;
        assert_eq!((plan.steps[0].old.as_str(), plan.steps[0].change.value.as_str()), ("on", "off"));
        assert!(plan.refused().is_none() && of("perhaps")?.refused().is_some());
        Ok(())
    }

    #[test]
    fn a_tunable_has_the_kernel_s_name_and_ours() -> Result<(), Box<dyn std::error::Error>> {
        let (_folder, root) = machine(["1000000", "2000000"])?;
        for name in ["up", "up_threshold"] {
            let plan = planned_alone(&root, Setting::Tunable(name.into(), "77".into()))?;
            assert!(plan.steps[0].change.target.to_string().ends_with("ondemand/up_threshold"), "{name}");
        }
        assert!(planned_alone(&root, Setting::Tunable("upp".into(), "77".into())).is_err());
        Ok(())
    }
}
