//! The clock of a frequency domain: the level in force, and changes of it.
//!
//! A request takes effect after the hardware's delay, then the domain's cores stand still for the stall of that pair
//! of speeds. What is in force is the slowest of the granted level, the boost limit of the package's awake cores, the
//! power limit and the heat limit; the last three act at once and cost nothing, as they do in hardware.

use wattwise_model::machine::{Domain, MachineModel, Overlap};

/// What a domain's clock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// Asked for, old speed in force.
    Delay,
    /// Standing still until this time.
    Stall(u64),
}

/// What a request, or the end of a delay or a stall, leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// Nothing for now.
    Rests,
    /// The domain's next event is then.
    Due(u64),
    /// Its cores stand still until then.
    Stalls(u64),
    /// The speed is granted. `stood_still`: its cores go on. `next`: a request that had to wait for this.
    Granted {
        /// Its cores did not execute until now.
        stood_still: bool,
        /// What to request now.
        next: Option<usize>,
    },
}

/// A frequency domain.
pub(super) struct DomainClock {
    level: usize,
    granted: usize,
    target: usize,
    pending: Option<usize>,
    change: Change,
    pub(super) boost_cap: usize,
    pub(super) power_cap: usize,
    pub(super) hot: bool,
    slowest: usize,
    /// Time of a cycle at each level, of one at the fastest.
    slowness: Vec<f64>,
    /// Its highest speed, of 1024 of the strongest core's, as the scheduler takes it.
    capacity: u64,
    pub(super) transitions: u64,
}

impl DomainClock {
    pub(super) fn new(d: &Domain, m: &MachineModel, khz: u32) -> DomainClock {
        let levels = &m.kinds[usize::from(d.kind)].levels;
        let level = match khz {
            0 => 0,
            _ => levels.iter().rposition(|l| l.khz >= khz).unwrap_or(0),
        };
        DomainClock {
            level,
            granted: level,
            target: level,
            pending: None,
            change: Change::None,
            boost_cap: 0,
            power_cap: 0,
            hot: false,
            slowest: levels.len() - 1,
            slowness: levels.iter().map(|l| levels[0].cycles_per_ns / l.cycles_per_ns).collect(),
            capacity: u64::from(m.scheduler_capacity(usize::from(d.kind))),
            transitions: 0,
        }
    }

    /// The level in force.
    #[inline]
    pub(super) fn level(&self) -> usize {
        self.level
    }

    #[inline]
    pub(super) fn stalled(&self) -> bool {
        matches!(self.change, Change::Stall(_))
    }

    #[inline]
    pub(super) fn stalled_until(&self) -> u64 {
        if let Change::Stall(until) = self.change { until } else { 0 }
    }

    #[inline]
    pub(super) fn slowness(&self) -> f64 {
        self.slowness[self.level]
    }

    /// Speed in force, of 1024 of the strongest core's highest.
    #[inline]
    pub(super) fn pace(&self) -> u64 {
        ((1024.0 / self.slowness[self.level]) as u64 * self.capacity) >> 10
    }

    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The level that was asked for last.
    pub(super) fn requested(&self) -> usize {
        self.pending.unwrap_or(self.target)
    }

    /// The level that it is changing to, or has.
    pub(super) fn target(&self) -> usize {
        self.target
    }

    /// Grants a level without a change.
    pub(super) fn adopt(&mut self, level: usize) {
        (self.granted, self.target) = (level, level);
    }

    /// The level that it would have with no limit of power or heat.
    pub(super) fn uncapped(&self) -> usize {
        self.granted.max(self.boost_cap)
    }

    /// Brings the level in force in line with what is granted and allowed; the new one, if that is another.
    pub(super) fn settle_level(&mut self) -> Option<usize> {
        let level = if self.hot { self.slowest } else { self.uncapped().max(self.power_cap) };
        (std::mem::replace(&mut self.level, level) != level).then_some(level)
    }

    /// Asks for a level.
    pub(super) fn request(&mut self, now: u64, model: &Domain, level: usize) -> Transition {
        let delay_ns = model.transition.delay_ns;
        match self.change {
            Change::None if level == self.granted => Transition::Rests,
            Change::None => {
                self.target = level;
                if delay_ns == 0 {
                    return self.begin_stall(now, model);
                }
                self.change = Change::Delay;
                Transition::Due(now + delay_ns)
            }
            Change::Delay if model.transition.overlap == Overlap::Preempt => {
                self.target = level;
                Transition::Due(now + delay_ns)
            }
            Change::Delay | Change::Stall(_) => {
                self.pending = (level != self.target).then_some(level);
                Transition::Rests
            }
        }
    }

    /// Its delay or stall is over.
    pub(super) fn due(&mut self, now: u64, model: &Domain) -> Transition {
        match self.change {
            Change::None => Transition::Rests,
            Change::Delay => self.begin_stall(now, model),
            Change::Stall(_) => self.grant(),
        }
    }

    /// The domain's cores stand still while its clock changes.
    fn begin_stall(&mut self, now: u64, model: &Domain) -> Transition {
        let stall_ns = model.transition.stall_ns[self.granted * (self.slowest + 1) + self.target];
        if stall_ns == 0 || self.target == self.granted {
            return self.grant();
        }
        self.change = Change::Stall(now + stall_ns);
        Transition::Stalls(now + stall_ns)
    }

    /// The change is over.
    fn grant(&mut self) -> Transition {
        let stood_still = self.stalled();
        self.change = Change::None;
        self.transitions += u64::from(self.granted != self.target);
        self.granted = self.target;
        Transition::Granted { stood_still, next: self.pending.take() }
    }
}
