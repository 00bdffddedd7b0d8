//! Power policies as pure state machines.
//!
//! A policy is told what happened and says what it wants. It has no clock, opens no file, starts no
//! thread and, once built, allocates nothing. So the simulator, the lab's comparison with a real
//! kernel, the live governor of cores and the tests all run the very same object. What a policy
//! wants is apart from how a driver is told: whoever runs the policy does that (the "actuator").
//!
//! Three families live here, each a folder with one file a policy and a table that names them all:
//!
//! - [`speed`] (P-states): an [`Observation`] in, an [`Intent`] out, a speed for each frequency domain;
//! - [`idle`] (C-states): an [`IdleQuery`] in, an [`IdleChoice`] out, and an [`IdleOutcome`] to learn from;
//! - [`cores`]: a [`CoreObservation`] in, the number of CPUs that are kept for work out.
//!
//! Beside them [`dram`] is a table of rules for the clock of the memory, [`limits`] what a user allows.
//!
//! To add a policy: write its file, add its line to the table. Name, parameters, help and whose rule it
//! follows come from the item itself ([`Speed`], [`Idle`], [`Cores`]); the essay that opens its file is its
//! documentation ([`essay`]).
//!
//! ```text
//!              Platform (levels, domains, tick)
//!                  | build
//! Observation ---> policy ---> Intent ---> actuator (the simulated machine)
//! ```
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod chosen;
pub mod cores;
pub mod dram;
pub mod idle;
pub mod limits;
mod params;
pub mod pelt;
pub mod speed;
mod system;
pub mod ticks;

pub use cores::{CoreObservation, CorePolicy, CorePower, Cores, Draw};
pub use idle::{Idle, IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
pub use params::{Param, ParamKind, Settings, SpecError, number_and_unit, unit_ratio};
pub use speed::{Autonomy, Cadence, Speed, SpeedPolicy};
pub use system::System;

use alloc::vec::Vec;

/// A clock frequency in kHz, the unit of cpufreq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Khz(pub u32);

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

/// A step of the speed as Intel's drivers count it: the bus clock of all processors since 2008.
pub(crate) const STEP_KHZ: u32 = 100_000;

/// One speed that a domain's hardware offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The speed as the driver names it.
    pub khz: Khz,
    /// Power of one busy core at this level in microwatts, where a table or model gives one.
    pub busy_uw: Option<u32>,
}

/// CPUs that share one clock, and the speeds of that clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainInfo {
    /// Logical CPUs of the domain, ascending.
    pub cpus: Vec<u16>,
    /// Offered speeds, **highest first**, without repeats; never empty.
    pub levels: Vec<Level>,
    /// What the driver states for one change of speed, in ns (0: unknown).
    pub transition_ns: u64,
    /// The highest speed without boost; where nothing is known of a boost, the highest.
    pub base: Khz,
    /// The speed at which a busy CPU counts as fully loaded, and above it too: at most the highest.
    pub load_full: Khz,
    /// The speed with which the boost comes where the driver has no faster one to ask for and the hardware goes on from there by
    /// itself: P0 of AMD's processors under acpi-cpufreq. `None`: each level is asked for by itself.
    pub boost_with: Option<Khz>,
    /// Work a CPU here does at its highest speed, where the machine's strongest CPU does 1024.
    pub capacity: u16,
}

impl DomainInfo {
    /// The highest speed.
    pub fn fastest(&self) -> Khz {
        self.levels[0].khz
    }
    /// The lowest speed.
    pub fn slowest(&self) -> Khz {
        self.levels[self.levels.len() - 1].khz
    }
    /// The slowest level that is at least `khz`; the highest where none is.
    pub fn at_least(&self, khz: Khz) -> Khz {
        self.levels.iter().rev().map(|l| l.khz).find(|&l| l >= khz).unwrap_or(self.fastest())
    }
    /// The fastest level that is at most `khz`; the lowest where none is.
    pub fn at_most(&self, khz: Khz) -> Khz {
        self.levels.iter().map(|l| l.khz).find(|&l| l <= khz).unwrap_or(self.slowest())
    }
    /// The level nearest to `khz`; of two equally near the faster.
    pub fn nearest(&self, khz: Khz) -> Khz {
        let (up, down) = (self.at_least(khz), self.at_most(khz));
        if up.0.abs_diff(khz.0) <= khz.0.abs_diff(down.0) { up } else { down }
    }
    /// Least time in ns that a kernel governor leaves between two changes of speed: half as much
    /// again as the driver states, or 1 ms where it states nothing (Linux
    /// `cpufreq_policy_transition_delay_us`; older kernels took 1000 times the latency, at most 10 ms).
    pub fn transition_delay_ns(&self) -> u64 {
        match self.transition_ns {
            0 => MS,
            ns => ns.saturating_add(ns / 2),
        }
    }
}

/// What a policy may know of a machine before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Frequency domains; every CPU is in exactly one.
    pub domains: Vec<DomainInfo>,
    /// Number of logical CPUs.
    pub cpus: u16,
    /// Period of the scheduler's statistics tick in ns.
    pub tick_ns: u64,
    /// Whether the scheduler's load counts work, whatever the speed (Linux: where APERF and MPERF tell
    /// the real speed), or just time: then it means a share of the speed in force.
    pub load_invariant: bool,
    /// Whether boost is on: a driver that knows it is off takes [`DomainInfo::base`] for its highest speed.
    pub boost: bool,
    /// Power of one core in its deepest idle state, in microwatts, where known.
    pub deepest_idle_uw: Option<u32>,
    /// Power that is spent only while some core is awake (uncore), in microwatts, where known.
    pub awake_uw: Option<u32>,
    /// How its hardware chooses where it chooses by itself.
    pub autonomy: Autonomy,
}

