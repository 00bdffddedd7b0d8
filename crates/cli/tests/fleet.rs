//! The operator's page of the guide: four captures, one answer, four commands, tried on mounted machines.
#![allow(clippy::unwrap_used)]

#[path = "support/mounted.rs"]
mod mounted;

use mounted::{Machine, told};
use serde_json::Value;
use std::process::Command;

/// Hosts, what each is, and what others have left in force there.
const HOSTS: [(&str, &str, &[&str]); 4] = [
    ("web 1", "core-i5-2gen", &["--governor", "performance", "--min", "2GHz"]),
    ("web 2", "amd-server", &["--governor", "performance"]),
    ("web 3", "arm-big-little", &["--governor", "performance"]),
    ("web 4", "bc10", &[]),
];

/// The operator's own machine, where the files are together.
struct Office(tempfile::TempDir);

impl Office {
    fn done(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        let out = command.args(args).current_dir(self.0.path()).env_remove("HOME").output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", told(&out));
        String::from_utf8(out.stdout).unwrap()
    }

    /// The captures are taken, and compared in text and as JSON.
    fn asked(&self, hosts: &[Machine]) -> (String, Value) {
        for ((name, ..), host) in HOSTS.iter().zip(hosts) {
            let file = format!("{name}.wattwise");
            host.done(&["capture", "--root", &host.root(), "-o", &file]);
            std::fs::copy(host.path(&file), self.0.path().join(&file)).unwrap();
            std::fs::remove_file(host.path(&file)).unwrap();
        }
        let files: Vec<String> = HOSTS.iter().map(|(name, ..)| format!("{name}.wattwise")).collect();
        let machines = files.iter().flat_map(|file| ["-m", file]);
        let policies = ["-p", "ondemand", "-p", "schedutil", "-p", "conservative", "-p", "performance"];
        let mut args: Vec<&str> = vec!["compare", "nginx", "--replicas", "16"];
        args.extend(machines.chain(policies));
        let text = self.done(&args);
        args.push("--json");
        let json = self.done(&args);
        std::fs::write(self.0.path().join("the answer.json"), &json).unwrap();
        (text, serde_json::from_str(&json).unwrap())
    }
}

/// The line of a host in the last part of the answer, and the one below it: what is to be done there.
fn of_host<'t>(text: &'t str, host: &str) -> (&'t str, &'t str) {
    let mut lines = text.lines().skip_while(|l| !l.ends_with(" on each machine:")).skip(1);
    let head =
        lines.find(|l| l.starts_with(&format!("  {host}; "))).unwrap_or_else(|| panic!("{host}: {text}"));
    (
        head,
        lines
            .find(|l| l.starts_with("    sudo ") || l.starts_with("    as ") || l.starts_with("    cannot"))
            .unwrap(),
    )
}

#[test]
fn four_captures_one_answer_four_commands() {
    let hosts: Option<Vec<Machine>> = HOSTS.iter().map(|(_, machine, _)| Machine::mounted(machine)).collect();
    let Some(hosts) = hosts else { return };
    let office = Office(tempfile::Builder::new().prefix("the office ").tempdir().unwrap());
    for ((.., settings), host) in HOSTS.iter().zip(&hosts).filter(|((.., s), _)| !s.is_empty()) {
        host.done(&[&["set", "--root", &host.root()], *settings].concat());
    }
    let before: Vec<_> = hosts.iter().map(Machine::settings).collect();
    let (text, answer) = office.asked(&hosts);
    let best = answer["summary"]["best"].as_str().unwrap_or_else(|| panic!("{text}"));

    // What is in force stands side by side, and all files are looked at in one go.
    let both = office.done(&["machines", "compare", "web 1.wattwise", "web 2.wattwise"]);
    let row = |what: &str| {
        both.lines().find(|l| l.trim_start().starts_with(what)).unwrap_or_else(|| panic!("{both}")).to_owned()
    };
    assert!(row("limits").contains("min=2000MHz") && row("governor ").contains("performance"), "{both}");
    assert!(row("driver").contains("acpi-cpufreq") && row("limits").ends_with("differs"), "{both}");
    let checked = office.done(&[
        "machines",
        "check",
        "web 1.wattwise",
        "web 4.wattwise",
        "-w",
        "burst",
        "--replicas",
        "8",
    ]);
    assert!(checked.starts_with("web 1.wattwise: ") && checked.contains("\nweb 4.wattwise: "), "{checked}");

    // Each host's own command, pasted there; on two of them the file is brought instead.
    for (at, ((name, ..), host)) in HOSTS.iter().zip(&hosts).enumerate() {
        let (head, line) = of_host(&text, name);
        assert!(head.contains("nginx: "), "{head}");
        if at % 2 == 1 {
            std::fs::copy(office.0.path().join("the answer.json"), host.path("the answer.json")).unwrap();
            let set = host.wattwise(&["set", "--root", &host.root(), "--from", "the answer.json"]);
            assert_eq!(set.status.success(), !line.contains("cannot be applied"), "{name}: {}", told(&set));
        } else if let Some(command) = line.trim().strip_prefix("sudo wattwise ") {
            // On the host itself there is no --root.
            let shell = format!("'{}' {command} --root '{}'", env!("CARGO_BIN_EXE_wattwise"), host.root());
            let pasted =
                Command::new("sh").args(["-c", &shell]).current_dir(host.folder.path()).output().unwrap();
            assert!(pasted.status.success(), "{shell}: {}", told(&pasted));
        }
    }

    // Asked again, each that could take it has it.
    let (text, answer) = office.asked(&hosts);
    for ((name, ..), comparison) in HOSTS.iter().zip(answer["comparisons"].as_array().unwrap()) {
        let (_, line) = of_host(&text, name);
        assert_eq!(comparison["machine"], *name);
        assert!(comparison["reference"] == best || line.contains("cannot be applied"), "{name}: {text}");
    }
    assert_eq!(answer["summary"]["best"], best, "{text}");
    for ((name, ..), (host, before)) in HOSTS.iter().zip(hosts.iter().zip(before)) {
        host.wattwise(&["restore", "--root", &host.root()]);
        let now = host.settings();
        assert!(now == before || HOSTS.iter().any(|(n, _, s)| n == name && !s.is_empty()), "{name}");
    }
}
