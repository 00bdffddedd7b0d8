//! What conditions are about, read from a machine. What no condition asks for is not read: a battery's gauge costs an
//! interrupt of the firmware (auto-cpufreq 904: 3 to 4 % of a CPU).

use std::collections::BTreeSet;
use wattwise_hw::cpus::proc_stat::{Stat, StatFile};
use wattwise_hw::root::{Root, text};
use wattwise_hw::states::sensors::sensors;
use wattwise_hw::states::supply::{SupplySource, supply};

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// What feeds the machine.
    pub source: SupplySource,
    /// Why that is known.
    pub source_why: String,
    /// Charge of the fullest battery, percent.
    pub charge_percent: Option<u32>,
    /// The hottest of the CPU's sensors, in degrees Celsius.
    pub celsius: Option<f64>,
    /// Share of the time since the last look that CPUs were busy.
    pub busy: Option<f64>,
    /// Minute of the day.
    pub minute: u16,
    /// Those of the asked programs that run.
    pub programs: BTreeSet<String>,
}

/// What is to be read.
#[derive(Debug, Clone, Default)]
pub struct Needs<'a> {
    /// Heat.
    pub heat: bool,
    /// Load.
    pub load: bool,
    /// Programs by name.
    pub programs: Vec<&'a str>,
    /// Minute of the day, from whoever has a clock.
    pub minute: u16,
}

/// Reads a machine, again and again.
#[derive(Default)]
pub struct FactWatch {
    stat: Option<StatFile>,
    then: Option<Stat>,
}

/// Sensors of other things: drives, radios, batteries.
const NOT_THE_CPUS: [&str; 5] = ["nvme", "iwlwifi", "BAT", "drivetemp", "amdgpu"];

impl FactWatch {
    /// Looks.
    pub fn look(&mut self, root: &dyn Root, needs: &Needs<'_>) -> Facts {
        let supply = supply(root);
        let heat = || {
            let found = sensors(root).temperatures;
            let of_cpu = found.into_iter().filter(|t| !NOT_THE_CPUS.iter().any(|n| t.name.contains(n)));
            of_cpu.map(|t| t.celsius).max_by(f64::total_cmp)
        };
        Facts {
            source: supply.source,
            source_why: supply.why.clone(),
            charge_percent: supply.batteries.iter().filter_map(|b| b.capacity_percent).max(),
            celsius: needs.heat.then(heat).flatten(),
            busy: if needs.load { self.busy(root) } else { None },
            minute: needs.minute,
            programs: running(root, &needs.programs),
        }
    }

    fn busy(&mut self, root: &dyn Root) -> Option<f64> {
        if self.stat.is_none() {
            self.stat = StatFile::open(root).ok();
        }
        let now = self.stat.as_mut()?.look().ok()?;
        let then = self.then.replace(now.clone())?;
        let (mut busy, mut all) = (0, 0);
        for passed in now.since(&then) {
            busy += passed.busy;
            all += passed.busy + passed.idle + passed.iowait;
        }
        (all > 0).then(|| busy as f64 / all as f64)
    }
}

/// Which of some programs run. The kernel keeps 15 bytes of a name.
fn running(root: &dyn Root, names: &[&str]) -> BTreeSet<String> {
    const KEPT: usize = 15;
    let mut found = BTreeSet::new();
    if names.is_empty() {
        return found;
    }
    let cut = |name: &str| name.as_bytes()[..name.len().min(KEPT)].to_vec();
    for process in root.list("proc").unwrap_or_default() {
        if !process.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let Some(comm) = text(root, &format!("proc/{process}/comm")) else { continue };
        found.extend(names.iter().filter(|n| cut(n) == comm.as_bytes()).map(|n| (*n).to_owned()));
    }
    found
}
