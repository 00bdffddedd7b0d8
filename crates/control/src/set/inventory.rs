//! What planning looks at.

use wattwise_hw::cpus::topology::Topology;
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_hw::states::cpuidle::Cpuidle;

/// What a machine has that settings change.
pub struct Inventory {
    /// CPUs.
    pub topology: Topology,
    /// P-states.
    pub cpufreq: Cpufreq,
    /// C-states.
    pub cpuidle: Cpuidle,
}

impl Inventory {
    /// Reads it.
    pub fn read(root: &dyn Root) -> Inventory {
        let topology = Topology::read(root);
        let cpuidle = Cpuidle::read(root, &topology);
        Inventory { cpufreq: Cpufreq::read(root), cpuidle, topology }
    }
}
