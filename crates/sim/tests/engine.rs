//! The engine's rules, one by one, on machines small enough to reckon by hand.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use wattwise_model::machine::{CState, MachineModel, Memory, Overlap, PackageState, Thermal, builtin, file};
use wattwise_model::workload::*;
use wattwise_policy::limits::{Bound, Limits};
use wattwise_policy::pelt::PERIOD_NS;
use wattwise_policy::{
    Cadence, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState, Intent, Khz, MS, Observation,
    SampleScope, Settings, SpeedPolicy, speed,
};
use wattwise_sim::{IdleWork, Interrupt, RunError, Setup, Simulation, placement, platform};

const KHZ: [u32; 2] = [2_000_000, 1_000_000];

fn script(ops: &[Op]) -> Program {
    let mut b = ScriptBuilder::new();
    ops.iter().for_each(|&o| b.push(o));
    Program::Recorded(b.finish())
}

fn run_ns(ns_at_2ghz: u64) -> Op {
    Op::Run { cycles: ns_at_2ghz * 2, stall_ns: 0 }
}

/// No C-state costs.
fn plain(cores: usize) -> MachineModel {
    let mut m = machine(cores, &KHZ);
    for s in &mut m.kinds[0].idle {
        s.entry_ns = 0;
        s.exit_ns = vec![0; KHZ.len()];
    }
    m
}

fn elapsed(m: &MachineModel, tasks: Vec<Task>) -> u64 {
    run(m, &workload(tasks, 0), "performance", "fixed:depth=0").elapsed_ns
}

#[test]
fn slowness_spreads_along_wake_edges() {
    let m = plain(2);
    let tasks = || {
        vec![
            task("a", script(&[run_ns(1000), Op::Wake(TaskId(1)), run_ns(500)])),
            task("b", script(&[Op::Block, run_ns(2000)])),
        ]
    };
    assert_eq!(elapsed(&m, tasks()), 3000);
    // At half the speed the waker comes to its wake-up late, and the waiter starts late.
    let w = workload(tasks(), 0);
    assert_eq!(run(&m, &w, "powersave", "fixed:depth=0").elapsed_ns, 6000);
}

/// A task that wakes every 11 us: a stop ends it where it has no end, and lets a short run come to its end.
#[test]
fn a_stop_ends_a_long_run_and_no_short_one() {
    let m = plain(1);
    let wakes = |rounds| {
        let steps = vec![Step::Sleep(Dist::Fixed(10_000)), Step::Run(Dist::Fixed(2000))];
        let program = Program::Pattern(Pattern {
            steps,
            start: Dist::Fixed(0),
            rounds,
            until_ns: u64::MAX,
            seed: 1,
            reference_khz: KHZ[0],
            memory_share: 0.0,
        });
        workload(vec![task("a", program)], 0)
    };
    let stop = AtomicBool::new(true);
    let run = |rounds: u64, short: u64| {
        let (make, w) = (idle_maker("fixed:depth=0"), wakes(rounds));
        let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
        sim.stop_by(&stop, short);
        sim.run_to_completion(u64::MAX / 4).map(|o| o.elapsed_ns)
    };
    assert_eq!(run(1000, 1 << 16), Ok(11_000_000));
    assert_eq!(run(u64::MAX, 1 << 20), Err(RunError::Stopped));
    // What is short is whoever's to say who runs it.
    assert_eq!(run(200_000, 1 << 16), Err(RunError::Stopped));
    assert_eq!(run(200_000, 1 << 24), Ok(2_200_000_000));
}

/// Goes no deeper than the first state, and writes down when, and how far the next timer was said to be.
struct TimersTold(Arc<Mutex<Vec<(u64, u64)>>>);

impl IdlePolicy for TimersTold {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        self.0.lock().unwrap().push((query.now_ns, query.next_timer_ns));
        IdleChoice { state: 0, stop_tick: true }
    }
    fn reflect(&mut self, _: &IdleOutcome, _: &[IdleState]) {}
}

/// From 1 s to 2 s a task sleeps. After its end at 2.5 s, and the ticks that this asks for, the CPU has no timer of its own.
#[test]
fn a_tickless_cpu_is_never_without_a_timer() {
    const S: u64 = 1_000_000_000;
    let told = |tickless| {
        let mut m = plain(1);
        m.tick.tickless = tickless;
        let w = workload(vec![task("a", script(&[run_ns(S), Op::SleepFor(S), run_ns(S / 2)]))], 0);
        let told = Arc::new(Mutex::new(Vec::new()));
        let make = |_: &[IdleState], _| -> Box<dyn IdlePolicy> { Box::new(TimersTold(told.clone())) };
        Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make)).run_until(3 * S);
        told.lock().unwrap().clone()
    };
    let tickless = told(true);
    assert!(tickless.contains(&(S, S)), "its own: {tickless:?}");
    assert_eq!(tickless.last().map(|(now, ns)| now + ns), Some(4 * S), "the kernel's");
    assert_eq!(told(false).last().map(|t| t.1), Some(u64::MAX));
}

#[test]
fn a_wake_up_that_comes_first_is_not_lost() {
    let m = plain(2);
    let tasks = vec![
        task("a", script(&[run_ns(100), Op::Wake(TaskId(1))])),
        task("b", script(&[run_ns(1000), Op::Block, run_ns(1000)])),
    ];
    assert_eq!(elapsed(&m, tasks), 2000);
}

#[test]
fn memory_time_does_not_scale() {
    let m = plain(1);
    let w = workload(vec![task("a", script(&[Op::Run { cycles: 2000, stall_ns: 1000 }]))], 0);
    assert_eq!(run(&m, &w, "performance", "fixed:depth=0").elapsed_ns, 2000);
    assert_eq!(run(&m, &w, "powersave", "fixed:depth=0").elapsed_ns, 3000);
}

#[test]
fn a_sleeper_pays_entry_and_exit() {
    // C3: 10 us to enter, 40 to leave. Woken 4 us after it went idle, it is awake 50 us after.
    let m = machine(1, &KHZ);
    let tasks = vec![task("a", script(&[run_ns(1000), Op::SleepFor(4_000), run_ns(1000)]))];
    let w = workload(tasks, 0);
    let o = run(&m, &w, "performance", "fixed:depth=1");
    // It is idle before the work begins at time 0, too: entry and exit again.
    assert_eq!(o.elapsed_ns, 50_000 + 1000 + 50_000 + 1000);
    assert_eq!(o.idle_exits, 2);
    // Entry and exit are spent awake: nothing was left for C3 itself.
    assert_eq!(o.cpus[0].idle[1].1, 0);
    assert_eq!(o.cpus[0].stall_ns, 100_000);
    assert_eq!(o.wake_latency.max(), 50_000);
}

