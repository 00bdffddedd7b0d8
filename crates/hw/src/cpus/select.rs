//! Which CPUs a command is about.

use crate::cpus::set::{BadList, CpuSet};
use crate::cpus::topology::{CoreKind, Topology};

/// `--cpus`, `--cores`, `--packages`, `--type`: a CPU must satisfy each that was given.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// CPUs, such as 0-3,8, or all
    pub cpus: Option<String>,
    /// Cores, numbered through over the machine as `info cpus` shows them
    pub cores: Option<String>,
    /// Packages (sockets)
    pub packages: Option<String>,
    /// Kind of core: P, E or LP-E
    pub kind: Option<String>,
}

/// A selection that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Not a list.
    #[error("--{flag} {error}")]
    List {
        /// Which flag.
        flag: &'static str,
        /// What is wrong.
        error: BadList,
    },
    /// Not a kind of core.
    #[error("--type '{0}' is no kind of core; expected P, E or LP-E")]
    Kind(String),
    /// A CPU that the machine does not have.
    #[error("--cpus {asked}: this machine has no CPU {missing}; it has {present}")]
    Absent {
        /// As asked.
        asked: String,
        /// The CPUs that are not there.
        missing: CpuSet,
        /// Those that are.
        present: CpuSet,
    },
    /// A CPU that is switched off.
    #[error(
        "--cpus {asked}: CPU {offline} is offline; bring it up first with 'wattwise set --cpus {offline} --online on'"
    )]
    Offline {
        /// As asked.
        asked: String,
        /// Those that are off.
        offline: CpuSet,
    },
    /// Nothing is left.
    #[error("{asked} matches no CPU; this machine has {has}")]
    Nothing {
        /// The flags.
        asked: String,
        /// What there is.
        has: String,
    },
}

impl Selector {
    /// Whether nothing was asked for.
    pub fn is_all(&self) -> bool {
        self.cores.is_none()
            && self.packages.is_none()
            && self.kind.is_none()
            && self.cpus.as_deref().is_none_or(|c| c == "all")
    }

    /// The CPUs that run and that are meant. `offline_too` also takes those that are switched off, for
    /// switching them on.
    pub fn resolve(&self, topology: &Topology, offline_too: bool) -> Result<CpuSet, SelectError> {
        let list = |flag: &'static str, given: &Option<String>| match given.as_deref() {
            None | Some("all") => Ok(None),
            Some(list) => CpuSet::parse(list).map(Some).map_err(|error| SelectError::List { flag, error }),
        };
        let (cpus, cores, packages) =
            (list("cpus", &self.cpus)?, list("cores", &self.cores)?, list("packages", &self.packages)?);
        let kind = match &self.kind {
            Some(name) => Some(CoreKind::parse(name).ok_or_else(|| SelectError::Kind(name.clone()))?),
            None => None,
        };
        if let Some(cpus) = &cpus {
            let asked = || self.cpus.clone().unwrap_or_default();
            let missing = cpus.without(&topology.present);
            if !missing.is_empty() {
                return Err(SelectError::Absent {
                    asked: asked(),
                    missing,
                    present: topology.present.clone(),
                });
            }
            let offline = cpus.without(&topology.online);
            if !offline.is_empty() && !offline_too {
                return Err(SelectError::Offline { asked: asked(), offline });
            }
        }
        let chosen: CpuSet = topology
            .cpus
            .iter()
            .filter(|c| c.online || offline_too)
            .filter(|c| cpus.as_ref().is_none_or(|set| set.contains(c.cpu)))
            .filter(|c| cores.as_ref().is_none_or(|set| c.core.is_some_and(|core| set.contains(core))))
            .filter(|c| packages.as_ref().is_none_or(|set| c.package.is_some_and(|p| set.contains(p as u32))))
            .filter(|c| kind.is_none_or(|k| c.kind == Some(k)))
            .map(|c| c.cpu)
            .collect();
        if chosen.is_empty() {
            return Err(SelectError::Nothing { asked: self.to_string(), has: has(topology) });
        }
        Ok(chosen)
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = [
            ("cpus", &self.cpus),
            ("cores", &self.cores),
            ("packages", &self.packages),
            ("type", &self.kind),
        ];
        let given: Vec<String> =
            flags.iter().filter_map(|(flag, v)| v.as_ref().map(|v| format!("--{flag} {v}"))).collect();
        f.write_str(&if given.is_empty() { "--cpus all".to_owned() } else { given.join(" ") })
    }
}

fn has(t: &Topology) -> String {
    let kinds: Vec<String> =
        t.kinds().iter().map(|(kind, cpus)| format!("{kind} cores on CPUs {cpus}")).collect();
    let packages: CpuSet = t.cpus.iter().filter_map(|c| c.package).map(|p| p as u32).collect();
    match t.present.is_empty() {
        true => "no CPU that sysfs lists".to_owned(),
        false => format!(
            "CPUs {}, {} cores, packages {packages}, {}",
            t.present,
            t.count(|c| c.core),
            kinds.join(", ")
        ),
    }
}
