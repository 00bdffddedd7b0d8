//! Raw tracepoint records, decoded by the format files that the recording brings along.
//!
//! The kernel describes each tracepoint in `events/SYSTEM/NAME/format`: a line a field, with offset and
//! size. These differ between kernels (`sched_waking` lost its `success`, comms became `__data_loc`), so
//! nothing here knows an offset: both perf.data and trace.dat carry the files, in the same container,
//! and each tracepoint of use is resolved once to a [`Layout`] of plain offsets. Decoding a record is
//! then a table look-up by `common_type` and a few bounded loads.
//!
//! The container ("tracing data"), as trace-cmd.dat.v6(5) specifies it and perf.data embeds it:
//!
//! | part | length | content |
//! |---|---|---|
//! | magic | 3 + 7 | `17 08 44`, `tracing` |
//! | version | to NUL | "0.6" from perf, "6" or "7" from trace-cmd |
//! | endian, long | 1 + 1 | 0 little, 1 big; 4 or 8 |
//! | page size | 4 | |
//! | `header_page\0` | 12 + 8 + n | layout of a ring-buffer page |
//! | `header_event\0` | 13 + 8 + n | layout of its entries |
//! | ftrace formats | 4, each 8 + n | not of use here |
//! | event formats | 4 systems, each name\0, 4, each 8 + n | the format files |
//! | kallsyms, printk, comms | 4 + n, 4 + n, 8 + n | not of use here |

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::events::{Comm, Comms, EventKind, KernelContext, Left, Switch, WakeTarget};
use crate::take::{ByteOrder, Take};

/// Where in a record a field is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordField {
    offset: u16,
    /// 0: the format has no such field.
    size: u16,
    signed: bool,
    place: FieldPlace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FieldPlace {
    #[default]
    Here,
    /// `__data_loc`: length and offset from the record's start.
    Record,
    /// `__rel_loc`: length and offset from the field's end.
    After,
}

impl RecordField {
    pub(crate) fn offset(self) -> usize {
        usize::from(self.offset)
    }
    pub(crate) fn size(self) -> usize {
        usize::from(self.size)
    }

    #[inline]
    fn number(self, raw: &[u8], order: ByteOrder) -> Option<i64> {
        let b = raw.get(usize::from(self.offset)..)?;
        Some(match (self.size, self.signed) {
            (4, true) => i64::from(order.u32(b)? as i32),
            (4, false) => i64::from(order.u32(b)?),
            (8, _) => order.u64(b)? as i64,
            (2, true) => i64::from(order.u16(b)? as i16),
            (2, false) => i64::from(order.u16(b)?),
            (1, true) => i64::from(*b.first()? as i8),
            (1, false) => i64::from(*b.first()?),
            _ => return None,
        })
    }

    #[inline]
    fn text(self, raw: &[u8], order: ByteOrder) -> Option<&[u8]> {
        let start = usize::from(self.offset);
        if self.place == FieldPlace::Here {
            return raw.get(start..start + usize::from(self.size));
        }
        let locator = order.u32(raw.get(start..)?)?;
        let (mut at, len) = ((locator & 0xffff) as usize, (locator >> 16) as usize);
        if self.place == FieldPlace::After {
            at += start + usize::from(self.size);
        }
        raw.get(at..at + len)
    }
}

/// One format file, parsed.
#[derive(Debug)]
pub(crate) struct Format<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: Option<u16>,
    fields: Vec<(&'a str, RecordField)>,
    print: &'a str,
}

