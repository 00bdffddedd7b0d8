//! Missed deadlines and overrun periods, task by task.
//!
//! Judged are tasks whose file states a deadline, and tasks that sleep to absolute times at one interval, at least 20 times a
//! replica, of which the reference policy overruns fewer than half: the stray timers of a recording are no periods. A policy
//! is over the limit if some task misses more than a percentage point more than under the reference policy, and replicas
//! drawn again (bootstrap) leave less than 5 % for chance. It is judged in addition to any other time.

use crate::result::MissedTask;
use serde::{Deserialize, Serialize};
use wattwise_figure::{Random, quantile};
use wattwise_model::workload::Workload;
use wattwise_responses::ResponsesSeen;
use wattwise_sim::outcome::Period;

/// A rise of the missed share by this much is a policy's fault.
const RISE: f64 = 0.01;
/// Periodic sleeps a replica that make a periodic task.
const ENOUGH: f64 = 20.0;
/// How far a sleep's interval may be from the task's.
const ONE_INTERVAL: f64 = 0.1;
/// A reference policy that overruns this share has no rhythm to lose.
const NO_RHYTHM: f64 = 0.5;
/// The chance of seeing a rise where there is none, and the draws that show it.
const LEVEL: f64 = 0.05;
const DRAWS: usize = 400;

/// How often one task was late in one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The task's number.
    task: u32,
    /// The task states a deadline.
    stated: bool,
    /// Episodes or periods.
    of: u32,
    /// Those that were late.
    late: u32,
}

/// The lateness of each foreground task that has deadlines or sleeps to absolute times.
pub(crate) fn late(workload: &Workload, seen: ResponsesSeen<'_>) -> Vec<Late> {
    let tasks = workload.tasks.iter().enumerate().filter(|(_, t)| t.is_foreground());
    let one = |(t, task): (usize, &wattwise_model::workload::Task)| {
        let (of, late) = match task.deadline_ns {
            Some(deadline) => {
                let episodes = seen.work.episodes.get(t)?;
                let responses: Vec<u64> =
                    episodes.iter().filter_map(|e| e.response_ns(seen.end_ns)).collect();
                (responses.len(), responses.iter().filter(|ns| **ns > deadline).count())
            }
            None => rhythm(seen.work.periods.get(t)?),
        };
        let late =
            Late { task: t as u32, stated: task.deadline_ns.is_some(), of: of as u32, late: late as u32 };
        (of > 0).then_some(late)
    };
    tasks.filter_map(one).collect()
}

/// Sleeps at the task's interval, and those of them that came too late.
fn rhythm(periods: &[Period]) -> (usize, usize) {
    let gap = |pair: &[Period]| pair[1].due_ns.saturating_sub(pair[0].due_ns) as f64;
    let mut gaps: Vec<f64> = periods.windows(2).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    let interval = quantile(&gaps, 0.5);
    let regular = periods.windows(2).filter(|pair| (gap(pair) - interval).abs() <= ONE_INTERVAL * interval);
    regular.fold((0, 0), |(of, late), pair| (of + 1, late + usize::from(pair[1].overrun)))
}

/// How often a task was late in each replica, under the policy and under the reference policy.
struct LateTask {
    task: u32,
    own: Vec<Late>,
    reference: Vec<Late>,
}

/// The share that was late, where each replica counts as often as its weight says.
fn share(of: &[Late], weights: impl Fn(usize) -> u32) -> f64 {
    let sum = |what: fn(&Late) -> u32| -> f64 {
        of.iter().enumerate().map(|(r, l)| f64::from(what(l)) * f64::from(weights(r))).sum()
    };
    let all = sum(|l| l.of);
    if all > 0.0 { sum(|l| l.late) / all } else { 0.0 }
}

impl LateTask {
    fn new(task: u32, own: &[&[Late]], reference: &[&[Late]]) -> LateTask {
        let find = |side: &[&[Late]]| -> Vec<Late> {
            side.iter()
                .map(|late| late.iter().find(|l| l.task == task).copied().unwrap_or_default())
                .collect()
        };
        LateTask { task, own: find(own), reference: find(reference) }
    }

