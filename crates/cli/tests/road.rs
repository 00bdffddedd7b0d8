//! The whole road on emulated machines, mounted as a user would see one: look, compare, apply, look again, measure, put back.
//! What a step prints or writes the next one takes as it is. Folders and files have blanks in their names, there is no HOME, and
//! nothing is a user's but one folder.
#![allow(clippy::unwrap_used)]

#[path = "support/mounted.rs"]
mod mounted;

use mounted::{Machine, recommended, told};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A machine that somebody has limited, an answer for it, the answer applied, and the machine asked again: it keeps what it
/// has, whether it is named as a tree or as a capture of it. Then all is put back.
fn walked(name: &str) {
    let Some(m) = Machine::mounted(name) else { return };
    let (root, original) = (m.root(), m.settings());
    let limited = m.wattwise(&["set", "--root", &root, "--max", "30%"]);
    let can_be_set = limited.status.success();
    assert!(can_be_set || name == "vm-2cpu", "{name}: {}", told(&limited));
    let limits = m.settings();
    assert!(limits != original || !can_be_set, "{name}");

    m.done(&["capture", "--root", &root, "-o", "the machine.wattwise"]);
    let of_capture = m.compared("the machine.wattwise", "of a capture.json");
    let first = m.compared(&root, "first result.json");
    assert_eq!(recommended(&of_capture), recommended(&first), "{name}: a tree and its capture");
    let set = ["set", "--root", &root, "--from", "first result.json"];
    if !can_be_set {
        assert_eq!(m.wattwise(&set).status.code(), Some(3), "{name}");
        return;
    }
    m.done(&set);
    let second = m.compared(&root, "second result.json");
    let (now, advised) = (second["reference"].as_str().unwrap(), recommended(&second));
    assert_eq!(now, advised, "{name}: after {}: {}", recommended(&first), first["answer"]["apply"]);
    // Applied once more nothing changes.
    let applied = m.settings();
    m.done(&["set", "--root", &root, "--from", "second result.json"]);
    assert_eq!(m.settings(), applied, "{name}: {now}");
    m.done(&["restore", "--root", &root]);
    assert_eq!(m.settings(), original, "{name}");
}

/// One test a machine: they take their time each.
macro_rules! machines {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            walked($name);
        })*

        #[test]
        fn every_emulated_machine_is_walked() {
            let walked = [$($name),*];
            for name in wattwise_emulator::names() {
                assert!(walked.contains(&name) || LARGE.contains(&name), "{name}");
            }
        }
    };
}

/// Their files are many, and like those of the others.
const LARGE: [&str; 2] = ["server-64", "server-256"];

machines! {
    amd_laptop_keeps_what_was_applied: "amd-laptop",
    amd_server_keeps_what_was_applied: "amd-server",
    arm_keeps_what_was_applied: "arm-big-little",
    bc10_keeps_what_was_applied: "bc10",
    core_i5_keeps_what_was_applied: "core-i5-2gen",
    hybrid_laptop_keeps_what_was_applied: "hybrid-laptop",
    active_server_keeps_what_was_applied: "skylake-server-active",
    passive_server_keeps_what_was_applied: "skylake-server-passive",
    thinkpad_r51_keeps_what_was_applied: "thinkpad-r51",
    virtual_machine_keeps_what_was_applied: "vm-2cpu",
}

/// The policy that is in force after these writes: files below `cpu`, and values.
type Left = (&'static str, &'static [(&'static str, &'static str)]);

macro_rules! left_in_force {
    ($($test:ident: $name:literal, $left:expr;)*) => {
        $(
            #[test]
            fn $test() {
                what_is_in_force_is_kept_or_lifted($name, $left);
            }
        )*
    };
}

