//! Per-entity load tracking: the share of recent time that a CPU was busy, recent counting most.
//!
//! It follows Linux 6.12, `kernel/sched/pelt.c` and `pelt.h`. Time is cut into periods of 1024 x 1024 ns
//! (about 1 ms), and a period counts y times as much as the one after it, with y^32 = 1/2: work of 32 ms ago
//! counts half. The signal is the weighted busy time over the weighted time, of 1024.
//!
//! ```text
//! now - 3      now - 2      now - 1     |pos->
//! |-----------|------------|-----------|----- now
//!   x y^3        x y^2        x y         x 1
//! ```
//!
//! It does not depend on the speed: while a CPU works at half its speed, the signal's clock runs
//! at half pace, so that the work counts and not the time. The time so set aside (`owed`) is caught up as
//! idle time when the CPU idles, unless the CPU had been saturated: then how long the work
//! would have taken at full speed is not known, and the time is forgotten.
//!
//! All in integers, and in constant time for any gap: whole halvings are a shift, the rest is a
//! table of 32 factors. The table is computed at compile time from five square roots of one half, so
//! that 32 periods halve exactly up to rounding.

/// The signal when always busy.
pub const FULL: u64 = 1024;
/// Length of a period in ns: a power of two, so that no division is needed.
pub const PERIOD_NS: u64 = 1 << PERIOD_SHIFT;
/// The period's power of two.
const PERIOD_SHIFT: u32 = 20;
/// Periods after which time counts half.
const HALF_LIFE: usize = 32;
/// Halvings after which nothing is left of a sum that fits 32 bits.
const GONE: u64 = 32;
/// Longest gap taken literally, in ns (18 minutes): beyond it every signal has long settled.
const LONGEST_NS: u64 = 1 << 40;

/// y^n for n below the half-life, in units of 2^-32.
const Y: [u64; HALF_LIFE] = {
    // y = (1/2)^(1/32) in units of 2^-64, by five square roots: each keeps 64 exact bits.
    let mut y: u128 = 1 << 63;
    let mut i = 0;
    while i < 5 {
        y = (y << 64).isqrt();
        i += 1;
    }
    let mut table = [1 << 32; HALF_LIFE];
    let mut power: u128 = 1 << 64;
    let mut n = 1;
    while n < HALF_LIFE {
        power = if n == 1 { y } else { (power * (y >> 1)) >> 63 };
        table[n] = (power >> 32) as u64;
        n += 1;
    }
    table
};

/// The sum of a CPU that was always busy, in ns: period * (1 + y + y^2 + ...).
const MAX_NS: u64 = {
    let mut sum = 0;
    loop {
        let next = decay(sum, 1) + PERIOD_NS;
        if next == sum {
            break sum;
        }
        sum = next;
    }
};

/// A sum within this of the most means saturated; Linux's margin, a thousandth and a period's start.
const SATURATED_NS: u64 = MAX_NS - PERIOD_NS - MAX_NS / FULL;

/// `value` after `periods` periods.
const fn decay(value: u64, periods: u64) -> u64 {
    let halvings = periods / HALF_LIFE as u64;
    if halvings >= GONE {
        return 0;
    }
    ((value >> halvings) * Y[(periods % HALF_LIFE as u64) as usize]) >> 32
}

/// One CPU's or task's signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pelt {
    /// Weighted busy time in ns.
    sum_ns: u64,
    /// Position in the current period, in ns.
    pos_ns: u64,
    /// Time set aside while working below full speed, in ns.
    owed_ns: u64,
}

impl Pelt {
    /// No signal yet, at `now_ns` of the clock at whose multiples periods begin.
    pub fn since(now_ns: u64) -> Pelt {
        Pelt { pos_ns: now_ns % PERIOD_NS, ..Pelt::default() }
    }

    /// A signal of `util` of 1024 at `now_ns`: what a scheduler credits a task with that it does not know yet.
    pub fn at(util: u64, now_ns: u64) -> Pelt {
        let pos_ns = now_ns % PERIOD_NS;
        Pelt { sum_ns: (MAX_NS - PERIOD_NS + pos_ns) * util.min(FULL) / FULL, pos_ns, owed_ns: 0 }
    }

    /// The CPU worked for `ns` at `pace` of 1024 of the fastest CPU's speed.
    pub fn run(&mut self, ns: u64, pace: u64) {
        self.pass(ns, pace, true);
    }

    fn pass(&mut self, ns: u64, pace: u64, busy: bool) {
        let ns = ns.min(LONGEST_NS);
        let worked = (ns * pace.min(FULL)) >> 10;
        self.owed_ns = (self.owed_ns + (ns - worked)).min(LONGEST_NS);
        self.advance(worked, busy);
    }

    /// The CPU idled for `ns`.
    pub fn idle(&mut self, ns: u64) {
        if self.sum_ns >= SATURATED_NS {
            self.owed_ns = 0;
        }
        self.advance(ns.min(LONGEST_NS) + self.owed_ns, false);
        self.owed_ns = 0;
    }

    /// The CPU worked for `ns` at `pace`, but not for this signal, which fades by the same clock.
    pub fn rest_beside(&mut self, ns: u64, pace: u64) {
        self.pass(ns, pace, false);
    }

    /// A signal of `util` of 1024 by the same clock: what has come to a CPU, or gone from it.
    pub fn beside(&self, util: u64) -> Pelt {
        Pelt { owed_ns: self.owed_ns, ..Pelt::at(util, self.pos_ns) }
    }

    /// The busy share of recent time, of 1024.
    pub fn util(&self) -> u64 {
        // The current period counts only as far as it has gone.
        let most = MAX_NS - PERIOD_NS + self.pos_ns;
        ((self.sum_ns << 10) / most).min(FULL)
    }

