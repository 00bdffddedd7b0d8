//! Everything that a run has to say.

use super::Simulation;
use crate::clock::Source;
use crate::hardware::CpuReading;
use crate::outcome::Outcome;
use crate::record::Reading;

impl Simulation<'_> {
    /// The accounts as they stand.
    pub fn outcome(&mut self) -> Outcome {
        let now = self.clock.now();
        self.hardware.settle(now);
        let (hardware, record) = (&self.hardware, &self.record);
        Outcome {
            elapsed_ns: now,
            energy: hardware.energy(now),
            cpus: hardware.cpu_times(),
            cores: hardware.core_times(),
            packages: hardware.package_times(),
            memory: hardware.memory_times(),
            wake_latency: record.wake_latency.clone(),
            transitions: hardware.transitions(),
            wakeups: record.wakeups,
            idle_exits: record.idle_exits,
            migrations: record.migrations,
            decisions: self.governor.decisions(),
            cycles: record.cycles,
            peak_c: hardware.peak_c(),
            events: record.events,
            work: self.tasks.work(),
        }
    }

    /// A bin of the timeline is full.
    pub(super) fn close_bin(&mut self) {
        let now = self.clock.now();
        self.hardware.settle(now);
        let read = |c: usize| {
            let CpuReading { awake_ns, idle_ns, khz_ns } = self.hardware.reading(c);
            Reading {
                awake_ns: awake_ns as f64,
                idle_ns: idle_ns.iter().sum::<u64>() as f64,
                depth_ns: idle_ns.iter().enumerate().map(|(d, &n)| d as f64 * n as f64).sum(),
                khz_ns,
            }
        };
        self.record.close_bin(now, self.hardware.total_joules(now), read);
        if let Some(next) = self.record.next_bin_ns() {
            self.clock.set(Source::Bins, next);
        }
    }
}
