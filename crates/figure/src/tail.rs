//! How often chance alone gives as much: the tails of the distributions that tests compare with.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// Chance that Student's t is as far from 0 as `t`, on either side.
pub fn student(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |d| 2.0 * d.sf(t.abs()))
}

/// Chance that Fisher's F, a ratio of variances, is as great as `f`.
pub fn fisher(f: f64, above: f64, below: f64) -> f64 {
    FisherSnedecor::new(above, below).map_or(f64::NAN, |d| d.sf(f.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        assert!((student(-2.262, 9.0) - 0.05).abs() < 1e-4);
        assert!((fisher(4.103, 2.0, 10.0) - 0.05).abs() < 1e-4);
        // The square of t with n degrees of freedom is F with 1 and n.
        assert!((fisher(2.5 * 2.5, 1.0, 30.0) - student(2.5, 30.0)).abs() < 1e-9);
        assert!((fisher(0.0, 3.0, 20.0) - 1.0).abs() < 1e-12);
    }
}
