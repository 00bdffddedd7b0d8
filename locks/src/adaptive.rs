//! `adaptive`: the default. Barging for throughput, one spinner, sleep for the others, and turns by age.
//!
//! It keeps four words.
//!
//! | word | bits | name | meaning | set by | cleared by |
//! |---|---|---|---|---|---|
//! | `state` | 0 | LOCKED | someone holds the lock | who acquires | who releases |
//! | | 1 | SPINNER | a thread that waits is awake, or has been woken | that thread, or the releaser that wakes it | that thread |
//! | | 2 | HANDED | the lock (LOCKED stays) is the spinner's | who releases | the spinner |
//! | | 3 | STARVING | the next release shall hand over | a spinner that has waited `AGE_US` | who is handed to, or barges in the role |
//! | | 4 | WOKEN | the spinner has been woken but does not run yet: another may take the role | the releaser that wakes it | that thread, or who takes the role |
//! | | 31..5 | SLEEPERS | how many sleep, or are about to | who goes to sleep | the releaser that wakes it |
//! | `tickets` | 31..0 | | how many have gone to sleep | who goes to sleep | |
//! | `grants` | 31..0 | | how many have been woken: ticket t is woken once this is past t | who releases | |
//! | `learned` | 31..26 | rotated | when the lock was last handed over, 2^21 ticks | who waits | |
//! | | 25..21 | woke | when a sleeper was last woken, 2^16 ticks | who releases | |
//! | | 20..19 | passed | how often the lock was released since, before that sleeper came | who releases | |
//! | | 18..16 | found | how often of late those who were woken found the lock free | who was woken | |
//! | | 15..4 | acquired | when a thread that had waited last acquired, 2^6 ticks | that thread | |
//! | | 3 | brief | its wait took less than `QUICK_NS` | that thread | |
//! | | 2..0 | heat | how often of late an acquisition was followed by a conflict at once | that thread | |
//!
//! 1. **Acquire** by setting LOCKED, whatever the other bits are. Whoever runs may have the lock: with more
//!    threads than CPUs a rule that reserves it for a thread that does not run costs a hundredfold.
//! 2. **Look** a few times: a hand-over that is under way takes 100 to 300 ns.
//! 3. **Rest** if the lock is *hot*: the last who had to wait for it waited briefly, and the next conflict came
//!    within `QUICK_NS` of its acquiring, several times over. Then whoever holds the lock releases it and takes it
//!    back at once, and every look takes the line from it: two threads that alternate get a tenth of what one gets
//!    alone. So one waiter stays away for `REST_US`, with the others asleep, and then takes its turn of as long.
//! 4. **Spin** if nobody else does (or only one who has been woken but does not run yet), by the policy, for `SPIN_US`:
//!    most short sections are over by then. One spinner is enough to take the lock when it is freed, and more only
//!    get in its way. Not after a conflict within `QUICK_NS` of an acquisition that had waited longer than that: the
//!    section is long, the thread that has just left asks again, and the two would pass the lock to and fro while both
//!    burn a core. Nor after a wake-up if nobody who was woken of late found the lock free: its holders come back
//!    at once.
//! 5. **Yield** when the time for spinning is over, for as long as that lets other threads run (a yield that returns at
//!    once means that none wants the core) and at most `YIELDS` times, without the role: whoever does not run must
//!    not keep releasers from waking others. With more threads than CPUs this saves a sleep and a wake-up; not
//!    where those who are woken mostly find the lock taken, since then waiters only yield to each other.
//! 6. **Sleep** otherwise, in order of tickets, so that a newcomer cannot take the wake-up of who has waited longer.
//! 7. **Release** by clearing LOCKED. If threads sleep and none is awake, wake the oldest first: it becomes
//!    the spinner, and while it wakes up the lock stays free for whoever runs. If it has not come after 25 to 50 us,
//!    its core is busy: the next is woken as well if those who are woken mostly find the lock free, or now and then
//!    where it was hardly released meanwhile: a wake-up is little beside long sections. Where threads come back at
//!    once they find it taken, and each wake-up would be for nothing.
//! 8. **Turns.** A spinner that has waited for `AGE_US` asks for the lock, at most once in that time for the whole
//!    lock; the next release hands it to the spinner, or to the oldest sleeper. Once in the same time, a thread
//!    that would spin goes to sleep instead if others sleep, so that they come to run. That bounds the wait at about
//!    the number of waiters times `AGE_US` and costs a wake-up (50 us) in that time.
//!
//! The releaser sets SPINNER and HANDED *before* or *with* the release, never after: who acquires next may free
//! the lock's memory. After the release only an address is used.

