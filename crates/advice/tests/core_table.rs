//! `docs/notes/coreidle.md` has every core policy, machine and workload in its tables.
//!
//! `crates/advice/examples/core_policies.rs` makes them.

#[allow(dead_code, reason = "a part of it is tried")]
#[path = "../examples/core_policies.rs"]
mod made_by;

use std::collections::BTreeSet;
use std::path::Path;
use wattwise_model::machine::builtin;
use wattwise_policy::cores;
use wattwise_replay::library;
use wattwise_trace::ImportOptions;

const MADE_BY: &str = "`cargo run --release --example core_policies` makes the tables anew";

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notes/coreidle.md");
    std::fs::read_to_string(path).expect("the page")
}

/// First cells of the first table after a line.
fn rows<'a>(page: &'a str, after: &str) -> BTreeSet<&'a str> {
    let from = page.lines().skip_while(|line| !line.starts_with(after));
    let table = from.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).filter_map(|row| row.split('|').nth(1)).map(str::trim).collect()
}

#[test]
fn every_core_policy_has_its_row() {
    let page = page();
    let found = rows(&page, "### All policies");
    let placements = ["spread", "sched_mc", "pack"];
    let expected: BTreeSet<&str> = cores::ALL.iter().map(|c| c.name).chain(placements).collect();
    assert_eq!(found, expected, "{MADE_BY}");
}

#[test]
fn every_machine_with_several_cpus_has_every_workload() {
    let page = page();
    let expected: BTreeSet<&str> =
        library::workloads().iter().filter(|w| w.development).map(|w| w.name).collect();
    for name in builtin::written() {
        if library::machine(name).expect("bundled").cpus.len() > 1 {
            assert_eq!(rows(&page, &format!("### {name}")), expected, "{name}: {MADE_BY}");
        }
    }
}

/// Some cells computed anew, those that take least.
#[test]
fn cells_of_the_page_are_what_the_model_says() {
    let page = page();
    let policies = made_by::policies();
    for (machine, workload) in
        [("i7-4510u", "cyclictest"), ("core-i5-2gen", "tbench"), ("openbsd-laptop", "periodic")]
    {
        let table = page.split("\n### ").find(|section| section.starts_with(machine)).expect("a section");
        let row = table.lines().find(|l| l.starts_with(&format!("| {workload} |"))).expect("a row");
        let model = library::machine(machine).expect("bundled");
        let work = library::workload(workload, &ImportOptions::default()).expect("bundled");
        let runs = made_by::see(&model, &work, &policies).expect("runs");
        let made = made_by::row(&made_by::Cell { machine, workload, runs }, &policies);
        assert_eq!(row, made, "{machine}: {MADE_BY}");
    }
}
