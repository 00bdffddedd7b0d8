//! The file of a search: JSON lines, one for each thing that happened, in order.
//!
//! The first line is the plan, the second what the reference policy came to, which tells whether work, machine and program are
//! still the same; then comes a line for each trial, and at the end that the test was opened. A line is written when the
//! thing has happened and never changed. The search follows from the plan and the trials, so it goes on from the file
//! (`--resume`) as if it had not been interrupted. Only the last line can be torn.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use wattwise_advice::paired::Look;

/// Version of the lines.
pub const SCHEMA: &str = "wattwise.tune-log/2";

/// What is searched, as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub version: String,
    /// Recordings, by name or file.
    pub workloads: Vec<String>,
    /// Machines, by name or file; none: each recording's own.
    pub machines: Vec<String>,
    /// The space, written out.
    pub space: String,
    /// The reference policy, where it is not the machine's.
    pub reference: Option<String>,
    /// What is to be small.
    pub best: String,
    /// How much slower than the reference, as a share; none: any.
    pub max_slowdown: Option<f64>,
    /// How much more the 99th percentile of waits, as a share; none: any.
    pub max_p99: Option<f64>,
    /// Recordings of the test set that were named; none: drawn.
    pub test: Vec<String>,
    /// Replicas of the test.
    pub replicas: u64,
    /// Seed of the search, the split and the replicas.
    pub seed: u64,
    /// Tasks that are the work.
    pub foreground: Vec<String>,
    /// Whether other programs are left out.
    pub only_foreground: bool,
    /// Clock at which recordings were made, where they do not say.
    pub recorded_khz: Option<u32>,
    /// What a replay may take, as `--budget` has it.
    pub replay_budget: String,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The policy.
    pub policy: String,
    /// What was seen, cell by cell.
    pub looks: Vec<Look>,
    /// Why it has no end, and in which case.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<(usize, String)>,
}

/// Everything that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Plan(Box<SearchPlan>),
    /// What the reference policy came to in each cell.
    Reference(Vec<f64>),
    /// A policy that was looked at.
    Trial(Trial),
    /// The test set was opened for this policy.
    Test(String),
}

/// Why a file cannot be gone on with: one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}; expected the log of a search (wattwise tune --log FILE)")]
pub struct LogError {
    path: String,
    problem: String,
}

/// A file that was read.
#[derive(Debug)]
pub struct Read {
    /// What was asked.
    pub plan: SearchPlan,
    /// What the reference policy came to; none where it had not come so far.
    pub reference: Option<Vec<f64>>,
    /// The trials, in their order.
    pub trials: Vec<Trial>,
    /// Whether the test set has been opened.
    pub tested: bool,
    /// Bytes up to the end of the last whole line.
    whole: u64,
}

/// Reads a file.
///
/// # Errors
/// One line: it cannot be read, or is no such file.
pub fn read(path: &Path) -> Result<Read, LogError> {
    let fail = |problem: String| LogError { path: path.display().to_string(), problem };
    let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let mut lines = bytes[..whole].split(|b| *b == b'\n').filter(|l| !l.is_empty()).enumerate();
    let parse = |(n, line): (usize, &[u8])| {
        serde_json::from_slice::<Line>(line).map_err(|e| fail(format!("line {}: {e}", n + 1)))
    };
    let plan = match lines.next().map(parse).transpose()? {
        Some(Line::Plan(plan)) if plan.schema == SCHEMA => *plan,
        Some(Line::Plan(plan)) => return Err(fail(format!("has schema '{}'", plan.schema))),
        _ => return Err(fail("it does not begin with a plan".into())),
    };
    let mut read = Read { plan, reference: None, trials: Vec::new(), tested: false, whole: whole as u64 };
    for line in lines {
        match parse(line)? {
            Line::Plan(_) => return Err(fail("it has two plans".into())),
            Line::Reference(costs) => read.reference = Some(costs),
            Line::Trial(trial) => read.trials.push(trial),
            Line::Test(_) => read.tested = true,
        }
    }
    Ok(read)
}

/// The file while it is written. A disk that fills up ends the writing, not the search.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: Option<wattwise_output::Log>,
    problem: Option<String>,
}

