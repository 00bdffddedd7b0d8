//! What waits for a CPU, and what the scheduler knows of a task.

use crate::NONE;
use std::collections::VecDeque;

/// A task as the scheduler knows it: one cache line.
#[repr(align(64))]
pub(super) struct Entity {
    /// CPU of its last run, and of its timers.
    pub(super) cpu: u32,
    /// CPU of its next run as recorded.
    pub(super) hint: u32,
    /// When that run began as recorded, in ns.
    pub(super) order: u64,
    /// Fair share: weighted run time.
    pub(super) vruntime: u64,
    /// `1024 * 1024 / weight`: weighted run time per 1024 ns.
    inverse_weight: u32,
    pub(super) realtime: bool,
    /// It waits with the real-time tasks, before all others.
    pub(super) goes_first: bool,
    /// When it was queued.
    pub(super) queued_at: u64,
    /// How long it has run, and when it was last seen to run, in ns.
    pub(super) ran_ns: u64,
    pub(super) ran_at: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Entity>() == 64 && size_of::<Queue>() == 64);

impl Entity {
    pub(super) fn new(cpu: u32, nice: i8, realtime: bool, goes_first: bool) -> Entity {
        Entity {
            cpu,
            hint: NONE,
            order: 0,
            vruntime: 0,
            inverse_weight: inverse_weight(nice),
            realtime,
            goes_first,
            queued_at: 0,
            ran_ns: 0,
            ran_at: 0,
        }
    }

    /// Charges it for time it ran.
    #[inline]
    pub(super) fn charge(&mut self, ran_ns: u64, now: u64) {
        self.ran_ns += ran_ns;
        self.ran_at = now;
        self.vruntime += ran_ns * u64::from(self.inverse_weight) / 1024;
    }

    /// 1024 for one of nice level 0.
    pub(super) fn weight(&self) -> u64 {
        1024 * 1024 / u64::from(self.inverse_weight.max(1))
    }
}

/// CPU shares halve about every three nice levels: 1.25 times less each, as POSIX systems do it.
fn inverse_weight(nice: i8) -> u32 {
    let mut weight = 1024.0f64;
    for _ in 0..nice.unsigned_abs().min(20) {
        weight = if nice > 0 { weight / 1.25 } else { weight * 1.25 };
    }
    (1024.0 * 1024.0 / weight) as u32
}

/// Tasks that wait for one CPU: one cache line, beside the list itself.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Queue {
    pub(super) fair: VecDeque<u32>,
    pub(super) realtime: Realtime,
    /// The queue's clock: virtual time of the task that is furthest behind, never goes back.
    pub(super) clock: u64,
    /// When the running task was last charged.
    pub(super) charged_at: u64,
    /// Time charged so far, in ns.
    pub(super) busy_ns: u64,
}

/// Real-time tasks in order of arrival. Most CPUs never have one: nothing is kept for them until then.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "a queue's cache line has room for a pointer")]
pub(super) struct Realtime(Option<Box<VecDeque<u32>>>);

impl Realtime {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tasks| tasks.len())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &u32> {
        self.0.iter().flat_map(|tasks| tasks.iter())
    }

    pub(super) fn push_back(&mut self, t: u32) {
        self.0.get_or_insert_default().push_back(t);
    }

    pub(super) fn push_front(&mut self, t: u32) {
        self.0.get_or_insert_default().push_front(t);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<u32> {
        self.0.as_mut()?.pop_front()
    }
}

impl Queue {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.realtime.len() + self.fair.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.fair.is_empty() && self.realtime.is_empty()
    }
}
