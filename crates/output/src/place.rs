//! From a path to what it names: links are followed here, one by one, so that a file can be replaced without its link.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Links that are followed: as many as the kernel does.
const MOST_LINKS: usize = 40;

/// `PROC_SUPER_MAGIC` of linux/magic.h.
const PROCFS: i64 = 0x9fa0;

/// A name in a folder: no file yet, or a regular one.
#[derive(Debug)]
pub(crate) struct NamedPlace {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
    pub(crate) there: Option<Stat>,
}

/// What a path names.
#[derive(Debug)]
pub(crate) enum FoundPath {
    File(NamedPlace),
    /// A descriptor of ours, by its number.
    Descriptor(i32),
    /// A pipe or a device that takes characters.
    Stream {
        folder: OwnedFd,
        name: OsString,
        stat: Stat,
    },
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn refused(kind: io::ErrorKind, why: impl Into<String>) -> io::Error {
    io::Error::new(kind, why.into())
}

fn errno(error: rustix::io::Errno) -> io::Error {
    error.into()
}

/// Finds what a path names.
pub(crate) fn find(path: &Path) -> io::Result<FoundPath> {
    if path == Path::new("-") {
        return Ok(FoundPath::Descriptor(1));
    }
    let mut at: Option<OwnedFd> = None;
    let mut rest = path.to_owned();
    for _ in 0..=MOST_LINKS {
        let (folder, name) = split(&rest)?;
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match &at {
            Some(at) => openat(at, &folder, how, Mode::empty())?,
            None => openat(CWD, &folder, how, Mode::empty())?,
        };
        let stat = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => {
                return Ok(FoundPath::File(NamedPlace { folder, name, there: None }));
            }
            other => other?,
        };
        match kind(&stat) {
            FileType::Symlink if is_procfs(&folder)? => return magic(folder, name),
            FileType::Symlink => {
                may_follow(&folder, &stat)?;
                let to = readlinkat(&folder, &name, Vec::new())?;
                rest = PathBuf::from(OsString::from_vec(to.into_bytes()));
                at = Some(folder);
            }
            _ => return found(folder, name, stat),
        }
    }
    Err(errno(rustix::io::Errno::LOOP))
}

fn found(folder: OwnedFd, name: OsString, stat: Stat) -> io::Result<FoundPath> {
    match kind(&stat) {
        FileType::RegularFile => Ok(FoundPath::File(NamedPlace { folder, name, there: Some(stat) })),
        FileType::Fifo | FileType::CharacterDevice => Ok(FoundPath::Stream { folder, name, stat }),
        FileType::Directory => Err(errno(rustix::io::Errno::ISDIR)),
        FileType::BlockDevice => Err(refused(io::ErrorKind::InvalidInput, "is a disk")),
        FileType::Socket => Err(refused(io::ErrorKind::InvalidInput, "is a socket")),
        _ => Err(refused(io::ErrorKind::InvalidInput, "is no file")),
    }
}

/// The folder of a path and the name in it.
fn split(path: &Path) -> io::Result<(PathBuf, OsString)> {
    let bytes = path.as_os_str().as_bytes();
    let cut = bytes.iter().rposition(|b| *b == b'/');
    let name = &bytes[cut.map_or(0, |at| at + 1)..];
    match name {
        // `folder/`, `.` and `..` can only be folders.
        _ if bytes.is_empty() => Err(errno(rustix::io::Errno::NOENT)),
        b"" | b"." | b".." => Err(errno(rustix::io::Errno::ISDIR)),
        _ => {
            let folder = match cut {
                None => Path::new("."),
                Some(at) => Path::new(OsStr::from_bytes(&bytes[..=at])),
            };
            Ok((folder.to_owned(), OsStr::from_bytes(name).to_owned()))
        }
    }
}

/// The kernel's rule of `fs.protected_symlinks`: in a folder where all may make names, a stranger's link is not followed.
fn may_follow(folder: &OwnedFd, link: &Stat) -> io::Result<()> {
    let of = rustix::fs::fstat(folder)?;
    let open_to_all = of.st_mode & 0o1002 == 0o1002;
    let us = rustix::process::geteuid().as_raw();
    match open_to_all && link.st_uid != us && link.st_uid != of.st_uid {
        true => Err(refused(
            io::ErrorKind::PermissionDenied,
            format!("a link of user {} in a folder where all may make links", link.st_uid),
        )),
        false => Ok(()),
    }
}

#[allow(clippy::unnecessary_cast, reason = "the field's type depends on the architecture")]
fn is_procfs(folder: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(folder)?.f_type as i64 == PROCFS)
}

