//! Whether a run may begin: the machine is to be as warm as it was at the first one.
//!
//! A machine that is too warm cools down while it waits. But one that is colder than at the first run does not become warm by waiting: the
//! first run had followed some other work. And where the room has become warmer the machine does not cool down as far as before. Where the
//! temperature comes no nearer, this run does not count, and those after it start from the temperature of now.

/// Longest wait, s.
const LONGEST_S: f64 = 300.0;
/// After so long without coming nearer the wait ends, s.
const STEADY_S: f64 = 60.0;
/// A smaller step is a sensor's noise, degrees Celsius.
const NEARER_C: f64 = 0.1;

/// A wait for the temperature of the first run.
#[derive(Debug)]
pub(super) struct Warmth {
    wanted_c: f64,
    within_c: f64,
    /// The least distance so far, and when it was found.
    nearest: (f64, f64),
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WarmthLook {
    /// The run begins.
    There,
    /// Not yet.
    Wait,
    /// It is so far off and comes no nearer.
    NoNearer(f64),
}

impl Warmth {
    /// A wait that begins: for a temperature, to so many degrees.
    pub(super) fn wait_for(wanted_c: f64, within_c: f64) -> Warmth {
        Warmth { wanted_c, within_c, nearest: (f64::INFINITY, 0.0) }
    }

    /// A look at `celsius`, `at_s` seconds after the wait began.
    pub(super) fn look(&mut self, celsius: f64, at_s: f64) -> WarmthLook {
        let off = celsius - self.wanted_c;
        if off.abs() <= self.within_c {
            return WarmthLook::There;
        }
        if off.abs() < self.nearest.0 - NEARER_C {
            self.nearest = (off.abs(), at_s);
        }
        match at_s > LONGEST_S || at_s - self.nearest.1 > STEADY_S {
            true => WarmthLook::NoNearer(off),
            false => WarmthLook::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks each half second at a temperature that changes with time: the last look, and when.
    fn waited(wanted_c: f64, celsius: impl Fn(f64) -> f64) -> (WarmthLook, f64) {
        let mut warmth = Warmth::wait_for(wanted_c, 1.0);
        let looks = (0..).map(|n| f64::from(n) * 0.5).map(|at_s| (warmth.look(celsius(at_s), at_s), at_s));
        looks.into_iter().find(|(look, _)| *look != WarmthLook::Wait).expect("it ends")
    }

    #[test]
    fn a_warm_machine_is_waited_for_and_a_steady_one_is_not() {
        // Newton's law, from 60 down to 40 within 100 s; the run may begin at 46.
        let (look, at_s) = waited(45.0, |s| 40.0 + 20.0 * (-s / 100.0_f64).exp());
        assert_eq!(look, WarmthLook::There);
        assert!((at_s - 100.0 * (20.0_f64 / 6.0).ln()).abs() <= 0.5, "{at_s}");
        // Colder than the first run, or a room that has become warmer.
        for (steady, off) in [(33.2, -2.8), (39.0, 3.0)] {
            let (look, at_s) = waited(36.0, |_| steady);
            assert!(matches!(look, WarmthLook::NoNearer(o) if (o - off).abs() < 1e-9), "{look:?}");
            assert!((60.0..=61.0).contains(&at_s), "{at_s}");
        }
        // It goes on cooling, too slowly, by a sensor of whole degrees.
        let (look, at_s) = waited(30.0, |s| (50.0 - s / 30.0).round());
        assert!(
            matches!(look, WarmthLook::NoNearer(_)) && (300.0..=301.0).contains(&at_s),
            "{look:?} {at_s}"
        );
    }
}
