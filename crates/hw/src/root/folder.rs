//! A folder by its path, where a stranger may have had a hand in that path.
//!
//! Root opens folders in places that belong to others: a tree that a user unpacked, the journal beside it. A link there
//! leads root to wherever the stranger likes. So the path is walked name by name, by descriptors:
//!
//! 1. A folder is *closed* if it belongs to root or to us and nobody else can write it, and *held* if nobody else can
//!    have put it where it is: each folder above it is held, and is closed, or is sticky as `/tmp` and the folder is ours.
//! 2. A link is followed only if it belongs to root or to us and stands in a folder that is closed and held. `/var/run`
//!    is such a link. All others are refused, wherever they lead.
//! 3. A folder that is missing is made, where that is asked for. One that is there is never changed.

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// Whether what belongs to `owner` and has this mode can be believed by the user `us`.
///
/// # Errors
/// Whose it is, or who could have written it.
pub fn trusted(owner: u32, mode: u32, us: u32) -> Result<(), String> {
    if owner != us && owner != 0 {
        return Err(format!("belongs to user {owner}, not to user {us} or root"));
    }
    match mode & 0o022 {
        0 => Ok(()),
        _ => Err(format!("has mode {:o}: others can write it", mode & 0o7777)),
    }
}

/// The user that we act as.
pub fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Opens a folder for reading; no link of a stranger's is followed.
///
/// # Errors
/// What the system says, or which link was not followed.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(walk(path, None)?, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// As [`open`]; makes with `mode` what is missing of the path.
///
/// # Errors
/// As [`open`].
pub fn make(path: &Path, mode: Mode) -> io::Result<OwnedFd> {
    Ok(openat(
        walk(path, Some(mode))?,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Opens a folder only to go on from it: it need not be readable.
///
/// # Errors
/// As [`open`].
pub(super) fn reach(path: &Path) -> io::Result<OwnedFd> {
    walk(path, None)
}

/// A folder on the way.
struct FolderStep {
    fd: OwnedFd,
    /// Nobody else can have put it where it is.
    held: bool,
    owner: u32,
    mode: u32,
}

impl FolderStep {
    fn new(fd: OwnedFd, held: bool) -> io::Result<FolderStep> {
        let Stat { st_uid, st_mode, .. } = fstat(&fd)?;
        Ok(FolderStep { fd, held, owner: st_uid, mode: st_mode })
    }

    fn closed(&self) -> bool {
        trusted(self.owner, self.mode, us()).is_ok()
    }

    /// A folder below it, opened.
    fn below(&self, fd: OwnedFd) -> io::Result<FolderStep> {
        let mut step = FolderStep::new(fd, false)?;
        let ours = |owner| owner == 0 || owner == us();
        let sticky = self.mode & Mode::SVTX.as_raw_mode() != 0;
        step.held = self.held && (self.closed() || sticky && ours(self.owner) && ours(step.owner));
        Ok(step)
    }

    /// Whether a link in it that belongs to `owner` can be followed.
    ///
    /// # Errors
    /// Why not.
    fn may_follow(&self, link: &OsStr, owner: u32) -> io::Result<()> {
        let why = match trusted(owner, 0, us()) {
            Err(why) => why,
            Ok(()) if self.held && self.closed() => return Ok(()),
            Ok(()) => "stands where others can write".to_owned(),
        };
        let link = link.to_string_lossy();
        let why = format!("'{link}' is a link that {why}; give the folder that it leads to");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// Goes along a path to the folder at its end; `missing` is the mode of folders that are made.
fn walk(path: &Path, missing: Option<Mode>) -> io::Result<OwnedFd> {
    let start = |at: &str| -> io::Result<FolderStep> {
        let fd = openat(CWD, at, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        FolderStep::new(fd, true)
    };
    let mut way = vec![start(".")?];
    let mut ahead = parts(path);
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == "/" {
            way = vec![start("/")?];
            continue;
        }
        let Some(here) = way.last() else { break };
        if name == ".." {
            let fd =
                openat(&here.fd, "..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            // Back to what we came from, whatever was moved meanwhile.
            match way.len() {
                1 => way[0] = FolderStep::new(fd, true)?,
                _ => _ = way.pop(),
            }
            continue;
        }
        let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match (openat(&here.fd, &name, step, Mode::empty()), missing) {
            (Err(Errno::NOENT), Some(mode)) => {
                match mkdirat(&here.fd, &name, mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
                openat(&here.fd, &name, step, Mode::empty())?
            }
            (fd, _) => fd?,
        };
        let stat = fstat(&fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let below = here.below(fd)?;
                way.push(below);
            }
            FileType::Symlink => {
                here.may_follow(&name, stat.st_uid)?;
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let to = OsString::from_vec(readlinkat(&fd, "", Vec::new())?.into_bytes());
                parts(Path::new(&to)).into_iter().rev().for_each(|part| ahead.push_front(part));
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    way.pop().map(|step| step.fd).ok_or_else(|| Errno::NOENT.into())
}

/// The names of a path; `/` first where it begins at the top.
fn parts(path: &Path) -> VecDeque<OsString> {
    let kept = path.components().filter(|c| !matches!(c, Component::CurDir));
    kept.map(|c| OsStr::from_bytes(c.as_os_str().as_bytes()).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, statat};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::path::PathBuf;

    const STRANGER: u32 = 65534;

    fn same(fd: io::Result<OwnedFd>, path: &Path) -> bool {
        let there = statat(CWD, path, AtFlags::empty()).expect("there");
        fd.is_ok_and(|fd| fstat(fd).is_ok_and(|s| (s.st_dev, s.st_ino) == (there.st_dev, there.st_ino)))
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }

    /// A folder that only we write, with `victim` in it.
    fn ours() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let victim = folder.path().join("victim");
        std::fs::create_dir(&victim).expect("made");
        (folder, victim)
    }

    #[test]
    fn our_own_links_lead_where_the_kernel_goes() {
        let (folder, victim) = ours();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(victim.join("a/b")).expect("made");
        for (to, name) in
            [("victim/a", "in"), ("in/../../victim/./a/b", "round"), ("loop", "loop"), ("none", "dead")]
        {
            symlink(to, at(name)).expect("made");
        }
        symlink(&victim, at("absolute")).expect("made");
        for path in
            ["in", "in/b/..", "round", "round/../b", "absolute/a", "absolute/../victim", "victim/a//b/."]
        {
            assert!(same(open(&at(path)), &at(path)), "{path}");
        }
        assert!(open(Path::new("")).is_err(), "as for the kernel");
        for path in ["loop", "dead", "none", "victim/none/.."] {
            assert!(open(&at(path)).is_err(), "{path}");
        }
        assert!(same(open(Path::new("/")), Path::new("/")) && same(open(Path::new(".")), Path::new(".")));
        assert!(same(open(Path::new("../..")), Path::new("../..")));
        // Made by root alone, on Debian; whatever the system has for it is where it leads.
        if Path::new("/var/run").exists() {
            assert!(same(open(Path::new("/var/run")), Path::new("/var/run")));
        }
    }

    #[test]
    fn a_link_in_a_folder_that_others_write_is_not_followed() {
        for open_to in [0o777, 0o1777, 0o775, 0o757] {
            let (folder, victim) = ours();
            let shared = folder.path().join("shared");
            std::fs::create_dir_all(shared.join("deeper")).expect("made");
            symlink(&victim, shared.join("link")).expect("made");
            symlink(&victim, shared.join("deeper/link")).expect("made");
            assert!(same(open(&shared.join("link")), &victim));
            mode(&shared, open_to);
            let why = open(&shared.join("link")).expect_err("a stranger's, perhaps").to_string();
            assert!(why.contains("link that stands where others can write"), "{why}");
            assert!(make(&shared.join("link/new"), Mode::RWXU).is_err() && !victim.join("new").exists());
            // Nor can `deeper` be believed, but where the sticky bit keeps it in its place.
            let sticky = open_to & 0o1000 != 0;
            assert_eq!(open(&shared.join("deeper/link")).is_ok(), sticky, "{open_to:o}");
            // Folders are gone through all the same.
            assert!(same(open(&shared.join("deeper")), &shared.join("deeper")));
        }
    }

    #[test]
    fn a_strangers_link_is_not_followed_wherever_it_stands() {
        if us() != 0 {
            eprintln!("skipped: only root can make a file that belongs to another user");
            return;
        }
        let (folder, victim) = ours();
        let link = folder.path().join("link");
        symlink(&victim, &link).expect("made");
        lchown(&link, Some(STRANGER), None).expect("root");
        let why = open(&link).expect_err("a stranger's").to_string();
        assert!(why.contains("link that belongs to user 65534"), "{why}");
        // Root's link in a stranger's folder: the stranger can have moved it there.
        let theirs = folder.path().join("theirs");
        std::fs::create_dir(&theirs).expect("made");
        symlink(&victim, theirs.join("link")).expect("made");
        chown(&theirs, Some(STRANGER), None).expect("root");
        assert!(open(&theirs.join("link")).is_err());
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_there_is_left() {
        let (folder, victim) = ours();
        mode(&victim, 0o755);
        let new = victim.join("a/b");
        assert!(same(make(&new, Mode::RWXU), &new));
        let mode_of = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        assert_eq!([mode_of(&victim), mode_of(&victim.join("a")), mode_of(&new)], [0o755, 0o700, 0o700]);
        std::fs::write(folder.path().join("file"), "").expect("written");
        rustix::fs::mkfifoat(CWD, folder.path().join("pipe"), 0o600.into()).expect("made");
        for other in ["file", "pipe", "file/x", "pipe/x"] {
            assert!(make(&folder.path().join(other), Mode::RWXU).is_err(), "{other}");
        }
    }
}
