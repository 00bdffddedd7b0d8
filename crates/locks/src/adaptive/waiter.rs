//! One wait for an adaptive lock: a state and its transitions.

use super::learned::{BARREN, HOT, Learned};
use super::{AGE_US, Adaptive, HANDED, LOCKED, ONE_SLEEPER, QUICK_NS, SLEEPERS, SPINNER, STARVING, WOKEN};
use crate::primitive::{Ordering, nap, relax, yield_core};
use crate::tsc;
use crate::wait::Wait;

/// Falling asleep and being woken costs 5 to 10 us of both CPUs.
const SPIN_US: u64 = 8;

/// A transfer of the line and back takes 0.2 to 0.4 us: 1 to 2 % of this.
const REST_US: u64 = 20;

/// 4 PAUSEs take 40 to 560 cycles by CPU.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 4 };

/// A yield that takes longer has let another thread run.
const YIELD_US: u64 = 2;

/// Yields before a sleep.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 10 };

/// Going to sleep for a time and coming back costs some 10 us of a core.
const NAP_US: u64 = 100;

/// Where a waiter is: the rows of the module's table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WaiterState {
    Rest,
    Look { left: u32 },
    Apply,
    Spin,
    Yield,
    Nap,
    Sleep,
    Done,
}

/// A thread that waits.
pub(super) struct Waiter<'a, W> {
    lock: &'a Adaptive<W>,
    policy: W,
    /// Ticks in a microsecond.
    rate: u64,
    began: u64,
    /// What was learned before this wait, with its conflict counted in.
    conflict: Learned,
    /// Since when it has been awake and not resting.
    from: u64,
    /// Ticks from `from` on that it may spin.
    budget: u64,
    /// It is the spinner.
    role: bool,
    /// It has slept or napped.
    woken: bool,
    /// It has spun, and what came of that is not noted yet.
    spun: bool,
    /// It has set STARVING.
    asked: bool,
    yields: u32,
}

impl<'a, W: Wait> Waiter<'a, W> {
    pub(super) fn new(lock: &'a Adaptive<W>) -> Self {
        let rate = tsc::per_us();
        let began = tsc::now();
        let conflict = lock.learned().after_conflict(began, QUICK_NS * rate / 1000);
        Waiter {
            lock,
            policy: W::begin(),
            rate,
            began,
            conflict,
            from: began,
            budget: if conflict.worth_a_spin(began) { SPIN_US * rate } else { 0 },
            role: false,
            woken: false,
            spun: false,
            asked: false,
            yields: 0,
        }
    }

    /// Until the lock is this thread's.
    pub(super) fn wait(mut self) {
        let mut state = self.begin();
        while state != WaiterState::Done {
            let seen = self.lock.state.load(Ordering::Relaxed);
            state = match state {
                WaiterState::Rest => self.rest(seen),
                state if seen & LOCKED == 0 => self.acquire(state),
                state if self.role && seen & HANDED != 0 => self.receive(seen, state),
                WaiterState::Look { left } => self.look(left),
                WaiterState::Apply => self.apply(seen),
                WaiterState::Spin => self.spin(seen),
                WaiterState::Yield => self.give_way(seen),
                WaiterState::Nap => self.nap(seen),
                WaiterState::Sleep => self.sleep(seen),
                WaiterState::Done => WaiterState::Done,
            };
        }
        self.policy.end();
    }

    /// Awake: at first, and after each sleep.
    fn begin(&self) -> WaiterState {
        if self.conflict.heat >= HOT { WaiterState::Rest } else { WaiterState::Look { left: LOOKS } }
    }

    fn due(&self, now: u64) -> bool {
        self.lock.learned().due(now, AGE_US * self.rate)
    }

    /// Step 3. The role keeps releasers from waking anyone meanwhile.
    fn rest(&mut self, seen: u32) -> WaiterState {
        let others_turn = seen & SLEEPERS != 0 && self.due(self.began);
        if !others_turn && (self.role || self.lock.volunteer()) {
            self.role = true;
            tsc::pause_for(REST_US * self.rate);
            self.from = tsc::now();
        }
        WaiterState::Look { left: LOOKS }
    }

    /// The lock was free.
    fn acquire(&mut self, state: WaiterState) -> WaiterState {
        if !self.lock.attempt() {
            return state;
        }
        if self.role {
            self.lock.state.fetch_and(!(SPINNER | STARVING), Ordering::Relaxed);
        }
        let now = tsc::now();
        self.lock.learn(|learned| {
            learned.acquired = Learned::fine(now);
            learned.brief = now.wrapping_sub(self.from) <= QUICK_NS * self.rate / 1000;
            (learned.heat, learned.eager) = (self.conflict.heat, self.conflict.eager);
            if self.spun {
                learned.futile = 0;
            }
        });
        WaiterState::Done
    }

