//! Files that only we may have written: journals, locks, what is in force.
//!
//! What stands in them is done as root, so their place is a boundary: a folder of mode 0700 that belongs to us or to root,
//! opened once and gone through by its descriptor, so that nobody swaps it afterwards. Files in it are judged by
//! their own owner and mode as well: the folder may have been open to others before.

use crate::fault;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A folder that nobody else writes.
#[derive(Debug)]
pub struct PrivateFolder {
    fd: OwnedFd,
    path: PathBuf,
}

/// Whether what a file says can be believed by the user `us`.
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

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl PrivateFolder {
    /// Opens a folder, and closes one of ours to everybody else.
    ///
    /// # Errors
    /// No folder, or one that is not ours.
    pub fn open(path: &Path) -> io::Result<PrivateFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if stat.st_uid == us() && stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&fd, Mode::RWXU)?;
        } else {
            trusted(stat.st_uid, stat.st_mode, us()).map_err(|why| {
                refused(format!("the folder {why}; give --journal FOLDER with one of your own"))
            })?;
        }
        Ok(PrivateFolder { fd, path: path.to_owned() })
    }

    /// As [`Self::open`]; makes it where there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn make(path: &Path) -> io::Result<PrivateFolder> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        PrivateFolder::open(path)
    }

    /// Where it is, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its names.
    ///
    /// # Errors
    /// What the system says.
    pub fn names(&self) -> io::Result<Vec<String>> {
        fault::point()?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Opens a file of ours that is there already.
    ///
    /// # Errors
    /// Not there, no ordinary file, or somebody else's.
    pub fn file(&self, name: &str, how: OFlags) -> io::Result<File> {
        // A pipe would make the opening wait, a link lead elsewhere.
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || match rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(rustix::io::Errno::LOOP) => Err(refused("is a link, not a file".to_owned())),
            other => Ok(other?),
        };
        let fd = fault::around(open)?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("is no ordinary file".to_owned()));
        }
        trusted(stat.st_uid, stat.st_mode, us()).map_err(refused)?;
        Ok(File::from(fd))
    }

    /// Puts a whole file in the place of an older one.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let new = format!("{name}.new");
        self.remove(&new)?;
        let mut file = self.file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        fault::write_all(&mut file, content)?;
        fault::around(|| Ok(rustix::fs::renameat(&self.fd, &new, &self.fd, name)?))
    }

    /// Removes a file; that it has gone already is as good.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        fault::around(|| match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            other => Ok(other?),
        })
    }

    /// Has its names on disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        fault::around(|| Ok(rustix::fs::fsync(&self.fd)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Mode, Plan, arm, disarm};

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() -> io::Result<()> {
        for mode in [Mode::Refused, Mode::DiesBefore, Mode::DiesAfter] {
            for nth in 1.. {
                let at = tempfile::tempdir()?;
                let folder = PrivateFolder::make(at.path())?;
                folder.replace("state", b"old")?;
                arm(Plan { nth, mode });
                let done = folder.replace("state", b"a longer one");
                let points = disarm();
                let now = std::fs::read(at.path().join("state"))?;
                assert!(now == b"old" || now == b"a longer one", "{mode:?} {nth}: {now:?}");
                assert!(done.is_err() || now == b"a longer one", "{mode:?} {nth}");
                // What was left of it is no obstacle.
                folder.replace("state", b"next")?;
                assert_eq!(std::fs::read(at.path().join("state"))?, b"next");
                if points < nth {
                    assert!(nth > 4, "{nth}");
                    break;
                }
            }
        }
        Ok(())
    }
}
