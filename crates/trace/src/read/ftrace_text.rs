//! Scheduler events as text: tracefs's `trace`, `trace-cmd report` and `perf script`. How a line's head is taken apart is said in
//! `ftrace_line`; here is what comes after it, and the text as a whole.
//!
//! Arguments are taken from their own keys, for a name may hold blanks, brackets and dashes. `perf script` and `trace-cmd report`
//! print no flags: then interrupts cannot be told from tasks, and a warning says so.
//!
//! **Order and place.** The kernel merges its CPUs' rings as it prints them. Text that was put together otherwise (the files of
//! `per_cpu/` one after the other) goes back in time, which is seen at the first reading; the second sorts it. Within a CPU nothing
//! goes back in a sound recording: where much does, two recordings are in one file.
//!
//! **What a ring no longer held.** `entries-in-buffer/entries-written: 600/1200` says that the rings were overwritten, and so does
//! `CPU 1 buffer started` before the first event of a CPU. Then each CPU's events begin at another time, and only what all cover
//! is used.
//!
//! **Whose numbers.** perf shows tasks by the numbers of the PID namespace that it was run in; a tracepoint's own fields have the
//! kernel's. Where a switch's head is of another task than its `prev_pid`, heads are read by what the switches say of them, and
//! where they say nothing (all tasks outside of the namespace have the number 0) by who is on that CPU.

use crate::TraceError;
use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::events::{Comms, Event, EventKind, Left, Level, Read, Sink, Switch, Target};
use crate::lacks::Lack;
use crate::marks::{self, Work};
use crate::plan::{Plan, kernels};
use crate::read::decode::program;
use crate::read::ftrace_line::{Columns, Line, PERFS_OWN, Stamp, is_kernels, parse, seconds, true_one};
use crate::read::input::Input;
use crate::read::perf_data::{OF_COMMAND, some_cpus};
use crate::read::perf_script::{ByPerf, of_tasks};
use std::collections::BTreeMap;
use wattwise_figure::Part;

/// Longest line; the kernel's own have at most a few hundred bytes.
const MOST_LINE: usize = 4 << 10;

/// More than one event of so many that is older than the one before it on its CPU: not one recording.
const MOST_BACKWARDS: u64 = 16;

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
    Some((&text[..at], &text[at + 1..]))
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

fn target(arguments: &str, comms: &mut Comms) -> Option<Target> {
    if let Some((comm, fields)) = name(arguments, "comm=", "pid=", "prio=") {
        return Some(Target {
            tid: tid(fields, "pid=")?,
            prio: prio(value(fields, "prio=")?)?,
            comm: comms.number(comm.as_bytes()),
            cpu: number(fields, "target_cpu=").filter(|c| *c < MAX_CPUS).unwrap_or(0),
        });
    }
    let (name, tid, prio, after) = short(arguments)?;
    let cpu = after.split("CPU:").nth(1).and_then(|c| c.trim().parse().ok()).unwrap_or(0);
    Some(Target { tid, prio, comm: comms.number(name.as_bytes()), cpu })
}

/// A mark by which another clock is told.
const CLOCK_SYNC: &str = "trace_event_clock_sync: parent_ts=";

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
            let (_, fields) = name(a, "comm=", "pid=", "child_comm=")?;
            let (parent, child) = fields.split_once(" child_comm=")?;
            let (comm, child) = child.rsplit_once(" child_pid=")?;
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
            let work = Work { cycles: number(a, "cycles=")?, stall_ns: number(a, "stall_ns=")? };
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

/// Whether text looks like a recording: one of its lines is an event or ftrace's own head.
pub(crate) fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().any(|l| l.starts_with("# tracer:") || parse(l).is_some())
}

/// One switch of so many whose head is of another task is damage; more, and the heads count otherwise.
const MOST_OF_OTHERS: u64 = 16;

/// Within so many events it shows who wrote the text.
const SURELY: u64 = 1000;

/// Stands for a task of which the writer knew no number.
const UNKNOWN: u32 = u32::MAX;

/// What is known of a CPU.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    first_ns: u64,
    last_ns: u64,
    /// Who was there at first, by the first switch.
    first_tid: Option<u32>,
    /// Who is there now, by the switches.
    current: Option<u32>,
}

/// Reads from a position to the end. Damage costs a line at a time.
pub(crate) fn read<S: Sink>(
    input: &Input,
    at: u64,
    plan: &Plan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<Read, TraceError> {
    let mut text = Text::new(input, plan, comms, sink);
    let mut window = input.window(at, input.len());
    let mut skipping = false;
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
            text.line(line.strip_suffix("\\n\\").unwrap_or(&line));
        } else if !whole {
            text.damaged += 1;
        }
        if let Some(over) = text.over {
            return Err(TraceError::OverBudget { name: input.name.clone(), over });
        }
        window.skip(length as u64 + u64::from(end.is_some()));
    }
    text.finish()
}