    fn is_judged(&self) -> bool {
        let of = self.reference.iter().map(|l| f64::from(l.of)).sum::<f64>();
        let stated = self.reference.iter().chain(&self.own).any(|l| l.stated);
        stated || of >= ENOUGH * self.reference.len() as f64 && share(&self.reference, |_| 1) < NO_RHYTHM
    }

    fn more(&self) -> bool {
        if share(&self.own, |_| 1) - share(&self.reference, |_| 1) <= RISE {
            return false;
        }
        let replicas = self.own.len();
        let mut random = Random::new(1);
        let mut rises: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let mut weights = vec![0u32; replicas];
                (0..replicas).for_each(|_| weights[random.below(replicas)] += 1);
                share(&self.own, |r| weights[r]) - share(&self.reference, |r| weights[r])
            })
            .collect();
        rises.sort_by(f64::total_cmp);
        quantile(&rises, LEVEL) > 0.0
    }
}

/// What each judged task misses in all replicas.
pub(crate) fn missed(own: &[&[Late]], reference: &[&[Late]], workload: &Workload) -> Vec<MissedTask> {
    let mut tasks: Vec<u32> = reference.iter().chain(own).flat_map(|l| l.iter().map(|l| l.task)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let judged = tasks.into_iter().map(|t| LateTask::new(t, own, reference)).filter(LateTask::is_judged);
    let name = |t: u32| workload.tasks.get(t as usize).map_or_else(String::new, |t| t.name.clone());
    judged
        .map(|t| MissedTask {
            task: name(t.task),
            share: share(&t.own, |_| 1),
            reference_share: share(&t.reference, |_| 1),
            slower: t.more(),
        })
        .collect()
}

/// The share of all that was late in one replica, over the tasks that state deadlines, else over those with a rhythm.
pub(crate) fn overall(late: &[Late]) -> f64 {
    let stated = late.iter().any(|l| l.stated);
    let chosen: Vec<Late> = late
        .iter()
        .filter(|l| l.stated == stated && f64::from(l.of) >= if stated { 1.0 } else { ENOUGH })
        .copied()
        .collect();
    share(&chosen, |_| 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(due_ms: &[u64], overrun: &[usize]) -> Vec<Period> {
        let one = |(i, ms): (usize, &u64)| Period { due_ns: ms * 1_000_000, overrun: overrun.contains(&i) };
        due_ms.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_rhythm_has_one_interval() {
        let even: Vec<u64> = (0..50).map(|i| i * 10).collect();
        assert_eq!(rhythm(&periods(&even, &[3, 4])), (49, 2));
        // A pause of 400 ms is no period, and what is late after it does not count.
        assert_eq!(rhythm(&periods(&[0, 10, 20, 420, 430], &[3])), (3, 0));
        assert_eq!(rhythm(&[]), (0, 0));
    }

    fn replicas(late: impl Fn(u32) -> u32) -> Vec<Vec<Late>> {
        (0..32).map(|r| vec![Late { task: 0, stated: false, of: 100, late: late(r) }]).collect()
    }

    fn judge<'a>(own: &'a [Vec<Late>], reference: &'a [Vec<Late>]) -> Vec<MissedTask> {
        let workload = Workload::new("w", "a test", Vec::new(), 0);
        let of = |all: &'a [Vec<Late>]| all.iter().map(Vec::as_slice).collect::<Vec<&'a [Late]>>();
        missed(&of(own), &of(reference), &workload)
    }

    #[test]
    fn a_rise_counts_beyond_a_percentage_point_and_beyond_chance() {
        let none = replicas(|_| 0);
        let slower = |own: &[Vec<Late>]| judge(own, &none)[0].slower;
        assert!(slower(&replicas(|_| 2)));
        assert!(!slower(&replicas(|_| 1)), "a percentage point");
        assert!(!slower(&replicas(|r| if r == 0 { 100 } else { 0 })), "one accident");
        assert!(judge(&none, &replicas(|_| 60)).is_empty(), "there is no rhythm to lose");
    }
}
