//! Ten thousand hostile names through what every output is made with. The oracles are the shells themselves.

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{acts_on_a_terminal, names};
use std::io::Write;
use std::process::{Command, Stdio};
use wattwise_figure::{csv_cell, on_screen, on_screen_json, one_line, shell};

const NAMES: usize = 10_000;
/// Says which arguments it got.
const SAY: &str = "wattwise() { printf '%s\\0' \"$@\"; }\n";

/// What a shell says when it runs a script in an empty folder, and that it left nothing there.
fn run(shell: &[&str], script: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(shell[0])
        .args(&shell[1..])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{shell:?}: {e}"));
    let mut input = child.stdin.take().expect("a pipe");
    let script = script.to_owned();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let out = child.wait_with_output().expect("an end");
    writer.join().expect("a thread").expect("it reads all");
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && words.is_empty(), "{shell:?}: {words}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("the folder").flatten().map(|f| f.file_name()).collect();
    assert!(left.is_empty(), "{shell:?}: something ran: {left:?}");
    out.stdout
}

/// A command with a name as a word, in a word and as a file.
fn command(name: &str) -> Vec<String> {
    ["wattwise".into(), "set".into(), "--cstate".into(), format!("{name}=off"), name.into()].to_vec()
}

/// Of each command that is printed a shell makes the words that it was made of, and runs nothing else.
#[test]
fn no_name_acts_on_a_shell() {
    // No argument of a program has a NUL in it.
    let all: Vec<String> = names(1, NAMES).iter().map(|n| n.replace('\0', "")).collect();
    let (mut script, mut wanted) = (SAY.to_owned(), Vec::new());
    for name in &all {
        let line = shell::line(command(name));
        assert!(!line.contains('\n') && acts_on_a_terminal(&line).is_none(), "{line:?}");
        script += &format!("{line}\n");
        wanted.extend(command(name)[1..].iter().flat_map(|w| w.bytes().chain([0])));
    }
    let bash = run(&["bash", "--norc"], &script);
    assert!(bash == wanted, "bash takes other words");
    // `$'...'` is of POSIX.1-2024: a shell before that takes other words for it, and still runs nothing.
    run(&["sh"], &script);
    run(&["sh", "-n"], &script);
}

/// Where nothing has to be shown in another way, every POSIX shell gets the very words.
#[test]
fn a_name_that_can_be_shown_is_exact_in_every_shell() {
    let all: Vec<String> = names(2, NAMES)
        .into_iter()
        .filter(|n| !n.contains(['\n', '\t']) && acts_on_a_terminal(n).is_none())
        .collect();
    assert!(all.len() > NAMES / 4, "{}", all.len());
    let script = all.iter().fold(SAY.to_owned(), |s, n| s + &shell::line(command(n)) + "\n");
    let wanted: Vec<u8> =
        all.iter().flat_map(|n| command(n)[1..].join("\0").into_bytes().into_iter().chain([0])).collect();
    assert!(run(&["sh"], &script) == wanted, "sh takes other words");
}

/// A file is a file, whatever it is called: no flag.
#[test]
fn no_file_is_a_flag() {
    for name in names(3, NAMES).iter().filter(|n| !n.is_empty()) {
        let shown = shell::file(name);
        let unquoted = shown.trim_start_matches(['$', '\'']);
        assert!(!unquoted.starts_with('-'), "{shown}");
    }
}

#[test]
fn no_name_acts_on_a_terminal() {
    for name in names(4, NAMES) {
        for shown in [
            on_screen(&name).replace("\r\n", "\n"),
            one_line(&name),
            csv_cell(&name),
            shell::word(&name),
            shell::name_of(&name),
        ] {
            assert_eq!(acts_on_a_terminal(&shown), None, "{shown:?}");
        }
        let line = one_line(&name);
        assert!(!line.contains(['\n', '\t', '\r']), "{line:?}");
        let json = serde_json::to_string(&name).expect("a string");
        let shown = on_screen_json(&json);
        assert_eq!(acts_on_a_terminal(&shown), None, "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON still"), name);
    }
}

/// A name that machine files may have is a word as it is; every other gets a spelling that is such a name.
#[test]
fn a_name_that_a_file_may_have_needs_no_quotes() {
    let mut taken = 0;
    for name in names(5, NAMES) {
        if shell::is_name(&name) {
            assert_eq!(shell::word(format!("{name}=off")), format!("{name}=off"));
            taken += 1;
        }
        let spelling = shell::name_of(&name);
        assert!(spelling.is_empty() || shell::is_name(&spelling), "{spelling:?}");
    }
    assert!(taken > 50, "{taken}");
}
