//! Figures of a file within their bounds.

/// A figure within bounds, or a sentence.
pub(super) fn within(what: &str, value: f64, low: f64, high: f64, unit: &str) -> Result<f64, String> {
    if value.is_finite() && (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(format!("{what} = {value}: expected {low} to {high}{}{unit}", if unit.is_empty() { "" } else { " " }))
}

/// Watts that a part may draw.
pub(super) fn watts(what: &str, value: f64) -> Result<f64, String> {
    within(what, value, 0.0, 10_000.0, "W")
}

/// Microseconds to ns.
pub(super) fn us(what: &str, value: f64) -> Result<u64, String> {
    within(what, value, 0.0, 1e7, "us").map(|v| (v * 1e3).round() as u64)
}
