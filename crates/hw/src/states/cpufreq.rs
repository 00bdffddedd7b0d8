//! P-states: the kernel's cpufreq policies, all of their files.
//!
//! A policy is a frequency domain: CPUs that share a speed. Kernels from 4.x on keep one folder a
//! domain (`cpufreq/policyN`); older ones, such as the bc10's, have a real folder in each CPU.

use crate::cpus::set::CpuSet;
use crate::probe::{Mechanism, Probed, why};
use crate::root::{Root, label, text};
use crate::rules;
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
    pub stats: Option<CpufreqStats>,
    /// The governor's tunables: of this policy, or of all where the governor has one folder for the whole machine.
    pub tunables: Vec<(String, String)>,
}

/// What the kernel counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpufreqStats {
    /// Time at each speed, (kHz, seconds); the kernel counts in 10 ms.
    pub time_in_state: Vec<(u64, f64)>,
    /// Changes of speed.
    pub total_transitions: Option<u64>,
    /// Changes from (row) to (column), in the order of `time_in_state`; empty where the kernel has none or
    /// finds it too large.
    pub transitions: Vec<Vec<u64>>,
    /// What the files hold that is of no use, a sentence's part each; it is in none of the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
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
    /// Off, and the firmware has locked it.
    pub locked: bool,
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

/// What the driver is called in a mode of `intel_pstate` or `amd_pstate`.
pub fn driver_in_mode(intel: bool, active: bool) -> &'static str {
    match (intel, active) {
        (true, true) => "intel_pstate",
        (true, false) => "intel_cpufreq",
        (false, true) => "amd-pstate-epp",
        (false, false) => "amd-pstate",
    }
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
            // Kernels older still name no group: each CPU is a policy of its own.
            let affected = match text(root, &format!("{path}/affected_cpus")) {
                Some(affected) => affected,
                None => name.strip_prefix("cpu").filter(|_| is_policy(root, &path))?.to_owned(),
            };
            seen.insert(affected).then_some(path)
        })
        .collect()
}

/// Whether a folder that names no CPUs is a policy's: it has a governor or a range.
fn is_policy(root: &dyn Root, path: &str) -> bool {
    let names = root.list(path).unwrap_or_default();
    names.iter().any(|n| n.starts_with("scaling_") || n.starts_with("cpuinfo_"))
}

/// The CPU of a folder's name: `policy2`, `cpu2/cpufreq`.
fn own_cpu(path: &str) -> Option<u32> {
    let path = path.strip_suffix("/cpufreq").unwrap_or(path);
    let name = path.rsplit('/').next()?;
    name.strip_prefix("policy").or_else(|| name.strip_prefix("cpu"))?.parse().ok()
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
        let set = |name: &str| word(name).and_then(|l| CpuSet::parse(&l).ok());
        let own = || own_cpu(path).map(|cpu| CpuSet::from_iter([cpu])).unwrap_or_default();
        // A policy of a kernel that names no group is its CPU's own. One that names an empty group, or that cannot be read
        // at all (EBUSY since 5.18), has no CPU that runs.
        let affected = match has("affected_cpus") {
            true => set("affected_cpus").unwrap_or_default(),
            false => own().and(&crate::cpus::topology::online(root)),
        };
        let related = set("related_cpus").unwrap_or_else(|| match affected.is_empty() {
            true => own(),
            false => affected.clone(),
        });
        let governor = word("scaling_governor");
        let tunables = governor
            .as_deref()
            .filter(|g| crate::rules::tunables(g).next().is_some() || has(g))
            .map(|g| match has(g) {
                true => files(root, &format!("{path}/{g}")),
                false => files(root, &format!("{CPUS}/cpufreq/{g}")),
            })
            .unwrap_or_default();
        CpufreqPolicy {
            affected,
            related,
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
            stats: has("stats").then(|| CpufreqStats::read(root, &format!("{path}/stats"))).flatten(),
            tunables,
            governor,
            path: path.to_owned(),
        }
    }

    /// Whether none of its CPUs runs: it keeps its settings, and takes none.
    pub fn is_offline(&self) -> bool {
        self.affected.is_empty()
    }

    /// A short name: `policy4`, or `cpu0` on old kernels.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix("/cpufreq").unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

impl CpufreqStats {
    fn read(root: &dyn Root, path: &str) -> Option<CpufreqStats> {
        let mut stats = CpufreqStats::default();
        stats.times(root, &text(root, &format!("{path}/time_in_state"))?);
        stats.total_transitions = stats.counted(root, path);
        stats.table(root, path);
        Some(stats)
    }

