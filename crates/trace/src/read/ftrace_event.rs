//! The event of a line of ftrace text: its fields, in tracefs's form and in trace-cmd's short one.
//!
//! Arguments are taken from their own keys, for a name may hold blanks, brackets, dashes and line ends.

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::events::{Comms, EventKind, Left, Switch, WakeTarget};
use crate::marks::{self, MarkedWork};
use crate::read::decode::program;
use crate::read::ftrace_line::{LineHead, is_kernels, seconds, true_one};

/// The word after a key, `key` with its `=`.
fn value<'a>(arguments: &'a str, key: &str) -> Option<&'a str> {
    let at = if arguments.starts_with(key) {
        0
    } else {
        // Keys begin a word: `pid=` must not be found in `prev_pid=`.
        arguments.match_indices(key).find(|(i, _)| arguments.as_bytes()[i - 1] == b' ')?.0
    };
    arguments[at + key.len()..].split_whitespace().next()
}

fn number<T: std::str::FromStr>(arguments: &str, key: &str) -> Option<T> {
    value(arguments, key)?.parse().ok()
}

fn tid(arguments: &str, key: &str) -> Option<u32> {
    number(arguments, key).filter(|t| *t < MAX_TID)
}

/// A name that may hold anything, and the fields after it: `key` is the first of them, a number, and `then` the next. A name
/// can hold what looks like both, so the last such place counts: after it come numbers, or a name too short for it.
fn name<'a>(arguments: &'a str, before: &str, key: &str, then: &str) -> Option<(&'a str, &'a str)> {
    let text = arguments.strip_prefix(before)?;
    let is_end = |at: usize| {
        let mut words = text[at..].split_whitespace();
        words.next().is_some_and(|w| w.starts_with(key)) && words.next().is_some_and(|w| w.starts_with(then))
    };
    let at = text
        .rmatch_indices(' ')
        .map(|(at, _)| at)
        .find(|at| text[at + 1..].starts_with(key) && is_end(*at))?;
    has_room(&text[..at]).then(|| (&text[..at], &text[at + 1..]))
}

/// Whether a name that goes over several lines can be one: the kernel's are short.
fn has_room(name: &str) -> bool {
    !name.contains('\n') || is_kernels(name)
}

fn left(text: &str) -> Left {
    if let Ok(state) = text.parse() {
        return Left::from_bits(state);
    }
    text.bytes().next().and_then(Left::from_letter).unwrap_or_default()
}

fn prio(text: &str) -> Option<i16> {
    text.parse::<i64>().ok().map(|n| n.clamp(-1, 200) as i16)
}

/// `NAME:TID [PRIO]`, trace-cmd's short form, with what follows it.
fn short(text: &str) -> Option<(&str, u32, i16, &str)> {
    let open = text.rfind(" [")?;
    let (rest, after) = text[open + 2..].split_once(']').map(|(p, a)| (p, a.trim()))?;
    let (name, tid) = text[..open].trim().rsplit_once(':').filter(|(name, _)| has_room(name))?;
    Some((name, tid.parse().ok().filter(|t| *t < MAX_TID)?, prio(rest)?, after))
}

fn switch(arguments: &str, comms: &mut Comms) -> Option<Switch> {
    if let Some((prev_comm, fields)) = name(arguments, "prev_comm=", "prev_pid=", "prev_prio=") {
        // Between both is an arrow, but with tracefs's option `raw`.
        let at = fields.find(" next_comm=")?;
        let (prev, next) = (&fields[..at], &fields[at + 1..]);
        let (next_comm, next) = name(next, "next_comm=", "next_pid=", "next_prio=")?;
        return Some(Switch {
            prev_tid: tid(prev, "prev_pid=")?,
            prev_prio: prio(value(prev, "prev_prio=")?)?,
            left: left(value(prev, "prev_state=")?),
            prev_comm: comms.number(prev_comm.as_bytes()),
            next_tid: tid(next, "next_pid=")?,
            next_prio: prio(value(next, "next_prio=")?)?,
            next_comm: comms.number(next_comm.as_bytes()),
        });
    }
    let arrows = arguments.match_indices(" ==> ").filter_map(|(at, arrow)| {
        let sides = (short(&arguments[..at])?, short(&arguments[at + arrow.len()..])?);
        // What left is a word; an arrow in the next one's name would be a second.
        Some((at, is_kernels(sides.0.0) && !sides.0.3.contains(' '), sides))
    });
    let ((prev_name, prev_tid, prev_prio, state), (next_name, next_tid, next_prio, _)) = true_one(arrows)?;
    Some(Switch {
        prev_tid,
        prev_prio,
        left: left(state),
        prev_comm: comms.number(prev_name.as_bytes()),
        next_tid,
        next_prio,
        next_comm: comms.number(next_name.as_bytes()),
    })
}

