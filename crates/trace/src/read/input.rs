//! Where a recording's bytes come from: a file, memory, or the inside of a packed one (see `unpack`).
//!
//! Every reader wants to look at a file's end before its middle (perf.data keeps its formats there) or
//! at several places at once (trace.dat has a stream a CPU), so all of them read by position. What
//! cannot be read so is unpacked first: into memory while it is small, else into a file without a name.

use crate::error::TraceError;
use crate::read::foreign::unknown;
use crate::read::unpack::{Packed, packed};
use crate::source::Source;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wattwise_figure::{Budget, BudgetPart};

/// Of so many bytes, if the file has them: a text's head has a dozen lines before the first event.
pub(crate) const START: usize = 8 << 10;

/// Unpacked recordings up to this size stay in memory; one of ten million events has about 900 MB.
const IN_MEMORY: u64 = 32 << 20;

/// Layers of packing that are taken off: a text in UTF-16 that was packed twice has three.
const MOST_LAYERS: usize = 4;

/// A recording's bytes, read by position.
#[derive(Debug)]
pub(crate) struct TraceInput {
    pub(crate) name: String,
    len: u64,
    bytes: Bytes,
    /// What the reading may take.
    pub(crate) budget: Budget,
    /// Said of the unpacking.
    pub(crate) warnings: Vec<String>,
    is_known: IsKnown,
}

/// Whether bytes are the start of a recording that is read: what is none is not unpacked to its end.
type IsKnown = fn(&[u8]) -> bool;

#[derive(Debug)]
enum Bytes {
    File(File),
    Fixed(&'static [u8]),
    Shared(Arc<[u8]>),
    Owned(Vec<u8>),
}

impl TraceInput {
    /// Opens a source and unpacks it where it is packed (told by its content) or a pipe.
    pub(crate) fn open(
        source: &Source,
        budget: &Budget,
        is_known: IsKnown,
    ) -> Result<TraceInput, TraceError> {
        let (name, path, len, bytes) = match source {
            Source::Path(path) => {
                let io = |error| TraceError::Io { path: path.clone(), error };
                let file = File::open(path).map_err(io)?;
                let meta = file.metadata().map_err(io)?;
                let name = path.display().to_string();
                if meta.is_dir() {
                    return Err(TraceError::Unusable {
                        name,
                        what: "is a directory, expected a file".into(),
                        remedy: "name the recording itself; `perf record --threads` writes directories, \
                                 which are not read"
                            .into(),
                    });
                }
                if !meta.is_file() {
                    return TraceInput::empty(name, budget, is_known).spool(path, file)?.unpacked(path);
                }
                (name, path.clone(), meta.len(), Bytes::File(file))
            }
            Source::Bytes { name, data } => {
                (name.clone(), PathBuf::from(name), data.len() as u64, Bytes::Shared(Arc::clone(data)))
            }
            Source::Static { name, data } => {
                (name.clone(), PathBuf::from(name), data.len() as u64, Bytes::Fixed(data))
            }
        };
        TraceInput { len, bytes, ..TraceInput::empty(name, budget, is_known) }.unpacked(&path)
    }

    fn empty(name: String, budget: &Budget, is_known: IsKnown) -> TraceInput {
        TraceInput { name, len: 0, bytes: Bytes::Fixed(&[]), budget: *budget, warnings: Vec::new(), is_known }
    }

    /// The inside of a packed stream, however often it is packed; anything else stays as it is.
    fn unpacked(mut self, path: &Path) -> Result<TraceInput, TraceError> {
        for _ in 0..MOST_LAYERS {
            let Some(packed) = self.packed() else { break };
            let shell = TraceInput {
                warnings: self.warnings.clone(),
                ..TraceInput::empty(self.name.clone(), &self.budget, self.is_known)
            };
            let decoder = packed
                .unpack(Positioned { input: &self, at: packed.begins })
                .map_err(|error| TraceError::Io { path: path.into(), error })?;
            let inside = shell.spool(path, decoder)?;
            self = inside;
        }
        Ok(self)
    }

    fn packed(&self) -> Option<Packed> {
        packed(&self.section(0, self.len.min(START as u64))?)
    }

