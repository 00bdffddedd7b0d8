//! What a command changes in the file system, seen by strace: every call that could, and the places where it may.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where every command may write: nothing is kept there.
const ALWAYS: &[&str] = &["/dev/null", "/dev/tty"];

/// Calls that change what a path leads to, or could. `?` is strace's mark for a call that not every architecture has.
const CHANGING: &[&str] = &[
    "?chmod",
    "fchmod",
    "fchmodat",
    "?fchmodat2",
    "?chown",
    "fchown",
    "?lchown",
    "fchownat",
    "?mkdir",
    "mkdirat",
    "?rmdir",
    "?unlink",
    "unlinkat",
    "?rename",
    "?renameat",
    "renameat2",
    "?link",
    "linkat",
    "?symlink",
    "symlinkat",
    "?mknod",
    "mknodat",
    "truncate",
    "ftruncate",
    "?utime",
    "?utimes",
    "?futimesat",
    "utimensat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "mount",
    "umount2",
    "bind",
];

/// Calls that open, of which the flags say whether something can be changed.
const OPENING: &[&str] = &["?open", "openat", "?openat2", "?creat"];
const WRITING: &[&str] = &["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE", "creat("];

/// Runs a command with all that it starts under strace, whose log is written to `log`. Names without a folder are taken to be
/// in the command's current one: nothing that is traced here changes that.
pub(crate) fn traced(command: &Command, log: &Path) -> (Output, Changes) {
    let calls: Vec<&str> = CHANGING.iter().chain(OPENING).copied().collect();
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-y", "-qq", "-s", "4096", "-e", "signal=none", "-e"])
        .arg(format!("trace={}", calls.join(",")));
    strace.arg("-o").arg(log).arg(command.get_program()).args(command.get_args());
    let folder = command.get_current_dir().unwrap();
    let out = strace.current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    std::fs::remove_file(log).unwrap();
    let calls: Vec<String> = whole(&text);
    assert!(!calls.is_empty(), "strace saw nothing: {out:?}");
    (out, Changes { calls, folder: folder.canonicalize().unwrap() })
}

/// The calls, each in one line: strace cuts one in two where another thread comes between.
fn whole(log: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let mut begun: std::collections::BTreeMap<&str, String> = Default::default();
    for line in log.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or(("", line));
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix("<unfinished ...>") {
            begun.insert(thread, first.to_owned());
        } else if call.starts_with("<... ") {
            let rest = call.split_once("resumed>").map_or("", |(_, rest)| rest);
            calls.push(begun.remove(thread).unwrap_or_default() + rest);
        } else if !(call.starts_with("+++") || call == "???( <detached ...>") {
            // `???`: a thread that ended with its process before strace had read which call it was about to make.
            calls.push(call.to_owned());
        }
    }
    // Killed meanwhile: what it began counts.
    calls.extend(begun.into_values());
    calls
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Changes {
    calls: Vec<String>,
    folder: PathBuf,
}

impl Changes {
    /// How many calls could have changed something.
    pub(crate) fn len(&self) -> usize {
        self.calls.iter().filter(|call| is_change(call)).count()
    }

    /// Calls that could have changed something outside of these places, also those that failed.
    pub(crate) fn outside(&self, allowed: &[&Path]) -> Vec<String> {
        let allowed: Vec<PathBuf> = allowed
            .iter()
            .map(|at| {
                at.parent()
                    .and_then(|p| p.canonicalize().ok())
                    .unwrap_or_default()
                    .join(at.file_name().unwrap())
            })
            .chain(ALWAYS.iter().map(PathBuf::from))
            .collect();
        let inside = |path: &PathBuf| allowed.iter().any(|at| path.starts_with(at));
        let bad = |call: &&String| is_change(call) && !self.paths(call).iter().all(inside);
        self.calls.iter().filter(bad).cloned().collect()
    }

    pub(crate) fn assert_only_in(&self, allowed: &[&Path], what: &str) {
        let outside = self.outside(allowed);
        assert!(outside.is_empty(), "{what}: allowed are {allowed:?}; changed was\n{}", outside.join("\n"));
    }

    /// No call whose name has one of these words.
    pub(crate) fn assert_none_of(&self, words: &[&str], what: &str) {
        let name = |call: &str| call.split('(').next().unwrap_or_default().to_owned();
        let bad: Vec<&String> =
            self.calls.iter().filter(|c| words.iter().any(|w| name(c).contains(w))).collect();
        assert!(bad.is_empty(), "{what}: {bad:?}");
    }

    /// Whether something whose name ends so was opened, and not just looked at.
    pub(crate) fn opened(&self, name: &str) -> bool {
        let opens =
            |call: &&String| call.starts_with("open") && !call.contains("O_PATH") && !call.contains(" = -1 ");
        self.calls.iter().filter(opens).any(|call| self.paths(call).iter().any(|path| path.ends_with(name)))
    }

    /// The paths that a call is about: where an opened file really is, else what stands in its arguments.
    fn paths(&self, call: &str) -> Vec<PathBuf> {
        let (arguments, result) = call.rsplit_once(" = ").unwrap_or((call, ""));
        let real = |text: &str| Some(PathBuf::from(text.split_once('<')?.1.rsplit_once('>')?.0));
        if let (true, Some(path)) = (call.starts_with("open") || call.starts_with("creat"), real(result)) {
            return vec![path];
        }
        // Each descriptor is the folder of the name after it, or is meant itself.
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut at: Option<PathBuf> = None;
        let inside = arguments.split_once('(').map_or("", |(_, inside)| inside);
        for argument in split(inside) {
            if let Some(name) = argument.strip_prefix('"') {
                let name = name.trim_end_matches('"');
                // A descriptor of its own was judged where it was opened: a nameless file gets its name by it.
                if name.starts_with("/proc/self/fd/") {
                    at = None;
                    continue;
                }
                let folder = at.take().unwrap_or_else(|| self.folder.clone());
                paths.push(if name.is_empty() { folder } else { within(&folder, name) });
            } else if let Some(folder) = real(argument) {
                paths.extend(at.replace(folder));
            }
        }
        paths.extend(at);
        // What a link says is not a place.
        if call.starts_with("symlink") { paths.split_off(paths.len().min(1)) } else { paths }
    }
}

/// The arguments of a call; commas within names and structures do not part them.
fn split(inside: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted, mut depth) = (Vec::new(), 0, false, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' | '<' if !quoted => depth += 1,
            '}' | ']' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(inside[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(inside[from..].trim().trim_end_matches(')'));
    parts
}

/// Where a name leads: the links of all but its last part are followed, as the kernel did.
fn within(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(&path);
    match (parent.canonicalize(), path.file_name()) {
        (Ok(parent), Some(last)) => parent.join(last),
        _ => path,
    }
}

fn is_change(call: &str) -> bool {
    let opens = ["open", "creat"].iter().any(|name| call.starts_with(name));
    // A descriptor of a path alone changes nothing; a name may hold any word.
    match opens {
        true => {
            let flags = call.rsplit_once('"').map_or(call, |(_, flags)| flags);
            call.starts_with("creat") || WRITING.iter().any(|flag| flags.contains(flag))
        }
        false => true,
    }
}
