#![no_main]
//! `cargo +nightly fuzz run perf_data`; seeds: the recordings in crates/trace/tests/traces, unpacked.

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::import_all(b"PERFILE2", data));
