//! The same trace in the dress of each format: of one resolution the same workload to the bit, of a coarser one that of the trace
//! rounded so; what a format cannot tell is listed. Dresses are by our exporter and by the tools themselves, where they run.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::process::Command;
use support::{bytes, lift, recorded, same, source, work};
use wattwise_model::workload::Workload;
use wattwise_trace::events::{Comms, Event, EventKind, KernelContext, Left, Sink, WakeTarget};
use wattwise_trace::{ImportOptions, Lack, marks, summarise, visit};

const RECORDINGS: [&str; 9] = [
    "tc6.dat",
    "tc7-none.dat",
    "tc7-zstd.dat",
    "ftrace.txt",
    "pipe.perf",
    "pipe-z.perf",
    "pipemode.perf",
    "sched.perf",
    "mix.perf",
];

/// How events are written.
#[derive(Clone, Copy)]
struct Cut {
    /// Digits of a second.
    digits: usize,
    /// What trace-cmd does with the rest: it rounds, the kernel and perf cut (`tep_print_event`, `trace_print_context`,
    /// `timestamp__scnprintf_usec`).
    rounds: bool,
    lacks: &'static [Lack],
}

const WHOLE: Cut = Cut { digits: 9, rounds: false, lacks: &[] };

/// Writes events as text.
struct Dress {
    text: String,
    cut: Cut,
}

impl Dress {
    fn lacks(&self, lack: Lack) -> bool {
        self.cut.lacks.contains(&lack)
    }
}

impl Sink for Dress {
    fn event(&mut self, event: &Event, comms: &Comms) {
        if event.kind.is_side() && self.lacks(Lack::Kinship) {
            return;
        }
        let Some(told) = told(&event.kind, comms) else { return };
        let level = match event.level {
            KernelContext::Task => '.',
            KernelContext::Softirq => 's',
            KernelContext::Hardirq => 'h',
        };
        let flags = if self.lacks(Lack::Interrupts) { String::new() } else { format!("d.{level}2. ") };
        let digits = self.cut.digits;
        let unit = 10u64.pow(9 - digits as u32);
        let whole = (event.time_ns + if self.cut.rounds { unit / 2 } else { 0 }) / unit;
        let second = 10u64.pow(digits as u32);
        let (s, rest) = (whole / second, whole % second);
        self.text += &format!("x-{} [{:03}] {flags}{s}.{rest:0digits$}: {told}\n", event.current, event.cpu);
    }
}

/// An event's name and fields.
fn told(kind: &EventKind, comms: &Comms) -> Option<String> {
    let letter = |left: Left| match left {
        Left::Runnable => 'R',
        Left::Sleep => 'S',
        Left::Disk => 'D',
        Left::Idle => 'I',
        Left::Stopped => 'T',
        Left::Dead => 'X',
    };
    let woken = |name: &str, t: WakeTarget| {
        format!("{name}: comm={} pid={} prio={} target_cpu={:03}", comms.name(t.comm), t.tid, t.prio, t.cpu)
    };
    Some(match *kind {
        EventKind::Switch(s) => format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> next_comm={} next_pid={} next_prio={}",
            comms.name(s.prev_comm),
            s.prev_tid,
            s.prev_prio,
            letter(s.left),
            comms.name(s.next_comm),
            s.next_tid,
            s.next_prio
        ),
        EventKind::Waking(t) => woken("sched_waking", t),
        EventKind::Wakeup(t) => woken("sched_wakeup", t),
        EventKind::WakeupNew(t) => woken("sched_wakeup_new", t),
        EventKind::Fork { parent, child, comm } => {
            format!(
                "sched_process_fork: comm=x pid={parent} child_comm={} child_pid={child}",
                comms.name(comm)
            )
        }
        EventKind::Exit { tid } => format!("sched_process_exit: comm=x pid={tid} prio=120"),
        EventKind::CpuIdle { cpu, state } => {
            format!("cpu_idle: state={} cpu_id={cpu}", state.unwrap_or(u32::MAX))
        }
        EventKind::CpuFrequency { cpu, khz } => format!("cpu_frequency: state={khz} cpu_id={cpu}"),
        EventKind::HrtimerStart { absolute } => {
            let mode = if absolute { "ABS" } else { "REL" };
            format!("hrtimer_start: hrtimer=0 function=f expires=1 softexpires=1 mode={mode}")
        }
        EventKind::Named { tid, pid, comm, exec } => {
            format!("PERF_RECORD_COMM{}: {}:{pid}/{tid}", if exec { " exec" } else { "" }, comms.name(comm))
        }
        EventKind::Parent { parent, child, pid } => {
            format!("PERF_RECORD_FORK({pid}:{child}):({parent}:{parent})")
        }
        EventKind::Ended { tid } => format!("PERF_RECORD_EXIT({tid}:{tid}):(0:0)"),
        _ => return None,
    })
}

