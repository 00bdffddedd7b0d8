//! How a policy is put in force on a real machine: the command that does it, or why none can.
//!
//! On Linux that is `wattwise set`, whose changes can be undone; on FreeBSD and OpenBSD the system's own commands.
//! Whether Linux takes a governor at all depends on the driver: one that chooses by itself (intel_pstate and amd-pstate in
//! active mode) has no governors but `powersave` and `performance`, which there are its own policies, and must be
//! switched to passive mode in the same `set`.

use crate::spec::{Deepest, PolicySpec, power_text};
use std::fmt;
use wattwise_figure::shell;
use wattwise_model::machine::MachineModel;
use wattwise_policy::limits::Bound;
use wattwise_policy::speed::tunables::kernel_name;
use wattwise_policy::{DomainInfo, Khz, Settings, System, speed};
use wattwise_sim::platform;

/// A driver of the speed.
#[derive(Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its name in machine files; in active mode with what makes it choose by itself.
    pub name: &'static str,
    /// The speed policy that it follows by itself; none where governors ask it for speeds.
    pub own: Option<&'static str>,
    /// The speed policy that it has in active mode, where `--driver-mode` changes that.
    pub active: Option<&'static str>,
}

const fn active(name: &'static str, own: &'static str) -> Driver {
    Driver { name, own: Some(own), active: Some(own) }
}
const fn governed(name: &'static str) -> Driver {
    Driver { name, own: None, active: None }
}

/// The drivers that machine files may name.
pub static DRIVERS: &[Driver] = &[
    active("intel_pstate-hwp", "hwp"),
    active("intel_pstate", "intel_pstate"),
    Driver { name: "intel_cpufreq-hwp", own: None, active: Some("hwp") },
    Driver { name: "intel_cpufreq", own: None, active: Some("intel_pstate") },
    active("amd-pstate-epp", "amd-pstate-epp"),
    Driver { name: "amd-pstate", own: None, active: Some("amd-pstate-epp") },
    governed("acpi-cpufreq"),
    governed("cpufreq-dt"),
    governed("scmi-cpufreq"),
    governed("speedstep-centrino"),
    governed("est"),
    governed(NO_DRIVER),
];

/// The word of a machine whose system has no say in the speed.
pub const NO_DRIVER: &str = "none";

impl Driver {
    /// The driver of that name.
    pub fn find(name: &str) -> Option<&'static Driver> {
        DRIVERS.iter().find(|d| d.name == name)
    }
}

/// Whether a name is a governor of cpufreq's: a driver that chooses by itself takes it in passive mode alone.
pub fn is_governor(name: &str) -> bool {
    let on_linux = speed::find(name).is_some_and(|s| s.systems().contains(&System::Linux));
    on_linux && !DRIVERS.iter().any(|d| d.own == Some(name))
}

/// Where a policy is to be applied.
#[derive(Clone, Debug)]
pub struct Target {
    /// The system.
    pub system: System,
    /// Its driver, where known.
    pub driver: Option<&'static Driver>,
    /// Names of the C-states, shallowest first, where known.
    pub idle_states: Vec<String>,
    /// The fastest clock's range, where known.
    pub range: Option<DomainInfo>,
}

impl From<System> for Target {
    /// A machine of which only the system is known.
    fn from(system: System) -> Target {
        Target { system, driver: None, idle_states: Vec::new(), range: None }
    }
}

impl Target {
    /// A model's machine, under its usual system or another.
    pub fn of(machine: &MachineModel, system: System) -> Target {
        let own = System::find(&machine.system) == Some(system);
        let fastest = platform(machine).domains.into_iter().max_by_key(DomainInfo::fastest);
        Target {
            system,
            driver: if own { Driver::find(&machine.driver) } else { None },
            idle_states: machine.kinds[0].idle.iter().map(|s| s.name.clone()).collect(),
            range: fastest,
        }
    }
}

/// Commands to be given one after the other, each as its words. Shown, it is a line for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands(Vec<Vec<String>>);

impl Commands {
    fn one(words: impl IntoIterator<Item = impl Into<String>>) -> Commands {
        Commands(vec![words.into_iter().map(Into::into).collect()])
    }

