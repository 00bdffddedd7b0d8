//! What a package needs beside the program, and how much a command says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn wattwise(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(args)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What bash offers for a line.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let ask = format!(
        ". {}; COMP_WORDS=({}); COMP_CWORD={}; _wattwise wattwise '{}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words.len() - 1,
        words[words.len() - 1]
    );
    let out = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
    assert!(out.stderr.is_empty(), "{}", text(&out.stderr));
    text(&out.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    let out = wattwise(folder.path(), &["completions", "bash"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let script = folder.path().join("wattwise.bash");
    std::fs::write(&script, &out.stdout).unwrap();
    assert_eq!(offered(&script, &["wattwise", "comp"]), ["compare", "completions"]);
    assert!(offered(&script, &["wattwise", "compare", "--max"]).contains(&"--max-slowdown".to_owned()));
    assert!(offered(&script, &["wattwise", "bench", "tr"]).contains(&"transition".to_owned()));
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let out = wattwise(folder.path(), &["completions", shell]);
        let script = text(&out.stdout);
        assert!(
            out.status.success() && script.contains("max-slowdown") && script.contains("wattwise"),
            "{shell}"
        );
    }
    let out = wattwise(folder.path(), &["completions", "tcsh"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
}

/// A page for each command that `--help` lists, which groff formats.
#[test]
fn there_is_a_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = wattwise(folder.path(), &["man", "--out", "share/man1"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let pages = folder.path().join("share/man1");
    let help = text(&wattwise(folder.path(), &["--help"]).stdout);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let named = commands.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let mut names: Vec<&str> =
        named.map(|l| l.split_whitespace().next().unwrap()).filter(|n| *n != "help").collect();
    assert!(names.len() > 20, "{names:?}");
    names.push("bench-locks");
    for name in names {
        let page = std::fs::read_to_string(pages.join(format!("wattwise-{name}.1"))).expect(name);
        assert!(page.contains(".TH wattwise-") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let one = wattwise(folder.path(), &["man", "bench", "locks"]);
    assert_eq!(one.stdout, std::fs::read(pages.join("wattwise-bench-locks.1")).unwrap());
    assert_eq!(wattwise(folder.path(), &["man", "bench", "lcks"]).status.code(), Some(2));
    let refused = wattwise(folder.path(), &["man", "--out", "/proc/none"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).starts_with("wattwise: --out /proc/none: "), "{}", text(&refused.stderr));
    let Ok(groff) = Command::new("groff")
        .args(["-man", "-Tutf8"])
        .arg(pages.join("wattwise-compare.1"))
        .stdin(Stdio::null())
        .output()
    else {
        return println!("no groff here: the pages were not formatted");
    };
    let page = text(&groff.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("how much slower than the reference") && groff.status.success(),
        "{page}{}",
        text(&groff.stderr)
    );
}

#[test]
fn quiet_says_only_the_result_and_verbose_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let compare = ["compare", "burst", "-m", "i7-4510u", "-p", "schedutil", "--exact", "--report", "r.html"];
    let with = |flag: &[&str]| wattwise(folder.path(), &[&compare, flag].concat());
    let (usual, quiet, verbose) = (with(&[]), with(&["-q"]), with(&["--verbose"]));
    assert!(usual.stdout == verbose.stdout && !quiet.stdout.is_empty());
    // The result without the lines that say what else there is to see.
    let hints = text(usual.stdout.strip_prefix(&quiet.stdout[..]).expect("the same result"));
    assert!(hints.contains("--notes") && hints.contains("For your own machine: "), "{hints}");
    assert_eq!(text(&usual.stderr), "wattwise: report written (--report r.html)\n");
    assert_eq!(text(&quiet.stderr), "");
    let said = text(&verbose.stderr);
    assert!(said.contains("on i7-4510u: ") && said.contains("1 policies against schedutil"), "{said}");
    // Before the command, too; what went wrong is always told.
    let wrong = wattwise(folder.path(), &["-q", "compare", "brust"]);
    assert!(text(&wrong.stderr).contains("did you mean 'burst'"), "{}", text(&wrong.stderr));
    assert_eq!(wattwise(folder.path(), &["-q", "-v", "workloads"]).status.code(), Some(2));
}

/// A command that stands where another word was expected is answered with the line that was meant.
#[test]
fn a_command_without_dashes_is_told_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (call, line) in [
        (&["run", "ls", "-l"][..], "wattwise run -- ls -l"),
        (&["run", "-p", "schedutil", "ls", "a b"], "wattwise run -p schedutil -- ls 'a b'"),
        (&["compare", "ls", "-l"], "wattwise compare -- ls -l"),
        (&["compare", "build", "ls"], "wattwise compare -- ls"),
        (
            &["-q", "record", "-o", "x.perf", "/bin/sh", "-c", "true"],
            "wattwise -q record -o x.perf -- /bin/sh -c true",
        ),
    ] {
        let out = wattwise(folder.path(), call);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.ends_with(&format!("; a command stands after --: {line}\n")) && said.lines().count() == 1,
            "{said}"
        );
    }
    let said = text(&wattwise(folder.path(), &["compare", "no-such-work"]).stderr);
    assert!(!said.contains("stands after"), "{said}");
}

/// `-p schedutil` where the processor chooses: the driver is made passive for the run.
#[test]
fn a_governor_that_an_active_driver_does_not_have_comes_with_the_drivers_mode() {
    let folder = tempfile::tempdir().unwrap();
    for machine in ["hybrid-laptop", "amd-laptop"] {
        let root = format!("emulated:{machine}");
        let out = wattwise(folder.path(), &["run", "--root", &root, "-p", "schedutil", "--", "true"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        assert!(
            text(&out.stdout).contains("under schedutil") || text(&out.stderr).contains("under schedutil")
        );
        let mode =
            ["set", "--root", &root, "--driver-mode", "passive", "--governor", "schedutil", "--dry-run"];
        assert!(wattwise(folder.path(), &mode).status.success());
    }
}

/// A recorded command's recording stays, in the folder of states or where `--keep` says, and nothing in the working directory.
#[test]
fn a_compared_command_leaves_its_recording() {
    let folder = tempfile::tempdir().unwrap();
    let compare = ["compare", "-m", "i7-4510u", "-p", "schedutil", "--exact"];
    let out = wattwise(folder.path(), &[&compare[..], &["--", "true"]].concat());
    if out.status.code() == Some(3) {
        return println!("recording is not possible here: {}", text(&out.stderr));
    }
    let said = text(&out.stderr);
    let call = said.split("wattwise compare ").nth(1).expect("a line to go on with").lines().next().unwrap();
    let path = call.split(' ').next().unwrap();
    assert_eq!(call.strip_prefix(path), Some(" -m i7-4510u"), "{said}");
    assert!(path.starts_with(folder.path().join("state/wattwise/compare-").to_str().unwrap()), "{said}");
    let again = wattwise(folder.path(), &["compare", path, "-m", "i7-4510u", "-p", "schedutil", "--exact"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let kept = wattwise(folder.path(), &[&compare[..], &["--keep", "mine.perf", "--", "true"]].concat());
    assert!(kept.status.success() && folder.path().join("mine.perf").is_file(), "{}", text(&kept.stderr));
    // The last eight stay.
    for n in 0..9 {
        std::fs::write(folder.path().join(format!("state/wattwise/compare-100{n}-1.perf")), "").unwrap();
    }
    wattwise(folder.path(), &[&compare[..], &["--", "true"]].concat());
    let mut left: Vec<_> =
        std::fs::read_dir(folder.path().join("state/wattwise")).unwrap().flatten().collect();
    left.sort_by_key(|e| e.file_name());
    assert_eq!(left.len(), 8, "{left:?}");
    assert_eq!(left[0].file_name(), "compare-1003-1.perf");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "the folder of states and mine.perf: {names:?}");
}

/// A machine without a choice is told where there is one.
#[test]
fn a_command_on_a_machine_of_one_policy_is_offered_another() {
    let folder = tempfile::tempdir().unwrap();
    let out = wattwise(folder.path(), &["compare", "-m", "emulated:vm-2cpu", "--exact", "--", "true"]);
    if out.status.code() == Some(3) {
        return println!("recording is not possible here: {}", text(&out.stderr));
    }
    let said = text(&out.stderr);
    assert_eq!(
        said.lines().filter(|l| l.contains("one policy only") && l.contains("-m alderlake-p-laptop")).count(),
        1,
        "{said}"
    );
}

/// While it records, a terminal's standard error has the time and the events so far; a pipe has not.
#[test]
fn recording_shows_its_progress_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!("{} record -o r.perf -- sleep 1.3", env!("CARGO_BIN_EXE_wattwise"));
    let Ok(out) = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .current_dir(folder.path())
        .output()
    else {
        return println!("no script(1) here: nothing was seen on a terminal");
    };
    let seen = text(&out.stdout);
    if seen.contains("not possible here") {
        return println!("recording is not possible here: {seen}");
    }
    let counts: Vec<u64> = seen
        .split("recording: ")
        .skip(1)
        .filter_map(|p| p.split(", ").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert!(counts.len() >= 2 && counts.is_sorted(), "{seen:?}");
    assert!(seen.contains("recording: 1 s, ") && counts.last() > Some(&0), "{seen:?}");
    let piped = wattwise(folder.path(), &["record", "-o", "r.perf", "--", "true"]);
    assert!(!text(&piped.stderr).contains("recording: "), "{}", text(&piped.stderr));
}
