//! trace.dat: what trace-cmd writes, versions 6 and 7, after trace-cmd.dat.v6(5) and v7(5).
//!
//! Both begin with the head of the "tracing data" container (see `decode`). Then they part:
//!
//! | | version 6 | version 7 |
//! |---|---|---|
//! | formats | next in the container | sections, found by options 16 (page layout) and 18 (events) |
//! | CPUs | number, `options  \0` list, `flyrecord\0`, (offset, size) a CPU | option 3: clock, page size, (id, offset, size) a CPU |
//! | compression | none | zstd or zlib: sections whole, CPU data in chunks |
//! | text | `latency  \0`, then ftrace text | option 22 (not read) |
//!
//! A version 7 section is `{id u16, flags u16 (1: compressed), name u32, size u64}` and its content;
//! compressed content is `{packed u32, unpacked u32, bytes}`, compressed CPU data `{chunks u32}` and so
//! many of these. A file may have several ring buffers: the top one and those of tracefs's instances (`trace-cmd record -B`), each
//! named by an option 3: in version 6 the place of another `flyrecord\0` and its table of CPUs. The first that holds a switch is
//! read. Option lists are `{id u16, size u32, bytes}` and end with option 0, whose content is
//! the offset of the next list or 0.
//!
//! **CPU data** are pages of the kernel's ring buffer as they were: `header_page` gives the offsets of
//! `timestamp`, `commit` (bytes used; bit 31: events were lost before this page, bit 30: their number
//! follows the last entry) and `data`. Entries are 4-byte aligned and begin with a word of `type_len`
//! (5 bits) and `time_delta` (27 bits); the former are the low bits on little-endian machines:
//!
//! | type_len | entry |
//! |---|---|
//! | 0 | record; the next word is its length, itself included |
//! | 1 to 28 | record of `4 * type_len` bytes |
//! | 29 | padding: to the page's end if `time_delta` is 0, else the next word is the length to skip |
//! | 30 | time extend: the next word holds the delta's bits from 27 up |
//! | 31 | absolute time: 59 bits in the same way; the page's time has the missing five |
//!
//! A record's time is the page's plus all deltas up to its own. Times are in order within a CPU, so a
//! heap of the CPUs' next events merges them; no more than a page and a chunk a CPU is in memory.

use crate::bounds::MAX_CPUS;
use crate::error::TraceError;
use crate::events::{Comms, Event, EventKind, KernelContext, Sink, TraceRead};
use crate::lacks::Lack;
use crate::plan::ReadPlan;
use crate::read::decode::{DecodedRecord, Decoder, Format, MAGIC, TracingData, header_info};
use crate::read::ftrace_text;
use crate::read::input::{TraceInput, Window};
use crate::read::joined;
use crate::take::{ByteOrder, Take};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read as _;

/// Most that the head may take: kernel symbols have some 20 MB.
const MOST_HEAD: u64 = 64 << 20;

/// Most that a section or chunk may unpack to.
const MOST_UNPACKED: usize = 64 << 20;

/// Most ring buffers that are looked at; as many readings may be needed to find the one with the scheduler's events.
const MOST_BUFFERS: usize = 16;

/// Most option lists, and bytes of one; real files have three of some kB.
const MOST_LISTS: usize = 64;
const MOST_LIST: usize = 4 << 20;

/// Most that the unpacked chunks of all CPUs may take together; trace-cmd makes chunks of ten pages.
const MOST_CHUNKS: usize = 256 << 20;

/// Largest page: sub-buffers have at most 2^n pages of 64 KiB, in practice under 1 MiB.
const MOST_PAGE: usize = 4 << 20;

/// `commit`: bytes used in the page, and what is said of lost events.
const COMMIT_BYTES: u64 = (1 << 27) - 1;
const COMMIT_LOST: u64 = 1 << 31;
const COMMIT_LOST_STORED: u64 = 1 << 30;

/// How a file's sections and chunks are packed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Packing {
    None,
    Zstd,
    Zlib,
}

impl Packing {
    /// Unpacks to exactly `size` bytes; a claim that is not kept is damage, and nothing beyond is kept.
    fn unpack(self, packed: &[u8], size: usize) -> Option<Vec<u8>> {
        if size > MOST_UNPACKED {
            return None;
        }
        let mut out = Vec::new();
        let limit = size as u64 + 1;
        match self {
            Packing::None => return None,
            Packing::Zstd => wattwise_packed::unpack(packed).ok()?.take(limit).read_to_end(&mut out).ok()?,
            Packing::Zlib => flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut out).ok()?,
        };
        (out.len() == size).then_some(out)
    }
}

/// Where in a page its parts are.
#[derive(Clone, Copy, Debug)]
struct PageLayout {
    time: usize,
    commit: usize,
    commit_size: usize,
    data: usize,
}

impl PageLayout {
    fn parse(text: &[u8]) -> Option<PageLayout> {
        let text = String::from_utf8_lossy(text);
        let format = Format::parse(&text);
        let (time, commit, data) = (format.get("timestamp"), format.get("commit"), format.get("data"));
        let sound = time.size() == 8 && matches!(commit.size(), 4 | 8) && data.offset() > 0;
        sound.then(|| PageLayout {
            time: time.offset(),
            commit: commit.offset(),
            commit_size: commit.size(),
            data: data.offset(),
        })
    }
}

/// Clock values to nanoseconds, for the `x86-tsc` clock: option 14.
#[derive(Clone, Copy, Debug)]
struct Tsc {
    mult: u32,
    shift: u32,
    offset: u64,
}

/// Where a CPU's data are in the file.
#[derive(Clone, Copy, Debug)]
struct CpuData {
    cpu: u16,
    /// Offset.
    at: u64,
    size: u64,
}