#[test]
fn a_package_state_needs_every_core_and_is_left_first() {
    let mut m = machine(2, &KHZ);
    m.packages[0].idle = vec![PackageState {
        name: "PC6".into(),
        needs: 2,
        watts: 0.0,
        exit_ns: 300_000,
        every_package: false,
    }];
    let sleep = |t: u64| script(&[Op::SleepUntil(t), run_ns(1_000_000)]);
    let w = workload(vec![task("a", sleep(10 * MS)), task("b", sleep(10 * MS + 200_000))], 0);
    let o = run(&m, &w, "performance", "fixed");
    // The first core waits for the package (300 us) and its own C6 (100 us); the second finds the package awake.
    assert_eq!(o.packages[0], [o.elapsed_ns - 10 * MS, 10 * MS]);
    assert_eq!(o.wake_latency.max(), 400_000);
    assert_eq!(o.elapsed_ns, 10 * MS + 400_000 + 1_000_000);
    assert!(o.wake_latency.quantile(0.5) < 110_000);
}

/// Goes from the first speed to the second at 1 ms and back at 1.1 ms.
struct Switch {
    calls: u32,
}

impl SpeedPolicy for Switch {
    fn cadence(&self) -> Cadence {
        Cadence::KernelTimer { first_ns: MS, period_ns: MS / 10 }
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        out.set_speed(0, Khz(KHZ[0]));
    }
    fn observe(&mut self, _: &Observation<'_>, out: &mut Intent) {
        self.calls += 1;
        out.set_speed(0, Khz(if self.calls == 1 { KHZ[1] } else { KHZ[0] }));
        out.next_ns = Some(if self.calls == 1 { MS / 10 } else { 1000 * MS });
    }
}

fn switched(m: &MachineModel) -> (u64, u64, u64) {
    let w = workload(vec![task("a", script(&[run_ns(3 * MS)]))], 0);
    let make = idle_maker("fixed:depth=0");
    let mut sim = Simulation::new(Setup::new(m, &w, Box::new(Switch { calls: 0 }), &make));
    let o = sim.run_to_completion(u64::MAX / 4).unwrap();
    (o.elapsed_ns, o.transitions, o.cpus[0].stall_ns)
}

#[test]
fn a_change_of_speed_costs_its_entry_of_the_matrix() {
    let mut m = plain(1);
    m.domains[0].transition.stall_ns = vec![0, 50_000, 20_000, 0];
    // 1 ms at 2 GHz, 50 us still, 50 us at 1 GHz, 20 us still, the rest at 2 GHz.
    assert_eq!(switched(&m), (3 * MS + 50_000 + 25_000 + 20_000, 2, 70_000));
}

#[test]
fn a_request_during_a_change_waits_or_replaces_it() {
    let mut m = plain(1);
    m.domains[0].transition.delay_ns = 300_000;
    // Deferred: slow from 1.3 ms; the request of 1.1 ms is taken up then and takes effect at 1.6 ms.
    m.domains[0].transition.overlap = Overlap::Defer;
    assert_eq!(switched(&m), (3 * MS + 150_000, 2, 0));
    // Replaced: the speed that is asked for last is the one in force, nothing changes.
    m.domains[0].transition.overlap = Overlap::Preempt;
    assert_eq!(switched(&m), (3 * MS, 0, 0));
}

#[test]
fn smt_siblings_share_their_core() {
    let mut m = plain(1);
    m.kinds[0].smt_throughput = vec![1.0, 0.6];
    m.kinds[0].smt_power = vec![1.0, 1.2];
    m.cores[0].cpus = vec![0, 1];
    m.cpus = vec![m.cpus[0]; 2];
    let w = workload(vec![task("a", script(&[run_ns(600_000)])), task("b", script(&[run_ns(1_200_000)]))], 0);
    let o = run(&m, &w, "performance", "fixed:depth=0");
    // Together at 0.6 each for 1 ms, then the second alone for its other half.
    assert_eq!(o.elapsed_ns, 1_000_000 + 600_000);
    let busy_w = m.kinds[0].levels[0].busy_w;
    assert!((o.energy.busy_j - (1e-3 * 1.2 + 0.6e-3) * busy_w).abs() < 1e-12);
}

/// Study 002's notebook: CPUs 0 and 1 are a core, 2 and 3 the other.
#[test]
fn in_linux_3_1_the_fourth_look_of_an_idle_core_stops_a_task_that_shares_another() {
    let name = "core-i5-2gen";
    let m = file::parse(builtin::text(name).unwrap(), name).unwrap();
    let share = m.kinds[0].smt_throughput[1];
    let ms = |n: u64| Op::Run { cycles: n * u64::from(m.kinds[0].levels[0].khz), stall_ns: 0 };
    // Task 0 wakes task 1 to the sibling of its own CPU.
    let w = workload(
        vec![
            task("a", script(&[Op::SleepUntil(10 * MS), Op::Wake(TaskId(1)), ms(40)])),
            task("b", script(&[run_ns(1000), Op::Block, ms(40)])),
        ],
        0,
    );
    let took = |placement: &str| {
        let placement = placement::find(placement).unwrap();
        (run_placed(&m, &w, "performance", "fixed:depth=0", placement).elapsed_ns - 10 * MS) as f64 * 1e-6
    };
    // Four looks 1 ms apart, the first at the next tick.
    let [least, most] = [3.0, 5.0].map(|shared| 40.0 + shared * (1.0 - share));
    for placement in ["affine", "sched_mc"] {
        let took = took(placement);
        assert!((least..most).contains(&took), "{placement}: {took} ms, expected {least} to {most}");
    }
}

