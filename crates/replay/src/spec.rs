//! A policy as people write it: `burst:busy=3,idle=3`, `schedutil+teo`, `hwp:epp=power+max=60%`, or a TOML file.
//!
//! ```text
//! SPEED[:key=value,...][+IDLE[:key=value,...]][+PLACEMENT][+CORES][+LIMIT...]
//! LIMIT: max=60% | max=2600MHz | max=min | min=1.2GHz | noboost | cmax=C1E | cmax=1 | latency=50us | power=15W | dram=powersave | ticks
//! ```
//!
//! This is the one language for policies: `compare`, `tune`, `run -p`, `ab`, `set --policy`, policy files and Python take it.
//!
//! A speed policy, then an idle policy where the machine's own is not wanted, a placement, which CPUs are kept, and
//! the user's limits: the highest and the lowest speed (a percentage is of a core's highest), no boost, the deepest C-state
//! (by name, or by index from 0, the shallowest), the longest wake-up from a C-state, the mean power of each package, and who sets the
//! memory's clock ([`wattwise_policy::dram`]: `dram=dmc_ondemand:up=20`). `ticks` has the speed policy see CPU time in whole
//! ticks, as a program that follows it does ([`wattwise_policy::ticks`]). A `+` only separates when what follows it is a known word, since `powerd++`
//! has its own. Any value may be a scan of many ([`expand`]).

use std::path::Path;
use wattwise_figure::mistake::at_line;
use wattwise_figure::units::{self, trim};
use wattwise_figure::{nearest, suggest};
use wattwise_model::machine::MachineModel;
use wattwise_policy::chosen::{ChoiceError, CoresSpec, IdleSpec};
use wattwise_policy::dram::{self, DramSpec};
use wattwise_policy::idle::shallow::no_deeper_than;
use wattwise_policy::limits::{Bound, Limits};
use wattwise_policy::speed::tunables::our_name;
use wattwise_policy::ticks::{InTicks, TICK_NS};
use wattwise_policy::{
    Autonomy, Cadence, DomainInfo, IdlePolicy, IdleState, Khz, Level, Param, ParamKind, Platform, Settings,
    SpecError, Speed, SpeedPolicy, cores, idle, speed,
};
use wattwise_sim::placement::{self, Placement};

use crate::driver::SpeedDriver;
pub use crate::scan::expand;

/// A chosen set of policies.
#[derive(Clone)]
pub struct PolicySpec {
    /// The governor of P-states.
    pub speed: &'static Speed,
    /// Its parameters.
    pub speed_settings: Settings,
    /// The governor of C-states; `None`: the machine's own.
    pub idle: Option<IdleSpec>,
    /// Where waking tasks go; `None`: as recorded where the CPUs match, else spread.
    pub placement: Option<&'static Placement>,
    /// Which CPUs are kept for work; `None`: all.
    pub cores: Option<CoresSpec>,
    /// The user's limits on the speed.
    pub limits: Limits,
    /// The deepest C-state allowed; `None`: any.
    pub deepest: Option<Deepest>,
    /// The longest wake-up allowed, in ns: C-states with a longer one are left alone; `None`: any.
    pub latency_ns: Option<u64>,
    /// Who sets the memory's clock; `None`: the machine's own governor.
    pub dram: Option<DramSpec>,
    /// The speed policy sees what a program sees: CPU time in whole ticks.
    pub ticks: bool,
    /// As it can be given again.
    pub text: String,
}

/// What a machine has in force, as the speed policy of `current` and `current+max=60%`. It stands for another one until a
/// machine is known ([`PolicySpec::in_place`]).
pub static CURRENT: Speed = Speed {
    name: "current",
    summary: "what is in force on the machine",
    follows: "this project",
    source: "",
    params: &[],
    build: |platform, _| (speed::ALL[0].build)(platform, &Settings::defaults(speed::ALL[0].params)),
};

/// The speed policy of that name, `current` among them.
fn find_speed(name: &str) -> Option<&'static Speed> {
    if name == CURRENT.name { Some(&CURRENT) } else { speed::find(name) }
}

/// A C-state that is named as the deepest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deepest {
    /// Its index in the machine's table, 0 the shallowest.
    Index(usize),
    /// Its name in the machine's table.
    Name(String),
}

/// Reads a core policy: `NAME[:key=value,...]`.
///
/// # Errors
/// One line that says what was expected and the nearest name.
pub fn cores_spec(text: &str) -> Result<CoresSpec, PolicyError> {
    CoresSpec::parse(text).map_err(|error| match error {
        ChoiceError::Unknown => PolicyError::Unknown {
            given: text.to_owned(),
            nearest: nearest(word(text), cores::ALL.iter().map(|p| p.name)),
        },
        ChoiceError::Settings(source) => PolicyError::Settings { given: text.to_owned(), source },
    })
}

/// Whether the word before the parameters names a core policy.
pub fn is_cores(text: &str) -> bool {
    cores::find(word(text)).is_some()
}

