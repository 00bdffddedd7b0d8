//! Scheduler events as text: tracefs's `trace`, `trace-cmd report` and `perf script`. How a line's head is taken apart is said in
//! `ftrace_line`, its event in `ftrace_event`; here is the text as a whole.
//!
//! `perf script` and `trace-cmd report` print no flags: then interrupts cannot be told from tasks, and a warning says so.
//!
//! **Line ends in names.** The kernel and perf write a name as it is, and it may hold line ends (prctl(2), PR_SET_NAME). An event whose
//! fields end too early is read with the lines after it, as long as its names are then short enough to be the kernel's. And what
//! the head says is taken from lines that no name has room for; a head of `perf script` quotes a command line, and says nothing.
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

use crate::bounds::MAX_CPUS;
use crate::error::TraceError;
use crate::events::{Comms, Event, EventKind, KernelContext, Sink, TraceRead};
use crate::lacks::Lack;
use crate::marks;
use crate::plan::{ReadPlan, kernels};
use crate::read::ftrace_event::kind;
use crate::read::ftrace_line::{Columns, LineHead, PERFS_OWN, Stamp, parse};
use crate::read::input::TraceInput;
use crate::read::perf_data::{OF_COMMAND, some_cpus};
use crate::read::perf_script::{ByPerf, of_tasks};
use std::collections::BTreeMap;
use wattwise_figure::BudgetPart;

/// Longest line; the kernel's own have at most a few hundred bytes.
const MOST_LINE: usize = 4 << 10;

/// So much beside an event is its own: the lines of a call chain below it.
const BESIDE_AN_EVENT: u64 = 4 << 10;

/// Most line ends in an event: two names of 15 bytes.
const MOST_BREAKS: usize = 31;

/// More than one event of so many that is older than the one before it on its CPU: not one recording.
const MOST_BACKWARDS: u64 = 16;

/// Whether text looks like a recording: one of its lines is an event or ftrace's own head.
pub(crate) fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    is_page(start) || text.lines().any(|l| l.starts_with("# tracer:") || parse(l).is_some())
}

