//! What all importer targets do: a recording in memory, imported, summarised, and its scripts read.

use std::sync::Arc;
use wattwise_trace::{ImportOptions, Source, import, summarise};
use wattwise_model::workload::{Op, Program, Workload};

/// Puts the format's first bytes before the input unless they are there: the fuzzer need not find them.
pub fn import_all(magic: &[u8], data: &[u8]) {
    let mut bytes = if data.starts_with(magic) { Vec::new() } else { magic.to_vec() };
    bytes.extend_from_slice(data);
    let options = ImportOptions { budget: "disk=16e6".parse().expect("a budget"), ..ImportOptions::default() };
    let source = Source::Bytes { name: "fuzz".into(), data: Arc::from(bytes) };
    if let Ok(summary) = summarise(source.clone(), &options) {
        summary.to_string();
    }
    let only = ImportOptions { foreground: vec!["1".into()], only_foreground: true, ..options.clone() };
    for options in [options, only] {
        if let Ok(workload) = import(source.clone(), &options) {
            check(&workload);
        }
    }
}

/// Every block has its wake.
fn check(workload: &Workload) {
    let (mut blocks, mut wakes) = (0u64, 0u64);
    for task in &workload.tasks {
        let Program::Recorded(script) = &task.program else { continue };
        let mut ops = script.reader().peekable();
        while let Some(op) = ops.next() {
            match op {
                // Of a task that was alive at the recording's end.
                Op::Block if ops.peek().is_none() && !task.repeats => {}
                Op::Block => blocks += 1,
                Op::Wake(target) => {
                    assert!((target.0 as usize) < workload.tasks.len());
                    wakes += 1;
                }
                _ => {}
            }
        }
    }
    assert_eq!(blocks, wakes);
}
