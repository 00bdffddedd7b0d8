//! `bursts-v1`: one small job for every simulator, to compare engines with.
//!
//! Four cores in one frequency domain, five P-states, tasks that work and sleep, and a governor
//! that looks every 10 ms: over 80 % load the highest speed, else the lowest that leaves a quarter
//! of head-room. Watts are 10 for the machine and `10 s^3 + 2` for each busy core at the relative
//! speed `s`; nothing else costs anything. The job is `workloads/bursts-v1.toml`, the machine
//! `machines/bursts-v1.toml`; what is left for here is the governor.

use wattwise_policy::{Cadence, Intent, Khz, MS, Observation, SpeedPolicy};

/// Period of the job's governor.
const PERIOD_NS: u64 = 10 * MS;
/// The highest speed.
const FASTEST_KHZ: u32 = 3_000_000;
/// Relative speeds in hundredths.
const SPEEDS: [u32; 5] = [100, 85, 70, 55, 40];

/// The job's governor.
pub struct BurstsV1;

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