impl Platform {
    /// The domain of each CPU, by CPU number.
    pub fn domain_of_cpu(&self) -> Vec<u16> {
        let mut of = alloc::vec![0; usize::from(self.cpus)];
        for (d, domain) in self.domains.iter().enumerate() {
            for &cpu in &domain.cpus {
                of[usize::from(cpu)] = d as u16;
            }
        }
        of
    }
}

/// Where the power comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerSource {
    /// No battery, or nothing says.
    #[default]
    Unknown,
    /// The wall.
    Mains,
    /// A discharging battery.
    Battery,
}

/// One CPU since it was last in an observation's [`SampleScope`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSample {
    /// Time spent on work, in ns.
    pub busy_ns: u64,
    /// Time spent idle with nothing outstanding, in ns.
    pub idle_ns: u64,
    /// Time spent idle while a task of this CPU waited for I/O, in ns.
    pub iowait_ns: u64,
    /// Tasks running or ready to run now.
    pub runnable: u32,
    /// True when a task that had waited for I/O woke here since the last sample.
    pub io_wake: bool,
    /// Whether the CPU has slept since the last sample with its tick stopped, or has one that is never stopped.
    pub tickless: bool,
    /// What the scheduler expects of the tasks that are running or ready here (`util_est`): the sum of
    /// their utilisation when they last slept, of 1024. 0 where the platform does not follow tasks.
    pub task_util: u32,
    /// Utilisation that tasks brought to this CPU since the last sample, less what went with those that left or
    /// ended, of 1024: a new task's credit, a migrated one's past. 0 where tasks are not followed.
    pub moved_util: i32,
}

impl CpuSample {
    /// Length of the sample in ns.
    pub fn total_ns(&self) -> u64 {
        self.busy_ns.saturating_add(self.not_busy_ns())
    }
    /// Time without work, whatever was outstanding, in ns.
    pub fn not_busy_ns(&self) -> u64 {
        self.idle_ns.saturating_add(self.iowait_ns)
    }
    /// Busy share in `0..=scale`, rounded down; an empty sample is 0.
    pub fn busy_of(&self, scale: u64) -> u64 {
        match self.total_ns() {
            0 => 0,
            total => (u128::from(self.busy_ns) * u128::from(scale) / u128::from(total)) as u64,
        }
    }
}

/// A frequency domain as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainSample {
    /// The speed in force (the target, while a change is under way).
    pub khz: Khz,
    /// The user's or firmware's lower limit.
    pub min: Khz,
    /// The user's or firmware's upper limit.
    pub max: Khz,
}

/// Which CPUs' samples are new in an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleScope {
    /// All of them: a poll.
    All,
    /// One CPU: its scheduler changed what runs, or its statistics tick came.
    Cpu(u16),
    /// All CPUs of one frequency domain, since the domain's last observation: a sampling governor
    /// of the kernel, whose period ran out for that domain.
    Domain(u16),
}

/// What a policy sees.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The scheduler's clock, in ns; never goes back. Periods of the load's signal begin at its multiples.
    pub now_ns: u64,
    /// Whether a decision is asked for. If not, the scheduler only tells what ran: one that follows the load
    /// needs every piece of it, and asks for speeds less often ([`Cadence::Scheduler`](speed::Cadence)).
    pub asks: bool,
    /// Which samples are new; the others are zero or stale and must not be read.
    pub scope: SampleScope,
    /// One sample a CPU, indexed by CPU number.
    pub cpus: &'a [CpuSample],
    /// One sample a domain, in the order of [`Platform::domains`].
    pub domains: &'a [DomainSample],
    /// Mains or battery.
    pub source: PowerSource,
    /// Hottest CPU sensor in thousandths of a degree Celsius, where there is one.
    pub temperature_mc: Option<i32>,
}

/// What is wanted of one frequency domain. Zero speeds mean "no opinion".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainIntent {
    /// Never slower than this.
    pub min: Khz,
    /// Never faster than this.
    pub max: Khz,
    /// The speed wanted now; the actuator takes the slowest level that is at least this, inside the limits.
    pub desired: Khz,
}

/// What a policy wants. The platform owns it and hands it in, so that deciding allocates nothing;
/// it keeps its content between observations, and a policy writes only what it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// One entry a domain, in the order of [`Platform::domains`].
    pub domains: Vec<DomainIntent>,
    /// When to be asked again, in ns from now, where that differs from the cadence's own period.
    /// The platform clears it before each observation.
    pub next_ns: Option<u64>,
}

impl Intent {
    /// An intent without an opinion, for `domains` frequency domains.
    pub fn neutral(domains: usize) -> Intent {
        Intent { domains: alloc::vec![DomainIntent::default(); domains], next_ns: None }
    }
    /// Asks for `khz` in domain `d`.
    pub fn set_speed(&mut self, d: usize, khz: Khz) {
        self.domains[d].desired = khz;
    }
}

/// The essay that opens a policy's source file, without the comment marks.
pub fn essay(source: &'static str) -> impl Iterator<Item = &'static str> {
    source
        .lines()
        .take_while(|l| l.starts_with("//!"))
        .map(|l| l.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default())
}
