//! What a command needs for itself while it runs.

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "wattwise-scratch-";

static NUMBER: AtomicU32 = AtomicU32::new(0);

fn new_path() -> PathBuf {
    let n = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("{PREFIX}{}-{n}", std::process::id()))
}

/// A file in the system's folder for temporary ones that vanishes when it is closed, also by a kill.
///
/// # Errors
/// What the system says.
pub fn nameless() -> io::Result<File> {
    let how = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    if let Ok(file) = openat(CWD, std::env::temp_dir(), how, mode) {
        return Ok(File::from(file));
    }
    let path = new_path();
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A folder for a command's own files. It is removed at the end; after a kill, by the next start that needs one.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked as long as we live.
    _lock: OwnedFd,
}

impl Scratch {
    /// Makes one, and removes those that killed starts of the same user have left.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Scratch> {
        sweep(&std::env::temp_dir());
        for _ in 0..100 {
            let path = new_path();
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // A start at the same time may have removed it before it was locked.
            if let Some(lock) = locked(&path) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A folder of ours that nobody else has locked, locked.
fn locked(path: &Path) -> Option<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, path, how, Mode::empty()).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    // The name may lead to another one by now.
    let (opened, named) = (rustix::fs::fstat(&folder).ok()?, std::fs::symlink_metadata(path).ok()?);
    let ours = named.uid() == rustix::process::geteuid().as_raw() && named.mode() & 0o077 == 0;
    (ours && named.ino() == opened.st_ino).then_some(folder)
}

fn sweep(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_str().is_some_and(|n| n.starts_with(PREFIX))
            && let Some(_lock) = locked(&path)
        {
            _ = std::fs::remove_dir_all(&path);
        }
    }
}
