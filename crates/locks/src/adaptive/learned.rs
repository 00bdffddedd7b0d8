//! What the waiters of an adaptive lock have learned of its sections: one word.

/// Spins in a row without success from which on they are left out, and one of how many conflicts still tries.
const FUTILE: u32 = 7;
const PROBE: u64 = 16;

/// Goes up and down by one: what happens to few of the conflicts seldom brings it to `EAGER`.
const EAGER_MOST: u32 = 3;
const EAGER: u32 = 2;

/// Heat goes up by two and down by one, so that it takes more than half of the conflicts to reach `HOT`.
const HEAT: u32 = 7;
pub(super) const HOT: u32 = 4;

/// Found free counts three, found taken minus two: it stays high where the lock is free two times in five.
const FOUND: u32 = 7;
const WORTH_IT: u32 = if cfg!(loom) { 0 } else { 4 };

/// Found taken counts one, found free takes off four: it stays there if that is less than one time in five.
pub(super) const BARREN: u32 = if cfg!(loom) { 1 } else { 7 };

/// 25 to 50 us: a wake-up on an idle core takes 5 to 50.
const LATE: u32 = if cfg!(loom) { 1 } else { 2 };

/// What is in `learned`. Updates may be lost between threads, and times wrap (50 ms, 0.8 ms, 13 us): both mislead one
/// wait, not the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Learned {
    pub(super) rotated: u32,
    pub(super) woke: u32,
    pub(super) found: u32,
    pub(super) barren: u32,
    pub(super) acquired: u32,
    pub(super) futile: u32,
    pub(super) eager: u32,
    pub(super) brief: bool,
    pub(super) heat: u32,
}

impl Learned {
    const ROTATED: u32 = 0x3f;
    const WOKE: u32 = 0x1f;
    const ACQUIRED: u32 = 0x3f;

    /// 2^21 ticks are about 0.8 ms. In models, time passes with each look.
    const COARSE: u32 = if cfg!(loom) { 10 } else { 21 };

    /// About 25 us.
    const MEDIUM: u32 = if cfg!(loom) { 4 } else { 16 };

    /// About 100 ns.
    const FINE: u32 = 8;

    pub(super) fn unpack(word: u32) -> Self {
        Learned {
            rotated: word >> 26,
            woke: word >> 21 & Self::WOKE,
            found: word >> 18 & FOUND,
            barren: word >> 15 & BARREN,
            acquired: word >> 9 & Self::ACQUIRED,
            futile: word >> 6 & FUTILE,
            eager: word >> 4 & EAGER_MOST,
            brief: word & 8 != 0,
            heat: word & HEAT,
        }
    }

    pub(super) fn pack(self) -> u32 {
        self.rotated << 26
            | self.woke << 21
            | self.found << 18
            | self.barren << 15
            | self.acquired << 9
            | self.futile << 6
            | self.eager << 4
            | u32::from(self.brief) << 3
            | self.heat
    }

    /// Time as in `rotated`.
    pub(super) fn coarse(ticks: u64) -> u32 {
        (ticks >> Self::COARSE) as u32 & Self::ROTATED
    }

    /// Time as in `woke`.
    pub(super) fn medium(ticks: u64) -> u32 {
        (ticks >> Self::MEDIUM) as u32 & Self::WOKE
    }

    /// Time as in `acquired`.
    pub(super) fn fine(ticks: u64) -> u32 {
        (ticks >> Self::FINE) as u32 & Self::ACQUIRED
    }

    /// Step 8: the last hand-over is an age ago.
    pub(super) fn due(self, now: u64, age: u64) -> bool {
        u64::from(Self::coarse(now).wrapping_sub(self.rotated) & Self::ROTATED) << Self::COARSE >= age
    }

    /// Sections are longer than a spin.
    pub(super) fn long(self) -> bool {
        self.futile == FUTILE
    }

    /// A spin ended without the lock.
    pub(super) fn note_futile(&mut self) {
        self.futile = (self.futile + 1).min(FUTILE);
    }

    /// Step 7: who was woken last has not come in time, and another would probably not come for nothing.
    pub(super) fn late(self, now: impl FnOnce() -> u64) -> bool {
        let worth_it = if self.long() { self.barren < BARREN } else { self.found >= WORTH_IT };
        worth_it && Self::medium(now()).wrapping_sub(self.woke) & Self::WOKE >= LATE
    }

    /// The last who had to wait has only just acquired: whoever asks now had nothing else to do.
    pub(super) fn greedy(self, now: u64, quick: u64) -> bool {
        u64::from(Self::fine(now).wrapping_sub(self.acquired) & Self::ACQUIRED) << Self::FINE <= quick
    }

    /// Once somebody who was woken has looked.
    pub(super) fn after_wake(mut self, free: bool) -> Self {
        (self.found, self.barren) = if free {
            ((self.found + 3).min(FOUND), self.barren.saturating_sub(4))
        } else {
            (self.found.saturating_sub(2), (self.barren + 1).min(BARREN))
        };
        self
    }

    /// What a conflict at `now` shows: the heat of step 3, and how eager holders are to come back (step 4).
    pub(super) fn after_conflict(mut self, now: u64, quick: u64) -> Self {
        let at_once = self.greedy(now, quick);
        self.heat =
            if self.brief && at_once { (self.heat + 2).min(HEAT) } else { self.heat.saturating_sub(1) };
        self.eager = if !self.brief && at_once {
            (self.eager + 1).min(EAGER_MOST)
        } else {
            self.eager.saturating_sub(1)
        };
        self
    }

