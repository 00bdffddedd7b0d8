//! Recordings made on a real kernel, against counts that perf and trace-cmd gave for them, and damaged
//! in every way that chance offers. `traces/README.md` says how they were made.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use wattwise_model::workload::{Op, Program, ScriptReader, Workload};
use wattwise_trace::events::{Event, Sink};
use wattwise_trace::{ImportOptions, Source, TraceError, import, summarise, visit};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

#[derive(serde::Deserialize)]
struct Expected {
    kinds: BTreeMap<String, u64>,
    busy0_ns: u64,
}

fn expected() -> BTreeMap<String, Expected> {
    let text = std::fs::read_to_string(directory().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A recording, unpacked.
fn bytes(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(directory().join(format!("{name}.zst"))).unwrap();
    zstd::stream::decode_all(file).unwrap()
}

fn source(name: &str, data: &[u8]) -> Source {
    Source::Bytes { name: name.into(), data: Arc::from(data) }
}

fn lift(name: &str) -> Workload {
    import(Source::Path(directory().join(format!("{name}.zst"))), &ImportOptions::default()).unwrap()
}

fn text(lines: &str) -> Workload {
    import(source("hand-written", lines.as_bytes()), &ImportOptions::default()).unwrap()
}

fn ops(workload: &Workload, task: &str) -> Vec<Op> {
    let task = workload.tasks.iter().find(|t| t.name == task).unwrap();
    let Program::Recorded(script) = &task.program else { panic!("not recorded") };
    script.reader().collect()
}

fn readers(workload: &Workload) -> Vec<ScriptReader> {
    let script = |t: &wattwise_model::workload::Task| {
        let Program::Recorded(script) = &t.program else { panic!("not recorded") };
        script.reader()
    };
    workload.tasks.iter().map(script).collect()
}

/// Runs all scripts on endlessly many CPUs without regard to time: tasks go on until they block. Panics
/// when tasks are left that nobody will wake, or wakes that nobody waited for. Returns all run time.
fn play(workload: &Workload) -> u128 {
    let mut readers: Vec<_> = readers(workload).into_iter().map(Iterator::peekable).collect();
    let mut wakes = vec![0u64; readers.len()];
    let mut waiting = vec![false; readers.len()];
    let mut ready: Vec<usize> = (0..readers.len()).rev().collect();
    let mut ran = 0;
    while let Some(task) = ready.pop() {
        if waiting[task] {
            wakes[task] -= 1;
            waiting[task] = false;
        }
        while let Some(op) = readers[task].next() {
            match op {
                // Of a task that was alive at the recording's end.
                Op::Block if readers[task].peek().is_none() && !workload.tasks[task].repeats => break,
                Op::Block if wakes[task] > 0 => wakes[task] -= 1,
                Op::Block => {
                    waiting[task] = true;
                    break;
                }
                Op::Wake(target) => {
                    let target = target.0 as usize;
                    assert_ne!(target, task, "a task wakes itself");
                    wakes[target] += 1;
                    if waiting[target] && wakes[target] == 1 {
                        ready.push(target);
                    }
                }
                Op::Run { cycles, stall_ns } => ran += u128::from(cycles) + u128::from(stall_ns),
                Op::SleepFor(_) | Op::SleepUntil(_) | Op::Io(_) | Op::OnCpu { .. } => {}
                Op::Lock(_) | Op::Unlock(_) => panic!("no trace shows locks"),
            }
        }
    }
    assert!(!waiting.contains(&true), "deadlock: {:?}", waiting.iter().position(|w| *w));
    assert!(wakes.iter().all(|w| *w == 0), "wakes without a block");
    ran
}

#[test]
fn counts_and_busy_times_are_those_of_perf_and_trace_cmd() {
    for (name, expected) in expected() {
        let path = Source::Path(directory().join(format!("{name}.zst")));
        let summary = summarise(path, &ImportOptions::default()).unwrap();
        assert_eq!(summary.by_kind, expected.kinds, "{name}");
        assert_eq!((summary.lost, summary.cpus.len()), (0, 2), "{name}");
        let workload = lift(&name);
        let recorded = workload.recorded.as_ref().unwrap();
        // perf sched record has more kinds of events than we know: the first of all may be one of them.
        let busy = recorded.busy_ns[0];
        assert!(busy.abs_diff(expected.busy0_ns) <= expected.busy0_ns / 1000, "{name}: {busy}");
        for (cpu, busy) in summary.cpus.iter().zip(&recorded.busy_ns) {
            assert!((cpu.busy_s - *busy as f64 / 1e9).abs() < 20e-6, "{name}: {} {busy}", cpu.busy_s);
        }
        let shown = summary.to_string();
        assert!(shown.contains("sched_switch") && shown.contains("CPU 0"), "{shown}");
        serde_json::to_string(&summary).unwrap();
    }
}

#[test]
fn every_block_has_one_wake_and_all_busy_time_is_work() {
    for name in expected().into_keys() {
        let workload = lift(&name);
        let recorded = workload.recorded.as_ref().unwrap();
        let ran = play(&workload);
        let busy: u128 = recorded.busy_ns.iter().map(|&b| u128::from(b)).sum();
        // At the assumed 1 GHz a cycle is a nanosecond. Where switches are missing, time is nobody's.
        let sound = !recorded.warnings.iter().any(|w| w.contains("did not fit"));
        assert!(ran.abs_diff(busy) <= if sound { 0 } else { busy / 100 }, "{name}: {ran} {busy}");
        assert!(workload.span_ns > 8_000_000, "{name}");
    }
}

#[test]
fn perf_data_is_what_another_reader_makes_of_it() {
    use linux_perf_data::{PerfFileReader, PerfFileRecord, linux_perf_event_reader::RecordType};
    for name in ["pipe.perf", "pipe-z.perf", "sched.perf", "mix.perf"] {
        let data = bytes(name);
        let PerfFileReader { mut perf_file, mut record_iter } =
            PerfFileReader::parse_file(std::io::Cursor::new(&data)).unwrap();
        let mut samples = 0;
        while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
            if let PerfFileRecord::EventRecord { record, .. } = record {
                samples += u64::from(record.record_type == RecordType::SAMPLE);
            }
        }
        assert_eq!(lift(name).recorded.unwrap().events, samples, "{name}");
    }
}

#[test]
fn recorded_rhythms_sleeps_and_io_are_told_apart() {
    let workload = lift("mix.perf");
    let count = |task: &str, which: fn(&Op) -> bool| {
        let named = workload.tasks.iter().filter(|t| t.name == task);
        named
            .flat_map(|t| {
                let Program::Recorded(script) = &t.program else { panic!("not recorded") };
                script.reader()
            })
            .filter(which)
            .count()
    };
    // Python sleeps with clock_nanosleep(TIMER_ABSTIME), sleep(1) with a relative one.
    assert!(count("python3", |o| matches!(o, Op::SleepUntil(_))) >= 20);
    assert!(count("sleep", |o| matches!(o, Op::SleepFor(19_000_000..22_000_000))) >= 2);
    assert!(count("dd", |o| matches!(o, Op::Io(_))) >= 10);
    assert!(count("cat", |o| matches!(o, Op::Block)) >= 2);
}

const HEAD: &str = "# tracer: nop\n";

fn switch(time: &str, cpu: u16, prev: (&str, u32, char), next: (&str, u32)) -> String {
    format!(
        "x-{} [{cpu:03}] d..2. {time}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> \
         next_comm={} next_pid={} next_prio=120\n",
        prev.1, prev.0, prev.1, prev.2, next.0, next.1
    )
}

fn waking(time: &str, cpu: u16, by: u32, flags: &str, who: (&str, u32)) -> String {
    format!(
        "x-{by} [{cpu:03}] {flags} {time}: sched_waking: comm={} pid={} prio=120 target_cpu=000\n",
        who.0, who.1
    )
}

const IDLE: (&str, u32) = ("swapper", 0);

#[test]
fn a_wake_splits_the_wakers_run_and_interrupts_are_timers() {
    let trace = [
        HEAD.to_string(),
        switch("1.000000", 0, ("swapper", 0, 'R'), ("a", 1)),
        switch("1.000000", 1, ("b", 2, 'S'), IDLE),
        waking("1.000300", 0, 1, "d..3.", ("b", 2)),
        switch("1.000310", 1, ("swapper", 0, 'R'), ("b", 2)),
        switch("1.000500", 0, ("a", 1, 'S'), IDLE),
        switch("1.000600", 1, ("b", 2, 'D'), IDLE),
        waking("1.000700", 0, 0, "d.h4.", ("a", 1)),
        switch("1.000720", 0, ("swapper", 0, 'R'), ("a", 1)),
        // A disk request completes in a softirq on a's time: I/O, whoever it hit.
        waking("1.000800", 0, 1, "d.s4.", ("b", 2)),
        switch("1.000810", 0, ("a", 1, 'R'), ("b", 2)),
        switch("1.000900", 0, ("b", 2, 'X'), ("a", 1)),
        switch("1.001000", 0, ("a", 1, 'S'), IDLE),
    ];
    let w = text(&trace.concat());
    let run = |us: u64| Op::Run { cycles: us * 1000, stall_ns: 0 };
    let b = wattwise_model::workload::TaskId(1);
    assert_eq!(
        ops(&w, "a"),
        [
            on(0, 0),
            run(300),
            Op::Wake(b),
            run(200),
            Op::SleepFor(200_000),
            on(0, 720),
            run(90),
            on(0, 900),
            run(100),
            Op::Block
        ]
    );
    assert_eq!(
        ops(&w, "b"),
        [on(1, 0), Op::Block, on(1, 310), run(290), Op::Io(200_000), on(0, 810), run(90)]
    );
    play(&w);
}

#[test]
fn a_waking_before_the_switch_out_ends_that_sleep_unless_it_was_used_up() {
    let early = |confirmed: bool| {
        let mut trace = [
            HEAD.to_string(),
            switch("1.000000", 0, ("swapper", 0, 'R'), ("a", 1)),
            switch("1.000000", 1, ("swapper", 0, 'R'), ("b", 2)),
            waking("1.000100", 0, 1, "d..3.", ("b", 2)),
        ]
        .concat();
        if confirmed {
            trace += "x-1 [000] d..4. 1.000101: sched_wakeup: comm=b pid=2 prio=120 target_cpu=001\n";
        }
        trace += &switch("1.000102", 1, ("b", 2, 'S'), IDLE);
        if confirmed {
            trace += &waking("1.000150", 1, 0, "d.h3.", ("b", 2));
        }
        trace += &switch("1.000200", 1, ("swapper", 0, 'R'), ("b", 2));
        trace += &switch("1.000300", 0, ("a", 1, 'S'), IDLE);
        let w = text(&trace);
        play(&w);
        ops(&w, "b")
    };
    let blocks = |ops: &[Op]| ops.iter().filter(|o| **o == Op::Block).count();
    assert_eq!(blocks(&early(false)), 2, "and the last, of whoever is alive at the end");
    assert_eq!(blocks(&early(true)), 1);
    assert!(early(true).contains(&Op::SleepFor(48_000)));
}

/// A task that writes no events is put on a CPU, and then another is there: who could run has run, unless events were lost.
#[test]
fn who_follows_a_silent_task_ran_since_it_could() {
    let lifted = |lost: &str| {
        let trace = [
            HEAD.to_string(),
            switch("1.000000", 0, ("swapper", 0, 'R'), ("a", 1)),
            switch("1.000300", 0, ("a", 1, 'R'), ("silent", 9)),
            lost.to_string(),
            switch("1.000900", 0, ("a", 1, 'S'), ("silent", 9)),
            waking("1.001000", 1, 2, "d..3.", ("a", 1)),
            switch("1.001600", 0, ("a", 1, 'S'), IDLE),
        ];
        let w = text(&trace.concat());
        play(&w);
        let recorded = w.recorded.clone().unwrap();
        let counted =
            summarise(source("counted", trace.concat().as_bytes()), &ImportOptions::default()).unwrap();
        assert!((counted.cpus[0].busy_s - recorded.busy_ns[0] as f64 / 1e9).abs() < 1e-9, "{counted}");
        (recorded, w)
    };
    let ran = |ops: &[Op]| -> u64 {
        ops.iter().map(|o| if let Op::Run { cycles, .. } = o { *cycles } else { 0 }).sum()
    };
    let (recorded, w) = lifted("");
    // Of the 100 us between a's sleep and its wake-up nobody knows how long the silent one ran.
    assert_eq!((ran(&ops(&w, "a")), ran(&ops(&w, "silent"))), (1_500_000, 0));
    assert_eq!(recorded.busy_ns[0], 1_500_000);
    assert!(
        recorded
            .warnings
            .iter()
            .any(|w| w.starts_with("2 switches of tasks that write no events are missing")),
        "{recorded:?}"
    );
    let (recorded, w) = lifted("CPU:0 [LOST 7 EVENTS]\n");
    assert_eq!((ran(&ops(&w, "a")), ran(&ops(&w, "silent"))), (900_000, 0));
    assert_eq!(recorded.busy_ns[0], 900_000);
    assert!(recorded.warnings.iter().any(|w| w.starts_with("1 switches contradict")), "{recorded:?}");
}

/// A switch-in, `us` after the start.
fn on(cpu: u16, us: u64) -> Op {
    Op::OnCpu { cpu, at_ns: us * 1000 }
}

#[test]
fn children_wait_for_their_parents_and_names_leave_out_until_exec() {
    let child = "x-1 [000] d..2. 1.000200: sched_wakeup_new: comm=perf pid=7 prio=120 target_cpu=000\n";
    let trace = [
        HEAD.to_string(),
        switch("1.000000", 0, ("swapper", 0, 'R'), ("perf", 1)),
        child.to_string(),
        switch("1.000300", 0, ("perf", 1, 'S'), ("perf", 7)),
        switch("1.000500", 0, ("work", 7, 'R'), ("perf", 1)),
        switch("1.000600", 0, ("perf", 1, 'S'), ("work", 7)),
        switch("1.000700", 0, ("work", 7, 'S'), IDLE),
    ];
    let w = text(&trace.concat());
    assert_eq!(ops(&w, "work")[0], Op::Block);
    play(&w);
    let options = ImportOptions { exclude_comms: vec!["perf".into()], ..ImportOptions::default() };
    let w = import(source("t", trace.concat().as_bytes()), &options).unwrap();
    assert_eq!(ops(&w, "perf"), [Op::Block]);
    assert_eq!(
        ops(&w, "work"),
        [
            Op::SleepUntil(500_000),
            on(0, 500),
            on(0, 600),
            Op::Run { cycles: 100_000, stall_ns: 0 },
            Op::Block
        ]
    );
    assert_eq!(w.recorded.unwrap().busy_ns, [700_000]);
}

#[test]
fn a_rhythm_is_absolute_and_equal_sleeps_are_relative() {
    let trace = |absolute: bool| {
        let mut trace = HEAD.to_string();
        let mut now = 1_000_000u64;
        let at = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        for i in 0..30u64 {
            let run = 100 + i % 7 * 300;
            trace += &waking(&at(now), 0, 0, "d.h4.", ("t", 5));
            trace += &switch(&at(now + 5), 0, ("swapper", 0, 'R'), ("t", 5));
            trace += &switch(&at(now + 5 + run), 0, ("t", 5, 'S'), IDLE);
            now += if absolute { 10_000 } else { run + 5_000 };
        }
        ops(&text(&trace), "t")
    };
    let until = |o: &Op| matches!(o, Op::SleepUntil(_));
    let slept = |o: &Op| matches!(o, Op::SleepFor(_));
    let (absolute, relative) = (trace(true), trace(false));
    assert_eq!(
        (absolute.iter().filter(|o| until(o)).count(), absolute.iter().filter(|o| slept(o)).count()),
        (21, 8)
    );
    assert_eq!(relative.iter().filter(|o| slept(o)).count(), 29);
}

#[test]
fn the_clock_of_the_moment_counts_and_memory_does_not() {
    let trace = [
        HEAD.to_string(),
        switch("1.000000", 0, ("swapper", 0, 'R'), ("a", 1)),
        "x-1 [000] d..2. 1.000100: cpu_frequency: state=3000000 cpu_id=0\n".to_string(),
        switch("1.000200", 0, ("a", 1, 'S'), IDLE),
    ]
    .concat();
    let options =
        ImportOptions { khz: Some(2_000_000), memory_share: Some(0.25), ..ImportOptions::default() };
    let w = import(source("t", trace.as_bytes()), &options).unwrap();
    assert_eq!(ops(&w, "a")[1], Op::Run { cycles: 75_000 * 2 + 75_000 * 3, stall_ns: 50_000 });
}

#[test]
fn what_is_no_recording_is_one_line() {
    let none = import(Source::Path("/nonexistent".into()), &ImportOptions::default());
    let unknown = import(source("x.bin", b"\x7fELF\x02\x01\x01"), &ImportOptions::default());
    let empty = import(source("empty", b""), &ImportOptions::default());
    let directory = import(Source::Path(directory()), &ImportOptions::default());
    let head = import(source("t", b"# tracer: nop\n#\n"), &ImportOptions::default());
    assert!(matches!(head, Err(TraceError::NoSwitches { .. })));
    for result in [none, unknown, empty, directory, head] {
        let line = result.unwrap_err().to_string();
        assert!(!line.contains('\n') && line.contains("expected"), "{line}");
    }
    let tight = ImportOptions { budget: "disk=1000".parse().unwrap(), ..ImportOptions::default() };
    let error = import(Source::Path(self::directory().join("pipe.perf.zst")), &tight).unwrap_err();
    assert!(error.to_string().contains("--budget disk="), "{error}");
}

/// Whatever comes out must be playable; an error is one line.
fn survives(name: &str, data: &[u8]) -> bool {
    let options = ImportOptions { budget: "disk=64e6".parse().unwrap(), ..ImportOptions::default() };
    let _ = summarise(source(name, data), &options).map(|s| s.to_string());
    match import(source(name, data), &options) {
        Ok(workload) => {
            play(&workload);
            true
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            false
        }
    }
}

#[test]
fn every_prefix_gives_a_workload_or_an_error() {
    for name in expected().into_keys() {
        let data = bytes(&name);
        let steps = (0..100).map(|i| data.len() * i / 100).chain((0..200).map(|i| i.min(data.len())));
        let usable = steps.filter(|&n| survives(&name, &data[..n])).count();
        // The others keep at the end what nothing can be read without.
        if ["tc6.dat", "ftrace.txt", "pipemode.perf"].contains(&name.as_str()) {
            assert!(usable > 10, "{name}: {usable}");
        }
    }
    // A packed file cut short: what can be unpacked is.
    let packed = std::fs::read(directory().join("ftrace.txt.zst")).unwrap();
    for n in 0..packed.len() / 50 {
        survives("ftrace.txt.zst", &packed[..n * 50]);
    }
}

#[test]
fn flipped_bits_never_panic() {
    // The long ones first, and on all CPUs: this is most of the suite's time.
    let mut files: Vec<(String, Vec<u8>)> = expected().into_keys().map(|n| (n.clone(), bytes(&n))).collect();
    files.sort_by_key(|(_, data)| data.len());
    let files = std::sync::Mutex::new(files);
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            s.spawn(|| {
                while let Some((name, data)) = { files.lock().unwrap().pop() } {
                    flip(&name, &data);
                }
            });
        }
    });
}

