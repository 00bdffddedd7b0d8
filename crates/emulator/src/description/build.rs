//! From a description to a tree.

use super::format::{Arch, Core, Cpufreq, Description, Numbering, Rapl, Span, hex};
use crate::cpulist;
use crate::host::Physics;
use crate::tree::{LiveAttribute, NodeKind, Tree};
use std::fmt::Write;

impl Description {
    pub(super) fn build(&self) -> (Tree, Physics) {
        let mut b = Builder {
            d: self,
            release: self.release().unwrap_or((6, 0)),
            tree: Tree::new(),
            cpus: self.cpus(),
            physics: Physics { described: true, ..Physics::default() },
        };
        b.proc();
        b.topology();
        b.cpufreq();
        b.cpuidle();
        b.drivers();
        b.powercap();
        b.supply();
        b.thermal();
        b.registers();
        b.power();
        (b.tree, b.physics)
    }

    /// The CPUs in the kernel's order.
    fn cpus(&self) -> Vec<Thread> {
        let mut all = Vec::new();
        for package in 0..self.topology.packages {
            let (mut core_id, mut cluster) = (0, 0);
            for (kind, core) in self.core.iter().enumerate() {
                for index in 0..core.count {
                    for thread in 0..core.threads {
                        let own = index.checked_div(core.cluster).map_or(core_id, |n| cluster + n);
                        all.push(Thread { id: 0, package, kind, core_id, thread, cluster: own, index });
                    }
                    core_id += core.id_step;
                }
                cluster += if core.cluster == 0 { core_id } else { core.count.div_ceil(core.cluster) };
            }
        }
        if self.topology.numbering == Numbering::ThreadsLast {
            all.sort_by_key(|c| c.thread);
        }
        for (id, cpu) in all.iter_mut().enumerate() {
            cpu.id = id as u32;
        }
        all
    }
}

#[derive(Clone, Copy)]
struct Thread {
    id: u32,
    package: u32,
    kind: usize,
    core_id: u32,
    thread: u32,
    cluster: u32,
    /// Among the cores of its kind in the package.
    index: u32,
}

const CPU: &str = "sys/devices/system/cpu";

struct Builder<'a> {
    d: &'a Description,
    release: (u32, u32),
    tree: Tree,
    cpus: Vec<Thread>,
    physics: Physics,
}

