//! A command run to its end: signals passed on, its time and its use of the machine.
//!
//! Nothing wakes up on the way but what must: the end of the command (a pidfd), a signal for us (a pipe),
//! its output where it is wanted, and the meter's own pace where a counter could wrap.

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
pub use wattwise_child::Signals;
use wattwise_child::{RunningCommand, StartError, timespec};
use wattwise_control::powerctl::{Powerctl, PowerctlError, WantedProfile};

/// What to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandJob {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Whether its output is taken instead of shown.
    pub capture: bool,
    /// What each of its threads runs at, by the powerctl module.
    pub profile: Option<WantedProfile>,
    /// Whether what it leaves running is ended with it: the next run is to have the machine for itself.
    pub leave_nothing: bool,
    /// Whether it is killed when the thread that runs it ends, by whatever signal.
    pub dies_with_us: bool,
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct EndedCommand {
    /// How.
    pub status: ExitStatus,
    /// From its start to its end, s.
    pub wall_s: f64,
    /// CPU time in user mode, s, with all children that were waited for.
    pub user_s: f64,
    /// CPU time in the kernel, s.
    pub system_s: f64,
    /// Times that it gave the CPU up itself: it was then woken as often.
    pub voluntary_switches: u64,
    /// Times that it was preempted.
    pub involuntary_switches: u64,
    /// Largest resident memory of any one process, KiB.
    pub peak_memory_kib: u64,
    /// What it printed to either stream, where that was taken.
    pub output: String,
    /// A cpufreq governor or another driver took the speeds meanwhile: its profile's was not in force all the time.
    pub speeds_withdrawn: bool,
}

impl EndedCommand {
    /// The exit code as a shell gives it: 128 + the number of the signal that ended it.
    pub fn code(&self) -> u8 {
        wattwise_child::exit_code(self.status)
    }

    /// Why this end is no success.
    pub fn failure(&self) -> Option<String> {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("ended with exit code {code}")),
            (None, Some(signal)) => Some(format!("was ended by signal {signal}")),
            (None, None) => Some("ended in an unknown way".to_owned()),
        }
    }
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Nothing was asked for.
    #[error("no command; expected one after --")]
    Nothing,
    /// Its threads cannot have the profile asked for.
    #[error("--thread-profile: {0}")]
    Profile(#[from] PowerctlError),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system refused to wait for it or to tell its end.
    #[error("waiting for {program}: {error}")]
    Wait {
        /// Which.
        program: String,
        /// What the system said.
        error: io::Error,
    },
}

impl CommandError {
    /// The exit code that says so: a shell's where the command does not start.
    pub fn code(&self) -> u8 {
        match self {
            CommandError::Nothing => 2,
            CommandError::Profile(_) => 3,
            CommandError::Start(e) => e.code(),
            CommandError::Wait { .. } => 1,
        }
    }
}

/// Runs a command to its end. `beat` is called every `pace` while it runs. Signals that reach us are passed on to it
/// and all that it started.
pub fn run(
    job: &CommandJob,
    signals: &Signals,
    pace: Option<Duration>,
    beat: &mut dyn FnMut(),
) -> Result<EndedCommand, CommandError> {
    let (program, arguments) = job.command.split_first().ok_or(CommandError::Nothing)?;
    let start_error = |error: io::Error| StartError { program: program.clone(), error };
    let wait_error = |error: io::Error| CommandError::Wait { program: program.clone(), error };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut output = None;
    if job.capture {
        let (read, write) = io::pipe().map_err(start_error)?;
        command.stdout(write.try_clone().map_err(start_error)?).stderr(write).stdin(Stdio::null());
        rustix::io::ioctl_fionbio(&read, true).map_err(|e| start_error(e.into()))?;
        output = Some(read);
    }
    // A child begins with its parent's profile: ours, while it is started.
    let device = job.profile.is_some().then(Powerctl::open).transpose()?;
    let inherited = match (&device, &job.profile) {
        (Some(device), Some(profile)) => Some(device.set(&WantedProfile { inherit: true, ..*profile })?),
        _ => None,
    };
    let withdrawals = |d: &Powerctl| d.capabilities().map_or(0, |c| c.withdrawals);
    let speeds = job.profile.is_some_and(|p| p.khz.is_some() || p.hwp.is_some() || p.epp.is_some());
    let watched = device.as_ref().filter(|_| speeds);
    let before = watched.map(withdrawals);
    if job.dies_with_us {
        crate::bench::link::dies_with_us(&mut command);
    }
    let start = Instant::now();
    let child = RunningCommand::start(&mut command, !job.capture)?;
    drop(inherited);
    // The command holds the other ends of the pipe, and must not be outlived by ours.
    drop(command);
    let mut text = Vec::new();
    let mut beaten = start;
    loop {
        let mut fds = vec![
            PollFd::from_borrowed_fd(child.pidfd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN),
        ];
        if let Some(output) = &output {
            fds.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
        }
        // An error is an interruption: what is ready then shows in the next round.
        _ = poll(&mut fds, pace.map(|p| timespec(p.saturating_sub(beaten.elapsed()))).as_ref());
        let ready = |at: usize| fds[at].revents().contains(PollFlags::IN);
        let (ended, signalled) = (ready(0), ready(1));
        if output.as_mut().is_some_and(|o| !take(o, &mut text)) {
            output = None;
        }
        if ended {
            break;
        }
        if signalled {
            child.follow(signals);
        }
        if pace.is_some_and(|p| beaten.elapsed() >= p) {
            beaten = Instant::now();
            beat();
        }
    }
    let wall_s = start.elapsed().as_secs_f64();
    if job.leave_nothing {
        child.end_those_left();
    }
    let (status, usage) = child.reap().map_err(wait_error)?;
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok(EndedCommand {
        status,
        wall_s,
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        peak_memory_kib: usage.ru_maxrss as u64,
        output: String::from_utf8_lossy(&text).into_owned(),
        speeds_withdrawn: watched.map(withdrawals) != before,
    })
}

