//! A command of the user's, run as a shell runs a job.
//!
//! 1. It has a process group of its own, so that a signal reaches all that it has started.
//! 2. Where we have the terminal, its group gets it, and we take it back: what is typed (Ctrl-C, Ctrl-Z) reaches the
//!    command alone. When it is stopped, so are we, and the shell has its prompt; when we go on, it does.
//! 3. Signals that reach us are passed on to its group, each time that they come.
//! 4. Its exit code is the shell's: 127 not found, 126 not to be run, 128 + n ended by signal n.

mod signals;

pub use signals::{Signals, timespec};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, test_kill_process_group,
    waitid,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long those whom a command left behind have to end by themselves.
const GRACE: Duration = Duration::from_millis(500);

/// The exit code of a command, as a shell gives it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}

/// The signal from the keyboard by which a command was ended, directly or as a shell between us tells it.
pub fn interrupted(status: ExitStatus) -> Option<i32> {
    [libc::SIGINT, libc::SIGQUIT].into_iter().find(|s| exit_code(status) == 128 + *s as u8)
}

/// The system's own words; the standard library has others for what it calls kinds.
fn said(error: &io::Error) -> String {
    let known = match error.kind() {
        io::ErrorKind::NotFound => Some(libc::ENOENT),
        io::ErrorKind::PermissionDenied => Some(libc::EACCES),
        _ => None,
    };
    match error.raw_os_error().or(known) {
        Some(errno) => io::Error::from_raw_os_error(errno).to_string(),
        None => error.to_string(),
    }
}

/// A command that does not start.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {}; expected a command that can be run", said(error))]
pub struct StartError {
    /// Which.
    pub program: String,
    /// What the system said.
    pub error: io::Error,
}

impl StartError {
    /// The exit code that a shell gives.
    pub fn code(&self) -> u8 {
        if self.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }
}

/// A command that runs.
pub struct RunningCommand {
    pid: Pid,
    pidfd: OwnedFd,
    terminal: Terminal,
}

