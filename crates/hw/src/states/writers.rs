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

/// (unit without `.service`, name, marker below `/run`, what it writes, how to pause it).
const KNOWN: [(&str, &str, &str, &str, &str); 9] = [
    (
        "tlp",
        "TLP",
        "run/tlp",
        "governor, EPP, limits and boost at each change of the power source",
        "tlp's config, or 'systemctl stop tlp'",
    ),
    (
        "tuned",
        "TuneD",
        "run/tuned",
        "governor, EPP, EPB, limits and latency by profile",
        "'tuned-adm off' or 'systemctl stop tuned'",
    ),
    (
        "tuned-ppd",
        "TuneD (ppd)",
        "run/tuned-ppd",
        "profiles asked for by the desktop",
        "'systemctl stop tuned-ppd'",
    ),
    (
        "power-profiles-daemon",
        "power-profiles-daemon",
        "",
        "EPP, boost and the platform profile",
        "'systemctl stop power-profiles-daemon'",
    ),
    (
        "auto-cpufreq",
        "auto-cpufreq",
        "run/auto-cpufreq.pid",
        "governor, boost, EPP and limits every few seconds",
        "'systemctl stop auto-cpufreq'",
    ),
    (
        "thermald",
        "thermald",
        "run/thermald",
        "power limits and the highest speed when hot",
        "'systemctl stop thermald'",
    ),
    (
        "cpufreqd",
        "cpufreqd",
        "run/cpufreqd.pid",
        "governor and limits by its rules",
        "'systemctl stop cpufreqd'",
    ),
    (
        "intel_lpmd",
        "intel-lpmd",
        "run/intel_lpmd",
        "which CPUs may run, EPP and EPB",
        "'systemctl stop intel_lpmd'",
    ),
    (
        "laptop-mode",
        "laptop-mode-tools",
        "run/laptop-mode-tools",
        "governor and limits by the power source",
        "'systemctl stop laptop-mode'",
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
        .into_iter()
        .filter_map(|(unit, name, marker, writes, pause)| {
            let service = format!("{unit}.service");
            let seen = match () {
                () if units.contains(&service) => format!("{service} is running"),
                () if !marker.is_empty() && exists(root, marker) => format!("/{marker} is there"),
                () => return None,
            };
            Some(Writer { name, writes, pause, seen })
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
