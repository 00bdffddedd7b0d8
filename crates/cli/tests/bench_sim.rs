//! `bench sim`: the jobs are those of the rules, and `--json` is as documented.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use std::process::Command;

fn bench(args: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(["bench", "sim", "--runs", "1", "--json"])
        .args(args)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("{key} of {of}"))
}

fn close(what: &str, got: f64, expected: f64, share: f64) {
    assert!((got / expected - 1.0).abs() <= share, "{what}: {got}, expected {expected}");
}

/// Seconds of the rules' mean burst at full speed, and of the mean sleep.
const BURST_S: f64 = 0.0011;
const SLEEP_S: f64 = 0.0055;

#[test]
fn three_shapes_are_the_jobs_of_the_rules() {
    let printed = bench(&["--seconds", "20"]);
    let jobs = printed["jobs"].as_array().unwrap();
    let shapes: Vec<(&str, f64, f64, f64)> = jobs
        .iter()
        .map(|j| {
            (j["job"].as_str().unwrap(), number(j, "tasks"), number(j, "cpus"), number(j, "simulated_s"))
        })
        .collect();
    assert_eq!(
        shapes,
        [("small", 8., 4., 20.), ("crowded", 64., 4., 20.), ("wide", 448., 224., 1.), ("full", 10., 4., 1.)]
    );
    for j in &jobs[..3] {
        assert_eq!(number(j, "ticks"), number(j, "simulated_s") * 100.0, "one tick in 10 ms: {j}");
        assert_eq!(number(j, "events"), 2.0 * number(j, "bursts") + number(j, "ticks"), "{j}");
    }
    let a_second = |j: &Value, key: &str| number(j, key) / number(j, "simulated_s");
    // Four cores that are never idle; whoever waits in the queue has begun a burst, too.
    let [small, crowded, wide, _] = &jobs[..] else { panic!("four jobs") };
    close("crowded bursts", a_second(crowded, "bursts"), 4.0 / BURST_S, 0.02);
    // 10 W, and 12 W for each core at the highest speed, where it stays.
    close("crowded watts", a_second(crowded, "energy_j"), 58.0, 1e-6);
    // No task waits long for a core: between a burst at full speed and one at 0.4 of it.
    for (j, tasks) in [(small, 8.0), (wide, 448.0)] {
        let cycle_s = tasks / a_second(j, "bursts");
        assert!(cycle_s > BURST_S + SLEEP_S && cycle_s < BURST_S / 0.4 + SLEEP_S, "{j}");
    }
    // 56 times the tasks on 56 times the cores: as many bursts each, but for less waiting.
    close("wide's load", a_second(wide, "bursts") / 56.0, a_second(small, "bursts"), 0.05);
    let ratio = number(wide, "ns_per_event") / number(small, "ns_per_event");
    close("wide over small", number(&printed, "wide_over_small"), ratio, 1e-12);
}

/// What other simulators of the same rules counted (bench/peers), to the burst and the millijoule.
#[test]
fn other_simulators_counted_the_same() {
    for (job, seconds, bursts, joules) in [
        ("small", "100", 110_419, 1953.597),
        ("crowded", "20", 72_732, 1160.0),
        ("wide", "40", 125_586, 1064.623),
    ] {
        let printed = bench(&["--job", job, "--seconds", seconds]);
        assert_eq!(printed["jobs"][0]["bursts"], bursts, "{job}");
        assert!((number(&printed["jobs"][0], "energy_j") - joules).abs() < 0.002, "{printed}");
    }
}

#[test]
fn the_json_is_as_documented() {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/bench-sim-1.json")).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let all = bench(&["--seconds", "1"]);
    let one = bench(&["--seconds", "1", "--job", "crowded"]);
    for printed in [&all, &one] {
        let wrong: Vec<String> =
            validator.iter_errors(printed).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(wrong, Vec::<String>::new());
    }
    assert_eq!(one["wide_over_small"], Value::Null);
    assert_eq!(one["jobs"].as_array().unwrap().len(), 1);
    for path in ["", "/jobs/0"] {
        let fields = all.pointer(path).unwrap().as_object().unwrap().clone();
        for field in fields.keys() {
            let mut without = all.clone();
            without.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(field);
            assert!(!validator.is_valid(&without), "without {path}/{field}");
        }
        let mut more = all.clone();
        more.pointer_mut(path).unwrap()["surprise"] = json!(1);
        assert!(!validator.is_valid(&more), "{path}/surprise");
    }
}
