//! `wattwise record`: the scheduler's tracepoints of the whole machine while a command runs.
//!
//! ```text
//! kernel: one ring a CPU, all events of that CPU in it
//!    |  woken when a quarter is full, or ten times a second
//!    v
//! drain: copies whole stretches of a ring to the file, unread, and marks the end of each round
//!    v
//! perf.data: header | ids | events' attributes | data ... | features (file.rs)
//! ```
//!
//! The recorder looks at no event while the command runs, unless somebody watches and wants them counted: a stretch of ring goes
//! to the file by one write. A *round* is one pass over all rings; whatever is read later is not older than the round
//! before, which is what lets readers sort with little memory.
//!
//! Where the processor counts cycles, instructions and cache misses, these are in one group with
//! sched_switch, so that each switch's sample tells what the CPU has counted by then (as
//! `perf record -e '{sched:sched_switch,cycles,instructions,cache-misses}:S' -a` would have it). Not verified on hardware: no
//! machine that this was built on has such counters. What reads them is tested with files written for it.
//!
//! What no event tells goes into the file as notes (`crate::notes`): which task is the command, how it
//! ended, and the clock.
//!
//! Nothing on the machine is changed. Where tracefs is not mounted, a private instance of it is opened
//! that no path leads to and that goes when the recorder ends.

mod clock;
mod events;
mod grant;
mod perf_writer;
mod ring;

use crate::Notes;
use crate::record::clock::ClockLooks;
use crate::record::events::{Opened, Tracefs};
use crate::record::perf_writer::PerfWriter;
use crate::record::ring::Ring;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use wattwise_child::{RunningCommand, Signals, StartError, timespec};

/// How long a ring may go unread, so that little is in flight when the command ends.
const ROUND: Duration = Duration::from_millis(100);
/// Size of each CPU's ring: a busy CPU writes some 10 MB of scheduler events a second.
const RING_BYTES: usize = 8 << 20;

/// What to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The recording; unpacked perf.data, or packed when its name ends in `.zst`.
    pub output: PathBuf,
    /// The command and its arguments; empty: record for `duration`.
    pub command: Vec<String>,
    /// How long at most; without a command it must be given.
    pub duration: Option<Duration>,
    /// Whether to record timer starts too, which tell absolute from relative sleeps.
    pub timers: bool,
    /// Size of each CPU's ring in bytes, a power of two.
    pub ring_bytes: usize,
}

impl RecordOptions {
    /// The usual recording of a command.
    pub fn new(output: &Path, command: Vec<String>) -> RecordOptions {
        RecordOptions {
            output: output.to_owned(),
            command,
            duration: None,
            timers: false,
            ring_bytes: RING_BYTES,
        }
    }

    fn is_packed(&self) -> bool {
        self.output.extension().is_some_and(|e| e == "zst")
    }
}

/// What was recorded.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordReport {
    /// Size of the recording's event data in bytes.
    pub bytes: u64,
    /// Events that did not fit into the rings.
    pub lost: u64,
    /// Events written, lost ones not included.
    pub events: u64,
    /// CPUs recorded.
    pub cpus: usize,
    /// How long, in seconds.
    pub duration_s: f64,
    /// Exit code of the command; 128 + the signal's number where one ended it.
    pub exit_code: Option<i32>,
}

impl RecordReport {
    /// Exit code of the command; 128 + the signal's number where one ended it.
    pub fn exit_code(&self) -> Option<u8> {
        self.exit_code.and_then(|code| u8::try_from(code).ok())
    }
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// This machine or user cannot; says what would be the narrowest remedy.
    #[error("recording is not possible here: {what}; {remedy}")]
    NotPossible {
        /// What failed.
        what: String,
        /// What would help.
        remedy: String,
    },
    /// The command could not be started.
    #[error(transparent)]
    Command(#[from] StartError),
    /// The recording cannot be written.
    #[error("{path}: {error}; expected a file that can be written", path = path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's word.
        error: io::Error,
    },
    /// Writing the recording failed on the way.
    #[error("{path}: {error}; what was recorded until then can be read", path = path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's word.
        error: io::Error,
    },
    /// Something else of the system failed.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's word.
        error: io::Error,
    },
}

