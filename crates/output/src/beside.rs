//! A file in the making beside the one that it will replace.

use crate::fault::step;
use crate::place::{NamedPlace, kind};
use crate::scratch;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, Stat, XattrFlags, flock, fstat,
    linkat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// How hidden names begin.
const PREFIX: &str = ".wattwise-";
/// How they end.
const SUFFIX: &str = ".part";

/// Tries for a name that is free.
const TRIES: u32 = 100;

/// A file in the making.
#[derive(Debug)]
pub(crate) struct Beside {
    place: NamedPlace,
    file: File,
    made: MadePlace,
}

/// Where it is made.
#[derive(Debug)]
enum MadePlace {
    /// In the folder, without a name.
    Nameless,
    /// In the folder, by a hidden name, locked.
    Hidden(OsString),
    /// Elsewhere, since the folder takes no new file.
    Elsewhere,
}

impl Beside {
    pub(crate) fn open(place: NamedPlace) -> io::Result<Beside> {
        sweep(&place.folder);
        let old = place.there.as_ref();
        if old.is_some() {
            writable(&place)?;
        }
        // What replaces a file is its owner's alone until it has that file's mode.
        let mode = if old.is_some() { Mode::RUSR | Mode::WUSR } else { Mode::from_raw_mode(0o666) };
        let (file, made) = match make(&place.folder, mode) {
            Ok(made) => made,
            Err(_) if old.is_some() => (scratch::nameless()?, MadePlace::Elsewhere),
            Err(e) => return Err(e),
        };
        Ok(Beside { place, file, made })
    }

    /// It is whole: puts it in its place.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        let NamedPlace { folder, name, .. } = &self.place;
        // It may have changed since it was opened.
        let now = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            other => Some(other?),
        };
        match now {
            Some(stat) if kind(&stat) != FileType::RegularFile => {
                Err(io::Error::other("is no regular file any more"))
            }
            Some(stat) if matches!(self.made, MadePlace::Elsewhere) || !self.hand_on(&stat)? => {
                self.in_place()
            }
            None if matches!(self.made, MadePlace::Elsewhere) => Err(Errno::NOENT.into()),
            there => {
                step(|| self.file.sync_all())?;
                self.take_the_name(there.is_some())
            }
        }
    }

    /// Gives the new file the owner, mode and attributes of the old one. False where it cannot have them.
    fn hand_on(&mut self, old: &Stat) -> io::Result<bool> {
        let new = fstat(&self.file)?;
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
            let owner = rustix::fs::Uid::from_raw(old.st_uid);
            let group = rustix::fs::Gid::from_raw(old.st_gid);
            if step(|| Ok(rustix::fs::fchown(&self.file, Some(owner), Some(group)))).is_ok_and(|r| r.is_err())
            {
                return Ok(false);
            }
        }
        let old_file = openat(
            &self.place.folder,
            &self.place.name,
            OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        if !same_attributes(&File::from(old_file), &self.file) {
            return Ok(false);
        }
        step(|| Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(old.st_mode & 0o7777))?))?;
        Ok(true)
    }

    fn take_the_name(&mut self, there: bool) -> io::Result<()> {
        let NamedPlace { folder, name, .. } = &self.place;
        match (&self.made, there) {
            (MadePlace::Nameless, false) => match link(&self.file, folder, name) {
                // Somebody was faster.
                Err(Errno::EXIST) => return self.take_the_name(true),
                linked => linked?,
            },
            (MadePlace::Nameless, true) => {
                flock(&self.file, FlockOperation::NonBlockingLockExclusive).ok();
                let hidden = free_name(|hidden| link(&self.file, folder, hidden))?;
                // From here on it is removed when this fails.
                self.made = MadePlace::Hidden(hidden);
                return self.take_the_name(true);
            }
            (MadePlace::Hidden(hidden), _) => {
                step(|| Ok(renameat(folder, hidden, folder, name)?))?;
                self.made = MadePlace::Nameless;
            }
            (MadePlace::Elsewhere, _) => {}
        }
        // That the name is on disk is better known, but the file is in its place.
        if let Ok(folder) = listed(&self.place.folder) {
            _ = rustix::fs::fsync(folder);
        }
        Ok(())
    }

    /// Copies it over the old file.
    fn in_place(&mut self) -> io::Result<()> {
        let mut old = writable(&self.place)?;
        let (before, length) = (old.metadata()?.len(), self.file.stream_position()?);
        // A full disk is told here, while the old content is whole. Not all file systems can.
        if length > before {
            let secured = step(|| Ok(rustix::fs::fallocate(&old, FallocateFlags::KEEP_SIZE, 0, length)))?;
            if secured == Err(Errno::NOSPC) || secured == Err(Errno::DQUOT) {
                _ = old.set_len(before);
                return Err(Errno::NOSPC.into());
            }
        }
        self.file.rewind()?;
        step(|| io::copy(&mut self.file, &mut old))?;
        step(|| old.set_len(length))?;
        // A terminal's or procfs's file cannot be synced; it is written all the same.
        step(|| old.sync_all().or(Ok(())))
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(|| self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let MadePlace::Hidden(name) = &self.made {
            _ = unlinkat(&self.place.folder, name, AtFlags::empty());
        }
    }
}

