//! cgroup v1: a cpuset of the CPUs that are kept.

use crate::cores::mechanism::files::{cpus_in, failed, make, own_cpu, read, set, write};
use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved};
use crate::cores::tasks::may_run_on_all;
use crate::problem::Problem;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use wattwise_hw::cpus::set::CpuSet;

/// The kept CPUs as a cpuset, and every movable task in it.
pub(super) struct CpusetGroup {
    pub(super) parent: PathBuf,
    pub(super) group: PathBuf,
    pub(super) online: CpuSet,
    /// Tasks that stay: asked about once, not at every look.
    pub(super) immovable: BTreeSet<u32>,
    pub(super) looks: u32,
    /// Pinned tasks are taken along.
    pub(super) pinned_too: bool,
}

impl CpusetGroup {
    /// Numbers of tasks end and are given again: what is known of them is forgotten now and then.
    const FORGET: u32 = 100;

    /// Puts into the group whatever is beside it and was not pinned by somebody, until nothing comes to be there: a task
    /// may fork between the look that found it and its move, and the child stays beside.
    fn gather(&mut self) -> Result<Moved, Problem> {
        /// Two, as a rule. A fork bomb is left to the next look.
        const ROUNDS: usize = 10;
        self.looks += 1;
        if self.looks.is_multiple_of(Self::FORGET) {
            self.immovable.clear();
        }
        let into = self.group.join("tasks");
        let mut door = OpenOptions::new().write(true).open(&into).map_err(|e| failed(&into, &e))?;
        let allowed = cpus_in(&self.parent.join("cpuset.cpus"))?.and(&self.online);
        let mut put = BTreeSet::new();
        let mut stayed = 0;
        for _ in 0..ROUNDS {
            let before = put.len();
            stayed = self.gather_once(&mut door, &allowed, &mut put)?;
            if put.len() == before {
                break;
            }
        }
        Ok(Moved { moved: put.len(), stayed, cpu: None })
    }

    /// Those that are beside the group now, noting which were `put` into it; how many stayed.
    fn gather_once(
        &mut self,
        door: &mut File,
        allowed: &CpuSet,
        put: &mut BTreeSet<u32>,
    ) -> Result<usize, Problem> {
        let path = self.parent.join("tasks");
        let beside = read(&path).map_err(|e| failed(&path, &e))?;
        let mut stayed = 0;
        for tid in beside.lines().filter_map(|l| l.trim().parse::<u32>().ok()) {
            if self.immovable.contains(&tid) {
                stayed += 1;
                continue;
            }
            if put.contains(&tid) {
                continue;
            }
            let Some(free) = may_run_on_all(tid, allowed) else { continue };
            let pinned = !self.pinned_too && !free;
            let moved = match pinned {
                true => Err(io::ErrorKind::InvalidInput.into()),
                false => door.write_all(tid.to_string().as_bytes()),
            };
            match moved {
                Ok(()) => _ = put.insert(tid),
                // It has ended.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                // The group was taken away: the next look makes it anew.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => break,
                // Pinned, or a kernel thread that may not leave the root.
                Err(_) => {
                    self.immovable.insert(tid);
                    stayed += 1;
                }
            }
        }
        Ok(stayed)
    }
}

impl Mechanism for CpusetGroup {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Group
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        let cpus = self.group.join("cpuset.cpus");
        let wanted = kept.to_string();
        let mut made = false;
        match read(&cpus) {
            Ok(now) if now == wanted => {}
            Ok(_) => set(&cpus, &wanted)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                make(&self.group)?;
                let mems = self.parent.join("cpuset.mems");
                set(&self.group.join("cpuset.mems"), &read(&mems).map_err(|e| failed(&mems, &e))?)?;
                set(&cpus, &wanted)?;
                made = true;
            }
            Err(e) => return Err(failed(&cpus, &e)),
        }
        let began = made.then(own_cpu);
        let moved = self.gather()?;
        Ok(Moved { cpu: began.map(|began| own_cpu().saturating_sub(began)), ..moved })
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        cpus_in(&self.group.join("cpuset.cpus"))
    }

    fn release(&mut self) -> Vec<String> {
        /// Tasks fork while they are moved, and one that has ended counts until its parent has asked for it: so many
        /// rounds, with a pause after each, catch up with any but a fork bomb.
        const ROUNDS: usize = 500;
        const PAUSE: Duration = Duration::from_millis(2);
        if !self.group.exists() {
            return Vec::new();
        }
        // First everything may run everywhere; the way back can take its time.
        let all = read(&self.parent.join("cpuset.cpus"));
        let mut left: Vec<String> = match all {
            Ok(all) => {
                set(&self.group.join("cpuset.cpus"), &all).err().map(|e| e.to_string()).into_iter().collect()
            }
            Err(e) => vec![failed(&self.parent, &e).to_string()],
        };
        let back = self.parent.join("tasks");
        let mut why = None;
        for _ in 0..ROUNDS {
            for tid in read(&self.group.join("tasks")).unwrap_or_default().lines() {
                if let Err(e) = write(&back, tid)
                    && e.raw_os_error() != Some(libc::ESRCH)
                {
                    why = Some(failed(&back, &e));
                }
            }
            match std::fs::remove_dir(&self.group) {
                Ok(()) => return left,
                Err(e) => why = why.or(Some(failed(&self.group, &e))),
            }
            std::thread::sleep(PAUSE);
        }
        left.extend(why.map(|e| e.to_string()));
        left
    }
}
