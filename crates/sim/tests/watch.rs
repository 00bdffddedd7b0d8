//! What a watcher is told: of work small enough to be reckoned by hand, and against the accounts of work that is not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{bursts, bursts_machine, idle_maker, machine, pattern, speed_policy, task, workload};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::{Dist, Op, Pattern, Program, ScriptBuilder, Step, TaskId, Workload};
use wattwise_sim::outcome::Outcome;
use wattwise_sim::{Event, Setup, Simulation, Waker, Why};

const MS: u64 = 1_000_000;

/// Runs work with a watcher, or without.
fn run(m: &MachineModel, w: &Workload, speed: &str, watched: bool) -> (Outcome, Vec<(u64, Event)>) {
    let make = idle_maker("menu");
    let mut told: Vec<(u64, Event)> = Vec::new();
    let mut setup = Setup::new(m, w, speed_policy(m, speed), &make);
    setup.timeline = watched;
    setup.watcher = if watched { Some(Box::new(&mut told)) } else { None };
    let mut sim = Simulation::new(setup);
    let outcome = sim.run_to_completion(u64::MAX / 4).unwrap();
    drop(sim);
    (outcome, told)
}

fn script(ops: &[Op]) -> Program {
    let mut builder = ScriptBuilder::new();
    ops.iter().for_each(|&op| builder.push(op));
    Program::Recorded(builder.finish())
}

/// 1 GHz, no costs: a cycle is a ns.
fn plain() -> MachineModel {
    let mut m = bursts_machine();
    m.kinds[0].levels.truncate(1);
    m.kinds[0].levels[0].khz = 1_000_000;
    m.kinds[0].levels[0].cycles_per_ns = 1.0;
    m.kinds[0].idle[0].exit_ns.truncate(1);
    m.kinds[0].idle[0].watts.truncate(1);
    m.domains[0].transition.stall_ns.truncate(1);
    (m.migration_ns, m.tick.cost_ns) = (0, 0);
    m
}

/// The first works 2 ms, wakes the second, which works 3 ms, and sleeps until 10 ms.
#[test]
fn a_small_run_is_told_event_by_event() {
    let run_ms = |ms: u64| Op::Run { cycles: ms * MS, stall_ns: 0 };
    let first = script(&[run_ms(2), Op::Wake(TaskId(1)), Op::SleepUntil(10 * MS), run_ms(1)]);
    let second = script(&[Op::Block, run_ms(3)]);
    let work = workload(vec![task("first", first), task("second", second)], 11 * MS);
    let (_, told) = run(&plain(), &work, "performance", true);
    let tasks: Vec<_> = told
        .into_iter()
        .filter(|(_, e)| matches!(e, Event::Wakes { .. } | Event::Runs { .. } | Event::Stops { .. }))
        .collect();
    let cpu = |at: usize| match tasks[at].1 {
        Event::Runs { cpu, .. } | Event::Wakes { to: cpu, .. } => cpu,
        ref other => panic!("{other:?}"),
    };
    let (a, b) = (cpu(0), cpu(2));
    assert_ne!(a, b);
    let c = cpu(6);
    let expected = [
        (0, Event::Wakes { task: 0, by: Waker::Start, from: 0, to: a }),
        (0, Event::Runs { cpu: a, task: 0 }),
        (2 * MS, Event::Wakes { task: 1, by: Waker::Task(0), from: a, to: b }),
        (2 * MS, Event::Runs { cpu: b, task: 1 }),
        (2 * MS, Event::Stops { cpu: a, task: 0, why: Why::Sleeps }),
        (5 * MS, Event::Stops { cpu: b, task: 1, why: Why::Ends }),
        (10 * MS, Event::Wakes { task: 0, by: Waker::Timer, from: a, to: c }),
        (10 * MS, Event::Runs { cpu: c, task: 0 }),
        (11 * MS, Event::Stops { cpu: c, task: 0, why: Why::Ends }),
    ];
    assert_eq!(tasks, expected);
}

#[test]
fn watching_changes_nothing() {
    for speed in ["performance", "ondemand", "schedutil", "powerd"] {
        let m = machine(2, &[3_000_000, 2_000_000, 1_000_000]);
        let (seen, told) = run(&m, &bursts(6, 2), speed, true);
        let (unseen, nothing) = run(&m, &bursts(6, 2), speed, false);
        assert!(nothing.is_empty() && told.len() > 1000, "{speed}");
        // A timeline's bins are events of their own.
        assert_eq!(Outcome { events: 0, ..seen }, Outcome { events: 0, ..unseen }, "{speed}");
    }
}