/// A policy that does not exist or does not take what it was given.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// No such name.
    #[error(
        "{}no policy of that name; did you mean '{nearest}'? ('wattwise policies' lists them)", flag(.given)
    )]
    Unknown {
        /// What was written.
        given: String,
        /// The most similar name.
        nearest: String,
    },
    /// A list of policies.
    #[error("{}one policy at a time; expected {}", flag(.given), one_each(.given))]
    Several {
        /// What was written.
        given: String,
    },
    /// Parameters that are wrong.
    #[error("{}{source}", flag(.given))]
    Settings {
        /// What was written.
        given: String,
        /// What is wrong with it.
        source: SpecError,
    },
    /// A word that says nothing of a policy.
    #[error("{}'{part}' is no part of a policy{hint}; expected {PARTS}", flag(.given))]
    Part {
        /// What was written.
        given: String,
        /// The word.
        part: String,
        /// What may be meant.
        hint: String,
    },
    /// A part without a policy of the speed before it.
    #[error("{}{word} {does}; expected a policy of the speed before it, such as schedutil+{word}", flag(.given))]
    NoSpeed {
        /// What was written.
        given: String,
        /// The part's name.
        word: String,
        /// What it chooses.
        does: &'static str,
    },
    /// A second word of a kind, or a word in the wrong place.
    #[error("{}'{word}' is one part too many; expected {PARTS}", flag(.given))]
    Twice {
        /// What was written.
        given: String,
        /// The word.
        word: String,
    },
    /// A limit that is none.
    #[error("{}{limit}: expected {expected}", flag(.given))]
    Limit {
        /// What was written.
        given: String,
        /// The limit.
        limit: String,
        /// What it takes.
        expected: String,
    },
    /// A governor of the memory's clock that is none, or its parameters.
    #[error("{}{part}: {problem}", flag(.given))]
    Dram {
        /// What was written.
        given: String,
        /// The part.
        part: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A scan that has no end, or too many.
    #[error("{}'{scan}': {problem}; expected FROM..TO:nPOINTS or FROM..TO:bySTEP, such as 1ms..20ms:n5", flag(.given))]
    Scan {
        /// What was written.
        given: String,
        /// The scan.
        scan: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A policy file that is not there.
    #[error("{path}: no such file; expected a policy file, or the name of a policy ('wattwise policies')")]
    Missing {
        /// The file.
        path: String,
    },
    /// A policy file that cannot be used.
    #[error(
        "{path}: {problem}; expected speed = {{ policy = \"burst\", busy = 3 }}, and perhaps idle and placement"
    )]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The parts of a policy, in their order.
const PARTS: &str = "SPEED[+IDLE][+PLACEMENT][+CORES][+max=..][+min=..][+noboost][+cmax=..][+latency=..][+power=..][+dram=..][+ticks]";

/// What other tools call a part, and how it is written here.
const OTHER_WORDS: [(&[&str], &str); 4] = [
    (&["cap", "pl1", "tdp", "rapl", "watts"], "power=15W"),
    (&["turbo", "noturbo", "no_turbo", "boost"], "noboost"),
    (&["epp"], "hwp:epp=102"),
    (&["dram", "dmc", "devfreq"], "dram=performance"),
];

/// The flag that an error names.
fn flag(given: &str) -> String {
    format!("--policy {given}: ")
}

/// A list of policies as the command line takes them.
fn one_each(given: &str) -> String {
    given.split(',').map(|policy| format!("-p {}", policy.trim())).collect::<Vec<_>>().join(" ")
}

impl PolicyError {
    /// What is wrong, without the command line's flag: for policies that a file names.
    pub fn problem(&self) -> String {
        let whole = self.to_string();
        match self {
            PolicyError::File { .. } | PolicyError::Missing { .. } => whole,
            PolicyError::Unknown { given, .. }
            | PolicyError::Several { given }
            | PolicyError::Settings { given, .. }
            | PolicyError::Part { given, .. }
            | PolicyError::NoSpeed { given, .. }
            | PolicyError::Twice { given, .. }
            | PolicyError::Limit { given, .. }
            | PolicyError::Dram { given, .. }
            | PolicyError::Scan { given, .. } => {
                let problem = whole.strip_prefix(&flag(given)).unwrap_or(&whole);
                format!("'{given}': {problem}")
            }
        }
    }
}

/// A word for a placement.
#[derive(Clone, Copy)]
pub struct PlacementWord {
    /// The word.
    pub word: &'static str,
    /// What it names.
    pub placement: &'static Placement,
    /// A line of help.
    pub help: &'static str,
}

/// Words for placements.
pub fn placements() -> impl Iterator<Item = PlacementWord> {
    let words =
        |p: &'static Placement| p.words().map(move |(word, help)| PlacementWord { word, placement: p, help });
    placement::ALL.iter().copied().flat_map(words)
}

/// The word before a part's parameters.
fn word(part: &str) -> &str {
    part.split_once(':').map_or(part, |(name, _)| name)
}

/// Limits that take a value, and those that do not.
const LIMITS: [&str; 6] = ["max", "min", "cmax", "latency", "power", "dram"];
const SWITCHES: [&str; 2] = ["noboost", "ticks"];

/// What else a policy file may have.
const PARTS_OF_FILE: [&str; 4] = ["speed", "idle", "placement", "cores"];

/// Whether a part is a limit.
pub(crate) fn is_limit(part: &str) -> bool {
    let name = part.split_once('=').map_or(part, |(name, _)| name);
    if part.contains('=') { LIMITS.contains(&name) } else { SWITCHES.contains(&name) }
}

/// Cuts at each `+` that a known idle policy, placement, core policy or limit follows.
fn parts(text: &str) -> Vec<&str> {
    let mut cut = vec![0];
    for (at, _) in text.match_indices('+') {
        let rest = &text[at + 1..];
        let end = rest.find([':', '+']).unwrap_or(rest.len());
        let name = &rest[..end];
        let known =
            idle::find(name).is_some() || placement::find(name).is_some() || cores::find(name).is_some();
        if known || is_limit(name) {
            cut.push(at + 1);
        }
    }
    let ends = cut.iter().skip(1).map(|c| c - 1).chain([text.len()]);
    cut.iter().copied().zip(ends).map(|(from, to)| &text[from..to]).collect()
}

