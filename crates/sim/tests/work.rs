//! The foreground's progress, on work small enough to be reckoned by hand: one core of 1 GHz, so that a cycle is a ns.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{machine, task, workload};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::generate;
use wattwise_model::workload::{Op, Program, Recorded, Role, ScriptBuilder, Task, TaskId, Workload};
use wattwise_policy::{IdleState, Settings, idle, speed};
use wattwise_sim::outcome::{Outcome, WorkOutcome};
use wattwise_sim::{Setup, Simulation, platform};

const MS: u64 = 1_000_000;
/// 1 GHz: a cycle is a ns.
const KHZ: [u32; 1] = [1_000_000];

/// No costs, no ticks that work.
fn plain(cores: usize) -> MachineModel {
    let mut m = machine(cores, &KHZ);
    m.kinds[0].idle.truncate(1);
    m.kinds[0].idle[0].exit_ns = vec![0];
    m.kinds[0].idle[0].latency_ns = 0;
    m.kinds[0].idle[0].target_ns = 0;
    (m.migration_ns, m.interrupt_ns, m.tick.cost_ns) = (0, 0, 0);
    m
}

fn script(ops: &[Op]) -> Program {
    let mut builder = ScriptBuilder::new();
    ops.iter().for_each(|&op| builder.push(op));
    Program::Recorded(builder.finish())
}

fn run_ms(ms: u64) -> Op {
    Op::Run { cycles: ms * MS * u64::from(KHZ[0]) / 1_000_000, stall_ns: 0 }
}

/// Two CPUs without costs, at the highest speed; `change` may set more.
fn play(w: &Workload, until_ns: u64, change: impl FnOnce(&mut Setup<'_, '_>)) -> (Outcome, Outcome) {
    let machine = plain(2);
    let policy = speed::find("performance").unwrap();
    let built = (policy.build)(&platform(&machine), &Settings::defaults(policy.params));
    let item = idle::find("fixed").unwrap();
    let settings = Settings::parse(item.params, "depth=0").unwrap();
    let make = |states: &[IdleState], tick: u64| (item.build)(states, tick, &settings);
    let mut setup = Setup::new(&machine, w, built, &make);
    setup.follow_work = true;
    change(&mut setup);
    let mut sim = Simulation::new(setup);
    let own = sim.run_to_completion(10_000 * MS).unwrap();
    (own, sim.run_until(until_ns))
}

fn spans(work: &WorkOutcome, task: usize) -> Vec<(u64, u64)> {
    work.episodes[task].iter().map(|e| (e.began_ns / MS, e.recorded.ended_ns / MS)).collect()
}

/// The first task's timer lets the second run too: one episode from 10 ms to the second's block at 19 ms.
#[test]
fn an_episode_spreads_with_wake_ups_and_ends_with_the_last() {
    let first = script(&[
        Op::SleepUntil(10 * MS),
        run_ms(2),
        Op::Wake(TaskId(1)),
        run_ms(3),
        Op::SleepFor(20 * MS),
        run_ms(1),
    ]);
    let second = script(&[Op::Block, run_ms(7)]);
    let (own, _) = play(&workload(vec![task("first", first), task("second", second)], 0), 0, |_| {});
    assert_eq!(spans(&own.work, 0), [(10, 19), (35, 36)]);
    assert_eq!(spans(&own.work, 1), []);
    assert_eq!(own.work.ended_ns.map(|ns| ns / MS), Some(36));
}

/// A wake-up that comes before its block belongs to what follows the block.
#[test]
fn an_early_wake_up_belongs_to_the_run_after_the_block() {
    let first = script(&[Op::SleepUntil(MS), run_ms(1), Op::Wake(TaskId(1)), Op::SleepFor(100 * MS)]);
    let second = script(&[Op::SleepUntil(MS), run_ms(10), Op::Block, run_ms(4)]);
    let (own, _) = play(&workload(vec![task("first", first), task("second", second)], 0), 0, |_| {});
    assert_eq!(spans(&own.work, 1), [(1, 11)], "its own run");
    assert_eq!(spans(&own.work, 0)[0], (1, 15), "the waker's, to the end of what it let run");
}

