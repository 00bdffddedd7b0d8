//! The emulator checked by a program that knows nothing of it: the real cpupower reads and sets the
//! mounted machines, and what it prints is compared with what their files say.
//!
//! cpupower reads /sys only: each run has a mount namespace of its own in which the mounted
//! machine's folder lies over `/sys/devices/system/cpu`.
#![allow(clippy::unwrap_used)]

use rustix::io::Errno;
use std::path::Path;
use std::process::{Command, Output};
use wattwise_emulator::{Emulator, Fault, Op, fuse};
use wattwise_hw::root;
use wattwise_hw::root::Root;

const CPU: &str = "sys/devices/system/cpu";

/// Mounts a machine. `None`, said aloud, where this system cannot; under CI that is a failure.
fn mounted(m: &Emulator, at: &Path) -> Option<fuse::Mounted> {
    let missing = |what: &str| {
        assert!(std::env::var_os("CI").is_none(), "{what}; CI needs it");
        eprintln!("skipped: {what}");
    };
    if !rustix::process::geteuid().is_root() {
        missing("a mount namespace over /sys needs root");
        return None;
    }
    if !Path::new("/usr/bin/cpupower").exists() {
        missing("cpupower is missing (Debian: linux-cpupower)");
        return None;
    }
    match fuse::mount(m, at) {
        Ok(mounted) => Some(mounted),
        Err(e) => {
            missing(&format!("no FUSE: {e} (Debian: fuse3)"));
            None
        }
    }
}

fn cpupower(at: &Path, args: &[&str]) -> Output {
    let script = "mount --bind \"$0/sys/devices/system/cpu\" /sys/devices/system/cpu && exec cpupower \"$@\"";
    let at = at.to_str().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, at]).args(args);
    command.env("LC_ALL", "C").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What cpupower prints for each CPU: the lines after `analyzing CPU N:`.
fn by_cpu(out: &Output) -> Vec<(u32, Vec<String>)> {
    let mut all: Vec<(u32, Vec<String>)> = Vec::new();
    for line in text(&out.stdout).lines() {
        if let Some(cpu) = line.trim().strip_prefix("analyzing CPU ") {
            all.push((cpu.trim_end_matches(':').parse().unwrap(), Vec::new()));
        } else if let Some((_, lines)) = all.last_mut()
            && !line.trim().is_empty()
        {
            lines.push(line.trim().to_owned());
        }
    }
    all
}

/// 1.20 GHz, 300 us … as cpupower prints them: three figures at most.
fn khz(text: &str) -> f64 {
    let (number, unit) = text.trim().split_once(' ').unwrap();
    let scale = match unit.split_whitespace().next().unwrap().trim_end_matches(',') {
        "GHz" => 1e6,
        "MHz" => 1e3,
        "kHz" => 1.0,
        other => panic!("{other}"),
    };
    number.parse::<f64>().unwrap() * scale
}

fn near(shown: f64, exact: f64) -> bool {
    (shown - exact).abs() <= exact * 0.006 + 1.0
}

#[test]
fn cpupower_reads_what_the_files_say() {
    let folder = tempfile::tempdir().unwrap();
    for name in wattwise_emulator::names().filter(|n| !n.contains("256")) {
        let m = wattwise_emulator::named(name).unwrap();
        for cpu in m.online() {
            m.set_load(cpu, (cpu * 97) % 1001);
        }
        // Some CPUs differ from the others.
        _ = m.write(&format!("{CPU}/cpu1/cpufreq/scaling_max_freq"), b"1600000");
        _ = m.write(&format!("{CPU}/cpu1/cpuidle/state1/disable"), b"1");
        m.advance(3_000_000_000);
        let Some(mount) = mounted(&m, folder.path()) else { return };
        frequencies(&m, name, mount.path());
        idle(&m, name, mount.path());
    }
}

