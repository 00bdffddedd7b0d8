//! Sets of CPUs, a bit each, and the order in which to search them.

use wattwise_model::machine::{Cpu, MachineModel};

/// A set of CPUs of one machine. Two sets are only ever asked together if they were made for as many CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<u64>);

/// The CPUs of one word that are in all of these.
#[inline]
fn common<const N: usize>(sets: [&CpuSet; N], word: usize) -> u64 {
    sets.iter().fold(u64::MAX, |all, set| all & set.0[word])
}

impl CpuSet {
    /// An empty set, with room for so many CPUs.
    pub fn new(cpus: usize) -> CpuSet {
        CpuSet(vec![0; cpus.div_ceil(64)])
    }

    /// All CPUs but those of a mask; all of them when the mask would leave none.
    pub(crate) fn without(cpus: usize, mask: &[u64]) -> CpuSet {
        let mut set = CpuSet::new(cpus);
        let masked = |c: usize| mask.get(c / 64).is_some_and(|w| w >> (c % 64) & 1 == 1);
        let none_left = (0..cpus).all(masked);
        (0..cpus).filter(|&c| none_left || !masked(c)).for_each(|c| set.insert(c));
        set
    }

    /// Of so many CPUs those that `member` names.
    pub fn of(cpus: usize, member: impl Fn(usize) -> bool) -> CpuSet {
        let mut set = CpuSet::new(cpus);
        (0..cpus).filter(|&c| member(c)).for_each(|c| set.insert(c));
        set
    }

    /// Adds a CPU.
    #[inline]
    pub fn insert(&mut self, c: usize) {
        self.0[c / 64] |= 1 << (c % 64);
    }

    /// Takes a CPU out.
    #[inline]
    pub fn remove(&mut self, c: usize) {
        self.0[c / 64] &= !(1 << (c % 64));
    }

    /// Whether a CPU is in it.
    #[inline]
    pub fn contains(&self, c: usize) -> bool {
        self.0[c / 64] >> (c % 64) & 1 == 1
    }

    /// Whether no CPU is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }

    /// The CPUs that are in both.
    pub(crate) fn and(&self, b: &CpuSet) -> CpuSet {
        CpuSet(self.0.iter().zip(&b.0).map(|(a, b)| a & b).collect())
    }

    /// The lowest CPU that is in both.
    #[inline]
    pub(crate) fn first_common(&self, b: &CpuSet) -> Option<usize> {
        let words = self.0.iter().zip(&b.0).map(|(a, b)| a & b);
        words.enumerate().find_map(|(i, w)| (w != 0).then(|| i * 64 + w.trailing_zeros() as usize))
    }

    /// The lowest CPU that is in all three.
    #[inline]
    pub(crate) fn first_in(&self, b: &CpuSet, c: &CpuSet) -> Option<usize> {
        let words = self.0.iter().zip(&b.0).zip(&c.0).map(|((a, b), c)| a & b & c);
        words.enumerate().find_map(|(i, w)| (w != 0).then(|| i * 64 + w.trailing_zeros() as usize))
    }

    /// How many CPUs.
    pub fn len(&self) -> usize {
        CpuSet::count([self])
    }

    /// How many CPUs are in all of these.
    #[inline]
    pub(crate) fn count<const N: usize>(sets: [&CpuSet; N]) -> usize {
        (0..sets[0].0.len()).map(|i| common(sets, i).count_ones() as usize).sum()
    }

    /// The first CPU from `start` on, wrapping, that is in all of these.
    pub(crate) fn first_from<const N: usize>(sets: [&CpuSet; N], start: usize) -> Option<usize> {
        let words = sets[0].0.len();
        let (at, bit) = if start / 64 < words { (start / 64, start % 64) } else { (0, 0) };
        let cpu = |i: usize, w: u64| (w != 0).then(|| i * 64 + w.trailing_zeros() as usize);
        // The first word's low bits come last.
        let high = cpu(at, common(sets, at) & (u64::MAX << bit));
        high.or_else(|| (1..=words).map(|i| (at + i) % words).find_map(|i| cpu(i, common(sets, i))))
    }

    /// How many CPUs that are in both lie from `start` to `last`, wrapping, `last` included.
    pub(crate) fn steps(&self, b: &CpuSet, start: usize, last: usize) -> usize {
        // CPUs below a number.
        let below = |c: usize| {
            let whole = self.0.iter().zip(&b.0).take(c / 64).map(|(a, b)| (a & b).count_ones() as usize);
            let rest = (1u64 << (c % 64)) - 1;
            let part = self.0.get(c / 64).map_or(0, |a| (a & b.0[c / 64] & rest).count_ones() as usize);
            whole.sum::<usize>() + part
        };
        let (from, to) = (below(start), below(last + 1));
        if last >= start { to - from } else { CpuSet::count([self, b]) - from + to }
    }

    /// Its CPUs, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.iter_masked(|_| u64::MAX)
    }

    /// 64 of its CPUs, a bit each.
    #[inline]
    pub(crate) fn word(&self, i: usize) -> u64 {
        self.0[i]
    }

    /// Those of its CPUs, in order, that a mask leaves of each word.
    pub(crate) fn iter_masked<'s>(
        &'s self,
        mask: impl Fn(usize) -> u64 + 's,
    ) -> impl Iterator<Item = usize> + 's {
        self.0.iter().enumerate().flat_map(move |(i, &w)| {
            let mut left = w & mask(i);
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(i * 64 + bit)
            })
        })
    }
}

/// For each package the sets to search for an idle CPU, best first: its own cores by capacity, then
/// the other packages'.
pub(crate) fn search_order(m: &MachineModel) -> Vec<Vec<CpuSet>> {
    let speed = |k: u8| {
        let kind = &m.kinds[usize::from(k)];
        kind.levels[0].cycles_per_ns * kind.ipc
    };
    let mut kinds: Vec<u8> = (0..m.kinds.len() as u8).collect();
    kinds.sort_by(|&a, &b| speed(b).total_cmp(&speed(a)));
    let set = |p: usize, k: u8| {
        let mut s = CpuSet::new(m.cpus.len());
        let member = |c: &Cpu| usize::from(c.package) == p && c.kind == k;
        (0..m.cpus.len()).filter(|&c| member(&m.cpus[c])).for_each(|c| s.insert(c));
        s
    };
    (0..m.packages.len())
        .map(|own| {
            let others = (0..m.packages.len()).filter(|&p| p != own);
            std::iter::once(own)
                .chain(others)
                .flat_map(|p| kinds.iter().map(move |&k| (p, k)))
                .map(|(p, k)| set(p, k))
                .filter(|s| !s.is_empty())
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_wraps_and_counts_what_it_passes() {
        let cpus = 150;
        let all = CpuSet::of(cpus, |_| true);
        let threes = CpuSet::of(cpus, |c| c % 3 == 0);
        let twenties = CpuSet::of(cpus, |c| c % 20 == 0);
        for start in 0..=cpus {
            let naive = (start..cpus).chain(0..start).find(|c| c % 60 == 0);
            assert_eq!(CpuSet::first_from([&threes, &twenties, &all], start), naive, "{start}");
            let last = naive.expect("0 is one");
            let passed = (start..cpus).chain(0..start).take_while(|&c| c != last).filter(|c| c % 3 == 0);
            assert_eq!(threes.steps(&all, start, last), passed.count() + 1, "{start}");
        }
        assert_eq!(CpuSet::first_from([&threes, &CpuSet::new(cpus), &all], 7), None);
        assert_eq!(CpuSet::count([&threes, &twenties]), 3);
    }
}
