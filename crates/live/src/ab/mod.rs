//! Sound comparisons: arms in random order within blocks, a verdict with an interval that means what it
//! says. `conduct` orders the runs, `judge` decides; what runs an arm is behind `crate::ab::conduct::Bench`: the live
//! machine (`live`), or noise in the tests. `file` keeps everything that happened.

pub mod arm;
pub mod log;
pub mod result;
#[cfg(test)]
mod tests;
mod warmth;

pub use wattwise_proof::conduct;

use regex_lite::Regex;

/// The figure that a command prints: the first group of the pattern's last match, or the whole match.
pub fn figure(pattern: &Regex, output: &str) -> Result<f64, String> {
    let found = pattern.captures_iter(output).last().ok_or_else(|| {
        let last = output.trim_end().lines().last().unwrap_or("");
        format!("nothing in its output matches '{pattern}'; its last line is '{last}'")
    })?;
    let text = found.get(1).or(found.get(0)).map_or("", |m| m.as_str());
    text.trim().parse().map_err(|_| format!("'{text}', which matches '{pattern}', is no number"))
}
