//! What is judged as time: the makespan of batch work, the response times of interactive work, missed deadlines.
//!
//! The kind is found once, from the work and its run under the reference policy, and is the same for all policies:
//!
//! | work | judged by |
//! |---|---|
//! | no foreground task ends | response times |
//! | timers hold more than half of the critical path | response times |
//! | any other | makespan: from the release to the end of the last foreground task that ends |
//! | response times, but no episode of 1 ms or more | deadlines: the share of episodes that missed theirs, or of periods overrun |
//!
//! A stretch is an episode's response time over the same episode's under the reference policy in the same replica. Which
//! tasks meet on which CPU is chaotic, so that even a second run of the reference policy, in another phase, stretches some
//! episodes. Another policy changes the order of tasks more than another phase does: some episodes take longer, and others
//! are shorter by as much. So what is judged is by how much the 95th percentile of the stretch exceeds that of such a second
//! run, and that of the shortening, which is the stretch with the roles exchanged ([`beyond`]); the least of all replicas
//! against the least and so on. Of two policies, then, at most one is slower than the other.

use serde::{Deserialize, Serialize};
use wattwise_model::workload::Workload;
use wattwise_sim::outcome::WorkOutcome;

/// Shorter episodes are not judged: nobody notices them.
pub const LEAST_EPISODE_NS: u64 = 1_000_000;
/// Timers that hold more than this share of the critical path make a makespan meaningless.
const TIMERS_HOLD: f64 = 0.5;

/// What is judged as time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// From the release of the foreground to its end, in seconds.
    Makespan,
    /// The 95th percentile of the stretch of episodes, [beyond] what chance stretches.
    Response,
    /// The share of deadlines missed.
    Deadlines,
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
    let long = reference.episodes.iter().flatten().any(|e| e.response_ns() >= LEAST_EPISODE_NS);
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

/// Response times under one policy against those under the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Episodes judged: those of at least 1 ms under the reference.
    pub episodes: u64,
    /// Median of their stretch.
    pub p50: f64,
    /// 95 of 100 are stretched no more.
    pub p95: f64,
    /// 99 of 100 are stretched no more.
    pub p99: f64,
}

/// The stretch of each judged episode of the tasks that were chosen.
pub struct Stretches {
    rising: Vec<f64>,
    /// Of the episodes that are of 1 ms or more under both policies, 1 over the stretch.
    shortened: Vec<f64>,
}

impl Stretches {
    /// Of the tasks that `of` chooses.
    pub fn new(own: &WorkOutcome, reference: &WorkOutcome, of: impl Fn(usize) -> bool) -> Stretches {
        let (mut rising, mut shortened) = (Vec::new(), Vec::new());
        let tasks = own.episodes.iter().zip(&reference.episodes).enumerate().filter(|(t, _)| of(*t));
        for (own, reference) in tasks.flat_map(|(_, (own, reference))| own.iter().zip(reference)) {
            let (own, reference) = (own.response_ns(), reference.response_ns());
            if reference >= LEAST_EPISODE_NS && own > 0 {
                rising.push(own as f64 / reference as f64);
                if own >= LEAST_EPISODE_NS {
                    shortened.push(reference as f64 / own as f64);
                }
            }
        }
        rising.sort_by(f64::total_cmp);
        shortened.sort_by(f64::total_cmp);
        Stretches { rising, shortened }
    }

    /// What they come to.
    pub fn response(&self) -> Response {
        Response {
            episodes: self.rising.len() as u64,
            p50: quantile(&self.rising, 0.5),
            p95: quantile(&self.rising, 0.95),
            p99: quantile(&self.rising, 0.99),
        }
    }

    /// The 95th percentile of how much longer the same episodes take under the reference, of those that take 1 ms or more
    /// under both; 0 without any. (Those that the reference alone makes long were chosen for being long there.)
    pub fn shortening(&self) -> f64 {
        quantile(&self.shortened, 0.95)
    }
}

/// Stretches of the judged episodes of the tasks that `of` chooses.
pub fn response(own: &WorkOutcome, reference: &WorkOutcome, of: impl Fn(usize) -> bool) -> Response {
    Stretches::new(own, reference, of).response()
}