/// Text being read.
struct Text<'a, S: Sink> {
    input: &'a Input,
    plan: &'a Plan,
    comms: &'a mut Comms,
    sink: &'a mut S,
    read: Read,
    columns: Columns,
    cpus: BTreeMap<u16, Cpu>,
    /// Events to be sorted.
    kept: Vec<Event>,
    over: Option<wattwise_figure::OverBudget>,
    damaged: u64,
    /// No event had flags.
    flagless: bool,
    /// All times are whole microseconds.
    coarse: bool,
    /// perf's own records of tasks are in it.
    kinship: bool,
    /// Which of the kernel's numbers those in the heads are.
    found_numbers: BTreeMap<u32, u32>,
    /// Notes in the head that the sink does not know.
    noted: bool,
    newest_ns: u64,
    /// Events whose time is a count.
    ticks: u64,
    /// Events older than the one before them on their CPU.
    backwards: u64,
    /// Switches, and those whose head is of another task than the one that leaves.
    switches: u64,
    of_others: u64,
    /// Rings were overwritten.
    overwritten: bool,
    /// The head tells how much of them was kept, or perf writes what it wrote.
    kept_known: bool,
    /// What `perf script --header` says of how the events were recorded.
    by_perf: ByPerf,
}

impl<'a, S: Sink> Text<'a, S> {
    fn new(input: &'a Input, plan: &'a Plan, comms: &'a mut Comms, sink: &'a mut S) -> Self {
        Text {
            input,
            plan,
            comms,
            sink,
            read: Read { format: "ftrace text", ..Read::default() },
            columns: Columns::default(),
            cpus: BTreeMap::new(),
            kept: Vec::new(),
            over: None,
            damaged: 0,
            flagless: true,
            coarse: true,
            kinship: false,
            found_numbers: BTreeMap::new(),
            noted: false,
            newest_ns: 0,
            ticks: 0,
            backwards: 0,
            switches: 0,
            of_others: 0,
            overwritten: false,
            kept_known: false,
            by_perf: ByPerf::default(),
        }
    }

    fn line(&mut self, line: &str) {
        // Only perf names the system of an event.
        self.kept_known |= self.read.events < SURELY && line.contains(" sched:sched_");
        if let Some(line) = parse(line) {
            return self.event(&line);
        }
        if let Some(n) = lost(line) {
            self.read.lost = self.read.lost.saturating_add(n);
            let kind = EventKind::Lost(n);
            let time_ns = self.newest_ns;
            return self.pass_on(Event { time_ns, cpu: 0, level: Level::Task, current: 0, kind });
        }
        if line.starts_with('#') {
            self.columns.comment(line);
            if let Some((kept, written)) = entries(line) {
                self.overwritten |= kept < written;
                self.kept_known = true;
            }
            if let Some(cpu) = started(line) {
                // The kernel says so of every CPU but the first, once, where any ring was overwritten.
                self.overwritten |= !self.cpus.is_empty() && !self.cpus.contains_key(&cpu);
            }
        }
        if let Some(cpus) = line.split("#P:").nth(1).or(line.strip_prefix("cpus=")) {
            let cpus = cpus.trim().trim_end_matches(')').parse().ok().filter(|n| *n <= MAX_CPUS);
            self.read.cpus = cpus.or(self.read.cpus);
        } else if self.read.events == 0 && (self.take_head(line) || self.take_perfs_head(line)) {
            self.noted = true;
        } else if is_damaged(line) {
            self.damaged += 1;
        }
    }

    fn take_head(&mut self, line: &str) -> bool {
        marks::take_head(line, &mut self.read.notes).is_some()
    }

    /// The head of `perf script --header`.
    fn take_perfs_head(&mut self, line: &str) -> bool {
        let Some((key, value)) = line.strip_prefix("# ").and_then(|l| l.split_once(':')) else {
            return false;
        };
        match key.trim_end() {
            "event" => self.by_perf.take(value),
            "nrcpus online" => self.read.cpus = value.trim().parse().ok().filter(|n| *n <= MAX_CPUS),
            "cpudesc" => self.read.cpu_name = Some(value.trim().to_owned()).filter(|name| !name.is_empty()),
            "wattwise pmu capabilities" => {
                let entries = value.split(", ").filter_map(|e| e.trim().split_once('='));
                entries.for_each(|(name, value)| self.read.notes.take(name, value));
                let command = self.read.notes.command;
                self.read.notes.command = command.map(|id| kernels(&self.plan.numbers, id).unwrap_or(id));
            }
            _ => return false,
        }
        true
    }

