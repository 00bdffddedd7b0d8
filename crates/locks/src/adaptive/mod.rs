//! `adaptive`: the default. Barging for throughput, one spinner, sleep for the others, and turns by age.
//!
//! It keeps four words.
//!
//! | word | bits | name | meaning | set by | cleared by |
//! |---|---|---|---|---|---|
//! | `state` | 0 | LOCKED | someone holds the lock | who acquires | who releases |
//! | | 1 | SPINNER | a thread that waits is awake, or has been woken | that thread, or the releaser that wakes it | that thread |
//! | | 2 | HANDED | the lock (LOCKED stays) is the spinner's | who releases | the spinner |
//! | | 3 | STARVING | the next release shall hand over | a spinner that has waited `AGE_US` | the thread handed the lock, or a spinner that barges |
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
//! A waiter is in one of these states. Each step reads `state` once. In each but `Rest`, a lock that is found free is
//! acquired, and one that is handed over is received; else the step's transition is taken.
//!
//! | state | the role of the spinner | does | then |
//! |---|---|---|---|
//! | `Rest` | takes it if nobody has it | stays away from a hot lock (3) | `Look` |
//! | `Look` | as it was | pauses, `LOOKS` times (2) | `Spin` with the role, `Apply` without |
//! | `Apply` | takes it if nobody has it, or only one who does not run | | `Spin` with the role; `Sleep` if another runs with it or it is the others' turn (8) |
//! | `Spin` | has it | the policy's steps until the time is over (4); asks for its turn (8) | `Yield`, `Nap` or `Sleep` |
//! | `Yield` | gives it back | yields (5) | `Apply` |
//! | `Nap` | has it, marked WOKEN | sleeps for a time (6) | `Rest` or `Look`; `Sleep` if somebody asked for a turn |
//! | `Sleep` | gives it back | sleeps until woken (6) | `Rest` or `Look`, with the role if a releaser gave it |
//!
//! It begins with `Rest` if the lock is hot, with `Look` otherwise, as after each sleep. A step whose write fails, since
//! another has changed `state`, is taken again; `Yield`, `Nap` and `Sleep` go back to `Spin` or `Apply` for that.
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
//!    where, several times over, a conflict came within `QUICK_NS` of an acquisition that had waited longer than that:
//!    the thread that has just left asks again, and the two would pass the lock to and fro while both burn a core. And
//!    not after a wake-up.
//! 5. **Yield** when the time for spinning is over, for as long as that lets other threads run (a yield that returns at
//!    once means that none wants the core) and at most `YIELDS` times, without the role: whoever does not run must
//!    not keep releasers from waking others. With more threads than CPUs this saves a sleep and a wake-up; not where
//!    sections are long: who yields takes turns from who sleeps, for little.
//! 6. **Nap** after a wake-up if nearly all who were woken of late found the lock taken. Asleep again it would be woken by
//!    the next release, for nothing, and so on: up to half of a core, and a third of what the holder could do. So it
//!    keeps the place of one who has been woken, which a newcomer that spins may take, and looks again by itself
//!    when it has waited for as long again, `AGE_US / 2` at most. If the lock is left for good meanwhile, that is lost.
//!    **Sleep** otherwise, in order of tickets, each at its ticket's seat (`seat.rs`), so that a newcomer cannot
//!    take the wake-up of who has waited longer.
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

mod learned;
mod waiter;

use crate::primitive::{AtomicU32, Ordering};
use crate::raw::{Quick, RawLock, Token};
use crate::seat::Seat;
use crate::tsc;
use crate::wait::{Spin, Wait};
use core::marker::PhantomData;
use learned::Learned;
use waiter::Waiter;

const LOCKED: u32 = 1;
const SPINNER: u32 = 2;
const HANDED: u32 = 4;
const STARVING: u32 = 8;
const WOKEN: u32 = 16;
const ONE_SLEEPER: u32 = 32;
const SLEEPERS: u32 = !(ONE_SLEEPER - 1);

/// A wake-up in this time costs 2.5 % of throughput at worst; people notice delays of tens of ms.
const AGE_US: u64 = 2000;

/// A few line transfers: a thread that comes back sooner had nothing else to do.
const QUICK_NS: u64 = 400;

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

    /// Steps 2 to 6.
    #[cold]
    #[inline(never)]
    fn contend(&self) {
        Waiter::new(self).wait();
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

    /// Step 8: somebody has had the turn of this age.
    fn note_turn(&self, now: u64) {
        self.learn(|learned| learned.rotated = Learned::coarse(now));
    }

    /// Step 6: until this thread's ticket is granted.
    fn sleep(&self) {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let seat = Seat::of(&raw const self.grants, ticket);
        loop {
            let read = seat.read();
            let grants = self.grants.load(Ordering::Acquire);
            // Granted once `grants` is past the ticket, by less than half of all numbers.
            if grants.wrapping_sub(ticket).wrapping_sub(1) as i32 >= 0 {
                return;
            }
            seat.sleep(read);
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
        // More than one, if who took the role of the first went to sleep before the lock was released: then in a row.
        let mut first = 0;
        let mut granted = 0;
        let lock = &raw const self.grants;
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
                let ticket = self.grants.fetch_add(1, Ordering::Release);
                if granted == 0 {
                    first = ticket;
                }
                granted += 1;
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
        for n in 0..granted {
            Seat::of(lock, first.wrapping_add(n)).call();
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
    const QUICK: Quick = Quick::Word32;
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

    unsafe fn forget_waiters(&self, _: Option<Token>) {
        // A lock that was handed to a thread that is gone is nobody's.
        let seen = self.state.load(Ordering::Relaxed);
        let locked = seen & LOCKED != 0 && seen & HANDED == 0;
        self.state.store(u32::from(locked), Ordering::Relaxed);
        self.tickets.store(0, Ordering::Relaxed);
        self.grants.store(0, Ordering::Relaxed);
    }
}
