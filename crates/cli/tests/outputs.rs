//! Every command's outputs: nothing is replaced that is no regular file, nothing is half written but logs and
//! recordings, and nothing is left over after the next start. What is expected is open(2)'s and rename(2)'s.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/lab.rs"]
mod lab;
#[path = "support/outputs.rs"]
mod outputs;

use lab::{skip, text, wattwise};
use outputs::{Kind, OUTPUTS, OutputCase, WORK};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user without rights, and a group.
const NOBODY: u32 = 65534;
const GROUP: u32 = 12;

/// What stands in a file before it is written: a page, as much as the small disk has.
/// A comment, to commands that read what they add to.
const OLD: &str = "# old\n";

/// A folder with what the calls read.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // Two pieces of work: a search takes no recording that it also tests on.
        for (name, rounds) in [("work.toml", "rounds = 20"), ("other.toml", "rounds = 21")] {
            std::fs::write(folder.path().join(name), WORK.replace("rounds = 20", rounds)).unwrap();
        }
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/run.json");
        std::fs::copy(results, folder.path().join("run.json")).unwrap();
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware_table");
        std::fs::create_dir(folder.path().join("table")).unwrap();
        for name in ["table.toml", "rows.csv", "machine.toml"] {
            std::fs::copy(table.join(name), folder.path().join("table").join(name)).unwrap();
        }
        Place(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, program: &[&str], case: &OutputCase, output: &str) -> Command {
        let words = case.call.split(' ').map(|w| if w == "{}" { output } else { w });
        let all: Vec<&str> =
            program.iter().copied().chain([env!("CARGO_BIN_EXE_wattwise")]).chain(words).collect();
        let mut command = Command::new(all[0]);
        command.current_dir(self.0.path()).args(&all[1..]);
        command
    }

    fn run(&self, case: &OutputCase, output: &str) -> Output {
        self.command(&[], case, output).output().unwrap()
    }

    fn device(&self, name: &str, minor: u32) {
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, self.at(name), FileType::CharacterDevice, mode, makedev(1, minor)).unwrap();
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(0o666)).unwrap();
    }

    fn is(&self, name: &str, what: impl Fn(&std::fs::FileType) -> bool) -> bool {
        what(&self.at(name).symlink_metadata().unwrap().file_type())
    }

    /// An older file, which is nobody's.
    fn old_file(&self, name: &str) {
        std::fs::write(self.at(name), OLD).unwrap();
        chown(self.at(name), Some(NOBODY), Some(GROUP)).unwrap();
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(0o640)).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap()
    }

    fn hidden(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.0.path()).unwrap().flatten();
        names.filter_map(|e| e.file_name().into_string().ok()).filter(|n| n.starts_with('.')).collect()
    }
}

/// Devices are made, owners changed and small disks mounted.
fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("stand-ins for devices need root");
    }
    root
}

/// Calls of the table that this machine can do; those that it cannot say so.
fn cases(kinds: &[Kind]) -> impl Iterator<Item = &'static OutputCase> {
    let can_record =
        Place::new().run(OUTPUTS.iter().find(|c| c.command == "record").unwrap(), "r").status.success();
    if !can_record && kinds.contains(&Kind::Recording) {
        skip("this machine lets nobody record");
    }
    OUTPUTS.iter().filter(move |c| {
        !c.call.is_empty() && kinds.contains(&c.kind) && (can_record || c.kind != Kind::Recording)
    })
}

const ALL: [Kind; 4] = [Kind::Result, Kind::Log, Kind::NewLog, Kind::Recording];

fn succeeded(case: &OutputCase, out: &Output) {
    assert_eq!(out.status.code(), Some(0), "{case:?}: {}", text(&out.stderr));
}

