//! From samples and verdicts to the figures of the result.

use crate::answer;
use crate::judge::{Column, Sample, TimeStanding, minus};
use crate::result::*;
use crate::runs::PolicyRun;
use wattwise_model::machine::Confidence;
use wattwise_model::workload::{Program, Task, Workload};
use wattwise_policy::chosen::IdleSpec;
use wattwise_replay::job::ReplayJob;
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::{Energy, Outcome};

/// What one policy's result is made of.
pub(crate) struct Described<'a> {
    pub(crate) policy: &'a PolicySpec,
    /// Its nominal run and figures, and the reference's figures there.
    pub(crate) nominal: &'a PolicyRun,
    pub(crate) nominal_samples: (&'a Sample, &'a Sample),
    /// Its figures in the replicas.
    pub(crate) column: &'a Column,
    /// The reference's figures in the replicas that the others ran in, where this policy's are others: then its joules and
    /// seconds are its ratios times the reference's medians, so that rows can be held against each other.
    pub(crate) base: Option<&'a Column>,
    /// It was left after these replicas, as it could not be the best.
    pub(crate) raced_out: bool,
    /// Where it stands among those that were not raced out.
    pub(crate) best_share: f64,
    pub(crate) tied: bool,
}

/// A figure beside the reference's `base` in the replicas that the others ran in: its ratio to the reference there, times that.
pub(crate) fn rebased_figure(ratio: Interval, base: Interval) -> Interval {
    // Two independent doubts, by how far each end is from its median: that of the reference's own figure, which all policies share,
    // and that of the ratio to it.
    let median = ratio.median * base.median;
    let end = |of: fn(&Interval) -> f64| {
        let off = |i: &Interval| if i.median > 0.0 { (of(i) / i.median).ln() } else { 0.0 };
        median * off(&ratio).hypot(off(&base)).copysign(off(&ratio) + off(&base)).exp()
    };
    Interval { median, low: end(|i| i.low), high: end(|i| i.high) }
}

/// Response times beside the reference's `base` in the replicas that the others ran in.
fn beside(own: &Responses, base: &Responses) -> Responses {
    let mut own = own.clone();
    let factor = |now: f64, then: f64| if then > 0.0 { now / then } else { 1.0 };
    let all = factor(base.waiting_s, own.reference_waiting_s);
    (own.waiting_s, own.reference_waiting_s) = (own.waiting_s * all, own.reference_waiting_s * all);
    for kind in &mut own.kinds {
        let Some(same) = kind.like(&base.kinds) else { continue };
        // Each quantile keeps its ratio to the reference's, as joules and seconds do.
        let moved = |own: Option<f64>, now: Option<f64>, then: Option<f64>| {
            own.map(|s| s * now.zip(then).map_or(1.0, |(now, then)| factor(now, then)))
        };
        kind.p50_s = moved(kind.p50_s, same.p50_s, kind.reference_p50_s);
        // In order, where the reference's tail is another than there and the policy has none.
        kind.p95_s =
            moved(kind.p95_s, same.p95_s, kind.reference_p95_s).map(|s| s.max(kind.p50_s.unwrap_or(s)));
        (kind.reference_p50_s, kind.reference_p95_s) = (same.p50_s, same.p95_s);
        let waiting = factor(same.waiting_s, kind.reference_waiting_s);
        kind.waiting_s *= waiting;
        kind.reference_waiting_s *= waiting;
    }
    own
}

impl Described<'_> {
    fn over(&self, of: fn(&Sample) -> f64) -> Interval {
        let Some(base) = self.base else { return Interval::of(self.column.own.iter().map(of)) };
        rebased_figure(self.ratio(of), Interval::of(base.own.iter().map(of)))
    }

    fn ratio(&self, of: fn(&Sample) -> f64) -> Interval {
        Interval::of(self.column.own.iter().zip(&self.column.reference).map(|(own, reference)| {
            let base = of(reference);
            if base > 0.0 { of(own) / base } else { 1.0 }
        }))
    }

    fn rebased(&self, own: &Responses, of: impl Fn(&TimeStanding) -> Option<&Responses>) -> Responses {
        self.base.and_then(|base| of(&base.kept)).map_or_else(|| own.clone(), |base| beside(own, base))
    }

    /// The policy's entry of the result.
    pub(crate) fn result(&self) -> PolicyResult {
        let ran = self.nominal;
        let (own, reference) = self.nominal_samples;
        let kept = &self.column.kept;
        let us = |q: f64| ran.own.wake_latency.quantile(q) as f64 * 1e-3;
        let elapsed_s = own.elapsed_s;
        let (speed_residency, idle_residency) = residencies(&ran.own);
        PolicyResult {
            policy: self.policy.text.clone(),
            elapsed_s,
            energy_j: own.own_j,
            window_energy_j: own.energy_j,
            above_idle_j: own.above_idle_j,
            mean_w: if elapsed_s > 0.0 { own.own_j / elapsed_s } else { 0.0 },
            edp_js: own.own_j * elapsed_s,
            slowdown: if reference.elapsed_s > 0.0 { elapsed_s / reference.elapsed_s } else { 1.0 },
            missed: missed_share(&kept.missed),
            wake_latency_us: Latency {
                p50: us(0.5),
                p99: us(0.99),
                max: ran.own.wake_latency.max() as f64 * 1e-3,
            },
            over_own_time: !ran.within_window,
            uncertain: Uncertain {
                time: self.over(|s| s.time),
                energy_j: self.over(|s| s.energy_j),
                own_energy_j: self.over(|s| s.own_j),
                time_ratio: self.over(|s| s.time_ratio),
                energy_ratio: self.ratio(|s| s.energy_j),
                own_energy_ratio: self.ratio(|s| s.own_j),
            },
            within_share: self.column.within_share(),
            admissible: kept.admissible,
            raced_out_after: self.raced_out.then_some(self.column.own.len() as u64),
            best_share: self.best_share,
            tied: self.tied,
            transitions: ran.own.transitions,
            speed_residency,
            idle_residency,
            window_split_j: Split {
                undone_background_j: own.undone_j,
                suspended_j: own.suspended_j,
                ..split(&minus(&ran.energy, &ran.before))
            },
            provenance: "modelled".into(),
            approximation: self.policy.speed.approximation().map(str::to_owned),
            responses: kept.responses.as_ref().map(|r| self.rebased(r, |base| base.responses.as_ref())),
            other_responses: self.rebased(&kept.others, |base| Some(&base.others)),
            missed_by_task: kept.missed.clone(),
        }
    }
}

