//! What one command may spend on a stranger's file: a damaged time stamp or a slip of the pen must not take years.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;

/// The largest file that people write by hand, in bytes: a machine, a workload, a policy. The largest bundled one has 150 KB.
const MOST_TEXT: u64 = 8 << 20;
/// The largest file of results or of a log, in bytes.
const MOST_RESULT: u64 = 512 << 20;

/// Reads a file that people write by hand.
///
/// # Errors
/// It cannot be read, is no text, or is larger than 8 MiB, as what never ends is.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read(path, MOST_TEXT)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Reads a file of results or a log.
///
/// # Errors
/// It cannot be read, or is larger than 512 MiB, as what never ends is.
pub fn read_result(path: &Path) -> io::Result<Vec<u8>> {
    read(path, MOST_RESULT)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("is larger than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// The most of each thing that a replay may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    most: [u64; PARTS.len()],
}

/// A thing that is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetPart {
    /// Simulated time of one run, s.
    Simulated,
    /// Events of the engine in one run.
    Events,
    /// Tasks of a recording.
    Tasks,
    /// CPUs of a recording.
    Cpus,
    /// What a packed recording unpacks to, bytes.
    Disk,
    /// The tasks of a recording and their steps, bytes.
    Memory,
    /// What a recording in text has beside its events, bytes.
    Text,
}

/// Name in the flag, unit in a sentence, default, in the order of [`BudgetPart`].
const PARTS: [(&str, &str, u64); 7] = [
    // A day: recordings are of minutes.
    ("simulated", "simulated seconds", 86_400),
    // A minute of computing for a run; a recording of ten million events takes a tenth.
    ("events", "simulated events a run", 500_000_000),
    // Ten times what the largest builds start.
    ("tasks", "tasks", 200_000),
    // As many as a machine file may have.
    ("cpus", "CPUs", 1024),
    // A recording of ten million events has 900 MB.
    ("disk", "unpacked bytes", 4 << 30),
    // Twenty times what a recording of ten million events needs.
    ("memory", "bytes of tasks and steps", 4 << 30),
    // Seconds of reading; the head of the longest page, a viewer's program, has some MB.
    ("text", "bytes of text beside the events", 64 << 20),
];

/// More was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {most} {unit}, the budget; a damaged file, or --budget {name}={raised} for more")]
pub struct OverBudget {
    name: &'static str,
    unit: &'static str,
    most: u64,
    raised: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { most: PARTS.map(|p| p.2) }
    }
}

impl Budget {
    /// The most of one thing.
    pub fn most(&self, part: BudgetPart) -> u64 {
        self.most[part as usize]
    }

    /// Whether so much of it is within the budget.
    ///
    /// # Errors
    /// It is not.
    pub fn allows(&self, part: BudgetPart, amount: u64) -> Result<(), OverBudget> {
        let (name, unit, _) = PARTS[part as usize];
        let most = self.most(part);
        let raised = amount.max(most.saturating_mul(2));
        if amount <= most { Ok(()) } else { Err(OverBudget { name, unit, most, raised }) }
    }

    /// Its parts with their defaults, for a flag's help.
    pub fn help() -> String {
        let parts: Vec<String> = PARTS.iter().map(|(name, _, most)| format!("{name}={most}")).collect();
        parts.join(",")
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = PARTS.iter().zip(self.most).map(|((name, ..), most)| format!("{name}={most}"));
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Budget {
    type Err = String;

    /// `tasks=1000000,disk=16000000000`: what is not named keeps its default.
    fn from_str(text: &str) -> Result<Budget, String> {
        let mut budget = Budget::default();
        for part in text.split(',') {
            let expected = || format!("'{part}': expected NAME=NUMBER of {}", Budget::help());
            let (name, number) = part.split_once('=').ok_or_else(expected)?;
            let at = PARTS.iter().position(|p| p.0 == name.trim()).ok_or_else(expected)?;
            // 1e9 as well.
            let number = number.trim().parse::<f64>().ok().filter(|n| *n >= 1.0 && *n < 1e19);
            budget.most[at] = number.ok_or_else(expected)? as u64;
        }
        Ok(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "is larger than 8 MiB");
        assert!(read(Path::new("/dev/zero"), 9).is_err());
        assert_eq!(read(Path::new("/dev/null"), 9).unwrap(), b"");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nine");
        std::fs::write(&path, b"123456789").unwrap();
        assert_eq!(read(&path, 9).unwrap().len(), 9);
        assert!(read(&path, 8).is_err());
    }

    /// Each took minutes, years or the disk before there were budgets.
    #[test]
    fn what_nobody_means_is_over_the_defaults() {
        let budget = Budget::default();
        for (part, amount) in [
            (BudgetPart::Tasks, 3_000_000),
            (BudgetPart::Cpus, 8192),
            (BudgetPart::Simulated, 366 * 86_400),
            (BudgetPart::Events, 10_000_000_000),
            (BudgetPart::Disk, 16 << 30),
            (BudgetPart::Memory, 16 << 30),
            (BudgetPart::Text, 1 << 30),
        ] {
            assert!(budget.allows(part, amount).is_err(), "{part:?}");
        }
    }

    #[test]
    fn a_budget_is_met_with_a_sentence_that_raises_it() {
        let budget: Budget = "tasks=1e3, cpus=4".parse().expect("a budget");
        assert_eq!((budget.most(BudgetPart::Tasks), budget.most(BudgetPart::Cpus)), (1000, 4));
        assert_eq!(budget.most(BudgetPart::Disk), Budget::default().most(BudgetPart::Disk));
        assert!(budget.allows(BudgetPart::Tasks, 1000).is_ok());
        let over = budget.allows(BudgetPart::Tasks, 1001).expect_err("over").to_string();
        assert_eq!(over, "more than 1000 tasks, the budget; a damaged file, or --budget tasks=2000 for more");
        assert_eq!(budget.to_string().parse(), Ok(budget));
        for wrong in ["", "tasks", "tasks=", "tasks=0", "tasks=-1", "tasks=NaN", "years=3", "tasks=inf"] {
            assert!(wrong.parse::<Budget>().is_err_and(|e| e.contains("expected NAME=NUMBER")), "{wrong}");
        }
    }
}
