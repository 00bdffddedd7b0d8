//! The tasks that sleep on a CPU's timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The tasks that sleep on a CPU's timers: a few in slots, in no order, and the rest in a heap. Most CPUs have few.
/// Where one belongs among those cannot be foreseen; the first of eight numbers is found without a branch.
// In this order: the first is asked for at every event of its CPU, and ends the cache line of what else is.
#[repr(C)]
pub(crate) struct Timers {
    /// The first; [`Timer::NONE`] without any.
    first: Timer,
    slots: [Timer; Timers::SLOTS],
    /// Those for which there was no slot.
    more: BinaryHeap<Reverse<Timer>>,
    /// A bit for each slot without a timer.
    free: u8,
}

/// When a timer fires, whose it is, and in which slot it is kept: one number, the least is the first to fire and of
/// those at the same time the one of the lowest task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer(u128);

impl Timer {
    /// Never fires.
    const NONE: Timer = Timer(u128::MAX);

    #[inline(always)]
    fn new(at: u64, t: u32, slot: u32) -> Timer {
        Timer(u128::from(at) << 64 | u128::from(t) << 32 | u128::from(slot))
    }

    #[inline(always)]
    fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline(always)]
    fn task(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn slot(self) -> usize {
        self.0 as u32 as usize
    }
}

impl Timers {
    const SLOTS: usize = 8;

    pub(crate) fn new() -> Timers {
        let slots = [Timer::NONE; Timers::SLOTS];
        Timers { first: Timer::NONE, slots, free: u8::MAX, more: BinaryHeap::new() }
    }

    /// When the first one fires; [`NEVER`](crate::calendar::NEVER) without any.
    #[inline]
    pub(crate) fn first_at(&self) -> u64 {
        self.first.at()
    }

    #[inline]
    pub(crate) fn push(&mut self, at: u64, t: u32) {
        // `SLOTS` when none is free.
        let slot = self.free.trailing_zeros();
        let timer = Timer::new(at, t, slot);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = timer,
            None => self.more.push(Reverse(timer)),
        }
        self.free &= self.free.wrapping_sub(1);
        self.first = self.first.min(timer);
    }

    /// The task whose timer is the first of those that are due.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<u32> {
        if self.first.at() > now {
            return None;
        }
        let due = self.first;
        match self.slots.get_mut(due.slot()) {
            Some(place) => {
                *place = Timer::NONE;
                self.free |= 1 << due.slot();
            }
            None => _ = self.more.pop(),
        }
        // In pairs and pairs of pairs: one after the other, each would wait for the one before.
        let pair = |i: usize| self.slots[i].min(self.slots[i + 1]);
        self.first = pair(0).min(pair(2)).min(pair(4).min(pair(6)));
        if let Some(Reverse(next)) = self.more.peek() {
            self.first = self.first.min(*next);
        }
        Some(due.task())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::NEVER;

    #[test]
    fn timers_fire_in_order_of_time_then_task() {
        let mut timers = Timers::new();
        let mut plain: Vec<(u64, u32)> = Vec::new();
        let mut x = 88172645463325252u64;
        let mut now = 0;
        for t in 0..20_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let (at, t) = (now + x % 512, t % 97);
            timers.push(at, t);
            plain.push((at, t));
            // From none to some forty timers at once and back.
            now += (x >> 20) % 16 * u64::from(t % 50 < 25);
            plain.sort_unstable();
            while let Some(t) = timers.pop_due(now) {
                let first = plain.remove(0);
                assert!(first.0 <= now);
                assert_eq!(t, first.1);
            }
            assert_eq!(timers.first_at(), plain.first().map_or(NEVER, |p| p.0));
        }
    }
}