/// Time in states and counts, added up from what was told, are the accounts'.
#[test]
fn what_is_told_adds_up_to_the_accounts() {
    for speed in ["performance", "ondemand", "schedutil", "powerd"] {
        let mut m = machine(4, &[3_000_000, 2_000_000, 1_000_000]);
        // The accounts book the way into a C-state as awake.
        m.kinds[0].idle.iter_mut().for_each(|s| s.entry_ns = 0);
        let (outcome, told) = run(&m, &bursts(9, 3), speed, true);
        assert!(told.windows(2).all(|w| w[0].0 <= w[1].0), "{speed}: in order of time");
        let of_work = |task: u32| task < 9;
        let wakes = told.iter().filter(|(_, e)| matches!(e, Event::Wakes { task, .. } if of_work(*task)));
        assert_eq!(wakes.count() as u64, outcome.wakeups, "{speed}");
        for (c, times) in outcome.cpus.iter().enumerate() {
            let idle = between(&told, outcome.elapsed_ns, |e| match *e {
                Event::Enters { cpu, .. } if usize::from(cpu) == c => Some(true),
                Event::Leaves { cpu } if usize::from(cpu) == c => Some(false),
                _ => None,
            });
            assert_eq!(idle, times.idle.iter().map(|(_, ns)| ns).sum::<u64>(), "{speed}: CPU {c} idle");
            let runs = between(&told, outcome.elapsed_ns, |e| match *e {
                Event::Runs { cpu, .. } if usize::from(cpu) == c => Some(true),
                Event::Stops { cpu, .. } if usize::from(cpu) == c => Some(false),
                _ => None,
            });
            // The rest is the kernel's: interrupts, the policy's decisions, the way out of a C-state.
            let awake = times.busy_ns + times.stall_ns;
            assert!(
                runs <= awake && runs as f64 > 0.9 * times.busy_ns as f64,
                "{speed}: CPU {c}, {runs} of {awake}"
            );
        }
        let last = told.iter().rev().find_map(|(at, e)| match e {
            Event::Energy { joules } => Some((*at, *joules)),
            _ => None,
        });
        let (at, joules) = last.unwrap();
        assert!(at <= outcome.elapsed_ns && joules <= outcome.energy.total_j(), "{speed}");
        assert!(joules > 0.9 * outcome.energy.total_j(), "{speed}");
    }
}

/// Time for which something held, that begins and ends with what is told.
fn between(told: &[(u64, Event)], end: u64, of: impl Fn(&Event) -> Option<bool>) -> u64 {
    let (mut since, mut sum) = (None, 0);
    for (at, event) in told {
        match (of(event), since) {
            (Some(true), None) => since = Some(*at),
            (Some(false), Some(from)) => {
                sum += at - from;
                since = None;
            }
            _ => {}
        }
    }
    sum + since.map_or(0, |from| end - from)
}

/// A task is never told to run on two CPUs, nor two on one.
#[test]
fn a_task_runs_in_one_place() {
    let tasks = (0..7)
        .map(|i| {
            let work = Step::Run(Dist::Uniform(500_000, 2_000_000));
            let wait = if i % 2 == 0 { Step::Io(Dist::Uniform(1000, MS)) } else { Step::Block };
            let wake = Step::Wake(TaskId((i as u32 + 1) % 7));
            let p = Pattern { rounds: 200, ..pattern(i + 1, vec![work, wake, wait]) };
            task(&format!("t{i}"), Program::Pattern(p))
        })
        .collect();
    let m = machine(3, &[3_000_000, 1_000_000]);
    let (_, told) = run(&m, &workload(tasks, MS), "schedutil", true);
    let (mut on, mut of) = ([None; 3], [None; 8]);
    for (at, event) in told {
        match event {
            Event::Runs { cpu, task } => {
                assert_eq!((on[usize::from(cpu)], of[task as usize]), (None, None), "{at}: {event:?}");
                on[usize::from(cpu)] = Some(task);
                of[task as usize] = Some(cpu);
            }
            Event::Stops { cpu, task, .. } => {
                assert_eq!(on[usize::from(cpu)].take(), Some(task), "{at}");
                assert_eq!(of[task as usize].take(), Some(cpu), "{at}");
            }
            _ => {}
        }
    }
}