impl<'a> Format<'a> {
    /// Parses a format file (or `header_page`, which has fields alone).
    pub(crate) fn parse(text: &'a str) -> Format<'a> {
        let mut format = Format { name: "", id: None, fields: Vec::new(), print: "" };
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok();
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.print = print;
            } else if let Some(field) = line.strip_prefix("field:") {
                format.fields.extend(Format::field(field));
            }
        }
        format
    }

    /// `TYPE NAME[LEN]; offset:N; size:N; signed:N;`
    fn field(text: &'a str) -> Option<(&'a str, RecordField)> {
        let mut parts = text.split(';').map(str::trim);
        let declaration = parts.next()?;
        let mut field = RecordField::default();
        for part in parts {
            match part.split_once(':') {
                Some(("offset", n)) => field.offset = n.trim().parse().ok()?,
                Some(("size", n)) => field.size = n.trim().parse().ok()?,
                Some(("signed", n)) => field.signed = n.trim() == "1",
                _ => {}
            }
        }
        if declaration.starts_with("__data_loc") {
            field.place = FieldPlace::Record;
        } else if declaration.starts_with("__rel_loc") {
            field.place = FieldPlace::After;
        }
        // The name is the last word, an array's length cut off: `char prev_comm[16]`.
        let name = declaration.rsplit([' ', '*']).next()?;
        Some((name.split('[').next()?, field))
    }

    pub(crate) fn get(&self, name: &str) -> RecordField {
        self.fields.iter().find(|(n, _)| *n == name).map_or(RecordField::default(), |(_, f)| *f)
    }

    fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|n| self.get(n).size > 0)
    }

    /// The letters of task states by bit, from `{ 0x0001, "S" }` in sched_switch's print format.
    fn states(&self) -> Vec<(u64, Left)> {
        let mut states = Vec::new();
        for pair in self.print.split('{').skip(1) {
            let Some((mask, rest)) = pair.split_once(',') else { continue };
            let mask = mask.trim();
            let mask = match mask.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => mask.parse(),
            };
            let letter = rest.trim_start().strip_prefix('"').and_then(|r| r.bytes().next());
            if let (Ok(mask), Some(left)) = (mask, letter.and_then(Left::from_letter)) {
                states.push((mask, left));
            }
        }
        states
    }
}

/// Fields that every record begins with.
#[derive(Clone, Copy, Debug, Default)]
struct Common {
    flags: RecordField,
    pid: RecordField,
}

/// How to read one kind of tracepoint.
#[derive(Debug)]
enum Layout {
    Switch { prev: [RecordField; 3], state: RecordField, next: [RecordField; 3], states: Vec<(u64, Left)> },
    Wake { which: fn(WakeTarget) -> EventKind, who: [RecordField; 3], cpu: RecordField },
    Fork { parent: RecordField, child: RecordField, comm: RecordField },
    Exit { tid: RecordField },
    Idle { state: RecordField, cpu: RecordField },
    Frequency { khz: RecordField, cpu: RecordField },
    Hrtimer { mode: RecordField },
    Migrate { tid: RecordField, to: RecordField },
    Exec { file: RecordField, tid: RecordField },
    Suspend { action: RecordField, start: RecordField },
}

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) level: KernelContext,
    pub(crate) current: u32,
    pub(crate) kind: EventKind,
}

/// What a record turned out to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DecodedRecord {
    /// Of use.
    Event(Decoded),
    /// Some other tracepoint.
    Other,
    /// Of use, yet shorter than its format or with impossible numbers.
    Bad,
}

/// `common_flags`, as the kernel's `enum trace_flag_type` numbers them; there is no format file for it.
const FLAG_HARDIRQ: i64 = 0x08;
const FLAG_SOFTIRQ: i64 = 0x10;
const FLAG_NMI: i64 = 0x40;

/// The step of a suspend in which the machine is off.
const SUSPENDED: &[u8] = b"machine_suspend";
/// No string is there.
const NOWHERE: u64 = u64::MAX;

/// Decodes records of one recording.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) order: ByteOrder,
    kind: RecordField,
    /// Where the kernel has the name of the innermost step of a suspend, for its event tells only that.
    suspends: u64,
    /// By `common_type`.
    layouts: Vec<Option<(Common, Layout)>>,
}

impl Decoder {
    pub(crate) fn new(order: ByteOrder) -> Decoder {
        Decoder { order, kind: RecordField::default(), suspends: NOWHERE, layouts: Vec::new() }
    }

