//! A job: one workload on one machine under several policies, and the simulation of each.

use crate::spec::PolicySpec;
use wattwise_model::machine::Machine;
use wattwise_model::workload::Workload;
use wattwise_policy::chosen::IdleSpec;
use wattwise_policy::{IdleState, PowerSource};
use wattwise_sim::{Setup, Simulation, placement, platform};

/// What to replay.
pub struct ReplayJob<'a> {
    /// The hardware.
    pub machine: &'a Machine,
    /// The work.
    pub workload: &'a Workload,
    /// The policies, in the order of the result.
    pub policies: &'a [PolicySpec],
    /// Mains or battery, as policies see it.
    pub source: PowerSource,
    /// Longest C-state exit latency that users tolerate, in ns.
    pub latency_limit_ns: u64,
    /// Whether to keep timelines and histograms for a report.
    pub detail: bool,
}

/// A machine model names an idle policy that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("machine {machine}: default idle policy '{idle}': {problem}")]
pub struct IdleError {
    /// The machine.
    pub machine: String,
    /// What it names.
    pub idle: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The idle policy that a machine model names.
pub fn machine_idle(machine: &Machine) -> Result<IdleSpec, IdleError> {
    let text = &machine.default_idle;
    let fail = |problem: String| IdleError { machine: machine.name.clone(), idle: text.clone(), problem };
    let (name, args) = text.split_once(':').unwrap_or((text, ""));
    let idle = wattwise_policy::idle::find(name).ok_or_else(|| fail("no such policy".into()))?;
    let settings = wattwise_policy::Settings::parse(idle.params, args).map_err(|e| fail(e.to_string()))?;
    Ok(IdleSpec { idle, settings })
}

/// A simulation of one policy of a job, ready to run.
pub fn simulate<'a>(job: &ReplayJob<'a>, policy: &PolicySpec, idle: &IdleSpec) -> Simulation<'a> {
    let speed = (policy.speed.build)(&platform(job.machine), &policy.speed_settings);
    let idle = policy.idle.as_ref().unwrap_or(idle);
    let make = |states: &[IdleState], tick: u64| idle.build(states, tick);
    let mut setup = Setup::new(job.machine, job.workload, speed, &make);
    place(policy, &mut setup);
    setup.source = job.source;
    setup.latency_limit_ns = job.latency_limit_ns;
    setup.timeline = job.detail;
    Simulation::new(setup)
}

/// Puts a policy's placement and core policy into a set-up.
pub fn place(policy: &PolicySpec, setup: &mut Setup<'_, '_>) {
    if let Some(p) = policy.placement {
        setup.placement = p;
    }
    if let Some(c) = &policy.cores {
        setup.cores = Some((c.cores.build)(setup.machine.cpus.len(), &c.settings));
        // A recorded placement knows no kept CPUs.
        if !setup.placement.heeds_kept_cpus {
            setup.placement = &placement::SPREAD;
        }
    }
}

/// Virtual time after which work counts as endless: a thousand times its span and an hour.
pub fn limit_ns(workload: &Workload) -> u64 {
    workload.span_ns.saturating_mul(1000).saturating_add(3_600_000_000_000)
}
