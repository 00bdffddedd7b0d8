//! Threads that the system may refuse, and stacks that it may keep small.
//!
//! A limit of processes (`ulimit -u`), of memory (`ulimit -v`) or a full cgroup makes `pthread_create` fail with EAGAIN;
//! rayon's own pool, made when it is first used, then panics, and so does `std::thread::spawn`. So:
//!
//! - Work that can be spread ([`map`], [`filter_map`]) is done by as many threads as can be had, at the end by the caller
//!   alone. The answer is the same.
//! - A thread that is needed ([`named`]) is asked for by a builder, whose error the caller says in one line.
//! - A program that begins on a small stack (`ulimit -s`) goes on in a thread whose stack is large enough
//!   ([`on_enough_stack`]).
//!
//! Each of them states the size of its stack: what `RUST_MIN_STACK` or `ulimit -s` say does not matter.

use rayon::iter::{FromParallelIterator, IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::num::NonZero;
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock};
use std::thread::{Builder, available_parallelism};

/// What Linux gives a program, in bytes: what it may rely on.
pub const PROGRAM_STACK: usize = 8 << 20;

/// What a thread of ours gets, in bytes: what Rust gives one by itself.
pub const THREAD_STACK: usize = 2 << 20;

/// What comes of each item, in their order. An item is a piece of work that is worth a thread of its own: each is
/// handed out by itself, so that no thread is left with several while another has none.
pub fn map<T, I, R, C>(items: I, one: impl Fn(T) -> R + Send + Sync) -> C
where
    T: Send,
    I: IntoIterator<Item = T>,
    R: Send,
    C: FromIterator<R> + FromParallelIterator<R> + Send,
{
    spread(
        items,
        |items| items.into_par_iter().with_max_len(1).map(&one).collect(),
        |items| items.into_iter().map(&one).collect(),
    )
}

/// As [`map`]; `None` leaves an item out.
pub fn filter_map<T, I, R, C>(items: I, one: impl Fn(T) -> Option<R> + Send + Sync) -> C
where
    T: Send,
    I: IntoIterator<Item = T>,
    R: Send,
    C: FromIterator<R> + FromParallelIterator<R> + Send,
{
    spread(
        items,
        |items| items.into_par_iter().with_max_len(1).filter_map(&one).collect(),
        |items| items.into_iter().filter_map(&one).collect(),
    )
}

fn spread<T: Send, C: Send>(
    items: impl IntoIterator<Item = T>,
    by_many: impl FnOnce(Vec<T>) -> C + Send,
    by_one: impl FnOnce(Vec<T>) -> C,
) -> C {
    let items: Vec<T> = items.into_iter().collect();
    if rayon::current_thread_index().is_some() {
        // Within other spread work, or within a pool of the caller's.
        return by_many(items);
    }
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    match POOL.get_or_init(pool) {
        Some(pool) => pool.install(|| by_many(items)),
        None => by_one(items),
    }
}

/// As many threads as `RAYON_NUM_THREADS` says, else one for each CPU that we may use; fewer where no more can be had.
fn pool() -> Option<rayon::ThreadPool> {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    pool_of(asked.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get)))
}

/// A pool of at most that many threads; none if not one can be had. rayon ends all of them where one cannot be had, so
/// they are made first and then given to it.
fn pool_of(most: usize) -> Option<rayon::ThreadPool> {
    let mut waiting = Vec::new();
    for n in 0..most {
        let (give, given) = mpsc::sync_channel::<rayon::ThreadBuilder>(1);
        let work = move || {
            if let Ok(worker) = given.recv() {
                worker.run();
            }
        };
        match named(&format!("work-{n}")).spawn(work) {
            Ok(_) => waiting.push(give),
            Err(_) => break,
        }
    }
    let threads = waiting.len();
    let mut waiting = waiting.into_iter();
    let begin = |worker| {
        let given = waiting.next().is_some_and(|thread| thread.send(worker).is_ok());
        given.then_some(()).ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
    };
    // No number would mean rayon's own choice.
    (threads > 0)
        .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(begin).build().ok())?
}

/// A thread to be, with a name and a stack of a known size.
pub fn named(name: &str) -> Builder {
    Builder::new().name(name.to_owned()).stack_size(THREAD_STACK)
}

/// Whether so many more threads can be had at once: for libraries that panic without them, or try for ever.
///
/// # Errors
/// What the system says.
pub fn can_start(count: usize) -> io::Result<()> {
    let gate = &Mutex::new(());
    // Until all are there: else one could take the place of another that has ended.
    let closed = gate.lock();
    std::thread::scope(move |scope| {
        for _ in 0..count {
            named("probe").spawn_scoped(scope, move || drop(gate.lock()))?;
        }
        drop(closed);
        Ok(())
    })
}

/// Runs a program where it has the stack that it may rely on: here, or in a thread.
///
/// # Errors
/// The stack is too small and no thread can be had: what to do.
pub fn on_enough_stack<R: Send>(program: impl FnOnce() -> R + Send) -> Result<R, String> {
    // No limit is none.
    let Some(here) = getrlimit(Resource::Stack).current.filter(|bytes| *bytes < PROGRAM_STACK as u64) else {
        return Ok(program());
    };
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(PROGRAM_STACK).spawn_scoped(scope, program).map_err(|e| {
            format!(
                "the stack is limited to {} KiB, and no thread with a larger one can be started ({e}); \
                 raise the limit (ulimit -s {})",
                here >> 10,
                PROGRAM_STACK >> 10
            )
        })?;
        thread.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_stays_and_the_first_mistake_is_told() {
        let squares: Vec<u64> = map(0..1000_u64, |n| n * n);
        assert_eq!(squares, (0..1000).map(|n| n * n).collect::<Vec<u64>>());
        let even: Vec<u64> = filter_map(0..10_u64, |n| (n % 2 == 0).then_some(n));
        assert_eq!(even, [0, 2, 4, 6, 8]);
        let wrong: Result<Vec<u64>, String> =
            map(vec![1_u64, 2, 3], |n| if n == 2 { Err("two".into()) } else { Ok(n) });
        assert_eq!(wrong, Err("two".to_owned()));
        // Within itself.
        let sums: Vec<u64> = map(0..20_u64, |n| map::<_, _, _, Vec<u64>>(0..n, |k| k).iter().sum());
        assert_eq!(sums[19], 171);
    }

    #[test]
    fn a_pool_has_what_it_was_asked_for() {
        assert_eq!(pool_of(3).map(|p| p.current_num_threads()), Some(3));
        assert!(pool_of(0).is_none());
        assert!(can_start(3).is_ok());
        assert_eq!(pool_of(2).map(|p| p.install(rayon::current_num_threads)), Some(2));
    }
}
