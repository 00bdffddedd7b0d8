//! Core idling on the live machine: work is kept on few CPUs so that the others sleep deeply.
//!
//! ```text
//! policy (wattwise-policy::cores)      how many CPUs
//!   governor     /proc/stat, waits -> policy -> a mask
//!   waits        /proc/pressure/cpu, /proc/schedstat
//!   mechanism    mask -> kernel        partition (cgroup v2), group (cgroup v1), hotplug
//!   steer        mask -> interrupts, unbound kernel work
//!   held         what is in force, who holds it, what a killed one left
//! ```
//!
//! **Pinned tasks stay what they are.** A task whose affinity leaves a CPU out was placed by somebody who meant it:
//! the group mechanism does not touch it, and `status` lists those that run outside the mask. How each mechanism
//! treats them is in its own head.
//!
//! **Nothing outlives its reason.** A governor releases everything when it ends, by whatever signal but one; after
//! SIGKILL the next `coreidle`, `run` or `restore` finds its [mask](held) without an owner and releases for it.

pub mod held;
pub mod hold;
pub mod mechanism;
pub mod steer;
pub mod tasks;

pub use crate::problem::Problem;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::cpus::topology::Topology;

/// A mask as it may be put in force: not empty, of CPUs that are online.
///
/// # Errors
/// [`Problem::Input`] that names the CPUs in question; [`Problem::Impossible`] for CPUs that the machine does not have.
pub fn check_mask(kept: &CpuSet, topology: &Topology) -> Result<(), Problem> {
    let online = &topology.online;
    if kept.is_empty() {
        return Err(Problem::Input(format!("no CPU would be kept; expected at least one of {online}")));
    }
    let missing = kept.without(&topology.present);
    if !missing.is_empty() {
        return Err(Problem::Impossible(format!(
            "this machine has no CPU {missing}; expected CPUs of {online}"
        )));
    }
    let offline = kept.without(online);
    if !offline.is_empty() {
        return Err(Problem::Input(format!(
            "CPU {offline} is offline; expected CPUs of {online}, or 'wattwise set --cpus {offline} --online on' first"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_that_cannot_be() {
        let set = |t: &str| CpuSet::parse(t).expect("a list");
        let topology = Topology { present: set("0-3"), online: set("0-2"), ..Topology::default() };
        let why = |t: &str| check_mask(&set(t), &topology).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(why("0-2"), "");
        assert!(why("").contains("at least one of 0-2"));
        assert!(why("0,7").contains("no CPU 7"));
        assert!(why("2-3").contains("CPU 3 is offline"));
    }
}
