//! How a policy is put in force on a real machine: the command that does it, or why none can.
//!
//! On Linux that is `wattwise set`, whose changes can be undone; on FreeBSD and OpenBSD the system's own commands. A policy
//! is the whole of what it says: a limit that is in force now and that it does not have is lifted with it, so that what is
//! applied is what was replayed.
//!
//! Whether Linux takes a governor at all depends on the driver: one that chooses by itself (intel_pstate and amd-pstate in
//! active mode) has no governors but `powersave` and `performance`, which there are its own policies, and must be
//! switched to passive mode in the same `set`.

use crate::driver::{DRIVERS, NO_DRIVER, SpeedDriver};
use crate::spec::{Deepest, PolicySpec, part_text};
use std::fmt;
use wattwise_figure::setting::{IDLE_GOVERNOR, Setting, words};
use wattwise_figure::{shell, units};
use wattwise_model::machine::MachineModel;
use wattwise_policy::dram::DramSpec;
use wattwise_policy::limits::Bound;
use wattwise_policy::speed::Cadence;
use wattwise_policy::speed::tunables::{kernel_name, kernels_choice_us};
use wattwise_policy::{DomainInfo, Khz, Platform, Settings, System, speed};
use wattwise_sim::platform;

/// Whether a name is a governor of cpufreq's: a driver that chooses by itself takes it in passive mode alone.
pub fn is_governor(name: &str) -> bool {
    let on_linux = speed::find(name).is_some_and(|s| s.systems().contains(&System::Linux));
    on_linux && !DRIVERS.iter().any(|d| d.own == Some(name))
}

/// Where a policy is to be applied.
#[derive(Clone, Debug)]
pub struct ApplyTarget {
    /// The system.
    pub system: System,
    /// Its driver, where known.
    pub driver: Option<&'static SpeedDriver>,
    /// Names of the C-states, shallowest first, where known.
    pub idle_states: Vec<String>,
    /// The fastest clock's range, where known.
    pub range: Option<DomainInfo>,
    /// What policies know of it, where known.
    pub platform: Option<Platform>,
    /// What a package of it may draw for long, uW, where it has such a limit.
    pub power_limit_uw: Option<u64>,
    /// Who sets its memory's clock unless told otherwise, where it has such a clock.
    pub dram: Option<DramSpec>,
    /// What is in force there, where known: its limits are lifted by a policy without them.
    pub in_force: Option<PolicySpec>,
    /// The governors of its kernel; empty where nobody knows, or where its driver names only its own.
    pub governors: Vec<String>,
}

impl From<System> for ApplyTarget {
    /// A machine of which only the system is known.
    fn from(system: System) -> ApplyTarget {
        ApplyTarget {
            system,
            driver: None,
            idle_states: Vec::new(),
            range: None,
            platform: None,
            power_limit_uw: None,
            dram: None,
            in_force: None,
            governors: Vec::new(),
        }
    }
}

impl ApplyTarget {
    /// A model's machine, under its usual system or another.
    pub fn of(machine: &MachineModel, system: System) -> ApplyTarget {
        let own = System::find(&machine.system) == Some(system);
        let platform = platform(machine);
        ApplyTarget {
            system,
            driver: if own { SpeedDriver::find(&machine.driver) } else { None },
            idle_states: machine.kinds[0].idle.iter().map(|s| s.name.clone()).collect(),
            range: platform.domains.iter().max_by_key(|domain| domain.fastest()).cloned(),
            platform: Some(platform),
            power_limit_uw: machine
                .packages
                .iter()
                .find_map(|p| Some((p.limit?.long_w * 1e6).round() as u64)),
            dram: machine.memory_clock.as_ref().and_then(|c| DramSpec::parse(&c.governor).ok()),
            in_force: PolicySpec::parse(&machine.default_policy).ok().filter(|_| own),
            governors: if own { machine.governors.clone() } else { Vec::new() },
        }
    }
}

/// How a policy is put in force. Shown, it is a line for a shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Commands {
    /// One `wattwise set`.
    Set {
        /// Its settings.
        settings: Vec<Setting>,
        /// What they lift of what is in force now, as parts of a policy: `max=1400MHz`, `noboost`.
        lifts: Vec<String>,
    },
    /// The system's own commands, one after the other, each as its words.
    System(Vec<Vec<String>>),
}

/// How policies are put in force on a machine, or why one cannot be.
pub type Apply<'a> = dyn Fn(&PolicySpec) -> Result<Commands, String> + Sync + 'a;

impl Commands {
    fn one(words: impl IntoIterator<Item = impl Into<String>>) -> Commands {
        Commands::System(vec![words.into_iter().map(Into::into).collect()])
    }

    /// The settings, where it is `wattwise set`.
    pub fn settings(&self) -> Option<&[Setting]> {
        match self {
            Commands::Set { settings, .. } => Some(settings),
            Commands::System(_) => None,
        }
    }

    /// What is lifted of what is in force now.
    pub fn lifts(&self) -> &[String] {
        match self {
            Commands::Set { lifts, .. } => lifts,
            Commands::System(_) => &[],
        }
    }

    /// Whether the driver's mode is set.
    pub fn sets_mode(&self) -> bool {
        self.settings().is_some_and(|all| all.iter().any(|s| matches!(s, Setting::DriverMode(_))))
    }

    /// How much this changes beside what another one sets: flags or words.
    pub fn changes_beside(&self, other: Option<&Commands>) -> usize {
        let parts = |commands: &Commands| -> Vec<String> {
            match commands {
                Commands::Set { settings, .. } => settings
                    .iter()
                    .flat_map(Setting::flags)
                    .map(|(flag, value)| flag.into_owned() + &value)
                    .collect(),
                Commands::System(all) => all.concat(),
            }
        };
        let there = other.map(parts).unwrap_or_default();
        parts(self).iter().filter(|part| !there.contains(part)).count()
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Commands::Set { settings, .. } => {
                f.write_str(&shell::line(SET.map(String::from).into_iter().chain(words(settings))))
            }
            Commands::System(all) => {
                f.write_str(&all.iter().map(shell::line).collect::<Vec<_>>().join(" && "))
            }
        }
    }
}

