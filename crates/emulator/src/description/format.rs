//! What a description file may say.

use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) type Sources = BTreeMap<String, String>;

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Arch {
    #[serde(rename = "x86_64", alias = "i686")]
    X86,
    Armv7,
    Aarch64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) name: String,
    #[serde(rename = "summary")]
    pub(super) _summary: String,
    /// The kernel's release.
    pub(super) kernel: String,
    pub(super) arch: Arch,
    #[serde(rename = "source")]
    pub(super) _source: String,
    #[serde(default, rename = "sources")]
    pub(super) _sources: Sources,
    pub(super) seed: Option<u64>,
    /// How long it has run at the start.
    #[serde(default)]
    pub(super) uptime_s: u64,
    pub(super) topology: Topology,
    pub(super) core: Vec<Core>,
    pub(super) cpuinfo: CpuInfo,
    pub(super) cpufreq: Option<Cpufreq>,
    pub(super) cpuidle: Option<Cpuidle>,
    pub(super) intel_pstate: Option<IntelPstate>,
    pub(super) amd_pstate: Option<AmdPstate>,
    pub(super) uncore: Option<Uncore>,
    #[serde(default)]
    pub(super) rapl: Vec<Rapl>,
    pub(super) battery: Option<Battery>,
    pub(super) thermal: Option<Thermal>,
    pub(super) platform_profile: Option<Profile>,
    #[serde(default)]
    pub(super) power: Power,
    pub(super) msr: Option<Msr>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Numbering {
    /// First threads of all cores, then second threads: most servers.
    ThreadsLast,
    /// A core's threads one after another: hybrid processors, Arm.
    ThreadsAdjacent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub(super) packages: u32,
    #[serde(default = "one")]
    pub(super) nodes: u32,
    pub(super) numbering: Numbering,
    /// Whether the first CPU can be taken offline.
    #[serde(default)]
    pub(super) first_cpu_leaves: bool,
    pub(super) smt: Option<String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
    #[serde(default, rename = "sources")]
    pub(super) _sources: Sources,
}