impl CpuData {
    /// Where in the file it ends. trace-cmd (3.1.6) does not count the word with the number of chunks.
    fn end(&self, packed: bool) -> u64 {
        self.at.saturating_add(self.size).saturating_add(if packed { 4 } else { 0 })
    }
}

/// A ring buffer of the recording machine.
#[derive(Debug, Default)]
struct Buffer {
    /// Empty: the top one.
    name: String,
    clock: Option<String>,
    page_size: Option<usize>,
    /// Of those CPUs that have any data.
    cpus: Vec<CpuData>,
    packed: bool,
}

/// What the head says, whatever the version.
struct DatHead {
    decoder: Decoder,
    layout: Option<PageLayout>,
    page_size: usize,
    packing: Packing,
    /// The top one first, then the instances'.
    buffers: Vec<Buffer>,
    /// Where in version 6 the instances' tables of CPUs are, and their names.
    instances: Vec<(u64, String)>,
    clock: String,
    tsc: Option<Tsc>,
    /// Where ftrace text begins instead of CPU data.
    text: Option<u64>,
    /// Where in the file the last of what it tells of ends.
    end: u64,
    read: TraceRead,
}

/// Reads a whole recording.
pub(crate) fn read<S: Sink>(
    input: &TraceInput,
    plan: &ReadPlan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<TraceRead, TraceError> {
    let unusable = |what: &str| TraceError::Unusable {
        name: input.name.clone(),
        what: format!("trace.dat {what}"),
        remedy: "copy it again, or record again with `trace-cmd record -e sched -e power`".into(),
    };
    let prefix = input.section(0, MOST_HEAD.min(input.len())).unwrap_or_default();
    let Some(container) = TracingData::parse(&prefix) else {
        return Err(unusable("ends within its header"));
    };
    let taken = container.taken;
    let mut head = DatHead {
        layout: PageLayout::parse(&container.header_page),
        page_size: container.page_size as usize,
        decoder: container.decoder,
        packing: Packing::None,
        buffers: Vec::new(),
        instances: Vec::new(),
        clock: String::new(),
        tsc: None,
        text: None,
        end: 0,
        read: TraceRead { format: "trace.dat version 6", ..TraceRead::default() },
    };
    let rest = Take { rest: &prefix[taken..], order: head.decoder.order };
    match container.version {
        ..=5 => return Err(unusable("of a version before 6, expected 6 or 7")),
        6 => {
            if container.cut || head.version_6(rest, input).is_none() {
                return Err(unusable("is cut short within its header (damaged or incomplete)"));
            }
        }
        7 => {
            head.read.format = "trace.dat version 7";
            head.version_7(rest, input).map_err(|what| unusable(&what))?;
        }
        _ => return Err(unusable("of a version after 7, expected 6 or 7")),
    }
    drop(prefix);
    if let Some(at) = head.text {
        let text = ftrace_text::read_from(input, at, plan, comms, sink)?;
        return Ok(TraceRead { format: "trace.dat version 6 (text)", ..text });
    }
    for buffer in &head.buffers {
        let ends = buffer.cpus.iter().map(|cpu| cpu.end(buffer.packed));
        head.end = ends.fold(head.end, u64::max);
    }
    // The names of version 7's sections are behind all of them.
    if let Some((_, size)) = head.section_head(input, head.end, 15) {
        head.end = head.end.saturating_add(16).saturating_add(size);
    }
    head.read.warnings.extend(joined(input, head.end, is));
    head.buffers.retain(|buffer| !buffer.cpus.is_empty());
    head.read.found.buffers = head.buffers.len();
    if plan.buffer >= head.buffers.len() {
        return Err(unusable("without data of any CPU"));
    }
    let buffer = head.buffers.swap_remove(plan.buffer);
    if !buffer.name.is_empty() {
        head.read.warnings.push(format!("The events are those of the instance {:?}.", buffer.name));
    }
    head.read.lacks = vec![Lack::Kinship, Lack::Processor];
    // A CPU without any data was off.
    head.read.cpus = u16::try_from(buffer.cpus.len()).ok().filter(|n| *n <= MAX_CPUS);
    head.page_size = buffer.page_size.unwrap_or(head.page_size);
    head.clock = buffer.clock.clone().unwrap_or(head.clock);
    let Some(layout) = head.layout else {
        return Err(unusable("without a description of its pages (header_page)"));
    };
    if !head.decoder.knows_switches() {
        return Err(TraceError::NoSwitches { name: input.name.clone(), events: 0 });
    }
    if !(64..=MOST_PAGE).contains(&head.page_size) || head.page_size <= layout.data {
        return Err(unusable("with an impossible page size"));
    }
    match (head.clock.as_str(), head.tsc) {
        ("x86-tsc" | "tsc2nsec", None) | ("counter", _) => head.read.warnings.push(format!(
            "The clock {} does not count nanoseconds; times are only right in proportion.",
            head.clock
        )),
        _ => {}
    }
    Ok(merge(head, &buffer, layout, input, comms, sink))
}

impl DatHead {
    /// What follows the event formats in version 6.
    fn version_6(&mut self, mut take: Take<'_>, input: &TraceInput) -> Option<()> {
        for _ in 0..2 {
            let n = take.u32()?;
            take.bytes(u64::from(n))?;
        }
        let n = take.u64()?;
        take.bytes(n)?;
        let cpus = take.u32()?;
        if cpus > u32::from(MAX_CPUS) {
            return None;
        }
        let left = self.options(&mut take)?;
        if left == b"latency  \0" {
            // The text begins where the head ends; `take` knows how much of the prefix is left.
            self.text = Some(input.len().min(MOST_HEAD) - take.rest.len() as u64);
            return Some(());
        }
        let top = Buffer { cpus: table(&mut take, cpus)?, ..Buffer::default() };
        self.buffers.push(top);
        for (at, name) in std::mem::take(&mut self.instances) {
            if self.instance(at, name, cpus, input).is_none() {
                self.read.warnings.push("A buffer's description is damaged and left out.".into());
            }
        }
        Some(())
    }

    /// Options, if any, up to the word that says what follows them.
    fn options<'a>(&mut self, take: &mut Take<'a>) -> Option<&'a [u8]> {
        loop {
            let word = take.bytes(10)?;
            match word {
                b"options  \0" => loop {
                    let id = take.u16()?;
                    if id == 0 {
                        break;
                    }
                    let n = take.u32()?;
                    let content = take.bytes(u64::from(n))?;
                    self.option(id, content);
                    if id == 3 {
                        let mut take = Take { rest: content, order: self.decoder.order };
                        let named =
                            (|| Some((take.u64()?, String::from_utf8_lossy(take.string()?).into_owned())))();
                        self.instances.extend(named.filter(|_| self.instances.len() < MOST_BUFFERS));
                    }
                },
                b"latency  \0" | b"flyrecord\0" => return Some(word),
                _ => return None,
            }
        }
    }

    /// The table of CPUs of an instance in version 6: it has as many as the top buffer.
    fn instance(&mut self, at: u64, name: String, cpus: u32, input: &TraceInput) -> Option<()> {
        let most = (u64::from(cpus) * 16 + MOST_LIST as u64).min(input.len().checked_sub(at)?);
        let content = input.section(at, most)?;
        let mut take = Take { rest: &content, order: self.decoder.order };
        let clock = self.clock.clone();
        if self.options(&mut take)? != b"flyrecord\0" {
            return None;
        }
        let clock = Some(std::mem::replace(&mut self.clock, clock));
        self.buffers.push(Buffer { name, clock, cpus: table(&mut take, cpus)?, ..Buffer::default() });
        Some(())
    }

    /// Options that versions 6 and 7 share.
    fn option(&mut self, id: u16, content: &[u8]) {
        let mut take = Take { rest: content, order: self.decoder.order };
        match id {
            // TRACECLOCK: the kernel's list, the chosen one in brackets.
            4 => {
                let text = String::from_utf8_lossy(content);
                let chosen = text.split_once('[').and_then(|(_, r)| r.split_once(']'));
                self.clock = chosen.map_or("", |(c, _)| c).into();
            }
            14 => {
                if let (Some(mult), Some(shift), Some(offset)) = (take.u32(), take.u32(), take.u64()) {
                    self.tsc = Some(Tsc { mult, shift: shift.min(63), offset });
                }
            }
            _ => {}
        }
    }

    /// The packing and the option lists of version 7.
    fn version_7(&mut self, mut take: Take<'_>, input: &TraceInput) -> Result<(), String> {
        const CUT: &str = "is cut short within its header";
        let name = take.string().ok_or(CUT)?;
        take.string().ok_or(CUT)?;
        self.packing = match name {
            b"none" => Packing::None,
            b"zstd" => Packing::Zstd,
            b"zlib" => Packing::Zlib,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("packed with \"{other:.20}\", expected none, zstd or zlib"));
            }
        };
        let mut list = take.u64().ok_or(CUT)?;
        let (mut formats, mut strings) = (None, None);
        for _ in 0..MOST_LISTS {
            if list == 0 {
                break;
            }
            if let Some((_, size)) = self.section_head(input, list, 0) {
                self.end = self.end.max(list.saturating_add(16).saturating_add(size));
            }
            let Some(content) = self.section(input, list, 0) else {
                self.read.warnings.push("An options section cannot be read and is left out.".into());
                break;
            };
            let content = &content[..content.len().min(MOST_LIST)];
            let mut take = Take { rest: content, order: self.decoder.order };
            list = 0;
            while let (Some(id), Some(n)) = (take.u16(), take.u32()) {
                let Some(content) = take.bytes(u64::from(n)) else { break };
                let offset = self.decoder.order.u64(content);
                match id {
                    0 => {
                        list = offset.unwrap_or(0);
                        break;
                    }
                    3 => self.buffer(content, input),
                    16 if self.layout.is_none() => {
                        let section = offset.and_then(|at| self.section(input, at, 16));
                        if let Some(section) = section {
                            let mut take = Take { rest: &section, order: self.decoder.order };
                            self.layout = header_info(&mut take).and_then(PageLayout::parse);
                        }
                    }
                    18 => formats = offset,
                    20 => strings = offset,
                    _ => self.option(id, content),
                }
            }
        }
        if let Some(section) = strings.and_then(|at| self.section(input, at, 20)) {
            self.decoder.learn_strings(section.get(4..).unwrap_or(&[]));
        }
        let formats = formats.and_then(|at| self.section(input, at, 18));
        let Some(formats) = formats else { return Err("whose event formats cannot be read".into()) };
        let mut take = Take { rest: &formats, order: self.decoder.order };
        if self.decoder.learn_systems(&mut take).is_none() {
            self.read.warnings.push(
                "The tracepoint formats are cut short; events described after that are left out.".into(),
            );
        }
        Ok(())
    }

    /// A section's head: flags and size.
    fn section_head(&self, input: &TraceInput, at: u64, id: u16) -> Option<(bool, u64)> {
        let head = input.section(at, 16)?;
        let mut take = Take { rest: &head, order: self.decoder.order };
        if take.u16()? != id {
            return None;
        }
        let packed = take.u16()? & 1 != 0;
        take.u32()?;
        Some((packed, take.u64()?))
    }

    /// A section's content, unpacked.
    fn section(&self, input: &TraceInput, at: u64, id: u16) -> Option<Vec<u8>> {
        let (packed, size) = self.section_head(input, at, id)?;
        if size > MOST_HEAD {
            return None;
        }
        let content = input.section(at.checked_add(16)?, size)?;
        if !packed {
            return Some(content);
        }
        let mut take = Take { rest: &content, order: self.decoder.order };
        let (n, unpacked) = (take.u32()?, take.u32()?);
        self.packing.unpack(take.bytes(u64::from(n))?, unpacked as usize)
    }

    /// Option 3: a ring buffer. The top one is nameless.
    fn buffer(&mut self, content: &[u8], input: &TraceInput) {
        let mut take = Take { rest: content, order: self.decoder.order };
        let parsed = (|| {
            let section = take.u64()?;
            let name = String::from_utf8_lossy(take.string()?).into_owned();
            let clock = String::from_utf8_lossy(take.string()?).into_owned();
            let page = take.u32()?;
            let mut cpus = Vec::new();
            for _ in 0..take.u32()?.min(u32::from(MAX_CPUS)) {
                let cpu = take.u32()?;
                let (at, len) = (take.u64()?, take.u64()?);
                if cpu < u32::from(MAX_CPUS) && len > 0 {
                    cpus.push(CpuData { cpu: cpu as u16, at, size: len });
                }
            }
            Some((section, name, clock, page, cpus))
        })();
        let Some((section, name, clock, page, cpus)) = parsed else {
            self.read.warnings.push("A buffer's description is damaged and left out.".into());
            return;
        };
        let packed = self.section_head(input, section, 3).is_some_and(|(packed, _)| packed);
        let buffer = Buffer { name, clock: Some(clock), page_size: Some(page as usize), cpus, packed };
        let at = if buffer.name.is_empty() { 0 } else { self.buffers.len() };
        if self.buffers.len() < MOST_BUFFERS {
            self.buffers.insert(at, buffer);
        }
    }
}

