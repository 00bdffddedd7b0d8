//! `prove` from end to end on emulated machines, with short blocks: plan, turns, interruption, resumption, page, prediction.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LAPTOP: [&str; 2] = ["--root", "emulated:amd-laptop"];
const SHORT: [&str; 4] = ["--for", "2400ms", "--block", "200ms"];

fn wattwise(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).current_dir(folder).output().unwrap()
}

fn done(folder: &Path, args: &[&str]) -> String {
    let out = wattwise(folder, args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn refused(folder: &Path, args: &[&str], code: i32, words: &str) {
    let out = wattwise(folder, args);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
    assert!(said.lines().last().unwrap().contains(words), "{args:?}: {said}");
}

fn valid(schema: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(schema);
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<String> =
        schema.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

fn prove<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["prove", "current", "governor=powersave"][..], &LAPTOP, more].concat()
}

#[test]
fn a_plan_is_carried_out_judged_and_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let log = ["-o", "p.jsonl", "--json", "--report", "p.html", "--seed", "7"];
    let printed = done(at, &prove(&[&SHORT[..], &log].concat()));
    let result: Value = serde_json::from_str(&printed).unwrap();
    valid("prove-1.json", &result);
    assert_eq!(
        (result["planned"].as_u64(), result["ended"].as_str()),
        (Some(6), Some("the plan was carried out"))
    );
    assert!(result["line"].as_str().unwrap().contains(" measured"), "{}", result["line"]);
    // The page and `report` say what it said.
    let words = result["words"].as_str().unwrap();
    assert!(std::fs::read_to_string(at.join("p.html")).unwrap().contains("Side by side"));
    assert!(done(at, &["report", "p.jsonl"]).contains(words));
    std::fs::write(at.join("r.json"), &printed).unwrap();
    assert!(done(at, &["report", "r.json"]).contains(words));
    // Each pair has both, in an order that the seed alone fixes.
    let order = |file: &str| -> Vec<(u64, u64)> {
        let text = std::fs::read_to_string(at.join(file)).unwrap();
        let lines = text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        let number = |b: &Value, field: &str| b["block"][field].as_u64().unwrap();
        lines.filter(|l| l.get("block").is_some()).map(|b| (number(&b, "pair"), number(&b, "arm"))).collect()
    };
    let first = order("p.jsonl");
    assert_eq!(first.len(), 12);
    assert!(
        first.chunks(2).enumerate().all(|(at, p)| p.iter().all(|b| b.0 == at as u64) && p[0].1 != p[1].1)
    );
    assert!(first.chunks(2).any(|p| p[0].1 == 1) && first.chunks(2).any(|p| p[0].1 == 0), "{first:?}");
    done(at, &prove(&[&SHORT[..], &["-o", "again.jsonl", "--seed", "7"]].concat()));
    assert_eq!(order("again.jsonl"), first);
}

#[test]
fn hours_are_said_beforehand_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ["--plan", "--watch", "3s", "--block", "200ms", "--json"];
    let told: Value = serde_json::from_str(&done(folder.path(), &prove(&plan))).unwrap();
    valid("prove-plan-1.json", &told);
    assert!(told["watched_h"].as_f64().unwrap() > 2.5 / 3600.0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a plan writes no log");
}

/// Ctrl-C in the middle, then on with the same plan; on another machine not.
#[test]
fn a_stopped_proof_goes_on_with_its_plan_and_its_machine() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(prove(&["--for", "4s", "--block", "200ms", "-o", "p.jsonl"]))
        .current_dir(at)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let patience = Instant::now();
    let blocks =
        || std::fs::read_to_string(at.join("p.jsonl")).unwrap_or_default().matches("\"block\"").count();
    while blocks() < 3 && patience.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let stopped = done(at, &["report", "p.jsonl"]);
    assert!(stopped.contains("--resume goes on with the same plan"), "{stopped}");
    refused(at, &["prove", "--resume", "p.jsonl", "--root", "emulated:amd-server"], 2, "another machine");
    let whole: Value = serde_json::from_str(&done(at, &["prove", "--resume", "p.jsonl", "--json"])).unwrap();
    assert_eq!(
        (whole["planned"].as_u64(), whole["ended"].as_str()),
        (Some(10), Some("the plan was carried out"))
    );
    let text = std::fs::read_to_string(at.join("p.jsonl")).unwrap();
    let seeds = text.lines().filter(|l| l.starts_with("{\"proof\"")).count();
    assert_eq!((seeds, text.lines().filter(|l| *l == "\"resumed\"").count()), (1, 1));
}

/// What `compare` had predicted stands beside what was measured.
#[test]
fn a_prediction_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let compare = [
        "compare",
        "burst",
        "-m",
        "emulated:amd-laptop",
        "-p",
        "current",
        "-p",
        "powersave",
        "-p",
        "performance",
    ];
    let result = done(at, &[&compare[..], &["--replicas", "16", "--json"]].concat());
    std::fs::write(at.join("r.json"), &result).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let (reference, best) = (&result["reference"], &result["answer"]["recommended"]);
    let out = wattwise(
        at,
        &[&["prove", "--from", "r.json", "-o", "p.jsonl", "--json"], &LAPTOP[..], &SHORT].concat(),
    );
    if reference == best {
        assert_eq!(out.status.code(), Some(2));
        return;
    }
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let proof: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&proof["sides"][0]["policy"], &proof["sides"][1]["policy"]), (reference, best));
    assert!(proof["predicted"]["ratio"].as_f64().unwrap() > 0.0);
    assert!(done(at, &["report", "p.jsonl"]).contains("predicted "), "the terminal says it too");
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    refused(at, &["prove", "current"], 2, "expected two policies");
    refused(at, &prove(&["--for", "1s"]), 2, "no room for three pairs");
    refused(at, &prove(&["--plan", "--watch", "1min"]), 2, "--watch");
    refused(at, &prove(&["--settle", "70s", "--for", "1h"]), 2, "to settle in a block");
    refused(
        at,
        &["prove", "current", "no-such-policy", "--root", "emulated:amd-laptop", "-o", "n.jsonl"],
        2,
        "did you mean",
    );
    refused(at, &["prove", "current", "powersave", "--root", "emulated:vm-2cpu"], 3, "meters energy");
    std::fs::write(at.join("junk"), "{\"proof\":3}\n").unwrap();
    refused(at, &["prove", "--resume", "junk"], 2, "junk: line 1");
    refused(at, &["report", "junk"], 2, "junk: line 1");
}
