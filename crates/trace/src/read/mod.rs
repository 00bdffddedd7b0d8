//! Formats of recordings, one file each, and what they share: bytes by position (`input`), numbers off the front of bytes (`take`), records
//! and fields (`decode`).

pub(crate) mod decode;
pub(crate) mod ftrace_text;
pub(crate) mod input;
pub(crate) mod perf_data;
pub(crate) mod take;
pub(crate) mod trace_dat;