/// Where the data of as many CPUs are, without those that have none.
fn table(take: &mut Take<'_>, cpus: u32) -> Option<Vec<CpuData>> {
    let mut all = Vec::new();
    for cpu in 0..cpus {
        let (at, size) = (take.u64()?, take.u64()?);
        if size > 0 {
            all.push(CpuData { cpu: cpu as u16, at, size });
        }
    }
    Some(all)
}

/// One CPU's pages, one at a time.
struct Stream<'a> {
    cpu: u16,
    window: Window<'a>,
    packing: Packing,
    /// Chunks not yet unpacked, when packed, and their greatest size.
    chunks: u32,
    most_chunk: usize,
    chunk: Vec<u8>,
    chunk_at: usize,
    page: Vec<u8>,
    /// Next entry and the end of the entries in `page`.
    at: usize,
    end: usize,
    time: u64,
    /// Lost before the page, not yet told.
    lost: u64,
    /// Pages or chunks that could not be used.
    bad: u64,
    bad_records: u64,
    lost_unknown: bool,
    /// Pages read.
    pages: u64,
    /// When its data begin, where the ring no longer held what came before.
    late: Option<u64>,
    /// The file ends before its data do.
    cut: bool,
}

impl Stream<'_> {
    /// Makes the next page current; false at the end of the data.
    fn next_page(&mut self, size: usize, layout: PageLayout, order: ByteOrder) -> bool {
        loop {
            self.page.clear();
            if self.packing == Packing::None {
                let bytes = self.window.peek(size);
                let n = bytes.len().min(size);
                self.page.extend_from_slice(&bytes[..n]);
                self.window.skip(n as u64);
            } else {
                if self.chunk_at >= self.chunk.len() && !self.next_chunk(order) {
                    return false;
                }
                let n = (self.chunk.len() - self.chunk_at).min(size);
                self.page.extend_from_slice(&self.chunk[self.chunk_at..self.chunk_at + n]);
                self.chunk_at += n;
            }
            if self.page.is_empty() {
                return false;
            }
            let commit = match layout.commit_size {
                4 => self.page.get(layout.commit..).and_then(|b| order.u32(b)).map(u64::from),
                _ => self.page.get(layout.commit..).and_then(|b| order.u64(b)),
            };
            let time = self.page.get(layout.time..).and_then(|b| order.u64(b));
            let (Some(time), Some(commit)) = (time, commit) else {
                self.bad += 1;
                continue;
            };
            let used = layout.data + (commit & COMMIT_BYTES) as usize;
            if used > self.page.len() {
                // Cut short or damaged: what is there of the entries may still be sound.
                self.bad += 1;
            }
            self.time = time;
            self.at = layout.data;
            self.end = used.min(self.page.len());
            self.pages += 1;
            if commit & COMMIT_LOST != 0 {
                self.late = self.late.or(Some(time).filter(|_| self.pages == 1));
                let after = self.page.get(used..).unwrap_or(&[]);
                let n =
                    if layout.commit_size == 4 { order.u32(after).map(u64::from) } else { order.u64(after) };
                let n = n.filter(|_| commit & COMMIT_LOST_STORED != 0);
                self.lost_unknown |= n.is_none();
                self.lost = self.lost.saturating_add(n.unwrap_or(1));
            }
            if self.at < self.end {
                return true;
            }
        }
    }

    fn next_chunk(&mut self, order: ByteOrder) -> bool {
        while self.chunks > 0 {
            self.chunks -= 1;
            let head = self.window.peek(8);
            let (Some(n), Some(size)) = (order.u32(head), head.get(4..).and_then(|b| order.u32(b))) else {
                break;
            };
            let n = n as usize;
            if n.max(size as usize) > self.most_chunk || n as u64 > self.window.left() {
                break;
            }
            self.window.skip(8);
            let packed = self.window.peek(n);
            let unpacked = packed.get(..n).and_then(|p| self.packing.unpack(p, size as usize));
            self.window.skip(n as u64);
            match unpacked {
                Some(chunk) if !chunk.is_empty() => {
                    self.chunk = chunk;
                    self.chunk_at = 0;
                    return true;
                }
                _ => self.bad += 1,
            }
        }
        if self.chunks > 0 {
            self.bad += u64::from(self.chunks);
            self.chunks = 0;
        }
        false
    }

    /// The next record's time and place in `page`, or `None` at the page's end.
    #[inline]
    fn next_record(&mut self, order: ByteOrder) -> Option<(u64, usize, usize)> {
        while self.at + 4 <= self.end {
            let word = order.u32(&self.page[self.at..])?;
            let (kind, delta) = if order == ByteOrder::Little {
                (word & 31, u64::from(word >> 5))
            } else {
                (word >> 27, u64::from(word & ((1 << 27) - 1)))
            };
            let at = self.at + 4;
            let next = self.page.get(at..self.end).and_then(|b| order.u32(b));
            match kind {
                1..=28 => {
                    let len = kind as usize * 4;
                    self.time = self.time.saturating_add(delta);
                    self.at = at + len;
                    return Some((self.time, at, len));
                }
                0 => {
                    // The length counts its own word; records are padded to 4 bytes.
                    let len = (next? as usize).checked_sub(4)?;
                    self.time = self.time.saturating_add(delta);
                    self.at = at + 4 + len.next_multiple_of(4);
                    return Some((self.time, at + 4, len));
                }
                29 => {
                    if delta == 0 {
                        return None;
                    }
                    self.time = self.time.saturating_add(delta);
                    self.at = at.checked_add(next? as usize)?;
                }
                30 => {
                    self.time = self.time.saturating_add((u64::from(next?) << 27) | delta);
                    self.at = at + 4;
                }
                _ => {
                    let low = (u64::from(next?) << 27) | delta;
                    self.time = (self.time & (0x1f << 59)) | (low & ((1 << 59) - 1));
                    self.at = at + 4;
                }
            }
        }
        None
    }
}