fn frequencies(m: &Emulator, name: &str, at: &Path) {
    let out = cpupower(at, &["-c", "all", "frequency-info"]);
    let pages = by_cpu(&out);
    let ours = wattwise_hw::states::cpufreq::Cpufreq::read(m);
    assert_eq!(pages.iter().map(|p| p.0).collect::<Vec<_>>(), m.online(), "{name}");
    for (cpu, lines) in pages {
        let file = |file: &str| root::text(m, &format!("{CPU}/cpu{cpu}/cpufreq/{file}"));
        let line = |start: &str| {
            let found = lines.iter().find_map(|l| l.strip_prefix(start)).map(str::trim);
            found.unwrap_or_else(|| panic!("{name} cpu{cpu}: no '{start}' in {lines:#?}")).to_owned()
        };
        let Some(driver) = file("scaling_driver") else {
            assert!(lines.iter().any(|l| l.contains("no or unknown cpufreq driver")), "{name}: {lines:#?}");
            continue;
        };
        assert_eq!(line("driver:"), driver, "{name} cpu{cpu}");
        assert_eq!(line("CPUs which run at the same hardware frequency:"), file("related_cpus").unwrap());
        assert_eq!(
            line("CPUs which need to have their frequency coordinated by software:"),
            file("affected_cpus").unwrap()
        );
        let exact = |name: &str| file(name).unwrap().parse::<f64>().unwrap();
        let range = |text: &str, between: &str| {
            let (low, high) = text.split_once(between).unwrap();
            (khz(low), khz(high.trim_end_matches('.')))
        };
        let (low, high) = range(&line("hardware limits:"), " - ");
        assert!(
            near(low, exact("cpuinfo_min_freq")) && near(high, exact("cpuinfo_max_freq")),
            "{name} cpu{cpu}"
        );
        let policy = line("current policy: frequency should be within");
        let (low, high) = range(&policy, " and ");
        assert!(near(low, exact("scaling_min_freq")), "{name} cpu{cpu}: {policy}");
        assert!(near(high, exact("scaling_max_freq")), "{name} cpu{cpu}: {policy}");
        // What `info` reads is what cpupower reads.
        let info = ours.of(cpu).unwrap();
        let (min, max) = info.limits_khz.unwrap();
        let (slowest, fastest) = info.hardware_khz.unwrap();
        assert!(near(low, min as f64) && near(high, max as f64), "{name} cpu{cpu}: {policy}");
        let hardware = range(&line("hardware limits:"), " - ");
        assert!(near(hardware.0, slowest as f64) && near(hardware.1, fastest as f64), "{name} cpu{cpu}");
        assert_eq!(Some(driver.as_str()), info.driver.as_deref());
        assert_eq!(line("available cpufreq governors:"), info.governors.join(" "), "{name} cpu{cpu}");
        assert_eq!(line("The governor \"").split('"').next(), info.governor.as_deref(), "{name} cpu{cpu}");
        let governors = line("available cpufreq governors:");
        assert_eq!(governors, file("scaling_available_governors").unwrap(), "{name} cpu{cpu}");
        let governor = line("The governor \"");
        assert_eq!(governor.split('"').next().unwrap(), file("scaling_governor").unwrap(), "{name} cpu{cpu}");
        if let Some(levels) = file("scaling_available_frequencies") {
            let shown = line("available frequency steps:");
            let shown: Vec<f64> = shown.split(", ").map(khz).collect();
            let exact: Vec<f64> = levels.split_whitespace().map(|l| l.parse().unwrap()).collect();
            assert_eq!(shown.len(), exact.len(), "{name} cpu{cpu}");
            assert!(
                shown.iter().zip(&exact).all(|(s, e)| near(*s, *e)),
                "{name} cpu{cpu}: {shown:?} {exact:?}"
            );
        }
        let by = match file("cpuinfo_cur_freq") {
            Some(_) => "hardware",
            None => "kernel",
        };
        let sentence = format!("(asserted by call to {by})");
        let found = lines.iter().find(|l| l.starts_with("current CPU frequency") && l.ends_with(&sentence));
        let found = found.unwrap_or_else(|| panic!("{name} cpu{cpu}: no {sentence} in {lines:#?}"));
        let shown = found.strip_prefix("current CPU frequency:").unwrap();
        assert!(near(khz(shown), exact("scaling_cur_freq")), "{name} cpu{cpu}: {found}");
    }
    exact_frequencies(m, name, at);
}

