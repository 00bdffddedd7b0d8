//! What processes left changed that could not put it back: a `kill -9` gives no time to.
//!
//! Their [journals](crate::set::journal) tell. One of a living owner is left to it; one of an earlier boot has nothing to put back, since
//! its settings went with that boot; one that `set` was to leave in force waits for `wattwise restore`.

use crate::set::journal::{self, Listing, OpenJournal};
use crate::set::original::{Item, Layer, Restored, boot_id, put_back_all};
use std::io;
use std::path::Path;
use wattwise_hw::root::Root;

/// Puts back what killed processes left, but not what is to stay in force: the commands that they were, and what came of each.
///
/// # Errors
/// The folder cannot be read or written.
pub fn restore_abandoned(root: &dyn Root, folder: &Path) -> io::Result<Vec<(String, Restored)>> {
    loop {
        let mut listing = journal::list(folder)?;
        let Some(at) = listing.journals.iter().position(|f| f.is_abandoned() && f.is_locked()) else {
            return put_back(root, listing);
        };
        // Another puts it back now, and will then set what it wants: to do it again would undo that. The locks on the others go
        // first, so that nobody waits for us meanwhile.
        let busy = listing.journals.swap_remove(at);
        drop(listing);
        busy.wait()?;
    }
}

/// The commands that were killed in this boot and left the machine changed.
///
/// # Errors
/// The folder cannot be read.
pub fn abandoned(root: &dyn Root, folder: &Path) -> io::Result<Vec<String>> {
    let boot = boot_id(root);
    let found = journal::look(folder)?.journals.into_iter();
    Ok(found.filter(|f| f.is_abandoned() && f.boot_id == boot).map(|f| f.command).collect())
}

/// Puts them back, newest first; what others have changed since is theirs to put back before.
fn put_back(root: &dyn Root, listing: Listing) -> io::Result<Vec<(String, Restored)>> {
    let boot = boot_id(root);
    let none: &[Item] = &[];
    let layers = listing.journals.iter().map(|found| match (found.is_abandoned(), found.boot_id == boot) {
        (true, true) => Layer::Left(&found.items),
        (true, false) => Layer::Left(none),
        (false, true) => Layer::Held(&found.items),
        (false, false) => Layer::Held(none),
    });
    let results = put_back_all(root, layers);
    let mut all = Vec::new();
    for (found, restored) in listing.journals.into_iter().filter(OpenJournal::is_abandoned).zip(results) {
        let command = found.command.clone();
        found.finish(&restored)?;
        all.push((command, restored));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::journal::Journal;
    use crate::set::target::Target;
    use crate::set::transaction::{Change, Transaction};
    use wattwise_emulator::{Emulator, named};

    const MAX: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";
    const MIN: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq";

    fn value(machine: &Emulator, path: &str) -> String {
        wattwise_hw::root::text(machine, path).expect("there")
    }

    /// The older of two ends first: what it has to leave goes back with the younger.
    #[test]
    fn who_ends_last_puts_back_what_had_to_wait() {
        let (machine, folder) = (named("core-i5-2gen").expect("bundled"), tempfile::tempdir().expect("made"));
        let highest = value(&machine, MAX);
        let to = |value: &str| {
            let (target, what) = (Target::File(MAX.to_owned()), "maximum".to_owned());
            let change = Change { target, what, value: value.to_owned(), elsewhere: None };
            Transaction::apply(&machine, folder.path(), "run", &[change], &[], &|| None).expect("applied")
        };
        let (mut older, mut younger) = (to("1600000"), to("1200000"));
        assert_eq!(older.undo().failed.len(), 1, "it waits");
        drop(older);
        assert_eq!(value(&machine, MAX), "1200000");
        assert!(younger.undo().failed.is_empty());
        assert_eq!(value(&machine, MAX), highest);
        assert!(journal::list(folder.path()).expect("read").journals.is_empty());
    }

    /// A change of one file, journalled; its owner lives until the journal is dropped.
    fn changed(machine: &Emulator, folder: &Path, boot: &str, path: &str, to: &str) -> Journal {
        let item = Item {
            target: Target::File(path.to_owned()),
            what: path.to_owned(),
            original: value(machine, path),
            appeared: false,
            ours: Vec::new(),
            unsettled: true,
            back: false,
        };
        let mut journal = Journal::begin(folder, boot, "run", &[item]).expect("begun");
        machine.write(path, to.as_bytes()).expect("taken");
        journal.wrote(0, to).and_then(|()| journal.done()).expect("written");
        journal
    }

    #[test]
    fn what_a_kill_left_goes_back_and_nothing_else() {
        let (machine, folder) = (named("core-i5-2gen").expect("bundled"), tempfile::tempdir().expect("made"));
        let (at, boot) = (folder.path(), boot_id(&machine));
        let highest = value(&machine, MAX);
        let back = || restore_abandoned(&machine, at).expect("put back");
        assert!(back().is_empty());

        let alive = changed(&machine, at, &boot, MAX, "1600000");
        assert!(back().is_empty() && abandoned(&machine, at).expect("read").is_empty(), "its owner lives");
        drop(alive);
        assert_eq!(abandoned(&machine, at).expect("read"), ["run"]);
        let all = back();
        assert_eq!((all.len(), all[0].1.restored.len(), value(&machine, MAX)), (1, 1, highest.clone()));

        drop(changed(&machine, at, "an earlier boot", MAX, "1600000"));
        assert!(abandoned(&machine, at).expect("read").is_empty());
        assert_eq!((back()[0].1.restored.len(), value(&machine, MAX)), (0, "1600000".to_owned()));
        machine.write(MAX, highest.as_bytes()).expect("taken");

        let mut kept = changed(&machine, at, &boot, MIN, "1200000");
        kept.kept().expect("written");
        drop(kept);
        assert!(back().is_empty(), "it is to stay");
        assert_eq!(value(&machine, MIN), "1200000");

        // Set for good while another held it: that goes back first, by `restore`.
        let held = changed(&machine, at, &boot, MAX, "1600000");
        let mut kept = changed(&machine, at, &boot, MAX, "1200000");
        kept.kept().expect("written");
        drop((held, kept));
        assert!(back()[0].1.failed[0].1.starts_with("waits for a later change"));
        assert_eq!(value(&machine, MAX), "1200000");
    }
}
