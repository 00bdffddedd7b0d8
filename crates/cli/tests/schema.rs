//! `docs/schema` takes what `--json` prints, and `compare-3.json` and `compare-set-1.json` nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../report/tests/support/mod.rs"]
mod support;

use jsonschema::Validator;
use serde_json::{Value, json};
use wattwise_advice::result::Comparison;
use wattwise_advice::rule::Goal;
use wattwise_advice::summary::ComparisonSet;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/schema/compare-3.json")).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::meta::validate(&schema()).unwrap();
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn complaints(value: &Value) -> Vec<String> {
    validator().iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

#[test]
fn results_are_valid_and_survive_the_way_through_json() {
    for (comparison, _) in [support::usual(), support::extreme()] {
        let value = serde_json::to_value(&comparison).unwrap();
        assert_eq!(complaints(&value), Vec::<String>::new());
        let back: Comparison = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap(), value);
    }
}

/// What the program itself prints; `scripts/first-command.sh` passes a file that it has just made.
#[test]
fn what_the_program_prints_is_valid() {
    let printed = match std::env::var_os("WATTWISE_COMPARISON") {
        Some(file) => std::fs::read(file).unwrap(),
        None => {
            let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_wattwise"));
            program.args(["compare", "--json"]).output().unwrap().stdout
        }
    };
    let value: Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(complaints(&value), Vec::<String>::new());
    assert!(value["results"].as_array().unwrap().len() >= 12);
}

#[test]
fn broken_results_are_refused() {
    let good = serde_json::to_value(support::usual().0).unwrap();
    let broken = |path: &str, to: Value| {
        let mut value = good.clone();
        *value.pointer_mut(path).unwrap() = to;
        assert!(!validator().is_valid(&value), "{path}");
    };
    broken("/schema", json!("wattwise-compare-1"));
    broken("/results", json!([]));
    broken("/results/3/energy_j", json!(-0.1));
    // What a figure that is not a number turns into.
    broken("/results/0/mean_w", Value::Null);
    broken("/results/0/slowdown", json!(-0.5));
    broken("/results/0/provenance", json!("invented"));
    broken("/results/0/transitions", json!(1.5));
    broken("/results/0/window_split_j/idle_j/0", json!(["C1", 1.0, 2.0]));
    broken("/results/0/window_split_j/idle_j/0", json!(["C1"]));
}

/// Every field of every object is required, and no other is taken: a field that is new in the code
/// fails here until the schema describes it.
#[test]
fn each_field_is_required_and_no_other_is_known() {
    let good = serde_json::to_value(support::usual().0).unwrap();
    let mut objects = Vec::new();
    collect(&good, String::new(), &mut objects);
    assert_eq!(objects.len(), 27, "kinds of object in the schema: {objects:?}");
    for path in objects {
        let fields: Vec<String> = good.pointer(&path).unwrap().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut value = good.clone();
            value.pointer_mut(&path).unwrap().as_object_mut().unwrap().remove(&field);
            assert!(!validator().is_valid(&value), "without {path}/{field}");
        }
        let mut value = good.clone();
        value.pointer_mut(&path).unwrap()["surprise"] = json!(1);
        assert!(!validator().is_valid(&value), "{path}/surprise");
    }
}

/// The schema of several comparisons, with that of one inside.
fn set_validator() -> Validator {
    let mut set: Value =
        serde_json::from_str(include_str!("../../../docs/schema/compare-set-1.json")).unwrap();
    jsonschema::draft202012::meta::validate(&set).unwrap();
    set["$defs"] = json!({ "comparison": schema() });
    jsonschema::draft202012::new(&set).unwrap()
}

#[test]
fn several_comparisons_are_valid_and_nothing_else_is() {
    let comparisons = vec![support::usual().0, support::extreme().0];
    let set = ComparisonSet::new(comparisons, Goal::Energy);
    let value = serde_json::to_value(&set).unwrap();
    let wrong = |value: &Value| -> Vec<String> {
        set_validator().iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect()
    };
    assert_eq!(wrong(&value), Vec::<String>::new());
    let back: ComparisonSet = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(back).unwrap(), value);
    let mut objects = vec![String::new()];
    collect(&value["summary"], "/summary".into(), &mut objects);
    assert_eq!(objects.len(), 5, "kinds of object beside the comparisons: {objects:?}");
    for path in objects {
        let fields: Vec<String> =
            value.pointer(&path).unwrap().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut less = value.clone();
            less.pointer_mut(&path).unwrap().as_object_mut().unwrap().remove(&field);
            assert!(!wrong(&less).is_empty(), "without {path}/{field}");
        }
        let mut more = value.clone();
        more.pointer_mut(&path).unwrap()["surprise"] = json!(1);
        assert!(!wrong(&more).is_empty(), "{path}/surprise");
    }
    let mut broken = value;
    broken["comparisons"][1]["results"] = json!([]);
    assert!(!wrong(&broken).is_empty());
}