/// Reads all CPUs side by side.
fn merge<S: Sink>(
    head: DatHead,
    buffer: &Buffer,
    layout: PageLayout,
    input: &TraceInput,
    comms: &mut Comms,
    sink: &mut S,
) -> TraceRead {
    let (mut streams, beyond) = streams(&head, buffer, input);
    let DatHead { decoder, page_size, tsc, mut read, .. } = head;
    if beyond > 0 {
        read.warnings.push(format!("The file is cut short; {beyond} bytes of CPU data are missing."));
    }
    let reader = DatReader { decoder, page_size, layout, tsc };
    let mut heap = BinaryHeap::new();
    let mut pending: Vec<Option<Event>> = vec![None; streams.len()];
    for (i, stream) in streams.iter_mut().enumerate() {
        pending[i] = reader.next(stream, &mut read, comms);
        if let Some(event) = &pending[i] {
            heap.push(Reverse((event.time_ns, i)));
        }
    }
    while let Some(Reverse((_, i))) = heap.pop() {
        // As long as this CPU is the earliest, the heap need not move.
        // Of the same moment that of the lowest CPU comes first, as the kernel and trace-cmd print them.
        let until = heap.peek().map_or((u64::MAX, usize::MAX), |Reverse(next)| *next);
        while let Some(event) = pending[i] {
            if (event.time_ns, i) > until {
                heap.push(Reverse((event.time_ns, i)));
                break;
            }
            sink.event(&event, comms);
            pending[i] = reader.next(&mut streams[i], &mut read, comms);
        }
    }
    read.found.covered_from = streams.iter().filter_map(|s| s.late).map(|time| reader.nanos(time)).max();
    let ends = streams.iter().filter(|s| s.cut).map(|s| if s.pages > 0 { reader.nanos(s.time) } else { 0 });
    read.found.covered_to = ends.min();
    tell_damage(&streams, &mut read);
    read
}

