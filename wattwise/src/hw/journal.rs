//! What was changed, kept where a killed process leaves it behind.
//!
//! A journal is one file of JSON lines for each transaction:
//!
//! 1. a header (who, which boot) and every item with its original value, written and synced *before*
//!    the first change;
//! 2. `writing` before a change and `wrote` with the value read back after it;
//! 3. `done` when all is in force.
//!
//! The lines of step 2 need no sync: a killed process leaves them in the page cache, and a power cut
//! takes the settings with it. The owner holds a lock on the file, so that a live transaction is never
//! taken for a dead one, and a torn last line is what a kill looks like, not damage.
//!
//! The folder is `/run/wattwise` for this machine: a reboot clears it together with the settings.

use super::target::Target;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Version of the lines.
const SCHEMA: &str = "wattwise.journal/1";

/// One value under a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Where.
    pub target: Target,
    /// For people: `policy0 governor`.
    pub what: String,
    /// Its value before.
    pub original: String,
    /// Not asked for, but known to follow from another change (a limit under a boost switch).
    pub beside: bool,
    /// Values that we wrote, or that followed.
    #[serde(skip)]
    pub ours: Vec<String>,
    /// A write was begun and not reported: whatever is there may be ours.
    #[serde(skip)]
    pub in_flight: bool,
    /// The transaction was ended before it could note what followed from its changes.
    #[serde(skip)]
    pub unsettled: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header { schema: String, pid: u32, boot_id: String, command: String },
    Item(Item),
    Ready,
    Writing(usize),
    Wrote(usize, String),
    Done,
}

/// A journal being written by its owner.
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// A journal found.
#[derive(Debug)]
pub struct Found {
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
    /// Held locked while it is being put back.
    _lock: File,
}

/// What stands in a folder of journals.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those whose owner is gone, newest first.
    pub left: Vec<Found>,
    /// Those whose owner lives: (file, pid).
    pub held: Vec<(PathBuf, u32)>,
    /// Files that are no journal: (file, why).
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Journal {
    /// Starts a journal with its items; when it returns they are on disk.
    pub fn begin(folder: &Path, boot_id: &str, command: &str, items: &[Item]) -> io::Result<Journal> {
        std::fs::create_dir_all(folder)?;
        let pid = std::process::id();
        // Numbers go up, so that names sort by age; two at once are told apart by O_EXCL.
        let mut number = 1 + names(folder)?.last().map_or(0, |(number, _)| *number);
        let (file, path) = loop {
            let path = folder.join(format!("{number:06}.jsonl"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => break (file, path),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(e),
            }
        };
        file.lock()?;
        let mut journal = Journal { file, path };
        let mut text = Vec::new();
        let header =
            Line::Header { schema: SCHEMA.into(), pid, boot_id: boot_id.into(), command: command.into() };
        for line in std::iter::once(header).chain(items.iter().cloned().map(Line::Item)).chain([Line::Ready])
        {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        journal.file.write_all(&text)?;
        journal.file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(journal)
    }

    /// About to change an item.
    pub fn writing(&mut self, item: usize) -> io::Result<()> {
        self.line(&Line::Writing(item))
    }

    /// The value of an item after a change.
    pub fn wrote(&mut self, item: usize, got: &str) -> io::Result<()> {
        self.line(&Line::Wrote(item, got.to_owned()))
    }

    /// All is in force.
    pub fn done(&mut self) -> io::Result<()> {
        self.line(&Line::Done)
    }

    /// Nothing of it is in force any more.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

/// The journals of a folder, ascending by number.
fn names(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut names: Vec<(u64, PathBuf)> = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let number = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
                Some((number, path))
            })
            .collect(),
    };
    names.sort_unstable();
    Ok(names)
}

