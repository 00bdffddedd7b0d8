//! What was changed, kept where a killed process leaves it behind.
//!
//! A journal is one file of JSON lines for each transaction:
//!
//! 1. a header (who, which boot) and every item with its original value, written and synced *before*
//!    the first change;
//! 2. `wrote` after each change, with the value read back; before it the item where the file is one that an
//!    earlier change has made;
//! 3. `done` when all is in force;
//! 4. `kept` where all is to stay in force after its owner's end: without it an owner that is gone was killed;
//! 5. `back` for each item that needs no more putting back, where others of the transaction still do. Of items that only rest
//!    ([`Journal::rest`]) these are the last lines, and are cut off again when one of them is wanted.
//!
//! The lines of step 2 need no sync: a killed process leaves them in the page cache, and a power cut
//! takes the settings with it. The owner holds a lock on the file, so that a live transaction is never
//! taken for a dead one, and a torn last line is what a kill looks like, not damage. A lock is believed only while
//! the process of the header lives, by number and start time: anybody may lock a file that he can open.
//!
//! The [folder is ours alone](crate::private), and what an item names must be an attribute of the rules' table or a
//! register of the allowlist ([`Target`]): a journal says what root writes, so it is trusted no further than that.
//! It is `/run/wattwise` for this machine: a reboot clears it together with the settings.

use crate::private::PrivateFolder;
use crate::private::fault;
use crate::set::original::{Item, Layer, Restored};
use crate::set::target::Target;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wattwise_hw::replaced;

/// Version of the lines.
const SCHEMA: &str = "wattwise.journal/1";

/// The most that is read of one: a set of every attribute of 8192 CPUs is a tenth of it.
const MOST_BYTES: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header {
        schema: String,
        pid: u32,
        /// With the number, one process and no later one.
        #[serde(default)]
        started: u64,
        boot_id: String,
        command: String,
    },
    Item(Item),
    Ready,
    Wrote(usize, String),
    Done,
    Kept,
    Back(usize),
}

/// A journal being written by its owner.
pub struct Journal {
    file: File,
    place: JournalPlace,
    /// The boot in which it is written.
    boot_id: String,
    /// Where the lines about items that rest begin and end.
    resting: Option<(u64, u64)>,
}

/// Where a journal is.
#[derive(Debug, Clone)]
struct JournalPlace {
    folder: Arc<PrivateFolder>,
    name: String,
}

/// A journal found.
#[derive(Debug)]
pub struct OpenJournal {
    /// The file.
    pub path: PathBuf,
    /// Its writer.
    pub pid: u32,
    /// The boot in which it was written.
    pub boot_id: String,
    /// What was being done.
    pub command: String,
    /// What was changed. Empty where the writer died before its first change.
    pub items: Vec<Item>,
    /// Whether all was in force.
    pub done: bool,
    /// Whether it is to stay in force, until `restore`.
    pub kept: bool,
    /// Whether its owner lives. Else this process has it locked until the value is dropped.
    pub held: bool,
    /// Another process has it open, its owner or one that looks at it or puts it back.
    locked: bool,
    file: File,
    place: JournalPlace,
}

