//! Text that reaches a shell: whatever is printed as a command goes through here.
//!
//! People paste what they are shown. A file's or a C-state's name comes from a stranger, so a command that quotes it must hand
//! it on as one argument and do nothing else, in each shell that a user may have:
//!
//! | a word of | is written | sh, dash, bash, zsh, ksh, fish |
//! |---|---|---|
//! | letters, digits and `_.+,:/@%=-` | as it is | exact |
//! | anything that is shown as it is | `'Web Content'`, `'it'\''s'` | exact |
//! | characters that a terminal acts on | `$'a\033b'` (POSIX.1-2024, octal) | exact in bash, zsh, ksh; in dash another word, in fish an error; nothing runs |
//!
//! `\` stands outside of the quotes, because fish takes `\'` within them for a quote that does not end the word.
//! (The crates shlex and shell-words write control characters as they are: a terminal would act on what is shown.)

use crate::text::is_acted_on;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether any shell takes a word as it is. `=` is none's first character: zsh looks for a program of that name.
fn is_plain(word: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.+,:/@%=-".contains(&b);
    !word.is_empty() && !word.starts_with('=') && word.bytes().all(plain)
}

/// One argument as a shell reads it, whatever is in it.
pub fn word(argument: impl AsRef<OsStr>) -> String {
    let argument = argument.as_ref();
    match argument.to_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        Some(text) if !text.contains(is_acted_on) => quoted(text),
        _ => escaped(argument.as_bytes()),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => _ = write!(out, "'\\{c}'"),
            c => out.push(c),
        }
    }
    out + "'"
}

/// `$'...'` with nothing inside that ends it, even for a shell that knows it as `$` and a quoted word.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_acted_on(c) || matches!(c, '\'' | '\\' | '!') {
                true => octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                false => out.push(c),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out + "'"
}

fn octal(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|b| _ = write!(out, "\\{b:03o}"));
}

/// A command: its words, quoted where they must be.
pub fn line<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A file as an argument that no program takes for a flag.
pub fn file(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    match path.as_os_str().as_bytes().first() {
        Some(b'-') => word(Path::new(".").join(path)),
        _ => word(path),
    }
}

/// What a name may have that ends up in commands, for errors.
pub const NAME: &str = "letters, digits and _.+-, of which - is not the first";

/// Whether a name is such that a command takes it as it is: [`NAME`].
pub fn is_name(name: &str) -> bool {
    let part = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(part)
}

/// The name under which a command knows what a kernel calls `Shared Cede`: with `_` for what [`is_name`] does not allow.
pub fn name_of(kernels: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() || "_.+-".contains(c) { c } else { '_' };
    let name: String = kernels.trim().chars().map(part).collect();
    if name.starts_with('-') { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What a shell makes of a line: the arguments of `say`, and whatever else it did.
    fn ran(shell: &[&str], line: &str) -> (bool, Vec<u8>) {
        let script = format!("say() {{ printf '%s\\0' \"$@\"; }}\nsay {line}\n");
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(shell[0]);
        let out = command.args(&shell[1..]).args(["-c", &script]).current_dir(folder.path()).output();
        let out = out.unwrap_or_else(|e| panic!("{shell:?}: {e}"));
        let empty = std::fs::read_dir(folder.path()).expect("the folder").next().is_none();
        (empty && out.stderr.is_empty(), out.stdout)
    }

    /// The expected arguments are the shells' own answer: dash and bash read back what was quoted.
    #[test]
    fn shells_read_back_what_was_quoted() {
        let hostile = [
            "",
            "plain",
            "C6=off; touch x #",
            "$(touch x)",
            "`touch x`",
            "a'b",
            "'",
            "''",
            "\\",
            "a\\",
            "\\'; touch x #",
            "a\\'; touch x #",
            "~root",
            "*",
            "a b",
            "!!",
            "&& touch x",
            "| touch x",
            "> x",
            "=ls",
            "{a,b}",
            "é漢字",
            "-n",
            "#",
            "%s",
            "\"",
            "$HOME",
            "'$(touch x)'",
            "a;b",
        ];
        let line = line(hostile);
        let wanted: Vec<u8> = hostile.iter().flat_map(|w| w.bytes().chain([0])).collect();
        assert_eq!(ran(&["sh"], &line), (true, wanted.clone()), "{line}");
        assert_eq!(ran(&["bash"], &line), (true, wanted), "{line}");
        // What a terminal acts on is not even shown, and bash gets every byte back.
        let acted: Vec<&OsStr> =
            ["a\u{1b}[2Jb", "\n", "it's\n; touch x #", "\u{202e}x", "\u{9b}'\\", "\r!!\t"]
                .iter()
                .map(OsStr::new)
                .chain([OsStr::from_bytes(b"\xff';touch x'\xc3")])
                .collect();
        let line = super::line(&acted);
        assert!(!line.contains(is_acted_on), "{line}");
        let wanted: Vec<u8> = acted.iter().flat_map(|w| w.as_bytes().iter().copied().chain([0])).collect();
        assert_eq!(ran(&["bash"], &line), (true, wanted), "{line}");
        assert!(ran(&["sh"], &line).0, "{line}");
    }

    #[test]
    fn usual_words_stay_as_they_are() {
        let usual =
            ["compare", "--policy", "schedutil:rate_limit=2ms+teo", "./a-b_c/x.perf", "50%", "user@host:1,2"];
        assert_eq!(line(usual), usual.join(" "));
        assert_eq!(word("two words"), "'two words'");
        assert_eq!(word("it's"), "'it'\\''s'");
    }

    #[test]
    fn a_file_is_no_flag() {
        assert_eq!(file("--report=x"), "./--report=x");
        assert_eq!(file("/tmp/a b"), "'/tmp/a b'");
        assert_eq!(file("-"), "./-");
    }

    #[test]
    fn names_that_commands_take() {
        // As drivers of Linux 6.12 call them: intel_idle, cpuidle-pseries, Kirkwood, device trees.
        for name in ["C1", "C1E-SKX", "POLL", "snooze", "WFI", "cpu-sleep-0", "stop0_lite", "P1+", "v1.2"] {
            assert!(is_name(name) && name_of(name) == name, "{name}");
        }
        for (kernels, name) in
            [("Shared Cede", "Shared_Cede"), ("DDR SR", "DDR_SR"), ("C6=off; x #", "C6_off__x__")]
        {
            assert!(!is_name(kernels));
            assert_eq!(name_of(kernels), name);
        }
        assert!(!is_name("-a") && !is_name("") && !is_name("é") && is_name(&name_of("-é\n")));
    }
}
