//! A logical CPU: what it does, and when that ends.

use crate::NONE;
use crate::calendar::NEVER;
use crate::tasks::timers::Timers;
use wattwise_model::machine::Cpu;

/// What a CPU is doing. Who runs is [`CpuState::current`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In a C-state.
    Idle,
    /// Leaving one.
    Exiting,
    /// Interrupt or tick work, no task.
    Kernel,
    /// A task.
    Task,
    /// Between two of the above, inside one event.
    Switching,
}

/// A logical CPU. When its next event is stands in the first cache line, and what few of them need in the last: the simulation
/// goes from CPU to CPU, and where there are hundreds they do not fit in the nearest cache.
#[repr(C, align(64))]
pub(crate) struct CpuState {
    pub(crate) phase: Phase,
    pub(crate) kind: u8,
    pub(crate) core: u16,
    pub(crate) domain: u16,
    /// The kernel has its way into idle before it.
    pub(crate) enters_by_work: bool,
    /// The running task.
    pub(crate) current: u32,
    /// When it ends; [`NEVER`] while the domain stalls.
    pub(crate) run_end: u64,
    /// When the running task's slice ends; [`NEVER`] while nobody waits.
    pub(crate) slice_end: u64,
    /// When the C-state exit is over.
    pub(crate) ready_at: u64,
    /// Next tick that will come.
    pub(crate) tick_at: u64,
    pub(crate) timers: Timers,
    /// When the running piece was last (re)started, and how long it would take from there at this rate, in ns.
    run_from: u64,
    run_need: f64,
    /// Interrupt work not yet done, in ns at the highest speed.
    pub(crate) kernel_ns: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CpuState>() == 4 * 64);

impl CpuState {
    pub(crate) fn new(cpu: &Cpu) -> CpuState {
        CpuState {
            phase: Phase::Switching,
            current: NONE,
            core: cpu.core,
            domain: cpu.domain,
            enters_by_work: false,
            kind: cpu.kind,
            run_from: 0,
            run_need: 0.0,
            run_end: NEVER,
            slice_end: NEVER,
            ready_at: NEVER,
            tick_at: NEVER,
            timers: Timers::new(),
            kernel_ns: 0,
        }
    }

    /// When its next event is.
    #[inline]
    pub(crate) fn next_event(&self) -> u64 {
        let (run, exit) = (self.run_end.min(self.timers.first_at()), self.slice_end.min(self.ready_at));
        run.min(exit.min(self.tick_at))
    }

    /// Whether it executes, or would if its domain did not stall.
    #[inline]
    pub(crate) fn runs(&self) -> bool {
        matches!(self.phase, Phase::Task | Phase::Kernel)
    }

    /// The running task, where it runs one.
    #[inline]
    pub(crate) fn runner(&self) -> Option<u32> {
        (self.phase == Phase::Task).then_some(self.current)
    }

    /// Whether it idles as the operating system counts.
    #[inline]
    pub(crate) fn counts_as_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Exiting)
    }

    /// Times the running piece from `now` on.
    #[inline(always)]
    pub(crate) fn time(&mut self, now: u64, need: f64) {
        self.run_from = now;
        self.run_need = need;
        // Rounded up, but for the rounding of a share, which must not cost a nanosecond. A piece always
        // takes time: a step of no length would let a program spin within one instant.
        self.run_end = now + round_up(need - 1e-3).max(1);
    }

    /// Stops timing; the share of the running piece that is left, `None` where none is timed.
    #[inline]
    pub(crate) fn stop(&mut self, now: u64) -> Option<f64> {
        if self.run_end == NEVER {
            return None;
        }
        self.run_end = NEVER;
        let ran = (now - self.run_from) as f64;
        Some(if self.run_need > ran { 1.0 - ran / self.run_need } else { 0.0 })
    }
}

/// `f64::ceil` as a whole number, without the call into the C library that baseline x86-64 makes of it. Not for numbers
/// below -0.5.
#[inline]
fn round_up(x: f64) -> u64 {
    // The sum's last bit is worth 1: it holds the nearest whole number.
    const ONES: f64 = (1u64 << 52) as f64;
    if x < ONES {
        let sum = x + ONES;
        sum.to_bits() - ONES.to_bits() + u64::from(sum - ONES < x)
    } else {
        // By way of `i64`: the processor has no unsigned conversion.
        x as i64 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn round_up_is_ceil() {
        let whole = (0..63).map(|bits| (1u64 << bits) as f64);
        let near = whole.flat_map(|x| [x - 1e-3, x - 0.5, x.next_down(), x, x.next_up(), x + 0.5, x + 1e-3]);
        for x in near.chain([0.0, -1e-3, 1e-3, 199_999.999, f64::MIN_POSITIVE]) {
            assert_eq!(round_up(x), x.ceil() as u64, "{x}");
        }
    }
}
