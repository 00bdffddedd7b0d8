//! Values as they were: what is kept of them, and how they are put back.
//!
//! **Putting back** ([`put_back_all`]) treats each value by itself: what is as it was needs nothing; what is
//! ours is written; what somebody else changed since is theirs and stays. Values depend on each other
//! (a minimum may not pass the maximum, a preference is refused under the performance governor), and
//! the order that worked on the way in need not work on the way out. So we go round: write what
//! differs, and again, until nothing differs or a round improves nothing.

use crate::set::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use wattwise_hw::probe::why;
use wattwise_hw::root::Root;

/// One value under a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Where.
    pub target: Target,
    /// For people: `policy0 governor`.
    pub what: String,
    /// Its value before.
    pub original: String,
    /// The file was made by an earlier change of the transaction, and goes when that one is put back: a governor's
    /// tunables are there while it is in force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub appeared: bool,
    /// Values that we wrote, or that followed.
    #[serde(skip)]
    pub ours: Vec<String>,
    /// The transaction was ended before all was in force and noted: whatever is there may be ours.
    #[serde(skip)]
    pub unsettled: bool,
    /// Put back, or found to need or allow no putting back, when others of its transaction could not be.
    #[serde(skip)]
    pub back: bool,
}

impl Item {
    /// Whether it went with the change that had made it, so that nothing is left to put back.
    fn is_gone(&self, error: &io::Error) -> bool {
        self.appeared && error.kind() == io::ErrorKind::NotFound
    }
}

/// A transaction among several that are to be put back.
#[derive(Clone, Copy)]
pub enum Layer<'j> {
    /// Its owner is gone: these are its items.
    Left(&'j [Item]),
    /// Its owner lives and will put these back itself.
    Held(&'j [Item]),
}

/// What came of putting back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        let mut whys: Vec<(&str, Vec<&str>)> = Vec::new();
        for (what, why) in &self.failed {
            match whys.iter_mut().find(|(known, _)| known == why) {
                Some((_, all)) => all.push(what),
                None => whys.push((why, vec![what])),
            }
        }
        for (why, all) in whys {
            let named = all[..all.len().min(MOST_NAMED)].join(", ");
            let more = all.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            write!(f, "; NOT put back: {named}{more}: {why}")?;
        }
        Ok(())
    }
}

/// Values that one line names with what they have in common: a large machine has thousands.
const MOST_NAMED: usize = 3;

/// The boot that we run in, so that settings of an earlier one are not "put back".
pub fn boot_id(root: &dyn Root) -> String {
    wattwise_hw::root::text(root, "proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Whether a value found is one that we left.
pub(super) fn is_ours(item: &Item, now: &str) -> bool {
    // Before the end of a transaction nobody has noted what its changes moved: limits not yet written follow a
    // boost switch that was.
    item.unsettled || item.ours.iter().any(|v| v == now)
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
pub(super) fn put_back(root: &dyn Root, items: &[Item], waiting: &BTreeSet<Target>) -> Restored {
    let mut restored = Restored::default();
    // Whose value it is gets judged once, before our own writes move anything. What is as it was, what is
    // theirs and what was settled earlier is watched all the same: putting a neighbour back may move it. An
    // unreadable one is tried: a CPU that we took offline has no files until it is back.
    let mut watched: Vec<WatchedItem> = Vec::new();
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
            Err(e) if item.back || item.is_gone(&e) => {
                restored.settled.push(at);
                continue;
            }
            _ => None,
        };
        let (wanted, ours) = match stays {
            Some(now) => (now, false),
            None => (item.original.clone(), true),
        };
        watched.push(WatchedItem { at, item, wanted, ours, wrote: false, refusal: None });
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
        let gone = now.as_ref().is_err_and(|e| w.item.is_gone(e));
        if !w.ours || gone || now.as_ref().is_ok_and(|now| *now == w.wanted) {
            restored.settled.push(w.at);
            match (w.ours, w.wrote || gone) {
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
struct WatchedItem<'i> {
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

impl WatchedItem<'_> {
    fn stands(&self, root: &dyn Root) -> bool {
        self.item.target.read(root).map_or_else(|e| self.item.is_gone(&e), |now| now == self.wanted)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_alike_is_one_clause() {
        let failed = |n: u32| (0..n).map(|cpu| (format!("cpu{cpu}"), "is away".to_owned())).collect();
        let told = |failed| Restored { failed, ..Restored::default() }.to_string();
        assert_eq!(told(failed(2)), "0 put back; NOT put back: cpu0, cpu1: is away");
        let mut many: Vec<_> = failed(9);
        many.push(("boost".into(), "is locked".into()));
        assert_eq!(
            told(many),
            "0 put back; NOT put back: cpu0, cpu1, cpu2 and 6 more: is away; NOT put back: boost: is locked"
        );
    }
}
