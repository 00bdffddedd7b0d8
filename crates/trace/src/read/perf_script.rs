//! What `perf script` prints beside the events: what its head says of how they were recorded, and perf's own records of tasks.

use crate::bounds::MAX_TID;
use crate::events::{Comms, EventKind};
use crate::plan::kernels;
use crate::read::ftrace_line::{LineHead, PERFS_OWN};
use std::collections::BTreeMap;

/// `# event : name = sched:sched_switch, , id = { 170, 171 }, ..., enable_on_exec = 1`
#[derive(Default)]
pub(super) struct ByPerf {
    /// Without `-a`.
    pub(super) of_command: bool,
    /// With `--overwrite`.
    pub(super) backward: bool,
    /// CPUs that each tracepoint was opened on.
    pub(super) opened: usize,
}

impl ByPerf {
    pub(super) fn take(&mut self, event: &str) {
        if !event.contains(" type = 2,") {
            return;
        }
        self.of_command |= event.contains(" enable_on_exec = 1");
        self.backward |= event.contains(" write_backward = 1");
        let ids = event.split_once(" id = {").and_then(|(_, rest)| rest.split_once('}'));
        self.opened = self.opened.max(ids.map_or(0, |(ids, _)| ids.split(',').count()));
    }
}

/// What perf's own records of tasks say, as `perf script --show-task-events` prints them: `exec: NAME:PID/TID`, or
/// `(PID:TID):(PARENT'S PID:ITS THREAD)`. `None` for its other records.
pub(super) fn of_tasks(
    line: &LineHead<'_>,
    numbers: &BTreeMap<u32, u32>,
    comms: &mut Comms,
) -> Option<EventKind> {
    let tid = |text: &str| kernels(numbers, text.parse().ok().filter(|tid| *tid < MAX_TID)?);
    let pair = |text: &str| {
        let (pid, thread) = text.trim_matches(['(', ')']).split_once(':')?;
        Some((tid(pid)?, tid(thread)?))
    };
    let record = line.name.strip_prefix(PERFS_OWN)?;
    if record == "COMM" {
        let (said, after) = line.arguments.split_once(':')?;
        let (name, ids) = after.strip_prefix(' ')?.rsplit_once(':')?;
        let (pid, thread) = ids.split_once('/')?;
        let comm = comms.number(name.as_bytes());
        return Some(EventKind::Named { tid: tid(thread)?, pid: tid(pid)?, comm, exec: said == "exec" });
    }
    let (task, parent) = line.arguments.split_once("):(")?;
    let (pid, child) = pair(task)?;
    match record {
        "FORK" => Some(EventKind::Parent { parent: pair(parent)?.1, child, pid }),
        "EXIT" => Some(EventKind::Ended { tid: child }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::ftrace_line::parse;

    /// Lines of perf 6.1.
    #[test]
    fn perfs_own_records_tell_of_tasks() {
        let mut comms = Comms::default();
        let mut of = |what: &str| {
            let line = format!("         python3   482 [000]  4611.802192177: {what}");
            of_tasks(&parse(&line)?, &BTreeMap::new(), &mut comms)
        };
        assert_eq!(
            of("PERF_RECORD_FORK(523:524):(477:478)"),
            Some(EventKind::Parent { parent: 478, child: 524, pid: 523 })
        );
        assert_eq!(of("PERF_RECORD_EXIT(518:519):(482:482)"), Some(EventKind::Ended { tid: 519 }));
        let named = of("PERF_RECORD_COMM exec: a:7/8 b:482/483");
        assert!(matches!(named, Some(EventKind::Named { tid: 483, pid: 482, exec: true, .. })), "{named:?}");
        let named = of("PERF_RECORD_COMM: python3:482/482");
        assert!(matches!(named, Some(EventKind::Named { tid: 482, exec: false, .. })), "{named:?}");
        for other in [
            "PERF_RECORD_EXIT(-1:-1):(-1:-1)",
            "PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0 0:0 0 0]: r-xp /a",
            "PERF_RECORD_COMM: x",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_head_tells_how_events_were_recorded() {
        let mut by_perf = ByPerf::default();
        by_perf.take(" name = dummy:HG, , id = { 1, 2, 3 }, type = 1, size = 128, enable_on_exec = 1");
        assert_eq!((by_perf.of_command, by_perf.backward, by_perf.opened), (false, false, 0));
        by_perf.take(" name = sched:sched_switch, , id = { 1, 2 }, type = 2, size = 128, enable_on_exec = 1, write_backward = 1");
        assert_eq!((by_perf.of_command, by_perf.backward, by_perf.opened), (true, true, 2));
    }
}
