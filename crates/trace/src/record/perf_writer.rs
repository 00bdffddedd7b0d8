//! perf.data, as written here.
//!
//! | part | content |
//! |---|---|
//! | header | `PERFILE2`, where attributes and data are, which features follow |
//! | ids | the kernel's numbers of each tracepoint's events, one a CPU; then of each counter's |
//! | attributes | `perf_event_attr` and the place of its ids, for each tracepoint and counter |
//! | early features | format files of the tracepoints, kernel, CPUs, event names, what the recorder notes by then |
//! | data | names and parents of the tasks that exist, then records as the rings had them, a mark after each round |
//! | features | a table of the same, with what the recorder notes at the end |
//!
//! Until the end the header tells of no data, and the early features stand where they would follow it. So a recording whose
//! recorder was killed has all that its records are read with: `crate::read` takes those that are whole, and says
//! that it is incomplete.
//!
//! The host's name and the command line are left out: recordings are made to be shown to others.

use crate::Notes;
use crate::notes::perf_string;
use crate::record::events::{Opened, Tracefs, Tracepoint, attributes, counter_attributes};
use crate::record::ring::Ring;
use perf_event_open_sys::bindings::perf_event_attr;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wattwise_output::Recording;

/// Bytes of `perf_event_attr` in the file: its seventh version, which every perf since 5.13 knows.
const ATTR_BYTES: usize = 128;
const HEADER_BYTES: u64 = 104;

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_FINISHED_ROUND: u32 = 68;

/// Features by bit number, as perf numbers them.
const TRACING_DATA: u32 = 1;
const OSRELEASE: u32 = 4;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;
const CPUDESC: u32 = 8;
const EVENT_DESC: u32 = 12;

/// What the data holds.
pub(super) struct DataCounts {
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
}

/// Room for what the recorder notes once the command runs: its process id, beside what was noted before.
const NOTES_GROW_BY: usize = 64;

/// A recording in the making.
pub(super) struct PerfWriter {
    out: Recording,
    attrs_at: u64,
    attrs: usize,
    /// The features that do not change, and where their contents are.
    fixed: Vec<(u32, SectionPlace)>,
    /// Where the early features' table is, and room for the notes behind it.
    table_at: u64,
    notes: SectionPlace,
    data_at: u64,
    data_bytes: u64,
    /// Whether anything came since the last round's mark.
    fresh: bool,
    /// Samples so far, where somebody watches.
    seen: Option<u64>,
}

/// Where a feature's content is: its place and its length.
#[derive(Clone, Copy)]
struct SectionPlace {
    at: u64,
    bytes: u64,
}

impl SectionPlace {
    fn entry(self) -> [u8; 16] {
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&self.at.to_le_bytes());
        entry[8..].copy_from_slice(&self.bytes.to_le_bytes());
        entry
    }
}

impl PerfWriter {
    /// Writes everything before the data.
    pub(super) fn create(
        path: &Path,
        kinds: &[Tracepoint],
        opened: &Opened,
        tracefs: &Tracefs,
        cpus: &[u32],
        notes: &Notes,
    ) -> io::Result<PerfWriter> {
        let mut head = vec![0u8; HEADER_BYTES as usize];
        let mut places = Vec::new();
        let counted = opened.counters.iter().map(|c| &c.ids);
        for ids in opened.ids.iter().chain(counted) {
            places.push(SectionPlace { at: head.len() as u64, bytes: 8 * ids.len() as u64 });
            ids.iter().for_each(|id| head.extend(id.to_le_bytes()));
        }
        let attrs_at = head.len() as u64;
        let attrs = all_attributes(kinds, opened);
        for ((_, attr), ids) in attrs.iter().zip(places) {
            head.extend(attr);
            head.extend(ids.entry());
        }
        let table_at = head.len() as u64;
        let contents: [(u32, Vec<u8>); 6] = [
            (TRACING_DATA, tracing_data(kinds, tracefs)),
            (OSRELEASE, text_feature(&read_line("/proc/sys/kernel/osrelease"))),
            (ARCH, text_feature(std::env::consts::ARCH)),
            (NRCPUS, [cpus.len() as u32; 2].iter().flat_map(|n| n.to_le_bytes()).collect()),
            (CPUDESC, text_feature(&cpu_name())),
            (EVENT_DESC, event_desc(kinds, opened)),
        ];
        head.resize(head.len() + 16 * (contents.len() + 1), 0);
        let early = early_notes(notes);
        let notes = SectionPlace { at: head.len() as u64, bytes: early.len() as u64 };
        head.extend(&early);
        head.resize(head.len() + early.len() + NOTES_GROW_BY, 0);
        let mut fixed = Vec::new();
        for (feature, content) in contents {
            fixed.push((feature, SectionPlace { at: head.len() as u64, bytes: content.len() as u64 }));
            head.extend(content);
        }
        head.resize(head.len().next_multiple_of(8), 0);
        let data_at = head.len() as u64;
        let out = Recording::create(path)?;
        let mut writer = PerfWriter {
            out,
            attrs_at,
            attrs: attrs.len(),
            fixed,
            table_at,
            notes,
            data_at,
            data_bytes: 0,
            fresh: false,
            seen: None,
        };
        let table = writer.table(notes);
        head[table_at as usize..][..table.len()].copy_from_slice(&table);
        let header = writer.header(table_at, 0);
        head[..header.len()].copy_from_slice(&header);
        writer.out.file().write_all(&head)?;
        Ok(writer)
    }

