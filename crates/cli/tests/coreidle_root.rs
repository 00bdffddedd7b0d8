//! Core idling on another machine than this one: an emulated one in a mounted folder, a tree of files, a capture.
#![allow(clippy::unwrap_used)]

#[path = "support/mounted.rs"]
mod mounted;

#[path = "support/killed.rs"]
mod killed;
use killed::kill_with_guard;
use mounted::{Machine, told};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "hybrid-laptop";

impl Machine {
    fn online(&self) -> String {
        let path = self.path("its files/sys/devices/system/cpu/online");
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn coreidle(&self, args: &[&str]) -> String {
        self.done(&[&["coreidle", "--root", &self.root()], args].concat())
    }

    fn governor(&self, policy: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.args(["coreidle", "governor", policy, "--root", &self.root()]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The CPUs whose load is given, in thousandths; others keep theirs.
    fn load(&self, lines: &str) {
        std::fs::write(self.path("its files/wattwise/load"), lines).unwrap();
    }
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// CPUs of this machine that are online.
fn here() -> String {
    std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap()
}

#[test]
fn a_mask_is_put_in_force_on_the_machine_that_is_named() {
    let Some(machine) = Machine::mounted(NAME) else { return };
    let (all, ours) = (machine.online(), here());
    let status = machine.coreidle(&["status"]);
    assert!(status.contains("off: ") && status.contains("hotplug: available"), "{status}");
    assert!(
        status.contains("cpuset group (cgroup v1): ") && status.contains("is not this machine"),
        "{status}"
    );

    let set = machine.coreidle(&["set", "0-1"]);
    assert!(set.contains("CPU 0-1, by hotplug"), "{set}");
    assert_eq!(machine.online(), "0-1");
    let status: Value = serde_json::from_str(&machine.coreidle(&["status", "--json"])).unwrap();
    assert_eq!((&status["kept"], &status["state"]["online"]), (&"0-1".into(), &Value::from(all.as_str())));
    assert!(status["pinned_outside"].as_array().unwrap().is_empty(), "its tasks, not ours: {status}");

    // A wider mask takes the place of a narrow one, whose CPUs are offline.
    machine.coreidle(&["set", "0-3"]);
    assert_eq!(machine.online(), "0-3");
    let off = machine.coreidle(&["off"]);
    assert!(off.contains(&format!("released: CPU 0-3 of {all}")), "{off}");
    assert_eq!((machine.online(), here()), (all, ours));

    for (args, code, word) in [
        (&["set", "4000"][..], 3, "no CPU 4000"),
        (&["set", "0", "--mechanism", "group"], 3, "is not this machine"),
        (&["governor", "ondemand", "--mechanism", "scheduler"], 3, "is not this machine"),
        (&["tune", "--", "true"], 3, "your work runs on this machine"),
    ] {
        let out = machine.wattwise(&[&["coreidle", "--root", &machine.root()], args].concat());
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", told(&out));
        assert!(told(&out).contains(word), "{args:?}: {}", told(&out));
    }
}

#[test]
fn a_governor_follows_the_load_of_the_machine_that_is_named() {
    let Some(machine) = Machine::mounted(NAME) else { return };
    let all = machine.online();
    let mut child = machine.governor("ondemand");
    wait("no load: one CPU is kept", || machine.online() == "0");
    machine.load("0 1000\n");
    wait("its CPU is full: more are kept", || machine.online() != "0");
    machine.load("0 0\n");
    wait("at rest again", || machine.online() == "0");

    // Killed with its guard it cannot put back; the next one does.
    kill_with_guard(&mut child);
    assert_eq!(machine.online(), "0");
    let status = machine.coreidle(&["status"]);
    assert!(status.contains("which is gone"), "{status}");
    machine.done(&["restore", "--root", &machine.root()]);
    assert_eq!(machine.online(), all);

    let child = machine.governor("userspace:keep=2");
    wait("two CPUs are kept", || machine.online() == "0-1" || machine.online() == "0,2");
    let off = machine.coreidle(&["off"]);
    assert!(off.contains("the governor ended"), "{off}");
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("2 CPUs kept: 100.0 %"));
    assert_eq!(machine.online(), all);
}

#[test]
fn a_machine_that_ends_with_the_command_and_one_that_stands_still() {
    let folder = tempfile::tempdir().unwrap();
    let wattwise = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).current_dir(folder.path()).output().unwrap()
    };
    let out = wattwise(&["coreidle", "set", "0", "--root", &format!("emulated:{NAME}")]);
    assert!(out.status.success() && told(&out).contains("ends with this command"), "{}", told(&out));
    let out = wattwise(&["capture", "--root", &format!("emulated:{NAME}"), "-o", "its.tar.zst"]);
    assert!(out.status.success(), "{}", told(&out));
    let out = wattwise(&["coreidle", "status", "--root", "its.tar.zst"]);
    assert!(out.status.success() && told(&out).contains("off: "), "{}", told(&out));
    let out = wattwise(&["coreidle", "set", "0", "--root", "its.tar.zst"]);
    assert_eq!(out.status.code(), Some(3), "{}", told(&out));
    assert!(told(&out).contains("a capture stands still"), "{}", told(&out));
    let mut left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["its.tar.zst"], "nothing beside the capture");
}
