//! Temperatures, power sensors, fans: by thermal zones and hwmon.
//!
//! Files: `Documentation/hwmon/sysfs-interface.rst` and `Documentation/driver-api/thermal/sysfs-api.rst`. A sensor that is
//! broken (`_fault`), switched off (`_enable`, a zone's `mode`) or shows what cannot be is set aside with its reason:
//! no reading of it goes further.

use crate::probe::why;
use crate::root::{Root, label, number};
use serde::Serialize;
use wattwise_figure::one_line;

const THERMAL: &str = "sys/class/thermal";
const HWMON: &str = "sys/class/hwmon";

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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sensor {
    /// Chip and label.
    pub name: String,
    /// Watts where it senses power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// The watts are a mean over some time, not those of this moment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub average: bool,
    /// Over how long they are, s, where the driver tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Joules where it counts energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// The file.
    pub path: String,
}

/// A sensor whose reading is not to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// Zone, or chip and label.
    pub name: String,
    /// Why: implausible with what the file shows, broken, switched off, unreadable.
    pub why: String,
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
    /// Those that are there and tell nothing that can be used.
    pub set_aside: Vec<SetAside>,
}

/// Degrees Celsius of a file in thousandths, where they can be.
///
/// Sensors of chips are made for -55 to 150 C (thermocouples of boards for a little more). Firmware that has no sensor
/// gives absolute zero (-273.2, -274 C), a bus that does not answer all ones.
pub fn celsius(milli: i64) -> Option<f64> {
    const PLAUSIBLE: std::ops::RangeInclusive<i64> = -70_000..=200_000;
    PLAUSIBLE.contains(&milli).then_some(milli as f64 / 1e3)
}

/// Watts of a file in millionths, where they can be: up to what a rack draws, and no register that reads as all ones.
fn watts(micro: i64) -> Option<f64> {
    const MOST_UW: i64 = 100_000_000_000;
    ((0..=MOST_UW).contains(&micro) && micro != i64::from(u32::MAX)).then_some(micro as f64 / 1e6)
}

/// Joules of a counter in millionths.
fn joules(micro: i64) -> Option<f64> {
    (micro >= 0).then_some(micro as f64 / 1e6)
}

/// Turns a minute of a fan, where they can be: small ones reach 30000, a controller without one gives 65535.
fn rpm(rpm: i64) -> Option<u64> {
    u64::try_from(rpm).ok().filter(|n| *n <= 50_000)
}

/// Reads thermal zones and hwmon.
pub fn sensors(root: &dyn Root) -> Sensors {
    let mut found = Sensors::default();
    let zones = root.list(THERMAL).unwrap_or_default();
    for zone in zones.iter().filter(|zone| zone.starts_with("thermal_zone")) {
        found.zone(root, zone);
    }
    for chip in root.list(HWMON).unwrap_or_default() {
        found.chip(root, &chip);
    }
    found
}

impl Sensors {
    fn set_aside(&mut self, name: String, path: String, why: impl Into<String>) {
        self.set_aside.push(SetAside { name, why: why.into(), path });
    }

    fn zone(&mut self, root: &dyn Root, zone: &str) {
        let at = format!("{THERMAL}/{zone}");
        let path = format!("{at}/temp");
        let name = label(root, &format!("{at}/type")).unwrap_or_else(|| one_line(zone));
        if label(root, &format!("{at}/mode")).is_some_and(|mode| mode == "disabled") {
            return self.set_aside(name, path, "disabled (the zone's mode)");
        }
        match reading(root, &path, celsius) {
            Ok(celsius) => self.temperatures.push(Temperature { name, celsius, path }),
            Err(why) => self.set_aside(name, path, why),
        }
    }

    fn chip(&mut self, root: &dyn Root, chip: &str) {
        let at = format!("{HWMON}/{chip}");
        let is_sensor = |file: &String| kind(file).is_some();
        let own: Vec<String> = root.list(&at).unwrap_or_default().into_iter().filter(is_sensor).collect();
        // Until Linux 3.14 many drivers put their files into the device's folder.
        let (at, files) = match own.is_empty() {
            false => (at, own),
            true => {
                let device = format!("{at}/device");
                let of_device = root.list(&device).unwrap_or_default();
                (device, of_device.into_iter().filter(is_sensor).collect())
            }
        };
        let names = [format!("{HWMON}/{chip}/name"), format!("{HWMON}/{chip}/device/name")];
        let chip = names.iter().find_map(|file| label(root, file)).unwrap_or_else(|| one_line(chip));
        for file in files {
            self.sensor(root, &at, &chip, &file);
        }
    }