/// A stream for each CPU, and how many bytes of theirs lie beyond the file's end.
fn streams<'i>(head: &DatHead, buffer: &Buffer, input: &'i TraceInput) -> (Vec<Stream<'i>>, u64) {
    let order = head.decoder.order;
    let mut beyond = 0u64;
    let mut streams: Vec<Stream<'_>> = Vec::new();
    let most_chunk = MOST_CHUNKS / buffer.cpus.len().max(1);
    // CPUs share no data: all together have at most the file. (Each holds a page of its own.)
    let mut left = input.len();
    for &CpuData { cpu, at, size: len } in &buffer.cpus {
        let mut missing = len.saturating_sub(left);
        let len = len.min(left);
        left -= len;
        let end = CpuData { cpu, at, size: len }.end(buffer.packed);
        missing = missing.saturating_add(end.saturating_sub(input.len().max(at)));
        beyond = beyond.saturating_add(missing);
        // A window a CPU: small ones, there may be hundreds.
        let mut window = input.window(at, end).step(32 << 10);
        let mut chunks = 0;
        if buffer.packed {
            chunks = order.u32(window.peek(4)).unwrap_or(0);
            window.skip(4);
        }
        streams.push(Stream {
            cpu,
            window,
            packing: if buffer.packed { head.packing } else { Packing::None },
            chunks,
            most_chunk,
            chunk: Vec::new(),
            chunk_at: 0,
            page: Vec::new(),
            at: 0,
            end: 0,
            time: 0,
            lost: 0,
            bad: 0,
            bad_records: 0,
            lost_unknown: false,
            pages: 0,
            late: None,
            cut: missing > 0,
        });
    }
    (streams, beyond)
}

/// What the entries of every stream are read by.
struct DatReader {
    decoder: Decoder,
    page_size: usize,
    layout: PageLayout,
    tsc: Option<Tsc>,
}

impl DatReader {
    fn nanos(&self, time: u64) -> u64 {
        match self.tsc {
            Some(t) => (((u128::from(time) * u128::from(t.mult)) >> t.shift) as u64).wrapping_add(t.offset),
            None => time,
        }
    }

