//! perf.data: what `perf record` and `perf sched record` write.
//!
//! | part | where | content |
//! |---|---|---|
//! | header | 0 | `PERFILE2` in the writer's byte order, sizes, three (offset, size) pairs, a bitmap of features |
//! | attributes | `attrs` | a `perf_event_attr` an event, each followed by (offset, size) of its ids |
//! | data | `data` | records |
//! | features | `data`'s end | a table of (offset, size), one for each bit of the bitmap |
//!
//! A record is `{type: u32, misc: u16, size: u16}` and `size - 8` bytes. Those of use:
//!
//! | type | name | use |
//! |---|---|---|
//! | 2, 13 | `LOST`, `LOST_SAMPLES` | counted |
//! | 3, 7, 4 | `COMM`, `FORK`, `EXIT` | a task's name, who started it, its end; without a time: older than the recording |
//! | 9 | `SAMPLE` | an event; which fields it has is said by its attribute's `sample_type` |
//! | 64, 66, 80 | `HEADER_ATTR`, `HEADER_TRACING_DATA`, `HEADER_FEATURE` | pipe mode alone: what the header and features say otherwise |
//! | 68 | `FINISHED_ROUND` | perf has been once around all CPUs' buffers |
//! | 71 | `AUXTRACE` | followed by data beyond its size |
//! | 81, 83 | `COMPRESSED`, `COMPRESSED2` | zstd (`perf record -z`); records span their borders |
//!
//! Feature 1 (`TRACING_DATA`) holds the tracepoints' format files (see `decode`), 7 (`NRCPUS`) and 8
//! (`CPUDESC`) the machine, 31 (`PMU_CAPS`) what our own recorder notes (see `notes`).
//!
//! Samples with counters (`PERF_SAMPLE_READ` of a group, as `perf record -e '{sched:sched_switch,cycles}:S'`
//! makes them) tell each value with the id of its event, whose attribute says what it counts.
//!
//! **Order.** perf drains one CPU's buffer after the other, so samples are in order only within a CPU.
//! `FINISHED_ROUND` bounds the disorder: nothing that comes after the end of round N is older than the
//! newest sample of round N - 1. Samples are therefore kept, already decoded to 56 bytes, until the
//! next round is complete, sorted (stably: those of one CPU at one time stay in order) and passed on.
//! A file without its end is complete up to there, and is used so far: what follows may be of some CPUs alone.
//! Files without rounds get by with [`MOST_KEPT`] samples: then the older half goes, and what comes
//! later and is older counts as out of order.
//!
//! **Whose numbers.** perf's own fields (a sample's TID; COMM, FORK, EXIT) have tasks' numbers in the PID namespace that the events
//! were opened in, a tracepoint's fields have the kernel's. In a container they differ, and what the recorder noted (the command's
//! process id) is of its namespace too. A sample has both: at the first reading it is seen that they differ, and which belong
//! together; at the second all are the kernel's. Tasks outside of the namespace have the number 0 there, so that what perf says of
//! them is of no use.
//!
//! **Two threads.** Reading and decoding ([`Pump`]) take about as long as sorting and what the sink does
//! with the events ([`Sorter`]), so a large file has a thread for each. What passes between them are
//! [`Batch`]es: some thousand events, and the names that came up in them.
//!
//! **Why not the crate linux-perf-data?** It is well kept, and the tests use it to check this reader. As
//! a reader of files from strangers it does not do (0.13.0): `HEADER_EVENT_DESC` reserves memory for
//! however many events the file claims, which aborts the process; a compressed record is inflated whole,
//! 64 KiB to 2 GB at worst; a file cut short loses its last two rounds; pipe mode takes the contents of
//! `HEADER_TRACING_DATA` for records; and an allocation a sample costs more than all that is done here.

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::error::TraceError;
use crate::events::{Comms, Event, EventKind, KernelContext, Sink, TraceRead};
use crate::lacks::Lack;
use crate::notes::Notes;
use crate::plan::{ReadPlan, kernels};
use crate::read::decode::{DecodedRecord, Decoder, TracingData};
use crate::read::input::{TraceInput, Window};
use crate::read::joined;
use crate::take::{ByteOrder, Take};
use std::collections::{BTreeMap, HashMap};
use wattwise_packed::Pieces;

/// The header's first bytes, as a little-endian and as a big-endian machine write them.
const MAGIC: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Samples kept for sorting, about 60 MB. perf's default buffers hold some 10 000 a CPU.
const MOST_KEPT: usize = 1 << 20;

/// One sample of so many with another number than the kernel's is damage; more, and they are a namespace's.
const MOST_OF_OTHERS: u64 = 16;

/// A feature or formats of more than this is damage; real ones have some 100 kB.
const MOST_FORMATS: u64 = 64 << 20;

/// Ids and attributes beyond this number are damage; real files have CPUs times events.
const MOST_IDS: u64 = 1 << 20;

/// Largest record: its size is a `u16`.
const MOST_RECORD: usize = 65_535;

/// Events in a batch at most: 230 kB, which stay in the cache of the core that they go to.
const BATCH: usize = 4096;

/// Batches under way between the threads; more only take memory.
const UNDER_WAY: usize = 8;

