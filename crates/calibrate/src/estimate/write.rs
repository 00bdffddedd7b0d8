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
    pub(crate) topology: Sourced<WrittenTopology>,
    pub(crate) kind: Vec<Sourced<WrittenKind>>,
    pub(crate) package: Sourced<Package>,
    pub(crate) thermal: Sourced<WrittenThermal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Sourced<WrittenMemory>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory_clock: Option<Sourced<WrittenMemoryClock>>,
    pub(crate) platform: Sourced<WrittenPlatform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) power_limit: Option<Sourced<PowerLimit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epp_ceiling: Option<Sourced<WrittenEppCeiling>>,
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
    pub(crate) origin: WrittenOrigin,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sources: BTreeMap<String, WrittenOrigin>,
}

impl<T> Sourced<T> {
    pub(crate) fn new(table: T, origin: WrittenOrigin) -> Sourced<T> {
        Sourced { table, origin, sources: BTreeMap::new() }
    }

    /// With one figure of another origin.
    pub(crate) fn but(mut self, figure: &str, origin: WrittenOrigin) -> Sourced<T> {
        self.sources.insert(figure.to_owned(), origin);
        self
    }
}

/// How far a figure may be off.
#[derive(Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum WrittenRange {
    /// `+-10%`.
    Percent(String),
    /// The lowest and the highest that it may be.
    Ends([f64; 2]),
}

#[derive(Clone, Serialize)]
pub(crate) struct WrittenOrigin {
    pub(crate) source: String,
    pub(crate) confidence: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<WrittenRange>,
}

impl WrittenOrigin {
    /// As the kernel of this machine says.
    pub(crate) fn kernel(source: &str) -> WrittenOrigin {
        WrittenOrigin { source: source.into(), confidence: "kernel-table", range: None }
    }

    /// A guess that may be off by so many per cent.
    pub(crate) fn guess(source: String, percent: u32) -> WrittenOrigin {
        WrittenOrigin {
            source,
            confidence: "guess",
            range: Some(WrittenRange::Percent(format!("+-{percent}%"))),
        }
    }

    /// A guess between two ends.
    pub(crate) fn between(source: &str, low: f64, high: f64) -> WrittenOrigin {
        let range = Some(WrittenRange::Ends([low, high]));
        WrittenOrigin { source: source.into(), confidence: "guess", range }
    }

    /// A guess that takes no figure of its own.
    pub(crate) fn word(source: &str) -> WrittenOrigin {
        WrittenOrigin { source: source.into(), confidence: "guess", range: None }
    }
}

#[derive(Serialize)]
pub(crate) struct WrittenTopology {
    pub(crate) packages: usize,
    pub(crate) clocks: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) llc: Option<usize>,
}

#[derive(Serialize)]
pub(crate) struct WrittenKind {
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
    pub(crate) boost: Option<Sourced<WrittenBoost>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transition: Option<Sourced<WrittenTransition>>,
    pub(crate) idle: Sourced<WrittenIdle>,
}

#[derive(Serialize)]
pub(crate) struct Speeds {
    pub(crate) mhz: Vec<f64>,
    pub(crate) busy_w: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_mhz: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked_mhz: Vec<f64>,
}

#[derive(Serialize)]
pub(crate) struct WrittenBoost {
    pub(crate) max_mhz: Vec<f64>,
}

#[derive(Serialize)]
pub(crate) struct WrittenTransition {
    pub(crate) delay_us: f64,
    pub(crate) stall_us: f64,
    pub(crate) overlap: &'static str,
}

#[derive(Serialize)]
pub(crate) struct WrittenIdle {
    pub(crate) states: Vec<WrittenIdleState>,
}

#[derive(Serialize)]
pub(crate) struct WrittenIdleState {
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
pub(crate) struct WrittenThermal {
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
pub(crate) struct WrittenMemory {
    pub(crate) watts: f64,
    pub(crate) busy_w: f64,
}

#[derive(Serialize)]
pub(crate) struct WrittenMemoryClock {
    pub(crate) mhz: Vec<f64>,
    pub(crate) watts: f64,
    pub(crate) follows: f64,
    pub(crate) core_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) poll_ms: Option<u32>,
    pub(crate) governor: String,
}

#[derive(Serialize)]
pub(crate) struct PowerLimit {
    pub(crate) long_w: f64,
    pub(crate) tau_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) short_w: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct WrittenEppCeiling {
    pub(crate) from: f64,
    pub(crate) at_255: f64,
}

#[derive(Serialize)]
pub(crate) struct WrittenPlatform {
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
