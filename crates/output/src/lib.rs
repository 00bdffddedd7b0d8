//! Every file that wattwise writes at its user's request, written in one way.
//!
//! A path names one of these, after all links have been followed:
//!
//! | it is | a result ([`Output`]) | a log ([`Log`]) | a recording ([`Recording`]) |
//! |---|---|---|---|
//! | no file yet, or a regular file | is made beside it and takes its place when it is whole | is appended to, record by record | is emptied and appended to |
//! | `-`, `/dev/stdout`, `/dev/fd/N` | is written into it: the descriptor is shared, not opened again | the same | the same, once it is whole |
//! | a pipe, a terminal, `/dev/null` | is written into it; opening a pipe waits for its reader | the same | the same, once it is whole |
//! | a folder, a disk, a socket | refused | refused | refused |
//!
//! **Results.** 1. The path is followed to the folder and the name that it ends in, so a link stays and its target is
//! replaced. 2. The content goes to a file without a name in that folder (`O_TMPFILE`), so nothing is left behind when
//! the process is killed. 3. When it is whole and on disk it gets the name: by `link` where there is no such name
//! yet, else by `link` to a hidden name and `rename`. 4. A file that is replaced hands on its owner, mode and extended
//! attributes (access lists are among them). Other hard links to it keep the old content.
//!
//! A kill between `link` and `rename`, or a file system without `O_TMPFILE`, can leave a hidden file. Its name begins
//! with `.wattwise-`, and its writer holds a lock on it (`flock`). The next start that writes to the folder removes
//! those that nobody has locked.
//!
//! **In place.** Where nothing can be made in the folder, or the new file cannot be given the old one's owner, the content
//! is kept in a nameless file elsewhere and copied over the old one at the end, after room for it has been secured. A kill
//! during that copy leaves a part of it; there is no other way without the right to rename.
//!
//! **What could not be written is not replaced.** An old file is first opened for writing: one that is read-only or
//! immutable is refused although its folder would allow a rename. The kernel's rules for folders that all may
//! write (`fs.protected_regular`, `fs.protected_fifos`) apply to that opening; the one for links is kept here, because
//! links are followed here.
//!
//! The ground floor: it uses no other crate of wattwise. Journals of changed settings, which are read back as root,
//! follow stricter rules of their own (`control::private`).

mod beside;
mod fault;
mod grown;
mod place;
mod scratch;

pub use grown::{Log, Recording};
pub use place::{Identity, identity};
pub use scratch::{Scratch, nameless};

use crate::beside::Beside;
use crate::place::FoundPath;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A result in the making: it is there once [`Output::finish`] has returned, and not before.
///
/// Dropped before that, a file leaves nothing; a pipe has got what was written so far.
#[derive(Debug)]
pub struct Output(OutputSink);

#[derive(Debug)]
enum OutputSink {
    Beside(Box<BufWriter<Beside>>),
    Into(BufWriter<File>),
}

impl Output {
    /// Opens a path for a result. Best done before the work: what cannot be written is then known before it.
    ///
    /// A pipe that nobody reads makes this wait, as a shell's redirection does.
    ///
    /// # Errors
    /// It cannot be written, or is no place for a result.
    pub fn open(path: &Path) -> io::Result<Output> {
        Ok(Output(match place::find(path)? {
            FoundPath::File(place) => OutputSink::Beside(Box::new(BufWriter::new(Beside::open(place)?))),
            other => OutputSink::Into(BufWriter::new(other.into_file()?)),
        }))
    }

    /// All of it is written: puts it in its place.
    ///
    /// # Errors
    /// What the system says. A file is then as it was before.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            OutputSink::Beside(out) => (*out).into_inner().map_err(|e| e.into_error())?.publish(),
            OutputSink::Into(mut out) => out.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            OutputSink::Beside(out) => out.write(bytes),
            OutputSink::Into(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            OutputSink::Beside(out) => out.flush(),
            OutputSink::Into(out) => out.flush(),
        }
    }
}

/// Writes a whole result.
///
/// # Errors
/// As [`Output::open`] and [`Output::finish`].
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut out = Output::open(path)?;
    out.write_all(content)?;
    out.finish()
}

#[cfg(test)]
mod tests;