/// A data section of fewer bytes is done before a thread has started.
const WORTH_A_THREAD: u64 = 4 << 20;

/// Bytes inflated at a time.
const INFLATE_STEP: usize = 256 << 10;

/// Where in a sample its fields are, from `perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SampleShape {
    /// Byte offsets in the record's body; `u16::MAX` where the sample has no such field.
    time: u16,
    cpu: u16,
    /// Process and thread.
    tid: u16,
    /// Where READ, CALLCHAIN and RAW begin, in that order and of varying length.
    rest: u16,
    read: Option<u64>,
    callchain: bool,
    raw: bool,
    identifier: bool,
    /// Where a record that is no sample has its time, in bytes from its end; `u16::MAX` where it has none.
    side_time: u16,
}

impl SampleShape {
    /// The fields of a sample in the order that perf_event_open(2) gives.
    fn new(sample_type: u64, read_format: u64, sample_id_all: bool) -> SampleShape {
        const ABSENT: u16 = u16::MAX;
        let has = |bit: u64| sample_type & bit != 0;
        let mut shape = SampleShape {
            time: ABSENT,
            cpu: ABSENT,
            tid: ABSENT,
            side_time: ABSENT,
            ..SampleShape::default()
        };
        // TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER end every other record: 8 bytes each, from TIME on to the end.
        if sample_id_all && has(1 << 2) {
            shape.side_time = 8 * (1 + [6, 9, 7, 16].iter().filter(|b| has(1 << **b)).count() as u16);
        }
        let mut at = 0;
        // IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD: 8 bytes each.
        for bit in [1 << 16, 1, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 9, 1 << 7, 1 << 8] {
            if has(bit) {
                match bit {
                    2 => shape.tid = at,
                    4 => shape.time = at,
                    0x80 => shape.cpu = at,
                    _ => {}
                }
                at += 8;
            }
        }
        shape.rest = at;
        shape.read = has(1 << 4).then_some(read_format);
        shape.callchain = has(1 << 5);
        shape.raw = has(1 << 10);
        shape.identifier = has(1 << 16);
        shape
    }

    fn usable(&self) -> bool {
        self.raw && self.time != u16::MAX && self.cpu != u16::MAX
    }

    /// How many words READ has, and how many members its group.
    fn counts(&self, body: &[u8], order: ByteOrder) -> Option<(usize, usize)> {
        // TOTAL_TIME_ENABLED 1, TOTAL_TIME_RUNNING 2, ID 4, GROUP 8, LOST 16: 8 bytes each.
        let format = self.read?;
        let bit = |b: u64| usize::from(format & b != 0);
        let each = 1 + bit(4) + bit(16);
        let members =
            if format & 8 != 0 { order.u64(body.get(usize::from(self.rest)..)?)? as usize } else { 1 };
        Some((members.checked_mul(each)?.checked_add(bit(8) + bit(1) + bit(2))?, members))
    }

    /// The values of a group with their ids. `None` where it is no such group, or where the counters
    /// had to be shared with others, so that the counts are not of all the time.
    fn group<'a>(&self, body: &'a [u8], order: ByteOrder) -> Option<impl Iterator<Item = (u64, u64)> + 'a> {
        let format = self.read?;
        if format & (4 | 8) != 4 | 8 {
            return None;
        }
        let (words, members) = self.counts(body, order)?;
        let from = usize::from(self.rest);
        let all = body.get(from..from.checked_add(words.checked_mul(8)?)?)?;
        let word = move |n: usize| order.u64(all.get(n * 8..)?);
        let first = 1 + usize::from(format & 1 != 0) + usize::from(format & 2 != 0);
        if format & 3 == 3 && word(1)? != word(2)? {
            return None;
        }
        let each = 2 + usize::from(format & 16 != 0);
        Some((0..members).filter_map(move |m| Some((word(first + m * each)?, word(first + m * each + 1)?))))
    }

    /// The tracepoint's own bytes.
    #[inline]
    fn raw<'a>(&self, body: &'a [u8], order: ByteOrder) -> Option<&'a [u8]> {
        let mut at = usize::from(self.rest);
        if self.read.is_some() {
            let (words, _) = self.counts(body, order)?;
            at = at.checked_add(words.checked_mul(8)?)?;
        }
        if self.callchain {
            let depth = order.u64(body.get(at..)?)? as usize;
            at = at.checked_add(8)?.checked_add(depth.checked_mul(8)?)?;
        }
        let size = order.u32(body.get(at..)?)? as usize;
        body.get(at + 4..(at + 4).checked_add(size)?)
    }
}

/// The attributes, as far as samples need them.
#[derive(Debug, Default)]
struct Attrs {
    shapes: Vec<SampleShape>,
    /// All samples look alike.
    alike: bool,
    by_id: HashMap<u64, u32>,
    last: (u64, u32),
    /// What an attribute counts, where it counts at all.
    counts: Vec<Option<GenericCounter>>,
    /// One of them is a tracepoint's.
    tracepoints: bool,
    /// The tracepoints are one command's (perf without -a).
    of_command: bool,
    /// Its rings may be overwritten (`--overwrite`).
    backward: bool,
    /// CPUs that each tracepoint was opened on: it has an id for each.
    opened: usize,
}

