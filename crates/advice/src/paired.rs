//! One policy after another in the same replicas of one piece of work: for a search, which learns from each policy which
//! one to ask about next.
//!
//! The replicas are drawn once and run once under the reference policy. A policy that is asked about runs in one of them
//! ([`Paired::look`]), and what its runs come to against the reference policy's is judged as [`compare`](crate::compare)
//! judges it ([`Paired::judge`]). What a look shows depends on the replica and the policy alone, so a look that was written down is
//! as good as one that is made.

use crate::error::CompareError;
use crate::judge::{Judge, Sample, cost};
use crate::missed::{self, Late};
use crate::replicas::Replica;
use crate::rule::Rule;
use crate::runs::{PolicyRun, Runs};
use crate::time::TimeKind;
use serde::{Deserialize, Serialize};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;
use wattwise_responses::{Against, Waits};

/// Added to both sides of a ratio of waits, in ns: below a microsecond nobody waits.
const NO_WAIT_NS: f64 = 1000.0;

/// What one policy did in one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// What is to be small.
    pub cost: f64,
    /// The makespan in s, or the share of deadlines missed; 0 where response times are judged.
    pub time: f64,
    /// Response times of the foreground that has no end.
    pub waits: Waits,
    /// Missed deadlines and overrun periods.
    pub late: Vec<Late>,
    /// The 99th percentile of the time from runnable to running, in ns.
    pub p99_ns: u64,
}

/// One look against the reference policy's in the same replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// What is to be small.
    pub cost: f64,
    /// Time: of the makespan, or the largest ratio of the response times of all replicas together; for missed deadlines 1 and
    /// the share that is missed beyond the reference's.
    pub time: f64,
    /// The 99th percentile of waits.
    pub p99: f64,
    /// By how much the time is over the limit: the logarithm of the ratio, or the share of deadlines; at most 0 within it.
    pub over: f64,
}

/// One replica, and the reference policy in it.
struct Base {
    replica: Replica,
    reference: PolicyRun,
    look: Look,
}

/// A piece of work on a machine, ready to be looked at under any policy.
pub struct Paired<'a> {
    runs: Runs<'a, 'a>,
    kind: TimeKind,
    bases: Vec<Base>,
}

