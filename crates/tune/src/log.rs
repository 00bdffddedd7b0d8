//! The file of a search: JSON lines, one for each thing that happened, in order.
//!
//! | line | what it says | written |
//! |---|---|---|
//! | `plan` | all that was asked: budget, cases by name and content, space, limits, seed | before anything else |
//! | `budget` | another budget, given when it was gone on with | before it counts |
//! | `reference` | what the reference policy came to, which tells whether work, machine and program are still the same | before the first trial |
//! | `trial` | a policy, and what was seen of it | after it |
//! | `spent` | time that the search has taken so far, where its budget is a time | after a batch of trials |
//! | `searched` | the search is over, and why | after its last trial |
//! | `test` | the winner, for which the test set is opened | before the test set is looked at |
//! | `test_reference` | what the reference policy came to there | before the first look |
//! | `test_looks` | what was seen there of the winner and its defaults | after some looks |
//! | `done` | all has been looked at, and the result follows | at the end |
//!
//! A line is written when the thing has happened and never changed. Everything else follows from these lines and the seed, so
//! a search that was killed anywhere, in its test too, goes on from the file (`--resume`) to the result that it would have had.
//! The winner is in the file before the test set is opened, and what was seen of the test set is not looked at again: it
//! cannot choose. Only the last line can be torn.

use crate::result::{Ended, Used};
use crate::spend::Spend;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wattwise_advice::paired::Look;
use wattwise_figure::mistake::of_json_line;

/// Version of the lines.
pub const SCHEMA: &str = "wattwise.tune-log/3";

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
    /// For each of them, its file where it is made of what a machine says (`this`, a capture): made again it may differ, by a
    /// clock that is measured.
    pub machine_files: Vec<Option<String>>,
    /// For each of these, what tells the machine from another, as whoever made the plan writes it; none: nobody asked.
    #[serde(default)]
    pub machine_identities: Vec<Option<String>>,
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
    /// What the search may take.
    pub budget: Spend,
    /// Where the policy file goes.
    pub output: String,
    /// Every recording on every machine, as they were found when the search began.
    pub cases: Vec<PlannedCase>,
}

/// A recording on a machine, and what was in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// The recording's name.
    pub workload: String,
    /// What is in it ([`content`](crate::content)).
    pub workload_content: String,
    /// What it is used for.
    pub used: Used,
    /// The machine's name.
    pub machine: String,
    /// What is in its model.
    pub machine_content: String,
    /// The policy that others are held against there.
    pub reference: String,
}

impl SearchPlan {
    /// What of the work and the machines is no longer as it was planned, a few words; none where nothing has changed.
    pub fn changed(&self, now: &[PlannedCase]) -> Option<String> {
        if self.cases.len() != now.len() {
            return Some(format!("there are {} cases now, {} were planned", now.len(), self.cases.len()));
        }
        self.cases.iter().zip(now).find(|(before, now)| before != now).map(|(before, now)| {
            if (&before.workload, &before.workload_content) != (&now.workload, &now.workload_content) {
                format!("the recording {} has changed since it was planned", before.workload)
            } else if (&before.machine, &before.machine_content) != (&now.machine, &now.machine_content) {
                format!("the machine {} has changed since it was planned", before.machine)
            } else {
                format!("{} on {} is not used as it was planned", before.workload, before.machine)
            }
        })
    }
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
    /// What the search may take from now on.
    Budget(Spend),
    /// Seconds that the search has taken so far.
    Spent(f64),
    /// The search is over.
    Searched(Ended),
    /// The test set was opened for this policy.
    Test(String),
    /// What the reference policy came to in each cell of the test.
    TestReference(Vec<f64>),
    /// The next looks at the test set: the winner's in all cells, then its defaults'; null where the work did not end.
    TestLooks(Vec<Option<Look>>),
    /// All has been looked at.
    Done,
}

/// Why a file cannot be gone on with: one line.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}; expected the log of a search (wattwise tune --log FILE)")]
pub struct LogError {
    path: String,
    problem: String,
}

