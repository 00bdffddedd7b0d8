#![no_main]
//! `cargo +nightly fuzz run packed_text`; seeds: a recording in crates/trace/tests/traces as .gz, .xz, after `TRACE:` and in UTF-16.

mod common;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Which stream it is, is not for the fuzzer to find.
    for magic in [&b"\x1f\x8b\x08"[..], b"\xfd7zXZ\0", b"TRACE:\n\x78\x9c", b"\xff\xfe", b""] {
        common::import_all(magic, data);
    }
});
