//! `info`, `set`, `restore`, `capture` from outside, on mounted emulated machines and on this one.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::{Command, Output};
use wattwise_emulator::{Fault, Op};
use wattwise_hw::root;

#[path = "support/killed.rs"]
mod killed;
#[path = "support/lab.rs"]
mod lab;
use killed::{guards_of, kill_with_guard};
use lab::{Lab, done, skip, text, wait_while, wattwise};

const CPUFREQ: &str = "sys/devices/system/cpu/cpu0/cpufreq";

#[test]
fn the_bc10_as_its_study_shows_it() {
    let Some(lab) = Lab::new("bc10") else { return };
    // Every figure of 003's listing.
    let listing = lab.done(&["cpufreq-info"]);
    for fact in [
        "analyzing CPU 0:",
        "driver: omap",
        "CPUs which run at the same hardware frequency: 0",
        "CPUs which need to have their frequency coordinated by software: 0",
        "maximum transition latency: 300 us.",
        "hardware limits: 125 MHz - 600 MHz",
        "available frequency steps: 125 MHz, 250 MHz, 500 MHz, 550 MHz, 600 MHz",
        "available cpufreq governors: conservative, ondemand, powersave, userspace, performance",
        "frequency should be within 125 MHz and 600 MHz.",
        "The governor \"userspace\" may decide",
        "current CPU frequency is 600 MHz (asserted by call to hardware).",
        "125 MHz:0.00%, 250 MHz:0.00%, 500 MHz:0.00%, 550 MHz:0.00%, 600 MHz:100.00%",
        "581.89",
    ] {
        assert!(listing.contains(fact), "no '{fact}' in\n{listing}");
    }
    // Our own page says the same.
    let page = lab.done(&["info", "speed"]);
    for fact in [
        "omap",
        "300 us",
        "125 MHz to 600 MHz",
        "125 MHz, 250 MHz, 500 MHz, 550 MHz, 600 MHz",
        "userspace",
        "conservative, ondemand, powersave, userspace, performance",
        "600 MHz by the hardware",
        "600 MHz 100.00 %",
    ] {
        assert!(page.contains(fact), "no '{fact}' in\n{page}");
    }
    let said = lab.done(&["set", "--freq", "500MHz"]);
    assert!(said.contains("asked 500000 kHz, got 500000 kHz"), "{said}");
    assert_eq!(lab.file(&format!("{CPUFREQ}/cpuinfo_cur_freq")), "500000");
    assert!(
        lab.done(&["cpufreq-info"])
            .contains("current CPU frequency is 500 MHz (asserted by call to hardware)")
    );
    // The study's last look: 3.51 % at 500 MHz, after as long as that takes.
    lab.machine.advance(131_000_000_000);
    let stats = lab.done(&["cpufreq-info", "-s", "-m"]);
    assert!(stats.contains("500 MHz:3.5"), "{stats}");
    assert!(lab.done(&["cpufreq-info"]).contains("484.74"), "BogoMIPS follow the speed");
    lab.done(&["restore"]);
    assert_eq!(lab.file(&format!("{CPUFREQ}/cpuinfo_cur_freq")), "600000");
}

