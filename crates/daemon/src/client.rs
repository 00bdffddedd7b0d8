//! Speaking with a daemon that runs.

use crate::protocol::{Reply, Request};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Where the daemon of this machine listens.
pub const SOCKET: &str = "/run/wattwise/wattwised.sock";
/// A daemon that does not answer within this is none.
const PATIENCE: Duration = Duration::from_secs(10);
/// No reply is longer.
const MOST_BYTES: u64 = 4 << 20;

/// A connection. What it holds ends with it.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn open(socket: &Path) -> io::Result<Connection> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The daemon has gone, or does not answer.
    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut text = String::new();
        (&mut self.stream).take(MOST_BYTES).read_line(&mut text)?;
        match text.is_empty() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(serde_json::from_str(&text)?),
        }
    }
}

/// A daemon that steps back while this lives.
pub struct Pause {
    _connection: Connection,
}

/// Has a running daemon step back for a measurement; none where no daemon runs.
///
/// # Errors
/// One line: it runs and does not step back.
pub fn pause(socket: &Path, why: &str) -> Result<Option<Pause>, String> {
    let Ok(mut connection) = Connection::open(socket) else { return Ok(None) };
    let reply = connection.ask(&Request::Pause { why: why.to_owned() });
    match reply {
        Ok(Reply { error: None, .. }) => Ok(Some(Pause { _connection: connection })),
        Ok(Reply { error: Some((_, why)), .. }) => {
            Err(format!("wattwised runs and does not step back: {why}"))
        }
        Err(e) => Err(format!("wattwised runs and does not answer ({e}); 'systemctl stop wattwised'")),
    }
}
