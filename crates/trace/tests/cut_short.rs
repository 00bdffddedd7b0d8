//! A recording of our recorder that lacks its end, against the same recording whole.

#![cfg(feature = "record")]

use std::sync::Arc;
use wattwise_trace::events::{Comms, Event, EventKind, Sink};
use wattwise_trace::record::{RecordOptions, run};
use wattwise_trace::{ImportOptions, Source, TraceError, import, visit};

/// Switches, wake-ups and idle states, in the order in which a reader of the file is given them.
#[derive(Default)]
struct Seen(Vec<(u64, u16, String)>);

impl Sink for Seen {
    fn event(&mut self, event: &Event, _: &Comms) {
        let what = match event.kind {
            EventKind::Switch(s) => format!("switch {} {}", s.prev_tid, s.next_tid),
            EventKind::Waking(t) => format!("waking {}", t.tid),
            EventKind::CpuIdle { cpu, state } => format!("idle {cpu} {state:?}"),
            _ => return,
        };
        self.0.push((event.time_ns, event.cpu, what));
    }
}

fn source(data: &[u8]) -> Source {
    Source::Bytes { name: "r.perf".into(), data: Arc::from(data) }
}

fn seen(data: &[u8]) -> Result<Vec<(u64, u16, String)>, TraceError> {
    let mut seen = Seen::default();
    visit(source(data), &ImportOptions::default(), &mut seen)?;
    Ok(seen.0)
}

/// The rings are copied one after the other, so that the last copy of one CPU may be there without those of the others.
/// Wherever the file ends, what is used of it has each event that the whole file has of that time.
#[test]
fn nothing_is_missing_in_what_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.perf");
    let script = "i=0; while [ $i -lt 90 ]; do sleep 0.01; i=$((i+1)); done";
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    match run(&RecordOptions::new(&path, command)) {
        Err(e) if e.is_impossible() => return println!("skipped: {e}"),
        other => drop(other.expect("a recording")),
    }
    let whole = std::fs::read(&path).expect("the recording");
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes")) as usize;
    // Place and length of the data (`struct perf_file_header`).
    let (begin, bytes) = (word(40), word(48));
    let wanted = seen(&whole).expect("the whole recording");
    let mut used = Vec::new();
    for part in 1..=60 {
        let cut = &whole[..begin + bytes * part / 60];
        match seen(cut) {
            Ok(events) => {
                assert_eq!(events, wanted[..events.len()], "{part} of 60");
                used.push(events.len());
            }
            Err(e) => {
                assert!(e.to_string().contains("all cover only"), "{part} of 60: {e}");
                assert!(used.is_empty(), "{part} of 60: less was enough, and now {e}");
            }
        }
    }
    assert!(used.is_sorted(), "{used:?}");
    assert!(used.last().is_some_and(|n| *n > wanted.len() / 2), "{used:?} of {}", wanted.len());
    let work =
        import(source(&whole[..begin + bytes * 3 / 4]), &ImportOptions::default()).expect("most of it");
    let warnings = work.recorded.expect("recorded").warnings;
    let says = |what: &str| warnings.iter().any(|w| w.contains(what));
    assert!(says("incomplete") && says("the file is cut short"), "{warnings:?}");
}
