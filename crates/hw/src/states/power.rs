//! Energy counters and power limits (powercap), the uncore's speed, the bias.

use crate::cpus::set::CpuSet;
use crate::probe::{Mechanism, Probed, why};
use crate::root::{Root, label, number, text};
use serde::Serialize;
use std::collections::BTreeSet;

/// One RAPL zone with those inside it: package holds core and uncore, psys holds all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Zone {
    /// `package-0`, `core`, `dram`, `psys`.
    pub name: String,
    /// Folder below the root.
    pub path: String,
    /// By which door the kernel reaches it: `msr`, `mmio`, `tpmi`. The same package can be shown by two.
    pub door: String,
    /// Whether its limits are enforced.
    pub enabled: Option<bool>,
    /// Energy since an arbitrary start, uJ, or why it cannot be read.
    pub energy_uj: Probed<u64>,
    /// Where the counter wraps, uJ; none where the kernel does not tell.
    pub max_energy_uj: Option<u64>,
    /// Its limits.
    pub limits: Vec<Limit>,
    /// Zones within, whose energy this one includes.
    pub inside: Vec<Zone>,
}

/// A power limit of a zone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// The constraint's number.
    pub index: u32,
    /// `long_term`, `short_term`, `peak_power`.
    pub name: String,
    /// The limit, uW; 0 is none was set.
    pub power_uw: Option<u64>,
    /// The highest that may be asked for, uW.
    pub most_uw: Option<u64>,
    /// Over which the mean is held, us.
    pub window_us: Option<u64>,
    /// Whether it holds: its zone is enabled, it is set, and no other door to the same zone has a lower one.
    pub in_force: bool,
}

const POWERCAP: &str = "sys/class/powercap";

/// The zones as a tree, or why there are none.
pub fn zones(root: &dyn Root) -> Probed<Vec<Zone>> {
    let names = match root.list(POWERCAP) {
        Ok(names) => names,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let reason = match crate::states::cpufreq::hypervisor(root) {
                true => "no powercap: a virtual machine is given no RAPL",
                false => {
                    "no powercap: the kernel has no intel_rapl driver loaded, or this container masks it"
                }
            };
            return Probed::no(Mechanism::Sysfs, reason);
        }
        Err(e) => return Probed::no(Mechanism::Sysfs, why(&e, POWERCAP, root)),
    };
    // `intel-rapl:0` is a zone, `intel-rapl:0:1` one within it; `intel-rapl-mmio:0` shows the same package
    // by another door. The folder without a number is the driver.
    let zones: Vec<&String> = names.iter().filter(|n| n.contains(':')).collect();
    let mut top: Vec<Zone> = zones
        .iter()
        .filter(|n| n.matches(':').count() == 1)
        .filter_map(|name| Zone::read(root, name, &zones))
        .collect();
    name_those_in_force(&mut top);
    match top.is_empty() {
        true => Probed::no(
            Mechanism::Sysfs,
            "powercap lists no zone: the processor has no RAPL that the kernel knows",
        ),
        false => Probed::yes(top, Mechanism::Sysfs),
    }
}

impl Zone {
    fn read(root: &dyn Root, folder: &str, all: &[&String]) -> Option<Zone> {
        let path = format!("{POWERCAP}/{folder}");
        let name = label(root, &format!("{path}/name"))?;
        let files: BTreeSet<String> = root.list(&path).unwrap_or_default().into_iter().collect();
        let limits = (0..8)
            .map_while(|index| {
                let at = |what: &str| format!("{path}/constraint_{index}_{what}");
                files.contains(&format!("constraint_{index}_power_limit_uw")).then(|| Limit {
                    index,
                    name: label(root, &at("name")).unwrap_or_default(),
                    power_uw: number(root, &at("power_limit_uw")),
                    most_uw: number(root, &at("max_power_uw")),
                    window_us: number(root, &at("time_window_us")),
                    in_force: false,
                })
            })
            .collect();
        let energy_path = format!("{path}/energy_uj");
        let energy_uj = match root.read(&energy_path) {
            Ok(bytes) => match String::from_utf8_lossy(&bytes).trim().parse() {
                Ok(uj) => Probed::yes(uj, Mechanism::Sysfs),
                Err(_) => Probed::no(Mechanism::Sysfs, format!("{energy_path} holds no number")),
            },
            Err(e) => Probed::no(Mechanism::Sysfs, why(&e, &energy_path, root)),
        };
        let inner = format!("{folder}:");
        let inside = all
            .iter()
            .filter(|n| n.strip_prefix(inner.as_str()).is_some_and(|rest| !rest.contains(':')))
            .filter_map(|n| Zone::read(root, n, all))
            .collect();
        Some(Zone {
            enabled: text(root, &format!("{path}/enabled")).map(|e| e == "1"),
            max_energy_uj: number(root, &format!("{path}/max_energy_range_uj")).filter(|range| *range > 0),
            door: door(folder),
            name,
            energy_uj,
            limits,
            inside,
            path,
        })
    }