#[test]
fn every_file_and_option_of_the_bc10() {
    let Some(lab) = Lab::new("bc10") else { return };
    let json: serde_json::Value = serde_json::from_str(&lab.done(&["info", "--json"])).unwrap();
    let policy = &json["cpufreq"]["policies"]["value"][0];
    // Each file of 003's table, with where `info --json` shows it.
    for (file, place, shown) in [
        ("affected_cpus", "/affected", serde_json::json!("0")),
        ("cpuinfo_cur_freq", "/hardware_current_khz", serde_json::json!(600_000)),
        ("cpuinfo_max_freq", "/hardware_khz/1", serde_json::json!(600_000)),
        ("cpuinfo_min_freq", "/hardware_khz/0", serde_json::json!(125_000)),
        ("cpuinfo_transition_latency", "/transition_latency_ns", serde_json::json!(300_000)),
        ("related_cpus", "/related", serde_json::json!("0")),
        ("scaling_available_frequencies", "/levels_khz/4", serde_json::json!(600_000)),
        ("scaling_available_governors", "/governors/0", serde_json::json!("conservative")),
        ("scaling_cur_freq", "/current_khz", serde_json::json!(600_000)),
        ("scaling_driver", "/driver", serde_json::json!("omap")),
        ("scaling_governor", "/governor", serde_json::json!("userspace")),
        ("scaling_max_freq", "/limits_khz/1", serde_json::json!(600_000)),
        ("scaling_min_freq", "/limits_khz/0", serde_json::json!(125_000)),
        ("scaling_setspeed", "/setspeed_khz", serde_json::json!(600_000)),
        ("stats/time_in_state", "/stats/time_in_state/4/0", serde_json::json!(600_000)),
        ("stats/total_trans", "/stats/total_transitions", serde_json::json!(0)),
        ("stats/trans_table", "/stats/transitions/0/0", serde_json::json!(0)),
    ] {
        assert!(root::text(&lab.machine, &format!("{CPUFREQ}/{file}")).is_some(), "no {file}");
        assert_eq!(policy.pointer(place), Some(&shown), "{file}");
    }
    // Each option of cpufreq-set, in both spellings and in units.
    for (args, file, value) in [
        (&["-g", "ondemand"][..], "scaling_governor", "ondemand"),
        (&["--governor", "userspace"], "scaling_governor", "userspace"),
        (&["-d", "250MHz"], "scaling_min_freq", "250000"),
        (&["--min", "125000"], "scaling_min_freq", "125000"),
        (&["-u", "0.55GHz"], "scaling_max_freq", "550000"),
        (&["--max", "600000000Hz"], "scaling_max_freq", "600000"),
        (&["-f", "500MH"], "scaling_setspeed", "500000"),
        (&["--freq", "0.00055THz"], "scaling_setspeed", "550000"),
        (&["-c", "0", "-f", "250000"], "scaling_setspeed", "250000"),
        (&["-c", "0", "-r", "-g", "powersave"], "scaling_governor", "powersave"),
    ] {
        let mut all = vec!["cpufreq-set"];
        all.extend(args);
        lab.done(&all);
        assert_eq!(lab.file(&format!("{CPUFREQ}/{file}")), value, "{args:?}");
    }
    lab.done(&["restore"]);
    for (args, words) in [
        (&["cpufreq-set", "-f", "500MHz", "-g", "ondemand"][..], "cannot be used with"),
        (&["cpufreq-set", "-c", "7", "-g", "ondemand"], "no such CPU"),
    ] {
        let out = lab.run(args);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(words), "{}", text(&out.stderr));
    }
    for option in ["-f", "-w", "-l", "-d", "-p", "-g", "-r", "-a", "-s", "-y", "-o", "-e"] {
        assert!(!lab.done(&["cpufreq-info", option]).trim().is_empty(), "{option}");
    }
    assert_eq!(lab.done(&["cpufreq-info", "-l"]), "125000 600000\n");
    assert_eq!(lab.done(&["cpufreq-info", "-y", "-m"]), "300 us\n");
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_written() {
    let Some(lab) = Lab::new("bc10") else { return };
    lab.refused(&["set", "--min", "550MHz", "--max", "250MHz"], 2, "above");
    lab.refused(&["set", "--governor", "ondemnd"], 2, "did you mean 'ondemand'");
    lab.refused(&["set", "--freq", "510MHz"], 2, "nearest is 500 MHz");
    lab.refused(&["set", "--freq", "fast"], 2, "expected 500MHz");
    lab.refused(&["set", "--cpus", "9", "--freq", "min"], 2, "no CPU 9");
    lab.refused(&["set", "--type", "E", "--freq", "min"], 2, "matches no CPU");
    lab.refused(&["set", "--cpus", "0-", "--freq", "min"], 2, "expected numbers");
    lab.refused(&["set", "--epp", "power"], 3, "no energy-performance preference");
    lab.refused(&["set", "--tstate", "50%"], 3, "--tstate");
    lab.refused(&["set"], 2, "nothing to set");
    lab.refused(&["set", "--cstate", "C6"], 2, "C6=off");
    lab.refused(&["set", "--freq", "min", "--until", "pid:0"], 2, "no such process");
    lab.refused(&["set", "--freq", "min", "--journal", "/proc/nowhere"], 3, "--journal");
    let Some(lab) = Lab::new("amd-laptop") else { return };
    lab.refused(&["set", "--driver-mode", "passive", "--epp", "power"], 3, "driver amd-pstate keeps none");
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    lab.done(&["set", "--cpus", "3", "--online", "off"]);
    lab.refused(&["set", "--cpus", "3", "--governor", "powersave"], 2, "offline");
    lab.refused(&["set", "--online", "off"], 2, "at least one CPU must stay");
    lab.refused(&["set", "--latency", "2148s"], 2, "up to 2147483646 us");
    lab.done(&["restore"]);
    lab.machine.inject(Fault::Errno {
        pattern: "*/scaling_governor".into(),
        op: Op::Write,
        nth: 0,
        errno: rustix::io::Errno::ACCESS,
    });
    lab.refused(&["set", "--governor", "powersave"], 3, "not permitted; needs root, or a udev rule");
    lab.machine.clear_faults();
    lab.machine.inject(Fault::Errno {
        pattern: "*/scaling_governor".into(),
        op: Op::Write,
        nth: 0,
        errno: rustix::io::Errno::ROFS,
    });
    lab.refused(&["set", "--governor", "powersave"], 3, "is on a read-only mount");
    lab.machine.clear_faults();
    // The driver takes the write and does nothing: said, with a failing exit code.
    lab.machine.inject(Fault::Ignore { pattern: "*/scaling_max_freq".into() });
    let out = lab.run(&["set", "--max", "min"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stdout).contains("IGNORED"), "{}", text(&out.stdout));
}

