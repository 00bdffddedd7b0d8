//! Perfetto's recordings: protobuf, of which the scheduler's events are read.
//!
//! A trace is a chain of packets (field 1). Those of use, by Perfetto's own `protos/perfetto/trace` of version 50:
//!
//! | packet | field | use |
//! |---|---|---|
//! | `ftrace_events` | 1 | a bundle of one CPU's events |
//! | `process_tree` | 2 | who started whom, which threads are one process |
//! | `system_info` | 45 | `num_cpus` |
//! | `compressed_packets` | 50 | packets, packed by zlib |
//! | `cpu_info` | 67 | the processors' names |
//!
//! A bundle has events as messages of their own, and switches and wakings as columns (`compact_sched`), which leave out who
//! left and who woke: that is whoever was there by the switch before.
//!
//! **Order.** A bundle is of one CPU and in order; bundles come in any. All events are kept and sorted, within the budget's memory.
//!
//! **Coverage.** Perfetto's buffer may be a ring, from which whole bundles go. A bundle says when the one before it ended
//! (`previous_bundle_end_timestamp`), so that what is missing before a CPU's first one is known.

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::error::TraceError;
use crate::events::{
    Comm, Comms, Event, EventKind, KernelContext, Left, Sink, Switch, TraceRead, WakeTarget,
};
use crate::lacks::Lack;
use crate::plan::ReadPlan;
use crate::read::decode::program;
use crate::read::input::TraceInput;
use crate::read::protobuf::{Fields, ProtoValue, all, column, int, varint};
use std::collections::BTreeMap;
use std::io::Read as _;
use wattwise_figure::{BudgetPart, OverBudget};

/// Longest packet, packed or not: the service's own are under a megabyte.
const MOST_PACKET: u64 = 64 << 20;

/// `common_flags`, as the kernel's `enum trace_flag_type` numbers them.
const FLAG_HARDIRQ: u64 = 0x08 | 0x40;
const FLAG_SOFTIRQ: u64 = 0x10;

/// Who is there is known by the switch before, not by the event.
const BY_SWITCH: u32 = u32::MAX;

fn tid(message: &[u8], field: u64) -> Option<u32> {
    u32::try_from(int(message, field).unwrap_or(0)).ok().filter(|tid| *tid < MAX_TID)
}

fn cpu(message: &[u8], field: u64) -> Option<u16> {
    u16::try_from(int(message, field).unwrap_or(0)).ok().filter(|cpu| *cpu < MAX_CPUS)
}

fn prio(number: u64) -> i16 {
    (number as i64).clamp(-1, 200) as i16
}

fn level(flags: u64) -> KernelContext {
    match flags {
        _ if flags & FLAG_HARDIRQ != 0 => KernelContext::Hardirq,
        _ if flags & FLAG_SOFTIRQ != 0 => KernelContext::Softirq,
        _ => KernelContext::Task,
    }
}

/// Whether a file begins as a chain of packets: each the field 1 of a `Trace`, of a length, in which the fields' tags make sense.
pub(crate) fn is(start: &[u8]) -> bool {
    let is_control = |b: &u8| *b < 32 && !matches!(b, b'\t' | b'\n' | b'\r');
    // Text may begin with an empty line, which is the same byte.
    if start.iter().take(256).filter(|b| is_control(b)).count() < 2 {
        return false;
    }
    let (mut rest, mut packets) = (start, 0);
    while let [0x0a, after @ ..] = rest {
        let Some((length, after)) = varint(after) else { break };
        let Some((tag, _)) = varint(after) else { break };
        // Wire types 3, 4, 6 and 7 are not used, and field 0 is none.
        if length == 0 || tag >> 3 == 0 || !matches!(tag & 7, 0 | 1 | 2 | 5) {
            return false;
        }
        packets += 1;
        let Some(next) = after.get(length as usize..) else { return true };
        rest = next;
    }
    packets > 0
}

/// A recording being read.
struct PerfettoReader<'a> {
    input: &'a TraceInput,
    comms: &'a mut Comms,
    read: TraceRead,
    kept: Vec<Event>,
    /// When the bundle before each CPU's first one ended.
    before_first: BTreeMap<u16, u64>,
    /// Bytes inflated so far.
    inflated: u64,
    flags: bool,
    kinship: bool,
    bad: u64,
    over: Option<OverBudget>,
}

