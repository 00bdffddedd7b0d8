//! The clock owns the time and the calendar, and says when the next event and the next tick are.

use crate::calendar::Calendar;

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A run or a slice ends, a C-state has been left, a timer fires, a tick comes.
    Cpu(usize),
    /// A change of speed takes effect, or its stall ends.
    Domain(usize),
    /// An I/O is done, or an interrupt comes from outside.
    Devices,
    /// A kernel timer of the speed policy.
    Policy,
    /// Idle CPUs look for queued tasks.
    Balance,
    /// Temperatures move on.
    Heat,
    /// A bin of the timeline is full.
    Bins,
    /// The core policy looks.
    Cores,
    /// The power limits look.
    Limits,
    /// The memory's governor looks.
    Memory,
}

/// Sources beside CPUs and domains.
const OTHERS: [Source; 8] = [
    Source::Devices,
    Source::Policy,
    Source::Balance,
    Source::Heat,
    Source::Bins,
    Source::Cores,
    Source::Limits,
    Source::Memory,
];

/// The present, and what comes next.
pub(crate) struct Clock {
    now: u64,
    calendar: Calendar,
    cpus: usize,
    domains: usize,
    tick_ns: u64,
    /// Delay of the ticks against the work's start.
    phase_ns: u64,
    /// The first tick after the present, or one that is past.
    next_tick: u64,
}

impl Clock {
    pub(crate) fn new(cpus: usize, domains: usize, tick_ns: u64, phase_ns: u64) -> Clock {
        let calendar = Calendar::new(cpus + domains + OTHERS.len());
        Clock { now: 0, calendar, cpus, domains, tick_ns, phase_ns: phase_ns % tick_ns, next_tick: 0 }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Moves on to a time that is not past.
    #[inline]
    pub(crate) fn move_to(&mut self, time: u64) {
        debug_assert!(time >= self.now, "time goes back");
        self.now = time;
    }

    #[inline]
    fn index(&self, source: Source) -> usize {
        let others = self.cpus + self.domains;
        match source {
            Source::Cpu(c) => c,
            Source::Domain(d) => self.cpus + d,
            Source::Devices => others,
            Source::Policy => others + 1,
            Source::Balance => others + 2,
            Source::Heat => others + 3,
            Source::Bins => others + 4,
            Source::Cores => others + 5,
            Source::Limits => others + 6,
            Source::Memory => others + 7,
        }
    }

    /// When a source's event is; [`NEVER`](crate::calendar::NEVER) without one.
    #[inline]
    pub(crate) fn at(&self, source: Source) -> u64 {
        self.calendar.at(self.index(source))
    }

    /// Sets, moves or (with [`NEVER`](crate::calendar::NEVER)) cancels a source's event.
    #[inline]
    pub(crate) fn set(&mut self, source: Source, time: u64) {
        self.calendar.set(self.index(source), time);
    }

    /// The next event's time and source, by number: CPUs come first, in order. [`NEVER`](crate::calendar::NEVER) without one.
    // By number, since most are CPUs' and a source's kind would have to be found out twice.
    #[inline]
    pub(crate) fn next(&self) -> (u64, usize) {
        self.calendar.first()
    }

    /// The source of that number, which is no CPU's.
    #[inline]
    pub(crate) fn other(&self, number: usize) -> Source {
        let domain = number - self.cpus;
        if domain < self.domains { Source::Domain(domain) } else { OTHERS[domain - self.domains] }
    }

    /// The first tick after the present.
    #[inline]
    pub(crate) fn tick(&mut self) -> u64 {
        if self.next_tick <= self.now {
            // Ticks are far apart against events: one division a tick, not one an event.
            let since = self.now + self.tick_ns - self.phase_ns;
            self.next_tick = self.now + self.tick_ns - since % self.tick_ns;
        }
        self.next_tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::NEVER;

    #[test]
    fn every_source_has_a_place_of_its_own() {
        let mut clock = Clock::new(3, 2, 100, 30);
        let all = [0, 1, 2].map(Source::Cpu).into_iter().chain([0, 1].map(Source::Domain)).chain(OTHERS);
        let all: Vec<Source> = all.collect();
        for &source in &all {
            clock.set(source, 7);
            let (time, number) = clock.next();
            let found = if number < 3 { Source::Cpu(number) } else { clock.other(number) };
            assert_eq!((time, found), (7, source));
            assert_eq!(clock.at(source), 7);
            clock.set(source, NEVER);
        }
        assert_eq!(clock.next().0, NEVER);
    }

    #[test]
    fn ticks_keep_their_phase() {
        let mut clock = Clock::new(1, 1, 100, 30);
        assert_eq!(clock.tick(), 30);
        clock.move_to(30);
        assert_eq!(clock.tick(), 130);
        clock.move_to(555);
        assert_eq!(clock.tick(), 630);
    }
}
