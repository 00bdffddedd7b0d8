//! Interrupts and unbound kernel work, steered to the CPUs that are kept.
//!
//! An idled core that takes a disk's interrupt wakes all the same. Three things can be steered by files: interrupts
//! (`/proc/irq/N/smp_affinity_list`), kernel work that is bound to no CPU (`workqueue/cpumask`) and interrupts yet
//! to come (`default_smp_affinity`). Timers follow their tasks, and those of idle CPUs migrate by themselves where
//! `kernel.timer_migration` is 1, its default.
//!
//! Not everything moves: an interrupt that serves one CPU's queue is the kernel's to place. Each is tried with its
//! own present value first, which changes nothing, and what refuses is listed.

use crate::set::journal;
use crate::set::original::put_back_all;
use crate::set::original::{Layer, Restored};
use crate::set::target::Target;
use crate::set::transaction::{Change, Transaction, TransactionError};
use std::path::Path;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::{Access, Root, text};

/// What can be steered here and what cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steerable {
    /// Lists of CPUs, by path.
    lists: Vec<String>,
    /// Masks of CPUs in hexadecimal, by path.
    masks: Vec<String>,
    /// Interrupts that stay, with who they are for.
    pub fixed: Vec<String>,
}

/// Marks our journals.
const COMMAND: &str = "coreidle: interrupts and kernel work";
const WORK: &str = "sys/devices/virtual/workqueue/cpumask";

impl Steerable {
    /// What steering would try. Only looks: to try is to write.
    pub fn look(root: &dyn Root) -> Steerable {
        let mut found = Steerable::default();
        for number in root.list("proc/irq").unwrap_or_default() {
            let path = format!("proc/irq/{number}/smp_affinity_list");
            if number.parse::<u32>().is_ok() && text(root, &path).is_some() {
                found.lists.push(path);
            }
        }
        for path in [WORK, "proc/irq/default_smp_affinity"] {
            if text(root, path).is_some() {
                found.masks.push(path.to_owned());
            }
        }
        found
    }

    /// Tries each.
    pub fn find(root: &dyn Root) -> Steerable {
        let Steerable { lists, masks, .. } = Steerable::look(root);
        let mut found = Steerable { masks, ..Steerable::default() };
        for path in lists {
            let Some(now) = text(root, &path) else { continue };
            let moves =
                root.open(&path, Access::Write).and_then(|mut f| f.write_at(0, now.as_bytes())).is_ok();
            match moves {
                true => found.lists.push(path),
                false => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    let number = folder.rsplit('/').next().unwrap_or_default();
                    let actions = root.list(folder).unwrap_or_default();
                    // The handler's name is that of a folder.
                    let known = |n: &&String| {
                        !n.contains("affinity")
                            && !["spurious", "node", "effective"].iter().any(|w| n.contains(w))
                    };
                    let name = actions.iter().find(known).map_or("", String::as_str);
                    found.fixed.push(format!("{number} {name} on CPU {now}").replace("  ", " "));
                }
            }
        }
        found
    }

    /// Steers everything to these CPUs until the transaction ends.
    ///
    /// # Errors
    /// Those of the transaction: then nothing is changed.
    pub fn apply<'r>(
        &self,
        root: &'r dyn Root,
        journal: &Path,
        kept: &CpuSet,
    ) -> Result<Transaction<'r>, TransactionError> {
        let change = |path: &String, value: String| Change {
            target: Target::File(path.clone()),
            what: path.clone(),
            value,
            elsewhere: None,
        };
        let lists = self.lists.iter().map(|p| change(p, kept.to_string()));
        let masks = self.masks.iter().map(|p| change(p, kept.mask()));
        let changes: Vec<Change> = lists.chain(masks).collect();
        Transaction::apply(root, journal, COMMAND, &changes, &[], &|| None)
    }

    /// How many things can be steered.
    pub fn count(&self) -> usize {
        self.lists.len() + self.masks.len()
    }
}

/// Puts back what an ended process steered. What could not be put back, one line each.
pub fn put_back(root: &dyn Root, folder: &Path) -> Vec<String> {
    let Ok(listing) = journal::list(folder) else { return Vec::new() };
    let (ours, others): (Vec<_>, Vec<_>) =
        listing.journals.into_iter().partition(|f| !f.held && f.command == COMMAND);
    let waiting = others.iter().map(|f| Layer::Held(&f.items));
    let mut results = put_back_all(root, waiting.chain(ours.iter().map(|f| f.layer())));
    let mut left = Vec::new();
    for found in ours.into_iter().rev() {
        let Some(result) = results.pop() else { break };
        left.extend(result.failed.iter().map(|(what, why)| format!("{what}: {why}")));
        left.extend(found.finish(&result).err().map(|e| e.to_string()));
    }
    left
}

/// Where things are steered to now.
pub struct Steering<'r> {
    root: &'r dyn Root,
    journal: &'r Path,
    what: Steerable,
    held: Option<Transaction<'r>>,
}

impl<'r> Steering<'r> {
    /// Nothing yet.
    pub fn new(root: &'r dyn Root, journal: &'r Path) -> Steering<'r> {
        Steering { root, journal, what: Steerable::find(root), held: None }
    }

    /// What can be steered and what cannot.
    pub fn what(&self) -> &Steerable {
        &self.what
    }

    /// Steers to these CPUs from now on.
    ///
    /// # Errors
    /// As [`Steerable::apply`].
    pub fn to(&mut self, kept: &CpuSet) -> Result<(), TransactionError> {
        self.release();
        if self.what.count() > 0 {
            self.held = Some(self.what.apply(self.root, self.journal, kept)?);
        }
        Ok(())
    }

    /// Leaves it so beyond the end of this process; `restore` puts it back.
    pub fn keep(mut self) {
        if let Some(held) = self.held.take() {
            held.keep();
        }
    }

    /// Everything goes back.
    pub fn release(&mut self) -> Restored {
        self.held.take().map_or_else(Restored::default, |mut held| held.undo())
    }
}
