//! The same work under several policies.
//!
//! [`compare`] is the main job. One run of the nominal model gives the details; replicas (see `replicas`) give
//! the intervals, the ties and the chance of being best.
//!
//! Within a replica all policies are charged over the same window, which the reference policy alone sets: from the release
//! of the foreground until so much later than the reference's end as the limit of time allows; for interactive work its
//! recorded span. So a policy that finishes early pays for the time that it has won, as a machine that stays on does
//! (study 001), and no policy moves another's figures. One that is not done by then is charged over its own time.

use crate::answer::{self, Answered};
use crate::limit::{self, by_rank};
use crate::measurable::measurable;
use crate::replicas::{self, Replica};
use crate::result::*;
use crate::rule::{Goal, Rule};
use crate::sensitivity::{Share, sensitivity};
use crate::ties::{Candidate, Standing};
use crate::time::{Judged, Response, Stretches, TimeKind, judged, makespan_ns, missed, quantile, response};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wattwise_model::machine::{Confidence, Drawn};
use wattwise_model::workload::replica::TooManyRounds;
use wattwise_model::workload::{Recorded, Workload};
use wattwise_policy::chosen::IdleSpec;
use wattwise_replay::job::{Circumstances, IdleError, ReplayJob, limit_ns, machine_idle, simulate};
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::RunError;
use wattwise_sim::outcome::{Energy, Outcome, Timeline};

/// Foreground work under two policies may differ by this share of its cycles.
pub(crate) const SAME_WORK: f64 = 1e-4;
/// The window where the limit of time is none, in makespans of the reference policy.
const UNLIMITED_WINDOW: f64 = 4.0;
/// For how long the machine without work is looked at, in ns.
const IDLE_LOOK_NS: u64 = 1_000_000_000;
/// By how much the second run of the reference policy is out of phase with its first, in ns: no tick's period.
const TWIN_PHASE_NS: u64 = 1_370_000;
/// More deadlines than the reference policy's may be missed by this share.
pub(crate) const DEADLINE_SLACK: f64 = 1e-3;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A machine model names an idle policy that does not exist.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// The work does not end.
    #[error("{policy}: {source} (--budget simulated=SECONDS,events=NUMBER)")]
    Run {
        /// The policy under which it did not.
        policy: String,
        /// The engine's word.
        source: RunError,
    },
    /// The work of a generated task cannot be fixed.
    #[error(transparent)]
    Work(#[from] TooManyRounds),
    /// Nothing in the workload is foreground.
    #[error(
        "{workload}: no task is foreground; expected one whose completion can be judged (--foreground NAME)"
    )]
    NoForeground {
        /// The workload.
        workload: String,
    },
    /// It was stopped before there was anything to tell.
    #[error("stopped")]
    Stopped,
    /// Two policies did not do the same work: a fault of ours, and no answer.
    #[error(
        "{policy}: did {share:.4} % more or less work than {reference}; no comparison is possible (please report it)"
    )]
    DifferentWork {
        /// The policy.
        policy: String,
        /// The reference policy.
        reference: String,
        /// By how much, in per cent.
        share: f64,
    },
}

/// What a report draws of one policy beyond its figures.
#[derive(Clone, Debug, Default)]
pub struct PolicyDetail {
    /// Its [`PolicyResult::policy`].
    pub policy: String,
    /// Power, speeds and states over time.
    pub timeline: Timeline,
    /// Time from runnable to running: `(least ns of the slot, wake-ups)`, rising.
    pub wake_histogram: Vec<(u64, u64)>,
}

/// How to compare.
pub struct Options<'a> {
    /// What is to be small, and how much slower a policy may be.
    pub rule: Rule,
    /// Replicas beside the nominal run; 0 for that run alone.
    pub replicas: u64,
    /// The policy that the others are held against; it always runs.
    pub reference: &'a PolicySpec,
    /// How a policy is put in force, or why it cannot be.
    pub apply: &'a (dyn Fn(&PolicySpec) -> Result<String, String> + Sync),
    /// Called with the number of runs done so far.
    pub done: &'a (dyn Fn(usize) + Sync),
    /// Set by somebody who has seen enough: the nominal run and the replicas done by then are the answer, which says so.
    pub stop: &'a AtomicBool,
}

