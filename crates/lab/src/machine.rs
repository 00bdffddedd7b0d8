//! From a machine model to vpower's parameters, so that kernel and model decide about the same hardware.

use crate::files::read;
use std::path::Path;
use wattwise_model::machine::{MachineModel, file};

/// `lab/machine.toml`.
pub(crate) fn lab(root: &Path) -> Result<MachineModel, String> {
    described(root, "machine")
}

/// A machine of the lab's folder.
pub(crate) fn described(root: &Path, name: &str) -> Result<MachineModel, String> {
    let path = root.join(format!("lab/{name}.toml"));
    let mut machine = file::parse(&read(&path)?, &path.display().to_string()).map_err(|e| e.to_string())?;
    // QEMU has no APERF and MPERF: the guest's load counts time.
    machine.load_invariant = false;
    // The guest's wake-ups take what they take, and the recordings contain it.
    for kind in &mut machine.kinds {
        for state in &mut kind.idle {
            state.entry_ns = 0;
            state.exit_ns.fill(0);
        }
    }
    Ok(machine)
}

/// Module parameters for `insmod vpower.ko`, for the first `cpus` CPUs.
pub(crate) fn vpower(machine: &MachineModel, cpus: usize) -> String {
    let kind = &machine.kinds[0];
    let list = |values: Vec<String>| values.join(",");
    let each = |f: fn(&wattwise_model::machine::SpeedLevel) -> u64| {
        list(kind.levels.iter().map(|l| f(l).to_string()).collect())
    };
    let idle = |f: fn(&wattwise_model::machine::CState) -> String| list(kind.idle.iter().map(f).collect());
    let domains = machine.domains.iter().filter_map(|d| {
        let ids = d.cores.iter().flat_map(|&c| machine.cores[usize::from(c)].cpus.iter());
        let ids: Vec<usize> = ids.map(|&c| usize::from(c)).filter(|&c| c < cpus).collect();
        // The machine's CPUs are numbered domain by domain.
        Some(format!("{}-{}", ids.iter().min()?, ids.iter().max()?))
    });
    format!(
        "khz={} busy_uw={} idle={} idle_latency_us={} idle_target_us={} idle_uw={} domains={} latency_ns={}",
        each(|l| u64::from(l.khz)),
        each(|l| (l.busy_w * 1e6) as u64),
        idle(|s| s.name.clone()),
        idle(|s| (s.latency_ns / 1000).to_string()),
        idle(|s| (s.target_ns / 1000).to_string()),
        idle(|s| ((s.watts[0] * 1e6) as u64).to_string()),
        list(domains.collect()),
        LATENCY_NS,
    )
}

/// What vpower's driver states for a change: some processors' ACPI table.
const LATENCY_NS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_machine_becomes_parameters() {
        let root = crate::repository().expect("a repository");
        let text = vpower(&lab(root).expect("a machine"), 4);
        assert!(
            text.starts_with("khz=2400000,2250000,1650000,1050000,650000,400000 busy_uw=8000000,"),
            "{text}"
        );
        assert!(text.contains(" idle=C1,C3,C6 idle_latency_us=2,80,200 idle_target_us=2,250,800 "), "{text}");
        assert!(text.contains(" domains=0-0,1-1,2-2,3-3 "), "{text}");
    }
}