/// Opens the regular file in a place for writing; as a shell does, so that the kernel's rules for shared folders hold.
pub(crate) fn writable(place: &NamedPlace) -> io::Result<File> {
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(File::from(openat(&place.folder, &place.name, how, Mode::from_raw_mode(0o666))?))
}

/// A file that is a regular one.
pub(crate) fn regular(file: File) -> io::Result<File> {
    match kind(&fstat(&file)?) {
        FileType::RegularFile => Ok(file),
        _ => Err(io::Error::other("is no regular file any more")),
    }
}

/// A new file in a folder: without a name where the file system can, else by a hidden one that is locked.
fn make(folder: &OwnedFd, mode: Mode) -> io::Result<(File, MadePlace)> {
    let how = OFlags::RDWR | OFlags::CLOEXEC;
    // Some file systems, and some containers, do not know it; the second way tells whether there is another reason.
    if let Ok(file) = step(|| Ok(openat(folder, ".", how | OFlags::TMPFILE, mode)))? {
        return Ok((File::from(file), MadePlace::Nameless));
    }
    for _ in 0..TRIES {
        let mut made = None;
        let name = free_name(|name| {
            made = Some(File::from(openat(folder, name, how | OFlags::CREATE | OFlags::EXCL, mode)?));
            Ok(())
        })?;
        let Some(file) = made else { break };
        // A start at the same time may have taken it for a leftover before it was locked.
        if locked_or_unlockable(&file) && fstat(&file)?.st_nlink > 0 {
            return Ok((file, MadePlace::Hidden(name)));
        }
    }
    Err(Errno::EXIST.into())
}

fn locked_or_unlockable(file: &File) -> bool {
    !matches!(flock(file, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK))
}

/// Gives an open file a name.
fn link(file: &File, folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    step(|| Ok(linkat(CWD, &path, folder, name, AtFlags::SYMLINK_FOLLOW))).unwrap_or(Err(Errno::IO))
}

/// Tries hidden names until one is free.
fn free_name(mut take: impl FnMut(&OsStr) -> Result<(), Errno>) -> io::Result<OsString> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    for _ in 0..TRIES {
        let n = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{PREFIX}{}-{n}{SUFFIX}", std::process::id()));
        match take(&name) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// A folder's descriptor by which its names can be read.
fn listed(folder: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Removes what killed writers have left in a folder: hidden files that nobody has locked. What cannot be removed stays.
pub(crate) fn sweep(folder: &OwnedFd) {
    let Ok(names) = listed(folder).and_then(rustix::fs::Dir::new) else { return };
    for entry in names.flatten() {
        let name = entry.file_name();
        let ours = |n: &str| n.starts_with(PREFIX) && n.ends_with(SUFFIX);
        if name.to_str().is_ok_and(ours) && is_left(folder, name) {
            _ = step(|| Ok(unlinkat(folder, name, AtFlags::empty())));
        }
    }
}

/// Whether a name is a regular file of ours without a living writer.
fn is_left(folder: &OwnedFd, name: &std::ffi::CStr) -> bool {
    let how = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, how, Mode::empty()) else { return false };
    fstat(&file).is_ok_and(|s| kind(&s) == FileType::RegularFile)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Gives a new file the extended attributes of an old one. False where one cannot be given.
fn same_attributes(old: &File, new: &File) -> bool {
    let mut list = vec![0; 64 << 10];
    let length = match rustix::fs::flistxattr(old, &mut list[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return true,
        Err(_) => return false,
    };
    let names = list[..length].split(|b| *b == 0).filter(|n| !n.is_empty());
    // Any write takes a file's capabilities away, so they are not handed on.
    names.filter(|n| *n != b"security.capability").all(|name| {
        let read = |file: &File| {
            let mut value = vec![0; 64 << 10];
            let length = rustix::fs::fgetxattr(file, name, &mut value[..])?;
            value.truncate(length);
            Ok::<_, Errno>(value)
        };
        let Ok(value) = read(old) else { return false };
        read(new).as_ref() == Ok(&value)
            || rustix::fs::fsetxattr(new, name, &value, XattrFlags::empty()).is_ok()
    })
}