    /// Reads a stream to its end, into memory or a nameless file. An error after the first bytes cuts
    /// the recording short there, with a warning: the readers make of it what they can.
    fn spool(mut self, path: &Path, mut from: impl Read) -> Result<TraceInput, TraceError> {
        let io = |error| TraceError::Io { path: path.into(), error };
        let mut memory = Vec::new();
        let mut file: Option<File> = None;
        let mut chunk = vec![0; 256 << 10];
        loop {
            let n = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if self.len == 0 && error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(TraceError::Unusable {
                        name: self.name,
                        what: "a packed stream that is cut short before its first block ends".into(),
                        remedy: "expected the whole file; copy it again, or record again".into(),
                    });
                }
                Err(error) if self.len == 0 => return Err(io(error)),
                Err(error) => {
                    self.warnings.push(format!(
                        "The packed stream is damaged or cut short after {} unpacked bytes ({error}); the rest is left out.",
                        self.len
                    ));
                    break;
                }
            };
            let known_by = self.len.min(START as u64);
            self.len += n as u64;
            if let Err(over) = self.budget.allows(BudgetPart::Disk, self.len) {
                return Err(TraceError::OverBudget { name: self.name, over });
            }
            // What is no recording is not unpacked to its end: it may be all there is room for.
            if known_by < START as u64 && self.len >= START as u64 {
                let start: Vec<u8> = memory.iter().chain(&chunk[..n]).copied().take(START).collect();
                if !(self.is_known)(&start) && packed(&start).is_none() {
                    return Err(unknown(&self.name, &start));
                }
            }
            if file.is_none() && self.len > IN_MEMORY {
                let mut f = wattwise_output::nameless().map_err(io)?;
                f.write_all(&memory).map_err(io)?;
                memory = Vec::new();
                file = Some(f);
            }
            match &mut file {
                Some(f) => f.write_all(&chunk[..n]).map_err(io)?,
                None => memory.extend_from_slice(&chunk[..n]),
            }
        }
        self.bytes = match file {
            Some(mut f) => {
                f.seek(SeekFrom::Start(0)).map_err(io)?;
                Bytes::File(f)
            }
            None => Bytes::Owned(memory),
        };
        Ok(self)
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads at a position; fewer bytes than asked for only at the end (or where the disk fails, which
    /// is the end of what can be used).
    pub(crate) fn read_at(&self, at: u64, to: &mut [u8]) -> usize {
        let memory: &[u8] = match &self.bytes {
            Bytes::File(file) => {
                let mut n = 0;
                while n < to.len() {
                    match file.read_at(&mut to[n..], at + n as u64) {
                        Ok(0) => break,
                        Ok(k) => n += k,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                return n;
            }
            Bytes::Fixed(b) => b,
            Bytes::Shared(b) => b,
            Bytes::Owned(b) => b,
        };
        let rest = memory.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let n = rest.len().min(to.len());
        to[..n].copy_from_slice(&rest[..n]);
        n
    }

    /// So many bytes from a position, whole or not at all; never more than the input has.
    pub(crate) fn section(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        if at.checked_add(len)? > self.len {
            return None;
        }
        let mut data = vec![0; usize::try_from(len).ok()?];
        (self.read_at(at, &mut data) == data.len()).then_some(data)
    }

    /// A window that moves over a part of the input.
    pub(crate) fn window(&self, at: u64, end: u64) -> Window<'_> {
        Window {
            input: self,
            buffer: Vec::new(),
            start: 0,
            have: 0,
            at,
            end: end.min(self.len),
            step: 256 << 10,
        }
    }
}

struct Positioned<'a> {
    input: &'a TraceInput,
    at: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = self.input.read_at(self.at, to);
        self.at += n as u64;
        Ok(n)
    }
}

/// Bytes from a part of the input in order, through a buffer of bounded size.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    input: &'a TraceInput,
    buffer: Vec<u8>,
    /// Bytes of `buffer` read and not yet taken: from here,
    start: usize,
    /// to here; what lies beyond is of earlier use.
    have: usize,
    /// Where in the input the byte after `buffer` is.
    at: u64,
    end: u64,
    /// Bytes read from the input at a time.
    step: usize,
}

impl Window<'_> {
    /// With reads of another size: a trace.dat has a window a CPU.
    pub(crate) fn step(mut self, bytes: usize) -> Self {
        self.step = bytes;
        self
    }

    /// Where in the input the next byte is.
    pub(crate) fn at(&self) -> u64 {
        self.at - (self.have - self.start) as u64
    }

    /// Bytes not yet taken.
    pub(crate) fn left(&self) -> u64 {
        (self.have - self.start) as u64 + self.end.saturating_sub(self.at)
    }

    /// The next bytes, at least `n` of them unless the part ends before; not taken yet.
    #[inline]
    pub(crate) fn peek(&mut self, n: usize) -> &[u8] {
        if self.have - self.start < n {
            self.fill(n);
        }
        &self.buffer[self.start..self.have]
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        self.buffer.copy_within(self.start..self.have, 0);
        self.have -= self.start;
        self.start = 0;
        let have = self.have;
        let room = (self.step.max(n - have) as u64).min(self.end.saturating_sub(self.at)) as usize;
        if self.buffer.len() < have + room {
            self.buffer.resize(have + room, 0);
        }
        let got = self.input.read_at(self.at, &mut self.buffer[have..have + room]);
        self.have += got;
        self.at += got as u64;
        if got < room {
            self.end = self.at;
        }
    }

    /// Takes `n` bytes, also beyond the buffer.
    #[inline]
    pub(crate) fn skip(&mut self, n: u64) {
        let buffered = (self.have - self.start) as u64;
        if n <= buffered {
            self.start += n as usize;
        } else {
            (self.start, self.have) = (0, 0);
            self.at = self.at.saturating_add(n - buffered);
        }
    }
}
