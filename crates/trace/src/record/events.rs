//! Which tracepoints, and their descriptors: one a tracepoint and CPU.

use crate::record::grant::ProcessStanding;
use crate::record::ring::Ring;
use crate::record::{RecordError, owned, system};
use perf_event_open_sys as sys;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use sys::bindings as abi;

/// What is always recorded: `(system, event, whether a recording is useless without it)`.
const EVENTS: [(&str, &str, bool); 7] = [
    ("sched", "sched_switch", true),
    ("sched", "sched_waking", true),
    ("sched", "sched_wakeup_new", false),
    ("sched", "sched_process_fork", false),
    ("sched", "sched_process_exit", false),
    ("power", "cpu_idle", false),
    ("power", "cpu_frequency", false),
];

/// What is counted between switches where the processor can: name, and the kernel's number of it. Cycles are needed.
const COUNTERS: [(&str, u64); 3] = [("cycles", 0), ("instructions", 1), ("cache-misses", 3)];

/// A switch's sample carries all of the group's counts: READ (16).
const SAMPLE_READ: u64 = 16;
/// How: TOTAL_TIME_ENABLED (1), TOTAL_TIME_RUNNING (2), ID (4), GROUP (8).
const READ_FORMAT: u64 = 1 | 2 | 4 | 8;

/// What each sample carries: IDENTIFIER (65536), TID (2), TIME (4), CPU (128), RAW (1024).
pub(super) const SAMPLE_TYPE: u32 = 65536 | 2 | 4 | 128 | 1024;

/// A tracepoint.
pub(super) struct Tracepoint {
    pub(super) system: &'static str,
    pub(super) name: &'static str,
    /// The kernel's number of it.
    pub(super) id: u64,
    /// The text that describes its fields.
    pub(super) format: Vec<u8>,
}

/// The kernel's description of its tracepoints.
pub(super) struct Tracefs {
    root: PathBuf,
    /// Keeps a private instance alive.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is mounted, or a private instance.
    pub(super) fn find() -> Result<Tracefs, RecordError> {
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if Path::new(root).join("events/sched").is_dir() {
                return Ok(Tracefs { root: root.into(), _mount: None });
            }
        }
        let standing = ProcessStanding::read();
        let mounted = Path::new("/sys/kernel/tracing").join("events").symlink_metadata();
        if let Err(error) = mounted
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(standing.without_tracefs(true, &error));
        }
        let mount = private_tracefs().map_err(|error| standing.without_tracefs(false, &error))?;
        Ok(Tracefs { root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), _mount: Some(mount) })
    }

    /// A header file below its root; a missing one is empty. The kernel gives these whole to the first
    /// read or not at all, so it must be a large one.
    pub(super) fn read(&self, path: &str) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 16];
        let read = std::fs::File::open(self.root.join(path)).and_then(|mut f| f.read(&mut bytes));
        bytes.truncate(read.unwrap_or(0));
        bytes
    }

    /// The tracepoints to record, of those that this kernel has.
    pub(super) fn kinds(&self, timers: bool) -> Result<Vec<Tracepoint>, RecordError> {
        let mut kinds = Vec::new();
        let timer = timers.then_some(("timer", "hrtimer_start", true));
        for (system, name, needed) in EVENTS.into_iter().chain(timer) {
            let folder = self.root.join("events").join(system).join(name);
            let id = std::fs::read_to_string(folder.join("id")).ok().and_then(|t| t.trim().parse().ok());
            match (id, std::fs::read(folder.join("format"))) {
                (Some(id), Ok(format)) => kinds.push(Tracepoint { system, name, id, format }),
                _ if needed => {
                    return Err(RecordError::NotPossible {
                        what: format!("the tracepoint {system}:{name} cannot be read"),
                        remedy: "let this user or container read tracefs: mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing"
                            .into(),
                    });
                }
                _ => {}
            }
        }
        Ok(kinds)
    }
}

