//! Recordings of the scheduler: import and summarise.
//!
//! ```text
//! Source -> input (unpacks, reads by position) -> perf_data | trace_dat | ftrace_text | perfetto
//!        -> events, in order of time, none kept -> timeline -> lift    -> Workload
//!                                                           -> summary -> Summary
//! ```
//!
//! What only the whole of a recording tells (see `plan.rs`) makes a plan, by which it is read once more.
//!
//! Formats are told by their content, never by a file's name. Recordings come from strangers: whatever
//! the bytes say, reading ends, in memory bounded by the file and the limits here, and with an error of
//! one line or with a result whose warnings say what was left out.

mod bounds;
mod clock;
mod error;
pub mod events;
pub mod lacks;
mod lift;
pub mod marks;
mod notes;
mod plan;
pub mod read;
#[cfg(feature = "record")]
pub mod record;
mod summary;
mod timeline;

pub use crate::error::TraceError;
pub use crate::lacks::Lack;
pub use crate::lift::DEFAULT_KHZ;
pub use crate::notes::Notes;
pub use crate::summary::{CpuSummary, Lengths, ProgramSummary, Summary, TaskSummary, time};

use crate::events::{Comms, Event, Read, Sink};
use crate::plan::{Away, Plan};
use crate::read::Format;
use crate::read::input::Input;
use crate::timeline::Timeline;
use std::path::PathBuf;
use std::sync::Arc;
use wattwise_figure::Budget;
use wattwise_model::workload::Workload;

/// Where a recording is.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a file (or a pipe, which is then read to its end first).
    Path(PathBuf),
    /// In memory.
    Bytes {
        /// For reports and errors.
        name: String,
        /// The recording.
        data: Arc<[u8]>,
    },
    /// In the binary itself: the bundled recordings.
    Static {
        /// For reports and errors.
        name: String,
        /// The recording.
        data: &'static [u8],
    },
}

/// How to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The workload's name; by default the source's.
    pub name: Option<String>,
    /// Clock of the recording machine where no cpu_frequency event tells it, in kHz. By default what the
    /// recorder measured, else what is known of the recorded processor, else [`DEFAULT_KHZ`] with a warning.
    pub khz: Option<u32>,
    /// Share of run time that no clock shortens (memory), 0 to 1. Most recordings do not tell it.
    pub memory_share: Option<f64>,
    /// The tasks that are the work, by name or by process or thread id, with their descendants. By default
    /// the recorded command, else all programs.
    pub foreground: Vec<String>,
    /// Whether the other programs are left out: their tasks get no program. Kernel threads stay.
    pub only_foreground: bool,
    /// Every timer rings at its recorded moment: for a replay whose work takes as long as recorded, so
    /// that what follows what stays as it was. By default a sleep *for* a time begins when its task gets to it.
    pub keep_moments: bool,
    /// What the time is charged with that the machine was suspended, in W. By default it is in no account.
    pub suspend_w: Option<f64>,
    /// Threads to leave out, such as the recorder's own.
    pub exclude_tids: Vec<u32>,
    /// Names of tasks to leave out; a task counts from when it takes another name.
    pub exclude_comms: Vec<String>,
    /// What the recording may take; a `.zst` is unpacked into a nameless temporary file beyond 32 MiB.
    pub budget: Budget,
}

/// Reads a recording into a workload.
///
/// # Errors
/// When the source cannot be read, is of no known format, too damaged, or without a single switch.
/// Lesser damage is told in [`wattwise_model::workload::Recorded::warnings`].
pub fn import(source: Source, options: &ImportOptions) -> Result<Workload, TraceError> {
    let input = Input::open(&source, &options.budget)?;
    let (workload, strangers) = lift(&input, options, Vec::new())?;
    if !options.only_foreground || !strangers.contains(&true) {
        return Ok(workload);
    }
    // Only at the end is it known who is a stranger, and only from the start can one be left out. The
    // tasks have the same numbers again.
    let (mut without, _) = lift(&input, options, strangers)?;
    if let (Some(to), Some(from)) = (&mut without.recorded, workload.recorded) {
        to.strangers = from.strangers;
    }
    Ok(without)
}

