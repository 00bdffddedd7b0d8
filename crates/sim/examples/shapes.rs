//! What an event costs the engine, for jobs of three shapes and one with everything switched on.
//!
//! `cargo run --release -p wattwise-sim --example shapes [SHAPE [RUNS]]`: the job is `bursts-v1` (tasks that work and
//! sleep, one governor for all CPUs) with few tasks on few CPUs (`small`), many tasks on few CPUs (`crowded`), and many
//! of both (`wide`, as many tasks a CPU as `small`). `full` has SMT, C-states, transitions, and tasks that wake each
//! other. The fastest of the runs counts. Only the crates that the engine needs are built, and for one shape with one
//! run `valgrind --tool=callgrind` counts the instructions.

use std::time::Instant;
use wattwise_model::machine::{self, MachineModel};
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, TaskId, Workload};
use wattwise_policy::{Cadence, Intent, Khz, MS, Observation, Settings, SpeedPolicy, idle, speed};
use wattwise_sim::{MakeIdle, Placement, Setup, Simulation, placement, platform};

/// Period of the job's governor.
const PERIOD_NS: u64 = 10 * MS;
/// The highest speed.
const FASTEST_KHZ: u32 = 3_000_000;
/// Relative speeds in hundredths.
const SPEEDS: [u32; 5] = [100, 85, 70, 55, 40];

/// The job's governor: over 80 % load the highest speed, else the lowest that leaves a quarter of head-room.
struct BurstsV1;

impl SpeedPolicy for BurstsV1 {
    fn cadence(&self) -> Cadence {
        Cadence::KernelTimer { first_ns: PERIOD_NS, period_ns: PERIOD_NS }
    }
    fn cost_ns(&self) -> u64 {
        0
    }
    fn start(&mut self, _: &Observation<'_>, out: &mut Intent) {
        out.set_speed(0, Khz(FASTEST_KHZ));
    }
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent) {
        let busy: u64 = obs.cpus.iter().map(|c| c.busy_ns).sum();
        let load = busy as f64 / (obs.cpus.len() as u64 * PERIOD_NS) as f64;
        let enough = |p: &&u32| f64::from(**p) / 100.0 >= load * 1.25;
        let percent = if load > 0.8 { 100 } else { *SPEEDS.iter().rev().find(enough).unwrap_or(&100) };
        out.set_speed(0, Khz(FASTEST_KHZ / 100 * percent));
    }
}

fn pattern(seed: u64, steps: Vec<Step>) -> Program {
    let (start, rounds, until_ns) = (Dist::Fixed(0), u64::MAX, u64::MAX);
    Program::Pattern(Pattern {
        steps,
        start,
        rounds,
        until_ns,
        seed,
        reference_khz: 3_000_000,
        memory_share: 0.0,
    })
}

/// Tasks that work 0.2 to 2 ms at 3 GHz and sleep 1 to 10 ms.
fn bursts(tasks: u64) -> Workload {
    let work = Step::Run(Dist::Uniform(600_000, 6_000_000));
    let steps = vec![work, Step::Sleep(Dist::Uniform(1_000_000, 10_000_000))];
    workload((0..tasks).map(|i| pattern(i + 1, steps.clone())).collect())
}

/// Eight of those, and two that wake each other.
fn bursts_and_pair() -> Workload {
    let mut w = bursts(8);
    let ping = |other, first: bool| {
        let mut steps =
            vec![Step::Run(Dist::Uniform(30_000, 90_000)), Step::Wake(TaskId(other)), Step::Block];
        if !first {
            steps.rotate_right(1);
        }
        pattern(u64::from(other) + 100, steps)
    };
    w.tasks.extend(workload(vec![ping(9, true), ping(8, false)]).tasks);
    w
}

fn workload(programs: Vec<Program>) -> Workload {
    let task = |(i, program)| Task::new(format!("{i}"), program);
    Workload::new("shapes", "bursts-v1", programs.into_iter().enumerate().map(task).collect(), 0)
}

/// The bundled machine of bursts-v1 with so many cores of one clock.
fn bursts_machine(cores: usize) -> MachineModel {
    let text = machine::builtin::text("bursts-v1").expect("bundled");
    let text = text.replace("\ncores = 4\n", &format!("\ncores = {cores}\n"));
    machine::file::parse(&text, "bursts-v1").expect("valid")
}

struct Shape {
    name: &'static str,
    machine: MachineModel,
    workload: Workload,
    speed: Option<&'static str>,
    idle: &'static str,
    placement: &'static Placement,
    seconds: u64,
}

fn shapes() -> [Shape; 4] {
    let of = |name, cpus, tasks, seconds| Shape {
        name,
        machine: bursts_machine(cpus),
        workload: bursts(tasks),
        speed: None,
        idle: "fixed",
        placement: &placement::FIFO,
        seconds,
    };
    let text = machine::builtin::text("core-i5-2gen").expect("bundled");
    let full = Shape {
        name: "full",
        machine: machine::file::parse(text, "core-i5-2gen").expect("valid"),
        workload: bursts_and_pair(),
        speed: Some("schedutil"),
        idle: "menu",
        placement: &placement::SPREAD,
        seconds: 10,
    };
    [of("small", 4, 8, 560), of("crowded", 4, 64, 280), of("wide", 224, 448, 10), full]
}

impl Shape {
    /// Wall time in s, the job's events (two a burst and one a decision; the engine's for `full`), and joules.
    fn run(&self) -> (f64, u64, f64) {
        let speed: Box<dyn SpeedPolicy> = match self.speed.and_then(speed::find) {
            Some(item) => (item.build)(&platform(&self.machine), &Settings::defaults(item.params)),
            None => Box::new(BurstsV1),
        };
        let item = idle::find(self.idle).expect("known");
        let settings = Settings::defaults(item.params);
        let make: MakeIdle<'_> = &|states, tick| (item.build)(states, tick, &settings);
        let setup =
            Setup { placement: self.placement, ..Setup::new(&self.machine, &self.workload, speed, make) };
        let start = Instant::now();
        let o = Simulation::new(setup).run_until(self.seconds * 1_000_000_000);
        let events = if self.speed.is_some() { o.events } else { 2 * o.wakeups + o.decisions };
        (start.elapsed().as_secs_f64(), events, o.energy.total_j())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted = args.first().map_or("all", String::as_str);
    let runs = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    for shape in shapes().iter().filter(|s| wanted == "all" || wanted == s.name) {
        let (mut best, mut last) = (f64::INFINITY, (0, 0.0));
        for _ in 0..runs {
            let (wall_s, events, joules) = shape.run();
            best = best.min(wall_s);
            last = (events, joules);
        }
        let (events, joules) = last;
        println!(
            "{:8} {:6.1} ns an event, {:6.2} M events/s, {events} events, {joules} J",
            shape.name,
            best * 1e9 / events as f64,
            events as f64 / best * 1e-6,
        );
    }
}