/// What the kernel's generic counters of use count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GenericCounter {
    Cycles,
    Instructions,
    Misses,
}

impl Attrs {
    fn add(&mut self, attr: &[u8], ids: impl Iterator<Item = u64>, order: ByteOrder) -> Option<()> {
        // perf_event_attr: type u32, size u32, config u64, period u64, sample_type u64, read_format u64.
        let sample_type = order.u64(attr.get(24..)?)?;
        // Bit 12 of the flags: enabled by an exec; 18: every record ends with a sample's time and place; 27: written backwards.
        let flags = attr.get(40..).and_then(|b| order.u64(b)).unwrap_or(0);
        let id_all = flags >> 18 & 1 == 1;
        let shape = SampleShape::new(sample_type, order.u64(attr.get(32..)?)?, id_all);
        let number = self.shapes.len() as u32;
        if u64::from(number) >= MOST_IDS {
            return None;
        }
        let ids: Vec<u64> = ids.collect();
        if order.u32(attr)? == 2 {
            self.tracepoints = true;
            self.of_command |= flags >> 12 & 1 == 1;
            self.backward |= flags >> 27 & 1 == 1;
            self.opened = self.opened.max(ids.len());
        }
        // Type 0 is hardware; the configuration's upper half says which kind of core's.
        let config = order.u64(attr.get(8..)?)? as u32;
        self.counts.push(match (order.u32(attr)?, config) {
            (0, 0) => Some(GenericCounter::Cycles),
            (0, 1) => Some(GenericCounter::Instructions),
            (0, 3) => Some(GenericCounter::Misses),
            _ => None,
        });
        self.alike = number == 0 || (self.alike && shape == self.shapes[0]);
        self.shapes.push(shape);
        self.by_id.extend(ids.into_iter().map(|id| (id, number)));
        self.last = (0, 0);
        Some(())
    }

    /// A sample's counts, if it has those of the cycles.
    fn counted(&self, shape: &SampleShape, body: &[u8], order: ByteOrder) -> Option<EventKind> {
        let (mut cycles, mut instructions, mut misses) = (None, 0, 0);
        for (value, id) in shape.group(body, order)? {
            match self.counts[*self.by_id.get(&id)? as usize] {
                Some(GenericCounter::Cycles) => cycles = Some(value),
                Some(GenericCounter::Instructions) => instructions = value,
                Some(GenericCounter::Misses) => misses = value,
                None => {}
            }
        }
        Some(EventKind::Counted { cycles: cycles?, instructions, misses })
    }

    #[inline]
    fn of_sample(&mut self, body: &[u8], order: ByteOrder) -> Option<SampleShape> {
        let first = *self.shapes.first()?;
        if self.alike || !first.identifier {
            return Some(first);
        }
        let id = order.u64(body)?;
        if self.last.0 != id {
            self.last = (id, *self.by_id.get(&id)?);
        }
        self.shapes.get(self.last.1 as usize).copied()
    }
}

/// PERF_RECORD_MISC_LOST_SAMPLES_BPF.
const DROPPED_BY_BPF: u16 = 1 << 15;

/// Who tells of losses.
#[derive(Clone, Copy)]
enum LossTeller {
    ByTheKernel,
    ByPerf,
}

/// Events on their way from the pump to the sorter.
#[derive(Debug, Default)]
struct Batch {
    /// In the file's order.
    events: Vec<Event>,
    /// Names that are new, in the order of their numbers.
    names: Vec<Box<str>>,
    /// The newest event so far, in this batch or before it.
    newest: u64,
    /// A round ends here.
    round: bool,
}

/// Takes full batches and leaves empty ones.
type HandOn<'a> = &'a mut dyn FnMut(&mut Batch);

/// Everything that the records are read with.
struct Pump {
    order: ByteOrder,
    attrs: Attrs,
    decoder: Option<Decoder>,
    comms: Comms,
    /// Names of `comms` that the sorter knows.
    names_known: usize,
    read: TraceRead,
    /// Losses as each of [`LossTeller`] counts them.
    lost: [u64; 2],
    batch: Batch,
    bad: u64,
    /// perf's own records of tasks.
    sides: u64,
    /// Samples with a thread's number of perf's, and those where it is not the kernel's.
    numbered: [u64; 2],
    /// Which of the kernel's numbers perf's are: as they are found, and as they are to be taken.
    found_numbers: BTreeMap<u32, u32>,
    numbers: BTreeMap<u32, u32>,
    /// Blocks packed by zstd that this build cannot read.
    unread_blocks: u64,
    /// The end is not in the file.
    cut_short: bool,
    /// Where in the file nothing more of the recording comes; nowhere, if that is not known.
    end: u64,
}

/// Puts events in order, for the sink.
struct Sorter<'a, S: Sink> {
    comms: &'a mut Comms,
    sink: &'a mut S,
    /// Samples that may still be overtaken, and the newest of the round before.
    kept: Vec<Event>,
    newest_before: u64,
    /// No sample that is still to come is older.
    settled_to: u64,
    flushed_early: bool,
}

