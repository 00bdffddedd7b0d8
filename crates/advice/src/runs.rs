//! From a job to what ran: policies in the nominal model and in replicas.
//!
//! Within a replica all policies are charged over the same window, which the reference policy alone sets: from the release
//! of the foreground until so much later than the reference's end as the limit of time allows; for interactive work its
//! recorded span and a little more, in which last episodes may end. So a policy that finishes early pays for the time that it has won, as a machine that stays on does
//! (study 001), and no policy moves another's figures. One that is not done by then is charged over its own time.

use crate::error::{CompareError, unless_stopped};
use crate::groups::endless;
use crate::replicas::Replica;
use crate::rule::Rule;
use crate::time::{Judged, TimeKind, judged, makespan_ns};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wattwise_model::workload::Workload;
use wattwise_policy::chosen::IdleSpec;
use wattwise_replay::job::{Circumstances, ReplayJob, limit_ns, machine_idle, simulate};
use wattwise_replay::spec::PolicySpec;
use wattwise_responses::{Names, ResponsesSeen};
use wattwise_sim::outcome::{Energy, Outcome, Timeline, WorkOutcome};

/// Events of a run that is brought to its end though all is to stop: less than a second of computing.
const SHORT_EVENTS: u64 = 1 << 20;
/// The same of a nominal run: some seconds.
const LONG_EVENTS: u64 = 1 << 24;
/// Foreground work under two policies may differ by this share of its cycles.
pub(crate) const SAME_WORK: f64 = 1e-4;
/// The window where the limit of time is none, in makespans of the reference policy: short enough that what follows the work does
/// not decide. A policy that takes longer is charged over its own time, and its row says so.
const UNLIMITED_WINDOW: f64 = 2.0;
/// How much longer than its recorded span the window of interactive work is, as a share: episodes that begin near its end may end
/// a little later under one policy than under another, and all are to be charged over one time.
const LAST_EPISODES: f64 = 0.02;
/// For how long the machine without work is looked at, in ns.
const IDLE_LOOK_NS: u64 = 1_000_000_000;

/// One policy's run in one replica.
pub(crate) struct PolicyRun {
    /// At the release.
    pub(crate) before: Energy,
    /// At the end of the foreground.
    pub(crate) own: Outcome,
    /// At the end of the window, or of the foreground where that is later.
    pub(crate) energy: Energy,
    /// As `energy`.
    work: WorkOutcome,
    /// As `energy`, in ns since the start.
    end_ns: u64,
    /// Cycles of the background from the release to the end of the window.
    pub(crate) background_cycles: f64,
    /// When the window ends, in ns since the start.
    pub(crate) window_ns: u64,
    pub(crate) within_window: bool,
    pub(crate) timeline: Option<Timeline>,
}

impl PolicyRun {
    /// The foreground's episodes and periods.
    pub(crate) fn foreground(&self) -> ResponsesSeen<'_> {
        ResponsesSeen { work: &self.own.work, end_ns: self.own.elapsed_ns }
    }

    /// All episodes up to the end of the window.
    pub(crate) fn window(&self) -> ResponsesSeen<'_> {
        ResponsesSeen { work: &self.work, end_ns: self.end_ns }
    }
}

/// What all runs of a comparison share.
pub(crate) struct Runs<'a, 'j> {
    pub(crate) job: &'a ReplayJob<'j>,
    /// The job's, its episodes found.
    pub(crate) workload: Arc<Workload>,
    /// Its tasks' names.
    pub(crate) names: Arc<Names>,
    /// Which tasks are foreground of a group that has no end.
    pub(crate) endless: Arc<[bool]>,
    pub(crate) idle: IdleSpec,
    pub(crate) policies: Vec<PolicySpec>,
    /// Which of them is the reference.
    pub(crate) reference: usize,
    /// Which of them the limit of time counts from as well.
    pub(crate) standards: Vec<usize>,
    pub(crate) rule: Rule,
    tell: &'a (dyn Fn() + Sync),
    /// What ends a run that is under way.
    stop: Option<&'a AtomicBool>,
}

/// The reference policy in one replica, which every other is held against.
pub(crate) struct ReferenceRun {
    pub(crate) replica: Replica,
    pub(crate) reference: PolicyRun,
    /// What the machine draws without any work under the reference policy, in W.
    pub(crate) idle_w: f64,
}

