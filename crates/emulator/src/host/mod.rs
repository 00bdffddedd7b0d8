//! The machine behind the tree: what its files mean, how they hang together, how time moves them.
//!
//! The tree's text is the truth for everything that is set; here is only what no file says (the
//! limits that were asked for, remainders of counters, what a CPU does). Times are integer
//! nanoseconds and energies integer microjoules with their remainders, so nothing is lost however
//! time is cut into steps.

mod truth;

pub use truth::Truth;

use crate::cpulist;
use crate::registers::{RegisterDevice, Registers};
use crate::tree::{Id, Live, NodeKind, Tree};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use wattwise_figure::Random;
use wattwise_hw::msr::counters::{APERF, MPERF, TSC};
use wattwise_hw::rules::{self, Limit};
use wattwise_hw::rules::{Relation, View};
use wattwise_hw::states::supply;
use wattwise_hw::states::supply::{Feeds, Source};
use wattwise_model::machine::Thermal;

const CPU: &str = "sys/devices/system/cpu";
/// A package's temperature follows its power by one pole.
const TAU_NS: u64 = 10_000_000_000;

const PERF_STATUS: u32 = 0x198;
const ENERGY_PERF_BIAS: u32 = 0x1b0;
/// Energy counters, each with the zone whose energy it shows.
const ENERGY: [(u32, Domain); 6] = [
    (0x611, Domain::Package),
    (0x619, Domain::Dram),
    (0x639, Domain::Core),
    (0x641, Domain::Uncore),
    (0x64d, Domain::Platform),
    (0xc001_029b, Domain::Package),
];

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
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct IdleState {
    latency_us: u64,
    residency_us: u64,
    disable: String,
    pub(crate) usage: u64,
    pub(crate) time_ns: u64,
    pub(crate) above: u64,
    pub(crate) below: u64,
    pub(crate) rejected: u64,
    /// What the counters showed when the machine was captured: usage, time in us, above, below.
    base: [u64; 5],
}

