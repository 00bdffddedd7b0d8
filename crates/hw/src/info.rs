//! Everything that a machine says about its power states, in one reading.

use crate::cpus::cpuid::CpuFacts;
use crate::cpus::set::CpuSet;
use crate::cpus::topology::Topology;
use crate::msr::tstate::Duty;
use crate::msr::{MsrDevice, Registers, Wake};
use crate::probe::{Mechanism, Probed};
use crate::root::{Root, label};
use crate::states::cpufreq::Cpufreq;
use crate::states::cpuidle::Cpuidle;
use crate::states::devfreq::{self, MemoryController};
use crate::states::platform;
use crate::states::platform::{Graphics, SystemIdle};
use crate::states::power;
use crate::states::power::{UncoreSpeed, Zone};
use crate::states::sensors;
use crate::states::sensors::Sensors;
use crate::states::supply;
use crate::states::supply::Supply;
use crate::states::writers;
use crate::states::writers::Writer;
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
    pub energy_performance_bias: Probed<Vec<(CpuSet, u32)>>,
    /// Energy counters and power limits.
    pub energy: Probed<Vec<Zone>>,
    /// The machine's deepest rest.
    pub system_idle: SystemIdle,
    /// Graphics: clocks and rest.
    pub graphics: Vec<Graphics>,
    /// Uncore speeds.
    pub uncore: Probed<Vec<UncoreSpeed>>,
    /// Memory controllers whose clock the kernel sets.
    pub memory: Probed<Vec<MemoryController>>,
    /// Temperatures, power sensors, fans.
    pub sensors: Sensors,
    /// Battery and mains.
    pub supply: Supply,
    /// The firmware's profile and those that may be chosen.
    pub platform_profile: Option<(String, Vec<String>)>,
    /// What only registers tell: clock modulation, HWP, thermal logs. Of one CPU that is awake.
    pub registers: Probed<RegisterView>,
    /// P-states of the firmware's tables, with their control values.
    pub firmware: Probed<String>,
    /// Programs that write these settings.
    pub writers: Vec<Writer>,
}

/// Registers of a CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegisterView {
    /// Whose.
    pub cpu: u32,
    /// Share of the clock that is let through, percent.
    pub clock_percent: Option<f64>,
    /// Each register's fields: (register, field, value, unit, meaning).
    pub fields: Vec<RegisterField>,
}

/// A field of a register as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegisterField {
    /// The register.
    pub register: String,
    /// The field.
    pub field: String,
    /// Its bits as a number.
    pub value: u64,
    /// The same in `unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled: Option<f64>,
    /// The unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What it means.
    pub meaning: String,
}

/// Registers that say what sysfs does not.
const SHOWN: [&str; 23] = [
    "IA32_CLOCK_MODULATION",
    "IA32_PERF_STATUS",
    "IA32_PERF_CTL",
    "IA32_THERM_STATUS",
    "IA32_PACKAGE_THERM_STATUS",
    "IA32_HWP_CAPABILITIES",
    "IA32_HWP_REQUEST",
    "IA32_PKG_HDC_CTL",
    "CPPC_REQ",
    "MSR_TURBO_RATIO_LIMIT",
    "MSR_TURBO_RATIO_LIMIT_CORES",
    "MSR_PKG_CST_CONFIG_CONTROL",
    "MSR_CORE_C3_RESIDENCY",
    "MSR_CORE_C6_RESIDENCY",
    "MSR_CORE_C7_RESIDENCY",
    "MSR_PKG_C2_RESIDENCY",
    "MSR_PKG_C3_RESIDENCY",
    "MSR_PKG_C6_RESIDENCY",
    "MSR_PKG_C7_RESIDENCY",
    "MSR_PKG_C8_RESIDENCY",
    "MSR_PKG_C9_RESIDENCY",
    "MSR_PKG_C10_RESIDENCY",
    "MSR_SMI_COUNT",
];