/// Two packages of one core each: the second is busy for 10 ms of 30, and keeps the first out of the state that takes both.
#[test]
fn a_state_of_every_package_is_kept_out_by_any_core() {
    let mut m = plain(2);
    m.tick.cost_ns = 0;
    let mut second = m.packages[0].clone();
    let idle = |name: &str, watts, every_package| PackageState {
        name: name.into(),
        needs: 0,
        watts,
        exit_ns: 0,
        every_package,
    };
    m.packages[0].cores = vec![0];
    m.packages[0].idle = vec![idle("PC2", 3.0, false), idle("PC6", 1.0, true)];
    second.cores = vec![1];
    second.idle = m.packages[0].idle.clone();
    (second.domains, m.cores[1].package, m.cpus[1].package, m.cores[1].domain, m.cpus[1].domain) =
        (vec![1], 1, 1, 1, 1);
    let mut other = m.domains[0].clone();
    (m.domains[0].cores, other.cores) = (vec![0], vec![1]);
    m.domains.push(other);
    m.packages.push(second);
    let w = workload(vec![task("a", script(&[run_ns(10 * MS)]))], 0);
    let make = idle_maker("fixed:depth=0");
    let o = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make)).run_until(30 * MS);
    let mut packages = o.packages.clone();
    packages.sort();
    assert_eq!(packages, [vec![0, 10 * MS, 20 * MS], vec![10 * MS, 0, 20 * MS]]);
    let j = |times: [f64; 3]| (4.0 * times[0] + 3.0 * times[1] + times[2]) * 1e-3;
    assert!((o.energy.uncore_j - j([10.0, 0.0, 20.0]) - j([0.0, 10.0, 20.0])).abs() < 1e-9);
}

#[test]
fn boost_depends_on_awake_cores() {
    let mut m = plain(2);
    m.packages[0].boosts = true;
    m.domains[0].boost = vec![0, 0, 1];
    let w = workload(vec![task("a", script(&[run_ns(100_000)])), task("b", script(&[run_ns(200_000)]))], 0);
    // Both at 1 GHz for 200 us; then the first core sleeps deeply and the second boosts for its other half.
    assert_eq!(run(&m, &w, "performance", "fixed:depth=2").elapsed_ns, 200_000 + 100_000);
    // In C1 its clock still counts: no boost.
    assert_eq!(run(&m, &w, "performance", "fixed:depth=0").elapsed_ns, 400_000);
}

/// By hand: 100 us of work at 2 GHz take 200 us at 1 GHz, the base speed.
#[test]
fn boost_comes_with_the_base_speed_where_the_driver_has_no_faster_one() {
    let mut m = plain(1);
    m.kinds[0].base_khz = KHZ[1];
    let w = workload(vec![task("a", script(&[run_ns(100_000)]))], 0);
    let elapsed = |m: &MachineModel, limits: Limits| {
        let userspace = speed::find("userspace").unwrap();
        let settings = Settings::parse(userspace.params, "khz=1000000").unwrap();
        let policy = limits.build(userspace, &platform(m), &settings);
        let make = idle_maker("fixed:depth=0");
        Simulation::new(Setup::new(m, &w, policy, &make)).run_to_completion(u64::MAX / 4).unwrap().elapsed_ns
    };
    let max = |khz| Limits { max: Some(Bound::Khz(Khz(khz))), ..Limits::default() };
    assert_eq!(elapsed(&m, Limits::default()), 200_000, "each speed is asked for by itself");
    m.kinds[0].asked_khz = vec![KHZ[1]];
    assert_eq!(elapsed(&m, Limits::default()), 100_000);
    assert_eq!(elapsed(&m, Limits { no_boost: true, ..Limits::default() }), 200_000);
    assert_eq!(elapsed(&m, max(1_500_000)), 100_000, "the driver cannot ask for less boost");
    assert_eq!(elapsed(&m, max(900_000)), 200_000);
}

#[test]
fn heat_holds_the_lowest_speed() {
    let mut m = plain(1);
    m.packages[0].thermal.critical_c = 30.0;
    m.packages[0].thermal.c_per_w = 0.5;
    let w = workload(vec![task("a", script(&[run_ns(20_000 * MS)]))], 0);
    let o = run(&m, &w, "performance", "fixed:depth=0");
    let slow = o.cpus[0].speed[1].1;
    assert!(slow > 0 && o.cpus[0].speed[0].1 > 0, "{:?}", o.cpus[0].speed);
    assert!(o.peak_c >= 30.0 && o.peak_c < 31.0, "{}", o.peak_c);
}

/// Where power and temperature hold each other, both follow from a formula.
#[test]
fn leakage_grows_with_the_temperature() {
    let mut m = plain(1);
    let (per_c, c_per_w, ambient) = (0.004, 2.0, 30.0);
    m.packages[0].thermal =
        Thermal { ambient_c: ambient, c_per_w, tau_s: 1.0, critical_c: 500.0, leakage_per_c: per_c };
    let w = workload(vec![task("a", script(&[run_ns(60_000 * MS)]))], 0);
    let make = idle_maker("fixed:depth=0");
    let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
    sim.run_until(40_000 * MS);
    let before = sim.outcome().energy;
    sim.run_until(50_000 * MS);
    let after = sim.outcome().energy;
    let core_w = m.kinds[0].levels[0].busy_w;
    let uncore_w = m.packages[0].uncore_w;
    let package_w = (core_w * (1.0 + per_c * (ambient - 50.0)) + uncore_w) / (1.0 - core_w * per_c * c_per_w);
    let celsius = ambient + c_per_w * package_w;
    assert!((after.package_j[0] - before.package_j[0] - 10.0 * package_w).abs() < 1e-6 * package_w);
    let leakage_w = core_w * per_c * (celsius - 50.0);
    assert!((after.leakage_j - before.leakage_j - 10.0 * leakage_w).abs() < 1e-6 * package_w);
    assert!((after.total_j() - before.total_j() - 10.0 * (package_w + m.platform_w)).abs() < 1e-6);

    // Without a resistance it is as warm as the room.
    drop(sim);
    m.packages[0].thermal.c_per_w = 0.0;
    let o = run(&m, &w, "performance", "fixed:depth=0");
    assert!((o.energy.leakage_j - o.energy.busy_j * per_c * (ambient - 50.0)).abs() < 1e-9);
}

/// The memory draws its watts at rest for the whole time, and more while a core works.
#[test]
fn memory_is_a_part_of_its_own() {
    let mut m = plain(2);
    m.memory = Memory { rest_w: 1.5, busy_w: 0.25, ..Memory::default() };
    let w = workload(
        vec![task("a", script(&[run_ns(2_000 * MS), Op::SleepUntil(5_000 * MS), run_ns(1_000 * MS)]))],
        0,
    );
    let o = run(&m, &w, "performance", "fixed:depth=0");
    let busy_s: f64 = o.cpus.iter().map(|c| c.busy_ns as f64 * 1e-9).sum();
    let elapsed_s = o.elapsed_ns as f64 * 1e-9;
    assert!((busy_s - 3.0).abs() < 0.01 && elapsed_s > 5.9, "{busy_s} {elapsed_s}");
    assert!((o.energy.memory_j - 1.5 * elapsed_s - 0.25 * busy_s).abs() < 1e-9, "{:?}", o.energy);
    let parts = o.energy.package_j[0] + o.energy.memory_j + m.platform_w * elapsed_s;
    assert!((o.energy.total_j() - parts).abs() < 1e-9);
}