impl Options<'_> {
    /// How many runs there will be for so many policies.
    pub fn runs(&self, policies: usize) -> usize {
        (self.replicas as usize + 1) * policies
    }
}

/// One policy's run in one replica.
pub(crate) struct Ran {
    /// At the release.
    before: Energy,
    /// At the end of the foreground.
    pub(crate) own: Outcome,
    /// At the end of the window, or of the foreground where that is later.
    energy: Energy,
    busy_cycles: f64,
    /// When the window ends, in ns since the start.
    pub(crate) window_ns: u64,
    within_window: bool,
    timeline: Option<Timeline>,
}

/// One policy's figures in one replica.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// What is judged as time: seconds, a stretch, or a share.
    pub(crate) time: f64,
    within: bool,
    /// The 95th percentile of stretch, and what chance stretches by itself.
    p95: f64,
    pub(crate) spread: f64,
    pub(crate) energy_j: f64,
    pub(crate) own_j: f64,
    pub(crate) elapsed_s: f64,
    above_idle_j: f64,
    response: Response,
    missed: f64,
}

/// Compares the policies of a job.
///
/// # Errors
/// When the machine's idle policy does not exist, the work has no foreground or no end, or is not the same.
pub fn compare(
    job: &ReplayJob<'_>,
    options: &Options<'_>,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    compare_from(job, options, 1)
}

/// [`compare`] with other draws of what is uncertain: replicas from number `first` on. 0 is the nominal model.
///
/// # Errors
/// As [`compare`].
pub fn compare_from(
    job: &ReplayJob<'_>,
    options: &Options<'_>,
    first: u64,
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let counter = AtomicUsize::new(0);
    let tell = || (options.done)(counter.fetch_add(1, Ordering::Relaxed) + 1);
    let comparing = Comparing::new(job, (options.reference, options.rule), &tell)?;
    let mut nominal = comparing.nominal()?;
    let kind = nominal.judged.kind;
    let stopped = || options.stop.load(Ordering::Relaxed);
    let all = first..first.saturating_add(options.replicas);
    let replica = |number| (!stopped()).then(|| comparing.replica(number, kind));
    let replicas: Vec<(Vec<Sample>, Vec<Drawn>)> =
        wattwise_threads::filter_map::<_, _, _, Result<_, _>>(all, replica)?;
    let (mut samples, draws): (Vec<_>, Vec<_>) = replicas.into_iter().unzip();
    if samples.is_empty() {
        samples.push(nominal.samples.clone());
    }
    if kind == TimeKind::Response {
        respond(&mut samples, options.rule.max_slowdown);
        respond(std::slice::from_mut(&mut nominal.samples), options.rule.max_slowdown);
    }
    Ok(comparing.conclude(nominal, &samples, &draws, options))
}

/// One policy in one draw of what is uncertain.
#[derive(Clone, Debug)]
pub struct OneDraw {
    /// The policy.
    pub policy: String,
    /// What is to be small.
    pub cost: f64,
    /// Whether it was within the limit of time.
    pub within: bool,
}

/// All policies in each of `options.replicas` replicas, from number `first` on: how an answer would differ with one draw
/// of what is uncertain.
///
/// # Errors
/// As [`compare`].
pub fn draws(
    job: &ReplayJob<'_>,
    options: &Options<'_>,
    first: u64,
) -> Result<Vec<Vec<OneDraw>>, CompareError> {
    let comparing = Comparing::new(job, (options.reference, options.rule), &|| {})?;
    let kind = comparing.nominal()?.judged.kind;
    let one = |number: u64| comparing.replica(number, kind).map(|(samples, _)| samples);
    let mut all: Vec<Vec<Sample>> =
        wattwise_threads::map::<_, _, _, Result<_, _>>(first..first + options.replicas, one)?;
    if kind == TimeKind::Response {
        respond(&mut all, options.rule.max_slowdown);
    }
    let drawn = |(s, p): (&Sample, &&PolicySpec)| OneDraw {
        policy: p.text.clone(),
        cost: cost(s, options.rule.goal),
        within: s.within,
    };
    Ok(all.iter().map(|samples| samples.iter().zip(&comparing.policies).map(drawn).collect()).collect())
}