const SET: [&str; 2] = ["wattwise", "set"];
/// The flags of `wattwise set` that put a policy in force; each has a value.
const FLAGS: [&str; 13] = [
    "--governor",
    "--epp",
    "--boost",
    "--max",
    "--min",
    "--freq",
    "--idle-governor",
    "--cstate",
    "--latency",
    "--tunable",
    "--driver-mode",
    "--rapl",
    "--dram",
];

/// Whether a line could be ours, of this version or an older one, which gave the driver's mode in a command before: only then
/// is it shown as a command. A result file comes from a stranger, who may have written
/// any command in it.
pub fn is_ours(line: &str) -> bool {
    line.split(" && ").all(|command| {
        let words: Vec<&str> = command.split(' ').collect();
        let plain = words.iter().all(|w| !w.is_empty() && shell::word(w) == **w);
        plain
            && match &words[..] {
                ["wattwise", "set", flags @ ..] => {
                    let pair = |pair: &[&str]| {
                        pair.len() == 2 && FLAGS.contains(&pair[0]) && !pair[1].starts_with('-')
                    };
                    !flags.is_empty() && flags.chunks(2).all(pair)
                }
                ["powerd" | "powerd++", flags @ ..] => {
                    let flag = |f: &str| ["-a", "-b", "-n", "-p", "-r", "-i", "-m", "-M"].contains(&f);
                    let value = |v: &str| v.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
                    flags.chunks(2).all(|pair| pair.len() == 2 && flag(pair[0]) && value(pair[1]))
                }
                ["sysctl", set] => {
                    ["dev.cpu.0.freq=", "hw.perfpolicy="].iter().any(|name| set.starts_with(name))
                }
                ["apm", "-H" | "-L" | "-A"] => true,
                ["rcctl", "enable" | "start", daemon] => speed::find(daemon).is_some(),
                _ => false,
            }
    })
}

/// How policies are put in force on a machine, under the system that its model names.
pub fn on(machine: &MachineModel) -> impl Fn(&PolicySpec) -> Result<Commands, String> + Sync + use<> {
    let target = System::find(&machine.system).map(|system| ApplyTarget::of(machine, system));
    let name = machine.name.clone();
    move |policy| match &target {
        Some(target) => commands(policy, target),
        None => Err(format!("{name} has no system that wattwise knows")),
    }
}

/// The line for a shell that puts a policy in force.
///
/// # Errors
/// One line that says why there is none.
pub fn apply_line(spec: &PolicySpec, target: &ApplyTarget) -> Result<String, String> {
    commands(spec, target).map(|commands| commands.to_string())
}

/// The commands that put a policy in force.
///
/// # Errors
/// One line that says why there are none, and the nearest policy of which there are.
pub fn commands(spec: &PolicySpec, target: &ApplyTarget) -> Result<Commands, String> {
    made(spec, target).map_err(|why| {
        let near = nearest(spec, target).map(|near| format!("; nearest here: {near}")).unwrap_or_default();
        let followed = match can_be_followed(spec, target) {
            true => {
                format!(
                    "; wattwised can follow it (wattwise profile add NAME --policy {})",
                    shell::word(&spec.text)
                )
            }
            false => String::new(),
        };
        format!("{why}{followed}{near}")
    })
}

/// Whether the daemon can decide as the policy does: it looks now and then, and is neither the kernel's nor the hardware's.
fn can_be_followed(spec: &PolicySpec, target: &ApplyTarget) -> bool {
    let name = spec.speed.name;
    let is_anothers =
        STOCK.contains(&name) || DRIVERS.iter().any(|d| [d.own, d.active].contains(&Some(name)));
    let is_for_a_machine = spec.placement.is_none() && spec.idle.is_none() && spec.cores.is_none();
    let Some(platform) = target.platform.as_ref().filter(|_| is_for_a_machine && !is_anothers) else {
        return false;
    };
    target.system == System::Linux && target.driver.is_some() && decides_by_looking(spec, platform)
}

/// Whether a rule for the speed needs no hook of the scheduler's: a program can decide as it does.
pub fn decides_by_looking(spec: &PolicySpec, platform: &Platform) -> bool {
    !matches!(spec.build_speed(platform).cadence(), Cadence::Scheduler { .. })
}

/// The settings for what a policy has beside its rule for the speed, which stays as it is: `current+max=60%`.
///
/// # Errors
/// One line that says why there are none.
pub fn beside_the_speed(spec: &PolicySpec, target: &ApplyTarget) -> Result<Vec<Setting>, String> {
    if let Some(p) = spec.placement {
        return Err(placed_by_the_system(p.name));
    }
    let (mut settings, mut lifts) = (Vec::new(), Vec::new());
    limits(spec, target, None, (&mut settings, &mut lifts))?;
    limit_of_power(spec, target, None, (&mut settings, &mut lifts))?;
    memory_clock(spec, target, None, (&mut settings, &mut lifts))?;
    idle_governor(spec, &mut settings)?;
    if spec.deepest.is_some() {
        idle_states(spec, target, (&mut settings, &mut lifts))?;
    }
    settings.extend(spec.latency_ns.map(|ns| Setting::Latency(Some(ns))));
    Ok(settings)
}

fn placed_by_the_system(placement: &str) -> String {
    format!("placement {placement} is a model's: the system's own scheduler places tasks")
}

/// Policies that do nearly the same, the nearest first.
const KIN: &[(&str, &[&str])] = &[
    ("hwp", &["amd-pstate-epp", "intel_pstate", "schedutil", "ondemand"]),
    ("amd-pstate-epp", &["hwp", "intel_pstate", "schedutil", "ondemand"]),
    ("intel_pstate", &["hwp", "amd-pstate-epp", "schedutil", "ondemand"]),
    ("schedutil", &["ondemand", "conservative"]),
    ("ondemand", &["schedutil", "conservative"]),
    ("conservative", &["ondemand", "schedutil"]),
    ("burst", &["schedutil", "ondemand"]),
    ("race-to-idle", &["performance"]),
    ("userspace", &["performance"]),
];
/// Daemons that look at the load, of other systems.
const DAEMONS: &[&str] = &["powerd", "openbsd-auto", "ondemand", "schedutil"];

