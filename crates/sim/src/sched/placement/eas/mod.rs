//! Energy-aware scheduling: where Linux 6.12 puts a task on a machine of unequal cores (`kernel/sched/fair.c`,
//! `find_energy_efficient_cpu()`; `include/linux/energy_model.h`).
//!
//! While no CPU is *overutilized* (its utilisation with a quarter on top reaches its capacity), a **wake-up** looks for the CPU on which
//! the task adds least energy:
//!
//! ```text
//!  frequency domain:   little            big
//!  candidates:         most spare        most spare      and the last CPU, where the task fits
//!  energy added:       12                31              cost of the level that the domain would need x its utilisation,
//!                      ^ taken                           with the task less without it
//! ```
//!
//! 1. A task of which nothing is known yet stays on its last CPU.
//! 2. In each domain the allowed CPUs that the task fits: the CPU's utilisation with it, and a quarter on top, is less than the
//!    capacity. Of these the one with most capacity to spare, and the last CPU, are candidates.
//! 3. A domain's energy is the cost of the slowest level that serves its busiest CPU (1.25 x its utilisation, as schedutil wants it)
//!    times the utilisation of all of its CPUs. Levels that cost no less than a faster one are left out.
//! 4. The candidate that adds least; the last CPU, unless another adds less.
//!
//! Otherwise, and for **new tasks**, the rules are those of [`linux`](super::linux). While no CPU is overutilized the **balance** moves
//! nothing, neither to CPUs that run out of work nor at its ticks. A running task that no longer fits its CPU (*misfit*) moves at the
//! next balance, at most a balance's period later, to a stronger core that idles.
//!
//! The costs are those of the kernel's energy model ([`SpeedLevel::model_uw`](wattwise_model::machine::SpeedLevel::model_uw)), and not the
//! watts by which the model bills: the kernel knows a capacitance of the device tree and no leakage.
//!
//! As in the kernel it is in force only where cores differ in capacity, have one thread each and tell the real speed
//! (`platform.load_invariant`), and under `schedutil`, which follows the tasks' loads; else this is `linux`.
//!
//! Left out: uclamp, pressure of heat on capacity, real-time and interrupt load, the time that tasks wait (`runnable_avg`, which the
//! kernel takes for a domain's busiest CPU where that is more). The kernel notes that some CPU is overutilized at wake-ups and ticks,
//! and forgets it at a balance; here each wake-up and each balance looks at all CPUs.

mod energy;

#[cfg(test)]
mod tests;

use super::linux::{self, Wakeup};
use super::{CoreUse, Placement, Waking};
use crate::NONE;
use crate::sched::Scheduler;
pub(in crate::sched) use energy::fits;
use energy::{CpuLoad, EnergyModel, Woken};
use wattwise_model::machine::MachineModel;

/// `eas`
pub static EAS: Placement = Placement {
    name: "eas",
    summary: "as Linux 6.12 with energy-aware scheduling: the CPU that adds least energy, where cores differ and schedutil rules",
    choose,
    energy: Eas::new,
    ..linux::LINUX_RULES
};

/// Energy-aware placement at work.
pub(in crate::sched) struct Eas {
    model: EnergyModel,
    /// Each CPU's load, as it was last looked at.
    loads: Vec<CpuLoad>,
    /// Whether that could be seen, and whether some CPU was overutilized.
    seen: bool,
    over: bool,
}

impl Eas {
    /// Of this machine; none where the kernel would not have it.
    pub(in crate::sched) fn new(machine: &MachineModel) -> Option<Box<Eas>> {
        let model = EnergyModel::of(machine)?;
        let loads = vec![CpuLoad::default(); machine.cpus.len()];
        Some(Box::new(Eas { model, loads, seen: false, over: false }))
    }

    /// Whether the balance is to leave tasks where they are.
    pub(in crate::sched) fn holds(&self) -> bool {
        self.seen && !self.over
    }
}

impl Scheduler<'_> {
    /// Looks at all CPUs' loads, where the placement goes by energy.
    pub(crate) fn look_at_loads(&mut self, cores: &dyn CoreUse) {
        let Some(mut eas) = self.eas.take() else { return };
        eas.seen = true;
        for (c, load) in eas.loads.iter_mut().enumerate() {
            match cores.load(c) {
                Some(util) => {
                    *load = CpuLoad { util, expected: u64::from(self.expected_of(c, cores.running(c))) };
                }
                None => eas.seen = false,
            }
        }
        eas.over = eas.model.is_overutilized(&eas.loads);
        self.eas = Some(eas);
    }
}

/// The engine's question.
fn choose(s: &mut Scheduler<'_>, w: &Waking, cores: &dyn CoreUse) -> usize {
    s.look_at_loads(cores);
    let Some(eas) = s.eas.as_ref().filter(|eas| eas.holds() && !w.fresh) else {
        return linux::choose(s, w, cores);
    };
    let task = &s.loads[w.task as usize];
    let woken = Woken { prev: w.last, util: u64::from(task.util()), expected: u64::from(task.expected()) };
    let cpu = eas.model.choose(&woken, &eas.loads, &s.allowed);
    // Who wakes whom is noted whoever places.
    let waker = Some(w.waker).filter(|&t| t != NONE);
    let (task, prev, from, now) = (w.task, w.last, w.from, w.now);
    s.chooser.note_waker(&Wakeup { task, prev, from, waker, sync: w.by_task, load: 0, now });
    if s.allowed.contains(cpu) { cpu } else { s.least_queued().unwrap_or(cpu) }
}
