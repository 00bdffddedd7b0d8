//! What a path may name, and a kill before each step. Expected values are open(2)'s, rename(2)'s and a shell's.

use super::*;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output as Ended, Stdio};

/// A user without rights: nobody.
const NOBODY: u32 = 65534;

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assert!(std::env::var_os("CI").is_none(), "CI needs root");
        eprintln!("skipped: needs root");
    }
    root
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    folder
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.file_name().into_string().expect("a name of ours")).collect();
    names.sort();
    names
}

fn code(error: &io::Error) -> Option<rustix::io::Errno> {
    rustix::io::Errno::from_io_error(error)
}

/// Runs one of [`child`]'s deeds in a process of its own, killed before its `nth` step, as some user.
fn deed(deed: &str, path: &Path, nth: u32, user: u32) -> Ended {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "tests::child", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env("OUTPUT_DEED", deed).env("OUTPUT_PATH", path).env("OUTPUT_NTH", nth.to_string());
    if user != 0 {
        command.uid(user).gid(user);
    }
    command.stdin(Stdio::null()).output().expect("started")
}

const NEW: &str = "new\n";
/// More than a buffer and a small disk take.
const LONG: usize = 300_000;

#[test]
#[ignore = "a part of other tests, in a process of its own"]
fn child() {
    let (Some(deed), Some(path)) = (std::env::var_os("OUTPUT_DEED"), std::env::var_os("OUTPUT_PATH")) else {
        return;
    };
    let nth = std::env::var("OUTPUT_NTH").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let path = Path::new(&path);
    fault::arm(nth);
    let done = match deed.to_str() {
        Some("result") => write(path, NEW.as_bytes()),
        Some("long") => write(path, &[b'n'; LONG]),
        Some("log") => Log::create(path).and_then(|mut log| {
            ["one\n", "two\n", "three\n"].iter().try_for_each(|record| log.append(record.as_bytes()))
        }),
        Some("packed") => Recording::create(path).and_then(|mut recording| {
            recording.file().write_all(b"first second")?;
            let (mut from, mut out) = recording.packed()?;
            io::copy(&mut from, &mut io::sink())?;
            out.write_all(b"packed")?;
            out.finish()
        }),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    if let Err(e) = done {
        println!("failed: {e} ({:?})", code(&e));
        std::process::exit(3);
    }
}

fn killed(ended: &Ended) -> bool {
    use std::os::unix::process::ExitStatusExt;
    match ended.status.signal() {
        Some(signal) => signal == 9,
        None => {
            assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
            false
        }
    }
}

#[test]
fn a_file_keeps_its_owner_mode_and_attributes() {
    let folder = folder();
    let path = folder.path().join("file");
    write(&path, b"first").expect("a new file");
    let fresh =
        std::fs::File::create(folder.path().join("fresh")).expect("another").metadata().expect("its mode");
    assert_eq!(path.metadata().expect("there").mode(), fresh.mode(), "a new file follows the user's mask");

    for mode in [0o640, 0o600, 0o4755, 0o2750, 0o666] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        write(&path, NEW.as_bytes()).expect("written");
        let now = path.metadata().expect("there");
        assert_eq!((now.mode() & 0o7777, read(&path).as_str()), (mode, NEW));
    }
    let attribute = c"user.wattwise";
    if rustix::fs::setxattr(&path, attribute, b"kept", rustix::fs::XattrFlags::empty()).is_ok() {
        write(&path, b"again").expect("written");
        let mut value = [0; 16];
        assert_eq!(rustix::fs::getxattr(&path, attribute, &mut value[..]), Ok(4));
    }
    if root() {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(12)).expect("root may");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("its mode");
        write(&path, NEW.as_bytes()).expect("written");
        let now = path.metadata().expect("there");
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (NOBODY, 12, 0o640));
    }
    assert_eq!(names(folder.path()), ["file", "fresh"]);
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("elsewhere")).expect("a folder");
    for (link, to) in [("one", "elsewhere/target"), ("two", "one"), ("three", "./two")] {
        symlink(to, at(link)).expect("a link");
    }
    // The first time it dangles: the target is made, as a shell's redirection makes it.
    for content in ["first", "second"] {
        write(&at("three"), content.as_bytes()).expect("written");
        assert_eq!(read(&at("elsewhere/target")), content);
        assert!(["one", "two", "three"].iter().all(|l| at(l).is_symlink()), "{content}: a link was replaced");
        assert_eq!(names(&at("elsewhere")), ["target"]);
    }
    let mut log = Log::create(&at("two")).expect("a log");
    log.append(b"line\n").expect("appended");
    assert!(Log::create_new(&at("two")).is_err(), "it is there already");
    Recording::create(&at("one")).expect("a recording").file().write_all(b"bytes").expect("recorded");
    assert_eq!(read(&at("elsewhere/target")), "bytes");
    assert!(at("one").is_symlink() && at("two").is_symlink());

    symlink("loop", at("loop")).expect("a link");
    symlink("no/such/folder", at("lost")).expect("a link");
    for (path, expected) in [("loop", rustix::io::Errno::LOOP), ("lost", rustix::io::Errno::NOENT)] {
        let error = write(&at(path), b"").expect_err(path);
        assert_eq!(code(&error), Some(expected), "{path}: what open(2) says");
        assert!(at(path).is_symlink());
    }
}