/// Whether it is a page such as systrace's: its viewer's program, of any length, comes before the text.
fn is_page(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    ["<!doctype html", "<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes())))
}

/// One switch of so many whose head is of another task is damage; more, and the heads count otherwise.
const MOST_OF_OTHERS: u64 = 16;

/// Within so many events it shows who wrote the text.
const SURELY: u64 = 1000;

/// Stands for a task of which the writer knew no number.
const UNKNOWN: u32 = u32::MAX;

/// What is known of a CPU.
#[derive(Clone, Copy, Debug)]
struct TextCpu {
    first_ns: u64,
    last_ns: u64,
    /// Who was there at first, by the first switch.
    first_tid: Option<u32>,
    /// Who is there now, by the switches.
    current: Option<u32>,
}

/// Reads a whole recording.
pub(crate) fn read<S: Sink>(
    input: &TraceInput,
    plan: &ReadPlan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<TraceRead, TraceError> {
    read_from(input, 0, plan, comms, sink)
}

/// Reads from a position to the end. Damage costs a line at a time.
pub(crate) fn read_from<S: Sink>(
    input: &TraceInput,
    at: u64,
    plan: &ReadPlan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<TraceRead, TraceError> {
    let mut text = TextReader::new(input, plan, comms, sink);
    let mut window = input.window(at, input.len());
    let mut skipping = false;
    let mut beside = 0_u64;
    loop {
        let events = text.read.events;
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
        // Lines that tell nothing are cheap to make and to pack, and each takes time to read.
        beside = match text.read.events == events {
            true => beside + length as u64 + 1,
            false => beside.saturating_sub(BESIDE_AN_EVENT),
        };
        if let Some(over) = text.over.or(input.budget.allows(BudgetPart::Text, beside).err()) {
            return Err(TraceError::OverBudget { name: input.name.clone(), over });
        }
        window.skip(length as u64 + u64::from(end.is_some()));
    }
    text.finish()
}

/// Whose the head of a text is, by its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextHead {
    /// There was no line yet.
    None,
    /// `perf script --header`: what is in it comes from whoever recorded, command line and all.
    PerfScript,
    Other,
}

impl TextHead {
    /// Takes a line that is no event; whether it is the first. trace-cmd's may stand below its version.
    fn take(&mut self, line: &str) -> bool {
        let first = *self == TextHead::None;
        if first && !line.starts_with("version = ") && !line.is_empty() {
            *self = if line.starts_with("# ====") { TextHead::PerfScript } else { TextHead::Other };
        }
        first
    }
}

/// What follows `#P:`, the number of CPUs, in the lines that have it: ftrace's two, and ours.
fn numbered(line: &str) -> Option<&str> {
    let heads = ["# entries-in-buffer/entries-written:", "# latency:", marks::REPLAYED];
    heads.iter().any(|head| line.starts_with(head)).then(|| line.rsplit_once("#P:"))?.map(|(_, cpus)| cpus)
}

/// Text being read.
struct TextReader<'a, S: Sink> {
    input: &'a TraceInput,
    plan: &'a ReadPlan,
    comms: &'a mut Comms,
    sink: &'a mut S,
    read: TraceRead,
    columns: Columns,
    /// An event whose fields end too early, with what followed it: a name in it may go on in the next line.
    broken: Option<String>,
    head: TextHead,
    cpus: BTreeMap<u16, TextCpu>,
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

impl<'a, S: Sink> TextReader<'a, S> {
    fn new(input: &'a TraceInput, plan: &'a ReadPlan, comms: &'a mut Comms, sink: &'a mut S) -> Self {
        TextReader {
            input,
            plan,
            comms,
            sink,
            read: TraceRead { format: "ftrace text", ..TraceRead::default() },
            columns: Columns::default(),
            broken: None,
            head: TextHead::None,
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
        let broken = self.broken.take().map(|before| before + "\n" + line);
        if let Some(whole) = &broken
            && let Some(event) = parse(whole)
            && let Ok(kind) = kind(&event, self.comms)
        {
            return self.event(&event, kind);
        }
        if let Some(event) = parse(line) {
            self.left_out(broken.is_some());
            return match kind(&event, self.comms) {
                Ok(kind) => self.event(&event, kind),
                Err(()) => self.broken = Some(line.to_owned()),
            };
        }
        self.between(line, broken.is_some());
        let goes_on = |whole: &String| whole.len() < MOST_LINE && whole.matches('\n').count() < MOST_BREAKS;
        self.left_out(broken.as_ref().is_some_and(|whole| !goes_on(whole)));
        self.broken = broken.filter(goes_on);
    }

    /// Counts an event whose fields make no sense, if there is one.
    fn left_out(&mut self, is_one: bool) {
        self.read.events += u64::from(is_one);
        self.damaged += u64::from(is_one);
    }

    /// A line that is no event; it may be the middle of a name.
    fn between(&mut self, line: &str, within: bool) {
        if let Some(n) = lost(line) {
            self.read.lost = self.read.lost.saturating_add(n);
            let kind = EventKind::Lost(n);
            let time_ns = self.newest_ns;
            return self.pass_on(Event { time_ns, cpu: 0, level: KernelContext::Task, current: 0, kind });
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
        let first = self.head.take(line) && self.read.events == 0;
        let cpus = match self.head {
            TextHead::PerfScript => None,
            _ if first => line.strip_prefix("cpus="),
            _ => numbered(line),
        };
        if let Some(cpus) = cpus {
            let cpus = cpus.trim().trim_end_matches(')').parse().ok().filter(|n| *n <= MAX_CPUS);
            self.read.cpus = cpus.or(self.read.cpus);
        } else if self.read.events == 0 && self.take_head(line) {
            self.noted = true;
        } else if !within && is_damaged(line) {
            self.damaged += 1;
        }
    }

    /// Whether a line of the head said something. Of perf's head what says how was recorded, not the command line that it quotes.
    fn take_head(&mut self, line: &str) -> bool {
        match self.head {
            TextHead::PerfScript => self.take_perfs_head(line),
            TextHead::None | TextHead::Other => {
                marks::take_head(line, &mut self.read.notes).is_some() || self.take_perfs_head(line)
            }
        }
    }

    /// The head of `perf script --header`. What stands there twice counts the first time: the command line may have line ends.
    fn take_perfs_head(&mut self, line: &str) -> bool {
        let Some((key, value)) = line.strip_prefix("# ").and_then(|l| l.split_once(':')) else {
            return false;
        };
        match key.trim_end() {
            "event" => self.by_perf.take(value),
            "nrcpus online" => {
                let cpus = value.trim().parse().ok().filter(|n| *n <= MAX_CPUS);
                self.read.cpus = self.read.cpus.or(cpus);
            }
            "cpudesc" => {
                let name = Some(value.trim().to_owned()).filter(|name| !name.is_empty());
                self.read.cpu_name = self.read.cpu_name.take().or(name);
            }
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

    /// `None` for an event of no use.
    fn event(&mut self, line: &LineHead<'_>, kind: Option<EventKind>) {
        if std::mem::take(&mut self.noted) {
            self.sink.header(&self.read);
        }
        if line.name.starts_with(PERFS_OWN) {
            self.kinship = true;
            if let (Some(kind), Stamp::Ns(time_ns)) =
                (of_tasks(line, &self.plan.numbers, self.comms), line.time)
            {
                self.pass_on(Event { time_ns, cpu: 0, level: KernelContext::Task, current: 0, kind });
            }
            return;
        }
        self.read.events += 1;
        self.flagless &= line.flags.is_none();
        // Of other events not even the time is of use: markers of programs may have any.
        let Some(kind) = kind else { return };
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
        let seen = TextCpu { first_ns: time_ns, last_ns: time_ns, first_tid: None, current: None };
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
        self.over = self.input.budget.allows(BudgetPart::Memory, bytes).err();
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

    fn finish(mut self) -> Result<TraceRead, TraceError> {
        let is_one = self.broken.take().is_some();
        self.left_out(is_one);
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
    let (cpu, after) = line.trim().strip_prefix("CPU:")?.split_once(" [LOST ")?;
    cpu.trim().parse::<u16>().ok()?;
    after.strip_suffix(" EVENTS]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_head_and_the_rings_say() {
        assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), Some(12));
        assert_eq!((lost("CPU[LOST 9 "), lost("CPU:1 [LOST 9 ]")), (None, None));
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
