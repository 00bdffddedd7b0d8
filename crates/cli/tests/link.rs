//! `bench throughput --metric nuttcp` between two network namespaces: what it prints, and that nothing is left of them however it ends.
//!
//! Needs root, nuttcp and iproute2.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BENCH: [&str; 4] = ["bench", "throughput", "--metric", "nuttcp"];

fn wattwise(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    command.args(BENCH).args(args);
    command
}

/// Whether the tests can run here; what is missing is said, and is a failure under CI.
fn can_run() -> bool {
    let there = |tool: &str| Command::new("which").arg(tool).output().is_ok_and(|o| o.status.success());
    let missing = match () {
        () if !rustix::process::geteuid().is_root() => "needs root",
        () if !there("nuttcp") => "nuttcp is not installed",
        () if !there("ip") => "iproute2 is not installed",
        () => return true,
    };
    assert!(std::env::var_os("CI").is_none(), "{missing}; CI needs it");
    eprintln!("skipped: {missing}");
    false
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout)
}

fn json(args: &[&str]) -> Value {
    let out = wattwise(args).arg("--json").output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", told(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The network namespace of a task, from its folder in /proc.
fn namespace(task: &Path) -> Option<PathBuf> {
    std::fs::read_link(task.join("ns/net")).ok()
}

/// Every task of the system, or those of one process.
fn tasks(of: Option<u32>) -> Vec<PathBuf> {
    let numbers = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let number = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_str().unwrap().parse::<u32>().is_ok());
        entries.map(|e| e.path()).filter(number).collect()
    };
    let processes = match of {
        Some(pid) => vec![Path::new("/proc").join(pid.to_string())],
        None => numbers(Path::new("/proc")),
    };
    processes.iter().flat_map(|p| numbers(&p.join("task"))).collect()
}

/// The children of a process that are nuttcp.
fn nuttcps(parent: u32) -> Vec<u32> {
    let of = |task: &PathBuf| {
        let stat = std::fs::read_to_string(task.join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let ours = name == "nuttcp" && rest.split_whitespace().nth(1)? == parent.to_string();
        ours.then(|| task.file_name()?.to_str()?.parse().ok()).flatten()
    };
    tasks(None).iter().filter_map(of).collect()
}

/// The network namespaces that a running benchmark made, once both of its ends run: the two ends' own.
fn made(child: &Child) -> BTreeSet<PathBuf> {
    let home = namespace(Path::new("/proc/self")).unwrap();
    let mut both = BTreeSet::new();
    wait("both ends run in a namespace each", || {
        let ends = nuttcps(child.id());
        both = ends.iter().filter_map(|pid| namespace(&PathBuf::from(format!("/proc/{pid}")))).collect();
        both.remove(&home);
        both.len() == 2
    });
    both
}

/// Who is in one of these namespaces.
fn in_them(made: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    tasks(None).into_iter().filter(|task| namespace(task).is_some_and(|n| made.contains(&n))).collect()
}

/// Named namespaces and devices of ours in the namespace that all share.
fn left() -> Vec<String> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let mut left = names("/run/netns");
    left.extend(names("/sys/class/net").into_iter().filter(|n| n.starts_with("wattwise")));
    left
}

#[test]
fn nothing_is_left_however_it_ends() {
    if !can_run() {
        return;
    }
    let before = left();
    for (signal, code) in [("TERM", Some(143)), ("INT", Some(130)), ("KILL", None)] {
        let mut child = wattwise(&["-n", "20"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let made = made(&child);
        assert!(!in_them(&made).is_empty(), "{signal}");
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        assert_eq!(status.code(), code, "{signal}");
        // What a killed one leaves to the kernel ends at once, long before nuttcp's own two seconds.
        let begun = Instant::now();
        wait("nobody is in its namespaces", || in_them(&made).is_empty());
        assert!(begun.elapsed() < Duration::from_millis(1500), "{signal}: {:?}", begun.elapsed());
        assert_eq!(left(), before, "{signal}");
    }
}

/// A client that fails, and a server that does not start.
#[test]
fn nothing_is_left_after_an_error() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let fake = |script: &str| {
        let path = folder.path().join("nuttcp");
        std::fs::write(
            &path,
            format!("#!/bin/sh\nreadlink /proc/self/ns/net >>{}\n{script}\n", seen.display()),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let before = left();
    fake("case $1 in -S) exec sleep 60;; esac; echo no route; exit 3");
    let paths = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let out = wattwise(&["-n", "2"]).env("PATH", paths).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", told(&out));
    assert!(told(&out).contains("it printed last: no route"), "{}", told(&out));
    let made: BTreeSet<PathBuf> =
        std::fs::read_to_string(&seen).unwrap().lines().map(PathBuf::from).collect();
    assert_eq!(made.len(), 2, "{made:?}");
    assert_eq!(in_them(&made), Vec::<PathBuf>::new());
    assert_eq!(left(), before);
}

#[test]
fn what_nuttcp_prints_is_told() {
    if !can_run() {
        return;
    }
    let result = json(&["-n", "2"]);
    assert_eq!(result["printed"], serde_json::json!(["%TX", "%RX", "msRTT"]));
    assert!(result["link"].as_str().unwrap().contains("two network namespaces"), "{result}");
    assert!(result["command"].as_array().unwrap().contains(&"192.0.2.2".into()), "{result}");
    for run in result["levels"][0]["trials"].as_array().unwrap() {
        assert!(run["figure"].as_f64().unwrap() > 1.0, "{run}");
        let printed: Vec<f64> =
            run["printed"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(printed.len() == 3 && printed.iter().all(|v| (0.0..=1000.0).contains(v)), "{run}");
        assert!(run.get("ran").is_none(), "nothing is slowed on this machine: {run}");
    }
    let text = wattwise(&["-n", "1"]).output().unwrap();
    assert!(told(&text).contains("%TX") && told(&text).contains("msRTT"), "{}", told(&text));
}

/// Where the speeds are another machine's, the board of the study runs for its share of the time: slower at a fifth of it.
#[test]
fn emulated_speeds_slow_the_receiver() {
    if !can_run() {
        return;
    }
    let result = json(&["-n", "4", "--root", "emulated:bc10", "--speeds", "600MHz,125MHz"]);
    assert!(result["emulated"].as_str().unwrap().contains("share"), "{result}");
    let level = |at: usize| &result["levels"][at];
    let ran = |at: usize| level(at)["trials"][0]["ran"].as_f64().unwrap();
    assert_eq!((&level(0)["khz"], &level(1)["khz"]), (&600_000.into(), &125_000.into()));
    assert!((ran(1) - 125.0 / 600.0).abs() < 0.05 && ran(0) > 0.9, "{} and {}", ran(0), ran(1));
    // The best of four: on a busy machine others have the CPU in some.
    let best = |at: usize| level(at)["figure"]["max"].as_f64().unwrap();
    assert!(best(1) < 0.8 * best(0), "{} Mbit/s at 125 MHz, {} at 600", best(1), best(0));
}
