//! What is judged as time: the makespan of batch work, the response times of interactive work, missed deadlines.
//!
//! The kind is found once, from the work and its run under the reference policy, and is the same for all policies:
//!
//! | work | judged by |
//! |---|---|
//! | no foreground task ends | response times |
//! | timers hold more than half of the critical path | response times |
//! | any other | makespan: from the release to the end of the last foreground task that ends |
//! | response times, but none of 1 ms or more, or tasks that state deadlines | deadlines: the share missed |
//!
//! The kind says which figure is shown as *the* time. Response times ([`wattwise_responses`]) of the foreground that has no end
//! and missed deadlines (`missed.rs`) are held against the limit whatever the kind.

use serde::{Deserialize, Serialize};
use wattwise_model::workload::Workload;
use wattwise_sim::outcome::WorkOutcome;

/// Where no response takes as long, the share of missed deadlines is shown as time.
const LEAST_RESPONSE_NS: u64 = 1_000_000;
/// Timers that hold more than this share of the critical path make a makespan meaningless.
const TIMERS_HOLD: f64 = 0.5;

/// What is judged as time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// From the release of the foreground to its end, in seconds.
    Makespan,
    /// Noticed waiting in all: the sum of the long responses, in seconds ([`wattwise_responses`]).
    Response,
    /// The share of deadlines missed, or of periods overrun.
    Deadlines,
}

impl TimeKind {
    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            TimeKind::Makespan => "makespan",
            TimeKind::Response => "response",
            TimeKind::Deadlines => "deadlines",
        }
    }
}

/// What is judged, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The kind of time.
    pub kind: TimeKind,
    /// Why this one, in words.
    pub why: String,
}

/// What is judged of this work, which ran so under the reference policy.
pub fn judged(workload: &Workload, reference: &WorkOutcome) -> Judged {
    let interactive = workload.is_interactive();
    let makespan = makespan_ns(reference);
    let held = reference.timer_ns as f64 > TIMERS_HOLD * makespan.unwrap_or(0) as f64;
    if !interactive && !held && makespan.is_some() {
        return Judged { kind: TimeKind::Makespan, why: "the work ends by itself".into() };
    }
    let why = if interactive {
        "no foreground task ends".to_owned()
    } else {
        let share = 100.0 * reference.timer_ns as f64 / makespan.unwrap_or(1).max(1) as f64;
        format!("timers hold {share:.0} % of the critical path")
    };
    let episodes = workload.tasks.iter().zip(&reference.episodes).filter(|(t, _)| t.is_foreground());
    let end_ns = reference.done_ns.unwrap_or(u64::MAX);
    let long = episodes
        .flat_map(|(_, episodes)| episodes)
        .any(|e| e.response_ns(end_ns).is_some_and(|ns| ns >= LEAST_RESPONSE_NS));
    if long && workload.tasks.iter().all(|t| t.deadline_ns.is_none()) {
        Judged { kind: TimeKind::Response, why }
    } else if long {
        Judged { kind: TimeKind::Deadlines, why: format!("{why}, and tasks have deadlines") }
    } else {
        Judged { kind: TimeKind::Deadlines, why: format!("{why}, and no response takes 1 ms") }
    }
}

/// From the release to the end of the last foreground task that ends, in ns.
pub fn makespan_ns(work: &WorkOutcome) -> Option<u64> {
    work.ended_ns.map(|end| end.saturating_sub(work.released_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::workload::{Program, Script, ScriptBuilder, Task};
    use wattwise_sim::outcome::{Episode, EpisodeRuns};

    fn script() -> Script {
        ScriptBuilder::new().finish()
    }

    fn work(ends: bool) -> Workload {
        let task = Task { ends, ..Task::new("t", Program::Recorded(script())) };
        Workload::new("w", "a test", vec![task], 0)
    }

    fn ran(ms: &[u64], timer_ms: u64) -> WorkOutcome {
        let runs = |ms: u64| EpisodeRuns { ended_ns: 5 + ms * 1_000_000, ..EpisodeRuns::default() };
        let episode = |&ms: &u64| Episode { began_ns: 5, recorded: runs(ms), caused: EpisodeRuns::default() };
        WorkOutcome {
            released_ns: 1_000_000,
            ended_ns: Some(101_000_000),
            timer_ns: timer_ms * 1_000_000,
            episodes: vec![ms.iter().map(episode).collect()],
            ..WorkOutcome::default()
        }
    }

    #[test]
    fn the_kind_of_time_follows_from_the_work() {
        let kind = |ends, ms: &[u64], timer_ms| judged(&work(ends), &ran(ms, timer_ms)).kind;
        assert_eq!(kind(true, &[10], 40), TimeKind::Makespan);
        assert_eq!(kind(true, &[10], 60), TimeKind::Response);
        assert_eq!(kind(false, &[10], 0), TimeKind::Response);
        assert_eq!(kind(false, &[0], 0), TimeKind::Deadlines);
        assert_eq!(makespan_ns(&ran(&[], 0)), Some(100_000_000));
    }
}