/// The second message was recorded behind the first, and comes 50 ms before it here, as the first one's sender has long to do. It
/// is answered at once, with the work of the first; the server has its own work still to do then. Where that is much more than
/// what it was answered with, it was not answered.
#[test]
fn a_message_that_overtakes_another_has_not_waited_for_it() {
    let responses = |own_ms: u64| {
        let first = script(&[Op::SleepUntil(10 * MS), run_ms(60), Op::Wake(TaskId(2))]);
        let second = script(&[Op::SleepUntil(20 * MS), Op::Wake(TaskId(2))]);
        let server = script(&[Op::Block, run_ms(2), Op::Block, run_ms(own_ms)]);
        let tasks = vec![task("first", first), task("second", second), task("server", server)];
        let mut w = workload(tasks, 0);
        // Of a hundred times the clock.
        w.recorded = Some(Recorded::new(2, 100_000_000));
        w.label_episodes();
        let (own, _) = play(&w, 0, |_| {});
        let of = |task: usize| own.work.episodes[task][0].response_ns(u64::MAX).unwrap() / MS;
        [of(0), of(1)]
    };
    // The server ran on the sender's CPU for 2 ms.
    let sent = 10 + 60 + 2;
    assert_eq!(
        responses(3),
        [sent - 10, 2],
        "the first one's runs of the recording are over before it has come"
    );
    assert_eq!(responses(9), [sent - 10, sent + 9 - 20]);
}

/// A late sleeper's response counts from when its timer should have fired.
#[test]
fn a_late_period_counts_from_its_release() {
    let late = script(&[
        Op::SleepUntil(2 * MS),
        run_ms(9),
        Op::SleepUntil(5 * MS),
        run_ms(1),
        Op::SleepUntil(30 * MS),
    ]);
    let (own, _) = play(&workload(vec![task("late", late)], 0), 0, |_| {});
    assert_eq!(spans(&own.work, 0)[..2], [(2, 11), (5, 12)]);
    let overruns = own.work.periods[0].iter().map(|p| (p.due_ns / MS, p.overrun)).collect::<Vec<_>>();
    assert_eq!(overruns, [(5, true), (30, false)], "the first sleep is no period");
}

/// A background task's wake-up is an outside cause, and its cycles are not the work's.
#[test]
fn background_is_outside() {
    let back = Task {
        role: Role::Background,
        ..task("back", script(&[Op::SleepUntil(3 * MS), run_ms(5), Op::Wake(TaskId(1))]))
    };
    let work = task("work", script(&[Op::Block, run_ms(2)]));
    let (own, _) = play(&workload(vec![back, work], 0), 0, |_| {});
    assert_eq!(spans(&own.work, 1), [(8, 10)]);
    let cycles = |ms: u64| (ms * MS * u64::from(KHZ[0]) / 1_000_000) as f64;
    assert_eq!((own.work.cycles, own.work.background_cycles), (cycles(2), cycles(5)));
}

/// The critical path goes from a woken task to its waker: 40 ms of the makespan of 47 ms are the waker's sleep, and the
/// sleep of a task that nobody waits for is none of it.
#[test]
fn timers_on_the_critical_path_are_told_from_those_beside_it() {
    let waker = script(&[run_ms(1), Op::SleepFor(40 * MS), run_ms(1), Op::Wake(TaskId(1))]);
    let last = script(&[Op::Block, run_ms(5)]);
    let beside = script(&[Op::SleepFor(30 * MS), run_ms(1)]);
    let tasks = vec![task("waker", waker), task("last", last), task("beside", beside)];
    let (own, _) = play(&workload(tasks, 0), 0, |_| {});
    assert_eq!(own.work.ended_ns.map(|ns| ns / MS), Some(47));
    assert_eq!(own.work.timer_ns / MS, 40);
}

/// The recorded background goes through its program once a span; 1 ms of every 10 until the window's end.
#[test]
fn the_background_goes_on_for_as_long_as_somebody_looks() {
    let program = script(&[Op::SleepUntil(4 * MS), run_ms(1)]);
    let back =
        Task { role: Role::Background, repeats: true, born: false, ends: false, ..task("back", program) };
    let work = task("work", script(&[run_ms(3)]));
    let mut w = workload(vec![back, work], 10 * MS);
    w.recorded = Some(Recorded::new(2, KHZ[0]));
    let (own, window) = play(&w, 100 * MS, |_| {});
    let ms = |cycles: f64| cycles * 1e6 / f64::from(KHZ[0]) / MS as f64;
    assert_eq!((ms(own.work.cycles), own.work.done_ns), (3.0, Some(3 * MS)));
    assert!((ms(window.work.background_cycles) - 10.0).abs() < 1e-9, "{}", ms(window.work.background_cycles));
}

/// A server is done when it waits again, not when the last client is.
#[test]
fn the_work_is_done_when_servers_wait_again() {
    let text = "name='x'\nsummary='y'\nreference_khz=1000000\n\
        [[task]]\nname='client'\nrounds=2\nsteps=[{run_us=1000},{wake='server'}]\n\
        [[task]]\nname='server'\nsteps=[{block=true},{run_us=5000}]\n";
    let w = wattwise_model::workload::file::parse(text, "x.toml").unwrap().replica(0).unwrap();
    let (own, _) = play(&w, 0, |_| {});
    let cycles = |ms: u64| (ms * MS) as f64;
    assert_eq!(own.work.cycles, cycles(12));
    assert!(own.work.ended_ns < own.work.done_ns, "{:?}", own.work);
}

