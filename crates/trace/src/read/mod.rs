//! Formats of recordings, one file each, and what they share: bytes by position (`input`), unpacked
//! (`unpack`), what is none that is read (`foreign`), numbers off the front of bytes (`take`), records
//! and fields (`decode`).

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
pub(crate) mod take;
pub(crate) mod trace_dat;
pub(crate) mod unpack;

/// A recording's format, told by how it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    PerfData,
    TraceDat,
    FtraceText,
    Perfetto,
}

/// Of so many bytes, if the file has them: a text's head has a dozen lines before the first event.
pub(crate) const START: usize = 8 << 10;

/// Which format it is; `None` for none that is known.
pub(crate) fn format(start: &[u8]) -> Option<Format> {
    match () {
        // An archive may hold a text that looks like one.
        () if foreign::of(start).is_some() => None,
        () if perf_data::MAGIC.iter().any(|m| start.starts_with(*m)) => Some(Format::PerfData),
        () if trace_dat::is(start) => Some(Format::TraceDat),
        () if perfetto::is(start) => Some(Format::Perfetto),
        () if ftrace_text::is(start) || is_page(start) => Some(Format::FtraceText),
        () => None,
    }
}

/// Whether it is a page such as systrace's: its viewer's program, of any length, comes before the text.
fn is_page(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    ["<!doctype html", "<html"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes())))
}