/// Most output that is kept: its end is what tools print their figures in.
const MOST_OUTPUT: usize = 4 << 20;

/// Takes what there is to read; whether more may come.
fn take(output: &mut io::PipeReader, text: &mut Vec<u8>) -> bool {
    let mut page = [0; 16 << 10];
    loop {
        match output.read(&mut page) {
            Ok(0) => return false,
            Ok(n) => text.extend_from_slice(&page[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
        }
        if text.len() > MOST_OUTPUT {
            text.drain(..text.len() - MOST_OUTPUT / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(script: &str, capture: bool) -> CommandJob {
        CommandJob {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            capture,
            ..CommandJob::default()
        }
    }

    fn ran(script: &str, capture: bool) -> EndedCommand {
        let signals = Signals::catch().expect("signals");
        run(&job(script, capture), &signals, None, &mut || {}).expect("runs")
    }

    #[test]
    fn the_end_is_told_as_a_shell_tells_it() {
        assert_eq!(ran("exit 7", false).code(), 7);
        let killed = ran("kill -KILL $$", false);
        assert_eq!((killed.code(), killed.failure().as_deref()), (137, Some("was ended by signal 9")));
        assert!(ran("true", false).failure().is_none());
    }

    #[test]
    fn output_is_taken_whole_from_both_streams() {
        let ended = ran("seq 50000; echo last >&2", true);
        assert_eq!(ended.output.lines().count(), 50_001);
        assert!(ended.output.ends_with("last\n"));
    }

    #[test]
    fn a_command_that_leaves_a_child_with_its_output_is_not_waited_for() {
        let start = Instant::now();
        let ended = ran("sleep 20 & echo done", true);
        assert_eq!(ended.output, "done\n");
        assert!(start.elapsed() < Duration::from_secs(15), "waited for the grandchild");
    }

    #[test]
    fn a_meter_is_followed_however_much_is_printed() {
        let signals = Signals::catch().expect("signals");
        let mut beats = 0;
        let script = "i=0; while [ $i -lt 300 ]; do echo $i; sleep 0.001; i=$((i+1)); done";
        run(&job(script, true), &signals, Some(Duration::from_millis(20)), &mut || beats += 1).expect("runs");
        assert!(beats >= 5, "{beats} beats in 300 ms and more");
    }

    #[test]
    fn cpu_time_is_that_of_the_whole_family() {
        let ended = ran("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; true", false);
        assert!(ended.user_s + ended.system_s > 0.01, "{ended:?}");
        assert!(ended.user_s + ended.system_s <= ended.wall_s + 0.02, "{ended:?}");
    }

    #[test]
    fn what_cannot_start_says_so() {
        let signals = Signals::catch().expect("signals");
        let job = CommandJob { command: vec!["/no/such/program".to_owned()], ..CommandJob::default() };
        let error = run(&job, &signals, None, &mut || {}).expect_err("cannot start");
        assert!(error.to_string().starts_with("/no/such/program: No such file"), "{error}");
    }
}