/// Reads a recording with bits changed, over and over.
fn flip(name: &str, original: &[u8]) {
    // xorshift64: the same flips on every machine.
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..100 {
        let mut data = original.to_vec();
        // Half of them in the first 2 kB, where the structure is, some with whole words of ones.
        for _ in 0..1 + round % 8 {
            let within = if round % 2 == 0 { data.len().min(2048) } else { data.len() };
            let at = random() as usize % within;
            match round % 3 {
                0 => data[at] ^= 1 << (random() % 8),
                1 => data[at] = random() as u8,
                _ => data[at..].iter_mut().take(4).for_each(|b| *b = 0xff),
            }
        }
        survives(name, &data);
    }
}

/// Text of a task that runs for 1 ms from each moment, in s, on a CPU.
fn text_of(tasks: impl Iterator<Item = (f64, u32, u32)>) -> Vec<u8> {
    let mut text = String::from("# tracer: nop\n");
    for (at, cpu, tid) in tasks {
        let (idle, task) = ("comm=swapper pid=0 prio=120", format!("comm=t{tid} pid={tid} prio=120"));
        let side =
            |side: &str, of: &str| of.split(' ').map(|w| format!("{side}_{w}")).collect::<Vec<_>>().join(" ");
        let mut line = |at: f64, current: u32, from: &str, state: &str, to: &str| {
            text += &format!(
                " x-{current} [{cpu:03}] d..2. {at:.6}: sched_switch: {} prev_state={state} ==> {}\n",
                side("prev", from),
                side("next", to)
            );
        };
        line(at, 0, idle, "R", &task);
        line(at + 0.001, tid, &task, "S", idle);
    }
    text.into_bytes()
}