/// The first word behind the policy of the speed that says nothing of a policy.
fn no_part(text: &str) -> Option<PolicyError> {
    let is_speed = |at: &usize| find_speed(word(&text[..*at])).is_some();
    let speed_ends = text.rmatch_indices('+').map(|(at, _)| at).find(is_speed)?;
    let known = |part: &str| {
        let name = word(part);
        is_limit(part)
            || idle::find(name).is_some()
            || placement::find(part).is_some()
            || cores::find(name).is_some()
    };
    let part = text[speed_ends + 1..].split('+').find(|part| !known(part))?;
    let name = part.split_once(['=', ':']).map_or(part, |(name, _)| name);
    let hint = match OTHER_WORDS.iter().find(|(words, _)| words.contains(&name)) {
        Some((_, ours)) => format!("; did you mean \"{ours}\"?"),
        None => {
            let names = idle::ALL.iter().map(|i| i.name).chain(placements().map(|p| p.word));
            suggest(name, names.chain(cores::ALL.iter().map(|c| c.name)).chain(LIMITS).chain(SWITCHES))
        }
    };
    Some(PolicyError::Part { given: text.to_owned(), part: part.to_owned(), hint })
}

/// Why a text does not begin with a policy of the speed.
fn no_speed(text: &str) -> PolicyError {
    let given = text.to_owned();
    if let Some((first, _)) = text.split_once(',')
        && PolicySpec::parse(first).is_ok()
    {
        return PolicyError::Several { given };
    }
    let first = word(text.split('+').next().unwrap_or_default());
    let does = match () {
        () if idle::find(first).is_some() => Some("chooses C-states"),
        () if placement::find(first).is_some() => Some("places tasks"),
        () if cores::find(first).is_some() => Some("chooses CPUs"),
        () if is_limit(first) || LIMITS.contains(&first) => Some("is a limit"),
        () => None,
    };
    match does {
        Some(does) => PolicyError::NoSpeed { given, word: first.to_owned(), does },
        None => {
            let known = speed::ALL.iter().map(|p| p.name).chain([CURRENT.name]);
            PolicyError::Unknown { given, nearest: nearest(first, known) }
        }
    }
}

/// A policy's rule for the speed and the parts beside it, as they are written: `powerd+++max=60%` is `powerd++` and `max=60%`.
pub fn rule_and_parts(text: &str) -> (&str, Option<&str>) {
    let rule = parts(text)[0];
    (rule, text[rule.len()..].strip_prefix('+'))
}

impl PolicySpec {
    /// A speed policy as it is without parameters and parts. Its text is empty until it is [renamed](PolicySpec::renamed).
    pub fn alone(speed: &'static Speed) -> PolicySpec {
        PolicySpec {
            speed,
            speed_settings: Settings::defaults(speed.params),
            idle: None,
            placement: None,
            cores: None,
            limits: Limits::default(),
            deepest: None,
            latency_ns: None,
            dram: None,
            ticks: false,
            text: String::new(),
        }
    }

    /// Reads a policy as written on the command line; a word that ends in `.toml` is a file.
    ///
    /// # Errors
    /// One line that names the flag, what was expected and the nearest name.
    pub fn parse(text: &str) -> Result<PolicySpec, PolicyError> {
        if text.ends_with(".toml") {
            return PolicySpec::read(Path::new(text));
        }
        let given = || text.to_owned();
        let all = parts(text);
        let speed =
            find_speed(word(all[0])).ok_or_else(|| no_part(text).unwrap_or_else(|| no_speed(text)))?;
        let settings = |params, part: &str| {
            let (policy, list) = part.split_once(':').unwrap_or((part, ""));
            // The kernel's names are taken too.
            let named = |pair: &str| match pair.split_once('=') {
                Some((key, value)) => {
                    format!("{}={value}", our_name(policy, key.trim()).unwrap_or(key))
                }
                None => pair.to_owned(),
            };
            let list = list.split(',').map(named).collect::<Vec<_>>().join(",");
            Settings::parse(params, &list).map_err(|source| {
                no_part(text).unwrap_or_else(|| PolicyError::Settings { given: given(), source })
            })
        };
        let mut spec =
            PolicySpec { speed_settings: settings(speed.params, all[0])?, ..PolicySpec::alone(speed) };
        for part in &all[1..] {
            if is_limit(part) {
                spec.limit(text, part).map_err(|e| no_part(text).unwrap_or(e))?;
                continue;
            }
            let twice = || PolicyError::Twice { given: given(), word: (*part).to_owned() };
            // A recorded placement and a single queue know no kept CPUs.
            let fixes_cpus = spec.placement.is_some_and(|p| !p.heeds_kept_cpus);
            let (nothing_after, last) =
                (spec.placement.is_none() && spec.cores.is_none(), spec.cores.is_none());
            match (idle::find(word(part)), placement::find(part), cores::find(word(part))) {
                (Some(item), ..) if spec.idle.is_none() && nothing_after => {
                    spec.idle = Some(IdleSpec { idle: item, settings: settings(item.params, part)? });
                }
                (None, Some(p), _) if nothing_after => spec.placement = Some(p),
                (None, None, Some(item)) if last && !fixes_cpus => {
                    spec.cores = Some(CoresSpec { cores: item, settings: settings(item.params, part)? });
                }
                _ => return Err(no_part(text).unwrap_or_else(twice)),
            }
        }
        if let (Some(min), Some(max)) = (spec.limits.min, spec.limits.max)
            && is_above(min, max)
        {
            let limit = format!("min={}", bound_text(min));
            let expected = format!("at most max={}", bound_text(max));
            return Err(PolicyError::Limit { given: given(), limit, expected });
        }
        if spec.ticks && is_the_schedulers(&spec) {
            let expected = format!(
                "a policy that a program can follow, such as powerd; {} needs the scheduler's own hooks",
                spec.speed.name
            );
            return Err(PolicyError::Limit { given: given(), limit: "ticks".into(), expected });
        }
        spec.text = spec.canonical();
        Ok(spec)
    }