/// Reads the registers of one CPU: that on which we run, so that no sleeper is woken. On another machine
/// than this one nobody can be woken, and it is the first.
fn registers(root: &dyn Root, topology: &Topology) -> Probed<RegisterView> {
    let none = |why: String| Probed::no(Mechanism::Msr, why);
    let cpu = match root.is_this_machine() {
        true => crate::msr::Awake::new(root)
            .ok()
            .and_then(|awake| topology.online.iter().find(|cpu| awake.is_awake(*cpu))),
        false => topology.online.first(),
    };
    let Some(cpu) = cpu else { return none("no CPU is awake".into()) };
    let facts = match CpuFacts::read(root, cpu) {
        Ok(facts) => facts,
        Err(e) => return none(e.to_string()),
    };
    let registers = Registers::for_cpu(&facts);
    let mut device = MsrDevice::for_reading(root, registers.clone());
    let mut view = RegisterView { cpu, clock_percent: None, fields: Vec::new() };
    let mut refusal = None;
    for register in SHOWN.iter().filter_map(|name| registers.get(name).ok()) {
        let raw = match device.read(cpu, register, Wake::Yes) {
            Ok(raw) => raw,
            Err(e) => {
                refusal.get_or_insert(e.to_string());
                continue;
            }
        };
        if register.name == "IA32_CLOCK_MODULATION" {
            view.clock_percent = Duty::decode(register, raw).ok().flatten().map(Duty::percent);
        }
        view.fields.extend(register.decode(raw).into_iter().map(|d| RegisterField {
            register: register.name.clone(),
            field: d.field.to_owned(),
            value: d.value,
            scaled: d.scaled,
            unit: d.unit.map(str::to_owned),
            meaning: d.meaning.to_owned(),
        }));
    }
    match view.fields.is_empty() {
        true => none(refusal.unwrap_or_else(|| "we know no register of this processor".into())),
        false => Probed::yes(view, Mechanism::Msr),
    }
}

/// The firmware's P-states, or why it tells none.
fn firmware(root: &dyn Root) -> Probed<String> {
    match crate::acpi::read(root) {
        Ok(acpi) if acpi.processors.iter().any(|p| p.pss.is_some()) => {
            Probed::yes(acpi.summary(), Mechanism::Acpi)
        }
        Ok(acpi) => Probed::no(Mechanism::Acpi, acpi.summary()),
        Err(e) => Probed::no(Mechanism::Acpi, e.to_string()),
    }
}

impl Info {
    /// Reads it all.
    pub fn read(root: &dyn Root) -> Info {
        let topology = Topology::read(root);
        Info {
            schema: SCHEMA,
            machine: root.describe(),
            kernel: label(root, "proc/sys/kernel/osrelease"),
            cpufreq: Cpufreq::read(root),
            cpuidle: Cpuidle::read(root, &topology),
            energy_performance_bias: power::energy_performance_bias(root, &topology.online),
            energy: power::zones(root),
            system_idle: platform::system_idle(root),
            graphics: platform::graphics(root),
            uncore: power::uncores(root),
            memory: devfreq::memory_controllers(root),
            sensors: sensors::sensors(root),
            supply: supply::supply(root),
            platform_profile: label(root, "sys/firmware/acpi/platform_profile").map(|now| {
                let choices = label(root, "sys/firmware/acpi/platform_profile_choices").unwrap_or_default();
                (now, choices.split_whitespace().map(str::to_owned).collect())
            }),
            registers: registers(root, &topology),
            firmware: firmware(root),
            writers: writers::running(root),
            topology,
        }
    }

    /// Leaves out what is about other CPUs.
    pub fn only(mut self, cpus: &CpuSet) -> Info {
        self.topology.cpus.retain(|c| cpus.contains(c.cpu));
        if let Some(policies) = &mut self.cpufreq.policies.value {
            policies.retain(|p| {
                !p.affected.and(cpus).is_empty() || (p.is_offline() && !p.related.and(cpus).is_empty())
            });
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