/// All policies in one replica.
pub(crate) struct Replayed {
    pub(crate) replica: Replica,
    /// In the order of the policies.
    pub(crate) ran: Vec<PolicyRun>,
    /// What the machine draws without any work under the reference policy, in W.
    pub(crate) idle_w: f64,
}

/// The job's policies and the reference, which is put first where it is not among them; and where it is.
fn with_reference(policies: &[PolicySpec], reference: &PolicySpec) -> (Vec<PolicySpec>, usize) {
    let mut policies = policies.to_vec();
    let at = policies.iter().position(|p| p.text == reference.text).unwrap_or_else(|| {
        policies.insert(0, reference.clone());
        0
    });
    (policies, at)
}

/// Where the standards are among the policies: those that are not are put last.
fn with_standards<'s>(
    policies: &mut Vec<PolicySpec>,
    standards: impl Iterator<Item = &'s PolicySpec>,
) -> Vec<usize> {
    let at = |standard: &'s PolicySpec| {
        policies.iter().position(|p| p.text == standard.text).unwrap_or_else(|| {
            policies.push(standard.clone());
            policies.len() - 1
        })
    };
    standards.map(at).collect()
}

impl<'a, 'j> Runs<'a, 'j> {
    pub(crate) fn new(
        job: &'a ReplayJob<'j>,
        (reference, rule): (&PolicySpec, Rule),
        tell: &'a (dyn Fn() + Sync),
    ) -> Result<Runs<'a, 'j>, CompareError> {
        CompareError::of_work(job.workload, job.machine)?;
        let (policies, reference) = with_reference(job.policies, reference);
        let mut workload = job.workload.clone();
        workload.label_episodes();
        let idle = machine_idle(job.machine)?;
        let (names, endless) = (Arc::new(Names::new(&workload)), endless(&workload).into());
        let workload = Arc::new(workload);
        let standards = Vec::new();
        let stop = None;
        Ok(Runs { job, workload, names, endless, idle, policies, reference, standards, rule, tell, stop })
    }

    /// The same, with what ends a run that is under way ([`CompareError::Stopped`]).
    pub(crate) fn stopped_by(self, stop: &'a AtomicBool) -> Runs<'a, 'j> {
        Runs { stop: Some(stop), ..self }
    }

    /// With policies that the limit of time counts from as well as from the reference.
    pub(crate) fn with_standards(mut self, standards: &[PolicySpec]) -> Runs<'a, 'j> {
        if self.rule.max_slowdown.is_finite() {
            let reference = self.policies[self.reference].text.clone();
            let others = standards.iter().filter(|s| s.text != reference);
            self.standards = with_standards(&mut self.policies, others);
        }
        self
    }

    /// The same with other policies than the job's; the reference and the standards stay. The reference is the first where it is
    /// not among the policies, and the standards that are not are the last.
    pub(crate) fn among(&self, policies: &[PolicySpec]) -> Runs<'a, 'j> {
        let (mut policies, reference) = with_reference(policies, &self.policies[self.reference]);
        let standards =
            with_standards(&mut policies, self.standards.iter().map(|&standard| &self.policies[standard]));
        Runs {
            policies,
            reference,
            standards,
            workload: self.workload.clone(),
            names: self.names.clone(),
            endless: self.endless.clone(),
            idle: self.idle.clone(),
            ..*self
        }
    }

    /// Replica number `number`; 0 is the nominal model.
    pub(crate) fn draw(&self, number: u64) -> Result<Replica, CompareError> {
        Ok(Replica::draw(self.job.machine, &self.workload, number)?)
    }

    /// All policies in the nominal model, side by side, and what is judged as time.
    pub(crate) fn nominal(&self) -> Result<(Replayed, Judged), CompareError> {
        let replica = self.draw(0)?;
        let with = replica.circumstances();
        let detail = self.job.detail;
        let reference = self.whole_run(&with, &self.policies[self.reference], None, detail)?;
        let judged = judged(with.workload, &reference.own.work);
        let window_ns = reference.window_ns;
        let others: Vec<usize> = (0..self.policies.len()).filter(|&p| p != self.reference).collect();
        let other = |p: usize| self.whole_run(&with, &self.policies[p], Some(window_ns), detail);
        let ran = wattwise_threads::map::<_, _, _, Result<_, _>>(others, other)?;
        Ok((self.replayed(replica, reference, ran)?, judged))
    }