    /// The flags, where it is `wattwise set`.
    pub fn flags_of_set(&self) -> Option<&[String]> {
        match &self.0[..] {
            [words] => words.strip_prefix(&SET.map(String::from)),
            _ => None,
        }
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(shell::line).collect::<Vec<_>>().join(" && "))
    }
}

const SET: [&str; 2] = ["wattwise", "set"];
/// The flags of `wattwise set` that put a policy in force; each has a value.
const FLAGS: [&str; 11] = [
    "--governor",
    "--epp",
    "--boost",
    "--max",
    "--min",
    "--freq",
    "--idle-governor",
    "--cstate",
    "--tunable",
    "--driver-mode",
    "--rapl",
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
pub fn on(machine: &MachineModel) -> impl Fn(&PolicySpec) -> Result<String, String> + Sync {
    let target = System::find(&machine.system).map(|system| Target::of(machine, system));
    let name = machine.name.clone();
    move |policy| match &target {
        Some(target) => apply_line(policy, target),
        None => Err(format!("{name} has no system that wattwise knows")),
    }
}

/// The line for a shell that puts a policy in force.
///
/// # Errors
/// One line that says why there is none.
pub fn apply_line(spec: &PolicySpec, target: &Target) -> Result<String, String> {
    commands(spec, target).map(|commands| commands.to_string())
}

/// The commands that put a policy in force.
///
/// # Errors
/// One line that says why there are none.
pub fn commands(spec: &PolicySpec, target: &Target) -> Result<Commands, String> {
    let name = spec.speed.name;
    if !spec.speed.systems().contains(&target.system) {
        let on: Vec<&str> = spec.speed.systems().iter().map(|s| s.title()).collect();
        return Err(match on.is_empty() {
            true => format!("no system offers {name}"),
            false => format!("{name} is {}'s, and this is {}", on.join("'s and "), target.system.title()),
        });
    }
    if let Some(p) = spec.placement {
        return Err(format!("placement {} is a model's: the system's own scheduler places tasks", p.name));
    }
    if let Some(c) = &spec.cores {
        return Err(format!(
            "{} needs a process that stays: 'wattwise coreidle' or 'wattwise ab' runs it",
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

fn linux(spec: &PolicySpec, target: &Target) -> Result<Commands, String> {
    if target.driver.is_some_and(|d| d.name == NO_DRIVER) {
        return Err("the system has no say in this machine's speed".into());
    }
    let (mode, mut flags) = speed_flags(spec, target)?;
    limit_flags(spec, target, &mut flags)?;
    if let Some(idle) = &spec.idle {
        if idle.idle.name == "fixed" {
            return Err("a fixed C-state is a model's: the deepest allowed can be set (+cmax=C1)".into());
        }
        if idle.settings != Settings::defaults(idle.idle.params) {
            return Err(format!("the kernel's {} takes no parameters", idle.idle.name));
        }
        flags.push(("--idle-governor", idle.idle.name.into()));
    }
    if spec.deepest.is_some() {
        flags.extend(deeper_states(spec, target)?.map(|name| ("--cstate", format!("{name}=off"))));
    }
    let mode = mode.map(|mode| ("--driver-mode", mode.to_owned()));
    let words = mode.into_iter().chain(flags).flat_map(|(flag, value)| [flag.to_owned(), value]);
    Ok(Commands::one(SET.map(String::from).into_iter().chain(words)))
}

/// A flag of `wattwise set`, and its value.
type Flag = (&'static str, String);

/// The driver's mode where another is needed, and the flags for the speed policy.
fn speed_flags(spec: &PolicySpec, target: &Target) -> Result<(Option<&'static str>, Vec<Flag>), String> {
    let name = spec.speed.name;
    let own = target.driver.and_then(|d| d.own);
    let governor = |name: &str| vec![("--governor", name.to_owned())];
    match name {
        "hwp" | "amd-pstate-epp" | "intel_pstate" => {
            let mode = match target.driver {
                Some(d) if d.active != Some(name) => {
                    return Err(format!("{} has no mode that is {name}", d.name));
                }
                Some(d) if d.own.is_none() => Some("active"),
                _ => None,
            };
            Ok((mode, own_flags(spec)?))
        }
        "performance" => Ok((None, governor(name))),
        // There the word means the driver's own rule.
        "powersave" if own.is_some() => match (spec.limits.min, spec.limits.max) {
            (None, None) => Ok((None, vec![("--governor", name.into()), ("--max", "min".into())])),
            _ => Err("powersave within limits is one speed: give it as --min and --max".into()),
        },
        "powersave" => Ok((None, governor(name))),
        "userspace" => {
            let khz = spec.speed_settings.count("khz");
            let speed = if khz == 0 { "max".into() } else { khz.to_string() };
            match own {
                Some(own) => {
                    Err(format!("{own} cannot hold one speed; cap it instead: performance+max={speed}"))
                }
                None => Ok((None, vec![("--freq", speed)])),
            }
        }
        _ => {
            let mut flags = governor(name);
            for (param, value) in changed(spec) {
                let tunable = kernel_name(name, param).ok_or_else(|| only_the_models(spec, param))?;
                flags.push(("--tunable", format!("{tunable}={value}")));
            }
            Ok((own.map(|_| "passive"), flags))
        }
    }
}

/// The flags for a policy that is the driver's own.
fn own_flags(spec: &PolicySpec) -> Result<Vec<Flag>, String> {
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
    let epp = epp.map(|epp| ("--epp", epp));
    Ok([("--governor", governor.to_owned())].into_iter().chain(epp).collect())
}

fn limit_flags(spec: &PolicySpec, target: &Target, flags: &mut Vec<Flag>) -> Result<(), String> {
    let limits = &spec.limits;
    if limits.no_boost {
        if target.range.as_ref().is_some_and(|d| d.base >= d.fastest()) {
            return Err("this machine has no boost to switch off".into());
        }
        flags.push(("--boost", "off".into()));
    }
    let text = |b: Bound| match b {
        Bound::Khz(Khz(khz)) => khz.to_string(),
        Bound::Share(thousandths) => format!("{}%", f64::from(thousandths) / 1e3),
    };
    flags.extend(limits.max.map(|b| ("--max", text(b))));
    flags.extend(limits.min.map(|b| ("--min", text(b))));
    if let Some(uw) = limits.power_uw {
        if target.driver.is_some_and(|d| d.name.starts_with("amd")) {
            return Err("AMD's power limits are the firmware's: powercap cannot set them".into());
        }
        flags.push(("--rapl", power_text(uw)));
    }
    Ok(())
}

/// The C-states beyond the deepest that is allowed.
fn deeper_states<'a>(
    spec: &PolicySpec,
    target: &'a Target,
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
    match (&spec.idle, &spec.deepest, spec.limits.no_boost) {
        (Some(_), ..) => Err(format!("{system} has one idle policy of its own")),
        (_, Some(_), _) => Err(format!("the deepest C-state is not set this way on {system}")),
        (.., true) => Err(format!("boost is not set this way on {system}")),
        _ => Ok(()),
    }
}

fn freebsd(spec: &PolicySpec, target: &Target) -> Result<Commands, String> {
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
    Ok(Commands(vec![words]))
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
            true => Ok(Commands(
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
        apply_line(&PolicySpec::parse(policy).expect("a policy"), &Target::of(&machine, system))
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
        assert_eq!(laptop("powersave"), ok("wattwise set --governor powersave --max min"));
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
            ("alderlake-p-laptop", System::Linux, "powersave+min=1GHz", "is one speed"),
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
                let target = Target::of(&model, system);
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
    fn the_flags_of_a_set_are_its_words() {
        let flags = |policy: &str, system| {
            let machine = library::machine("alderlake-p-laptop").expect("bundled");
            let made = commands(&PolicySpec::parse(policy).expect("a policy"), &Target::of(&machine, system));
            made.expect("it can be applied").flags_of_set().map(<[String]>::to_vec)
        };
        let words = ["--driver-mode", "passive", "--governor", "schedutil"].map(String::from);
        assert_eq!(flags("schedutil", System::Linux), Some(words.to_vec()));
        assert_eq!(flags("performance", System::OpenBsd), None, "apm -H");
    }

    /// `touch` is not run, however a C-state is called that did not come from a file of ours.
    #[test]
    fn a_state_of_any_name_is_one_argument() {
        let mut target = Target::from(System::Linux);
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
}
