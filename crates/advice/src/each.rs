//! One case after another by number: for sweeps, whose cases are too many to be kept.
//!
//! A case is a policy in a draw of everything that is uncertain. What it comes to depends on the work, the machine, the
//! policy, the reference policy and the draw's number alone, so any program may do any part of a sweep.

use crate::error::CompareError;
use crate::judge::{self, Judge, Sample};
use crate::replicas::Replica;
use crate::rule::Rule;
use crate::runs::{PolicyRun, Runs};
use crate::time::TimeKind;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;

/// A piece of work on a machine, ready to be run under any policy in any draw.
pub struct Each<'a> {
    runs: Runs<'a, 'a>,
    reference: &'a PolicySpec,
    kind: TimeKind,
}

/// One draw, and the reference policy in it.
pub struct ReplicaDraw {
    replica: Replica,
    reference: PolicyRun,
    figures: DrawFigures,
}

/// What a policy came to in one draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawFigures {
    /// From the release of the foreground to its end, in s.
    pub elapsed_s: f64,
    /// Energy over that time, in J.
    pub energy_j: f64,
    /// Energy over the window that the reference policy sets, in J.
    pub window_energy_j: f64,
    /// What is judged as time: seconds of makespan or of noticed waiting, or the share of deadlines missed.
    pub time: f64,
    /// The 99th percentile of the time from runnable to running, in s.
    pub wake_p99_s: f64,
    /// Changes of speed.
    pub transitions: u64,
}

impl<'a> Each<'a> {
    /// Finds what is judged as time, by the nominal run. The job's policies are not asked for.
    ///
    /// # Errors
    /// As [`compare`](crate::compare::compare()).
    pub fn new(
        job: &'a ReplayJob<'a>,
        rule: Rule,
        reference: &'a PolicySpec,
        known: Option<TimeKind>,
    ) -> Result<Each<'a>, CompareError> {
        let runs = Runs::new(job, (reference, rule), &|| {})?;
        let kind = match known {
            Some(kind) => kind,
            None => runs.kind()?,
        };
        Ok(Each { runs, reference, kind })
    }

    /// What is judged as time; a later [`Each::new`] for the same work, machine and reference may be told.
    pub fn kind(&self) -> TimeKind {
        self.kind
    }

    /// Draw number `number`, run under the reference policy.
    ///
    /// # Errors
    /// The work does not end under it.
    pub fn draw(&self, number: u64) -> Result<ReplicaDraw, CompareError> {
        let replica = self.runs.draw(number)?;
        let reference = self.runs.run(&replica.circumstances(), self.reference, None, false)?;
        let figures = self.figures(&replica, &reference, &reference);
        Ok(ReplicaDraw { replica, reference, figures })
    }

    /// What a policy comes to in a draw.
    ///
    /// # Errors
    /// The work does not end under it, or is not the same.
    pub fn run(&self, draw: &ReplicaDraw, policy: &PolicySpec) -> Result<DrawFigures, CompareError> {
        if policy.text == self.reference.text {
            return Ok(draw.figures);
        }
        let with = draw.replica.circumstances();
        let ran = self.runs.run(&with, policy, Some(draw.reference.window_ns), false)?;
        self.runs.same_work(policy, &ran, &draw.reference)?;
        Ok(self.figures(&draw.replica, &draw.reference, &ran))
    }

    fn figures(&self, replica: &Replica, reference: &PolicyRun, ran: &PolicyRun) -> DrawFigures {
        // What is above the idle machine is not shown, so the idle machine is not run.
        let judge = Judge {
            runs: &self.runs,
            with: replica.circumstances(),
            reference,
            kind: self.kind,
            idle_w: 0.0,
        };
        let sample: Sample = judge.sample(ran);
        let standard = judge.sample(reference);
        let time = judge::time_alone(&self.runs, &sample, &standard, self.kind);
        DrawFigures {
            elapsed_s: sample.elapsed_s,
            energy_j: sample.own_j,
            window_energy_j: sample.energy_j,
            time,
            wake_p99_s: ran.own.wake_latency.quantile(0.99) as f64 * 1e-9,
            transitions: ran.own.transitions,
        }
    }
}

impl ReplicaDraw {
    /// What the reference policy came to.
    pub fn reference(&self) -> &DrawFigures {
        &self.figures
    }
}
