//! What waking up costs, by C-state: the result. How it is measured: [`wattwise_control::delays::wake`].

use serde::{Deserialize, Serialize};
use wattwise_figure::Spread;

/// Version of the result.
pub const SCHEMA: &str = "wattwise.bench-wake/1";

/// Wake-ups with one deepest C-state allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeLatency {
    /// The deepest allowed; none is the machine as it is.
    pub state: Option<String>,
    /// Its exit latency as the kernel's table has it, us.
    pub latency_us: Option<u64>,
    /// Of a sleep's end, us.
    pub timer_us: Option<Spread>,
    /// Of a wake-up by another CPU, us; none with a single CPU.
    pub cross_us: Option<Spread>,
    /// Times that the CPU entered each state meanwhile: (state, entries).
    pub entered: Vec<(String, u64)>,
}

/// The experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeUps {
    /// [`SCHEMA`].
    pub schema: String,
    /// Processor, CPUs, kernel.
    pub machine: String,
    /// The CPU that sleeps, and the one that wakes it.
    pub cpus: (usize, Option<usize>),
    /// How long it sleeps each time, us.
    pub sleep_us: u64,
    /// By deepest C-state allowed.
    pub states: Vec<WakeLatency>,
}