impl RecordError {
    /// Whether the machine, not the caller, is to blame (exit code 3).
    pub fn is_impossible(&self) -> bool {
        matches!(self, RecordError::NotPossible { .. })
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> RecordError {
    move |error| RecordError::System { what, error }
}

/// How far a recording is.
#[derive(Clone, Copy, Debug)]
pub struct RecordingProgress {
    /// Since the events were enabled.
    pub elapsed: Duration,
    /// Events written so far.
    pub events: u64,
}

/// Records while a command runs.
///
/// # Errors
/// When this machine does not permit it, the command cannot be started, or the file cannot be
/// written. A file that was begun stays and can be read as far as it goes.
pub fn run(options: &RecordOptions) -> Result<RecordReport, RecordError> {
    run_watched(options, None)
}

/// [`run`], with somebody who is told after each round how far it is. Only then are the events counted while the command runs.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    options: &RecordOptions,
    tell: Option<&dyn Fn(RecordingProgress)>,
) -> Result<RecordReport, RecordError> {
    let create = |error| RecordError::Create { path: options.output.clone(), error };
    let output = |error| RecordError::Output { path: options.output.clone(), error };
    let tracefs = Tracefs::find()?;
    let cpus = crate::record::events::online_cpus()?;
    let kinds = tracefs.kinds(options.timers)?;
    let opened = Opened::new(&kinds, &cpus, options.ring_bytes)?;
    let mut rings = opened.map(options.ring_bytes)?;
    // A command that cannot be run leaves no file behind.
    if let Some(program) = options.command.first() {
        is_program(program).map_err(|kind| StartError { program: program.clone(), error: kind.into() })?;
    }
    let mut notes = Notes { cpu_khz: clock::scaling(&cpus), ..Notes::default() };
    let mut writer =
        PerfWriter::create(&options.output, &kinds, &opened, &tracefs, &cpus, &notes).map_err(create)?;
    if tell.is_some() {
        writer.count_as_it_goes();
    }
    if proc_is_ours() {
        writer.names_of_tasks().map_err(output)?;
    }
    let signals = Signals::catch().map_err(system("signals"))?;
    let mut looks = ClockLooks::default();
    let start = Instant::now();
    opened.enable(true).map_err(system("enabling the events"))?;
    let mut child = spawn(&options.command)?;
    notes.command = child.as_ref().map(RunningCommand::id);
    writer.note(&notes).map_err(output)?;
    let status = drain(&mut rings, &mut writer, &mut child, (options, tell), &signals, start, &mut looks);
    opened.enable(false).map_err(system("disabling the events"))?;
    let (status, stopped) = status?;
    let exit_code = status.map(|s| i32::from(wattwise_child::exit_code(s)));
    looks.look();
    (notes.exit_code, notes.stopped, notes.khz) = (exit_code, stopped, looks.khz());
    for ring in &mut rings {
        writer.stretch(ring).map_err(output)?;
    }
    writer.end_of_round().map_err(output)?;
    let duration_s = start.elapsed().as_secs_f64();
    let counts = writer.finish(&notes, options.is_packed()).map_err(output)?;
    Ok(RecordReport {
        bytes: counts.bytes,
        lost: counts.lost,
        events: counts.events,
        cpus: cpus.len(),
        duration_s,
        exit_code,
    })
}

/// The clock of this machine at work, in kHz, by a timed loop of a hundredth of a second; `None` where there is no loop
/// for its processor.
pub fn clock_khz() -> Option<u32> {
    let mut looks = ClockLooks::default();
    (0..500).for_each(|_| looks.look());
    looks.khz()
}

/// The name of this machine's processor, as recordings made here have it.
pub fn cpu_name() -> Option<String> {
    Some(crate::record::perf_writer::cpu_name()).filter(|name| !name.is_empty())
}

/// Whether /proc shows the tasks of this PID namespace: its numbers are those that perf has then. `unshare --pid` alone leaves the
/// outer one's mounted.
fn proc_is_ours() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.and_then(|own| own.to_str()?.parse().ok()) == Some(std::process::id())
}

