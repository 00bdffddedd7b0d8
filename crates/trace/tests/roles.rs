//! Which tasks are the work, which go on beside it, and how the clock of a recording is known.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use wattwise_model::workload::{
    ClockOrigin, ForegroundOrigin, MemoryShare, Op, Program, Recorded, Role, Task, Workload,
};
use wattwise_trace::{ImportOptions, Source, TraceError, import};

type Named<'a> = (&'a str, u32);
const IDLE: Named<'_> = ("swapper", 0);

/// A recording as text, its times in microseconds.
#[derive(Default)]
struct Text(String);

impl Text {
    fn new() -> Text {
        Text("# tracer: nop\n".into())
    }

    fn line(mut self, us: u64, by: u32, cpu: u16, rest: &str) -> Text {
        let (s, us) = (1 + us / 1_000_000, us % 1_000_000);
        self.0 += &format!("x-{by} [{cpu:03}] d..2. {s}.{us:06}: {rest}\n");
        self
    }

    fn switch(self, us: u64, cpu: u16, prev: Named<'_>, left: char, next: Named<'_>) -> Text {
        let rest = format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={left} ==> next_comm={} \
             next_pid={} next_prio=120",
            prev.0, prev.1, next.0, next.1
        );
        self.line(us, prev.1, cpu, &rest)
    }

    fn fork(self, us: u64, parent: Named<'_>, child: u32) -> Text {
        let (name, tid) = parent;
        let fork = format!("sched_process_fork: comm={name} pid={tid} child_comm={name} child_pid={child}");
        let new = format!("sched_wakeup_new: comm={name} pid={child} prio=120 target_cpu=000");
        self.line(us, tid, 0, &fork).line(us, tid, 0, &new)
    }

    fn exec(self, us: u64, tid: u32, file: &str) -> Text {
        self.line(us, tid, 0, &format!("sched_process_exec: filename={file} pid={tid} old_pid={tid}"))
    }

    fn exit(self, us: u64, (name, tid): Named<'_>) -> Text {
        self.line(us, tid, 0, &format!("sched_process_exit: comm={name} pid={tid} prio=120"))
    }

    fn waking(self, us: u64, by: u32, (name, tid): Named<'_>) -> Text {
        self.line(us, by, 0, &format!("sched_waking: comm={name} pid={tid} prio=120 target_cpu=000"))
    }

    fn lift(&self, options: &ImportOptions) -> Result<Workload, TraceError> {
        import(Source::Bytes { name: "made.txt".into(), data: Arc::from(self.0.as_bytes()) }, options)
    }
}

fn task<'a>(w: &'a Workload, name: &str) -> &'a Task {
    w.tasks.iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn ops(t: &Task) -> Vec<Op> {
    let Program::Recorded(script) = &t.program else { panic!("not recorded") };
    script.reader().collect()
}

fn recorded(w: &Workload) -> &Recorded {
    w.recorded.as_ref().unwrap()
}

/// trace-cmd's child execs `make`, which starts `cc` and a daemon; beside them two tasks of `other`
/// wake each other, a kernel thread works, and a third of `other` wakes the compiler.
fn made(ends: bool) -> Text {
    let recorder = ("trace-cmd", 10);
    let text = Text::new()
        .switch(0, 0, IDLE, 'R', recorder)
        .fork(100, recorder, 20)
        .switch(200, 0, recorder, 'S', ("trace-cmd", 20))
        .exec(300, 20, "/usr/bin/make")
        .fork(400, ("make", 20), 21)
        .fork(500, ("make", 20), 22)
        .switch(600, 0, ("make", 20), 'S', ("make", 21))
        .exec(610, 21, "/usr/bin/cc")
        .switch(700, 0, ("cc", 21), 'S', ("make", 22))
        .exec(710, 22, "daemon")
        .switch(800, 0, ("daemon", 22), 'S', ("other", 30))
        .waking(850, 30, ("other", 31))
        .switch(900, 0, ("other", 30), 'S', ("other", 31))
        .waking(950, 31, ("other", 30))
        .switch(1000, 0, ("other", 31), 'S', ("other", 30))
        .switch(1400, 0, ("other", 30), 'S', ("kworker/0:1", 40))
        .switch(1500, 0, ("kworker/0:1", 40), 'S', ("nosy", 50))
        .waking(1550, 50, ("cc", 21))
        .switch(1600, 0, ("nosy", 50), 'S', ("cc", 21))
        .exit(1700, ("cc", 21))
        .waking(1710, 21, ("make", 20))
        .switch(1720, 0, ("cc", 21), 'Z', ("make", 20));
    if ends {
        text.exit(1800, ("make", 20)).waking(1805, 20, recorder).switch(1810, 0, ("make", 20), 'Z', recorder)
    } else {
        text.switch(1810, 0, ("make", 20), 'S', recorder)
    }
    .switch(2000, 0, recorder, 'S', IDLE)
}

