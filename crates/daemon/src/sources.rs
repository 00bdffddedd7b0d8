//! All that can wake the daemon: signals, the kernel's events, the configuration's folders, steps of the clock, the socket,
//! other threads.

use crate::asks::{Asks, Message, say};
use crate::brain::Client;
use crate::input::KernelInput;
use crate::places::Places;
use crate::protocol::{Reply, Request};
use crate::server::Server;
use crate::uevent::Uevents;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc;
use wattwise_child::Signals;

/// A file that is being written is read when it has been left alone for this.
const RELOAD_NS: u64 = 300_000_000;

/// What has come since the last time.
#[derive(Default)]
pub(crate) struct Came {
    /// A signal that ends us.
    pub(crate) ends: bool,
    /// The configuration is to be read again, in so long.
    pub(crate) reload_in_ns: Option<u64>,
    /// For the engine.
    pub(crate) inputs: Vec<KernelInput>,
    /// From other threads.
    pub(crate) messages: Vec<Message>,
}

/// The descriptors behind it.
pub(crate) struct Sources {
    signals: Signals,
    woken: OwnedFd,
    messages: mpsc::Receiver<Message>,
    uevents: Option<Uevents>,
    config: ConfigWatch,
    steps: Option<OwnedFd>,
    server: Option<Server>,
}

impl Sources {
    /// Opens what there is; only signals and a pipe must be.
    pub(crate) fn open(places: &Places) -> io::Result<(Sources, Asks)> {
        let signals = Signals::catch()?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (sender, messages) = mpsc::channel();
        let uevents = Uevents::open()
            .map_err(|e| say(&format!("no events of the kernel ({e}): looks every half minute")))
            .ok();
        let config = ConfigWatch::new(&places.config);
        let (steps, server) = (clock_steps(), listen(places));
        let sources = Sources { signals, woken, messages, uevents, config, steps, server };
        Ok((sources, Asks::new(sender, wake)))
    }

    /// Waits for one of them, or for a time.
    pub(crate) fn wait(&self, wait_ns: u64) {
        let some = [
            self.uevents.as_ref().map(Uevents::fd),
            self.config.0.as_ref().map(AsFd::as_fd),
            self.steps.as_ref().map(AsFd::as_fd),
        ];
        let mut fds = vec![self.signals.fd(), self.woken.as_fd()];
        fds.extend(some.into_iter().flatten());
        fds.extend(self.server.iter().flat_map(Server::fds));
        wait_for(&fds, wait_ns);
    }

    /// What has come.
    pub(crate) fn take(&mut self) -> Came {
        let mut came = Came::default();
        for signal in self.signals.take() {
            match signal {
                libc::SIGHUP => came.reload_in_ns = Some(0),
                libc::SIGTERM | libc::SIGINT | libc::SIGQUIT => came.ends = true,
                _ => {}
            }
        }
        let cancelled =
            |fd: &OwnedFd| rustix::io::read(fd, &mut [0; 8]).is_err_and(|e| e == rustix::io::Errno::CANCELED);
        if self.steps.as_ref().is_some_and(cancelled) {
            arm(self.steps.as_ref());
            came.inputs.push(KernelInput::Supply);
        }
        came.inputs.extend(self.uevents.iter().flat_map(Uevents::take));
        if self.config.take() && came.reload_in_ns.is_none() {
            came.reload_in_ns = Some(RELOAD_NS);
        }
        while rustix::io::read(&self.woken, &mut [0; 64]).is_ok_and(|n| n > 0) {}
        came.messages.extend(self.messages.try_iter());
        came
    }

    /// Answers who has asked at the socket; who has gone.
    pub(crate) fn serve(&mut self, answer: &mut dyn FnMut(Request, Client) -> Reply) -> Vec<Client> {
        self.server.as_mut().map(|server| server.serve(answer)).unwrap_or_default()
    }
}

fn listen(places: &Places) -> Option<Server> {
    let path = places.socket.as_ref()?;
    match Server::listen(path) {
        Ok(server) => Some(server),
        Err(e) => {
            say(&format!("{}: {e}; 'wattwise profile' cannot speak with this daemon", path.display()));
            None
        }
    }
}

/// Waits for one of them, or for a time.
fn wait_for(fds: &[BorrowedFd<'_>], wait_ns: u64) {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let time = Timespec {
        tv_sec: i64::try_from(wait_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (wait_ns % 1_000_000_000) as _,
    };
    let time = (wait_ns < u64::MAX / 2).then_some(&time);
    _ = poll(&mut polled, time);
}

/// A timer that is cancelled when the clock is set, which a resume does as well: it wakes us at once.
fn clock_steps() -> Option<OwnedFd> {
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
    let fd = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).ok()?;
    arm(Some(&fd));
    Some(fd)
}

fn arm(fd: Option<&OwnedFd>) {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
    // Never reached: only its cancelling counts.
    let never = Timespec { tv_sec: i64::MAX / 2_000_000_000, tv_nsec: 0 };
    let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: never };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    _ = fd.map(|fd| timerfd_settime(fd, flags, &spec));
}

/// The folders of the configuration, watched.
struct ConfigWatch(Option<OwnedFd>);

impl ConfigWatch {
    fn new(files: &[PathBuf]) -> ConfigWatch {
        let Ok(fd) = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK) else {
            return ConfigWatch(None);
        };
        let flags = inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::MOVED_TO
            | inotify::WatchFlags::MOVED_FROM
            | inotify::WatchFlags::DELETE;
        for folder in files.iter().filter_map(|f| f.parent()) {
            _ = inotify::add_watch(&fd, folder, flags);
        }
        ConfigWatch(Some(fd))
    }

    /// Whether anything has changed there.
    fn take(&self) -> bool {
        let Some(fd) = &self.0 else { return false };
        let mut any = false;
        while rustix::io::read(fd, &mut [0; 4096]).is_ok_and(|n| n > 0) {
            any = true;
        }
        any
    }
}
