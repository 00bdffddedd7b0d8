//! Each package's temperature, and the speed limit of one that is too hot.

use super::Hardware;

/// Period of the thermal model, in ns: short against any heat sink's time constant.
pub(crate) const HEAT_NS: u64 = 100_000_000;
/// Once too hot, a package stays slow until it is this many degrees below the critical temperature.
const HEAT_HYSTERESIS_C: f64 = 5.0;

impl Hardware<'_> {
    /// Whether some package's temperature moves. Without a resistance it stays at the temperature around it.
    pub(crate) fn warms(&self) -> bool {
        self.machine.packages.iter().any(|p| p.thermal.c_per_w > 0.0)
    }

    /// The hottest package's temperature, in thousandths of a degree Celsius.
    pub(crate) fn hottest_mc(&self) -> i32 {
        (self.packages.iter().map(|p| p.celsius).fold(f64::MIN, f64::max) * 1000.0) as i32
    }

    /// The temperature of the first package, in thousandths of a degree Celsius.
    pub(crate) fn first_mc(&self) -> i32 {
        (self.packages[0].celsius * 1000.0) as i32
    }

    /// Moves each package's temperature on by [`HEAT_NS`], and slows it while it is too hot; call
    /// [`Hardware::settle`] first. The CPUs to re-time are [`Hardware::next_changed`].
    pub(crate) fn heat(&mut self, now: u64) {
        let seconds = HEAT_NS as f64 * 1e-9;
        for p in 0..self.packages.len() {
            let model = &self.machine.packages[p];
            let thermal = model.thermal;
            let core_joules = self.cores_joules(p);
            let leakage_joules = self.leakage_joules(p, core_joules);
            let joules = self.package_joules_with(p, core_joules);
            let package = &mut self.packages[p];
            (package.core_joules, package.leakage_joules) = (core_joules, leakage_joules);
            let watts = (joules - package.joules) / seconds;
            package.joules = joules;
            let towards = thermal.ambient_c + watts * thermal.c_per_w;
            package.celsius += (towards - package.celsius) * approach(seconds / thermal.tau_s);
            package.peak_c = package.peak_c.max(package.celsius);
            let hot = package.celsius >= thermal.critical_c;
            let cool = package.celsius < thermal.critical_c - HEAT_HYSTERESIS_C;
            for &d in &model.domains {
                let d = usize::from(d);
                if (hot && !self.domains[d].hot) || (cool && self.domains[d].hot) {
                    self.domains[d].hot = hot;
                    self.settle_level(now, d);
                }
            }
        }
    }
}

/// `1 - exp(-x)` for `x >= 0` by halving and its Taylor series: `libm` differs between platforms, this does not.
pub(super) fn approach(x: f64) -> f64 {
    if x > 0.125 {
        let half = 1.0 - approach(x / 2.0);
        return 1.0 - half * half;
    }
    x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0))))
}

#[cfg(test)]
mod tests {
    use super::approach;

    #[test]
    fn approach_is_one_minus_exp() {
        for x in [0.0, 1e-6, 0.01, 0.1, 0.5, 1.0, 7.0, 40.0] {
            assert!((approach(x) - (1.0 - f64::exp(-x))).abs() < 1e-7, "{x}");
        }
    }
}