#[test]
fn what_the_program_prints_of_several_is_valid() {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_wattwise"));
    let two = ["compare", "tbench", "burst", "-m", "i7-4510u", "-m", "alderlake-p-laptop"];
    program.args(two).args(["-p", "performance", "-p", "powersave", "--exact", "--json"]);
    let value: Value = serde_json::from_slice(&program.output().unwrap().stdout).unwrap();
    let wrong: Vec<String> =
        set_validator().iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(value["comparisons"].as_array().unwrap().len(), 4);
    assert_eq!(value["summary"]["answers"][1]["machine"], "alderlake-p-laptop");
}

/// Paths of all objects; of an array's elements the first stands for all.
fn collect(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                collect(field, format!("{path}/{name}"), out);
            }
            out.push(path);
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                collect(first, format!("{path}/0"), out);
            }
        }
        _ => {}
    }
}

#[test]
fn every_part_of_the_schema_is_described() {
    fn check(node: &Value, path: &str) {
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            assert_eq!(node["additionalProperties"], json!(false), "{path}");
            for (name, property) in properties {
                let known = property.get("description").is_some() || property.get("$ref").is_some();
                assert!(known, "{path}/{name} has no description");
                check(property, &format!("{path}/{name}"));
            }
        }
        if let Some(items) = node.get("items").filter(|i| i.is_object()) {
            check(items, &format!("{path}/items"));
        }
    }
    check(&schema(), "");
    check(&schema()["$defs"]["result"], "/$defs/result");
}

/// Shapes made from the types (`crates/cli/src/schema.rs`): what the program prints is of them.
/// Holds what the program prints against a schema of `docs/schema`.
fn holds(schema: &str, args: &[&str]) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(schema);
    let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| {
        panic!("{args:?}: {e}: {text}{}", String::from_utf8_lossy(&out.stderr));
    });
    let wrong: Vec<String> =
        validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(wrong, Vec::<String>::new(), "{args:?}");
    let mut other = value;
    other["schema"] = json!("something else");
    assert!(!validator.is_valid(&other), "{args:?}");
}

#[test]
fn lists_recordings_studies_and_settings_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().to_str().unwrap();
    for (what, name) in [("policies", "schedutil"), ("workloads", "burst")] {
        holds("list-1.json", &[what, "--json"]);
        holds("show-1.json", &[what, "show", name, "--json"]);
    }
    holds("list-1.json", &["machines", "--json"]);
    holds("trace-1.json", &["workloads", "show", "build", "--json"]);
    holds("trace-1.json", &["trace", "build", "--json"]);
    holds("import-1.json", &["import", "build", "--json"]);
    holds("reproduce-2.json", &["reproduce", "thomson", "--json"]);
    holds("restore-1.json", &["restore", "--dry-run", "--journal", journal, "--json"]);
    let set = ["set", "--root", "emulated:bc10", "--journal", journal, "--governor", "powersave"];
    for last in [&["--json"][..], &["--dry-run", "--json"]] {
        holds("set-1.json", &[&set[..], last].concat());
    }
    holds("compare-3.json", &["compare", "burst", "--exact", "-p", "performance", "--json"]);
    // Parts of a machine that not every file tells apart: leakage and memory.
    let file = folder.path().join("server.toml");
    let own = "source = 's'\nconfidence = 'guess'\n";
    let heat = "ambient_c = 25\nc_per_w = 0.3\ntau_s = 10\ncritical_c = 90\nleakage_per_c = 0.004\n";
    let text = format!(
        "name = 'server'\nbase = 'xeon-4210'\n[thermal]\n{heat}{own}[memory]\nwatts = 4.0\nbusy_w = 0.5\n{own}"
    );
    std::fs::write(&file, text).unwrap();
    let told = ["compare", "burst", "--exact", "-p", "performance", "-m", file.to_str().unwrap(), "--json"];
    holds("compare-3.json", &told);
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_wattwise")).args(told).output().unwrap();
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    let split = &value["results"][0]["window_split_j"];
    assert!(
        split["memory_j"].as_f64().unwrap() > 0.0 && split["leakage_j"].as_f64().unwrap() != 0.0,
        "{split}"
    );
}

