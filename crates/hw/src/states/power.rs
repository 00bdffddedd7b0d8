//! Energy counters and power limits (powercap), the uncore's speed, temperatures, battery and mains.

use crate::cpus::set::CpuSet;
use crate::probe::{Mechanism, Probed, why};
use crate::root::{Root, label, number, text};
use serde::Serialize;
use std::collections::BTreeSet;
use wattwise_figure::one_line;

/// One RAPL zone with those inside it: package holds core and uncore, psys holds all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Zone {
    /// `package-0`, `core`, `dram`, `psys`.
    pub name: String,
    /// Folder below the root.
    pub path: String,
    /// Whether its limits are enforced.
    pub enabled: Option<bool>,
    /// Energy since an arbitrary start, uJ, or why it cannot be read.
    pub energy_uj: Probed<u64>,
    /// Where the counter wraps, uJ.
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
    /// The limit, uW; 0 is none.
    pub power_uw: Option<u64>,
    /// The highest that may be asked for, uW.
    pub most_uw: Option<u64>,
    /// Over which the mean is held, us.
    pub window_us: Option<u64>,
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
    let top: Vec<Zone> = zones
        .iter()
        .filter(|n| n.matches(':').count() == 1)
        .filter_map(|name| Zone::read(root, name, &zones))
        .collect();
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
            max_energy_uj: number(root, &format!("{path}/max_energy_range_uj")),
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
}

/// The speed of what lies around the cores, by package and die.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Uncore {
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
pub fn uncores(root: &dyn Root) -> Probed<Vec<Uncore>> {
    const AT: &str = "sys/devices/system/cpu/intel_uncore_frequency";
    let read = |name: String| {
        let path = format!("{AT}/{name}");
        let khz = |file: &str| number(root, &format!("{path}/{file}"));
        Uncore {
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

/// A temperature, by a thermal zone or a hwmon sensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Temperature {
    /// `x86_pkg_temp`, `coretemp Package id 0`.
    pub name: String,
    /// Degrees Celsius.
    pub celsius: f64,
    /// The file.
    pub path: String,
}

/// A power or energy sensor of hwmon.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensor {
    /// Chip and label.
    pub name: String,
    /// Watts where it senses power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// Joules where it counts energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// The file.
    pub path: String,
}

/// Temperatures and power sensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sensors {
    /// All temperatures.
    pub temperatures: Vec<Temperature>,
    /// All power and energy sensors.
    pub power: Vec<Sensor>,
    /// Speeds of fans, (name, rpm).
    pub fans: Vec<(String, u64)>,
}

/// Reads thermal zones and hwmon.
pub fn sensors(root: &dyn Root) -> Sensors {
    let mut found = Sensors::default();
    const THERMAL: &str = "sys/class/thermal";
    for zone in root.list(THERMAL).unwrap_or_default() {
        let path = format!("{THERMAL}/{zone}/temp");
        if !zone.starts_with("thermal_zone") {
            continue;
        }
        if let Some(milli) = number::<i64>(root, &path) {
            let name = label(root, &format!("{THERMAL}/{zone}/type")).unwrap_or_else(|| one_line(&zone));
            found.temperatures.push(Temperature { name, celsius: milli as f64 / 1e3, path });
        }
    }
    const HWMON: &str = "sys/class/hwmon";
    for chip in root.list(HWMON).unwrap_or_default() {
        let at = format!("{HWMON}/{chip}");
        let chip = label(root, &format!("{at}/name")).unwrap_or_else(|| one_line(&chip));
        for file in root.list(&at).unwrap_or_default() {
            let Some(channel) = file.strip_suffix("_input") else { continue };
            let path = format!("{at}/{file}");
            let Some(value) = number::<i64>(root, &path) else { continue };
            let label = label(root, &format!("{at}/{channel}_label")).unwrap_or_else(|| one_line(channel));
            let name = format!("{chip} {label}");
            match channel.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "temp" => found.temperatures.push(Temperature { name, celsius: value as f64 / 1e3, path }),
                "power" => {
                    found.power.push(Sensor { name, watts: Some(value as f64 / 1e6), joules: None, path })
                }
                "energy" => {
                    found.power.push(Sensor { name, watts: None, joules: Some(value as f64 / 1e6), path })
                }
                "fan" => found.fans.push((name, value.max(0) as u64)),
                _ => {}
            }
        }
    }
    found
}

/// A battery.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Battery {
    /// `BAT0`.
    pub name: String,
    /// `Discharging`, `Charging`, `Full`, `Not charging`.
    pub status: String,
    /// What is left, Wh. From charge and voltage where the battery counts charge.
    pub energy_wh: Option<f64>,
    /// What it holds when full, Wh.
    pub full_wh: Option<f64>,
    /// What it held when new, Wh.
    pub design_wh: Option<f64>,
    /// Drawn or charged now, W.
    pub power_w: Option<f64>,
    /// Percent.
    pub capacity_percent: Option<u32>,
}

/// Where the energy comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Supply {
    /// Whether mains power is there; none where no adapter is listed.
    pub mains: Option<bool>,
    /// The machine's batteries (not a mouse's).
    pub batteries: Vec<Battery>,
}

/// Reads batteries and adapters.
pub fn supply(root: &dyn Root) -> Supply {
    const AT: &str = "sys/class/power_supply";
    let mut supply = Supply::default();
    for name in root.list(AT).unwrap_or_default() {
        let at = format!("{AT}/{name}");
        let micro = |file: &str| number::<f64>(root, &format!("{at}/{file}")).map(|v| v / 1e6);
        match text(root, &format!("{at}/type")).as_deref() {
            Some("Mains" | "USB") => {
                let online = text(root, &format!("{at}/online")).is_some_and(|o| o != "0");
                supply.mains = Some(supply.mains.unwrap_or(false) || online);
            }
            Some("Battery") if text(root, &format!("{at}/scope")).as_deref() != Some("Device") => {
                let volts = micro("voltage_min_design").or_else(|| micro("voltage_now"));
                let charge = |file: &str| micro(file).zip(volts).map(|(ah, v)| ah * v);
                supply.batteries.push(Battery {
                    status: label(root, &format!("{at}/status")).unwrap_or_default(),
                    energy_wh: micro("energy_now").or_else(|| charge("charge_now")),
                    full_wh: micro("energy_full").or_else(|| charge("charge_full")),
                    design_wh: micro("energy_full_design").or_else(|| charge("charge_full_design")),
                    power_w: micro("power_now")
                        .or_else(|| micro("current_now").zip(micro("voltage_now")).map(|(a, v)| a * v)),
                    capacity_percent: number(root, &format!("{at}/capacity")),
                    name,
                });
            }
            _ => {}
        }
    }
    supply
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