/// To the kHz, as others of its options print them.
fn exact_frequencies(m: &Emulator, name: &str, at: &Path) {
    for (cpu, lines) in by_cpu(&cpupower(at, &["-c", "all", "frequency-info", "--hwlimits"])) {
        let file = |file: &str| root::text(m, &format!("{CPU}/cpu{cpu}/cpufreq/{file}"));
        if let (Some(min), Some(max)) = (file("cpuinfo_min_freq"), file("cpuinfo_max_freq")) {
            assert!(lines.contains(&format!("{min} {max}")), "{name} cpu{cpu}: {lines:?}");
        }
    }
    for (cpu, lines) in by_cpu(&cpupower(at, &["-c", "all", "frequency-info", "--freq"])) {
        if let Some(cur) = root::text(m, &format!("{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq")) {
            let line = format!("current CPU frequency: {cur} (asserted by call to kernel)");
            assert!(lines.contains(&line), "{name} cpu{cpu}: {lines:?}");
        }
    }
}

fn idle(m: &Emulator, name: &str, at: &Path) {
    let out = cpupower(at, &["-c", "all", "idle-info"]);
    let printed = text(&out.stdout);
    if let Some(driver) = root::text(m, &format!("{CPU}/cpuidle/current_driver")) {
        assert!(printed.contains(&format!("CPUidle driver: {driver}")), "{name}: {printed}");
        let governor = root::text(m, &format!("{CPU}/cpuidle/current_governor_ro")).unwrap();
        assert!(printed.contains(&format!("CPUidle governor: {governor}")), "{name}: {printed}");
    }
    for (cpu, lines) in by_cpu(&out) {
        let states: Vec<String> = m.list(&format!("{CPU}/cpu{cpu}/cpuidle")).unwrap_or_default();
        if states.is_empty() {
            assert!(lines.iter().any(|l| l.contains("No idle states")), "{name}: {lines:?}");
            continue;
        }
        let count = format!("Number of idle states: {}", states.len());
        assert!(lines.contains(&count), "{name} cpu{cpu}: {lines:#?}");
        let file = |state: &str, file: &str| {
            root::text(m, &format!("{CPU}/cpu{cpu}/cpuidle/{state}/{file}")).unwrap()
        };
        let names: Vec<String> = states.iter().map(|s| file(s, "name")).collect();
        assert!(
            lines.contains(&format!("Available idle states: {}", names.join(" "))),
            "{name} cpu{cpu}: {lines:#?}"
        );
        let mut rest = lines.iter();
        for state in &states {
            let own = file(state, "name");
            let off = if file(state, "disable") == "1" { " (DISABLED) :" } else { ":" };
            let head = format!("{own}{off}");
            assert!(rest.any(|l| *l == head), "{name} cpu{cpu}: no '{head}' in {lines:#?}");
            for (key, of) in [
                ("Flags/Description:", "desc"),
                ("Latency:", "latency"),
                ("Usage:", "usage"),
                ("Duration:", "time"),
            ] {
                let value =
                    rest.next().and_then(|l| l.strip_prefix(key)).unwrap_or_else(|| panic!("{key}")).trim();
                assert_eq!(value, file(state, of), "{name} cpu{cpu} {state} {of}");
            }
        }
    }
}