/// Judges response times, by [`crate::limit`]'s rule.
fn respond(samples: &mut [Vec<Sample>], limit: f64) {
    let policies = samples.first().map_or(0, Vec::len);
    for p in 0..policies {
        let (own, spread): (Vec<f64>, Vec<f64>) = samples.iter().map(|s| (s[p].p95, s[p].spread)).unzip();
        for (replica, time) in by_rank(&own, &spread).into_iter().enumerate() {
            samples[replica][p].time = time;
            samples[replica][p].within = time <= 1.0 + limit;
        }
    }
}

/// The job's policies and the reference, which is put first where it is not among them; and where it is.
fn with_reference<'a>(job: &ReplayJob<'a>, reference: &'a PolicySpec) -> (Vec<&'a PolicySpec>, usize) {
    let mut policies: Vec<&PolicySpec> = job.policies.iter().collect();
    let at = policies.iter().position(|p| p.text == reference.text).unwrap_or_else(|| {
        policies.insert(0, reference);
        0
    });
    (policies, at)
}

/// What all runs of a comparison share.
pub(crate) struct Comparing<'a, 'j> {
    pub(crate) job: &'a ReplayJob<'j>,
    /// The job's, its episodes found.
    pub(crate) workload: Workload,
    idle: IdleSpec,
    policies: Vec<&'a PolicySpec>,
    /// Which of them is the reference.
    pub(crate) reference: usize,
    pub(crate) rule: Rule,
    tell: &'a (dyn Fn() + Sync),
}

/// The run of the nominal model.
pub(crate) struct Nominal {
    pub(crate) judged: Judged,
    /// Length of the window.
    window_ns: u64,
    ran: Vec<Ran>,
    samples: Vec<Sample>,
}