/// What stands in a folder of journals.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest first.
    pub journals: Vec<OpenJournal>,
    /// Files that are no journal: (file, why).
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Journal {
    /// Starts a journal with its items; when it returns they are on disk.
    pub fn begin(folder: &Path, boot_id: &str, command: &str, items: &[Item]) -> io::Result<Journal> {
        let folder = Arc::new(PrivateFolder::make_listed(folder)?);
        let pid = std::process::id();
        // Numbers go up, so that names sort by age; two at once are told apart by O_EXCL.
        let mut number = 1 + names(&folder)?.last().map_or(0, |(number, _)| *number);
        let (file, name) = loop {
            let name = format!("{number:06}.jsonl");
            match folder.file(&name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL) {
                Ok(file) => break (file, name),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(e),
            }
        };
        fault::around(|| file.lock())?;
        let place = JournalPlace { folder, name };
        let mut journal = Journal { file, place, boot_id: boot_id.to_owned(), resting: None };
        let mut text = Vec::new();
        let header = Line::Header {
            schema: SCHEMA.into(),
            pid,
            started: wattwise_child::stat(pid).map_or(0, |s| s.started),
            boot_id: boot_id.into(),
            command: command.into(),
        };
        for line in std::iter::once(header).chain(items.iter().cloned().map(Line::Item)).chain([Line::Ready])
        {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        fault::write_all(&mut journal.file, &text)?;
        fault::around(|| journal.file.sync_all())?;
        journal.place.folder.sync()?;
        Ok(journal)
    }

    /// An item more: its file was not there at the beginning.
    pub fn appeared(&mut self, item: &Item) -> io::Result<()> {
        self.line(&Line::Item(item.clone()))
    }

    /// The value of an item after a change.
    pub fn wrote(&mut self, item: usize, got: &str) -> io::Result<()> {
        self.line(&Line::Wrote(item, got.to_owned()))
    }

    /// Has all items on disk, before the first of them is changed.
    pub fn sync(&mut self) -> io::Result<()> {
        fault::around(|| self.file.sync_data())
    }

    /// An item needs no more putting back: it was put back, or is another program's now.
    pub fn let_go(&mut self, item: usize) -> io::Result<()> {
        self.line(&Line::Back(item))
    }

    /// These items are as they were, until one of them is wanted again: whatever stands there meanwhile is not ours.
    ///
    /// # Errors
    /// It cannot be written; then all that stands there counts as ours.
    pub fn rest(&mut self, items: &[usize]) -> io::Result<()> {
        let mut text = Vec::new();
        for item in items {
            serde_json::to_writer(&mut text, &Line::Back(*item))?;
            text.push(b'\n');
        }
        let begins = self.file.metadata()?.len();
        if let Err(e) = fault::write_all(&mut self.file, &text) {
            // Half a block, or half a line of it, would be worse than none.
            self.file.set_len(begins)?;
            return Err(e);
        }
        self.resting = Some((begins, begins + text.len() as u64));
        Ok(())
    }

    /// They rest no more. Whether that could be said: where other lines have followed, they need to be journalled anew.
    ///
    /// # Errors
    /// The file cannot be cut.
    pub fn wake(&mut self) -> io::Result<bool> {
        let Some((begins, ends)) = self.resting else { return Ok(true) };
        let is_last = self.file.metadata()?.len() == ends;
        if is_last {
            fault::around(|| self.file.set_len(begins))?;
        }
        self.resting = None;
        Ok(is_last)
    }

    /// All is in force.
    pub fn done(&mut self) -> io::Result<()> {
        self.line(&Line::Done)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.place.folder.path()
    }

    /// All is to stay in force after this process.
    pub fn kept(&mut self) -> io::Result<()> {
        self.line(&Line::Kept)
    }

    /// What transactions begun after this one have changed and not put back.
    pub fn later_targets(&self) -> BTreeSet<Target> {
        let journals = list_open(&self.place.folder, OFlags::RDONLY).map(|l| l.journals).unwrap_or_default();
        // By name, not by place in the list: our own may be one that cannot be read.
        let age = |name: &str| (name.len(), name.to_owned());
        let later = journals.into_iter().filter(|f| age(&f.place.name) > age(&self.place.name));
        later.flat_map(|f| f.items).filter(|i| !i.back).map(|i| i.target).collect()
    }

    /// Notes what was replaced in this boot, for who reads the machine later. That the note cannot be written is no reason to change nothing.
    pub fn note(&self) {
        _ = note(&self.place, &self.boot_id, true);
    }

    /// After putting back: the file goes when nothing remains to be done.
    pub fn finish(mut self, restored: &Restored) -> io::Result<()> {
        finish((&self.place, &self.boot_id), &mut self.file, restored)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        append(&mut self.file, line)
    }
}

fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    fault::write_all(file, &text)
}

fn finish((place, boot_id): (&JournalPlace, &str), file: &mut File, restored: &Restored) -> io::Result<()> {
    if restored.failed.is_empty() {
        // First the note: a kill in between leaves a journal, which is put back again, and no note of what is back.
        if place.folder.names()?.iter().any(|name| name.starts_with(replaced::NAME)) {
            _ = note(place, boot_id, false);
        }
        return place.folder.remove(&place.name);
    }
    // A kill may have torn the last line: ours begin on one of their own.
    fault::write_all(file, b"\n")?;
    restored.settled.iter().try_for_each(|at| append(file, &Line::Back(*at)))
}

/// Notes the values that the journals of a boot have replaced, the newest first; this one's, where it stays.
fn note(place: &JournalPlace, boot_id: &str, stays: bool) -> io::Result<()> {
    let counts =
        |journal: &OpenJournal| journal.boot_id == boot_id && (stays || journal.place.name != place.name);
    let journals = newest_first(&place.folder, OFlags::RDONLY)?.filter_map(Result::ok).filter(counts);
    let values = |item: Item| match item.target {
        Target::File(path) if !item.back && !item.appeared => Some((path, item.original)),
        _ => None,
    };
    let note = replaced::note(journals.map(|journal| journal.items.into_iter().filter_map(values).collect()));
    match note.is_empty() {
        true => place.folder.withdraw(replaced::NAME),
        false => place.folder.publish(replaced::NAME, note.as_bytes()),
    }
}

/// The journals of a folder, ascending by number.
fn names(folder: &PrivateFolder) -> io::Result<Vec<(u64, String)>> {
    let number = |name: String| Some((name.strip_suffix(".jsonl")?.parse().ok()?, name));
    let mut names: Vec<(u64, String)> = folder.names()?.into_iter().filter_map(number).collect();
    names.sort_unstable();
    Ok(names)
}