#[test]
fn cpupower_sets_and_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let m = wattwise_emulator::named("core-i5-2gen").unwrap();
    let Some(mount) = mounted(&m, folder.path()) else { return };
    let at = mount.path();
    let set =
        |args: &[&str]| cpupower(at, &[&["-c", "0,2", "frequency-set"], args].concat()).status.success();
    let file = |cpu: u32, name: &str| root::text(&m, &format!("{CPU}/cpu{cpu}/cpufreq/{name}")).unwrap();
    assert!(set(&["-g", "userspace"]));
    assert_eq!(
        (file(0, "scaling_governor"), file(1, "scaling_governor")),
        ("userspace".into(), "ondemand".into())
    );
    assert!(set(&["-u", "2200MHz"]));
    assert!(set(&["-d", "1.1GHz"]));
    assert_eq!(
        (file(2, "scaling_min_freq"), file(2, "scaling_max_freq")),
        ("1200000".into(), "2200000".into())
    );
    assert!(set(&["-f", "1700MHz"]));
    assert_eq!(file(0, "cpuinfo_cur_freq"), "1800000");
    assert_eq!(file(1, "cpuinfo_cur_freq"), "800000");
    // What is refused is said.
    assert!(!set(&["-g", "nonsense"]));
    assert_eq!(file(0, "scaling_governor"), "userspace");
    m.inject(Fault::Errno { pattern: "*scaling_governor".into(), op: Op::Write, nth: 0, errno: Errno::BUSY });
    assert!(!set(&["-g", "performance"]));
    m.clear_faults();
    let off = cpupower(at, &["-c", "3", "idle-set", "-d", "2"]);
    assert!(off.status.success(), "{off:?}");
    assert_eq!(root::text(&m, &format!("{CPU}/cpu3/cpuidle/state2/disable")).unwrap(), "1");

    // An active driver knows no userspace governor.
    drop(mount);
    let m = wattwise_emulator::named("hybrid-laptop").unwrap();
    let Some(mount) = mounted(&m, folder.path()) else { return };
    assert!(!cpupower(mount.path(), &["-c", "0", "frequency-set", "-g", "userspace"]).status.success());
    assert!(cpupower(mount.path(), &["-c", "0", "frequency-set", "-g", "performance"]).status.success());
    m.plug(5, false);
    let out = cpupower(mount.path(), &["-c", "all", "frequency-info", "--driver"]);
    assert!(text(&out.stdout).contains("analyzing CPU 5:\n *is offline"), "{out:?}");
}

#[test]
fn mounted_files_are_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let m = wattwise_emulator::named("amd-laptop").unwrap();
    let Some(mount) = mounted(&m, folder.path()) else { return };
    let file = |name: &str| mount.path().join(CPU).join(name);
    let governor = file("cpu3/cpufreq/scaling_governor");
    assert_eq!(std::fs::metadata(&governor).unwrap().len(), 4096);
    assert_eq!(std::fs::read_link(file("cpu3/cpufreq")).unwrap().to_str(), Some("../cpufreq/policy3"));
    // Truncated, then written: what a shell does.
    std::fs::write(&governor, "performance\n").unwrap();
    assert_eq!(std::fs::read_to_string(&governor).unwrap(), "performance\n");
    let errno = |e: std::io::Error| e.raw_os_error();
    let busy = std::fs::write(file("cpu3/cpufreq/energy_performance_preference"), "power");
    assert_eq!(errno(busy.unwrap_err()), Some(Errno::BUSY.raw_os_error()));
    assert_eq!(errno(std::fs::write(file("present"), "0").unwrap_err()), Some(Errno::ACCESS.raw_os_error()));
    let gone = std::fs::File::open(file("cpu3/topology/core_id")).unwrap();
    m.plug(3, false);
    use std::os::unix::fs::FileExt;
    assert_eq!(errno(gone.read_at(&mut [0; 8], 0).unwrap_err()), Some(Errno::NODEV.raw_os_error()));
    assert!(!file("cpu3/topology").exists());
    assert_eq!(errno(std::fs::read(&governor).unwrap_err()), Some(Errno::BUSY.raw_os_error()));
    m.plug(3, true);
    // Through our own reader of real folders: the same bytes as without the mount.
    let real = root::DirRoot::new(mount.path());
    for path in m.snapshot().keys() {
        assert_eq!(Root::read(&real, path).unwrap(), Root::read(&m, path).unwrap(), "{path}");
    }
    Root::write(&real, &format!("{CPU}/cpufreq/policy2/scaling_max_freq"), b"2000000").unwrap();
    assert_eq!(m.writes().last().unwrap().1, "2000000");
    let at = mount.path().to_owned();
    drop(mount);
    assert_eq!(std::fs::read_dir(at).unwrap().count(), 0, "unmounted");
}