/// The nearest policy that can be put in force there: another rule under the same limits, or this one without what is only a model's.
fn nearest(spec: &PolicySpec, target: &ApplyTarget) -> Option<String> {
    let plain = PolicySpec { idle: None, placement: None, cores: None, ..spec.clone() };
    let same = std::iter::once(plain.clone());
    let names = KIN.iter().find(|(name, _)| *name == spec.speed.name).map_or(DAEMONS, |(_, kin)| kin);
    let kin = names.iter().filter_map(|name| {
        let mut near = PolicySpec::parse(name).ok()?;
        if let (Some(epp), true) = (epp(spec), near.speed.params.iter().any(|p| p.name == "epp")) {
            near = PolicySpec::parse(&format!("{name}:epp={epp}")).ok()?;
        }
        (near.limits, near.deepest, near.latency_ns) =
            (plain.limits, plain.deepest.clone(), plain.latency_ns);
        if spec.speed.name == "userspace" {
            let khz = u32::try_from(spec.speed_settings.count("khz")).ok().filter(|khz| *khz > 0);
            near.limits.max = khz.map(|khz| Bound::Khz(Khz(khz))).or(near.limits.max);
        }
        Some(near)
    });
    let without_limits = |near: PolicySpec| {
        let bare = near.without_limits();
        [near, bare]
    };
    let found = same.chain(kin).flat_map(without_limits).map(PolicySpec::renamed);
    let mut found = found.filter(|near| near.text != spec.text && made(near, target).is_ok());
    found.next().map(|near| near.text)
}

/// The preference, where the policy has one.
fn epp(spec: &PolicySpec) -> Option<String> {
    let param = spec.speed.params.iter().find(|p| p.name == "epp")?;
    Some(param.kind.show(spec.speed_settings.number("epp")))
}

/// The commands, or why there are none.
fn made(spec: &PolicySpec, target: &ApplyTarget) -> Result<Commands, String> {
    let resolved = spec.in_place(target.driver, target.in_force.as_ref());
    let spec = &resolved.map(|(spec, _)| spec).map_err(|e| e.problem())?;
    let name = spec.speed.name;
    if !spec.speed.systems().contains(&target.system) {
        let on: Vec<&str> = spec.speed.systems().iter().map(|s| s.title()).collect();
        return Err(match on.is_empty() {
            true => format!("no system offers {name}"),
            false => format!("{name} is {}'s, and this is {}", on.join("'s and "), target.system.title()),
        });
    }
    if let Some(p) = spec.placement {
        return Err(placed_by_the_system(p.name));
    }
    if let Some(c) = &spec.cores {
        return Err(format!(
            "{} needs a process that stays: 'wattwise coreidle', 'wattwise run' or 'wattwise ab' runs it",
            c.cores.name
        ));
    }
    match target.system {
        System::Linux => linux(spec, target),
        System::FreeBsd => freebsd(spec, target),
        System::OpenBsd => openbsd(spec),
    }
}

/// The parameters that are not at their default, as `(name, value)`.
fn changed(spec: &PolicySpec) -> Vec<(&'static str, f64)> {
    let defaults = Settings::defaults(spec.speed.params);
    spec.speed_settings
        .iter()
        .zip(defaults.iter())
        .filter(|(now, before)| now != before)
        .map(|(p, _)| p)
        .collect()
}

fn only_the_models(spec: &PolicySpec, param: &str) -> String {
    format!("{}'s {param} describes the model and cannot be set", spec.speed.name)
}

fn linux(spec: &PolicySpec, target: &ApplyTarget) -> Result<Commands, String> {
    if target.driver.is_some_and(|d| d.name == NO_DRIVER) {
        return Err("the system has no say in this machine's speed".into());
    }
    let (mode, mut rule) = speed_settings(spec, target)?;
    if let Some(Setting::Governor(name)) = rule.first()
        && lacks(name, mode.is_some(), target)
    {
        return Err(no_governor(name, &target.governors));
    }
    let mut lifts = Vec::new();
    if mode.is_none() {
        tunables(spec, target, (&mut rule, &mut lifts));
    }
    let mut settings: Vec<Setting> =
        mode.map(|mode| Setting::DriverMode(mode.to_owned())).into_iter().collect();
    settings.extend(rule);
    // A driver that is registered anew starts without the limits of the one before.
    let before = target.in_force.as_ref().filter(|_| mode.is_none());
    limits(spec, target, before, (&mut settings, &mut lifts))?;
    // The mode of a driver of speeds does nothing to a package's limit of power, the memory's clock and C-states.
    limit_of_power(spec, target, target.in_force.as_ref(), (&mut settings, &mut lifts))?;
    memory_clock(spec, target, target.in_force.as_ref(), (&mut settings, &mut lifts))?;
    idle_governor(spec, &mut settings)?;
    idle_states(spec, target, (&mut settings, &mut lifts))?;
    wake_ups(spec, target, (&mut settings, &mut lifts));
    Ok(Commands::Set { settings, lifts })
}

fn idle_governor(spec: &PolicySpec, settings: &mut Vec<Setting>) -> Result<(), String> {
    let Some(idle) = &spec.idle else { return Ok(()) };
    if idle.idle.name == "fixed" {
        return Err("a fixed C-state is a model's: the deepest allowed can be set (+cmax=C1)".into());
    }
    if idle.settings != Settings::defaults(idle.idle.params) {
        return Err(format!("the kernel's {} takes no parameters", idle.idle.name));
    }
    settings.push(Setting::Plain(&IDLE_GOVERNOR, idle.idle.name.into()));
    Ok(())
}

/// The governors of stock kernels (`drivers/cpufreq/cpufreq_*.c`, `kernel/sched/cpufreq_schedutil.c`).
const STOCK: [&str; 6] = ["performance", "powersave", "userspace", "ondemand", "conservative", "schedutil"];
/// The governors that come with modules of ours, and where these are.
const MODULES: [(&str, &str); 1] = [("burst", "cpufreq_burst (kernel/cpufreq_burst)")];

/// Whether a kernel has no governor of that name, or will have none in another mode of its driver.
fn lacks(name: &str, in_another_mode: bool, target: &ApplyTarget) -> bool {
    let is_listed = target.governors.iter().any(|g| g == name);
    // A driver that chooses speeds itself does not list cpufreq's: they come with the mode.
    let list_counts = !in_another_mode && !target.governors.is_empty();
    // No kernel has by chance what is not its own.
    !is_listed && (list_counts || !STOCK.contains(&name))
}

