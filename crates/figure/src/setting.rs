//! What may be asked of a machine's power states, as values: what `wattwise set` takes as flags, what a policy means on a
//! machine, what a journal is planned from.
//!
//! The two wings meet here. The model wing says which settings a policy is; the machine wing makes them. Text is made by
//! [`Setting::flags`] alone, and read by [`read`] alone: by the command line and by the daemon's profiles.

use crate::share::share;
use crate::units::{Speed, duration_ns, power_uw, speed, trim};

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
    /// The governor that picks C-states.
    IdleGovernor(String),
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
    /// A governor's tunable: `up_threshold=90`.
    Tunable(String, String),
    /// The firmware's profile.
    Profile(String),
}

/// A flag of `wattwise set`, and its value.
pub type Flag = (&'static str, String);

impl Setting {
    /// The flags of `wattwise set` that say this; every value is one word, not yet quoted.
    pub fn flags(&self) -> Vec<Flag> {
        let switch = |on: &bool| if *on { "on" } else { "off" };
        let one = |flag: &'static str, value: &dyn std::fmt::Display| vec![(flag, value.to_string())];
        let range = |flags: [&'static str; 2], low: &Option<Speed>, high: &Option<Speed>| {
            let ends = [(flags[1], high), (flags[0], low)];
            ends.into_iter().filter_map(|(flag, end)| Some((flag, end.as_ref()?.to_string()))).collect()
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
            Setting::IdleGovernor(name) => one("--idle-governor", name),
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
            Setting::Tunable(name, value) => one("--tunable", &format!("{name}={value}")),
            Setting::Profile(name) => one("--profile", name),
        }
    }
}

/// The flags of several settings, as the words of a command.
pub fn words(settings: &[Setting]) -> Vec<String> {
    settings.iter().flat_map(Setting::flags).flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}

/// The names that [`read`] takes: the flags of `wattwise set` without their dashes.
pub const NAMES: [&str; 18] = [
    "governor",
    "min",
    "max",
    "freq",
    "epp",
    "epb",
    "boost",
    "cstate",
    "latency",
    "idle-governor",
    "tstate",
    "rapl",
    "uncore-min",
    "uncore-max",
    "tunable",
    "profile",
    "driver-mode",
    "online",
];

fn switch(name: &str, given: &str) -> Result<bool, String> {
    match given {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{name} '{given}'; expected on or off")),
    }
}

/// Reads one setting: a name of [`NAMES`] and its value, as [`Setting::flags`] prints them.
///
/// # Errors
/// One line: the name, what was given, what was expected.
pub fn read(name: &str, given: &str) -> Result<Setting, String> {
    fn of<T, E: std::fmt::Display>(name: &str, value: Result<T, E>) -> Result<T, String> {
        value.map_err(|e| format!("{name} {e}"))
    }
    let word = || given.to_owned();
    Ok(match name {
        "governor" => Setting::Governor(word()),
        "min" => Setting::Limits(Some(of(name, speed(given))?), None),
        "max" => Setting::Limits(None, Some(of(name, speed(given))?)),
        "freq" => Setting::Freq(of(name, speed(given))?),
        "epp" => Setting::Epp(word()),
        "epb" => Setting::Epb(word()),
        "boost" => Setting::Boost(switch(name, given)?),
        "online" => Setting::Online(switch(name, given)?),
        "cstate" => {
            let bad = || format!("cstate '{given}'; expected a state and on or off, such as C6=off");
            let (state, on) = given.split_once('=').ok_or_else(bad)?;
            Setting::CState(state.to_owned(), switch(name, on).map_err(|_| bad())?)
        }
        "latency" if given == "none" => Setting::Latency(None),
        "latency" => Setting::Latency(Some(of(name, duration_ns(given, "us"))?)),
        "idle-governor" => Setting::IdleGovernor(word()),
        "tstate" => Setting::TState(of(name, share(given))? * 100.0),
        "rapl" => {
            let (place, power) = given.split_once('=').map_or((None, given), |(p, w)| (Some(p), w));
            let (zone, constraint) = match place.map(|p| p.split_once('/').ok_or(p)) {
                None => (None, None),
                Some(Ok((zone, limit))) => (Some(zone.to_owned()), Some(limit.to_owned())),
                Some(Err(zone)) => (Some(zone.to_owned()), None),
            };
            Setting::PowerLimit { zone, constraint, power_uw: of(name, power_uw(power))? }
        }
        "uncore-min" => Setting::Uncore(Some(of(name, speed(given))?), None),
        "uncore-max" => Setting::Uncore(None, Some(of(name, speed(given))?)),
        "tunable" => {
            let pair = given.split_once('=');
            let (key, value) = pair
                .ok_or_else(|| format!("tunable '{given}'; expected NAME=VALUE, such as up_threshold=90"))?;
            Setting::Tunable(key.to_owned(), value.to_owned())
        }
        "profile" => Setting::Profile(word()),
        "driver-mode" => Setting::DriverMode(word()),
        _ => return Err(format!("'{name}' is no setting; expected one of {}", NAMES.join(", "))),
    })
}

/// Adds a setting to others: the two ends of a range are one setting; of the same kind, the later one counts.
pub fn add(to: &mut Vec<Setting>, setting: Setting) {
    let merged = |old: &Setting| match (old, &setting) {
        (Setting::Limits(l, h), Setting::Limits(low, high)) => Some(Setting::Limits(low.or(*l), high.or(*h))),
        (Setting::Uncore(l, h), Setting::Uncore(low, high)) => Some(Setting::Uncore(low.or(*l), high.or(*h))),
        (Setting::CState(a, _), Setting::CState(b, _)) if a != b => None,
        (Setting::Tunable(a, _), Setting::Tunable(b, _)) if a != b => None,
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