    /// What this means on a machine with that driver, where `in_force` is in force: [`CURRENT`] is that, with the parts of
    /// this one in the place of its own. `powersave` is the kernel's governor of that name: the driver's own rule where the
    /// driver chooses speeds itself, else the lowest speed. With a line about it where that is not what the word has always
    /// meant here.
    ///
    /// # Errors
    /// `current` where it is not known what is in force.
    pub fn in_place(
        &self,
        driver: Option<&SpeedDriver>,
        in_force: Option<&PolicySpec>,
    ) -> Result<(PolicySpec, Option<String>), PolicyError> {
        if self.speed.name == CURRENT.name {
            let now =
                in_force.filter(|now| now.speed.name != CURRENT.name).ok_or_else(|| PolicyError::Limit {
                    given: self.text.clone(),
                    limit: CURRENT.name.into(),
                    expected: "a policy by name, since it is not known what is in force".into(),
                })?;
            return Ok((self.over(now), None));
        }
        match driver.and_then(|d| d.own) {
            Some(own) if self.speed.name == "powersave" => {
                let same = in_force.filter(|now| now.speed.name == own);
                let own = same.map_or_else(|| PolicySpec::parse(own), |now| Ok(now.without_limits()))?;
                let meant =
                    PolicySpec { speed: own.speed, speed_settings: own.speed_settings, ..self.clone() };
                let meant = meant.renamed();
                let lowest = PolicySpec {
                    limits: Limits { max: Some(Bound::Share(0)), ..meant.limits },
                    ..meant.clone()
                };
                let told = format!(
                    "{} means {} on this machine, what its driver does under that name; the lowest speed is {}",
                    self.text,
                    meant.text,
                    lowest.renamed().text
                );
                Ok((meant, Some(told)))
            }
            _ => Ok((self.clone(), None)),
        }
    }

    /// `now` with those parts that this has.
    fn over(&self, now: &PolicySpec) -> PolicySpec {
        let PolicySpec { idle, placement, cores, limits, deepest, latency_ns, dram, ticks, .. } =
            self.clone();
        PolicySpec {
            idle: idle.or_else(|| now.idle.clone()),
            placement: placement.or(now.placement),
            cores: cores.or_else(|| now.cores.clone()),
            limits: Limits {
                max: limits.max.or(now.limits.max),
                min: limits.min.or(now.limits.min),
                no_boost: limits.no_boost || now.limits.no_boost,
                power_uw: limits.power_uw.or(now.limits.power_uw),
            },
            deepest: deepest.or_else(|| now.deepest.clone()),
            latency_ns: latency_ns.or(now.latency_ns),
            dram: dram.or_else(|| now.dram.clone()),
            ticks: ticks || now.ticks,
            ..now.clone()
        }
        .renamed()
    }

    /// The same rule without the user's limits.
    pub fn without_limits(&self) -> PolicySpec {
        PolicySpec { limits: Limits::default(), deepest: None, latency_ns: None, dram: None, ..self.clone() }
            .renamed()
    }

