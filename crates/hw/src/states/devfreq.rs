//! The clock of the memory, where the kernel sets it: memory controllers under devfreq.
//!
//! Rockchip's kernels have `dmc`, with the governor's thresholds beside it; mainline has `*.memory-controller` (Exynos, i.MX, RK3399) and
//! `*.dram-controller` (Allwinner). Other devices of devfreq, such as a GPU, are none of these.

use crate::probe::{Mechanism, Probed};
use crate::root::{Root, number, text};
use serde::Serialize;

/// A memory controller whose clock the kernel sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryController {
    /// `dmc`, `10c20000.memory-controller`.
    pub name: String,
    /// Folder below the root.
    pub path: String,
    /// The governor in force.
    pub governor: Option<String>,
    /// Those that the kernel has.
    pub governors: Vec<String>,
    /// Its clocks, kHz, slowest first.
    pub clocks_khz: Vec<u64>,
    /// Now, kHz.
    pub current_khz: Option<u64>,
    /// Load above which the highest clock is taken, percent, where the driver shows it.
    pub up_percent: Option<u32>,
    /// How far below that the load must be before the clock falls, percent.
    pub down_percent: Option<u32>,
    /// Between two looks of the governor, ms.
    pub polling_ms: Option<u32>,
}

const AT: &str = "sys/class/devfreq";

/// What a memory controller's name has in it.
const NAMES: [&str; 3] = ["dmc", "memory-controller", "dram-controller"];

/// The memory controllers, or why there are none.
pub fn memory_controllers(root: &dyn Root) -> Probed<Vec<MemoryController>> {
    let is_memory = |name: &String| NAMES.iter().any(|part| name.contains(part));
    let names = root.list(AT).unwrap_or_default().into_iter().filter(is_memory);
    // Without a governor to choose there is nothing to set.
    let found = names.map(|name| read(root, name)).filter(|memory| !memory.governors.is_empty());
    let found: Vec<MemoryController> = found.collect();
    match found.is_empty() {
        true => Probed::no(
            Mechanism::Sysfs,
            "no memory controller in /sys/class/devfreq: the kernel does not set the memory's clock",
        ),
        false => Probed::yes(found, Mechanism::Sysfs),
    }
}

fn read(root: &dyn Root, name: String) -> MemoryController {
    let path = format!("{AT}/{name}");
    let words = |file: &str| -> Vec<String> {
        let text = text(root, &format!("{path}/{file}")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let khz = |hz: u64| hz / 1000;
    let mut clocks_khz: Vec<u64> =
        words("available_frequencies").iter().filter_map(|hz| hz.parse().ok()).map(khz).collect();
    clocks_khz.sort_unstable();
    clocks_khz.dedup();
    MemoryController {
        governor: words("governor").into_iter().next(),
        governors: words("available_governors"),
        clocks_khz,
        current_khz: number(root, &format!("{path}/cur_freq")).map(khz),
        up_percent: number(root, &format!("{path}/upthreshold")),
        down_percent: number(root, &format!("{path}/downdifferential")),
        polling_ms: number(root, &format!("{path}/polling_interval")),
        name,
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::DirRoot;

    #[test]
    fn a_board_s_memory_controller_is_read_and_its_gpu_is_none() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for (device, file, value) in [
            ("dmc", "governor", "dmc_ondemand\n"),
            ("dmc", "available_governors", "dmc_ondemand userspace powersave performance simple_ondemand\n"),
            ("dmc", "available_frequencies", "2112000000 528000000 1068000000 1560000000\n"),
            ("dmc", "cur_freq", "528000000\n"),
            ("dmc", "upthreshold", "40\n"),
            ("dmc", "downdifferential", "20\n"),
            ("fb000000.gpu", "governor", "simple_ondemand\n"),
            ("soc:qcom,cpu-llcc-ddr-bw", "available_governors", "bw_hwmon performance\n"),
            ("empty-dmc", "cur_freq", "1\n"),
        ] {
            let at = folder.path().join(AT).join(device);
            std::fs::create_dir_all(&at)?;
            std::fs::write(at.join(file), value)?;
        }
        let found = memory_controllers(&DirRoot::new(folder.path())).value.unwrap_or_default();
        let [memory] = &found[..] else { panic!("one: {found:?}") };
        assert_eq!(memory.governor.as_deref(), Some("dmc_ondemand"));
        assert_eq!(memory.governors.len(), 5);
        assert_eq!(memory.clocks_khz, [528_000, 1_068_000, 1_560_000, 2_112_000]);
        assert_eq!(
            (memory.current_khz, memory.up_percent, memory.down_percent),
            (Some(528_000), Some(40), Some(20))
        );
        assert_eq!(memory.polling_ms, None);
        Ok(())
    }

    #[test]
    fn a_machine_without_one_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = memory_controllers(&DirRoot::new(folder.path()));
        assert!(found.value.is_none() && found.why_not().contains("/sys/class/devfreq"), "{found:?}");
    }
}
