//! CPUs taken offline and brought back, and the modulation of their clock.

use super::planner::{CPUS, Planner};
use super::step::{PlanError, impossible, input};
use wattwise_hw::cpus::cpuid::CpuFacts;
use wattwise_hw::msr::tstate::{Duty, DutyStep};

impl Planner<'_> {
    pub(super) fn online(&mut self, on: bool) -> Result<(), PlanError> {
        let topology = &self.inventory.topology;
        let staying = topology.online.without(self.cpus);
        if !on && staying.is_empty() {
            return Err(input(format!("--online off for CPU {}: at least one CPU must stay", self.cpus)));
        }
        let cpus = self.cpus;
        for cpu in cpus.iter() {
            let Some(known) = topology.cpu(cpu) else { continue };
            if !known.hotplug {
                if known.online == on {
                    continue;
                }
                return Err(impossible(format!(
                    "CPU {cpu} cannot be taken offline: the kernel keeps it (no 'online' file)"
                )));
            }
            self.write(
                format!("{CPUS}/cpu{cpu}/online"),
                format!("cpu{cpu} online"),
                if on { "1" } else { "0" },
            )?;
        }
        Ok(())
    }

    /// Clock modulation by its register: no file of the kernel sets it. Threads of a core share the clock
    /// and are set together; the nearest step that the processor has is taken.
    pub(super) fn tstate(&mut self, percent: f64) -> Result<(), PlanError> {
        let cpus = self.inventory.topology.with_siblings(self.cpus).and(&self.inventory.topology.online);
        let more = cpus.without(self.cpus);
        if !more.is_empty() {
            self.plan.notes.push(format!("CPU {more} shares its core's clock and is set too"));
        }
        for cpu in cpus.iter() {
            let refuse = |why: String| impossible(format!("--tstate: CPU {cpu}: {why}"));
            let facts = CpuFacts::read(self.overlay.root, cpu).map_err(|e| refuse(e.to_string()))?;
            let step =
                DutyStep::of(&facts).ok_or_else(|| refuse("the processor has no clock modulation".into()))?;
            let duty = Duty::nearest(percent / 100.0, step).map_err(|e| input(format!("--tstate {e}")))?;
            if cpu == cpus.first().unwrap_or(cpu) && duty.percent() != percent {
                self.plan.notes.push(format!("the nearest step that the processor has is {duty}"));
            }
            let what = format!("cpu{cpu} clock modulation");
            self.register(cpu, &facts, "IA32_CLOCK_MODULATION", what, |register, raw| {
                duty.encode(register, raw)
            })?;
        }
        Ok(())
    }
}