/// The line that `compare` prints for a machine in active mode, and the word that `run` takes for it.
#[test]
fn a_mode_and_a_governor_are_one_set() {
    let one = ["set", "--driver-mode", "passive", "--governor", "schedutil", "--max", "60%"];
    // Servers have their turn in the crate `control`: mounted, their many domains take long.
    for (name, driver) in [("hybrid-laptop", "intel_pstate"), ("amd-laptop", "amd_pstate")] {
        let Some(lab) = Lab::new(name) else { return };
        let before = lab.machine.snapshot();
        let said = lab.done(&[&one[..], &["--dry-run"]].concat());
        let writes = said.lines().find(|line| !line.starts_with("note: "));
        assert_eq!(writes, Some(&format!("{driver} mode: active -> passive")[..]), "{said}");
        assert!(
            said.contains("governor: powersave -> schedutil  (judged when the mode is in force)\n"),
            "{said}"
        );
        assert!(said.contains("policy0 maximum: "), "{said}");
        let json: serde_json::Value =
            serde_json::from_str(&lab.done(&[&one[..], &["--dry-run", "--json"]].concat())).unwrap();
        assert_eq!(
            (&json["changes"][0]["judged_later"], &json["changes"][1]["judged_later"]),
            (&false.into(), &true.into())
        );
        assert!(json["changes"][1].get("got").is_none(), "nobody can know that yet");
        assert_eq!(lab.machine.snapshot(), before, "{name}: a dry run changes nothing");

        let said = lab.done(&one);
        assert!(said.contains("was powersave, asked schedutil, got schedutil"), "{said}");
        assert_eq!(lab.file(&format!("{CPUFREQ}/scaling_governor")), "schedutil");
        lab.done(&["restore"]);
        assert_eq!(lab.machine.snapshot(), before, "{name}");

        let shown = lab.at().join(CPUFREQ).join("scaling_governor").display().to_string();
        assert_eq!(lab.done(&["run", "-p", "ondemand:up_threshold=77", "--", "cat", &shown]), "ondemand\n");
        assert_eq!(lab.machine.snapshot(), before, "{name}: put back after the run");

        let out = lab.run(&["set", "--driver-mode", "passive", "--governor", "interactive"]);
        assert_eq!(out.status.code(), Some(1));
        assert!(text(&out.stderr).contains("'interactive' is unknown to policy0"), "{}", text(&out.stderr));
        assert_eq!(lab.machine.snapshot(), before, "{name}");
        // Killed while it holds them: the journal knows all of it.
        let root = lab.at().display().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(lab.args(&[&one[..], &["--until", "forever"]].concat(), &root))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let line = out.find(|line| !line.as_ref().unwrap().starts_with("note: ")).unwrap().unwrap();
        assert!(line.contains("got passive"), "{line}");
        kill_with_guard(&mut child);
        assert_ne!(lab.machine.snapshot(), before);
        lab.done(&["restore"]);
        assert_eq!(lab.machine.snapshot(), before, "{name}: after kill -9");
    }
}

