//! Sets of CPUs, in the kernel's own notation (`0-3,8`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The highest CPU number taken from a list: twice what any kernel is built for. A typing mistake
/// such as `0-99999999999` must not fill the memory.
const MOST: u32 = 16_384;

/// A set of CPU numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CpuSet(BTreeSet<u32>);

/// A list that is not in the kernel's notation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{list}: '{part}' {why}; expected numbers up to {MOST} such as 0-3,8 or 0-15:2/4")]
pub struct BadList {
    list: String,
    part: String,
    why: &'static str,
}

impl CpuSet {
    /// No CPU.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Reads `0-3,8`; `0-15:2/4` takes the first two of each four, as the kernel does. An empty list is an
    /// empty set.
    pub fn parse(list: &str) -> Result<CpuSet, BadList> {
        let mut set = BTreeSet::new();
        for part in list.split([',', ' ']).map(str::trim).filter(|p| !p.is_empty()) {
            let of = |why| BadList { list: list.trim().to_owned(), part: part.to_owned(), why };
            let bad = || of("is no CPU number or range");
            let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= MOST).ok_or_else(bad);
            let (range, stride) = part.split_once(':').map_or((part, None), |(r, s)| (r, Some(s)));
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            let (used, group) = match stride {
                Some(s) => s.split_once('/').map(|(u, g)| Ok((number(u)?, number(g)?))).ok_or_else(bad)??,
                None => (1, 1),
            };
            if first > last {
                return Err(of("ends before it begins"));
            }
            if group == 0 {
                return Err(bad());
            }
            set.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
        }
        Ok(CpuSet(set))
    }

    /// Reads the kernel's bitmaps: words of 32 bits in hexadecimal, the highest first, with commas between. `None`
    /// for anything else.
    pub fn parse_mask(mask: &str) -> Option<CpuSet> {
        let mut set = BTreeSet::new();
        for (word, digits) in mask.trim().rsplit(',').enumerate() {
            let first = u32::try_from(word).ok()?.checked_mul(32).filter(|cpu| *cpu < MOST)?;
            let hex = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let bits = u32::from_str_radix(digits, 16).ok().filter(|_| hex)?;
            set.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit));
        }
        Some(CpuSet(set))
    }

    /// As the kernel's bitmaps are written: the inverse of [`CpuSet::parse_mask`].
    pub fn mask(&self) -> String {
        let words = self.iter().last().map_or(1, |last| last / 32 + 1);
        let word = |w: u32| self.iter().filter(|c| c / 32 == w).fold(0u32, |bits, c| bits | 1 << (c % 32));
        (0..words).rev().map(|w| format!("{:08x}", word(w))).collect::<Vec<_>>().join(",")
    }

    /// Whether the CPU is in it.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// How many CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        self.0.insert(cpu);
    }

    /// The CPUs in both.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs here that are not in the other.
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        CpuSet(cpus.into_iter().collect())
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        self.0.extend(cpus);
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

impl TryFrom<String> for CpuSet {
    type Error = BadList;
    fn try_from(list: String) -> Result<CpuSet, BadList> {
        CpuSet::parse(&list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (list, shown) in [
            ("0-3,8", "0-3,8"),
            ("8,0,1,2,3", "0-3,8"),
            ("0 1 2", "0-2"),
            ("0-1\n", "0-1"),
            ("", ""),
            ("0-15:2/4", "0-1,4-5,8-9,12-13"),
            ("7", "7"),
        ] {
            assert_eq!(CpuSet::parse(list).map(|s| s.to_string()).as_deref(), Ok(shown), "{list:?}");
        }
    }

    #[test]
    fn masks_are_read_and_written_as_the_kernel_does() {
        for (list, mask) in [
            ("0-1", "00000003"),
            ("0,33", "00000002,00000001"),
            ("64", "00000001,00000000,00000000"),
            ("", "00000000"),
        ] {
            let set = CpuSet::parse(list).expect("a list");
            assert_eq!(set.mask(), mask);
            assert_eq!(CpuSet::parse_mask(mask), Some(set));
        }
        assert_eq!(CpuSet::parse_mask("f\n"), CpuSet::parse("0-3").ok());
        for mask in ["", "g", "+1", "1,,1", "123456789", "-1", &"0,".repeat(600)] {
            assert_eq!(CpuSet::parse_mask(mask), None, "{mask:?}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_part() {
        for list in ["a", "3-1", "0-99999999999", "-1", "0-", "0-3:1", "0-3:1/0", "0x3", "4294967295"] {
            let error = CpuSet::parse(list).expect_err(list).to_string();
            assert!(error.contains("expected numbers"), "{error}");
        }
        let told = |list| CpuSet::parse(list).expect_err(list).to_string();
        assert!(
            told("0,3-1").starts_with("0,3-1: '3-1' ends before it begins; expected"),
            "{}",
            told("0,3-1")
        );
    }
}
