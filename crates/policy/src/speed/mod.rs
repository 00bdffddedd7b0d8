//! Speed policies: which P-state each frequency domain should run at.

mod amd_pstate_epp;
mod autonomous;
mod burst;
mod conservative;
mod fixed;
mod governor;
mod hwp;
mod intel_pstate;
mod obsdfreqd;
mod ondemand;
mod openbsd_auto;
mod poll;
mod powerd;
mod powerd_2010;
mod powerdxx;
mod powersaving;
mod race_to_idle;
mod schedutil;
#[cfg(test)]
pub(crate) mod testing;
pub mod tunables;

use crate::{Intent, Observation, Param, Platform, Settings, System};
use alloc::boxed::Box;

pub use autonomous::Autonomy;
pub(crate) use poll::cost;

/// When a speed policy wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// Once at the start, never again.
    Once,
    /// By a user-space process that sleeps in between: each poll wakes a CPU, is scheduled like any
    /// task and costs the policy's `cost` of CPU time.
    Daemon {
        /// Time to the first poll, in ns.
        first_ns: u64,
        /// Time between polls, in ns ([`Intent::next_ns`] overrides it once).
        period_ns: u64,
    },
    /// By a kernel timer: wakes a CPU, costs its `cost` in interrupt context.
    KernelTimer {
        /// Time to the first call, in ns.
        first_ns: u64,
        /// Time between calls, in ns ([`Intent::next_ns`] overrides it once).
        period_ns: u64,
    },
    /// At every statistics tick of every CPU that has one, scope [`crate::SampleScope::Cpu`]; a CPU whose
    /// tick was stopped while it slept reports the time in one sample when it wakes.
    Tick,
    /// From the scheduler's utilisation hook: whenever what runs on a CPU changes and at its busy ticks. It asks
    /// where the load has changed: a period of its signal has ended since it last told ([`crate::pelt`]), or a task came or went.
    ///
    /// With `interval_ns` 0 every hook is an observation, scope [`crate::SampleScope::Cpu`], whether it asks or not.
    /// Otherwise a hook that asks, on any CPU of a domain, becomes one observation of scope [`crate::SampleScope::Domain`]
    /// when at least `interval_ns` went by since that domain's last; [`Intent::next_ns`] then replaces
    /// the interval once, for that domain. A domain that sleeps is not woken for it.
    Scheduler {
        /// Least time between two observations of one frequency domain, in ns (0: every hook).
        interval_ns: u64,
    },
}

/// A governor of P-states.
pub trait SpeedPolicy: Send {
    /// When to be asked; read once, after construction.
    fn cadence(&self) -> Cadence;
    /// CPU time of one decision at the machine's highest speed, in ns: the platform charges it.
    fn cost_ns(&self) -> u64;
    /// The request with which the policy takes over. All samples are zero.
    fn start(&mut self, obs: &Observation<'_>, out: &mut Intent);
    /// One decision.
    fn observe(&mut self, obs: &Observation<'_>, out: &mut Intent);
    /// The load of a CPU's tasks as it was told, of 1024: half of what that leaves free is a new task's
    /// credit. None where tasks are not followed.
    fn followed_util(&self, _cpu: usize) -> Option<u64> {
        None
    }
    /// [`SpeedPolicy::followed_util`] brought up to a time on the clock of [`Observation::now_ns`], if the CPU has gone on as it was
    /// when it was told last: what places tasks by it must not take a CPU for busy that has slept since.
    fn followed_util_at(&self, cpu: usize, _at_ns: u64) -> Option<u64> {
        self.followed_util(cpu)
    }
    /// When hardware that chooses by itself looks next at a CPU that goes on running, on the clock of
    /// [`Observation::now_ns`]: it is told then, and not at the ticks. None for policies of an operating system.
    fn looks_at_ns(&self, _cpu: usize) -> Option<u64> {
        None
    }
}

/// A speed policy's name, parameters, help and constructor: the line that the table holds.
pub struct Speed {
    /// The word on the command line.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Whose rule it is: project, version and file, or a paper, or "this project".
    pub follows: &'static str,
    /// Source text; its opening comment is the documentation ([`crate::essay`]).
    pub source: &'static str,
    /// Parameters, in the order of [`Settings`].
    pub params: &'static [Param],
    /// Makes one for a machine.
    pub build: fn(&Platform, &Settings) -> Box<dyn SpeedPolicy>,
}

/// What the table says of a policy beside the policy.
struct TableStanding {
    /// Where it can be applied.
    systems: &'static [System],
    /// Why it is only an approximation, if it is one.
    approximation: Option<&'static str>,
}

const EVERYWHERE: &[System] = &System::ALL;
const LINUX: &[System] = &[System::Linux];
const FREEBSD: &[System] = &[System::FreeBsd];
const OPENBSD: &[System] = &[System::OpenBsd];
/// A rule that no system offers: an idea, or a kernel change that was not published.
const NOWHERE: &[System] = &[];

/// A line a policy: the policy, the systems that it can be applied on, and what makes it an approximation.
macro_rules! table {
    ($($policy:expr, $systems:expr $(, approximation $why:expr)?;)*) => {
        /// Every speed policy.
        pub static ALL: &[&Speed] = &[$(&$policy),*];
        static STANDINGS: &[TableStanding] = &[
            $(TableStanding { systems: $systems, approximation: <[&str]>::first(&[$($why)?]).copied() }),*
        ];
    };
}

table! {
    fixed::PERFORMANCE, EVERYWHERE;
    fixed::POWERSAVE, EVERYWHERE;
    fixed::USERSPACE, &[System::Linux, System::FreeBsd];
    powerd::POWERD, FREEBSD;
    powerd_2010::POWERD_2010, NOWHERE;
    powerdxx::POWERDXX, FREEBSD;
    burst::BURST, LINUX;
    openbsd_auto::OPENBSD_AUTO, OPENBSD;
    obsdfreqd::OBSDFREQD, OPENBSD;
    powersaving::POWERSAVING, NOWHERE, approximation powersaving::APPROXIMATION;
    ondemand::ONDEMAND, LINUX;
    conservative::CONSERVATIVE, LINUX;
    schedutil::SCHEDUTIL, LINUX;
    intel_pstate::INTEL_PSTATE, LINUX;
    hwp::HWP, LINUX, approximation hwp::APPROXIMATION;
    amd_pstate_epp::AMD_PSTATE_EPP, LINUX, approximation amd_pstate_epp::APPROXIMATION;
    race_to_idle::RACE_TO_IDLE, NOWHERE;
}

impl Speed {
    fn standing(&self) -> Option<&'static TableStanding> {
        STANDINGS.iter().zip(ALL).find(|(_, p)| p.name == self.name).map(|(standing, _)| standing)
    }

    /// The systems on which it can be applied.
    pub fn systems(&self) -> &'static [System] {
        self.standing().map_or(NOWHERE, |s| s.systems)
    }

    /// Why it is only an approximation of what it is named after, in one line; none where it follows a known rule.
    pub fn approximation(&self) -> Option<&'static str> {
        self.standing().and_then(|s| s.approximation)
    }
}

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Speed> {
    ALL.iter().copied().find(|p| p.name == name)
}
