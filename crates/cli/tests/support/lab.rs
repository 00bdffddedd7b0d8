//! Emulated machines, mounted, and the program run against them.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part")]

use std::path::PathBuf;
use std::process::{Child, Command, Output};
use wattwise_emulator::{Emulator, fuse};
use wattwise_hw::root;

/// Runs the program.
pub(crate) fn wattwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).output().unwrap()
}

/// For messages.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs what must succeed and gives what it printed.
pub(crate) fn done(args: &[&str]) -> String {
    let out = wattwise(args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Says aloud what cannot be tested here; under CI that is a failure.
pub(crate) fn skip(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what}; CI needs it");
    eprintln!("skipped: {what}");
}

/// Waits until something is no longer so. That a child which is to change it ends first is a failure in words, not an endless wait.
pub(crate) fn wait_while(child: &mut Child, still: impl Fn() -> bool) {
    while still() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended before it had changed anything: {ended:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A mounted machine with a folder for its journals.
pub(crate) struct Lab {
    pub(crate) machine: Emulator,
    _mount: fuse::Mounted,
    pub(crate) folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new(name: &str) -> Option<Lab> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("machine");
        std::fs::create_dir(&at).unwrap();
        let machine = wattwise_emulator::named(name).unwrap();
        match fuse::mount(&machine, &at) {
            Ok(mount) => Some(Lab { machine, _mount: mount, folder }),
            Err(e) => {
                skip(&format!("no FUSE: {e} (Debian: fuse3; needs root or fusermount3)"));
                None
            }
        }
    }

    pub(crate) fn at(&self) -> PathBuf {
        self.folder.path().join("machine")
    }

    /// Arguments with this machine as the root. A machine's journals lie beside it.
    pub(crate) fn args<'a>(&self, args: &[&'a str], root: &'a str) -> Vec<&'a str> {
        let mut all = vec![args[0], "--root", root];
        all.extend(&args[1..]);
        all
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let root = self.at().display().to_string();
        wattwise(&self.args(args, &root))
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}{}", text(&out.stdout), text(&out.stderr));
        text(&out.stdout)
    }

    pub(crate) fn refused(&self, args: &[&str], code: i32, words: &str) {
        let (before, out) = (self.machine.snapshot(), self.run(args));
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(words) && message.trim_end().lines().count() == 1, "{args:?}: {message}");
        assert_eq!(self.machine.snapshot(), before, "{args:?} was refused and changed something");
    }

    pub(crate) fn file(&self, path: &str) -> String {
        root::text(&self.machine, path).unwrap()
    }
}