impl<'a> Paired<'a> {
    /// Draws the replicas numbered from `first` on, and runs the reference policy in each. The job's policies are not
    /// asked for.
    ///
    /// # Errors
    /// As [`compare`](crate::compare::compare()): the machine's idle policy does not exist, or the work has no foreground
    /// or no end under the reference policy.
    pub fn new(
        job: &'a ReplayJob<'a>,
        rule: Rule,
        reference: &'a PolicySpec,
        first: u64,
        replicas: u64,
    ) -> Result<Paired<'a>, CompareError> {
        Paired::until(job, rule, reference, (first, replicas), &|| false)
    }

    /// [`Paired::new`], ended early once `stop` says so.
    ///
    /// # Errors
    /// As [`Paired::new`]; [`CompareError::Stopped`] where it was stopped.
    pub fn until(
        job: &'a ReplayJob<'a>,
        rule: Rule,
        reference: &'a PolicySpec,
        (first, replicas): (u64, u64),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Paired<'a>, CompareError> {
        if stop() {
            return Err(CompareError::Stopped);
        }
        let runs = Runs::new(job, (reference, rule), &|| {})?;
        let kind = runs.kind()?;
        let base = |number| {
            if stop() {
                return Err(CompareError::Stopped);
            }
            let replica = runs.draw(number)?;
            let reference = runs.run(&replica.circumstances(), reference, None, false)?;
            let look = look(&runs, kind, &replica, (&reference, &reference));
            Ok(Base { replica, reference, look })
        };
        let all = first..first.saturating_add(replicas);
        let bases = wattwise_threads::map::<_, _, _, Result<_, CompareError>>(all, base)?;
        Ok(Paired { runs, kind, bases })
    }

    /// What is judged as time.
    pub fn kind(&self) -> TimeKind {
        self.kind
    }

    /// How many replicas there are.
    pub fn replicas(&self) -> usize {
        self.bases.len()
    }

    /// What the reference policy did in a replica.
    pub fn reference(&self, replica: usize) -> &Look {
        &self.bases[replica].look
    }

    /// What a policy does in a replica.
    ///
    /// # Errors
    /// The work does not end under it, or is not the same.
    pub fn look(&self, replica: usize, policy: &PolicySpec) -> Result<Look, CompareError> {
        let base = &self.bases[replica];
        let with = base.replica.circumstances();
        let ran = self.runs.run(&with, policy, Some(base.reference.window_ns), false)?;
        self.runs.same_work(policy, &ran, &base.reference)?;
        Ok(look(&self.runs, self.kind, &base.replica, (&ran, &base.reference)))
    }

    /// What looks come to, each in the replica of its number: those of one policy in some of the replicas.
    pub fn judge(&self, looks: &[(usize, &Look)]) -> Vec<Ratios> {
        let together = self.together(looks);
        let one = |(replica, look): &(usize, &Look)| {
            let reference = &self.bases[*replica].look;
            let time = match self.kind {
                TimeKind::Makespan => ratio(look.time, reference.time),
                TimeKind::Response => together.time,
                TimeKind::Deadlines => 1.0 + (look.time - reference.time).max(0.0),
            };
            let over = match self.kind {
                TimeKind::Makespan => self.over(time).max(together.over),
                TimeKind::Response | TimeKind::Deadlines => together.over,
            };
            let p99 = (look.p99_ns as f64 + NO_WAIT_NS) / (reference.p99_ns as f64 + NO_WAIT_NS);
            Ratios { cost: ratio(look.cost, reference.cost), time, p99, over }
        };
        looks.iter().map(one).collect()
    }

    /// By how much a ratio of times is over the limit, as a logarithm; without a limit nothing is.
    fn over(&self, time: f64) -> f64 {
        let most = self.runs.rule.max_slowdown;
        if most.is_finite() { (time / (1.0 + most)).ln() } else { -1.0 }
    }

    /// What only all replicas together tell: response times and deadlines.
    fn together(&self, looks: &[(usize, &Look)]) -> Together {
        let base = |of: &(usize, &Look)| &self.bases[of.0].look;
        let own: Vec<&Waits> = looks.iter().map(|(_, l)| &l.waits).collect();
        let reference: Vec<&Waits> = looks.iter().map(|l| &base(l).waits).collect();
        let limit = self.runs.rule.max_slowdown;
        let time = Against::new(&own, &reference, &self.runs.names, limit).excess();
        let own: Vec<&[Late]> = looks.iter().map(|(_, l)| l.late.as_slice()).collect();
        let reference: Vec<&[Late]> = looks.iter().map(|l| base(l).late.as_slice()).collect();
        let missed = missed::missed(&own, &reference, &self.runs.workload);
        let more = missed.iter().filter(|m| m.slower).map(|m| m.share - m.reference_share);
        let late = more.fold(0.0, f64::max);
        let over = if late > 0.0 { late } else { self.over(time) };
        Together { time, over }
    }
}

/// What only all replicas together tell.
struct Together {
    /// The largest ratio of a figure of the response times that counts; at least 1.
    time: f64,
    /// By how much the limit is missed, as [`Ratios::over`].
    over: f64,
}

fn ratio(own: f64, reference: f64) -> f64 {
    if own > 0.0 && reference > 0.0 { own / reference } else { 1.0 }
}

fn look(
    runs: &Runs<'_, '_>,
    kind: TimeKind,
    replica: &Replica,
    (ran, reference): (&PolicyRun, &PolicyRun),
) -> Look {
    // What is above the idle machine is not a goal, so the idle machine is not run.
    let judge = Judge { runs, with: replica.circumstances(), reference, kind, idle_w: 0.0 };
    let sample: Sample = judge.sample(ran);
    Look {
        cost: cost(&sample, runs.rule.goal),
        time: sample.time,
        waits: sample.waits,
        late: sample.late,
        p99_ns: ran.own.wake_latency.quantile(0.99),
    }
}