#[test]
fn the_command_mounts_while_another_runs() {
    let folder = tempfile::tempdir().unwrap();
    let m = wattwise_emulator::named("bc10").unwrap();
    if mounted(&m, folder.path()).is_none() {
        return;
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.arg("emulate").args(args).output().unwrap()
    };
    let at = folder.path().to_str().unwrap();
    let script = "cat $WATTWISE_ROOT/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; exit 7";
    let out = run(&["bc10", at, "--for", "sh", "-c", script]);
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(7), "userspace\n"), "{out:?}");
    assert_eq!(std::fs::read_dir(at).unwrap().count(), 0, "unmounted");
    let out = run(&["bc11", at]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("bc10"), "{out:?}");
    assert_eq!(run(&["bc10", "/nowhere/at/all"]).status.code(), Some(2));

    // In the foreground until a signal comes.
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_wattwise")).args(["emulate", "bc10", at]).spawn().unwrap();
    let there = folder.path().join("sys");
    for _ in 0..600 {
        if there.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(there.exists(), "mounted");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!there.exists(), "unmounted");
}

/// What `--for` starts has the machine in `/sys` and `/proc`, whatever it is; nobody else has.
#[test]
fn to_the_command_the_machine_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let m = wattwise_emulator::named("bc10").unwrap();
    if mounted(&m, folder.path()).is_none() {
        return;
    }
    let at = folder.path().to_str().unwrap();
    let under = |command: &[&str]| {
        let mut all = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        all.args(["emulate", "bc10", at, "--for"]).args(command).env("LC_ALL", "C").output().unwrap()
    };
    let out = under(&["cpupower", "frequency-info"]);
    let pages = by_cpu(&out);
    let lines = &pages.first().unwrap_or_else(|| panic!("{out:?}")).1;
    for line in [
        "driver: omap",
        "hardware limits: 125 MHz - 600 MHz",
        "available frequency steps: 125 MHz, 250 MHz, 500 MHz, 550 MHz, 600 MHz",
    ] {
        let plain = |l: &String| l.split_whitespace().eq(line.split_whitespace());
        assert!(lines.iter().any(plain), "no '{line}' in {lines:#?}");
    }
    // What this machine has and that one has not is not there; our own commands take it for theirs too.
    let out = under(&["sh", "-c", "ls /sys/class/powercap /sys/class/hwmon 2>/dev/null; cat /proc/cpuinfo"]);
    let info = root::text(&m, "proc/cpuinfo").unwrap();
    assert_eq!(
        text(&out.stdout).replace("/sys/class/powercap:", "").replace("/sys/class/hwmon:", "").trim(),
        info.trim()
    );
    let own = under(&[env!("CARGO_BIN_EXE_wattwise"), "info", "--json"]);
    assert!(text(&own.stdout).contains("\"omap\""), "{own:?}");
    // A setting reaches the machine, and not this one.
    let script = "cpupower frequency-set -f 250MHz >/dev/null && cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq";
    assert_eq!(text(&under(&["sh", "-c", script]).stdout), "250000\n");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let over =
        |l: &&str| l.contains(at) || l.contains(" /sys/devices/system/cpu ") || l.contains(" /proc/cpuinfo ");
    assert_eq!(mounts.lines().find(over), None, "nothing is left mounted");
    let out = under(&["no-such-program"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}
