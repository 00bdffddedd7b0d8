//! From what ran to a sample, and from the samples of all replicas to a policy's verdict.
//!
//! A policy keeps the limit of time if it keeps all of these:
//!
//! - the makespan of the foreground that ends, in at least 95 % of the replicas;
//! - the response times of the foreground that has no end, over all replicas together ([`wattwise_responses`]);
//! - deadlines and periods (`missed.rs`).
//!
//! It is kept against the reference, and in a search against each standard ([`crate::rule`]) as well, unless the policy is no
//! slower than the reference.

use crate::limit;
use crate::missed::{self, Late};
use crate::result::{MissedTask, Responses};
use crate::rule::Goal;
use crate::runs::{PolicyRun, ReferenceRun, Replayed, Runs};
use crate::ties::{SURE, share};
use crate::time::{TimeKind, makespan_ns};
use wattwise_model::workload::Recorded;
use wattwise_replay::job::Circumstances;
use wattwise_responses::{Against, LEAST_REPLICAS, ResponsesVerdict, Waits};
use wattwise_sim::outcome::Energy;

/// One policy's figures in one replica.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// What is judged as time: seconds of makespan or of noticed waiting, or the share missed.
    pub(crate) time: f64,
    /// That, over the reference policy's.
    pub(crate) time_ratio: f64,
    /// Whether the limit of time is kept in this replica, seen by itself.
    pub(crate) within: bool,
    pub(crate) energy_j: f64,
    /// Of that, the charge for the background that is left undone at the end of the window.
    pub(crate) undone_j: f64,
    /// Of that, what the machine drew while it was suspended.
    pub(crate) suspended_j: f64,
    pub(crate) own_j: f64,
    pub(crate) elapsed_s: f64,
    /// Length of the window, or of the run where that is longer.
    pub(crate) window_s: f64,
    pub(crate) above_idle_j: f64,
    /// Responses of the foreground that has no end.
    pub(crate) waits: Waits,
    /// Responses of the background.
    pub(crate) others: Waits,
    pub(crate) late: Vec<Late>,
}

impl Sample {
    /// The mean power over the window, in W.
    fn mean_w(&self) -> f64 {
        if self.window_s > 0.0 { self.energy_j / self.window_s } else { 0.0 }
    }

    /// Once all is said of single responses: they are most of what a sample holds.
    fn forget_responses(&mut self) {
        (self.waits, self.others, self.late) = Default::default();
    }
}

/// What is to be small.
pub(crate) fn cost(s: &Sample, goal: Goal) -> f64 {
    match goal {
        Goal::Energy => s.energy_j,
        Goal::OwnEnergy => s.own_j,
        Goal::Edp => s.own_j * s.elapsed_s,
        Goal::Time => s.time,
    }
}

/// The weighted mean power of a policy over several works, in W, by replica; of each work its weight and its samples.
pub(crate) fn mean_power<'s>(works: impl Iterator<Item = (f64, &'s [Sample])> + Clone) -> Vec<f64> {
    let replicas = works.clone().map(|(_, samples)| samples.len()).min().unwrap_or(0);
    let of = |replica: usize| works.clone().map(move |(weight, samples)| weight * samples[replica].mean_w());
    (0..replicas).map(|replica| of(replica).sum()).collect()
}

/// What one policy's run is held against.
pub(crate) struct Judge<'a> {
    pub(crate) runs: &'a Runs<'a, 'a>,
    pub(crate) with: Circumstances<'a>,
    pub(crate) reference: &'a PolicyRun,
    pub(crate) kind: TimeKind,
    pub(crate) idle_w: f64,
}

