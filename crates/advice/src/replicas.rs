//! One replica: the work once more with another phase, another seed, and another draw of each uncertain figure, the same
//! for all policies.

use crate::result::UncertainInput;
use wattwise_figure::Random;
use wattwise_model::machine::{Drawn, MachineModel};
use wattwise_model::workload::replica::TooManyRounds;
use wattwise_model::workload::scripted::{Ends, MOST_MEMORY, shares};
use wattwise_model::workload::{ClockOrigin, Known, MemoryShare, Scripted, Workload};
use wattwise_replay::job::Circumstances;

/// The background meets the foreground anywhere within this time, in ns.
const BACKGROUND_PHASE_NS: u64 = 20_000_000;
/// Names of what is drawn of the work.
const MEMORY: &str = "workload.memory_bound";
const CLOCK: &str = "workload.recorded_khz";
const IPC: &str = "workload.ipc";
/// The scheduler's load signal has periods of 1024 us.
const LOAD_PERIOD_NS: u64 = 1_048_576;

/// The circumstances of one replica.
pub(crate) struct Replica {
    machine: MachineModel,
    workload: Workload,
    memory: Vec<f64>,
    recorded_khz: f64,
    phase_ns: u64,
    load_phase_ns: u64,
    background_shift_ns: u64,
    drawn: Vec<Drawn>,
}

impl Replica {
    /// Replica number `number`; 0 is nominal: each figure as the file has it, no phase, the work's own seeds.
    pub(crate) fn draw(
        machine: &MachineModel,
        workload: &Workload,
        number: u64,
    ) -> Result<Replica, TooManyRounds> {
        let mut random = Random::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let nominal = number == 0;
        let mut phase = |most: u64| if nominal { 0 } else { (random.unit() * most as f64) as u64 };
        let phases = [machine.tick.period_ns, LOAD_PERIOD_NS, BACKGROUND_PHASE_NS].map(&mut phase);
        let (mut machine, mut drawn) =
            if nominal { (machine.clone(), Vec::new()) } else { machine.draw(random.bits()) };
        let mut share = |what: &str| if nominal { 0.5 } else { share(what, &mut random, &mut drawn) };
        let memory = memory_unknown(workload)
            .then(|| share(MEMORY))
            .map(|p| shares(workload, MOST_MEMORY * p, nominal));
        let clock = clock_range(workload).map(|(low, high)| low + share(CLOCK) * (high - low));
        let mut work = workload.replica(number)?;
        if let Some(scripted) = &workload.scripted {
            if scripted.memory_ends().is_some() {
                work.share_memory(share(MEMORY));
            }
            if scripted.ipc_ends().is_some() {
                let factor = scripted.ipc_at(share(IPC));
                machine.kinds.iter_mut().for_each(|kind| kind.ipc *= factor);
            }
        }
        Ok(Replica {
            machine,
            workload: work,
            memory: memory.unwrap_or_default(),
            recorded_khz: clock.unwrap_or_default(),
            drawn,
            phase_ns: phases[0],
            load_phase_ns: phases[1],
            background_shift_ns: phases[2],
        })
    }

    /// What was drawn; nothing for the nominal one.
    pub(crate) fn into_drawn(self) -> Vec<Drawn> {
        self.drawn
    }

    pub(crate) fn machine_mut(&mut self) -> &mut MachineModel {
        &mut self.machine
    }

    pub(crate) fn circumstances(&self) -> Circumstances<'_> {
        Circumstances {
            machine: &self.machine,
            workload: &self.workload,
            memory: &self.memory,
            recorded_khz: self.recorded_khz,
            phase_ns: self.phase_ns,
            load_phase_ns: self.load_phase_ns,
            background_shift_ns: self.background_shift_ns,
        }
    }
}

/// A draw from 0 to 1, noted as a figure among the machine's.
fn share(what: &str, random: &mut Random, drawn: &mut Vec<Drawn>) -> f64 {
    let share = random.unit();
    // Evenly from 0 to 1: a standard deviation is the root of a twelfth.
    let z = (share - 0.5) * 12.0_f64.sqrt();
    drawn.push(Drawn { what: what.into(), factor: share, z });
    share
}

/// Whether nobody knows how much of the recorded time waited for memory.
fn memory_unknown(workload: &Workload) -> bool {
    workload.recorded.as_ref().is_some_and(|r| r.memory == MemoryShare::Unknown)
}

/// The clocks, in kHz, between which a recording was made, where only a range is known.
fn clock_range(workload: &Workload) -> Option<(f64, f64)> {
    match workload.recorded.as_ref()?.clock {
        ClockOrigin::Described { base_khz, top_khz } => {
            Some((f64::from(base_khz), f64::from(top_khz.max(base_khz))))
        }
        _ => None,
    }
}

/// What of the work is drawn, and between which ends.
pub(crate) fn uncertain(workload: &Workload) -> Vec<UncertainInput> {
    let of = |what: &str, unit: &str, e: Ends| UncertainInput {
        what: what.into(),
        unit: unit.into(),
        nominal: e.nominal,
        low: e.low,
        high: e.high,
        by: measurable(what).unwrap_or_default().into(),
    };
    let unknown = Scripted { memory: Known::Nothing, ipc: Known::Between(1.0, 1.0) };
    let scripted = workload.scripted.unwrap_or(unknown);
    let memory = scripted.memory_ends().filter(|_| workload.scripted.is_some() || memory_unknown(workload));
    let clock = clock_range(workload).map(|(low, high)| Ends { nominal: (low + high) / 2.0, low, high });
    let all = [
        memory.map(|e| of(MEMORY, "", e)),
        scripted.ipc_ends().map(|e| of(IPC, "", e)),
        clock.map(|e| of(CLOCK, "kHz", e)),
    ];
    all.into_iter().flatten().collect()
}

/// A figure of the work that was drawn, in words; none for what is no figure of the work.
pub(crate) fn in_words(what: &str) -> Option<&'static str> {
    match what {
        MEMORY => Some("memory-bound share of the work"),
        IPC => Some("the work's instructions a cycle on this machine"),
        CLOCK => Some("clock at which the work was recorded"),
        _ => None,
    }
}

/// How a figure of the work that was drawn can be measured.
pub(crate) fn measurable(what: &str) -> Option<&'static str> {
    match what {
        MEMORY => Some("recording on a machine with performance counters, or --memory-bound SHARE"),
        IPC => {
            Some("the work's time on this machine at a known clock, and ipc_factor in the workload's file")
        }
        CLOCK => Some("recording with 'wattwise record', or --recorded-khz KHZ"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::workload::{Program, Recorded, ScriptBuilder, Task};

    fn drawn(memory: MemoryShare, clock: ClockOrigin) -> Vec<String> {
        let machine = wattwise_replay::library::machine("alderlake-p-laptop").unwrap();
        let script = ScriptBuilder::new().finish();
        let mut work = Workload::new("w", "a test", vec![Task::new("t", Program::Recorded(script))], 0);
        work.recorded = Some(Recorded { memory, clock, ..Recorded::new(2, 2_000_000) });
        let replica = Replica::draw(&machine, &work, 3).unwrap();
        replica.into_drawn().into_iter().map(|d| d.what).filter(|w| w.starts_with("workload")).collect()
    }

    #[test]
    fn only_what_is_unknown_of_the_work_is_drawn() {
        let described = ClockOrigin::Described { base_khz: 2_000_000, top_khz: 4_000_000 };
        assert_eq!(drawn(MemoryShare::Unknown, described), [MEMORY, CLOCK]);
        assert!(drawn(MemoryShare::Counted, ClockOrigin::Measured).is_empty());
    }
}