#[test]
fn fair_shares_follow_nice_levels() {
    let m = plain(1);
    let mut tasks: Vec<Task> = (0..2).map(|_| task("t", script(&[run_ns(400 * MS)]))).collect();
    tasks[1].nice = 5;
    let w = workload(tasks, 0);
    let make = idle_maker("fixed:depth=0");
    let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
    // Weights 1024 and 335.5: the first gets 75.3 % and is done when it has had its 400 ms.
    sim.run_until(400 * MS * 1360 / 1024 + 6 * MS);
    let o = sim.outcome();
    assert!((o.cycles - 800e6).abs() < 1.0, "{}", o.cycles);
    let w = workload((0..2).map(|_| task("t", script(&[run_ns(400 * MS)]))).collect(), 0);
    let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
    sim.run_until(790 * MS);
    assert_eq!(sim.outcome().cycles, 0.0);
}

#[test]
fn realtime_comes_first() {
    let m = plain(1);
    let mut tasks = vec![
        task("long", script(&[run_ns(100 * MS)])),
        task("rt", script(&[Op::SleepUntil(10 * MS), run_ns(5 * MS)])),
    ];
    tasks[1].realtime = true;
    let o = run(&m, &workload(tasks, 0), "performance", "fixed:depth=0");
    assert_eq!(o.wake_latency.max(), 0);
    assert_eq!(o.elapsed_ns, 105 * MS);
}

#[test]
fn recorded_placement_is_kept_until_somebody_waits_too_long() {
    let m = plain(2);
    let on = |c: u16, ns: u64| script(&[Op::OnCpu { cpu: c, at_ns: 0 }, run_ns(ns)]);
    let w = Workload {
        recorded: Some(Recorded::new(2, KHZ[0])),
        ..workload(vec![task("a", on(1, MS)), task("b", on(1, MS))], 0)
    };
    let o = run_as_recorded(&m, &w, "performance", "fixed:depth=0");
    assert_eq!((o.cpus[0].busy_ns, o.cpus[1].busy_ns), (0, 2 * MS));
    let w = Workload { tasks: vec![task("a", on(1, 50 * MS)), task("b", on(1, 50 * MS))], ..w };
    let o = run_as_recorded(&m, &w, "performance", "fixed:depth=0");
    assert!(o.elapsed_ns < 56 * MS, "{}", o.elapsed_ns);
    assert_eq!(o.migrations, 1);
}

/// A recorded scheduler lets tasks wait beside idle CPUs, and so does its replay: only who waits longer than it did is
/// moved.
#[test]
fn a_wait_as_recorded_is_no_reason_to_move() {
    let m = plain(2);
    let on = |cpu, at_ns| Op::OnCpu { cpu, at_ns };
    let replay = |first_ns| {
        let tasks = vec![
            task("first", script(&[on(1, 0), run_ns(first_ns)])),
            task("waits", script(&[on(1, 10 * MS), run_ns(10 * MS)])),
            // Its CPU idles from 5 ms on.
            task("other", script(&[on(0, 0), run_ns(5 * MS)])),
        ];
        let recorded = Recorded::new(2, KHZ[0]);
        let w = Workload { recorded: Some(recorded), ..workload(tasks, 0) };
        let o = run_as_recorded(&m, &w, "performance", "fixed:depth=0");
        (o.elapsed_ns, o.migrations)
    };
    assert_eq!(replay(10 * MS), (20 * MS, 0), "as recorded");
    let (elapsed, moves) = replay(20 * MS);
    assert_eq!(moves, 1);
    // Late from 10 ms on, found by the first balance after 14 ms.
    assert!((24 * MS..29 * MS).contains(&elapsed), "{elapsed}");
}

#[test]
fn packing_fills_a_core_before_waking_another() {
    let mut m = plain(2);
    m.kinds[0].smt_throughput = vec![1.0, 0.6];
    m.kinds[0].smt_power = vec![1.0, 1.2];
    m.cores[0].cpus = vec![0, 1];
    m.cores[1].cpus = vec![2, 3];
    m.cpus = vec![m.cpus[0], m.cpus[0], m.cpus[1], m.cpus[1]];
    let w = workload((0..2).map(|_| task("t", script(&[run_ns(MS)]))).collect(), 0);
    let make = idle_maker("fixed:depth=0");
    let busy = |placement| {
        let setup = Setup { placement, ..Setup::new(&m, &w, speed_policy(&m, "performance"), &make) };
        let o = Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap();
        [o.cpus[0].busy_ns + o.cpus[1].busy_ns, o.cpus[2].busy_ns + o.cpus[3].busy_ns].map(|b| b > 0)
    };
    assert_eq!(busy(&placement::PACK), [true, false]);
    assert_eq!(busy(&placement::SPREAD), [true, true]);
}

#[test]
fn masked_cpus_stay_idle() {
    let m = plain(4);
    let steps = vec![Step::Run(Dist::Uniform(1000, 4_000_000)), Step::Sleep(Dist::Uniform(1, 2 * MS))];
    let tasks = (0..6)
        .map(|i| task("t", Program::Pattern(Pattern { rounds: 50, ..pattern(i + 1, steps.clone()) })))
        .collect();
    let w = workload(tasks, 0);
    let make = idle_maker("fixed:depth=0");
    let mut setup = Setup::new(&m, &w, speed_policy(&m, "performance"), &make);
    setup.idle_cpus = vec![0b1100];
    let o = Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap();
    assert!(o.cpus[0].busy_ns > 0 && o.cpus[1].busy_ns > 0);
    assert_eq!((o.cpus[2].busy_ns, o.cpus[3].busy_ns), (0, 0));
}