/// Whether a path or a name in `PATH` can be run; else the error that starting it would give.
fn is_program(name: &str) -> Result<(), io::ErrorKind> {
    let runs = |path: &Path| match path.is_file() {
        true => {
            rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|_| io::ErrorKind::PermissionDenied)
        }
        false if path.exists() => Err(io::ErrorKind::PermissionDenied),
        false => Err(io::ErrorKind::NotFound),
    };
    if name.contains('/') {
        return runs(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Vec<_> = std::env::split_paths(&path).map(|p| runs(&p.join(name))).collect();
    let denied = found.iter().copied().find(|r| *r != Err(io::ErrorKind::NotFound));
    found.iter().copied().find(Result::is_ok).or(denied).unwrap_or(Err(io::ErrorKind::NotFound))
}

fn spawn(command: &[String]) -> Result<Option<RunningCommand>, RecordError> {
    let [program, args @ ..] = command else { return Ok(None) };
    Ok(Some(RunningCommand::start(Command::new(program).args(args), true)?))
}

/// Copies the rings to the file until the command ends, the time is over, or a signal comes. Returns the command's
/// status, and whether it was stopped.
fn drain(
    rings: &mut [Ring],
    writer: &mut PerfWriter,
    child: &mut Option<RunningCommand>,
    (options, tell): (&RecordOptions, Option<&dyn Fn(RecordingProgress)>),
    signals: &Signals,
    start: Instant,
    looks: &mut ClockLooks,
) -> Result<(Option<ExitStatus>, bool), RecordError> {
    let mut stopped = false;
    loop {
        let left = options.duration.map(|d| d.saturating_sub(start.elapsed()));
        let wait = left.unwrap_or(ROUND).min(ROUND);
        {
            let mut fds: Vec<PollFd<'_>> =
                rings.iter().map(|r| PollFd::from_borrowed_fd(r.fd(), PollFlags::IN)).collect();
            fds.push(PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN));
            if let Some(c) = child.as_ref() {
                fds.push(PollFd::from_borrowed_fd(c.pidfd(), PollFlags::IN));
            }
            match poll(&mut fds, Some(&timespec(wait))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(system("poll")(e.into())),
            }
        }
        for ring in rings.iter_mut() {
            writer
                .stretch(ring)
                .map_err(|error| RecordError::Output { path: options.output.clone(), error })?;
        }
        writer.end_of_round().map_err(|error| RecordError::Output { path: options.output.clone(), error })?;
        looks.look();
        if let Some(tell) = tell {
            tell(RecordingProgress { elapsed: start.elapsed(), events: writer.seen() });
        }
        let over = options.duration.is_some_and(|d| start.elapsed() >= d);
        let signalled = signals.caught().is_some();
        let Some(running) = child.as_ref() else {
            match signalled || over {
                true => return Ok((None, false)),
                false => continue,
            }
        };
        running.follow(signals);
        if has_ended(running) {
            let ended = child.take().map(RunningCommand::reap).transpose();
            let status = ended.map_err(system("waiting for the command"))?.map(|(status, _)| status);
            let interrupted = status.and_then(wattwise_child::interrupted).is_some();
            return Ok((status, stopped || signalled || interrupted));
        }
        // Once: a command that ignores it is then waited for.
        if over && !stopped {
            stopped = true;
            running.signal(rustix::process::Signal::TERM);
        }
    }
}

fn has_ended(running: &RunningCommand) -> bool {
    poll(&mut [PollFd::from_borrowed_fd(running.pidfd(), PollFlags::IN)], Some(&timespec(Duration::ZERO)))
        .is_ok_and(|ready| ready > 0)
}

/// Takes ownership of a descriptor that a raw system call returned.
fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor to us and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
