//! The whole road on emulated machines, mounted as a user would see one: look, compare, apply, look again, measure, put back.
//! What a step prints or writes the next one takes as it is. Folders and files have blanks in their names, there is no HOME, and
//! nothing is a user's but one folder.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_emulator::{Emulator, fuse};

/// A machine in a folder, whose time runs.
struct Machine {
    folder: tempfile::TempDir,
    mount: Option<fuse::Mounted>,
    stop: Arc<AtomicBool>,
    beats: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.beats.take().map(std::thread::JoinHandle::join);
        drop(self.mount.take());
    }
}

impl Machine {
    /// Mounts it. `None`, said aloud, where this system cannot; under CI that is a failure.
    fn mounted(name: &str) -> Option<Machine> {
        let emulator = wattwise_emulator::named(name).unwrap();
        let folder = tempfile::Builder::new().prefix("the road ").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("its files")).unwrap();
        let mount = match fuse::mount(&emulator, &folder.path().join("its files")) {
            Ok(mount) => mount,
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "no FUSE: {e}; CI needs it");
                eprintln!("skipped: no FUSE: {e} (Debian: fuse3)");
                return None;
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let beats = beats(emulator, Arc::clone(&stop));
        Some(Machine { folder, mount: Some(mount), stop, beats: Some(beats) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn root(&self) -> String {
        self.path("its files").display().to_string()
    }

    /// wattwise in the machine's folder.
    fn wattwise(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.args(args).current_dir(self.folder.path());
        for name in ["HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.output().unwrap()
    }

    fn done(&self, args: &[&str]) -> String {
        let out = self.wattwise(args);
        assert!(out.status.success(), "{args:?}: {}", told(&out));
        String::from_utf8(out.stdout).unwrap()
    }

    /// What a comparison says on the machine as `named`, kept in a file.
    fn compared(&self, named: &str, file: &str) -> Value {
        let text = self.done(&["compare", "build", "-m", named, "--replicas", "16", "--json"]);
        std::fs::write(self.path(file), &text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Every attribute that `set` may write: name and value.
    fn settings(&self) -> Vec<(String, String)> {
        let cpus = self.path("its files/sys/devices/system/cpu");
        let mut all = Vec::new();
        let policies = std::fs::read_dir(cpus.join("cpufreq")).into_iter().flatten().flatten();
        for folder in policies.map(|entry| entry.path()).chain([cpus.join("cpu0/cpufreq")]) {
            for file in
                ["scaling_governor", "scaling_min_freq", "scaling_max_freq", "energy_performance_preference"]
            {
                let path = folder.join(file);
                all.extend(
                    std::fs::read_to_string(&path).ok().map(|text| (path.display().to_string(), text)),
                );
            }
        }
        for file in ["intel_pstate/no_turbo", "intel_pstate/status", "cpufreq/boost"] {
            let path = cpus.join(file);
            all.extend(std::fs::read_to_string(&path).ok().map(|text| (file.to_owned(), text)));
        }
        all.sort();
        all
    }
}

fn beats(machine: Emulator, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            let passed = last.elapsed();
            last = Instant::now();
            machine.advance(passed.as_nanos() as u64);
        }
    })
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout)
}

fn recommended(result: &Value) -> &str {
    result["answer"]["recommended"].as_str().unwrap()
}

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
    virtual_machine_keeps_what_was_applied: "vm-2cpu",
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
