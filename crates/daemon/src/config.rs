//! Profiles and options, from TOML.
//!
//! What is wrong is told with file, line and column; the daemon goes on with what it had. What is built in is a file like
//! any other (`builtin.toml`), read by the same code.

use crate::profile::{Bias, Condition, CoresChoice, Ppd, Profile, ProfileCase, SpeedChoice, Turn, Wish};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use wattwise_figure::mistake::sentence;
use wattwise_figure::setting::{self, Setting, add};
use wattwise_figure::units::duration_ns;
use wattwise_figure::{nearest, one_line, share};
use wattwise_hw::states::supply::SupplySource;
use wattwise_policy::chosen::{ChoiceError, CoresSpec};
use wattwise_policy::{Settings, cores, speed};

const BUILTIN: &str = include_str!("builtin.toml");
/// No profiles file is larger.
const MOST_BYTES: u64 = 1 << 20;

/// What is done about values that another program changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnForeign {
    /// They stay, until the profile changes.
    #[default]
    Yield,
    /// They stay, and each is told.
    Warn,
    /// They are written again, ever more rarely.
    Reassert,
}

/// Where metrics are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// On loopback, at a port.
    Loopback(u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Options of the daemon itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DaemonOptions {
    /// The profile where none is remembered.
    pub default: String,
    /// Other programs' writes.
    pub foreign: OnForeign,
    /// How long events are waited out, ns.
    pub settle_ns: u64,
    /// How often it looks where no event came, ns.
    pub look_ns: u64,
    /// A file for node_exporter.
    pub textfile: Option<PathBuf>,
    /// Where metrics are served; nowhere unless asked for.
    pub listen: Option<Listen>,
    /// Where it is recorded what followed policies see and decide; nowhere unless asked for.
    pub record: Option<PathBuf>,
    /// Against what it is proved what the chosen profile saves; nothing is proved unless asked for.
    pub prove: Option<Turn>,
    /// For how long, ns.
    pub prove_ns: u64,
}

impl Default for DaemonOptions {
    fn default() -> DaemonOptions {
        DaemonOptions {
            default: "balanced".into(),
            foreign: OnForeign::Yield,
            settle_ns: 400_000_000,
            look_ns: 30_000_000_000,
            textfile: None,
            listen: None,
            record: None,
            prove: None,
            prove_ns: 7 * 24 * 3600 * 1_000_000_000,
        }
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// By name.
    pub profiles: BTreeMap<String, Profile>,
    /// Options.
    pub options: DaemonOptions,
}

/// What is wrong with a file: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// From 1; 0 where it cannot be read at all.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// What was expected.
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    daemon: DaemonTable,
    #[serde(default)]
    profile: BTreeMap<Spanned<String>, ProfileTable>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct DaemonTable {
    default: Option<Spanned<String>>,
    foreign: Option<OnForeign>,
    settle: Option<Spanned<String>>,
    look: Option<Spanned<String>>,
    textfile: Option<Spanned<PathBuf>>,
    listen: Option<Spanned<String>>,
    record: Option<Spanned<PathBuf>>,
    prove: Option<Spanned<String>>,
    prove_for: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileTable {
    #[serde(default)]
    summary: String,
    #[serde(default)]
    ppd: Ppd,
    bias: Option<Bias>,
    #[serde(default)]
    settings: Vec<Spanned<String>>,
    speed: Option<Spanned<String>>,
    cores: Option<Spanned<String>>,
    #[serde(default)]
    when: Vec<WhenTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SourceWord {
    Mains,
    Battery,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenTable {
    power: Option<SourceWord>,
    charge_below: Option<Spanned<u32>>,
    charge_above: Option<Spanned<u32>>,
    program: Option<Spanned<String>>,
    hotter_than: Option<Spanned<f64>>,
    busier_than: Option<Spanned<String>>,
    idler_than: Option<Spanned<String>>,
    between: Option<Spanned<String>>,
    bias: Option<Bias>,
    #[serde(default)]
    settings: Vec<Spanned<String>>,
    speed: Option<Spanned<String>>,
    cores: Option<Spanned<String>>,
}

/// Turns a file's text into values, and mistakes into places.
struct ConfigReader<'t> {
    file: &'t str,
    text: &'t str,
}

/// Line and column of a place in a text, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

impl ConfigReader<'_> {
    fn at(&self, at: usize, message: impl std::fmt::Display) -> ConfigError {
        let (line, column) = place(self.text, at);
        ConfigError { file: self.file.to_owned(), line, column, message: one_line(&message.to_string()) }
    }

    fn file(&self) -> Result<File, ConfigError> {
        toml::from_str(self.text).map_err(|e| self.at(e.span().map_or(0, |s| s.start), sentence(e.message())))
    }

    fn settings(&self, given: &[Spanned<String>]) -> Result<Vec<Setting>, ConfigError> {
        let mut settings = Vec::new();
        for word in given {
            let at = word.span().start;
            let text = word.get_ref();
            let (name, value) = text.split_once('=').ok_or_else(|| {
                self.at(at, format!("'{text}' is no setting; expected NAME=VALUE, such as epp=power"))
            })?;
            if ["online", "driver-mode"].contains(&name) {
                return Err(self.at(at, format!("{name} is not a profile's; use 'wattwise set --{name}'")));
            }
            add(&mut settings, setting::read(name, value).map_err(|e| self.at(at, e))?);
        }
        Ok(settings)
    }

    fn speed(&self, given: &Option<Spanned<String>>) -> Result<Option<SpeedChoice>, ConfigError> {
        let Some(word) = given else { return Ok(None) };
        let (at, text) = (word.span().start, word.get_ref());
        let (name, list) = text.split_once(':').unwrap_or((text, ""));
        let Some(found) = speed::find(name) else {
            let known = speed::ALL.iter().map(|s| s.name);
            let near = nearest(name, known);
            return Err(self.at(at, format!("'{name}' is no speed policy; did you mean {near}?")));
        };
        let settings =
            Settings::parse(found.params, list).map_err(|e| self.at(at, format!("{name}: {e}")))?;
        Ok(Some(SpeedChoice { speed: found, settings, text: text.clone() }))
    }

    fn cores(&self, given: &Option<Spanned<String>>) -> Result<Option<CoresChoice>, ConfigError> {
        let Some(word) = given else { return Ok(None) };
        let (at, text) = (word.span().start, word.get_ref());
        match CoresSpec::parse(text) {
            Ok(spec) => Ok(Some(CoresChoice { spec, text: text.clone() })),
            Err(ChoiceError::Settings(e)) => Err(self.at(at, format!("{text}: {e}"))),
            Err(ChoiceError::Unknown) => {
                let near = nearest(text, cores::ALL.iter().map(|c| c.name));
                Err(self.at(at, format!("'{text}' is no core policy; did you mean {near}?")))
            }
        }
    }

    fn duration(&self, given: &Option<Spanned<String>>, or: u64, least: u64) -> Result<u64, ConfigError> {
        let Some(word) = given else { return Ok(or) };
        let at = word.span().start;
        let ns = duration_ns(word.get_ref(), "s").map_err(|e| self.at(at, e))?;
        match ns >= least {
            true => Ok(ns),
            false => Err(self.at(
                at,
                format!("{} is too often; expected at least {} ms", word.get_ref(), least / 1_000_000),
            )),
        }
    }

    fn share(&self, given: &Spanned<String>) -> Result<f64, ConfigError> {
        share(given.get_ref()).map_err(|e| self.at(given.span().start, e))
    }

    fn percent(&self, given: &Spanned<u32>) -> Result<u32, ConfigError> {
        match *given.get_ref() {
            percent @ 0..=100 => Ok(percent),
            other => {
                Err(self.at(given.span().start, format!("{other} is no charge; expected 0 to 100 percent")))
            }
        }
    }

    fn between(&self, given: &Spanned<String>) -> Result<Condition, ConfigError> {
        let minute = |text: &str| {
            let (h, m) = text.trim().split_once(':')?;
            let (h, m) = (h.parse::<u16>().ok()?, m.parse::<u16>().ok()?);
            (h < 24 && m < 60).then_some(h * 60 + m)
        };
        let ends = given.get_ref().split_once('-').and_then(|(a, b)| Some((minute(a)?, minute(b)?)));
        match ends.filter(|(a, b)| a != b) {
            Some((from, until)) => Ok(Condition::Between(from, until)),
            None => Err(self.at(
                given.span().start,
                format!("'{}'; expected two times of the day, such as 22:00-07:00", given.get_ref()),
            )),
        }
    }

    fn case(&self, table: &WhenTable, profile: usize) -> Result<ProfileCase, ConfigError> {
        let mut when = Vec::new();
        when.extend(table.power.as_ref().map(|power| {
            Condition::Power(match power {
                SourceWord::Mains => SupplySource::Mains,
                SourceWord::Battery => SupplySource::Battery,
            })
        }));
        if let Some(percent) = &table.charge_below {
            when.push(Condition::ChargeBelow(self.percent(percent)?));
        }
        if let Some(percent) = &table.charge_above {
            when.push(Condition::ChargeAbove(self.percent(percent)?));
        }
        if let Some(name) = &table.program {
            // The kernel keeps 15 bytes of a name.
            let ok = !name.get_ref().is_empty() && !name.get_ref().contains('/');
            if !ok {
                return Err(
                    self.at(name.span().start, "expected a program's name without its folder, such as steam")
                );
            }
            when.push(Condition::Program(name.get_ref().clone()));
        }
        if let Some(celsius) = &table.hotter_than {
            if !(0.0..=150.0).contains(celsius.get_ref()) {
                return Err(self.at(celsius.span().start, "expected 0 to 150 degrees Celsius"));
            }
            when.push(Condition::HotterThan(*celsius.get_ref()));
        }
        if let Some(share) = &table.busier_than {
            when.push(Condition::BusierThan(self.share(share)?));
        }
        if let Some(share) = &table.idler_than {
            when.push(Condition::IdlerThan(self.share(share)?));
        }
        if let Some(between) = &table.between {
            when.push(self.between(between)?);
        }
        if when.is_empty() {
            return Err(self.at(
                profile,
                "a 'when' of this profile has no condition; expected power, charge_below, charge_above, program, hotter_than, \
                 busier_than, idler_than or between",
            ));
        }
        let wish = Wish {
            bias: table.bias,
            settings: self.settings(&table.settings)?,
            speed: self.speed(&table.speed)?,
            cores: self.cores(&table.cores)?,
        };
        Ok(ProfileCase { when, wish })
    }

    fn profile(&self, name: &Spanned<String>, table: &ProfileTable) -> Result<Profile, ConfigError> {
        let at = name.span().start;
        check_name(name.get_ref()).map_err(|e| self.at(at, e))?;
        let base = Wish {
            bias: table.bias,
            settings: self.settings(&table.settings)?,
            speed: self.speed(&table.speed)?,
            cores: self.cores(&table.cores)?,
        };
        Ok(Profile {
            name: name.get_ref().clone(),
            summary: one_line(&table.summary),
            ppd: Ppd::ALL.into_iter().find(|p| p.name() == name.get_ref()).unwrap_or(table.ppd),
            base,
            cases: table.when.iter().map(|w| self.case(w, at)).collect::<Result<_, _>>()?,
        })
    }

    fn options(
        &self,
        table: &DaemonTable,
        profiles: &BTreeMap<String, Profile>,
    ) -> Result<DaemonOptions, ConfigError> {
        let defaults = DaemonOptions::default();
        let known = |name: &Spanned<String>| match profiles.contains_key(name.get_ref()) {
            true => Ok(name.get_ref().clone()),
            false => {
                let near = nearest(name.get_ref(), profiles.keys().map(String::as_str));
                let text = format!("no profile '{}'; did you mean {near}?", name.get_ref());
                Err(self.at(name.span().start, text))
            }
        };
        let default = table.default.as_ref().map(known).transpose()?.unwrap_or(defaults.default);
        let prove = match &table.prove {
            Some(word) if word.get_ref() == "untouched" => Some(Turn::Untouched),
            given => given.as_ref().map(known).transpose()?.map(Turn::Profile),
        };
        let absolute = |path: &Spanned<PathBuf>| match path.get_ref().is_absolute() {
            true => Ok(path.get_ref().clone()),
            false => Err(self.at(path.span().start, "expected a path from the root, beginning with /")),
        };
        Ok(DaemonOptions {
            default,
            foreign: table.foreign.unwrap_or_default(),
            settle_ns: self.duration(&table.settle, defaults.settle_ns, 50_000_000)?,
            look_ns: self.duration(&table.look, defaults.look_ns, 1_000_000_000)?,
            textfile: table.textfile.as_ref().map(absolute).transpose()?,
            listen: table.listen.as_ref().map(|l| self.listen(l)).transpose()?,
            record: table.record.as_ref().map(absolute).transpose()?,
            prove,
            prove_ns: self.duration(&table.prove_for, defaults.prove_ns, 600_000_000_000)?,
        })
    }

    fn listen(&self, given: &Spanned<String>) -> Result<Listen, ConfigError> {
        let text = given.get_ref();
        let bad = || {
            self.at(
                given.span().start,
                format!("'{text}'; expected 127.0.0.1:PORT or unix:/PATH (other addresses are not served)"),
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return Some(PathBuf::from(path)).filter(|p| p.is_absolute()).map(Listen::Unix).ok_or_else(bad);
        }
        let port = ["127.0.0.1:", "localhost:"].iter().find_map(|host| text.strip_prefix(host));
        port.and_then(|p| p.parse().ok()).filter(|p| *p > 0).map(Listen::Loopback).ok_or_else(bad)
    }
}

/// Names go to files, terminals and buses.
///
/// # Errors
/// One line.
pub fn check_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match !name.is_empty() && name.len() <= 64 && name.chars().all(fine) && !name.starts_with(['.', '-']) {
        true => Ok(()),
        false => {
            Err(format!("'{}' is no name of a profile; expected letters, digits, - and _", one_line(name)))
        }
    }
}

impl Config {
    /// What is built in.
    pub fn builtin() -> Config {
        // A test reads it: it cannot be wrong.
        Config::parse("builtin.toml", BUILTIN, Config::default()).unwrap_or_default()
    }

    /// A file over what is built in.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn from_text(file: &str, text: &str) -> Result<Config, ConfigError> {
        Config::parse(file, text, Config::builtin())
    }

    fn parse(file: &str, text: &str, under: Config) -> Result<Config, ConfigError> {
        let reader = ConfigReader { file, text };
        let tables = reader.file()?;
        let mut profiles = under.profiles;
        for (name, table) in &tables.profile {
            profiles.insert(name.get_ref().clone(), reader.profile(name, table)?);
        }
        let options = reader.options(&tables.daemon, &profiles)?;
        Ok(Config { profiles, options })
    }

    /// Reads files, each over those before it; those that are not there say nothing.
    ///
    /// # Errors
    /// A file that cannot be read, or its first mistake.
    pub fn read(files: &[PathBuf]) -> Result<Config, ConfigError> {
        let mut config = Config::builtin();
        for file in files {
            let Some(text) = text_of(file)? else { continue };
            let options = config.options.clone();
            let has_options = |t: &str| t.parse::<toml::Table>().is_ok_and(|t| t.contains_key("daemon"));
            let next = Config::parse(&file.display().to_string(), &text, config)?;
            config = match has_options(&text) {
                true => next,
                false => Config { options, ..next },
            };
        }
        Ok(config)
    }

    /// A profile by its name.
    ///
    /// # Errors
    /// One line with the nearest name.
    pub fn profile(&self, name: &str) -> Result<&Profile, String> {
        self.profiles.get(name).ok_or_else(|| {
            let near = nearest(name, self.profiles.keys().map(String::as_str));
            format!("no profile '{}'; did you mean {near}? ('wattwise profile list')", one_line(name))
        })
    }
}

fn text_of(file: &Path) -> Result<Option<String>, ConfigError> {
    use std::io::Read as _;
    let wrong =
        |message: String| Err(ConfigError { file: file.display().to_string(), line: 0, column: 0, message });
    match std::fs::File::open(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => wrong(format!("{e}; expected a file of profiles")),
        Ok(open) => {
            let mut text = String::new();
            match open.take(MOST_BYTES + 1).read_to_string(&mut text) {
                Ok(n) if n as u64 > MOST_BYTES => {
                    wrong("is larger than 1 MiB; expected a file of profiles".into())
                }
                Ok(_) => Ok(Some(text)),
                Err(e) => wrong(format!("{e}; expected text (UTF-8)")),
            }
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
