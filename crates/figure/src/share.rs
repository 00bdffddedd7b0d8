//! Shares as people write them.
//!
//! One rule for every flag, argument and file: a number without a unit is a share from 0 to 1. Above 1 nobody can tell whether 10 means
//! 10 % or ten times, so it wants its unit.

use crate::units::{BadQuantity, trim};

/// A number, not negative, and its unit: `%`, `x` or none.
fn split(given: &str) -> Option<(f64, &str)> {
    let given = given.trim();
    let end = given.len() - given.chars().next_back().filter(|c| "%x".contains(*c)).map_or(0, char::len_utf8);
    let number = given[..end].trim().parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, &given[end..]))
}

/// Reads a part of a whole: `20%` or `0.2`. From 0 to 1.
///
/// # Errors
/// One line that says how it is written.
pub fn share(given: &str) -> Result<f64, BadQuantity> {
    let bad = |expected: String| BadQuantity::new(given, "share", expected);
    match split(given) {
        Some((number, "%")) if number <= 100.0 => Ok(number / 100.0),
        Some((number, "")) if number <= 1.0 => Ok(number),
        Some((number, "")) if number <= 100.0 => Err(bad(format!(
            "{}% or {}: above 1 a number needs its unit",
            trim(number, 6),
            trim(number / 100.0, 6)
        ))),
        _ => Err(bad("0% to 100%, such as 20% or 0.2".into())),
    }
}

/// Reads by how much more than something else a figure may be: `10%`, `1.1x` or `0.1`; `any` is infinite.
///
/// # Errors
/// One line that says how it is written.
pub fn increase(given: &str) -> Result<f64, BadQuantity> {
    let bad = |expected: String| BadQuantity::new(given, "share", expected);
    if given.trim() == "any" {
        return Ok(f64::INFINITY);
    }
    match split(given) {
        Some((number, "%")) => Ok(number / 100.0),
        // 1.1 - 1.0 is not 0.1 in binary: what was written counts.
        Some((number, "x")) if number >= 1.0 => Ok(((number - 1.0) * 1e12).round() / 1e12),
        Some((number, "x")) => Err(bad(format!("1x or more: {}x would be less", trim(number, 6)))),
        Some((number, "")) if number <= 1.0 => Ok(number),
        Some((number, "")) => {
            let [percent, times, plain] = [number, 1.0 + number / 100.0, number / 100.0].map(|n| trim(n, 6));
            Err(bad(format!(
                "{percent}% (or {times}x, or {plain}), or {percent}x: above 1 a number needs its unit"
            )))
        }
        _ => Err(bad("a share such as 3%, 0.03 or 1.03x, or 'any'".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_above_one_needs_its_unit() {
        for (given, value) in
            [("20%", 0.2), ("0.2", 0.2), ("1", 1.0), ("100 %", 1.0), ("0", 0.0), ("1e-2", 0.01)]
        {
            assert_eq!(share(given), Ok(value), "{given}");
        }
        assert_eq!(
            share("20").expect_err("no unit").to_string(),
            "'20' is no share; expected 20% or 0.2: above 1 a number needs its unit"
        );
        for given in ["", "x", "101%", "120", "-1%", "nan", "inf", "1.5x", "any", "0.2 W", "%"] {
            assert!(share(given).is_err(), "{given}");
        }
    }

    #[test]
    fn an_increase_is_a_share_or_a_factor() {
        for (given, value) in [
            ("3%", 0.03),
            ("250%", 2.5),
            ("0.03", 0.03),
            ("1", 1.0),
            ("1.5x", 0.5),
            ("1.1x", 0.1),
            ("1x", 0.0),
            ("10 x", 9.0),
            ("any", f64::INFINITY),
        ] {
            assert_eq!(increase(given), Ok(value), "{given}");
        }
        let error = increase("10").expect_err("no unit").to_string();
        assert!(error.starts_with("'10' is no share; expected 10% (or 1.1x, or 0.1), or 10x"), "{error}");
        for given in ["", "fast", "-1%", "-0.1", "nan", "inf", "1e400", "0.9x", "1.0000001", "3 percent"] {
            assert!(increase(given).is_err(), "{given}");
        }
    }
}