    /// The header, with data from a place on.
    fn header(&self, data_at: u64, data_bytes: u64) -> Vec<u8> {
        let mut h = Vec::with_capacity(HEADER_BYTES as usize);
        h.extend(b"PERFILE2");
        let numbers = [
            HEADER_BYTES,
            (ATTR_BYTES + 16) as u64,
            self.attrs_at,
            ((ATTR_BYTES + 16) * self.attrs) as u64,
            data_at,
            data_bytes,
            0,
            0,
        ];
        numbers.iter().for_each(|n| h.extend(n.to_le_bytes()));
        let mut bits = [0u64; 4];
        let features = self.fixed.iter().map(|(feature, _)| *feature).chain([crate::notes::FEATURE]);
        features.for_each(|f| bits[(f / 64) as usize] |= 1 << (f % 64));
        bits.iter().for_each(|b| h.extend(b.to_le_bytes()));
        h
    }

    /// The table of features, in the order of their numbers: the notes have the last.
    fn table(&self, notes: SectionPlace) -> Vec<u8> {
        self.fixed.iter().map(|(_, place)| *place).chain([notes]).flat_map(SectionPlace::entry).collect()
    }

    /// Notes what is known once the command runs, should the recorder be killed.
    pub(super) fn note(&mut self, notes: &Notes) -> io::Result<()> {
        let content = early_notes(notes);
        let room = self.notes.bytes as usize + NOTES_GROW_BY;
        if content.len() > room {
            return Ok(());
        }
        // Beside the first notes, which count until the table names these.
        let place = SectionPlace { at: self.notes.at + self.notes.bytes, bytes: content.len() as u64 };
        let entry_at = self.table_at + 16 * self.fixed.len() as u64;
        let file = self.out.file();
        file.write_all_at(&content, place.at)?;
        file.write_all_at(&place.entry(), entry_at)
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.file().write_all(bytes)?;
        self.data_bytes += bytes.len() as u64;
        Ok(())
    }

    /// From here on samples are counted as they are written.
    pub(super) fn count_as_it_goes(&mut self) {
        self.seen = Some(0);
    }

    /// Samples written so far; 0 where they are not counted.
    pub(super) fn seen(&self) -> u64 {
        self.seen.unwrap_or(0)
    }

    /// Copies what is new in a ring.
    pub(super) fn stretch(&mut self, ring: &mut Ring) -> io::Result<()> {
        // The two stretches of a ring are one row of records: one may lie across the ring's end.
        let mut skip = 0;
        ring.read(|bytes| {
            self.fresh = true;
            if let Some(seen) = &mut self.seen {
                *seen += samples(bytes, &mut skip);
            }
            self.out.file().write_all(bytes)?;
            self.data_bytes += bytes.len() as u64;
            Ok(())
        })
    }

