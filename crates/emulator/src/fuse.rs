//! The emulated machine as a mounted file system, so that other programs run against it.
//!
//! Files behave as sysfs's do: 4096 bytes long, read afresh at offset 0, a write replaces the
//! value, truncation does nothing, what a driver refuses comes back as the write's error. The kernel
//! caches nothing but the few folders that always stay. Links are relative, so that a part of the tree can be bound over the
//! real one (`mount --bind MOUNT/sys/devices/system/cpu /sys/devices/system/cpu` in a mount
//! namespace of its own is how cpupower is run).

use crate::emulated::{Emulator, Inner};
use crate::fault::Op;
use crate::tree::{Id, LiveAttribute, NodeKind, TOP};
use fuser::{
    AccessFlags, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenAccMode, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, SessionACL, TimeOrNow,
    WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wattwise_hw::root::Access;

/// A mounted machine. Dropping it unmounts.
pub struct Mounted {
    session: Option<fuser::BackgroundSession>,
    at: PathBuf,
}

impl Mounted {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if session.umount_and_join().is_err() {
            // Some program still has a file open: the name goes now, the rest with that program.
            _ = rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Mounts a machine on an empty folder; its own thread answers until the result is dropped. Its files belong to whom the folder
/// belongs, so that a user can be given a machine to try. Beside them is its [console](crate::console).
///
/// # Errors
/// The folder is missing, or the system has no FUSE (`/dev/fuse`) or does not let us mount.
pub fn mount(emulator: &Emulator, at: &Path) -> io::Result<Mounted> {
    let at = at.canonicalize()?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("wattwise:{}", emulator.name)),
        MountOption::Subtype("wattwise".into()),
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    emulator.furnish();
    let folder = std::fs::metadata(&at)?;
    let files = FuseFiles { emulator: emulator.clone(), owner: (folder.uid(), folder.gid()) };
    let session = fuser::spawn_mount(files, &at, &config)?;
    Ok(Mounted { session: Some(session), at })
}

/// Nothing may be kept: CPUs come and go, counters move.
const TTL: Duration = Duration::ZERO;
/// But the folders on every way to a CPU's files stay: no hotplug and no driver takes them away. Being asked for them with each file took 28 % of a mounted
/// test's time.
const LASTING: [&str; 4] = ["sys", "sys/devices", "sys/devices/system", "sys/devices/system/cpu"];
const LASTING_TTL: Duration = Duration::from_secs(3600);

struct FuseFiles {
    emulator: Emulator,
    /// User and group whose files they are.
    owner: (u32, u32),
}

impl FuseFiles {
    /// A file as the machine has it, in its owner's hands.
    fn attr(&self, inner: &Inner, id: Id) -> Result<FileAttr, Errno> {
        inner.attr(id).map(|attr| FileAttr { uid: self.owner.0, gid: self.owner.1, ..attr })
    }
}

impl Inner {
    /// For how long the kernel need not ask for a file again.
    fn ttl(&self, id: Id, kind: FileType) -> &'static Duration {
        let is_it = |path: &&str| self.machine.tree.find(path, true) == Some(id);
        let lasts = kind == FileType::Directory && LASTING.iter().any(is_it);
        if lasts { &LASTING_TTL } else { &TTL }
    }
}

fn number(id: Id) -> INodeNo {
    INodeNo(u64::from(id) + 1)
}

fn id(ino: INodeNo) -> Id {
    u64::from(ino).checked_sub(1).and_then(|n| Id::try_from(n).ok()).unwrap_or(Id::MAX)
}

fn errno(e: rustix::io::Errno) -> Errno {
    Errno::from_i32(e.raw_os_error())
}

/// The way from one folder to a file, both from the top.
fn relative(from: &str, to: &str) -> String {
    let mut from = from.split('/').filter(|p| !p.is_empty()).peekable();
    let mut to = to.split('/').filter(|p| !p.is_empty()).peekable();
    while from.peek().is_some() && from.peek() == to.peek() {
        (_, _) = (from.next(), to.next());
    }
    let up = from.map(|_| "..");
    up.chain(to).collect::<Vec<_>>().join("/")
}

impl Inner {
    fn attr(&self, id: Id) -> Result<FileAttr, Errno> {
        let file = self.machine.tree.file(id).filter(|f| f.attached).ok_or(Errno::ENOENT)?;
        let (kind, perm, size) = match &file.kind {
            NodeKind::Folder(_) => (FileType::Directory, 0o755, 0),
            NodeKind::Link(to) => (FileType::Symlink, 0o777, to.len() as u64),
            NodeKind::Live(LiveAttribute::Registers { .. }) => (FileType::RegularFile, 0o600, 0),
            NodeKind::Text(_) | NodeKind::Live(_) if file.writable => (FileType::RegularFile, 0o644, 4096),
            NodeKind::Text(_) | NodeKind::Live(_) => (FileType::RegularFile, 0o444, 4096),
        };
        Ok(FileAttr {
            ino: number(id),
            size,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for FuseFiles {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inner = self.emulator.lock();
        let found = name.to_str().and_then(|name| inner.machine.tree.child(id(parent), name));
        match found.ok_or(Errno::ENOENT).and_then(|child| Ok((child, self.attr(&inner, child)?))) {
            Ok((child, attr)) => reply.entry(inner.ttl(child, attr.kind), &attr, Generation(0)),
            Err(e) => reply.error(e),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let inner = self.emulator.lock();
        match self.attr(&inner, id(ino)) {
            Ok(attr) => reply.attr(inner.ttl(id(ino), attr.kind), &attr),
            Err(e) => reply.error(e),
        }
    }

    // Truncation before a write (`echo 1 > file`) and changes of mode or times do nothing.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attr(&self.emulator.lock(), id(ino)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(e) => reply.error(e),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let inner = self.emulator.lock();
        let tree = &inner.machine.tree;
        match tree.file(id(ino)) {
            Some(file) => match &file.kind {
                NodeKind::Link(to) => reply.data(relative(&tree.path(file.parent), to).as_bytes()),
                _ => reply.error(Errno::EINVAL),
            },
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mut inner = self.emulator.lock();
        let path = inner.machine.tree.path(id(ino));
        let access = if flags.acc_mode() == OpenAccMode::O_RDONLY { Access::Read } else { Access::Write };
        match inner.open(&path, access) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut inner = self.emulator.lock();
        let path = inner.machine.tree.path(id(ino));
        let mut bytes = vec![0; size as usize];
        match inner.read_at(id(ino), &path, offset, &mut bytes) {
            Ok(n) => reply.data(&bytes[..n]),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut inner = self.emulator.lock();
        let path = inner.machine.tree.path(id(ino));
        match inner.write_at(id(ino), &path, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn access(&self, _req: &Request, _ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut inner = self.emulator.lock();
        if offset == 0 {
            let path = inner.machine.tree.path(id(ino));
            if let Err(e) = inner.operation(&path, Op::List) {
                return reply.error(errno(e));
            }
        }
        let tree = &inner.machine.tree;
        let Some(names) = tree.names(id(ino)) else { return reply.error(Errno::ENOTDIR) };
        let parent = tree.file(id(ino)).map_or(TOP, |f| f.parent);
        let own = [(".", id(ino)), ("..", parent)];
        let all = own.into_iter().chain(names.iter().map(|(name, id)| (name.as_str(), *id)));
        for (i, (name, child)) in all.enumerate().skip(offset as usize) {
            let kind = match tree.file(child).map(|f| &f.kind) {
                Some(NodeKind::Folder(_)) => FileType::Directory,
                Some(NodeKind::Link(_)) => FileType::Symlink,
                _ => FileType::RegularFile,
            };
            if reply.add(number(child), i as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::relative;

    #[test]
    fn links_lead_from_where_they_are() {
        assert_eq!(
            relative("sys/devices/system/cpu/cpu0", "sys/devices/system/cpu/cpufreq/policy0"),
            "../cpufreq/policy0"
        );
        assert_eq!(relative("sys/class/thermal", "sys/devices/virtual/x"), "../../devices/virtual/x");
    }
}
