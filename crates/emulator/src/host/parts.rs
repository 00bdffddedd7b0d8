//! The parts of a machine, as far as its files do not say how they are: CPUs, policies, zones, batteries.

use super::change::UnderWay;
use crate::tree::Id;

#[derive(Debug, Clone)]
pub(crate) struct HostIdleState {
    pub(super) latency_us: u64,
    pub(super) residency_us: u64,
    pub(super) disable: String,
    pub(crate) usage: u64,
    pub(crate) time_ns: u64,
    pub(crate) above: u64,
    pub(crate) below: u64,
    pub(crate) rejected: u64,
    /// What the counters showed when the machine was captured: usage, time in us, above, below.
    pub(super) base: [u64; 5],
}

#[derive(Debug, Clone)]
pub(crate) struct HostCpu {
    pub(crate) id: u32,
    pub(crate) online: bool,
    pub(crate) load_permille: u32,
    pub(crate) package: u32,
    pub(super) core: (u32, u32),
    pub(super) policy: Option<usize>,
    pub(crate) busy_ns: u64,
    pub(crate) idle_ns: u64,
    /// The captured line of /proc/stat, in ticks.
    pub(super) ticks: [u64; 10],
    pub(crate) states: Vec<HostIdleState>,
    /// What was taken out of the tree with the CPU.
    pub(super) aside: Vec<(String, Id)>,
    pub(crate) aperf: u64,
    pub(crate) mperf: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct HostPolicy {
    pub(crate) number: u32,
    pub(crate) folder: String,
    pub(super) related: Vec<u32>,
    /// What users asked for.
    pub(super) asked: (u32, u32),
    /// What the hardware has, with turbo or boost.
    pub(super) hw: (u32, u32),
    pub(super) nominal: u32,
    pub(super) setspeed: u32,
    pub(crate) cur: u32,
    pub(super) under_way: Option<UnderWay>,
    /// Nanoseconds at each level of the statistics.
    pub(crate) residency: Vec<(u32, u64)>,
    /// What the statistics showed at the start, in their units of 10 ms.
    pub(super) base: Vec<u64>,
    pub(crate) transitions: u64,
    pub(super) matrix: Vec<u64>,
    /// The preference to return to when the performance governor leaves.
    pub(super) preference: Option<String>,
    /// Whether its driver is loaded.
    pub(super) aside: Option<Id>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostDomain {
    Package,
    Core,
    Uncore,
    Dram,
    Platform,
}

#[derive(Debug, Clone)]
pub(crate) struct Zone {
    pub(super) folder: String,
    pub(super) domain: HostDomain,
    pub(super) package: u32,
    /// Into how many the kernel divides its package: each shows its part.
    pub(super) dies: u64,
    pub(crate) range_uj: u64,
    pub(crate) energy_uj: u64,
    /// Microwatt-nanoseconds short of the next microjoule.
    pub(super) rest: u64,
    /// Everything since the start, without wraps.
    pub(crate) total_uj: u128,
}

#[derive(Debug, Clone)]
pub(crate) struct HostBattery {
    pub(super) full: u64,
    /// Whether it counts energy (uWh) or charge (uAh).
    pub(super) energy: bool,
    /// Gauges of some makers count what is drawn as negative, those of others what is charged: on mains, or without.
    pub(super) negative_on_mains: Option<bool>,
    pub(super) voltage_uv: u64,
    /// What is left, in thousandths of what is shown.
    pub(super) left_milli: u64,
    pub(super) shown: u64,
    pub(super) shown_uw: u64,
    pub(super) since_ns: u64,
    /// Microwatt-nanoseconds drawn since the last renewal.
    pub(super) drawn: u128,
}

impl HostBattery {
    /// As its gauge shows a flow of that size.
    pub(super) fn signed(&self, size: u64, mains: bool) -> i64 {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        if self.negative_on_mains == Some(mains) { -size } else { size }
    }
}

/// A file that lists CPUs, and shrinks when one of them goes.
pub(super) struct CpuGroup {
    pub(super) file: Id,
    pub(super) cpus: Vec<u32>,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    List,
    Mask,
    Words,
}

/// What an idle governor makes of a CPU's load.
#[derive(Default)]
pub(crate) struct IdleChoice {
    /// The state, by its place in the CPU's list; none where it has none.
    pub(crate) deepest: Option<usize>,
    /// A deeper one is open.
    pub(super) deeper: bool,
    /// Between two wake-ups.
    pub(super) interval_us: u64,
    /// Wake-ups.
    pub(super) wakes: u64,
}
