#![no_main]
//! `cargo +nightly fuzz run ftrace_text`; seeds: the recordings in crates/trace/tests/traces, unpacked.

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::import_all(b"# tracer: nop\\n", data));
