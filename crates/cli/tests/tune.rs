//! `tune` from outside: its policy file, its test set, its log, and one line for each mistake.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn wattwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A search in a folder of its own.
fn tune(folder: &Path, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    program
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .arg("tune")
        .args(args)
        .output()
        .unwrap()
}

/// The log of the only search in a folder, where nobody named one.
fn log_of(folder: &Path) -> std::path::PathBuf {
    let mut all = std::fs::read_dir(folder.join("state/wattwise")).unwrap();
    let log = all.next().unwrap().unwrap().path();
    assert!(all.next().is_none(), "one search, one log");
    log
}

fn json(out: &Output) -> Value {
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Work of a few milliseconds, so that a search is quick: bursts of this length with pauses of that.
fn write_work(folder: &Path, name: &str, run_us: u32, sleep_us: u32) {
    let text = format!(
        "name = '{name}'\nsummary = 'bursts'\n[[task]]\nname = 'work'\ncount = 2\nrounds = 20\n\
         steps = [{{ run_us = [{}, {run_us}] }}, {{ sleep_us = [{}, {sleep_us}] }}]\n",
        run_us / 2,
        sleep_us / 2
    );
    std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

fn works(folder: &Path) -> Vec<String> {
    let all = [("a", 4000, 2000), ("b", 20_000, 8000), ("c", 1000, 500), ("d", 9000, 3000)];
    for (name, run, sleep) in all {
        write_work(folder, name, run, sleep);
    }
    all.iter().map(|(name, ..)| format!("{name}.toml")).collect()
}

const SEARCH: [&str; 8] = [
    "-m",
    "thinkpad-r51",
    "--space",
    "burst:busy=0..30,idle=0..60,down=step|proportional",
    "--budget",
    "40",
    "--replicas",
    "40",
];

fn args<'a>(works: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    works.iter().map(String::as_str).chain(SEARCH).chain(more.iter().copied()).collect()
}

#[test]
fn a_policy_file_comes_out_that_other_commands_take() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    // Limits save much where nobody minds the time.
    let asked =
        "-m thinkpad-r51 --space caps --max-slowdown any --reference performance --budget 40 --replicas 40";
    let words =
        works.iter().map(String::as_str).chain(asked.split(' ')).chain(["--json", "-o", "found.toml"]);
    let result = json(&tune(folder.path(), &words.collect::<Vec<_>>()));
    let policy = result["winner"]["policy"].as_str().unwrap();
    let used = |what: &str| result["cases"].as_array().unwrap().iter().filter(|c| c["used"] == what).count();
    assert_eq!((used("train"), used("test")), (2, 2));
    assert_eq!(result["winner"]["test"]["each"].as_array().unwrap().len(), 2);
    assert_eq!(result["spent"]["trials"], 40);
    let file = folder.path().join("found.toml").display().to_string();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), result["winner"]["file"].as_str().unwrap());
    let out = wattwise(&["compare", "tbench", "-m", "thinkpad-r51", "-p", &file, "--exact", "--json"]);
    let comparison = json(&out);
    let policies: Vec<&str> =
        comparison["results"].as_array().unwrap().iter().map(|r| r["policy"].as_str().unwrap()).collect();
    assert!(policies.contains(&policy), "{policies:?}");
    let out = wattwise(&["ab", "-m", "thinkpad-r51", "schedutil", &file, "--workload", "tbench"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// `run` holds what a policy file says, or tells why it cannot.
#[test]
fn a_policy_file_is_held_while_a_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (file, journal) = (folder.path().join("p.toml"), folder.path().display().to_string());
    let run = |root: &str, policy: &str| {
        std::fs::write(&file, policy).unwrap();
        let root = format!("emulated:{root}");
        wattwise(&["run", "--root", &root, "--journal", &journal, "-p", file.to_str().unwrap(), "--", "true"])
    };
    let held = "speed = 'ondemand'\nmax = '60%'\n";
    // Its tunables come with the governor, by our names and by the kernel's.
    let tuned = "speed = { policy = 'ondemand', up = 77 }";
    // A driver that chooses speeds itself is made passive for the length of the run.
    for (root, policy) in [("bc10", held), ("bc10", tuned), ("hybrid-laptop", held), ("amd-laptop", tuned)] {
        let out = run(root, policy);
        assert_eq!(out.status.code(), Some(0), "{root}: {}", text(&out.stderr));
    }
    for (root, policy, code, told) in [
        (
            "bc10",
            "speed = { policy = 'burst', busy = 2 }",
            3,
            "it comes with wattwise's module cpufreq_burst",
        ),
        (
            "bc10",
            "speed = { policy = 'schedutil', rate_limit = 2000 }",
            3,
            "'schedutil' is no governor of this kernel",
        ),
        ("bc10", "speed = { policy = 'burst', down = 'proportional' }", 3, "cannot be put in force here"),
        ("bc10", "speed = 'brust'", 2, "'burst'"),
        ("bc10", "set = 3", 2, "expected a policy file, or set ="),
    ] {
        let out = run(root, policy);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{policy}: {message}");
        assert!(message.contains(told) && message.trim_end().lines().count() == 1, "{policy}: {message}");
    }
}

/// The same seed and trials, the same bits: with one thread and with three, at once and in two parts.
#[test]
fn the_result_hangs_on_the_seed_alone() {
    let run = |threads: &str, first: Option<&str>, seed: &str| {
        let folder = tempfile::tempdir().unwrap();
        let works = works(folder.path());
        let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        program.current_dir(folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
        program.arg("tune").env("RAYON_NUM_THREADS", threads);
        if let Some(trials) = first {
            // A search that is interrupted leaves its log; here the log of a whole one is cut after some trials.
            let all = program.args(args(&works, &["--json", "--seed", seed])).output().unwrap();
            assert!(all.status.success(), "{}", text(&all.stderr));
            let log = log_of(folder.path());
            let lines = std::fs::read_to_string(&log).unwrap();
            let keep: usize = trials.parse::<usize>().unwrap() + 2;
            let cut: String = lines.lines().take(keep).map(|l| format!("{l}\n")).collect();
            std::fs::write(&log, cut + "{\"trial\":{\"pol").unwrap();
            let again =
                tune(folder.path(), &["--resume", &log.display().to_string(), "--budget", "40", "--json"]);
            assert!(again.status.success(), "{}", text(&again.stderr));
            assert_eq!(std::fs::read_to_string(&log).unwrap(), lines, "the log is whole again");
            return again.stdout;
        }
        let out = program.args(args(&works, &["--json", "--seed", seed])).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        out.stdout
    };
    let one = run("1", None, "7");
    assert!(one == run("3", None, "7"), "threads change the result");
    assert!(one == run("2", Some("21"), "7"), "an interruption changes the result");
    assert!(one != run("1", None, "8"), "another seed changes nothing");
}

/// A search for a machine that is there as files is gone on with for that machine alone: on another of that name it is refused in
/// words, on the same one it comes to the same.
#[test]
fn a_search_knows_its_machine() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    let capture = |of: &str| {
        let file = folder.path().join("web 1.wattwise");
        _ = std::fs::remove_file(&file);
        let out = wattwise(&["capture", "--root", of, "-o", &file.display().to_string()]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    };
    capture("emulated:core-i5-2gen");
    let mut asked = args(&works, &["--json"]);
    let at = asked.iter().position(|a| *a == "thinkpad-r51").unwrap();
    asked[at] = "web 1.wattwise";
    let whole = json(&tune(folder.path(), &asked));
    let log = log_of(folder.path());
    let lines = std::fs::read_to_string(&log).unwrap();
    let part: String = lines.lines().take(22).map(|l| format!("{l}\n")).collect();
    std::fs::write(&log, &part).unwrap();

    capture("emulated:amd-laptop");
    let resume = ["--resume", &log.display().to_string(), "--json"];
    let out = tune(folder.path(), &resume);
    let why = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{why}");
    assert!(why.contains("another machine than web 1.wattwise is now: its processor was Intel"), "{why}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), part, "the log is as it was");

    capture("emulated:core-i5-2gen");
    assert_eq!(json(&tune(folder.path(), &resume)), whole);

    // The printed command has the work, the machine and the file, and goes into a shell as it is.
    // One recording cannot be tested on, so that nothing speaks against what was found.
    asked.retain(|a| *a != "--json" && !works[1..].iter().any(|w| w == a));
    asked.extend(["-o", "my policy.toml"]);
    let out = tune(folder.path(), &asked);
    let told = text(&out.stderr);
    let command = told.lines().find_map(|l| l.split_once("to try it: wattwise ")).expect(&told).1;
    assert!(command.contains("-m 'web 1.wattwise' -p 'my policy.toml'"), "{command}");
    let shell = format!("'{}' {command} --exact", env!("CARGO_BIN_EXE_wattwise"));
    let out = Command::new("sh").args(["-c", &shell]).current_dir(folder.path()).output().unwrap();
    assert!(out.status.success(), "{shell}: {}", text(&out.stderr));
}

#[test]
fn the_test_set_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    json(&tune(folder.path(), &args(&works, &["--json"])));
    let log = log_of(folder.path()).display().to_string();
    let out = tune(folder.path(), &["--resume", &log, "--budget", "80"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("test set has been opened"), "{}", text(&out.stderr));
}

/// What the test rejects comes without the line and without the file that would put it in force, also where a file is named.
#[test]
fn what_is_not_worth_it_is_not_there_to_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    // Other periods than the reference's save nothing that can be told apart.
    let alike = [
        "-m",
        "i7-4510u",
        "--space",
        "ondemand:rate=10.001..10.05ms,cost=0",
        "--reference",
        "ondemand:rate=10ms,cost=0",
    ];
    let all: Vec<&str> = works
        .iter()
        .map(String::as_str)
        .chain(alike)
        .chain(["--budget", "6", "--log", "/dev/null"])
        .collect();
    let result = json(&tune(folder.path(), &[&all[..], &["--json"]].concat()));
    assert_eq!(result["verdict"]["worth_it"], false, "{}", result["verdict"]["text"]);
    assert!(result["winner"]["apply"].is_null(), "{}", result["winner"]["apply"]);
    assert!(result["winner"]["why_not"].as_str().unwrap().contains("not worth it"));
    assert!(!folder.path().join("wattwise-tuned.toml").exists(), "nothing to find later");
    let before = "# an earlier one\nspeed = 'performance'\n";
    std::fs::write(folder.path().join("named.toml"), before).unwrap();
    let out = tune(folder.path(), &[&all[..], &["-o", "named.toml"]].concat());
    assert_eq!(std::fs::read_to_string(folder.path().join("named.toml")).unwrap(), before);
    let said = text(&out.stderr);
    assert!(said.contains("named.toml: no policy file was written"), "{said}");
    let shown = text(&out.stdout);
    assert!(shown.contains("Not worth it") && !shown.contains("wattwise set"), "{shown}");
    assert!(shown.contains("not worth it."), "{shown}");
}

/// One recording cannot be split: what was found is told as not tested.
#[test]
fn without_a_test_set_nothing_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    works(folder.path());
    let out = tune(folder.path(), &args(&["a.toml".to_owned()], &["--json"]));
    let result = json(&out);
    assert!(result["verdict"]["worth_it"].is_null() && result["winner"]["test"].is_null());
    assert!(result["verdict"]["text"].as_str().unwrap().contains("Not tested"));
}

/// Work that never ends is marked, and the search goes on with the rest.
#[test]
fn work_that_does_not_end_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    let endless = "name = 'endless'\nsummary = 'waits for nobody'\n[[task]]\nname = 'w'\nrounds = 1\nsteps = [{ run_us = 10 }, { block = true }]\n";
    std::fs::write(folder.path().join("endless.toml"), endless).unwrap();
    let named = ["--test", "c.toml", "--test", "d.toml"];
    let mut all: Vec<&str> = vec!["endless.toml", &works[0], &works[1]];
    all.extend(SEARCH);
    all.extend(named);
    let result = json(&tune(folder.path(), &[&all[..], &["--json"]].concat()));
    let marked = &result["cases"][0];
    assert_eq!((&marked["workload"], &marked["used"]), (&"endless".into(), &"nothing".into()), "{marked}");
    assert!(marked["problem"].as_str().unwrap().contains("waits for a wake-up that never comes"), "{marked}");
    let out = tune(folder.path(), &[&["endless.toml"], &SEARCH[..], &["--log", "other.jsonl"]].concat());
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("no recording of the search can be replayed"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_space_without_an_admissible_point_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    let slow = [
        "-m",
        "thinkpad-r51",
        "--space",
        "caps:max=20..40",
        "--max-slowdown",
        "1%",
        "--reference",
        "performance",
    ];
    let all: Vec<&str> = works.iter().map(String::as_str).chain(slow).collect();
    let out = tune(folder.path(), &all);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{message}");
    assert!(message.contains("within the limits; nearest is performance+max=40%"), "{message}");
    assert!(!folder.path().join("wattwise-tuned.toml").exists() && out.stdout.is_empty());
}

#[test]
fn mistakes_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    std::fs::write(folder.path().join("notes.jsonl"), "milk, bread\n").unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        let out = tune(folder.path(), args);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(out.stdout.is_empty(), "{args:?} printed a result");
        for w in words {
            assert!(message.contains(w), "{args:?}: no '{w}' in: {message}");
        }
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    };
    let a = works[0].as_str();
    refused(&[a, "--space", "brust"], &["--space brust", "'burst'"]);
    refused(&["bild", "--space", "burst"], &["WORKLOAD bild", "'build'"]);
    refused(&[a, "-m", "xeon-421", "--space", "burst"], &["--machine xeon-421", "'xeon-4210'"]);
    refused(&[a, "--space", "burst", "--reference", "shedutil"], &["--reference", "'schedutil'"]);
    refused(&[a, a, "--space", "burst"], &["a.toml: named twice"]);
    refused(&[a, "--test", a, "--space", "burst"], &["a.toml: named twice"]);
    // A copy is no other recording, nor is a bundled one that lies in a file.
    std::fs::copy(folder.path().join(a), folder.path().join("copy.toml")).unwrap();
    refused(
        &[a, "--test", "copy.toml", "--space", "burst"],
        &["--test copy.toml: has the same work in it as a.toml"],
    );
    let bundled = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/sync.perf.zst");
    refused(
        &[a, "sync", "--test", bundled, "--space", "burst"],
        &["sync.perf.zst: has the same work in it as sync"],
    );
    for flag in ["--max-slowdown", "--max-p99"] {
        refused(&[a, "--space", "burst", flag, "10"], &[flag, "10% (or 1.1x, or 0.1)"]);
    }
    refused(&[a, "--space", "burst", "--budget", "soon"], &["soon", "expected a time"]);
    refused(&[a, "--space", "burst", "-o", "tuned.json"], &["--output tuned.json", ".toml"]);
    refused(&[a, "--space", "burst", "-o", "no/such/folder.toml"], &["--output no/such/folder.toml"]);
    refused(&[a, "--space", "burst", "--log", "notes.jsonl"], &["notes.jsonl", "no log"]);
    refused(&["--resume", "notes.jsonl"], &["notes.jsonl: line 1"]);
    refused(&[a], &["--space"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.jsonl")).unwrap(), "milk, bread\n");
}

/// A log that cannot be written is told once; the search goes on and its policy file is whole.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_does_not_end_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    let out = tune(folder.path(), &args(&works, &["--log", "/dev/full"]));
    assert_eq!(out.status.code(), Some(1), "known before the search: {}", text(&out.stderr));
    assert!(text(&out.stderr).contains("--log /dev/full"), "{}", text(&out.stderr));
}