use crate::primitive::{AtomicU32, Ordering, relax, wait, wake, yield_core};
use crate::raw::{RawLock, Token};
use crate::tsc;
use crate::wait::{Spin, Wait};
use core::marker::PhantomData;

const LOCKED: u32 = 1;
const SPINNER: u32 = 2;
const HANDED: u32 = 4;
const STARVING: u32 = 8;
const WOKEN: u32 = 16;
const ONE_SLEEPER: u32 = 32;
const SLEEPERS: u32 = !(ONE_SLEEPER - 1);

/// Falling asleep and being woken costs 5 to 10 us of both CPUs.
const SPIN_US: u64 = 8;

/// A wake-up in this time costs 2.5 % of throughput at worst; people notice delays of tens of ms.
const AGE_US: u64 = 2000;

/// A transfer of the line and back takes 0.2 to 0.4 us: 1 to 2 % of this.
const REST_US: u64 = 20;

/// With sleepers, each turn also wakes one: some 2 us for the waker.
const LONG_REST_US: u64 = 50;

/// A few line transfers: a thread that comes back sooner had nothing else to do.
const QUICK_NS: u64 = 400;

/// 4 PAUSEs take 40 to 560 cycles by CPU.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 4 };

/// A yield that takes longer has let another thread run.
const YIELD_US: u64 = 2;

/// Yields before a sleep.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 10 };

/// Heat goes up by two and down by one, so that it takes more than half of the conflicts to reach `HOT`.
const HEAT: u32 = 7;
const HOT: u32 = 4;

/// Found free counts three, found taken minus two: it stays high where the lock is free two times in five.
const FOUND: u32 = 7;
const WORTH_IT: u32 = if cfg!(loom) { 0 } else { 4 };

/// The same where sections are long.
const WORTH_IT_LONG: u32 = if cfg!(loom) { 0 } else { 1 };

/// Releases while somebody wakes up: more are not counted.
const OFTEN: u32 = 3;

/// 25 to 50 us: a wake-up on an idle core takes 5 to 50.
const LATE: u32 = if cfg!(loom) { 1 } else { 2 };

/// What is in `learned`. Updates may be lost between threads, and times wrap (50 ms, 0.8 ms, 100 us): both mislead one
/// wait, not the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Learned {
    rotated: u32,
    woke: u32,
    passed: u32,
    found: u32,
    acquired: u32,
    brief: bool,
    heat: u32,
}

impl Learned {
    const TIME: u32 = 0xfff;

    const ROTATED: u32 = 0x3f;
    const WOKE: u32 = 0x1f;

    /// 2^21 ticks are about 0.8 ms. In models, time passes with each look.
    const COARSE: u32 = if cfg!(loom) { 10 } else { 21 };

    /// About 25 us.
    const MEDIUM: u32 = if cfg!(loom) { 4 } else { 16 };

    fn unpack(word: u32) -> Self {
        Learned {
            rotated: word >> 26,
            woke: word >> 21 & Self::WOKE,
            passed: word >> 19 & OFTEN,
            found: word >> 16 & FOUND,
            acquired: word >> 4 & Self::TIME,
            brief: word & 8 != 0,
            heat: word & HEAT,
        }
    }

