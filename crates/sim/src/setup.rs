//! What a replay is given: machine, work, policies.

use crate::record::Watcher;
use crate::sched::placement::{self, Placement};
use crate::tasks::{Interrupt, Replaying};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
use wattwise_policy::dram::DramSpec;
use wattwise_policy::{CorePolicy, IdlePolicy, IdleState, PowerSource, SpeedPolicy};

/// Makes an idle policy for a CPU with these states and this tick period in ns.
pub type MakeIdle<'a> = &'a dyn Fn(&[IdleState], u64) -> Box<dyn IdlePolicy>;

/// What a simulation runs, and under what.
pub struct Setup<'a, 'i> {
    /// The hardware.
    pub machine: &'a MachineModel,
    /// The work.
    pub workload: &'a Workload,
    /// The governor of P-states, built for [`platform`](crate::platform) of this machine.
    pub speed: Box<dyn SpeedPolicy>,
    /// The governor of C-states.
    pub idle: MakeIdle<'i>,
    /// Which CPU a waking task goes to.
    pub placement: &'static Placement,
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
    /// What the kernel itself does when a CPU falls idle and when it is wanted again.
    pub idle_work: IdleWork,
    /// Interrupts that wake a CPU and bring no task, by time; a CPU that does not idle takes none.
    pub interrupts: &'a [Interrupt],
    /// Speed before the policy takes over, in kHz (0: the highest).
    pub initial_khz: u32,
    /// A user's limit of each package's power, in watts, in the place of the machine's long one; only where its model has one.
    pub power_limit_w: Option<f64>,
    /// Who sets the memory's clock, on machines with one; `None`: it stays at the highest.
    pub dram: Option<DramSpec>,
    /// Whether to keep a timeline.
    pub timeline: bool,
    /// Who is told what happens; with a timeline also what energy is used, at the end of each bin.
    pub watcher: Option<Box<dyn Watcher + 'a>>,
    /// Follow the foreground's progress, and let the background go on for as long as somebody looks.
    pub follow_work: bool,
    /// Delay of the recorded background against the recording, in ns: the phase in which the foreground meets it.
    pub background_shift_ns: u64,
    /// Memory-bound share of each task's recorded run time, by its number, 0 to 1; empty where the programs say it.
    pub memory: &'a [f64],
    /// The clock at which the recording was made, in kHz, where it is another than its cycles were counted with; else 0.
    pub recorded_khz: f64,
}

/// CPU time of a kernel's way into and out of idle, in ns at the highest speed: timers, the tick, the governor, the switch. It
/// runs on the CPU, and while it does a wake-up waits. 0 where a recorded run holds it already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleWork {
    /// Before the C-state is entered.
    pub enter_ns: u64,
    /// After it has been left.
    pub leave_ns: u64,
}

impl<'a, 'i> Setup<'a, 'i> {
    /// The usual run: Linux's placement, no limits.
    pub fn new(
        machine: &'a MachineModel,
        workload: &'a Workload,
        speed: Box<dyn SpeedPolicy>,
        idle: MakeIdle<'i>,
    ) -> Setup<'a, 'i> {
        Setup {
            machine,
            workload,
            speed,
            idle,
            placement: &placement::LINUX,
            idle_cpus: Vec::new(),
            cores: None,
            source: PowerSource::Unknown,
            latency_limit_ns: u64::MAX,
            phase_ns: 0,
            load_phase_ns: 0,
            idle_work: IdleWork::default(),
            interrupts: &[],
            initial_khz: 0,
            power_limit_w: None,
            dram: None,
            timeline: false,
            watcher: None,
            follow_work: false,
            background_shift_ns: 0,
            memory: &[],
            recorded_khz: 0.0,
        }
    }

    /// What concerns the tasks' programs.
    pub(crate) fn replaying(&self) -> Replaying<'a> {
        Replaying {
            follow_work: self.follow_work,
            background_shift_ns: self.background_shift_ns,
            memory: self.memory,
            recorded_khz: self.recorded_khz,
        }
    }
}
