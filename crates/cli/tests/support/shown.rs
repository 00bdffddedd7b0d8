//! The program in a folder of its own, and what it prints looked at as a terminal would.

use crate::hostile::acts_on_a_terminal;
use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn wattwise(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise"))
        .env("XDG_DATA_HOME", folder)
        .env_remove("FORCE_COLOR")
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap()
}

/// What was printed, of which a terminal acts on nothing.
pub(crate) fn harmless(out: &Output) -> String {
    let text =
        [&out.stdout, &out.stderr].map(|bytes| String::from_utf8(bytes.clone()).expect("UTF-8")).concat();
    let shown = text.replace("\r\n", "\n");
    assert_eq!(acts_on_a_terminal(&shown), None, "{shown:?}");
    text
}

pub(crate) fn printed(folder: &Path, args: &[&str]) -> String {
    let out = wattwise(folder, args);
    let text = harmless(&out);
    assert!(out.status.success(), "{args:?}: {text}");
    String::from_utf8(out.stdout).unwrap()
}
