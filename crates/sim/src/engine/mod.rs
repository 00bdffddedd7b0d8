//! The engine: one workload on one machine under one set of policies.
//!
//! ```text
//!            calendar: one pending event a source
//!                 |
//!   CPU  . . . . next of: run or slice ends, C-state left, timer fires, tick
//!   domain . . . a change of speed takes effect, or its stall ends
//!   devices  . . an I/O is done
//!   policy . . . a kernel timer of the speed policy
//!   balance  . . idle CPUs look for queued tasks
//!   bins . . . . temperature and timeline
//! ```
//!
//! Everything between two events is constant, so nothing is computed between them: a CPU's run ends
//! at a known time unless its speed changes, and then it is re-timed. Times are integer ns. Powers
//! are not integrated along the way at all: the accounts (`accounts.rs`) count integer nanoseconds in
//! each state, and energy is their sum times the model's watts when somebody asks. Fractions of
//! work are `f64`, but only with `+ - * /`, which are the same everywhere.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | set-up, the loop, what each event does |
//! | `tasks.rs` | a task's steps: runs, sleeps, wake edges, locks |
//! | `sched.rs` | run queues, placement, balance |
//! | `load.rs` | a task's load as the scheduler measures it |
//! | `grace.rs` | who keeps its tick after a task's end |
//! | `idle.rs` | entering and leaving C-states, interrupts, ticks |
//! | `speed.rs` | speed policies, requests, transitions, boost, heat |
//! | `cores.rs` | core policies: which CPUs are kept, moving work off the others |
//! | `accounts.rs` | time in states, energy, the outcome |
//! | `timeline.rs` | the same over time, in bins |

mod accounts;
mod cores;
mod grace;
mod idle;
mod load;
mod sched;
mod speed;
mod tasks;
mod timeline;

use crate::calendar::{Calendar, NEVER};
use crate::outcome::{Outcome, Timeline};
use accounts::{CoreAccount, PackageAccount, ThreadState};
use idle::IdleSide;
use sched::{CpuSet, Queue};
use speed::{DomainState, Governor};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tasks::TaskState;
use wattwise_figure::Histogram;
use wattwise_model::machine::Machine;
use wattwise_model::workload::Workload;
use wattwise_policy::{CorePolicy, CorePower, IdlePolicy, IdleState, Platform, PowerSource, SpeedPolicy};

pub use sched::Placement;

/// "No task", "no CPU".
const NONE: u32 = u32::MAX;

/// Makes an idle policy for a CPU with these states and this tick period in ns.
pub type MakeIdle<'a> = &'a dyn Fn(&[IdleState], u64) -> Box<dyn IdlePolicy>;

/// What a simulation runs, and under what.
pub struct Setup<'a, 'i> {
    /// The hardware.
    pub machine: &'a Machine,
    /// The work.
    pub workload: &'a Workload,
    /// The governor of P-states, built for [`platform`] of this machine.
    pub speed: Box<dyn SpeedPolicy>,
    /// The governor of C-states.
    pub idle: MakeIdle<'i>,
    /// Which CPU a waking task goes to.
    pub placement: Placement,
    /// CPUs that should idle: none but tasks recorded there are placed on them. A bit each, 64 a word.
    pub idle_cpus: Vec<u64>,
    /// The policy that decides which CPUs are kept for work; the recorded placement knows none.
    pub cores: Option<Box<dyn CorePolicy>>,
    /// Mains or battery, as policies see it.
    pub source: PowerSource,
    /// Longest exit latency that users tolerate, in ns ([`u64::MAX`]: any).
    pub latency_limit_ns: u64,
    /// Delay of the policy's clock and of the tick against the work's start, in ns: the phase in which the work meets the polls.
    pub phase_ns: u64,
    /// Where the work's start lies in a period of the scheduler's load signal, in ns ([`policy::pelt`](wattwise_policy::pelt)).
    pub load_phase_ns: u64,
    /// Interrupts that wake a CPU and bring no task, by time; a CPU that does not idle takes none.
    pub interrupts: &'a [Interrupt],
    /// Speed before the policy takes over, in kHz (0: the highest).
    pub initial_khz: u32,
    /// Whether to keep a timeline.
    pub timeline: bool,
}

/// An interrupt from outside the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Time since the work's start, in ns.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: u16,
    /// What it takes at the highest speed, in ns.
    pub ns: u64,
}

