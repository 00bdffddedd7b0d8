//! How far a figure may be off, as a machine file says it.

use serde::Deserialize;

/// How far a file says that a figure may be off.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RangeText")]
pub enum Range {
    /// `"+-10%"`, as a share (0.1).
    Within(f64),
    /// `[low, high]`, in the figure's unit.
    Ends(f64, f64),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "range: expected \"+-10%\" or [low, high]")]
enum RangeText {
    Words(String),
    Ends(f64, f64),
}

impl TryFrom<RangeText> for Range {
    type Error = String;

    fn try_from(text: RangeText) -> Result<Range, String> {
        match text {
            RangeText::Ends(low, high) if low.is_finite() && high.is_finite() && low < high => {
                Ok(Range::Ends(low, high))
            }
            RangeText::Ends(low, high) => {
                Err(format!("range = [{low}, {high}]: expected two figures, the lower first"))
            }
            RangeText::Words(words) => words
                .strip_prefix("+-")
                .or_else(|| words.strip_prefix('±'))
                .and_then(|w| w.trim().strip_suffix('%'))
                .and_then(|w| w.trim().parse::<f64>().ok())
                .filter(|percent| (0.0..=90.0).contains(percent))
                .map(|percent| Range::Within(percent / 100.0))
                .ok_or_else(|| {
                    format!(
                        "range = \"{}\": expected \"+-0%\" to \"+-90%\" or [low, high]",
                        words.escape_debug()
                    )
                }),
        }
    }
}
