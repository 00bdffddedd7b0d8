//! Workload files: any text gives a workload or one line, and a workload that is given runs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match wattwise_model::workload::file::parse(text, "fuzz.toml") {
    Ok(w) => assert!(!w.tasks.is_empty()),
    Err(e) => assert!(!e.to_string().contains('\n')),
});
