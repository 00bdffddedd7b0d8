//! Every policy that a command prints is taken by every command that takes policies, or refused in a line whose reason stands here:
//! names x commands x machines.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

/// Why a machine does not take a policy. Each is a part of a sentence that a user can act on.
const REASONS: &[&str] = &[
    // Another system's.
    "is FreeBSD's, and this is Linux",
    "is OpenBSD's, and this is Linux",
    "no system offers",
    // Not this driver's, this kernel's or this processor's.
    "has no mode that is",
    "cannot hold one speed; cap it instead",
    "it comes with wattwise's module cpufreq_burst",
    "AMD's power limits are the firmware's",
    "needs the driver's mode",
    // The machine's own hands are bound.
    "the kernel was built without cpufreq",
    "nothing here meters energy",
];

/// The flags of a short experiment.
const SHORT: &str = "--of time --pairs 3 --pilot 3 --warm-up 0 --idle-floor 0 --window 1ms -- true";

const COMMANDS: [&str; 6] = ["compare", "run", "set", "ab", "prove", "profile"];

struct Asked {
    folder: tempfile::TempDir,
}

impl Asked {
    fn wattwise(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(args)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path())
            .output()
            .unwrap()
    }

    /// What `compare` prints on a machine without being told any policy, and what `policies` lists.
    fn names(&self, machine: &str) -> BTreeSet<String> {
        let out = self.wattwise(&["compare", "burst", "-m", machine, "--replicas", "8", "--json"]);
        assert!(out.status.success(), "{machine}: {}", String::from_utf8_lossy(&out.stderr));
        let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
        let rows = answer["results"].as_array().unwrap();
        let mut names: BTreeSet<String> =
            rows.iter().map(|r| r["policy"].as_str().unwrap().to_owned()).collect();
        let out = self.wattwise(&["policies", "--json"]);
        let list: Value = serde_json::from_slice(&out.stdout).unwrap();
        let listed = list["entries"].as_array().unwrap().iter();
        let speeds = listed.filter(|e| e["kind"].as_str().unwrap().starts_with("speed"));
        names.extend(speeds.map(|e| e["name"].as_str().unwrap().to_owned()));
        names
    }

    /// What a command says to a name: nothing where it takes it.
    fn refusal(&self, command: &str, name: &str, machine: &str) -> Option<String> {
        let words: Vec<&str> = match command {
            "compare" => vec!["compare", "burst", "-p", name, "-m", machine, "--exact", "--json"],
            "run" => vec!["run", "-p", name, "--root", machine, "--", "true"],
            "set" => vec!["set", "--policy", name, "--root", machine, "--dry-run"],
            "ab" => ["ab", name, "current", "--root", machine].into_iter().chain(SHORT.split(' ')).collect(),
            "prove" => vec!["prove", name, "current", "--root", machine, "--plan", "--watch", "1s"],
            "profile" => vec!["profile", "add", "mine", "-p", name, "--root", machine, "-o", "profiles.toml"],
            other => unreachable!("{other}"),
        };
        let out = self.wattwise(&words);
        _ = std::fs::remove_file(self.folder.path().join("profiles.toml"));
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        match out.status.code() {
            Some(0) => None,
            // The policies are looked at first.
            Some(2) if command == "prove" && said.contains("has fewer than 12 blocks") => None,
            Some(2 | 3) => Some(said),
            code => panic!("{words:?}: {code:?}: {said}"),
        }
    }
}

/// The reason, where it is one that stands above, in one line.
fn reason(said: &str) -> Option<&'static str> {
    let last = said.lines().last()?;
    REASONS.iter().find(|reason| last.contains(**reason)).copied()
}

/// All names through all commands on one machine.
fn asked_on(name: &str) {
    let asked = Asked { folder: tempfile::tempdir().unwrap() };
    let machine = format!("emulated:{name}");
    let names: Vec<String> = asked.names(&machine).into_iter().collect();
    let (names, asked) = (&names, &asked);
    let of_command = |command: &'static str| {
        let machine = &machine;
        names
            .iter()
            .map(move |name| (command, name, asked.refusal(command, name, machine)))
            .collect::<Vec<_>>()
    };
    // Most of them wait for time to pass.
    let answers = std::thread::scope(|scope| {
        let running = COMMANDS.map(|command| scope.spawn(move || of_command(command)));
        running.map(|thread| thread.join().unwrap()).concat()
    });
    let (mut taken, mut refused): (usize, BTreeMap<&str, usize>) = (0, BTreeMap::new());
    let mut unknown = Vec::new();
    for (command, name, refusal) in answers {
        match refusal {
            None => taken += 1,
            Some(said) => match reason(&said) {
                Some(why) => *refused.entry(why).or_default() += 1,
                None => unknown.push(format!("{command} {name}: {said}")),
            },
        }
    }
    println!("{taken} taken; refused: {refused:#?}");
    assert!(unknown.is_empty(), "{} refusals of other kinds:\n{}", unknown.len(), unknown.join("\n"));
    assert!(taken > 20, "{taken} taken, {refused:?}");
}

/// One test a machine: they take their time each.
macro_rules! on_each {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                asked_on(&stringify!($name).replace('_', "-"));
            }
        )*
    };
}

on_each!(hybrid_laptop, amd_laptop, core_i5_2gen, vm_2cpu);
