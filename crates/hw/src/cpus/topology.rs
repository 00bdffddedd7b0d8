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
    /// Memory nodes, those without CPUs among them.
    pub nodes: Vec<u32>,
    /// Whether threads share cores, or why not (`on`, `off`, `notsupported`, …).
    pub smt: Option<String>,
}

/// A list of CPUs that the kernel keeps of all of them.
fn list(root: &dyn Root, name: &str) -> Option<CpuSet> {
    let list = CpuSet::parse(&text(root, &format!("{CPUS}/{name}"))?).ok()?;
    (!list.is_empty()).then_some(list)
}

/// The CPUs that the machine has; none where its files list none.
pub fn present(root: &dyn Root) -> CpuSet {
    let folders = || root.list(CPUS).unwrap_or_default();
    let number = |name: &String| name.strip_prefix("cpu")?.parse::<u32>().ok();
    list(root, "present").unwrap_or_else(|| folders().iter().filter_map(number).collect())
}

/// The CPUs that run: one file where the kernel keeps the list.
pub fn online(root: &dyn Root) -> CpuSet {
    // Without it (before 2.6.31, and some captures) each CPU says it itself; one without a switch runs.
    let runs = |cpu: &u32| number(root, &format!("{CPUS}/cpu{cpu}/online")) != Some(0);
    list(root, "online").unwrap_or_else(|| present(root).iter().filter(runs).collect())
}

