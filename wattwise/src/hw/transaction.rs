//! Changes that are all made or all undone, and that can be put back later, even by another process.
//!
//! 1. The originals go to the [journal](super::journal) and to disk.
//! 2. Each change is written and read back. The first that fails undoes those before it.
//! 3. Whoever holds the [`Transaction`] keeps the changes ([`Transaction::keep`]) or has them put back
//!    ([`Transaction::undo`]); dropping it, in a panic too, puts them back.
//! 4. A killed process leaves its journal; `wattwise restore` does the rest.
//!
//! **Putting back** ([`put_back`]) treats each value by itself: what is as it was needs nothing; what is
//! ours is written; what somebody else changed since is theirs and stays. Values depend on each other
//! (a minimum may not pass the maximum, a preference is refused under the performance governor), and
//! the order that worked on the way in need not work on the way out. So we go round: write what
//! differs, and again, until nothing differs or a round improves nothing.

use super::found::why;
use super::journal::{Item, Journal};
use super::root::Root;
use super::target::Target;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A change to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub target: Target,
    /// For people: `policy0 governor`.
    pub what: String,
    /// What to write.
    pub value: String,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
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

/// Changes in force that can still be undone.
pub struct Transaction<'r> {
    root: &'r dyn Root,
    /// Taken when the end is decided.
    journal: Option<Journal>,
    items: Vec<Item>,
    outcomes: Vec<Outcome>,
}

/// The boot that we run in, so that settings of an earlier one are not "put back".
pub fn boot_id(root: &dyn Root) -> String {
    super::root::text(root, "proc/sys/kernel/random/boot_id").unwrap_or_default()
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
        let items = originals(root, changes, beside)?;
        let journal = Journal::begin(journal, &boot_id(root), command, &items)
            .map_err(|error| TransactionError::Journal { path: journal.to_owned(), error })?;
        let mut transaction = Transaction { root, journal: Some(journal), items, outcomes: Vec::new() };
        for change in changes {
            let done = match stop() {
                Some(reason) => Err(reason),
                None => transaction.make(change),
            };
            if let Err(why) = done {
                let restored = transaction.undo();
                return Err(TransactionError::Failed {
                    what: change.what.clone(),
                    why,
                    undone: restored.to_string(),
                });
            }
        }
        transaction.settle();
        Ok(transaction)
    }

    fn make(&mut self, change: &Change) -> Result<(), String> {
        let at =
            self.items.iter().position(|i| i.target == change.target).ok_or("is not in its own journal")?;
        let journal = self.journal.as_mut().ok_or("has ended")?;
        let failed = |e: io::Error| why(&e, &change.target.path(), self.root);
        change.target.write(self.root, &change.value).map_err(failed)?;
        let got = change.target.read(self.root).map_err(failed)?;
        journal.wrote(at, &got).map_err(|e| format!("the journal cannot be written ({e})"))?;
        self.items[at].ours.push(got.clone());
        self.outcomes.push(Outcome {
            what: change.what.clone(),
            target: change.target.to_string(),
            old: self.items[at].original.clone(),
            asked: change.value.clone(),
            got,
        });
        Ok(())
    }

    /// Notes what the values are once all changes are made: later ones may have moved earlier ones, and
    /// those beside them.
    fn settle(&mut self) {
        for (at, item) in self.items.iter_mut().enumerate() {
            let Ok(now) = item.target.read(self.root) else { continue };
            if now != item.original && !item.ours.contains(&now) {
                if let Some(journal) = &mut self.journal {
                    // A journal that can no longer be written still holds the originals.
                    _ = journal.wrote(at, &now);
                }
                item.ours.push(now);
            }
        }
        self.items.iter_mut().for_each(|item| item.unsettled = false);
        if let Some(journal) = &mut self.journal {
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

    /// What was asked for and what came of it, in order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Leaves the changes in force. The journal stays, for `wattwise restore`.
    pub fn keep(mut self) {
        self.journal = None;
    }

    /// Puts everything back that is still ours. The journal goes when nothing remains to be done.
    pub fn undo(&mut self) -> Restored {
        let Some(journal) = self.journal.take() else { return Restored::default() };
        let restored = put_back(self.root, &self.items, &journal.later_targets());
        // Left behind it would only be found to need nothing.
        _ = journal.finish(&restored);
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
                ours: Vec::new(),
                unsettled: true,
                back: false,
            }),
            Err(_) if beside => {}
            Err(e) => {
                let why = why(&e, &change.target.path(), root);
                return Err(TransactionError::Original { what: change.what.clone(), why });
            }
        }
    }
    Ok(items)
}

/// What came of putting back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Put back: (what, value).
    pub restored: Vec<(String, String)>,
    /// As they were already.
    pub unchanged: usize,
    /// Changed by somebody else since, and left: (what, value found).
    pub foreign: Vec<(String, String)>,
    /// Not put back: (what, why).
    pub failed: Vec<(String, String)>,
    /// Which items of the transaction need no more putting back.
    #[serde(skip)]
    pub settled: Vec<usize>,
}

