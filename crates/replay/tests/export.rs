//! Replays that are written for other programs, read back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../sim/tests/common/mod.rs"]
mod common;

use common::{bursts, bursts_machine, idle_maker, pattern, speed_policy, task, workload};
use std::collections::BTreeMap;
use std::sync::Arc;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{
    Dist, ForegroundOrigin, Op, Pattern, Program, Role, ScriptPosition, Step, Task, TaskId, Workload,
};
use wattwise_replay::export::{ExportCounts, Ftrace, Perfetto};
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Event, Setup, Simulation, Waker, Watcher};
use wattwise_trace::{ImportOptions, Source, import};

const MS: u64 = 1_000_000;

/// 2 GHz, four cores, no costs: the time on a CPU is the work's own.
fn plain() -> MachineModel {
    let mut m = bursts_machine();
    m.kinds[0].levels.truncate(1);
    m.kinds[0].levels[0].khz = 2_000_000;
    m.kinds[0].levels[0].cycles_per_ns = 2.0;
    m.kinds[0].idle[0].exit_ns.truncate(1);
    m.kinds[0].idle[0].watts.truncate(1);
    m.domains[0].transition.stall_ns.truncate(1);
    (m.migration_ns, m.tick.cost_ns) = (0, 0);
    m
}

/// Keeps what happens and passes it on.
struct Both<'a, W>(&'a mut Vec<(u64, Event)>, &'a mut W);

impl<W: Watcher> Watcher for Both<'_, W> {
    fn event(&mut self, at_ns: u64, event: &Event) {
        self.0.push((at_ns, *event));
        self.1.event(at_ns, event);
    }
}

fn replay<W: Watcher>(
    m: &MachineModel,
    w: &Workload,
    speed: &str,
    to: &mut W,
) -> (Outcome, Vec<(u64, Event)>) {
    let make = idle_maker("fixed:depth=0");
    let mut told = Vec::new();
    let mut setup = Setup::new(m, w, speed_policy(m, speed), &make);
    setup.timeline = true;
    setup.watcher = Some(Box::new(Both(&mut told, to)));
    let mut sim = Simulation::new(setup);
    let outcome = sim.run_to_completion(u64::MAX / 4).unwrap();
    drop(sim);
    (outcome, told)
}

/// A replay as ftrace text, and what that is to the importer.
fn through_ftrace(
    m: &MachineModel,
    w: &Workload,
    speed: &str,
) -> (Outcome, Vec<(u64, Event)>, String, Workload) {
    let mut bytes = Vec::new();
    let mut trace = Ftrace::new(&mut bytes, m, w);
    let (outcome, told) = replay(m, w, speed, &mut trace);
    let lines = trace.finish().unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(text.lines().filter(|l| !l.starts_with('#')).count() as u64, lines);
    let source = Source::Bytes { name: "replay".into(), data: Arc::from(bytes) };
    (outcome, told, text, import(source, &ImportOptions::default()).unwrap())
}

/// Cycles of a task's imported program, and how many others it wakes.
fn totals(task: &Task) -> (u64, usize) {
    let Program::Recorded(script) = &task.program else { panic!("{}: not recorded", task.name) };
    let mut at = ScriptPosition::default();
    let (mut sum, mut wakes) = (0, 0);
    while let Some(op) = script.step(&mut at) {
        match op {
            Op::Run { cycles, .. } => sum += cycles,
            Op::Wake(_) => wakes += 1,
            _ => {}
        }
    }
    (sum, wakes)
}

/// Wake-ups by another task that took it off its wait.
fn edges(told: &[(u64, Event)]) -> usize {
    told.iter()
        .filter(|(_, e)| matches!(e, Event::Wakes { task, by: Waker::Task(by), .. } if by != task))
        .count()
}

/// Producers, consumers, a lock that they fight for, devices, timers, and a child that is started on the way: more
/// tasks than CPUs.
fn mixed() -> Workload {
    let run = |cycles| Step::Run(Dist::Fixed(cycles));
    let rounds = |n, seed, steps| Program::Pattern(Pattern { rounds: n, ..pattern(seed, steps) });
    let mut tasks = Vec::new();
    for i in 0..4u32 {
        let partner = TaskId(2 * i + 1);
        let steps = vec![
            run(900_000 + 7_000 * u64::from(i)),
            Step::Wake(partner),
            Step::Sleep(Dist::Uniform(MS, 3 * MS)),
        ];
        tasks.push(task(&format!("source {i}"), rounds(50, u64::from(i) + 1, steps)));
        let steps = vec![Step::Block, Step::Lock(0), run(1_300_000), Step::Unlock(0), run(200_001)];
        tasks.push(task(&format!("sink:{i}"), rounds(50, u64::from(i) + 9, steps)));
    }
    let steps = vec![run(3_000_000), Step::Io(Dist::Uniform(MS, 5 * MS))];
    tasks.push(task("disk [x] a-1", rounds(40, 20, steps)));
    let mut batch = task("batch", rounds(3, 21, vec![run(100_000_000)]));
    batch.nice = 10;
    tasks.push(batch);
    Workload { locks: 1, ..workload(tasks, 400 * MS) }
}

