//! A machine file as it is written; `wattwise_model::machine::file` says what its keys mean.

use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(crate) struct MachineFile {
    pub(crate) name: String,
    pub(crate) summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cpu_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) state: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) topology: Sourced<Topology>,
    pub(crate) kind: Vec<Sourced<Kind>>,
    pub(crate) package: Sourced<Package>,
    pub(crate) thermal: Sourced<Thermal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Sourced<Memory>>,
    pub(crate) platform: Sourced<Platform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) power_limit: Option<Sourced<PowerLimit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) draws: Option<Draws>,
}

/// Machines that one calibration allows: their figures hang together.
#[derive(Serialize)]
pub(crate) struct Draws {
    /// Paths of figures.
    pub(crate) figures: Vec<String>,
    /// By what each figure is multiplied, a list for each machine.
    pub(crate) factors: Vec<Vec<f64>>,
}

/// A table and where its figures come from.
#[derive(Serialize)]
pub(crate) struct Sourced<T> {
    #[serde(flatten)]
    pub(crate) table: T,
    #[serde(flatten)]
    pub(crate) origin: Origin,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sources: BTreeMap<String, Origin>,
}

impl<T> Sourced<T> {
    pub(crate) fn new(table: T, origin: Origin) -> Sourced<T> {
        Sourced { table, origin, sources: BTreeMap::new() }
    }

    /// With one figure of another origin.
    pub(crate) fn but(mut self, figure: &str, origin: Origin) -> Sourced<T> {
        self.sources.insert(figure.to_owned(), origin);
        self
    }
}

/// How far a figure may be off.
#[derive(Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Range {
    /// `+-10%`.
    Percent(String),
    /// The lowest and the highest that it may be.
    Ends([f64; 2]),
}

#[derive(Clone, Serialize)]
pub(crate) struct Origin {
    pub(crate) source: String,
    pub(crate) confidence: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<Range>,
}

impl Origin {
    /// As the kernel of this machine says.
    pub(crate) fn kernel(source: &str) -> Origin {
        Origin { source: source.into(), confidence: "kernel-table", range: None }
    }

    /// A guess that may be off by so many per cent.
    pub(crate) fn guess(source: String, percent: u32) -> Origin {
        Origin { source, confidence: "guess", range: Some(Range::Percent(format!("+-{percent}%"))) }
    }

    /// A guess that takes no figure of its own.
    pub(crate) fn word(source: &str) -> Origin {
        Origin { source: source.into(), confidence: "guess", range: None }
    }
}

#[derive(Serialize)]
pub(crate) struct Topology {
    pub(crate) packages: usize,
    pub(crate) clocks: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) llc: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) cores: usize,
    pub(crate) threads: usize,
    pub(crate) ipc: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) smt_throughput: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) smt_power: Vec<f64>,
    pub(crate) speeds: Sourced<Speeds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boost: Option<Sourced<Boost>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transition: Option<Sourced<Transition>>,
    pub(crate) idle: Sourced<Idle>,
}

#[derive(Serialize)]
pub(crate) struct Speeds {
    pub(crate) mhz: Vec<f64>,
    pub(crate) busy_w: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_mhz: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Boost {
    pub(crate) max_mhz: Vec<f64>,
}

#[derive(Serialize)]
pub(crate) struct Transition {
    pub(crate) delay_us: f64,
    pub(crate) stall_us: f64,
    pub(crate) overlap: &'static str,
}

#[derive(Serialize)]
pub(crate) struct Idle {
    pub(crate) states: Vec<IdleState>,
}

#[derive(Serialize)]
pub(crate) struct IdleState {
    pub(crate) name: String,
    pub(crate) latency_us: f64,
    pub(crate) target_us: f64,
    /// The time to leave, where it was measured; the latency is what the kernel goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_us: Option<f64>,
    pub(crate) watts: f64,
}

#[derive(Serialize)]
pub(crate) struct Package {
    pub(crate) uncore_w: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) idle: Vec<PackageState>,
}

#[derive(Serialize)]
pub(crate) struct PackageState {
    pub(crate) name: String,
    pub(crate) needs: String,
    pub(crate) watts: f64,
    pub(crate) exit_us: f64,
}

#[derive(Serialize)]
pub(crate) struct Thermal {
    pub(crate) ambient_c: f64,
    pub(crate) c_per_w: f64,
    pub(crate) tau_s: f64,
    pub(crate) critical_c: f64,
    #[serde(skip_serializing_if = "nothing")]
    pub(crate) leakage_per_c: f64,
}

fn nothing(figure: &f64) -> bool {
    *figure == 0.0
}

#[derive(Serialize)]
pub(crate) struct Memory {
    pub(crate) watts: f64,
    pub(crate) busy_w: f64,
}

#[derive(Serialize)]
pub(crate) struct PowerLimit {
    pub(crate) long_w: f64,
    pub(crate) tau_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) short_w: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Platform {
    pub(crate) watts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) battery_wh: Option<f64>,
    pub(crate) idle_policy: String,
    pub(crate) system: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) governors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_policy: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) replaced_policies: Vec<String>,
}
