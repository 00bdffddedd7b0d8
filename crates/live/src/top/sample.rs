//! One sample, as values.

use serde::{Deserialize, Serialize};

/// Version of the sample.
pub const SCHEMA: &str = "wattwise.top/1";

/// The policy in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InForce {
    /// The driver of the speed.
    pub driver: Option<String>,
    /// Its governor; several where CPUs differ.
    pub governors: Vec<String>,
    /// Energy-performance preferences; several where CPUs differ.
    pub epps: Vec<String>,
    /// Lowest and highest speed that may be chosen, kHz.
    pub limits_khz: Option<(u64, u64)>,
    /// Whether boost is on.
    pub boost: Option<bool>,
    /// The firmware's platform profile.
    pub profile: Option<String>,
    /// Governor of the C-states.
    pub idle_governor: Option<String>,
    /// Why it is in force, where a daemon says so.
    pub why: Option<String>,
}

/// One CPU over a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuSample {
    /// Its number.
    pub cpu: u32,
    /// Its kind of core, on hybrids.
    pub kind: Option<String>,
    /// Speed that the kernel reports, kHz.
    pub khz: Option<u64>,
    /// Share of the window at work.
    pub busy: Option<f64>,
    /// Share of the window in each C-state, in the order of [`Sample::states`].
    pub idle: Vec<f64>,
    /// Wake-ups from C-states in a second.
    pub wakeups: Option<f64>,
}

/// One domain of energy over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DomainSample {
    /// psys, package-0, core-0, dram-0. They lie in each other: never added.
    pub name: String,
    /// Mean power, W.
    pub watts: f64,
}

/// One program over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSample {
    /// Process.
    pub pid: u32,
    /// Its name, as it gives itself.
    pub name: String,
    /// Sleeps of its threads in a second: each ends in a wake-up.
    pub wakeups: f64,
    /// Share of one CPU.
    pub busy: f64,
}

/// A machine over a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Which machine: its processor.
    pub machine: String,
    /// When the window ended: s since the first look.
    pub at_s: f64,
    /// Its length, s.
    pub window_s: f64,
    /// The policy in force.
    pub policy: InForce,
    /// Sum over the domains that lie in no other, W.
    pub watts: Option<f64>,
    /// How that came about, or why there is none.
    pub energy: String,
    /// Each domain.
    pub domains: Vec<DomainSample>,
    /// Hottest sensor, °C.
    pub celsius: Option<f64>,
    /// What feeds the machine: mains or battery.
    pub power_from: String,
    /// Charge of the batteries, of 1.
    pub charge: Option<f64>,
    /// Names of the C-states, shallow first.
    pub states: Vec<String>,
    /// Each CPU that is online.
    pub cpus: Vec<CpuSample>,
    /// Programs by their wake-ups, the most first.
    pub tasks: Vec<TaskSample>,
    /// Why there are none.
    pub tasks_missing: Option<String>,
    /// What this program used itself, as a share of one CPU.
    pub own: Option<f64>,
}
