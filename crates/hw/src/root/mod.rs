//! The one small trait through which every reading and every change of a machine goes.
//!
//! A [`Root`] is a tree of attribute files as Linux shows them: `sys/…`, `proc/…`, `dev/cpu/N/msr`.
//! Behind it stand the real machine or a mounted copy ([`DirRoot`]), a captured tree, or the
//! emulator. Paths are relative to the root and use `/`.
//!
//! A node that is read again and again stays open: an attribute is made afresh by a read at offset
//! 0, so a steady loop opens nothing twice. Registers are files too: 8 bytes at an offset that is
//! the register's address.

pub mod tree;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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

/// An attribute as text without the white space around it. `None` when it is not there or cannot
/// be read; callers that must know why use [`Root::read`].
pub fn text(root: &dyn Root, path: &str) -> Option<String> {
    let bytes = root.read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
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

/// A real folder: `/` itself, a mounted emulator, an unpacked capture.
pub struct DirRoot {
    base: PathBuf,
}

impl DirRoot {
    /// The tree below `base`.
    pub fn new(base: impl Into<PathBuf>) -> DirRoot {
        DirRoot { base: base.into() }
    }

    /// The machine that we run on.
    pub fn this_machine() -> DirRoot {
        DirRoot::new("/")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    /// Whether files keep the rules of attributes: a write replaces the whole value.
    fn is_attribute(file: &File) -> bool {
        use std::os::unix::fs::FileTypeExt;
        const SYSFS: i64 = 0x6265_6572;
        const PROC: i64 = 0x9fa0;
        const CGROUP2: i64 = 0x6367_7270;
        const FUSE: i64 = 0x6573_5546;
        if file.metadata().is_ok_and(|m| m.file_type().is_char_device()) {
            return true;
        }
        rustix::fs::fstatfs(file).is_ok_and(|fs| [SYSFS, PROC, CGROUP2, FUSE].contains(&fs.f_type))
    }
}

struct FileNode {
    file: File,
    path: PathBuf,
    attribute: bool,
}

impl Node for FileNode {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&mut self, offset: u64, value: &[u8]) -> io::Result<()> {
        if self.attribute || offset > 0 {
            return match self.file.write_at(value, offset)? {
                n if n == value.len() => Ok(()),
                _ => Err(io::ErrorKind::WriteZero.into()),
            };
        }
        // An ordinary file of an unpacked copy: the whole value or the old one, never a mixture.
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut new, value)?;
        new.persist(&self.path).map_err(|e| e.error)?;
        Ok(())
    }
}

impl Root for DirRoot {
    fn open(&self, path: &str, access: Access) -> io::Result<Box<dyn Node>> {
        let path = self.path(path);
        let file = match access {
            Access::Read => File::open(&path)?,
            Access::Write => match OpenOptions::new().read(true).write(true).open(&path) {
                // Attributes such as `cpu/probe` can only be written.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    OpenOptions::new().write(true).open(&path)?
                }
                other => other?,
            },
        };
        let attribute = access == Access::Write && DirRoot::is_attribute(&file);
        Ok(Box::new(FileNode { file, path, attribute }))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path(path))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
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