    /// `600000 1234`: kHz, and the time there in units of 10 ms. Drivers out of the tree put tabs and words there.
    fn times(&mut self, root: &dyn Root, text: &str) {
        // No longer than the machine runs, where that is known, with a little for its rounding.
        const CENTURY_S: f64 = 100.0 * 365.0 * 86_400.0;
        let up_s = crate::root::text(root, "proc/uptime")
            .and_then(|up| up.split_whitespace().next()?.parse::<f64>().ok())
            .map_or(CENTURY_S, |up_s| up_s + 60.0);
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let khz = words.next().and_then(|w| w.parse::<u64>().ok()).filter(|khz| *khz > 0);
            let ticks = words.next().and_then(|w| w.parse::<u64>().ok());
            match (khz, ticks.map(|ticks| ticks as f64 / 100.0)) {
                (Some(khz), Some(s)) if s <= up_s => self.time_in_state.push((khz, s)),
                (Some(khz), Some(_)) => self.left_out(format!(
                    "time_in_state: the time at {khz} kHz is implausible ({})",
                    line.split_whitespace().nth(1).unwrap_or_default()
                )),
                _ => self.left_out(format!("time_in_state: '{}' is no speed with a time", line.trim())),
            }
        }
        if text.trim().is_empty() {
            self.left_out("time_in_state is empty".to_owned());
        }
    }

    fn counted(&mut self, root: &dyn Root, path: &str) -> Option<u64> {
        let shown = text(root, &format!("{path}/total_trans"))?;
        let count = shown.parse::<u64>().ok().filter(|n| *n < u64::from(u32::MAX));
        if count.is_none() {
            self.left_out(format!("total_trans: '{shown}' is no count"));
        }
        count
    }

    /// The rows of `trans_table`: `   600000:   0   1 …`, after two lines of headings.
    fn table(&mut self, root: &dyn Root, path: &str) {
        let path = format!("{path}/trans_table");
        let bytes = match root.read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
            Err(e) => {
                let larger = e.raw_os_error() == Some(libc::EFBIG);
                return self.left_out(match larger {
                    true => "trans_table is larger than the kernel shows (EFBIG)".to_owned(),
                    false => format!("trans_table cannot be read ({e})"),
                });
            }
        };
        let shown = String::from_utf8_lossy(&bytes);
        let rows = shown.lines().filter_map(|line| {
            let (speed, counts) = line.split_once(':')?;
            speed.trim().parse::<u64>().ok()?;
            Some(counts.split_whitespace().map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>())
        });
        match rows.collect::<Option<Vec<_>>>() {
            Some(rows) if rows.is_empty() => self.left_out("trans_table is empty".to_owned()),
            Some(rows) => self.transitions = rows,
            None => self.left_out("trans_table holds more than counts".to_owned()),
        }
    }

    fn left_out(&mut self, what: String) {
        self.left_out.push(what);
    }
}