fn target(arguments: &str, comms: &mut Comms) -> Option<WakeTarget> {
    if let Some((comm, fields)) = name(arguments, "comm=", "pid=", "prio=") {
        return Some(WakeTarget {
            tid: tid(fields, "pid=")?,
            prio: prio(value(fields, "prio=")?)?,
            comm: comms.number(comm.as_bytes()),
            cpu: number(fields, "target_cpu=").filter(|c| *c < MAX_CPUS).unwrap_or(0),
        });
    }
    // What begins as fields do is cut in its name, unless all of the short form follows.
    let is_whole = |after: &str| !arguments.starts_with("comm=") || after.starts_with("CPU:");
    let (name, tid, prio, after) = short(arguments).filter(|(.., after)| is_whole(after))?;
    let cpu = after.split("CPU:").nth(1).and_then(|c| c.trim().parse().ok()).unwrap_or(0);
    Some(WakeTarget { tid, prio, comm: comms.number(name.as_bytes()), cpu })
}

/// A mark by which another clock is told.
const CLOCK_SYNC: &str = "trace_event_clock_sync: parent_ts=";

/// The event of a line: `Ok(None)` for tracepoints of no use, `Err` for one of use that makes no sense.
pub(super) fn kind(line: &LineHead<'_>, comms: &mut Comms) -> Result<Option<EventKind>, ()> {
    let a = line.arguments;
    let cpu = |key| number(a, key).filter(|c| *c < MAX_CPUS);
    let kind = match line.name {
        "sched_switch" => switch(a, comms).map(EventKind::Switch),
        "sched_waking" => target(a, comms).map(EventKind::Waking),
        "sched_wakeup" => target(a, comms).map(EventKind::Wakeup),
        "sched_wakeup_new" => target(a, comms).map(EventKind::WakeupNew),
        "sched_process_fork" => (|| {
            let (_, fields) = name(a, "comm=", "pid=", "child_comm=")?;
            let (parent, child) = fields.split_once(" child_comm=")?;
            let (comm, child) = child.rsplit_once(" child_pid=").filter(|(comm, _)| has_room(comm))?;
            Some(EventKind::Fork {
                parent: tid(parent, "pid=")?,
                child: child.split_whitespace().next()?.parse().ok().filter(|t| *t < MAX_TID)?,
                comm: comms.number(comm.as_bytes()),
            })
        })(),
        "sched_process_exit" => name(a, "comm=", "pid=", "prio=")
            .and_then(|(_, f)| Some(EventKind::Exit { tid: tid(f, "pid=")? })),
        "sched_process_exec" => (|| {
            let (file, fields) = name(a, "filename=", "pid=", "old_pid=")?;
            let comm = comms.number(program(file.as_bytes()));
            Some(EventKind::Named { tid: tid(fields, "pid=")?, pid: 0, comm, exec: true })
        })(),
        "sched_migrate_task" => (|| {
            let (_, fields) = name(a, "comm=", "pid=", "prio=")?;
            let to = number(fields, "dest_cpu=").filter(|c| *c < MAX_CPUS)?;
            Some(EventKind::Migrate { tid: tid(fields, "pid=")?, to })
        })(),
        "cpu_idle" => (|| {
            let state: u32 = number(a, "state=")?;
            Some(EventKind::CpuIdle { cpu: cpu("cpu_id=")?, state: (state != u32::MAX).then_some(state) })
        })(),
        "cpu_frequency" => {
            (|| Some(EventKind::CpuFrequency { cpu: cpu("cpu_id=")?, khz: number(a, "state=")? }))()
        }
        // Before Linux 4.16 it has no mode.
        "hrtimer_start" => match value(a, "mode=") {
            Some(mode) => Some(EventKind::HrtimerStart { absolute: is_absolute(mode) }),
            None => return Ok(None),
        },
        "suspend_resume" => {
            let state = a.trim_end();
            // Hibernation's and every sleep's innermost step alike.
            let suspended = state.starts_with("machine_suspend[").then(|| state.ends_with("begin"));
            Some(EventKind::SuspendResume { suspended })
        }
        // systrace and Perfetto write the monotonic clock beside the trace's own.
        marks::EVENT if a.starts_with(CLOCK_SYNC) => match seconds(a[CLOCK_SYNC.len()..].trim()) {
            Some(monotonic_ns) => Some(EventKind::ClockSync { monotonic_ns }),
            None => return Ok(None),
        },
        marks::EVENT if marks::is_mark(a) => (|| {
            let work = MarkedWork { cycles: number(a, "cycles=")?, stall_ns: number(a, "stall_ns=")? };
            Some(EventKind::Work { tid: tid(a, "pid=")?, work })
        })(),
        _ => return Ok(None),
    };
    kind.map(Some).ok_or(())
}