fn private_tracefs() -> io::Result<OwnedFd> {
    use rustix::mount::*;
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

/// Numbers of the CPUs that are on. A container may have /sys masked: then /proc has them.
pub(super) fn online_cpus() -> Result<Vec<u32>, RecordError> {
    const LIST: &str = "/sys/devices/system/cpu/online";
    let listed = std::fs::read_to_string(LIST).ok().and_then(|text| cpu_list(text.trim()));
    let counted = || cpus_of_stat(&std::fs::read_to_string("/proc/stat").ok()?);
    listed.or_else(counted).ok_or_else(|| RecordError::NotPossible {
        what: format!("neither {LIST} nor /proc/stat says which CPUs there are"),
        remedy: "mount /sys and /proc into the container".into(),
    })
}

/// A line `cpuN ...` for each CPU that is on.
fn cpus_of_stat(text: &str) -> Option<Vec<u32>> {
    let cpu = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
    let cpus: Vec<u32> = text.lines().filter_map(cpu).collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// `0-3,8` as numbers.
fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(from.parse().ok()?..=to.parse::<u32>().ok()?);
    }
    Some(cpus)
}

/// Attributes of a tracepoint's events. The first one also reports tasks' names, and the counts where there are any.
pub(super) fn attributes(
    kind: &Tracepoint,
    first: bool,
    counted: bool,
    ring_bytes: u32,
) -> abi::perf_event_attr {
    let mut attr = common_attributes();
    attr.type_ = abi::PERF_TYPE_TRACEPOINT;
    attr.config = kind.id;
    attr.__bindgen_anon_1.sample_period = 1;
    attr.__bindgen_anon_2.wakeup_watermark = ring_bytes / 4;
    attr.set_watermark(1);
    attr.set_disabled(1);
    attr.set_comm(u64::from(first));
    attr.set_comm_exec(u64::from(first));
    attr.set_task(u64::from(first));
    if first && counted {
        attr.sample_type |= SAMPLE_READ;
        attr.read_format = READ_FORMAT;
    }
    attr
}

/// Attributes of a counter, which counts while its group's leader is on and makes no samples of its own.
pub(super) fn counter_attributes(number: u64, pmu: u32) -> abi::perf_event_attr {
    let mut attr = common_attributes();
    attr.type_ = abi::PERF_TYPE_HARDWARE;
    // The upper half says which kind of core's counters, on machines with several.
    attr.config = number | u64::from(pmu) << 32;
    attr.sample_type |= SAMPLE_READ;
    attr.read_format = READ_FORMAT;
    attr
}

fn common_attributes() -> abi::perf_event_attr {
    let mut attr = abi::perf_event_attr::default();
    attr.size = size_of::<abi::perf_event_attr>() as u32;
    attr.sample_type = u64::from(SAMPLE_TYPE);
    attr.set_sample_id_all(1);
    attr
}

/// On hybrids: the number of the kind of core's counters that this CPU has; else 0.
fn pmu_of(cpu: u32) -> u32 {
    let of = |kind: &str| {
        let root = Path::new("/sys/bus/event_source/devices").join(kind);
        let cpus = std::fs::read_to_string(root.join("cpus")).ok()?;
        if !cpu_list(cpus.trim())?.contains(&cpu) {
            return None;
        }
        std::fs::read_to_string(root.join("type")).ok()?.trim().parse().ok()
    };
    of("cpu_core").or_else(|| of("cpu_atom")).unwrap_or(0)
}

/// An open event on a CPU, in a group or by itself, and the kernel's number of it.
fn open(attr: &mut abi::perf_event_attr, cpu: u32, group: i32) -> io::Result<(OwnedFd, u64)> {
    let flags = abi::PERF_FLAG_FD_CLOEXEC as std::ffi::c_ulong;
    // SAFETY: `attr` is a valid structure of the size that it states and outlives the call.
    let fd = owned(unsafe { sys::perf_event_open(attr, -1, cpu as i32, group, flags) })?;
    let mut id = 0u64;
    // SAFETY: the ioctl writes one u64 to the pointer, which is valid for it.
    let got = unsafe { sys::ioctls::ID(fd.as_raw_fd(), &mut id) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok((fd, id)) }
}

/// What is counted: an event a CPU, in the group of the CPU's first tracepoint.
pub(super) struct CountedEvent {
    pub(super) name: &'static str,
    pub(super) number: u64,
    pub(super) ids: Vec<u64>,
}

/// Descriptors, `[kind][cpu]`, and the kernel's number of each event.
pub(super) struct Opened {
    fds: Vec<Vec<OwnedFd>>,
    pub(super) ids: Vec<Vec<u64>>,
    pub(super) counters: Vec<CountedEvent>,
    /// Keeps the counters open.
    _counting: Vec<OwnedFd>,
}