impl Log {
    /// A new file with its plan.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, plan: &SearchPlan) -> std::io::Result<Log> {
        let mut log =
            Log { path: path.to_owned(), file: Some(wattwise_output::Log::create(path)?), problem: None };
        log.line(&Line::Plan(Box::new(plan.clone())));
        match log.problem.take() {
            Some(problem) => Err(std::io::Error::other(problem)),
            None => Ok(log),
        }
    }

    /// Goes on behind the last whole line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn resume(path: &Path, read: &Read) -> std::io::Result<Log> {
        let file = wattwise_output::Log::resume(path, read.whole)?;
        Ok(Log { path: path.to_owned(), file: Some(file), problem: None })
    }

    /// No file.
    pub fn none() -> Log {
        Log { path: PathBuf::new(), file: None, problem: None }
    }

    /// Writes a line. After a failure nothing more is written: a line in the middle that is torn would spoil the rest.
    pub fn line(&mut self, line: &Line) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(line).map_err(std::io::Error::other).and_then(|mut text| {
            text.push(b'\n');
            file.append(&text)
        });
        if let Err(e) = written {
            self.problem = Some(format!("{}: {e}", self.path.display()));
            self.file = None;
        }
    }

    /// Why nothing more is written, told once.
    pub fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SearchPlan {
        SearchPlan {
            schema: SCHEMA.into(),
            version: "0".into(),
            workloads: vec!["build".into()],
            machines: Vec::new(),
            space: "burst".into(),
            reference: None,
            best: "energy".into(),
            max_slowdown: Some(0.1),
            max_p99: None,
            test: Vec::new(),
            replicas: 64,
            seed: 1,
            foreground: Vec::new(),
            only_foreground: false,
            recorded_khz: None,
            replay_budget: "events=5".into(),
        }
    }

    fn trial(cost: f64) -> Trial {
        Trial {
            policy: "burst".into(),
            looks: vec![Look { cost, time: 0.1 + 0.2, p99_ns: 7, ..Look::default() }],
            failed: None,
        }
    }

    /// What was written comes back to the last bit, without the line that was being written when the power failed.
    #[test]
    fn a_torn_line_is_left_out_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut log = Log::create(&path, &plan()).unwrap();
        log.line(&Line::Reference(vec![1.0 / 3.0, 2.5e-7]));
        log.line(&Line::Trial(trial(0.1 * 3.0)));
        let mut text = std::fs::read(&path).unwrap();
        let good = text.len();
        text.extend_from_slice(b"{\"trial\":{\"policy\":\"bur");
        std::fs::write(&path, &text).unwrap();
        let back = read(&path).unwrap();
        assert_eq!((&back.plan, back.trials.as_slice()), (&plan(), &[trial(0.1 * 3.0)][..]));
        assert_eq!(back.reference, Some(vec![1.0 / 3.0, 2.5e-7]));
        let mut log = Log::resume(&path, &back).unwrap();
        log.line(&Line::Test("burst".into()));
        assert!(std::fs::read(&path).unwrap()[good..].starts_with(b"{\"test\""));
        assert!(read(&path).unwrap().tested);
    }

    #[test]
    fn what_is_no_log_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for (text, told) in [
            ("", "does not begin with a plan"),
            ("{\"header\":{}}\n", "line 1: "),
            ("{\"test\":\"burst\"}\n", "does not begin with a plan"),
            ("\u{1}\n", "line 1: "),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("a.jsonl") && !error.contains('\n'), "{error}");
        }
        assert!(read(&folder.path().join("none")).is_err());
    }

    /// `/dev/full` takes nothing: the search goes on and is told once.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_ends_the_writing_alone() {
        let mut log = Log {
            path: "full".into(),
            file: wattwise_output::Log::create(Path::new("/dev/full")).ok(),
            problem: None,
        };
        log.line(&Line::Trial(trial(1.0)));
        log.line(&Line::Trial(trial(1.0)));
        assert!(log.problem().is_some_and(|p| p.contains("full")) && log.problem().is_none());
        assert!(Log::create(Path::new("/dev/full"), &plan()).is_err());
    }
}
