//! A path opened beneath a folder, wherever its links and its `..` lead.
//!
//! A tree can be anybody's: unpacked from a capture, mounted, written by hand. Links within it are followed, since
//! sysfs is full of them; one that leaves it is refused with EXDEV. The kernel does this since 5.6 (`openat2` with
//! RESOLVE_BENEATH); older ones, and sandboxes that forbid that call, are served by the same walk in steps. So is a path
//! with `..` while anything on the system is renamed or mounted: the kernel says EAGAIN then (openat2(2)).

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::{Errno, Result};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// Opens `path`, which is relative to `base`. Never waits for the other end of a pipe.
pub(super) fn open(base: BorrowedFd, path: &str, how: OFlags) -> Result<OwnedFd> {
    let path = match path.trim_matches('/') {
        "" => ".",
        path => path,
    };
    // What is only looked at is not opened, and takes no other flag.
    let how =
        how | if how.contains(OFlags::PATH) { OFlags::CLOEXEC } else { OFlags::CLOEXEC | OFlags::NONBLOCK };
    match openat2(base, path, how, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk(base, path, how),
        other => other,
    }
}

fn walk(base: BorrowedFd, path: &str, how: OFlags) -> Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut ahead: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    // The folders from the base to where we are: `..` goes back to what we came from, whatever was moved meanwhile.
    let mut behind: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let here = behind.last().map_or(base, |fd| fd.as_fd());
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                behind.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            _ => {}
        }
        match readlinkat(here, name.as_str(), Vec::new()) {
            Ok(to) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let to = to.into_string().map_err(|_| Errno::ILSEQ)?;
                if to.starts_with('/') {
                    return Err(Errno::XDEV);
                }
                to.rsplit('/').for_each(|part| ahead.push_front(part.to_owned()));
            }
            // No link.
            Err(Errno::INVAL) if ahead.iter().all(|n| n.is_empty()) => {
                return openat(here, name.as_str(), how | OFlags::NOFOLLOW, Mode::empty());
            }
            Err(Errno::INVAL) => {
                behind.push(openat(here, name.as_str(), step | OFlags::DIRECTORY, Mode::empty())?)
            }
            Err(e) => return Err(e),
        }
    }
    let here = behind.last().map_or(base, |fd| fd.as_fd());
    openat(here, ".", how, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_walk_goes_where_the_kernel_goes() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let tree = folder.path().join("tree");
        std::fs::create_dir_all(tree.join("a/b"))?;
        std::fs::write(tree.join("a/b/file"), "")?;
        std::fs::write(folder.path().join("beside"), "")?;
        for (to, at) in [
            ("a", "link"),
            ("b/../../link/b", "a/round"),
            ("../../beside", "a/out"),
            ("/etc", "absolute"),
            ("loop", "loop"),
            ("a/b/file", "file"),
            ("nowhere", "dead"),
        ] {
            symlink(to, tree.join(at))?;
        }
        let base = crate::root::folder::reach(&tree)?;
        for path in [
            ".",
            "a",
            "a/b/file",
            "a//b/./file",
            "a/../a/b",
            "..",
            "a/../..",
            "../tree/a",
            "link/b/file",
            "a/round/file",
            "a/out",
            "absolute",
            "absolute/passwd",
            "loop",
            "file",
            "dead",
            "a/none",
            "a/b/file/x",
        ] {
            let how = OFlags::RDONLY | OFlags::CLOEXEC;
            let same = |fd: Result<OwnedFd>| fd.and_then(rustix::fs::fstat).map(|s| (s.st_dev, s.st_ino));
            // Other tests rename meanwhile: the kernel is asked again, as its manual has it.
            let mut asked =
                std::iter::repeat_with(|| openat2(&base, path, how, Mode::empty(), ResolveFlags::BENEATH));
            let kernel = asked.find(|fd| !matches!(fd, Err(Errno::AGAIN))).expect("asked without end");
            assert_eq!(same(walk(base.as_fd(), path, how)), same(kernel), "{path}");
        }
        Ok(())
    }

    /// The kernel gives up on `..` while anything is renamed; what is there is found all the same.
    #[test]
    fn others_may_rename_meanwhile() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir_all(folder.path().join("tree/class"))?;
        std::fs::create_dir_all(folder.path().join("tree/devices/zone"))?;
        symlink("../devices/zone", folder.path().join("tree/class/zone"))?;
        let base = crate::root::folder::reach(&folder.path().join("tree"))?;
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
                _ = std::fs::create_dir(&a);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    _ = std::fs::rename(&a, &b).and_then(|()| std::fs::rename(&b, &a));
                }
            });
            let opened =
                (0..20_000).try_for_each(|_| open(base.as_fd(), "class/zone", OFlags::PATH).map(|_| ()));
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            opened
        })?;
        Ok(())
    }
}
