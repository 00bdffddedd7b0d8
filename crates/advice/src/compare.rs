//! Experiments: the same work under several policies.
//!
//! [`compare`] is the main job. Every policy replays the whole workload; then each run is carried on,
//! idle, to the end of the longest, so that all are charged over the same window: a policy that
//! finishes early pays for the time that it has won, as a machine that stays on does (study 001).

use crate::result::*;
use crate::rule::{Rule, choose};
use rayon::prelude::*;
use wattwise_policy::chosen::IdleSpec;
use wattwise_replay::job::{IdleError, ReplayJob, limit_ns, machine_idle, simulate};
use wattwise_replay::spec::PolicySpec;
use wattwise_sim::outcome::{Energy, Outcome, Timeline};
use wattwise_sim::{RunError, Simulation};

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A machine model names an idle policy that does not exist.
    #[error(transparent)]
    Idle(#[from] IdleError),
    /// The work does not end.
    #[error("{policy}: {source}")]
    Run {
        /// The policy under which it did not.
        policy: String,
        /// The engine's word.
        source: RunError,
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

/// Runs every policy. `done` is called with the number of runs finished so far, of twice the
/// number of policies (the work, then the rest of the window).
///
/// # Errors
/// When the machine's idle policy does not exist or the work does not end.
pub fn compare(
    job: &ReplayJob<'_>,
    rule: Rule,
    done: &(dyn Fn(usize) + Sync),
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let idle = machine_idle(job.machine)?;
    let counter = std::sync::atomic::AtomicUsize::new(0);
    let tell = || done(counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
    let mut runs: Vec<(Simulation<'_>, Outcome)> = job
        .policies
        .par_iter()
        .map(|p| {
            let mut sim = simulate(job, p, &idle);
            let outcome = sim
                .run_to_completion(limit_ns(job.workload))
                .map_err(|source| CompareError::Run { policy: p.text.clone(), source })?;
            tell();
            Ok((sim, outcome))
        })
        .collect::<Result<_, CompareError>>()?;
    let longest = runs.iter().map(|(_, o)| o.elapsed_ns).max().unwrap_or(0);
    let window_ns = longest.max(job.workload.span_ns);
    let windows: Vec<Outcome> = runs
        .par_iter_mut()
        .map(|(sim, _)| {
            let outcome = sim.run_until(window_ns);
            tell();
            outcome
        })
        .collect();
    let fastest = runs.iter().map(|(_, o)| o.elapsed_ns).min().unwrap_or(1).max(1);
    let results: Vec<PolicyResult> = job
        .policies
        .iter()
        .zip(&runs)
        .zip(&windows)
        .map(|((p, (_, own)), window)| policy_result(&p.text, own, window, fastest))
        .collect();
    let details = if job.detail {
        let detail =
            |((p, (sim, own)), _): ((&PolicySpec, &(Simulation<'_>, Outcome)), &Outcome)| PolicyDetail {
                policy: p.text.clone(),
                timeline: sim.timeline().unwrap_or_default(),
                wake_histogram: own.wake_latency.iter().collect(),
            };
        job.policies.iter().zip(&runs).zip(&windows).map(detail).collect()
    } else {
        Vec::new()
    };
    let events = match &job.workload.recorded {
        Some(r) => r.events,
        None => runs.first().map_or(0, |(_, o)| o.wakeups),
    };
    let comparison = Comparison {
        schema: "wattwise-compare-1".into(),
        machine: job.machine.name.clone(),
        workload: WorkloadInfo {
            name: job.workload.name.clone(),
            source: job.workload.source.clone(),
            cpus: job.workload.recorded.as_ref().map_or(0, |r| r.cpus),
            duration_s: job.workload.span_ns as f64 * 1e-9,
            events,
        },
        window_s: window_ns as f64 * 1e-9,
        best: choose(&results, rule),
        results,
        inputs: inputs(job, &idle),
    };
    Ok((comparison, details))
}

fn policy_result(policy: &str, own: &Outcome, window: &Outcome, fastest_ns: u64) -> PolicyResult {
    let elapsed_s = own.elapsed_ns as f64 * 1e-9;
    let energy_j = own.energy.total_j();
    let us = |q: f64| own.wake_latency.quantile(q) as f64 * 1e-3;
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
    PolicyResult {
        policy: policy.to_owned(),
        elapsed_s,
        energy_j,
        window_energy_j: window.energy.total_j(),
        mean_w: if elapsed_s > 0.0 { energy_j / elapsed_s } else { 0.0 },
        edp_js: energy_j * elapsed_s,
        slowdown: own.elapsed_ns as f64 / fastest_ns as f64,
        wake_latency_us: Latency { p50: us(0.5), p99: us(0.99), max: own.wake_latency.max() as f64 * 1e-3 },
        transitions: own.transitions,
        speed_residency: speed,
        idle_residency: idle,
        window_split_j: split(&window.energy),
        provenance: "modelled".into(),
    }
}

fn split(e: &Energy) -> Split {
    Split {
        busy_j: e.busy_j,
        stall_j: e.stall_j,
        idle_j: e.idle_j.clone(),
        uncore_j: e.uncore_j,
        platform_j: e.platform_j,
    }
}

fn inputs(job: &ReplayJob<'_>, idle: &IdleSpec) -> Inputs {
    let confidence = |c: wattwise_model::machine::Confidence| format!("{c:?}").to_lowercase();
    Inputs {
        machine_summary: job.machine.summary.clone(),
        machine_figures: job
            .machine
            .provenance
            .iter()
            .map(|f| InputFigure {
                what: f.what.clone(),
                source: f.source.clone(),
                confidence: confidence(f.confidence),
            })
            .collect(),
        idle_policy: idle.idle.name.to_owned(),
        warnings: job.workload.recorded.as_ref().map_or_else(Vec::new, |r| r.warnings.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_policy::PowerSource;

    /// Study 002's first load, recorded: `consolidate` needs the least energy of the policies that choose CPUs by
    /// themselves, and its 99th percentile of wake-up latency is within the guard on each machine model with SMT.
    #[test]
    fn consolidate_beats_the_other_core_policies_where_there_is_something_to_gain() {
        let workload =
            wattwise_replay::library::workload("cyclictest", &Default::default()).expect("bundled");
        let names = ["", "+coreidle-ondemand", "+dragonfly", "+lpmd", "+consolidate"];
        let policies: Vec<PolicySpec> = names
            .iter()
            .map(|c| PolicySpec::parse(&format!("performance+spread{c}")).expect("valid"))
            .collect();
        for name in ["core-i5-2gen", "i7-4510u", "alderlake-p-laptop"] {
            let machine = wattwise_replay::library::machine(name).expect("bundled");
            let job = ReplayJob {
                machine: &machine,
                workload: &workload,
                policies: &policies,
                source: PowerSource::Unknown,
                latency_limit_ns: u64::MAX,
                detail: false,
            };
            let (comparison, _) = compare(&job, Rule::default(), &|_| {}).expect("runs");
            let (ours, others) = comparison.results.split_last().expect("five");
            for other in others {
                assert!(ours.window_energy_j < other.window_energy_j, "{name}: {}", other.policy);
            }
            let (p99, open) = (ours.wake_latency_us.p99, others[0].wake_latency_us.p99);
            assert!(p99 <= 1.5 * open, "{name}: {p99} us, {open} us without");
        }
    }
}