/// Everything in a folder of journals; no folder is no journal.
pub fn list(folder: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for (_, path) in names(folder)?.into_iter().rev() {
        let file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            // Put back and removed by another since we listed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => {
                listing.unreadable.push((path, e.to_string()));
                continue;
            }
        };
        let held = file.try_lock().is_err();
        match read(&path, file) {
            Ok(found) if held => listing.held.push((path, found.pid)),
            Ok(found) => listing.left.push(found),
            Err(_) if held => listing.held.push((path, 0)),
            Err(why) => listing.unreadable.push((path, why)),
        }
    }
    Ok(listing)
}

fn read(path: &Path, file: File) -> Result<Found, String> {
    let mut lines =
        BufReader::new(&file).lines().map_while(Result::ok).map(|l| serde_json::from_str::<Line>(&l));
    let (pid, boot_id, command) = match lines.next() {
        Some(Ok(Line::Header { schema, pid, boot_id, command })) if schema == SCHEMA => {
            (pid, boot_id, command)
        }
        Some(Ok(Line::Header { schema, .. })) => {
            return Err(format!("is of version '{schema}'; this is {SCHEMA}"));
        }
        // Killed before the header was whole: nothing had been changed.
        None | Some(Err(_)) => (0, String::new(), String::new()),
        Some(Ok(_)) => return Err("does not begin with a header; it is no journal".to_owned()),
    };
    let (mut items, mut ready, mut done) = (Vec::new(), false, false);
    for line in lines {
        match line {
            Ok(Line::Item(item)) => items.push(item),
            Ok(Line::Ready) => ready = true,
            Ok(Line::Writing(at)) => {
                items.get_mut(at).into_iter().for_each(|i: &mut Item| i.in_flight = true)
            }
            Ok(Line::Wrote(at, got)) => {
                if let Some(item) = items.get_mut(at) {
                    item.in_flight = false;
                    item.ours.push(got);
                }
            }
            Ok(Line::Done) => done = true,
            Ok(Line::Header { .. }) => return Err("has two headers; it is no journal".to_owned()),
            // The line that a kill tore.
            Err(_) => break,
        }
    }
    if !ready {
        items.clear();
    }
    items.iter_mut().for_each(|item| item.unsettled = !done);
    Ok(Found { path: path.to_owned(), pid, boot_id, command, items, done, _lock: file })
}

impl Found {
    /// Nothing of it is in force any more.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        (0..3)
            .map(|n| Item {
                target: Target::File(format!("f{n}")),
                what: format!("file {n}"),
                original: n.to_string(),
                beside: false,
                ours: Vec::new(),
                in_flight: false,
                unsettled: false,
            })
            .collect()
    }

    #[test]
    fn every_prefix_of_a_journal_is_read_as_far_as_it_goes() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut journal = Journal::begin(folder.path(), "boot", "set", &items())?;
        journal.writing(0)?;
        journal.wrote(0, "zero")?;
        journal.writing(1)?;
        journal.done()?;
        drop(journal);
        let whole = std::fs::read(folder.path().join("000001.jsonl"))?;
        for cut in 0..=whole.len() {
            let other = tempfile::tempdir()?;
            std::fs::write(other.path().join("000001.jsonl"), &whole[..cut])?;
            let listing = list(other.path())?;
            assert!(listing.unreadable.is_empty(), "{cut}: {:?}", listing.unreadable);
            let found = &listing.left[0];
            // Either nothing had been changed yet, or all originals are there.
            assert!(found.items.is_empty() || found.items.len() == 3, "{cut}");
            if cut == whole.len() {
                assert_eq!(found.items[0].ours, ["zero"]);
                assert!(found.items[1].in_flight && !found.items[2].in_flight && found.done);
            }
        }
        Ok(())
    }

    #[test]
    fn a_live_owner_is_left_alone() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let first = Journal::begin(folder.path(), "boot", "set", &items())?;
        let second = Journal::begin(folder.path(), "boot", "set", &items())?;
        assert_eq!(list(folder.path())?.held.len(), 2);
        drop(first);
        let listing = list(folder.path())?;
        assert_eq!((listing.left.len(), listing.held.len()), (1, 1));
        drop(listing);
        second.remove()?;
        assert_eq!(list(folder.path())?.left.len(), 1);
        Ok(())
    }
}
