//! Wishes that stand, on emulated machines.

use super::*;
use crate::set::left::restore_abandoned;
use wattwise_emulator::{Emulator, Fault, Op, named};

const EPP: &str = "sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference";
const EPP1: &str = "sys/devices/system/cpu/cpufreq/policy1/energy_performance_preference";
const EPP3: &str = "sys/devices/system/cpu/cpufreq/policy3/energy_performance_preference";

fn change(path: &str, value: &str) -> Change {
    let target = Target::File(path.to_owned());
    Change { target, what: path.to_owned(), value: value.to_owned(), elsewhere: None }
}

fn laptop() -> (Emulator, tempfile::TempDir) {
    (named("amd-laptop").expect("bundled"), tempfile::tempdir().expect("a folder"))
}

/// As a kill leaves it: the lock goes, the journal stays.
fn killed(mut standing: StandingChanges<'_>) {
    standing.journal = None;
    standing.kept.clear();
}

#[test]
fn from_wish_to_wish_nothing_is_written_that_stands() {
    let (machine, folder) = laptop();
    let before = machine.snapshot();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
    let changed = standing.want(&[change(EPP, "power")], &[]).expect("journalled");
    let wrote: Vec<_> = changed.wrote.iter().map(|w| (w.target.as_str(), w.got.as_str())).collect();
    assert_eq!(wrote, [(&*format!("/{EPP3}"), "balance_performance")], "the other stands");
    // Who reads the machine is told what was replaced, and no more of what is back.
    let note = std::fs::read_to_string(folder.path().join(wattwise_hw::replaced::NAME)).expect("a note");
    assert_eq!(note, format!("{EPP} balance_performance\n"));
    assert!(standing.want(&[change(EPP, "power")], &[]).expect("journalled").wrote.is_empty());
    standing.end();
    assert_eq!(machine.snapshot(), before);
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0, "no journal is left");
}

#[test]
fn one_file_that_fails_is_named_and_the_rest_is_done() {
    let (machine, folder) = laptop();
    let errno = rustix::io::Errno::INVAL;
    machine.inject(Fault::Errno { pattern: EPP.into(), op: Op::Write, nth: 0, errno });
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    let changed = standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
    assert_eq!(changed.failed.len(), 1);
    assert!(changed.failed[0].target.contains("policy0"), "{:?}", changed.failed);
    assert_eq!(changed.wrote.len(), 1);
}

#[test]
fn anothers_value_is_told_and_left_where_it_is_let_go() {
    let (machine, folder) = laptop();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.want(&[change(EPP, "power")], &[]).expect("journalled");
    assert!(standing.look().is_empty());
    machine.write(EPP, b"balance_power").expect("taken");
    let foreign = standing.look();
    assert_eq!((foreign.len(), foreign[0].now.as_str()), (1, "balance_power"));
    standing.let_go(&foreign[0].target);
    standing.end();
    assert_eq!(machine.read(EPP).expect("there"), b"balance_power\n");
}

#[test]
fn a_killed_one_is_put_back_but_for_what_was_let_go() {
    let (machine, folder) = laptop();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
    machine.write(EPP, b"balance_power").expect("taken");
    let foreign = standing.look();
    standing.let_go(&foreign[0].target);
    killed(standing);
    restore_abandoned(&machine, folder.path()).expect("restored");
    assert_eq!(machine.read(EPP).expect("there"), b"balance_power\n");
    assert_eq!(machine.read(EPP3).expect("there"), b"balance_performance\n");
}

#[test]
fn a_steady_look_opens_nothing() {
    let (machine, folder) = laptop();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.want(&[change(EPP3, "power")], &[]).expect("journalled");
    standing.look();
    let opens = machine.opens(EPP3);
    (0..100).for_each(|_| assert!(standing.look().is_empty()));
    assert_eq!(machine.opens(EPP3), opens);
    // The inode is another one after the CPU has gone and come back: a watch on it would be dead.
    machine.plug(3, false);
    machine.plug(3, true);
    machine.write(EPP3, b"balance_power").expect("taken");
    assert_eq!(standing.look().len(), 1);
}

fn journal_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("there").flatten();
    files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}