/// What perf records without `-a`, and the remedy.
pub(super) const OF_COMMAND: (&str, &str) = (
    "a recording by perf of one command's own events: who woke it, and when it came onto a CPU, is not in it",
    "record the whole machine with -a: `perf record -a -e sched:sched_switch,sched:sched_waking -- COMMAND`",
);

/// Of CPUs that perf was told to leave out.
pub(super) fn some_cpus(recorded: usize, cpus: u16) -> String {
    format!("perf recorded {recorded} of {cpus} CPUs (-C): what was done on the others is not in it.")
}

/// The remedy for a recording that lacks its end.
const AGAIN: &str = "record again and let perf end by itself or by Ctrl-C, not by SIGKILL";

fn unusable(input: &TraceInput, what: impl Into<String>, remedy: &str) -> TraceError {
    TraceError::Unusable { name: input.name.clone(), what: what.into(), remedy: remedy.into() }
}

/// What the header says of the sections, each as place and length.
struct PerfHeader<'a> {
    attr_size: u64,
    attrs: (u64, u64),
    data: (u64, u64),
    features: &'a [u64],
}

/// Whether a file starts like one.
pub(crate) fn is(start: &[u8]) -> bool {
    MAGIC.iter().any(|m| start.starts_with(*m))
}

/// Reads a whole recording.
pub(crate) fn read<S: Sink>(
    input: &TraceInput,
    plan: &ReadPlan,
    comms: &mut Comms,
    sink: &mut S,
) -> Result<TraceRead, TraceError> {
    let head = input.section(0, 104.min(input.len())).unwrap_or_default();
    let order = if head.starts_with(MAGIC[1]) { ByteOrder::Big } else { ByteOrder::Little };
    let words: Vec<u64> = head.chunks_exact(8).map_while(|word| order.u64(word)).collect();
    let mut pump = Pump::new(order, plan.numbers.clone());
    let mut sorter =
        Sorter { comms, sink, kept: Vec::new(), newest_before: 0, settled_to: 0, flushed_early: false };
    // In pipe mode the header is these two words alone.
    let (from, to) = if words.get(1) == Some(&16) {
        pump.read.format = "perf.data (pipe mode)";
        pump.piped_features(input.window(16, input.len()));
        sorter.sink.header(&pump.read);
        (16, input.len())
    } else {
        let place = pump.prepare(input, &words)?;
        sorter.sink.header(&pump.read);
        place
    };
    let mut pump = sorter.take_all(pump, input.window(from, to));
    pump.read.warnings.extend(joined(input, pump.end, is));
    if pump.unread_blocks > 0 {
        return Err(unusable(
            input,
            "perf.data whose records are packed by zstd, which this build does not read",
            "unpack them with `perf inject -i FILE -o PLAIN`, or install wattwise with --features zstd",
        ));
    }
    if pump.decoder.is_none() {
        return Err(pump.without_formats(input));
    }
    if pump.attrs.of_command {
        return Err(unusable(input, OF_COMMAND.0, OF_COMMAND.1));
    }
    Ok(sorter.finish(pump))
}

impl<'a> PerfHeader<'a> {
    /// Of a file that is not in pipe mode.
    fn parse(input: &TraceInput, words: &'a [u64]) -> Result<Self, TraceError> {
        let words: &[u64; 13] =
            words.try_into().map_err(|_| unusable(input, "perf.data ends within its header", AGAIN))?;
        let [_, _, attr_size, attrs, attrs_len, data, data_len, _, _, features @ ..] = words;
        Ok(PerfHeader {
            attr_size: *attr_size,
            attrs: (*attrs, *attrs_len),
            data: (*data, *data_len),
            features,
        })
    }

    /// Whether the data are there, whole.
    fn check(&self, input: &TraceInput) -> Result<(), TraceError> {
        if self.data.1 == 0 {
            return Err(unusable(
                input,
                "perf.data with an empty data section: perf did not get to finish it",
                AGAIN,
            ));
        }
        let end = self.data.0.saturating_add(self.data.1);
        if end > input.len() {
            return Err(unusable(
                input,
                format!(
                    "perf.data cut short: {} bytes, expected more than {end}; the tracepoint formats were at its end",
                    input.len()
                ),
                "copy it again, or record again",
            ));
        }
        Ok(())
    }
}

impl Pump {
    fn new(order: ByteOrder, numbers: BTreeMap<u32, u32>) -> Self {
        Pump {
            order,
            attrs: Attrs::default(),
            decoder: None,
            comms: Comms::default(),
            // The empty name is everybody's.
            names_known: 1,
            read: TraceRead { format: "perf.data", ..TraceRead::default() },
            lost: [0; 2],
            batch: Batch::default(),
            bad: 0,
            sides: 0,
            numbered: [0; 2],
            found_numbers: BTreeMap::new(),
            numbers,
            unread_blocks: 0,
            cut_short: false,
            end: u64::MAX,
        }
    }

