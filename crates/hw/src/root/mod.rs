//! The one small trait through which every reading and every change of a machine goes.
//!
//! A [`Root`] is a tree of attribute files as Linux shows them: `sys/…`, `proc/…`, `dev/cpu/N/msr`.
//! Behind it stand the real machine or a mounted copy ([`DirRoot`]), a captured tree, or the
//! emulator. Paths are relative to the root and use `/`.
//!
//! A node that is read again and again stays open: an attribute is made afresh by a read at offset
//! 0, so a steady loop opens nothing twice. Registers are files too: 8 bytes at an offset that is
//! the register's address.

mod beneath;
pub mod folder;
pub mod over;
pub mod played;
pub mod tree;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a node is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing where the file allows both, else writing only.
    Write,
}

/// An open attribute or device.
pub trait Node: Send {
    /// Reads up to `into.len()` bytes at `offset`; 0 means the end.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `value` at `offset` in one call, as attributes and registers require.
    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()>;
}

/// A machine, as a tree of files.
pub trait Root: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>>;
    /// The names in a folder, sorted; numbers within names in numeric order (`cpu2` before `cpu10`).
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// For a sentence: `/`, a capture's file name, an emulated machine's name.
    fn describe(&self) -> String;
    /// Whether it is the machine that we run on, and not a copy of one.
    fn is_this_machine(&self) -> bool {
        false
    }

    /// A whole attribute, at most 1 MiB of it (`/proc/interrupts` of a large machine is the longest).
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        const MOST: usize = 1 << 20;
        let mut node = self.open(path, Access::Read)?;
        let mut bytes = vec![0; 4096];
        let mut used = 0;
        loop {
            let n = node.read_at(used as u64, &mut bytes[used..])?;
            used += n;
            // A page is the most that one attribute of sysfs holds: a short read ends it.
            if n == 0 || used >= MOST {
                bytes.truncate(used);
                return Ok(bytes);
            }
            if used == bytes.len() {
                bytes.resize(bytes.len() * 2, 0);
            }
        }
    }

    /// Writes an attribute.
    fn write(&self, path: &str, value: &[u8]) -> io::Result<()> {
        self.open(path, Access::Write)?.write_at(0, value)
    }
}

/// An attribute as text without the white space around it, nor the NUL that some captures end with. `None` when it is not there or cannot
/// be read; callers that must know why use [`Root::read`].
pub fn text(root: &dyn Root, path: &str) -> Option<String> {
    let bytes = root.read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

/// An attribute that says what something is called: one line, of which a terminal shows every character, whatever a capture holds.
pub fn label(root: &dyn Root, path: &str) -> Option<String> {
    Some(wattwise_figure::one_line(&text(root, path)?))
}

/// An attribute that holds one number.
pub fn number<T: std::str::FromStr>(root: &dyn Root, path: &str) -> Option<T> {
    text(root, path)?.parse().ok()
}

/// Whether there is a file or folder of this name.
pub fn exists(root: &dyn Root, path: &str) -> bool {
    match path.rsplit_once('/') {
        Some((folder, name)) => root.list(folder).is_ok_and(|names| names.iter().any(|n| n == name)),
        None => root.list("").is_ok_and(|names| names.iter().any(|n| n == path)),
    }
}

/// A register: 8 bytes, little-endian, at the offset that is its address.
pub fn read_register(node: &mut dyn Node, address: u32) -> io::Result<u64> {
    let mut bytes = [0; 8];
    match node.read_at(u64::from(address), &mut bytes)? {
        8 => Ok(u64::from_le_bytes(bytes)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A real folder: `/` itself, a mounted emulator, an unpacked capture. Nothing outside of it is opened.
pub struct DirRoot {
    base: PathBuf,
    /// Opened when first needed, so that it stays the folder that it was.
    folder: OnceLock<OwnedFd>,
}

impl DirRoot {
    /// The tree below `base`.
    pub fn new(base: impl Into<PathBuf>) -> DirRoot {
        DirRoot { base: base.into(), folder: OnceLock::new() }
    }

    /// The machine that we run on.
    pub fn this_machine() -> DirRoot {
        DirRoot::new("/")
    }

    /// As [`Self::new`], opened now.
    ///
    /// # Errors
    /// No folder, or a link on the way to it that [a stranger can have made](folder).
    pub fn open(base: impl Into<PathBuf>) -> io::Result<DirRoot> {
        let root = DirRoot::new(base);
        if !root.is_this_machine() {
            root.folder()?;
        }
        Ok(root)
    }

    fn folder(&self) -> io::Result<&OwnedFd> {
        match self.folder.get() {
            Some(folder) => Ok(folder),
            None => {
                let folder = folder::reach(&self.base)?;
                Ok(self.folder.get_or_init(|| folder))
            }
        }
    }

    fn open_beneath(&self, path: &str, how: OFlags) -> io::Result<File> {
        if self.is_this_machine() {
            let path = self.base.join(path.trim_start_matches('/'));
            return Ok(File::from(rustix::fs::openat(CWD, path, how | OFlags::CLOEXEC, Mode::empty())?));
        }
        let folder = self.folder()?.as_fd();
        // Opening is an act where a device is behind the name (a watchdog starts, a tape rewinds), so what is there is
        // looked at first and then opened itself, not what has the name by then.
        let found = beneath::open(folder, path, OFlags::PATH)?;
        if !is_of_a_machine(&rustix::fs::fstat(&found)?) {
            return Err(no_attribute());
        }
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        match rustix::fs::openat(CWD, itself, how | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()) {
            // No /proc here.
            Err(rustix::io::Errno::NOENT) => Ok(File::from(beneath::open(folder, path, how)?)),
            opened => Ok(File::from(opened?)),
        }
    }

    /// Whether files keep the rules of attributes: a write replaces the whole value.
    fn is_attribute(file: &File, kind: FileType) -> bool {
        const SYSFS: i64 = 0x6265_6572;
        const PROC: i64 = 0x9fa0;
        const CGROUP2: i64 = 0x6367_7270;
        const FUSE: i64 = 0x6573_5546;
        kind == FileType::CharacterDevice
            || rustix::fs::fstatfs(file).is_ok_and(|fs| [SYSFS, PROC, CGROUP2, FUSE].contains(&fs.f_type))
    }
}

/// Whether it is what a machine's tree holds: folders, files, and the devices of its registers (CPUs' MSRs and CPUID have
/// the majors 202 and 203, by the kernel's list of devices).
fn is_of_a_machine(stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory | FileType::RegularFile => true,
        FileType::CharacterDevice => matches!(rustix::fs::major(stat.st_rdev), 202 | 203),
        _ => false,
    }
}

fn no_attribute() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is neither a file nor a device of registers")
}

struct FileNode {
    file: File,
    /// Where an ordinary file of an unpacked copy is: its folder and name.
    copy: Option<(File, String)>,
}

impl Node for FileNode {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()> {
        match &self.copy {
            Some((folder, name)) if offset == 0 => replace(folder, name, value),
            _ => match self.file.write_at(value, offset)? {
                n if n == value.len() => Ok(()),
                _ => Err(io::ErrorKind::WriteZero.into()),
            },
        }
    }
}

/// The whole value or the old one, never a mixture.
fn replace(folder: &File, name: &str, value: &[u8]) -> io::Result<()> {
    let new = format!(".{name}.{}", std::process::id());
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(folder, &new, how, Mode::from_raw_mode(0o644))?);
    let done = io::Write::write_all(&mut file, value)
        .and_then(|()| Ok(rustix::fs::renameat(folder, &new, folder, name)?));
    if done.is_err() {
        _ = rustix::fs::unlinkat(folder, &new, rustix::fs::AtFlags::empty());
    }
    done
}

impl Root for DirRoot {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let file = match access {
            Access::Read => self.open_beneath(path, OFlags::RDONLY)?,
            Access::Write => match self.open_beneath(path, OFlags::RDWR) {
                // Attributes such as `cpu/probe` can only be written.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    self.open_beneath(path, OFlags::WRONLY)?
                }
                other => other?,
            },
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::CharacterDevice) {
            return Err(no_attribute());
        }
        let copy = match access {
            Access::Write if !DirRoot::is_attribute(&file, kind) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                Some((self.open_beneath(folder, OFlags::RDONLY | OFlags::DIRECTORY)?, name.to_owned()))
            }
            _ => None,
        };
        Ok(Box::new(FileNode { file, copy }))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.extend((!matches!(name.as_str(), "." | "..")).then_some(name));
        }
        sort_names(&mut names);
        Ok(names)
    }

    fn is_this_machine(&self) -> bool {
        self.base == Path::new("/")
    }

    fn describe(&self) -> String {
        if self.is_this_machine() { "this machine".into() } else { self.base.display().to_string() }
    }
}