    /// Takes one limit.
    fn limit(&mut self, given: &str, part: &str) -> Result<(), PolicyError> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let first = match name {
            "max" => self.limits.max.replace(bound(given, part, value)?).is_none(),
            "min" => self.limits.min.replace(bound(given, part, value)?).is_none(),
            "power" => self.limits.power_uw.replace(power(given, part, value)?).is_none(),
            "cmax" => self.deepest.replace(deepest(given, part, value)?).is_none(),
            "latency" => self.latency_ns.replace(latency(given, part, value)?).is_none(),
            "dram" => self.dram.replace(dram_of(given, part, value)?).is_none(),
            "ticks" => !std::mem::replace(&mut self.ticks, true),
            _ => !std::mem::replace(&mut self.limits.no_boost, true),
        };
        match first {
            true => Ok(()),
            false => Err(PolicyError::Twice { given: given.to_owned(), word: part.to_owned() }),
        }
    }

    /// Builds the speed policy, within the limits.
    pub fn build_speed(&self, platform: &Platform) -> Box<dyn SpeedPolicy> {
        let policy = self.limits.build(self.speed, platform, &self.speed_settings);
        match self.ticks {
            true => Box::new(InTicks::around(policy, platform.cpus)),
            false => policy,
        }
    }

    /// Builds the idle policy of one CPU: this one's, else `usual`, no deeper than `deepest` ([`PolicySpec::deepest_on`]).
    pub fn build_idle(
        &self,
        usual: &IdleSpec,
        deepest: Option<usize>,
        states: &[IdleState],
        tick_ns: u64,
    ) -> Box<dyn IdlePolicy> {
        let idle = self.idle.as_ref().unwrap_or(usual);
        match deepest {
            None => idle.build(states, tick_ns),
            Some(deepest) => no_deeper_than(deepest, states, &|states| idle.build(states, tick_ns)),
        }
    }

    /// The index of the deepest C-state allowed on a machine; names are those of its first kind of core.
    ///
    /// # Errors
    /// One line with the machine's states, where it has none of that name or index.
    pub fn deepest_on(&self, machine: &MachineModel) -> Result<Option<usize>, PolicyError> {
        let Some(wanted) = &self.deepest else { return Ok(None) };
        let names: Vec<&str> = machine.kinds[0].idle.iter().map(|s| s.name.as_str()).collect();
        let found = match wanted {
            Deepest::Index(index) => Some(*index).filter(|i| *i < names.len()),
            Deepest::Name(name) => names.iter().position(|n| n.eq_ignore_ascii_case(name)),
        };
        found.map(Some).ok_or_else(|| PolicyError::Limit {
            given: self.text.clone(),
            limit: format!("cmax={wanted}"),
            expected: format!("one of {}'s C-states: {}", machine.name, names.join(", ")),
        })
    }

    /// Whether the machine has a power limit for `+power`.
    ///
    /// # Errors
    /// One line, where it has none.
    pub fn power_on(&self, machine: &MachineModel) -> Result<(), PolicyError> {
        match self.limits.power_uw {
            Some(uw) if machine.packages.iter().any(|p| p.limit.is_none()) => Err(PolicyError::Limit {
                given: self.text.clone(),
                limit: format!("power={}", power_text(uw)),
                expected: format!("a machine with a [power_limit], which {} has not", machine.name),
            }),
            _ => Ok(()),
        }
    }

    /// Who sets the memory's clock on a machine: this policy's governor, else the machine's own; `None` where the kernel sets no
    /// such clock.
    ///
    /// # Errors
    /// One line, where the policy speaks of a clock that the machine does not have.
    pub fn dram_on(&self, machine: &MachineModel) -> Result<Option<DramSpec>, PolicyError> {
        match (&self.dram, &machine.memory_clock) {
            (None, None) => Ok(None),
            (Some(own), Some(_)) => Ok(Some(own.clone())),
            (None, Some(clock)) => Ok(DramSpec::parse(&clock.governor).ok()),
            (Some(own), None) => Err(PolicyError::Limit {
                given: self.text.clone(),
                limit: format!("dram={}", own.dram.name),
                expected: format!("a machine with a [memory_clock], which {} has not", machine.name),
            }),
        }
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// One line that names the file, what was expected and what to do.
    pub fn read(path: &Path) -> Result<PolicySpec, PolicyError> {
        let name = path.display().to_string();
        let fail = |problem: String| PolicyError::File { path: name.clone(), problem };
        let text = wattwise_figure::budget::read_text(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => PolicyError::Missing { path: name.clone() },
            _ => fail(e.to_string()),
        })?;
        if text.trim().is_empty() {
            return Err(fail("is empty".into()));
        }
        let at = |e: toml::de::Error| fail(at_line(&text, e.span().map(|s| s.start), e.message()));
        let table: toml::Table = text.parse().map_err(at)?;
        let mut words = Vec::new();
        for key in table.keys() {
            let is_known =
                |key| PARTS_OF_FILE.contains(&key) || LIMITS.contains(&key) || SWITCHES.contains(&key);
            if !is_known(key.as_str()) {
                return Err(fail(format!("unknown key '{key}'")));
            }
        }
        let speed = table.get("speed").ok_or_else(|| fail("no 'speed'".into()))?;
        words.push(part_of(speed).ok_or_else(|| fail("'speed' has no policy".into()))?);
        if let Some(idle) = table.get("idle") {
            words.push(part_of(idle).ok_or_else(|| fail("'idle' has no policy".into()))?);
        }
        if let Some(placement) = table.get("placement") {
            words.push(part_of(placement).ok_or_else(|| fail("'placement' is not a word".into()))?);
        }
        if let Some(cores) = table.get("cores") {
            words.push(part_of(cores).ok_or_else(|| fail("'cores' has no policy".into()))?);
        }
        for key in LIMITS {
            match table.get(key) {
                None => {}
                Some(value @ toml::Value::Table(_)) if key == "dram" => {
                    words.push(format!(
                        "dram={}",
                        part_of(value).ok_or_else(|| fail("'dram' has no policy".into()))?
                    ));
                }
                Some(toml::Value::String(s)) => words.push(format!("{key}={s}")),
                Some(toml::Value::Integer(n)) => words.push(format!("{key}={n}")),
                Some(_) => return Err(fail(format!("'{key}' is neither text nor a whole number"))),
            }
        }
        for key in SWITCHES {
            match table.get(key) {
                None | Some(toml::Value::Boolean(false)) => {}
                Some(toml::Value::Boolean(true)) => words.push(key.to_owned()),
                Some(_) => return Err(fail(format!("'{key}' is neither true nor false"))),
            }
        }
        PolicySpec::parse(&words.join("+"))
    }

    /// This policy with its [`text`](PolicySpec::text) written anew, after a part of it was changed.
    pub fn renamed(mut self) -> PolicySpec {
        self.text = self.canonical();
        self
    }

    /// The policy as a file that [`PolicySpec::read`] takes.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let mut part = |key: &str, name: &str, params: &'static [Param], settings: &Settings| {
            let quoted = |text: &str| format!("\"{text}\"");
            let pairs: Vec<String> = changed(params, settings)
                .map(|(p, value)| match p.kind {
                    ParamKind::Choice(_) => format!("{} = {}", p.name, quoted(&p.kind.show(value))),
                    _ => format!("{} = {value}", p.name),
                })
                .collect();
            out += &match pairs.is_empty() {
                true => format!("{key} = {}\n", quoted(name)),
                false => format!("{key} = {{ policy = {}, {} }}\n", quoted(name), pairs.join(", ")),
            };
        };
        part("speed", self.speed.name, self.speed.params, &self.speed_settings);
        if let Some(i) = &self.idle {
            part("idle", i.idle.name, i.idle.params, &i.settings);
        }
        if let Some(p) = self.placement {
            part("placement", p.name, &[], &Settings::defaults(&[]));
        }
        if let Some(c) = &self.cores {
            part("cores", c.cores.name, c.cores.params, &c.settings);
        }
        let ends = [("max", self.limits.max), ("min", self.limits.min)];
        for (key, bound) in ends.into_iter().filter_map(|(key, b)| Some((key, b?))) {
            out += &format!("{key} = \"{}\"\n", bound_text(bound));
        }
        if self.limits.no_boost {
            out += "noboost = true\n";
        }
        if let Some(deepest) = &self.deepest {
            out += &format!("cmax = \"{deepest}\"\n");
        }
        if let Some(ns) = self.latency_ns {
            out += &format!("latency = \"{}\"\n", latency_text(ns));
        }
        if let Some(uw) = self.limits.power_uw {
            out += &format!("power = \"{}\"\n", power_text(uw));
        }
        if let Some(d) = &self.dram {
            out += &format!("dram = \"{}\"\n", dram_text(d));
        }
        if self.ticks {
            out += "ticks = true\n";
        }
        out
    }

    /// The shortest text that means the same.
    fn canonical(&self) -> String {
        let mut text = part_text(self.speed.name, self.speed.params, &self.speed_settings);
        if let Some(i) = &self.idle {
            text.push('+');
            text.push_str(&part_text(i.idle.name, i.idle.params, &i.settings));
        }
        if let Some(p) = self.placement {
            text.push('+');
            text.push_str(p.name);
        }
        if let Some(c) = &self.cores {
            text.push('+');
            text.push_str(&part_text(c.cores.name, c.cores.params, &c.settings));
        }
        let end =
            |name: &str, b: Option<Bound>| b.map_or(String::new(), |b| format!("+{name}={}", bound_text(b)));
        text.push_str(&end("max", self.limits.max));
        text.push_str(&end("min", self.limits.min));
        if self.limits.no_boost {
            text.push_str("+noboost");
        }
        if let Some(deepest) = &self.deepest {
            text.push_str(&format!("+cmax={deepest}"));
        }
        if let Some(ns) = self.latency_ns {
            text.push_str(&format!("+latency={}", latency_text(ns)));
        }
        if let Some(uw) = self.limits.power_uw {
            text.push_str(&format!("+power={}", power_text(uw)));
        }
        if let Some(d) = &self.dram {
            text.push_str(&format!("+dram={}", dram_text(d)));
        }
        if self.ticks {
            text.push_str("+ticks");
        }
        text
    }
}

