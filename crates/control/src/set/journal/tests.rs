//! Journals as a kill leaves them, and folders that are not to be trusted.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use wattwise_hw::root::folder::trusted;

fn items() -> Vec<Item> {
    (0..3)
        .map(|n| Item {
            target: Target::File(format!("f{n}")),
            what: format!("file {n}"),
            original: n.to_string(),
            appeared: false,
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

/// A journal's text, as wattwise writes it, of a process.
fn text(pid: u32, started: u64) -> String {
    format!(
        concat!(
            r#"{{"header":{{"schema":"wattwise.journal/1","pid":{},"started":{},"boot_id":"b","command":"set"}}}}"#,
            "\n",
            r#"{{"item":{{"target":{{"file":"f"}},"what":"f","original":"1"}}}}"#,
            "\n\"ready\"\n"
        ),
        pid, started
    )
}

fn mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[test]
fn nobody_else_reads_a_journal() -> io::Result<()> {
    let above = tempfile::tempdir()?;
    let folder = above.path().join("deeper/journal");
    let _journal = Journal::begin(&folder, "boot", "set", &items())?;
    assert_eq!(std::fs::metadata(&folder)?.mode() & 0o7777, 0o755);
    assert_eq!(std::fs::metadata(folder.join("000001.jsonl"))?.mode() & 0o7777, 0o600);
    Ok(())
}

#[test]
fn a_journal_that_others_can_write_is_not_followed() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("000001.jsonl");
    std::fs::write(&file, text(1, 1))?;
    mode(&file, 0o666)?;
    let listing = list(folder.path())?;
    assert!(listing.journals.is_empty());
    assert!(listing.unreadable[0].1.contains("others can write it"), "{:?}", listing.unreadable);
    Ok(())
}

#[test]
fn a_link_or_a_pipe_is_no_journal() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, text(1, 1))?;
    mode(&elsewhere, 0o600)?;
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("000001.jsonl"))?;
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("000002.jsonl"), 0o600.into())?;
    let listing = list(folder.path())?;
    assert!(listing.journals.is_empty());
    assert_eq!(listing.unreadable.len(), 2);
    Ok(())
}

#[test]
fn a_strangers_folder_and_journal_are_refused() -> io::Result<()> {
    assert!(trusted(1000, 0o600, 0).is_err_and(|why| why.contains("user 1000")));
    assert!(trusted(1000, 0o600, 1000).is_ok());
    assert!(trusted(0, 0o600, 1000).is_ok());
    assert!(trusted(0, 0o620, 0).is_err());
    if rustix::process::geteuid().is_root() {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("000001.jsonl");
        std::fs::write(&file, text(1, 1))?;
        mode(&file, 0o600)?;
        std::os::unix::fs::chown(&file, Some(65534), None)?;
        assert!(list(folder.path())?.journals.is_empty());
        std::os::unix::fs::chown(folder.path(), Some(65534), None)?;
        assert!(list(folder.path()).is_err_and(|e| e.to_string().contains("user 65534")));
        assert!(Journal::begin(folder.path(), "boot", "set", &items()).is_err());
    }
    Ok(())
}

#[test]
fn an_owner_is_believed_only_if_it_lives_and_is_that_program() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("000001.jsonl");
    let (me, started) = (std::process::id(), wattwise_child::stat(std::process::id()).expect("proc").started);
    for (pid, started, lives) in [(me, started, true), (me, started + 1, false), (i32::MAX as u32, 1, false)]
    {
        std::fs::write(&file, text(pid, started))?;
        mode(&file, 0o600)?;
        // A lock by anybody who could once open the file.
        let stranger = File::open(&file)?;
        stranger.lock()?;
        let listing = list(folder.path())?;
        assert_eq!(listing.journals[0].held, lives, "{pid} {started}");
    }
    Ok(())
}

#[test]
fn what_was_replaced_is_noted_for_everybody_until_it_is_back() -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir()?;
    let folder = above.path().join("journal");
    let note = || std::fs::read_to_string(folder.join(replaced::NAME));
    let of = |value: &str| {
        let mut items = items();
        items.truncate(1);
        items[0].original = value.to_owned();
        items
    };
    let path = of("")[0].target.path();
    let first = Journal::begin(&folder, "boot", "set", &of("performance"))?;
    assert!(note().is_err(), "only what stays is noted");
    first.note();
    let second = Journal::begin(&folder, "boot", "set", &of("powersave"))?;
    second.note();
    Journal::begin(&folder, "an earlier boot", "set", &of("ondemand"))?.note();
    second.note();
    assert_eq!(note()?, format!("{path} powersave\n\n{path} performance\n"));
    assert_eq!(std::fs::metadata(folder.join(replaced::NAME))?.permissions().mode() & 0o777, 0o644);
    assert_eq!(std::fs::metadata(&folder)?.permissions().mode() & 0o777, 0o755);
    first.finish(&Restored::default())?;
    assert_eq!(note()?, format!("{path} powersave\n"));
    second.finish(&Restored::default())?;
    assert!(note().is_err());
    Ok(())
}