#[test]
fn a_recording_over_its_budget_is_refused_in_a_line_that_raises_it() {
    let few =
        ImportOptions { budget: "tasks=100,cpus=8,simulated=3600".parse().unwrap(), ..Default::default() };
    let over = |text: Vec<u8>| import(source("t", &text), &few).map(|_| ()).map_err(|e| e.to_string());
    let of = |n: u32| text_of((1..=n).map(|t| (f64::from(t), 0, t)));
    assert_eq!(over(of(100)), Ok(()));
    assert!(over(of(101)).is_err_and(|e| e.contains("100 tasks") && e.contains("--budget tasks=200")));
    // Two CPUs with high numbers are two; nine are nine.
    assert_eq!(over(text_of([(1.0, 7, 1), (2.0, 8, 2)].into_iter())), Ok(()));
    let far = over(text_of((0..9).map(|cpu| (1.0 + f64::from(cpu), cpu, cpu + 1))));
    assert!(far.is_err_and(|e| e.contains("8 CPUs") && e.contains("--budget cpus=")));
    // One damaged time stamp.
    let late = over(text_of([(1.0, 0, 1), (1e9, 0, 2)].into_iter()));
    assert!(late.is_err_and(|e| e.contains("3600 simulated seconds") && !e.contains('\n')));
    let small = ImportOptions { budget: "memory=1e5".parse().unwrap(), ..Default::default() };
    let long =
        |n: u32| import(source("t", &text_of((1..=n).map(|t| (f64::from(t), 0, 1)))), &small).map(|_| ());
    assert!(long(500).is_ok());
    let over = long(5000).map_err(|e| e.to_string());
    assert!(
        over.is_err_and(|e| e.contains("bytes of tasks and steps") && e.contains("--budget memory=200000"))
    );
}

