//! Two policies over the days of a machine that somebody uses: which needs less, and is it as fast?
//!
//! Nobody repeats a day. So the policies take turns, and chance decides who is first:
//!
//! 1. Time is cut into *blocks* (a minute; ten on a battery's gauge). Two blocks make a *pair*, one under each policy, in
//!    random order, which the seed and the pair's number fix beforehand ([`conduct::order`], as for `ab`).
//! 2. The first seconds of a block are not counted: what the last policy left has then gone.
//! 3. A pair broken by a suspend, a change of the power source or another program's write is left out whole. Which these are is
//!    fixed here ([`block::Reason`]) and never decided by what a block showed of its energy.
//! 4. The outcome of a pair is ln(J of B / J of A): what both blocks share cancels, be it the hour of the day or the work
//!    that was going on. Load hangs together over minutes (0.9 from one to the next), which leaves a spread of some 18 % a pair;
//!    a week has 5040 pairs. Where both blocks also have their instructions, the screen's brightness and the GPU's
//!    share of time, what these explain is taken out (`judge`), and the figure without that stands beside it, since
//!    a policy may change the work.
//! 5. `ab`'s judge gives the interval (`figure::verdict`), once, when the time that was fixed beforehand is over. Until then,
//!    and where it was stopped, the figure has a confidence sequence (`figure::sequence`), at which one may look at any time.
//! 6. *Guards* watch the service: time that tasks waited for a CPU, pressure, and how late a small piece of work is done that a
//!    probe does every ten seconds. A policy under which one of them grows by more than the limit is slower, and its saving is called
//!    bought with slowness.
//!
//! [`judge`], [`guards`] and [`hours`] are pure: blocks in, verdict out. `wattwise prove` makes the blocks as a program of its own
//! (`live::prove::machine`), the daemon makes them as it goes; [`conduct`] and [`lines`] are `ab`'s too. No model is here: a root process
//! may use it.

pub mod block;
pub mod conclude;
pub mod conduct;
pub mod guards;
pub mod hours;
pub mod judge;
pub mod lines;
pub mod log;
pub mod probe;
pub mod result;
pub mod say;
