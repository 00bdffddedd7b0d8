//! The calendar: when each source of events will have its next one.
//!
//! Every source (a CPU, a frequency domain, the policy's timer) has at most one event pending, so
//! the calendar is a table of times rather than a heap of events: nothing is ever allocated or left
//! behind to be skipped, and equal times are won by the lower source, which makes the order of
//! events, and with it every result, independent of history.
//!
//! ```text
//!   inner         [ firsts of 8 below ]                  each the least of 8 rows below it
//!                    |             |
//!   leaves     [ row of 8 ] [ open ] [ row of 8 ] ...    the open leaf is kept apart: in the tree it has no event
//!
//!   others     first of the top: the least of all but the open leaf's
//!
//!   entry  | time ............ | source |          one number: the least is the earliest, then the lowest
//! ```
//!
//! One event moves its own source several times over (a run ends, the next is timed, a tick comes
//! closer), and hardly ever one far away. So nothing is compared when a time is set; the leaf it is in is
//! *open*, and looked through once, when the next event is asked for or another leaf is opened. Opening a leaf
//! mends two paths to the top, its own and that of the leaf before: with 224 CPUs three rows each. A row
//! is a cache line and its first entry a minimum of eight numbers, without a branch: which source
//! is next is the one thing that no branch predictor can know.

/// No event.
pub(crate) const NEVER: u64 = u64::MAX;

/// Entries a row.
const ROW: usize = 8;

/// Eight neighbours in the calendar, or the first entries of eight rows below.
type Leaf = [u64; ROW];

/// Times of events, by source.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Entries by source; padded with [`NEVER`], which is no source's entry either.
    leaves: Vec<Leaf>,
    /// The levels above, from the one over the leaves to the top, which is one row; none over a single leaf.
    inner: Vec<Vec<Leaf>>,
    /// The open leaf, and which one it is.
    open: Leaf,
    opened: usize,
    /// The first entry of the leaves that are not open.
    others: u64,
    /// Low bits of an entry that say which source.
    source_bits: u32,
}

/// The first entry of a row.
#[inline]
fn first_of(row: &Leaf) -> u64 {
    // In pairs and pairs of pairs: one after the other, each would wait for the one before.
    let pair = |i: usize| row[i].min(row[i + 1]);
    pair(0).min(pair(2)).min(pair(4).min(pair(6)))
}

impl Calendar {
    /// A calendar of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Calendar {
        let leaves = sources.div_ceil(ROW).max(1);
        let mut inner = Vec::new();
        let mut below = leaves;
        while below > 1 {
            below = below.div_ceil(ROW);
            inner.push(vec![[NEVER; ROW]; below]);
        }
        Calendar {
            leaves: vec![[NEVER; ROW]; leaves],
            inner,
            open: [NEVER; ROW],
            opened: 0,
            others: NEVER,
            source_bits: sources.next_power_of_two().ilog2(),
        }
    }

    /// The time of a source's event.
    #[inline]
    pub(crate) fn at(&self, source: usize) -> u64 {
        let row = if source / ROW == self.opened { &self.open } else { &self.leaves[source / ROW] };
        self.time_of(row[source % ROW])
    }

    /// Sets, moves or (with [`NEVER`]) cancels a source's event.
    ///
    /// A time that leaves no room for the source is as good as never: more than nine years with 64 sources,
    /// 52 days with the 2054 of the largest machine.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        let far = time >= NEVER >> self.source_bits;
        let entry = if far { NEVER } else { time << self.source_bits | source as u64 };
        if source / ROW != self.opened {
            self.open(source / ROW);
        }
        self.open[source % ROW] = entry;
    }

    /// Opens another leaf: puts the old one back, and takes the new one out of the tree.
    #[cold]
    #[inline(never)]
    fn open(&mut self, leaf: usize) {
        self.leaves[self.opened] = self.open;
        // The two paths to the top, up to where they meet; from there on, the new one's.
        let (mut old, mut new) = (self.opened, leaf);
        let (mut first_of_old, mut first_of_new) = (first_of(&self.open), NEVER);
        for level in &mut self.inner {
            if old != new {
                level[old / ROW][old % ROW] = first_of_old;
            }
            level[new / ROW][new % ROW] = first_of_new;
            (old, new) = (old / ROW, new / ROW);
            if old != new {
                first_of_old = first_of(&level[old]);
            }
            first_of_new = first_of(&level[new]);
        }
        self.others = first_of_new;
        self.open = self.leaves[leaf];
        self.opened = leaf;
    }

    /// The next event, its time and its source; [`NEVER`] when there is none.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let first = first_of(&self.open).min(self.others);
        (self.time_of(first), (first & !(NEVER << self.source_bits)) as usize)
    }

    #[inline]
    fn time_of(&self, entry: u64) -> u64 {
        if entry == NEVER { NEVER } else { entry >> self.source_bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_least_time_then_the_least_source() {
        for n in [1, 2, 3, 15, 16, 17, 64, 65, 100, 513] {
            let mut cal = Calendar::new(n);
            let mut plain = vec![NEVER; n];
            let mut x = 88172645463325252u64;
            for _ in 0..5000 {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                let (source, time) =
                    ((x >> 8) as usize % n, if x.is_multiple_of(5) { NEVER } else { x % 16 });
                cal.set(source, time);
                plain[source] = time;
                let best = (0..n).min_by_key(|&s| (plain[s], s)).unwrap();
                let (t, s) = cal.first();
                assert_eq!(t, plain[best]);
                assert_eq!(cal.at(source), time);
                assert!(t == NEVER || s == best, "{n}: {s} for {best}");
            }
        }
    }

    #[test]
    fn the_longest_times_of_the_largest_calendar() {
        let sources = 2054;
        let days = |n: u64| n * 86_400_000_000_000;
        let mut cal = Calendar::new(sources);
        cal.set(sources - 1, days(52));
        assert_eq!(cal.first(), (days(52), sources - 1));
        cal.set(sources - 1, days(53));
        assert_eq!(cal.first().0, NEVER);
        assert_eq!(cal.at(sources - 1), NEVER);
    }
}