#[test]
fn a_strangers_link_in_a_folder_open_to_all_is_not_followed() {
    if !root() {
        return;
    }
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).expect("its mode");
    let (link, target) = (folder.path().join("link"), folder.path().join("victim"));
    std::fs::write(&target, "kept").expect("a file");
    symlink("victim", &link).expect("a link");
    write(&link, b"mine").expect("root's own link in root's own folder");
    std::os::unix::fs::lchown(&link, Some(NOBODY), None).expect("root may");
    for open in [write(&link, b"x").err(), Log::create(&link).err(), Recording::create(&link).err()] {
        assert_eq!(open.map(|e| e.kind()), Some(io::ErrorKind::PermissionDenied));
    }
    assert_eq!(read(&target), "mine");
}

#[test]
fn what_is_no_file_is_written_into_or_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    symlink("pipe", at("link")).expect("a link");
    for (path, deed) in [("pipe", "result"), ("link", "result"), ("pipe", "log"), ("link", "packed")] {
        // There before the writer: a thread that opens it later may find no writer any more, where a child that another test
        // starts held the last reader's end for a moment.
        let mut reader = reader_of(&at("pipe"));
        let path = at(path);
        let written = match deed {
            "result" => write(&path, NEW.as_bytes()).map(|()| NEW),
            "log" => Log::create(&path).and_then(|mut log| log.append(b"line\n")).map(|()| "line\n"),
            _ => Recording::create(&path)
                .and_then(|mut recording| {
                    recording.file().write_all(b"bytes")?;
                    recording.finish()
                })
                .map(|()| "bytes"),
        };
        let written = written.unwrap_or_else(|e| panic!("{deed}: {e}"));
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("read");
        assert_eq!(read, written, "{deed}");
        assert!(from_is(&at("pipe"), |t| t.is_fifo()) && at("link").is_symlink(), "{deed}: replaced");
    }
    let socket = std::os::unix::net::UnixListener::bind(at("socket"));
    assert!(socket.is_ok());
    std::fs::create_dir(at("folder")).expect("a folder");
    for refused in ["socket", "folder", "folder/", "folder/.", "folder/..", "nothing/", ""] {
        let path = if refused.is_empty() { PathBuf::new() } else { at(refused) };
        assert!(write(&path, b"x").is_err(), "'{refused}' as a result");
        assert!(Log::create(&path).is_err(), "'{refused}' as a log");
        assert!(Recording::create(&path).is_err(), "'{refused}' as a recording");
    }
    assert!(from_is(&at("socket"), |t| t.is_socket()));
    assert_eq!(names(folder.path()), ["folder", "link", "pipe", "socket"]);
}