    /// The same, and the policies that it is of: where it is stopped, those whose runs are short or were over by then. The reference
    /// is among them in any case.
    pub(crate) fn nominal_by_stop(&self) -> Result<(Runs<'a, 'j>, Replayed, Judged), CompareError> {
        let replica = self.draw(0)?;
        let with = replica.circumstances();
        let detail = self.job.detail;
        let reference = self.whole_run(&with, &self.policies[self.reference], None, detail)?;
        let judged = judged(with.workload, &reference.own.work);
        let others: Vec<usize> = (0..self.policies.len()).filter(|&p| p != self.reference).collect();
        let other = |p: usize| {
            let ran = self.run(&with, &self.policies[p], Some(reference.window_ns), detail);
            unless_stopped(ran).map(|ran| Ok((p, ran?)))
        };
        let ran: Vec<(usize, PolicyRun)> =
            wattwise_threads::filter_map::<_, _, _, Result<_, CompareError>>(others, other)?;
        let (done, ran): (Vec<usize>, Vec<PolicyRun>) = ran.into_iter().unzip();
        let runs = self.of_these(|p| p == self.reference || done.contains(&p));
        let replayed = runs.replayed(replica, reference, ran)?;
        Ok((runs, replayed, judged))
    }

    /// The same with some of its policies, the reference among them.
    fn of_these(&self, stays: impl Fn(usize) -> bool) -> Runs<'a, 'j> {
        let kept: Vec<usize> = (0..self.policies.len()).filter(|&p| stays(p)).collect();
        let now_at = |was: usize| kept.iter().position(|&p| p == was);
        Runs {
            policies: kept.iter().map(|&p| self.policies[p].clone()).collect(),
            reference: now_at(self.reference).unwrap_or(0),
            standards: self.standards.iter().filter_map(|&standard| now_at(standard)).collect(),
            workload: self.workload.clone(),
            names: self.names.clone(),
            endless: self.endless.clone(),
            idle: self.idle.clone(),
            ..*self
        }
    }

    /// What is judged as time: by the nominal run of the reference policy.
    pub(crate) fn kind(&self) -> Result<TimeKind, CompareError> {
        let replica = self.draw(0)?;
        let with = replica.circumstances();
        let reference = self.whole_run(&with, &self.policies[self.reference], None, false)?;
        Ok(judged(with.workload, &reference.own.work).kind)
    }

    /// The reference policy in one replica.
    pub(crate) fn begin(&self, number: u64) -> Result<ReferenceRun, CompareError> {
        let replica = self.draw(number)?;
        let with = replica.circumstances();
        let reference = self.run(&with, &self.policies[self.reference], None, false)?;
        let idle_w = self.idle_w(&with);
        Ok(ReferenceRun { replica, reference, idle_w })
    }

    /// Another policy in a replica in which the reference has run.
    pub(crate) fn join(&self, begun: &ReferenceRun, policy: &PolicySpec) -> Result<PolicyRun, CompareError> {
        let with = begun.replica.circumstances();
        let own = self.run(&with, policy, Some(begun.reference.window_ns), false)?;
        self.same_work(policy, &own, &begun.reference)?;
        Ok(own)
    }

    /// All policies in one replica, one after the other.
    pub(crate) fn replica(&self, number: u64) -> Result<Replayed, CompareError> {
        let begun = self.begin(number)?;
        let others = (0..self.policies.len()).filter(|&p| p != self.reference);
        let mut ran: Vec<PolicyRun> =
            others.map(|p| self.join(&begun, &self.policies[p])).collect::<Result<_, _>>()?;
        ran.insert(self.reference, begun.reference);
        Ok(Replayed { replica: begun.replica, ran, idle_w: begun.idle_w })
    }

    /// Puts the runs of a replica in order, once they have done the same work.
    fn replayed(
        &self,
        replica: Replica,
        reference: PolicyRun,
        mut others: Vec<PolicyRun>,
    ) -> Result<Replayed, CompareError> {
        let names = (0..self.policies.len()).filter(|&p| p != self.reference);
        names.zip(&others).try_for_each(|(p, own)| self.same_work(&self.policies[p], own, &reference))?;
        let idle_w = self.idle_w(&replica.circumstances());
        others.insert(self.reference, reference);
        Ok(Replayed { replica, ran: others, idle_w })
    }

