//! Ways to keep work off a CPU. Each can be taken up again from its [`Kind`] alone, by a later process that cleans up.
//!
//! | | asks the kernel to | tasks pinned outside the mask | cost of a change |
//! |---|---|---|---|
//! | partition | take the idled CPUs out of every cgroup (v2, an isolated cpuset) | run on kept CPUs meanwhile; since Linux 6.2 their affinity returns afterwards | one write; scheduling domains are rebuilt |
//! | group | confine a group (v1) into which every movable task is put | stay where they are; if asked, and since Linux 6.2, they are taken along and their affinity returns afterwards | one write; the first time a move of every task |
//! | scheduler | run tasks by a scheduler of ours (sched_ext, `bpf/`), which never picks the idled CPUs | are run where they are pinned | one line to its loader; lasts as long as the process that asked |
//! | hotplug | take CPUs offline | lose their affinity | milliseconds for each CPU |

use super::Problem;
use super::tasks::affinity;
use crate::hw::cpus::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The cgroup that is ours. Whoever finds it without a living owner may take it away.
const NAME: &str = "wattwise-coreidle";
const CPUS: &str = "sys/devices/system/cpu";

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// cgroup v2: an isolated cpuset partition of the CPUs that shall idle
    Partition,
    /// cgroup v1: a cpuset of the CPUs that are kept, with every movable task in it
    Group,
    /// A sched_ext scheduler that picks no CPU that shall idle (as long as a governor runs)
    Scheduler,
    /// CPUs are taken offline
    Hotplug,
}

impl Kind {
    /// Every way.
    pub const ALL: [Kind; 4] = [Kind::Partition, Kind::Group, Kind::Scheduler, Kind::Hotplug];
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Partition => "cpuset partition (cgroup v2)",
            Kind::Group => "cpuset group (cgroup v1)",
            Kind::Scheduler => "sched_ext scheduler",
            Kind::Hotplug => "hotplug",
        })
    }
}

/// Where the machine's cpusets are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Mount of version 2, where it has the cpuset controller.
    v2: Option<PathBuf>,
    /// Mount of version 1's cpuset controller.
    v1: Option<PathBuf>,
}

impl Cgroups {
    /// From the mounts of this process.
    pub fn find() -> Cgroups {
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
    pub fn best(&self) -> Result<Kind, Problem> {
        match (&self.v2, &self.v1) {
            (Some(_), _) => Ok(Kind::Partition),
            (None, Some(_)) => Ok(Kind::Group),
            (None, None) => Err(Problem::Impossible(
                "no cgroup hierarchy has the cpuset controller: mount one (mount -t cgroup2 none /sys/fs/cgroup), or \
                 use --mechanism hotplug"
                    .to_owned(),
            )),
        }
    }

    /// Why a way is not there.
    pub fn why_not(&self, kind: Kind) -> Option<String> {
        match kind {
            Kind::Partition if self.v2.is_none() => {
                Some("no cgroup v2 hierarchy has the cpuset controller".to_owned())
            }
            Kind::Group if self.v1.is_none() => {
                Some("no cgroup v1 hierarchy has the cpuset controller".to_owned())
            }
            Kind::Scheduler if !Path::new("/sys/kernel/sched_ext").exists() => {
                Some("the kernel has no sched_ext (Linux 6.12 or later, CONFIG_SCHED_CLASS_EXT)".to_owned())
            }
            Kind::Scheduler if loader().is_none() => {
                Some(format!("{LOADER} is neither beside wattwise nor in PATH: 'make -C bpf' builds it"))
            }
            _ => None,
        }
    }
}

/// What a change did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Tasks put into the group.
    pub moved: usize,
    /// Tasks that stay where they were pinned, or that the kernel does not let move.
    pub stayed: usize,
}

/// Keeps work on some CPUs.
pub trait Mechanism: Send {
    /// Which way.
    fn kind(&self) -> Kind;
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
    /// Whether the cpuset controller was handed down by us.
    fn enabled_controller(&self) -> bool {
        false
    }
    /// Whether it outlives this process.
    fn lasts(&self) -> bool {
        true
    }
}

/// What a mechanism has to know.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The cgroup below which work is confined; empty is the whole machine.
    pub within: PathBuf,
    /// The CPUs that were online before it.
    pub online: CpuSet,
    /// The cpuset controller was handed down by us.
    pub enabled_controller: bool,
    /// Tasks that are pinned are confined too.
    pub pinned_too: bool,
}