    /// Takes in what a file that is not in pipe mode says of its records; then where they begin and end.
    fn prepare(&mut self, input: &TraceInput, words: &[u64]) -> Result<(u64, u64), TraceError> {
        let header = PerfHeader::parse(input, words)?;
        if self.attributes(input, header.attrs, header.attr_size).is_none() || self.attrs.shapes.is_empty() {
            return Err(unusable(
                input,
                "perf.data whose attribute section cannot be read (damaged or cut short)",
                AGAIN,
            ));
        }
        let end = header.data.0.saturating_add(header.data.1);
        let whole = header.data.1 > 0 && end <= input.len();
        if whole {
            self.end = self.features(input, end, header.features);
        }
        // A recorder that was killed, or a copy that was cut short: there is no table behind the data.
        let data = match whole && self.decoder.is_some() {
            true => (header.data.0, end),
            false => match self.early_features(input, &header) {
                Some(at) => (at, input.len()),
                None => header.check(input).map(|()| (header.data.0, end))?,
            },
        };
        self.can_be_decoded(input)?;
        Ok(data)
    }

    /// What our recorder writes before the data (`record/perf_writer.rs`): where the data begin, if it is there.
    fn early_features(&mut self, input: &TraceInput, header: &PerfHeader<'_>) -> Option<u64> {
        let table = header.attrs.0.checked_add(header.attrs.1)?;
        let mut early = Pump::new(self.order, self.numbers.clone());
        let end = early.features(input, table, header.features);
        if !early.read.notes.incomplete || early.decoder.is_none() {
            return None;
        }
        let begin = end.checked_next_multiple_of(8)?;
        early.read.warnings.push(format!(
            "The recording is incomplete: its recorder was killed, or a copy was cut short. What it has is {} bytes of events.",
            input.len().saturating_sub(begin)
        ));
        self.decoder = early.decoder;
        self.read = early.read;
        self.cut_short = true;
        Some(begin)
    }

    /// There is nothing to read records by.
    fn without_formats(&self, input: &TraceInput) -> TraceError {
        if self.attrs.tracepoints {
            let what = "perf.data without the formats of its tracepoints (TRACING_DATA)";
            return unusable(input, what, "keep all that perf wrote, or record again");
        }
        unusable(
            input,
            "perf.data without tracepoints: its events are of another kind",
            "record the scheduler's: `perf record -e sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,power:cpu_idle -a`",
        )
    }

    /// Whether formats and samples hold what a replay needs.
    fn can_be_decoded(&self, input: &TraceInput) -> Result<(), TraceError> {
        let Some(decoder) = &self.decoder else { return Err(self.without_formats(input)) };
        if !decoder.knows_switches() {
            return Err(TraceError::NoSwitches { name: input.name.clone(), events: 0 });
        }
        if !self.attrs.shapes.iter().any(SampleShape::usable) {
            return Err(unusable(
                input,
                "perf.data whose samples lack time, CPU or raw data",
                "record with `perf record -a -T --sample-cpu -R` and tracepoint events",
            ));
        }
        Ok(())
    }

    /// The attribute section: each entry is an attribute and where its ids are.
    fn attributes(&mut self, input: &TraceInput, section: (u64, u64), attr_size: u64) -> Option<()> {
        // 40 bytes reach up to read_format; the kernel's first attr had 64.
        if !(40 + 16..=4096).contains(&attr_size) || section.1 > MOST_IDS * 8 {
            return None;
        }
        let all = input.section(section.0, section.1)?;
        // Of all attributes together: their places may overlap.
        let mut ids_left = MOST_IDS * 8;
        for entry in all.chunks_exact(attr_size as usize) {
            let (attr, place) = entry.split_at(entry.len() - 16);
            let mut place = Take { rest: place, order: self.order };
            let (at, len) = (place.u64()?, place.u64()?);
            ids_left = ids_left.checked_sub(len)?;
            let ids = input.section(at, len)?;
            let order = self.order;
            self.attrs.add(attr, ids.chunks_exact(8).filter_map(|b| order.u64(b)), order)?;
        }
        Some(())
    }

    /// The table of features after the data; where it and the last of their contents end.
    fn features(&mut self, input: &TraceInput, table: u64, bitmap: &[u64]) -> u64 {
        let (mut at, mut last) = (table, table);
        for bit in 0..bitmap.len() * 64 {
            if bitmap[bit / 64] >> (bit % 64) & 1 == 0 {
                continue;
            }
            let Some(entry) = input.section(at, 16) else { return last };
            at += 16;
            last = last.max(at);
            let mut entry = Take { rest: &entry, order: self.order };
            let (Some(at), Some(len)) = (entry.u64(), entry.u64()) else { return last };
            last = last.max(at.saturating_add(len));
            if !matches!(bit, 1 | 7 | 8 | 31) {
                continue;
            }
            let content = if len <= MOST_FORMATS { input.section(at, len) } else { None };
            let Some(content) = content else {
                self.read
                    .warnings
                    .push(format!("Header feature {bit} lies outside the file and is left out."));
                continue;
            };
            self.feature(bit as u64, &content);
        }
        last
    }

    fn feature(&mut self, bit: u64, content: &[u8]) {
        let mut take = Take { rest: content, order: self.order };
        match bit {
            1 => self.formats(content),
            7 => {
                // Available, then online.
                take.u32();
                self.read.cpus = take.u32().and_then(|n| u16::try_from(n).ok()).filter(|n| *n <= MAX_CPUS);
            }
            8 => self.read.cpu_name = take.perf_string().filter(|name| !name.is_empty()),
            31 => {
                self.read.notes = Notes::decode(take);
                let command = self.read.notes.command;
                self.read.notes.command = command.map(|id| kernels(&self.numbers, id).unwrap_or(id));
            }
            _ => {}
        }
    }

