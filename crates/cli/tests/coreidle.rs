//! Core idling on this machine, really: within a cpuset of the test's own, so that nobody else is confined.
//!
//! Needs root and a cgroup v1 cpuset hierarchy; the lab does the same on cgroup v2.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[path = "support/killed.rs"]
mod killed;
use killed::kill_with_guard;

const BIN: &str = env!("CARGO_BIN_EXE_wattwise");

/// A cpuset with work in it.
struct Place {
    cpuset: PathBuf,
    name: String,
    journal: tempfile::TempDir,
    work: Vec<Child>,
}

impl Place {
    /// None where this machine has no such hierarchy, or we may not use it.
    fn new(name: &str) -> Option<Place> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux");
        let mount = mounts.lines().find_map(|l| {
            let (left, right) = l.split_once(" - ")?;
            right.starts_with("cgroup ").then_some(())?;
            right.rsplit(' ').next()?.split(',').any(|o| o == "cpuset").then(|| left.split(' ').nth(4))?
        });
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs");
        let (Some(mount), "0-1") = (mount, online.trim()) else {
            eprintln!("skipped: no cgroup v1 cpuset hierarchy, or not two CPUs");
            return None;
        };
        let name = format!("wattwise-test-{name}-{}", std::process::id());
        let cpuset = Path::new(mount).join(&name);
        if std::fs::create_dir(&cpuset).is_err() {
            eprintln!("skipped: needs root");
            return None;
        }
        for file in ["cpuset.cpus", "cpuset.mems"] {
            copy_text(&Path::new(mount).join(file), &cpuset.join(file));
        }
        Some(Place { cpuset, name, journal: tempfile::tempdir().expect("a folder"), work: Vec::new() })
    }

    /// Starts a command within the cpuset, its children too.
    fn start(&mut self, command: &[&str]) -> u32 {
        let tasks = self.cpuset.join("tasks");
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(&tasks).args(command);
        let child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh");
        let pid = child.id();
        self.work.push(child);
        wait("the work is in its cpuset", || self.tasks().contains(&pid));
        pid
    }

    /// Every task below the cpuset.
    fn tasks(&self) -> BTreeSet<u32> {
        let read = |folder: &Path| std::fs::read_to_string(folder.join("tasks")).unwrap_or_default();
        let all = read(&self.cpuset) + &read(&self.group());
        all.lines().filter_map(|l| l.parse().ok()).collect()
    }

    /// Those that are confined.
    fn group_tasks(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.group().join("tasks")).unwrap_or_default();
        text.lines().filter_map(|l| l.parse().ok()).collect()
    }

    fn group(&self) -> PathBuf {
        self.cpuset.join("wattwise-coreidle")
    }

    fn wattwise(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BIN);
        command.args(args).arg("--journal").arg(self.journal.path());
        command
    }

    fn coreidle(&self, args: &[&str]) -> Output {
        let out = self.wattwise(&[&["coreidle"], args].concat()).output().expect("runs");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        out
    }

    fn set(&self, cpus: &str, pinned_too: bool) {
        let flags: &[&str] = if pinned_too { &["--pinned-too"] } else { &[] };
        self.coreidle(&[&["set", cpus, "--mechanism", "group", "--within", &self.name], flags].concat());
    }

    /// Where a task may run.
    fn allowed(tid: u32) -> Option<String> {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        Some(status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
    }

    /// What `stat` says of a task, from its state on.
    fn stat(tid: u32) -> Option<Vec<String>> {
        let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        Some(stat.rsplit_once(')')?.1.split_whitespace().map(String::from).collect())
    }

    /// Where a task runs, or waits to; none where it sleeps.
    fn cpu(tid: u32) -> Option<u32> {
        let stat = Place::stat(tid)?;
        if stat[0] == "R" { stat.get(36)?.parse().ok() } else { None }
    }

    /// Whether a task is on its way out: the kernel moves it no more, and yet it is listed, on a busy machine for long.
    fn exits(tid: u32) -> bool {
        const PF_EXITING: u64 = 4;
        Place::stat(tid).is_none_or(|stat| stat[6].parse::<u64>().expect("flags") & PF_EXITING != 0)
    }

    /// The CPUs on which the tasks are seen to run for a while, but for some.
    fn seen(&self, but: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        for _ in 0..60 {
            let tasks = self.tasks();
            seen.extend(tasks.difference(but).filter_map(|t| Place::cpu(*t)));
            std::thread::sleep(Duration::from_millis(10));
        }
        seen
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = self.wattwise(&["coreidle", "off"]).output();
        for child in &mut self.work {
            _ = child.kill();
            _ = child.wait();
        }
        // stress-ng's workers follow their parent.
        let gone = Instant::now() + Duration::from_secs(10);
        while std::fs::remove_dir(&self.cpuset).is_err() && Instant::now() < gone {
            for tid in self.tasks() {
                _ = Command::new("kill").args(["-9", &tid.to_string()]).stderr(Stdio::null()).status();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Attributes are no files to `std::fs::copy`: their size says nothing.
fn copy_text(from: &Path, to: &Path) {
    let text = std::fs::read_to_string(from).expect("readable");
    std::fs::write(to, text.trim()).expect("writable");
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn work_is_confined_to_the_mask_and_released() {
    let Some(mut place) = Place::new("set") else { return };
    place.start(&["stress-ng", "--cpu", "2", "--fork", "1", "--timeout", "60s", "--quiet"]);
    place.start(&["cyclictest", "--quiet", "--policy=other", "--interval=1000", "--duration=60"]);
    let pinned = place.start(&["taskset", "1", "sh", "-c", "while :; do :; done"]);
    wait("all work has begun", || place.tasks().len() >= 6);
    wait("the pinned one is pinned", || Place::allowed(pinned).is_some_and(|a| a == "0"));
    wait("work is on both CPUs", || place.seen(&BTreeSet::new()).len() == 2);

    place.set("1", false);
    // cyclictest pins its measuring thread to CPU 0 by itself.
    let stays: BTreeSet<u32> =
        place.tasks().into_iter().filter(|t| Place::allowed(*t).is_some_and(|a| a == "0")).collect();
    assert!(stays.contains(&pinned) && stays.len() == 2, "{stays:?}");
    assert_eq!(place.seen(&stays), BTreeSet::from([1]));
    assert_eq!(Place::cpu(pinned), Some(0), "a pinned task stays");
    let status = String::from_utf8(place.coreidle(&["status"]).stdout).expect("text");
    assert!(status.contains("kept: CPU 1 of 0-1") && status.contains("set by hand"), "{status}");
    assert!(status.contains(&format!("({pinned}) is pinned to CPU 0, outside the mask")), "{status}");

    place.set("0", false);
    wait("the other CPU", || place.seen(&BTreeSet::new()) == BTreeSet::from([0]));

    place.set("1", true);
    wait("pinned ones too", || place.seen(&BTreeSet::new()) == BTreeSet::from([1]));

    place.coreidle(&["off"]);
    assert!(!place.group().exists());
    let wrong = |t: &u32| {
        let wanted = if stays.contains(t) { "0" } else { "0-1" };
        Place::allowed(*t).is_some_and(|a| a != wanted)
    };
    assert_eq!(place.tasks().into_iter().filter(wrong).collect::<Vec<_>>(), Vec::<u32>::new());
    wait("work is on both CPUs again", || place.seen(&stays).len() == 2);
}

/// A task may fork between the look that finds it and its move: children that stay beside would stay there for good.
#[test]
fn whoever_is_forked_during_the_move_is_moved_too() {
    let Some(mut place) = Place::new("forks") else { return };
    for _ in 0..4 {
        place.start(&["sh", "-c", "while :; do sleep 0.5 & sleep 0.001; done"]);
    }
    for round in 0..10 {
        wait("many are there", || place.tasks().len() >= 100);
        place.set("1", false);
        let inside: BTreeSet<u32> = place.group_tasks().into_iter().collect();
        let beside: Vec<u32> = place.tasks().into_iter().filter(|t| !inside.contains(t)).collect();
        // Who has moved or ended between the two looks is in neither.
        let beside: Vec<u32> = beside.into_iter().filter(|t| !place.group_tasks().contains(t)).collect();
        let free = |t: &u32| Place::allowed(*t).is_some_and(|a| a != "1");
        let left: Vec<_> = beside.into_iter().filter(|t| free(t) && !Place::exits(*t)).collect();
        assert!(left.is_empty(), "round {round}: {left:?} of {} are beside the group", inside.len());
        place.coreidle(&["off"]);
    }
}

#[test]
fn a_governor_follows_the_load_and_leaves_nothing() {
    let Some(mut place) = Place::new("governor") else { return };
    place.start(&["sleep", "60"]);
    let within = place.name.clone();
    let governor = |place: &Place, policy: &str| {
        let mut command =
            place.wattwise(&["coreidle", "governor", policy, "--mechanism", "group", "--within", &within]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs")
    };
    let kept = |place: &Place| std::fs::read_to_string(place.group().join("cpuset.cpus")).unwrap_or_default();

    // Ended by a signal: it releases.
    let child = governor(&place, "userspace:keep=1");
    wait("it is in force", || kept(&place).trim() == "0" && place.tasks().len() == 1);
    let second = place.wattwise(&["coreidle", "set", "1", "--within", &within]).output().expect("runs");
    let why = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        second.status.code() == Some(1) && why.contains("keeps CPUs by 'coreidle-userspace:keep=1'"),
        "{why}"
    );
    place.coreidle(&["off"]);
    let out = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("1 CPUs kept: 100.0 %"), "{text}");
    assert!(!place.group().exists());

    // Killed: it stays, is told of, and is gone after the next start.
    for cleaner in
        [vec!["restore"], vec!["coreidle", "off"], vec!["coreidle", "set", "0-1", "--within", &within]]
    {
        let mut child = governor(&place, "userspace:keep=1");
        wait("it is in force", || kept(&place).trim() == "0" && !place.group_tasks().is_empty());
        kill_with_guard(&mut child);
        assert!(place.group().exists(), "killed with SIGKILL it cannot clean up");
        let status = String::from_utf8(place.coreidle(&["status"]).stdout).expect("text");
        assert!(status.contains("which is gone"), "{status}");
        let out = place.wattwise(&cleaner).output().expect("runs");
        assert!(out.status.success(), "{cleaner:?}: {}", String::from_utf8_lossy(&out.stderr));
        let free = |t: &u32| Place::allowed(*t).is_none_or(|a| a == "0-1");
        assert!(place.tasks().iter().all(free), "{cleaner:?}");
        place.coreidle(&["off"]);
        assert!(!place.group().exists(), "{cleaner:?}");
    }

    // Another manager empties and removes the group: the governor makes it again.
    let child = governor(&place, "userspace:keep=1");
    wait("it is in force", || kept(&place).trim() == "0" && !place.group_tasks().is_empty());
    wait("the group is removed", || {
        for tid in place.group_tasks() {
            _ = std::fs::write(place.cpuset.join("tasks"), tid.to_string());
        }
        std::fs::remove_dir(place.group()).is_ok()
    });
    wait("and is back", || kept(&place).trim() == "0" && !place.group_tasks().is_empty());
    place.coreidle(&["off"]);
    assert!(child.wait_with_output().expect("ended").status.success());
}

#[test]
fn run_follows_a_core_policy_while_its_command_runs() {
    // For a moment, the whole machine.
    let Some(place) = Place::new("run") else { return };
    let allowed = ["--", "sh", "-c", "grep Cpus_allowed_list /proc/self/status"];
    let mut command = Command::new(BIN);
    command.args(["run", "--policy", "coreidle-userspace:keep=1", "--journal"]).arg(place.journal.path());
    let out = command.args(allowed).output().expect("runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(text.split_whitespace().last(), Some("0"), "{text}");
    assert_eq!(Place::allowed(std::process::id()).as_deref(), Some("0-1"));
    assert!(!place.cpuset.with_file_name("wattwise-coreidle").exists());
}

#[test]
fn masks_that_cannot_be_are_refused_in_one_line() {
    let journal = tempfile::tempdir().expect("a folder");
    for (args, code, word) in [
        (vec!["set", ""], 2, "at least one"),
        (vec!["set", "4000"], 3, "no CPU 4000"),
        (vec!["set", "x"], 2, "'x'"),
        (vec!["set", "3-1"], 2, "coreidle set 3-1: '3-1' ends before it begins; expected"),
        (vec!["set", "0", "--within", "/no/such"], 2, "is no cpuset"),
        (vec!["governor", "ondemnd"], 2, "did you mean"),
        (vec!["governor", "userspace", "5"], 2, "no fixed period"),
        (vec!["set", "0", "--mechanism", "hotplug", "--within", "a"], 3, "for the whole machine"),
        (vec!["tune", "--budget", "soon", "--", "true"], 2, "--budget"),
    ] {
        let mut command = Command::new(BIN);
        command.args(["coreidle", "--journal"]).arg(journal.path()).args(&args);
        let out = command.output().expect("runs");
        let why = String::from_utf8_lossy(&out.stderr).into_owned();
        if why.contains("no cgroup") {
            eprintln!("skipped {args:?}: {why}");
            continue;
        }
        assert_eq!(out.status.code(), Some(code), "{args:?}: {why}");
        assert!(why.contains(word) && why.trim_end().lines().count() == 1, "{args:?}: {why}");
    }
}