/// A folder with nothing of a machine is refused by every command that takes one, in the same words.
#[test]
fn an_empty_folder_is_no_machine() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let out = folder.path().with_extension("out").display().to_string();
    for call in [
        "info",
        "set --governor powersave",
        "run -- true",
        "ab current powersave -- true",
        "prove current powersave",
        "top --json",
        "capture -o OUT",
        "calibrate -o OUT",
        "restore",
        "coreidle status",
        "cpufreq-info",
        "cpufreq-set -g powersave",
    ] {
        let mut args: Vec<&str> =
            call.split(' ').map(|word| if word == "OUT" { &out } else { word }).collect();
        args.splice(1..1, ["--root", &root]);
        let said = wattwise(&args);
        let expected = format!("wattwise: --root {root}: no CPU below sys/devices/system/cpu; expected ");
        assert_eq!(said.status.code(), Some(2), "{call}");
        assert!(text(&said.stderr).starts_with(&expected), "{call}: {}", text(&said.stderr));
        assert!(!std::path::Path::new(&out).exists(), "{call}");
    }
}

#[test]
fn a_dry_run_shows_each_write_and_the_rule_that_refuses() {
    let Some(lab) = Lab::new("skylake-server-active") else { return };
    let before = lab.machine.snapshot();
    let out = lab.run(&["set", "--governor", "performance", "--epp", "power", "--dry-run"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stdout);
    assert!(said.contains("policy0 governor: powersave -> performance"), "{said}");
    assert!(said.contains("REFUSED") && said.contains("performance"), "{said}");
    assert_eq!(lab.machine.snapshot(), before);
    let json: serde_json::Value =
        serde_json::from_str(&lab.done(&["set", "--max", "50%", "--cpus", "0", "--dry-run", "--json"]))
            .unwrap();
    assert_eq!(json["schema"], "wattwise.set/1");
    // Half of 37 steps of 100 MHz, rounded up as intel_pstate does for max_perf_pct.
    assert_eq!(json["changes"][0]["asked"], "1900000");
    let notes = json["notes"].as_array().unwrap();
    assert_eq!(notes, &["--max 50% is 1.90 GHz here, not exactly 50 % of 3.70 GHz"]);
    let whole = lab.done(&["set", "--max", "100%", "--min", "1.2GHz", "--dry-run"]);
    assert!(!whole.contains(" is "), "{whole}");
    assert_eq!(lab.machine.snapshot(), before);
}

#[test]
fn settings_are_held_while_a_command_runs() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let before = lab.machine.snapshot();
    let script = "cat \"$0/sys/devices/system/cpu/cpufreq/policy0/scaling_governor\"; exit 7";
    let at = lab.at().display().to_string();
    let out = lab.run(&["set", "--governor", "powersave", "--for", "sh", "-c", script, &at]);
    assert_eq!(
        (out.status.code(), text(&out.stdout).as_str()),
        (Some(7), "powersave\n"),
        "{}",
        text(&out.stderr)
    );
    assert_eq!(lab.machine.snapshot(), before);
    // A signal ends the command, and the settings go back.
    let root = at.clone();
    let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(["set", "--root", &root, "--governor", "powersave", "--for", "sleep", "100"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_while(&mut child, || lab.machine.snapshot() == before);
    std::thread::sleep(std::time::Duration::from_millis(300));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(lab.machine.snapshot(), before);
    assert_eq!(lab.done(&["restore"]), "nothing to put back\n");
    // Until a time has passed.
    lab.done(&["set", "--governor", "powersave", "--until", "200ms"]);
    assert_eq!(lab.machine.snapshot(), before);
}

/// SIGKILL gives no time to put settings back: the guard does, where signals have not ended it, and says so.
#[test]
fn the_guard_of_a_killed_command_puts_back_what_it_left() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let (before, root) = (lab.machine.snapshot(), lab.at().display().to_string());
    for held in [
        &["run", "-p", "powersave", "--", "sleep", "4"][..],
        &["set", "--governor", "powersave", "--until", "forever"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command
            .args(lab.args(held, &root))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_while(&mut child, || lab.file(&format!("{CPUFREQ}/scaling_governor")) != "powersave");
        let [guard] = guards_of(child.id())[..] else { panic!("one guard") };
        // As a service manager asks all processes of a unit.
        std::thread::sleep(std::time::Duration::from_millis(300));
        rustix::process::kill_process(guard, rustix::process::Signal::TERM).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_ne!(lab.machine.snapshot(), before, "it waits");
        child.kill().unwrap();
        // The guard has the other end of this pipe, until it has put back.
        let said = text(&child.wait_with_output().unwrap().stderr);
        assert!(said.contains("was killed and had left settings changed: "), "{said}");
        assert_eq!(lab.machine.snapshot(), before, "{held:?}");
        assert_eq!(lab.done(&["restore"]), "nothing to put back\n");
    }
    // A command that ends by itself leaves no guard.
    let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(lab.args(&["set", "--governor", "powersave", "--until", "200ms"], &root))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(guards_of(child.id()), []);
}

/// Whoever reads what `set` prints may leave: settings are held all the same.
#[test]
fn settings_are_held_without_a_reader() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let (before, root) = (lab.machine.snapshot(), lab.at().display().to_string());
    let mut child = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(lab.args(&["set", "--governor", "powersave", "--until", "forever"], &root))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    wait_while(&mut child, || lab.file(&format!("{CPUFREQ}/scaling_governor")) != "powersave");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it holds");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(lab.machine.snapshot(), before);
}

/// Where the guard was killed too: the next command puts back, unless `set` was to leave them or their owner lives.
#[test]
fn what_a_killed_command_left_goes_back_before_the_next_one() {
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let (before, root) = (lab.machine.snapshot(), lab.at().display().to_string());
    let held = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command
            .args(lab.args(args, &root))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_while(&mut child, || lab.file(&format!("{CPUFREQ}/scaling_governor")) != "powersave");
        std::thread::sleep(std::time::Duration::from_millis(300));
        child
    };
    let hold = ["set", "--governor", "powersave", "--until", "forever"];
    for (killed, next) in [
        (&["run", "-p", "powersave", "--", "sleep", "2"][..], &["run", "--", "true"][..]),
        (&hold, &["set", "--governor", "ondemand"]),
        (&hold, &["ab", "nosuch", "current", "--", "true"]),
        (&hold, &["prove", "nosuch", "current"]),
    ] {
        let mut child = held(killed);
        assert!(!text(&lab.run(&["info"]).stderr).contains("killed"), "its owner lives");
        kill_with_guard(&mut child);
        let left = lab.machine.snapshot();
        for look in [&["info"][..], &["set", "--max", "50%", "--dry-run"]] {
            let said = text(&lab.run(look).stderr);
            assert!(said.contains("was killed") && said.contains("'wattwise restore'"), "{look:?}: {said}");
        }
        assert_eq!(lab.machine.snapshot(), left, "who only looks changes nothing");
        let said = text(&lab.run(next).stderr);
        assert!(said.contains("was killed and had left settings changed: 4 put back"), "{next:?}: {said}");
        assert_eq!(lab.machine.snapshot(), before, "{killed:?}, {next:?}");
        assert_eq!(lab.done(&["restore"]), "nothing to put back\n");
    }
    lab.done(&["set", "--governor", "powersave"]);
    lab.done(&["run", "--", "true"]);
    assert_eq!(lab.file(&format!("{CPUFREQ}/scaling_governor")), "powersave", "what 'set' left stays");
}