#[test]
fn a_device_is_written_into_and_a_link_to_its_target() {
    if !root() {
        return;
    }
    for case in cases(&ALL) {
        let place = Place::new();
        place.device("null", 3);
        symlink("null", place.at("link")).unwrap();
        succeeded(case, &place.run(case, "link"));
        assert!(place.is("null", |t| t.is_char_device()) && place.is("link", |t| t.is_symlink()), "{case:?}");

        // A log is not written over what is no log.
        let replaces = matches!(case.kind, Kind::Result | Kind::Recording);
        std::fs::create_dir(place.at("elsewhere")).unwrap();
        symlink("elsewhere/target.toml", place.at("link.toml")).unwrap();
        if replaces {
            place.old_file("elsewhere/target.toml");
        }
        succeeded(case, &place.run(case, "link.toml"));
        assert!(place.is("link.toml", |t| t.is_symlink()), "{case:?}: the link was replaced");
        let written = place.read("elsewhere/target.toml");
        // A configuration that a profile is added to keeps what it had.
        let adds = case.command == "profile add";
        assert!(written != OLD.as_bytes() && written.starts_with(OLD.as_bytes()) == adds, "{case:?}");
        let target = place.at("elsewhere/target.toml").metadata().unwrap();
        if replaces {
            assert_eq!(
                (target.uid(), target.gid(), target.mode() & 0o7777),
                (NOBODY, GROUP, 0o640),
                "{case:?}"
            );
        }
        assert_eq!(
            std::fs::read_dir(place.at("elsewhere")).unwrap().count(),
            1,
            "{case:?}: something was left"
        );
        assert_eq!(place.hidden(), Vec::<String>::new(), "{case:?}");
    }
}

