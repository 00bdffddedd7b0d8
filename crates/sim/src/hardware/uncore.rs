//! What of a package follows its fastest core: the uncore's step with its delay and hold, and its ramp.
//!
//! Nothing that runs waits for it, so that it has no events: its account is brought up to a time before anything else happens to the
//! package then, and the changes that lie in between are booked at their own times.
//!
//! ```text
//!            first fast core          last one gone
//!                 |<- delay ->|             |<-- hold -->|
//!   low           .           high                       low
//! ```
//!
//! The cores that vote, and from which clock the step is due, are the model's ([`Uncore`]).

use super::times::Residency;
use crate::calendar::NEVER;
use wattwise_model::machine::{Package, Uncore};

/// A package's uncore.
#[derive(Clone, Debug)]
pub(super) struct UncoreAccount {
    /// Cores that vote, by speed.
    votes: Box<[u16]>,
    /// The fastest speed with a vote; their number without one.
    top: usize,
    /// Time with each speed for the fastest, awake.
    times: Box<[u64]>,
    since: u64,
    /// How many of the speeds are fast.
    fast: usize,
    delay_ns: u64,
    hold_ns: u64,
    high: bool,
    rise_at: u64,
    fall_at: u64,
    /// The package's slot for being awake in the high state.
    high_slot: usize,
}

impl UncoreAccount {
    /// Without a vote.
    pub(super) fn new(p: &Package, uncore: &Uncore) -> UncoreAccount {
        let speeds = uncore.khz.len();
        UncoreAccount {
            votes: vec![0; speeds].into(),
            top: speeds,
            times: vec![0; speeds].into(),
            since: 0,
            fast: uncore.fast,
            delay_ns: uncore.delay_ns,
            hold_ns: uncore.hold_ns,
            high: false,
            rise_at: NEVER,
            fall_at: NEVER,
            high_slot: 1 + p.idle.len(),
        }
    }

    /// The package's slot for being awake.
    #[inline]
    pub(super) fn awake_slot(&self) -> usize {
        if self.high { self.high_slot } else { 0 }
    }

    /// Whether a slot of the package is its high state.
    #[inline]
    pub(super) fn is_high(&self, slot: usize) -> bool {
        slot == self.high_slot
    }

    /// Books the changes of state up to now in the package's residency.
    pub(super) fn advance(&mut self, now: u64, package: &mut Residency) {
        if let Some(time) = self.times.get_mut(self.top) {
            *time += now - self.since;
        }
        self.since = now;
        loop {
            let at = self.rise_at.min(self.fall_at);
            if at > now {
                return;
            }
            self.high = self.rise_at < self.fall_at;
            self.rise_at = NEVER;
            if !self.high {
                self.fall_at = NEVER;
            }
            if package.slot() == 0 || self.is_high(package.slot()) {
                package.open(at, self.awake_slot());
            }
        }
    }

    /// A core's vote goes from one speed to another; none while it has no say. Up to now, [`UncoreAccount::advance`] has
    /// been called.
    pub(super) fn vote(&mut self, now: u64, before: Option<u16>, after: Option<u16>) {
        if let Some(before) = before {
            self.votes[usize::from(before)] -= 1;
        }
        if let Some(after) = after {
            self.votes[usize::from(after)] += 1;
        }
        let was_fast = self.top < self.fast;
        let slower =
            |at: usize| self.votes[at..].iter().position(|&n| n > 0).map_or(self.votes.len(), |n| at + n);
        self.top = match after.map(usize::from) {
            Some(after) if after <= self.top => after,
            _ => slower(self.top.min(self.votes.len())),
        };
        match (was_fast, self.top < self.fast) {
            (false, true) => {
                self.fall_at = NEVER;
                if !self.high {
                    self.rise_at = self.rise_at.min(now + self.delay_ns);
                }
            }
            (true, false) => self.fall_at = now + self.hold_ns,
            _ => {}
        }
    }

    /// What it draws at present, in watts.
    pub(super) fn watts(&self, uncore: &Uncore) -> f64 {
        let share = uncore.khz.get(self.top).map_or(0.0, |&khz| f64::from(khz) / f64::from(uncore.khz[0]));
        uncore.follow_w * share + if self.high { uncore.step_w } else { 0.0 }
    }

    /// Joules of the ramp.
    pub(super) fn follow_joules(&self, uncore: &Uncore) -> f64 {
        let share = |khz: u32| f64::from(khz) / f64::from(uncore.khz[0]);
        let times = uncore.khz.iter().zip(&self.times);
        uncore.follow_w * times.map(|(&khz, &ns)| share(khz) * ns as f64 * 1e-9).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two speeds of which the first is fast, delay 10, hold 25; no idle state.
    fn account() -> (UncoreAccount, Residency) {
        let account = UncoreAccount {
            votes: vec![0; 2].into(),
            top: 2,
            times: vec![0; 2].into(),
            since: 0,
            fast: 1,
            delay_ns: 10,
            hold_ns: 25,
            high: false,
            rise_at: NEVER,
            fall_at: NEVER,
            high_slot: 1,
        };
        (account, Residency::new(2, 0))
    }

    /// Time in the high state by 200, with one core fast in each of these spans.
    fn high_ns(spans: &[(u64, u64)]) -> u64 {
        let (mut a, mut r) = account();
        for &(from, to) in spans {
            a.advance(from, &mut r);
            a.vote(from, None, Some(0));
            a.advance(to, &mut r);
            a.vote(to, Some(0), None);
        }
        a.advance(200, &mut r);
        r.settle(200);
        assert_eq!(a.times[0], spans.iter().map(|(from, to)| to - from).sum::<u64>());
        r.times[1]
    }

    #[test]
    fn the_step_comes_late_and_stays() {
        assert_eq!(high_ns(&[(50, 100)]), 65, "from 60 to 125");
        assert_eq!(high_ns(&[(50, 51)]), 16, "from 60 to 76: over at 51");
        assert_eq!(high_ns(&[(50, 60), (70, 90)]), 55, "from 60 to 115: held in between");
        assert_eq!(high_ns(&[(50, 60), (100, 110)]), 25 + 25, "to 85, and from 110 to 135");
    }

    #[test]
    fn a_hold_shorter_than_the_delay_is_no_step() {
        let (mut a, mut r) = account();
        a.hold_ns = 5;
        a.vote(0, None, Some(0));
        a.advance(1, &mut r);
        a.vote(1, Some(0), None);
        a.advance(100, &mut r);
        assert_eq!((a.high, a.rise_at, a.fall_at), (false, NEVER, NEVER));
    }

    #[test]
    fn the_fastest_that_votes_counts() {
        let (mut a, mut r) = account();
        a.vote(0, None, Some(1));
        a.vote(0, None, Some(1));
        assert_eq!(a.top, 1);
        a.advance(10, &mut r);
        a.vote(10, Some(1), Some(0));
        assert_eq!(a.top, 0);
        a.advance(30, &mut r);
        a.vote(30, Some(0), None);
        a.advance(34, &mut r);
        assert_eq!((a.top, &a.times[..]), (1, &[20, 14][..]));
        a.vote(34, Some(1), None);
        assert_eq!(a.top, 2);
    }
}
