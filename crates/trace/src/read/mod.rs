//! Formats of recordings, one file each, and what they share: bytes by position (`input`), records and fields
//! (`decode`).

pub(crate) mod decode;
pub(crate) mod ftrace_text;
pub(crate) mod input;
pub(crate) mod perf_data;
pub(crate) mod trace_dat;