#[test]
fn the_foreground_is_the_commands_tree_until_it_exits() {
    let w = made(true).lift(&ImportOptions::default()).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Command { name: "make".into() });
    assert_eq!(w.release_ns, 300_000);
    assert!(!w.is_interactive());
    for (name, role, ends, repeats) in [
        ("make", Role::Foreground, true, false),
        ("cc", Role::Foreground, true, false),
        // It lives on, and is joined to the work by its start.
        ("daemon", Role::Background, false, false),
        ("trace-cmd", Role::Background, false, false),
        // It wakes the compiler.
        ("nosy", Role::Background, false, false),
        ("other", Role::Background, false, true),
        ("kworker/0:1", Role::Background, false, true),
    ] {
        for t in w.tasks.iter().filter(|t| t.name == name) {
            assert_eq!((t.role, t.ends, t.repeats), (role, ends, repeats), "{name}");
        }
        // Only what does not repeat waits on at its end.
        let waits = ops(task(&w, name)).last() == Some(&Op::Block);
        assert_eq!(waits, !ends && !repeats, "{name}");
    }
    let strangers = &recorded(&w).strangers;
    // other 100 + 100 + 400, nosy 100, daemon 100; the recorder's 200 + 190 and the kernel's are nobody's.
    assert_eq!((strangers.busy_ns, strangers.all_ns), (800_000, 2_000_000));
    assert_eq!(strangers.greatest, Some(("other".into(), 600_000)));
    assert!((strangers.share() - 0.4).abs() < 1e-9);
}

#[test]
fn a_command_that_outlives_its_recording_has_no_end() {
    let w = made(false).lift(&ImportOptions::default()).unwrap();
    assert!(w.is_interactive());
    assert_eq!(task(&w, "daemon").role, Role::Foreground);
    assert!(!task(&w, "cc").ends);
    let warnings = &recorded(&w).warnings;
    assert!(warnings.iter().any(|w| w.contains("ended before the command (make) did")), "{warnings:?}");
}

#[test]
fn tasks_are_named_by_name_or_number_with_their_descendants() {
    let named = |what: &[&str]| {
        let foreground = what.iter().map(|w| (*w).to_owned()).collect();
        made(true).lift(&ImportOptions { foreground, ..ImportOptions::default() })
    };
    let w = named(&["cc", "30"]).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Named("cc, 30".into()));
    assert_eq!(task(&w, "cc").role, Role::Foreground);
    assert_eq!(task(&w, "make").role, Role::Background);
    let others: Vec<Role> = w.tasks.iter().filter(|t| t.name == "other").map(|t| t.role).collect();
    assert_eq!(others, [Role::Foreground, Role::Background]);
    // 30 does not end, so no end is waited for.
    assert!(w.is_interactive());
    let w = named(&["make"]).unwrap();
    assert!(task(&w, "cc").is_foreground() && task(&w, "cc").ends && !w.is_interactive());
    assert_eq!(task(&w, "daemon").role, Role::Background);
    for (given, told) in [("mkae", "did you mean 'make'?"), ("4711", "--foreground 4711")] {
        let error = named(&[given]).unwrap_err().to_string();
        assert!(error.starts_with("made.txt: --foreground") && error.contains(told), "{error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_foreground_without_work_is_an_error() {
    let text = Text::new().switch(0, 0, IDLE, 'R', ("a", 5)).fork(50, ("a", 5), 6).switch(
        100,
        0,
        ("a", 5),
        'S',
        IDLE,
    );
    let options = ImportOptions { foreground: vec!["6".into()], ..ImportOptions::default() };
    let error = text.lift(&options).unwrap_err();
    assert!(matches!(error, TraceError::NoForeground { .. }) && error.to_string().contains("never ran"));
}

#[test]
fn without_a_mark_all_programs_count_and_none_ends() {
    let text = Text::new()
        .switch(0, 0, IDLE, 'R', ("a", 5))
        .switch(100, 0, ("a", 5), 'X', ("kworker/0:1", 7))
        .switch(200, 0, ("kworker/0:1", 7), 'S', IDLE);
    let w = text.lift(&ImportOptions::default()).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Unmarked);
    assert!(w.is_interactive() && task(&w, "a").is_foreground());
    assert!(task(&w, "kworker/0:1").repeats);
    assert_eq!(recorded(&w).strangers.busy_ns, 0);
    // `perf record -a sleep 10` records a machine, not a command.
    let text = Text::new()
        .switch(0, 0, IDLE, 'R', ("perf-exec", 5))
        .exec(50, 5, "/bin/sleep")
        .switch(100, 0, ("sleep", 5), 'S', ("a", 6))
        .switch(200, 0, ("a", 6), 'S', IDLE);
    let w = text.lift(&ImportOptions::default()).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Unmarked);
}

