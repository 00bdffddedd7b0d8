//! `tune` and `compare` that are killed, cut short or stopped: where they go on, what they say, and how they end.
//!
//! Kills are placed by strace at the writes of the log, which are all that a search leaves: between two of them nothing on disk
//! changes, so a kill anywhere in between is one of these. Signals are sent once the log, or a child's progress, shows that
//! the work has begun; nothing here is timed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const KILLED: i32 = 9;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&out.stderr)))
}

fn wattwise(folder: &Path) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    program.current_dir(folder);
    program
}

/// Bursts of this length with pauses of that, so many rounds.
fn write_work(folder: &Path, name: &str, (run_us, sleep_us, rounds): (u32, u32, u32)) {
    let text = format!(
        "name = '{name}'\nsummary = 'bursts'\n[[task]]\nname = 'work'\ncount = 2\nrounds = {rounds}\n\
         steps = [{{ run_us = [{}, {run_us}] }}, {{ sleep_us = [{}, {sleep_us}] }}]\n",
        run_us / 2,
        sleep_us / 2
    );
    std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

/// A search of 12 trials, whose test is of two recordings with 40 replicas.
fn search(folder: &Path) -> Command {
    for (name, shape) in
        [("a", (4000, 2000, 20)), ("b", (9000, 3000, 20)), ("c", (1000, 500, 20)), ("d", (7000, 4000, 9))]
    {
        write_work(folder, name, shape);
    }
    let mut program = wattwise(folder);
    program.args([
        "tune",
        "a.toml",
        "b.toml",
        "--test",
        "c.toml",
        "--test",
        "d.toml",
        "-m",
        "thinkpad-r51",
        "--space",
    ]);
    program.args([
        "caps",
        "--max-slowdown",
        "any",
        "--reference",
        "performance",
        "--budget",
        "12",
        "--replicas",
        "40",
        "--json",
        "-o",
        "found.toml",
        "--log",
        "found.jsonl",
    ]);
    program
}

fn resume(folder: &Path, more: &[&str]) -> Output {
    wattwise(folder).args(["tune", "--resume", "found.jsonl", "--json"]).args(more).output().unwrap()
}

/// The result, the policy file and the log of a search.
#[derive(PartialEq)]
struct Found(Vec<u8>, String, String);

fn found(folder: &Path, out: Output) -> Found {
    assert!(out.status.success(), "{:?}: {}", out.status, text(&out.stderr));
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    Found(out.stdout, file("found.toml"), file("found.jsonl"))
}

fn whole() -> Found {
    let folder = tempfile::tempdir().unwrap();
    let out = search(folder.path()).output().unwrap();
    found(folder.path(), out)
}

/// The same command under strace, killed before the n-th write to its log.
fn killed_at(folder: &Path, command: &Command, nth: usize) {
    let log = folder.join("found.jsonl");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e", "signal=none"]);
    strace.arg("-P").arg(&log).arg("-e").arg(format!("inject=write:signal=KILL:when={nth}"));
    strace.arg(command.get_program()).args(command.get_args()).current_dir(folder);
    let out = strace.output().unwrap();
    assert_eq!(out.status.signal(), Some(KILLED), "write {nth}: {:?}, {}", out.status, text(&out.stderr));
    assert!(!folder.join("found.toml").exists() || nth > 1, "write {nth}");
}

/// Killed before every write of its log, in search, confirmation and test, a search goes on to the bytes of one that was not.
#[test]
fn killed_anywhere_it_comes_to_the_same_result() {
    let expected = whole();
    let lines: Vec<&str> = expected.2.lines().collect();
    assert!(lines.len() >= 20, "{} points", lines.len());
    let in_test = lines.iter().position(|l| l.starts_with("{\"test\"")).unwrap();
    assert!(lines.len() - in_test >= 4, "a kill in the test, too: {in_test} of {}", lines.len());
    for nth in 1..=lines.len() {
        let folder = tempfile::tempdir().unwrap();
        let command = search(folder.path());
        killed_at(folder.path(), &command, nth);
        let log = std::fs::read_to_string(folder.path().join("found.jsonl")).unwrap();
        assert_eq!(log.lines().count(), nth - 1, "what is kept");
        let out = match nth {
            // Not even the plan is there: it is started again, and the empty file is in nobody's way.
            1 => {
                let refused = resume(folder.path(), &[]);
                assert_eq!(refused.status.code(), Some(2));
                assert!(text(&refused.stderr).contains("start it again without --resume"));
                search(folder.path()).output().unwrap()
            }
            _ => resume(folder.path(), &[]),
        };
        assert!(found(folder.path(), out) == expected, "killed before line {nth} ({:.40})", lines[nth - 1]);
    }
}

/// Twice: in the search, and again in the test.
#[test]
fn killed_twice_it_comes_to_the_same_result() {
    let expected = whole();
    let folder = tempfile::tempdir().unwrap();
    killed_at(folder.path(), &search(folder.path()), 8);
    let mut again = wattwise(folder.path());
    again.args(["tune", "--resume", "found.jsonl", "--json"]);
    // Behind the 7 lines that are there: before the last one that the test writes.
    killed_at(folder.path(), &again, expected.2.lines().count() - 8);
    let out = resume(folder.path(), &[]);
    assert!(text(&out.stderr).contains("was broken off in the test of"), "{}", text(&out.stderr));
    assert!(found(folder.path(), out) == expected);
    // Of one that is done the result is shown again.
    let out = resume(folder.path(), &[]);
    assert!(text(&out.stderr).contains("is complete"), "{}", text(&out.stderr));
    assert!(out.stdout == expected.0);
}

/// A power failure tears the last line anywhere.
#[test]
fn a_torn_line_is_dropped_with_a_word() {
    let expected = whole();
    for share in [1, 3, 5, 7, 9] {
        let folder = tempfile::tempdir().unwrap();
        _ = search(folder.path());
        // Never at the end of a line, and behind the plan.
        let mut cut = expected.2.find('\n').unwrap() + 1 + (expected.2.len() / 20) * share;
        while expected.2[..cut].ends_with('\n') {
            cut += 1;
        }
        std::fs::write(folder.path().join("found.jsonl"), &expected.2[..cut]).unwrap();
        let out = resume(folder.path(), &[]);
        assert!(
            text(&out.stderr).contains("last line was cut short and is left out"),
            "{}",
            text(&out.stderr)
        );
        assert!(found(folder.path(), out) == expected, "cut at byte {cut}");
    }
}

/// The budget of the plan counts, and what has been spent of it; another one is of the whole search, until the test.
#[test]
fn the_budget_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    killed_at(folder.path(), &search(folder.path()), 6);
    let out = resume(folder.path(), &["--budget", "20"]);
    let more = json(&out);
    assert_eq!((&more["spent"]["trials"], &more["spent"]["ended"]), (&20.into(), &"trials".into()));
    let out = resume(folder.path(), &["--budget", "30"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("test set has been opened for performance+max"),
        "{}",
        text(&out.stderr)
    );
    // Without one, that of the log, which is the second.
    let out = resume(folder.path(), &[]);
    assert_eq!(json(&out)["spent"]["trials"], 20);
}

/// Time that was spent before the kill is spent: nothing is left of this budget, and the trials of the log are the search.
#[test]
fn time_that_was_spent_is_spent() {
    let expected = whole();
    let folder = tempfile::tempdir().unwrap();
    _ = search(folder.path());
    let mut lines: Vec<String> = expected.2.lines().map(str::to_owned).collect();
    let mut plan: Value = serde_json::from_str(&lines[0]).unwrap();
    plan["plan"]["budget"] = serde_json::json!({ "trials": null, "time": { "secs": 3600, "nanos": 0 } });
    lines[0] = plan.to_string();
    let trials = lines.iter().filter(|l| l.starts_with("{\"trial\"")).count();
    lines.truncate(2 + trials);
    lines.push("{\"spent\":3600.5}".into());
    std::fs::write(folder.path().join("found.jsonl"), lines.join("\n") + "\n").unwrap();
    let result = json(&resume(folder.path(), &[]));
    // The rest of the batch that the log has begun is due.
    assert_eq!((&result["spent"]["trials"], &result["spent"]["ended"]), (&16.into(), &"time".into()));
}

#[test]
fn a_changed_plan_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    killed_at(folder.path(), &search(folder.path()), 6);
    let refused = |more: &[&str], word: &str| {
        let out = resume(folder.path(), more);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{more:?}: {message}");
        assert!(message.contains(word) && message.trim_end().lines().count() == 1, "{more:?}: {message}");
        assert!(out.stdout.is_empty());
    };
    for flag in [
        ["--seed", "7"],
        ["--replicas", "50"],
        ["--best", "time"],
        ["--max-slowdown", "3%"],
        ["--max-p99", "3%"],
    ] {
        refused(&flag, flag[0]);
    }
    refused(&["--space", "burst"], "--space");
    refused(&["--foreground", "work"], "--foreground");
    refused(&["--budget", "events=1e6"], "--budget NAME=NUMBER");
    // Of a recording of the test, at which nothing has looked so far.
    write_work(folder.path(), "d", (7000, 4000, 10));
    refused(&[], "the recording d has changed since it was planned");
    std::fs::remove_file(folder.path().join("d.toml")).unwrap();
    refused(&[], "d.toml");
}