impl<'a> Judge<'a> {
    /// Of a replica in which the reference has run.
    pub(crate) fn of(runs: &'a Runs<'a, 'a>, begun: &'a ReferenceRun, kind: TimeKind) -> Judge<'a> {
        let with = begun.replica.circumstances();
        Judge { runs, with, reference: &begun.reference, kind, idle_w: begun.idle_w }
    }

    /// The figures of a run; response times are judged later, over all replicas.
    pub(crate) fn sample(&self, ran: &PolicyRun) -> Sample {
        let work = &ran.own.work;
        let done_ns = work.done_ns.unwrap_or(ran.own.elapsed_ns);
        let span_ns = makespan_ns(work).unwrap_or(done_ns.saturating_sub(work.released_ns));
        let elapsed_s = span_ns as f64 * 1e-9;
        let base_s = makespan_ns(&self.reference.own.work).unwrap_or(span_ns) as f64 * 1e-9;
        let late = missed::late(self.with.workload, ran.foreground());
        let missed = |ran: &PolicyRun| missed::overall(&missed::late(self.with.workload, ran.foreground()));
        let (time, base) = match self.kind {
            TimeKind::Makespan => (elapsed_s, base_s),
            TimeKind::Response => (0.0, 0.0),
            TimeKind::Deadlines => (missed(ran), missed(self.reference)),
        };
        let most = base_s * (1.0 + self.runs.rule.max_slowdown);
        let undone_j = undone_j(ran, self.reference);
        let awake_j = minus(&ran.energy, &ran.before).total_j() + undone_j;
        let suspended_j = self.with.workload.recorded.as_ref().map_or(0.0, Recorded::suspended_j);
        let end_ns = ran.window_ns.max(done_ns);
        let seconds = end_ns.saturating_sub(work.released_ns) as f64 * 1e-9;
        Sample {
            time,
            time_ratio: if base > 0.0 { time / base } else { 1.0 },
            within: self.kind != TimeKind::Makespan || time <= most,
            energy_j: awake_j + suspended_j,
            undone_j,
            suspended_j,
            own_j: minus(&ran.own.energy, &ran.before).total_j(),
            elapsed_s,
            window_s: seconds,
            above_idle_j: awake_j - self.idle_w * seconds,
            waits: self.waits(ran),
            others: self.others(ran),
            late,
        }
    }

    /// Responses of the foreground: of makespan work those of groups that have no end.
    fn waits(&self, ran: &PolicyRun) -> Waits {
        let of = |t: usize| match self.kind {
            TimeKind::Makespan => self.runs.endless[t],
            TimeKind::Response | TimeKind::Deadlines => self.with.workload.tasks[t].is_foreground(),
        };
        Waits::new(ran.foreground(), self.reference.foreground(), &self.runs.names, of)
    }

    /// Responses of the background.
    fn others(&self, ran: &PolicyRun) -> Waits {
        let of = |t: usize| !self.with.workload.tasks[t].is_foreground();
        Waits::new(ran.window(), self.reference.window(), &self.runs.names, of)
    }
}

/// What is judged as time in one replica alone.
pub(crate) fn time_alone(runs: &Runs<'_, '_>, own: &Sample, reference: &Sample, kind: TimeKind) -> f64 {
    if kind != TimeKind::Response {
        return own.time;
    }
    let (own, reference) = ([&own.waits], [&reference.waits]);
    Against::new(&own, &reference, &runs.names, runs.rule.max_slowdown).verdict().waiting[0].0
}

/// The samples of all policies in one replica.
pub(crate) fn samples(runs: &Runs<'_, '_>, replayed: &Replayed, kind: TimeKind) -> Vec<Sample> {
    let judge = Judge {
        runs,
        with: replayed.replica.circumstances(),
        reference: &replayed.ran[runs.reference],
        kind,
        idle_w: replayed.idle_w,
    };
    replayed.ran.iter().map(|ran| judge.sample(ran)).collect()
}

/// One policy's standing against the limit of time, over all replicas.
#[derive(Clone, Debug)]
pub(crate) struct TimeStanding {
    /// Whether it may be chosen.
    pub(crate) admissible: bool,
    /// Whether it would keep the limit in other replicas as well.
    pub(crate) surely: bool,
    /// Responses of the foreground that has no end; `None` where all of it ends.
    pub(crate) responses: Option<Responses>,
    /// Responses of the background.
    pub(crate) others: Responses,
    pub(crate) missed: Vec<MissedTask>,
}

/// One policy in some replicas, beside the reference in the same ones, and what that says.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) own: Vec<Sample>,
    pub(crate) reference: Vec<Sample>,
    pub(crate) kept: TimeStanding,
}