#[test]
fn a_search_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml").display().to_string();
    let log = |name: &str| folder.path().join(name).display().to_string();
    let (first, second) = (log("a.jsonl"), log("b.jsonl"));
    let tune = [
        "tune",
        "tbench",
        "python-loop",
        "-m",
        "thinkpad-r51",
        "--budget",
        "16",
        "--replicas",
        "40",
        "-o",
        &file,
        "--log",
        &first,
        "--json",
    ];
    holds("tune-1.json", &[&tune[..], &["--space", "burst"]].concat());
    // Without a test set, and with a space that is soon looked at.
    let one = [
        "tune",
        "tbench",
        "--log",
        &second,
        "-m",
        "thinkpad-r51",
        "--space",
        "burst:busy=0..3",
        "-o",
        &file,
        "--max-slowdown",
        "any",
        "--json",
    ];
    holds("tune-1.json", &one);
}

/// What `machines` says is in one shape for each command.
#[test]
fn machines_are_valid() {
    let table = |name: &str| format!("{}/../../machines/data/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    for name in ["i7-4510u", "t8103"] {
        holds("machine-1.json", &["machines", "show", name, "--json"]);
    }
    holds("machine-compare-1.json", &["machines", "compare", "omap3530", "gs101", "--json"]);
    let check = ["machines", "check", "omap3530", "-w", "burst", "--replicas", "16", "--json"];
    holds("machine-check-2.json", &check);
    for data_set in ["specpower", "freqbench"] {
        holds("score-1.json", &["machines", "score", data_set, &table(data_set), "--json"]);
    }
    let policies = format!("{}/tests/hardware_table", env!("CARGO_MANIFEST_DIR"));
    holds("score-1.json", &["machines", "score", "policies", &policies, "--json"]);
}

/// One run of each is no verdict: what cannot be judged is null, and nothing is infinite.
#[test]
fn an_experiment_without_a_verdict_is_valid() {
    let file = std::env::temp_dir().join(format!("wattwise-schema-none-{}.jsonl", std::process::id()));
    let path = file.to_str().unwrap();
    let few = ["--of", "time", "--idle-floor", "0", "--warm-up", "0", "--pilot", "3", "--pairs", "3"];
    let args = [
        &["ab", "--json", "--others", "100%", "--budget", "1ms", "-o", path][..],
        &few,
        &["true", "sleep 0.2"],
    ];
    holds("ab-1.json", &args.concat());
    let out =
        std::process::Command::new(env!("CARGO_BIN_EXE_wattwise")).args(["report", path]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("cannot be compared") || text.contains("not enough runs"), "{text}");
    assert!(!["inf", "NaN", "null"].iter().any(|w| text.contains(w)), "{text}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn measured_and_modelled_results_are_valid() {
    let locks = ["bench", "locks", "--machine", "i7-4510u", "--cs", "short", "--ncs", "long", "--json"];
    let file = std::env::temp_dir().join(format!("wattwise-schema-{}.jsonl", std::process::id()));
    let file = file.to_str().unwrap();
    let ab = [
        "ab",
        "--json",
        "--of",
        "time",
        "--idle-floor",
        "0",
        "--warm-up",
        "0",
        "--pilot",
        "3",
        "--pairs",
        "3",
        "--others",
        "100%",
        "-o",
        file,
        "true",
        "sh -c true",
    ];
    let throughput =
        ["bench", "throughput", "--metric", "value ([0-9]+)", "-n", "1", "--json", "--", "echo", "value 5"];
    holds("run-1.json", &["run", "--json", "--", "true"]);
    holds("ab-1.json", &ab);
    holds("bench-locks-1.json", &locks);
    holds("bench-throughput-1.json", &throughput);
    holds("bench-wake-1.json", &["bench", "wake", "--times", "20", "--sleep", "300us", "--json"]);
    std::fs::remove_file(file).unwrap();
}