    /// Whether records of sched_switch can be read.
    pub(crate) fn knows_switches(&self) -> bool {
        self.layouts.iter().flatten().any(|(_, l)| matches!(l, Layout::Switch { .. }))
    }

    /// Learns a format file; those of no use are passed over.
    pub(crate) fn learn(&mut self, text: &[u8]) {
        // Most files of a trace.dat are of other tracepoints: look at the name before parsing the rest.
        let text = String::from_utf8_lossy(text);
        let name = text.lines().next().and_then(|l| l.strip_prefix("name:")).map_or("", str::trim);
        let wanted = ["sched_", "cpu_idle", "cpu_frequency", "hrtimer_start", "suspend_resume"];
        if !wanted.iter().any(|w| name.starts_with(w)) {
            return;
        }
        let f = Format::parse(&text);
        let Some(id) = f.id else { return };
        if !f.has(&["common_type", "common_flags", "common_pid"]) {
            return;
        }
        let wake = |which| {
            let who = [f.get("comm"), f.get("pid"), f.get("prio")];
            f.has(&["comm", "pid", "prio"]).then(|| Layout::Wake { which, who, cpu: f.get("target_cpu") })
        };
        let layout = match f.name {
            "sched_switch" => f
                .has(&[
                    "prev_comm",
                    "prev_pid",
                    "prev_prio",
                    "prev_state",
                    "next_comm",
                    "next_pid",
                    "next_prio",
                ])
                .then(|| Layout::Switch {
                    prev: [f.get("prev_comm"), f.get("prev_pid"), f.get("prev_prio")],
                    state: f.get("prev_state"),
                    next: [f.get("next_comm"), f.get("next_pid"), f.get("next_prio")],
                    states: f.states(),
                }),
            "sched_waking" => wake(EventKind::Waking),
            "sched_wakeup" => wake(EventKind::Wakeup),
            "sched_wakeup_new" => wake(EventKind::WakeupNew),
            "sched_process_fork" => f.has(&["parent_pid", "child_pid"]).then(|| Layout::Fork {
                parent: f.get("parent_pid"),
                child: f.get("child_pid"),
                comm: f.get("child_comm"),
            }),
            "sched_process_exit" => f.has(&["pid"]).then(|| Layout::Exit { tid: f.get("pid") }),
            "sched_process_exec" => f
                .has(&["filename", "pid"])
                .then(|| Layout::Exec { file: f.get("filename"), tid: f.get("pid") }),
            "sched_migrate_task" => f
                .has(&["pid", "dest_cpu"])
                .then(|| Layout::Migrate { tid: f.get("pid"), to: f.get("dest_cpu") }),
            "cpu_idle" => f
                .has(&["state", "cpu_id"])
                .then(|| Layout::Idle { state: f.get("state"), cpu: f.get("cpu_id") }),
            "cpu_frequency" => f
                .has(&["state", "cpu_id"])
                .then(|| Layout::Frequency { khz: f.get("state"), cpu: f.get("cpu_id") }),
            "suspend_resume" => f
                .has(&["action", "start"])
                .then(|| Layout::Suspend { action: f.get("action"), start: f.get("start") }),
            "hrtimer_start" => f.has(&["mode"]).then(|| Layout::Hrtimer { mode: f.get("mode") }),
            _ => None,
        };
        if let Some(layout) = layout {
            let common = Common { flags: f.get("common_flags"), pid: f.get("common_pid") };
            self.kind = f.get("common_type");
            if self.layouts.len() <= usize::from(id) {
                self.layouts.resize_with(usize::from(id) + 1, || None);
            }
            self.layouts[usize::from(id)] = Some((common, layout));
        }
    }

    /// Learns the "event formats" part: systems, each with its files. `None` when cut short, what came
    /// before is learnt all the same.
    pub(crate) fn learn_systems(&mut self, take: &mut Take<'_>) -> Option<()> {
        for _ in 0..take.u32()? {
            take.string()?;
            for _ in 0..take.u32()? {
                let n = take.u64()?;
                self.learn(take.bytes(n)?);
            }
        }
        Some(())
    }

