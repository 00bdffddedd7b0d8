//! A job: one workload on one machine under several policies, and the simulation of each.

use crate::spec::{PolicyError, PolicySpec};
use wattwise_figure::{Budget, BudgetPart};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::chosen::IdleSpec;
use wattwise_policy::{IdleState, PowerSource};
use wattwise_sim::{Setup, Simulation, Watcher, placement, platform};

/// What to replay.
pub struct ReplayJob<'a> {
    /// The hardware.
    pub machine: &'a MachineModel,
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
    /// What one run may take.
    pub budget: Budget,
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
pub fn machine_idle(machine: &MachineModel) -> Result<IdleSpec, IdleError> {
    let text = &machine.default_idle;
    let fail = |problem: String| IdleError { machine: machine.name.clone(), idle: text.clone(), problem };
    let (name, args) = text.split_once(':').unwrap_or((text, ""));
    let idle = wattwise_policy::idle::find(name).ok_or_else(|| fail("no such policy".into()))?;
    let settings = wattwise_policy::Settings::parse(idle.params, args).map_err(|e| fail(e.to_string()))?;
    Ok(IdleSpec { idle, settings })
}

/// The circumstances of one run: which machine within its figures, which draw of the work, which moment.
pub struct Circumstances<'a> {
    /// The hardware.
    pub machine: &'a MachineModel,
    /// The work, ready to be compared.
    pub workload: &'a Workload,
    /// Memory-bound share of each task's recorded run time; empty where the programs say it.
    pub memory: &'a [f64],
    /// The clock at which the recording was made, in kHz, where it is another than its cycles were counted with; else 0.
    pub recorded_khz: f64,
    /// Delay of the tick and of the policy's clock against the work, in ns.
    pub phase_ns: u64,
    /// Where the work's start lies in a period of the scheduler's load signal, in ns.
    pub load_phase_ns: u64,
    /// Delay of the recorded background against the recording, in ns.
    pub background_shift_ns: u64,
}

/// What the machine's system does unless told otherwise, as its model says: what a saving is measured against.
///
/// # Errors
/// When the model names a policy that does not exist; machines of the [library](crate::library) have been asked.
pub fn reference_policy(machine: &MachineModel) -> Result<PolicySpec, PolicyError> {
    PolicySpec::parse(&machine.default_policy)
}

/// Whether a machine has what a policy speaks of: the C-state of `+cmax`, the limit of `+power`, the clock of `+dram`.
///
/// # Errors
/// One line that says what the machine has.
pub fn fits(policy: &PolicySpec, machine: &MachineModel) -> Result<(), PolicyError> {
    policy.deepest_on(machine)?;
    policy.power_on(machine)?;
    policy.dram_on(machine).map(drop)
}

/// A simulation of one policy of a job in these circumstances, ready to run. It follows the foreground's progress. A
/// C-state that the machine does not have limits nothing: [`fits`] tells before.
pub fn simulate<'a>(
    job: &ReplayJob<'_>,
    with: &Circumstances<'a>,
    policy: &PolicySpec,
    idle: &IdleSpec,
    timeline: bool,
) -> Simulation<'a> {
    simulate_watched(job, with, policy, idle, timeline, None)
}

/// [`simulate`] with somebody who is told what happens; with a timeline also of energy.
pub fn simulate_watched<'a>(
    job: &ReplayJob<'_>,
    with: &Circumstances<'a>,
    policy: &PolicySpec,
    idle: &IdleSpec,
    timeline: bool,
    watcher: Option<Box<dyn Watcher + 'a>>,
) -> Simulation<'a> {
    let speed = policy.build_speed(&platform(with.machine));
    let deepest = policy.deepest_on(with.machine).unwrap_or_default();
    let make = |states: &[IdleState], tick: u64| policy.build_idle(idle, deepest, states, tick);
    let mut setup = Setup::new(with.machine, with.workload, speed, &make);
    place(policy, &mut setup);
    setup.source = job.source;
    setup.latency_limit_ns = job.latency_limit_ns.min(policy.latency_ns.unwrap_or(u64::MAX));
    setup.timeline = timeline;
    setup.watcher = watcher;
    setup.power_limit_w = policy.limits.power_uw.map(|uw| uw as f64 * 1e-6);
    setup.dram = policy.dram_on(with.machine).unwrap_or_default();
    setup.follow_work = true;
    setup.memory = with.memory;
    setup.recorded_khz = with.recorded_khz;
    setup.phase_ns = with.phase_ns;
    setup.load_phase_ns = with.load_phase_ns;
    setup.background_shift_ns = with.background_shift_ns;
    let mut simulation = Simulation::new(setup);
    simulation.limit_events(job.budget.most(BudgetPart::Events));
    simulation
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
            setup.placement = &placement::LINUX;
        }
    }
}

/// Virtual time after which work counts as endless: two hundred times its span and two hours, or the budget.
pub fn limit_ns(job: &ReplayJob<'_>, workload: &Workload) -> u64 {
    let ns = |budget: &Budget| budget.most(BudgetPart::Simulated).saturating_mul(1_000_000_000);
    let budget = ns(&job.budget);
    // Who asks for more than the usual has it, whatever the work's span.
    if budget > ns(&Budget::default()) {
        return budget;
    }
    workload.span_ns.saturating_mul(200).saturating_add(7_200_000_000_000).min(budget)
}