impl<'a, 'i> Setup<'a, 'i> {
    /// The usual run: recorded placement where the CPUs match, else spread; no limits.
    pub fn new(
        machine: &'a Machine,
        workload: &'a Workload,
        speed: Box<dyn SpeedPolicy>,
        idle: MakeIdle<'i>,
    ) -> Setup<'a, 'i> {
        let same = workload.recorded.as_ref().is_some_and(|r| usize::from(r.cpus) == machine.cpus.len());
        Setup {
            machine,
            workload,
            speed,
            idle,
            placement: if same { Placement::Recorded } else { Placement::Spread },
            idle_cpus: Vec::new(),
            cores: None,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            phase_ns: 0,
            load_phase_ns: 0,
            interrupts: &[],
            initial_khz: 0,
            timeline: false,
        }
    }
}

/// What a policy may know of a machine before it runs.
pub fn platform(machine: &Machine) -> Platform {
    speed::platform(machine)
}

/// What a core policy may know of a machine before it runs: one entry a CPU.
pub fn core_powers(machine: &Machine) -> Vec<CorePower> {
    cores::powers(machine)
}

/// What a CPU is doing. Who runs is [`CpuState::current`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// In a C-state.
    Idle,
    /// Leaving one.
    Exiting,
    /// Interrupt or tick work, no task.
    Kernel,
    /// A task.
    Task,
    /// Between two of the above, inside one event.
    Switching,
}

/// A logical CPU.
struct CpuState {
    phase: Phase,
    /// The running task.
    current: u32,
    core: u16,
    package: u16,
    domain: u16,
    kind: u8,
    /// When the running piece was last (re)started, and how long it would take from there at this rate, in ns.
    run_from: u64,
    run_need: f64,
    /// When it ends; [`NEVER`] while the domain stalls.
    run_end: u64,
    /// When the running task's slice ends; [`NEVER`] while nobody waits.
    slice_end: u64,
    /// When the C-state exit is over.
    ready_at: u64,
    /// Next tick that will come.
    tick_at: u64,
    timers: tasks::Timers,
    /// Interrupt work not yet done, in ns at the highest speed.
    kernel_ns: u64,
    /// Load that tasks brought here less what went with them, since the governor last looked, of 1024.
    moved_util: i32,
    /// A task came or went, or wakes from waiting for a device, since the scheduler last brought the load up to date.
    moved: bool,
    /// The load's period in which it last did.
    load_period: u64,
    queue: Queue,
    idle: IdleSide,
}

impl CpuState {
    /// Times the running piece from `now` on.
    #[inline(always)]
    fn time(&mut self, now: u64, need: f64) {
        self.run_from = now;
        self.run_need = need;
        // Rounded up, but for the rounding of a share, which must not cost a nanosecond. A piece always
        // takes time: a step of no length would let a program spin within one instant.
        self.run_end = now + round_up(need - 1e-3).max(1);
    }
}

/// How long a CPU's running piece would take from here, in ns.
#[inline(always)]
fn need(s: &CpuState, tasks: &[TaskState<'_>], core: &CoreAccount, domain: &DomainState) -> f64 {
    match s.phase {
        Phase::Task => tasks[s.current as usize].need(core.ns_per_cycle),
        _ => s.kernel_ns as f64 * domain.slowness(),
    }
}

/// One run of one workload; see the module's head.
pub struct Simulation<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    placement: Placement,
    now: u64,
    /// The CPU whose event is being handled; `usize::MAX` for none.
    handled: usize,
    calendar: Calendar,
    cpus: Vec<CpuState>,
    cores: Vec<CoreAccount>,
    packages: Vec<PackageAccount>,
    domains: Vec<DomainState>,
    tasks: Vec<TaskState<'a>>,
    /// Jobs left in each shared counter.
    jobs: Vec<u64>,
    locks: Vec<tasks::LockState>,
    /// Tasks that wait for a device, or to be found by an idle CPU.
    devices: BinaryHeap<Reverse<(u64, u32)>>,
    /// Interrupts still to come.
    interrupts: &'a [Interrupt],
    grace: grace::Grace,
    governor: Governor,
    keeper: Option<cores::Keeper>,
    /// A policy per CPU.
    idlers: Vec<Box<dyn IdlePolicy>>,
    /// C-states as policies see them, per kind.
    idle_tables: Vec<Vec<IdleState>>,
    /// `1 / (cycles per ns)` of one thread: `[kind][level * MAX_SMT + busy threads - 1]`.
    inverse_speed: Vec<Vec<f64>>,
    latency_limit_ns: u64,
    phase_ns: u64,
    /// The first tick after the present, or one that is past.
    next_tick: u64,
    idle_set: CpuSet,
    /// Of those, the ones on cores that idle as a whole; kept where a core has several threads.
    idle_cores: CpuSet,
    smt: bool,
    /// CPUs on which some task waits behind another.
    crowded: CpuSet,
    allowed: CpuSet,
    /// Cores on which more than one thread is busy.
    shared_cores: usize,
    search: Vec<Vec<CpuSet>>,
    /// Tasks of the workload that run, could run, or sleep on a timer or a device.
    active: usize,
    done_at: Option<u64>,
    timeline: Option<timeline::Recorder>,
    wake_latency: Histogram,
    wakeups: u64,
    idle_exits: u64,
    migrations: u64,
    cycles: f64,
    events: u64,
}

