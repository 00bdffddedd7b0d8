//! Ways to keep work off a CPU. Each can be taken up again from its [`MechanismKind`] alone, by a later process that cleans up.
//!
//! | | asks the kernel to | tasks pinned outside the mask | cost of a change |
//! |---|---|---|---|
//! | slices | have systemd confine its slices (`AllowedCPUs`, by D-Bus) | run on kept CPUs meanwhile; since Linux 6.2 their affinity returns afterwards | a message for each slice |
//! | partition | take the idled CPUs out of every cgroup (v2, an isolated cpuset) | run on kept CPUs meanwhile; since Linux 6.2 their affinity returns afterwards | one write; scheduling domains are rebuilt |
//! | group | confine a group (v1) into which every movable task is put | stay where they are; if asked, and since Linux 6.2, they are taken along and their affinity returns afterwards | one write; the first time a move of every task |
//! | scheduler | run tasks by a scheduler of ours (sched_ext, `bpf/`), which never picks the idled CPUs | are run where they are pinned | one line to its loader; lasts as long as the process that asked |
//! | hotplug | take CPUs offline | lose their affinity | milliseconds for each CPU |

mod cgroup_v1;
mod cgroup_v2;
mod files;
mod hotplug;
mod sched_ext;
#[cfg(feature = "dbus")]
mod systemd;
#[cfg(not(feature = "dbus"))]
#[path = "systemd_absent.rs"]
mod systemd;
mod way;

pub use files::own_cpu;
pub use way::{Mechanism, MechanismKind, Moved, Notes};

use self::systemd::Slices;
use crate::cores::mechanism::cgroup_v1::CpusetGroup;
use crate::cores::mechanism::cgroup_v2::Partition;
use crate::cores::mechanism::hotplug::Hotplug;
use crate::cores::mechanism::sched_ext::{LOADER, Scheduler, loader};
use crate::problem::Problem;
use std::path::{Path, PathBuf};
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::Root;

/// The cgroup that is ours. Whoever finds it without a living owner may take it away.
const NAME: &str = "wattwise-coreidle";

/// Where the machine's cpusets are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Mount of version 2, where it has the cpuset controller.
    v2: Option<PathBuf>,
    /// Mount of version 1's cpuset controller.
    v1: Option<PathBuf>,
    /// Another machine than this one: its name.
    elsewhere: Option<String>,
}

impl Cgroups {
    /// From the mounts of this process; on a machine that is not this one there are none of which we know.
    pub fn find(root: &dyn Root) -> Cgroups {
        if !root.is_this_machine() {
            return Cgroups { elsewhere: Some(root.describe()), ..Cgroups::default() };
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut found = Cgroups::parse(&mounts);
        let has_cpuset = |mount: &PathBuf| {
            let controllers = std::fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
            controllers.split_ascii_whitespace().any(|c| c == "cpuset")
        };
        found.v2 = found.v2.filter(has_cpuset);
        found
    }

    fn parse(mountinfo: &str) -> Cgroups {
        let mut found = Cgroups::default();
        for line in mountinfo.lines() {
            // ID PARENT DEVICE ROOT MOUNT OPTIONS [TAGS] - TYPE SOURCE SUPER-OPTIONS
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let Some(mount) = left.split(' ').nth(4) else { continue };
            let mut right = right.split(' ');
            let (kind, options) = (right.next(), right.nth(1).unwrap_or_default());
            match kind {
                Some("cgroup2") => found.v2 = Some(mount.into()),
                Some("cgroup") if options.split(',').any(|o| o == "cpuset") => found.v1 = Some(mount.into()),
                _ => {}
            }
        }
        found
    }

    /// The best way that there is.
    ///
    /// # Errors
    /// [`Problem::Impossible`] with what is missing.
    pub fn best(&self) -> Result<MechanismKind, Problem> {
        if self.elsewhere.is_some() {
            return Ok(MechanismKind::Hotplug);
        }
        match (&self.v2, &self.v1) {
            // Where systemd runs, the tree is its own.
            (Some(_), _) if let Some(why) = systemd::unasked() => Err(Problem::Impossible(why)),
            (Some(_), _) if systemd::why_not().is_none() => Ok(MechanismKind::Slices),
            (Some(_), _) => Ok(MechanismKind::Partition),
            (None, Some(_)) => Ok(MechanismKind::Group),
            (None, None) => Err(Problem::Impossible(
                "no cgroup hierarchy has the cpuset controller: mount one (mount -t cgroup2 none /sys/fs/cgroup), or \
                 use --mechanism hotplug"
                    .to_owned(),
            )),
        }
    }

    /// Why a way is not there.
    pub fn why_not(&self, kind: MechanismKind) -> Option<String> {
        if let (Some(machine), true) = (&self.elsewhere, kind != MechanismKind::Hotplug) {
            return Some(format!("{machine} is not this machine: it has no tasks of which we know"));
        }
        match kind {
            MechanismKind::Slices => systemd::why_not(),
            MechanismKind::Partition if self.v2.is_none() => {
                Some("no cgroup v2 hierarchy has the cpuset controller".to_owned())
            }
            MechanismKind::Group if self.v1.is_none() => {
                Some("no cgroup v1 hierarchy has the cpuset controller".to_owned())
            }
            MechanismKind::Scheduler if !Path::new("/sys/kernel/sched_ext").exists() => Some(
                "the kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT; ours wants Linux 7.1 or later)"
                    .to_owned(),
            ),
            MechanismKind::Scheduler if loader().is_none() => {
                Some(format!("{LOADER} is neither beside wattwise nor in PATH: 'make -C bpf' builds it"))
            }
            _ => None,
        }
    }
}

/// What a mechanism has to know.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The cgroup below which work is confined; empty is the whole machine.
    pub within: PathBuf,
    /// The CPUs that were online before it.
    pub online: CpuSet,
    /// What an earlier process noted.
    pub notes: Notes,
    /// Tasks that are pinned are confined too.
    pub pinned_too: bool,
}

