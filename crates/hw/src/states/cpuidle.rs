//! C-states: what the kernel's cpuidle offers each CPU, and how long a CPU may take to wake.

use crate::cpus::set::CpuSet;
use crate::cpus::topology::Topology;
use crate::probe::{Mechanism, Probed};
use crate::root::{Root, label, number, text};
use serde::Serialize;
use std::collections::BTreeSet;

const CPUS: &str = "sys/devices/system/cpu";

/// One C-state of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuidleState {
    /// Its index; higher is deeper.
    pub index: u32,
    /// Name, such as `C6`.
    pub name: String,
    /// The driver's words for it.
    pub description: String,
    /// Worst delay of waking from it, us.
    pub latency_us: u64,
    /// The shortest stay that saves energy, us.
    pub residency_us: u64,
    /// Whether a user switched it off.
    pub disabled: bool,
    /// Switched off by the driver until a user turns it on.
    pub off_by_default: bool,
    /// How often it was entered.
    pub usage: u64,
    /// Time in it, us.
    pub time_us: u64,
    /// Entered though a deeper one would have paid.
    pub below: Option<u64>,
    /// Entered though a shallower one would have paid.
    pub above: Option<u64>,
}

impl CpuidleState {
    /// Its name in machine files and on command lines: drivers have names with blanks, such as `Shared Cede` (pseries).
    pub fn plain_name(&self) -> String {
        wattwise_figure::shell::name_of(&self.name)
    }

    /// Whether a user who writes `name` means this one: its name in either spelling, or its index.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.plain_name().eq_ignore_ascii_case(name)
            || self.index.to_string() == name
    }
}

/// One CPU's states and its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuStates {
    /// The CPU.
    pub cpu: u32,
    /// Its states, shallowest first.
    pub states: Vec<CpuidleState>,
    /// The longest wake-up that a user allows, us: none is no limit, 0 keeps the CPU polling.
    pub latency_limit_us: Option<u64>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpuidle {
    /// `intel_idle`, `acpi_idle`, `haltpoll`, …
    pub driver: Option<String>,
    /// The governor.
    pub governor: Option<String>,
    /// Those that may be chosen.
    pub governors: Vec<String>,
    /// Each CPU that runs, or why there are none.
    pub cpus: Probed<Vec<CpuStates>>,
}

impl Cpuidle {
    /// Reads it for the CPUs that run.
    pub fn read(root: &dyn Root, topology: &Topology) -> Cpuidle {
        let at = format!("{CPUS}/cpuidle");
        let word = |file: &str| label(root, &format!("{at}/{file}")).filter(|v| !v.is_empty() && v != "none");
        // Every state has the same files: the first one's are looked up once.
        let files =
            topology.online.iter().find_map(|cpu| root.list(&format!("{CPUS}/cpu{cpu}/cpuidle/state0")).ok());
        let files: BTreeSet<String> = files.unwrap_or_default().into_iter().collect();
        let cpus: Vec<CpuStates> =
            topology.online.iter().map(|cpu| CpuStates::read(root, cpu, &files)).collect();
        let cpus = match cpus.iter().any(|c| !c.states.is_empty()) {
            true => Probed::yes(cpus, Mechanism::Sysfs),
            false => Probed::no(
                Mechanism::Sysfs,
                match word("current_driver") {
                    Some(driver) => format!("driver {driver} offers no states"),
                    None => {
                        "no cpuidle driver: an idle CPU halts (C1) and the kernel keeps no count".to_owned()
                    }
                },
            ),
        };
        Cpuidle {
            driver: word("current_driver"),
            governor: word("current_governor").or_else(|| word("current_governor_ro")),
            governors: word("available_governors")
                .map(|g| g.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            cpus,
        }
    }

    /// The CPUs' states, none where there are none.
    pub fn cpus(&self) -> &[CpuStates] {
        self.cpus.value.as_deref().unwrap_or_default()
    }

    /// CPUs that have the same states, limits and switches, for folding: (CPUs, one of them).
    pub fn folded(&self) -> Vec<(CpuSet, &CpuStates)> {
        let mut groups: Vec<(CpuSet, &CpuStates)> = Vec::new();
        for cpu in self.cpus() {
            match groups.iter_mut().find(|(_, other)| other.same_settings(cpu)) {
                Some((set, _)) => set.insert(cpu.cpu),
                None => groups.push((CpuSet::from_iter([cpu.cpu]), cpu)),
            }
        }
        groups
    }
}

impl CpuStates {
    fn read(root: &dyn Root, cpu: u32, files: &BTreeSet<String>) -> CpuStates {
        let at = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states = root
            .list(&at)
            .unwrap_or_default()
            .iter()
            .filter_map(|name| {
                CpuidleState::read(root, &at, name.strip_prefix("state")?.parse().ok()?, files)
            })
            .collect();
        let latency_limit_us = text(root, &format!("{CPUS}/cpu{cpu}/power/pm_qos_resume_latency_us"))
            .and_then(|v| if v == "n/a" { Some(0) } else { v.parse().ok().filter(|us| *us != 0) });
        CpuStates { cpu, states, latency_limit_us }
    }

    fn same_settings(&self, other: &CpuStates) -> bool {
        let key = |s: &CpuidleState| (s.index, s.name.clone(), s.latency_us, s.residency_us, s.disabled);
        self.latency_limit_us == other.latency_limit_us
            && self.states.len() == other.states.len()
            && self.states.iter().zip(&other.states).all(|(a, b)| key(a) == key(b))
    }
}

impl CpuidleState {
    fn read(root: &dyn Root, at: &str, index: u32, files: &BTreeSet<String>) -> Option<CpuidleState> {
        let at = format!("{at}/state{index}");
        let has = |name: &str| files.contains(name);
        let count = |name: &str| has(name).then(|| number(root, &format!("{at}/{name}"))).flatten();
        Some(CpuidleState {
            index,
            name: label(root, &format!("{at}/name"))?,
            description: has("desc")
                .then(|| label(root, &format!("{at}/desc")))
                .flatten()
                .unwrap_or_default(),
            latency_us: count("latency")?,
            residency_us: count("residency").unwrap_or(0),
            disabled: count("disable") == Some(1),
            off_by_default: has("default_status")
                && text(root, &format!("{at}/default_status")).is_some_and(|s| s == "disabled"),
            usage: count("usage").unwrap_or(0),
            time_us: count("time").unwrap_or(0),
            below: count("below"),
            above: count("above"),
        })
    }
}
