//! A limit around any idle policy: no C-state deeper than one that is named.
//!
//! The policy inside sees the machine's table with the deeper states disabled, as it does where a user has switched them
//! off (Linux: `cpuidle/stateN/disable`).

use super::{IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
use alloc::{boxed::Box, vec::Vec};

/// A policy that may not sleep deeper than a state.
struct Shallow {
    inner: Box<dyn IdlePolicy>,
    /// The table as the policy sees it.
    states: Vec<IdleState>,
}

/// Builds what `make` makes for these states, of which those after `deepest` are disabled.
pub fn no_deeper_than(
    deepest: usize,
    states: &[IdleState],
    make: &dyn Fn(&[IdleState]) -> Box<dyn IdlePolicy>,
) -> Box<dyn IdlePolicy> {
    let mut states = states.to_vec();
    states.iter_mut().skip(deepest + 1).for_each(|s| s.enabled = false);
    Box::new(Shallow { inner: make(&states), states })
}

impl IdlePolicy for Shallow {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        self.inner.select(&IdleQuery { states: &self.states, ..*query })
    }
    fn reflect(&mut self, outcome: &IdleOutcome, _: &[IdleState]) {
        self.inner.reflect(outcome, &self.states);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::testing::state;
    use crate::{MS, Settings, idle};

    /// An hour of nothing to do, as every policy comes to see it: the deepest state, or the deepest allowed.
    #[test]
    fn no_policy_sleeps_deeper() {
        let states = [state(1, 1), state(10, 20), state(100, 400)];
        for policy in idle::ALL {
            let settings = Settings::defaults(policy.params);
            let make = |s: &[IdleState]| (policy.build)(s, 4 * MS, &settings);
            let settles = |mut p: Box<dyn IdlePolicy>| {
                let mut last = 0;
                for _ in 0..200 {
                    let query = IdleQuery {
                        now_ns: 0,
                        next_timer_ns: u64::MAX,
                        next_tick_ns: 4 * MS,
                        tick_stopped: true,
                        latency_limit_ns: u64::MAX,
                        iowaiters: 0,
                        ran_at_tick: 0,
                        states: &states,
                    };
                    last = p.select(&query).state;
                    let outcome = IdleOutcome {
                        state: last,
                        measured_ns: 3600 * 1000 * MS,
                        by_timer: false,
                        by_tick: false,
                        poll_ended: false,
                    };
                    p.reflect(&outcome, &states);
                }
                last
            };
            assert_eq!(settles(make(&states)), 2, "{}", policy.name);
            assert_eq!(settles(no_deeper_than(1, &states, &make)), 1, "{}", policy.name);
            assert_eq!(settles(no_deeper_than(0, &states, &make)), 0, "{}", policy.name);
            assert_eq!(settles(no_deeper_than(9, &states, &make)), 2, "{}", policy.name);
        }
    }
}
