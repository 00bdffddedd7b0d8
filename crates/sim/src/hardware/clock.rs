//! The clock of a frequency domain: the level in force, and changes of it.
//!
//! A request takes effect after the hardware's delay, then the domain's cores stand still for the stall of that pair
//! of speeds. What is in force is the slowest of the granted level, the boost limit of the package's awake cores, the
//! power limit and the heat limit; the last three act at once and cost nothing, as they do in hardware.

use wattwise_model::machine::{Domain, MachineModel, Overlap};

/// What a domain's clock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockChange {
    None,
    /// Asked for, old speed in force.
    Delay,
    /// Standing still until this time.
    Stall(u64),
}

/// What a request, or the end of a delay or a stall, leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockTransition {
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

/// Some of a domain's levels, a bit each; the last bit stands for all from there on.
#[derive(Clone, Copy)]
pub(super) struct LevelSet(u64);

impl LevelSet {
    const ALL: LevelSet = LevelSet(u64::MAX);
    const LAST: usize = u64::BITS as usize - 1;

    fn one(level: usize) -> LevelSet {
        LevelSet(1 << level.min(LevelSet::LAST))
    }

    /// Those of the first `levels` that are in it.
    pub(super) fn of(self, levels: usize) -> impl Iterator<Item = usize> {
        (0..levels).filter(move |&level| self.0 & LevelSet::one(level).0 != 0)
    }
}

/// A frequency domain.
pub(super) struct DomainClock {
    level: usize,
    /// The levels that were in force since they were last taken.
    used: LevelSet,
    granted: usize,
    target: usize,
    pending: Option<usize>,
    change: ClockChange,
    pub(super) boost_cap: usize,
    pub(super) power_cap: usize,
    pub(super) hot: bool,
    slowest: usize,
    /// Time of a cycle at each level, of one at the fastest.
    slowness: Vec<f64>,
    /// Its highest speed, of 1024 of the strongest core's, as the scheduler takes it.
    capacity: u64,
    /// How the load of a busy CPU grows at each level, as the scheduler takes it: up to `capacity`.
    pace: Vec<u16>,
    pub(super) transitions: u64,
}

impl DomainClock {
    pub(super) fn new(d: &Domain, m: &MachineModel, khz: u32) -> DomainClock {
        let kind = &m.kinds[usize::from(d.kind)];
        let levels = &kind.levels;
        let capacity = m.scheduler_capacity(usize::from(d.kind));
        let level = match khz {
            0 => 0,
            _ => levels.iter().rposition(|l| l.khz >= khz).unwrap_or(0),
        };
        DomainClock {
            level,
            used: LevelSet::ALL,
            granted: level,
            target: level,
            pending: None,
            change: ClockChange::None,
            boost_cap: 0,
            power_cap: 0,
            hot: false,
            slowest: levels.len() - 1,
            slowness: levels.iter().map(|l| levels[0].cycles_per_ns / l.cycles_per_ns).collect(),
            capacity: u64::from(capacity),
            pace: levels.iter().map(|l| (kind.load_share(l) * f64::from(capacity)) as u16).collect(),
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
        matches!(self.change, ClockChange::Stall(_))
    }

    #[inline]
    pub(super) fn stalled_until(&self) -> u64 {
        if let ClockChange::Stall(until) = self.change { until } else { 0 }
    }

    #[inline]
    pub(super) fn slowness(&self) -> f64 {
        self.slowness[self.level]
    }

    /// How fast the load of a busy CPU grows, of 1024 of the strongest core's.
    #[inline]
    pub(super) fn pace(&self) -> u64 {
        u64::from(self.pace[self.level])
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
        self.used.0 |= LevelSet::one(level).0;
        (std::mem::replace(&mut self.level, level) != level).then_some(level)
    }

    /// The levels that were in force since the last call, the present one among them; at first all.
    pub(super) fn take_used(&mut self) -> LevelSet {
        std::mem::replace(&mut self.used, LevelSet::one(self.level))
    }

    /// Asks for a level.
    pub(super) fn request(&mut self, now: u64, model: &Domain, level: usize) -> ClockTransition {
        let delay_ns = model.transition.delay_ns;
        match self.change {
            ClockChange::None if level == self.granted => ClockTransition::Rests,
            ClockChange::None => {
                self.target = level;
                if delay_ns == 0 {
                    return self.begin_stall(now, model);
                }
                self.change = ClockChange::Delay;
                ClockTransition::Due(now + delay_ns)
            }
            ClockChange::Delay if model.transition.overlap == Overlap::Preempt => {
                self.target = level;
                ClockTransition::Due(now + delay_ns)
            }
            ClockChange::Delay | ClockChange::Stall(_) => {
                self.pending = (level != self.target).then_some(level);
                ClockTransition::Rests
            }
        }
    }

    /// Its delay or stall is over.
    pub(super) fn due(&mut self, now: u64, model: &Domain) -> ClockTransition {
        match self.change {
            ClockChange::None => ClockTransition::Rests,
            ClockChange::Delay => self.begin_stall(now, model),
            ClockChange::Stall(_) => self.grant(),
        }
    }

    /// The domain's cores stand still while its clock changes.
    fn begin_stall(&mut self, now: u64, model: &Domain) -> ClockTransition {
        let stall_ns = model.transition.stall_ns[self.granted * (self.slowest + 1) + self.target];
        if stall_ns == 0 || self.target == self.granted {
            return self.grant();
        }
        self.change = ClockChange::Stall(now + stall_ns);
        ClockTransition::Stalls(now + stall_ns)
    }

    /// The change is over.
    fn grant(&mut self) -> ClockTransition {
        let stood_still = self.stalled();
        self.change = ClockChange::None;
        self.transitions += u64::from(self.granted != self.target);
        self.granted = self.target;
        ClockTransition::Granted { stood_still, next: self.pending.take() }
    }
}

#[cfg(test)]
mod tests {
    use super::LevelSet;

    /// The last bit stands for all levels from there on.
    #[test]
    fn a_set_of_levels_loses_none() {
        let of = |level: usize| LevelSet::one(level).of(70).collect::<Vec<_>>();
        assert_eq!(of(5), [5]);
        assert_eq!(of(62), [62]);
        assert_eq!(of(69), (63..70).collect::<Vec<_>>());
        assert_eq!(LevelSet::ALL.of(70).count(), 70);
    }
}
