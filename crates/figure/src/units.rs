//! Quantities as people write them, and as they read them.

use std::borrow::Cow;

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no {what}; expected {expected}")]
pub struct BadQuantity {
    given: String,
    what: &'static str,
    expected: Cow<'static, str>,
}

impl BadQuantity {
    pub(crate) fn new(
        given: &str,
        what: &'static str,
        expected: impl Into<Cow<'static, str>>,
    ) -> BadQuantity {
        BadQuantity { given: given.to_owned(), what, expected: expected.into() }
    }
}

/// A wish for a speed: a number, or a word that each CPU resolves for itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// In kHz.
    Khz(u64),
    /// The lowest that the hardware has.
    Min,
    /// The highest that the hardware has, boost included where it is on.
    Max,
    /// The highest sustained without boost.
    Base,
    /// The highest with boost.
    Boost,
    /// A share of the hardware's highest, in percent.
    Percent(f64),
}

impl std::fmt::Display for Speed {
    /// As [`speed`] reads it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Speed::Khz(khz) => write!(f, "{khz}"),
            Speed::Min => f.write_str("min"),
            Speed::Max => f.write_str("max"),
            Speed::Base => f.write_str("base"),
            Speed::Boost => f.write_str("boost"),
            Speed::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Reads a speed: `500MHz`, `1.2G`, `600000` (kHz), `60%`, `min`, `max`, `base`, `boost`. Units go from Hz
/// to THz and, as cpufreq-set has always taken them, may be cut short and in any case (`500MH`, `1.2g`).
pub fn speed(given: &str) -> Result<Speed, BadQuantity> {
    let bad = || {
        let expected = "500MHz, 1.2G, a number of kHz, 60% of the highest, or min, max, base, boost";
        BadQuantity::new(given, "speed", expected)
    };
    match given.trim().to_ascii_lowercase().as_str() {
        "min" => return Ok(Speed::Min),
        "max" => return Ok(Speed::Max),
        "base" => return Ok(Speed::Base),
        "boost" | "turbo" => return Ok(Speed::Boost),
        _ => {}
    }
    let (number, unit) = split(given).ok_or_else(bad)?;
    // Below a MHz it is no CPU's clock in kHz, but a share or a speed without its unit.
    if unit.is_empty() && 0.0 < number && number < 1e3 {
        let shown = trim(number, 6);
        let percent = if number <= 100.0 { format!("{shown}%, ") } else { String::new() };
        let expected = format!("{percent}{shown}MHz or {shown}GHz: a number without a unit is of kHz");
        return Err(BadQuantity::new(given, "speed", expected));
    }
    let hertz = match unit.to_ascii_lowercase().as_str() {
        "%" if number <= 100.0 => return Ok(Speed::Percent(number)),
        "" | "k" | "kh" | "khz" => 1e3,
        "h" | "hz" => 1.0,
        "m" | "mh" | "mhz" => 1e6,
        "g" | "gh" | "ghz" => 1e9,
        "t" | "th" | "thz" => 1e12,
        _ => return Err(bad()),
    };
    let khz = (number * hertz / 1e3).round();
    // Beyond a THz it is a slip of the unit, not a CPU.
    if (1.0..=1e9).contains(&khz) { Ok(Speed::Khz(khz as u64)) } else { Err(bad()) }
}

/// A share of a processor's highest speed as a limit, in kHz: in whole steps of 100 MHz, rounded up, as intel_pstate takes
/// `max_perf_pct` (Linux 6.12, intel_pstate_update_perf_limits). All of it is the highest speed itself.
pub fn share_of_khz(fastest_khz: u64, percent: f64) -> u64 {
    const STEP_KHZ: u64 = 100_000;
    let thousandths = (percent * 1000.0).round() as u64;
    if thousandths >= 100_000 || fastest_khz < STEP_KHZ {
        return (fastest_khz as f64 * percent / 100.0).round() as u64;
    }
    (fastest_khz / STEP_KHZ * thousandths).div_ceil(100_000) * STEP_KHZ
}

/// Reads a power: `15W`, `15`, `4500mW`, `15000000uW`. In microwatts.
pub fn power_uw(given: &str) -> Result<u64, BadQuantity> {
    let bad = || BadQuantity::new(given, "power", "watts such as 15W, 4.5 or 4500mW");
    let (number, unit) = split(given).ok_or_else(bad)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "w" => 1e6,
        "mw" => 1e3,
        "uw" => 1.0,
        _ => return Err(bad()),
    };
    let uw = (number * scale).round();
    if (1.0..=1e12).contains(&uw) { Ok(uw as u64) } else { Err(bad()) }
}