/// By every placement but `fifo`, which has one queue for all CPUs, and `recorded`, which has nothing to go by.
#[test]
fn a_bound_task_uses_its_cpus_alone() {
    let m = plain(4);
    let steps = vec![Step::Run(Dist::Uniform(1000, 4_000_000)), Step::Sleep(Dist::Uniform(1, 2 * MS))];
    let works = |i: u64| Program::Pattern(Pattern { rounds: 50, ..pattern(i + 1, steps.clone()) });
    let bound =
        |cpus: &[u16], i| Task { affinity: Some(Affinity::Cpus(cpus.to_vec())), ..task("t", works(i)) };
    let make = idle_maker("fixed:depth=0");
    let busy = |tasks: Vec<Task>, placement, idle_cpus: u64| {
        let w = workload(tasks, 0);
        let mut setup = Setup::new(&m, &w, speed_policy(&m, "performance"), &make);
        (setup.placement, setup.idle_cpus) = (placement, vec![idle_cpus]);
        let o = Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap();
        // What an idle CPU does when it is kicked is less.
        o.cpus.iter().map(|c| c.busy_ns > MS).collect::<Vec<_>>()
    };
    for placement in placement::ALL.iter().filter(|p| !["fifo", "recorded"].contains(&p.name)) {
        let on = |cpus: &[u16]| busy((0..6).map(|i| bound(cpus, i)).collect(), placement, 0);
        assert_eq!(on(&[1, 2]), [false, true, true, false], "{}", placement.name);
        assert_eq!(on(&[3]), [false, false, false, true], "{}", placement.name);
        // CPUs that are to idle are used where a task has no others.
        let both = busy(vec![bound(&[2, 3], 0), bound(&[3], 1)], placement, 0b1000);
        assert_eq!(both, [false, false, true, true], "{}", placement.name);
        // The others go where there is room.
        let mixed = (0..6).map(|i| if i < 3 { bound(&[0], i) } else { task("t", works(i)) });
        assert!(busy(mixed.collect(), placement, 0).iter().filter(|&&b| b).count() > 1, "{}", placement.name);
    }
}

/// By hand: two tasks of 10 ms bound to one CPU take 20, each on its own CPU 10.
#[test]
fn the_balance_takes_a_bound_task_to_none_but_its_own_cpus() {
    let m = plain(2);
    let two = |cpus: [u32; 2]| {
        let bound = |n| Task { affinity: Some(Affinity::Core(n)), ..task("t", script(&[run_ns(10 * MS)])) };
        elapsed(&m, cpus.map(bound).to_vec())
    };
    assert_eq!(two([1, 1]), 20 * MS);
    assert_eq!(two([0, 1]), 10 * MS);
    // A machine with fewer cores is counted through again.
    assert_eq!(two([0, 2]), 20 * MS);
}

/// By hand: 0.3 ms on each of two ways out of idle; none where the tick goes on.
#[test]
fn starting_a_stopped_tick_again_takes_time() {
    let end = |tickless, restart_ns| {
        let mut m = plain(1);
        (m.tick.tickless, m.tick.restart_ns) = (tickless, restart_ns);
        let steps = [Op::SleepUntil(9 * MS), run_ns(MS), Op::SleepUntil(13 * MS), run_ns(MS)];
        let w = workload(vec![task("a", script(&steps))], 0);
        let o = run(&m, &w, "performance", "fixed:depth=0");
        (o.elapsed_ns, o.cpus[0].busy_ns)
    };
    let (ended, busy) = end(true, 0);
    assert_eq!(end(true, 300_000), (ended + 300_000, busy + 600_000));
    assert_eq!(end(false, 300_000), end(false, 0));
}

#[test]
fn a_machine_that_cannot_stop_its_tick_wakes_for_it() {
    let mut m = plain(1);
    m.tick.tickless = false;
    m.tick.cost_ns = 3_000;
    let w = workload(vec![task("a", script(&[Op::SleepUntil(100 * MS), run_ns(1000)]))], 0);
    let o = run(&m, &w, "performance", "fixed:depth=0");
    // Ticks at 4, 8, ... 96 ms, and one at 100 ms beside the task.
    assert!((24..=25).contains(&(o.cpus[0].busy_ns / 3000)), "{}", o.cpus[0].busy_ns);
    let tickless = plain(1);
    assert_eq!(run(&tickless, &w, "performance", "fixed:depth=0").cpus[0].busy_ns, 1000);
}

#[test]
fn the_window_charges_the_idle_tail() {
    let m = machine(1, &KHZ);
    let w = workload(vec![task("a", script(&[run_ns(MS), Op::Block]))], 0);
    let make = idle_maker("fixed:depth=2");
    let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
    let own = sim.run_to_completion(u64::MAX / 4).unwrap();
    let window = sim.run_until(own.elapsed_ns + 100 * MS);
    // 30 us of entry at stall power, then C6, beside uncore and platform.
    let tail = 30e-6 * m.kinds[0].levels[0].stall_w + (100e-3 - 30e-6) * 0.1 + 100e-3 * 10.0;
    assert!((window.energy.total_j() - own.energy.total_j() - tail).abs() < 1e-9);
}

#[test]
fn timelines_stay_small_and_keep_the_energy() {
    let m = machine(2, &KHZ);
    let w = bursts(3, 30);
    let make = idle_maker("fixed:depth=1");
    let mut setup = Setup::new(&m, &w, speed_policy(&m, "performance"), &make);
    setup.timeline = true;
    let mut sim = Simulation::new(setup);
    // Far beyond its span: bins must merge.
    let o = sim.run_until(400_000 * MS);
    let t = sim.timeline().unwrap();
    assert!(t.power_w.len() <= 4096 && t.power_w.len() > 1024);
    let joules: f64 = t.power_w.iter().map(|&w| f64::from(w) * t.bin_ns as f64 * 1e-9).sum();
    let covered = t.bin_ns * t.power_w.len() as u64;
    assert!(o.elapsed_ns - covered <= t.bin_ns);
    assert!((joules / o.energy.total_j() - 1.0).abs() < 2.0 * t.bin_ns as f64 / o.elapsed_ns as f64);
    assert!(t.lanes.iter().all(|l| l.khz.len() == t.power_w.len() && l.khz[0] == KHZ[0]));
}

#[test]
fn tasks_that_share_a_core_part_when_another_idles() {
    let mut m = plain(2);
    m.kinds[0].smt_throughput = vec![1.0, 0.6];
    m.kinds[0].smt_power = vec![1.0, 1.2];
    m.cores[0].cpus = vec![0, 1];
    m.cores[1].cpus = vec![2, 3];
    m.cpus = vec![m.cpus[0], m.cpus[0], m.cpus[1], m.cpus[1]];
    m.migration_ns = 0;
    // The first and the last share a core; the other ends first, and within a balance period one moves.
    let works = |ms| task("t", script(&[run_ns(ms * MS)]));
    let w = workload([100, 30, 100].map(works).into(), 0);
    let o = run(&m, &w, "performance", "fixed:depth=0");
    assert!(o.elapsed_ns < 120 * MS, "{}", o.elapsed_ns);
    assert!(o.migrations >= 1);
    // Two that are bound to a core share it to the end, at 0.6 of its rate in all.
    let bound = |ms| Task { affinity: Some(Affinity::Core(0)), ..works(ms) };
    let o = run(&m, &workload(vec![bound(60), bound(60), works(30)], 0), "performance", "fixed:depth=0");
    assert_eq!((o.elapsed_ns / 1000, o.migrations), (100_000, 0));
}

