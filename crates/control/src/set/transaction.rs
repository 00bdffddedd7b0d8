//! Changes that are all made or all undone, and that can be put back later, even by another process.
//!
//! 1. The originals go to the [journal](crate::set::journal) and to disk.
//! 2. Each change is written and read back. The first that fails undoes those before it.
//! 3. Whoever holds the [`Transaction`] keeps the changes ([`Transaction::keep`]) or has them put back
//!    ([`Transaction::undo`]); dropping it, in a panic too, puts them back.
//! 4. A killed process leaves its journal; [the next command](crate::set::left) or `wattwise restore` does the rest.

use crate::set::journal::Journal;
use crate::set::left::restore_abandoned;
use crate::set::original::{Item, Restored, boot_id, put_back};
use crate::set::target::Target;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use wattwise_hw::probe::{is_denied, why};
use wattwise_hw::root::Root;
use wattwise_hw::rules::why_not_written;

/// A change to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub target: Target,
    /// For people: `policy0 governor`.
    pub what: String,
    /// What to write.
    pub value: String,
    /// Of a file that an earlier change makes, the other place where it may appear, and what it is there: the kernel keeps a
    /// governor's tunables for each policy or for all, as the driver wants.
    pub elsewhere: Option<(Target, String)>,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WriteOutcome {
    /// For people.
    pub what: String,
    /// The file or register.
    pub target: String,
    /// Before.
    pub old: String,
    /// As asked.
    pub asked: String,
    /// As read back.
    pub got: String,
}

/// Why a transaction did not happen.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// An original cannot be read: nothing was written.
    #[error("{what}: {why}; nothing was changed")]
    Original {
        /// Which.
        what: String,
        /// Why.
        why: String,
    },
    /// No journal, no change.
    #[error("{path}: the journal cannot be written ({error}); nothing was changed; run as root or give --journal FOLDER", path = path.display())]
    Journal {
        /// Its folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Rights are missing for a change, or nobody writes there; those before it were undone.
    #[error("{what}: {why}; {undone}")]
    Denied {
        /// Which.
        what: String,
        /// Why.
        why: String,
        /// What became of the others.
        undone: String,
    },
    /// A change failed; those before it were undone.
    #[error("{what}: {why}; {undone}")]
    Failed {
        /// Which.
        what: String,
        /// Why.
        why: String,
        /// What became of the others.
        undone: String,
    },
}

impl TransactionError {
    /// Whether somebody else, or the same on another machine, could have made the changes.
    pub fn is_impossible(&self) -> bool {
        matches!(self, TransactionError::Journal { .. } | TransactionError::Denied { .. })
    }
}

/// Why a change was not made.
struct NotMade {
    why: String,
    denied: bool,
}

impl From<String> for NotMade {
    fn from(why: String) -> NotMade {
        NotMade { why, denied: false }
    }
}

impl From<&str> for NotMade {
    fn from(why: &str) -> NotMade {
        NotMade::from(why.to_owned())
    }
}

/// Changes in force that can still be undone.
pub struct Transaction<'r> {
    root: &'r dyn Root,
    /// Taken when the end is decided.
    journal: Option<Journal>,
    items: Vec<Item>,
    outcomes: Vec<WriteOutcome>,
}

/// Whether an attribute is not there, as those of a CPU that is offline.
fn is_absent(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == std::io::ErrorKind::NotFound
        || [Errno::NXIO, Errno::NODEV].map(Errno::raw_os_error).contains(&error.raw_os_error().unwrap_or(0))
}