#[derive(Debug, Clone)]
pub(crate) struct Cpu {
    pub(crate) id: u32,
    pub(crate) online: bool,
    pub(crate) load_permille: u32,
    pub(crate) package: u32,
    core: (u32, u32),
    policy: Option<usize>,
    pub(crate) busy_ns: u64,
    pub(crate) idle_ns: u64,
    /// The captured line of /proc/stat, in ticks.
    ticks: [u64; 10],
    pub(crate) states: Vec<IdleState>,
    /// What was taken out of the tree with the CPU.
    aside: Vec<(String, Id)>,
    pub(crate) aperf: u64,
    pub(crate) mperf: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct HostPolicy {
    pub(crate) number: u32,
    pub(crate) folder: String,
    related: Vec<u32>,
    /// What users asked for.
    asked: (u32, u32),
    /// What the hardware has, with turbo or boost.
    hw: (u32, u32),
    nominal: u32,
    setspeed: u32,
    pub(crate) cur: u32,
    /// Nanoseconds at each level of the statistics.
    pub(crate) residency: Vec<(u32, u64)>,
    /// What the statistics showed at the start, in their units of 10 ms.
    base: Vec<u64>,
    pub(crate) transitions: u64,
    matrix: Vec<u64>,
    /// The preference to return to when the performance governor leaves.
    preference: Option<String>,
    /// Whether its driver is loaded.
    aside: Option<Id>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domain {
    Package,
    Core,
    Uncore,
    Dram,
    Platform,
}

#[derive(Debug, Clone)]
pub(crate) struct Zone {
    folder: String,
    domain: Domain,
    package: u32,
    /// Into how many the kernel divides its package: each shows its part.
    dies: u64,
    pub(crate) range_uj: u64,
    pub(crate) energy_uj: u64,
    /// Microwatt-nanoseconds short of the next microjoule.
    rest: u64,
    /// Everything since the start, without wraps.
    pub(crate) total_uj: u128,
}

#[derive(Debug, Clone)]
pub(crate) struct Battery {
    full: u64,
    /// Whether it counts energy (uWh) or charge (uAh).
    energy: bool,
    /// Gauges of some makers count what is drawn as negative, those of others what is charged: on mains, or without.
    negative_on_mains: Option<bool>,
    voltage_uv: u64,
    /// What is left, in thousandths of what is shown.
    left_milli: u64,
    shown: u64,
    shown_uw: u64,
    since_ns: u64,
    /// Microwatt-nanoseconds drawn since the last renewal.
    drawn: u128,
}

impl Battery {
    /// As its gauge shows a flow of that size.
    fn signed(&self, size: u64, mains: bool) -> i64 {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        if self.negative_on_mains == Some(mains) { -size } else { size }
    }
}

#[derive(Debug, Clone, Copy)]
enum Form {
    List,
    Mask,
    Words,
}

/// What an idle governor makes of a CPU's load.
#[derive(Default)]
pub(crate) struct IdleChoice {
    /// The state, by its place in the CPU's list; none where it has none.
    pub(crate) deepest: Option<usize>,
    /// A deeper one is open.
    deeper: bool,
    /// Between two wake-ups.
    interval_us: u64,
    /// Wake-ups.
    wakes: u64,
}

pub(crate) struct Host {
    pub(crate) tree: Tree,
    pub(crate) physics: Physics,
    pub(crate) release: (u32, u32),
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) policies: Vec<HostPolicy>,
    policy_of_folder: BTreeMap<Id, usize>,
    pub(crate) zones: Vec<Zone>,
    batteries: Vec<Battery>,
    /// Temperatures of packages, in thousandths of a degree.
    heat_mc: BTreeMap<u32, i64>,
    /// Sets of CPUs that shrink when one goes.
    groups: Vec<(Id, Vec<u32>, Form)>,
    pub(crate) mains: bool,
    pub(crate) now_ns: u64,
    cpuinfo: String,
    stat_rest: String,
    width: u32,
    pub(crate) registers: Box<dyn RegisterDevice>,
    seed: u64,
    /// What it really draws; none is the description's rough figure.
    pub(crate) truth: Option<Arc<Truth>>,
    wavering: truth::Wavering,
    /// What the packages draw, while time passes.
    true_now: Vec<truth::PackageWatts>,
    /// By what each package slows its cores, to stay within its limits of power and heat.
    slowed: Vec<f64>,
    /// Time that each package slept in each of its states, by their places in the model, in ns.
    slept_ns: BTreeMap<(usize, usize), u64>,
    /// A speed that the hardware does not pass: heat, or a supply that is too weak.
    pub(crate) ceiling_khz: Option<u32>,
    /// `hwp_dynamic_boost` while intel_pstate shows none.
    hwp_boost: Option<Id>,
    /// `cpufreq/boost` while the driver that has it is off.
    boost_aside: Option<Id>,
}

impl View for Host {
    fn text(&self, path: &str) -> Option<String> {
        let id = self.tree.find(path, true)?;
        let bytes = self.render(id).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
    fn list(&self, path: &str) -> Vec<String> {
        let names = self.tree.find(path, true).and_then(|id| self.tree.names(id));
        names.map(|n| n.keys().cloned().collect()).unwrap_or_default()
    }
}

fn digits(name: &str, stem: &str) -> Option<u32> {
    name.strip_prefix(stem)?.parse().ok()
}

impl Host {
    /// Finds out what a tree is about and brings its counters to life.
    pub(crate) fn new(tree: Tree, physics: Physics, seed: u64) -> Host {
        let mut m = Host {
            tree,
            registers: Box::new(Registers::new(physics.registers.clone())),
            physics,
            release: (0, 0),
            cpus: Vec::new(),
            policies: Vec::new(),
            policy_of_folder: BTreeMap::new(),
            zones: Vec::new(),
            batteries: Vec::new(),
            heat_mc: BTreeMap::new(),
            groups: Vec::new(),
            mains: true,
            now_ns: 0,
            cpuinfo: String::new(),
            stat_rest: String::new(),
            width: 1,
            seed,
            truth: None,
            wavering: truth::Wavering::default(),
            true_now: Vec::new(),
            slowed: Vec::new(),
            slept_ns: BTreeMap::new(),
            ceiling_khz: None,
            hwp_boost: None,
            boost_aside: None,
        };
        m.release = rules::release(&m);
        m.scan_cpus();
        m.scan_policies();
        m.scan_groups();
        m.scan_power();
        m.scan_proc();
        m.allow_writes();
        if m.physics.described {
            m.refresh_tunables();
        }
        m.refresh_all();
        m
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// A live file in place of the captured one, if there was one.
    fn enliven(&mut self, path: &str, live: Live) {
        if let Some(id) = self.tree.find(path, true)
            && let Some(file) = self.tree.file_mut(id)
            && matches!(file.kind, NodeKind::Text(_))
        {
            file.kind = NodeKind::Live(live);
        }
    }

    fn scan_cpus(&mut self) {
        let online = self.text(&format!("{CPU}/online")).map(|t| cpulist::parse(&t));
        let mut ids: Vec<u32> = self.list(CPU).iter().filter_map(|n| digits(n, "cpu")).collect();
        ids.sort_unstable();
        self.width = ids.last().map_or(1, |last| last + 1);
        for id in ids {
            let topology =
                |name: &str| self.number(&format!("{CPU}/cpu{id}/topology/{name}")).map_or(0, |n| n as u32);
            let package = topology("physical_package_id").min(u32::from(u16::MAX));
            let core = (package, topology("core_id"));
            let mut states = Vec::new();
            let folder = format!("{CPU}/cpu{id}/cpuidle");
            while states.len() < 16 {
                let state = format!("{folder}/state{}", states.len());
                if self.list(&state).is_empty() {
                    break;
                }
                let n = |name: &str| self.number(&format!("{state}/{name}")).unwrap_or(0);
                states.push(IdleState {
                    latency_us: n("latency"),
                    residency_us: n("residency"),
                    disable: format!("{state}/disable"),
                    usage: 0,
                    time_ns: 0,
                    above: 0,
                    below: 0,
                    rejected: 0,
                    base: [n("usage"), n("time"), n("above"), n("below"), n("rejected")],
                });
            }
            for (i, _) in states.iter().enumerate() {
                let (cpu, state) = (id, i as u32);
                let path = |name: &str| format!("{folder}/state{i}/{name}");
                self.enliven(&path("usage"), Live::IdleUsage { cpu, state });
                self.enliven(&path("time"), Live::IdleTime { cpu, state });
                self.enliven(&path("above"), Live::IdleAbove { cpu, state });
                self.enliven(&path("below"), Live::IdleBelow { cpu, state });
                self.enliven(&path("rejected"), Live::IdleRejected { cpu, state });
            }
            let online = online.as_ref().is_none_or(|set| set.contains(&id));
            self.cpus.push(Cpu {
                id,
                online,
                load_permille: 0,
                package,
                core,
                policy: None,
                busy_ns: 0,
                idle_ns: 0,
                ticks: [0; 10],
                states,
                aside: Vec::new(),
                aperf: 0,
                mperf: 0,
            });
            if self.tree.find(&format!("dev/cpu/{id}/msr"), true).is_some() {
                self.tree.put(&format!("dev/cpu/{id}/msr"), NodeKind::Live(Live::Registers { cpu: id }));
            }
        }
    }

    fn scan_policies(&mut self) {
        let mut folders = Vec::new();
        for name in self.list(&format!("{CPU}/cpufreq")) {
            if let Some(number) = digits(&name, "policy") {
                folders.push((number, format!("{CPU}/cpufreq/{name}")));
            }
        }
        // Before 4.2 the policy's folder is the CPU's own.
        for cpu in &self.cpus {
            let path = format!("{CPU}/cpu{}/cpufreq", cpu.id);
            if self.tree.find(&path, false).is_some_and(|id| self.tree.names(id).is_some()) {
                folders.push((cpu.id, path));
            }
        }
        folders.sort();
        for (number, folder) in folders {
            let n = |name: &str| self.number(&format!("{folder}/{name}")).map(|n| n as u32);
            let (Some(hw_min), Some(hw_max)) = (n("cpuinfo_min_freq"), n("cpuinfo_max_freq")) else {
                continue;
            };
            let hw = (hw_min.min(hw_max), hw_max);
            let mut related =
                self.text(&format!("{folder}/related_cpus")).map(|t| cpulist::parse(&t)).unwrap_or_default();
            if related.is_empty() {
                related.push(number);
            }
            let asked = (n("scaling_min_freq").unwrap_or(hw.0), n("scaling_max_freq").unwrap_or(hw.1));
            let nominal = self.physics.nominal_khz.get(&number).copied();
            let nominal = nominal.or_else(|| n("base_frequency")).unwrap_or(hw.1).min(hw.1);
            let cur = n("scaling_cur_freq").or_else(|| n("scaling_setspeed")).unwrap_or(asked.1);
            let stats = self.text(&format!("{folder}/stats/time_in_state")).unwrap_or_default();
            let mut residency = Vec::new();
            let mut base = Vec::new();
            for line in stats.lines() {
                let mut words = line.split_whitespace().map(str::parse::<u64>);
                if let (Some(Ok(khz)), Some(Ok(ticks))) = (words.next(), words.next()) {
                    residency.push((khz as u32, 0));
                    base.push(ticks);
                }
            }
            let transitions = self.number(&format!("{folder}/stats/total_trans")).unwrap_or(0);
            let table = self.text(&format!("{folder}/stats/trans_table")).unwrap_or_default();
            let rows = table.lines().skip(2).filter_map(|l| l.split_once(':'));
            let mut matrix: Vec<u64> =
                rows.flat_map(|r| r.1.split_whitespace()).map(|n| n.parse().unwrap_or(0)).collect();
            matrix.resize(residency.len() * residency.len(), 0);
            let Some(folder_id) = self.tree.find(&folder, true) else { continue };
            for (name, live) in [
                ("scaling_cur_freq", Live::Speed { policy: number }),
                ("cpuinfo_cur_freq", Live::Speed { policy: number }),
                ("cpuinfo_avg_freq", Live::Speed { policy: number }),
                ("stats/time_in_state", Live::TimeInState { policy: number }),
                ("stats/total_trans", Live::TotalTrans { policy: number }),
                ("stats/trans_table", Live::TransTable { policy: number }),
            ] {
                self.enliven(&format!("{folder}/{name}"), live);
            }
            let index = self.policies.len();
            for cpu in self.cpus.iter_mut().filter(|c| related.contains(&c.id)) {
                cpu.policy = Some(index);
            }
            self.policy_of_folder.insert(folder_id, index);
            self.policies.push(HostPolicy {
                number,
                folder,
                related,
                asked,
                hw,
                nominal,
                setspeed: cur,
                cur,
                matrix,
                residency,
                base,
                transitions,
                preference: None,
                aside: None,
            });
        }
    }

    fn scan_groups(&mut self) {
        let mut found = Vec::new();
        for cpu in &self.cpus {
            for folder in ["topology", "cache"] {
                for (path, id) in self.tree.below(&format!("{CPU}/cpu{}/{folder}", cpu.id)) {
                    let name = path.rsplit('/').next().unwrap_or("");
                    let list = format!("{path}_list");
                    match name {
                        _ if name.ends_with("_list") => found.push((id, path.clone(), Form::List)),
                        // A mask says what its list says.
                        "shared_cpu_map" => found.push((id, path.replace("_map", "_list"), Form::Mask)),
                        _ if self.tree.find(&list, true).is_some() => found.push((id, list, Form::Mask)),
                        _ => {}
                    }
                }
            }
        }
        for (path, id) in self.tree.below("sys/devices/system/node") {
            match path.rsplit('/').next() {
                Some("cpulist") => found.push((id, path, Form::List)),
                Some("cpumap") => found.push((id, path.replace("cpumap", "cpulist"), Form::Mask)),
                _ => {}
            }
        }
        for kind in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
            let path = format!("sys/devices/{kind}/cpus");
            if let Some(id) = self.tree.find(&path, true) {
                found.push((id, path, Form::List));
            }
        }
        for policy in &self.policies {
            for name in ["affected_cpus", "freqdomain_cpus"] {
                let path = format!("{}/{name}", policy.folder);
                if let Some(id) = self.tree.find(&path, true) {
                    found.push((id, path, Form::Words));
                }
            }
        }
        let sets: Vec<_> = found
            .into_iter()
            .map(|(id, path, form)| {
                (id, self.text(&path).map(|t| cpulist::parse(&t)).unwrap_or_default(), form)
            })
            .filter(|(_, set, _)| !set.is_empty())
            .collect();
        self.groups = sets;
    }

    fn scan_power(&mut self) {
        self.scan_zones();
        self.scan_supplies();
        self.scan_heat();
    }

    /// powercap's zones; one inside another is of the same package.
    fn scan_zones(&mut self) {
        let mut zones: Vec<String> = Vec::new();
        for top in ["sys/devices/virtual/powercap", "sys/class/powercap"] {
            for (path, _) in self.tree.below(top) {
                if let Some(folder) = path.strip_suffix("/energy_uj") {
                    zones.push(folder.to_owned());
                }
            }
        }
        let mut package_of_folder: BTreeMap<String, u32> = BTreeMap::new();
        let names: BTreeSet<String> =
            zones.iter().filter_map(|folder| self.text(&format!("{folder}/name"))).collect();
        for folder in zones {
            let name = self.text(&format!("{folder}/name")).unwrap_or_default();
            let package = name.strip_prefix("package-").and_then(|n| n.split('-').next()?.parse().ok());
            let above = folder.rsplit_once('/').and_then(|(f, _)| package_of_folder.get(f)).copied();
            let package = package.or(above).unwrap_or(0);
            package_of_folder.insert(folder.clone(), package);
            let domain = match name.as_str() {
                "core" => Domain::Core,
                "uncore" => Domain::Uncore,
                "dram" => Domain::Dram,
                "psys" => Domain::Platform,
                _ => Domain::Package,
            };
            let zone = self.zones.len() as u32;
            let range = self.number(&format!("{folder}/max_energy_range_uj")).unwrap_or(u64::MAX);
            let energy = self.number(&format!("{folder}/energy_uj")).unwrap_or(0);
            self.enliven(&format!("{folder}/energy_uj"), Live::Energy { zone });
            let range_uj = range.max(1);
            let of_package = format!("package-{package}-die-");
            let dies = names.iter().filter(|name| name.starts_with(&of_package)).count().max(1) as u64;
            self.zones.push(Zone {
                dies,
                folder,
                domain,
                package,
                range_uj,
                energy_uj: energy.min(range_uj),
                rest: 0,
                total_uj: 0,
            });
        }
    }

