//! Sets of CPUs, a bit each, and the order in which to search them.

use wattwise_model::machine::{Cpu, Machine};

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuSet(Vec<u64>);

impl CpuSet {
    pub(crate) fn new(cpus: usize) -> CpuSet {
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

    #[inline]
    pub(crate) fn insert(&mut self, c: usize) {
        self.0[c / 64] |= 1 << (c % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, c: usize) {
        self.0[c / 64] &= !(1 << (c % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, c: usize) -> bool {
        self.0[c / 64] >> (c % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &w)| {
            let mut left = w;
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
pub(crate) fn search_order(m: &Machine) -> Vec<Vec<CpuSet>> {
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