impl RunningCommand {
    /// Starts it. One that is to have our standard input gets our terminal as well.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(command: &mut Command, with_terminal: bool) -> Result<RunningCommand, StartError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: io::Error| StartError { program: program.clone(), error };
        let child = command.process_group(0).spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let terminal = Terminal { ours: own_group(), given: with_terminal };
        terminal.give(pid);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| failed(e.into()))?;
        Ok(RunningCommand { pid, pidfd, terminal })
    }

    /// Its process number, which is its group's too.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_pid() as u32
    }

    /// Readable when it has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Passes on the signals that have come, and stops with it. To be called when [`Signals::fd`] is readable.
    pub fn follow(&self, signals: &Signals) {
        for signal in signals.take().into_iter().filter_map(Signal::from_named_raw) {
            self.signal(signal);
        }
        let stopped =
            waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        if matches!(stopped, Ok(Some(_))) && self.terminal.has(self.pid) {
            self.terminal.take_back(self.pid);
            // The shell sees our whole job stopped. We come back here when it goes on, in front or behind.
            _ = self.terminal.ours.map(|ours| kill_process_group(ours, Signal::TSTP));
            self.terminal.give(self.pid);
            self.signal(Signal::CONT);
        } else if self.terminal.is_ours() {
            // Sent to the background once and called back.
            self.terminal.give(self.pid);
        }
    }

    /// Waits for its end, passing on the signals that come meanwhile.
    ///
    /// # Errors
    /// What the system says.
    pub fn until_it_ends(&self, signals: &Signals) -> io::Result<()> {
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.pidfd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if fds[0].revents().contains(PollFlags::IN) {
                return Ok(());
            }
            self.follow(signals);
        }
    }

    /// Sends a signal to all of it. It may have ended: then its end is seen next.
    pub fn signal(&self, signal: Signal) {
        _ = kill_process_group(self.pid, signal);
    }

    /// Ends what it left running; not what has a session of its own. To be called before [`RunningCommand::reap`], while
    /// nobody else can have its group's number.
    pub fn end_those_left(&self) {
        let begun = Instant::now();
        let others = || group_is_alive(self.pid);
        for signal in [Signal::TERM, Signal::KILL] {
            if !others() {
                return;
            }
            self.signal(signal);
            self.signal(Signal::CONT);
            while begun.elapsed() < GRACE && others() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Its end, waited for, with its use of the machine, which `std` does not tell.
    ///
    /// # Errors
    /// What the system says.
    pub fn reap(self) -> io::Result<(ExitStatus, libc::rusage)> {
        let mut status = 0;
        // SAFETY: rusage is plain numbers, for which all bits zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: both places are ours, live and large enough; the pid is that of a child nobody has waited for.
            let got = unsafe { libc::wait4(self.pid.as_raw_pid(), &mut status, 0, &mut usage) };
            if got >= 0 {
                return Ok((ExitStatus::from_raw(status), usage));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.terminal.take_back(self.pid);
    }
}

/// What the kernel says of a process.
pub struct ProcessStat {
    /// Its group.
    pub group: i32,
    /// When it started, in ticks since the boot: with its number, this process and no later one.
    pub started: u64,
}

/// A process that lives; none where it has ended, be it only to be waited for.
pub fn stat(pid: u32) -> Option<ProcessStat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may hold anything. After it: state, parent, group; the start is the 22nd of all.
    let after = text.iter().rposition(|b| *b == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace().collect();
    let alive = !matches!(*fields.first()?, "Z" | "X");
    let stat = ProcessStat { group: fields.get(2)?.parse().ok()?, started: fields.get(19)?.parse().ok()? };
    alive.then_some(stat)
}

/// Whether a group has members beside those that have ended and wait to be asked how.
fn group_is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    let pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(stat).any(|s| s.group == group.as_raw_pid())
}

/// Our terminal, and whether the command is to have it.
struct Terminal {
    /// Our group; none where its leader is outside of our PID namespace, or the kernel itself.
    ours: Option<Pid>,
    given: bool,
}

/// `rustix` takes a group for a number above 0, which in a container it need not be.
fn own_group() -> Option<Pid> {
    // SAFETY: no argument, no memory; it cannot fail.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

impl Terminal {
    fn holder(&self) -> Option<Pid> {
        self.given.then(|| tcgetpgrp(io::stdin()).ok()).flatten()
    }

    fn is_ours(&self) -> bool {
        self.ours.is_some() && self.holder() == self.ours
    }

    fn has(&self, group: Pid) -> bool {
        self.holder() == Some(group)
    }

    /// Where it is ours to give. A command that has read or written before it had the terminal was stopped for that.
    fn give(&self, group: Pid) {
        if self.is_ours() {
            set_foreground(group);
            _ = kill_process_group(group, Signal::CONT);
        }
    }

    /// From the command, or from a group of its making that has ended; a shell may have given it to another job.
    fn take_back(&self, group: Pid) {
        let gone = |holder: Pid| test_kill_process_group(holder).is_err();
        if let Some(ours) = self.ours
            && self.holder().is_some_and(|holder| holder == group || gone(holder))
        {
            set_foreground(ours);
        }
    }
}

/// Gives the terminal to a group. Who does that from the background is stopped for it, unless the signal is blocked.
fn set_foreground(group: Pid) {
    // SAFETY: both sets are ours and are filled before they are read; the old one comes back before we return.
    unsafe {
        let (mut block, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut block);
        libc::sigaddset(&mut block, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &block, &mut before);
        // The terminal may have gone.
        _ = tcsetpgrp(io::stdin(), group);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn started(script: &str) -> RunningCommand {
        RunningCommand::start(Command::new("sh").args(["-c", script]), false).expect("starts")
    }

    fn ended(running: &RunningCommand) -> bool {
        poll(
            &mut [PollFd::from_borrowed_fd(running.pidfd(), PollFlags::IN)],
            Some(&timespec(Duration::from_secs(10))),
        )
        .is_ok_and(|n| n > 0)
    }

    #[test]
    fn codes_are_a_shell_s() {
        let code = |script: &str| exit_code(started(script).reap().expect("ends").0);
        assert_eq!((code("exit 7"), code("kill -KILL $$")), (7, 137));
        let start =
            |program: &str| RunningCommand::start(&mut Command::new(program), false).err().map(|e| e.code());
        assert_eq!(start("/no/such/program"), Some(127));
        assert_eq!((start("/etc/passwd"), start("/etc")), (Some(126), Some(126)));
    }

    #[test]
    fn a_signal_is_passed_on_each_time_and_to_all() {
        let signals = Signals::catch().expect("signals");
        let folder = std::env::temp_dir().join(format!("wattwise-child-{}", std::process::id()));
        let count = || std::fs::read_to_string(&folder).unwrap_or_default().lines().count();
        // The inner shell has to see them as well; both end at the third.
        let inner = format!(
            "n=0; trap 'n=$((n+1)); echo >> {0}; [ $n = 3 ] && exit 3' TERM; echo >> {0}; while :; do sleep 0.01; done",
            folder.display()
        );
        let script = format!(
            "trap : TERM; sh -c \"{}\" & c=$!; while kill -0 $c 2>&-; do wait $c; done; exit 5",
            inner.replace('$', "\\$")
        );
        let running = started(&script);
        let sleep = Some(timespec(Duration::from_millis(20)));
        for seen in 1..=4 {
            let until = Instant::now() + Duration::from_secs(20);
            while count() < seen && Instant::now() < until {
                // Children of other tests wake us as well.
                _ = poll(&mut [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)], sleep.as_ref());
                running.follow(&signals);
            }
            if seen < 4 {
                _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
            }
        }
        assert!(ended(&running));
        assert_eq!((exit_code(running.reap().expect("ends").0), count()), (5, 4));
        _ = std::fs::remove_file(folder);
    }

    #[test]
    fn those_left_are_ended_even_if_they_do_not_want_to() {
        let running = started("(trap '' TERM; exec sleep 60) & sleep 60 & exit 0");
        assert!(ended(&running) && group_is_alive(running.pid));
        let begun = Instant::now();
        running.end_those_left();
        let until = Instant::now() + Duration::from_secs(5);
        while group_is_alive(running.pid) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!group_is_alive(running.pid) && begun.elapsed() < Duration::from_secs(10));
        assert_eq!(exit_code(running.reap().expect("ends").0), 0);
    }

    /// The standard library calls the first "entity not found".
    #[test]
    fn a_command_that_is_not_there_is_told_in_the_systems_words() {
        let told = |error: io::Error| StartError { program: "x".into(), error }.to_string();
        let wanted = "x: No such file or directory (os error 2); expected a command that can be run";
        assert_eq!(told(io::ErrorKind::NotFound.into()), wanted);
        assert_eq!(told(io::Error::from_raw_os_error(libc::ENOENT)), wanted);
    }
}