/// The CPU whose timer wakes a task elsewhere takes the interrupt, where those are modelled.
#[test]
fn a_timer_wakes_its_own_cpu_too_where_an_interrupt_takes_time() {
    // The second sleeps where it ran, and wakes on the first CPU, which is idle by then.
    let second = script(&[run_ns(2 * MS), Op::SleepFor(10 * MS), run_ns(MS)]);
    let w = workload(vec![task("first", script(&[run_ns(MS), Op::Block])), task("second", second)], 0);
    let exits = |interrupt_ns| {
        let mut m = plain(2);
        m.interrupt_ns = interrupt_ns;
        let make = idle_maker("fixed");
        let setup = Setup {
            placement: &placement::FIFO,
            ..Setup::new(&m, &w, speed_policy(&m, "performance"), &make)
        };
        Simulation::new(setup).run_to_completion(1000 * MS).unwrap().idle_exits
    };
    assert_eq!((exits(0), exits(2000)), (3, 4));
}

/// A hard-working task is expected to work hard when it wakes, on whatever CPU: schedutil must not
/// climb from the bottom each time.
#[test]
fn schedutil_knows_a_task_that_wakes() {
    let m = machine(4, &[3_000_000, 2_000_000, 1_000_000, 500_000]);
    let steps = vec![Step::Sleep(Dist::Fixed(40 * MS)), Step::Run(Dist::Fixed(90_000_000))];
    let p = Pattern { rounds: 30, ..pattern(1, steps) };
    let w = workload(vec![task("t", Program::Pattern(p))], 0);
    let time = |speed: &str| run(&m, &w, speed, "fixed").elapsed_ns as f64;
    let (fast, governed) = (time("performance"), time("schedutil"));
    assert!(governed < 1.25 * fast, "{governed} {fast}");
}

/// What the scheduler told of, when, and whether it asked; and the load that came to CPUs 0 and 1 by it.
type Told = (u64, SampleScope, bool, [i32; 2]);

/// Writes that down.
struct Asked(std::sync::Arc<std::sync::Mutex<Vec<Told>>>);

impl SpeedPolicy for Asked {
    fn cadence(&self) -> Cadence {
        Cadence::Scheduler { interval_ns: 0 }
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        out.set_speed(0, Khz(KHZ[0]));
    }
    fn observe(&mut self, obs: &Observation<'_>, _: &mut Intent) {
        let SampleScope::Cpu(c) = obs.scope else { panic!("told of {:?}", obs.scope) };
        let mut moved = [0; 2];
        moved[usize::from(c)] = obs.cpus[usize::from(c)].moved_util;
        self.0.lock().unwrap().push((obs.now_ns, obs.scope, obs.asks, moved));
    }
}

/// When a governor is told of the CPUs of `m`, with the work begun at `load_phase_ns` of the load's clock.
fn asked(m: &MachineModel, tasks: Vec<Task>, load_phase_ns: u64) -> Vec<Told> {
    asked_in(m, &workload(tasks, 0), load_phase_ns)
}

fn asked_in(m: &MachineModel, w: &Workload, load_phase_ns: u64) -> Vec<Told> {
    let told = std::sync::Arc::default();
    let make = idle_maker("fixed:depth=0");
    let policy = Box::new(Asked(std::sync::Arc::clone(&told)));
    let placement = if w.recorded.is_some() { &placement::RECORDED } else { &placement::LINUX };
    let setup = Setup { load_phase_ns, placement, ..Setup::new(m, w, policy, &make) };
    Simulation::new(setup).run_to_completion(1000 * MS).unwrap();
    std::mem::take(&mut told.lock().unwrap())
}

/// Linux asks where one of the load's periods of 1.049 ms has ended since it last told.
#[test]
fn a_governor_is_told_always_and_asked_when_a_period_has_ended() {
    const US: u64 = 1000;
    let old = |ops: &[Op]| Task { born: false, ..task("t", script(ops)) };
    let ops = [Op::SleepUntil(1200 * US), run_ns(100 * US), Op::SleepUntil(1500 * US), run_ns(700 * US)];
    let at = |phase: u64| {
        let told = asked(&plain(1), vec![old(&ops)], phase);
        told.into_iter().map(|(at, _, asks, _)| ((at - phase) / US, asks)).collect::<Vec<_>>()
    };
    // The last is what the ended task takes along.
    assert_eq!(at(0), [(1200, true), (1300, false), (1500, false), (2200, true), (2200, false)]);
    // Begun so much later, a period ends at 1448.
    let begun_later = at(PERIOD_NS - 400 * US);
    assert_eq!(begun_later, [(1200, true), (1300, false), (1500, true), (2200, false), (2200, false)]);
}

/// As in Linux: what a task's dequeue asks for still counts its load, which leaves when the task is off its CPU
/// (`task_dead_fair()`), and all of it.
#[test]
fn a_task_that_ends_takes_its_load_along_after_its_dequeue() {
    let told = asked(&plain(1), vec![task("t", script(&[run_ns(3 * MS)]))], 0);
    let [.., dequeued, gone] = &told[..] else { panic!("{told:?}") };
    assert_eq!((dequeued.0, dequeued.2, dequeued.3), (3 * MS, true, [0, 0]));
    assert_eq!((gone.0, gone.2), (3 * MS, false));
    let credit = told[0].3[0];
    assert!(credit == 512 && gone.3[0] < -credit, "it came with half and has run since: {told:?}");
}