    fn pack(self) -> u32 {
        self.rotated << 26
            | self.woke << 21
            | self.passed << 19
            | self.found << 16
            | self.acquired << 4
            | u32::from(self.brief) << 3
            | self.heat
    }

    /// Time as in `rotated`.
    fn coarse(ticks: u64) -> u32 {
        (ticks >> Self::COARSE) as u32 & Self::ROTATED
    }

    /// Time as in `woke`.
    fn medium(ticks: u64) -> u32 {
        (ticks >> Self::MEDIUM) as u32 & Self::WOKE
    }

    /// Time as in `acquired`.
    fn fine(ticks: u64) -> u32 {
        (ticks >> 6) as u32 & Self::TIME
    }

    /// Step 8: the last hand-over is an age ago.
    fn due(self, now: u64, age: u64) -> bool {
        u64::from(Self::coarse(now).wrapping_sub(self.rotated) & Self::ROTATED) << Self::COARSE >= age
    }

    /// Step 7: who was woken last has not come in time, and another would probably not come for nothing.
    fn late(self, now: impl FnOnce() -> u64) -> bool {
        let worth_it = if self.passed < OFTEN { WORTH_IT_LONG } else { WORTH_IT };
        self.found >= worth_it && Self::medium(now()).wrapping_sub(self.woke) & Self::WOKE >= LATE
    }

    /// The last who had to wait has only just acquired: whoever asks now had nothing else to do.
    fn greedy(self, now: u64, quick: u64) -> bool {
        u64::from(Self::fine(now).wrapping_sub(self.acquired) & Self::TIME) << 6 <= quick
    }

    /// `found`, once somebody who was woken has looked.
    fn after_wake(self, free: bool) -> u32 {
        if free { (self.found + 3).min(FOUND) } else { self.found.saturating_sub(2) }
    }

    /// Step 3: the heat as a conflict at `now` shows it.
    fn after_conflict(self, now: u64, quick: u64) -> u32 {
        if self.brief && self.greedy(now, quick) {
            (self.heat + 2).min(HEAT)
        } else {
            self.heat.saturating_sub(1)
        }
    }
}

/// See the module's essay. `W` is what the one spinner does.
#[repr(C)]
#[derive(Debug)]
pub struct Adaptive<W = Spin> {
    state: AtomicU32,
    tickets: AtomicU32,
    grants: AtomicU32,
    learned: AtomicU32,
    policy: PhantomData<fn() -> W>,
}

impl<W> Default for Adaptive<W> {
    fn default() -> Self {
        Adaptive {
            state: Default::default(),
            tickets: Default::default(),
            grants: Default::default(),
            learned: Default::default(),
            policy: PhantomData,
        }
    }
}

impl<W: Wait> Adaptive<W> {
    /// Step 1. Sets the bit whatever the others are: a compare-and-swap would fail on every change of theirs.
    #[inline]
    fn attempt(&self) -> bool {
        self.state.fetch_or(LOCKED, Ordering::Acquire) & LOCKED == 0
    }

