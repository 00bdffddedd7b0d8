//! A policy as people write it: `burst:busy=3,idle=3`, `schedutil+teo`, `performance+fixed:depth=1+pack`, or a TOML file.
//!
//! `SPEED[:key=value,...][+IDLE[:key=value,...]][+PLACEMENT][+CORES]`: a speed policy, then an idle policy
//! where the machine's own is not wanted, then a placement. A `+` only separates when what follows
//! it is a known word, since `powerd++` has its own.

use std::path::Path;
use wattwise_figure::nearest;
use wattwise_policy::chosen::{ChoiceError, CoresSpec, IdleSpec};
use wattwise_policy::{Param, ParamKind, Settings, SpecError, Speed, cores, idle, speed};
use wattwise_sim::placement::{self, Placement};

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
    /// As it can be given again.
    pub text: String,
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
        "--policy {given}: no policy of that name; did you mean '{nearest}'? ('wattwise policies' lists them)"
    )]
    Unknown {
        /// What was written.
        given: String,
        /// The most similar name.
        nearest: String,
    },
    /// Parameters that are wrong.
    #[error("--policy {given}: {source}")]
    Settings {
        /// What was written.
        given: String,
        /// What is wrong with it.
        source: SpecError,
    },
    /// A second word of a kind, or a word in the wrong place.
    #[error("--policy {given}: '{word}' is one part too many; expected SPEED[+IDLE][+PLACEMENT][+CORES]")]
    Twice {
        /// What was written.
        given: String,
        /// The word.
        word: String,
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

/// Words for placements, with what each names and a line of help.
pub fn placements() -> impl Iterator<Item = (&'static str, &'static Placement, &'static str)> {
    placement::ALL.iter().flat_map(|p| p.words().map(|(word, help)| (word, *p, help)))
}

/// The word before a part's parameters.
fn word(part: &str) -> &str {
    part.split_once(':').map_or(part, |(name, _)| name)
}

/// Cuts at each `+` that a known idle policy, placement or core policy follows.
fn parts(text: &str) -> Vec<&str> {
    let mut cut = vec![0];
    for (at, _) in text.match_indices('+') {
        let rest = &text[at + 1..];
        let end = rest.find([':', '+']).unwrap_or(rest.len());
        let name = &rest[..end];
        if idle::find(name).is_some() || placement::find(name).is_some() || cores::find(name).is_some() {
            cut.push(at + 1);
        }
    }
    let ends = cut.iter().skip(1).map(|c| c - 1).chain([text.len()]);
    cut.iter().copied().zip(ends).map(|(from, to)| &text[from..to]).collect()
}

impl PolicySpec {
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
        let speed = speed::find(word(all[0])).ok_or_else(|| PolicyError::Unknown {
            given: given(),
            nearest: nearest(word(all[0]), speed::ALL.iter().map(|p| p.name)),
        })?;
        let settings = |params, part: &str| {
            let list = part.split_once(':').map_or("", |(_, list)| list);
            Settings::parse(params, list).map_err(|source| PolicyError::Settings { given: given(), source })
        };
        let mut spec = PolicySpec {
            speed,
            speed_settings: settings(speed.params, all[0])?,
            idle: None,
            placement: None,
            cores: None,
            text: String::new(),
        };
        for part in &all[1..] {
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
                _ => return Err(twice()),
            }
        }
        spec.text = spec.canonical();
        Ok(spec)
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// One line that names the file, what was expected and what to do.
    pub fn read(path: &Path) -> Result<PolicySpec, PolicyError> {
        let name = path.display().to_string();
        let fail = |problem: String| PolicyError::File { path: name.clone(), problem };
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| fail(e.message().to_owned()))?;
        let mut words = Vec::new();
        for key in table.keys() {
            if !["speed", "idle", "placement", "cores"].contains(&key.as_str()) {
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
        PolicySpec::parse(&words.join("+"))
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
        text
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
fn part_text(name: &str, params: &'static [Param], settings: &Settings) -> String {
    let defaults = Settings::defaults(params);
    let changed: Vec<String> = params
        .iter()
        .zip(settings.iter().zip(defaults.iter()))
        .filter(|(_, ((_, now), (_, before)))| now != before)
        .map(|(p, ((name, value), _))| match p.kind {
            ParamKind::Number { .. } => format!("{name}={value}"),
            ParamKind::Choice(words) => format!("{name}={}", words[value as usize]),
        })
        .collect();
    if changed.is_empty() { name.to_owned() } else { format!("{name}:{}", changed.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn plus_signs_of_a_name_do_not_separate() {
        assert_eq!(parts("powerd++"), ["powerd++"]);
        assert_eq!(parts("powerd++:x=1+fixed+pack"), ["powerd++:x=1", "fixed", "pack"]);
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