// Limits of every kind, as other programs leave them.
left_in_force! {
    hwp_s_limits_are_kept_or_lifted: "hybrid-laptop", (
        "hwp+max=40%+min=20%+latency=150us",
        &[("intel_pstate/max_perf_pct", "40"), ("intel_pstate/min_perf_pct", "20"), (LATENCY, "150")],
    );
    tunables_are_kept_or_lifted: "core-i5-2gen", (
        "ondemand:up=40,rate=150000,io_is_busy=yes+latency=20us",
        &[
            ("cpufreq/ondemand/up_threshold", "40"),
            ("cpufreq/ondemand/sampling_rate", "150000"),
            ("cpufreq/ondemand/io_is_busy", "1"),
            (LATENCY, "20"),
        ],
    );
    no_boost_is_kept_or_lifted: "amd-laptop", (
        "amd-pstate-epp+noboost+latency=10us",
        &[("cpufreq/boost", "0"), (LATENCY, "10")],
    );
    shut_c_states_of_arm_are_kept_or_lifted: "arm-big-little", (
        "schedutil+cmax=cpu-sleep",
        &[("cpu*/cpuidle/state2/disable", "1")],
    );
    tunables_of_each_policy_are_kept_or_lifted: "arm-big-little", (
        "schedutil:rate_limit=12345",
        &[
            ("cpufreq/policy0/schedutil/rate_limit_us", "12345"),
            ("cpufreq/policy4/schedutil/rate_limit_us", "12345"),
        ],
    );
    // How fast its boost is acpi-cpufreq does not tell: the model has none, and what is off stays off.
    shut_c_states_are_kept_or_lifted: "core-i5-2gen", (
        "ondemand+cmax=C1",
        &[("cpufreq/boost", "0"), ("cpu*/cpuidle/state2/disable", "1"), ("cpu*/cpuidle/state3/disable", "1")],
    );
}

const LATENCY: &str = "cpu*/power/pm_qos_resume_latency_us";