    /// In pipe mode features are records, which come before the samples.
    fn piped_features(&mut self, mut window: Window<'_>) {
        let order = self.order;
        loop {
            let head = window.peek(8);
            let (Some(kind), Some(size)) = (order.u32(head), head.get(6..).and_then(|b| order.u16(b))) else {
                return;
            };
            let size = usize::from(size);
            // SAMPLE, FINISHED_ROUND, COMPRESSED: what follows is events.
            if size < 8 || matches!(kind, 9 | 68 | 81 | 83) {
                return;
            }
            let Some(body) = window.peek(size).get(8..size) else { return };
            let mut beyond = 0;
            match kind {
                66 => beyond = u64::from(order.u32(body).unwrap_or(0)).next_multiple_of(8),
                71 => beyond = order.u64(body).unwrap_or(0),
                80 => {
                    let content = body.get(8..).unwrap_or(&[]).to_vec();
                    if let Some(bit @ (7 | 8 | 31)) = order.u64(body) {
                        self.feature(bit, &content);
                    }
                }
                _ => {}
            }
            window.skip(beyond.saturating_add(size as u64));
        }
    }

    fn formats(&mut self, content: &[u8]) {
        if let Some(data) = TracingData::parse(content) {
            if data.cut {
                self.read.warnings.push(
                    "The tracepoint formats are cut short; events described after that are left out.".into(),
                );
            }
            self.decoder = Some(data.decoder);
        }
    }

    /// All records of the data section, as batches.
    fn run(mut self, mut window: Window<'_>, hand_on: HandOn<'_>) -> Pump {
        self.records(&mut window, hand_on);
        self.hand_on(hand_on);
        self
    }

    fn hand_on(&mut self, hand_on: HandOn<'_>) {
        let names = self.comms.names();
        self.batch.names.extend_from_slice(&names[self.names_known..]);
        self.names_known = names.len();
        let newest = self.batch.newest;
        hand_on(&mut self.batch);
        self.batch.newest = newest;
    }

    fn records(&mut self, window: &mut Window<'_>, hand_on: HandOn<'_>) {
        let order = self.order;
        let mut pieces: Option<Pieces> = None;
        let mut inflated = Vec::new();
        let mut zstd_failed = 0u64;
        while window.left() > 0 {
            let head = window.peek(8);
            let (Some(kind), Some(size)) = (order.u32(head), head.get(6..).and_then(|b| order.u16(b))) else {
                self.cut(window.left());
                break;
            };
            if is(head) {
                // In pipe mode only this tells where one ends.
                self.end = window.at();
                break;
            }
            let size = usize::from(size);
            if size < 8 {
                // Without sizes there is no way to find the next record.
                self.read.warnings.push(format!(
                    "A record of impossible size; the {} bytes from there on are left out.",
                    window.left()
                ));
                break;
            }
            let record = window.peek(size);
            if record.len() < size {
                self.cut(record.len() as u64);
                break;
            }
            let misc = order.u16(&record[4..]).unwrap_or(0);
            let body = &record[8..size];
            match kind {
                // HEADER_TRACING_DATA: its size says nothing of the container that follows, padded to 8.
                66 => {
                    let len = u64::from(order.u32(body).unwrap_or(0));
                    window.skip(size as u64);
                    if len <= MOST_FORMATS && len <= window.left() {
                        let content = window.peek(len as usize);
                        let content = &content[..content.len().min(len as usize)];
                        self.formats(content);
                    } else {
                        self.cut(window.left());
                    }
                    window.skip(len.next_multiple_of(8));
                    continue;
                }
                // AUXTRACE: the body's first word is the length of the data that follows the record.
                71 => {
                    let len = order.u64(body).unwrap_or(0);
                    window.skip(len.saturating_add(size as u64));
                }
                81 | 83 => {
                    let packed = if kind == 81 {
                        body
                    } else {
                        let n = order.u64(body).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                        body.get(8..8usize.saturating_add(n)).unwrap_or(&[])
                    };
                    pieces = pieces.or_else(Pieces::new);
                    match &mut pieces {
                        None => self.unread_blocks += 1,
                        Some(p) => {
                            if !self.inflate(p, packed, &mut inflated, hand_on) {
                                // The stream cannot be taken up again within a frame: try the next one afresh.
                                zstd_failed += 1;
                                inflated.clear();
                                pieces = None;
                            }
                        }
                    }
                    window.skip(size as u64);
                }
                _ => {
                    self.record(kind, misc, body, hand_on);
                    window.skip(size as u64);
                }
            }
        }
        if zstd_failed > 0 {
            self.read.warnings.push(format!("{zstd_failed} compressed blocks are damaged and left out."));
        }
    }

    fn cut(&mut self, left: u64) {
        self.read
            .warnings
            .push(format!("The data ends within a record; its last {left} bytes are left out."));
    }