/// Of recorded run time a share does not scale with the clock: at the recorded clock the time is the same.
#[test]
fn a_memory_share_moves_work_from_cycles_to_time() {
    let mut w = workload(vec![task("t", script(&[run_ms(10)]))], 0);
    w.recorded = Some(Recorded::new(2, KHZ[0]));
    let (plain, _) = play(&w, 0, |_| {});
    let (shared, _) = play(&w, 0, |s| s.memory = &[0.4]);
    assert_eq!(plain.work.done_ns, shared.work.done_ns);
    assert!((shared.work.cycles / plain.work.cycles - 0.6).abs() < 1e-12);
    // Recorded at half the clock: half the cycles, and as much time for memory.
    let half = f64::from(KHZ[0]) / 2.0;
    let (slower, _) = play(&w, 0, |s| (s.memory, s.recorded_khz) = (&[0.4], half));
    assert_eq!(slower.work.done_ns.unwrap() / MS, 7);
}

/// A pair whose sides go on for 0.35 of their 10 us after they have woken the other: two sides of 6.5 us make a round, in which each CPU
/// is busy for 10 us. Without that they take turns; with all of it both work at once.
#[test]
fn a_waker_works_on_while_the_woken_begins() {
    for (after, round_us) in [("0.35", 13.0), ("0", 20.0), ("1", 10.0)] {
        let given = format!("pairs:us=10,after={after},rounds=1000,khz=1000000,memory=0");
        let (own, _) = play(&generate::workload(&given).unwrap().unwrap(), 0, |_| {});
        let us = own.elapsed_ns as f64 / 1e3;
        assert!((us / 1000.0 - round_us).abs() < 0.02, "after={after}: {us} us");
        let busy_us: u64 = own.cpus.iter().map(|c| c.busy_ns / 1000).sum();
        assert!(busy_us.abs_diff(20_000) <= 10, "after={after}: {busy_us} us busy");
    }
}

/// Three workers on two CPUs that take parts of 1 ms of 30 ms: 15 ms. A sender that waits for nothing and its receiver, each with 10 us for a
/// message, work side by side: the receiver ends one message after the sender.
#[test]
fn parts_are_taken_by_whoever_is_free_and_senders_never_wait() {
    for (given, ms) in [
        ("parallel:threads=3,s=0.03,parts=30,khz=1000000,memory=0", 15.0),
        ("stream:us=10,messages=1000,khz=1000000,memory=0", 10.01),
    ] {
        let (own, _) = play(&generate::workload(given).unwrap().unwrap(), 0, |_| {});
        let took = own.elapsed_ns as f64 / 1e6;
        assert!((took - ms).abs() < 0.02 * ms, "{given}: {took} ms");
    }
}

/// rt-app's files on their own clock. 2 of each 16 ms keep one CPU busy for 12.5 % of the time. Of two that resume each other one works at a
/// time: five rounds of 1 and 3 ms take 20 ms, in which the two CPUs are busy for 20 ms together.
#[test]
fn rt_apps_tasks_take_the_time_that_their_file_says() {
    let play = |tasks: &str| {
        let text = format!(
            "{{\"tasks\": {{{tasks}}}, \"global\": {{\"duration\": 8, \"reference_khz\": 1000000}}}}"
        );
        let read = wattwise_model::workload::rtapp::parse(&text, "x.json").unwrap().unwrap();
        let (own, _) = play(&read.replica(0).unwrap(), 0, |_| {});
        let busy_ns: u64 = own.cpus.iter().map(|c| c.busy_ns).sum();
        (own.elapsed_ns as f64 / 1e6, busy_ns as f64 / 1e6)
    };
    let (ms, busy_ms) =
        play(r#""a": {"run": 2000, "timer": {"ref": "unique", "period": 16000}, "cpus": [1]}"#);
    assert!((busy_ms / ms - 0.125).abs() < 1e-4 && (ms - 8000.0).abs() < 16.0, "{busy_ms} of {ms} ms");
    let (ms, busy_ms) = play(
        r#""a": {"loop": 5, "run": 1000, "resume": "b", "suspend": "a"}, "b": {"suspend", "run": 3000, "resume": "a"}"#,
    );
    assert!((ms - 20.0).abs() < 0.02 && (busy_ms - 20.0).abs() < 0.02, "{busy_ms} of {ms} ms");
}