/// A program that happens to be called as the recorder is, and runs beside it, is no recorder.
#[test]
fn a_program_of_the_recorders_name_is_another_program() {
    let recorder = ("wattwise", 10);
    let w = Text::new()
        .switch(0, 0, IDLE, 'R', recorder)
        .fork(100, recorder, 20)
        .switch(200, 0, recorder, 'S', ("wattwise", 20))
        .exec(300, 20, "/usr/bin/make")
        .switch(1000, 0, ("make", 20), 'R', ("wattwise", 60))
        .switch(1600, 0, ("wattwise", 60), 'S', ("make", 20))
        .exit(1800, ("make", 20))
        .switch(1810, 0, ("make", 20), 'Z', recorder)
        .switch(2000, 0, recorder, 'S', IDLE)
        .lift(&ImportOptions::default())
        .unwrap();
    let strangers = &recorded(&w).strangers;
    assert_eq!((strangers.busy_ns, strangers.all_ns), (600_000, 2_000_000), "not the recorder's 390 us");
    assert_eq!(strangers.greatest, Some(("wattwise".into(), 600_000)));
    let told: Vec<_> = recorded(&w).warnings.iter().filter(|w| w.contains("30.0 %")).collect();
    assert!(told.len() == 1 && told[0].contains("wattwise (0.001 s)"), "{:?}", recorded(&w).warnings);
}

#[test]
fn strangers_can_be_left_out() {
    let options = ImportOptions { only_foreground: true, ..ImportOptions::default() };
    let w = made(true).lift(&options).unwrap();
    let whole = made(true).lift(&ImportOptions::default()).unwrap();
    assert_eq!(w.tasks.len(), whole.tasks.len());
    for t in &w.tasks {
        let stranger = ["trace-cmd", "other", "nosy", "daemon"].contains(&t.name.as_str());
        assert_eq!(ops(t) == [Op::Block], stranger, "{}", t.name);
        assert!(!(stranger && t.repeats), "{}", t.name);
    }
    // Who was woken by a stranger sleeps for as long as it did.
    assert!(ops(task(&w, "cc")).contains(&Op::SleepFor(850_000)), "{:?}", ops(task(&w, "cc")));
    assert_eq!(recorded(&w).strangers, recorded(&whole).strangers);
}

/// Bytes of a perf.data as far as it takes: two events' attributes, format files, notes, records.
struct PerfData {
    records: Vec<u8>,
    notes: Option<Vec<u8>>,
    cpu_name: &'static str,
}

const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
    \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%s\", __print_flags(REC->prev_state, \"|\", { 0x01, \"S\" }, { 0x2, \"D\" }, { 0x10, \"X\" })\n";

/// IDENTIFIER, TID, TIME, READ, CPU, RAW.
const SAMPLE_TYPE: u64 = 65536 | 2 | 4 | 16 | 128 | 1024;
/// TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, ID, GROUP.
const READ_FORMAT: u64 = 15;
/// The switch's id and those of cycles and cache misses.
const IDS: [u64; 3] = [101, 102, 103];

