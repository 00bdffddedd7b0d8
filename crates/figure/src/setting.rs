//! What may be asked of a machine's power states, as values: what `wattwise set` takes as flags, what a policy means on a
//! machine, what a journal is planned from.
//!
//! The two wings meet here. The model wing says which settings a policy is; the machine wing makes them. Text is made by
//! [`Setting::flags`] alone, and read by [`read`] alone: by the command line and by the daemon's profiles.
//!
//! A new setting that is one attribute of the machine is a line of [`KNOWN`] (`plain.rs`): the command line, profiles, the plan
//! and the way back take it from there. One that means other writes on each machine is a [`Setting`] of its own as well, with
//! its writes in `control::set::plan`.

use crate::share::share;
use crate::units::{Speed, duration_ns, power_uw, speed, trim};
use std::borrow::Cow;

/// A wish in the one vocabulary of all machines.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// CPUs on or off.
    Online(bool),
    /// `active`, `passive`, `guided`, `off` of intel_pstate or amd-pstate.
    DriverMode(String),
    /// The governor of the speed.
    Governor(String),
    /// The range within which it may choose; none leaves that end as it is.
    Limits(Option<Speed>, Option<Speed>),
    /// One speed, held.
    Freq(Speed),
    /// Energy-performance preference: a word, or 0 (performance) to 255 (power).
    Epp(String),
    /// Energy-performance bias: a word, or 0 to 15.
    Epb(String),
    /// Boost, of the machine or of each policy.
    Boost(bool),
    /// A C-state by name or index, usable or not.
    CState(String, bool),
    /// The longest wake-up allowed, ns; none lifts the limit.
    Latency(Option<u64>),
    /// Clock modulation, percent of the clock that is let through; 100 is none.
    TState(f64),
    /// A power limit: zone (`package`, `package-0`, `dram`; none is each package) and constraint
    /// (`long_term`), uW.
    PowerLimit {
        /// Which zone.
        zone: Option<String>,
        /// Which of its limits; none is the first, the long-term one.
        constraint: Option<String>,
        /// The limit, uW.
        power_uw: u64,
    },
    /// The range of the uncore's speed.
    Uncore(Option<Speed>, Option<Speed>),
    /// Who sets the memory's clock: a governor of devfreq, and its thresholds in percent, where they are to be others.
    Dram {
        /// The governor.
        governor: String,
        /// Load above which the highest clock is taken.
        up: Option<u32>,
        /// How far below that the load must be before the clock falls.
        down: Option<u32>,
    },
    /// A governor's tunable: `up_threshold=90`.
    Tunable(String, String),
    /// One attribute of the machine, and what it is to hold.
    Plain(&'static Plain, String),
}

/// A setting that is one attribute of the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Plain {
    /// Its flag, without the dashes.
    pub name: &'static str,
    /// What it is called beside its old and its new value.
    pub what: &'static str,
    /// The attribute.
    pub path: &'static str,
    /// The attribute that lists what it takes; none leaves that to the kernel's rules.
    pub choices: Option<&'static str>,
    /// Who lists it.
    pub whose: &'static str,
    /// What is said where this machine has no such list, or no such attribute.
    pub missing: &'static str,
}

/// The governor that picks C-states.
pub static IDLE_GOVERNOR: Plain = Plain {
    name: "idle-governor",
    what: "idle governor",
    path: "sys/devices/system/cpu/cpuidle/current_governor",
    choices: Some("sys/devices/system/cpu/cpuidle/available_governors"),
    whose: "this kernel",
    missing: "the idle governor cannot be chosen here: the kernel lists none",
};

/// The firmware's profile.
pub static PROFILE: Plain = Plain {
    name: "profile",
    what: "platform profile",
    path: "sys/firmware/acpi/platform_profile",
    choices: Some("sys/firmware/acpi/platform_profile_choices"),
    whose: "the firmware",
    missing: "--profile: the firmware offers no platform_profile",
};