/// Everything in a folder of journals, to be put back; no folder is no journal.
pub fn list(folder: &Path) -> io::Result<Listing> {
    list_for(folder, OFlags::RDWR | OFlags::APPEND)
}

/// As [`list`], only to be looked at: nothing is opened for writing, and the journals cannot be finished.
pub fn look(folder: &Path) -> io::Result<Listing> {
    list_for(folder, OFlags::RDONLY)
}

fn list_for(folder: &Path, how: OFlags) -> io::Result<Listing> {
    match PrivateFolder::open(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Listing::default()),
        folder => list_open(&Arc::new(folder?), how),
    }
}

fn list_open(folder: &Arc<PrivateFolder>, how: OFlags) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for journal in newest_first(folder, how)? {
        match journal {
            Ok(found) => listing.journals.push(found),
            Err(unreadable) => listing.unreadable.push(unreadable),
        }
    }
    Ok(listing)
}

/// Each journal of a folder, read when it is asked for; or its path and why it cannot be read.
fn newest_first(
    folder: &Arc<PrivateFolder>,
    how: OFlags,
) -> io::Result<impl Iterator<Item = Result<OpenJournal, (PathBuf, String)>>> {
    let open = move |(_, name): (u64, String)| {
        let path = folder.path().join(&name);
        let file = match folder.file(&name, how) {
            Ok(file) => file,
            // Put back and removed by another since we listed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return Some(Err((path, e.to_string()))),
        };
        let locked = file.try_lock().is_err();
        let place = JournalPlace { folder: folder.clone(), name };
        Some(read(place, file, locked).map_err(|why| (path, why)))
    };
    Ok(names(folder)?.into_iter().rev().filter_map(open))
}

fn read(place: JournalPlace, file: File, locked: bool) -> Result<OpenJournal, String> {
    let text = BufReader::new((&file).take(MOST_BYTES));
    let mut lines = text.lines().map_while(Result::ok).map(|l| serde_json::from_str::<Line>(&l));
    let (pid, started, boot_id, command) = match lines.next() {
        Some(Ok(Line::Header { schema, pid, started, boot_id, command })) if schema == SCHEMA => {
            (pid, started, boot_id, command)
        }
        Some(Ok(Line::Header { schema, .. })) => {
            return Err(format!("is of version '{schema}'; this is {SCHEMA}"));
        }
        // Killed before the header was whole: nothing had been changed.
        None | Some(Err(_)) => (0, 0, String::new(), String::new()),
        Some(Ok(_)) => return Err("does not begin with a header; it is no journal".to_owned()),
    };
    let (mut items, mut ready, mut done, mut kept) = (Vec::new(), false, false, false);
    for line in lines {
        match line {
            Ok(Line::Item(item)) => items.push(item),
            Ok(Line::Ready) => ready = true,
            Ok(Line::Wrote(at, got)) => {
                if let Some(item) = items.get_mut(at) {
                    item.ours.push(got);
                }
            }
            Ok(Line::Done) => done = true,
            Ok(Line::Kept) => kept = true,
            Ok(Line::Back(at)) => items.get_mut(at).into_iter().for_each(|i: &mut Item| i.back = true),
            Ok(Line::Header { .. }) => return Err("has two headers; it is no journal".to_owned()),
            // The line that a kill tore, and what ends it for those after it.
            Err(_) => {}
        }
    }
    if !ready {
        items.clear();
    }
    items.iter_mut().for_each(|item| item.unsettled = !done);
    let held = locked && wattwise_child::stat(pid).is_some_and(|s| s.started == started);
    let path = place.folder.path().join(&place.name);
    Ok(OpenJournal { path, pid, boot_id, command, items, done, kept, held, locked, file, place })
}

impl Listing {
    /// Those whose owner is gone, newest first.
    pub fn left(&self) -> impl Iterator<Item = &OpenJournal> {
        self.journals.iter().filter(|f| !f.held)
    }
}

impl OpenJournal {
    /// Whether its owner was killed, and what it changed was to go back with it.
    pub fn is_abandoned(&self) -> bool {
        !self.held && !self.kept && !self.items.is_empty()
    }

    /// Whether another process is at it now.
    pub(super) fn is_locked(&self) -> bool {
        self.locked
    }

    /// Waits until that one is done.
    pub(super) fn wait(self) -> io::Result<()> {
        self.file.lock()
    }

    /// What it means for putting back.
    pub fn layer(&self) -> Layer<'_> {
        if self.held { Layer::Held(&self.items) } else { Layer::Left(&self.items) }
    }

    /// After putting back: the file goes when nothing remains to be done.
    pub fn finish(mut self, restored: &Restored) -> io::Result<()> {
        finish((&self.place, &self.boot_id), &mut self.file, restored)
    }
}

#[cfg(test)]
mod tests;
