//! Root works on a tree that belongs to a stranger: what it changes, seen from outside by strace.
//!
//! The stranger (user 65534) owns the tree, the folder around it, and what stands where wattwise looks for its journal. Each
//! command is traced with all its threads; every call that could change something must be about a place that is allowed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "support/traced.rs"]
mod traced;
use traced::{Changes, traced};

const STRANGER: u32 = 65534;
const POLICY: &str = "sys/devices/system/cpu/cpufreq/policy0";
/// By which writes are done; it changes a file of the tree.
const SET: &[&str] = &["set", "--governor", "powersave"];

/// What is put at a path.
type Making = dyn Fn(&Path);

/// Root's folder, and a stranger's beside it with a tree in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// None where the test cannot be made: said aloud, and a failure under CI.
    fn new() -> Option<Place> {
        let why = match () {
            () if !rustix::process::geteuid().is_root() => "only root can give files to a stranger",
            () if Command::new("strace").arg("-V").output().is_err() => "strace is missing",
            () => {
                let place = Place { folder: tempfile::tempdir().unwrap() };
                mode(place.folder.path(), 0o755);
                for folder in ["victim", "mallory", "out"] {
                    std::fs::create_dir(place.at(folder)).unwrap();
                    mode(&place.at(folder), 0o755);
                }
                place.plant();
                return Some(place);
            }
        };
        assert!(std::env::var_os("CI").is_none(), "{why}; CI needs it");
        eprintln!("skipped: {why}");
        None
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A laptop's tree, all of it the stranger's.
    fn plant(&self) {
        let tree = self.at("mallory/tree");
        for entry in wattwise_emulator::named("core-i5-2gen").unwrap().files() {
            let (name, make): (String, Box<Making>) = match entry {
                wattwise_emulator::TreeEntry::File(name, bytes) => {
                    (name, Box::new(move |at| std::fs::write(at, &bytes).unwrap()))
                }
                // Relative, as sysfs has them.
                wattwise_emulator::TreeEntry::Link(name, to) => {
                    let up = "../".repeat(name.matches('/').count());
                    (name, Box::new(move |at| symlink(format!("{up}{to}"), at).unwrap()))
                }
            };
            std::fs::create_dir_all(tree.join(&name).parent().unwrap()).unwrap();
            make(&tree.join(&name));
        }
        give(&self.at("mallory"));
    }

    /// Runs a command on the tree under strace.
    fn run(&self, args: &[&str]) -> (Output, Changes) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        command.args(args).current_dir(self.folder.path());
        // The command's own output is allowed, where a test gives it one.
        traced(&command, &self.at("out/strace"))
    }

    fn on_tree(&self, args: &[&str]) -> (Output, Changes) {
        self.run(&[args, &["--root", "mallory/tree"]].concat())
    }

    /// What of the victim may not change: everything.
    fn victim(&self) -> Vec<(PathBuf, u32, u32, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut open = vec![self.at("victim")];
        while let Some(path) = open.pop() {
            let meta = std::fs::symlink_metadata(&path).unwrap();
            open.extend(std::fs::read_dir(&path).into_iter().flatten().map(|e| e.unwrap().path()));
            let content = meta.is_file().then(|| std::fs::read(&path).unwrap());
            all.push((path, meta.mode(), meta.uid(), content));
        }
        all.sort();
        all
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Gives all below a path, and itself, to the stranger.
fn give(path: &Path) {
    if !path.is_symlink() && path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|e| give(&e.unwrap().path()));
    }
    lchown(path, Some(STRANGER), None).unwrap();
}

