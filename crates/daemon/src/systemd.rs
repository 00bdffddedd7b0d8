//! What systemd is told: that the daemon is ready, still alive, or ending (sd_notify(3)).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Its socket, opened once, and how often it wants to hear of us.
pub(crate) struct Systemd {
    socket: Option<UnixDatagram>,
    period_ns: Option<u64>,
    due_ns: u64,
}

impl Systemd {
    /// As the environment names it; silent without.
    pub(crate) fn of_environment() -> Systemd {
        let period_us = std::env::var("WATCHDOG_USEC").ok().and_then(|us| us.parse::<u64>().ok());
        Systemd::new(std::env::var_os("NOTIFY_SOCKET").as_deref(), period_us)
    }

    fn new(path: Option<&OsStr>, watchdog_us: Option<u64>) -> Systemd {
        let address = path.and_then(|path| match path.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(path).ok(),
        });
        let connected = |address: SocketAddr| {
            let socket = UnixDatagram::unbound().ok()?;
            socket.connect_addr(&address).ok().map(|()| socket)
        };
        // Half of the time within which it wants to hear of us.
        let period_ns = watchdog_us.map(|us| us.saturating_mul(500)).filter(|ns| *ns > 0);
        Systemd { socket: address.and_then(connected), period_ns, due_ns: 0 }
    }

    pub(crate) fn tell(&self, state: &str) {
        _ = self.socket.as_ref().map(|socket| socket.send(state.as_bytes()));
    }

    /// When it wants to hear of us next.
    pub(crate) fn due_ns(&self) -> u64 {
        self.period_ns.map_or(u64::MAX, |_| self.due_ns)
    }

    /// Says that we are alive, where that is due.
    pub(crate) fn alive(&mut self, now_ns: u64) {
        if let Some(period_ns) = self.period_ns.filter(|_| now_ns >= self.due_ns) {
            self.due_ns = now_ns.saturating_add(period_ns);
            self.tell("WATCHDOG=1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_hears_of_us_twice_within_its_time_and_not_at_each_look() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let theirs = UnixDatagram::bind(&path).expect("bound");
        theirs.set_nonblocking(true).expect("set");
        let mut systemd = Systemd::new(Some(path.as_os_str()), Some(60_000_000));
        let heard = || {
            let mut bytes = [0; 64];
            theirs.recv(&mut bytes).ok().map(|n| String::from_utf8_lossy(&bytes[..n]).into_owned())
        };
        systemd.tell("READY=1");
        assert_eq!(heard().as_deref(), Some("READY=1"));
        let at = |s: u64| s * 1_000_000_000;
        for (s, said) in [(0, true), (1, false), (29, false), (30, true), (59, false), (60, true)] {
            systemd.alive(at(s));
            assert_eq!(heard().is_some(), said, "after {s} s");
        }
        assert_eq!(systemd.due_ns(), at(90));
        let mut without = Systemd::new(None, None);
        without.alive(at(1000));
        assert_eq!(without.due_ns(), u64::MAX);
    }
}
