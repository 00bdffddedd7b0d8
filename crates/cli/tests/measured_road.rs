//! The whole road with a measurement in it, on emulated machines whose watts nobody has told: calibrated, compared, set, measured,
//! put back. By a user without root, a home or a name without blanks, on a mounted machine and on one by name.
#![allow(clippy::unwrap_used)]

#[path = "support/mounted.rs"]
mod mounted;

use mounted::{Machine, recommended, told};
use serde_json::Value;
use wattwise_calibrate::truth;

/// The user `nobody`, where the tests run as root; else whoever runs them.
fn somebody() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(65534)
}

/// Work of a second: two programs that wait for each other.
const WORK: &str = "name = 'my work'\nsummary = 'bursts'\n[[task]]\nname = 'work'\ncount = 2\nrounds = 40\n\
                    steps = [{ run_us = [2000, 9000] }, { sleep_us = [500, 4000] }]\n";

/// The flags of a short experiment.
const SHORT: [&str; 15] = [
    "--of",
    "time",
    "--pairs",
    "3",
    "--pilot",
    "3",
    "--warm-up",
    "0",
    "--idle-floor",
    "0",
    "--window",
    "50ms",
    "--json",
    "--",
    "true",
];

/// The road from the machine as `root` names it. `stays`: whether what is set there stays.
fn walked(m: &Machine, name: &str, (root, stays): (&str, bool), budget: &str) {
    std::fs::write(m.path("my work.toml"), WORK).unwrap();
    let original = m.settings();
    m.done(&["calibrate", "--root", root, "--budget", budget, "-o", "its model.toml", "--keep-bad"]);
    assert_eq!(m.settings(), original, "{name}: calibrated");
    let compare = |file: &str| m.done(&["compare", "my work.toml", "-m", file, "--replicas", "16", "--json"]);
    let text = compare("its model.toml");
    std::fs::write(m.path("the answer.json"), &text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let (reference, advised) = (answer["reference"].as_str().unwrap(), recommended(&answer));

    let set = m.wattwise(&["set", "--root", root, "--from", "the answer.json"]);
    if answer["answer"]["apply"].is_null() {
        assert_eq!(set.status.code(), Some(3), "{name}: {advised}: {}", told(&set));
        return;
    }
    assert!(set.status.success(), "{name}: {advised}: {}", told(&set));
    if stays {
        let again = m.done(&["set", "--root", root, "--from", "the answer.json", "--dry-run"]);
        assert!(again.contains("nothing would change: all is as asked"), "{name}: {advised}: {again}");
    }
    let log = format!("the log of {name}.jsonl");
    let ab = ["ab", "--root", root, "--from", "the answer.json", "-o", &log];
    let ab = m.wattwise(&[&ab[..], &SHORT].concat());
    if reference == advised {
        let why = told(&ab);
        assert!(
            why.contains(&format!("it says to keep {reference}, so there is nothing to compare")),
            "{name}: {why}"
        );
    } else {
        assert!(ab.status.success(), "{name}: {}", told(&ab));
        let judged: Value = serde_json::from_slice(&ab.stdout).unwrap();
        assert_eq!(judged["arms"].as_array().unwrap().len(), 2, "{name}: {judged}");
        m.done(&["ab", "--resume", &log, "--json"]);
    }
    if stays {
        m.done(&["restore", "--root", root]);
    }
    assert_eq!(m.settings(), original, "{name}: put back");
}

/// A machine with a truth, mounted for a user.
fn with_truth(name: &str) -> Option<Machine> {
    let machine = wattwise_emulator::named(name).unwrap();
    truth::behind(&machine, truth::USUAL, 1).unwrap();
    Machine::of(machine, somebody())
}

fn mounted(name: &str) {
    let Some(m) = with_truth(name) else { return };
    walked(&m, name, (&m.root(), true), "45s");
}

#[test]
fn a_mounted_machine_is_measured_and_set() {
    mounted("core-i5-2gen");
}

/// Machines of few CPUs, or those of `WATTWISE_MACHINES` (`all`, or names with commas): of 64 CPUs every file is a way through the kernel and
/// back, hundreds of thousands of times.
#[test]
#[ignore = "a minute"]
fn every_small_mounted_machine_is_measured_and_set() {
    let asked = std::env::var("WATTWISE_MACHINES").unwrap_or_else(|_| "bc10,vm-2cpu,arm-big-little".into());
    match asked.as_str() {
        "all" => wattwise_emulator::names().for_each(mounted),
        names => names.split(',').for_each(mounted),
    }
}

/// By its name a machine begins anew with each command: nothing of it stays, and each step works all the same.
#[test]
fn a_machine_by_name_is_measured_and_set() {
    let Some(m) = with_truth("bc10") else { return };
    for name in wattwise_emulator::names().filter(|name| !name.starts_with("server-")) {
        walked(&m, name, (&format!("emulated:{name}"), false), "45s");
    }
}

/// What stands still cannot be measured over: that is one line, and no ten minutes.
#[test]
fn what_stands_still_is_not_calibrated() {
    let Some(m) = with_truth("core-i5-2gen") else { return };
    m.done(&["capture", "--root", &m.root(), "-o", "it stands still.wattwise"]);
    let tree = m.path("a tree of files/sys/devices/system/cpu");
    std::fs::create_dir_all(&tree).unwrap();
    for list in ["present", "online"] {
        std::fs::write(tree.join(list), "0\n").unwrap();
    }
    for root in ["it stands still.wattwise", "a tree of files"] {
        let out = m.wattwise(&["calibrate", "--root", root, "--budget", "45s", "-o", "none.toml"]);
        let why = told(&out);
        assert_eq!(out.status.code(), Some(3), "{root}: {why}");
        assert!(why.contains("stands still") && why.trim_end().lines().count() == 1, "{root}: {why}");
        assert!(!m.path("none.toml").exists());
    }
}
