//! Recordings as others make them: text in every dress, packed, suspended, overwritten, joined, from namespaces; and files that are
//! taken for recordings. What is right comes from the kernel's and the tools' own sources, named at each test.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::io::Write as _;
use support::{bytes, lift, recorded, same, source, warned, work};
use wattwise_model::workload::{Op, Program, Task, TaskId, Workload};
use wattwise_trace::{ImportOptions, TraceError, import, summarise};

fn refused(data: &[u8]) -> String {
    let line = lift(data).map(|w| w.source).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

/// A switch or wake-up, as all dresses tell it.
#[derive(Clone, Debug)]
struct Line {
    us: u64,
    cpu: u32,
    /// Who was current: name and thread id.
    by: (&'static str, u32),
    /// The column hardirq/softirq.
    level: char,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Switch { state: &'static str, next: (&'static str, u32) },
    Waking { who: (&'static str, u32), to: u32 },
    Other(String),
}

const IDLE: (&str, u32) = ("swapper/0", 0);
const A: (&str, u32) = ("A", 100);
const B: (&str, u32) = ("my prog: x", 200);

/// A on CPU 0 is woken by a timer each 10 ms, runs for 2 ms and wakes B on CPU 1 after one, which runs for 2 ms. In each third
/// round an interrupt upon A wakes B, which is nobody's doing.
fn rounds(n: u64) -> Vec<Line> {
    let mut all = Vec::new();
    let mut add =
        |us: u64, cpu: u32, by, level, what| all.push(Line { us: 1_000_000_000 + us, cpu, by, level, what });
    for round in 0..n {
        let at = round * 10_000;
        let by_chance = if round % 3 == 2 { 'h' } else { '.' };
        add(at, 0, IDLE, 'h', What::Waking { who: A, to: 0 });
        add(at + 5, 0, IDLE, '.', What::Switch { state: "R", next: A });
        add(at + 1000, 0, A, by_chance, What::Waking { who: B, to: 1 });
        add(at + 1005, 1, IDLE, '.', What::Switch { state: "R", next: B });
        add(at + 2000, 0, A, '.', What::Switch { state: "S", next: IDLE });
        add(at + 3000, 1, B, '.', What::Switch { state: "S", next: IDLE });
    }
    all
}

impl Line {
    /// The event and its fields, as `TP_printk` of include/trace/events/sched.h has them.
    fn event(&self) -> (String, String) {
        match &self.what {
            What::Switch { state, next } => (
                "sched_switch".into(),
                format!(
                    "prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} next_prio=120",
                    self.by.0, self.by.1, next.0, next.1
                ),
            ),
            What::Waking { who, to } => {
                ("sched_waking".into(), format!("comm={} pid={} prio=120 target_cpu={to:03}", who.0, who.1))
            }
            What::Other(text) => {
                text.split_once(": ").map(|(name, rest)| (name.to_owned(), rest.to_owned())).unwrap()
            }
        }
    }

    fn seconds(&self) -> String {
        format!("{}.{:06}", self.us / 1_000_000, self.us % 1_000_000)
    }

    /// `print_trace_line` with the flags in these columns; `%` stands for the one of interrupts.
    fn tracefs(&self, flags: &str) -> String {
        let name = if self.by.1 == 0 { "<idle>" } else { self.by.0 };
        let (event, fields) = self.event();
        let flags = flags.replace('%', &self.level.to_string());
        let gap = if flags.is_empty() { "" } else { " " };
        format!(
            "{name:>16}-{:<7} [{:03}] {flags}{gap}{:>12}: {event}: {fields}\n",
            self.by.1,
            self.cpu,
            self.seconds()
        )
    }

    /// `trace_print_lat_context`: eight letters of the name, CPU and flags in a word, microseconds since the first event.
    fn latency(&self, since: u64) -> String {
        let name = if self.by.1 == 0 { "<idle>" } else { self.by.0 };
        let short: String = name.chars().take(8).collect();
        let (event, fields) = self.event();
        let mark = if self.us.is_multiple_of(2) { '+' } else { ' ' };
        format!(
            "{short:>8}-{:<7} {:3}d.{}2. {:4}us{mark}: {event}: {fields}\n",
            self.by.1,
            self.cpu,
            self.level,
            self.us - since
        )
    }

    /// `perf script`.
    fn perf_script(&self) -> String {
        let (event, fields) = self.event();
        let name = if self.by.1 == 0 { "swapper" } else { self.by.0 };
        format!(
            "{name:>16} {:>7} [{:03}] {:>12}: sched:{event}: {fields}\n",
            self.by.1,
            self.cpu,
            self.seconds()
        )
    }
}

fn text(lines: &[Line], dress: impl Fn(&Line) -> String) -> String {
    lines.iter().map(dress).collect()
}

/// The comment of a kernel's columns: `print_func_help_header_irq` of kernel/trace/trace.c, and that of PREEMPT_RT's patches.
fn comment(columns: &[&str]) -> String {
    let mut head = String::from("# tracer: nop\n#\n");
    for (n, column) in columns.iter().enumerate() {
        head += &format!(
            "#                              {} / _{}=> {column}\n",
            "|".repeat(n),
            "-".repeat(columns.len() - n)
        );
    }
    head + "#                              ||||| /     delay\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n#              | |         |   |||||     |         |\n"
}

const STANDARD: [&str; 5] =
    ["irqs-off/BH-disabled", "need-resched", "hardirq/softirq", "preempt-depth", "migrate-disable"];

fn standard(lines: &[Line]) -> String {
    comment(&STANDARD) + &text(lines, |l| l.tracefs("d.%2."))
}

#[test]
fn every_kernels_columns_give_the_same_work() {
    let lines = rounds(60);
    let wanted = work(&lift(standard(&lines).as_bytes()).unwrap());
    assert_eq!(wanted.1.len(), 2);
    for (columns, flags) in [
        // Linux 3.x and 4.x.
        (&["irqs-off", "need-resched", "hardirq/softirq", "preempt-depth"][..], "d.%2"),
        // PREEMPT_RT 4.19 to 5.14, and 5.15 on.
        (
            &[
                "irqs-off",
                "need-resched",
                "need-resched-lazy",
                "hardirq/softirq",
                "preempt-depth",
                "preempt-lazy-depth",
                "migrate-disable",
            ],
            "d..%2..",
        ),
        (
            &[
                "irqs-off",
                "need-resched",
                "need-resched_lazy",
                "hardirq/softirq",
                "preempt-depth",
                "migrate-disable",
            ],
            "d.L%2.",
        ),
        // A kernel of the future.
        (&["hardirq/softirq", "irqs-off", "guest", "need-resched", "preempt-depth"], "%dg.2"),
    ] {
        let dressed = comment(columns) + &text(&lines, |l| l.tracefs(flags));
        same(&work(&lift(dressed.as_bytes()).unwrap()), &wanted, flags);
    }
    // The comment was cut off, as by trace_pipe.
    for flags in ["d.%2", "d.%2.", "d..%2..", "d..%2."] {
        same(&work(&lift(text(&lines, |l| l.tracefs(flags)).as_bytes()).unwrap()), &wanted, flags);
    }
}

#[test]
fn every_dress_of_text_gives_the_same_work() {
    let lines = rounds(60);
    let plain = standard(&lines);
    let wanted = work(&lift(plain.as_bytes()).unwrap());
    let as_plain = |name: &str, dressed: &[u8]| {
        let w = lift(dressed).unwrap_or_else(|e| panic!("{name}: {e}"));
        same(&work(&w), &wanted, name);
        assert!(!warned(&w, "damaged"), "{name}: {:?}", recorded(&w).warnings);
    };
    let since = lines[0].us;
    let latency_head = "# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.1.0\n# latency: 0 us, #360/360, CPU#0 | (M:desktop VP:0, KP:0, SP:0 HP:0 #P:2)\n\
        #                    _------=> CPU#            \n#                   / _-----=> irqs-off/BH-disabled\n\
        #                  | / _----=> need-resched    \n#                  || / _---=> hardirq/softirq \n\
        #                  ||| / _--=> preempt-depth   \n#                  |||| / _-=> migrate-disable \n\
        #                  ||||| /     delay           \n#  cmd     pid     |||||| time  |   caller     \n";
    as_plain("latency-format", (latency_head.to_owned() + &text(&lines, |l| l.latency(since))).as_bytes());
    as_plain("latency-format without its head", text(&lines, |l| l.latency(since)).as_bytes());
    // A crash's dump through the console (ftrace_dump_on_oops): the printk clock before each line.
    let dump = text(&lines, |l| format!("[  100.000001] {}", l.latency(0)));
    as_plain("dump", ("[  100.000001] Dumping ftrace buffer:\n".to_owned() + &dump).as_bytes());
    // Of tasks that the kernel had no name and no process of, and flags that are dashes.
    let unknown = text(&lines, |l| {
        let line = l.tracefs("d-%2-");
        let (task, after) = line.split_once(" [0").unwrap();
        format!("           <...>-{} (-------) [0{after}", task.rsplit_once('-').unwrap().1)
    });
    as_plain("unknown names", unknown.as_bytes());
    // `trace-cmd report -l`: the same word, and seconds.
    let report = text(&lines, |l| {
        let (event, fields) = l.event();
        let name: String = l.by.0.chars().take(8).collect();
        format!(
            "{name:>8}-{:<5} {:3}d.{}2. {}: {event}:         {fields}\n",
            l.by.1,
            l.cpu,
            l.level,
            l.seconds()
        )
    });
    as_plain("trace-cmd report -l", ("cpus=2\n".to_owned() + &report).as_bytes());
    as_plain("crlf", plain.replace('\n', "\r\n").as_bytes());
    as_plain("tgid", text(&lines, |l| l.tracefs("d.%2.").replacen(" [0", " (-----) [0", 1)).as_bytes());
    // `bytes` of PowerShell: a mark, two bytes a letter, its own ends of lines.
    let wide = |big: bool| -> Vec<u8> {
        let units =
            std::iter::once(0xfeff).chain(plain.replace('\n', "\r\n").encode_utf16().collect::<Vec<_>>());
        units.flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
    };
    as_plain("UTF-16LE", &wide(false));
    as_plain("UTF-16BE", &wide(true));
    as_plain("UTF-16LE without a mark", &wide(false)[2..]);
    as_plain("UTF-8 with a mark", &[b"\xef\xbb\xbf", plain.as_bytes()].concat());
    let gz = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    as_plain("gz", &gz(plain.as_bytes()));
    let (first, second) = plain.as_bytes().split_at(plain.len() / 2);
    as_plain("two members of gz", &[gz(first), gz(second)].concat());
    as_plain("UTF-16 in gz in gz", &gz(&gz(&wide(false))));
    as_plain("xz", XZ_OF_ROUNDS);
    let bz2 = |bytes: &[u8]| {
        let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    as_plain("bz2", &bz2(plain.as_bytes()));
    // pbzip2 writes a stream a block.
    as_plain("two streams of bz2", &[bz2(first), bz2(second)].concat());
    as_plain("gz in bz2", &bz2(&gz(plain.as_bytes())));
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(plain.as_bytes()).unwrap();
    as_plain("atrace -z", &[b"capturing trace... done\nTRACE:\n".to_vec(), zlib.finish().unwrap()].concat());
    as_plain("atrace", format!("capturing trace... done\nTRACE:\n{plain}").as_bytes());
    // The lines of stacks and markers between the events.
    let stacks = text(&lines, |l| {
        l.tracefs("d.%2.")
            + &format!(
                "               A-100     [000] d.... {}: <stack trace>\n => sched_switch: x\n => schedule\n ------------------------------------------\n 0)   <idle>-0     =>      A-100  \n",
                l.seconds()
            )
    });
    let w = lift(stacks.as_bytes()).unwrap();
    assert!(!warned(&w, "damaged"), "{:?}", recorded(&w).warnings);
    same(&work(&w), &wanted, "stacks");
    // A program's own markers, with times of their own: none of ours, and no reason to sort.
    let mark = |l: &Line| {
        l.tracefs("d.%2.")
            + "               A-100     [000] .....  1000.500000: tracing_mark_write: B|100|doFrame: [001] 3.14: x\n"
    };
    as_plain("markers", text(&lines, mark).as_bytes());
}

/// `perf script` has no flags, so what interrupts do counts as their task's. Of a trace without such, it is all the same.
#[test]
fn what_perf_script_shows_is_the_same_work() {
    let mut lines = rounds(60);
    lines.retain(|l| l.by.1 == 0 || l.level == '.');
    let wanted = work(&lift(standard(&lines).as_bytes()).unwrap());
    let as_plain = |name: &str, dressed: String| {
        let w = lift(dressed.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        same(&work(&w), &wanted, name);
        assert!(warned(&w, "no irq flags") && !warned(&w, "damaged"), "{name}: {:?}", recorded(&w).warnings);
    };
    as_plain("plain", text(&lines, Line::perf_script));
    // `perf script` with call chains, as of perf-script(1): address, symbol, file in brackets, an empty line.
    let stack = "\tffffffff8180a1c8 __schedule+0x3c8 ([kernel.kallsyms])\n\t          4011f2 sched_switch: x+0x22 (/opt/My App/prog [v2])\n\n";
    as_plain("stacks", text(&lines, |l| l.perf_script() + stack));
    let named =
        |from: &'static str, to: &'static str| text(&lines, move |l| l.perf_script().replacen(from, to, 1));
    as_plain("period", text(&lines, |l| l.perf_script().replacen(": sched:", ":          1 sched:", 1)));
    for (from, to) in [
        ("sched_switch:", "sched_switch:k:"),
        ("sched_switch:", "sched_switch:ppu:"),
        ("sched_switch:", "sched_switch/call-graph=fp,period=1/:"),
        ("sched_switch:", "sched_switch/name=a:b/k:"),
    ] {
        as_plain(to, named(from, to));
    }
    // `-F pid,tid`: both numbers.
    as_plain(
        "pid/tid",
        text(&lines, |l| {
            l.perf_script().replacen(" [0", "/1 [0", 0).replacen(
                &format!(" {} [", l.by.1),
                &format!(" {0}/{0} [", l.by.1),
                1,
            )
        }),
    );
}

#[test]
fn a_suspend_is_taken_out() {
    const HOURS: u64 = 8 * 3600 * 1_000_000;
    let awake = rounds(200);
    let wanted = work(&lift(standard(&awake).as_bytes()).unwrap());
    let step =
        |us: u64, text: &str| Line { us, cpu: 0, by: IDLE, level: '.', what: What::Other(text.into()) };
    // The machine is off for 8 h from the hundredth round's end on; its boot clock goes on.
    let off_at = 1_000_000_000 + 99 * 10_000 + 5_000;
    let slept = |inside: &[(u64, &str)]| {
        let mut all: Vec<Line> = awake.iter().filter(|l| l.us < off_at).cloned().collect();
        all.extend(inside.iter().map(|(us, text)| step(off_at + us, text)));
        all.extend(awake.iter().filter(|l| l.us > off_at).map(|l| Line { us: l.us + HOURS, ..l.clone() }));
        lift(standard(&all).as_bytes()).unwrap()
    };
    // The steps of kernel/power/suspend.c.
    let whole = [
        (0, "suspend_resume: suspend_enter[3] begin"),
        (0, "suspend_resume: machine_suspend[3] begin"),
        (HOURS, "suspend_resume: machine_suspend[3] end"),
        (HOURS, "suspend_resume: suspend_enter[3] end"),
    ];
    let to_idle = [
        (0, "suspend_resume: machine_suspend[1] begin"),
        (0, "suspend_resume: timekeeping_freeze[0] begin"),
        (HOURS / 2, "cpu_idle: state=4294967295 cpu_id=0"),
        (HOURS / 2 + 7, "suspend_resume: timekeeping_freeze[0] end"),
        (HOURS, "suspend_resume: machine_suspend[1] end"),
    ];
    for (name, w) in [
        ("whole", slept(&whole)),
        ("to idle, with a wake-up on the way", slept(&to_idle)),
        ("without the innermost step", slept(&[whole[0], whole[3]])),
        (
            "on a clock beside the monotonic one",
            slept(&[
                (0, "tracing_mark_write: trace_event_clock_sync: parent_ts=70.000000"),
                (0, "cpu_idle: state=0 cpu_id=0"),
                (HOURS, "cpu_idle: state=4294967295 cpu_id=0"),
                (HOURS, "tracing_mark_write: trace_event_clock_sync: parent_ts=70.000000"),
            ]),
        ),
    ] {
        same(&work(&w), &wanted, name);
        assert_eq!(recorded(&w).suspended_ns, HOURS * 1000, "{name}");
        assert!(
            warned(&w, "The machine was suspended once, 8:00:00 h in all"),
            "{name}: {:?}",
            recorded(&w).warnings
        );
    }
    // Without its end or its beginning it reaches to the next event, or from the last: 5 ms and 2 ms away.
    for (w, beyond) in [(slept(&whole[..2]), 5_000), (slept(&whole[2..]), 2_000)] {
        assert_eq!(
            (recorded(&w).suspended_ns, w.span_ns),
            ((HOURS + beyond) * 1000, wanted.0 - beyond * 1000)
        );
    }
    // Nothing says that it was a suspend.
    let w = slept(&[(0, "cpu_idle: state=0 cpu_id=0"), (HOURS, "cpu_idle: state=4294967295 cpu_id=0")]);
    same(&work(&w), &wanted, "silence");
    assert_eq!(recorded(&w).suspended_ns, 0);
    assert!(warned(&w, "Nothing at all was recorded for more than a minute"));
    // Charged, if asked; and said by the summary.
    let mut all: Vec<Line> = awake.iter().filter(|l| l.us < off_at).cloned().collect();
    all.extend(whole.iter().map(|(us, text)| step(off_at + us, text)));
    all.extend(awake.iter().filter(|l| l.us > off_at).map(|l| Line { us: l.us + HOURS, ..l.clone() }));
    let bytes = standard(&all).into_bytes();
    let charged =
        import(source(&bytes), &ImportOptions { suspend_w: Some(0.5), ..Default::default() }).unwrap();
    assert!((recorded(&charged).suspended_j() - 0.5 * 8.0 * 3600.0).abs() < 1e-6);
    let told = summarise(source(&bytes), &ImportOptions::default()).unwrap();
    assert!(
        (told.suspended_s - 8.0 * 3600.0).abs() < 1e-6 && (told.span_s - wanted.0 as f64 * 1e-9).abs() < 1e-6,
        "{told}"
    );
}

#[test]
fn a_single_time_ahead_is_no_silence() {
    let mut lines = rounds(100);
    let ahead = Line { us: lines[300].us + 120_000_000, ..lines[299].clone() };
    lines.insert(300, ahead);
    let w = lift(standard(&lines).as_bytes());
    assert!(w.is_err() || !warned(&w.unwrap(), "Nothing at all was recorded"));
}

#[test]
fn what_a_ring_no_longer_held_is_no_idle_time() {
    let lines = rounds(200);
    let head = |kept: usize, written: usize| {
        format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {kept}/{written}   #P:2\n#\n")
    };
    // CPU 1's ring began in the middle.
    let from = 1_000_000_000 + 100 * 10_000;
    let late: Vec<Line> = lines.iter().filter(|l| l.cpu == 0 || l.us >= from).cloned().collect();
    let covered: Vec<Line> = {
        let first = late.iter().find(|l| l.cpu == 1).unwrap().us;
        late.iter().filter(|l| l.us >= first).cloned().collect()
    };
    let wanted = work(&lift(standard(&covered).as_bytes()).unwrap());
    let body = text(&late, |l| l.tracefs("d.%2."));
    let w = lift((head(late.len(), lines.len()) + &body).as_bytes()).unwrap();
    same(&work(&w), &wanted, "overwritten");
    assert!(warned(&w, "Not all CPUs are recorded all the time"), "{:?}", recorded(&w).warnings);
    // Without its head, by the mark that `test_cpu_buff_start` writes.
    let first_of_1 = late.iter().position(|l| l.cpu == 1).unwrap();
    let marked = text(&late[..first_of_1], |l| l.tracefs("d.%2."))
        + "##### CPU 1 buffer started ####\n"
        + &text(&late[first_of_1..], |l| l.tracefs("d.%2."));
    same(&work(&lift(marked.as_bytes()).unwrap()), &wanted, "marked");
    // A mark about a CPU that has long begun says nothing, and a ring that was not overwritten begins with its first event.
    let whole = standard(&lines);
    let noise = whole.clone() + "##### CPU 1 buffer started ####\n";
    same(&work(&lift(noise.as_bytes()).unwrap()), &work(&lift(whole.as_bytes()).unwrap()), "noise");
    // Without both: B is woken again and again and runs nowhere before CPU 1 begins.
    same(&work(&lift(body.as_bytes()).unwrap()), &wanted, "no sign but wake-ups");
    // A CPU that had nothing to do until then was idle.
    let rest: Vec<Line> = late
        .iter()
        .filter(|l| l.us >= from || !matches!(&l.what, What::Waking { to: 1, .. }))
        .cloned()
        .collect();
    let w = lift((head(rest.len(), rest.len()) + &text(&rest, |l| l.tracefs("d.%2."))).as_bytes()).unwrap();
    assert!(!warned(&w, "Not all CPUs"));
    assert_eq!(w.span_ns, work(&lift(whole.as_bytes()).unwrap()).0);
    // All cover next to nothing.
    let last: Vec<Line> =
        lines.iter().filter(|l| l.cpu == 0 || l.us > lines[lines.len() - 3].us).cloned().collect();
    let line = refused((head(last.len(), lines.len()) + &text(&last, |l| l.tracefs("d.%2."))).as_bytes());
    assert!(line.contains("not all CPUs are recorded") && line.contains("larger buffers"), "{line}");
}

#[test]
fn files_of_each_cpu_joined_are_sorted() {
    let lines = rounds(60);
    let wanted = work(&lift(standard(&lines).as_bytes()).unwrap());
    let of = |cpu: u32| {
        let own: Vec<Line> = lines.iter().filter(|l| l.cpu == cpu).cloned().collect();
        standard(&own)
    };
    for joined in [of(0) + &of(1), of(1) + &of(0)] {
        same(&work(&lift(joined.as_bytes()).unwrap()), &wanted, "joined");
    }
    // One of them alone is half of a recording.
    let line = refused(of(0).as_bytes());
    assert!(line.contains("nothing of CPU 1 is recorded") && line.contains("not per_cpu/"), "{line}");
    // Events of two CPUs that changed places.
    let mut swapped = lines.clone();
    for at in (3..swapped.len() - 1).step_by(6) {
        swapped.swap(at, at + 1);
    }
    assert!(swapped.windows(2).any(|w| w[0].us > w[1].us));
    same(&work(&lift(standard(&swapped).as_bytes()).unwrap()), &wanted, "swapped");
    // The same recording twice, and one after another of a machine that was started anew.
    for twice in [standard(&lines).repeat(2), standard(&lines) + &standard(&rounds(30))] {
        let line = refused(twice.as_bytes());
        assert!(line.contains("several recordings in one file"), "{line}");
    }
    let tight = ImportOptions { budget: "memory=5000".parse().unwrap(), ..Default::default() };
    let over = import(source((of(0) + &of(1)).as_bytes()), &tight).unwrap_err().to_string();
    assert!(over.contains("--budget memory="), "{over}");
}

#[test]
fn cpus_that_were_off_are_no_idle_cpus() {
    let numbered = |cpus: [u32; 2], head: &str| {
        let lines: Vec<Line> =
            rounds(60).into_iter().map(|l| Line { cpu: cpus[l.cpu as usize], ..l }).collect();
        lift((format!("# tracer: nop\n{head}") + &text(&lines, |l| l.tracefs("d.%2."))).as_bytes()).unwrap()
    };
    let wanted = work(&numbered([0, 1], ""));
    for head in ["", "# entries-in-buffer/entries-written: 360/360   #P:2\n"] {
        let w = numbered([1, 6], head);
        same(&work(&w), &wanted, head);
        assert_eq!((recorded(&w).cpus, recorded(&w).busy_ns.len()), (2, 2), "{head}");
        assert!(warned(&w, "CPUs 1, 6 were recorded and count as 0 to 1"), "{:?}", recorded(&w).warnings);
    }
    // The machine has them all: those between were idle.
    let w = numbered([1, 6], "# entries-in-buffer/entries-written: 360/360   #P:8\n");
    assert_eq!((recorded(&w).cpus, recorded(&w).busy_ns[0]), (8, 0));
    assert!(!warned(&w, "were off"));
}

/// A head that a recording's own command line wrote: `perf script --header` prints it as it is, line ends and all
/// (print_cmdline of tools/perf/util/header.c). And what a task of some name prints between the events.
#[test]
fn no_stranger_sets_the_number_of_cpus() {
    let lines = rounds(60);
    let count = |text: &str| {
        let w = lift(text.as_bytes()).unwrap();
        assert!(!warned(&w, "lost"), "{:?}", recorded(&w).warnings);
        (recorded(&w).cpus, work(&w))
    };
    let (head, dressed) = ("# ========\n# hostname : h\n", text(&lines, Line::perf_script));
    let wanted = count(&format!("{head}# nrcpus online : 2\n# ========\n#\n{dressed}"));
    assert_eq!(wanted.0, 2);
    for theirs in [
        "#P:7",
        "\n# entries-in-buffer/entries-written: 1/1   #P:7",
        "\ncpus=7",
        "\n# latency: 0 us, #4/4, CPU#0 | (M:x VP:0, KP:0, SP:0 HP:0 #P:7)",
        "\n# wattwise: foreground=100 clock_khz=1000",
    ] {
        let text =
            format!("{head}# cmdline : /usr/bin/perf record -a -- sh {theirs} \n# ========\n#\n{dressed}");
        assert_eq!(count(&text), wanted, "{theirs:?}");
    }
    let wanted = count(&standard(&lines));
    for theirs in [
        "# cmdline : x #P:7\n",
        "x #P:7\n",
        "               \ncpus=7\n",
        "CPU[LOST 9 \n",
        "# _=> hardirq\n",
        "# tracer:\n",
    ] {
        let events = text(&lines, |l| l.tracefs("d.%2."));
        assert_eq!(count(&(comment(&STANDARD) + theirs + &events)), wanted, "{theirs:?}");
    }
}

/// A name is fifteen bytes of any kind but 0 (prctl(2), PR_SET_NAME), and tracefs and perf print them as they are.
#[test]
fn line_ends_in_names_lose_no_event() {
    let mut lines = rounds(60);
    lines.retain(|l| l.by.1 == 0 || l.level == '.');
    let plain = [standard(&lines), text(&lines, Line::perf_script)];
    let names = [
        "a\nb",
        "\n",
        "a\n",
        "\n\n\n",
        "\n-1 [0] 1: b: c",
        "\n# tracer: x",
        "\ncpus=7\n",
        "\nCPU[LOST 9 \n",
        "a\n==> b",
        "\n prev_pid=7",
        "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
        "a\n ==> b",
        "x:1 [2]\nR ==>",
        "\n#P:7\n",
        "a\r\nb",
    ];
    for name in names {
        for (text, known) in plain.iter().zip(["d.", "sched:"]) {
            let wanted = lift(text.as_bytes()).unwrap();
            let w = lift(text.replace(B.0, name).as_bytes()).unwrap();
            assert_eq!(recorded(&w).cpus, 2, "{name:?} {known}");
            assert!(!warned(&w, "damaged"), "{name:?} {known}: {:?}", recorded(&w).warnings);
            assert_eq!(work(&w).0, work(&wanted).0, "{name:?}");
            let steps = |w: &Workload| work(w).1.into_iter().map(|(_, steps)| steps).collect::<Vec<_>>();
            assert!(steps(&w) == steps(&wanted), "{name:?} {known}: other steps");
        }
    }
    // trace-cmd's short form.
    let short = "      a-1     [000]  1.0: sched_waking: a\nb:8 [98] CPU:000\n";
    let summary =
        summarise(source((short.to_owned() + &plain[0]).as_bytes()), &ImportOptions::default()).unwrap();
    assert!(!summary.warnings.iter().any(|w| w.contains("damaged")), "{:?}", summary.warnings);
    // What is cut is one damaged line, and takes nothing with it.
    let cut = plain[0].replacen("prev_prio=120", "\n", 1);
    let w = lift(cut.as_bytes()).unwrap();
    assert!(warned(&w, "1 lines are damaged"), "{:?}", recorded(&w).warnings);
}

/// perf shows the tasks outside of its namespace as 0, those inside by their numbers there (`perf_event_pid` of kernel/events/core.c),
/// and one of which it knows nothing as -1.
#[test]
fn numbers_of_a_namespace_are_not_the_kernels() {
    let mut lines = rounds(60);
    lines.retain(|l| l.by.1 == 0 || l.level == '.');
    let wanted = work(&lift(text(&lines, Line::perf_script).as_bytes()).unwrap());
    for (a, b) in [(7, 8), (0, 8), (0, 0)] {
        let inside = text(&lines, |l| {
            let shown = match l.by.1 {
                100 => a,
                200 => b,
                other => other,
            };
            l.perf_script().replacen(&format!(" {} [", l.by.1), &format!(" {shown} ["), 1)
        });
        let w = lift(inside.as_bytes()).unwrap();
        same(&work(&w), &wanted, &format!("{a} {b}"));
        assert!(warned(&w, "numbers of a PID namespace"), "{:?}", recorded(&w).warnings);
    }
    let unknown = text(&lines, |l| {
        let head = format!("{:>16} {:>7} [", "my prog: x", 200);
        l.perf_script().replacen(&head, &format!("{:>16} {:>7} [", ":-1", -1), 1)
    });
    same(&work(&lift(unknown.as_bytes()).unwrap()), &wanted, "unknown");
    // One damaged head is no namespace.
    let one = text(&lines, Line::perf_script).replacen(" 100 [", " 9 [", 1);
    assert!(!warned(&lift(one.as_bytes()).unwrap(), "numbers of a PID namespace"));
}

/// `perf script -F comm,cpu,time,event,trace`: only names, of which some end with a digit.
#[test]
fn heads_without_numbers_are_known_by_the_switches() {
    let mut lines = rounds(60);
    lines.retain(|l| l.by.1 == 0 || l.level == '.');
    let wanted = work(&lift(text(&lines, Line::perf_script).as_bytes()).unwrap());
    for name in ["my prog: x", "kworker/0:1"] {
        let nameless = text(&lines, |l| {
            let line = l.perf_script();
            let (_, after) = line.split_once(" [0").unwrap();
            format!("{:>16} [0{after}", if l.by.1 == 200 { name } else { l.by.0 })
        });
        let w = lift(nameless.as_bytes()).unwrap();
        same(&work(&w), &wanted, name);
        assert!(!warned(&w, "damaged"), "{:?}", recorded(&w).warnings);
    }
}

#[test]
fn counts_of_a_clock_are_no_seconds() {
    let ticks =
        text(&rounds(10), |l| l.tracefs("d.%2.").replacen(&l.seconds(), &(l.us * 2600).to_string(), 1));
    let line = refused(ticks.as_bytes());
    assert!(line.contains("--ts2secs") && line.contains("trace_clock"), "{line}");
}

#[test]
fn a_recording_of_a_moment_is_refused() {
    let mut lines = rounds(1);
    lines.truncate(2);
    assert!(lift(text(&lines, |l| l.tracefs("d.%2.")).as_bytes()).is_ok());
    for moment in [&lines[1..], &[lines[1].clone(), lines[1].clone()]] {
        let moment = text(moment, |l| l.tracefs("d.%2."));
        let line = refused(moment.as_bytes());
        assert!(line.contains("expected a recording of more than an instant"), "{line}");
        assert_eq!(
            summarise(source(moment.as_bytes()), &ImportOptions::default()).unwrap_err().to_string(),
            line
        );
    }
}

#[test]
fn files_of_other_kinds_are_named_with_their_remedy() {
    let perfetto = [b"\x0a\x54\x50\x03\x42\x0eftrace\x01\x02".to_vec(), (1..=90).collect()].concat();
    for (data, words) in [
        (&b"LZIP\x01"[..], &["lzip", "lzip -dk theirs"][..]),
        (&perfetto, &["Perfetto", "traceconv systrace theirs"]),
        (b"{\"traceEvents\": [{\"ph\": \"X\"}]}", &["Chrome", "jq -r .systemTraceEvents theirs"]),
        (b"PK\x03\x04", &["zip", "unzip theirs"]),
        (b"{\"schema\": \"wattwise.compare/2\"}", &["result", "wattwise report theirs"]),
    ] {
        let line = refused(data);
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
        // Packed as well.
        let mut packed = Vec::new();
        wattwise_packed::pack(data, &mut packed, 3).unwrap();
        assert!(refused(&packed).contains(words[0]));
    }
}

#[test]
fn a_bomb_meets_the_budget_however_it_is_packed() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gz.write_all(standard(&rounds(3)).as_bytes()).unwrap();
    let blanks = vec![b' '; 1 << 20];
    (0..64).for_each(|_| gz.write_all(&blanks).unwrap());
    let bomb = gz.finish().unwrap();
    let tight = ImportOptions { budget: "disk=1e6".parse().unwrap(), ..Default::default() };
    let error = import(source(&bomb), &tight).unwrap_err();
    assert!(matches!(error, TraceError::OverBudget { .. }), "{error}");
}

/// Lines without an event meet a budget of their own, as bytes that are read; those that an event brings with it do not.
#[test]
fn text_that_tells_nothing_meets_the_budget() {
    let few = ImportOptions { budget: "text=1e5".parse().unwrap(), ..Default::default() };
    let of = |text: &str| import(source(text.as_bytes()), &few).map(|w| w.span_ns).map_err(|e| e.to_string());
    let plain = standard(&rounds(100));
    for filler in ["\n", "# nothing\n", "nothing\n"] {
        let long = plain.clone() + &filler.repeat(100_000 / filler.len() + 1);
        let line = of(&long).unwrap_err();
        assert!(
            line.contains("bytes of text beside the events") && line.contains("--budget text="),
            "{line}"
        );
        assert_eq!(of(&(plain.clone() + &filler.repeat(1000))), of(&plain));
    }
    // A call chain below each event.
    let chains = plain.replace('\n', &("\n".to_owned() + &" => schedule <ffffffff81234567>\n".repeat(20)));
    assert!(chains.len() > 300_000);
    assert_eq!(of(&chains), of(&plain));
}

/// What came out of it is used, and that it was cut is said, however it is packed.
#[test]
fn a_packed_stream_that_is_cut_is_used_so_far() {
    let plain = standard(&rounds(2000));
    let whole = lift(plain.as_bytes()).unwrap().span_ns;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gz.write_all(plain.as_bytes()).unwrap();
    let mut zst = Vec::new();
    wattwise_packed::pack(plain.as_bytes(), &mut zst, 3).unwrap();
    for (name, packed) in [("gz", gz.finish().unwrap()), ("zst", zst), ("xz", xz(plain.as_bytes()))] {
        let w = lift(&packed[..packed.len() / 2]).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(warned(&w, "packed stream is damaged or cut short"), "{name}: {:?}", recorded(&w).warnings);
        let share = w.span_ns as f64 / whole as f64;
        assert!((0.3..0.7).contains(&share), "{name}: {share}");
    }
    // So is a short one, which a single read would hold.
    let short = standard(&rounds(400));
    let (packed, whole) = (xz(short.as_bytes()), lift(short.as_bytes()).unwrap().span_ns);
    let share = lift(&packed[..packed.len() / 2]).unwrap().span_ns as f64 / whole as f64;
    assert!((0.4..0.6).contains(&share), "{share} of {} bytes", short.len());
    // Of less than a block nothing is known.
    let line = refused(&xz(plain.as_bytes())[..60]);
    assert!(line.contains("cut short before its first block ends"), "{line}");
}

/// An xz stream of blocks that are not packed (the .xz file format 1.2.0, 2 and 3; chunks as LZMA2 has them), without its index.
fn xz(plain: &[u8]) -> Vec<u8> {
    let summed = |bytes: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        [bytes, &sum.sum().to_le_bytes()].concat()
    };
    // No check; a block's head of twelve bytes: one filter, LZMA2, with a dictionary of 1 MiB.
    let mut out = b"\xfd7zXZ\0".to_vec();
    out.extend(summed(&[0, 0]));
    out.extend(summed(&[2, 0, 0x21, 1, 16, 0, 0, 0]));
    for (i, part) in plain.chunks(40_000).enumerate() {
        out.push(if i == 0 { 1 } else { 2 });
        out.extend((part.len() as u16 - 1).to_be_bytes());
        out.extend(part);
    }
    out
}

/// `standard(&rounds(60))` by `xz -9`.
const XZ_OF_ROUNDS: &[u8] = include_bytes!("traces/rounds.txt.xz");

/// A recording by perf with other numbers of tasks in perf's own fields, as it would have been made in a PID namespace. Its samples
/// begin with IDENTIFIER, IP, TID (sample_type 0x10587).
fn in_namespace(mut data: Vec<u8>, number: impl Fn(u32) -> u32) -> Vec<u8> {
    let word = |data: &[u8], at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
    let (mut at, end) = (word(&data, 40), word(&data, 40) + word(&data, 48));
    while at < end {
        let kind = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
        let size = usize::from(u16::from_le_bytes(data[at + 6..at + 8].try_into().unwrap()));
        // SAMPLE; COMM has process and thread; FORK and EXIT have both of the task and of its parent.
        let places: &[usize] = match kind {
            9 => &[24, 28],
            3 => &[8, 12],
            4 | 7 => &[8, 12, 16, 20],
            _ => &[],
        };
        for place in places.iter().map(|place| at + place) {
            let told = u32::from_le_bytes(data[place..place + 4].try_into().unwrap());
            data[place..place + 4].copy_from_slice(&number(told).to_le_bytes());
        }
        at += size;
    }
    data
}

#[test]
fn perf_data_of_a_namespace_is_the_same_work() {
    for name in ["pipe.perf", "sched.perf", "mix.perf"] {
        let original = bytes(name);
        let wanted = lift(&original).unwrap();
        let shifted = |tid: u32| if tid == 0 || tid > 1 << 22 { tid } else { tid + 77 };
        let w = lift(&in_namespace(original.clone(), shifted)).unwrap();
        // Tasks that are forked and never run have no number of the kernel's.
        let ran = |w: &Workload| {
            let mut work = work(w);
            work.1.iter_mut().flat_map(|(_, steps)| steps).for_each(|op| {
                if let Op::Wake(_) = op {
                    *op = Op::Wake(TaskId(0));
                }
            });
            work.1.retain(|(_, steps)| steps.iter().any(|op| matches!(op, Op::Run { .. })));
            work
        };
        same(&ran(&w), &ran(&wanted), name);
        assert_eq!(recorded(&w).foreground, recorded(&wanted).foreground, "{name}");
        let roles = |w: &Workload| -> Vec<_> {
            let runs = |t: &&Task| {
                let Program::Recorded(script) = &t.program else { return false };
                script.reader().any(|op| matches!(op, Op::Run { .. }))
            };
            w.tasks.iter().filter(runs).map(|t| (t.name.clone(), t.role, t.ends, t.repeats)).collect()
        };
        assert_eq!(roles(&w), roles(&wanted), "{name}");
        // Only half of the tasks are inside: what perf says of the others is lost, and what they did is not.
        let half = |tid: u32| if tid % 2 == 1 { tid / 2 + 2 } else { 0 };
        let w = lift(&in_namespace(original, half)).unwrap();
        assert_eq!(
            (w.span_ns, recorded(&w).busy_ns.clone()),
            (wanted.span_ns, recorded(&wanted).busy_ns.clone()),
            "{name}"
        );
    }
}

/// The same as `perf script --show-task-events` shows it: perf's own records count as its heads do.
#[test]
fn perf_script_of_a_namespace_is_the_same_work() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |data: Vec<u8>| {
        let file = folder.path().join("perf.data");
        std::fs::write(&file, data).unwrap();
        let script = ["script", "-f", "--ns", "--show-task-events", "-i"];
        let out = std::process::Command::new("perf").args(script).arg(&file).output().ok()?;
        out.status.success().then_some(out.stdout)
    };
    let shifted = |tid: u32| if tid == 0 || tid > 1 << 22 { tid } else { tid + 77 };
    for name in ["pipe.perf", "mix.perf"] {
        let (Some(outside), Some(inside)) = (shown(bytes(name)), shown(in_namespace(bytes(name), shifted)))
        else {
            println!("skipped: perf script is not to be had");
            return;
        };
        let (wanted, w) = (lift(&outside).unwrap(), lift(&inside).unwrap());
        assert!(warned(&w, "numbers of a PID namespace"), "{name}: {:?}", recorded(&w).warnings);
        assert_eq!(recorded(&w).foreground, recorded(&wanted).foreground, "{name}");
        assert_eq!(recorded(&w).busy_ns, recorded(&wanted).busy_ns, "{name}");
        let roles = |w: &Workload| -> Vec<_> {
            let ran = |t: &&Task| {
                let Program::Recorded(script) = &t.program else { return false };
                script.reader().any(|op| matches!(op, Op::Run { .. }))
            };
            w.tasks.iter().filter(ran).map(|t| (t.name.clone(), t.role, t.ends, t.repeats)).collect()
        };
        assert_eq!(roles(&w), roles(&wanted), "{name}");
    }
}

/// A record of perf.data in pipe mode.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut all = kind.to_le_bytes().to_vec();
    all.extend([0, 0]);
    all.extend((8 + body.len() as u16).to_le_bytes());
    all.extend(body);
    all
}

/// `perf record -o -` (HEADER_ATTR is record 64 of tools/perf/util/event.h) of cycles, and of a tracepoint whose formats were cut
/// out; a file whose perf was killed; one whose wattwise was.
#[test]
fn each_perf_data_that_cannot_be_used_says_why() {
    let piped = |kind: u32| {
        let mut attr = kind.to_le_bytes().to_vec();
        attr.extend(64u32.to_le_bytes());
        attr.resize(64, 0);
        [b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec(), record(64, &attr), record(9, &[0; 32]), record(68, &[])]
            .concat()
    };
    let line = refused(&piped(0));
    assert!(
        line.contains("without tracepoints")
            && line.contains("perf record -e sched:")
            && !line.contains("SIGKILL"),
        "{line}"
    );
    let line = refused(&piped(2));
    assert!(line.contains("without the formats") && !line.contains("SIGKILL"), "{line}");
    let unfinished = {
        let mut head = b"PERFILE2".to_vec();
        for word in [104u64, 144, 104, 144, 248, 0, 0] {
            head.extend(word.to_le_bytes());
        }
        head.resize(104 + 144 + 500, 0);
        refused(&head)
    };
    assert!(unfinished.contains("let perf end by itself"), "{unfinished}");
}

/// An attribute of a tracepoint with these flags, as `HEADER_ATTR` has it: type 2, ids at the end.
fn with_attribute(flags: u64, ids: u64) -> impl Fn(Vec<u8>) -> Vec<u8> {
    move |mut data| {
        let word = |data: &[u8], at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
        let (each, begin, len) = (word(&data, 16), word(&data, 24), word(&data, 32));
        for at in (begin..begin + len).step_by(each) {
            let told = u64::from_le_bytes(data[at + 40..at + 48].try_into().unwrap()) | flags;
            data[at + 40..at + 48].copy_from_slice(&told.to_le_bytes());
            // Bytes of ids stand at the end of an entry.
            data[at + each - 8..at + each].copy_from_slice(&(8 * ids).to_le_bytes());
        }
        data
    }
}

/// perf_event_attr's `enable_on_exec` (bit 12), which perf sets without `-a`; an id for each CPU; `write_backward` (bit 27).
#[test]
fn what_perf_was_told_to_leave_out_is_said() {
    let file = bytes("pipe.perf");
    let line = refused(&with_attribute(1 << 12, 2)(file.clone()));
    assert!(line.contains("one command's own events") && line.contains("perf record -a"), "{line}");
    let w = lift(&with_attribute(0, 1)(file.clone())).unwrap();
    assert!(warned(&w, "perf recorded 1 of 2 CPUs (-C)"), "{:?}", recorded(&w).warnings);
    let w = lift(&with_attribute(0, 2)(file)).unwrap();
    assert!(!warned(&w, "perf recorded"), "{:?}", recorded(&w).warnings);
    // The same in the head of `perf script --header`.
    let script = |ids: &str, more: &str| {
        format!(
            "# nrcpus online : 2\n# event : name = sched:sched_switch, , id = {{ {ids} }}, type = 2, size = 128{more}\n#\n"
        ) + &text(&rounds(60), Line::perf_script)
    };
    let line = refused(script("1, 2", ", enable_on_exec = 1").as_bytes());
    assert!(line.contains("one command's own events"), "{line}");
    let w = lift(script("1", "").as_bytes()).unwrap();
    assert!(warned(&w, "perf recorded 1 of 2 CPUs (-C)"), "{:?}", recorded(&w).warnings);
}

/// perf writes all that it reads: where a CPU begins late, it was idle, or its tasks write no events. Only `--overwrite` and text of
/// unknown origin leave it open.
#[test]
fn a_cpu_that_begins_late_is_no_ring_that_was_overwritten_where_perf_recorded() {
    let from = 1_000_000_000 + 30 * 10_000;
    let late: Vec<Line> = rounds(60).into_iter().filter(|l| l.cpu == 0 || l.us >= from).collect();
    let script = text(&late, Line::perf_script);
    let cut = |data: &[u8]| warned(&lift(data).unwrap(), "Not all CPUs are recorded all the time");
    assert!(!cut(script.as_bytes()), "perf script");
    assert!(cut(text(&late, |l| l.tracefs("d.%2.")).as_bytes()), "text of unknown origin");
    let kept = format!("# entries-in-buffer/entries-written: {0}/{0}   #P:2\n", late.len());
    assert!(!cut((kept + &text(&late, |l| l.tracefs("d.%2."))).as_bytes()), "nothing was overwritten");
    let backward =
        "# event : name = sched:sched_switch, , id = { 1, 2 }, type = 2, size = 128, write_backward = 1\n";
    assert!(cut((backward.to_owned() + &script).as_bytes()), "perf record --overwrite");
}

#[test]
fn text_without_cpus_and_archives_of_text_are_named() {
    let lines = text(&rounds(3), |l| l.perf_script().replacen(&format!("[{:03}]", l.cpu), "", 1));
    let line = refused(lines.as_bytes());
    assert!(line.contains("without the CPU") && line.contains("perf script -F"), "{line}");
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"t.txt");
    tar[257..262].copy_from_slice(b"ustar");
    tar.extend(standard(&rounds(3)).as_bytes());
    assert!(refused(&tar).contains("tar xf theirs"));
}