/// The largest share that a judged task misses.
fn missed_share(missed: &[MissedTask]) -> f64 {
    missed.iter().map(|m| m.share).fold(0.0, f64::max)
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
        ..Split::default()
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

pub(crate) fn workload_info(workload: &Workload, reference: &Outcome) -> WorkloadInfo {
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
        others_share: recorded.map(|r| r.strangers.share()),
    }
}

/// By how much later than `rounds_within_s` work may be done before that is said, as a share.
const MUCH_LATER: f64 = 0.1;

/// What `rounds_within_s` did not mean here: it fixes rounds as if each task had a CPU to itself.
fn late(workload: &Workload, reference: &Outcome) -> Option<String> {
    let until = |t: &Task| match &t.program {
        Program::Pattern(p) if t.is_foreground() && p.until_ns != u64::MAX => p.until_ns,
        _ => 0,
    };
    let last = workload.tasks.iter().rev().max_by_key(|t| until(t)).filter(|t| until(t) > 0)?;
    let (until_ns, name) = (until(last), last.name.split([':', '/']).next().unwrap_or_default());
    let (until_s, done_s) = (until_ns as f64 * 1e-9, reference.work.done_ns? as f64 * 1e-9);
    (done_s > until_s * (1.0 + MUCH_LATER)).then(|| {
        format!(
            "{name}: its rounds take {} s on a CPU of its own (as its file asks); here the reference takes {} for them",
            wattwise_figure::units::trim(until_s, 3),
            crate::say::seconds(done_s)
        )
    })
}

pub(crate) fn inputs(job: &ReplayJob<'_>, idle: &IdleSpec, reference: &Outcome) -> Inputs {
    let confidence = |c: Confidence| format!("{c:?}").to_lowercase();
    Inputs {
        machine_summary: job.machine.summary.clone(),
        own_machine: false,
        root: None,
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
        uncertain: crate::replicas::uncertain(job.workload),
        idle_policy: idle.idle.name.to_owned(),
        warnings: {
            let recorded = job.workload.recorded.iter().flat_map(|r| &r.warnings);
            let known = job.machine.notes.iter().chain(recorded).cloned();
            known.chain(late(job.workload, reference)).collect()
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(own: [f64; 2], reference: [f64; 2]) -> KindResponses {
        KindResponses {
            kind: "page".into(),
            p50_s: Some(own[0]),
            p95_s: Some(own[1]),
            reference_p50_s: Some(reference[0]),
            reference_p95_s: Some(reference[1]),
            waiting_s: 1.0,
            reference_waiting_s: 1.0,
            ..KindResponses::default()
        }
    }

    /// By hand. In other replicas the reference's page takes 2.1 and 6 s, here 2 and 5: a policy with 1.2 and 1.1 times as much there
    /// has as much here. One without a tail keeps its quantiles in order.
    #[test]
    fn rebased_quantiles_keep_their_ratios_and_their_order() {
        let with = |kind| Responses { kinds: vec![kind], ..Responses::default() };
        let base = with(kind([2.0, 5.0], [2.0, 5.0]));
        for (own, expected) in [([2.52, 6.6], [2.4, 5.5]), ([2.52, 2.7], [2.4, 2.4])] {
            let told = &beside(&with(kind(own, [2.1, 6.0])), &base).kinds[0];
            let [p50, p95] = [told.p50_s, told.p95_s].map(Option::unwrap);
            assert!((p50 - expected[0]).abs() < 1e-12 && (p95 - expected[1]).abs() < 1e-12, "{p50} {p95}");
            assert_eq!((told.reference_p50_s, told.reference_p95_s), (Some(2.0), Some(5.0)));
        }
    }
}