impl Opened {
    /// Opens the tracepoints, with as many counters as there are: most guests have none.
    pub(super) fn new(kinds: &[Tracepoint], cpus: &[u32], ring_bytes: usize) -> Result<Opened, RecordError> {
        for counters in [&COUNTERS[..], &COUNTERS[..2], &COUNTERS[..1]] {
            if let Ok(opened) = Opened::with(kinds, cpus, ring_bytes, counters) {
                return Ok(opened);
            }
        }
        Opened::with(kinds, cpus, ring_bytes, &[]).map_err(refused)
    }

    fn with(
        kinds: &[Tracepoint],
        cpus: &[u32],
        ring_bytes: usize,
        counters: &[(&'static str, u64)],
    ) -> io::Result<Opened> {
        let (mut fds, mut ids) = (Vec::new(), Vec::new());
        let mut counted: Vec<CountedEvent> =
            counters.iter().map(|&(name, number)| CountedEvent { name, number, ids: Vec::new() }).collect();
        let mut counting = Vec::new();
        for (k, kind) in kinds.iter().enumerate() {
            let (mut row, mut id_row) = (Vec::new(), Vec::new());
            for &cpu in cpus {
                let mut attr = attributes(kind, k == 0, !counters.is_empty(), ring_bytes as u32);
                let (leader, id) = open(&mut attr, cpu, -1)?;
                for counter in counted.iter_mut().filter(|_| k == 0) {
                    let mut attr = counter_attributes(counter.number, pmu_of(cpu));
                    let (fd, id) = open(&mut attr, cpu, leader.as_raw_fd())?;
                    counting.push(fd);
                    counter.ids.push(id);
                }
                row.push(leader);
                id_row.push(id);
            }
            fds.push(row);
            ids.push(id_row);
        }
        Ok(Opened { fds, ids, counters: counted, _counting: counting })
    }

    /// A ring a CPU on the first event; all other events of that CPU go into it.
    pub(super) fn map(&self, bytes: usize) -> Result<Vec<Ring>, RecordError> {
        let mut rings = Vec::new();
        for (c, fd) in self.fds[0].iter().enumerate() {
            let ring = Ring::map(fd, bytes).map_err(|error| RecordError::NotPossible {
                what: format!("a ring of {} KiB a CPU cannot be mapped ({error})", bytes >> 10),
                remedy: "run with CAP_IPC_LOCK, or raise /proc/sys/kernel/perf_event_mlock_kb".into(),
            })?;
            rings.push(ring);
            for row in &self.fds[1..] {
                // SAFETY: both descriptors are open perf events; the call touches no memory of ours.
                let done = unsafe { sys::ioctls::SET_OUTPUT(row[c].as_raw_fd(), fd.as_raw_fd()) };
                if done < 0 {
                    return Err(system("sharing a ring")(io::Error::last_os_error()));
                }
            }
        }
        Ok(rings)
    }

    pub(super) fn enable(&self, on: bool) -> io::Result<()> {
        for fd in self.fds.iter().flatten() {
            // SAFETY: the descriptor is an open perf event; the calls touch no memory of ours.
            let done = unsafe {
                if on {
                    sys::ioctls::ENABLE(fd.as_raw_fd(), 0)
                } else {
                    sys::ioctls::DISABLE(fd.as_raw_fd(), 0)
                }
            };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// A refused perf_event_open, with the narrowest grant that would help.
fn refused(error: io::Error) -> RecordError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => ProcessStanding::read().without_events(&error),
        Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOENT) => RecordError::NotPossible {
            what: format!("this kernel or container has no perf events ({error})"),
            remedy: "record on the host, or start the container with a seccomp profile that lets perf_event_open pass".into(),
        },
        _ => RecordError::System { what: "perf_event_open", error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_by_sys_and_by_proc() {
        assert_eq!(cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        let stat = "cpu  1 2 3\ncpu0 1 2 3\ncpu2 1 2 3\nintr 5\ncpufreq 1\n";
        assert_eq!(cpus_of_stat(stat), Some(vec![0, 2]));
        assert_eq!(cpus_of_stat("intr 5\n"), None);
    }
}