    /// This zone and all inside it, outermost first.
    pub fn walk(&self) -> Vec<&Zone> {
        std::iter::once(self).chain(self.inside.iter().flat_map(Zone::walk)).collect()
    }

    /// Whether a name means this zone: its own, or that of what it is a part of (`package` and `package-0` mean
    /// `package-0-die-1` too).
    pub fn is_meant_by(&self, name: &str) -> bool {
        self.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// The limit of that name, or the first.
    pub fn limit(&self, name: Option<&str>) -> Option<&Limit> {
        self.limits.iter().find(|l| name.is_none_or(|name| l.name == name))
    }

    /// The limit of that name that it holds its power to, uW: none where it is off or not set.
    pub fn holds_uw(&self, name: &str) -> Option<u64> {
        let set = self.limit(Some(name))?.power_uw?;
        (set > 0 && self.enabled != Some(false)).then_some(set)
    }
}

/// The door of a zone's folder: `intel-rapl:0` is reached by registers, `intel-rapl-mmio:0` by memory.
fn door(folder: &str) -> String {
    let driver = folder.split(':').next().unwrap_or(folder);
    let door = driver.strip_prefix("intel-rapl").unwrap_or(driver).trim_start_matches('-');
    if door.is_empty() { "msr".to_owned() } else { door.to_owned() }
}

/// Of limits of one name on zones of one name, the processor keeps the lowest: one package has its limits in registers and
/// in memory-mapped ones. Only the outermost zones are shown twice.
fn name_those_in_force(zones: &mut [Zone]) {
    let all: Vec<(String, String, u64)> = zones
        .iter()
        .flat_map(|z| z.limits.iter().map(move |l| (z, l)))
        .filter_map(|(z, l)| Some((z.name.clone(), l.name.clone(), z.holds_uw(&l.name)?)))
        .collect();
    for zone in zones {
        let (name, enabled) = (zone.name.clone(), zone.enabled != Some(false));
        for limit in &mut zone.limits {
            let same = |(z, l, _): &&(String, String, u64)| *z == name && *l == limit.name;
            let lowest = all.iter().filter(same).map(|(.., uw)| *uw).min();
            limit.in_force = enabled && lowest.is_some() && limit.power_uw == lowest;
        }
        zone.inside.iter_mut().for_each(|inside| name_those_in_force(std::slice::from_mut(inside)));
    }
}

/// The speed of what lies around the cores, by package and die.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UncoreSpeed {
    /// `package_00_die_00`.
    pub name: String,
    /// Folder below the root.
    pub path: String,
    /// Range in force, kHz.
    pub limits_khz: Option<(u64, u64)>,
    /// Range at the start, kHz.
    pub initial_khz: Option<(u64, u64)>,
    /// Now, kHz.
    pub current_khz: Option<u64>,
    /// What it does while the cores rest (efficiency latency control), where the processor has it.
    pub elc: Option<LatencyControl>,
}

/// Efficiency latency control: how an uncore trades latency for power.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyControl {
    /// Its speed at least while the load is between none and the low threshold, kHz.
    pub floor_khz: u64,
    /// Use below which it goes down to that, percent.
    pub low_percent: Option<u32>,
    /// Use above which it goes up at once, percent.
    pub high_percent: Option<u32>,
    /// Whether it does.
    pub high_on: Option<bool>,
}

