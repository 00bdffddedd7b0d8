//! How other threads ask the loop, and what all of them say to the log.

use crate::brain::Client;
use crate::protocol::{Reply, Request};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::Duration;

/// A request from another thread, and where its answer goes.
pub struct Asked {
    /// The request.
    pub request: Request,
    /// Whose.
    pub client: Client,
    /// The answer.
    pub reply: mpsc::Sender<Reply>,
}

/// How other threads ask the loop.
#[derive(Clone)]
pub struct Asks {
    sender: mpsc::Sender<Message>,
    wake: std::sync::Arc<OwnedFd>,
}

/// What other threads send.
pub enum Message {
    /// A request.
    Asked(Asked),
    /// A client of the bus has gone.
    Gone(Client),
}

impl Asks {
    /// For a loop that hears at the other ends of both.
    pub(crate) fn new(sender: mpsc::Sender<Message>, wake: OwnedFd) -> Asks {
        Asks { sender, wake: std::sync::Arc::new(wake) }
    }

    /// Sends, and wakes the loop.
    pub fn send(&self, message: Message) {
        _ = self.sender.send(message);
        _ = rustix::io::write(&*self.wake, &[1]);
    }

    /// Asks, and waits for the answer.
    pub fn ask(&self, request: Request, client: Client) -> Reply {
        const PATIENCE: Duration = Duration::from_secs(10);
        let (reply, answer) = mpsc::channel();
        self.send(Message::Asked(Asked { request, client, reply }));
        answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Reply::refused(1, "the daemon is ending"))
    }
}

/// Says a line to the journal of the system, or to a terminal.
pub fn say(line: &str) {
    _ = writeln!(io::stderr(), "{}", wattwise_figure::one_line(line));
}
