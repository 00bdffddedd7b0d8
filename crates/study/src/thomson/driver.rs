//! Table 2 from FreeBSD's driver: what a change of speed takes on the paper's machine, seen from a program.
//!
//! FreeBSD 8.1's `est(4)` (`sys/i386/cpufreq/est.c`) writes the new speed and then waits for 1 ms: `DELAY(EST_TRANS_LAT)`. `DELAY` (`sys/i386/isa/clock.c`) counts
//! the time-stamp counter, by the rate that belongs to the *old* speed, and on a Pentium M that counter goes with the clock (Intel's
//! manual, volume 3, 17.17: family 6, models 9 and 13). So:
//!
//! 1. *The wait* is over after `1 ms x old` cycles. Down the new clock is in force at once, and it takes `1 ms x old / new`: 1700 to
//!    600 MHz 2.83 ms of the 2.89 that the paper measured.
//! 2. *Up, the voltage comes first.* While it rises by `dV` the old clock goes on, and what it counts meanwhile need not be counted at the
//!    new one: `ramp x dV x (1 - old / new)` longer than the wait alone.
//! 3. *The way through the kernel* takes cycles before and after: `path x (1 / old + 1 / new)`.
//!
//! Two numbers are fitted, each to one of the 30 entries: `path` to 1000 -> 800 MHz, where no voltage rises, and `ramp` to
//! 600 -> 1700 MHz. The other 28 are predictions, and the reruns use them in the place of the table. The voltages are the
//! driver's own table for a 1.7 GHz Pentium M of 130 nm (`PM17_130`), after Intel 252612-002, table 5.

/// The driver's wait, in us.
const WAIT_US: f64 = 1000.0;

/// MHz and volts, as the machine's levels go.
pub(super) const SPEEDS: [(f64, f64); 6] =
    [(1700.0, 1.484), (1400.0, 1.308), (1200.0, 1.228), (1000.0, 1.116), (800.0, 1.004), (600.0, 0.956)];

/// The two entries that are read, in MHz: for the path, for the ramp.
pub(super) const READ: [(u32, u32); 2] = [(1000, 800), (600, 1700)];

/// What the driver's wait does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThomsonDriver {
    /// Cycles of the way through the kernel, half before and half after: us at 1 MHz.
    pub(super) path: f64,
    /// How long the voltage rises, in us a volt.
    pub(super) ramp: f64,
}

impl ThomsonDriver {
    /// From the two entries, in us.
    pub(super) fn fit(down_us: f64, up_us: f64) -> ThomsonDriver {
        let at =
            |mhz: u32| SPEEDS.iter().copied().find(|s| s.0 == f64::from(mhz)).unwrap_or((f64::NAN, f64::NAN));
        let [(from, to), up] = READ;
        let ((from, _), (to, _)) = (at(from), at(to));
        let path = (down_us - WAIT_US * from / to) / (1.0 / from + 1.0 / to);
        let ((from, low), (to, high)) = (at(up.0), at(up.1));
        let rest = up_us - WAIT_US * from / to - path * (1.0 / from + 1.0 / to);
        ThomsonDriver { path, ramp: rest / (high - low) / (1.0 - from / to) }
    }

    /// What a change takes, in us, between two of [`SPEEDS`].
    pub(super) fn us(self, (from, low): (f64, f64), (to, high): (f64, f64)) -> f64 {
        let rise = self.ramp * (high - low).max(0.0) * (1.0 - from / to).max(0.0);
        WAIT_US * from / to + self.path * (1.0 / from + 1.0 / to) + rise
    }

    /// All changes between them in ns, by from and to, as a machine's model keeps them.
    pub(super) fn stall_ns(self) -> Vec<u64> {
        let one = |from: usize, to: usize| match from == to {
            true => 0,
            false => (self.us(SPEEDS[from], SPEEDS[to]) * 1e3).round() as u64,
        };
        (0..SPEEDS.len()).flat_map(|from| (0..SPEEDS.len()).map(move |to| one(from, to))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand. Path: 1307 us = 1250 + path (1/1000 + 1/800), so path = 57 / 0.00225 = 25333. Ramp: 735 us = 352.9 + 25333 (1/600 + 1/1700)
    /// + ramp x 0.528 x 0.6471, so ramp = (735 - 352.9 - 57.1) / 0.3416 = 951 us a volt.
    #[test]
    fn two_entries_give_path_and_ramp() {
        let d = ThomsonDriver::fit(1307.0, 735.0);
        assert!((d.path - 25_333.3).abs() < 0.1 && (d.ramp - 951.0).abs() < 1.0, "{d:?}");
        assert!(
            (d.us(SPEEDS[3], SPEEDS[4]) - 1307.0).abs() < 1e-9
                && (d.us(SPEEDS[5], SPEEDS[0]) - 735.0).abs() < 1e-9
        );
        // 1700 to 600: 2833.3 + 25333 x 0.0022549 = 2890.5, measured 2892.
        assert!((d.us(SPEEDS[0], SPEEDS[5]) - 2890.5).abs() < 0.1);
    }

    /// Against the paper's own table: all 30 within 1 %, and its exception too (600 to 1400 is quicker than to 1200 and to 1700).
    #[test]
    fn the_paper_s_table_comes_out() {
        let table: Vec<(f64, f64, f64)> = crate::rows(super::super::TRANSITION)
            .map(|r| (crate::number(r[0]), crate::number(r[1]), crate::number(r[2])))
            .collect();
        assert_eq!(table.len(), 30);
        let at = |mhz: f64| SPEEDS.iter().copied().find(|s| s.0 == mhz).expect("a speed");
        let d = ThomsonDriver::fit(1307.0, 735.0);
        for (from, to, us) in table {
            let ours = d.us(at(from), at(to));
            assert!((ours / us - 1.0).abs() < 0.01, "{from} to {to}: {ours}, measured {us}");
        }
        let up = |to: f64| d.us(at(600.0), at(to));
        assert!(up(1400.0) < up(1200.0) && up(1400.0) < up(1700.0));
    }

    /// A Dothan's voltages (PM_735A) rise by less: then the quick ones do not come out, so that the paper's machine is a Banias.
    #[test]
    fn the_other_processor_of_that_name_does_not_fit() {
        let volts = [1.340, 1.244, 1.180, 1.116, 1.052, 0.988];
        let dothan = |i: usize| (SPEEDS[i].0, volts[i]);
        // The ramp refitted: 325 us over 0.352 V.
        let d = ThomsonDriver { path: 25_333.3, ramp: 951.0 * 0.528 / 0.352 };
        assert!((d.us(dothan(5), dothan(0)) - 735.0).abs() < 0.5);
        assert!((d.us(dothan(5), dothan(4)) / 832.0 - 1.0).abs() > 0.01);
    }
}