    /// A stream's next event.
    fn next(&self, s: &mut Stream<'_>, read: &mut TraceRead, comms: &mut Comms) -> Option<Event> {
        let order = self.decoder.order;
        loop {
            if s.lost > 0 {
                let n = std::mem::take(&mut s.lost);
                read.lost = read.lost.saturating_add(n);
                let kind = EventKind::Lost(n);
                let time_ns = self.nanos(s.time);
                return Some(Event { time_ns, cpu: s.cpu, level: KernelContext::Task, current: 0, kind });
            }
            let Some((time, at, len)) = s.next_record(order) else {
                if s.next_page(self.page_size, self.layout, order) {
                    continue;
                }
                return None;
            };
            read.events += 1;
            // An entry that runs over the page's end is damage; what is left of it is too short to decode.
            let raw = s.page.get(at..at.saturating_add(len).min(s.end)).unwrap_or(&[]);
            match self.decoder.decode(raw, comms) {
                DecodedRecord::Event(d) => {
                    let time_ns = self.nanos(time);
                    return Some(Event {
                        time_ns,
                        cpu: s.cpu,
                        level: d.level,
                        current: d.current,
                        kind: d.kind,
                    });
                }
                DecodedRecord::Other => {}
                DecodedRecord::Bad => s.bad_records += 1,
            }
        }
    }
}

