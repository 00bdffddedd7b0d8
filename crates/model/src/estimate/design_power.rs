//! The design power of server processors by their names, as their makers publish it (`machines/data/design-power.csv`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("../../../../machines/data/design-power.csv");

/// Words that names have or lack without being another processor.
const FILLERS: [&str; 8] = ["intel", "amd", "cpu", "processor", "dual-core", "quad-core", "six-core", "core"];

/// The design power of a package, in W, of a processor as the operating system or a result page names it. `None` where the table
/// does not have it.
pub fn of(name: &str) -> Option<f64> {
    static BY_KEY: OnceLock<BTreeMap<String, f64>> = OnceLock::new();
    let by_key = BY_KEY.get_or_init(|| {
        let row = |line: &str| {
            let (name, watts) = line.rsplit_once(',')?;
            Some((key(name), watts.parse().ok()?))
        };
        TABLE.lines().skip(1).filter_map(row).collect()
    });
    by_key.get(&key(name)).copied()
}

/// What is left of a name without clock, trade marks and fillers: `xeon e5-2660 v2`.
fn key(name: &str) -> String {
    let plain = name.to_ascii_lowercase().replace("(r)", " ").replace("(tm)", " ");
    // What follows is the clock, or a remark.
    let plain = plain.split(['@', '(']).next().unwrap_or_default();
    let given: Vec<&str> = plain.split_whitespace().collect();
    let mut words: Vec<&str> = Vec::new();
    for (at, word) in given.iter().enumerate() {
        let clock = word.ends_with("ghz") || given.get(at + 1) == Some(&"ghz");
        let cores = word.strip_suffix("-core").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        if !clock && !cores && !FILLERS.contains(word) {
            words.extend(parted(word));
        }
    }
    if words.first().is_some_and(|w| ["e3-", "e5-", "e7-"].iter().any(|series| w.starts_with(series))) {
        words.insert(0, "xeon");
    }
    words.join(" ")
}

/// A version or a low-power mark that hangs on the number, as a word of its own: `e3-1265lv3`, `2376he`.
fn parted(word: &str) -> impl Iterator<Item = &str> {
    let versioned = ["e3-", "e5-", "e7-"].iter().any(|series| word.starts_with(series));
    let at = match word.rfind('v') {
        Some(at) if versioned && at + 2 == word.len() => at,
        _ if word.len() == 6 && word.starts_with(|c: char| c.is_ascii_digit()) => {
            word.find(|c: char| !c.is_ascii_digit()).filter(|at| *at == 4).unwrap_or(word.len())
        }
        _ => word.len(),
    };
    let (number, mark) = word.split_at_checked(at).unwrap_or((word, ""));
    [number, mark].into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_written() {
        for (name, watts) in [
            ("Intel(R) Xeon(R) CPU E5-2699 v3 @ 2.30GHz", Some(145.0)),
            ("Intel Xeon E5-2470 2.3 GHz (Intel Turbo Boost Technology up to 3.10 GHz)", Some(95.0)),
            ("Intel Xeon E3-1265LV3", Some(45.0)),
            ("Intel E3-1260L v5", Some(45.0)),
            ("AMD EPYC 7763 2.45GHz", Some(280.0)),
            ("AMD EPYC 9654 96-Core Processor", Some(360.0)),
            ("AMD Opteron 6366 HE (AMD Turbo CORE Technology up to 3.10GHz)", Some(85.0)),
            ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", Some(270.0)),
            // A Xeon of 2006 and one of 2017, an Opteron and a Xeon may have the same number.
            ("Intel(R) Xeon(R) CPU 5120 @ 1.86GHz", Some(65.0)),
            ("Intel(R) Xeon(R) Gold 5120 CPU @ 2.20GHz", Some(105.0)),
            ("AMD Opteron 8380", None),
            ("Intel Xeon Processor 3.4 GHz", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(of(name), watts, "{name}");
        }
    }

    #[test]
    fn every_row_is_read_and_found_by_its_own_name() {
        assert!(TABLE.lines().count() > 1500);
        for line in TABLE.lines().skip(1) {
            let (name, watts) = line.rsplit_once(',').expect("two cells");
            let watts: f64 = watts.parse().expect("a number");
            assert!((1.0..1000.0).contains(&watts), "{line}");
            assert_eq!(of(name), Some(watts), "{name}");
        }
    }
}