    /// Inflates a block step by step and takes the records as they become whole; a rest waits in
    /// `inflated` for the next block.
    fn inflate(
        &mut self,
        pieces: &mut Pieces,
        packed: &[u8],
        inflated: &mut Vec<u8>,
        hand_on: HandOn<'_>,
    ) -> bool {
        pieces.feed(packed, INFLATE_STEP, inflated, |inflated| {
            let mut at = 0;
            while let Some(head) = inflated.get(at..at + 8) {
                let (Some(kind), Some(size)) = (self.order.u32(head), self.order.u16(&head[6..])) else {
                    break;
                };
                let size = usize::from(size);
                if size < 8 {
                    return false;
                }
                let Some(body) = inflated.get(at + 8..at + size) else { break };
                let misc = self.order.u16(&head[4..]).unwrap_or(0);
                self.record(kind, misc, body, hand_on);
                at += size;
            }
            inflated.drain(..at);
            debug_assert!(inflated.len() <= MOST_RECORD);
            true
        })
    }

    /// One record that stands for itself.
    #[inline]
    fn record(&mut self, kind: u32, misc: u16, body: &[u8], hand_on: HandOn<'_>) {
        match kind {
            9 => self.sample(body),
            3 | 4 | 7 => self.side(kind, misc, body),
            2 => {
                self.lost(body.get(8..).and_then(|b| self.order.u64(b)).unwrap_or(0), LossTeller::ByTheKernel)
            }
            // Those that a BPF filter dropped are not lost: nobody wanted them.
            13 if misc & DROPPED_BY_BPF == 0 => {
                self.lost(self.order.u64(body).unwrap_or(0), LossTeller::ByPerf)
            }
            64 => {
                // HEADER_ATTR: an attribute whose second word is its size, then its ids.
                let size = body.get(4..).and_then(|b| self.order.u32(b)).unwrap_or(0) as usize;
                if let Some((attr, ids)) = body.split_at_checked(size) {
                    let order = self.order;
                    self.attrs.add(attr, ids.chunks_exact(8).filter_map(|b| order.u64(b)), order);
                }
            }
            68 => self.batch.round = true,
            _ => {}
        }
        if self.batch.round || self.batch.events.len() >= BATCH {
            self.hand_on(hand_on);
        }
    }

    /// The kernel tells of losses as they come (LOST); perf reads the same counts at its end (LOST_SAMPLES, since 6.1).
    fn lost(&mut self, n: u64, told: LossTeller) {
        let told = &mut self.lost[told as usize];
        *told = told.saturating_add(n);
        self.read.lost = self.lost[0].max(self.lost[1]);
        let time_ns = self.batch.newest;
        let kind = EventKind::Lost(n);
        self.keep(Event { time_ns, cpu: 0, level: KernelContext::Task, current: 0, kind });
    }

    /// Notes which of the kernel's numbers perf's is.
    #[inline]
    fn number(&mut self, perfs: u32, kernels: u32) {
        // The dead have none.
        if perfs >= MAX_TID {
            return;
        }
        self.numbered[0] += 1;
        if perfs != kernels {
            self.numbered[1] += 1;
        }
        if perfs > 0 && (perfs != kernels || self.numbered[1] > 0) {
            self.found_numbers.entry(perfs).or_insert(kernels);
        }
    }

    /// COMM (3), EXIT (4) and FORK (7): what perf itself knows of tasks.
    fn side(&mut self, kind: u32, misc: u16, body: &[u8]) {
        /// The name came with another program (COMM's misc).
        const EXEC: u16 = 1 << 13;
        self.sides += 1;
        let order = self.order;
        let numbers = &self.numbers;
        let word = |at: usize| kernels(numbers, order.u32(body.get(at..)?).filter(|tid| *tid < MAX_TID)?);
        let at_end = self.attrs.shapes.first().map_or(u16::MAX, |s| s.side_time);
        let time_ns = body.len().checked_sub(usize::from(at_end)).and_then(|at| order.u64(&body[at..]));
        let kind = (|| {
            Some(match kind {
                // Process, thread, name.
                3 => EventKind::Named {
                    tid: word(4)?,
                    pid: word(0)?,
                    comm: self.comms.number(body.get(8..)?),
                    exec: misc & EXEC != 0,
                },
                // Process, its parent, thread, who started it, time.
                4 => EventKind::Ended { tid: word(8)? },
                _ => EventKind::Parent { parent: word(12)?, child: word(8)?, pid: word(0)? },
            })
        })();
        if let Some(kind) = kind {
            // Without a time it can only be said where it stands in the file.
            let time_ns = time_ns.unwrap_or(self.batch.newest);
            self.keep(Event { time_ns, cpu: 0, level: KernelContext::Task, current: 0, kind });
        }
    }