/// What could not be read, a sentence each.
fn tell_damage(streams: &[Stream<'_>], read: &mut TraceRead) {
    let sum = |f: fn(&Stream<'_>) -> u64| streams.iter().map(f).sum::<u64>();
    let (pages, records) = (sum(|s| s.bad), sum(|s| s.bad_records));
    if pages > 0 {
        read.warnings
            .push(format!("{pages} pages of CPU data are damaged or cut short; their rest is left out."));
    }
    if records > 0 {
        read.warnings.push(format!("{records} records are damaged and left out."));
    }
    if streams.iter().any(|s| s.lost_unknown) {
        read.warnings.push("Events were lost in number unknown; each such place counts as one.".into());
    }
}

/// Whether the bytes begin a trace.dat.
pub(crate) fn is(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

#[cfg(test)]
mod tests {
    //! Files by the letter of the specification, for what no recording at hand has: big-endian machines,
    //! 32-bit kernels, long gaps, absolute times, losses, zlib.

    use super::*;
    use crate::{ImportOptions, Source, visit};
    use std::io::Write as _;

    #[derive(Clone, Copy)]
    struct Machine {
        big: bool,
        /// Size of `commit`.
        long: usize,
    }

    impl Machine {
        fn bytes(self, value: u64, size: usize) -> Vec<u8> {
            let mut b = value.to_le_bytes()[..size].to_vec();
            if self.big {
                b.reverse();
            }
            b
        }

        /// An entry's first word.
        fn word(self, kind: u64, delta: u64) -> Vec<u8> {
            let w = if self.big { kind << 27 | delta } else { delta << 5 | kind };
            self.bytes(w, 4)
        }

        /// A cpu_idle record of 16 bytes.
        fn idle(self, state: u64) -> Vec<u8> {
            [self.bytes(9, 2), vec![0, 0], self.bytes(0, 4), self.bytes(state, 4), self.bytes(1, 4)].concat()
        }

        /// A sched_switch record of 12 bytes; all of its fields are the same word.
        fn switch(self) -> Vec<u8> {
            [self.bytes(8, 2), vec![0, 0], self.bytes(0, 4), self.bytes(0, 4)].concat()
        }

        fn page(self, time: u64, flags: u64, entries: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
            let entries = entries.concat();
            let commit = self.bytes(flags | entries.len() as u64, self.long);
            let mut page = [self.bytes(time, 8), commit, entries, after.to_vec()].concat();
            page.resize(256, 0);
            page
        }

        fn formats(self) -> Vec<u8> {
            let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
            let idle = format!(
                "name: cpu_idle\nID: 9\nformat:\n{common}\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\
                 \tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n"
            );
            let mut switch = format!("name: sched_switch\nID: 8\nformat:\n{common}");
            for field in
                ["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]
            {
                switch += &format!("\tfield:int {field};\toffset:8;\tsize:4;\tsigned:1;\n");
            }
            let file = |text: &str| [self.bytes(text.len() as u64, 8), text.into()].concat();
            [self.bytes(1, 4), b"sched\0".to_vec(), self.bytes(2, 4), file(&idle), file(&switch)].concat()
        }

        fn header_info(self) -> Vec<u8> {
            let page = format!(
                "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:{0};\tsigned:1;\n\
                 \tfield: char data;\toffset:{1};\tsize:240;\tsigned:0;\n",
                self.long,
                8 + self.long
            );
            [
                b"header_page\0".to_vec(),
                self.bytes(page.len() as u64, 8),
                page.into_bytes(),
                b"header_event\0".to_vec(),
                self.bytes(0, 8),
            ]
            .concat()
        }

        fn head(self, version: &[u8]) -> Vec<u8> {
            let kind = vec![u8::from(self.big), self.long as u8];
            [MAGIC.to_vec(), version.to_vec(), vec![0], kind, self.bytes(256, 4)].concat()
        }

        fn version_6(self, cpus: &[Vec<u8>]) -> Vec<u8> {
            self.version_6_with(cpus, None)
        }

        /// With the data of an instance after those of the top buffer: `tracecmd_append_buffer_cpu_data` of trace-cmd 3.1.6.
        fn version_6_with(self, cpus: &[Vec<u8>], instance: Option<&[Vec<u8>]>) -> Vec<u8> {
            let mut file = [
                self.head(b"6"),
                self.header_info(),
                self.bytes(0, 4),
                self.formats(),
                self.bytes(0, 4),
                self.bytes(0, 4),
                self.bytes(0, 8),
                self.bytes(cpus.len() as u64, 4),
                b"options  \0".to_vec(),
                self.bytes(4, 2),
                self.bytes(15, 4),
                b"[local] global\0".to_vec(),
            ]
            .concat();
            let place = file.len() + 6;
            if instance.is_some() {
                file.extend([self.bytes(3, 2), self.bytes(13, 4), vec![0; 8], b"inst\0".to_vec()].concat());
            }
            file.extend([self.bytes(0, 2), b"flyrecord\0".to_vec()].concat());
            self.append(&mut file, cpus);
            if let Some(instance) = instance {
                let at = self.bytes(file.len() as u64, 8);
                file[place..place + 8].copy_from_slice(&at);
                file.extend(b"flyrecord\0");
                self.append(&mut file, instance);
            }
            file
        }

        /// A table of CPUs, and their data.
        fn append(self, file: &mut Vec<u8>, cpus: &[Vec<u8>]) {
            let mut at = file.len() + cpus.len() * 16;
            for cpu in cpus {
                file.extend(self.bytes(at as u64, 8));
                file.extend(self.bytes(cpu.len() as u64, 8));
                at += cpu.len();
            }
            file.extend(cpus.concat());
        }

        /// Version 7 with zlib: header info packed, formats not, one CPU in two chunks.
        fn version_7(self, pages: [&[u8]; 2]) -> Vec<u8> {
            self.version_7_with(pages, None)
        }

        fn version_7_with(self, pages: [&[u8]; 2], instance: Option<&[u8]>) -> Vec<u8> {
            let pack = |bytes: &[u8]| {
                let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                z.write_all(bytes).unwrap();
                let packed = z.finish().unwrap();
                [self.bytes(packed.len() as u64, 4), self.bytes(bytes.len() as u64, 4), packed].concat()
            };
            let section = |id, flags, content: &[u8]| {
                let size = self.bytes(content.len() as u64, 8);
                [self.bytes(id, 2), self.bytes(flags, 2), self.bytes(0, 4), size, content.to_vec()].concat()
            };
            let option = |id, content: &[u8]| {
                [self.bytes(id, 2), self.bytes(content.len() as u64, 4), content.to_vec()].concat()
            };
            let mut file = [self.head(b"7"), b"zlib\x001.2\0".to_vec()].concat();
            let list = file.len();
            file.extend([0; 8]);
            let info = file.len() as u64;
            file.extend(section(16, 1, &pack(&self.header_info())));
            let formats = file.len() as u64;
            file.extend(section(18, 0, &self.formats()));
            let chunks = |pages: &[&[u8]]| {
                let packed: Vec<Vec<u8>> = pages.iter().map(|page| pack(page)).collect();
                [self.bytes(pages.len() as u64, 4), packed.concat()].concat()
            };
            let mut buffers = Vec::new();
            let all = [(&b"\0"[..], chunks(&pages))].into_iter();
            for (name, chunks) in all.chain(instance.map(|page| (&b"inst\0"[..], chunks(&[page])))) {
                let data = file.len() as u64;
                file.extend(section(3, 1, &chunks));
                let buffer = [
                    self.bytes(data, 8),
                    name.to_vec(),
                    b"local\0".to_vec(),
                    self.bytes(256, 4),
                    self.bytes(1, 4),
                    self.bytes(3, 4),
                    self.bytes(data + 16, 8),
                    self.bytes(chunks.len() as u64 - 4, 8),
                ]
                .concat();
                buffers.extend(option(3, &buffer));
            }
            let second = file.len() as u64;
            file.extend(section(0, 0, &[buffers, option(0, &[0; 8])].concat()));
            let at = file.len() as u64;
            let options = [
                option(16, &self.bytes(info, 8)),
                option(18, &self.bytes(formats, 8)),
                option(0, &self.bytes(second, 8)),
            ];
            file.extend(section(0, 0, &options.concat()));
            file[list..list + 8].copy_from_slice(&self.bytes(at, 8));
            file
        }
    }

    #[derive(Default)]
    struct Seen(Vec<(u64, u16, EventKind)>);

    impl Sink for Seen {
        fn event(&mut self, event: &Event, _: &Comms) {
            self.0.push((event.time_ns, event.cpu, event.kind));
        }
    }

    fn events(file: Vec<u8>) -> (Vec<(u64, u16, EventKind)>, TraceRead) {
        let mut seen = Seen::default();
        let source = Source::Bytes { name: "made".into(), data: file.into() };
        let read = visit(source, &ImportOptions::default(), &mut seen).unwrap();
        (seen.0, read)
    }

    fn idle(time: u64, cpu: u16, state: u32) -> (u64, u16, EventKind) {
        (time, cpu, EventKind::CpuIdle { cpu: 1, state: Some(state) })
    }

    #[test]
    fn entries_of_every_kind_on_machines_of_every_kind() {
        for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
            let m = Machine { big, long };
            let first = m.page(
                1 << 60,
                0,
                &[
                    // A short record, one with a length word, a discarded one.
                    [m.word(4, 10), m.idle(1)].concat(),
                    [m.word(0, 5), m.bytes(20, 4), m.idle(2)].concat(),
                    [m.word(29, 7), m.bytes(12, 4), vec![0xff; 8]].concat(),
                    // 2^27 * 3 + 4 ns later; then an absolute time without its top five bits.
                    [m.word(30, 4), m.bytes(3, 4)].concat(),
                    [m.word(4, 0), m.idle(3)].concat(),
                    [m.word(31, 9), m.bytes(16, 4)].concat(),
                    [m.word(4, 1), m.idle(4)].concat(),
                    // The rest of the page is empty.
                    m.word(29, 0),
                    [m.word(4, 1), m.idle(5)].concat(),
                ],
                &[],
            );
            let lost = COMMIT_LOST | if long == 8 { COMMIT_LOST_STORED } else { 0 };
            let second = m.page(
                (1 << 60) + (1 << 32),
                lost,
                &[[m.word(4, 0), m.idle(6)].concat()],
                &m.bytes(77, long),
            );
            let other = m.page((1 << 60) + 12, 0, &[[m.word(4, 0), m.idle(7)].concat()], &[]);
            let base = 1 << 60;
            let (seen, read) = events(m.version_6(&[[first, second].concat(), other]));
            let (n, warned) = if long == 8 { (77, 0) } else { (1, 1) };
            assert_eq!(
                seen,
                [
                    idle(base + 10, 0, 1),
                    idle(base + 12, 1, 7),
                    idle(base + 15, 0, 2),
                    idle(base + 22 + (3 << 27) + 4, 0, 3),
                    idle(base + (16 << 27) + 10, 0, 4),
                    (base + (1 << 32), 0, EventKind::Lost(n)),
                    idle(base + (1 << 32), 0, 6),
                ],
                "big {big}, long {long}"
            );
            assert_eq!((read.events, read.lost, read.warnings.len()), (6, n, warned), "{:?}", read.warnings);
        }
    }

    #[test]
    fn version_7_with_zlib_and_two_option_lists() {
        for big in [false, true] {
            let m = Machine { big, long: 8 };
            let page = |time, state| m.page(time, 0, &[[m.word(4, 0), m.idle(state)].concat()], &[]);
            let file = m.version_7([&[page(100, 1), page(200, 2)].concat(), &page(300, 3)]);
            let (seen, read) = events(file);
            // CPU 3 wrote of CPU 1; the others were off: the two are numbered without holes.
            let of_the_first = |time, state| (time, 1, EventKind::CpuIdle { cpu: 0, state: Some(state) });
            assert_eq!(seen, [of_the_first(100, 1), of_the_first(200, 2), of_the_first(300, 3)]);
            assert_eq!(
                read.warnings,
                [
                    "CPUs 1, 3 were recorded and count as 0 to 1; others were off, or are not in the recording."
                ]
            );
        }
    }

    /// The top buffer is empty or has no switch: those of the instance are read. (trace-cmd shows them all.)
    #[test]
    fn a_buffer_with_switches_is_found() {
        for big in [false, true] {
            let m = Machine { big, long: 8 };
            let page =
                |time, record: Vec<u8>, words| m.page(time, 0, &[[m.word(words, 0), record].concat()], &[]);
            let (idle, switch) = (page(100, m.idle(1), 4), page(200, m.switch(), 3));
            let empty: &[u8] = &[];
            for (top, name) in [(idle.as_slice(), "idle states"), (empty, "nothing")] {
                let of_6 = m.version_6_with(&[top.to_vec(), vec![]], Some(&[vec![], switch.clone()]));
                let of_7 = m.version_7_with([&idle, &idle], Some(&switch));
                for (file, version) in [(of_6, 6), (of_7, 7)] {
                    let (seen, read) = events(file);
                    assert_eq!(seen.len(), 1, "{version}, {name}");
                    assert!(matches!(seen[0], (200, _, EventKind::Switch(_))), "{version}, {name}: {seen:?}");
                    let told = read.warnings.iter().any(|w| w.contains("instance \"inst\""));
                    assert!(told, "{version}, {name}: {:?}", read.warnings);
                }
            }
            // Where the top buffer has switches it is that.
            let (seen, _) =
                events(m.version_6_with(std::slice::from_ref(&switch), Some(&[page(300, m.switch(), 3)])));
            assert_eq!(seen.iter().map(|e| e.0).collect::<Vec<_>>(), [200]);
        }
    }

    /// A page that says that events were lost before it, as the first of its CPU; and a file that ends within the data of one.
    #[test]
    fn only_what_all_cpus_cover_is_used() {
        let m = Machine { big: false, long: 8 };
        let page = |time, flags| m.page(time, flags, &[[m.word(3, 0), m.switch()].concat()], &[]);
        let steady: Vec<u8> = (0..10).flat_map(|n| page(1000 + 100 * n, 0)).collect();
        let late = [page(1450, COMMIT_LOST), page(1850, 0)].concat();
        let times = |file: Vec<u8>| {
            let (seen, read) = events(file);
            let switches = seen.iter().filter(|e| matches!(e.2, EventKind::Switch(_)));
            (switches.map(|e| e.0).collect::<Vec<_>>(), read.warnings)
        };
        let (seen, warnings) = times(m.version_6(&[steady.clone(), late]));
        assert_eq!(seen, [1450, 1500, 1600, 1700, 1800, 1850, 1900]);
        assert!(warnings.iter().any(|w| w.contains("Not all CPUs")), "{warnings:?}");
        // The second CPU's data are cut after their fourth page.
        let mut file = m.version_6(&[steady.clone(), steady]);
        file.truncate(file.len() - 6 * 256);
        assert_eq!(times(file.clone()).0, [1000, 1000, 1100, 1100, 1200, 1200, 1300, 1300]);
        // All of them are missing: nothing is covered.
        file.truncate(file.len() - 4 * 256);
        let source = Source::Bytes { name: "cut".into(), data: file.into() };
        let refused = visit(source, &ImportOptions::default(), &mut Seen::default()).unwrap_err().to_string();
        assert!(refused.contains("not all CPUs are recorded"), "{refused}");
    }

    #[test]
    fn option_lists_that_go_round_end() {
        let m = Machine { big: false, long: 8 };
        let mut file = [m.head(b"7"), b"none\0\0".to_vec()].concat();
        let at = file.len() as u64 + 8;
        file.extend(m.bytes(at, 8));
        file.extend([m.bytes(0, 2), m.bytes(0, 2), m.bytes(0, 4), m.bytes(14, 8)].concat());
        file.extend([m.bytes(0, 2), m.bytes(8, 4), m.bytes(at, 8)].concat());
        let source = Source::Bytes { name: "loop".into(), data: file.into() };
        assert!(visit(source, &ImportOptions::default(), &mut Seen::default()).is_err());
    }
}