/// The mode's names come from the format file: ABS and REL with how and where it runs. perf shows the number, whose lowest bit is
/// set for REL.
fn is_absolute(mode: &str) -> bool {
    let number = match mode.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => mode.parse(),
    };
    number.map_or_else(|_| mode.contains("ABS"), |mode| mode & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::KernelContext;
    use crate::read::ftrace_line::{Columns, Stamp, parse};

    fn event(line: &str) -> (KernelContext, u32, u16, u64, EventKind, Vec<String>) {
        let mut comms = Comms::default();
        let l = parse(line).unwrap();
        let kind = kind(&l, &mut comms).unwrap().unwrap();
        let names = match kind {
            EventKind::Switch(s) => vec![comms.name(s.prev_comm).into(), comms.name(s.next_comm).into()],
            EventKind::Waking(t) => vec![comms.name(t.comm).into()],
            _ => vec![],
        };
        let Stamp::Ns(time_ns) = l.time else { panic!("{line}") };
        (Columns::default().level(l.flags), l.current.unwrap(), l.cpu, time_ns, kind, names)
    }

    #[test]
    fn tracefs_lines() {
        let (level, current, cpu, time, kind, names) = event(
            "   a [7] b-x-10876   [001] d.s2.  2782.591741: sched_switch: prev_comm=a [7] b-x prev_pid=10876 \
             prev_prio=120 prev_state=R+ ==> next_comm=my prog next_pid=10999 next_prio=98",
        );
        assert_eq!((level, current, cpu, time), (KernelContext::Softirq, 10876, 1, 2_782_591_741_000));
        assert_eq!(names, ["a [7] b-x", "my prog"]);
        let EventKind::Switch(s) = kind else { panic!() };
        assert_eq!((s.left, s.next_tid, s.next_prio), (Left::Runnable, 10999, 98));
        let (level, .., kind, _) =
            event("<idle>-0 (-----) [000] dNh4. 1.5: sched_waking: comm=x pid=9 prio=100 target_cpu=003");
        assert_eq!(level, KernelContext::Hardirq);
        assert!(matches!(kind, EventKind::Waking(WakeTarget { tid: 9, prio: 100, cpu: 3, .. })));
    }

    /// Fifteen bytes are a program's own to choose (prctl(2), PR_SET_NAME), and the kernel writes them as they are.
    #[test]
    fn no_name_forges_an_event() {
        for forged in [
            "a-1 [0] 1: b: c",
            "[001] 2.5: x: y",
            "a prev_pid=7",
            "a pid=7 prio=9",
            "a next_pid=7",
            " next_comm= x",
            " ==> next_comm=",
            " ==> x:1 [2] R",
            "a:1 [1] R ==> b",
            "child_comm=a b",
            "b child_pid=9",
            "prev_state=X",
            "1 2 [3] 4.5: a",
            "\u{fffd}-1 [0] 1: b:c",
            "-1 0d..2 1: x:",
        ] {
            for head in
                [format!("{forged:>16}-7     [002] d..2. 27.5: "), format!("{forged:>16}     7 [002] 27.5: ")]
            {
                let switch = format!(
                    "{head}sched_switch: prev_comm={forged} prev_pid=7 prev_prio=120 prev_state=S \
                     ==> next_comm={forged} next_pid=8 next_prio=98"
                );
                let short = format!("{head}sched_switch: {forged}:7 [120] S ==> {forged}:8 [98]");
                for line in [switch, short] {
                    let (_, current, cpu, time, kind, names) = event(&line);
                    assert_eq!((current, cpu, time), (7, 2, 27_500_000_000), "{line}");
                    let EventKind::Switch(s) = kind else { panic!("{line}") };
                    assert_eq!(
                        (s.prev_tid, s.next_tid, s.next_prio, s.left),
                        (7, 8, 98, Left::Sleep),
                        "{line}"
                    );
                    assert!(names.iter().all(|n| n.trim() == forged.trim()), "{line}: {names:?}");
                }
                let waking = format!("{head}sched_waking: comm={forged} pid=8 prio=98 target_cpu=003");
                let (.., kind, _) = event(&waking);
                assert!(
                    matches!(kind, EventKind::Waking(WakeTarget { tid: 8, prio: 98, cpu: 3, .. })),
                    "{waking}: {kind:?}"
                );
                let of = |what: &str| event(&format!("{head}{what}")).4;
                let fork =
                    of(&format!("sched_process_fork: comm={forged} pid=7 child_comm={forged} child_pid=8"));
                assert!(matches!(fork, EventKind::Fork { parent: 7, child: 8, .. }), "{forged}: {fork:?}");
                let exit = of(&format!("sched_process_exit: comm={forged} pid=7 prio=120"));
                assert!(matches!(exit, EventKind::Exit { tid: 7 }), "{forged}: {exit:?}");
                let exec = of(&format!("sched_process_exec: filename=/{forged} pid=7 old_pid=7"));
                assert!(matches!(exec, EventKind::Named { tid: 7, .. }), "{forged}: {exec:?}");
                let moved =
                    of(&format!("sched_migrate_task: comm={forged} pid=7 prio=120 orig_cpu=0 dest_cpu=3"));
                assert!(matches!(moved, EventKind::Migrate { tid: 7, to: 3 }), "{forged}: {moved:?}");
            }
            let latency = format!(
                "{forged:>16}-7       2d..2.   27us : sched_waking: comm={forged} pid=8 prio=98 target_cpu=003"
            );
            assert_eq!(parse(&latency).map(|l| (l.current, l.cpu)), Some((Some(7), 2)), "{latency}");
        }
    }

    #[test]
    fn raw_lines() {
        let line = |state: &str| {
            format!(
                "a-7 [001] d..2. 27.5: sched_switch: prev_comm=a next_comm=b prev_pid=7 prev_prio=120 prev_state={state} \
                 next_comm=my prog next_pid=8 next_prio=98"
            )
        };
        for (state, wanted) in [
            ("0", Left::Runnable),
            ("1", Left::Sleep),
            ("2", Left::Disk),
            ("130", Left::Disk),
            ("64", Left::Dead),
            ("256", Left::Runnable),
        ] {
            let (.., kind, names) = event(&line(state));
            assert_eq!(names, ["a next_comm=b", "my prog"]);
            let EventKind::Switch(s) = kind else { panic!() };
            assert_eq!((s.left, s.prev_tid, s.next_tid, s.next_prio), (wanted, 7, 8, 98), "{state}");
        }
    }

    #[test]
    fn trace_cmd_and_perf_script_lines() {
        let (.., kind, names) = event(
            "  sleep-10619 [001]  2746.663305: sched_switch:         a:b:10619 [120] D ==> trace-cmd:10616 [120]",
        );
        assert_eq!(names, ["a:b", "trace-cmd"]);
        assert!(matches!(
            kind,
            EventKind::Switch(Switch { prev_tid: 10619, left: Left::Disk, next_tid: 10616, .. })
        ));
        let (_, current, _, time, kind, _) =
            event("swapper     0 [001]  2746.663305123: power:cpu_idle: state=4294967295 cpu_id=1");
        assert_eq!((current, time), (0, 2_746_663_305_123));
        assert_eq!(kind, EventKind::CpuIdle { cpu: 1, state: None });
        let (.., kind, _) = event(
            "perf 7 [000] 5.000001: timer:hrtimer_start: hrtimer=0x1 function=f expires=1 softexpires=1 mode=ABS|HARD",
        );
        assert_eq!(kind, EventKind::HrtimerStart { absolute: true });
    }
}