impl PerfData {
    fn new() -> PerfData {
        PerfData { records: Vec::new(), notes: None, cpu_name: "" }
    }

    fn record(mut self, kind: u32, misc: u16, body: &[u8]) -> PerfData {
        self.records.extend(kind.to_le_bytes());
        self.records.extend(misc.to_le_bytes());
        self.records.extend((body.len() as u16 + 8).to_le_bytes());
        self.records.extend(body);
        self
    }

    fn side(self, kind: u32, misc: u16, mut body: Vec<u8>, ns: u64) -> PerfData {
        for word in [0, ns, 0, IDS[0]] {
            body.extend(word.to_le_bytes());
        }
        self.record(kind, misc, &body)
    }

    fn comm(self, ns: u64, tid: u32, name: &str, exec: bool) -> PerfData {
        let mut body = [tid.to_le_bytes(), tid.to_le_bytes()].concat();
        body.extend(name.as_bytes());
        body.resize((8 + name.len() + 1).next_multiple_of(8), 0);
        self.side(3, if exec { 1 << 13 } else { 0 }, body, ns)
    }

    fn fork(self, ns: u64, (parent, parent_tid): (u32, u32), (pid, tid): (u32, u32)) -> PerfData {
        let mut body: Vec<u8> = [pid, parent, tid, parent_tid].iter().flat_map(|n| n.to_le_bytes()).collect();
        body.extend(ns.to_le_bytes());
        self.side(7, 0, body, ns)
    }

