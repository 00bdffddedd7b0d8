//! The daemon as a process, on a machine of files: killed at any moment, two at once, reloaded, asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[path = "support/tree.rs"]
mod tree;

/// A daemon that ends with its test, also where that fails.
struct Daemon(Child);

impl std::ops::Deref for Daemon {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Daemon {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn of(name: &str) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("tree");
        tree::write(name, &at);
        std::fs::write(folder.path().join("profiles.toml"), "").expect("written");
        Machine { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwised"));
        for (flag, name) in [
            ("--root", "tree"),
            ("--journal", "journal"),
            ("--state", "state"),
            ("--socket", "socket"),
            ("--config", "profiles.toml"),
        ] {
            command.arg(flag).arg(self.at(name));
        }
        command.args(["--bus", "none"]).args(args);
        command
    }

    fn start(&self, args: &[&str]) -> Daemon {
        Daemon(self.command(args).stderr(Stdio::piped()).spawn().expect("runs"))
    }

    /// Runs one that ends by itself; one that does not is killed, and has no exit code.
    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        let begun = Instant::now();
        while child.try_wait().expect("asked").is_none() {
            if begun.elapsed() > Duration::from_secs(60) {
                child.kill().expect("killed");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().expect("ended")
    }

    /// Every file that a daemon may set.
    fn settings(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn gather(at: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(at).expect("a folder").flatten() {
                let path = entry.path();
                let kind = entry.file_type().expect("seen");
                // A file half written is beside the one that it is to replace, hidden.
                let hidden = entry.file_name().to_string_lossy().starts_with('.');
                if kind.is_dir() {
                    gather(&path, into);
                } else if kind.is_file() && !hidden {
                    let bytes = std::fs::read(&path).expect("read");
                    let trimmed = String::from_utf8_lossy(&bytes).trim().to_owned();
                    into.insert(path, trimmed.into_bytes());
                }
            }
        }
        let mut all = BTreeMap::new();
        gather(&self.at("tree/sys"), &mut all);
        all
    }

    fn epp(&self) -> String {
        let file = "tree/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference";
        std::fs::read_to_string(self.at(file)).unwrap_or_default().trim().to_owned()
    }

    fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&self, request: &str) -> String {
        let begun = Instant::now();
        let mut stream = loop {
            match UnixStream::connect(self.at("socket")) {
                Ok(stream) => break stream,
                Err(e) => assert!(begun.elapsed() < Duration::from_secs(60), "{e}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        writeln!(stream, "{request}").expect("sent");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("answered");
        line
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a signal to a process of ours that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// The arguments with which both units start the restorer: on its own after a failure, and whenever the daemon has ended.
fn restorer() -> Vec<String> {
    let words = |unit: &str, key: &str| -> Vec<String> {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)).expect("the unit has it");
        let mut words = line.split_whitespace().map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("/usr/bin/wattwised"));
        words.collect()
    };
    let own = words(include_str!("../../../packaging/systemd/wattwise-restore.service"), "ExecStart=");
    let after = words(include_str!("../../../packaging/systemd/wattwised.service"), "ExecStopPost=");
    assert!(!own.is_empty() && own == after, "{own:?} {after:?}");
    own
}

/// Kills a daemon at so many moments; each time its restorer puts back all.
fn killed(times: u64) {
    let machine = Machine::of("amd-laptop");
    let before = machine.settings();
    let restorer = restorer();
    let restorer: Vec<&str> = restorer.iter().map(String::as_str).collect();
    let (mut in_force, mut longest) = (0, Duration::ZERO);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for n in 0..times {
        let mut daemon = machine.start(&["--profile", ["power-saver", "performance"][(n % 2) as usize]]);
        // A moment: every fourth somewhere in its start, the others from its first journal on, while it writes.
        let journal = || {
            std::fs::read_dir(machine.at("journal"))
                .is_ok_and(|d| d.flatten().any(|e| e.file_name().to_string_lossy().ends_with(".jsonl")))
        };
        let begun = Instant::now();
        while n % 4 != 0 && !journal() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_micros(200));
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros((state >> 33) % 200_000));
        daemon.kill().expect("ours");
        _ = daemon.wait();
        in_force += u64::from(machine.settings() != before);
        let begun = Instant::now();
        let out = machine.run(&restorer);
        longest = longest.max(begun.elapsed());
        assert!(out.status.success(), "{n}: {}", String::from_utf8_lossy(&out.stderr));
        let after = machine.settings();
        let differ: Vec<_> = before.iter().filter(|(path, value)| after.get(*path) != Some(value)).collect();
        assert!(differ.is_empty(), "{n}: {differ:?}");
    }
    assert!(in_force > 0, "no kill came while anything was in force: nothing was tried");
    println!("{times} kills, {in_force} with values in force; put back within {} ms", longest.as_millis());
}

/// `WATTWISE_KILLS=200` has more of them.
#[test]
fn killed_at_random_moments_it_is_put_back_by_the_restorer() {
    let times = std::env::var("WATTWISE_KILLS").ok().and_then(|n| n.parse().ok());
    killed(times.unwrap_or(20));
}

/// Where no restorer ran, the next daemon puts back what the killed one left, whatever it wants itself.
#[test]
fn the_next_daemon_puts_back_what_a_killed_one_left() {
    let machine = Machine::of("amd-laptop");
    std::fs::write(machine.at("profiles.toml"), "[profile.nothing]\n").expect("written");
    let before = machine.settings();
    let mut daemon = machine.start(&["--profile", "power-saver"]);
    machine.until("in force", || machine.epp() == "power");
    daemon.kill().expect("ours");
    _ = daemon.wait();
    let mut daemon = machine.start(&["--profile", "nothing"]);
    assert!(machine.ask(r#"{"do":"status"}"#).contains("\"profile\":\"nothing\""));
    assert_eq!(machine.settings(), before);
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

#[test]
fn a_signal_puts_everything_back() {
    let machine = Machine::of("amd-laptop");
    let before = machine.settings();
    let mut daemon = machine.start(&["--profile", "power-saver"]);
    machine.until("in force", || machine.epp() == "power");
    signal(&daemon, libc::SIGTERM);
    let status = daemon.wait().expect("ours");
    assert!(status.success(), "{status}");
    assert_eq!(machine.settings(), before);
    assert!(!machine.at("socket").exists());
}

#[test]
fn a_second_daemon_refuses_and_disturbs_nothing() {
    let machine = Machine::of("amd-laptop");
    let mut daemon = machine.start(&["--profile", "power-saver"]);
    machine.until("in force", || machine.epp() == "power");
    let out = machine.run(&["--profile", "performance"]);
    let why = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{why}");
    assert!(why.contains("another wattwised runs") && why.lines().count() == 1, "{why}");
    assert!(machine.ask(r#"{"do":"status"}"#).contains("\"profile\":\"power-saver\""));
    // Nor does a restorer that is started beside it.
    assert!(machine.run(&["--restore"]).status.success());
    assert_eq!(machine.epp(), "power");
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

#[test]
fn a_broken_configuration_is_named_and_the_old_one_stays() {
    let machine = Machine::of("amd-laptop");
    std::fs::write(machine.at("profiles.toml"), "[profile.mine]\nsettings = [\"epp=power\"]\n")
        .expect("written");
    let mut daemon = machine.start(&["--profile", "mine"]);
    let mut said = BufReader::new(daemon.stderr.take().expect("piped"));
    machine.until("in force", || machine.epp() == "power");
    std::fs::write(machine.at("profiles.toml"), "[profile.mine]\nsettings = [\"epp-power\"]\n")
        .expect("written");
    signal(&daemon, libc::SIGHUP);
    let mut line = String::new();
    while !line.contains("the old configuration stays") {
        line.clear();
        assert!(said.read_line(&mut line).expect("says it") > 0, "it has ended");
    }
    assert!(line.contains("profiles.toml:2:13: 'epp-power' is no setting"), "{line}");
    assert_eq!(machine.epp(), "power");
    std::fs::write(machine.at("profiles.toml"), "[profile.mine]\nsettings = [\"epp=balance_power\"]\n")
        .expect("written");
    // Without a signal: its folder is watched.
    machine.until("the new one", || machine.epp() == "balance_power");
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

#[test]
fn a_hold_lasts_as_long_as_its_connection() {
    let machine = Machine::of("amd-laptop");
    let mut daemon = machine.start(&[]);
    machine.ask(r#"{"do":"status"}"#);
    let mut stream = UnixStream::connect(machine.at("socket")).expect("listens");
    writeln!(stream, r#"{{"do":"hold","profile":"performance","reason":"a test","application":"us"}}"#)
        .expect("sent");
    machine.until("in force", || machine.epp() == "performance");
    drop(stream);
    machine.until("released", || machine.epp() == "balance_power");
    // Whoever sends nonsense is told so, and nobody else suffers.
    assert!(machine.ask("{\"do\":\"dance\"}").contains("no request"));
    let mut endless = UnixStream::connect(machine.at("socket")).expect("listens");
    _ = endless.write_all(&[b'x'; 100_000]);
    // Refused or cut off: either ends it.
    _ = endless.read_to_end(&mut Vec::new());
    assert!(machine.ask(r#"{"do":"status"}"#).contains("\"holds\":[]"));
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

#[test]
fn a_machine_without_control_is_exit_3() {
    let machine = Machine::of("vm-2cpu");
    let out = machine.run(&[]);
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
    // Which the unit does not answer with another start.
    let unit = include_str!("../../../packaging/systemd/wattwised.service");
    assert!(unit.contains("RestartPreventExitStatus=2 3"));
}

#[test]
fn a_dry_run_prints_and_changes_nothing() {
    let machine = Machine::of("amd-laptop");
    let before = machine.settings();
    let out = machine.run(&["--dry-run", "--profile", "power-saver"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success() && text.contains("policy0 preference: balance_performance -> power"),
        "{text}"
    );
    assert_eq!(machine.settings(), before);
    for name in wattwise_emulator::names() {
        let root = format!("emulated:{name}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwised"));
        let out =
            command.args(["--config", "/no/such", "--root", &root, "--dry-run"]).output().expect("runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        // The question is answered also where nothing can be set, in one line.
        match name {
            "vm-2cpu" => assert!(
                text.starts_with("nothing would be done: ")
                    && text.ends_with("exit code 3\n")
                    && text.lines().count() == 1,
                "{text}"
            ),
            _ => assert!(text.contains("\nwants "), "{name}: {text}"),
        }
    }
}

/// Ten commands a cycle took a tenth of a CPU. A command would be a child that was waited for, with memory of its own, or one that is there.
#[test]
fn auto_cpufreq_no_command_is_started() {
    let machine = Machine::of("amd-laptop");
    std::fs::write(machine.at("profiles.toml"), "[daemon]\nlook = \"1s\"\n").expect("written");
    let mut daemon = machine.start(&["--profile", "power-saver"]);
    machine.until("in force", || machine.epp() == "power");
    for request in [r#"{"do":"set","profile":"performance"}"#, r#"{"do":"metrics"}"#, r#"{"do":"status"}"#] {
        machine.ask(request);
    }
    signal(&daemon, libc::SIGHUP);
    // It has looked a few times and read its configuration again.
    std::thread::sleep(Duration::from_secs(3));
    machine.ask(r#"{"do":"reload"}"#);
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", daemon.id())).expect("it lives");
    let stat = of("stat");
    let after_name: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    // Fields 11 and 13 of proc(5): page faults of children that were waited for.
    assert_eq!([after_name[8], after_name[10]], ["0", "0"], "{stat}");
    // Nobody has it for a parent.
    for process in std::fs::read_dir("/proc").expect("there").flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        assert_ne!(parent, Some(daemon.id().to_string().as_str()), "{stat}");
    }
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

#[test]
fn metrics_are_names_with_units_and_one_family_a_domain() {
    let machine = Machine::of("skylake-server-active");
    let mut daemon = machine.start(&[]);
    let reply = machine.ask(r#"{"do":"metrics"}"#);
    for name in
        ["wattwise_package_joules_total", "wattwise_dram_joules_total", "wattwise_profile_info{profile"]
    {
        assert!(reply.contains(name), "{name}: {reply}");
    }
    signal(&daemon, libc::SIGTERM);
    _ = daemon.wait();
}

/// Its unit scored 9.6, UNSAFE.
#[test]
fn system76_power_203_the_unit_is_hardened() {
    for unit in ["wattwised.service", "wattwise-restore.service"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(unit);
        let mut command = Command::new("systemd-analyze");
        // In tenths: at most 4.0, below which systemd says OK.
        command.args(["security", "--offline=true", "--threshold=40", "--no-pager"]).arg(path);
        let out = command.output().expect("systemd-analyze; systemd has it");
        assert!(out.status.success(), "{unit}: {}", String::from_utf8_lossy(&out.stdout));
    }
}

/// The man page has every option, and what it shows of the configuration is one.
#[test]
fn the_man_page_has_every_option() {
    let page = include_str!("../../../packaging/man/wattwised.8");
    let help = Command::new(env!("CARGO_BIN_EXE_wattwised")).arg("--help").output().expect("runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let options: Vec<&str> = help.split([' ', ',', '\n']).filter(|word| word.starts_with("--")).collect();
    assert!(options.len() >= 10, "{options:?}");
    for option in options {
        let name =
            option.trim_start_matches('-').split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next();
        let escaped = format!("\\-\\-{}", name.expect("a name").replace('-', "\\-"));
        assert!(page.contains(&escaped), "{option}: {escaped}");
    }
    let example = page.split(".nf\n").nth(1).and_then(|p| p.split(".fi").next()).expect("an example");
    let config =
        wattwise_daemon::config::Config::from_text("wattwised.8", example).expect("it is a configuration");
    assert!(config.profiles.contains_key("quiet") && config.options.record.is_some());
    // Every key of the daemon's own table is in it.
    let wrong =
        wattwise_daemon::config::Config::from_text("t", "[daemon]\nnothing = 1\n").expect_err("no such key");
    let keys: Vec<&str> = wrong.message.split('`').skip(3).step_by(2).collect();
    assert!(keys.len() >= 8, "{}", wrong.message);
    for key in keys {
        assert!(example.contains(&format!("{key} = ")), "{key}");
    }
}
