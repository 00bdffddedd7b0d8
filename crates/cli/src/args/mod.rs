//! What several commands take.

pub(crate) mod root;
pub(crate) mod select;
pub(crate) mod settings;

use std::time::Duration;
use wattwise_figure::units::duration_ns;

/// A length of time: `30s`, `10min`, `300us`; seconds where it has no unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_ns(text, "s").map(Duration::from_nanos).map_err(|e| e.to_string())
}
