//! P-states: the kernel's cpufreq policies, all of their files.
//!
//! A policy is a frequency domain: CPUs that share a speed. Kernels from 4.x on keep one folder a
//! domain (`cpufreq/policyN`); older ones, such as the bc10's, have a real folder in each CPU.

use crate::cpus::set::CpuSet;
use crate::probe::{Mechanism, Probed, why};
use crate::root::{Root, label, number, text};
use serde::Serialize;
use std::collections::BTreeSet;

const CPUS: &str = "sys/devices/system/cpu";

/// One frequency domain and everything that its folder says. Speeds in kHz.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpufreqPolicy {
    /// Its folder below the root.
    pub path: String,
    /// CPUs online that the software switches together.
    pub affected: CpuSet,
    /// CPUs that share the clock in hardware, offline ones too.
    pub related: CpuSet,
    /// The driver.
    pub driver: Option<String>,
    /// The governor in force.
    pub governor: Option<String>,
    /// Governors that may be chosen.
    pub governors: Vec<String>,
    /// Lowest and highest of the hardware.
    pub hardware_khz: Option<(u64, u64)>,
    /// Highest without boost, where the driver tells.
    pub base_khz: Option<u64>,
    /// The range within which the governor may choose.
    pub limits_khz: Option<(u64, u64)>,
    /// The speed that the kernel believes in.
    pub current_khz: Option<u64>,
    /// The speed that the hardware reports.
    pub hardware_current_khz: Option<u64>,
    /// What `userspace` was told.
    pub setspeed_khz: Option<u64>,
    /// The levels, ascending; empty where the driver has no table.
    pub levels_khz: Vec<u64>,
    /// Further levels that boost adds.
    pub boost_levels_khz: Vec<u64>,
    /// Longest change of speed, in ns. The kernel's "unknown" (4294967295) is none.
    pub transition_latency_ns: Option<u64>,
    /// A limit set by the firmware.
    pub bios_limit_khz: Option<u64>,
    /// Energy-performance preference in force.
    pub epp: Option<String>,
    /// Those that may be chosen.
    pub epps: Vec<String>,
    /// Boost for this policy alone, where the driver has it.
    pub boost: Option<bool>,
    /// Statistics.
    pub stats: Option<Stats>,
    /// The governor's tunables of this policy.
    pub tunables: Vec<(String, String)>,
}

/// What the kernel counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Time at each speed, (kHz, seconds); the kernel counts in 10 ms.
    pub time_in_state: Vec<(u64, f64)>,
    /// Changes of speed.
    pub total_transitions: Option<u64>,
    /// Changes from (row) to (column), in the order of `time_in_state`; empty where the kernel has none or
    /// finds it too large.
    pub transitions: Vec<Vec<u64>>,
}

/// A driver that decides more than a governor does, and its mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Driver {
    /// `intel_pstate` or `amd_pstate`.
    pub name: &'static str,
    /// `active`, `passive`, `guided`, `off`.
    pub mode: String,
    /// Its other files.
    pub settings: Vec<(String, String)>,
}

/// Boost of the whole machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Boost {
    /// Whether it is on.
    pub on: bool,
    /// The file.
    pub path: String,
    /// The file says the opposite: `intel_pstate/no_turbo`.
    pub inverted: bool,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpufreq {
    /// The domains, or why there are none.
    pub policies: Probed<Vec<CpufreqPolicy>>,
    /// `intel_pstate` or `amd_pstate`, where loaded.
    pub driver: Option<Driver>,
    /// Boost of the whole machine.
    pub boost: Option<Boost>,
}

/// The folders of the policies, in order of their first CPU.
pub fn folders(root: &dyn Root) -> Vec<String> {
    let new: Vec<String> = root
        .list(&format!("{CPUS}/cpufreq"))
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.strip_prefix("policy").is_some_and(|n| n.parse::<u32>().is_ok()))
        .map(|name| format!("{CPUS}/cpufreq/{name}"))
        .collect();
    if !new.is_empty() {
        return new;
    }
    // A kernel from before the shared folder: each CPU has one, those of a domain the same.
    let mut seen = BTreeSet::new();
    let names = root.list(CPUS).unwrap_or_default();
    names
        .iter()
        .filter(|name| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok()))
        .filter_map(|name| {
            let path = format!("{CPUS}/{name}/cpufreq");
            let affected = text(root, &format!("{path}/affected_cpus"))?;
            seen.insert(affected).then_some(path)
        })
        .collect()
}

impl Cpufreq {
    /// Reads it.
    pub fn read(root: &dyn Root) -> Cpufreq {
        let policies: Vec<CpufreqPolicy> =
            folders(root).iter().map(|path| CpufreqPolicy::read(root, path)).collect();
        let policies = match policies.is_empty() {
            false => Probed::yes(policies, Mechanism::Sysfs),
            true => Probed::no(Mechanism::Sysfs, no_policies(root)),
        };
        Cpufreq { policies, driver: driver(root), boost: boost(root) }
    }

    /// The policies, none where there are none.
    pub fn policies(&self) -> &[CpufreqPolicy] {
        self.policies.value.as_deref().unwrap_or_default()
    }

    /// The policy that drives a CPU.
    pub fn of(&self, cpu: u32) -> Option<&CpufreqPolicy> {
        self.policies().iter().find(|p| p.affected.contains(cpu))
    }
}