    fn exit(self, ns: u64, (pid, tid): (u32, u32)) -> PerfData {
        let mut body: Vec<u8> = [pid, 1, tid, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
        body.extend(ns.to_le_bytes());
        self.side(4, 0, body, ns)
    }

    fn switch(
        self,
        ns: u64,
        prev: Named<'_>,
        state: u64,
        next: Named<'_>,
        cycles: u64,
        misses: u64,
    ) -> PerfData {
        let mut raw = vec![0u8; 64];
        raw[..2].copy_from_slice(&372u16.to_le_bytes());
        raw[4..8].copy_from_slice(&prev.1.to_le_bytes());
        raw[8..8 + prev.0.len()].copy_from_slice(prev.0.as_bytes());
        raw[24..28].copy_from_slice(&prev.1.to_le_bytes());
        raw[28] = 120;
        raw[32..40].copy_from_slice(&state.to_le_bytes());
        raw[40..40 + next.0.len()].copy_from_slice(next.0.as_bytes());
        raw[56..60].copy_from_slice(&next.1.to_le_bytes());
        raw[60] = 120;
        let mut body = Vec::new();
        // Identifier, task, time, CPU; then three counts, times enabled and running, and value and id of each.
        for word in [IDS[0], 0, ns, 0, 3, ns, ns, 1, IDS[0], cycles, IDS[1], misses, IDS[2]] {
            body.extend(word.to_le_bytes());
        }
        body.extend((raw.len() as u32 + 4).to_le_bytes());
        body.extend(raw);
        body.extend([0; 4]);
        self.record(9, 0, &body)
    }

    fn bytes(&self) -> Vec<u8> {
        let attr = |kind: u32, config: u64| {
            let mut attr = vec![0u8; 128];
            attr[..4].copy_from_slice(&kind.to_le_bytes());
            attr[4..8].copy_from_slice(&128u32.to_le_bytes());
            attr[8..16].copy_from_slice(&config.to_le_bytes());
            attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_le_bytes());
            attr[32..40].copy_from_slice(&READ_FORMAT.to_le_bytes());
            // sample_id_all
            attr[40..48].copy_from_slice(&(1u64 << 18).to_le_bytes());
            attr
        };
        let ids_at = 104u64;
        let attrs_at = ids_at + 24;
        let data_at = attrs_at + 3 * 144;
        let mut body: Vec<u8> = IDS.iter().flat_map(|id| id.to_le_bytes()).collect();
        for (n, attr) in [attr(2, 372), attr(0, 0), attr(0, 3)].into_iter().enumerate() {
            body.extend(attr);
            body.extend((ids_at + 8 * n as u64).to_le_bytes());
            body.extend(8u64.to_le_bytes());
        }
        body.extend(&self.records);
        let mut features = vec![(1u32, tracing_data())];
        if !self.cpu_name.is_empty() {
            features.push((8, perf_string(self.cpu_name)));
        }
        features.extend(self.notes.clone().map(|n| (31, n)));
        let mut at = data_at + self.records.len() as u64 + 16 * features.len() as u64;
        for (_, content) in &features {
            body.extend(at.to_le_bytes());
            body.extend((content.len() as u64).to_le_bytes());
            at += content.len() as u64;
        }
        features.iter().for_each(|(_, content)| body.extend(content));
        let mut file = b"PERFILE2".to_vec();
        for word in [104, 144, attrs_at, 3 * 144, data_at, self.records.len() as u64, 0, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(features.iter().fold(0u64, |bits, (n, _)| bits | 1 << n).to_le_bytes());
        file.extend([0; 24]);
        file.extend(body);
        file
    }

    fn lift(&self, options: &ImportOptions) -> Result<Workload, TraceError> {
        import(Source::Bytes { name: "made.perf".into(), data: Arc::from(self.bytes()) }, options)
    }
}

fn perf_string(text: &str) -> Vec<u8> {
    let mut out = 64u32.to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out.resize(68, 0);
    out
}

fn tracing_data() -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\x00\x08".to_vec();
    out.extend(4096u32.to_le_bytes());
    out.extend(b"header_page\0");
    out.extend(0u64.to_le_bytes());
    out.extend(b"header_event\0");
    out.extend(0u64.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(b"sched\0");
    out.extend(1u32.to_le_bytes());
    out.extend((SWITCH.len() as u64).to_le_bytes());
    out.extend(SWITCH.as_bytes());
    out
}

/// A command of two threads; its shell child lives on. Another process was there before, started by `shell`.
fn two_threads() -> PerfData {
    PerfData::new()
        .fork(0, (0, 0), (2, 2))
        .comm(0, 2, "kthreadd", false)
        .fork(0, (2, 2), (9, 9))
        .comm(0, 9, "strange_kthread", false)
        .fork(0, (1, 1), (70, 70))
        .comm(0, 70, "shell", false)
        .fork(0, (70, 70), (71, 71))
        .comm(0, 71, "editor", false)
        .comm(0, 10, "wattwise", false)
        .switch(1_000_000, IDLE, 0, ("wattwise", 10), 0, 0)
        .fork(1_100_000, (10, 10), (20, 20))
        .switch(1_200_000, ("wattwise", 10), 1, ("wattwise", 20), 300_000, 0)
        .comm(1_300_000, 20, "work", true)
        .fork(1_400_000, (20, 20), (20, 21))
        .fork(1_450_000, (20, 20), (25, 25))
        .switch(1_500_000, ("work", 20), 1, ("work", 21), 900_000, 0)
        .exit(1_600_000, (20, 20))
        .switch(1_700_000, ("work", 21), 1, ("editor", 71), 1_500_000, 0)
        .switch(1_800_000, ("editor", 71), 1, ("strange_kthread", 9), 1_800_000, 0)
        .switch(1_900_000, ("strange_kthread", 9), 1, ("work", 21), 2_100_000, 0)
        .exit(1_950_000, (20, 21))
        .switch(2_000_000, ("work", 21), 0x10, ("work", 25), 2_400_000, 0)
        .switch(2_100_000, ("work", 25), 1, IDLE, 2_700_000, 0)
}

#[test]
fn a_commands_threads_are_of_it_and_older_tasks_have_parents() {
    let mut file = two_threads();
    let notes = wattwise_trace::Notes { command: Some(20), ..Default::default() };
    file.notes = notes.encode();
    let w = file.lift(&ImportOptions::default()).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Command { name: "work".into() });
    // The first thread exits before the second, and the process with the second; 25 lives on.
    let work: Vec<(Role, bool)> =
        w.tasks.iter().filter(|t| t.name == "work").map(|t| (t.role, t.ends)).collect();
    assert_eq!(work, [(Role::Foreground, true), (Role::Foreground, true), (Role::Background, false)]);
    // Before its exec it was the recorder's.
    assert_eq!(w.release_ns, 300_000);
    assert_eq!(ops(task(&w, "work"))[0], Op::SleepUntil(300_000));
    // By its parent a kernel thread, whatever its name.
    let strangers = &recorded(&w).strangers;
    assert_eq!(strangers.greatest, Some(("editor".into(), 100_000)));
    assert_eq!(strangers.busy_ns, 200_000, "editor and who lives on");
    let options = ImportOptions { foreground: vec!["shell".into()], ..ImportOptions::default() };
    let w = file.lift(&options).unwrap();
    let of_it: Vec<&str> = w.tasks.iter().filter(|t| t.is_foreground()).map(|t| &*t.name).collect();
    assert_eq!(of_it, ["editor"]);
    // Stopped by the recorder, it has no end.
    let stopped = wattwise_trace::Notes { exit_code: Some(143), stopped: true, ..notes };
    file.notes = stopped.encode();
    let w = file.lift(&ImportOptions::default()).unwrap();
    assert!(
        w.is_interactive() && recorded(&w).warnings.iter().any(|w| w.contains("ended before the command"))
    );
    assert!(!recorded(&w).warnings.iter().any(|w| w.contains("failed")));
    // Older recordings have no notes; there the recorder's name marks its child.
    file.notes = None;
    let w = file.lift(&ImportOptions::default()).unwrap();
    assert_eq!(recorded(&w).foreground, ForegroundOrigin::Command { name: "work".into() });
    // A command that is noted and never execs.
    file.notes = wattwise_trace::Notes { command: Some(99), ..Default::default() }.encode();
    let error = file.lift(&ImportOptions::default()).unwrap_err();
    assert!(matches!(error, TraceError::NoForeground { .. }), "{error}");
}

