//! Idle policies: which C-state a CPU with nothing to do should enter.

pub mod demotion;
mod fixed;
mod ladder;
mod menu;
mod menu_3_1;
pub mod shallow;
mod teo;
#[cfg(test)]
mod testing;

use crate::{Param, Settings};
use alloc::boxed::Box;

/// One C-state, as an idle policy sees it. Index 0 is the shallowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Worst-case time to leave it, in ns.
    pub exit_ns: u64,
    /// Shortest stay that is worth it, in ns.
    pub target_ns: u64,
    /// False when the user or the firmware has disabled it.
    pub enabled: bool,
    /// A loop of the kernel that looks for work, and no state of the hardware: `POLL`, the first where there is one.
    pub polls: bool,
}

/// The first state of the hardware; [`IdleState::polls`] is before it.
pub(crate) fn first_physical(states: &[IdleState]) -> usize {
    usize::from(states.len() > 1 && states[0].polls)
}

/// How long a poll lasts at most, in ns: to the target residency of the first enabled state beyond 10 us, and a sixteenth of a tick.
/// Then the idle policy is asked anew. Source: Linux 6.12, `cpuidle_poll_time()`.
pub fn poll_limit_ns(states: &[IdleState], tick_ns: u64) -> u64 {
    let (least, most) = (10_000, tick_ns / 16);
    let pays = |s: &&IdleState| !s.polls && s.enabled && s.target_ns >= least;
    states.iter().find(pays).map_or(most, |s| s.target_ns.min(most))
}

/// What is known when a CPU goes idle.
#[derive(Clone, Copy, Debug)]
pub struct IdleQuery<'a> {
    /// Time since the policy was started, in ns.
    pub now_ns: u64,
    /// Time to this CPU's next timer other than the tick, in ns ([`u64::MAX`]: none).
    pub next_timer_ns: u64,
    /// Time to the next scheduler tick, in ns.
    pub next_tick_ns: u64,
    /// True when the tick has already been stopped (the CPU was woken without work and returns to idle).
    pub tick_stopped: bool,
    /// Longest exit latency that users tolerate, in ns ([`u64::MAX`]: any).
    pub latency_limit_ns: u64,
    /// Tasks of this CPU that wait for I/O.
    pub iowaiters: u32,
    /// Tasks that this CPU ran at the last tick that found it awake.
    pub ran_at_tick: u32,
    /// This CPU's states, shallowest first; never empty; state 0 is always allowed.
    pub states: &'a [IdleState],
}

/// An idle policy's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleChoice {
    /// Index of the state to enter.
    pub state: u8,
    /// Whether to stop the periodic tick (machines without that ability ignore it).
    pub stop_tick: bool,
}

/// What became of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleOutcome {
    /// The state entered.
    pub state: u8,
    /// Time from going idle to being awake again, exit latency included, in ns.
    pub measured_ns: u64,
    /// Woken by the timer that was announced in [`IdleQuery::next_timer_ns`].
    pub by_timer: bool,
    /// Woken by the scheduler tick that the choice kept.
    pub by_tick: bool,
    /// It polled for as long as a poll may last ([`poll_limit_ns`]).
    pub poll_ended: bool,
}

/// A governor of C-states; one object a CPU.
pub trait IdlePolicy: Send {
    /// Chooses a state for a CPU that has just run out of work.
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice;
    /// Learns from what happened.
    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]);
}

/// An idle policy's name, parameters, help and constructor: the line that the table holds.
pub struct Idle {
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
    /// Makes one for a CPU with these states and this tick period in ns.
    pub build: fn(&[IdleState], u64, &Settings) -> Box<dyn IdlePolicy>,
}

/// Every idle policy.
pub static ALL: &[&Idle] = &[&menu::MENU, &menu_3_1::MENU_3_1, &teo::TEO, &ladder::LADDER, &fixed::FIXED];

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Idle> {
    ALL.iter().copied().find(|p| p.name == name)
}

/// The deepest enabled state no deeper than `state` whose exit latency is within the limit.
pub fn allowed(query: &IdleQuery<'_>, state: usize) -> u8 {
    let fits = |i: &usize| query.states[*i].enabled && query.states[*i].exit_ns <= query.latency_limit_ns;
    (0..=state.min(query.states.len() - 1)).rev().find(fits).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::testing::{MS, POLLED, US};
    use super::{IdleState, poll_limit_ns};

    /// Of 1, 20, 80 and 400 us the first beyond 10 us is 20; without it 80; and 4 ms / 16 = 250 us bound what follows.
    #[test]
    fn a_poll_lasts_to_the_first_state_that_pays_for_it() {
        let with = |enabled: [bool; 5]| {
            let mut states = POLLED;
            states.iter_mut().zip(enabled).for_each(|(s, on)| s.enabled = on);
            poll_limit_ns(&states, 4 * MS)
        };
        assert_eq!(with([true; 5]), 20 * US);
        assert_eq!(with([true, true, false, true, true]), 80 * US);
        assert_eq!(with([true, true, false, false, true]), 250 * US);
        assert_eq!(with([true, true, false, false, false]), 250 * US);
        assert_eq!(poll_limit_ns(&[] as &[IdleState], 4 * MS), 250 * US);
    }
}