#[test]
fn this_machine_is_shown_and_what_it_lacks_is_explained() {
    let page = done(&["info", "--all"]);
    for topic in ["CPUs", "Speed", "Idle", "Energy", "Temperature", "Battery"] {
        assert!(page.contains(topic), "{page}");
    }
    let json: serde_json::Value = serde_json::from_str(&done(&["info", "--json"])).unwrap();
    for place in ["/cpufreq/policies", "/energy", "/uncore", "/registers", "/firmware"] {
        let found = json.pointer(place).unwrap();
        let why = found.pointer("/passed_over/0/why").and_then(|w| w.as_str()).unwrap_or("");
        assert!(found.get("value").is_some() || why.len() > 10, "{place}: neither a value nor a reason");
    }
}

/// The first screen says what is in force, and changes with it.
#[test]
fn one_screen_says_what_is_in_force() {
    let Some(lab) = Lab::new("hybrid-laptop") else { return };
    lab.done(&["set", "--max", "3GHz", "--cpus", "0-7"]);
    let screen = lab.done(&["info"]).split_whitespace().collect::<Vec<_>>().join(" ");
    for fact in [
        "intel_pstate, active mode; boost on",
        "CPUs 0-7: governor powersave, EPP balance_performance, limited to 400 MHz to 3.00 GHz of 400 MHz to 4.70 GHz",
        "CPUs 8-15: governor powersave, EPP balance_performance, 400 MHz to 3.40 GHz",
        "POLL C1E C6 C8 C10",
        "package-0 28 W over 27.98 s",
        "battery; BAT0 78 %",
    ] {
        assert!(screen.contains(fact), "no '{fact}' in\n{screen}");
    }
    lab.done(&["set", "--boost", "off"]);
    assert!(lab.done(&["info"]).contains("boost off"));
}