    fn sensor(&mut self, root: &dyn Root, at: &str, chip: &str, file: &str) {
        let Some((channel, kind)) = kind(file) else { return };
        let path = format!("{at}/{file}");
        let beside = |what: &str| label(root, &format!("{at}/{channel}_{what}"));
        let label = beside("label").filter(|l| !l.is_empty()).unwrap_or_else(|| channel.to_owned());
        let name = format!("{chip} {label}");
        if beside("enable").is_some_and(|on| on == "0") {
            return self.set_aside(name, path, format!("disabled ({channel}_enable is 0)"));
        }
        if beside("fault").is_some_and(|fault| fault != "0") {
            return self.set_aside(name, path, format!("broken ({channel}_fault is set)"));
        }
        let put = match kind {
            SensorKind::Temperature => reading(root, &path, celsius).map(|celsius| {
                self.temperatures.push(Temperature { name: name.clone(), celsius, path: path.clone() })
            }),
            SensorKind::Power { average } => reading(root, &path, watts).map(|watts| {
                let interval = number::<f64>(root, &format!("{at}/{channel}_average_interval"));
                self.power.push(Sensor {
                    name: name.clone(),
                    watts: Some(watts),
                    average,
                    interval_s: interval.filter(|ms| average && *ms > 0.0).map(|ms| ms / 1e3),
                    path: path.clone(),
                    ..Sensor::default()
                });
            }),
            SensorKind::Energy => reading(root, &path, joules).map(|joules| {
                self.power.push(Sensor {
                    name: name.clone(),
                    joules: Some(joules),
                    path: path.clone(),
                    ..Sensor::default()
                });
            }),
            SensorKind::Fan => reading(root, &path, rpm).map(|rpm| self.fans.push((name.clone(), rpm))),
        };
        if let Err(why) = put {
            self.set_aside(name, path, why);
        }
    }
}

#[derive(Clone, Copy)]
enum SensorKind {
    Temperature,
    Power { average: bool },
    Energy,
    Fan,
}

/// What a file of a chip shows, with its channel: `power1` of `power1_average`.
fn kind(file: &str) -> Option<(&str, SensorKind)> {
    let (channel, what) = file.split_once('_')?;
    let stem = channel.trim_end_matches(|c: char| c.is_ascii_digit());
    let kind = match (stem, what) {
        ("temp", "input") => SensorKind::Temperature,
        ("power", "input") => SensorKind::Power { average: false },
        ("power", "average") => SensorKind::Power { average: true },
        ("energy", "input") => SensorKind::Energy,
        ("fan", "input") => SensorKind::Fan,
        _ => return None,
    };
    Some((channel, kind))
}