impl std::fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PolicySpec({})", self.text)
    }
}

impl std::fmt::Display for Deepest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Deepest::Index(index) => write!(f, "{index}"),
            Deepest::Name(name) => f.write_str(name),
        }
    }
}

/// Whether the scheduler itself asks the speed policy.
fn is_the_schedulers(spec: &PolicySpec) -> bool {
    let level = Level { khz: Khz(1_000_000), busy_uw: None };
    let domain = DomainInfo {
        cpus: vec![0],
        levels: vec![level],
        transition_ns: 0,
        base: level.khz,
        boost_with: None,
        load_full: level.khz,
        capacity: 1024,
    };
    let one = Platform {
        domains: vec![domain],
        cpus: 1,
        tick_ns: TICK_NS,
        load_invariant: false,
        boost: true,
        deepest_idle_uw: None,
        awake_uw: None,
        autonomy: Autonomy::default(),
    };
    matches!(spec.build_speed(&one).cadence(), Cadence::Scheduler { .. })
}

/// Reads one end of the range of speeds.
fn bound(given: &str, part: &str, value: &str) -> Result<Bound, PolicyError> {
    match units::speed(value) {
        Ok(units::Speed::Percent(percent)) => Ok(Bound::Share((percent * 1000.0).round() as u32)),
        Ok(units::Speed::Min) => Ok(Bound::Share(0)),
        Ok(units::Speed::Max) => Ok(Bound::Share(100_000)),
        Ok(units::Speed::Khz(khz)) if khz <= u64::from(u32::MAX) => Ok(Bound::Khz(Khz(khz as u32))),
        _ => Err(PolicyError::Limit {
            given: given.to_owned(),
            limit: part.to_owned(),
            expected:
                "a share of the highest speed such as 60%, a speed such as 2600MHz or 1.2GHz (bare: kHz), or min"
                    .into(),
        }),
    }
}

fn power(given: &str, part: &str, value: &str) -> Result<u64, PolicyError> {
    units::power_uw(value).ok().filter(|uw| *uw > 0).ok_or_else(|| PolicyError::Limit {
        given: given.to_owned(),
        limit: part.to_owned(),
        expected: "the power of each package such as 15W or 7500mW".into(),
    })
}

/// A governor of the memory's clock, or what is wrong with it.
pub(crate) fn dram_governor(text: &str) -> Result<DramSpec, String> {
    DramSpec::parse(text).map_err(|error| match error {
        ChoiceError::Settings(source) => source.to_string(),
        ChoiceError::Unknown => {
            let names = || dram::ALL.iter().map(|d| d.name);
            let all: Vec<&str> = names().collect();
            format!("expected one of {}{}", all.join(", "), suggest(word(text), names()))
        }
    })
}

fn dram_of(given: &str, part: &str, value: &str) -> Result<DramSpec, PolicyError> {
    dram_governor(value).map_err(|problem| PolicyError::Dram {
        given: given.to_owned(),
        part: part.to_owned(),
        problem,
    })
}

/// Bare numbers are us, as in the kernel's file.
fn latency(given: &str, part: &str, value: &str) -> Result<u64, PolicyError> {
    units::duration_ns(value, "us").map_err(|_| PolicyError::Limit {
        given: given.to_owned(),
        limit: part.to_owned(),
        expected: "the longest wake-up from a C-state such as 50us or 1ms".into(),
    })
}

/// As a policy takes it.
pub(crate) fn latency_text(ns: u64) -> String {
    format!("{}us", trim(ns as f64 / 1e3, 3))
}

/// As a policy and `wattwise set --rapl` take it.
pub(crate) fn power_text(uw: u64) -> String {
    format!("{}W", trim(uw as f64 / 1e6, 6))
}

pub(crate) fn bound_text(bound: Bound) -> String {
    match bound {
        Bound::Khz(Khz(khz)) if khz % 1000 == 0 => format!("{}MHz", khz / 1000),
        Bound::Khz(Khz(khz)) => format!("{khz}"),
        Bound::Share(0) => "min".to_owned(),
        Bound::Share(thousandths) => format!("{}%", trim(f64::from(thousandths) / 1e3, 3)),
    }
}

/// Whether one end lies above another; a speed and a share can only be compared on a machine.
fn is_above(min: Bound, max: Bound) -> bool {
    match (min, max) {
        (Bound::Khz(min), Bound::Khz(max)) => min > max,
        (Bound::Share(min), Bound::Share(max)) => min > max,
        _ => false,
    }
}

fn deepest(given: &str, part: &str, value: &str) -> Result<Deepest, PolicyError> {
    if let Ok(index) = value.parse::<u8>() {
        return Ok(Deepest::Index(usize::from(index)));
    }
    let is_name = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match is_name {
        true => Ok(Deepest::Name(value.to_owned())),
        false => Err(PolicyError::Limit {
            given: given.to_owned(),
            limit: part.to_owned(),
            expected: "a C-state's name such as C1E, or its index from 0".into(),
        }),
    }
}