/// What an earlier part of a search has come to.
#[derive(Clone, Debug, Default)]
pub struct KnownTrials {
    /// What the reference policy came to; none where it had not come so far.
    pub reference: Option<Vec<f64>>,
    /// The trials, in their order.
    pub trials: Vec<Trial>,
    /// Time that the search took.
    pub spent: Duration,
    /// Why the search ended, where it did.
    pub searched: Option<Ended>,
    /// The policy for which the test set was opened, where it was.
    pub test: Option<String>,
    /// What the reference policy came to there.
    pub test_reference: Option<Vec<f64>>,
    /// What was seen there.
    pub test_looks: Vec<Option<Look>>,
    /// Whether all has been looked at.
    pub done: bool,
}

impl KnownTrials {
    /// How far it had come, for people.
    pub fn told(&self) -> String {
        let trials = format!("{} trials", self.trials.len());
        match (&self.test, self.done) {
            (_, true) => "is complete; its result once more".to_owned(),
            (Some(winner), _) => {
                format!("is incomplete: it was broken off in the test of {winner}, which goes on")
            }
            (None, _) if self.searched.is_some() => {
                format!(
                    "is incomplete: it was broken off after the {trials} of its search, before its test, which comes now"
                )
            }
            _ => format!("is incomplete: it was broken off, and the search goes on after its {trials}"),
        }
    }
}

/// A file that was read.
#[derive(Debug)]
pub struct TuneRead {
    /// What was asked; its budget is the last that was given.
    pub plan: SearchPlan,
    /// What it has come to.
    pub known: KnownTrials,
    /// Whether the last line is torn: it counts as not written.
    pub torn: bool,
    /// Bytes up to the end of the last whole line.
    whole: u64,
}

/// Whether a file is a log that was broken off while its first line was written: there is nothing to go on with, and nothing
/// in it to lose.
pub fn has_no_plan_yet(path: &Path) -> bool {
    const BEGIN: &[u8] = b"{\"plan\":";
    wattwise_figure::budget::read_result(path).is_ok_and(|text| {
        let n = text.len().min(BEGIN.len());
        !text.contains(&b'\n') && text[..n] == BEGIN[..n]
    })
}