    /// Whether nothing is left of it.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.sum_ns == 0
    }

    fn advance(&mut self, ns: u64, busy: bool) {
        let end = self.pos_ns + ns;
        let periods = end >> PERIOD_SHIFT;
        let in_last = end & (PERIOD_NS - 1);
        if periods == 0 {
            if busy {
                self.sum_ns += ns;
            }
        } else {
            // The rest of the period begun ages with what was there; the whole ones between are the
            // full series less its part that lies further back; the last has just begun.
            let begun = if busy { PERIOD_NS - self.pos_ns } else { 0 };
            self.sum_ns = decay(self.sum_ns + begun, periods);
            if busy {
                self.sum_ns += MAX_NS - decay(MAX_NS, periods) - PERIOD_NS + in_last;
            }
        }
        self.pos_ns = in_last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 periods: 33.5 ms.
    const HALF_NS: u64 = 32 * PERIOD_NS;

    #[test]
    fn the_table_halves_in_32_steps() {
        assert_eq!(Y[0], 1 << 32);
        // 2^-0.5 in units of 2^-32, and y itself.
        assert_eq!(Y[16], 3_037_000_499);
        assert_eq!(Y[1], 4_202_935_003);
        assert!(((Y[31] * Y[1]) >> 32).abs_diff(1 << 31) <= 2);
        assert_eq!(decay(1 << 20, 32), 1 << 19);
        assert_eq!(decay(1 << 20, 64), 1 << 18);
        assert_eq!(decay(u64::from(u32::MAX), 32 * 40), 0);
    }

    /// In periods of 1024 the limit of the series is known as Linux's LOAD_AVG_MAX, 47742, which loses
    /// some 46 to rounding; in ns less is lost.
    #[test]
    fn the_series_has_the_known_limit() {
        assert!((MAX_NS >> 10).abs_diff(47_742) < 50, "{}", MAX_NS >> 10);
    }

    #[test]
    fn always_busy_is_half_after_a_half_life() {
        let mut p = Pelt::default();
        p.run(HALF_NS, FULL);
        assert!(p.util().abs_diff(512) <= 1, "{}", p.util());
        p.run(HALF_NS, FULL);
        assert!(p.util().abs_diff(768) <= 1, "{}", p.util());
        p.idle(HALF_NS);
        assert!(p.util().abs_diff(384) <= 1, "{}", p.util());
        p.run(100 * HALF_NS, FULL);
        assert!(p.util() >= 1023);
        p.idle(100 * HALF_NS);
        assert_eq!(p.util(), 0);
    }

    #[test]
    fn pieces_make_the_whole() {
        let (mut whole, mut pieces) = (Pelt::default(), Pelt::default());
        whole.run(40_000_000, FULL);
        (0..40_000).for_each(|_| pieces.run(1000, FULL));
        assert_eq!(whole.pos_ns, pieces.pos_ns);
        assert!(whole.util().abs_diff(pieces.util()) <= 1);
    }

    #[test]
    fn a_half_busy_cpu_settles_at_half() {
        let mut p = Pelt::default();
        for _ in 0..1000 {
            p.run(500_000, FULL);
            p.idle(500_000);
        }
        assert!(p.util().abs_diff(512) <= 12, "{}", p.util());
    }

    #[test]
    fn the_same_work_at_half_speed_is_the_same_signal() {
        let (mut fast, mut slow) = (Pelt::default(), Pelt::default());
        for _ in 0..500 {
            fast.run(1_000_000, FULL);
            fast.idle(3_000_000);
            slow.run(2_000_000, FULL / 2);
            slow.idle(2_000_000);
        }
        assert!(fast.util().abs_diff(slow.util()) <= 2, "{} {}", fast.util(), slow.util());
        // And half the speed takes twice the time to the same signal.
        let mut p = Pelt::default();
        p.run(2 * HALF_NS, FULL / 2);
        assert!(p.util().abs_diff(512) <= 1);
    }

    #[test]
    fn saturation_forgets_what_is_owed() {
        let mut p = Pelt::default();
        p.run(1_000_000_000, FULL / 2);
        p.idle(PERIOD_NS);
        assert!(p.util() > 990, "a second of lost idle time is not idle time: {}", p.util());
    }

    #[test]
    fn any_gap_is_harmless() {
        let mut p = Pelt::default();
        for ns in [0, 1, u64::MAX, PERIOD_NS - 1, u64::MAX] {
            for pace in [0, 1, FULL, u64::MAX] {
                p.run(ns, pace);
                assert!(p.util() <= FULL);
                p.idle(ns);
                assert!(p.util() <= FULL);
            }
        }
    }

    /// A CPU's signal is the sum of its tasks' signals, also at half the speed, where its clock stands still half of the time.
    #[test]
    fn what_a_task_brought_fades_by_the_clock_of_its_cpu() {
        let (mut task, mut cpu) = (Pelt::at(512, 0), Pelt::since(0));
        let mut came = cpu.beside(512);
        for (ns, pace) in [(5_300_000, 512), (40_000_000, 300), (7_000_000, 1024)] {
            task.run(ns, pace);
            cpu.run(ns, pace);
            came.rest_beside(ns, pace);
            let sum = cpu.util() + came.util();
            assert!(sum.abs_diff(task.util()) <= 2, "{sum} for {}", task.util());
        }
        let left = cpu.beside(came.util());
        came.idle(3_000_000);
        let mut late = left;
        late.idle(3_000_000);
        assert!(late.util().abs_diff(came.util()) <= 1, "the time set aside is caught up: {late:?} {came:?}");
    }
}