    /// Learns `printk_formats`: where the kernel has which strings, `0xffffffff82a3b1c0 : "machine_suspend"` a line.
    pub(crate) fn learn_strings(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let place = text.lines().find_map(|line| {
            let (place, string) = line.split_once(':')?;
            let string = string.trim().trim_matches('"').as_bytes();
            (string == SUSPENDED)
                .then(|| u64::from_str_radix(place.trim().trim_start_matches("0x"), 16).ok())?
        });
        self.suspends = place.unwrap_or(self.suspends);
    }

    /// Reads a record.
    #[inline]
    pub(crate) fn decode(&self, raw: &[u8], comms: &mut Comms) -> DecodedRecord {
        let Some(id) = self.kind.number(raw, self.order) else { return DecodedRecord::Bad };
        let Some(Some((common, layout))) = self.layouts.get(id as usize) else { return DecodedRecord::Other };
        match self.fields(raw, common, layout, comms) {
            Some(decoded) => DecodedRecord::Event(decoded),
            None => DecodedRecord::Bad,
        }
    }

    #[inline]
    fn fields(&self, raw: &[u8], common: &Common, layout: &Layout, comms: &mut Comms) -> Option<Decoded> {
        let order = self.order;
        let number = |f: RecordField| f.number(raw, order);
        let tid = |f: RecordField| number(f).and_then(|n| u32::try_from(n).ok()).filter(|&t| t < MAX_TID);
        let prio = |f: RecordField| number(f).map(|n| n.clamp(-1, 200) as i16);
        let cpu =
            |f: RecordField| number(f).filter(|&c| (0..i64::from(MAX_CPUS)).contains(&c)).map(|c| c as u16);
        let flags = number(common.flags)?;
        let level = if flags & (FLAG_HARDIRQ | FLAG_NMI) != 0 {
            KernelContext::Hardirq
        } else if flags & FLAG_SOFTIRQ != 0 {
            KernelContext::Softirq
        } else {
            KernelContext::Task
        };
        let kind = match layout {
            Layout::Switch { prev, state, next, states } => EventKind::Switch(Switch {
                prev_tid: tid(prev[1])?,
                prev_prio: prio(prev[2])?,
                left: left(number(*state)? as u64, states),
                prev_comm: comms.number(prev[0].text(raw, order)?),
                next_tid: tid(next[1])?,
                next_prio: prio(next[2])?,
                next_comm: comms.number(next[0].text(raw, order)?),
            }),
            Layout::Wake { which, who, cpu: target } => which(WakeTarget {
                tid: tid(who[1])?,
                prio: prio(who[2])?,
                comm: comms.number(who[0].text(raw, order)?),
                cpu: if target.size == 0 { 0 } else { cpu(*target)? },
            }),
            Layout::Fork { parent, child, comm } => EventKind::Fork {
                parent: tid(*parent)?,
                child: tid(*child)?,
                comm: comm.text(raw, order).map_or(Comm(0), |c| comms.number(c)),
            },
            Layout::Exit { tid: who } => EventKind::Exit { tid: tid(*who)? },
            Layout::Idle { state, cpu: which } => {
                let state = number(*state)? as u32;
                EventKind::CpuIdle { cpu: cpu(*which)?, state: (state != u32::MAX).then_some(state) }
            }
            Layout::Frequency { khz, cpu: which } => {
                EventKind::CpuFrequency { cpu: cpu(*which)?, khz: u32::try_from(number(*khz)?).ok()? }
            }
            // HRTIMER_MODE_ABS is 0 and HRTIMER_MODE_REL 1, the other bits say where and how it runs.
            Layout::Hrtimer { mode } => EventKind::HrtimerStart { absolute: number(*mode)? & 1 == 0 },
            Layout::Exec { file, tid: who } => {
                let comm = comms.number(program(file.text(raw, order)?));
                EventKind::Named { tid: tid(*who)?, pid: 0, comm, exec: true }
            }
            Layout::Suspend { action, start } => {
                let started = number(*start)? != 0;
                let is_it = match action.place {
                    FieldPlace::Here => number(*action)? as u64 == self.suspends,
                    _ => action.text(raw, order)?.starts_with(SUSPENDED),
                };
                EventKind::SuspendResume { suspended: is_it.then_some(started) }
            }
            Layout::Migrate { tid: who, to } => EventKind::Migrate { tid: tid(*who)?, to: cpu(*to)? },
        };
        Some(Decoded { level, current: tid(common.pid).unwrap_or(0), kind })
    }
}