/// A megabyte that unpacks to all that the disk holds is known as no recording by its first block.
#[test]
fn what_is_no_recording_is_not_unpacked() {
    let mut bomb = Vec::new();
    wattwise_packed::pack(std::io::Read::take(std::io::repeat(0), 64 << 20), &mut bomb, 3).unwrap();
    let options = ImportOptions { budget: "disk=1e6".parse().unwrap(), ..Default::default() };
    let error = import(source("bomb.zst", &bomb), &options).unwrap_err();
    assert!(matches!(error, TraceError::Unknown { .. }), "{error}");
    // One that begins like a recording meets the budget.
    let mut long = text_of([(1.0, 0, 1)].into_iter());
    long.resize(8 << 20, b' ');
    let mut packed = Vec::new();
    wattwise_packed::pack(long.as_slice(), &mut packed, 3).unwrap();
    let error = import(source("long.zst", &packed), &options).unwrap_err();
    assert!(matches!(error, TraceError::OverBudget { .. }), "{error}");
}

/// perf.data as it went through a pipe, and more records (type, misc, words).
fn piped(records: &[(u32, u16, &[u64])]) -> Vec<u8> {
    let mut data = bytes("pipemode.perf");
    for (kind, misc, words) in records {
        data.extend(kind.to_le_bytes());
        data.extend(misc.to_le_bytes());
        data.extend((8 + 8 * words.len() as u16).to_le_bytes());
        words.iter().for_each(|w| data.extend(w.to_le_bytes()));
    }
    data
}