    /// Marks the end of a pass over all rings.
    pub(super) fn end_of_round(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.fresh) {
            return Ok(());
        }
        let mut mark = RECORD_FINISHED_ROUND.to_le_bytes().to_vec();
        mark.extend([0, 0, 8, 0]);
        self.data(&mark)
    }

    /// Names and parents of the tasks that exist already, as records: the rings only tell of changes.
    pub(super) fn names_of_tasks(&mut self) -> io::Result<()> {
        let mut records = Vec::new();
        for process in numbers_in(Path::new("/proc")) {
            let parent = parent_of(process);
            for task in numbers_in(&PathBuf::from(format!("/proc/{process}/task"))) {
                // Threads count as started by their process's first.
                let parent = if task == process { parent } else { process };
                let numbers = [process, parent, task, parent];
                let mut body: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                body.extend(0u64.to_le_bytes());
                side_record(&mut records, RECORD_FORK, &body);

                let name = std::fs::read(format!("/proc/{process}/task/{task}/comm")).unwrap_or_default();
                let name = name.strip_suffix(b"\n").unwrap_or(&name);
                let name = &name[..name.len().min(15)];
                let mut body = [process.to_le_bytes(), task.to_le_bytes()].concat();
                body.extend(name);
                body.resize((8 + name.len() + 1).next_multiple_of(8), 0);
                side_record(&mut records, RECORD_COMM, &body);
            }
        }
        self.data(&records)
    }

    /// Writes what follows the data, counts the records, and packs the file if it is to be.
    pub(super) fn finish(mut self, notes: &Notes, packed: bool) -> io::Result<DataCounts> {
        let content = notes.encode().unwrap_or_default();
        let end = self.data_at + self.data_bytes;
        let behind = end + 16 * (self.fixed.len() as u64 + 1);
        let mut tail = self.table(SectionPlace { at: behind, bytes: content.len() as u64 });
        tail.extend(content);
        let header = self.header(self.data_at, self.data_bytes);
        let file = self.out.file();
        file.write_all_at(&tail, end)?;
        // From here on it is complete.
        file.write_all_at(&header, 0)?;
        let counts = self.count()?;
        if packed {
            let (from, mut into) = self.out.packed()?;
            wattwise_packed::pack(BufReader::new(from), &mut into, 19)?;
            into.finish()?;
        } else {
            self.out.finish()?;
        }
        Ok(counts)
    }

    /// Reads the data's record headers once more, now that nobody is measured.
    fn count(&mut self) -> io::Result<DataCounts> {
        let file = self.out.file();
        file.seek(SeekFrom::Start(self.data_at))?;
        let mut data = BufReader::with_capacity(1 << 20, file.take(self.data_bytes));
        let mut counts = DataCounts { bytes: self.data_bytes, events: 0, lost: 0 };
        let mut head = [0u8; 8];
        let mut body = Vec::new();
        while data.read_exact(&mut head).is_ok() {
            let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let size = usize::from(u16::from_le_bytes([head[6], head[7]]));
            body.resize(size.saturating_sub(8), 0);
            data.read_exact(&mut body)?;
            match kind {
                RECORD_SAMPLE => counts.events += 1,
                // The event's number, then how many were lost.
                RECORD_LOST => {
                    counts.lost +=
                        body.get(8..16).map_or(0, |b| b.iter().rev().fold(0, |n, &x| n << 8 | u64::from(x)));
                }
                _ => {}
            }
        }
        Ok(counts)
    }
}

/// Samples whose records begin in these bytes. The first `skip` bytes are the rest of an earlier record; what the last record has
/// beyond the end is left there. Records are multiples of 8 bytes, as rings are, so that no head is ever divided.
fn samples(bytes: &[u8], skip: &mut usize) -> u64 {
    let (mut at, mut count) = (*skip, 0);
    while let Some(head) = bytes.get(at..at + 8) {
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        count += u64::from(kind == RECORD_SAMPLE);
        at += usize::from(u16::from_le_bytes([head[6], head[7]])).max(8);
    }
    *skip = at.saturating_sub(bytes.len());
    count
}

/// What is noted before the end.
fn early_notes(notes: &Notes) -> Vec<u8> {
    Notes { incomplete: true, ..notes.clone() }.encode().unwrap_or_default()
}

