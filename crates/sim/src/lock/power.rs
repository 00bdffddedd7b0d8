//! Watts between two events: the packages' as RAPL shows them.

use super::Waiting;
use super::world::{LockPhase, World};

impl World<'_> {
    /// Power of the packages as they stand, in watts.
    pub(super) fn watts(&self, awake: &[usize]) -> f64 {
        let uncore = |watts, package| watts + self.uncore_watts(package, awake);
        let watts = (0..self.setup.machine.packages.len()).fold(0.0, uncore);
        (0..self.cores.len()).fold(watts, |watts, core| watts + self.core_watts(core, awake))
    }

    fn uncore_watts(&self, package: usize, awake: &[usize]) -> f64 {
        if let Some(state) = self.package_state(package) {
            return state.watts;
        }
        // Its threads run at full speed at times, so that the part that goes with the clock is up.
        let model = &self.setup.machine.packages[package];
        let full = model.uncore_w + model.uncore.as_ref().map_or(0.0, |u| u.step_w + u.follow_w);
        let Some((khz, saves)) = self.setup.costs.slow_uncore else { return full };
        let cores = self.cores.iter().enumerate().filter(|(_, c)| c.package == package);
        let up: Vec<usize> = cores.map(|(at, _)| at).filter(|&at| self.depth(at) == 0).collect();
        let slow = |at: &&usize| self.kind(**at).levels[self.level(**at, awake)].khz < khz;
        let share = up.iter().filter(slow).count() as f64 / up.len().max(1) as f64;
        full * (1.0 - saves * share)
    }

    fn core_watts(&self, at: usize, awake: &[usize]) -> f64 {
        let (core, kind, level) = (&self.cores[at], self.kind(at), self.level(at, awake));
        let idle = |state: usize| {
            let watts = &kind.idle[state].watts;
            let listed = watts[level.min(watts.len() - 1)];
            if state == 0 { self.setup.costs.halted_w.unwrap_or(listed) } else { listed }
        };
        let l = &kind.levels[level];
        let executing: Vec<usize> = core.threads.iter().copied().filter(|&t| self.executes(t)).collect();
        if executing.is_empty() {
            return match (self.depth(at), self.setup.waiting) {
                // Waking by the monitor is mostly waiting for its signal.
                (0, Waiting::Mwait(state)) => idle(state),
                (0, _) => l.stall_w,
                (depth, _) => idle(depth - 1),
            };
        }
        if core.stall > 0.0 {
            return l.stall_w;
        }
        let smt = kind.smt_power[(executing.len() - 1).min(kind.smt_power.len() - 1)];
        let activity = |&t: &usize| match self.threads[t].phase {
            LockPhase::Spinning => self.setup.costs.spin_power,
            _ => 1.0,
        };
        let activity = executing.iter().map(activity).sum::<f64>() / executing.len() as f64;
        let stopped = idle(0);
        let running = stopped + (l.busy_w * smt - stopped) * activity;
        let duty = self.duty(at);
        running * duty + stopped * (1.0 - duty)
    }
}