/// Of two files that were joined the first is read, and the other is not left out in silence.
#[test]
fn a_recording_behind_another_is_told() {
    for name in ["sched.perf", "pipemode.perf", "mix.perf", "tc6.dat", "tc7-none.dat", "tc7-zstd.dat"] {
        let one = bytes(name);
        let told = |data: &[u8]| {
            let w = import(source(name, data), &ImportOptions::default()).unwrap();
            let other =
                format!("Another recording follows in the file and is left out ({} bytes)", one.len());
            let warnings = w.recorded.as_ref().unwrap().warnings.clone();
            (w.span_ns, warnings.iter().any(|w| w.contains(&other)))
        };
        let span = told(&one).0;
        assert_eq!(told(&one), (span, false), "{name}");
        assert_eq!(told(&[&one[..], &one[..]].concat()), (span, true), "{name}");
    }
}

/// The kernel tells of what it lost in LOST, and perf 6.1 reads the same numbers once more into LOST_SAMPLES.
#[test]
fn what_was_lost_is_counted_once() {
    struct Nobody;
    impl Sink for Nobody {
        fn event(&mut self, _: &Event, _: &wattwise_trace::events::Comms) {}
    }
    let lost = |records: &[(u32, u16, &[u64])]| {
        visit(source("p", &piped(records)), &ImportOptions::default(), &mut Nobody).unwrap().lost
    };
    let bpf = 1 << 15;
    assert_eq!(lost(&[]), 0);
    assert_eq!(lost(&[(2, 0, &[1, 5]), (2, 0, &[1, 2]), (13, 0, &[7])]), 7);
    assert_eq!(lost(&[(2, 0, &[1, 5])]), 5);
    assert_eq!(lost(&[(2, 0, &[1, 5]), (13, 0, &[4]), (13, 0, &[5]), (13, bpf, &[100])]), 9);
}

