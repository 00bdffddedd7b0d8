//! Every command line of README.md and of the guide is run, on emulated machines of three kinds, and ends well or says what is missing.
//!
//! The lines are taken from the files, so that a new one is tried too. What takes `--root` is run on each machine, and `-m this` is that
//! machine; what has to do with this one (recording, keeping work on few CPUs) is run here, without rights where it would change
//! anything. Counts and times are small; what a line reads is made before.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A stock laptop of Intel's whose intel_pstate is active, one of AMD's, and one with acpi-cpufreq.
const MACHINES: [&str; 3] = ["hybrid-laptop", "amd-laptop", "core-i5-2gen"];
/// A line that goes on until Ctrl-C gets it after this time.
const UNTIL_CTRL_C: Duration = Duration::from_secs(2);
/// No line takes so long.
const HUNG: Duration = Duration::from_secs(300);
/// Nobody.
const NOBODY: u32 = 65534;

/// What makes a command short: its words, and what is added.
const SHORT: [(&str, &str); 12] = [
    ("prove", "--duration 1200ms --block 200ms"),
    ("top", "--once --every 200ms"),
    ("bench wake", "--times 20 --sleep 300us"),
    ("compare", "--replicas 8"),
    ("machines check", "--replicas 8"),
    ("ab --resume", ""),
    ("ab", "--pairs 3 --pilot 3 --warm-up 1 --idle-floor 0 --window 1s"),
    ("tune", "--replicas 40"),
    ("calibrate", "--budget 60s"),
    ("bench locks", "--ms 2 --repeats 2 --threads 2"),
    ("bench transition", "--trials 2"),
    ("bench throughput", "--runs 1"),
];
/// What a line's words stand for here.
const STANDS_FOR: [(&str, &str); 5] = [
    ("--budget 2min", "--budget trials=40"),
    ("--duration 30s", "--duration 1s"),
    ("~/.local/state/wattwise/ab-1795257234-4711.jsonl", "$(ls -t state/wattwise/ab-*.jsonl | head -1)"),
    (" /mnt", " mnt"),
    ("-- program", "-- ./work"),
];
/// What would change this machine's own settings with rights, and so is run without.
const HERE: [&str; 2] = ["coreidle", "bench wake"];
/// What goes on until Ctrl-C.
const ENDLESS: [&str; 2] = ["coreidle governor", "emulate"];

/// The lines of README.md and the guide that call wattwise, without prompt, `sudo` and comment; each once.
fn lines() -> Vec<String> {
    let page =
        |name: &str| fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut inside = false;
    for line in (page("README.md") + &page("docs/guide.md")).lines() {
        if line.starts_with("```") {
            inside = !inside && line.starts_with("```console");
        } else if let (true, Some(call)) = (inside, line.strip_prefix("$ ")) {
            let call = call.split("  #").next().unwrap_or(call).split(" # ").next().unwrap_or(call).trim();
            let call = call.strip_prefix("sudo ").unwrap_or(call);
            let call = call
                .strip_prefix("cargo run --release -- ")
                .map_or(call.to_owned(), |c| format!("wattwise {c}"));
            let new = call.starts_with("wattwise ") && !lines.contains(&call);
            lines.extend(new.then_some(call));
        }
    }
    lines
}

/// A folder in which the lines find what they name.
fn world(folder: &Path) {
    let make = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    make("Makefile", "all: a b\na b:\n\t@seq 1 6000 | sort -R | gzip -9 >/dev/null\n");
    make("f", "text\n");
    make("work", "#!/bin/sh\nexit 0\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder.join("work"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.join("mnt")).unwrap();
    fs::create_dir_all(folder.join(".local/share/bash-completion/completions")).unwrap();
    for name in ["build", "compress", "sort"] {
        let bundled = format!("{}/../../workloads/{name}.perf.zst", env!("CARGO_MANIFEST_DIR"));
        let ours = match name {
            "build" => "my.perf",
            "compress" => "other.perf",
            _ => "third.perf",
        };
        let packed = fs::read(bundled).unwrap();
        fs::write(folder.join(ours), zstd::decode_all(&packed[..]).unwrap()).unwrap();
    }
    let result = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/compare.json")).unwrap();
    ["one.json", "two.json"].iter().for_each(|name| fs::write(folder.join(name), &result).unwrap());
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.join("nobody")).unwrap();
    std::os::unix::fs::chown(folder.join("nobody"), Some(NOBODY), Some(NOBODY)).unwrap();
    make("wattwise-tuned.toml", "speed = 'schedutil'\n");
}

/// A line as it is run: on this machine where none is given.
fn call(line: &str, machine: Option<&str>) -> String {
    let mut line = line.to_owned();
    for (words, here) in STANDS_FOR {
        line = line.replace(words, here);
    }
    if let Some((_, short)) = SHORT.iter().find(|(c, _)| line.starts_with(&format!("wattwise {c}"))) {
        line = before_the_command(&line, short);
    }
    let Some(machine) = machine else { return line };
    line = line.replace("-m this", &format!("-m emulated:{machine}"));
    line = line.replace("machines show this", &format!("machines show emulated:{machine}"));
    if takes_root(&line) && !line.contains("--root") {
        line = before_the_command(&line, &format!("--root emulated:{machine}"));
    }
    line
}

