//! Lock algorithms times waiting policies: what a thread should do with its core while it waits.
//!
//! A lock says *who* is next; a [waiting policy](wait) says what the others do meanwhile. Any of the eight
//! locks goes with any policy: `Mcs<SpinThenPark>`, `Ttas<WithTState<Spin>>`. [`Adaptive`] is the default and
//! right unless a measurement says otherwise.
//!
//! | lock | order | words | each waiter watches | essay |
//! |---|---|---|---|---|
//! | [`Tas`] | none | 1 | the lock | [`tas`] |
//! | [`Ttas`] | none | 1 | the lock | [`ttas`] |
//! | [`Ticket`] | FIFO | 2 | the lock | [`ticket`] |
//! | [`Anderson`] | FIFO | N lines | a line of its own | [`anderson`] |
//! | [`GraunkeThakkar`] | FIFO | N lines | its predecessor's line | [`graunke_thakkar`] |
//! | [`Mcs`] | FIFO | 2 pointers | a line of its own | [`mcs`] |
//! | [`Clh`] | FIFO | 2 pointers | its predecessor's line | [`clh`] |
//! | [`Adaptive`] | aged | 4 | the lock, one thread at a time | [`adaptive`] |
//!
//! ```
//! let count = wattwise_locks::Mutex::<u32>::new(0);
//! std::thread::scope(|s| {
//!     for _ in 0..4 {
//!         s.spawn(|| *count.lock() += 1);
//!     }
//! });
//! assert_eq!(count.into_inner(), 4);
//! ```
//!
//! Features: `std` (default; futexes and clocks, for `Park`, `SpinThenPark` and deadlines), `stats` (counts and
//! histograms in every [`Mutex`]), `capi` (the functions of `include/wattwise_locks.h`), `lock_api_0_4` and
//! `lock_api_0_5` (the traits of that crate for every lock).
#![cfg_attr(not(any(feature = "std", test, loom, miri)), no_std)]
#[cfg(not(any(feature = "std", test, loom, miri)))]
extern crate alloc;

mod bit;
mod primitive;
mod queue;
mod raw;
mod seat;
mod tsc;

pub mod adaptive;
pub mod anderson;
pub mod clh;
pub mod graunke_thakkar;
pub mod mcs;
pub mod stats;
pub mod tas;
pub mod ticket;
pub mod ttas;
pub mod wait;

#[cfg(all(feature = "capi", not(loom)))]
pub mod capi;
#[cfg(all(feature = "std", not(loom)))]
pub mod dynamic;
#[cfg(not(loom))]
pub mod interop;
mod mutex;

pub use adaptive::Adaptive;
pub use anderson::Anderson;
pub use clh::Clh;
pub use graunke_thakkar::GraunkeThakkar;
pub use mcs::Mcs;
pub use mutex::{Mutex, MutexGuard};
pub use primitive::{Clock, Deadline, keep_errno};
pub use raw::{Quick, RawLock, Token};
pub use tas::Tas;
pub use ticket::Ticket;
#[cfg(loom)]
pub use tsc::set_look_takes;
pub use ttas::Ttas;