#[test]
fn a_capture_of_this_machine_shows_the_same_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.wattwise");
    let name = file.display().to_string();
    done(&["capture", "-o", &name, "--for", "300ms", "--every", "100ms"]);
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&done(args)).unwrap() };
    let (here, there) = (json(&["info", "--json"]), json(&["info", "--json", "--root", &name]));
    assert_eq!(here["topology"], there["topology"]);
    assert_eq!(here["cpufreq"], there["cpufreq"]);
    let states = |j: &serde_json::Value| j["cpuidle"]["driver"].clone();
    assert_eq!(states(&here), states(&there));
    // A capture is for looking.
    let out = wattwise(&["set", "--root", &name, "--governor", "powersave"]);
    assert!([Some(1), Some(3)].contains(&out.status.code()), "{}", text(&out.stderr));
    // Cut short, it is refused by name.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let out = wattwise(&["info", "--root", &name]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("here.wattwise: is damaged or cut short"), "{}", text(&out.stderr));
}

#[test]
fn the_whole_command_set_runs_on_every_machine() {
    for name in wattwise_emulator::names() {
        let root = format!("emulated:{name}");
        let screen = done(&["info", "--root", &root]);
        let lines = screen.lines().count();
        assert!(screen.contains("--all") && lines <= 24, "{name}: {lines} lines\n{screen}");
        let longest = screen.lines().map(|l| l.chars().count()).max().unwrap_or_default();
        assert!(longest <= 80, "{name}: {longest} columns\n{screen}");
        let page = done(&["info", "--all", "--root", &root]);
        assert!(
            page.contains("CPUs") && page.lines().count() < 250,
            "{name}: {} lines",
            page.lines().count()
        );
        let json: serde_json::Value =
            serde_json::from_str(&done(&["info", "--json", "--root", &root])).unwrap();
        assert_eq!(json["schema"], "wattwise.info/1");
        for args in [
            &["set", "--governor", "performance", "--dry-run"][..],
            &["set", "--min", "min", "--max", "60%", "--dry-run"],
            &["set", "--freq", "min", "--dry-run"],
            &["set", "--epp", "balance_power", "--dry-run"],
            &["set", "--epb", "power", "--dry-run"],
            &["set", "--boost", "off", "--dry-run"],
            &["set", "--cstate", "1=off", "--dry-run"],
            &["set", "--latency", "20us", "--dry-run"],
            &["set", "--idle-governor", "menu", "--dry-run"],
            &["set", "--tstate", "50%", "--dry-run"],
            &["set", "--rapl", "10W", "--dry-run"],
            &["set", "--uncore-max", "max", "--dry-run"],
            &["set", "--profile", "balanced", "--dry-run"],
            &["set", "--driver-mode", "passive", "--dry-run"],
            &["set", "--cpus", "0", "--online", "on", "--dry-run"],
            &["cpufreq-info"],
            &["cpufreq-set", "-g", "performance"],
            &["restore"],
        ] {
            let mut all = args.to_vec();
            all.extend(["--root", &root]);
            let out = wattwise(&all);
            let code = out.status.code();
            assert!([Some(0), Some(2), Some(3)].contains(&code), "{name} {args:?}: {}", text(&out.stderr));
            let lines = text(&out.stderr).trim_end().lines().count();
            assert!(
                code == Some(0) || lines == 1 || !out.stdout.is_empty(),
                "{name} {args:?}: {}",
                text(&out.stderr)
            );
        }
    }
}