/// What a file holds, or why it is of no use.
fn reading<T>(root: &dyn Root, path: &str, plausible: impl Fn(i64) -> Option<T>) -> Result<T, String> {
    let bytes = root.read(path).map_err(|e| format!("cannot be read: {}", why(&e, path, root)))?;
    let shown = String::from_utf8_lossy(&bytes).trim().to_owned();
    let value = shown.parse().ok().and_then(plausible);
    value.ok_or_else(|| {
        format!("implausible (the file holds '{}')", shown.chars().take(24).collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    fn machine(files: &[(&str, &str)]) -> Sensors {
        let mut tree = Tree::default();
        for (path, content) in files {
            tree.files.insert(format!("sys/class/{path}"), format!("{content}\n").into_bytes());
        }
        sensors(&TreeRoot::new(tree, "test"))
    }

    /// The reason for which a machine's one sensor is set aside.
    fn set_aside(files: &[(&str, &str)]) -> String {
        let found = machine(files);
        assert!(
            found.temperatures.is_empty() && found.power.is_empty() && found.fans.is_empty(),
            "{found:?}"
        );
        assert_eq!(found.set_aside.len(), 1, "{found:?}");
        found.set_aside[0].why.clone()
    }

    #[test]
    fn what_cannot_be_is_called_implausible() {
        // thermald 550: absolute zero of a firmware; of a radio; 3.9 million degrees of a Super-IO chip.
        for milli in
            ["-273200", "-274000", "3892314000", "-128000", "255000", "18446744073709551615", "n/a", ""]
        {
            for file in ["thermal/thermal_zone0/temp", "hwmon/hwmon0/temp1_input"] {
                let why = set_aside(&[(file, milli)]);
                assert!(why.starts_with("implausible") && why.contains(milli), "{file} {milli}: {why}");
            }
        }
        for micro in ["-1", "4294967295", "9223372036854775807"] {
            assert!(set_aside(&[("hwmon/hwmon0/power1_input", micro)]).starts_with("implausible"), "{micro}");
        }
        assert!(set_aside(&[("hwmon/hwmon0/fan1_input", "65535")]).starts_with("implausible"));
        // A cold store and a hot chip can be.
        for milli in ["-30000", "0", "120000"] {
            assert_eq!(machine(&[("hwmon/hwmon0/temp1_input", milli)]).temperatures.len(), 1, "{milli}");
        }
    }

    #[test]
    fn what_is_broken_or_off_is_no_reading() {
        for (file, beside, value, word) in [
            ("hwmon/h/temp3_input", "hwmon/h/temp3_fault", "1", "broken"),
            ("hwmon/h/fan1_input", "hwmon/h/fan1_fault", "1", "broken"),
            ("hwmon/h/temp3_input", "hwmon/h/temp3_enable", "0", "disabled"),
            ("hwmon/h/power1_average", "hwmon/h/power1_enable", "0", "disabled"),
            ("hwmon/h/energy1_input", "hwmon/h/energy1_enable", "0", "disabled"),
            ("thermal/thermal_zone3/temp", "thermal/thermal_zone3/mode", "disabled", "disabled"),
        ] {
            assert!(set_aside(&[(file, "20000"), (beside, value)]).starts_with(word), "{beside}");
        }
        let well = machine(&[
            ("hwmon/h/temp3_input", "20000"),
            ("hwmon/h/temp3_fault", "0"),
            ("hwmon/h/temp3_enable", "1"),
            ("thermal/thermal_zone3/temp", "20000"),
            ("thermal/thermal_zone3/mode", "enabled"),
        ]);
        assert_eq!((well.temperatures.len(), well.set_aside.len()), (2, 0));
    }

    #[test]
    fn power_that_is_a_mean_is_shown_as_one() {
        // nvtop 244: amdgpu; the ACPI power meter with its interval of 1 s.
        let found = machine(&[
            ("hwmon/hwmon3/name", "amdgpu"),
            ("hwmon/hwmon3/power1_average", "23000000"),
            ("hwmon/hwmon3/power1_label", "PPT"),
            ("hwmon/hwmon4/name", "power_meter"),
            ("hwmon/hwmon4/power1_average", "184000000"),
            ("hwmon/hwmon4/power1_average_interval", "1000"),
            ("hwmon/hwmon5/power1_input", "5000000"),
            ("hwmon/hwmon5/power1_average", "4000000"),
        ]);
        let of = |s: &Sensor| (s.name.clone(), s.watts, s.average, s.interval_s);
        assert_eq!(
            found.power.iter().map(of).collect::<Vec<_>>(),
            [
                ("amdgpu PPT".to_owned(), Some(23.0), true, None),
                ("power_meter power1".to_owned(), Some(184.0), true, Some(1.0)),
                ("hwmon5 power1".to_owned(), Some(4.0), true, None),
                ("hwmon5 power1".to_owned(), Some(5.0), false, None),
            ]
        );
    }

    #[test]
    fn chips_of_old_kernels_keep_their_files_with_the_device() {
        let found = machine(&[
            ("hwmon/hwmon0/device/name", "k10temp"),
            ("hwmon/hwmon0/device/temp1_input", "43000"),
            // The device's folder of a chip that has its own files is not its own.
            ("hwmon/hwmon1/name", "nvme"),
            ("hwmon/hwmon1/temp1_input", "40000"),
            ("hwmon/hwmon1/device/temp1_input", "40000"),
        ]);
        let names: Vec<_> = found.temperatures.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["k10temp temp1", "nvme temp1"]);
    }
}