impl<'r> Transaction<'r> {
    /// Makes all changes or none. `beside` are values that follow from the changes and must come back with
    /// them; `stop` is asked before each write, and its reason undoes all.
    pub fn apply(
        root: &'r dyn Root,
        journal: &Path,
        command: &str,
        changes: &[Change],
        beside: &[Change],
        stop: &dyn Fn() -> Option<String>,
    ) -> Result<Transaction<'r>, TransactionError> {
        let mut transaction = Transaction::begin(root, journal, command, changes, beside)?;
        transaction.make_all(changes, stop)?;
        transaction.settle();
        Ok(transaction)
    }

    /// Journals the originals of changes and of what is beside them; nothing is changed yet.
    pub(super) fn begin(
        root: &'r dyn Root,
        journal: &Path,
        command: &str,
        changes: &[Change],
        beside: &[Change],
    ) -> Result<Transaction<'r>, TransactionError> {
        let items = originals(root, changes, beside)?;
        let journal = Journal::begin(journal, &boot_id(root), command, &items)
            .map_err(|error| TransactionError::Journal { path: journal.to_owned(), error })?;
        Ok(Transaction { root, journal: Some(journal), items, outcomes: Vec::new() })
    }

    /// Makes changes one after the other; the first that fails undoes everything.
    pub(super) fn make_all(
        &mut self,
        changes: &[Change],
        stop: &dyn Fn() -> Option<String>,
    ) -> Result<(), TransactionError> {
        for change in changes {
            let made = match stop() {
                Some(reason) => Err(NotMade::from(reason)),
                None => self.make(change),
            };
            made.map_err(|e| match e.denied {
                true => self.denied(&change.what, e.why),
                false => self.failed(&change.what, e.why),
            })?;
        }
        Ok(())
    }

    /// Undoes everything, because a right is missing.
    fn denied(&mut self, what: &str, why: String) -> TransactionError {
        TransactionError::Denied { what: what.to_owned(), why, undone: self.undo().to_string() }
    }

    /// Undoes everything, because something failed.
    pub(super) fn failed(&mut self, what: &str, why: String) -> TransactionError {
        TransactionError::Failed { what: what.to_owned(), why, undone: self.undo().to_string() }
    }

    /// Journals what earlier changes have made appear, before later ones change it.
    pub(super) fn admit(&mut self, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            let is_known = |t: &Target| self.items.iter().any(|i| i.target == *t);
            if is_known(&change.target) || change.elsewhere.is_some() {
                continue;
            }
            if let Ok(original) = change.target.read(self.root) {
                self.appeared(&change.target, &change.what, original)?;
            }
        }
        Ok(())
    }

    fn make(&mut self, change: &Change) -> Result<(), NotMade> {
        let at = self.item(change)?;
        let target = &self.items[at].target;
        let common = change.elsewhere.as_ref().is_some_and(|(common, _)| common == target);
        if common && self.outcomes.iter().any(|o| o.target == target.to_string() && o.asked == change.value) {
            // The same file as another policy's.
            return Ok(());
        }
        let journal = self.journal.as_mut().ok_or("has ended")?;
        let failed = |e: io::Error| why(&e, &target.path(), self.root);
        let refused = |e: io::Error| NotMade {
            denied: is_denied(&e),
            why: why_not_written(&e, &target.path(), self.root),
        };
        target.write(self.root, &change.value).map_err(refused)?;
        let got = target.read(self.root).map_err(failed)?;
        journal.wrote(at, &got).map_err(|e| format!("the journal cannot be written ({e})"))?;
        self.items[at].ours.push(got.clone());
        self.outcomes.push(WriteOutcome {
            what: self.items[at].what.clone(),
            target: self.items[at].target.to_string(),
            old: self.items[at].original.clone(),
            asked: change.value.clone(),
            got,
        });
        Ok(())
    }

    /// Which item a change is of. A file that an earlier change has made becomes one now.
    fn item(&mut self, change: &Change) -> Result<usize, String> {
        let own = std::iter::once((&change.target, &change.what));
        let mut places = own.chain(change.elsewhere.as_ref().map(|(target, what)| (target, what)));
        if let Some(at) = self.items.iter().position(|i| places.clone().any(|(p, _)| *p == i.target)) {
            return Ok(at);
        }
        if change.elsewhere.is_none() {
            return Err("is not in its own journal".into());
        }
        let found = places.find_map(|(target, what)| Some((target, what, target.read(self.root).ok()?)));
        let (target, what, original) = found.ok_or("the governor is in force and has no such tunable")?;
        self.appeared(target, what, original)
    }

    /// A new item, journalled: its place.
    fn appeared(&mut self, target: &Target, what: &str, original: String) -> Result<usize, String> {
        let item = Item {
            target: target.clone(),
            what: what.to_owned(),
            original,
            appeared: true,
            ours: Vec::new(),
            unsettled: true,
            back: false,
        };
        let journal = self.journal.as_mut().ok_or("has ended")?;
        journal.appeared(&item).map_err(|e| format!("the journal cannot be written ({e})"))?;
        self.items.push(item);
        Ok(self.items.len() - 1)
    }

    /// Notes what the values are once all changes are made: later ones may have moved earlier ones, and
    /// those beside them. One that cannot be read or noted now stays unsettled, and the journal with it: whatever it turns out to be, it is
    /// taken for ours and put back.
    pub(super) fn settle(&mut self) {
        for (at, item) in self.items.iter_mut().enumerate() {
            let now = match item.target.read(self.root) {
                Ok(now) => now,
                Err(e) => {
                    item.unsettled = !is_absent(&e);
                    continue;
                }
            };
            item.unsettled = false;
            if now != item.original && !item.ours.contains(&now) {
                // A journal that can no longer be written still holds the originals.
                let noted = self.journal.as_mut().is_none_or(|journal| journal.wrote(at, &now).is_ok());
                item.unsettled = !noted;
                item.ours.push(now);
            }
        }
        if let Some(journal) = self.journal.as_mut().filter(|_| self.items.iter().all(|i| !i.unsettled)) {
            _ = journal.done();
        }
        for outcome in &mut self.outcomes {
            if let Some(item) = self.items.iter().find(|i| i.target.to_string() == outcome.target)
                && let Ok(now) = item.target.read(self.root)
            {
                outcome.got = now;
            }
        }
    }

    /// Adds to the outcomes what was asked for and came about without a write of its own: a governor that a mode of the driver
    /// starts with.
    pub(super) fn tell(&mut self, changes: &[Change]) {
        for change in changes {
            let target = change.target.to_string();
            let item = self.items.iter().find(|i| i.target == change.target);
            let now = change.target.read(self.root).ok().filter(|now| *now == change.value);
            if let (Some(item), Some(got)) = (item, now)
                && !self.outcomes.iter().any(|o| o.target == target)
            {
                let (what, asked) = (change.what.clone(), change.value.clone());
                self.outcomes.push(WriteOutcome { what, target, old: item.original.clone(), asked, got });
            }
        }
    }

    /// What was asked for and what came of it, in order.
    pub fn outcomes(&self) -> &[WriteOutcome] {
        &self.outcomes
    }

    /// Leaves the changes in force. The journal stays, for `wattwise restore`, and a note for who reads the machine.
    pub fn keep(mut self) {
        if let Some(mut journal) = self.journal.take() {
            // A journal that can no longer be written is taken for a killed one's: the next command puts all back, and says so.
            _ = journal.kept();
            journal.note();
        }
    }

    /// Puts everything back that is still ours. The journal goes when nothing remains to be done.
    pub fn undo(&mut self) -> Restored {
        let Some(journal) = self.journal.take() else { return Restored::default() };
        let folder = journal.folder().to_owned();
        let restored = put_back(self.root, &self.items, &journal.later_targets());
        // Left behind it would only be found to need nothing.
        _ = journal.finish(&restored);
        // One that ended before us and had to wait for us. What cannot be put back now stays for the next command.
        _ = restore_abandoned(self.root, &folder);
        restored
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.journal.is_some() {
            self.undo();
        }
    }
}

/// Each target once, with its value before.
fn originals(root: &dyn Root, changes: &[Change], beside: &[Change]) -> Result<Vec<Item>, TransactionError> {
    let mut items: Vec<Item> = Vec::new();
    let mut known = BTreeSet::new();
    for (change, beside) in changes.iter().map(|c| (c, false)).chain(beside.iter().map(|c| (c, true))) {
        if !known.insert(change.target.clone()) {
            continue;
        }
        match change.target.read(root) {
            Ok(original) => items.push(Item {
                target: change.target.clone(),
                what: change.what.clone(),
                original,
                appeared: false,
                ours: Vec::new(),
                unsettled: true,
                back: false,
            }),
            // What is not there yet, a later change may make: it is read then.
            Err(e) if beside && e.kind() == io::ErrorKind::NotFound => {}
            Err(_) if change.elsewhere.is_some() => {}
            Err(e) => {
                let (what, why) = (change.what.clone(), why(&e, &change.target.path(), root));
                return Err(match is_denied(&e) {
                    true => TransactionError::Denied { what, why, undone: "nothing was changed".into() },
                    false => TransactionError::Original { what, why },
                });
            }
        }
    }
    Ok(items)
}
