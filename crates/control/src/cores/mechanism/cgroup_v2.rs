//! cgroup v2: an isolated cpuset partition of the CPUs that shall idle.

use crate::cores::mechanism::files::{cpus_in, failed, make, read, set, write};
use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved, Notes};
use crate::problem::Problem;
use std::path::PathBuf;
use wattwise_hw::cpus::set::CpuSet;

/// The idled CPUs as an isolated partition: every other cgroup loses them, and no task has to be moved.
pub(super) struct Partition {
    pub(super) parent: PathBuf,
    pub(super) group: PathBuf,
    pub(super) online: CpuSet,
    pub(super) enabled_controller: bool,
}

impl Partition {
    const STATE: &str = "cpuset.cpus.partition";

    fn hand_down(&mut self) -> Result<(), Problem> {
        let path = self.parent.join("cgroup.subtree_control");
        let now = read(&path).map_err(|e| failed(&path, &e))?;
        if now.split_ascii_whitespace().all(|c| c != "cpuset") {
            set(&path, "+cpuset")?;
            self.enabled_controller = true;
        }
        Ok(())
    }
}

impl Mechanism for Partition {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Partition
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        let idled = self.online.without(kept);
        let state = self.group.join(Self::STATE);
        if idled.is_empty() {
            // A partition of no CPU cannot be: an ordinary group of none takes nothing from anybody.
            if self.group.exists() {
                set(&state, "member")?;
            }
            return Ok(Moved::default());
        }
        self.hand_down()?;
        make(&self.group)?;
        set(&self.group.join("cpuset.cpus"), &idled.to_string())?;
        let valid = |now: &str| now == "isolated" || now == "root";
        if !read(&state).is_ok_and(|now| valid(&now)) {
            // `isolated` is since Linux 6.1.
            write(&state, "isolated").or_else(|_| write(&state, "root")).map_err(|e| failed(&state, &e))?;
        }
        let now = read(&state).map_err(|e| failed(&state, &e))?;
        if !valid(&now) {
            _ = write(&state, "member");
            return Err(Problem::Failed(format!(
                "CPUs {idled} cannot be taken out: the kernel calls the partition '{now}'"
            )));
        }
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        let state = read(&self.group.join(Self::STATE)).map_err(|e| failed(&self.group, &e))?;
        match state.as_str() {
            "isolated" | "root" => Ok(self.online.without(&cpus_in(&self.group.join("cpuset.cpus"))?)),
            _ => Ok(self.online.clone()),
        }
    }

    fn release(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        if self.group.exists() {
            let state = self.group.join(Self::STATE);
            left.extend(set(&state, "member").err().map(|e| e.to_string()));
            left.extend(std::fs::remove_dir(&self.group).err().map(|e| failed(&self.group, &e).to_string()));
        }
        if self.enabled_controller {
            // Others may use it by now: then it stays.
            _ = write(&self.parent.join("cgroup.subtree_control"), "-cpuset");
            self.enabled_controller = false;
        }
        left
    }

    fn notes(&self) -> Notes {
        Notes { enabled_controller: self.enabled_controller, ..Notes::default() }
    }
}
