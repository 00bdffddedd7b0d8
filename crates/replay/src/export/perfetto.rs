//! Replays as a Perfetto trace: TrackEvent packets, for ui.perfetto.dev.
//!
//! Each replay is a process. Its tracks: the machine's power, and for each CPU the running task (slices, with the
//! wake-ups sent there as instants), the C-state (slices; from the end of one to whatever runs next it is being left) and the speed (a counter).
//! Time is the replay's own; all begin at 0.

use super::protobuf::Message;
use super::{KeptError, task_name};
use std::io::{Result, Write};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_sim::{Event, Waker, Watcher};

/// Fields of Perfetto's messages (protos/perfetto/trace in its repository, version 50), by message.
mod field {
    pub(super) const TRACE_PACKET: u64 = 1;
    pub(super) mod packet {
        pub(crate) const TIMESTAMP: u64 = 8;
        pub(crate) const SEQUENCE: u64 = 10;
        pub(crate) const EVENT: u64 = 11;
        pub(crate) const FLAGS: u64 = 13;
        pub(crate) const DESCRIPTOR: u64 = 60;
    }
    pub(super) mod descriptor {
        pub(crate) const UUID: u64 = 1;
        pub(crate) const NAME: u64 = 2;
        pub(crate) const PROCESS: u64 = 3;
        pub(crate) const PARENT: u64 = 5;
        pub(crate) const COUNTER: u64 = 8;
        pub(crate) const PROCESS_PID: u64 = 1;
        pub(crate) const PROCESS_NAME: u64 = 6;
        pub(crate) const COUNTER_UNIT_NAME: u64 = 6;
        pub(crate) const ORDERING: u64 = 11;
        pub(crate) const RANK: u64 = 12;
    }
    pub(super) mod event {
        pub(crate) const TYPE: u64 = 9;
        pub(crate) const TRACK: u64 = 11;
        pub(crate) const NAME: u64 = 23;
        pub(crate) const COUNTER: u64 = 30;
        pub(crate) const COUNTER_DOUBLE: u64 = 44;
    }
}

/// TrackEvent.Type.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// TracePacket.SequenceFlags: nothing from before is referred to.
const CLEARED: u64 = 1;
/// TrackDescriptor.ChildTracksOrdering: by rank.
const EXPLICIT: u64 = 3;
/// All packets are of one writer.
const SEQUENCE: u64 = 1;

/// Tracks of a CPU, and the number of them.
const TASK: u64 = 0;
const STATE: u64 = 1;
const SPEED: u64 = 2;
const TRACKS: u64 = 3;

/// How many events of each kind were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Processes.
    pub replays: u64,
    /// Slices in which a task runs.
    pub runs: u64,
    /// Slices in which a CPU is in a C-state.
    pub stays: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Changes of a domain's speed; a counter's value for each of its CPUs.
    pub speeds: u64,
    /// Values of the power's counter.
    pub powers: u64,
}

/// A trace in the making.
pub struct Perfetto<W> {
    out: KeptError<W>,
    counts: ExportCounts,
}

impl<W: Write> Perfetto<W> {
    /// An empty one.
    pub fn new(out: W) -> Perfetto<W> {
        Perfetto { out: KeptError::new(out), counts: ExportCounts::default() }
    }

    /// Adds a replay: whoever watches it is returned.
    pub fn replay<'p>(
        &'p mut self,
        name: &str,
        machine: &'p MachineModel,
        workload: &'p Workload,
    ) -> WatchedReplay<'p, W> {
        self.counts.replays += 1;
        let number = self.counts.replays;
        let base = number << 32;
        let trace = &mut *self;
        trace.describe(base, None, name, |d| {
            d.message(field::descriptor::PROCESS, |p| {
                p.int(field::descriptor::PROCESS_PID, number).text(field::descriptor::PROCESS_NAME, name);
            });
            d.int(field::descriptor::ORDERING, EXPLICIT);
        });
        let power = base + 1;
        let counter = |unit: &'static str| {
            move |d: &mut Message| {
                d.message(field::descriptor::COUNTER, |c| {
                    c.text(field::descriptor::COUNTER_UNIT_NAME, unit);
                });
            }
        };
        trace.describe(power, Some((base, 0)), "power", counter("W"));
        for c in 0..machine.cpus.len() as u64 {
            let first = power + 1 + c * TRACKS;
            let mut track = |track: u64, what: &str, fill: &dyn Fn(&mut Message)| {
                let rank = 1 + c * TRACKS + track;
                trace.describe(first + track, Some((base, rank)), &format!("CPU {c:03} {what}"), fill);
            };
            track(TASK, "task", &|_| ());
            track(STATE, "C-state", &|_| ());
            track(SPEED, "speed", &counter("kHz"));
        }
        let cpus = machine.cpus.len();
        WatchedReplay {
            trace: self,
            machine,
            workload,
            power,
            running: vec![false; cpus],
            idle: vec![false; cpus],
            bin: (0, 0.0),
        }
    }

    /// Ends the trace; how many events it has.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> Result<ExportCounts> {
        self.into_output().map(|(counts, _)| counts)
    }

    /// Ends the trace; what it has, and where it went.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn into_output(self) -> Result<(ExportCounts, W)> {
        Ok((self.counts, self.out.finish()?))
    }

    fn describe(
        &mut self,
        uuid: u64,
        parent: Option<(u64, u64)>,
        name: &str,
        fill: impl FnOnce(&mut Message),
    ) {
        self.packet(|p| {
            p.int(field::packet::FLAGS, CLEARED);
            p.message(field::packet::DESCRIPTOR, |d| {
                d.int(field::descriptor::UUID, uuid).text(field::descriptor::NAME, name);
                if let Some((parent, rank)) = parent {
                    d.int(field::descriptor::PARENT, parent).int(field::descriptor::RANK, rank);
                }
                fill(d);
            });
        });
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) {
        let mut trace = Message::default();
        trace.message(field::TRACE_PACKET, |p| {
            p.int(field::packet::SEQUENCE, SEQUENCE);
            fill(p);
        });
        self.out.write(trace.bytes());
    }

    fn event(&mut self, at_ns: u64, track: u64, kind: u64, fill: impl FnOnce(&mut Message)) {
        self.packet(|p| {
            p.int(field::packet::TIMESTAMP, at_ns);
            p.message(field::packet::EVENT, |e| {
                e.int(field::event::TYPE, kind).int(field::event::TRACK, track);
                fill(e);
            });
        });
    }
}

