//! Experiments: the same work under several policies.
//!
//! [`compare`] is the main job. Every policy replays the whole workload; then each run is carried on,
//! idle, to the end of the longest, so that all are charged over the same window: a policy that
//! finishes early pays for the time that it has won, as a machine that stays on does (study 001).

pub mod ab;
pub mod bursts;
pub mod live;
pub mod lockbench;
pub mod machine;
pub mod result;
pub mod spec;

use crate::report::PolicyDetail;
use rayon::prelude::*;
use result::*;
pub use spec::{IdleSpec, PolicyError, PolicySpec};
use wattwise_model::machine::Machine;
use wattwise_model::workload::Workload;
use wattwise_policy::{IdlePolicy, IdleState, PowerSource};
use wattwise_sim::outcome::{Energy, Outcome};
use wattwise_sim::{Placement, RunError, Setup, Simulation, platform};

/// How the winner is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// What is to be small.
    pub goal: Goal,
    /// Policies slower than the fastest by more than this share do not count.
    pub max_slowdown: f64,
}

/// What is to be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Energy over the equal window.
    Energy,
    /// Energy over the run's own duration: the machine is switched off afterwards.
    OwnEnergy,
    /// Energy times time.
    Edp,
    /// Time.
    Time,
}

impl Default for Rule {
    /// Least energy over the window among policies at most a tenth slower than the fastest.
    fn default() -> Rule {
        Rule { goal: Goal::Energy, max_slowdown: 0.10 }
    }
}

/// What to compare.
pub struct Plan<'a> {
    /// The hardware.
    pub machine: &'a Machine,
    /// The work.
    pub workload: &'a Workload,
    /// The policies, in the order of the result.
    pub policies: &'a [PolicySpec],
    /// How the winner is found.
    pub rule: Rule,
    /// Mains or battery, as policies see it.
    pub source: PowerSource,
    /// Longest C-state exit latency that users tolerate, in ns.
    pub latency_limit_ns: u64,
    /// Whether to keep timelines and histograms for a report.
    pub detail: bool,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A machine model names an idle policy that does not exist.
    #[error("machine {machine}: default idle policy '{idle}': {problem}")]
    Idle {
        /// The machine.
        machine: String,
        /// What it names.
        idle: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The work does not end.
    #[error("{policy}: {source}")]
    Run {
        /// The policy under which it did not.
        policy: String,
        /// The engine's word.
        source: RunError,
    },
}

/// The idle policy that a machine model names.
pub fn machine_idle(machine: &Machine) -> Result<IdleSpec, CompareError> {
    let text = &machine.default_idle;
    let fail =
        |problem: String| CompareError::Idle { machine: machine.name.clone(), idle: text.clone(), problem };
    let (name, args) = text.split_once(':').unwrap_or((text, ""));
    let idle = wattwise_policy::idle::find(name).ok_or_else(|| fail("no such policy".into()))?;
    let settings = wattwise_policy::Settings::parse(idle.params, args).map_err(|e| fail(e.to_string()))?;
    Ok(IdleSpec { idle, settings })
}

impl IdleSpec {
    /// Makes the policy for one CPU.
    pub fn build(&self, states: &[IdleState], tick_ns: u64) -> Box<dyn IdlePolicy> {
        (self.idle.build)(states, tick_ns, &self.settings)
    }
}

/// A simulation of one policy of a plan, ready to run.
pub fn simulate<'a>(plan: &Plan<'a>, policy: &PolicySpec, idle: &IdleSpec) -> Simulation<'a> {
    let speed = (policy.speed.build)(&platform(plan.machine), &policy.speed_settings);
    let idle = policy.idle.as_ref().unwrap_or(idle);
    let make = |states: &[IdleState], tick: u64| idle.build(states, tick);
    let mut setup = Setup::new(plan.machine, plan.workload, speed, &make);
    place(policy, &mut setup);
    setup.source = plan.source;
    setup.latency_limit_ns = plan.latency_limit_ns;
    setup.timeline = plan.detail;
    Simulation::new(setup)
}

/// Puts a policy's placement and core policy into a set-up.
pub(crate) fn place(policy: &PolicySpec, setup: &mut Setup<'_, '_>) {
    if let Some(p) = policy.placement {
        setup.placement = p;
    }
    if let Some(c) = &policy.cores {
        setup.cores = Some((c.cores.build)(setup.machine.cpus.len(), &c.settings));
        // A recorded placement knows no kept CPUs.
        if setup.placement == Placement::Recorded {
            setup.placement = Placement::Spread;
        }
    }
}