    #[inline]
    fn change(&self, seen: u32, after: u32) -> bool {
        self.state.compare_exchange(seen, after, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the role if nobody has it.
    #[inline]
    fn volunteer(&self) -> bool {
        self.state.fetch_or(SPINNER, Ordering::Relaxed) & SPINNER == 0
    }

    fn learned(&self) -> Learned {
        Learned::unpack(self.learned.load(Ordering::Relaxed))
    }

    fn learn(&self, change: impl FnOnce(&mut Learned)) {
        let mut learned = self.learned();
        change(&mut learned);
        if cfg!(loom) {
            // loom 0.7 fails where two stores that race have one place in the order of modifications.
            self.learned.swap(learned.pack(), Ordering::Relaxed);
        } else {
            self.learned.store(learned.pack(), Ordering::Relaxed);
        }
    }

    /// Steps 2 to 6.
    #[cold]
    #[inline(never)]
    fn contend(&self) {
        let rate = tsc::per_us();
        let (age, quick) = (AGE_US * rate, QUICK_NS * rate / 1000);
        let began = tsc::now();
        let learned = self.learned();
        let heat = learned.after_conflict(began, quick);
        // Step 4: a long section that is asked for again at once is not worth a spin.
        let mut budget = if !learned.brief && learned.greedy(began, quick) { 0 } else { SPIN_US * rate };
        let mut policy = W::begin();
        let mut spinner = false;
        let mut asked = false;
        let mut rested = heat < HOT;
        let mut looks = 0;
        let mut yields = 0;
        // Since when it has been awake and not resting.
        let mut from = began;
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if !rested {
                rested = true;
                let room = seen & SLEEPERS == 0 || !self.learned().due(began, age);
                // The role keeps releasers from waking anyone meanwhile.
                if room && (spinner || self.volunteer()) {
                    spinner = true;
                    tsc::pause_for(if seen & SLEEPERS == 0 { REST_US } else { LONG_REST_US } * rate);
                    from = tsc::now();
                    continue;
                }
            }
            if seen & LOCKED == 0 {
                if !self.attempt() {
                    continue;
                }
                if spinner {
                    self.state.fetch_and(!(SPINNER | STARVING), Ordering::Relaxed);
                }
                let now = tsc::now();
                self.learn(|learned| {
                    learned.acquired = Learned::fine(now);
                    learned.brief = now.wrapping_sub(from) <= quick;
                    learned.heat = heat;
                });
                break;
            }
            if spinner && seen & HANDED != 0 {
                if self.change(seen, seen & !(SPINNER | HANDED | STARVING)) {
                    let now = tsc::now();
                    self.learn(|learned| learned.rotated = Learned::coarse(now));
                    break;
                }
                continue;
            }
            if looks < LOOKS {
                looks += 1;
                relax();
                continue;
            }
            let now = tsc::now();
            if spinner {
                if !asked && now.wrapping_sub(began) >= age && self.learned().due(now, age) {
                    asked = true;
                    self.state.fetch_or(STARVING, Ordering::Relaxed);
                    continue;
                }
                if now.wrapping_sub(from) < budget {
                    policy.step(&self.state, seen);
                    continue;
                }
                if yields < YIELDS && !asked && self.learned().found >= WORTH_IT {
                    // Step 5.
                    if !self.change(seen, seen & !SPINNER) {
                        continue;
                    }
                    spinner = false;
                    budget = 0;
                    yield_core();
                    let others = tsc::now().wrapping_sub(now) > YIELD_US * rate;
                    yields = if others { yields + 1 } else { YIELDS };
                    continue;
                }
            } else if seen & (SPINNER | WOKEN | HANDED) != SPINNER {
                let others_turn = seen & SLEEPERS != 0 || seen & WOKEN != 0;
                if !others_turn || !self.learned().due(now, age) {
                    let took = match seen & (WOKEN | HANDED) {
                        0 => self.volunteer(),
                        WOKEN => self.change(seen, seen & !WOKEN),
                        _ => false,
                    };
                    if took {
                        spinner = true;
                        from = now;
                    }
                    if took || seen & HANDED == 0 {
                        continue;
                    }
                } else if seen & SPINNER == 0 {
                    // Step 8: others sleep, and it is their turn.
                    self.learn(|learned| learned.rotated = Learned::coarse(now));
                }
            }
            // STARVING stays, for whoever is woken next. LOCKED is in `seen`: its holder will see the sleeper.
            let role = if spinner { SPINNER } else { 0 };
            if !self.change(seen, (seen & !role) + ONE_SLEEPER) {
                continue;
            }
            self.sleep();
            // The releaser has given the role to who was woken, unless another has taken it meanwhile.
            let seen = self.state.fetch_and(!WOKEN, Ordering::Relaxed);
            spinner = seen & WOKEN != 0;
            self.learn(|learned| learned.found = learned.after_wake(seen & LOCKED == 0));
            // Step 4: nor where the holders come back at once.
            budget = if self.learned().found == 0 { 0 } else { SPIN_US * rate };
            asked = false;
            rested = heat < HOT;
            looks = 0;
            yields = 0;
            from = tsc::now();
        }
        policy.end();
    }

    /// Step 6: until this thread's ticket is granted.
    fn sleep(&self) {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        loop {
            let grants = self.grants.load(Ordering::Acquire);
            // Granted once `grants` is past the ticket, by less than half of all numbers.
            if grants.wrapping_sub(ticket).wrapping_sub(1) as i32 >= 0 {
                return;
            }
            wait(&self.grants, grants, 1 << (ticket % 32), None);
        }
    }

    /// Step 7, when somebody was woken: whether another shall be.
    fn another(&self, seen: u32) -> bool {
        if seen & (WOKEN | HANDED | STARVING) != WOKEN {
            return false;
        }
        let late = self.learned().late(tsc::now);
        if !late {
            self.learn(|learned| learned.passed = (learned.passed + 1).min(OFTEN));
        }
        late
    }

    /// Step 7, when there is more to do than to clear a bit.
    #[cold]
    #[inline(never)]
    fn release(&self) {
        // More than one, if who took the role of the first went to sleep before the lock was released.
        let mut granted = 0;
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            let alone = seen & SPINNER == 0;
            if seen & SLEEPERS != 0 && (alone || (granted == 0 && self.another(seen))) {
                // The oldest sleeper gets the role and, if asked for, the lock with it. In one step: a spinner that
                // is awake between two could go back to sleep. Who comes beside one that is late has no role.
                let hand = if seen & STARVING != 0 { HANDED } else { 0 };
                let role = if alone { SPINNER | WOKEN | hand } else { 0 };
                let after = (seen | role) - ONE_SLEEPER;
                self.learn(|learned| (learned.woke, learned.passed) = (Learned::medium(tsc::now()), 0));
                if self.state.compare_exchange(seen, after, Ordering::Release, Ordering::Relaxed).is_err() {
                    continue;
                }
                // Nobody can free the lock's memory before this: LOCKED is set still, or that sleeper is inside.
                granted |= 1 << (self.grants.fetch_add(1, Ordering::Release) % 32);
                if hand != 0 {
                    break;
                }
                continue;
            }
            let hand = seen & STARVING != 0 && seen & SPINNER != 0;
            let after = if hand { seen | HANDED } else { seen & !LOCKED };
            if self.state.compare_exchange(seen, after, Ordering::Release, Ordering::Relaxed).is_ok() {
                break;
            }
        }
        if granted != 0 {
            wake(&self.grants, i32::MAX, granted);
        }
    }
}

