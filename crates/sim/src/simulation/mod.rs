//! One run of one workload on one machine under one set of policies.
//!
//! ```text
//!            calendar: one pending event a source
//!                 |
//!   CPU  . . . . next of: run or slice ends, C-state left, timer fires, tick
//!   domain . . . a change of speed takes effect, or its stall ends
//!   devices  . . an I/O is done
//!   policy . . . a kernel timer of the speed policy
//!   memory . . . its governor looks
//!   balance  . . idle CPUs look for queued tasks
//!   bins . . . . temperature and timeline
//! ```
//!
//! Everything between two events is constant, so nothing is computed between them: a CPU's run ends
//! at a known time unless its speed changes, and then it is re-timed. Times are integer ns. Powers
//! are not integrated along the way at all: the hardware counts integer nanoseconds in
//! each state, and energy is their sum times the model's watts when somebody asks. Fractions of
//! work are `f64`, but only with `+ - * /`, which are the same everywhere.
//!
//! The simulation owns the CPUs and the parts. An event asks one part, and its answer says what to tell the others.
//!
//! | file | events and what follows from them |
//! |---|---|
//! | `mod.rs` | set-up, the loop |
//! | `run.rs` | a running piece: begins, is re-timed, stops |
//! | `dispatch.rs` | a CPU's next task, preemption, slices |
//! | `place.rs` | a runnable task's CPU, moves |
//! | `balance.rs` | stealing, unsharing |
//! | `step.rs` | a task's steps, wake-ups, timers, devices |
//! | `idle.rs` | C-states, interrupts, ticks |
//! | `speed.rs` | the speed policy, changes of speed, heat, power limits |
//! | `cores.rs` | the core policy |
//! | `memory.rs` | the memory's clock |
//! | `books.rs` | the outcome, the timeline |
//! | `watch.rs` | what a watcher is told |

mod balance;
mod books;
mod cores;
mod dispatch;
mod idle;
mod memory;
mod nohz;
mod place;
mod run;
mod speed;
mod step;
mod watch;

use crate::calendar::NEVER;
use crate::clock::{Clock, Source};
use crate::cpu::CpuState;
use crate::govern::cores::CoreGovernor;
use crate::govern::idle::Idlers;
use crate::govern::speed::SpeedGovernor;
use crate::hardware::{HEAT_NS, Hardware};
use crate::outcome::{Outcome, Timeline};
use crate::platform::{core_powers, idle_tables};
use crate::record::{Record, Waker};
use crate::sched::Scheduler;
use crate::sched::cpuset::CpuSet;
use crate::sched::nohz::NohzBalance;
use crate::setup::{IdleWork, Setup};
use crate::tasks::Tasks;
use std::sync::atomic::{AtomicBool, Ordering};
use wattwise_model::workload::Workload;

/// One run of one workload; see the module's head.
pub struct Simulation<'a> {
    cpus: Vec<CpuState>,
    /// The CPU whose event is being handled; `usize::MAX` for none.
    handled: usize,
    clock: Clock,
    hardware: Hardware<'a>,
    sched: Scheduler<'a>,
    tasks: Tasks<'a>,
    idlers: Idlers,
    idle_work: IdleWork,
    /// Where idle CPUs balance when they are kicked.
    nohz: Option<Box<NohzBalance>>,
    /// When each CPU's last tasks in a row began and ended; empty where the kernel's way into idle takes no time.
    ran: Vec<(u64, u64)>,
    governor: SpeedGovernor,
    keeper: Option<CoreGovernor>,
    record: Record<'a>,
    /// Events handled at most.
    most_events: u64,
    /// Ends a run of more than so many events when it is set; it is looked at every [`LOOK_EVENTS`] events.
    stop: Option<(&'a AtomicBool, u64)>,
}

/// Events between two looks at what may stop a run: some 10 ms.
const LOOK_EVENTS: u64 = 1 << 17;

/// A workload that does not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The limit came first.
    #[error("the work was not done after {limit_s} simulated seconds: shorten it, or raise the limit")]
    Unfinished {
        /// The limit in seconds.
        limit_s: u64,
    },
    /// All that is left of the work waits to be woken, and the limit came first.
    #[error("the tasks {tasks:?} wait for a wake-up that never comes, in {limit_s} simulated seconds")]
    Waiting {
        /// The tasks that wait, by their numbers in the workload.
        tasks: Vec<usize>,
        /// The limit in seconds.
        limit_s: u64,
    },
    /// It was stopped from outside.
    #[error("stopped")]
    Stopped,
    /// The events came first.
    #[error("not done after {events} simulated events: shorten the work, or raise the limit")]
    TooManyEvents {
        /// The limit.
        events: u64,
    },
}

