//! One policy in one draw, as a meter would have seen it: joules of the parts that meters cover, over the work's own time.
//!
//! For those who hold a prediction against a measurement: a comparison charges a window that its reference sets, a meter
//! charges the run.

use crate::error::CompareError;
use crate::replicas::Replica;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::chosen::IdleSpec;
use wattwise_replay::job::{ReplayJob, limit_ns, simulate};
use wattwise_replay::spec::PolicySpec;

/// What a run came to, by the parts that meters cover. Energy is from the release of the foreground to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metered {
    /// From the release of the foreground to its end, in s; of work without an end its span.
    pub elapsed_s: f64,
    /// Cores while awake, in J.
    pub busy_j: f64,
    /// Cores in C-states, in J.
    pub idle_j: f64,
    /// Packages beside their cores, in J.
    pub uncore_j: f64,
    /// The memory, in J.
    pub memory_j: f64,
    /// Everything outside packages and memory, in J.
    pub platform_j: f64,
    /// Mean clock of awake CPUs, in kHz; 0 where none was awake.
    pub mean_khz: f64,
}

/// One draw of machine and work: the same for every policy that is run in it.
pub struct Metering(Replica);

impl Metering {
    /// Draw number `number`; 0 is nominal.
    ///
    /// # Errors
    /// The work has too many rounds.
    pub fn draw(job: &ReplayJob<'_>, number: u64) -> Result<Metering, CompareError> {
        Ok(Metering(Replica::draw(job.machine, job.workload, number)?))
    }

    /// The same with the watts of busy cores, of the rest of the packages and of the memory multiplied: for limits of power, to
    /// which it matters how much a program draws.
    #[must_use]
    pub fn scaled(mut self, busy: f64, uncore: f64, memory: f64) -> Metering {
        let machine = self.0.machine_mut();
        for level in machine.kinds.iter_mut().flat_map(|k| &mut k.levels) {
            level.busy_w *= busy;
            level.stall_w *= busy;
        }
        for package in &mut machine.packages {
            package.uncore_w *= uncore;
            package.idle.iter_mut().for_each(|s| s.watts *= uncore);
            if let Some(follows) = &mut package.uncore {
                follows.follow_w *= uncore;
                follows.step_w *= uncore;
            }
        }
        let m = &mut machine.memory;
        [&mut m.rest_w, &mut m.busy_w, &mut m.high_w, &mut m.asleep_less_w]
            .into_iter()
            .for_each(|w| *w *= memory);
        self
    }

    /// The same on a machine that was changed after it was drawn.
    #[must_use]
    pub fn changed(mut self, change: impl FnOnce(&mut MachineModel)) -> Metering {
        change(self.0.machine_mut());
        self
    }

    /// What a policy comes to in this draw.
    ///
    /// # Errors
    /// The work does not end under it.
    pub fn run(
        &self,
        job: &ReplayJob<'_>,
        policy: &PolicySpec,
        idle: &IdleSpec,
    ) -> Result<Metered, CompareError> {
        let with = self.0.circumstances();
        let workload: &Workload = with.workload;
        let failed = |source| CompareError::of_run(policy, workload, source);
        let mut sim = simulate(job, &with, policy, idle, false);
        let (before, from_ns) = match workload.release_ns {
            0 => (Default::default(), 0),
            release => (sim.run_until(release).energy, release),
        };
        let mut own = sim.run_to_completion(limit_ns(job, workload)).map_err(failed)?;
        if workload.is_interactive() {
            own = sim.run_until(workload.span_ns.max(own.elapsed_ns));
        }
        sim.check_events().map_err(failed)?;
        let sum = |j: &[(String, f64)]| j.iter().map(|(_, j)| j).sum::<f64>();
        let (after, ns) = (&own.energy, own.elapsed_ns.saturating_sub(from_ns));
        let speeds = || own.cpus.iter().flat_map(|c| &c.speed);
        let awake: u64 = speeds().map(|(_, ns)| ns).sum();
        let clocks: f64 = speeds().map(|&(khz, ns)| f64::from(khz) * ns as f64).sum();
        Ok(Metered {
            elapsed_s: ns as f64 * 1e-9,
            busy_j: after.busy_j + after.stall_j + after.leakage_j
                - (before.busy_j + before.stall_j + before.leakage_j),
            idle_j: sum(&after.idle_j) - sum(&before.idle_j),
            uncore_j: after.uncore_j - before.uncore_j,
            memory_j: after.memory_j - before.memory_j,
            platform_j: after.platform_j - before.platform_j,
            mean_khz: if awake > 0 { clocks / awake as f64 } else { 0.0 },
        })
    }
}