    /// The lock is handed to the spinner.
    fn receive(&mut self, seen: u32, state: WaiterState) -> WaiterState {
        if !self.lock.change(seen, seen & !(SPINNER | HANDED | STARVING)) {
            return state;
        }
        self.lock.note_turn(tsc::now());
        WaiterState::Done
    }

    /// Step 2.
    fn look(&mut self, left: u32) -> WaiterState {
        match left {
            0 if self.role => WaiterState::Spin,
            0 => WaiterState::Apply,
            _ => {
                relax();
                WaiterState::Look { left: left - 1 }
            }
        }
    }

    /// Steps 4 and 8: for the role.
    fn apply(&mut self, seen: u32) -> WaiterState {
        let absent = seen & WOKEN != 0;
        let open = seen & HANDED == 0 && if absent { self.budget != 0 } else { seen & SPINNER == 0 };
        if !open {
            return WaiterState::Sleep;
        }
        let now = tsc::now();
        if (absent || seen & SLEEPERS != 0) && self.due(now) {
            // It is the others' turn.
            if seen & SPINNER == 0 {
                self.lock.note_turn(now);
            }
            return WaiterState::Sleep;
        }
        let took = if absent { self.lock.change(seen, seen & !WOKEN) } else { self.lock.volunteer() };
        if !took {
            return WaiterState::Apply;
        }
        self.role = true;
        self.from = now;
        WaiterState::Spin
    }

    /// Steps 4 and 8: with the role.
    fn spin(&mut self, seen: u32) -> WaiterState {
        let now = tsc::now();
        if !self.asked && now.wrapping_sub(self.began) >= AGE_US * self.rate && self.due(now) {
            self.asked = true;
            self.lock.state.fetch_or(STARVING, Ordering::Relaxed);
        } else if now.wrapping_sub(self.from) < self.budget {
            self.spun = true;
            self.policy.step(&self.lock.state, seen);
        } else {
            return self.after_spin();
        }
        WaiterState::Spin
    }

    /// Which of steps 5 and 6.
    fn after_spin(&mut self) -> WaiterState {
        if core::mem::take(&mut self.spun) {
            self.lock.learn(Learned::note_futile);
        }
        let learned = self.lock.learned();
        if self.asked {
            WaiterState::Sleep
        } else if self.yields < YIELDS && !learned.long() {
            WaiterState::Yield
        } else if self.woken && learned.barren == BARREN {
            WaiterState::Nap
        } else {
            WaiterState::Sleep
        }
    }

    /// Step 5.
    fn give_way(&mut self, seen: u32) -> WaiterState {
        if !self.lock.change(seen, seen & !SPINNER) {
            return WaiterState::Spin;
        }
        self.role = false;
        self.budget = 0;
        let before = tsc::now();
        yield_core();
        let others_ran = tsc::now().wrapping_sub(before) > YIELD_US * self.rate;
        self.yields = if others_ran { self.yields + 1 } else { YIELDS };
        WaiterState::Apply
    }

    /// Step 6, with the role.
    fn nap(&mut self, seen: u32) -> WaiterState {
        if seen & STARVING != 0 {
            return WaiterState::Sleep;
        }
        if !self.lock.change(seen, seen | WOKEN) {
            return WaiterState::Spin;
        }
        let waited = tsc::now().wrapping_sub(self.began) / self.rate;
        nap(waited.clamp(NAP_US, AGE_US / 2) * 1000);
        self.wake()
    }

    /// Step 6. STARVING stays, for whoever is woken next. LOCKED is in `seen`: its holder will see the sleeper.
    fn sleep(&mut self, seen: u32) -> WaiterState {
        let role = if self.role { SPINNER } else { 0 };
        if !self.lock.change(seen, (seen & !role) + ONE_SLEEPER) {
            return if self.role { WaiterState::Spin } else { WaiterState::Apply };
        }
        self.lock.sleep();
        self.wake()
    }

    /// After a nap or a sleep. The role is this thread's, by the releaser or from before, unless another has taken it
    /// meanwhile.
    fn wake(&mut self) -> WaiterState {
        let seen = self.lock.state.fetch_and(!WOKEN, Ordering::Relaxed);
        self.role = seen & WOKEN != 0;
        // What is handed over was neither free nor taken.
        if seen & HANDED == 0 {
            self.lock.learn(|learned| *learned = learned.after_wake(seen & LOCKED == 0));
        }
        self.budget = 0;
        self.woken = true;
        self.asked = false;
        self.yields = 0;
        self.from = tsc::now();
        self.begin()
    }
}
