//! The normal distribution by `+ - * /` alone, so that a draw has the same bits on every platform: the mathematics
//! library's last bit differs from one system to the next.

/// 1 / sqrt(2 pi).
const DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;
/// Quantiles beyond this are cut: one draw in 500 million.
const FAR: f64 = 6.0;

/// e to the power of `x`, to some 13 digits; exactly 1 for 0. For |x| of up to some 20.
pub fn exp(x: f64) -> f64 {
    let small = x / 1024.0;
    let mut sum = 1.0;
    let mut term = 1.0;
    for n in 1..=10 {
        term = term * small / f64::from(n);
        sum += term;
    }
    (0..10).fold(sum, |power, _| power * power)
}

/// The standard normal's density.
fn density(z: f64) -> f64 {
    DENSITY_AT_0 * exp(-z * z / 2.0)
}

/// The share below `z`; exactly a half below 0. Cut at 6 standard deviations.
pub fn below(z: f64) -> f64 {
    let z = z.clamp(-FAR, FAR);
    // z + z^3/3 + z^5/(3 5) + ..., all of one sign: nothing cancels.
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        odd += 2.0;
        term = term * z * z / odd;
        sum += term;
    }
    0.5 + density(z) * sum
}

/// The value below which a share `p` lies; exactly 0 for a half. Cut at 6 standard deviations.
pub fn quantile(p: f64) -> f64 {
    if p < 0.5 {
        return -quantile(1.0 - p);
    }
    // Newton's steps from 0 never overshoot: above its middle the distribution bends down.
    let mut z = 0.0;
    for _ in 0..60 {
        let step = (p - below(z)) / density(z);
        z += step;
        if z >= FAR {
            return FAR;
        }
        if step.abs() < 1e-13 {
            break;
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn agrees_with_the_library() {
        let normal = Normal::new(0.0, 1.0).unwrap();
        for i in -500..=500 {
            let z = f64::from(i) / 100.0;
            // The library's own error function is good to 1e-10.
            assert!((below(z) - normal.cdf(z)).abs() < 1e-10, "{z}: {} {}", below(z), normal.cdf(z));
            let p = below(z);
            assert!((quantile(p) - z).abs() < 1e-4 * (1.0 + z.abs()), "{z}: {}", quantile(p));
            if z.abs() < 4.0 {
                assert!((quantile(p) - z).abs() < 1e-7, "{z}: {}", quantile(p));
            }
            assert!((exp(z) / z.exp() - 1.0).abs() < 1e-12, "{z}");
        }
    }

    #[test]
    fn the_middle_is_exact_and_the_ends_are_cut() {
        assert_eq!((exp(0.0), below(0.0), quantile(0.5)), (1.0, 0.5, 0.0));
        // Of the C library's erfc.
        for (z, p) in [(-1.06, 0.144_572_299_663_909_6), (-3.0, 0.001_349_898_031_630_094_6)] {
            assert!((below(z) - p).abs() < 1e-13, "{z}: {}", below(z));
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert_eq!((quantile(0.0), quantile(1.0)), (-FAR, FAR));
        assert!(quantile(1e-15) >= -FAR && below(-40.0) > 0.0 && below(f64::INFINITY) <= 1.0);
    }
}