impl<'a, 'j> Comparing<'a, 'j> {
    pub(crate) fn new(
        job: &'a ReplayJob<'j>,
        (reference, rule): (&'a PolicySpec, Rule),
        tell: &'a (dyn Fn() + Sync),
    ) -> Result<Comparing<'a, 'j>, CompareError> {
        if !job.workload.tasks.iter().any(|t| t.is_foreground()) {
            return Err(CompareError::NoForeground { workload: job.workload.name.clone() });
        }
        let (policies, reference) = with_reference(job, reference);
        let mut workload = job.workload.clone();
        workload.label_episodes();
        let idle = machine_idle(job.machine)?;
        Ok(Comparing { job, workload, idle, policies, reference, rule, tell })
    }

    pub(crate) fn nominal(&self) -> Result<Nominal, CompareError> {
        let replica = Replica::draw(self.job.machine, &self.workload, 0)?;
        let with = replica.circumstances();
        let detail = self.job.detail;
        let reference = self.run(&with, self.policies[self.reference], None, detail)?;
        let judged = judged(with.workload, &reference.own.work);
        let window_ns = reference.window_ns;
        let others: Vec<usize> = (0..self.policies.len()).filter(|&p| p != self.reference).collect();
        let other = |p: usize| self.run(&with, self.policies[p], Some(window_ns), detail);
        let mut ran: Vec<Ran> = wattwise_threads::map::<_, _, _, Result<_, _>>(others, other)?;
        ran.insert(self.reference, reference);
        let samples = self.samples(&ran, &with, judged.kind, self.idle_w(&with))?;
        let release_ns = with.workload.release_ns;
        Ok(Nominal { judged, window_ns: window_ns.saturating_sub(release_ns), ran, samples })
    }

    /// What is judged as time: by the nominal run of the reference policy.
    pub(crate) fn kind(&self) -> Result<TimeKind, CompareError> {
        let replica = Replica::draw(self.job.machine, &self.workload, 0)?;
        let with = replica.circumstances();
        let reference = self.run(&with, self.policies[self.reference], None, false)?;
        Ok(judged(with.workload, &reference.own.work).kind)
    }

    /// All policies in one replica.
    fn replica(&self, number: u64, kind: TimeKind) -> Result<(Vec<Sample>, Vec<Drawn>), CompareError> {
        let replica = Replica::draw(self.job.machine, &self.workload, number)?;
        let with = replica.circumstances();
        let reference = self.run(&with, self.policies[self.reference], None, false)?;
        let window_ns = reference.window_ns;
        let others = (0..self.policies.len()).filter(|&p| p != self.reference);
        let other = |p: usize| self.run(&with, self.policies[p], Some(window_ns), false);
        let mut ran: Vec<Ran> = others.map(other).collect::<Result<_, _>>()?;
        ran.insert(self.reference, reference);
        let samples = self.samples(&ran, &with, kind, self.idle_w(&with))?;
        Ok((samples, replica.into_drawn()))
    }

    /// The window that the reference policy's run sets.
    fn window_ns(&self, workload: &Workload, reference: &Outcome) -> u64 {
        let done = reference.work.done_ns.unwrap_or(reference.elapsed_ns);
        match makespan_ns(&reference.work) {
            Some(makespan) if !workload.is_interactive() => {
                let factor = if self.rule.max_slowdown.is_finite() {
                    1.0 + self.rule.max_slowdown
                } else {
                    UNLIMITED_WINDOW
                };
                let window = reference.work.released_ns + (makespan as f64 * factor) as u64;
                window.max(done)
            }
            _ => workload.span_ns.max(done),
        }
    }

    /// One policy's run; without a window it sets its own.
    pub(crate) fn run(
        &self,
        with: &Circumstances<'_>,
        policy: &PolicySpec,
        window_ns: Option<u64>,
        timeline: bool,
    ) -> Result<Ran, CompareError> {
        let mut sim = simulate(self.job, with, policy, &self.idle, timeline);
        let before = match with.workload.release_ns {
            0 => Energy::default(),
            release => sim.run_until(release).energy,
        };
        let failed = |source| CompareError::Run { policy: policy.text.clone(), source };
        let own = sim.run_to_completion(limit_ns(self.job, with.workload)).map_err(failed)?;
        let window_ns = window_ns.unwrap_or_else(|| self.window_ns(with.workload, &own));
        let within_window = own.elapsed_ns <= window_ns;
        let after = sim.run_until(window_ns.max(own.elapsed_ns));
        sim.check_events().map_err(failed)?;
        let (energy, busy_cycles) = (after.energy, after.work.background_cycles);
        (self.tell)();
        Ok(Ran { before, own, energy, busy_cycles, window_ns, within_window, timeline: sim.timeline() })
    }

    /// What the machine draws without any work under the reference policy, in watts.
    pub(crate) fn idle_w(&self, with: &Circumstances<'_>) -> f64 {
        let nothing = Workload::new("nothing", "no task", Vec::new(), IDLE_LOOK_NS);
        let with = Circumstances { workload: &nothing, memory: &[], ..*with };
        let mut sim = simulate(self.job, &with, self.policies[self.reference], &self.idle, false);
        sim.run_until(IDLE_LOOK_NS).energy.total_j() / (IDLE_LOOK_NS as f64 * 1e-9)
    }

    /// The 95th percentile of the stretch of the reference policy against itself, in another phase. Where tasks meet is
    /// chaotic: some responses take longer in any second run, and that is no policy's fault.
    pub(crate) fn twin_p95(&self, with: &Circumstances<'_>, reference: &Ran) -> Result<f64, CompareError> {
        let twin = Circumstances {
            phase_ns: with.phase_ns + TWIN_PHASE_NS,
            background_shift_ns: with.background_shift_ns + TWIN_PHASE_NS,
            ..*with
        };
        let twin = self.run(&twin, self.policies[self.reference], Some(reference.window_ns), false)?;
        Ok(response(&twin.own.work, &reference.own.work, |_| true).p95)
    }

    fn samples(
        &self,
        ran: &[Ran],
        with: &Circumstances<'_>,
        kind: TimeKind,
        idle_w: f64,
    ) -> Result<Vec<Sample>, CompareError> {
        let reference = &ran[self.reference];
        let twin_p95 = if kind == TimeKind::Response { self.twin_p95(with, reference)? } else { 1.0 };
        let judge = Judge { reference, workload: with.workload, kind, idle_w, limit: self.rule.max_slowdown };
        let sample = |(p, own): (usize, &Ran)| {
            self.same_work(self.policies[p], own, reference)?;
            let sample = judge.sample(own);
            Ok(Sample { spread: sample.spread.max(twin_p95), ..sample })
        };
        ran.iter().enumerate().map(sample).collect()
    }

    /// Whether a run did the reference policy's work.
    pub(crate) fn same_work(
        &self,
        policy: &PolicySpec,
        own: &Ran,
        reference: &Ran,
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

    /// The answer from all samples.
    fn conclude(
        &self,
        nominal: Nominal,
        samples: &[Vec<Sample>],
        draws: &[Vec<Drawn>],
        options: &Options<'_>,
    ) -> (Comparison, Vec<PolicyDetail>) {
        let goal = self.rule.goal;
        let kind = nominal.judged.kind;
        let candidate = |p: usize| Candidate {
            cost: samples.iter().map(|s| cost(&s[p], goal)).collect(),
            within: samples.iter().map(|s| s[p].within).collect(),
        };
        let candidates: Vec<Candidate> = (0..self.policies.len()).map(candidate).collect();
        let standing = crate::ties::standing(&candidates, |p| {
            p == self.reference || self.surely(p, kind, samples, &candidates[p].within)
        });
        let results: Vec<PolicyResult> =
            (0..self.policies.len()).map(|p| self.policy_result(p, &nominal, samples, &standing)).collect();
        let stopped = (draws.len() as u64) < options.replicas;
        let mut answer = answer::answer(&Answered {
            results: &results,
            policies: &self.policies,
            reference: self.reference,
            standing: &standing,
            goal,
            kind: nominal.judged.kind,
            exact: draws.is_empty(),
            apply: options.apply,
        });
        if stopped {
            let (done, asked) = (draws.len(), options.replicas);
            answer.text = format!("Stopped after {done} of {asked} replicas. {}", answer.text);
        }
        let deciding = deciding(&candidates, &standing, draws);
        let details = if self.job.detail { self.details(&nominal) } else { Vec::new() };
        let comparison = Comparison {
            schema: SCHEMA.into(),
            machine: self.job.machine.name.clone(),
            workload: workload_info(self.job.workload, &nominal.ran[self.reference].own),
            judged: nominal.judged,
            reference: self.policies[self.reference].text.clone(),
            replicas: draws.len() as u64,
            stopped,
            replicas_asked: stopped.then_some(options.replicas),
            max_slowdown: self.rule.max_slowdown.is_finite().then_some(self.rule.max_slowdown),
            window_s: nominal.window_ns as f64 * 1e-9,
            deciding: deciding.map(|(rival, figures)| Deciding {
                between: [standing.leader.unwrap_or(0), rival].map(|p| self.policies[p].text.clone()),
                figures,
            }),
            results,
            answer,
            inputs: inputs(self.job, &self.idle),
        };
        (comparison, details)
    }

    /// Whether a policy would keep the limit of time in other replicas as well.
    fn surely(&self, p: usize, kind: TimeKind, samples: &[Vec<Sample>], within: &[bool]) -> bool {
        if kind != TimeKind::Response {
            return limit::surely_within(within);
        }
        let own: Vec<f64> = samples.iter().map(|s| s[p].p95).collect();
        let spread: Vec<f64> = samples.iter().map(|s| s[p].spread).collect();
        limit::surely_responsive(&own, &spread, 1.0 + self.rule.max_slowdown)
    }

    fn details(&self, nominal: &Nominal) -> Vec<PolicyDetail> {
        let detail = |(p, ran): (&&PolicySpec, &Ran)| PolicyDetail {
            policy: p.text.clone(),
            timeline: ran.timeline.clone().unwrap_or_default(),
            wake_histogram: ran.own.wake_latency.iter().collect(),
        };
        self.policies.iter().zip(&nominal.ran).map(detail).collect()
    }

    fn policy_result(
        &self,
        p: usize,
        nominal: &Nominal,
        samples: &[Vec<Sample>],
        standing: &Standing,
    ) -> PolicyResult {
        let (ran, own) = (&nominal.ran[p], &nominal.samples[p]);
        let reference = &nominal.samples[self.reference];
        let over = |of: fn(&Sample) -> f64| interval(samples.iter().map(|s| of(&s[p])));
        let ratio = |of: fn(&Sample) -> f64| {
            interval(samples.iter().map(|s| {
                let base = of(&s[self.reference]);
                if base > 0.0 { of(&s[p]) / base } else { 1.0 }
            }))
        };
        let us = |q: f64| ran.own.wake_latency.quantile(q) as f64 * 1e-3;
        let within = samples.iter().filter(|s| s[p].within).count() as f64 / samples.len().max(1) as f64;
        let elapsed_s = own.elapsed_s;
        let (speed_residency, idle_residency) = residencies(&ran.own);
        PolicyResult {
            policy: self.policies[p].text.clone(),
            elapsed_s,
            energy_j: own.own_j,
            window_energy_j: own.energy_j,
            above_idle_j: own.above_idle_j,
            mean_w: if elapsed_s > 0.0 { own.own_j / elapsed_s } else { 0.0 },
            edp_js: own.own_j * elapsed_s,
            slowdown: if reference.elapsed_s > 0.0 { elapsed_s / reference.elapsed_s } else { 1.0 },
            response: own.response,
            missed: own.missed,
            wake_latency_us: Latency {
                p50: us(0.5),
                p99: us(0.99),
                max: ran.own.wake_latency.max() as f64 * 1e-3,
            },
            over_own_time: !ran.within_window,
            uncertain: Uncertain {
                time: over(|s| s.time),
                energy_j: over(|s| s.energy_j),
                time_ratio: ratio(|s| s.time),
                energy_ratio: ratio(|s| s.energy_j),
            },
            within_share: within,
            admissible: standing.admissible[p],
            best_share: standing.best_share[p],
            tied: standing.leader == Some(p) || standing.ties.contains(&p),
            transitions: ran.own.transitions,
            speed_residency,
            idle_residency,
            window_split_j: split(&minus(&ran.energy, &ran.before)),
            provenance: "modelled".into(),
            approximation: self.policies[p].speed.approximation().map(str::to_owned),
        }
    }
}

/// Most figures that are named as deciding.
const MOST_DECIDING: usize = 3;

/// Between the leader and its nearest rival, which figures decide; the rival comes first.
fn deciding(
    all: &[Candidate],
    standing: &Standing,
    draws: &[Vec<Drawn>],
) -> Option<(usize, Vec<DecidingFigure>)> {
    let leader = standing.leader?;
    let rivals = (0..all.len()).filter(|&p| p != leader && standing.admissible[p]);
    let median = |p: usize| quantile(&crate::ties::excess(&all[p], &all[leader]), 0.5);
    let rival = rivals.min_by(|&a, &b| median(a).total_cmp(&median(b)))?;
    let pairs = all[rival].cost.iter().zip(&all[leader].cost);
    let excess: Vec<f64> = pairs.map(|(rival, leader)| (rival - leader) / leader).collect();
    let found = sensitivity(draws, &excess);
    let figure = |s: &Share| DecidingFigure {
        what: s.what.clone(),
        share: s.share,
        low: s.low,
        high: s.high,
        by: measurable(&s.what)
            .or_else(|| replicas::measurable(&s.what))
            .unwrap_or("no known way")
            .to_owned(),
    };
    let figures = found.shares.iter().filter(|s| s.decides).take(MOST_DECIDING).map(figure).collect();
    Some((rival, figures))
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

/// What one policy's run is held against.
pub(crate) struct Judge<'a> {
    pub(crate) reference: &'a Ran,
    pub(crate) workload: &'a Workload,
    pub(crate) kind: TimeKind,
    pub(crate) idle_w: f64,
    pub(crate) limit: f64,
}

impl Judge<'_> {
    /// The figures of a run; a response time is judged later, by [`respond`].
    pub(crate) fn sample(&self, ran: &Ran) -> Sample {
        let (work, reference) = (&ran.own.work, &self.reference.own.work);
        let done_ns = work.done_ns.unwrap_or(ran.own.elapsed_ns);
        let span_ns = makespan_ns(work).unwrap_or(done_ns.saturating_sub(work.released_ns));
        let stretches = Stretches::new(work, reference, |_| true);
        let response = stretches.response();
        let missed_share = missed(self.workload, work);
        let elapsed_s = span_ns as f64 * 1e-9;
        let base_s = makespan_ns(reference).unwrap_or(span_ns) as f64 * 1e-9;
        let (time, most) = match self.kind {
            TimeKind::Makespan => (elapsed_s, base_s * (1.0 + self.limit)),
            TimeKind::Response => (response.p95, 1.0 + self.limit),
            TimeKind::Deadlines => (missed_share, missed(self.workload, reference) + DEADLINE_SLACK),
        };
        let awake_j = minus(&ran.energy, &ran.before).total_j() + backlog_j(ran, self.reference);
        let suspended_j = self.workload.recorded.as_ref().map_or(0.0, Recorded::suspended_j);
        let end_ns = ran.window_ns.max(done_ns);
        let seconds = end_ns.saturating_sub(work.released_ns) as f64 * 1e-9;
        Sample {
            time,
            within: time <= most,
            p95: response.p95,
            spread: stretches.shortening().max(1.0),
            energy_j: awake_j + suspended_j,
            own_j: minus(&ran.own.energy, &ran.before).total_j(),
            elapsed_s,
            above_idle_j: awake_j - self.idle_w * seconds,
            response,
            missed: missed_share,
        }
    }
}

/// Energy of the background that this policy has left undone by the end of the window and the reference has not, or the
/// other way round: jobs in flight count whole. At the run's own energy a cycle.
fn backlog_j(ran: &Ran, reference: &Ran) -> f64 {
    if !(ran.within_window && reference.within_window) {
        return 0.0;
    }
    let left = reference.busy_cycles - ran.busy_cycles;
    let (work, busy_j) = (&ran.own.work, ran.own.energy.busy_j);
    let done = work.cycles + work.background_cycles;
    if done > 0.0 { left * busy_j / done } else { 0.0 }
}

/// Median and the 90 % interval of a sample.
fn interval(values: impl Iterator<Item = f64>) -> Interval {
    let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    Interval { median: quantile(&all, 0.5), low: quantile(&all, 0.05), high: quantile(&all, 0.95) }
}

/// What was used between two moments.
fn minus(after: &Energy, before: &Energy) -> Energy {
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

fn split(e: &Energy) -> Split {
    Split {
        busy_j: e.busy_j,
        stall_j: e.stall_j,
        idle_j: e.idle_j.clone(),
        leakage_j: e.leakage_j,
        uncore_j: e.uncore_j,
        memory_j: e.memory_j,
        platform_j: e.platform_j,
    }
}

/// CPU-seconds at each speed, fastest first, and in each idle state, over all CPUs.
fn residencies(own: &Outcome) -> (Vec<SpeedResidency>, Vec<IdleResidency>) {
    let mut speed: Vec<SpeedResidency> = Vec::new();
    let mut idle: Vec<IdleResidency> = Vec::new();
    for cpu in &own.cpus {
        for &(khz, ns) in &cpu.speed {
            let s = ns as f64 * 1e-9;
            match speed.iter_mut().find(|r| r.khz == khz) {
                Some(r) => r.s += s,
                None => speed.push(SpeedResidency { khz, s }),
            }
        }
        for (state, ns) in &cpu.idle {
            let s = *ns as f64 * 1e-9;
            match idle.iter_mut().find(|r| r.state == *state) {
                Some(r) => r.s += s,
                None => idle.push(IdleResidency { state: state.clone(), s }),
            }
        }
    }
    speed.sort_by_key(|r| std::cmp::Reverse(r.khz));
    (speed, idle)
}

fn workload_info(workload: &Workload, reference: &Outcome) -> WorkloadInfo {
    let recorded = workload.recorded.as_ref();
    WorkloadInfo {
        name: workload.name.clone(),
        source: workload.source.clone(),
        cpus: recorded.map_or(0, |r| r.cpus),
        duration_s: workload.span_ns as f64 * 1e-9,
        events: recorded.map_or(reference.wakeups, |r| r.events),
        foreground: answer::foreground(workload),
        background_share: {
            let (own, other) = (reference.work.cycles, reference.work.background_cycles);
            if own + other > 0.0 { other / (own + other) } else { 0.0 }
        },
        clock: answer::clock(workload),
        memory: answer::memory(workload),
    }
}

fn inputs(job: &ReplayJob<'_>, idle: &IdleSpec) -> Inputs {
    let confidence = |c: Confidence| format!("{c:?}").to_lowercase();
    Inputs {
        machine_summary: job.machine.summary.clone(),
        machine_figures: job
            .machine
            .inputs()
            .into_iter()
            .map(|f| InputFigure {
                what: f.what.to_owned(),
                source: f.source.to_owned(),
                confidence: confidence(f.confidence),
                range: f.value.map(|v| FigureRange {
                    nominal: v.nominal,
                    low: v.low,
                    high: v.high,
                    unit: v.unit.to_owned(),
                }),
            })
            .collect(),
        idle_policy: idle.idle.name.to_owned(),
        warnings: {
            let recorded = job.workload.recorded.iter().flat_map(|r| &r.warnings);
            job.machine.notes.iter().chain(recorded).cloned().collect()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replicas in which a second run of the reference has these 95th percentiles, and a policy those.
    fn judged(twin: &[f64], own: &[f64]) -> Vec<(f64, bool)> {
        let one = |(&spread, &p95): (&f64, &f64)| {
            let sample = |p95| Sample {
                time: 0.0,
                within: false,
                p95,
                spread,
                energy_j: 1.0,
                own_j: 1.0,
                elapsed_s: 1.0,
                above_idle_j: 1.0,
                response: Response::default(),
                missed: 0.0,
            };
            vec![sample(1.0), sample(p95)]
        };
        let mut all: Vec<Vec<Sample>> = twin.iter().zip(own).map(one).collect();
        respond(&mut all, 0.1);
        assert!(all.iter().all(|s| s[0].time == 1.0 && s[0].within), "the reference is itself");
        all.iter().map(|s| (s[1].time, s[1].within)).collect()
    }

    /// A policy that is the reference in other words has its distribution, in another order.
    #[test]
    fn chance_makes_no_policy_slow() {
        let twin: Vec<f64> = (0..64).map(|r| 1.0 + f64::from(r * 37 % 64) / 32.0).collect();
        let other: Vec<f64> = (0..64).map(|r| 1.0 + f64::from(r * 23 % 64) / 32.0).collect();
        assert!(judged(&twin, &other).iter().all(|(time, within)| *time == 1.0 && *within));
        // Two accidents in 64 prove nothing; a fifth more everywhere does.
        let mut unlucky = other.clone();
        unlucky[5] = 20.0;
        unlucky[9] = 11.0;
        let within = judged(&twin, &unlucky).iter().filter(|(_, within)| *within).count();
        assert!(within >= 61, "{within}");
        let slow: Vec<f64> = other.iter().map(|p95| p95 * 1.2).collect();
        assert!(judged(&twin, &slow).iter().all(|(time, within)| (time - 1.2).abs() < 1e-9 && !within));
    }

    /// Where the reference repeats itself exactly, every stretch is the policy's own.
    #[test]
    fn without_chance_a_stretch_is_what_it_is() {
        assert_eq!(judged(&[1.0], &[1.08]), [(1.08, true)]);
        assert_eq!(judged(&[1.0], &[1.3]), [(1.3, false)]);
        assert_eq!(judged(&[1.0], &[0.7]), [(0.7, true)]);
    }
}
