//! systemd as a guest's first process: Debian's, with the libraries that it is linked with and its targets, and beside it the units of
//! our own package as they are shipped.
//!
//! Of Debian's services there is the journal alone, which copies what units say to the console: no udev, no logins, no bus. So a guest is
//! up in seconds under TCG.

use crate::build::packages::Apt;
use crate::files::{ProgramRun, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where units are, in Debian's package and in the guest.
const UNITS: &str = "lib/systemd/system";
/// What the guest runs of it.
const PROGRAMS: &[&str] = &["lib/systemd/systemd", "lib/systemd/systemd-journald", "bin/systemctl"];
/// Its units beside the targets.
const JOURNAL: &[&str] =
    &["systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket"];
/// The unit that runs a scenario once the machine is up; the kernel's command line names it.
const SCENARIO: &str = "[Unit]
Requires=multi-user.target systemd-journald.socket
After=multi-user.target

[Service]
ExecStart=/init
TimeoutStopSec=5
";

/// Files of the guest and where they come from: (absolute path, file).
pub(crate) fn get(root: &Path, lab: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let tree = lab.join("systemd");
    let stamp = tree.join("unpacked");
    if !stamp.exists() {
        eprintln!("lab: getting systemd");
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir_all(&tree).map_err(|e| format!("{}: {e}", tree.display()))?;
        Apt::new(lab, None)?.unpack("systemd", &tree)?;
        // Last: whatever fails above is fetched afresh next time.
        write(&stamp, "")?;
    }
    let mut found = Vec::new();
    for program in PROGRAMS {
        found.extend(linked(&tree, program)?);
    }
    for path in listed(&tree.join(UNITS), "target")? {
        found.push(placed(UNITS, path));
    }
    found.extend(JOURNAL.iter().map(|name| placed(UNITS, tree.join(UNITS).join(name))));
    for path in listed(&root.join("packaging/systemd"), "service")? {
        found.push(placed(UNITS, path));
    }
    for (name, text) in [
        ("lib/systemd/system/lab.service", SCENARIO),
        // Without one it would be the machine's first boot, at which units are enabled as the distribution has them.
        ("etc/machine-id", "00000000000000000000000000000001\n"),
        ("etc/passwd", "root:x:0:0:root:/:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
    ] {
        let path = tree.join(name.rsplit('/').next().unwrap_or(name));
        write(&path, text)?;
        found.push((format!("/{name}"), path));
    }
    Ok(found)
}

/// A program of the tree and the libraries that it is linked with, all of the tree's.
fn linked(tree: &Path, program: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let own = tree.join(program);
    let folders = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/systemd"];
    let folders: Vec<String> = folders.map(|f| tree.join(f).display().to_string()).to_vec();
    let text =
        ProgramRun::new(Command::new("ldd").env("LD_LIBRARY_PATH", folders.join(":")).arg(&own)).output()?;
    let mut found = vec![(format!("/{program}"), own)];
    // `libc.so.6 => /TREE/lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or the loader's path alone.
    for path in text.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new) {
        let name = path.strip_prefix(tree).map_or(path.to_owned(), |inside| Path::new("/").join(inside));
        found.push((name.display().to_string(), path.to_owned()));
    }
    if let Some(lost) = text.lines().find(|line| line.contains("not found")) {
        return Err(format!("{program}: {}: remove {} and try again", lost.trim(), tree.display()));
    }
    Ok(found)
}

/// Files of a folder with that ending.
fn listed(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && path.extension().is_some_and(|e| e == ending))
        .collect();
    found.sort();
    Ok(found)
}

fn placed(folder: &str, path: PathBuf) -> (String, PathBuf) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (format!("/{folder}/{name}"), path)
}