/// Why a kernel cannot be given a governor, and what would bring it.
fn no_governor(name: &str, governors: &[String]) -> String {
    let module = match (MODULES.iter().find(|(own, _)| *own == name), name) {
        (Some((_, module)), _) => format!("; it comes with wattwise's module {module}"),
        (None, "schedutil") => "; it is a part of kernels that are built with it".to_owned(),
        (None, name) if STOCK.contains(&name) => format!("; 'modprobe cpufreq_{name}' may bring it"),
        _ => "; there is no module of it".to_owned(),
    };
    match governors {
        [] => format!("'{name}' is no governor of stock kernels{module}"),
        all => format!("'{name}' is no governor of this kernel, which has {}{module}", all.join(", ")),
    }
}

/// The driver's mode where another is needed, and the settings for the speed policy.
fn speed_settings(
    spec: &PolicySpec,
    target: &ApplyTarget,
) -> Result<(Option<&'static str>, Vec<Setting>), String> {
    let name = spec.speed.name;
    let own = target.driver.and_then(|d| d.own);
    let governor = |name: &str| vec![Setting::Governor(name.to_owned())];
    match name {
        "hwp" | "amd-pstate-epp" | "intel_pstate" => {
            let mode = match target.driver {
                Some(d) if d.active != Some(name) => {
                    return Err(format!("{} has no mode that is {name}", d.name));
                }
                Some(d) if d.own.is_none() => Some("active"),
                // A driver that we do not know, of a kernel that lists cpufreq's governors, is asked for speeds.
                None if !target.governors.is_empty() => {
                    return Err(format!("its driver has no mode that is {name}"));
                }
                _ => None,
            };
            Ok((mode, own_settings(spec)?))
        }
        "performance" | "powersave" => Ok((None, governor(name))),
        "userspace" => {
            let khz = spec.speed_settings.count("khz");
            let speed = if khz == 0 { units::Speed::Max } else { units::Speed::Khz(khz) };
            match own {
                Some(own) => {
                    Err(format!("{own} cannot hold one speed; cap it instead: performance+max={speed}"))
                }
                None => Ok((None, vec![Setting::Freq(speed)])),
            }
        }
        _ => {
            let mut settings = governor(name);
            for (param, value) in changed(spec) {
                let tunable = kernel_name(name, param).ok_or_else(|| only_the_models(spec, param))?;
                settings.push(Setting::Tunable(tunable.to_owned(), value.to_string()));
            }
            Ok((own.map(|_| "passive"), settings))
        }
    }
}

/// The tunables in force that the policy does not have, where its governor is in force: as they are where nobody has chosen. A
/// governor that is not in force begins with those.
fn tunables(spec: &PolicySpec, target: &ApplyTarget, (settings, lifts): Made<'_>) {
    let Some(now) = target.in_force.as_ref().filter(|now| now.speed.name == spec.speed.name) else { return };
    let own = changed(spec);
    for (param, value) in changed(now) {
        let Some(kernels) = kernel_name(spec.speed.name, param) else { continue };
        if own.iter().any(|(name, _)| *name == param) {
            continue;
        }
        let usual = target.platform.as_ref().and_then(|p| kernels_choice_us(spec.speed.name, param, p));
        let usual = usual.unwrap_or_else(|| Settings::defaults(spec.speed.params).number(param));
        let kind = spec.speed.params.iter().find(|p| p.name == param).map(|p| p.kind);
        lifts.push(format!("{param}={}", kind.map_or_else(|| value.to_string(), |kind| kind.show(value))));
        settings.push(Setting::Tunable(kernels.to_owned(), usual.round().to_string()));
    }
}

/// A policy with what it would lift, so that it is kept.
pub fn keeping(spec: &PolicySpec, lifts: &[String]) -> String {
    let (limits, params): (Vec<&String>, Vec<&String>) =
        lifts.iter().partition(|part| crate::spec::is_limit(part));
    let mut text = part_text(spec.speed.name, spec.speed.params, &spec.speed_settings);
    for param in params {
        text += if text.contains(':') { "," } else { ":" };
        text += param;
    }
    let whole = part_text(spec.speed.name, spec.speed.params, &spec.speed_settings).len();
    text += spec.text.get(whole..).unwrap_or_default();
    limits.iter().for_each(|limit| text += &format!("+{limit}"));
    PolicySpec::parse(&text).map_or(text, |spec| spec.text)
}

/// The settings for a policy that is the driver's own.
fn own_settings(spec: &PolicySpec) -> Result<Vec<Setting>, String> {
    let mut governor = "powersave";
    let mut epp = None;
    for p in spec.speed.params {
        let value = spec.speed_settings.number(p.name);
        let is_changed = changed(spec).iter().any(|(name, _)| *name == p.name);
        match p.name {
            "epp" => epp = Some(p.kind.show(value)),
            "mode" if is_changed => governor = "performance",
            name if is_changed => return Err(only_the_models(spec, name)),
            _ => {}
        }
    }
    let governor = Setting::Governor(governor.to_owned());
    Ok([governor].into_iter().chain(epp.map(Setting::Epp)).collect())
}

/// Settings of a policy, and what they lift of what is in force.
type Made<'m> = (&'m mut Vec<Setting>, &'m mut Vec<String>);

/// The policy's limits on the speed, and none of those that are in force and not its own.
fn limits(
    spec: &PolicySpec,
    target: &ApplyTarget,
    before: Option<&PolicySpec>,
    (settings, lifts): Made<'_>,
) -> Result<(), String> {
    let limits = &spec.limits;
    let old = before.map(|before| before.limits).unwrap_or_default();
    if limits.no_boost {
        if target.range.as_ref().is_some_and(|d| d.base >= d.fastest()) {
            return Err("this machine has no boost to switch off".into());
        }
        settings.push(Setting::Boost(false));
    } else if old.no_boost {
        settings.push(Setting::Boost(true));
        lifts.push("noboost".into());
    }
    let mut end =
        |word: &str, wanted: Option<Bound>, old: Option<Bound>, lifted: units::Speed| match (wanted, old) {
            (Some(wanted), _) => Some(speed_of(wanted)),
            (None, Some(old)) => {
                lifts.push(format!("{word}={}", crate::spec::bound_text(old)));
                Some(lifted)
            }
            (None, None) => None,
        };
    let max = end("max", limits.max, old.max, units::Speed::Max);
    let min = end("min", limits.min, old.min, units::Speed::Min);
    if max.is_some() || min.is_some() {
        settings.push(Setting::Limits(min, max));
    }
    Ok(())
}