pub(super) fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Core {
    /// `P` and `E` cores of hybrid processors.
    pub(super) kind: Option<String>,
    /// In each package.
    pub(super) count: u32,
    #[serde(default = "one")]
    pub(super) threads: u32,
    /// Cores that share a cluster; 0: none.
    #[serde(default)]
    pub(super) cluster: u32,
    /// Distance of core numbers.
    #[serde(default = "one")]
    pub(super) id_step: u32,
    pub(super) capacity: Option<u32>,
    #[serde(default)]
    pub(super) min_khz: u32,
    /// With turbo or boost.
    #[serde(default)]
    pub(super) max_khz: u32,
    /// Without.
    pub(super) nominal_khz: Option<u32>,
    #[serde(default)]
    pub(super) levels_khz: Vec<u32>,
    #[serde(default)]
    pub(super) boost_levels_khz: Vec<u32>,
    /// AMD: rank of the cores among each other.
    #[serde(default)]
    pub(super) ranking: Vec<u32>,
    #[serde(default)]
    pub(super) idle: Vec<Idle>,
    #[serde(rename = "source")]
    pub(super) _source: String,
    #[serde(default, rename = "sources")]
    pub(super) _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Idle {
    pub(super) name: String,
    pub(super) desc: String,
    pub(super) latency_us: u32,
    pub(super) residency_us: u32,
    #[serde(default)]
    pub(super) disabled: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuInfo {
    #[serde(default)]
    pub(super) vendor: String,
    #[serde(default)]
    pub(super) family: u32,
    #[serde(default)]
    pub(super) model: u32,
    #[serde(default)]
    pub(super) stepping: u32,
    #[serde(default)]
    pub(super) model_name: String,
    #[serde(default)]
    pub(super) flags: String,
    #[serde(default)]
    pub(super) bogomips: String,
    /// Arm: the lines after `processor`, by core kind in order.
    #[serde(default)]
    pub(super) lines: Vec<String>,
    /// Arm before 3.8: the whole file; BogoMIPS by kHz.
    pub(super) whole: Option<String>,
    #[serde(default)]
    pub(super) bogomips_by_khz: BTreeMap<String, String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Span {
    Cpu,
    Core,
    Kind,
    Package,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cpufreq {
    pub(super) driver: String,
    pub(super) governor: String,
    pub(super) governors: Vec<String>,
    /// Which CPUs change speed together.
    pub(super) domain: Span,
    pub(super) latency_ns: u32,
    /// `cpuinfo_cur_freq`: the driver can ask the hardware.
    #[serde(default)]
    pub(super) hardware_speed: bool,
    /// `stats/`.
    #[serde(default)]
    pub(super) stats: bool,
    pub(super) cur_khz: Option<u32>,
    /// How long a change of speed takes, in us, from each level (rows) to each (columns), both in the order of `levels_khz`.
    #[serde(default)]
    pub(super) change_us: Vec<Vec<u32>>,
    pub(super) boost: Option<bool>,
    #[serde(default)]
    pub(super) own_boost: bool,
    pub(super) preference: Option<String>,
    #[serde(default)]
    pub(super) preferences: Vec<String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
    #[serde(default, rename = "sources")]
    pub(super) _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cpuidle {
    pub(super) driver: String,
    pub(super) governor: String,
    pub(super) governors: Vec<String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IntelPstate {
    pub(super) status: String,
    #[serde(default)]
    pub(super) no_turbo: bool,
    /// Intel's bias, on every CPU.
    pub(super) bias: Option<u32>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AmdPstate {
    pub(super) status: String,
    pub(super) prefcore: Option<String>,
    /// Whether the kernel sets the preferences itself (7.1 and 7.2): `enabled`, `disabled`.
    pub(super) dynamic_epp: Option<String>,
    /// ACPI CPPC: highest, nominal, lowest nonlinear, lowest performance.
    pub(super) cppc: [u32; 4],
    pub(super) lowest_nonlinear_khz: u32,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Uncore {
    pub(super) min_khz: u32,
    pub(super) max_khz: u32,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rapl {
    /// `package`, `psys`, or below a package `core`, `uncore`, `dram`.
    pub(super) name: String,
    pub(super) max_energy_range_uj: u64,
    #[serde(default)]
    pub(super) limits: Vec<RaplLimit>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RaplLimit {
    pub(super) name: String,
    pub(super) uw: u64,
    pub(super) window_us: u64,
    pub(super) max_uw: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Battery {
    /// uWh, or uAh with `charge`.
    pub(super) design: u64,
    pub(super) full: u64,
    pub(super) now: u64,
    #[serde(default)]
    pub(super) charge: bool,
    pub(super) voltage_uv: u64,
    #[serde(default)]
    pub(super) mains: bool,
    pub(super) update_s: u64,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thermal {
    pub(super) zone: String,
    pub(super) critical_mc: i64,
    pub(super) hwmon: Option<String>,
    pub(super) ambient_mc: i64,
    pub(super) rise_mc_per_w: i64,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) now: String,
    pub(super) choices: Vec<String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Power {
    pub(super) package_idle_uw: Option<u64>,
    pub(super) cpu_uw: Option<u64>,
    pub(super) dram_uw: Option<u64>,
    pub(super) platform_uw: Option<u64>,
    #[serde(default, rename = "source")]
    pub(super) _source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Msr {
    pub(super) registers: BTreeMap<String, String>,
    #[serde(rename = "source")]
    pub(super) _source: String,
}

pub(super) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Description {
    /// The kernel's release.
    pub(super) fn release(&self) -> Option<(u32, u32)> {
        let mut parts = self.kernel.split(['.', '-']).map(|p| p.parse().ok());
        Some((parts.next()??, parts.next()??))
    }
}