/// Takes up a way, begun now or by an earlier process.
///
/// # Errors
/// [`Problem::Impossible`] where the machine does not have it.
pub fn open<'r>(
    root: &'r dyn Root,
    kind: MechanismKind,
    cgroups: &Cgroups,
    terms: Terms,
) -> Result<Box<dyn Mechanism + 'r>, Problem> {
    let Terms { within, online, notes, pinned_too } = terms;
    if pinned_too && !affinity_returns() {
        return Err(Problem::Impossible(
            "--pinned-too: this kernel is older than 6.2, where a confined task loses its affinity"
                .to_owned(),
        ));
    }
    let missing = || Problem::Impossible(cgroups.why_not(kind).unwrap_or_default());
    if cgroups.elsewhere.is_some() && kind != MechanismKind::Hotplug {
        return Err(missing());
    }
    let whole_machine = within.as_os_str().is_empty();
    if !whole_machine && kind != MechanismKind::Group {
        return Err(Problem::Impossible(format!("--within: a {kind} is for the whole machine alone")));
    }
    Ok(match kind {
        MechanismKind::Partition => {
            let parent = cgroups.v2.clone().ok_or_else(missing)?;
            let group = parent.join(NAME);
            Box::new(Partition { parent, group, online, enabled_controller: notes.enabled_controller })
        }
        MechanismKind::Group => {
            let parent = cgroups.v1.as_ref().ok_or_else(missing)?.join(&within);
            if !parent.join("tasks").exists() {
                let what = parent.display();
                return Err(Problem::Input(format!(
                    "--within: {what} is no cpuset; expected a folder of one"
                )));
            }
            let group = parent.join(NAME);
            Box::new(CpusetGroup {
                parent,
                group,
                online,
                immovable: Default::default(),
                looks: 0,
                pinned_too,
            })
        }
        MechanismKind::Slices => Box::new(Slices::open(online, &notes)?),
        MechanismKind::Scheduler => Box::new(Scheduler::new(online)),
        MechanismKind::Hotplug => Box::new(Hotplug { root, online }),
    })
}

/// Whether a task's own affinity outlives a cpuset that excludes it.
fn affinity_returns() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = release.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_hw::root::DirRoot;

    #[test]
    fn hierarchies_are_found_by_their_mounts() {
        let hybrid = "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            31 25 0:27 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n\
            32 25 0:28 / /sys/fs/cgroup/cpu rw shared:7 - cgroup cgroup rw,cpu,cpuacct\n\
            33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = Cgroups::parse(hybrid);
        assert_eq!(found.v1.as_deref(), Some(Path::new("/sys/fs/cgroup/cpuset")));
        assert_eq!(found.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(Cgroups::parse("25 1 0:22 / / rw - ext4 /dev/vda rw\n"), Cgroups::default());
        assert!(Cgroups::default().best().is_err());
    }

    #[test]
    fn another_machine_has_hotplug_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = DirRoot::new(folder.path());
        let cgroups = Cgroups::find(&root);
        assert_eq!(cgroups.best().ok(), Some(MechanismKind::Hotplug));
        for kind in MechanismKind::ALL {
            let opened = open(&root, kind, &cgroups, Terms::default());
            assert_eq!(opened.is_ok(), kind == MechanismKind::Hotplug, "{kind}");
            assert_eq!(cgroups.why_not(kind).is_none(), kind == MechanismKind::Hotplug, "{kind}");
        }
    }
}
