//! Impossible figures are refused.

use super::format::{Core, Cpufreq, Description, hex};

pub(super) type Wrong = (String, String);

fn wrong<T>(key: impl Into<String>, problem: impl Into<String>) -> Result<T, Wrong> {
    Err((key.into(), problem.into()))
}

/// What no machine has more of.
const MOST_CPUS: u32 = 1024;
/// 20 GHz.
const MOST_KHZ: u32 = 20_000_000;

impl Description {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        self.check_topology()?;
        self.check_drivers()?;
        self.check_energy()?;
        self.check_battery_and_heat()?;
        self.check_registers()
    }

    /// The name, the kernel, and how many CPUs there are.
    fn check_topology(&self) -> Result<(), Wrong> {
        let t = &self.topology;
        if self.release().is_none() {
            return wrong("kernel", format!("'{}' is not a release such as 6.1.0", self.kernel));
        }
        if self.name.is_empty() || self.name.contains(['/', '\n']) {
            return wrong("name", "a plain name is expected");
        }
        if t.packages == 0 {
            return wrong("topology.packages", "at least 1 is expected");
        }
        if self.core.is_empty() {
            return wrong("core", "at least one kind of core is expected");
        }
        let mut per_package = 0_u64;
        for (i, core) in self.core.iter().enumerate() {
            self.check_core(i, core)?;
            per_package += u64::from(core.count) * u64::from(core.threads);
        }
        let cpus = per_package * u64::from(t.packages);
        if cpus > u64::from(MOST_CPUS) {
            return wrong("topology.packages", format!("{cpus} CPUs are more than {MOST_CPUS}"));
        }
        if t.nodes == 0
            || u64::from(t.nodes) > cpus
            || (!t.nodes.is_multiple_of(t.packages) && !t.packages.is_multiple_of(t.nodes))
        {
            return wrong("topology.nodes", "a multiple or a part of the packages is expected");
        }
        if self.uptime_s > 3_000_000_000 {
            return wrong("uptime_s", "more than 95 years");
        }
        Ok(())
    }

    /// cpufreq, cpuidle, the two pstate drivers and the uncore's clock.
    fn check_drivers(&self) -> Result<(), Wrong> {
        if let Some(f) = &self.cpufreq {
            self.check_cpufreq(f)?;
        }
        if let Some(c) = &self.cpuidle
            && !c.governors.contains(&c.governor)
        {
            return wrong("cpuidle.governor", format!("'{}' is not among cpuidle.governors", c.governor));
        }
        if self.cpuidle.is_none() && self.core.iter().any(|c| !c.idle.is_empty()) {
            return wrong("cpuidle", "there are idle states but no driver of them");
        }
        if let Some(p) = &self.intel_pstate {
            if !["active", "passive", "off"].contains(&p.status.as_str()) {
                return wrong("intel_pstate.status", "active, passive or off is expected");
            }
            if p.bias.is_some_and(|b| b > 15) {
                return wrong("intel_pstate.bias", "0 to 15 is expected");
            }
        }
        if let Some(p) = &self.amd_pstate {
            if !["active", "passive", "guided", "disable"].contains(&p.status.as_str()) {
                return wrong("amd_pstate.status", "active, passive, guided or disable is expected");
            }
            if p.dynamic_epp.as_deref().is_some_and(|d| !["enabled", "disabled"].contains(&d)) {
                return wrong("amd_pstate.dynamic_epp", "enabled or disabled is expected");
            }
            if !p.cppc.is_sorted_by(|a, b| a >= b) || p.cppc[3] == 0 || p.cppc[0] > 255 {
                return wrong("amd_pstate.cppc", "four falling numbers of 1 to 255 are expected");
            }
        }
        if let Some(u) = &self.uncore
            && (u.min_khz == 0 || u.min_khz > u.max_khz || u.max_khz > 12_700_000)
        {
            return wrong("uncore.min_khz", "at least 1, at most max_khz and 12700000 is expected");
        }
        Ok(())
    }

    /// Energy counters, and what the parts draw.
    fn check_energy(&self) -> Result<(), Wrong> {
        for (i, r) in self.rapl.iter().enumerate() {
            if r.max_energy_range_uj < 2 {
                return wrong(format!("rapl[{i}].max_energy_range_uj"), "at least 2 is expected");
            }
            if !["package", "core", "uncore", "dram", "psys"].contains(&r.name.as_str()) {
                return wrong(format!("rapl[{i}].name"), "package, core, uncore, dram or psys is expected");
            }
            if self.rapl.first().is_some_and(|first| first.name != "package") {
                return wrong("rapl[0].name", "the first zone is the package's");
            }
            if r.limits.iter().any(|l| l.uw > 100_000_000_000) {
                return wrong(format!("rapl[{i}].limits"), "more than 100 kW");
            }
        }
        for (key, uw) in [
            ("package_idle_uw", self.power.package_idle_uw),
            ("cpu_uw", self.power.cpu_uw),
            ("dram_uw", self.power.dram_uw),
            ("platform_uw", self.power.platform_uw),
        ] {
            if uw.is_some_and(|uw| uw > 100_000_000_000) {
                return wrong(format!("power.{key}"), "more than 100 kW");
            }
        }
        Ok(())
    }

    fn check_battery_and_heat(&self) -> Result<(), Wrong> {
        if let Some(b) = &self.battery {
            const MOST: u64 = 1_000_000_000_000;
            if b.full == 0 || b.full > MOST || b.design > MOST {
                return wrong("battery.full", "1 to 10^12 is expected");
            }
            if b.now > b.full {
                return wrong("battery.now", format!("{} is more than battery.full, {}", b.now, b.full));
            }
            if b.voltage_uv == 0 || b.voltage_uv > 1_000_000_000 {
                return wrong("battery.voltage_uv", "1 to 10^9 is expected");
            }
        }
        if let Some(t) = &self.thermal
            && [t.critical_mc, t.ambient_mc, t.rise_mc_per_w].iter().any(|n| n.abs() > 1_000_000)
        {
            return wrong("thermal", "thousandths of a degree, at most 1000 degrees");
        }
        if let Some(p) = &self.platform_profile
            && !p.choices.contains(&p.now)
        {
            return wrong("platform_profile.now", format!("'{}' is not among the choices", p.now));
        }
        Ok(())
    }

    /// Registers, and what `/proc/cpuinfo` is told.
    fn check_registers(&self) -> Result<(), Wrong> {
        if let Some(m) = &self.msr {
            for (address, value) in &m.registers {
                if hex(address).is_none_or(|a| a > u64::from(u32::MAX)) || hex(value).is_none() {
                    return wrong(
                        format!("msr.registers.{address}"),
                        "\"0xADDRESS\" = \"0xVALUE\" is expected",
                    );
                }
            }
        }
        for khz in self.cpuinfo.bogomips_by_khz.keys() {
            if khz.parse::<u32>().is_err() {
                return wrong(format!("cpuinfo.bogomips_by_khz.{khz}"), "a speed in kHz is expected");
            }
        }
        Ok(())
    }

    fn check_core(&self, i: usize, core: &Core) -> Result<(), Wrong> {
        let key = |name: &str| format!("core[{i}].{name}");
        if core.count == 0 || core.count > MOST_CPUS {
            return wrong(key("count"), format!("1 to {MOST_CPUS} is expected"));
        }
        if core.threads == 0 || core.threads > 8 {
            return wrong(key("threads"), "1 to 8 is expected");
        }
        if core.id_step == 0 || core.id_step > 64 {
            return wrong(key("id_step"), "1 to 64 is expected");
        }
        for (n, state) in core.idle.iter().enumerate() {
            if state.name.is_empty() || state.name.contains('\n') || state.desc.contains('\n') {
                return wrong(key(&format!("idle[{n}].name")), "one line is expected");
            }
        }
        if core.idle.len() > 10 {
            return wrong(key("idle"), "the kernel has at most 10 states");
        }
        if core.capacity.is_some_and(|c| c == 0 || c > 1024) {
            return wrong(key("capacity"), "1 to 1024 is expected");
        }
        if self.cpufreq.is_none() {
            return Ok(());
        }
        let (min, max) = (core.min_khz, core.max_khz);
        if min == 0 {
            return wrong(key("min_khz"), "a speed over 0 is expected");
        }
        if max > MOST_KHZ {
            return wrong(key("max_khz"), "at most 20 GHz is expected");
        }
        if min > max {
            return wrong(key("min_khz"), format!("{min} is over max_khz, {max}"));
        }
        if core.nominal_khz.is_some_and(|n| n < min || n > max) {
            return wrong(key("nominal_khz"), format!("{min} to {max} is expected"));
        }
        for (name, levels) in [("levels_khz", &core.levels_khz), ("boost_levels_khz", &core.boost_levels_khz)]
        {
            let mut sorted = levels.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() != levels.len() {
                return wrong(key(name), "a level is there twice");
            }
            if let Some(&level) = levels.iter().find(|&&l| l < min || l > max) {
                return wrong(key(name), format!("{level} is outside min_khz to max_khz, {min} to {max}"));
            }
        }
        // acpi-cpufreq shows its boost speed without a level for it.
        let acpi = self.cpufreq.as_ref().is_some_and(|f| f.driver == "acpi-cpufreq");
        let level = |khz: u32| core.levels_khz.contains(&khz) || core.boost_levels_khz.contains(&khz);
        for (name, khz) in [("min_khz", Some(min)), ("max_khz", Some(max)), ("nominal_khz", core.nominal_khz)]
        {
            let free = core.levels_khz.is_empty() || (acpi && name != "min_khz");
            if let Some(khz) = khz.filter(|&khz| !free && !level(khz)) {
                return wrong(key(name), format!("{khz} is not one of levels_khz"));
            }
        }
        Ok(())
    }

    fn check_cpufreq(&self, f: &Cpufreq) -> Result<(), Wrong> {
        if f.driver.is_empty() || f.driver.len() > 15 || f.driver.contains(char::is_whitespace) {
            return wrong("cpufreq.driver", "a word of at most 15 letters is expected");
        }
        if !f.governors.contains(&f.governor) {
            return wrong("cpufreq.governor", format!("'{}' is not among cpufreq.governors", f.governor));
        }
        let active = wattwise_hw::rules::is_active_driver(&f.driver);
        if active && f.governors.iter().any(|g| g != "performance" && g != "powersave") {
            return wrong("cpufreq.governors", format!("{} has only performance and powersave", f.driver));
        }
        for core in &self.core {
            if f.cur_khz.is_some_and(|cur| cur < core.min_khz || cur > core.max_khz) {
                return wrong("cpufreq.cur_khz", "outside min_khz to max_khz");
            }
            let levels = core.levels_khz.len();
            let whole = f.change_us.len() == levels && f.change_us.iter().all(|row| row.len() == levels);
            if !f.change_us.is_empty() && !whole {
                return wrong(
                    "cpufreq.change_us",
                    format!("a row and a column for each of levels_khz ({levels}) are expected"),
                );
            }
        }
        if let Some(p) = &f.preference
            && !f.preferences.contains(p)
        {
            return wrong("cpufreq.preference", format!("'{p}' is not among cpufreq.preferences"));
        }
        Ok(())
    }
}