/// Sorts names with the numbers in them in numeric order.
pub fn sort_names(names: &mut [String]) {
    names.sort_by_cached_key(|name| {
        let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
        let (stem, rest) = name.split_at(digits);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        (stem.to_owned(), rest[..end].parse::<u64>().ok(), rest[end..].to_owned())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A tree with links that stay in it and links that leave it, and a file beside it.
    fn tree() -> io::Result<(tempfile::TempDir, DirRoot)> {
        let folder = tempfile::tempdir()?;
        let base = folder.path().join("tree");
        std::fs::create_dir_all(base.join("sys/policy0"))?;
        std::fs::create_dir_all(base.join("sys/cpu0"))?;
        std::fs::write(base.join("sys/policy0/max"), "1")?;
        std::fs::write(folder.path().join("beside"), "secret")?;
        symlink("../policy0", base.join("sys/cpu0/cpufreq"))?;
        symlink("../../beside", base.join("sys/out"))?;
        symlink(folder.path(), base.join("sys/absolute"))?;
        symlink("loop", base.join("sys/loop"))?;
        rustix::fs::mkfifoat(rustix::fs::CWD, base.join("sys/pipe"), 0o600.into())?;
        let root = DirRoot::new(base);
        Ok((folder, root))
    }

    #[test]
    fn nothing_outside_of_a_root_is_opened() -> io::Result<()> {
        let (folder, root) = tree()?;
        for path in
            ["../beside", "sys/../../beside", "sys/out", "sys/absolute/beside", "sys/loop", "sys/pipe"]
        {
            for access in [Access::Read, Access::Write] {
                assert!(root.open(path, access).is_err(), "{path} {access:?}");
            }
            assert!(root.write(path, b"2").is_err(), "{path}");
        }
        assert!(root.list("..").is_err() && root.list("sys/absolute").is_err());
        assert_eq!(std::fs::read_to_string(folder.path().join("beside"))?, "secret");
        // What stays within is followed, as sysfs needs.
        assert_eq!(root.read("sys/cpu0/cpufreq/max")?, b"1");
        root.write("sys/cpu0/cpufreq/max", b"2")?;
        assert_eq!(root.read("/sys/policy0/max")?, b"2");
        assert_eq!(root.list("sys/cpu0/cpufreq")?, ["max"]);
        Ok(())
    }
}
