//! The program under limits that a user, a service or a container may have: processes, stack, open files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A small question whose answer comes from 64 replicas on as many threads as there are, and the same to the last bit.
const COMPARE: &[&str] = &["compare", "redis", "-m", "recording-vm", "-p", "performance", "--json"];

/// The program where any user may run it, in a folder that any user may enter.
struct Limited {
    folder: tempfile::TempDir,
}

impl Limited {
    /// None without root, who alone can become another user: said aloud, and a failure under CI.
    fn new() -> Option<Limited> {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "limits of processes are tested by root; CI needs it");
            eprintln!("skipped: only root can become a user with a limit of processes");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_wattwise"), folder.path().join("wattwise")).unwrap();
        Some(Limited { folder })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("wattwise")
    }

    /// Runs it as a user who has no other process, under limits as the shell sets them.
    fn run(&self, user: u32, limits: &str, args: &[&str]) -> Output {
        let id = user.to_string();
        Command::new("setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .args(["bash", "-c", &format!("{limits}; exec \"$@\""), "bash"])
            .arg(self.program())
            .args(args)
            .current_dir(self.folder.path())
            .env("HOME", "/nonexistent")
            .output()
            .unwrap()
    }
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).trim_end().to_owned()
}

#[test]
fn without_threads_the_answer_is_the_same() {
    let Some(limited) = Limited::new() else { return };
    let free = limited.run(23_401, "true", COMPARE);
    assert_eq!(free.status.code(), Some(0), "{}", stderr(&free));
    for limits in [
        // No thread at all; one beside the first; fewer than were asked for.
        "ulimit -u 1",
        "ulimit -u 2",
        "export RAYON_NUM_THREADS=64; ulimit -u 9",
        // A stack that the program alone would overflow.
        "ulimit -s 128",
        // What threads get by themselves is less than they need.
        "export RUST_MIN_STACK=16384",
    ] {
        let out = limited.run(23_401, limits, COMPARE);
        assert_eq!(out.status.code(), Some(0), "{limits}: {}", stderr(&out));
        assert_eq!(out.stdout, free.stdout, "{limits}");
    }
}

#[test]
fn a_small_stack_is_one_line_where_no_other_can_be_had() {
    let Some(limited) = Limited::new() else { return };
    // The machine's own journal may be there and root's.
    let restore = ["restore", "--dry-run", "--journal", "/var/no-journal-of-wattwise"];
    for (n, args) in [COMPARE, &["info"], &["--help"], &restore].into_iter().enumerate() {
        let user = 23_410 + n as u32;
        let out = limited.run(user, "ulimit -s 128; ulimit -u 1", args);
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(3), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(said.contains("128 KiB") && said.contains("ulimit -s 8192"), "{args:?}: {said}");
        // Either of the two alone is no obstacle.
        for limit in ["ulimit -s 128", "ulimit -u 1"] {
            let out = limited.run(user, limit, args);
            assert_eq!(out.status.code(), Some(0), "{args:?} under {limit}: {}", stderr(&out));
        }
    }
}

#[test]
fn what_needs_threads_says_so_in_one_line() {
    let Some(limited) = Limited::new() else { return };
    let bench = ["bench", "locks", "--ms", "1", "--repeats", "1", "--threads", "4", "--lock", "mcs:spin"];
    // With one thread of four the first does not wait for ever for the others.
    for limits in ["ulimit -u 1", "ulimit -u 3"] {
        let out = limited.run(23_420, limits, &bench);
        assert_eq!(out.status.code(), Some(3), "{limits}: {}", stderr(&out));
        assert!(stderr(&out).contains("4 threads cannot be started"), "{limits}: {}", stderr(&out));
        assert_eq!(stderr(&out).lines().count(), 1, "{limits}: {}", stderr(&out));
    }
}

#[test]
fn a_calibration_that_the_user_may_not_read_is_not_used_and_said() {
    let Some(limited) = Limited::new() else { return };
    // Root's data, closed to all others.
    let closed = tempfile::tempdir().unwrap();
    std::fs::set_permissions(closed.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let data = format!("export XDG_DATA_HOME={}", closed.path().display());
    let out = limited.run(23_430, &data, &["compare", "redis", "-m", "this", "-p", "performance"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let said = String::from_utf8_lossy(&out.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("this.toml cannot be read by this user"), "{said}");
}

/// What a user may not do is not possible for him, whichever command says so, and is not taken for something else.
#[test]
fn what_is_roots_alone_is_said_to_be_that() {
    let Some(limited) = Limited::new() else { return };
    let closed = tempfile::tempdir().unwrap();
    std::fs::set_permissions(closed.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let at = closed.path().display().to_string();
    let socket = format!("{at}/socket");
    for args in [
        &["restore", "--journal", &at][..],
        &["restore", "--dry-run", "--journal", &at],
        &["coreidle", "--journal", &at, "status"],
        &["profile", "--socket", &socket, "status"],
    ] {
        let out = limited.run(23_440, "true", args);
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("run as root") && said.lines().count() == 1, "{args:?}: {said}");
        assert!(!said.contains("no wattwised runs"), "{args:?}: {said}");
    }
}