/// A pipe's end for reading, whether anybody writes or not.
fn reader_of(pipe: &Path) -> std::fs::File {
    let end = rustix::fs::open(pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("a pipe");
    rustix::fs::fcntl_setfl(&end, OFlags::empty()).expect("waits from now on");
    end.into()
}

fn from_is(path: &Path, what: impl Fn(&std::fs::FileType) -> bool) -> bool {
    what(&path.symlink_metadata().expect("there").file_type())
}

/// Stand-ins for /dev/null and /dev/full, so that a mistake does not cost the machine's own.
#[test]
fn a_device_is_written_into() {
    if !root() {
        return;
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let device = |name: &str, kind, major, minor| {
        mknodat(CWD, at(name), kind, Mode::from_raw_mode(0o666), rustix::fs::makedev(major, minor))
            .expect("root may");
    };
    device("null", FileType::CharacterDevice, 1, 3);
    device("full", FileType::CharacterDevice, 1, 7);
    device("disk", FileType::BlockDevice, 7, 250);
    symlink("null", at("link")).expect("a link");
    for path in ["null", "link"] {
        write(&at(path), NEW.as_bytes()).expect("null takes all");
        Log::create(&at(path)).and_then(|mut log| log.append(b"line\n")).expect("null takes all");
        Recording::create(&at(path)).and_then(Recording::finish).expect("null takes all");
    }
    let full = write(&at("full"), NEW.as_bytes()).expect_err("a full disk");
    assert_eq!(code(&full), Some(rustix::io::Errno::NOSPC));
    assert!(write(&at("disk"), NEW.as_bytes()).is_err(), "a disk is not written over");
    assert!(["null", "full"].iter().all(|d| from_is(&at(d), |t| t.is_char_device())));
    assert!(from_is(&at("disk"), |t| t.is_block_device()) && at("link").is_symlink());
    assert_eq!(names(folder.path()), ["disk", "full", "link", "null"]);
}

/// As `{ echo a; wattwise ...; echo b; } > file` has it: what is written goes between.
#[test]
fn a_descriptor_is_shared() {
    let folder = folder();
    for path in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"] {
        let file = folder.path().join("out");
        let mut out = std::fs::File::create(&file).expect("a file");
        out.write_all(b"before\n").expect("written");
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args([
            "--exact",
            "tests::child",
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
            "-q",
        ]);
        command.env("OUTPUT_DEED", "result").env("OUTPUT_PATH", path);
        let ended = command.stdout(out.try_clone().expect("a copy")).status().expect("started");
        out.write_all(b"after\n").expect("written");
        let text = read(&file);
        assert!(
            ended.success() && text.starts_with("before\n") && text.ends_with("after\n"),
            "{path}: {text}"
        );
        assert!(text.contains(NEW), "{path}: {text}");
    }
    // A number that we were not started with, and one that is open for reading alone.
    for path in ["/dev/fd/987", "/dev/fd/word", "/dev/stdin"] {
        let ended = deed("result", Path::new(path), 0, 0);
        assert_eq!(ended.status.code(), Some(3), "{path}: {}", String::from_utf8_lossy(&ended.stdout));
    }
    // Our own descriptors are nobody's output.
    let own = std::fs::File::create(folder.path().join("own")).expect("a file");
    let number = std::os::fd::AsRawFd::as_raw_fd(&own);
    assert!(write(Path::new(&format!("/dev/fd/{number}")), b"x").is_err());
}

#[test]
fn where_no_file_can_be_made_the_old_one_is_written_in_place() {
    if !root() {
        return;
    }
    let above = folder();
    let folder = above.path().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let at = |name: &str| folder.join(name);
    for (name, owner, mode) in [("mine", NOBODY, 0o600), ("shared", 0, 0o666), ("read-only", NOBODY, 0o444)] {
        std::fs::write(at(name), "old content").expect("a file");
        std::os::unix::fs::chown(at(name), Some(owner), None).expect("root may");
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).expect("its mode");
    }
    let inode = |name: &str| at(name).metadata().expect("there").ino();
    let refused = |name: &str| {
        let ended = deed("result", &at(name), 0, NOBODY);
        let told = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.code() == Some(3) && told.contains("Permission denied"), "{name}: {told}");
    };
    // The folder is root's alone.
    for name in ["mine", "shared"] {
        let before = inode(name);
        assert!(!killed(&deed("result", &at(name), 0, NOBODY)));
        assert_eq!((read(&at(name)).as_str(), inode(name)), (NEW, before), "{name}");
    }
    refused("read-only");
    refused("none");
    // The folder is theirs: root's file is still root's afterwards, which a rename would not keep.
    std::os::unix::fs::chown(&folder, Some(NOBODY), None).expect("root may");
    std::fs::write(at("shared"), "old content").expect("a file");
    assert!(!killed(&deed("result", &at("shared"), 0, NOBODY)));
    let now = at("shared").metadata().expect("there");
    assert_eq!((now.uid(), now.mode() & 0o777, read(&at("shared")).as_str()), (0, 0o666, NEW));
    // What may not be written is not replaced, although the folder would allow it.
    refused("read-only");
    assert_eq!(read(&at("read-only")), "old content");
    assert_eq!(names(&folder), ["mine", "read-only", "shared"]);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    if !root() {
        return;
    }
    let folder = folder();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64k,mode=777", "none"]).arg(folder.path());
    if !mount.status().is_ok_and(|s| s.success()) {
        assert!(std::env::var_os("CI").is_none(), "CI needs to mount");
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let path = folder.path().join("file");
    let outcome = std::panic::catch_unwind(|| {
        for user in [0, NOBODY] {
            std::fs::write(&path, "old").expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("its mode");
            // For nobody the file is another's, so it is written in place.
            let ended = deed("long", &path, 0, user);
            let told = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.code() == Some(3) && told.contains("No space left"), "user {user}: {told}");
            assert_eq!((read(&path).as_str(), names(folder.path()).len()), ("old", 1), "user {user}");
        }
        // A log loses the record that did not fit, and no other.
        let mut log = Log::create(&path).expect("a log");
        log.append(b"first\n").expect("it fits");
        assert!(log.append(&[b'x'; LONG]).is_err());
        log.append(b"second\n").expect("it fits");
        assert_eq!(read(&path), "first\nsecond\n");
    });
    let unmounted = Command::new("umount").arg(folder.path()).status().expect("umount");
    assert!(unmounted.success());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Kills a deed before each of its steps; calls `look` after each kill, and after the start that follows it.
