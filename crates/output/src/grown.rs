//! Files that grow while the work goes on, so that a kill leaves what was done: logs and recordings.

use crate::beside::{Beside, regular, sweep};
use crate::fault::step;
use crate::place::{FoundPath, NamedPlace, find};
use crate::{Output, OutputSink, scratch};
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

/// A log: whole records, one after the other.
#[derive(Debug)]
pub struct Log {
    file: File,
    is_file: bool,
}

impl Log {
    /// A new log; an older file in its place is emptied.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> io::Result<Log> {
        let log = Log::open(path, OFlags::CREATE)?;
        log.cut(0)?;
        Ok(log)
    }

    /// A new log; a file that is there already is left alone.
    ///
    /// # Errors
    /// It is there already, or cannot be written.
    pub fn create_new(path: &Path) -> io::Result<Log> {
        Log::open(path, OFlags::CREATE | OFlags::EXCL)
    }

    /// Goes on with a log behind its first `whole` bytes; what follows them is cut off: a torn record.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn resume(path: &Path, whole: u64) -> io::Result<Log> {
        let log = Log::open(path, OFlags::empty())?;
        log.cut(whole)?;
        Ok(log)
    }

    fn open(path: &Path, how: OFlags) -> io::Result<Log> {
        match find(path)? {
            FoundPath::File(place) => {
                let how = how | OFlags::WRONLY | OFlags::APPEND;
                Ok(Log { file: open(&place, how, 0o666)?, is_file: true })
            }
            other => Ok(Log { file: other.into_file()?, is_file: false }),
        }
    }

    fn cut(&self, at: u64) -> io::Result<()> {
        if self.is_file { step(|| self.file.set_len(at)) } else { Ok(()) }
    }

    /// Whether it is a file, from which it can be read again.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Adds a record, whole or not at all: what a full disk took of it is cut off again.
    ///
    /// # Errors
    /// It could not be written. All before it is kept.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        step(|| self.file.write_all(record)).inspect_err(|_| {
            // Cutting needs no space; if even that fails, readers leave a torn last record out.
            _ = self.cut(before);
        })
    }
}

/// Opens the file in a place, making it where there is none.
fn open(place: &NamedPlace, how: OFlags, mode: u32) -> io::Result<File> {
    sweep(&place.folder);
    let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = step(|| Ok(openat(&place.folder, &place.name, how, Mode::from_raw_mode(mode))?))?;
    regular(File::from(opened))
}

/// A recording: grows in its own file, which can be read at any time, and may be replaced by a packed form at the end.
///
/// Where it goes to a pipe or a device it grows in a nameless file, and is written once it is whole.
#[derive(Debug)]
pub struct Recording {
    file: File,
    end: GrownEnd,
}

#[derive(Debug)]
enum GrownEnd {
    There(NamedPlace),
    Into(File),
}

impl Recording {
    /// A new recording, for the eyes of its owner; an older file in its place is emptied and keeps its mode.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> io::Result<Recording> {
        match find(path)? {
            FoundPath::File(place) => {
                let file = open(&place, OFlags::RDWR | OFlags::CREATE, 0o600)?;
                step(|| file.set_len(0))?;
                Ok(Recording { file, end: GrownEnd::There(place) })
            }
            other => Ok(Recording { end: GrownEnd::Into(other.into_file()?), file: scratch::nameless()? }),
        }
    }

    /// What has been recorded, to be written and read at any position.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// It is whole.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<()> {
        if let GrownEnd::Into(mut into) = self.end {
            self.file.rewind()?;
            io::copy(&mut self.file, &mut into)?;
        }
        Ok(())
    }

    /// Where its packed form goes, to take its place; and what has been recorded, from its beginning. Where the packed form
    /// cannot be written the recording stays as it is.
    ///
    /// # Errors
    /// What the system says.
    pub fn packed(mut self) -> io::Result<(File, Output)> {
        self.file.rewind()?;
        let sink = match self.end {
            GrownEnd::There(place) => {
                let there = Some(rustix::fs::fstat(&self.file)?);
                OutputSink::Beside(Box::new(BufWriter::new(Beside::open(NamedPlace { there, ..place })?)))
            }
            GrownEnd::Into(into) => OutputSink::Into(BufWriter::new(into)),
        };
        Ok((self.file, Output(sink)))
    }
}
