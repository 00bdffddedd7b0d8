//! Programs under the interposer: what the tests here have in common.
// Each of them uses some.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use wattwise_locks::dynamic::LockKind;

/// Built here: cargo does not build a cdylib for a test. A folder of its own, so as not to wait for cargo's lock.
pub(crate) fn library() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("preload");
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "-p", "wattwise-locks-preload", "--target-dir"])
        .arg(&folder)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(build.expect("cargo").success());
    folder.join("release/libwattwise_pthread.so")
}

pub(crate) fn probe(name: &str) -> PathBuf {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    build(&[&format!("{name}.c")], &["-fno-builtin-malloc"], &out);
    out
}

/// A program or a library from sources in this folder.
pub(crate) fn build(sources: &[&str], flags: &[&str], out: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(out);
    cc.args(sources.iter().map(|source| folder.join(source))).args(flags);
    let done = cc.output().expect("a C compiler, cc");
    assert!(done.status.success(), "{cc:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A program under a lock.
pub(crate) fn under(probe: &Path, library: &Path, lock: &str) -> Command {
    let mut command = Command::new(probe);
    command.env("LD_PRELOAD", library).env("WATTWISE_LOCK", lock);
    command
}

/// Each does little but wait.
pub(crate) fn side_by_side<T: Sync>(of: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(one) = of.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(one);
                }
            });
        }
    });
}

/// In a `pthread_mutex_t`.
pub(crate) fn fits(kind: &LockKind) -> bool {
    kind.size <= 16
}
