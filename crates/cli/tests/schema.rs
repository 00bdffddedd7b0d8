//! `docs/schema` takes what `--json` prints, and `compare-1.json` nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../report/tests/support/mod.rs"]
mod support;

use jsonschema::Validator;
use serde_json::{Value, json};
use wattwise_advice::result::Comparison;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/schema/compare-1.json")).unwrap()
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
    broken("/schema", json!("wattwise-compare-2"));
    broken("/results", json!([]));
    broken("/results/3/energy_j", json!(-0.1));
    // What a figure that is not a number turns into.
    broken("/results/0/mean_w", Value::Null);
    broken("/results/0/slowdown", json!(0.5));
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
    assert_eq!(objects.len(), 10, "kinds of object in the schema: {objects:?}");
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
#[test]
fn measured_and_modelled_results_are_valid() {
    let locks = ["bench", "locks", "--model", "i7-4510u", "--cs", "short", "--ncs", "long", "--json"];
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
    for (schema, args) in [
        (include_str!("../../../docs/schema/run-1.json"), &["run", "--json", "--", "true"][..]),
        (include_str!("../../../docs/schema/ab-1.json"), &ab),
        (include_str!("../../../docs/schema/bench-locks-1.json"), &locks),
        (include_str!("../../../docs/schema/bench-throughput-1.json"), &throughput),
        (
            include_str!("../../../docs/schema/bench-wake-1.json"),
            &["bench", "wake", "--times", "20", "--sleep", "300us", "--json"],
        ),
    ] {
        let schema: Value = serde_json::from_str(schema).unwrap();
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
    std::fs::remove_file(file).unwrap();
}
