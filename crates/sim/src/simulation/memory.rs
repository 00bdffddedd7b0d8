//! The memory's clock: its governor looks, and whoever waits for memory is timed anew where the clock changes.

use super::Simulation;
use crate::clock::Source;
use wattwise_policy::dram::DramSpec;

impl Simulation<'_> {
    /// The governor takes over, on machines with a memory whose clock the kernel sets.
    pub(super) fn start_memory(&mut self, governor: Option<DramSpec>) {
        self.hardware.start_memory(governor.unwrap_or_else(DramSpec::highest));
        self.arm_memory();
    }

    /// The governor looks at what went over the wires since its last look.
    pub(super) fn look_at_memory(&mut self) {
        for c in 0..self.cpus.len() {
            if self.cpus[c].runs() {
                self.bank(c);
            }
        }
        self.hardware.look_at_memory(self.clock.now(), self.tasks.stalls_done());
        self.arm_memory();
        for c in 0..self.cpus.len() {
            if self.cpus[c].runs() {
                self.time_run(c);
                self.arm(c);
            }
        }
    }

    fn arm_memory(&mut self) {
        let Some((slowness, next)) = self.hardware.memory() else { return };
        self.tasks.slow_stalls(slowness);
        self.clock.set(Source::Memory, next);
    }
}