/// Takes up a way, begun now or by an earlier process.
///
/// # Errors
/// [`Problem::Impossible`] where the machine does not have it.
pub fn open(kind: Kind, cgroups: &Cgroups, terms: Terms) -> Result<Box<dyn Mechanism>, Problem> {
    let Terms { within, online, enabled_controller, pinned_too } = terms;
    if pinned_too && !affinity_returns() {
        return Err(Problem::Impossible(
            "--pinned-too: this kernel is older than 6.2, where a confined task loses its affinity"
                .to_owned(),
        ));
    }
    let missing = || Problem::Impossible(cgroups.why_not(kind).unwrap_or_default());
    let whole_machine = within.as_os_str().is_empty();
    if !whole_machine && kind != Kind::Group {
        return Err(Problem::Impossible(format!("--within: a {kind} is for the whole machine alone")));
    }
    Ok(match kind {
        Kind::Partition => {
            let parent = cgroups.v2.clone().ok_or_else(missing)?;
            let group = parent.join(NAME);
            Box::new(Partition { parent, group, online, enabled_controller })
        }
        Kind::Group => {
            let parent = cgroups.v1.as_ref().ok_or_else(missing)?.join(&within);
            if !parent.join("tasks").exists() {
                let what = parent.display();
                return Err(Problem::Input(format!(
                    "--within: {what} is no cpuset; expected a folder of one"
                )));
            }
            let group = parent.join(NAME);
            Box::new(Group { parent, group, online, immovable: BTreeSet::new(), looks: 0, pinned_too })
        }
        // Without a loader there is nothing to begin, yet what another began has ended with it.
        Kind::Scheduler => Box::new(Scheduler { loader: loader(), running: None, kept: online }),
        Kind::Hotplug => Box::new(Hotplug { root: PathBuf::from("/"), online }),
    })
}

/// Whether a task's own affinity outlives a cpuset that excludes it.
fn affinity_returns() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = release.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 2)
}

fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|t| t.trim().to_owned())
}

/// One write call, as attributes want.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn failed(path: &Path, e: &io::Error) -> Problem {
    let path = path.display();
    Problem::Failed(match e.kind() {
        io::ErrorKind::NotFound => format!("{path}: gone: another manager of cgroups has removed it"),
        io::ErrorKind::PermissionDenied => format!("{path}: no permission; run as root"),
        _ => format!("{path}: {e}"),
    })
}

fn set(path: &Path, value: &str) -> Result<(), Problem> {
    write(path, value).map_err(|e| failed(path, &e))
}

fn cpus_in(path: &Path) -> Result<CpuSet, Problem> {
    let text = read(path).map_err(|e| failed(path, &e))?;
    CpuSet::parse(&text).map_err(|e| Problem::Failed(format!("{}: {e}", path.display())))
}

fn make(group: &Path) -> Result<(), Problem> {
    match std::fs::create_dir(group) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(failed(group, &e)),
        _ => Ok(()),
    }
}

/// The idled CPUs as an isolated partition: every other cgroup loses them, and no task has to be moved.
struct Partition {
    parent: PathBuf,
    group: PathBuf,
    online: CpuSet,
    enabled_controller: bool,
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
    fn kind(&self) -> Kind {
        Kind::Partition
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

    fn enabled_controller(&self) -> bool {
        self.enabled_controller
    }
}

/// The kept CPUs as a cpuset, and every movable task in it.
struct Group {
    parent: PathBuf,
    group: PathBuf,
    online: CpuSet,
    /// Tasks that stay: asked about once, not at every look.
    immovable: BTreeSet<u32>,
    looks: u32,
    /// Pinned tasks are taken along.
    pinned_too: bool,
}

impl Group {
    /// Numbers of tasks end and are given again: what is known of them is forgotten now and then.
    const FORGET: u32 = 100;

    /// Puts into the group whatever is beside it and was not pinned by somebody.
    fn gather(&mut self) -> Result<Moved, Problem> {
        let path = self.parent.join("tasks");
        let beside = read(&path).map_err(|e| failed(&path, &e))?;
        let into = self.group.join("tasks");
        let allowed = cpus_in(&self.parent.join("cpuset.cpus"))?.and(&self.online);
        self.looks += 1;
        if self.looks.is_multiple_of(Self::FORGET) {
            self.immovable.clear();
        }
        let mut moved = Moved::default();
        for tid in beside.lines().filter_map(|l| l.trim().parse::<u32>().ok()) {
            if self.immovable.contains(&tid) {
                moved.stayed += 1;
                continue;
            }
            let Some(may) = affinity(tid) else { continue };
            let pinned = !self.pinned_too && !allowed.without(&may).is_empty();
            match if pinned {
                Err(io::ErrorKind::InvalidInput.into())
            } else {
                write(&into, &tid.to_string())
            } {
                Ok(()) => moved.moved += 1,
                // It has ended.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(failed(&into, &e)),
                // Pinned, or a kernel thread that may not leave the root.
                Err(_) => {
                    self.immovable.insert(tid);
                    moved.stayed += 1;
                }
            }
        }
        Ok(moved)
    }
}

impl Mechanism for Group {
    fn kind(&self) -> Kind {
        Kind::Group
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        let cpus = self.group.join("cpuset.cpus");
        let wanted = kept.to_string();
        match read(&cpus) {
            Ok(now) if now == wanted => {}
            Ok(_) => set(&cpus, &wanted)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                make(&self.group)?;
                let mems = self.parent.join("cpuset.mems");
                set(&self.group.join("cpuset.mems"), &read(&mems).map_err(|e| failed(&mems, &e))?)?;
                set(&cpus, &wanted)?;
            }
            Err(e) => return Err(failed(&cpus, &e)),
        }
        self.gather()
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        cpus_in(&self.group.join("cpuset.cpus"))
    }

