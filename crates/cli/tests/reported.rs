//! `report` of a result says what the command that wrote it printed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

fn wattwise(folder: &Path, args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const WORK: &str = "name = 'w'\nsummary = 's'\n[[task]]\nname = 'a'\nrounds = 30\nsteps = [{ run_us = [500, 2000] }, { sleep_us = 3000 }]\n";

#[test]
fn a_result_is_reported_in_the_words_of_its_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), WORK).unwrap();
    std::fs::write(folder.path().join("b.toml"), WORK.replace("rounds = 30", "rounds = 40")).unwrap();
    let tune =
        "tune a.toml b.toml -m thinkpad-r51 --space burst --budget trials=4 --replicas 40 --log log.jsonl";
    let locks = "bench locks --machine i7-4510u --threads 1,2 --cs short --ncs short --ms 5 --repeats 2";
    for line in [
        "compare burst -m i7-4510u -p schedutil -p performance --replicas 8",
        "compare burst sync -m i7-4510u -p schedutil -p performance --replicas 8",
        "calibrate --root emulated:core-i5-2gen --budget 60s -o this.toml",
        "trace python-loop",
        "import python-loop",
        tune,
        locks,
    ] {
        let call: Vec<&str> = line.split(' ').collect();
        let said = wattwise(folder.path(), &call);
        let result = wattwise(folder.path(), &[&call[..], &["--json"]].concat());
        std::fs::write(folder.path().join("result.json"), result).unwrap();
        let again = wattwise(folder.path(), &["report", "result.json"]);
        // `import` ends with what to do with the file that it was given.
        let said = said.split("replay it: ").next().unwrap();
        assert!(!again.is_empty() && said == again, "{line}\n{said}\n{again}");
        let page = ["report", "result.json", "--report", "r.html"];
        wattwise(folder.path(), &page);
        assert!(std::fs::metadata(folder.path().join("r.html")).unwrap().len() > 1000, "{line}");
    }
}

/// What is measured differs from run to run: its file is shown as the log is that it was judged from.
#[test]
fn an_experiments_result_is_reported_as_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let ab = "ab --root emulated:core-i5-2gen --of time --pairs 4 --pilot 3 --idle-floor 0 --warm-up 1 --window 100ms -o log.jsonl \
              --json performance powersave -- true";
    let result = wattwise(folder.path(), &ab.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>());
    std::fs::write(folder.path().join("result.json"), result).unwrap();
    let of = |file| wattwise(folder.path(), &["report", file]);
    assert_eq!(of("result.json"), of("log.jsonl"));
}

#[test]
fn a_result_of_an_older_version_is_answered_with_the_command_that_makes_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let made = wattwise(
        folder.path(),
        &["compare", "burst", "-m", "i7-4510u", "-p", "schedutil", "--exact", "--json"],
    );
    for version in ["1", "2"] {
        let old = made.replace("wattwise-compare-3", &format!("wattwise-compare-{version}"));
        std::fs::write(folder.path().join("old.json"), old).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(["report", "old.json"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2));
        let again = "make it again: wattwise compare burst -m i7-4510u -p schedutil --json\n";
        assert!(
            said.starts_with("wattwise: old.json: ") && said.ends_with(again) && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// A result that was stopped is used, and said to be that: what it recommends is the best of a part.
#[test]
fn a_result_that_was_stopped_is_used_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (name, what) in [("compare", "comparison"), ("compare-mix", "comparison"), ("tune", "search")] {
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/results/{name}.json"));
        let mut result: serde_json::Value = serde_json::from_slice(&std::fs::read(whole).unwrap()).unwrap();
        let warned = |result: &serde_json::Value| {
            std::fs::write(folder.path().join("result.json"), result.to_string()).unwrap();
            let set = ["set", "--root", "emulated:core-i5-2gen", "--dry-run", "--from", "result.json"];
            let program = env!("CARGO_BIN_EXE_wattwise");
            let out = Command::new(program).args(set).current_dir(folder.path()).output().unwrap();
            String::from_utf8(out.stderr).unwrap().contains(&format!("its {what} was stopped early"))
        };
        assert!(!warned(&result), "{name}");
        result["stopped"] = true.into();
        if name == "tune" {
            result["verdict"]["worth_it"] = serde_json::Value::Null;
        }
        assert!(warned(&result), "{name}");
    }
}
