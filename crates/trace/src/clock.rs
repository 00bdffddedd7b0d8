//! Time that only goes forward, whatever a recording says.

/// A step ahead of more than a day is damage: clocks of traces stand still in suspend.
const MOST_STEP_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Admits the events' times one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceClock {
    /// The first event's time.
    start: Option<u64>,
    /// The last one admitted.
    now: u64,
    leap: Option<u64>,
    /// Events older than their predecessors: they count as simultaneous.
    pub(super) backwards: u64,
    /// Events too far ahead: they are left out.
    pub(super) leaps: u64,
}

impl TraceClock {
    pub(super) fn start(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The time to take something for that is told beside the events, without going there.
    pub(super) fn beside(&self, time: u64) -> u64 {
        if time.saturating_sub(self.now) > MOST_STEP_NS { self.now } else { time.max(self.now) }
    }

    /// The time to take an event for, or `None` to leave it out.
    #[inline]
    pub(super) fn admit(&mut self, time: u64) -> Option<u64> {
        if self.start.is_none() {
            self.start = Some(time);
            self.now = time;
        }
        if time < self.now {
            self.backwards += 1;
            return Some(self.now);
        }
        if time - self.now > MOST_STEP_NS {
            // One leap is damage; a second one to about the same time is the clock itself.
            let agreed = self.leap.replace(time).is_some_and(|l| time.abs_diff(l) <= MOST_STEP_NS);
            if !agreed {
                self.leaps += 1;
                return None;
            }
        }
        self.leap = None;
        self.now = time;
        Some(time)
    }

    /// What was wrong, a sentence each.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let said = [
            (self.backwards, "events were older than their predecessors and count as simultaneous."),
            (self.leaps, "events lay more than a day ahead and are left out."),
        ];
        said.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leap_is_damage_and_two_are_the_clock() {
        let mut clock = TraceClock::default();
        let day = MOST_STEP_NS + 1;
        assert_eq!(clock.admit(1000), Some(1000));
        assert_eq!(clock.admit(900), Some(1000));
        assert_eq!(clock.admit(day * 9), None);
        assert_eq!(clock.admit(1100), Some(1100));
        assert_eq!(clock.admit(day * 9), None);
        assert_eq!(clock.admit(day * 9 + 5), Some(day * 9 + 5));
        assert_eq!((clock.backwards, clock.leaps, clock.start()), (1, 2, 1000));
    }
}