    fn release(&mut self) -> Vec<String> {
        /// Tasks fork while they are moved: so many rounds catch up with any but a fork bomb.
        const ROUNDS: usize = 50;
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
        }
        left.extend(why.map(|e| e.to_string()));
        left
    }
}

/// What loads the scheduler of `bpf/`.
const LOADER: &str = "coreidle-scx";

/// Where it is.
fn loader() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(LOADER)).find(|file| file.is_file())
}

/// A scheduler that is loaded and told by its loader; the kernel drops it with that process.
struct Scheduler {
    loader: Option<PathBuf>,
    running: Option<Loader>,
    kept: CpuSet,
}

/// The loader's process: it ends when its input does, so with us at the latest.
struct Loader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Loader {
    fn start(path: &Path, kept: &CpuSet) -> io::Result<Loader> {
        let mut child =
            Command::new(path).arg(kept.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Loader { child, input, output: BufReader::new(output) })
    }

    /// Its next line must be `wanted`.
    fn expect(&mut self, wanted: &str) -> Result<(), Problem> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).map_err(|e| e.to_string());
        let line = line.trim();
        match read {
            Ok(_) if line == wanted => Ok(()),
            Ok(0) => Err(Problem::Failed(format!("{LOADER} has ended; the kernel schedules again"))),
            Ok(_) => Err(Problem::Failed(format!("{LOADER}: {line}"))),
            Err(e) => Err(Problem::Failed(format!("{LOADER}: {e}"))),
        }
    }
}

impl Mechanism for Scheduler {
    fn kind(&self) -> Kind {
        Kind::Scheduler
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        use std::io::Write;
        match &mut self.running {
            None => {
                let path = self.loader.as_ref().ok_or_else(|| {
                    Problem::Impossible(format!("{LOADER} is neither beside wattwise nor in PATH"))
                })?;
                let running = Loader::start(path, kept).map_err(|e| failed(path, &e))?;
                self.running.insert(running).expect("ready")?;
            }
            Some(running) => {
                if self.kept != *kept {
                    let told = writeln!(running.input, "mask {kept}");
                    told.map_err(|e| Problem::Failed(format!("{LOADER} has ended: {e}")))?;
                    running.expect("ok")?;
                }
            }
        }
        self.kept = kept.clone();
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        Ok(self.kept.clone())
    }

    fn lasts(&self) -> bool {
        false
    }

    fn release(&mut self) -> Vec<String> {
        let Some(Loader { mut child, input, .. }) = self.running.take() else { return Vec::new() };
        // The end of its input is its end.
        drop(input);
        child.wait().err().map(|e| format!("{LOADER}: {e}")).into_iter().collect()
    }
}

/// CPUs taken offline.
struct Hotplug {
    root: PathBuf,
    online: CpuSet,
}

impl Hotplug {
    fn plug(&self, cpu: u32, online: bool) -> Result<(), Problem> {
        let path = self.root.join(format!("{CPUS}/cpu{cpu}/online"));
        let wanted = if online { "1" } else { "0" };
        match read(&path) {
            Ok(now) if now == wanted => Ok(()),
            Ok(_) => set(&path, wanted),
            Err(_) if online => Ok(()),
            Err(_) => Err(Problem::Input(format!("CPU {cpu} cannot be taken offline: it has to be kept"))),
        }
    }
}

impl Mechanism for Hotplug {
    fn kind(&self) -> Kind {
        Kind::Hotplug
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        // Opening first: at no time are there fewer CPUs than before and after.
        for cpu in self.online.and(kept).iter() {
            self.plug(cpu, true)?;
        }
        for cpu in self.online.without(kept).iter() {
            self.plug(cpu, false)?;
        }
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        cpus_in(&self.root.join(CPUS).join("online"))
    }

    fn release(&mut self) -> Vec<String> {
        self.online.iter().filter_map(|cpu| self.plug(cpu, true).err()).map(|e| e.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn hotplug_opens_before_it_closes_and_never_takes_what_has_no_switch() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let file = |cpu: u32| root.path().join(format!("{CPUS}/cpu{cpu}/online"));
        for cpu in 0..4 {
            std::fs::create_dir_all(file(cpu).parent().expect("a folder"))?;
            // The boot CPU of a PC has no switch.
            if cpu > 0 {
                std::fs::write(file(cpu), "1\n")?;
            }
        }
        let set = |t: &str| CpuSet::parse(t).expect("a list");
        let mut hotplug = Hotplug { root: root.path().to_owned(), online: set("0-3") };
        hotplug.keep(&set("0,2")).expect("possible");
        let now = |cpu| read(&file(cpu)).expect("there");
        assert_eq!([1, 2, 3].map(now), ["0", "1", "0"]);
        assert!(hotplug.keep(&set("1")).is_err_and(|e| e.to_string().contains("CPU 0")));
        assert_eq!(hotplug.release(), Vec::<String>::new());
        assert_eq!([1, 2, 3].map(now), ["1", "1", "1"]);
        Ok(())
    }
}