/// The policy's limit of power, or the machine's own in the place of a lower one that is in force and not the policy's.
fn limit_of_power(
    spec: &PolicySpec,
    target: &ApplyTarget,
    before: Option<&PolicySpec>,
    (settings, lifts): Made<'_>,
) -> Result<(), String> {
    let old = before.and_then(|before| before.limits.power_uw);
    if let Some(power_uw) = spec.limits.power_uw {
        if target.driver.is_some_and(|d| d.name.starts_with("amd")) {
            return Err("AMD's power limits are the firmware's: powercap cannot set them".into());
        }
        settings.push(Setting::PowerLimit { zone: None, constraint: None, power_uw });
    } else if let Some((old, own)) = old.zip(target.power_limit_uw) {
        settings.push(Setting::PowerLimit { zone: None, constraint: None, power_uw: own });
        lifts.push(format!("power={}", crate::spec::power_text(old)));
    }
    Ok(())
}

/// The policy's governor of the memory's clock, or the machine's own in the place of one that is in force and not the policy's.
fn memory_clock(
    spec: &PolicySpec,
    target: &ApplyTarget,
    before: Option<&PolicySpec>,
    (settings, lifts): Made<'_>,
) -> Result<(), String> {
    let old = before.and_then(|before| before.dram.as_ref());
    if let Some(dram) = &spec.dram {
        if dram.dram.name == "userspace" {
            let ends = "performance and powersave hold its ends";
            return Err(format!("one clock of the memory can be simulated, not set: {ends}"));
        }
        settings.push(governor_of_memory(dram));
    } else if let Some((old, own)) = old.zip(target.dram.as_ref()) {
        settings.push(governor_of_memory(own));
        lifts.push(format!("dram={}", crate::spec::dram_text(old)));
    }
    Ok(())
}

/// A governor of the memory as a setting, with its thresholds where it has some: somebody may have changed those that are in force.
fn governor_of_memory(chosen: &DramSpec) -> Setting {
    let percent = chosen.thresholds();
    let (up, down) = (percent.map(|(up, _)| up as u32), percent.map(|(_, down)| down as u32));
    Setting::Dram { governor: chosen.dram.name.to_owned(), up, down }
}

fn speed_of(bound: Bound) -> units::Speed {
    match bound {
        Bound::Khz(Khz(khz)) => units::Speed::Khz(khz.into()),
        Bound::Share(0) => units::Speed::Min,
        Bound::Share(thousandths) => units::Speed::Percent(f64::from(thousandths) / 1e3),
    }
}

/// The C-states that the policy forbids, and those that are forbidden now and not by it.
fn idle_states(spec: &PolicySpec, target: &ApplyTarget, (settings, lifts): Made<'_>) -> Result<(), String> {
    let states = |spec: &PolicySpec| -> Result<Vec<String>, String> {
        match &spec.deepest {
            None => Ok(Vec::new()),
            Some(_) => Ok(deeper_states(spec, target)?.cloned().collect()),
        }
    };
    let wanted = states(spec)?;
    let old = target.in_force.as_ref().map(states).transpose()?.unwrap_or_default();
    let lifted: Vec<&String> = old.iter().filter(|name| !wanted.contains(name)).collect();
    if !lifted.is_empty() {
        let deepest = target.in_force.as_ref().and_then(|p| p.deepest.as_ref());
        lifts.extend(deepest.map(|deepest| format!("cmax={deepest}")));
    }
    settings.extend(lifted.into_iter().map(|name| Setting::CState(name.clone(), true)));
    settings.extend(wanted.into_iter().map(|name| Setting::CState(name, false)));
    Ok(())
}

/// The longest wake-up that the policy allows, or none where one is in force that it does not have.
fn wake_ups(spec: &PolicySpec, target: &ApplyTarget, (settings, lifts): Made<'_>) {
    let old = target.in_force.as_ref().and_then(|now| now.latency_ns);
    if let (None, Some(old)) = (spec.latency_ns, old) {
        lifts.push(format!("latency={}", crate::spec::latency_text(old)));
    }
    if spec.latency_ns.is_some() || old.is_some() {
        settings.push(Setting::Latency(spec.latency_ns));
    }
}

/// The C-states beyond the deepest that is allowed.
fn deeper_states<'a>(
    spec: &PolicySpec,
    target: &'a ApplyTarget,
) -> Result<impl Iterator<Item = &'a String> + use<'a>, String> {
    let found = match &spec.deepest {
        Some(Deepest::Name(name)) => target.idle_states.iter().position(|s| s.eq_ignore_ascii_case(name)),
        Some(Deepest::Index(index)) => Some(*index).filter(|i| *i < target.idle_states.len()),
        None => Some(target.idle_states.len()),
    };
    let deepest = found.ok_or("the machine's C-states are not known, or there is none of that name")?;
    Ok(target.idle_states.iter().skip(deepest + 1))
}

/// What neither BSD can do.
fn nothing_of_linux(spec: &PolicySpec, system: &str) -> Result<(), String> {
    if spec.limits.power_uw.is_some() {
        return Err(format!("power is not limited this way on {system}"));
    }
    if spec.dram.is_some() {
        return Err(format!("the memory's clock is not set this way on {system}"));
    }
    if spec.latency_ns.is_some() {
        return Err(format!("wake-ups are not limited this way on {system}"));
    }
    match (&spec.idle, &spec.deepest, spec.limits.no_boost) {
        (Some(_), ..) => Err(format!("{system} has one idle policy of its own")),
        (_, Some(_), _) => Err(format!("the deepest C-state is not set this way on {system}")),
        (.., true) => Err(format!("boost is not set this way on {system}")),
        _ => Ok(()),
    }
}

