#![no_main]
//! `cargo +nightly fuzz run machine_toml`; seeds: machines/*.toml.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = wattwise_model::machine::file::parse(text, "fuzz");
    }
});