// SAFETY: LOCKED goes from clear to set by one thread's fetch_or, which alone acquires. With HANDED, LOCKED stays set
// and the lock passes to the spinner, of which there is one: the role is taken when the bit was clear, or given
// with a grant to one sleeper. Release (state, grants) and Acquire (state, grants) pair. All zero is free. After the
// write that releases, only the address of `grants` is used; the grant itself comes before.
unsafe impl<W: Wait> RawLock for Adaptive<W> {
    const NAME: &'static str = "adaptive";
    const FIFO: bool = false;
    #[cfg(not(loom))]
    const INIT: Self = Adaptive {
        state: AtomicU32::new(0),
        tickets: AtomicU32::new(0),
        grants: AtomicU32::new(0),
        learned: AtomicU32::new(0),
        policy: PhantomData,
    };

    #[inline]
    fn lock(&self) -> Token {
        if !self.attempt() {
            self.contend();
        }
        Token::NONE
    }

    #[inline]
    fn try_lock(&self) -> Option<Token> {
        (self.state.load(Ordering::Relaxed) & LOCKED == 0 && self.attempt()).then_some(Token::NONE)
    }

    #[inline]
    unsafe fn unlock(&self, _: Token) {
        let seen = self.state.load(Ordering::Relaxed);
        // Nobody waits: apart from the next, so that the exchange need not wait for what is loaded.
        if seen == LOCKED {
            if self.state.compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        // Someone who is awake does, and does not ask for more.
        } else if seen & (SPINNER | STARVING | WOKEN) == SPINNER
            && self.state.compare_exchange(seen, seen & !LOCKED, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return;
        }
        self.release();
    }