/// Writes a file of a mounted machine's CPUs; `cpu*` is each of them.
fn left(m: &Machine, file: &str, value: &str) {
    let cpus = m.path("its files/sys/devices/system/cpu");
    let one = |file: &str| std::fs::write(cpus.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    match file.strip_prefix("cpu*/") {
        None => one(file),
        Some(rest) => (0..64)
            .filter(|cpu| cpus.join(format!("cpu{cpu}/{rest}")).exists())
            .for_each(|cpu| one(&format!("cpu{cpu}/{rest}"))),
    }
}

/// What others have left in force is the reference, in a capture as on the machine. What is applied then is in force without it,
/// or with it where it is kept: asked again, the machine keeps what it has.
fn what_is_in_force_is_kept_or_lifted(name: &str, (in_force, files): Left) {
    let Some(m) = Machine::mounted(name) else { return };
    let root = m.root();
    files.iter().for_each(|(file, value)| left(&m, file, value));
    m.done(&["capture", "--root", &root, "-o", "as it is.wattwise"]);
    let first = m.compared("as it is.wattwise", "first.json");
    assert_eq!(first["reference"], in_force, "{name}");
    let before = m.settings();
    m.done(&["set", "--root", &root, "--policy", "current"]);
    assert_eq!(m.settings(), before, "{name}: what is in force");
    m.done(&["set", "--root", &root, "--policy", in_force]);
    assert_eq!(m.in_force(&root), in_force, "{name}: its own policy changes nothing");

    m.done(&["set", "--root", &root, "--from", "first.json"]);
    let again = m.done(&["set", "--root", &root, "--from", "first.json", "--dry-run"]);
    assert!(again.contains("nothing would change: all is as asked"), "{name}: {again}");
    m.done(&["capture", "--root", &root, "-o", "afterwards.wattwise"]);
    let second = m.compared("afterwards.wattwise", "second.json");
    assert_eq!(
        second["answer"]["recommended"], second["reference"],
        "{name}: after {}",
        first["answer"]["apply"]
    );
    m.done(&["restore", "--root", &root]);
    assert_eq!(m.in_force(&root), in_force, "{name}: put back");
}

/// A result is what `ab`, `run` and `compare` take, and what they print goes into a shell as it is.
#[test]
fn a_result_is_taken_by_every_command() {
    let Some(m) = Machine::mounted("core-i5-2gen") else { return };
    let root = m.root();
    m.done(&["set", "--root", &root, "--max", "30%"]);
    let first = m.compared(&root, "a result.json");
    let (reference, advised) = (first["reference"].as_str().unwrap(), recommended(&first).to_owned());
    assert_ne!(reference, advised);

    let again = m.done(&["compare", "build", "-m", &root, "-p", "@a result.json", "--exact", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert!(again["results"].as_array().unwrap().iter().any(|r| r["policy"] == advised.as_str()), "{again}");

    let ran = m.done(&["run", "--root", &root, "-p", "@a result.json", "--json", "--", "true"]);
    let ran: Value = serde_json::from_str(&ran).unwrap();
    assert_eq!(ran["policy"], "@a result.json");

    let ab = [
        "ab",
        "--root",
        &root,
        "--from",
        "a result.json",
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
        "-o",
        "the log.jsonl",
        "--json",
        "--",
        "true",
    ];
    let judged: Value = serde_json::from_str(&m.done(&ab)).unwrap();
    assert_eq!(judged["arms"].as_array().unwrap().len(), 2, "{judged}");
    let log = std::fs::read_to_string(m.path("the log.jsonl")).unwrap();
    assert!(
        log.contains(&format!("\"policy\":\"{reference}\""))
            && log.contains(&format!("\"policy\":\"{advised}\""))
    );

    // The printed command is pasted: through a shell, without sudo, with the program's own place.
    let text = m.done(&["compare", "build", "-m", &root, "--replicas", "16"]);
    let line = text.lines().find_map(|l| l.strip_prefix("To apply it: sudo wattwise ")).expect(&text);
    let before = m.settings();
    let shell = format!("'{}' {line}", env!("CARGO_BIN_EXE_wattwise"));
    let pasted = Command::new("sh").args(["-c", &shell]).current_dir(m.folder.path()).output().unwrap();
    assert!(pasted.status.success(), "{shell}: {}", told(&pasted));
    assert_ne!(m.settings(), before);

    // What a result does not have is refused with what it has.
    let out = m.wattwise(&["set", "--root", &root, "--from", "a result.json", "--policy", "schedutl"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(told(&out).contains("has no policy schedutl; did you mean schedutil"), "{}", told(&out));
}

/// An experiment goes on where it was begun, by its own `--root`; on another machine it is refused in words.
#[test]
fn an_experiment_knows_its_machine() {
    let Some(m) = Machine::mounted("core-i5-2gen") else { return };
    let root = m.root();
    let ab = [
        "ab",
        "--root",
        &root,
        "ondemand",
        "powersave",
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
        "-o",
        "log.jsonl",
        "--json",
        "--",
        "true",
    ];
    m.done(&ab);
    let same = m.wattwise(&["ab", "--resume", "log.jsonl", "--json"]);
    assert!(same.status.success(), "{}", told(&same));
    for other in ["emulated:amd-laptop", "emulated:skylake-server-passive"] {
        let out = m.wattwise(&["ab", "--resume", "log.jsonl", "--root", other]);
        assert_eq!(out.status.code(), Some(2), "{other}");
        assert!(told(&out).contains("was begun on another machine: its processor was"), "{}", told(&out));
    }
    // Another kernel is another machine.
    let log = std::fs::read_to_string(m.path("log.jsonl")).unwrap();
    let kernel = "\"kernel\":\"";
    assert!(log.contains(kernel), "{log}");
    std::fs::write(m.path("log.jsonl"), log.replacen(kernel, "\"kernel\":\"x", 1)).unwrap();
    let out = m.wattwise(&["ab", "--resume", "log.jsonl"]);
    assert!(told(&out).contains("its kernel was x"), "{}", told(&out));
}

/// An emulated machine's time runs while it is measured over; a capture's does not, which is said.
#[test]
fn an_idle_machine_is_idle_by_whatever_name() {
    let Some(m) = Machine::mounted("hybrid-laptop") else { return };
    let joules = |root: &str| {
        let text = m.done(&["run", "--root", root, "--json", "--", "sleep", "1"]);
        let run: Value = serde_json::from_str(&text).unwrap();
        run["machine"]["joules"].as_f64().expect(&text)
    };
    let (mount, name) = (joules(&m.root()), joules("emulated:hybrid-laptop"));
    assert!((name / mount - 1.0).abs() < 0.3, "{mount} J by its mount, {name} J by its name");
    m.done(&["capture", "--root", &m.root(), "-o", "still.wattwise"]);
    let out = m.wattwise(&["run", "--root", "still.wattwise", "--", "true"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(told(&out).contains("a capture stands still"), "{}", told(&out));
}

/// What the test's helper stands on: a folder with blanks and a machine in it.
#[test]
fn nothing_persists_where_nothing_can() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(["set", "--root", "emulated:core-i5-2gen", "--governor", "powersave"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(out.status.success() && told(&out).contains("nothing of it persists"), "{}", told(&out));
    assert!(Path::new(folder.path()).read_dir().unwrap().next().is_none());
}