/// The columns of a field, in the order of the policies.
pub(crate) fn columns(runs: &Runs<'_, '_>, columns: Vec<Vec<Sample>>, kind: TimeKind) -> Vec<Column> {
    let of = |policy: usize| columns.get(policy).cloned().unwrap_or_default();
    let standards = runs.standards.iter().map(|&standard| of(standard)).collect();
    let reference = Reference::new(runs, (of(runs.reference), standards), kind);
    let one = |(policy, own)| column(runs, (own, &reference), policy == runs.reference, kind);
    wattwise_threads::map(columns.into_iter().enumerate(), one)
}

/// The reference in some replicas, and the standards.
pub(crate) struct Reference {
    /// With its single responses.
    raw: Vec<Sample>,
    /// Judged against itself, without them.
    completed: Vec<Sample>,
    /// As `raw`, each standard's.
    standards: Vec<Vec<Sample>>,
}

impl Reference {
    pub(crate) fn new(
        runs: &Runs<'_, '_>,
        (raw, mut standards): (Vec<Sample>, Vec<Vec<Sample>>),
        kind: TimeKind,
    ) -> Reference {
        // Of a comparison that was stopped before they ran.
        standards.retain(|standard| standard.len() == raw.len());
        let mut reference = Reference { raw, completed: Vec::new(), standards };
        let mut completed = reference.raw.clone();
        keep(runs, &mut completed, &reference, kind);
        completed.iter_mut().for_each(Sample::forget_responses);
        reference.completed = completed;
        reference
    }
}

/// One policy's column, from its samples and the reference's in the same replicas.
pub(crate) fn column(
    runs: &Runs<'_, '_>,
    (mut own, reference): (Vec<Sample>, &Reference),
    is_reference: bool,
    kind: TimeKind,
) -> Column {
    let mut kept = keep(runs, &mut own, reference, kind);
    if is_reference {
        (kept.admissible, kept.surely) = (true, true);
    }
    own.iter_mut().for_each(Sample::forget_responses);
    Column { own, reference: reference.completed.clone(), kept }
}

impl Column {
    /// What is to be small, by replica.
    pub(crate) fn cost(&self, goal: Goal) -> Vec<f64> {
        self.own.iter().map(|s| cost(s, goal)).collect()
    }

    /// That over the reference's, by replica.
    pub(crate) fn cost_ratios(&self, goal: Goal) -> Vec<f64> {
        let ratio = |(own, reference): (&Sample, &Sample)| {
            let base = cost(reference, goal);
            if base > 0.0 { cost(own, goal) / base } else { 1.0 }
        };
        self.own.iter().zip(&self.reference).map(ratio).collect()
    }

    /// The share of the replicas in which it is within the limit of time.
    pub(crate) fn within_share(&self) -> f64 {
        share(self.own.iter().map(|s| s.within))
    }
}

/// A policy held against another, over all replicas.
struct HeldPolicy {
    admissible: bool,
    surely: bool,
    /// By replica, seen by itself.
    within: Vec<bool>,
    verdict: Option<ResponsesVerdict>,
    missed: Vec<MissedTask>,
}

impl HeldPolicy {
    fn new(
        runs: &Runs<'_, '_>,
        (own, against): (&[Sample], &[Sample]),
        limit: f64,
        kind: TimeKind,
    ) -> HeldPolicy {
        let judged = kind != TimeKind::Makespan || runs.endless.contains(&true);
        let verdict = judged.then(|| responses(runs, (own, against), |s| &s.waits, limit));
        let missed = missed::missed(&late(own), &late(against), &runs.workload);
        let enough = own.len() >= LEAST_REPLICAS;
        let responsive = |v: &ResponsesVerdict| !v.responses.slower && (enough || v.unnoticed);
        let on_time = verdict.as_ref().is_none_or(responsive) && !missed.iter().any(|m| m.slower);
        let most = 1.0 + limit;
        let done = |(own, against): (&Sample, &Sample)| {
            kind != TimeKind::Makespan || own.time <= against.time * most
        };
        let mut within: Vec<bool> = own.iter().zip(against).map(done).collect();
        let excess = verdict.as_ref().map_or(1.0, |v| v.responses.excess);
        let admissible = on_time && share(within.iter().copied()) >= SURE;
        let surely = limit::surely_within(&within) && excess <= most;
        let of_responses = verdict.iter().flat_map(|v| &v.within);
        within.iter_mut().zip(of_responses).for_each(|(within, responses)| *within &= responses);
        HeldPolicy { admissible, surely, within, verdict, missed }
    }