fn before_the_command(line: &str, words: &str) -> String {
    // `set --for make` has its command behind a flag.
    let at = line.find(" -- ").or_else(|| line.find(" --for make")).unwrap_or(line.len());
    format!("{} {words}{}", &line[..at], &line[at..]).trim_end().to_owned()
}

/// The words that name a line's command.
fn command_of(line: &str) -> Vec<&str> {
    let words: Vec<&str> = line.split_whitespace().skip(1).take(2).collect();
    let nested = ["bench", "machines", "coreidle", "locks"].contains(&words[0]);
    words[..if nested { words.len() } else { 1 }].to_vec()
}

fn takes_root(line: &str) -> bool {
    let out =
        Command::new(env!("CARGO_BIN_EXE_wattwise")).args(command_of(line)).arg("--help").output().unwrap();
    String::from_utf8_lossy(&out.stdout).lines().any(|line| line.trim_start().starts_with("--root"))
}

/// Runs a line by the shell.
fn run(folder: &Path, line: &str) -> Output {
    let bin = Path::new(env!("CARGO_BIN_EXE_wattwise")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {line}")]).current_dir(folder).env("PATH", path);
    for (name, place) in [("HOME", "."), ("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data")] {
        shell.env(name, folder.join(place));
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if HERE.iter().any(|c| line.starts_with(&format!("wattwise {c}"))) {
        shell.uid(NOBODY).gid(NOBODY).env("XDG_STATE_HOME", folder.join("nobody"));
    }
    let child = shell.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let endless = ENDLESS.iter().any(|c| line.starts_with(&format!("wattwise {c}")));
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let begun = Instant::now();
        let least = if endless { UNTIL_CTRL_C } else { HUNG };
        while wait.recv_timeout(Duration::from_millis(50)).is_err() {
            if begun.elapsed() > HUNG {
                _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            } else if begun.elapsed() > least {
                _ = rustix::process::kill_process_group(pid, rustix::process::Signal::INT);
            }
        }
    });
    let out = child.wait_with_output().unwrap();
    _ = done.send(());
    watch.join().unwrap();
    out
}

/// Why an end is not one that the README's reader may see; none where it is.
fn wrong(out: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&out.stderr);
    match (out.status.code(), out.status.signal()) {
        (Some(0), _) => None,
        // One line, which says what is missing.
        (Some(3), _) if said.lines().any(|l| l.starts_with("wattwise: ") && l.len() > 40) => None,
        // A machine on which nothing better was found has nothing to compare.
        (Some(2), _) if said.contains("--from servers.json: it says to keep ") => None,
        (code, signal) => Some(format!("exit {code:?}, signal {signal:?}: {}", said.trim())),
    }
}

/// Runs every line on a machine; the first also has those lines that ask for none, and say the same on each.
fn every_line_works_or_says_what_is_missing(on: usize) {
    let lines = lines();
    assert!(lines.len() > 50, "{lines:?}");
    let mut failed = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    world(folder.path());
    for line in &lines {
        let here = call(line, Some(MACHINES[on]));
        // What asks for no machine says the same on each; but `servers.json` is read by other lines, so each folder has its own.
        if on > 0 && !here.contains(MACHINES[on]) && !here.contains("> servers.json") {
            continue;
        }
        let begun = Instant::now();
        let out = run(folder.path(), &here);
        println!("{:6.1} s  {:?}  {here}", begun.elapsed().as_secs_f64(), out.status.code());
        failed.extend(wrong(&out).map(|why| format!("{line}\n  as: {here}\n  {why}")));
    }
    assert!(failed.is_empty(), "{} lines fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_line_works_or_says_what_is_missing_on_a_hybrid_laptop() {
    every_line_works_or_says_what_is_missing(0);
}

#[test]
fn every_line_works_or_says_what_is_missing_on_an_amd_laptop() {
    every_line_works_or_says_what_is_missing(1);
}

#[test]
fn every_line_works_or_says_what_is_missing_on_an_older_notebook() {
    every_line_works_or_says_what_is_missing(2);
}

/// What the test takes from the file is what a reader would type.
#[test]
fn lines_are_taken_as_they_are_typed() {
    let lines = lines();
    assert!(lines.iter().any(|l| l == "wattwise compare"), "{lines:?}");
    assert!(lines.iter().all(|l| !l.contains("  ") && !l.contains('#')), "{lines:?}");
    assert_eq!(
        call("wattwise ab schedutil powersave -- make -j2", Some("amd-laptop")),
        "wattwise ab schedutil powersave --pairs 3 --pilot 3 --warm-up 1 --idle-floor 0 --window 1s --root \
         emulated:amd-laptop -- make -j2"
    );
}
