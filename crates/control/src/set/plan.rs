//! From wishes (`--governor powersave --max 60%`) to the writes that fulfil them.
//!
//! A [`Setting`] is a wish in the one vocabulary of all machines. [`plan`] finds for each the files or
//! registers of this machine, resolves words and percentages per CPU, puts the writes into the order in
//! which the kernel takes them, and judges each by the table of the kernel's [rules] as if
//! those before it were already made. Nothing is written here: a plan can be shown, refused or applied.
//!
//! Order: a CPU comes online before anything else, the driver's [mode](crate::set::mode) before what it offers, governors
//! before what they permit, boost before limits, limits before the speed within them; a CPU goes offline
//! last.

use crate::set::mode::{Coming, RESET, Then};
use crate::set::target::Target;
use crate::set::transaction::{Change, Transaction, TransactionError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wattwise_figure::nearest;
pub use wattwise_figure::setting::Setting;
use wattwise_figure::units::{Speed, share_of_khz, show_khz, show_ns, show_uw};
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::msr::tstate::{Duty, Step as DutyStep};
use wattwise_hw::msr::{MsrDevice, Register, RegisterError, Registers, Wake};
use wattwise_hw::probe::Probed;
use wattwise_hw::root::{Root, text};
use wattwise_hw::rules;
use wattwise_hw::rules::{Refusal, View};
use wattwise_hw::states::cpufreq::{Cpufreq, CpufreqPolicy};
use wattwise_hw::states::cpuidle::Cpuidle;
use wattwise_hw::states::power;
use wattwise_hw::states::power::{Limit, Zone};
use wattwise_policy::speed::tunables::kernel_name;

const CPUS: &str = "sys/devices/system/cpu";

/// One write of a plan.
#[derive(Debug, Clone)]
pub struct Step {
    /// What would be written where.
    pub change: Change,
    /// What is there now.
    pub old: String,
    /// What the kernel will show afterwards, or the rule that refuses.
    pub verdict: Result<String, Refusal>,
    /// Whether that can be judged only once the driver's mode, an earlier step, is in force.
    pub judged_later: bool,
}

/// Writes in order.
#[derive(Debug, Clone, Default)]
pub struct ChangePlan {
    /// The writes.
    pub steps: Vec<Step>,
    /// Values that follow from them, to be put back with them.
    pub beside: Vec<Change>,
    /// What the user should know before.
    pub notes: Vec<String>,
    /// What is planned anew once a mode of the driver is in force; the steps for it are foreseen.
    pub then: Option<Then>,
}

impl ChangePlan {
    /// The first write that the kernel would refuse, and its rule.
    pub fn refused(&self) -> Option<(&Step, &Refusal)> {
        self.steps.iter().find_map(|s| Some((s, s.verdict.as_ref().err()?)))
    }

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
        let planned = then.planned(root).and_then(|(changes, beside)| {
            transaction.admit(&beside)?;
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

/// A wish that cannot be fulfilled; nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A mistake in the wish.
    #[error("{0}")]
    Input(String),
    /// Not on this machine.
    #[error("{0}")]
    Impossible(String),
}

/// What planning looks at.
pub struct Inventory {
    /// CPUs.
    pub topology: Topology,
    /// P-states.
    pub cpufreq: Cpufreq,
    /// C-states.
    pub cpuidle: Cpuidle,
}

impl Inventory {
    /// Reads it.
    pub fn read(root: &dyn Root) -> Inventory {
        let topology = Topology::read(root);
        let cpuidle = Cpuidle::read(root, &topology);
        Inventory { cpufreq: Cpufreq::read(root), cpuidle, topology }
    }
}

/// The tree as it will be when the steps so far are made.
struct Overlay<'r> {
    root: &'r dyn Root,
    made: BTreeMap<String, String>,
    /// Folders of governors that are not in force yet.
    coming: BTreeSet<String>,
    /// Attributes that a mode of the driver takes away.
    hidden: BTreeSet<String>,
}

impl View for Overlay<'_> {
    fn text(&self, path: &str) -> Option<String> {
        if self.hidden.contains(path) {
            return None;
        }
        self.made.get(path).cloned().or_else(|| text(self.root, path))
    }
    fn list(&self, path: &str) -> Vec<String> {
        let governor = self.coming.get(path).and_then(|folder| folder.rsplit('/').next());
        if let Some(governor) = governor {
            return rules::tunables(governor).map(str::to_owned).collect();
        }
        let folder = format!("{path}/");
        let made = self.made.keys().filter_map(|p| p.strip_prefix(&folder)).filter(|n| !n.contains('/'));
        let mut names = self.root.list(path).unwrap_or_default();
        names.extend(made.map(str::to_owned));
        names.retain(|name| !self.hidden.contains(&format!("{folder}{name}")));
        names
    }
}

struct Planner<'r> {
    overlay: Overlay<'r>,
    inventory: &'r Inventory,
    cpus: &'r CpuSet,
    plan: ChangePlan,
    /// The mode of the driver that the steps from here on are for, if it is not in force.
    coming: Option<&'r Coming>,
}

fn input(message: impl Into<String>) -> PlanError {
    PlanError::Input(message.into())
}

