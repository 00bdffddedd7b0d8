//! `libwattwise_pthread.so`: any of wattwise's locks in the place of a program's pthread mutexes.
//!
//! ```text
//! WATTWISE_LOCK=mcs:spin-then-park LD_PRELOAD=/path/to/libwattwise_pthread.so program
//! ```
//!
//! Without `WATTWISE_LOCK` it is `adaptive`. An unknown name ends the program with exit code 2 and one line.
//! `WATTWISE_LOCK_STATS=1` prints, when the program ends, what was left to glibc; `WATTWISE_LOCK_WATCH=FILE` writes how each
//! mutex was used (`watch.rs`).
//!
//! - Every mutex that is private, not robust and without a priority protocol is ours, of any type: normal,
//!   recursive, error-checking, adaptive. The others go to glibc untouched and are counted.
//! - The lock lives inside `pthread_mutex_t` ([`mutex`] draws it), with the type where glibc keeps it: static
//!   initialisers work, nothing is looked up, and a queue's nodes live on the stacks of those who wait.
//!   The array locks do not fit in 16 bytes and are refused.
//! - Condition variables are ours too, since glibc's would unlock the mutex by glibc's rules ([`cond`]).
//! - Threads of a real-time priority are served by it, before all others, under every lock (`priority.rs`).
//! - No state of a thread is kept but a number: threads may come and go without limit, and their end is of no
//!   interest. What a fork leaves behind is repaired at first use (`process.rs`).
//! - `pthread_rwlock_*`, `pthread_spin_*`, `pthread_barrier_*`, `sem_*` and C11's `mtx_*` and `cnd_*` stay
//!   glibc's in all their functions: none shares state with a mutex of ours.
//!
//! Since glibc 2.34 most of these functions carry a second version (`pthread_mutex_trylock@@GLIBC_2.34`). The
//! exports here have no version, and the dynamic linker binds a reference of any version to such a
//! definition; `tests/posix.rs` checks every function by its effect. Look-ups that begin at glibc (`RTLD_DEEPBIND`,
//! `dlmopen`, `dlsym` with its handle) are made to find this library as well (`bind.rs`, `namespace.rs`).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod bind;
mod bucket;
pub mod cancel;
pub mod cond;
mod elf;
mod futex;
pub mod mutex;
pub mod namespace;
mod node;
mod page;
mod priority;
mod process;
mod real;
mod say;
mod shared;
mod sleepers;
mod waiters;
mod watch;