#[test]
fn a_pipe_has_a_reader_and_stays() {
    for case in cases(&ALL) {
        let place = Place::new();
        mknodat(CWD, place.at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let pipe = place.at("pipe");
        let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
        succeeded(case, &place.run(case, "pipe"));
        assert!(!reader.join().unwrap().is_empty(), "{case:?}");
        assert!(place.is("pipe", |t| t.is_fifo()) && place.hidden().is_empty(), "{case:?}");
    }
}

/// Standard output has the result and nothing else; what is said beside it goes to standard error.
#[test]
fn standard_output_has_the_result_alone() {
    for case in cases(&ALL) {
        let place = Place::new();
        let out = place.run(case, "-");
        succeeded(case, &out);
        assert!(!place.at("-").exists(), "{case:?}");
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        let begins = match (case.command, case.flag) {
            (_, "report") => "<!doctype html>",
            ("compare", "ftrace") => "# tracer",
            ("tune", "output") => "",
            ("run", _) | ("ab", _) | ("tune", "log") => "{",
            ("record", _) => "PERFILE2",
            _ => "",
        };
        let start: String = printed.chars().take(40).collect();
        assert!(
            start.to_lowercase().starts_with(&begins.to_lowercase()) && !start.is_empty(),
            "{case:?}: {start}"
        );
        let said = ["report written (", "-: written", "written (--", "policy file written"];
        assert!(!said.iter().any(|s| printed.contains(s)), "{case:?}");
    }
}

#[test]
fn what_cannot_be_written_is_one_line_before_the_work() {
    if !root() {
        return;
    }
    for case in cases(&ALL) {
        let place = Place::new();
        std::fs::create_dir(place.at("folder.toml")).unwrap();
        place.device("disk.toml", 3);
        symlink("loop.toml", place.at("loop.toml")).unwrap();
        for path in ["folder.toml", "no/such/folder.toml", "loop.toml"] {
            let out = place.run(case, path);
            let said = text(&out.stderr);
            assert_eq!(
                (out.status.code(), said.trim_end().lines().count()),
                (Some(2), 1),
                "{case:?} {path}: {said}"
            );
            assert!(said.contains(path), "{case:?}: {said}");
        }
        assert!(place.is("loop.toml", |t| t.is_symlink()), "{case:?}");
        // The folder is root's.
        let out = place.command(&[], case, "new.toml").uid(NOBODY).gid(NOBODY).output().unwrap();
        assert!(matches!(out.status.code(), Some(2 | 3)), "{case:?}: {}", text(&out.stderr));
        assert!(!place.at("new.toml").exists(), "{case:?}");
    }
}

/// A disk on which the older file is all there is room for.
#[test]
fn a_full_disk_leaves_the_older_file() {
    if !root() {
        return;
    }
    for case in cases(&ALL) {
        let place = Place::new();
        place.device("full", 7);
        let out = place.run(case, "full");
        let said = text(&out.stderr);
        assert!(out.status.code() == Some(1) && said.contains("No space left"), "{case:?}: {said}");
        assert!(place.is("full", |t| t.is_char_device()), "{case:?}");
        if case.kind != Kind::Result {
            continue;
        }
        let disk = place.at("disk");
        std::fs::create_dir(&disk).unwrap();
        let page = rustix::param::page_size();
        let size = format!("size={page},mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&disk).status();
        if !mounted.is_ok_and(|s| s.success()) {
            return skip("nothing can be mounted here");
        }
        let file = disk.join("out.toml");
        std::fs::write(&file, vec![b'#'; page]).unwrap();
        let out = place.run(case, "disk/out.toml");
        let kept = std::fs::read(&file).unwrap();
        // Beside its machine file a calibration keeps a log.
        let names = std::fs::read_dir(&disk).unwrap().flatten();
        let names = names.filter(|e| e.file_name() != "out.windows.jsonl").count();
        assert!(Command::new("umount").arg(&disk).status().unwrap().success());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{case:?}: {said}");
        // The policy that a search has found is shown with the line, so that it is not lost.
        assert!(said.contains("No space left") && said.contains("disk/out."), "{case:?}: {said}");
        assert!(kept == vec![b'#'; page] && names == 1, "{case:?}: {} bytes, {names} names", kept.len());
    }
}

/// Kills a call at a system call that changes names or files; false where it never made it.
fn killed_at(place: &Place, case: &OutputCase, call: &str, nth: usize) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    let trace = format!("trace={call}");
    let strace = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let out = place.command(&strace, case, "out.toml").output().unwrap();
    let killed = out.status.signal() == Some(9) || out.status.code() == Some(137);
    assert!(killed || out.status.success(), "{case:?} {call}: {}", text(&out.stderr));
    killed
}

/// `fsync`, `linkat` and `renameat` are the steps by which a whole file gets its name.
#[test]
fn a_killed_command_leaves_the_older_result_whole() {
    for case in cases(&[Kind::Result]) {
        let place = Place::new();
        std::fs::write(place.at("out.toml"), OLD).unwrap();
        assert!(killed_at(&place, case, "renameat", 1), "{case:?} renames nothing");
        assert_eq!(text(&place.read("out.toml")), OLD, "{case:?}");
        assert_eq!(place.hidden().len(), 1, "{case:?}: the kill came between link and rename");
        succeeded(case, &place.run(case, "out.toml"));
        assert_ne!(text(&place.read("out.toml")), OLD, "{case:?}");
        assert_eq!(place.hidden(), Vec::<String>::new(), "{case:?}: left over after the next start");
        // Nothing was there: it is absent.
        std::fs::remove_file(place.at("out.toml")).unwrap();
        assert!(killed_at(&place, case, "linkat", 1), "{case:?} links nothing");
        assert!(!place.at("out.toml").exists() && place.hidden().is_empty(), "{case:?}");
    }
}

/// At every write of some that write much, and of one that writes in place of nothing.
#[test]
fn a_command_that_is_killed_at_a_write_leaves_the_older_result_whole() {
    for case in cases(&[Kind::Result]).filter(|c| ["capture", "run", "report"].contains(&c.command)) {
        let mut kills = 0;
        for call in ["write", "fchmod", "fsync"] {
            for nth in 1..40 {
                let place = Place::new();
                std::fs::write(place.at("out.toml"), OLD).unwrap();
                let killed = killed_at(&place, case, call, nth);
                let now = text(&place.read("out.toml"));
                assert!(place.hidden().is_empty(), "{case:?} {call} {nth}");
                // The last writes may be what is printed, when the result is whole.
                assert!(now == OLD || now.len() > 100, "{case:?} {call} {nth}: {now}");
                if !killed {
                    break;
                }
                kills += 1;
            }
        }
        assert!(kills >= 4, "{case:?}: killed {kills} times");
    }
}

/// Lines of a log, of which the last may be torn only if the kill tore it.
#[test]
fn a_killed_log_has_whole_records_and_is_called_incomplete() {
    for case in cases(&[Kind::Log, Kind::NewLog]) {
        let mut seen = 0;
        for nth in [1, 2, 3, 5, 8] {
            let place = Place::new();
            let path = place.at("out.toml").display().to_string();
            let inject = format!("inject=write:signal=KILL:when={nth}");
            let strace =
                ["strace", "-f", "-qqq", "-o", "/dev/null", "-P", &path, "-e", "trace=write", "-e", &inject];
            let out = place.command(&strace, case, "out.toml").output().unwrap();
            if out.status.success() {
                break;
            }
            let lines = text(&place.read("out.toml"));
            assert!(lines.is_empty() || lines.ends_with('\n'), "{case:?} {nth}: {lines}");
            assert_eq!(lines.lines().count(), nth - 1, "{case:?}: each line is one write");
            seen += 1;
            if nth == 1 {
                continue;
            }
            // Torn by a power failure, too.
            for torn in ["", "{\"tr"] {
                let log = place.at(&format!("log{}.jsonl", torn.len()));
                std::fs::write(&log, lines.clone() + torn).unwrap();
                let log = log.to_str().unwrap();
                let out = match case.command {
                    "ab" | "prove" => wattwise(&["report", log]),
                    _ => Command::new(env!("CARGO_BIN_EXE_wattwise"))
                        .current_dir(place.0.path())
                        .args(["tune", "--resume", log, "--budget", "trials=4", "-o", "policy.toml"])
                        .output()
                        .unwrap(),
                };
                let said = text(&out.stdout) + &text(&out.stderr);
                assert!(out.status.success() && said.contains("incomplete"), "{case:?} {nth}: {said}");
            }
        }
        assert!(seen >= 3, "{case:?}: killed {seen} times");
    }
}

/// What `kill -9` leaves of a recording can be read, packed or not, and is called incomplete.
#[test]
fn a_killed_recording_can_be_read_and_is_called_incomplete() {
    let Some(case) = cases(&[Kind::Recording]).next() else { return };
    for name in ["out.perf", "out.zst"] {
        let place = Place::new();
        let mut program = Command::new(env!("CARGO_BIN_EXE_wattwise"));
        program.current_dir(place.0.path()).args(["record", "-o", name, "--", "sh", "-c"]);
        program.arg("while sleep 0.01; do :; done");
        let mut recorder = program.spawn().unwrap();
        // perf's FINISHED_ROUND: what is before the last but one is of all CPUs.
        let round = [68, 0, 0, 0, 0, 0, 8, 0];
        let rounds = |file: Vec<u8>| file.windows(round.len()).filter(|bytes| **bytes == round).count();
        while std::fs::read(place.at(name)).map_or(0, rounds) < 6 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let children = format!("/proc/{0}/task/{0}/children", recorder.id());
        let children = std::fs::read_to_string(children).unwrap();
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        // The command is the first of a group of its own.
        for child in children.split_whitespace().filter_map(|c| Pid::from_raw(c.parse().ok()?)) {
            _ = kill_process_group(child, Signal::KILL);
        }
        for command in ["trace", "import"] {
            let out = wattwise(&[command, place.at(name).to_str().unwrap()]);
            let said = text(&out.stdout) + &text(&out.stderr);
            assert!(out.status.success() && said.contains("incomplete"), "{command} {name}: {said}");
        }
    }
    // Killed while it is packed: the unpacked one is whole, and the next start removes what was left.
    let place = Place::new();
    let again = OutputCase { call: "record -o out.zst -- true", ..*case };
    assert!(killed_at(&place, &again, "renameat", 1));
    assert!(place.read("out.zst").starts_with(b"PERFILE2") && place.hidden().len() == 1);
    let out = wattwise(&["trace", place.at("out.zst").to_str().unwrap()]);
    assert!(out.status.success() && !text(&out.stdout).contains("incomplete"), "{}", text(&out.stderr));
    succeeded(&again, &place.run(&again, ""));
    assert!(!place.read("out.zst").starts_with(b"PERFILE2") && place.hidden().is_empty());
}
