//! Packages, dies, cores, threads, memory nodes and kinds of core.

use crate::cpus::set::CpuSet;
use crate::root::{Root, number, text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const CPUS: &str = "sys/devices/system/cpu";

/// What a core of a hybrid machine is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CoreKind {
    /// Speed. The only kind of a uniform machine.
    #[serde(rename = "P")]
    Performance,
    /// Throughput a watt.
    #[serde(rename = "E")]
    Efficient,
    /// An efficient core away from the shared cache, for a screen-on idle.
    #[serde(rename = "LP-E")]
    LowPowerEfficient,
}

impl CoreKind {
    /// From its usual name; `None` for any other.
    pub fn parse(name: &str) -> Option<CoreKind> {
        match name.to_ascii_uppercase().as_str() {
            "P" | "CORE" | "BIG" => Some(CoreKind::Performance),
            "E" | "ATOM" | "LITTLE" => Some(CoreKind::Efficient),
            "LP-E" | "LPE" | "LP" => Some(CoreKind::LowPowerEfficient),
            _ => None,
        }
    }
}

impl std::fmt::Display for CoreKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CoreKind::Performance => "P",
            CoreKind::Efficient => "E",
            CoreKind::LowPowerEfficient => "LP-E",
        })
    }
}

/// One logical CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Whether it runs. An offline CPU shows no topology: what follows is then unknown.
    pub online: bool,
    /// Whether it may be taken offline (the boot CPU of a PC may not).
    pub hotplug: bool,
    /// Package (socket).
    pub package: Option<i32>,
    /// Die within the package.
    pub die: Option<i32>,
    /// Cluster that shares a cache, where the kernel tells.
    pub cluster: Option<i32>,
    /// Its core's index over the whole machine, in order of package, die and the kernel's core id.
    pub core: Option<u32>,
    /// The threads of its core, itself among them.
    pub threads: CpuSet,
    /// Memory node.
    pub node: Option<u32>,
    /// Kind of core.
    pub kind: Option<CoreKind>,
    /// Relative capacity (1024 is the fastest), where the kernel tells.
    pub capacity: Option<u32>,
}

/// The CPUs of a machine and how they sit together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// As the firmware or `/proc/cpuinfo` names it.
    pub processor: Option<String>,
    /// CPUs that could ever be.
    pub possible: CpuSet,
    /// CPUs that are there.
    pub present: CpuSet,
    /// CPUs that run.
    pub online: CpuSet,
    /// Each present CPU, ascending.
    pub cpus: Vec<Cpu>,
    /// Whether threads share cores, or why not (`on`, `off`, `notsupported`, …).
    pub smt: Option<String>,
}

impl Topology {
    /// Reads it. A machine whose sysfs lists no CPU at all gives an empty topology.
    pub fn read(root: &dyn Root) -> Topology {
        let list = |name: &str| {
            text(root, &format!("{CPUS}/{name}"))
                .and_then(|l| CpuSet::parse(&l).ok())
                .filter(|s| !s.is_empty())
        };
        let folders: CpuSet = root
            .list(CPUS)
            .unwrap_or_default()
            .iter()
            .filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok())
            .collect();
        let present = list("present").unwrap_or_else(|| folders.clone());
        let online = list("online").unwrap_or_else(|| present.clone());
        let nodes = nodes(root);
        let kinds = Kinds::read(root, &online);
        let mut cpus: Vec<Cpu> = present
            .iter()
            .map(|cpu| {
                let at = format!("{CPUS}/cpu{cpu}");
                let online = online.contains(cpu);
                let id = |name: &str| -> Option<i32> {
                    online
                        .then(|| number(root, &format!("{at}/topology/{name}")))
                        .flatten()
                        .filter(|id| *id >= 0)
                };
                let threads = online
                    .then(|| {
                        text(root, &format!("{at}/topology/core_cpus_list"))
                            .or_else(|| text(root, &format!("{at}/topology/thread_siblings_list")))
                    })
                    .flatten()
                    .and_then(|l| CpuSet::parse(&l).ok())
                    .unwrap_or_else(|| CpuSet::from_iter([cpu]));
                Cpu {
                    cpu,
                    online,
                    hotplug: text(root, &format!("{at}/online")).is_some(),
                    package: id("physical_package_id"),
                    die: id("die_id"),
                    cluster: id("cluster_id"),
                    core: id("core_id").map(|c| c as u32),
                    threads,
                    node: nodes.iter().find(|(_, set)| set.contains(cpu)).map(|(n, _)| *n),
                    kind: online.then(|| kinds.of(cpu)),
                    capacity: kinds.capacity.get(&cpu).copied(),
                }
            })
            .collect();
        number_cores(&mut cpus);
        Topology {
            processor: processor(root),
            possible: list("possible").unwrap_or_else(|| present.clone()),
            present,
            online,
            cpus,
            smt: text(root, &format!("{CPUS}/smt/control")),
        }
    }

    /// One CPU.
    pub fn cpu(&self, cpu: u32) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&cpu, |c| c.cpu).ok().map(|at| &self.cpus[at])
    }

    /// How many different values a figure has over the CPUs that run.
    pub fn count<K: Ord>(&self, key: impl Fn(&Cpu) -> Option<K>) -> usize {
        self.cpus.iter().filter_map(key).collect::<std::collections::BTreeSet<K>>().len()
    }

    /// The CPUs of each kind of core; one entry on a uniform machine.
    pub fn kinds(&self) -> BTreeMap<CoreKind, CpuSet> {
        let mut kinds: BTreeMap<CoreKind, CpuSet> = BTreeMap::new();
        for cpu in &self.cpus {
            if let Some(kind) = cpu.kind {
                kinds.entry(kind).or_default().insert(cpu.cpu);
            }
        }
        kinds
    }

    /// Adds the other threads of each CPU's core.
    pub fn with_siblings(&self, cpus: &CpuSet) -> CpuSet {
        cpus.iter()
            .flat_map(|cpu| self.cpu(cpu).map_or_else(|| vec![cpu], |c| c.threads.iter().collect()))
            .collect()
    }
}