    fn event(&mut self, line: &Line<'_>) {
        if std::mem::take(&mut self.noted) {
            self.sink.header(&self.read);
        }
        if line.name.starts_with(PERFS_OWN) {
            self.kinship = true;
            if let (Some(kind), Stamp::Ns(time_ns)) =
                (of_tasks(line, &self.plan.numbers, self.comms), line.time)
            {
                self.pass_on(Event { time_ns, cpu: 0, level: Level::Task, current: 0, kind });
            }
            return;
        }
        self.read.events += 1;
        self.flagless &= line.flags.is_none();
        // Of other events not even the time is of use: markers of programs may have any.
        let kind = match kind(line, self.comms) {
            Ok(Some(kind)) => kind,
            Ok(None) => return,
            Err(()) => {
                self.damaged += 1;
                return;
            }
        };
        let time_ns = match line.time {
            Stamp::Ns(ns) => {
                self.coarse &= ns.is_multiple_of(1000);
                ns
            }
            Stamp::Ticks(n) => {
                self.ticks += 1;
                n
            }
        };
        self.read.found.disordered |= time_ns < self.newest_ns;
        self.newest_ns = self.newest_ns.max(time_ns);
        let seen = Cpu { first_ns: time_ns, last_ns: time_ns, first_tid: None, current: None };
        let cpu = self.cpus.entry(line.cpu).or_insert(seen);
        self.backwards += u64::from(time_ns < cpu.last_ns);
        // What one CPU writes is in order, whatever its times say.
        cpu.last_ns = cpu.last_ns.max(time_ns);
        cpu.first_ns = cpu.first_ns.min(time_ns);
        let time_ns = if self.plan.sorted { cpu.last_ns } else { time_ns };
        if let EventKind::Switch(s) = kind {
            cpu.first_tid = cpu.first_tid.or(Some(s.prev_tid));
            self.switches += 1;
            self.of_others += u64::from(line.current != Some(s.prev_tid));
            if let Some(told) =
                line.current.filter(|told| *told > 0 && (self.of_others > 0 || *told != s.prev_tid))
            {
                self.found_numbers.entry(told).or_insert(s.prev_tid);
            }
        }
        let level = self.columns.level(line.flags);
        let current = line.current.unwrap_or(UNKNOWN);
        self.pass_on(Event { time_ns, cpu: line.cpu, level, current, kind });
    }

    fn pass_on(&mut self, event: Event) {
        if !self.plan.sorted {
            return self.deliver(event);
        }
        self.kept.push(event);
        let bytes = (self.kept.len() * size_of::<Event>()) as u64;
        self.over = self.input.budget.allows(Part::Memory, bytes).err();
    }

    /// Where a line's number of its task is of no use, who is there is known from the switches.
    fn deliver(&mut self, mut event: Event) {
        if event.kind.is_side() && !matches!(event.kind, EventKind::Work { .. } | EventKind::ClockSync { .. })
        {
            return self.sink.event(&event, self.comms);
        }
        let cpu = self.cpus.get_mut(&event.cpu);
        if event.current == UNKNOWN || !self.plan.currents.is_empty() {
            let before = self.plan.currents.iter().find(|(cpu, _)| *cpu == event.cpu).map(|(_, tid)| *tid);
            // One that a switch has told with the kernel's number too is known by it.
            let told = self.plan.numbers.get(&event.current).copied();
            event.current = told.or(cpu.as_ref().and_then(|cpu| cpu.current)).or(before).unwrap_or(0);
        }
        if let (EventKind::Switch(s), Some(cpu)) = (event.kind, cpu) {
            (event.current, cpu.current) = (s.prev_tid, Some(s.next_tid));
        }
        self.sink.event(&event, self.comms);
    }

