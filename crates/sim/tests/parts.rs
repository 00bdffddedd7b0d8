//! The engine's parts know nothing of each other: what one needs of another, the simulation tells it.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};

/// Each part: its type, and the file or folder that may name it.
const PARTS: [(&str, &str); 8] = [
    ("Clock", "clock.rs"),
    ("Hardware", "hardware"),
    ("Scheduler", "sched"),
    ("Tasks", "tasks"),
    ("Idlers", "govern/idle.rs"),
    ("SpeedGovernor", "govern/speed.rs"),
    ("CoreGovernor", "govern/cores.rs"),
    ("Record", "record"),
];

/// Rooms that only the simulation may use.
const ABOVE: [&str; 3] = ["Simulation", "CpuState", "Phase"];

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    entries.flat_map(|entry| sources(&entry.expect("an entry").path())).collect()
}

/// A file's code, without its comments, and without what the policies call by a part's name.
fn code(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|l| l.split("//").next().unwrap_or_default().replace("Cadence::Scheduler", "Cadence"))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> Vec<String> {
    let words = code(text).flat_map(|l| l.split(|c| !is_word(c)).map(String::from).collect::<Vec<_>>());
    words.filter(|w| !w.is_empty()).collect()
}

/// `crate::ROOM` and `crate::{ROOM, ROOM}` in code: which rooms a file uses.
fn rooms(text: &str) -> Vec<String> {
    let code: String = code(text).collect();
    let room = |path: &str| path.trim().split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
    let of_use = |rest: &str| match rest.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default().split(',').map(room).collect(),
        None => vec![room(rest)],
    };
    code.split("crate::").skip(1).flat_map(of_use).collect()
}

/// What is wrong with a part's file.
fn faults(part: &str, home: &str, text: &str) -> Vec<String> {
    let others: Vec<&str> =
        PARTS.iter().map(|(name, _)| *name).filter(|name| *name != part).chain(ABOVE).collect();
    let named =
        words(text).into_iter().filter(|w| others.contains(&w.as_str())).map(|w| format!("names {w}"));
    let own = home.split(['/', '.']).next().unwrap_or_default();
    // What goes in and comes out, and the table of times, belong to no part.
    let allowed = |room: &String| {
        [own, "calendar", "outcome", "NONE", "Interrupt", "MakeIdle", ""].contains(&room.as_str())
    };
    let used = rooms(text).into_iter().filter(|room| !allowed(room)).map(|r| format!("uses crate::{r}"));
    named.chain(used).collect()
}

#[test]
fn no_part_knows_another() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (part, home) in PARTS {
        let files = sources(&src.join(home));
        assert!(!files.is_empty(), "{home} has no file");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("readable");
            wrong.extend(faults(part, home, &text).iter().map(|f| format!("{}: {f}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_part_that_knows_another_is_found() {
    assert!(faults("Clock", "clock.rs", "// Hardware\nlet tasks = Hardwares;").is_empty());
    assert_eq!(faults("Clock", "clock.rs", "fn f(h: &Hardware) {}"), ["names Hardware"]);
    assert_eq!(faults("Tasks", "tasks", "use super::Simulation;"), ["names Simulation"]);
    assert_eq!(faults("Tasks", "tasks", "use crate::sched::load::TaskLoad;"), ["uses crate::sched"]);
    assert_eq!(faults("Tasks", "tasks", "use crate::{NONE, record::Reading};"), ["uses crate::record"]);
}