/// A machine that is made of what its kernel says may come out differently another time: the log has it, and that counts.
#[test]
fn an_estimated_machine_is_the_one_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let command = search(folder.path());
    let args: Vec<_> = command
        .get_args()
        .map(|a| if a == "thinkpad-r51" { "emulated:core-i5-2gen".into() } else { a.to_owned() })
        .collect();
    let mut command = wattwise(folder.path());
    command.args(args);
    killed_at(folder.path(), &command, 6);
    let log = folder.path().join("found.jsonl");
    let text_of = |log: &str| -> Value { serde_json::from_str(log.lines().next().unwrap()).unwrap() };
    let before = std::fs::read_to_string(&log).unwrap();
    let mut plan = text_of(&before);
    let machine = plan["plan"]["machine_files"][0].as_str().unwrap().to_owned();
    plan["plan"]["machine_files"][0] = machine.replace("packages = 1", "packages = 2").into();
    assert_ne!(plan, text_of(&before), "{machine}");
    let changed = before.replacen(before.lines().next().unwrap(), &plan.to_string(), 1);
    std::fs::write(&log, changed).unwrap();
    let out = resume(folder.path(), &[]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    std::fs::write(&log, before).unwrap();
    let out = resume(folder.path(), &[]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

fn interrupt(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Starts a command, sends it a signal once it has begun its work, and waits for its end.
fn stopped(mut command: Command, signal: rustix::process::Signal, begun: impl Fn() -> bool) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child, signal);
    child.wait_with_output().unwrap()
}

/// One Ctrl-C in the search ends it: no test set is opened, no policy file written, and it goes on by its log.
#[test]
fn one_interrupt_opens_no_test_set() {
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = search(folder.path());
        let log = folder.path().join("found.jsonl");
        command = {
            let mut longer = wattwise(folder.path());
            longer.args(command.get_args().map(|a| if a == "12" { "100000".into() } else { a.to_owned() }));
            longer
        };
        let lines = || std::fs::read_to_string(&log).unwrap_or_default();
        let out = stopped(command, signal, || lines().lines().count() > 20);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
        let result = json(&out);
        assert_eq!((&result["stopped"], &result["stopped_in"]), (&true.into(), &"search".into()));
        assert_eq!(
            (&result["spent"]["ended"], &result["trials_asked"]),
            (&"stopped".into(), &100_000.into())
        );
        assert!(result["winner"]["test"].is_null() && result["verdict"]["worth_it"].is_null());
        assert!(result["winner"]["apply"].is_null());
        let verdict = result["verdict"]["text"].as_str().unwrap();
        assert!(
            verdict.starts_with("Stopped in the search, after") && verdict.contains("nothing is tested yet"),
            "{verdict}"
        );
        let said = text(&out.stderr);
        assert!(
            said.contains("of 100000 trials") && said.contains("wattwise tune --resume found.jsonl"),
            "{said}"
        );
        assert!(!folder.path().join("found.toml").exists());
        assert!(!lines().contains("{\"test"), "the test set was opened");
        // With what was seen by then as its budget it ends, and with the bytes of one that never was stopped.
        let out = resume(folder.path(), &["--budget", "48"]);
        let result = json(&out);
        assert!(out.status.success() && result["spent"]["trials"] == 48 && result.get("stopped").is_none());
    }
}

