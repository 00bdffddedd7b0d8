//! Appendix B of study 000 rerun on an emulated ThinkPad R51: 30 changes of speed, timed by the program that asks for them.
#![allow(clippy::unwrap_used)]

#[path = "support/mounted.rs"]
mod mounted;

use mounted::{Machine, told};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const PRINTED: &str = include_str!("../../../studies/thomson_transition_us.csv");

/// The study's table 2: from and to in kHz, us.
fn table_2() -> BTreeMap<(u64, u64), f64> {
    let rows = PRINTED.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|row| {
        let numbers: Vec<u64> = row.split(',').map(|n| n.parse().unwrap()).collect();
        ((numbers[0] * 1000, numbers[1] * 1000), numbers[2] as f64)
    })
    .collect()
}

#[test]
fn the_thirty_changes_take_what_was_printed() {
    let bench = |root: &str| {
        let args = ["bench", "transition", "--trials", "2", "--json", "--root", root];
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).output().unwrap();
        assert!(out.status.success(), "{}", told(&out));
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let matrix = bench("emulated:thinkpad-r51");
    assert!(matrix["by"].as_str().unwrap().contains("own time"), "{}", matrix["by"]);
    let printed = table_2();
    let pairs = matrix["pairs"].as_array().unwrap();
    assert_eq!((pairs.len(), printed.len()), (30, 30));
    for pair in pairs {
        let between = (pair["from_khz"].as_u64().unwrap(), pair["to_khz"].as_u64().unwrap());
        let (ours, theirs) = (pair["us"]["mean"].as_f64().unwrap(), printed[&between]);
        assert_eq!((pair["us"]["n"].as_u64(), pair["missed"].as_u64()), (Some(2), Some(0)), "{pair}");
        // A look comes up to 2 us after the change.
        assert!((0.0..=2.0).contains(&(ours - theirs)), "{between:?}: {ours} us, printed {theirs}");
    }
}

/// A machine whose time runs with the clock in steps of its own cannot be timed so, and says that.
#[test]
fn a_machine_whose_time_runs_by_itself_is_refused() {
    let Some(machine) = Machine::mounted("thinkpad-r51") else { return };
    let out = machine.wattwise(&["bench", "transition", "--root", &machine.root(), "--trials", "1"]);
    assert_eq!(out.status.code(), Some(3), "{}", told(&out));
    assert!(told(&out).contains("--still"), "{}", told(&out));
}