/// A recording in the dress of text, with a head as `perf script --header` has it.
fn dressed(data: &[u8], cut: Cut) -> Vec<u8> {
    let mut dress = Dress { text: String::new(), cut };
    let read = visit(source(data), &ImportOptions::default(), &mut dress).unwrap();
    let mut head = marks::head(&read.notes);
    head += &read.cpus.map(|n| format!("# nrcpus online : {n}\n")).unwrap_or_default();
    let name = read.cpu_name.filter(|_| !cut.lacks.contains(&Lack::Processor));
    head += &name.map(|name| format!("# cpudesc : {name}\n")).unwrap_or_default();
    (head + &dress.text).into_bytes()
}

/// All of a workload but what tells of the file itself.
#[track_caller]
fn same_to_the_bit(w: Workload, wanted: &Workload, name: &str) {
    same(&work(&w), &work(wanted), name);
    assert_eq!((w.release_ns, &w.tasks), (wanted.release_ns, &wanted.tasks), "{name}");
    let (mut theirs, other) = (w.recorded.unwrap(), recorded(wanted));
    (theirs.events, theirs.warnings) = (other.events, other.warnings.clone());
    assert_eq!(&theirs, other, "{name}");
}

fn lacks(data: &[u8]) -> Vec<Lack> {
    summarise(source(data), &ImportOptions::default()).unwrap().lacks
}

#[test]
fn every_recording_in_the_dress_of_text_is_the_same_work_to_the_bit() {
    for name in RECORDINGS {
        let wanted = lift(&bytes(name)).unwrap();
        same_to_the_bit(lift(&dressed(&bytes(name), WHOLE)).unwrap(), &wanted, name);
    }
}

/// What a tool prints of a recording; `None` where the tool is not to be had.
fn shown(tool: &str, arguments: &[&str], name: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, bytes(name)).unwrap();
    let out = Command::new(tool).args(arguments).arg("-i").arg(&file).output().ok()?;
    let shown = out.status.success().then_some(out.stdout);
    if shown.is_none() {
        println!("skipped: {tool} {arguments:?} {name}");
    }
    shown
}

/// Each way to show perf.data and trace.dat, and what is lost by it.
#[test]
fn what_the_tools_show_is_the_same_work_but_for_what_they_leave_out() {
    use Lack::{Interrupts, Kinship, Nanoseconds, Processor};
    let cut = |digits, rounds, lacks| Cut { digits, rounds, lacks };
    let whole = ["script", "-f", "--ns", "--header", "--show-task-events"];
    for (tool, arguments, kind, cut) in [
        ("perf", &whole[..], ".perf", cut(9, false, &[Interrupts][..])),
        (
            "perf",
            &["script", "-f", "--header", "--show-task-events"],
            ".perf",
            cut(6, false, &[Interrupts, Nanoseconds]),
        ),
        ("perf", &["script", "-f", "--ns", "--header"], ".perf", cut(9, false, &[Interrupts, Kinship])),
        ("trace-cmd", &["report", "-t", "-l"], ".dat", cut(9, false, &[Kinship, Processor])),
        ("trace-cmd", &["report", "-t"], ".dat", cut(9, false, &[Interrupts, Kinship, Processor])),
        ("trace-cmd", &["report", "-t", "-R"], ".dat", cut(9, false, &[Interrupts, Kinship, Processor])),
        ("trace-cmd", &["report", "-l"], ".dat", cut(6, true, &[Nanoseconds, Kinship, Processor])),
        ("trace-cmd", &["report"], ".dat", cut(6, true, &[Interrupts, Nanoseconds, Kinship, Processor])),
    ] {
        for name in RECORDINGS.iter().filter(|name| name.ends_with(kind)) {
            let Some(text) = shown(tool, arguments, name) else { return };
            let said = format!("{tool} {arguments:?} {name}");
            let wanted = lift(&dressed(&bytes(name), cut)).unwrap();
            same_to_the_bit(lift(&text).unwrap_or_else(|e| panic!("{said}: {e}")), &wanted, &said);
            assert_eq!(lacks(&text), cut.lacks, "{said}");
        }
    }
}

