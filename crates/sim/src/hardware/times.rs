//! Time in states, of which one is running: what accounts of cores, packages and the uncore are made of.

/// Time in states, of which one is running.
#[derive(Clone, Debug)]
pub(super) struct Residency {
    pub(super) times: Box<[u64]>,
    since: u64,
    /// What is left of a C-state's entry, and the slot it is booked on.
    entry_left: u64,
    entry_slot: u32,
    slot: u32,
}

impl Residency {
    pub(super) fn new(slots: usize, slot: usize) -> Residency {
        let slot = slot as u32;
        Residency { times: vec![0; slots].into(), slot, since: 0, entry_left: 0, entry_slot: slot }
    }

    /// The slot that is running.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Books the time since the last booking.
    #[inline]
    pub(super) fn settle(&mut self, now: u64) {
        let mut passed = now - self.since;
        self.since = now;
        if self.entry_left > 0 {
            let entry = passed.min(self.entry_left);
            self.entry_left -= entry;
            self.times[self.entry_slot as usize] += entry;
            passed -= entry;
        }
        self.times[self.slot()] += passed;
    }

    #[inline]
    pub(super) fn open(&mut self, now: u64, slot: usize) {
        self.settle(now);
        self.slot = slot as u32;
        self.entry_left = 0;
    }

    /// Goes on in the slot that is as far after `to` as the present one is after `from`.
    #[inline]
    pub(super) fn shift(&mut self, now: u64, from: usize, to: usize) {
        self.settle(now);
        self.slot = self.slot - from as u32 + to as u32;
        self.entry_slot = self.entry_slot - from as u32 + to as u32;
    }

    /// Opens the slot of a code, of those from `first` on; `entry_ns` has the C-states' entry times.
    #[inline]
    pub(super) fn open_code(&mut self, now: u64, first: usize, code: u8, entry_ns: &[u64]) {
        self.open(now, first + usize::from(code));
        if let Some(&ns) = entry_ns.get(usize::from(code)) {
            self.entry_slot = (first + entry_ns.len()) as u32;
            self.entry_left = ns;
        }
    }
}
