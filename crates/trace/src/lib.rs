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
mod options;
mod plan;
pub mod read;
#[cfg(feature = "record")]
pub mod record;
mod source;
mod summary;
mod take;
mod timeline;

pub use crate::error::TraceError;
pub use crate::lacks::Lack;
pub use crate::lift::clocks::DEFAULT_KHZ;
pub use crate::notes::Notes;
pub use crate::options::ImportOptions;
pub use crate::source::Source;
pub use crate::summary::{CpuSummary, Lengths, ProgramSummary, Summary, TaskSummary, time};

use crate::events::{Comms, Event, Sink, TraceRead};
use crate::plan::{Away, ReadPlan};
use crate::read::input::TraceInput;
use crate::timeline::Timeline;
use wattwise_model::workload::Workload;

/// Reads a recording into a workload.
///
/// # Errors
/// When the source cannot be read, is of no known format, too damaged, or without a single switch.
/// Lesser damage is told in [`wattwise_model::workload::Recorded::warnings`].
pub fn import(source: Source, options: &ImportOptions) -> Result<Workload, TraceError> {
    let input = TraceInput::open(&source, &options.budget, crate::read::is_known)?;
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
    input: &TraceInput,
    options: &ImportOptions,
    left_out: Vec<bool>,
) -> Result<(Workload, Vec<bool>), TraceError> {
    let (read, comms, lifter) = read(input, || crate::lift::Lifter::new(options, left_out.clone()))?;
    if let Some(over) = lifter.over() {
        return Err(TraceError::OverBudget { name: input.name.clone(), over });
    }
    has_work(input, &read, lifter.switches())?;
    let name = options.name.as_deref().unwrap_or(&input.name);
    lifter.finish(&comms, read, name)
}

/// Counts what a recording holds.
///
/// # Errors
/// As [`import`].
pub fn summarise(source: Source, options: &ImportOptions) -> Result<Summary, TraceError> {
    let input = TraceInput::open(&source, &options.budget, crate::read::is_known)?;
    let (read, comms, counter) = read(&input, crate::summary::SummaryCounter::default)?;
    has_work(&input, &read, counter.switches())?;
    Ok(counter.finish(&comms, read, &input.name))
}

/// Refuses a recording without switches, or one that takes no time.
fn has_work(input: &TraceInput, read: &TraceRead, switches: u64) -> Result<(), TraceError> {
    let name = || input.name.clone();
    match (switches, read.span_ns) {
        (0, _) => Err(TraceError::NoSwitches { name: name(), events: read.events }),
        (_, 0) => Err(TraceError::Unusable {
            name: name(),
            what: "expected a recording of more than an instant; all its events are of one moment".into(),
            remedy: "record for longer: `wattwise record -o FILE --duration 10s`".into(),
        }),
        _ => Ok(()),
    }
}

/// Streams a recording's events, for uses of one's own.
///
/// # Errors
/// When the source cannot be read, is of no known format or too damaged.
pub fn visit(source: Source, options: &ImportOptions, sink: &mut impl Sink) -> Result<TraceRead, TraceError> {
    struct Nobody;
    impl Sink for Nobody {
        fn event(&mut self, _: &Event, _: &Comms) {}
    }
    let input = TraceInput::open(&source, &options.budget, crate::read::is_known)?;
    let (plan, read, ..) = planned(&input, || Nobody)?;
    let mut timeline = Timeline::new(&plan, sink);
    crate::read::whole(&input, &plan, &mut Comms::default(), &mut timeline)?;
    Ok(read)
}

/// Reads by as many plans as it takes. What the last reading made counts.
fn read<S: Sink>(input: &TraceInput, make: impl Fn() -> S) -> Result<(TraceRead, Comms, S), TraceError> {
    let (_, read, comms, sink) = planned(input, make)?;
    Ok((read, comms, sink))
}

/// A file has so many ring buffers at most that are looked at, and each may have to be sorted and cut.
const MOST_READINGS: usize = 32;

fn planned<S: Sink>(
    input: &TraceInput,
    make: impl Fn() -> S,
) -> Result<(ReadPlan, TraceRead, Comms, S), TraceError> {
    let mut plan = ReadPlan::default();
    let mut readings = 0;
    loop {
        readings += 1;
        let (mut comms, mut sink) = (Comms::default(), make());
        let mut timeline = Timeline::new(&plan, &mut sink);
        let mut read = crate::read::whole(input, &plan, &mut comms, &mut timeline)?;
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
        read.span_ns = plan.time(span.1).saturating_sub(plan.time(span.0));
        if !plan.cpus.is_empty() {
            read.cpus = None;
        }
        return Ok((plan, read, comms, sink));
    }
}