/// One in the test: what was chosen stays chosen, and the test goes on.
#[test]
fn an_interrupted_test_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let command = search(folder.path());
    let args: Vec<_> =
        command.get_args().map(|a| if a == "40" { "4096".into() } else { a.to_owned() }).collect();
    let mut command = wattwise(folder.path());
    command.args(args);
    let log = folder.path().join("found.jsonl");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    let out = stopped(command, rustix::process::Signal::INT, || lines().contains("{\"test\""));
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let result = json(&out);
    assert_eq!(result["stopped_in"], "test");
    let chosen = result["winner"]["policy"].as_str().unwrap();
    assert!(lines().contains(&format!("{{\"test\":\"{chosen}\"}}")), "{chosen}");
    assert!(!folder.path().join("found.toml").exists());
    let out = resume(folder.path(), &["--budget", "13"]);
    assert_eq!(out.status.code(), Some(2), "the search is over: {}", text(&out.stderr));
}

/// A comparison that takes long enough to be stopped, and how to see that its nominal run is over: none can, but its answer
/// is there whenever it is stopped.
#[test]
fn a_stopped_comparison_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        write_work(folder.path(), name, (4000, if name == "a" { 2000 } else { 1000 }, 400));
    }
    for (flag, signal, code) in
        [("--json", rustix::process::Signal::INT, 130), ("--markdown", rustix::process::Signal::TERM, 143)]
    {
        let mut command = wattwise(folder.path());
        command.args(["compare", "a.toml", "-m", "thinkpad-r51", "--replicas", "4096", flag]);
        let out = stopped_at_work(command, signal);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
        assert!(text(&out.stderr).contains("of 4096 replicas\n"), "{}", text(&out.stderr));
        assert!(text(&out.stdout).contains("Stopped after "), "{}", text(&out.stdout));
        if flag == "--json" {
            let result = json(&out);
            assert_eq!((&result["stopped"], &result["replicas_asked"]), (&true.into(), &4096.into()));
            let done = result["replicas"].as_u64().unwrap();
            assert!(done < 4096);
            let told = result["answer"]["text"].as_str().unwrap();
            assert!(told.starts_with(&format!("Stopped after {done} of 4096 replicas. ")), "{told}");
        }
    }
    let mut command = wattwise(folder.path());
    command.args(["compare", "a.toml", "b.toml", "-m", "thinkpad-r51", "--replicas", "4096", "--json"]);
    let out = stopped_at_work(command, rustix::process::Signal::INT);
    assert_eq!(out.status.code(), Some(130));
    let set = json(&out);
    assert_eq!((&set["stopped"], &set["comparisons_asked"]), (&true.into(), &2.into()));
    assert_eq!(set["comparisons"].as_array().unwrap().len(), 1);
}