/// The workload, and which of its tasks are strangers'.
fn lift(
    input: &Input,
    options: &ImportOptions,
    left_out: Vec<bool>,
) -> Result<(Workload, Vec<bool>), TraceError> {
    let (read, comms, lifter) = read(input, || crate::lift::Lifter::new(options, left_out.clone()))?;
    if lifter.switches() == 0 {
        return Err(TraceError::NoSwitches { name: input.name.clone(), events: read.events });
    }
    let name = options.name.as_deref().unwrap_or(&input.name);
    lifter.finish(&comms, read, name)
}

/// Counts what a recording holds.
///
/// # Errors
/// As [`import`].
pub fn summarise(source: Source, options: &ImportOptions) -> Result<Summary, TraceError> {
    let input = Input::open(&source, &options.budget)?;
    let (read, comms, counter) = read(&input, crate::summary::Counter::default)?;
    if counter.switches() == 0 {
        return Err(TraceError::NoSwitches { name: input.name, events: read.events });
    }
    Ok(counter.finish(&comms, read, &input.name))
}

/// Streams a recording's events, for uses of one's own.
///
/// # Errors
/// When the source cannot be read, is of no known format or too damaged.
pub fn visit(source: Source, options: &ImportOptions, sink: &mut impl Sink) -> Result<Read, TraceError> {
    struct Nobody;
    impl Sink for Nobody {
        fn event(&mut self, _: &Event, _: &Comms) {}
    }
    let input = Input::open(&source, &options.budget)?;
    let (plan, read, ..) = planned(&input, || Nobody)?;
    let mut timeline = Timeline::new(&plan, sink);
    read_by(&input, &plan, &mut Comms::default(), &mut timeline)?;
    Ok(read)
}

/// Reads by as many plans as it takes. What the last reading made counts.
fn read<S: Sink>(input: &Input, make: impl Fn() -> S) -> Result<(Read, Comms, S), TraceError> {
    let (_, read, comms, sink) = planned(input, make)?;
    Ok((read, comms, sink))
}

/// A file has so many ring buffers at most that are looked at, and each may have to be sorted and cut.
const MOST_READINGS: usize = 32;

fn planned<S: Sink>(input: &Input, make: impl Fn() -> S) -> Result<(Plan, Read, Comms, S), TraceError> {
    let mut plan = Plan::default();
    let mut readings = 0;
    loop {
        readings += 1;
        let (mut comms, mut sink) = (Comms::default(), make());
        let mut timeline = Timeline::new(&plan, &mut sink);
        let mut read = read_by(input, &plan, &mut comms, &mut timeline)?;
        let span = timeline.span();
        let next = timeline.next(&read.found, read.cpus);
        if next != plan && readings < MOST_READINGS {
            plan = next;
            continue;
        }
        plan.is_enough(span).map_err(|what| TraceError::Unusable {
            name: input.name.clone(),
            what,
            remedy: "take the recording of all CPUs (`-a`; tracefs's `trace`, not per_cpu/), whole, or record again with larger buffers \
                     (`trace-cmd record -b KB`, buffer_size_kb)".into(),
        })?;
        let said = input.warnings.iter().cloned().chain(plan.warnings(span));
        read.warnings.splice(0..0, said.collect::<Vec<_>>());
        read.suspended_ns = plan.away(Away::Suspended).0;
        if !plan.cpus.is_empty() {
            read.cpus = None;
        }
        return Ok((plan, read, comms, sink));
    }
}

/// Recognises the format and reads it once.
fn read_by<S: Sink>(input: &Input, plan: &Plan, comms: &mut Comms, sink: &mut S) -> Result<Read, TraceError> {
    let start = input.section(0, input.len().min(crate::read::START as u64)).unwrap_or_default();
    match crate::read::format(&start) {
        Some(Format::PerfData) => crate::read::perf_data::read(input, plan, comms, sink),
        Some(Format::TraceDat) => crate::read::trace_dat::read(input, plan, comms, sink),
        Some(Format::FtraceText) => crate::read::ftrace_text::read(input, 0, plan, comms, sink),
        Some(Format::Perfetto) => crate::read::perfetto::read(input, comms, sink),
        None => Err(TraceError::unknown(&input.name, &start)),
    }
}
