//! The idlers own the idle policies, a CPU each, and what the operating system counts of every CPU's idleness. They answer
//! which C-state a CPU enters and when its next tick comes.

use super::rcu::{Grace, LetGo};
use crate::MakeIdle;
use crate::calendar::NEVER;
use wattwise_model::machine::MachineModel;
use wattwise_policy::idle::poll_limit_ns;
use wattwise_policy::{IdleOutcome, IdlePolicy, IdleQuery, IdleState};

/// Period of the timer that no CPU of a tickless kernel is without, in ns: Linux looks for CPUs that are locked up every 2/5
/// of `watchdog_thresh`, which is 10 s (`kernel/watchdog.c`). Policies are told of it: one that goes by how far the next
/// timer is would else learn from distances that no machine has. It does not go off: some microseconds in 4 s change nothing.
const WATCHDOG_NS: u64 = 4_000_000_000;

/// Why a CPU leaves its C-state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A task was queued.
    Work,
    /// The tick that the idle policy had kept.
    Tick,
    /// Another interrupt.
    Interrupt,
}

/// A CPU's idle bookkeeping as the operating system sees it: one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Stay {
    /// Start of the present or last stay.
    since: u64,
    /// The state chosen for it.
    choice: u8,
    /// When the announced timer fires.
    due: u64,
    tick_stopped: bool,
    /// For what the kernel wants the tick itself.
    let_go: LetGo,
    /// It has been stopped for a sleep since the last sample.
    tickless: bool,
    /// Whether the present stay counts as I/O wait.
    io: bool,
    /// Sum of ended stays, and of those that were I/O wait.
    idle_total: u64,
    io_total: u64,
    /// Tasks of this CPU on a device.
    iowaiters: u32,
    /// A task that had waited for a device woke here since the last sample.
    io_wake: bool,
    /// A task ran here at the last tick that found the CPU awake.
    ran_at_tick: bool,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Stay>() == 64);

impl Stay {
    /// What became of it where it ends now.
    #[inline]
    fn outcome(&self, now: u64, cause: Cause) -> IdleOutcome {
        IdleOutcome {
            state: self.choice,
            measured_ns: now - self.since,
            by_timer: cause != Cause::Tick && self.due <= now,
            by_tick: cause == Cause::Tick,
            poll_ended: false,
        }
    }
}

/// What a CPU that has nothing to do does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    /// The C-state.
    pub(crate) state: u8,
    /// Its next tick; [`NEVER`] where that is stopped.
    pub(crate) tick_at: u64,
}

/// The idle policies at work.
pub(crate) struct Idlers {
    /// A policy a CPU.
    policies: Vec<Box<dyn IdlePolicy>>,
    stays: Vec<Stay>,
    /// C-states as policies see them, a kind each.
    tables: Vec<Vec<IdleState>>,
    /// When each CPU's poll is over; none where no state polls.
    poll_ends: Vec<u64>,
    tick_ns: u64,
    latency_limit_ns: u64,
    grace: Grace,
    /// Whether a sleeping CPU's tick can be stopped.
    tickless: bool,
    /// When the watchdog's timer is next; [`NEVER`] where CPUs keep their ticks.
    watchdog_at: u64,
}

impl Idlers {
    pub(crate) fn new(
        machine: &MachineModel,
        tables: Vec<Vec<IdleState>>,
        make: MakeIdle<'_>,
        latency_limit_ns: u64,
    ) -> Idlers {
        let policy = |kind: u8| make(&tables[usize::from(kind)], machine.tick.period_ns);
        let polls = tables.iter().flatten().any(|s| s.polls);
        Idlers {
            poll_ends: vec![NEVER; if polls { machine.cpus.len() } else { 0 }],
            tick_ns: machine.tick.period_ns,
            policies: machine.cpus.iter().map(|c| policy(c.kind)).collect(),
            stays: vec![Stay::default(); machine.cpus.len()],
            tables,
            latency_limit_ns,
            grace: Grace::new(machine),
            tickless: machine.tick.tickless,
            watchdog_at: if machine.tick.tickless { WATCHDOG_NS } else { NEVER },
        }
    }