/// The same when the time of its budget is over, which was asked for: it has succeeded. A time that suffices changes nothing.
#[test]
fn a_comparison_ends_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    write_work(folder.path(), "a", (4000, 2000, 400));
    let compared = |replicas: &str, budget: &str| {
        let mut command = wattwise(folder.path());
        command.args(["compare", "a.toml", "-m", "thinkpad-r51", "--json", "--replicas", replicas]);
        let out = command.args(["--budget", budget]).output().unwrap();
        assert!(out.status.success(), "{budget}: {}", text(&out.stderr));
        out
    };
    let out = compared("4096", "10ms,events=1e9");
    assert!(text(&out.stderr).contains("stopped by --budget after "), "{}", text(&out.stderr));
    let result = json(&out);
    assert_eq!((&result["stopped"], &result["replicas_asked"]), (&true.into(), &4096.into()));
    assert!(result["replicas"].as_u64().unwrap() < 4096);
    assert_eq!(compared("8", "1h").stdout, compared("8", "events=1e9").stdout);
}

/// Where its time is over within the only run of one work, what is whole of the others is the answer.
#[test]
fn a_set_that_ends_with_its_time_keeps_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    write_work(folder.path(), "short", (4000, 2000, 40));
    write_work(folder.path(), "long", (4000, 2000, 4_000_000));
    let mut command = wattwise(folder.path());
    command.args([
        "compare",
        "short.toml",
        "long.toml",
        "-m",
        "thinkpad-r51",
        "-p",
        "performance",
        "--replicas",
        "8",
    ]);
    let out = command.args(["--json", "--budget", "3s,events=1e12,simulated=1e9"]).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let set = json(&out);
    assert_eq!((&set["stopped"], &set["comparisons_asked"]), (&true.into(), &2.into()));
    assert_eq!(set["comparisons"].as_array().unwrap().len(), 1);
}

/// As [`stopped`], once the process follows the signal, as the kernel says: SIGINT and SIGTERM are bits 1 and 14 of SigCgt.
fn stopped_at_work(mut command: Command, signal: rustix::process::Signal) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0");
        if u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 1 | 1 << 14) == (1 << 1 | 1 << 14) {
            break;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&child, signal);
    child.wait_with_output().unwrap()
}

/// A second one ends it at once, with the status of that signal and without an answer.
#[test]
fn a_second_interrupt_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // The nominal run, which is made in any case, is long.
    write_work(folder.path(), "a", (4000, 2000, 4_000_000));
    let mut command = wattwise(folder.path());
    command.args(["compare", "a.toml", "-m", "thinkpad-r51", "--json", "--budget", "events=1e12"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pending = |bit: u64| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let of = |name: &str| {
            let hex = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("0");
            u64::from_str_radix(hex.trim(), 16).unwrap() & (1 << bit) != 0
        };
        (of("SigCgt:"), of("ShdPnd:"))
    };
    while !pending(1).0 || !pending(14).0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A stop before the run begins would end it by itself: a fifth of a second of computing is the run.
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let user = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11));
        user.unwrap().parse::<u64>().unwrap()
    };
    let before = ticks();
    while ticks() < before + 20 {
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&child, rustix::process::Signal::INT);
    while pending(1).1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The first is taken, but may not have been noted yet: the next ends it once that is so.
    while child.try_wait().unwrap().is_none() {
        interrupt(&child, rustix::process::Signal::TERM);
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = child.wait_with_output().unwrap();
    // The kernel may give them to two threads, of which the later one may be the first to note its own.
    assert!(matches!(out.status.code(), Some(130 | 143)), "{}", out.status);
    assert!(out.stdout.is_empty() && !text(&out.stderr).contains("stopped"), "{}", text(&out.stderr));
}