fn impossible(message: impl Into<String>) -> PlanError {
    PlanError::Impossible(message.into())
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
        Setting::IdleGovernor(_) | Setting::Governor(_) | Setting::Profile(_) => 2,
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
            Setting::IdleGovernor(name) => self.idle_governor(name),
            Setting::TState(percent) => self.tstate(*percent),
            Setting::PowerLimit { zone, constraint, power_uw } => {
                self.power_limit(zone.as_deref(), constraint.as_deref(), *power_uw)
            }
            Setting::Uncore(min, max) => self.uncore(*min, *max),
            Setting::Tunable(name, value) => self.tunable(name, value),
            Setting::Profile(name) => self.profile(name),
        }
    }

    /// Adds a write of an attribute, judged on top of those before it. A value that stands already is no
    /// write.
    fn write(&mut self, path: String, what: String, value: impl Into<String>) -> Result<(), PlanError> {
        let value = value.into();
        let old = match Target::File(path.clone()).read(self.overlay.root) {
            Ok(old) => old,
            Err(_) if self.comes_with_the_mode(&path) => "its default".to_owned(),
            Err(e) => {
                let why = wattwise_hw::probe::why(&e, &path, self.overlay.root);
                return Err(impossible(format!("{what}: {why}")));
            }
        };
        let current = self.overlay.made.get(&path).unwrap_or(&old);
        let judged_later = self.is_judged_later(&path);
        // A limit of the range with boost may come to the present one by chance, as long as that range is not shown.
        let may_differ = judged_later && self.coming.is_some_and(|c| c.is_boost);
        if *current == value && !may_differ {
            return Ok(());
        }
        let verdict = match judged_later {
            true => Ok(value.clone()),
            false => rules::judge(&self.overlay, &path, &value),
        };
        if let Ok(stored) = &verdict {
            self.overlay.made.insert(path.clone(), stored.clone());
        }
        self.plan.steps.push(Step {
            change: Change { target: Target::File(path), what, value, elsewhere: None },
            old,
            verdict,
            judged_later,
        });
        Ok(())
    }

    fn comes_with_the_mode(&self, path: &str) -> bool {
        self.coming.is_some_and(|c| c.made.contains_key(path))
    }

    /// Whether nothing that is there now tells what the kernel will do with a write.
    fn is_judged_later(&self, path: &str) -> bool {
        let Some(coming) = self.coming else { return false };
        match path.rsplit('/').next() {
            Some("scaling_governor") => !coming.governors_known,
            Some("scaling_min_freq" | "scaling_max_freq" | "scaling_setspeed") => !coming.range_known,
            _ => false,
        }
    }

    /// Whether the governors of these policies are known: those of a mode to come may not be.
    fn lists_governors(&self) -> bool {
        self.coming.is_none_or(|c| c.governors_known)
    }

    /// The policies that drive the chosen CPUs, or why there are none.
    fn policies(&mut self) -> Result<Vec<&'r CpufreqPolicy>, PlanError> {
        let inventory = self.inventory;
        let Probed { value: Some(policies), .. } = &inventory.cpufreq.policies else {
            return Err(impossible(format!(
                "this machine's speed cannot be set: {}",
                inventory.cpufreq.policies.why_not()
            )));
        };
        let chosen: Vec<&CpufreqPolicy> =
            policies.iter().filter(|p| !p.affected.and(self.cpus).is_empty()).collect();
        for policy in &chosen {
            let more = policy.affected.without(self.cpus);
            if !more.is_empty() {
                let note = format!("{} also drives CPU {more}: its CPUs share one speed", policy.name());
                if !self.plan.notes.contains(&note) {
                    self.plan.notes.push(note);
                }
            }
        }
        match chosen.is_empty() {
            true => Err(impossible(format!("no cpufreq policy drives CPU {}", self.cpus))),
            false => Ok(chosen),
        }
    }

    fn governor(&mut self, name: &str) -> Result<(), PlanError> {
        for policy in self.policies()? {
            if self.lists_governors() && !policy.governors.iter().any(|g| g == name) {
                return Err(unknown("--governor", name, &policy.governors, policy.name()));
            }
            self.write(
                format!("{}/scaling_governor", policy.path),
                format!("{} governor", policy.name()),
                name,
            )?;
        }
        Ok(())
    }

    /// Writes the end of the range that moves outwards first: neither may pass the other on the way.
    fn limits(&mut self, min: Option<Speed>, max: Option<Speed>) -> Result<(), PlanError> {
        if let (Some(Speed::Percent(low)), Some(Speed::Percent(high))) = (min, max)
            && low > high
        {
            return Err(input(format!("--min {low}% is above --max {high}%; expected a range")));
        }
        let boosted = self.turns_boost_on() || self.coming.is_some_and(|c| !c.range_known);
        for policy in self.policies()? {
            let name = policy.name();
            if boosted {
                self.expect_boost(policy, max);
            }
            let now = |file: &str| {
                let text = self.overlay.text(&format!("{}/{file}", policy.path))?;
                text.parse::<u64>().ok()
            };
            let (Some(low), Some(high)) = (now("scaling_min_freq"), now("scaling_max_freq")) else {
                return Err(impossible(format!("{name} shows no limits of its speed")));
            };
            let resolve = |flag, speed: Option<Speed>, or| match speed {
                Some(speed) => resolve(policy, &self.inventory.cpufreq, flag, speed),
                None => Ok(or),
            };
            let (new_low, new_high) = (resolve("--min", min, low)?, resolve("--max", max, high)?);
            for (flag, khz) in [("--min", new_low), ("--max", new_high)] {
                if let Some((slowest, fastest)) = policy.hardware_khz
                    && !(slowest..=if boosted { u64::MAX } else { fastest }).contains(&khz)
                    && khz != low
                    && khz != high
                {
                    return Err(input(format!(
                        "{flag} {}: {name} runs from {} to {}; expected a speed within",
                        show_khz(khz),
                        show_khz(slowest),
                        show_khz(fastest)
                    )));
                }
            }
            if new_low > new_high {
                return Err(input(format!(
                    "--min {} is above {} {} of {name}; expected a range; give both ends",
                    show_khz(new_low),
                    if max.is_some() { "--max" } else { "the present maximum" },
                    show_khz(new_high),
                )));
            }
            let ends = [
                ("scaling_min_freq", "minimum", min, new_low),
                ("scaling_max_freq", "maximum", max, new_high),
            ];
            let order = if new_high >= low { [1, 0] } else { [0, 1] };
            for at in order {
                let (file, word, asked, khz) = ends[at];
                if asked.is_some() {
                    self.write(format!("{}/{file}", policy.path), format!("{name} {word}"), khz.to_string())?;
                }
            }
        }
        self.shares((min.is_some(), max.is_some()))
    }

    /// intel_pstate has limits for the whole machine beside those of each policy, in per cent of the highest speed. One that is
    /// inside what was asked for would hold in its place, and is lifted.
    fn shares(&mut self, asked: (bool, bool)) -> Result<(), PlanError> {
        let ends = [
            (asked.1, "max_perf_pct", "highest share", "scaling_max_freq"),
            (asked.0, "min_perf_pct", "lowest share", "scaling_min_freq"),
        ];
        let policies = self.policies()?;
        for (_, file, what, own) in ends.into_iter().filter(|(asked, ..)| *asked) {
            let path = format!("{CPUS}/intel_pstate/{file}");
            let number =
                |path: &str| self.overlay.text(path).and_then(|text| text.trim().parse::<u64>().ok());
            let Some(percent) = number(&path) else { continue };
            let is_max = file == "max_perf_pct";
            // The lowest share that the driver takes is that of the hardware's lowest speed.
            let (mut holds, mut lifted) = (false, if is_max { 100 } else { percent });
            for policy in &policies {
                let Some((slowest, fastest)) = policy.hardware_khz.filter(|(_, fastest)| *fastest > 0) else {
                    continue;
                };
                let Some(khz) = number(&format!("{}/{own}", policy.path)) else { continue };
                let share = share_of_khz(fastest, percent.min(100) as f64).max(slowest);
                holds |= if is_max { share < khz } else { share > khz };
                lifted = if is_max { 100 } else { lifted.min(slowest * 100 / fastest) };
            }
            if !holds || lifted == percent {
                continue;
            }
            if policies.len() < self.inventory.cpufreq.policies().iter().filter(|p| !p.is_offline()).count() {
                self.plan.notes.push(format!(
                    "intel_pstate/{file} is {percent} for the whole machine and holds: without a choice of CPUs it is lifted"
                ));
                continue;
            }
            self.write(path, format!("intel_pstate {what}"), lifted.to_string())?;
        }
        Ok(())
    }

    /// Whether a step before turns boost on: then speeds can be had that the hardware's range does not show yet.
    fn turns_boost_on(&self) -> bool {
        let on = |s: &Step| match &s.change.target {
            Target::File(path) if path.ends_with("/boost") => s.change.value == "1",
            Target::File(path) if path.ends_with("/no_turbo") => s.change.value == "0",
            _ => false,
        };
        self.plan.steps.iter().any(|s| s.verdict.is_ok() && on(s))
    }

    /// The hardware's highest speed as it will be with boost: as the driver names it, else whatever is asked for.
    fn expect_boost(&mut self, policy: &CpufreqPolicy, max: Option<Speed>) {
        let named = self.overlay.text(&format!("{}/amd_pstate_max_freq", policy.path));
        let asked = match max {
            Some(Speed::Khz(khz)) => policy.hardware_khz.map(|(_, fastest)| fastest.max(khz).to_string()),
            _ => None,
        };
        if let Some(fastest) = named.or(asked) {
            self.overlay.made.insert(format!("{}/cpuinfo_max_freq", policy.path), fastest);
        }
    }

    /// One speed held: the governor `userspace`, told that speed.
    fn held_speed(&mut self, speed: Speed) -> Result<(), PlanError> {
        for policy in self.policies()? {
            let name = policy.name();
            if self.lists_governors() && !policy.governors.iter().any(|g| g == "userspace") {
                return Err(impossible(no_authority(policy, &self.inventory.cpufreq)));
            }
            let chosen = self.overlay.text(&format!("{}/scaling_governor", policy.path));
            let asked_other = self
                .plan
                .steps
                .iter()
                .any(|s| s.change.what == format!("{name} governor") && s.change.value != "userspace");
            if asked_other {
                return Err(input(format!(
                    "--freq holds one speed and needs the governor userspace, not {}; give one of the two",
                    chosen.unwrap_or_default()
                )));
            }
            let khz = resolve(policy, &self.inventory.cpufreq, "--freq", speed)?;
            let all: Vec<u64> = policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().collect();
            if !all.is_empty() && !all.contains(&khz) {
                let nearest = all.iter().copied().min_by_key(|l| l.abs_diff(khz)).unwrap_or(khz);
                let levels: Vec<String> = all.iter().map(|l| show_khz(*l)).collect();
                return Err(input(format!(
                    "--freq {} is no level of {name}; the nearest is {}; it has {}",
                    show_khz(khz),
                    show_khz(nearest),
                    levels.join(", ")
                )));
            }
            let limit = |file: &str| {
                self.overlay.text(&format!("{}/{file}", policy.path)).and_then(|t| t.parse::<u64>().ok())
            };
            if let (Some(low), Some(high)) = (limit("scaling_min_freq"), limit("scaling_max_freq"))
                && !(low..=high).contains(&khz)
            {
                return Err(input(format!(
                    "--freq {} is outside the limits of {name}, {} to {}; widen them with --min and --max",
                    show_khz(khz),
                    show_khz(low),
                    show_khz(high)
                )));
            }
            self.write(format!("{}/scaling_governor", policy.path), format!("{name} governor"), "userspace")?;
            self.write(
                format!("{}/scaling_setspeed", policy.path),
                format!("{name} speed"),
                khz.to_string(),
            )?;
        }
        Ok(())
    }

    fn preference(&mut self, value: &str) -> Result<(), PlanError> {
        for policy in self.policies()? {
            if policy.epp.is_none() {
                return Err(impossible(format!(
                    "{} has no energy-performance preference: driver {} keeps none",
                    policy.name(),
                    policy.driver.as_deref().unwrap_or("(unknown)")
                )));
            }
            // As they are under the governor that the plan has set by now: drivers narrow the list with it. A word that
            // the kernel knows is left to its rules, which say why not.
            let raw = value.parse::<u8>().is_ok();
            let epps = rules::preferences(&self.overlay, &policy.path);
            let known = rules::PREFERENCES.iter().any(|(word, _)| *word == value) || value == "default";
            if !raw && !known && !epps.iter().any(|e| e == value) {
                return Err(unknown("--epp", value, &epps, policy.name()));
            }
            self.write(
                format!("{}/energy_performance_preference", policy.path),
                format!("{} preference", policy.name()),
                value,
            )?;
        }
        Ok(())
    }

    fn bias(&mut self, value: &str) -> Result<(), PlanError> {
        // The kernel's words, with the numbers that it stores for them.
        const WORDS: [(&str, &str); 5] = [
            ("performance", "0"),
            ("balance-performance", "4"),
            ("normal", "6"),
            ("balance-power", "8"),
            ("power", "15"),
        ];
        let number = WORDS.iter().find(|(word, _)| *word == value).map_or(value, |(_, number)| number);
        if !number.parse::<u8>().is_ok_and(|n| n <= 15) {
            let words: Vec<String> = WORDS.iter().map(|(w, _)| (*w).to_owned()).collect();
            return Err(unknown("--epb", value, &words, "the bias (or 0 to 15)"));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let path = format!("{CPUS}/cpu{cpu}/power/energy_perf_bias");
            if text(self.overlay.root, &path).is_none() {
                // The kernel hides it: its register is the next mechanism in order.
                let facts = CpuFacts::read(self.overlay.root, cpu).map_err(|e| {
                    impossible(format!("--epb: CPU {cpu}: no file power/energy_perf_bias, and {e}"))
                })?;
                let bias = number.parse::<u64>().unwrap_or_default();
                let what = format!("cpu{cpu} bias (no file power/energy_perf_bias)");
                self.register(cpu, &facts, "IA32_ENERGY_PERF_BIAS", what, |r, raw| {
                    r.field("bias")?.set(raw, bias)
                })?;
                continue;
            }
            self.write(path, format!("cpu{cpu} bias"), number)?;
        }
        Ok(())
    }

    fn boost(&mut self, on: bool) -> Result<(), PlanError> {
        let inventory = self.inventory;
        if let Some(boost) = &inventory.cpufreq.boost {
            if self.cpus.len() < inventory.topology.online.len() {
                self.plan.notes.push("boost is switched for the whole machine".to_owned());
            }
            return self.write(
                boost.path.clone(),
                "boost".to_owned(),
                if on != boost.inverted { "1" } else { "0" },
            );
        }
        let policies = self.policies()?;
        if policies.iter().all(|p| p.boost.is_none()) {
            return Err(impossible(
                "boost cannot be switched here: neither cpufreq/boost nor intel_pstate/no_turbo is there",
            ));
        }
        for policy in policies {
            self.write(
                format!("{}/boost", policy.path),
                format!("{} boost", policy.name()),
                if on { "1" } else { "0" },
            )?;
        }
        Ok(())
    }

    fn cstate(&mut self, name: &str, on: bool) -> Result<(), PlanError> {
        let inventory = self.inventory;
        let mut found = false;
        for cpu in inventory.cpuidle.cpus().iter().filter(|c| self.cpus.contains(c.cpu)) {
            for state in cpu.states.iter().filter(|s| s.is_called(name)) {
                found = true;
                let path = format!("{CPUS}/cpu{}/cpuidle/state{}/disable", cpu.cpu, state.index);
                self.write(path, format!("cpu{} {}", cpu.cpu, state.name), if on { "0" } else { "1" })?;
            }
        }
        if found {
            return Ok(());
        }
        match inventory.cpuidle.cpus().first() {
            None => Err(impossible(format!(
                "no C-state can be switched here: {}",
                inventory.cpuidle.cpus.why_not()
            ))),
            Some(cpu) => {
                let names: Vec<String> = cpu.states.iter().map(|s| s.name.clone()).collect();
                Err(no_state(name, &names))
            }
        }
    }

    fn latency(&mut self, limit_ns: Option<u64>) -> Result<(), PlanError> {
        // The kernel's file: "n/a" allows no delay at all, 0 any.
        let value = match limit_ns {
            None => "0".to_owned(),
            Some(ns) if ns < 1000 => "n/a".to_owned(),
            Some(ns) => (ns / 1000).to_string(),
        };
        if let Some(ns) = limit_ns
            && ns >= 1000
            && let Some(cpu) = self.inventory.cpuidle.cpus().iter().find(|c| self.cpus.contains(c.cpu))
        {
            let allowed: Vec<&str> =
                cpu.states.iter().filter(|s| s.latency_us * 1000 <= ns).map(|s| s.name.as_str()).collect();
            self.plan.notes.push(format!(
                "within {} a CPU can wake from {}",
                show_ns(ns),
                allowed.join(", ")
            ));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let path = format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us");
            self.write(path, format!("cpu{cpu} latency limit"), value.clone())?;
        }
        Ok(())
    }

    fn idle_governor(&mut self, name: &str) -> Result<(), PlanError> {
        let governors = &self.inventory.cpuidle.governors;
        if governors.is_empty() {
            return Err(impossible("the idle governor cannot be chosen here: the kernel lists none"));
        }
        if !governors.iter().any(|g| g == name) {
            return Err(unknown("--idle-governor", name, governors, "this kernel"));
        }
        self.write(format!("{CPUS}/cpuidle/current_governor"), "idle governor".to_owned(), name)
    }

    fn power_limit(
        &mut self,
        zone: Option<&str>,
        constraint: Option<&str>,
        power_uw: u64,
    ) -> Result<(), PlanError> {
        let zones = power::zones(self.overlay.root);
        let Some(top) = &zones.value else {
            return Err(impossible(format!("no power limit can be set here: {}", zones.why_not())));
        };
        let wanted = zone.unwrap_or("package");
        let twins = zones_meant(top, wanted);
        if twins.is_empty() {
            let names: Vec<String> = top.iter().flat_map(Zone::walk).map(|z| z.name.clone()).collect();
            return Err(unknown("--rapl", wanted, &names, "this machine"));
        }
        if power_uw > rules::HIGHEST_LIMIT_UW {
            return Err(input(format!(
                "--rapl {}: expected at most {}, the most that a limit's register holds",
                show_uw(power_uw),
                show_uw(rules::HIGHEST_LIMIT_UW)
            )));
        }
        for twins in twins {
            self.limit_of_zone(&twins, constraint, power_uw)?;
        }
        Ok(())
    }

    /// Limits one zone, shown by one door or by several: the lowest of their limits is in force, so that one is set, and
    /// those that would be lower then. Limits that are off stay as they are, unless there is no other.
    fn limit_of_zone(
        &mut self,
        twins: &[&Zone],
        constraint: Option<&str>,
        power_uw: u64,
    ) -> Result<(), PlanError> {
        let first = twins[0];
        let limits: Vec<(&Zone, &Limit)> =
            twins.iter().filter_map(|z| Some((*z, z.limit(constraint)?))).collect();
        let Some((_, limit)) = limits.first() else {
            let names: Vec<String> = first.limits.iter().map(|l| l.name.clone()).collect();
            return Err(match constraint {
                Some(name) if !names.is_empty() => unknown("--rapl", name, &names, &first.name),
                _ => impossible(format!("--rapl: {} has no limit that can be set", first.name)),
            });
        };
        let name = limit.name.clone();
        let mut limits: Vec<(&Zone, &Limit)> = limits.into_iter().filter(|(_, l)| l.name == name).collect();
        limits.sort_by_key(|(z, _)| z.holds_uw(&name).unwrap_or(u64::MAX));
        if let [(ruler, _), rest @ ..] = limits.as_slice()
            && !rest.is_empty()
        {
            self.plan.notes.push(twins_note(&name, ruler, rest));
        }
        for (at, (zone, limit)) in limits.iter().enumerate() {
            if at > 0 && zone.holds_uw(&name).is_none_or(|uw| uw >= power_uw) {
                continue;
            }
            if let Some(most) = limit.most_uw.filter(|most| *most > 0 && power_uw > *most) {
                self.plan.notes.push(format!(
                    "{} is above the {} that {} names as its highest (max_power_uw): the kernel takes it, the processor may not use it",
                    show_uw(power_uw), show_uw(most), zone.name
                ));
            }
            if zone.enabled == Some(false) {
                self.plan.notes.push(format!("the limits of {} are not enforced (enabled is 0)", zone.name));
            }
            let door = if limits.len() > 1 { format!(" ({})", zone.door) } else { String::new() };
            self.write(
                format!("{}/constraint_{}_power_limit_uw", zone.path, limit.index),
                format!("{}{door} {name} limit", zone.name),
                power_uw.to_string(),
            )?;
        }
        Ok(())
    }

    fn uncore(&mut self, min: Option<Speed>, max: Option<Speed>) -> Result<(), PlanError> {
        let uncores = power::uncores(self.overlay.root);
        let Some(found) = &uncores.value else {
            return Err(impossible(format!("the uncore's speed cannot be set here: {}", uncores.why_not())));
        };
        for uncore in found {
            let (Some((low, high)), Some((slowest, fastest))) =
                (uncore.limits_khz, uncore.initial_khz.or(uncore.limits_khz))
            else {
                return Err(impossible(format!("{} shows no limits", uncore.name)));
            };
            let end = |flag: &str, speed: Option<Speed>, or: u64| -> Result<u64, PlanError> {
                let khz = match speed {
                    None => return Ok(or),
                    Some(Speed::Khz(khz)) => khz,
                    Some(Speed::Min) => slowest,
                    Some(Speed::Max | Speed::Boost | Speed::Base) => fastest,
                    Some(Speed::Percent(percent)) => {
                        (fastest as f64 * percent / 100e5).round() as u64 * 100_000
                    }
                };
                match (slowest..=fastest).contains(&khz) {
                    true => Ok(khz),
                    false => Err(input(format!(
                        "{flag} {}: {} runs from {} to {}",
                        show_khz(khz),
                        uncore.name,
                        show_khz(slowest),
                        show_khz(fastest)
                    ))),
                }
            };
            let (new_low, new_high) = (end("--uncore-min", min, low)?, end("--uncore-max", max, high)?);
            if new_low > new_high {
                return Err(input(format!(
                    "--uncore-min {} is above the maximum {}; give both ends",
                    show_khz(new_low),
                    show_khz(new_high)
                )));
            }
            let mut ends = [("max_freq_khz", "maximum", new_high), ("min_freq_khz", "minimum", new_low)];
            if new_high < low {
                ends.reverse();
            }
            for (file, word, khz) in ends {
                self.write(
                    format!("{}/{file}", uncore.path),
                    format!("{} {word}", uncore.name),
                    khz.to_string(),
                )?;
            }
        }
        Ok(())
    }

    /// A tunable lies in the policy's folder, or in one for the whole machine; which of them is known once the governor
    /// is in force.
    fn tunable(&mut self, name: &str, value: &str) -> Result<(), PlanError> {
        let mut known = BTreeSet::new();
        let mut paths = BTreeMap::new();
        let mut coming = Vec::new();
        for policy in self.policies()? {
            let setting = format!("{}/scaling_governor", policy.path);
            let governor = self.overlay.text(&setting).unwrap_or_default();
            // As `compare` names it, or as the kernel does.
            let name = kernel_name(&governor, name).unwrap_or(name);
            let folders = [
                (format!("{}/{governor}", policy.path), policy.name().to_owned()),
                (format!("{CPUS}/cpufreq/{governor}"), governor.clone()),
            ];
            let is_there = |folder: &str| self.overlay.root.list(folder).is_ok_and(|l| !l.is_empty());
            if self.overlay.made.contains_key(&setting) && !folders.iter().any(|(f, _)| is_there(f)) {
                known.extend(rules::tunables(&governor).map(str::to_owned));
                if known.contains(name) {
                    coming.push((folders, name.to_owned()));
                }
                continue;
            }
            for (folder, who) in folders {
                for file in self.overlay.list(&folder) {
                    if file == name {
                        paths.insert(format!("{folder}/{file}"), format!("{who} {name}"));
                    }
                    known.insert(file);
                }
            }
        }
        if paths.is_empty() && coming.is_empty() {
            let known: Vec<String> = known.into_iter().collect();
            return Err(match known.is_empty() {
                true => impossible("--tunable: the governor has none; give one that has with --governor"),
                false => unknown("--tunable", name, &known, "the governor"),
            });
        }
        for (path, what) in paths {
            self.write(path, what, value)?;
        }
        for ([(own, who), (common, whose)], name) in coming {
            let path = format!("{own}/{name}");
            self.overlay.coming.insert(own);
            let verdict = rules::judge(&self.overlay, &path, value);
            if let Ok(stored) = &verdict {
                self.overlay.made.insert(path.clone(), stored.clone());
            }
            let elsewhere = (Target::File(format!("{common}/{name}")), format!("{whose} {name}"));
            let change = Change {
                target: Target::File(path),
                what: format!("{who} {name}"),
                value: value.to_owned(),
                elsewhere: Some(elsewhere),
            };
            let (old, judged_later) = ("its default".to_owned(), false);
            self.plan.steps.push(Step { change, old, verdict, judged_later });
        }
        Ok(())
    }

    fn profile(&mut self, name: &str) -> Result<(), PlanError> {
        const PATH: &str = "sys/firmware/acpi/platform_profile";
        let choices = self.overlay.text(&format!("{PATH}_choices"));
        let Some(choices) = choices else {
            return Err(impossible("--profile: the firmware offers no platform_profile"));
        };
        let choices: Vec<String> = choices.split_whitespace().map(str::to_owned).collect();
        if !choices.iter().any(|c| c == name) {
            return Err(unknown("--profile", name, &choices, "the firmware"));
        }
        self.write(PATH.to_owned(), "platform profile".to_owned(), name)
    }

    fn driver_mode(&mut self, mode: &str) -> Result<(), PlanError> {
        let Some(driver) = &self.inventory.cpufreq.driver else {
            return Err(impossible("--driver-mode: neither intel_pstate nor amd_pstate is loaded"));
        };
        let modes: &[&str] = match driver.name {
            "intel_pstate" => &["active", "passive", "off"],
            _ => &["active", "passive", "guided", "disable"],
        };
        if !modes.contains(&mode) {
            let modes: Vec<String> = modes.iter().map(|m| (*m).to_owned()).collect();
            return Err(unknown("--driver-mode", mode, &modes, driver.name));
        }
        let policies = self.inventory.cpufreq.policies().iter();
        let unread: Vec<&str> = policies.filter(|p| p.affected.is_empty()).map(CpufreqPolicy::name).collect();
        if !unread.is_empty() && driver.mode != mode {
            self.plan.notes.push(format!(
                "every CPU of {} is offline: what is set there cannot be read, is reset by the mode and does not come back",
                unread.join(", ")
            ));
        }
        self.write(format!("{CPUS}/{}/status", driver.name), format!("{} mode", driver.name), mode)
    }

    fn online(&mut self, on: bool) -> Result<(), PlanError> {
        let topology = &self.inventory.topology;
        let staying = topology.online.without(self.cpus);
        if !on && staying.is_empty() {
            return Err(input(format!("--online off for CPU {}: at least one CPU must stay", self.cpus)));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let Some(known) = topology.cpu(cpu) else { continue };
            if !known.hotplug {
                if known.online == on {
                    continue;
                }
                return Err(impossible(format!(
                    "CPU {cpu} cannot be taken offline: the kernel keeps it (no 'online' file)"
                )));
            }
            self.write(
                format!("{CPUS}/cpu{cpu}/online"),
                format!("cpu{cpu} online"),
                if on { "1" } else { "0" },
            )?;
        }
        Ok(())
    }

    /// Clock modulation by its register: no file of the kernel sets it. Threads of a core share the clock
    /// and are set together; the nearest step that the processor has is taken.
    fn tstate(&mut self, percent: f64) -> Result<(), PlanError> {
        let cpus = self.inventory.topology.with_siblings(self.cpus).and(&self.inventory.topology.online);
        let more = cpus.without(self.cpus);
        if !more.is_empty() {
            self.plan.notes.push(format!("CPU {more} shares its core's clock and is set too"));
        }
        for cpu in cpus.iter() {
            let refuse = |why: String| impossible(format!("--tstate: CPU {cpu}: {why}"));
            let facts = CpuFacts::read(self.overlay.root, cpu).map_err(|e| refuse(e.to_string()))?;
            let step =
                DutyStep::of(&facts).ok_or_else(|| refuse("the processor has no clock modulation".into()))?;
            let duty = Duty::nearest(percent / 100.0, step).map_err(|e| input(format!("--tstate {e}")))?;
            if cpu == cpus.first().unwrap_or(cpu) && duty.percent() != percent {
                self.plan.notes.push(format!("the nearest step that the processor has is {duty}"));
            }
            let what = format!("cpu{cpu} clock modulation");
            self.register(cpu, &facts, "IA32_CLOCK_MODULATION", what, |register, raw| {
                duty.encode(register, raw)
            })?;
        }
        Ok(())
    }

    /// Adds a change of some bits of a register, checked against the register's write mask.
    fn register(
        &mut self,
        cpu: u32,
        facts: &CpuFacts,
        name: &str,
        what: String,
        change: impl FnOnce(&Register, u64) -> Result<u64, RegisterError>,
    ) -> Result<(), PlanError> {
        let refuse = |e: &dyn std::fmt::Display| impossible(format!("{what}: {e}"));
        let registers = Registers::for_cpu(facts);
        let register = registers.get(name).map_err(|e| refuse(&e))?;
        let mut device = MsrDevice::for_reading(self.overlay.root, registers.clone());
        let old = device.read(cpu, register, Wake::Yes).map_err(|e| refuse(&e))?;
        let new = change(register, old).map_err(|e| refuse(&e))?;
        registers.check_write(register.address, old, new).map_err(|e| refuse(&e))?;
        // Only the bits that change are ours, now and when they are put back.
        let mask = old ^ new;
        if mask == 0 {
            return Ok(());
        }
        let target = Target::Register { cpu, address: register.address, mask };
        let shown = |raw: u64| format!("{:#x}", raw & mask);
        self.plan.steps.push(Step {
            change: Change { target, what, value: shown(new), elsewhere: None },
            old: shown(old),
            verdict: Ok(shown(new)),
            judged_later: false,
        });
        Ok(())
    }

    /// What follows from the steps and must come back with them: a governor's change touches the held speed
    /// and the preference, boost the limits, hotplug and a driver's mode all of a policy.
    fn beside(&mut self) {
        let mut policies: BTreeSet<&str> = BTreeSet::new();
        let mut cpus = CpuSet::new();
        for step in &self.plan.steps {
            let Target::File(path) = &step.change.target else { continue };
            let wide = ["cpufreq/boost", "no_turbo", "_pstate/status", "max_perf_pct", "min_perf_pct"];
            let hotplug =
                path.strip_suffix("/online").and_then(|p| p.rsplit("/cpu").next()?.parse::<u32>().ok());
            cpus.extend(hotplug);
            for policy in self.inventory.cpufreq.policies() {
                let own = path.starts_with(&format!("{}/", policy.path));
                let unplugged =
                    hotplug.is_some_and(|cpu| policy.related.contains(cpu) || policy.affected.contains(cpu));
                if own || unplugged || wide.iter().any(|w| path.ends_with(w)) {
                    policies.insert(&policy.path);
                }
            }
        }
        let mut beside = Vec::new();
        let mut watch = |path: String, what: String| {
            // Only what can be written back: `<unsupported>` is no speed.
            if let Some(value) = text(self.overlay.root, &path).filter(|v| !v.starts_with('<')) {
                beside.push(Change { target: Target::File(path), what, value, elsewhere: None });
            }
        };
        if self.plan.steps.iter().any(|s| s.change.target.path().ends_with("_pstate/status")) {
            for (file, what) in RESET {
                watch(format!("{CPUS}/{file}"), what.to_owned());
            }
        }
        for path in policies {
            // A governor's tunables go with it, and come back with their defaults.
            let governor = text(self.overlay.root, &format!("{path}/scaling_governor")).unwrap_or_default();
            for folder in [format!("{path}/{governor}"), format!("{CPUS}/cpufreq/{governor}")] {
                for file in rules::tunables(&governor) {
                    watch(format!("{folder}/{file}"), format!("{governor} {file}"));
                }
            }
            let name = path.strip_suffix("/cpufreq").unwrap_or(path).rsplit('/').next().unwrap_or(path);
            for (file, word) in [
                ("boost", "boost"),
                ("scaling_governor", "governor"),
                ("scaling_min_freq", "minimum"),
                ("scaling_max_freq", "maximum"),
                ("scaling_setspeed", "speed"),
                ("energy_performance_preference", "preference"),
            ] {
                watch(format!("{path}/{file}"), format!("{name} {word}"));
            }
        }
        for cpu in cpus.iter() {
            watch(
                format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us"),
                format!("cpu{cpu} latency limit"),
            );
            watch(format!("{CPUS}/cpu{cpu}/power/energy_perf_bias"), format!("cpu{cpu} bias"));
            for state in self.inventory.cpuidle.cpus().iter().filter(|c| c.cpu == cpu).flat_map(|c| &c.states)
            {
                let path = format!("{CPUS}/cpu{cpu}/cpuidle/state{}/disable", state.index);
                watch(path, format!("cpu{cpu} {}", state.name));
            }
        }
        self.plan.beside = beside;
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

/// The zones that a name means, each with its twins: an outermost zone can be shown by several doors, under one name. The
/// registers' door comes first; inner zones are taken from there.
fn zones_meant<'z>(top: &'z [Zone], wanted: &str) -> Vec<Vec<&'z Zone>> {
    let mut doors: Vec<&Zone> = top.iter().collect();
    doors.sort_by_key(|z| z.door != "msr");
    let mut meant: Vec<Vec<&Zone>> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for zone in doors {
        let is_twin = !seen.insert(&zone.name);
        if zone.is_meant_by(wanted) {
            match meant.iter_mut().find(|twins| is_twin && twins[0].name == zone.name) {
                Some(twins) => twins.push(zone),
                None => meant.push(vec![zone]),
            }
        }
        let inner = zone.walk().into_iter().skip(1).filter(|z| !is_twin && z.is_meant_by(wanted));
        meant.extend(inner.map(|z| vec![z]));
    }
    meant
}