impl Topology {
    /// Reads it. A machine whose sysfs lists no CPU at all gives an empty topology.
    pub fn read(root: &dyn Root) -> Topology {
        let present = present(root);
        let online = online(root);
        let nodes = nodes(root);
        let kinds = CoreKinds::read(root, &online);
        // The first CPU of each one's package.
        let mut neighbours: Vec<Option<u32>> = Vec::new();
        // Whether the kernel says who shares a core.
        let mut grouped: Vec<bool> = Vec::new();
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
                let beside = |names: &[&str]| {
                    let at = format!("{at}/topology");
                    let set =
                        |name: &&str| cpus_of(root, &format!("{at}/{name}_list"), &format!("{at}/{name}"));
                    names.iter().find_map(set).filter(|set| online && set.contains(cpu))
                };
                let threads = beside(&["core_cpus", "thread_siblings"]);
                grouped.push(threads.is_some());
                let threads = threads.unwrap_or_else(|| CpuSet::from_iter([cpu]));
                neighbours.push(beside(&["package_cpus", "core_siblings"]).and_then(|set| set.first()));
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
        number_packages(&mut cpus, &neighbours);
        number_cores(&mut cpus, &grouped);
        Topology {
            processor: processor(root),
            possible: list(root, "possible").unwrap_or_else(|| present.clone()),
            present,
            online,
            cpus,
            nodes: nodes.into_iter().map(|(node, _)| node).collect(),
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

/// Packages have the kernel's numbers where these tell them apart. Power, Itanium and virtual machines say -1 or nothing,
/// s390 repeats them under its books: then who sits in one is told by the lists of neighbours, and they are numbered
/// through.
fn number_packages(cpus: &mut [Cpu], neighbours: &[Option<u32>]) {
    let place = |(c, first): (&Cpu, &Option<u32>)| (c.package, *first);
    let known = |c: &Cpu, first: &Option<u32>| c.core.is_some() || c.package.is_some() || first.is_some();
    let mut places: Vec<_> = cpus.iter().zip(neighbours).filter(|(c, n)| known(c, n)).map(place).collect();
    places.sort_unstable();
    places.dedup();
    let told_apart = places.windows(2).all(|w| w[0].0 != w[1].0) || places.iter().any(|p| p.1.is_none());
    if places.iter().all(|p| p.0.is_some()) && told_apart {
        return;
    }
    for (cpu, first) in cpus.iter_mut().zip(neighbours).filter(|(c, n)| known(c, n)) {
        cpu.package = places.binary_search(&(cpu.package, *first)).ok().map(|at| at as i32);
    }
}

/// The kernel's core ids have gaps and repeat: over packages, over dies and clusters on some machines (RISC-V, Arm), over
/// books on s390; a Cell has none. Whoever shares a core is in the list of its threads, so the first of them tells cores
/// apart. Cores are numbered through.
fn number_cores(cpus: &mut [Cpu], grouped: &[bool]) {
    type Place = (Option<i32>, Option<i32>, Option<i32>, Option<u32>, Option<u32>);
    // Some hypervisors give threads of one core an id each: their list is believed.
    let id = |c: &Cpu| c.core.filter(|_| c.threads.len() == 1);
    let place = |c: &Cpu| -> Place { (c.package, c.die, c.cluster, id(c), c.threads.first()) };
    let known = |c: &Cpu, grouped: bool| grouped || c.core.is_some();
    let mut places: Vec<Place> =
        cpus.iter().zip(grouped).filter(|(c, g)| known(c, **g)).map(|(c, _)| place(c)).collect();
    places.sort_unstable();
    places.dedup();
    for (cpu, _) in cpus.iter_mut().zip(grouped).filter(|(c, g)| known(c, **g)) {
        cpu.core = places.binary_search(&place(cpu)).ok().map(|at| at as u32);
    }
}

/// CPUs from their list, or from the mask that older kernels have alone.
fn cpus_of(root: &dyn Root, list: &str, mask: &str) -> Option<CpuSet> {
    let list = text(root, list).and_then(|l| CpuSet::parse(&l).ok());
    list.or_else(|| CpuSet::parse_mask(&text(root, mask)?))
}

fn nodes(root: &dyn Root) -> Vec<(u32, CpuSet)> {
    const NODES: &str = "sys/devices/system/node";
    root.list(NODES)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| {
            let node = name.strip_prefix("node")?.parse().ok()?;
            let at = format!("{NODES}/{name}");
            Some((node, cpus_of(root, &format!("{at}/cpulist"), &format!("{at}/cpumap"))?))
        })
        .collect()
}

/// How a hybrid machine tells its kinds apart: by performance-counter devices on Intel's, by capacity on Arm, by CPPC on AMD's.
struct CoreKinds {
    efficient: CpuSet,
    low_power: CpuSet,
    /// Where nothing names kinds.
    slower: CpuSet,
    capacity: BTreeMap<u32, u32>,
}

impl CoreKinds {
    fn read(root: &dyn Root, online: &CpuSet) -> CoreKinds {
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
        if efficient.is_empty() && low_power.is_empty() && is_all_efficient(root) {
            efficient = online.clone();
        }
        efficient = efficient.without(&low_power);
        // These files are there for all CPUs or for none.
        let of_each = |name: &str| -> BTreeMap<u32, u32> {
            let at = |cpu: u32| format!("{CPUS}/cpu{cpu}/{name}");
            match online.first().is_some_and(|first| crate::root::exists(root, &at(first))) {
                true => online.iter().filter_map(|cpu| Some((cpu, number(root, &at(cpu))?))).collect(),
                false => BTreeMap::new(),
            }
        };
        let capacity = of_each("cpu_capacity");
        let slower = match efficient.is_empty() && low_power.is_empty() {
            true => slower(
                &[&capacity, &of_each("acpi_cppc/highest_perf"), &of_each("acpi_cppc/nominal_perf")],
                || of_each("cpufreq/cpuinfo_max_freq"),
            ),
            false => CpuSet::new(),
        };
        CoreKinds { efficient, low_power, slower, capacity }
    }

    fn of(&self, cpu: u32) -> CoreKind {
        match () {
            () if self.low_power.contains(cpu) => CoreKind::LowPowerEfficient,
            () if self.efficient.contains(cpu) || self.slower.contains(cpu) => CoreKind::Efficient,
            () => CoreKind::Performance,
        }
    }
}

/// The CPUs of a slower kind where nothing names kinds: by the first measure that knows more than one value's worth of every
/// CPU. What a core can do (capacity, CPPC) does not change; its highest speed is the last resort, since boost and the
/// firmware's limits move it from policy to policy.
///
/// Cores of one kind differ a little (the best ones are preferred), and there can be many of them in small steps. Another
/// kind begins where two neighbours in that order differ by more than a fifth.
fn slower(measures: &[&BTreeMap<u32, u32>], speed: impl Fn() -> BTreeMap<u32, u32>) -> CpuSet {
    let speed = || measures.iter().all(|m| m.is_empty()).then(&speed).unwrap_or_default();
    let by_speed = speed();
    let Some(measure) = measures.iter().copied().chain([&by_speed]).find(|m| !m.is_empty()) else {
        return CpuSet::new();
    };
    let mut values: Vec<u32> = measure.values().copied().filter(|v| *v > 0).collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    let step = values.windows(2).find(|w| u64::from(w[1]) * 10 < u64::from(w[0]) * 8);
    let Some(&[_, below]) = step else { return CpuSet::new() };
    measure.iter().filter(|(_, v)| **v <= below && **v > 0).map(|(cpu, _)| *cpu).collect()
}

/// Intel's processors of efficient cores alone have no device that says so. Family 6, models as in Linux 6.12
/// (arch/x86/include/asm/intel-family.h): Alder Lake-N, Sierra Forest, Grand Ridge, Clearwater Forest.
fn is_all_efficient(root: &dyn Root) -> bool {
    let info = text(root, "proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let of =
            |l: &str| l.split_once(':').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim().to_owned());
        info.lines().find_map(of)
    };
    value("vendor_id").as_deref() == Some("GenuineIntel")
        && value("cpu family").as_deref() == Some("6")
        && value("model")
            .and_then(|m| m.parse::<u32>().ok())
            .is_some_and(|m| [0xbe, 0xaf, 0xb6, 0xdd].contains(&m))
}

/// Names that say what an instruction set is called, and nothing of the machine.
fn is_generic(name: &str) -> bool {
    ["ARMv", "AArch64 Processor", "Generic", "generic"].iter().any(|word| name.starts_with(word))
}

/// What the kernel calls the processor. Every architecture has its own key for it (`arch/*/kernel`, `show_cpuinfo`); where it
/// names the instruction set alone, the board or its chip is said before it.
pub fn processor(root: &dyn Root) -> Option<String> {
    Some(wattwise_figure::one_line(&named(root)?))
}

/// As the files have it.
fn named(root: &dyn Root) -> Option<String> {
    let info = text(root, "proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let pairs = info.lines().filter_map(|l| l.split_once(':'));
        let mut values = pairs.filter(|(k, _)| k.trim().eq_ignore_ascii_case(key)).map(|(_, v)| v.trim());
        values.find(|v| !v.is_empty()).map(str::to_owned)
    };
    // x86, Arm and Itanium, LoongArch (`Model Name`); POWER, PA-RISC, SPARC; MIPS, Alpha; RISC-V; m68k; s390.
    let power = || value("cpu").map(|cpu| cpu.split(", altivec").next().unwrap_or(&cpu).to_owned());
    let s390 = || {
        let machine = info.lines().find_map(|l| l.split_once("machine = "))?.1.trim().to_owned();
        Some(format!("{} machine {machine}", value("vendor_id").unwrap_or_else(|| "IBM/S390".to_owned())))
    };
    let named = value("model name")
        .or_else(power)
        .or_else(|| value("cpu model"))
        .or_else(|| value("uarch"))
        .or_else(s390);
    let file = |path: &str| text(root, path).filter(|t| !t.is_empty());
    let tree = || {
        let model = file("sys/firmware/devicetree/base/model").or_else(|| file("proc/device-tree/model"));
        model.map(|m| m.trim_end_matches('\0').to_owned())
    };
    let is_name = |v: &String| v.parse::<f64>().is_err();
    let hardware = || value("Hardware").filter(|h| !is_generic(h));
    let board =
        || value("Model").filter(is_name).or_else(tree).or_else(hardware).or_else(|| value("system type"));
    match named {
        Some(name) if !is_generic(&name) => Some(name),
        Some(generic) => {
            let Some(board) = board() else { return Some(generic) };
            let chip = hardware().filter(|h| *h != board).map(|h| format!("{h}, ")).unwrap_or_default();
            Some(format!("{board} ({chip}{generic})"))
        }
        None => hardware()
            .or_else(|| value("Processor").filter(is_name).filter(|p| !is_generic(p)))
            .or_else(board)
            .or_else(|| file("sys/devices/virtual/dmi/id/product_name"))
            .or_else(|| value("Processor").filter(is_name))
            // Arm's numbers, where nothing has words.
            .or_else(|| {
                let (maker, part) = value("CPU implementer").zip(value("CPU part"))?;
                Some(format!("Arm processor (implementer {maker}, part {part})"))
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::select::Selector;
    use crate::root::tree::{Tree, TreeRoot};

    /// A captured machine: (path below `sys/devices/system`, or from the top, content).
    fn machine(files: &[(&str, &str)]) -> Topology {
        let mut tree = Tree::default();
        for (path, content) in files {
            let path = if path.starts_with("proc/") {
                (*path).to_owned()
            } else {
                format!("sys/devices/system/{path}")
            };
            tree.files.insert(path, format!("{content}\n").into_bytes());
        }
        Topology::read(&TreeRoot::new(tree, "test"))
    }

    fn cpus(of: &[&[(&str, &str)]]) -> Vec<(String, String)> {
        let file = |(n, (name, content)): (usize, &(&str, &str))| {
            (format!("cpu/cpu{n}/{name}"), (*content).to_owned())
        };
        of.iter().enumerate().flat_map(|(n, files)| files.iter().map(move |f| file((n, f)))).collect()
    }

    fn made_of(files: &[(String, String)]) -> Topology {
        let files: Vec<(&str, &str)> = files.iter().map(|(p, c)| (p.as_str(), c.as_str())).collect();
        machine(&files)
    }

    /// 64 cores of RISC-V were counted as 4: the id is that within a cluster.
    #[test]
    fn core_ids_repeat_under_clusters_and_sibling_lists() {
        let core = |id, cluster| {
            vec![
                ("topology/core_id", id),
                ("topology/cluster_id", cluster),
                ("topology/physical_package_id", "0"),
            ]
        };
        let clusters = [core("0", "0"), core("1", "0"), core("0", "1"), core("1", "1")];
        let t = made_of(&cpus(&clusters.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        assert_eq!(t.count(|c| c.core), 4);
        // No clusters named, only who shares a core.
        let thread = |siblings| {
            [
                ("topology/core_id", "0"),
                ("topology/physical_package_id", "0"),
                ("topology/thread_siblings", siblings),
            ]
        };
        let t = made_of(&cpus(&[
            &thread("00000003"),
            &thread("00000003"),
            &thread("0000000c"),
            &thread("0000000c"),
        ]));
        assert_eq!((t.count(|c| c.core), t.cpus[3].threads.to_string()), (2, "2-3".to_owned()));
        // Ids that differ within a core.
        let own = |id| {
            [
                ("topology/core_id", id),
                ("topology/physical_package_id", "0"),
                ("topology/thread_siblings_list", "0-1"),
            ]
        };
        assert_eq!(made_of(&cpus(&[&own("0"), &own("1")])).count(|c| c.core), 1);
    }

    #[test]
    fn a_number_selects_one_core_where_the_kernel_s_ids_repeat() {
        let core = |cluster| {
            [
                ("topology/core_id", "0"),
                ("topology/cluster_id", cluster),
                ("topology/physical_package_id", "0"),
            ]
        };
        let t = made_of(&cpus(&[&core("0"), &core("1"), &core("2")]));
        for n in ["0", "1", "2"] {
            let chosen = Selector { cores: Some(n.into()), ..Default::default() }.resolve(&t, false);
            assert_eq!(chosen.expect("a core").to_string(), n);
        }
    }

    /// A Cell names neither cores nor packages, an old s390 no ids at all.
    #[test]
    fn lists_of_neighbours_alone_make_cores_and_packages() {
        let thread = [("topology/thread_siblings_list", "0-1"), ("topology/thread_siblings", "00000003")];
        let t = made_of(&cpus(&[&thread, &thread]));
        assert_eq!((t.count(|c| c.core), t.count(|c| c.package)), (1, 0));
        let core = [("topology/core_siblings_list", "0-1")];
        let t = made_of(&cpus(&[&core, &core]));
        assert_eq!((t.count(|c| c.core), t.count(|c| c.package)), (0, 1));
    }

    #[test]
    fn nodes_are_read_from_maps_and_counted_without_cpus() {
        let core = [("topology/core_id", "0"), ("topology/physical_package_id", "0")];
        let mut files = cpus(&[&core, &core]);
        files.extend(
            [
                ("node/node0/cpumap", "00000000,00000001"),
                ("node/node1/cpulist", "1\0"),
                ("node/node2/cpulist", ""),
            ]
            .map(|(p, c)| (p.to_owned(), c.to_owned())),
        );
        let t = made_of(&files);
        assert_eq!(t.nodes, [0, 1, 2]);
        assert_eq!(t.cpus.iter().map(|c| c.node).collect::<Vec<_>>(), [Some(0), Some(1)]);
    }

    #[test]
    fn each_cpu_says_whether_it_runs_where_no_list_does() {
        let core = |id| vec![("topology/core_id", id), ("topology/physical_package_id", "0")];
        let mut files = cpus(&[&core("0"), &core("1"), &core("2")]);
        files.extend(
            [("cpu/cpu1/online", "0"), ("cpu/cpu2/online", "1")].map(|(p, c)| (p.to_owned(), c.to_owned())),
        );
        assert_eq!(made_of(&files).online.to_string(), "0,2");
    }

    #[test]
    fn a_package_without_a_number_is_one() {
        for package in [&[("topology/physical_package_id", "-1")][..], &[]] {
            let core: Vec<_> =
                [("topology/core_id", "0")].into_iter().chain(package.iter().copied()).collect();
            let t = made_of(&cpus(&[&core]));
            assert_eq!((t.cpus[0].package, t.count(|c| c.package)), (Some(0), 1));
        }
    }

    #[test]
    fn packages_without_numbers_or_with_the_same_are_told_by_neighbours() {
        for package in ["-1", "0"] {
            let core = |siblings| {
                [
                    ("topology/core_id", "0"),
                    ("topology/physical_package_id", package),
                    ("topology/core_siblings", siblings),
                ]
            };
            let t = made_of(&cpus(&[&core("3"), &core("3"), &core("c"), &core("c")]));
            let packages: Vec<_> = t.cpus.iter().map(|c| c.package).collect();
            assert_eq!(packages, [Some(0), Some(0), Some(1), Some(1)], "{package}");
        }
    }

    fn kinds(of: &[&[(&str, &str)]]) -> Vec<String> {
        let t = made_of(&cpus(of));
        t.kinds().iter().map(|(kind, cpus)| format!("{kind} {cpus}")).collect()
    }

    /// Boost that is off for one policy, or a limit of the firmware, changes a highest speed and no core.
    #[test]
    fn kinds_are_by_what_a_core_can_do_and_not_by_a_maximum_that_boost_changes() {
        let core =
            |khz, file, perf| [("cpufreq/cpuinfo_max_freq", khz), (file, perf), ("topology/core_id", "0")];
        for file in ["cpu_capacity", "acpi_cppc/highest_perf", "acpi_cppc/nominal_perf"] {
            let (boosted, not) = (core("5100000", file, "200"), core("3300000", file, "200"));
            assert_eq!(kinds(&[&boosted, &not]), ["P 0-1"], "{file}");
            let (big, little) = (core("3000000", file, "200"), core("3000000", file, "120"));
            assert_eq!(kinds(&[&big, &little]), ["P 0", "E 1"], "{file}");
        }
        // Sixteen preferred cores in steps of five: one kind.
        let perf: Vec<String> = (0..16).map(|n| (236 - 5 * n).to_string()).collect();
        let cores: Vec<_> = perf.iter().map(|p| [("acpi_cppc/highest_perf", p.as_str())]).collect();
        assert_eq!(kinds(&cores.iter().map(|c| &c[..]).collect::<Vec<_>>()), ["P 0-15"]);
    }

    #[test]
    fn every_architecture_has_a_name() {
        let name = |info: &str| machine(&[("proc/cpuinfo", info)]).processor;
        for (info, expected) in [
            (
                "system type\t: generic-loongson-machine\n\nprocessor\t: 0\nCPU Family\t: Loongson-64bit\nModel Name\t: Loongson-3A6000\nCPU MHz\t: 2500.00",
                "Loongson-3A6000",
            ),
            (
                "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n\nplatform\t: PowerNV\nmodel\t\t: T2P9D01 REV 1.01",
                "POWER9",
            ),
            (
                "processor\t: 0\nmodel name\t: ARMv7 Processor rev 3 (v7l)\n\nHardware\t: BCM2711\nModel\t\t: Raspberry Pi 4 Model B Rev 1.1",
                "Raspberry Pi 4 Model B Rev 1.1 (BCM2711, ARMv7 Processor rev 3 (v7l))",
            ),
            (
                "Processor\t: ARMv7 Processor rev 2 (v7l)\nprocessor\t: 0\n\nHardware\t: OMAP3 Beagle Board",
                "OMAP3 Beagle Board",
            ),
            ("system type\t: MT7621\nprocessor\t: 0\ncpu model\t: MIPS 1004Kc V2.15", "MIPS 1004Kc V2.15"),
            ("processor\t: 0\nhart\t: 1\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc", "sifive,u74-mc"),
            (
                "vendor_id       : IBM/S390\nprocessor 0: version = FF,  identification = 1A2B3C,  machine = 3931",
                "IBM/S390 machine 3931",
            ),
            ("cpu\t\t: TI UltraSparc IIi (Sabre)\nfpu\t\t: UltraSparc", "TI UltraSparc IIi (Sabre)"),
            (
                "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 142\nmodel name\t: Intel(R) Core(TM) i7",
                "Intel(R) Core(TM) i7",
            ),
        ] {
            assert_eq!(name(info).as_deref(), Some(expected));
        }
        // Arm's 64 bits name nothing: the board does, by its device tree or its firmware.
        let arm = "processor\t: 0\nBogoMIPS\t: 48.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b";
        assert_eq!(name(arm).as_deref(), Some("Arm processor (implementer 0x41, part 0xd0b)"));
        assert_eq!(name("processor\t: 0"), None);
        let named = |path: &str| {
            let mut tree = Tree::default();
            tree.files.insert("proc/cpuinfo".into(), arm.as_bytes().to_vec());
            tree.files.insert(path.into(), b"Ampere Altra\0".to_vec());
            Topology::read(&TreeRoot::new(tree, "test")).processor
        };
        for path in ["sys/firmware/devicetree/base/model", "sys/devices/virtual/dmi/id/product_name"] {
            assert_eq!(named(path).as_deref(), Some("Ampere Altra"));
        }
    }

    #[test]
    fn kinds_without_a_device_that_names_them() {
        let core = |id, khz| {
            vec![
                ("topology/core_id", id),
                ("topology/physical_package_id", "0"),
                ("cpufreq/cpuinfo_max_freq", khz),
            ]
        };
        let cores = [core("0", "5200000"), core("1", "5000000"), core("2", "3900000")];
        let t = made_of(&cpus(&cores.iter().map(Vec::as_slice).collect::<Vec<_>>()));
        let shown: Vec<_> = t.kinds().iter().map(|(kind, cpus)| format!("{kind} {cpus}")).collect();
        assert_eq!(shown, ["P 0-1", "E 2"]);
        // Sierra Forest: efficient cores alone.
        let info = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 175\nmodel name\t: Xeon 6780E";
        let t = machine(&[("proc/cpuinfo", info), ("cpu/cpu0/topology/core_id", "0")]);
        assert_eq!(t.kinds().into_keys().collect::<Vec<_>>(), [CoreKind::Efficient]);
    }
}