    #[inline]
    fn sample(&mut self, body: &[u8]) {
        self.read.events += 1;
        let order = self.order;
        let event = (|| {
            let shape = self.attrs.of_sample(body, order)?;
            if !shape.usable() {
                return Some(None);
            }
            let time_ns = order.u64(body.get(usize::from(shape.time)..)?)?;
            let cpu = order.u32(body.get(usize::from(shape.cpu)..)?)?;
            let cpu = u16::try_from(cpu).ok().filter(|c| *c < MAX_CPUS)?;
            let raw = shape.raw(body, order)?;
            match self.decoder.as_ref()?.decode(raw, &mut self.comms) {
                DecodedRecord::Event(d) => {
                    let event = Event { time_ns, cpu, level: d.level, current: d.current, kind: d.kind };
                    if let Some(tid) = body.get(usize::from(shape.tid) + 4..).and_then(|b| order.u32(b)) {
                        self.number(tid, d.current);
                    }
                    let counts = shape.read.is_some() && matches!(d.kind, EventKind::Switch(_));
                    if let Some(kind) = counts.then(|| self.attrs.counted(&shape, body, order)).flatten() {
                        self.keep(Event { kind, ..event });
                    }
                    Some(Some(event))
                }
                DecodedRecord::Other => Some(None),
                DecodedRecord::Bad => None,
            }
        })();
        match event {
            Some(Some(event)) => self.keep(event),
            Some(None) => {}
            None => self.bad += 1,
        }
    }

    #[inline]
    fn keep(&mut self, event: Event) {
        self.batch.newest = self.batch.newest.max(event.time_ns);
        self.batch.events.push(event);
    }
}

impl<S: Sink> Sorter<'_, S> {
    /// Takes in all of a pump's batches: from a thread of its own, where that is worth it.
    fn take_all(&mut self, pump: Pump, window: Window<'_>) -> Pump {
        if window.left() < WORTH_A_THREAD {
            return pump.run(window, &mut |batch| self.take(batch));
        }
        std::thread::scope(|scope| {
            let (full, to_sort) = std::sync::mpsc::sync_channel::<Batch>(UNDER_WAY);
            let (emptied, empty) = std::sync::mpsc::channel::<Batch>();
            // The pump follows once the thread is there: without one it stays here.
            let (give, given) = std::sync::mpsc::channel::<(Pump, Window<'_>)>();
            let pumps = move || {
                let (pump, window) = given.recv().ok()?;
                Some(pump.run(window, &mut |batch| {
                    let next = empty.try_recv().unwrap_or_default();
                    // Nobody takes it: the sink has panicked, and this thread's work is in vain.
                    let _ = full.send(std::mem::replace(batch, next));
                }))
            };
            let Ok(pumping) = wattwise_threads::named("pump").spawn_scoped(scope, pumps) else {
                return pump.run(window, &mut |batch| self.take(batch));
            };
            let _ = give.send((pump, window));
            for mut batch in to_sort {
                self.take(&mut batch);
                // Nobody wants it: the pump is done.
                let _ = emptied.send(batch);
            }
            let pump = pumping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            pump.expect("it waits until it has the pump")
        })
    }

    /// Takes in a batch and empties it.
    fn take(&mut self, batch: &mut Batch) {
        for name in batch.names.drain(..) {
            self.comms.learn(name);
        }
        let mut events = &batch.events[..];
        while !events.is_empty() {
            let (now, later) = events.split_at(events.len().min(MOST_KEPT - self.kept.len()));
            self.kept.extend_from_slice(now);
            events = later;
            if self.kept.len() >= MOST_KEPT {
                self.flushed_early = true;
                self.kept.sort_by_key(|e| e.time_ns);
                self.pass_on(MOST_KEPT / 2);
            }
        }
        batch.events.clear();
        if std::mem::take(&mut batch.round) {
            self.round(batch.newest);
        }
    }

    /// The end of a round: what is no newer than the round before can no longer be overtaken.
    fn round(&mut self, newest: u64) {
        self.kept.sort_by_key(|e| e.time_ns);
        let settled = self.kept.partition_point(|e| e.time_ns <= self.newest_before);
        self.pass_on(settled);
        self.settled_to = self.newest_before;
        self.newest_before = newest;
    }

    fn pass_on(&mut self, n: usize) {
        for event in &self.kept[..n] {
            self.sink.event(event, self.comms);
        }
        self.kept.drain(..n);
    }

    fn finish(mut self, pump: Pump) -> TraceRead {
        self.kept.sort_by_key(|e| e.time_ns);
        self.pass_on(self.kept.len());
        let mut read = pump.read;
        if let Some(cpus) = read.cpus.filter(|n| (1..usize::from(*n)).contains(&pump.attrs.opened)) {
            read.warnings.push(some_cpus(pump.attrs.opened, cpus));
            read.cpus = None;
        }
        read.found.unsure = pump.attrs.backward;
        read.found.covered_to = pump.cut_short.then_some(self.settled_to.saturating_sub(1));
        let [all, others] = pump.numbered;
        if others > all / MOST_OF_OTHERS {
            read.found.numbers = pump.found_numbers;
        }
        let lacks = [(Lack::Kinship, pump.sides == 0), (Lack::Processor, read.cpu_name.is_none())];
        read.lacks = lacks.into_iter().filter(|(_, lacks)| *lacks).map(|(lack, _)| lack).collect();
        if pump.bad > 0 {
            read.warnings.push(format!("{} samples are damaged and left out.", pump.bad));
        }
        if self.flushed_early {
            read.warnings
                .push("The file has no round marks; its events may be slightly out of order.".into());
        }
        read
    }
}
