#![no_main]
//! `cargo +nightly fuzz run trace_dat`; seeds: the recordings in crates/trace/tests/traces, unpacked.

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::import_all(b"\\x17\\x08\\x44tracing", data));