/// A proof has a profile come and go each minute, for weeks.
#[test]
fn wishes_that_come_and_go_let_neither_journal_nor_memory_grow() {
    let (machine, folder) = laptop();
    let before = machine.snapshot();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.come_and_go(true);
    let turn = |standing: &mut StandingChanges<'_>| {
        standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
        assert_eq!(machine.read(EPP).expect("there"), b"power\n");
        standing.want(&[], &[]).expect("journalled");
        assert_eq!(machine.snapshot(), before);
    };
    turn(&mut standing);
    let bytes = journal_bytes(folder.path());
    assert!(bytes > 0);
    (0..100).for_each(|_| turn(&mut standing));
    assert_eq!((journal_bytes(folder.path()), standing.kept.len()), (bytes, 2));
    // A profile that comes and stays, for months, takes no memory either.
    standing.come_and_go(false);
    (0..100).for_each(|_| turn(&mut standing));
    assert_eq!(standing.kept.len(), 2);
    standing.end();
    assert_eq!(machine.snapshot(), before);
}

/// What somebody put there while nothing was wanted is what was there before: it returns, and stays at the end.
#[test]
fn a_value_that_changed_between_two_turns_is_what_was_before() {
    let (machine, folder) = laptop();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.come_and_go(true);
    let epp = || String::from_utf8_lossy(&machine.read(EPP).expect("there")).trim().to_owned();
    standing.want(&[change(EPP, "power")], &[]).expect("journalled");
    standing.want(&[], &[]).expect("journalled");
    machine.write(EPP, b"balance_power").expect("taken");
    standing.want(&[change(EPP, "power")], &[]).expect("journalled");
    assert_eq!(epp(), "power");
    standing.want(&[], &[]).expect("journalled");
    assert_eq!(epp(), "balance_power");
    machine.write(EPP, b"performance").expect("taken");
    standing.end();
    assert_eq!(epp(), "performance");
}

/// A killed one's values go back also where they have come and gone before.
#[test]
fn a_kill_in_a_turn_is_put_back() {
    let (machine, folder) = laptop();
    let before = machine.snapshot();
    let mut standing = StandingChanges::new(&machine, folder.path(), "test");
    standing.come_and_go(true);
    for _ in 0..3 {
        standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
        standing.want(&[], &[]).expect("journalled");
    }
    standing.come_and_go(false);
    standing.want(&[change(EPP3, "balance_power")], &[]).expect("journalled");
    standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
    killed(standing);
    restore_abandoned(&machine, folder.path()).expect("restored");
    assert_eq!(machine.snapshot(), before);
}

/// A daemon between two turns of a proof. Where it cuts no lines off its journal, another item comes, so that what rests is no longer said
/// in the last ones.
fn after_turns<'m>(
    machine: &'m Emulator,
    folder: &Path,
    (turns, cuts): (usize, bool),
) -> StandingChanges<'m> {
    let mut standing = StandingChanges::new(machine, folder, "test");
    standing.come_and_go(true);
    for _ in 0..turns {
        standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
        if !cuts {
            standing.want(&[change(EPP, "power")], &[]).expect("journalled");
            standing.want(&[change(EPP, "power"), change(EPP1, "power")], &[]).expect("journalled");
        }
        standing.want(&[], &[]).expect("journalled");
    }
    standing
}

/// Between two turns the machine is its user's: what was set then stays, whoever is killed.
#[test]
fn a_kill_between_two_turns_leaves_what_a_user_set_there() {
    for turns in 1..4 {
        for cuts in [true, false] {
            let (machine, folder) = laptop();
            let epp = |path| String::from_utf8_lossy(&machine.read(path).expect("there")).trim().to_owned();
            let standing = after_turns(&machine, folder.path(), (turns, cuts));
            machine.write(EPP, b"balance_power").expect("taken");
            killed(standing);
            restore_abandoned(&machine, folder.path()).expect("restored");
            assert_eq!(
                [EPP, EPP1, EPP3].map(epp),
                ["balance_power", "balance_performance", "balance_performance"]
            );
            // And within the turn after such ones all goes back that is the daemon's.
            let mut standing = after_turns(&machine, folder.path(), (turns, cuts));
            standing.want(&[change(EPP, "power"), change(EPP3, "power")], &[]).expect("journalled");
            killed(standing);
            restore_abandoned(&machine, folder.path()).expect("restored");
            assert_eq!(
                [EPP, EPP1, EPP3].map(epp),
                ["balance_power", "balance_performance", "balance_performance"]
            );
        }
    }
}
