//! Other programs that write the same settings.
//!
//! A value that is not what we set a moment ago has a writer. We cannot see who wrote, but we can say who
//! on this machine is in that business.

use crate::root::{Root, exists};
use serde::Serialize;

/// A program that sets power states by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Writer {
    /// Its usual name.
    pub name: &'static str,
    /// What it writes.
    pub writes: &'static str,
    /// How to make it stop for a while.
    pub pause: &'static str,
    /// How we know that it is there.
    pub seen: String,
}

/// One that we know. To add one: a row.
struct KnownWriter {
    /// Its usual name.
    name: &'static str,
    /// Its systemd units, without `.service`: distributions name some differently.
    units: &'static [&'static str],
    /// What it leaves below the root while it runs; empty where nothing.
    marker: &'static str,
    writes: &'static str,
    pause: &'static str,
}

/// A row whose program is paused by stopping its first unit.
macro_rules! known {
    ($name:literal, [$unit:literal $(, $more:literal)*], $marker:literal, $writes:literal) => {
        known!($name, [$unit $(, $more)*], $marker, $writes, concat!("'systemctl stop ", $unit, "'"))
    };
    ($name:literal, [$($unit:literal),*], $marker:literal, $writes:literal, $pause:expr) => {
        KnownWriter { name: $name, units: &[$($unit),*], marker: $marker, writes: $writes, pause: $pause }
    };
}

/// The table, by name.
const KNOWN: &[KnownWriter] = &[
    known!(
        "asusd",
        ["asusd"],
        "",
        "the platform profile, EPP and boost, and the charge's limit, of ASUS notebooks",
        "'asusctl profile' or 'systemctl stop asusd'"
    ),
    known!(
        "auto-cpufreq",
        ["auto-cpufreq", "snap.auto-cpufreq.service"],
        "run/auto-cpufreq.pid",
        "governor, boost, EPP and limits every few seconds"
    ),
    known!("cpufreqd", ["cpufreqd"], "run/cpufreqd.pid", "governor and limits by its rules"),
    known!(
        "cpupower-gui",
        ["cpupower-gui", "cpupower-gui-helper"],
        "",
        "governor, EPP and limits by its profiles"
    ),
    known!("Handheld Daemon", ["hhd", "hhd-local"], "", "power limits, EPP and boost of handhelds"),
    known!("intel-lpmd", ["intel_lpmd"], "run/intel_lpmd", "which CPUs may run, EPP and EPB"),
    known!(
        "intel-undervolt",
        ["intel-undervolt", "intel-undervolt-loop"],
        "",
        "power limits and EPP, every few seconds"
    ),
    known!(
        "laptop-mode-tools",
        ["laptop-mode"],
        "run/laptop-mode-tools",
        "governor and limits by the power source"
    ),
    known!("power-profiles-daemon", ["power-profiles-daemon"], "", "EPP, boost and the platform profile"),
    known!("scx_loader", ["scx_loader", "scx"], "", "the scheduler by the power profile"),
    known!(
        "Slimbook",
        ["slimbook-service", "slimbookbattery", "slimbookamdcontroller", "slimbookintelcontroller"],
        "",
        "power limits, governor and TLP's settings by its modes"
    ),
    known!("SteamOS manager", ["steamos-manager"], "", "power limits and governor of handhelds"),
    known!(
        "System76 power",
        ["system76-power", "com.system76.PowerDaemon"],
        "",
        "governor, limits, turbo and the platform profile by its profiles",
        "'systemctl stop system76-power' (com.system76.PowerDaemon on some)"
    ),
    known!("thermald", ["thermald"], "run/thermald", "power limits and the highest speed when hot"),
    known!(
        "throttled",
        ["throttled", "lenovo_fix"],
        "",
        "power limits by registers and by memory, every few seconds"
    ),
    known!(
        "TLP",
        ["tlp", "tlp-pd"],
        "run/tlp",
        "governor, EPP, limits and boost at each change of the power source",
        "tlp's config, or 'systemctl stop tlp'"
    ),
    known!(
        "TuneD",
        ["tuned"],
        "run/tuned",
        "governor, EPP, EPB, limits and latency by profile",
        "'tuned-adm off' or 'systemctl stop tuned'"
    ),
    known!("TuneD (ppd)", ["tuned-ppd"], "run/tuned-ppd", "profiles asked for by the desktop"),
    known!(
        "TUXEDO Control Center",
        ["tccd"],
        "",
        "governor, limits, turbo and online CPUs by its profiles, every few seconds"
    ),
    known!(
        "watt",
        ["watt", "superfreq"],
        "",
        "governor, EPP, limits and boost by its rules, every few seconds"
    ),
];

/// Those that are running here, or that have left their mark since the start.
pub fn running(root: &dyn Root) -> Vec<Writer> {
    // A service that runs has a control group; names are enough, no process is looked into.
    let mut units: Vec<String> = Vec::new();
    for slice in ["sys/fs/cgroup/system.slice", "sys/fs/cgroup/systemd/system.slice"] {
        units.extend(root.list(slice).unwrap_or_default());
    }
    KNOWN
        .iter()
        .filter_map(|known| {
            let running =
                known.units.iter().map(|unit| format!("{unit}.service")).find(|s| units.contains(s));
            let seen = match running {
                Some(service) => format!("{service} is running"),
                None if !known.marker.is_empty() && exists(root, known.marker) => {
                    format!("/{} is there", known.marker)
                }
                None => return None,
            };
            Some(Writer { name: known.name, writes: known.writes, pause: known.pause, seen })
        })
        .collect()
}

/// For a value that is not what was set.
pub fn suspects(root: &dyn Root) -> String {
    let running = running(root);
    match running.is_empty() {
        true => "none of the programs that we know to write it is running; the driver or the firmware may be"
            .to_owned(),
        false => {
            let names: Vec<String> = running
                .iter()
                .map(|w| format!("{} ({}; pause it with {})", w.name, w.seen, w.pause))
                .collect();
            format!("who may write it here: {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    #[test]
    fn each_is_seen_by_its_unit_and_none_without() {
        for (unit, name) in [
            ("tccd", "TUXEDO Control Center"),
            ("asusd", "asusd"),
            ("system76-power", "System76 power"),
            ("com.system76.PowerDaemon", "System76 power"),
            ("watt", "watt"),
            ("slimbookbattery", "Slimbook"),
            ("tlp", "TLP"),
            ("power-profiles-daemon", "power-profiles-daemon"),
        ] {
            let mut tree = Tree::default();
            let group = format!("sys/fs/cgroup/system.slice/{unit}.service/cgroup.procs");
            tree.files.insert(group, b"1\n".to_vec());
            let root = TreeRoot::new(tree, "test");
            let found = running(&root);
            assert_eq!(found.iter().map(|w| w.name).collect::<Vec<_>>(), [name], "{unit}");
            assert!(suspects(&root).contains(name) && found[0].seen.contains(unit));
        }
        assert!(running(&TreeRoot::new(Tree::default(), "test")).is_empty());
    }

    #[test]
    fn no_unit_is_in_two_rows() {
        let mut units: Vec<&str> = KNOWN.iter().flat_map(|k| k.units).copied().collect();
        let all = units.len();
        units.sort_unstable();
        units.dedup();
        assert_eq!(units.len(), all);
    }
}