/// By hand: a new task counts for half of what its CPU has free, and 1.25 x 1/2 of 3 GHz is 1.875 GHz, so that 2 GHz are asked
/// for. Thousands of them, each on a CPU that the one before has left, change nothing about that: no load is left behind and
/// none goes missing.
#[test]
fn short_programs_one_after_the_other_run_at_the_speed_of_a_new_task() {
    let mut m = machine(2, &[3_000_000, 2_000_000, 1_000_000, 500_000]);
    m.domains = vec![m.domains[0].clone(), m.domains[0].clone()];
    for d in 0..2u16 {
        m.domains[usize::from(d)].cores = vec![d];
        (m.cores[usize::from(d)].domain, m.cpus[usize::from(d)].domain) = (d, d);
    }
    m.packages[0].domains = vec![0, 1];
    let programs = 3000;
    let wakes = (1..=programs).flat_map(|n| [Op::Wake(TaskId(n)), Op::Block]);
    let shell = task("shell", script(&wakes.collect::<Vec<_>>()));
    let program = || task("program", script(&[Op::Block, run_ns(700_000), Op::Wake(TaskId(0))]));
    let w = workload(std::iter::once(shell).chain((0..programs).map(|_| program())).collect(), 0);
    let time = |speed: &str| run(&m, &w, speed, "fixed").elapsed_ns as f64;
    let (by_hand, governed) = (time("userspace:khz=2000000"), time("schedutil"));
    assert!((0.97..1.03).contains(&(governed / by_hand)), "{governed} {by_hand}");
}

/// A new task is queued by its parent's CPU: that cannot set another domain's clock.
#[test]
fn a_fork_on_another_domain_does_not_ask() {
    let m = apart();
    let parent = task("parent", script(&[Op::SleepUntil(3 * MS), Op::Wake(TaskId(1)), run_ns(MS)]));
    let child = |born| Task { born, ..task("child", script(&[Op::Block, run_ns(MS)])) };
    let queued = |born| {
        let told = asked(&m, vec![parent.clone(), child(born)], 0);
        told.into_iter().find(|t| t.1 == SampleScope::Cpu(1)).map(|t| (t.0, t.2))
    };
    assert_eq!(queued(true), Some((3 * MS, false)));
    assert_eq!(queued(false), Some((3 * MS, true)), "one that wakes is queued by its own CPU");
}

/// A generated child that its waker starts is told of as a recorded one; a generated waiter is an older task that wakes.
#[test]
fn a_forked_pattern_is_a_new_task_at_its_first_wake_up() {
    let m = apart();
    let parent = task("parent", script(&[Op::SleepUntil(3 * MS), Op::Wake(TaskId(1)), run_ns(MS)]));
    let recorded = task("child", script(&[Op::Block, run_ns(MS)]));
    let steps = vec![Step::Block, Step::Run(Dist::Fixed(2 * MS))];
    let pattern = Pattern {
        steps,
        start: Dist::Fixed(0),
        rounds: 1,
        until_ns: u64::MAX,
        seed: 1,
        reference_khz: 2_000_000,
        memory_share: 0.0,
    };
    let generated = |forked| Task { forked, ..Task::new("child", Program::Pattern(pattern.clone())) };
    let told = |child: Task| asked(&m, vec![parent.clone(), child], 0);
    assert_eq!(told(generated(true)), told(recorded.clone()));
    assert_ne!(told(generated(false)), told(recorded));
}

#[test]
fn interrupts_from_outside_wake_an_idle_cpu_and_nobody_else() {
    let m = plain(2);
    let w = workload(vec![task("t", script(&[run_ns(2 * MS), Op::SleepFor(8 * MS)]))], 0);
    let make = idle_maker("fixed:depth=0");
    let exits = |interrupts: &[Interrupt]| {
        let setup = Setup { interrupts, ..Setup::new(&m, &w, speed_policy(&m, "performance"), &make) };
        let o = Simulation::new(setup).run_to_completion(1000 * MS).unwrap();
        (o.idle_exits, o.elapsed_ns, o.cpus.iter().map(|c| c.busy_ns).sum::<u64>())
    };
    let (alone, elapsed, busy) = exits(&[]);
    let at = |at_ns, cpu| Interrupt { at_ns, cpu, ns: 5000, thread: false };
    // The first finds its CPU at work, the last names a CPU that the machine does not have.
    let all = [at(MS, 0), at(3 * MS, 0), at(4 * MS, 1), at(5 * MS, 9)];
    assert_eq!(exits(&all), (alone + 2, elapsed, busy + 10_000));
}

/// Polls until told that it has for long enough, then sleeps.
struct PollsFirst {
    sleeps: bool,
    told: Arc<Mutex<Vec<IdleOutcome>>>,
}

impl IdlePolicy for PollsFirst {
    fn select(&mut self, _: &IdleQuery<'_>) -> IdleChoice {
        IdleChoice { state: if self.sleeps { 2 } else { 0 }, stop_tick: true }
    }
    fn reflect(&mut self, outcome: &IdleOutcome, _: &[IdleState]) {
        self.sleeps = outcome.poll_ended;
        self.told.lock().unwrap().push(*outcome);
    }
}

/// By hand: a poll ends at the target residency of C3, 100 us, the first beyond 10 us; what is left of 8 ms is C3's. A wait of
/// 50 us is over before.
#[test]
fn a_poll_ends_at_its_limit_and_the_policy_is_asked_anew() {
    let mut m = plain(1);
    let halted = m.kinds[0].idle[0].clone();
    let state = |name: &str, target_ns: u64| CState { name: name.into(), target_ns, ..halted.clone() };
    m.kinds[0].idle = vec![state("POLL", 0), state("C1", 2_000), state("C3", 100_000)];
    let ops = [run_ns(MS), Op::SleepFor(8 * MS), run_ns(MS), Op::SleepFor(MS / 20), run_ns(MS)];
    let w = workload(vec![task("t", script(&ops))], 0);
    let told: Arc<Mutex<Vec<IdleOutcome>>> = Arc::default();
    let make = |_: &[IdleState], _| -> Box<dyn IdlePolicy> {
        Box::new(PollsFirst { sleeps: false, told: told.clone() })
    };
    let setup = Setup::new(&m, &w, speed_policy(&m, "performance"), &make);
    let o = Simulation::new(setup).run_to_completion(1000 * MS).unwrap();
    let idle: Vec<u64> = o.cpus[0].idle.iter().map(|s| s.1).collect();
    assert_eq!(idle, [100_000 + MS / 20, 0, 8 * MS - 100_000]);
    assert_eq!(o.idle_exits, 3, "the start, and two wake-ups; the end of a poll is none");
    let told: Vec<(u8, u64, bool)> =
        told.lock().unwrap().iter().map(|t| (t.state, t.measured_ns, t.poll_ended)).collect();
    assert_eq!(told, [(0, 0, false), (0, 100_000, true), (2, 8 * MS - 100_000, false), (0, MS / 20, false)]);
}