    /// Mains and batteries.
    fn scan_supplies(&mut self) {
        let supply = supply::read(self);
        self.mains = supply.source == Source::Mains;
        // The adapters that feed it now come and go with the mains; where none does, the first that could. The others stay.
        let feeding = supply.adapters.iter().filter(|a| a.feeds == Feeds::Machine);
        let mut switched: Vec<&str> = feeding.map(|a| a.name.as_str()).collect();
        if switched.is_empty() || !self.mains {
            let able = supply.adapters.iter().filter(|a| a.feeds == Feeds::Nothing);
            switched = able.min_by_key(|a| a.kind != "Mains").map(|a| a.name.as_str()).into_iter().collect();
        }
        for name in &switched {
            self.enliven(&format!("sys/class/power_supply/{name}/online"), Live::Mains);
        }
        for name in self.list("sys/class/power_supply") {
            let folder = format!("sys/class/power_supply/{name}");
            let n = |name: &str| self.number(&format!("{folder}/{name}"));
            match self.text(&format!("{folder}/type")).as_deref() {
                Some("Battery") if supply.batteries.iter().any(|b| b.name == name) => {
                    let energy = n("energy_now").is_some();
                    let (now, full) = match energy {
                        true => (n("energy_now"), n("energy_full")),
                        false => (n("charge_now"), n("charge_full")),
                    };
                    let (Some(now), Some(full)) = (now, full) else { continue };
                    let battery = self.batteries.len() as u32;
                    let voltage_uv =
                        n("voltage_now").or_else(|| n("voltage_min_design")).unwrap_or(11_400_000);
                    let signed = |name: &str| {
                        self.text(&format!("{folder}/{name}")).and_then(|t| t.parse::<i64>().ok())
                    };
                    let flow = signed("power_now").filter(|uw| *uw != 0).or_else(|| signed("current_now"));
                    let power = signed("power_now").map(i64::unsigned_abs).or_else(|| {
                        signed("current_now").map(|ua| {
                            (u128::from(ua.unsigned_abs()) * u128::from(voltage_uv) / 1_000_000) as u64
                        })
                    });
                    self.batteries.push(Battery {
                        full: full.clamp(1, u64::MAX / 4096),
                        energy,
                        negative_on_mains: flow.filter(|flow| *flow < 0).map(|_| self.mains),
                        voltage_uv: voltage_uv.max(1),
                        left_milli: now.min(full).min(u64::MAX / 4096) * 1000,
                        shown: now.min(full),
                        shown_uw: power.unwrap_or(0),
                        since_ns: 0,
                        drawn: 0,
                    });
                    for name in ["energy_now", "charge_now"] {
                        self.enliven(&format!("{folder}/{name}"), Live::BatteryNow { battery });
                    }
                    self.enliven(&format!("{folder}/power_now"), Live::BatteryPower { battery });
                    self.enliven(&format!("{folder}/current_now"), Live::BatteryCurrent { battery });
                    self.enliven(&format!("{folder}/status"), Live::BatteryStatus { battery });
                    self.enliven(&format!("{folder}/capacity"), Live::BatteryCapacity { battery });
                }
                _ => {}
            }
        }
    }

    /// Temperatures: of each package, and the zones that show them.
    fn scan_heat(&mut self) {
        for package in self.cpus.iter().map(|c| c.package).collect::<BTreeSet<_>>() {
            self.heat_mc.insert(package, self.physics.ambient_mc);
        }
        let packages: Vec<u32> = self.heat_mc.keys().copied().collect();
        let mut next = packages.iter();
        for top in ["sys/devices/virtual/thermal", "sys/class/thermal"] {
            for name in self.list(top) {
                let kind = self.text(&format!("{top}/{name}/type")).unwrap_or_default();
                if kind == "x86_pkg_temp" || kind.starts_with("cpu") {
                    let package = next.next().or(packages.last()).copied().unwrap_or(0);
                    let now = self.text(&format!("{top}/{name}/temp")).and_then(|t| t.parse::<i64>().ok());
                    if let (Some(heat), Some(now)) = (self.heat_mc.get_mut(&package), now) {
                        *heat = now.clamp(-100_000, 1_000_000);
                    }
                    self.enliven(&format!("{top}/{name}/temp"), Live::Temperature { package });
                }
            }
        }
    }

    fn scan_proc(&mut self) {
        self.cpuinfo = self
            .tree
            .find("proc/cpuinfo", true)
            .and_then(|id| self.render(id).ok())
            .map(|b| String::from_utf8_lossy(&b).into_owned())
            .unwrap_or_default();
        self.enliven("proc/cpuinfo", Live::CpuInfo);
        for line in self.text("proc/stat").unwrap_or_default().lines() {
            let mut words = line.split_whitespace();
            match words.next().map(|w| (w, digits(w, "cpu"))) {
                Some((_, Some(id))) => {
                    if let Some(cpu) = self.cpus.iter_mut().find(|c| c.id == id) {
                        for (to, from) in cpu.ticks.iter_mut().zip(words) {
                            *to = from.parse().unwrap_or(0);
                        }
                    }
                }
                Some(("cpu", _)) | None => {}
                Some(_) => {
                    self.stat_rest += line;
                    self.stat_rest.push('\n');
                }
            }
        }
        self.enliven("proc/stat", Live::ProcStat);
        if !self.physics.described
            && let Some(up) = self.text("proc/uptime")
        {
            let hundredths =
                up.split_whitespace().next().and_then(|w| w.replace('.', "").parse::<u64>().ok());
            self.physics.uptime_ns = hundredths.unwrap_or(0).saturating_mul(10_000_000);
        }
        self.enliven("proc/uptime", Live::Uptime);
    }

    /// What the table of rules knows can be written, and nothing else.
    fn allow_writes(&mut self) {
        let below: Vec<(String, Id)> = self.tree.below("sys");
        for (path, id) in below {
            let writable = rules::attribute(&path).is_some_and(|a| !a.read_only);
            if let Some(file) = self.tree.file_mut(id) {
                file.writable = writable;
            }
        }
        for (_, id) in self.tree.below("dev/cpu") {
            if let Some(file) = self.tree.file_mut(id) {
                file.writable = true;
            }
        }
    }

    /// Sets an attribute's text; makes it when it is missing.
    fn set(&mut self, path: &str, value: impl std::fmt::Display) {
        let text = NodeKind::Text(format!("{value}\n").into_bytes());
        match self.tree.find(path, true) {
            Some(id) => {
                if let Some(file) = self.tree.file_mut(id) {
                    file.kind = text;
                }
            }
            None => {
                let id = self.tree.put(path, text);
                let writable = rules::attribute(path).is_some_and(|a| !a.read_only);
                if let Some(file) = self.tree.file_mut(id) {
                    file.writable = writable;
                }
            }
        }
    }

    /// As [`Host::set`], only when the attribute is there.
    fn update(&mut self, path: &str, value: impl std::fmt::Display) {
        if self.tree.find(path, true).is_some() {
            self.set(path, value);
        }
    }

    pub(crate) fn online(&self) -> Vec<u32> {
        self.cpus.iter().filter(|c| c.online).map(|c| c.id).collect()
    }

    fn is_online(&self, id: u32) -> bool {
        self.cpus.iter().any(|c| c.id == id && c.online)
    }

    /// Lists, limits and speeds from what is set.
    pub(crate) fn refresh_all(&mut self) {
        self.refresh_lists(None);
        for i in 0..self.policies.len() {
            self.refresh_policy(i);
        }
    }