    /// What keeps the limit against this and against another that either of two allows.
    fn and_either(&mut self, one: &HeldPolicy, other: &HeldPolicy) {
        self.admissible &= one.admissible || other.admissible;
        self.surely &= one.surely || other.surely;
        let either = one.within.iter().zip(&other.within).map(|(one, other)| *one || *other);
        self.within.iter_mut().zip(either).for_each(|(within, either)| *within &= either);
    }
}

/// The verdict on some of a policy's responses against another's.
fn responses(
    runs: &Runs<'_, '_>,
    (own, against): (&[Sample], &[Sample]),
    of: fn(&Sample) -> &Waits,
    limit: f64,
) -> ResponsesVerdict {
    let own: Vec<&Waits> = own.iter().map(of).collect();
    let against: Vec<&Waits> = against.iter().map(of).collect();
    Against::new(&own, &against, &runs.names, limit).verdict()
}

/// Judges one policy over all replicas against the reference and the standards, and completes its samples: response times take
/// all of them.
fn keep(runs: &Runs<'_, '_>, own: &mut [Sample], reference: &Reference, kind: TimeKind) -> TimeStanding {
    let limit = runs.rule.max_slowdown;
    let mut held = HeldPolicy::new(runs, (own, &reference.raw), limit, kind);
    if held.admissible && !reference.standards.is_empty() {
        let no_slower = HeldPolicy::new(runs, (own, &reference.raw), 0.0, kind);
        for standard in &reference.standards {
            let of_standard = HeldPolicy::new(runs, (own, standard), limit, kind);
            held.and_either(&of_standard, &no_slower);
        }
    }
    let others = responses(runs, (own, &reference.raw), |s| &s.others, limit).responses;
    for (replica, own) in own.iter_mut().enumerate() {
        own.within = held.within[replica];
        if let (TimeKind::Response, Some(verdict)) = (kind, &held.verdict) {
            (own.time, own.time_ratio) = verdict.waiting[replica];
        }
    }
    TimeStanding {
        admissible: held.admissible,
        surely: held.surely,
        responses: held.verdict.map(|v| v.responses),
        others,
        missed: held.missed,
    }
}

fn late(samples: &[Sample]) -> Vec<&[Late]> {
    samples.iter().map(|s| s.late.as_slice()).collect()
}

/// Energy of the background that this policy has left undone by the end of the window and the reference has not, or the
/// other way round: jobs in flight count whole. At the run's own energy a cycle since the release, so what is given back
/// for work that the reference has not done is at most what the cores drew while executing.
fn undone_j(ran: &PolicyRun, reference: &PolicyRun) -> f64 {
    if !(ran.within_window && reference.within_window) {
        return 0.0;
    }
    let left = reference.background_cycles - ran.background_cycles;
    let busy_j = minus(&ran.energy, &ran.before).busy_j;
    let done = ran.own.work.cycles + ran.background_cycles;
    if done > 0.0 { left * busy_j / done } else { 0.0 }
}

/// What was used between two moments.
pub(crate) fn minus(after: &Energy, before: &Energy) -> Energy {
    let less = |(name, j): &(String, f64)| {
        let was = before.idle_j.iter().find(|(n, _)| n == name).map_or(0.0, |(_, j)| *j);
        (name.clone(), j - was)
    };
    let packages = after.package_j.iter().enumerate();
    Energy {
        busy_j: after.busy_j - before.busy_j,
        stall_j: after.stall_j - before.stall_j,
        idle_j: after.idle_j.iter().map(less).collect(),
        leakage_j: after.leakage_j - before.leakage_j,
        uncore_j: after.uncore_j - before.uncore_j,
        memory_j: after.memory_j - before.memory_j,
        platform_j: after.platform_j - before.platform_j,
        package_j: packages.map(|(i, j)| j - before.package_j.get(i).unwrap_or(&0.0)).collect(),
    }
}