/// By hand: a task of 1 ms that has slept adds the way out before and the way in after, on the CPU's time; it ends later by the
/// way out. A wake-up that comes during the way in waits for its end, and then finds the CPU awake.
#[test]
fn the_kernels_way_into_and_out_of_idle_takes_the_cpus_time() {
    let m = plain(1);
    let make = idle_maker("fixed:depth=0");
    let run = |tasks: Vec<Task>, idle_work: IdleWork| {
        let w = workload(tasks, 0);
        let setup = Setup { idle_work, ..Setup::new(&m, &w, speed_policy(&m, "performance"), &make) };
        let o = Simulation::new(setup).run_to_completion(1000 * MS).unwrap();
        (o.elapsed_ns, o.cpus[0].busy_ns, o.idle_exits)
    };
    let work = IdleWork { enter_ns: 300_000, leave_ns: 200_000 };
    let one =
        || task("one", script(&[Op::SleepUntil(10 * MS), run_ns(MS), Op::SleepUntil(20 * MS), run_ns(MS)]));
    let (end, busy, exits) = run(vec![one()], IdleWork::default());
    assert_eq!(run(vec![one()], work), (end + 200_000, busy + 2 * 200_000 + 300_000, exits));
    // The other's timer is due 100 us after the first has gone to sleep: no further exit, 200 us later.
    let late = 11 * MS + 300_000;
    let two = || task("two", script(&[Op::SleepUntil(late), run_ns(MS)]));
    let first = || task("one", script(&[Op::SleepUntil(10 * MS), run_ns(MS)]));
    let (_, _, exits) = run(vec![first(), two()], IdleWork::default());
    let (end, _, fewer) = run(vec![first(), two()], work);
    assert_eq!(fewer, exits - 1);
    assert!(end > late + MS + 100_000 && end < late + MS + 300_000, "{end}");
}

/// Two packages of one CPU each, with clocks of their own.
fn apart() -> MachineModel {
    let mut m = plain(2);
    m.domains = vec![m.domains[0].clone(), m.domains[0].clone()];
    for d in 0..2u16 {
        m.domains[usize::from(d)].cores = vec![d];
        (m.cores[usize::from(d)].domain, m.cpus[usize::from(d)].domain) = (d, d);
    }
    m.packages[0].domains = vec![0, 1];
    m
}

/// One that was preempted and goes on elsewhere is load there when it does, not while it waits for the other's end.
#[test]
fn load_moves_with_the_task_and_not_before() {
    let on = |cpu, at_ns| Op::OnCpu { cpu, at_ns };
    let stays = task("stays", script(&[on(1, 0), run_ns(10 * MS), Op::SleepFor(90 * MS)]));
    let goes = script(&[on(0, 0), run_ns(6 * MS), on(1, 10 * MS), run_ns(2 * MS), Op::SleepFor(80 * MS)]);
    let old = |t: Task| Task { born: false, ..t };
    let mut w = workload(vec![old(stays), old(task("goes", goes))], 0);
    w.recorded = Some(Recorded::new(2, KHZ[0]));
    let moves: Vec<_> = asked_in(&apart(), &w, 0).into_iter().filter(|t| t.3 != [0, 0]).collect();
    let (at, _, asks, [_, came]) = moves[0];
    assert!((10 * MS..11 * MS).contains(&at) && asks, "{moves:?}");
    // 6 ms of work are a signal of 119, which 4 ms of waiting bring down to 110.
    assert!((106..114).contains(&came), "{came}");
}

/// An idle CPU finds a task that waits elsewhere when the recorded one did, at the latest at its next tick.
#[test]
fn an_idle_cpu_finds_a_task_as_recorded() {
    let began = |found_ns| {
        let on = |cpu, at_ns| Op::OnCpu { cpu, at_ns };
        let ops = [on(0, 0), run_ns(5 * MS), on(1, found_ns), run_ns(2 * MS)];
        let mut w = workload(vec![Task { born: false, ..task("goes", script(&ops)) }], 0);
        w.recorded = Some(Recorded::new(2, KHZ[0]));
        run_as_recorded(&apart(), &w, "performance", "fixed:depth=0").elapsed_ns - 2 * MS
    };
    let near = |at: u64, ms: u64| at.abs_diff(ms * MS) < MS / 10;
    assert!(near(began(0), 5), "the recording was ahead: {}", began(0));
    assert!(near(began(6 * MS), 6), "{}", began(6 * MS));
    assert!(near(began(40 * MS), 8), "ticks are at 4 and 8: {}", began(40 * MS));
}

/// Where a task has ended Linux wants the tick until its grace period is over: an idle CPU wakes for three of them. Its
/// parent lets go of the task, and then of its credentials: six.
#[test]
fn the_tick_goes_on_for_a_while_where_a_task_has_ended() {
    let exits = |tasks: Vec<Task>, tickless| {
        let mut m = plain(1);
        m.tick.tickless = tickless;
        let w = workload(tasks, 0);
        let make = idle_maker("fixed");
        let mut sim = Simulation::new(Setup::new(&m, &w, speed_policy(&m, "performance"), &make));
        sim.run_until(40 * MS).idle_exits
    };
    let alone = |end: &[Op]| vec![task("t", script(&[&[run_ns(MS)], end].concat()))];
    // Ticks are at 4, 8, 12 ...; asked for at 4, over at 12.
    let ends_at_work = exits(alone(&[Op::Block]), true);
    assert_eq!(exits(alone(&[]), true), ends_at_work + 3);
    let parent = task("parent", script(&[Op::Wake(TaskId(1)), Op::Block]));
    let child = |born| Task { born, ..task("child", script(&[Op::Block, run_ns(MS)])) };
    assert_eq!(exits(vec![parent.clone(), child(true)], true), ends_at_work + 6);
    assert_eq!(exits(vec![parent, child(false)], true), ends_at_work + 3, "no child of this one");
    assert_eq!(
        exits(alone(&[Op::Block]), false),
        exits(alone(&[]), false),
        "and where it is never stopped nothing changes"
    );
}

/// The first CPU keeps the queue of all: whoever is taken from it has not been anywhere else.
#[test]
fn one_queue_for_all_is_no_place_to_move_from() {
    let m = MachineModel { migration_ns: MS, ..plain(2) };
    let w = workload((0..4).map(|i| task(&format!("{i}"), script(&[run_ns(MS)]))).collect(), 0);
    let make = idle_maker("fixed:depth=0");
    let setup =
        Setup { placement: &placement::FIFO, ..Setup::new(&m, &w, speed_policy(&m, "performance"), &make) };
    let o = Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap();
    assert!(o.elapsed_ns < 2 * MS + MS / 10, "{}", o.elapsed_ns);
    assert_eq!(o.migrations, 0);
}
