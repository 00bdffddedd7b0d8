//! `bursts-v1`: one small job for every simulator, to compare engines with.
//!
//! Four cores in one frequency domain, five P-states, tasks that work and sleep, and a governor
//! that looks every 10 ms: over 80 % load the highest speed, else the lowest that leaves a quarter
//! of head-room. Watts are 10 for the machine and `10 s^3 + 2` for each busy core at the relative
//! speed `s`; nothing else costs anything. The job is `workloads/bursts-v1.toml`.

use wattwise_policy::{Cadence, Intent, Khz, MS, Observation, SpeedPolicy};
use wattwise_sim::machine::{
    CState, Core, CoreKind, Cpu, Domain, Machine, Overlap, Package, SpeedLevel, Thermal, Tick, Transition,
};

/// Period of the job's governor.
const PERIOD_NS: u64 = 10 * MS;
/// The highest speed.
const FASTEST_KHZ: u32 = 3_000_000;
/// Relative speeds in hundredths.
const SPEEDS: [u32; 5] = [100, 85, 70, 55, 40];

/// The job's machine.
pub fn machine() -> Machine {
    const CORES: u16 = 4;
    let level = |percent: u32| {
        let s = f64::from(percent) / 100.0;
        SpeedLevel {
            khz: FASTEST_KHZ / 100 * percent,
            cycles_per_ns: f64::from(FASTEST_KHZ) * 1e-6 * s,
            busy_w: 10.0 * s * s * s + 2.0,
            stall_w: 0.0,
            throttled: false,
        }
    };
    let free = vec![0; SPEEDS.len()];
    Machine {
        name: "bursts-v1".into(),
        summary: "four cores in one frequency domain, of which only the busy ones cost anything".into(),
        cpus: (0..CORES).map(|c| Cpu { core: c, package: 0, domain: 0, kind: 0 }).collect(),
        cores: (0..CORES).map(|c| Core { cpus: vec![c], package: 0, domain: 0, kind: 0 }).collect(),
        packages: vec![Package {
            cores: (0..CORES).collect(),
            domains: vec![0],
            boosts: false,
            uncore_w: 0.0,
            idle: vec![],
            thermal: Thermal { ambient_c: 25.0, c_per_w: 0.0, tau_s: 1.0, critical_c: 1000.0 },
        }],
        domains: vec![Domain {
            cores: (0..CORES).collect(),
            kind: 0,
            transition: Transition {
                stall_ns: vec![0; SPEEDS.len() * SPEEDS.len()],
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
            levels: SPEEDS.map(level).to_vec(),
            idle: vec![CState {
                name: "idle".into(),
                entry_ns: 0,
                exit_ns: free.clone(),
                target_ns: 0,
                latency_ns: 0,
                watts: free.iter().map(|_| 0.0).collect(),
            }],
        }],
        platform_w: 10.0,
        battery_wh: None,
        tick: Tick { period_ns: 4 * MS, tickless: true, cost_ns: 0 },
        migration_ns: 0,
        default_idle: "fixed".into(),
        provenance: vec![],
    }
}

/// The job's governor.
pub struct Governor;

impl SpeedPolicy for Governor {
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
