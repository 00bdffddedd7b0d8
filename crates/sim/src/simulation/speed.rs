//! The speed policy: what it is told and when, and what its requests do to the hardware.

use super::Simulation;
use crate::NONE;
use crate::calendar::NEVER;
use crate::clock::Source;
use crate::cpu::Phase;
use crate::govern::speed::{CpuReading, Hook};
use crate::hardware::{ClockTransition, HEAT_NS, ThreadState};
use wattwise_policy::SampleScope;

impl Simulation<'_> {
    fn domain_count(&self) -> usize {
        self.hardware.machine().domains.len()
    }

    /// The policy takes over.
    pub(super) fn start_governor(&mut self) {
        for d in 0..self.domain_count() {
            self.governor.look_at_domain(d, self.hardware.target(d));
        }
        self.governor.start(self.hardware.first_mc());
        if let Some(first) = self.governor.first_timer_ns() {
            self.clock.set(Source::Policy, first);
        }
        let levels = (0..self.domain_count()).map(|d| self.governor.level(d));
        self.hardware.adopt(self.clock.now(), levels);
        self.retime_changed();
    }

    /// From the scheduler, when what runs on `c` has changed and at its ticks: it brings the load up to date.
    #[inline(always)]
    pub(super) fn hook(&mut self, c: usize) {
        self.hook_from(c, true);
    }

    /// [`Simulation::hook`], on this CPU or on one that cannot set its clock: then its governor is not asked.
    #[inline(always)]
    pub(super) fn hook_from(&mut self, c: usize, here: bool) {
        if self.governor.is_told() {
            self.tell(c, here);
        }
    }

    fn tell(&mut self, c: usize, here: bool) {
        let (now, domain) = (self.clock.now(), self.cpus[c].domain);
        match self.governor.hook(c, domain, now, here) {
            Hook::Passes => return,
            Hook::Tells { asks } => {
                self.observe(SampleScope::Cpu(c as u16), asks);
                if !asks {
                    return;
                }
            }
            Hook::AsksForDomain { interval_ns } => {
                self.observe(SampleScope::Domain(domain), true);
                self.governor.rests(domain, now, interval_ns);
            }
        }
        self.charge_decision(c);
    }

    /// Brings what the policy knows of a CPU's load up to date, without asking it.
    pub(super) fn tell_load(&mut self, c: usize) {
        self.observe(SampleScope::Cpu(c as u16), false);
    }

    /// A decision made on a CPU takes its time.
    fn charge_decision(&mut self, c: usize) {
        let cost = self.governor.cost_ns();
        if cost > 0 {
            self.charge_hook(c, cost);
        }
    }

    /// The tick of a CPU, as the policy sees it.
    pub(super) fn observe_tick(&mut self, c: usize) {
        if self.governor.ticks() {
            self.observe(SampleScope::Cpu(c as u16), true);
            self.charge_decision(c);
        } else if self.cpus[c].phase != Phase::Idle {
            self.hook(c);
        }
    }

    /// A CPU that slept without its tick tells how long it slept.
    pub(super) fn report_missed_ticks(&mut self, c: usize) {
        let now = self.clock.now();
        let period_ns = self.hardware.machine().tick.period_ns;
        if self.governor.missed_ticks(c, now, self.idle_totals(c), period_ns) {
            self.observe(SampleScope::Cpu(c as u16), true);
        }
    }

    /// The policy's kernel timer: an interrupt on the first CPU, and a decision.
    pub(super) fn policy_timer(&mut self) {
        self.observe(SampleScope::All, true);
        let Some(again) = self.governor.timer_again_ns() else { return };
        self.clock.set(Source::Policy, self.clock.now() + again);
        self.interrupt(0, self.governor.cost_ns());
    }

    /// The decision of a user-space policy; returns how long it sleeps.
    pub(super) fn poll_governor(&mut self) -> u64 {
        self.observe(SampleScope::All, true);
        self.governor.daemon_again_ns()
    }

    /// A CPU's time idle so far, without and with I/O outstanding.
    #[inline]
    pub(super) fn idle_totals(&self, c: usize) -> (u64, u64) {
        self.idlers.totals(c, self.cpus[c].counts_as_idle(), self.clock.now())
    }

    /// Tasks on a CPU, the running one included.
    #[inline]
    pub(super) fn runnable(&self, c: usize) -> u32 {
        self.sched.waiting(c) as u32 + u32::from(self.cpus[c].current != NONE)
    }

    #[inline]
    fn look_at(&mut self, c: usize) {
        let (io_wake, tickless) = self.idlers.take_news(c);
        let running = Some(self.cpus[c].current).filter(|&t| t != NONE);
        let follows = self.governor.follows_tasks();
        let reading = CpuReading {
            idle: self.idle_totals(c),
            runnable: self.runnable(c),
            task_util: if follows { self.sched.expected_of(c, running) } else { 0 },
            io_wake,
            tickless,
        };
        self.governor.look_at(c, self.clock.now(), reading);
    }

    /// Asks the policy, and passes on what it wants.
    fn observe(&mut self, scope: SampleScope, asks: bool) {
        let one = match scope {
            SampleScope::All => {
                (0..self.cpus.len()).for_each(|c| self.look_at(c));
                None
            }
            SampleScope::Cpu(c) => {
                self.look_at(usize::from(c));
                Some(self.cpus[usize::from(c)].domain)
            }
            SampleScope::Domain(d) => {
                for &core in &self.hardware.machine().domains[usize::from(d)].cores {
                    self.hardware.threads_of(usize::from(core)).for_each(|c| self.look_at(c));
                }
                Some(d)
            }
        };
        self.governor.observe(self.clock.now(), scope, asks, self.hardware.hottest_mc());
        match one {
            Some(d) => self.apply(usize::from(d)),
            None => (0..self.domain_count()).for_each(|d| self.apply(d)),
        }
    }

    /// The model's actuator: a request for the wanted level, if that is new.
    #[inline]
    fn apply(&mut self, d: usize) {
        if let Some(level) = self.governor.new_level(d) {
            self.request(d, level);
        }
    }

    fn request(&mut self, d: usize, level: usize) {
        let transition = self.hardware.request(self.clock.now(), d, level);
        self.carry_out(d, transition);
        self.governor.look_at_domain(d, self.hardware.requested(d));
    }

    /// A domain's delay or stall is over.
    pub(super) fn domain_event(&mut self, d: usize) {
        self.clock.set(Source::Domain(d), NEVER);
        let transition = self.hardware.domain_due(self.clock.now(), d);
        self.carry_out(d, transition);
    }

    /// What a change of speed does to the CPUs of its domain.
    fn carry_out(&mut self, d: usize, transition: ClockTransition) {
        match transition {
            ClockTransition::Rests => {}
            ClockTransition::Due(at) => self.clock.set(Source::Domain(d), at),
            ClockTransition::Stalls(until) => {
                self.clock.set(Source::Domain(d), until);
                self.for_running_of(d, |sim, c| sim.set_thread(c, ThreadState::Stall));
            }
            ClockTransition::Granted { stood_still, next } => {
                self.retime_changed();
                if stood_still {
                    self.for_running_of(d, Self::begin_run);
                }
                if let Some(level) = next {
                    self.request(d, level);
                }
            }
        }
    }

    /// Stops the running piece of each CPU of a domain, and does something with that CPU.
    fn for_running_of(&mut self, d: usize, then: impl Fn(&mut Self, usize)) {
        for &core in &self.hardware.machine().domains[d].cores {
            for c in self.hardware.threads_of(usize::from(core)) {
                if self.cpus[c].runs() {
                    self.bank(c);
                    then(self, c);
                    self.arm(c);
                }
            }
        }
    }

    /// Moves each package's temperature on, and slows it while it is too hot.
    pub(super) fn heat(&mut self) {
        let now = self.clock.now();
        self.hardware.settle(now);
        self.hardware.heat(now);
        self.retime_changed();
        self.clock.set(Source::Heat, now + HEAT_NS);
    }

    /// Tells the calendar when the power limits look next.
    pub(super) fn arm_limits(&mut self) {
        self.clock.set(Source::Limits, self.hardware.next_limit_ns());
    }

    /// Holds each package within its power limits.
    pub(super) fn limit_power(&mut self) {
        self.hardware.limit(self.clock.now());
        self.retime_changed();
        self.arm_limits();
    }
}