impl std::fmt::Display for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} put back", self.restored.len())?;
        if self.unchanged > 0 {
            write!(f, ", {} as before", self.unchanged)?;
        }
        for (what, value) in &self.foreign {
            write!(f, "; {what} is '{value}', changed by another program, and stays")?;
        }
        for (what, why) in &self.failed {
            write!(f, "; NOT put back: {what}: {why}")?;
        }
        Ok(())
    }
}

/// Whether a value found is one that we left.
fn is_ours(item: &Item, now: &str) -> bool {
    // Before the end of a transaction nobody has noted what its changes moved: limits not yet written follow a
    // boost switch that was.
    item.unsettled || item.ours.iter().any(|v| v == now)
}

/// A transaction among several that are to be put back.
#[derive(Clone, Copy)]
pub enum Layer<'j> {
    /// Its owner is gone: these are its items.
    Left(&'j [Item]),
    /// Its owner lives and will put these back itself.
    Held(&'j [Item]),
}

/// Puts back what several transactions left, newest first: what was changed twice goes back the way it
/// came. A value that is still to be put back for a newer one, by us or by its living owner, is not judged for
/// an older one: it would look like somebody else's.
pub fn put_back_all<'j>(root: &dyn Root, layers: impl IntoIterator<Item = Layer<'j>>) -> Vec<Restored> {
    let mut waiting = BTreeSet::new();
    let mut all = Vec::new();
    for layer in layers {
        match layer {
            Layer::Held(items) => waiting.extend(items.iter().map(|i| i.target.clone())),
            Layer::Left(items) => {
                let restored = put_back(root, items, &waiting);
                let settled: BTreeSet<usize> = restored.settled.iter().copied().collect();
                let open = items.iter().enumerate().filter(|(at, _)| !settled.contains(at));
                waiting.extend(open.map(|(_, i)| i.target.clone()));
                all.push(restored);
            }
        }
    }
    all
}

/// Puts items back as the module's head describes, but for those that wait for a later change to be put back.
/// Never stops at a failure.
fn put_back(root: &dyn Root, items: &[Item], waiting: &BTreeSet<Target>) -> Restored {
    let mut restored = Restored::default();
    // Whose value it is gets judged once, before our own writes move anything. What is as it was, what is
    // theirs and what was settled earlier is watched all the same: putting a neighbour back may move it. An
    // unreadable one is tried: a CPU that we took offline has no files until it is back.
    let mut watched: Vec<Watched> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if waiting.contains(&item.target) && !item.back {
            let why = "waits for a later change of it to be put back first";
            restored.failed.push((item.what.clone(), why.to_owned()));
            continue;
        }
        let stays = match item.target.read(root) {
            Ok(now) if item.back => Some(now),
            Ok(now) if now != item.original && !is_ours(item, &now) => {
                restored.foreign.push((item.what.clone(), now.clone()));
                Some(now)
            }
            Err(_) if item.back => {
                restored.settled.push(at);
                continue;
            }
            _ => None,
        };
        let (wanted, ours) = match stays {
            Some(now) => (now, false),
            None => (item.original.clone(), true),
        };
        watched.push(Watched { at, item, wanted, ours, wrote: false, refusal: None });
    }
    let mut differing = usize::MAX;
    loop {
        watched.iter_mut().for_each(|w| w.write(root));
        // Later writes may have moved earlier values: a round counts as the last only by what stands after it.
        let now = watched.iter().filter(|w| !w.stands(root)).count();
        if now == 0 || now >= differing {
            break;
        }
        differing = now;
    }
    for w in watched {
        let now = w.item.target.read(root);
        if !w.ours || now.as_ref().is_ok_and(|now| *now == w.wanted) {
            restored.settled.push(w.at);
            match (w.ours, w.wrote) {
                (true, true) => restored.restored.push((w.item.what.clone(), w.wanted)),
                (true, false) => restored.unchanged += 1,
                (false, _) => {}
            }
            continue;
        }
        let why = w.refusal.unwrap_or_else(|| match now {
            Ok(now) => format!("was asked for '{}', shows '{now}'", w.wanted),
            Err(e) => why(&e, &w.item.target.path(), root),
        });
        restored.failed.push((w.item.what.clone(), why));
    }
    restored
}

/// An item on its way back.
struct Watched<'i> {
    /// Which of its transaction.
    at: usize,
    item: &'i Item,
    /// What is to stand there in the end.
    wanted: String,
    /// Ours to put back; else only to be kept as it is.
    ours: bool,
    wrote: bool,
    /// Why the last write was refused.
    refusal: Option<String>,
}

impl Watched<'_> {
    fn stands(&self, root: &dyn Root) -> bool {
        self.item.target.read(root).is_ok_and(|now| now == self.wanted)
    }

    /// Writes what is wanted where something else stands.
    fn write(&mut self, root: &dyn Root) {
        self.refusal = None;
        if self.stands(root) {
            return;
        }
        match self.item.target.write(root, &self.wanted) {
            Ok(()) => self.wrote = true,
            Err(e) => self.refusal = Some(why(&e, &self.item.target.path(), root)),
        }
    }
}
