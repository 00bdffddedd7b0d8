//! What was changed, kept where a killed process leaves it behind.
//!
//! A journal is one file of JSON lines for each transaction:
//!
//! 1. a header (who, which boot) and every item with its original value, written and synced *before*
//!    the first change;
//! 2. `wrote` after each change, with the value read back;
//! 3. `done` when all is in force;
//! 4. `back` for each item that needs no more putting back, where others of the transaction still do.
//!
//! The lines of step 2 need no sync: a killed process leaves them in the page cache, and a power cut
//! takes the settings with it. The owner holds a lock on the file, so that a live transaction is never
//! taken for a dead one, and a torn last line is what a kill looks like, not damage.
//!
//! The folder is `/run/wattwise` for this machine: a reboot clears it together with the settings.

use crate::set::original::{Item, Layer, Restored};
use crate::set::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Version of the lines.
const SCHEMA: &str = "wattwise.journal/1";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header { schema: String, pid: u32, boot_id: String, command: String },
    Item(Item),
    Ready,
    Wrote(usize, String),
    Done,
    Back(usize),
}

/// A journal being written by its owner.
pub struct Journal {
    file: File,
    path: PathBuf,
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
    /// Whether its owner lives. Else this process has it locked until the value is dropped.
    pub held: bool,
    file: File,
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

    /// The value of an item after a change.
    pub fn wrote(&mut self, item: usize, got: &str) -> io::Result<()> {
        self.line(&Line::Wrote(item, got.to_owned()))
    }

    /// All is in force.
    pub fn done(&mut self) -> io::Result<()> {
        self.line(&Line::Done)
    }

    /// What transactions begun after this one have changed and not put back.
    pub fn later_targets(&self) -> BTreeSet<Target> {
        let Some(folder) = self.path.parent() else { return BTreeSet::new() };
        let journals = list(folder).map(|l| l.journals).unwrap_or_default();
        let later = journals.into_iter().take_while(|f| f.path != self.path);
        later.flat_map(|f| f.items).filter(|i| !i.back).map(|i| i.target).collect()
    }

    /// After putting back: the file goes when nothing remains to be done.
    pub fn finish(mut self, restored: &Restored) -> io::Result<()> {
        finish(&self.path, &mut self.file, restored)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        append(&mut self.file, line)
    }
}

fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

fn finish(path: &Path, file: &mut File, restored: &Restored) -> io::Result<()> {
    if restored.failed.is_empty() {
        return std::fs::remove_file(path);
    }
    // A kill may have torn the last line: ours begin on one of their own.
    file.write_all(b"\n")?;
    restored.settled.iter().try_for_each(|at| append(file, &Line::Back(*at)))
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
        match read(&path, file, held) {
            Ok(found) => listing.journals.push(found),
            Err(why) => listing.unreadable.push((path, why)),
        }
    }
    Ok(listing)
}

fn read(path: &Path, file: File, held: bool) -> Result<OpenJournal, String> {
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
            Ok(Line::Wrote(at, got)) => {
                if let Some(item) = items.get_mut(at) {
                    item.ours.push(got);
                }
            }
            Ok(Line::Done) => done = true,
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
    Ok(OpenJournal { path: path.to_owned(), pid, boot_id, command, items, done, held, file })
}

impl Listing {
    /// Those whose owner is gone, newest first.
    pub fn left(&self) -> impl Iterator<Item = &OpenJournal> {
        self.journals.iter().filter(|f| !f.held)
    }
}

impl OpenJournal {
    /// What it means for putting back.
    pub fn layer(&self) -> Layer<'_> {
        if self.held { Layer::Held(&self.items) } else { Layer::Left(&self.items) }
    }

    /// After putting back: the file goes when nothing remains to be done.
    pub fn finish(mut self, restored: &Restored) -> io::Result<()> {
        finish(&self.path, &mut self.file, restored)
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
                ours: Vec::new(),
                unsettled: false,
                back: false,
            })
            .collect()
    }

    #[test]
    fn every_prefix_of_a_journal_is_read_as_far_as_it_goes() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut journal = Journal::begin(folder.path(), "boot", "set", &items())?;
        journal.wrote(0, "zero")?;
        journal.done()?;
        drop(journal);
        let whole = std::fs::read(folder.path().join("000001.jsonl"))?;
        for cut in 0..=whole.len() {
            let other = tempfile::tempdir()?;
            std::fs::write(other.path().join("000001.jsonl"), &whole[..cut])?;
            let listing = list(other.path())?;
            assert!(listing.unreadable.is_empty(), "{cut}: {:?}", listing.unreadable);
            let found = listing.left().next().expect("a journal");
            // Either nothing had been changed yet, or all originals are there.
            assert!(found.items.is_empty() || found.items.len() == 3, "{cut}");
            if cut == whole.len() {
                assert_eq!(found.items[0].ours, ["zero"]);
                assert!(found.done && !found.items[1].unsettled);
            }
        }
        Ok(())
    }

    #[test]
    fn a_live_owner_is_left_alone() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let first = Journal::begin(folder.path(), "boot", "set", &items())?;
        let second = Journal::begin(folder.path(), "boot", "set", &items())?;
        assert_eq!(list(folder.path())?.left().count(), 0);
        drop(first);
        let listing = list(folder.path())?;
        assert_eq!(listing.journals.iter().map(|f| f.held).collect::<Vec<_>>(), [true, false]);
        drop(listing);
        second.finish(&Restored::default())?;
        assert_eq!(list(folder.path())?.left().count(), 1);
        Ok(())
    }
}
