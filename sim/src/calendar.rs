//! The calendar: when each source of events will have its next one.
//!
//! Every source (a CPU, a frequency domain, the policy's timer) has at most one event pending, so
//! the calendar is a table of times rather than a heap of events: nothing is ever allocated or left
//! behind to be skipped, and equal times are won by the lower source, which makes the order of
//! events, and with it every result, independent of history.
//!
//! ```text
//!   times   [ row of 8 ][ row of 8 ] ...       set: one store
//!                |            |
//!   firsts  (time, source)(time, source) ...   kept for every row but the stale one
//! ```
//!
//! One event moves its own source several times over (a run ends, the next is timed, a tick comes
//! closer), and hardly ever one far away. So nothing is compared when a time is set; its row is merely
//! *stale*, and looked through once, when the next event is asked for or another row is touched. A row
//! is a cache line and its least time a tournament of seven selects without a branch: which source
//! is next is the one thing that no branch predictor can know.

/// No event.
pub(crate) const NEVER: u64 = u64::MAX;

/// Sources a row.
const ROW: usize = 8;

/// A source and its time.
type Entry = (u64, usize);

/// Times of events, by source.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Padded with [`NEVER`].
    times: Vec<[u64; ROW]>,
    /// Of each row.
    firsts: Vec<Entry>,
    /// The row whose entry in `firsts` may be out of date.
    stale: usize,
}

impl Calendar {
    /// A calendar of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Calendar {
        let rows = sources.div_ceil(ROW).max(1);
        let firsts = (0..rows).map(|r| (NEVER, r * ROW)).collect();
        Calendar { times: vec![[NEVER; ROW]; rows], firsts, stale: 0 }
    }

    /// The time of a source's event.
    #[inline]
    pub(crate) fn at(&self, source: usize) -> u64 {
        self.times[source / ROW][source % ROW]
    }

    /// Sets, moves or (with [`NEVER`]) cancels a source's event.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        let row = source / ROW;
        self.times[row][source % ROW] = time;
        if row != self.stale {
            self.turn_to(row);
        }
    }

    /// Another row becomes the stale one.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, row: usize) {
        self.look_through();
        self.stale = row;
    }

    /// The next event: its time and its source.
    #[inline]
    pub(crate) fn first(&mut self) -> Entry {
        self.look_through();
        let (first, others) = self.firsts.split_first().expect("at least one row");
        others.iter().fold(*first, |a, &b| earlier(a, b))
    }

    /// Brings the stale row's entry up to date.
    #[inline]
    fn look_through(&mut self) {
        let row = &self.times[self.stale];
        let four: [Entry; ROW / 2] =
            std::array::from_fn(|i| earlier((row[2 * i], 2 * i), (row[2 * i + 1], 2 * i + 1)));
        let (time, at) = earlier(earlier(four[0], four[1]), earlier(four[2], four[3]));
        self.firsts[self.stale] = (time, self.stale * ROW + at);
    }
}

/// Of two entries the earlier, the first of equals: sources must come in order.
#[inline]
fn earlier(a: Entry, b: Entry) -> Entry {
    if b.0 < a.0 { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_least_time_then_the_least_source() {
        for n in [1, 2, 3, 15, 16, 17, 100] {
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
                assert!(t == NEVER || s == best, "{n}: {s} for {best}");
            }
        }
    }
}
