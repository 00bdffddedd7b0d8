//! How long a section lasts: a distribution in microseconds.

use std::fmt;
use std::str::FromStr;
use wattwise_figure::Random;

/// A distribution of lengths, us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Section {
    /// Always the same.
    Fixed(f64),
    /// Evenly from the first to the second.
    Uniform(f64, f64),
    /// Exponentially, with this mean: many short, few long.
    Exponential(f64),
}

/// Study 004's bounds: sections drawn evenly from 0 to these.
pub const PRESETS: [(&str, Section); 2] =
    [("short", Section::Uniform(0.0, 3.7)), ("long", Section::Uniform(0.0, 366.0))];

/// Longest section allowed, us: beyond it a measurement would hold a handful of acquisitions.
const LONGEST_US: f64 = 100_000.0;

/// Drawn in a row, one from each.
const STRATA: usize = 16;

impl Section {
    /// `n` lengths drawn, us: in each 16 in a row one from each sixteenth of the distribution, in random order. A window
    /// holds a few hundred long sections or fewer; drawn freely their mean would differ by percents from run to run,
    /// which is noise in the comparison of locks.
    pub fn draw(self, n: usize, random: &mut Random) -> Vec<f64> {
        let mut lengths = Vec::with_capacity(n.next_multiple_of(STRATA));
        let mut strata: [usize; STRATA] = std::array::from_fn(|k| k);
        while lengths.len() < n {
            random.shuffle(&mut strata);
            lengths.extend(strata.map(|k| self.quantile((k as f64 + random.unit()) / STRATA as f64)));
        }
        lengths.truncate(n);
        lengths
    }

    /// The length below which a share `q` of them is, us.
    fn quantile(self, q: f64) -> f64 {
        match self {
            Section::Fixed(us) => us,
            Section::Uniform(low, high) => low + (high - low) * q,
            Section::Exponential(mean) => -mean * (1.0 - q).ln(),
        }
    }

    /// The mean, us.
    pub fn mean(self) -> f64 {
        match self {
            Section::Fixed(us) | Section::Exponential(us) => us,
            Section::Uniform(low, high) => (low + high) / 2.0,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Section::Fixed(us) => write!(f, "{us}"),
            Section::Uniform(low, high) => write!(f, "{low}-{high}"),
            Section::Exponential(mean) => write!(f, "exp:{mean}"),
        }
    }
}

impl FromStr for Section {
    type Err = String;

    fn from_str(text: &str) -> Result<Section, String> {
        if let Some((_, section)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Ok(*section);
        }
        let us = |t: &str| t.parse().ok().filter(|us| (0.0..=LONGEST_US).contains(us));
        let section = match (text.strip_prefix("exp:"), text.split_once('-')) {
            (Some(mean), _) => us(mean).map(Section::Exponential),
            (None, Some((low, high))) => us(low)
                .zip(us(high))
                .filter(|(low, high)| low <= high)
                .map(|(low, high)| Section::Uniform(low, high)),
            (None, None) => us(text).map(Section::Fixed),
        };
        section.ok_or_else(|| {
            format!(
                "section {text:?}: expected us as 3.7 (fixed), 0-3.7 (even), exp:3.7 (exponential), short (0-3.7) or \
                 long (0-366), at most {LONGEST_US}"
            )
        })
    }
}

impl serde::Serialize for Section {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Section {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Section, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sixteen_in_a_row_stand_for_all() {
        let drawn = Section::Uniform(0.0, 16.0).draw(1600, &mut Random::new(7));
        for row in drawn.chunks(16) {
            let mut strata: Vec<usize> = row.iter().map(|us| *us as usize).collect();
            strata.sort_unstable();
            assert_eq!(strata, (0..16).collect::<Vec<_>>(), "{row:?}");
        }
        // The order within a row is random: no place of it has a preferred stratum.
        for place in 0..16 {
            let mean = drawn.iter().skip(place).step_by(16).sum::<f64>() / 100.0;
            assert!((mean - 8.0).abs() < 2.0, "{place}: {mean}");
        }
        assert_eq!(Section::Fixed(3.7).draw(3, &mut Random::new(1)), [3.7; 3]);
    }

    #[test]
    fn sections_are_read_drawn_and_written() {
        for (text, mean) in [("3.7", 3.7), ("0-366", 183.0), ("exp:20", 20.0), ("0", 0.0)] {
            let section: Section = text.parse().expect("valid");
            assert_eq!(section.to_string(), text);
            assert_eq!(section.mean(), mean);
            let drawn = section.draw(20_000, &mut Random::new(1)).iter().sum::<f64>() / 20_000.0;
            assert!((drawn - mean).abs() <= mean * 0.01, "{text}: {drawn}");
        }
        assert_eq!("long".parse(), Ok(Section::Uniform(0.0, 366.0)));
        for wrong in ["", "x", "-1", "5-2", "exp:-3", "1e9", "NaN", "0-inf"] {
            let why = wrong.parse::<Section>().expect_err(wrong);
            assert!(why.contains("expected"), "{why}");
        }
    }
}
