//! Files are written by the crate `output` alone: nothing else may create, replace or rename one.
//!
//! Clippy's `disallowed_methods` would hold tests to it too, which write whatever they like. So this reads the sources: all of
//! what is built into the product, up to a file's own tests.

use std::path::{Path, PathBuf};

/// What creates, replaces or renames a file.
const WRITERS: &[&str] = &[
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "renameat",
    " linkat(",
    "fs::linkat(",
    "File::create",
    "File::options",
    "OpenOptions",
    "OFlags::CREATE",
    "O_CREAT",
    "NamedTempFile",
    "tempfile::",
];

/// Crates that are not part of the product, and the writer itself.
const FREE: &[&str] = &["output", "lab", "xtask"];

/// Who else may, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("cli/src/schema.rs", "a test that makes docs/schema"),
    ("control/src/private/mod.rs", "journals, which root believes: stricter rules"),
    ("control/src/set/journal.rs", "the same, in a folder of private/"),
    ("control/src/cores/held.rs", "the same: a lock"),
    ("control/src/cores/mechanism/cgroup_v1.rs", "attributes of the kernel"),
    ("control/src/cores/mechanism/files.rs", "attributes of the kernel"),
    ("control/src/powerctl.rs", "a device of ours"),
    ("hw/src/root/mod.rs", "attributes in an unpacked copy of a machine, which keep the kernel's rules"),
    ("locks-preload/src/watch.rs", "within another's process, without allocation"),
];

pub(crate) fn run() -> Result<(), String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).map_err(|e| e.to_string())?.flatten() {
        if !FREE.iter().any(|free| entry.file_name() == *free) {
            sources(&entry.path().join("src"), &mut files).map_err(|e| e.to_string())?;
        }
    }
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.strip_prefix(&crates).unwrap_or(file).display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
        if !ALLOWED.iter().any(|(allowed, _)| *allowed == name) && !is_a_test(&name) {
            let found = found(&text).into_iter();
            wrong.extend(found.map(|(line, word)| format!("crates/{name}:{line}: {word}")));
        }
    }
    if let Some((gone, _)) = ALLOWED.iter().find(|(allowed, _)| !crates.join(allowed).is_file()) {
        wrong.push(format!("{gone} is allowed to write, and is not there any more"));
    }
    if wrong.is_empty() {
        println!("writers: {} files, none writes beside the crate 'output'", files.len());
        return Ok(());
    }
    Err(format!("writers: files are written by wattwise_output alone:\n{}", wrong.join("\n")))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

/// A file that is a module of tests.
fn is_a_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.ends_with("/faults.rs")
}

/// Lines before a file's own tests that write.
fn found(text: &str) -> Vec<(usize, &'static str)> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut found = Vec::new();
    for (at, line) in product.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
        found.extend(WRITERS.iter().find(|w| line.contains(**w)).map(|w| (at + 1, *w)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_found_outside_of_tests_and_comments() {
        let text = "fn a() {\n    std::fs::write(path, text)?;\n}\n// fs::write(\n#[cfg(test)]\nmod tests {\n    fs::write(a, b);\n";
        assert_eq!(found(text), [(2, "fs::write(")]);
        assert_eq!(found("let f = tempfile::NamedTempFile::new_in(folder)?;"), [(1, "NamedTempFile")]);
    }

    #[test]
    fn the_product_writes_by_the_one_writer() {
        assert_eq!(run(), Ok(()));
    }
}
