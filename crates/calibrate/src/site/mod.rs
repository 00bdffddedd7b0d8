//! Where windows take place: a machine whose CPUs can be kept busy for a time.

mod changes;
pub(crate) mod clock;
mod emulated;
mod live;
mod work;

pub use changes::{Ask, Changes};
pub use emulated::Emulated;
pub use live::LiveSite;

use std::time::Duration;
use wattwise_hw::clock::Moment;
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// Work a second, by kind of work: chains of arithmetic, branches that nobody can foretell, a chase through a cache.
pub type Pace = [f64; 3];

/// What a CPU did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// Work a second.
    pub work: Pace,
    /// Its mean clock meanwhile, in kHz; none where nothing tells of it.
    pub khz: Option<f64>,
}

impl Paced {
    /// Work a cycle; of a CPU whose clock nothing tells of, at that one, in kHz.
    pub(crate) fn cycle(&self, asked_khz: f64) -> Pace {
        self.work.map(|work| work / self.khz.unwrap_or(asked_khz))
    }
}

/// A machine that can be put to work.
pub trait Site {
    /// Its files.
    fn root(&self) -> &dyn Root;

    /// Keeps CPUs busy for a share of the time (0 to 1) from now on, and no others.
    ///
    /// # Errors
    /// The work cannot be started there.
    fn load(&self, cpus: &[(u32, f64)]) -> Result<(), String>;

    /// Lets a time pass.
    ///
    /// # Errors
    /// Why to stop: a signal.
    fn pass(&self, time: Duration) -> Result<(), String>;

    /// Wakes CPUs for a moment: the kernel counts a sleep when it ends, and a C-state that is switched off keeps a CPU that is
    /// in it.
    fn wake(&self, _cpus: &[u32]) {}

    /// Runs each kind of work for so long on all of these CPUs at once: what each CPU did; none where no work is really done.
    ///
    /// # Errors
    /// The work cannot be kept there.
    fn pace(&self, cpus: &[u32], each: Duration) -> Result<Option<Vec<Paced>>, String>;

    /// Tries changes of speed of a policy, which has the governor `userspace`, seen from one of its CPUs; none where no change
    /// really takes time.
    ///
    /// # Errors
    /// Why they cannot be told, or why to stop.
    fn changes(&self, policy: &CpufreqPolicy, cpu: u32, ask: &Ask<'_>) -> Result<Option<Changes>, String>;

    /// How late so many sleeps of a length end on a CPU, in us; none where nothing really sleeps.
    ///
    /// # Errors
    /// The CPU cannot be used.
    fn late(&self, cpu: u32, sleep: Duration, times: usize) -> Result<Option<Vec<f64>>, String>;

    /// Whether it begins anew with each process, in a time of its own: how warm it is and what its meters say then follows from
    /// all that was done since.
    fn begins_anew(&self) -> bool {
        false
    }

    /// Its clock.
    fn moment(&self) -> Moment;

    /// A CPU that is awake while we look, whose registers wake nobody.
    fn own_cpu(&self) -> u32;

    /// CPU time that the load of a CPU has taken so far, in s: where a host keeps it waiting, more than was asked for.
    fn load_s(&self, _cpu: u32) -> f64 {
        0.0
    }

    /// CPU time that looking has taken so far, in s: what keeps a CPU busy and is nobody else's.
    fn own_s(&self) -> f64 {
        0.0
    }
}