/// Reads a file.
///
/// # Errors
/// One line: it cannot be read, or is no such file.
pub fn read(path: &Path) -> Result<TuneRead, LogError> {
    let fail = |problem: String| LogError { path: path.display().to_string(), problem };
    let bytes = wattwise_figure::budget::read_result(path).map_err(|e| fail(e.to_string()))?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let mut lines = bytes[..whole].split(|b| *b == b'\n').filter(|l| !l.is_empty()).enumerate();
    let parse = |(n, line): (usize, &[u8])| {
        let why = |e: serde_json::Error| format!("line {}: {}", n + 1, of_json_line(&e.to_string()));
        serde_json::from_slice::<Line>(line).map_err(|e| fail(why(e)))
    };
    let plan = match lines.next().map(parse).transpose()? {
        Some(Line::Plan(plan)) if plan.schema == SCHEMA => *plan,
        Some(Line::Plan(plan)) => return Err(fail(format!("has schema '{}'", plan.schema))),
        None if has_no_plan_yet(path) => {
            let why = "it was broken off before its plan was written, so start it again without --resume";
            return Err(fail(why.into()));
        }
        _ => return Err(fail("it does not begin with a plan".into())),
    };
    let torn = whole < bytes.len();
    let mut read = TuneRead { plan, known: KnownTrials::default(), torn, whole: whole as u64 };
    let known = &mut read.known;
    for line in lines {
        match parse(line)? {
            Line::Plan(_) => return Err(fail("it has two plans".into())),
            Line::Reference(costs) => known.reference = Some(costs),
            Line::Trial(trial) => known.trials.push(trial),
            Line::Budget(budget) => {
                read.plan.budget = budget;
                (known.searched, known.done) = (None, false);
            }
            Line::Spent(s) => {
                let spent = Duration::try_from_secs_f64(s);
                known.spent = spent.map_err(|e| fail(format!("'spent' is {s}: {e}")))?;
            }
            Line::Searched(ended) => known.searched = Some(ended),
            Line::Test(winner) if known.test.as_ref().is_some_and(|w| *w != winner) => {
                return Err(fail("its test set was opened for two policies".into()));
            }
            Line::Test(winner) => known.test = Some(winner),
            Line::TestReference(costs) => known.test_reference = Some(costs),
            Line::TestLooks(looks) => known.test_looks.extend(looks),
            Line::Done => known.done = true,
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
    /// A new file with its plan; that it cannot be written is a [`Log::problem`].
    ///
    /// # Errors
    /// There can be no file of that name.
    pub fn create(path: &Path, plan: &SearchPlan) -> std::io::Result<Log> {
        let mut log =
            Log { path: path.to_owned(), file: Some(wattwise_output::Log::create(path)?), problem: None };
        log.line(&Line::Plan(Box::new(plan.clone())));
        Ok(log)
    }

    /// Goes on behind the last whole line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn resume(path: &Path, read: &TuneRead) -> std::io::Result<Log> {
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

    fn case(workload: &str) -> PlannedCase {
        PlannedCase {
            workload: workload.into(),
            workload_content: "1".into(),
            used: Used::Train,
            machine: "m".into(),
            machine_content: "2".into(),
            reference: "r".into(),
        }
    }

    fn plan() -> SearchPlan {
        SearchPlan {
            schema: SCHEMA.into(),
            version: "0".into(),
            workloads: vec!["build".into()],
            machines: vec!["this".into()],
            machine_files: vec![Some("[platform]\n".into())],
            machine_identities: vec![None],
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
            budget: Spend { trials: Some(7), time: Some(Duration::from_millis(1500)) },
            output: "a.toml".into(),
            cases: vec![case("one"), case("two")],
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
        assert_eq!((&back.plan, back.known.trials.as_slice()), (&plan(), &[trial(0.1 * 3.0)][..]));
        assert!(back.torn);
        assert_eq!(back.known.reference, Some(vec![1.0 / 3.0, 2.5e-7]));
        let mut log = Log::resume(&path, &back).unwrap();
        log.line(&Line::Test("burst".into()));
        assert!(std::fs::read(&path).unwrap()[good..].starts_with(b"{\"test\""));
        let again = read(&path).unwrap();
        assert_eq!((again.known.test.as_deref(), again.torn), (Some("burst"), false));
        // No second policy is looked at in the test set.
        log.line(&Line::Test("ondemand".into()));
        assert!(read(&path).unwrap_err().to_string().contains("opened for two policies"));
    }

    #[test]
    fn what_has_changed_since_the_plan_is_named() {
        let plan = plan();
        assert_eq!(plan.changed(&[case("one"), case("two")]), None);
        let with = |change: fn(&mut PlannedCase)| {
            let mut two = case("two");
            change(&mut two);
            plan.changed(&[case("one"), two]).unwrap()
        };
        assert_eq!(
            with(|c| c.workload_content.push('x')),
            "the recording two has changed since it was planned"
        );
        assert_eq!(with(|c| c.machine_content.push('x')), "the machine m has changed since it was planned");
        assert_eq!(with(|c| c.used = Used::Test), "two on m is not used as it was planned");
        assert_eq!(plan.changed(&[case("one")]).unwrap(), "there are 1 cases now, 2 were planned");
    }

    #[test]
    fn what_is_no_log_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for (text, told) in [
            ("", "before its plan was written"),
            ("{\"header\":{}}\n", "line 1: "),
            ("{\"test\":\"burst\"}\n", "does not begin with a plan"),
            ("\u{1}\n", "line 1: "),
            ("{\"plan\":{\"sche", "before its plan was written"),
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
        let full = Log::create(Path::new("/dev/full"), &plan());
        assert!(full.is_ok_and(|mut log| log.problem().is_some_and(|p| p.contains("full"))));
    }
}