/// Virtual time after which work counts as endless: a thousand times its span and an hour.
fn limit_ns(workload: &Workload) -> u64 {
    workload.span_ns.saturating_mul(1000).saturating_add(3_600_000_000_000)
}

/// Runs every policy. `done` is called with the number of runs finished so far, of twice the
/// number of policies (the work, then the rest of the window).
///
/// # Errors
/// When the machine's idle policy does not exist or the work does not end.
pub fn compare(
    plan: &Plan<'_>,
    done: &(dyn Fn(usize) + Sync),
) -> Result<(Comparison, Vec<PolicyDetail>), CompareError> {
    let idle = machine_idle(plan.machine)?;
    let counter = std::sync::atomic::AtomicUsize::new(0);
    let tell = || done(counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
    let mut runs: Vec<(Simulation<'_>, Outcome)> = plan
        .policies
        .par_iter()
        .map(|p| {
            let mut sim = simulate(plan, p, &idle);
            let outcome = sim
                .run_to_completion(limit_ns(plan.workload))
                .map_err(|source| CompareError::Run { policy: p.text.clone(), source })?;
            tell();
            Ok((sim, outcome))
        })
        .collect::<Result<_, CompareError>>()?;
    let longest = runs.iter().map(|(_, o)| o.elapsed_ns).max().unwrap_or(0);
    let window_ns = longest.max(plan.workload.span_ns);
    let windows: Vec<Outcome> = runs
        .par_iter_mut()
        .map(|(sim, _)| {
            let outcome = sim.run_until(window_ns);
            tell();
            outcome
        })
        .collect();
    let fastest = runs.iter().map(|(_, o)| o.elapsed_ns).min().unwrap_or(1).max(1);
    let results: Vec<PolicyResult> = plan
        .policies
        .iter()
        .zip(&runs)
        .zip(&windows)
        .map(|((p, (_, own)), window)| policy_result(&p.text, own, window, fastest))
        .collect();
    let details = if plan.detail {
        let detail =
            |((p, (sim, own)), _): ((&PolicySpec, &(Simulation<'_>, Outcome)), &Outcome)| PolicyDetail {
                policy: p.text.clone(),
                timeline: sim.timeline().unwrap_or_default(),
                wake_histogram: own.wake_latency.iter().collect(),
            };
        plan.policies.iter().zip(&runs).zip(&windows).map(detail).collect()
    } else {
        Vec::new()
    };
    let events = match &plan.workload.recorded {
        Some(r) => r.events,
        None => runs.first().map_or(0, |(_, o)| o.wakeups),
    };
    let comparison = Comparison {
        schema: "wattwise-compare-1".into(),
        machine: plan.machine.name.clone(),
        workload: WorkloadInfo {
            name: plan.workload.name.clone(),
            source: plan.workload.source.clone(),
            cpus: plan.workload.recorded.as_ref().map_or(0, |r| r.cpus),
            duration_s: plan.workload.span_ns as f64 * 1e-9,
            events,
        },
        window_s: window_ns as f64 * 1e-9,
        best: choose(&results, plan.rule),
        results,
        inputs: inputs(plan, &idle),
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

/// The winner under a rule, with the figures that decided. Of equals the faster wins, then the first.
fn choose(results: &[PolicyResult], rule: Rule) -> Best {
    let goal = |r: &PolicyResult| match rule.goal {
        Goal::Energy => r.window_energy_j,
        Goal::OwnEnergy => r.energy_j,
        Goal::Edp => r.edp_js,
        Goal::Time => r.elapsed_s,
    };
    let (what, unit) = match rule.goal {
        Goal::Energy => ("energy over the equal window", "J"),
        Goal::OwnEnergy => ("energy over its own duration", "J"),
        Goal::Edp => ("energy-delay product", "J s"),
        Goal::Time => ("time", "s"),
    };
    let eligible = |r: &&PolicyResult| r.slowdown <= 1.0 + rule.max_slowdown + 1e-9;
    let order = |a: &&PolicyResult, b: &&PolicyResult| {
        goal(a).total_cmp(&goal(b)).then(a.elapsed_s.total_cmp(&b.elapsed_s))
    };
    let Some(best) = results.iter().filter(eligible).min_by(order) else {
        return Best { policy: String::new(), why: "no policy ran".into() };
    };
    let mut why = format!("least {what} ({:.4} {unit})", goal(best));
    if rule.max_slowdown.is_finite() {
        why += &format!(
            " among policies at most {:.0} % slower than the fastest; it is {:.1} % slower",
            rule.max_slowdown * 100.0,
            (best.slowdown - 1.0) * 100.0
        );
    }
    let versus = results.iter().find(|r| r.policy == "performance" && r.policy != best.policy);
    if let Some(r) = versus
        && goal(r) > 0.0
    {
        why += &format!(", {:.1} % below performance", (1.0 - goal(best) / goal(r)) * 100.0);
    }
    if let Some(r) = results.iter().min_by(order)
        && r.policy != best.policy
    {
        why += &format!(
            "; {} needs less ({:.4} {unit}) but takes {:.1} % longer than the fastest",
            r.policy,
            goal(r),
            (r.slowdown - 1.0) * 100.0
        );
    }
    Best { policy: best.policy.clone(), why }
}

fn inputs(plan: &Plan<'_>, idle: &IdleSpec) -> Inputs {
    let confidence = |c: wattwise_model::machine::Confidence| format!("{c:?}").to_lowercase();
    Inputs {
        machine_summary: plan.machine.summary.clone(),
        machine_figures: plan
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
        warnings: plan.workload.recorded.as_ref().map_or_else(Vec::new, |r| r.warnings.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(policy: &str, s: f64, j: f64) -> PolicyResult {
        PolicyResult {
            policy: policy.into(),
            elapsed_s: s,
            energy_j: j,
            window_energy_j: j,
            mean_w: j / s,
            edp_js: j * s,
            slowdown: s,
            wake_latency_us: Latency { p50: 0.0, p99: 0.0, max: 0.0 },
            transitions: 0,
            speed_residency: vec![],
            idle_residency: vec![],
            window_split_j: Split { busy_j: j, stall_j: 0.0, idle_j: vec![], uncore_j: 0.0, platform_j: 0.0 },
            provenance: "modelled".into(),
        }
    }

    #[test]
    fn the_rule_decides() {
        let r = [result("performance", 1.0, 100.0), result("a", 1.05, 80.0), result("b", 2.0, 50.0)];
        let best = |goal, max_slowdown| choose(&r, Rule { goal, max_slowdown }).policy;
        assert_eq!(best(Goal::Energy, 0.10), "a");
        assert_eq!(best(Goal::Energy, 0.01), "performance");
        assert_eq!(best(Goal::Energy, f64::INFINITY), "b");
        assert_eq!(best(Goal::Edp, f64::INFINITY), "a");
        assert_eq!(best(Goal::Time, f64::INFINITY), "performance");
        let why = choose(&r, Rule::default()).why;
        assert!(why.contains("20.0 % below performance") && why.contains("b needs less"), "{why}");
    }

    /// Study 002's first load, recorded: `consolidate` needs the least energy of the policies that choose CPUs by
    /// themselves, and its 99th percentile of wake-up latency is within the guard on each machine model with SMT.
    #[test]
    fn consolidate_beats_the_other_core_policies_where_there_is_something_to_gain() {
        let workload = crate::library::workload("cyclictest", &Default::default()).expect("bundled");
        let names = ["", "+coreidle-ondemand", "+dragonfly", "+lpmd", "+consolidate"];
        let policies: Vec<PolicySpec> = names
            .iter()
            .map(|c| PolicySpec::parse(&format!("performance+spread{c}")).expect("valid"))
            .collect();
        for name in ["core-i5-2gen", "i7-4510u", "alderlake-p-laptop"] {
            let machine = crate::library::machine(name).expect("bundled");
            let plan = Plan {
                machine: &machine,
                workload: &workload,
                policies: &policies,
                rule: Rule::default(),
                source: PowerSource::Unknown,
                latency_limit_ns: u64::MAX,
                detail: false,
            };
            let (comparison, _) = compare(&plan, &|_| {}).expect("runs");
            let (ours, others) = comparison.results.split_last().expect("five");
            for other in others {
                assert!(ours.window_energy_j < other.window_energy_j, "{name}: {}", other.policy);
            }
            let (p99, open) = (ours.wake_latency_us.p99, others[0].wake_latency_us.p99);
            assert!(p99 <= 1.5 * open, "{name}: {p99} us, {open} us without");
        }
    }
}