/// One replay, as it is watched.
pub struct WatchedReplay<'p, W> {
    trace: &'p mut Perfetto<W>,
    machine: &'p MachineModel,
    workload: &'p Workload,
    /// The power's track; the CPUs' follow it.
    power: u64,
    /// By CPU: whether a slice is open.
    running: Vec<bool>,
    idle: Vec<bool>,
    /// The last bin's end, and the joules until then.
    bin: (u64, f64),
}

impl<W: Write> WatchedReplay<'_, W> {
    fn track(&self, cpu: u16, which: u64) -> u64 {
        self.power + 1 + u64::from(cpu) * TRACKS + which
    }

    fn begin(&mut self, at_ns: u64, track: u64, name: &str) {
        self.trace.event(at_ns, track, BEGIN, |e| {
            e.text(field::event::NAME, name);
        });
    }

    fn end(&mut self, at_ns: u64, track: u64) {
        self.trace.event(at_ns, track, END, |_| ());
    }

    fn woken(&mut self, at_ns: u64, to: u16, task: u32, by: Waker) {
        let by = match by {
            Waker::Start => "the start",
            Waker::Timer => "a timer",
            Waker::Device => "a device",
            Waker::Task(waker) => task_name(self.workload, waker),
        };
        let name = format!("{} woken by {by}", task_name(self.workload, task));
        let track = self.track(to, TASK);
        self.trace.event(at_ns, track, INSTANT, |e| {
            e.text(field::event::NAME, &name);
        });
        self.trace.counts.wakeups += 1;
    }

    fn speed(&mut self, at_ns: u64, domain: u16, khz: u32) {
        self.trace.counts.speeds += 1;
        let machine = self.machine;
        for cpu in (0..machine.cpus.len() as u16).filter(|c| machine.cpus[usize::from(*c)].domain == domain) {
            let track = self.track(cpu, SPEED);
            self.trace.event(at_ns, track, COUNTER, |e| {
                e.int(field::event::COUNTER, u64::from(khz));
            });
        }
    }

    /// The mean power of a bin holds from its beginning on, so it is written as of then.
    fn energy(&mut self, at_ns: u64, joules: f64) {
        let (from, before) = std::mem::replace(&mut self.bin, (at_ns, joules));
        if at_ns > from {
            self.trace.counts.powers += 1;
            let watts = (joules - before) / ((at_ns - from) as f64 * 1e-9);
            let track = self.power;
            self.trace.event(from, track, COUNTER, |e| {
                e.double(field::event::COUNTER_DOUBLE, watts);
            });
        }
    }

    /// Ends the replay: what is open is closed, and the last bin ends.
    pub fn end_at(mut self, at_ns: u64, joules: f64) {
        self.energy(at_ns, joules);
        for cpu in 0..self.running.len() {
            if self.running[cpu] {
                self.end(at_ns, self.track(cpu as u16, TASK));
            }
            if self.idle[cpu] {
                self.end(at_ns, self.track(cpu as u16, STATE));
            }
        }
    }
}

impl<W: Write> Watcher for WatchedReplay<'_, W> {
    fn event(&mut self, at_ns: u64, event: &Event) {
        match *event {
            Event::Wakes { task, by, to, .. } => self.woken(at_ns, to, task, by),
            Event::Runs { cpu, task } => {
                self.running[usize::from(cpu)] = true;
                self.trace.counts.runs += 1;
                self.begin(at_ns, self.track(cpu, TASK), task_name(self.workload, task));
            }
            Event::Stops { cpu, .. } => {
                self.running[usize::from(cpu)] = false;
                self.end(at_ns, self.track(cpu, TASK));
            }
            Event::Enters { cpu, state } => {
                self.idle[usize::from(cpu)] = true;
                self.trace.counts.stays += 1;
                let machine = self.machine;
                let kind = usize::from(machine.cpus[usize::from(cpu)].kind);
                self.begin(at_ns, self.track(cpu, STATE), &machine.kinds[kind].idle[usize::from(state)].name);
            }
            Event::Leaves { cpu } => {
                self.idle[usize::from(cpu)] = false;
                self.end(at_ns, self.track(cpu, STATE));
            }
            Event::Works { .. } | Event::IsAwake { .. } => {}
            Event::Speed { domain, khz } => self.speed(at_ns, domain, khz),
            Event::Energy { joules } => self.energy(at_ns, joules),
        }
    }
}
