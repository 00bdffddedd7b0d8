//! What a tree is about: its CPUs, policies, zones, supplies, and which of its files live.

use super::parts::{CpuGroup, Form, HostBattery, HostCpu, HostDomain, HostIdleState, HostPolicy, Zone};
use super::{CPU, Host, digits};
use crate::cpulist;
use crate::tree::{Id, LiveAttribute, NodeKind};
use std::collections::{BTreeMap, BTreeSet};
use wattwise_hw::rules;
use wattwise_hw::rules::AttributeView;
use wattwise_hw::states::supply;
use wattwise_hw::states::supply::{Feeds, SupplySource};

impl Host {
    pub(super) fn scan_cpus(&mut self) {
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
                states.push(HostIdleState {
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
                self.enliven(&path("usage"), LiveAttribute::IdleUsage { cpu, state });
                self.enliven(&path("time"), LiveAttribute::IdleTime { cpu, state });
                self.enliven(&path("above"), LiveAttribute::IdleAbove { cpu, state });
                self.enliven(&path("below"), LiveAttribute::IdleBelow { cpu, state });
                self.enliven(&path("rejected"), LiveAttribute::IdleRejected { cpu, state });
            }
            let online = online.as_ref().is_none_or(|set| set.contains(&id));
            self.cpus.push(HostCpu {
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
                self.tree
                    .put(&format!("dev/cpu/{id}/msr"), NodeKind::Live(LiveAttribute::Registers { cpu: id }));
            }
        }
    }

    pub(super) fn scan_policies(&mut self) {
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
                ("scaling_cur_freq", LiveAttribute::Speed { policy: number }),
                ("cpuinfo_cur_freq", LiveAttribute::Speed { policy: number }),
                ("cpuinfo_avg_freq", LiveAttribute::Speed { policy: number }),
                ("stats/time_in_state", LiveAttribute::TimeInState { policy: number }),
                ("stats/total_trans", LiveAttribute::TotalTrans { policy: number }),
                ("stats/trans_table", LiveAttribute::TransTable { policy: number }),
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
                under_way: None,
                matrix,
                residency,
                base,
                transitions,
                preference: None,
                aside: None,
            });
        }
    }

    pub(super) fn scan_groups(&mut self) {
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
        let groups: Vec<_> = found
            .into_iter()
            .map(|(file, path, form)| {
                let cpus = self.text(&path).map(|t| cpulist::parse(&t)).unwrap_or_default();
                CpuGroup { file, cpus, form }
            })
            .filter(|group| !group.cpus.is_empty())
            .collect();
        self.groups = groups;
    }

    pub(super) fn scan_power(&mut self) {
        self.scan_zones();
        self.scan_supplies();
        self.scan_heat();
    }

    /// powercap's zones; one inside another is of the same package.
    pub(super) fn scan_zones(&mut self) {
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
                "core" => HostDomain::Core,
                "uncore" => HostDomain::Uncore,
                "dram" => HostDomain::Dram,
                "psys" => HostDomain::Platform,
                _ => HostDomain::Package,
            };
            let zone = self.zones.len() as u32;
            let range = self.number(&format!("{folder}/max_energy_range_uj")).unwrap_or(u64::MAX);
            let energy = self.number(&format!("{folder}/energy_uj")).unwrap_or(0);
            self.enliven(&format!("{folder}/energy_uj"), LiveAttribute::Energy { zone });
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
    pub(super) fn scan_supplies(&mut self) {
        let supply = supply::read(self);
        self.mains = supply.source == SupplySource::Mains;
        // The adapters that feed it now come and go with the mains; where none does, the first that could. The others stay.
        let feeding = supply.adapters.iter().filter(|a| a.feeds == Feeds::Machine);
        let mut switched: Vec<&str> = feeding.map(|a| a.name.as_str()).collect();
        if switched.is_empty() || !self.mains {
            let able = supply.adapters.iter().filter(|a| a.feeds == Feeds::Nothing);
            switched = able.min_by_key(|a| a.kind != "Mains").map(|a| a.name.as_str()).into_iter().collect();
        }
        for name in &switched {
            self.enliven(&format!("sys/class/power_supply/{name}/online"), LiveAttribute::Mains);
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
                    self.batteries.push(HostBattery {
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
                        self.enliven(&format!("{folder}/{name}"), LiveAttribute::BatteryNow { battery });
                    }
                    self.enliven(&format!("{folder}/power_now"), LiveAttribute::BatteryPower { battery });
                    self.enliven(&format!("{folder}/current_now"), LiveAttribute::BatteryCurrent { battery });
                    self.enliven(&format!("{folder}/status"), LiveAttribute::BatteryStatus { battery });
                    self.enliven(&format!("{folder}/capacity"), LiveAttribute::BatteryCapacity { battery });
                }
                _ => {}
            }
        }
    }

    /// Temperatures: of each package, and the zones that show them.
    pub(super) fn scan_heat(&mut self) {
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
                    self.enliven(&format!("{top}/{name}/temp"), LiveAttribute::Temperature { package });
                }
            }
        }
    }

    pub(super) fn scan_proc(&mut self) {
        self.cpuinfo = self
            .tree
            .find("proc/cpuinfo", true)
            .and_then(|id| self.render(id).ok())
            .map(|b| String::from_utf8_lossy(&b).into_owned())
            .unwrap_or_default();
        self.enliven("proc/cpuinfo", LiveAttribute::CpuInfo);
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
        self.enliven("proc/stat", LiveAttribute::ProcStat);
        if !self.physics.described
            && let Some(up) = self.text("proc/uptime")
        {
            let hundredths =
                up.split_whitespace().next().and_then(|w| w.replace('.', "").parse::<u64>().ok());
            self.physics.uptime_ns = hundredths.unwrap_or(0).saturating_mul(10_000_000);
        }
        self.enliven("proc/uptime", LiveAttribute::Uptime);
    }

    /// What the table of rules knows can be written, and nothing else.
    pub(super) fn allow_writes(&mut self) {
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
}
