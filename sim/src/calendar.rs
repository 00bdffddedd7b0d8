//! The calendar: when each source of events will have its next one.
//!
//! Every source (a CPU, a frequency domain, the policy's timer) has at most one event pending, so
//! the calendar is a tournament tree over the sources rather than a heap of events: moving or
//! cancelling an event costs the same log2(n) comparisons as setting one, nothing is ever allocated
//! or left behind to be skipped, and equal times are won by the lower source, which makes the order
//! of events, and with it every result, independent of history.

/// No event.
pub(crate) const NEVER: u64 = u64::MAX;

/// A tournament tree of times.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Time of each source's event; padded with [`NEVER`] to a power of two.
    times: Vec<u64>,
    /// Winner below each inner node; node 1 is the root, node `i` has children `2i` and `2i + 1`.
    winners: Vec<u32>,
}

impl Calendar {
    /// A calendar of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Calendar {
        let leaves = sources.next_power_of_two().max(2);
        let mut winners = vec![0; leaves];
        for node in (1..leaves).rev() {
            let child = 2 * node;
            winners[node] = if child >= leaves { (child - leaves) as u32 } else { winners[child] };
        }
        Calendar { times: vec![NEVER; leaves], winners }
    }

    /// The time of a source's event.
    #[inline]
    pub(crate) fn at(&self, source: usize) -> u64 {
        self.times[source]
    }

    /// Sets, moves or (with [`NEVER`]) cancels a source's event.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        if self.times[source] == time {
            return;
        }
        self.times[source] = time;
        let leaves = self.times.len();
        // The lowest inner node compares two leaves; from there up, two winners.
        let mut node = (source + leaves) / 2;
        let (left, right) = (source & !1, source | 1);
        let mut winner = if self.times[left] <= self.times[right] { left } else { right } as u32;
        self.winners[node] = winner;
        while node > 1 {
            let other = self.winners[node ^ 1];
            // Sources of an even node are lower than those of its odd sibling: they win a tie.
            let (l, r) = if node & 1 == 0 { (winner, other) } else { (other, winner) };
            winner = if self.times[l as usize] <= self.times[r as usize] { l } else { r };
            node /= 2;
            self.winners[node] = winner;
        }
    }

    /// The next event: its time and its source.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let source = self.winners[1] as usize;
        (self.times[source], source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_least_time_then_the_least_source() {
        for n in [1, 2, 3, 7, 8, 100] {
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