/// A workload that does not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The limit came first.
    #[error("the work was not done after {limit_s} simulated seconds: shorten it, or raise the limit")]
    Unfinished {
        /// The limit in seconds.
        limit_s: u64,
    },
}

impl<'a> Simulation<'a> {
    /// A machine at rest, its policies in force, with the work about to begin at time 0.
    pub fn new(setup: Setup<'a, '_>) -> Simulation<'a> {
        let Setup { machine, workload, .. } = setup;
        let platform = platform(machine);
        let idle_tables: Vec<Vec<IdleState>> = machine
            .kinds
            .iter()
            .map(|k| {
                let state = |s: &wattwise_model::machine::CState| IdleState {
                    exit_ns: s.latency_ns,
                    target_ns: s.target_ns,
                    enabled: true,
                };
                k.idle.iter().map(state).collect()
            })
            .collect();
        let idlers = machine
            .cpus
            .iter()
            .map(|c| (setup.idle)(&idle_tables[usize::from(c.kind)], machine.tick.period_ns))
            .collect();
        let tick = machine.tick.period_ns;
        let cpus = machine
            .cpus
            .iter()
            .map(|c| CpuState {
                phase: Phase::Switching,
                current: NONE,
                core: c.core,
                package: c.package,
                domain: c.domain,
                kind: c.kind,
                run_from: 0,
                run_need: 0.0,
                run_end: NEVER,
                slice_end: NEVER,
                ready_at: NEVER,
                tick_at: NEVER,
                timers: tasks::Timers::new(),
                kernel_ns: 0,
                moved_util: 0,
                moved: false,
                load_period: 0,
                queue: Queue::default(),
                idle: IdleSide::default(),
            })
            .collect();
        let sources = machine.cpus.len() + machine.domains.len() + Source::EXTRA;
        let domains: Vec<DomainState> =
            machine.domains.iter().map(|d| DomainState::new(d, machine, setup.initial_khz)).collect();
        let inverse_speed = speed::inverse_speeds(machine);
        let core_account = |c: &wattwise_model::machine::Core| {
            let level = domains[usize::from(c.domain)].level();
            CoreAccount::new(c, machine, level, &inverse_speed[usize::from(c.kind)])
        };
        let governor = Governor::new(setup.speed, machine, setup.source, workload.tasks.len() as u32);
        let mut sim = Simulation {
            machine,
            workload,
            placement: setup.placement,
            now: 0,
            handled: usize::MAX,
            calendar: Calendar::new(sources),
            cpus,
            cores: machine.cores.iter().map(core_account).collect(),
            packages: machine.packages.iter().map(PackageAccount::new).collect(),
            domains,
            tasks: Vec::new(),
            jobs: workload.jobs.clone(),
            locks: (0..workload.locks).map(|_| tasks::LockState::default()).collect(),
            devices: BinaryHeap::new(),
            interrupts: setup.interrupts,
            grace: grace::Grace::new(machine),
            governor,
            keeper: setup.cores.map(|policy| cores::Keeper::new(policy, machine)),
            idlers,
            idle_tables,
            inverse_speed,
            latency_limit_ns: setup.latency_limit_ns,
            phase_ns: setup.phase_ns % tick,
            next_tick: 0,
            idle_set: CpuSet::new(machine.cpus.len()),
            idle_cores: CpuSet::new(machine.cpus.len()),
            smt: machine.cores.len() < machine.cpus.len(),
            crowded: CpuSet::new(machine.cpus.len()),
            allowed: CpuSet::without(machine.cpus.len(), &setup.idle_cpus),
            shared_cores: 0,
            search: sched::search_order(machine),
            active: 0,
            done_at: None,
            timeline: setup.timeline.then(|| timeline::Recorder::new(workload.span_ns, machine)),
            wake_latency: Histogram::default(),
            wakeups: 0,
            idle_exits: 0,
            migrations: 0,
            cycles: 0.0,
            events: 0,
        };
        sim.start_governor(&platform, setup.phase_ns, setup.load_phase_ns);
        sim.start_keeper();
        for c in 0..sim.cpus.len() {
            sim.enter_idle(c);
        }
        // A package without a resistance stays at the temperature around it.
        if machine.packages.iter().any(|p| p.thermal.c_per_w > 0.0) {
            sim.calendar.set(sim.source(Source::Heat), speed::HEAT_NS);
        }
        if let Some(t) = &sim.timeline {
            let first = t.next_ns();
            sim.calendar.set(sim.source(Source::Bins), first);
        }
        sim.start_tasks();
        sim.arm_devices();
        sim
    }

    /// The calendar's index of a source that is neither a CPU nor a domain.
    fn source(&self, extra: Source) -> usize {
        self.cpus.len() + self.domains.len() + extra as usize
    }

    /// Runs until the work is done and returns the accounts at that time.
    ///
    /// # Errors
    /// When `limit_ns` of virtual time were not enough.
    pub fn run_to_completion(&mut self, limit_ns: u64) -> Result<Outcome, RunError> {
        self.run(limit_ns, true);
        if !self.is_done() {
            return Err(RunError::Unfinished { limit_s: limit_ns / 1_000_000_000 });
        }
        Ok(self.outcome())
    }

    /// Runs on until `until_ns` (the equal window of a comparison) and returns the accounts there.
    pub fn run_until(&mut self, until_ns: u64) -> Outcome {
        self.run(until_ns, false);
        self.now = self.now.max(until_ns);
        self.outcome()
    }

    /// Whether every task of the workload has ended or waits for a wake-up that cannot come.
    pub fn is_done(&self) -> bool {
        self.done_at.is_some()
    }

    /// Carries out the events that are not later than `limit`, one by one, until there are none or the work is done.
    fn run(&mut self, limit: u64, only_work: bool) {
        let limit = limit.min(NEVER - 1);
        while !(only_work && self.is_done()) {
            let (time, source) = self.calendar.first();
            if time > limit {
                return;
            }
            debug_assert!(time >= self.now, "time goes back at source {source}");
            self.now = time;
            self.events += 1;
            if source < self.cpus.len() {
                self.cpu_event(source);
            } else {
                self.other_event(source - self.cpus.len());
            }
        }
    }

    /// Whatever is due on a CPU, in this order: it becomes ready, its run ends, its timers fire, its tick comes.
    #[inline]
    fn cpu_event(&mut self, c: usize) {
        let now = self.now;
        self.handled = c;
        if self.cpus[c].ready_at <= now {
            self.ready(c);
        } else if self.cpus[c].run_end <= now {
            self.run_ended(c);
        } else if self.cpus[c].slice_end <= now {
            self.slice_ended(c);
        }
        if self.cpus[c].timers.first_at() <= now {
            self.timers_fire(c);
        }
        if self.cpus[c].tick_at <= now {
            self.tick(c);
        }
        self.handled = usize::MAX;
        self.arm(c);
    }

    fn other_event(&mut self, index: usize) {
        if index < self.domains.len() {
            return self.domain_event(index);
        }
        match Source::of(index - self.domains.len()) {
            Source::Devices => self.devices_done(),
            Source::Policy => self.policy_timer(),
            Source::Balance => self.balance(),
            Source::Heat => self.heat(),
            Source::Bins => self.close_bin(),
            Source::Cores => self.keeper_timer(),
        }
    }

    /// Tells the calendar when a CPU's next event is. The one whose event is being handled comes last, and once.
    #[inline]
    fn arm(&mut self, c: usize) {
        if c == self.handled {
            return;
        }
        let s = &self.cpus[c];
        let next = s.run_end.min(s.timers.first_at()).min(s.slice_end.min(s.ready_at).min(s.tick_at));
        self.calendar.set(c, next);
    }

    /// Stops a CPU's running piece where it is; what is left of it stays with its task.
    #[inline]
    fn bank(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        if s.run_end == NEVER {
            return;
        }
        let ran = (self.now - s.run_from) as f64;
        let left = if s.run_need > ran { 1.0 - ran / s.run_need } else { 0.0 };
        match s.phase {
            Phase::Task => self.tasks[s.current as usize].shrink(left),
            _ => s.kernel_ns = (s.kernel_ns as f64 * left) as u64,
        }
        s.run_end = NEVER;
    }

    /// A CPU begins to run something: busy, or standing still while its domain stalls.
    #[inline(always)]
    fn begin_run(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let (domain, core) = (&self.domains[usize::from(s.domain)], &mut self.cores[usize::from(s.core)]);
        if domain.stalled() {
            self.set_thread(c, ThreadState::Stall);
            self.cpus[c].run_end = NEVER;
        } else if core.is_plain() {
            core.set_plain(self.now, ThreadState::Busy);
            s.time(self.now, need(s, &self.tasks, core, domain));
        } else {
            self.set_thread(c, ThreadState::Busy);
            self.time_moving_run(c);
        }
    }

    /// Times what is left of a CPU's running piece at its present speed. While its domain stalls it stands still.
    #[inline]
    fn time_run(&mut self, c: usize) {
        if self.domains[usize::from(self.cpus[c].domain)].stalled() {
            self.cpus[c].run_end = NEVER;
        } else {
            self.time_moving_run(c);
        }
    }

    /// [`Simulation::time_run`] where the domain is known not to stall.
    #[inline(always)]
    fn time_moving_run(&mut self, c: usize) {
        let s = &mut self.cpus[c];
        let (domain, core) = (&self.domains[usize::from(s.domain)], &self.cores[usize::from(s.core)]);
        s.time(self.now, need(s, &self.tasks, core, domain));
    }

    /// Re-times a running CPU after its rate has changed.
    fn retime(&mut self, c: usize) {
        if matches!(self.cpus[c].phase, Phase::Task | Phase::Kernel) {
            self.bank(c);
            self.time_run(c);
            self.arm(c);
        }
    }

    /// The accounts as they stand.
    pub fn outcome(&mut self) -> Outcome {
        self.settle();
        accounts::outcome(self)
    }

    /// The timeline so far, where one is kept.
    pub fn timeline(&self) -> Option<Timeline> {
        self.timeline.as_ref().map(|t| t.finish())
    }

    /// When the work was done, in ns.
    pub fn done_ns(&self) -> Option<u64> {
        self.done_at
    }
}

