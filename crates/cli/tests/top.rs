//! `top` on a pseudo-terminal, over a capture, and as JSON: the terminal is given back on every way out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LAPTOP: [&str; 3] = ["top", "--root", "emulated:amd-laptop"];

fn wattwise() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wattwise"))
}

/// A terminal of 100 columns and 30 lines with the program on it.
struct Terminal {
    ours: File,
    theirs: OwnedFd,
    child: Child,
    seen: Vec<u8>,
}

impl Terminal {
    fn start(args: &[&str], folder: &Path) -> Terminal {
        let (mut ours, mut theirs) = (-1, -1);
        let size = libc::winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the two numbers and the size outlive the call; no name and no settings are asked for.
        let made = unsafe {
            libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), &size)
        };
        assert_eq!(made, 0, "no pseudo-terminal: {}", std::io::Error::last_os_error());
        // SAFETY: both were made just now and belong to nobody else.
        let (ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let mut command = wattwise();
        command.args(args).current_dir(folder).env("TERM", "xterm-256color").env("XDG_STATE_HOME", folder);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Terminal { ours, theirs, child, seen: Vec::new() }
    }

    fn read(&mut self) {
        let mut page = [0; 65536];
        while let Ok(n) = self.ours.read(&mut page) {
            if n == 0 {
                break;
            }
            self.seen.extend_from_slice(&page[..n]);
        }
    }

    /// Waits until the screen has had that text.
    fn until(&mut self, text: &str) {
        let patience = Instant::now();
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert!(
                patience.elapsed() < Duration::from_secs(60),
                "{text}: {}",
                String::from_utf8_lossy(&self.seen)
            );
            std::thread::sleep(Duration::from_millis(20));
            self.read();
        }
    }

    fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Its exit code, once it has ended; the terminal must be as it was.
    fn ended(mut self) -> Option<i32> {
        let patience = Instant::now();
        let status = loop {
            self.read();
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if patience.elapsed() > Duration::from_secs(60) {
                _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        self.read();
        let seen = String::from_utf8_lossy(&self.seen);
        let at = |what: &str| seen.rfind(what);
        assert!(at("\x1b[?1049l") > at("\x1b[?1049h"), "the screen before it is not shown again");
        assert!(at("\x1b[?25h") > at("\x1b[?25l"), "the cursor stays hidden");
        let modes = rustix::termios::tcgetattr(&self.theirs).unwrap().local_modes;
        assert!(modes.contains(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO));
        status.code()
    }
}

#[test]
fn the_terminal_is_given_back_after_q_ctrl_c_and_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    for (way, code) in [("q", Some(0)), ("\x03", Some(0)), ("TERM", Some(143)), ("HUP", Some(129))] {
        let mut terminal = Terminal::start(&LAPTOP, folder.path());
        terminal.until("CPUs by number");
        let pid = rustix::process::Pid::from_child(&terminal.child);
        match way {
            "TERM" => rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap(),
            "HUP" => rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap(),
            keys => terminal.press(keys),
        }
        assert_eq!(terminal.ended(), code, "{way}");
    }
}

/// r begins a capture and ends it; it can be looked at again.
#[test]
fn what_is_recorded_is_a_capture_that_moves() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&LAPTOP, folder.path());
    terminal.until("CPUs by number");
    terminal.press("r");
    terminal.until("recording to");
    std::thread::sleep(Duration::from_millis(2500));
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
    let kept = folder.path().join("wattwise");
    let made: Vec<_> = std::fs::read_dir(&kept).unwrap().flatten().map(|e| e.path()).collect();
    assert!(made.len() == 1 && made[0].to_string_lossy().ends_with(".tar.zst"), "{made:?}");
    let out = wattwise().args(["top", "--once", "--json", "--root"]).arg(&made[0]).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let sample: Value = serde_json::from_slice(&out.stdout).unwrap();
    // The machine idled: it draws what an idle laptop does, and its CPUs slept most of the second.
    assert!(sample["watts"].as_f64().unwrap() > 0.1, "{sample}");
    assert!((0.5..3.0).contains(&sample["window_s"].as_f64().unwrap()));
    let slept: f64 = sample["cpus"][0]["idle"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!(slept > 0.5, "{slept}");
}

#[test]
fn one_sample_is_valid_and_says_what_is_missing() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/top-1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for machine in ["amd-laptop", "hybrid-laptop", "vm-2cpu", "bc10", "server-64"] {
        let root = format!("emulated:{machine}");
        let out = wattwise().args(["top", "--json", "--every", "300ms", "--root", &root]).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{machine}: {}", String::from_utf8_lossy(&out.stderr));
        let sample: Value = serde_json::from_slice(&out.stdout).unwrap();
        let wrong: Vec<String> =
            schema.iter_errors(&sample).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(wrong, Vec::<String>::new(), "{machine}");
        assert!(sample["tasks_missing"].is_string());
        let unmetered = sample["watts"].is_null();
        assert_eq!(unmetered, sample["energy"].as_str().unwrap().starts_with("unavailable"), "{machine}");
    }
    let pipe = wattwise().arg("top").output().unwrap();
    assert_eq!(pipe.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&pipe.stderr).contains("expected a terminal"));
}

/// Energy against a closed form: an emulated laptop whose watts are known, over a second.
#[test]
fn watts_are_those_of_the_meter() {
    let out = wattwise().args(LAPTOP).args(["--json", "--every", "1s"]).output().unwrap();
    let top: Value = serde_json::from_slice(&out.stdout).unwrap();
    let run = wattwise()
        .args(["run", "--root", "emulated:amd-laptop", "--json", "--", "sleep", "1"])
        .output()
        .unwrap();
    let run: Value = serde_json::from_slice(&run.stdout).unwrap();
    let machine = &run["machine"];
    let watts = machine["joules"].as_f64().unwrap() / machine["window_s"].as_f64().unwrap();
    let ratio = top["watts"].as_f64().unwrap() / watts;
    assert!((0.8..1.25).contains(&ratio), "{} W against {watts} W", top["watts"]);
}
