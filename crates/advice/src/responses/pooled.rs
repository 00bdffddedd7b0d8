//! The responses of one kind over the floor, under a policy and under the reference policy, in all replicas together.
//!
//! Of the m largest x = max(r, floor) on each side only those over the floor are kept; the others are the floor itself.

use super::Waits;
use super::kinds::EpisodeKinds;

/// A figure that two policies are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PooledFigure {
    /// The mean of the m largest.
    Mean,
    /// Their 95th percentile.
    P95,
}

/// All of them.
pub(super) const FIGURES: [PooledFigure; 2] = [PooledFigure::Mean, PooledFigure::P95];

/// One policy's responses over the floor.
pub(super) struct PooledSide {
    /// Response in s and its replica, the longest first.
    long: Vec<(f64, u32)>,
    /// Their number and sum in each replica.
    count: Vec<u64>,
    sum_s: Vec<f64>,
}

impl PooledSide {
    pub(super) fn new(
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
        let (mut passed, mut found) = (0, [floor_s; 2]);
        for (s, replica) in &self.long {
            let next = passed + u64::from(weights[*replica as usize]);
            for (k, found) in found.iter_mut().enumerate() {
                if (passed..next).contains(&(upper + k as u64)) {
                    *found = *s;
                }
            }
            passed = next;
            if passed > upper + 1 {
                break;
            }
        }
        found[0] + (found[1] - found[0]) * share
    }
}

/// Both policies' responses of one kind.
pub(super) struct ResponsePair {
    own: PooledSide,
    reference: PooledSide,
    floor_s: f64,
}

impl ResponsePair {
    pub(super) fn new(own: PooledSide, reference: PooledSide, floor_us: u32) -> ResponsePair {
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
    pub(super) fn most(&self) -> u64 {
        self.most_of(&self.ones())
    }

    fn waiting_of(&self, weights: &[u32]) -> (f64, f64) {
        let m = self.most_of(weights);
        (self.own.noticed_s(weights, m, self.floor_s), self.reference.noticed_s(weights, m, self.floor_s))
    }

    /// Noticed waiting under the policy and under the reference policy, in s.
    pub(super) fn waiting(&self) -> (f64, f64) {
        self.waiting_of(&self.ones())
    }

    fn replica(&self, number: usize) -> Vec<u32> {
        let mut weights = vec![0; self.replicas()];
        weights[number] = 1;
        weights
    }

    /// Noticed waiting in each replica, in s, and its ratio to the reference policy's.
    pub(super) fn waiting_by_replica(&self) -> Vec<(f64, f64)> {
        let one = |r| {
            let (own, reference) = self.waiting_of(&self.replica(r));
            (own, if reference > 0.0 { own / reference } else { 1.0 })
        };
        (0..self.replicas()).map(one).collect()
    }

    /// A figure's ratio to the reference policy's, where each replica counts as often as its weight says.
    pub(super) fn ratio(&self, figure: PooledFigure, weights: &[u32]) -> f64 {
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
    pub(super) fn pooled(&self, figure: PooledFigure) -> f64 {
        self.ratio(figure, &self.ones())
    }

    /// A figure's ratio in each replica by itself.
    pub(super) fn by_replica(&self, figure: PooledFigure) -> Vec<f64> {
        (0..self.replicas()).map(|r| self.ratio(figure, &self.replica(r))).collect()
    }
}
