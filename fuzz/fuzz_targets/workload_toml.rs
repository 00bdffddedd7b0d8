//! Workload files, of wattwise and of rt-app: any text gives a workload or one line, and a workload that is given runs.
#![no_main]

use libfuzzer_sys::fuzz_target;

use wattwise_model::workload::{file, rtapp};

fuzz_target!(|text: &str| {
    for read in std::iter::once(file::parse(text, "fuzz.toml")).chain(rtapp::parse(text, "fuzz.json")) {
        match read {
            Ok(w) => assert!(!w.tasks.is_empty()),
            Err(e) => assert!(!e.to_string().contains('\n')),
        }
    }
});