fn killed_everywhere(
    what: &str,
    path: &Path,
    prepare: impl Fn(),
    look: impl Fn(u32),
    after: impl Fn(u32),
) -> u32 {
    for nth in 1.. {
        assert!(nth < 100, "{what}: no end");
        prepare();
        let ended = deed(what, path, nth, 0);
        let was_killed = killed(&ended);
        look(nth);
        assert!(!killed(&deed(what, path, 0, 0)), "{what}: the next start");
        after(nth);
        if !was_killed {
            return nth - 1;
        }
    }
    0
}

#[test]
fn a_result_is_whole_or_absent_whenever_the_writer_is_killed() {
    let folder = folder();
    let path = folder.path().join("file");
    let whole = |nth| {
        assert_eq!(
            (read(&path).as_str(), names(folder.path())),
            (NEW, vec!["file".to_owned()]),
            "step {nth}"
        );
    };
    let steps = killed_everywhere(
        "result",
        &path,
        || _ = std::fs::remove_file(&path),
        |nth| assert!(!path.exists() || read(&path) == NEW, "step {nth}"),
        whole,
    );
    // A file is made, written, synced, and gets its name.
    assert!(steps >= 4, "{steps}");
    let steps = killed_everywhere(
        "result",
        &path,
        || std::fs::write(&path, "old").expect("a file"),
        |nth| assert!(["old", NEW].contains(&read(&path).as_str()), "step {nth}"),
        whole,
    );
    // The same, with its mode, a hidden name and the rename.
    assert!(steps >= 6, "{steps}");
}

#[test]
fn a_log_has_whole_records_whenever_the_writer_is_killed() {
    let folder = folder();
    let path = folder.path().join("log");
    let whole = "one\ntwo\nthree\n";
    let steps = killed_everywhere(
        "log",
        &path,
        || _ = std::fs::remove_file(&path),
        |nth| {
            let text = if path.exists() { read(&path) } else { String::new() };
            assert!(
                whole.starts_with(&text) && (text.is_empty() || text.ends_with('\n')),
                "step {nth}: {text}"
            );
        },
        |nth| assert_eq!((read(&path).as_str(), names(folder.path()).len()), (whole, 1), "step {nth}"),
    );
    assert!(steps >= 4, "{steps}");
    // What a power cut tore is cut off when the log is gone on with.
    std::fs::write(&path, "one\ntwo\nthr").expect("a log");
    Log::resume(&path, 8).and_then(|mut log| log.append(b"three\n")).expect("gone on with");
    assert_eq!(read(&path), whole);
}