    fn refresh_lists(&mut self, changed: Option<u32>) {
        let online = self.online();
        let every: Vec<u32> = self.cpus.iter().map(|c| c.id).collect();
        let offline: Vec<u32> = every.iter().copied().filter(|c| !online.contains(c)).collect();
        if every.is_empty() {
            return;
        }
        self.update(&format!("{CPU}/online"), cpulist::list(&online));
        self.update(&format!("{CPU}/offline"), cpulist::list(&offline));
        let is_online: BTreeSet<u32> = online.iter().copied().collect();
        for i in 0..self.groups.len() {
            let Some((id, set, form)) = self.groups.get(i) else { break };
            if changed.is_some_and(|c| !set.contains(&c)) {
                continue;
            }
            let now: Vec<u32> = set.iter().copied().filter(|c| is_online.contains(c)).collect();
            let text = match form {
                Form::List => cpulist::list(&now),
                Form::Mask => cpulist::mask(&now, self.width),
                Form::Words => cpulist::words(&now),
            };
            let id = *id;
            if let Some(file) = self.tree.file_mut(id) {
                file.kind = NodeKind::Text(format!("{text}\n").into_bytes());
            }
        }
        let mut cores = BTreeSet::new();
        let siblings = self.cpus.iter().filter(|c| c.online).any(|c| !cores.insert(c.core));
        self.update(&format!("{CPU}/smt/active"), u8::from(siblings));
    }

    fn is_inactive(&self, policy: &HostPolicy) -> bool {
        !policy.related.iter().any(|&c| self.is_online(c))
    }

    /// Levels that may be used now, the driver, the governor.
    fn policy_setting(&self, policy: &HostPolicy) -> (Vec<u32>, String, String) {
        let numbers = |name: &str| {
            let text = self.policy_text(policy, name);
            text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
        };
        let mut levels = numbers("scaling_available_frequencies");
        if !levels.is_empty() {
            levels.extend(numbers("scaling_boost_frequencies"));
            levels.sort_unstable();
            levels.dedup();
        }
        let text = |name| self.policy_text(policy, name).into_owned();
        (levels, text("scaling_driver"), text("scaling_governor"))
    }

    /// What an attribute of a policy holds; empty where there is none.
    fn policy_text(&self, policy: &HostPolicy, name: &str) -> Cow<'_, str> {
        let id = self.tree.find(&policy.folder, true).and_then(|folder| self.tree.child(folder, name));
        match id.and_then(|id| self.tree.file(id)).map(|f| &f.kind) {
            Some(NodeKind::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text.trim()),
                Err(_) => Cow::Owned(String::from_utf8_lossy(bytes).trim().to_owned()),
            },
            _ => Cow::Borrowed(""),
        }
    }

    /// What the hardware may do now: turbo and boost switches count.
    fn hardware_limits(&self, policy: &HostPolicy, driver: &str) -> (u32, u32) {
        let off = |path: &str, off: &str| self.text(path).is_some_and(|v| v == off);
        let no_turbo = driver.starts_with("intel_") && off(&format!("{CPU}/intel_pstate/no_turbo"), "1");
        // acpi-cpufreq's boost is the processor's own: its table and limits stay.
        let no_boost = driver != "acpi-cpufreq"
            && (off(&format!("{CPU}/cpufreq/boost"), "0") || self.own_boost_off(policy));
        let max = if no_turbo || no_boost { policy.nominal } else { policy.hw.1 };
        (policy.hw.0.min(max), max)
    }

    fn own_boost_off(&self, policy: &HostPolicy) -> bool {
        let id = self.tree.find(&format!("{}/boost", policy.folder), true);
        matches!(id.and_then(|id| self.tree.file(id)).map(|f| &f.kind), Some(NodeKind::Text(t)) if t == b"0\n")
    }

    /// Limits and speed of a policy from what was asked and is set.
    pub(crate) fn refresh_policy(&mut self, index: usize) {
        let Some(policy) = self.policies.get(index).cloned() else { return };
        if policy.aside.is_some() || self.is_inactive(&policy) {
            return;
        }
        let (levels, driver, governor) = self.policy_setting(&policy);
        let hw = self.hardware_limits(&policy, &driver);
        let (min, max) = rules::limits(&levels, hw, policy.asked, self.release);
        let folder = &policy.folder;
        // Since 6.10 intel_pstate shows the lower limit here too; cpufreq's own boost always did.
        if !driver.starts_with("intel_") || self.release >= (6, 10) {
            self.update(&format!("{folder}/cpuinfo_max_freq"), hw.1);
        }
        self.update(&format!("{folder}/scaling_min_freq"), min);
        self.update(&format!("{folder}/scaling_max_freq"), max);
        let speed = self.speed_of(&policy, &levels, &driver, &governor, (min, max));
        self.change_speed(index, speed);
        if governor == "userspace" {
            self.update(&format!("{folder}/scaling_setspeed"), speed);
        } else {
            self.update(&format!("{folder}/scaling_setspeed"), "<unsupported>");
        }
    }

    /// The speed that driver and governor come to for the load there is.
    fn speed_of(
        &self,
        policy: &HostPolicy,
        levels: &[u32],
        driver: &str,
        governor: &str,
        limits: (u32, u32),
    ) -> u32 {
        let (min, mut max) = limits;
        let mut low = min;
        if driver.starts_with("intel_") {
            let share = |name: &str, or: u64| {
                let pct = self.number(&format!("{CPU}/intel_pstate/{name}")).unwrap_or(or).min(100);
                (u64::from(policy.hw.1) * pct / 100) as u32
            };
            max = max.min(share("max_perf_pct", 100)).max(min);
            low = low.max(share("min_perf_pct", 0)).min(max);
        }
        let load = self
            .cpus
            .iter()
            .filter(|c| c.online && policy.related.contains(&c.id))
            .map(|c| c.load_permille)
            .max()
            .unwrap_or(0);
        let part = |of: u32, permille: u64| (u64::from(of) * permille / 1000) as u32;
        let step = rules::driver_step(driver);
        let (wanted, relation) = match governor {
            "performance" => (max, Relation::AtMost),
            "userspace" => (policy.setspeed, Relation::AtLeast),
            "ondemand" if load > 950 => (max, Relation::AtMost),
            "ondemand" => (low + part(max - low, u64::from(load)), Relation::Closest),
            "conservative" => match load {
                801.. => (max, Relation::AtMost),
                0..200 => (low, Relation::AtLeast),
                _ => (policy.cur, Relation::Closest),
            },
            "schedutil" => (part(policy.hw.1, u64::from(load) * 5 / 4), Relation::AtLeast),
            // intel_pstate and amd-pstate: the hardware's choice, in proportion to the load.
            "powersave" if rules::is_active_driver(driver) => {
                (low + part(max - low, u64::from(load)), Relation::AtLeast)
            }
            "powersave" => (low, Relation::AtLeast),
            _ => (policy.cur, Relation::Closest),
        };
        rules::resolve(levels, step, low, max, wanted, relation)
    }