/// The kernel's core ids repeat over packages and have gaps: number cores through.
fn number_cores(cpus: &mut [Cpu]) {
    type Place = (Option<i32>, Option<i32>, Option<u32>);
    let place = |c: &Cpu| -> Place { (c.package, c.die, c.core) };
    let mut places: Vec<Place> = cpus.iter().filter(|c| c.core.is_some()).map(place).collect();
    places.sort_unstable();
    places.dedup();
    for cpu in cpus.iter_mut().filter(|c| c.core.is_some()) {
        cpu.core = places.binary_search(&place(cpu)).ok().map(|at| at as u32);
    }
}

fn nodes(root: &dyn Root) -> Vec<(u32, CpuSet)> {
    const NODES: &str = "sys/devices/system/node";
    root.list(NODES)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| {
            let node = name.strip_prefix("node")?.parse().ok()?;
            Some((node, CpuSet::parse(&text(root, &format!("{NODES}/{name}/cpulist"))?).ok()?))
        })
        .collect()
}

/// How a hybrid machine tells its kinds apart: by performance-counter devices on x86, by capacity on Arm.
struct Kinds {
    efficient: CpuSet,
    low_power: CpuSet,
    capacity: BTreeMap<u32, u32>,
    most: u32,
}

impl Kinds {
    fn read(root: &dyn Root, online: &CpuSet) -> Kinds {
        let device = |name: &str| {
            text(root, &format!("sys/devices/{name}/cpus"))
                .and_then(|l| CpuSet::parse(&l).ok())
                .unwrap_or_default()
        };
        let (mut efficient, mut low_power) = (device("cpu_atom"), device("cpu_lowpower"));
        if low_power.is_empty() && !efficient.is_empty() {
            // Kernels that know no third kind list it with the efficient ones; it has no share in the
            // last-level cache.
            let has_l3 = |cpu: u32| crate::root::exists(root, &format!("{CPUS}/cpu{cpu}/cache/index3"));
            if efficient.iter().any(has_l3) {
                low_power = efficient.iter().filter(|cpu| !has_l3(*cpu)).collect();
            }
        }
        efficient = efficient.without(&low_power);
        let mut capacity = BTreeMap::new();
        // The file is there for all CPUs or for none.
        if let Some(first) = online.first()
            && crate::root::exists(root, &format!("{CPUS}/cpu{first}/cpu_capacity"))
        {
            capacity = online
                .iter()
                .filter_map(|cpu| Some((cpu, number(root, &format!("{CPUS}/cpu{cpu}/cpu_capacity"))?)))
                .collect();
        }
        let most = capacity.values().copied().max().unwrap_or(0);
        Kinds { efficient, low_power, capacity, most }
    }

    fn of(&self, cpu: u32) -> CoreKind {
        let x86 = !self.efficient.is_empty() || !self.low_power.is_empty();
        let slower =
            !x86 && self.capacity.get(&cpu).is_some_and(|c| u64::from(*c) * 10 < u64::from(self.most) * 8);
        match () {
            () if self.low_power.contains(cpu) => CoreKind::LowPowerEfficient,
            () if self.efficient.contains(cpu) || slower => CoreKind::Efficient,
            () => CoreKind::Performance,
        }
    }
}

fn processor(root: &dyn Root) -> Option<String> {
    let info = text(root, "proc/cpuinfo")?;
    let value = |key: &str| {
        info.lines().find_map(|l| {
            l.split_once(':').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim().to_owned())
        })
    };
    value("model name").or_else(|| value("Hardware")).or_else(|| value("Processor")).or_else(|| {
        text(root, "sys/firmware/devicetree/base/model").map(|m| m.trim_end_matches('\0').to_owned())
    })
}
