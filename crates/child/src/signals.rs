//! The signals that would end us before we have put things back.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Those that ask us to end.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Those that mean something to a command alone.
const OTHERS: [i32; 2] = [SIGUSR1, SIGUSR2];
/// Those by which we learn of a stopped command, and that we go on.
const WAKING: [i32; 2] = [SIGCHLD, SIGCONT];

/// Signals, caught while this lives.
pub struct Signals {
    last: Arc<AtomicUsize>,
    came: Vec<(i32, Arc<AtomicBool>)>,
    pipe: OwnedFd,
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// What the system says.
    pub fn catch() -> io::Result<Signals> {
        let (pipe, write) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
        let mut signals = Signals { last: Arc::default(), came: Vec::new(), pipe, ids: Vec::new() };
        for signal in ENDING {
            let last = Arc::clone(&signals.last);
            signals.ids.push(signal_hook::flag::register_usize(signal, last, signal as usize)?);
        }
        for signal in ENDING.into_iter().chain(OTHERS) {
            let came = Arc::new(AtomicBool::new(false));
            signals.ids.push(signal_hook::flag::register(signal, Arc::clone(&came))?);
            signals.came.push((signal, came));
        }
        for signal in ENDING.into_iter().chain(OTHERS).chain(WAKING) {
            // Last: what came is there before the pipe wakes us.
            signals.ids.push(signal_hook::low_level::pipe::register(signal, write.try_clone()?)?);
        }
        Ok(signals)
    }

    /// The last one that asked us to end.
    pub fn caught(&self) -> Option<i32> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Ends us as that signal would: one that reached the command alone, from the keyboard.
    pub fn as_if_caught(&self, signal: i32) {
        self.last.store(signal as usize, Ordering::Relaxed);
    }

    /// The reason to stop that the last one is: `signal 2 came`.
    pub fn reason(&self) -> Option<String> {
        self.caught().map(|signal| format!("signal {signal} came"))
    }

    /// Waits for a time, or until one has come or comes that asks us to end.
    pub fn sleep(&self, time: Duration) {
        if self.caught().is_none() {
            _ = poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timespec(time)));
            self.drain();
        }
    }

    /// Readable when one has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Those that have come since the last time; one that came twice in between is one, as for every process.
    pub fn take(&self) -> Vec<i32> {
        self.drain();
        self.came.iter().filter(|(_, came)| came.swap(false, Ordering::Relaxed)).map(|(s, _)| *s).collect()
    }

    fn drain(&self) {
        while rustix::io::read(&self.pipe, &mut [0; 64]).is_ok_and(|n| n > 0) {}
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}

/// A time as the system calls take it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}