/// A flag of `wattwise set`, with its dashes, and its value.
pub type FlagGiven = (Cow<'static, str>, String);

impl Setting {
    /// The flags of `wattwise set` that say this; every value is one word, not yet quoted.
    pub fn flags(&self) -> Vec<FlagGiven> {
        let switch = |on: &bool| if *on { "on" } else { "off" };
        let one = |flag: &'static str, value: &dyn std::fmt::Display| vec![(flag.into(), value.to_string())];
        let range = |flags: [&'static str; 2], low: &Option<Speed>, high: &Option<Speed>| {
            let ends = [(flags[1], high), (flags[0], low)];
            ends.into_iter()
                .filter_map(|(flag, end)| Some((flag.into(), end.as_ref()?.to_string())))
                .collect()
        };
        match self {
            Setting::Online(on) => one("--online", &switch(on)),
            Setting::DriverMode(mode) => one("--driver-mode", mode),
            Setting::Governor(name) => one("--governor", name),
            Setting::Limits(low, high) => range(["--min", "--max"], low, high),
            Setting::Freq(speed) => one("--freq", speed),
            Setting::Epp(value) => one("--epp", value),
            Setting::Epb(value) => one("--epb", value),
            Setting::Boost(on) => one("--boost", &switch(on)),
            Setting::CState(name, on) => one("--cstate", &format!("{name}={}", switch(on))),
            Setting::Latency(None) => one("--latency", &"none"),
            Setting::Latency(Some(ns)) => one("--latency", &format!("{}us", trim(*ns as f64 / 1e3, 3))),
            Setting::TState(percent) => one("--tstate", &format!("{percent}%")),
            Setting::PowerLimit { zone, constraint, power_uw } => {
                let watts = format!("{}W", trim(*power_uw as f64 / 1e6, 6));
                let place = match (zone, constraint) {
                    (Some(zone), Some(limit)) => format!("{zone}/{limit}="),
                    (Some(zone), None) => format!("{zone}="),
                    (None, _) => String::new(),
                };
                one("--rapl", &(place + &watts))
            }
            Setting::Uncore(low, high) => range(["--uncore-min", "--uncore-max"], low, high),
            Setting::Dram { governor, up, down } => {
                let percent = |name: &str, percent: &Option<u32>| {
                    percent.map_or(String::new(), |percent| format!(":{name}={percent}"))
                };
                // Colons, since commas part the settings of a profile.
                one("--dram", &format!("{governor}{}{}", percent("up", up), percent("down", down)))
            }
            Setting::Tunable(name, value) => one("--tunable", &format!("{name}={value}")),
            Setting::Plain(plain, value) => vec![(format!("--{}", plain.name).into(), value.clone())],
        }
    }
}

/// The flags of several settings, as the words of a command.
pub fn words(settings: &[Setting]) -> Vec<String> {
    settings.iter().flat_map(Setting::flags).flat_map(|(flag, value)| [flag.into_owned(), value]).collect()
}

/// A flag of `wattwise set`: its words, and how its value is read.
pub struct Flag {
    /// Its name, without the dashes; profiles have it too.
    pub name: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// What its value is called.
    pub value: &'static str,
    /// A line of help.
    pub help: &'static str,
    /// Whether it may be given several times.
    pub many: bool,
    /// Whether it takes `on` and `off` alone.
    pub switch: bool,
    reads: Reads,
}

enum Reads {
    By(fn(&str, &str) -> Result<Setting, String>),
    Plain(&'static Plain),
}

const fn flag(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    reads: fn(&str, &str) -> Result<Setting, String>,
) -> Flag {
    Flag { name, short: None, value, help, many: false, switch: false, reads: Reads::By(reads) }
}

/// The flag of a setting that is one attribute of the machine.
const fn plain(of: &'static Plain, value: &'static str, help: &'static str) -> Flag {
    Flag { name: of.name, short: None, value, help, many: false, switch: false, reads: Reads::Plain(of) }
}

impl Flag {
    const fn short(self, letter: char) -> Flag {
        Flag { short: Some(letter), ..self }
    }

    const fn many(self) -> Flag {
        Flag { many: true, ..self }
    }

    const fn switch(self) -> Flag {
        Flag { switch: true, ..self }
    }
}

/// Every flag, in the order of the help.
pub static KNOWN: &[Flag] = &[
    flag("governor", "NAME", "Governor of the speed", |_, given| Ok(Setting::Governor(given.to_owned()))).short('g'),
    flag("min", "SPEED", "Lowest speed that it may choose", |name, given| Ok(Setting::Limits(Some(of(name, speed(given))?), None))),
    flag("max", "SPEED", "Highest speed that it may choose", |name, given| Ok(Setting::Limits(None, Some(of(name, speed(given))?)))),
    flag("freq", "SPEED", "Hold one speed (governor userspace)", |name, given| Ok(Setting::Freq(of(name, speed(given))?))).short('f'),
    flag("epp", "PREFERENCE", "Energy-performance preference: a word, or 0 (performance) to 255 (power)", |_, given| Ok(Setting::Epp(given.to_owned()))),
    flag("epb", "BIAS", "Energy-performance bias: a word, or 0 (performance) to 15 (power)", |_, given| Ok(Setting::Epb(given.to_owned()))),
    flag("boost", "on|off", "Boost (turbo) on or off", |name, given| Ok(Setting::Boost(switch(name, given)?))).switch(),
    flag("cstate", "STATE=on|off", "Allow or forbid a C-state, such as C6=off", cstate).many(),
    flag("latency", "DURATION", "Longest wake-up of an idle CPU, such as 20us; 0 keeps it polling; none lifts the limit", latency),
    plain(&IDLE_GOVERNOR, "NAME", "Governor of the C-states"),
    flag("tstate", "SHARE", "Clock modulation: the share of the clock that is let through, such as 50%; 100% is none", |name, given| Ok(Setting::TState(of(name, share(given))? * 100.0))),
    flag("rapl", "LIMIT", "Power limit: 15W for each package, or ZONE=15W, or ZONE/LIMIT=15W (dram=5W, package-0/short_term=28W)", power_limit).many(),
    flag("uncore-min", "SPEED", "Lowest speed of the uncore", |name, given| Ok(Setting::Uncore(Some(of(name, speed(given))?), None))),
    flag("uncore-max", "SPEED", "Highest speed of the uncore", |name, given| Ok(Setting::Uncore(None, Some(of(name, speed(given))?)))),
    flag("dram", "GOVERNOR", "Governor of the memory's clock, perhaps with its thresholds, such as dmc_ondemand:up=20:down=5", dram),
    flag("tunable", "NAME=VALUE", "A tunable of the governor that is in force, or that --governor puts in force, such as up_threshold=90", tunable).many(),
    plain(&PROFILE, "NAME", "The firmware's platform profile"),
    flag("driver-mode", "MODE", "Mode of intel_pstate or amd-pstate: active, passive, guided, off. It is put in force before the settings given with it", |_, given| Ok(Setting::DriverMode(given.to_owned()))),
    flag("online", "on|off", "Take the CPUs online or offline", |name, given| Ok(Setting::Online(switch(name, given)?))).switch(),
];

fn of<T, E: std::fmt::Display>(name: &str, value: Result<T, E>) -> Result<T, String> {
    value.map_err(|e| format!("{name} {e}"))
}

fn switch(name: &str, given: &str) -> Result<bool, String> {
    match given {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{name} '{given}'; expected on or off")),
    }
}

fn cstate(name: &str, given: &str) -> Result<Setting, String> {
    let bad = || format!("cstate '{given}'; expected a state and on or off, such as C6=off");
    let (state, on) = given.split_once('=').ok_or_else(bad)?;
    Ok(Setting::CState(state.to_owned(), switch(name, on).map_err(|_| bad())?))
}

fn latency(name: &str, given: &str) -> Result<Setting, String> {
    Ok(Setting::Latency(match given {
        "none" => None,
        _ => Some(of(name, duration_ns(given, "us"))?),
    }))
}

fn power_limit(name: &str, given: &str) -> Result<Setting, String> {
    let (place, power) = given.split_once('=').map_or((None, given), |(p, w)| (Some(p), w));
    let (zone, constraint) = match place.map(|p| p.split_once('/').ok_or(p)) {
        None => (None, None),
        Some(Ok((zone, limit))) => (Some(zone.to_owned()), Some(limit.to_owned())),
        Some(Err(zone)) => (Some(zone.to_owned()), None),
    };
    Ok(Setting::PowerLimit { zone, constraint, power_uw: of(name, power_uw(power))? })
}

fn dram(_: &str, given: &str) -> Result<Setting, String> {
    let bad = || {
        format!(
            "dram '{given}'; expected a governor, perhaps with thresholds in percent, such as dmc_ondemand:up=20:down=5"
        )
    };
    let (governor, list) = given.split_once(':').unwrap_or((given, ""));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if governor.is_empty() || !governor.chars().all(is_word) {
        return Err(bad());
    }
    let (mut up, mut down) = (None, None);
    for pair in list.split([',', ':']).filter(|pair| !pair.is_empty()) {
        let (name, percent) = pair.split_once('=').ok_or_else(bad)?;
        let percent = percent
            .strip_suffix('%')
            .unwrap_or(percent)
            .parse::<u32>()
            .ok()
            .filter(|p| (1..=100).contains(p));
        let end = match name {
            "up" => &mut up,
            "down" => &mut down,
            _ => return Err(bad()),
        };
        if end.replace(percent.ok_or_else(bad)?).is_some() {
            return Err(bad());
        }
    }
    Ok(Setting::Dram { governor: governor.to_owned(), up, down })
}

fn tunable(_: &str, given: &str) -> Result<Setting, String> {
    let pair = given.split_once('=');
    let (key, value) =
        pair.ok_or_else(|| format!("tunable '{given}'; expected NAME=VALUE, such as up_threshold=90"))?;
    Ok(Setting::Tunable(key.to_owned(), value.to_owned()))
}

/// Reads one setting: a flag's name and its value, as [`Setting::flags`] prints them.
///
/// # Errors
/// One line: the name, what was given, what was expected.
pub fn read(name: &str, given: &str) -> Result<Setting, String> {
    match KNOWN.iter().find(|flag| flag.name == name).map(|flag| &flag.reads) {
        Some(Reads::By(reads)) => reads(name, given),
        Some(Reads::Plain(plain)) => Ok(Setting::Plain(plain, given.to_owned())),
        None => {
            let names: Vec<&str> = KNOWN.iter().map(|flag| flag.name).collect();
            Err(format!("'{name}' is no setting; expected one of {}", names.join(", ")))
        }
    }
}

/// Adds a setting to others: the two ends of a range are one setting; of the same kind, the later one counts.
pub fn add(to: &mut Vec<Setting>, setting: Setting) {
    let merged = |old: &Setting| match (old, &setting) {
        (Setting::Limits(l, h), Setting::Limits(low, high)) => Some(Setting::Limits(low.or(*l), high.or(*h))),
        (Setting::Uncore(l, h), Setting::Uncore(low, high)) => Some(Setting::Uncore(low.or(*l), high.or(*h))),
        (Setting::CState(a, _), Setting::CState(b, _)) if a != b => None,
        (Setting::Tunable(a, _), Setting::Tunable(b, _)) if a != b => None,
        (Setting::Plain(a, _), Setting::Plain(b, _)) if a != b => None,
        (
            Setting::PowerLimit { zone, constraint, .. },
            Setting::PowerLimit { zone: z, constraint: c, .. },
        ) if zone != z || constraint != c => None,
        _ if std::mem::discriminant(old) == std::mem::discriminant(&setting) => Some(setting.clone()),
        _ => None,
    };
    match to.iter().enumerate().find_map(|(at, old)| Some((at, merged(old)?))) {
        Some((at, merged)) => to[at] = merged,
        None => to.push(setting),
    }
}
