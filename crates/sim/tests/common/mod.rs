//! Machines and workloads that the tests build by hand.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use wattwise_model::machine::*;
use wattwise_model::workload::*;
use wattwise_policy::{CorePolicy, IdlePolicy, IdleState, Settings, SpeedPolicy, cores, idle, speed};
use wattwise_sim::{Placement, Setup, Simulation, outcome::Outcome, placement, platform};

/// `cores` cores of one thread in one domain and package, speeds in kHz fastest first, watts by cube law.
pub fn machine(cores: usize, khz: &[u32]) -> MachineModel {
    let levels = khz
        .iter()
        .map(|&k| {
            let s = f64::from(k) / f64::from(khz[0]);
            SpeedLevel {
                khz: k,
                cycles_per_ns: f64::from(k) * 1e-6,
                busy_w: 10.0 * s * s * s + 2.0,
                stall_w: 3.0 * s + 1.0,
                model_uw: ((10.0 * s * s * s + 0.5) * 1e6) as u32,
                throttled: false,
            }
        })
        .collect::<Vec<_>>();
    let state = |name: &str, entry_us: u64, exit_us: u64, target_us: u64, w: f64| CState {
        name: name.into(),
        entry_ns: entry_us * 1000,
        exit_ns: vec![exit_us * 1000; khz.len()],
        target_ns: target_us * 1000,
        latency_ns: (entry_us + exit_us) * 1000,
        watts: vec![w; khz.len()],
    };
    MachineModel {
        name: "test".into(),
        summary: "made by a test".into(),
        cpus: (0..cores).map(|c| Cpu { core: c as u16, package: 0, llc: 0, domain: 0, kind: 0 }).collect(),
        cores: (0..cores).map(|c| Core { cpus: vec![c as u16], package: 0, domain: 0, kind: 0 }).collect(),
        packages: vec![Package {
            cores: (0..cores as u16).collect(),
            domains: vec![0],
            boosts: false,
            uncore_w: 4.0,
            idle: vec![],
            thermal: Thermal {
                ambient_c: 25.0,
                c_per_w: 0.5,
                tau_s: 5.0,
                critical_c: 500.0,
                leakage_per_c: 0.0,
            },
            uncore: None,
            limit: None,
        }],
        domains: vec![Domain {
            cores: (0..cores as u16).collect(),
            kind: 0,
            transition: Transition {
                stall_ns: vec![0; khz.len() * khz.len()],
                delay_ns: 0,
                overlap: Overlap::Defer,
            },
            boost: vec![],
        }],
        kinds: vec![CoreKind {
            name: "core".into(),
            ipc: 1.0,
            smt_throughput: vec![1.0],
            smt_power: vec![1.0],
            base_khz: levels[0].khz,
            load_full_khz: levels[0].khz,
            asked_khz: vec![],
            levels,
            idle: vec![
                state("C1", 0, 2, 2, 1.5),
                state("C3", 10, 40, 100, 0.8),
                state("C6", 30, 100, 400, 0.1),
            ],
        }],
        memory: Memory::default(),
        memory_clock: None,
        platform_w: 6.0,
        battery_wh: None,
        tick: Tick { period_ns: 4_000_000, tickless: true, cost_ns: 1_000, restart_ns: 0 },
        migration_ns: 5_000,
        apart: Apart::FREE,
        interrupt_ns: 2_000,
        default_idle: "fixed".into(),
        system: "linux".into(),
        driver: String::new(),
        governors: Vec::new(),
        default_policy: "schedutil".into(),
        replaced_policies: Vec::new(),
        autonomous: Autonomous::default(),
        load_invariant: true,
        cpu_names: Vec::new(),
        state: Vec::new(),
        notes: Vec::new(),
        provenance: vec![],
        written: Default::default(),
    }
}

/// The job and the machine of `bursts-v1`: no C-states, no costs.
pub fn bursts_machine() -> MachineModel {
    let mut m = machine(4, &[3_000_000, 2_550_000, 2_100_000, 1_650_000, 1_200_000]);
    m.kinds[0].idle.truncate(1);
    m.kinds[0].idle[0] = CState {
        name: "idle".into(),
        entry_ns: 0,
        exit_ns: vec![0; 5],
        target_ns: 0,
        latency_ns: 0,
        watts: vec![0.0; 5],
    };
    m.packages[0].uncore_w = 0.0;
    m.platform_w = 10.0;
    m.interrupt_ns = 0;
    m
}

pub fn task(name: &str, program: Program) -> Task {
    Task::new(name, program)
}

pub fn pattern(seed: u64, steps: Vec<Step>) -> Pattern {
    Pattern {
        steps,
        start: Dist::Fixed(0),
        rounds: u64::MAX,
        until_ns: u64::MAX,
        seed,
        reference_khz: 3_000_000,
        memory_share: 0.0,
    }
}

pub fn workload(tasks: Vec<Task>, span_ns: u64) -> Workload {
    Workload::new("test", "made by a test", tasks, span_ns)
}

/// `bursts-v1`: `n` tasks that work 0.2 to 2 ms at 3 GHz and sleep 1 to 10 ms, for `seconds`.
pub fn bursts(n: u64, seconds: u64) -> Workload {
    let tasks = (0..n)
        .map(|i| {
            let steps = vec![
                Step::Run(Dist::Uniform(600_000, 6_000_000)),
                Step::Sleep(Dist::Uniform(1_000_000, 10_000_000)),
            ];
            let p = Pattern { until_ns: seconds * 1_000_000_000, ..pattern(i + 1, steps) };
            task(&format!("t{i}"), Program::Pattern(p))
        })
        .collect();
    workload(tasks, seconds * 1_000_000_000)
}

pub fn speed_policy(m: &MachineModel, spec: &str) -> Box<dyn SpeedPolicy> {
    let (name, args) = spec.split_once(':').unwrap_or((spec, ""));
    let item = speed::find(name).unwrap_or_else(|| panic!("no policy {name}"));
    (item.build)(&platform(m), &Settings::parse(item.params, args).unwrap())
}

pub fn core_policy(m: &MachineModel, spec: &str) -> Box<dyn CorePolicy> {
    let (name, args) = spec.split_once(':').unwrap_or((spec, ""));
    let item = cores::find(name).unwrap_or_else(|| panic!("no policy {name}"));
    (item.build)(m.cpus.len(), &Settings::parse(item.params, args).unwrap())
}

pub fn idle_maker(spec: &str) -> impl Fn(&[IdleState], u64) -> Box<dyn IdlePolicy> {
    let (name, args) = spec.split_once(':').unwrap_or((spec, ""));
    let item = idle::find(name).unwrap_or_else(|| panic!("no policy {name}"));
    let settings = Settings::parse(item.params, args).unwrap();
    move |states, tick| (item.build)(states, tick, &settings)
}

/// Runs a workload to its end under named policies.
pub fn run(m: &MachineModel, w: &Workload, speed: &str, idle: &str) -> Outcome {
    run_placed(m, w, speed, idle, &placement::LINUX)
}

/// The same where and when the recording has it.
pub fn run_as_recorded(m: &MachineModel, w: &Workload, speed: &str, idle: &str) -> Outcome {
    run_placed(m, w, speed, idle, &placement::RECORDED)
}

/// The same with a placement.
pub fn run_placed(
    m: &MachineModel,
    w: &Workload,
    speed: &str,
    idle: &str,
    placement: &'static Placement,
) -> Outcome {
    let make = idle_maker(idle);
    let setup = Setup { placement, ..Setup::new(m, w, speed_policy(m, speed), &make) };
    Simulation::new(setup).run_to_completion(u64::MAX / 4).unwrap()
}
