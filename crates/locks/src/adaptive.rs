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
//! | | 4 | WOKEN | the spinner has been woken but does not run yet, or naps: another may take the role | the releaser that wakes it, or who naps | that thread, or who takes the role |
//! | | 31..5 | SLEEPERS | how many sleep, or are about to | who goes to sleep | the releaser that wakes it |
//! | `tickets` | 31..0 | | how many have gone to sleep | who goes to sleep | |
//! | `grants` | 31..0 | | how many have been woken: ticket t is woken once this is past t | who releases | |
//! | `learned` | 31..26 | rotated | when the lock was last handed over, 2^21 ticks | who waits | |
//! | | 25..21 | woke | when a sleeper was last woken, 2^16 ticks | who releases | |
//! | | 20..18 | found | whether of late those who were woken found the lock free about as often as taken | who was woken | |
//! | | 17..15 | barren | whether of late nearly all of them found it taken | who was woken | |
//! | | 14..9 | acquired | when a thread that had waited last acquired, 2^8 ticks | that thread | |
//! | | 8..6 | futile | how many spins in a row ended without the lock | who spins | |
//! | | 5..4 | eager | how often of late an acquisition after a longer wait was followed by a conflict at once | who acquires | |
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
//!    get in its way. Not if many spins in a row were futile: sections are longer than that; one in 16 tries again. Not
//!    after a conflict within `QUICK_NS` of an acquisition that had waited longer than that, if the one before was like
//!    it: the thread that has just left asks again, and the two would pass the lock to and fro while both burn a core.
//!    Nor after a wake-up if those who were woken of late found the lock taken: its holders come back at once.
//! 5. **Yield** when the time for spinning is over, for as long as that lets other threads run (a yield that returns at
//!    once means that none wants the core) and at most `YIELDS` times, without the role: whoever does not run must
//!    not keep releasers from waking others. With more threads than CPUs this saves a sleep and a wake-up; not
//!    where those who are woken mostly find the lock taken, since then waiters only yield to each other, and not where
//!    sections are long: who yields takes turns from who sleeps, for little.
//! 6. **Nap** after a wake-up if nearly all who were woken of late found the lock taken. Asleep again it would be woken by
//!    the next release, for nothing, and so on: up to half of a core, and a third of what the holder could do. So it
//!    keeps the place of one who has been woken, which a newcomer that spins may take, and looks again by itself
//!    when it has waited for as long again, `AGE_US / 2` at most. If the lock is left for good meanwhile, that is lost.
//!    **Sleep** otherwise, in order of tickets, so that a newcomer cannot take the wake-up of who has waited longer.
//! 7. **Release** by clearing LOCKED. If threads sleep and none is awake, wake the oldest first: it becomes
//!    the spinner, and while it wakes up the lock stays free for whoever runs. If it has not come after 25 to 50 us,
//!    its core is busy: the next is woken as well if those who are woken find the lock free about as often as taken,
//!    and where sections are long (spins are futile) unless nearly all find it taken: a wake-up is little beside them,
//!    and a core that has nobody to run is lost. Where threads come back at once, each wake-up would be for nothing.
//! 8. **Turns.** A spinner that has waited for `AGE_US` asks for the lock, at most once in that time for the whole
//!    lock; the next release hands it to the spinner, or to the oldest sleeper. Once in the same time, a thread
//!    that would spin goes to sleep instead if others sleep, so that they come to run. That bounds the wait at about
//!    the number of waiters times `AGE_US`, half as much again with naps, and costs a wake-up (50 us) in that time.
//!
//! The releaser sets SPINNER and HANDED *before* or *with* the release, never after: who acquires next may free
//! the lock's memory. After the release only an address is used.

use crate::primitive::{AtomicU32, Ordering, nap, relax, wait, wake, yield_core};
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
const LOOKS: u32 = if cfg!(loom) { 0 } else { 4 };

/// A yield that takes longer has let another thread run.
const YIELD_US: u64 = 2;

/// Yields before a sleep.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 10 };

