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