#[test]
fn counted_cycles_are_the_work_and_misses_its_memory_share() {
    let file = PerfData::new()
        .switch(1_000_000, IDLE, 0, ("a", 5), 1_000, 0)
        // 100 us at 3 GHz, then 100 us at 1 GHz of which a fifth waits for 500 misses.
        .switch(1_100_000, ("a", 5), 1, ("b", 6), 301_000, 0)
        .switch(1_200_000, ("b", 6), 1, IDLE, 401_000, 500);
    let w = file.lift(&ImportOptions::default()).unwrap();
    assert!(
        ops(task(&w, "a")).contains(&Op::Run { cycles: 300_000, stall_ns: 0 }),
        "{:?}",
        ops(task(&w, "a"))
    );
    assert!(ops(task(&w, "b")).contains(&Op::Run { cycles: 80_000, stall_ns: 20_000 }));
    let r = recorded(&w);
    assert_eq!((r.clock, r.memory, r.khz), (ClockOrigin::Measured, MemoryShare::Counted, 2_000_000));
    let options = ImportOptions { memory_share: Some(0.5), ..ImportOptions::default() };
    let w = file.lift(&options).unwrap();
    assert!(ops(task(&w, "b")).contains(&Op::Run { cycles: 50_000, stall_ns: 50_000 }));
    assert_eq!(recorded(&w).memory, MemoryShare::Stated(0.5));
}

