//! One policy after another in the same replicas of one piece of work: for a search, which learns from each policy which
//! one to ask about next.
//!
//! The replicas are drawn once and run once under the reference policy. A policy that is asked about runs in one of them
//! ([`Paired::look`]), and what its runs come to against the reference policy's is judged as [`compare`](crate::compare)
//! judges it ([`Paired::judge`]). What a look shows depends on the replica and the policy alone, so a look that was written down is
//! as good as one that is made.

use crate::compare::{CompareError, Comparing, DEADLINE_SLACK, Judge, Ran, Sample, cost};
use crate::limit::by_rank;
use crate::replicas::Replica;
use crate::rule::Rule;
use crate::time::TimeKind;
use serde::{Deserialize, Serialize};
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// Added to both sides of a ratio of waits, in ns: below a microsecond nobody waits.
const NO_WAIT_NS: f64 = 1000.0;

/// What one policy did in one replica.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// What is to be small.
    pub cost: f64,
    /// What is judged as time: the makespan in s, the 95th percentile of the stretch, or the share of deadlines missed.
    pub time: f64,
    /// Of response times: what chance stretches by itself ([`crate::time`]).
    pub spread: f64,
    /// The 99th percentile of the time from runnable to running, in ns.
    pub p99_ns: u64,
}

/// One look against the reference policy's in the same replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// What is to be small.
    pub cost: f64,
    /// Time; of missed deadlines 1 and the share that is missed beyond the reference's.
    pub time: f64,
    /// The 99th percentile of waits.
    pub p99: f64,
    /// By how much the time is over the limit: the logarithm of the ratio, or the share of deadlines; at most 0 within it.
    pub over: f64,
}

/// One replica, and the reference policy in it.
struct Base {
    replica: Replica,
    reference: Ran,
    idle_w: f64,
    look: Look,
    /// The 95th percentile of the stretch of a second run of the reference policy.
    twin_p95: f64,
}

/// A piece of work on a machine, ready to be looked at under any policy.
pub struct Paired<'a> {
    comparing: Comparing<'a, 'a>,
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
        let comparing = Comparing::new(job, (reference, rule), &|| {})?;
        let kind = comparing.nominal()?.judged.kind;
        let all = first..first.saturating_add(replicas);
        let base = |number| match stop() {
            true => Err(CompareError::Stopped),
            false => base(&comparing, kind, reference, number),
        };
        let bases = wattwise_threads::map::<_, _, _, Result<_, _>>(all, base)?;
        Ok(Paired { comparing, kind, bases })
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
    pub fn reference(&self, replica: usize) -> Look {
        self.bases[replica].look
    }

    /// What a policy does in a replica.
    ///
    /// # Errors
    /// The work does not end under it, or is not the same.
    pub fn look(&self, replica: usize, policy: &PolicySpec) -> Result<Look, CompareError> {
        let base = &self.bases[replica];
        let with = base.replica.circumstances();
        let ran = self.comparing.run(&with, policy, Some(base.reference.window_ns), false)?;
        self.comparing.same_work(policy, &ran, &base.reference)?;
        Ok(look(&self.comparing, self.kind, base.idle_w, (&base.replica, &base.reference), &ran))
    }

    /// What looks come to, each in the replica of its number: those of one policy in some of the replicas.
    pub fn judge(&self, looks: &[(usize, Look)]) -> Vec<Ratios> {
        let most = self.comparing.rule.max_slowdown;
        // Without a limit nothing is over it.
        let over = |time: f64| if most.is_finite() { (time / (1.0 + most)).ln() } else { -1.0 };
        let stretch = (self.kind == TimeKind::Response).then(|| {
            let own: Vec<f64> = looks.iter().map(|(_, l)| l.time).collect();
            let spread: Vec<f64> = looks.iter().map(|(r, l)| l.spread.max(self.bases[*r].twin_p95)).collect();
            by_rank(&own, &spread)
        });
        let one = |(i, (replica, look)): (usize, &(usize, Look))| {
            let reference = &self.bases[*replica].look;
            let (time, over) = match (self.kind, &stretch) {
                (TimeKind::Response, Some(stretch)) => {
                    // Nothing is stretched to nothing: a ratio must have a logarithm.
                    let stretch = stretch[i].max(1e-3);
                    (stretch, over(stretch))
                }
                (TimeKind::Deadlines, _) => {
                    let more = look.time - reference.time;
                    (1.0 + more.max(0.0), more - DEADLINE_SLACK)
                }
                _ => {
                    let time = ratio(look.time, reference.time);
                    (time, over(time))
                }
            };
            let p99 = (look.p99_ns as f64 + NO_WAIT_NS) / (reference.p99_ns as f64 + NO_WAIT_NS);
            Ratios { cost: ratio(look.cost, reference.cost), time, p99, over }
        };
        looks.iter().enumerate().map(one).collect()
    }
}

fn ratio(own: f64, reference: f64) -> f64 {
    if own > 0.0 && reference > 0.0 { own / reference } else { 1.0 }
}

fn base(
    comparing: &Comparing<'_, '_>,
    kind: TimeKind,
    policy: &PolicySpec,
    number: u64,
) -> Result<Base, CompareError> {
    let replica = Replica::draw(comparing.job.machine, &comparing.workload, number)?;
    let with = replica.circumstances();
    let reference = comparing.run(&with, policy, None, false)?;
    let idle_w = comparing.idle_w(&with);
    let twin_p95 = if kind == TimeKind::Response { comparing.twin_p95(&with, &reference)? } else { 1.0 };
    let look = look(comparing, kind, idle_w, (&replica, &reference), &reference);
    Ok(Base { replica, reference, idle_w, look, twin_p95 })
}

fn look(
    comparing: &Comparing<'_, '_>,
    kind: TimeKind,
    idle_w: f64,
    (replica, reference): (&Replica, &Ran),
    ran: &Ran,
) -> Look {
    let with = replica.circumstances();
    let limit = comparing.rule.max_slowdown;
    let judge = Judge { reference, workload: with.workload, kind, idle_w, limit };
    let sample: Sample = judge.sample(ran);
    let cost = cost(&sample, comparing.rule.goal);
    Look { cost, time: sample.time, spread: sample.spread, p99_ns: ran.own.wake_latency.quantile(0.99) }
}