    /// A CPU of a kind has nothing to do: the C-state that its policy chooses. `timer_at` is when its first timer fires;
    /// `counts_asked`: that it asked to stop the tick is counted as such, as Linux does for its scheduler's governor.
    // Once in the way into idle and once for a poll that is over, which is out of line.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        c: usize,
        kind: u8,
        now: u64,
        next_tick: u64,
        timer_at: u64,
        counts_asked: bool,
    ) -> Entered {
        let stay = &mut self.stays[c];
        // A tick that is stopped already stays so.
        let tick_wanted = self.tickless & stay.let_go.waits(&mut self.grace, now) & !stay.tick_stopped;
        let timer_at = if tick_wanted { timer_at.min(next_tick) } else { timer_at };
        if self.watchdog_at <= now {
            self.watchdog_at = (now / WATCHDOG_NS + 1) * WATCHDOG_NS;
        }
        let timer_at = timer_at.min(self.watchdog_at);
        let query = IdleQuery {
            now_ns: now,
            next_timer_ns: if timer_at == NEVER { NEVER } else { timer_at.saturating_sub(now) },
            next_tick_ns: next_tick - now,
            tick_stopped: stay.tick_stopped,
            latency_limit_ns: self.latency_limit_ns,
            iowaiters: stay.iowaiters,
            ran_at_tick: u32::from(stay.ran_at_tick),
            states: &self.tables[usize::from(kind)],
        };
        let choice = self.policies[c].select(&query);
        let state = choice.state.min(query.states.len() as u8 - 1);
        let asked = self.tickless && choice.stop_tick;
        let stop = asked && !tick_wanted;
        stay.since = now;
        stay.choice = state;
        stay.due = timer_at;
        stay.io = stay.iowaiters > 0;
        stay.tick_stopped = stop;
        stay.tickless |= counts_asked & asked;
        let tick_at = if stop { NEVER } else { next_tick };
        Entered { state, tick_at: self.poll_end(c, kind, now, state, tick_at) }
    }

    /// When a CPU that enters a state is to be looked at: at its next tick, or before, when it has polled for long enough.
    #[inline]
    fn poll_end(&mut self, c: usize, kind: u8, now: u64, state: u8, tick_at: u64) -> u64 {
        let Some(end) = self.poll_ends.get_mut(c) else { return tick_at };
        let states = &self.tables[usize::from(kind)];
        *end = match states[usize::from(state)].polls {
            true => {
                Some(now + poll_limit_ns(states, self.tick_ns)).filter(|&at| at < tick_at).unwrap_or(NEVER)
            }
            false => NEVER,
        };
        tick_at.min(*end)
    }

    /// Whether an idle CPU has polled for long enough. Its policy learns it, and is to be asked anew.
    #[inline]
    pub(crate) fn has_polled(&mut self, c: usize, kind: u8, now: u64) -> bool {
        let ended = self.poll_ends.get(c).is_some_and(|&at| at <= now);
        if ended {
            let outcome = self.stays[c].outcome(now, Cause::Interrupt);
            self.policies[c]
                .reflect(&IdleOutcome { poll_ended: true, ..outcome }, &self.tables[usize::from(kind)]);
            self.end_stay(c, now);
        }
        ended
    }

    /// A tick found a CPU awake, which ran a task then or was on its way into idle.
    #[inline]
    pub(crate) fn ticked(&mut self, c: usize, ran: bool) {
        self.stays[c].ran_at_tick = ran;
    }

    /// The C-state of a CPU's present stay, and since when it is in it.
    #[inline]
    pub(crate) fn stay(&self, c: usize) -> (u8, u64) {
        (self.stays[c].choice, self.stays[c].since)
    }

    /// An idle CPU of a kind is wanted, and awake at `ready`: its policy learns it. True when its tick had been stopped.
    #[inline]
    pub(crate) fn leave(&mut self, c: usize, kind: u8, now: u64, ready: u64, cause: Cause) -> bool {
        let stay = &mut self.stays[c];
        let outcome = IdleOutcome { measured_ns: ready - stay.since, ..stay.outcome(now, cause) };
        let was_stopped = stay.tick_stopped;
        if cause == Cause::Work {
            stay.tick_stopped = false;
        }
        self.policies[c].reflect(&outcome, &self.tables[usize::from(kind)]);
        was_stopped
    }

    /// Books a stay that is over.
    #[inline]
    pub(crate) fn end_stay(&mut self, c: usize, now: u64) {
        let stay = &mut self.stays[c];
        let total = if stay.io { &mut stay.io_total } else { &mut stay.idle_total };
        *total += now - stay.since;
    }

    /// `(idle, I/O wait)` of a CPU so far, in ns, as the kernel's counters would say; `idles`: a stay is open.
    #[inline]
    pub(crate) fn totals(&self, c: usize, idles: bool, now: u64) -> (u64, u64) {
        let stay = &self.stays[c];
        let open = if idles { now - stay.since } else { 0 };
        if stay.io {
            (stay.idle_total, stay.io_total + open)
        } else {
            (stay.idle_total + open, stay.io_total)
        }
    }

    /// Whether since the last question a task that had waited for a device woke on a CPU, and whether that slept
    /// with its tick stopped or has one that is never stopped.
    #[inline]
    pub(crate) fn take_news(&mut self, c: usize) -> (bool, bool) {
        let stay = &mut self.stays[c];
        let io_wake = std::mem::take(&mut stay.io_wake);
        (io_wake, std::mem::take(&mut stay.tickless) | !self.tickless)
    }

    /// A task of a CPU begins to wait for a device.
    pub(crate) fn io_begins(&mut self, c: usize) {
        self.stays[c].iowaiters += 1;
    }

    /// A task of a CPU has waited for a device.
    pub(crate) fn io_ends(&mut self, c: usize) {
        self.stays[c].iowaiters -= 1;
        self.stays[c].io_wake = true;
    }

    /// A task has ended on a CPU: that one lets go of what was the task's, and its parent's CPU of the task.
    pub(crate) fn task_ended(&mut self, tick: u64, c: usize, parent: Option<usize>) {
        let until = self.grace.asked(tick);
        self.stays[c].let_go.wait_until(until, false);
        if let Some(c) = parent {
            self.stays[c].let_go.wait_until(until, true);
        }
    }
}
