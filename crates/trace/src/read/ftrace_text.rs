//! Scheduler events as text: tracefs's `trace`, `trace-cmd report` and `perf script`.
//!
//! ```text
//!             bash-10876   [001] dN.2.  2782.591741: sched_waking: comm=kworker/1:1 pid=41 prio=120 target_cpu=001
//!    sched-pipe-10999 ( 10876) [001] d..2.  2782.5931: sched_switch: prev_comm=...    (option record-tgid)
//!             bash-10876 [001]  2782.591741: sched_switch: bash:10876 [120] S ==> swapper/1:0 [120]   (trace-cmd)
//!             bash 10876 [001]  2782.591741: sched:sched_switch: prev_comm=...         (perf script)
//! ```
//!
//! A name may hold blanks, brackets and dashes, so a line is taken apart from its firmest mark, the
//! `[CPU]` that a time follows, and arguments from their own keys. Of the flags, the third says whose
//! time it was: `s` softirq, `h`, `H`, `Z`, `z` interrupts. `perf script` and some versions of trace-cmd
//! print none: then interrupts cannot be told from tasks, and a warning says so.

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::events::{Comm, Comms, Event, EventKind, Left, Level, Read, Sink, Switch, Target};
use crate::marks::{self, Work};
use crate::read::decode::program;
use crate::read::input::Input;

/// Longest line; the kernel's own have at most a few hundred bytes.
const MOST_LINE: usize = 4 << 10;

/// A line's head.
#[derive(Debug, PartialEq)]
struct Line<'a> {
    current: u32,
    cpu: u16,
    flags: Option<&'a str>,
    time_ns: u64,
    /// Without its system.
    name: &'a str,
    arguments: &'a str,
}

impl Line<'_> {
    fn level(&self) -> Level {
        match self.flags.and_then(|f| f.as_bytes().get(2)) {
            Some(b'h' | b'H' | b'Z' | b'z') => Level::Hardirq,
            Some(b's') => Level::Softirq,
            _ => Level::Task,
        }
    }
}

/// Takes a line's head apart; `None` for anything that is no event.
fn parse(line: &str) -> Option<Line<'_>> {
    let mut from = 0;
    while let Some(open) = line[from..].find('[').map(|i| i + from) {
        from = open + 1;
        let close = line[from..].find(']')? + from;
        let Ok(cpu) = line[from..close].trim().parse::<u16>() else { continue };
        if let Some(parsed) = after_cpu(&line[..open], cpu, &line[close + 1..]) {
            return Some(parsed);
        }
    }
    None
}

fn after_cpu<'a>(before: &'a str, cpu: u16, after: &'a str) -> Option<Line<'a>> {
    if cpu >= MAX_CPUS {
        return None;
    }
    // Flags, or the time at once.
    let (first, rest) = word(after)?;
    let (flags, time, rest) = match time(first) {
        Some(time) => (None, time, rest),
        None => {
            let (second, rest) = word(rest)?;
            (Some(first), time(second)?, rest)
        }
    };
    let (name, arguments) = rest.trim_start().split_once(':')?;
    // perf script puts the system before the name.
    let (name, arguments) = match arguments.split_once(':') {
        Some((event, rest)) if !event.is_empty() && !event.contains([' ', '=']) => (event, rest),
        _ => (name, arguments),
    };
    // The task is the last word before the CPU, after a dash or a blank; `(tgid)` may stand between.
    let mut task = before.trim_end();
    if let Some(t) = task.strip_suffix(')') {
        task = t.rsplit_once('(')?.0.trim_end();
    }
    let digits = task.len() - task.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (_, tid) = task.split_at(task.len() - digits);
    let current = tid.parse().ok().filter(|t| *t < MAX_TID)?;
    Some(Line { current, cpu, flags, time_ns: time, name, arguments: arguments.trim() })
}

fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace)?;
    Some(text.split_at(end))
}

/// `SECONDS.FRACTION:` in ns.
fn time(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.strip_suffix(':')?.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * scale)
}

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

/// A name that may hold blanks: from its key to the next key.
fn name<'a>(arguments: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let from = arguments.find(key)? + key.len();
    let to = arguments[from..].rfind(next)? + from;
    Some(&arguments[from..to])
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
    let (name, tid) = text[..open].trim().rsplit_once(':')?;
    Some((name, tid.parse().ok().filter(|t| *t < MAX_TID)?, prio(rest)?, after))
}

