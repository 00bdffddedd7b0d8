//! A CPU's running piece: it begins, is re-timed when its rate changes, and stops.

use super::Simulation;
use crate::calendar::NEVER;
use crate::cpu::{CpuState, Phase};
use crate::hardware::{Hardware, ThreadState};
use crate::tasks::Tasks;

/// How long a CPU's running piece would take from here, in ns, at so much a cycle of a task.
#[inline(always)]
fn need(s: &CpuState, tasks: &Tasks<'_>, hardware: &Hardware<'_>, ns_per_cycle: f64) -> f64 {
    match s.phase {
        Phase::Task => tasks.need(s.current, ns_per_cycle),
        _ => s.kernel_ns as f64 * hardware.slowness(s.domain),
    }
}

impl Simulation<'_> {
    /// Changes what a CPU's thread does, and re-times whom that slows or speeds up.
    #[inline(always)]
    pub(super) fn set_thread(&mut self, c: usize, state: ThreadState) {
        if self.hardware.set(self.clock.now(), self.cpus[c].core, c, state) {
            self.retime_changed();
        }
    }

    /// Re-times all CPUs whose rate has changed.
    #[inline(never)]
    pub(super) fn retime_changed(&mut self) {
        self.tell_speeds();
        while let Some(c) = self.hardware.next_changed() {
            if self.cpus[c].runs() {
                self.bank(c);
                self.time_run(c);
                self.arm(c);
            }
        }
    }

    /// Stops a CPU's running piece where it is; what is left of it stays with its task.
    #[inline]
    pub(super) fn bank(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let Some(left) = s.stop(self.clock.now()) else { return };
        match s.phase {
            Phase::Task => self.tasks.shrink(s.current, left),
            _ => s.kernel_ns = (s.kernel_ns as f64 * left) as u64,
        }
    }

    /// A CPU begins to run something: busy, or standing still while its domain stalls.
    #[inline(always)]
    pub(super) fn begin_run(&mut self, c: usize) {
        let now = self.clock.now();
        let s = &mut self.cpus[c];
        if self.hardware.stalled(s.domain) {
            self.set_thread(c, ThreadState::Stall);
            self.cpus[c].run_end = NEVER;
        } else if let Some(ns_per_cycle) = self.hardware.set_plain(now, s.core, ThreadState::Busy) {
            s.time(now, need(s, &self.tasks, &self.hardware, ns_per_cycle));
        } else {
            self.set_thread(c, ThreadState::Busy);
            self.time_moving_run(c);
        }
    }

    /// Times what is left of a CPU's running piece at its present speed. While its domain stalls it stands still.
    #[inline]
    pub(super) fn time_run(&mut self, c: usize) {
        if self.hardware.stalled(self.cpus[c].domain) {
            self.cpus[c].run_end = NEVER;
        } else {
            self.time_moving_run(c);
        }
    }

    /// [`Simulation::time_run`] where the domain is known not to stall.
    #[inline(always)]
    fn time_moving_run(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let ns_per_cycle = self.hardware.ns_per_cycle(s.core);
        s.time(self.clock.now(), need(s, &self.tasks, &self.hardware, ns_per_cycle));
    }
}