/// Numeric names in a folder, in order.
fn numbers_in(folder: &Path) -> Vec<u32> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = names.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn read_line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The processor's name, as `/proc/cpuinfo` has it; empty where it has none.
pub(super) fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':')).map_or_else(String::new, |(_, name)| name.trim().to_owned())
}

/// A process's parent; 0 where it is gone or has none.
fn parent_of(process: u32) -> u32 {
    // `PID (NAME) STATE PARENT ...`, and the name may hold anything.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0)
}

/// A record that is no sample: header, body, and a sample's id of zeros (pid and tid, time, CPU, identifier).
fn side_record(into: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let id = [0u8; 32];
    into.extend(kind.to_le_bytes());
    into.extend([0, 0]);
    into.extend(((8 + body.len() + id.len()) as u16).to_le_bytes());
    into.extend(body);
    into.extend(id);
}

/// An attribute as the file holds it.
fn attr_bytes(mut attr: perf_event_attr) -> Vec<u8> {
    attr.size = ATTR_BYTES as u32;
    let whole: *const u8 = (&raw const attr).cast();
    // SAFETY: the structure is plain integers without padding, at least this long, and was zeroed.
    unsafe { std::slice::from_raw_parts(whole, ATTR_BYTES) }.to_vec()
}

/// Names and attributes of all events: the tracepoints, then what is counted.
fn all_attributes(kinds: &[Tracepoint], opened: &Opened) -> Vec<(String, Vec<u8>)> {
    let counted = !opened.counters.is_empty();
    let tracepoints = kinds.iter().enumerate().map(|(k, kind)| {
        let attr = attributes(kind, k == 0, counted, 0);
        (format!("{}:{}", kind.system, kind.name), attr_bytes(attr))
    });
    let counters = opened.counters.iter();
    let counters = counters.map(|c| (c.name.to_owned(), attr_bytes(counter_attributes(c.number, 0))));
    tracepoints.chain(counters).collect()
}

fn text_feature(text: &str) -> Vec<u8> {
    perf_string(text)
}

fn event_desc(kinds: &[Tracepoint], opened: &Opened) -> Vec<u8> {
    let attrs = all_attributes(kinds, opened);
    let mut out = (attrs.len() as u32).to_le_bytes().to_vec();
    out.extend((ATTR_BYTES as u32).to_le_bytes());
    let counted = opened.counters.iter().map(|c| &c.ids);
    for ((name, attr), ids) in attrs.into_iter().zip(opened.ids.iter().chain(counted)) {
        out.extend(attr);
        out.extend((ids.len() as u32).to_le_bytes());
        out.extend(perf_string(&name));
        ids.iter().for_each(|id| out.extend(id.to_le_bytes()));
    }
    out
}

/// The tracepoints' format files, in the form that trace-cmd began and perf kept (version 0.6).
fn tracing_data(kinds: &[Tracepoint], tracefs: &Tracefs) -> Vec<u8> {
    let mut out = vec![0x17, 0x08, 0x44];
    out.extend(b"tracing0.6\0");
    out.push(u8::from(cfg!(target_endian = "big")));
    out.push(size_of::<usize>() as u8);
    out.extend((rustix::param::page_size() as u32).to_le_bytes());
    for (name, file) in [("header_page", "events/header_page"), ("header_event", "events/header_event")] {
        let content = tracefs.read(file);
        out.extend(name.as_bytes());
        out.push(0);
        out.extend((content.len() as u64).to_le_bytes());
        out.extend(content);
    }
    // No events of ftrace's own.
    out.extend(0u32.to_le_bytes());
    let mut systems: Vec<&str> = kinds.iter().map(|k| k.system).collect();
    systems.sort_unstable();
    systems.dedup();
    out.extend((systems.len() as u32).to_le_bytes());
    for system in systems {
        let members: Vec<&Tracepoint> = kinds.iter().filter(|k| k.system == system).collect();
        out.extend(system.as_bytes());
        out.push(0);
        out.extend((members.len() as u32).to_le_bytes());
        for kind in members {
            out.extend((kind.format.len() as u64).to_le_bytes());
            out.extend(&kind.format);
        }
    }
    // No kernel symbols, no printk formats, no saved command names: the data has the names.
    out.extend(0u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out
}
