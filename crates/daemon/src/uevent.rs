//! The kernel's own events: a supply or a CPU has changed.

use crate::engine::KernelInput;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Group 1 is the kernel's; udev tells the same again to group 2, later.
const KERNELS: u32 = 1;

/// The socket on which the kernel tells.
pub(crate) struct Uevents(OwnedFd);

impl Uevents {
    pub(crate) fn open() -> std::io::Result<Uevents> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, KERNELS))?;
        Ok(Uevents(socket))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// What has come; events of other things are none.
    pub(crate) fn take(&self) -> Vec<KernelInput> {
        let mut out = Vec::new();
        let mut bytes = [0_u8; 8192];
        // A storm that the buffer did not hold (ENOBUFS) is an event as well: of what, nobody knows.
        loop {
            match rustix::net::recvfrom(&self.0, &mut bytes, RecvFlags::empty()) {
                Ok((n, _, from)) => {
                    let of_kernel =
                        from.and_then(|a| SocketAddrNetlink::try_from(a).ok()).is_some_and(|a| a.pid() == 0);
                    if of_kernel {
                        out.extend(input(&bytes[..n]));
                    }
                }
                Err(rustix::io::Errno::NOBUFS) => out.push(KernelInput::Supply),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        out
    }
}

/// `change@/devices/...`, then `KEY=value`, each ended by a NUL.
fn input(message: &[u8]) -> Option<KernelInput> {
    let subsystem = message.split(|b| *b == 0).find_map(|part| part.strip_prefix(b"SUBSYSTEM="))?;
    match subsystem {
        b"power_supply" | b"typec" | b"platform-profile" => Some(KernelInput::Supply),
        b"cpu" => Some(KernelInput::Cpus),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_feeds_the_machine_and_its_cpus_count() {
        let of = |subsystem: &str| {
            input(format!("change@/devices/x\0ACTION=change\0SUBSYSTEM={subsystem}\0SEQNUM=7\0").as_bytes())
        };
        assert!(matches!(of("power_supply"), Some(KernelInput::Supply)));
        assert!(matches!(of("cpu"), Some(KernelInput::Cpus)));
        assert!(of("net").is_none() && input(b"libudev\0\xfe\xed").is_none() && input(b"").is_none());
    }
}
