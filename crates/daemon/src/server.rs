//! The socket's connections, for a loop that polls.

use crate::brain::Client;
use crate::protocol::{MOST_BYTES, Reply, Request, request};
use rustix::net::sockopt::socket_peercred;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// No more at once: a stranger can open as many as he likes.
const MOST_CONNECTIONS: usize = 64;

struct Connected {
    stream: UnixStream,
    bytes: Vec<u8>,
    may_change: bool,
}

/// The socket and who is connected.
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    connections: BTreeMap<u64, Connected>,
    next: u64,
}

impl Server {
    /// Listens; a socket that a killed daemon left is replaced.
    pub(crate) fn listen(path: &Path) -> io::Result<Server> {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        // Whoever connects is judged by what the kernel says of him.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, path: path.to_owned(), connections: BTreeMap::new(), next: 1 })
    }

    /// What is to be polled.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let connected = self.connections.values().map(|c| c.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(connected).collect()
    }

    /// Takes what has come, and answers by `answer`; the clients that have gone.
    pub(crate) fn serve(&mut self, answer: &mut dyn FnMut(Request, Client) -> Reply) -> Vec<Client> {
        while let Ok((stream, _)) = self.listener.accept() {
            let own = rustix::process::geteuid();
            let may_change = socket_peercred(&stream).is_ok_and(|c| c.uid.is_root() || c.uid == own);
            let fits = self.connections.len() < MOST_CONNECTIONS && stream.set_nonblocking(true).is_ok();
            if fits {
                self.connections.insert(self.next, Connected { stream, bytes: Vec::new(), may_change });
                self.next += 1;
            }
        }
        let mut gone = Vec::new();
        self.connections.retain(|id, connection| {
            let lives = connection.serve(&mut |request| answer(request, Client::Socket(*id)));
            if !lives {
                gone.push(Client::Socket(*id));
            }
            lives
        });
        gone
    }
}

impl Connected {
    /// Whether it goes on.
    fn serve(&mut self, answer: &mut dyn FnMut(Request) -> Reply) -> bool {
        let mut more = [0; 1024];
        loop {
            match self.stream.read(&mut more) {
                Ok(0) => return false,
                Ok(n) => self.bytes.extend_from_slice(&more[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            }
            while let Some(end) = self.bytes.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                let reply = match request(&line[..line.len() - 1]) {
                    Err(why) => Reply::refused(2, why),
                    Ok(request) if request.changes() && !self.may_change => Reply::refused(
                        3,
                        "only root may change that here; a desktop's user can: 'powerprofilesctl set'",
                    ),
                    Ok(request) => answer(request),
                };
                let mut text = serde_json::to_vec(&reply).unwrap_or_default();
                text.push(b'\n');
                // Whoever does not read what he asked for is not waited for.
                if self.stream.write_all(&text).is_err() {
                    return false;
                }
            }
            if self.bytes.len() > MOST_BYTES {
                return false;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}