    fn is_locked(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LOCKED != 0
    }

    unsafe fn forget_waiters(&self, held: Option<Token>) {
        // A lock that was handed to a thread that is gone is nobody's.
        let seen = self.state.load(Ordering::Relaxed);
        let locked = held.is_some() || (seen & LOCKED != 0 && seen & HANDED == 0);
        self.state.store(u32::from(locked), Ordering::Relaxed);
        self.tickets.store(0, Ordering::Relaxed);
        self.grants.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOTHING: Learned =
        Learned { rotated: 0, woke: 0, passed: 0, found: 0, acquired: 0, brief: false, heat: 0 };

    #[test]
    fn what_is_learned_fits_its_word() {
        let all =
            Learned { rotated: 0x3f, woke: 0x1f, passed: 3, found: 7, acquired: 0xfff, brief: true, heat: 7 };
        assert_eq!(all.pack(), u32::MAX);
        let one = Learned {
            rotated: 0x23,
            woke: 0x15,
            passed: 1,
            found: 2,
            acquired: 0x567,
            brief: false,
            heat: 5,
        };
        assert_eq!(Learned::unpack(one.pack()), one);
    }

    #[test]
    fn heat_rises_with_brief_waits_and_quick_conflicts_only() {
        let at = 1_000_000;
        let learned = Learned { acquired: Learned::fine(at), brief: true, heat: 2, ..NOTHING };
        assert_eq!(learned.after_conflict(at + 500, 1000), 4, "brief, and asked for at once");
        assert_eq!(learned.after_conflict(at + 9000, 1000), 1, "asked for later");
        assert_eq!(Learned { brief: false, ..learned }.after_conflict(at + 500, 1000), 1, "a long wait");
        assert_eq!(Learned { heat: 7, ..learned }.after_conflict(at + 500, 1000), 7);
    }

    #[test]
    fn turns_are_due_after_an_age_also_over_a_wrap() {
        let tick = 1_u64 << Learned::COARSE;
        let learned = Learned { rotated: 0x3f, ..NOTHING };
        assert!(!learned.due(0x3f * tick, 5 * tick));
        assert!(!learned.due((0x3f + 4) * tick, 5 * tick));
        assert!(learned.due((0x3f + 5) * tick, 5 * tick));
    }

    #[test]
    fn who_is_woken_is_late_after_a_while_unless_another_would_come_for_nothing() {
        let after = |ticks: u64| move || (0x1f + ticks) << Learned::MEDIUM;
        let late = |passed, found, ticks| Learned { woke: 0x1f, passed, found, ..NOTHING }.late(after(ticks));
        assert!(!late(0, FOUND, 1), "in time");
        assert!(late(0, WORTH_IT_LONG, 2), "also over a wrap");
        assert!(!late(0, 0, 2), "nobody found it free");
        assert!(!late(OFTEN, WORTH_IT - 1, 2), "released often, and mostly taken");
        assert!(late(OFTEN, WORTH_IT, 2), "released often, and mostly free");
    }

    #[test]
    fn found_tells_half_from_a_fifth() {
        let worth_it = |period: u32| {
            let mut learned = NOTHING;
            let look = |n: &u32| {
                learned.found = learned.after_wake(n.is_multiple_of(period));
                learned.found >= WORTH_IT
            };
            (0..1000).filter(look).count()
        };
        assert!(worth_it(2) > 900, "{}", worth_it(2));
        assert_eq!(worth_it(5), 0);
    }
}