/// A link of procfs, whose text is not where it leads: a descriptor of ours, or another process's.
fn magic(folder: OwnedFd, name: OsString) -> io::Result<FoundPath> {
    let here = rustix::fs::fstat(&folder)?;
    let same =
        |path: &str| rustix::fs::stat(path).is_ok_and(|s| (s.st_dev, s.st_ino) == (here.st_dev, here.st_ino));
    let number = name.to_str().and_then(|n| n.parse().ok());
    if let (Some(number), true) = (number, same("/proc/self/fd") || same("/proc/thread-self/fd")) {
        return Ok(FoundPath::Descriptor(number));
    }
    // Of another process: its files cannot be replaced from here.
    let stat = statat(&folder, &name, AtFlags::empty())?;
    match found(folder, name, stat)? {
        FoundPath::File(_) => {
            Err(refused(io::ErrorKind::InvalidInput, "is another process's; expected the file itself"))
        }
        other => Ok(other),
    }
}

impl FoundPath {
    /// Opens what is written into. A file is not: see [`crate::beside`].
    pub(crate) fn into_file(self) -> io::Result<File> {
        match self {
            FoundPath::Descriptor(number) => inherited(number),
            FoundPath::Stream { folder, name, stat } => {
                let proc = if is_procfs(&folder)? { OFlags::empty() } else { OFlags::NOFOLLOW };
                // As a shell opens it: the kernel's rule of `fs.protected_fifos` goes by O_CREAT.
                let create = if kind(&stat) == FileType::Fifo && !proc.is_empty() {
                    OFlags::CREATE
                } else {
                    OFlags::empty()
                };
                let how = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | proc | create;
                let open = || openat(&folder, &name, how, Mode::RUSR | Mode::WUSR);
                let file = File::from(rustix::io::retry_on_intr(open)?);
                let opened = rustix::fs::fstat(&file)?;
                match (opened.st_dev, opened.st_ino) == (stat.st_dev, stat.st_ino) {
                    true => Ok(file),
                    false => Err(refused(io::ErrorKind::Other, "was replaced just now")),
                }
            }
            FoundPath::File(_) => Err(refused(io::ErrorKind::InvalidInput, "is a regular file")),
        }
    }
}

/// A descriptor that we were started with, shared: what others write to it and what we write do not overlap.
fn inherited(number: i32) -> io::Result<File> {
    let none = || errno(rustix::io::Errno::BADF);
    // Ours are closed on exec: one that is not was there before us.
    // SAFETY: asks for the flags of a number; one that is no descriptor gives -1.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(none());
    }
    // SAFETY: takes a number and gives a new descriptor, or -1.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(none());
    }
    // SAFETY: the kernel has just returned this descriptor to us and nobody else has it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(copy) });
    let mode = rustix::fs::fcntl_getfl(file.as_fd())? & OFlags::ACCMODE;
    let folder = kind(&rustix::fs::fstat(&file)?) == FileType::Directory;
    match mode {
        _ if folder => Err(errno(rustix::io::Errno::ISDIR)),
        OFlags::WRONLY | OFlags::RDWR => Ok(file),
        _ => Err(refused(io::ErrorKind::PermissionDenied, "is open for reading only")),
    }
}

/// What tells two outputs, or an output and an input, apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Standard output, by whatever name.
    StandardOutput,
    /// A name in a folder (device, inode, name), and the file that has it now (device, inode).
    File {
        /// The folder, and the name in it.
        place: (u64, u64, OsString),
        /// The file.
        file: Option<(u64, u64)>,
    },
    /// A pipe: two outputs would be mixed in it.
    Pipe(u64, u64),
    /// Another descriptor.
    Descriptor(i32),
    /// A device, which may take any number of outputs.
    Device,
}

/// What a path names, without opening it.
///
/// # Errors
/// It is no place for an output.
#[allow(clippy::unnecessary_cast, reason = "the fields' types depend on the architecture")]
pub fn identity(path: &Path) -> io::Result<Identity> {
    Ok(match find(path)? {
        FoundPath::Descriptor(1) => Identity::StandardOutput,
        FoundPath::Descriptor(number) => Identity::Descriptor(number),
        FoundPath::Stream { stat, .. } if kind(&stat) == FileType::Fifo => {
            Identity::Pipe(stat.st_dev as u64, stat.st_ino as u64)
        }
        FoundPath::Stream { .. } => Identity::Device,
        FoundPath::File(place) => {
            let folder = rustix::fs::fstat(&place.folder)?;
            let file = place.there.map(|s| (s.st_dev as u64, s.st_ino as u64));
            Identity::File { place: (folder.st_dev as u64, folder.st_ino as u64, place.name), file }
        }
    })
}

impl Identity {
    /// Whether two outputs would get in each other's way.
    pub fn clashes(&self, other: &Identity) -> bool {
        match (self, other) {
            (Identity::Device, _) | (_, Identity::Device) => false,
            (Identity::File { place: a, .. }, Identity::File { place: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// Whether it is a regular file, or will be one.
    pub fn is_file(&self) -> bool {
        matches!(self, Identity::File { .. })
    }
}
