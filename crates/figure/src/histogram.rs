//! Counts of times.

/// Steps an octave, as a power of two.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
/// Slots up to the greatest time.
const SLOTS: usize = (u64::BITS - STEP_BITS + 1) as usize * STEPS;

/// A log-linear histogram of times: 64 steps an octave, so that a quantile is off by less than 1.6 %; fixed size.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; SLOTS], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[Self::slot(ns)] += 1;
        self.total += 1;
        self.max = self.max.max(ns);
    }

    /// Below [`STEPS`] a slot a value; above, the top bits choose it.
    #[inline]
    fn slot(ns: u64) -> usize {
        let octave = (ns | (STEPS as u64 - 1)).ilog2() - (STEP_BITS - 1);
        let step = if octave == 0 { ns } else { (ns >> (octave - 1)) & (STEPS as u64 - 1) };
        octave as usize * STEPS + step as usize
    }

    /// Least value of a slot.
    fn floor(slot: usize) -> u64 {
        match slot / STEPS {
            0 => slot as u64,
            octave => ((STEPS + slot % STEPS) as u64).checked_shl(octave as u32 - 1).unwrap_or(0),
        }
    }

    /// Counts what another has counted, too.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, n) in self.counts.iter_mut().zip(&other.counts) {
            *own += n;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The greatest, exact; 0 when nothing was counted.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The least value that a share `q` of the counts does not exceed: within a slot in proportion to its counts, and never
    /// more than the greatest; 0 when nothing was counted.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = (q * self.total as f64).ceil().max(1.0) as u64;
        if rank >= self.total {
            return self.max;
        }
        let mut seen = 0;
        for (slot, &n) in self.counts.iter().enumerate() {
            if n > 0 && seen + n >= rank {
                // The last slot has no next one below 2^64.
                let (low, next) = (Self::floor(slot), Self::floor(slot + 1));
                let width = next.wrapping_sub(low) as f64;
                let within = (rank - seen) as f64 / n as f64;
                return low.saturating_add((width * within) as u64).min(self.max);
            }
            seen += n;
        }
        0
    }

    /// `(least value, count)` of every slot that has counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(s, n)| (Self::floor(s), *n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_slots_tile_the_numbers() {
        for ns in (0..5000).chain((0..60).map(|i| (1u64 << i) + 3)).chain([u64::MAX]) {
            let slot = Histogram::slot(ns);
            assert!(Histogram::floor(slot) <= ns, "{ns}");
            assert!(slot + 1 == SLOTS || ns < Histogram::floor(slot + 1), "{ns}");
        }
    }

    #[test]
    fn merged_is_as_if_one_had_counted_all() {
        let [mut one, mut other, mut all] = [(); 3].map(|()| Histogram::default());
        for ns in [3, 90, 90, 5_000_000, 17] {
            if ns > 50 { &mut other } else { &mut one }.record(ns);
            all.record(ns);
        }
        one.merge(&other);
        assert_eq!(one, all);
    }

    #[test]
    fn quantiles_are_within_a_slot() {
        let mut h = Histogram::default();
        (1..=1000u64).for_each(|i| h.record(i * 1000));
        for (q, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let got = h.quantile(q) as f64;
            assert!((got / exact - 1.0).abs() < 0.002, "{q}: {got}");
        }
        assert_eq!(h.quantile(1.0), 1_000_000);
        assert_eq!(Histogram::default().quantile(0.5), 0);
        h.record(u64::MAX);
        assert_eq!(h.quantile(1.0), u64::MAX);
    }
}