impl Builder<'_> {
    fn put(&mut self, path: impl AsRef<str>, value: impl std::fmt::Display) {
        self.tree.text(path.as_ref(), value);
    }

    fn core(&self, cpu: &Thread) -> Option<&Core> {
        self.d.core.get(cpu.kind)
    }

    /// The CPUs for which `of` gives the same as for `cpu`.
    fn same<K: PartialEq>(&self, cpu: &Thread, of: impl Fn(&Thread) -> K) -> Vec<u32> {
        let key = of(cpu);
        self.cpus.iter().filter(|c| of(c) == key).map(|c| c.id).collect()
    }

    fn proc(&mut self) {
        let d = self.d;
        self.put("proc/sys/kernel/osrelease", &d.kernel);
        self.put("proc/version", format!("Linux version {} (wattwise emulator)", d.kernel));
        self.put("proc/loadavg", "0.00 0.00 0.00 1/1 1");
        self.tree.put("proc/uptime", NodeKind::Live(LiveAttribute::Uptime));
        self.physics.uptime_ns = d.uptime_s * 1_000_000_000;
        let mut stat = String::new();
        let ticks = d.uptime_s * 100;
        _ = writeln!(stat, "cpu  0 0 0 {} 0 0 0 0 0 0", ticks * self.cpus.len() as u64);
        for cpu in &self.cpus {
            _ = writeln!(stat, "cpu{} 0 0 0 {ticks} 0 0 0 0 0 0", cpu.id);
        }
        // A made-up boot time: 2026-01-01.
        stat += "intr 0\nctxt 0\nbtime 1767225600\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
        stat += "softirq 0 0 0 0 0 0 0 0 0 0 0\n";
        self.tree.put("proc/stat", NodeKind::Text(stat.into_bytes()));
        let info = self.cpuinfo();
        self.tree.put("proc/cpuinfo", NodeKind::Text(info.into_bytes()));
    }

    fn cpuinfo(&mut self) -> String {
        let d = self.d;
        let c = &d.cpuinfo;
        for (khz, value) in &c.bogomips_by_khz {
            if let Ok(khz) = khz.parse() {
                self.physics.bogomips.insert(khz, value.clone());
            }
        }
        if let Some(whole) = &c.whole {
            return whole.clone();
        }
        let mut out = String::new();
        for cpu in &self.cpus {
            _ = writeln!(out, "processor\t: {}", cpu.id);
            if d.arch != Arch::X86 {
                let lines = c.lines.get(cpu.kind).or(c.lines.first());
                out += lines.map_or("", |l| l.trim_end());
                out += "\n\n";
                continue;
            }
            let in_package = self.same(cpu, |c| c.package).len();
            let cores: u32 = d.core.iter().map(|c| c.count).sum();
            let khz = self.core(cpu).map_or(0, |c| c.nominal_khz.unwrap_or(c.max_khz));
            let lines: [(&str, String); 21] = [
                ("vendor_id\t", c.vendor.clone()),
                ("cpu family\t", c.family.to_string()),
                ("model\t\t", c.model.to_string()),
                ("model name\t", c.model_name.clone()),
                ("stepping\t", c.stepping.to_string()),
                ("microcode\t", "0x1".into()),
                ("cpu MHz\t\t", format!("{}.{:03}", khz / 1000, khz % 1000)),
                ("physical id\t", cpu.package.to_string()),
                ("siblings\t", in_package.to_string()),
                ("core id\t\t", cpu.core_id.to_string()),
                ("cpu cores\t", cores.to_string()),
                ("apicid\t\t", cpu.id.to_string()),
                ("initial apicid\t", cpu.id.to_string()),
                ("fpu\t\t", "yes".into()),
                ("fpu_exception\t", "yes".into()),
                ("cpuid level\t", "22".into()),
                ("wp\t\t", "yes".into()),
                ("flags\t\t", c.flags.clone()),
                ("bogomips\t", c.bogomips.clone()),
                ("clflush size\t", "64".into()),
                ("cache_alignment\t", "64".into()),
            ];
            for (key, value) in lines {
                _ = writeln!(out, "{key}: {value}");
            }
            out += "address sizes\t: 46 bits physical, 48 bits virtual\npower management:\n\n";
        }
        out
    }

    fn topology(&mut self) {
        let d = self.d;
        let n = self.cpus.len() as u32;
        let all = cpulist::list(&(0..n).collect::<Vec<_>>());
        for name in ["online", "present", "possible"] {
            self.put(format!("{CPU}/{name}"), &all);
        }
        self.put(format!("{CPU}/offline"), "");
        self.put(format!("{CPU}/isolated"), "");
        self.put(format!("{CPU}/kernel_max"), (n.next_power_of_two().max(64)) - 1);
        let threads = d.core.iter().any(|c| c.threads > 1);
        if self.release >= (4, 19) {
            let control = d.topology.smt.clone();
            let control = control.unwrap_or_else(|| if threads { "on" } else { "notsupported" }.into());
            self.put(format!("{CPU}/smt/control"), control);
            self.put(format!("{CPU}/smt/active"), u8::from(threads));
        }
        for cpu in self.cpus.clone() {
            let base = format!("{CPU}/cpu{}", cpu.id);
            if cpu.id > 0 || d.topology.first_cpu_leaves {
                self.put(format!("{base}/online"), 1);
            }
            self.put(format!("{base}/uevent"), "DRIVER=processor");
            self.put(format!("{base}/power/control"), "auto");
            self.put(format!("{base}/power/runtime_status"), "unsupported");
            if self.release >= (4, 11) {
                self.put(format!("{base}/power/pm_qos_resume_latency_us"), 0);
            }
            if let Some(capacity) = self.core(&cpu).and_then(|c| c.capacity) {
                self.put(format!("{base}/cpu_capacity"), capacity);
            }
            self.siblings(&cpu, &base);
            if !d.cpuinfo.vendor.is_empty() && d.cpuinfo.vendor == "GenuineIntel" && d.thermal.is_some() {
                for name in ["core_throttle_count", "package_throttle_count"] {
                    self.put(format!("{base}/thermal_throttle/{name}"), 0);
                }
            }
            if d.arch != Arch::Armv7 {
                let node = self.node_of(&cpu);
                self.tree.link(&format!("{base}/node{node}"), &format!("sys/devices/system/node/node{node}"));
            }
        }
        self.nodes();
        self.core_types();
    }

    /// The NUMA node of a CPU.
    fn node_of(&self, c: &Thread) -> u32 {
        let d = self.d;
        let nodes = d.topology.nodes;
        let per_node = (self.cpus.len() as u32).div_ceil(nodes);
        match nodes >= d.topology.packages {
            true => {
                let each = nodes / d.topology.packages;
                let in_package: u32 = d.core.iter().map(|k| k.count).sum();
                let place = c.index + d.core.iter().take(c.kind).map(|k| k.count).sum::<u32>();
                c.package * each + (place * each / in_package.max(1)).min(each - 1)
            }
            false => c.id / per_node.max(1),
        }
    }

    /// Which CPUs share a CPU's core, cluster, die and package.
    fn siblings(&mut self, cpu: &Thread, base: &str) {
        let n = self.cpus.len() as u32;
        let put_set = |b: &mut Self, names: [&str; 2], set: &[u32]| {
            b.put(format!("{base}/topology/{}", names[0]), cpulist::mask(set, n));
            b.put(format!("{base}/topology/{}", names[1]), cpulist::list(set));
        };
        let package = self.same(cpu, |c| c.package);
        let core = self.same(cpu, |c| (c.package, c.kind, c.core_id));
        self.put(format!("{base}/topology/physical_package_id"), cpu.package);
        self.put(format!("{base}/topology/core_id"), cpu.core_id);
        put_set(self, ["core_siblings", "core_siblings_list"], &package);
        put_set(self, ["thread_siblings", "thread_siblings_list"], &core);
        if self.release >= (5, 3) {
            self.put(format!("{base}/topology/die_id"), 0);
            put_set(self, ["package_cpus", "package_cpus_list"], &package);
            put_set(self, ["die_cpus", "die_cpus_list"], &package);
            put_set(self, ["core_cpus", "core_cpus_list"], &core);
        }
        if self.release >= (5, 16) {
            let cluster = self.same(cpu, |c| (c.package, c.kind, c.cluster));
            self.put(format!("{base}/topology/cluster_id"), cpu.cluster);
            put_set(self, ["cluster_cpus", "cluster_cpus_list"], &cluster);
        }
    }

    fn nodes(&mut self) {
        let d = self.d;
        let nodes = d.topology.nodes;
        let n = self.cpus.len() as u32;
        if d.arch != Arch::Armv7 {
            let every = cpulist::list(&(0..nodes).collect::<Vec<_>>());
            for name in ["online", "possible", "has_cpu"] {
                self.put(format!("sys/devices/system/node/{name}"), &every);
            }
            for node in 0..nodes {
                let set: Vec<u32> =
                    self.cpus.iter().filter(|c| self.node_of(c) == node).map(|c| c.id).collect();
                let base = format!("sys/devices/system/node/node{node}");
                self.put(format!("{base}/cpulist"), cpulist::list(&set));
                self.put(format!("{base}/cpumap"), cpulist::mask(&set, n));
            }
        }
    }

    /// The performance counters' devices tell the core types apart.
    fn core_types(&mut self) {
        let d = self.d;
        for (i, core) in d.core.iter().enumerate() {
            let name = match core.kind.as_deref() {
                Some("P") => "cpu_core",
                Some("E") => "cpu_atom",
                Some("LP-E") => "cpu_lowpower",
                _ => continue,
            };
            if d.core.len() > 1 {
                let set: Vec<u32> = self.cpus.iter().filter(|c| c.kind == i).map(|c| c.id).collect();
                self.put(format!("sys/devices/{name}/cpus"), cpulist::list(&set));
            }
        }
    }

    fn cpufreq(&mut self) {
        let d = self.d;
        let Some(f) = &d.cpufreq else { return };
        self.tree.folder(&format!("{CPU}/cpufreq"));
        if let Some(boost) = f.boost {
            self.put(format!("{CPU}/cpufreq/boost"), u8::from(boost));
        }
        let old = self.release < (4, 2);
        let mut done: Vec<u32> = Vec::new();
        for cpu in self.cpus.clone() {
            if done.contains(&cpu.id) {
                continue;
            }
            let domain = match f.domain {
                Span::Cpu => vec![cpu.id],
                Span::Core => self.same(&cpu, |c| (c.package, c.kind, c.core_id)),
                Span::Kind => self.same(&cpu, |c| (c.package, c.kind)),
                Span::Package => self.same(&cpu, |c| c.package),
            };
            done.extend(&domain);
            let folder = match old {
                true => format!("{CPU}/cpu{}/cpufreq", cpu.id),
                false => format!("{CPU}/cpufreq/policy{}", cpu.id),
            };
            self.policy(f, &folder, &cpu, &domain);
            for &other in &domain {
                if !old || other != cpu.id {
                    self.tree.link(&format!("{CPU}/cpu{other}/cpufreq"), &folder);
                }
            }
        }
    }

    fn policy(&mut self, f: &Cpufreq, folder: &str, cpu: &Thread, domain: &[u32]) {
        let Some(core) = self.d.core.get(cpu.kind) else { return };
        let nominal = core.nominal_khz.unwrap_or(core.max_khz);
        self.physics.nominal_khz.insert(cpu.id, nominal);
        let active = wattwise_hw::rules::is_active_driver(&f.driver);
        let cur = f.cur_khz.unwrap_or(core.min_khz).clamp(core.min_khz, core.max_khz);
        for (from, row) in core.levels_khz.iter().zip(&f.change_us) {
            let changes = core.levels_khz.iter().zip(row).filter(|(_, us)| **us > 0);
            self.physics.changes.extend(changes.map(|(to, us)| ((*from, *to), u64::from(*us) * 1000)));
        }
        let file = |name: &str| format!("{folder}/{name}");
        self.put(file("affected_cpus"), cpulist::words(domain));
        self.put(file("related_cpus"), cpulist::words(domain));
        self.put(file("cpuinfo_min_freq"), core.min_khz);
        self.put(file("cpuinfo_max_freq"), core.max_khz);
        self.put(file("cpuinfo_transition_latency"), f.latency_ns);
        self.put(file("scaling_min_freq"), core.min_khz);
        self.put(file("scaling_max_freq"), core.max_khz);
        self.put(file("scaling_cur_freq"), cur);
        self.put(file("scaling_driver"), &f.driver);
        self.put(file("scaling_governor"), &f.governor);
        self.put(file("scaling_available_governors"), f.governors.join(" ") + if active { "" } else { " " });
        self.put(file("scaling_setspeed"), "<unsupported>");
        if f.hardware_speed {
            self.put(file("cpuinfo_cur_freq"), cur);
        }
        if f.driver == "acpi-cpufreq" {
            self.put(file("bios_limit"), core.levels_khz.iter().copied().max().unwrap_or(core.max_khz));
            self.put(file("freqdomain_cpus"), cpulist::words(domain));
        }
        let row = |levels: &[u32]| levels.iter().map(|l| format!("{l} ")).collect::<String>();
        if !core.levels_khz.is_empty() {
            self.put(file("scaling_available_frequencies"), row(&core.levels_khz));
        }
        if !core.boost_levels_khz.is_empty() {
            self.put(file("scaling_boost_frequencies"), row(&core.boost_levels_khz));
        }
        if f.own_boost {
            self.put(file("boost"), 1);
        }
        if f.stats && !core.levels_khz.is_empty() {
            let mut levels = core.levels_khz.clone();
            levels.extend(&core.boost_levels_khz);
            let mut lines = String::new();
            for level in levels {
                let ticks = if level == cur { self.d.uptime_s * 100 } else { 0 };
                _ = writeln!(lines, "{level} {ticks}");
            }
            self.tree.put(&file("stats/time_in_state"), NodeKind::Text(lines.into_bytes()));
            self.put(file("stats/total_trans"), 0);
            self.put(file("stats/trans_table"), "");
        }
        if let Some(preference) = &f.preference {
            self.put(file("energy_performance_preference"), preference);
            self.put(file("energy_performance_available_preferences"), row_of(&f.preferences));
        }
        if f.driver.starts_with("intel_") && f.preference.is_some() {
            self.put(file("base_frequency"), nominal);
        }
        if let Some(p) = &self.d.amd_pstate {
            let rank = core.ranking.get(cpu.index as usize).copied().unwrap_or(p.cppc[0]);
            self.put(file("amd_pstate_max_freq"), core.max_khz);
            self.put(file("amd_pstate_lowest_nonlinear_freq"), p.lowest_nonlinear_khz);
            self.put(file("amd_pstate_highest_perf"), p.cppc[0]);
            if let Some(prefcore) = &p.prefcore {
                self.put(file("amd_pstate_hw_prefcore"), prefcore);
                self.put(file("amd_pstate_prefcore_ranking"), rank);
            }
        }
    }

    fn cpuidle(&mut self) {
        let d = self.d;
        let Some(c) = &d.cpuidle else { return };
        self.physics.idle_leaves_with_cpu = c.driver == "haltpoll";
        let base = format!("{CPU}/cpuidle");
        self.put(format!("{base}/current_driver"), &c.driver);
        self.put(format!("{base}/current_governor_ro"), &c.governor);
        // Always switchable since 5.8.
        if self.release >= (5, 8) {
            self.put(format!("{base}/current_governor"), &c.governor);
            self.put(format!("{base}/available_governors"), c.governors.join(" ") + " ");
        }
        for cpu in self.cpus.clone() {
            let Some(core) = self.d.core.get(cpu.kind) else { continue };
            for (i, state) in core.idle.iter().enumerate() {
                let file = |name: &str| format!("{CPU}/cpu{}/cpuidle/state{i}/{name}", cpu.id);
                self.put(file("name"), &state.name);
                self.put(file("desc"), &state.desc);
                self.put(file("latency"), state.latency_us);
                self.put(file("residency"), state.residency_us);
                self.put(file("power"), 0);
                self.put(file("disable"), u8::from(state.disabled));
                self.put(file("usage"), 0);
                self.put(file("time"), 0);
                if self.release >= (5, 0) {
                    self.put(file("above"), 0);
                    self.put(file("below"), 0);
                }
                if self.release >= (5, 6) {
                    self.put(file("default_status"), if state.disabled { "disabled" } else { "enabled" });
                }
                if self.release >= (5, 10) {
                    self.put(file("rejected"), 0);
                }
            }
        }
    }

    fn drivers(&mut self) {
        let d = self.d;
        let first = d.core.first();
        if let Some(p) = &d.intel_pstate {
            let base = format!("{CPU}/intel_pstate");
            self.put(format!("{base}/status"), &p.status);
            self.put(format!("{base}/no_turbo"), u8::from(p.no_turbo));
            if let Some(core) = first {
                // In steps of 100 MHz, as intel_pstate.c counts them (show_turbo_pct).
                let count = |khz: u32| khz.saturating_sub(core.min_khz) / 100_000 + 1;
                let all = count(core.max_khz);
                let plain = count(core.nominal_khz.unwrap_or(core.max_khz));
                self.put(format!("{base}/num_pstates"), all);
                self.put(format!("{base}/turbo_pct"), 100 - plain * 100 / all);
                self.put(format!("{base}/max_perf_pct"), 100);
                let least = u64::from(core.min_khz) * 100 / u64::from(core.max_khz.max(1));
                self.put(format!("{base}/min_perf_pct"), least);
            }
            if p.status == "active" && d.cpufreq.as_ref().is_some_and(|f| f.preference.is_some()) {
                self.put(format!("{base}/hwp_dynamic_boost"), 0);
            }
            // Machines with HWP have it from CPPC's objects of the firmware too: performance in steps of 100 MHz here.
            if d.cpufreq.as_ref().is_some_and(|f| f.preference.is_some()) {
                for cpu in self.cpus.clone() {
                    let Some(core) = d.core.get(cpu.kind) else { continue };
                    let base = format!("{CPU}/cpu{}/acpi_cppc", cpu.id);
                    let nominal = core.nominal_khz.unwrap_or(core.max_khz);
                    self.put(format!("{base}/highest_perf"), core.max_khz / 100_000);
                    self.put(format!("{base}/nominal_perf"), nominal / 100_000);
                    self.put(format!("{base}/lowest_perf"), core.min_khz / 100_000);
                }
            }
            if let Some(bias) = p.bias {
                for cpu in self.cpus.clone() {
                    self.put(format!("{CPU}/cpu{}/power/energy_perf_bias", cpu.id), bias);
                }
            }
        }
        if let Some(p) = &d.amd_pstate {
            let base = format!("{CPU}/amd_pstate");
            self.put(format!("{base}/status"), &p.status);
            if let Some(prefcore) = &p.prefcore {
                self.put(format!("{base}/prefcore"), prefcore);
            }
            if let Some(dynamic_epp) = &p.dynamic_epp {
                self.put(format!("{base}/dynamic_epp"), dynamic_epp);
            }
            for cpu in self.cpus.clone() {
                let base = format!("{CPU}/cpu{}/acpi_cppc", cpu.id);
                let names = ["highest_perf", "nominal_perf", "lowest_nonlinear_perf", "lowest_perf"];
                for (name, perf) in names.into_iter().zip(p.cppc) {
                    self.put(format!("{base}/{name}"), perf);
                }
            }
        }
        if let Some(u) = &d.uncore {
            for package in 0..d.topology.packages {
                let base = format!("{CPU}/intel_uncore_frequency/package_{package:02}_die_00");
                for (name, khz) in [
                    ("min_freq_khz", u.min_khz),
                    ("max_freq_khz", u.max_khz),
                    ("initial_min_freq_khz", u.min_khz),
                    ("initial_max_freq_khz", u.max_khz),
                    ("current_freq_khz", u.max_khz),
                ] {
                    self.put(format!("{base}/{name}"), khz);
                }
            }
        }
        if let Some(p) = &d.platform_profile {
            self.put("sys/firmware/acpi/platform_profile", &p.now);
            self.put("sys/firmware/acpi/platform_profile_choices", p.choices.join(" "));
        }
    }

    fn powercap(&mut self) {
        let d = self.d;
        const TOP: &str = "sys/devices/virtual/powercap/intel-rapl";
        if d.rapl.is_empty() {
            return;
        }
        self.put(format!("{TOP}/enabled"), 1);
        self.tree.link("sys/class/powercap/intel-rapl", TOP);
        for package in 0..d.topology.packages {
            let name = format!("intel-rapl:{package}");
            let mut below = 0;
            for zone in d.rapl.iter().filter(|z| z.name != "psys") {
                let (path, label, link) = if zone.name == "package" {
                    (format!("{TOP}/{name}"), format!("package-{package}"), name.clone())
                } else {
                    let own = format!("{name}:{below}");
                    below += 1;
                    (format!("{TOP}/{name}/{own}"), zone.name.clone(), own)
                };
                self.zone(zone, &path, &label, &link);
            }
        }
        if let Some(zone) = d.rapl.iter().find(|z| z.name == "psys") {
            let name = format!("intel-rapl:{}", d.topology.packages);
            self.zone(zone, &format!("{TOP}/{name}"), "psys", &name);
        }
    }

    fn zone(&mut self, zone: &Rapl, path: &str, label: &str, link: &str) {
        self.put(format!("{path}/name"), label);
        self.put(format!("{path}/energy_uj"), 0);
        self.put(format!("{path}/max_energy_range_uj"), zone.max_energy_range_uj);
        self.put(format!("{path}/enabled"), u8::from(!zone.limits.is_empty()));
        for (i, limit) in zone.limits.iter().enumerate() {
            let file = |name: &str| format!("{path}/constraint_{i}_{name}");
            self.put(file("name"), &limit.name);
            self.put(file("power_limit_uw"), limit.uw);
            self.put(file("time_window_us"), limit.window_us);
            if let Some(max) = limit.max_uw {
                self.put(file("max_power_uw"), max);
            }
        }
        self.tree.link(&format!("sys/class/powercap/{link}"), path);
    }

    fn supply(&mut self) {
        let Some(b) = &self.d.battery else { return };
        let base = "sys/class/power_supply/BAT0";
        let what = if b.charge { "charge" } else { "energy" };
        self.put(format!("{base}/type"), "Battery");
        self.put(format!("{base}/present"), 1);
        self.put(format!("{base}/technology"), "Li-ion");
        self.put(format!("{base}/status"), "Unknown");
        self.put(format!("{base}/capacity"), 0);
        self.put(format!("{base}/{what}_full_design"), b.design);
        self.put(format!("{base}/{what}_full"), b.full);
        self.put(format!("{base}/{what}_now"), b.now);
        self.put(format!("{base}/{}", if b.charge { "current_now" } else { "power_now" }), 0);
        self.put(format!("{base}/voltage_now"), b.voltage_uv);
        self.put(format!("{base}/voltage_min_design"), b.voltage_uv);
        self.put("sys/class/power_supply/AC/type", "Mains");
        self.put("sys/class/power_supply/AC/online", u8::from(b.mains));
        self.physics.battery_update_ns = b.update_s.clamp(1, 3600) * 1_000_000_000;
    }

    fn thermal(&mut self) {
        let Some(t) = &self.d.thermal else { return };
        self.physics.ambient_mc = t.ambient_mc;
        self.physics.rise_mc_per_w = t.rise_mc_per_w;
        for package in 0..self.d.topology.packages {
            let base = format!("sys/devices/virtual/thermal/thermal_zone{package}");
            self.put(format!("{base}/type"), &t.zone);
            self.tree.put(&format!("{base}/temp"), NodeKind::Live(LiveAttribute::Temperature { package }));
            self.put(format!("{base}/mode"), "enabled");
            self.put(format!("{base}/policy"), "step_wise");
            self.put(format!("{base}/available_policies"), "user_space bang_bang fair_share step_wise ");
            self.put(format!("{base}/trip_point_0_type"), "critical");
            self.put(format!("{base}/trip_point_0_temp"), t.critical_mc);
            self.tree.link(&format!("sys/class/thermal/thermal_zone{package}"), &base);
            if let Some(name) = &t.hwmon {
                let base = format!("sys/devices/platform/{name}.{package}/hwmon/hwmon{package}");
                self.put(format!("{base}/name"), name);
                self.put(format!("{base}/temp1_label"), format!("Package id {package}"));
                self.tree.put(
                    &format!("{base}/temp1_input"),
                    NodeKind::Live(LiveAttribute::Temperature { package }),
                );
                self.put(format!("{base}/temp1_crit"), t.critical_mc);
                self.tree.link(&format!("sys/class/hwmon/hwmon{package}"), &base);
            }
        }
    }

    fn registers(&mut self) {
        let Some(m) = &self.d.msr else { return };
        for (address, value) in &m.registers {
            if let (Some(address), Some(value)) = (hex(address), hex(value)) {
                self.physics.registers.insert(address as u32, value);
            }
        }
        for cpu in self.cpus.clone() {
            self.tree.put(
                &format!("dev/cpu/{}/msr", cpu.id),
                NodeKind::Live(LiveAttribute::Registers { cpu: cpu.id }),
            );
        }
    }

    fn power(&mut self) {
        let p = &self.d.power;
        let set = |to: &mut u64, from: Option<u64>| *to = from.unwrap_or(*to);
        set(&mut self.physics.package_idle_uw, p.package_idle_uw);
        set(&mut self.physics.cpu_uw, p.cpu_uw);
        set(&mut self.physics.dram_uw, p.dram_uw);
        set(&mut self.physics.platform_uw, p.platform_uw);
    }
}

fn row_of(words: &[String]) -> String {
    words.iter().map(|w| format!("{w} ")).collect()
}
