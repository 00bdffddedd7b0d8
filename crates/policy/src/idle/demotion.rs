//! A processor's own rule around any idle policy: deep C-states are demoted while sleeps are short.
//!
//! Intel's processors since Nehalem can enter a shallower core state than the one asked for (MSR 0xE2, bits 25 and 26: C6 and C7
//! to C3, all to C1). The data sheet says that a request is demoted "until enough residency has built up" (2nd generation
//! Core, volume 1, 4.2.4.5) and not how that is reckoned. Here:
//!
//! 1. A moving mean of the CPU's sleeps, each counted with an eighth.
//! 2. While it is below `short_ns`, what is deeper than `to` becomes `to`.
//!
//! The policy inside chooses and learns as before: the kernel does not know what the processor made of its request.

use super::{IdleChoice, IdleOutcome, IdlePolicy, IdleQuery, IdleState};
use alloc::boxed::Box;

/// What a processor demotes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    /// The state that deeper ones become, by its index.
    pub to: u8,
    /// Mean sleep below which that happens, in ns.
    pub short_ns: u64,
}

struct Demoted {
    inner: Box<dyn IdlePolicy>,
    rule: Demotion,
    mean_ns: u64,
    asked: u8,
}

/// A policy on a processor that demotes.
pub fn demoted(rule: Demotion, inner: Box<dyn IdlePolicy>) -> Box<dyn IdlePolicy> {
    Box::new(Demoted { inner, rule, mean_ns: 0, asked: 0 })
}

/// A sleep counts with one part in this.
const MEMORY: u64 = 8;
/// The longest that a sleep counts as, in ns: one long one is enough to promote again.
const LONGEST_NS: u64 = 100_000_000;

impl IdlePolicy for Demoted {
    fn select(&mut self, query: &IdleQuery<'_>) -> IdleChoice {
        let choice = self.inner.select(query);
        self.asked = choice.state;
        let state =
            if self.mean_ns < self.rule.short_ns { choice.state.min(self.rule.to) } else { choice.state };
        IdleChoice { state, ..choice }
    }

    fn reflect(&mut self, outcome: &IdleOutcome, states: &[IdleState]) {
        self.mean_ns += outcome.measured_ns.min(LONGEST_NS) / MEMORY;
        self.mean_ns -= self.mean_ns / MEMORY;
        self.inner.reflect(&IdleOutcome { state: self.asked, ..*outcome }, states);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, STATES, US, outcome, query};
    use super::*;

    /// Asks for the deepest, and tells what it is told.
    struct Deepest;

    impl IdlePolicy for Deepest {
        fn select(&mut self, _: &IdleQuery<'_>) -> IdleChoice {
            IdleChoice { state: 3, stop_tick: true }
        }
        fn reflect(&mut self, outcome: &IdleOutcome, _: &[IdleState]) {
            assert_eq!(outcome.state, 3, "the kernel does not know");
        }
    }

    #[test]
    fn short_sleeps_are_shallow_and_long_ones_bring_the_depth_back() {
        let mut p = demoted(Demotion { to: 1, short_ns: 500 * US }, Box::new(Deepest));
        let mut sleep = |ns: u64| {
            let state = p.select(&query(100 * MS, &STATES)).state;
            p.reflect(&outcome(state, ns), &STATES);
            state
        };
        let short: [u8; 50] = core::array::from_fn(|_| sleep(300 * US));
        assert!(short.iter().all(|&s| s == 1), "{short:?}");
        // 300 us and an eighth of 4 ms: above 500 us after one.
        sleep(4 * MS);
        assert_eq!(sleep(300 * US), 3);
        let short: [u8; 50] = core::array::from_fn(|_| sleep(300 * US));
        assert_eq!(short[49], 1);
    }
}
