//! The responses of one kind over the floor, under a policy and under the reference policy, in all replicas together.
//!
//! Of the m largest x = max(r, floor) on each side only those over the floor are kept; the others are the floor itself.

use crate::Waits;
use crate::kinds::EpisodeKinds;

/// A figure that two policies are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PooledFigure {
    /// The mean of the m largest.
    Mean,
    /// Their 95th percentile.
    P95,
}

/// All of them.
pub(crate) const FIGURES: [PooledFigure; 2] = [PooledFigure::Mean, PooledFigure::P95];

/// One policy's responses over the floor.
pub(crate) struct PooledSide {
    /// Response in s and its replica, the longest first.
    long: Vec<(f64, u32)>,
    /// Their number and sum in each replica.
    count: Vec<u64>,
    sum_s: Vec<f64>,
}

impl PooledSide {
    pub(crate) fn new(
        waits: &[&Waits],
        kinds: &EpisodeKinds,
        at: Option<usize>,
        floor_us: u32,
    ) -> PooledSide {
        let mut side =
            PooledSide { long: Vec::new(), count: vec![0; waits.len()], sum_s: vec![0.0; waits.len()] };
        for (replica, waits) in waits.iter().enumerate() {
            for k in waits.kinds.iter().filter(|k| kinds.has(at, k.kind)) {
                for us in k.long_us.iter().take_while(|us| **us > floor_us) {
                    let s = f64::from(*us) * 1e-6;
                    side.long.push((s, replica as u32));
                    side.count[replica] += 1;
                    side.sum_s[replica] += s;
                }
            }
        }
        side.long.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        side
    }

    fn count(&self, weights: &[u32]) -> u64 {
        self.count.iter().zip(weights).map(|(n, w)| n * u64::from(*w)).sum()
    }

    /// The sum of the `m` largest.
    fn noticed_s(&self, weights: &[u32], m: u64, floor_s: f64) -> f64 {
        let sum: f64 = self.sum_s.iter().zip(weights).map(|(s, w)| s * f64::from(*w)).sum();
        sum + (m - self.count(weights)) as f64 * floor_s
    }

    /// The 95th percentile of the `m` largest, between neighbours in proportion.
    fn p95_s(&self, weights: &[u32], m: u64, floor_s: f64) -> f64 {
        let at = 0.05 * m.saturating_sub(1) as f64;
        let (upper, share) = (at as u64, at.fract());
        let (mut passed, mut found) = (0, None);
        for (s, replica) in &self.long {
            passed += u64::from(weights[*replica as usize]);
            if passed > upper + 1 {
                let found = found.unwrap_or(*s);
                return found + (*s - found) * share;
            }
            if passed > upper && found.is_none() {
                found = Some(*s);
            }
        }
        let found = found.unwrap_or(floor_s);
        found + (floor_s - found) * share
    }
}

/// Both policies' responses of one kind.
pub(crate) struct ResponsePair {
    own: PooledSide,
    reference: PooledSide,
    floor_s: f64,
}

impl ResponsePair {
    pub(crate) fn new(own: PooledSide, reference: PooledSide, floor_us: u32) -> ResponsePair {
        ResponsePair { own, reference, floor_s: f64::from(floor_us) * 1e-6 }
    }

    fn replicas(&self) -> usize {
        self.own.count.len()
    }

    fn ones(&self) -> Vec<u32> {
        vec![1; self.replicas()]
    }

    fn most_of(&self, weights: &[u32]) -> u64 {
        self.own.count(weights).max(self.reference.count(weights))
    }

    /// The larger number of responses over the floor.
    pub(crate) fn most(&self) -> u64 {
        self.most_of(&self.ones())
    }

    fn waiting_of(&self, weights: &[u32]) -> (f64, f64) {
        let m = self.most_of(weights);
        (self.own.noticed_s(weights, m, self.floor_s), self.reference.noticed_s(weights, m, self.floor_s))
    }

    /// Noticed waiting under the policy and under the reference policy, in s.
    pub(crate) fn waiting(&self) -> (f64, f64) {
        self.waiting_of(&self.ones())
    }

    fn replica(&self, number: usize) -> Vec<u32> {
        let mut weights = vec![0; self.replicas()];
        weights[number] = 1;
        weights
    }

    /// Noticed waiting in each replica, in s, and its ratio to the reference policy's.
    pub(crate) fn waiting_by_replica(&self) -> Vec<(f64, f64)> {
        let one = |r| {
            let (own, reference) = self.waiting_of(&self.replica(r));
            (own, if reference > 0.0 { own / reference } else { 1.0 })
        };
        (0..self.replicas()).map(one).collect()
    }

    /// A figure's ratio to the reference policy's, where each replica counts as often as its weight says.
    pub(crate) fn ratio(&self, figure: PooledFigure, weights: &[u32]) -> f64 {
        let m = self.most_of(weights);
        if m == 0 {
            return 1.0;
        }
        let of = |side: &PooledSide| match figure {
            PooledFigure::Mean => side.noticed_s(weights, m, self.floor_s),
            PooledFigure::P95 => side.p95_s(weights, m, self.floor_s),
        };
        of(&self.own) / of(&self.reference)
    }

    /// A figure's ratio over all replicas together.
    pub(crate) fn pooled(&self, figure: PooledFigure) -> f64 {
        self.ratio(figure, &self.ones())
    }

    /// A figure's ratio in each replica by itself.
    pub(crate) fn by_replica(&self, figure: PooledFigure) -> Vec<f64> {
        (0..self.replicas()).map(|r| self.ratio(figure, &self.replica(r))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A floor of 5 ms: 6 to 25 ms in the first replica, 100 ms in the second.
    fn side() -> PooledSide {
        let mut long: Vec<(f64, u32)> = (6..=25).rev().map(|ms| (f64::from(ms) * 1e-3, 0)).collect();
        long.insert(0, (0.1, 1));
        PooledSide { long, count: vec![20, 1], sum_s: vec![0.310, 0.1] }
    }

    fn p95_ms(weights: [u32; 2], m: u64) -> f64 {
        (side().p95_s(&weights, m, 0.005) * 1e9).round() * 1e-6
    }

    /// Of 21 the second is at 5 %; of 11 half of the way from the first to the second, of 41 the third.
    #[test]
    fn the_percentile_lies_between_neighbours_by_hand() {
        assert_eq!(p95_ms([1, 1], 21), 25.0);
        assert_eq!(p95_ms([1, 1], 11), 62.5);
        assert_eq!(p95_ms([1, 1], 41), 24.0);
    }

    /// A replica that is drawn thrice counts thrice, one that is not drawn not at all; what is missing is the floor.
    #[test]
    fn weights_count_replicas() {
        assert_eq!(p95_ms([1, 3], 41), 100.0);
        assert_eq!(p95_ms([1, 3], 61), 25.0);
        assert_eq!(p95_ms([1, 0], 21), 24.0);
        // The first is at 5 % of 21, and between it and the floor.
        assert_eq!(p95_ms([0, 1], 21), 5.0);
        assert_eq!(p95_ms([0, 1], 11), 52.5);
        assert_eq!(p95_ms([0, 0], 21), 5.0);
    }

    /// The sum of the m largest: 310 ms and 4 times the floor, or the second replica's too.
    #[test]
    fn noticed_waiting_fills_up_with_the_floor() {
        let noticed_ms = |weights: [u32; 2], m| (side().noticed_s(&weights, m, 0.005) * 1e3).round();
        assert_eq!(noticed_ms([1, 0], 24), 330.0);
        assert_eq!(noticed_ms([1, 2], 24), 520.0);
    }
}