/// `f64::ceil` as a whole number, without the call into the C library that baseline x86-64 makes of it. Not for numbers
/// below -0.5.
#[inline]
fn round_up(x: f64) -> u64 {
    // The sum's last bit is worth 1: it holds the nearest whole number.
    const ONES: f64 = (1u64 << 52) as f64;
    if x < ONES {
        let sum = x + ONES;
        sum.to_bits() - ONES.to_bits() + u64::from(sum - ONES < x)
    } else {
        // By way of `i64`: the processor has no unsigned conversion.
        x as i64 as u64
    }
}

/// Sources of events beside CPUs and domains.
#[derive(Clone, Copy, Debug)]
enum Source {
    Devices,
    Policy,
    Balance,
    Heat,
    Bins,
    Cores,
}

impl Source {
    /// How many there are.
    const EXTRA: usize = 6;

    fn of(index: usize) -> Source {
        match index {
            0 => Source::Devices,
            1 => Source::Policy,
            2 => Source::Balance,
            3 => Source::Heat,
            4 => Source::Bins,
            _ => Source::Cores,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn round_up_is_ceil() {
        let whole = (0..63).map(|bits| (1u64 << bits) as f64);
        let near = whole.flat_map(|x| [x - 1e-3, x - 0.5, x.next_down(), x, x.next_up(), x + 0.5, x + 1e-3]);
        for x in near.chain([0.0, -1e-3, 1e-3, 199_999.999, f64::MIN_POSITIVE]) {
            assert_eq!(round_up(x), x.ceil() as u64, "{x}");
        }
    }
}
