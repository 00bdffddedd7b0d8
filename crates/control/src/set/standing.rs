//! Wishes that stand for as long as a daemon lives, and change meanwhile.
//!
//! A [transaction](crate::set::transaction) makes all changes or none and ends. A daemon goes from one set of wishes to the next,
//! has no moment at which the machine is as it was, and would rather have most of its wishes than none:
//!
//! 1. [`StandingChanges::before`] shows the machine as it was before the first change. Wishes are planned against that, so that
//!    what a profile means does not depend on the profile that was in force before it.
//! 2. [`StandingChanges::want`] goes straight from what stands to what is wanted: what is new is journalled, then written; what no
//!    wish names any more gets its original; what stands already is not written at all.
//! 3. Values depend on each other (a minimum may not pass the maximum), so it goes round until nothing differs or a round
//!    helps no more. What cannot be written is named with its reason, and the rest is done.
//! 4. [`StandingChanges::look`] reads every value again, through descriptors that stay open, and says which are another's now.
//! 5. [`StandingChanges::end`] puts everything back that is still ours. A killed daemon leaves its journal to `wattwise restore`. That
//!    journal is never "done", so that whatever stands there counts as ours, but for what was
//!    [let go](StandingChanges::let_go).

use crate::set::journal::Journal;
use crate::set::original::{Item, Restored, boot_id, put_back};
use crate::set::target::{Target, chosen};
use crate::set::transaction::{Change, TransactionError};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use wattwise_hw::probe::why;
use wattwise_hw::root::over::OverRoot;
use wattwise_hw::root::{Access, Node, Root};
use wattwise_hw::rules::why_not_written;

/// A write that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrote {
    /// For people: `policy0 preference`.
    pub what: String,
    /// The file or register.
    pub target: String,
    /// Before.
    pub old: String,
    /// What was asked for.
    pub asked: String,
    /// As read back.
    pub got: String,
}

/// A value that is not what we left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// For people.
    pub what: String,
    /// Where.
    pub target: Target,
    /// What we had left.
    pub ours: String,
    /// What stands there now.
    pub now: String,
}

/// What came of wishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Writes, in order.
    pub wrote: Vec<Wrote>,
    /// What could not be had.
    pub failed: Vec<FailedChange>,
}

/// A change that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedChange {
    /// File or register.
    pub target: String,
    /// What was to change.
    pub what: String,
    /// Why it did not.
    pub why: String,
}

/// What is kept of a value.
struct KeptValue {
    item: Item,
    /// What is wanted; none where it only follows others' changes and is to be put back with them.
    wanted: Option<String>,
    /// What stood there when we last wrote or looked.
    left: Option<String>,
    /// Why it cannot be had, said once.
    refused: Option<String>,
    /// Another's since, or as it was: nothing of ours until it is wanted anew.
    let_go: bool,
    /// Which item of the journal it is.
    journalled: usize,
    /// As it was, and journalled still: it will be wanted again soon. The journal says so.
    rests: bool,
    /// It follows from what is wanted (a limit from boost), and goes back with it.
    follows: bool,
    node: Option<Box<dyn Node>>,
    /// For what is written again and again.
    writer: Option<Box<dyn Node>>,
}

/// Wishes in force.
pub struct StandingChanges<'r> {
    root: &'r dyn Root,
    folder: PathBuf,
    command: String,
    journal: Option<Journal>,
    kept: Vec<KeptValue>,
    at: BTreeMap<Target, usize>,
    /// Items in the journal so far.
    journalled: usize,
    /// The journal has changed since the note was written.
    unnoted: bool,
    come_and_go: bool,
    /// Items of which the journal says that they rest.
    resting: Vec<usize>,
    /// Whether the journal has lines that are not on disk.
    unsynced: bool,
}