/// Reads a whole recording.
pub(crate) fn read<S: Sink>(
    input: &TraceInput,
    _plan: &ReadPlan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<TraceRead, TraceError> {
    let mut reader = PerfettoReader {
        input,
        comms,
        read: TraceRead { format: "Perfetto's trace", ..TraceRead::default() },
        kept: Vec::new(),
        before_first: BTreeMap::new(),
        inflated: 0,
        flags: false,
        kinship: false,
        bad: 0,
        over: None,
    };
    let mut window = input.window(0, input.len());
    while window.left() > 0 && reader.over.is_none() {
        // A tag and a length have 20 bytes at most.
        let head = window.peek(20);
        let Some((length, after)) =
            head.strip_prefix(&[0x0a]).and_then(varint).filter(|(n, _)| *n <= MOST_PACKET)
        else {
            reader.cut(window.left());
            break;
        };
        let taken = head.len() - after.len();
        let whole = taken + length as usize;
        let Some(packet) = window.peek(whole).get(taken..whole) else {
            reader.cut(window.left());
            break;
        };
        reader.packet(packet, false);
        window.skip(whole as u64);
    }
    reader.finish(sink)
}

impl PerfettoReader<'_> {
    fn cut(&mut self, left: u64) {
        self.read
            .warnings
            .push(format!("The trace ends within a packet; its last {left} bytes are left out."));
    }

    fn packet(&mut self, packet: &[u8], inflated: bool) {
        let mut fields = Fields(packet);
        for (field, value) in &mut fields {
            let ProtoValue::Bytes(message) = value else { continue };
            match field {
                1 => self.bundle(message),
                2 => self.tree(message),
                45 => self.read.cpus = cpu(message, 8).filter(|n| *n > 0).or(self.read.cpus),
                50 if !inflated => self.packed(message),
                67 => {
                    let name = all(message, 1).find_map(|cpu| all(cpu, 1).next());
                    let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
                    self.read.cpu_name = name.filter(|name| !name.is_empty());
                }
                _ => {}
            }
        }
        self.bad += u64::from(!fields.0.is_empty());
    }

    fn packed(&mut self, message: &[u8]) {
        let mut inside = Vec::new();
        let unpacked = flate2::read::ZlibDecoder::new(message).take(MOST_PACKET + 1).read_to_end(&mut inside);
        self.bad += u64::from(unpacked.is_err() || inside.len() as u64 > MOST_PACKET);
        self.inflated += inside.len() as u64;
        self.over = self.input.budget.allows(BudgetPart::Disk, self.inflated).err().or(self.over.take());
        if self.over.is_none() {
            all(&inside, 1).for_each(|packet| self.packet(packet, true));
        }
    }

    /// Processes and threads that the service saw, before all events.
    fn tree(&mut self, message: &[u8]) {
        self.kinship = true;
        for process in all(message, 1) {
            let (Some(child), Some(parent)) = (tid(process, 1), tid(process, 2)) else { continue };
            self.keep(0, EventKind::Parent { parent, child, pid: child });
        }
        for thread in all(message, 2) {
            let (Some(tid), Some(pid)) = (tid(thread, 1), tid(thread, 3)) else { continue };
            let comm = self.name(thread, 2);
            self.keep(0, EventKind::Named { tid, pid, comm, exec: false });
        }
    }

    fn name(&mut self, message: &[u8], field: u64) -> Comm {
        let name = all(message, field).next().unwrap_or(&[]);
        self.comms.number(name)
    }

    fn keep(&mut self, time_ns: u64, kind: EventKind) {
        self.put(Event { time_ns, cpu: 0, level: KernelContext::Task, current: 0, kind });
    }

    fn put(&mut self, event: Event) {
        self.kept.push(event);
        let bytes = (self.kept.len() * size_of::<Event>()) as u64;
        self.over = self.input.budget.allows(BudgetPart::Memory, bytes).err().or(self.over.take());
    }

    fn bundle(&mut self, message: &[u8]) {
        let Some(cpu) = cpu(message, 1) else {
            self.bad += 1;
            return;
        };
        let first = self.kept.len();
        for event in all(message, 2) {
            self.read.events += 1;
            match self.event(cpu, event) {
                Some(Some(event)) => self.put(event),
                Some(None) => {}
                None => self.bad += 1,
            }
        }
        all(message, 4).for_each(|columns| self.compact(cpu, columns));
        let Some(begin) = self.kept[first..].iter().map(|event| event.time_ns).min() else { return };
        if int(message, 3) == Some(1) {
            self.read.lost = self.read.lost.saturating_add(1);
            self.kept.insert(
                first,
                Event {
                    time_ns: begin,
                    cpu,
                    level: KernelContext::Task,
                    current: 0,
                    kind: EventKind::Lost(1),
                },
            );
        }
        let before = self.before_first.entry(cpu).or_insert(u64::MAX);
        *before = (*before).min(int(message, 10).filter(|end| *end > 0).map_or(0, |end| end.min(begin)));
    }

    /// `Some(None)` for tracepoints of no use.
    fn event(&mut self, cpu: u16, message: &[u8]) -> Option<Option<Event>> {
        let (time_ns, current) = (int(message, 1)?, tid(message, 2)?);
        let flags = int(message, 5);
        self.flags |= flags.is_some();
        let inside = Fields(message).find_map(|(field, value)| match value {
            ProtoValue::Bytes(bytes) => Some((field, bytes)),
            ProtoValue::Int(_) => None,
        });
        let Some((field, bytes)) = inside else { return Some(None) };
        let Some(kind) = self.kind(field, bytes, current)? else { return Some(None) };
        Some(Some(Event { time_ns, cpu, level: level(flags.unwrap_or(0)), current, kind }))
    }

    fn kind(&mut self, field: u64, m: &[u8], current: u32) -> Option<Option<EventKind>> {
        let number = |field| int(m, field).unwrap_or(0);
        Some(Some(match field {
            4 => EventKind::Switch(Switch {
                prev_tid: tid(m, 2)?,
                prev_prio: prio(number(3)),
                left: Left::from_bits(number(4)),
                prev_comm: self.name(m, 1),
                next_tid: tid(m, 6)?,
                next_prio: prio(number(7)),
                next_comm: self.name(m, 5),
            }),
            17 | 20 | 114 => {
                let target = WakeTarget {
                    tid: tid(m, 2)?,
                    prio: prio(number(3)),
                    comm: self.name(m, 1),
                    cpu: cpu(m, 5)?,
                };
                match field {
                    17 => EventKind::Wakeup(target),
                    20 => EventKind::Waking(target),
                    _ => EventKind::WakeupNew(target),
                }
            }
            11 => EventKind::CpuFrequency { cpu: cpu(m, 2)?, khz: u32::try_from(number(1)).ok()? },
            13 => {
                let state = number(1) as u32;
                EventKind::CpuIdle { cpu: cpu(m, 2)?, state: (state != u32::MAX).then_some(state) }
            }
            113 => {
                let is_it = all(m, 1).next().is_some_and(|action| action == b"machine_suspend");
                EventKind::SuspendResume { suspended: is_it.then_some(number(3) != 0) }
            }
            // task_newtask is written by who starts it.
            235 => EventKind::Fork { parent: current, child: tid(m, 1)?, comm: self.name(m, 2) },
            237 => {
                let file = all(m, 1).next().unwrap_or(&[]);
                EventKind::Named {
                    tid: tid(m, 2)?,
                    pid: 0,
                    comm: self.comms.number(program(file)),
                    exec: true,
                }
            }
            238 => EventKind::Exit { tid: tid(m, 2)? },
            239 => EventKind::Fork { parent: tid(m, 2)?, child: tid(m, 4)?, comm: self.name(m, 3) },
            551 => match int(m, 5) {
                Some(mode) => EventKind::HrtimerStart { absolute: mode & 1 == 0 },
                None => return Some(None),
            },
            _ => return Some(None),
        }))
    }

    /// Columns of switches and wakings; their times are told as differences.
    fn compact(&mut self, cpu: u16, m: &[u8]) {
        let names: Vec<Comm> = all(m, 5).map(|name| self.comms.number(name)).collect();
        let name = |n: u64| usize::try_from(n).ok().and_then(|n| names.get(n)).copied().unwrap_or_default();
        let task = |n: u64| u32::try_from(n).ok().filter(|tid| *tid < MAX_TID);
        let mut time = 0u64;
        let next = column(m, 3).zip(column(m, 4)).zip(column(m, 6));
        for ((step, state), ((tid, next_prio), comm)) in column(m, 1).zip(column(m, 2)).zip(next) {
            time = time.saturating_add(step);
            self.read.events += 1;
            let Some(next_tid) = task(tid) else {
                self.bad += 1;
                continue;
            };
            let kind = EventKind::Switch(Switch {
                prev_tid: BY_SWITCH,
                prev_prio: 0,
                left: Left::from_bits(state),
                prev_comm: Comm::default(),
                next_tid,
                next_prio: prio(next_prio),
                next_comm: name(comm),
            });
            self.put(Event { time_ns: time, cpu, level: KernelContext::Task, current: BY_SWITCH, kind });
        }
        time = 0;
        let mut flags = column(m, 12);
        let whom = column(m, 9).zip(column(m, 10)).zip(column(m, 11));
        for ((step, tid), ((to, of), comm)) in column(m, 7).zip(column(m, 8)).zip(whom) {
            time = time.saturating_add(step);
            self.read.events += 1;
            let flags = flags.next();
            self.flags |= flags.is_some();
            let to = u16::try_from(to).ok().filter(|cpu| *cpu < MAX_CPUS);
            let (Some(tid), Some(to)) = (task(tid), to) else {
                self.bad += 1;
                continue;
            };
            let kind = EventKind::Waking(WakeTarget { tid, prio: prio(of), comm: name(comm), cpu: to });
            self.put(Event {
                time_ns: time,
                cpu,
                level: level(flags.unwrap_or(0)),
                current: BY_SWITCH,
                kind,
            });
        }
    }

    fn finish<S: Sink>(mut self, sink: &mut S) -> Result<TraceRead, TraceError> {
        if let Some(over) = self.over {
            return Err(TraceError::OverBudget { name: self.input.name.clone(), over });
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_by_key(|event| event.time_ns);
        if !kept.iter().any(|event| matches!(event.kind, EventKind::Switch(_))) {
            return Err(TraceError::Unusable {
                name: self.input.name.clone(),
                what: "a recording of Perfetto's without ftrace's sched_switch".into(),
                remedy: format!(
                    "record with the ftrace events sched/sched_switch and sched/sched_waking; if it has them all the same, convert it \
                     with Perfetto's `traceconv systrace {} trace.txt`, and read trace.txt",
                    self.input.name
                ),
            });
        }
        // Each CPU begins a little after the other: a hundredth is no hole.
        let first = kept.iter().map(|event| event.time_ns).find(|time| *time > 0).unwrap_or(0);
        let hundredth = kept.last().map_or(0, |event| event.time_ns - first) / 100;
        let from = self.before_first.values().copied().max();
        self.read.found.covered_from = from.filter(|from| from.saturating_sub(first) > hundredth);
        let lacks = [
            (Lack::Interrupts, !self.flags),
            (Lack::Kinship, !self.kinship),
            (Lack::Processor, self.read.cpu_name.is_none()),
        ];
        self.read.lacks = lacks.into_iter().filter(|(_, lacks)| *lacks).map(|(lack, _)| lack).collect();
        if self.bad > 0 {
            self.read.warnings.push(format!("{} packets or events are damaged and left out.", self.bad));
        }
        sink.header(&self.read);
        // Who is on each CPU: thread, priority, name.
        let mut there: BTreeMap<u16, (u32, i16, Comm)> = BTreeMap::new();
        for mut event in kept {
            let now = there.get(&event.cpu).copied();
            if event.current == BY_SWITCH {
                event.current = now.map_or(0, |(tid, ..)| tid);
            }
            if let EventKind::Switch(s) = &mut event.kind {
                if s.prev_tid == BY_SWITCH {
                    (s.prev_tid, s.prev_prio, s.prev_comm) = now.unwrap_or((0, 120, Comm::default()));
                }
                there.insert(event.cpu, (s.next_tid, s.next_prio, s.next_comm));
            }
            sink.event(&event, self.comms);
        }
        Ok(self.read)
    }
}
