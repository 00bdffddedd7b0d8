//! Drivers of the speed, as machine files name them.

/// A driver of the speed.
#[derive(Debug, PartialEq, Eq)]
pub struct SpeedDriver {
    /// Its name in machine files; in active mode with what makes it choose by itself.
    pub name: &'static str,
    /// The speed policy that it follows by itself; none where governors ask it for speeds.
    pub own: Option<&'static str>,
    /// The speed policy that it has in active mode, where `--driver-mode` changes that.
    pub active: Option<&'static str>,
}

const fn active(name: &'static str, own: &'static str) -> SpeedDriver {
    SpeedDriver { name, own: Some(own), active: Some(own) }
}
const fn governed(name: &'static str) -> SpeedDriver {
    SpeedDriver { name, own: None, active: None }
}

/// The drivers that machine files may name.
pub static DRIVERS: &[SpeedDriver] = &[
    active("intel_pstate-hwp", "hwp"),
    active("intel_pstate", "intel_pstate"),
    SpeedDriver { name: "intel_cpufreq-hwp", own: None, active: Some("hwp") },
    SpeedDriver { name: "intel_cpufreq", own: None, active: Some("intel_pstate") },
    active("amd-pstate-epp", "amd-pstate-epp"),
    SpeedDriver { name: "amd-pstate", own: None, active: Some("amd-pstate-epp") },
    governed("acpi-cpufreq"),
    governed("cpufreq-dt"),
    governed("scmi-cpufreq"),
    governed("speedstep-centrino"),
    governed("est"),
    governed(NO_DRIVER),
];

/// The word of a machine whose system has no say in the speed.
pub const NO_DRIVER: &str = "none";

impl SpeedDriver {
    /// The driver of that name.
    pub fn find(name: &str) -> Option<&'static SpeedDriver> {
        DRIVERS.iter().find(|d| d.name == name)
    }
}
