//! Files that only we may have written: journals, locks, what is in force.
//!
//! What stands in them is done as root, so their place is a boundary: a folder that belongs to us or to root and that
//! nobody else can write. It is [reached without a stranger's link](folder), opened once and gone through by its
//! descriptor, so that nobody swaps it afterwards. One that we make has mode 0700, or 0755 where it holds a file for
//! others; one that is there is used as it is or
//! refused, and never changed. Files in it are judged by their own owner and mode as well: the folder may have been open
//! to others before.

pub(crate) mod fault;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use wattwise_hw::root::folder::{self, trusted, us};

/// A folder that nobody else writes.
#[derive(Debug)]
pub struct PrivateFolder {
    fd: OwnedFd,
    path: PathBuf,
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Whether a file in it can be ours.
fn judge(stat: &rustix::fs::Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(refused("is a link, not a file".to_owned())),
        _ => return Err(refused("is no ordinary file".to_owned())),
    }
    if stat.st_nlink > 1 {
        return Err(refused(
            "has another name elsewhere (a hard link): it is another program's file".to_owned(),
        ));
    }
    trusted(stat.st_uid, stat.st_mode, us()).map_err(refused)
}

impl PrivateFolder {
    /// Opens a folder that is there. It is never changed: one that others can write is refused.
    ///
    /// # Errors
    /// No folder, one that others can write, or a link on the way to it [that others can have made](folder).
    pub fn open(path: &Path) -> io::Result<PrivateFolder> {
        PrivateFolder::judged(folder::open(path)?, path)
    }

    /// As [`Self::open`]; makes it where there is none, open to nobody else.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn make(path: &Path) -> io::Result<PrivateFolder> {
        PrivateFolder::judged(folder::make(path, Mode::RWXU)?, path)
    }

    /// As [`Self::make`], but others reach the files in it that are [for them](Self::publish).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn make_listed(path: &Path) -> io::Result<PrivateFolder> {
        PrivateFolder::judged(
            folder::make(path, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)?,
            path,
        )
    }

    fn judged(fd: OwnedFd, path: &Path) -> io::Result<PrivateFolder> {
        let stat = rustix::fs::fstat(&fd)?;
        trusted(stat.st_uid, stat.st_mode, us()).map_err(|why| {
            refused(format!("the folder {why}; give --journal FOLDER with one that is yours alone"))
        })?;
        Ok(PrivateFolder { fd, path: path.to_owned() })
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

    /// Opens a file of ours.
    ///
    /// # Errors
    /// Not there, no ordinary file, somebody else's, or one that has a name elsewhere too.
    pub fn file(&self, name: &str, how: OFlags) -> io::Result<File> {
        // The folder may have been open to others once. To open is an act with a device, and waits with a pipe.
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => judge(&stat)?,
            Err(rustix::io::Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
        self.made(name, how, Mode::RUSR | Mode::WUSR)
    }

    /// Opens a file that is ours; where it is made it has this mode.
    fn made(&self, name: &str, how: OFlags, mode: Mode) -> io::Result<File> {
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || Ok(rustix::fs::openat(&self.fd, name, flags, mode)?);
        let fd = fault::around(open)?;
        judge(&rustix::fs::fstat(&fd)?)?;
        Ok(File::from(fd))
    }

    /// Locks a file of ours, which is made if need be, until the value ends; none where another process has it.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn lock(&self, name: &str) -> io::Result<Option<File>> {
        let file = self.file(name, OFlags::RDWR | OFlags::CREATE)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(e)) => Err(e),
        }
    }

    /// Puts a whole file in the place of an older one.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.put(name, content, Mode::RUSR | Mode::WUSR)
    }

    /// Removes a file that was published, and what a kill has left of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn withdraw(&self, name: &str) -> io::Result<()> {
        self.remove(&format!("{name}.new"))?;
        self.remove(name)
    }

    /// As [`Self::replace`], for everybody whom the umask lets read.
    ///
    /// # Errors
    /// What the system says.
    pub fn publish(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.put(name, content, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)
    }

    fn put(&self, name: &str, content: &[u8], mode: Mode) -> io::Result<()> {
        let new = format!("{name}.new");
        self.remove(&new)?;
        let mut file = self.made(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)?;
        fault::write_all(&mut file, content)?;
        fault::around(|| Ok(rustix::fs::renameat(&self.fd, &new, &self.fd, name)?))
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fault::around(|| Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?))
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
    use crate::private::fault::{FaultPlan, Mode, arm, disarm};

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() -> io::Result<()> {
        for mode in [Mode::Refused, Mode::DiesBefore, Mode::DiesAfter] {
            for nth in 1.. {
                let at = tempfile::tempdir()?;
                let folder = PrivateFolder::make(at.path())?;
                folder.replace("state", b"old")?;
                arm(FaultPlan { nth, mode });
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
