//! Watts of a package from how long its CPUs were in each C-state.

/// Power of a package from the shares of time in each state: the mean over its CPUs of the sum of share
/// times watts. `residency` has a row a CPU, a share (0 to 1) a state; `watts` one a state.
pub fn package_watts(residency: &[Vec<f64>], watts: &[f64]) -> f64 {
    let cpu = |shares: &Vec<f64>| shares.iter().zip(watts).map(|(share, w)| share * w).sum::<f64>();
    residency.iter().map(cpu).sum::<f64>() / residency.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 002's six figures from its own residencies, by its own watts: c0 90, c1 63, c3 55, c6 nothing, c7 20.
    #[test]
    fn the_six_published_powers_to_the_second_decimal() {
        let watts = [90.0, 63.0, 55.0, 0.0, 20.0];
        let rows = |text: &'static str| {
            let lines = text.lines().filter(|l| !l.starts_with('#')).skip(1);
            lines.map(|l| l.split(',').collect::<Vec<&str>>()).collect::<Vec<_>>()
        };
        let residencies = rows(include_str!("../../../studies/coreidle_residency.csv"));
        let powers = rows(include_str!("../../../studies/coreidle_power.csv"));
        let shares = |row: &[&str]| -> Vec<f64> {
            [4, 7, 8, 9, 10].iter().map(|at| row[*at].parse::<f64>().expect("a number") / 100.0).collect()
        };
        assert_eq!(powers.len(), 6);
        for power in powers {
            let published: f64 = power[2].parse().expect("a number");
            let of = |cpu: &str| -> Vec<Vec<f64>> {
                let wanted = |r: &&Vec<&str>| {
                    r[0] == power[0] && r[1] == power[1] && (r[3] == "all") == (cpu == "all")
                };
                residencies.iter().filter(wanted).map(|r| shares(r)).collect()
            };
            // From its row for the whole package, as published.
            assert_eq!(
                format!("{:.2}", package_watts(&of("all"), &watts)),
                format!("{published:.2}"),
                "{power:?}"
            );
            // From the four CPUs' rows: within what their rounding to 0.01 % leaves.
            assert!((package_watts(&of("each"), &watts) - published).abs() < 0.02, "{power:?}");
        }
    }
}