fn freebsd(spec: &PolicySpec, target: &ApplyTarget) -> Result<Commands, String> {
    nothing_of_linux(spec, "FreeBSD")?;
    let (daemon, mode) = match spec.speed.name {
        "performance" => ("powerd", "maximum"),
        "powersave" => ("powerd", "minimum"),
        "userspace" => {
            let khz = spec.speed_settings.count("khz");
            return match khz {
                0 => Err("userspace without khz is performance".into()),
                _ => Ok(Commands::one(["sysctl".into(), format!("dev.cpu.0.freq={}", khz / 1000)])),
            };
        }
        name => match spec.speed_settings.count("mode") {
            0 => (name, "auto"),
            1 => (name, "hiadaptive"),
            _ => (name, "adaptive"),
        },
    };
    let modes = if mode == "auto" { ["hiadaptive", "adaptive", "hiadaptive"] } else { [mode; 3] };
    let mut words: Vec<String> = vec![daemon.into()];
    words.extend(["-a", "-b", "-n"].into_iter().zip(modes).flat_map(|(f, mode)| [f.into(), mode.into()]));
    let mut push = |flag: &str, value: String| words.extend([flag.into(), value]);
    for (param, value) in changed(spec) {
        match (daemon, param) {
            (_, "mode") => {}
            (_, "poll") => push("-p", value.to_string()),
            ("powerd", "running") => push("-r", value.to_string()),
            ("powerd", "idle") => push("-i", value.to_string()),
            _ => return Err(only_the_models(spec, param)),
        }
    }
    for (flag, bound) in [("-m", spec.limits.min), ("-M", spec.limits.max)] {
        let khz = match (bound, &target.range) {
            (None, _) => continue,
            (Some(Bound::Khz(Khz(khz))), _) => khz,
            (Some(share), Some(range)) => share.in_domain(range).0,
            (Some(_), None) => {
                return Err("a share of the highest speed, which is not known: give MHz".into());
            }
        };
        push(flag, (khz / 1000).to_string());
    }
    Ok(Commands::System(vec![words]))
}