/// Which of several limits is in force.
fn twins_note(name: &str, ruler: &Zone, rest: &[(&Zone, &Limit)]) -> String {
    let shown = |z: &Zone| match z.holds_uw(name) {
        Some(uw) => format!("{} ({})", show_uw(uw), z.door),
        None => format!("none ({})", z.door),
    };
    let others: Vec<String> = rest.iter().map(|(z, _)| shown(z)).collect();
    format!(
        "{} has several {name} limits: {} is in force, the lowest; the other is {}",
        ruler.name,
        shown(ruler),
        others.join(", ")
    )
}

/// A speed in kHz for one policy. Percentages go to the nearest level where there is a table.
fn resolve(policy: &CpufreqPolicy, cpufreq: &Cpufreq, flag: &str, speed: Speed) -> Result<u64, PlanError> {
    let missing = |what: &str| impossible(format!("{flag}: {} does not tell its {what}", policy.name()));
    let (slowest, fastest) = policy.hardware_khz.ok_or_else(|| missing("range"))?;
    let top_level = policy.levels_khz.last().copied();
    match speed {
        Speed::Khz(khz) => Ok(khz),
        Speed::Min => Ok(slowest),
        // acpi-cpufreq has no level for the boost above its highest: that one brings it.
        Speed::Max => {
            Ok(policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().max().unwrap_or(fastest))
        }
        Speed::Boost => Ok(policy.boost_levels_khz.last().copied().unwrap_or(fastest)),
        Speed::Base => match (policy.base_khz, top_level, &cpufreq.boost) {
            (Some(khz), ..) => Ok(khz),
            // A table without boost levels of its own, and no boost to be had: its top is the base.
            (None, Some(top), _) if !policy.boost_levels_khz.is_empty() => Ok(top),
            (None, Some(top), None) if policy.boost.is_none() => Ok(top),
            // acpi-cpufreq shows boost as a level 1 MHz above the base.
            (None, Some(top), Some(_)) if top % 10_000 == 1_000 && policy.levels_khz.len() > 1 => {
                Ok(policy.levels_khz[policy.levels_khz.len() - 2])
            }
            _ => Err(missing("speed without boost")),
        },
        Speed::Percent(percent) => {
            let levels: Vec<u64> =
                policy.levels_khz.iter().chain(&policy.boost_levels_khz).copied().collect();
            // A limit goes to the nearest level inside it, as the model has it; a speed to the nearest of all.
            let khz = share_of_khz(fastest, percent);
            let found = match flag {
                "--max" => {
                    levels.iter().copied().filter(|l| *l <= khz).max().or(levels.iter().copied().min())
                }
                "--min" => {
                    levels.iter().copied().filter(|l| *l >= khz).min().or(levels.iter().copied().max())
                }
                _ => {
                    let khz = (fastest as f64 * percent / 100.0).round() as u64;
                    levels.iter().copied().min_by_key(|l| l.abs_diff(khz))
                }
            };
            Ok(found.unwrap_or(khz.max(slowest).min(fastest)))
        }
    }
}