/// The uncores that the kernel lets us set.
pub fn uncores(root: &dyn Root) -> Probed<Vec<UncoreSpeed>> {
    const AT: &str = "sys/devices/system/cpu/intel_uncore_frequency";
    let read = |name: String| {
        let path = format!("{AT}/{name}");
        let khz = |file: &str| number(root, &format!("{path}/{file}"));
        UncoreSpeed {
            limits_khz: khz("min_freq_khz").zip(khz("max_freq_khz")),
            initial_khz: khz("initial_min_freq_khz").zip(khz("initial_max_freq_khz")),
            current_khz: khz("current_freq_khz"),
            elc: khz("elc_floor_freq_khz").map(|floor_khz| LatencyControl {
                floor_khz,
                low_percent: number(root, &format!("{path}/elc_low_threshold_percent")),
                high_percent: number(root, &format!("{path}/elc_high_threshold_percent")),
                high_on: number(root, &format!("{path}/elc_high_threshold_enable")).map(|on: u32| on != 0),
            }),
            name,
            path,
        }
    };
    match root.list(AT) {
        Ok(names) if !names.is_empty() => {
            Probed::yes(names.into_iter().map(read).collect(), Mechanism::Sysfs)
        }
        _ => Probed::no(
            Mechanism::Sysfs,
            "no intel_uncore_frequency: the driver is not loaded or the uncore is not settable",
        ),
    }
}

/// A hint of how hard each CPU should be driven (0 performance to 15 powersave), where the kernel shows it.
pub fn energy_performance_bias(root: &dyn Root, cpus: &CpuSet) -> Probed<Vec<(CpuSet, u32)>> {
    let mut groups: Vec<(CpuSet, u32)> = Vec::new();
    for cpu in cpus.iter() {
        let Some(bias) = number(root, &format!("sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias"))
        else {
            continue;
        };
        match groups.iter_mut().find(|(_, b)| *b == bias) {
            Some((set, _)) => set.insert(cpu),
            None => groups.push((CpuSet::from_iter([cpu]), bias)),
        }
    }
    match groups.is_empty() {
        true => Probed::no(
            Mechanism::Sysfs,
            "no power/energy_perf_bias: the processor has no EPB or the kernel hides it",
        ),
        false => Probed::yes(groups, Mechanism::Sysfs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    fn machine(files: &[(&str, &str)]) -> Vec<Zone> {
        let mut tree = Tree::default();
        for (path, content) in files {
            tree.files.insert(format!("{POWERCAP}/{path}"), format!("{content}\n").into_bytes());
        }
        zones(&TreeRoot::new(tree, "test")).value.expect("zones")
    }

    fn in_force(zones: &[Zone]) -> Vec<(&str, bool)> {
        zones.iter().map(|z| (z.door.as_str(), z.limits[0].in_force)).collect()
    }

    /// thermald 293: a laptop's firmware sets 13.5 W by memory while the register says 35 W.
    #[test]
    fn of_two_doors_to_a_package_the_lower_limit_is_in_force() {
        let twins = |msr, mmio, enabled| {
            machine(&[
                ("intel-rapl:0/name", "package-0"),
                ("intel-rapl:0/constraint_0_name", "long_term"),
                ("intel-rapl:0/constraint_0_power_limit_uw", msr),
                ("intel-rapl-mmio:0/name", "package-0"),
                ("intel-rapl-mmio:0/enabled", enabled),
                ("intel-rapl-mmio:0/constraint_0_name", "long_term"),
                ("intel-rapl-mmio:0/constraint_0_power_limit_uw", mmio),
            ])
        };
        assert_eq!(in_force(&twins("35000000", "13500000", "1")), [("mmio", true), ("msr", false)]);
        assert_eq!(in_force(&twins("9000000", "13500000", "1")), [("mmio", false), ("msr", true)]);
        // Switched off, or never set: the other one holds.
        assert_eq!(in_force(&twins("35000000", "13500000", "0")), [("mmio", false), ("msr", true)]);
        assert_eq!(in_force(&twins("35000000", "0", "1")), [("mmio", false), ("msr", true)]);
        assert_eq!(in_force(&twins("0", "0", "1")), [("mmio", false), ("msr", false)]);
    }

    #[test]
    fn zones_of_a_name() {
        let zones = machine(&[("intel-rapl:0/name", "package-0-die-1"), ("intel-rapl:1/name", "package-10")]);
        let meant = |name: &str| zones.iter().map(|z| z.is_meant_by(name)).collect::<Vec<_>>();
        assert_eq!(meant("package"), [true, true]);
        assert_eq!(meant("package-0"), [true, false]);
        assert_eq!(meant("package-0-die-1"), [true, false]);
        assert_eq!(meant("package-1"), [false, false]);
    }

    #[test]
    fn a_range_of_0_is_none() {
        let zones = machine(&[("intel-rapl:0/name", "package-0"), ("intel-rapl:0/max_energy_range_uj", "0")]);
        assert_eq!(zones[0].max_energy_uj, None);
    }
}