fn switch(arguments: &str, comms: &mut Comms) -> Option<Switch> {
    // tracefs's option `raw` has no arrow.
    let raw = || arguments.rfind(" next_comm=").map(|at| (&arguments[..at], &arguments[at + 1..]));
    let (prev, next) = arguments.split_once(" ==> ").or_else(raw)?;
    if prev.starts_with("prev_comm=") {
        return Some(Switch {
            prev_tid: tid(prev, "prev_pid=")?,
            prev_prio: prio(value(prev, "prev_prio=")?)?,
            left: left(value(prev, "prev_state=")?),
            prev_comm: comms.number(name(prev, "prev_comm=", " prev_pid=")?.as_bytes()),
            next_tid: tid(next, "next_pid=")?,
            next_prio: prio(value(next, "next_prio=")?)?,
            next_comm: comms.number(name(next, "next_comm=", " next_pid=")?.as_bytes()),
        });
    }
    let (prev_name, prev_tid, prev_prio, state) = short(prev)?;
    let (next_name, next_tid, next_prio, _) = short(next)?;
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

fn target(arguments: &str, comms: &mut Comms) -> Option<Target> {
    if arguments.starts_with("comm=") {
        return Some(Target {
            tid: tid(arguments, "pid=")?,
            prio: prio(value(arguments, "prio=")?)?,
            comm: comms.number(name(arguments, "comm=", " pid=")?.as_bytes()),
            cpu: number(arguments, "target_cpu=").filter(|c| *c < MAX_CPUS).unwrap_or(0),
        });
    }
    let (name, tid, prio, after) = short(arguments)?;
    let cpu = after.split("CPU:").nth(1).and_then(|c| c.trim().parse().ok()).unwrap_or(0);
    Some(Target { tid, prio, comm: comms.number(name.as_bytes()), cpu })
}

/// The event of a line: `Ok(None)` for tracepoints of no use, `Err` for one of use that makes no sense.
fn kind(line: &Line<'_>, comms: &mut Comms) -> Result<Option<EventKind>, ()> {
    let a = line.arguments;
    let cpu = |key| number(a, key).filter(|c| *c < MAX_CPUS);
    let kind = match line.name {
        "sched_switch" => switch(a, comms).map(EventKind::Switch),
        "sched_waking" => target(a, comms).map(EventKind::Waking),
        "sched_wakeup" => target(a, comms).map(EventKind::Wakeup),
        "sched_wakeup_new" => target(a, comms).map(EventKind::WakeupNew),
        "sched_process_fork" => (|| {
            Some(EventKind::Fork {
                parent: tid(a, "pid=")?,
                child: tid(a, "child_pid=")?,
                comm: name(a, "child_comm=", " child_pid=").map_or(Comm(0), |n| comms.number(n.as_bytes())),
            })
        })(),
        "sched_process_exit" => tid(a, "pid=").map(|tid| EventKind::Exit { tid }),
        "sched_process_exec" => (|| {
            let comm = comms.number(program(name(a, "filename=", " pid=")?.as_bytes()));
            Some(EventKind::Named { tid: tid(a, "pid=")?, pid: 0, comm, exec: true })
        })(),
        "sched_migrate_task" => {
            tid(a, "pid=").and_then(|tid| Some(EventKind::Migrate { tid, to: cpu("dest_cpu=")? }))
        }
        "cpu_idle" => (|| {
            let state: u32 = number(a, "state=")?;
            Some(EventKind::CpuIdle { cpu: cpu("cpu_id=")?, state: (state != u32::MAX).then_some(state) })
        })(),
        "cpu_frequency" => {
            (|| Some(EventKind::CpuFrequency { cpu: cpu("cpu_id=")?, khz: number(a, "state=")? }))()
        }
        // The mode's names come from the format file: ABS and REL with how and where it runs; before 4.16 none.
        "hrtimer_start" => match value(a, "mode=") {
            Some(mode) => Some(EventKind::HrtimerStart { absolute: mode.contains("ABS") }),
            None => return Ok(None),
        },
        marks::EVENT if marks::is_mark(a) => (|| {
            let work = Work { cycles: number(a, "cycles=")?, stall_ns: number(a, "stall_ns=")? };
            Some(EventKind::Work { tid: tid(a, "pid=")?, work })
        })(),
        _ => return Ok(None),
    };
    kind.map(Some).ok_or(())
}

/// Whether text looks like a recording: one of its lines is an event or ftrace's own head.
pub(crate) fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().any(|l| l.starts_with("# tracer:") || parse(l).is_some())
}