fn one_line(out: &Output) -> String {
    let text = String::from_utf8_lossy(&out.stderr).trim_end().to_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn to_look_at_a_strangers_tree_changes_nothing() {
    let Some(place) = Place::new() else { return };
    let before = place.victim();
    let journals: [(&str, &Making); 5] = [
        ("no journal", &|_| {}),
        ("a link to root's folder", &|at| symlink(at.with_file_name("../victim"), at).unwrap()),
        ("a dead link", &|at| symlink("nowhere", at).unwrap()),
        ("the stranger's folder", &|at| std::fs::create_dir(at).unwrap()),
        ("a file", &|at| std::fs::write(at, "").unwrap()),
    ];
    for (what, make) in journals {
        let journal = place.at("mallory/tree.journal");
        make(&journal);
        if journal.is_symlink() || journal.exists() {
            give(&journal);
        }
        for command in [
            &["restore", "--dry-run"][..],
            &["restore"],
            &["info"],
            &["info", "--json"],
            &["set", "--governor", "powersave", "--dry-run"],
            &["cpufreq-info"],
        ] {
            let (out, changes) = place.on_tree(command);
            changes.assert_only_in(&[], &format!("{command:?}, {what}"));
            let refused = command[0] == "restore" && what != "no journal" && what != "a dead link";
            if what == "a dead link" && command[0] == "restore" {
                assert_eq!(out.status.code(), Some(2), "{command:?}: not followed, wherever it leads");
            } else {
                assert_eq!(
                    out.status.code(),
                    Some(if refused { 2 } else { 0 }),
                    "{command:?}, {what}: {out:?}"
                );
            }
            if refused {
                assert!(one_line(&out).contains("mallory/tree.journal"), "{command:?}, {what}");
            }
        }
        let (_, changes) = place.on_tree(&["capture", "-o", "out/capture"]);
        changes.assert_only_in(&[&place.at("out")], &format!("capture, {what}"));
        let (_, changes) = place.run(&["coreidle", "status", "--journal", "mallory/tree.journal"]);
        changes.assert_only_in(&[], &format!("coreidle status, {what}"));
        assert_eq!(place.victim(), before, "{what}");
        _ = std::fs::remove_file(&journal);
        _ = std::fs::remove_dir(&journal);
    }
}

#[test]
fn set_writes_in_the_tree_and_its_journal_alone() {
    let Some(place) = Place::new() else { return };
    let (tree, journal) = (place.at("mallory/tree"), place.at("mallory/tree.journal"));
    let (out, changes) = place.on_tree(SET);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    changes.assert_only_in(&[&tree, &journal], "set");
    assert!(changes.len() > 4, "a journal and writes: {changes:?}");
    let governor = tree.join(POLICY).join("scaling_governor");
    assert_eq!(std::fs::read_to_string(&governor).unwrap(), "powersave");
    let made = std::fs::metadata(&journal).unwrap();
    // Its names may be read, and the note of what was replaced; the journals may not.
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o755, 0));
    let of_journal = std::fs::metadata(journal.join("000001.jsonl")).unwrap();
    assert_eq!(of_journal.mode() & 0o7777, 0o600);
    let (out, changes) = place.on_tree(&["restore", "--dry-run"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    changes.assert_only_in(&[], "restore --dry-run with something to do");
    assert!(String::from_utf8_lossy(&out.stdout).contains("powersave -> "), "{out:?}");
    let (out, changes) = place.on_tree(&["restore"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    changes.assert_only_in(&[&tree, &journal], "restore");
    assert_ne!(std::fs::read_to_string(&governor).unwrap().trim(), "powersave");
}

#[test]
fn links_that_lead_out_of_a_tree_lead_nowhere() {
    for link in ["", "sys", "proc", "sys/devices/system/cpu", POLICY, "policy0/scaling_governor"] {
        let Some(place) = Place::new() else { return };
        let link = link.replace("policy0/", &format!("{POLICY}/"));
        // Root's own things of the same names, to be reached by the link.
        let below = |tree: &str| match link.as_str() {
            "" => place.at(tree),
            link => place.at(tree).join(link),
        };
        let (at, victim) = (below("mallory/tree"), below("victim/tree"));
        let status = Command::new("cp")
            .args(["-rT", "--no-preserve=ownership"])
            .args([place.at("mallory/tree"), place.at("victim/tree")])
            .status();
        assert!(status.unwrap().success());
        let before = place.victim();
        if at.is_dir() { std::fs::remove_dir_all(&at) } else { std::fs::remove_file(&at) }.unwrap();
        symlink(&victim, &at).unwrap();
        lchown(&at, Some(STRANGER), None).unwrap();
        for command in [SET, &["set", "--governor", "powersave", "--dry-run"], &["restore"], &["info"]] {
            let (_, changes) = place.on_tree(command);
            let inside = [place.at("mallory/tree"), place.at("mallory/tree.journal")];
            let allowed: Vec<&Path> = inside.iter().map(PathBuf::as_path).collect();
            changes.assert_only_in(&allowed, &format!("{command:?}, '{link}' is a link"));
            assert_eq!(place.victim(), before, "{command:?}, '{link}' is a link");
        }
    }
}

/// What may stand where `--journal` points, and whether it is used.
#[test]
fn a_journal_s_folder_is_used_as_it_is_or_refused() {
    type Make = fn(&Place, &Path);
    let folder = |place: &Place, mode: u32, owner: u32| {
        let at = place.at("victim/journal");
        std::fs::create_dir(&at).unwrap();
        chown(&at, Some(owner), None).unwrap();
        self::mode(&at, mode);
        at
    };
    // (what, its mode and owner, whether it is used)
    for (mode, owner, used) in [
        (0o700, 0, true),
        (0o755, 0, true),
        (0o2755, 0, true),
        (0o500, 0, true),
        (0o775, 0, false),
        (0o757, 0, false),
        (0o777, 0, false),
        (0o1777, 0, false),
        (0o700, STRANGER, false),
        (0o1777, STRANGER, false),
    ] {
        let Some(place) = Place::new() else { return };
        let at = folder(&place, mode, owner);
        check(&place, "victim/journal", used, &format!("{mode:o} of {owner}"));
        let now = std::fs::metadata(at).unwrap();
        assert_eq!((now.mode() & 0o7777, now.uid()), (mode, owner), "never changed");
    }
    let others: [(&str, Make, &str, bool); 7] = [
        ("root's link", |p, victim| symlink(victim, p.at("link")).unwrap(), "link", true),
        ("root's link on the way", |p, _| symlink("victim", p.at("link")).unwrap(), "link/new", true),
        (
            "root's link in the stranger's folder",
            |p, v| symlink(v, p.at("mallory/link")).unwrap(),
            "mallory/link",
            false,
        ),
        (
            "the stranger's link on the way",
            |p, v| {
                symlink(v, p.at("link")).unwrap();
                give(&p.at("link"))
            },
            "link/new",
            false,
        ),
        ("a new folder in the stranger's", |_, _| {}, "mallory/new/er", true),
        ("a file", |p, _| std::fs::write(p.at("file"), "").unwrap(), "file", false),
        (
            "below a pipe",
            |p, _| rustix::fs::mkfifoat(rustix::fs::CWD, p.at("pipe"), 0o600.into()).unwrap(),
            "pipe/x",
            false,
        ),
    ];
    for (what, make, journal, used) in others {
        let Some(place) = Place::new() else { return };
        make(&place, &place.at("victim"));
        check(&place, journal, used, what);
        assert_eq!(std::fs::metadata(place.at("victim")).unwrap().mode() & 0o7777, 0o755, "{what}");
    }
}

/// Each command that keeps something in that folder uses it, or refuses it in one line and leaves all as it was.
fn check(place: &Place, journal: &str, used: bool, what: &str) {
    let before = place.victim();
    for command in [&["restore", "--dry-run"][..], SET, &["restore"], &["coreidle", "status"]] {
        let mut args = [command, &["--journal", journal]].concat();
        if command[0] != "coreidle" {
            args.extend(["--root", "mallory/tree"]);
        }
        let (out, changes) = place.run(&args);
        assert_eq!(out.status.success(), used, "{args:?}, {what}: {out:?}");
        if !used {
            changes.assert_only_in(&[], &format!("{args:?}, {what}"));
            one_line(&out);
            assert_eq!(place.victim(), before, "{args:?}, {what}");
        }
        changes.assert_none_of(&["chmod", "chown"], &format!("{args:?}, {what}"));
    }
}

/// Files in a folder that was open to others once.
#[test]
fn what_was_planted_in_a_folder_is_neither_followed_nor_opened() {
    type Plant = fn(&Path, &Path);
    let kinds: [(&str, Plant); 5] = [
        ("a link", |at, secret| symlink(secret, at).unwrap()),
        ("a hard link", |at, secret| std::fs::hard_link(secret, at).unwrap()),
        ("a pipe", |at, _| rustix::fs::mkfifoat(rustix::fs::CWD, at, 0o600.into()).unwrap()),
        ("a device", |at, _| {
            let zero = rustix::fs::makedev(1, 5);
            rustix::fs::mknodat(
                rustix::fs::CWD,
                at,
                rustix::fs::FileType::CharacterDevice,
                0o600.into(),
                zero,
            )
            .unwrap();
        }),
        ("a file of the stranger's", |at, _| {
            std::fs::write(at, "{}").unwrap();
            give(at)
        }),
    ];
    for (what, plant) in kinds {
        for name in ["000001.jsonl", "coreidle.json", "coreidle.lock"] {
            let Some(place) = Place::new() else { return };
            std::fs::write(place.at("victim/secret"), "root's").unwrap();
            mode(&place.at("victim/secret"), 0o600);
            let folder = place.at("journal");
            std::fs::create_dir(&folder).unwrap();
            mode(&folder, 0o755);
            plant(&folder.join(name), &place.at("victim/secret"));
            let before = place.victim();
            for args in [&["restore", "--root", "mallory/tree"][..], &["coreidle", "status"]] {
                let args = [args, &["--journal", "journal"]].concat();
                let (_, changes) = place.run(&args);
                changes.assert_only_in(&[], &format!("{args:?}, {name} is {what}"));
                if what != "a file of the stranger's" {
                    assert!(!changes.opened(name), "{args:?}, {name} is {what}");
                }
                assert_eq!(place.victim(), before, "{args:?}, {name} is {what}");
                assert!(folder.join(name).symlink_metadata().is_ok(), "{name} is {what}, and stays");
            }
        }
    }
}

/// Pipes, devices, endless files, deep folders and loops in a tree that is captured.
#[test]
fn a_capture_of_a_hostile_tree_ends_and_opens_no_device() {
    let Some(place) = Place::new() else { return };
    let tree = place.at("mallory/tree");
    let at = |name: &str| tree.join(name);
    _ = std::fs::remove_file(at("proc/meminfo"));
    rustix::fs::mkfifoat(rustix::fs::CWD, at("proc/meminfo"), 0o666.into()).unwrap();
    std::fs::remove_file(at("proc/cpuinfo")).unwrap();
    let zero = rustix::fs::makedev(1, 5);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("proc/cpuinfo"),
        rustix::fs::FileType::CharacterDevice,
        0o666.into(),
        zero,
    )
    .unwrap();
    std::fs::File::create(at("proc/stat")).unwrap().set_len(1 << 40).unwrap();
    let deep = std::iter::repeat_n("d", 500).collect::<Vec<_>>().join("/");
    std::fs::create_dir_all(at("sys/class/hwmon/hwmon0").join(deep)).unwrap();
    for (name, to) in
        [("sys/class/hwmon/loop", "."), ("sys/class/thermal/loop", "loop"), ("sys/class/drm", "class")]
    {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        _ = symlink(to, at(name));
    }
    give(&place.at("mallory"));
    let (out, changes) = place.on_tree(&["capture", "-o", "out/capture", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    changes.assert_only_in(&[&place.at("out")], "capture");
    for name in ["proc/cpuinfo", "proc/meminfo"] {
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(said.contains(name), "{name} is listed as not read: {said}");
        assert!(!changes.opened(name), "{name}");
    }
    assert!(place.at("out/capture").metadata().unwrap().len() < 1 << 20);
    let (out, changes) = place.on_tree(&["info"]);
    assert!(out.status.code().is_some(), "{out:?}");
    changes.assert_only_in(&[], "info");
}

/// `--dry-run` makes nothing: no folder, no lock, no journal; on an emulated machine neither.
#[test]
fn a_dry_run_makes_nothing() {
    let Some(place) = Place::new() else { return };
    for args in [
        &["restore", "--dry-run", "--root", "emulated:bc10"][..],
        &["restore", "--root", "emulated:bc10"],
        &["restore", "--dry-run", "--journal", "new/er"],
        &["restore", "--dry-run", "--root", "mallory/tree", "--journal", "new/er"],
        &["set", "--governor", "powersave", "--dry-run", "--root", "emulated:bc10"],
        &["set", "--governor", "powersave", "--dry-run", "--root", "mallory/tree", "--journal", "new/er"],
        &["coreidle", "status", "--journal", "new/er"],
    ] {
        let (out, changes) = place.run(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {out:?}");
        changes.assert_only_in(&[], &format!("{args:?}"));
    }
}

/// The judge itself: a change elsewhere is seen.
#[test]
fn a_change_in_another_place_is_seen() {
    let Some(place) = Place::new() else { return };
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(place.folder.path());
        traced(&command, &place.at("out/strace")).1
    };
    assert_eq!(shell("cat /etc/passwd > /dev/null; ls -la / > /dev/null").outside(&[]), Vec::<String>::new());
    for script in [
        "echo x > victim/new",
        "chmod 700 victim",
        "chown 1 victim",
        "mkdir victim/a",
        "rmdir victim/a",
        "ln -s x victim/link",
        "mv victim/link out/link",
        "rm -f victim/new",
        "touch victim",
        "mkfifo victim/pipe",
        "truncate -s 0 victim/pipe2",
        "cd mallory && ln -s ../victim way && echo x > way/thing",
    ] {
        let allowed = [place.at("out"), place.at("mallory")];
        let allowed: Vec<&Path> = allowed.iter().map(PathBuf::as_path).collect();
        assert!(!shell(script).outside(&allowed).is_empty(), "{script}");
        assert!(shell("echo x > out/x; mkdir mallory/x; mv out/x out/y").outside(&allowed).is_empty());
    }
}