/// Reads a duration: `20us`, `250ms`, `1.5s`, `10min`, `2h`, `3d`, `1w`. A bare number takes `bare` as its unit.
/// In nanoseconds.
pub fn duration_ns(given: &str, bare: &str) -> Result<u64, BadQuantity> {
    let bad = || BadQuantity::new(given, "duration", "20us, 250ms, 1.5s, 10min or 2h");
    let (number, unit) = split(given).ok_or_else(bad)?;
    let scale = match if unit.is_empty() { bare } else { unit } {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "w" => 604_800e9,
        _ => return Err(bad()),
    };
    let ns = (number * scale).round();
    if (0.0..=9e18).contains(&ns) { Ok(ns as u64) } else { Err(bad()) }
}

/// A number and what follows it.
fn split(given: &str) -> Option<(f64, &str)> {
    let given = given.trim();
    let end = given.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(given.len());
    let (number, unit) = given.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// `2.40 GHz`, `600 MHz`: in MHz up to a GHz, as cpufreq-info shows it.
pub fn show_khz(khz: u64) -> String {
    match khz {
        0..1_000 => format!("{khz} kHz"),
        1_000..1_000_000 => format!("{} MHz", trim(khz as f64 / 1e3, 3)),
        _ => format!("{:.2} GHz", khz as f64 / 1e6),
    }
}

/// `300 us`, `1.5 ms`.
pub fn show_ns(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", trim(ns as f64 / 1e3, 2)),
        1_000_000..1_000_000_000 => format!("{} ms", trim(ns as f64 / 1e6, 2)),
        _ => format!("{} s", trim(ns as f64 / 1e9, 2)),
    }
}

/// `15 W`, from microwatts.
pub fn show_uw(uw: u64) -> String {
    format!("{} W", trim(uw as f64 / 1e6, 3))
}

/// At most `digits` after the point, without trailing zeros.
pub fn trim(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if text == "-0" { "0".to_owned() } else { text }
}

/// A figure with `digits` after the point; what rounds to nothing is `0.0`, from whichever side.
pub fn fixed(value: f64, digits: usize) -> String {
    match signed(value, digits) {
        text if text.starts_with('+') => text[1..].to_owned(),
        text => text,
    }
}

/// A change with its sign, `digits` after the point; what rounds to nothing is `+0.0`, from whichever side.
pub fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    match text.strip_prefix('-') {
        Some(nothing) if !nothing.contains(|c: char| matches!(c, '1'..='9') || c.is_alphabetic()) => {
            format!("+{nothing}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_in_every_unit() {
        for (given, expected) in [
            ("500MHz", Speed::Khz(500_000)),
            ("500MH", Speed::Khz(500_000)),
            ("500mhz", Speed::Khz(500_000)),
            ("1.2G", Speed::Khz(1_200_000)),
            ("600000", Speed::Khz(600_000)),
            ("600000 kHz", Speed::Khz(600_000)),
            ("500000000Hz", Speed::Khz(500_000)),
            ("0.0012THz", Speed::Khz(1_200_000)),
            ("60%", Speed::Percent(60.0)),
            ("max", Speed::Max),
            ("Base", Speed::Base),
            ("turbo", Speed::Boost),
        ] {
            assert_eq!(speed(given), Ok(expected), "{given}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for given in ["", "fast", "-1", "1..2", "5 parsecs", "101%", "0", "5000THz", "NaN", "inf", "1e400"] {
            assert!(speed(given).is_err(), "{given}");
        }
        // Nobody's clock is 50 kHz: it was to be 50 % or 50 MHz.
        for (given, told) in [("50", "50%, 50MHz or 50GHz"), ("0.6", "0.6GHz"), ("800", "expected 800MHz")] {
            let error = speed(given).expect_err(given).to_string();
            assert!(error.contains(told), "{error}");
        }
        for given in ["", "0", "W", "5V", "-3W"] {
            assert!(power_uw(given).is_err(), "{given}");
        }
        for given in ["", "ms", "5 lightyears", "-3s", "1e99h"] {
            assert!(duration_ns(given, "us").is_err(), "{given}");
        }
    }

    #[test]
    fn nothing_has_no_sign() {
        let of = [-0.04, -0.05, 0.04, -0.0, 1.26, -1.26, f64::NEG_INFINITY].map(|x| signed(x, 1));
        assert_eq!(of, ["+0.0", "-0.1", "+0.0", "+0.0", "+1.3", "-1.3", "-inf"]);
        assert_eq!(
            (signed(-0.4, 0), signed(-12.0, 0), trim(-0.04, 1)),
            ("+0".into(), "-12".into(), "0".into())
        );
    }

    #[test]
    fn durations_powers_and_how_they_are_shown() {
        assert_eq!(duration_ns("20", "us"), Ok(20_000));
        assert_eq!(duration_ns("1.5s", "us"), Ok(1_500_000_000));
        assert_eq!(power_uw("4.5"), Ok(4_500_000));
        assert_eq!(power_uw("4500mW"), Ok(4_500_000));
        assert_eq!(show_khz(125_000), "125 MHz");
        assert_eq!(show_khz(2_399_998), "2.40 GHz");
        assert_eq!(show_ns(300_000), "300 us");
        assert_eq!(show_uw(15_500_000), "15.5 W");
    }
}