/// `"menu"` or `{ policy = "burst", busy = 3 }` as a part of a spec.
fn part_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(s) => Some(s.clone()),
        toml::Value::Table(t) => {
            let name = t.get("policy")?.as_str()?;
            let pair = |(k, v): (&String, &toml::Value)| match v {
                toml::Value::String(s) => format!("{k}={s}"),
                v => format!("{k}={v}"),
            };
            let args: Vec<String> = t.iter().filter(|(k, _)| *k != "policy").map(pair).collect();
            Some(if args.is_empty() { name.to_owned() } else { format!("{name}:{}", args.join(",")) })
        }
        _ => None,
    }
}

/// A name with those parameters that are not at their default.
pub(crate) fn part_text(name: &str, params: &'static [Param], settings: &Settings) -> String {
    let changed: Vec<String> =
        changed(params, settings).map(|(p, value)| format!("{}={}", p.name, p.kind.show(value))).collect();
    if changed.is_empty() { name.to_owned() } else { format!("{name}:{}", changed.join(",")) }
}

/// As a policy's `+dram=` takes it.
pub fn dram_text(dram: &DramSpec) -> String {
    part_text(dram.dram.name, dram.dram.params, &dram.settings)
}

/// The parameters that are not at their default, with their values.
fn changed(params: &'static [Param], settings: &Settings) -> impl Iterator<Item = (&'static Param, f64)> {
    let defaults = Settings::defaults(params);
    let values: Vec<(f64, f64)> =
        settings.iter().map(|(_, v)| v).zip(defaults.iter().map(|(_, v)| v)).collect();
    params.iter().zip(values).filter(|(_, (now, before))| now != before).map(|(p, (now, _))| (p, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_answered_with_the_flags_to_type() {
        let told = PolicySpec::parse("performance, schedutil+max=60%").unwrap_err().to_string();
        let flags = "-p performance -p schedutil+max=60%";
        assert_eq!(
            told,
            format!("--policy performance, schedutil+max=60%: one policy at a time; expected {flags}")
        );
        let misspelt = PolicySpec::parse("perfomance,schedutil").unwrap_err().to_string();
        assert!(misspelt.contains("did you mean 'performance'?"), "{misspelt}");
    }

    #[test]
    fn what_is_no_part_is_named_with_what_may_be_meant() {
        let told = |text: &str| PolicySpec::parse(text).unwrap_err().to_string();
        for (text, part, hint) in [
            ("performance+cap=15W", "cap=15W", "; did you mean \"power=15W\"?"),
            ("performance+dmc=performance", "dmc=performance", "; did you mean \"dram=performance\"?"),
            ("hwp:epp=102+turbo=off", "turbo=off", "; did you mean \"noboost\"?"),
            ("performance+teoo", "teoo", "; did you mean \"teo\"?"),
            ("performance+teo+smt=off", "smt=off", ""),
            ("powerd+++max=60%+cpus=2", "cpus=2", ""),
        ] {
            let expected =
                format!("--policy {text}: '{part}' is no part of a policy{hint}; expected SPEED[+IDLE]");
            assert!(told(text).starts_with(&expected), "{}", told(text));
        }
        for (text, does) in [
            ("teo", "teo chooses C-states"),
            ("menu+pack", "menu chooses C-states"),
            ("pack", "pack places tasks"),
            ("consolidate:period=10", "consolidate chooses CPUs"),
            ("noboost", "noboost is a limit"),
        ] {
            let expected = format!("--policy {text}: {does}; expected a policy of the speed before it");
            assert!(told(text).starts_with(&expected), "{}", told(text));
        }
        assert!(told("performance+teo+menu").contains("'menu' is one part too many"));
        assert!(told("performance+max=6x").contains("max=6x: expected"), "{}", told("performance+max=6x"));
        assert!(told("perfomance+teo").contains("did you mean 'performance'?"));
    }

    #[test]
    fn specs_come_back_as_written() {
        for text in [
            "performance",
            "performance+fixed:depth=1",
            "userspace:khz=1200000+fixed+pack",
            "powersave+spread",
            "performance+menu+pack+coreidle-ondemand:period=100",
            "schedutil+consolidate",
            "performance+sched_mc",
            "performance+affine+lpmd",
            "schedutil+max=60%",
            "schedutil+min=1200MHz",
            "schedutil+max=1861443",
            "performance+noboost",
            "schedutil+cmax=C1E",
            "schedutil+cmax=0",
            "hwp:epp=102+max=33.5%",
            "powerd:poll=100+menu+pack+lpmd+max=2600MHz+min=20%+noboost+cmax=C6",
            "schedutil+power=15W",
            "hwp:epp=102+max=80%+power=7.5W",
            "schedutil+cmax=C6+latency=50us+power=15W",
            "schedutil+latency=0us",
            "schedutil+latency=1.5us",
            "schedutil+dram=powersave",
            "performance+power=15W+dram=dmc_ondemand:up=20,down=5",
            "powerd+max=60%+ticks",
        ] {
            assert_eq!(PolicySpec::parse(text).unwrap().text, text);
        }
    }

    #[test]
    fn the_schedulers_two_switches_are_one_placement() {
        let text = |t: &str| PolicySpec::parse(t).unwrap().text;
        assert_eq!(text("performance+sched_smt"), text("performance+sched_mc"));
    }

    #[test]
    fn limits_in_any_unit_and_order_have_one_text() {
        let text = |t: &str| PolicySpec::parse(t).unwrap().text;
        assert_eq!(text("schedutil+min=1.2GHz"), "schedutil+min=1200MHz");
        assert_eq!(text("schedutil+max=2600000"), "schedutil+max=2600MHz");
        assert_eq!(
            text("schedutil+cmax=C6+noboost+min=10%+teo+max=60%"),
            "schedutil+teo+max=60%+min=10%+noboost+cmax=C6"
        );
        assert_eq!(text("schedutil:rate_limit=2ms"), "schedutil:rate_limit=2000");
        assert_eq!(text("userspace:khz=1.2GHz"), "userspace:khz=1200000");
        assert_eq!(text("hwp:epp=128"), "hwp");
        assert_eq!(text("hwp:epp=192"), "hwp:epp=balance_power");
    }

    #[test]
    fn the_kernel_s_names_of_parameters_are_taken() {
        let threshold = |text: &str| PolicySpec::parse(text).map(|s| s.speed_settings.number("up"));
        assert_eq!(threshold("ondemand:up_threshold=77,powersave_bias=10").ok(), Some(77.0));
        assert_eq!(threshold("ondemand:up=77").ok(), Some(77.0));
        assert!(threshold("ondemand:down_threshold=20").is_err());
    }

    #[test]
    fn mistakes_in_limits_are_one_line() {
        for (given, told) in [
            ("schedutil+max=60%+max=70%", "one part too many"),
            ("schedutil+noboost+noboost", "one part too many"),
            ("schedutil+max=fast", "such as 60%"),
            ("schedutil+max=base", "such as 60%"),
            ("schedutil+max=101%", "such as 60%"),
            ("schedutil+max=", "such as 60%"),
            ("schedutil+min=70%+max=60%", "min=70%: expected at most max=60%"),
            ("schedutil+max=1GHz+min=2GHz", "min=2000MHz: expected at most max=1000MHz"),
            ("schedutil+cmax=", "such as C1E"),
            ("schedutil+latency=soon", "such as 50us"),
            ("schedutil+latency=1us+latency=2us", "one part too many"),
            ("schedutil+cmax=-1", "such as C1E"),
            ("schedutil+noboost=1", "'noboost=1' is no part of a policy; did you mean \"noboost\"?"),
            ("powerd+ticks+ticks", "one part too many"),
            ("schedutil+ticks", "a policy that a program can follow, such as powerd"),
        ] {
            let error = PolicySpec::parse(given).err().unwrap().to_string();
            assert!(error.contains(told) && error.contains(given) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_deepest_state_is_the_machines() {
        let machine = crate::library::machine("xeon-4210").unwrap();
        let on = |text: &str| PolicySpec::parse(text).unwrap().deepest_on(&machine);
        assert_eq!(on("schedutil").unwrap(), None);
        assert_eq!(on("schedutil+cmax=C1E").unwrap(), Some(1));
        assert_eq!(on("schedutil+cmax=c6").unwrap(), Some(2));
        assert_eq!(on("schedutil+cmax=0").unwrap(), Some(0));
        for none in ["schedutil+cmax=C10", "schedutil+cmax=3"] {
            let error = on(none).unwrap_err().to_string();
            assert!(error.contains("C1, C1E, C6") && error.contains("xeon-4210"), "{error}");
        }
    }

    #[test]
    fn a_file_has_limits_too() {
        let folder = std::env::temp_dir().join(format!("wattwise-spec-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let read = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            PolicySpec::read(&path).map(|s| s.text)
        };
        let all = "speed = 'schedutil'\nmax = '60%'\nmin = 400000\nnoboost = true\ncmax = 'C1E'";
        assert_eq!(read("all.toml", all).unwrap(), "schedutil+max=60%+min=400MHz+noboost+cmax=C1E");
        assert_eq!(read("off.toml", "speed = 'schedutil'\nnoboost = false").unwrap(), "schedutil");
        for wrong in ["max = true", "noboost = 1", "maximum = '60%'"] {
            assert!(read("wrong.toml", &format!("speed = 'schedutil'\n{wrong}")).is_err(), "{wrong}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_policy_comes_back_from_its_file() {
        let folder = std::env::temp_dir().join(format!("wattwise-toml-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("policy.toml");
        for text in [
            "performance",
            "powerd++",
            "burst:busy=2,down=proportional",
            "schedutil:rate_limit=2500.5+teo+pack+consolidate:period=5,ratio=400+max=60%+min=1200MHz",
            "hwp:epp=balance_power+noboost+cmax=C1E",
            "hwp:epp=102+cmax=0",
            "hwp:epp=102+cmax=0+latency=2000us",
            "schedutil+power=15W",
            "schedutil+dram=simple_ondemand:up=50",
        ] {
            let spec = PolicySpec::parse(text).unwrap();
            std::fs::write(&path, spec.to_toml()).unwrap();
            assert_eq!(PolicySpec::read(&path).unwrap().text, spec.text, "{}", spec.to_toml());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn plus_signs_of_a_name_do_not_separate() {
        assert_eq!(parts("powerd++"), ["powerd++"]);
        assert_eq!(parts("powerd++:x=1+fixed+pack"), ["powerd++:x=1", "fixed", "pack"]);
    }

    #[test]
    fn a_plus_in_a_name_is_no_part() {
        for (text, rule, parts) in [
            ("powerd++", "powerd++", None),
            ("powerd+++max=60%+noboost", "powerd++", Some("max=60%+noboost")),
            ("hwp:epp=power+cmax=C6", "hwp:epp=power", Some("cmax=C6")),
        ] {
            assert_eq!(rule_and_parts(text), (rule, parts), "{text}");
        }
    }

    #[test]
    fn mistakes_name_the_nearest() {
        let message = |t: &str| PolicySpec::parse(t).err().unwrap().to_string();
        assert!(message("performence").contains("'performance'"));
        assert!(message("userspace:kHz=3").contains("khz"));
        assert!(message("performance+pack+fixed").contains("fixed"));
        assert!(message("performance+lpmd+dragonfly").contains("dragonfly"));
        for fixed in ["recorded", "fifo"] {
            assert!(message(&format!("performance+{fixed}+lpmd")).contains("lpmd"));
        }
        assert!(message("").contains("--policy"));
    }
}