#[test]
fn a_replay_written_as_ftrace_is_the_same_work_when_it_is_read() {
    let work = mixed();
    let (outcome, told, text, back) = through_ftrace(&plain(), &work, "performance");
    assert_eq!(back.recorded.as_ref().unwrap().cpus, 4);
    assert_eq!(back.recorded.as_ref().unwrap().warnings, Vec::<String>::new(), "{}", &text[..3000]);
    assert_eq!(back.tasks.len(), work.tasks.len());
    for own in &work.tasks {
        let Program::Pattern(p) = &own.program else { unreachable!() };
        let a_round: u64 =
            p.steps.iter().map(|s| if let Step::Run(Dist::Fixed(n)) = s { *n } else { 0 }).sum();
        let read = back.tasks.iter().find(|t| t.name == own.name).unwrap();
        assert_eq!(totals(read).0, p.rounds * a_round, "{}", own.name);
        assert_eq!((read.nice, read.realtime), (own.nice, own.realtime), "{}", own.name);
    }
    let woken: usize = back.tasks.iter().map(|t| totals(t).1).sum();
    assert_eq!(woken, edges(&told));
    assert!(woken > 150, "{woken}");
    assert_eq!(back.span_ns, outcome.elapsed_ns);
}

/// Bundled generated work, where the clock changes and a task that moves pays for it.
#[test]
fn bundled_work_comes_back_under_a_policy_that_changes_speed() {
    let m = bursts_machine();
    for name in ["burst", "ping-pong", "stream"] {
        let work = wattwise_replay::library::workload(name, &ImportOptions::default()).unwrap();
        let (outcome, told, _, back) = through_ftrace(&m, &work, "ondemand");
        let read: u64 = back.tasks.iter().map(|t| totals(t).0).sum();
        let off = read as f64 / outcome.cycles - 1.0;
        assert!(off.abs() < 1e-4, "{name}: {read} of {}", outcome.cycles);
        let woken: usize = back.tasks.iter().map(|t| totals(t).1).sum();
        assert_eq!(woken, edges(&told), "{name}");
    }
}

/// A recording on a machine of two threads a core, where a task's time on a CPU does not tell its cycles: the foreground, its
/// release, its end and all that it does come back.
#[test]
fn a_recording_comes_back_with_its_foreground_from_a_machine_with_siblings() {
    let m = wattwise_replay::library::machine("i7-4510u").unwrap();
    let work = wattwise_replay::library::workload("build", &ImportOptions::default()).unwrap();
    let (_, _, _, back) = through_ftrace(&m, &work, "schedutil");
    let (own, read) = (work.recorded.as_ref().unwrap(), back.recorded.as_ref().unwrap());
    assert_eq!((own.khz, own.memory, work.release_ns), (read.khz, read.memory, back.release_ns));
    assert_eq!(read.foreground, ForegroundOrigin::Replayed);
    let all = |w: &Workload| -> BTreeMap<String, (u64, usize, bool)> {
        let mut all = BTreeMap::new();
        for task in w.tasks.iter().filter(|t| t.role == Role::Foreground) {
            let of_name = all.entry(task.name.clone()).or_insert((0, 0, true));
            *of_name = (of_name.0 + totals(task).0, of_name.1 + 1, of_name.2 && task.ends);
        }
        all
    };
    let own = all(&work);
    assert!(own.len() >= 5 && own.values().all(|(cycles, _, ends)| *cycles > 0 && *ends), "{own:?}");
    assert_eq!(all(&back), own);
}

#[test]
fn a_perfetto_trace_counts_what_it_was_told() {
    let (m, work) = (bursts_machine(), bursts(6, 1));
    let mut bytes = Vec::new();
    let mut trace = Perfetto::new(&mut bytes);
    let mut expected = ExportCounts::default();
    for speed in ["performance", "ondemand"] {
        let mut one = trace.replay(speed, &m, &work);
        let (outcome, told) = replay(&m, &work, speed, &mut one);
        one.end_at(outcome.elapsed_ns, outcome.energy.total_j());
        expected.replays += 1;
        for (_, event) in told {
            match event {
                Event::Wakes { .. } => expected.wakeups += 1,
                Event::Runs { .. } => expected.runs += 1,
                Event::Enters { .. } => expected.stays += 1,
                Event::Speed { .. } => expected.speeds += 1,
                Event::Energy { .. } => expected.powers += 1,
                Event::Works { .. } | Event::Stops { .. } | Event::Leaves { .. } | Event::IsAwake { .. } => {}
            }
        }
        expected.powers += 1;
    }
    let counts = trace.finish().unwrap();
    assert!(counts.powers + 2 >= expected.powers, "{counts:?} {expected:?}");
    assert_eq!(ExportCounts { powers: 0, ..counts }, ExportCounts { powers: 0, ..expected });
    assert!(bytes.len() > 1000);
}

/// The first error of an output is told in the end.
#[test]
fn an_output_that_fails_is_told_of() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (m, work) = (plain(), bursts(1, 1));
    assert_eq!(Ftrace::new(Full, &m, &work).finish().unwrap_err().to_string(), "full");
    let mut trace = Perfetto::new(Full);
    trace.replay("one", &m, &work).end_at(0, 0.0);
    assert_eq!(trace.finish().unwrap_err().to_string(), "full");
}
