//! Whoever scrapes metrics: loopback or a Unix socket.

use crate::asks::{Asks, say};
use crate::brain::Client;
use crate::config::Listen;
use crate::protocol::Request;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Takes away what an earlier daemon has left there: a socket, and nothing else.
fn remove_socket(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Serves metrics by a thread of its own: whoever asks slowly keeps nobody else waiting but others that ask for metrics.
pub(crate) fn serve_metrics(listen: Option<Listen>, asks: &Asks) {
    let Some(listen) = listen else { return };
    let asks = asks.clone();
    let serve = move || -> io::Result<()> {
        match listen {
            Listen::Loopback(port) => {
                let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
                for mut stream in listener.incoming().flatten() {
                    _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                    _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
                    _ = serve_one(&mut stream, &asks);
                }
            }
            Listen::Unix(path) => {
                remove_socket(&path)?;
                let listener = std::os::unix::net::UnixListener::bind(&path)?;
                for mut stream in listener.incoming().flatten() {
                    _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                    _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
                    _ = serve_one(&mut stream, &asks);
                }
            }
        }
        Ok(())
    };
    let named = std::thread::Builder::new().name("metrics".into());
    let spawned = named.spawn(move || {
        if let Err(e) = serve() {
            say(&format!("metrics are not served: {e}"));
        }
    });
    if let Err(e) = spawned {
        say(&format!("metrics are not served: {e}"));
    }
}

/// One request of HTTP/1.0 or 1.1; the connection ends with the answer.
fn serve_one(stream: &mut (impl io::Read + io::Write), asks: &Asks) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut more = [0; 1024];
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") && bytes.len() < 8192 {
        match stream.read(&mut more)? {
            0 => break,
            n => bytes.extend_from_slice(&more[..n]),
        }
    }
    let (status, text) = match bytes.starts_with(b"GET /metrics ") {
        true => {
            let reply = asks.ask(Request::Metrics, Client::Socket(0));
            ("200 OK", reply.text.unwrap_or_default())
        }
        false => ("404 Not Found", "GET /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}