/// Going to sleep for a time and coming back costs some 10 us of a core.
const NAP_US: u64 = 100;

/// Spins in a row without success from which on they are left out, and one of how many conflicts still tries.
const FUTILE: u32 = 7;
const PROBE: u64 = 16;

/// Goes up and down by one: what happens to few of the conflicts seldom brings it to `EAGER`.
const EAGER_MOST: u32 = 3;
const EAGER: u32 = 2;

/// Heat goes up by two and down by one, so that it takes more than half of the conflicts to reach `HOT`.
const HEAT: u32 = 7;
const HOT: u32 = 4;

/// Found free counts three, found taken minus two: it stays high where the lock is free two times in five.
const FOUND: u32 = 7;
const WORTH_IT: u32 = if cfg!(loom) { 0 } else { 4 };

/// Found taken counts one, found free takes off four: it stays there if that is less than one time in five.
const BARREN: u32 = if cfg!(loom) { 1 } else { 7 };

/// 25 to 50 us: a wake-up on an idle core takes 5 to 50.
const LATE: u32 = if cfg!(loom) { 1 } else { 2 };

/// What is in `learned`. Updates may be lost between threads, and times wrap (50 ms, 0.8 ms, 13 us): both mislead one
/// wait, not the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Learned {
    rotated: u32,
    woke: u32,
    found: u32,
    barren: u32,
    acquired: u32,
    futile: u32,
    eager: u32,
    brief: bool,
    heat: u32,
}

impl Learned {
    const ROTATED: u32 = 0x3f;
    const WOKE: u32 = 0x1f;
    const ACQUIRED: u32 = 0x3f;

    /// 2^21 ticks are about 0.8 ms. In models, time passes with each look.
    const COARSE: u32 = if cfg!(loom) { 10 } else { 21 };

    /// About 25 us.
    const MEDIUM: u32 = if cfg!(loom) { 4 } else { 16 };

    /// About 100 ns.
    const FINE: u32 = 8;

    fn unpack(word: u32) -> Self {
        Learned {
            rotated: word >> 26,
            woke: word >> 21 & Self::WOKE,
            found: word >> 18 & FOUND,
            barren: word >> 15 & BARREN,
            acquired: word >> 9 & Self::ACQUIRED,
            futile: word >> 6 & FUTILE,
            eager: word >> 4 & EAGER_MOST,
            brief: word & 8 != 0,
            heat: word & HEAT,
        }
    }

    fn pack(self) -> u32 {
        self.rotated << 26
            | self.woke << 21
            | self.found << 18
            | self.barren << 15
            | self.acquired << 9
            | self.futile << 6
            | self.eager << 4
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
        (ticks >> Self::FINE) as u32 & Self::ACQUIRED
    }

    /// Step 8: the last hand-over is an age ago.
    fn due(self, now: u64, age: u64) -> bool {
        u64::from(Self::coarse(now).wrapping_sub(self.rotated) & Self::ROTATED) << Self::COARSE >= age
    }

    /// Sections are longer than a spin.
    fn long(self) -> bool {
        self.futile == FUTILE
    }

    /// Step 7: who was woken last has not come in time, and another would probably not come for nothing.
    fn late(self, now: impl FnOnce() -> u64) -> bool {
        let worth_it = if self.long() { self.barren < BARREN } else { self.found >= WORTH_IT };
        worth_it && Self::medium(now()).wrapping_sub(self.woke) & Self::WOKE >= LATE
    }

    /// The last who had to wait has only just acquired: whoever asks now had nothing else to do.
    fn greedy(self, now: u64, quick: u64) -> bool {
        u64::from(Self::fine(now).wrapping_sub(self.acquired) & Self::ACQUIRED) << Self::FINE <= quick
    }

    /// Once somebody who was woken has looked.
    fn after_wake(mut self, free: bool) -> Self {
        (self.found, self.barren) = if free {
            ((self.found + 3).min(FOUND), self.barren.saturating_sub(4))
        } else {
            (self.found.saturating_sub(2), (self.barren + 1).min(BARREN))
        };
        self
    }