/// A 95th percentile of stretch, less `spread`, what chance stretches: the larger of a second run's of the reference policy
/// and of the [shortening](Stretches::shortening). Between 1 and `spread` nothing can be told from the reference policy, and the answer is 1.
/// Below 1 the policy is faster.
pub fn beyond(p95: f64, spread: f64) -> f64 {
    if p95 > spread { p95 / spread } else { p95.min(1.0) }
}

/// Deadlines: of tasks that have one, episodes that took longer; without any, periods that were overrun.
pub fn missed(workload: &Workload, work: &WorkOutcome) -> f64 {
    let (mut all, mut late) = (0u64, 0u64);
    for (task, episodes) in workload.tasks.iter().zip(&work.episodes) {
        if let Some(deadline) = task.deadline_ns {
            all += episodes.len() as u64;
            late += episodes.iter().filter(|e| e.response_ns() > deadline).count() as u64;
        }
    }
    if all == 0 {
        (all, late) = (work.periods, work.overruns);
    }
    if all == 0 { 0.0 } else { late as f64 / all as f64 }
}

/// The value that a share `q` of a sorted sample does not exceed, between neighbours in proportion; 0 of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[at as usize], sorted[(at as usize + 1).min(last)]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_model::workload::{Program, Script, ScriptBuilder, Task};
    use wattwise_sim::outcome::Episode;

    fn script() -> Script {
        ScriptBuilder::new().finish()
    }

    fn work(ends: bool) -> Workload {
        let task = Task { ends, ..Task::new("t", Program::Recorded(script())) };
        Workload::new("w", "a test", vec![task], 0)
    }

    fn ran(ms: &[u64], timer_ms: u64) -> WorkOutcome {
        let episode = |&ms: &u64| Episode { began_ns: 5, ended_ns: 5 + ms * 1_000_000 };
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

    #[test]
    fn stretches_pair_the_same_episodes_and_leave_short_ones_out() {
        let reference = ran(&[10, 20, 0, 40], 0);
        let own = ran(&[15, 20, 9, 80], 0);
        let r = response(&own, &reference, |_| true);
        assert_eq!((r.episodes, r.p50), (3, 1.5));
        assert!((r.p95 - 1.95).abs() < 1e-12, "{}", r.p95);
    }

    #[test]
    fn a_shortening_is_the_stretch_with_the_roles_exchanged() {
        let shortening = |own: &_, reference: &_| Stretches::new(own, reference, |_| true).shortening();
        let (one, other) = (ran(&[10, 20, 30, 40], 0), ran(&[40, 20, 15, 44], 0));
        assert!((shortening(&one, &other) - response(&other, &one, |_| true).p95).abs() < 1e-12);
        assert_eq!(shortening(&ran(&[], 0), &ran(&[], 0)), 0.0);
    }

    /// Tasks that meet in another order: neither policy is the slower one. What is lost without a gain counts whole.
    #[test]
    fn at_most_one_of_two_is_slower() {
        let judged = |own: &WorkOutcome, reference: &WorkOutcome| {
            let all = Stretches::new(own, reference, |_| true);
            beyond(all.response().p95, all.shortening().max(1.0))
        };
        let (one, other) = (vec![10; 10], vec![15; 10]);
        let (one, other) = (ran(&[one.clone(), other.clone()].concat(), 0), ran(&[other, one].concat(), 0));
        assert_eq!((judged(&one, &other), judged(&other, &one)), (1.0, 1.0));
        let even = ran(&[10; 20], 0);
        let late = ran(&[vec![20; 2], vec![10; 18]].concat(), 0);
        assert!(judged(&late, &even) == 2.0 && judged(&even, &late) == 1.0);
    }

    #[test]
    fn a_stretch_that_a_second_run_has_as_well_is_none() {
        let of = |p95| beyond(p95, 1.2);
        assert_eq!((of(0.9), of(1.0), of(1.1), of(1.2)), (0.9, 1.0, 1.0, 1.0));
        assert!((of(1.5) - 1.25).abs() < 1e-12);
    }

    #[test]
    fn deadlines_are_the_tasks_own_or_the_periods() {
        let mut w = work(false);
        let mut o = ran(&[10, 20, 30, 40], 0);
        (o.periods, o.overruns) = (8, 2);
        assert_eq!(missed(&w, &o), 0.25);
        w.tasks[0].deadline_ns = Some(25_000_000);
        assert_eq!(missed(&w, &o), 0.5);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5), 3.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.05), 1.05);
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.9)), (0.0, 7.0));
    }
}