fn no_authority(policy: &CpufreqPolicy, cpufreq: &Cpufreq) -> String {
    match &cpufreq.driver {
        Some(driver) if driver.mode == "active" => format!(
            "--freq: {} in active mode lets the hardware choose the speed; bound it with --min and --max, or give --driver-mode passive with it",
            driver.name
        ),
        _ => format!(
            "--freq: {} has no governor userspace (it has {}); load cpufreq_userspace, or bound the speed with --min and --max",
            policy.name(),
            policy.governors.join(", ")
        ),
    }
}

/// A C-state that others have is missing here; any other name is a slip of the pen.
fn no_state(name: &str, names: &[String]) -> PlanError {
    let is_state = name.strip_prefix('C').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    match is_state {
        true => PlanError::Impossible(format!(
            "--cstate '{name}': these CPUs have no such C-state; they have {}",
            names.join(", ")
        )),
        false => unknown("--cstate", name, names, "these CPUs"),
    }
}

fn unknown(flag: &str, given: &str, choices: &[String], whose: &str) -> PlanError {
    let near = nearest(given, choices.iter().map(String::as_str));
    input(format!(
        "{flag} '{given}' is unknown to {whose}; did you mean '{near}'? It takes {}",
        choices.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn planned(root: &DirRoot, setting: Setting) -> Result<ChangePlan, PlanError> {
        plan(root, &Inventory::read(root), &CpuSet::from_iter([0]), &[setting])
    }

    /// Firmware that gives a lowest speed above the highest is out there; the kernel shows both as they are.
    #[test]
    fn a_share_of_a_range_that_is_upside_down() -> Result<(), Box<dyn std::error::Error>> {
        let (_folder, root) = machine(["2000000", "1000000"])?;
        let plan = planned(&root, Setting::Limits(None, Some(Speed::Percent(50.0))))?;
        assert_eq!(plan.steps[0].change.value, "1000000");
        Ok(())
    }

    #[test]
    fn a_tunable_has_the_kernel_s_name_and_ours() -> Result<(), Box<dyn std::error::Error>> {
        let (_folder, root) = machine(["1000000", "2000000"])?;
        for name in ["up", "up_threshold"] {
            let plan = planned(&root, Setting::Tunable(name.into(), "77".into()))?;
            assert!(plan.steps[0].change.target.to_string().ends_with("ondemand/up_threshold"), "{name}");
        }
        assert!(planned(&root, Setting::Tunable("upp".into(), "77".into())).is_err());
        Ok(())
    }
}
