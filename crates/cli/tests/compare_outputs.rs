//! What `compare` writes beside its table: CSV, Markdown, traces, several comparisons at once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

fn compare(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    program.arg("compare").args(args).args(["--exact"]).output().unwrap()
}

/// Standard output of a call that must succeed.
fn printed(args: &[&str]) -> String {
    let out = compare(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const TWO: [&str; 7] = ["burst", "tbench", "-m", "i7-4510u", "-p", "performance", "-p=burst:busy=2,idle=5"];

#[test]
fn csv_has_a_row_a_policy_and_comparison() {
    let text = printed(&[&TWO[..], &["--csv"]].concat());
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(head[..3], ["workload", "machine", "policy"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // The reference, which was not named, and the two.
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|r| r.len() == head.len()));
    let policies: Vec<&str> = rows.iter().map(|r| &r[2]).collect();
    assert!(policies.iter().any(|p| p.contains(',')), "{policies:?}: a comma that is quoted");
    assert!(text.contains("\"burst:") && text.contains("\r\n"));
    let energy = head.iter().position(|h| h == "window_energy_median_j").unwrap();
    assert!(rows.iter().all(|r| r[energy].parse::<f64>().unwrap() > 0.0));
}

#[test]
fn markdown_is_tables_of_equal_rows() {
    let text = printed(&[&TWO[..], &["--markdown"]].concat());
    let tables: Vec<&str> = text.split("\n\n").filter(|part| part.starts_with('|')).collect();
    assert_eq!(tables.len(), 4, "two comparisons, the mix and the summary: {text}");
    for table in tables {
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let first = columns(table.lines().next().unwrap());
        assert!(table.lines().all(|l| columns(l) == first && l.starts_with('|')), "{table}");
    }
}

/// Several works on one machine are one day; on several machines each is by itself, with a summary.
#[test]
fn several_works_are_a_mix_and_several_machines_a_summary() {
    let text = printed(&TWO);
    assert_eq!(text.matches("on the model i7-4510u: ").count(), 1, "{text}");
    assert!(text.starts_with("a mix of ") && text.contains("\nBest over the mix: "), "{text}");
    let weighted = printed(&["burst=3", "tbench", "-m", "i7-4510u", "-p", "performance"]);
    assert!(weighted.starts_with("a mix of burst (75 %), tbench (25 %)\n"), "{weighted}");
    let text = printed(&["tbench", "-m", "i7-4510u", "-m", "core-i5-2gen", "-p", "performance"]);
    assert_eq!(text.matches("\non the model ").count(), 2, "{text}");
    assert!(text.contains("Best over all 2 comparisons"), "{text}");
}

/// What was to be minimised is on the first screen and in JSON; the product of the nominal runs, worked out here, is in its interval.
#[test]
fn the_product_is_shown_where_it_is_minimised() {
    let run = |args: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        program.args(["compare", "build", "-p", "performance+max=90%", "--best", "edp", "--replicas", "16"]);
        String::from_utf8(program.args(args).output().unwrap().stdout).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(json["goal"], "edp");
    let product = |policy: &serde_json::Value| {
        let row = json["results"].as_array().unwrap().iter().find(|r| &r["policy"] == policy).unwrap();
        row["energy_j"].as_f64().unwrap() * row["elapsed_s"].as_f64().unwrap()
    };
    let ratio = product(&json["answer"]["recommended"]) / product(&json["reference"]);
    let against = &json["answer"]["against_reference"]["ratio"];
    let (low, high) = (against["low"].as_f64().unwrap(), against["high"].as_f64().unwrap());
    assert!(low - 0.01 < ratio && ratio < high + 0.01 && ratio < 1.0, "{ratio} in {low} to {high}");
    let screen = run(&[]);
    assert!(screen.lines().any(|l| l.starts_with("  edp ") && l.contains("% less")), "{screen}");
}

#[test]
fn a_scan_is_shown_in_its_order() {
    let text = printed(&["tbench", "-m", "i7-4510u", "-p", "schedutil+max=50%..100%:n3"]);
    let table = text.split("  policy ").nth(1).unwrap();
    let at = |what: &str| table.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("schedutil+max=50%") < at("schedutil+max=75%"), "{text}");
    assert!(at("schedutil+max=75%") < at("schedutil+max=100%"), "{text}");
}

#[test]
fn traces_go_to_files_or_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let one = ["tbench", "-m", "i7-4510u", "-p", "performance"];
    let (perfetto, ftrace) = (file("a.pftrace"), file("a.txt"));
    printed(&[&one[..], &["--perfetto", &perfetto, "--ftrace", &ftrace]].concat());
    assert!(std::fs::metadata(&perfetto).unwrap().len() > 10_000);
    let text = std::fs::read_to_string(&ftrace).unwrap();
    assert_eq!(printed(&[&one[..], &["--ftrace", "-"]].concat()), text);
    // What was written is a recording.
    let again = printed(&[&ftrace, "-m", "i7-4510u", "-p", "performance"]);
    assert!(again.contains("ftrace text"), "{again}");
}

/// Nothing is run, and no file is made, where an output makes no sense.
#[test]
fn bad_outputs_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/x").display().to_string();
    let there = folder.path().join("x").display().to_string();
    for (args, told) in [
        (&["--perfetto", &missing][..], "--perfetto"),
        (&["--ftrace", &missing, "-p", "performance"], "--ftrace"),
        (&["--report", &missing], "--report"),
        (&["--csv", "--json"], "cannot be used with"),
        (&["--markdown", "--csv"], "cannot be used with"),
        (&["--csv", "--perfetto", "-"], "standard output"),
        (&["--perfetto", &there, "--report", &there], "different files"),
        (&["--ftrace", &there], "one --policy"),
        (&["--ftrace", &there, "-p", "performance", "-p", "powersave"], "one --policy"),
        (&["desktop=0", "--report", &there], "a weight above 0"),
    ] {
        let out = compare(&[&["tbench", "-m", "i7-4510u"], args].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(told) && out.stdout.is_empty(), "{args:?}: {error}");
        assert!(!Path::new(&there).exists(), "{args:?}");
    }
}

/// With too few replicas to judge responses by, nothing of a mix is over the limit on their account.
#[test]
fn a_mix_of_few_replicas_is_not_judged() {
    let mix = |flag: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        program.args([
            "compare",
            "desktop",
            "burst",
            "-m",
            "i7-4510u",
            "-p",
            "performance",
            "--replicas",
            "8",
        ]);
        String::from_utf8(program.args(flag).output().unwrap().stdout).unwrap()
    };
    let text = mix(&[]);
    assert!(text.contains("not judged: desktop") && !text.contains("\nx "), "{text}");
    assert!(text.contains("responses are judged with at least 16 replicas"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&mix(&["--json"])).unwrap();
    let row =
        json["mix"]["policies"].as_array().unwrap().iter().find(|p| p["policy"] == "performance").unwrap();
    assert_eq!(
        (&row["over_limit_in"], &row["not_judged_in"]),
        (&row["not_judged_in"], &serde_json::json!(["desktop"]))
    );
}
