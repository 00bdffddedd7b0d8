//! Formats of recordings, one file each, and what they share: bytes by position (`input`), unpacked
//! (`unpack`), what is none that is read (`foreign`), records and fields (`decode`).

pub(crate) mod decode;
pub(crate) mod foreign;
mod ftrace_event;
mod ftrace_line;
pub(crate) mod ftrace_text;
pub(crate) mod input;
pub(crate) mod perf_data;
mod perf_script;
pub(crate) mod perfetto;
mod protobuf;
pub(crate) mod trace_dat;
pub(crate) mod unpack;

use crate::error::TraceError;
use crate::events::{Comms, Sink, TraceRead};
use crate::plan::ReadPlan;
use input::{START, TraceInput};

/// What is to be said where a recording has been read up to here and another follows: two files were joined.
pub(crate) fn joined(input: &TraceInput, end: u64, is: fn(&[u8]) -> bool) -> Option<String> {
    let left = input.len().saturating_sub(end);
    let next = input.section(end, left.min(START as u64))?;
    is(&next).then(|| {
        format!(
            "Another recording follows in the file and is left out ({left} bytes); expected one in a file."
        )
    })
}

/// A line a format: the file that says how a recording of it starts (`is`), and reads one (`read`). The first that fits counts.
macro_rules! formats {
    ($($format:ident,)*) => {
        /// Whether a file starts like a recording that is read. An archive may hold a text that looks like one.
        pub(crate) fn is_known(start: &[u8]) -> bool {
            foreign::of(start).is_none() && ($($format::is(start) ||)* false)
        }

        /// Recognises the format, and reads a recording of it.
        pub(crate) fn whole<S: Sink>(
            input: &TraceInput,
            plan: &ReadPlan,
            comms: &mut Comms,
            sink: &mut S,
        ) -> Result<TraceRead, TraceError> {
            let start = input.section(0, input.len().min(START as u64)).unwrap_or_default();
            match () {
                () if !is_known(&start) => Err(foreign::unknown(&input.name, &start)),
                $(() if $format::is(&start) => $format::read(input, plan, comms, sink),)*
                () => Err(foreign::unknown(&input.name, &start)),
            }
        }
    };
}

formats! {
    perf_data,
    trace_dat,
    perfetto,
    ftrace_text,
}