#[test]
fn the_clock_is_stated_measured_told_described_or_unknown() {
    let text = |events: &str| {
        let mut text = Text::new().switch(0, 0, IDLE, 'R', ("a", 5));
        text.0 += events;
        text.switch(100, 0, ("a", 5), 'S', IDLE)
    };
    let clock = |w: &Workload| (recorded(w).clock, recorded(w).khz);
    let none = ImportOptions::default();
    let stated = ImportOptions { khz: Some(2_000_000), ..ImportOptions::default() };
    assert_eq!(clock(&text("").lift(&none).unwrap()), (ClockOrigin::Unknown, 1_000_000));
    assert_eq!(clock(&text("").lift(&stated).unwrap()), (ClockOrigin::Stated, 2_000_000));
    let event = "x-5 [000] d..2. 1.000050: cpu_frequency: state=3000000 cpu_id=0\n";
    assert_eq!(clock(&text(event).lift(&none).unwrap()).0, ClockOrigin::Events);
    // No counters are read here: all switches show the same.
    let mut file =
        PerfData::new().switch(1_000_000, IDLE, 0, ("a", 5), 0, 0).switch(1_100_000, ("a", 5), 1, IDLE, 0, 0);
    file.cpu_name = "Intel(R) Core(TM) i7-4510U CPU @ 2.00GHz";
    let described = ClockOrigin::Described { base_khz: 2_000_000, top_khz: 3_100_000 };
    assert_eq!(clock(&file.lift(&none).unwrap()), (described, 2_000_000));
    let notes =
        wattwise_trace::Notes { khz: Some(2_500_000), cpu_khz: vec![(0, 2_400_000)], ..Default::default() };
    file.notes = notes.encode();
    let w = file.lift(&none).unwrap();
    assert_eq!(clock(&w), (ClockOrigin::Measured, 2_500_000));
    // What cpufreq said of a CPU counts for it.
    assert!(ops(task(&w, "a")).contains(&Op::Run { cycles: 240_000, stall_ns: 0 }));
    assert_eq!(clock(&file.lift(&stated).unwrap()), (ClockOrigin::Stated, 2_000_000));
}

#[test]
fn damage_in_notes_and_relations_never_panics() {
    let mut file = two_threads();
    file.notes = wattwise_trace::Notes { command: Some(20), ..Default::default() }.encode();
    let whole = file.bytes();
    let options =
        ImportOptions { foreground: vec!["shell".into()], only_foreground: true, ..Default::default() };
    for at in 0..whole.len() {
        let mut data = whole.clone();
        data[at] ^= 0xff;
        for options in [&ImportOptions::default(), &options] {
            let source = Source::Bytes { name: "x".into(), data: Arc::from(&data[..]) };
            if let Err(e) = import(source, options) {
                assert!(!e.to_string().contains('\n'), "{e}");
            }
        }
    }
    // Tasks that descend from each other.
    let file = PerfData::new()
        .fork(0, (6, 6), (5, 5))
        .fork(0, (5, 5), (6, 6))
        .switch(1_000_000, IDLE, 0, ("a", 5), 0, 0)
        .switch(1_100_000, ("a", 5), 1, IDLE, 0, 0);
    assert!(file.lift(&ImportOptions::default()).is_ok());
}

/// What is recorded here and now is marked, has a clock, and `perf` can read it.
#[cfg(feature = "record")]
#[test]
fn a_recording_made_here_knows_its_command_and_its_clock() {
    use wattwise_trace::record::{RecordOptions, run};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.perf");
    let script = "sleep 3 & i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/dev/null bs=1M count=20";
    let command = ["sh", "-c", script].map(String::from).to_vec();
    let report = match run(&RecordOptions::new(&path, command)) {
        Err(e) if e.is_impossible() && std::env::var_os("CI").is_none() => {
            println!("skipped: {e}");
            return;
        }
        report => report.unwrap(),
    };
    assert_eq!(report.exit_code(), Some(0));
    let w = import(Source::Path(path.clone()), &ImportOptions::default()).unwrap();
    let r = recorded(&w);
    assert_eq!(r.foreground, ForegroundOrigin::Command { name: "sh".into() });
    assert_eq!(r.clock, ClockOrigin::Measured, "{:?}", r.warnings);
    assert!((300_000..7_000_000).contains(&r.khz), "{}", r.khz);
    assert!(w.release_ns > 0 && w.release_ns < w.span_ns && !w.is_interactive());
    assert!(task(&w, "dd").is_foreground() && task(&w, "dd").ends);
    // The shell does not wait for it.
    assert_eq!(task(&w, "sleep").role, Role::Background);
    assert!(w.tasks.iter().any(|t| t.name == "sh" && t.is_foreground() && t.ends));
    assert!(r.strangers.all_ns > 0 && r.strangers.share() < 1.0);
    let perf =
        std::process::Command::new("perf").args(["script", "--show-task-events", "-i"]).arg(&path).output();
    match perf {
        Err(e) => println!("perf itself was not asked: {e}"),
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            assert!(text.contains("PERF_RECORD_COMM exec: sh:") && text.contains("sched:sched_switch"));
        }
    }
}