/// An interrupted search is not written over.
#[test]
fn an_interrupted_log_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    let named = ["--log", "trials.jsonl"];
    json(&tune(folder.path(), &args(&works, &[&named[..], &["--json"]].concat())));
    let log = folder.path().join("trials.jsonl");
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, lines.lines().take(9).map(|l| format!("{l}\n")).collect::<String>()).unwrap();
    let out = tune(folder.path(), &args(&works, &named));
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("tune --resume trials.jsonl"), "{}", text(&out.stderr));
}

/// A log that nobody named is in the folder of states, not beside the work; where there is no such folder the search goes on.
#[test]
fn the_working_folder_gets_the_policy_alone() {
    let folder = tempfile::tempdir().unwrap();
    let works = works(folder.path());
    json(&tune(folder.path(), &args(&works, &["--json"])));
    assert!(log_of(folder.path()).file_name().is_some_and(|n| n.to_string_lossy().starts_with("tune-")));
    let at_work = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name());
    let mut at_work: Vec<String> = at_work.map(|n| n.to_string_lossy().into_owned()).collect();
    // The policy is there if it is worth it.
    at_work.retain(|name| name != "wattwise-tuned.toml");
    at_work.sort();
    assert_eq!(at_work, ["a.toml", "b.toml", "c.toml", "d.toml", "state"]);

    // No folder can be made below a file.
    let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
    program.current_dir(folder.path()).env("XDG_STATE_HOME", folder.path().join("a.toml"));
    let out = program.arg("tune").args(args(&works, &["--json"])).output().unwrap();
    json(&out);
    assert!(text(&out.stderr).contains("the search is not logged: "), "{}", text(&out.stderr));
}