/// The name that a task takes when it begins to run a file: the last part of the path, 15 bytes of it.
pub(crate) fn program(file: &[u8]) -> &[u8] {
    let file = file.split(|&b| b == 0).next().unwrap_or(&[]);
    let name = file.rsplit(|&b| b == b'/').next().unwrap_or(file);
    &name[..name.len().min(15)]
}

/// The state's lowest bit that has a letter; none is `R`, whatever preemption mark lies above.
#[inline]
fn left(state: u64, states: &[(u64, Left)]) -> Left {
    if state == 0 {
        return Left::Runnable;
    }
    states.iter().find(|(mask, _)| state & mask != 0).map_or(Left::Runnable, |(_, l)| *l)
}

/// The "tracing data" container up to the event formats, and the two page layouts.
#[derive(Debug)]
pub(crate) struct TracingData {
    pub(crate) decoder: Decoder,
    pub(crate) version: u32,
    pub(crate) page_size: u32,
    pub(crate) header_page: Vec<u8>,
    /// Bytes of the container that were taken.
    pub(crate) taken: usize,
    /// The container ended early.
    pub(crate) cut: bool,
}

/// The first bytes of the container, and of every trace.dat.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

impl TracingData {
    /// Parses the container; `None` when not even its head is there. Version 7 has its parts elsewhere:
    /// only the head is taken.
    pub(crate) fn parse(data: &[u8]) -> Option<TracingData> {
        let mut take = Take { rest: data.strip_prefix(MAGIC)?, order: ByteOrder::Little };
        // perf writes "0.5" and "0.6" for what trace-cmd calls 5 and 6.
        let version = std::str::from_utf8(take.string()?).ok()?;
        let version = version.rsplit('.').next()?.parse().ok()?;
        if take.bytes(1)? == [1] {
            take.order = ByteOrder::Big;
        }
        take.bytes(1)?;
        let page_size = take.u32()?;
        let decoder = Decoder::new(take.order);
        let mut all =
            TracingData { decoder, version, page_size, header_page: Vec::new(), taken: 0, cut: false };
        if version < 7 {
            all.cut = all.parts(&mut take).is_none();
        }
        all.taken = data.len() - take.rest.len();
        Some(all)
    }

    /// Header info, ftrace formats and event formats, as version 6 strings them together.
    fn parts(&mut self, take: &mut Take<'_>) -> Option<()> {
        self.header_page = header_info(take)?.to_vec();
        for _ in 0..take.u32()? {
            let n = take.u64()?;
            take.bytes(n)?;
        }
        self.decoder.learn_systems(take)?;
        // Symbols, then strings. trace.dat's reader takes them once more, with what follows.
        let mut after = *take;
        let strings = (|| {
            let symbols = after.u32()?;
            after.bytes(u64::from(symbols))?;
            let strings = after.u32()?;
            after.bytes(u64::from(strings))
        })();
        if let Some(text) = strings {
            self.decoder.learn_strings(text);
        }
        Some(())
    }
}

