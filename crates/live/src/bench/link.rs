//! A link of the benchmark's own: two network namespaces with a pair of virtual Ethernet devices between them, where study 003 had a
//! PC, a cable and a board.
//!
//! ```text
//! home   the namespace of all other programs: nothing is made in it
//! near   the calling thread's from now on, and that of whatever it starts
//! far    that of what is started by `Link::far`
//! ```
//!
//! Neither has a name in the file system: a namespace is there for the processes and file descriptors that hold it, and its devices
//! go with it. So when this program has ended, by whatever signal, and what it started has, nothing is left; and what it starts by
//! [`dies_with_us`] ends with it.

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The far end's address (192.0.2.0/24 is for documentation: no network has it, and none would matter here).
pub const FAR: &str = "192.0.2.2";
const NEAR: &str = "192.0.2.1";
/// The devices' name, one in each namespace.
const DEVICE: &str = "wattwise0";

/// Why there is no link: it takes root and iproute2's `ip`.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The system refused a namespace.
    #[error("no network namespace of its own: {0}; it takes root")]
    Namespace(#[from] io::Error),
    /// A device could not be made or set up.
    #[error("no link between two network namespaces: {0}")]
    Device(String),
}

/// The link, while the value lives. It belongs to the thread that made it.
pub struct Link {
    far: File,
    near: File,
    /// Dropped last of all: the thread is back home.
    _home: Home,
}

/// Where the thread came from, and goes back to.
struct Home {
    namespace: File,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Home {
    fn drop(&mut self) {
        // That it once left is that it may go back.
        _ = enter(&self.namespace);
    }
}

impl Link {
    /// Makes it, and moves the calling thread to its near end.
    ///
    /// # Errors
    /// The system refuses a namespace or a device; then the thread is where it was.
    pub fn make() -> Result<Link, LinkError> {
        let home = Home { namespace: own()?, _of_this_thread: PhantomData };
        separate()?;
        let far = own()?;
        separate()?;
        let near = own()?;
        let there = format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), far.as_raw_fd());
        ip(&["link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", &there])?;
        up(NEAR)?;
        let link = Link { far, near, _home: home };
        link.far(|| up(FAR))??;
        Ok(link)
    }

    /// Does something at the far end: what it starts is there.
    ///
    /// # Errors
    /// The system refuses the way there or back.
    pub fn far<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        enter(&self.far)?;
        let done = work();
        enter(&self.near)?;
        Ok(done)
    }
}

/// The calling thread's network namespace.
fn own() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Gives the calling thread a new network namespace.
fn separate() -> io::Result<()> {
    // SAFETY: file descriptors stay shared; only what this thread opens as a network from now on is elsewhere.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?)
}

fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Gives this end an address, and lets it carry.
fn up(address: &str) -> Result<(), LinkError> {
    ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])?;
    ip(&["link", "set", DEVICE, "up"])
}

fn ip(arguments: &[&str]) -> Result<(), LinkError> {
    let out = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let out = out.map_err(|e| LinkError::Device(format!("ip: {e} (Debian: iproute2)")))?;
    match out.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&out.stderr);
            Err(LinkError::Device(format!("ip {}: {}", arguments.join(" "), said.trim())))
        }
    }
}

/// Has a command killed when the thread that starts it ends, and so when this program does, however that comes.
pub fn dies_with_us(command: &mut Command) {
    let us = getpid();
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have ended before it was asked for.
        if getppid() == Some(us) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec it makes two system calls, and neither allocates nor locks.
    unsafe { command.pre_exec(bind) };
}