#[test]
fn recordings_by_others_are_read() {
    let plain = String::from_utf8(text_of((1..4).map(|t| (f64::from(t), 0, t)))).unwrap();
    let of = |text: String| import(source("t", text.as_bytes()), &ImportOptions::default()).unwrap();
    let whole = of(plain.clone());
    // An old page of systrace: the text is a string of its program, and a megabyte of that comes before it.
    let page = format!(
        "<!DOCTYPE HTML>\n<html>\n<script>\n{}</script>\n<script>\n  var linuxPerfData = \"\\\n{}\";\n</script>\n",
        "var x = 1; // the viewer\n".repeat(40_000),
        plain.replace('\n', "\\n\\\n")
    );
    assert_eq!(of(page).recorded.unwrap().busy_ns, whole.recorded.clone().unwrap().busy_ns);
    // The option raw: no arrow, states as numbers.
    let raw =
        plain.replace("prev_state=R ==> ", "prev_state=0 ").replace("prev_state=S ==> ", "prev_state=1 ");
    assert_eq!(of(raw).recorded.unwrap().busy_ns, whole.recorded.unwrap().busy_ns);
    let told = summarise(source("t", plain.as_bytes()), &ImportOptions::default()).unwrap().to_string();
    assert!(told.contains("wake-ups    not recorded"), "{told}");
}