/// Its journal is gone with it: a later command that got the same process number must not find one.
#[test]
fn an_emulated_machine_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .args(["set", "--governor", "performance", "--root", "emulated:bc10"])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    assert!(text(&out.stdout).contains("got performance"), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A virtual machine of two CPUs, captured: what it lacks is explained wherever the file is looked at.
#[test]
fn a_captured_virtual_machine_is_read_anywhere() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/vm-2cpu.wattwise");
    let page = done(&["info", "--all", "--root", file]);
    for fact in
        ["0-1 (2 CPUs)", "driver          haltpoll", "no cpufreq driver", "no powercap", "no thermal zone"]
    {
        assert!(page.contains(fact), "no '{fact}' in\n{page}");
    }
    let out = wattwise(&["set", "--governor", "powersave", "--dry-run", "--root", file]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
}

/// How many writing calls a command makes: every one is a point at which it can be killed.
fn writing_calls(lab: &Lab, args: &[&str]) -> usize {
    let log = lab.folder.path().join("strace");
    let out = strace(lab, &["-o", log.to_str().unwrap(), "-e", CALLS], args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let calls = std::fs::read_to_string(&log).unwrap().lines().filter(|l| l.contains(" = ")).count();
    std::fs::remove_file(log).unwrap();
    calls
}

/// What a transaction does to the world: writes, syncs, and the journal's making and removal.
const CALLS: &str = "trace=write,pwrite64,fsync,unlink,unlinkat,flock,mkdir,mkdirat";

fn strace(lab: &Lab, options: &[&str], args: &[&str]) -> Output {
    let root = lab.at().display().to_string();
    Command::new("strace")
        .args(["-f", "-qq"])
        .args(options)
        .arg(env!("CARGO_BIN_EXE_wattwise"))
        .args(lab.args(args, &root))
        .output()
        .unwrap()
}

/// Kills a 64-CPU transaction at every one of its calls; `restore` must bring back every byte.
#[test]
fn killed_at_any_point_everything_comes_back() {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing");
        return;
    }
    let set = ["set", "--governor", "powersave", "--max", "70%"];
    let calls = {
        let Some(lab) = Lab::new("server-64") else { return };
        let before = lab.machine.snapshot();
        let calls = writing_calls(&lab, &set);
        assert!(calls > 2 * 128, "128 changes and their journal are more than {calls} calls");
        lab.done(&["restore"]);
        assert_eq!(lab.machine.snapshot(), before);
        calls
    };
    let every = std::env::var("WATTWISE_KILL_EVERY").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let points: Vec<usize> = (1..=calls).step_by(every).collect();
    // A machine for each of two threads: each waits for its own programs most of the time.
    let changed: usize = std::thread::scope(|scope| {
        let halves: Vec<_> = points
            .chunks(points.len().div_ceil(2))
            .map(|half| scope.spawn(|| kill_at_each(&set, calls, half)))
            .collect();
        halves.into_iter().map(|h| h.join().unwrap()).sum()
    });
    assert!(changed * every > 128, "only {changed} kills left something to restore: the test kills nothing");
}

/// Kills a command at each of some calls, restores each time, and says how often something was left to restore.
fn kill_at_each(command: &[&str], calls: usize, points: &[usize]) -> usize {
    let Some(lab) = Lab::new("server-64") else { return 0 };
    let before = lab.machine.snapshot();
    let mut changed = 0;
    for point in points {
        let inject = format!("inject={}:signal=KILL:when={point}", CALLS.trim_start_matches("trace="));
        strace(&lab, &["-o", "/dev/null", "-e", CALLS, "-e", &inject], command);
        changed += usize::from(lab.machine.snapshot() != before);
        let out = lab.run(&["restore"]);
        assert!(out.status.success(), "killed at call {point}: {}{}", text(&out.stdout), text(&out.stderr));
        assert_eq!(differing(&before, &lab.machine.snapshot()), "", "killed at call {point} of {calls}");
    }
    changed
}

fn differing(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> String {
    let differing = before.iter().filter(|(k, v)| after.get(*k) != Some(*v));
    differing
        .map(|(k, v)| format!("{k}: {} -> {:?}\n", text(v).trim(), after.get(k).map(|a| text(a))))
        .collect()
}

/// The same with one file that fails for good: all the others come back, and it is named.
#[test]
fn killed_with_a_file_that_fails_the_others_come_back() {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing");
        return;
    }
    let Some(lab) = Lab::new("server-64") else { return };
    let before = lab.machine.snapshot();
    let set = ["set", "--governor", "powersave", "--max", "70%"];
    let calls = writing_calls(&lab, &set);
    lab.done(&["restore"]);
    let stuck = "sys/devices/system/cpu/cpufreq/policy5/scaling_governor";
    for point in [calls / 2, calls * 3 / 4, calls - 1] {
        let inject = format!("inject={}:signal=KILL:when={point}", CALLS.trim_start_matches("trace="));
        strace(&lab, &["-o", "/dev/null", "-e", CALLS, "-e", &inject], &set);
        lab.machine.inject(Fault::Errno {
            pattern: stuck.into(),
            op: Op::Write,
            nth: 0,
            errno: rustix::io::Errno::IO,
        });
        let out = lab.run(&["restore"]);
        assert_eq!(out.status.code(), Some(1));
        assert!(text(&out.stdout).contains("NOT put back: policy5 governor"), "{}", text(&out.stdout));
        let left = differing(&before, &lab.machine.snapshot());
        assert!(left.lines().count() == 1 && left.contains(stuck), "{left}");
        lab.machine.clear_faults();
        lab.done(&["restore"]);
        assert_eq!(differing(&before, &lab.machine.snapshot()), "");
    }
}

/// In a steady loop nothing is opened twice: ten more looks are no more opens.
#[test]
fn a_steady_loop_opens_nothing_twice() {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace is missing");
        return;
    }
    let Some(lab) = Lab::new("core-i5-2gen") else { return };
    let file = lab.folder.path().join("c").display().to_string();
    let log = lab.folder.path().join("opens");
    let opens = |length: &str| {
        let args = ["capture", "-o", &file, "--for", length, "--every", "50ms"];
        let out = strace(&lab, &["-o", log.to_str().unwrap(), "-e", "trace=openat2"], &args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        std::fs::read_to_string(&log).unwrap().lines().count()
    };
    let (short, long) = (opens("50ms"), opens("550ms"));
    assert!(short > 20, "{short}");
    assert_eq!(short, long);
}

/// A journal that others can write says nothing about what root writes.
#[test]
fn a_planted_journal_is_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (tree, journal) = (folder.path().join("tree"), folder.path().join("tree.journal"));
    std::fs::create_dir_all(tree.join("sys/devices/system/cpu/cpu0")).unwrap();
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(folder.path().join("x"), "theirs").unwrap();
    let planted = concat!(
        r#"{"header":{"schema":"wattwise.journal/1","pid":1,"boot_id":"","command":"set"}}"#,
        "\n",
        r#"{"item":{"target":{"file":"../x"},"what":"x","original":"ours"}}"#,
        "\n\"ready\"\n"
    );
    let file = journal.join("000001.jsonl");
    std::fs::write(&file, planted).unwrap();
    // Both what anybody may write and what only the owner may: neither leads out of the tree.
    for mode in [0o666, 0o600] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let out = wattwise(&["restore", "--root", tree.to_str().unwrap()]);
        assert_eq!(std::fs::read_to_string(folder.path().join("x")).unwrap(), "theirs");
        assert_eq!(out.status.code(), Some(1), "{mode:o}: {}", text(&out.stdout));
    }
}