    fn change_speed(&mut self, index: usize, khz: u32) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        if policy.cur == khz {
            return;
        }
        let at = |khz: u32| policy.residency.iter().position(|r| r.0 == khz);
        if let (Some(from), Some(to)) = (at(policy.cur), at(khz)) {
            let cell = from * policy.residency.len() + to;
            if let Some(n) = policy.matrix.get_mut(cell) {
                *n = n.wrapping_add(1);
            }
            policy.transitions = policy.transitions.wrapping_add(1);
        }
        policy.cur = khz;
    }

    /// Everything that follows from a write that the rules took.
    ///
    /// `path` is the attribute's own path, `shows` what the rules say it shows from now on.
    pub(crate) fn apply(&mut self, path: &str, value: &str, shows: &str) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let policy = self.policies.iter().position(|p| p.folder == folder);
        match (name, policy) {
            ("scaling_min_freq" | "scaling_max_freq", Some(i)) => {
                let limit = if name == "scaling_min_freq" { Limit::Min } else { Limit::Max };
                let asked = rules::limit_khz(value, limit, self.release);
                if let (Some(p), Ok(asked)) = (self.policies.get_mut(i), asked) {
                    let place = if limit == Limit::Min { &mut p.asked.0 } else { &mut p.asked.1 };
                    *place = asked;
                }
                self.refresh_policy(i);
            }
            ("scaling_setspeed", Some(i)) => {
                if let (Some(p), Ok(khz)) = (self.policies.get_mut(i), shows.parse()) {
                    p.setspeed = khz;
                }
                self.refresh_policy(i);
            }
            ("scaling_governor", Some(i)) => self.set_governor(i, shows),
            ("online", _) => {
                if let Some(id) = folder.rsplit('/').next().and_then(|n| digits(n, "cpu")) {
                    self.plug(id, shows == "1");
                }
            }
            ("dynamic_epp", _) => {
                self.set(path, shows);
                // The driver is registered anew: powersave, and the preferences as on loading.
                for i in 0..self.policies.len() {
                    self.set_governor(i, "powersave");
                    let preference = format!("{}/energy_performance_preference", self.policies[i].folder);
                    self.update(&preference, "balance_performance");
                }
                self.follow_source();
            }
            ("status", _) => self.set_status(folder, shows),
            ("control", _) if folder.ends_with("/smt") => {
                self.set(path, shows);
                self.set_smt(shows == "on");
            }
            ("boost", _) => {
                self.set(path, shows);
                if policy.is_none() {
                    // Every policy follows the global switch (cpufreq_boost_trigger_state).
                    for i in 0..self.policies.len() {
                        let own = self.policies.get(i).map(|p| format!("{}/boost", p.folder));
                        if let Some(own) = own {
                            self.update(&own, shows);
                        }
                    }
                }
                self.refresh_all();
            }
            ("no_turbo" | "max_perf_pct" | "min_perf_pct", _) => {
                self.set(path, shows);
                self.refresh_all();
            }
            _ => self.set(path, shows),
        }
    }

    fn set_governor(&mut self, index: usize, governor: &str) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        let folder = policy.folder.clone();
        policy.setspeed = policy.cur;
        let old = self.text(&format!("{folder}/scaling_governor")).unwrap_or_default();
        self.set(&format!("{folder}/scaling_governor"), governor);
        let driver = self.text(&format!("{folder}/scaling_driver")).unwrap_or_default();
        let preference = format!("{folder}/energy_performance_preference");
        if rules::is_active_driver(&driver) && old != governor && self.tree.find(&preference, true).is_some()
        {
            // intel_pstate_hwp_set: performance fixes the preference, leaving it brings the old one back.
            if governor == "performance" {
                let now = self.text(&preference);
                if let Some(p) = self.policies.get_mut(index) {
                    p.preference = now;
                }
                self.set(&preference, "performance");
            } else if let Some(before) = self.policies.get_mut(index).and_then(|p| p.preference.take()) {
                self.set(&preference, before);
            }
        }
        let list = format!("{folder}/energy_performance_available_preferences");
        if self.tree.find(&list, true).is_some() {
            // amd-pstate names one preference alone under performance: show_energy_performance_available_preferences.
            let preferences = rules::preferences(self, &folder).join(" ");
            self.set(&list, preferences);
        }
        self.refresh_tunables();
        self.refresh_policy(index);
    }

    /// The kernel's own preferences by the power source, while it owns them: amd_pstate_get_balanced_epp.
    fn follow_source(&mut self) {
        if !rules::owns_preferences(self) {
            return;
        }
        let preference = if self.mains { "performance" } else { "balance_performance" };
        for i in 0..self.policies.len() {
            let path = format!("{}/energy_performance_preference", self.policies[i].folder);
            self.update(&path, preference);
        }
    }

    /// Plugs the charger in or out.
    pub(crate) fn set_mains(&mut self, online: bool) {
        self.mains = online;
        self.follow_source();
    }

    /// A governor's folder is there while a policy uses it, with fresh values each time.
    fn refresh_tunables(&mut self) {
        let mut used: BTreeSet<&'static str> = BTreeSet::new();
        let per_policy = self.policies.iter().any(|p| {
            let folder = self.tree.find(&p.folder, true);
            folder.is_some_and(|f| TUNABLES.iter().any(|(g, _)| self.tree.child(f, g).is_some()))
        }) || (self.policies.len() > 1
            && self.policies.first().is_some_and(|p| self.policy_text(p, "scaling_driver") == "cpufreq-dt"));
        let mut folders: Vec<(String, &'static str, bool)> = Vec::new();
        for policy in &self.policies {
            if policy.aside.is_some() || rules::is_active_driver(&self.policy_text(policy, "scaling_driver"))
            {
                continue;
            }
            let governor = self.policy_text(policy, "scaling_governor");
            for (name, _) in TUNABLES {
                if *name == governor && !self.is_inactive(policy) {
                    used.insert(name);
                }
                if per_policy {
                    folders.push((format!("{}/{name}", policy.folder), name, *name == governor));
                }
            }
        }
        if !per_policy {
            for (name, _) in TUNABLES {
                folders.push((format!("{CPU}/cpufreq/{name}"), name, used.contains(name)));
            }
        }
        for (folder, governor, wanted) in folders {
            let there = self.tree.find(&folder, true).is_some();
            if wanted && !there {
                let defaults = TUNABLES.iter().find(|t| t.0 == governor).map_or(&[][..], |t| t.1);
                for (name, value) in defaults {
                    self.set(&format!("{folder}/{name}"), value);
                }
            } else if !wanted && there {
                self.tree.detach(&folder);
            }
        }
    }

    /// intel_pstate's and amd_pstate's modes: which driver is registered.
    fn set_status(&mut self, folder: &str, mode: &str) {
        let path = format!("{folder}/status");
        let Some(before) = self.text(&path).filter(|now| now != mode) else { return };
        self.set(&path, mode);
        let governed = |mode: &str| matches!(mode, "passive" | "guided");
        if governed(&before) && governed(mode) {
            // One driver for both: amd_pstate_change_mode_without_dvr_change.
            return;
        }
        let intel = folder.ends_with("intel_pstate");
        let off = matches!(mode, "off" | "disable");
        for i in 0..self.policies.len() {
            match off {
                true => self.unregister_policy(i),
                false => self.register_policy(i, intel, mode),
            }
        }
        match (intel, off) {
            (true, false) => self.register_intel_pstate(folder, mode),
            (true, true) => {}
            (false, off) => self.register_boost(off),
        }
        self.refresh_tunables();
        self.refresh_all();
    }

    fn unregister_policy(&mut self, index: usize) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        policy.aside = self.tree.detach(&policy.folder);
    }

    /// A policy of a driver that is registered anew: everything starts from the driver's defaults.
    fn register_policy(&mut self, index: usize, intel: bool, mode: &str) {
        let Some(policy) = self.policies.get_mut(index) else { return };
        let (folder, kept) = (policy.folder.clone(), policy.preference.take());
        policy.asked = policy.hw;
        if let Some(id) = policy.aside.take() {
            self.tree.attach(&folder, id);
        }
        let file = |name: &str| format!("{folder}/{name}");
        let (driver, governor, governors) = match (intel, mode) {
            (true, "active") => ("intel_pstate", "powersave", "performance powersave"),
            (true, _) => ("intel_cpufreq", "schedutil", PASSIVE_GOVERNORS),
            (false, "active") => ("amd-pstate-epp", "powersave", "performance powersave"),
            (false, _) => ("amd-pstate", "schedutil", PASSIVE_GOVERNORS),
        };
        self.set(&file("scaling_driver"), driver);
        self.set(&file("scaling_available_governors"), governors);
        self.set(&file("scaling_governor"), governor);
        let (preference, list) =
            (file("energy_performance_preference"), file("energy_performance_available_preferences"));
        match (intel, mode) {
            // intel_pstate_hwp_offline: the governor performance had set its preference for a time; the one from before
            // stays in the register over a change of the driver.
            (true, _) => kept.iter().for_each(|kept| self.update(&preference, kept)),
            // amd-pstate has preferences in active mode only.
            (false, "active") => {
                self.set(&preference, "balance_performance");
                self.set(&list, "default performance balance_performance balance_power power");
            }
            (false, _) => {
                self.tree.detach(&preference);
                self.tree.detach(&list);
            }
        }
    }

    /// intel_pstate_register_driver: turbo and the shares of the whole machine are reset. The boost after I/O is a static of
    /// the driver's, which its file shows in active mode.
    fn register_intel_pstate(&mut self, folder: &str, mode: &str) {
        if !rules::turbo_is_locked(self) {
            self.update(&format!("{folder}/no_turbo"), 0);
        }
        self.update(&format!("{folder}/max_perf_pct"), 100);
        let hw = self.policies.first().map(|p| p.hw);
        if let Some((min, max)) = hw.filter(|(_, max)| *max > 0) {
            self.update(&format!("{folder}/min_perf_pct"), u64::from(min) * 100 / u64::from(max));
        }
        let boost = format!("{folder}/hwp_dynamic_boost");
        if mode != "active" {
            self.hwp_boost = self.tree.detach(&boost).or(self.hwp_boost);
            return;
        }
        match self.hwp_boost.take() {
            Some(id) => self.tree.attach(&boost, id),
            None if self.tree.find(&boost, true).is_none() && self.has_preferences() => self.set(&boost, 0),
            None => {}
        }
    }

    fn has_preferences(&self) -> bool {
        let path = |p: &HostPolicy| format!("{}/energy_performance_preference", p.folder);
        self.policies.first().is_some_and(|p| self.tree.find(&path(p), true).is_some())
    }

    /// amd_pstate_init_boost_support: the switch is the driver's, goes with it and comes back on.
    fn register_boost(&mut self, off: bool) {
        let switch = format!("{CPU}/cpufreq/boost");
        if off {
            self.boost_aside = self.tree.detach(&switch).or(self.boost_aside);
            return;
        }
        if let Some(id) = self.boost_aside.take() {
            self.tree.attach(&switch, id);
        }
        self.update(&switch, 1);
        for i in 0..self.policies.len() {
            let own = format!("{}/boost", self.policies[i].folder);
            self.update(&own, 1);
        }
    }

    fn set_smt(&mut self, on: bool) {
        let mut seen = BTreeSet::new();
        let siblings: Vec<u32> = self.cpus.iter().filter(|c| !seen.insert(c.core)).map(|c| c.id).collect();
        for id in siblings {
            self.plug(id, on);
        }
    }

    /// Takes a CPU out or brings it back, with its files.
    pub(crate) fn plug(&mut self, id: u32, on: bool) {
        let alone = self.online().len() == 1;
        let Some(index) = self.cpus.iter().position(|c| c.id == id) else { return };
        let Some(cpu) = self.cpus.get(index) else { return };
        if cpu.online == on || (alone && !on) {
            return;
        }
        let base = format!("{CPU}/cpu{id}");
        if on {
            let aside = self.cpus.get_mut(index).map(|c| std::mem::take(&mut c.aside)).unwrap_or_default();
            for (path, file) in aside {
                self.tree.attach(&path, file);
            }
        } else {
            let mut leave = vec![
                format!("{base}/topology"),
                format!("{base}/cache"),
                format!("{base}/thermal_throttle"),
                format!("{base}/power/energy_perf_bias"),
                format!("dev/cpu/{id}"),
            ];
            if self.physics.idle_leaves_with_cpu {
                leave.push(format!("{base}/cpuidle"));
            }
            if self.release < (4, 2) {
                leave.push(format!("{base}/cpufreq"));
            }
            let aside: Vec<(String, Id)> =
                leave.into_iter().filter_map(|p| self.tree.detach(&p).map(|id| (p, id))).collect();
            if let Some(c) = self.cpus.get_mut(index) {
                c.aside = aside;
            }
        }
        if let Some(cpu) = self.cpus.get_mut(index) {
            cpu.online = on;
            if !on {
                cpu.load_permille = 0;
            }
        }
        self.update(&format!("{base}/online"), u8::from(on));
        self.refresh_lists(Some(id));
        let idle_fresh = on && self.physics.idle_leaves_with_cpu;
        if idle_fresh {
            // A device that is registered anew starts with its states enabled and counters at zero.
            let disables: Vec<String> = self
                .cpus
                .get(index)
                .map(|c| c.states.iter().map(|s| s.disable.clone()).collect())
                .unwrap_or_default();
            for path in disables {
                self.update(&path, 0);
            }
            for state in self.cpus.get_mut(index).into_iter().flat_map(|c| &mut c.states) {
                (state.usage, state.time_ns, state.above, state.below) = (0, 0, 0, 0);
                state.base = [0; 5];
            }
        }
        if let Some(i) = self.cpus.get(index).and_then(|c| c.policy) {
            let first = on
                && self
                    .policies
                    .get(i)
                    .is_some_and(|p| p.related.iter().filter(|c| self.is_online(**c)).count() == 1);
            if first && self.release < (5, 3) {
                // Limits were the policy's own and went with it; since 5.3 they are requests that stay.
                if let Some(p) = self.policies.get_mut(i) {
                    p.asked = p.hw;
                }
            }
            self.refresh_tunables();
            self.refresh_policy(i);
        }
    }

    pub(crate) fn unplugged(&self) -> Vec<u32> {
        self.cpus.iter().filter(|c| !c.online).map(|c| c.id).collect()
    }

    /// Chance takes another course from now on.
    pub(crate) fn stir(&mut self, by: u64) {
        self.seed ^= by.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// A number below `n` from the seed.
    fn random(&mut self, n: u64) -> u64 {
        // xorshift64: plenty for spreading wake-ups.
        let mut x = self.seed | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.seed = x;
        x % n.max(1)
    }

    /// Power of a package's CPUs and of the whole package now, in microwatts.
    pub(crate) fn package_uw(&self, package: u32) -> (u64, u64) {
        if let Some((truth, at)) = self.truth.as_ref().zip(self.heat_mc.keys().position(|p| *p == package)) {
            let w = self.true_w(truth, at);
            return ((w.cores * 1e6) as u64, ((w.cores + w.rest) * 1e6) as u64);
        }
        let cpus = self.cpus.iter().filter(|c| c.package == package);
        let of_package = |z: &&Zone| z.domain == Domain::Package && z.package == package;
        let limit = self.zones.iter().find(of_package).map(|z| z.folder.clone());
        // Registers and memory both limit a package: the lowest holds. Dies have their parts of one.
        let limits = self.zones.iter().filter(of_package).filter_map(|z| Some(self.limit_uw(z)? * z.dies));
        let limit_uw = limits.min();
        let count = cpus.clone().count().max(1) as u64;
        let each = match self.physics.cpu_uw {
            0 => {
                let most = limit.and_then(|f| self.number(&format!("{f}/constraint_0_max_power_uw")));
                most.unwrap_or(5_000_000 * count) / count
            }
            given => given,
        };
        let mut cores = 0_u64;
        for cpu in cpus.filter(|c| c.online && c.load_permille > 0) {
            let ratio = cpu
                .policy
                .and_then(|i| self.policies.get(i))
                .map_or(1000, |p| u64::from(p.cur) * 1000 / u64::from(p.hw.1.max(1)));
            // Voltage falls with speed: power about as its square.
            cores += each / 1000 * u64::from(cpu.load_permille) / 1000 * ratio / 1000 * ratio;
        }
        let idle = self.physics.package_idle_uw;
        let all = (cores + idle).min(limit_uw.unwrap_or(u64::MAX)).max(idle.min(limit_uw.unwrap_or(idle)));
        (cores.min(all), all)
    }

    /// A zone's limit, where it is on and set.
    fn limit_uw(&self, zone: &Zone) -> Option<u64> {
        if self.text(&format!("{}/enabled", zone.folder)).is_some_and(|e| e == "0") {
            return None;
        }
        self.number(&format!("{}/constraint_0_power_limit_uw", zone.folder)).filter(|&n| n > 0)
    }

    fn dram_uw(&self, package: u32) -> u64 {
        let truth = self.truth.as_ref().zip(self.heat_mc.keys().position(|p| *p == package));
        truth.map_or(self.physics.dram_uw, |(t, at)| (self.true_w(t, at).dram * 1e6) as u64)
    }

    fn platform_uw(&self) -> u64 {
        let packages = self.heat_mc.keys().map(|&p| self.package_uw(p).1 + self.dram_uw(p));
        let own = match &self.truth {
            Some(truth) => (self.true_platform_w(truth) * 1e6) as u64,
            None => self.physics.platform_uw,
        };
        own + packages.sum::<u64>()
    }

    /// Power of a zone now.
    pub(crate) fn zone_uw(&self, zone: &Zone) -> u64 {
        let (cores, all) = self.package_uw(zone.package);
        match zone.domain {
            Domain::Package => all / zone.dies,
            Domain::Core => cores / zone.dies,
            Domain::Uncore => (all - cores) / 2 / zone.dies,
            Domain::Dram => self.dram_uw(zone.package) / zone.dies,
            Domain::Platform => self.platform_uw(),
        }
    }

    /// Lets time pass with the loads as they are.
    pub(crate) fn advance(&mut self, ns: u64) {
        for i in 0..self.policies.len() {
            self.refresh_policy(i);
            let Some(policy) = self.policies.get(i) else { break };
            if policy.aside.is_some() || self.is_inactive(policy) {
                continue;
            }
            let cur = policy.cur;
            if let Some(p) = self.policies.get_mut(i)
                && let Some(at) = p.residency.iter_mut().find(|r| r.0 == cur)
            {
                at.1 = at.1.wrapping_add(ns);
            }
        }
        let cold = self.heat_mc.clone();
        self.heat(ns);
        self.draw_truly(&cold);
        let powers: Vec<u64> = self.zones.iter().map(|z| self.zone_uw(z)).collect();
        let platform = self.platform_uw();
        self.true_now.clear();
        self.sleep_packages(ns);
        let granted: Vec<u32> = (0..self.cpus.len()).map(|i| self.granted_khz(i)).collect();
        for (i, khz) in granted.into_iter().enumerate() {
            self.advance_cpu(i, ns, khz);
        }
        for (zone, uw) in self.zones.iter_mut().zip(powers) {
            let work = u128::from(uw) * u128::from(ns) + u128::from(zone.rest);
            // A microjoule is 10^9 microwatt-nanoseconds.
            let uj = work / 1_000_000_000;
            zone.rest = (work % 1_000_000_000) as u64;
            zone.total_uj += uj;
            let next = (u128::from(zone.energy_uj) + uj) % (u128::from(zone.range_uj) + 1);
            zone.energy_uj = next as u64;
        }
        self.drain(ns, platform);
        if let Some(truth) = &self.truth {
            let mut random = Random::new(self.seed);
            self.wavering.step(ns as f64 * 1e-9, truth.noise_tau_s, &mut random);
            self.random(1);
        }
        self.now_ns = self.now_ns.wrapping_add(ns);
    }

    /// How its packages get warm.
    pub(crate) fn cooling(&self) -> Thermal {
        Thermal {
            ambient_c: self.physics.ambient_mc as f64 * 1e-3,
            c_per_w: self.physics.rise_mc_per_w as f64 * 1e-3,
            tau_s: TAU_NS as f64 * 1e-9,
            critical_c: truth::HOTTEST_C,
            leakage_per_c: self.truth.as_ref().map_or(0.0, |t| t.leakage_per_c),
        }
    }

    fn heat(&mut self, ns: u64) {
        let share = 1.0 - (-(ns as f64) / TAU_NS as f64).exp();
        let packages: Vec<u32> = self.heat_mc.keys().copied().collect();
        for package in packages {
            let watts = self.package_uw(package).1 / 1000;
            let goal = self.physics.ambient_mc + watts as i64 * self.physics.rise_mc_per_w / 1000;
            if let Some(now) = self.heat_mc.get_mut(&package) {
                *now += ((goal - *now) as f64 * share).round() as i64;
            }
        }
    }

    /// The speed at which a policy's first CPU runs.
    fn real_khz(&self, policy: &HostPolicy) -> u32 {
        let first = self.cpus.iter().position(|c| c.online && policy.related.contains(&c.id));
        let hardware = self.truth.is_some() || self.ceiling_khz.is_some();
        first.filter(|_| hardware).map_or(policy.cur, |index| self.granted_khz(index))
    }

    /// The state that a CPU's idle governor takes in so much idle time, by the load that the CPU has.
    pub(crate) fn idle_choice(&self, index: usize, idle_ns: u64, jitter: u64) -> IdleChoice {
        let Some(cpu) = self.cpus.get(index) else { return IdleChoice::default() };
        // 100 wake-ups a second when idle, 10 times as many at half load.
        let load = u64::from(cpu.load_permille.min(1000));
        let per_second = 100 + load.min(1000 - load) * 2 + jitter;
        let wakes = ((u128::from(idle_ns) * u128::from(per_second)) / 1_000_000_000).max(1) as u64;
        let interval_us = idle_ns / wakes / 1000;
        let limit = self.text(&format!("{CPU}/cpu{}/power/pm_qos_resume_latency_us", cpu.id));
        let limit = match limit.as_deref() {
            Some("n/a") => 0,
            Some(n) => n.parse().ok().filter(|&n| n > 0).unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        let usable = |s: &IdleState| s.latency_us <= limit && self.text(&s.disable).is_none_or(|d| d == "0");
        let open: Vec<usize> =
            cpu.states.iter().enumerate().filter(|(_, s)| usable(s)).map(|(i, _)| i).collect();
        let worth = |i: &usize| cpu.states.get(*i).is_some_and(|s| s.residency_us <= interval_us);
        let deepest = open.iter().copied().rev().find(worth).or(open.first().copied());
        let deeper = deepest.is_some_and(|d| open.iter().any(|&i| i > d));
        IdleChoice { deepest, deeper, interval_us, wakes }
    }

    fn advance_cpu(&mut self, index: usize, ns: u64, khz: u32) {
        let jitter = self.random(8);
        let Some(cpu) = self.cpus.get(index) else { return };
        if !cpu.online {
            return;
        }
        let busy = (u128::from(ns) * u128::from(cpu.load_permille) / 1000) as u64;
        let idle = ns - busy;
        let choice = self.idle_choice(index, idle, jitter);
        let nominal = cpu.policy.and_then(|i| self.policies.get(i)).map_or(1_000_000, |p| p.nominal);
        let Some(cpu) = self.cpus.get_mut(index) else { return };
        cpu.busy_ns = cpu.busy_ns.wrapping_add(busy);
        cpu.idle_ns = cpu.idle_ns.wrapping_add(idle);
        cpu.aperf = cpu.aperf.wrapping_add((u128::from(busy) * u128::from(khz) / 1_000_000) as u64);
        cpu.mperf = cpu.mperf.wrapping_add((u128::from(busy) * u128::from(nominal) / 1_000_000) as u64);
        if idle > 0
            && let Some(state) = choice.deepest.and_then(|d| cpu.states.get_mut(d))
        {
            state.usage = state.usage.wrapping_add(choice.wakes);
            state.time_ns = state.time_ns.wrapping_add(idle);
            if choice.interval_us < state.residency_us {
                state.above = state.above.wrapping_add(choice.wakes);
            } else if choice.deeper {
                state.below = state.below.wrapping_add(choice.wakes / 8);
            }
        }
    }

    fn drain(&mut self, ns: u64, platform_uw: u64) {
        let (mains, update, charge) =
            (self.mains, self.physics.battery_update_ns.max(1), self.physics.charge_uw);
        let share = self.batteries.len().max(1) as u128;
        for b in &mut self.batteries {
            let full_milli = b.full.saturating_mul(1000);
            let uw = if mains { charge } else { platform_uw };
            let uw = (u128::from(uw) / share) as u64;
            // Thousandths of a uWh (or, by the voltage, of a uAh).
            let mut milli = u128::from(uw) * u128::from(ns) / 3_600_000_000_000 * 1000
                + u128::from(uw) * u128::from(ns) % 3_600_000_000_000 * 1000 / 3_600_000_000_000;
            if !b.energy {
                milli = milli * 1_000_000 / u128::from(b.voltage_uv);
            }
            let milli = u64::try_from(milli).unwrap_or(u64::MAX);
            b.left_milli = match mains {
                true => b.left_milli.saturating_add(milli).min(full_milli),
                false => b.left_milli.saturating_sub(milli),
            };
            let moving = if mains { b.left_milli < full_milli } else { b.left_milli > 0 };
            b.drawn += if moving { u128::from(uw) * u128::from(ns) } else { 0 };
            b.since_ns = b.since_ns.saturating_add(ns);
            if b.since_ns >= update {
                b.shown = b.left_milli / 1000;
                b.shown_uw = (b.drawn / u128::from(b.since_ns)) as u64;
                (b.since_ns, b.drawn) = (0, 0);
            }
        }
    }

    /// Sleeps: CPUs but the first go and come, the clock moves, the battery loses a little.
    pub(crate) fn suspend(&mut self, ns: u64) {
        let others: Vec<u32> = self.online().into_iter().skip(1).collect();
        for &id in &others {
            self.plug(id, false);
        }
        for &id in &others {
            self.plug(id, true);
        }
        for cpu in &mut self.cpus {
            (cpu.aperf, cpu.mperf) = (0, 0);
        }
        for zone in &mut self.zones {
            (zone.energy_uj, zone.rest) = (0, 0);
        }
        if !self.mains {
            // Memory kept alive: half a watt.
            self.drain(ns, 500_000);
        }
        self.now_ns = self.now_ns.wrapping_add(ns);
    }

    /// Puts counters just before their wrap: energies at their range, idle times and usages at 64 bits.
    pub(crate) fn near_wrap(&mut self, fits: impl Fn(&str) -> bool) {
        for zone in &mut self.zones {
            if fits(&format!("{}/energy_uj", zone.folder)) {
                zone.energy_uj = zone.range_uj - 1;
            }
        }
        for cpu in &mut self.cpus {
            for (i, state) in cpu.states.iter_mut().enumerate() {
                let folder = format!("{CPU}/cpu{}/cpuidle/state{i}", cpu.id);
                if fits(&format!("{folder}/usage")) {
                    state.base[0] = u64::MAX.wrapping_sub(state.usage);
                }
                if fits(&format!("{folder}/time")) {
                    state.base[1] = u64::MAX.wrapping_sub(state.time_ns / 1000);
                }
            }
        }
    }

    /// A register's value now; those that count or follow an attribute are made here.
    pub(crate) fn register(&self, cpu: u32, address: u32) -> Result<u64, rustix::io::Errno> {
        let c = self.cpus.iter().find(|c| c.id == cpu && c.online).ok_or(rustix::io::Errno::NXIO)?;
        let value = self.registers.read(cpu, address)?;
        let policy = c.policy.and_then(|i| self.policies.get(i));
        Ok(match address {
            TSC => value.wrapping_add(
                (u128::from(self.now_ns) * u128::from(policy.map_or(1_000_000, |p| p.nominal)) / 1_000_000)
                    as u64,
            ),
            _ if let Some(slept_ns) = self.package_slept_ns(c.id, address) => {
                let khz = policy.map_or(1_000_000, |p| p.nominal);
                value.wrapping_add((u128::from(slept_ns) * u128::from(khz) / 1_000_000) as u64)
            }
            MPERF => value.wrapping_add(c.mperf),
            APERF => value.wrapping_add(c.aperf),
            PERF_STATUS => policy.map_or(value, |p| (value & !0xff00) | u64::from(p.cur / 100_000) << 8),
            ENERGY_PERF_BIAS => self
                .number(&format!("{CPU}/cpu{cpu}/power/energy_perf_bias"))
                .map_or(value, |bias| (value & !0xf) | bias),
            _ if let Some((_, domain)) = ENERGY.iter().find(|e| e.0 == address) => {
                let of_package = |z: &&Zone| z.package == c.package || *domain == Domain::Platform;
                let zone = self.zones.iter().find(|z| z.domain == *domain && of_package(z));
                // 32 bits that wrap where the zone does.
                zone.map_or(value, |z| {
                    (z.total_uj * u128::from(u32::MAX) / u128::from(z.range_uj) + u128::from(value)) as u64
                        & u64::from(u32::MAX)
                })
            }
            _ => value,
        })
    }

    pub(crate) fn set_register(
        &mut self,
        cpu: u32,
        address: u32,
        value: u64,
    ) -> Result<(), rustix::io::Errno> {
        if !self.is_online(cpu) {
            return Err(rustix::io::Errno::NXIO);
        }
        self.registers.write(cpu, address, value)?;
        if address == ENERGY_PERF_BIAS {
            self.update(&format!("{CPU}/cpu{cpu}/power/energy_perf_bias"), value & 0xf);
        }
        Ok(())
    }

    /// A file's bytes as a read gives them.
    pub(crate) fn render(&self, id: Id) -> Result<Vec<u8>, rustix::io::Errno> {
        use rustix::io::Errno;
        let file = self.tree.file(id).ok_or(Errno::NOENT)?;
        if !file.attached {
            return Err(Errno::NODEV);
        }
        // A policy without an online CPU has nothing to show (since 5.18).
        if self.release >= (5, 18)
            && let Some(policy) = self.policy_of_folder.get(&file.parent).and_then(|&i| self.policies.get(i))
            && self.is_inactive(policy)
        {
            return Err(Errno::BUSY);
        }
        match &file.kind {
            NodeKind::Text(bytes) => Ok(bytes.clone()),
            NodeKind::Folder(_) => Err(Errno::ISDIR),
            NodeKind::Link(_) => Err(Errno::LOOP),
            NodeKind::Live(live) => Ok(self.live(*live).into_bytes()),
        }
    }

    fn live(&self, live: Live) -> String {
        let policy = |number: u32| self.policies.iter().find(|p| p.number == number);
        let idle = |cpu: u32, state: u32| {
            self.cpus.iter().find(|c| c.id == cpu).and_then(|c| c.states.get(state as usize))
        };
        let line = |n: Option<u64>| format!("{}\n", n.unwrap_or(0));
        let battery = |i: u32| self.batteries.get(i as usize);
        match live {
            Live::Speed { policy: n } => line(policy(n).map(|p| u64::from(self.real_khz(p)))),
            Live::TimeInState { policy: n } => policy(n).map(HostPolicy::time_in_state).unwrap_or_default(),
            Live::TotalTrans { policy: n } => line(policy(n).map(|p| p.transitions)),
            Live::TransTable { policy: n } => policy(n).map(HostPolicy::trans_table).unwrap_or_default(),
            Live::IdleUsage { cpu, state } => line(idle(cpu, state).map(|s| s.base[0].wrapping_add(s.usage))),
            Live::IdleTime { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[1].wrapping_add(s.time_ns / 1000)))
            }
            Live::IdleAbove { cpu, state } => line(idle(cpu, state).map(|s| s.base[2].wrapping_add(s.above))),
            Live::IdleBelow { cpu, state } => line(idle(cpu, state).map(|s| s.base[3].wrapping_add(s.below))),
            Live::IdleRejected { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[4].wrapping_add(s.rejected)))
            }
            Live::Energy { zone } => line(self.zones.get(zone as usize).map(|z| z.energy_uj)),
            Live::BatteryNow { battery: i } => line(battery(i).map(|b| b.shown)),
            Live::BatteryPower { battery: i } => {
                format!("{}\n", battery(i).map_or(0, |b| b.signed(b.shown_uw, self.mains)))
            }
            Live::BatteryCurrent { battery: i } => {
                let ua = |b: &Battery| u128::from(b.shown_uw) * 1_000_000 / u128::from(b.voltage_uv);
                format!("{}\n", battery(i).map_or(0, |b| b.signed(ua(b) as u64, self.mains)))
            }
            Live::BatteryCapacity { battery: i } => {
                line(battery(i).map(|b| (u128::from(b.shown) * 100 / u128::from(b.full)) as u64))
            }
            Live::BatteryStatus { battery: i } => match battery(i) {
                Some(_) if !self.mains => "Discharging\n".into(),
                Some(b) if b.shown >= b.full => "Full\n".into(),
                _ => "Charging\n".into(),
            },
            Live::Mains => line(Some(u64::from(self.mains))),
            Live::Temperature { package } => {
                format!("{}\n", self.heat_mc.get(&package).copied().unwrap_or(0))
            }
            Live::ProcStat => self.proc_stat(),
            Live::CpuInfo => self.proc_cpuinfo(),
            Live::Uptime => {
                let start = self.physics.uptime_ns / 10_000_000;
                let idle = self.cpus.iter().map(|c| c.ticks[3].wrapping_add(c.idle_ns / 10_000_000));
                let idle = idle.fold(0, u64::wrapping_add);
                let up = (self.now_ns / 10_000_000).wrapping_add(start);
                format!("{}.{:02} {}.{:02}\n", up / 100, up % 100, idle / 100, idle % 100)
            }
            Live::Registers { .. } | Live::Console(_) => String::new(),
        }
    }

    fn proc_stat(&self) -> String {
        // USER_HZ is 100 everywhere.
        const TICK_NS: u64 = 10_000_000;
        let mut out = String::new();
        let mut sum = [0_u64; 10];
        let now = |c: &Cpu| {
            let mut ticks = c.ticks;
            ticks[0] = ticks[0].wrapping_add(c.busy_ns / TICK_NS);
            ticks[3] = ticks[3].wrapping_add(c.idle_ns / TICK_NS);
            ticks
        };
        // Offline CPUs stay in the sum and have no line.
        for cpu in &self.cpus {
            let ticks = now(cpu);
            for (s, t) in sum.iter_mut().zip(ticks) {
                *s = s.wrapping_add(t);
            }
            if cpu.online {
                _ = writeln!(out, "cpu{} {}", cpu.id, ticks.map(|t| t.to_string()).join(" "));
            }
        }
        format!("cpu  {}\n{out}{}", sum.map(|t| t.to_string()).join(" "), self.stat_rest)
    }

    fn proc_cpuinfo(&self) -> String {
        let mut out = String::new();
        for block in self.cpuinfo.split_inclusive("\n\n") {
            let processor = block.lines().next().and_then(|l| {
                let (key, value) = l.split_once(':')?;
                (key.trim() == "processor").then(|| value.trim().parse::<u32>().ok())?
            });
            if processor.is_some_and(|id| !self.is_online(id)) {
                continue;
            }
            let cpu = self.cpus.iter().find(|c| Some(c.id) == processor).or(self.cpus.first());
            let policy = cpu.and_then(|c| c.policy).and_then(|i| self.policies.get(i));
            for line in block.split_inclusive('\n') {
                match (line.split_once(':').map(|(k, _)| k), policy) {
                    (Some(key), Some(p)) if key.trim() == "cpu MHz" => {
                        _ = writeln!(out, "{key}: {}.{:03}", p.cur / 1000, p.cur % 1000);
                    }
                    (Some(key), Some(p)) if key.trim() == "BogoMIPS" && !self.physics.bogomips.is_empty() => {
                        let value = self.physics.bogomips.get(&p.cur).map_or("0.00", String::as_str);
                        _ = writeln!(out, "{key}: {value}");
                    }
                    _ => out += line,
                }
            }
        }
        out
    }
}