fn openbsd(spec: &PolicySpec) -> Result<Commands, String> {
    nothing_of_linux(spec, "OpenBSD")?;
    if !spec.limits.is_none() {
        return Err("OpenBSD's policies take no limits".into());
    }
    match spec.speed.name {
        "performance" => Ok(Commands::one(["apm", "-H"])),
        "powersave" => Ok(Commands::one(["apm", "-L"])),
        "openbsd-auto" => {
            if let Some((param, _)) = changed(spec).into_iter().find(|(p, _)| *p == "cost") {
                return Err(only_the_models(spec, param));
            }
            Ok(match spec.speed_settings.count("mains") {
                0 => Commands::one(["apm", "-A"]),
                _ => Commands::one(["sysctl", "hw.perfpolicy=auto,auto"]),
            })
        }
        name => match changed(spec).is_empty() {
            true => Ok(Commands::System(
                ["enable", "start"].map(|verb| vec!["rcctl".into(), verb.into(), name.into()]).into(),
            )),
            false => Err(format!("{name}'s own manual says which flags its parameters are")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    fn on(machine: &str, system: System, policy: &str) -> Result<String, String> {
        let machine = library::machine(machine).expect("bundled");
        apply_line(&PolicySpec::parse(policy).expect("a policy"), &ApplyTarget::of(&machine, system))
    }
    fn ok(line: &str) -> Result<String, String> {
        Ok(line.into())
    }

    #[test]
    fn a_driver_that_chooses_by_itself_is_told_a_preference() {
        let laptop = |policy: &str| on("alderlake-p-laptop", System::Linux, policy);
        assert_eq!(laptop("hwp:epp=102"), ok("wattwise set --governor powersave --epp 102"));
        assert_eq!(
            laptop("hwp:epp=power+max=60%"),
            ok("wattwise set --governor powersave --epp power --max 60%")
        );
        assert_eq!(laptop("performance+noboost"), ok("wattwise set --governor performance --boost off"));
        // The kernel's governor of that name is the driver's own rule there; the lowest speed is a limit.
        assert_eq!(laptop("powersave"), laptop("hwp:epp=102"));
        assert_eq!(
            laptop("hwp+max=min"),
            ok("wattwise set --governor powersave --epp balance_performance --max min")
        );
        let passive = "wattwise set --driver-mode passive --governor schedutil";
        assert_eq!(laptop("schedutil"), ok(passive));
        assert_eq!(
            laptop("schedutil:rate_limit=2ms+teo+min=1.2GHz+cmax=C6"),
            Ok(format!(
                "{passive} --tunable rate_limit_us=2000 --min 1200000 --idle-governor teo --cstate C8=off --cstate C10=off"
            ))
        );
    }

    #[test]
    fn a_driver_with_governors_has_them() {
        let old = |policy: &str| on("i7-4510u", System::Linux, policy);
        assert_eq!(
            old("ondemand:up=90,io_is_busy=yes"),
            ok("wattwise set --governor ondemand --tunable up_threshold=90 --tunable io_is_busy=1")
        );
        assert_eq!(old("powersave"), ok("wattwise set --governor powersave"));
        assert_eq!(old("userspace:khz=1.5GHz"), ok("wattwise set --freq 1500000"));
        assert_eq!(old("intel_pstate"), ok("wattwise set --driver-mode active --governor powersave"));
        assert!(old("hwp").is_err_and(|e| e.contains("intel_cpufreq has no mode that is hwp")));
    }

    #[test]
    fn what_cannot_be_applied_says_why() {
        for (machine, system, policy, told) in [
            ("alderlake-p-laptop", System::Linux, "powerd", "powerd is FreeBSD's, and this is Linux"),
            ("alderlake-p-laptop", System::Linux, "race-to-idle", "no system offers race-to-idle"),
            ("alderlake-p-laptop", System::Linux, "amd-pstate-epp", "has no mode that is amd-pstate-epp"),
            ("alderlake-p-laptop", System::Linux, "hwp:reaction=3", "describes the model"),
            ("alderlake-p-laptop", System::Linux, "schedutil:cost=3", "describes the model"),
            ("alderlake-p-laptop", System::Linux, "userspace:khz=1GHz", "cannot hold one speed"),
            ("alderlake-p-laptop", System::Linux, "schedutil+pack", "scheduler places tasks"),
            ("alderlake-p-laptop", System::Linux, "schedutil+consolidate", "a process that stays"),
            ("alderlake-p-laptop", System::Linux, "schedutil+fixed:depth=0", "+cmax"),
            ("xeon-4210", System::Linux, "performance+noboost", "no boost to switch off"),
            ("recording-vm", System::Linux, "performance", "no say in this machine's speed"),
            ("thinkpad-r51", System::FreeBsd, "powerd+noboost", "FreeBSD"),
            ("openbsd-laptop", System::OpenBsd, "obsdfreqd+max=60%", "no limits"),
        ] {
            let answer = on(machine, system, policy);
            assert!(answer.as_ref().is_err_and(|e| e.contains(told)), "{policy}: {answer:?}");
        }
    }

    #[test]
    fn the_other_systems_have_their_own_commands() {
        let freebsd = |policy: &str| on("thinkpad-r51", System::FreeBsd, policy);
        assert_eq!(freebsd("powerd"), ok("powerd -a hiadaptive -b adaptive -n hiadaptive"));
        assert_eq!(
            freebsd("powerd:mode=adaptive,poll=100"),
            ok("powerd -a adaptive -b adaptive -n adaptive -p 100")
        );
        assert_eq!(
            freebsd("powerd++:mode=hiadaptive"),
            ok("powerd++ -a hiadaptive -b hiadaptive -n hiadaptive")
        );
        // 17 steps x 60 % = 10.2, rounded up.
        assert_eq!(freebsd("performance+max=60%"), ok("powerd -a maximum -b maximum -n maximum -M 1100"));
        let openbsd = |policy: &str| on("openbsd-laptop", System::OpenBsd, policy);
        assert_eq!(openbsd("openbsd-auto:version=2021"), ok("apm -A"));
        assert_eq!(openbsd("openbsd-auto:mains=auto"), ok("sysctl hw.perfpolicy=auto,auto"));
        assert_eq!(openbsd("powersave"), ok("apm -L"));
    }

    /// Each line that is made is known as ours, and no other command is.
    #[test]
    fn a_strangers_command_is_not_taken_for_ours() {
        let machines = ["alderlake-p-laptop", "i7-4510u", "xeon-4210", "thinkpad-r51", "openbsd-laptop"];
        let mut made = 0;
        for machine in machines {
            let model = library::machine(machine).expect("bundled");
            for system in [System::Linux, System::FreeBsd, System::OpenBsd] {
                let usual = crate::defaults::default_policies(&model, Some(system));
                let target = ApplyTarget::of(&model, system);
                for line in usual.iter().filter_map(|policy| apply_line(policy, &target).ok()) {
                    assert!(is_ours(&line), "{line}");
                    made += 1;
                }
            }
        }
        assert!(made > 30, "{made}");
        assert!(is_ours("wattwise set --driver-mode passive && wattwise set --governor schedutil"));
        for line in [
            "",
            "rm -rf ~",
            "wattwise set",
            "wattwise set --governor powersave; rm -rf ~",
            "wattwise set --governor powersave && rm -rf x",
            "wattwise set --governor powersave --for rm -rf x",
            "wattwise set --governor $(id)",
            "wattwise set --governor 'a b'",
            "wattwise set --root x",
            "wattwise run -- id",
            "sysctl kernel.core_pattern=x",
            "powerd -P /etc/passwd",
            "rcctl enable telnetd",
            "wattwise set --governor powersave\nid",
        ] {
            assert!(!is_ours(line), "{line}");
        }
    }

    #[test]
    fn what_a_driver_does_by_itself_is_no_governor() {
        assert!(["schedutil", "ondemand", "userspace"].into_iter().all(is_governor));
        assert!(!["hwp", "intel_pstate", "amd-pstate-epp", "powerd", "nothing"].into_iter().any(is_governor));
    }

    /// What a run holds is what is printed.
    #[test]
    fn a_policy_is_settings() {
        let flags = |policy: &str, system| {
            let machine = library::machine("alderlake-p-laptop").expect("bundled");
            let made =
                commands(&PolicySpec::parse(policy).expect("a policy"), &ApplyTarget::of(&machine, system));
            made.expect("it can be applied").settings().map(<[Setting]>::to_vec)
        };
        let settings = [Setting::DriverMode("passive".into()), Setting::Governor("schedutil".into())];
        assert_eq!(flags("schedutil", System::Linux), Some(settings.to_vec()));
        assert_eq!(flags("performance", System::OpenBsd), None, "apm -H");
    }

    /// `touch` is not run, however a C-state is called that did not come from a file of ours.
    #[test]
    fn a_state_of_any_name_is_one_argument() {
        let mut target = ApplyTarget::from(System::Linux);
        target.idle_states = ["C1", "C6=off; touch x #"].map(String::from).to_vec();
        let line = apply_line(&PolicySpec::parse("schedutil+cmax=C1").expect("a policy"), &target);
        assert_eq!(line, ok("wattwise set --governor schedutil --cstate 'C6=off; touch x #=off'"));
    }

    #[test]
    fn a_machine_that_is_not_known_has_what_its_system_has() {
        let line =
            |policy: &str| apply_line(&PolicySpec::parse(policy).expect("a policy"), &System::Linux.into());
        assert_eq!(line("schedutil+max=60%"), ok("wattwise set --governor schedutil --max 60%"));
        assert!(line("schedutil+cmax=C1").is_err_and(|e| e.contains("not known")));
    }

    /// A machine under limits: what a policy does not have of them is lifted, and said.
    #[test]
    fn limits_in_force_are_lifted_by_a_policy_without_them() {
        let mut machine = library::machine("alderlake-p-laptop").expect("bundled");
        machine.default_policy = "hwp:epp=102+max=30%+min=10%+noboost+cmax=C6".into();
        let target = ApplyTarget::of(&machine, System::Linux);
        let made = |policy: &str| {
            commands(&PolicySpec::parse(policy).expect("a policy"), &target).expect("it can be applied")
        };
        let bare = made("hwp:epp=power");
        assert_eq!(
            bare.to_string(),
            "wattwise set --governor powersave --epp power --boost on --max max --min min --cstate C8=on --cstate C10=on"
        );
        assert_eq!(bare.lifts(), ["noboost", "max=30%", "min=10%", "cmax=C6"]);
        let same = made("current");
        assert_eq!(same.lifts(), [] as [&str; 0]);
        assert_eq!(same, made("hwp:epp=102+max=30%+min=10%+noboost+cmax=C6"));
        assert_eq!(made("current+max=60%"), made("hwp:epp=102+max=60%+min=10%+noboost+cmax=C6"));
        // The kernel's governor of that name is the rule in force, without its limits.
        assert_eq!(made("powersave"), made("hwp:epp=102"));
        // Another mode registers the driver anew, without limits; C-states are another driver's.
        let other = made("schedutil");
        assert_eq!(
            other.to_string(),
            "wattwise set --driver-mode passive --governor schedutil --cstate C8=on --cstate C10=on"
        );
    }

    #[test]
    fn a_lowered_limit_of_power_is_lifted_with_the_policy_that_had_it() {
        let mut machine = library::machine("alderlake-p-laptop").expect("bundled");
        machine.default_policy = "hwp:epp=102+power=15W".into();
        let own_w = machine.packages[0].limit.expect("it has one").long_w;
        let target = ApplyTarget::of(&machine, System::Linux);
        let made = |policy: &str| {
            commands(&PolicySpec::parse(policy).expect("a policy"), &target).expect("it can be applied")
        };
        let lifting = made("hwp:epp=102+max=60%");
        assert_eq!(lifting.lifts(), ["power=15W"]);
        assert!(lifting.to_string().ends_with(&format!("--max 60% --rapl {own_w}W")), "{lifting}");
        // Another mode of the driver does not lift it by itself.
        let passive = made("schedutil");
        assert_eq!(passive.lifts(), ["power=15W"]);
        assert!(passive.to_string().contains(&format!("--rapl {own_w}W")), "{passive}");
        assert_eq!(made("current").lifts(), [] as [&str; 0]);
    }

    /// A governor that stays in force keeps its tunables, and nobody but a user lifts a limit of wake-ups.
    #[test]
    fn wake_ups_and_tunables_are_lifted_by_a_policy_without_them() {
        let mut machine = library::machine("core-i5-2gen").expect("bundled");
        machine.default_policy = "ondemand:up=40,rate=150000+latency=20us".into();
        let target = ApplyTarget::of(&machine, System::Linux);
        let parse = |policy: &str| PolicySpec::parse(policy).expect("a policy");
        let made = |policy: &str| commands(&parse(policy), &target).expect("it can be applied");
        let bare = made("ondemand");
        // Two ticks of 1000 Hz, as its kernel has it.
        assert_eq!(
            bare.to_string(),
            "wattwise set --governor ondemand --tunable up_threshold=95 --tunable sampling_rate=2000 --latency none"
        );
        assert_eq!(bare.lifts(), ["up=40", "rate=150000", "latency=20us"]);
        assert!(is_ours(&bare.to_string()));
        assert_eq!(keeping(&parse("ondemand"), bare.lifts()), machine.default_policy);
        assert_eq!(
            keeping(&parse("ondemand:up=60+max=60%"), &["rate=150000".into(), "latency=20us".into()]),
            "ondemand:up=60,rate=150000+max=60%+latency=20us"
        );
        assert_eq!(made("current"), made(&machine.default_policy));
        assert_eq!(made("current").lifts(), [] as [&str; 0]);
        // Another governor begins with its own.
        let other = made("schedutil+latency=1ms");
        assert_eq!(other.to_string(), "wattwise set --governor schedutil --latency 1000us");
        assert_eq!(other.lifts(), [] as [&str; 0]);
        assert!(on("openbsd-laptop", System::OpenBsd, "openbsd-auto+latency=5us").is_err());
    }

    #[test]
    fn what_cannot_be_applied_names_the_nearest() {
        let near = |machine: &str, policy: &str| {
            let why = on(machine, System::Linux, policy).expect_err(policy);
            why.rsplit_once("nearest here: ").map(|(_, near)| near.to_owned())
        };
        for (machine, policy, nearest) in [
            ("alderlake-p-laptop", "amd-pstate-epp:epp=power+max=60%", "hwp:epp=power+max=60%"),
            ("alderlake-p-laptop", "userspace:khz=1GHz", "performance+max=1000MHz"),
            ("alderlake-p-laptop", "race-to-idle+noboost", "performance+noboost"),
            ("alderlake-p-laptop", "burst", "schedutil"),
            ("alderlake-p-laptop", "schedutil+pack", "schedutil"),
            ("xeon-4210", "performance+noboost", "performance"),
        ] {
            assert_eq!(near(machine, policy).as_deref(), Some(nearest), "{policy}");
        }
        assert_eq!(near("recording-vm", "schedutil"), None, "it has no speed to choose");
    }

    /// A policy that the table gives to Linux is a governor of stock kernels, a driver's own rule, or comes with a module; what is
    /// none of these has no settings, whatever the table says, and what no system offers has none either.
    #[test]
    fn nothing_is_offered_as_a_governor_that_no_kernel_has() {
        let drivers_own = |name: &str| DRIVERS.iter().any(|d| d.active == Some(name));
        for policy in speed::ALL {
            let (name, is_linuxs) = (policy.name, policy.systems().contains(&System::Linux));
            let is_had =
                STOCK.contains(&name) || drivers_own(name) || MODULES.iter().any(|(own, _)| *own == name);
            assert_eq!(is_linuxs, is_had, "{name}: its systems in speed/mod.rs, or its module in MODULES");
            for machine in ["alderlake-p-laptop", "i7-4510u", "core-i5-2gen"] {
                let line = on(machine, System::Linux, name);
                let governor = line
                    .as_ref()
                    .ok()
                    .and_then(|l| l.split("--governor ").nth(1)?.split(' ').next().map(str::to_owned));
                assert!(governor.as_deref().is_none_or(|g| STOCK.contains(&g)), "{machine}: {line:?}");
            }
        }
        let target = ApplyTarget::from(System::Linux);
        assert!(
            lacks("mine", false, &target) && lacks("mine", true, &target) && lacks("burst", false, &target)
        );
        assert_eq!(
            no_governor("mine", &[]),
            "'mine' is no governor of stock kernels; there is no module of it"
        );
    }

    /// A kernel's list of governors counts, and a governor of a module of ours is never taken for granted.
    #[test]
    fn a_kernel_has_the_governors_that_it_lists() {
        let machine = library::machine("core-i5-2gen").expect("bundled");
        let mut target = ApplyTarget::of(&machine, System::Linux);
        let line = |target: &ApplyTarget, policy: &str| {
            apply_line(&PolicySpec::parse(policy).expect("a policy"), target)
        };
        assert!(line(&target, "burst").is_err_and(|e| e.contains("wattwise's module cpufreq_burst")));
        target.governors = ["ondemand", "burst"].map(String::from).to_vec();
        assert_eq!(line(&target, "burst"), ok("wattwise set --governor burst"));
        let why = line(&target, "conservative").expect_err("it is not listed");
        assert!(
            why.contains("'modprobe cpufreq_conservative' may bring it; nearest here: ondemand"),
            "{why}"
        );
    }
}
