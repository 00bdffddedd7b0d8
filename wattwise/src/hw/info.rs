//! Everything that a machine says about its power states, in one reading.

use super::cpufreq::Cpufreq;
use super::cpuidle::Cpuidle;
use super::cpus::CpuSet;
use super::found::Found;
use super::power::{self, Sensors, Supply, Uncore, Zone};
use super::root::{Root, text};
use super::topology::Topology;
use super::writers::{self, Writer};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: &str = "wattwise.info/1";

/// A machine's power states.
#[derive(Debug, Clone, Serialize)]
pub struct Info {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Which machine: this one, a capture, an emulated one.
    pub machine: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// CPUs, cores, packages.
    pub topology: Topology,
    /// P-states.
    pub cpufreq: Cpufreq,
    /// C-states.
    pub cpuidle: Cpuidle,
    /// Energy-performance bias, by CPUs that share a value.
    pub energy_performance_bias: Found<Vec<(CpuSet, u32)>>,
    /// Energy counters and power limits.
    pub energy: Found<Vec<Zone>>,
    /// Uncore speeds.
    pub uncore: Found<Vec<Uncore>>,
    /// Temperatures, power sensors, fans.
    pub sensors: Sensors,
    /// Battery and mains.
    pub supply: Supply,
    /// The firmware's profile and those that may be chosen.
    pub platform_profile: Option<(String, Vec<String>)>,
    /// Programs that write these settings.
    pub writers: Vec<Writer>,
}

impl Info {
    /// Reads it all.
    pub fn read(root: &dyn Root) -> Info {
        let topology = Topology::read(root);
        Info {
            schema: SCHEMA,
            machine: root.describe(),
            kernel: text(root, "proc/sys/kernel/osrelease"),
            cpufreq: Cpufreq::read(root),
            cpuidle: Cpuidle::read(root, &topology),
            energy_performance_bias: power::energy_performance_bias(root, &topology.online),
            energy: power::zones(root),
            uncore: power::uncores(root),
            sensors: power::sensors(root),
            supply: power::supply(root),
            platform_profile: text(root, "sys/firmware/acpi/platform_profile").map(|now| {
                let choices = text(root, "sys/firmware/acpi/platform_profile_choices").unwrap_or_default();
                (now, choices.split_whitespace().map(str::to_owned).collect())
            }),
            writers: writers::running(root),
            topology,
        }
    }

    /// Leaves out what is about other CPUs.
    pub fn only(mut self, cpus: &CpuSet) -> Info {
        self.topology.cpus.retain(|c| cpus.contains(c.cpu));
        if let Some(policies) = &mut self.cpufreq.policies.value {
            policies.retain(|p| !p.affected.and(cpus).is_empty());
        }
        if let Some(states) = &mut self.cpuidle.cpus.value {
            states.retain(|c| cpus.contains(c.cpu));
        }
        if let Some(groups) = &mut self.energy_performance_bias.value {
            groups.iter_mut().for_each(|(set, _)| *set = set.and(cpus));
            groups.retain(|(set, _)| !set.is_empty());
        }
        self
    }
}