    /// What a conflict at `now` shows: the heat of step 3, and how eager holders are to come back (step 4).
    fn after_conflict(mut self, now: u64, quick: u64) -> Self {
        let at_once = self.greedy(now, quick);
        self.heat =
            if self.brief && at_once { (self.heat + 2).min(HEAT) } else { self.heat.saturating_sub(1) };
        self.eager = if !self.brief && at_once {
            (self.eager + 1).min(EAGER_MOST)
        } else {
            self.eager.saturating_sub(1)
        };
        self
    }

    /// Step 4: whether a conflict at `now`, which is in this, is worth a spin.
    fn worth_a_spin(self, now: u64, quick: u64) -> bool {
        let to_and_fro = self.eager >= EAGER && !self.brief && self.greedy(now, quick);
        // Some bits of the time are as good as a die.
        let probe = (now >> 5).is_multiple_of(PROBE);
        !to_and_fro && (!self.long() || probe)
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
        let conflict = self.learned().after_conflict(began, quick);
        let mut budget = if conflict.worth_a_spin(began, quick) { SPIN_US * rate } else { 0 };
        let mut policy = W::begin();
        let mut spinner = false;
        let mut asked = false;
        let mut woken = false;
        let mut spun = false;
        let mut rested = conflict.heat < HOT;
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
                    (learned.heat, learned.eager) = (conflict.heat, conflict.eager);
                    if spun {
                        learned.futile = 0;
                    }
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
                    spun = true;
                    policy.step(&self.state, seen);
                    continue;
                }
                if spun {
                    spun = false;
                    self.learn(|learned| learned.futile = (learned.futile + 1).min(FUTILE));
                }
                let learned = self.learned();
                if yields < YIELDS && !asked && learned.found >= WORTH_IT && !learned.long() {
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
            } else if seen & (SPINNER | WOKEN | HANDED) != SPINNER && (seen & WOKEN == 0 || budget != 0) {
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
            if spinner && woken && !asked && seen & STARVING == 0 && self.learned().barren == BARREN {
                // Step 6.
                if !self.change(seen, seen | WOKEN) {
                    continue;
                }
                let waited = now.wrapping_sub(began) / rate;
                nap(waited.clamp(NAP_US, AGE_US / 2) * 1000);
            } else {
                // STARVING stays, for whoever is woken next. LOCKED is in `seen`: its holder will see the sleeper.
                let role = if spinner { SPINNER } else { 0 };
                if !self.change(seen, (seen & !role) + ONE_SLEEPER) {
                    continue;
                }
                self.sleep();
            }
            // The role is this thread's, by the releaser or from before, unless another has taken it meanwhile.
            let seen = self.state.fetch_and(!WOKEN, Ordering::Relaxed);
            spinner = seen & WOKEN != 0;
            // What is handed over was neither free nor taken.
            if seen & HANDED == 0 {
                self.learn(|learned| *learned = learned.after_wake(seen & LOCKED == 0));
            }
            // Step 4: nor where the holders come back at once, or stay for long.
            let learned = self.learned();
            budget = if learned.found == 0 || learned.long() { 0 } else { SPIN_US * rate };
            woken = true;
            asked = false;
            rested = conflict.heat < HOT;
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
        self.learned().late(tsc::now)
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
                self.learn(|learned| learned.woke = Learned::medium(tsc::now()));
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

    const NOTHING: Learned = Learned {
        rotated: 0,
        woke: 0,
        found: 0,
        barren: 0,
        acquired: 0,
        futile: 0,
        eager: 0,
        brief: false,
        heat: 0,
    };

    #[test]
    fn what_is_learned_fits_its_word() {
        let all = Learned {
            rotated: 0x3f,
            woke: 0x1f,
            found: 7,
            barren: 7,
            acquired: 0x3f,
            futile: 7,
            eager: 3,
            brief: true,
            heat: 7,
        };
        assert_eq!(all.pack(), u32::MAX);
        let one = Learned {
            rotated: 0x23,
            woke: 0x15,
            found: 2,
            barren: 6,
            acquired: 0x16,
            futile: 5,
            eager: 1,
            brief: false,
            heat: 5,
        };
        assert_eq!(Learned::unpack(one.pack()), one);
    }

    #[test]
    fn heat_rises_with_brief_waits_and_quick_conflicts_only() {
        let at = 1_000_000;
        let learned = Learned { acquired: Learned::fine(at), brief: true, heat: 2, ..NOTHING };
        let heat = |learned: Learned, after| learned.after_conflict(at + after, 1000).heat;
        assert_eq!(heat(learned, 500), 4, "brief, and asked for at once");
        assert_eq!(heat(learned, 9000), 1, "asked for later");
        assert_eq!(heat(Learned { brief: false, ..learned }, 500), 1, "a long wait");
        assert_eq!(heat(Learned { heat: 7, ..learned }, 500), 7);
    }

    #[test]
    fn spins_are_left_out_where_holders_come_back_at_once() {
        let at = 1_000_000;
        let acquired = Learned { acquired: Learned::fine(at), ..NOTHING };
        let first = acquired.after_conflict(at + 500, 1000);
        assert!(first.worth_a_spin(at + 500, 1000), "once may be chance");
        let second = first.after_conflict(at + 500, 1000);
        assert!(!second.worth_a_spin(at + 500, 1000), "to and fro");
        assert!(second.worth_a_spin(at + 9000, 1000), "asked for later");
        let brief = Learned { brief: true, ..second };
        assert!(brief.worth_a_spin(at + 500, 1000), "the wait was short");
        assert!(brief.after_conflict(at + 500, 1000).eager < second.eager);

        // One conflict in four at once is not enough.
        let mut learned = acquired;
        for n in 0..100 {
            let now = at + if n % 4 == 0 { 500 } else { 9000 };
            learned = learned.after_conflict(now, 1000);
            assert!(learned.worth_a_spin(now, 1000), "{n}");
        }
    }

    #[test]
    fn spins_are_left_out_where_they_were_futile_but_for_one_in_sixteen() {
        let spins = |futile| {
            let learned = Learned { futile, ..NOTHING };
            (0..1600).filter(|n| learned.worth_a_spin(1_000_000 + 331 * n, 1000)).count()
        };
        assert_eq!(spins(FUTILE - 1), 1600);
        assert!((80..=120).contains(&spins(FUTILE)), "{}", spins(FUTILE));
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
        let late = |learned: Learned, ticks| Learned { woke: 0x1f, ..learned }.late(after(ticks));
        let free = Learned { found: WORTH_IT, ..NOTHING };
        assert!(!late(free, 1), "in time");
        assert!(late(free, 2), "also over a wrap");
        assert!(!late(NOTHING, 2), "mostly taken");
        let long = Learned { futile: FUTILE, ..NOTHING };
        assert!(late(long, 2), "mostly taken, but sections are long");
        assert!(!late(Learned { barren: BARREN, ..long }, 2), "nearly always taken");
    }

    #[test]
    fn found_tells_half_from_a_fifth_and_barren_a_fifth_from_a_twentieth() {
        // Of a thousand wake-ups of which one in `period` finds the lock free.
        let after = |period: u32, holds: fn(Learned) -> bool| {
            let mut learned = NOTHING;
            let look = |n: &u32| {
                learned = learned.after_wake(n.is_multiple_of(period));
                holds(learned)
            };
            (0..1000).filter(look).count()
        };
        let worth_it = |period| after(period, |learned| learned.found >= WORTH_IT);
        assert!(worth_it(2) > 900, "{}", worth_it(2));
        assert_eq!(worth_it(5), 0);
        let barren = |period| after(period, |learned| learned.barren == BARREN);
        assert_eq!(barren(4), 0);
        assert!(barren(20) > 700, "{}", barren(20));
    }
}
