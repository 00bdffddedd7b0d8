//! Emulated machines in mounted folders, as a user has them: with their time running, blanks in their names, and without a home.
#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_emulator::{Emulator, fuse};

/// A machine in a folder, whose time runs.
pub(crate) struct Machine {
    pub(crate) folder: tempfile::TempDir,
    mount: Option<fuse::Mounted>,
    stop: Arc<AtomicBool>,
    beats: Option<std::thread::JoinHandle<()>>,
    /// Who uses it: a user by number, else whoever runs the test.
    user: Option<u32>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.beats.take().map(std::thread::JoinHandle::join);
        drop(self.mount.take());
    }
}

impl Machine {
    /// Mounts a bundled machine. `None`, said aloud, where this system cannot; under CI that is a failure.
    pub(crate) fn mounted(name: &str) -> Option<Machine> {
        Machine::of(wattwise_emulator::named(name).unwrap(), None)
    }

    /// Mounts a machine for a user.
    pub(crate) fn of(emulator: Emulator, user: Option<u32>) -> Option<Machine> {
        let folder = tempfile::Builder::new().prefix("the road ").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("its files")).unwrap();
        for path in [folder.path().to_owned(), folder.path().join("its files")] {
            user.iter().for_each(|uid| std::os::unix::fs::chown(&path, Some(*uid), Some(*uid)).unwrap());
        }
        let mount = match fuse::mount(&emulator, &folder.path().join("its files")) {
            Ok(mount) => mount,
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "no FUSE: {e}; CI needs it");
                eprintln!("skipped: no FUSE: {e} (Debian: fuse3)");
                return None;
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let beats = beats(emulator, Arc::clone(&stop));
        Some(Machine { folder, mount: Some(mount), stop, beats: Some(beats), user })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn root(&self) -> String {
        self.path("its files").display().to_string()
    }

    /// wattwise in the machine's folder.
    pub(crate) fn wattwise(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.args(args).current_dir(self.folder.path());
        if let Some(uid) = self.user {
            std::os::unix::process::CommandExt::uid(&mut command, uid);
            std::os::unix::process::CommandExt::gid(&mut command, uid);
        }
        for name in ["HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.output().unwrap()
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        let out = self.wattwise(args);
        assert!(out.status.success(), "{args:?}: {}", told(&out));
        String::from_utf8(out.stdout).unwrap()
    }

    /// What a comparison says on the machine as `named`, kept in a file.
    pub(crate) fn compared(&self, named: &str, file: &str) -> Value {
        let text = self.done(&["compare", "build", "-m", named, "--replicas", "16", "--json"]);
        std::fs::write(self.path(file), &text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The policy in force on the machine as `named`, as `--policy` takes it.
    pub(crate) fn in_force(&self, named: &str) -> String {
        let text = self.done(&["machines", "compare", named, named, "--json"]);
        let both: Value = serde_json::from_str(&text).unwrap();
        let now = &both["a"]["in_force"];
        let limits = now["limits"].as_array().unwrap().iter().map(|l| l.as_str().unwrap());
        [now["rule"].as_str().unwrap()].into_iter().chain(limits).collect::<Vec<_>>().join("+")
    }

    /// Every attribute that `set` may write: name and value.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let cpus = self.path("its files/sys/devices/system/cpu");
        let mut all = Vec::new();
        let policies = std::fs::read_dir(cpus.join("cpufreq")).into_iter().flatten().flatten();
        for folder in policies.map(|entry| entry.path()).chain([cpus.join("cpu0/cpufreq")]) {
            for file in
                ["scaling_governor", "scaling_min_freq", "scaling_max_freq", "energy_performance_preference"]
            {
                let path = folder.join(file);
                all.extend(
                    std::fs::read_to_string(&path).ok().map(|text| (path.display().to_string(), text)),
                );
            }
        }
        for file in ["intel_pstate/no_turbo", "intel_pstate/status", "cpufreq/boost"] {
            let path = cpus.join(file);
            all.extend(std::fs::read_to_string(&path).ok().map(|text| (file.to_owned(), text)));
        }
        all.sort();
        all
    }
}

fn beats(machine: Emulator, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            let passed = last.elapsed();
            last = Instant::now();
            machine.advance(passed.as_nanos() as u64);
        }
    })
}

pub(crate) fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout)
}

pub(crate) fn recommended(result: &Value) -> &str {
    result["answer"]["recommended"].as_str().unwrap()
}