impl<'a> Simulation<'a> {
    /// A machine at rest, its policies in force, with the work about to begin at time 0.
    pub fn new(setup: Setup<'a, '_>) -> Simulation<'a> {
        let Setup { machine, workload, .. } = setup;
        debug_assert!(
            setup.cores.is_none() || setup.placement.heeds_kept_cpus,
            "{:?} knows no kept CPUs",
            setup.placement
        );
        let phases = (setup.phase_ns, setup.load_phase_ns);
        let replaying = setup.replaying();
        let daemon = workload.tasks.len() as u32;
        let governor = SpeedGovernor::new(setup.speed, machine, setup.source, daemon, phases);
        let daemon_first = governor.daemon_first_ns();
        let cpus = machine.cpus.len();
        let mut sim = Simulation {
            cpus: machine.cpus.iter().map(CpuState::new).collect(),
            handled: usize::MAX,
            clock: Clock::new(cpus, machine.domains.len(), machine.tick.period_ns, setup.phase_ns),
            hardware: Hardware::new(machine, setup.initial_khz),
            sched: Scheduler::new(machine, setup.placement, &setup.idle_cpus),
            tasks: Tasks::new(workload, setup.interrupts, daemon_first.is_some(), replaying),
            idlers: Idlers::new(machine, idle_tables(machine), setup.idle, setup.latency_limit_ns),
            idle_work: setup.idle_work,
            nohz: setup.placement.kicks_idle.then(|| Box::new(NohzBalance::new(machine.cores.len()))),
            ran: if setup.idle_work.enter_ns > 0 { vec![(0, 0); cpus] } else { Vec::new() },
            governor,
            keeper: setup.cores.map(|policy| CoreGovernor::new(policy, machine, &core_powers(machine))),
            record: Record::new(setup.timeline, workload.span_ns, cpus).watched_by(
                setup.watcher,
                cpus,
                machine.domains.len(),
            ),
            most_events: u64::MAX,
            stop: None,
        };
        if sim.record.watched.is_some() {
            sim.tasks.keep_pieces();
        }
        sim.start_governor();
        sim.tell_speeds();
        sim.start_keeper(setup.phase_ns);
        (0..cpus).for_each(|c| sim.enter_idle(c));
        if sim.nohz.is_some() {
            sim.await_tick();
        }
        sim.hardware.limit_power(setup.power_limit_w);
        sim.arm_limits();
        sim.start_memory(setup.dram);
        if sim.hardware.warms() {
            sim.clock.set(Source::Heat, HEAT_NS);
        }
        if let Some(first) = sim.record.next_bin_ns() {
            sim.clock.set(Source::Bins, first);
        }
        sim.start_tasks(workload, daemon_first);
        sim.arm_devices();
        sim
    }

    /// Lets every task take its first steps at time 0.
    fn start_tasks(&mut self, workload: &Workload, daemon_first: Option<u64>) {
        let cpus = self.cpus.len() as u32;
        for (t, task) in workload.tasks.iter().enumerate() {
            self.sched.add(t as u32 % cpus, task.nice, task.realtime);
            if let Some(affinity) = &task.affinity {
                let machine = self.hardware.machine();
                let allows = |c: usize| affinity.allows(machine, c);
                self.sched.bind(t as u32, CpuSet::of(self.cpus.len(), allows));
            }
        }
        if let Some(first) = daemon_first {
            self.sched.add(0, 0, false);
            self.sleep_on(0, self.governor.daemon(), first);
        }
        // Block initial waiters before starting runnable tasks.
        let waits = |t: &u32| self.begins_waiting(*t, workload.tasks[*t as usize].forked);
        let (_, ready): (Vec<u32>, Vec<u32>) = (0..workload.tasks.len() as u32).partition(waits);
        for t in ready {
            self.make_runnable(t, 0, Waker::Start);
        }
        self.tasks.check_done(self.clock.now());
    }

    /// Runs until the work is done and returns the accounts at that time.
    ///
    /// # Errors
    /// When `limit_ns` of virtual time were not enough.
    pub fn run_to_completion(&mut self, limit_ns: u64) -> Result<Outcome, RunError> {
        self.run(limit_ns, true);
        self.check_events()?;
        if !self.is_done() {
            let limit_s = limit_ns / 1_000_000_000;
            let tasks = self.tasks.waiting();
            return Err(match tasks.is_empty() {
                true => RunError::Unfinished { limit_s },
                false => RunError::Waiting { tasks, limit_s },
            });
        }
        Ok(self.outcome())
    }

    /// Handles no more than so many events in all, wherever it is to run to.
    pub fn limit_events(&mut self, most: u64) {
        self.most_events = most;
    }

    /// Ends, wherever it is, once this is set, but for a run of no more than so many events, which is brought to its end.
    pub fn stop_by(&mut self, stop: &'a AtomicBool, short_events: u64) {
        self.stop = Some((stop, short_events));
    }

    fn is_stopped(&self) -> bool {
        let is_set =
            |(stop, short): (&AtomicBool, u64)| self.record.events >= short && stop.load(Ordering::Relaxed);
        self.stop.is_some_and(is_set)
    }

    /// Whether it got where it was to run to.
    ///
    /// # Errors
    /// The limit on events came first, or it was stopped.
    pub fn check_events(&self) -> Result<(), RunError> {
        match () {
            () if self.is_stopped() => Err(RunError::Stopped),
            () if self.record.events >= self.most_events => {
                Err(RunError::TooManyEvents { events: self.most_events })
            }
            () => Ok(()),
        }
    }

    /// Runs on until `until_ns` (the equal window of a comparison) and returns the accounts there.
    pub fn run_until(&mut self, until_ns: u64) -> Outcome {
        self.run(until_ns, false);
        self.clock.move_to(self.clock.now().max(until_ns));
        self.outcome()
    }

    /// Whether all of the work has been carried out: where [`Setup::follow_work`] is set, every finite program of a
    /// foreground task; else every task has ended or waits for a wake-up that cannot come.
    pub fn is_done(&self) -> bool {
        self.tasks.is_done()
    }

    /// Whether the makespan is over: every foreground task that ends has ended.
    pub fn has_ended(&self) -> bool {
        self.tasks.has_ended()
    }

    /// When the work was done, in ns.
    pub fn done_ns(&self) -> Option<u64> {
        self.tasks.done_at()
    }

    /// The timeline so far, where one is kept.
    pub fn timeline(&self) -> Option<Timeline> {
        self.record.timeline()
    }

    /// Carries out the events that are not later than `limit`, one by one, until there are none or the work is done.
    fn run(&mut self, limit: u64, only_work: bool) {
        let limit = limit.min(NEVER - 1);
        while !self.is_stopped() {
            let pause = self.record.events.saturating_add(LOOK_EVENTS).min(self.most_events);
            if self.run_events(limit, only_work, pause) || pause == self.most_events {
                return;
            }
        }
    }

    /// As [`Simulation::run`], up to so many events in all; whether that is done.
    fn run_events(&mut self, limit: u64, only_work: bool, most: u64) -> bool {
        while !(only_work && self.is_done()) {
            if self.record.events >= most {
                return false;
            }
            let (time, source) = self.clock.next();
            if time > limit {
                return true;
            }
            self.clock.move_to(time);
            self.record.events += 1;
            if source < self.cpus.len() {
                self.cpu_event(source);
            } else {
                self.other_event(self.clock.other(source));
            }
        }
        true
    }

    fn other_event(&mut self, source: Source) {
        match source {
            Source::Cpu(_) => unreachable!("handled before"),
            Source::Domain(d) => self.domain_event(d),
            Source::Devices => self.devices_due(),
            Source::Policy => self.policy_timer(),
            Source::Balance => self.balance(),
            Source::Heat => self.heat(),
            Source::Bins => self.close_bin(),
            Source::Cores => self.keeper_timer(),
            Source::Limits => self.limit_power(),
            Source::Memory => self.look_at_memory(),
        }
    }

    /// Whatever is due on a CPU, in this order: it becomes ready, its run ends, its timers fire, its tick comes.
    #[inline]
    fn cpu_event(&mut self, c: usize) {
        let now = self.clock.now();
        self.handled = c;
        let s = &self.cpus[c];
        if s.ready_at <= now {
            self.ready(c);
        } else if s.run_end <= now {
            self.run_ended(c);
        } else if s.slice_end <= now {
            self.slice_ended(c);
        }
        if self.cpus[c].timers.first_at() <= now {
            self.timers_fire(c);
        }
        if self.cpus[c].tick_at <= now {
            self.tick(c);
        }
        self.handled = usize::MAX;
        self.clock.set(Source::Cpu(c), self.cpus[c].next_event());
    }

    /// Tells the calendar when a CPU's next event is. The one whose event is being handled comes last, and once.
    #[inline]
    fn arm(&mut self, c: usize) {
        if c != self.handled {
            self.clock.set(Source::Cpu(c), self.cpus[c].next_event());
        }
    }
}
