//! Numbers as people read them.

/// Stands for what is not a number: a result that was not available.
pub const NONE: &str = "–";

/// Parts thousands; narrow and unbreakable, so that a figure never spreads over two lines.
const THIN: char = '\u{202f}';

/// `value` with so many decimals, thousands parted.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    // A rounded "-0.0" would only puzzle.
    if value < 0.0 && text.contains(|c: char| ('1'..='9').contains(&c)) {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        // Four digits stay together: years and megahertz read better so.
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push(THIN);
        }
        out.push(digit);
    }
    out + rest
}

/// Decimals that give the greatest of a column four significant digits, so that its points line up.
pub fn decimals(column: impl IntoIterator<Item = f64>) -> usize {
    let greatest = column.into_iter().filter(|v| v.is_finite()).fold(0.0, |a: f64, v| a.max(v.abs()));
    if greatest == 0.0 {
        return 0;
    }
    (3 - greatest.log10().floor() as i32).clamp(0, 9) as usize
}

/// Three significant digits with an SI prefix: `1.23 kJ`.
pub fn si(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];
    // Rounding first: 999.9 is 1.00 k, not 1000.
    let size = value.abs() * 1.0005;
    let (factor, prefix) = match size {
        0.0 => (1.0, ""),
        _ => prefixes.into_iter().find(|(f, _)| size >= *f).unwrap_or((1e-9, "n")),
    };
    let scaled = value / factor;
    let digits =
        if scaled == 0.0 { 0 } else { (2 - (scaled.abs() * 1.0005).log10().floor() as i32).clamp(0, 2) };
    format!("{}\u{a0}{prefix}{unit}", fixed(scaled, digits as usize))
}

/// A time: seconds with a prefix below a minute, minutes and hours above.
pub fn time(s: f64) -> String {
    if !s.is_finite() || s < 60.0 {
        return si(s, "s");
    }
    let whole = s.round() as u64;
    match whole {
        0..3600 => format!("{}\u{a0}min {:02}\u{a0}s", whole / 60, whole % 60),
        _ => format!("{}\u{a0}h {:02}\u{a0}min", whole / 3600, whole % 3600 / 60),
    }
}

/// A share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    match share.is_finite() {
        true => format!("{}\u{a0}%", fixed(share * 100.0, 1)),
        false => NONE.to_owned(),
    }
}

/// Round values between two, 1, 2 or 5 times a power of ten apart, with their text; about `most` of them.
pub fn ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let raw = (high - low) / most.max(1) as f64;
    if !(raw.is_finite() && raw > 0.0) {
        return Vec::new();
    }
    let ten = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * ten).into_iter().find(|s| *s >= raw * 0.999).unwrap_or(raw);
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).map(|v| (v, fixed(v, decimals))).collect()
}

/// A clock rate.
pub fn speed(khz: u32) -> String {
    match khz {
        1_000_000.. => format!("{:.2}\u{a0}GHz", f64::from(khz) / 1e6),
        _ => format!("{:.0}\u{a0}MHz", f64::from(khz) / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(fixed(1234567.891, 1), "1\u{202f}234\u{202f}567.9");
        assert_eq!(fixed(1234.5, 0), "1234");
        assert_eq!(fixed(-0.01, 1), "0.0");
        assert_eq!(fixed(-12.0, 0), "−12");
        assert_eq!(fixed(f64::NAN, 3), NONE);
        assert_eq!(si(1234.0, "J"), "1.23\u{a0}kJ");
        assert_eq!(si(999.9, "J"), "1.00\u{a0}kJ");
        assert_eq!(si(0.0, "J"), "0\u{a0}J");
        assert_eq!(si(0.0000123, "s"), "12.3\u{a0}µs");
        assert_eq!(si(99.99, "W"), "100\u{a0}W");
        assert_eq!(time(125.0), "2\u{a0}min 05\u{a0}s");
        assert_eq!(percent(0.1234), "12.3\u{a0}%");
        let texts: Vec<String> = ticks(-21.0, 22.0, 6).into_iter().map(|t| t.1).collect();
        assert_eq!(texts, ["−20", "−10", "0", "10", "20"]);
        assert!(ticks(1.0, 1.0, 6).is_empty() && ticks(0.0, f64::INFINITY, 6).is_empty());
        assert_eq!(decimals([12.3, 4.0]), 2);
        assert_eq!(decimals([0.0]), 0);
        assert_eq!(decimals([123456.0, f64::INFINITY]), 0);
    }
}