impl<'r> StandingChanges<'r> {
    /// Nothing is wanted yet, and nothing is written.
    pub fn new(root: &'r dyn Root, folder: &Path, command: &str) -> StandingChanges<'r> {
        let (folder, command) = (folder.to_owned(), command.to_owned());
        StandingChanges {
            root,
            folder,
            command,
            journal: None,
            kept: Vec::new(),
            at: BTreeMap::new(),
            journalled: 0,
            unnoted: false,
            come_and_go: false,
            resting: Vec::new(),
            unsynced: false,
        }
    }

    /// The machine as it was before the first change.
    pub fn before(&self) -> OverRoot<&dyn Root> {
        let originals = self.kept.iter().filter(|k| !k.let_go).filter_map(|k| match &k.item.target {
            Target::File(path) => Some((path.clone(), k.item.original.clone())),
            Target::Register { .. } => None,
        });
        OverRoot::new(self.root, originals.collect())
    }

    /// Has exactly these changes in force, from now on. `beside` is what follows from them and goes back with them.
    ///
    /// # Errors
    /// The journal cannot be written: then nothing new was changed.
    pub fn want(&mut self, changes: &[Change], beside: &[Change]) -> Result<Changed, TransactionError> {
        let mut changed = Changed::default();
        for kept in &mut self.kept {
            (kept.wanted, kept.follows) = (None, false);
        }
        self.wake(changes)?;
        let mut coming: Vec<&Change> = Vec::new();
        for change in changes {
            match self.admit(&change.target, &change.what, false)? {
                // Of two wishes for one value the later one counts.
                Ok(at) => self.kept[at].wanted = Some(change.value.clone()),
                // A governor's tunables are there once it is in force.
                Err(e) if change.elsewhere.is_some() || e.kind() == io::ErrorKind::NotFound => {
                    coming.push(change);
                }
                Err(e) => changed.refused(change, why(&e, &change.target.path(), self.root)),
            }
        }
        for change in beside {
            if let Ok(at) = self.admit(&change.target, &change.what, false)? {
                self.kept[at].follows = self.kept[at].wanted.is_none();
            }
        }
        self.sync()?;
        self.rounds(&mut changed);
        for change in coming {
            self.arrived(change, &mut changed)?;
        }
        self.settle();
        self.note();
        Ok(changed)
    }

    /// A change of a file that an earlier one made.
    fn arrived(&mut self, change: &Change, changed: &mut Changed) -> Result<(), TransactionError> {
        let own = std::iter::once((&change.target, &change.what));
        let places: Vec<_> = own.chain(change.elsewhere.as_ref().map(|(t, w)| (t, w))).collect();
        for (target, what) in places {
            if let Ok(at) = self.admit(target, what, true)? {
                self.kept[at].wanted = Some(change.value.clone());
                self.sync()?;
                self.rounds(changed);
                return Ok(());
            }
        }
        changed.refused(change, "is not there".to_owned());
        Ok(())
    }

    /// Journals a value before its first change.
    fn admit(
        &mut self,
        target: &Target,
        what: &str,
        appeared: bool,
    ) -> Result<io::Result<usize>, TransactionError> {
        let slot = self.at.get(target).copied();
        if let Some(at) = slot {
            // What was put there while nobody wanted anything of it is what was there before.
            let rests = std::mem::take(&mut self.kept[at].rests);
            if rests && target.read(self.root).is_ok_and(|now| now != self.kept[at].item.original) {
                self.forget(at);
            }
            let kept = &mut self.kept[at];
            // Wanted anew: what another program left there is what it was before.
            if !kept.let_go {
                return Ok(Ok(at));
            }
        }
        let original = match target.read(self.root) {
            Ok(original) => original,
            Err(e) => return Ok(Err(e)),
        };
        let item = Item {
            target: target.clone(),
            what: what.to_owned(),
            original: original.clone(),
            appeared,
            ours: Vec::new(),
            unsettled: true,
            back: false,
        };
        let failed = |error| TransactionError::Journal { path: self.folder.clone(), error };
        match &mut self.journal {
            Some(journal) => journal.appeared(&item).map_err(failed)?,
            None => {
                let items = std::slice::from_ref(&item);
                let boot = boot_id(self.root);
                self.journal =
                    Some(Journal::begin(&self.folder, &boot, &self.command, items).map_err(failed)?);
            }
        }
        let kept = KeptValue {
            item,
            journalled: self.journalled,
            rests: false,
            wanted: None,
            left: Some(original),
            refused: None,
            let_go: false,
            follows: false,
            node: None,
            writer: None,
        };
        self.journalled += 1;
        (self.unsynced, self.unnoted) = (true, true);
        // In the place of what was let go: a daemon lives for months.
        let at = slot.unwrap_or(self.kept.len());
        match self.kept.get_mut(at) {
            Some(place) => *place = kept,
            None => self.kept.push(kept),
        }
        self.at.insert(target.clone(), at);
        Ok(Ok(at))
    }

    /// Originals are on disk before anything is written.
    fn sync(&mut self) -> Result<(), TransactionError> {
        let failed = |error| TransactionError::Journal { path: self.folder.clone(), error };
        let Some(journal) = self.journal.as_mut().filter(|_| self.unsynced) else { return Ok(()) };
        journal.sync().map_err(failed)?;
        self.unsynced = false;
        Ok(())
    }

    /// Notes what was replaced for who reads the machine, where the journal has changed since.
    fn note(&mut self) {
        if let Some(journal) = self.journal.as_ref().filter(|_| self.unnoted) {
            journal.note();
            self.unnoted = false;
        }
    }

    /// Writes what differs, round by round.
    fn rounds(&mut self, changed: &mut Changed) {
        let mut differing = usize::MAX;
        loop {
            for at in 0..self.kept.len() {
                self.write(at, changed);
            }
            let now = (0..self.kept.len()).filter(|at| self.differs(*at)).count();
            if now == 0 || now >= differing {
                break;
            }
            differing = now;
        }
        for kept in &mut self.kept {
            if let Some(why) = kept.refused.take() {
                let target = kept.item.target.to_string();
                // Another round may have helped it.
                let stands = kept.wanted.as_ref() == kept.left.as_ref();
                if !stands && !changed.failed.iter().any(|f| f.target == target) {
                    changed.failed.push(FailedChange { target, what: kept.item.what.clone(), why });
                }
            }
        }
    }

    /// What is to stand there: the wish, else what was there before us.
    fn goal(kept: &KeptValue) -> &str {
        kept.wanted.as_deref().unwrap_or(&kept.item.original)
    }

    fn differs(&self, at: usize) -> bool {
        let kept = &self.kept[at];
        let is_ours = !kept.let_go && !kept.follows && !kept.rests;
        // What is not there cannot be helped; what nobody wants any more least of all.
        is_ours && kept.item.target.read(self.root).is_ok_and(|now| now != Self::goal(kept))
    }

    fn write(&mut self, at: usize, changed: &mut Changed) {
        let kept = &mut self.kept[at];
        if kept.let_go || kept.follows || kept.rests {
            return;
        }
        let target = &kept.item.target;
        let Ok(old) = target.read(self.root) else { return };
        let goal = Self::goal(kept).to_owned();
        if old == goal {
            kept.left = Some(old);
            kept.refused = None;
            return;
        }
        match target.write(self.root, &goal) {
            Ok(()) => {
                let got = target.read(self.root).unwrap_or_else(|_| goal.clone());
                kept.left = Some(got.clone());
                kept.refused = (got != goal && got == old).then(|| {
                    format!(
                        "was asked for '{goal}', stays '{got}': the driver took the write and did nothing"
                    )
                });
                let (what, target) = (kept.item.what.clone(), target.to_string());
                changed.wrote.push(Wrote { what, target, old, asked: goal, got });
            }
            Err(e) => kept.refused = Some(why_not_written(&e, &target.path(), self.root)),
        }
    }

    /// Notes what stands once all is done; what no wish needs and is as it was is forgotten.
    fn settle(&mut self) {
        for at in 0..self.kept.len() {
            if self.kept[at].rests && !self.come_and_go {
                self.forget(at);
            }
            let kept = &mut self.kept[at];
            if kept.let_go || kept.rests {
                continue;
            }
            let Ok(now) = kept.item.target.read(self.root) else { continue };
            let is_done = kept.wanted.is_none() && !kept.follows && now == kept.item.original;
            kept.left = Some(now);
            if is_done {
                match self.come_and_go {
                    true => kept.rests = true,
                    false => self.forget(at),
                }
            }
        }
        self.rest();
    }

    fn forget(&mut self, at: usize) {
        self.kept[at].let_go = true;
        self.kept[at].node = None;
        self.unsynced = true;
        if let Some(journal) = &mut self.journal {
            // A journal that can no longer be written would have it put back: the safe side.
            _ = journal.let_go(self.kept[at].journalled);
            self.unnoted = true;
        }
    }

    /// Reads every value again: those that are neither what we left nor what is wanted.
    pub fn look(&mut self) -> Vec<Foreign> {
        let root = self.root;
        let mut foreign = Vec::new();
        for kept in self.kept.iter_mut().filter(|k| !k.let_go && k.wanted.is_some()) {
            let Some(now) = kept.now(root) else { continue };
            let Some(ours) = kept.left.clone().filter(|left| *left != now) else { continue };
            if kept.wanted.as_ref() == Some(&now) {
                kept.left = Some(now);
                continue;
            }
            // In a folder of plain files a write puts another file in the old one's place, which an open descriptor still shows.
            kept.node = None;
            let Some(now) = kept.now(root).filter(|again| *again != ours) else { continue };
            let (what, target) = (kept.item.what.clone(), kept.item.target.clone());
            foreign.push(Foreign { what, target, ours, now });
        }
        foreign
    }

    /// Writes again what is wanted and does not stand: after a resume, or against another program.
    pub fn reassert(&mut self) -> Changed {
        let mut changed = Changed::default();
        self.rounds(&mut changed);
        self.settle();
        changed
    }

    /// Leaves a value to whoever changed it: it is not written any more, nor put back.
    pub fn let_go(&mut self, target: &Target) {
        if let Some(&at) = self.at.get(target) {
            self.forget(at);
        }
    }

    /// Writes one value of a policy that is followed here, through a descriptor that stays open. The value must be wanted
    /// already; what others make of it is not looked at, since the next decision is soon.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn drive(&mut self, target: &Target, value: &str) -> io::Result<bool> {
        let Some(kept) = self.at.get(target).map(|at| &mut self.kept[*at]) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if kept.wanted.as_deref() == Some(value) && kept.left.is_none() {
            return Ok(false);
        }
        (kept.wanted, kept.left) = (Some(value.to_owned()), None);
        for last in [false, true] {
            if kept.writer.is_none() {
                kept.writer = Some(self.root.open(&target.path(), Access::Write)?);
            }
            match kept.writer.as_mut().map(|w| w.write_at(0, value.as_bytes())) {
                Some(Ok(())) | None => break,
                Some(Err(e)) => {
                    kept.writer = None;
                    if last {
                        return Err(e);
                    }
                }
            }
        }
        Ok(true)
    }

