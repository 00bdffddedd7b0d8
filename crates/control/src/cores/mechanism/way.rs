//! What every way has: its kind, what it can be asked, what it notes for a later process.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use wattwise_hw::cpus::set::CpuSet;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MechanismKind {
    /// systemd confines its slices
    Slices,
    /// cgroup v2: an isolated cpuset partition of the CPUs that shall idle
    Partition,
    /// cgroup v1: a cpuset of the CPUs that are kept, with every movable task in it
    Group,
    /// A sched_ext scheduler that picks no CPU that shall idle (as long as a governor runs)
    Scheduler,
    /// CPUs are taken offline
    Hotplug,
}

impl MechanismKind {
    /// Every way.
    pub const ALL: [MechanismKind; 5] = [
        MechanismKind::Slices,
        MechanismKind::Partition,
        MechanismKind::Group,
        MechanismKind::Scheduler,
        MechanismKind::Hotplug,
    ];

    /// Its name on a command line.
    pub fn word(self) -> &'static str {
        match self {
            MechanismKind::Slices => "slices",
            MechanismKind::Partition => "partition",
            MechanismKind::Group => "group",
            MechanismKind::Scheduler => "scheduler",
            MechanismKind::Hotplug => "hotplug",
        }
    }

    /// What it does, in a line of help.
    pub fn help(self) -> &'static str {
        match self {
            MechanismKind::Slices => "systemd confines its slices",
            MechanismKind::Partition => "cgroup v2: an isolated cpuset partition of the CPUs that shall idle",
            MechanismKind::Group => {
                "cgroup v1: a cpuset of the CPUs that are kept, with every movable task in it"
            }
            MechanismKind::Scheduler => {
                "A sched_ext scheduler that picks no CPU that shall idle (as long as a governor runs)"
            }
            MechanismKind::Hotplug => "CPUs are taken offline",
        }
    }
}

impl std::fmt::Display for MechanismKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MechanismKind::Slices => "systemd's slices",
            MechanismKind::Partition => "cpuset partition (cgroup v2)",
            MechanismKind::Group => "cpuset group (cgroup v1)",
            MechanismKind::Scheduler => "sched_ext scheduler",
            MechanismKind::Hotplug => "hotplug",
        })
    }
}

/// What a change did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Tasks put into the group.
    pub moved: usize,
    /// Tasks that stay where they were pinned, or that the kernel does not let move.
    pub stayed: usize,
    /// CPU time of ours that looking for them and moving them took; told of the first time alone.
    pub cpu: Option<Duration>,
}

/// Keeps work on some CPUs.
pub trait Mechanism: Send {
    /// Which way.
    fn kind(&self) -> MechanismKind;
    /// Keeps work on these CPUs, from now on; called again to take up tasks that have come since.
    ///
    /// # Errors
    /// What the kernel refused, in one line.
    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem>;
    /// The CPUs that work is kept on now, as the kernel says.
    ///
    /// # Errors
    /// Our group is gone or cannot be read.
    fn kept(&self) -> Result<CpuSet, Problem>;
    /// Lets everything go. What could not be put back, one line each.
    fn release(&mut self) -> Vec<String>;
    /// What a later process has to know to put everything back.
    fn notes(&self) -> Notes {
        Notes::default()
    }
    /// Whether it outlives this process.
    fn lasts(&self) -> bool {
        true
    }
}

/// What has to be put back beside the mechanism's own group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The cpuset controller was handed down by us.
    pub enabled_controller: bool,
    /// Masks of systemd's units before, in systemd's form.
    pub allowed_cpus: BTreeMap<String, Vec<u8>>,
}