    /// The window that the reference policy's run sets.
    fn window_ns(&self, workload: &Workload, reference: &Outcome) -> u64 {
        let done = reference.work.done_ns.unwrap_or(reference.elapsed_ns);
        match makespan_ns(&reference.work) {
            Some(makespan) if judged(workload, &reference.work).kind == TimeKind::Makespan => {
                let factor = if self.rule.max_slowdown.is_finite() {
                    1.0 + self.rule.max_slowdown
                } else {
                    UNLIMITED_WINDOW
                };
                let window = reference.work.released_ns + (makespan as f64 * factor) as u64;
                window.max(done)
            }
            // What timers hold ends when they do, whatever the limit of time: a much longer window would hold rest alone.
            _ => (workload.span_ns.max(done) as f64 * (1.0 + LAST_EPISODES)) as u64,
        }
    }

    /// One policy's run; without a window it sets its own.
    pub(crate) fn run(
        &self,
        with: &Circumstances<'_>,
        policy: &PolicySpec,
        window_ns: Option<u64>,
        timeline: bool,
    ) -> Result<PolicyRun, CompareError> {
        self.run_stopped_after(SHORT_EVENTS, (with, policy), window_ns, timeline)
    }

    /// The same of the nominal model, without which there is no answer: it is cut only where it would take very long.
    fn whole_run(
        &self,
        with: &Circumstances<'_>,
        policy: &PolicySpec,
        window_ns: Option<u64>,
        timeline: bool,
    ) -> Result<PolicyRun, CompareError> {
        self.run_stopped_after(LONG_EVENTS, (with, policy), window_ns, timeline)
    }

    /// A run that a stop ends, but not within its first `short` events.
    fn run_stopped_after(
        &self,
        short: u64,
        (with, policy): (&Circumstances<'_>, &PolicySpec),
        window_ns: Option<u64>,
        timeline: bool,
    ) -> Result<PolicyRun, CompareError> {
        let mut sim = simulate(self.job, with, policy, &self.idle, timeline);
        if let Some(stop) = self.stop {
            sim.stop_by(stop, short);
        }
        let (before, done_before) = match with.workload.release_ns {
            0 => (Energy::default(), 0.0),
            release => {
                let at = sim.run_until(release);
                (at.energy, at.work.background_cycles)
            }
        };
        let failed = |source| CompareError::of_run(policy, with.workload, source);
        let own = sim.run_to_completion(limit_ns(self.job, with.workload)).map_err(failed)?;
        let window_ns = window_ns.unwrap_or_else(|| self.window_ns(with.workload, &own));
        let within_window = own.elapsed_ns <= window_ns;
        let after = sim.run_until(window_ns.max(own.elapsed_ns));
        sim.check_events().map_err(failed)?;
        (self.tell)();
        Ok(PolicyRun {
            before,
            own,
            energy: after.energy,
            background_cycles: after.work.background_cycles - done_before,
            work: after.work,
            end_ns: after.elapsed_ns,
            window_ns,
            within_window,
            timeline: sim.timeline(),
        })
    }

    /// What the machine draws without any work under the reference policy, in watts.
    pub(crate) fn idle_w(&self, with: &Circumstances<'_>) -> f64 {
        let nothing = Workload::new("nothing", "no task", Vec::new(), IDLE_LOOK_NS);
        let with = Circumstances { workload: &nothing, memory: &[], ..*with };
        let mut sim = simulate(self.job, &with, &self.policies[self.reference], &self.idle, false);
        sim.run_until(IDLE_LOOK_NS).energy.total_j() / (IDLE_LOOK_NS as f64 * 1e-9)
    }

    /// Whether a run did the reference policy's work.
    pub(crate) fn same_work(
        &self,
        policy: &PolicySpec,
        own: &PolicyRun,
        reference: &PolicyRun,
    ) -> Result<(), CompareError> {
        let (did, should) = (own.own.work.cycles, reference.own.work.cycles);
        if (did - should).abs() <= SAME_WORK * should {
            return Ok(());
        }
        Err(CompareError::DifferentWork {
            policy: policy.text.clone(),
            reference: self.policies[self.reference].text.clone(),
            share: (did / should - 1.0).abs() * 100.0,
        })
    }
}
