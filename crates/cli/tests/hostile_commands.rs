//! Hostile names through every command that prints what strangers wrote, each in each of its formats. The commands are clap's
//! (a unit test of `cli.rs` asks for them), their calls stand in `support/hostile_cases.rs`.
//!
//! In `make test` each call gets some names, ten thousand in all; WATTWISE_NAMES says how many each gets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/hostile_cases.rs"]
mod cases;
#[path = "support/hostile_given.rs"]
mod given;
#[path = "../../figure/tests/support/hostile.rs"]
mod hostile;
#[path = "support/hostile_page.rs"]
mod page;
#[path = "support/shown.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod shown;
#[path = "support/hostile_tree.rs"]
mod tree;

use cases::{CASES, Prints};
use given::{FORGED, Stock, write};
use shown::{harmless, wattwise};
use std::collections::BTreeMap;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names that a call gets at least.
fn names_a_call() -> usize {
    std::env::var("WATTWISE_NAMES").map_or(150, |n| n.parse().unwrap())
}

/// A call in a folder with its files: what it printed, and how many names it was given.
fn called(call: &str, stock: &mut Stock) -> (Output, usize) {
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<&str> = call.split(' ').collect();
    let used = words.iter().map(|word| write(folder.path(), word, stock)).sum();
    let out = wattwise(folder.path(), &words);
    assert!(!folder.path().join("x").exists(), "{call}: something ran");
    (out, used)
}

/// What is printed as a table of values, of which a spreadsheet calculates nothing (OWASP, CSV Injection).
fn no_formula(call: &str, csv: &str) {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(csv.as_bytes());
    for row in reader.records() {
        for cell in row.unwrap_or_else(|e| panic!("{call}: {e}: {csv}")).iter() {
            let acts = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
            assert!(!acts || cell.parse::<f64>().is_ok(), "{call}: {cell:?}");
        }
    }
}

/// Checks what a call printed; whether it was done.
fn checked(call: &str, out: &Output, pages: &mut BTreeMap<String, BTreeMap<String, usize>>) -> bool {
    let text = harmless(out);
    assert!(matches!(out.status.code(), Some(0..=3)), "{call}: {:?}: {text}", out.status);
    let done = out.status.success();
    let printed = String::from_utf8(out.stdout.clone()).unwrap();
    let is_page = call.contains("--report -");
    // A page has its lines where it wants them, and a file is shown as it is.
    if !is_page && !call.ends_with("--file") {
        let forged = text.lines().find(|line| line.starts_with(FORGED));
        assert_eq!(forged, None, "{call}: {text}");
    }
    if !done {
        let said = String::from_utf8(out.stderr.clone()).unwrap();
        assert!(
            said.lines().any(|line| line.starts_with("wattwise: ")) || !printed.is_empty(),
            "{call}: {said}"
        );
        return false;
    }
    if call.contains("--json") && !call.contains("-o result.out") {
        serde_json::from_str::<serde_json::Value>(&printed)
            .unwrap_or_else(|e| panic!("{call}: {e}: {printed}"));
    } else if call.contains("--csv") {
        no_formula(call, &printed);
    } else if is_page {
        let plain = pages.entry(call.to_owned()).or_insert_with(|| {
            let (out, _) = called(call, &mut Stock::plain());
            page::tags(&String::from_utf8(out.stdout).unwrap())
        });
        assert_eq!(page::tags(&printed), *plain, "{call}");
    }
    true
}

/// Every `of`th call from the `first` on; how many names there were.
fn tried(first: usize, of: usize) -> usize {
    let calls = CASES.iter().flat_map(|(_, prints)| match prints {
        Prints::Names(calls) => *calls,
        Prints::Nothing(why) => {
            assert!(!why.is_empty());
            &[]
        }
    });
    let mut all = 0;
    for (n, call) in calls.enumerate().skip(first).step_by(of) {
        let (mut used, mut done, mut pages) = (0, 0, BTreeMap::new());
        let mut stock = Stock::hostile(80 + n as u64);
        let (kind, call) = call.split_once(": ").unwrap_or(("done", call));
        while used < names_a_call() {
            let (out, names) = called(call, &mut stock);
            assert!(names > 0, "{call}: no stranger's file");
            used += names;
            done += usize::from(checked(call, &out, &mut pages));
        }
        match kind {
            "either" => {}
            "refused" => assert_eq!(done, 0, "{call}: were done"),
            _ => assert!(done > 0, "{call}: none was done"),
        }
        all += used;
    }
    all
}

static TRIED: AtomicUsize = AtomicUsize::new(0);

/// Two halves at a time.
#[test]
fn no_command_acts_on_a_name() {
    std::thread::scope(|scope| {
        for first in 0..2 {
            scope.spawn(move || TRIED.fetch_add(tried(first, 2), Ordering::Relaxed));
        }
    });
    let tried = TRIED.load(Ordering::Relaxed);
    assert!(tried >= 10_000, "{tried}");
}

/// A flag that no command has, of a stranger's choice: a line is pasted.
#[test]
fn no_flag_acts() {
    let mut stock = Stock::hostile(79);
    let folder = tempfile::tempdir().unwrap();
    for (command, _) in CASES {
        for _ in 0..4 {
            let flag = format!("--no{}", stock.next().replace('\0', ""));
            let words: Vec<&str> = command.split(' ').chain([flag.as_str()]).collect();
            let out = wattwise(folder.path(), &words);
            let said = harmless(&out);
            assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
            assert!(said.starts_with("wattwise: "), "{words:?}: {said}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
