//! What the whole machine does when it rests, and the graphics beside the cores: low-power idle (S0ix), C1 demotion, RC6.
//!
//! Files as in Linux 6.16: `Documentation/ABI/testing/sysfs-devices-system-cpu` (low-power idle, C1 demotion),
//! `drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c` and `drivers/gpu/drm/xe/xe_gt_idle.c`, `xe_gt_freq.c` (graphics).

use crate::root::{Root, number};
use serde::Serialize;

const CPUIDLE: &str = "sys/devices/system/cpu/cpuidle";

/// The deepest rest of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SystemIdle {
    /// Time since the start in which all cores and what hangs on them were off (package C10), us.
    pub cpu_residency_us: Option<u64>,
    /// Time since the start in which the whole machine was (S0ix), us.
    pub system_residency_us: Option<u64>,
    /// Whether the processor makes C1 of deeper requests that did not pay.
    pub c1_demotion: Option<bool>,
}

/// Reads it; what the kernel does not tell is none.
pub fn system_idle(root: &dyn Root) -> SystemIdle {
    let value = |file: &str| number::<u64>(root, &format!("{CPUIDLE}/{file}"));
    SystemIdle {
        cpu_residency_us: value("low_power_idle_cpu_residency_us"),
        system_residency_us: value("low_power_idle_system_residency_us"),
        c1_demotion: value("intel_c1_demotion").map(|on| on != 0),
    }
}

/// One graphics tile's clock and rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graphics {
    /// `card0 gt0`.
    pub name: String,
    /// Folder below the root.
    pub path: String,
    /// Range in force, MHz.
    pub limits_mhz: Option<(u32, u32)>,
    /// As asked for, MHz.
    pub wanted_mhz: Option<u32>,
    /// As it runs, MHz; 0 while it rests.
    pub current_mhz: Option<u32>,
    /// Time since the start in its deepest state (RC6, GT-C6), ms.
    pub idle_ms: Option<u64>,
}

/// The graphics whose drivers tell of their power: i915 and xe.
pub fn graphics(root: &dyn Root) -> Vec<Graphics> {
    const AT: &str = "sys/class/drm";
    let list = |path: &str| root.list(path).unwrap_or_default();
    let numbered = |name: &str, what: &str| {
        name.strip_prefix(what).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut all = Vec::new();
    for card in list(AT).into_iter().filter(|name| numbered(name, "card")) {
        let at = format!("{AT}/{card}");
        let before = all.len();
        for gt in list(&format!("{at}/gt")).into_iter().filter(|name| numbered(name, "gt")) {
            let gt_at = format!("{at}/gt/{gt}");
            all.extend(one(root, format!("{card} {gt}"), &gt_at, &RPS, "rc6_residency_ms"));
        }
        for tile in list(&format!("{at}/device")).into_iter().filter(|name| numbered(name, "tile")) {
            let tile_at = format!("{at}/device/{tile}");
            for gt in list(&tile_at).into_iter().filter(|name| numbered(name, "gt")) {
                let gt_at = format!("{tile_at}/{gt}");
                all.extend(one(root, format!("{card} {tile} {gt}"), &gt_at, &XE, "gtidle/idle_residency_ms"));
            }
        }
        if all.len() == before {
            // i915 before Linux 5.18.
            all.extend(one(root, card.clone(), &at, &OLD, "power/rc6_residency_ms"));
        }
    }
    all
}

/// Names of lowest, highest, wanted and running clock.
type Clocks = [&'static str; 4];
const RPS: Clocks = ["rps_min_freq_mhz", "rps_max_freq_mhz", "rps_cur_freq_mhz", "rps_act_freq_mhz"];
const XE: Clocks = ["freq0/min_freq", "freq0/max_freq", "freq0/cur_freq", "freq0/act_freq"];
const OLD: Clocks = ["gt_min_freq_mhz", "gt_max_freq_mhz", "gt_cur_freq_mhz", "gt_act_freq_mhz"];

/// None where the driver tells nothing.
fn one(root: &dyn Root, name: String, path: &str, clocks: &Clocks, idle: &str) -> Option<Graphics> {
    let mhz = |file: &str| number::<u32>(root, &format!("{path}/{file}"));
    let [least, most, wanted, current] = clocks.map(mhz);
    let idle_ms = number(root, &format!("{path}/{idle}"));
    let known = current.is_some() || wanted.is_some() || idle_ms.is_some();
    known.then(|| Graphics {
        name,
        path: path.to_owned(),
        limits_mhz: least.zip(most),
        wanted_mhz: wanted,
        current_mhz: current,
        idle_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    fn root(files: &[(&str, &str)]) -> TreeRoot {
        let mut tree = Tree::default();
        for (path, content) in files {
            tree.files.insert((*path).to_owned(), format!("{content}\n").into_bytes());
        }
        TreeRoot::new(tree, "test")
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_not_made_up() {
        let nothing =
            root(&[("sys/class/drm/card0-eDP-1/status", "connected"), ("sys/class/drm/card1/dev", "226:1")]);
        assert_eq!(system_idle(&nothing), SystemIdle::default());
        assert!(graphics(&nothing).is_empty());
    }

    #[test]
    fn low_power_idle_and_demotion() {
        let idle = system_idle(&root(&[
            ("sys/devices/system/cpu/cpuidle/low_power_idle_cpu_residency_us", "7000000"),
            ("sys/devices/system/cpu/cpuidle/low_power_idle_system_residency_us", "0"),
            ("sys/devices/system/cpu/cpuidle/intel_c1_demotion", "1"),
        ]));
        let all = (idle.cpu_residency_us, idle.system_residency_us, idle.c1_demotion);
        assert_eq!(all, (Some(7_000_000), Some(0), Some(true)));
    }

    #[test]
    fn graphics_of_every_driver() {
        let all = graphics(&root(&[
            // Old i915, new i915 with the old names beside the new, xe with two tiles.
            ("sys/class/drm/card0/gt_cur_freq_mhz", "350"),
            ("sys/class/drm/card0/gt_min_freq_mhz", "100"),
            ("sys/class/drm/card0/gt_max_freq_mhz", "1300"),
            ("sys/class/drm/card0/power/rc6_residency_ms", "5"),
            ("sys/class/drm/card1/gt_cur_freq_mhz", "300"),
            ("sys/class/drm/card1/gt/gt0/rps_act_freq_mhz", "0"),
            ("sys/class/drm/card1/gt/gt0/rc6_residency_ms", "90000"),
            ("sys/class/drm/card2/device/tile0/gt0/freq0/act_freq", "800"),
            ("sys/class/drm/card2/device/tile1/gt1/gtidle/idle_residency_ms", "3"),
        ]));
        let told: Vec<_> =
            all.iter().map(|g| (g.name.as_str(), g.limits_mhz, g.current_mhz, g.idle_ms)).collect();
        assert_eq!(
            told,
            [
                ("card0", Some((100, 1300)), None, Some(5)),
                ("card1 gt0", None, Some(0), Some(90000)),
                ("card2 tile0 gt0", None, Some(800), None),
                ("card2 tile1 gt1", None, None, Some(3)),
            ]
        );
    }
}