impl HostPolicy {
    /// Units of 10 ms since the start (USER_HZ), as drivers/cpufreq/cpufreq_stats.c.
    fn time_in_state(&self) -> String {
        let mut out = String::new();
        for ((khz, ns), base) in self.residency.iter().zip(&self.base) {
            _ = writeln!(out, "{khz} {}", base.wrapping_add(ns / 10_000_000));
        }
        out
    }

    fn trans_table(&self) -> String {
        let mut out = String::from("   From  :    To\n         : ");
        for (khz, _) in &self.residency {
            _ = write!(out, "{khz:>9} ");
        }
        out.push('\n');
        let n = self.residency.len().max(1);
        for ((khz, _), row) in self.residency.iter().zip(self.matrix.chunks(n)) {
            _ = write!(out, "{khz:>9}: ");
            for cell in row {
                _ = write!(out, "{cell:>9} ");
            }
            out.push('\n');
        }
        out
    }
}

const PASSIVE_GOVERNORS: &str = "conservative ondemand userspace powersave performance schedutil";

/// The governors' files with their defaults: drivers/cpufreq/cpufreq_ondemand.c,
/// cpufreq_conservative.c, kernel/sched/cpufreq_schedutil.c; the rates for a 10 us transition.
const TUNABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "ondemand",
        &[
            ("sampling_rate", "10000"),
            ("io_is_busy", "0"),
            ("up_threshold", "95"),
            ("sampling_down_factor", "1"),
            ("ignore_nice_load", "0"),
            ("powersave_bias", "0"),
        ],
    ),
    (
        "conservative",
        &[
            ("sampling_rate", "10000"),
            ("up_threshold", "80"),
            ("down_threshold", "20"),
            ("sampling_down_factor", "1"),
            ("ignore_nice_load", "0"),
            ("freq_step", "5"),
        ],
    ),
    ("schedutil", &[("rate_limit_us", "1000")]),
];