    /// How many values are wanted.
    pub fn len(&self) -> usize {
        self.kept.iter().filter(|k| k.wanted.is_some() && !k.let_go).count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts everything back that is still ours.
    pub fn end(&mut self) -> Restored {
        let Some(journal) = self.journal.take() else { return Restored::default() };
        let items: Vec<Item> = std::mem::take(&mut self.kept)
            .into_iter()
            .map(|kept| {
                let mut item = kept.item;
                item.back = kept.let_go || kept.rests;
                item.unsettled = kept.wanted.is_none();
                item.ours.extend(kept.left);
                item.ours.extend(kept.wanted);
                item
            })
            .collect();
        self.at.clear();
        let restored = put_back(self.root, &items, &journal.later_targets());
        _ = journal.finish(&restored);
        restored
    }
}

impl Drop for StandingChanges<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl Changed {
    fn refused(&mut self, change: &Change, why: String) {
        let (target, what) = (change.target.to_string(), change.what.clone());
        self.failed.push(FailedChange { target, what, why });
    }
}

impl KeptValue {
    /// The value, through a descriptor that stays open. One that is dead (a CPU that went and came back) is opened anew.
    fn now(&mut self, root: &dyn Root) -> Option<String> {
        let Target::File(path) = &self.item.target else { return self.item.target.read(root).ok() };
        for _ in 0..2 {
            if self.node.is_none() {
                self.node = root.open(path, Access::Read).ok();
            }
            let mut bytes = [0; 4096];
            match self.node.as_mut()?.read_at(0, &mut bytes) {
                Ok(n) => {
                    let text = String::from_utf8_lossy(&bytes[..n]).trim().to_owned();
                    return Some(chosen(&text).unwrap_or(text));
                }
                Err(_) => self.node = None,
            }
        }
        None
    }
}

mod rest;
#[cfg(test)]
mod tests;
