//! `--machine this`: the calibrated model where there is one, else an estimate.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

/// With a folder of its own for what is kept of this machine.
fn wattwise(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise")).env("XDG_DATA_HOME", home).args(args).output().unwrap()
}

fn stdout(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn this_machine_is_the_calibrated_one_where_there_is_one() {
    let home = tempfile::tempdir().unwrap();
    let show =
        |what: &[&str]| stdout(&wattwise(home.path(), &[&["machines", "show", "this"], what].concat()));
    let estimate = show(&["--file"]);
    assert!(estimate.contains("summary = \"estimated: "), "{estimate}");

    let folder = home.path().join("wattwise");
    let file = folder.join("this.toml");
    std::fs::create_dir(&folder).unwrap();
    let keep = |text: &str| std::fs::write(&file, text).unwrap();

    // An estimate that was kept is made anew.
    keep(&estimate.replace("summary = \"estimated: ", "summary = \"stale: "));
    assert!(show(&[]).contains("this: estimated: "));

    let fitted = estimate.replace("summary = \"estimated: ", "summary = \"calibrated: ").replacen(
        "confidence = \"guess\"",
        "confidence = \"fitted\"",
        1,
    );
    keep(&format!("state = ['kernel 2.4.0']\n{fitted}"));
    assert!(show(&[]).contains("this: calibrated: "), "{}", show(&[]));
    assert_eq!(show(&["--file"]), format!("state = ['kernel 2.4.0']\n{fitted}"));
    let compared = stdout(&wattwise(home.path(), &["compare", "periodic", "-m", "this", "--exact"]));
    assert!(
        compared.contains("calibrated: ") && compared.contains("kernel 2.4.0, now kernel "),
        "{compared}"
    );
    // The work that runs here is judged by it with no flag given.
    let command = wattwise(home.path(), &["compare", "--exact", "--", "sleep", "0.05"]);
    assert!(stdout(&command).contains("calibrated: "), "{}", stdout(&command));

    let names = fitted.lines().find(|l| l.starts_with("cpu_names")).unwrap().to_owned();
    keep(&fitted.replace(&names, "cpu_names = ['Pentium III']"));
    let compared = stdout(&wattwise(home.path(), &["compare", "periodic", "-m", "this", "--exact"]));
    assert!(compared.contains("estimated: ") && compared.contains("another processor"), "{compared}");

    keep("kind = 1");
    let out = wattwise(home.path(), &["compare", "periodic", "-m", "this"]);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{message}");
    assert!(
        message.lines().count() == 1 && message.contains("this.toml") && message.contains("calibrate"),
        "{message}"
    );
}

/// Without another name a calibration is written where `this` finds it; where nothing meters energy, only if a file is named, since
/// an estimate would pass for a measurement.
#[test]
fn a_calibration_is_written_where_it_is_found() {
    let home = tempfile::tempdir().unwrap();
    let out = wattwise(home.path(), &["calibrate", "--budget", "1min", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let file = home.path().join("wattwise/this.toml");
    assert_eq!((json["file"].as_str(), json["default"].as_bool()), (file.to_str(), Some(true)), "{json}");
    let metered = !json["meters"].as_array().unwrap().is_empty();
    assert_eq!((json["written"].as_bool(), file.exists()), (Some(metered), metered), "{json}");
    let named = home.path().join("named.toml");
    wattwise(home.path(), &["calibrate", "--budget", "1min", "-o", named.to_str().unwrap()]);
    assert!(named.exists());
}