fn no_policies(root: &dyn Root) -> String {
    if let Some(off) = driver(root).filter(|d| matches!(d.mode.as_str(), "off" | "disable")) {
        return format!(
            "{} is {}, and no other driver is loaded; 'wattwise set --driver-mode active' (or passive) starts it",
            off.name, off.mode
        );
    }
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
        Some(Boost { on, path, inverted, locked: inverted && rules::turbo_is_locked(&root) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    fn machine(files: &[(&str, &str)]) -> TreeRoot {
        let mut tree = Tree::default();
        for (path, content) in files {
            let path = if path.starts_with("proc/") { (*path).to_owned() } else { format!("{CPUS}/{path}") };
            tree.files.insert(path, format!("{content}\n").into_bytes());
        }
        TreeRoot::new(tree, "test")
    }

    /// sbc-bench PR 139, cpupower-gui 12. Since 5.18 nothing of such a policy can be read but its name.
    #[test]
    fn a_policy_whose_cpus_are_offline() {
        let root = machine(&[
            ("cpufreq/policy0/affected_cpus", "0"),
            ("cpufreq/policy0/related_cpus", "0"),
            ("cpufreq/policy2/affected_cpus", ""),
            ("cpufreq/policy2/related_cpus", "2 3"),
            ("cpufreq/policy4/affected_cpus", "<busy>"),
        ]);
        let all = Cpufreq::read(&root);
        let of = |p: &CpufreqPolicy| (p.is_offline(), p.affected.to_string(), p.related.to_string());
        assert_eq!(
            all.policies().iter().map(of).collect::<Vec<_>>(),
            [
                (false, "0".to_owned(), "0".to_owned()),
                (true, String::new(), "2-3".to_owned()),
                (true, String::new(), "4".to_owned()),
            ]
        );
    }

    /// Before 2.6.24 no file names the group.
    #[test]
    fn without_a_group_each_cpu_is_a_policy_of_its_own() {
        let root = machine(&[
            ("cpu0/cpufreq/scaling_governor", "ondemand"),
            ("cpu1/cpufreq/cpuinfo_max_freq", "2000000"),
            ("cpu2/topology/core_id", "2"),
        ]);
        let all = Cpufreq::read(&root);
        let cpus: Vec<_> = all.policies().iter().map(|p| p.affected.to_string()).collect();
        assert_eq!(cpus, ["0", "1"]);
    }

    fn stats(files: &[(&str, &str)]) -> CpufreqStats {
        CpufreqStats::read(&machine(files), &format!("{CPUS}/stats")).expect("a time_in_state")
    }

    #[test]
    fn nonsense_in_the_statistics_is_left_out_and_named() {
        let times = |text: &str| {
            let s = stats(&[("stats/time_in_state", text), ("proc/uptime", "1000.00 1.00")]);
            (s.time_in_state, s.left_out.join("; "))
        };
        assert_eq!(times("400000 0\n4000000 100"), (vec![(400_000, 0.0), (4_000_000, 1.0)], String::new()));
        let (kept, why) = times("400000 0\n4000000 18446744073709551615");
        assert!(
            kept == [(400_000, 0.0)] && why.contains("implausible") && why.contains("4000000 kHz"),
            "{why}"
        );
        // More than the machine has run; tabs; a word; no time; a sign; nothing.
        for (text, kept, word) in [
            ("400000 200000", 0, "implausible"),
            ("400000\t55\n4000000\tN/A", 1, "N/A"),
            ("400000", 0, "no speed"),
            ("400000 -1", 0, "no speed"),
            ("0 5", 0, "no speed"),
            ("", 0, "empty"),
        ] {
            let (times, why) = times(text);
            assert!(times.len() == kept && why.contains(word), "{text}: {times:?} {why}");
        }
    }

    #[test]
    fn tables_and_counts_that_are_none() {
        let one = |file: &str, text: &str| {
            let path = format!("stats/{file}");
            stats(&[("stats/time_in_state", "400000 5"), (&path, text)])
        };
        assert_eq!(one("trans_table", "").left_out, ["trans_table is empty"]);
        assert_eq!(
            one("trans_table", "   From  :    To\n         :    400000").left_out,
            ["trans_table is empty"]
        );
        assert_eq!(one("trans_table", "  400000:  x").left_out, ["trans_table holds more than counts"]);
        assert_eq!(one("trans_table", "  400000:  7").transitions, [[7]]);
        assert_eq!(one("total_trans", "12").total_transitions, Some(12));
        for none in ["N/A", "-1", "18446744073709551615"] {
            let stats = one("total_trans", none);
            assert!(stats.total_transitions.is_none() && stats.left_out[0].contains(none), "{none}");
        }
    }

    #[test]
    fn a_driver_that_is_off_says_how_it_is_started() {
        for (status, mode) in [("intel_pstate/status", "off"), ("amd_pstate/status", "disable")] {
            let all = Cpufreq::read(&machine(&[(status, mode), ("cpufreq/x", "")]));
            let why = all.policies.why_not();
            assert!(why.contains("--driver-mode active") && why.contains(mode), "{why}");
        }
    }

    /// TLP 179, tuxedo 56: CPUID's ida goes with the firmware's switch.
    #[test]
    fn turbo_that_the_firmware_has_locked() {
        let boost = |no_turbo: &str, flags: &str| {
            let flags = format!("processor : 0\nflags\t\t: fpu {flags} msr");
            let root = machine(&[("intel_pstate/no_turbo", no_turbo), ("proc/cpuinfo", &flags)]);
            let boost = Cpufreq::read(&root).boost.expect("a switch");
            (boost.on, boost.locked)
        };
        assert_eq!(boost("1", "arat"), (false, true));
        assert_eq!(boost("1", "ida arat"), (false, false));
        assert_eq!(boost("0", "arat"), (true, false));
    }
}
