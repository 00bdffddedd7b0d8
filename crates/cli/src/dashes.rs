//! A command that was given without the `--` before it: the line that was meant.

use clap::{ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use wattwise_figure::shell;
use wattwise_replay::{library, mixes};

/// The line that was meant by a call whose first word that is a program stands without `--`; none where there is no such word, or the
/// command runs none. `words` have the program's own name first.
pub(crate) fn meant(program: &Command, words: &[OsString]) -> Option<String> {
    let (mut command, mut at) = (program, 1);
    // Flags of the program, then the names of commands.
    while let Some(word) = words.get(at) {
        match command.find_subcommand(word) {
            Some(below) => (command, at) = (below, at + 1),
            None if is_flag(word) => at += 1 + values(command, word),
            None => break,
        }
    }
    command.get_arguments().find(|a| a.is_last_set())?;
    let mut before: Vec<&OsStr> = words[1..at].iter().map(OsString::as_os_str).collect();
    while let Some(word) = words.get(at) {
        if word == "--" {
            return None;
        }
        if is_flag(word) {
            let end = (at + 1 + values(command, word)).min(words.len());
            before.extend(words[at..end].iter().map(OsString::as_os_str));
            at = end;
        } else if is_program(word) && !(command.get_name() == "compare" && is_bundled(word)) {
            let ours = std::iter::once(OsStr::new("wattwise")).chain(before);
            let line = ours.chain([OsStr::new("--")]).chain(words[at..].iter().map(OsString::as_os_str));
            return Some(shell::line(line.map(|w| w.to_string_lossy().into_owned())));
        } else {
            // A workload, beside which no command can be compared, or an arm of `ab`.
            before.extend((command.get_name() != "compare").then_some(word.as_os_str()));
            at += 1;
        }
    }
    None
}

/// The words with each number below zero joined to the flag before it (`--latency=-5`); none where there is no such number. No
/// flag begins with a digit.
pub(crate) fn numbers_joined(words: &[OsString]) -> Option<Vec<OsString>> {
    let is_number = |word: &OsString| {
        let digits = word.to_str().and_then(|w| w.strip_prefix('-'));
        digits.is_some_and(|w| w.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit()))
    };
    let takes = |flag: &OsString| is_flag(flag) && !is_number(flag) && !flag.to_string_lossy().contains('=');
    let ours = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut joined: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match joined.last_mut().filter(|flag| at < ours && takes(flag) && is_number(word)) {
            Some(flag) => {
                flag.push("=");
                flag.push(word);
            }
            None => joined.push(word.clone()),
        }
    }
    (joined.len() < words.len()).then_some(joined)
}

/// Whether a word names a bundled workload or mix: some are named after the program that they are recordings of.
fn is_bundled(word: &OsStr) -> bool {
    let name = word.to_string_lossy();
    mixes::find(&name).is_some() || library::workloads().iter().any(|w| w.name == name)
}

fn is_flag(word: &OsStr) -> bool {
    word.to_str().is_some_and(|w| w.len() > 1 && w.starts_with('-') && w != "--")
}

/// Words after a flag that are its value.
fn values(command: &Command, flag: &OsStr) -> usize {
    let flag = flag.to_string_lossy();
    let arg = match flag.strip_prefix("--") {
        Some(long) if long.contains('=') => return 0,
        Some(long) => command.get_arguments().find(|a| a.get_long() == Some(long)),
        // `-p=x` and `-px` have theirs with them.
        None if flag.chars().count() > 2 => return 0,
        None => command.get_arguments().find(|a| a.get_short() == flag.chars().nth(1)),
    };
    usize::from(arg.is_some_and(|a| matches!(a.get_action(), ArgAction::Set | ArgAction::Append)))
}

/// Whether a word is the path of a program, or the name of one in `PATH`.
fn is_program(word: &OsStr) -> bool {
    let runs = |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    match word.to_string_lossy().contains('/') {
        true => runs(Path::new(word)),
        false => {
            std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|p| runs(&p.join(word)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_zero_is_the_value_of_the_flag_before_it() {
        let joined = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = numbers_joined(&words)?.into_iter().map(|w| w.into_string().expect("text"));
            Some(words.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(joined("w set --latency -5us -q").as_deref(), Some("w set --latency=-5us -q"));
        assert_eq!(joined("w run -p -.5 -- nice -n -5 x").as_deref(), Some("w run -p=-.5 -- nice -n -5 x"));
        for line in
            ["w compare --seed 5", "w governor x -5", "w set --max=1 -5", "w run -- nice -n -5 x", "w -5 -5"]
        {
            assert_eq!(joined(line), None, "{line}");
        }
    }
}
