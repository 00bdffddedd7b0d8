//! The memory's clock: its time at each.
//!
//! What waits for memory takes longer at a lower clock ([`MemoryClock::slowness`]); who runs is timed anew by the simulation. The
//! governor that chooses the clock is a policy ([`wattwise_policy::dram`]).

use super::Hardware;
use wattwise_model::machine::{MachineModel, MemoryClock};
use wattwise_policy::Khz;
use wattwise_policy::dram::DramSpec;

/// The account of a memory's clock.
pub(super) struct MemoryAccount<'a> {
    model: &'a MemoryClock,
    governor: DramSpec,
    clocks: Box<[Khz]>,
    /// The present one.
    at: usize,
    since: u64,
    /// Time at each, up to `since`.
    times: Box<[u64]>,
    /// When the governor looked last, and what cores had waited until then, in ns at the highest clock.
    looked: (u64, f64),
}

impl<'a> MemoryAccount<'a> {
    /// At the clock that the governor chooses without any load.
    fn new(model: &'a MemoryClock, governor: DramSpec) -> MemoryAccount<'a> {
        let clocks: Box<[Khz]> = model.khz.iter().map(|&khz| Khz(khz)).collect();
        let at = governor.choose(0.0, 0, &clocks);
        let times = vec![0; clocks.len()].into();
        MemoryAccount { model, governor, clocks, at, since: 0, times, looked: (0, 0.0) }
    }

    /// The governor looks; cores have waited for so long in all, in ns at the highest clock.
    fn look(&mut self, now: u64, waited: f64) {
        let period = (now - self.looked.0).max(1) as f64;
        let load = self.model.load(self.at, (waited - self.looked.1).max(0.0), period);
        self.looked = (now, waited);
        self.settle(now);
        self.at = self.governor.choose(load, self.at, &self.clocks);
    }

    /// Books its time up to now.
    pub(super) fn settle(&mut self, now: u64) {
        self.times[self.at] += now - self.since;
        self.since = now;
    }

    /// Joules above those of the lowest clock, up to the last [`MemoryAccount::settle`].
    pub(super) fn joules(&self) -> f64 {
        let times = self.times.iter().enumerate();
        times.map(|(clock, &ns)| ns as f64 * 1e-9 * self.model.watts(clock)).sum()
    }

    /// `(kHz, ns)` at each clock, fastest first.
    pub(super) fn times(&self) -> Vec<(u32, u64)> {
        self.model.khz.iter().copied().zip(self.times.iter().copied()).collect()
    }
}

impl<'a> Hardware<'a> {
    /// A governor sets the memory's clock, where it has one.
    pub(crate) fn start_memory(&mut self, governor: DramSpec) {
        let machine: &'a MachineModel = self.machine;
        let model = machine.memory_clock.as_ref();
        self.memory = model.map(|model| MemoryAccount::new(model, governor));
    }

    /// That governor looks; cores have waited for so long in all, in ns at the highest clock.
    pub(crate) fn look_at_memory(&mut self, now: u64, waited: f64) {
        if let Some(memory) = &mut self.memory {
            memory.look(now, waited);
        }
    }

    /// How many times as long a wait takes as at the highest clock, and when the governor looks next; nothing without such a clock.
    pub(crate) fn memory(&self) -> Option<(f64, u64)> {
        let memory = self.memory.as_ref()?;
        Some((memory.model.slowness(memory.at), memory.looked.0 + memory.model.poll_ns))
    }
}
