//! Ten thousand hostile names through a Perfetto trace, read back by another's protobuf reader: each is there as it was, in the
//! field of a name and nowhere else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../sim/tests/common/mod.rs"]
mod common;
#[path = "../../figure/tests/support/hostile.rs"]
mod hostile;

use common::{bursts_machine, idle_maker, pattern, speed_policy, task, workload};
use hostile::{acts_on_a_terminal, names};
use prost::Message;
use std::collections::BTreeMap;
use wattwise_model::workload::{Dist, Pattern, Program, Step, TaskId};
use wattwise_replay::export::Perfetto;
use wattwise_sim::{Event, Setup, Simulation, Waker, Watcher};

const NAMES: usize = 10_000;
/// Tasks of a trace.
const TASKS: usize = 500;

/// Perfetto's messages, as far as they are written, from protos/perfetto/trace of its version 50.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
}

/// Keeps what happens and passes it on.
struct Both<'a, W>(&'a mut Vec<Event>, W);

impl<W: Watcher> Watcher for Both<'_, W> {
    fn event(&mut self, at_ns: u64, event: &Event) {
        self.0.push(*event);
        self.1.event(at_ns, event);
    }
}

/// How often each name stands in a trace, by what it names.
type Counts = BTreeMap<(&'static str, String), usize>;

fn count(counts: &mut Counts, what: &'static str, name: &str) {
    *counts.entry((what, name.to_owned())).or_default() += 1;
}

/// A replay of tasks, states and a policy of these names, and what of it must stand in its trace.
fn traced(names: &[String]) -> (Vec<u8>, Counts) {
    let mut machine = bursts_machine();
    let (policy, rest) = names.split_first().unwrap();
    machine.name.clone_from(policy);
    let mut rest = rest.iter();
    for (state, name) in machine.kinds.iter_mut().flat_map(|kind| &mut kind.idle).zip(&mut rest) {
        state.name.clone_from(name);
    }
    let tasks: Vec<&String> = rest.collect();
    // Each wakes the next, so that both names are in one.
    let program = |n: usize| {
        let run = Step::Run(Dist::Fixed(50_000));
        let next = TaskId(((n + 1) % tasks.len()) as u32);
        let steps =
            if n == 0 { vec![run, Step::Wake(next)] } else { vec![Step::Block, run, Step::Wake(next)] };
        Program::Pattern(Pattern { rounds: 1, ..pattern(n as u64 + 1, steps) })
    };
    let tasks = tasks.iter().enumerate().map(|(n, name)| task(name, program(n))).collect();
    let work = workload(tasks, 1_000_000_000);
    let (mut bytes, mut told) = (Vec::new(), Vec::new());
    let mut trace = Perfetto::new(&mut bytes);
    let make = idle_maker("fixed:depth=0");
    let mut setup = Setup::new(&machine, &work, speed_policy(&machine, "performance"), &make);
    setup.watcher = Some(Box::new(Both(&mut told, trace.replay(policy, &machine, &work))));
    let mut sim = Simulation::new(setup);
    sim.run_to_completion(u64::MAX / 4).unwrap();
    drop(sim);
    trace.finish().unwrap();
    let mut wanted = Counts::new();
    count(&mut wanted, "process", policy);
    let of = |task: u32| work.tasks[task as usize].name.as_str();
    for event in told {
        match event {
            Event::Runs { task, .. } => count(&mut wanted, "slice", of(task)),
            Event::Enters { cpu, state } => {
                let kind = usize::from(machine.cpus[usize::from(cpu)].kind);
                count(&mut wanted, "slice", &machine.kinds[kind].idle[usize::from(state)].name);
            }
            Event::Wakes { task, by, .. } => {
                let by = match by {
                    Waker::Start => "the start",
                    Waker::Timer => "a timer",
                    Waker::Device => "a device",
                    Waker::Task(by) => of(by),
                };
                count(&mut wanted, "wake-up", &format!("{} woken by {by}", of(task)));
            }
            _ => {}
        }
    }
    (bytes, wanted)
}

#[test]
fn every_name_is_data_in_a_perfetto_trace() {
    let mut used = 0;
    let stock: Vec<String> = names(71, NAMES + 1);
    for names in stock.chunks(TASKS) {
        let (bytes, wanted) = traced(names);
        let trace = Trace::decode(bytes.as_slice()).unwrap();
        // Nothing but these fields: what a reader does not know it drops, and says nothing.
        assert_eq!(trace.encoded_len(), bytes.len());
        let mut found = Counts::new();
        for packet in &trace.packet {
            if let Some(track) = &packet.track_descriptor {
                match &track.process {
                    Some(process) => {
                        assert_eq!(process.process_name, track.name);
                        count(&mut found, "process", track.name.as_deref().unwrap());
                    }
                    // Ours, of which no name is a part.
                    None => assert_eq!(acts_on_a_terminal(track.name.as_deref().unwrap()), None),
                }
            }
            match packet.track_event.as_ref().map(|e| (e.kind, e.name.as_deref())) {
                Some((Some(1), name)) => count(&mut found, "slice", name.unwrap()),
                Some((Some(3), name)) => count(&mut found, "wake-up", name.unwrap()),
                Some((_, name)) => assert_eq!(name, None),
                None => {}
            }
        }
        assert!(found == wanted, "{:?}", found.iter().zip(&wanted).find(|(a, b)| a != b));
        used += names.len();
    }
    assert!(used >= NAMES, "{used}");
}
