//! What keeps this process from the kernel's events, and who must grant what.
//!
//! | where | what is refused | who can grant it |
//! |---|---|---|
//! | a user namespace, whose root is nobody's outside | tracefs, perf_event_open | the host alone |
//! | a container of the host's root without CAP_PERFMON | perf_event_open | whoever starts the container |
//! | a container without tracefs, or with /sys masked | the events' formats | whoever starts the container |
//! | a user | both | root |
//!
//! The kernel gives tracepoints' raw fields to CAP_PERFMON of the first user namespace, or to all where perf_event_paranoid is -1
//! (`perf_allow_tracepoint` in include/linux/perf_event.h).

use crate::record::RecordError;
use std::io;

/// CAP_SYS_ADMIN and CAP_PERFMON of include/uapi/linux/capability.h: either is enough.
const CAPABILITIES: [u32; 2] = [21, 38];

/// What this process is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessStanding {
    /// In a user namespace: root there, perhaps, and nobody outside.
    UserNamespace,
    /// Root, without the capability for events.
    Bare,
    /// Root, or anybody with the capability.
    Granted,
    User,
}

impl ProcessStanding {
    pub(super) fn read() -> ProcessStanding {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        ProcessStanding::of(
            &text("/proc/self/uid_map"),
            &text("/proc/self/status"),
            rustix::process::geteuid().is_root(),
        )
    }

    /// By what /proc says. The first user namespace maps all numbers to themselves.
    fn of(uid_map: &str, status: &str, is_root: bool) -> ProcessStanding {
        let map: Vec<&str> = uid_map.split_whitespace().collect();
        if !map.is_empty() && map != ["0", "0", "4294967295"] {
            return ProcessStanding::UserNamespace;
        }
        let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let held = held.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        match held {
            Some(bits) if CAPABILITIES.iter().any(|n| bits >> n & 1 == 1) => ProcessStanding::Granted,
            Some(_) if is_root => ProcessStanding::Bare,
            None if is_root => ProcessStanding::Granted,
            _ => ProcessStanding::User,
        }
    }

    /// Perf events were refused.
    pub(super) fn without_events(self, error: &io::Error) -> RecordError {
        let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let level = level.map_or("unknown".into(), |l| l.trim().to_owned());
        let what = match self {
            ProcessStanding::UserNamespace => format!(
                "tracepoints of the whole machine are not permitted in a user namespace (perf_event_paranoid is {level})"
            ),
            _ => format!(
                "tracepoints of the whole machine are not permitted (perf_event_paranoid is {level}: {error})"
            ),
        };
        let remedy = match self {
            ProcessStanding::UserNamespace => OF_THE_HOST,
            ProcessStanding::Bare => {
                "start the container with that capability: `docker run --cap-add PERFMON` (before Linux 5.8 SYS_ADMIN), and a seccomp \
                 profile that lets perf_event_open pass"
            }
            ProcessStanding::Granted => {
                "a seccomp filter, a security module or a locked-down kernel forbids it: see `dmesg`, or record on the host"
            }
            ProcessStanding::User => {
                "run as root, or grant CAP_PERFMON: setcap cap_perfmon=ep on this program"
            }
        };
        RecordError::NotPossible { what, remedy: remedy.into() }
    }

    /// The events' formats cannot be read: tracefs is there and closed, or is not there.
    pub(super) fn without_tracefs(self, closed: bool, error: &io::Error) -> RecordError {
        let what = if closed {
            "/sys/kernel/tracing cannot be read".to_owned()
        } else {
            format!("tracefs is not mounted, and a private instance cannot be opened ({error})")
        };
        let remedy = match (self, closed) {
            (ProcessStanding::UserNamespace, _) => OF_THE_HOST,
            (ProcessStanding::Bare | ProcessStanding::Granted, _) => {
                "in a container, mount the host's: `-v /sys/kernel/tracing:/sys/kernel/tracing:ro`; on a host: \
                 `mount -t tracefs tracefs /sys/kernel/tracing`"
            }
            (ProcessStanding::User, true) => {
                "let your group read it: mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing"
            }
            (ProcessStanding::User, false) => {
                "run as root once: mount -t tracefs tracefs /sys/kernel/tracing"
            }
        };
        RecordError::NotPossible { what, remedy: remedy.into() }
    }
}

/// What a host's root can do for a user namespace.
const OF_THE_HOST: &str = "the host must grant it: `sysctl kernel.perf_event_paranoid=-1` and `mount -o remount,gid=GID,mode=750 \
                           /sys/kernel/tracing` there, GID being a group of the host's that this process has, and tracefs mounted into the \
                           container; or record on the host";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standing_is_read_off_the_namespace_and_the_capabilities() {
        let first = "         0          0 4294967295\n";
        let caps = |bits: &str| format!("Name:\tx\nCapEff:\t{bits}\n");
        // Root's on 6.x, docker's default set, none.
        let (all, docker, none) =
            (caps("000001ffffffffff"), caps("00000000a80425fb"), caps("0000000000000000"));
        let perfmon = caps("0000004000000000");
        for (map, status, root, wanted) in [
            (first, &all, true, ProcessStanding::Granted),
            (first, &docker, true, ProcessStanding::Bare),
            (first, &perfmon, false, ProcessStanding::Granted),
            (first, &none, false, ProcessStanding::User),
            ("0 1000 1\n", &all, true, ProcessStanding::UserNamespace),
            ("0 100000 65536\n", &none, false, ProcessStanding::UserNamespace),
            // /proc is masked: nothing is known.
            ("", &String::new(), true, ProcessStanding::Granted),
        ] {
            assert_eq!(ProcessStanding::of(map, status, root), wanted, "{map} {status}");
        }
    }

    #[test]
    fn each_refusal_is_one_line_and_names_a_remedy() {
        let error = || io::Error::from_raw_os_error(libc::EPERM);
        for standing in [
            ProcessStanding::UserNamespace,
            ProcessStanding::Bare,
            ProcessStanding::Granted,
            ProcessStanding::User,
        ] {
            let all = [
                standing.without_events(&error()),
                standing.without_tracefs(true, &error()),
                standing.without_tracefs(false, &error()),
            ];
            for refused in all {
                assert!(refused.is_impossible());
                let line = refused.to_string();
                assert!(!line.contains('\n') && line.contains("; "), "{line}");
                // Root is not told to be root.
                assert!(standing == ProcessStanding::User || !line.contains("run as root"), "{line}");
                assert!(
                    standing != ProcessStanding::UserNamespace || line.contains("the host must grant it"),
                    "{line}"
                );
            }
        }
    }
}
