//! Figures that no file of a machine says.

use super::change::Changes;
use std::collections::BTreeMap;

/// Figures that no file of a machine says. A described machine brings its own.
#[derive(Debug, Clone)]
pub(crate) struct Physics {
    /// A package with every CPU idle.
    pub(crate) package_idle_uw: u64,
    /// What a CPU adds at full load and its highest speed; 0: a share of the package's limit.
    pub(crate) cpu_uw: u64,
    /// Memory of a package.
    pub(crate) dram_uw: u64,
    /// Everything else: display, board.
    pub(crate) platform_uw: u64,
    /// The speed without turbo or boost, by policy number.
    pub(crate) nominal_khz: BTreeMap<u32, u32>,
    /// How often the battery's figures are renewed.
    pub(crate) battery_update_ns: u64,
    /// What a mains charger gives the battery.
    pub(crate) charge_uw: u64,
    /// Air around the machine, in thousandths of a degree Celsius.
    pub(crate) ambient_mc: i64,
    /// Rise of a package's temperature per watt, in thousandths of a degree.
    pub(crate) rise_mc_per_w: i64,
    /// Old Arm kernels show another BogoMIPS at each speed.
    pub(crate) bogomips: BTreeMap<u32, String>,
    /// Idle states come and go with their CPU (haltpoll does so).
    pub(crate) idle_leaves_with_cpu: bool,
    /// Whether it is described: then what follows from its settings is made, not captured.
    pub(crate) described: bool,
    /// How long the machine had run at the start.
    pub(crate) uptime_ns: u64,
    /// Registers with fixed values, for every CPU.
    pub(crate) registers: BTreeMap<u32, u64>,
    /// Changes of speed that take their time.
    pub(crate) changes: Changes,
}

impl Default for Physics {
    fn default() -> Physics {
        Physics {
            package_idle_uw: 2_000_000,
            cpu_uw: 0,
            dram_uw: 1_000_000,
            platform_uw: 5_000_000,
            nominal_khz: BTreeMap::new(),
            battery_update_ns: 10_000_000_000,
            charge_uw: 30_000_000,
            ambient_mc: 27_000,
            rise_mc_per_w: 900,
            bogomips: BTreeMap::new(),
            idle_leaves_with_cpu: false,
            described: false,
            uptime_ns: 0,
            registers: BTreeMap::new(),
            changes: Changes::new(),
        }
    }
}
