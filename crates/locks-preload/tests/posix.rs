//! `posix.c` under the interposer with every lock and policy that fits, and under glibc alone.

mod under;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use under::{fits, library, probe, side_by_side, under};
use wattwise_locks::dynamic::LockKind;

/// Real-time threads and those that wait for deadlines are not tried at once.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_mutex_type_call_and_error() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (probe, library) = (probe("posix"), library());
    let alone = Command::new(&probe).args(["8", "glibc"]).output().expect("runs");
    assert!(alone.status.success(), "the probe is wrong: {}", String::from_utf8_lossy(&alone.stdout));
    let all = std::env::var_os("WATTWISE_ALL").is_some();
    let kinds: Vec<(&LockKind, bool)> = LockKind::all()
        .iter()
        .filter(|kind| fits(kind))
        // FIFO spinning with more threads than cores takes for ever: see the notes on locks. Of the policies that never
        // sleep, which differ in nothing that this probe sees, MCS stands for all locks unless WATTWISE_ALL is set.
        .map(|kind| (kind, kind.wait.ends_with("park") || kind.wait == "yield" || kind.lock == "adaptive"))
        .filter(|(kind, gives_way)| {
            all || kind.lock == "mcs" || (*gives_way && !kind.wait.contains("state+"))
        })
        .collect();
    assert_eq!(kinds.len(), if all { 60 } else { 28 });
    // The probe mostly waits for deadlines, so several run beside each other; those that spin run alone.
    let (waiting, spinning): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|(_, gives_way)| *gives_way);
    side_by_side(&waiting, |(kind, _)| passes(&probe, &library, kind, "16"));
    spinning.iter().for_each(|(kind, _)| passes(&probe, &library, kind, "2"));
    a_wrong_name_ends_the_program_with_one_line(&probe, &library);
}

/// The probe's every check holds under this lock, which was in use.
fn passes(probe: &Path, library: &Path, kind: &LockKind, threads: &str) {
    let run = under(probe, library, &kind.name())
        .arg(threads)
        .env("WATTWISE_LOCK_STATS", "1")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{}: {:?}\n{said}", kind.name(), run.status);
    let stats = String::from_utf8_lossy(&run.stderr);
    assert!(stats.contains(&kind.name()), "{}: not in use: {stats}", kind.name());
    assert!(!stats.contains("left to glibc: 0 "), "shared and robust ones are counted: {stats}");
}

fn a_wrong_name_ends_the_program_with_one_line(probe: &Path, library: &Path) {
    for (name, word) in
        [("mutexee", "mutexee"), ("mcs:sleep", "spin-then-park"), ("anderson:park", "does not fit")]
    {
        let run = under(probe, library, name).output().expect("runs");
        assert_eq!(run.status.code(), Some(2), "{name}");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(said.lines().count() == 1 && said.contains(word), "{said}");
    }
}

#[test]
fn real_time_priorities_are_served_first_under_every_lock() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (probe, library) = (probe("priority"), library());
    let alone = Command::new(&probe).output().expect("runs");
    if alone.status.code() == Some(77) {
        assert!(std::env::var_os("CI").is_none(), "CI must be able to check this");
        eprintln!("skipped: no real-time priority is to be had here (CAP_SYS_NICE or RLIMIT_RTPRIO)");
        return;
    }
    // Threads with such a priority wait in a list of their own, whatever the waiting policy: one for each lock, or all of
    // them with WATTWISE_ALL. One after the other, since real-time threads leave the others little.
    let all = std::env::var_os("WATTWISE_ALL").is_some();
    let kinds: Vec<&LockKind> =
        LockKind::all().iter().filter(|kind| fits(kind) && (all || kind.wait == "park")).collect();
    assert!(kinds.len() >= 5, "{}", kinds.len());
    for kind in kinds {
        let run = under(&probe, &library, &kind.name()).output().expect("runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{}: {:?}\n{said}", kind.name(), run.status);
    }
}

#[test]
fn a_crowd_of_sleepers_is_woken_one_by_one() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (probe, library) = (probe("crowd"), library());
    for kind in LockKind::all().iter().filter(|kind| fits(kind)) {
        if !kind.wait.ends_with("park") && kind.name() != "adaptive:spin" {
            continue;
        }
        let run = under(&probe, &library, &kind.name()).arg("1000").output().expect("runs");
        let said = String::from_utf8_lossy(&run.stdout);
        let sleeps: u32 = said.trim().parse().unwrap_or_else(|_| panic!("{}: {run:?}", kind.name()));
        // Less than one each; if all slept on one word, it would be 15.
        assert!(sleeps < 400, "{}: {sleeps} hundredths of a sleep for a thread", kind.name());
    }
}

#[test]
fn a_lock_needs_no_memory_and_may_be_malloc_s_own() {
    let (probe, library) = (probe("scarce"), library());
    for what in ["malloc", "memory"] {
        assert!(
            Command::new(&probe).arg(what).status().expect("runs").success(),
            "the probe is wrong: {what}"
        );
        for kind in LockKind::all().iter().filter(|kind| fits(kind) && kind.wait.contains("park")) {
            let run = under(&probe, &library, &kind.name()).arg(what).output().expect("runs");
            assert!(run.status.success(), "{what} under {}: {run:?}", kind.name());
        }
    }
    let run = under(&probe, &library, "mutexee").arg("malloc").output().expect("runs");
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.lines().count() == 1 && said.contains("mutexee"), "{said}");
}

#[test]
fn errno_is_after_each_call_what_it_was_before() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (probe, library) = (probe("errno"), library());
    let alone = Command::new(&probe).output().expect("runs");
    assert!(alone.status.success(), "the probe is wrong: {}", String::from_utf8_lossy(&alone.stdout));
    // Those that spin in the order of their coming stand for each other, and have a core each.
    let (waiting, spinning): (Vec<_>, Vec<_>) = LockKind::all()
        .iter()
        .filter(|kind| fits(kind) && !kind.wait.contains("state+") && kind.wait != "kernel-wait")
        .partition(|kind| kind.wait.contains("park") || kind.wait == "yield" || kind.lock == "adaptive");
    let passes = |kind: &LockKind, threads: &str| {
        let run = under(&probe, &library, &kind.name()).arg(threads).output().expect("runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{}: {:?}\n{said}", kind.name(), run.status);
    };
    assert!(waiting.len() >= 18, "{}", waiting.len());
    side_by_side(&waiting, |kind| passes(kind, "8"));
    spinning.iter().filter(|kind| kind.lock == "mcs").for_each(|kind| passes(kind, "2"));
}

#[test]
fn a_waiter_is_cancelled_but_no_handler_that_interrupts_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (probe, library) = (probe("cancel"), library());
    // glibc until 2.40 cancels handlers; the rest is as there.
    let alone = Command::new(&probe).arg("glibc").output().expect("runs");
    assert!(alone.status.success(), "the probe is wrong: {}", String::from_utf8_lossy(&alone.stdout));
    let kinds: Vec<&LockKind> =
        LockKind::all().iter().filter(|kind| fits(kind) && kind.wait == "spin-then-park").collect();
    assert!(kinds.len() >= 6, "{}", kinds.len());
    side_by_side(&kinds, |kind| {
        let run = under(&probe, &library, &kind.name()).output().expect("runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{}: {:?}\n{said}", kind.name(), run.status);
    });
}
