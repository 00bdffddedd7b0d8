//! `run`, `ab`, `bench` and `report` from outside: on this machine, and on mounted emulated ones.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wattwise_emulator::{Emulator, Fault};
use wattwise_live::ab::{conduct, log as file};

#[path = "support/killed.rs"]
mod killed;
#[path = "support/lab.rs"]
mod lab;
use killed::kill_with_guard;
use lab::{Lab, done, skip, text, wattwise};

const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

/// Lets a machine's time run with the clock while it lives.
struct Running(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Running {
    fn start(machine: &Emulator) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (machine, stopped) = (machine.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut last = std::time::Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                let passed = last.elapsed();
                last = std::time::Instant::now();
                machine.advance(passed.as_nanos() as u64);
            }
        });
        Running(stop, Some(thread))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

fn json(out: &str) -> serde_json::Value {
    serde_json::from_str(out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// A refusal: its exit code, and one line that says so.
fn refused(args: &[&str], code: i32, words: &str) {
    let out = wattwise(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(words) && message.trim_end().lines().count() == 1, "{args:?}: {message}");
}

#[test]
fn run_passes_on_output_and_exit_status() {
    let out = wattwise(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(out.status.code(), Some(7));
    assert_eq!(text(&out.stdout), "out\n");
    let said = text(&out.stderr);
    for word in [
        "err\n",
        "time",
        "energy",
        "modelled by",
        "this machine, ",
        "context switches",
        "ended with exit code 7",
    ] {
        assert!(said.contains(word), "no '{word}' in {said}");
    }
}

#[test]
fn run_passes_signals_on() {
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let script = format!("touch {}; exec sleep 60", started.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(["run", "--", "sh", "-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !started.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill =
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn what_cannot_be_run_or_set_is_refused_in_a_line() {
    refused(&["run", "--", "/no/such/command"], 127, "No such file");
    refused(&["run", "-p", "governr=x", "--", "true"], 2, "--governr");
    refused(&["run", "-p", "/no/such/profile.toml", "--", "true"], 2, "expected a policy file or a profile");
    refused(&["run", "-p", "cpus=0", "--", "true"], 2, "--policy cpus=0: sets nothing; expected");
    refused(&["run", "-p", "powersave,max=60%", "--", "true"], 2, "joined by +, such as powersave+max=60%");
    refused(&["emulate", "bc10", "/proc"], 2, "/proc: is not empty");
    refused(&["capture", "-o", "/dev/null", "--duration", "1s", "--every", "2s"], 2, "--every 2s: is longer");
    refused(&["run", "--thread-profile", "tstate=99x", "--", "true"], 2, "--thread-profile");
    if !Path::new("/dev/powerctl").exists() {
        refused(&["run", "--thread-profile", "tstate=8", "--", "true"], 3, "powerctl");
    }
    refused(
        &["run", "--watts-of", "nothing", "--", "true"],
        2,
        "wattwise: --watts-of nothing: neither bundled",
    );
    for missing in ["@nothing", "@nothing.toml"] {
        refused(&["run", "-p", missing, "--", "true"], 2, &format!("--policy {missing}: "));
    }
    refused(&["ab", "--pairs", "2", "a", "b", "--", "true"], 2, "'--pairs <PAIRS>': 2 is not in 3..");
    refused(&["ab", "--pilot", "2", "a", "b", "--", "true"], 2, "'--pilot <PAIRS>': 2 is not in 3..=1000");
    refused(&["ab", "--", "true"], 2, "expected two ARMs");
    refused(&["ab", "--confidence", "0%", "a", "b", "--", "true"], 2, "confidence");
    refused(&["ab", "--metric", "(", "true", "true"], 2, "regular expression");
    refused(&["ab", "--resume", "/no/such/file"], 2, "expected a file made by 'wattwise ab'");
    refused(&["ab", "--machine", "i7-4510u", "schedutil"], 2, "two policies");
    refused(&["bench", "throughput", "--metric", "x"], 2, "expected a command");
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk");
    for bytes in [&b"junk"[..], b"{}", b"{\"schema\":\"other/1\"}", b"", b"{\"header\":{}}\n", &[0xff; 40]] {
        std::fs::write(&junk, bytes).unwrap();
        refused(&["report", junk.to_str().unwrap()], 2, "junk");
        refused(&["ab", "--resume", junk.to_str().unwrap()], 2, "junk");
    }
    // No loop here feels the speeds of a machine that is not this one.
    let elsewhere = ["bench", "transition", "--root", "emulated:skylake-server-passive", "--trials", "1"];
    refused(&elsewhere, 3, "cannot be timed from here");
    if !Path::new("/sys/class/power_supply/BAT0").exists() {
        refused(&["ab", "--battery", "--window", "60s", "true", "true"], 3, "no battery");
    }
    if !Path::new("/sys/devices/system/cpu/cpu0/cpufreq").exists() {
        refused(&["run", "-p", "schedutil", "--", "true"], 3, "cannot be put in force");
        refused(&["bench", "transition"], 3, "cannot be changed here");
    }
}

/// A number below zero is a value like another: its flag refuses it.
#[test]
fn a_number_below_zero_is_refused_by_its_flag() {
    refused(&["set", "--latency", "-5"], 2, "--latency '-5' is no duration; expected");
    refused(&["ab", "--seed", "-1", "a", "b"], 2, "'--seed <SEED>': expected a whole number, 0 or more");
    for command in ["record", "capture"] {
        for (duration, words) in [("-5", "'-5' is no duration"), ("-5s", "'-5s' is no"), ("0", "more than 0")]
        {
            refused(&[command, "-o", "/dev/null", "--duration", duration], 2, words);
        }
    }
}

/// A command that prints figures of known level and known noise, the same in every run of the test.
fn noisy(folder: &Path, name: &str, level: f64, step: u32) -> String {
    let count = folder.join(name).display().to_string();
    format!(
        "n=$(cat {count} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {count}; \
         awk -v n=$n 'BEGIN {{ printf \"rate: %.3f\\n\", {level} * (1 + ((n * {step}) % 41 - 20) / 2000) }}'"
    )
}

#[test]
fn ab_finds_a_known_difference_and_none_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (a, b) = (noisy(folder.path(), "na", 1000.0, 17), noisy(folder.path(), "nb", 1050.0, 29));
    let common =
        ["--metric", "rate: ([0-9.]+)", "--idle-floor", "0", "--others", "100%", "--seed", "3", "--json"];
    let (file, html) = (at("ab.jsonl"), at("ab.html"));
    let mut args = vec!["ab", a.as_str(), b.as_str(), "-o", &file, "--report", &html];
    args.extend(common);
    let result = json(&done(&args));
    let first = &result["comparisons"][0]["verdicts"][0];
    assert_eq!(
        (result["schema"].as_str(), first["answer"].as_str()),
        (Some("wattwise.ab-result/1"), Some("more"))
    );
    let (low, high) = (first["low"].as_f64().unwrap(), first["high"].as_f64().unwrap());
    assert!(low < 1.05 && 1.05 < high && high - low < 0.03, "{first}");
    // What was written is what was judged, and is drawn again.
    let again = done(&["report", &file]);
    assert!(again.contains("more of its figure"), "{again}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("Verdict") && page.contains("pair by pair") && page.contains("<svg"));
    // The same command twice.
    let (same, file) = (noisy(folder.path(), "ns", 1000.0, 17), at("same.jsonl"));
    let mut args = vec!["ab", "--same", same.as_str(), "-o", &file];
    args.extend(common);
    let result = json(&done(&args));
    let first = &result["comparisons"][0]["verdicts"][0];
    assert!(first["answer"]["none_larger_than"].as_f64().unwrap() < 0.02, "{first}");
    // A file that is there already is left alone.
    refused(&args, 2, "expected a new file");
}

#[test]
fn a_command_that_fails_ends_the_experiment_and_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.jsonl").display().to_string();
    let out =
        wattwise(&["ab", "--of", "time", "--idle-floor", "0", "-o", &file, "true", "echo it broke; exit 4"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("ended with exit code 4") && said.contains("it broke"), "{said}");
    let read = file::read(Path::new(&file)).unwrap();
    assert!(!read.runs.is_empty(), "what was measured before is kept");
}

#[test]
fn settings_are_held_for_a_run_and_its_energy_is_metered() {
    let Some(lab) = Lab::new("hybrid-laptop") else { return };
    let _running = Running::start(&lab.machine);
    let (governor, before) = (lab.file(GOVERNOR), lab.machine.zone_total_uj());
    let shown = lab.at().join(GOVERNOR).display().to_string();
    let file = lab.folder.path().join("run.json").display().to_string();
    let out = lab.done(&[
        "run",
        "-p",
        "governor=performance",
        "-o",
        &file,
        "--",
        "sh",
        "-c",
        &format!("cat {shown}; sleep 1"),
    ]);
    assert_eq!(out, "performance\n");
    assert_eq!(lab.file(GOVERNOR), governor);
    let result = json(&std::fs::read_to_string(&file).unwrap());
    let used = lab
        .machine
        .zone_total_uj()
        .iter()
        .zip(&before)
        .map(|(a, b)| (a - b) as f64 / 1e6)
        .fold(0.0, f64::max);
    let joules = result["machine"]["joules"].as_f64().unwrap();
    assert!(joules > 0.0 && joules <= used, "{joules} J of {used} J");
    assert_eq!(result["machine"]["energy"]["by"], "powercap (psys)");
}

/// The meter's module is unloaded while the command runs: no figure, and why.
#[test]
fn a_meter_that_disappears_leaves_no_figure() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let _running = Running::start(&lab.machine);
    let (flag, file) = (lab.folder.path().join("flag"), lab.folder.path().join("run.json"));
    let (seen, machine) = (flag.clone(), lab.machine.clone());
    let saboteur = std::thread::spawn(move || {
        while !seen.exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        machine.inject(Fault::Vanish { pattern: "*intel-rapl*".into(), after: 0 });
        std::fs::remove_file(seen).unwrap();
    });
    let script = format!("touch {0}; while [ -e {0} ]; do sleep 0.01; done", flag.display());
    lab.done(&["run", "-o", file.to_str().unwrap(), "--", "sh", "-c", &script]);
    saboteur.join().unwrap();
    let result = json(&std::fs::read_to_string(&file).unwrap());
    assert!(result["machine"]["joules"].is_null(), "{result}");
    assert_eq!(result["machine"]["energy"]["how"], "unavailable");
}

/// Killed in the middle: settings come back by `restore`, the file is whole, and the same plan goes on.
#[test]
fn a_killed_ab_is_restored_and_resumed() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let _running = Running::start(&lab.machine);
    let governor = lab.file(GOVERNOR);
    let file = lab.folder.path().join("ab.jsonl");
    let root = lab.at().display().to_string();
    let args = [
        "ab",
        "--root",
        &root,
        "governor=powersave",
        "governor=performance",
        "--of",
        "time",
        "--idle-floor",
        "0",
        "--others",
        "100%",
        "--pilot",
        "4",
        "--pairs",
        "6",
        "--seed",
        "9",
        "-o",
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(args)
        .arg(&file)
        .args(["--", "sleep", "0.1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // In the middle of a run that counts, with settings in force.
    let counted = || file::read(&file).map_or(0, |r| r.runs.iter().filter(|r| !r.place.warm_up).count());
    while counted() < 3 || lab.file(GOVERNOR) == governor {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(3));
    }
    kill_with_guard(&mut child);
    assert_ne!(lab.file(GOVERNOR), governor, "nothing was left to restore");
    let said = lab.done(&["restore"]);
    assert_eq!(lab.file(GOVERNOR), governor, "{said}");
    let before = file::read(&file).unwrap();
    // A torn line, as a kill within a write would leave it.
    let mut torn = std::fs::read(&file).unwrap();
    torn.extend_from_slice(b"{\"run\":{\"arm\":1,\"wa");
    std::fs::write(&file, torn).unwrap();
    lab.done(&["ab", "--resume", file.to_str().unwrap()]);
    assert_eq!(lab.file(GOVERNOR), governor);
    let after = file::read(&file).unwrap();
    assert_eq!(after.header, before.header);
    assert_eq!(after.runs[..before.runs.len()], before.runs[..], "what was measured is kept");
    assert!(after.end.is_some() && after.counted().len() >= 4, "{:?}", after.end);
    // Every block in the order of the plan.
    for block in 0..after.done().blocks.len() {
        let arms: Vec<usize> =
            after.runs.iter().filter(|r| !r.place.warm_up && r.place.block == block).map(|r| r.arm).collect();
        let order = conduct::order(&after.header.plan, block);
        assert!(arms.ends_with(&order), "block {block}: {arms:?}, planned {order:?}");
    }
}

/// A full disk under the file: said in a line, all before it kept, and resumed when there is room.
#[test]
fn a_full_disk_loses_nothing_that_was_measured() {
    if !rustix::process::geteuid().is_root() {
        skip("mounting a small disk needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (kept, program) = (folder.path().join("kept.jsonl"), env!("CARGO_BIN_EXE_wattwise"));
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    // A mount of its own: it goes with the shell.
    let script = format!(
        "mount -t tmpfs -o size=8k none {disk} || exit 90
         {program} ab --of time --idle-floor 0 --others 100% --pairs 40 -o {disk}/ab.jsonl 'sleep 0.01' 'sleep 0.02'
         code=$?; cp {disk}/ab.jsonl {kept}; exit $code",
        disk = disk.display(),
        kept = kept.display(),
    );
    let out = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let said = text(&out.stderr);
    if out.status.code() == Some(90) {
        skip(&format!("a small disk cannot be mounted: {said}"));
        return;
    }
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left") && said.contains("--resume"), "{said}");
    let before = file::read(&kept).unwrap();
    assert!(before.runs.len() > 3, "{} runs", before.runs.len());
    assert_eq!(std::fs::metadata(&kept).unwrap().len(), before.whole, "the last line is whole");
    done(&["ab", "--resume", kept.to_str().unwrap()]);
    let after = file::read(&kept).unwrap();
    assert_eq!(after.runs[..before.runs.len()], before.runs[..]);
}

/// The studies' own tools, for real on loopback.
#[test]
fn presets_find_the_figures_of_real_tools() {
    for (tool, preset) in
        [("nuttcp", "nuttcp"), ("tbench", "tbench"), ("cyclictest", "cyclictest"), ("stress-ng", "stress-ng")]
    {
        if Command::new("which").arg(tool).output().map_or(true, |o| !o.status.success()) {
            skip(&format!("{tool} is not installed"));
            continue;
        }
        let result = json(&done(&["bench", "throughput", "--metric", preset, "-n", "1", "--json"]));
        let figure = result["levels"][0]["figure"]["mean"].as_f64().unwrap();
        assert!(figure > 0.0, "{preset}: {figure}");
        assert_eq!(result["schema"], "wattwise.bench-throughput/1");
    }
}

#[test]
fn throughput_at_each_speed_finds_the_knee() {
    let Some(lab) = Lab::new("bc10") else { return };
    let _running = Running::start(&lab.machine);
    let governor = lab.file(GOVERNOR);
    let speed = lab.at().join("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").display().to_string();
    let count = lab.folder.path().join("count").display().to_string();
    // A network that no CPU above 500 MHz can fill any faster, with a little noise.
    let script = format!(
        "k=$(cat {speed}); [ $k -gt 500000 ] && k=500000; n=$(($(cat {count} 2>/dev/null || echo 0) + 1)); echo $n > {count}; echo rate $((k / 1000 + n * 7 % 3))"
    );
    let csv = lab.folder.path().join("t.csv");
    let root = lab.at().display().to_string();
    let out = done(&[
        "bench",
        "throughput",
        "--root",
        &root,
        "--metric",
        "rate ([0-9]+)",
        "-n",
        "4",
        "--json",
        "--csv",
        csv.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let result = json(&out);
    let khz: Vec<u64> =
        result["levels"].as_array().unwrap().iter().map(|l| l["khz"].as_u64().unwrap()).collect();
    assert_eq!(khz, [600_000, 550_000, 500_000, 250_000, 125_000]);
    assert_eq!(result["knee"], 2, "{result}");
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 1 + 5 * 4);
    assert_eq!(lab.file(GOVERNOR), governor);
}

#[test]
fn transitions_are_measured_and_the_governor_comes_back() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let _running = Running::start(&lab.machine);
    let governor = lab.file(GOVERNOR);
    let at = |name: &str| lab.folder.path().join(name).display().to_string();
    let (csv, html, file) = (at("m.csv"), at("m.html"), at("m.json"));
    let root = lab.at().display().to_string();
    let out = wattwise(&[
        "bench",
        "transition",
        "--root",
        &root,
        "--trials",
        "1",
        "--json",
        "--csv",
        &csv,
        "--report",
        &html,
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    std::fs::write(&file, &out.stdout).unwrap();
    let matrix = json(&text(&out.stdout));
    let levels = matrix["levels_khz"].as_array().unwrap().len();
    let pairs = matrix["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), levels * (levels - 1));
    assert!(pairs.iter().all(|p| p["missed"] == 0 && p["us"]["mean"].as_f64().unwrap() > 0.0), "{matrix}");
    assert_eq!(lab.file(GOVERNOR), governor);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 1 + pairs.len());
    assert!(std::fs::read_to_string(html).unwrap().contains("Mean delay"));
    assert!(done(&["report", &file]).contains("from (down) to (across)"));
}

#[test]
fn wake_ups_are_measured_here() {
    let result = json(&done(&["bench", "wake", "--times", "20", "--sleep", "300us", "--json"]));
    let first = &result["states"][0];
    assert_eq!(
        (&first["timer_us"]["n"], first["state"].is_null()),
        (&serde_json::json!(20), true),
        "{result}"
    );
    assert!(first["timer_us"]["min"].as_f64().unwrap() >= 0.0);
}

#[test]
fn reports_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (one, two, html) = (at("one.json"), at("two.json"), at("both.html"));
    done(&["run", "-o", &one, "--", "true"]);
    done(&["run", "-o", &two, "--", "sleep", "0.01"]);
    done(&["report", &one, &two, "--report", &html]);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("sleep 0.01") && page.contains("Mean power, W"), "both runs are columns");
    let printed = done(&["report", &one, &two]);
    assert_eq!(printed.matches("context switches").count(), 2, "{printed}");
}

#[test]
fn on_a_model_the_answer_is_the_same_every_time() {
    let out =
        done(&["ab", "--machine", "core-i5-2gen", "performance", "powersave", "--workload", "python-loop"]);
    assert!(out.contains("Best: keep performance") && out.contains("sure?"), "{out}");
    assert_eq!(
        out,
        done(&["ab", "--machine", "core-i5-2gen", "performance", "powersave", "--workload", "python-loop"])
    );
}

#[test]
fn an_experiment_without_a_pair_that_counts_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.jsonl").display().to_string();
    // Every window is shorter than its run, so every pair is dropped.
    let args = ["ab", "--same", "sleep 0.1", "--window", "1ms", "--idle-floor", "0", "-o", &file];
    let out = wattwise(&args);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("no pair counts") && said.contains("longer than the window"), "{said}");
}

#[test]
fn an_experiment_on_a_model_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let html = folder.path().join("r.html").display().to_string();
    done(&[
        "ab",
        "--machine",
        "thinkpad-r51",
        "--workload",
        "burst",
        "powersave",
        "ondemand",
        "--report",
        &html,
    ]);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("ondemand") && page.trim_end().ends_with("</html>"));
}