/// The "header info" part: the page's layout is returned, the entry's is skipped.
pub(crate) fn header_info<'a>(take: &mut Take<'a>) -> Option<&'a [u8]> {
    if take.string()? != b"header_page" {
        return None;
    }
    let n = take.u64()?;
    let page = take.bytes(n)?;
    if take.string()? != b"header_event" {
        return None;
    }
    let n = take.u64()?;
    take.bytes(n)?;
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] prev_comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"%s\", __print_flags(REC->prev_state, \"|\", { 0x01, \"S\" }, { 0x2, \"D\" }, { 16, \"X\" })\n";

    #[test]
    fn offsets_states_and_located_strings_come_from_the_format() {
        let mut decoder = Decoder::new(ByteOrder::Little);
        decoder.learn(SWITCH.as_bytes());
        let mut raw = vec![0u8; 72];
        raw[..2].copy_from_slice(&372u16.to_le_bytes());
        raw[2] = 0x11;
        raw[4..8].copy_from_slice(&7i32.to_le_bytes());
        raw[8..12].copy_from_slice(&(64u32 | 5 << 16).to_le_bytes());
        raw[24] = 7;
        raw[28] = 120;
        raw[32] = 2;
        raw[40..42].copy_from_slice(b"ab");
        raw[56] = 9;
        raw[60] = 99;
        raw[64..69].copy_from_slice(b"disk\0");
        let mut comms = Comms::default();
        let DecodedRecord::Event(d) = decoder.decode(&raw, &mut comms) else { panic!("{raw:?}") };
        let EventKind::Switch(s) = d.kind else { panic!("{d:?}") };
        assert_eq!((d.level, d.current, s.left), (KernelContext::Softirq, 7, Left::Disk));
        assert_eq!((s.prev_tid, s.prev_prio, s.next_tid, s.next_prio), (7, 120, 9, 99));
        assert_eq!((comms.name(s.prev_comm), comms.name(s.next_comm)), ("disk", "ab"));
        for n in 2..60 {
            assert_eq!(decoder.decode(&raw[..n], &mut comms), DecodedRecord::Bad, "{n}");
        }
        assert_eq!(decoder.decode(&[1, 1], &mut comms), DecodedRecord::Other);
    }

    /// The format of Linux 6.1, whose `action` is a place in the kernel, and that of a kernel that writes the name.
    #[test]
    fn the_step_of_a_suspend_is_known_by_its_name() {
        const COMMON: &str = "name: suspend_resume\nID: 9\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        let mut raw = vec![0u8; 40];
        raw[0] = 9;
        let mut of = |action: &str, strings: &str, place: u64, started: u8| {
            let mut decoder = Decoder::new(ByteOrder::Little);
            let rest = "\tfield:int val;\toffset:16;\tsize:4;\tsigned:1;\n\tfield:bool start;\toffset:20;\tsize:1;\tsigned:0;\n";
            decoder.learn(format!("{COMMON}{action}{rest}").as_bytes());
            decoder.learn_strings(strings.as_bytes());
            raw[8..16].copy_from_slice(&place.to_le_bytes());
            raw[20] = started;
            raw[24..40].copy_from_slice(b"machine_suspend\0");
            match decoder.decode(&raw, &mut Comms::default()) {
                DecodedRecord::Event(Decoded { kind: EventKind::SuspendResume { suspended }, .. }) => {
                    suspended
                }
                other => panic!("{other:?}"),
            }
        };
        let place = "\tfield:const char * action;\toffset:8;\tsize:8;\tsigned:0;\n";
        let strings = "0xffffffff82000010 : \"suspend_enter\"\n0xffffffff82000020 : \"machine_suspend\"\n";
        assert_eq!(of(place, strings, 0xffff_ffff_8200_0020, 1), Some(true));
        assert_eq!(of(place, strings, 0xffff_ffff_8200_0020, 0), Some(false));
        assert_eq!(of(place, strings, 0xffff_ffff_8200_0010, 1), None);
        assert_eq!(of(place, "", 0xffff_ffff_8200_0020, 1), None);
        let name = "\tfield:__data_loc char[] action;\toffset:8;\tsize:4;\tsigned:0;\n";
        assert_eq!(of(name, "", 16 << 16 | 24, 1), Some(true));
    }

    #[test]
    fn preempted_is_runnable_and_the_mark_is_not_a_state() {
        let states = Format::parse(SWITCH).states();
        assert_eq!(left(0x100, &states), Left::Runnable);
        assert_eq!(left(0x101, &states), Left::Sleep);
        assert_eq!(left(16, &states), Left::Dead);
    }
}