    /// Step 4: whether a conflict at `now`, which is in this, is worth a spin.
    pub(super) fn worth_a_spin(self, now: u64) -> bool {
        let to_and_fro = self.eager >= EAGER;
        // Some bits of the time are as good as a die.
        let probe = (now >> 5).is_multiple_of(PROBE);
        !to_and_fro && (!self.long() || probe)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOTHING: Learned = Learned {
        rotated: 0,
        woke: 0,
        found: 0,
        barren: 0,
        acquired: 0,
        futile: 0,
        eager: 0,
        brief: false,
        heat: 0,
    };

    #[test]
    fn what_is_learned_fits_its_word() {
        let all = Learned {
            rotated: 0x3f,
            woke: 0x1f,
            found: 7,
            barren: 7,
            acquired: 0x3f,
            futile: 7,
            eager: 3,
            brief: true,
            heat: 7,
        };
        assert_eq!(all.pack(), u32::MAX);
        let one = Learned {
            rotated: 0x23,
            woke: 0x15,
            found: 2,
            barren: 6,
            acquired: 0x16,
            futile: 5,
            eager: 1,
            brief: false,
            heat: 5,
        };
        assert_eq!(Learned::unpack(one.pack()), one);
    }

    #[test]
    fn heat_rises_with_brief_waits_and_quick_conflicts_only() {
        let at = 1_000_000;
        let learned = Learned { acquired: Learned::fine(at), brief: true, heat: 2, ..NOTHING };
        let heat = |learned: Learned, after| learned.after_conflict(at + after, 1000).heat;
        assert_eq!(heat(learned, 500), 4, "brief, and asked for at once");
        assert_eq!(heat(learned, 9000), 1, "asked for later");
        assert_eq!(heat(Learned { brief: false, ..learned }, 500), 1, "a long wait");
        assert_eq!(heat(Learned { heat: 7, ..learned }, 500), 7);
    }

    #[test]
    fn spins_are_left_out_where_holders_come_back_at_once() {
        let at = 1_000_000;
        let acquired = Learned { acquired: Learned::fine(at), ..NOTHING };
        let first = acquired.after_conflict(at + 500, 1000);
        assert!(first.worth_a_spin(at + 500), "once may be chance");
        let second = first.after_conflict(at + 500, 1000);
        assert!(!second.worth_a_spin(at + 500), "to and fro");
        assert!(second.after_conflict(at + 9000, 1000).worth_a_spin(at + 9000), "asked for later");
        let brief = Learned { brief: true, ..second }.after_conflict(at + 500, 1000);
        assert!(brief.worth_a_spin(at + 500), "the wait was short");

        // One conflict in four at once is not enough.
        let mut learned = acquired;
        for n in 0..100 {
            let now = at + if n % 4 == 0 { 500 } else { 9000 };
            learned = learned.after_conflict(now, 1000);
            assert!(learned.worth_a_spin(now), "{n}");
        }
    }

    #[test]
    fn spins_are_left_out_where_they_were_futile_but_for_one_in_sixteen() {
        let spins = |futile| {
            let learned = Learned { futile, ..NOTHING };
            (0..1600).filter(|n| learned.worth_a_spin(1_000_000 + 331 * n)).count()
        };
        assert_eq!(spins(FUTILE - 1), 1600);
        assert!((80..=120).contains(&spins(FUTILE)), "{}", spins(FUTILE));
    }

    #[test]
    fn turns_are_due_after_an_age_also_over_a_wrap() {
        let tick = 1_u64 << Learned::COARSE;
        let learned = Learned { rotated: 0x3f, ..NOTHING };
        assert!(!learned.due(0x3f * tick, 5 * tick));
        assert!(!learned.due((0x3f + 4) * tick, 5 * tick));
        assert!(learned.due((0x3f + 5) * tick, 5 * tick));
    }

    #[test]
    fn who_is_woken_is_late_after_a_while_unless_another_would_come_for_nothing() {
        let after = |ticks: u64| move || (0x1f + ticks) << Learned::MEDIUM;
        let late = |learned: Learned, ticks| Learned { woke: 0x1f, ..learned }.late(after(ticks));
        let free = Learned { found: WORTH_IT, ..NOTHING };
        assert!(!late(free, 1), "in time");
        assert!(late(free, 2), "also over a wrap");
        assert!(!late(NOTHING, 2), "mostly taken");
        let long = Learned { futile: FUTILE, ..NOTHING };
        assert!(late(long, 2), "mostly taken, but sections are long");
        assert!(!late(Learned { barren: BARREN, ..long }, 2), "nearly always taken");
    }

    #[test]
    fn found_tells_half_from_a_fifth_and_barren_a_fifth_from_a_twentieth() {
        // Of a thousand wake-ups of which one in `period` finds the lock free.
        let after = |period: u32, holds: fn(Learned) -> bool| {
            let mut learned = NOTHING;
            let look = |n: &u32| {
                learned = learned.after_wake(n.is_multiple_of(period));
                holds(learned)
            };
            (0..1000).filter(look).count()
        };
        let worth_it = |period| after(period, |learned| learned.found >= WORTH_IT);
        assert!(worth_it(2) > 900, "{}", worth_it(2));
        assert_eq!(worth_it(5), 0);
        let barren = |period| after(period, |learned| learned.barren == BARREN);
        assert_eq!(barren(4), 0);
        assert!(barren(20) > 700, "{}", barren(20));
    }
}