    fn finish(mut self) -> Result<Read, TraceError> {
        let unusable = |what: String, remedy: &str| {
            Err(TraceError::Unusable { name: self.input.name.clone(), what, remedy: remedy.into() })
        };
        if self.ticks > 0 {
            return unusable(
                "ftrace text whose times are counts of a clock (trace_clock x86-tsc or counter), expected seconds".into(),
                "convert the trace.dat with `trace-cmd report --ts2secs HZ`, HZ being the clock's rate, or record again after \
                 `echo mono > /sys/kernel/tracing/trace_clock`",
            );
        }
        if self.backwards > self.read.events / MOST_BACKWARDS {
            return unusable(
                format!(
                    "{} of {} events are older than the one before them on their CPU: several recordings in one file, a clock that \
                     was set back, or times that are differences (--deltatime)",
                    self.backwards, self.read.events
                ),
                "give each recording as a file of its own",
            );
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_by_key(|event| event.time_ns);
        kept.into_iter().for_each(|event| self.deliver(event));
        if self.by_perf.of_command {
            return unusable(OF_COMMAND.0.into(), OF_COMMAND.1);
        }
        if let Some(cpus) = self.read.cpus.filter(|n| (1..usize::from(*n)).contains(&self.by_perf.opened)) {
            self.read.warnings.push(some_cpus(self.by_perf.opened, cpus));
            self.read.cpus = None;
        }
        self.read.found.unsure = self.by_perf.backward || !self.kept_known;
        if self.overwritten {
            self.read.found.covered_from = self.cpus.values().map(|cpu| cpu.first_ns).max();
        }
        if self.of_others > self.switches / MOST_OF_OTHERS {
            let first = self.cpus.iter().filter_map(|(cpu, seen)| Some((*cpu, seen.first_tid?)));
            self.read.found.currents = first.collect();
            self.read.found.numbers = std::mem::take(&mut self.found_numbers);
        }
        let lacks = [
            (Lack::Interrupts, self.flagless),
            (Lack::Nanoseconds, self.coarse),
            (Lack::Kinship, !self.kinship),
            (Lack::Processor, self.read.cpu_name.is_none()),
        ];
        self.read.lacks = lacks.into_iter().filter(|(_, lacks)| *lacks).map(|(lack, _)| lack).collect();
        self.warn();
        Ok(self.read)
    }

    fn warn(&mut self) {
        if self.plan.sorted && self.backwards > 0 {
            let n = self.backwards;
            self.read.warnings.push(format!(
                "{n} events were older than their predecessors on the same CPU and count as simultaneous."
            ));
        }
        if self.damaged > 0 {
            self.read.warnings.push(format!("{} lines are damaged and left out.", self.damaged));
        }
        if self.flagless && self.read.events > 0 {
            self.read.warnings.push(
                "The text has no irq flags: wake-ups by interrupts on a busy CPU count as its task's; \
                 `trace-cmd report -l` or the recording itself has them."
                    .into(),
            );
        }
    }
}

/// Whether a line should have been an event. Call stacks, markers of several lines and what tools say of themselves are other
/// lines.
fn is_damaged(line: &str) -> bool {
    let of_use = ["sched_", "cpu_idle: ", "cpu_frequency: ", "hrtimer_start: "];
    let is_stack = || line.trim_start().starts_with("=>") || line.trim_end().ends_with(')');
    !line.starts_with('#')
        && of_use.iter().any(|name| line.contains(name))
        && line.contains(": ")
        && !is_stack()
}

/// `# entries-in-buffer/entries-written: 600/1200   #P:2`
fn entries(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.split_once("entries-in-buffer/entries-written:")?;
    let (kept, written) = counts.split_whitespace().next()?.split_once('/')?;
    Some((kept.parse().ok()?, written.parse().ok()?))
}

/// `##### CPU 1 buffer started ####`
fn started(line: &str) -> Option<u16> {
    let (_, cpu) = line.split_once("CPU ")?;
    cpu.split_once(" buffer started")?.0.trim().parse().ok().filter(|cpu| *cpu < MAX_CPUS)
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
        let Stamp::Ns(time_ns) = l.time else { panic!("{line}") };
        (Columns::default().level(l.flags), l.current.unwrap(), l.cpu, time_ns, kind, names)
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
                    matches!(kind, EventKind::Waking(Target { tid: 8, prio: 98, cpu: 3, .. })),
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

    #[test]
    fn what_the_head_and_the_rings_say() {
        assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), Some(12));
        assert_eq!(entries("# entries-in-buffer/entries-written: 600/1200   #P:2"), Some((600, 1200)));
        assert_eq!(started("##### CPU 3 buffer started ####"), Some(3));
        assert_eq!((started("#           TASK-PID     CPU#  |||||"), entries("# tracer: nop")), (None, None));
    }

    #[test]
    fn only_what_should_have_been_an_event_is_damaged() {
        for line in [
            "\tffffffff8180a1c8 __schedule+0x3c8 ([kernel.kallsyms])",
            "\t          4011f2 sched_switch: x+0x22 (/opt/My App/prog [v2])",
            " => sched_switch",
            " 0)   <idle>-0     =>      A-100  ",
            " ------------------------------------------",
            "# cmdline : /usr/bin/perf record -e sched:sched_switch: -a",
            "capturing trace... done",
            "",
        ] {
            assert!(!is_damaged(line), "{line}");
        }
        assert!(is_damaged("A-100 [0x0] d..2. 1000.0: sched_switch: prev_comm=A prev_pid=100"));
    }
}
