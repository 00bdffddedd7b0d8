//! States, questions and outcomes for the tests of this folder.

use super::{IdleOutcome, IdleQuery, IdleState};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) const fn state(exit_us: u64, target_us: u64) -> IdleState {
    IdleState { exit_ns: exit_us * US, target_ns: target_us * US, enabled: true, polls: false }
}

/// Four states as on a laptop: exit latency and target residency in us.
pub(crate) const STATES: [IdleState; 4] = [state(1, 1), state(10, 20), state(40, 80), state(130, 400)];

/// The same after the kernel's polling state, as on x86.
pub(crate) const POLLED: [IdleState; 5] =
    [IdleState { polls: true, ..state(0, 0) }, STATES[0], STATES[1], STATES[2], STATES[3]];

/// A CPU whose next timer is `timer_ns` away and whose tick is 4 ms away.
pub(crate) fn query(timer_ns: u64, states: &[IdleState]) -> IdleQuery<'_> {
    IdleQuery {
        now_ns: 0,
        next_timer_ns: timer_ns,
        next_tick_ns: 4 * MS,
        tick_stopped: false,
        latency_limit_ns: u64::MAX,
        iowaiters: 0,
        ran_at_tick: 0,
        states,
    }
}

/// A sleep that something other than timer and tick ended.
pub(crate) fn outcome(state: u8, measured_ns: u64) -> IdleOutcome {
    IdleOutcome { state, measured_ns, by_timer: false, by_tick: false, poll_ended: false }
}
