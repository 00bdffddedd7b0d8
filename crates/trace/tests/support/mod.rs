//! What tests of recordings share: where one is from, and what a replay works with.

#![allow(dead_code, reason = "each test uses some")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use wattwise_model::workload::{Op, Program, Recorded, Workload};
use wattwise_trace::{ImportOptions, Source, TraceError, import};

pub(crate) fn source(data: &[u8]) -> Source {
    Source::Bytes { name: "theirs".into(), data: Arc::from(data) }
}

pub(crate) fn lift(data: &[u8]) -> Result<Workload, TraceError> {
    import(source(data), &ImportOptions::default())
}

pub(crate) fn recorded(w: &Workload) -> &Recorded {
    w.recorded.as_ref().unwrap()
}

/// What a replay works with: each task's name and steps, and how long it all is.
pub(crate) fn work(w: &Workload) -> (u64, Vec<(String, Vec<Op>)>) {
    let steps = |t: &wattwise_model::workload::Task| {
        let Program::Recorded(script) = &t.program else { panic!("not recorded") };
        script.reader().collect()
    };
    (w.span_ns, w.tasks.iter().map(|t| (t.name.clone(), steps(t))).collect())
}

/// Compares such work without printing all of it.
#[track_caller]
pub(crate) fn same(work: &(u64, Vec<(String, Vec<Op>)>), wanted: &(u64, Vec<(String, Vec<Op>)>), name: &str) {
    assert_eq!((work.0, work.1.len()), (wanted.0, wanted.1.len()), "{name}: span in ns, tasks");
    for ((task, steps), (other, wanted)) in work.1.iter().zip(&wanted.1) {
        assert_eq!(task, other, "{name}");
        let differs = steps.iter().zip(wanted).position(|(a, b)| a != b);
        let shown = differs.map(|n| (n, steps[n], wanted[n]));
        assert_eq!((shown, steps.len()), (None, wanted.len()), "{name}: {task}: first different step, steps");
    }
}

pub(crate) fn warned(w: &Workload, what: &str) -> bool {
    recorded(w).warnings.iter().any(|warning| warning.contains(what))
}

/// A recording of `traces/`, unpacked.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(format!("{name}.zst"));
    zstd::stream::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}