#[test]
fn what_a_format_cannot_tell_is_listed() {
    for name in RECORDINGS {
        let wanted: &[Lack] = match name.rsplit_once('.').unwrap().1 {
            "perf" => &[],
            "dat" => &[Lack::Kinship, Lack::Processor],
            _ => &[Lack::Nanoseconds, Lack::Kinship, Lack::Processor],
        };
        let told = summarise(source(&bytes(name)), &ImportOptions::default()).unwrap();
        assert_eq!(told.lacks, wanted, "{name}");
        let page = told.to_string();
        assert_eq!(page.contains("not told    "), !wanted.is_empty(), "{page}");
        assert!(wanted.iter().all(|lack| page.contains(lack.what())), "{page}");
    }
}

/// By Perfetto's own messages (`traces/as_perfetto.py`): events one by one, in packets within packets, and as columns.
#[test]
fn perfettos_recordings_are_the_same_work() {
    let rounds = lift(include_bytes!("traces/rounds.txt.xz")).unwrap();
    let processor = |w: &Workload| {
        let mut w = w.clone();
        w.recorded.as_mut().unwrap().cpu_name = Some("Made up".into());
        w
    };
    for (name, wanted) in [
        ("tc6.pftrace", &lift(&bytes("tc6.dat")).unwrap()),
        ("packed.pftrace", &rounds),
        ("compact.pftrace", &rounds),
    ] {
        let data = bytes(name);
        same_to_the_bit(lift(&data).unwrap(), &processor(wanted), name);
        assert_eq!(lacks(&data), [Lack::Kinship], "{name}");
    }
    // Of a ring the bundles of one CPU begin later: what both cover counts.
    let late = lift(&bytes("late.pftrace")).unwrap();
    assert!(
        support::warned(&late, "Not all CPUs are recorded all the time"),
        "{:?}",
        recorded(&late).warnings
    );
    assert!(
        (rounds.span_ns / 2).abs_diff(late.span_ns) < 20_000_000,
        "{} of {}",
        late.span_ns,
        rounds.span_ns
    );
}

#[test]
fn perfettos_recordings_that_are_damaged_cost_what_is_damaged() {
    let data = bytes("compact.pftrace");
    for end in (1..data.len()).step_by(37) {
        let _ = lift(&data[..end]);
    }
    let half = lift(&data[..data.len() / 2]).unwrap();
    assert!(support::warned(&half, "ends within a packet"), "{:?}", recorded(&half).warnings);
    // A budget of memory that its events do not fit in.
    let tight = ImportOptions { budget: "memory=5000".parse().unwrap(), ..Default::default() };
    let over = wattwise_trace::import(source(&data), &tight).unwrap_err().to_string();
    assert!(over.contains("--budget memory="), "{over}");
    // One packet, with nothing of the scheduler.
    let other = lift(&data[..60]).unwrap_err().to_string();
    assert!(
        other.contains("Perfetto") && other.contains("traceconv systrace") && !other.contains('\n'),
        "{other}"
    );
}