#[test]
fn a_recording_is_there_packed_or_not_whenever_the_writer_is_killed() {
    let folder = folder();
    let path = folder.path().join("recording");
    let steps = killed_everywhere(
        "packed",
        &path,
        || _ = std::fs::remove_file(&path),
        |nth| {
            let bytes = if path.exists() { read(&path) } else { String::new() };
            assert!(["", "first second", "packed"].contains(&bytes.as_str()), "step {nth}: {bytes}");
        },
        |nth| {
            assert_eq!((read(&path).as_str(), names(folder.path()).len()), ("packed", 1), "step {nth}");
            assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600, "for its owner alone");
        },
    );
    assert!(steps >= 7, "{steps}");
}

#[test]
fn only_what_a_dead_writer_left_is_removed() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at(".wattwise-1-1.part"), "left").expect("a file");
    std::fs::write(at(".wattwise-notes"), "the user's").expect("a file");
    mknodat(CWD, at(".wattwise-2-2.part"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let alive = std::fs::File::create(at(".wattwise-3-3.part")).expect("a file");
    alive.lock().expect("a lock");
    write(&at("file"), NEW.as_bytes()).expect("written");
    let expected = [".wattwise-2-2.part", ".wattwise-3-3.part", ".wattwise-notes", "file"];
    assert_eq!(names(folder.path()), expected);
    // Not only closed: a child that another test starts holds what is open here until it is a program of its own.
    alive.unlock().expect("unlocked");
    write(&at("file"), NEW.as_bytes()).expect("written");
    assert!(!at(".wattwise-3-3.part").exists(), "its writer is dead now");
}

/// A result that is given up leaves nothing.
#[test]
fn a_result_that_is_dropped_is_absent() {
    let folder = folder();
    let mut out = Output::open(&folder.path().join("file")).expect("opened");
    out.write_all(b"half of it").expect("written");
    drop(out);
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// What took the place of the file in the meantime is not replaced.
#[test]
fn what_became_a_link_meanwhile_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("file");
    let out = Output::open(&path).expect("opened");
    symlink("elsewhere", &path).expect("a link");
    assert!(out.finish().is_err());
    assert!(path.is_symlink() && names(folder.path()) == ["file"]);
}

#[test]
fn two_names_of_one_place_are_told() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    symlink("file", at("link")).expect("a link");
    let of = |path: &Path| identity(path).expect("a place");
    // Before and after the file is there.
    for _ in 0..2 {
        let dotted = folder.path().join(".").join("file");
        assert!(of(&at("file")).clashes(&of(&at("link"))) && of(&at("file")).clashes(&of(&dotted)));
        assert!(!of(&at("file")).clashes(&of(&at("other"))));
        std::fs::write(at("file"), "").expect("a file");
    }
    assert!(of(Path::new("-")).clashes(&of(Path::new("/dev/stdout"))));
    assert!(!of(Path::new("/dev/null")).clashes(&of(Path::new("/dev/null"))), "it takes any number");
    assert!(of(&at("file")).is_file() && !of(Path::new("-")).is_file());
}

#[test]
fn a_scratch_folder_of_a_dead_process_is_removed() {
    let one = Scratch::new().expect("a folder");
    std::fs::write(one.path().join("file"), "").expect("a file");
    let left = one.path().with_file_name(format!("wattwise-scratch-0-{}", std::process::id()));
    std::fs::create_dir(&left).expect("a folder");
    std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o700)).expect("its mode");
    std::fs::write(left.join(OsStr::new("file")), "").expect("a file");
    let two = Scratch::new().expect("a folder");
    assert!(!left.exists() && one.path().join("file").exists(), "only what nobody has locked");
    let path = two.path().to_owned();
    drop(two);
    assert!(!path.exists());
}
