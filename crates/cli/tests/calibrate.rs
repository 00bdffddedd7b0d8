//! `calibrate` that is killed goes on where it was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn calibrate(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args([
            "calibrate",
            "--root",
            "emulated:core-i5-2gen",
            "--budget",
            "4min",
            "--json",
            "-o",
            "found.toml",
        ])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a calibration, as `kill -9` does, once so many lines are kept; what is kept then.
fn killed_at(folder: &Path, lines: usize) -> String {
    let mut child = calibrate(folder);
    let kept = folder.join("found.windows.jsonl");
    loop {
        let text = std::fs::read_to_string(&kept).unwrap_or_default();
        if text.lines().count() >= lines {
            child.kill().unwrap();
            child.wait().unwrap();
            return std::fs::read_to_string(&kept).unwrap();
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended with {} lines", text.lines().count());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_calibration_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("found.windows.jsonl"), "{\"calibration\":").unwrap();
    let first = killed_at(folder.path(), 4);
    let second = killed_at(folder.path(), first.lines().count() + 4);
    assert!(second.starts_with(&first), "measured again:\n{first}\n{second}");
    // The crash cut the last line short.
    let kept = folder.path().join("found.windows.jsonl");
    let whole = second.trim_end().rsplit_once('\n').unwrap().0;
    std::fs::write(&kept, &second.trim_end()[..whole.len() + 20]).unwrap();
    let third = killed_at(folder.path(), second.lines().count() + 2);
    assert!(third.starts_with(whole), "measured again:\n{whole}\n{third}");
    let mut lines: Vec<&str> = third.lines().collect();
    lines.pop_if(|_| !third.ends_with('\n'));
    for line in lines {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "after a line cut short: {line}");
    }

    let out = calibrate(folder.path()).wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(found["windows"].as_u64().unwrap() as usize >= third.lines().count() / 2, "{found}");
    assert!(folder.path().join("found.toml").exists() && !kept.exists());
}

/// The machine file, and what is printed, of a calibration in a folder of its own.
fn found(folder: &Path) -> (String, String) {
    let out = calibrate(folder).wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (std::fs::read_to_string(folder.join("found.toml")).unwrap(), String::from_utf8(out.stdout).unwrap())
}

/// An emulated machine begins anew with each process, but its figures are those of one that was not broken off.
#[test]
fn an_emulated_machine_that_was_broken_off_gives_the_same_figures() {
    let at_once = tempfile::tempdir().unwrap();
    let expected = found(at_once.path());
    for lines in [2, 9, 20] {
        let folder = tempfile::tempdir().unwrap();
        killed_at(folder.path(), lines);
        assert!(found(folder.path()) == expected, "killed after {lines} lines");
    }
    // What was kept by another version counts no more, and that is said.
    let folder = tempfile::tempdir().unwrap();
    let kept = killed_at(folder.path(), 9);
    let mut lines: Vec<String> = kept.lines().map(str::to_owned).collect();
    let mut window: serde_json::Value = serde_json::from_str(&lines[3]).unwrap();
    window["package_w"] = (window["package_w"].as_f64().unwrap() + 1.0).into();
    lines[3] = window.to_string();
    std::fs::write(folder.path().join("found.windows.jsonl"), lines.join("\n") + "\n").unwrap();
    let (machine, printed) = found(folder.path());
    assert!(machine == expected.0, "this run's own windows count");
    assert!(printed.contains("Window 3 came to something else"), "{printed}");
}

/// Ctrl-C ends it with a shell's status, and it goes on.
#[test]
fn an_interrupted_calibration_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let child = calibrate(folder.path());
    let kept = folder.path().join("found.windows.jsonl");
    while std::fs::read_to_string(&kept).unwrap_or_default().lines().count() < 3 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{message}");
    assert!(message.contains("signal 2 came; the same command goes on from here"), "{message}");
    assert!(kept.exists() && !folder.path().join("found.toml").exists());
    found(folder.path());
}

/// Where nothing meters energy there is nothing to calibrate by, and that is no success, unless the estimate was asked for.
#[test]
fn without_a_meter_nothing_is_calibrated() {
    let folder = tempfile::tempdir().unwrap();
    for (more, code) in [(&[][..], 3), (&["-o", "estimate.toml"], 0)] {
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(["calibrate", "--root", "emulated:bc10", "--budget", "30s"])
            .args(more)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains("nothing meters energy here") == (code == 3), "{more:?}: {said}");
    }
    assert!(folder.path().join("estimate.toml").exists() && !folder.path().join("this.toml").exists());
}