/// Reads from a position to the end. Damage costs a line at a time.
pub(crate) fn read<S: Sink>(input: &Input, at: u64, comms: &mut Comms, sink: &mut S) -> Read {
    let mut read = Read { format: "ftrace text", ..Read::default() };
    let mut window = input.window(at, input.len());
    let (mut bad, mut flagless, mut last) = (0u64, true, 0);
    let (mut skipping, mut noted) = (false, false);
    loop {
        let mut buffer = window.peek(1);
        let mut end = buffer.iter().position(|&b| b == b'\n');
        if end.is_none() {
            buffer = window.peek(MOST_LINE);
            end = buffer.iter().position(|&b| b == b'\n');
        }
        let (length, whole) = match end {
            Some(end) => (end, true),
            None => (buffer.len(), buffer.len() < MOST_LINE),
        };
        if length == 0 && end.is_none() {
            break;
        }
        // The middle and the end of an overlong line are no lines of their own.
        let skip = std::mem::replace(&mut skipping, !whole) || !whole || length > MOST_LINE;
        if !skip {
            let line = String::from_utf8_lossy(&buffer[..length]);
            // Pages of systrace before 2015 have the text as a string of their program.
            let line = line.strip_suffix("\\n\\").unwrap_or(&line);
            if let Some(line) = parse(line) {
                if std::mem::take(&mut noted) {
                    sink.header(&read);
                }
                read.events += 1;
                flagless &= line.flags.is_none();
                last = line.time_ns;
                match kind(&line, comms) {
                    Ok(Some(kind)) => {
                        let (time_ns, cpu) = (line.time_ns, line.cpu);
                        let event = Event { time_ns, cpu, level: line.level(), current: line.current, kind };
                        sink.event(&event, comms);
                    }
                    Ok(None) => {}
                    Err(()) => bad += 1,
                }
            } else if let Some(n) = lost(line) {
                read.lost = read.lost.saturating_add(n);
                let kind = EventKind::Lost(n);
                sink.event(&Event { time_ns: last, cpu: 0, level: Level::Task, current: 0, kind }, comms);
            } else if let Some(cpus) = line.split("#P:").nth(1).or(line.strip_prefix("cpus=")) {
                read.cpus = cpus.trim().parse().ok().filter(|n| *n <= MAX_CPUS);
            } else if read.events == 0 && marks::take_head(line, &mut read.notes).is_some() {
                noted = true;
            } else if !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("CPU") {
                bad += 1;
            }
        } else if !whole {
            bad += 1;
        }
        window.skip(length as u64 + u64::from(end.is_some()));
    }
    if bad > 0 {
        read.warnings.push(format!("{bad} lines are no events or damaged and left out."));
    }
    if flagless && read.events > 0 {
        read.warnings.push(
            "The text has no irq flags: wake-ups by interrupts on a busy CPU count as its task's; \
             `trace-cmd report -l` or the recording itself has them."
                .into(),
        );
    }
    read
}

/// `CPU:1 [LOST 123 EVENTS]`
fn lost(line: &str) -> Option<u64> {
    let (_, after) = line.trim_start().strip_prefix("CPU")?.split_once("[LOST ")?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> (Level, u32, u16, u64, EventKind, Vec<String>) {
        let mut comms = Comms::default();
        let l = parse(line).unwrap();
        let kind = kind(&l, &mut comms).unwrap().unwrap();
        let names = match kind {
            EventKind::Switch(s) => vec![comms.name(s.prev_comm).into(), comms.name(s.next_comm).into()],
            EventKind::Waking(t) => vec![comms.name(t.comm).into()],
            _ => vec![],
        };
        (l.level(), l.current, l.cpu, l.time_ns, kind, names)
    }

    #[test]
    fn tracefs_lines() {
        let (level, current, cpu, time, kind, names) = event(
            "   a [7] b-x-10876   [001] d.s2.  2782.591741: sched_switch: prev_comm=a [7] b-x prev_pid=10876 \
             prev_prio=120 prev_state=R+ ==> next_comm=my prog next_pid=10999 next_prio=98",
        );
        assert_eq!((level, current, cpu, time), (Level::Softirq, 10876, 1, 2_782_591_741_000));
        assert_eq!(names, ["a [7] b-x", "my prog"]);
        let EventKind::Switch(s) = kind else { panic!() };
        assert_eq!((s.left, s.next_tid, s.next_prio), (Left::Runnable, 10999, 98));
        let (level, .., kind, _) =
            event("<idle>-0 (-----) [000] dNh4. 1.5: sched_waking: comm=x pid=9 prio=100 target_cpu=003");
        assert_eq!(level, Level::Hardirq);
        assert!(matches!(kind, EventKind::Waking(Target { tid: 9, prio: 100, cpu: 3, .. })));
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

    #[test]
    fn other_lines_are_no_events() {
        for line in
            ["", "# tracer: nop", "[", "x-1 [000] y", "x-1 [a] d..1. 1.0: e: f", "CPU:1 [LOST 12 EVENTS]"]
        {
            assert_eq!(parse(line), None, "{line}");
        }
        assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), Some(12));
    }
}