impl CpufreqPolicy {
    /// Reads one folder.
    pub fn read(root: &dyn Root, path: &str) -> CpufreqPolicy {
        // What is not listed is not opened: a missing file costs as much as one that is there.
        let names: BTreeSet<String> = root.list(path).unwrap_or_default().into_iter().collect();
        let has = |name: &str| names.contains(name);
        let word = |file: &str| {
            has(file).then(|| label(root, &format!("{path}/{file}"))).flatten().filter(|v| !v.is_empty())
        };
        let khz = |name: &str| word(name).and_then(|v| v.parse::<u64>().ok());
        let words = |name: &str| -> Vec<String> {
            word(name).map(|v| v.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
        };
        let levels = |name: &str| {
            let mut levels: Vec<u64> = words(name).iter().filter_map(|w| w.parse().ok()).collect();
            levels.sort_unstable();
            levels.dedup();
            levels
        };
        let set = |name: &str| word(name).and_then(|l| CpuSet::parse(&l).ok()).unwrap_or_default();
        let governor = word("scaling_governor");
        let tunables = governor
            .as_deref()
            .filter(|g| has(g))
            .map(|g| files(root, &format!("{path}/{g}")))
            .unwrap_or_default();
        CpufreqPolicy {
            affected: set("affected_cpus"),
            related: set("related_cpus"),
            driver: word("scaling_driver"),
            governors: words("scaling_available_governors"),
            hardware_khz: khz("cpuinfo_min_freq").zip(khz("cpuinfo_max_freq")),
            base_khz: khz("base_frequency").or_else(|| khz("amd_pstate_nominal_freq")),
            limits_khz: khz("scaling_min_freq").zip(khz("scaling_max_freq")),
            current_khz: khz("scaling_cur_freq"),
            hardware_current_khz: khz("cpuinfo_cur_freq"),
            setspeed_khz: khz("scaling_setspeed"),
            levels_khz: levels("scaling_available_frequencies"),
            boost_levels_khz: levels("scaling_boost_frequencies"),
            transition_latency_ns: khz("cpuinfo_transition_latency").filter(|ns| *ns != u64::from(u32::MAX)),
            bios_limit_khz: khz("bios_limit"),
            epp: word("energy_performance_preference"),
            epps: words("energy_performance_available_preferences"),
            boost: word("boost").map(|v| v == "1"),
            stats: has("stats").then(|| Stats::read(root, &format!("{path}/stats"))).flatten(),
            tunables,
            governor,
            path: path.to_owned(),
        }
    }

    /// A short name: `policy4`, or `cpu0` on old kernels.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix("/cpufreq").unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

impl Stats {
    fn read(root: &dyn Root, path: &str) -> Option<Stats> {
        let time_in_state: Vec<(u64, f64)> = text(root, &format!("{path}/time_in_state"))?
            .lines()
            .filter_map(|line| {
                let (khz, ticks) = line.split_once(' ')?;
                Some((khz.parse().ok()?, ticks.trim().parse::<u64>().ok()? as f64 / 100.0))
            })
            .collect();
        let transitions = text(root, &format!("{path}/trans_table")).map(|t| table(&t)).unwrap_or_default();
        let total_transitions = number(root, &format!("{path}/total_trans"));
        Some(Stats { time_in_state, total_transitions, transitions })
    }
}

/// The rows of `trans_table`: `   600000:   0   1 …`, after two lines of headings.
fn table(text: &str) -> Vec<Vec<u64>> {
    text.lines()
        .filter_map(|line| {
            let (speed, counts) = line.split_once(':')?;
            speed.trim().parse::<u64>().ok()?;
            counts.split_whitespace().map(|n| n.parse().ok()).collect()
        })
        .collect()
}

fn no_policies(root: &dyn Root) -> String {
    match root.list(&format!("{CPUS}/cpufreq")) {
        Ok(_) if hypervisor(root) => {
            "no cpufreq driver: this is a virtual machine whose host keeps the speed to itself".to_owned()
        }
        Ok(_) => {
            "no cpufreq driver is loaded (firmware without P-states, or the module is missing)".to_owned()
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            "the kernel was built without cpufreq".to_owned()
        }
        Err(e) => why(&e, &format!("{CPUS}/cpufreq"), root),
    }
}

/// Whether the processor says that it is a guest's.
pub(crate) fn hypervisor(root: &dyn Root) -> bool {
    text(root, "proc/cpuinfo").is_some_and(|info| {
        info.lines()
            .find_map(|l| l.strip_prefix("flags"))
            .is_some_and(|flags| flags.split_whitespace().any(|f| f == "hypervisor"))
    })
}

fn driver(root: &dyn Root) -> Option<Driver> {
    [("intel_pstate", "intel_pstate"), ("amd_pstate", "amd_pstate")].into_iter().find_map(|(name, folder)| {
        let path = format!("{CPUS}/{folder}");
        let settings = files(root, &path);
        let mode = settings.iter().find(|(name, _)| name == "status")?.1.clone();
        Some(Driver { name, mode, settings: settings.into_iter().filter(|(n, _)| n != "status").collect() })
    })
}

fn boost(root: &dyn Root) -> Option<Boost> {
    [("cpufreq/boost", false), ("intel_pstate/no_turbo", true)].into_iter().find_map(|(file, inverted)| {
        let path = format!("{CPUS}/{file}");
        let on = match text(root, &path)?.as_str() {
            "1" => !inverted,
            "0" => inverted,
            _ => return None,
        };
        Some(Boost { on, path, inverted })
    })
}

/// The readable files of a folder with their values.
fn files(root: &dyn Root, path: &str) -> Vec<(String, String)> {
    root.list(path)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|file| {
            label(root, &format!("{path}/{file}")).map(|value| (wattwise_figure::one_line(&file), value))
        })
        .collect()
}
